/* Kernels on a card: the emulator's bits, the processor's gradients, training, threads, leaks.
 * TIKI_GPU_TEST_DEVICE names another device (emulator), to try the tests themselves;
 * TIKI_GPU_TEST_SMALL=1 leaves out what is large or long, for the sanitizers of a card. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/library_node.h"
#include "support/kernel_files.h"
#include "support/small_mlp.h"
#include "tiki/gpu.h"
#include "tiki/kernel_op.h"

static tk_context *ctx;
static tk_scope scope;
static tk_stream_id card, emulator;
static const char *device_name;
static bool small;

static int begin(void **state) {
    (void)state;
    ctx = make_context();
    scope = tk_scope_open(ctx);
    if (tk_device_stream(ctx, "emulator", &emulator) != TK_OK) return -1;
    return tk_device_stream(ctx, device_name, &card) == TK_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}

static tk_array normal(tk_shape shape, tk_dtype dtype) {
    return tk_astype(tk_random_normal(ctx, shape, TK_FLOAT32, 0, 1, TK_NO_ARRAY), dtype);
}

/* Small integers: sums of their products are exact in any order. */
static tk_array whole(tk_shape shape, tk_dtype dtype) {
    return tk_astype(tk_random_randint(ctx, -2, 3, shape, TK_INT32, TK_NO_ARRAY), dtype);
}

/* The same bits; NaNs are one class. */
static void assert_same(const char *what, tk_array got, tk_array expected) {
    if (tk_dtype_is_float(tk_array_dtype(expected))) {
        tk_array zero = tk_scalar(ctx, 0);
        got = tk_where(tk_equal(got, got), got, zero);
        expected = tk_where(tk_equal(expected, expected), expected, zero);
    }
    size_t bytes = (size_t)tk_array_size(expected) * tk_dtype_size(tk_array_dtype(expected));
    unsigned char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    assert_ok(tk_copy_out(got, a, bytes));
    assert_ok(tk_copy_out(expected, b, bytes));
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i]) fail_msg("%s: byte %zu of %zu differs", what, i, bytes);
    free(a);
    free(b);
}

/* ---- the emulator's bits ---- */

typedef tk_array (*one_op)(tk_array a);
typedef tk_array (*two_op)(tk_array a, tk_array b);

static tk_array soft(tk_array a) { return tk_kernel_softmax(a, NULL); }
static tk_array turn(tk_array a) { return tk_kernel_transpose(a, NULL); }
static tk_array sums(tk_array a) { return tk_kernel_column_sum(a, NULL); }
static tk_array copy(tk_array a) { return tk_contiguous(tk_transpose(a, TK_AXES(1, 0))); }
static tk_array strided(tk_array a) {
    tk_array part = tk_slice(a, TK_AXES(1, -1), TK_AXES(-1, 0), TK_AXES(2, -3));
    return tk_add(part, part);
}
static tk_array narrow(tk_array a) { return tk_astype(a, TK_BFLOAT16); }
static tk_array to_int(tk_array a) {
    return tk_astype(tk_multiply(a, tk_scalar(ctx, 1e9)), TK_INT32);
}
static tk_array norm(tk_array a, tk_array w) { return tk_kernel_rms_norm(a, w, 1e-5, NULL); }
static tk_array product(tk_array a, tk_array b) { return tk_kernel_matmul(a, b, NULL); }
static tk_array hopper(tk_array a, tk_array b) { return tk_kernel_hopper_matmul(a, b, NULL); }

static void same_one(const char *what, one_op op, tk_array x) {
    assert_same(what, op(tk_to_stream(x, card)), op(tk_to_stream(x, emulator)));
}
static void same_two(const char *what, two_op op, tk_array x, tk_array y) {
    assert_same(what, op(tk_to_stream(x, card), tk_to_stream(y, card)),
                op(tk_to_stream(x, emulator), tk_to_stream(y, emulator)));
}

