/* What reader and writer of GGUF share: value types, tensor types, blocks. */
#ifndef IO_GGUF_H
#define IO_GGUF_H

#include "base/vec.h"
#include "io/load.h"
#include "tiki/gguf.h"

#define TK_GGUF_ALIGNMENT 32
#define TK_GGUF_ALIGNMENT_KEY "general.alignment"

/* Numbers of the format. */
enum {
    TK_GGUF_TYPE_BOOL = 7,
    TK_GGUF_TYPE_STRING = 8,
    TK_GGUF_TYPE_ARRAY = 9,
    TK_GGUF_TENSOR_Q4_0 = 2,
    TK_GGUF_TENSOR_Q4_1 = 3,
    TK_GGUF_TENSOR_Q8_0 = 8,
    TK_GGUF_BLOCK = 32 /* elements of a block */
};

/* The dtype of a value type; false for strings, arrays and what is none. */
bool tk_gguf_value_dtype(uint32_t type, tk_dtype *out_dtype);
bool tk_gguf_value_type(tk_dtype dtype, uint32_t *out_type);

/* The dtype of a tensor type that is no block; the block's bytes of one that is (0: neither). */
bool tk_gguf_tensor_dtype(uint32_t type, tk_dtype *out_dtype);
bool tk_gguf_tensor_type(tk_dtype dtype, uint32_t *out_type);
size_t tk_gguf_block_bytes(uint32_t type);
int tk_gguf_block_bits(uint32_t type);
const char *tk_gguf_tensor_name(uint32_t type); /* "q4_0", ... or "unknown" */

/* Blocks to codes (16 or 32 bytes each), scales and biases, and back. tk_gguf_pack says whether
 * scales and biases are those of the type: then the blocks hold the same. */
void tk_gguf_unpack(uint32_t type, const unsigned char *blocks, size_t n_blocks,
                    unsigned char *codes, uint16_t *scales, uint16_t *biases);
bool tk_gguf_pack(uint32_t type, const unsigned char *codes, const uint16_t *scales,
                  const uint16_t *biases, size_t n_blocks, unsigned char *blocks);

#endif
