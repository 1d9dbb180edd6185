/* See elementwise.h. Kernels are written as text, which is what one reads when one is wrong, and
 * kept by their signature for the life of the process. */
#include "compile/elementwise.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "compile/axes.h"
#include "compile/functions.h"
#include "compile/kernel_text.h"
#include "compile/kernels_made.h"
#include "compile/run.h"

/* ---- what an op is in a kernel ---- */

/* For elements of floats, signed and unsigned integers, and truth values (i1): $0 $1 $2 are the
 * operands, $t the type that is computed in. NULL: there is none. Every line but the last names an
 * intermediate value; the last one is `%r`. */
typedef struct formula {
    const char *of_float, *of_signed, *of_unsigned, *of_bool;
} formula;

#define SAME(text)                                                                                 \
    { text, text, text, NULL }

static const formula formulas[TK_OP_COUNT] = {
    [TK_OP_add] = {"%r = add $0, $1 : $t", "%r = add $0, $1 : $t", "%r = add $0, $1 : $t",
                   "%r = or $0, $1 : i1"},
    [TK_OP_subtract] = SAME("%r = sub $0, $1 : $t"),
    [TK_OP_multiply] = {"%r = mul $0, $1 : $t", "%r = mul $0, $1 : $t", "%r = mul $0, $1 : $t",
                        "%r = and $0, $1 : i1"},
    [TK_OP_divide] = {"%r = div $0, $1 : $t", NULL, NULL, NULL},
    [TK_OP_negative] = SAME("%r = neg $0 : $t"),
    [TK_OP_abs] = {"%r = abs $0 : $t", "%r = abs $0 : $t", "%r = or $0, $0 : $t",
                   "%r = or $0, $0 : i1"},
    [TK_OP_sqrt] = {"%r = sqrt $0 : $t", NULL, NULL, NULL},
    [TK_OP_rsqrt] = {"%q = sqrt $0 : $t\n    %r = rcp %q : $t", NULL, NULL, NULL},
    [TK_OP_ceil] = {"%r = ceil $0 : $t", NULL, NULL, NULL},
    [TK_OP_floor] = {"%r = floor $0 : $t", NULL, NULL, NULL},
    [TK_OP_trunc] = {"%r = trunc $0 : $t", NULL, NULL, NULL},
    [TK_OP_rint] = {"%r = rint $0 : $t", NULL, NULL, NULL},
    [TK_OP_maximum] = {"%r = max $0, $1 : $t", "%r = smax $0, $1 : $t", "%r = umax $0, $1 : $t",
                       "%r = or $0, $1 : i1"},
    [TK_OP_minimum] = {"%r = min $0, $1 : $t", "%r = smin $0, $1 : $t", "%r = umin $0, $1 : $t",
                       "%r = and $0, $1 : i1"},
    [TK_OP_equal] = {"%r = fcmp.eq $0, $1 : i1", "%r = icmp.eq $0, $1 : i1",
                     "%r = icmp.eq $0, $1 : i1", "%q = xor $0, $1 : i1\n    %r = not %q : i1"},
    [TK_OP_not_equal] = {"%r = fcmp.neu $0, $1 : i1", "%r = icmp.ne $0, $1 : i1",
                         "%r = icmp.ne $0, $1 : i1", "%r = xor $0, $1 : i1"},
    [TK_OP_less] = {"%r = fcmp.lt $0, $1 : i1", "%r = icmp.slt $0, $1 : i1",
                    "%r = icmp.ult $0, $1 : i1", NULL},
    [TK_OP_less_equal] = {"%r = fcmp.le $0, $1 : i1", "%r = icmp.sle $0, $1 : i1",
                          "%r = icmp.ule $0, $1 : i1", NULL},
    [TK_OP_greater] = {"%r = fcmp.gt $0, $1 : i1", "%r = icmp.sgt $0, $1 : i1",
                       "%r = icmp.ugt $0, $1 : i1", NULL},
    [TK_OP_greater_equal] = {"%r = fcmp.ge $0, $1 : i1", "%r = icmp.sge $0, $1 : i1",
                             "%r = icmp.uge $0, $1 : i1", NULL},
    [TK_OP_logical_not] = {NULL, NULL, NULL, "%r = not $0 : i1"},
    [TK_OP_logical_and] = {NULL, NULL, NULL, "%r = and $0, $1 : i1"},
    [TK_OP_logical_or] = {NULL, NULL, NULL, "%r = or $0, $1 : i1"},
    [TK_OP_bitwise_and] = {NULL, "%r = and $0, $1 : $t", "%r = and $0, $1 : $t",
                           "%r = and $0, $1 : i1"},
    [TK_OP_bitwise_or] = {NULL, "%r = or $0, $1 : $t", "%r = or $0, $1 : $t",
                          "%r = or $0, $1 : i1"},
    [TK_OP_bitwise_xor] = {NULL, "%r = xor $0, $1 : $t", "%r = xor $0, $1 : $t",
                           "%r = xor $0, $1 : i1"},
    [TK_OP_where] = {"%r = select $0, $1, $2 : $t", "%r = select $0, $1, $2 : $t",
                     "%r = select $0, $1, $2 : $t", "%r = select $0, $1, $2 : i1"},
    [TK_OP_exp] = {"%r = exp $0 : $t", NULL, NULL, NULL},
    [TK_OP_log] = {"%r = log $0 : $t", NULL, NULL, NULL},
    [TK_OP_log2] = {"%r = log2 $0 : $t", NULL, NULL, NULL},
    [TK_OP_sin] = {"%r = sin $0 : $t", NULL, NULL, NULL},
    [TK_OP_cos] = {"%r = cos $0 : $t", NULL, NULL, NULL},
    [TK_OP_tanh] = {"%r = tanh $0 : $t", NULL, NULL, NULL},
    [TK_OP_erf] = {"%r = erf $0 : $t", NULL, NULL, NULL},
    [TK_OP_sigmoid] = {"%m = neg $0 : $t\n    %e = exp %m : $t\n    %d = add %e, $t(1.0) : $t\n"
                       "    %r = rcp %d : $t",
                       NULL, NULL, NULL},
    [TK_OP_log10] = {"%l = log2 $0 : $t\n    %r = mul %l, $t(0.30102999566398120) : $t", NULL, NULL,
                     NULL},
    [TK_OP_tan] = {"%s = sin $0 : $t\n    %k = cos $0 : $t\n    %r = div %s, %k : $t", NULL, NULL,
                   NULL},
    [TK_OP_sign] =
        {NULL,
         "%p = icmp.sgt $0, $t(0) : i1\n    %below = icmp.slt $0, $t(0) : i1\n"
         "    %m = select %below, $t(-1), $t(0) : $t\n    %r = select %p, $t(1), %m : $t",
         "%p = icmp.ne $0, $t(0) : i1\n    %r = select %p, $t(1), $t(0) : $t",
         "%r = or $0, $0 : i1"},
    [TK_OP_bitwise_invert] = {NULL, "%r = not $0 : $t", "%r = not $0 : $t", "%r = not $0 : i1"},
    /* Division by zero gives 0; the quotient is rounded down. */
    [TK_OP_floor_divide] =
        {NULL,
         "%zero = icmp.eq $1, $t(0) : i1\n    %by = select %zero, $t(1), $1 : $t\n"
         "    %q = sdiv $0, %by : $t\n    %rest = srem $0, %by : $t\n"
         "    %uneven = icmp.ne %rest, $t(0) : i1\n    %mixed = xor %rest, %by : $t\n"
         "    %apart = icmp.slt %mixed, $t(0) : i1\n    %down = and %uneven, %apart : i1\n"
         "    %less = sub %q, $t(1) : $t\n    %full = select %down, %less, %q : $t\n"
         "    %r = select %zero, $t(0), %full : $t",
         "%zero = icmp.eq $1, $t(0) : i1\n    %by = select %zero, $t(1), $1 : $t\n"
         "    %q = udiv $0, %by : $t\n    %r = select %zero, $t(0), %q : $t",
         NULL},
    [TK_OP_remainder] =
        {NULL,
         "%zero = icmp.eq $1, $t(0) : i1\n    %by = select %zero, $t(1), $1 : $t\n"
         "    %rest = srem $0, %by : $t\n    %uneven = icmp.ne %rest, $t(0) : i1\n"
         "    %mixed = xor %rest, %by : $t\n    %apart = icmp.slt %mixed, $t(0) : i1\n"
         "    %up = and %uneven, %apart : i1\n    %more = add %rest, %by : $t\n"
         "    %full = select %up, %more, %rest : $t\n    %r = select %zero, $t(0), %full : $t",
         "%zero = icmp.eq $1, $t(0) : i1\n    %by = select %zero, $t(1), $1 : $t\n"
         "    %rest = urem $0, %by : $t\n    %r = select %zero, $t(0), %rest : $t",
         NULL},
    /* between dtypes: see put_conversion */
    [TK_OP_astype] = {"", "", "", ""},
};

