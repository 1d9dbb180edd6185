/* Conversions of f16 and bf16, for all halves and at every place where rounding turns: the value
 * halfway between two neighbours, and the floats next to it on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "base/half.h"

struct format {
    float (*widen)(uint16_t half);
    uint16_t (*narrow)(float value);
    uint16_t infinity;
    uint16_t quiet; /* the bit that makes a NaN quiet */
};

static float widen_f16(uint16_t half) { return tk_f16_to_f32(half); }
static uint16_t narrow_f16(float value) { return tk_f32_to_f16(value); }
static float widen_bf16(uint16_t half) { return tk_bf16_to_f32(half); }
static uint16_t narrow_bf16(float value) { return tk_f32_to_bf16(value); }

static const struct format formats[2] = {
    {widen_f16, narrow_f16, 0x7c00, 0x0200},
    {widen_bf16, narrow_bf16, 0x7f80, 0x0040},
};

static double value_of_f16(unsigned half) {
    int exponent = (int)(half >> 10 & 31);
    double fraction = half & 1023;
    double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half >> 15 ? -size : size;
}

static void test_f16_by_its_definition(void **state) {
    (void)state;
    for (unsigned half = 0; half < 0x10000; half++) {
        float value = tk_f16_to_f32((uint16_t)half);
        if ((half & 0x7fff) > 0x7c00)
            assert_true(isnan(value));
        else if ((half & 0x7fff) == 0x7c00)
            assert_true(isinf(value) && !signbit(value) == !(half >> 15));
        else
            assert_true((double)value == value_of_f16(half) && !signbit(value) == !(half >> 15));
    }
}

static void test_all_halves_come_back(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        for (unsigned half = 0; half < 0x10000; half++) {
            bool is_nan = (half & 0x7fff) > formats[f].infinity;
            unsigned expected = is_nan ? half | formats[f].quiet : half;
            assert_int_equal(formats[f].narrow(formats[f].widen((uint16_t)half)), expected);
        }
    }
}

static void check_gap(const struct format *format, uint16_t lower, float halfway) {
    uint16_t upper = lower + 1, even = lower % 2 ? upper : lower;
    for (int sign = 0; sign < 2; sign++) {
        uint16_t bit = sign ? 0x8000 : 0;
        float direction = sign ? -1.0f : 1.0f;
        assert_int_equal(format->narrow(direction * halfway), even | bit);
        assert_int_equal(format->narrow(direction * nextafterf(halfway, 0)), lower | bit);
        assert_int_equal(format->narrow(direction * nextafterf(halfway, INFINITY)), upper | bit);
    }
}

static void test_rounding_turns_halfway(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        const struct format *format = &formats[f];
        for (uint16_t lower = 0; lower + 1 < format->infinity; lower++) {
            double low = format->widen(lower), high = format->widen((uint16_t)(lower + 1));
            check_gap(format, lower, (float)((low + high) / 2));
        }
    }
}

static void test_overflow_begins_halfway_past_the_largest(void **state) {
    (void)state;
    check_gap(&formats[0], 0x7bff, 65520.0f);
    check_gap(&formats[1], 0x7f7f, tk_bits_float(0x7f7f8000));
    for (int f = 0; f < 2; f++) {
        assert_int_equal(formats[f].narrow(INFINITY), formats[f].infinity);
        assert_int_equal(formats[f].narrow(-INFINITY), formats[f].infinity | 0x8000);
        assert_int_equal(formats[f].narrow(3.4e38f), f ? 0x7f80 : 0x7c00);
        assert_int_equal(formats[f].narrow(-0.0f), 0x8000);
        assert_int_equal(formats[f].narrow(1e-45f), 0);
    }
}

/* The NaN with its payload in bits that a half does not have must not become an infinity. */
static void test_nans_stay_nans(void **state) {
    (void)state;
    static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0xff800001, 0xffffffff, 0x7fffffff};
    for (int f = 0; f < 2; f++) {
        for (int i = 0; i < 5; i++) {
            uint16_t half = formats[f].narrow(tk_bits_float(nans[i]));
            assert_true((half & 0x7fff) > formats[f].infinity);
            assert_true(half & formats[f].quiet);
            assert_int_equal(half >> 15, nans[i] >> 31);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_by_its_definition),
        cmocka_unit_test(test_all_halves_come_back),
        cmocka_unit_test(test_rounding_turns_halfway),
        cmocka_unit_test(test_overflow_begins_halfway_past_the_largest),
        cmocka_unit_test(test_nans_stay_nans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
