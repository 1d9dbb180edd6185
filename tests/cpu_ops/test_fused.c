/* Products, normalisation, rotary positions, attention, cross entropy and random bits as bodies:
 * the operands' layouts and dtypes, optional operands, empty arrays. The kernels have tests of
 * their own; here plain formulas in long double say what one call must give, and every layout must
 * give what the dense one gives. */
#include "cpu_ops/body_check.h"

static const tk_dtype float_dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};

static bool close_to(tk_dtype dtype, wide got, real expected, real size, real units) {
    return part_close(dtype, got.re, wide_round(dtype, wide_real(expected)).re, size, units);
}

/* ---- product ---- */

static void run_product(tk_dtype dtype, int rank, const int64_t *a_shape, const int64_t *b_shape,
                        layout how) {
    int64_t shape[8];
    memcpy(shape, a_shape, (size_t)rank * sizeof *shape);
    shape[rank - 1] = b_shape[rank - 1];
    sample inputs[2] = {sample_moderate(dtype, rank, a_shape, how),
                        sample_moderate(dtype, rank, b_shape, (layout)((how + 3) % LAYOUTS))};
    sample out = call_sample(TK_OP_product, NULL, 2, inputs, dtype, rank, shape);
    int64_t columns = shape[rank - 1], depth = a_shape[rank - 1];
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t row = i / columns, matrix = row / shape[rank - 2];
        wide total = {0, 0, 0};
        real size = 0;
        for (int64_t k = 0; k < depth; k++) {
            wide a = sample_read(&inputs[0].view, row * depth + k);
            wide b = sample_read(&inputs[1].view, (matrix * depth + k) * columns + i % columns);
            total.re += a.re * b.re - a.im * b.im;
            total.im += a.re * b.im + a.im * b.re;
            total.integer += a.integer * b.integer;
            size += hypotl(a.re, a.im) * hypotl(b.re, b.im);
        }
        wide got = sample_read(&out.view, i), expected = wide_round(dtype, total);
        bool close = is_whole(dtype) ? got.integer == expected.integer
                                     : part_close(dtype, got.re, expected.re, size, 4) &&
                                           part_close(dtype, got.im, expected.im, size, 4);
        if (!close) fail_at("product", dtype, i, got, expected);
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static void test_product(void **state) {
    (void)state;
    static const int64_t a[] = {2, 3, 5, 7}, b[] = {2, 3, 7, 4}, tall[] = {33, 65},
                         wide_b[] = {65, 40};
    static const int64_t hollow[] = {2, 3, 5, 0}, hollow_b[] = {2, 3, 0, 4}, none[] = {0, 3, 5, 7},
                         none_b[] = {0, 3, 7, 4};
    static const int64_t deep[] = {2, 1, 2, 2, 1, 2, 3, 2}, deep_b[] = {2, 1, 2, 2, 1, 2, 2, 3};
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int how = 0; accepts(TK_OP_product, all_dtypes[d]) && how < LAYOUTS; how++) {
                run_product(all_dtypes[d], 4, a, b, (layout)how);
                run_product(all_dtypes[d], 2, tall, wide_b, (layout)how);
                run_product(all_dtypes[d], 4, hollow, hollow_b, (layout)how);
                run_product(all_dtypes[d], 4, none, none_b, (layout)how);
                run_product(all_dtypes[d], 8, deep, deep_b, (layout)how);
            }
    }
    tk_cpu_use_reference(false);
}

/* ---- normalisation ---- */

enum { ROWS = 6, COLUMNS = 10 };
static const int64_t norm_shape[] = {2, 3, COLUMNS}, parameter_shape[] = {COLUMNS};

typedef struct norm_row {
    real mean, inverse;
} norm_row;

static norm_row norm_row_of(tk_op op, const tk_strided *x, int64_t row, real eps) {
    bool layer = op == TK_OP_layer_norm_fused;
    norm_row n = {0, 0};
    real sum = 0;
    for (int64_t i = 0; i < COLUMNS; i++) sum += sample_read(x, row * COLUMNS + i).re;
    n.mean = layer ? sum / COLUMNS : 0;
    sum = 0;
    for (int64_t i = 0; i < COLUMNS; i++) {
        real centered = sample_read(x, row * COLUMNS + i).re - n.mean;
        sum += centered * centered;
    }
    n.inverse = 1 / sqrtl(sum / COLUMNS + eps);
    return n;
}

