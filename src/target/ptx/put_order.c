/* Barriers and what lanes of a warp do together. */
#include <inttypes.h>
#include <stdio.h>

#include "target/ptx/put.h"

static const char *mask_of(tk_ptx *x, const tk_kop *op, int operand, tk_ptx_name *name) {
    if (!op->operands[operand]) return "0xffffffff";
    *name = tk_ptx_operand(x, op->operands[operand], 0);
    return name->text;
}

void tk_ptx_put_barrier(tk_ptx *x, const tk_kop *op) {
    int64_t id = tk_kop_attr(op, TK_KA_id), threads = tk_kop_attr(op, TK_KA_threads);
    const char *what = op->code == TK_KOP_barrier ? "sync" : "arrive";
    if (threads)
        tk_ptx_line(x, "barrier.%s.aligned %" PRId64 ", %" PRId64, what, id, threads);
    else
        tk_ptx_line(x, "barrier.%s.aligned %" PRId64, what, id);
}

void tk_ptx_put_warp_barrier(tk_ptx *x, const tk_kop *op) {
    tk_ptx_name name;
    tk_ptx_line(x, "bar.warp.sync %s", mask_of(x, op, 0, &name));
}

void tk_ptx_put_proxy_fence(tk_ptx *x, const tk_kop *op) {
    static const char *const proxies[] = {"async", "async.global", "async.shared::cta", "alias"};
    int64_t proxy = tk_kop_attr(op, TK_KA_proxy);
    if (x->arch < 90 && proxy < 3) tk_ptx_fail(x, op, "before sm_90");
    tk_ptx_line(x, "fence.proxy.%s", proxies[proxy]);
}

/* ---- shuffles: 32 bits at a time ---- */

typedef struct way {
    const char *mode;
    char clamp[12];
    tk_ptx_name lane, mask_name;
    const char *mask;
} way;

static void shuffle_word(tk_ptx *x, const way *w, const char *to, const char *from) {
    tk_ptx_line(x, "shfl.sync.%s.b32 %s, %s, %s, %s, %s", w->mode, to, from, w->lane.text, w->clamp,
                w->mask);
}

static void shuffle_half(tk_ptx *x, const way *w, const char *to, const char *from) {
    tk_ptx_name word = tk_ptx_spare(x, TK_PTX_R), high = tk_ptx_spare(x, TK_PTX_H);
    tk_ptx_line(x, "mov.b32 %s, {%s, %s}", word.text, from, from);
    shuffle_word(x, w, word.text, word.text);
    tk_ptx_line(x, "mov.b32 {%s, %s}, %s", to, high.text, word.text);
}

static void shuffle_pair(tk_ptx *x, const way *w, const char *to, const char *from) {
    tk_ptx_name low = tk_ptx_spare(x, TK_PTX_R), high = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "mov.b64 {%s, %s}, %s", low.text, high.text, from);
    shuffle_word(x, w, low.text, low.text);
    shuffle_word(x, w, high.text, high.text);
    tk_ptx_line(x, "mov.b64 %s, {%s, %s}", to, low.text, high.text);
}

void tk_ptx_put_shuffle(tk_ptx *x, const tk_kop *op) {
    static const char *const modes[] = {"idx", "up", "down", "bfly"};
    int64_t mode = tk_kop_attr(op, TK_KA_mode), width = tk_kop_attr(op, TK_KA_width);
    way w = {.mode = modes[mode], .lane = tk_ptx_operand(x, op->operands[1], 0)};
    snprintf(w.clamp, sizeof w.clamp, "%" PRId64, (32 - width) << 8 | (mode == 1 ? 0 : 31));
    w.mask = mask_of(x, op, 2, &w.mask_name);
    int bytes = tk_ktype_bytes(op->operands[0]->type) / op->operands[0]->type.lanes;
    for (int i = 0; i < op->operands[0]->type.lanes; i++) {
        tk_ptx_name to = tk_ptx_result(x, op, i), from = tk_ptx_operand(x, op->operands[0], i);
        (bytes == 2   ? shuffle_half
         : bytes == 8 ? shuffle_pair
                      : shuffle_word)(x, &w, to.text, from.text);
    }
}

void tk_ptx_put_vote(tk_ptx *x, const tk_kop *op) {
    static const char *const votes[] = {"all.pred", "any.pred", "uni.pred"};
    tk_ptx_name name;
    const char *what =
        op->code == TK_KOP_ballot ? "ballot.b32" : votes[tk_kop_attr(op, TK_KA_vote)];
    tk_ptx_line(x, "vote.sync.%s %s, %s, %s", what, tk_ptx_result(x, op, 0).text,
                tk_ptx_operand(x, op->operands[0], 0).text, mask_of(x, op, 1, &name));
}

/* ---- clusters, registers, grids ---- */

