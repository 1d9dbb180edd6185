/* Expansion of exp, exp2, log, log2, tanh, erf, sin and cos of f32 into operations that every
 * target rounds the same way: add, mul, fma, div, comparisons, selects, bits.
 *
 * Method: range reduction and polynomial, as the CPU's kernels do it (src/cpu/vec_math.h has the
 * fits), with fma where it is exact. Measured over all f32 against f64 (tests/kernel):
 *
 *     exp 0.98, exp2 0.97, log 0.83, log2 1.44, tanh 1.60, erf 0.94, sin 0.50, cos 0.50 units in
 *     the last place; special values as docs/numerics.md says, subnormals kept.
 *
 * sin and cos go through f64: x - q pi/2 with pi/2 in two parts is exact enough below 2^20. Beyond,
 * in a branch of its own, x times 2/pi in nine parts of 24 bits, each product exact and taken
 * modulo 4.
 *
 * Each call puts at most one operation among its arguments: C leaves their order open, and kernels
 * must come out the same from every compiler.
 *
 * Rejected: tables (a load for each lane), calls of a device library (other bits on other targets),
 * f64 throughout (a sixth of the speed in the emulator). */
#include "base/error.h"
#include "kernel/pass.h"

typedef tk_kvalue *val;

#define BITS32(bits) tk_kput_integer(p, TK_K_I32, (int64_t)(bits))
#define F32(value) tk_kput_float(p, TK_K_F32, value)
#define F64(value) tk_kput_float(p, TK_K_F64, value)
#define ADD(a, b) tk_kput_2(p, TK_KOP_add, a, b)
#define SUB(a, b) tk_kput_2(p, TK_KOP_sub, a, b)
#define MUL(a, b) tk_kput_2(p, TK_KOP_mul, a, b)
#define FMA(a, b, c) tk_kput_3(p, TK_KOP_fma, a, b, c)
#define DIV(a, b) tk_kput_2(p, TK_KOP_div, a, b)
#define AND(a, b) tk_kput_2(p, TK_KOP_and, a, b)
#define SHL(a, n) tk_kput_2(p, TK_KOP_shl, a, BITS32(n))
#define SSHR(a, n) tk_kput_2(p, TK_KOP_sshr, a, BITS32(n))
#define ABS(a) tk_kput_1(p, TK_KOP_abs, a)
#define SELECT(c, a, b) tk_kput_3(p, TK_KOP_select, c, a, b)
#define IF(how, a, b) tk_kput_compare(p, TK_KOP_fcmp, how, a, b)
#define FLOAT(a) tk_kput_as(p, TK_KOP_bitcast, a, TK_K_F32)
#define INT(a) tk_kput_as(p, TK_KOP_bitcast, a, TK_K_I32)

static val polynomial(tk_kput *p, tk_kscalar type, val x, const double *c, int terms) {
    val sum = tk_kput_float(p, type, c[terms - 1]);
    for (int i = terms - 2; i >= 0; i--) sum = FMA(sum, x, tk_kput_float(p, type, c[i]));
    return sum;
}

/* ---- exponentials ---- */

/* The nearest integer of a small float: the sum with 1.5 2^23 has it in its low bits. */
#define ROUNDER 0x1.8p23

static val clamp(tk_kput *p, val x, double low, double high) {
    return tk_kput_2(p, TK_KOP_min, tk_kput_2(p, TK_KOP_max, x, F32(low)), F32(high));
}

/* e^r 2^n, |r| <= ln2/2; 2^n in two factors, so that subnormal results round once. */
static val scaled_exp(tk_kput *p, val r, val n) {
    static const double q[] = {0.5, 0x1.5554d8p-3, 0x1.555516p-5, 0x1.12106cp-7, 0x1.6d1606p-10};
    val square = MUL(r, r), rest = polynomial(p, TK_K_F32, r, q, 5);
    val e = ADD(FMA(square, rest, r), F32(1));
    val half = SSHR(n, 1);
    val first = FLOAT(SHL(ADD(half, BITS32(127)), 23));
    val second = FLOAT(SHL(ADD(SUB(n, half), BITS32(127)), 23));
    return MUL(MUL(e, first), second);
}

