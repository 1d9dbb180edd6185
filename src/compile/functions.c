/* See functions.h. Every operation becomes a line `%vN = ...`; a value is the text that names it,
 * so that constants stand where they are used, by their bits. */
#include "compile/functions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/polynomials.h"

typedef struct val {
    char text[32];
} val;

typedef struct calc {
    tk_strbuf *out;
    int next;
} calc;

static val named(const char *text) {
    val v;
    snprintf(v.text, sizeof v.text, "%s", text);
    return v;
}

static val number(double value) {
    uint64_t bits;
    val v;
    memcpy(&bits, &value, sizeof bits);
    snprintf(v.text, sizeof v.text, "f64(0x%" PRIx64 ")", bits);
    return v;
}

static val whole(int64_t value) {
    val v;
    snprintf(v.text, sizeof v.text, "i64(%" PRId64 ")", value);
    return v;
}

static val result(calc *c) {
    val v;
    snprintf(v.text, sizeof v.text, "%%v%d", c->next++);
    return v;
}

static val typed(calc *c, const char *op, val a, const char *type) {
    val r = result(c);
    tk_strbuf_printf(c->out, "    %s = %s %s : %s\n", r.text, op, a.text, type);
    return r;
}
static val typed2(calc *c, const char *op, val a, val b, const char *type) {
    val r = result(c);
    tk_strbuf_printf(c->out, "    %s = %s %s, %s : %s\n", r.text, op, a.text, b.text, type);
    return r;
}
static val one(calc *c, const char *op, val a) { return typed(c, op, a, "f64"); }
static val two(calc *c, const char *op, val a, val b) { return typed2(c, op, a, b, "f64"); }
static val add(calc *c, val a, val b) { return two(c, "add", a, b); }
static val sub(calc *c, val a, val b) { return two(c, "sub", a, b); }
static val mul(calc *c, val a, val b) { return two(c, "mul", a, b); }
static val divide(calc *c, val a, val b) { return two(c, "div", a, b); }
static val with_sign(calc *c, val a, val sign) { return two(c, "copysign", a, sign); }
static val fma3(calc *c, val a, val b, val d) {
    val r = result(c);
    tk_strbuf_printf(c->out, "    %s = fma %s, %s, %s : f64\n", r.text, a.text, b.text, d.text);
    return r;
}
static val compare(calc *c, const char *how, val a, val b) {
    char op[16];
    snprintf(op, sizeof op, "fcmp.%s", how);
    return typed2(c, op, a, b, "i1");
}
static val both(calc *c, val a, val b) { return typed2(c, "and", a, b, "i1"); }
static val pick(calc *c, val condition, val a, val b) {
    val r = result(c);
    tk_strbuf_printf(c->out, "    %s = select %s, %s, %s : f64\n", r.text, condition.text, a.text,
                     b.text);
    return r;
}
static val polynomial(calc *c, val x, const double *q, int terms) {
    val sum = number(q[terms - 1]);
    for (int i = terms - 2; i >= 0; i--) sum = fma3(c, sum, x, number(q[i]));
    return sum;
}

/* ---- exponentials and logarithms ---- */

/* For float32, of which all beyond 700 are infinite or 0: 2^n is a normal number there. */
static val exponential(calc *c, val x) {
    static const double q[] = TK_POLY_EXP;
    val high = compare(c, "gt", x, number(700)), low = compare(c, "lt", x, number(-700));
    val bounded = pick(c, high, number(700), x);
    bounded = pick(c, low, number(-700), bounded);
    val shifted = fma3(c, bounded, number(0x1.71547652b82fep0), number(0x1.8p52));
    val n = sub(c, shifted, number(0x1.8p52));
    val r = fma3(c, n, number(-0x1.62e42fefap-1), bounded);
    r = fma3(c, n, number(-0x1.cf79abc9e3b3ap-40), r);
    val series = polynomial(c, r, q, 6), square = mul(c, r, r);
    val p = fma3(c, square, series, r);
    p = add(c, p, number(1));
    val bits = typed(c, "bitcast", shifted, "i64");
    bits = typed2(c, "add", bits, whole(1023), "i64");
    bits = typed2(c, "shl", bits, named("i32(52)"), "i64");
    return mul(c, p, typed(c, "bitcast", bits, "f64"));
}

/* 2^n for a whole n from -1022 to 1023. */
static val power_of_two(calc *c, val n) {
    val bits = typed(c, "bitcast", add(c, n, number(0x1.8p52)), "i64");
    bits = typed2(c, "add", bits, whole(1023), "i64");
    bits = typed2(c, "shl", bits, named("i32(52)"), "i64");
    return typed(c, "bitcast", bits, "f64");
}

