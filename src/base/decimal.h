/* Floats as decimal digits and back, the same in every locale: C's printf and strtod put and expect
 * the locale's decimal point, so only digits and exponents are taken from them. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include "base/strbuf.h"
#include "tiki/dtype.h"

#define TK_DECIMAL_DIGITS 40

/* digits[0].digits[1]digits[2]... times 10 to the exponent. Zero is the one digit "0". */
typedef struct tk_decimal {
    bool negative;
    int count;
    int exponent;
    char digits[TK_DECIMAL_DIGITS];
} tk_decimal;

/* The fewest digits that read back as `value`, a finite value of the float dtype; the nearest to it
 * among them. */
tk_decimal tk_decimal_shortest(tk_dtype dtype, double value);

/* A finite value correctly rounded to `count` digits, 1 to TK_DECIMAL_DIGITS. */
tk_decimal tk_decimal_rounded(double value, int count);

/* A value of the float dtype in its shortest form: 0.1, -2.0, 1e-07, inf, -inf, nan. NaN loses sign
 * and payload. */
void tk_decimal_put(tk_strbuf *out, tk_dtype dtype, double value);

/* Reads a decimal number or inf, -inf, nan from the beginning of `text` and rounds it to the dtype.
 * Gives the bytes read, 0 when there is no number (more than 400 digits are none). */
size_t tk_decimal_read(const char *text, size_t length, tk_dtype dtype, double *out_value);

#endif
