/* TMA: boxes of tensors between global and shared memory, as tensor maps of the launch contract
 * say.
 *
 * A box is taken row by row of its fastest mode: the part of a row that lies in the tensor is
 * moved, the rest is filled or dropped. In shared memory rows lie one behind the other, in pieces
 * of 16 bytes whose place in 128, 64 or 32 bytes is changed by address bits when the map swizzles.
 */
#include "kernel/emu_tma.h"

#include <math.h>

#include "base/error.h"
#include "kernel/contract.h"
#include "kernel/emu_async.h"
#include "kernel/emu_bulk.h"
#include "kernel/emu_mbarrier.h"
#include "kernel/emu_memory.h"
#include "kernel/emu_span.h"

enum { PIECE = 16, MOST_BOX = 256, MOST_ROW = MOST_BOX * 8, TILE_ALIGN = 128 };

/* ---- maps ---- */

_Static_assert(sizeof(tk_emu_map) == 128, "a tensor map has 128 bytes");

static tk_status fail_map(const tk_kernel *kernel, const tk_kmap *rule, const char *what,
                          int64_t value) {
    return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: tensor map %s: %s, and it is %lld",
                   kernel->name, rule->name, what, (long long)value);
}

static int64_t element_bytes(const tk_emu_map *map) {
    return tk_kscalar_bytes((tk_kscalar)map->scalar);
}

/* Elements of a box along a mode. */
static int64_t count_of(const tk_emu_map *map, int mode) {
    int64_t step = mode && map->step[mode] ? map->step[mode] : 1;
    return (map->box[mode] + step - 1) / step;
}

/* What the hardware takes; NULL, or what is wrong and the value that is. */
static const char *fault_of(const tk_emu_map *map, int64_t *out_value) {
    int64_t row = (int64_t)map->box[0] * element_bytes(map);
    *out_value = (int64_t)map->base;
    if (map->base % PIECE) return "the base is aligned to 16 bytes";
    for (int i = 1; i < map->rank; i++) {
        *out_value = (int64_t)map->stride[i];
        if (map->stride[i] % PIECE || map->stride[i] >> 40)
            return "a stride is a multiple of 16 bytes below 2^40";
    }
    *out_value = row;
    if (row % PIECE || !row) return "a row of the box has 16 bytes or a multiple";
    if (map->swizzle && row > map->swizzle) return "a row of the box is no longer than the swizzle";
    return NULL;
}

tk_status tk_emu_map_bind(const tk_kernel *kernel, const tk_kbinding *binding, int index,
                          uint64_t base, tk_emu_map *out) {
    const tk_kmap *rule = kernel->contract.params.items[index].map;
    int64_t value;
    *out = (tk_emu_map){.mark = TK_EMU_MAP,
                        .rank = (uint8_t)rule->rank,
                        .scalar = (uint8_t)rule->element,
                        .swizzle = (uint8_t)rule->swizzle,
                        .fill_nan = rule->fill_nan,
                        .base = base};
    for (int i = 0; i < rule->rank; i++) {
        int64_t stride = tk_kscalar_bytes(rule->element);
        TK_TRY(tk_kexpr_value(binding, rule->extent[i], &value));
        if (value < 1 || value > UINT32_MAX)
            return fail_map(kernel, rule, "an extent is 1 to 2^32 - 1", value);
        if (i) TK_TRY(tk_kexpr_value(binding, rule->stride[i - 1], &stride));
        out->extent[i] = (uint32_t)value;
        out->stride[i] = (uint64_t)stride;
        out->box[i] = (uint32_t)rule->box[i];
        out->step[i] = (uint8_t)rule->element_stride[i];
    }
    const char *fault = fault_of(out, &value);
    return fault ? fail_map(kernel, rule, fault, value) : TK_OK;
}

