/* copy: y[i] = x[i] for all coordinates i, converted between floats.  fill: y[i] = value.
 *
 * Axes are brought into the order of y's strides and merged where both tensors allow it, so a copy
 * of contiguous tensors has one axis. What is moved is a unit: a run of elements along the last
 * axis that is one access in both tensors, as wide as strides, lengths and alignments prove.
 *
 * Tile: threads * per_thread units a block; thread t takes units t, t + threads, ... A unit's
 * number is divided by the lengths of the axes, from the last to the second, which gives its
 * coordinates. Shared memory: none. Barriers: none. Bytes: x and y once. FLOPs: none. Roofline:
 * bandwidth where both last strides are 1: 1.00 of the copy (H200, f32). A transposed copy reads
 * whole sectors for single elements: `transpose` does not. */
#include "library/emit.h"
#include "library/plan.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct axis {
    int64_t length, x, y; /* strides; x is 0 for fill */
} axis;

typedef struct shape {
    int rank;
    axis axes[TK_LIBRARY_MOST_AXES];
    int64_t units;
    int lanes; /* of a unit */
} shape;

/* ---- the axes ---- */

static int by_stride(const void *a, const void *b) {
    int64_t left = llabs(((const axis *)a)->y), right = llabs(((const axis *)b)->y);
    return left < right ? 1 : left > right ? -1 : 0;
}

static void merge(shape *s) {
    int kept = 0;
    for (int i = 1; i < s->rank; i++) {
        axis *outer = &s->axes[kept], inner = s->axes[i];
        bool joins = outer->y == inner.y * inner.length && outer->x == inner.x * inner.length;
        if (joins)
            *outer = (axis){outer->length * inner.length, inner.x, inner.y};
        else
            s->axes[++kept] = inner;
    }
    s->rank = kept + 1;
}

/* Every shape has one axis at least. `x` may be NULL. */
static void collect(const tk_library_tensor *x, const tk_library_tensor *y, shape *s) {
    for (int i = 0; i < y->rank; i++)
        if (y->shape[i] != 1)
            s->axes[s->rank++] = (axis){y->shape[i], x ? x->stride[i] : 0, y->stride[i]};
    if (s->rank == 0) s->axes[s->rank++] = (axis){1, x != NULL, 1};
    qsort(s->axes, (size_t)s->rank, sizeof *s->axes, by_stride);
    merge(s);
}

static int64_t widest(const tk_library_tensor *tensor, const shape *s, bool is_x, int64_t most) {
    int64_t facts[TK_LIBRARY_MOST_AXES + 1], bytes = tk_kscalar_bytes(tensor->element);
    for (int i = 0; i + 1 < s->rank; i++) facts[i] = (is_x ? s->axes[i].x : s->axes[i].y) * bytes;
    facts[s->rank - 1] = tk_library_align(tensor);
    facts[s->rank] = s->axes[s->rank - 1].length * bytes;
    int64_t wide = tk_library_divisor(most, (size_t)s->rank + 1, facts);
    return wide > bytes ? wide / bytes : 1;
}

static void cut_units(const tk_library_tensor *x, const tk_library_tensor *y, int64_t most,
                      shape *s) {
    axis *last = &s->axes[s->rank - 1];
    int64_t lanes = 1;
    if (last->y == 1 && (!x || last->x == 1)) {
        lanes = widest(y, s, false, most);
        int64_t of_x = x ? widest(x, s, true, most) : lanes;
        if (of_x < lanes) lanes = of_x;
        while (lanes > TK_LIBRARY_MOST_LANES) lanes /= 2;
    }
    s->lanes = (int)lanes;
    last->length /= lanes;
    s->units = 1;
    for (int i = 0; i < s->rank; i++) s->units *= s->axes[i].length;
    last->x *= lanes, last->y *= lanes;
}

/* ---- the kernel ---- */

