/* Launches as nodes and functions of launches, on the emulator: values, bindings that do not fit,
 * memory in place, derivatives, batching, residuals, missing rules. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/emulator_fixture.h"
#include "support/kernel_files.h"
#include "support/says.h"
#include "tiki/kernel_op.h"

static tk_kernel *add_kernel, *scale_kernel, *square_kernel;

/* x *= factor, element by element; then a kernel with a residual: y = x x, r = 2 x. */
static const char scale_text[] =
    "tiki kernel 1\nkernel scale(%x: ptr<f32, global> read_write align 4 size %n, %factor: f32, "
    "%n: i32)\nform thread require %n >= 0 grid (ceildiv(%n, 32), 1, 1) block (32, 1, 1)\n{\n"
    "%t = thread_index.x : i32\n%b = block_index.x : i32\n%f = mul %b, i32(32) : i32\n"
    "%i = add %f, %t : i32\n%in = icmp.slt %i, %n : i1\nif %in {\n"
    "%p = offset %x, %i : ptr<f32, global>\n%v = load %p : f32\n%w = mul %v, %factor : f32\n"
    "store %p, %w\n}\n}\n";
static const char square_text[] =
    "tiki kernel 1\nkernel square(%x: ptr<f32, global> read align 16 size %n, %y: ptr<f32, global> "
    "write align 4 size %n, %r: ptr<f32, global> write align 4 size %n, %n: i32)\n"
    "form thread require %n >= 0 require %n <= 1000 grid (ceildiv(%n, 32), 1, 1) block (32, 1, 1)\n"
    "{\n%t = thread_index.x : i32\n%b = block_index.x : i32\n%f = mul %b, i32(32) : i32\n"
    "%i = add %f, %t : i32\n%in = icmp.slt %i, %n : i1\nif %in {\n"
    "%px = offset %x, %i : ptr<f32, global>\n%py = offset %y, %i : ptr<f32, global>\n"
    "%pr = offset %r, %i : ptr<f32, global>\n%v = load %px : f32\n%w = mul %v, %v : f32\n"
    "%u = add %v, %v : f32\nstore %py, %w\nstore %pr, %u\n}\n}\n";

static int begin(void **state) {
    add_kernel = parse_file("examples/kernels/vector_add.tk");
    scale_kernel = parse_text(scale_text);
    square_kernel = parse_text(square_text);
    return open_emulator(state);
}

static int end(void **state) {
    close_context(state);
    tk_kernel_release(add_kernel);
    tk_kernel_release(scale_kernel);
    tk_kernel_release(square_kernel);
    return 0;
}

static tk_array range(int64_t n) {
    tk_array a = tk_arange(ctx, 0, (double)n, 1, TK_FLOAT32);
    return tk_to_stream(a, emulator);
}

static void assert_values(tk_array array, size_t count, const float *expected) {
    float *values = malloc(count * sizeof *values);
    assert_ok(tk_copy_out(array, values, count * sizeof *values));
    for (size_t i = 0; i < count; i++) assert_float_equal(values[i], expected[i], 0);
    free(values);
}

/* ---- launches ---- */

/* What the operation of a kernel of 64 threads in two blocks does to a new output of 128 elements,
 * whose elements 0 to 63 it has written when it begins. */
static tk_array new_output(const char *body) {
    char text[1200];
    tk_arrays out = {0};
    tk_array x = range(1);
    snprintf(text, sizeof text,
             "tiki kernel 1\nkernel part(%%x: ptr<f32, global> read align 4, %%y: ptr<f32, global> "
             "write align 4)\nform thread grid (2, 1, 1) block (32, 1, 1)\n{\n"
             "%%t = thread_index.x : i32\n%%b = block_index.x : i32\n%%f = mul %%b, i32(32) : i32\n"
             "%%i = add %%f, %%t : i32\n%%p = offset %%y, %%i : ptr<f32, global>\n"
             "%%q = offset %%p, i32(64) : ptr<f32, global>\nstore %%p, f32(2)\n%s\n}\n",
             body);
    tk_kernel *kernel = parse_text(text);
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(128), 0};
    tk_launch_spec spec = {sizeof spec, kernel, 2, binds, 1, &output, NULL};
    assert_ok(tk_launch(ctx, &spec, &x, 1, &out));
    tk_array result = tk_reshape(out.items[0], TK_SHAPE(128));
    tk_arrays_clear(&out);
    tk_kernel_release(kernel);
    return result;
}

