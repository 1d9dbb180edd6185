/* Analyses of kernels for passes, targets and reports: what is known of values before anything
 * runs. Results are arrays by value id, which the caller frees with tk_free. */
#ifndef KERNEL_ANALYSE_H
#define KERNEL_ANALYSE_H

#include "kernel/ir.h"

/* ---- ranges (analyse_range.c) ---- */

/* Of an integer: low <= value <= high (with sign), and a number that divides it. Of a pointer: a
 * number of bytes that divides the address. */
typedef struct tk_kfact_of {
    int64_t low, high;
    uint64_t divisor; /* from 1; 0 for the value 0, which everything divides */
} tk_kfact_of;

/* Follows from the launch contract (preconditions, alignments, extents of the block), from
 * `assume`, and from arithmetic that cannot wrap. */
tk_status tk_kanalyse_ranges(const tk_kernel *kernel, tk_kfact_of **out);

/* Whether a `for` whose index is only counted up to its end can pass the largest integer. */
bool tk_kfor_may_wrap(const tk_kop *op, const tk_kfact_of *facts);

/* ---- uniformity (analyse_uniform.c) ---- */

/* A tk_kuniform for each value. */
tk_status tk_kanalyse_uniform(const tk_kernel *kernel, uint8_t **out);

/* tk_kernel_prove_uniform of the work of groups alone: lowered, it can no longer be told. */
tk_status tk_kanalyse_groups(const tk_kernel *kernel);

/* ---- registers (analyse_live.c) ---- */

/* Most registers of 32 bits that are live at once, and the operation where. */
tk_status tk_kanalyse_live(const tk_kernel *kernel, int64_t *out_registers, const tk_kop **out_at);

#endif
