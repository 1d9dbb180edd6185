/* Running out of memory: each allocation of a body fails in turn, and the body says so, leaks
 * nothing (the leak checker sees to that) and leaves the output as it was. */
#include "base/alloc.h"
#include "cpu_ops/body_check.h"

static const int64_t shape[] = {70, 90}, row[] = {1, 90}, tall[] = {70, 1};

/* Whether allocations were asked for is the caller's to say: `fails` at least that often. */
static void exhaust(tk_op op, const void *attrs, int n_inputs, const sample *inputs, tk_dtype dtype,
                    const int64_t *out_shape, int64_t fails) {
    tk_strided views[MOST_INPUTS];
    for (int i = 0; i < n_inputs; i++) views[i] = inputs[i].view;
    sample out = sample_new(dtype, 2, out_shape, DENSE);
    int64_t n = 0;
    tk_status status;
    do {
        tk_alloc_fail_after(++n);
        status = call_body(op, attrs, n_inputs, views, 1, &out.view);
        tk_alloc_fail_after(0);
        if (status != TK_OK) {
            assert_int_equal(status, TK_OUT_OF_MEMORY);
            for (size_t i = 0; i < out.bytes; i++) assert_int_equal(out.memory[i], 0x5a);
        }
    } while (status != TK_OK);
    assert_true(n > fails);
    sample_free(&out);
}

static void test_reductions(void **state) {
    (void)state;
    int64_t axes[] = {0, 1};
    tk_attrs_reduce outer = {.axes = {axes, 1}}, inner = {.axes = {axes + 1, 1}};
    sample dense = sample_moderate(TK_FLOAT32, 2, shape, DENSE),
           half = sample_moderate(TK_FLOAT16, 2, shape, REVERSED);
    sample turned = sample_moderate(TK_FLOAT32, 2, shape, TRANSPOSED);
    exhaust(TK_OP_reduce_sum, &outer, 1, &half, TK_FLOAT16, row, 1);
    exhaust(TK_OP_reduce_sum, &inner, 1, &turned, TK_FLOAT32, tall, 1);
    exhaust(TK_OP_softmax_axes, &outer, 1, &dense, TK_FLOAT32, shape, 2);
    exhaust(TK_OP_reduce_logsumexp, &inner, 1, &half, TK_FLOAT16, tall, 1);
    sample_free(&dense);
    sample_free(&half);
    sample_free(&turned);
}

static void test_rows(void **state) {
    (void)state;
    tk_attrs_axis axis = {.axis = 1};
    tk_attrs_partition middle = {.axis = 0, .kth = 40};
    tk_attrs_scan scan = {.axis = 0, .inclusive = 1};
    sample in = sample_moderate(TK_FLOAT32, 2, shape, SPACED);
    exhaust(TK_OP_sort_axis, &axis, 1, &in, TK_FLOAT32, shape, 2);
    exhaust(TK_OP_argsort_axis, &axis, 1, &in, TK_UINT32, shape, 2);
    exhaust(TK_OP_partition_axis, &middle, 1, &in, TK_FLOAT32, shape, 3);
    exhaust(TK_OP_scan_max, &scan, 1, &in, TK_FLOAT32, shape, 2);
    exhaust(TK_OP_reduce_argmax, &axis, 1, &in, TK_UINT32, tall, 1);
    sample_free(&in);
}

static void test_others(void **state) {
    (void)state;
    static const int64_t index_shape[] = {5}, update_shape[] = {5, 1, 90}, axes[] = {0},
                         parameter[] = {90};
    tk_attrs_scatter add = {.axes = {axes, 1}, .mode = TK_ADD};
    sample scatter[3] = {sample_moderate(TK_BFLOAT16, 2, shape, DENSE),
                         sample_moderate(TK_BFLOAT16, 3, update_shape, DENSE),
                         sample_new(TK_INT32, 1, index_shape, DENSE)};
    for (int64_t i = 0; i < 5; i++) sample_write(&scatter[2].view, i, wide_int(i));
    exhaust(TK_OP_scatter, &add, 3, scatter, TK_BFLOAT16, shape, 2);
    tk_attrs_norm norm = {.eps = 1e-5, .has_weight = 1};
    sample x[2] = {sample_moderate(TK_FLOAT32, 2, shape, REVERSED),
                   sample_moderate(TK_FLOAT32, 1, parameter, SPACED)};
    exhaust(TK_OP_rms_norm_fused, &norm, 2, x, TK_FLOAT32, shape, 2);
    tk_attrs_iota iota = {.dtype = TK_INT32, .shape = {shape, 2}, .axis = 1, .step = 1};
    exhaust(TK_OP_iota, &iota, 0, NULL, TK_INT32, shape, 1);
    for (int i = 0; i < 3; i++) sample_free(&scatter[i]);
    sample_free(&x[0]);
    sample_free(&x[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
