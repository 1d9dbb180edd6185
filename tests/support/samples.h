/* Sample applications of the rows of the op table: operands and attributes for which an op is
 * defined and, where it has a derivative, differentiable. One generator a row: rows with a domain
 * in their `sample` column share one, `own` rows have theirs (samples.c for primitives,
 * sample_functions.c for functions). Used by the checks of gradients, of batching and of what is
 * fused, and by whatever else wants to apply every op. Values are the same in every run.
 *
 * A row is a number: a tk_op below TK_OP_COUNT, and the functions above. */
#ifndef SUPPORT_SAMPLES_H
#define SUPPORT_SAMPLES_H

#include "graph/build.h"
#include "support/op_calls.h"
#include "tiki/array.h"

#define SAMPLE_INPUTS 8

typedef union sample_record {
#define TK_ATTRS(record, fields) tk_attrs_##record of_##record;
#include "graph/attrs.def"
#undef TK_ATTRS
} sample_record;

typedef struct sample {
    const char *name;
    tk_op op;               /* of a primitive */
    const op_row *function; /* NULL for a primitive */
    bool is_derived;        /* operands fit each other: one alone must not change */
    bool has_diagonal;      /* operand 0 is matrices with a heavy diagonal */
    size_t n_inputs;
    tk_array inputs[SAMPLE_INPUTS]; /* of the scope that is open */
    const void *attrs;              /* NULL where the op has none */
    sample_record record;
    tk_axes lists[5];               /* what lists of the record point to */
    op_value values[OP_PARAMS_MAX]; /* of a function: arguments beside the arrays */
} sample;

int sample_rows(void);
const char *sample_name(int row);
tk_tolerance sample_tolerance(int row);

/* Whether the table names a generator, and whether it must: the row takes arrays of a user. */
bool sample_declared(int row);
bool sample_needed(int row);

/* Samples of a row; 0 where there is no generator for it. */
int sample_count(int row);

/* Fills sample `index` with operands of `dtype` where the op lets it choose. The record points into
 * *out, which must not move. False when the op does not take the dtype. */
bool sample_make(tk_context *context, int row, int index, tk_dtype dtype, sample *out);

/* Applies the op of a sample to operands (which need not be the sample's): appends its outputs. */
tk_status sample_apply(tk_context *context, const sample *s, const tk_array *inputs,
                       tk_arrays *results);

#endif
