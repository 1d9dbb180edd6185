/* Control flow as scf. Loops carry a mark that keeps the compiler from unrolling them by itself:
 * how often a loop is unrolled is the schedule's to say. */
#include <inttypes.h>

#include "target/cute/cute.h"

/* "%a, %b = " or "". */
static const char *results_of(tk_cute *x, const tk_kop *op) {
    if (!op->n_results) return "";
    return tk_cute_text(x, "%s = ", tk_cute_list(x, op->n_results, op->results));
}

/* " -> (f32, i32)" or "". */
static const char *arrow(tk_cute *x, const tk_kop *op) {
    if (!op->n_results) return "";
    return tk_cute_text(x, " -> (%s)", tk_cute_types(x, op->n_results, op->results));
}

/* "%v = %start, ...". */
static const char *assignments(tk_cute *x, uint32_t count, tk_kvalue *const *to,
                               tk_kvalue *const *from) {
    tk_strbuf text = {0};
    for (uint32_t i = 0; i < count; i++)
        tk_strbuf_printf(&text, "%s%s = %s", i ? ", " : "", tk_cute_name(x, to[i]),
                         tk_cute_name(x, from[i]));
    const char *list = tk_cute_text(x, "%s", text.text ? text.text : "");
    x->body.failed |= text.failed;
    tk_strbuf_deinit(&text);
    return list;
}

/* Ends a region with the values of its last operation. */
static void put_yield(tk_cute *x, const tk_kop *last) {
    tk_cute_open(x);
    if (last->n_operands)
        tk_cute_line(x, "scf.yield %s : %s", tk_cute_list(x, last->n_operands, last->operands),
                     tk_cute_types(x, last->n_operands, last->operands));
    else
        tk_cute_line(x, "scf.yield");
    tk_cute_close(x);
}

static const char *annotation(tk_cute *x, int64_t unroll) {
    const char *how = unroll < 0   ? "full = true"
                      : unroll > 1 ? tk_cute_text(x, "count = %" PRId64 " : i32", unroll)
                                   : "disable = true";
    return tk_cute_text(x, "{loop_annotation = #llvm.loop_annotation<unroll = <%s>>}", how);
}

void tk_cute_put_for(tk_cute *x, const tk_kop *op) {
    enum { FIRST_CARRIED = 3 };
    const tk_kblock *body = op->regions[0];
    const char *carried = "";
    if (op->n_results)
        carried = tk_cute_text(
            x, " iter_args(%s)",
            assignments(x, op->n_results, body->args + 1, op->operands + FIRST_CARRIED));
    tk_cute_line(x, "%sscf.for %s = %s to %s step %s%s%s : %s {", results_of(x, op),
                 tk_cute_name(x, body->args[0]), tk_cute_operand(x, op, 0),
                 tk_cute_operand(x, op, 1), tk_cute_operand(x, op, 2), carried, arrow(x, op),
                 tk_cute_type(x, op->operands[0]->type));
    tk_cute_block(x, body);
    put_yield(x, body->last);
    x->op = op;
    tk_cute_line(x, "} %s", annotation(x, tk_kop_attr(op, TK_KA_unroll)));
}

/* "^bb0(%a: f32, %b: i32):" one step out. */
static void put_arguments(tk_cute *x, const tk_kblock *block) {
    tk_strbuf text = {0};
    for (uint32_t i = 0; i < block->n_args; i++)
        tk_strbuf_printf(&text, "%s%s: %s", i ? ", " : "", tk_cute_name(x, block->args[i]),
                         tk_cute_type(x, block->args[i]->type));
    if (block->n_args) tk_cute_line(x, "^bb0(%s):", text.text ? text.text : "");
    x->body.failed |= text.failed;
    tk_strbuf_deinit(&text);
}

void tk_cute_put_while(tk_cute *x, const tk_kop *op) {
    const tk_kblock *first = op->regions[0], *second = op->regions[1];
    const tk_kop *test = first->last;
    tk_cute_line(x, "%sscf.while (%s) : (%s) -> (%s) {", results_of(x, op),
                 assignments(x, op->n_operands, first->args, op->operands),
                 tk_cute_types(x, op->n_operands, op->operands),
                 tk_cute_types(x, op->n_results, op->results));
    tk_cute_block(x, first);
    tk_cute_open(x);
    const char *values = tk_cute_list(x, test->n_operands - 1, test->operands + 1);
    if (test->n_operands > 1)
        tk_cute_line(x, "scf.condition(%s) %s : %s", tk_cute_name(x, test->operands[0]), values,
                     tk_cute_types(x, test->n_operands - 1, test->operands + 1));
    else
        tk_cute_line(x, "scf.condition(%s)", tk_cute_name(x, test->operands[0]));
    tk_cute_close(x);
    tk_cute_line(x, "} do {");
    put_arguments(x, second);
    tk_cute_block(x, second);
    put_yield(x, second->last);
    x->op = op;
    tk_cute_line(x, "} attributes %s", annotation(x, 0));
}

void tk_cute_put_if(tk_cute *x, const tk_kop *op) {
    const tk_kblock *yes = op->regions[0], *no = op->regions[1];
    tk_cute_line(x, "%sscf.if %s%s {", results_of(x, op), tk_cute_operand(x, op, 0), arrow(x, op));
    tk_cute_block(x, yes);
    if (op->n_results) put_yield(x, yes->last);
    if (op->n_results || no->first != no->last) {
        tk_cute_line(x, "} else {");
        tk_cute_block(x, no);
        if (op->n_results) put_yield(x, no->last);
    }
    x->op = op;
    tk_cute_line(x, "}");
}

void tk_cute_put_trap(tk_cute *x, const tk_kop *op) {
    (void)op;
    tk_cute_line(x, "llvm.intr.trap");
}

void tk_cute_put_assert(tk_cute *x, const tk_kop *op) {
    const char *truth = tk_cute_let(x, "arith.constant true"),
               *wrong = tk_cute_let(x, "arith.xori %s, %s : i1", tk_cute_operand(x, op, 0), truth);
    tk_cute_line(x, "scf.if %s {", wrong);
    tk_cute_line(x, "  llvm.intr.trap");
    tk_cute_line(x, "}");
}
