/* CUDA copies, modules, launches, tensor maps and graphs on the stand-in: values, refusals, what
 * errors name, and that every failure of the driver is given back and leaves nothing behind. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/standin/fixture.h"

static tk_queue *queue;

static int open_all(void **state) {
    if (open_standin(state) != 0) return -1;
    queue = open_queue();
    return 0;
}

static int close_all(void **state) {
    fake.standin_gate(true);
    tk_cuda_queue_close(queue);
    return close_standin(state);
}

static tk_buffer *take(size_t bytes) {
    tk_buffer *buffer;
    assert_int_equal(tk_buffer_new_on(device, queue, bytes, &buffer), TK_OK);
    return buffer;
}

static void wait_all(void) {
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL), TK_OK);
}

/* ---- copies -----------------------------------------------------------------------------------
 */

static void fill_pattern(unsigned char *data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 7 + i / 4093 + seed);
}

static void test_there_and_back(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 4096, TK_CUDA_STAGING_BYTES, 3 * TK_CUDA_STAGING_BYTES + 77};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t bytes = sizes[s];
        unsigned char *data = malloc(bytes + 1), *back = calloc(1, bytes + 1);
        tk_buffer *x = take(bytes);
        fill_pattern(data, bytes, 1);
        assert_int_equal(tk_cuda_upload(queue, address_of(x), data, bytes), TK_OK);
        memset(data, 0, bytes); /* it has been read */
        assert_int_equal(tk_cuda_download(queue, back, address_of(x), bytes, NULL), TK_OK);
        fill_pattern(data, bytes, 1);
        assert_memory_equal(data, back, bytes);
        tk_buffer_release(x);
        free(data);
        free(back);
    }
}

static void test_copies_of_the_device(void **state) {
    (void)state;
    uint32_t data[3] = {1, 2, 3}, back[3] = {0};
    tk_buffer *x = take(sizeof data), *y = take(sizeof data);
    assert_int_equal(tk_device_copy(device, x->data, data, sizeof data, TK_COPY_TO_DEVICE), TK_OK);
    assert_int_equal(tk_device_copy(device, y->data, x->data, sizeof data, TK_COPY_ON_DEVICE),
                     TK_OK);
    assert_int_equal(tk_device_copy(device, back, y->data, sizeof data, TK_COPY_FROM_DEVICE),
                     TK_OK);
    assert_memory_equal(data, back, sizeof data);
    tk_buffer_release(x);
    tk_buffer_release(y);
}

static void test_pinned(void **state) {
    (void)state;
    void *memory;
    tk_buffer *x = take(64);
    assert_int_equal(tk_cuda_pinned_new(cuda, 64, &memory), TK_OK);
    memset(memory, 5, 64);
    assert_int_equal(tk_cuda_copy_async(queue, x->data, memory, 64, TK_COPY_TO_DEVICE), TK_OK);
    wait_all();
    memset(memory, 0, 64);
    assert_int_equal(tk_cuda_copy_async(queue, memory, x->data, 64, TK_COPY_FROM_DEVICE), TK_OK);
    wait_all();
    assert_int_equal(((char *)memory)[63], 5);
    tk_cuda_pinned_free(cuda, memory);
    fake.standin_fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(tk_cuda_pinned_new(cuda, 64, &memory), TK_OUT_OF_MEMORY);
    assert_null(memory);
    assert_error_says("64 bytes of pinned host memory");
    tk_buffer_release(x);
}

static void test_fills(void **state) {
    (void)state;
    unsigned char back[8];
    tk_buffer *x = take(8);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0x01020304, 4, 2), TK_OK);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0x0506, 2, 1), TK_OK);
    assert_int_equal(tk_cuda_fill(queue, address_of(x) + 4, 7, 1, 1), TK_OK);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 9, 4, 0), TK_OK);
    assert_int_equal(tk_cuda_download(queue, back, address_of(x), 8, NULL), TK_OK);
    const unsigned char expected[8] = {6, 5, 2, 1, 7, 3, 2, 1};
    assert_memory_equal(back, expected, 8);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 3, 1), TK_INVALID_ARGUMENT);
    tk_buffer_release(x);
}

