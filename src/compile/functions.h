/* Functions of floats for generated kernels that no operation of the kernel language is: the text
 * of their computation in f64, by the formulas of the processor's bodies (src/cpu/vec_math.h). */
#ifndef COMPILE_FUNCTIONS_H
#define COMPILE_FUNCTIONS_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "graph/ops.h"

/* Whether the op is one of them; `wide`: on f64, where there are exp and sign. */
bool tk_function_is(tk_op op, bool wide);

/* Defines %r of f32 (f64 when `wide`) from %a0 and, for ops of two, %a1. */
void tk_function_put(tk_op op, bool wide, tk_strbuf *out);

#endif
