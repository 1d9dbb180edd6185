/* Constant folding. An operation on constants is computed by the emulator's own body for it, on one
 * lane, so a folded value is the bits that every target gives; only what may be a finding (division
 * by zero) is left alone. Then identities that hold for all bits (x + 0 of integers, x * 1,
 * selects, branches and loads whose condition is known), and sums of constants in chains of
 * offsets.
 *
 * Rejected: folding x * 0 or x - x of floats, which are NaN for some x. */
#include "base/error.h"
#include "kernel/emu.h"
#include "kernel/pass.h"

typedef struct folder {
    tk_kernel *kernel;
    tk_kexchange exchange;
    bool changed;
} folder;

/* ---- operations on constants ---- */

static bool divides(unsigned code) { return code >= TK_KOP_sdiv && code <= TK_KOP_urem; }

static bool is_foldable(const tk_kop *op) {
    int64_t divisor;
    if (tk_kop_row_of(op->code)->effects || op->n_results != 1 || op->n_operands == 0) return false;
    if (op->results[0]->type.kind != TK_KT_NUMBER || op->results[0]->type.lanes != 1) return false;
    if (op->code == TK_KOP_assume || op->code == TK_KOP_assume_uniform) return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!op->operands[i] || op->operands[i]->kind != TK_KV_CONST) return false;
    return !divides(op->code) || (tk_kvalue_integer(op->operands[1], &divisor) && divisor != 0);
}

#define MOST_OPERANDS 4
#define SLOT (TK_EMU_LANES * 8)

/* The body on lane 0 of registers that hold the operands. */
bool tk_kpass_compute(const tk_kop *op, const uint64_t *bits, uint64_t *out_bits) {
    _Alignas(64) unsigned char registers[(MOST_OPERANDS + 1) * SLOT] = {0};
    uint32_t from[MOST_OPERANDS];
    tk_ktype type = op->results[0]->type;
    tk_emu_pick pick = tk_emu_pick_of(op);
    if (!pick.body || op->n_operands > MOST_OPERANDS) return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        from[i] = (i + 1) * SLOT;
        memcpy(registers + from[i], &bits[i], 8);
    }
    tk_emu_warp warp = {.registers = registers};
    tk_emu_insn insn = {.body = pick.body,
                        .op = op,
                        .from = from,
                        .index = (uint32_t)tk_kop_attr(op, TK_KA_index),
                        .count = 1,
                        .wide = (uint8_t)tk_ktype_bytes(type)};
    pick.body(&warp, &insn, 1);
    *out_bits = 0;
    memcpy(out_bits, registers, (size_t)tk_ktype_bytes(type));
    return true;
}

static tk_status fold_constants(folder *f, const tk_kop *op, tk_kvalue **out) {
    uint64_t operands[MOST_OPERANDS], bits;
    if (!is_foldable(op) || op->n_operands > MOST_OPERANDS) return TK_OK;
    for (uint32_t i = 0; i < op->n_operands; i++) operands[i] = op->operands[i]->bits;
    if (!tk_kpass_compute(op, operands, &bits)) return TK_OK;
    return tk_kernel_constant(f->kernel, (tk_kscalar)op->results[0]->type.scalar, bits, out);
}

/* ---- identities ---- */

static bool is_integer(const tk_kvalue *value, int64_t wanted) {
    int64_t constant;
    return tk_kvalue_integer(value, &constant) && constant == wanted;
}

static bool is_float(const tk_kvalue *value, double wanted) {
    unsigned scalar = value->type.scalar;
    return value->kind == TK_KV_CONST && scalar >= TK_K_F16 && scalar <= TK_K_F64 &&
           value->bits == tk_kscalar_bits((tk_kscalar)scalar, wanted);
}

