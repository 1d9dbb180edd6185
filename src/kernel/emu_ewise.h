/* How bodies of elementwise operations are written: an expression of x, y and z for each kind of
 * type.
 *
 * In the expression U, I and W are the unsigned and the signed type of the element and an unsigned
 * type that arithmetic does not promote away from; F the type that floats are computed in. The lane
 * loops come from the macros, and pick functions choose by the type of operand 0. */
#ifndef KERNEL_EMU_EWISE_H
#define KERNEL_EMU_EWISE_H

#include "kernel/emu.h"

/* Runs a statement for each element and active lane; `l` counts both. */
#define EMU_EACH_ELEMENT(insn, mask, ...)                                                          \
    for (int base = 0; base < (insn)->count * TK_EMU_LANES; base += TK_EMU_LANES) {                \
        if ((mask) == TK_EMU_ALL) {                                                                \
            for (int l = base; l < base + TK_EMU_LANES; l++) {                                     \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t left = (mask); left; left &= left - 1) {                                 \
                int l = base + __builtin_ctz(left);                                                \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
        }                                                                                          \
    }

#define EMU_BODY(function)                                                                         \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)

/* ---- integers ---- */

#define EMU_INT_TYPES(U_, I_, W_)                                                                  \
    typedef U_ U;                                                                                  \
    typedef I_ I;                                                                                  \
    typedef W_ W;                                                                                  \
    (void)sizeof(I), (void)sizeof(W)

#define EMU_INT1_BODY(name, U_, I_, W_, expression)                                                \
    EMU_BODY(name##_##U_) {                                                                        \
        EMU_INT_TYPES(U_, I_, W_);                                                                 \
        U *to = tk_emu_to(warp, insn);                                                             \
        const U *a = tk_emu_from(warp, insn, 0);                                                   \
        EMU_EACH_ELEMENT(insn, mask, {                                                             \
            U x = a[l];                                                                            \
            to[l] = (U)(expression);                                                               \
        })                                                                                         \
    }

#define EMU_INT2_BODY(name, U_, I_, W_, expression)                                                \
    EMU_BODY(name##_##U_) {                                                                        \
        EMU_INT_TYPES(U_, I_, W_);                                                                 \
        U *to = tk_emu_to(warp, insn);                                                             \
        const U *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1);                  \
        EMU_EACH_ELEMENT(insn, mask, {                                                             \
            U x = a[l], y = b[l];                                                                  \
            to[l] = (U)(expression);                                                               \
        })                                                                                         \
    }

/* The second operand is an i32 without a sign. */
#define EMU_SHIFT_BODY(name, U_, I_, W_, expression)                                               \
    EMU_BODY(name##_##U_) {                                                                        \
        EMU_INT_TYPES(U_, I_, W_);                                                                 \
        U *to = tk_emu_to(warp, insn);                                                             \
        const U *a = tk_emu_from(warp, insn, 0);                                                   \
        const uint32_t *b = tk_emu_from(warp, insn, 1);                                            \
        EMU_EACH_ELEMENT(insn, mask, {                                                             \
            U x = a[l];                                                                            \
            uint32_t y = b[l];                                                                     \
            to[l] = (U)(expression);                                                               \
        })                                                                                         \
    }

#define EMU_FOR_INTS(body, name, expression)                                                       \
    body(name, uint16_t, int16_t, uint32_t, expression)                                            \
        body(name, uint32_t, int32_t, uint32_t, expression)                                        \
            body(name, uint64_t, int64_t, uint64_t, expression)

#define EMU_INT_CASES(name)                                                                        \
    case TK_K_I16:                                                                                 \
        return (tk_emu_pick){.body = name##_uint16_t};                                             \
    case TK_K_I32:                                                                                 \
        return (tk_emu_pick){.body = name##_uint32_t};                                             \
    case TK_K_I64:                                                                                 \
        return (tk_emu_pick){.body = name##_uint64_t};

#define EMU_PICK(name, cases)                                                                      \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        switch ((tk_kscalar)op->operands[0]->type.scalar) {                                        \
            cases default : return (tk_emu_pick){0};                                               \
        }                                                                                          \
    }

#define EMU_INT1(name, expression)                                                                 \
    EMU_FOR_INTS(EMU_INT1_BODY, name, expression) EMU_PICK(name, EMU_INT_CASES(name))
#define EMU_INT2(name, expression)                                                                 \
    EMU_FOR_INTS(EMU_INT2_BODY, name, expression) EMU_PICK(name, EMU_INT_CASES(name))
#define EMU_SHIFT(name, expression)                                                                \
    EMU_FOR_INTS(EMU_SHIFT_BODY, name, expression) EMU_PICK(name, EMU_INT_CASES(name))

/* ---- floats ---- */

/* A float type S as it is kept, the type F that it is computed in, and the ways between them. The
 * result of one operation on halves, computed in f32 and rounded once more, is the correctly
 * rounded one. */
#define EMU_FLOAT_BODY(name, suffix, S, F_, widen, narrow, declare, expression)                    \
    EMU_BODY(name##_##suffix) {                                                                    \
        typedef F_ F;                                                                              \
        (void)sizeof(F);                                                                           \
        S *to = tk_emu_to(warp, insn);                                                             \
        const S *a = tk_emu_from(warp, insn, 0);                                                   \
        declare(S) EMU_EACH_ELEMENT(insn, mask, {                                                  \
            F x = widen(a[l]);                                                                     \
            to[l] = narrow(expression);                                                            \
        })                                                                                         \
    }

#define EMU_SAME(value) (value)
#define EMU_NO_MORE(S)
#define EMU_SECOND(S) const S *b = tk_emu_from(warp, insn, 1);
#define EMU_THIRD(S) EMU_SECOND(S) const S *c = tk_emu_from(warp, insn, 2);

#define EMU_WIDE_FLOATS(name, declare, expression)                                                 \
    EMU_FLOAT_BODY(name, f32, float, float, EMU_SAME, EMU_SAME, declare, expression(EMU_SAME))     \
    EMU_FLOAT_BODY(name, f64, double, double, EMU_SAME, EMU_SAME, declare, expression(EMU_SAME))
#define EMU_HALVES(name, declare, expression)                                                      \
    EMU_FLOAT_BODY(name, f16, uint16_t, float, tk_f16_to_f32, tk_f32_to_f16, declare,              \
                   expression(tk_f16_to_f32))                                                      \
    EMU_FLOAT_BODY(name, bf16, uint16_t, float, tk_bf16_to_f32, tk_f32_to_bf16, declare,           \
                   expression(tk_bf16_to_f32))

#define EMU_WIDE_CASES(name)                                                                       \
    case TK_K_F32:                                                                                 \
        return (tk_emu_pick){.body = name##_f32};                                                  \
    case TK_K_F64:                                                                                 \
        return (tk_emu_pick){.body = name##_f64};
#define EMU_HALF_CASES(name)                                                                       \
    case TK_K_F16:                                                                                 \
        return (tk_emu_pick){.body = name##_f16};                                                  \
    case TK_K_BF16:                                                                                \
        return (tk_emu_pick){.body = name##_bf16};

#endif
