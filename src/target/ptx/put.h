/* What writers of operations share: operands by number, words of attributes, modifiers. */
#ifndef TARGET_PTX_PUT_H
#define TARGET_PTX_PUT_H

#include "target/ptx/ptx.h"

static inline bool tk_ptx_has(const tk_kop *op, int operand) {
    return op->operands[operand] != NULL;
}

/* "@%p3 ", or nothing without the operand. */
tk_ptx_name tk_ptx_guard(tk_ptx *x, const tk_kop *op, int operand);

/* ", %q3" behind the other operands, and the modifier that goes with it; both empty without one. */
tk_ptx_name tk_ptx_policy(tk_ptx *x, const tk_kop *op, int operand);
const char *tk_ptx_hint(const tk_kop *op, int operand);

/* Fails when the architecture is older than sm_90. */
void tk_ptx_need_sm90(tk_ptx *x, const tk_kop *op);

/* ".cta" and so on of the attribute `scope`; "" for none. */
const char *tk_ptx_scope(const tk_kop *op);

/* How an update is written for a type, such as "add.noftz.f16"; NULL where the hardware has none:
 * an atomic operation, and a reduction of the async proxy. */
const char *tk_ptx_update(int update, tk_kscalar scalar, bool bulk);

/* A field of a tensor map, as the instruction that replaces it takes it. */
typedef struct tk_ptx_map_field {
    const char *name;
    int bits;
    bool indexed, constant;
} tk_ptx_map_field;
const tk_ptx_map_field *tk_ptx_map_field_of(const tk_kop *op);

static inline tk_ptx_name tk_ptx_named(tk_ptx *x, const tk_kop *op, int operand) {
    return tk_ptx_operand(x, op->operands[operand], 0);
}

#endif
