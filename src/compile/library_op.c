/* The library's kernels as functions with rules: see library_op.h.
 *
 * Softmax has a symmetric Jacobian, so its backward kernel is its forward mode too. That of RMS
 * norm is symmetric but for the weight: y = w n(x), dy = w n'(x) dx + dw n(x). */
#include "tiki/library_op.h"

#include <string.h>

#include "base/error.h"
#include "compile/library_node.h"
#include "tiki/kernel_op.h"

/* What the rules of a call know. */
typedef struct op_self {
    tk_context *context;
    double eps;
    bool has_schedule;
    tk_library_schedule schedule;
} op_self;

static const tk_library_schedule *schedule_of(const op_self *self) {
    return self->has_schedule ? &self->schedule : NULL;
}

static void release_self(void *self) { tk_free(self); }

/* The first of a list as a handle such as an op returns: a reshape to the shape that it has is the
 * array itself. */
static tk_array only(tk_context *context, tk_status status, tk_arrays *results) {
    if (status != TK_OK) return tk_error_array(context, status);
    return tk_reshape(results->items[0], tk_array_shape(results->items[0]));
}

/* Runs a function with rules; consumes nothing. */
static tk_array call(const tk_kernel_rules *rules, double eps, const tk_library_schedule *schedule,
                     const tk_array *args, size_t n_args) {
    tk_context *context = tk_array_context(args[0]);
    if (!context) return TK_NO_ARRAY;
    op_self *self = tk_calloc(1, sizeof *self);
    if (!self) return tk_error_array(context, tk_fail(TK_OUT_OF_MEMORY, "no memory for an op"));
    *self = (op_self){.context = context, .eps = eps, .has_schedule = schedule != NULL};
    if (schedule) self->schedule = *schedule;
    tk_kernel_rules full = *rules;
    full.size = sizeof full;
    full.self = self;
    full.release = release_self;
    tk_arrays results = {0};
    tk_status status = tk_kernel_call(context, &full, args, n_args, &results);
    tk_array result = only(context, status, &results);
    tk_arrays_clear(&results);
    return result;
}

/* ---- RMS norm ---- */

static tk_status norm_node(const op_self *self, tk_array x, tk_array weight,
                           const tk_library_schedule *schedule, tk_arrays *results) {
    tk_library_spec spec = {.id = TK_LIBRARY_RMS_NORM,
                            .slots = {tk_slot_in(x), tk_slot_in(weight),
                                      tk_slot_out(tk_array_dtype(x), tk_array_shape(x)),
                                      tk_slot_none()},
                            .number = self->eps,
                            .schedule = schedule};
    return tk_library_node(self->context, &spec, results);
}

static tk_status norm_forward(void *arg, const tk_array *args, size_t n_args, tk_arrays *results) {
    const op_self *self = arg;
    tk_array weight = n_args > 1 ? args[1] : TK_NO_ARRAY;
    return norm_node(self, args[0], weight, schedule_of(self), results);
}

static tk_status norm_backward(const op_self *self, tk_array x, tk_array weight, tk_array dy,
                               bool dweight, tk_arrays *results) {
    tk_library_spec spec = {
        .id = TK_LIBRARY_RMS_NORM_BACKWARD,
        .slots = {tk_slot_in(x), tk_slot_in(weight), tk_slot_in(dy),
                  tk_slot_out(tk_array_dtype(x), tk_array_shape(x)),
                  dweight ? tk_slot_out(tk_array_dtype(weight), tk_array_shape(weight))
                          : tk_slot_none()},
        .number = self->eps};
    return tk_library_node(self->context, &spec, results);
}

/* x, weight?, dy, y */
static tk_status norm_vjp(void *arg, const tk_array *args, size_t n_args, tk_arrays *results) {
    bool weighted = n_args == 4;
    return norm_backward(arg, args[0], weighted ? args[1] : TK_NO_ARRAY, args[n_args - 2], weighted,
                         results);
}

