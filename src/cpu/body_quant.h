/* Quantised operands of bodies: rows addressed by number, whatever the strides of the other axes.
 */
#ifndef CPU_BODY_QUANT_H
#define CPU_BODY_QUANT_H

#include "cpu/body_copy.h"
#include "cpu/quant.h"

/* An array whose rows (last axis) are contiguous: itself, or a dense copy. */
typedef struct tk_rows_view {
    tk_strided view;
    tk_dense dense;
} tk_rows_view;

/* TK_OUT_OF_MEMORY; the caller frees `dense` in any case. */
tk_status tk_rows_take(const tk_strided *view, tk_rows_view *out);

/* Row `row`, counted over all axes but the last in row-major order. */
const void *tk_rows_at(const tk_rows_view *rows, int64_t row);

/* Codes, scales and, for affine, biases. */
typedef struct tk_codes {
    tk_quant_kind kind;
    bool affine;
    int64_t groups; /* in a row */
    tk_rows_view words, scales, biases;
} tk_codes;

/* From consecutive operands. TK_OUT_OF_MEMORY; tk_codes_free is called in any case. */
tk_status tk_codes_take(tk_quant quant, const tk_strided *inputs, const float *global,
                        tk_codes *out);
void tk_codes_free(tk_codes *codes);
tk_quant_row tk_codes_row(const tk_codes *codes, int64_t row);

#endif
