/* Random builders: for a key the values that MLX gives, exactly where only bits and single
 * operations decide them, within rounding where functions like erfinv do; ranges; refusals. */
#include "support/build_check.h"

#define KEY tk_random_key(ctx, 7)

static void keys(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_random_key(ctx, 1099511627781), TK_UINT32, TK_SHAPE(2), 256, 5);
    CHECK(tk_random_key(ctx, -1), TK_UINT32, TK_SHAPE(2), 4294967295, 4294967295);
    CHECK(tk_random_split(KEY, 3), TK_UINT32, TK_SHAPE(3, 2), 276534068, 861967409, 1905761346,
          1641862660, 2900896126, 1402713516);
    CHECK_EMPTY(tk_random_split(KEY, 0), TK_UINT32, TK_SHAPE(0, 2));
    CHECK_ERROR(tk_random_split(KEY, -1), TK_INVALID_ARGUMENT, "random_split: num is -1");
    CHECK_ERROR(tk_random_bits(KEY, TK_SHAPE(2), 3), TK_INVALID_ARGUMENT, "random_bits: width 3");
    tk_array wrong = tk_zeros(ctx, TK_SHAPE(3), TK_UINT32);
    CHECK_ERROR(tk_random_uniform(ctx, 0, 1, TK_SCALAR, TK_FLOAT32, wrong), TK_SHAPE_ERROR,
                "random_uniform: key is u32(3,)");
    tk_scope_close(scope);
}

/* Bits of different width come from one key; they must not be taken for one another. */
static void widths_are_kept_apart(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array wide = tk_random_bits(KEY, TK_SHAPE(4), 4),
             narrow = tk_random_bits(KEY, TK_SHAPE(4), 2);
    assert_false(tk_array_same(wide, narrow));
    assert_int_equal(tk_array_dtype(wide), TK_UINT32);
    assert_int_equal(tk_array_dtype(narrow), TK_UINT16);
    assert_int_equal(tk_array_dtype(tk_random_bits(KEY, TK_SHAPE(4), 1)), TK_UINT8);
    CHECK_SAME(tk_random_bits(KEY, TK_SHAPE(4), 4), wide);
    CHECK(wide, TK_UINT32, TK_SHAPE(4), 966301609, 989289821, 1948237315, 1058547403);
    tk_scope_close(scope);
}

static void uniforms(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_random_uniform(ctx, 0, 1, TK_SHAPE(5), TK_FLOAT32, KEY), TK_FLOAT32, TK_SHAPE(5),
          0.064385607838630676, 0.20069243013858795, 0.65045922994613647, 0.38227593898773193,
          0.67541748285293579);
    CHECK(tk_random_uniform(ctx, -2, 3.5, TK_SHAPE(2, 2), TK_FLOAT32, KEY), TK_FLOAT32,
          TK_SHAPE(2, 2), -0.76258456707000732, -0.73314666748046875, 0.49485135078430176,
          -0.64445745944976807);
    CHECK(tk_random_uniform(ctx, -2, 3.5, TK_SHAPE(5), TK_FLOAT16, KEY), TK_FLOAT16, TK_SHAPE(5),
          -1.6455078125, -0.896484375, 1.578125, 0.103515625, 1.71484375);
    CHECK(tk_random_uniform(ctx, 0.1, 0.7, TK_SHAPE(5), TK_BFLOAT16, KEY), TK_BFLOAT16, TK_SHAPE(5),
          0.138671875, 0.220703125, 0.490234375, 0.328125, 0.50390625);
    CHECK(tk_random_uniform(ctx, 0, 1, TK_SCALAR, TK_FLOAT32, KEY), TK_FLOAT32, TK_SCALAR,
          0.84410697221755981);
    tk_array halves = tk_random_uniform(ctx, 0, 1, TK_SHAPE(100000), TK_BFLOAT16, KEY);
    CHECK(tk_all(tk_less(halves, tk_scalar(ctx, 1)), TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 1);
    tk_array doubles = tk_random_uniform(ctx, -1, 3, TK_SHAPE(100000), TK_FLOAT64, KEY);
    CHECK_NEAR(tk_mean(doubles, TK_ALL_AXES, false), TK_FLOAT64, TK_SCALAR, 0.02, 1);
    CHECK_NEAR(tk_var(doubles, TK_ALL_AXES, false, 0), TK_FLOAT64, TK_SCALAR, 0.02,
               1.3333333333333333);
    CHECK_ERROR(tk_random_uniform(ctx, 0, 1, TK_SCALAR, TK_INT32, KEY), TK_DTYPE_ERROR,
                "random_uniform: dtype is int32");
    CHECK_ERROR(tk_random_uniform(ctx, 0, 1, TK_ALL_AXES, TK_FLOAT32, KEY), TK_INVALID_ARGUMENT,
                "random_uniform");
    const int64_t huge = (int64_t)1 << 40;
    CHECK_ERROR(tk_random_uniform(ctx, 0, 1, TK_SHAPE(huge, huge), TK_FLOAT32, KEY), TK_OVERFLOW,
                "63 bits");
    CHECK_ERROR(tk_random_uniform(ctx, 0, 1, TK_SHAPE(huge, huge), TK_FLOAT64, KEY), TK_OVERFLOW,
                "63 bits");
    tk_scope_close(scope);
}

