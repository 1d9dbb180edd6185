/* A stand-in for NVIDIA's driver: the same functions on host memory, for tests without a card.
 *
 * Streams are threads that run their works in order, copies included, so a sanitizer sees memory
 * that is reused or freed too early. Every call is counted, may be told to fail, and checks its
 * handles by using them. A lost context refuses everything, as the real one does. What the tests
 * can do is in standin.h.
 *
 * One lock and one condition for all: clear before fast. */
#include "runtime/standin/standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
#define TK_CUDA_FUNCTION(field, symbol, parameters) EXPORT CUresult symbol parameters;
#include "runtime/cuda_functions.def"
#undef TK_CUDA_FUNCTION
#define CONTROL(name, type, parameters) EXPORT type name parameters;
STANDIN_CONTROLS(CONTROL)
#undef CONTROL

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* ---- what is asked of the stand-in ------------------------------------------------------------
 */

#define MOST_FAILURES 8
#define MOST_KERNELS 16
#define MOST_NAMES 80

static struct {
    const char *function;
    int left; /* calls until it fails */
    CUresult result;
} failures[MOST_FAILURES];

static struct {
    const char *function;
    int calls;
} counts[MOST_NAMES];

/* Kernels that a test computes: the bytes of each parameter, as digits. */
static struct {
    const char *name, *sizes;
    void (*run)(const void *const *params);
} kernels[MOST_KERNELS];

static CUresult lost = CUDA_SUCCESS;
static int touching; /* works that are at memory now */
static bool gate = true;
static int n_devices = 1, version = 13000, live;
static size_t memory_of_device = (size_t)1 << 30, memory_used;

static int *count_of(const char *function) {
    int i = 0;
    while (i < MOST_NAMES - 1 && counts[i].function && strcmp(counts[i].function, function) != 0)
        i++;
    counts[i].function = function;
    return &counts[i].calls;
}

/* With the lock. */
static void lose(CUresult result) {
    if (lost == CUDA_SUCCESS) lost = result;
    pthread_cond_broadcast(&changed);
}

/* With the lock: counts the call and gives how it must fail. */
static CUresult begin_locked(const char *function) {
    ++*count_of(function);
    for (int i = 0; i < MOST_FAILURES; i++)
        if (failures[i].function && strcmp(failures[i].function, function) == 0 &&
            --failures[i].left == 0) {
            CUresult result = failures[i].result;
            failures[i].function = NULL;
            if (result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_ASSERT) lose(result);
            return result;
        }
    return lost;
}

static CUresult begin(const char *function) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(function);
    pthread_mutex_unlock(&lock);
    return result;
}

#define BEGIN()                                                                                    \
    do {                                                                                           \
        CUresult begun = begin(__func__);                                                          \
        if (begun != CUDA_SUCCESS) return begun;                                                   \
    } while (0)

static void count_live(int by) {
    pthread_mutex_lock(&lock);
    live += by;
    pthread_mutex_unlock(&lock);
}

void standin_reset(void) {
    pthread_mutex_lock(&lock);
    memset(failures, 0, sizeof failures);
    memset(counts, 0, sizeof counts);
    memset(kernels, 0, sizeof kernels);
    lost = CUDA_SUCCESS;
    gate = true;
    n_devices = 1;
    version = 13000;
    memory_of_device = (size_t)1 << 30;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void standin_fail(const char *function, int nth, CUresult result) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST_FAILURES - 1 && failures[i].function) i++;
    failures[i].function = function;
    failures[i].left = nth;
    failures[i].result = result;
    pthread_mutex_unlock(&lock);
}

int standin_count(const char *function) {
    pthread_mutex_lock(&lock);
    int calls = *count_of(function);
    pthread_mutex_unlock(&lock);
    return calls;
}

/* `name` and `sizes` are static: "884" has two parameters of 8 bytes and one of 4. */
void standin_kernel(const char *name, const char *sizes, void (*run)(const void *const *params)) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST_KERNELS - 1 && kernels[i].name) i++;
    kernels[i].name = name;
    kernels[i].sizes = sizes;
    kernels[i].run = run;
    pthread_mutex_unlock(&lock);
}

