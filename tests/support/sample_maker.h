/* Operands of samples: what the generators of primitives (samples.c) and of functions
 * (sample_functions.c) share. Random operands are multiples of 1/1024, so that every dtype holds
 * them exactly or nearly; operands of ops that compare are distinct by more than a finite
 * difference moves them. */
#ifndef SUPPORT_SAMPLE_MAKER_H
#define SUPPORT_SAMPLE_MAKER_H

#include "support/samples.h"

typedef enum domain { ANY, POSITIVE, UNIT, ABOVE1, NONZERO, DISTINCT, SPARSE } domain;

typedef struct maker {
    tk_context *context;
    tk_dtype dtype;
    int index;
    uint64_t state;
    sample *s;
} maker;

/* Each of these appends an operand to the sample. */
void input(maker *m, tk_shape shape, domain domain);
void input_as(maker *m, tk_dtype dtype, tk_shape shape, domain domain);
void input_indices(maker *m, tk_shape shape, const int32_t *values);
void input_bools(maker *m, tk_shape shape, const char *bits); /* "0110": one digit an element */
void input_array(maker *m, tk_array array);
void input_words(maker *m, tk_shape shape);                /* any bits, as uint32 */
void input_bytes(maker *m, tk_shape shape, uint8_t least); /* least to least + 2 */

/* Matrices that are far from singular and whose eigenvalues and singular values are apart. Real:
 * the choice of complex vectors is nobody's function. */
void input_matrix(maker *m, tk_shape shape);

/* The domain that a word of the sample column names; ANY for others. */
domain domain_of(const char *name);

/* Generators of sample_quant.c, for the table in samples.c. */
void make_gather_product(maker *m);
void make_segment_product(maker *m);
void make_fp8_encode(maker *m);
void make_fp8_decode(maker *m);
void make_quantize(maker *m);
void make_dequantize(maker *m);
void make_quantized_product(maker *m);

/* The samples of functions; see samples.h for these. */
int function_sample_count(const op_row *row);
void function_sample_make(maker *m, const op_row *row);
tk_status function_sample_apply(tk_context *context, const sample *s, const tk_array *inputs,
                                tk_arrays *results);

#endif
