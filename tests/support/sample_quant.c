/* Generators of samples of products of picked pairs and segments, and of quantised ops. */
#include "support/sample_maker.h"

void make_gather_product(maker *m) {
    static const int32_t left[] = {0, 2, 2, 1}, right[] = {1, 1, 0, 1};
    input(m, TK_SHAPE(3, 2, 3), ANY);
    input(m, TK_SHAPE(2, 3, 2), ANY);
    input_indices(m, m->index ? TK_SHAPE(2, 2) : TK_SHAPE(3), left);
    input_indices(m, m->index ? TK_SHAPE(2, 2) : TK_SHAPE(3), right);
}

void make_segment_product(maker *m) {
    static const int32_t bounds[] = {0, 2, 1, 5, 4, 4};
    input(m, TK_SHAPE(2, 5), ANY);
    input(m, TK_SHAPE(5, 3), ANY);
    input_indices(m, TK_SHAPE(3, 2), bounds);
}

void make_fp8_encode(maker *m) { input(m, TK_SHAPE(2, 3), ANY); }

void make_fp8_decode(maker *m) {
    input_bytes(m, TK_SHAPE(2, 3), 40);
    m->s->record.of_dtype = (tk_attrs_dtype){.dtype = TK_FLOAT32};
}

void make_quantize(maker *m) {
    static const int64_t bits[] = {4, 1, 3, 8};
    input(m, TK_SHAPE(2, 64), DISTINCT);
    m->s->record.of_quantize = (tk_attrs_quantize){
        .mode = m->index == 3 ? 2 : 0, .group_size = 32, .bits = bits[m->index]};
}

/* Affine of 4 and 5 bits, and nvfp4 with a global scale. */
void make_dequantize(maker *m) {
    bool nvfp4 = m->index == 2;
    int64_t bits = m->index == 1 ? 5 : 4;
    input_words(m, TK_SHAPE(2, nvfp4 ? 4 : 2 * bits));
    if (nvfp4) {
        input_bytes(m, TK_SHAPE(2, 2), 50);
        input_as(m, TK_FLOAT32, TK_SCALAR, POSITIVE);
    } else {
        input(m, TK_SHAPE(2, 2), POSITIVE);
        input(m, TK_SHAPE(2, 2), ANY);
    }
    tk_dtype dtype = tk_dtype_is_float(m->dtype) ? m->dtype : TK_FLOAT32;
    m->s->record.of_dequantize = (tk_attrs_dequantize){.dtype = nvfp4 ? TK_FLOAT32 : dtype,
                                                       .mode = nvfp4 ? 3 : 0,
                                                       .group_size = nvfp4 ? 16 : 32,
                                                       .bits = bits,
                                                       .has_global = nvfp4};
}

/* x w', x w, pairs, and mxfp4. */
void make_quantized_product(maker *m) {
    static const int32_t left[] = {1, 0, 1}, right[] = {0, 1, 1};
    bool pairs = m->index == 2, floats = m->index == 3;
    int64_t columns = m->index == 1 ? 2 : 32;
    input(m, pairs ? TK_SHAPE(2, 1, columns) : TK_SHAPE(3, columns), ANY);
    input_words(m, pairs ? TK_SHAPE(2, 2, 4) : TK_SHAPE(2, 4));
    if (floats) input_bytes(m, TK_SHAPE(2, 1), 126);
    for (int i = 0; i < 2 && !floats; i++)
        input(m, pairs ? TK_SHAPE(2, 2, 1) : TK_SHAPE(2, 1), ANY);
    if (pairs) {
        input_indices(m, TK_SHAPE(3), left);
        input_indices(m, TK_SHAPE(3), right);
    }
    m->s->record.of_quant_product = (tk_attrs_quant_product){
        .mode = floats, .group_size = 32, .bits = 4, .transpose = m->index != 1, .gathered = pairs};
}
