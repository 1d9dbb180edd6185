/* What the tests of the CPU's bodies share: strided samples, reading and writing elements of any
 * dtype as wide values, calling a body, and comparing.
 *
 * Samples have one of several layouts; the memory around a view's elements holds a pattern that the
 * check after a call finds changed if a body wrote where it must not. */
#ifndef CPU_OPS_BODY_CHECK_H
#define CPU_OPS_BODY_CHECK_H

#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "array/executor.h"
#include "base/half.h"
#include "base/pool.h"
#include "cpu/body_ewise.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define UNUSED __attribute__((unused))

/* ---- wide values ---- */

typedef long double real;
__extension__ typedef __int128 big;
__extension__ typedef unsigned __int128 unsigned_big;

typedef struct wide {
    real re, im; /* floats and complex */
    big integer; /* integers and bool */
} wide;

UNUSED static bool is_whole(tk_dtype dtype) { return dtype <= TK_INT64; }

#define TEST_INTEGERS(X)                                                                           \
    X(TK_UINT8, uint8_t)                                                                           \
    X(TK_UINT16, uint16_t)                                                                         \
    X(TK_UINT32, uint32_t)                                                                         \
    X(TK_UINT64, uint64_t)                                                                         \
    X(TK_INT8, int8_t)                                                                             \
    X(TK_INT16, int16_t)                                                                           \
    X(TK_INT32, int32_t)                                                                           \
    X(TK_INT64, int64_t)

UNUSED static wide wide_real(real value) { return (wide){value, 0, 0}; }
UNUSED static wide wide_int(big value) { return (wide){(real)value, 0, value}; }

UNUSED static wide wide_read(tk_dtype dtype, const void *at) {
    switch (dtype) {
#define READ(id, type)                                                                             \
    case id:                                                                                       \
        return wide_int(*(const type *)at);
        TEST_INTEGERS(READ)
#undef READ
    case TK_BOOL:
        return wide_int(*(const uint8_t *)at != 0);
    case TK_FLOAT16:
        return wide_real(tk_f16_to_f32(*(const uint16_t *)at));
    case TK_BFLOAT16:
        return wide_real(tk_bf16_to_f32(*(const uint16_t *)at));
    case TK_FLOAT32:
        return wide_real(*(const float *)at);
    case TK_FLOAT64:
        return wide_real(*(const double *)at);
    default:
        return (wide){((const float *)at)[0], ((const float *)at)[1], 0};
    }
}

/* Integers wrap; floats are rounded, to halves by way of double. */
UNUSED static void wide_write(tk_dtype dtype, void *at, wide value) {
    switch (dtype) {
#define WRITE(id, type)                                                                            \
    case id:                                                                                       \
        *(type *)at = (type)value.integer;                                                         \
        break;
        TEST_INTEGERS(WRITE)
#undef WRITE
    case TK_BOOL:
        *(uint8_t *)at = value.integer != 0;
        break;
    case TK_FLOAT16:
        *(uint16_t *)at = tk_f64_to_f16((double)value.re);
        break;
    case TK_BFLOAT16:
        *(uint16_t *)at = tk_f64_to_bf16((double)value.re);
        break;
    case TK_FLOAT32:
        *(float *)at = (float)value.re;
        break;
    case TK_FLOAT64:
        *(double *)at = (double)value.re;
        break;
    default:
        ((float *)at)[0] = (float)value.re;
        ((float *)at)[1] = (float)value.im;
    }
}

/* A value as the dtype holds it. */
UNUSED static wide wide_round(tk_dtype dtype, wide value) {
    uint64_t element = 0;
    wide_write(dtype, &element, value);
    return wide_read(dtype, &element);
}

UNUSED static real epsilon_of(tk_dtype dtype) {
    return dtype == TK_FLOAT16    ? 0x1p-10L
           : dtype == TK_BFLOAT16 ? 0x1p-7L
           : dtype == TK_FLOAT64  ? 0x1p-52L
                                  : 0x1p-23L;
}
UNUSED static real least_normal_of(tk_dtype dtype) {
    return dtype == TK_FLOAT16 ? 0x1p-14L : dtype == TK_FLOAT64 ? 0x1p-1022L : 0x1p-126L;
}

/* Whether two parts agree within `units` in the last place of the expected one; NaN with NaN, and
 * infinities exactly, but for values next to the largest. */