static void run_norm(tk_op op, tk_dtype dtype, layout how, bool has_weight, bool has_bias) {
    tk_attrs_norm attrs = {.eps = 0.125, .has_weight = has_weight, .has_bias = has_bias};
    sample inputs[3] = {sample_moderate(dtype, 3, norm_shape, how)};
    int count = 1, weight = has_weight ? count++ : 0, bias = has_bias ? count++ : 0;
    for (int i = 1; i < count; i++)
        inputs[i] = sample_moderate(dtype, 1, parameter_shape, how == STILL ? SPACED : how);
    sample out = call_sample(op, &attrs, count, inputs, dtype, 3, norm_shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        norm_row n = norm_row_of(op, &inputs[0].view, i / COLUMNS, 0.125L);
        real expected = (sample_read(&inputs[0].view, i).re - n.mean) * n.inverse;
        if (weight) expected *= sample_read(&inputs[weight].view, i % COLUMNS).re;
        if (bias) expected += sample_read(&inputs[bias].view, i % COLUMNS).re;
        wide got = sample_read(&out.view, i);
        if (!close_to(dtype, got, expected, 8, 4))
            fail_at(tk_op_name(op), dtype, i, got, wide_real(expected));
    }
    for (int i = 0; i < count; i++) sample_free(&inputs[i]);
    sample_free(&out);
}

static void test_norms(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(float_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int flags = 0; flags < 4; flags++) {
                run_norm(TK_OP_layer_norm_fused, float_dtypes[d], (layout)how, flags & 1,
                         flags >> 1);
                if (flags < 2)
                    run_norm(TK_OP_rms_norm_fused, float_dtypes[d], (layout)how, flags & 1, false);
            }
}

/* The value whose gradient the vjp ops are: sum of dy times the output, in long double. */
static real norm_value(tk_op op, const tk_attrs_norm *attrs, const sample *inputs, int count) {
    real total = 0;
    const tk_strided *x = &inputs[0].view, *dy = &inputs[count - 1].view;
    for (int64_t i = 0; i < x->size; i++) {
        norm_row n = norm_row_of(op, x, i / COLUMNS, (real)attrs->eps);
        real y = (sample_read(x, i).re - n.mean) * n.inverse;
        if (attrs->has_weight) y *= sample_read(&inputs[1].view, i % COLUMNS).re;
        if (attrs->has_bias) y += sample_read(&inputs[1 + attrs->has_weight].view, i % COLUMNS).re;
        total += y * sample_read(dy, i).re;
    }
    return total;
}

/* Against central differences of f64 operands. */
static void run_norm_vjp(tk_op op, bool has_weight, bool has_bias, layout how) {
    bool layer = op == TK_OP_layer_norm_vjp;
    tk_op forward = layer ? TK_OP_layer_norm_fused : TK_OP_rms_norm_fused;
    tk_attrs_norm attrs = {.eps = 0.125, .has_weight = has_weight, .has_bias = has_bias};
    int parameters = has_weight + has_bias, count = 2 + parameters;
    sample inputs[4] = {sample_moderate(TK_FLOAT64, 3, norm_shape, how)}, outputs[3];
    tk_strided in_views[4], out_views[3];
    for (int i = 1; i <= parameters; i++)
        inputs[i] = sample_moderate(TK_FLOAT64, 1, parameter_shape, DENSE);
    inputs[count - 1] = sample_moderate(TK_FLOAT64, 3, norm_shape, how == STILL ? REVERSED : how);
    for (int i = 0; i < count; i++) in_views[i] = inputs[i].view;
    for (int i = 0; i <= parameters; i++) {
        outputs[i] = sample_new(TK_FLOAT64, in_views[i].rank, in_views[i].shape, DENSE);
        out_views[i] = outputs[i].view;
    }
    assert_int_equal(call_body(op, &attrs, count, in_views, 1 + parameters, out_views), TK_OK);
    for (int i = 0; i <= parameters; i++) {
        sample_check_edges(&outputs[i]);
        for (int64_t k = 0; k < out_views[i].size; k += 3) {
            wide old = sample_read(&in_views[i], k);
            sample_write(&in_views[i], k, wide_real(old.re + 1e-4L));
            real above = norm_value(forward, &attrs, inputs, count);
            sample_write(&in_views[i], k, wide_real(old.re - 1e-4L));
            real below = norm_value(forward, &attrs, inputs, count);
            sample_write(&in_views[i], k, old);
            wide got = sample_read(&out_views[i], k), expected = wide_real((above - below) / 2e-4L);
            if (fabsl(got.re - expected.re) > 1e-6L * (1 + fabsl(expected.re)))
                fail_at(tk_op_name(op), TK_FLOAT64, k, got, expected);
        }
    }
    for (int i = 0; i < count; i++) sample_free(&inputs[i]);
    for (int i = 0; i <= parameters; i++) sample_free(&outputs[i]);
}

