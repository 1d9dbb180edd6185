/* Making one operation: what the table's row says about operands, attributes and result types, and
 * the errors for what does not fit. The verifier asks the same questions of finished operations. */
#include "kernel/make.h"

#include <string.h>

#include "base/error.h"

static const char *name_of(const tk_kop *op) { return tk_kop_row_of(op->code)->name; }

/* ---- classes that refer to other operands ---- */

static bool has_class(const tk_kop *op, unsigned class, tk_ktype type) {
    if (class == TK_KC_SAME) return tk_ktype_equal(type, op->operands[0]->type);
    if (class == TK_KC_SAME1) return tk_ktype_equal(type, op->operands[1]->type);
    if (class != TK_KC_I32S) return tk_kclass_has(class, type);
    return type.kind == TK_KT_NUMBER && type.scalar == TK_K_I32 &&
           type.lanes == op->operands[0]->type.lanes;
}

static tk_ktype following_type(const tk_kop *op, unsigned class) {
    switch (class) {
    case TK_KC_SAME:
        return op->operands[0]->type;
    case TK_KC_SAME1:
        return op->operands[1]->type;
    case TK_KC_I1:
        return tk_ktype_scalar(TK_K_I1);
    case TK_KC_I64:
        return tk_ktype_scalar(TK_K_I64);
    default:
        return tk_ktype_scalar(TK_K_I32);
    }
}

static bool is_storage(tk_ktype type) {
    return type.kind == TK_KT_SHARED || type.kind == TK_KT_REGISTERS;
}

static tk_status check_operand(const tk_kernel *kernel, const tk_kop *op, const tk_kslot *slot,
                               const tk_kvalue *value) {
    if (slot->class == TK_KC_VALUE && op->code != TK_KOP_wgmma && op->code != TK_KOP_extent &&
        is_storage(value->type))
        return tk_fail(TK_DTYPE_ERROR, "%s: %s is %s, expected a value, not storage", name_of(op),
                       slot->name, tk_ktype_words(kernel, value->type).text);
    if (has_class(op, slot->class, value->type)) return TK_OK;
    if (slot->class == TK_KC_SAME || slot->class == TK_KC_SAME1) {
        const tk_kvalue *like = op->operands[slot->class == TK_KC_SAME1];
        return tk_fail(TK_DTYPE_ERROR, "%s: %s is %s, expected %s as the %s operand is",
                       name_of(op), slot->name, tk_ktype_words(kernel, value->type).text,
                       tk_ktype_words(kernel, like->type).text,
                       slot->class == TK_KC_SAME1 ? "second" : "first");
    }
    return tk_fail(TK_DTYPE_ERROR, "%s: %s is %s, expected %s", name_of(op), slot->name,
                   tk_ktype_words(kernel, value->type).text, tk_kclass_words(slot->class));
}

static tk_status check_count(const tk_kop *op, int slots, bool variadic) {
    if (op->n_operands >= (uint32_t)slots && (variadic || op->n_operands == (uint32_t)slots))
        return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: %u operands, expected %s%d", name_of(op),
                   op->n_operands, variadic ? "at least " : "", slots);
}

static tk_status check_operands(const tk_kernel *kernel, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    bool variadic;
    int slots = tk_kop_row_slots(row, &variadic);
    TK_TRY(check_count(op, slots, variadic));
    for (int i = 0; i < slots; i++)
        if (!op->operands[i] && row->slots[i].need == TK_KN_REQUIRED)
            return tk_fail(TK_INVALID_ARGUMENT, "%s: operand %s is missing", row->name,
                           row->slots[i].name);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const tk_kslot *slot = &row->slots[i < (uint32_t)slots ? i : (uint32_t)slots];
        if (!op->operands[i] && slot->need == TK_KN_OPTIONAL) continue;
        if (!op->operands[i])
            return tk_fail(TK_INVALID_ARGUMENT, "%s: operand %u is missing", row->name, i);
        TK_TRY(check_operand(kernel, op, slot, op->operands[i]));
    }
    return TK_OK;
}

/* ---- attributes ---- */

