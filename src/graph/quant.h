/* Formats of quantised matrices: what graph and bodies must agree about.
 *
 * The last axis is cut into groups of `group_size` elements that share a scale (affine: and a
 * bias). An element takes `bits` bits; elements follow each other from the lowest bit of the first
 * uint32 on, without gaps, so 3, 5 and 6 bits cross words. A group begins on a word, since it has
 * 16 elements of 4 bits or a multiple of 32 elements.
 *
 *   affine  scale * code + bias, scales and biases in a float dtype; groups of 32, 64, 128
 *   mxfp4   e2m1 codes, scales are powers of two (e8m0: the exponent plus 127); groups of 32
 *   mxfp8   e4m3 codes, scales as mxfp4; groups of 32
 *   nvfp4   e2m1 codes, scales are e4m3; groups of 16; an optional float32 factor for the matrix:
 *           scales then count in units of global_scale / (448 * 6) */
#ifndef GRAPH_QUANT_H
#define GRAPH_QUANT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tk_quant_mode {
    TK_QUANT_AFFINE,
    TK_QUANT_MXFP4,
    TK_QUANT_MXFP8,
    TK_QUANT_NVFP4,
    TK_QUANT_MODE_COUNT
} tk_quant_mode;

/* Of the unit of scales that a global scale of nvfp4 means. */
#define TK_QUANT_GLOBAL_UNIT 2688.0F

#define TK_QUANT_GROUP_MAX 128

typedef struct tk_quant {
    tk_quant_mode mode;
    int64_t group_size, bits;
} tk_quant;

static inline bool tk_quant_is_affine(tk_quant quant) { return quant.mode == TK_QUANT_AFFINE; }

/* Words that `count` elements take; count is a multiple of the group size. */
static inline int64_t tk_quant_words(tk_quant quant, int64_t count) {
    return count / 32 * quant.bits + count % 32 * quant.bits / 32;
}

/* Elements that groups cover. */
static inline int64_t tk_quant_columns(tk_quant quant, int64_t groups) {
    return groups * quant.group_size;
}

#endif
