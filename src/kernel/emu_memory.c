/* Loads and stores: where addresses point, whether they may, and what a card would do for them.
 *
 * For each active lane the address is resolved to a place (shared memory, a buffer read in place, a
 * page of the block) and checked for bounds and alignment; a lane whose address is wrong is
 * reported and takes no part. Then the order of accesses is checked cell by cell (emu_order.c), and
 * bytes are moved. */
#include "kernel/emu_memory.h"

#include "kernel/emu_atomic.h"
#include "kernel/emu_mbarrier.h"

#define BODY(function)                                                                             \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)

typedef tk_emu_request request;

static bool is_shared_space(unsigned space) {
    return space == TK_KS_SHARED || space == TK_KS_CLUSTER;
}

static void read_addresses(request *r, uint32_t mask) {
    const void *from = tk_emu_from(r->warp, r->insn, 0);
    if (r->shared)
        TK_EMU_EACH(mask, r->address[l] = ((const uint32_t *)from)[l]);
    else
        TK_EMU_EACH(mask, r->address[l] = ((const uint64_t *)from)[l]);
}

/* ---- checks ---- */

static bool check_alignment(const request *r, int lane) {
    if (r->address[lane] % r->bytes == 0) return true;
    tk_emu_report(r->warp, r->insn, lane, TK_KF_MISALIGNED, "address 0x%llx for %u bytes",
                  (unsigned long long)r->address[lane], r->bytes);
    return false;
}

/* Memory of an mbarrier is touched by operations on it alone. */
static void check_mbarriers(const request *r, int lane) {
    const tk_emu_block *block = r->warp->block;
    uint64_t offset = tk_emu_shared_offset(r->address[lane]);
    if (block->group->mbarriers &&
        tk_emu_mbarrier_overlaps(tk_emu_shared_block(r->warp, r->address[lane]), offset, r->bytes))
        tk_emu_report(r->warp, r->insn, lane, TK_KF_MBARRIER_USE,
                      "address 0x%llx is in an mbarrier", (unsigned long long)r->address[lane]);
}

static bool check_shared(const request *r, int lane) {
    if (!tk_emu_shared_check(r->warp, r->insn, lane, r->address[lane], r->bytes) ||
        !check_alignment(r, lane))
        return false;
    check_mbarriers(r, lane);
    return true;
}

static bool check_global(const request *r, int lane) {
    return tk_emu_global_check(r->warp, r->insn, lane, r->address[lane], r->bytes, false) &&
           check_alignment(r, lane);
}

static bool is_run(const request *r, uint32_t mask) {
    if (mask != TK_EMU_ALL) return false;
    uint64_t apart = 0;
    for (uint64_t l = 0; l < TK_EMU_LANES; l++)
        apart |= r->address[l] ^ (r->address[0] + l * r->bytes);
    return apart == 0;
}

/* Whether the whole run is within what its first address points to, and aligned. */
static bool check_run(const request *r) {
    uint64_t offset = r->address[0] - TK_EMU_SHARED_BASE, bytes = (uint64_t)TK_EMU_LANES * r->bytes;
    uint64_t size = (uint64_t)r->warp->block->shared_bytes;
    if (r->shared && r->warp->block->group->mbarriers) return false;
    if (!r->shared) {
        const tk_emu_buffer *buffer =
            tk_emu_buffer_at(r->warp->block->launch, r->address[0], &offset);
        size = buffer ? buffer->bytes : 0;
    }
    return r->address[0] % r->bytes == 0 && offset <= size && size - offset >= bytes;
}

/* Whether all lanes access the block's own shared memory, or one buffer, in bounds and aligned: the
 * smallest and the largest address tell. */
static bool check_together(request *r, uint32_t mask) {
    uint64_t low = UINT64_MAX, high = 0, bits = 0;
    TK_EMU_EACH(mask, {
        uint64_t address = r->address[l];
        low = address < low ? address : low;
        high = address > high ? address : high;
        bits |= address;
    });
    if (bits & (r->bytes - 1)) return false;
    if (!r->shared) {
        uint64_t offset;
        const tk_emu_buffer *buffer = tk_emu_buffer_at(r->warp->block->launch, high, &offset);
        return buffer && low >> TK_EMU_BUFFER_SHIFT == high >> TK_EMU_BUFFER_SHIFT &&
               offset <= buffer->bytes && buffer->bytes - offset >= r->bytes;
    }
    uint64_t size = (uint64_t)r->warp->block->shared_bytes;
    r->near = low >= TK_EMU_SHARED_BASE && high - TK_EMU_SHARED_BASE <= size &&
              size - (high - TK_EMU_SHARED_BASE) >= r->bytes;
    return r->near && !r->warp->block->group->mbarriers;
}

