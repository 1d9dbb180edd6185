/* Bodies of operations on floats, and of those that integers and floats share. Halves are computed
 * in f32 and rounded once more, which is correct for one operation; a fused one goes through f64
 * rounded to odd. NaNs are a class: a result that is NaN is some NaN. */
#include <math.h>

#include "base/half.h"
#include "kernel/emu_ewise.h"

#define ALL_FLOATS(name, declare, expression)                                                      \
    EMU_WIDE_FLOATS(name, declare, expression) EMU_HALVES(name, declare, expression)
#define FLOAT_CASES(name) EMU_WIDE_CASES(name) EMU_HALF_CASES(name)

/* ---- integers and floats ---- */

#define NUM2(name, int_expression, float_expression)                                               \
    EMU_FOR_INTS(EMU_INT2_BODY, name, int_expression)                                              \
    ALL_FLOATS(name, EMU_SECOND, float_expression)                                                 \
    EMU_PICK(name, EMU_INT_CASES(name) FLOAT_CASES(name))
#define ADD(widen) x + widen(b[l])
#define SUB(widen) x - widen(b[l])
#define MUL(widen) x *widen(b[l])
NUM2(add, (W)x + y, ADD)
NUM2(sub, (W)x - y, SUB)
NUM2(mul, (W)x *y, MUL)

/* Signs of floats are bits, of NaNs too. */
#define SIGN_BODY(name, suffix, U, expression)                                                     \
    EMU_BODY(name##_##suffix) {                                                                    \
        const U sign = (U)((U)1 << (8 * sizeof(U) - 1));                                           \
        U *to = tk_emu_to(warp, insn);                                                             \
        const U *a = tk_emu_from(warp, insn, 0);                                                   \
        EMU_EACH_ELEMENT(insn, mask, to[l] = (U)(expression))                                      \
    }
#define SIGNS(name, expression)                                                                    \
    SIGN_BODY(name, f16, uint16_t, expression)                                                     \
    SIGN_BODY(name, bf16, uint16_t, expression)                                                    \
    SIGN_BODY(name, f32, uint32_t, expression) SIGN_BODY(name, f64, uint64_t, expression)
EMU_FOR_INTS(EMU_INT1_BODY, neg, 0 - (W)x)
SIGNS(neg, a[l] ^ sign)
EMU_PICK(neg, EMU_INT_CASES(neg) FLOAT_CASES(neg))
EMU_FOR_INTS(EMU_INT1_BODY, abs, (I)x < 0 ? 0 - (W)x : x)
SIGNS(abs, a[l] & ~sign)
EMU_PICK(abs, EMU_INT_CASES(abs) FLOAT_CASES(abs))

/* ---- extremes ---- */

/* The smaller in the order -0 < 0; of a NaN and a number `nan` says which. */
#define EXTREME(name, F, before)                                                                   \
    static F name(F x, F y, bool numbers) {                                                        \
        if (isnan(x)) return numbers ? y : x;                                                      \
        if (isnan(y)) return numbers ? x : y;                                                      \
        if (x == y) return (signbit(x) != 0) == (before(0, 1)) ? x : y;                            \
        return before(x, y) ? x : y;                                                               \
    }
#define LESS(x, y) ((x) < (y))
#define GREATER(x, y) ((x) > (y))
EXTREME(least_float, float, LESS)
EXTREME(most_float, float, GREATER)
EXTREME(least_double, double, LESS)
EXTREME(most_double, double, GREATER)
#define LEAST(x, y, numbers)                                                                       \
    _Generic((x), float : least_float, double : least_double)(x, y, numbers)
#define MOST(x, y, numbers) _Generic((x), float : most_float, double : most_double)(x, y, numbers)
#define MIN(widen) LEAST(x, (F)widen(b[l]), false)
#define MAX(widen) MOST(x, (F)widen(b[l]), false)
#define MIN_NUM(widen) LEAST(x, (F)widen(b[l]), true)
#define MAX_NUM(widen) MOST(x, (F)widen(b[l]), true)
#define FLOAT2(name, expression)                                                                   \
    ALL_FLOATS(name, EMU_SECOND, expression) EMU_PICK(name, FLOAT_CASES(name))
FLOAT2(min, MIN)
FLOAT2(max, MAX)
FLOAT2(min_num, MIN_NUM)
FLOAT2(max_num, MAX_NUM)

/* ---- f32 and f64 ---- */

#define BY_TYPE(function, x) _Generic((x), float : function##f, double : function)
#define WIDE1(name, expression)                                                                    \
    EMU_WIDE_FLOATS(name, EMU_NO_MORE, expression) EMU_PICK(name, EMU_WIDE_CASES(name))
#define WIDE2(name, expression)                                                                    \
    EMU_WIDE_FLOATS(name, EMU_SECOND, expression) EMU_PICK(name, EMU_WIDE_CASES(name))
