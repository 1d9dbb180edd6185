/* Asynchronous copies, mbarriers, clusters, atomics: the operations that order memory.
 *
 * Predicated ones stand inside of scf.if. What the dialects have only for the default scope or
 * without a cache policy is refused with another. */
#include <inttypes.h>

#include "target/cute/cute.h"

/* Opens `scf.if` for the condition at `index`, if there is one; close gives it back. */
static bool open_if(tk_cute *x, const tk_kop *op, int index) {
    if (!op->operands[index]) return false;
    tk_cute_line(x, "scf.if %s {", tk_cute_operand(x, op, index));
    x->depth++;
    return true;
}

static void close_if(tk_cute *x, bool opened) {
    if (!opened) return;
    x->depth--;
    tk_cute_line(x, "}");
}

static const char *pointer_type(tk_cute *x, const tk_kop *op, int index) {
    return tk_cute_type(x, op->operands[index]->type);
}

static bool is_far(const tk_kop *op, int index) {
    return op->operands[index]->type.space == TK_KS_CLUSTER;
}

/* Whether an operand is there that the form has no place for. */
static bool refuse_operand(tk_cute *x, const tk_kop *op, int index, const char *what) {
    if (!op->operands[index]) return false;
    tk_cute_fail(x, op, "with %s", what);
    return true;
}

/* ---- cp.async ---- */

void tk_cute_put_cp_async(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, SIZE, CONDITION, POLICY, CG = 1 };
    int64_t cache = tk_kop_attr(op, TK_KA_cache);
    if (refuse_operand(x, op, POLICY, "a policy")) return;
    if (cache > CG || tk_kop_attr(op, TK_KA_prefetch) || is_far(op, TARGET)) {
        tk_cute_fail(x, op, "with another cache than ca and cg, a prefetch, or another block");
        return;
    }
    const char *size =
        op->operands[SIZE] ? tk_cute_text(x, ", %s", tk_cute_operand(x, op, SIZE)) : "";
    bool opened = open_if(x, op, CONDITION);
    tk_cute_line(x, "nvvm.cp.async.shared.global %s, %s, %" PRId64 ", cache = %s%s : %s, %s%s",
                 tk_cute_operand(x, op, TARGET), tk_cute_operand(x, op, SOURCE),
                 tk_kop_attr(op, TK_KA_bytes), cache == CG ? "cg" : "ca", size,
                 pointer_type(x, op, TARGET), pointer_type(x, op, SOURCE), *size ? ", i32" : "");
    close_if(x, opened);
}

void tk_cute_put_cp_async_group(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_cp_async_commit)
        tk_cute_line(x, "nvvm.cp.async.commit.group");
    else
        tk_cute_line(x, "nvvm.cp.async.wait.group %" PRId64, tk_kop_attr(op, TK_KA_groups));
}

void tk_cute_put_cp_async_arrive(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.cp.async.mbarrier.arrive %s%s : %s", tk_cute_operand(x, op, 0),
                 tk_kop_attr(op, TK_KA_arriving) ? " {noinc = true}" : "", pointer_type(x, op, 0));
}

/* ---- bulk copies and TMA ---- */

void tk_cute_put_bulk_group(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_bulk_commit)
        tk_cute_line(x, "nvvm.cp.async.bulk.commit.group");
    else
        tk_cute_line(x, "nvvm.cp.async.bulk.wait_group %" PRId64 "%s",
                     tk_kop_attr(op, TK_KA_groups), tk_kop_attr(op, TK_KA_read) ? " {read}" : "");
}

/* The destination as memory of the cluster, which the dialect asks for. */
static const char *as_cluster(tk_cute *x, const tk_kop *op, int index) {
    if (is_far(op, index)) return tk_cute_operand(x, op, index);
    return tk_cute_let(x, "llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr<7>",
                       tk_cute_operand(x, op, index));
}

void tk_cute_put_bulk_load(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, BARRIER, MULTICAST, POLICY };
    if (refuse_operand(x, op, MULTICAST, "a multicast") ||
        refuse_operand(x, op, POLICY, "a policy"))
        return;
    const char *target = as_cluster(x, op, TARGET);
    tk_cute_line(x, "nvvm.cp.async.bulk.shared.cluster.global %s, %s, %s, %s : !llvm.ptr<7>, %s",
                 target, tk_cute_operand(x, op, SOURCE), tk_cute_operand(x, op, BARRIER),
                 tk_cute_operand(x, op, BYTES), pointer_type(x, op, SOURCE));
}

