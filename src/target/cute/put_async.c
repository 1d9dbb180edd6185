/* Asynchronous copies: cp.async, bulk copies, TMA, tensor maps.
 *
 * Predicated ones stand inside of scf.if. A multicast is written in the generic form, because the
 * pretty one has no place for its type. What the dialects lack is an instruction as text: cp.async
 * with a policy or a prefetch, copies to and signals of other blocks, updates of runs of bytes and
 * of tensor maps. */
#include <inttypes.h>
#include <string.h>

#include "target/cute/put.h"
#include "target/ptx/put.h"

bool tk_cute_open_if(tk_cute *x, const tk_kop *op, int index) {
    if (!op->operands[index]) return false;
    tk_cute_line(x, "scf.if %s {", tk_cute_operand(x, op, index));
    tk_cute_open(x);
    return true;
}

void tk_cute_close_if(tk_cute *x, bool opened) {
    if (!opened) return;
    tk_cute_close(x);
    tk_cute_line(x, "}");
}

static void put_op_insn(tk_cute *x, const tk_kop *op, const char *text, int count,
                        const int *operands) {
    tk_cute_value values[8];
    for (int i = 0; i < count; i++) values[i] = tk_cute_in_register(x, op->operands[operands[i]]);
    tk_cute_insn(x, text, count, values);
}

static bool has(const tk_kop *op, int index) { return op->operands[index] != NULL; }

/* " l2_cache_hint = %policy" or "". */
static const char *hint_of(tk_cute *x, const tk_kop *op, int index) {
    if (!has(op, index)) return "";
    return tk_cute_text(x, " l2_cache_hint = %s", tk_cute_operand(x, op, index));
}

/* ---- cp.async ---- */

static void put_cp_async_text(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, SIZE, CONDITION, POLICY, CG = 1 };
    static const char *const fetches[] = {"", ".L2::64B", ".L2::128B", ".L2::256B"};
    int operands[4] = {TARGET, SOURCE}, count = 2;
    const char *size = "", *policy = "";
    if (has(op, SIZE)) operands[count] = SIZE, size = tk_cute_text(x, ", $%d", count++);
    if (has(op, POLICY)) operands[count] = POLICY, policy = tk_cute_text(x, ", $%d", count++);
    put_op_insn(x, op,
                tk_cute_text(x, "cp.async.%s.shared.global%s%s [$0], [$1], %" PRId64 "%s%s;",
                             tk_kop_attr(op, TK_KA_cache) == CG ? "cg" : "ca",
                             tk_ptx_hint(op, POLICY), fetches[tk_kop_attr(op, TK_KA_prefetch)],
                             tk_kop_attr(op, TK_KA_bytes), size, policy),
                count, operands);
}

void tk_cute_put_cp_async(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, SIZE, CONDITION, POLICY, CG = 1 };
    int64_t cache = tk_kop_attr(op, TK_KA_cache);
    if (cache > CG || tk_cute_is_far(op, TARGET) ||
        (cache == CG && tk_kop_attr(op, TK_KA_bytes) != 16)) {
        tk_cute_fail(x, op, "but to the own block, by ca or by cg of 16 bytes");
        return;
    }
    const char *size = has(op, SIZE) ? tk_cute_text(x, ", %s", tk_cute_operand(x, op, SIZE)) : "";
    bool opened = tk_cute_open_if(x, op, CONDITION);
    if (has(op, POLICY) || tk_kop_attr(op, TK_KA_prefetch))
        put_cp_async_text(x, op);
    else
        tk_cute_line(x, "nvvm.cp.async.shared.global %s, %s, %" PRId64 ", cache = %s%s : %s, %s%s",
                     tk_cute_operand(x, op, TARGET), tk_cute_operand(x, op, SOURCE),
                     tk_kop_attr(op, TK_KA_bytes), cache == CG ? "cg" : "ca", size,
                     tk_cute_pointer_type(x, op, TARGET), tk_cute_pointer_type(x, op, SOURCE),
                     *size ? ", i32" : "");
    tk_cute_close_if(x, opened);
}

void tk_cute_put_cp_async_group(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_cp_async_commit)
        tk_cute_line(x, "nvvm.cp.async.commit.group");
    else
        tk_cute_line(x, "nvvm.cp.async.wait.group %" PRId64, tk_kop_attr(op, TK_KA_groups));
}

void tk_cute_put_cp_async_arrive(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.cp.async.mbarrier.arrive %s%s : %s", tk_cute_operand(x, op, 0),
                 tk_kop_attr(op, TK_KA_arriving) ? " {noinc = true}" : "",
                 tk_cute_pointer_type(x, op, 0));
}

/* ---- bulk copies ---- */

