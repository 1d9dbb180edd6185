/* vmap against a loop: every row of the op table with every subset of its operands mapped, along
 * every axis; compositions with the other transforms; what is not batched stays unbatched. */
#include "support/arrays.h"

#include <math.h>
#include <string.h>

#include "array/context.h"
#include "graph/batch.h"
#include "support/op_cases.h"
#include "support/samples.h"
#include "tiki/transforms.h"

#define BATCH 3
#define MOST_BYTES (1 << 20)

typedef struct fixture {
    tk_context *ctx;
    tk_scope scope;
    uint64_t random;
} fixture;

static fixture open_fixture(void) {
    fixture f = {.ctx = make_context(), .random = 1};
    f.scope = tk_scope_open(f.ctx);
    return f;
}

static void close_fixture(fixture *f) {
    tk_scope_close(f->scope);
    tk_context_release(f->ctx);
}

/* ---- values ---- */

static tk_array random_floats(fixture *f, tk_shape shape, bool complex) {
    static float data[4096];
    size_t count = complex ? 2 : 1;
    for (int64_t i = 0; i < shape.count; i++) count *= (size_t)shape.items[i];
    assert_true(count <= 4096);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)((double)(next_random(&f->random) >> 11) * 0x1p-51 - 2);
    return tk_from_data(f->ctx, data, shape, complex ? TK_COMPLEX64 : TK_FLOAT32);
}

static tk_array random_integers(fixture *f, tk_shape shape, tk_dtype dtype, int64_t limit) {
    static int64_t data[4096];
    size_t count = 1;
    for (int64_t i = 0; i < shape.count; i++) count *= (size_t)shape.items[i];
    assert_true(count <= 4096);
    bool around_zero = limit == 0 && tk_dtype_kind(dtype) == TK_KIND_SIGNED;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next_random(&f->random) >> 1;
        data[i] =
            around_zero ? (int64_t)(bits % 9) - 4 : (int64_t)(bits % (uint64_t)(limit ? limit : 9));
    }
    return tk_astype(tk_from_data(f->ctx, data, shape, TK_INT64), dtype);
}

static tk_array random_array(fixture *f, const op_operand *operand, tk_shape shape) {
    if (operand->dtype == TK_BOOL)
        return tk_astype(random_integers(f, shape, TK_UINT8, 2), TK_BOOL);
    if (tk_dtype_is_integer(operand->dtype))
        return random_integers(f, shape, operand->dtype, operand->limit);
    return tk_astype(random_floats(f, shape, tk_dtype_is_complex(operand->dtype)), operand->dtype);
}

/* Element `index` along an axis. */
static tk_array element(tk_array a, int64_t index, int axis) {
    tk_shape shape = tk_array_shape(a), start = {.count = shape.count}, stop = shape,
             step = TK_ALL_AXES;
    start.items[axis] = index;
    stop.items[axis] = index + 1;
    return tk_squeeze(tk_slice(a, start, stop, step), TK_AXES(axis));
}

/* ---- comparing ---- */

static double distance_allowed(tk_tolerance tolerance, tk_dtype dtype) {
    if (dtype == TK_BFLOAT16 || dtype == TK_FLOAT16) return tolerance == TK_TOL_EXACT ? 0 : 2e-2;
    return tolerance == TK_TOL_EXACT ? 0 : tolerance == TK_TOL_ULP ? 2e-6 : 2e-5;
}

static bool near(double a, double b, double allowed) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= allowed * fmax(1, fmax(fabs(a), fabs(b)));
}

static bool equal_bytes(tk_array a, tk_array b) {
    static char left[MOST_BYTES], right[MOST_BYTES];
    size_t bytes = (size_t)tk_array_size(a) * tk_dtype_size(tk_array_dtype(a));
    assert_true(bytes <= MOST_BYTES);
    assert_ok(tk_copy_out(a, left, bytes));
    assert_ok(tk_copy_out(b, right, bytes));
    return !memcmp(left, right, bytes);
}

