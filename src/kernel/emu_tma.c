/* TMA: boxes of tensors between global and shared memory, as tensor maps of the launch contract
 * say.
 *
 * A box is taken row by row of its fastest mode: the part of a row that lies in the tensor is
 * moved, the rest is filled or dropped. In shared memory rows lie one behind the other, in pieces
 * of 16 bytes whose place in 128, 64 or 32 bytes is changed by address bits when the map swizzles.
 */
#include "kernel/emu_tma.h"

#include "base/error.h"
#include "kernel/contract.h"
#include "kernel/emu_async.h"
#include "kernel/emu_bulk.h"
#include "kernel/emu_mbarrier.h"
#include "kernel/emu_memory.h"
#include "kernel/emu_span.h"

enum { PIECE = 16, MOST_BOX = 256, MOST_ROW = MOST_BOX * 8, TILE_ALIGN = 128 };

/* ---- maps ---- */

static tk_status fail_map(const tk_kernel *kernel, const tk_kmap *map, const char *what,
                          int64_t value) {
    return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: tensor map %s: %s, and it is %lld",
                   kernel->name, map->name, what, (long long)value);
}

static tk_status check_map(const tk_kernel *kernel, const tk_emu_map *map) {
    const tk_kmap *rule = map->rule;
    int64_t row = rule->box[0] * (int64_t)map->element;
    if (map->base % PIECE)
        return fail_map(kernel, rule, "the base is aligned to 16 bytes", (int64_t)map->base);
    for (int i = 0; i < rule->rank; i++) {
        if (map->extent[i] < 1 || map->extent[i] > UINT32_MAX)
            return fail_map(kernel, rule, "an extent is 1 to 2^32 - 1", map->extent[i]);
        if (i &&
            (map->stride[i] % PIECE || map->stride[i] < 0 || map->stride[i] >= (int64_t)1 << 40))
            return fail_map(kernel, rule, "a stride is a multiple of 16 bytes below 2^40",
                            map->stride[i]);
    }
    if (row % PIECE) return fail_map(kernel, rule, "a row of the box has 16 bytes or more", row);
    if (rule->swizzle && row > rule->swizzle)
        return fail_map(kernel, rule, "a row of the box is no longer than the swizzle", row);
    return TK_OK;
}

tk_status tk_emu_map_bind(const tk_kernel *kernel, const tk_kbinding *binding, int index,
                          uint64_t base, tk_emu_map *out) {
    const tk_kmap *rule = kernel->contract.params.items[index].map;
    *out = (tk_emu_map){
        .rule = rule, .base = base, .element = (uint32_t)tk_kscalar_bytes(rule->element)};
    out->stride[0] = out->element;
    for (int i = 0; i < rule->rank; i++) {
        TK_TRY(tk_kexpr_value(binding, rule->extent[i], &out->extent[i]));
        if (i) TK_TRY(tk_kexpr_value(binding, rule->stride[i - 1], &out->stride[i]));
        int64_t step = i ? rule->element_stride[i] : 1;
        out->count[i] = (rule->box[i] + step - 1) / step;
    }
    return check_map(kernel, out);
}

static const tk_emu_map *map_at(tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane) {
    const tk_emu_launch *launch = warp->block->launch;
    uint64_t number =
        (((const uint64_t *)tk_emu_from(warp, insn, operand))[lane] >> TK_EMU_BUFFER_SHIFT) - 1;
    if (number < launch->n_buffers && launch->maps[number].rule) return &launch->maps[number];
    tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS, "an address of no tensor map");
    return NULL;
}

/* ---- boxes ---- */

typedef struct box {
    const tk_emu_map *map;
    int64_t first[5]; /* coordinates */
    int64_t rows;
    uint32_t row_bytes;
} box;