void tk_cute_put_bulk_store(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, POLICY };
    if (refuse_operand(x, op, POLICY, "a policy")) return;
    tk_cute_line(x, "nvvm.cp.async.bulk.global.shared.cta %s, %s, %s : %s, %s",
                 tk_cute_operand(x, op, TARGET), tk_cute_operand(x, op, SOURCE),
                 tk_cute_operand(x, op, BYTES), pointer_type(x, op, TARGET),
                 pointer_type(x, op, SOURCE));
}

/* "box[%a, %b]": the coordinates stand behind the other operands. */
static const char *box_of(tk_cute *x, const tk_kop *op) {
    bool variadic;
    int slots = tk_kop_row_slots(tk_kop_row_of(op->code), &variadic);
    return tk_cute_text(x, "box[%s]",
                        tk_cute_list(x, op->n_operands - (uint32_t)slots, op->operands + slots));
}

static bool refuse_form(tk_cute *x, const tk_kop *op) {
    if (!tk_kop_attr(op, TK_KA_load)) return false;
    tk_cute_fail(x, op, "in im2col form, which needs offsets");
    return true;
}

void tk_cute_put_tma_load(tk_cute *x, const tk_kop *op) {
    enum { TARGET, MAP, BARRIER, MULTICAST, POLICY };
    if (refuse_form(x, op) || refuse_operand(x, op, MULTICAST, "a multicast") ||
        refuse_operand(x, op, POLICY, "a policy"))
        return;
    const char *target = as_cluster(x, op, TARGET);
    tk_cute_line(x,
                 "nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %s, %s, %s : !llvm.ptr<7>, "
                 "!llvm.ptr",
                 target, tk_cute_operand(x, op, MAP), tk_cute_operand(x, op, BARRIER),
                 box_of(x, op));
}

void tk_cute_put_tma_store(tk_cute *x, const tk_kop *op) {
    enum { MAP, SOURCE, POLICY };
    if (refuse_form(x, op) || refuse_operand(x, op, POLICY, "a policy")) return;
    tk_cute_line(x,
                 "nvvm.cp.async.bulk.tensor.global.shared.cta %s, %s, %s : !llvm.ptr, !llvm.ptr<3>",
                 tk_cute_operand(x, op, MAP), tk_cute_operand(x, op, SOURCE), box_of(x, op));
}

void tk_cute_put_map_prefetch(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.prefetch tensormap, %s : %s", tk_cute_operand(x, op, 0),
                 pointer_type(x, op, 0));
}

void tk_cute_put_prefetch(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.prefetch level = L2, %s : %s", tk_cute_operand(x, op, 0),
                 pointer_type(x, op, 0));
}

/* ---- mbarriers ---- */

/* The dialect's forms are those of the own block at its scope. */
static bool refuse_reach(tk_cute *x, const tk_kop *op, bool scoped) {
    enum { BLOCK = 1 };
    if (!is_far(op, 0) && !(scoped && tk_kop_attr(op, TK_KA_scope) > BLOCK)) return false;
    tk_cute_fail(x, op, "of another block, or at a scope beyond the block");
    return true;
}

void tk_cute_put_mbarrier_init(tk_cute *x, const tk_kop *op) {
    if (refuse_reach(x, op, false)) return;
    tk_cute_line(x, "nvvm.mbarrier.init %s, %s : !llvm.ptr<3>, i32", tk_cute_operand(x, op, 0),
                 tk_cute_operand(x, op, 1));
}

void tk_cute_put_mbarrier_end(tk_cute *x, const tk_kop *op) {
    if (refuse_reach(x, op, false)) return;
    tk_cute_line(x, "nvvm.mbarrier.inval %s : !llvm.ptr<3>", tk_cute_operand(x, op, 0));
}

void tk_cute_put_mbarrier_fence(tk_cute *x, const tk_kop *op) {
    (void)op;
    tk_cute_line(x, "nvvm.fence.mbarrier.init");
}

void tk_cute_put_mbarrier_arrive(tk_cute *x, const tk_kop *op) {
    enum { COUNT = 1, CONDITION };
    if (refuse_reach(x, op, true)) return;
    bool opened = open_if(x, op, CONDITION);
    const char *count =
        op->operands[COUNT] ? tk_cute_text(x, ", %s", tk_cute_operand(x, op, COUNT)) : "";
    tk_cute_let(x, "nvvm.mbarrier.arrive %s%s : !llvm.ptr<3> -> i64", tk_cute_operand(x, op, 0),
                count);
    close_if(x, opened);
}