static bool near_floats(tk_array a, tk_array b, double allowed) {
    static float left[MOST_BYTES / 4], right[MOST_BYTES / 4];
    tk_dtype dtype = tk_array_dtype(a);
    size_t count = (size_t)tk_array_size(a) * (tk_dtype_is_complex(dtype) ? 2 : 1);
    if (dtype != TK_COMPLEX64) a = tk_astype(a, TK_FLOAT32), b = tk_astype(b, TK_FLOAT32);
    assert_ok(tk_copy_out(a, left, count * 4));
    assert_ok(tk_copy_out(b, right, count * 4));
    for (size_t i = 0; i < count; i++)
        if (!near(left[i], right[i], allowed)) {
            print_error("element %zu: %.9g, expected %.9g\n", i, (double)left[i], (double)right[i]);
            return false;
        }
    return true;
}

static bool same_type(tk_array a, tk_array b) {
    tk_shape left = tk_array_shape(a), right = tk_array_shape(b);
    return tk_array_dtype(a) == tk_array_dtype(b) && left.count == right.count &&
           !memcmp(left.items, right.items, (size_t)left.count * sizeof *left.items);
}

static bool agree(tk_array got, tk_array expected, tk_tolerance tolerance) {
    assert_ok(tk_array_status(got));
    assert_ok(tk_array_status(expected));
    if (!same_type(got, expected)) return false;
    if (tk_array_size(got) == 0 || equal_bytes(got, expected)) return true;
    if (!tk_dtype_is_inexact(tk_array_dtype(got))) return false;
    return near_floats(got, expected, distance_allowed(tolerance, tk_array_dtype(got)));
}

/* ---- vmap against a loop ---- */

typedef struct mapped {
    fixture *f;
    tk_function function;
    void *self;
    tk_tolerance tolerance;
    size_t n_args;
    tk_array args[OP_CASE_INPUTS];
    int axes[OP_CASE_INPUTS];
} mapped;

/* The function on element `index` of the mapped arguments. */
static void call_once(const mapped *m, int64_t index, tk_arrays *results) {
    tk_array args[OP_CASE_INPUTS];
    for (size_t i = 0; i < m->n_args; i++)
        args[i] = m->axes[i] == TK_UNMAPPED ? m->args[i] : element(m->args[i], index, m->axes[i]);
    assert_ok(m->function(m->self, args, m->n_args, results));
}

static bool matches_loop(const mapped *m) {
    tk_arrays got = {0}, each[BATCH] = {{0}};
    assert_ok(tk_vmap(m->f->ctx, m->function, m->self, m->args, m->n_args, m->axes, NULL, &got));
    for (int i = 0; i < BATCH; i++) call_once(m, i, &each[i]);
    bool ok = got.count == each[0].count;
    for (size_t k = 0; ok && k < got.count; k++) {
        tk_array parts[BATCH];
        for (int i = 0; i < BATCH; i++) parts[i] = each[i].items[k];
        ok = agree(got.items[k], tk_stack(parts, BATCH, 0), m->tolerance);
    }
    tk_arrays_clear(&got);
    for (int i = 0; i < BATCH; i++) tk_arrays_clear(&each[i]);
    return ok;
}

static tk_shape with_axis(tk_shape shape, int axis) {
    tk_shape wide = {.count = shape.count + 1};
    for (int i = 0; i < wide.count; i++)
        wide.items[i] = i < axis ? shape.items[i] : i == axis ? BATCH : shape.items[i - 1];
    return wide;
}

/* `a` with 5 on the diagonals of its last two axes, the batch axis (where there is one) apart. */
static tk_array with_diagonal(tk_array a, int axis) {
    if (axis != TK_UNMAPPED) a = tk_moveaxis(a, axis, 0);
    int64_t rank = tk_array_rank(a), rows = tk_array_dim(a, (int)rank - 2);
    tk_context *ctx = tk_array_context(a);
    tk_array eye = tk_eye(ctx, rows, tk_array_dim(a, (int)rank - 1), 0, tk_array_dtype(a));
    a = tk_add(a, tk_multiply(eye, tk_scalar(ctx, 5)));
    return axis == TK_UNMAPPED ? a : tk_moveaxis(a, 0, axis);
}

/* Maps the arguments that `mask` names; argument i along an axis that moves with `turn`. */
static void map_arguments(mapped *m, const op_operand *operands, bool has_diagonal, unsigned mask,
                          int turn) {
    for (size_t i = 0; i < m->n_args; i++) {
        tk_shape shape = operands[i].shape;
        m->axes[i] = mask >> i & 1 ? (turn + (int)i) % (int)(shape.count + 1) : TK_UNMAPPED;
        if (m->axes[i] != TK_UNMAPPED) shape = with_axis(shape, m->axes[i]);
        m->args[i] = random_array(m->f, &operands[i], shape);
        if (i == 0 && has_diagonal) m->args[i] = with_diagonal(m->args[i], m->axes[i]);
    }
}

