/* Fused layers: dtypes of results and the forms that arguments may have; the values follow MLX's.
 */
#include "support/build_check.h"

static void norms(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = mixed(ctx, TK_FLOAT32, TK_SHAPE(2, 4)), half = tk_astype(x, TK_FLOAT16);
    tk_array w = ramp(ctx, TK_FLOAT32, TK_SHAPE(4)), none = TK_NO_ARRAY;
    CHECK_NEAR(tk_rms_norm(x, w, 1e-5), TK_FLOAT32, TK_SHAPE(2, 4), 1e-6, 0, 0.52522558,
               -1.05045116, 3.93919182, 0, -1.17669594, 3.13785577, 0);
    CHECK_NEAR(tk_rms_norm(half, w, 1e-5), TK_FLOAT32, TK_SHAPE(2, 4), 1e-6, 0, 0.52522558,
               -1.05045116, 3.93919182, 0, -1.17669594, 3.13785577, 0);
    CHECK_NEAR(tk_rms_norm(half, none, 1e-5), TK_FLOAT16, TK_SHAPE(2, 4), 1e-3, -1.31347656,
               0.525390625, -0.525390625, 1.31347656, 0.392333984, -1.17675781, 1.56933594, 0);
    CHECK_NEAR(tk_layer_norm(x, w, w, 1e-5), TK_FLOAT32, TK_SHAPE(2, 4), 1e-6, 0, 1.52522564,
               0.949548841, 6.93919182, 0, -0.399999022, 4.79999828, 2.40000057);
    CHECK_NEAR(tk_layer_norm(x, none, none, 1e-5), TK_FLOAT32, TK_SHAPE(2, 4), 1e-6, -1.31306398,
               0.52522558, -0.52522558, 1.31306398, 0.199999854, -1.39999902, 1.39999902,
               -0.199999854);
    CHECK_NEAR(tk_layer_norm(half, none, w, 1e-5), TK_FLOAT16, TK_SHAPE(2, 4), 2e-3, -1.31347656,
               1.52539062, 1.47460938, 4.3125, 0.199951172, -0.400390625, 3.40039062, 2.80078125);
    CHECK_NEAR(tk_layer_norm(half, w, none, 1e-5), TK_FLOAT32, TK_SHAPE(2, 4), 1e-6, 0, 0.52522558,
               -1.05045116, 3.93919182, 0, -1.39999902, 2.79999804, -0.599999547);
    CHECK_NEAR(tk_rms_norm(mixed(ctx, TK_INT8, TK_SHAPE(2, 4)), none, 1e-5), TK_FLOAT32,
               TK_SHAPE(2, 4), 1e-6, -1.31306398, 0.52522558, -0.52522558, 1.31306398, 0.392231971,
               -1.17669594, 1.56892788, 0);
    CHECK_ERROR(tk_rms_norm(x, ramp(ctx, TK_FLOAT32, TK_SHAPE(3)), 1e-5), TK_SHAPE_ERROR,
                "rms_norm: weight is f32(3,)");
    CHECK_ERROR(tk_layer_norm(x, none, x, 1e-5), TK_SHAPE_ERROR, "layer_norm: bias is f32(2, 4)");
    CHECK_ERROR(tk_layer_norm(tk_scalar(ctx, 1), none, none, 1e-5), TK_SHAPE_ERROR,
                "layer_norm: x is f32()");
    CHECK_ERROR(tk_rms_norm(tk_astype(x, TK_COMPLEX64), none, 1e-5), TK_DTYPE_ERROR, "rms_norm");
    tk_scope_close(scope);
}

