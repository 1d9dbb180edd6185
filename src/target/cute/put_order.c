/* Barriers, fences, lanes of a warp, and special registers. */
#include <inttypes.h>

#include "target/cute/cute.h"

void tk_cute_put_barrier(tk_cute *x, const tk_kop *op) {
    int64_t id = tk_kop_attr(op, TK_KA_id), threads = tk_kop_attr(op, TK_KA_threads);
    bool arrives = op->code == TK_KOP_barrier_arrive;
    const int64_t *block = x->kernel->contract.block;
    if (!id && !threads && !arrives) {
        tk_cute_line(x, "nvvm.barrier0");
        return;
    }
    const char *number = tk_cute_constant(x, id, "i32"),
               *count =
                   tk_cute_constant(x, threads ? threads : block[0] * block[1] * block[2], "i32");
    tk_cute_line(x, "nvvm.barrier%s id = %s number_of_threads = %s", arrives ? ".arrive" : "",
                 number, count);
}

/* The operand at `index`, or all lanes. */
static const char *mask_of(tk_cute *x, const tk_kop *op, int index) {
    return op->operands[index] ? tk_cute_operand(x, op, index) : tk_cute_constant(x, -1, "i32");
}

void tk_cute_put_warp_barrier(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.bar.warp.sync %s : i32", mask_of(x, op, 0));
}

void tk_cute_put_fence(tk_cute *x, const tk_kop *op) {
    static const char *const scopes[] = {"", "block", "cluster", "device", ""};
    int64_t scope = tk_kop_attr(op, TK_KA_scope);
    const char *order = tk_kop_attr(op, TK_KA_fence) ? "seq_cst" : "acq_rel";
    if (*scopes[scope])
        tk_cute_line(x, "llvm.fence syncscope(\"%s\") %s", scopes[scope], order);
    else
        tk_cute_line(x, "llvm.fence %s", order);
}

void tk_cute_put_nanosleep(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.nanosleep %s", tk_cute_operand(x, op, 0));
}

/* ---- shuffles: 32 bits at a time ---- */

typedef struct way {
    const char *mode, *mask, *lane, *clamp;
} way;

static const char *shuffle_word(tk_cute *x, const way *w, const char *value, const char *type) {
    return tk_cute_let(x, "nvvm.shfl.sync %s %s, %s, %s, %s : %s -> %s", w->mode, w->mask, value,
                       w->lane, w->clamp, type, type);
}

static const char *shuffle_half(tk_cute *x, const way *w, const char *value, const char *type) {
    bool is_float = *type != 'i';
    const char *bits =
        is_float ? tk_cute_let(x, "arith.bitcast %s : %s to i16", value, type) : value;
    const char *word = tk_cute_let(x, "arith.extui %s : i16 to i32", bits);
    bits = tk_cute_let(x, "arith.trunci %s : i32 to i16", shuffle_word(x, w, word, "i32"));
    return is_float ? tk_cute_let(x, "arith.bitcast %s : i16 to %s", bits, type) : bits;
}

static const char *shuffle_pair(tk_cute *x, const way *w, const char *value, const char *type) {
    const char *one = tk_cute_let(x, "vector.broadcast %s : %s to vector<1x%s>", value, type, type),
               *pair =
                   tk_cute_let(x, "vector.bitcast %s : vector<1x%s> to vector<2xi32>", one, type);
    const char *halves[2];
    for (int i = 0; i < 2; i++)
        halves[i] = shuffle_word(
            x, w, tk_cute_let(x, "vector.extract %s[%d] : i32 from vector<2xi32>", pair, i), "i32");
    pair = tk_cute_let(x, "vector.from_elements %s, %s : vector<2xi32>", halves[0], halves[1]);
    one = tk_cute_let(x, "vector.bitcast %s : vector<2xi32> to vector<1x%s>", pair, type);
    return tk_cute_let(x, "vector.extract %s[0] : %s from vector<1x%s>", one, type, type);
}

void tk_cute_put_shuffle(tk_cute *x, const tk_kop *op) {
    static const char *const modes[] = {"idx", "up", "down", "bfly"};
    int64_t mode = tk_kop_attr(op, TK_KA_mode), width = tk_kop_attr(op, TK_KA_width);
    tk_ktype type = op->operands[0]->type;
    const char *scalar = tk_cute_scalar((tk_kscalar)type.scalar), *elements[16];
    way w = {modes[mode], mask_of(x, op, 2), tk_cute_operand(x, op, 1),
             tk_cute_constant(x, (32 - width) << 8 | (mode == 1 ? 0 : 31), "i32")};
    int bytes = tk_kscalar_bytes((tk_kscalar)type.scalar);
    for (int i = 0; i < type.lanes; i++)
        elements[i] =
            (bytes == 2   ? shuffle_half
             : bytes == 8 ? shuffle_pair
                          : shuffle_word)(x, &w, tk_cute_element(x, op->operands[0], i), scalar);
    tk_cute_gather(x, op, elements);
}

