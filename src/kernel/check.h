/* The checks that rows of the table name: what the classes of operands cannot say. Each is called
 * with an operation whose operands, attributes and result classes are already right. */
#ifndef KERNEL_CHECK_H
#define KERNEL_CHECK_H

#include "kernel/ir.h"

#define CHECK(name) tk_status tk_kcheck_##name(const tk_kernel *kernel, const tk_kop *op);
#define NO_CHECK
#define TK_KOP(name, forms, effects, operands, results, attrs, check, emulator, ptx, doc) check
#include "tiki/kernel_ops.def"
#undef TK_KOP
#undef NO_CHECK
#undef CHECK

/* TK_DTYPE_ERROR or the given code with the operation's name before the text. */
tk_status tk_kcheck_fail(const tk_kop *op, tk_status code, const char *format, ...) TK_PRINTF(3, 4);

/* A type that may exist: vectors of 2, 4, 8 or 16 lanes and at most 16 bytes, layouts where the
 * kind has one, register tensors static and injective... `type` comes from outside. */
tk_status tk_ktype_check(const tk_kernel *kernel, tk_ktype type);

/* The layout of the result of an operation on views (slice, tile, partition, compose, recast). */
tk_status tk_kview_derive(const tk_kernel *kernel, const tk_kop *op, tk_composed *out);

/* Dynamic leaves of a layout in order: shape leaves, stride leaves, offset; and the i-th. */
int tk_kleaf_count(const tk_composed *layout);
tk_term tk_kleaf_at(const tk_composed *layout, int index);

/* Elements of a register tensor. */
int64_t tk_kregs_size(const tk_kernel *kernel, tk_ktype type);

#endif