static val expand_exp(tk_kput *p, val x) {
    val bounded = clamp(p, x, -104.5, 89.5);
    val shifted = FMA(bounded, F32(0x1.715476p0), F32(ROUNDER));
    val n = SUB(shifted, F32(ROUNDER));
    val r = FMA(n, F32(-0x1.62e43p-1), bounded);
    r = FMA(n, F32(0x1.05c61p-29), r);
    return scaled_exp(p, r, SUB(INT(shifted), BITS32(0x4b400000)));
}

static val expand_exp2(tk_kput *p, val x) {
    val bounded = clamp(p, x, -151, 129);
    val shifted = ADD(bounded, F32(ROUNDER));
    val rest = SUB(bounded, SUB(shifted, F32(ROUNDER)));
    val r = MUL(rest, F32(0x1.62e43p-1));
    return scaled_exp(p, r, SUB(INT(shifted), BITS32(0x4b400000)));
}

/* ---- logarithms ---- */

typedef struct parts {
    val e, f, tail; /* log(x) = e ln2 + f + tail */
} parts;

static parts log_parts(tk_kput *p, val x) {
    static const double q[] = {0x1.555554p-2,  -0x1.fffffcp-3, 0x1.999d60p-3,
                               -0x1.555b54p-3, 0x1.23d126p-3,  -0x1.fcf158p-4,
                               0x1.deb356p-4,  -0x1.d658d6p-4, 0x1.1d8bdep-4};
    val subnormal = IF("lt", x, F32(0x1p-126));
    val bits = INT(SELECT(subnormal, MUL(x, F32(0x1p23)), x));
    val exponent = SSHR(SUB(bits, BITS32(0x3f3504f3)), 23);
    val f = SUB(FLOAT(SUB(bits, SHL(exponent, 23))), F32(1));
    val all = ADD(exponent, SELECT(subnormal, BITS32(-23), BITS32(0)));
    val square = MUL(f, f);
    val cube = MUL(square, f), series = polynomial(p, TK_K_F32, f, q, 9);
    val tail = MUL(cube, series), e = tk_kput_as(p, TK_KOP_float_from_signed, all, TK_K_F32);
    tail = FMA(square, F32(-0.5), tail);
    return (parts){e, f, tail};
}

static val log_specials(tk_kput *p, val x, val result) {
    result = SELECT(IF("eq", x, F32(__builtin_inf())), x, result);
    result = SELECT(IF("eq", x, F32(0)), F32(-__builtin_inf()), result);
    return SELECT(IF("ge", x, F32(0)), result, F32(__builtin_nan("")));
}

static val expand_log(tk_kput *p, val x) {
    parts l = log_parts(p, x);
    val low = FMA(l.e, F32(-0x1.05c61p-29), l.tail);
    return log_specials(p, x, FMA(l.e, F32(0x1.62e43p-1), ADD(l.f, low)));
}

/* f log2(e) in two parts, the tail once. */
static val expand_log2(tk_kput *p, val x) {
    parts l = log_parts(p, x);
    val high = MUL(l.f, F32(0x1.715476p0));
    val lost = FMA(l.f, F32(0x1.715476p0), tk_kput_1(p, TK_KOP_neg, high));
    val low = FMA(l.f, F32(0x1.4ae0cp-26), lost);
    low = FMA(l.tail, F32(0x1.715476p0), low);
    val sum = ADD(l.e, high);
    val rest = ADD(SUB(high, SUB(sum, l.e)), low);
    return log_specials(p, x, ADD(sum, rest));
}

/* ---- tanh, erf ---- */

static val with_sign(tk_kput *p, val magnitude, val sign) {
    return tk_kput_2(p, TK_KOP_copysign, magnitude, sign);
}

static val expand_tanh(tk_kput *p, val x) {
    static const double q[] = {-0x1.555552p-2, 0x1.110e14p-3, -0x1.b92370p-5, 0x1.57f09ap-6,
                               -0x1.8f19f0p-8};
    val magnitude = ABS(x), square = MUL(x, x);
    val cube = MUL(magnitude, square), series = polynomial(p, TK_K_F32, square, q, 5);
    val small = FMA(cube, series, magnitude);
    val e = expand_exp(p, ADD(magnitude, magnitude));
    val large = SUB(F32(1), DIV(F32(2), ADD(e, F32(1))));
    return with_sign(p, SELECT(IF("lt", magnitude, F32(0.625)), small, large), x);
}

