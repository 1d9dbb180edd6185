/* What the kernels of RMS norm share. */
#ifndef LIBRARY_NORM_H
#define LIBRARY_NORM_H

#include "library/rows.h"

/* 1 / sqrt(sum / columns + eps) */
tk_val tk_norm_rstd(const tk_rows *r, tk_val sum, tk_val eps);

/* TK_SHAPE_ERROR unless the tensor is missing or a contiguous vector of `columns` floats. */
tk_status tk_norm_check_weight(const tk_library_call *call, size_t index, int64_t columns,
                               const char *role);

#endif