/* New memory is read only where the launch wrote it; what it never writes is NaN there. */
static void test_new_memory(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "%v = load %q : f32", "%z = icmp.eq %i, i32(5) : i1\n%v = load %q, if=%z : f32",
        "%v = load.relaxed.gpu %q : f32", "%v = atomic.add.relaxed.gpu %q, f32(1) : f32",
        "reduce.add.relaxed.gpu %q, f32(1)"};
    static const char *const right[] = {"%v = load %p : f32",
                                        "store %q, f32(1)\n%v = load %q : f32",
                                        "%v = atomic.exchange.relaxed.gpu %q, f32(1) : f32",
                                        "%v = atomic.add.relaxed.gpu %p, f32(1) : f32"};
    float values[128];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tk_eval(new_output(wrong[i])), TK_DEVICE_ERROR);
        assert_error_says("unset global memory");
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_ok(tk_eval(new_output(right[i])));
    assert_ok(tk_copy_out(new_output(right[0]), values, sizeof values));
    for (int i = 0; i < 128; i++) assert_true(i < 64 ? values[i] == 2 : isnan(values[i]));
}

static tk_launch_spec add_spec(int64_t n, tk_bind *binds, tk_launch_output *output) {
    binds[0] = tk_bind_input(0);
    binds[1] = tk_bind_input(1);
    binds[2] = tk_bind_output(0);
    binds[3] = tk_bind_integer(n);
    *output = (tk_launch_output){TK_FLOAT32, TK_SHAPE(n), 0};
    return (tk_launch_spec){.size = sizeof(tk_launch_spec),
                            .kernel = add_kernel,
                            .n_binds = 4,
                            .binds = binds,
                            .n_outputs = 1,
                            .outputs = output,
                            .site = "test.c:1"};
}

static tk_status launch_add(tk_array x, tk_array y, tk_arrays *results) {
    tk_bind binds[4];
    tk_launch_output output;
    tk_launch_spec spec = add_spec(tk_array_size(x), binds, &output);
    const tk_array inputs[] = {x, y};
    return tk_launch(ctx, &spec, inputs, 2, results);
}

static void test_vector_add(void **state) {
    (void)state;
    tk_arrays out = {0};
    tk_array x = range(1000), y = tk_multiply(x, tk_scalar(ctx, 2));
    assert_ok(launch_add(x, y, &out));
    assert_false(tk_array_is_evaluated(out.items[0])); /* lazy */
    float *expected = malloc(1000 * sizeof *expected);
    for (int i = 0; i < 1000; i++) expected[i] = 3.0f * (float)i;
    assert_values(out.items[0], 1000, expected);
    /* what the kernel cannot read as it lies is copied: every second element, backwards */
    tk_array part = tk_slice(x, TK_AXES(998), TK_AXES(-1001), TK_AXES(-2));
    assert_ok(launch_add(part, part, &out));
    for (int i = 0; i < 500; i++) expected[i] = 2.0f * (float)(998 - 2 * i);
    assert_values(out.items[1], 500, expected);
    assert_ok(launch_add(range(0), range(0), &out));
    assert_ok(tk_eval(out.items[2]));
    free(expected);
    tk_arrays_clear(&out);
}