/* Notes what a lane itself does to the bytes of a map in memory. */
static void note_map(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                     tk_emu_cell *cells, uint32_t unit, bool shared, bool write) {
    tk_emu_access access = {.warp = warp,
                            .insn = insn,
                            .cells = cells,
                            .count = (uint32_t)sizeof(tk_emu_map) / unit,
                            .race = shared ? TK_KF_RACE_SHARED : TK_KF_RACE_GLOBAL,
                            .where = shared ? "shared memory" : "global memory",
                            .address = address};
    if (write)
        tk_emu_note_write(&access, lane);
    else
        tk_emu_note_read(&access, 1u << lane);
}

static bool is_map_place(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         bool shared, bool write) {
    if (address % sizeof(tk_emu_map) == 0)
        return shared ? tk_emu_shared_check(warp, insn, lane, address, sizeof(tk_emu_map))
                      : tk_emu_global_check(warp, insn, lane, address, sizeof(tk_emu_map), write);
    tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED, "address 0x%llx of a tensor map",
                  (unsigned long long)address);
    return false;
}

/* The bytes of a map in shared or global memory, noted; NULL after a finding. */
static unsigned char *map_bytes(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                uint64_t address, bool shared, bool write) {
    const tk_emu_program *program = warp->block->launch->program;
    unsigned char *data;
    if (!is_map_place(warp, insn, lane, address, shared, write)) return NULL;
    if (shared) {
        tk_emu_block *block = tk_emu_shared_block(warp, address);
        uint64_t at = tk_emu_shared_offset(address);
        note_map(warp, insn, lane, address, block->shared_cells + at / program->shared_unit,
                 program->shared_unit, true, write);
        return block->shared + at;
    }
    tk_emu_page *page = tk_emu_global_at(warp, address, &data);
    size_t at = page ? (size_t)(data - page->data) : 0;
    if (!page) return data;
    note_map(warp, insn, lane, address, page->cells + at / program->global_unit,
             program->global_unit, false, write);
    if (write) tk_emu_mark_written(page, at, (uint32_t)sizeof(tk_emu_map));
    return data;
}

/* The map that an operand points to, as TMA reads it. */
static bool map_at(tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane,
                   tk_emu_map *out) {
    uint64_t address = ((const uint64_t *)tk_emu_from(warp, insn, operand))[lane];
    const unsigned char *data = map_bytes(warp, insn, lane, address, false, false);
    int64_t value;
    if (!data) return false;
    memcpy(out, data, sizeof *out);
    bool sane = out->mark == TK_EMU_MAP && out->rank >= 1 && out->rank <= 5;
    const char *fault = sane ? fault_of(out, &value) : "there is none at the address";
    if (!fault) return true;
    tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS, "the tensor map: %s", fault);
    return false;
}

/* ---- boxes ---- */

typedef struct box {
    tk_emu_map map;
    int64_t element; /* bytes */
    int64_t count[5];
    int64_t first[5]; /* coordinates */
    int64_t rows;
    uint32_t row_bytes;
} box;

/* Coordinates are the last operands. */
static bool set_first(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, box *b) {
    bool variadic;
    int rank = b->map.rank, count = (int)insn->op->n_operands -
                                    tk_kop_row_slots(tk_kop_row_of(insn->op->code), &variadic);
    if (count != rank) {
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                      "%d coordinates for a tensor map of rank %d", count, rank);
        return false;
    }
    for (int i = 0; i < count; i++) {
        int operand = (int)insn->op->n_operands - count + i;
        b->first[i] = ((const int32_t *)tk_emu_from(warp, insn, operand))[lane];
    }
    if (b->first[0] * b->element % PIECE == 0) return true;
    tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED,
                  "the first coordinate is %lld, which is no multiple of 16 bytes",
                  (long long)b->first[0]);
    return false;
}

static bool box_of(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, int map, box *out) {
    *out = (box){.rows = 1};
    if (!map_at(warp, insn, map, lane, &out->map)) return false;
    out->element = element_bytes(&out->map);
    for (int i = 0; i < out->map.rank; i++) {
        out->count[i] = count_of(&out->map, i);
        if (i) out->rows *= out->count[i];
    }
    out->row_bytes = (uint32_t)(out->count[0] * out->element);
    return set_first(warp, insn, lane, out);
}