static void test_moves_and_elementwise(void **state) {
    (void)state;
    static const one_op ones[] = {copy,    strided, narrow,   to_int,   tk_abs,   tk_negative,
                                  tk_sqrt, tk_ceil, tk_rsqrt, tk_floor, tk_square};
    static const two_op twos[] = {tk_add,     tk_subtract, tk_multiply, tk_divide,
                                  tk_maximum, tk_minimum,  tk_less,     tk_equal};
    tk_array x = normal(TK_SHAPE(67, 129), TK_FLOAT32), y = normal(TK_SHAPE(129), TK_FLOAT32);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) same_one("an op", ones[i], x);
    for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) same_two("an op of two", twos[i], x, y);
    tk_array h = tk_astype(x, TK_FLOAT16), g = tk_astype(y, TK_FLOAT16);
    for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) same_two("of halves", twos[i], h, g);
    tk_array k = whole(TK_SHAPE(67, 129), TK_INT32), l = whole(TK_SHAPE(129), TK_INT32);
    for (size_t i = 0; i < 3; i++) same_two("of integers", twos[i], k, l);
}

static tk_array sum_of_rows(tk_array a) { return tk_sum(a, TK_AXES(-1), TK_DROPDIMS); }
static tk_array sum_of_columns(tk_array a) { return tk_sum(a, TK_AXES(0), TK_DROPDIMS); }
static tk_array sum_of_all(tk_array a) { return tk_sum(a, TK_ALL_AXES, TK_DROPDIMS); }
static tk_array largest(tk_array a) { return tk_max(a, TK_AXES(-1), TK_KEEPDIMS); }
static tk_array smallest(tk_array a) { return tk_min(a, TK_AXES(0), TK_DROPDIMS); }
static tk_array mean_of_rows(tk_array a) { return tk_mean(a, TK_AXES(-1), TK_DROPDIMS); }

/* Kernels that are generated for an op: functions that the expansion pass spells out, reductions in
 * their fixed order, products. */
static void test_generated(void **state) {
    (void)state;
    static const one_op functions[] = {tk_exp, tk_tanh, tk_erf, tk_sigmoid};
    static const one_op reductions[] = {sum_of_rows, sum_of_columns, sum_of_all,
                                        largest,     smallest,       mean_of_rows};
    tk_array x = normal(TK_SHAPE(67, 129), TK_FLOAT32), k = whole(TK_SHAPE(67, 129), TK_INT32);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        same_one("a function", functions[i], x);
    same_one("a logarithm", tk_log, tk_abs(x));
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        same_one("a reduction", reductions[i], x);
        same_one("of halves", reductions[i], tk_astype(x, TK_BFLOAT16));
        if (reductions[i] != mean_of_rows) same_one("of integers", reductions[i], k);
    }
    same_two("matmul", tk_matmul, whole(TK_SHAPE(65, 70), TK_FLOAT32),
             whole(TK_SHAPE(70, 33), TK_FLOAT32));
}

/* Ops that move, draw and choose; functions that go through f64. */
static tk_array rows_of(tk_array a, tk_array at) { return tk_take(a, at, 0); }
static tk_array along(tk_array a, tk_array at) { return tk_take_along_axis(a, at, 0); }
static tk_array added(tk_array a, tk_array at) {
    tk_array updates = tk_reshape(tk_take(a, at, 0), TK_SHAPE(40, 1, 129));
    return tk_scatter_nd(a, updates, &at, 1, TK_AXES(0), TK_ADD);
}
static tk_array bits_of(tk_array key) { return tk_random_bits(key, TK_SHAPE(77), 4); }
static tk_array best(tk_array a) { return tk_argmax(a, TK_AXES(1), TK_DROPDIMS); }
static tk_array several(tk_array a) { return tk_logsumexp(a, TK_AXES(1), TK_DROPDIMS); }
static tk_array attend(tk_array a) {
    tk_array q = tk_reshape(a, TK_SHAPE(1, 4, 8, 16));
    return tk_scaled_dot_product_attention(q, q, q, 0.25, TK_NO_ARRAY, true);
}