UNUSED static bool part_close(tk_dtype dtype, real got, real expected, real size, real units) {
    if (isnan(got) || isnan(expected)) return isnan(got) && isnan(expected);
    if (got == expected) return true;
    if (isinf(got) || isinf(expected)) return false;
    if (size < least_normal_of(dtype)) size = least_normal_of(dtype);
    return fabsl(got - expected) <= units * epsilon_of(dtype) * size;
}

UNUSED static bool wide_close(tk_dtype dtype, wide got, wide expected, real units) {
    if (is_whole(dtype)) return got.integer == expected.integer;
    if (dtype != TK_COMPLEX64)
        return part_close(dtype, got.re, expected.re, fabsl(expected.re), units);
    real size = hypotl(expected.re, expected.im);
    return part_close(dtype, got.re, expected.re, size, units) &&
           part_close(dtype, got.im, expected.im, size, units);
}

/* ---- random values ---- */

static uint64_t random_state = 0x9e3779b97f4a7c15u;

UNUSED static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* In [-1, 1). */
UNUSED static double random_unit(void) { return (double)(int64_t)random_bits() * 0x1p-63; }

/* ---- samples ---- */

typedef enum layout { DENSE, REVERSED, SPACED, TRANSPOSED, STILL, LAYOUTS } layout;

static const char *const layout_names[] UNUSED = {"dense", "reversed", "spaced", "transposed",
                                                  "still"};

typedef struct sample {
    tk_strided view;
    char *memory;
    size_t bytes;
} sample;

/* A view of `shape` in memory of its own: SPACED uses every second element of each axis, REVERSED
 * has negative strides, TRANSPOSED the first axis innermost, STILL stride 0 on the last axis (so
 * all of a row is one element). Elements are zero. */
UNUSED static sample sample_new(tk_dtype dtype, int rank, const int64_t *shape, layout how) {
    sample s = {.view = {.dtype = dtype, .rank = rank, .size = 1}};
    int64_t size = (int64_t)tk_dtype_size(dtype), span = 1, spacing = how == SPACED ? 2 : 1,
            first = 0;
    for (int k = 0; k < rank; k++) {
        int i = how == TRANSPOSED ? k : rank - 1 - k;
        s.view.shape[i] = shape[i];
        s.view.size *= shape[i];
        bool still = how == STILL && i == rank - 1;
        s.view.strides[i] = still ? 0 : how == REVERSED ? -span * spacing : span * spacing;
        if (how == REVERSED && shape[i]) first += (shape[i] - 1) * span;
        if (!still) span *= shape[i] * spacing;
    }
    s.bytes = (size_t)((span + 8) * size);
    s.memory = malloc(s.bytes);
    memset(s.memory, 0x5a, s.bytes);
    s.view.data = s.memory + (first + 4) * size;
    return s;
}

UNUSED static void sample_free(sample *s) { free(s->memory); }

/* The address of the element at a row-major index. */
UNUSED static void *element_at(const tk_strided *view, int64_t index) {
    char *at = view->data;
    for (int i = view->rank - 1; i >= 0; i--) {
        at += index % view->shape[i] * view->strides[i] * (int64_t)tk_dtype_size(view->dtype);
        index /= view->shape[i];
    }
    return at;
}

UNUSED static wide sample_read(const tk_strided *view, int64_t index) {
    return wide_read(view->dtype, element_at(view, index));
}

UNUSED static void sample_write(const tk_strided *view, int64_t index, wide value) {
    wide_write(view->dtype, element_at(view, index), value);
}

/* Moderate values: reals in -3..3, small integers that any dtype holds, negative where signed. */
UNUSED static wide moderate(tk_dtype dtype) {
    if (is_whole(dtype)) {
        bool is_signed = tk_dtype_kind(dtype) == TK_KIND_SIGNED;
        return wide_int((int)(random_bits() % 100) - (is_signed ? 50 : 0));
    }
    return (wide){3 * random_unit(), 3 * random_unit(), 0};
}

UNUSED static sample sample_moderate(tk_dtype dtype, int rank, const int64_t *shape, layout how) {
    sample s = sample_new(dtype, rank, shape, how);
    for (int64_t i = 0; i < s.view.size; i++) sample_write(&s.view, i, moderate(dtype));
    return s;
}

