/* Checks of structured control flow: what goes around a loop keeps its type, and every region ends
 * in the terminator that its operation expects. */
#include "base/error.h"
#include "kernel/check.h"

static const char *name_of(unsigned code) { return tk_kop_row_of(code)->name; }

static tk_status check_types(const tk_kernel *kernel, const tk_kop *op, const char *what,
                             uint32_t count, tk_kvalue *const *given, uint32_t expected_count,
                             tk_kvalue *const *expected) {
    if (count != expected_count)
        return tk_kcheck_fail(op, TK_SHAPE_ERROR, "%u %s, expected %u", count, what,
                              expected_count);
    for (uint32_t i = 0; i < count; i++)
        if (!tk_ktype_equal(given[i]->type, expected[i]->type))
            return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s %u is %s, expected %s", what, i,
                                  tk_ktype_words(kernel, given[i]->type).text,
                                  tk_ktype_words(kernel, expected[i]->type).text);
    return TK_OK;
}

static tk_status check_end(const tk_kop *op, int region, tk_kopcode code) {
    const tk_kop *last = op->n_regions > region ? op->regions[region]->last : NULL;
    if (last && last->code == code) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "region %d does not end in %s", region,
                          name_of(code));
}

tk_status tk_kcheck_for(const tk_kernel *kernel, const tk_kop *op) {
    enum { BOUNDS = 3 };
    uint32_t carried = op->n_operands - BOUNDS;
    if (op->n_regions != 1)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%d regions, expected 1", op->n_regions);
    const tk_kblock *body = op->regions[0];
    TK_TRY(check_end(op, 0, TK_KOP_yield));
    if (body->n_args != carried + 1 || !tk_ktype_equal(body->args[0]->type, op->operands[0]->type))
        return tk_kcheck_fail(op, TK_SHAPE_ERROR,
                              "the body's arguments are not the index and what is carried");
    TK_TRY(check_types(kernel, op, "arguments", carried, body->args + 1, carried,
                       op->operands + BOUNDS));
    TK_TRY(check_types(kernel, op, "yielded values", body->last->n_operands, body->last->operands,
                       carried, op->operands + BOUNDS));
    TK_TRY(check_types(kernel, op, "results", op->n_results, op->results, carried,
                       op->operands + BOUNDS));
    int64_t step;
    if (tk_kvalue_integer(op->operands[2], &step) && step < 1)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "the step is %lld, expected at least 1",
                              (long long)step);
    return TK_OK;
}

tk_status tk_kcheck_while(const tk_kernel *kernel, const tk_kop *op) {
    if (op->n_regions != 2)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%d regions, expected 2", op->n_regions);
    const tk_kblock *first = op->regions[0], *second = op->regions[1];
    TK_TRY(check_end(op, 0, TK_KOP_condition));
    TK_TRY(check_end(op, 1, TK_KOP_yield));
    uint32_t n_values = first->last->n_operands - 1;
    tk_kvalue *const *values = first->last->operands + 1;
    TK_TRY(check_types(kernel, op, "arguments", first->n_args, first->args, op->n_operands,
                       op->operands));
    TK_TRY(check_types(kernel, op, "results", op->n_results, op->results, n_values, values));
    TK_TRY(check_types(kernel, op, "arguments of the second region", second->n_args, second->args,
                       n_values, values));
    return check_types(kernel, op, "yielded values", second->last->n_operands,
                       second->last->operands, op->n_operands, op->operands);
}

tk_status tk_kcheck_if(const tk_kernel *kernel, const tk_kop *op) {
    if (op->n_regions != 2)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%d regions, expected 2", op->n_regions);
    for (int i = 0; i < 2; i++) {
        const tk_kblock *region = op->regions[i];
        TK_TRY(check_end(op, i, TK_KOP_yield));
        if (region->n_args) return tk_kcheck_fail(op, TK_SHAPE_ERROR, "region %d has arguments", i);
        TK_TRY(check_types(kernel, op, "yielded values", region->last->n_operands,
                           region->last->operands, op->n_results, op->results));
    }
    return TK_OK;
}

tk_status tk_kcheck_terminator(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    const tk_kblock *block = op->block;
    if (!block || !block->parent || block->last != op)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                              "it stands at the end of a region and nowhere else");
    bool first_of_while = block->parent->code == TK_KOP_while && block == block->parent->regions[0];
    if (first_of_while == (op->code == TK_KOP_condition)) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "it does not end this region of %s",
                          name_of(block->parent->code));
}
