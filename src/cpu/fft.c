/* See fft.h.
 *
 * Real signals of even length are transformed as complex ones of half of it, even elements real and
 * odd ones imaginary; odd lengths as complex ones without imaginary part.
 *
 * kissfft works in O(n p) for a prime factor p of n. From PRIME on, Bluestein's algorithm is
 * faster: with j k = (j^2 + k^2 - (k - j)^2) / 2 the transform is a convolution with the chirp
 * exp(pi i k^2 / n), which is computed by transforms of a length that kissfft likes. Angles are
 * reduced in integers and taken in double precision.
 *
 * Finished plans lie in a few slots that are exchanged atomically: no lock that a fork could leave
 * held. Rejected: a plan for each call (sines and cosines cost more than the transform). */
#include "cpu/fft.h"

#include <kiss_fft.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define PRIME 64
#define SLOTS 8
#define LONGEST_KEPT (1 << 20)

static const double pi = 3.14159265358979323846;

struct tk_fft_plan {
    tk_fft_kind kind;
    int length;
    bool halved;          /* a real signal as complex pairs */
    int points;           /* of the complex transform */
    int padded;           /* length of Bluestein's convolution; 0: kissfft alone */
    kiss_fft_cfg direct;  /* of `points`; NULL with Bluestein */
    kiss_fft_cfg forward; /* of `padded` */
    kiss_fft_cfg inverse;
    kiss_fft_cpx *chirp;  /* `points` */
    kiss_fft_cpx *filter; /* `padded`: the transform of the chirp, divided by `padded` */
    kiss_fft_cpx *twist;  /* halved: exp(-2 pi i k / length), points + 1 */
};

/* ---- plans ---- */

static int largest_prime(int n) {
    int largest = 1;
    for (int p = 2; (int64_t)p * p <= n; p++)
        while (n % p == 0) {
            largest = p;
            n /= p;
        }
    return n > 1 ? n : largest;
}

static bool is_inverse(const tk_fft_plan *plan) {
    return plan->kind == TK_FFT_INVERSE || plan->kind == TK_FFT_TO_REAL;
}

/* In memory of Tiki's allocator. */
static kiss_fft_cfg make_config(int points, bool inverse) {
    size_t bytes = 0;
    kiss_fft_alloc(points, inverse, NULL, &bytes);
    void *memory = tk_malloc(bytes);
    return memory ? kiss_fft_alloc(points, inverse, memory, &bytes) : NULL;
}

static kiss_fft_cpx turn(double fraction) {
    return (kiss_fft_cpx){(float)cos(2 * pi * fraction), (float)sin(2 * pi * fraction)};
}

static kiss_fft_cpx times(kiss_fft_cpx a, kiss_fft_cpx b) {
    return (kiss_fft_cpx){a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r};
}

static kiss_fft_cpx conjugate(kiss_fft_cpx a) { return (kiss_fft_cpx){a.r, -a.i}; }

/* chirp[k] = exp(-+ pi i k^2 / points); the filter is the transform of its conjugate, mirrored. */
static void fill_chirp(tk_fft_plan *plan, kiss_fft_cpx *mirrored) {
    int64_t period = 2 * (int64_t)plan->points;
    memset(mirrored, 0, (size_t)plan->padded * sizeof *mirrored);
    for (int64_t k = 0; k < plan->points; k++) {
        double fraction = (double)(k * k % period) / (double)period;
        plan->chirp[k] = turn(is_inverse(plan) ? fraction : -fraction);
        kiss_fft_cpx back = conjugate(plan->chirp[k]);
        mirrored[k] = back;
        if (k) mirrored[plan->padded - k] = back;
    }
    kiss_fft(plan->forward, mirrored, plan->filter);
    for (int k = 0; k < plan->padded; k++) {
        plan->filter[k].r /= (float)plan->padded;
        plan->filter[k].i /= (float)plan->padded;
    }
}