/* The lanes whose access is allowed. */
static uint32_t check(request *r, uint32_t mask) {
    uint32_t good = 0;
    r->run = is_run(r, mask) && check_run(r);
    r->near = r->run && r->shared;
    if (r->run || (mask && check_together(r, mask))) return mask;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (r->shared ? check_shared(r, lane) : check_global(r, lane)) good |= 1u << lane;
    }
    return good;
}

/* ---- order ---- */

static tk_emu_access access_of(const request *r, int lane, tk_emu_cell *cells, uint32_t unit) {
    return (tk_emu_access){.warp = r->warp,
                           .insn = r->insn,
                           .cells = cells,
                           .count = r->bytes / unit,
                           .address = r->address[lane],
                           .race = r->shared ? TK_KF_RACE_SHARED : TK_KF_RACE_GLOBAL,
                           .where = r->shared ? "shared memory" : "global memory"};
}

static void check_set(const tk_emu_access *access, int lane) {
    for (uint32_t i = 0; i < access->count; i++)
        if (!access->cells[i].write) {
            tk_emu_note_unset(access, lane, &access->cells[i]);
            return;
        }
}

static bool is_uniform(const request *r, uint32_t mask) {
    uint64_t first = r->address[__builtin_ctz(mask)], apart = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        apart |= r->address[__builtin_ctz(left)] ^ first;
    return apart == 0;
}

/* ---- places ---- */

static unsigned char *shared_place(const request *r, int lane) {
    return tk_emu_shared_block(r->warp, r->address[lane])->shared +
           tk_emu_shared_offset(r->address[lane]);
}

static tk_emu_cell *shared_cells(const request *r, int lane) {
    tk_emu_block *block = tk_emu_shared_block(r->warp, r->address[lane]);
    return block->shared_cells +
           tk_emu_shared_offset(r->address[lane]) / block->launch->program->shared_unit;
}

/* A page and the place in it; NULL for a buffer that is read in place, or when memory is out. An
 * access is aligned to its size, so it lies in one page. */
static tk_emu_page *global_page(const request *r, int lane, unsigned char **out_place) {
    return tk_emu_global_at(r->warp, r->address[lane], out_place);
}

/* ---- loads ---- */

/* Sizes that the compiler knows make moves of it. */
static inline void copy_element(void *to, const void *from, uint32_t bytes) {
    switch (bytes) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        memcpy(to, from, 8);
    }
}

static void take_bytes(const request *r, int lane, const unsigned char *from) {
    unsigned char *to = (unsigned char *)tk_emu_to(r->warp, r->insn) + (size_t)lane * r->element;
    for (uint32_t at = 0; at < r->bytes; at += r->element, to += TK_EMU_LANES * r->element)
        copy_element(to, from + at, r->element);
}

/* Elements of vectors of all lanes, from memory to rows of lanes and back. */
#define RUN_COPY(U)                                                                                \
    static void take_##U(void *to, const void *from, uint32_t count) {                             \
        for (uint32_t e = 0; e < count; e++)                                                       \
            for (uint32_t l = 0; l < TK_EMU_LANES; l++)                                            \
                ((U *)to)[e * TK_EMU_LANES + l] = ((const U *)from)[l * count + e];                \
    }                                                                                              \
    static void put_##U(void *to, const void *from, uint32_t count) {                              \
        for (uint32_t l = 0; l < TK_EMU_LANES; l++)                                                \
            for (uint32_t e = 0; e < count; e++)                                                   \
                ((U *)to)[l * count + e] = ((const U *)from)[e * TK_EMU_LANES + l];                \
    }
RUN_COPY(uint8_t)
RUN_COPY(uint16_t)
RUN_COPY(uint32_t)
RUN_COPY(uint64_t)

typedef void (*run_copy)(void *to, const void *from, uint32_t count);
static const run_copy takes[] = {
    [1] = take_uint8_t, [2] = take_uint16_t, [4] = take_uint32_t, [8] = take_uint64_t};
static const run_copy puts[] = {
    [1] = put_uint8_t, [2] = put_uint16_t, [4] = put_uint32_t, [8] = put_uint64_t};