/* Coordinates are the last operands. */
static bool box_of(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, const tk_emu_map *map,
                   box *out) {
    int count =
        (int)insn->op->n_operands - tk_kop_row_slots(tk_kop_row_of(insn->op->code), &(bool){false});
    if (count != map->rule->rank) {
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                      "%d coordinates for a tensor map of rank %d", count, map->rule->rank);
        return false;
    }
    *out = (box){.map = map, .rows = 1, .row_bytes = (uint32_t)map->count[0] * map->element};
    for (int i = 0; i < count; i++) {
        int operand = (int)insn->op->n_operands - count + i;
        out->first[i] = ((const int32_t *)tk_emu_from(warp, insn, operand))[lane];
        if (i) out->rows *= map->count[i];
    }
    if (out->first[0] * map->element % PIECE == 0) return true;
    tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED,
                  "the first coordinate is %lld, which is no multiple of 16 bytes",
                  (long long)out->first[0]);
    return false;
}

/* A row of a box: where it begins, and which of its elements lie in the tensor. */
typedef struct row {
    uint64_t address;   /* of element `from` */
    int64_t from, upto; /* equal: none */
} row;

static row row_of(const box *b, int64_t number) {
    const tk_emu_map *map = b->map;
    row r = {.address = map->base, .upto = map->count[0]};
    for (int i = 1; i < map->rule->rank; i++) {
        int64_t at = b->first[i] + number % map->count[i] * map->rule->element_stride[i];
        number /= map->count[i];
        if (at < 0 || at >= map->extent[i]) return (row){0};
        r.address += (uint64_t)(at * map->stride[i]);
    }
    if (b->first[0] < 0) r.from = -b->first[0];
    if (b->first[0] + r.upto > map->extent[0]) r.upto = map->extent[0] - b->first[0];
    if (r.from >= r.upto) return (row){0};
    r.address += (uint64_t)((b->first[0] + r.from) * map->element);
    return r;
}

/* Where a piece of 16 bytes of the tile lies. */
static uint64_t swizzled(uint64_t address, int32_t swizzle) {
    uint64_t bits = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
    return address ^ ((address >> 7 & bits) << 4);
}

static bool check_rows(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, const box *b,
                       bool write) {
    for (int64_t number = 0; number < b->rows; number++) {
        row r = row_of(b, number);
        uint64_t bytes = (uint64_t)(r.upto - r.from) * b->map->element;
        if (bytes && !tk_emu_global_check(warp, insn, lane, r.address, bytes, write)) return false;
    }
    return true;
}

static bool check_tile(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, const box *b,
                       uint64_t tile) {
    if (tile % TILE_ALIGN) {
        tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED,
                      "shared memory at 0x%llx, expected a multiple of 128 bytes",
                      (unsigned long long)tile);
        return false;
    }
    return tk_emu_shared_check(warp, insn, lane, tile, (uint64_t)b->rows * b->row_bytes);
}

/* ---- loading ---- */

static void fill(const tk_emu_map *map, unsigned char *data, int64_t count) {
    uint64_t bits = map->rule->fill_nan ? tk_kscalar_bits(map->rule->element, 0.0 / 0.0) : 0;
    for (int64_t i = 0; i < count; i++) memcpy(data + i * map->element, &bits, map->element);
}

static void load_box(const tk_emu_copier *of, const box *b, uint64_t tile) {
    unsigned char data[MOST_ROW];
    for (int64_t number = 0; number < b->rows; number++) {
        row r = row_of(b, number);
        uint64_t to = tile + (uint64_t)number * b->row_bytes;
        fill(b->map, data, b->map->count[0]);
        tk_emu_span_load_global(of, r.address, (uint64_t)(r.upto - r.from) * b->map->element,
                                data + r.from * b->map->element);
        for (uint32_t at = 0; at < b->row_bytes; at += PIECE)
            tk_emu_span_store_shared(of, swizzled(to + at, b->map->rule->swizzle), PIECE,
                                     data + at);
    }
}