static void test_norm_gradients(void **state) {
    (void)state;
    static const layout layouts[] = {DENSE, REVERSED, SPACED, TRANSPOSED};
    for (int i = 0; i < COUNT(layouts); i++)
        for (int flags = 0; flags < 4; flags++) {
            run_norm_vjp(TK_OP_layer_norm_vjp, flags & 1, flags >> 1, layouts[i]);
            if (flags < 2) run_norm_vjp(TK_OP_rms_norm_vjp, flags & 1, false, layouts[i]);
        }
}

/* Without rows, the gradients of the parameters are zero. */
static void test_empty_norm_gradient(void **state) {
    (void)state;
    static const int64_t shape[] = {0, COLUMNS};
    tk_attrs_norm attrs = {.eps = 0.125, .has_weight = 1, .has_bias = 1};
    sample x = sample_new(TK_FLOAT32, 2, shape, DENSE),
           p = sample_moderate(TK_FLOAT32, 1, parameter_shape, DENSE);
    sample dw = sample_moderate(TK_FLOAT32, 1, parameter_shape, DENSE);
    sample db = sample_moderate(TK_FLOAT32, 1, parameter_shape, DENSE);
    tk_strided in[] = {x.view, p.view, p.view, x.view}, out[] = {x.view, dw.view, db.view};
    assert_int_equal(call_body(TK_OP_layer_norm_vjp, &attrs, 4, in, 3, out), TK_OK);
    for (int64_t i = 0; i < COLUMNS; i++) {
        assert_true(sample_read(&dw.view, i).re == 0);
        assert_true(sample_read(&db.view, i).re == 0);
    }
    sample_free(&x);
    sample_free(&p);
    sample_free(&dw);
    sample_free(&db);
}

/* ---- rotary positions ---- */

static void run_rope(tk_dtype dtype, layout how, bool traditional, bool has_freqs, bool inverse) {
    enum { D = 8, DIMS = 6, L = 4 };
    static const int64_t shape[] = {2, 3, L, D}, batch[] = {2}, half[] = {DIMS / 2};
    tk_attrs_rope attrs = {.dims = DIMS,
                           .traditional = traditional,
                           .base = 100,
                           .scale = 0.5,
                           .has_freqs = has_freqs,
                           .inverse = inverse};
    sample inputs[3] = {sample_moderate(dtype, 4, shape, how),
                        sample_new(TK_UINT8, 1, batch, SPACED),
                        sample_new(TK_FLOAT32, 1, half, REVERSED)};
    sample_write(&inputs[1].view, 0, wide_int(3));
    sample_write(&inputs[1].view, 1, wide_int(11));
    for (int i = 0; i < DIMS / 2; i++) sample_write(&inputs[2].view, i, wide_real(1.5L + i));
    sample out = call_sample(TK_OP_rope_fused, &attrs, 2 + has_freqs, inputs, dtype, 4, shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t d = i % D, t = i / D % L, b = i / (3 * L * D);
        wide got = sample_read(&out.view, i);
        real expected = sample_read(&inputs[0].view, i).re;
        if (d < DIMS) {
            int64_t pair = traditional ? d / 2 : d % (DIMS / 2);
            bool second = traditional ? d % 2 : d >= DIMS / 2;
            int64_t step = traditional ? 1 : DIMS / 2;
            real rate = has_freqs ? 1 / (1.5L + pair) : powl(100, -2.0L * pair / DIMS);
            real angle = (t + (b ? 11 : 3)) * 0.5L * rate * (inverse ? -1 : 1);
            real other = sample_read(&inputs[0].view, second ? i - step : i + step).re;
            expected = expected * cosl(angle) + (second ? other : -other) * sinl(angle);
        }
        if (!close_to(dtype, got, expected, 8, 4))
            fail_at("rope", dtype, i, got, wide_real(expected));
    }
    for (int i = 0; i < 3; i++) sample_free(&inputs[i]);
    sample_free(&out);
}