static val expand_erf(tk_kput *p, val x) {
    static const double s[] = {0x1.06eba8p-3, -0x1.812744p-2,  0x1.ce2e14p-4, -0x1.b80f72p-6,
                               0x1.54cfb6p-8, -0x1.aa7e38p-11, 0x1.5d955cp-14};
    static const double q[] = {-0x1.5001dep-12, 0x1.215740p+0,  0x1.437d32p-1,
                               0x1.c2f26ep-4,   -0x1.b10bbap-6, 0x1.382f88p-8,
                               -0x1.3963c6p-11, 0x1.835e50p-15, -0x1.b93140p-20};
    val magnitude = ABS(x), square = MUL(x, x);
    val small = FMA(magnitude, polynomial(p, TK_K_F32, square, s, 7), magnitude);
    val bounded = tk_kput_2(p, TK_KOP_min, magnitude, F32(4));
    val exponent = polynomial(p, TK_K_F32, bounded, q, 9);
    val large = SUB(F32(1), expand_exp(p, tk_kput_1(p, TK_KOP_neg, exponent)));
    return with_sign(p, SELECT(IF("lt", magnitude, F32(0.921875)), small, large), x);
}

/* ---- sine, cosine ---- */

/* x = (quarter + turn) pi/2, |turn| <= 1/2. */
static void reduce_large(tk_kput *p, val x, val *out_r, val *out_quarter) {
    static const double parts[] = {0xa2f983p-24,  0x6e4e44p-48,  0x1529fcp-72,
                                   0x2757d1p-96,  0xf534ddp-120, 0xc0db62p-144,
                                   0x95993cp-168, 0x439041p-192, 0xfe5163p-216};
    val sum = F64(0), quarter = F64(0);
    for (int i = 0; i < 9; i++) {
        val product = MUL(x, F64(parts[i]));
        val fours = tk_kput_1(p, TK_KOP_rint, MUL(product, F64(0.25)));
        sum = ADD(sum, FMA(fours, F64(-4), product));
        val whole = tk_kput_1(p, TK_KOP_rint, sum);
        sum = SUB(sum, whole);
        quarter = ADD(quarter, whole);
    }
    *out_r = MUL(sum, F64(0x1.921fb54442d18p0));
    *out_quarter = tk_kput_as(p, TK_KOP_signed_from_float, quarter, TK_K_I32);
}

static void reduce_small(tk_kput *p, val x, val *out_r, val *out_quarter) {
    val q = tk_kput_1(p, TK_KOP_rint, MUL(x, F64(0x1.45f306dc9c883p-1)));
    val r = FMA(q, F64(-0x1.921fb54442d18p0), x);
    *out_r = FMA(q, F64(-0x1.1a62633145c07p-54), r);
    *out_quarter = tk_kput_as(p, TK_KOP_signed_from_float, q, TK_K_I32);
}

static void reduce(tk_kput *p, val x, val *out_r, val *out_quarter) {
    val parts[2];
    tk_kop *op = tk_kput_if(p, IF("gt", ABS(x), F64(0x1p20)));
    if (!op) return;
    tk_kput large = tk_kput_into(p, op, 0), small = tk_kput_into(p, op, 1);
    reduce_large(&large, x, &parts[0], &parts[1]);
    tk_kput_yield(&large, 2, parts);
    reduce_small(&small, x, &parts[0], &parts[1]);
    tk_kput_yield(&small, 2, parts);
    tk_kput_results(p, op);
    if (*p->status == TK_OK) *out_r = op->results[0], *out_quarter = op->results[1];
}