static void ropes(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = mixed(ctx, TK_FLOAT32, TK_SHAPE(2, 2, 4)), zero = tk_scalar_int(ctx, 0);
    tk_array three = tk_scalar_int(ctx, 3),
             offsets = tk_add(ramp(ctx, TK_INT32, TK_SHAPE(2)),
                              tk_add(ramp(ctx, TK_INT32, TK_SHAPE(2)), three));
    tk_array freqs = tk_add(ramp(ctx, TK_FLOAT32, TK_SHAPE(2)), tk_scalar(ctx, 2));
    CHECK_NEAR(tk_rope(x, 4, false, 100, 1, zero, TK_NO_ARRAY), TK_FLOAT32, TK_SHAPE(2, 2, 4), 1e-5,
               -5, 2, -2, 5, -2.82558155, -2.98501253, 3.00268006, -0.299500287, -4, 3, -1, -5,
               -3.12674999, -2.08984184, 4.3844533, 0.795337319);
    CHECK_NEAR(tk_rope(x, 2, true, 100, 0.5, three, TK_NO_ARRAY), TK_FLOAT32, TK_SHAPE(2, 2, 4),
               1e-5, -2.34867597, -4.84600067, -2, 5, 2.31174541, 2.15773797, 4, 0, -3.27543378,
               -3.77776837, -1, -5, 0.986301184, 2.65088844, 5, 1);
    CHECK_NEAR(tk_rope(x, 4, true, 100, 1, offsets, TK_NO_ARRAY), TK_FLOAT32, TK_SHAPE(2, 2, 4),
               1e-5, 4.6677227, -2.68558502, -3.38827419, 4.18564177, -2.92405105, 1.20412827,
               3.68424392, 1.55767345, 1.7421242, 4.68668365, 1.51954532, -4.86733818, 1.36150956,
               -2.47917151, 3.56203556, 3.64854813);
    CHECK_NEAR(tk_rope(x, 4, false, NAN, 1, three, freqs), TK_FLOAT32, TK_SHAPE(2, 2, 4), 1e-5,
               1.64130402, -3.12674999, -5.12894917, 4.3844533, -4.05333662, -0.705712616,
               -0.755289853, -2.91581368, 0.714546204, 5.82826138, -4.06071711, -0.177098513,
               -5.37878036, -1.44241297, -0.262139201, -1.70863819);
    CHECK_NEAR(tk_rope(tk_reshape(x, TK_SHAPE(4, 4)), 4, false, 100, 1, zero, TK_NO_ARRAY),
               TK_FLOAT32, TK_SHAPE(4, 4), 1e-5, -5, 2, -2, 5, -2.82558155, -2.98501253, 3.00268006,
               -0.299500287, 2.57388473, 3.93354654, -3.22104287, -4.3043251, -2.68558502,
               -2.20619321, -4.6677227, 0.364296079);
    CHECK_ERROR(tk_rope(x, 3, false, 100, 1, zero, TK_NO_ARRAY), TK_SHAPE_ERROR, "dims is 3");
    CHECK_ERROR(tk_rope(x, 6, false, 100, 1, zero, TK_NO_ARRAY), TK_SHAPE_ERROR, "dims is 6");
    CHECK_ERROR(tk_rope(x, 4, false, 100, 1, tk_scalar(ctx, 1.5), TK_NO_ARRAY), TK_DTYPE_ERROR,
                "rope: offset is f32()");
    CHECK_ERROR(tk_rope(x, 4, false, 0, 1, zero, ramp(ctx, TK_FLOAT32, TK_SHAPE(3))),
                TK_SHAPE_ERROR, "rope: freqs");
    tk_scope_close(scope);
}