static void test_bindings_are_checked(void **state) {
    (void)state;
    tk_bind binds[4];
    tk_launch_output output;
    tk_arrays out = {0};
    tk_array inputs[] = {range(8), range(8)};
    tk_launch_spec good = add_spec(8, binds, &output), spec = good;
#define REFUSES(status, text)                                                                      \
    assert_int_equal(tk_launch(ctx, &spec, inputs, 2, &out), status);                              \
    assert_error_says(text);                                                                       \
    spec = add_spec(8, binds, &output)
    spec.size = 3;
    REFUSES(TK_INVALID_ARGUMENT, "tk_launch_spec.size is 3");
    spec.n_binds = 3;
    REFUSES(TK_INVALID_ARGUMENT, "kernel vector_add: 3 parameters are bound, it has 4");
    binds[3] = tk_bind_float(8);
    REFUSES(TK_INVALID_ARGUMENT, "parameter n is an integer, a float is bound to it");
    binds[0] = tk_bind_integer(8);
    REFUSES(TK_INVALID_ARGUMENT, "parameter x is a pointer, a number is bound to it");
    binds[3] = tk_bind_input(0);
    REFUSES(TK_INVALID_ARGUMENT, "parameter n is a number, an array is bound to it");
    binds[2] = tk_bind_input(0);
    REFUSES(TK_INVALID_ARGUMENT, "parameter z is written: bind it to an output");
    binds[0] = tk_bind_output(0);
    REFUSES(TK_INVALID_ARGUMENT, "parameter x is only read: bind it to an input");
    binds[0] = tk_bind_input(7);
    REFUSES(TK_INVALID_ARGUMENT, "is bound to an input that is not given");
    binds[3] = tk_bind_integer(-1);
    REFUSES(TK_INVALID_ARGUMENT, "%n >= 0");
    binds[3] = tk_bind_integer(9);
    REFUSES(TK_SHAPE_ERROR, "parameter x needs 9 elements, the array bound to it has 8");
    output.dtype = TK_FLOAT16;
    REFUSES(TK_DTYPE_ERROR, "parameter z points to f32, the array bound to it is float16");
    output.shape.count = -3;
    REFUSES(TK_INVALID_ARGUMENT, "vector_add: the list is not given");
    output.shape.count = 99;
    REFUSES(TK_SHAPE_ERROR, "vector_add: a list of 99 entries");
    output.in_place = 3;
    REFUSES(TK_INVALID_ARGUMENT, "output 0 is in place of input 2, which does not have its type");
    spec.n_outputs = 0;
    REFUSES(TK_INVALID_ARGUMENT, "0 outputs, expected 1 to 4");
#undef REFUSES
    inputs[1] = tk_to_stream(inputs[1], TK_DEFAULT_STREAM);
    assert_int_equal(tk_launch(ctx, &spec, inputs, 2, &out), TK_INVALID_ARGUMENT);
    assert_error_says("move one of them");
    inputs[0] = tk_to_stream(inputs[0], TK_DEFAULT_STREAM);
    assert_ok(tk_launch(ctx, &spec, inputs, 2, &out));
    assert_int_equal(tk_eval(out.items[0]), TK_UNSUPPORTED);
    assert_error_says("kernel vector_add cannot be launched on cpu:0");
    tk_arrays_clear(&out);
}

static tk_status launch_scale(tk_array x, double factor, tk_arrays *results) {
    const tk_bind binds[] = {tk_bind_output(0), tk_bind_float(factor),
                             tk_bind_integer(tk_array_size(x))};
    const tk_launch_output output = {TK_FLOAT32, tk_array_shape(x), 1};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = scale_kernel,
                           .n_binds = 3,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output};
    return tk_launch(ctx, &spec, &x, 1, results);
}

static void test_in_place(void **state) {
    (void)state;
    tk_arrays out = {0};
    tk_device *device = tk_stream_device_of(ctx, emulator);
    tk_array x = range(6);
    assert_ok(tk_eval(x));
    assert_ok(launch_scale(x, 3, &out)); /* x is held: the kernel works on a copy */
    assert_values(out.items[0], 6, (const float[]){0, 3, 6, 9, 12, 15});
    assert_values(x, 6, (const float[]){0, 1, 2, 3, 4, 5});
    tk_arrays_clear(&out);
    /* nobody holds the sum: its memory is taken over */
    size_t bytes = 1 << 20;
    tk_array large = range((int64_t)bytes / 4);
    assert_ok(tk_eval(large));
    tk_device_reset_peak(device);
    size_t before = tk_device_memory(device).peak;
    tk_scope inner = tk_scope_open(ctx);
    assert_ok(launch_scale(tk_add(large, large), 0.5, &out));
    tk_scope_close(inner);
    assert_ok(tk_eval(out.items[0]));
    assert_true(tk_device_memory(device).peak < before + 3 * bytes / 2);
    tk_arrays_clear(&out);
}

