/* Codes of every format and variant of the vector code: encoding and decoding against the plain
 * definition, one element at a time; fp8 for all 256 codes and at each border between them. */
#include "cpu/cpu_check.h"

#include <math.h>

#include "cpu/quant.h"
#include "cpu/vec.h"

#define GROUPS 5

static const tk_quant formats[] = {
    {TK_QUANT_AFFINE, 32, 1},  {TK_QUANT_AFFINE, 32, 2},  {TK_QUANT_AFFINE, 64, 3},
    {TK_QUANT_AFFINE, 128, 4}, {TK_QUANT_AFFINE, 32, 5},  {TK_QUANT_AFFINE, 64, 6},
    {TK_QUANT_AFFINE, 32, 8},  {TK_QUANT_MXFP4, 32, 4},   {TK_QUANT_MXFP8, 32, 8},
    {TK_QUANT_NVFP4, 16, 4},   {TK_QUANT_AFFINE, 128, 3}, {TK_QUANT_AFFINE, 128, 8}};
#define N_FORMATS (sizeof formats / sizeof *formats)

/* A code read bit by bit. */
static uint32_t plain_code(const uint32_t *words, int64_t bits, int64_t index) {
    uint32_t code = 0;
    for (int64_t i = 0; i < bits; i++) {
        int64_t bit = index * bits + i;
        code |= (words[bit / 32] >> bit % 32 & 1u) << i;
    }
    return code;
}

static double plain_fp4(uint32_t code) {
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -values[code & 7] : values[code & 7];
}

static double plain_fp8(uint32_t code) {
    int exponent = (int)(code >> 3 & 15), fraction = (int)(code & 7);
    if (exponent == 15 && fraction == 7) return NAN;
    double size = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return code & 128 ? -size : size;
}

typedef struct row {
    uint32_t codes[GROUPS * TK_QUANT_GROUP_MAX / 4];
    float scales[GROUPS], biases[GROUPS];
    uint8_t bytes[GROUPS];
} row;

static void fill_row(row *r, uint64_t *state, bool any_byte) {
    for (size_t i = 0; i < sizeof r->codes / sizeof *r->codes; i++)
        r->codes[i] = next_random(state);
    for (int i = 0; i < GROUPS; i++) {
        r->scales[i] = (float)((double)next_random(state) / 4e9 - 0.5);
        r->biases[i] = (float)((double)next_random(state) / 4e9 - 0.5);
        r->bytes[i] = (uint8_t)(next_random(state) % (any_byte ? 256 : 100));
    }
}

static float plain_value(tk_quant quant, const row *r, int64_t index) {
    int64_t group = index / quant.group_size;
    uint32_t code = plain_code(r->codes, quant.bits, index);
    switch (quant.mode) {
    case TK_QUANT_AFFINE: {
        volatile float product = r->scales[group] * (float)code;
        return product + r->biases[group];
    }
    case TK_QUANT_NVFP4:
        return (float)(plain_fp4(code) * plain_fp8(r->bytes[group]));
    default: {
        double value = quant.mode == TK_QUANT_MXFP4 ? plain_fp4(code) : plain_fp8(code);
        return (float)(value * (double)ldexpf(1.0F, r->bytes[group] - 127));
    }
    }
}

static tk_quant_row row_of(tk_quant quant, const row *r) {
    bool affine = tk_quant_is_affine(quant);
    return (tk_quant_row){r->codes, affine ? (const void *)r->scales : r->bytes,
                          affine ? r->biases : NULL};
}

static void check_decoding(tk_quant quant, uint64_t *state, bool any_byte) {
    row r;
    static float values[GROUPS * TK_QUANT_GROUP_MAX];
    static double wide[GROUPS * TK_QUANT_GROUP_MAX];
    tk_quant_kind kind = tk_quant_kind_of(quant, TK_FLOAT32, NULL);
    fill_row(&r, state, any_byte);
    for (int64_t begin = 0; begin < GROUPS; begin++) {
        int64_t first = begin * quant.group_size, count = (GROUPS - begin) * quant.group_size;
        tk_quant_decode_f32(&kind, row_of(quant, &r), begin, GROUPS - begin, values);
        tk_quant_decode_f64(&kind, row_of(quant, &r), begin, GROUPS - begin, wide);
        for (int64_t i = 0; i < count; i++) {
            float expected = plain_value(quant, &r, first + i);
            if (expected != expected) {
                assert_true(values[i] != values[i]);
                continue;
            }
            assert_true(values[i] == expected);
            assert_true(wide[i] == (double)expected);
        }
    }
}

