/* Checks of operations on numbers, vectors and pointers. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "kernel/check.h"

tk_status tk_kcheck_fail(const tk_kop *op, tk_status code, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tk_fail(code, "%s: %s", tk_kop_row_of(op->code)->name, text);
}

static tk_ktype operand(const tk_kop *op, int index) { return op->operands[index]->type; }
static tk_ktype result(const tk_kop *op) { return op->results[0]->type; }
static int width(tk_ktype type) { return tk_kscalar_bytes((tk_kscalar)type.scalar); }

static bool is_float(tk_ktype type) { return type.scalar >= TK_K_F16 && type.scalar <= TK_K_E5M2; }

static tk_status fail_types(const tk_kernel *kernel, const tk_kop *op, const char *expected) {
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "from %s to %s, expected %s",
                          tk_ktype_words(kernel, operand(op, 0)).text,
                          tk_ktype_words(kernel, result(op)).text, expected);
}

/* ---- arithmetic ---- */

tk_status tk_kcheck_scalars(const tk_kernel *kernel, const tk_kop *op) {
    if (operand(op, 0).lanes == 1) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "the operands are %s, expected scalars",
                          tk_ktype_words(kernel, operand(op, 0)).text);
}

tk_status tk_kcheck_wide_float(const tk_kernel *kernel, const tk_kop *op) {
    unsigned scalar = operand(op, 0).scalar;
    if (scalar == TK_K_F32 || scalar == TK_K_F64) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "a is %s, expected f32 or f64",
                          tk_ktype_words(kernel, operand(op, 0)).text);
}

tk_status tk_kcheck_not_f64(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    if (operand(op, 0).scalar != TK_K_F64) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "a is f64, expected f16, bf16 or f32");
}

tk_status tk_kcheck_f32(const tk_kernel *kernel, const tk_kop *op) {
    if (operand(op, 0).scalar == TK_K_F32) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "a is %s, expected f32",
                          tk_ktype_words(kernel, operand(op, 0)).text);
}

tk_status tk_kcheck_logic3(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    int64_t table = tk_kop_attr(op, TK_KA_table);
    if (table >= 0 && table <= 255) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "table is %lld, expected 0 to 255",
                          (long long)table);
}

tk_status tk_kcheck_assume(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype type = operand(op, 0);
    bool number = tk_kclass_has(TK_KC_INDEX, type), pointer = type.kind == TK_KT_POINTER;
    if (!number && !pointer)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR,
                              "the value is %s, expected an i32, an i64 or a pointer",
                              tk_ktype_words(kernel, type).text);
    if (tk_kop_attr(op, TK_KA_divisor) < 1)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "the divisor is %lld, expected at least 1",
                              (long long)tk_kop_attr(op, TK_KA_divisor));
    return TK_OK;
}

/* ---- conversions ---- */

static tk_status same_lanes(const tk_kernel *kernel, const tk_kop *op) {
    if (operand(op, 0).lanes == result(op).lanes) return TK_OK;
    return fail_types(kernel, op, "as many lanes");
}

tk_status tk_kcheck_convert(const tk_kernel *kernel, const tk_kop *op) {
    if (!is_float(operand(op, 0)) || !is_float(result(op))) return fail_types(kernel, op, "floats");
    return same_lanes(kernel, op);
}

tk_status tk_kcheck_int_to_float(const tk_kernel *kernel, const tk_kop *op) {
    unsigned scalar = operand(op, 0).scalar;
    if (scalar < TK_K_I8 || scalar > TK_K_I64)
        return fail_types(kernel, op, "an integer as the operand");
    return same_lanes(kernel, op);
}

tk_status tk_kcheck_float_to_int(const tk_kernel *kernel, const tk_kop *op) {
    return same_lanes(kernel, op);
}

tk_status tk_kcheck_extend(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype from = operand(op, 0);
    bool integer = from.scalar <= TK_K_I64;
    bool wider = width(result(op)) > width(from) || from.scalar == TK_K_I1;
    if (!integer || !wider || (from.scalar == TK_K_I1 && op->code == TK_KOP_extend_signed))
        return fail_types(kernel, op, "a wider integer (or, without sign, i1)");
    return same_lanes(kernel, op);
}

