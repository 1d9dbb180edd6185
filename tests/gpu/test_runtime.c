/* The CUDA runtime on a card: what the stand-in cannot show. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/card.h"

static tk_queue *queue;

static void ok(tk_status status) {
    if (status != TK_OK) fail_msg("%s: %s", tk_status_name(status), tk_error_message());
}

static tk_buffer *take(tk_queue *on, size_t bytes) {
    tk_buffer *buffer;
    ok(tk_buffer_new_on(device, on, bytes, &buffer));
    return buffer;
}

static void wait_all(tk_queue *on) { ok(tk_cuda_queue_wait(on, tk_cuda_queue_ticket(on), NULL)); }

static void *must(void *pointer) {
    if (!pointer) fail_msg("%s", tk_error_message());
    return pointer;
}

static tk_cuda_prepared prepare(tk_cuda_function *function, const tk_cuda_packing *packing,
                                uint32_t blocks, uint32_t threads) {
    tk_cuda_launch launch = {must(function), {blocks, 1, 1}, {0},   {threads, 1, 1}, 0,
                             packing,        false,          false, "test"};
    tk_cuda_prepared prepared;
    ok(tk_cuda_launch_prepare(&launch, &prepared));
    return prepared;
}

typedef struct add_params {
    CUdeviceptr x, y, out;
    uint32_t n;
} add_params;

typedef struct slow_params {
    CUdeviceptr x;
    uint64_t cycles;
} slow_params;

#define A_WHILE 100000000 /* cycles: some 50 ms */

static void run_slow(tk_queue *on, const tk_buffer *x, uint64_t cycles) {
    tk_cuda_prepared slow = prepare(KERNEL("slow"), &card_slow, 1, 1);
    slow_params params = {address_of(x), cycles};
    ok(tk_cuda_launch_run(&slow, on, NULL, &params));
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void test_vector_add(void **state) {
    (void)state;
    const uint32_t n = 1000003;
    float *x = malloc(4 * n), *y = malloc(4 * n), *out = calloc(n, 4);
    for (uint32_t i = 0; i < n; i++) x[i] = (float)(i % 4099), y[i] = (float)i * 0.5f;
    tk_buffer *a = take(queue, 4 * n), *b = take(queue, 4 * n), *c = take(queue, 4 * n);
    ok(tk_cuda_upload(queue, address_of(a), x, 4 * n));
    ok(tk_cuda_upload(queue, address_of(b), y, 4 * n));
    ok(tk_cuda_fill(queue, address_of(c), 0x7fc00000, 4, n));
    add_params params = {address_of(a), address_of(b), address_of(c), n};
    tk_cuda_prepared add = prepare(KERNEL("add_f32"), &card_add, (n + 255) / 256, 256);
    ok(tk_cuda_launch_run(&add, queue, NULL, &params));
    ok(tk_cuda_download(queue, out, address_of(c), 4 * n, NULL));
    for (uint32_t i = 0; i < n; i++)
        if (out[i] != x[i] + y[i]) fail_msg("out[%u] is %g, expected %g", i, out[i], x[i] + y[i]);
    tk_buffer_release(a);
    tk_buffer_release(b);
    tk_buffer_release(c);
    free(x);
    free(y);
    free(out);
}

static void test_copies(void **state) {
    (void)state;
    const size_t sizes[] = {1, 1000, 4 << 20, (64 << 20) + 13};
    for (int s = 0; s < 4; s++) {
        size_t bytes = sizes[s];
        unsigned char *data = malloc(bytes), *back = malloc(bytes);
        for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 31 + i / 4096);
        tk_buffer *x = take(queue, bytes), *y = take(queue, bytes);
        ok(tk_cuda_upload(queue, address_of(x), data, bytes));
        ok(tk_cuda_copy_async(queue, y->data, x->data, bytes, TK_COPY_ON_DEVICE));
        ok(tk_cuda_download(queue, back, address_of(y), bytes, NULL));
        assert_int_equal(memcmp(data, back, bytes), 0);
        memset(back, 0, bytes);
        ok(tk_device_copy(device, back, x->data, bytes, TK_COPY_FROM_DEVICE));
        assert_int_equal(memcmp(data, back, bytes), 0);
        tk_buffer_release(x);
        tk_buffer_release(y);
        free(data);
        free(back);
    }
}

