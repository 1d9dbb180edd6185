/* Convolutions along one axis: what inference, builders and gradient rules compute with.
 *
 * An input of `length` elements is spread (elements `input_dilation` apart), padded by `low` and
 * `high` (cropped where these are negative), and the kernel, spread by `kernel_dilation`, is laid
 * on it every `stride` elements. */
#ifndef GRAPH_CONV_H
#define GRAPH_CONV_H

#include <stdint.h>

#include "graph/build.h"

/* Most axes between batch and channels. */
#define TK_CONV_AXES 3

/* Largest stride, dilation and padding; sums of spans then fit 63 bits. */
#define TK_CONV_LIMIT INT32_MAX

/* From the first to the last element of `length` that are `dilation` apart. */
static inline int64_t tk_conv_span(int64_t length, int64_t dilation) {
    return length > 0 ? (length - 1) * dilation + 1 : 0;
}

/* The lists of a record as values that can be changed. */
typedef struct tk_conv_lists {
    tk_axes stride, low, high, kernel_dilation, input_dilation;
} tk_conv_lists;

tk_conv_lists tk_conv_lists_of(const tk_attrs_conv *attrs);

/* The convolution with these lists. */
tk_node *tkb_conv(tk_builder *b, tk_node *input, tk_node *weight, const tk_conv_lists *lists,
                  int64_t groups, bool flip);

/* [N, ..., C] as [C / groups, ..., groups * N]: channels within a group and batch change places. */
tk_node *tkb_conv_turn(tk_builder *b, tk_node *a, int64_t groups);

#endif