static tk_status apply_case(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const op_case *c = self;
    tk_context *ctx = tk_array_context(args[0]);
    tk_node *inputs[OP_CASE_INPUTS];
    tk_array outputs[OP_CASE_INPUTS];
    tk_builder b;
    for (size_t i = 0; i < n_args; i++) inputs[i] = args[i].node;
    tk_graph_lock(&ctx->graph);
    tk_builder_open(&b, &ctx->graph, 0);
    tk_node *node = tkb_node(&b, c->op, n_args, inputs, c->attrs);
    size_t n_outputs = node->n_outputs;
    for (size_t i = 0; i < n_outputs; i++)
        outputs[i] = tk_handle_give(ctx, tkb_output(&b, node, (int)i));
    tk_builder_close(&b);
    tk_graph_unlock(&ctx->graph);
    for (size_t i = 0; i < n_outputs; i++)
        if (tk_arrays_push(results, outputs[i]) != TK_OK) return TK_OUT_OF_MEMORY;
    return TK_OK;
}

/* Values that decide the result only between alternatives, so that batching must give the same
 * bits. */
static tk_tolerance tolerance_of(const op_case *c) {
    tk_tolerance tolerance = tk_op_of(c->op)->tolerance;
    bool complex = c->n_inputs && tk_dtype_is_complex(c->inputs[0].dtype);
    return tolerance == TK_TOL_EXACT && complex ? TK_TOL_ULP : tolerance;
}

static void check_case(const op_case *c, int turn) {
    for (unsigned mask = 1; mask < 1u << c->n_inputs; mask++) {
        fixture f = open_fixture();
        mapped m = {.f = &f,
                    .function = apply_case,
                    .self = (void *)(uintptr_t)c,
                    .n_args = (size_t)c->n_inputs,
                    .tolerance = tolerance_of(c)};
        map_arguments(&m, c->inputs, c->has_diagonal, mask, turn);
        bool ok = matches_loop(&m);
        if (!ok)
            print_error("%s, first operand %s, operands %x, turn %d\n", tk_op_name(c->op),
                        tk_dtype_name(c->inputs[0].dtype), mask, turn);
        assert_true(ok);
        close_fixture(&f);
    }
}

static void every_row_matches_a_loop(void **state) {
    (void)state;
    for (size_t i = 0; i < op_case_count(); i++) {
        const op_case *c = op_case_at(i);
        if (c->derived || c->n_inputs == 0) continue;
        int turns = c->n_inputs > 3 ? 1 : 3;
        for (int turn = 0; turn < turns; turn++) check_case(c, turn);
    }
}

static tk_status apply_sample(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return sample_apply(tk_array_context(args[0]), self, args, results);
}

static void check_function(int row, int index, unsigned mask) {
    fixture f = open_fixture();
    sample s;
    op_operand operands[SAMPLE_INPUTS];
    if (sample_make(f.ctx, row, index, TK_FLOAT32, &s) && mask < 1u << s.n_inputs) {
        mapped m = {.f = &f,
                    .function = apply_sample,
                    .self = &s,
                    .n_args = s.n_inputs,
                    .tolerance = sample_tolerance(row)};
        for (size_t i = 0; i < s.n_inputs; i++) operands[i] = operand_like(s.inputs[i], TK_FLOAT32);
        map_arguments(&m, operands, s.has_diagonal, mask, index + (int)mask);
        bool ok = matches_loop(&m);
        if (!ok) print_error("%s, sample %d, operands %x\n", s.name, index, mask);
        assert_true(ok);
    }
    close_fixture(&f);
}

/* Functions are compositions, so each primitive's rule is checked already; that they ask nothing of
 * a value that has none under vmap is not. */
static void every_function_matches_a_loop(void **state) {
    (void)state;
    for (int row = TK_OP_COUNT; row < sample_rows(); row++)
        for (int index = 0; index < sample_count(row); index++)
            for (unsigned mask = 1; mask < 16; mask++) check_function(row, index, mask);
}

/* ---- gradients of the fused ops, whose own ops take apart ---- */