/* For float64: 2^n e^r with |r| <= ln 2 / 2 by Taylor's series, within two units in the last place;
 * 2^n in two factors, so that results may be subnormal. */
static val exponential_wide(calc *c, val x) {
    enum { TERMS = 14 };
    double q[TERMS] = {1};
    for (int i = 1; i < TERMS; i++) q[i] = q[i - 1] / i;
    val high = compare(c, "gt", x, number(0x1.62e42fefa39efp9)),
        low = compare(c, "lt", x, number(-746));
    val bounded = pick(c, high, number(0), pick(c, low, number(0), x));
    val n = one(c, "rint", mul(c, bounded, number(0x1.71547652b82fep0)));
    val r = fma3(c, n, number(-0x1.62e42fefap-1), bounded);
    r = fma3(c, n, number(-0x1.cf79abc9e3b3ap-40), r);
    val half = one(c, "floor", mul(c, n, number(0.5)));
    val p = mul(c, polynomial(c, r, q, TERMS), power_of_two(c, half));
    p = mul(c, p, power_of_two(c, sub(c, n, half)));
    return pick(c, high, number(INFINITY), pick(c, low, number(0), p));
}

static val logarithm(calc *c, val x) {
    static const double q[] = TK_POLY_LOG;
    val bits = typed(c, "bitcast", x, "i64"), base = whole(0x3fe6a09e667f3bcd);
    bits = typed2(c, "sub", bits, base, "i64");
    val exponent = typed2(c, "sshr", bits, named("i32(52)"), "i64");
    val e = one(c, "float_from_signed", exponent);
    val fraction = typed2(c, "and", bits, whole(0x000fffffffffffff), "i64");
    fraction = typed2(c, "add", fraction, base, "i64");
    val f = sub(c, typed(c, "bitcast", fraction, "f64"), number(1));
    val above = add(c, f, number(2));
    val s = divide(c, f, above), square = mul(c, s, s), twice = add(c, s, s);
    val series = polynomial(c, square, q, 5), cube = mul(c, square, s);
    val sum = fma3(c, e, number(0x1.62e42fefa39efp-1), fma3(c, cube, series, twice));
    sum = pick(c, compare(c, "eq", x, number(INFINITY)), x, sum);
    sum = pick(c, compare(c, "eq", x, number(0)), number(-INFINITY), sum);
    return pick(c, compare(c, "ge", x, number(0)), sum, number(NAN));
}

static val log_1_plus(calc *c, val x) {
    val sum = add(c, x, number(1)), back = sub(c, sum, number(1));
    val lost = sub(c, x, back), plain = logarithm(c, sum);
    val mended = add(c, plain, divide(c, lost, sum));
    val positive = compare(c, "gt", sum, number(0)), finite = compare(c, "lt", x, number(1e300));
    val r = pick(c, both(c, positive, finite), mended, plain);
    return with_sign(c, r, x);
}

static val exp_minus_1(calc *c, val x) {
    val series = fma3(c, x, number(1.0 / 6), number(0.5)), square = mul(c, x, x);
    val close = fma3(c, square, series, x), near = one(c, "abs", x);
    val far = sub(c, exponential(c, x), number(1));
    val r = pick(c, compare(c, "lt", near, number(0x1p-12)), close, far);
    return with_sign(c, r, x);
}

static val sinh_of(calc *c, val x) {
    val square = mul(c, x, x), cube = mul(c, x, square);
    val series = fma3(c, square, number(1.0 / 120), number(1.0 / 6));
    val close = fma3(c, cube, series, x), e = exponential(c, x), near = one(c, "abs", x);
    val far = mul(c, number(0.5), sub(c, e, one(c, "rcp", e)));
    val r = pick(c, compare(c, "lt", near, number(0x1p-6)), close, far);
    return with_sign(c, r, x);
}

static val cosh_of(calc *c, val x) {
    val e = exponential(c, x);
    return mul(c, number(0.5), add(c, e, one(c, "rcp", e)));
}

/* ---- angles ---- */

static val arctan_of(calc *c, val x) {
    static const double q[] = TK_POLY_ATAN;
    val magnitude = one(c, "abs", x), inverted = compare(c, "gt", magnitude, number(1));
    val t = pick(c, inverted, one(c, "rcp", magnitude), magnitude);
    val turned = compare(c, "gt", t, number(0x1.a827999fcef32p-2));
    val below = sub(c, t, number(1)), above = add(c, t, number(1));
    t = pick(c, turned, divide(c, below, above), t);
    val square = mul(c, t, t), cube = mul(c, t, square);
    val angle = fma3(c, cube, polynomial(c, square, q, 6), t);
    val eighth = add(c, angle, number(0x1.921fb54442d18p-1));
    angle = pick(c, turned, eighth, angle);
    val rest = sub(c, number(0x1.921fb54442d18p0), angle);
    angle = pick(c, inverted, rest, angle);
    return with_sign(c, angle, x);
}