void tk_cute_put_bulk_group(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_bulk_commit)
        tk_cute_line(x, "nvvm.cp.async.bulk.commit.group");
    else
        tk_cute_line(x, "nvvm.cp.async.bulk.wait_group %" PRId64 "%s",
                     tk_kop_attr(op, TK_KA_groups), tk_kop_attr(op, TK_KA_read) ? " {read}" : "");
}

/* The destination as memory of the cluster, which the dialect asks for. */
static const char *as_cluster(tk_cute *x, const tk_kop *op, int index) {
    if (tk_cute_is_far(op, index)) return tk_cute_operand(x, op, index);
    return tk_cute_let(x, "llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr<7>",
                       tk_cute_operand(x, op, index));
}

/* The set of blocks has 16 bits. */
static const char *blocks_of(tk_cute *x, const tk_kop *op, int index) {
    return tk_cute_let(x, "arith.trunci %s : i32 to i16", tk_cute_operand(x, op, index));
}

/* ", %policy" and ", i64" behind the other operands. */
static const char *more_if(tk_cute *x, const tk_kop *op, int index, const char **out_type) {
    *out_type = has(op, index) ? ", i64" : "";
    return has(op, index) ? tk_cute_text(x, ", %s", tk_cute_operand(x, op, index)) : "";
}

/* To another block, whose barrier is told. */
static void put_far_load(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, BARRIER, MULTICAST, POLICY };
    static const int operands[] = {TARGET, SOURCE, BYTES, BARRIER, POLICY};
    if (has(op, MULTICAST)) tk_cute_fail(x, op, "to several blocks with the mbarrier of another");
    put_op_insn(x, op,
                tk_cute_text(x,
                             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes%s "
                             "[$0], [$1], $2, [$3]%s;",
                             tk_ptx_hint(op, POLICY), has(op, POLICY) ? ", $4" : ""),
                has(op, POLICY) ? 5 : 4, operands);
}

static void put_many_load(tk_cute *x, const tk_kop *op, const char *target) {
    enum { TARGET, SOURCE, BYTES, BARRIER, MULTICAST, POLICY };
    const char *type, *blocks = blocks_of(x, op, MULTICAST),
                      *policy = more_if(x, op, POLICY, &type);
    tk_cute_line(x,
                 "\"nvvm.cp.async.bulk.shared.cluster.global\"(%s, %s, %s, %s, %s%s) "
                 "<{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, %d>}> : (!llvm.ptr<7>, %s, %s, "
                 "i32, i16%s) -> ()",
                 target, tk_cute_operand(x, op, SOURCE), tk_cute_operand(x, op, BARRIER),
                 tk_cute_operand(x, op, BYTES), blocks, policy, has(op, POLICY),
                 tk_cute_pointer_type(x, op, SOURCE), tk_cute_pointer_type(x, op, BARRIER), type);
}

void tk_cute_put_bulk_load(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, BARRIER, MULTICAST, POLICY };
    if (tk_cute_is_far(op, BARRIER)) {
        put_far_load(x, op);
        return;
    }
    const char *target = as_cluster(x, op, TARGET);
    if (has(op, MULTICAST))
        put_many_load(x, op, target);
    else
        tk_cute_line(x,
                     "nvvm.cp.async.bulk.shared.cluster.global %s, %s, %s, %s%s : !llvm.ptr<7>, %s",
                     target, tk_cute_operand(x, op, SOURCE), tk_cute_operand(x, op, BARRIER),
                     tk_cute_operand(x, op, BYTES), hint_of(x, op, POLICY),
                     tk_cute_pointer_type(x, op, SOURCE));
}

void tk_cute_put_bulk_store(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, POLICY };
    tk_cute_line(x, "nvvm.cp.async.bulk.global.shared.cta %s, %s, %s%s : %s, %s",
                 tk_cute_operand(x, op, TARGET), tk_cute_operand(x, op, SOURCE),
                 tk_cute_operand(x, op, BYTES), hint_of(x, op, POLICY),
                 tk_cute_pointer_type(x, op, TARGET), tk_cute_pointer_type(x, op, SOURCE));
}

void tk_cute_put_bulk_send(tk_cute *x, const tk_kop *op) {
    static const int operands[] = {0, 1, 2, 3};
    put_op_insn(x, op,
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], "
                "[$1], $2, [$3];",
                4, operands);
}

void tk_cute_put_store_async(tk_cute *x, const tk_kop *op) {
    static const int operands[] = {0, 1, 2};
    bool wide = tk_ktype_bytes(op->operands[1]->type) == 8;
    put_op_insn(
        x, op,
        tk_cute_text(x,
                     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.%s [$0], $1, "
                     "[$2];",
                     wide ? "b64" : "b32"),
        3, operands);
}