/* Has no f64 form in kernels. */
static bool is_narrow(tk_op op) {
    switch (op) {
    case TK_OP_maximum:
    case TK_OP_minimum:
    case TK_OP_exp:
    case TK_OP_log:
    case TK_OP_log2:
    case TK_OP_log10:
    case TK_OP_tan:
    case TK_OP_sin:
    case TK_OP_cos:
    case TK_OP_tanh:
    case TK_OP_erf:
    case TK_OP_sigmoid:
        return true;
    default:
        return false;
    }
}

static const char *formula_of(tk_op op, tk_dtype dtype) {
    const formula *f = &formulas[op];
    switch (tk_dtype_kind(dtype)) {
    case TK_KIND_BOOL:
        return f->of_bool;
    case TK_KIND_SIGNED:
        return f->of_signed;
    case TK_KIND_UNSIGNED:
        return f->of_unsigned;
    case TK_KIND_FLOAT:
        if (tk_function_is(op, dtype == TK_FLOAT64)) return "";
        return dtype == TK_FLOAT64 && is_narrow(op) ? NULL : f->of_float;
    default:
        return NULL;
    }
}

tk_status tk_elementwise_check(tk_op op, tk_dtype in, tk_dtype out) {
    if (formula_of(op, in) && !tk_dtype_is_complex(out)) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "%s of %s has no kernel on devices: move it to the cpu",
                   tk_op_title(op), tk_dtype_name(in));
}