static void take_run(const request *r, const unsigned char *from) {
    if (r->bytes == r->element)
        memcpy(tk_emu_to(r->warp, r->insn), from, (size_t)TK_EMU_LANES * r->bytes);
    else
        takes[r->element](tk_emu_to(r->warp, r->insn), from, r->bytes / r->element);
}

/* Lanes that are near, each with one cell: the usual access to shared memory. */
static void load_near(request *r, uint32_t mask) {
    tk_emu_block *block = r->warp->block;
    const tk_emu_program *program = block->launch->program;
    tk_emu_access access = access_of(r, 0, block->shared_cells, program->shared_unit);
    tk_emu_note_read_lanes(&access, mask, r->address, program->shared_unit);
    const unsigned char *base = block->shared - TK_EMU_SHARED_BASE;
    TK_EMU_EACH(mask, take_bytes(r, l, base + r->address[l]));
}

static void load_shared(request *r, uint32_t mask) {
    const tk_emu_program *program = r->warp->block->launch->program;
    uint32_t unit = program->shared_unit;
    if (r->near && r->bytes == unit && !program->strong) {
        load_near(r, mask);
        return;
    }
    bool uniform = is_uniform(r, mask);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_access access = access_of(r, lane, shared_cells(r, lane), unit);
        check_set(&access, lane);
        tk_emu_note_read(&access, uniform ? mask : left & -left);
        if (uniform) break;
    }
    for (uint32_t left = mask; left; left &= left - 1)
        take_bytes(r, __builtin_ctz(left), shared_place(r, __builtin_ctz(left)));
}

/* The part of a run from a lane on that lies in one page. */
typedef struct stretch {
    unsigned char *data; /* NULL: memory is out */
    tk_emu_page *page;   /* NULL: read in place */
    size_t at;
    int end; /* lane */
    tk_emu_access access;
} stretch;

static stretch stretch_of(const request *r, int first) {
    stretch s = {.end = TK_EMU_LANES};
    uint32_t unit = r->warp->block->launch->program->global_unit;
    s.page = global_page(r, first, &s.data);
    if (!s.page) return s;
    s.at = (size_t)(s.data - s.page->data);
    size_t lanes = (TK_EMU_PAGE_BYTES - s.at) / r->bytes;
    if (lanes < (size_t)(TK_EMU_LANES - first)) s.end = first + (int)lanes;
    s.access = access_of(r, first, s.page->cells + s.at / unit, unit);
    return s;
}

/* All lanes, from one page or two. */
static void load_global_run(request *r) {
    unsigned char bytes[TK_EMU_LANES * 16];
    stretch s = stretch_of(r, 0);
    if (s.page) tk_emu_note_read_run(&s.access, 0, s.end);
    if (s.data && s.end == TK_EMU_LANES) take_run(r, s.data);
    if (!s.data || s.end == TK_EMU_LANES) return;
    size_t done = (size_t)s.end * r->bytes, all = (size_t)TK_EMU_LANES * r->bytes;
    memcpy(bytes, s.data, done);
    stretch rest = stretch_of(r, s.end);
    if (!rest.data) return;
    tk_emu_note_read_run(&rest.access, s.end, TK_EMU_LANES);
    memcpy(bytes + done, rest.data, all - done);
    take_run(r, bytes);
}

/* `access` is of a page of global memory. */
static void check_set_global(const request *r, int lane, const tk_emu_page *page,
                             const tk_emu_access *access) {
    uint64_t offset;
    const tk_emu_launch *launch = r->warp->block->launch;
    if (!tk_emu_page_is_unset(launch, page, (size_t)(access->cells - page->cells), access->count))
        return;
    const tk_emu_buffer *buffer = tk_emu_buffer_at(launch, r->address[lane], &offset);
    tk_emu_report(r->warp, r->insn, lane, TK_KF_UNSET_GLOBAL,
                  "byte %llu of buffer %u, which is new, is written by nobody before",
                  (unsigned long long)offset, (unsigned)buffer->number);
}

static bool is_of_new_memory(const request *r, uint32_t mask) {
    uint64_t offset;
    const tk_emu_launch *launch = r->warp->block->launch;
    const tk_emu_buffer *buffer =
        tk_emu_buffer_at(launch, r->address[__builtin_ctz(mask)], &offset);
    return launch->buffers[buffer->number].unset;
}