/* All pinned blocks are in use by a stream that stands still; the next upload waits for one. */
static void *open_gate_soon(void *arg) {
    (void)arg;
    struct timespec time = {0, 20000000};
    nanosleep(&time, NULL);
    fake.standin_gate(true);
    return NULL;
}

static void test_uploads_wait_for_pinned_blocks(void **state) {
    (void)state;
    tk_buffer *x = take(4 * 20), *flag = take(4);
    uint32_t back[20];
    fake.standin_gate(false);
    assert_int_equal(tk_cuda_fill(queue, address_of(flag), 0, 4, 1), TK_OK);
    assert_int_equal(launch_one(queue, "slow", flag->data), TK_OK);
    pthread_t opener;
    pthread_create(&opener, NULL, open_gate_soon, NULL);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(tk_cuda_upload(queue, address_of(x) + 4 * i, &i, 4), TK_OK);
    assert_int_equal(tk_cuda_download(queue, back, address_of(x), sizeof back, NULL), TK_OK);
    for (uint32_t i = 0; i < 20; i++) assert_int_equal(back[i], i);
    assert_true(fake.standin_count("cuMemHostAlloc") <= 8);
    pthread_join(opener, NULL);
    tk_buffer_release(x);
    tk_buffer_release(flag);
}

/* ---- modules ----------------------------------------------------------------------------------
 */

static void test_modules_are_loaded_once(void **state) {
    (void)state;
    tk_cuda_module *first, *second, *third;
    static const char other[] = ".entry nothing() {}";
    size_t length = strlen(STANDIN_PTX);
    char *text = malloc(length); /* without the zero byte */
    for (size_t i = 0; i < length; i++) text[i] = STANDIN_PTX[i];
    assert_int_equal(tk_cuda_module_load(cuda, text, length, "a", &first), TK_OK);
    assert_int_equal(tk_cuda_module_load(cuda, text, length, "b", &second), TK_OK);
    assert_int_equal(tk_cuda_module_load(cuda, other, sizeof other - 1, "c", &third), TK_OK);
    free(text);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, third);
    assert_int_equal(fake.standin_count("cuModuleLoadDataEx"), 2);
    tk_cuda_function *function, *again;
    assert_int_equal(tk_cuda_module_function(first, "add_f32", &function), TK_OK);
    assert_int_equal(tk_cuda_module_function(first, "add_f32", &again), TK_OK);
    assert_ptr_equal(function, again);
    assert_int_equal(function->registers, 32);
    assert_int_equal(function->shared_bytes, 1024);
    assert_int_equal(function->max_threads, 512);
    tk_cuda_module_release(third);
    tk_cuda_module_release(first);
    assert_int_equal(tk_cuda_modules_count(cuda), 2);
    assert_int_equal(tk_cuda_modules_trim(cuda), TK_OK);
    assert_int_equal(tk_cuda_modules_count(cuda), 1);
    tk_cuda_module_release(second);
}

