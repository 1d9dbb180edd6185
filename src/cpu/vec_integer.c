/* Integers: arithmetic modulo 2^n in unsigned types, where C defines it, and comparison of every
 * dtype without a vector form. Plain loops, which the compiler vectorises; index arithmetic is not
 * hot. */
#include <assert.h>

#include "cpu/vec_generic.h"

/* dtype, short name, type, unsigned type of at least 32 bits to compute in. */
#define INTEGERS(X)                                                                                \
    X(TK_UINT8, u8, uint8_t, uint32_t)                                                             \
    X(TK_UINT16, u16, uint16_t, uint32_t)                                                          \
    X(TK_UINT32, u32, uint32_t, uint32_t)                                                          \
    X(TK_UINT64, u64, uint64_t, uint64_t)                                                          \
    X(TK_INT8, i8, int8_t, uint32_t)                                                               \
    X(TK_INT16, i16, int16_t, uint32_t)                                                            \
    X(TK_INT32, i32, int32_t, uint32_t)                                                            \
    X(TK_INT64, i64, int64_t, uint64_t)

#define UNARY(name, type, expression)                                                              \
    static void name(const void *x_, void *out_, int64_t count) {                                  \
        const type *x_at = x_;                                                                     \
        type *out = out_;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type x = x_at[i];                                                                      \
            out[i] = (type)(expression);                                                           \
        }                                                                                          \
    }
#define BINARY(name, type, expression)                                                             \
    static void name(tk_vec_mode mode, const void *a_, const void *b_, void *out_,                 \
                     int64_t count) {                                                              \
        const type *a_at = a_, *b_at = b_;                                                         \
        type *out = out_;                                                                          \
        int64_t a_step = mode != TK_VEC_SV, b_step = mode != TK_VEC_VS;                            \
        if (count <= 0) return;                                                                    \
        type a = *a_at, b = *b_at;                                                                 \
        if (mode == TK_VEC_VV) {                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                a = a_at[i];                                                                       \
                b = b_at[i];                                                                       \
                out[i] = (type)(expression);                                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            if (a_step) a = a_at[i];                                                               \
            if (b_step) b = b_at[i];                                                               \
            out[i] = (type)(expression);                                                           \
        }                                                                                          \
    }

/* Of an unsigned type, x < 0 is never true, and (type)-1 is its greatest value, by which division
 * is 1 or 0: so the case is only taken for signed types. */
#define IS_SIGNED(type) ((type)-1 < 1)
#define DIVIDE(type, wide)                                                                         \
    (b == 0 ? 0 : IS_SIGNED(type) && b == (type)-1 ? (type)(0 - (wide)a) : a / b)

#define FUNCTIONS(dtype, name, type, wide)                                                         \
    UNARY(neg_##name, type, 0 - (wide)x)                                                           \
    UNARY(abs_##name, type, IS_SIGNED(type) && x < 1 ? 0 - (wide)x : (wide)x)                      \
    UNARY(square_##name, type, (wide)x *(wide)x)                                                   \
    UNARY(sign_##name, type, x == 0 ? 0 : IS_SIGNED(type) && x < 1 ? -1 : 1)                       \
    BINARY(add_##name, type, (wide)a + (wide)b)                                                    \
    BINARY(sub_##name, type, (wide)a - (wide)b)                                                    \
    BINARY(mul_##name, type, (wide)a *(wide)b)                                                     \
    BINARY(div_##name, type, DIVIDE(type, wide))                                                   \
    BINARY(max_##name, type, a > b ? a : b)                                                        \
    BINARY(min_##name, type, a < b ? a : b)
INTEGERS(FUNCTIONS)

tk_vec_unary_fn *tk_vec_unary_integer(tk_vec_unary_op op, tk_dtype dtype) {
#define UNARY_ROW(dtype, name, type, wide)                                                         \
    [dtype] = {[TK_VEC_NEG] = neg_##name,                                                          \
               [TK_VEC_ABS] = abs_##name,                                                          \
               [TK_VEC_SQUARE] = square_##name,                                                    \
               [TK_VEC_SIGN] = sign_##name},
    static tk_vec_unary_fn *const table[TK_DTYPE_COUNT][TK_VEC_UNARY_COUNT] = {INTEGERS(UNARY_ROW)};
    return table[dtype][op];
}

tk_vec_binary_moded *tk_vec_binary_integer(tk_vec_binary_op op, tk_dtype dtype) {
#define BINARY_ROW(dtype, name, type, wide)                                                        \
    [dtype] = {[TK_VEC_ADD] = add_##name, [TK_VEC_SUB] = sub_##name, [TK_VEC_MUL] = mul_##name,    \
               [TK_VEC_DIV] = div_##name, [TK_VEC_MAX] = max_##name, [TK_VEC_MIN] = min_##name},
    static tk_vec_binary_moded *const table[TK_DTYPE_COUNT][TK_VEC_BINARY_COUNT] = {
        INTEGERS(BINARY_ROW)};
    return table[dtype][op];
}

#define COMPARE(id, op_name, sign)                                                                 \
    case TK_VEC_##id:                                                                              \
        for (int64_t i = 0; i < count; i++) out[i] = a[i * a_step] sign b[i * b_step];             \
        break;
#define COMPARE_TYPE(dtype, name, type, wide)                                                      \
    static void compare_##name(tk_vec_compare_op op, const type *a, int64_t a_step, const type *b, \
                               int64_t b_step, uint8_t *out, int64_t count) {                      \
        switch (op) {                                                                              \
            TK_VEC_COMPARE_OPS(COMPARE)                                                            \
        case TK_VEC_COMPARE_COUNT:                                                                 \
            assert(false);                                                                         \
        }                                                                                          \
    }
INTEGERS(COMPARE_TYPE)
COMPARE_TYPE(TK_FLOAT64, f64, double, double)

void tk_vec_compare_generic(tk_vec_compare_op op, tk_dtype dtype, tk_vec_mode mode, const void *a,
                            const void *b, uint8_t *out, int64_t count) {
    int64_t a_step = mode != TK_VEC_SV, b_step = mode != TK_VEC_VS;
    switch (dtype) {
#define COMPARE_CASE(dtype, name, type, wide)                                                      \
    case dtype:                                                                                    \
        compare_##name(op, a, a_step, b, b_step, out, count);                                      \
        return;
        INTEGERS(COMPARE_CASE)
        COMPARE_CASE(TK_FLOAT64, f64, double, double)
    case TK_BOOL:
        compare_u8(op, a, a_step, b, b_step, out, count);
        return;
    default:
        assert(false);
    }
}