/* A block freed while a slow kernel writes it stays out of other streams' hands. */
static void test_no_early_reuse(void **state) {
    (void)state;
    tk_queue *other;
    ok(tk_cuda_queue_open(cuda, &other));
    for (int round = 0; round < 5; round++) {
        tk_buffer *x = take(queue, 4096);
        void *block = x->data;
        ok(tk_cuda_fill(queue, address_of(x), 0, 4, 1024));
        run_slow(queue, x, A_WHILE);
        tk_buffer_release(x);
        tk_buffer *elsewhere = take(other, 4096);
        assert_ptr_not_equal(elsewhere->data, block);
        tk_buffer *here = take(queue, 4096);
        assert_ptr_equal(here->data, block);
        float value;
        ok(tk_cuda_download(queue, &value, address_of(here), 4, NULL));
        assert_true(value == 1);
        tk_buffer_release(here);
        wait_all(queue);
        tk_buffer *after = take(other, 4096);
        assert_ptr_equal(after->data, block);
        tk_buffer_release(after);
        tk_buffer_release(elsewhere);
        wait_all(other);
    }
    tk_cuda_queue_close(other);
}

static void test_graph(void **state) {
    (void)state;
    tk_buffer *x = take(queue, 4);
    ok(tk_cuda_fill(queue, address_of(x), 0, 4, 1));
    wait_all(queue);
    tk_cuda_graph *graph;
    tk_cuda_prepared slow = prepare(KERNEL("slow"), &card_slow, 1, 1);
    slow_params params = {address_of(x), 10};
    ok(tk_cuda_capture_begin(queue, &graph));
    for (int i = 0; i < 100; i++) ok(tk_cuda_launch_run(&slow, queue, NULL, &params));
    ok(tk_cuda_graph_hold(graph, x));
    ok(tk_cuda_graph_hold_module(graph, slow.function->module));
    ok(tk_cuda_capture_end(graph));
    assert_int_equal(tk_cuda_graph_size(graph), 100);
    CUdeviceptr address = address_of(x);
    tk_buffer_release(x);
    for (int i = 0; i < 7; i++) ok(tk_cuda_graph_launch(graph, queue));
    float value;
    ok(tk_cuda_download(queue, &value, address, 4, NULL));
    assert_true(value == 700);
    tk_cuda_graph_release(graph);
}

static size_t free_memory(void) {
    size_t free_bytes, total;
    ok(tk_cuda_enter(cuda));
    assert_int_equal(cuda->api->memory_info(&free_bytes, &total), CUDA_SUCCESS);
    return free_bytes;
}

static void test_many_launches_leak_nothing(void **state) {
    (void)state;
    size_t before = 0, cached = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10000; i++) {
            tk_buffer *x = take(queue, 4000);
            tk_cuda_prepared slow = prepare(KERNEL("slow"), &card_slow, 1, 1);
            slow_params params = {address_of(x), 0};
            ok(tk_cuda_launch_run(&slow, queue, NULL, &params));
            tk_buffer_release(x);
        }
        wait_all(queue);
        if (round == 0) {
            before = free_memory();
            cached = tk_device_memory(device).cache;
        }
    }
    assert_int_equal(free_memory(), before);
    assert_int_equal(tk_device_memory(device).cache, cached);
    assert_int_equal(tk_device_memory(device).active, 0);
    assert_true(cuda->events.count < 32);
}

static void *work_on_own_stream(void *arg) {
    uint32_t number = (uint32_t)(uintptr_t)arg;
    enum { N = 4096 };
    static _Thread_local float x[N], y[N], out[N];
    tk_queue *own;
    if (tk_cuda_queue_open(cuda, &own) != TK_OK) return "stream";
    tk_cuda_function *function = KERNEL("add_f32");
    tk_cuda_launch launch = {function,  {N / 128, 1, 1}, {0},   {128, 1, 1}, 0,
                             &card_add, false,           false, "thread"};
    tk_cuda_prepared add;
    if (!function || tk_cuda_launch_prepare(&launch, &add) != TK_OK) return "prepare";
    for (uint32_t round = 0; round < 200; round++) {
        tk_buffer *a, *b, *c;
        for (uint32_t i = 0; i < N; i++)
            x[i] = (float)(number * 1000 + i), y[i] = (float)(round * i);
        if (tk_buffer_new_on(device, own, sizeof x, &a) != TK_OK) return "memory";
        if (tk_buffer_new_on(device, own, sizeof x, &b) != TK_OK) return "memory";
        if (tk_buffer_new_on(device, own, sizeof x, &c) != TK_OK) return "memory";
        add_params params = {address_of(a), address_of(b), address_of(c), N};
        tk_status status = tk_cuda_upload(own, address_of(a), x, sizeof x);
        if (status == TK_OK) status = tk_cuda_upload(own, address_of(b), y, sizeof y);
        if (status == TK_OK) status = tk_cuda_launch_run(&add, own, NULL, &params);
        if (status == TK_OK) status = tk_cuda_download(own, out, address_of(c), sizeof out, NULL);
        tk_buffer_release(a);
        tk_buffer_release(b);
        tk_buffer_release(c);
        if (status != TK_OK) return "a call";
        for (uint32_t i = 0; i < N; i++)
            if (out[i] != x[i] + y[i]) return "a value";
    }
    tk_cuda_queue_close(own);
    return NULL;
}

