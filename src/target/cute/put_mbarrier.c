/* Mbarriers, fences, clusters, grids.
 *
 * The dialect's mbarriers are those of the own block at its scope. At the cluster's, and for a
 * barrier of another block, an arrival or a wait is an instruction as text. */
#include <inttypes.h>

#include "target/cute/put.h"

/* ---- mbarriers ---- */

enum { NONE, BLOCK, CLUSTER };

static bool refuse_far(tk_cute *x, const tk_kop *op) {
    if (!tk_cute_is_far(op, 0)) return false;
    tk_cute_fail(x, op, "of another block");
    return true;
}

void tk_cute_put_mbarrier_init(tk_cute *x, const tk_kop *op) {
    if (refuse_far(x, op)) return;
    tk_cute_line(x, "nvvm.mbarrier.init %s, %s : !llvm.ptr<3>, i32", tk_cute_operand(x, op, 0),
                 tk_cute_operand(x, op, 1));
}

void tk_cute_put_mbarrier_end(tk_cute *x, const tk_kop *op) {
    if (refuse_far(x, op)) return;
    tk_cute_line(x, "nvvm.mbarrier.inval %s : !llvm.ptr<3>", tk_cute_operand(x, op, 0));
}

void tk_cute_put_mbarrier_fence(tk_cute *x, const tk_kop *op) {
    (void)op;
    tk_cute_line(x, "nvvm.fence.mbarrier.init");
}

/* Whether the order reaches beyond the block. */
static bool is_wide(tk_cute *x, const tk_kop *op) {
    int64_t scope = tk_kop_attr(op, TK_KA_scope);
    if (scope > CLUSTER) tk_cute_fail(x, op, "at a scope beyond the cluster");
    return scope == CLUSTER || (tk_cute_is_far(op, 0) && scope == NONE);
}

static const char *space_of(const tk_kop *op) {
    return tk_cute_is_far(op, 0) ? "shared::cluster" : "shared::cta";
}

/* mbarrier.arrive and its kin; the state that an arrival gives is not used: waits go by parity. */
static void put_arrival(tk_cute *x, const tk_kop *op, const char *what) {
    enum { AMOUNT = 1 };
    bool has_amount = op->operands[AMOUNT] != NULL, far = tk_cute_is_far(op, 0);
    tk_cute_value values[] = {tk_cute_in_register(x, op->operands[0]), {NULL, NULL}};
    if (has_amount) values[1] = tk_cute_in_register(x, op->operands[AMOUNT]);
    const char *order = is_wide(x, op) ? "release.cluster." : "";
    if (far)
        tk_cute_insn(x,
                     tk_cute_text(x, "mbarrier.%s.%s%s.b64 _, [$0]%s;", what, order, space_of(op),
                                  has_amount ? ", $1" : ""),
                     1 + has_amount, values);
    else
        tk_cute_insn_of(x, NULL, "i64",
                        tk_cute_text(x, "mbarrier.%s.%s%s.b64 $0, [$1]%s;", what, order,
                                     space_of(op), has_amount ? ", $2" : ""),
                        1 + has_amount, values);
}

void tk_cute_put_mbarrier_arrive(tk_cute *x, const tk_kop *op) {
    enum { COUNT = 1, CONDITION };
    bool opened = tk_cute_open_if(x, op, CONDITION);
    const char *count =
        op->operands[COUNT] ? tk_cute_text(x, ", %s", tk_cute_operand(x, op, COUNT)) : "";
    if (is_wide(x, op) || tk_cute_is_far(op, 0))
        put_arrival(x, op, "arrive");
    else
        tk_cute_let(x, "nvvm.mbarrier.arrive %s%s : !llvm.ptr<3> -> i64", tk_cute_operand(x, op, 0),
                    count);
    tk_cute_close_if(x, opened);
}

void tk_cute_put_mbarrier_expect(tk_cute *x, const tk_kop *op) {
    enum { BYTES = 1, CONDITION };
    bool opened = tk_cute_open_if(x, op, CONDITION);
    if (is_wide(x, op) || tk_cute_is_far(op, 0))
        put_arrival(x, op, "arrive.expect_tx");
    else
        tk_cute_line(x, "nvvm.mbarrier.arrive.expect_tx %s, %s : !llvm.ptr<3>, i32",
                     tk_cute_operand(x, op, 0), tk_cute_operand(x, op, BYTES));
    tk_cute_close_if(x, opened);
}

