/* Reference elementwise functions of complex64. */
#include "cpu/body_complex.h"
#include "cpu/body_ewise.h"

#define KIND_COMPLEX
#define FN(name) name##_c64
#define T c64
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

tk_ewise_fn *tk_ewise_complex(tk_op op) { return table_c64[op]; }