static void test_device_ops(void **state) {
    (void)state;
    static const one_op ones[] = {tk_expm1, tk_log1p, tk_erfinv, tk_arctan,
                                  tk_sinh,  tk_sign,  best,      several};
    tk_array x = normal(TK_SHAPE(67, 129), TK_FLOAT32);
    tk_array at = tk_random_randint(ctx, 0, 67, TK_SHAPE(40), TK_INT32, TK_NO_ARRAY);
    tk_array lines = tk_random_randint(ctx, 0, 67, TK_SHAPE(9, 129), TK_INT32, TK_NO_ARRAY);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) same_one("a device's op", ones[i], x);
    same_two("take", rows_of, x, at);
    same_two("take_along_axis", along, x, lines);
    same_two("scatter_nd", added, x, at);
    same_two("scatter_nd of halves", added, tk_astype(x, TK_BFLOAT16), at);
    same_one("random_bits", bits_of, tk_random_key(ctx, 3));
    same_one("attention", attend, normal(TK_SHAPE(4, 128), TK_FLOAT32));
}

static void test_rows(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT16, TK_BFLOAT16};
    static const int64_t columns[] = {1, 16, 64, 100, 1000, 4096};
    size_t n_columns = small ? 4 : sizeof columns / sizeof *columns;
    for (int d = 0; d < 3; d++)
        for (size_t c = 0; c < n_columns; c++) {
            tk_array x = normal(TK_SHAPE(9, columns[c]), dtypes[d]);
            tk_array w = normal(TK_SHAPE(columns[c]), dtypes[d]);
            same_one("softmax", soft, x);
            same_one("transpose", turn, x);
            same_one("column_sum", sums, x);
            same_two("rms_norm", norm, x, w);
        }
}

/* Softmax, RMS norm and transpose with other schedules than their own. */
static const char *words;
static tk_library_schedule scheduled(tk_library_id id, tk_array x) {
    tk_library_schedule schedule;
    assert_ok(tk_library_schedule_for(id, &x, 1, &schedule));
    assert_ok(tk_library_schedule_read(id, words, &schedule));
    return schedule;
}
static tk_array soft_so(tk_array a) {
    tk_library_schedule schedule = scheduled(TK_LIBRARY_SOFTMAX, a);
    return tk_kernel_softmax(a, &schedule);
}
static tk_array norm_so(tk_array a, tk_array w) {
    tk_library_schedule schedule = scheduled(TK_LIBRARY_RMS_NORM, a);
    return tk_kernel_rms_norm(a, w, 1e-5, &schedule);
}
static tk_array turn_so(tk_array a) {
    tk_library_schedule schedule = scheduled(TK_LIBRARY_TRANSPOSE, a);
    return tk_kernel_transpose(a, &schedule);
}
static tk_array sums_so(tk_array a) {
    tk_library_schedule schedule = scheduled(TK_LIBRARY_COLUMN_SUM, a);
    return tk_kernel_column_sum(a, &schedule);
}

