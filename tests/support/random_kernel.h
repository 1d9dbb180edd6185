/* Random kernels that are right: every access in bounds and aligned, no races, no division by
 * zero, barriers and shuffles where all threads come. They compute on numbers of all types, with
 * branches, loops of every kind, shared memory, register tensors and vectors, and store what they
 * found. */
#ifndef SUPPORT_RANDOM_KERNEL_H
#define SUPPORT_RANDOM_KERNEL_H

#include "tiki/kernel.h"

enum {
    RANDOM_THREADS = 64,
    RANDOM_BLOCKS = 2,
    RANDOM_SLOTS = 8, /* outputs of a thread, of each kind */
    RANDOM_ALL = RANDOM_THREADS * RANDOM_BLOCKS
};

/* Parameters: x (f32) and i (i32), read, 4 RANDOM_ALL elements each; f (f32) and o (i64), written,
 * RANDOM_SLOTS RANDOM_ALL elements each; n (i32), which is 4 RANDOM_ALL. NULL with the error set
 * when the builder refuses it. */
tk_kernel *random_kernel(uint64_t seed);

#endif
