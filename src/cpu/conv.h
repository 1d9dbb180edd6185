/* Geometry of a convolution: which elements of the input meet which taps of the kernel.
 *
 * Where the input is spread (input_dilation above 1: transposed convolutions, gradients of strided
 * ones), most products are with the zeros between its elements. Outputs therefore fall into
 * classes: those of a class meet the same taps, all others of the kernel meet zeros only. Within a
 * class everything is affine: output `i` of an axis meets with tap `j` the element base + i *
 * per_output + j * per_tap, where that is inside the input. Without spreading there is one class
 * with all outputs and all taps. */
#ifndef CPU_CONV_H
#define CPU_CONV_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/attrs.h"
#include "tiki/array.h"

#define TK_CONV_SPATIAL 3

/* One spatial axis of a class. */
typedef struct tk_conv_axis {
    int64_t in, out, kernel;           /* lengths of input, output and kernel */
    int64_t first_out, out_step, rows; /* outputs of the class */
    int64_t first_tap, tap_step, taps; /* taps of the class */
    int64_t base, per_output, per_tap;
} tk_conv_axis;

/* A convolution, missing spatial axes in front as axes of length 1. Lengths of memory are in
 * elements. */
typedef struct tk_conv {
    int64_t batch, groups, in_each, out_each; /* channels of a group */
    bool flip;
    int64_t stride[TK_CONV_SPATIAL], low[TK_CONV_SPATIAL];
    int64_t kernel_dilation[TK_CONV_SPATIAL], input_dilation[TK_CONV_SPATIAL];
    int64_t classes[TK_CONV_SPATIAL];   /* along each axis */
    tk_conv_axis axes[TK_CONV_SPATIAL]; /* of the class that was chosen */
} tk_conv;

void tk_conv_init(tk_conv *conv, const tk_attrs_conv *attrs, const tk_strided *input,
                  const tk_strided *weight, const tk_strided *output);

int64_t tk_conv_classes(const tk_conv *conv);

/* Sets conv->axes for a class. */
void tk_conv_choose(tk_conv *conv, int64_t index);

/* Of the chosen class: outputs, taps, and whether it has all of both in their order. */
int64_t tk_conv_rows(const tk_conv *conv);
int64_t tk_conv_taps(const tk_conv *conv);
bool tk_conv_has_all_rows(const tk_conv *conv);
bool tk_conv_has_all_taps(const tk_conv *conv);

/* Where row `row` of the chosen class is in the output: a number of pixels. */
int64_t tk_conv_output_of(const tk_conv *conv, int64_t row);

/* Lines of taps are the last axis's, numbered by the other two. A part of a line's taps. */
typedef struct tk_conv_part {
    int64_t first_line, lines; /* several lines only with all of their taps */
    int64_t first_tap, taps;
} tk_conv_part;

/* Writes what row `row` meets in a part, in the order of the taps, channels of group `group` last;
 * zeros outside of the input. `bytes` is the size of an element. */
void tk_conv_gather(const tk_conv *conv, const char *input, size_t bytes, int64_t group,
                    int64_t row, const tk_conv_part *part, char *out);

/* Weights [O, kernel..., in_each] with the taps of the chosen class only, in their order. */
void tk_conv_pack(const tk_conv *conv, const char *weight, size_t bytes, char *out);

#endif