static val arcsin_of(calc *c, val x) {
    val below = sub(c, number(1), x), above = add(c, number(1), x);
    return arctan_of(c, divide(c, x, one(c, "sqrt", mul(c, below, above))));
}
static val arccos_of(calc *c, val x) {
    val below = sub(c, number(1), x), above = add(c, number(1), x);
    return mul(c, number(2), arctan_of(c, one(c, "sqrt", divide(c, below, above))));
}

/* y and x as in arctan2(y, x). */
static val angle_of(calc *c, val y, val x) {
    val far_y = compare(c, "eq", one(c, "abs", y), number(INFINITY));
    val far_x = compare(c, "eq", one(c, "abs", x), number(INFINITY));
    val far = both(c, far_y, far_x);
    y = pick(c, far, with_sign(c, number(1), y), y);
    x = pick(c, far, with_sign(c, number(1), x), x);
    val none = both(c, compare(c, "eq", y, number(0)), compare(c, "eq", x, number(0)));
    val quotient = pick(c, none, with_sign(c, number(0), x), divide(c, y, x));
    val angle = arctan_of(c, one(c, "abs", quotient));
    val left = compare(c, "lt", with_sign(c, number(1), x), number(0));
    angle = pick(c, left, sub(c, number(0x1.921fb54442d18p1), angle), angle);
    return with_sign(c, angle, y);
}

static val arcsinh_of(calc *c, val x) {
    val magnitude = one(c, "abs", x), square = mul(c, magnitude, magnitude);
    val root = one(c, "sqrt", add(c, square, number(1)));
    val rest = divide(c, square, add(c, number(1), root));
    val r = log_1_plus(c, add(c, magnitude, rest)), sixth = mul(c, square, number(1.0 / 6));
    val close = sub(c, magnitude, mul(c, magnitude, sixth));
    r = pick(c, compare(c, "lt", magnitude, number(0x1p-14)), close, r);
    r = pick(c, compare(c, "eq", magnitude, number(INFINITY)), magnitude, r);
    return with_sign(c, r, x);
}
static val arccosh_of(calc *c, val x) {
    val t = sub(c, x, number(1)), above = add(c, x, number(1));
    val r = log_1_plus(c, add(c, t, one(c, "sqrt", mul(c, t, above))));
    return pick(c, compare(c, "ge", x, number(1)), r, number(NAN));
}
static val arctanh_of(calc *c, val x) {
    val magnitude = one(c, "abs", x), twice = add(c, magnitude, magnitude);
    val quotient = divide(c, twice, sub(c, number(1), magnitude));
    val r = mul(c, number(0.5), log_1_plus(c, quotient));
    r = pick(c, compare(c, "eq", magnitude, number(1)), number(INFINITY), r);
    return with_sign(c, r, x);
}

/* ---- others ---- */

static val erfinv_of(calc *c, val x) {
    static const double p[] = TK_POLY_ERFINV_CENTRAL;
    static const double q[] = TK_POLY_ERFINV_TAIL;
    val below = sub(c, number(1), x), above = add(c, number(1), x);
    val w = one(c, "neg", logarithm(c, mul(c, below, above)));
    val central = polynomial(c, sub(c, w, number(2.5)), p, 13);
    val tail = polynomial(c, sub(c, one(c, "sqrt", w), number(3)), q, 12);
    val r = mul(c, x, pick(c, compare(c, "lt", w, number(5)), central, tail));
    val end = compare(c, "eq", one(c, "abs", x), number(1));
    return pick(c, end, with_sign(c, number(INFINITY), x), r);
}

/* |x|^y with the sign of an odd power; NaN for a negative base with a broken exponent. */
static val power_of(calc *c, val x, val y) {
    val magnitude = one(c, "abs", x), r = exponential(c, mul(c, y, logarithm(c, magnitude)));
    val is_whole = compare(c, "eq", one(c, "rint", y), y), half = mul(c, y, number(0.5));
    val is_odd = both(c, is_whole, compare(c, "neu", one(c, "rint", half), half));
    val negative = compare(c, "lt", with_sign(c, number(1), x), number(0));
    r = pick(c, both(c, negative, is_odd), one(c, "neg", r), r);
    val finite = compare(c, "lt", magnitude, number(INFINITY));
    val below = both(c, compare(c, "lt", x, number(0)), finite);
    r = pick(c, both(c, below, compare(c, "neu", one(c, "rint", y), y)), number(NAN), r);
    val still = compare(c, "eq", magnitude, number(1));
    val far = compare(c, "eq", one(c, "abs", y), number(INFINITY));
    r = pick(c, both(c, still, far), number(1), r);
    r = pick(c, compare(c, "eq", x, number(1)), number(1), r);
    return pick(c, compare(c, "eq", y, number(0)), number(1), r);
}