/* A row of a box: where it begins, and which of its elements lie in the tensor. */
typedef struct row {
    uint64_t address;   /* of element `from` */
    int64_t from, upto; /* equal: none */
} row;

static row row_of(const box *b, int64_t number) {
    const tk_emu_map *map = &b->map;
    row r = {.address = map->base, .upto = b->count[0]};
    for (int i = 1; i < map->rank; i++) {
        int64_t at = b->first[i] + number % b->count[i] * (map->step[i] ? map->step[i] : 1);
        number /= b->count[i];
        if (at < 0 || at >= map->extent[i]) return (row){0};
        r.address += (uint64_t)at * map->stride[i];
    }
    if (b->first[0] < 0) r.from = -b->first[0];
    if (b->first[0] + r.upto > map->extent[0]) r.upto = map->extent[0] - b->first[0];
    if (r.from >= r.upto) return (row){0};
    r.address += (uint64_t)((b->first[0] + r.from) * b->element);
    return r;
}

/* Where a piece of 16 bytes of the tile lies. */
static uint64_t swizzled(uint64_t address, unsigned swizzle) {
    uint64_t bits = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
    return address ^ ((address >> 7 & bits) << 4);
}

static bool check_rows(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, const box *b,
                       bool write) {
    for (int64_t number = 0; number < b->rows; number++) {
        row r = row_of(b, number);
        uint64_t bytes = (uint64_t)((r.upto - r.from) * b->element);
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

static void fill(const box *b, unsigned char *data) {
    tk_kscalar scalar = (tk_kscalar)b->map.scalar;
    uint64_t bits = b->map.fill_nan ? tk_kscalar_bits(scalar, NAN) : 0;
    for (int64_t i = 0; i < b->count[0]; i++)
        memcpy(data + i * b->element, &bits, (size_t)b->element);
}

static void load_box(const tk_emu_copier *of, const box *b, uint64_t tile) {
    unsigned char data[MOST_ROW];
    for (int64_t number = 0; number < b->rows; number++) {
        row r = row_of(b, number);
        uint64_t to = tile + (uint64_t)number * b->row_bytes;
        fill(b, data);
        tk_emu_span_load_global(of, r.address, (uint64_t)((r.upto - r.from) * b->element),
                                data + r.from * b->element);
        for (uint32_t at = 0; at < b->row_bytes; at += PIECE)
            tk_emu_span_store_shared(of, swizzled(to + at, b->map.swizzle), PIECE, data + at);
    }
}

static void load_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { TARGET, MAP, BARRIER, MULTICAST };
    uint64_t tile = ((const uint32_t *)tk_emu_from(warp, insn, TARGET))[lane],
             signal = ((const uint32_t *)tk_emu_from(warp, insn, BARRIER))[lane];
    box b;
    if (!box_of(warp, insn, lane, MAP, &b) || !check_tile(warp, insn, lane, &b, tile) ||
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
                 bytes = (uint64_t)((r.upto - r.from) * b->element);
        const unsigned char *inside = data + r.from * b->element;
        for (uint32_t at = 0; at < b->row_bytes; at += PIECE)
            tk_emu_span_load_shared(reader, swizzled(from + at, b->map.swizzle), PIECE, data + at);
        if (reduces)
            tk_emu_span_reduce_global(writer, r.address, bytes, (tk_kscalar)b->map.scalar, inside);
        else
            tk_emu_span_store_global(writer, r.address, bytes, inside);
    }
}

static void store_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { MAP, SOURCE };
    uint64_t tile = ((const uint32_t *)tk_emu_from(warp, insn, SOURCE))[lane];
    box b;
    if (!box_of(warp, insn, lane, MAP, &b) || !check_tile(warp, insn, lane, &b, tile) ||
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
    tk_emu_map map;
    (void)map_at(warp, insn, 0, lane, &map);
}

/* ---- maps that change ---- */

/* By place in the words of the attribute. */
enum {
    ADDRESS,
    RANK,
    BOX,
    EXTENT,
    STRIDE,
    ELEMENT_STRIDE,
    ELEMENT_TYPE,
    INTERLEAVE,
    MAP_SWIZZLE,
    FILL
};

/* By number of the hardware's element types. */
static const uint8_t element_types[] = {TK_K_I8,   TK_K_I16,  TK_K_I32, TK_K_I32, TK_K_I64,
                                        TK_K_I64,  TK_K_F16,  TK_K_F32, TK_K_F32, TK_K_F64,
                                        TK_K_BF16, TK_K_TF32, TK_K_TF32};

/* False for a value that the field cannot have. A rank is given less one, as the hardware has it.
 */
static bool replace(tk_emu_map *map, int64_t field, int64_t index, int64_t value) {
    static const uint8_t swizzles[] = {0, 32, 64, 128};
    uint64_t bits = (uint64_t)value;
    if (index < 0 || index > 4 || (field == STRIDE && index > 3)) return false;
    switch (field) {
    case ADDRESS:
        map->base = bits;
        return true;
    case RANK:
        map->rank = (uint8_t)(bits + 1);
        return bits < 5;
    case BOX:
        map->box[index] = (uint32_t)bits;
        return bits >= 1 && bits <= MOST_BOX;
    case EXTENT:
        map->extent[index] = (uint32_t)bits;
        return true;
    case STRIDE:
        map->stride[index + 1] = bits;
        return true;
    case ELEMENT_STRIDE:
        map->step[index] = (uint8_t)bits;
        return bits >= 1 && bits <= 8;
    case ELEMENT_TYPE:
        if (bits < sizeof element_types) map->scalar = element_types[bits];
        if (bits < sizeof element_types) map->stride[0] = (uint64_t)element_bytes(map);
        return bits < sizeof element_types;
    case MAP_SWIZZLE:
        if (bits < sizeof swizzles) map->swizzle = swizzles[bits];
        return bits < sizeof swizzles;
    case FILL:
        map->fill_nan = bits == 1;
        return bits < 2;
    default: /* without interleaving */
        return bits == 0;
    }
}

static bool is_shared(const tk_emu_insn *insn, int operand) {
    return insn->op->operands[operand]->type.space == TK_KS_SHARED ||
           insn->op->operands[operand]->type.space == TK_KS_CLUSTER;
}

static uint64_t pointer_at(const tk_emu_warp *warp, const tk_emu_insn *insn, int operand,
                           int lane) {
    const void *from = tk_emu_from(warp, insn, operand);
    return is_shared(insn, operand) ? ((const uint32_t *)from)[lane]
                                    : ((const uint64_t *)from)[lane];
}

static void replace_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    const void *from = tk_emu_from(warp, insn, 1);
    bool wide = insn->op->operands[1]->type.scalar == TK_K_I64;
    int64_t value = wide ? ((const int64_t *)from)[lane] : ((const int32_t *)from)[lane];
    tk_emu_map map;
    unsigned char *data =
        map_bytes(warp, insn, lane, pointer_at(warp, insn, 0, lane), is_shared(insn, 0), true);
    if (!data) return;
    memcpy(&map, data, sizeof map);
    if (!replace(&map, tk_kop_attr(insn->op, TK_KA_field), tk_kop_attr(insn->op, TK_KA_index),
                 value))
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS, "a field cannot be %lld",
                      (long long)value);
    memcpy(data, &map, sizeof map);
}

/* The warp copies it once. */
static void publish_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int lane = __builtin_ctz(mask);
    const unsigned char *from =
        map_bytes(warp, insn, lane, pointer_at(warp, insn, 1, lane), true, false);
    unsigned char *to =
        from ? map_bytes(warp, insn, lane, pointer_at(warp, insn, 0, lane), false, true) : NULL;
    if (to) memcpy(to, from, sizeof(tk_emu_map));
}

tk_emu_pick tk_emu_pick_map_publish(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = publish_lanes};
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
EACH_LANE(map_replace, replace_lane, true)
