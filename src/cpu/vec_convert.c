/* Conversion between any two dtypes, in blocks that stay in the first-level cache, through one of
 * four hub types: int64, uint64, float, double. Each source has one hub that holds all its values,
 * and each hub knows how to reach every destination, so 14 x 14 pairs need some sixty loops and
 * each value is rounded once (but for double to half, and integers beyond 2^24 to bf16, which pass
 * float).
 *
 * The half types have direct vector forms. */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/vec_table.h"

#define BLOCK 1024

typedef enum hub { HUB_I64, HUB_U64, HUB_F32, HUB_F64 } hub;

typedef union hub_block {
    int64_t i64[BLOCK];
    uint64_t u64[BLOCK];
    float f32[BLOCK];
    double f64[BLOCK];
} hub_block;

static hub hub_of(tk_dtype from) {
    if (from == TK_FLOAT64) return HUB_F64;
    if (from >= TK_FLOAT16) return HUB_F32;
    return from == TK_UINT64 ? HUB_U64 : HUB_I64;
}

#define READ(dtype, member, type)                                                                  \
    case dtype:                                                                                    \
        for (int64_t i = 0; i < count; i++) block->member[i] = ((const type *)x)[i];               \
        break;

static void read_block(tk_dtype from, const void *x, hub_block *block, int64_t count) {
    const tk_vec_table *table = tk_vec_table_get();
    switch (from) {
        READ(TK_UINT8, i64, uint8_t)
        READ(TK_UINT16, i64, uint16_t)
        READ(TK_UINT32, i64, uint32_t)
        READ(TK_INT8, i64, int8_t)
        READ(TK_INT16, i64, int16_t)
        READ(TK_INT32, i64, int32_t)
    case TK_BOOL:
        for (int64_t i = 0; i < count; i++) block->i64[i] = ((const uint8_t *)x)[i] != 0;
        break;
    case TK_INT64:
    case TK_UINT64:
    case TK_FLOAT64:
        memcpy(block, x, (size_t)count * 8);
        break;
    case TK_FLOAT32:
        memcpy(block, x, (size_t)count * 4);
        break;
    case TK_FLOAT16:
        table->f16_to_f32(x, block->f32, count);
        break;
    case TK_BFLOAT16:
        table->bf16_to_f32(x, block->f32, count);
        break;
    case TK_COMPLEX64:
        for (int64_t i = 0; i < count; i++) block->f32[i] = ((const float *)x)[2 * i];
        break;
    case TK_DTYPE_COUNT:
        assert(false);
    }
}

#define SATURATE(name, type, least, beyond, greatest)                                              \
    static inline type saturate_##name(double x) {                                                 \
        if (x != x) return 0;                                                                      \
        if (x <= least) return (type)least;                                                        \
        return x >= beyond ? greatest : (type)x;                                                   \
    }
SATURATE(uint8_t, uint8_t, 0.0, 0x1p8, UINT8_MAX)
SATURATE(uint16_t, uint16_t, 0.0, 0x1p16, UINT16_MAX)
SATURATE(uint32_t, uint32_t, 0.0, 0x1p32, UINT32_MAX)
SATURATE(uint64_t, uint64_t, 0.0, 0x1p64, UINT64_MAX)
SATURATE(int8_t, int8_t, -0x1p7, 0x1p7, INT8_MAX)
SATURATE(int16_t, int16_t, -0x1p15, 0x1p15, INT16_MAX)
SATURATE(int32_t, int32_t, -0x1p31, 0x1p31, INT32_MAX)
SATURATE(int64_t, int64_t, -0x1p63, 0x1p63, INT64_MAX)

#define WRITE(dtype, type, expression)                                                             \
    case dtype:                                                                                    \
        for (int64_t i = 0; i < count; i++) ((type *)out)[i] = (type)(expression);                 \
        break;