static void test_modules_that_do_not_load(void **state) {
    (void)state;
    tk_cuda_module *module;
    assert_int_equal(tk_cuda_module_load(cuda, "garbage", 7, "broken", &module), TK_FORMAT_ERROR);
    assert_null(module);
    assert_error_says(
        "loading broken for compute capability 9.0: ptxas: no entry: CUDA_ERROR_INVALID_PTX");
    fake.standin_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(tk_cuda_module_load(cuda, STANDIN_PTX, sizeof STANDIN_PTX, "x", &module),
                     TK_UNSUPPORTED);
    assert_int_equal(tk_cuda_modules_count(cuda), 0);
    assert_int_equal(tk_cuda_module_load(cuda, STANDIN_PTX, sizeof STANDIN_PTX, "x", &module),
                     TK_OK);
    tk_cuda_function *function;
    assert_int_equal(tk_cuda_module_function(module, "no_such", &function), TK_NOT_FOUND);
    assert_error_says("kernel no_such of module x");
    fake.standin_fail("cuFuncGetAttribute", 3, CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(tk_cuda_module_function(module, "add_f32", &function), TK_DEVICE_ERROR);
    assert_int_equal(tk_cuda_module_function(module, "add_f32", &function), TK_OK);
    tk_cuda_module_release(module);
}

/* ---- launches ---------------------------------------------------------------------------------
 */

typedef struct add_params {
    void *x, *y, *out;
    uint32_t n;
} add_params;

static tk_cuda_prepared prepare_add(void) {
    static const tk_cuda_packing packing = {4, 28, {{0, 8}, {8, 8}, {16, 8}, {24, 4}}};
    tk_cuda_launch launch = {kernel("add_f32"), {1, 1, 1}, {0},   {128, 1, 1}, 0,
                             &packing,          false,     false, "add"};
    tk_cuda_prepared prepared;
    assert_int_equal(tk_cuda_launch_prepare(&launch, &prepared), TK_OK);
    return prepared;
}

static void test_vector_add(void **state) {
    (void)state;
    enum { N = 1000 };
    static float x[N], y[N], out[N];
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = (float)(3 * i);
    tk_buffer *a = take(sizeof x), *b = take(sizeof y), *c = take(sizeof out);
    assert_int_equal(tk_cuda_upload(queue, address_of(a), x, sizeof x), TK_OK);
    assert_int_equal(tk_cuda_upload(queue, address_of(b), y, sizeof y), TK_OK);
    tk_cuda_packing packing = {0};
    for (int i = 0; i < 3; i++) assert_int_equal(tk_cuda_packing_add(&packing, 8, 8), TK_OK);
    assert_int_equal(tk_cuda_packing_add(&packing, 4, 4), TK_OK);
    assert_int_equal(packing.bytes, 28);
    uint32_t n = N;
    const void *values[] = {&a->data, &b->data, &c->data, &n};
    _Alignas(8) unsigned char params[28];
    tk_cuda_pack(&packing, values, params);
    tk_cuda_prepared prepared = prepare_add();
    const uint32_t grid[3] = {(N + 127) / 128, 1, 1};
    assert_int_equal(tk_cuda_launch_run(&prepared, queue, grid, params), TK_OK);
    assert_int_equal(tk_cuda_download(queue, out, address_of(c), sizeof out, NULL), TK_OK);
    for (int i = 0; i < N; i++) assert_true(out[i] == (float)(4 * i));
    tk_buffer_release(a);
    tk_buffer_release(b);
    tk_buffer_release(c);
}

static void test_packing(void **state) {
    (void)state;
    tk_cuda_packing packing = {0};
    assert_int_equal(tk_cuda_packing_add(&packing, 1, 1), TK_OK);
    assert_int_equal(tk_cuda_packing_add(&packing, 8, 8), TK_OK);
    assert_int_equal(tk_cuda_packing_add(&packing, 2, 2), TK_OK);
    assert_int_equal(tk_cuda_packing_add(&packing, 128, 64), TK_OK);
    assert_int_equal(packing.params[1].offset, 8);
    assert_int_equal(packing.params[2].offset, 16);
    assert_int_equal(packing.params[3].offset, 64);
    assert_int_equal(packing.bytes, 192);
    assert_int_equal(tk_cuda_packing_add(&packing, 4000, 1), TK_UNSUPPORTED);
    assert_error_says(
        "parameter 4 of 4000 bytes: a kernel takes at most 64 parameters and 4096 bytes");
    while (packing.count < TK_CUDA_MAX_PARAMS)
        assert_int_equal(tk_cuda_packing_add(&packing, 1, 1), TK_OK);
    assert_int_equal(tk_cuda_packing_add(&packing, 1, 1), TK_UNSUPPORTED);
}

static void refuse(tk_cuda_launch launch, tk_status status, const char *text) {
    tk_cuda_prepared prepared;
    assert_int_equal(tk_cuda_launch_prepare(&launch, &prepared), status);
    assert_error_says(text);
}

static void test_refused_shapes(void **state) {
    (void)state;
    tk_cuda_launch good = {
        kernel("nothing"), {4, 2, 1}, {0}, {64, 1, 1}, 0, NULL, false, false, NULL};
    tk_cuda_launch bad = good;
    bad.block[0] = 0;
    refuse(bad, TK_INVALID_ARGUMENT, "a block of 0 x 1 x 1 threads");
    bad.block[0] = 1024;
    refuse(bad, TK_UNSUPPORTED, "1024 threads a block, it can have 512 with its 32 registers");
    bad = good;
    bad.cluster[0] = 3, bad.cluster[1] = bad.cluster[2] = 1;
    refuse(bad, TK_INVALID_ARGUMENT,
           "a grid of 4 blocks along axis 0 is no multiple of its cluster's 3");
    bad.cluster[0] = 32;
    refuse(bad, TK_INVALID_ARGUMENT, "a cluster of 32 x 1 x 1 blocks, expected 1 to 16");
    bad = good;
    bad.dynamic_shared = 227 << 10;
    refuse(bad, TK_UNSUPPORTED,
           "233472 bytes of shared memory a block (1024 static, 232448 dynamic), Stand-in 0 has "
           "232448");
    bad = good;
    bad.grid[1] = 70000;
    refuse(bad, TK_INVALID_ARGUMENT, "a grid of 4 x 70000 x 1 blocks");
    cuda->info.clusters = cuda->info.cooperative = false;
    bad = good;
    bad.cluster[0] = bad.cluster[1] = bad.cluster[2] = 1;
    refuse(bad, TK_UNSUPPORTED, "Stand-in 0 has no clusters");
    bad = good;
    bad.cooperative = true;
    refuse(bad, TK_UNSUPPORTED, "Stand-in 0 has no cooperative launches");
}

static void test_what_the_driver_is_told(void **state) {
    (void)state;
    tk_cuda_launch launch = {
        kernel("nothing"), {16, 1, 1}, {16, 1, 1}, {64, 1, 1}, 100 << 10, NULL, true, true, NULL};
    tk_cuda_prepared prepared;
    assert_int_equal(tk_cuda_launch_prepare(&launch, &prepared), TK_OK);
    assert_int_equal(prepared.config.n_attrs, 3);
    assert_int_equal(prepared.attrs[0].id, CU_LAUNCH_CLUSTER_DIMENSION);
    assert_int_equal(prepared.attrs[0].value.cluster.x, 16);
    assert_int_equal(fake.standin_count("cuFuncSetAttribute"), 2);
    assert_int_equal(tk_cuda_launch_run(&prepared, queue, NULL, NULL), TK_OK);
    assert_int_equal(tk_cuda_launch_prepare(&launch, &prepared), TK_OK);
    assert_int_equal(fake.standin_count("cuFuncSetAttribute"), 3); /* shared memory once */
    fake.standin_fail("cuFuncSetAttribute", 1, CUDA_ERROR_INVALID_VALUE);
    launch.dynamic_shared = 200 << 10;
    assert_int_equal(tk_cuda_launch_prepare(&launch, &prepared), TK_INVALID_ARGUMENT);
    assert_error_says("kernel nothing: 204800 bytes of dynamic shared memory");
    wait_all();
}

static void test_runs_that_launch_nothing(void **state) {
    (void)state;
    tk_cuda_prepared prepared = prepare_add();
    const uint32_t none[3] = {0, 1, 1}, many[3] = {1, 65536, 1};
    assert_int_equal(tk_cuda_launch_run(&prepared, queue, none, NULL), TK_OK);
    assert_int_equal(tk_cuda_launch_run(&prepared, queue, many, NULL), TK_INVALID_ARGUMENT);
    assert_int_equal(fake.standin_count("cuLaunchKernelEx"), 0);
    assert_int_equal(tk_cuda_queue_ticket(queue), 0);
}

static void test_errors_name_the_launch(void **state) {
    (void)state;
    fake.standin_fail("cuLaunchKernelEx", 1, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_int_equal(launch_one(queue, "nothing", NULL), TK_UNSUPPORTED);
    assert_error_says("cuda:0: kernel nothing launched at here.c:7: "
                      "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    assert_int_equal(launch_one(queue, "nothing", NULL), TK_OK);
    wait_all();
}

static void test_debug_mode_finds_the_kernel(void **state) {
    (void)state;
    atomic_store(&cuda->debug, true);
    tk_cuda_prepared add = prepare_add();
    assert_int_equal(launch_one(queue, "nothing", NULL), TK_OK);
    assert_int_equal(launch_one(queue, "assert_fails", NULL), TK_DEVICE_ERROR);
    assert_error_says(
        "cuda:0 is lost for the rest of this process: kernel assert_fails launched at "
        "here.c:7, while it ran: CUDA_ERROR_ASSERT");
    assert_int_equal(tk_cuda_launch_run(&add, queue, NULL, NULL), TK_DEVICE_ERROR);
    assert_error_says("kernel assert_fails launched at here.c:7, while it ran");
    assert_null(strstr(tk_error_message(), "not known to have ended"));
}

static void test_many_suspects(void **state) {
    (void)state;
    fake.standin_gate(false);
    tk_buffer *x = take(4);
    assert_int_equal(launch_one(queue, "slow", x->data), TK_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(launch_one(queue, "nothing", NULL), TK_OK);
    fake.standin_fail("cuEventRecord", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL), TK_DEVICE_ERROR);
    assert_error_says(
        "not known to have ended: slow launched at here.c:7 (stream 1), nothing launched");
    assert_error_says("and others; TIKI_CUDA_DEBUG=1 finds which");
    tk_buffer_release(x);
}

/* ---- tensor maps ------------------------------------------------------------------------------
 */

static void test_tensor_maps(void **state) {
    (void)state;
    tk_buffer *x = take(4096);
    tk_cuda_tensor_rule rule = {.type = 7,
                                .rank = 2,
                                .base = address_of(x),
                                .dims = {64, 16},
                                .strides = {256},
                                .box = {32, 8},
                                .element_strides = {1, 1}};
    tk_cuda_tensor_binding binding = {0};
    for (int i = 0; i < 3; i++) assert_int_equal(tk_cuda_tensor_bind(cuda, &rule, &binding), TK_OK);
    assert_int_equal(fake.standin_count("cuTensorMapEncodeTiled"), 1);
    assert_int_equal(binding.map.words[3], 64);
    rule.dims[0] = 128;
    assert_int_equal(tk_cuda_tensor_bind(cuda, &rule, &binding), TK_OK);
    assert_int_equal(fake.standin_count("cuTensorMapEncodeTiled"), 2);
    assert_int_equal(binding.map.words[3], 128);
    struct {
        uint64_t *field;
        uint64_t value;
        const char *text;
    } bad[] = {{&rule.base, address_of(x) + 4, "is no multiple of 16"},
               {&rule.dims[1], 0, "axis 1 has length 0"},
               {&rule.strides[0], 8, "axis 1 has a stride of 8 bytes"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t good = *bad[i].field;
        *bad[i].field = bad[i].value;
        assert_int_equal(tk_cuda_tensor_bind(cuda, &rule, &binding), TK_INVALID_ARGUMENT);
        assert_error_says(bad[i].text);
        *bad[i].field = good;
    }
    rule.box[0] = 512;
    assert_int_equal(tk_cuda_tensor_bind(cuda, &rule, &binding), TK_INVALID_ARGUMENT);
    assert_error_says("axis 0 has a box of 512, expected 1 to 256");
    rule.box[0] = 32, rule.element_strides[1] = 0;
    assert_int_equal(tk_cuda_tensor_bind(cuda, &rule, &binding), TK_INVALID_ARGUMENT);
    rule.element_strides[1] = 1, rule.rank = 6;
    assert_int_equal(tk_cuda_tensor_bind(cuda, &rule, &binding), TK_INVALID_ARGUMENT);
    assert_false(binding.encoded);
    tk_buffer_release(x);
}

/* ---- graphs -----------------------------------------------------------------------------------
 */

static void test_graph(void **state) {
    (void)state;
    tk_buffer *x = take(4);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 4, 1), TK_OK);
    tk_cuda_function *slow = kernel("slow");
    tk_cuda_graph *graph, *second;
    assert_int_equal(tk_cuda_capture_begin(queue, &graph), TK_OK);
    assert_int_equal(tk_cuda_capture_begin(queue, &second), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cuda_graph_launch(graph, queue), TK_INVALID_ARGUMENT);
    for (int i = 0; i < 3; i++) assert_int_equal(launch_one(queue, "slow", x->data), TK_OK);
    assert_int_equal(tk_cuda_graph_hold(graph, x), TK_OK);
    assert_int_equal(tk_cuda_graph_hold_module(graph, slow->module), TK_OK);

    float value = -1;
    tk_queue *other = open_queue();
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL),
                     TK_INVALID_ARGUMENT);
    assert_error_says("is being captured into a graph");
    assert_int_equal(tk_cuda_queue_follow(other, tk_cuda_queue_mark(queue)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cuda_upload(queue, address_of(x), &value, 4), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cuda_download(queue, &value, address_of(x), 4, NULL), TK_INVALID_ARGUMENT);
    assert_false(tk_cuda_queue_passed(queue, tk_cuda_queue_ticket(queue), true));

    assert_int_equal(tk_cuda_capture_end(graph), TK_OK);
    assert_int_equal(tk_cuda_capture_end(graph), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cuda_graph_size(graph), 3);
    void *block = x->data;
    tk_buffer_release(x);
    fake.standin_gate(false);
    for (int i = 0; i < 2; i++) assert_int_equal(tk_cuda_graph_launch(graph, queue), TK_OK);
    tk_buffer *elsewhere = take(4);
    assert_ptr_not_equal(elsewhere->data, block);
    fake.standin_gate(true);
    assert_int_equal(tk_cuda_download(queue, &value, (CUdeviceptr)(uintptr_t)block, 4, NULL),
                     TK_OK);
    assert_true(value == 6);
    tk_cuda_graph_release(graph);
    tk_cuda_graph_release(NULL);
    tk_buffer_release(elsewhere);
    tk_cuda_queue_close(other);
}

static void test_graphs_that_fail(void **state) {
    (void)state;
    tk_cuda_graph *graph;
    fake.standin_fail("cuStreamBeginCapture_v2", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(tk_cuda_capture_begin(queue, &graph), TK_UNSUPPORTED);
    assert_null(graph);
    assert_int_equal(tk_cuda_capture_begin(queue, &graph), TK_OK);
    tk_cuda_graph_release(graph); /* ends the recording */
    const char *const steps[] = {"cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                                 "cuGraphGetNodes"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(tk_cuda_capture_begin(queue, &graph), TK_OK);
        assert_int_equal(launch_one(queue, "nothing", NULL), TK_OK);
        fake.standin_fail(steps[i], 1, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_int_equal(tk_cuda_capture_end(graph), TK_DEVICE_ERROR);
        assert_int_equal(tk_cuda_graph_launch(graph, queue), TK_INVALID_ARGUMENT);
        tk_cuda_graph_release(graph);
    }
    assert_int_equal(tk_cuda_capture_begin(queue, &graph), TK_OK);
    assert_int_equal(tk_cuda_capture_end(graph), TK_OK);
    fake.standin_fail("cuGraphLaunch", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(tk_cuda_graph_launch(graph, queue), TK_OUT_OF_MEMORY);
    assert_error_says("launching a graph of 0 works in stream 1");
    tk_cuda_graph_release(graph);
}

/* ---- every call of the driver fails once ------------------------------------------------------
 */

/* One round of all there is; gives the first error. */
static tk_status use_everything(tk_queue *one) {
    uint32_t data[16] = {1}, back[16];
    tk_buffer *x;
    TK_TRY(tk_buffer_new_on(device, one, sizeof data, &x));
    tk_cuda_module *module = NULL;
    tk_cuda_function *function;
    tk_cuda_prepared prepared;
    tk_cuda_graph *graph = NULL;
    tk_status status = tk_cuda_upload(one, address_of(x), data, sizeof data);
    if (status == TK_OK)
        status = tk_cuda_module_load(cuda, STANDIN_PTX, sizeof STANDIN_PTX, "m", &module);
    if (status == TK_OK) status = tk_cuda_module_function(module, "nothing", &function);
    if (status == TK_OK) {
        tk_cuda_launch launch = {function, {1, 1, 1}, {0},   {1, 1, 1}, 60 << 10,
                                 NULL,     false,     false, NULL};
        status = tk_cuda_launch_prepare(&launch, &prepared);
    }
    if (status == TK_OK) status = tk_cuda_capture_begin(one, &graph);
    if (status == TK_OK) status = tk_cuda_launch_run(&prepared, one, NULL, NULL);
    if (status == TK_OK) status = tk_cuda_capture_end(graph);
    if (status == TK_OK) status = tk_cuda_graph_launch(graph, one);
    tk_cuda_graph_release(graph);
    if (status == TK_OK) status = tk_cuda_fill(one, address_of(x), 7, 4, 16);
    if (status == TK_OK) status = tk_cuda_download(one, back, address_of(x), sizeof back, NULL);
    if (status == TK_OK && back[15] != 7) status = TK_INTERNAL;
    tk_cuda_module_release(module);
    tk_buffer_release(x);
    return status;
}

/* Each function fails at its n-th call: the round gives an error or does without it, nothing hangs
 * or leaks (the teardown counts), and the next round works unless the device was lost. */
static void fail_everywhere(CUresult result) {
    static const char *const functions[] = {
#define TK_CUDA_FUNCTION(field, symbol, parameters) #symbol,
#include "runtime/cuda_functions.def"
#undef TK_CUDA_FUNCTION
    };
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        for (int nth = 1; nth <= 3; nth++) {
            tk_device_clear_cache(device);
            assert_int_equal(tk_cuda_modules_trim(cuda), TK_OK);
            fake.standin_fail(functions[f], nth, result);
            tk_status status = use_everything(queue);
            bool lost = atomic_load(&cuda->lost);
            if (lost) assert_int_not_equal(status, TK_INTERNAL);
            if (lost) {
                void *state = NULL;
                assert_int_equal(close_all(&state), 0);
                assert_int_equal(open_all(&state), 0);
            } else {
                fake.standin_reset();
                assert_int_equal(use_everything(queue), TK_OK);
            }
        }
}

static void test_failures_everywhere(void **state) {
    (void)state;
    fail_everywhere(CUDA_ERROR_INVALID_HANDLE);
}

static void test_losses_everywhere(void **state) {
    (void)state;
    fail_everywhere(CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(test_there_and_back),
        TEST(test_copies_of_the_device),
        TEST(test_pinned),
        TEST(test_fills),
        TEST(test_uploads_wait_for_pinned_blocks),
        TEST(test_modules_are_loaded_once),
        TEST(test_modules_that_do_not_load),
        TEST(test_vector_add),
        TEST(test_packing),
        TEST(test_refused_shapes),
        TEST(test_what_the_driver_is_told),
        TEST(test_runs_that_launch_nothing),
        TEST(test_errors_name_the_launch),
        TEST(test_debug_mode_finds_the_kernel),
        TEST(test_many_suspects),
        TEST(test_tensor_maps),
        TEST(test_graph),
        TEST(test_graphs_that_fail),
        TEST(test_failures_everywhere),
        TEST(test_losses_everywhere),
    };
    return cmocka_run_group_tests(tests, load_standin, NULL);
}