/* The gradient kernels have no op that takes a schedule: the node of the library does. */
static tk_array backward_so(tk_library_spec *spec) {
    tk_arrays results = {0};
    tk_library_schedule schedule;
    tk_library_tensor tensors[TK_LIBRARY_SLOTS];
    size_t count = tk_library_tensors(spec->id);
    for (size_t i = 0; i < count; i++) tk_slot_describe(&spec->slots[i], &tensors[i]);
    assert_ok(tk_library_schedule_default(spec->id, count, tensors, &schedule));
    assert_ok(tk_library_schedule_read(spec->id, words, &schedule));
    spec->schedule = &schedule;
    assert_ok(tk_library_node(ctx, spec, &results));
    tk_array last = results.items[results.count - 1];
    last = tk_reshape(last, tk_array_shape(last));
    tk_arrays_clear(&results);
    return last;
}
static tk_array soft_back_so(tk_array y, tk_array dy) {
    tk_library_spec spec = {.id = TK_LIBRARY_SOFTMAX_BACKWARD,
                            .slots = {tk_slot_in(y), tk_slot_in(dy),
                                      tk_slot_out(tk_array_dtype(y), tk_array_shape(y))}};
    return backward_so(&spec);
}
static tk_array norm_back_so(tk_array x, tk_array dy) {
    tk_slot dx = tk_slot_out(tk_array_dtype(x), tk_array_shape(x)),
            dw = tk_slot_out(tk_array_dtype(x), TK_SHAPE(tk_array_dim(x, 1)));
    tk_library_spec spec = {.id = TK_LIBRARY_RMS_NORM_BACKWARD,
                            .slots = {tk_slot_in(x), tk_slot_none(), tk_slot_in(dy), dx, dw},
                            .number = 1e-5};
    return backward_so(&spec);
}

static void test_schedules(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_BFLOAT16, TK_FLOAT16};
    static const char *const rows[] = {
        "threads_per_row = 64, rows_per_block = 1, held = 2, cluster = 2, overlap = 1",
        "threads_per_row = 32, rows_per_block = 2, held = 2, cluster = 4, overlap = 0",
        "threads_per_row = 128, rows_per_block = 1, held = 1, cluster = 8, overlap = 2",
        "threads_per_row = 32, rows_per_block = 1, held = 0, cluster = 4, overlap = 1",
        "threads_per_row = 64, rows_per_block = 2, held = 4, overlap = 2, blocks_per_sm = 4",
        "threads_per_row = 64, rows_per_block = 1, held = 2, cluster = 2, prefetch = 3, late = 1",
        "threads_per_row = 128, rows_per_block = 2, held = 1, overlap = 2, prefetch = 1"};
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            tk_array x = normal(TK_SHAPE(9, 1000 / (d ? 1 : 2)), dtypes[d]);
            tk_array w = normal(TK_SHAPE(1000 / (d ? 1 : 2)), dtypes[d]);
            words = rows[i];
            same_one("softmax with a schedule", soft_so, x);
            same_two("rms_norm with a schedule", norm_so, x, w);
            same_two("softmax_backward with a schedule", soft_back_so, x, x);
        }
    words = "tile = 32, threads = 64, group = 4, overlap = 1";
    same_one("transpose with a schedule", turn_so, normal(TK_SHAPE(65, 200), TK_FLOAT32));
}

/* Sums over rows that go through one, two and three launches; gradients that read ahead. */
static void test_schedules_of_sums(void **state) {
    (void)state;
    static const char *const sums[] = {
        "threads = 32, rows_per_block = 1, per_thread = 4, chunks = 1, overlap = 0",
        "threads = 32, rows_per_block = 4, per_thread = 2, chunks = 7, overlap = 1",
        "threads = 64, rows_per_block = 2, per_thread = 1, chunks = 1500, overlap = 1"};
    static const char *const back[] = {
        "threads_per_row = 32, rows_per_block = 2, held = 2, ahead = 1, chunks = 3, overlap = 1",
        "threads_per_row = 64, rows_per_block = 1, held = 2, ahead = 0, chunks = 4, overlap = 0",
        "threads_per_row = 32, rows_per_block = 1, held = 0, ahead = 0, chunks = 5, overlap = 1"};
    tk_array tall = normal(TK_SHAPE(1500, 24), TK_FLOAT32),
             wide = normal(TK_SHAPE(17, 200), TK_FLOAT32);
    for (int i = 0; i < 3; i++) {
        words = sums[i];
        same_one("column_sum with a schedule", sums_so, tall);
        same_one("column_sum of halves", sums_so, tk_astype(tall, TK_BFLOAT16));
        words = back[i];
        same_two("rms_norm_backward with a schedule", norm_back_so, wide, wide);
    }
}