typedef struct layer {
    const char *name;
    size_t n_args;
    op_operand operands[4];
    tk_array (*apply)(const tk_array *args);
    size_t n_floats; /* arguments that have gradients, the first ones */
} layer;

static tk_array apply_rms_norm(const tk_array *a) { return tk_rms_norm(a[0], a[1], 1e-5); }
static tk_array apply_layer_norm(const tk_array *a) {
    return tk_layer_norm(a[0], a[1], a[2], 1e-5);
}
static tk_array apply_attention(const tk_array *a) {
    return tk_scaled_dot_product_attention(a[0], a[1], a[2], 0.5, TK_NO_ARRAY, true);
}
static tk_array apply_masked_attention(const tk_array *a) {
    return tk_scaled_dot_product_attention(a[0], a[1], a[2], 0.5, a[3], false);
}
static tk_array apply_cross_entropy(const tk_array *a) { return tk_cross_entropy(a[0], a[1]); }
static tk_array apply_rope(const tk_array *a) {
    return tk_rope(a[0], 8, false, 0, 1, a[1], tk_exp(a[2]));
}
static tk_array apply_softmax(const tk_array *a) {
    return tk_matmul(tk_softmax(tk_matmul(a[0], a[1]), TK_AXES(-1)), a[2]);
}

#define OPERAND(dtype, limit, ...)                                                                 \
    { dtype, {sizeof((int64_t[]){__VA_ARGS__}) / 8, {__VA_ARGS__}}, limit }

static const layer layers[] = {
    {"rms_norm", 2, {OPERAND(TK_FLOAT32, 0, 3, 8), OPERAND(TK_FLOAT32, 0, 8)}, apply_rms_norm, 2},
    {"layer_norm",
     3,
     {OPERAND(TK_FLOAT32, 0, 3, 8), OPERAND(TK_FLOAT32, 0, 8), OPERAND(TK_FLOAT32, 0, 8)},
     apply_layer_norm,
     3},
    {"attention",
     3,
     {OPERAND(TK_FLOAT32, 0, 2, 4, 3, 5), OPERAND(TK_FLOAT32, 0, 2, 2, 3, 5),
      OPERAND(TK_FLOAT32, 0, 2, 2, 3, 6)},
     apply_attention,
     3},
    {"masked attention",
     4,
     {OPERAND(TK_FLOAT32, 0, 1, 2, 3, 4), OPERAND(TK_FLOAT32, 0, 1, 2, 5, 4),
      OPERAND(TK_FLOAT32, 0, 1, 2, 5, 4), OPERAND(TK_FLOAT32, 0, 1, 2, 3, 5)},
     apply_masked_attention,
     3},
    {"cross_entropy",
     2,
     {OPERAND(TK_FLOAT32, 0, 3, 5), OPERAND(TK_INT32, 5, 3)},
     apply_cross_entropy,
     1},
    {"rope",
     3,
     {OPERAND(TK_FLOAT32, 0, 2, 5, 8), OPERAND(TK_INT32, 9, 2), OPERAND(TK_FLOAT32, 0, 4)},
     apply_rope,
     1},
    {"softmax",
     3,
     {OPERAND(TK_FLOAT32, 0, 3, 4), OPERAND(TK_FLOAT32, 0, 4, 5), OPERAND(TK_FLOAT32, 0, 5, 2)},
     apply_softmax,
     3},
};

typedef struct layer_call {
    const layer *layer;
    tk_context *ctx;
} layer_call;

