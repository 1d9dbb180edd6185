/* Values as text, laid out as NumPy's array2string lays them out: common width, fewest digits up to
 * 8, scientific notation for very large, very small or very different numbers, the middle of large
 * arrays left out.
 *
 * Two passes over the elements that are shown: one finds the layout of the column, one prints.
 * bfloat16, which NumPy does not have, is laid out as float16. Where NumPy prints more digits than
 * a number's shortest form has, it prints those of the exact value, so this does too. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/half.h"
#include "tiki/array.h"

#define LINE_WIDTH 75
#define MOST_SHOWN 1000 /* elements, before the middle is left out */
#define EDGE_ITEMS 3
#define PRECISION 8 /* digits after the point */
#define MOST_FIXED 100
#define FIXED_BYTES (MOST_FIXED + 320) /* a double has up to 309 digits before the point */

/* How the floats of a column are laid out. Widths are in characters. */
typedef struct column {
    tk_dtype dtype;
    bool plus; /* positive numbers get a sign */
    bool scientific;
    double largest, smallest; /* finite magnitudes other than 0 */
    bool any_finite, any_other, any_negative_infinity;
    int left;     /* before the point */
    int fraction; /* after it */
    int exponent; /* digits */
    int fixed;    /* digits after the point as asked for; -1: as few as tell the numbers apart */
} column;

typedef struct formatter {
    const tk_strided *view;
    bool summary;
    column real, imag;
    int width; /* of an integer */
    tk_strbuf out;
    tk_strbuf word;
    size_t line; /* characters on the last line */
} formatter;

typedef void (*visitor)(formatter *f, const char *at);

/* ---- elements ---- */

static const char *element(const formatter *f, const char *at, int axis, int64_t index) {
    return at + index * f->view->strides[axis] * (int64_t)tk_dtype_size(f->view->dtype);
}

static bool leaves_out(const formatter *f, int axis) {
    return f->summary && f->view->shape[axis] > 2 * EDGE_ITEMS;
}

/* All elements that are shown. Recursion is as deep as the array has axes. */
static void visit(formatter *f, int axis, const char *at, visitor visitor_of) {
    if (axis == f->view->rank) {
        visitor_of(f, at);
        return;
    }
    int64_t length = f->view->shape[axis];
    for (int64_t i = 0; i < length; i++) {
        if (i == EDGE_ITEMS && leaves_out(f, axis)) i = length - EDGE_ITEMS;
        visit(f, axis + 1, element(f, at, axis, i), visitor_of);
    }
}

static uint16_t load_half(const char *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return half;
}

static double load_float(tk_dtype dtype, const char *at) {
    float single;
    double wide;
    switch (dtype) {
    case TK_FLOAT16:
        return tk_f16_to_f32(load_half(at));
    case TK_BFLOAT16:
        return tk_bf16_to_f32(load_half(at));
    case TK_FLOAT64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    default:
        memcpy(&single, at, sizeof single);
        return single;
    }
}

/* The integer at `at` as decimal text. */
static int integer_text(tk_dtype dtype, const char *at, char *text, size_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, at, tk_dtype_size(dtype));
    int spare = 64 - 8 * (int)tk_dtype_size(dtype);
    if (tk_dtype_kind(dtype) == TK_KIND_UNSIGNED) return snprintf(text, bytes, "%" PRIu64, bits);
    return snprintf(text, bytes, "%" PRId64, (int64_t)(bits << spare) >> spare);
}

/* ---- the layout of floats ---- */

static double round_to(tk_dtype dtype, double value) {
    if (dtype == TK_FLOAT16) return tk_f16_to_f32(tk_f64_to_f16(value));
    if (dtype == TK_BFLOAT16) return tk_bf16_to_f32(tk_f64_to_bf16(value));
    return dtype == TK_FLOAT64 ? value : (double)(float)value;
}

static void note_range(column *c, double value) {
    if (!isfinite(value)) {
        c->any_other = true;
        c->any_negative_infinity |= value < 0;
        return;
    }
    double magnitude = fabs(value);
    c->any_finite = true;
    if (magnitude == 0) return;
    if (magnitude > c->largest) c->largest = magnitude;
    if (c->smallest == 0 || magnitude < c->smallest) c->smallest = magnitude;
}