static void test_findings_are_errors(void **state) {
    (void)state;
    tk_arrays out = {0};
    char *text = around("%p = offset %y, i32(100000) : ptr<f32, global>\nstore %p, f32(1.0)", 32);
    tk_kernel *bad = parse_text(text);
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0), tk_bind_integer(4)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(4), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = bad,
                           .n_binds = 3,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output,
                           .site = "model.c:12"};
    tk_array x = range(4);
    assert_ok(tk_launch(ctx, &spec, &x, 1, &out));
    assert_int_equal(tk_eval(out.items[0]), TK_DEVICE_ERROR);
    assert_error_says("kernel test launched at model.c:12: out of bounds");
    assert_int_equal(tk_eval(out.items[0]), TK_DEVICE_ERROR); /* and again */
    tk_arrays_clear(&out);
    tk_kernel_release(bad);
    free(text);
}

/* ---- functions of launches ---- */

/* y = x x with the residual r = 2 x. */
static tk_status square(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    int64_t n = tk_array_size(args[0]);
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0), tk_bind_output(1),
                             tk_bind_integer(n)};
    const tk_launch_output output = {TK_FLOAT32, tk_array_shape(args[0]), 0};
    const tk_launch_output outputs[] = {output, output};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = square_kernel,
                           .n_binds = 4,
                           .binds = binds,
                           .n_outputs = 2,
                           .outputs = outputs};
    return tk_launch(ctx, &spec, args, 1, results);
}

/* Given x, dy, y, r. */
static tk_status square_vjp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    assert_int_equal(n_args, 4);
    return tk_arrays_push(results, tk_multiply(args[1], args[3]));
}

/* Given x, dx. */
static tk_status square_jvp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    assert_int_equal(n_args, 2);
    return tk_arrays_push(results, tk_multiply(tk_multiply(tk_scalar(ctx, 2), args[0]), args[1]));
}

static int releases;
static void count_release(void *self) { (void)self, releases++; }

static tk_status call_square(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const tk_kernel_rules *given = self;
    tk_kernel_rules rules = *given;
    rules.size = sizeof rules;
    rules.forward = square;
    rules.n_visible = 1;
    rules.release = count_release;
    return tk_kernel_call(ctx, &rules, args, n_args, results);
}

/* The sum by hand: reductions are not what is tested. */
static tk_status loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    tk_arrays y = {0};
    tk_status called = call_square(self, args, n_args, &y);
    if (called != TK_OK) return called;
    tk_array here = tk_to_stream(y.items[0], TK_DEFAULT_STREAM);
    tk_status status = tk_arrays_push(results, tk_sum(here, TK_ALL_AXES, TK_DROPDIMS));
    tk_arrays_clear(&y);
    return status;
}

static void test_derivatives(void **state) {
    (void)state;
    tk_kernel_rules rules = {.name = "square", .vjp = square_vjp, .jvp = square_jvp};
    tk_array x = range(4), one = tk_ones_like(x);
    tk_arrays out = {0}, tangents = {0};
    releases = 0;
    assert_ok(call_square(&rules, &x, 1, &out));
    assert_int_equal(out.count, 1); /* the residual is hidden */
    assert_values(out.items[0], 4, (const float[]){0, 1, 4, 9});
    assert_ok(tk_grad(ctx, loss, &rules, &x, 1, NULL, 0, &out));
    assert_values(out.items[1], 4, (const float[]){0, 2, 4, 6});
    assert_ok(tk_jvp(ctx, call_square, &rules, &x, 1, &one, &out, &tangents));
    assert_values(tangents.items[0], 4, (const float[]){0, 2, 4, 6});
    assert_ok(tk_checkpoint(ctx, call_square, &rules, NULL, &x, 1, &out));
    assert_values(out.items[3], 4, (const float[]){0, 1, 4, 9});
    tk_arrays_clear(&out);
    tk_arrays_clear(&tangents);
    tk_scope_close(scope);
    tk_context_release(ctx);
    assert_int_equal(releases, 4);
    ctx = make_context();
    scope = tk_scope_open(ctx);
}