/* A loss whose cotangents differ from element to element. */
static tk_status loss_of(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    const layer_call *call = self;
    tk_array y = call->layer->apply(args);
    return tk_arrays_push(results, tk_sum(tk_multiply(y, tk_sin(y)), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status gradients_of(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    static const int first_arguments[] = {0, 1, 2, 3};
    layer_call *call = self;
    return tk_grad(call->ctx, loss_of, self, args, n_args, first_arguments, call->layer->n_floats,
                   results);
}

static void gradients_of_layers_match_a_loop(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        for (unsigned mask = 1; mask < 1u << layers[i].n_args; mask++) {
            fixture f = open_fixture();
            layer_call call = {&layers[i], f.ctx};
            mapped m = {.f = &f,
                        .function = gradients_of,
                        .self = &call,
                        .n_args = layers[i].n_args,
                        .tolerance = TK_TOL_SUM};
            map_arguments(&m, layers[i].operands, false, mask, (int)mask);
            bool ok = matches_loop(&m);
            if (!ok) print_error("gradient of %s, operands %x\n", layers[i].name, mask);
            assert_true(ok);
            close_fixture(&f);
        }
    }
}

/* ---- transforms of transforms ---- */

static tk_status cube(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    tk_array x = args[0];
    return tk_arrays_push(results, tk_sum(tk_multiply(tk_square(x), x), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status cube_each_row(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    tk_arrays rows = {0};
    tk_status status = tk_vmap(self, cube, NULL, args, n_args, NULL, NULL, &rows);
    if (status == TK_OK)
        status = tk_arrays_push(results, tk_sum(rows.items[0], TK_ALL_AXES, TK_DROPDIMS));
    tk_arrays_clear(&rows);
    return status;
}

static tk_status gradient_of_cube(void *self, const tk_array *args, size_t n_args,
                                  tk_arrays *results) {
    return tk_grad(self, cube, NULL, args, n_args, NULL, 0, results);
}

static tk_status second_gradient(void *self, const tk_array *args, size_t n_args,
                                 tk_arrays *results) {
    tk_arrays values = {0};
    tk_array ones = tk_ones_like(args[0]);
    tk_status status = tk_jvp(self, gradient_of_cube, self, args, n_args, &ones, &values, results);
    tk_arrays_clear(&values);
    return status;
}

static tk_status rows_of_rows(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    return tk_vmap(self, gradient_of_cube, self, args, n_args, NULL, NULL, results);
}

/* Every way to 3 x^2, and 6 x by differentiating twice. */
static void transforms_nest(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array x = random_floats(&f, TK_SHAPE(2, 3, 4), false), rows = tk_reshape(x, TK_SHAPE(6, 4));
    tk_array three = tk_scalar(f.ctx, 3), expected = tk_multiply(three, tk_square(rows));
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, gradient_of_cube, f.ctx, &rows, 1, NULL, NULL, &got));
    assert_true(agree(got.items[0], expected, TK_TOL_ULP));
    tk_arrays_clear(&got);
    assert_ok(tk_grad(f.ctx, cube_each_row, f.ctx, &rows, 1, NULL, 0, &got));
    assert_true(agree(got.items[0], expected, TK_TOL_ULP));
    tk_arrays_clear(&got);
    assert_ok(tk_vmap(f.ctx, second_gradient, f.ctx, &rows, 1, NULL, NULL, &got));
    assert_true(agree(got.items[0], tk_multiply(tk_scalar(f.ctx, 6), rows), TK_TOL_ULP));
    tk_arrays_clear(&got);
    assert_ok(tk_vmap(f.ctx, rows_of_rows, f.ctx, &x, 1, NULL, NULL, &got));
    assert_true(agree(got.items[0], tk_multiply(three, tk_square(x)), TK_TOL_ULP));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

/* ---- axes ---- */

static tk_status three_results(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    (void)n_args;
    tk_array all[] = {tk_multiply(args[0], args[1]), tk_sum(args[0], TK_AXES(0), TK_DROPDIMS),
                      tk_arange(self, 0, 2, 1, TK_FLOAT32)};
    for (int i = 0; i < 3; i++)
        if (tk_arrays_push(results, all[i]) != TK_OK) return TK_OUT_OF_MEMORY;
    return TK_OK;
}

static void results_go_where_out_axes_say(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array args[] = {random_floats(&f, TK_SHAPE(4, 5, BATCH), false),
                       random_floats(&f, TK_SHAPE(5), false)};
    const int in_axes[] = {-1, TK_UNMAPPED}, out_axes[] = {1, -1, 0};
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, three_results, f.ctx, args, 2, in_axes, out_axes, &got));
    tk_array product = tk_multiply(args[0], tk_reshape(args[1], TK_SHAPE(5, 1)));
    assert_true(agree(got.items[0], tk_moveaxis(product, 2, 1), TK_TOL_EXACT));
    assert_true(agree(got.items[1], tk_sum(args[0], TK_AXES(0), TK_DROPDIMS), TK_TOL_SUM));
    tk_array range = tk_broadcast_to(tk_arange(f.ctx, 0, 2, 1, TK_FLOAT32), TK_SHAPE(BATCH, 2));
    assert_true(agree(got.items[2], range, TK_TOL_EXACT));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

static void batches_may_be_empty_or_one(void **state) {
    (void)state;
    for (int64_t size = 0; size < 2; size++) {
        fixture f = open_fixture();
        tk_array x = random_floats(&f, TK_SHAPE(size, 4), false);
        tk_arrays got = {0};
        assert_ok(tk_vmap(f.ctx, gradient_of_cube, f.ctx, &x, 1, NULL, NULL, &got));
        assert_true(
            agree(got.items[0], tk_multiply(tk_scalar(f.ctx, 3), tk_square(x)), TK_TOL_ULP));
        tk_arrays_clear(&got);
        close_fixture(&f);
    }
}

/* ---- the graph that comes out ---- */

static bool prints(tk_array array, const char *part) {
    char *text;
    assert_ok(tk_graph_print(&array, 1, &text));
    bool found = strstr(text, part) != NULL;
    tk_text_free(text);
    return found;
}

static tk_status scaled_product(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    (void)self, (void)n_args;
    return tk_arrays_push(results, tk_matmul(args[0], tk_sin(args[1])));
}

static void shared_work_is_done_once(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array args[] = {random_floats(&f, TK_SHAPE(BATCH, 2, 4), false),
                       random_floats(&f, TK_SHAPE(4, 5), false)};
    const int in_axes[] = {0, TK_UNMAPPED};
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, scaled_product, NULL, args, 2, in_axes, NULL, &got));
    assert_true(prints(got.items[0], "= sin %a1 : f32[4,5]"));
    assert_true(prints(got.items[0], ": f32[6,5]"));
    tk_array expected = tk_matmul(args[0], tk_sin(args[1]));
    assert_true(agree(got.items[0], expected, TK_TOL_SUM));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

static tk_status apply_matrix(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return tk_arrays_push(results, tk_matmul(args[0], args[1]));
}

static void a_batch_of_vectors_is_one_product(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array args[] = {random_floats(&f, TK_SHAPE(5, 4), false),
                       random_floats(&f, TK_SHAPE(BATCH, 4), false)};
    const int in_axes[] = {TK_UNMAPPED, 0};
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, apply_matrix, NULL, args, 2, in_axes, NULL, &got));
    char *text;
    assert_ok(tk_graph_print(got.items, 1, &text));
    const char *product = strstr(text, "= product ");
    assert_non_null(product);
    assert_null(strstr(product + 1, "= product "));
    assert_int_equal(strncmp(strstr(product, " : "), " : f32[3,5]\n", 12), 0);
    tk_text_free(text);
    tk_array expected = tk_matmul(args[1], tk_transpose(args[0], TK_ALL_AXES));
    assert_true(agree(got.items[0], expected, TK_TOL_SUM));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

static tk_status deep(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    tk_array x = args[0];
    for (int i = 0; i < 100000; i++) x = tk_add(x, tk_scalar(self, 1));
    return tk_arrays_push(results, x);
}

static void deep_graphs_are_batched(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array x = tk_zeros(f.ctx, TK_SHAPE(2), TK_FLOAT32);
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, deep, f.ctx, &x, 1, NULL, NULL, &got));
    assert_true(agree(got.items[0], tk_full(tk_scalar(f.ctx, 100000), TK_SHAPE(2), TK_FLOAT32),
                      TK_TOL_EXACT));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

