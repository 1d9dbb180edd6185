/* Kernels of the library (library.h) as differentiable ops on devices with kernels.
 *
 * Each takes a schedule: NULL is the default for the operands, tk_library_schedule_for gives it for
 * reading and changing. A schedule that cannot be is an error of the call, before anything is
 * built. vjp, jvp and batching are kernels of the library too, with their default schedules. The
 * operands must be on such a device: on the processor the ops of the same names are used. */
#ifndef TIKI_LIBRARY_OP_H
#define TIKI_LIBRARY_OP_H

#include "tiki/devices.h"
#include "tiki/library.h"

TK_BEGIN_DECLS

/* x / sqrt(mean(x^2) + eps) * weight over the last axis. `weight` may be TK_NO_ARRAY. */
TK_API tk_array tk_kernel_rms_norm(tk_array x, tk_array weight, double eps,
                                   const tk_library_schedule *schedule);

/* exp(x - max) / sum over the last axis. */
TK_API tk_array tk_kernel_softmax(tk_array x, const tk_library_schedule *schedule);

/* The last two axes exchanged, in memory. */
TK_API tk_array tk_kernel_transpose(tk_array x, const tk_library_schedule *schedule);

/* The sum over all axes but the last, added in float32; the dtype of x. */
TK_API tk_array tk_kernel_column_sum(tk_array x, const tk_library_schedule *schedule);

/* a b over the last two axes, of one half dtype, with sums in float32; leading axes are equal.
 * Operands whose last two axes are exchanged views are read as they lie. */
TK_API tk_array tk_kernel_matmul(tk_array a, tk_array b, const tk_library_schedule *schedule);

/* The same by TMA and wgmma, for compute capability 9 and the emulator: the rows of a and b in
 * memory are multiples of 16 bytes. */
TK_API tk_array tk_kernel_hopper_matmul(tk_array a, tk_array b,
                                        const tk_library_schedule *schedule);

/* The default schedule of kernel `id` for operands as the function above of its name takes them
 * (`count` of them). */
TK_API tk_status tk_library_schedule_for(tk_library_id id, const tk_array *operands, size_t count,
                                         tk_library_schedule *out_schedule);

TK_END_DECLS

#endif
