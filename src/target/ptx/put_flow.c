/* Control flow as labels and branches. Like the emulator, a loop's results share the registers of
 * what it carries, and copies at the end of a region happen all at once. */
#include "target/ptx/ptx.h"

void tk_ptx_put_nothing(tk_ptx *x, const tk_kop *op) { (void)x, (void)op; }
void tk_ptx_put_registers(tk_ptx *x, const tk_kop *op) { tk_ptx_element(x, op->results[0], 0); }

/* Ends of regions are written by the operation around them. */
void tk_ptx_put_yield(tk_ptx *x, const tk_kop *op) { (void)x, (void)op; }
void tk_ptx_put_condition(tk_ptx *x, const tk_kop *op) { (void)x, (void)op; }

/* ---- copies ---- */

static int elements_of(tk_ktype type) { return type.kind == TK_KT_NUMBER ? type.lanes : 1; }

static void move(tk_ptx *x, tk_ktype type, const char *to, const char *from) {
    bool is_float =
        type.kind == TK_KT_NUMBER && (type.scalar == TK_K_F32 || type.scalar == TK_K_F64);
    tk_ptx_line(x, "mov%s %s, %s", is_float ? tk_ptx_suffix(type, 's') : tk_ptx_suffix(type, 'b'),
                to, from);
}

static bool same_registers(tk_ptx *x, const tk_kvalue *a, const tk_kvalue *b) {
    return a == b || (a->kind != TK_KV_CONST && b->kind != TK_KV_CONST &&
                      tk_ptx_class_of(a->type) == tk_ptx_class_of(b->type) &&
                      tk_ptx_operand(x, a, 0).text[0] && x->first[a->id] == x->first[b->id]);
}

static void save(tk_ptx *x, const tk_kvalue *value, tk_ptx_name *out) {
    for (int e = 0; e < elements_of(value->type); e++) {
        out[e] = tk_ptx_spare(x, tk_ptx_class_of(value->type));
        move(x, value->type, out[e].text, tk_ptx_operand(x, value, e).text);
    }
}

void tk_ptx_copies(tk_ptx *x, uint32_t count, tk_kvalue *const *from, tk_kvalue *const *to) {
    enum { MOST = 16 };
    tk_ptx_name(*saved)[MOST] = tk_arena_alloc(&x->arena, (count + 1) * sizeof *saved);
    if (!saved) {
        x->body.failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (same_registers(x, from[i], to[j])) {
                save(x, from[i], saved[i]);
                break;
            }
    for (uint32_t i = 0; i < count; i++) {
        if (same_registers(x, from[i], to[i])) continue;
        for (int e = 0; e < elements_of(from[i]->type); e++)
            move(x, from[i]->type, tk_ptx_operand(x, to[i], e).text,
                 saved[i][e].text[0] ? saved[i][e].text : tk_ptx_operand(x, from[i], e).text);
    }
}

void tk_ptx_put_copy(tk_ptx *x, const tk_kop *op) {
    for (int e = 0; e < elements_of(op->results[0]->type); e++)
        move(x, op->results[0]->type, tk_ptx_result(x, op, e).text,
             tk_ptx_operand(x, op->operands[0], e).text);
}

/* ---- regions ---- */

/* Where the index can pass the largest integer, the loop ends there. */
static void put_step(tk_ptx *x, const tk_kop *op, const char *suffix, uint32_t end) {
    tk_ptx_name index = tk_ptx_operand(x, op->regions[0]->args[0], 0);
    bool wraps = tk_kfor_may_wrap(op, x->facts);
    tk_ptx_name past = wraps ? tk_ptx_spare(x, TK_PTX_P) : index,
                old = wraps ? tk_ptx_spare(x, tk_ptx_class_of(op->operands[0]->type)) : index;
    if (wraps) move(x, op->operands[0]->type, old.text, index.text);
    tk_ptx_line(x, "add%s %s, %s, %s", suffix, index.text, index.text,
                tk_ptx_operand(x, op->operands[2], 0).text);
    if (!wraps) return;
    tk_ptx_line(x, "setp.lt%s %s, %s, %s", suffix, past.text, index.text, old.text);
    tk_ptx_line(x, "@%s bra $L%u", past.text, end);
}

void tk_ptx_put_for(tk_ptx *x, const tk_kop *op) {
    enum { BOUNDS = 3 };
    const tk_kblock *body = op->regions[0];
    uint32_t carried = op->n_operands - BOUNDS, top = x->labels++, end = x->labels++;
    const char *suffix = tk_ptx_suffix(op->operands[0]->type, 's');
    tk_ptx_name done = tk_ptx_spare(x, TK_PTX_P), index = tk_ptx_operand(x, body->args[0], 0);
    for (int i = 0; i < op->n_results; i++) tk_ptx_share(x, op->results[i], body->args[1 + i]);
    tk_ptx_copies(x, carried, op->operands + BOUNDS, body->args + 1);
    move(x, op->operands[0]->type, index.text, tk_ptx_operand(x, op->operands[0], 0).text);
    tk_ptx_label(x, top);
    if (tk_kop_attr(op, TK_KA_unroll) == 1) tk_ptx_line(x, ".pragma \"nounroll\"");
    tk_ptx_line(x, "setp.ge%s %s, %s, %s", suffix, done.text, index.text,
                tk_ptx_operand(x, op->operands[1], 0).text);
    tk_ptx_line(x, "@%s bra $L%u", done.text, end);
    tk_ptx_block(x, body);
    tk_ptx_copies(x, carried, body->last->operands, body->args + 1);
    put_step(x, op, suffix, end);
    tk_ptx_line(x, "bra $L%u", top);
    tk_ptx_label(x, end);
}

void tk_ptx_put_while(tk_ptx *x, const tk_kop *op) {
    const tk_kblock *first = op->regions[0], *second = op->regions[1];
    const tk_kop *condition = first->last;
    uint32_t top = x->labels++, end = x->labels++;
    for (int i = 0; i < op->n_results; i++) tk_ptx_share(x, op->results[i], second->args[i]);
    tk_ptx_copies(x, op->n_operands, op->operands, first->args);
    tk_ptx_label(x, top);
    tk_ptx_block(x, first);
    tk_ptx_copies(x, condition->n_operands - 1, condition->operands + 1, second->args);
    tk_ptx_line(x, "@!%s bra $L%u", tk_ptx_operand(x, condition->operands[0], 0).text, end);
    tk_ptx_block(x, second);
    tk_ptx_copies(x, op->n_operands, second->last->operands, first->args);
    tk_ptx_line(x, "bra $L%u", top);
    tk_ptx_label(x, end);
}

void tk_ptx_put_if(tk_ptx *x, const tk_kop *op) {
    const tk_kblock *yes = op->regions[0], *no = op->regions[1];
    bool both = no->first != no->last || op->n_results;
    uint32_t other = x->labels++, end = both ? x->labels++ : other;
    tk_ptx_line(x, "@!%s bra $L%u", tk_ptx_operand(x, op->operands[0], 0).text, other);
    tk_ptx_block(x, yes);
    tk_ptx_copies(x, op->n_results, yes->last->operands, op->results);
    if (both) {
        tk_ptx_line(x, "bra $L%u", end);
        tk_ptx_label(x, other);
        tk_ptx_block(x, no);
        tk_ptx_copies(x, op->n_results, no->last->operands, op->results);
    }
    tk_ptx_label(x, end);
}