/* ---- random ---- */

static tk_status draw(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, tk_random_normal(self, TK_SHAPE(5), TK_FLOAT32, 0, 1, args[0]));
}

static void keys_draw_as_they_do_alone(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array keys = tk_random_split(tk_random_key(f.ctx, 3), BATCH);
    mapped m = {.f = &f,
                .function = draw,
                .self = f.ctx,
                .n_args = 1,
                .args = {keys},
                .tolerance = TK_TOL_EXACT};
    assert_true(matches_loop(&m));
    close_fixture(&f);
}

/* ---- functions with a rule of their own ---- */

typedef struct counted {
    int plain, batched;
} counted;

static tk_status plain_double(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    ((counted *)self)->plain++;
    return tk_arrays_push(results, tk_cos(tk_add(args[0], args[1])));
}

static tk_status batched_double(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    (void)n_args;
    ((counted *)self)->batched++;
    return tk_arrays_push(results, tk_maximum(args[0], args[1]));
}

typedef struct custom_use {
    tk_context *ctx;
    tk_custom custom;
} custom_use;

static tk_status call_custom(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    custom_use *use = self;
    return tk_custom_call(use->ctx, &use->custom, args, n_args, results);
}

static void own_rules_replace_the_plain_results(void **state) {
    (void)state;
    fixture f = open_fixture();
    counted count = {0};
    custom_use use = {f.ctx,
                      {.size = sizeof(tk_custom),
                       .function = plain_double,
                       .vmap = batched_double,
                       .self = &count}};
    tk_array args[] = {random_floats(&f, TK_SHAPE(BATCH, 4), false),
                       random_floats(&f, TK_SHAPE(4), false)};
    const int in_axes[] = {0, TK_UNMAPPED};
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, call_custom, &use, args, 2, in_axes, NULL, &got));
    assert_int_equal(count.batched, 1);
    assert_true(prints(got.items[0], "= maximum ") && !prints(got.items[0], "= cos "));
    assert_true(agree(got.items[0], tk_maximum(args[0], args[1]), TK_TOL_EXACT));
    tk_arrays_clear(&got);
    use.custom.vmap = NULL;
    assert_ok(tk_vmap(f.ctx, call_custom, &use, args, 2, in_axes, NULL, &got));
    assert_true(agree(got.items[0], tk_cos(tk_add(args[0], args[1])), TK_TOL_ULP));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