/* `ahead` is 1 for the cosine, which is a quarter ahead. */
static val wave(tk_kput *p, val x, int ahead) {
    static const double s[] = {-0x1.555555545c0f8p-3, 0x1.11110dea5e8c0p-7, -0x1.a013a11619d1bp-13,
                               0x1.6dbbee1f24647p-19};
    static const double c[] = {0x1.555555550225fp-5, -0x1.6c16bf51b0df9p-10, 0x1.a015c02820885p-16,
                               -0x1.2522e6d930e5bp-22};
    val r = NULL, quarter = NULL;
    reduce(p, tk_kput_as(p, TK_KOP_convert, x, TK_K_F64), &r, &quarter);
    if (*p->status != TK_OK) return NULL;
    val square = MUL(r, r), turned = ADD(quarter, BITS32(ahead));
    val cube = MUL(r, square), odds = polynomial(p, TK_K_F64, square, s, 4);
    val sine = FMA(cube, odds, r);
    val flat = FMA(square, F64(-0.5), F64(1));
    val fourth = MUL(square, square), evens = polynomial(p, TK_K_F64, square, c, 4);
    val cosine = FMA(fourth, evens, flat);
    val odd = tk_kput_compare(p, TK_KOP_icmp, "ne", AND(turned, BITS32(1)), BITS32(0));
    val result = tk_kput_as(p, TK_KOP_convert, SELECT(odd, cosine, sine), TK_K_F32);
    val sign = SHL(AND(turned, BITS32(2)), 30);
    return FLOAT(tk_kput_2(p, TK_KOP_xor, INT(result), sign));
}

/* -0.0 keeps its sign; infinity is NaN. */
static val expand_sin(tk_kput *p, val x) {
    val zero = IF("eq", x, F32(0)), result = SELECT(zero, x, wave(p, x, 0));
    return SELECT(IF("lt", ABS(x), F32(__builtin_inf())), result, F32(__builtin_nan("")));
}
static val expand_cos(tk_kput *p, val x) {
    val finite = IF("lt", ABS(x), F32(__builtin_inf()));
    return SELECT(finite, wave(p, x, 1), F32(__builtin_nan("")));
}

/* ---- the pass ---- */

typedef val (*expansion)(tk_kput *p, val x);

static expansion expansion_of(unsigned code) {
    switch (code) {
    case TK_KOP_exp:
        return expand_exp;
    case TK_KOP_exp2:
        return expand_exp2;
    case TK_KOP_log:
        return expand_log;
    case TK_KOP_log2:
        return expand_log2;
    case TK_KOP_tanh:
        return expand_tanh;
    case TK_KOP_erf:
        return expand_erf;
    case TK_KOP_sin:
        return expand_sin;
    case TK_KOP_cos:
        return expand_cos;
    default:
        return NULL;
    }
}

/* Vectors go lane by lane: comparisons have no lanes. */
static val expand_lanes(tk_kput *p, expansion expand, val x) {
    val lanes[16];
    if (x->type.lanes == 1) return expand(p, x);
    for (int i = 0; i < x->type.lanes; i++) {
        tk_kput_attr index = {TK_KA_index, i};
        val lane = tk_kput_op(p, TK_KOP_extract, 1, &x, 1, &index, tk_ktype_scalar(TK_K_F32));
        lanes[i] = expand(p, lane);
        if (*p->status != TK_OK) return NULL;
    }
    return tk_kput_op(p, TK_KOP_vector, x->type.lanes, lanes, 0, NULL, x->type);
}

typedef struct expander {
    tk_kernel *kernel;
    tk_kexchange exchange;
} expander;

static tk_status visit(void *arg, tk_kop *op) {
    expander *e = arg;
    expansion expand = expansion_of(op->code);
    tk_status status = TK_OK;
    if (!expand) return TK_OK;
    tk_kput put = tk_kput_before(e->kernel, op, &status);
    val result = expand_lanes(&put, expand, op->operands[0]);
    TK_TRY(status);
    TK_TRY(tk_kexchange_set(&e->exchange, op->results[0], result));
    tk_kop_unlink(op);
    return TK_OK;
}

tk_status tk_kpass_run_expand(tk_kernel *kernel) {
    expander e = {.kernel = kernel};
    tk_status status = tk_kblock_walk(&kernel->body, visit, &e);
    if (status == TK_OK) tk_kexchange_apply(&e.exchange, kernel);
    tk_vec_deinit(&e.exchange);
    return status;
}