void tk_cute_put_vote(tk_cute *x, const tk_kop *op) {
    static const char *const votes[] = {"all", "any", "uni"};
    bool ballot = op->code == TK_KOP_ballot;
    const char *mask = mask_of(x, op, 1);
    tk_cute_line(x, "%s = nvvm.vote.sync %s %s, %s -> %s", tk_cute_result(x, op),
                 ballot ? "ballot" : votes[tk_kop_attr(op, TK_KA_vote)], mask,
                 tk_cute_operand(x, op, 0), ballot ? "i32" : "i1");
}

/* match.all gives a mask and a truth value. */
void tk_cute_put_match(tk_cute *x, const tk_kop *op) {
    const char *mask = mask_of(x, op, 1), *type = tk_cute_type(x, op->operands[0]->type),
               *value = tk_cute_operand(x, op, 0);
    if (tk_kop_attr(op, TK_KA_match) == 0) {
        tk_cute_line(x, "%s = nvvm.match.sync any %s, %s : %s -> i32", tk_cute_result(x, op), mask,
                     value, type);
        return;
    }
    const char *both = tk_cute_let(x, "nvvm.match.sync all %s, %s : %s -> !llvm.struct<(i32, i1)>",
                                   mask, value, type);
    tk_cute_line(x, "%s = llvm.extractvalue %s[0] : !llvm.struct<(i32, i1)>", tk_cute_result(x, op),
                 both);
}

void tk_cute_put_warp_reduce(tk_cute *x, const tk_kop *op) {
    static const char *const words[] = {"add", "min", "max", "umin", "umax",
                                        NULL,  NULL,  "and", "or",   "xor"};
    const char *word = words[tk_kop_attr(op, TK_KA_reduce)], *mask = mask_of(x, op, 1);
    if (!word) {
        tk_cute_fail(x, op, "of floats");
        return;
    }
    tk_cute_line(x, "%s = nvvm.redux.sync %s %s, %s : i32 -> i32", tk_cute_result(x, op), word,
                 tk_cute_operand(x, op, 0), mask);
}

/* The dialect's operation has no mask. */
void tk_cute_put_elect(tk_cute *x, const tk_kop *op) {
    if (!op->operands[0]) {
        tk_cute_line(x, "%s = nvvm.elect.sync -> i1", tk_cute_result(x, op));
        return;
    }
    const tk_cute_value mask = tk_cute_in_register(x, op->operands[0]);
    const char *chosen = tk_cute_insn_of(
        x, NULL, "i32", "{ .reg .pred p; elect.sync _|p, $1; selp.u32 $0, 1, 0, p; }", 1, &mask);
    tk_cute_line(x, "%s = arith.cmpi ne, %s, %s : i32", tk_cute_result(x, op), chosen,
                 tk_cute_constant(x, 0, "i32"));
}

void tk_cute_put_active(tk_cute *x, const tk_kop *op) {
    tk_cute_insn_of(x, tk_cute_result(x, op), "i32", "activemask.b32 $0;", 0, NULL);
}

/* ---- where and when ---- */

void tk_cute_put_position(tk_cute *x, const tk_kop *op) {
    static const char *const names[] = {"tid",       "ctaid",         "ntid",          "nctaid",
                                        "clusterid", "cluster.ctaid", "cluster.nctaid"};
    tk_cute_line(x, "%s = nvvm.read.ptx.sreg.%s.%c : i32", tk_cute_result(x, op),
                 names[op->code - TK_KOP_thread_index], "xyz"[tk_kop_attr(op, TK_KA_axis)]);
}

/* Sizes of shared memory have no name in the dialect. */
void tk_cute_put_special(tk_cute *x, const tk_kop *op) {
    static const char *const names[] = {
        "laneid",      "warpid",          "nwarpid",          "smid",        "nsmid",
        "gridid",      "cluster.ctarank", "cluster.nctarank", "lanemask.lt", "lanemask.le",
        "lanemask.eq", "lanemask.ge",     "lanemask.gt"};
    static const char *const sizes[] = {"total_smem_size", "dynamic_smem_size"};
    enum { NAMED = sizeof names / sizeof *names };
    int64_t which = tk_kop_attr(op, TK_KA_special);
    if (which < NAMED)
        tk_cute_line(x, "%s = nvvm.read.ptx.sreg.%s : i32", tk_cute_result(x, op), names[which]);
    else
        tk_cute_line(x, "%s = llvm.inline_asm \"mov.u32 $0, %%%s;\", \"=r\" : () -> i32",
                     tk_cute_result(x, op), sizes[which - NAMED]);
}

void tk_cute_put_clock(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "%s = nvvm.read.ptx.sreg.%s : i64", tk_cute_result(x, op),
                 tk_kop_attr(op, TK_KA_clock) ? "globaltimer" : "clock64");
}