typedef struct mover {
    tk_library_kernel *k;
    tk_b *b;
    tk_val x, y, units; /* x is NULL for fill */
    tk_val value;       /* of fill: a vector of a unit */
    tk_val length[TK_LIBRARY_MOST_AXES], step_x[TK_LIBRARY_MOST_AXES], step_y[TK_LIBRARY_MOST_AXES];
    tk_kscalar number; /* type of unit numbers: i32 where they fit */
    int rank, lanes;
    int64_t threads, per_thread;
} mover;

static void bind_axes(mover *m, const shape *s) {
    char name[32];
    m->units = tk_library_bind_int(m->k, "units", m->number, s->units);
    for (int i = 0; i < s->rank; i++) {
        snprintf(name, sizeof name, "length%d", i);
        if (i) m->length[i] = tk_library_bind_int(m->k, name, m->number, s->axes[i].length);
        snprintf(name, sizeof name, "x_stride%d", i);
        if (m->x) m->step_x[i] = tk_library_bind_int(m->k, name, TK_K_I64, s->axes[i].x);
        snprintf(name, sizeof name, "y_stride%d", i);
        m->step_y[i] = tk_library_bind_int(m->k, name, TK_K_I64, s->axes[i].y);
    }
}

static tk_val widen(const mover *m, tk_val number) {
    return m->number == TK_K_I64 ? number : tk_k_wide(m->b, number);
}

static tk_val plus(const mover *m, tk_val sum, tk_val coordinate, tk_val step) {
    tk_val part = tk_k_mul(m->b, widen(m, coordinate), step);
    return sum ? tk_k_add(m->b, sum, part) : part;
}

/* Offsets of a unit in both tensors. */
static void locate(const mover *m, tk_val unit, tk_val *out_x, tk_val *out_y) {
    *out_x = *out_y = NULL;
    for (int i = m->rank - 1; i >= 0; i--) {
        tk_val rest = i ? tk_k_udiv(m->b, unit, m->length[i]) : NULL;
        tk_val coordinate = i ? tk_k_sub(m->b, unit, tk_k_mul(m->b, rest, m->length[i])) : unit;
        if (m->x) *out_x = plus(m, *out_x, coordinate, m->step_x[i]);
        *out_y = plus(m, *out_y, coordinate, m->step_y[i]);
        unit = rest;
    }
}

static tk_val convert_unit(const mover *m, tk_val from, tk_kscalar to) {
    tk_val parts[TK_LIBRARY_MOST_LANES];
    if (!from || tk_kvalue_type(from).scalar == to) return from;
    for (int i = 0; i < m->lanes; i++)
        parts[i] = tk_k_convert(m->b, tk_k_extract(m->b, from, i), to);
    return tk_k_vector(m->b, parts, m->lanes);
}

static void move_unit(const mover *m, tk_val unit) {
    tk_val at_x, at_y, value = m->value;
    locate(m, unit, &at_x, &at_y);
    if (m->x) {
        value = tk_k_load(m->b, tk_k_offset(m->b, m->x, at_x), m->lanes);
        value = convert_unit(m, value, (tk_kscalar)tk_kvalue_type(m->y).scalar);
    }
    tk_k_store(m->b, tk_k_offset(m->b, m->y, at_y), value);
}

static void put_body(mover *m) {
    bool wide = m->number == TK_K_I64;
    int64_t of_block = m->threads * m->per_thread;
    tk_k_require_from(m->b, m->units, 0);
    tk_k_grid(m->b, m->units, of_block);
    tk_kernel_block(m->b, m->threads, 1, 1);
    tk_val first = tk_k_thread(m->b), before;
    if (wide) {
        first = tk_k_wide(m->b, first);
        before = tk_k_block_times(m->b, of_block);
    } else {
        before = tk_k_mul(m->b, tk_k_block(m->b), tk_k_i32(m->b, of_block));
    }
    first = tk_k_add(m->b, before, first);
    for (int64_t i = 0; i < m->per_thread; i++) {
        tk_val unit = tk_k_add(m->b, first, tk_kernel_int(m->b, m->number, i * m->threads));
        tk_kernel_if(m->b, tk_k_icmp(m->b, "ult", unit, m->units));
        move_unit(m, unit);
        tk_k_end(m->b);
    }
}