static void test_rope(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(float_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int flags = 0; flags < 8; flags++)
                run_rope(float_dtypes[d], (layout)how, flags & 1, flags >> 1 & 1, flags >> 2);
}

/* ---- attention ---- */

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, QUERIES = 5, KEYS = 7, DIM = 6, VALUE_DIM = 3 };

/* `scores` of one query as weights; the log of their sum. */
static real attention_weights(const tk_attrs_attention *attrs, const sample *inputs, int64_t b,
                              int64_t h, int64_t query, real *weights) {
    real largest = -INFINITY, sum = 0;
    int64_t kv = b * KV_HEADS + h / (HEADS / KV_HEADS), row = (b * HEADS + h) * QUERIES + query;
    for (int64_t key = 0; key < KEYS; key++) {
        real score = 0;
        for (int64_t d = 0; d < DIM; d++)
            score += sample_read(&inputs[0].view, row * DIM + d).re *
                     sample_read(&inputs[1].view, (kv * KEYS + key) * DIM + d).re;
        score *= (real)attrs->scale;
        wide mask = attrs->has_mask ? sample_read(&inputs[3].view, row * KEYS + key) : wide_int(0);
        if (attrs->has_mask && inputs[3].view.dtype != TK_BOOL) score += mask.re;
        bool hidden = attrs->has_mask && inputs[3].view.dtype == TK_BOOL && !mask.integer;
        if (hidden || (attrs->causal && key > query + KEYS - QUERIES)) score = -INFINITY;
        weights[key] = score;
        if (score > largest) largest = score;
    }
    for (int64_t key = 0; key < KEYS; key++)
        sum += weights[key] = isinf(largest) ? 0 : expl(weights[key] - largest);
    for (int64_t key = 0; key < KEYS && sum > 0; key++) weights[key] /= sum;
    return sum > 0 ? largest + logl(sum) : -INFINITY;
}

typedef enum mask_kind { NO_MASK, TRUTH_MASK, ADDED_MASK, MASK_KINDS } mask_kind;

static void attention_inputs(tk_dtype dtype, layout how, mask_kind kind, sample *inputs) {
    static const int64_t q[] = {BATCH, HEADS, QUERIES, DIM}, k[] = {BATCH, KV_HEADS, KEYS, DIM};
    static const int64_t v[] = {BATCH, KV_HEADS, KEYS, VALUE_DIM},
                         mask[] = {BATCH, HEADS, QUERIES, KEYS};
    inputs[0] = sample_moderate(dtype, 4, q, how);
    inputs[1] = sample_moderate(dtype, 4, k, (layout)((how + 1) % LAYOUTS));
    inputs[2] = sample_moderate(dtype, 4, v, (layout)((how + 2) % LAYOUTS));
    if (kind == NO_MASK) return;
    inputs[3] = sample_moderate(kind == TRUTH_MASK ? TK_BOOL : dtype, 4, mask,
                                (layout)((how + 3) % LAYOUTS));
    for (int64_t key = 0; key < KEYS && kind == TRUTH_MASK; key++) /* one query sees nothing */
        sample_write(&inputs[3].view, 9 * KEYS + key, wide_int(0));
}