static tk_kvalue *of_integers(const tk_kop *op, tk_kvalue *a, tk_kvalue *b) {
    switch (op->code) {
    case TK_KOP_add:
    case TK_KOP_or:
    case TK_KOP_xor:
        return is_integer(b, 0) ? a : is_integer(a, 0) ? b : NULL;
    case TK_KOP_sub:
    case TK_KOP_shl:
    case TK_KOP_sshr:
    case TK_KOP_ushr:
        return is_integer(b, 0) ? a : NULL;
    case TK_KOP_mul:
        if (is_integer(b, 1) || is_integer(a, 0)) return a;
        return is_integer(a, 1) || is_integer(b, 0) ? b : NULL;
    case TK_KOP_sdiv:
    case TK_KOP_udiv:
        return is_integer(b, 1) ? a : NULL;
    case TK_KOP_and:
        if (is_integer(a, 0) || is_integer(b, -1)) return a;
        return is_integer(b, 0) || is_integer(a, -1) ? b : NULL;
    default:
        return NULL;
    }
}

static bool same_when_equal(unsigned code) {
    return code == TK_KOP_and || code == TK_KOP_or || (code >= TK_KOP_smin && code <= TK_KOP_umax);
}

static tk_kvalue *of_two(const tk_kop *op) {
    tk_kvalue *a = op->operands[0], *b = op->operands[1];
    if (op->code == TK_KOP_mul && is_float(b, 1)) return a;
    if (op->code == TK_KOP_mul && is_float(a, 1)) return b;
    if (op->code == TK_KOP_sub && is_float(b, 0)) return a;
    if (op->code == TK_KOP_add && is_float(b, -0.0)) return a;
    if (op->code == TK_KOP_div && is_float(b, 1)) return a;
    if (a == b && same_when_equal(op->code)) return a;
    if (op->code == TK_KOP_offset) return is_integer(b, 0) ? a : NULL;
    return of_integers(op, a, b);
}

static tk_kvalue *of_extract(const tk_kop *op) {
    const tk_kop *from = op->operands[0]->kind == TK_KV_RESULT ? op->operands[0]->op : NULL;
    if (op->operands[0]->type.lanes == op->results[0]->type.lanes) return op->operands[0];
    if (!from || op->results[0]->type.lanes != 1) return NULL;
    if (from->code == TK_KOP_splat) return from->operands[0];
    return from->code == TK_KOP_vector ? from->operands[tk_kop_attr(op, TK_KA_index)] : NULL;
}

/* The low bits of a value that was made wider. */
static tk_kvalue *of_truncate(const tk_kop *op) {
    const tk_kop *from = op->operands[0]->kind == TK_KV_RESULT ? op->operands[0]->op : NULL;
    bool extends =
        from && (from->code == TK_KOP_extend_signed || from->code == TK_KOP_extend_unsigned);
    if (!extends || !tk_ktype_equal(from->operands[0]->type, op->results[0]->type)) return NULL;
    return from->operands[0];
}

static tk_kvalue *identity(const tk_kop *op) {
    int64_t truth;
    if (op->code == TK_KOP_truncate) return of_truncate(op);
    if (op->code == TK_KOP_select) {
        if (op->operands[1] == op->operands[2]) return op->operands[1];
        if (!tk_kvalue_integer(op->operands[0], &truth)) return NULL;
        return op->operands[truth ? 1 : 2];
    }
    if (op->code == TK_KOP_extract) return of_extract(op);
    if (op->n_operands != 2 || op->n_results != 1 || tk_kop_row_of(op->code)->effects) return NULL;
    return of_two(op);
}

/* ---- chains: (x + 3) + 4 is x + 7, and so for offsets of pointers ---- */

static const tk_kop *inner_sum(const tk_kop *op) {
    const tk_kop *inner = op->operands[0]->kind == TK_KV_RESULT ? op->operands[0]->op : NULL;
    return inner && inner->code == op->code && inner->n_operands == 2 ? inner : NULL;
}