void tk_cute_put_mbarrier_expect(tk_cute *x, const tk_kop *op) {
    enum { BYTES = 1, CONDITION };
    if (refuse_reach(x, op, true)) return;
    bool opened = open_if(x, op, CONDITION);
    tk_cute_line(x, "nvvm.mbarrier.arrive.expect_tx %s, %s : !llvm.ptr<3>, i32",
                 tk_cute_operand(x, op, 0), tk_cute_operand(x, op, BYTES));
    close_if(x, opened);
}

/* One operation is the loop that waits; the number is the time of a single look, in nanoseconds. */
void tk_cute_put_mbarrier_wait(tk_cute *x, const tk_kop *op) {
    enum { LOOK_NANOSECONDS = 10000000 };
    if (refuse_reach(x, op, true)) return;
    tk_cute_line(x, "nvvm.mbarrier.try_wait.parity %s, %s, %s : !llvm.ptr<3>, i32, i32",
                 tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1),
                 tk_cute_constant(x, LOOK_NANOSECONDS, "i32"));
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

/* ---- atomics ---- */

/* By place in the words of `update`: NULL where LLVM has none. */
static const char *update_word(const tk_kop *op, bool is_float) {
    static const char *const integers[] = {"add",  "min", "max",  "umin", "umax", NULL, NULL,
                                           "_and", "_or", "_xor", "xchg", NULL,   NULL, NULL};
    int64_t update = tk_kop_attr(op, TK_KA_update);
    if (is_float) return update == 0 ? "fadd" : NULL;
    return integers[update];
}

/* "syncscope(\"device\") acq_rel"; weak is relaxed, since an atomic is never less. */
static const char *order_text(tk_cute *x, const tk_kop *op) {
    static const char *const orders[] = {"monotonic", "monotonic", "acquire", "release", "acq_rel"},
                             *const scopes[] = {"device", "block", "cluster", "device", ""};
    const char *scope = scopes[tk_kop_attr(op, TK_KA_scope)];
    const char *order = orders[tk_kop_attr(op, TK_KA_order)];
    return *scope ? tk_cute_text(x, "syncscope(\"%s\") %s", scope, order) : order;
}

static const char *put_update(tk_cute *x, const tk_kop *op) {
    tk_ktype type = op->operands[1]->type;
    const char *word = update_word(op, tk_cute_is_float(type));
    if (!word || type.lanes > 1 || tk_kscalar_bytes((tk_kscalar)type.scalar) < 4) {
        tk_cute_fail(x, op, "of %s with this update", tk_ktype_words(x->kernel, type).text);
        return "";
    }
    return tk_cute_let(x, "llvm.atomicrmw %s %s, %s %s : %s, %s", word, tk_cute_operand(x, op, 0),
                       tk_cute_operand(x, op, 1), order_text(x, op), pointer_type(x, op, 0),
                       tk_cute_type(x, type));
}

/* The new value where the old one is the expected. */
static const char *put_exchange(tk_cute *x, const tk_kop *op) {
    enum { EXPECTED = 2, ACQ_REL = 4 };
    const char *type = tk_cute_type(x, op->operands[1]->type);
    const char *both =
        tk_cute_let(x, "llvm.cmpxchg %s, %s, %s %s monotonic : %s, %s", tk_cute_operand(x, op, 0),
                    tk_cute_operand(x, op, EXPECTED), tk_cute_operand(x, op, 1), order_text(x, op),
                    pointer_type(x, op, 0), type);
    return tk_cute_let(x, "llvm.extractvalue %s[0] : !llvm.struct<(%s, i1)>", both, type);
}

void tk_cute_put_atomic(tk_cute *x, const tk_kop *op) {
    enum { EXPECTED = 2, CONDITION, POLICY };
    if (refuse_operand(x, op, POLICY, "a policy")) return;
    if (refuse_operand(x, op, CONDITION, "a condition")) return;
    tk_cute_alias(x, op->results[0],
                  op->operands[EXPECTED] ? put_exchange(x, op) : put_update(x, op));
}

void tk_cute_put_reduce(tk_cute *x, const tk_kop *op) {
    enum { CONDITION = 2, POLICY };
    if (refuse_operand(x, op, POLICY, "a policy")) return;
    bool opened = open_if(x, op, CONDITION);
    put_update(x, op);
    close_if(x, opened);
}
