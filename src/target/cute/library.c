/* The CuTe compiler as a library of C functions, `libCutlassCompiler.so` of NVIDIA's install
 * archives, loaded when TIKI_CUTE_LIBRARY names it.
 *
 * Its functions are those that public bindings of it declare; texts and data that it hands out are
 * freed with free. It is loaded once and stays: code of it may run at the end of the process. What
 * it prints goes where this process prints, and it cannot be stopped, so workers are preferred.
 * Calls are made one at a time, because nobody says that they may overlap. The lowered module comes
 * as bitcode only, so it is not kept. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "target/cute/compiler.h"
#include "target/process.h"

/* Kinds of artifacts and the calling convention, by number. */
enum { PRE_COMPILED_MLIR = 1, OBJECT = 4, ABI_AS_IT_IS = 0 };

#define FUNCTIONS(F)                                                                               \
    F(create, void *, cutlass_cute_compiler_create, (void))                                        \
    F(destroy, void, cutlass_compiler_destroy, (void *))                                           \
    F(set_target, int, cutlass_compiler_set_device_target,                                         \
      (void *, const char *, size_t, char **, size_t *))                                           \
    F(set_abi, int, cutlass_compiler_set_abi, (void *, int, char **, size_t *))                    \
    F(set_pipeline, int, cutlass_compiler_set_pipeline, (void *, int, const char *, size_t))       \
    F(compile, void *, cutlass_compiler_compile_to, (void *, void *, int, char **, size_t *))      \
    F(parse, void *, cutlass_artifacts_from_textual_form, (int, const char *, size_t))             \
    F(get_data, int, cutlass_artifacts_get_data, (void *, uint8_t **, size_t *))                   \
    F(free_artifacts, void, cutlass_artifacts_destroy, (void *))

typedef struct functions {
#define F(name, result, symbol, arguments) result(*name) arguments;
    FUNCTIONS(F)
#undef F
} functions;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char *path; /* NULL: nothing is loaded */
    functions call;
} loaded;

/* ---- loading ---- */

static tk_status find(void *library, const char *symbol, void *out) {
    void *address = dlsym(library, symbol);
    if (!address)
        return tk_fail(TK_UNSUPPORTED, "the CuTe compiler's library has no function %s", symbol);
    memcpy(out, &address, sizeof address);
    return TK_OK;
}

