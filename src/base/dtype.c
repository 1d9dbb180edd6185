/* The dtype table's accessors and MLX's promotion lattice. */
#include "tiki/dtype.h"

#include <string.h>

#include "base/error.h"

typedef struct dtype_row {
    const char *name, *text, *safetensors;
    size_t size;
    tk_kind kind;
} dtype_row;

static const dtype_row rows[TK_DTYPE_COUNT] = {
#define DTYPE_ROW(id, name, text, size, kind, safetensors, npy)                                    \
    [id] = {name, text, safetensors, size, kind},
    TK_DTYPES(DTYPE_ROW)
#undef DTYPE_ROW
};

static bool is_dtype(tk_dtype dtype) { return (unsigned)dtype < TK_DTYPE_COUNT; }

size_t tk_dtype_size(tk_dtype dtype) { return is_dtype(dtype) ? rows[dtype].size : 0; }
const char *tk_dtype_name(tk_dtype dtype) { return is_dtype(dtype) ? rows[dtype].name : "?"; }
const char *tk_dtype_text(tk_dtype dtype) { return is_dtype(dtype) ? rows[dtype].text : "?"; }
tk_kind tk_dtype_kind(tk_dtype dtype) { return is_dtype(dtype) ? rows[dtype].kind : TK_KIND_BOOL; }

tk_status tk_dtype_parse(const char *name, tk_dtype *out_dtype) {
    TK_NEED(name, out_dtype);
    for (int i = 0; i < TK_DTYPE_COUNT; i++) {
        const dtype_row *row = &rows[i];
        if (!strcmp(name, row->name) || !strcmp(name, row->text) ||
            !strcmp(name, row->safetensors)) {
            *out_dtype = (tk_dtype)i;
            return TK_OK;
        }
    }
    return tk_fail(TK_DTYPE_ERROR,
                   "unknown dtype \"%.40s\": expected one of bool, uint8 ... complex64", name);
}

static tk_dtype signed_holding(tk_dtype is_signed, tk_dtype is_unsigned) {
    static const tk_dtype wider[] = {
        [1] = TK_INT16, [2] = TK_INT32, [4] = TK_INT64, [8] = TK_FLOAT32};
    tk_dtype needed = wider[tk_dtype_size(is_unsigned)];
    return needed > is_signed ? needed : is_signed;
}

tk_dtype tk_dtype_promote(tk_dtype a, tk_dtype b) {
    if (a == b) return a;
    tk_dtype low = a < b ? a : b, high = a < b ? b : a;
    tk_kind low_kind = tk_dtype_kind(low), high_kind = tk_dtype_kind(high);
    if (low_kind == TK_KIND_UNSIGNED && high_kind == TK_KIND_SIGNED)
        return signed_holding(high, low);
    if (low == TK_FLOAT16 && high == TK_BFLOAT16) return TK_FLOAT32;
    return high;
}