/* Up to which magnitude a dtype's numbers are worth writing out. */
static double largest_positional(tk_dtype dtype) {
    if (dtype == TK_FLOAT64) return 1e8;
    return dtype == TK_FLOAT32 ? 1e6 : 1e3;
}

static bool wants_scientific(const column *c) {
    if (c->largest == 0) return false;
    return c->largest >= largest_positional(c->dtype) || c->smallest < round_to(c->dtype, 1e-4) ||
           round_to(c->dtype, c->largest / c->smallest) > 1000;
}

static void trim_zeros(tk_decimal *decimal) {
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0') decimal->count--;
}

static int max_int(int a, int b) { return a > b ? a : b; }

/* Shortest digits, at most PRECISION after the point. */
static tk_decimal positional_digits(const column *c, double value) {
    tk_decimal decimal = tk_decimal_shortest(c->dtype, value);
    if (decimal.count - 1 - decimal.exponent <= PRECISION) return decimal;
    decimal = tk_decimal_rounded(value, max_int(decimal.exponent + PRECISION + 1, 1));
    trim_zeros(&decimal);
    return decimal;
}

static tk_decimal scientific_digits(const column *c, double value) {
    tk_decimal decimal = tk_decimal_shortest(c->dtype, value);
    if (decimal.count - 1 <= PRECISION) return decimal;
    decimal = tk_decimal_rounded(value, PRECISION + 1);
    trim_zeros(&decimal);
    return decimal;
}

static int fixed_text(const column *c, double value, char *text, size_t bytes) {
    return snprintf(text, bytes, c->plus ? "%+.*f" : "%.*f", c->fixed, value);
}

static void note_width(column *c, double value) {
    char text[FIXED_BYTES];
    if (!isfinite(value)) return;
    if (c->fixed >= 0) {
        c->fraction = c->fixed;
        int right = c->fixed ? c->fixed + 1 : 0;
        c->left = max_int(c->left, fixed_text(c, value, text, sizeof text) - right);
        return;
    }
    tk_decimal d = c->scientific ? scientific_digits(c, value) : positional_digits(c, value);
    int sign = d.negative || c->plus;
    int whole = c->scientific || d.exponent < 0 ? 1 : d.exponent + 1;
    int fraction = d.count - 1 - (c->scientific ? 0 : d.exponent);
    c->left = max_int(c->left, sign + whole);
    c->fraction = max_int(c->fraction, fraction);
    if (c->scientific)
        c->exponent = max_int(c->exponent, d.exponent <= -100 || d.exponent >= 100 ? 3 : 2);
}

static int right_of_point(const column *c) {
    if (c->fixed == 0) return -1; /* without the point too */
    return c->fraction + (c->scientific ? c->exponent + 2 : 0);
}

static void finish_column(column *c) {
    if (!c->any_other) return;
    int right = right_of_point(c) + 1;
    c->left = max_int(c->left, 3 + (c->plus || c->any_negative_infinity) - right);
    c->left = max_int(c->left, 3 - right);
}

/* ---- floats ---- */

static void put_spaces(tk_strbuf *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) tk_strbuf_putc(out, ' ');
}

static void put_other(const column *c, tk_strbuf *out, double value) {
    const char *sign = value < 0 ? "-" : c->plus ? "+" : "";
    const char *name = isnan(value) ? "nan" : "inf";
    int length = (int)(strlen(sign) + strlen(name));
    put_spaces(out, c->left + right_of_point(c) + 1 - length);
    tk_strbuf_puts(out, sign);
    tk_strbuf_puts(out, name);
}

static void put_sign(const column *c, tk_strbuf *out, const tk_decimal *d, int whole) {
    const char *sign = d->negative ? "-" : c->plus ? "+" : "";
    put_spaces(out, c->left - whole - (int)strlen(sign));
    tk_strbuf_puts(out, sign);
}