/* ---- streams and memory ---- */

typedef struct streamed {
    tk_context *ctx;
    tk_stream_id stream;
} streamed;

static tk_status on_a_stream(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    const streamed *s = self;
    tk_stream_id before = tk_stream_use(s->ctx, s->stream);
    tk_array sine = tk_sin(args[0]);
    tk_stream_use(s->ctx, before);
    return tk_arrays_push(results, tk_cos(sine));
}

static void nodes_stay_on_their_streams(void **state) {
    (void)state;
    fixture f = open_fixture();
    streamed s = {.ctx = f.ctx};
    assert_ok(tk_stream_new(f.ctx, &s.stream));
    tk_array x = random_floats(&f, TK_SHAPE(BATCH, 4), false);
    tk_arrays got = {0};
    assert_ok(tk_vmap(f.ctx, on_a_stream, &s, &x, 1, NULL, NULL, &got));
    assert_true(prints(got.items[0], "= sin@1 ") && prints(got.items[0], "= cos %"));
    assert_true(agree(got.items[0], tk_cos(tk_sin(x)), TK_TOL_ULP));
    tk_arrays_clear(&got);
    close_fixture(&f);
}

static void no_storage(tk_node *node) { node->storage = NULL; }

typedef struct rewriting {
    tk_node *wrt[OP_CASE_INPUTS], *batches[OP_CASE_INPUTS], *outputs[OP_CASE_INPUTS];
    bool batched[OP_CASE_INPUTS];
    size_t n_outputs;
} rewriting;

/* The case on placeholders of an open transform, and a batch for each of them. */
static void prepare(tk_builder *b, const op_case *c, uint32_t trace, rewriting *r) {
    for (int i = 0; i < c->n_inputs; i++) {
        r->wrt[i] = new_placeholder(b, c->inputs[i].dtype, c->inputs[i].shape);
        r->wrt[i]->trace = trace;
        r->batches[i] = new_placeholder(b, c->inputs[i].dtype, with_axis(c->inputs[i].shape, 0));
        r->batched[i] = true;
    }
    tk_node *node = tkb_node(b, c->op, (size_t)c->n_inputs, r->wrt, c->attrs);
    r->n_outputs = node->n_outputs;
    for (uint32_t i = 0; i < node->n_outputs; i++) r->outputs[i] = tkb_output(b, node, (int)i);
}

/* With the n-th allocation failing, for every n; each attempt starts without the nodes of the last.
 */
static void check_without_memory(tk_graph *graph, const op_case *c, const rewriting *r) {
    tk_status status = TK_OUT_OF_MEMORY;
    for (int64_t n = 1; status != TK_OK; n++) {
        tk_builder b;
        tk_node *results[OP_CASE_INPUTS];
        bool batched[OP_CASE_INPUTS];
        tk_builder_open(&b, graph, 0);
        tk_alloc_fail_after(n);
        status = tk_batch_run(&b, BATCH, (size_t)c->n_inputs, r->wrt, r->batches, r->batched,
                              r->n_outputs, r->outputs, results, batched);
        tk_alloc_fail_after(0);
        if (status != TK_OK && status != TK_OUT_OF_MEMORY)
            print_error("%s: %s\n", tk_op_name(c->op), tk_error_message());
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
        tk_builder_close(&b);
    }
}

