/* Atomic updates, and how ordered accesses and fences order threads.
 *
 * A place that ordered accesses touch has a row: what those who released there knew. A release (a
 * write with that order, or a relaxed one behind a fence) joins into it, an acquire (a read with
 * that order, or a relaxed one before a fence) takes it, if the scopes of both hold both threads. A
 * plain write begins anew; an update keeps what is there, so a chain of updates orders all who
 * released.
 *
 * Rejected: keeping one row a scope and place (kernels use one scope a place); a place by address
 * (memory may be seen through several arguments, cells are the same). */
#include "kernel/emu_atomic.h"

#include "base/alloc.h"
#include "base/half.h"
#include "base/hash.h"

/* ---- updates ---- */

static uint64_t bits_at(const void *from, int bytes) {
    uint64_t bits = 0;
    memcpy(&bits, from, (size_t)bytes);
    return bits;
}

static int64_t extended(uint64_t bits, int bytes) {
    int unused = 64 - 8 * bytes;
    return (int64_t)(bits << unused) >> unused;
}

static uint64_t integer_update(int update, uint64_t old, uint64_t value, int bytes) {
    int64_t a = extended(old, bytes), b = extended(value, bytes);
    switch (update) {
    case TK_EMU_ADD:
        return old + value;
    case TK_EMU_SMIN:
        return a < b ? old : value;
    case TK_EMU_SMAX:
        return a > b ? old : value;
    case TK_EMU_UMIN:
        return old < value ? old : value;
    case TK_EMU_UMAX:
        return old > value ? old : value;
    case TK_EMU_AND:
        return old & value;
    case TK_EMU_OR:
        return old | value;
    case TK_EMU_XOR:
        return old ^ value;
    case TK_EMU_INC:
        return old >= value ? 0 : old + 1;
    case TK_EMU_DEC:
        return old == 0 || old > value ? value : old - 1;
    default:
        return value;
    }
}

/* Sums of halves are exact enough in f32 to round once. */
static uint64_t float_update(tk_kscalar scalar, int update, uint64_t old, uint64_t value) {
    double a = tk_kscalar_value(scalar, old), b = tk_kscalar_value(scalar, value);
    if (update == TK_EMU_ADD)
        return tk_kscalar_bits(scalar, scalar == TK_K_F64 ? a + b : (double)((float)a + (float)b));
    bool first = a != a ? b != b : b != b || (update == TK_EMU_MIN ? a <= b : a >= b);
    return first ? old : value;
}

bool tk_emu_update(tk_kscalar scalar, int update, void *memory, const void *operand,
                   const void *expected) {
    int bytes = tk_kscalar_bytes(scalar);
    bool is_float = scalar >= TK_K_F16 && scalar <= TK_K_F64 &&
                    (update == TK_EMU_ADD || update == TK_EMU_MIN || update == TK_EMU_MAX);
    uint64_t old = bits_at(memory, bytes), value = bits_at(operand, bytes), result;
    if (update == TK_EMU_COMPARE)
        result = old == bits_at(expected, bytes) ? value : old;
    else
        result = is_float ? float_update(scalar, update, old, value)
                          : integer_update(update, old, value, bytes);
    memcpy(memory, &result, (size_t)bytes);
    return bits_at(memory, bytes) != old;
}

/* ---- places ---- */

typedef struct place {
    const tk_emu_cell *cell; /* NULL: unused */
    tk_emu_row *row;         /* NULL: nothing was released */
    uint8_t scope;           /* the narrowest of the releases */
    bool mixed;              /* released by several blocks */
    uint32_t slot;           /* of the block that released last */
} place;

struct tk_emu_places {
    place *items; /* open addressing, at most half full */
    size_t capacity, used;
};

static place *find(const struct tk_emu_places *places, const tk_emu_cell *cell) {
    size_t mask = places->capacity - 1, at = (size_t)tk_hash_mix((uintptr_t)cell, 3) & mask;
    while (places->items[at].cell && places->items[at].cell != cell) at = (at + 1) & mask;
    return &places->items[at];
}

static bool grow(struct tk_emu_places *places) {
    struct tk_emu_places wider = {.capacity = places->capacity ? 2 * places->capacity : 64};
    wider.items = tk_calloc(wider.capacity, sizeof *wider.items);
    if (!wider.items) return false;
    for (size_t i = 0; i < places->capacity; i++)
        if (places->items[i].cell) {
            *find(&wider, places->items[i].cell) = places->items[i];
            wider.used++;
        }
    tk_free(places->items);
    *places = wider;
    return true;
}