void tk_cute_put_mbarrier_expect_only(tk_cute *x, const tk_kop *op) {
    const tk_cute_value values[] = {tk_cute_in_register(x, op->operands[0]),
                                    tk_cute_in_register(x, op->operands[1])};
    tk_cute_insn(x,
                 tk_cute_text(x, "mbarrier.expect_tx.relaxed.%s.%s.b64 [$0], $1;",
                              tk_cute_is_far(op, 0) ? "cluster" : "cta", space_of(op)),
                 2, values);
}

/* Whether the phase is complete, as 0 or 1. */
static const char *put_look(tk_cute *x, const tk_kop *op, const char *what) {
    const tk_cute_value values[] = {tk_cute_in_register(x, op->operands[0]),
                                    tk_cute_in_register(x, op->operands[1])};
    return tk_cute_insn_of(x, NULL, "i32",
                           tk_cute_text(x,
                                        "{ .reg .pred p; mbarrier.%s.parity.%sshared::cta.b64 p, "
                                        "[$1], $2; selp.u32 $0, 1, 0, p; }",
                                        what, is_wide(x, op) ? "acquire.cluster." : ""),
                           2, values);
}

/* The dialect's operation is the loop that waits; the number is the time of a single look, in
 * nanoseconds. At the cluster's scope the loop is one of scf. */
void tk_cute_put_mbarrier_wait(tk_cute *x, const tk_kop *op) {
    enum { LOOK_NANOSECONDS = 10000000 };
    if (refuse_far(x, op)) return;
    if (!is_wide(x, op)) {
        tk_cute_line(x, "nvvm.mbarrier.try_wait.parity %s, %s, %s : !llvm.ptr<3>, i32, i32",
                     tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1),
                     tk_cute_constant(x, LOOK_NANOSECONDS, "i32"));
        return;
    }
    tk_cute_line(x, "scf.while : () -> () {");
    tk_cute_open(x);
    const char *done = put_look(x, op, "try_wait");
    tk_cute_line(
        x, "scf.condition(%s)",
        tk_cute_let(x, "arith.cmpi eq, %s, %s : i32", done, tk_cute_constant(x, 0, "i32")));
    tk_cute_close(x);
    tk_cute_line(x, "} do {");
    tk_cute_line(x, "  scf.yield");
    tk_cute_line(x, "}");
}

void tk_cute_put_mbarrier_test(tk_cute *x, const tk_kop *op) {
    if (refuse_far(x, op)) return;
    const char *done = put_look(x, op, "test_wait");
    tk_cute_line(x, "%s = arith.cmpi ne, %s, %s : i32", tk_cute_result(x, op), done,
                 tk_cute_constant(x, 0, "i32"));
}

/* ---- fences, clusters, grids ---- */

void tk_cute_put_proxy_fence(tk_cute *x, const tk_kop *op) {
    static const char *const kinds[] = {
        "#nvvm.proxy_kind<async>", "#nvvm.proxy_kind<async.global>",
        "#nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>",
        "#nvvm.proxy_kind<alias>"};
    tk_cute_line(x, "nvvm.fence.proxy {kind = %s}", kinds[tk_kop_attr(op, TK_KA_proxy)]);
}

void tk_cute_put_cluster(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_cluster_wait)
        tk_cute_line(x, "nvvm.cluster.wait {aligned}");
    else
        tk_cute_line(x, "nvvm.cluster.arrive%s {aligned}",
                     tk_kop_attr(op, TK_KA_relaxed) ? ".relaxed" : "");
}

void tk_cute_put_grid(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.griddepcontrol %s",
                 op->code == TK_KOP_grid_wait ? "wait" : "launch_dependents");
}

void tk_cute_put_reallocate(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.setmaxregister %s %" PRId64,
                 op->code == TK_KOP_registers_grow ? "increase" : "decrease",
                 tk_kop_attr(op, TK_KA_registers));
}