/* ---- axes that all operands share ---- */

#define MOST_VIEWS (TK_ELEMENTWISE_INPUTS + 1)
_Static_assert(MOST_VIEWS <= TK_MOST_VIEWS, "views of an elementwise op");

/* The output is the last view. */
static void find_shape(int n_inputs, const tk_strided *inputs, const tk_strided *output,
                       tk_view_axes *s) {
    *s = (tk_view_axes){.n_views = n_inputs + 1, .size = 1};
    for (int i = 0; i < output->rank; i++) {
        tk_view_axis next = {.length = output->shape[i]};
        for (int v = 0; v < n_inputs; v++) next.stride[v] = inputs[v].strides[i];
        next.stride[n_inputs] = output->strides[i];
        tk_view_axes_add(s, &next);
    }
    tk_view_axes_close(s);
}

/* ---- the text ---- */

typedef struct signature {
    tk_op op;
    int n_inputs, rank;
    int wide; /* whether numbers of elements have 64 bits; no bool, so that bytes can be compared */
    tk_dtype in[TK_ELEMENTWISE_INPUTS], out;
} signature;

static void put_params(const signature *s, tk_strbuf *out) {
    for (int v = 0; v < s->n_inputs; v++)
        tk_strbuf_printf(out, "  %%x%d: ptr<%s, global> read align %zu,\n", v,
                         tk_text_memory(s->in[v]), tk_dtype_size(s->in[v]));
    tk_strbuf_printf(out, "  %%y: ptr<%s, global> write align %zu,\n", tk_text_memory(s->out),
                     tk_dtype_size(s->out));
    tk_strbuf_printf(out, "  %%n: i64");
    for (int i = 1; i < s->rank; i++)
        tk_strbuf_printf(out, ",\n  %%length%d: %s", i, s->wide ? "i64" : "i32");
    for (int v = 0; v <= s->n_inputs; v++)
        for (int i = 0; i < s->rank; i++) tk_strbuf_printf(out, ",\n  %%s%d_%d: i64", v, i);
}

