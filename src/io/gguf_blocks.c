/* Types of GGUF, and its blocks of 32 elements as groups of MLX's affine format and back.
 *
 *     q4_0: f16 scale, 16 bytes: code j in the low half of byte j, code j + 16 in the high half;
 *           value = (code - 8) scale
 *     q4_1: f16 scale, f16 bias, the same codes; value = code scale + bias
 *     q8_0: f16 scale, 32 signed bytes; value = byte scale
 *
 * Affine groups hold value = code scale + bias with the codes in order, so q4_0 gets the bias -8
 * scale and q8_0 the bias -128 scale and codes with the sign bit flipped. */
#include <string.h>

#include "base/half.h"
#include "io/gguf.h"

static const struct {
    uint32_t type;
    tk_dtype dtype;
} values[] = {{0, TK_UINT8},   {1, TK_INT8},   {2, TK_UINT16},  {3, TK_INT16},
              {4, TK_UINT32},  {5, TK_INT32},  {6, TK_FLOAT32}, {TK_GGUF_TYPE_BOOL, TK_BOOL},
              {10, TK_UINT64}, {11, TK_INT64}, {12, TK_FLOAT64}},
  tensors[] = {{0, TK_FLOAT32}, {1, TK_FLOAT16}, {24, TK_INT8},    {25, TK_INT16},
               {26, TK_INT32},  {27, TK_INT64},  {28, TK_FLOAT64}, {30, TK_BFLOAT16}};

#define COUNT(list) (sizeof(list) / sizeof *(list))

bool tk_gguf_value_dtype(uint32_t type, tk_dtype *out_dtype) {
    for (size_t i = 0; i < COUNT(values); i++)
        if (values[i].type == type) return *out_dtype = values[i].dtype, true;
    return false;
}

bool tk_gguf_value_type(tk_dtype dtype, uint32_t *out_type) {
    for (size_t i = 0; i < COUNT(values); i++)
        if (values[i].dtype == dtype) return *out_type = values[i].type, true;
    return false;
}

bool tk_gguf_tensor_dtype(uint32_t type, tk_dtype *out_dtype) {
    for (size_t i = 0; i < COUNT(tensors); i++)
        if (tensors[i].type == type) return *out_dtype = tensors[i].dtype, true;
    return false;
}

bool tk_gguf_tensor_type(tk_dtype dtype, uint32_t *out_type) {
    for (size_t i = 0; i < COUNT(tensors); i++)
        if (tensors[i].dtype == dtype) return *out_type = tensors[i].type, true;
    return false;
}

int tk_gguf_block_bits(uint32_t type) { return type == TK_GGUF_TENSOR_Q8_0 ? 8 : 4; }

static size_t head_bytes(uint32_t type) { return type == TK_GGUF_TENSOR_Q4_1 ? 4 : 2; }

size_t tk_gguf_block_bytes(uint32_t type) {
    if (type != TK_GGUF_TENSOR_Q4_0 && type != TK_GGUF_TENSOR_Q4_1 && type != TK_GGUF_TENSOR_Q8_0)
        return 0;
    return head_bytes(type) + (size_t)(TK_GGUF_BLOCK * tk_gguf_block_bits(type) / 8);
}

const char *tk_gguf_tensor_name(uint32_t type) {
    static const char *const names[] = {
        "f32",     "f16",    "q4_0",    "q4_1",  "q4_2",   "q4_3",  "q5_0",  "q5_1",
        "q8_0",    "q8_1",   "q2_k",    "q3_k",  "q4_k",   "q5_k",  "q6_k",  "q8_k",
        "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs",
        "i8",      "i16",    "i32",     "i64",   "f64",    "iq1_m", "bf16"};
    return type < COUNT(names) ? names[type] : "unknown";
}

/* ---- blocks ---- */

static uint16_t load_half(const unsigned char *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return half;
}

/* The bias that belongs to a scale in types that store none. */
static uint16_t bias_of(uint32_t type, uint16_t scale) {
    double least = type == TK_GGUF_TENSOR_Q8_0 ? -128 : -8;
    return tk_f64_to_f16(least * (double)tk_f16_to_f32(scale));
}

static void unpack_halves(const unsigned char *bytes, unsigned char *codes) {
    for (int i = 0; i < 8; i++) {
        unsigned low = bytes[2 * i] & 15u, next = bytes[2 * i + 1] & 15u;
        codes[i] = (unsigned char)(low | next << 4);
        codes[8 + i] = (unsigned char)(bytes[2 * i] >> 4 | (bytes[2 * i + 1] & 0xf0u));
    }
}

static void pack_halves(const unsigned char *codes, unsigned char *bytes) {
    for (int i = 0; i < 8; i++) {
        bytes[2 * i] = (unsigned char)((codes[i] & 15u) | (codes[8 + i] & 15u) << 4);
        bytes[2 * i + 1] = (unsigned char)(codes[i] >> 4 | (codes[8 + i] & 0xf0u));
    }
}

static void flip_signs(const unsigned char *from, unsigned char *to) {
    for (int i = 0; i < TK_GGUF_BLOCK; i++) to[i] = from[i] ^ 0x80u;
}

void tk_gguf_unpack(uint32_t type, const unsigned char *blocks, size_t n_blocks,
                    unsigned char *codes, uint16_t *scales, uint16_t *biases) {
    size_t bytes = tk_gguf_block_bytes(type), head = head_bytes(type), n_codes = bytes - head;
    for (size_t i = 0; i < n_blocks; i++, blocks += bytes, codes += n_codes) {
        scales[i] = load_half(blocks);
        biases[i] = head == 4 ? load_half(blocks + 2) : bias_of(type, scales[i]);
        if (type == TK_GGUF_TENSOR_Q8_0)
            flip_signs(blocks + head, codes);
        else
            unpack_halves(blocks + head, codes);
    }
}

bool tk_gguf_pack(uint32_t type, const unsigned char *codes, const uint16_t *scales,
                  const uint16_t *biases, size_t n_blocks, unsigned char *blocks) {
    size_t bytes = tk_gguf_block_bytes(type), head = head_bytes(type), n_codes = bytes - head;
    for (size_t i = 0; i < n_blocks; i++, blocks += bytes, codes += n_codes) {
        memcpy(blocks, &scales[i], 2);
        if (head == 4)
            memcpy(blocks + 2, &biases[i], 2);
        else if (biases[i] != bias_of(type, scales[i]))
            return false;
        if (type == TK_GGUF_TENSOR_Q8_0)
            flip_signs(codes, blocks + head);
        else
            pack_halves(codes, blocks + head);
    }
    return true;
}
