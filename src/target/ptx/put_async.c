/* cp.async, bulk copies and TMA. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "target/ptx/put.h"

static unsigned space_of(const tk_kop *op, int operand) {
    return op->operands[operand]->type.space;
}

static void need_near(tk_ptx *x, const tk_kop *op, int operand) {
    if (space_of(op, operand) != TK_KS_SHARED)
        tk_ptx_fail(x, op, "with shared memory of another block");
}

/* ---- cp.async ---- */

void tk_ptx_put_cp_async(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, SOURCE, SIZE, CONDITION, POLICY, CA = 0, CG = 1 };
    static const char *const fetches[] = {"", ".L2::64B", ".L2::128B", ".L2::256B"};
    int64_t bytes = tk_kop_attr(op, TK_KA_bytes), cache = tk_kop_attr(op, TK_KA_cache);
    tk_ptx_name size = {""};
    need_near(x, op, TARGET);
    if (cache > CG || (cache == CG && bytes != 16))
        tk_ptx_fail(x, op, "with this cache: ca, or cg of 16 bytes");
    if (tk_ptx_has(op, SIZE)) {
        tk_ptx_name given = tk_ptx_named(x, op, SIZE);
        snprintf(size.text, sizeof size.text, ", %.24s", given.text);
    }
    tk_ptx_line(x, "%scp.async.%s.shared.global%s%s [%s], [%s], %" PRId64 "%s%s",
                tk_ptx_guard(x, op, CONDITION).text, cache == CG ? "cg" : "ca",
                tk_ptx_hint(op, POLICY), fetches[tk_kop_attr(op, TK_KA_prefetch)],
                tk_ptx_named(x, op, TARGET).text, tk_ptx_named(x, op, SOURCE).text, bytes,
                size.text, tk_ptx_policy(x, op, POLICY).text);
}

void tk_ptx_put_cp_async_arrive(tk_ptx *x, const tk_kop *op) {
    need_near(x, op, 0);
    tk_ptx_line(x, "cp.async.mbarrier.arrive%s.shared.b64 [%s]",
                tk_kop_attr(op, TK_KA_arriving) ? ".noinc" : "", tk_ptx_named(x, op, 0).text);
}

/* ---- bulk copies ---- */

/* ", %h3" for a set of blocks, which has 16 bits. */
static tk_ptx_name put_blocks(tk_ptx *x, const tk_kop *op, int operand) {
    tk_ptx_name text = {""};
    if (!tk_ptx_has(op, operand)) return text;
    tk_ptx_name blocks = tk_ptx_spare(x, TK_PTX_H);
    tk_ptx_name given = tk_ptx_named(x, op, operand), word = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "mov.b32 %s, %s", word.text, given.text);
    tk_ptx_line(x, "cvt.u16.u32 %s, %s", blocks.text, word.text);
    snprintf(text.text, sizeof text.text, ", %.24s", blocks.text);
    return text;
}

static const char *multicast_of(const tk_kop *op, int operand) {
    return tk_ptx_has(op, operand) ? ".multicast::cluster" : "";
}

void tk_ptx_put_bulk_load(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, BARRIER, MULTICAST, POLICY };
    tk_ptx_need_sm90(x, op);
    tk_ptx_name blocks = put_blocks(x, op, MULTICAST);
    tk_ptx_line(x,
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes%s%s [%s], [%s], "
                "%s, [%s]%s%s",
                multicast_of(op, MULTICAST), tk_ptx_hint(op, POLICY),
                tk_ptx_named(x, op, TARGET).text, tk_ptx_named(x, op, SOURCE).text,
                tk_ptx_named(x, op, BYTES).text, tk_ptx_named(x, op, BARRIER).text, blocks.text,
                tk_ptx_policy(x, op, POLICY).text);
}

void tk_ptx_put_bulk_store(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, POLICY };
    tk_ptx_need_sm90(x, op);
    need_near(x, op, SOURCE);
    tk_ptx_line(x, "cp.async.bulk.global.shared::cta.bulk_group%s [%s], [%s], %s%s",
                tk_ptx_hint(op, POLICY), tk_ptx_named(x, op, TARGET).text,
                tk_ptx_named(x, op, SOURCE).text, tk_ptx_named(x, op, BYTES).text,
                tk_ptx_policy(x, op, POLICY).text);
}