/* %i is the element's number. */
static void put_number(const signature *s, tk_strbuf *out) {
    tk_strbuf_printf(out, "  %%thread = thread_index.x : i32\n  %%block = block_index.x : i32\n"
                          "  %%thread_wide = extend_signed %%thread : i64\n"
                          "  %%block_wide = extend_signed %%block : i64\n"
                          "  %%first = mul %%block_wide, i64(256) : i64\n"
                          "  %%i = add %%first, %%thread_wide : i64\n"
                          "  %%inside = icmp.slt %%i, %%n : i1\n  if %%inside {\n");
    if (!s->wide && s->rank > 1) tk_strbuf_printf(out, "    %%k%d = truncate %%i : i32\n", s->rank);
}

/* %c0, %c1, ... are its coordinates, as i64. */
static void put_coordinates(const signature *s, tk_strbuf *out) {
    const char *type = s->wide ? "i64" : "i32";
    for (int i = s->rank - 1; i > 0; i--) {
        char from[16];
        if (i == s->rank - 1 && s->wide)
            snprintf(from, sizeof from, "%%i");
        else
            snprintf(from, sizeof from, "%%k%d", i + 1);
        tk_strbuf_printf(out,
                         "    %%k%d = udiv %s, %%length%d : %s\n"
                         "    %%m%d = mul %%k%d, %%length%d : %s\n"
                         "    %%d%d = sub %s, %%m%d : %s\n",
                         i, from, i, type, i, i, i, type, i, from, i, type);
    }
    for (int i = 0; i < s->rank; i++) {
        const char *letter = i ? "d" : "k";
        int at = i ? i : 1;
        if (s->rank == 1)
            tk_strbuf_printf(out, "    %%c0 = or %%i, i64(0) : i64\n");
        else if (s->wide)
            tk_strbuf_printf(out, "    %%c%d = or %%%s%d, i64(0) : i64\n", i, letter, at);
        else
            tk_strbuf_printf(out, "    %%c%d = extend_unsigned %%%s%d : i64\n", i, letter, at);
    }
}

/* %pV points to the element of view V. */
static void put_pointer(const signature *s, int v, tk_strbuf *out) {
    tk_strbuf_printf(out, "    %%o%d_0 = mul %%c0, %%s%d_0 : i64\n", v, v);
    for (int i = 1; i < s->rank; i++)
        tk_strbuf_printf(out,
                         "    %%t%d_%d = mul %%c%d, %%s%d_%d : i64\n"
                         "    %%o%d_%d = add %%o%d_%d, %%t%d_%d : i64\n",
                         v, i, i, v, i, v, i, v, i - 1, v, i);
    bool output = v == s->n_inputs;
    char base[16];
    snprintf(base, sizeof base, output ? "%%y" : "%%x%d", v);
    tk_strbuf_printf(out, "    %%p%d = offset %s, %%o%d_%d : ptr<%s, global>\n", v, base, v,
                     s->rank - 1, tk_text_memory(output ? s->out : s->in[v]));
}

/* %aV is the value of input V, as it is computed with. */
static void put_load(tk_dtype dtype, int v, tk_strbuf *out) {
    const char *type = tk_text_value(dtype);
    const char *loaded =
        dtype == TK_BOOL || tk_text_is_half(dtype) || tk_text_is_small(dtype) ? "l" : "a";
    tk_strbuf_printf(out, "    %%%s%d = load %%p%d : %s\n", loaded, v, v, tk_text_memory(dtype));
    if (dtype == TK_BOOL)
        tk_strbuf_printf(out,
                         "    %%w%d = extend_unsigned %%l%d : i32\n"
                         "    %%a%d = icmp.ne %%w%d, i32(0) : i1\n",
                         v, v, v, v);
    else if (tk_text_is_half(dtype))
        tk_strbuf_printf(out, "    %%a%d = convert %%l%d : f32\n", v, v);
    else if (tk_text_is_small(dtype))
        tk_strbuf_printf(out, "    %%a%d = extend_%s %%l%d : %s\n", v,
                         tk_dtype_kind(dtype) == TK_KIND_SIGNED ? "signed" : "unsigned", v, type);
}

