/* Fusing of a product with the sum that alone uses it into one fma, rounded once. It changes bits,
 * so nothing runs it but who asks for it. */
#include "base/error.h"
#include "kernel/pass.h"

typedef struct fuser {
    tk_kernel *kernel;
    tk_kuses uses;
    tk_kexchange exchange;
} fuser;

/* The product behind a value, if nothing else uses it. */
static const tk_kop *product_of(const fuser *f, const tk_kvalue *value) {
    const tk_kop *op = value->kind == TK_KV_RESULT ? value->op : NULL;
    bool single = op && op->code == TK_KOP_mul && f->uses.of[value->id] == 1;
    return single ? op : NULL;
}

static tk_kvalue *negated(tk_kput *put, tk_kvalue *value) {
    return tk_kput_1(put, TK_KOP_neg, value);
}

static tk_status fuse(fuser *f, tk_kop *op) {
    tk_status status = TK_OK;
    tk_kput put = tk_kput_before(f->kernel, op, &status);
    const tk_kop *left = product_of(f, op->operands[0]), *right = product_of(f, op->operands[1]);
    const tk_kop *product = left ? left : right;
    if (!product) return TK_OK;
    tk_kvalue *a = product->operands[0], *b = product->operands[1],
              *c = op->operands[product == left ? 1 : 0];
    if (op->code == TK_KOP_sub && product == left) c = negated(&put, c);
    if (op->code == TK_KOP_sub && product == right) a = negated(&put, a);
    tk_kvalue *fused = tk_kput_3(&put, TK_KOP_fma, a, b, c);
    TK_TRY(status);
    TK_TRY(tk_kexchange_set(&f->exchange, op->results[0], fused));
    tk_kop_unlink(op);
    return TK_OK;
}

static tk_status visit(void *arg, tk_kop *op) {
    fuser *f = arg;
    bool sum = op->code == TK_KOP_add || op->code == TK_KOP_sub;
    if (!sum || !tk_kclass_has(TK_KC_FLOAT, op->results[0]->type)) return TK_OK;
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i] = tk_kexchange_get(&f->exchange, op->operands[i]);
    return fuse(f, op);
}

/* Values that the pass adds have no counts, and need none: no product is among them. */
tk_status tk_kpass_run_fuse(tk_kernel *kernel) {
    fuser f = {.kernel = kernel};
    TK_TRY(tk_kpass_count_uses(kernel, &f.uses));
    tk_status status = tk_kblock_walk(&kernel->body, visit, &f);
    if (status == TK_OK) tk_kexchange_apply(&f.exchange, kernel);
    tk_free(f.uses.of);
    tk_vec_deinit(&f.exchange);
    return status == TK_OK ? tk_kpass_run_dead(kernel) : status;
}