static void test_products(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{128, 128, 64}, {64, 96, 32}, {17, 9, 21}, {200, 136, 72}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t *s = sizes[i];
        tk_array a = whole(TK_SHAPE(s[0], s[2]), TK_FLOAT16),
                 b = whole(TK_SHAPE(s[2], s[1]), TK_FLOAT16);
        same_two("gemm", product, a, b);
        if (s[1] % 8 == 0 && s[2] % 8 == 0) same_two("hopper_gemm", hopper, a, b);
    }
}

/* Gradients of the backward kernels too. */
static tk_status of_norm(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)self, (void)n;
    return tk_arrays_push(results, norm(args[0], args[1]));
}
static tk_status of_softmax(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)self, (void)n;
    return tk_arrays_push(results, soft(args[0]));
}

static void same_gradients(const char *what, tk_function function, const tk_array *args, size_t n) {
    tk_array ct = normal(tk_array_shape(args[0]), tk_array_dtype(args[0])), far[2];
    tk_arrays values = {0}, grads = {0};
    const tk_stream_id streams[] = {card, emulator};
    for (int s = 0; s < 2; s++) {
        tk_array far_ct = tk_to_stream(ct, streams[s]);
        for (size_t i = 0; i < n; i++) far[i] = tk_to_stream(args[i], streams[s]);
        assert_ok(tk_vjp(ctx, function, NULL, far, n, &far_ct, 1, &values, &grads));
    }
    for (size_t i = 0; i < n; i++) assert_same(what, grads.items[i], grads.items[n + i]);
    tk_arrays_clear(&values);
    tk_arrays_clear(&grads);
}

static void test_gradients(void **state) {
    (void)state;
    for (int64_t columns = 24; columns <= (small ? 24 : 2400); columns *= 10) {
        tk_array x = normal(TK_SHAPE(33, columns), TK_FLOAT32);
        tk_array args[] = {x, normal(TK_SHAPE(columns), TK_FLOAT32)};
        same_gradients("gradients of rms_norm", of_norm, args, 2);
        same_gradients("gradients of softmax", of_softmax, args, 1);
    }
    tk_array x = normal(TK_SHAPE(2, 17000), TK_BFLOAT16);
    tk_array args[] = {x, normal(TK_SHAPE(17000), TK_BFLOAT16)};
    same_gradients("gradients of rms_norm of long rows", of_norm, args, 2);
    same_gradients("gradients of softmax of long rows", of_softmax, args, 1);
}

/* ---- whole programs ---- */

static void test_training(void **state) {
    (void)state;
    mlp_follow(ctx, card, 30);
}

static tk_array launch_add(const tk_kernel *kernel, tk_array x, tk_array y) {
    int64_t n = tk_array_size(x);
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_input(1), tk_bind_output(0),
                             tk_bind_integer(n)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(n), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = (tk_kernel *)(uintptr_t)kernel,
                           .n_binds = 4,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output};
    const tk_array inputs[] = {x, y};
    tk_arrays outputs = {0};
    assert_ok(tk_launch(ctx, &spec, inputs, 2, &outputs));
    tk_array out = tk_reshape(outputs.items[0], TK_SHAPE(n));
    tk_arrays_clear(&outputs);
    return out;
}

static tk_kernel *add_kernel;