/* Stores %r, which is of the value type of `dtype`. */
static void put_store(tk_dtype dtype, int v, tk_strbuf *out) {
    const char *memory = tk_text_memory(dtype);
    const char *stored = "r";
    if (dtype == TK_BOOL) {
        tk_strbuf_printf(out, "    %%wide = extend_unsigned %%r : i32\n");
        tk_strbuf_printf(out, "    %%stored = truncate %%wide : i8\n");
        stored = "stored";
    } else if (tk_text_is_half(dtype) || tk_text_is_small(dtype)) {
        tk_strbuf_printf(out, "    %%stored = %s %%r : %s\n",
                         tk_text_is_half(dtype) ? "convert" : "truncate", memory);
        stored = "stored";
    }
    tk_strbuf_printf(out, "    store %%p%d, %%%s\n", v, stored);
}

static void put_formula(const char *text, const char *type, tk_strbuf *out) {
    tk_strbuf_printf(out, "    ");
    for (; *text; text++) {
        if (*text != '$')
            tk_strbuf_printf(out, "%c", *text);
        else if (*++text == 't')
            tk_strbuf_printf(out, "%s", type);
        else
            tk_strbuf_printf(out, "%%a%c", *text);
    }
    tk_strbuf_printf(out, "\n");
}

/* %r from a float, saturated at the width of the result. */
static void put_to_whole(tk_dtype to, tk_strbuf *out) {
    bool is_signed = tk_dtype_kind(to) == TK_KIND_SIGNED;
    int bits = 8 * (int)tk_dtype_size(to);
    const char *type = tk_text_value(to);
    tk_strbuf_printf(out, "    %%%s = %s_from_float %%a0 : %s\n",
                     tk_text_is_small(to) ? "whole" : "r", is_signed ? "signed" : "unsigned", type);
    if (!tk_text_is_small(to)) return;
    if (is_signed)
        tk_strbuf_printf(out,
                         "    %%below = smin %%whole, i32(%d) : i32\n"
                         "    %%r = smax %%below, i32(%d) : i32\n",
                         (1 << (bits - 1)) - 1, -(1 << (bits - 1)));
    else
        tk_strbuf_printf(out, "    %%r = umin %%whole, i32(%d) : i32\n", (1 << bits) - 1);
}

/* %r from %a0 of another dtype. */
static void put_conversion(tk_dtype from, tk_dtype to, tk_strbuf *out) {
    const char *a = tk_text_value(from), *b = tk_text_value(to);
    bool whole = tk_dtype_is_integer(from), to_whole = tk_dtype_is_integer(to);
    const char *sign = tk_dtype_kind(from) == TK_KIND_SIGNED ? "signed" : "unsigned";
    bool wide = tk_dtype_size(from) == 8, to_wide = tk_dtype_size(to) == 8;
    if (from == TK_BOOL && (to_whole || to == TK_BOOL))
        tk_strbuf_printf(out,
                         to == TK_BOOL ? "    %%r = or %%a0, %%a0 : i1\n"
                                       : "    %%r = extend_unsigned %%a0 : %s\n",
                         b);
    else if (from == TK_BOOL)
        tk_strbuf_printf(out, "    %%r = select %%a0, %s(1.0), %s(0.0) : %s\n", b, b, b);
    else if (to == TK_BOOL && whole)
        tk_strbuf_printf(out, "    %%r = icmp.ne %%a0, %s(0) : i1\n", a);
    else if (to == TK_BOOL)
        tk_strbuf_printf(out, "    %%r = fcmp.neu %%a0, %s(0.0) : i1\n", a);
    else if (whole && to_whole && wide == to_wide)
        tk_strbuf_printf(out, "    %%r = or %%a0, %s(0) : %s\n", b, b);
    else if (whole && to_whole)
        tk_strbuf_printf(
            out, to_wide ? "    %%r = extend_%s %%a0 : i64\n" : "    %%r = truncate %%a0 : i32\n",
            sign);
    else if (whole)
        tk_strbuf_printf(out, "    %%r = float_from_%s %%a0 : %s\n", sign, b);
    else if (to_whole)
        put_to_whole(to, out);
    else if (!strcmp(a, b))
        tk_strbuf_printf(out, "    %%r = copysign %%a0, %%a0 : %s\n", b);
    else
        tk_strbuf_printf(out, "    %%r = convert %%a0 : %s\n", b);
}