/* The same values in another layout. */
UNUSED static sample sample_copy(const tk_strided *from, layout how) {
    sample s = sample_new(from->dtype, from->rank, from->shape, how);
    for (int64_t i = 0; i < from->size; i++)
        memcpy(element_at(&s.view, i), element_at(from, i), tk_dtype_size(from->dtype));
    return s;
}

/* Nothing outside the view's span has changed. */
UNUSED static void sample_check_edges(const sample *s) {
    size_t margin = 4 * tk_dtype_size(s->view.dtype);
    for (size_t i = 0; i < margin; i++) {
        assert_int_equal(s->memory[i], 0x5a);
        assert_int_equal(s->memory[s->bytes - 1 - i], 0x5a);
    }
}

/* ---- calls ---- */

#define MOST_INPUTS 8

static tk_fault last_fault UNUSED;

/* Runs the body of `op`; outputs are views of dense memory. */
UNUSED static tk_status call_body(tk_op op, const void *attrs, int n_inputs,
                                  const tk_strided *inputs, int n_outputs,
                                  const tk_strided *outputs) {
    last_fault = (tk_fault){.position = INT64_MAX};
    tk_body_call call = {.op = op,
                         .attrs = attrs,
                         .n_inputs = n_inputs,
                         .inputs = inputs,
                         .n_outputs = n_outputs,
                         .outputs = outputs,
                         .fault = &last_fault};
    assert_non_null(tk_cpu_executor.bodies[op]);
    return tk_cpu_executor.bodies[op](&call);
}

/* One output of a type, from up to MOST_INPUTS samples. */
UNUSED static sample call_sample(tk_op op, const void *attrs, int n_inputs, const sample *inputs,
                                 tk_dtype dtype, int rank, const int64_t *shape) {
    tk_strided views[MOST_INPUTS];
    for (int i = 0; i < n_inputs; i++) views[i] = inputs[i].view;
    sample out = sample_new(dtype, rank, shape, DENSE);
    assert_int_equal(call_body(op, attrs, n_inputs, views, 1, &out.view), TK_OK);
    sample_check_edges(&out);
    return out;
}

UNUSED static void fail_at(const char *what, tk_dtype dtype, int64_t index, wide got,
                           wide expected) {
    if (is_whole(dtype))
        fail_msg("%s %s: element %lld is %lld, expected %lld", what, tk_dtype_name(dtype),
                 (long long)index, (long long)got.integer, (long long)expected.integer);
    fail_msg("%s %s: element %lld is %.17Lg%+.9Lgi, expected %.17Lg%+.9Lgi", what,
             tk_dtype_name(dtype), (long long)index, got.re, got.im, expected.re, expected.im);
}

/* Every element of `got` is that of `expected`, within units in the last place. */
UNUSED static void check_same(const char *what, const tk_strided *got, const tk_strided *expected,
                              real units) {
    assert_int_equal(got->size, expected->size);
    for (int64_t i = 0; i < got->size; i++) {
        wide a = sample_read(got, i), b = sample_read(expected, i);
        if (!wide_close(got->dtype, a, b, units)) fail_at(what, got->dtype, i, a, b);
    }
}

UNUSED static const tk_dtype all_dtypes[] = {
    TK_BOOL,  TK_UINT8, TK_UINT16,  TK_UINT32,   TK_UINT64,  TK_INT8,    TK_INT16,
    TK_INT32, TK_INT64, TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64, TK_COMPLEX64};

UNUSED static bool accepts(tk_op op, tk_dtype dtype) {
    switch (tk_op_of(op)->accept) {
    case TK_ACCEPT_ANY:
        return true;
    case TK_ACCEPT_NUM:
        return dtype != TK_BOOL;
    case TK_ACCEPT_REAL:
        return dtype != TK_COMPLEX64;
    case TK_ACCEPT_INEXACT:
        return tk_dtype_is_inexact(dtype);
    case TK_ACCEPT_FLOAT:
        return tk_dtype_is_float(dtype);
    case TK_ACCEPT_INT:
        return tk_dtype_is_integer(dtype);
    case TK_ACCEPT_BITS:
        return is_whole(dtype);
    case TK_ACCEPT_BOOL:
        return dtype == TK_BOOL;
    }
    return false;
}

#endif
