/* The driver of elementwise ops: shapes into runs, runs to functions.
 *
 * A run whose sides are dense (or an operand that stands still) goes to the vector kernel in one
 * call. Any other run is cut into blocks, operands are packed, and the same kernel computes the
 * block: so a value does not depend on how its operands lie in memory. Ops without a vector kernel
 * take the reference function by its strides; half types then go through f32 blocks.
 *
 * Rejected: kernels for strided operands. There would be eight of each, and a block in the
 * first-level cache costs less than what a transcendental function takes. */
#include "cpu/body_ewise.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"
#include "cpu/vec.h"

#define BLOCK 512
#define CHEAP_GRAIN 32768
#define COSTLY_GRAIN 4096

static atomic_bool reference_only;

void tk_cpu_use_reference(bool only) { atomic_store(&reference_only, only); }
bool tk_cpu_reference(void) { return atomic_load_explicit(&reference_only, memory_order_relaxed); }

static bool is_half(tk_dtype dtype) { return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16; }

/* ---- which vector kernel an op has ---- */

typedef enum vec_family { FAMILY_NONE, FAMILY_UNARY, FAMILY_BINARY, FAMILY_COMPARE } vec_family;

typedef struct vec_choice {
    uint8_t family, kernel;
} vec_choice;

#define ONE(op, kernel) [TK_OP_##op] = {FAMILY_UNARY, TK_VEC_##kernel}
#define TWO(op, kernel) [TK_OP_##op] = {FAMILY_BINARY, TK_VEC_##kernel}
#define TEST(op, kernel) [TK_OP_##op] = {FAMILY_COMPARE, TK_VEC_##kernel}
static const vec_choice vec_choices[TK_OP_COUNT] = {
    ONE(abs, ABS),        ONE(negative, NEG),    ONE(sign, SIGN),        ONE(ceil, CEIL),
    ONE(floor, FLOOR),    ONE(rint, RINT),       ONE(trunc, TRUNC),      ONE(sqrt, SQRT),
    ONE(rsqrt, RSQRT),    ONE(exp, EXP),         ONE(expm1, EXPM1),      ONE(log, LOG),
    ONE(log1p, LOG1P),    ONE(log2, LOG2),       ONE(log10, LOG10),      ONE(sin, SIN),
    ONE(cos, COS),        ONE(tan, TAN),         ONE(arcsin, ASIN),      ONE(arccos, ACOS),
    ONE(arctan, ATAN),    ONE(sinh, SINH),       ONE(cosh, COSH),        ONE(tanh, TANH),
    ONE(arcsinh, ASINH),  ONE(arccosh, ACOSH),   ONE(arctanh, ATANH),    ONE(erf, ERF),
    ONE(erfinv, ERFINV),  ONE(sigmoid, SIGMOID), TWO(add, ADD),          TWO(subtract, SUB),
    TWO(multiply, MUL),   TWO(divide, DIV),      TWO(power, POW),        TWO(maximum, MAX),
    TWO(minimum, MIN),    TEST(equal, EQ),       TEST(not_equal, NE),    TEST(less, LT),
    TEST(less_equal, LE), TEST(greater, GT),     TEST(greater_equal, GE)};
#undef ONE
#undef TWO
#undef TEST

static bool vec_has(tk_op op, tk_dtype dtype) {
    vec_choice choice = vec_choices[op];
    if (dtype == TK_BOOL || dtype == TK_COMPLEX64) return false;
    switch ((vec_family)choice.family) {
    case FAMILY_NONE:
        return false;
    case FAMILY_UNARY:
        return tk_vec_unary_has((tk_vec_unary_op)choice.kernel, dtype);
    case FAMILY_BINARY:
        return tk_vec_binary_has((tk_vec_binary_op)choice.kernel, dtype);
    case FAMILY_COMPARE:
        return true;
    }
    return false;
}

/* ---- preparing ---- */

tk_ewise_fn *tk_ewise_reference(tk_op op, tk_dtype dtype) {
    if (dtype == TK_COMPLEX64) return tk_ewise_complex(op);
    if (dtype <= TK_INT64) return tk_ewise_integer(op, dtype);
    return is_half(dtype) ? NULL : tk_ewise_float(op, dtype);
}

static tk_dtype result_of(tk_op op, tk_dtype dtype) {
    tk_result result = tk_op_of(op)->result;
    if (result == TK_RESULT_BOOL) return TK_BOOL;
    return result == TK_RESULT_REAL && dtype == TK_COMPLEX64 ? TK_FLOAT32 : dtype;
}