/* x, weight?, dx, dweight? */
static tk_status norm_jvp(void *arg, const tk_array *args, size_t n_args, tk_arrays *results) {
    const op_self *self = arg;
    bool weighted = n_args == 4;
    tk_arrays parts = {0};
    tk_array dx = args[weighted ? 2 : 1];
    tk_status status = norm_backward(self, args[0], TK_NO_ARRAY, dx, false, &parts);
    if (status == TK_OK && weighted) status = norm_node(self, args[0], TK_NO_ARRAY, NULL, &parts);
    if (status == TK_OK) {
        tk_array dy = parts.items[0];
        if (weighted) dy = tk_add(tk_multiply(args[1], dy), tk_multiply(args[3], parts.items[1]));
        status = tk_arrays_push(results, tk_astype(dy, tk_array_dtype(args[0])));
    }
    tk_arrays_clear(&parts);
    return status;
}

tk_array tk_kernel_rms_norm(tk_array x, tk_array weight, double eps,
                            const tk_library_schedule *schedule) {
    static const tk_kernel_rules rules = {.name = "rms_norm",
                                          .forward = norm_forward,
                                          .vjp = norm_vjp,
                                          .jvp = norm_jvp,
                                          .batching = TK_BATCHING_LOOP};
    const tk_array args[] = {x, weight};
    return call(&rules, eps, schedule, args, weight.node ? 2 : 1);
}

/* ---- softmax ---- */

static tk_status softmax_forward(void *arg, const tk_array *args, size_t n_args,
                                 tk_arrays *results) {
    const op_self *self = arg;
    (void)n_args;
    tk_library_spec spec = {.id = TK_LIBRARY_SOFTMAX,
                            .slots = {tk_slot_in(args[0]), tk_slot_out(tk_array_dtype(args[0]),
                                                                       tk_array_shape(args[0]))},
                            .schedule = schedule_of(self)};
    return tk_library_node(self->context, &spec, results);
}

static tk_status softmax_backward(const op_self *self, tk_array y, tk_array dy,
                                  tk_arrays *results) {
    tk_library_spec spec = {.id = TK_LIBRARY_SOFTMAX_BACKWARD,
                            .slots = {tk_slot_in(y), tk_slot_in(dy),
                                      tk_slot_out(tk_array_dtype(y), tk_array_shape(y))}};
    return tk_library_node(self->context, &spec, results);
}

/* x, dy, y */
static tk_status softmax_vjp(void *arg, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return softmax_backward(arg, args[2], args[1], results);
}

/* x, dx */
static tk_status softmax_jvp(void *arg, const tk_array *args, size_t n_args, tk_arrays *results) {
    const op_self *self = arg;
    tk_arrays y = {0};
    tk_status status = softmax_forward(arg, args, n_args, &y);
    if (status == TK_OK) status = softmax_backward(self, y.items[0], args[1], results);
    tk_arrays_clear(&y);
    return status;
}

tk_array tk_kernel_softmax(tk_array x, const tk_library_schedule *schedule) {
    static const tk_kernel_rules rules = {.name = "softmax",
                                          .forward = softmax_forward,
                                          .vjp = softmax_vjp,
                                          .jvp = softmax_jvp,
                                          .batching = TK_BATCHING_LEADING};
    return call(&rules, 0, schedule, &x, 1);
}

/* ---- transpose ---- */

static tk_shape exchanged(tk_array x) {
    tk_shape shape = tk_array_shape(x);
    int64_t last = shape.count - 1;
    if (last < 1) return shape;
    int64_t columns = shape.items[last];
    shape.items[last] = shape.items[last - 1];
    shape.items[last - 1] = columns;
    return shape;
}

static tk_status transpose_forward(void *arg, const tk_array *args, size_t n_args,
                                   tk_arrays *results) {
    const op_self *self = arg;
    (void)n_args;
    tk_library_spec spec = {
        .id = TK_LIBRARY_TRANSPOSE,
        .slots = {tk_slot_in(args[0]), tk_slot_out(tk_array_dtype(args[0]), exchanged(args[0]))},
        .schedule = schedule_of(self)};
    return tk_library_node(self->context, &spec, results);
}

