/* NVIDIA's CuTe compiler, whichever form of it this machine has: the library that
 * TIKI_CUTE_LIBRARY names, else the Python package in worker processes (worker.h). */
#ifndef TARGET_CUTE_COMPILER_H
#define TARGET_CUTE_COMPILER_H

#include "target/cute/worker.h"

/* Products and sums are not contracted: mul and add of a kernel are two operations. */
#define TK_CUTE_OPTIONS                                                                            \
    "check-inline-asm=false cubin-format=bin opt-level=3 enable-cuda-dialect=true "                \
    "cuda-dialect-external-module=true nvvm-options=-fma=0"

/* The errors of tk_cute_worker_compile, and of the library: TK_UNSUPPORTED when it cannot be
 * loaded or lacks a function. A library that is named is used or refused, never passed over. */
tk_status tk_cute_compile(const tk_cute_job *job, tk_cute_answer *out);

/* The library alone (library.c). `path` is that of TIKI_CUTE_LIBRARY. One text at a time. A library
 * cannot be stopped: limits are not looked at. */
tk_status tk_cute_library_compile(const char *path, const tk_cute_job *job, tk_cute_answer *out);

/* What tells one library from another, in words. */
tk_status tk_cute_library_identity(const char *path, char *text, size_t capacity);

/* NULL: none is named. */
const char *tk_cute_library_named(void);

#endif
