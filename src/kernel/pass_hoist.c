/* Loop-invariant motion: operations without effects whose operands come from outside a loop move
 * before it, from the innermost loop outwards.
 *
 * Loads, and reads of register tensors and shared memory, never move: an asynchronous copy or a
 * matrix operation of the loop may write what they read, and only its wait says when. Nor does what
 * would be a finding in a loop that runs no time: integer division, unless its divisor is a
 * constant but 0, and assumptions. */
#include "base/error.h"
#include "kernel/pass.h"

typedef struct hoister {
    int *depth; /* of the loop that a value is defined in, by id; 0: none */
    uint32_t count;
    int current;
} hoister;

static bool is_loop(const tk_kop *op) { return op->code == TK_KOP_for || op->code == TK_KOP_while; }

bool tk_kpass_is_speculatable(const tk_kop *op) {
    int64_t divisor;
    if (tk_kop_row_of(op->code)->effects || op->n_regions) return false;
    if (op->code == TK_KOP_assume || op->code == TK_KOP_assume_uniform) return false;
    if (op->code < TK_KOP_sdiv || op->code > TK_KOP_urem) return true;
    return tk_kvalue_integer(op->operands[1], &divisor) && divisor != 0;
}

static int depth_of(const hoister *h, const tk_kvalue *value) {
    return value && value->id < h->count ? h->depth[value->id] : 0;
}

static int deepest(const hoister *h, const tk_kop *op) {
    int depth = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        int of_operand = depth_of(h, op->operands[i]);
        if (of_operand > depth) depth = of_operand;
    }
    return depth;
}

static void mark(hoister *h, const tk_kop *op, int depth) {
    for (int i = 0; i < op->n_results; i++) h->depth[op->results[i]->id] = depth;
}

/* Before the loop of which `op` is part at `depth` + 1 levels. */
static tk_kop *loop_above(const tk_kop *op, int current, int depth) {
    tk_kop *at = op->block->parent;
    for (;; at = at->block->parent)
        if (is_loop(at) && --current == depth) return at;
}

static void visit_block(hoister *h, tk_kblock *block);

static void visit(hoister *h, tk_kop *op) {
    int wanted = deepest(h, op);
    if (is_loop(op)) h->current++;
    for (int i = 0; i < op->n_regions; i++) {
        for (uint32_t a = 0; a < op->regions[i]->n_args; a++)
            h->depth[op->regions[i]->args[a]->id] = h->current;
        visit_block(h, op->regions[i]);
    }
    if (is_loop(op)) h->current--;
    if (wanted >= h->current || !tk_kpass_is_speculatable(op)) {
        mark(h, op, h->current);
        return;
    }
    tk_kop *loop = loop_above(op, h->current, wanted);
    tk_kop_unlink(op);
    tk_kop_insert_before(loop, op);
    mark(h, op, wanted);
}

static void visit_block(hoister *h, tk_kblock *block) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        visit(h, op);
    }
}

tk_status tk_kpass_run_hoist(tk_kernel *kernel) {
    hoister h = {.depth = tk_calloc((size_t)kernel->n_values + 1, sizeof *h.depth),
                 .count = kernel->n_values};
    if (!h.depth) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    visit_block(&h, &kernel->body);
    tk_free(h.depth);
    return TK_OK;
}
