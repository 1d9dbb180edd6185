/* Short words for the operations that the library's kernels are written with, over the public
 * builder. Each takes the builder first; errors stick in it, so nothing is checked here.
 *
 * A call emits where it is made, and C does not say which argument is evaluated first: at most one
 * argument of a call may emit (constants do not), else compilers make kernels with other texts.
 * tests/library/test_texts.c finds what breaks this. */
#ifndef LIBRARY_EMIT_H
#define LIBRARY_EMIT_H

#include "tiki/kernel.h"

typedef tk_kvalue *tk_val;
typedef tk_kernel_builder tk_b;

#define TK_LIBRARY_MOST_LANES 16

static inline tk_ktype tk_no_type(void) { return (tk_ktype){0}; }

static inline tk_val tk_op1(tk_b *b, tk_kopcode code, tk_val a) {
    return tk_kernel_op(b, code, 1, &a, 0, NULL, tk_no_type());
}
static inline tk_val tk_op2(tk_b *b, tk_kopcode code, tk_val a, tk_val c) {
    return tk_kernel_op(b, code, 2, (tk_val[]){a, c}, 0, NULL, tk_no_type());
}
static inline tk_val tk_op3(tk_b *b, tk_kopcode code, tk_val a, tk_val c, tk_val d) {
    return tk_kernel_op(b, code, 3, (tk_val[]){a, c, d}, 0, NULL, tk_no_type());
}

