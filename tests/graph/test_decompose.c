/* Fused ops and their gradient ops against the compositions that define them, in every float dtype.
 */
#include "support/arrays.h"
#include "support/samples.h"

#include <math.h>

#include "array/context.h"
#include "graph/vjp.h"

#define MAX_VALUES 256

static double bound_of(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT64:
        return 1e-13;
    case TK_FLOAT32:
        return 4e-6;
    case TK_FLOAT16:
        return 4e-3;
    default:
        return 3e-2;
    }
}

static tk_status apply_parts(tk_context *context, const sample *s, tk_arrays *results) {
    tk_node *nodes[SAMPLE_INPUTS], *parts[4];
    tk_array out[4];
    tk_builder b;
    for (size_t i = 0; i < s->n_inputs; i++) nodes[i] = s->inputs[i].node;
    tk_graph_lock(&context->graph);
    tk_builder_open(&b, &context->graph, 0);
    tk_node *fused = tkb_node(&b, s->op, s->n_inputs, nodes, s->attrs);
    uint32_t n_outputs = fused->n_outputs;
    tk_status status = tkb_decompose(&b, fused, nodes, parts);
    for (uint32_t i = 0; i < n_outputs && status == TK_OK; i++)
        out[i] = tk_handle_give(context, parts[i]);
    tk_builder_close(&b);
    tk_graph_unlock(&context->graph);
    for (uint32_t i = 0; i < n_outputs && status == TK_OK; i++)
        status = tk_arrays_push(results, out[i]);
    return status;
}

static bool close_to(double a, double b, double bound) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= bound * (1 + fabs(b));
}

static void expect_equal(const sample *s, int index, tk_array got, tk_array expected,
                         double bound) {
    double a[MAX_VALUES], b[MAX_VALUES];
    size_t size = (size_t)tk_array_size(expected);
    assert_true(size <= MAX_VALUES);
    assert_int_equal(tk_array_dtype(got), tk_array_dtype(expected));
    assert_int_equal(tk_array_size(got), (int64_t)size);
    assert_ok(tk_copy_out(tk_astype(got, TK_FLOAT64), a, size * sizeof *a));
    assert_ok(tk_copy_out(tk_astype(expected, TK_FLOAT64), b, size * sizeof *b));
    for (size_t i = 0; i < size; i++)
        if (!close_to(a[i], b[i], bound))
            fail_msg("%s, sample %d, %s, element %zu: fused %.9g, composed %.9g", tk_op_name(s->op),
                     index, tk_dtype_name(tk_array_dtype(got)), i, a[i], b[i]);
}

static void compare(tk_context *context, const sample *s, int index, tk_dtype dtype) {
    tk_arrays fused = {0}, parts = {0};
    assert_ok(sample_apply(context, s, s->inputs, &fused));
    assert_ok(apply_parts(context, s, &parts));
    assert_int_equal(fused.count, parts.count);
    for (size_t i = 0; i < parts.count; i++)
        expect_equal(s, index, fused.items[i], parts.items[i], bound_of(dtype));
    tk_arrays_clear(&fused);
    tk_arrays_clear(&parts);
}

static void op_is_its_composition(void **state) {
    tk_op op = *(const tk_op *)*state;
    tk_context *context = make_context();
    for (tk_dtype dtype = TK_FLOAT16; dtype <= TK_FLOAT64; dtype++) {
        for (int index = 0; index < sample_count(op); index++) {
            tk_scope scope = tk_scope_open(context);
            sample s;
            assert_true(sample_make(context, op, index, dtype, &s));
            compare(context, &s, index, dtype);
            tk_scope_close(scope);
        }
    }
    tk_context_release(context);
}

static void primitives_have_none(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    sample s;
    tk_arrays none = {0};
    assert_true(sample_make(context, TK_OP_exp, 0, TK_FLOAT32, &s));
    assert_int_equal(apply_parts(context, &s, &none), TK_UNSUPPORTED);
    tk_scope_close(scope);
    tk_context_release(context);
}

int main(void) {
    static tk_op ops[TK_OP_COUNT];
    static struct CMUnitTest tests[TK_OP_COUNT + 1];
    size_t count = 0;
    for (int op = 0; op < TK_OP_COUNT; op++) {
        if (tk_op_of((tk_op)op)->lower != TK_LOWER_FUSED || sample_count((tk_op)op) == 0) continue;
        ops[op] = (tk_op)op;
        tests[count++] = (struct CMUnitTest){.name = tk_op_name((tk_op)op),
                                             .test_func = op_is_its_composition,
                                             .initial_state = &ops[op]};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(primitives_have_none);
    return _cmocka_run_group_tests("decompose", tests, count, NULL, NULL);
}
