/* Arrays with known values, and comparisons of type and values, for the tests of builders. */
#ifndef SUPPORT_BUILD_CHECK_H
#define SUPPORT_BUILD_CHECK_H

#include "support/arrays.h"

#include <math.h>
#include <string.h>

#define CHECK_MOST 256

/* A scope in a context that the group's setup made. */
static inline int open_context(void **state) {
    *state = make_context();
    return 0;
}

static inline int close_context(void **state) {
    tk_context_release(*state);
    return 0;
}

/* (7 i mod 11) - 5: small integers of both signs, in every dtype exact; unsigned wrap. */
static inline tk_array mixed(tk_context *ctx, tk_dtype dtype, tk_shape shape) {
    double values[CHECK_MOST];
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    assert_true(size <= CHECK_MOST);
    for (int64_t i = 0; i < size; i++) values[i] = (double)(7 * i % 11 - 5);
    return tk_astype(tk_from_data(ctx, values, shape, TK_FLOAT64), dtype);
}

/* 0, 1, 2, ... */
static inline tk_array ramp(tk_context *ctx, tk_dtype dtype, tk_shape shape) {
    double values[CHECK_MOST];
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    assert_true(size <= CHECK_MOST);
    for (int64_t i = 0; i < size; i++) values[i] = (double)i;
    return tk_astype(tk_from_data(ctx, values, shape, TK_FLOAT64), dtype);
}

static inline bool is_close(double value, double expected, double tolerance) {
    if (isnan(expected)) return isnan(value);
    if (value == expected) return true;
    return fabs(value - expected) <= tolerance * fmax(1, fabs(expected));
}

/* Dtype, shape and values; `tolerance` relative above 1, absolute below. */
static inline void check_values(tk_array a, tk_dtype dtype, tk_shape shape, double tolerance,
                                int64_t count, const double *expected, int line) {
    assert_ok_at(tk_array_status(a), __FILE__, line);
    _assert_int_equal(tk_array_dtype(a), dtype, __FILE__, line);
    tk_shape given = tk_array_shape(a);
    _assert_int_equal((uint64_t)given.count, (uint64_t)shape.count, __FILE__, line);
    for (int64_t i = 0; i < shape.count; i++)
        _assert_int_equal((uint64_t)given.items[i], (uint64_t)shape.items[i], __FILE__, line);
    double values[CHECK_MOST];
    _assert_int_equal((uint64_t)tk_array_size(a), (uint64_t)count, __FILE__, line);
    tk_array wide = tk_astype(dtype == TK_COMPLEX64 ? tk_view(a, TK_FLOAT32) : a, TK_FLOAT64);
    int64_t numbers = dtype == TK_COMPLEX64 ? 2 * count : count;
    assert_ok_at(tk_copy_out(wide, values, (size_t)numbers * sizeof *values), __FILE__, line);
    for (int64_t i = 0; i < count; i++) {
        double value = values[dtype == TK_COMPLEX64 ? 2 * i : i];
        if (is_close(value, expected[i], tolerance)) continue;
        print_error("line %d: element %lld is %.9g, expected %.9g\n", line, (long long)i, value,
                    expected[i]);
        _fail(__FILE__, line);
    }
}

#define CHECK_NEAR(array, dtype, shape, tolerance, ...)                                            \
    do {                                                                                           \
        const double check_expected[] = {__VA_ARGS__};                                             \
        check_values((array), (dtype), (shape), (tolerance),                                       \
                     (int64_t)(sizeof check_expected / sizeof(double)), check_expected, __LINE__); \
    } while (0)

#define CHECK(array, dtype, shape, ...) CHECK_NEAR(array, dtype, shape, 0, __VA_ARGS__)

/* An array without elements. */
#define CHECK_EMPTY(array, dtype, shape)                                                           \
    check_values((array), (dtype), (shape), 0, 0, NULL, __LINE__)

/* The array carries an error of that code whose text has `part` in it. */
static inline void check_error(tk_array a, tk_status code, const char *part, int line) {
    tk_status status = tk_array_status(a);
    if (status != code || !strstr(tk_error_message(), part))
        print_error("line %d: %s: %s\n", line, tk_status_name(status), tk_error_message());
    _assert_int_equal(status, code, __FILE__, line);
    _assert_true(strstr(tk_error_message(), part) != NULL, part, __FILE__, line);
}
#define CHECK_ERROR(array, code, part) check_error((array), (code), (part), __LINE__)

/* Both handles are one node: nothing was built. */
#define CHECK_SAME(a, b) assert_true(tk_array_same((a), (b)))

#endif