static void distributions(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK_NEAR(tk_random_normal(ctx, TK_SHAPE(6), TK_FLOAT32, 0, 1, KEY), TK_FLOAT32, TK_SHAPE(6),
               1e-6, -1.51896501, -0.83915031, -0.141545042, -0.299508691, 0.454922527,
               -0.449335843);
    CHECK_NEAR(tk_random_normal(ctx, TK_SHAPE(6), TK_FLOAT32, 1.5, 0.3, KEY), TK_FLOAT32,
               TK_SHAPE(6), 1e-6, 1.04431045, 1.2482549, 1.45753646, 1.41014743, 1.63647676,
               1.36519921);
    CHECK(tk_random_normal(ctx, TK_SHAPE(6), TK_BFLOAT16, 0, 0.3, KEY), TK_BFLOAT16, TK_SHAPE(6),
          -0.455078125, -0.251953125, -0.042724609375, -0.09033203125, 0.1376953125, -0.1357421875);
    CHECK(tk_random_normal(ctx, TK_SHAPE(6), TK_FLOAT16, 0.5, 0.7, KEY), TK_FLOAT16, TK_SHAPE(6),
          -0.5634765625, -0.08740234375, 0.40087890625, 0.290283203125, 0.818359375, 0.185546875);
    CHECK_NEAR(tk_random_laplace(ctx, TK_SHAPE(6), TK_FLOAT32, 1.5, 0.3, KEY), TK_FLOAT32,
               TK_SHAPE(6), 1e-6, 2.11491513, 1.77385032, 1.53582454, 1.58053958, 1.37037945,
               1.62776649);
    CHECK(tk_random_laplace(ctx, TK_SHAPE(6), TK_BFLOAT16, 0, 1, KEY), TK_BFLOAT16, TK_SHAPE(6),
          2.046875, 0.9140625, 0.11962890625, 0.267578125, -0.431640625, 0.42578125);
    CHECK_NEAR(tk_random_gumbel(ctx, TK_SHAPE(6), TK_FLOAT32, KEY), TK_FLOAT32, TK_SHAPE(6), 1e-6,
               -1.00900304, -0.473735213, 0.20756264, 0.0391436294, 0.935411692, -0.112467028);
    CHECK(tk_random_gumbel(ctx, TK_SHAPE(6), TK_FLOAT16, KEY), TK_FLOAT16, TK_SHAPE(6),
          -1.0087890625, -0.47412109375, 0.20703125, 0.039337158203125, 0.93505859375,
          -0.112548828125);
    CHECK_NEAR(tk_random_truncated_normal(ctx, -1.2, 2.3, TK_SHAPE(6), TK_FLOAT32, KEY), TK_FLOAT32,
               TK_SHAPE(6), 1e-5, -0.948820114, -0.551877081, 0.00745023321, -0.127536982,
               0.540355027, -0.251844078);
    CHECK_ERROR(tk_random_truncated_normal(ctx, 2, 1, TK_SHAPE(3), TK_FLOAT32, KEY),
                TK_INVALID_ARGUMENT, "bounds 2 and 1");
    tk_array many = tk_random_normal(ctx, TK_SHAPE(100000), TK_FLOAT64, 2, 3, KEY);
    CHECK_NEAR(tk_mean(many, TK_ALL_AXES, false), TK_FLOAT64, TK_SCALAR, 0.02, 2);
    CHECK_NEAR(tk_std(many, TK_ALL_AXES, false, 0), TK_FLOAT64, TK_SCALAR, 0.01, 3);
    tk_scope_close(scope);
}