static place *place_at(tk_emu_group *group, const tk_emu_cell *cell) {
    if (!group->places) group->places = tk_calloc(1, sizeof *group->places);
    struct tk_emu_places *places = group->places;
    if (!places || (2 * (places->used + 1) > places->capacity && !grow(places))) {
        group->status = TK_OUT_OF_MEMORY;
        return NULL;
    }
    place *at = find(places, cell);
    if (!at->cell) places->used++;
    at->cell = cell;
    return at;
}

/* The entry stays, empty: others may have been put behind it. */
void tk_emu_places_forget(tk_emu_group *group, const tk_emu_cell *cells, size_t count) {
    struct tk_emu_places *places = group->places;
    for (size_t i = 0; places && i < places->capacity; i++) {
        place *at = &places->items[i];
        if (!at->cell || at->cell < cells || at->cell >= cells + count) continue;
        tk_emu_row_drop(at->row);
        at->row = NULL;
    }
}

void tk_emu_places_release(struct tk_emu_places *places) {
    if (!places) return;
    for (size_t i = 0; i < places->capacity; i++) tk_emu_row_drop(places->items[i].row);
    tk_free(places->items);
    tk_free(places);
}

/* ---- order ---- */

/* By place in the words of the attributes. */
enum { WEAK, RELAXED, ACQUIRE, RELEASE, ACQ_REL };
enum { NONE, BLOCK, CLUSTER, GPU, SYSTEM };

static unsigned scope_of(const tk_emu_insn *insn) {
    return (unsigned)tk_kop_attr(insn->op, TK_KA_scope);
}

/* Whether a scope that also holds who released holds the lane. */
static bool reaches(const tk_emu_warp *warp, const place *at, unsigned scope) {
    unsigned least = scope < at->scope ? scope : at->scope;
    uint32_t own = warp->block->slot, cluster = warp->block->launch->cluster;
    if (least == BLOCK) return !at->mixed && at->slot == own;
    if (least == CLUSTER) return at->slot / cluster == own / cluster;
    return true;
}

static void acquire(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, const place *at) {
    int64_t order = tk_kop_attr(insn->op, TK_KA_order);
    if (!at->row || !reaches(warp, at, scope_of(insn))) return;
    if (order == RELAXED || order == RELEASE)
        tk_emu_join(warp->block->group, &warp->fences->seen[lane], at->row);
    else if (!tk_emu_covers(warp, lane, at->row, TK_EMU_NONE))
        tk_emu_acquire(warp, 1u << lane, at->row);
}

static void leave(const tk_emu_warp *warp, place *at, unsigned scope) {
    uint32_t own = warp->block->slot;
    bool first = at->scope == NONE;
    at->mixed = !first && (at->mixed || at->slot != own);
    at->slot = own;
    if (first || scope < at->scope) at->scope = (uint8_t)scope;
}

static void release(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, place *at) {
    int64_t order = tk_kop_attr(insn->op, TK_KA_order);
    unsigned scope = scope_of(insn);
    const tk_emu_fences *fences = warp->fences;
    if (order == RELEASE || order == ACQ_REL) {
        leave(warp, at, scope);
        tk_emu_put(warp, lane, warp->row[lane], warp->clock[lane], &at->row);
        tk_emu_tick(warp, lane);
    } else if (fences->clock[lane]) {
        leave(warp, at, scope < fences->scope[lane] ? scope : fences->scope[lane]);
        tk_emu_put(warp, lane, fences->known[lane], fences->clock[lane], &at->row);
    }
}

void tk_emu_synchronise(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                        const tk_emu_cell *cell, int part) {
    place *at = place_at(warp->block->group, cell);
    if (!at) return;
    if (part & TK_EMU_READ) acquire(warp, insn, lane, at);
    if (part == TK_EMU_WRITE) {
        tk_emu_row_drop(at->row);
        at->row = NULL;
        at->scope = NONE;
    }
    if (part & TK_EMU_WRITE) release(warp, insn, lane, at);
}

/* ---- fences ---- */

static void fence_now(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    tk_emu_fences *fences = warp->fences;
    for (uint32_t left = mask; left && fences; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (fences->seen[lane]) {
            tk_emu_acquire(warp, 1u << lane, fences->seen[lane]);
            tk_emu_row_drop(fences->seen[lane]);
            fences->seen[lane] = NULL;
        }
        tk_emu_row_drop(fences->known[lane]);
        fences->known[lane] = tk_emu_row_keep(warp->row[lane]);
        fences->clock[lane] = warp->clock[lane];
        fences->scope[lane] = (uint8_t)scope_of(insn);
        tk_emu_tick(warp, lane);
    }
}

tk_emu_pick tk_emu_pick_fence(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = fence_now};
}

void tk_emu_fences_release(tk_emu_fences *fences) {
    for (int l = 0; l < TK_EMU_LANES && fences; l++) {
        tk_emu_row_drop(fences->seen[l]);
        tk_emu_row_drop(fences->known[l]);
    }
    tk_free(fences);
}