static void run_attention(tk_dtype dtype, layout how, mask_kind kind, bool causal) {
    static const int64_t out_shape[] = {BATCH, HEADS, QUERIES, VALUE_DIM};
    tk_dtype wide_dtype = dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    tk_attrs_attention attrs = {.scale = 0.3, .causal = causal, .has_mask = kind != NO_MASK};
    sample inputs[4], out = sample_new(dtype, 4, out_shape, DENSE),
                      lse = sample_new(wide_dtype, 3, out_shape, DENSE);
    attention_inputs(dtype, how, kind, inputs);
    int count = kind == NO_MASK ? 3 : 4;
    tk_strided in_views[4], out_views[] = {out.view, lse.view};
    for (int i = 0; i < count; i++) in_views[i] = inputs[i].view;
    assert_int_equal(call_body(TK_OP_attention, &attrs, count, in_views, 2, out_views), TK_OK);
    sample_check_edges(&out);
    sample_check_edges(&lse);
    real weights[KEYS];
    for (int64_t row = 0; row < lse.view.size; row++) {
        int64_t b = row / (HEADS * QUERIES), h = row / QUERIES % HEADS;
        real expected = attention_weights(&attrs, inputs, b, h, row % QUERIES, weights);
        wide got = sample_read(&lse.view, row);
        if (!close_to(wide_dtype, got, expected, 8 + fabsl(expected), 8))
            fail_at("attention lse", wide_dtype, row, got, wide_real(expected));
        for (int64_t d = 0; d < VALUE_DIM; d++) {
            int64_t kv = b * KV_HEADS + h / (HEADS / KV_HEADS);
            expected = 0;
            for (int64_t key = 0; key < KEYS; key++)
                expected += weights[key] *
                            sample_read(&inputs[2].view, (kv * KEYS + key) * VALUE_DIM + d).re;
            got = sample_read(&out.view, row * VALUE_DIM + d);
            if (!close_to(dtype, got, expected, 3, dtype == TK_FLOAT64 ? 64 : 16))
                fail_at("attention", dtype, row, got, wide_real(expected));
        }
    }
    for (int i = 0; i < count; i++) sample_free(&inputs[i]);
    sample_free(&out);
    sample_free(&lse);
}

static void test_attention(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(float_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int kind = 0; kind < MASK_KINDS; kind++)
                for (int causal = 0; causal < 2; causal++)
                    run_attention(float_dtypes[d], (layout)how, (mask_kind)kind, causal);
}

/* The gradients of sum(dout * out), by central differences in f64, for each operand. */
static real attention_value(const tk_attrs_attention *attrs, const sample *inputs,
                            const tk_strided *dout) {
    real total = 0, weights[KEYS];
    for (int64_t row = 0; row < BATCH * HEADS * QUERIES; row++) {
        int64_t b = row / (HEADS * QUERIES), h = row / QUERIES % HEADS,
                kv = b * KV_HEADS + h / (HEADS / KV_HEADS);
        attention_weights(attrs, inputs, b, h, row % QUERIES, weights);
        for (int64_t i = 0; i < KEYS * VALUE_DIM; i++)
            total += weights[i / VALUE_DIM] *
                     sample_read(&inputs[2].view, kv * KEYS * VALUE_DIM + i).re *
                     sample_read(dout, row * VALUE_DIM + i % VALUE_DIM).re;
    }
    return total;
}

static void run_attention_vjp(layout how, mask_kind kind, bool causal) {
    static const int64_t out_shape[] = {BATCH, HEADS, QUERIES, VALUE_DIM};
    tk_attrs_attention attrs = {.scale = 0.3, .causal = causal, .has_mask = kind != NO_MASK};
    sample inputs[7], grads[3];
    attention_inputs(TK_FLOAT64, how, kind, inputs);
    int first = kind == NO_MASK ? 3 : 4;
    inputs[first] = sample_new(TK_FLOAT64, 4, out_shape, DENSE);
    inputs[first + 1] = sample_new(TK_FLOAT64, 3, out_shape, DENSE);
    inputs[first + 2] = sample_moderate(TK_FLOAT64, 4, out_shape, how);
    tk_strided in[7], out[3];
    for (int i = 0; i < first + 3; i++) in[i] = inputs[i].view;
    assert_int_equal(call_body(TK_OP_attention, &attrs, first, in, 2, in + first), TK_OK);
    for (int i = 0; i < 3; i++) {
        grads[i] = sample_new(TK_FLOAT64, 4, in[i].shape, DENSE);
        out[i] = grads[i].view;
    }
    assert_int_equal(call_body(TK_OP_attention_vjp, &attrs, first + 3, in, 3, out), TK_OK);
    for (int i = 0; i < 3; i++) {
        sample_check_edges(&grads[i]);
        for (int64_t k = 0; k < in[i].size; k += 17) {
            wide old = sample_read(&in[i], k);
            sample_write(&in[i], k, wide_real(old.re + 1e-4L));
            real above = attention_value(&attrs, inputs, &in[first + 2]);
            sample_write(&in[i], k, wide_real(old.re - 1e-4L));
            real below = attention_value(&attrs, inputs, &in[first + 2]);
            sample_write(&in[i], k, old);
            wide got = sample_read(&out[i], k), expected = wide_real((above - below) / 2e-4L);
            if (fabsl(got.re - expected.re) > 1e-6L * (1 + fabsl(expected.re)))
                fail_at("attention_vjp", TK_FLOAT64, k, got, expected);
        }
    }
    for (int i = 0; i < first + 3; i++) sample_free(&inputs[i]);
    for (int i = 0; i < 3; i++) sample_free(&grads[i]);
}