static void test_threads_on_their_own_streams(void **state) {
    (void)state;
    pthread_t threads[16];
    for (uintptr_t i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, work_on_own_stream, (void *)i);
    for (int i = 0; i < 16; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed) fail_msg("thread %d: %s", i, (const char *)failed);
    }
}

static void test_clusters(void **state) {
    (void)state;
    if (!cuda->info.clusters) skip();
    tk_buffer *x = take(queue, 4 * 64);
    CUdeviceptr address = address_of(x);
    const uint32_t sizes[] = {1, 2, 4, 8, 16};
    for (int s = 0; s < 5; s++) {
        tk_cuda_launch launch = {must(KERNEL_SM90("ranks")),
                                 {64, 1, 1},
                                 {sizes[s], 1, 1},
                                 {32, 1, 1},
                                 0,
                                 &card_ranks,
                                 false,
                                 false,
                                 "test"};
        tk_cuda_prepared ranks;
        uint32_t back[64];
        ok(tk_cuda_launch_prepare(&launch, &ranks));
        ok(tk_cuda_launch_run(&ranks, queue, NULL, &address));
        ok(tk_cuda_download(queue, back, address, sizeof back, NULL));
        for (uint32_t i = 0; i < 64; i++) assert_int_equal(back[i], i % sizes[s]);
    }
    tk_buffer_release(x);
}

static void test_cooperative_and_programmatic(void **state) {
    (void)state;
    tk_buffer *x = take(queue, 4);
    slow_params params = {address_of(x), 10};
    ok(tk_cuda_fill(queue, address_of(x), 0, 4, 1));
    for (int kind = 0; kind < 3; kind++) {
        tk_cuda_launch launch = {must(KERNEL("slow")),
                                 {1, 1, 1},
                                 {0},
                                 {1, 1, 1},
                                 0,
                                 &card_slow,
                                 kind == 1,
                                 kind == 2 && cuda->info.major >= 9,
                                 "test"};
        tk_cuda_prepared slow;
        ok(tk_cuda_launch_prepare(&launch, &slow));
        ok(tk_cuda_launch_run(&slow, queue, NULL, &params));
    }
    float value;
    ok(tk_cuda_download(queue, &value, address_of(x), 4, NULL));
    assert_true(value == 3);
    tk_cuda_launch large = {
        KERNEL("nothing"), {1 << 20, 1, 1}, {0}, {1024, 1, 1}, 0, NULL, true, false, "big"};
    tk_cuda_prepared nothing;
    ok(tk_cuda_launch_prepare(&large, &nothing));
    assert_int_equal(tk_cuda_launch_run(&nothing, queue, NULL, NULL), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "kernel nothing launched at big"));
    wait_all(queue);
    tk_buffer_release(x);
}

static void test_large_shared_memory(void **state) {
    (void)state;
    uint32_t bytes = (uint32_t)cuda->info.max_shared, back;
    tk_buffer *x = take(queue, 4);
    tk_cuda_launch launch = {must(KERNEL("large")), {1, 1, 1}, {0},   {1, 1, 1}, bytes,
                             &card_large,           false,     false, "test"};
    tk_cuda_prepared large;
    ok(tk_cuda_launch_prepare(&launch, &large));
    struct {
        CUdeviceptr out;
        uint32_t bytes;
    } params = {address_of(x), bytes};
    ok(tk_cuda_launch_run(&large, queue, NULL, &params));
    ok(tk_cuda_download(queue, &back, address_of(x), 4, NULL));
    assert_int_equal(back, 42);
    launch.dynamic_shared++;
    assert_int_equal(tk_cuda_launch_prepare(&launch, &large), TK_UNSUPPORTED);
    tk_buffer_release(x);
}

