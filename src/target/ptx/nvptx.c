/* nvPTXCompiler, NVIDIA's assembler as a library that this process loads when it is first needed.
 *
 * NVIDIA ships it as an archive; `make nvptxcompiler` links a shared object of that and nothing
 * else, so its functions are called by the names that NVIDIA gave them, and any object that exports
 * these will do. It is never closed: it keeps tables of its own. Any number of threads may
 * assemble, each with a handle of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "target/ptx/assemblers.h"

#define FILE_NAME "libtiki_nvptxcompiler.so"

typedef struct nvPTXCompiler *handle;
enum { SUCCESS = 0, COMPILATION_FAILURE = 3, UNSUPPORTED_VERSION = 7 };

#define FUNCTIONS(X)                                                                               \
    X(create, Create, (handle * compiler, size_t length, const char *text))                        \
    X(destroy, Destroy, (handle * compiler))                                                       \
    X(compile, Compile, (handle compiler, int n_options, const char *const *options))              \
    X(binary_size, GetCompiledProgramSize, (handle compiler, size_t * bytes))                      \
    X(binary, GetCompiledProgram, (handle compiler, void *out))                                    \
    X(error_size, GetErrorLogSize, (handle compiler, size_t * bytes))                              \
    X(error, GetErrorLog, (handle compiler, char *out))                                            \
    X(info_size, GetInfoLogSize, (handle compiler, size_t * bytes))                                \
    X(info, GetInfoLog, (handle compiler, char *out))

typedef struct library {
#define FIELD(field, symbol, parameters) int(*field) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
    char path[TK_ASSEMBLER_PATH_BYTES];
} library;

/* ---- the shared object ---- */

bool tk_nvptx_find(char path[TK_ASSEMBLER_PATH_BYTES]) {
    static const char *const folders[] = {"", "../lib/"};
    static const char here;
    Dl_info info;
    struct stat of;
    if (!dladdr(&here, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash ? (int)(slash + 1 - info.dli_fname) : 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int written = snprintf(path, TK_ASSEMBLER_PATH_BYTES, "%.*s%s" FILE_NAME, length,
                               info.dli_fname, folders[i]);
        if (written < TK_ASSEMBLER_PATH_BYTES && !stat(path, &of)) return true;
    }
    return false;
}

static tk_status find_symbol(void *object, const char *path, const char *symbol, void *out_field) {
    void *address = dlsym(object, symbol);
    if (!address) return tk_fail(TK_UNSUPPORTED, "%.200s has no %s", path, symbol);
    memcpy(out_field, &address, sizeof address);
    return TK_OK;
}

static tk_status load(const char *path, library *out) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) return tk_fail(TK_UNSUPPORTED, "nvPTXCompiler: %.300s", dlerror());
#define FIND(field, symbol, parameters)                                                            \
    TK_TRY(find_symbol(object, path, "nvPTXCompiler" #symbol, &out->field));
    FUNCTIONS(FIND)
#undef FIND
    snprintf(out->path, sizeof out->path, "%s", path);
    return TK_OK;
}

/* The one that was loaded last, found again by its path. */
static tk_status library_at(const char *path, library *out) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static library last;
    tk_status status = TK_OK;
    pthread_mutex_lock(&lock);
    if (strcmp(last.path, path) != 0) {
        library fresh = {0};
        status = load(path, &fresh);
        if (status == TK_OK) last = fresh;
    }
    *out = last;
    pthread_mutex_unlock(&lock);
    return status;
}

void tk_nvptx_version(const char *path, char *text, size_t bytes) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*ask)(unsigned *major, unsigned *minor) = NULL;
    unsigned major = 0, minor = 0;
    *text = 0;
    if (!object) return;
    if (find_symbol(object, path, "nvPTXCompilerGetVersion", &ask) == TK_OK &&
        ask(&major, &minor) == SUCCESS)
        snprintf(text, bytes, "%u.%u", major, minor);
    (void)dlclose(object);
}

/* ---- one text ---- */

static tk_status fail(const char *what, int result) {
    return tk_fail(TK_INTERNAL, "nvPTXCompiler: %s gives result %d", what, result);
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        int result_of_call = (call);                                                               \
        if (result_of_call != SUCCESS) return fail(#call, result_of_call);                         \
    } while (0)

static tk_status read_log(const library *l, handle compiler, bool refused, char **out) {
    size_t bytes = 0;
    TRY(refused ? l->error_size(compiler, &bytes) : l->info_size(compiler, &bytes));
    *out = tk_calloc(1, bytes + 1);
    if (!*out) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a log");
    if (bytes) TRY(refused ? l->error(compiler, *out) : l->info(compiler, *out));
    return TK_OK;
}

static tk_status read_binary(const library *l, handle compiler, tk_assembled *out) {
    TRY(l->binary_size(compiler, &out->bytes));
    unsigned char *binary = tk_malloc(out->bytes + 1);
    if (!binary) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a binary");
    binary[out->bytes] = 0;
    int result = l->binary(compiler, binary);
    if (result == SUCCESS) {
        out->binary = binary;
        return TK_OK;
    }
    tk_free(binary);
    return fail("the binary", result);
}

static tk_status compile(const library *l, handle compiler, const char *arch, bool lines,
                         tk_assembled *out) {
    char name[40];
    snprintf(name, sizeof name, "--gpu-name=%s", arch);
    const char *const options[] = {name, "--verbose", "--generate-line-info"};
    int result = l->compile(compiler, lines ? 3 : 2, options);
    bool refused = result == COMPILATION_FAILURE || result == UNSUPPORTED_VERSION;
    if (result != SUCCESS && !refused) return fail("compiling", result);
    snprintf(out->how, sizeof out->how, "result %d", result);
    TK_TRY(read_log(l, compiler, refused, &out->log));
    return refused ? TK_OK : read_binary(l, compiler, out);
}

tk_status tk_nvptx_assemble(const char *path, const char *text, const char *arch, bool lines,
                            tk_assembled *out) {
    library l;
    handle compiler;
    TK_TRY(library_at(path, &l));
    TRY(l.create(&compiler, strlen(text), text));
    tk_status status = compile(&l, compiler, arch, lines, out);
    (void)l.destroy(&compiler);
    return status;
}