static void load_global(request *r, uint32_t mask) {
    uint32_t unit = r->warp->block->launch->program->global_unit;
    if (r->run && !is_of_new_memory(r, mask)) {
        load_global_run(r);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        unsigned char *place;
        tk_emu_page *page = global_page(r, lane, &place);
        if (page) {
            tk_emu_access access =
                access_of(r, lane, page->cells + (size_t)(place - page->data) / unit, unit);
            check_set_global(r, lane, page, &access);
            tk_emu_note_read(&access, 1u << lane);
        }
        if (place) take_bytes(r, lane, place);
    }
}

/* What lanes without a load get: the other value, else zeros. */
static void load_other(const request *r, uint32_t lanes, bool given) {
    const unsigned char *from = given ? tk_emu_from(r->warp, r->insn, 2) : NULL;
    unsigned char *to = tk_emu_to(r->warp, r->insn);
    for (uint32_t at = 0; at < r->bytes; at += r->element)
        for (uint32_t left = lanes; left; left &= left - 1) {
            size_t place =
                (at / r->element * TK_EMU_LANES + (size_t)__builtin_ctz(left)) * r->element;
            if (from)
                memcpy(to + place, from + place, r->element);
            else
                memset(to + place, 0, r->element);
        }
}

static request request_of(tk_emu_warp *warp, const tk_emu_insn *insn, tk_ktype type, bool write) {
    return (request){.warp = warp,
                     .insn = insn,
                     .bytes = (uint32_t)tk_ktype_bytes(type),
                     .write = write,
                     .element = (uint32_t)tk_kscalar_bytes((tk_kscalar)type.scalar),
                     .shared = is_shared_space(insn->op->operands[0]->type.space)};
}

/* The lanes whose condition holds; `operand` may be missing. */
static uint32_t active_lanes(const tk_emu_warp *warp, const tk_emu_insn *insn, int operand,
                             uint32_t mask) {
    return tk_emu_given(insn, operand) ? tk_emu_true_lanes(tk_emu_from(warp, insn, operand), mask)
                                       : mask;
}

BODY(load) {
    enum { CONDITION = 1, OTHER = 2 };
    request r = request_of(warp, insn, insn->op->results[0]->type, false);
    uint32_t active = active_lanes(warp, insn, CONDITION, mask);
    read_addresses(&r, active);
    uint32_t good = check(&r, active);
    if (good != mask) load_other(&r, mask & ~good, tk_emu_given(insn, OTHER));
    if (!good) return;
    tk_emu_count_request(&r, good);
    if (r.shared)
        load_shared(&r, good);
    else
        load_global(&r, good);
}

static bool is_weak(const tk_kop *op) { return tk_kop_attr(op, TK_KA_order) == 0; }

/* ---- ordered loads ---- */

/* What an ordered access or atomic operation of a lane touches; false when memory is out. */
static bool place_of(const request *r, int lane, tk_emu_place *out) {
    if (r->shared) {
        *out = (tk_emu_place){.data = shared_place(r, lane), .cells = shared_cells(r, lane)};
        return true;
    }
    out->page = global_page(r, lane, &out->data);
    if (out->page) {
        out->at = (size_t)(out->data - out->page->data);
        out->cells = out->page->cells + out->at / r->warp->block->launch->program->global_unit;
    }
    return out->data != NULL;
}

static uint32_t unit_of(const request *r) {
    const tk_emu_program *program = r->warp->block->launch->program;
    return r->shared ? program->shared_unit : program->global_unit;
}

BODY(load_ordered) {
    enum { CONDITION = 1, OTHER = 2 };
    request r = request_of(warp, insn, insn->op->results[0]->type, false);
    uint32_t active = active_lanes(warp, insn, CONDITION, mask);
    read_addresses(&r, active);
    tk_emu_poll(warp, insn, mask);
    uint32_t good = check(&r, active);
    if (good != mask) load_other(&r, mask & ~good, tk_emu_given(insn, OTHER));
    if (!good) return;
    tk_emu_count_request(&r, good);
    for (uint32_t left = good; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_place place;
        if (!place_of(&r, lane, &place)) return;
        if (place.cells) {
            tk_emu_access access = access_of(&r, lane, place.cells, unit_of(&r));
            if (r.shared)
                check_set(&access, lane);
            else
                check_set_global(&r, lane, place.page, &access);
            tk_emu_note_strong(&access, lane);
            tk_emu_synchronise(warp, insn, lane, place.cells, TK_EMU_READ);
        }
        take_bytes(&r, lane, place.data);
    }
}

tk_emu_pick tk_emu_pick_load(const tk_kop *op) {
    return (tk_emu_pick){.body = is_weak(op) ? load : load_ordered};
}

