/* The parts of lowering from the tensor form: each turns one operation into instructions put before
 * it. TK_UNSUPPORTED names what has no lowering. */
#ifndef KERNEL_LOWER_H
#define KERNEL_LOWER_H

#include "kernel/tile.h"

/* pass_tensor_gemm.c */
tk_status tk_klower_gemm(const tk_klowerer *w, tk_kput *put, const tk_kop *op);

/* pass_tensor_wgmma.c: a gemm of a warpgroup. */
tk_status tk_klower_wgmma(const tk_klowerer *w, tk_kput *put, const tk_kop *op);

/* pass_tensor_combine.c */
tk_status tk_klower_combine(const tk_klowerer *w, tk_kput *put, const tk_kop *op);

/* pass_tensor_tma.c: a copy by one bulk copy of the tensor map. */
tk_status tk_klower_tma(const tk_klowerer *w, tk_kput *put, const tk_kop *op);

/* What a static layout gives for a number that is not known while compiling. */
tk_kvalue *tk_klower_place(tk_kput *put, const tk_layout *layout, tk_kvalue *number);

/* for number = member of the group to end step size of the group; *out_inner puts into the body,
 * whose end is there already. */
tk_status tk_klower_loop(tk_kput *put, const tk_kop *op, tk_kvalue *end, tk_kput *out_inner,
                         tk_kvalue **out_number);

/* if condition: *out_inner puts into the branch, whose end is there already. */
tk_status tk_klower_if(tk_kput *put, tk_kvalue *condition, tk_kput *out_inner);

#endif