static void put_kernel(const void *key, tk_strbuf *out) {
    const signature *s = key;
    tk_strbuf_printf(out, "tiki kernel 1\n\nkernel %s_%s", tk_op_name(s->op),
                     tk_dtype_name(s->in[s->n_inputs - 1]));
    if (s->op == TK_OP_astype) tk_strbuf_printf(out, "_%s", tk_dtype_name(s->out));
    tk_strbuf_printf(out, "_%d%s(\n", s->rank, s->wide ? "_wide" : "");
    put_params(s, out);
    tk_strbuf_printf(out, ")\nform thread\nrequire %%n >= 0\ngrid (ceildiv(%%n, 256), 1, 1)\n"
                          "block (256, 1, 1)\n{\n");
    put_number(s, out);
    put_coordinates(s, out);
    for (int v = 0; v <= s->n_inputs; v++) put_pointer(s, v, out);
    for (int v = 0; v < s->n_inputs; v++) put_load(s->in[v], v, out);
    tk_dtype computed = s->in[s->n_inputs - 1];
    if (s->op == TK_OP_astype)
        put_conversion(s->in[0], s->out, out);
    else if (tk_dtype_is_float(computed) && tk_function_is(s->op, computed == TK_FLOAT64))
        tk_function_put(s->op, computed == TK_FLOAT64, out);
    else
        put_formula(formula_of(s->op, computed), tk_text_value(computed), out);
    put_store(s->out, s->n_inputs, out);
    tk_strbuf_printf(out, "  }\n}\n");
}

void tk_elementwise_put(tk_op op, tk_dtype dtype, tk_strbuf *out) {
    for (int v = 0; v < 2; v++) put_load(dtype, v, out);
    put_formula(formula_of(op, dtype), tk_text_value(dtype), out);
    put_store(dtype, 0, out);
}

/* ---- kernels by signature ---- */

static tk_kernels_made kernels = {
    PTHREAD_MUTEX_INITIALIZER, "elementwise", sizeof(signature), put_kernel, {0}};

/* ---- running ---- */

static tk_run_argument memory(const tk_strided *view) {
    tk_run_argument argument = {.data = view->data};
    tk_extent_of(view, &argument.before, &argument.bytes);
    return argument;
}

enum { MOST_ARGUMENTS = MOST_VIEWS + 1 + TK_AXES_MAX + MOST_VIEWS * TK_AXES_MAX };

static size_t fill_arguments(const tk_view_axes *s, const tk_strided *inputs,
                             const tk_strided *output, tk_run_argument *out) {
    size_t count = 0;
    for (int v = 0; v + 1 < s->n_views; v++) out[count++] = memory(&inputs[v]);
    out[count++] = memory(output);
    out[count++] = (tk_run_argument){.bits = (uint64_t)output->size};
    for (int i = 1; i < s->rank; i++)
        out[count++] = (tk_run_argument){.bits = (uint64_t)s->items[i].length};
    for (int v = 0; v < s->n_views; v++)
        for (int i = 0; i < s->rank; i++)
            out[count++] = (tk_run_argument){.bits = (uint64_t)s->items[i].stride[v]};
    return count;
}

tk_status tk_elementwise_run(const tk_body_call *call, tk_op op, int n_inputs,
                             const tk_strided *inputs, const tk_strided *output) {
    tk_view_axes s;
    signature key;
    tk_run_argument arguments[MOST_ARGUMENTS];
    if (output->size == 0) return TK_OK;
    TK_TRY(tk_elementwise_check(op, inputs[n_inputs - 1].dtype, output->dtype));
    find_shape(n_inputs, inputs, output, &s);
    memset(&key, 0, sizeof key);
    key.op = op;
    key.n_inputs = n_inputs;
    key.rank = s.rank;
    key.wide = output->size > INT32_MAX;
    key.out = output->dtype;
    for (int v = 0; v < n_inputs; v++) key.in[v] = inputs[v].dtype;
    tk_kernel *kernel;
    TK_TRY(tk_kernels_find(&kernels, &key, &kernel));
    size_t count = fill_arguments(&s, inputs, output, arguments);
    tk_run run = {kernel, NULL, count, arguments, TK_TARGET_PTX, NULL};
    return tk_run_kernel(call->device, call->queue, &run);
}
