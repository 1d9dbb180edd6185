/* One walk: each operation is checked against its row, each operand must be visible where it stands
 * (defined above it in the same block or in one around it), each block ends as its operation
 * expects.
 *
 * Visibility is a flag a value, set when the walk passes the definition and taken back when it
 * leaves the block; no dominator tree is needed, since control flow is structured. */
#include "kernel/verify.h"

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/contract.h"
#include "kernel/make.h"
#include "kernel/print.h"

typedef struct verifier {
    const tk_kernel *kernel;
    bool *visible; /* by value id */
    int depth;
} verifier;

#define MOST_DEPTH 128

tk_status tk_kop_fail_at(const tk_kernel *kernel, const tk_kop *op, tk_status code) {
    const char *file = kernel->strings.items[op->loc.file];
    if (!op->loc.file) file = kernel->strings.count > 1 ? kernel->strings.items[1] : kernel->name;
    if (op->loc.line) return tk_fail_within(code, "%s:%u", file, op->loc.line);
    return tk_fail_within(code, "kernel %s", kernel->name);
}

static tk_status check_operands(const verifier *v, const tk_kop *op) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const tk_kvalue *value = op->operands[i];
        if (!value || value->kind == TK_KV_CONST || value->kind == TK_KV_PARAM) continue;
        if (value->id < v->kernel->n_values && v->visible[value->id]) continue;
        return tk_fail(
            TK_INVALID_ARGUMENT,
            "%s: operand %%%s is not visible here: it is defined later or in another region",
            tk_kop_row_of(op->code)->name, value->name ? value->name : "?");
    }
    return TK_OK;
}

static tk_status check_form(const verifier *v, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    if (row->forms >> v->kernel->form & 1) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "%s: it has no place in the %s form", row->name,
                   tk_kform_text(v->kernel->form));
}

static tk_status check_types(const verifier *v, const tk_kop *op) {
    for (int i = 0; i < op->n_results; i++) TK_TRY(tk_ktype_check(v->kernel, op->results[i]->type));
    return TK_OK;
}

/* Storage belongs to the kernel as a whole. */
static tk_status check_storage(const verifier *v, const tk_kop *op) {
    bool storage = op->code == TK_KOP_shared || op->code == TK_KOP_dynamic_shared;
    if (!storage || op->block == &v->kernel->body) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: shared memory is declared in no region",
                   tk_kop_row_of(op->code)->name);
}

static tk_status check_alone(const verifier *v, const tk_kop *op) {
    if (op->code >= TK_KOP_COUNT) return tk_fail(TK_INTERNAL, "an operation of no kind");
    TK_TRY(check_operands(v, op));
    TK_TRY(check_form(v, op));
    TK_TRY(check_types(v, op));
    TK_TRY(check_storage(v, op));
    return tk_kop_check(v->kernel, op);
}

static tk_status check_block(verifier *v, const tk_kblock *block);

static tk_status check_op(verifier *v, const tk_kop *op) {
    tk_status status = check_alone(v, op);
    if (status != TK_OK) return tk_kop_fail_at(v->kernel, op, status);
    for (int i = 0; i < op->n_regions; i++) TK_TRY(check_block(v, op->regions[i]));
    for (int i = 0; i < op->n_results; i++) v->visible[op->results[i]->id] = true;
    return TK_OK;
}

static void leave(verifier *v, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next)
        for (int i = 0; i < op->n_results; i++) v->visible[op->results[i]->id] = false;
    for (uint32_t i = 0; i < block->n_args; i++) v->visible[block->args[i]->id] = false;
}

static tk_status check_links(const verifier *v, const tk_kblock *block, const tk_kop *op) {
    bool linked = op->block == block && (op->next ? op->next->prev == op : block->last == op);
    return linked
               ? TK_OK
               : tk_fail(TK_INTERNAL, "kernel %s: operations are linked wrongly", v->kernel->name);
}

static tk_status check_block(verifier *v, const tk_kblock *block) {
    if (++v->depth > MOST_DEPTH)
        return tk_fail(TK_OVERFLOW, "kernel %s: regions are nested deeper than %d", v->kernel->name,
                       MOST_DEPTH);
    for (uint32_t i = 0; i < block->n_args; i++) v->visible[block->args[i]->id] = true;
    for (const tk_kop *op = block->first; op; op = op->next) {
        TK_TRY(check_links(v, block, op));
        TK_TRY(check_op(v, op));
    }
    leave(v, block);
    v->depth--;
    return TK_OK;
}

tk_status tk_kernel_verify(const tk_kernel *kernel) {
    TK_NEED(kernel);
    TK_TRY(tk_kcontract_check(kernel));
    verifier v = {.kernel = kernel, .visible = tk_calloc(kernel->n_values + 1, sizeof(bool))};
    if (!v.visible) return tk_fail(TK_OUT_OF_MEMORY, "no memory to verify a kernel");
    tk_status status = check_block(&v, &kernel->body);
    tk_free(v.visible);
    return status;
}