static tk_status checkpointed(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    return tk_checkpoint(ctx, loss, self, NULL, args, n_args, results);
}

static tk_status grad_of_loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    return tk_grad(ctx, loss, self, args, n_args, NULL, 0, results);
}

static void test_composition(void **state) {
    (void)state;
    tk_kernel_rules rules = {
        .name = "square", .vjp = square_vjp, .jvp = square_jvp, .batching = TK_BATCHING_LOOP};
    tk_array x = tk_reshape(range(6), TK_SHAPE(2, 3)), first = range(3);
    tk_arrays out = {0};
    assert_ok(tk_vmap(ctx, call_square, &rules, &x, 1, NULL, NULL, &out));
    assert_values(out.items[0], 6, (const float[]){0, 1, 4, 9, 16, 25});
    rules.batching = TK_BATCHING_LEADING;
    assert_ok(tk_vmap(ctx, call_square, &rules, &x, 1, NULL, NULL, &out));
    assert_values(out.items[1], 6, (const float[]){0, 1, 4, 9, 16, 25});
    assert_ok(tk_vmap(ctx, grad_of_loss, &rules, &x, 1, NULL, NULL, &out));
    assert_values(out.items[2], 6, (const float[]){0, 2, 4, 6, 8, 10});
    assert_ok(tk_grad(ctx, checkpointed, &rules, &first, 1, NULL, 0, &out));
    assert_values(out.items[3], 3, (const float[]){0, 2, 4});
    tk_traced *traced;
    assert_ok(tk_traced_create(ctx, grad_of_loss, &rules, &first, 1, &traced));
    assert_ok(tk_traced_call(traced, &first, 1, &out));
    assert_values(out.items[4], 3, (const float[]){0, 2, 4});
    tk_traced_free(traced);
    tk_arrays_clear(&out);
}

static void test_missing_rules(void **state) {
    (void)state;
    tk_kernel_rules rules = {.name = "square"};
    tk_array x = range(4), one = tk_ones_like(x), batch = tk_reshape(range(6), TK_SHAPE(2, 3));
    tk_arrays out = {0};
    assert_int_equal(tk_grad(ctx, loss, &rules, &x, 1, NULL, 0, &out), TK_UNSUPPORTED);
    assert_error_says("square has no vjp, which reverse mode needs");
    assert_int_equal(tk_jvp(ctx, call_square, &rules, &x, 1, &one, &out, &out), TK_UNSUPPORTED);
    assert_error_says("square has no jvp, which forward mode needs");
    assert_int_equal(tk_vmap(ctx, call_square, &rules, &batch, 1, NULL, NULL, &out),
                     TK_UNSUPPORTED);
    assert_error_says("square has no batching rule, which vmap needs");
    tk_arrays_clear(&out);
    /* a bare launch has none */
    assert_int_equal(tk_vmap(ctx, square, NULL, &batch, 1, NULL, NULL, &out), TK_UNSUPPORTED);
    assert_error_says("kernel square has no batching rule");
    tk_array ct[] = {one, one};
    assert_int_equal(tk_vjp(ctx, square, NULL, &x, 1, ct, 2, &out, &out), TK_UNSUPPORTED);
    assert_error_says("kernel square has no derivative");
    assert_int_equal(tk_jvp(ctx, square, NULL, &x, 1, &one, &out, &out), TK_UNSUPPORTED);
    tk_arrays_clear(&out);
    rules.size = 1;
    assert_int_equal(tk_kernel_call(ctx, &rules, &x, 1, &out), TK_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(test_vector_add),  TEST(test_new_memory),          TEST(test_bindings_are_checked),
        TEST(test_in_place),    TEST(test_findings_are_errors), TEST(test_derivatives),
        TEST(test_composition), TEST(test_missing_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