void tk_ptx_put_bulk_send(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, BARRIER };
    tk_ptx_need_sm90(x, op);
    need_near(x, op, SOURCE);
    tk_ptx_line(
        x,
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%s], [%s], "
        "%s, [%s]",
        tk_ptx_named(x, op, TARGET).text, tk_ptx_named(x, op, SOURCE).text,
        tk_ptx_named(x, op, BYTES).text, tk_ptx_named(x, op, BARRIER).text);
}

void tk_ptx_put_store_async(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, VALUE, BARRIER };
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.%s [%s], %s, [%s]",
                tk_ktype_bytes(op->operands[VALUE]->type) == 8 ? "b64" : "b32",
                tk_ptx_named(x, op, TARGET).text, tk_ptx_named(x, op, VALUE).text,
                tk_ptx_named(x, op, BARRIER).text);
}

static const char *bulk_update(tk_ptx *x, const tk_kop *op, tk_kscalar scalar) {
    const char *text = tk_ptx_update((int)tk_kop_attr(op, TK_KA_update), scalar, true);
    if (!text) tk_ptx_fail(x, op, "of %s", tk_kscalar_text(scalar));
    return text ? text : "";
}

void tk_ptx_put_bulk_reduce(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, POLICY };
    tk_ptx_need_sm90(x, op);
    need_near(x, op, SOURCE);
    tk_ptx_line(x, "cp.reduce.async.bulk.global.shared::cta.bulk_group%s.%s [%s], [%s], %s%s",
                tk_ptx_hint(op, POLICY),
                bulk_update(x, op, (tk_kscalar)op->operands[TARGET]->type.scalar),
                tk_ptx_named(x, op, TARGET).text, tk_ptx_named(x, op, SOURCE).text,
                tk_ptx_named(x, op, BYTES).text, tk_ptx_policy(x, op, POLICY).text);
}

void tk_ptx_put_bulk_prefetch(tk_ptx *x, const tk_kop *op) {
    enum { SOURCE, BYTES, POLICY };
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "cp.async.bulk.prefetch.L2.global%s [%s], %s%s", tk_ptx_hint(op, POLICY),
                tk_ptx_named(x, op, SOURCE).text, tk_ptx_named(x, op, BYTES).text,
                tk_ptx_policy(x, op, POLICY).text);
}

void tk_ptx_put_bulk_commit(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "cp.async.bulk.commit_group");
}

void tk_ptx_put_bulk_wait(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "cp.async.bulk.wait_group%s %" PRId64,
                tk_kop_attr(op, TK_KA_read) ? ".read" : "", tk_kop_attr(op, TK_KA_groups));
}

/* ---- TMA ---- */

static int rank_of(const tk_kop *op) {
    bool variadic;
    return (int)op->n_operands - tk_kop_row_slots(tk_kop_row_of(op->code), &variadic);
}

/* "[%q1, {%r1, %r2}]" */
static void put_box(tk_ptx *x, const tk_kop *op, int map, tk_strbuf *out) {
    int rank = rank_of(op);
    tk_strbuf_printf(out, "[%s, {", tk_ptx_named(x, op, map).text);
    for (int i = 0; i < rank; i++)
        tk_strbuf_printf(out, "%s%s", i ? ", " : "",
                         tk_ptx_named(x, op, (int)op->n_operands - rank + i).text);
    tk_strbuf_puts(out, "}]");
}

static void need_tile(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    if (tk_kop_attr(op, TK_KA_load)) tk_ptx_fail(x, op, "in im2col form, which needs offsets");
}

static const char *text_of(const tk_strbuf *text) { return text->text ? text->text : ""; }

void tk_ptx_put_tma_load(tk_ptx *x, const tk_kop *op) {
    enum { TARGET, MAP, BARRIER, MULTICAST, POLICY };
    tk_strbuf box = {0};
    need_tile(x, op);
    put_box(x, op, MAP, &box);
    tk_ptx_name blocks = put_blocks(x, op, MULTICAST);
    tk_ptx_line(x,
                "cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                "%s%s [%s], %s, [%s]%s%s",
                rank_of(op), multicast_of(op, MULTICAST), tk_ptx_hint(op, POLICY),
                tk_ptx_named(x, op, TARGET).text, text_of(&box), tk_ptx_named(x, op, BARRIER).text,
                blocks.text, tk_ptx_policy(x, op, POLICY).text);
    tk_strbuf_deinit(&box);
}

