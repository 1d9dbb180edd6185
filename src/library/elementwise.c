/* add: z = x + y.  axpy: z = alpha x + y, both operations in f32 and rounded one after the other,
 * the result once more to its type.
 *
 * Tile: threads * per_thread vectors a block. Thread t of a block loads vectors t, t + threads, ...
 * of x and y, all before it computes, so that per_thread loads are on their way at once. The last
 * block, when it is not full, goes element by element: thread t takes elements t, t + threads, ...
 * Shared memory: none. Barriers: none. Bytes: 3 n elements moved. FLOPs: n (axpy: 2 n). Roofline:
 * bandwidth: 1.02 of the copy (H200, f32, 2^27 elements). */
#include "library/emit.h"
#include "library/plan.h"

typedef struct ewise {
    tk_b *b;
    tk_val x, y, z, n;
    tk_val alpha; /* of axpy, else NULL */
    tk_val first; /* element of the block, an i64 */
    tk_val thread;
    int lanes;
    int64_t threads, per_thread;
} ewise;

/* The result replaces y. */
static void compute(const ewise *e, int lanes, const tk_val *x, tk_val *y) {
    for (int i = 0; i < lanes; i++)
        y[i] = tk_k_add(e->b, e->alpha ? tk_k_mul(e->b, e->alpha, x[i]) : x[i], y[i]);
}

static void full_block(const ewise *e) {
    tk_val x[32][TK_LIBRARY_MOST_LANES], y[32][TK_LIBRARY_MOST_LANES], at[32];
    tk_val own = tk_k_wide(e->b, tk_k_mul(e->b, e->thread, tk_k_i32(e->b, e->lanes)));
    tk_val begin = tk_k_add(e->b, e->first, own);
    for (int64_t k = 0; k < e->per_thread; k++) {
        at[k] = tk_k_add(e->b, begin, tk_k_i64(e->b, k * e->threads * e->lanes));
        tk_k_load_f32(e->b, tk_k_offset(e->b, e->x, at[k]), e->lanes, x[k]);
        tk_k_load_f32(e->b, tk_k_offset(e->b, e->y, at[k]), e->lanes, y[k]);
    }
    for (int64_t k = 0; k < e->per_thread; k++) {
        compute(e, e->lanes, x[k], y[k]);
        tk_k_store_f32(e->b, tk_k_offset(e->b, e->z, at[k]), e->lanes, y[k]);
    }
}

static void last_block(const ewise *e) {
    tk_val x, y, begin = tk_k_add(e->b, e->first, tk_k_wide(e->b, e->thread));
    tk_val i = tk_kernel_for(e->b, begin, e->n, tk_k_i64(e->b, e->threads), 1, 0, NULL, NULL);
    tk_k_load_f32(e->b, tk_k_offset(e->b, e->x, i), 1, &x);
    tk_k_load_f32(e->b, tk_k_offset(e->b, e->y, i), 1, &y);
    compute(e, 1, &x, &y);
    tk_k_store_f32(e->b, tk_k_offset(e->b, e->z, i), 1, &y);
    tk_k_end(e->b);
}

static void put_body(ewise *e) {
    int64_t of_block = e->threads * e->per_thread * e->lanes;
    tk_k_require_from(e->b, e->n, 0);
    tk_k_grid(e->b, e->n, of_block);
    tk_kernel_block(e->b, e->threads, 1, 1);
    e->thread = tk_k_thread(e->b);
    e->first = tk_k_block_times(e->b, of_block);
    tk_val end = tk_k_add(e->b, e->first, tk_k_i64(e->b, of_block));
    tk_kernel_if(e->b, tk_k_icmp(e->b, "sle", end, e->n));
    full_block(e);
    tk_k_else(e->b);
    last_block(e);
    tk_k_end(e->b);
}

static tk_status check(const tk_library_call *call) {
    static const char *const roles[] = {"x", "y", "z"};
    for (size_t i = 0; i < 3; i++) {
        TK_TRY(tk_library_need_float(call, i, roles[i]));
        TK_TRY(tk_library_need_same(call, 0, "x", i, roles[i]));
        if (call->tensors[i].element != call->tensors[0].element)
            return tk_library_fail(call, TK_DTYPE_ERROR, "x has elements %s, %s has %s",
                                   tk_kscalar_text(call->tensors[0].element), roles[i],
                                   tk_kscalar_text(call->tensors[i].element));
        if (!tk_library_is_contiguous(&call->tensors[i]))
            return tk_library_fail(call, TK_SHAPE_ERROR, "%s is not contiguous: copy it first",
                                   roles[i]);
    }
    return TK_OK;
}

static int lanes_of(const tk_library_call *call) {
    const tk_library_tensor *t = call->tensors;
    int64_t aligns[] = {tk_library_align(&t[0]), tk_library_align(&t[1]), tk_library_align(&t[2])};
    int64_t bytes = tk_kscalar_bytes(t[0].element),
            wide = tk_library_divisor(call->schedule->vector, 3, aligns);
    return (int)(wide > bytes ? wide / bytes : 1);
}

static tk_status make(const tk_library_call *call, tk_library_plan *plan, bool has_alpha) {
    tk_library_kernel k;
    tk_kscalar element = call->tensors[0].element;
    TK_TRY(check(call));
    TK_TRY(tk_library_open(plan, call->name, &k));
    ewise e = {.b = k.b,
               .lanes = lanes_of(call),
               .threads = call->schedule->threads,
               .per_thread = call->schedule->per_thread};
    int64_t align = e.lanes * tk_kscalar_bytes(element);
    e.x = tk_library_bind_tensor(&k, "x", 0, element, TK_KACCESS_READ, align);
    e.y = tk_library_bind_tensor(&k, "y", 1, element, TK_KACCESS_READ, align);
    e.z = tk_library_bind_tensor(&k, "z", 2, element, TK_KACCESS_WRITE, align);
    e.n = tk_library_bind_int(&k, "n", TK_K_I64, tk_library_size(&call->tensors[0]));
    if (has_alpha) e.alpha = tk_library_bind_f32(&k, "alpha", call->numbers[0]);
    put_body(&e);
    return tk_library_close(&k);
}

tk_status tk_library_make_add(const tk_library_call *call, tk_library_plan *plan) {
    return make(call, plan, false);
}
tk_status tk_library_make_axpy(const tk_library_call *call, tk_library_plan *plan) {
    return make(call, plan, true);
}

/* Four vectors a thread once there are blocks enough for every multiprocessor. */
void tk_library_choose_add(const tk_library_tensor *tensors, tk_library_schedule *out) {
    int64_t bytes = tk_library_size(&tensors[0]) * tk_kscalar_bytes(tensors[0].element);
    out->threads = 256;
    out->vector = 16;
    out->per_thread = bytes >= (int64_t)8 << 20 ? 4 : 1;
}
void tk_library_choose_axpy(const tk_library_tensor *tensors, tk_library_schedule *out) {
    tk_library_choose_add(tensors, out);
}