static void test_tensor_map(void **state) {
    (void)state;
    if (cuda->info.major < 9) skip();
    enum { ROWS = 100, COLUMNS = 96 };
    static float data[ROWS * COLUMNS], back[512];
    for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = (float)i;
    tk_buffer *x = take(queue, sizeof data), *y = take(queue, sizeof back);
    ok(tk_cuda_upload(queue, address_of(x), data, sizeof data));
    struct {
        CUtensorMap map;
        CUdeviceptr out;
        uint32_t column, row;
    } params = {.out = address_of(y), .column = 80, .row = 90};
    tk_cuda_tensor_rule rule = {.type = 7,
                                .rank = 2,
                                .base = address_of(x),
                                .dims = {COLUMNS, ROWS},
                                .strides = {4 * COLUMNS},
                                .box = {32, 16},
                                .element_strides = {1, 1}};
    tk_cuda_tensor_binding binding = {0};
    ok(tk_cuda_tensor_bind(cuda, &rule, &binding));
    params.map = binding.map;
    tk_cuda_prepared tile = prepare(KERNEL_SM90("tile"), &card_tile, 1, 512);
    ok(tk_cuda_launch_run(&tile, queue, NULL, &params));
    ok(tk_cuda_download(queue, back, address_of(y), sizeof back, NULL));
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 32; column++) {
            bool inside = row + 90 < ROWS && column + 80 < COLUMNS;
            float expected = inside ? data[(row + 90) * COLUMNS + column + 80] : 0;
            assert_true(back[row * 32 + column] == expected);
        }
    tk_buffer_release(x);
    tk_buffer_release(y);
}

static void add_one(void *arg, tk_status status) {
    if (status == TK_OK) atomic_fetch_add((atomic_int *)arg, 1);
}

static void test_callbacks(void **state) {
    (void)state;
    atomic_int calls = 0;
    for (int i = 0; i < 100; i++) ok(tk_cuda_queue_call(queue, add_one, &calls));
    while (atomic_load(&calls) < 100) sched_yield();
    wait_all(queue);
}

static void test_waits_give_up(void **state) {
    (void)state;
    tk_buffer *x = take(queue, 4);
    run_slow(queue, x, A_WHILE);
    tk_wait briefly = {.seconds = 0.005};
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), &briefly),
                     TK_INTERRUPTED);
    wait_all(queue);
    tk_buffer_release(x);
}

static void test_out_of_memory(void **state) {
    (void)state;
    tk_device_set_memory_limit(device, SIZE_MAX);
    tk_buffer *most = take(queue, free_memory() / 2), *more;
    tk_buffer_label(most, "weights");
    assert_int_equal(tk_buffer_new_on(device, queue, cuda->info.memory, &more), TK_OUT_OF_MEMORY);
    assert_non_null(strstr(tk_error_message(), "held: weights "));
    tk_buffer_release(most);
    tk_device_clear_cache(device);
    test_vector_add(state);
}

static void test_broken_text(void **state) {
    (void)state;
    static const char text[] = ".version 7.8\n.target sm_80\n.address_size 64\n"
                               ".visible .entry broken() { no_such_instruction r1; ret; }\n";
    tk_cuda_module *module;
    tk_status status = tk_cuda_module_load(cuda, text, sizeof text, "broken", &module);
    assert_int_equal(status, TK_FORMAT_ERROR);
    assert_non_null(strstr(tk_error_message(), "no_such_instruction"));
    assert_int_not_equal(tk_cuda_module_load(cuda, "", 0, "empty", &module), TK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_add),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_no_early_reuse),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_many_launches_leak_nothing),
        cmocka_unit_test(test_threads_on_their_own_streams),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_cooperative_and_programmatic),
        cmocka_unit_test(test_large_shared_memory),
        cmocka_unit_test(test_tensor_map),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_waits_give_up),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_broken_text),
    };
    if (!open_card("test_gpu_runtime")) return CARD_SKIPPED;
    if (tk_cuda_queue_open(cuda, &queue) != TK_OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_cuda_queue_close(queue);
    tk_device_close(device);
    return failed;
}
