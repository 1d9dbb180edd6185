/* Loading images and finding functions in them. */
#include "runtime/cuda_module.h"

#include <string.h>

#include "base/alloc.h"
#include "base/sha256.h"

#define LOG_BYTES 4096

struct tk_cuda_module {
    tk_cuda *cuda;
    CUmodule handle;
    char *name;
    int references; /* guarded by the lock, as is all that follows */
    unsigned char digest[TK_SHA256_BYTES];
    tk_cuda_function *functions;
    tk_cuda_module *next;
};

/* One lock for the list and all functions; held while the driver loads, so that a module asked for
 * by many threads at once is loaded once. */
struct tk_cuda_modules {
    pthread_mutex_t lock;
    tk_cuda_module *first;
};

tk_status tk_cuda_modules_begin(tk_cuda *cuda) {
    tk_cuda_modules *modules = tk_calloc(1, sizeof *modules);
    if (!modules) return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory", cuda->index);
    pthread_mutex_init(&modules->lock, NULL);
    cuda->modules = modules;
    return TK_OK;
}

/* ---- ending -----------------------------------------------------------------------------------
 */

static void free_function(tk_cuda_function *function) {
    tk_free((char *)function->name);
    tk_free(function);
}

static void end_module(tk_cuda_module *module) {
    while (module->functions) {
        tk_cuda_function *function = module->functions;
        module->functions = function->next;
        free_function(function);
    }
    if (module->handle) (void)module->cuda->api->module_unload(module->handle);
    tk_free(module->name);
    tk_free(module);
}

/* Ends those that nobody holds, or all. */
static void end_modules(tk_cuda_modules *modules, bool all) {
    tk_cuda_module **link = &modules->first;
    while (*link) {
        tk_cuda_module *module = *link;
        if (!all && module->references > 0) {
            link = &module->next;
            continue;
        }
        *link = module->next;
        end_module(module);
    }
}

void tk_cuda_modules_end(tk_cuda *cuda) {
    if (!cuda->modules) return;
    end_modules(cuda->modules, true);
    pthread_mutex_destroy(&cuda->modules->lock);
    tk_free(cuda->modules);
    cuda->modules = NULL;
}

tk_status tk_cuda_modules_trim(tk_cuda *cuda) {
    TK_TRY(tk_cuda_enter(cuda));
    pthread_mutex_lock(&cuda->modules->lock);
    CUresult result = cuda->api->context_synchronize();
    if (result == CUDA_SUCCESS) end_modules(cuda->modules, false);
    pthread_mutex_unlock(&cuda->modules->lock);
    return result == CUDA_SUCCESS ? TK_OK : tk_cuda_fail(cuda, result, "waiting for the device");
}

int tk_cuda_modules_count(tk_cuda *cuda) {
    int count = 0;
    pthread_mutex_lock(&cuda->modules->lock);
    for (const tk_cuda_module *at = cuda->modules->first; at; at = at->next) count++;
    pthread_mutex_unlock(&cuda->modules->lock);
    return count;
}

/* ---- loading ----------------------------------------------------------------------------------
 */

static bool is_binary(const void *image, size_t bytes) {
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'}, fat[4] = {0x50, 0xed, 0x55, 0xba};
    return bytes >= 4 && (memcmp(image, elf, 4) == 0 || memcmp(image, fat, 4) == 0);
}

/* The first lines of the assembler's log, for a message. */
static void shorten_log(char *log) {
    size_t length = strlen(log) < 600 ? strlen(log) : 600;
    while (length > 0 && (log[length - 1] == '\n' || log[length - 1] == ' ')) length--;
    log[length] = 0;
    for (char *at = log; *at; at++)
        if (*at == '\n') *at = ' ';
}

static tk_status load_image(tk_cuda *cuda, const void *image, const char *name, CUmodule *out) {
    char log[LOG_BYTES] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUresult result = cuda->api->module_load(out, image, 2, options, values);
    if (result == CUDA_SUCCESS) return TK_OK;
    log[sizeof log - 1] = 0;
    shorten_log(log);
    return tk_cuda_fail(cuda, result, "loading %s for compute capability %d.%d%s%.400s", name,
                        cuda->info.major, cuda->info.minor, log[0] ? ": " : "", log);
}

/* PTX text must end with a zero byte. */
static tk_status load_text(tk_cuda *cuda, const void *image, size_t bytes, const char *name,
                           CUmodule *out) {
    char *text = tk_malloc(bytes + 1);
    if (!text) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the text of %s", name);
    memcpy(text, image, bytes);
    text[bytes] = 0;
    tk_status status = load_image(cuda, text, name, out);
    tk_free(text);
    return status;
}

static tk_cuda_module *find_module(tk_cuda_modules *modules, const unsigned char *digest) {
    for (tk_cuda_module *at = modules->first; at; at = at->next)
        if (memcmp(at->digest, digest, TK_SHA256_BYTES) == 0) return at;
    return NULL;
}

