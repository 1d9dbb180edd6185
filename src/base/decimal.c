/* See decimal.h. The shortest form is found by trying one digit more until the number reads back. A
 * dedicated algorithm would be faster; the largest array that is ever printed has a thousand
 * numbers. */
#include "base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

#define MOST_READ_DIGITS 400

/* Digits and an exponent of the last one: no decimal point, whatever the locale. */
static double read_scaled(const char *digits, int count, int exponent, tk_dtype dtype) {
    char text[MOST_READ_DIGITS + 16];
    snprintf(text, sizeof text, "%.*se%d", count, digits, exponent);
    switch (dtype) {
    case TK_FLOAT16:
        return tk_f16_to_f32(tk_f64_to_f16(strtod(text, NULL)));
    case TK_BFLOAT16:
        return tk_bf16_to_f32(tk_f64_to_bf16(strtod(text, NULL)));
    case TK_FLOAT64:
        return strtod(text, NULL);
    default:
        return strtof(text, NULL);
    }
}

tk_decimal tk_decimal_rounded(double value, int count) {
    char text[TK_DECIMAL_DIGITS + 32];
    tk_decimal result = {.negative = signbit(value) != 0};
    snprintf(text, sizeof text, "%.*e", count - 1, fabs(value));
    const char *at = text;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') result.digits[result.count++] = *at;
    result.exponent = value == 0 ? 0 : (int)strtol(at + 1, NULL, 10);
    return result;
}

static bool reads_back(const tk_decimal *decimal, tk_dtype dtype, double magnitude) {
    return read_scaled(decimal->digits, decimal->count, decimal->exponent - decimal->count + 1,
                       dtype) == magnitude;
}

/* The next larger number of as many digits. */
static void increment(tk_decimal *decimal) {
    int i = decimal->count - 1;
    for (; i >= 0 && decimal->digits[i] == '9'; i--) decimal->digits[i] = '0';
    if (i >= 0) {
        decimal->digits[i]++;
        return;
    }
    decimal->digits[0] = '1';
    decimal->exponent++;
}

static void trim_zeros(tk_decimal *decimal) {
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0') decimal->count--;
}

/* Above a power of two, values lie twice as far apart as below: there the nearest number of so many
 * digits may read back as another value when the next larger does not. */
tk_decimal tk_decimal_shortest(tk_dtype dtype, double value) {
    double magnitude = fabs(value);
    int unused;
    bool power_of_two = frexp(magnitude, &unused) == 0.5;
    tk_decimal result = tk_decimal_rounded(value, 1);
    for (int count = 1; value != 0 && count <= 17; count++) {
        result = tk_decimal_rounded(value, count);
        if (reads_back(&result, dtype, magnitude)) break;
        if (!power_of_two) continue;
        tk_decimal above = result;
        increment(&above);
        result = above;
        if (reads_back(&above, dtype, magnitude)) break;
    }
    trim_zeros(&result);
    return result;
}

static void put_positional(tk_strbuf *out, const tk_decimal *decimal) {
    if (decimal->exponent < 0) tk_strbuf_puts(out, "0.");
    for (int i = -1; i > decimal->exponent; i--) tk_strbuf_putc(out, '0');
    for (int i = 0; i < decimal->count || i <= decimal->exponent; i++) {
        tk_strbuf_putc(out, i < decimal->count ? decimal->digits[i] : '0');
        if (i == decimal->exponent) tk_strbuf_putc(out, '.');
    }
    if (decimal->exponent >= decimal->count - 1) tk_strbuf_putc(out, '0');
}

void tk_decimal_put(tk_strbuf *out, tk_dtype dtype, double value) {
    if (isnan(value)) {
        tk_strbuf_puts(out, "nan");
        return;
    }
    if (signbit(value)) tk_strbuf_putc(out, '-');
    if (isinf(value)) {
        tk_strbuf_puts(out, "inf");
        return;
    }
    tk_decimal decimal = tk_decimal_shortest(dtype, value);
    if (decimal.exponent >= -5 && decimal.exponent < 16) {
        put_positional(out, &decimal);
        return;
    }
    tk_strbuf_putc(out, decimal.digits[0]);
    if (decimal.count > 1) tk_strbuf_putc(out, '.');
    tk_strbuf_put(out, decimal.digits + 1, (size_t)decimal.count - 1);
    tk_strbuf_printf(out, "e%d", decimal.exponent);
}

static bool is_digit(const char *at, const char *end) {
    return at < end && *at >= '0' && *at <= '9';
}

/* Exponents beyond any float are kept as such. */
static const char *read_exponent(const char *at, const char *end, int *out_exponent) {
    if (at == end || (*at != 'e' && *at != 'E')) return at;
    const char *from = at + 1;
    bool negative = from < end && *from == '-';
    if (from < end && (*from == '-' || *from == '+')) from++;
    if (!is_digit(from, end)) return at;
    int exponent = 0;
    for (; is_digit(from, end); from++)
        if (exponent < 100000) exponent = exponent * 10 + (*from - '0');
    *out_exponent += negative ? -exponent : exponent;
    return from;
}

static const char *read_finite(const char *at, const char *end, tk_dtype dtype, double *out_value) {
    char digits[MOST_READ_DIGITS];
    int count = 0, exponent = 0;
    for (bool fraction = false; at < end; at++) {
        if (*at == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!is_digit(at, end)) break;
        if (count == MOST_READ_DIGITS) return NULL;
        digits[count++] = *at;
        exponent -= fraction;
    }
    if (count == 0) return NULL;
    at = read_exponent(at, end, &exponent);
    *out_value = read_scaled(digits, count, exponent, dtype);
    return at;
}

size_t tk_decimal_read(const char *text, size_t length, tk_dtype dtype, double *out_value) {
    const char *at = text, *end = text + length;
    double value;
    bool negative = at < end && *at == '-';
    if (negative) at++;
    if (end - at >= 3 && !memcmp(at, "inf", 3))
        value = INFINITY, at += 3;
    else if (end - at >= 3 && !memcmp(at, "nan", 3))
        value = NAN, at += 3;
    else
        at = read_finite(at, end, dtype, &value);
    if (!at) return 0;
    *out_value = negative ? -value : value;
    return (size_t)(at - text);
}