/* Offsets of i32 count with sign: their sum must not wrap. */
static bool fits(int64_t sum, tk_ktype type) {
    return type.scalar != TK_K_I32 || (sum >= INT32_MIN && sum <= INT32_MAX);
}

static tk_status join_chain(folder *f, tk_kop *op) {
    int64_t a, b, sum;
    bool offsets = op->code == TK_KOP_offset;
    if (op->code != TK_KOP_add && !offsets) return TK_OK;
    const tk_kop *inner = inner_sum(op);
    if (!inner || !tk_kvalue_integer(op->operands[1], &a) ||
        !tk_kvalue_integer(inner->operands[1], &b) ||
        !tk_ktype_equal(op->operands[1]->type, inner->operands[1]->type))
        return TK_OK;
    if (__builtin_add_overflow(a, b, &sum) || (offsets && !fits(sum, op->operands[1]->type)))
        return TK_OK;
    TK_TRY(tk_kernel_constant(f->kernel, (tk_kscalar)op->operands[1]->type.scalar, (uint64_t)sum,
                              &op->operands[1]));
    op->operands[0] = inner->operands[0];
    f->changed = true;
    return TK_OK;
}

/* ---- known conditions ---- */

/* The region's operations take the place of the branch. */
static tk_status inline_if(folder *f, tk_kop *op) {
    int64_t truth;
    if (op->code != TK_KOP_if || !tk_kvalue_integer(op->operands[0], &truth)) return TK_OK;
    tk_kblock *taken = op->regions[truth ? 0 : 1];
    for (int i = 0; i < op->n_results; i++)
        TK_TRY(tk_kexchange_set(&f->exchange, op->results[i], taken->last->operands[i]));
    while (taken->first != taken->last) {
        tk_kop *moved = taken->first;
        tk_kop_unlink(moved);
        tk_kop_insert_before(op, moved);
    }
    tk_kop_unlink(op);
    f->changed = true;
    return TK_OK;
}

static void fold_condition(folder *f, tk_kop *op) {
    int index = op->code == TK_KOP_load ? 1 : op->code == TK_KOP_store ? 2 : -1;
    int64_t truth;
    if (index < 0 || !op->operands[index] || !tk_kvalue_integer(op->operands[index], &truth))
        return;
    if (truth) {
        op->operands[index] = NULL;
        if (op->code == TK_KOP_load) op->operands[2] = NULL;
    } else if (op->code == TK_KOP_store) {
        tk_kop_unlink(op);
    } else {
        return;
    }
    f->changed = true;
}

/* ---- the pass ---- */

static tk_status visit_block(folder *f, tk_kblock *block);

static tk_status visit(folder *f, tk_kop *op) {
    tk_kvalue *becomes = NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i] = tk_kexchange_get(&f->exchange, op->operands[i]);
    for (int i = 0; i < op->n_regions; i++) TK_TRY(visit_block(f, op->regions[i]));
    TK_TRY(join_chain(f, op));
    TK_TRY(fold_constants(f, op, &becomes));
    if (!becomes) becomes = identity(op);
    if (becomes && becomes != op->results[0]) {
        f->changed = true;
        TK_TRY(tk_kexchange_set(&f->exchange, op->results[0], becomes));
        tk_kop_unlink(op);
        return TK_OK;
    }
    fold_condition(f, op);
    return op->block ? inline_if(f, op) : TK_OK;
}

static tk_status visit_block(folder *f, tk_kblock *block) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        TK_TRY(visit(f, op));
    }
    return TK_OK;
}

tk_status tk_kpass_run_fold(tk_kernel *kernel) {
    folder f = {.kernel = kernel, .changed = true};
    tk_status status = TK_OK;
    while (f.changed && status == TK_OK) {
        f.changed = false;
        status = visit_block(&f, &kernel->body);
        tk_kexchange_apply(&f.exchange, kernel);
    }
    tk_vec_deinit(&f.exchange);
    return status;
}
