/* Chooses the variant, and takes each call of vec.h to its function: f32 and exact f64 from the
 * variant's table, half types through f32 in blocks that stay in the first-level cache, the rest
 * from the portable files. */
#include "cpu/vec.h"

#include <assert.h>
#include <cpuid.h>
#include <stdatomic.h>
#include <stddef.h>

#include "cpu/vec_generic.h"

#define BLOCK 1024

static _Atomic(const tk_vec_table *) table_in_use;

static const tk_vec_table *const tables[TK_VEC_VARIANT_COUNT] = {
    [TK_VEC_BASE] = &tk_vec_table_base,
    [TK_VEC_AVX2] = &tk_vec_table_avx2,
    [TK_VEC_AVX512] = &tk_vec_table_avx512,
};

static bool has_f16c(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

bool tk_vec_variant_usable(tk_vec_variant variant) {
    if (variant == TK_VEC_BASE) return true;
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (variant == TK_VEC_AVX2) return avx2;
    return variant == TK_VEC_AVX512 && avx2 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

tk_vec_variant tk_vec_variant_best(void) {
    int variant = TK_VEC_VARIANT_COUNT - 1;
    while (!tk_vec_variant_usable((tk_vec_variant)variant)) variant--;
    return (tk_vec_variant)variant;
}

const char *tk_vec_variant_name(tk_vec_variant variant) { return tables[variant]->name; }

bool tk_vec_variant_use(tk_vec_variant variant) {
    if (!tk_vec_variant_usable(variant)) return false;
    atomic_store(&table_in_use, tables[variant]);
    return true;
}

const tk_vec_table *tk_vec_table_get(void) {
    const tk_vec_table *table = atomic_load_explicit(&table_in_use, memory_order_acquire);
    if (table) return table;
    tk_vec_variant_use(tk_vec_variant_best());
    return atomic_load_explicit(&table_in_use, memory_order_acquire);
}

tk_vec_variant tk_vec_variant_in_use(void) {
    const tk_vec_table *table = tk_vec_table_get();
    int variant = 0;
    while (tables[variant] != table) variant++;
    return (tk_vec_variant)variant;
}

static bool is_half(tk_dtype dtype) { return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16; }

bool tk_vec_unary_has(tk_vec_unary_op op, tk_dtype dtype) {
    return tk_dtype_is_float(dtype) ||
           (tk_dtype_is_integer(dtype) && tk_vec_unary_integer(op, dtype));
}

static void unary_half(tk_vec_unary_fn *function, tk_dtype dtype, const uint16_t *x, uint16_t *out,
                       int64_t count) {
    float block[BLOCK];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t part = count - i < BLOCK ? count - i : BLOCK;
        tk_vec_convert(dtype, TK_FLOAT32, x + i, block, part);
        function(block, block, part);
        tk_vec_convert(TK_FLOAT32, dtype, block, out + i, part);
    }
}

void tk_vec_unary(tk_vec_unary_op op, tk_dtype dtype, const void *x, void *out, int64_t count) {
    assert(tk_vec_unary_has(op, dtype));
    const tk_vec_table *table = tk_vec_table_get();
    if (dtype == TK_FLOAT32) {
        table->unary_f32[op](x, out, count);
    } else if (is_half(dtype)) {
        unary_half(table->unary_f32[op], dtype, x, out, count);
    } else if (dtype == TK_FLOAT64) {
        tk_vec_unary_fn *fast = table->unary_f64[op];
        (fast ? fast : tk_vec_unary_f64_libm(op))(x, out, count);
    } else {
        tk_vec_unary_integer(op, dtype)(x, out, count);
    }
}

bool tk_vec_binary_has(tk_vec_binary_op op, tk_dtype dtype) {
    return tk_dtype_is_float(dtype) || (tk_dtype_is_integer(dtype) && op != TK_VEC_POW);
}

/* Converts the operands of elements [i, i + part) of a half array to floats. */
static void widen_operands(tk_dtype dtype, tk_vec_mode mode, const uint16_t *a, const uint16_t *b,
                           int64_t i, int64_t part, float *wide_a, float *wide_b) {
    bool a_scalar = mode == TK_VEC_SV, b_scalar = mode == TK_VEC_VS;
    tk_vec_convert(dtype, TK_FLOAT32, a + (a_scalar ? 0 : i), wide_a, a_scalar ? 1 : part);
    tk_vec_convert(dtype, TK_FLOAT32, b + (b_scalar ? 0 : i), wide_b, b_scalar ? 1 : part);
}

static void binary_half(tk_vec_binary_op op, tk_dtype dtype, tk_vec_mode mode, const uint16_t *a,
                        const uint16_t *b, uint16_t *out, int64_t count) {
    float wide_a[BLOCK], wide_b[BLOCK], result[BLOCK];
    tk_vec_binary_fn *function = tk_vec_table_get()->binary_f32[op][mode];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t part = count - i < BLOCK ? count - i : BLOCK;
        widen_operands(dtype, mode, a, b, i, part, wide_a, wide_b);
        function(wide_a, wide_b, result, part);
        tk_vec_convert(TK_FLOAT32, dtype, result, out + i, part);
    }
}