/* Not the layouts with a still operand: moving one element there moves several. */
static void test_attention_gradients(void **state) {
    (void)state;
    for (int kind = 0; kind < MASK_KINDS; kind++)
        for (int causal = 0; causal < 2; causal++) {
            run_attention_vjp(DENSE, (mask_kind)kind, causal);
            run_attention_vjp(REVERSED, (mask_kind)kind, causal);
        }
}

/* ---- cross entropy ---- */

static void run_cross_entropy(tk_dtype dtype, tk_dtype target_dtype, layout how) {
    enum { CLASSES = 11 };
    static const int64_t shape[] = {3, 4, CLASSES};
    tk_dtype wide_dtype = dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    sample logits = sample_moderate(dtype, 3, shape, how),
           targets = sample_new(target_dtype, 2, shape, how);
    for (int64_t i = 0; i < 12; i++)
        sample_write(&targets.view, i, wide_int((int)(random_bits() % CLASSES)));
    sample loss = sample_new(dtype, 2, shape, DENSE), lse = sample_new(wide_dtype, 2, shape, DENSE);
    sample dloss = sample_moderate(dtype, 2, shape, how),
           dlogits = sample_new(dtype, 3, shape, DENSE);
    tk_strided in[] = {logits.view, targets.view}, out[] = {loss.view, lse.view};
    assert_int_equal(call_body(TK_OP_cross_entropy_fused, NULL, 2, in, 2, out), TK_OK);
    assert_true(last_fault.position == INT64_MAX);
    tk_strided back[] = {logits.view, targets.view, lse.view, dloss.view};
    assert_int_equal(call_body(TK_OP_cross_entropy_vjp, NULL, 4, back, 1, &dlogits.view), TK_OK);
    for (int64_t row = 0; row < 12; row++) {
        real sum = 0;
        for (int64_t c = 0; c < CLASSES; c++)
            sum += expl(sample_read(&logits.view, row * CLASSES + c).re);
        int64_t target = (int64_t)sample_read(&targets.view, row).integer;
        real expected = logl(sum) - sample_read(&logits.view, row * CLASSES + target).re;
        wide got = sample_read(&loss.view, row);
        if (!close_to(dtype, got, expected, 8, 4))
            fail_at("cross_entropy", dtype, row, got, wide_real(expected));
        got = sample_read(&lse.view, row);
        if (!close_to(wide_dtype, got, logl(sum), 8, 4))
            fail_at("lse", wide_dtype, row, got, wide_real(logl(sum)));
        for (int64_t c = 0; c < CLASSES; c++) {
            real share = expl(sample_read(&logits.view, row * CLASSES + c).re) / sum;
            expected = (share - (c == target)) * sample_read(&dloss.view, row).re;
            got = sample_read(&dlogits.view, row * CLASSES + c);
            if (!close_to(dtype, got, expected, 3, 4))
                fail_at("dlogits", dtype, row, got, wide_real(expected));
        }
    }
    sample *all[] = {&logits, &targets, &loss, &lse, &dloss, &dlogits};
    for (int i = 0; i < COUNT(all); i++) sample_free(all[i]);
}

