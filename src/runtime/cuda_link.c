/* The driver's linker, given one text: unlike loading a module it hands out the binary, so what it
 * made goes into the cache as that of any assembler. But it compiles as for one of several parts,
 * and so ignores setmaxnreg (its message C7504): then the text is loaded once for its messages, and
 * is itself what is kept.
 *
 * The primary context is entered for the time of the call; if nobody else of the process uses it,
 * the driver makes it and ends it again, which takes tenths of a second. Rejected: keeping it,
 * since a process that only assembles should not hold memory of a device. */
#define _GNU_SOURCE
#include "runtime/cuda_link.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "runtime/cuda_api.h"

#define LOG_BYTES (64 << 10)

/* ---- one text ---- */

typedef struct link_logs {
    char said[LOG_BYTES], refused[LOG_BYTES];
} link_logs;

static int target_of(const char *arch) {
    int number = atoi(arch + strlen("sm_"));
    return strchr(arch, 'a') ? CU_TARGET_ACCELERATED + number : number;
}

enum { MOST_OPTIONS = 8 };

typedef struct link_options {
    int names[MOST_OPTIONS];
    void *values[MOST_OPTIONS];
    unsigned count;
} link_options;

static void add_option(link_options *list, int name, const void *value) {
    list->names[list->count] = name;
    list->values[list->count++] = (void *)(uintptr_t)value;
}

static void add_number(link_options *list, int name, uintptr_t value) {
    add_option(list, name, (const void *)value);
}

/* Where messages go. */
static link_options options_of(link_logs *logs, bool lines) {
    link_options list = {.count = 0};
    add_option(&list, CU_JIT_INFO_LOG_BUFFER, logs->said);
    add_number(&list, CU_JIT_INFO_LOG_BUFFER_SIZE, sizeof logs->said);
    add_option(&list, CU_JIT_ERROR_LOG_BUFFER, logs->refused);
    add_number(&list, CU_JIT_ERROR_LOG_BUFFER_SIZE, sizeof logs->refused);
    add_number(&list, CU_JIT_LOG_VERBOSE, 1);
    add_number(&list, CU_JIT_GENERATE_LINE_INFO, lines);
    return list;
}

static CUresult begin_link(const tk_cuda_api *api, const char *arch, bool lines, link_logs *logs,
                           CUlinkState *out) {
    link_options list = options_of(logs, lines);
    add_number(&list, CU_JIT_TARGET, (uintptr_t)target_of(arch));
    return api->link_create(list.count, list.names, list.values, out);
}

/* The binary belongs to the link, so it is copied before the link ends. */
static tk_status keep_binary(const void *binary, size_t bytes, tk_cuda_linked *out) {
    out->binary = tk_malloc(bytes + 1);
    if (!out->binary) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a binary");
    memcpy(out->binary, binary, bytes);
    out->binary[bytes] = 0;
    out->bytes = bytes;
    return TK_OK;
}

static bool refuses(CUresult result) {
    tk_status status = tk_cuda_result_status(result);
    return status == TK_FORMAT_ERROR || status == TK_UNSUPPORTED;
}

/* The driver keeps what it has compiled by its text, also for later processes, and of that it has
 * no messages. A last line that nobody had before makes it compile. */
static char *new_text(const char *text) {
    struct timespec time;
    size_t room = strlen(text) + 80;
    char *made = tk_malloc(room);
    (void)clock_gettime(CLOCK_REALTIME, &time);
    if (made)
        snprintf(made, room, "%s\n// %lld.%09ld %ld\n", text, (long long)time.tv_sec, time.tv_nsec,
                 (long)getpid());
    return made;
}

static tk_status link_text(const tk_cuda_api *api, const char *text, const char *arch, bool lines,
                           link_logs *logs, tk_cuda_linked *out) {
    CUlinkState state;
    void *binary = NULL;
    size_t bytes = 0;
    char scratch[32];
    tk_status status = TK_OK;
    CUresult result = begin_link(api, arch, lines, logs, &state);
    if (result == CUDA_SUCCESS) {
        result = api->link_add(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1,
                               "kernel.ptx", 0, NULL, NULL);
        if (result == CUDA_SUCCESS) result = api->link_complete(state, &binary, &bytes);
        if (result == CUDA_SUCCESS) status = keep_binary(binary, bytes, out);
        (void)api->link_destroy(state);
    }
    if (result == CUDA_SUCCESS || refuses(result)) return status;
    return tk_fail(tk_cuda_result_status(result), "assembling by the NVIDIA driver: %s",
                   tk_cuda_result_name(result, scratch));
}