static tk_status find_all(void *library, functions *out) {
#define F(name, result, symbol, arguments) TK_TRY(find(library, #symbol, &out->name));
    FUNCTIONS(F)
#undef F
    return TK_OK;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void watch_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

/* With the lock. */
static tk_status load(const char *path) {
    if (loaded.path && !strcmp(loaded.path, path)) return TK_OK;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tk_fail(TK_UNSUPPORTED, "TIKI_CUTE_LIBRARY cannot be loaded: %.400s", dlerror());
    functions found;
    TK_TRY(find_all(library, &found));
    char *kept = tk_strdup(path);
    if (!kept) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the name of a library");
    tk_free(loaded.path);
    loaded.path = kept;
    loaded.call = found;
    return TK_OK;
}

tk_status tk_cute_library_identity(const char *path, char *text, size_t capacity) {
    struct stat info;
    if (stat(path, &info))
        return tk_fail(TK_UNSUPPORTED, "TIKI_CUTE_LIBRARY names %.300s, which is not there", path);
    snprintf(text, capacity, "libCutlassCompiler, %lld bytes of %lld.%09ld",
             (long long)info.st_size, (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return TK_OK;
}

/* ---- one compilation ---- */

typedef struct compilation {
    const tk_cute_job *job;
    tk_cute_answer *answer;
    char *error;
    size_t error_bytes;
} compilation;

/* What the compiler says becomes the answer's messages: a text that it refuses is an answer. */
static tk_status refuse(compilation *c, const char *what) {
    int bytes = c->error && c->error_bytes < INT_MAX ? (int)c->error_bytes : 0;
    size_t room = strlen(what) + (size_t)bytes + 3;
    char *text = tk_malloc(room);
    if (!text) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the CuTe compiler's answer");
    snprintf(text, room, "%s%s%.*s", what, bytes ? ": " : "", bytes, bytes ? c->error : "");
    free(c->error);
    c->error = NULL;
    tk_free(c->answer->messages);
    c->answer->messages = text;
    c->answer->refused = true;
    return TK_OK;
}

static tk_status copy_data(const functions *call, void *artifacts, char **out, size_t *out_bytes) {
    uint8_t *data = NULL;
    size_t bytes = 0;
    if (call->get_data(artifacts, &data, &bytes) || !data)
        return tk_fail(TK_INTERNAL, "the CuTe compiler's library gives no data of an artifact");
    *out = tk_malloc(bytes + 1);
    if (*out) {
        memcpy(*out, data, bytes);
        (*out)[bytes] = 0;
        *out_bytes = bytes;
    }
    free(data);
    return *out ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for the CuTe compiler's answer");
}

/* A compiler set up for the job; NULL with the answer refused. */
static void *set_up(const functions *call, compilation *c, const char *pipeline) {
    const char *arch = c->job->arch;
    void *compiler = call->create();
    if (compiler && !call->set_target(compiler, arch, strlen(arch), &c->error, &c->error_bytes) &&
        !call->set_abi(compiler, ABI_AS_IT_IS, &c->error, &c->error_bytes) &&
        !call->set_pipeline(compiler, PRE_COMPILED_MLIR, pipeline, strlen(pipeline)))
        return compiler;
    if (compiler) call->destroy(compiler);
    return NULL;
}

static tk_status compile_parsed(const functions *call, compilation *c, void *parsed,
                                const char *pipeline) {
    void *compiler = set_up(call, c, pipeline);
    if (!compiler) return refuse(c, "the library does not take the architecture or the options");
    void *made = call->compile(compiler, parsed, OBJECT, &c->error, &c->error_bytes);
    tk_status status = made ? copy_data(call, made, &c->answer->object, &c->answer->object_bytes)
                            : refuse(c, "the library does not compile the text");
    if (made) call->free_artifacts(made);
    call->destroy(compiler);
    return status;
}

static tk_status compile_text(const functions *call, compilation *c, const char *pipeline) {
    void *parsed = call->parse(PRE_COMPILED_MLIR, c->job->text, c->job->text_bytes);
    if (!parsed) return refuse(c, "the library does not read the text");
    tk_status status = compile_parsed(call, c, parsed, pipeline);
    call->free_artifacts(parsed);
    return status;
}

static bool is_ptx(const char *name) {
    size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, ".ptx");
}

/* The PTX that the pipeline dumped, whatever it is called; then the folder goes. */
static tk_status take_ptx(const tk_work_folder *folder, bool wanted, char **out_ptx) {
    char name[256] = "", path[800];
    const char *names[] = {name, NULL};
    DIR *files = opendir(folder->path);
    for (struct dirent *file; files && (file = readdir(files));)
        if (is_ptx(file->d_name)) snprintf(name, sizeof name, "%.255s", file->d_name);
    if (files) closedir(files);
    tk_status status = TK_OK;
    if (*name && wanted) {
        size_t bytes;
        tk_work_path(folder, name, path, sizeof path);
        status = tk_work_read(path, out_ptx, &bytes);
    } else if (wanted) {
        status = tk_fail(TK_IO_ERROR, "the CuTe compiler wrote no PTX to %.300s", folder->path);
    }
    tk_work_folder_remove(folder, names);
    return status;
}

static tk_status compile_in(const functions *call, compilation *c, const tk_work_folder *folder) {
    char pipeline[1600];
    int written = snprintf(pipeline, sizeof pipeline, "cute-to-nvvm{%s dump-ptx-path=%s/kernel}",
                           c->job->options, folder->path);
    if (written >= (int)sizeof pipeline)
        return tk_fail(TK_INVALID_ARGUMENT, "options of %d bytes for the CuTe compiler", written);
    return compile_text(call, c, pipeline);
}

static tk_status compile(const functions *call, compilation *c) {
    tk_work_folder folder;
    TK_TRY(tk_work_folder_create(&folder));
    tk_status status = compile_in(call, c, &folder);
    bool wanted = status == TK_OK && c->job->ptx && !c->answer->refused;
    tk_status taken = take_ptx(&folder, wanted, &c->answer->ptx);
    return status == TK_OK ? taken : status;
}

tk_status tk_cute_library_compile(const char *path, const tk_cute_job *job, tk_cute_answer *out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    compilation c = {.job = job, .answer = out};
    pthread_once(&once, watch_forks);
    *out = (tk_cute_answer){0};
    pthread_mutex_lock(&lock);
    tk_status status = load(path);
    if (status == TK_OK) status = tk_cute_library_identity(path, out->version, sizeof out->version);
    if (status == TK_OK) status = compile(&loaded.call, &c);
    pthread_mutex_unlock(&lock);
    free(c.error);
    if (status != TK_OK) tk_cute_answer_free(out);
    return status;
}
