/* Sample applications of the primitives of the op table: operands and attributes for which an op is
 * defined and, where it has a derivative, differentiable. One generator a row: rows with a domain
 * in their `sample` column share one, `own` rows have theirs. Used by the gradient check, and by
 * whatever else wants to apply every op. Values are the same in every run. */
#ifndef SUPPORT_SAMPLES_H
#define SUPPORT_SAMPLES_H

#include "graph/build.h"
#include "tiki/array.h"

#define SAMPLE_INPUTS 8

typedef union sample_record {
#define TK_ATTRS(record, fields) tk_attrs_##record of_##record;
#include "graph/attrs.def"
#undef TK_ATTRS
} sample_record;

typedef struct sample {
    tk_op op;
    size_t n_inputs;
    tk_array inputs[SAMPLE_INPUTS]; /* of the scope that is open */
    const void *attrs;              /* NULL where the op has none */
    sample_record record;
    tk_axes lists[5]; /* what lists of the record point to */
} sample;

/* Samples of an op; 0 where the table has no generator for it. */
int sample_count(tk_op op);

/* Fills sample `index` with operands of `dtype` (float64, float32, complex64 or int32) where the op
 * lets it choose. The record points into *out, which must not move. False when the op does not take
 * the dtype. */
bool sample_make(tk_context *context, tk_op op, int index, tk_dtype dtype, sample *out);

/* Applies the op of a sample to operands (which need not be the sample's): appends its outputs. */
tk_status sample_apply(tk_context *context, const sample *s, const tk_array *inputs,
                       tk_arrays *results);

#endif