static void put_positional(const column *c, tk_strbuf *out, double value) {
    tk_decimal d = positional_digits(c, value);
    int whole = d.exponent < 0 ? 1 : d.exponent + 1, last = d.count - 1 - d.exponent;
    put_sign(c, out, &d, whole);
    for (int place = whole - 1; place >= -last || place >= 0; place--) {
        if (place == -1) tk_strbuf_putc(out, '.');
        int digit = d.exponent - place;
        tk_strbuf_putc(out, digit >= 0 && digit < d.count ? d.digits[digit] : '0');
    }
    if (last <= 0) tk_strbuf_putc(out, '.');
    put_spaces(out, c->fraction - max_int(last, 0));
}

static void put_scientific(const column *c, tk_strbuf *out, double value) {
    tk_decimal d = tk_decimal_shortest(c->dtype, value);
    if (d.count != c->fraction + 1) d = tk_decimal_rounded(value, c->fraction + 1);
    put_sign(c, out, &d, 1);
    tk_strbuf_putc(out, d.digits[0]);
    tk_strbuf_putc(out, '.');
    tk_strbuf_put(out, d.digits + 1, (size_t)d.count - 1);
    tk_strbuf_printf(out, "e%c%0*d", d.exponent < 0 ? '-' : '+', c->exponent,
                     d.exponent < 0 ? -d.exponent : d.exponent);
}

static void put_fixed(const column *c, tk_strbuf *out, double value) {
    char text[FIXED_BYTES];
    int length = fixed_text(c, value, text, sizeof text);
    put_spaces(out, c->left + right_of_point(c) + 1 - length);
    tk_strbuf_puts(out, text);
}

static void put_float(const column *c, tk_strbuf *out, double value) {
    if (!isfinite(value))
        put_other(c, out, value);
    else if (c->fixed >= 0)
        put_fixed(c, out, value);
    else if (c->scientific)
        put_scientific(c, out, value);
    else
        put_positional(c, out, value);
}

/* The j goes before the spaces that fill the column. */
static void put_imaginary(const column *c, tk_strbuf *out, double value) {
    put_float(c, out, value);
    size_t end = out->length;
    while (end && out->text[end - 1] == ' ') end--;
    tk_strbuf_putc(out, ' ');
    if (!out->failed) out->text[end] = 'j';
}

/* ---- passes ---- */

static void see_range(formatter *f, const char *at) {
    note_range(&f->real, load_float(f->real.dtype, at));
    if (tk_dtype_is_complex(f->view->dtype))
        note_range(&f->imag, load_float(f->imag.dtype, at + 4));
}

static void see_width(formatter *f, const char *at) {
    note_width(&f->real, load_float(f->real.dtype, at));
    if (tk_dtype_is_complex(f->view->dtype))
        note_width(&f->imag, load_float(f->imag.dtype, at + 4));
}

static void see_integer(formatter *f, const char *at) {
    char text[32];
    f->width = max_int(f->width, integer_text(f->view->dtype, at, text, sizeof text));
}

static void find_layout(formatter *f) {
    tk_dtype dtype = f->view->dtype;
    if (dtype == TK_BOOL) return;
    if (tk_dtype_is_integer(dtype)) {
        visit(f, 0, f->view->data, see_integer);
        return;
    }
    f->real.dtype = f->imag.dtype = tk_dtype_is_complex(dtype) ? TK_FLOAT32 : dtype;
    f->imag.plus = true;
    visit(f, 0, f->view->data, see_range);
    f->real.scientific = f->real.fixed < 0 && wants_scientific(&f->real);
    f->imag.scientific = f->imag.fixed < 0 && wants_scientific(&f->imag);
    visit(f, 0, f->view->data, see_width);
    finish_column(&f->real);
    finish_column(&f->imag);
}