static void decode_all(void) {
    uint64_t state = 11;
    for (size_t i = 0; i < N_FORMATS; i++)
        for (int round = 0; round < 20; round++) check_decoding(formats[i], &state, round % 2);
}

static void codes_become_values(void **state) {
    (void)state;
    for_each_variant(decode_all);
}

/* Encoded values decode to within half a step (affine) or half a gap of the format. */
static void check_encoding(tk_quant quant, uint64_t *state) {
    static float values[GROUPS * TK_QUANT_GROUP_MAX], back[GROUPS * TK_QUANT_GROUP_MAX];
    row r;
    int64_t count = GROUPS * quant.group_size;
    for (int64_t i = 0; i < count; i++) values[i] = (float)((double)next_random(state) / 2e9 - 1);
    tk_quant_kind kind = tk_quant_kind_of(quant, TK_FLOAT32, NULL);
    bool affine = tk_quant_is_affine(quant);
    tk_quant_encode(&kind, TK_FLOAT32, values, GROUPS, r.codes, affine ? (void *)r.scales : r.bytes,
                    affine ? r.biases : NULL);
    tk_quant_decode_f32(&kind, row_of(quant, &r), 0, GROUPS, back);
    for (int64_t i = 0; i < count; i++) {
        float most = 0;
        int64_t first = i / quant.group_size * quant.group_size;
        for (int64_t k = 0; k < quant.group_size; k++) most = fmaxf(most, fabsf(values[first + k]));
        float bound = quant.mode == TK_QUANT_MXFP8 ? most / 14 : most / 3.9F;
        if (affine) bound = fabsf(r.scales[i / quant.group_size]) * (quant.bits == 1 ? 0.51F : 1);
        assert_true(fabsf(back[i] - values[i]) <= bound);
    }
}

static void values_become_codes(void **unused) {
    (void)unused;
    uint64_t state = 12;
    for (size_t i = 0; i < N_FORMATS; i++)
        for (int round = 0; round < 20; round++) check_encoding(formats[i], &state);
}

static void a_group_of_zeros(void **state) {
    (void)state;
    static const float zeros[TK_QUANT_GROUP_MAX] = {0};
    static float back[TK_QUANT_GROUP_MAX];
    row r;
    for (size_t i = 0; i < N_FORMATS; i++) {
        tk_quant_kind kind = tk_quant_kind_of(formats[i], TK_FLOAT32, NULL);
        bool affine = tk_quant_is_affine(formats[i]);
        tk_quant_encode(&kind, TK_FLOAT32, zeros, 1, r.codes, affine ? (void *)r.scales : r.bytes,
                        affine ? r.biases : NULL);
        tk_quant_decode_f32(&kind, row_of(formats[i], &r), 0, 1, back);
        for (int64_t k = 0; k < formats[i].group_size; k++) assert_true(back[k] == 0);
    }
}

static void fp8_of_every_code(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 256; code++) {
        float value = tk_fp8_to_f32((uint8_t)code);
        if (plain_fp8(code) != plain_fp8(code)) {
            assert_true(value != value);
            continue;
        }
        assert_true((double)value == plain_fp8(code));
        assert_int_equal(tk_f32_to_fp8(value), code);
        assert_int_equal(tk_f64_to_fp8((double)value), code);
    }
    assert_int_equal(tk_f32_to_fp8(NAN) & 127, 127);
    assert_int_equal(tk_f64_to_fp8(INFINITY), 126);
    assert_int_equal(tk_f32_to_fp8(-INFINITY), 254);
}

/* At the middle of two neighbours the even code, to each side of it the nearer one. */
static void fp8_borders(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 126; code++) {
        double middle = (plain_fp8(code) + plain_fp8(code + 1)) / 2;
        uint32_t even = code % 2 ? code + 1 : code;
        float single = (float)middle;
        assert_true((double)single == middle);
        assert_int_equal(tk_f32_to_fp8(single), even);
        assert_int_equal(tk_f64_to_fp8(-middle), even | 128);
        assert_int_equal(tk_f32_to_fp8(nextafterf(single, 0)), code);
        assert_int_equal(tk_f32_to_fp8(nextafterf(single, 1e9F)), code + 1);
        assert_int_equal(tk_f64_to_fp8(nextafter(middle, 0)), code);
        assert_int_equal(tk_f64_to_fp8(nextafter(middle, 1e9)), code + 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_become_values), cmocka_unit_test(values_become_codes),
        cmocka_unit_test(a_group_of_zeros),    cmocka_unit_test(fp8_of_every_code),
        cmocka_unit_test(fp8_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