static tk_status new_module(tk_cuda *cuda, const void *image, size_t bytes, const char *name,
                            tk_cuda_module **out_module) {
    tk_cuda_module *module = tk_calloc(1, sizeof *module);
    char *copy = tk_strdup(name);
    tk_status status = TK_OK;
    if (!module || !copy) status = tk_fail(TK_OUT_OF_MEMORY, "no memory for module %s", name);
    if (status == TK_OK)
        status = is_binary(image, bytes) ? load_image(cuda, image, name, &module->handle)
                                         : load_text(cuda, image, bytes, name, &module->handle);
    if (status != TK_OK) {
        tk_free(module);
        tk_free(copy);
        return status;
    }
    module->cuda = cuda;
    module->name = copy;
    *out_module = module;
    return TK_OK;
}

tk_status tk_cuda_module_load(tk_cuda *cuda, const void *image, size_t bytes, const char *name,
                              tk_cuda_module **out_module) {
    *out_module = NULL;
    unsigned char digest[TK_SHA256_BYTES];
    TK_TRY(tk_cuda_enter(cuda));
    tk_sha256_of(image, bytes, digest);
    tk_cuda_modules *modules = cuda->modules;
    pthread_mutex_lock(&modules->lock);
    tk_cuda_module *module = find_module(modules, digest);
    tk_status status = TK_OK;
    if (!module) {
        status = new_module(cuda, image, bytes, name, &module);
        if (status == TK_OK) {
            memcpy(module->digest, digest, sizeof digest);
            module->next = modules->first;
            modules->first = module;
        }
    }
    if (status == TK_OK) module->references++;
    pthread_mutex_unlock(&modules->lock);
    *out_module = status == TK_OK ? module : NULL;
    return status;
}

tk_cuda_module *tk_cuda_module_retain(tk_cuda_module *module) {
    pthread_mutex_lock(&module->cuda->modules->lock);
    module->references++;
    pthread_mutex_unlock(&module->cuda->modules->lock);
    return module;
}

void tk_cuda_module_release(tk_cuda_module *module) {
    if (!module) return;
    pthread_mutex_lock(&module->cuda->modules->lock);
    module->references--;
    pthread_mutex_unlock(&module->cuda->modules->lock);
}

/* ---- functions --------------------------------------------------------------------------------
 */

static CUresult read_attributes(const tk_cuda_api *api, tk_cuda_function *function) {
    struct {
        int which;
        int *field;
    } rows[] = {{CU_FUNC_NUM_REGS, &function->registers},
                {CU_FUNC_SHARED_SIZE_BYTES, &function->shared_bytes},
                {CU_FUNC_LOCAL_SIZE_BYTES, &function->local_bytes},
                {CU_FUNC_MAX_THREADS_PER_BLOCK, &function->max_threads}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUresult result = api->function_attribute(rows[i].field, rows[i].which, function->handle);
        if (result != CUDA_SUCCESS) return result;
    }
    int dynamic = 0;
    CUresult result =
        api->function_attribute(&dynamic, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, function->handle);
    atomic_store(&function->dynamic_shared, dynamic);
    return result;
}

static tk_status new_function(tk_cuda_module *module, const char *entry,
                              tk_cuda_function **out_function) {
    tk_cuda *cuda = module->cuda;
    tk_cuda_function *function = tk_calloc(1, sizeof *function);
    char *name = tk_strdup(entry);
    if (!function || !name) {
        tk_free(function);
        tk_free(name);
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for kernel %s", entry);
    }
    function->module = module;
    function->cuda = cuda;
    function->name = name;
    CUresult result = cuda->api->module_function(&function->handle, module->handle, entry);
    if (result == CUDA_SUCCESS) result = read_attributes(cuda->api, function);
    if (result == CUDA_SUCCESS) {
        *out_function = function;
        return TK_OK;
    }
    free_function(function);
    return tk_cuda_fail(cuda, result, "kernel %s of module %s", entry, module->name);
}

tk_status tk_cuda_module_function(tk_cuda_module *module, const char *entry,
                                  tk_cuda_function **out_function) {
    *out_function = NULL;
    TK_TRY(tk_cuda_enter(module->cuda));
    tk_cuda_modules *modules = module->cuda->modules;
    tk_status status = TK_OK;
    pthread_mutex_lock(&modules->lock);
    tk_cuda_function *at = module->functions;
    while (at && strcmp(at->name, entry) != 0) at = at->next;
    if (!at) {
        status = new_function(module, entry, &at);
        if (status == TK_OK) {
            at->next = module->functions;
            module->functions = at;
        }
    }
    pthread_mutex_unlock(&modules->lock);
    if (status == TK_OK) *out_function = at;
    return status;
}