static val log_add(calc *c, val x, val y) {
    val larger = pick(c, compare(c, "gt", x, y), x, y), apart = one(c, "abs", sub(c, x, y));
    val r = add(c, larger, log_1_plus(c, exponential(c, one(c, "neg", apart))));
    r = pick(c, compare(c, "eq", x, y), add(c, x, number(0x1.62e42fefa39efp-1)), r);
    return pick(c, compare(c, "neu", x, x), x, pick(c, compare(c, "neu", y, y), y, r));
}

/* Whether the divisor is infinite and x is not; and whether their signs differ. */
static val is_far(calc *c, val x, val y) {
    val far = compare(c, "eq", one(c, "abs", y), number(INFINITY));
    return both(c, far, compare(c, "lt", one(c, "abs", x), number(INFINITY)));
}
static val is_apart(calc *c, val x, val y) {
    return compare(c, "lt", mul(c, with_sign(c, number(1), y), x), number(0));
}

static val quotient_of(calc *c, val x, val y) {
    val q = one(c, "floor", divide(c, x, y)), far = is_far(c, x, y);
    return pick(c, both(c, far, is_apart(c, x, y)), number(-1), q);
}

/* What whole multiples of y leave of x, with the sign of x, exactly: operands are of 24 bits, so
 * quotients below 2^29 are rounded down rightly, and 28 bits of larger ones (of 2^277 at most) are
 * taken at a time. */
static val rest_of(calc *c, val x, val y) {
    for (int bits = 9 * 28; bits >= 0; bits -= 28) {
        val by = mul(c, y, number(ldexp(1, bits))), q = one(c, "trunc", divide(c, x, by));
        x = fma3(c, one(c, "neg", q), by, x);
    }
    return x;
}

/* Of an infinite divisor: x where its sign is the divisor's, else the divisor. */
static val remainder_of(calc *c, val x, val y) {
    val far = is_far(c, x, y), apart = is_apart(c, x, y);
    val r = rest_of(c, x, y);
    r = pick(c, both(c, apart, compare(c, "neu", r, number(0))), add(c, r, y), r);
    r = pick(c, far, pick(c, apart, y, x), r);
    return pick(c, compare(c, "eq", r, number(0)), with_sign(c, r, y), r);
}

/* Zeros of both signs and NaN give themselves. */
static val sign_of(calc *c, val x) {
    val some = compare(c, "gt", one(c, "abs", x), number(0));
    return pick(c, some, with_sign(c, number(1), x), x);
}

/* ---- the ops ---- */

typedef val (*of_one)(calc *c, val x);
typedef val (*of_two)(calc *c, val x, val y);

static const of_one ones[TK_OP_COUNT] = {
    [TK_OP_expm1] = exp_minus_1,  [TK_OP_log1p] = log_1_plus,   [TK_OP_sinh] = sinh_of,
    [TK_OP_cosh] = cosh_of,       [TK_OP_arctan] = arctan_of,   [TK_OP_arcsin] = arcsin_of,
    [TK_OP_arccos] = arccos_of,   [TK_OP_arcsinh] = arcsinh_of, [TK_OP_arccosh] = arccosh_of,
    [TK_OP_arctanh] = arctanh_of, [TK_OP_erfinv] = erfinv_of,   [TK_OP_sign] = sign_of};

static const of_two twos[TK_OP_COUNT] = {[TK_OP_power] = power_of,
                                         [TK_OP_arctan2] = angle_of,
                                         [TK_OP_logaddexp] = log_add,
                                         [TK_OP_floor_divide] = quotient_of,
                                         [TK_OP_remainder] = remainder_of};

bool tk_function_is(tk_op op, bool wide) {
    return wide ? op == TK_OP_exp || op == TK_OP_sign : ones[op] != NULL || twos[op] != NULL;
}

void tk_function_put(tk_op op, bool wide, tk_strbuf *out) {
    calc c = {.out = out};
    val x = named("%a0"), r;
    if (!wide) x = one(&c, "convert", x);
    if (wide && op == TK_OP_exp)
        r = exponential_wide(&c, x);
    else if (ones[op])
        r = ones[op](&c, x);
    else
        r = twos[op](&c, x, one(&c, "convert", named("%a1")));
    if (wide)
        tk_strbuf_printf(out, "    %%r = copysign %s, %s : f64\n", r.text, r.text);
    else
        tk_strbuf_printf(out, "    %%r = convert %s : f32\n", r.text);
}