void tk_vec_binary(tk_vec_binary_op op, tk_dtype dtype, tk_vec_mode mode, const void *a,
                   const void *b, void *out, int64_t count) {
    assert(tk_vec_binary_has(op, dtype));
    const tk_vec_table *table = tk_vec_table_get();
    if (dtype == TK_FLOAT32) {
        table->binary_f32[op][mode](a, b, out, count);
    } else if (is_half(dtype)) {
        binary_half(op, dtype, mode, a, b, out, count);
    } else if (dtype != TK_FLOAT64) {
        tk_vec_binary_integer(op, dtype)(mode, a, b, out, count);
    } else if (op == TK_VEC_POW) {
        tk_vec_pow_f64(mode, a, b, out, count);
    } else {
        table->binary_f64[op][mode](a, b, out, count);
    }
}

static void compare_half(tk_vec_compare_op op, tk_dtype dtype, tk_vec_mode mode, const uint16_t *a,
                         const uint16_t *b, uint8_t *out, int64_t count) {
    float wide_a[BLOCK], wide_b[BLOCK];
    tk_vec_compare_fn *function = tk_vec_table_get()->compare_f32[op][mode];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t part = count - i < BLOCK ? count - i : BLOCK;
        widen_operands(dtype, mode, a, b, i, part, wide_a, wide_b);
        function(wide_a, wide_b, out + i, part);
    }
}

void tk_vec_compare(tk_vec_compare_op op, tk_dtype dtype, tk_vec_mode mode, const void *a,
                    const void *b, uint8_t *out, int64_t count) {
    assert(dtype != TK_COMPLEX64);
    if (dtype == TK_FLOAT32) {
        tk_vec_table_get()->compare_f32[op][mode](a, b, out, count);
    } else if (is_half(dtype)) {
        compare_half(op, dtype, mode, a, b, out, count);
    } else {
        tk_vec_compare_generic(op, dtype, mode, a, b, out, count);
    }
}

#define WHERE(type)                                                                                \
    static void where_##type(const uint8_t *condition, const type *a, int64_t a_step,              \
                             const type *b, int64_t b_step, type *out, int64_t count) {            \
        for (int64_t i = 0; i < count; i++) out[i] = condition[i] ? a[i * a_step] : b[i * b_step]; \
    }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint64_t)

void tk_vec_where(size_t element_bytes, const uint8_t *condition, const void *a, bool scalar_a,
                  const void *b, bool scalar_b, void *out, int64_t count) {
    int64_t a_step = !scalar_a, b_step = !scalar_b;
    switch (element_bytes) {
    case 1:
        where_uint8_t(condition, a, a_step, b, b_step, out, count);
        return;
    case 2:
        where_uint16_t(condition, a, a_step, b, b_step, out, count);
        return;
    case 4:
        tk_vec_table_get()->where_4(condition, a, a_step, b, b_step, out, count);
        return;
    case 8:
        where_uint64_t(condition, a, a_step, b, b_step, out, count);
        return;
    default:
        assert(false);
    }
}

void tk_vec_axpby_f32(float a, const float *x, float b, const float *y, float *out, int64_t count) {
    tk_vec_table_get()->axpby_f32(a, x, b, y, out, count);
}
void tk_vec_axpby_f64(double a, const double *x, double b, const double *y, double *out,
                      int64_t count) {
    tk_vec_table_get()->axpby_f64(a, x, b, y, out, count);
}
void tk_vec_muladd_f32(const float *a, const float *b, const float *c, float *out, int64_t count) {
    tk_vec_table_get()->muladd_f32(a, b, c, out, count);
}
