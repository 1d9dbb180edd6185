/* Fourier transforms of one line, planned by length: kissfft for lengths with small prime factors,
 * Bluestein's algorithm over it for the others.
 *
 * Transforms are not scaled: forward and then inverse gives n times the signal. A plan does not
 * change while it is used, so threads share it; each brings scratch. Values are complex64 pairs or
 * float32. */
#ifndef CPU_FFT_H
#define CPU_FFT_H

#include <stdbool.h>
#include <stdint.h>

#include "tiki/status.h"

typedef enum tk_fft_kind {
    TK_FFT_FORWARD,
    TK_FFT_INVERSE,
    TK_FFT_REAL,
    TK_FFT_TO_REAL
} tk_fft_kind;

typedef struct tk_fft_plan tk_fft_plan;

typedef struct tk_fft_complex {
    float re, im;
} tk_fft_complex;

/* A plan for signals of `length` >= 1; TK_OUT_OF_MEMORY. Plans of the latest lengths are kept for
 * the next call. Any thread. */
tk_status tk_fft_plan_get(tk_fft_kind kind, int length, tk_fft_plan **out_plan);

/* Gives it back. NULL is fine. */
void tk_fft_plan_put(tk_fft_plan *plan);

/* Elements of scratch that tk_fft_run needs. */
int64_t tk_fft_scratch(const tk_fft_plan *plan);

/* One line, dense. FORWARD and INVERSE take and give `length` complex numbers, REAL takes `length`
 * floats and gives length / 2 + 1 complex numbers, TO_REAL the other way (the imaginary parts of
 * the first frequency, and of the last of even lengths, are not looked at). `in`, `out` and
 * `scratch` must not overlap. */
void tk_fft_run(const tk_fft_plan *plan, const void *in, void *out, tk_fft_complex *scratch);

#endif
