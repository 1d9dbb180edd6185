/* Element types: one table from which the enum, names, sizes and kinds come. */
#ifndef TIKI_DTYPE_H
#define TIKI_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/api.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

typedef enum tk_kind {
    TK_KIND_BOOL,
    TK_KIND_UNSIGNED,
    TK_KIND_SIGNED,
    TK_KIND_FLOAT,
    TK_KIND_COMPLEX
} tk_kind;

/* Enum, name as in MLX, short name of the text forms, bytes, kind, safetensors name, npy descr. */
#define TK_DTYPES(X)                                                                               \
    X(TK_BOOL, "bool", "bool", 1, TK_KIND_BOOL, "BOOL", "|b1")                                     \
    X(TK_UINT8, "uint8", "u8", 1, TK_KIND_UNSIGNED, "U8", "|u1")                                   \
    X(TK_UINT16, "uint16", "u16", 2, TK_KIND_UNSIGNED, "U16", "<u2")                               \
    X(TK_UINT32, "uint32", "u32", 4, TK_KIND_UNSIGNED, "U32", "<u4")                               \
    X(TK_UINT64, "uint64", "u64", 8, TK_KIND_UNSIGNED, "U64", "<u8")                               \
    X(TK_INT8, "int8", "i8", 1, TK_KIND_SIGNED, "I8", "|i1")                                       \
    X(TK_INT16, "int16", "i16", 2, TK_KIND_SIGNED, "I16", "<i2")                                   \
    X(TK_INT32, "int32", "i32", 4, TK_KIND_SIGNED, "I32", "<i4")                                   \
    X(TK_INT64, "int64", "i64", 8, TK_KIND_SIGNED, "I64", "<i8")                                   \
    X(TK_FLOAT16, "float16", "f16", 2, TK_KIND_FLOAT, "F16", "<f2")                                \
    X(TK_BFLOAT16, "bfloat16", "bf16", 2, TK_KIND_FLOAT, "BF16", "<V2")                            \
    X(TK_FLOAT32, "float32", "f32", 4, TK_KIND_FLOAT, "F32", "<f4")                                \
    X(TK_FLOAT64, "float64", "f64", 8, TK_KIND_FLOAT, "F64", "<f8")                                \
    X(TK_COMPLEX64, "complex64", "c64", 8, TK_KIND_COMPLEX, "C64", "<c8")

typedef enum tk_dtype {
#define TK_DTYPE_ENUM(id, name, text, size, kind, safetensors, npy) id,
    TK_DTYPES(TK_DTYPE_ENUM)
#undef TK_DTYPE_ENUM
        TK_DTYPE_COUNT
} tk_dtype;

/* Bytes of one element; 0 for a value that is no dtype. */
TK_API size_t tk_dtype_size(tk_dtype dtype);

/* "float32"; "?" for a value that is no dtype. Static string. */
TK_API const char *tk_dtype_name(tk_dtype dtype);

/* "f32", as the text forms write it; "?" for a value that is no dtype. Static string. */
TK_API const char *tk_dtype_text(tk_dtype dtype);

TK_API tk_kind tk_dtype_kind(tk_dtype dtype);

/* Finds a dtype by its name ("float32"), text form ("f32") or safetensors name ("F32").
 * TK_DTYPE_ERROR when there is none; *out_dtype is then unchanged. */
TK_API tk_status tk_dtype_parse(const char *name, tk_dtype *out_dtype);

/* The dtype that holds the result of an operation on both, by MLX's table: bool < unsigned, signed
 * < float < complex; an unsigned and a signed type of the same width give the next wider signed
 * type, uint64 with a signed type gives float32; float16 with bfloat16 gives float32. */
TK_API tk_dtype tk_dtype_promote(tk_dtype a, tk_dtype b);

static inline bool tk_dtype_is_float(tk_dtype dtype) {
    return dtype >= TK_FLOAT16 && dtype <= TK_FLOAT64;
}
static inline bool tk_dtype_is_complex(tk_dtype dtype) { return dtype == TK_COMPLEX64; }
static inline bool tk_dtype_is_inexact(tk_dtype dtype) { return dtype >= TK_FLOAT16; }
static inline bool tk_dtype_is_integer(tk_dtype dtype) {
    return dtype >= TK_UINT8 && dtype <= TK_INT64;
}

TK_END_DECLS

#endif
