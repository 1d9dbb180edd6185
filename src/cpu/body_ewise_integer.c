/* Reference elementwise functions of integers and bool: wrapping, and total where C is undefined.
 */
#include <assert.h>

#include "cpu/body_ewise.h"

#define U uint64_t
#define BITS_OF(T) ((int)sizeof(T) * 8)
#define IS_NEGATIVE(value) ((value) < 0)
#define IS_NEVER(value) ((void)(value), 0)

#define DIVISION(T, name, NEGATIVE)                                                                \
    static T floor_divide_##name(T x, T y) {                                                       \
        if (y == 0) return 0;                                                                      \
        if (NEGATIVE(y) && y == (T)-1) return (T)(0 - (U)x);                                       \
        T quotient = (T)(x / y);                                                                   \
        bool rounded_up = x % y != 0 && (NEGATIVE(x)) != (NEGATIVE(y));                            \
        return (T)(quotient - rounded_up);                                                         \
    }                                                                                              \
    static T remainder_##name(T x, T y) {                                                          \
        if (y == 0 || (NEGATIVE(y) && y == (T)-1)) return 0;                                       \
        T rest = (T)(x % y);                                                                       \
        bool wrong_sign = rest != 0 && (NEGATIVE(rest)) != (NEGATIVE(y));                          \
        return (T)(wrong_sign ? rest + y : rest);                                                  \
    }

#define POWERS(T, name, NEGATIVE)                                                                  \
    static T power_##name(T x, T y) {                                                              \
        if (NEGATIVE(y)) return (T)(x == 1 ? 1 : x == (T)-1 ? (y & 1 ? x : 1) : 0);                \
        U result = 1, square = (U)x;                                                               \
        for (U exponent = (U)y; exponent; exponent >>= 1, square *= square)                        \
            if (exponent & 1) result *= square;                                                    \
        return (T)result;                                                                          \
    }                                                                                              \
    static T left_shift_##name(T x, T y) {                                                         \
        return (T)(NEGATIVE(y) || y >= BITS_OF(T) ? 0 : (U)x << y);                                \
    }                                                                                              \
    static T right_shift_##name(T x, T y) {                                                        \
        if (NEGATIVE(y) || y >= BITS_OF(T)) return (T)(NEGATIVE(x) ? -1 : 0);                      \
        return (T)(x >> y);                                                                        \
    }

#define TOTAL(T, name, NEGATIVE) DIVISION(T, name, NEGATIVE) POWERS(T, name, NEGATIVE)
TOTAL(uint8_t, u8, IS_NEVER)
TOTAL(uint16_t, u16, IS_NEVER)
TOTAL(uint32_t, u32, IS_NEVER)
TOTAL(uint64_t, u64, IS_NEVER)
TOTAL(int8_t, i8, IS_NEGATIVE)
TOTAL(int16_t, i16, IS_NEGATIVE)
TOTAL(int32_t, i32, IS_NEGATIVE)
TOTAL(int64_t, i64, IS_NEGATIVE)

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(name, SUFFIX)
#define KIND_INTEGER
#define NEGATIVE IS_NEVER

#define T uint8_t
#define SUFFIX u8
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T uint16_t
#define SUFFIX u16
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T uint32_t
#define SUFFIX u32
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T uint64_t
#define SUFFIX u64
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#undef NEGATIVE
#define NEGATIVE IS_NEGATIVE

#define T int8_t
#define SUFFIX i8
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T int16_t
#define SUFFIX i16
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T int32_t
#define SUFFIX i32
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T int64_t
#define SUFFIX i64
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#undef KIND_INTEGER
#define KIND_BOOLEAN

#define T uint8_t
#define SUFFIX truth
#define LOAD(value) ((value) != 0)
#include "cpu/body_ewise_type.inc"

tk_ewise_fn *tk_ewise_integer(tk_op op, tk_dtype dtype) {
    static tk_ewise_fn *const *const tables[] = {
        [TK_BOOL] = table_truth, [TK_UINT8] = table_u8,   [TK_UINT16] = table_u16,
        [TK_UINT32] = table_u32, [TK_UINT64] = table_u64, [TK_INT8] = table_i8,
        [TK_INT16] = table_i16,  [TK_INT32] = table_i32,  [TK_INT64] = table_i64};
    assert(dtype <= TK_INT64);
    return tables[dtype][op];
}