void standin_gate(bool open) {
    pthread_mutex_lock(&lock);
    gate = open;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int standin_live(void) {
    pthread_mutex_lock(&lock);
    int now = live;
    pthread_mutex_unlock(&lock);
    return now;
}

void standin_devices(int count) { n_devices = count; }
void standin_version(int number) { version = number; }
void standin_memory(size_t bytes) { memory_of_device = bytes; }

/* ---- works ------------------------------------------------------------------------------------
 */

typedef enum work_kind { COPY, FILL, KERNEL, CALL, RECORD, WAIT } work_kind;

#define MOST_PARAM_BYTES 128

typedef struct work {
    work_kind kind;
    void *to;
    const void *from;
    size_t bytes, width;
    uint32_t pattern;
    CUfunction function;
    unsigned char params[MOST_PARAM_BYTES];
    CUhostFn call;
    void *arg;
    CUevent event;
    uint64_t moment;
    struct work *next;
} work;

struct CUevent_st {
    int references;
    uint64_t recorded, done;
};

struct CUgraph_st {
    work *first, **last;
    size_t count;
};

struct CUgraphExec_st {
    work *first;
};

struct CUstream_st {
    pthread_t thread;
    work *first, **last;
    bool busy, ending;
    CUgraph capture;
};

struct CUfunc_st {
    char name[64];
    int dynamic_shared, threads;
};

struct CUmod_st {
    int count;
    bool binary; /* has whatever entry is asked for; its launches do nothing */
    struct CUfunc_st functions[16];
};

static void release_event(CUevent event) { /* with the lock */
    if (event && --event->references == 0) free(event);
}

static void *pointer_param(const work *item, int index) {
    void *value;
    memcpy(&value, item->params + 8 * index, sizeof value);
    return value;
}

static void run_add(const work *item) {
    const float *x = pointer_param(item, 0), *y = pointer_param(item, 1);
    float *out = pointer_param(item, 2);
    uint32_t n;
    memcpy(&n, item->params + 24, sizeof n);
    for (uint32_t i = 0; i < n; i++) out[i] = x[i] + y[i];
}

static void run_slow(const work *item) {
    pthread_mutex_lock(&lock);
    while (!gate && lost == CUDA_SUCCESS) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    *(float *)pointer_param(item, 0) += 1;
}

static int find_kernel(const char *name) {
    for (int i = 0; i < MOST_KERNELS; i++)
        if (kernels[i].name && strcmp(kernels[i].name, name) == 0) return i;
    return -1;
}

static void run_registered(const work *item, int number) {
    const void *params[MOST_PARAM_BYTES];
    size_t offset = 0;
    for (int i = 0; kernels[number].sizes[i]; i++) {
        params[i] = item->params + offset;
        offset += 8;
    }
    kernels[number].run(params);
}

static void run_kernel(const work *item) {
    const char *name = item->function->name;
    int registered = find_kernel(name);
    if (registered >= 0) run_registered(item, registered);
    if (strcmp(name, "add_f32") == 0) run_add(item);
    if (strcmp(name, "slow") == 0) run_slow(item);
    pthread_mutex_lock(&lock);
    if (strcmp(name, "trap") == 0) lose(CUDA_ERROR_ILLEGAL_ADDRESS);
    if (strcmp(name, "assert_fails") == 0) lose(CUDA_ERROR_ASSERT);
    pthread_mutex_unlock(&lock);
}

static void run_fill(const work *item) {
    for (size_t i = 0; i < item->bytes; i++)
        ((unsigned char *)item->to)[i] = (unsigned char)(item->pattern >> i % item->width * 8);
}

/* Without the lock. */
static void run_memory_work(const work *item) {
    if (item->kind == COPY && item->bytes) memcpy(item->to, item->from, item->bytes);
    if (item->kind == FILL) run_fill(item);
    if (item->kind == KERNEL) run_kernel(item);
    if (item->kind == CALL) item->call(item->arg);
}

/* With the lock. */
static void run_work(work *item) {
    if (item->kind == RECORD) {
        if (item->event->done < item->moment) item->event->done = item->moment;
    } else if (item->kind == WAIT) {
        while (item->event->done < item->moment && lost == CUDA_SUCCESS)
            pthread_cond_wait(&changed, &lock);
    } else if (lost == CUDA_SUCCESS) {
        touching += item->kind != CALL;
        pthread_mutex_unlock(&lock);
        run_memory_work(item);
        pthread_mutex_lock(&lock);
        touching -= item->kind != CALL;
    }
    release_event(item->event);
    pthread_cond_broadcast(&changed);
}

static void *stream_main(void *arg) {
    CUstream stream = arg;
    pthread_mutex_lock(&lock);
    while (stream->first || !stream->ending) {
        work *item = stream->first;
        if (!item) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        stream->first = item->next;
        if (!stream->first) stream->last = &stream->first;
        stream->busy = true;
        run_work(item);
        stream->busy = false;
        free(item);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* With the lock: into the stream, or into the graph that it is captured for. */
static CUresult put(CUstream stream, const work *item) {
    work *copy = malloc(sizeof *copy);
    *copy = *item;
    copy->next = NULL;
    if (copy->event) copy->event->references++;
    work ***last = stream->capture ? &stream->capture->last : &stream->last;
    **last = copy;
    *last = &copy->next;
    if (stream->capture) stream->capture->count++;
    pthread_cond_broadcast(&changed);
    return CUDA_SUCCESS;
}

static CUresult submit(const char *function, CUstream stream, const work *item) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(function);
    if (result == CUDA_SUCCESS) result = put(stream, item);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- the driver: start, devices, contexts -----------------------------------------------------
 */

CUresult cuInit(unsigned flags) {
    BEGIN();
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *out) {
    BEGIN();
    *out = version;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char **name) {
    (void)result;
    *name = "CUDA_STANDIN";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char **text) {
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
        *text = "an illegal memory access was encountered";
    else
        *text = "a text of the stand-in";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    BEGIN();
    *count = n_devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    BEGIN();
    *device = ordinal;
    return ordinal < n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    BEGIN();
    snprintf(name, (size_t)length, "Stand-in %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    (void)device;
    BEGIN();
    *bytes = memory_of_device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    (void)device;
    BEGIN();
    switch (attribute) {
    case CU_DEVICE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_DEVICE_MULTIPROCESSOR_COUNT:
        *value = 4;
        break;
    case CU_DEVICE_L2_CACHE_SIZE:
        *value = 1 << 20;
        break;
    case CU_DEVICE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_MAX_SHARED_PER_BLOCK_OPTIN:
        *value = 227 << 10;
        break;
    case CU_DEVICE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_CLUSTER_LAUNCH:
        *value = 1;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

static int the_context;
static _Thread_local CUcontext current;

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    (void)device;
    BEGIN();
    *context = (CUcontext)&the_context;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    (void)device;
    BEGIN();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    BEGIN();
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    BEGIN();
    *context = current;
    return CUDA_SUCCESS;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

/* A block remembers its size in front of it. */
#define HEAD 256

static CUresult take(const char *function, size_t bytes, void **out) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(function);
    if (result == CUDA_SUCCESS && bytes > memory_of_device - memory_used)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        char *block = aligned_alloc(HEAD, (bytes + 2 * HEAD - 1) / HEAD * HEAD);
        memcpy(block, &bytes, sizeof bytes);
        memset(block + HEAD, 0xcd, bytes);
        *out = block + HEAD;
        memory_used += bytes;
        live++;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* A device that works would let go of memory under a work, which a sanitizer then sees; a lost one
 * has stopped its works before anybody hears of it. */
static CUresult give(const char *function, void *memory) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(function);
    while (lost != CUDA_SUCCESS && touching > 0) pthread_cond_wait(&changed, &lock);
    size_t bytes;
    memcpy(&bytes, (char *)memory - HEAD, sizeof bytes);
    free((char *)memory - HEAD);
    memory_used -= bytes;
    live--;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    BEGIN();
    pthread_mutex_lock(&lock);
    *free_bytes = memory_of_device - memory_used;
    *total_bytes = memory_of_device;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
    void *block = NULL;
    CUresult result = take(__func__, bytes, &block);
    *memory = (CUdeviceptr)(uintptr_t)block;
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr memory) { return give(__func__, (void *)(uintptr_t)memory); }

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    return take(__func__, bytes, memory);
}

CUresult cuMemFreeHost(void *memory) { return give(__func__, memory); }

static CUresult copy(const char *function, void *to, const void *from, size_t bytes,
                     CUstream stream) {
    return submit(function, stream, &(work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return copy(__func__, (void *)(uintptr_t)to, from, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(__func__, to, (void *)(uintptr_t)from, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(__func__, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream);
}

static CUresult fill(const char *function, CUdeviceptr to, uint32_t pattern, size_t width,
                     size_t count, CUstream stream) {
    return submit(function, stream,
                  &(work){.kind = FILL,
                          .to = (void *)(uintptr_t)to,
                          .bytes = width * count,
                          .width = width,
                          .pattern = pattern});
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(__func__, to, value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fill(__func__, to, value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return fill(__func__, to, value, 4, count, stream);
}

/* ---- streams and events -----------------------------------------------------------------------
 */

/* All streams, for waiting for the context. */
#define MOST_STREAMS 64
static CUstream streams[MOST_STREAMS];

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    (void)flags;
    BEGIN();
    CUstream stream = calloc(1, sizeof *stream);
    stream->last = &stream->first;
    pthread_create(&stream->thread, NULL, stream_main, stream);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST_STREAMS - 1 && streams[i]) i++;
    streams[i] = stream;
    live++;
    pthread_mutex_unlock(&lock);
    *out = stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    stream->ending = true;
    for (int i = 0; i < MOST_STREAMS; i++)
        if (streams[i] == stream) streams[i] = NULL;
    live--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    return result;
}

/* With the lock. */
static void drain(CUstream stream) {
    while (stream->first || stream->busy) pthread_cond_wait(&changed, &lock);
}

CUresult cuStreamSynchronize(CUstream stream) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    if (result == CUDA_SUCCESS) drain(stream);
    if (result == CUDA_SUCCESS) result = lost;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuCtxSynchronize(void) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    for (int i = 0; i < MOST_STREAMS; i++)
        if (streams[i]) drain(streams[i]);
    if (result == CUDA_SUCCESS) result = lost;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
    (void)flags;
    BEGIN();
    CUevent event = calloc(1, sizeof *event);
    event->references = 1;
    count_live(1);
    *out = event;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    release_event(event);
    live--;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    if (result == CUDA_SUCCESS)
        put(stream, &(work){.kind = RECORD, .event = event, .moment = ++event->recorded});
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    if (result == CUDA_SUCCESS)
        put(stream, &(work){.kind = WAIT, .event = event, .moment = event->recorded});
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventQuery(CUevent event) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    if (result == CUDA_SUCCESS && event->done < event->recorded) result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventSynchronize(CUevent event) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    uint64_t moment = event->recorded;
    while (result == CUDA_SUCCESS && event->done < moment && lost == CUDA_SUCCESS)
        pthread_cond_wait(&changed, &lock);
    if (result == CUDA_SUCCESS) result = lost;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin_event, CUevent end_event) {
    (void)begin_event;
    (void)end_event;
    BEGIN();
    *milliseconds = 1;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg) {
    return submit(__func__, stream, &(work){.kind = CALL, .call = function, .arg = arg});
}

/* ---- modules and launches ---------------------------------------------------------------------
 */

static void read_entries(CUmodule module, const char *text) {
    static const char mark[] = ".entry ";
    for (const char *at = strstr(text, mark); at && module->count < 16; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        size_t length = strcspn(at, "( \n");
        CUfunction function = &module->functions[module->count++];
        snprintf(function->name, sizeof function->name, "%.*s", (int)length, at);
        function->dynamic_shared = 48 << 10;
        function->threads = 512;
    }
}

/* The texts that were loaded and linked last are known, and compiled without a message. */
static bool is_known(const char *text, bool linked) {
    static _Atomic uint64_t latest[2];
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return atomic_exchange(&latest[linked], hash) == hash;
}

static void say_registers(const char *text, unsigned n_options, const int *options, void **values) {
    for (unsigned i = 0; i < n_options; i++)
        if (options[i] == CU_JIT_INFO_LOG_BUFFER && !is_known(text, false))
            strcpy(values[i], "info : Used 40 registers");
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n_options, int *options,
                            void **values) {
    BEGIN();
    CUmodule module = calloc(1, sizeof *module);
    read_entries(module, image);
    module->binary = module->count == 0 && memcmp(image, "\177ELF", 4) == 0;
    if (module->count == 0 && !module->binary) {
        for (unsigned i = 0; i < n_options; i++)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], "ptxas: no entry\n");
        free(module);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (module->count) say_registers(image, n_options, options, values);
    count_live(1);
    *out = module;
    return CUDA_SUCCESS;
}

/* The binary is an ELF mark and the text; "refuse" in the text is no PTX. */
struct CUlinkState_st {
    char *binary;
    size_t bytes;
    int target;
    bool lines;
    char *said, *refused;
};

CUresult cuLinkCreate_v2(unsigned n_options, int *options, void **values, CUlinkState *out) {
    BEGIN();
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    CUlinkState state = calloc(1, sizeof *state);
    for (unsigned i = 0; i < n_options; i++) {
        if (options[i] == CU_JIT_INFO_LOG_BUFFER) state->said = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) state->refused = values[i];
        if (options[i] == CU_JIT_TARGET) state->target = (int)(uintptr_t)values[i];
        if (options[i] == CU_JIT_GENERATE_LINE_INFO) state->lines = values[i] != NULL;
    }
    count_live(1);
    *out = state;
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, int kind, void *data, size_t bytes, const char *name,
                          unsigned n_options, int *options, void **values) {
    (void)name, (void)n_options, (void)options, (void)values;
    BEGIN();
    if (kind != CU_JIT_INPUT_PTX || ((const char *)data)[bytes - 1])
        return CUDA_ERROR_INVALID_VALUE;
    if (strstr(data, "refuse")) {
        strcpy(state->refused, "ptxas kernel.ptx, line 1; error : no such thing");
        return CUDA_ERROR_INVALID_PTX;
    }
    state->binary = malloc(bytes + 4);
    memcpy(state->binary, "\177ELF", 4);
    memcpy(state->binary + 4, data, bytes);
    state->bytes = bytes + 3;
    sprintf(state->said, "info : %s 12 registers, used 1 barriers, target %x%s%s",
            is_known(data, true) ? "used" : "Used", state->target, state->lines ? ", lines" : "",
            strstr(data, "setmaxnreg") ? " (C7504) ignored" : "");
    return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **binary, size_t *bytes) {
    BEGIN();
    *binary = state->binary;
    *bytes = state->bytes;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    CUresult result = begin(__func__);
    free(state->binary);
    free(state);
    count_live(-1);
    return result;
}

CUresult cuModuleUnload(CUmodule module) {
    CUresult result = begin(__func__);
    free(module);
    count_live(-1);
    return result;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    BEGIN();
    for (int i = 0; i < module->count; i++)
        if (strcmp(module->functions[i].name, name) == 0) {
            *function = &module->functions[i];
            return CUDA_SUCCESS;
        }
    if (!module->binary || module->count == 16) return CUDA_ERROR_NOT_FOUND;
    *function = &module->functions[module->count++];
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    (*function)->dynamic_shared = 227 << 10;
    (*function)->threads = 1024;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    BEGIN();
    *value = 0;
    if (attribute == CU_FUNC_MAX_THREADS_PER_BLOCK) *value = function->threads;
    if (attribute == CU_FUNC_NUM_REGS) *value = 32;
    if (attribute == CU_FUNC_SHARED_SIZE_BYTES) *value = 1024;
    if (attribute == CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES) *value = function->dynamic_shared;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    BEGIN();
    if (attribute == CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES) function->dynamic_shared = value;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block,
                                                     size_t shared_bytes) {
    (void)function;
    (void)block;
    (void)shared_bytes;
    BEGIN();
    *blocks = 1;
    return CUDA_SUCCESS;
}

static CUresult check_config(const CUlaunchConfig *config, CUfunction function) {
    unsigned threads = config->block_x * config->block_y * config->block_z;
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    if (!config->grid_x || !config->grid_y || !config->grid_z || !threads)
        return CUDA_ERROR_INVALID_VALUE;
    if ((int)threads > function->threads || (int)config->shared_bytes > function->dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Copies the parameters that a kernel is known to have. */
static void read_params(CUfunction function, void **params, unsigned char *to) {
    bool add = strcmp(function->name, "add_f32") == 0, slow = strcmp(function->name, "slow") == 0;
    int registered = find_kernel(function->name);
    for (int i = 0; registered >= 0 && kernels[registered].sizes[i]; i++)
        memcpy(to + 8 * i, params[i], (size_t)(kernels[registered].sizes[i] - '0'));
    if (registered >= 0) return;
    for (int i = 0; i < (add ? 3 : slow ? 1 : 0); i++) memcpy(to + 8 * i, params[i], 8);
    if (add) memcpy(to + 24, params[3], 4);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra) {
    work item = {.kind = KERNEL, .function = function};
    CUresult result = extra ? CUDA_ERROR_INVALID_VALUE : check_config(config, function);
    if (result != CUDA_SUCCESS) return result;
    read_params(function, params, item.params);
    return submit(__func__, config->stream, &item);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, unsigned rank, void *base,
                                const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *element_strides, int interleave, int swizzle,
                                int promotion, int fill_kind) {
    BEGIN();
    const uint64_t words[] = {(uint64_t)type,
                              rank,
                              (uint64_t)(uintptr_t)base,
                              dims[0],
                              strides[0],
                              box[0],
                              element_strides[0],
                              (uint64_t)interleave,
                              (uint64_t)swizzle,
                              (uint64_t)promotion,
                              (uint64_t)fill_kind};
    memset(map, 0, sizeof *map);
    memcpy(map->words, words, sizeof words);
    return CUDA_SUCCESS;
}

/* ---- graphs -----------------------------------------------------------------------------------
 */

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    (void)mode;
    BEGIN();
    CUgraph graph = calloc(1, sizeof *graph);
    graph->last = &graph->first;
    pthread_mutex_lock(&lock);
    stream->capture = graph;
    live++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void free_works(work *first) {
    while (first) {
        work *next = first->next;
        release_event(first->event);
        free(first);
        first = next;
    }
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    *graph = stream->capture;
    stream->capture = NULL;
    if (result != CUDA_SUCCESS) {
        free_works((*graph)->first);
        free(*graph);
        *graph = NULL;
        live--;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuGraphGetNodes(CUgraph graph, void **nodes, size_t *count) {
    (void)nodes;
    BEGIN();
    *count = graph->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    (void)flags;
    BEGIN();
    CUgraphExec made = calloc(1, sizeof *made);
    work **last = &made->first;
    pthread_mutex_lock(&lock);
    for (const work *at = graph->first; at; at = at->next) {
        *last = malloc(sizeof **last);
        **last = *at;
        (*last)->next = NULL;
        if (at->event) at->event->references++;
        last = &(*last)->next;
    }
    live++;
    pthread_mutex_unlock(&lock);
    *exec = made;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    for (const work *at = exec->first; at && result == CUDA_SUCCESS; at = at->next) put(stream, at);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    free_works(exec->first);
    live--;
    pthread_mutex_unlock(&lock);
    free(exec);
    return result;
}

CUresult cuGraphDestroy(CUgraph graph) {
    pthread_mutex_lock(&lock);
    CUresult result = begin_locked(__func__);
    free_works(graph->first);
    live--;
    pthread_mutex_unlock(&lock);
    free(graph);
    return result;
}