static void attention(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array q = mixed(ctx, TK_FLOAT32, TK_SHAPE(1, 2, 2, 2)),
             k = mixed(ctx, TK_FLOAT32, TK_SHAPE(1, 1, 3, 2));
    tk_array v = ramp(ctx, TK_FLOAT32, TK_SHAPE(1, 1, 3, 2)), none = TK_NO_ARRAY;
    tk_array allowed = tk_greater(mixed(ctx, TK_INT32, TK_SHAPE(3)), tk_scalar_int(ctx, -4));
    CHECK_NEAR(tk_scaled_dot_product_attention(q, k, v, 0.1, none, false), TK_FLOAT32,
               TK_SHAPE(1, 2, 2, 2), 1e-6, 0.622086465, 1.62208652, 1.44019234, 2.44019222,
               3.47528219, 4.47528219, 3.30652237, 4.30652237);
    CHECK_NEAR(tk_scaled_dot_product_attention(q, k, v, 0.1, none, true), TK_FLOAT32,
               TK_SHAPE(1, 2, 2, 2), 1e-6, 0.578100979, 1.57810104, 1.44019234, 2.44019222,
               0.708687365, 1.70868731, 3.30652237, 4.30652237);
    CHECK_NEAR(tk_scaled_dot_product_attention(q, k, v, 0.1, allowed, false), TK_FLOAT32,
               TK_SHAPE(1, 2, 2, 2), 1e-6, 2.08621454, 3.08621454, 2.01990342, 3.01990342,
               3.87405324, 4.874053, 3.53704977, 4.53704977);
    CHECK_NEAR(tk_scaled_dot_product_attention(q, k, v, 0.1, tk_scalar_bool(ctx, true), false),
               TK_FLOAT32, TK_SHAPE(1, 2, 2, 2), 1e-6, 0.622086465, 1.62208652, 1.44019234,
               2.44019222, 3.47528219, 4.47528219, 3.30652237, 4.30652237);
    CHECK_NEAR(tk_scaled_dot_product_attention(q, k, v, 0.1, mixed(ctx, TK_FLOAT16, TK_SHAPE(2, 1)),
                                               false),
               TK_FLOAT32, TK_SHAPE(1, 2, 2, 2), 1e-6, 0.622086465, 1.62208652, 1.44019234,
               2.44019222, 3.47528219, 4.47528219, 3.30652237, 4.30652237);
    CHECK(tk_scaled_dot_product_attention(q, k, v, 0.1, tk_zeros(ctx, TK_SHAPE(3), TK_BOOL), false),
          TK_FLOAT32, TK_SHAPE(1, 2, 2, 2), 0, 0, 0, 0, 0, 0, 0, 0);
    assert_int_equal(tk_array_dtype(tk_scaled_dot_product_attention(tk_astype(q, TK_FLOAT16), k, v,
                                                                    1, none, false)),
                     TK_FLOAT32);
    CHECK_ERROR(tk_scaled_dot_product_attention(k, q, q, 1, none, false), TK_SHAPE_ERROR,
                "H a multiple of Hk");
    CHECK_ERROR(tk_scaled_dot_product_attention(q, k, allowed, 1, none, false), TK_SHAPE_ERROR,
                "v is bool(3,), expected four axes");
    CHECK_ERROR(
        tk_scaled_dot_product_attention(q, k, v, 1, tk_zeros(ctx, TK_SHAPE(4), TK_BOOL), false),
        TK_SHAPE_ERROR, "mask is bool(4,)");
    tk_scope_close(scope);
}

static void losses(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array logits = mixed(ctx, TK_FLOAT32, TK_SHAPE(2, 3)),
             targets = tk_add(ramp(ctx, TK_INT32, TK_SHAPE(2)), tk_scalar_int(ctx, 1));
    CHECK_NEAR(tk_cross_entropy(logits, targets), TK_FLOAT32, TK_SHAPE(2), 1e-6, 0.0190449916,
               8.01847935);
    CHECK_NEAR(tk_cross_entropy(tk_astype(logits, TK_FLOAT16), targets), TK_FLOAT16, TK_SHAPE(2),
               1e-3, 0.0190449916, 8.01847935);
    CHECK_EMPTY(tk_cross_entropy(tk_zeros(ctx, TK_SHAPE(0, 3), TK_FLOAT32),
                                 tk_zeros(ctx, TK_SHAPE(0), TK_INT32)),
                TK_FLOAT32, TK_SHAPE(0));
    CHECK_ERROR(tk_cross_entropy(logits, logits), TK_DTYPE_ERROR,
                "cross_entropy: targets is f32(2, 3)");
    CHECK_ERROR(tk_cross_entropy(logits, ramp(ctx, TK_INT32, TK_SHAPE(3))), TK_SHAPE_ERROR,
                "cross_entropy: logits are f32(2, 3)");
    assert_int_equal(tk_eval(tk_cross_entropy(logits, tk_multiply(targets, targets))),
                     TK_INDEX_ERROR);
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms),
        cmocka_unit_test(ropes),
        cmocka_unit_test(attention),
        cmocka_unit_test(losses),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