/* Linear: x, dy, y and x, dx both have what is to be transposed second. */
static tk_status transpose_second(void *arg, const tk_array *args, size_t n_args,
                                  tk_arrays *results) {
    op_self *self = arg;
    (void)n_args;
    tk_array turned = tk_kernel_transpose(args[1], schedule_of(self));
    return tk_arrays_push(results, turned);
}

tk_array tk_kernel_transpose(tk_array x, const tk_library_schedule *schedule) {
    static const tk_kernel_rules rules = {.name = "transpose",
                                          .forward = transpose_forward,
                                          .vjp = transpose_second,
                                          .jvp = transpose_second,
                                          .batching = TK_BATCHING_LEADING};
    return call(&rules, 0, schedule, &x, 1);
}

/* ---- column sum ---- */

static tk_status column_sum_forward(void *arg, const tk_array *args, size_t n_args,
                                    tk_arrays *results) {
    const op_self *self = arg;
    tk_array x = args[0];
    (void)n_args;
    tk_library_spec spec = {
        .id = TK_LIBRARY_COLUMN_SUM,
        .slots = {tk_slot_in(x), tk_slot_out(tk_array_dtype(x), TK_SHAPE(tk_array_dim(x, -1)))},
        .schedule = schedule_of(self)};
    return tk_library_node(self->context, &spec, results);
}

/* x, dy, y */
static tk_status column_sum_vjp(void *arg, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    (void)arg, (void)n_args;
    return tk_arrays_push(results, tk_broadcast_to(args[1], tk_array_shape(args[0])));
}

/* x, dx */
static tk_status column_sum_jvp(void *arg, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    const op_self *self = arg;
    (void)n_args;
    return tk_arrays_push(results, tk_kernel_column_sum(args[1], schedule_of(self)));
}

tk_array tk_kernel_column_sum(tk_array x, const tk_library_schedule *schedule) {
    static const tk_kernel_rules rules = {.name = "column_sum",
                                          .forward = column_sum_forward,
                                          .vjp = column_sum_vjp,
                                          .jvp = column_sum_jvp,
                                          .batching = TK_BATCHING_LOOP};
    if (x.node && tk_array_status(x) == TK_OK && tk_array_rank(x) < 1)
        return tk_error_array(tk_array_context(x),
                              tk_fail(TK_SHAPE_ERROR, "column_sum: x has no axes, expected one or "
                                                      "more"));
    return call(&rules, 0, schedule, &x, 1);
}

/* ---- products ---- */

static tk_shape product_shape(tk_array a, tk_array b) {
    tk_shape shape = tk_array_shape(a);
    if (shape.count >= 2) shape.items[shape.count - 1] = tk_array_dim(b, -1);
    return shape;
}

static tk_status product_node(const op_self *self, tk_library_id id, tk_array a, tk_array b,
                              tk_arrays *results) {
    tk_library_spec spec = {.id = id,
                            .slots = {tk_slot_in(a), tk_slot_in(b),
                                      tk_slot_out(tk_array_dtype(a), product_shape(a, b))},
                            .schedule = schedule_of(self),
                            .strided = true};
    return tk_library_node(self->context, &spec, results);
}

static tk_status plain_forward(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    (void)n_args;
    return product_node(self, TK_LIBRARY_GEMM, args[0], args[1], results);
}

static tk_status hopper_forward(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    (void)n_args;
    return product_node(self, TK_LIBRARY_HOPPER_GEMM, args[0], args[1], results);
}

static tk_array turned(tk_array a) { return tk_swapaxes(a, -1, -2); }

typedef tk_array (*product)(tk_array a, tk_array b, const tk_library_schedule *schedule);

/* a, b, dy, y */
static tk_status product_vjp(product by, const tk_array *args, tk_arrays *results) {
    tk_status status = tk_arrays_push(results, by(args[2], turned(args[1]), NULL));
    if (status != TK_OK) return status;
    return tk_arrays_push(results, by(turned(args[0]), args[2], NULL));
}