#define WRITE_FLOAT(dtype, type, member)                                                           \
    WRITE(dtype, type, saturate_##type((double)block->member[i]))

static void write_integers(tk_dtype to, const hub_block *block, void *out, int64_t count) {
    switch (to) {
        WRITE(TK_BOOL, uint8_t, block->u64[i] != 0)
        WRITE(TK_UINT8, uint8_t, block->u64[i])
        WRITE(TK_UINT16, uint16_t, block->u64[i])
        WRITE(TK_UINT32, uint32_t, block->u64[i])
        WRITE(TK_UINT64, uint64_t, block->u64[i])
        WRITE(TK_INT8, int8_t, block->u64[i])
        WRITE(TK_INT16, int16_t, block->u64[i])
        WRITE(TK_INT32, int32_t, block->u64[i])
        WRITE(TK_INT64, int64_t, block->u64[i])
        WRITE(TK_FLOAT32, float, block->i64[i])
        WRITE(TK_FLOAT64, double, block->i64[i])
    default:
        assert(false);
    }
}
static void write_unsigned(tk_dtype to, const hub_block *block, void *out, int64_t count) {
    switch (to) {
        WRITE(TK_FLOAT32, float, block->u64[i])
        WRITE(TK_FLOAT64, double, block->u64[i])
    default:
        write_integers(to, block, out, count);
    }
}

#define WRITE_FLOATS(member)                                                                       \
    WRITE(TK_BOOL, uint8_t, block->member[i] != 0)                                                 \
    WRITE_FLOAT(TK_UINT8, uint8_t, member)                                                         \
    WRITE_FLOAT(TK_UINT16, uint16_t, member)                                                       \
    WRITE_FLOAT(TK_UINT32, uint32_t, member)                                                       \
    WRITE_FLOAT(TK_UINT64, uint64_t, member)                                                       \
    WRITE_FLOAT(TK_INT8, int8_t, member)                                                           \
    WRITE_FLOAT(TK_INT16, int16_t, member)                                                         \
    WRITE_FLOAT(TK_INT32, int32_t, member)                                                         \
    WRITE_FLOAT(TK_INT64, int64_t, member)                                                         \
    WRITE(TK_FLOAT32, float, block->member[i])                                                     \
    WRITE(TK_FLOAT64, double, block->member[i])

static void write_f32(tk_dtype to, const hub_block *block, void *out, int64_t count) {
    switch (to) {
        WRITE_FLOATS(f32)
    default:
        assert(false);
    }
}
static void write_f64(tk_dtype to, const hub_block *block, void *out, int64_t count) {
    switch (to) {
        WRITE_FLOATS(f64)
    default:
        assert(false);
    }
}

static void write_block(hub hub, tk_dtype to, const hub_block *block, void *out, int64_t count) {
    switch (hub) {
    case HUB_I64:
        write_integers(to, block, out, count);
        break;
    case HUB_U64:
        write_unsigned(to, block, out, count);
        break;
    case HUB_F32:
        write_f32(to, block, out, count);
        break;
    case HUB_F64:
        write_f64(to, block, out, count);
        break;
    }
}

/* To half types and complex the block goes to float first. */
static void convert_block(tk_dtype from, tk_dtype to, const void *x, void *out, int64_t count) {
    hub_block block;
    float narrow[BLOCK];
    read_block(from, x, &block, count);
    if (to != TK_FLOAT16 && to != TK_BFLOAT16 && to != TK_COMPLEX64) {
        write_block(hub_of(from), to, &block, out, count);
        return;
    }
    write_block(hub_of(from), TK_FLOAT32, &block, narrow, count);
    if (to == TK_FLOAT16) tk_vec_table_get()->f32_to_f16(narrow, out, count);
    if (to == TK_BFLOAT16) tk_vec_table_get()->f32_to_bf16(narrow, out, count);
    if (to == TK_COMPLEX64)
        for (int64_t i = 0; i < count; i++)
            memcpy((float *)out + 2 * i, (float[2]){narrow[i], 0}, 8);
}

static void i32_to_f32(const int32_t *x, float *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = (float)x[i];
}
static void bool_to_f32(const uint8_t *x, float *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = x[i] != 0 ? 1.0f : 0.0f;
}

/* The pairs that hot code uses: one pass, vectors. */
static bool convert_directly(tk_dtype from, tk_dtype to, const void *x, void *out, int64_t count) {
    const tk_vec_table *table = tk_vec_table_get();
    if (from == to) {
        if (x != out) memcpy(out, x, (size_t)count * tk_dtype_size(from));
    } else if (from == TK_FLOAT16 && to == TK_FLOAT32) {
        table->f16_to_f32(x, out, count);
    } else if (from == TK_BFLOAT16 && to == TK_FLOAT32) {
        table->bf16_to_f32(x, out, count);
    } else if (from == TK_FLOAT32 && to == TK_FLOAT16) {
        table->f32_to_f16(x, out, count);
    } else if (from == TK_FLOAT32 && to == TK_BFLOAT16) {
        table->f32_to_bf16(x, out, count);
    } else if (from == TK_INT32 && to == TK_FLOAT32) {
        i32_to_f32(x, out, count);
    } else if (from == TK_BOOL && to == TK_FLOAT32) {
        bool_to_f32(x, out, count);
    } else {
        return false;
    }
    return true;
}

void tk_vec_convert(tk_dtype from, tk_dtype to, const void *x, void *out, int64_t count) {
    if (count <= 0 || convert_directly(from, to, x, out, count)) return;
    size_t from_bytes = tk_dtype_size(from), to_bytes = tk_dtype_size(to);
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t part = count - i < BLOCK ? count - i : BLOCK;
        convert_block(from, to, (const char *)x + (size_t)i * from_bytes,
                      (char *)out + (size_t)i * to_bytes, part);
    }
}