static bool plan_bluestein(tk_fft_plan *plan) {
    plan->padded = kiss_fft_next_fast_size(2 * plan->points - 1);
    size_t padded_bytes = (size_t)plan->padded * sizeof *plan->filter;
    plan->forward = make_config(plan->padded, false);
    plan->inverse = make_config(plan->padded, true);
    plan->chirp = tk_malloc((size_t)plan->points * sizeof *plan->chirp);
    plan->filter = tk_malloc(padded_bytes);
    kiss_fft_cpx *mirrored = tk_malloc(padded_bytes);
    bool ok = plan->forward && plan->inverse && plan->chirp && plan->filter && mirrored;
    if (ok) fill_chirp(plan, mirrored);
    tk_free(mirrored);
    return ok;
}

static bool plan_twist(tk_fft_plan *plan) {
    plan->twist = tk_malloc(((size_t)plan->points + 1) * sizeof *plan->twist);
    for (int k = 0; plan->twist && k <= plan->points; k++)
        plan->twist[k] = turn(-(double)k / plan->length);
    return plan->twist != NULL;
}

static bool plan_init(tk_fft_plan *plan, tk_fft_kind kind, int length) {
    bool real = kind == TK_FFT_REAL || kind == TK_FFT_TO_REAL;
    *plan = (tk_fft_plan){.kind = kind, .length = length, .halved = real && length % 2 == 0};
    plan->points = plan->halved ? length / 2 : length;
    if (plan->halved && !plan_twist(plan)) return false;
    if (largest_prime(plan->points) > PRIME && plan->points < INT32_MAX / 4)
        return plan_bluestein(plan);
    plan->direct = make_config(plan->points, is_inverse(plan));
    return plan->direct != NULL;
}

static void plan_free(tk_fft_plan *plan) {
    if (!plan) return;
    tk_free(plan->direct);
    tk_free(plan->forward);
    tk_free(plan->inverse);
    tk_free(plan->chirp);
    tk_free(plan->filter);
    tk_free(plan->twist);
    tk_free(plan);
}

static _Atomic(tk_fft_plan *) kept[SLOTS];

static _Atomic(tk_fft_plan *) *slot_of(tk_fft_kind kind, int length) {
    return &kept[((unsigned)length * 2654435761u + (unsigned)kind * 40503u) >> 16 & (SLOTS - 1)];
}

tk_status tk_fft_plan_get(tk_fft_kind kind, int length, tk_fft_plan **out_plan) {
    tk_fft_plan *plan = atomic_exchange(slot_of(kind, length), NULL);
    if (plan && plan->kind == kind && plan->length == length) {
        *out_plan = plan;
        return TK_OK;
    }
    tk_fft_plan_put(plan);
    plan = tk_malloc(sizeof *plan);
    if (plan && plan_init(plan, kind, length)) {
        *out_plan = plan;
        return TK_OK;
    }
    plan_free(plan);
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for a Fourier transform of length %d", length);
}

void tk_fft_plan_put(tk_fft_plan *plan) {
    if (plan && plan->length <= LONGEST_KEPT)
        plan = atomic_exchange(slot_of(plan->kind, plan->length), plan);
    plan_free(plan);
}

/* ---- running ---- */

static int64_t points_scratch(const tk_fft_plan *plan) { return 2 * (int64_t)plan->padded; }

int64_t tk_fft_scratch(const tk_fft_plan *plan) {
    return points_scratch(plan) + 2 * ((int64_t)plan->points + 1);
}

static void run_points(const tk_fft_plan *plan, const kiss_fft_cpx *in, kiss_fft_cpx *out,
                       kiss_fft_cpx *scratch) {
    if (plan->direct) {
        kiss_fft(plan->direct, in, out);
        return;
    }
    kiss_fft_cpx *signal = scratch, *spectrum = scratch + plan->padded;
    for (int k = 0; k < plan->points; k++) signal[k] = times(in[k], plan->chirp[k]);
    memset(signal + plan->points, 0, (size_t)(plan->padded - plan->points) * sizeof *signal);
    kiss_fft(plan->forward, signal, spectrum);
    for (int k = 0; k < plan->padded; k++) spectrum[k] = times(spectrum[k], plan->filter[k]);
    kiss_fft(plan->inverse, spectrum, signal);
    for (int k = 0; k < plan->points; k++) out[k] = times(signal[k], plan->chirp[k]);
}