static void make_word(formatter *f, const char *at) {
    tk_dtype dtype = f->view->dtype;
    f->word.length = 0;
    if (dtype == TK_BOOL) {
        tk_strbuf_puts(&f->word, !*at ? "False" : f->view->rank ? " True" : "True");
    } else if (tk_dtype_is_integer(dtype)) {
        char text[32];
        put_spaces(&f->word, f->width - integer_text(dtype, at, text, sizeof text));
        tk_strbuf_puts(&f->word, text);
    } else {
        put_float(&f->real, &f->word, load_float(f->real.dtype, at));
        if (tk_dtype_is_complex(dtype))
            put_imaginary(&f->imag, &f->word, load_float(f->imag.dtype, at + 4));
    }
}

/* ---- rows ---- */

/* Puts a word where it fits, on a new line if need be. `indent` characters begin every line of the
 * row. */
static void put_word(formatter *f, const char *word, size_t length, size_t indent, size_t width) {
    if (f->line + length > width && f->line > indent) {
        while (f->out.length && f->out.text[f->out.length - 1] == ' ') f->out.length--;
        tk_strbuf_putc(&f->out, '\n');
        put_spaces(&f->out, (int64_t)indent);
        f->line = indent;
    }
    if (length) tk_strbuf_put(&f->out, word, length);
    f->line += length;
}

static void put_row(formatter *f, const char *at) {
    int axis = f->view->rank - 1;
    int64_t length = f->view->shape[axis];
    size_t indent = (size_t)axis + 1, width = LINE_WIDTH - (size_t)axis - 1;
    f->line = indent;
    for (int64_t i = 0; i < length; i++) {
        if (i == EDGE_ITEMS && leaves_out(f, axis)) {
            put_word(f, "...", 3, indent, width);
            tk_strbuf_putc(&f->out, ' ');
            f->line++;
            i = length - EDGE_ITEMS;
        }
        make_word(f, element(f, at, axis, i));
        put_word(f, f->word.text, f->word.length, indent, width);
        if (i + 1 == length) break;
        tk_strbuf_putc(&f->out, ' ');
        f->line++;
    }
}

static void put_separator(formatter *f, int axis) {
    for (int i = axis + 1; i < f->view->rank; i++) tk_strbuf_putc(&f->out, '\n');
    put_spaces(&f->out, axis + 1);
}

static void put_axis(formatter *f, int axis, const char *at) {
    int64_t length = f->view->shape[axis];
    tk_strbuf_putc(&f->out, '[');
    if (axis + 1 == f->view->rank) put_row(f, at);
    for (int64_t i = 0; axis + 1 < f->view->rank && i < length; i++) {
        if (i == EDGE_ITEMS && leaves_out(f, axis)) {
            tk_strbuf_puts(&f->out, "...");
            put_separator(f, axis);
            i = length - EDGE_ITEMS;
        }
        put_axis(f, axis + 1, element(f, at, axis, i));
        if (i + 1 < length) put_separator(f, axis);
    }
    tk_strbuf_putc(&f->out, ']');
}

static void format_view(formatter *f) {
    if (f->view->size == 0) {
        tk_strbuf_puts(&f->out, "[]");
        return;
    }
    find_layout(f);
    if (f->view->rank) {
        put_axis(f, 0, f->view->data);
        return;
    }
    make_word(f, f->view->data);
    tk_strbuf_put(&f->out, f->word.text, f->word.length);
}

tk_status tk_format(tk_array array, char **out_text) {
    return tk_format_digits(array, -1, out_text);
}

tk_status tk_format_digits(tk_array array, int digits, char **out_text) {
    TK_NEED(out_text);
    if (digits < -1 || digits > MOST_FIXED)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tk_format_digits: digits is %d, expected -1 or 0 to %d", digits,
                       MOST_FIXED);
    tk_strided view;
    *out_text = NULL;
    TK_TRY(tk_array_view(array, &view));
    formatter f = {.view = &view, .summary = view.size > MOST_SHOWN};
    f.real.fixed = f.imag.fixed = digits;
    format_view(&f);
    bool failed = f.word.failed;
    tk_strbuf_deinit(&f.word);
    *out_text = tk_strbuf_take(&f.out);
    if (*out_text && !failed) return TK_OK;
    tk_free(*out_text);
    *out_text = NULL;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for the text of an array");
}

void tk_text_free(char *text) { tk_free(text); }