static void load_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { TARGET, MAP, BARRIER, MULTICAST };
    uint64_t tile = ((const uint32_t *)tk_emu_from(warp, insn, TARGET))[lane],
             signal = ((const uint32_t *)tk_emu_from(warp, insn, BARRIER))[lane];
    const tk_emu_map *map = map_at(warp, insn, MAP, lane);
    box b;
    if (!map || !box_of(warp, insn, lane, map, &b) || !check_tile(warp, insn, lane, &b, tile) ||
        !check_rows(warp, insn, lane, &b, false))
        return;
    for (uint32_t left = tk_emu_targets(warp, insn, MULTICAST, lane, tile); left;
         left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(left);
        tk_emu_copier of = {.warp = warp, .insn = insn};
        tk_emu_mbarrier *barrier =
            tk_emu_mbarrier_issue(warp, insn, lane, tk_emu_in_block(signal, rank), &of.by);
        if (!barrier) continue;
        load_box(&of, &b, tk_emu_in_block(tile, rank));
        tk_emu_mbarrier_complete(warp, insn, lane, barrier, (uint32_t)b.rows * b.row_bytes);
    }
}

/* ---- storing ---- */

static void store_box(const tk_emu_copier *reader, const tk_emu_copier *writer, const box *b,
                      uint64_t tile) {
    unsigned char data[MOST_ROW];
    bool reduces = reader->insn->op->code == TK_KOP_tma_reduce;
    for (int64_t number = 0; number < b->rows; number++) {
        row r = row_of(b, number);
        uint64_t from = tile + (uint64_t)number * b->row_bytes,
                 bytes = (uint64_t)(r.upto - r.from) * b->map->element;
        const unsigned char *inside = data + r.from * b->map->element;
        for (uint32_t at = 0; at < b->row_bytes; at += PIECE)
            tk_emu_span_load_shared(reader, swizzled(from + at, b->map->rule->swizzle), PIECE,
                                    data + at);
        if (reduces)
            tk_emu_span_reduce_global(writer, r.address, bytes, b->map->rule->element, inside);
        else
            tk_emu_span_store_global(writer, r.address, bytes, inside);
    }
}

static void store_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { MAP, SOURCE };
    uint64_t tile = ((const uint32_t *)tk_emu_from(warp, insn, SOURCE))[lane];
    const tk_emu_map *map = map_at(warp, insn, MAP, lane);
    box b;
    if (!map || !box_of(warp, insn, lane, map, &b) || !check_tile(warp, insn, lane, &b, tile) ||
        !check_rows(warp, insn, lane, &b, true))
        return;
    tk_emu_copier reader = {warp, insn, tk_emu_own_issue(warp, insn, lane, TK_EMU_BULK_READ, true)},
                  writer = {warp, insn,
                            tk_emu_own_issue(warp, insn, lane, TK_EMU_BULK_WRITE, true)};
    store_box(&reader, &writer, &b, tile);
    tk_emu_progress(warp);
}

/* ---- the table ---- */

static void prefetch_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    (void)map_at(warp, insn, 0, lane);
}

/* Boxes in im2col form need offsets that the table has no operands for. */
static bool is_tile(const tk_kop *op) { return tk_kop_attr(op, TK_KA_load) == 0; }

#define EACH_LANE(name, function, has)                                                             \
    static void name##_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {          \
        for (uint32_t left = mask; left; left &= left - 1)                                         \
            function(warp, insn, __builtin_ctz(left));                                             \
    }                                                                                              \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = (has) ? name##_lanes : NULL};                                 \
    }

EACH_LANE(tma_load, load_lane, is_tile(op))
EACH_LANE(tma_store, store_lane, is_tile(op))
EACH_LANE(tma_reduce, store_lane, is_tile(op))
EACH_LANE(tma_prefetch, prefetch_lane, is_tile(op))
EACH_LANE(map_prefetch, prefetch_lane, true)