static tk_status check_attr(const tk_kernel *kernel, const tk_kop *op, int index) {
    const tk_kattr_row *attr = tk_kattr_row_of(tk_kop_row_of(op->code)->attrs[index] - 1u);
    int64_t value = op->attrs[index];
    size_t length;
    if (value == TK_KATTR_REQUIRED)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: attribute %s is missing%s%s", name_of(op),
                       attr->name, *attr->words ? ", one of " : "", attr->words);
    bool known = true;
    if (attr->kind == TK_KAK_WORD) {
        known = value >= 0 && value < 64;
        if (known) tk_kwords_at(attr->words, (int)value, &length), known = length > 0;
    } else if (attr->kind == TK_KAK_FLAG) {
        known = value == 0 || value == 1;
    } else if (attr->kind == TK_KAK_TEXT) {
        known = value >= 0 && (uint64_t)value < kernel->strings.count;
    }
    if (known) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: attribute %s has the unknown value %lld", name_of(op),
                   attr->name, (long long)value);
}

static tk_status check_attrs(const tk_kernel *kernel, const tk_kop *op) {
    int count = tk_kop_row_attrs(tk_kop_row_of(op->code));
    for (int i = 0; i < count; i++) TK_TRY(check_attr(kernel, op, i));
    return TK_OK;
}

/* ---- results ---- */

static tk_status check_results(const tk_kernel *kernel, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    if (row->result_rule == TK_KRESULT_NONE || row->result_rule == TK_KRESULT_REGIONS) return TK_OK;
    if (op->n_results != 1)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: %d results, expected 1", row->name, op->n_results);
    tk_ktype type = op->results[0]->type;
    if (row->result_rule == TK_KRESULT_FOLLOWS) {
        tk_ktype expected = following_type(op, row->result_class);
        if (tk_ktype_equal(type, expected)) return TK_OK;
        return tk_fail(TK_DTYPE_ERROR, "%s: the result is stated as %s, but it is %s", row->name,
                       tk_ktype_words(kernel, type).text, tk_ktype_words(kernel, expected).text);
    }
    if (has_class(op, row->result_class, type)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: the result is %s, expected %s", row->name,
                   tk_ktype_words(kernel, type).text, tk_kclass_words(row->result_class));
}

tk_status tk_kop_check(const tk_kernel *kernel, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    TK_TRY(check_operands(kernel, op));
    TK_TRY(check_attrs(kernel, op));
    TK_TRY(check_results(kernel, op));
    return row->check ? row->check(kernel, op) : TK_OK;
}

/* ---- making ---- */

static tk_status fill(tk_kernel *kernel, const tk_kop_spec *spec, tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(spec->code);
    int n_attrs = tk_kop_row_attrs(row);
    op->code = (uint16_t)spec->code;
    op->loc = spec->loc;
    op->n_operands = (uint32_t)spec->n_operands;
    op->operands = tk_arena_alloc(&kernel->arena, spec->n_operands * sizeof *op->operands);
    op->attrs = tk_arena_alloc(&kernel->arena, (size_t)n_attrs * sizeof *op->attrs);
    if (!op->operands || !op->attrs) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an operation");
    if (spec->n_operands)
        memcpy(op->operands, spec->operands, spec->n_operands * sizeof *op->operands);
    for (int i = 0; i < n_attrs; i++)
        op->attrs[i] = spec->attrs ? spec->attrs[i] : tk_kattr_row_of(row->attrs[i] - 1u)->initial;
    return TK_OK;
}

static tk_status give_results(tk_kernel *kernel, const tk_kop_spec *spec, tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(spec->code);
    if (row->result_rule == TK_KRESULT_NONE) {
        if (spec->n_types) return tk_fail(TK_INVALID_ARGUMENT, "%s: it has no result", row->name);
        return TK_OK;
    }
    if (spec->n_types || row->result_rule == TK_KRESULT_REGIONS)
        return tk_kop_add_results(kernel, op, spec->n_types, spec->types);
    if (row->result_rule == TK_KRESULT_STATED)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: the type of the result is missing", row->name);
    tk_ktype type = following_type(op, row->result_class);
    return tk_kop_add_results(kernel, op, 1, &type);
}

tk_status tk_kop_make(tk_kernel *kernel, const tk_kop_spec *spec, tk_kop **out_op) {
    tk_kop *op = tk_arena_alloc(&kernel->arena, sizeof *op);
    if (!op) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an operation");
    TK_TRY(fill(kernel, spec, op));
    TK_TRY(check_operands(kernel, op));
    TK_TRY(check_attrs(kernel, op));
    TK_TRY(give_results(kernel, spec, op));
    TK_TRY(check_results(kernel, op));
    tk_kcheck check = tk_kop_row_of(spec->code)->check;
    if (check && !(tk_kop_row_of(spec->code)->effects & (TK_KE_REGION | TK_KE_TERMINATOR)))
        TK_TRY(check(kernel, op));
    *out_op = op;
    return TK_OK;
}