static void test_many_launches(void **state) {
    (void)state;
    tk_device *device = tk_stream_device_of(ctx, card);
    tk_array x = tk_to_stream(tk_ones(ctx, TK_SHAPE(1000), TK_FLOAT32), card);
    assert_ok(tk_eval(x));
    size_t before = tk_device_memory(device).active;
    int launches = strcmp(device_name, "emulator") ? 10000 : 100;
    for (int i = 0; i < launches; i += 10) {
        tk_scope inner = tk_scope_open(ctx);
        tk_array y = x;
        for (int k = 0; k < 10; k++) y = launch_add(add_kernel, y, x);
        assert_float_equal(first_f32(tk_slice(y, TK_AXES(999), TK_AXES(1000), TK_ALL_AXES)), 11, 0);
        tk_scope_close(inner);
    }
    assert_int_equal(tk_device_memory(device).active, before);
}

static void *work(void *arg) {
    tk_stream_id mine;
    (void)arg;
    (void)tk_stream_use(ctx, card);
    if (tk_stream_new(ctx, &mine) != TK_OK) return (void *)1;
    (void)tk_stream_use(ctx, mine);
    for (int i = 0; i < 50; i++) {
        tk_scope inner = tk_scope_open(ctx);
        tk_array x = tk_full(tk_scalar(ctx, i), TK_SHAPE(5000), TK_FLOAT32), y = x;
        for (int k = 0; k < 4; k++) y = launch_add(add_kernel, y, x);
        double last = 0;
        tk_status status = tk_item(tk_slice(y, TK_AXES(4999), TK_AXES(5000), TK_ALL_AXES), &last);
        tk_scope_close(inner);
        if (status != TK_OK || last != 5 * i) return (void *)1;
    }
    return NULL;
}

static void test_threads_on_their_own_streams(void **state) {
    (void)state;
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* ---- the way out ---- */

static const char vector_add[] =
    "tiki kernel 1\nkernel vector_add(%x: ptr<f32, global> read align 4 size %n, %y: ptr<f32, "
    "global> read align 4 size %n, %z: ptr<f32, global> write align 4 size %n, %n: i32)\n"
    "form thread require %n >= 0 grid (ceildiv(%n, 256), 1, 1) block (256, 1, 1)\n{\n"
    "%t = thread_index.x : i32\n%b = block_index.x : i32\n%f = mul %b, i32(256) : i32\n"
    "%i = add %f, %t : i32\n%in = icmp.slt %i, %n : i1\nif %in {\n"
    "%px = offset %x, %i : ptr<f32, global>\n%py = offset %y, %i : ptr<f32, global>\n"
    "%pz = offset %z, %i : ptr<f32, global>\n%a = load %px : f32\n%c = load %py : f32\n"
    "%s = add %a, %c : f32\nstore %pz, %s\n}\n}\n";

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(test_moves_and_elementwise),
        TEST(test_generated),
        TEST(test_device_ops),
        TEST(test_rows),
        TEST(test_schedules),
        TEST(test_schedules_of_sums),
        TEST(test_products),
        TEST(test_gradients),
        TEST(test_training),
        TEST(test_many_launches),
        TEST(test_threads_on_their_own_streams),
    };
    const struct CMUnitTest small_tests[] = {
        TEST(test_moves_and_elementwise),
        TEST(test_generated),
        TEST(test_device_ops),
        TEST(test_rows),
        TEST(test_schedules),
        TEST(test_schedules_of_sums),
        TEST(test_products),
        TEST(test_gradients),
    };
    tk_gpu_info info;
    device_name = getenv("TIKI_GPU_TEST_DEVICE");
    if (!device_name) {
        device_name = "gpu";
        if (tk_gpu_describe(0, &info) != TK_OK) {
            printf("test_gpu_kernels: skipped, %s\n", tk_error_message());
            return 77;
        }
        printf("test_gpu_kernels on %s\n", info.name);
    }
    add_kernel = parse_text(vector_add);
    const char *asked = getenv("TIKI_GPU_TEST_SMALL");
    small = asked && asked[0] == '1';
    int failed = small ? cmocka_run_group_tests(small_tests, NULL, NULL)
                       : cmocka_run_group_tests(tests, NULL, NULL);
    tk_kernel_release(add_kernel);
    return failed;
}