#define TK_EMIT1(name, code)                                                                       \
    static inline tk_val name(tk_b *b, tk_val a) { return tk_op1(b, TK_KOP_##code, a); }
#define TK_EMIT2(name, code)                                                                       \
    static inline tk_val name(tk_b *b, tk_val a, tk_val c) {                                       \
        return tk_op2(b, TK_KOP_##code, a, c);                                                     \
    }
#define TK_EMIT3(name, code)                                                                       \
    static inline tk_val name(tk_b *b, tk_val a, tk_val c, tk_val d) {                             \
        return tk_op3(b, TK_KOP_##code, a, c, d);                                                  \
    }
TK_EMIT2(tk_k_add, add)
TK_EMIT2(tk_k_sub, sub)
TK_EMIT2(tk_k_mul, mul)
TK_EMIT2(tk_k_div, div)
TK_EMIT2(tk_k_max, max)
TK_EMIT2(tk_k_smin, smin)
TK_EMIT2(tk_k_udiv, udiv)
TK_EMIT2(tk_k_sdiv, sdiv)
TK_EMIT2(tk_k_and, and)
TK_EMIT2(tk_k_xor, xor)
TK_EMIT2(tk_k_shl, shl)
TK_EMIT2(tk_k_ushr, ushr)
TK_EMIT2(tk_k_offset, offset)
TK_EMIT1(tk_k_sqrt, sqrt)
TK_EMIT1(tk_k_rcp, rcp)
TK_EMIT1(tk_k_exp, exp)
TK_EMIT3(tk_k_fma, fma)
TK_EMIT3(tk_k_select, select)

static inline tk_val tk_k_i32(tk_b *b, int64_t value) { return tk_kernel_int(b, TK_K_I32, value); }
static inline tk_val tk_k_i64(tk_b *b, int64_t value) { return tk_kernel_int(b, TK_K_I64, value); }
static inline tk_val tk_k_f32(tk_b *b, double value) { return tk_kernel_float(b, TK_K_F32, value); }

static inline tk_val tk_k_axis(tk_b *b, tk_kopcode code, const char *axis) {
    tk_kattr attr = {.id = TK_KA_axis, .word = axis};
    return tk_kernel_op(b, code, 0, NULL, 1, &attr, tk_no_type());
}
static inline tk_val tk_k_thread(tk_b *b) { return tk_k_axis(b, TK_KOP_thread_index, "x"); }
static inline tk_val tk_k_block(tk_b *b) { return tk_k_axis(b, TK_KOP_block_index, "x"); }

static inline tk_val tk_k_icmp(tk_b *b, const char *how, tk_val a, tk_val c) {
    tk_kattr attr = {.id = TK_KA_icmp, .word = how};
    return tk_kernel_op(b, TK_KOP_icmp, 2, (tk_val[]){a, c}, 1, &attr, tk_no_type());
}
static inline tk_val tk_k_fcmp(tk_b *b, const char *how, tk_val a, tk_val c) {
    tk_kattr attr = {.id = TK_KA_fcmp, .word = how};
    return tk_kernel_op(b, TK_KOP_fcmp, 2, (tk_val[]){a, c}, 1, &attr, tk_no_type());
}

/* An i32 as an i64, with sign. */
static inline tk_val tk_k_wide(tk_b *b, tk_val a) {
    return tk_kernel_op(b, TK_KOP_extend_signed, 1, &a, 0, NULL, tk_ktype_scalar(TK_K_I64));
}
static inline tk_val tk_k_narrow(tk_b *b, tk_val a) {
    return tk_kernel_op(b, TK_KOP_truncate, 1, &a, 0, NULL, tk_ktype_scalar(TK_K_I32));
}
static inline tk_val tk_k_float_of(tk_b *b, tk_val a) {
    return tk_kernel_op(b, TK_KOP_float_from_signed, 1, &a, 0, NULL, tk_ktype_scalar(TK_K_F32));
}

/* The place of an element in a matrix, line pitch + at, in i64; `line` is i32 or i64, `pitch` i64,
 * `at` i32. */
static inline tk_val tk_k_place(tk_b *b, tk_val line, tk_val pitch, tk_val at) {
    tk_val along = tk_k_wide(b, at);
    if (line && tk_kvalue_type(line).scalar == TK_K_I32) line = tk_k_wide(b, line);
    return tk_k_add(b, tk_k_mul(b, line, pitch), along);
}

/* A float as another type; the same value when it has it. */
static inline tk_val tk_k_convert(tk_b *b, tk_val a, tk_kscalar to) {
    if (!a || tk_kvalue_type(a).scalar == to) return a;
    return tk_kernel_op(b, TK_KOP_convert, 1, &a, 0, NULL, tk_ktype_scalar(to));
}

/* The same bits as another scalar type. */
static inline tk_val tk_k_as(tk_b *b, tk_val a, tk_kscalar to) {
    return tk_kernel_op(b, TK_KOP_bitcast, 1, &a, 0, NULL, tk_ktype_scalar(to));
}

/* ---- memory ---- */

static inline tk_ktype tk_k_lanes(tk_kscalar element, int lanes) {
    return lanes == 1 ? tk_ktype_scalar(element) : tk_ktype_vector(element, lanes);
}

static inline tk_val tk_k_load(tk_b *b, tk_val pointer, int lanes) {
    tk_kscalar element = (tk_kscalar)tk_kvalue_type(pointer).scalar;
    return tk_kernel_op(b, TK_KOP_load, 4, (tk_val[]){pointer, NULL, NULL, NULL}, 0, NULL,
                        tk_k_lanes(element, lanes));
}
/* The other value (NULL: zero) where the condition, when there is one, does not hold. */
static inline tk_val tk_k_load_or(tk_b *b, tk_val pointer, int lanes, tk_val condition,
                                  tk_val other) {
    tk_kscalar element = (tk_kscalar)tk_kvalue_type(pointer).scalar;
    return tk_kernel_op(b, TK_KOP_load, 4,
                        (tk_val[]){pointer, condition, condition ? other : NULL, NULL}, 0, NULL,
                        tk_k_lanes(element, lanes));
}
static inline tk_val tk_k_load_if(tk_b *b, tk_val pointer, int lanes, tk_val condition) {
    return tk_k_load_or(b, pointer, lanes, condition, NULL);
}
static inline void tk_k_store_if(tk_b *b, tk_val pointer, tk_val value, tk_val condition) {
    tk_kernel_op(b, TK_KOP_store, 4, (tk_val[]){pointer, value, condition, NULL}, 0, NULL,
                 tk_no_type());
}
static inline void tk_k_store(tk_b *b, tk_val pointer, tk_val value) {
    tk_k_store_if(b, pointer, value, NULL);
}

static inline tk_val tk_k_extract(tk_b *b, tk_val vector, int index) {
    tk_kattr attr = {.id = TK_KA_index, .value = index};
    if (!vector || tk_kvalue_type(vector).lanes == 1) return vector;
    return tk_kernel_op(b, TK_KOP_extract, 1, &vector, index != 0, &attr,
                        tk_ktype_scalar((tk_kscalar)tk_kvalue_type(vector).scalar));
}

/* `lanes` scalars of one type as a vector; one of them stays a scalar. */
static inline tk_val tk_k_vector(tk_b *b, tk_val *elements, int lanes) {
    if (lanes == 1 || !elements[0]) return elements[0];
    return tk_kernel_op(b, TK_KOP_vector, (size_t)lanes, elements, 0, NULL,
                        tk_ktype_vector((tk_kscalar)tk_kvalue_type(elements[0]).scalar, lanes));
}

/* `lanes` elements at a pointer as scalars of f32, and back. */
static inline void tk_k_load_f32(tk_b *b, tk_val pointer, int lanes, tk_val *out) {
    tk_val vector = tk_k_load(b, pointer, lanes);
    for (int i = 0; i < lanes; i++) out[i] = tk_k_convert(b, tk_k_extract(b, vector, i), TK_K_F32);
}
static inline void tk_k_store_f32_if(tk_b *b, tk_val pointer, int lanes, const tk_val *values,
                                     tk_val condition) {
    tk_val narrow[TK_LIBRARY_MOST_LANES];
    tk_kscalar element = (tk_kscalar)tk_kvalue_type(pointer).scalar;
    for (int i = 0; i < lanes; i++) narrow[i] = tk_k_convert(b, values[i], element);
    tk_val list[] = {pointer, tk_k_vector(b, narrow, lanes), condition, NULL};
    tk_kernel_op(b, TK_KOP_store, 4, list, 0, NULL, tk_no_type());
}
static inline void tk_k_store_f32(tk_b *b, tk_val pointer, int lanes, const tk_val *values) {
    tk_k_store_f32_if(b, pointer, lanes, values, NULL);
}

/* ---- order, lanes, regions ---- */

static inline void tk_k_barrier(tk_b *b) {
    tk_kernel_op(b, TK_KOP_barrier, 0, NULL, 0, NULL, tk_no_type());
}

static inline tk_val tk_k_butterfly(tk_b *b, tk_val value, int distance) {
    tk_kattr attr = {.id = TK_KA_mode, .word = "butterfly"};
    return tk_kernel_op(b, TK_KOP_shuffle, 3, (tk_val[]){value, tk_k_i32(b, distance), NULL}, 1,
                        &attr, tk_no_type());
}

/* ---- clusters ---- */

static inline tk_val tk_k_cluster_block(tk_b *b) { return tk_k_axis(b, TK_KOP_cluster_block, "x"); }

static inline void tk_k_cluster_arrive(tk_b *b) {
    tk_kernel_op(b, TK_KOP_cluster_arrive, 0, NULL, 0, NULL, tk_no_type());
}
/* Execution alone: what was stored before is not seen behind the wait, and nobody waits for it. */
static inline void tk_k_cluster_arrive_relaxed(tk_b *b) {
    tk_kattr attr = {.id = TK_KA_relaxed, .value = 1};
    tk_kernel_op(b, TK_KOP_cluster_arrive, 0, NULL, 1, &attr, tk_no_type());
}
static inline void tk_k_cluster_wait(tk_b *b) {
    tk_kernel_op(b, TK_KOP_cluster_wait, 0, NULL, 0, NULL, tk_no_type());
}

/* The same place in the shared memory of another block of the cluster. */
static inline tk_val tk_k_peer(tk_b *b, tk_val pointer, tk_val rank) {
    tk_ktype far = tk_ktype_pointer((tk_kscalar)tk_kvalue_type(pointer).scalar, TK_KS_CLUSTER);
    tk_val cast = tk_kernel_op(b, TK_KOP_pointer_cast, 1, &pointer, 0, NULL, far);
    return tk_kernel_op(b, TK_KOP_peer, 2, (tk_val[]){cast, rank}, 0, NULL, far);
}

static inline void tk_k_end(tk_b *b) { tk_kernel_end(b, 0, NULL, NULL); }
static inline void tk_k_else(tk_b *b) { tk_kernel_else(b, 0, NULL); }

static inline tk_val tk_k_shared(tk_b *b, tk_kscalar element, const char *layout) {
    tk_kattr attr = {.id = TK_KA_align, .value = 16};
    tk_val buffer =
        tk_kernel_op(b, TK_KOP_shared, 0, NULL, 1, &attr, tk_ktype_of_shared(b, element, layout));
    return tk_kernel_op(b, TK_KOP_address, 1, &buffer, 0, NULL,
                        tk_ktype_pointer(element, TK_KS_SHARED));
}

/* The block's number times `each`, as an i64. */
static inline tk_val tk_k_block_times(tk_b *b, int64_t each) {
    return tk_k_mul(b, tk_k_wide(b, tk_k_block(b)), tk_k_i64(b, each));
}

/* grid (ceildiv(count, each), 1, 1) */
static inline void tk_k_grid(tk_b *b, tk_val count, int64_t each) {
    int32_t one = tk_kexpr_const(b, 1);
    tk_kernel_grid(
        b, tk_kexpr_binary(b, TK_KX_CEILDIV, tk_kexpr_param(b, count), tk_kexpr_const(b, each)),
        one, one);
}

/* A parameter is a multiple of a number. */
static inline void tk_k_require_whole(tk_b *b, tk_val param, int64_t of) {
    int32_t rest = tk_kexpr_binary(b, TK_KX_MOD, tk_kexpr_param(b, param), tk_kexpr_const(b, of));
    tk_kernel_require(b, rest, TK_KR_EQ, tk_kexpr_const(b, 0));
}
static inline void tk_k_require_from(tk_b *b, tk_val param, int64_t least) {
    tk_kernel_require(b, tk_kexpr_param(b, param), TK_KR_GE, tk_kexpr_const(b, least));
}

#endif