void tk_ptx_put_cluster_arrive(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "barrier.cluster.arrive.%s.aligned",
                tk_kop_attr(op, TK_KA_relaxed) ? "relaxed" : "release");
}

void tk_ptx_put_cluster_wait(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "barrier.cluster.wait.acquire.aligned");
}

void tk_ptx_put_peer(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "mapa.shared::cluster.u32 %s, %s, %s", tk_ptx_result(x, op, 0).text,
                tk_ptx_named(x, op, 0).text, tk_ptx_named(x, op, 1).text);
}

void tk_ptx_put_cluster_place(tk_ptx *x, const tk_kop *op) {
    static const char axes[] = "xyz";
    const char *what = op->code == TK_KOP_cluster_index   ? "clusterid"
                       : op->code == TK_KOP_cluster_block ? "cluster_ctaid"
                                                          : "cluster_nctaid";
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "mov.u32 %s, %%%s.%c", tk_ptx_result(x, op, 0).text, what,
                axes[tk_kop_attr(op, TK_KA_axis)]);
}

/* Before sm_90 a launch never begins before the one before it has ended. */
void tk_ptx_put_grid(tk_ptx *x, const tk_kop *op) {
    if (x->arch < 90) return;
    tk_ptx_line(x, "griddepcontrol.%s",
                op->code == TK_KOP_grid_wait ? "wait" : "launch_dependents");
}

/* ---- lanes ---- */

void tk_ptx_put_match(tk_ptx *x, const tk_kop *op) {
    tk_ptx_name name, value = tk_ptx_named(x, op, 0);
    bool wide = tk_ktype_bytes(op->operands[0]->type) == 8;
    tk_ptx_line(x, "match.%s.sync.b%d %s, %s, %s", tk_kop_attr(op, TK_KA_match) ? "all" : "any",
                wide ? 64 : 32, tk_ptx_result(x, op, 0).text, value.text, mask_of(x, op, 1, &name));
}

void tk_ptx_put_warp_reduce(tk_ptx *x, const tk_kop *op) {
    static const char *const forms[] = {"add.u32", "min.s32", "max.s32", "min.u32", "max.u32",
                                        NULL,      NULL,      "and.b32", "or.b32",  "xor.b32"};
    const char *form = forms[tk_kop_attr(op, TK_KA_reduce)];
    tk_ptx_name name;
    if (!form) tk_ptx_fail(x, op, "of floats");
    tk_ptx_line(x, "redux.sync.%s %s, %s, %s", form ? form : "add.u32",
                tk_ptx_result(x, op, 0).text, tk_ptx_named(x, op, 0).text,
                mask_of(x, op, 1, &name));
}

/* Before sm_90: whether the lane's bit is the lowest of the mask. */
static void elect_lowest(tk_ptx *x, const tk_kop *op, const char *mask) {
    tk_ptx_name own = tk_ptx_spare(x, TK_PTX_R), low = tk_ptx_spare(x, TK_PTX_R),
                all = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "mov.u32 %s, %%lanemask_eq", own.text);
    tk_ptx_line(x, "mov.u32 %s, %s", all.text, mask);
    tk_ptx_line(x, "neg.s32 %s, %s", low.text, all.text);
    tk_ptx_line(x, "and.b32 %s, %s, %s", low.text, low.text, all.text);
    tk_ptx_line(x, "setp.eq.b32 %s, %s, %s", tk_ptx_result(x, op, 0).text, own.text, low.text);
}

void tk_ptx_put_elect(tk_ptx *x, const tk_kop *op) {
    tk_ptx_name name;
    const char *mask = mask_of(x, op, 0, &name);
    if (x->arch < 90)
        elect_lowest(x, op, mask);
    else
        tk_ptx_line(x, "elect.sync _|%s, %s", tk_ptx_result(x, op, 0).text, mask);
}

/* ---- raw instructions ---- */

/* $0, $1 and so on are the results, then the operands. */
void tk_ptx_put_raw(tk_ptx *x, const tk_kop *op) {
    const char *text = tk_kop_text(x->kernel, op, TK_KA_text);
    tk_strbuf line = {0};
    while (*text) {
        if (*text != '$' || text[1] < '0' || text[1] > '9') {
            tk_strbuf_putc(&line, *text++);
            continue;
        }
        unsigned number = 0;
        for (text++; *text >= '0' && *text <= '9' && number < 1000; text++)
            number = 10 * number + (unsigned)(*text - '0');
        bool result = number < op->n_results;
        if (!result && number - op->n_results >= op->n_operands) {
            tk_ptx_fail(x, op, "$%u, of %u values", number, op->n_results + op->n_operands);
            break;
        }
        const tk_kvalue *value =
            result ? op->results[number] : op->operands[number - op->n_results];
        tk_strbuf_puts(&line, tk_ptx_operand(x, value, 0).text);
    }
    tk_ptx_line(x, "%s", line.text ? line.text : "");
    tk_strbuf_deinit(&line);
}