tk_status tk_kcheck_truncate(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype to = result(op);
    if (to.scalar < TK_K_I8 || to.scalar > TK_K_I64 || width(to) >= width(operand(op, 0)))
        return fail_types(kernel, op, "a narrower integer");
    return same_lanes(kernel, op);
}

tk_status tk_kcheck_bitcast(const tk_kernel *kernel, const tk_kop *op) {
    bool truth = operand(op, 0).scalar == TK_K_I1 || result(op).scalar == TK_K_I1;
    if (!truth && tk_ktype_bytes(operand(op, 0)) == tk_ktype_bytes(result(op))) return TK_OK;
    return fail_types(kernel, op, "types of one size");
}

/* ---- vectors ---- */

tk_status tk_kcheck_vector(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype element = result(op);
    element.lanes = 1;
    if (op->n_operands != result(op).lanes || op->n_operands < 2)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%u elements for %s", op->n_operands,
                              tk_ktype_words(kernel, result(op)).text);
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!tk_ktype_equal(operand(op, (int)i), element))
            return tk_kcheck_fail(op, TK_DTYPE_ERROR, "element %u is %s, expected %s", i,
                                  tk_ktype_words(kernel, operand(op, (int)i)).text,
                                  tk_ktype_words(kernel, element).text);
    return TK_OK;
}

tk_status tk_kcheck_splat(const tk_kernel *kernel, const tk_kop *op) {
    if (operand(op, 0).lanes == 1 && operand(op, 0).scalar == result(op).scalar &&
        result(op).lanes > 1)
        return TK_OK;
    return fail_types(kernel, op, "a scalar and a vector of its type");
}

static tk_status need_index(const tk_kop *op, int64_t count, int64_t limit) {
    int64_t index = tk_kop_attr(op, TK_KA_index);
    if (index >= 0 && count <= limit && index <= limit - count) return TK_OK;
    return tk_kcheck_fail(op, TK_INDEX_ERROR, "%lld elements from index %lld on, of %lld",
                          (long long)count, (long long)index, (long long)limit);
}

tk_status tk_kcheck_extract(const tk_kernel *kernel, const tk_kop *op) {
    if (operand(op, 0).scalar != result(op).scalar)
        return fail_types(kernel, op, "one element type");
    return need_index(op, result(op).lanes, operand(op, 0).lanes);
}

tk_status tk_kcheck_insert(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype element = operand(op, 1);
    if (element.scalar != operand(op, 0).scalar)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "the element is %s, the vector %s",
                              tk_ktype_words(kernel, element).text,
                              tk_ktype_words(kernel, operand(op, 0)).text);
    return need_index(op, element.lanes, operand(op, 0).lanes);
}

/* ---- register tensors ---- */

static tk_status check_element(const tk_kernel *kernel, const tk_kop *op, tk_ktype value) {
    tk_ktype tensor = operand(op, 0);
    if (value.scalar != tensor.scalar)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "the value is %s, the tensor's elements are %s",
                              tk_ktype_words(kernel, value).text,
                              tk_kscalar_text((tk_kscalar)tensor.scalar));
    return need_index(op, value.lanes, tk_kregs_size(kernel, tensor));
}

tk_status tk_kcheck_get(const tk_kernel *kernel, const tk_kop *op) {
    return check_element(kernel, op, result(op));
}
tk_status tk_kcheck_set(const tk_kernel *kernel, const tk_kop *op) {
    return check_element(kernel, op, operand(op, 1));
}

/* ---- pointers ---- */

tk_status tk_kcheck_pointer_cast(const tk_kernel *kernel, const tk_kop *op) {
    unsigned from = operand(op, 0).space, to = result(op).space;
    if (from == to || (from == TK_KS_SHARED && to == TK_KS_CLUSTER)) return TK_OK;
    return fail_types(kernel, op, "one space, or shared to cluster");
}

tk_status tk_kcheck_pointer_bits(const tk_kernel *kernel, const tk_kop *op) {
    if (tk_ktype_bytes(operand(op, 0)) == tk_ktype_bytes(result(op))) return TK_OK;
    return fail_types(kernel, op, "i32 for shared memory, else i64");
}

tk_status tk_kcheck_peer(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype from = operand(op, 0), to = result(op);
    if (to.space == TK_KS_CLUSTER && from.scalar == to.scalar) return TK_OK;
    return fail_types(kernel, op, "a pointer to the same elements in the cluster");
}