/* With z = even + i odd, Z its transform and h = points: X[k] is half of Z[k] + conj Z[h - k] plus
 * half of -i w^k (Z[k] - conj Z[h - k]). */
static void halves_forward(const tk_fft_plan *plan, const float *in, kiss_fft_cpx *out,
                           kiss_fft_cpx *scratch) {
    int h = plan->points;
    kiss_fft_cpx *pairs = scratch + points_scratch(plan), *z = pairs + h;
    memcpy(pairs, in, (size_t)h * sizeof *pairs);
    run_points(plan, pairs, z, scratch);
    for (int k = 0; k <= h; k++) {
        kiss_fft_cpx a = z[k % h], b = conjugate(z[(h - k) % h]);
        kiss_fft_cpx odd = times((kiss_fft_cpx){a.i - b.i, b.r - a.r}, plan->twist[k]);
        out[k] = (kiss_fft_cpx){0.5f * (a.r + b.r + odd.r), 0.5f * (a.i + b.i + odd.i)};
    }
}

static void halves_inverse(const tk_fft_plan *plan, const kiss_fft_cpx *in, float *out,
                           kiss_fft_cpx *scratch) {
    int h = plan->points;
    kiss_fft_cpx *z = scratch + points_scratch(plan), *pairs = z + h;
    for (int k = 0; k < h; k++) {
        kiss_fft_cpx a = in[k], b = conjugate(in[h - k]);
        if (k == 0) a.i = b.i = 0;
        kiss_fft_cpx odd = times((kiss_fft_cpx){a.r - b.r, a.i - b.i}, conjugate(plan->twist[k]));
        z[k] = (kiss_fft_cpx){a.r + b.r - odd.i, a.i + b.i + odd.r};
    }
    run_points(plan, z, pairs, scratch);
    memcpy(out, pairs, (size_t)h * sizeof *pairs);
}

static void whole_forward(const tk_fft_plan *plan, const float *in, kiss_fft_cpx *out,
                          kiss_fft_cpx *scratch) {
    kiss_fft_cpx *signal = scratch + points_scratch(plan), *spectrum = signal + plan->points;
    for (int k = 0; k < plan->length; k++) signal[k] = (kiss_fft_cpx){in[k], 0};
    run_points(plan, signal, spectrum, scratch);
    memcpy(out, spectrum, ((size_t)plan->length / 2 + 1) * sizeof *out);
}

static void whole_inverse(const tk_fft_plan *plan, const kiss_fft_cpx *in, float *out,
                          kiss_fft_cpx *scratch) {
    kiss_fft_cpx *spectrum = scratch + points_scratch(plan), *signal = spectrum + plan->points;
    spectrum[0] = (kiss_fft_cpx){in[0].r, 0};
    for (int k = 1; k <= plan->length / 2; k++) {
        spectrum[k] = in[k];
        spectrum[plan->length - k] = conjugate(in[k]);
    }
    run_points(plan, spectrum, signal, scratch);
    for (int k = 0; k < plan->length; k++) out[k] = signal[k].r;
}

void tk_fft_run(const tk_fft_plan *plan, const void *in, void *out, tk_fft_complex *scratch) {
    kiss_fft_cpx *own = (kiss_fft_cpx *)(void *)scratch;
    if (plan->kind == TK_FFT_REAL && plan->halved)
        halves_forward(plan, in, out, own);
    else if (plan->kind == TK_FFT_REAL)
        whole_forward(plan, in, out, own);
    else if (plan->kind == TK_FFT_TO_REAL && plan->halved)
        halves_inverse(plan, in, out, own);
    else if (plan->kind == TK_FFT_TO_REAL)
        whole_inverse(plan, in, out, own);
    else
        run_points(plan, in, out, own);
}