/* The text for what it is, with the messages of the driver that loads `fresh`. */
static tk_status keep_text(const tk_cuda_api *api, const char *text, const char *fresh, bool lines,
                           link_logs *logs, tk_cuda_linked *out) {
    CUmodule module;
    char scratch[32];
    tk_free(out->binary);
    out->binary = NULL;
    memset(logs, 0, sizeof *logs);
    link_options list = options_of(logs, lines);
    CUresult result = api->module_load(&module, fresh, list.count, list.names, list.values);
    if (result == CUDA_SUCCESS) {
        (void)api->module_unload(module);
        return keep_binary(text, strlen(text), out);
    }
    if (refuses(result)) return TK_OK;
    return tk_fail(tk_cuda_result_status(result), "compiling by the NVIDIA driver: %s",
                   tk_cuda_result_name(result, scratch));
}

static bool lacks_registers(const link_logs *logs) { return strstr(logs->said, "(C7504)") != NULL; }

/* A refusal says why in the other log; a result that says nothing is named. */
static tk_status keep_log(link_logs *logs, tk_cuda_linked *out) {
    logs->said[LOG_BYTES - 1] = logs->refused[LOG_BYTES - 1] = 0;
    const char *log = out->binary ? logs->said : logs->refused;
    out->log = tk_strdup(out->binary || *log ? log : "the NVIDIA driver takes no such PTX");
    return out->log ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a log");
}

/* ---- in the context of a device ---- */

static tk_status enter(const tk_cuda_api *api, CUdevice *device, CUcontext *before) {
    CUcontext context;
    char scratch[32];
    CUresult result = api->device_get(device, 0);
    if (result == CUDA_SUCCESS) result = api->context_get(before);
    if (result == CUDA_SUCCESS) result = api->context_retain(&context, *device);
    if (result == CUDA_SUCCESS) {
        result = api->context_set(context);
        if (result == CUDA_SUCCESS) return TK_OK;
        (void)api->context_release(*device);
    }
    return tk_fail(tk_cuda_result_status(result), "the context of cuda:0 to assemble in: %s",
                   tk_cuda_result_name(result, scratch));
}

static void leave(const tk_cuda_api *api, CUdevice device, CUcontext before) {
    (void)api->context_set(before);
    (void)api->context_release(device);
}

tk_status tk_cuda_link(const char *text, const char *arch, bool lines, tk_cuda_linked *out) {
    const tk_cuda_api *api;
    CUdevice device;
    CUcontext before;
    *out = (tk_cuda_linked){0};
    TK_TRY(tk_cuda_api_get(&api));
    if (tk_fork_epoch())
        return tk_fail(TK_CONTEXT_ERROR, "the NVIDIA driver does not assemble in a forked child");
    link_logs *logs = tk_calloc(1, sizeof *logs);
    char *fresh = new_text(text);
    tk_status status = logs && fresh ? enter(api, &device, &before)
                                     : tk_fail(TK_OUT_OF_MEMORY, "no memory to assemble in");
    if (status == TK_OK) {
        status = link_text(api, fresh, arch, lines, logs, out);
        if (status == TK_OK && lacks_registers(logs))
            status = keep_text(api, text, fresh, lines, logs, out);
        leave(api, device, before);
    }
    if (status == TK_OK) status = keep_log(logs, out);
    tk_free(fresh);
    tk_free(logs);
    if (status != TK_OK) tk_free(out->binary), out->binary = NULL;
    return status;
}

/* ---- which driver ---- */

tk_status tk_cuda_link_identity(char *text, size_t bytes) {
    const tk_cuda_api *api;
    Dl_info info = {0};
    struct stat of = {0};
    void *address;
    TK_TRY(tk_cuda_api_get(&api));
    memcpy(&address, &api->link_complete, sizeof address);
    if (dladdr(address, &info) && info.dli_fname) (void)stat(info.dli_fname, &of);
    snprintf(text, bytes, "driver of CUDA %d.%d, %lld bytes, changed at %lld.%09ld",
             api->version / 1000, api->version % 1000 / 10, (long long)of.st_size,
             (long long)of.st_mtim.tv_sec, of.st_mtim.tv_nsec);
    return TK_OK;
}