void tk_cute_put_bulk_reduce(tk_cute *x, const tk_kop *op) {
    enum { TARGET, SOURCE, BYTES, POLICY };
    static const int operands[] = {TARGET, SOURCE, BYTES, POLICY};
    tk_kscalar scalar = (tk_kscalar)op->operands[TARGET]->type.scalar;
    const char *update = tk_ptx_update((int)tk_kop_attr(op, TK_KA_update), scalar, true);
    if (!update) tk_cute_fail(x, op, "of %s", tk_kscalar_text(scalar));
    put_op_insn(
        x, op,
        tk_cute_text(x, "cp.reduce.async.bulk.global.shared::cta.bulk_group%s.%s [$0], [$1], $2%s;",
                     tk_ptx_hint(op, POLICY), update ? update : "", has(op, POLICY) ? ", $3" : ""),
        has(op, POLICY) ? 4 : 3, operands);
}

void tk_cute_put_bulk_prefetch(tk_cute *x, const tk_kop *op) {
    enum { SOURCE, BYTES, POLICY };
    tk_cute_line(x, "nvvm.cp.async.bulk.prefetch %s, %s%s : %s", tk_cute_operand(x, op, SOURCE),
                 tk_cute_operand(x, op, BYTES), hint_of(x, op, POLICY),
                 tk_cute_pointer_type(x, op, SOURCE));
}

/* ---- TMA ---- */

static uint32_t first_coordinate(const tk_kop *op) {
    bool variadic;
    return (uint32_t)tk_kop_row_slots(tk_kop_row_of(op->code), &variadic);
}

static uint32_t rank_of(const tk_kop *op) { return op->n_operands - first_coordinate(op); }

/* "%a, %b" */
static const char *coordinates(tk_cute *x, const tk_kop *op) {
    return tk_cute_list(x, rank_of(op), op->operands + first_coordinate(op));
}

static bool refuse_form(tk_cute *x, const tk_kop *op) {
    if (!tk_kop_attr(op, TK_KA_load)) return false;
    tk_cute_fail(x, op, "in im2col form, which needs offsets");
    return true;
}

static void put_many_boxes(tk_cute *x, const tk_kop *op, const char *target) {
    enum { TARGET, MAP, BARRIER, MULTICAST, POLICY };
    const char *type, *blocks = blocks_of(x, op, MULTICAST),
                      *policy = more_if(x, op, POLICY, &type);
    tk_cute_line(x,
                 "\"nvvm.cp.async.bulk.tensor.shared.cluster.global\"(%s, %s, %s, %s, %s%s) "
                 "<{operandSegmentSizes = array<i32: 1, 1, %" PRIu32
                 ", 1, 0, 1, %d, 0>}> : (!llvm.ptr<7>, %s, %s, %s, i16%s) -> ()",
                 target, tk_cute_operand(x, op, MAP), coordinates(x, op),
                 tk_cute_operand(x, op, BARRIER), blocks, policy, rank_of(op), has(op, POLICY),
                 tk_cute_pointer_type(x, op, MAP),
                 tk_cute_types(x, rank_of(op), op->operands + first_coordinate(op)),
                 tk_cute_pointer_type(x, op, BARRIER), type);
}

/* As an address in the generic space, which maps in global memory need. */
static const char *map_of(tk_cute *x, const tk_kop *op, int index) {
    const char *type = tk_cute_pointer_type(x, op, index), *name = tk_cute_operand(x, op, index);
    if (!strcmp(type, "!llvm.ptr")) return name;
    return tk_cute_let(x, "llvm.addrspacecast %s : %s to !llvm.ptr", name, type);
}

void tk_cute_put_tma_load(tk_cute *x, const tk_kop *op) {
    enum { TARGET, MAP, BARRIER, MULTICAST, POLICY };
    if (refuse_form(x, op)) return;
    if (tk_cute_is_far(op, BARRIER)) {
        tk_cute_fail(x, op, "with the mbarrier of another block");
        return;
    }
    const char *target = as_cluster(x, op, TARGET);
    if (has(op, MULTICAST))
        put_many_boxes(x, op, target);
    else
        tk_cute_line(x,
                     "nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %s, %s, box[%s]%s : "
                     "!llvm.ptr<7>, !llvm.ptr",
                     target, map_of(x, op, MAP), tk_cute_operand(x, op, BARRIER),
                     coordinates(x, op), hint_of(x, op, POLICY));
}

void tk_cute_put_tma_store(tk_cute *x, const tk_kop *op) {
    enum { MAP, SOURCE, POLICY };
    if (refuse_form(x, op)) return;
    tk_cute_line(x,
                 "nvvm.cp.async.bulk.tensor.global.shared.cta %s, %s, box[%s]%s : !llvm.ptr, "
                 "!llvm.ptr<3>",
                 map_of(x, op, MAP), tk_cute_operand(x, op, SOURCE), coordinates(x, op),
                 hint_of(x, op, POLICY));
}

