/* Atomic operations and reductions, fences, cache policies. */
#include <stdio.h>
#include <string.h>

#include "target/ptx/put.h"

tk_ptx_name tk_ptx_guard(tk_ptx *x, const tk_kop *op, int operand) {
    tk_ptx_name text = {""};
    if (!tk_ptx_has(op, operand)) return text;
    tk_ptx_name condition = tk_ptx_named(x, op, operand);
    snprintf(text.text, sizeof text.text, "@%.20s ", condition.text);
    return text;
}

tk_ptx_name tk_ptx_policy(tk_ptx *x, const tk_kop *op, int operand) {
    tk_ptx_name text = {""};
    if (!tk_ptx_has(op, operand)) return text;
    tk_ptx_name policy = tk_ptx_named(x, op, operand);
    snprintf(text.text, sizeof text.text, ", %.20s", policy.text);
    return text;
}

const char *tk_ptx_hint(const tk_kop *op, int operand) {
    return tk_ptx_has(op, operand) ? ".L2::cache_hint" : "";
}

void tk_ptx_need_sm90(tk_ptx *x, const tk_kop *op) {
    if (x->arch < 90) tk_ptx_fail(x, op, "before sm_90");
}

const char *tk_ptx_scope(const tk_kop *op) {
    static const char *const scopes[] = {"", ".cta", ".cluster", ".gpu", ".sys"};
    return scopes[tk_kop_attr(op, TK_KA_scope)];
}

/* ---- updates ---- */

typedef struct form {
    uint8_t scalar;
    bool atom, bulk; /* where it exists */
    const char *text;
} form;

/* By place in the words of the attribute: add smin smax umin umax min max and or xor exchange
 * compare inc dec. */
static const form forms[][7] = {
    {{TK_K_I32, true, true, "add.u32"},
     {TK_K_I64, true, true, "add.u64"},
     {TK_K_F32, true, true, "add.f32"},
     {TK_K_F64, true, true, "add.f64"},
     {TK_K_F16, true, true, "add.noftz.f16"},
     {TK_K_BF16, true, true, "add.noftz.bf16"}},
    {{TK_K_I32, true, true, "min.s32"}, {TK_K_I64, true, true, "min.s64"}},
    {{TK_K_I32, true, true, "max.s32"}, {TK_K_I64, true, true, "max.s64"}},
    {{TK_K_I32, true, true, "min.u32"}, {TK_K_I64, true, true, "min.u64"}},
    {{TK_K_I32, true, true, "max.u32"}, {TK_K_I64, true, true, "max.u64"}},
    {{TK_K_F16, false, true, "min.f16"}, {TK_K_BF16, false, true, "min.bf16"}},
    {{TK_K_F16, false, true, "max.f16"}, {TK_K_BF16, false, true, "max.bf16"}},
    {{TK_K_I32, true, true, "and.b32"}, {TK_K_I64, true, true, "and.b64"}},
    {{TK_K_I32, true, true, "or.b32"}, {TK_K_I64, true, true, "or.b64"}},
    {{TK_K_I32, true, true, "xor.b32"}, {TK_K_I64, true, true, "xor.b64"}},
    {{TK_K_I32, true, false, "exch.b32"},
     {TK_K_I64, true, false, "exch.b64"},
     {TK_K_F32, true, false, "exch.b32"},
     {TK_K_F64, true, false, "exch.b64"}},
    {{TK_K_I16, true, false, "cas.b16"},
     {TK_K_I32, true, false, "cas.b32"},
     {TK_K_I64, true, false, "cas.b64"}},
    {{TK_K_I32, true, true, "inc.u32"}},
    {{TK_K_I32, true, true, "dec.u32"}},
};

const char *tk_ptx_update(int update, tk_kscalar scalar, bool bulk) {
    for (int i = 0; i < 7 && forms[update][i].text; i++) {
        const form *f = &forms[update][i];
        if (f->scalar == scalar && (bulk ? f->bulk : f->atom)) return f->text;
    }
    return NULL;
}

static int update_of(const tk_kop *op) { return (int)tk_kop_attr(op, TK_KA_update); }

static const char *check_update(tk_ptx *x, const tk_kop *op) {
    tk_ktype type = op->operands[1]->type;
    unsigned space = op->operands[0]->type.space;
    const char *text = tk_ptx_update(update_of(op), (tk_kscalar)type.scalar, false);
    if (!text) tk_ptx_fail(x, op, "of %s", tk_kscalar_text((tk_kscalar)type.scalar));
    if (space != TK_KS_GLOBAL && space != TK_KS_SHARED && space != TK_KS_CLUSTER)
        tk_ptx_fail(x, op, "in %s memory", tk_kspace_text((tk_kspace)space));
    if (type.scalar == TK_K_BF16 || space == TK_KS_CLUSTER || !strcmp(tk_ptx_scope(op), ".cluster"))
        tk_ptx_need_sm90(x, op);
    return text ? text : "";
}

/* ".acq_rel.gpu.global" */
static const char *const spaces[] = {".global", "", ".shared", ".shared::cluster", ""};
static const char *const orders[] = {"", ".relaxed", ".acquire", ".release", ".acq_rel"};

