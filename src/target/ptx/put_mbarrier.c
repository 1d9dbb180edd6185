/* Mbarriers. With sm_80 those of the block alone, without counts of bytes. */
#include <stdio.h>

#include "target/ptx/put.h"

static bool is_far(const tk_kop *op) { return op->operands[0]->type.space == TK_KS_CLUSTER; }

static const char *space_of(const tk_ptx *x, const tk_kop *op) {
    return is_far(op) ? ".shared::cluster" : x->arch < 90 ? ".shared" : ".shared::cta";
}

/* An mbarrier of the own block is what these work on. */
static void need_near(tk_ptx *x, const tk_kop *op) {
    if (is_far(op)) tk_ptx_fail(x, op, "on an mbarrier of another block");
}

void tk_ptx_put_mbarrier_init(tk_ptx *x, const tk_kop *op) {
    need_near(x, op);
    tk_ptx_line(x, "mbarrier.init%s.b64 [%s], %s", space_of(x, op), tk_ptx_named(x, op, 0).text,
                tk_ptx_named(x, op, 1).text);
}

void tk_ptx_put_mbarrier_end(tk_ptx *x, const tk_kop *op) {
    need_near(x, op);
    tk_ptx_line(x, "mbarrier.inval%s.b64 [%s]", space_of(x, op), tk_ptx_named(x, op, 0).text);
}

void tk_ptx_put_mbarrier_fence(tk_ptx *x, const tk_kop *op) {
    (void)op;
    tk_ptx_line(x, x->arch < 90 ? "fence.acq_rel.cta" : "fence.mbarrier_init.release.cluster");
}

/* ".release.cluster"; "" where that is the default. */
static const char *order_of(tk_ptx *x, const tk_kop *op, bool acquires) {
    enum { NONE, BLOCK, CLUSTER };
    int64_t scope = tk_kop_attr(op, TK_KA_scope);
    if (scope > CLUSTER) tk_ptx_fail(x, op, "at a scope beyond the cluster");
    if (scope != CLUSTER && !(is_far(op) && scope == NONE)) return "";
    tk_ptx_need_sm90(x, op);
    return acquires ? ".acquire.cluster" : ".release.cluster";
}

/* The state that an arrival gives is not used: waits go by parity. */
static tk_ptx_name state_of(tk_ptx *x, const tk_kop *op) {
    tk_ptx_name none = {"_"};
    return is_far(op) ? none : tk_ptx_spare(x, TK_PTX_Q);
}

void tk_ptx_put_mbarrier_arrive(tk_ptx *x, const tk_kop *op) {
    enum { COUNT = 1, CONDITION };
    tk_ptx_name count = {""};
    if (is_far(op)) tk_ptx_need_sm90(x, op);
    if (tk_ptx_has(op, COUNT)) {
        tk_ptx_name given = tk_ptx_named(x, op, COUNT);
        tk_ptx_need_sm90(x, op);
        snprintf(count.text, sizeof count.text, ", %.24s", given.text);
    }
    const char *order = order_of(x, op, false);
    tk_ptx_line(x, "%smbarrier.arrive%s%s.b64 %s, [%s]%s", tk_ptx_guard(x, op, CONDITION).text,
                order, space_of(x, op), state_of(x, op).text, tk_ptx_named(x, op, 0).text,
                count.text);
}

void tk_ptx_put_mbarrier_expect(tk_ptx *x, const tk_kop *op) {
    enum { BYTES = 1, CONDITION };
    const char *order = order_of(x, op, false);
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "%smbarrier.arrive.expect_tx%s%s.b64 %s, [%s], %s",
                tk_ptx_guard(x, op, CONDITION).text, order, space_of(x, op), state_of(x, op).text,
                tk_ptx_named(x, op, 0).text, tk_ptx_named(x, op, BYTES).text);
}

void tk_ptx_put_mbarrier_expect_only(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "mbarrier.expect_tx.relaxed.%s%s.b64 [%s], %s", is_far(op) ? "cluster" : "cta",
                space_of(x, op), tk_ptx_named(x, op, 0).text, tk_ptx_named(x, op, 1).text);
}

static void put_look(tk_ptx *x, const tk_kop *op, const char *what, const char *to) {
    const char *order = order_of(x, op, true);
    need_near(x, op);
    tk_ptx_line(x, "mbarrier.%s.parity%s%s.b64 %s, [%s], %s", what, order, space_of(x, op), to,
                tk_ptx_named(x, op, 0).text, tk_ptx_named(x, op, 1).text);
}

/* Again until the phase is complete; with sm_90 the thread may sleep meanwhile. */
void tk_ptx_put_mbarrier_wait(tk_ptx *x, const tk_kop *op) {
    tk_ptx_name done = tk_ptx_spare(x, TK_PTX_P);
    uint32_t again = x->labels++;
    tk_ptx_label(x, again);
    put_look(x, op, x->arch < 90 ? "test_wait" : "try_wait", done.text);
    tk_ptx_line(x, "@!%s bra $L%u", done.text, again);
}

void tk_ptx_put_mbarrier_test(tk_ptx *x, const tk_kop *op) {
    put_look(x, op, "test_wait", tk_ptx_result(x, op, 0).text);
}