/* The map has the type; whether it goes with the update is seen there. */
void tk_cute_put_tma_reduce(tk_cute *x, const tk_kop *op) {
    enum { MAP, SOURCE, POLICY };
    static const char *const words[] = {"add", "min", "max", "min", "max", "min", "max",
                                        "and", "or",  "xor", NULL,  NULL,  "inc", "dec"};
    const char *word = words[tk_kop_attr(op, TK_KA_update)];
    if (refuse_form(x, op)) return;
    if (!word) {
        tk_cute_fail(x, op, "that exchanges or compares");
        return;
    }
    tk_cute_line(x,
                 "nvvm.cp.async.bulk.tensor.reduce %s, %s, box[%s]%s {redKind = "
                 "#nvvm.tma_redux_kind<%s>} : !llvm.ptr, !llvm.ptr<3>",
                 map_of(x, op, MAP), tk_cute_operand(x, op, SOURCE), coordinates(x, op),
                 hint_of(x, op, POLICY), word);
}

void tk_cute_put_tma_prefetch(tk_cute *x, const tk_kop *op) {
    enum { MAP, POLICY };
    if (refuse_form(x, op)) return;
    tk_cute_line(x, "nvvm.cp.async.bulk.tensor.prefetch %s, box[%s]%s : !llvm.ptr",
                 map_of(x, op, MAP), coordinates(x, op), hint_of(x, op, POLICY));
}

/* ---- tensor maps, caches ---- */

void tk_cute_put_map_prefetch(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.prefetch tensormap, %s : !llvm.ptr", map_of(x, op, 0));
}

void tk_cute_put_map_replace(tk_cute *x, const tk_kop *op) {
    const tk_ptx_map_field *field = tk_ptx_map_field_of(op);
    const tk_kvalue *value = op->operands[1];
    const char *index = "";
    int64_t number;
    bool constant = tk_kvalue_integer(value, &number);
    if (tk_ktype_bytes(value->type) * 8 != field->bits || (field->constant && !constant)) {
        tk_cute_fail(x, op, "with a value of %s that has no %d bits or is no constant", field->name,
                     field->bits);
        return;
    }
    if (field->indexed) index = tk_cute_text(x, "%" PRId64 ", ", tk_kop_attr(op, TK_KA_index));
    const char *given = field->constant ? tk_cute_text(x, "%" PRId64, number) : "$1";
    const char *text =
        tk_cute_text(x, "tensormap.replace.tile.%s%s.b1024.b%d [$0], %s%s;", field->name,
                     op->operands[0]->type.space == TK_KS_SHARED ? ".shared::cta" : ".global",
                     field->bits, index, given);
    put_op_insn(x, op, text, field->constant ? 1 : 2, (const int[]){0, 1});
}

/* ".gpu" and so on, without which these two do not exist. */
static const char *need_scope(tk_cute *x, const tk_kop *op) {
    if (!tk_kop_attr(op, TK_KA_scope)) tk_cute_fail(x, op, "without a scope");
    return tk_ptx_scope(op);
}

void tk_cute_put_map_publish(tk_cute *x, const tk_kop *op) {
    const char *text = tk_cute_text(
        x,
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release%s.sync.aligned "
        "[$0], [$1], 128;",
        need_scope(x, op));
    put_op_insn(x, op, text, 2, (const int[]){0, 1});
}

void tk_cute_put_map_acquire(tk_cute *x, const tk_kop *op) {
    const char *text =
        tk_cute_text(x, "fence.proxy.tensormap::generic.acquire%s [$0], 128;", need_scope(x, op));
    put_op_insn(x, op, text, 1, (const int[]){0});
}

void tk_cute_put_prefetch(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "nvvm.prefetch level = L2, %s : %s", tk_cute_operand(x, op, 0),
                 tk_cute_pointer_type(x, op, 0));
}

/* A policy is a number: nothing is ordered by making it. */
void tk_cute_put_cache_policy(tk_cute *x, const tk_kop *op) {
    static const char *const words[] = {"evict_normal", "evict_first", "evict_last",
                                        "evict_unchanged", NULL};
    const char *word = words[tk_kop_attr(op, TK_KA_evict)];
    if (!word) {
        tk_cute_fail(x, op, "no_allocate is of L1, a policy of L2");
        return;
    }
    tk_cute_line(x,
                 "%s = llvm.inline_asm \"createpolicy.fractional.L2::%s.b64 $0, 0f3f800000;\", "
                 "\"=l\" : () -> i64",
                 tk_cute_result(x, op), word);
}