/* Brings nothing nearer here, but the address must be one. */
BODY(prefetch_lanes) {
    const uint64_t *address = tk_emu_from(warp, insn, 0);
    TK_EMU_EACH(mask, (void)tk_emu_global_check(warp, insn, l, address[l], 1, false));
}
tk_emu_pick tk_emu_pick_prefetch(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = prefetch_lanes};
}

/* ---- stores ---- */

static void put_bytes(const request *r, int lane, unsigned char *to) {
    const unsigned char *from =
        (const unsigned char *)tk_emu_from(r->warp, r->insn, 1) + (size_t)lane * r->element;
    for (uint32_t at = 0; at < r->bytes; at += r->element, from += TK_EMU_LANES * r->element)
        copy_element(to + at, from, r->element);
}

static void put_run(const request *r, unsigned char *to) {
    if (r->bytes == r->element)
        memcpy(to, tk_emu_from(r->warp, r->insn, 1), (size_t)TK_EMU_LANES * r->bytes);
    else
        puts[r->element](to, tk_emu_from(r->warp, r->insn, 1), r->bytes / r->element);
}

static void store_near(request *r, uint32_t mask) {
    tk_emu_block *block = r->warp->block;
    const tk_emu_program *program = block->launch->program;
    tk_emu_access access = access_of(r, 0, block->shared_cells, program->shared_unit);
    tk_emu_note_write_lanes(&access, mask, r->address, program->shared_unit);
    unsigned char *base = block->shared - TK_EMU_SHARED_BASE;
    TK_EMU_EACH(mask, put_bytes(r, l, base + r->address[l]));
}

static void store_shared(request *r, uint32_t mask) {
    uint32_t unit = r->warp->block->launch->program->shared_unit;
    if (r->run) {
        tk_emu_access access = access_of(r, 0, shared_cells(r, 0), unit);
        tk_emu_note_write_run(&access, 0, TK_EMU_LANES);
        put_run(r, shared_place(r, 0));
        return;
    }
    if (r->near && r->bytes == unit) {
        store_near(r, mask);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_access access = access_of(r, lane, shared_cells(r, lane), unit);
        tk_emu_note_write(&access, lane);
        put_bytes(r, lane, shared_place(r, lane));
    }
}

static bool may_write(const request *r, int lane) {
    uint64_t offset;
    return (tk_emu_buffer_at(r->warp->block->launch, r->address[lane], &offset)->access &
            TK_KACCESS_WRITE) != 0;
}

static bool store_global_run(request *r) {
    unsigned char bytes[TK_EMU_LANES * 16];
    if (!may_write(r, 0)) return false;
    put_run(r, bytes);
    for (int first = 0; first < TK_EMU_LANES;) {
        stretch s = stretch_of(r, first);
        size_t part = (size_t)(s.end - first) * r->bytes;
        if (!s.data) return true;
        tk_emu_note_write_run(&s.access, first, s.end);
        memcpy(s.data, bytes + (size_t)first * r->bytes, part);
        tk_emu_mark_written(s.page, s.at, (uint32_t)part);
        first = s.end;
    }
    return true;
}

static void store_global(request *r, uint32_t mask) {
    uint32_t unit = r->warp->block->launch->program->global_unit;
    if (r->run && store_global_run(r)) return;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        unsigned char *place;
        tk_emu_page *page = global_page(r, lane, &place);
        if (place && !may_write(r, lane))
            tk_emu_report(r->warp, r->insn, lane, TK_KF_EFFECT,
                          "address 0x%llx is in a buffer that is only read",
                          (unsigned long long)r->address[lane]);
        if (!page) continue;
        size_t at = (size_t)(place - page->data);
        tk_emu_access access = access_of(r, lane, page->cells + at / unit, unit);
        tk_emu_note_write(&access, lane);
        put_bytes(r, lane, place);
        tk_emu_mark_written(page, at, r->bytes);
    }
}

BODY(store) {
    enum { CONDITION = 2 };
    request r = request_of(warp, insn, insn->op->operands[1]->type, true);
    uint32_t active = active_lanes(warp, insn, CONDITION, mask);
    read_addresses(&r, active);
    uint32_t good = check(&r, active);
    if (!good) return;
    tk_emu_count_request(&r, good);
    if (r.shared)
        store_shared(&r, good);
    else
        store_global(&r, good);
}

/* ---- what reads and writes in order ---- */