static void put_store(tk_ptx *x, const tk_kop *op, const char *what, const char *update) {
    enum { MAP, SOURCE, POLICY };
    tk_strbuf box = {0};
    need_tile(x, op);
    need_near(x, op, SOURCE);
    put_box(x, op, MAP, &box);
    tk_ptx_line(x, "%s.bulk.tensor.%dd.global.shared::cta%s.tile.bulk_group%s %s, [%s]%s", what,
                rank_of(op), update, tk_ptx_hint(op, POLICY), text_of(&box),
                tk_ptx_named(x, op, SOURCE).text, tk_ptx_policy(x, op, POLICY).text);
    tk_strbuf_deinit(&box);
}

void tk_ptx_put_tma_store(tk_ptx *x, const tk_kop *op) { put_store(x, op, "cp.async", ""); }

/* The map has the type; whether it goes with the update is seen there. */
void tk_ptx_put_tma_reduce(tk_ptx *x, const tk_kop *op) {
    static const char *const words[] = {".add", ".min", ".max", ".min", ".max", ".min", ".max",
                                        ".and", ".or",  ".xor", NULL,   NULL,   ".inc", ".dec"};
    const char *word = words[tk_kop_attr(op, TK_KA_update)];
    if (!word) tk_ptx_fail(x, op, "that exchanges or compares");
    put_store(x, op, "cp.reduce.async", word ? word : "");
}

void tk_ptx_put_tma_prefetch(tk_ptx *x, const tk_kop *op) {
    enum { MAP, POLICY };
    tk_strbuf box = {0};
    need_tile(x, op);
    put_box(x, op, MAP, &box);
    tk_ptx_line(x, "cp.async.bulk.prefetch.tensor.%dd.L2.global.tile%s %s%s", rank_of(op),
                tk_ptx_hint(op, POLICY), text_of(&box), tk_ptx_policy(x, op, POLICY).text);
    tk_strbuf_deinit(&box);
}

/* ---- tensor maps ---- */

void tk_ptx_put_map_prefetch(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    tk_ptx_line(x, "prefetch.tensormap [%s]", tk_ptx_named(x, op, 0).text);
}

/* By place in the words of the attribute. */
static const tk_ptx_map_field map_fields[] = {
    {"global_address", 64, false, false}, {"rank", 32, false, false},
    {"box_dim", 32, true, false},         {"global_dim", 32, true, false},
    {"global_stride", 64, true, false},   {"element_stride", 32, true, false},
    {"elemtype", 32, false, true},        {"interleave_layout", 32, false, true},
    {"swizzle_mode", 32, false, true},    {"fill_mode", 32, false, true},
};

const tk_ptx_map_field *tk_ptx_map_field_of(const tk_kop *op) {
    return &map_fields[tk_kop_attr(op, TK_KA_field)];
}

void tk_ptx_put_map_replace(tk_ptx *x, const tk_kop *op) {
    const tk_ptx_map_field *field = tk_ptx_map_field_of(op);
    const tk_kvalue *value = op->operands[1];
    int64_t constant;
    char index[24] = "";
    if (!x->arch_specific) tk_ptx_fail(x, op, "but for sm_90a");
    if (field->constant && !tk_kvalue_integer(value, &constant))
        tk_ptx_fail(x, op, "with a value of %s that is no constant", field->name);
    if (tk_ktype_bytes(value->type) * 8 != field->bits)
        tk_ptx_fail(x, op, "with a value of %s that has no %d bits", field->name, field->bits);
    if (field->indexed)
        snprintf(index, sizeof index, "%" PRId64 ", ", tk_kop_attr(op, TK_KA_index));
    tk_ptx_line(x, "tensormap.replace.tile.%s%s.b1024.b%d [%s], %s%s", field->name,
                op->operands[0]->type.space == TK_KS_SHARED ? ".shared::cta" : ".global",
                field->bits, tk_ptx_named(x, op, 0).text, index, tk_ptx_named(x, op, 1).text);
}

void tk_ptx_put_map_publish(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    if (!tk_kop_attr(op, TK_KA_scope)) tk_ptx_fail(x, op, "without a scope");
    tk_ptx_line(
        x,
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release%s.sync.aligned"
        " [%s], [%s], 128",
        tk_ptx_scope(op), tk_ptx_named(x, op, 0).text, tk_ptx_named(x, op, 1).text);
}

void tk_ptx_put_map_acquire(tk_ptx *x, const tk_kop *op) {
    tk_ptx_need_sm90(x, op);
    if (!tk_kop_attr(op, TK_KA_scope)) tk_ptx_fail(x, op, "without a scope");
    tk_ptx_line(x, "fence.proxy.tensormap::generic.acquire%s [%s], 128", tk_ptx_scope(op),
                tk_ptx_named(x, op, 0).text);
}