static int operands_of(tk_op op) { return op < TK_OP_add ? 1 : 2; }

tk_ewise tk_ewise_prepare(tk_op op, tk_dtype dtype) {
    return (tk_ewise){.op = op,
                      .dtype = dtype,
                      .result = result_of(op, dtype),
                      .n_operands = operands_of(op),
                      .use_vec = !tk_cpu_reference() && vec_has(op, dtype),
                      .reference = tk_ewise_reference(op, is_half(dtype) ? TK_FLOAT32 : dtype)};
}

/* ---- running ---- */

static void vec_run(const tk_ewise *e, void *out, const void *a, const void *b, tk_vec_mode mode,
                    int64_t count) {
    vec_choice choice = vec_choices[e->op];
    if (choice.family == FAMILY_UNARY)
        tk_vec_unary((tk_vec_unary_op)choice.kernel, e->dtype, a, out, count);
    else if (choice.family == FAMILY_BINARY)
        tk_vec_binary((tk_vec_binary_op)choice.kernel, e->dtype, mode, a, b, out, count);
    else
        tk_vec_compare((tk_vec_compare_op)choice.kernel, e->dtype, mode, a, b, out, count);
}

/* One block: where a side is not dense it is in `sides`, whose strides then are. */
typedef struct block {
    uint64_t packed[3][BLOCK];
    char *data[3];
    int64_t strides[3];
} block;

static void pack(block *b, int side, size_t bytes, const char *from, int64_t stride,
                 int64_t count) {
    b->data[side] = (char *)b->packed[side];
    b->strides[side] = (int64_t)bytes;
    tk_copy_run(bytes, b->data[side], (int64_t)bytes, from, stride, count);
}

/* The one family whose kernels do not work in place: bytes over one-byte operands. */
static bool compares_in_place(const tk_ewise *e, char *const *data) {
    return vec_choices[e->op].family == FAMILY_COMPARE &&
           (data[0] == data[1] || data[0] == data[2]);
}

static void vec_block(const tk_ewise *e, char *const *data, const int64_t *strides, int64_t count) {
    block b;
    int64_t bytes = (int64_t)tk_dtype_size(e->dtype), result = (int64_t)tk_dtype_size(e->result);
    memcpy(b.data, data, (size_t)(1 + e->n_operands) * sizeof *data);
    for (int k = 1; k <= e->n_operands; k++)
        if (strides[k] != bytes) pack(&b, k, (size_t)bytes, data[k], strides[k], count);
    bool dense = strides[0] == result && !compares_in_place(e, data);
    void *out = dense ? (void *)data[0] : b.packed[0];
    vec_run(e, out, b.data[1], e->n_operands == 2 ? b.data[2] : NULL, TK_VEC_VV, count);
    if (!dense) tk_copy_run((size_t)result, data[0], strides[0], out, result, count);
}

/* f32 blocks around the reference function for half types. */
static void half_block(const tk_ewise *e, char *const *data, const int64_t *strides,
                       int64_t count) {
    float wide[3][BLOCK];
    uint16_t narrow[BLOCK];
    char *sides[3] = {(char *)wide[0]};
    int64_t steps[3] = {sizeof(float), sizeof(float), sizeof(float)};
    for (int k = 1; k <= e->n_operands; k++) {
        tk_copy_run(2, (char *)narrow, 2, data[k], strides[k], count);
        tk_convert_run(e->dtype, TK_FLOAT32, narrow, wide[k], count);
        sides[k] = (char *)wide[k];
    }
    if (e->result != e->dtype) {
        sides[0] = data[0];
        steps[0] = strides[0];
        e->reference(sides, steps, count);
        return;
    }
    e->reference(sides, steps, count);
    tk_convert_run(TK_FLOAT32, e->dtype, wide[0], narrow, count);
    tk_copy_run(2, data[0], strides[0], (char *)narrow, 2, count);
}

typedef void block_fn(const tk_ewise *e, char *const *data, const int64_t *strides, int64_t count);

static void by_blocks(const tk_ewise *e, block_fn *run, char *const *data, const int64_t *strides,
                      int64_t count) {
    char *at[3];
    memcpy(at, data, (size_t)(1 + e->n_operands) * sizeof *at);
    for (int64_t i = 0; i < count; i += BLOCK) {
        run(e, at, strides, count - i < BLOCK ? count - i : BLOCK);
        for (int k = 0; k <= e->n_operands; k++) at[k] += BLOCK * strides[k];
    }
}