static void integers(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_random_randint(ctx, -5, 17, TK_SHAPE(8), TK_INT8, KEY), TK_INT8, TK_SHAPE(8), -5, 3, 2,
          -3, 10, 16, 14, 13);
    CHECK(tk_random_randint(ctx, 0, 1073741824, TK_SHAPE(4), TK_UINT32, KEY), TK_UINT32,
          TK_SHAPE(4), 241575408, 247322448, 487059328, 264636848);
    CHECK(tk_random_randint(ctx, -300, 300, TK_SHAPE(2, 2), TK_INT64, KEY), TK_INT64,
          TK_SHAPE(2, 2), -166, -162, -28, -153);
    CHECK(tk_random_randint(ctx, 0, 2, TK_SHAPE(6), TK_BOOL, KEY), TK_BOOL, TK_SHAPE(6), 0, 0, 0, 0,
          1, 0);
    tk_array close = tk_random_randint(ctx, 8388608, 8388609, TK_SHAPE(10000), TK_INT32, KEY);
    CHECK(tk_max(close, TK_ALL_AXES, false), TK_INT32, TK_SCALAR, 8388608);
    CHECK_ERROR(tk_random_randint(ctx, 5, 5, TK_SCALAR, TK_INT32, KEY), TK_INVALID_ARGUMENT,
                "low is 5 and high 5");
    CHECK_ERROR(tk_random_randint(ctx, -1, 5, TK_SCALAR, TK_UINT8, KEY), TK_OVERFLOW,
                "-1 to 4 does not fit uint8");
    CHECK_ERROR(tk_random_randint(ctx, 0, 257, TK_SCALAR, TK_UINT8, KEY), TK_OVERFLOW, "0 to 256");
    CHECK_ERROR(tk_random_randint(ctx, 0, 5, TK_SCALAR, TK_FLOAT32, KEY), TK_DTYPE_ERROR,
                "random_randint");
    tk_scope_close(scope);
}

static void choices(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array p = tk_divide(ramp(ctx, TK_FLOAT32, TK_SHAPE(5)), tk_scalar(ctx, 4));
    CHECK(tk_random_bernoulli(p, TK_ALL_AXES, KEY), TK_BOOL, TK_SHAPE(5), 0, 1, 0, 1, 1);
    CHECK(tk_random_bernoulli(p, TK_SHAPE(2, 5), KEY), TK_BOOL, TK_SHAPE(2, 5), 0, 1, 1, 0, 1, 0, 1,
          0, 1, 1);
    CHECK(tk_all(tk_random_bernoulli(tk_scalar(ctx, 1), TK_SHAPE(10000), KEY), TK_ALL_AXES, false),
          TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_any(tk_random_bernoulli(tk_scalar(ctx, 0), TK_SHAPE(10000), KEY), TK_ALL_AXES, false),
          TK_BOOL, TK_SCALAR, 0);
    CHECK_ERROR(tk_random_bernoulli(p, TK_SHAPE(3), KEY), TK_SHAPE_ERROR,
                "random_bernoulli: p is f32(5,)");
    CHECK_ERROR(tk_random_bernoulli(tk_scalar_int(ctx, 1), TK_SCALAR, KEY), TK_DTYPE_ERROR,
                "random_bernoulli: p is i32()");
    tk_array logits = mixed(ctx, TK_FLOAT32, TK_SHAPE(2, 3));
    CHECK(tk_random_categorical(logits, -1, -1, KEY), TK_UINT32, TK_SHAPE(2), 1, 0);
    CHECK(tk_random_categorical(logits, 0, -1, KEY), TK_UINT32, TK_SHAPE(3), 1, 1, 0);
    CHECK(tk_random_categorical(logits, -1, 4, KEY), TK_UINT32, TK_SHAPE(2, 4), 1, 1, 1, 1, 0, 1, 0,
          0);
    CHECK_ERROR(tk_random_categorical(tk_scalar(ctx, 1), -1, -1, KEY), TK_AXIS_ERROR,
                "random_categorical: axis -1");
    CHECK(tk_random_permutation(ramp(ctx, TK_INT32, TK_SHAPE(5, 2)), 0, KEY), TK_INT32,
          TK_SHAPE(5, 2), 0, 1, 2, 3, 6, 7, 4, 5, 8, 9);
    CHECK(tk_random_permutation(ramp(ctx, TK_INT32, TK_SHAPE(5, 2)), -1, KEY), TK_INT32,
          TK_SHAPE(5, 2), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    tk_scope_close(scope);
}

/* Without a key the thread's own is split, from seed 0 on as in MLX. */
static void implicit_key(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_random_seed(ctx, 0);
    CHECK(tk_random_uniform(ctx, 0, 1, TK_SHAPE(3), TK_FLOAT32, TK_NO_ARRAY), TK_FLOAT32,
          TK_SHAPE(3), 0.87241435050964355, 0.11105155944824219, 0.27708053588867188);
    CHECK(tk_random_uniform(ctx, 0, 1, TK_SHAPE(3), TK_FLOAT32, TK_NO_ARRAY), TK_FLOAT32,
          TK_SHAPE(3), 0.47366008162498474, 0.56622278690338135, 0.88060235977172852);
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),         cmocka_unit_test(widths_are_kept_apart),
        cmocka_unit_test(uniforms),     cmocka_unit_test(distributions),
        cmocka_unit_test(integers),     cmocka_unit_test(choices),
        cmocka_unit_test(implicit_key),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
