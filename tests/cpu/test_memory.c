/* Every kernel that needs scratch memory, with the n-th allocation failing for each n until it
 * succeeds: the failure is reported, nothing is lost (the leak checker of the sanitized build sees
 * to that), and the same call then works. */
#include <string.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/attention.h"
#include "cpu/gemm.h"
#include "cpu/norm.h"
#include "cpu/vec_reduce.h"
#include "cpu_check.h"

enum { ROWS = 60, COLUMNS = 70 };

static float x[200000], y[200000], out[200000], more[200000];
static uint16_t halves[ROWS * COLUMNS], half_out[ROWS * COLUMNS];

static tk_status run_reduce_rows(void) {
    return tk_reduce_rows(TK_VEC_SUM, TK_FLOAT32, x, 1, 200000, 0, out);
}
static tk_status run_reduce_outer(void) {
    return tk_reduce_outer(TK_VEC_SUM, TK_FLOAT32, x, 4000, 50, 50, out);
}
static tk_status run_packed(void) {
    tk_gemm_args args = {.dtype = TK_FLOAT32,
                         .way = TK_GEMM_PACKED,
                         .m = ROWS,
                         .n = ROWS,
                         .k = COLUMNS,
                         .a = x,
                         .a_row = COLUMNS,
                         .a_column = 1,
                         .b = y,
                         .b_row = 1,
                         .b_column = COLUMNS,
                         .c = out,
                         .c_row = ROWS,
                         .c_column = 1,
                         .alpha = 1};
    return tk_gemm(&args);
}
static tk_status run_half_product(void) {
    return tk_gemm_dense(TK_BFLOAT16, 20, 30, 40, halves, halves, half_out);
}
static tk_status run_norm(void) {
    return tk_cpu_layer_norm(TK_BFLOAT16, halves, halves, halves, 1e-5, half_out, ROWS, COLUMNS);
}
static tk_status run_norm_backward(void) {
    return tk_cpu_layer_norm_backward(TK_FLOAT32, x, y, 1e-5, y, out, more, more + COLUMNS, ROWS,
                                      COLUMNS);
}
static tk_status run_rope(void) {
    int64_t offset = 3;
    tk_rope_args args = {.dtype = TK_FLOAT16,
                         .batch = 1,
                         .heads = 2,
                         .length = 9,
                         .head_dim = 8,
                         .dims = 8,
                         .base = 1e4,
                         .scale = 1,
                         .offsets = &offset,
                         .offset_count = 1};
    return tk_cpu_rope(&args, halves, half_out);
}

static tk_attention_args attention_args(tk_dtype dtype) {
    tk_attention_strides strides = {160, 80, 8};
    return (tk_attention_args){.dtype = dtype,
                               .batch = 2,
                               .q_heads = 2,
                               .kv_heads = 2,
                               .q_length = 10,
                               .k_length = 10,
                               .head_dim = 8,
                               .value_dim = 8,
                               .scale = 1,
                               .q = x,
                               .k = y,
                               .v = x,
                               .q_strides = strides,
                               .k_strides = strides,
                               .v_strides = strides};
}
static tk_status run_attention(void) {
    tk_attention_args args = attention_args(TK_FLOAT32);
    return tk_attention(&args, out, args.q_strides, more);
}
static tk_status run_attention_f64(void) {
    tk_attention_args args = attention_args(TK_FLOAT64);
    return tk_attention(&args, out, args.q_strides, more);
}
static tk_status run_attention_backward(void) {
    tk_attention_args args = attention_args(TK_FLOAT32);
    return tk_attention_backward(&args, x, y, x, out, out + 1000, out + 2000);
}

static void test_failing_allocations(void **state) {
    (void)state;
    static tk_status (*const runs[])(void) = {
        run_reduce_rows,   run_reduce_outer,      run_packed, run_half_product,
        run_norm,          run_norm_backward,     run_rope,   run_attention,
        run_attention_f64, run_attention_backward};
    fill_unit_f32(1, x, 200000);
    fill_unit_f32(2, y, 200000);
    for (size_t r = 0; r < COUNT(runs); r++) {
        int64_t failures = 0;
        tk_status status = TK_OUT_OF_MEMORY;
        while (status != TK_OK) {
            tk_alloc_fail_after(failures + 1);
            status = runs[r]();
            tk_alloc_fail_after(0);
            assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
            failures += status != TK_OK;
            assert_true(failures < 100);
        }
        assert_true(failures >= 1);
        assert_int_equal(runs[r](), TK_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failing_allocations)};
    if (tk_pool_set_threads(1) != TK_OK) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