/* Whether the run can go to the vector kernel as it is, and how. */
static bool vec_mode_of(const tk_ewise *e, const int64_t *strides, tk_vec_mode *out_mode) {
    int64_t bytes = (int64_t)tk_dtype_size(e->dtype);
    if (strides[0] != (int64_t)tk_dtype_size(e->result)) return false;
    *out_mode = TK_VEC_VV;
    if (e->n_operands == 1) return strides[1] == bytes;
    if (strides[1] == bytes && strides[2] == bytes) return true;
    *out_mode = strides[1] == bytes ? TK_VEC_VS : TK_VEC_SV;
    return (strides[1] == bytes && strides[2] == 0) || (strides[1] == 0 && strides[2] == bytes);
}

void tk_ewise_run(void *ewise, char *const *data, const int64_t *strides, int64_t count) {
    const tk_ewise *e = ewise;
    tk_vec_mode mode;
    if (!e->use_vec && is_half(e->dtype))
        by_blocks(e, half_block, data, strides, count);
    else if (!e->use_vec)
        e->reference(data, strides, count);
    else if (vec_mode_of(e, strides, &mode) && !compares_in_place(e, data))
        vec_run(e, data[0], data[1], e->n_operands == 2 ? data[2] : NULL, mode, count);
    else
        by_blocks(e, vec_block, data, strides, count);
}

static int64_t grain_of(const tk_ewise *e) {
    return e->use_vec && vec_choices[e->op].family != FAMILY_UNARY ? CHEAP_GRAIN : COSTLY_GRAIN;
}

tk_status tk_body_ewise(const tk_body_call *call) {
    tk_ewise e = tk_ewise_prepare(call->op, call->inputs[0].dtype);
    assert(e.reference && e.n_operands == call->n_inputs && e.result == call->outputs[0].dtype);
    tk_loop loop = tk_loop_over(call->outputs[0].rank, call->outputs[0].shape);
    tk_loop_add(&loop, &call->outputs[0]);
    for (int i = 0; i < call->n_inputs; i++) tk_loop_add(&loop, &call->inputs[i]);
    tk_loop_collapse(&loop);
    size_t operand = tk_dtype_size(e.dtype), bytes[] = {tk_dtype_size(e.result), operand, operand};
    tk_loop_each_turned(&loop, bytes, grain_of(&e), tk_ewise_run, &e);
    return TK_OK;
}

/* ---- where ---- */

#define WHERE(bytes)                                                                               \
    static void where_##bytes(char *const *data, const int64_t *strides, int64_t count) {          \
        char *out = data[0];                                                                       \
        const char *condition = data[1], *x = data[2], *y = data[3];                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            memcpy(out, *condition ? x : y, bytes);                                                \
            out += strides[0];                                                                     \
            condition += strides[1];                                                               \
            x += strides[2];                                                                       \
            y += strides[3];                                                                       \
        }                                                                                          \
    }
WHERE(1)
WHERE(2)
WHERE(4)
WHERE(8)

static bool dense_or_still(int64_t stride, int64_t bytes) { return stride == 0 || stride == bytes; }

static void where_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    int64_t bytes = (int64_t) * (const size_t *)arg;
    bool fast = !tk_cpu_reference() && strides[0] == bytes && strides[1] == 1 &&
                dense_or_still(strides[2], bytes) && dense_or_still(strides[3], bytes);
    if (fast)
        tk_vec_where((size_t)bytes, (const uint8_t *)data[1], data[2], strides[2] == 0, data[3],
                     strides[3] == 0, data[0], count);
    else if (bytes == 1)
        where_1(data, strides, count);
    else if (bytes == 2)
        where_2(data, strides, count);
    else if (bytes == 4)
        where_4(data, strides, count);
    else
        where_8(data, strides, count);
}

tk_status tk_body_where(const tk_body_call *call) {
    size_t bytes = tk_dtype_size(call->outputs[0].dtype);
    tk_loop loop = tk_loop_over(call->outputs[0].rank, call->outputs[0].shape);
    tk_loop_add(&loop, &call->outputs[0]);
    for (int i = 0; i < 3; i++) tk_loop_add(&loop, &call->inputs[i]);
    tk_loop_collapse(&loop);
    size_t sizes[] = {bytes, 1, bytes, bytes};
    tk_loop_each_turned(&loop, sizes, CHEAP_GRAIN, where_run, &bytes);
    return TK_OK;
}
