/* Sums over rows, column by column: what column_sum and the gradients of weights share. */
#ifndef LIBRARY_SUMS_H
#define LIBRARY_SUMS_H

#include "library/rows.h"

/* What is summed. `put` gives the `lanes` values of f32 at a row (i64) and column; `bind` adds the
 * parameters that it needs. */
typedef struct tk_sums_term {
    void (*bind)(void *arg, tk_library_kernel *k, int lanes);
    void (*put)(void *arg, tk_b *b, tk_val row, tk_val column, tk_val *out, int lanes);
    void *arg;
    int lanes;      /* that the operands allow */
    int64_t groups; /* of threads that share the rows of a chunk; 0: one */
} tk_sums_term;

/* Adds the launches that put the sums of `rows` x `columns` terms into tensor `target`: one when a
 * chunk is all rows, else one into scratch memory and those that sum the chunks in their order. */
tk_status tk_sums_add(const tk_library_call *call, tk_library_plan *plan, const tk_sums_term *term,
                      int64_t rows, int64_t columns, size_t target);

/* The launches that sum `lines` rows of f32 in scratch memory. */
tk_status tk_sums_add_lines(const tk_library_call *call, tk_library_plan *plan, size_t scratch,
                            int64_t lines, int64_t columns, size_t target);

/* Threads and chunks that fill a device, for elements of so many bytes. */
void tk_sums_choose(int64_t rows, int64_t columns, int64_t bytes, tk_library_schedule *out);

#endif