/* a, b, da, db */
static tk_status product_jvp(product by, const tk_array *args, tk_arrays *results) {
    tk_array first = by(args[2], args[1], NULL);
    return tk_arrays_push(results, tk_add(first, by(args[0], args[3], NULL)));
}

static tk_status plain_vjp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return product_vjp(tk_kernel_matmul, args, results);
}
static tk_status plain_jvp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return product_jvp(tk_kernel_matmul, args, results);
}
static tk_status hopper_vjp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return product_vjp(tk_kernel_hopper_matmul, args, results);
}
static tk_status hopper_jvp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return product_jvp(tk_kernel_hopper_matmul, args, results);
}

tk_array tk_kernel_matmul(tk_array a, tk_array b, const tk_library_schedule *schedule) {
    static const tk_kernel_rules rules = {.name = "matmul",
                                          .forward = plain_forward,
                                          .vjp = plain_vjp,
                                          .jvp = plain_jvp,
                                          .batching = TK_BATCHING_LEADING};
    const tk_array args[] = {a, b};
    return call(&rules, 0, schedule, args, 2);
}

tk_array tk_kernel_hopper_matmul(tk_array a, tk_array b, const tk_library_schedule *schedule) {
    static const tk_kernel_rules rules = {.name = "hopper_matmul",
                                          .forward = hopper_forward,
                                          .vjp = hopper_vjp,
                                          .jvp = hopper_jvp,
                                          .batching = TK_BATCHING_LEADING};
    const tk_array args[] = {a, b};
    return call(&rules, 0, schedule, args, 2);
}

/* ---- schedules ---- */

/* Tensors of a call for its operands as the functions above take them. */
static tk_status slots_of(tk_library_id id, const tk_array *o, size_t count, tk_slot *slots) {
    tk_slot like = tk_slot_out(tk_array_dtype(o[0]), tk_array_shape(o[0]));
    slots[0] = tk_slot_in(o[0]);
    slots[1] = count > 1 ? tk_slot_in(o[1]) : tk_slot_none();
    switch (id) {
    case TK_LIBRARY_RMS_NORM:
        slots[2] = like;
        return TK_OK;
    case TK_LIBRARY_SOFTMAX:
    case TK_LIBRARY_COPY:
        slots[1] = like;
        return TK_OK;
    case TK_LIBRARY_TRANSPOSE:
        slots[1] = tk_slot_out(like.dtype, exchanged(o[0]));
        return TK_OK;
    case TK_LIBRARY_COLUMN_SUM:
        slots[1] = tk_slot_out(like.dtype, TK_SHAPE(tk_array_dim(o[0], -1)));
        return TK_OK;
    case TK_LIBRARY_GEMM:
    case TK_LIBRARY_HOPPER_GEMM:
        if (count < 2) return tk_fail(TK_INVALID_ARGUMENT, "a product has two operands");
        slots[2] = tk_slot_out(like.dtype, product_shape(o[0], o[1]));
        return TK_OK;
    default:
        return tk_fail(TK_UNSUPPORTED, "kernel %s is no op of library_op.h", tk_library_name(id));
    }
}

tk_status tk_library_schedule_for(tk_library_id id, const tk_array *operands, size_t count,
                                  tk_library_schedule *out_schedule) {
    tk_slot slots[TK_LIBRARY_SLOTS] = {{0}};
    tk_library_tensor tensors[TK_LIBRARY_SLOTS];
    TK_NEED(operands, out_schedule);
    TK_TRY(tk_check_enum("id", (int)id, TK_LIBRARY_COUNT, "tk_library_id"));
    if (count == 0) return tk_fail(TK_INVALID_ARGUMENT, "a schedule is for one operand at least");
    for (size_t i = 0; i < count; i++) TK_TRY(tk_array_status(operands[i]));
    TK_TRY(slots_of(id, operands, count, slots));
    for (size_t i = 0; i < tk_library_tensors(id); i++) tk_slot_describe(&slots[i], &tensors[i]);
    return tk_library_schedule_default(id, tk_library_tensors(id), tensors, out_schedule);
}
