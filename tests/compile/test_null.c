/* NULL where devices, launches and artifacts need something. */
#include "support/kernel_files.h"
#include "support/null_check.h"
#include "tiki/bench.h"
#include "tiki/cache.h"
#include "tiki/kernel_op.h"
#include "tiki/library_op.h"
#include "tiki/target.h"

static tk_status hand_over(void *self, void *stream, void *const *inputs, void *const *outputs) {
    (void)self, (void)stream, (void)inputs, (void)outputs;
    return TK_OK;
}

static tk_status same(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return tk_arrays_push(results, args[0]);
}

static void devices(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    tk_stream_id stream;
    gives_status(tk_device_stream(P(context), P("cpu"), P(&stream)));
    gives(tk_stream_device_of(P(context), 0), NULL);
    tk_array nothing = tk_to_stream(TK_NO_ARRAY, TK_DEFAULT_STREAM);
    assert_int_equal(tk_array_status(nothing), TK_INVALID_ARGUMENT);
    assert_null(tk_array_device(TK_NO_ARRAY));
    tk_strided view;
    assert_int_equal(tk_array_view_there(tk_scalar(context, 1), NULL), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_view_there(TK_NO_ARRAY, &view), TK_INVALID_ARGUMENT);
    nothing = tk_from_memory_on(context, TK_DEFAULT_STREAM, NULL, 4, TK_SHAPE(1), NULL, TK_FLOAT32,
                                NULL, NULL);
    assert_int_equal(tk_array_status(nothing), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_stream(TK_NO_ARRAY), TK_DEFAULT_STREAM);
    tk_scope_close(scope);
    tk_context_release(context);
}

static void launches(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    tk_kernel *kernel = parse_file("examples/kernels/vector_add.tk");
    tk_array x = tk_ones(context, TK_SHAPE(4), TK_FLOAT32), inputs[] = {x, x};
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_input(1), tk_bind_output(0),
                             tk_bind_integer(4)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(4), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = kernel,
                           .n_binds = 4,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output};
    tk_arrays out = {0};
    gives_status(tk_launch(P(context), P(&spec), P(inputs), 2, P(&out)));
    spec.kernel = NULL;
    assert_int_equal(tk_launch(context, &spec, inputs, 2, &out), TK_INVALID_ARGUMENT);
    tk_kernel_rules rules = {.size = sizeof rules, .forward = same};
    gives_status(tk_kernel_call(P(context), P(&rules), P(inputs), 1, P(&out)));
    rules.forward = NULL;
    assert_int_equal(tk_kernel_call(context, &rules, inputs, 1, &out), TK_INVALID_ARGUMENT);
    tk_foreign foreign = {
        .size = sizeof foreign, .n_outputs = 1, .outputs = &output, .launch = hand_over};
    gives_status(tk_launch_foreign(P(context), P(&foreign), P(inputs), 2, P(&out)));
    foreign.launch = NULL;
    assert_int_equal(tk_launch_foreign(context, &foreign, inputs, 2, &out), TK_INVALID_ARGUMENT);
    tk_arrays_clear(&out);
    tk_kernel_release(kernel);
    tk_scope_close(scope);
    tk_context_release(context);
}

static void artifacts(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file("examples/kernels/vector_add.tk");
    tk_artifact *artifact;
    char *text;
    gives_status(tk_kernel_build_cached(P(kernel), NULL, NULL, P(&artifact), NULL));
    gives_status(tk_kernel_cache_explain(P(kernel), NULL, NULL, P(&text)));
    tk_kernel_release(kernel);
}

static void library_ops(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_array x = tk_ones(context, TK_SHAPE(4, 4), TK_FLOAT32);
    tk_library_schedule schedule;
    gives_status(tk_library_schedule_for(TK_LIBRARY_SOFTMAX, P(&x), 1, P(&schedule)));
    assert_int_equal(tk_array_status(tk_kernel_softmax(TK_NO_ARRAY, NULL)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_kernel_transpose(TK_NO_ARRAY, NULL)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_kernel_column_sum(TK_NO_ARRAY, NULL)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_kernel_matmul(TK_NO_ARRAY, x, NULL)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_kernel_hopper_matmul(TK_NO_ARRAY, x, NULL)),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_kernel_rms_norm(TK_NO_ARRAY, x, 1e-5, NULL)),
                     TK_INVALID_ARGUMENT);
    tk_release(x);
    tk_context_release(context);
}

static void benches(void **state) {
    (void)state;
    tk_bench_spec spec = {0};
    tk_bench_result result = {0};
    char *text;
    gives_status(tk_bench_kernel(P(&spec), P(&result)));
    gives_status(tk_bench_print(P(&spec), P(&result), P(&text)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(benches),   cmocka_unit_test(devices),     cmocka_unit_test(launches),
        cmocka_unit_test(artifacts), cmocka_unit_test(library_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