static void put_atom(tk_ptx *x, const tk_kop *op, const char *to, int condition, int policy) {
    enum { EXPECTED = 2 };
    const char *update = check_update(x, op);
    bool compares = op->code == TK_KOP_atomic && tk_ptx_has(op, EXPECTED);
    tk_ptx_name expected = {""}, at = tk_ptx_named(x, op, 0), value = tk_ptx_named(x, op, 1);
    size_t length = strcspn(update, ".");
    if (compares) {
        tk_ptx_name given = tk_ptx_named(x, op, EXPECTED);
        snprintf(expected.text, sizeof expected.text, "%.24s, ", given.text);
    }
    tk_ptx_line(x, "%satom%s%s%s.%.*s%s%s%s %s, [%s], %s%s%s", tk_ptx_guard(x, op, condition).text,
                orders[tk_kop_attr(op, TK_KA_order)], tk_ptx_scope(op),
                spaces[op->operands[0]->type.space], (int)length, update,
                strstr(update, ".noftz") ? ".noftz" : "", tk_ptx_hint(op, policy),
                strrchr(update, '.') ? strrchr(update, '.') : "", to, at.text, expected.text,
                value.text, tk_ptx_policy(x, op, policy).text);
}

void tk_ptx_put_atomic(tk_ptx *x, const tk_kop *op) {
    enum { CONDITION = 3, POLICY };
    tk_ptx_name to = tk_ptx_result(x, op, 0);
    tk_ktype type = op->results[0]->type;
    if (tk_ptx_has(op, CONDITION))
        tk_ptx_line(x, "mov%s %s, %s", tk_ptx_suffix(type, 'b'), to.text,
                    type.scalar == TK_K_F32   ? "0f00000000"
                    : type.scalar == TK_K_F64 ? "0d0000000000000000"
                                              : "0");
    put_atom(x, op, to.text, CONDITION, POLICY);
}

/* ---- reductions ---- */

/* Vectors of floats in global memory, with sm_90. */
static void put_vector(tk_ptx *x, const tk_kop *op) {
    enum { CONDITION = 2, POLICY };
    tk_ktype type = op->operands[1]->type;
    int update = update_of(op);
    static const char *const words[] = {[0] = "add", [5] = "min", [6] = "max"};
    bool narrow = type.scalar == TK_K_F16 || type.scalar == TK_K_BF16,
         known = update == 0 || update == 5 || update == 6;
    tk_ptx_need_sm90(x, op);
    if (!known || op->operands[0]->type.space != TK_KS_GLOBAL ||
        !(narrow || (type.scalar == TK_K_F32 && update == 0))) {
        tk_ptx_fail(x, op, "of vectors of %s", tk_kscalar_text((tk_kscalar)type.scalar));
        return;
    }
    tk_strbuf list = {0};
    for (int i = 0; i < type.lanes; i++)
        tk_strbuf_printf(&list, "%s%s", i ? ", " : "", tk_ptx_operand(x, op->operands[1], i).text);
    tk_ptx_line(x, "%sred%s%s.global.%s%s%s.v%d.%s [%s], {%s}%s",
                tk_ptx_guard(x, op, CONDITION).text, orders[tk_kop_attr(op, TK_KA_order)],
                tk_ptx_scope(op), words[update], narrow ? ".noftz" : "", tk_ptx_hint(op, POLICY),
                type.lanes, tk_kscalar_text((tk_kscalar)type.scalar), tk_ptx_named(x, op, 0).text,
                list.text ? list.text : "", tk_ptx_policy(x, op, POLICY).text);
    tk_strbuf_deinit(&list);
}

/* A reduction that acquires is an atomic operation whose value nobody takes. */
void tk_ptx_put_reduce(tk_ptx *x, const tk_kop *op) {
    enum { CONDITION = 2, POLICY, RELAXED = 1 };
    tk_ktype type = op->operands[1]->type;
    if (type.lanes > 1)
        put_vector(x, op);
    else
        put_atom(x, op, tk_ptx_spare(x, tk_ptx_class_of(type)).text, CONDITION, POLICY);
}

/* ---- fences ---- */

void tk_ptx_put_fence(tk_ptx *x, const tk_kop *op) {
    enum { CLUSTER = 2 };
    if (tk_kop_attr(op, TK_KA_scope) == CLUSTER) tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "fence.%s%s", tk_kop_attr(op, TK_KA_fence) ? "sc" : "acq_rel", tk_ptx_scope(op));
}

/* ---- caches ---- */

void tk_ptx_put_cache_policy(tk_ptx *x, const tk_kop *op) {
    static const char *const words[] = {"evict_normal", "evict_first", "evict_last",
                                        "evict_unchanged", NULL};
    const char *word = words[tk_kop_attr(op, TK_KA_evict)];
    if (!word) tk_ptx_fail(x, op, "no_allocate is of L1, a policy of L2");
    tk_ptx_line(x, "createpolicy.fractional.L2::%s.b64 %s, 0f3f800000",
                word ? word : "evict_normal", tk_ptx_result(x, op, 0).text);
}