/* The place of a lane's update, noted; false for one that may not be written. */
static bool begin_update(const request *r, int lane, tk_emu_place *out) {
    if (!r->shared && !may_write(r, lane)) {
        tk_emu_report(r->warp, r->insn, lane, TK_KF_EFFECT,
                      "address 0x%llx is in a buffer that is only read",
                      (unsigned long long)r->address[lane]);
        return false;
    }
    return place_of(r, lane, out);
}

BODY(store_ordered) {
    enum { CONDITION = 2 };
    request r = request_of(warp, insn, insn->op->operands[1]->type, true);
    uint32_t active = active_lanes(warp, insn, CONDITION, mask);
    read_addresses(&r, active);
    uint32_t good = check(&r, active);
    if (!good) return;
    tk_emu_count_request(&r, good);
    for (uint32_t left = good; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_place place;
        if (!begin_update(&r, lane, &place)) continue;
        tk_emu_access access = access_of(&r, lane, place.cells, unit_of(&r));
        tk_emu_note_strong(&access, lane);
        tk_emu_synchronise(warp, insn, lane, place.cells, TK_EMU_WRITE);
        put_bytes(&r, lane, place.data);
        if (place.page) tk_emu_mark_written(place.page, place.at, r.bytes);
        tk_emu_progress(warp);
    }
}

tk_emu_pick tk_emu_pick_store(const tk_kop *op) {
    return (tk_emu_pick){.body = is_weak(op) ? store : store_ordered};
}

/* ---- atomic operations ---- */

/* Reads memory that nobody wrote, unless the operation replaces it. */
static void check_update_set(const request *r, const tk_emu_page *page, const tk_emu_access *access,
                             int lane) {
    if (tk_kop_attr(r->insn->op, TK_KA_update) == TK_EMU_EXCHANGE) return;
    if (r->shared)
        check_set(access, lane);
    else if (page)
        check_set_global(r, lane, page, access);
}

static const unsigned char *operand_of(const request *r, int operand, int lane) {
    return (const unsigned char *)tk_emu_from(r->warp, r->insn, operand) +
           (size_t)lane * r->element;
}

/* Element by element; the old values go to the result, if there is one. */
static void update_lane(const request *r, int lane, unsigned char *memory, bool compares) {
    tk_kscalar scalar = (tk_kscalar)r->insn->op->operands[1]->type.scalar;
    int update = (int)tk_kop_attr(r->insn->op, TK_KA_update);
    bool changed = false;
    if (r->insn->to != TK_EMU_NONE) take_bytes(r, lane, memory);
    for (uint32_t at = 0; at < r->bytes; at += r->element) {
        size_t row = (size_t)at * TK_EMU_LANES;
        changed |= tk_emu_update(scalar, update, memory + at, operand_of(r, 1, lane) + row,
                                 compares ? operand_of(r, 2, lane) : NULL);
    }
    if (changed)
        tk_emu_progress(r->warp);
    else
        tk_emu_poll(r->warp, r->insn, 1u << lane);
}

static void update_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, bool compares,
                         int condition) {
    request r = request_of(warp, insn, insn->op->operands[1]->type, true);
    uint32_t active = active_lanes(warp, insn, condition, mask);
    read_addresses(&r, active);
    uint32_t good = check(&r, active);
    if (insn->to != TK_EMU_NONE && good != mask) load_other(&r, mask & ~good, false);
    if (good) tk_emu_count_request(&r, good);
    for (uint32_t left = good; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_place place;
        if (!begin_update(&r, lane, &place)) continue;
        tk_emu_access access = access_of(&r, lane, place.cells, unit_of(&r));
        check_update_set(&r, place.page, &access, lane);
        tk_emu_note_strong(&access, lane);
        tk_emu_synchronise(warp, insn, lane, place.cells, TK_EMU_READ | TK_EMU_WRITE);
        update_lane(&r, lane, place.data, compares);
        if (place.page) tk_emu_mark_written(place.page, place.at, r.bytes);
    }
}

BODY(atomic_now) {
    enum { EXPECTED = 2, CONDITION = 3 };
    update_lanes(warp, insn, mask, tk_emu_given(insn, EXPECTED), CONDITION);
}
BODY(reduce_now) {
    enum { CONDITION = 2 };
    update_lanes(warp, insn, mask, false, CONDITION);
}

tk_emu_pick tk_emu_pick_atomic(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = atomic_now};
}
tk_emu_pick tk_emu_pick_reduce(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = reduce_now};
}
