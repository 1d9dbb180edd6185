/* The shared memory map. */
#include "kernel/shared.h"

#include "base/alloc.h"
#include "base/error.h"

typedef struct placer {
    const tk_kernel *kernel;
    int64_t *offsets;
    tk_kshared_map *map;
    int64_t dynamic_align;
} placer;

static int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

static tk_status bytes_of(const tk_kernel *kernel, tk_ktype type, int64_t *out) {
    tk_term span;
    TK_TRY(tk_layout_cosize(&tk_ktype_layout(kernel, type)->outer, &span));
    if (!tk_mul_overflow_i64(span.value, tk_kscalar_bytes((tk_kscalar)type.scalar), out) &&
        *out <= INT32_MAX)
        return TK_OK;
    return tk_fail(TK_OVERFLOW, "kernel %s: a shared buffer of 2 GiB or more", kernel->name);
}

static tk_status place_buffer(placer *p, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    int64_t align = tk_kop_attr(op, TK_KA_align), fixed = tk_kop_attr(op, TK_KA_offset), bytes;
    int64_t element = tk_kscalar_bytes((tk_kscalar)type.scalar);
    TK_TRY(bytes_of(p->kernel, type, &bytes));
    if (align < element) align = element;
    if (fixed > INT32_MAX)
        return tk_fail(TK_OVERFLOW, "kernel %s: a shared buffer at 2 GiB or above",
                       p->kernel->name);
    int64_t at = fixed >= 0 ? fixed : round_up(p->map->bytes, align);
    if (p->offsets) p->offsets[op->results[0]->id] = at;
    if (at + bytes > p->map->bytes) p->map->bytes = at + bytes;
    if (align > p->map->align) p->map->align = align;
    return TK_OK;
}

static tk_status place(void *arg, tk_kop *op) {
    placer *p = arg;
    if (op->code == TK_KOP_shared) return place_buffer(p, op);
    if (op->code == TK_KOP_dynamic_shared && tk_kop_attr(op, TK_KA_align) > p->dynamic_align)
        p->dynamic_align = tk_kop_attr(op, TK_KA_align);
    return TK_OK;
}

tk_status tk_kshared_place(const tk_kernel *kernel, int64_t *offsets, tk_kshared_map *out) {
    *out = (tk_kshared_map){.align = 16};
    placer p = {.kernel = kernel, .offsets = offsets, .map = out, .dynamic_align = 16};
    TK_TRY(tk_kblock_walk(&kernel->body, place, &p));
    out->dynamic_at = round_up(out->bytes, p.dynamic_align);
    if (p.dynamic_align > out->align) out->align = p.dynamic_align;
    return TK_OK;
}