static void every_rule_survives_without_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < op_case_count(); i++) {
        const op_case *c = op_case_at(i);
        if (c->n_inputs == 0) continue;
        tk_graph graph;
        tk_builder b;
        uint32_t trace;
        rewriting r = {0};
        assert_ok(tk_graph_init(&graph, no_storage));
        tk_graph_lock(&graph);
        assert_ok(tk_trace_open(&graph, &trace));
        tk_builder_open(&b, &graph, 0);
        prepare(&b, c, trace, &r);
        check_without_memory(&graph, c, &r);
        tk_builder_close(&b);
        assert_int_equal(graph.n_nodes, 1);
        tk_graph_unlock(&graph);
        tk_graph_deinit(&graph);
    }
}

/* ---- refusals ---- */

static tk_status identity(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    for (size_t i = 0; i < n_args; i++)
        if (tk_arrays_push(results, tk_negative(args[i])) != TK_OK) return TK_OUT_OF_MEMORY;
    return TK_OK;
}

static tk_status many_axes(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    tk_shape shape = {.count = TK_AXES_MAX,
                      .items = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    tk_array wide = tk_reshape(args[0], shape);
    return tk_arrays_push(results, tk_sum(wide, TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status reads_its_argument(void *self, const tk_array *args, size_t n_args,
                                    tk_arrays *results) {
    (void)self, (void)n_args, (void)results;
    return tk_eval(args[0]);
}

static void what_cannot_be_mapped_is_refused(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array args[] = {tk_zeros(f.ctx, TK_SHAPE(3, 1), TK_FLOAT32),
                       tk_zeros(f.ctx, TK_SHAPE(4, 3), TK_FLOAT32)};
    const int beyond[] = {2, 0}, none[] = {TK_UNMAPPED, TK_UNMAPPED}, matching[] = {0, 1},
              out[] = {0, 2};
    tk_arrays got = {0};
    assert_int_equal(tk_vmap(f.ctx, identity, NULL, args, 2, NULL, NULL, &got), TK_SHAPE_ERROR);
    assert_int_equal(tk_vmap(f.ctx, identity, NULL, args, 2, beyond, NULL, &got), TK_AXIS_ERROR);
    assert_int_equal(tk_vmap(f.ctx, identity, NULL, args, 2, none, NULL, &got),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_vmap(f.ctx, identity, NULL, args, 2, matching, out, &got), TK_AXIS_ERROR);
    assert_int_equal(tk_vmap(f.ctx, many_axes, NULL, args, 1, NULL, NULL, &got), TK_SHAPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "vmap: reshape_to: the result has 16 axes"));
    assert_int_not_equal(tk_vmap(f.ctx, reads_its_argument, NULL, args, 1, NULL, NULL, &got),
                         TK_OK);
    assert_int_equal(got.count, 0);
    assert_ok(tk_vmap(f.ctx, identity, NULL, args, 2, matching, NULL, &got));
    assert_int_equal(got.count, 2);
    tk_arrays_clear(&got);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_matches_a_loop),
        cmocka_unit_test(every_function_matches_a_loop),
        cmocka_unit_test(gradients_of_layers_match_a_loop),
        cmocka_unit_test(transforms_nest),
        cmocka_unit_test(results_go_where_out_axes_say),
        cmocka_unit_test(batches_may_be_empty_or_one),
        cmocka_unit_test(shared_work_is_done_once),
        cmocka_unit_test(a_batch_of_vectors_is_one_product),
        cmocka_unit_test(deep_graphs_are_batched),
        cmocka_unit_test(keys_draw_as_they_do_alone),
        cmocka_unit_test(own_rules_replace_the_plain_results),
        cmocka_unit_test(nodes_stay_on_their_streams),
        cmocka_unit_test(every_rule_survives_without_memory),
        cmocka_unit_test(what_cannot_be_mapped_is_refused),
    };
    return cmocka_run_group_tests_name("batching", tests, NULL, NULL);
}