static void test_cross_entropy(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(float_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++) {
            run_cross_entropy(float_dtypes[d], TK_INT64, (layout)how);
            run_cross_entropy(float_dtypes[d], TK_UINT8, (layout)how);
        }
}

static void test_cross_entropy_fault(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 4};
    sample logits = sample_moderate(TK_FLOAT32, 2, shape, DENSE),
           targets = sample_new(TK_INT32, 1, shape, DENSE);
    sample loss = sample_new(TK_FLOAT32, 1, shape, DENSE),
           lse = sample_new(TK_FLOAT32, 1, shape, DENSE);
    sample_write(&targets.view, 0, wide_int(3));
    sample_write(&targets.view, 1, wide_int(4));
    sample_write(&targets.view, 2, wide_int(-1));
    tk_strided in[] = {logits.view, targets.view}, out[] = {loss.view, lse.view};
    assert_int_equal(call_body(TK_OP_cross_entropy_fused, NULL, 2, in, 2, out), TK_OK);
    assert_int_equal(last_fault.position, 1);
    assert_int_equal(last_fault.index, 4);
    assert_int_equal(last_fault.length, 4);
    sample *all[] = {&logits, &targets, &loss, &lse};
    for (int i = 0; i < COUNT(all); i++) sample_free(all[i]);
}

/* ---- random bits ---- */

/* What MLX 0.32 gives: mx.random.split(mx.random.key(7), 3), which are 24 bytes of the key's
 * stream. Narrower elements are the same bytes. */
static void test_random_bits(void **state) {
    (void)state;
    static const int64_t key_shape[] = {2};
    static const uint32_t words[] = {0x107b9334, 0x33609431, 0x71979c42,
                                     0x61dcd604, 0xace8297e, 0x539bb5ac};
    sample key = sample_new(TK_UINT32, 1, key_shape, SPACED);
    sample_write(&key.view, 0, wide_int(0));
    sample_write(&key.view, 1, wide_int(7));
    for (int width = 1; width <= 4; width *= 2) {
        int64_t count = 24 / width;
        tk_attrs_bits attrs = {.shape = {&count, 1}, .width = width};
        tk_dtype dtype = width == 1 ? TK_UINT8 : width == 2 ? TK_UINT16 : TK_UINT32;
        sample out = call_sample(TK_OP_random_bits, &attrs, 1, &key, dtype, 1, &count);
        assert_memory_equal(out.view.data, words, sizeof words);
        sample_free(&out);
    }
    sample_free(&key);
}

/* Each key of a batch gives what it gives alone, long streams and any thread count included. */
static void test_random_batch(void **state) {
    (void)state;
    enum { LENGTH = 40001 };
    static const int64_t keys_shape[] = {2, 3, 2}, one_shape[] = {2}, length[] = {LENGTH};
    static const int64_t shape[] = {2, 3, LENGTH};
    tk_attrs_bits attrs = {.shape = {length, 1}, .width = 2};
    for (int how = 0; how < LAYOUTS - 1; how++) {
        sample keys = sample_new(TK_UINT32, 3, keys_shape, (layout)how);
        for (int64_t i = 0; i < 12; i++)
            sample_write(&keys.view, i, wide_int((int64_t)random_bits()));
        assert_int_equal(tk_pool_set_threads(how + 1), TK_OK);
        sample out = call_sample(TK_OP_random_bits, &attrs, 1, &keys, TK_UINT16, 3, shape);
        for (int64_t k = 0; k < 6; k++) {
            sample one = sample_new(TK_UINT32, 1, one_shape, DENSE);
            sample_write(&one.view, 0, sample_read(&keys.view, 2 * k));
            sample_write(&one.view, 1, sample_read(&keys.view, 2 * k + 1));
            sample alone = call_sample(TK_OP_random_bits, &attrs, 1, &one, TK_UINT16, 1, length);
            assert_memory_equal(element_at(&out.view, k * LENGTH), alone.view.data, 2 * LENGTH);
            sample_free(&one);
            sample_free(&alone);
        }
        sample_free(&keys);
        sample_free(&out);
    }
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_norm_gradients),
        cmocka_unit_test(test_empty_norm_gradient),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_gradients),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_cross_entropy_fault),
        cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_random_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