#define DIV(widen) x / b[l]
#define RCP(widen) 1 / x
#define SQRT(widen) BY_TYPE(sqrt, x)(x)
#define FLOOR(widen) BY_TYPE(floor, x)(x)
#define CEIL(widen) BY_TYPE(ceil, x)(x)
#define TRUNC(widen) BY_TYPE(trunc, x)(x)
#define RINT(widen) BY_TYPE(rint, x)(x)
#define COPYSIGN(widen) BY_TYPE(copysign, x)(x, b[l])
WIDE2(div, DIV)
WIDE1(rcp, RCP)
WIDE1(sqrt, SQRT)
WIDE1(floor, FLOOR)
WIDE1(ceil, CEIL)
WIDE1(trunc, TRUNC)
WIDE1(rint, RINT)
WIDE2(copysign, COPYSIGN)

/* ---- fused ---- */

/* a b + c of halves: the product is exact in f64, the sum is rounded to odd there and then once. */
static double fused_to_odd(double a, double b, double c) {
    double product = a * b, sum = product + c, rest = sum - product;
    double error = (product - (sum - rest)) + (c - rest);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (error != 0 && isfinite(sum) && !(bits & 1))
        bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

#define HALF_FMA(suffix, widen, narrow)                                                            \
    EMU_BODY(fma_##suffix) {                                                                       \
        uint16_t *to = tk_emu_to(warp, insn);                                                      \
        const uint16_t *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1),           \
                       *c = tk_emu_from(warp, insn, 2);                                            \
        EMU_EACH_ELEMENT(insn, mask,                                                               \
                         to[l] = narrow(fused_to_odd((double)widen(a[l]), (double)widen(b[l]),     \
                                                     (double)widen(c[l]))))                        \
    }
HALF_FMA(f16, tk_f16_to_f32, tk_f64_to_f16)
HALF_FMA(bf16, tk_bf16_to_f32, tk_f64_to_bf16)
#define FMA(widen) BY_TYPE(fma, x)(x, b[l], c[l])
EMU_WIDE_FLOATS(fma, EMU_THIRD, FMA)
EMU_PICK(fma, FLOAT_CASES(fma))
static float to_unit(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
EMU_FLOAT_BODY(fma_unit, f32, float, float, EMU_SAME, (float), EMU_THIRD,
               to_unit(fmaf(x, b[l], c[l])))
EMU_PICK(fma_unit, case TK_K_F32 : return (tk_emu_pick){.body = fma_unit_f32};)

/* ---- approximations, correctly rounded (through f64) ---- */

#define APPROX(name, call)                                                                         \
    EMU_FLOAT_BODY(name, f32, float, float, EMU_SAME, (float), EMU_NO_MORE, call((double)x))       \
    EMU_PICK(name, case TK_K_F32 : return (tk_emu_pick){.body = name##_f32};)
#define RSQRT(x) (1 / sqrt(x))
APPROX(exp2_approx, exp2)
APPROX(log2_approx, log2)
APPROX(rsqrt_approx, RSQRT)
APPROX(sin_approx, sin)
APPROX(cos_approx, cos)
APPROX(tanh_approx, tanh)

/* ---- comparing ---- */

typedef enum order { BELOW = 1, EQUAL = 2, ABOVE = 4, UNORDERED = 8 } order;

/* Which orders satisfy a comparison, by its place in the words of fcmp. */
static const uint8_t satisfied[] = {EQUAL,
                                    BELOW | ABOVE,
                                    BELOW,
                                    BELOW | EQUAL,
                                    ABOVE,
                                    ABOVE | EQUAL,
                                    EQUAL | UNORDERED,
                                    BELOW | ABOVE | UNORDERED,
                                    BELOW | UNORDERED,
                                    BELOW | EQUAL | UNORDERED,
                                    ABOVE | UNORDERED,
                                    ABOVE | EQUAL | UNORDERED,
                                    BELOW | EQUAL | ABOVE,
                                    UNORDERED};

#define COMPARE(suffix, S, F, widen)                                                               \
    EMU_BODY(fcmp_##suffix) {                                                                      \
        const unsigned accepted = satisfied[tk_kop_attr(insn->op, TK_KA_fcmp)];                    \
        uint8_t *to = tk_emu_to(warp, insn);                                                       \
        const S *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1);                  \
        TK_EMU_EACH(mask, {                                                                        \
            F x = widen(a[l]), y = widen(b[l]);                                                    \
            unsigned order = (x < y) * BELOW | (x == y) * EQUAL | (x > y) * ABOVE;                 \
            to[l] = ((order ? order : UNORDERED) & accepted) != 0;                                 \
        });                                                                                        \
    }
COMPARE(f16, uint16_t, float, tk_f16_to_f32)
COMPARE(bf16, uint16_t, float, tk_bf16_to_f32)
COMPARE(f32, float, float, EMU_SAME)
COMPARE(f64, double, double, EMU_SAME)
EMU_PICK(fcmp, FLOAT_CASES(fcmp))