static tk_status open(const tk_library_call *call, tk_library_plan *plan, const shape *s,
                      tk_library_kernel *k, mover *m) {
    enum { LARGEST_BLOCK = 1024 * 32 };
    TK_TRY(tk_library_open(plan, call->name, k));
    *m = (mover){.k = k,
                 .b = k->b,
                 .rank = s->rank,
                 .lanes = s->lanes,
                 .threads = call->schedule->threads,
                 .per_thread = call->schedule->per_thread};
    m->number = s->units > INT32_MAX - LARGEST_BLOCK ? TK_K_I64 : TK_K_I32;
    return TK_OK;
}

/* Two coordinates of y at one place would be a race. */
static tk_status check_target(const tk_library_call *call, const tk_library_tensor *y) {
    bool empty = tk_library_size(y) == 0;
    for (int i = 0; i < y->rank && !empty; i++)
        if (y->shape[i] > 1 && y->stride[i] == 0)
            return tk_library_fail(call, TK_SHAPE_ERROR, "y has stride 0 along axis %d", i);
    return TK_OK;
}

static bool converts(tk_kscalar element) {
    return element == TK_K_F16 || element == TK_K_BF16 || element == TK_K_F32 ||
           element == TK_K_F64;
}

tk_status tk_library_make_copy(const tk_library_call *call, tk_library_plan *plan) {
    const tk_library_tensor *x = &call->tensors[0], *y = &call->tensors[1];
    tk_library_kernel k;
    shape s = {0};
    mover m;
    TK_TRY(tk_library_need_same(call, 0, "x", 1, "y"));
    TK_TRY(check_target(call, y));
    if (x->element != y->element && !(converts(x->element) && converts(y->element)))
        return tk_library_fail(call, TK_DTYPE_ERROR,
                               "x has elements %s, y %s; only f16, bf16, f32, f64 are converted",
                               tk_kscalar_text(x->element), tk_kscalar_text(y->element));
    collect(x, y, &s);
    cut_units(x, y, call->schedule->vector, &s);
    TK_TRY(open(call, plan, &s, &k, &m));
    m.x = tk_library_bind_tensor(&k, "x", 0, x->element, TK_KACCESS_READ,
                                 s.lanes * tk_kscalar_bytes(x->element));
    m.y = tk_library_bind_tensor(&k, "y", 1, y->element, TK_KACCESS_WRITE,
                                 s.lanes * tk_kscalar_bytes(y->element));
    bind_axes(&m, &s);
    put_body(&m);
    return tk_library_close(&k);
}

static tk_val splat(const mover *m, tk_val value) {
    tk_val parts[TK_LIBRARY_MOST_LANES];
    for (int i = 0; i < m->lanes; i++) parts[i] = value;
    return tk_k_vector(m->b, parts, m->lanes);
}

tk_status tk_library_make_fill(const tk_library_call *call, tk_library_plan *plan) {
    const tk_library_tensor *y = &call->tensors[0];
    tk_library_kernel k;
    shape s = {0};
    mover m;
    TK_TRY(check_target(call, y));
    collect(NULL, y, &s);
    cut_units(NULL, y, call->schedule->vector, &s);
    TK_TRY(open(call, plan, &s, &k, &m));
    m.y = tk_library_bind_tensor(&k, "y", 0, y->element, TK_KACCESS_WRITE,
                                 s.lanes * tk_kscalar_bytes(y->element));
    bind_axes(&m, &s);
    m.value = splat(&m, tk_library_bind_bits(&k, "value", y->element, call->numbers[0]));
    put_body(&m);
    return tk_library_close(&k);
}

void tk_library_choose_copy(const tk_library_tensor *tensors, tk_library_schedule *out) {
    (void)tensors;
    out->threads = 256;
    out->vector = 16;
    out->per_thread = 4;
}
void tk_library_choose_fill(const tk_library_tensor *tensors, tk_library_schedule *out) {
    tk_library_choose_copy(tensors, out);
}
