/* The thin layer between kernel source and instruction set: vectors of VF_LANES floats, of half as
 * many doubles, and the few operations that C operators on vectors do not have.
 *
 * A file that includes this defines TK_SIMD first: 0 for SSE2, 1 for AVX2 + FMA + F16C, 2 for
 * AVX-512 (F, BW, DQ, VL), and is compiled with the flags for it. Arithmetic, comparison, bit
 * operations and shifts are written with operators of the compiler's vector extension; a comparison
 * gives a vector of integers, 0 or -1 a lane.
 *
 * All functions are static, so the three compilations do not meet at link time.
 *
 * vf_madd and vd_madd are a * b + c, fused where the machine can: only for polynomials and range
 * reductions whose error bound holds either way. */
#ifndef CPU_VEC_SIMD_H
#define CPU_VEC_SIMD_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#if TK_SIMD == 0
#define VF_LANES 4
#elif TK_SIMD == 1
#define VF_LANES 8
#else
#define VF_LANES 16
#endif
#define VD_LANES (VF_LANES / 2)

#define TK_INLINE static inline __attribute__((always_inline, unused))

typedef float vf __attribute__((vector_size(4 * VF_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * VF_LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * VF_LANES)));
typedef double vd __attribute__((vector_size(4 * VF_LANES)));
typedef int64_t vl __attribute__((vector_size(4 * VF_LANES)));
typedef uint64_t vul __attribute__((vector_size(4 * VF_LANES)));

TK_INLINE vf vf_load(const float *at) {
    vf v;
    memcpy(&v, at, sizeof v);
    return v;
}
TK_INLINE void vf_store(float *at, vf v) { memcpy(at, &v, sizeof v); }
/* Past the caches, for an aligned place; a fence must follow the last one. */
TK_INLINE void vf_stream(float *at, vf v) {
#if TK_SIMD == 0
    _mm_stream_ps(at, (__m128)v);
#elif TK_SIMD == 1
    _mm256_stream_ps(at, (__m256)v);
#else
    _mm512_stream_ps(at, (__m512)v);
#endif
}
TK_INLINE vd vd_load(const double *at) {
    vd v;
    memcpy(&v, at, sizeof v);
    return v;
}
TK_INLINE void vd_store(double *at, vd v) { memcpy(at, &v, sizeof v); }

TK_INLINE vi vi_set(int32_t x) { return x - (vi){0}; }
TK_INLINE vl vl_set(int64_t x) { return x - (vl){0}; }

#if TK_SIMD == 0

TK_INLINE vf vf_set(float x) { return (vf)_mm_set1_ps(x); }
TK_INLINE vd vd_set(double x) { return (vd)_mm_set1_pd(x); }
TK_INLINE vf vf_madd(vf a, vf b, vf c) { return a * b + c; }
TK_INLINE vd vd_madd(vd a, vd b, vd c) { return a * b + c; }
TK_INLINE vf vf_sqrt(vf x) { return (vf)_mm_sqrt_ps((__m128)x); }
TK_INLINE vd vd_sqrt(vd x) { return (vd)_mm_sqrt_pd((__m128d)x); }
TK_INLINE vf vf_select(vi mask, vf yes, vf no) { return (vf)((mask & (vi)yes) | (~mask & (vi)no)); }
TK_INLINE vd vd_select(vl mask, vd yes, vd no) { return (vd)((mask & (vl)yes) | (~mask & (vl)no)); }
TK_INLINE int vi_mask(vi mask) { return _mm_movemask_ps((__m128)mask); }
TK_INLINE int vl_mask(vl mask) { return _mm_movemask_pd((__m128d)mask); }
TK_INLINE vi vf_to_vi(vf x) { return (vi)_mm_cvtps_epi32((__m128)x); }
TK_INLINE vf vi_to_vf(vi x) { return (vf)_mm_cvtepi32_ps((__m128i)x); }
TK_INLINE vd vd_load_f32(const float *at) {
    return (vd)_mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}
TK_INLINE void vd_store_f32(float *at, vd x) {
    __m128i narrow = _mm_castps_si128(_mm_cvtpd_ps((__m128d)x));
    _mm_storel_epi64((__m128i *)(void *)at, narrow);
}

/* Adding 2^23 (2^52) and taking it away rounds to an integer; larger values are integers already.
 */
TK_INLINE vf vf_rint(vf x) {
    vi sign = (vi)x & INT32_MIN;
    vf big = (vf)((vi)vf_set(0x1p23f) | sign);
    vf rounded = (vf)((vi)((x + big) - big) | sign);
    vf magnitude = (vf)((vi)x & INT32_MAX);
    return vf_select(magnitude < 0x1p23f, rounded, x + 0.0f);
}
TK_INLINE vf vf_floor(vf x) {
    vf rounded = vf_rint(x);
    vf down = rounded - (vf)((vi)vf_set(1.0f) & (rounded > x));
    return (vf)((vi)down | ((vi)x & INT32_MIN));
}
TK_INLINE vf vf_ceil(vf x) {
    vf rounded = vf_rint(x);
    vf up = rounded + (vf)((vi)vf_set(1.0f) & (rounded < x));
    return (vf)((vi)up | ((vi)x & INT32_MIN));
}
TK_INLINE vf vf_trunc(vf x) {
    vf down = vf_floor((vf)((vi)x & INT32_MAX));
    return (vf)((vi)down | ((vi)x & INT32_MIN));
}
TK_INLINE vd vd_rint_small(vd x) { return (x + 0x1.8p52) - 0x1.8p52; }

#elif TK_SIMD == 1

TK_INLINE vf vf_set(float x) { return (vf)_mm256_set1_ps(x); }
TK_INLINE vd vd_set(double x) { return (vd)_mm256_set1_pd(x); }
TK_INLINE vf vf_madd(vf a, vf b, vf c) {
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
TK_INLINE vd vd_madd(vd a, vd b, vd c) {
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
TK_INLINE vf vf_sqrt(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
TK_INLINE vd vd_sqrt(vd x) { return (vd)_mm256_sqrt_pd((__m256d)x); }
TK_INLINE vf vf_select(vi mask, vf yes, vf no) {
    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
}
TK_INLINE vd vd_select(vl mask, vd yes, vd no) {
    return (vd)_mm256_blendv_pd((__m256d)no, (__m256d)yes, (__m256d)mask);
}
TK_INLINE int vi_mask(vi mask) { return _mm256_movemask_ps((__m256)mask); }
TK_INLINE int vl_mask(vl mask) { return _mm256_movemask_pd((__m256d)mask); }
TK_INLINE vi vf_to_vi(vf x) { return (vi)_mm256_cvtps_epi32((__m256)x); }
TK_INLINE vf vi_to_vf(vi x) { return (vf)_mm256_cvtepi32_ps((__m256i)x); }
TK_INLINE vd vd_load_f32(const float *at) { return (vd)_mm256_cvtps_pd(_mm_loadu_ps(at)); }
TK_INLINE void vd_store_f32(float *at, vd x) { _mm_storeu_ps(at, _mm256_cvtpd_ps((__m256d)x)); }
TK_INLINE vf vf_rint(vf x) {
    return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TK_INLINE vf vf_floor(vf x) { return (vf)_mm256_floor_ps((__m256)x); }
TK_INLINE vf vf_ceil(vf x) { return (vf)_mm256_ceil_ps((__m256)x); }
TK_INLINE vf vf_trunc(vf x) {
    return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
TK_INLINE vd vd_rint_small(vd x) {
    return (vd)_mm256_round_pd((__m256d)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#else

TK_INLINE vf vf_set(float x) { return (vf)_mm512_set1_ps(x); }
TK_INLINE vd vd_set(double x) { return (vd)_mm512_set1_pd(x); }
TK_INLINE vf vf_madd(vf a, vf b, vf c) {
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
TK_INLINE vd vd_madd(vd a, vd b, vd c) {
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
TK_INLINE vf vf_sqrt(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
TK_INLINE vd vd_sqrt(vd x) { return (vd)_mm512_sqrt_pd((__m512d)x); }
TK_INLINE vf vf_select(vi mask, vf yes, vf no) {
    return (vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)no, (__m512)yes);
}
TK_INLINE vd vd_select(vl mask, vd yes, vd no) {
    return (vd)_mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)mask), (__m512d)no, (__m512d)yes);
}
TK_INLINE int vi_mask(vi mask) { return _mm512_movepi32_mask((__m512i)mask); }
TK_INLINE int vl_mask(vl mask) { return _mm512_movepi64_mask((__m512i)mask); }
TK_INLINE vi vf_to_vi(vf x) { return (vi)_mm512_cvtps_epi32((__m512)x); }
TK_INLINE vf vi_to_vf(vi x) { return (vf)_mm512_cvtepi32_ps((__m512i)x); }
TK_INLINE vd vd_load_f32(const float *at) { return (vd)_mm512_cvtps_pd(_mm256_loadu_ps(at)); }
TK_INLINE void vd_store_f32(float *at, vd x) { _mm256_storeu_ps(at, _mm512_cvtpd_ps((__m512d)x)); }
TK_INLINE vf vf_rint(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 0x08); }
TK_INLINE vf vf_floor(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 0x09); }
TK_INLINE vf vf_ceil(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 0x0a); }
TK_INLINE vf vf_trunc(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, 0x0b); }
TK_INLINE vd vd_rint_small(vd x) { return (vd)_mm512_roundscale_pd((__m512d)x, 0x08); }

#endif

TK_INLINE vf vf_abs(vf x) { return (vf)((vi)x & INT32_MAX); }
TK_INLINE vf vf_sign_of(vf x) { return (vf)((vi)x & INT32_MIN); }
TK_INLINE vf vf_with_sign(vf magnitude, vf sign) { return (vf)((vi)magnitude | (vi)sign); }
TK_INLINE vd vd_abs(vd x) { return (vd)((vl)x & INT64_MAX); }
TK_INLINE vd vd_sign_of(vd x) { return (vd)((vl)x & INT64_MIN); }
TK_INLINE vd vd_with_sign(vd magnitude, vd sign) { return (vd)((vl)magnitude | (vl)sign); }

/* Lane j of the result is lane j + 8, + 4, + 2 or + 1 of x; what the last lanes are does not
 * matter. */
#if VF_LANES == 16
#define VF_DOWN_8(x)                                                                               \
    __builtin_shufflevector((x), (x), 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define VF_DOWN_4(x)                                                                               \
    __builtin_shufflevector((x), (x), 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3)
#define VF_DOWN_2(x)                                                                               \
    __builtin_shufflevector((x), (x), 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1)
#define VF_DOWN_1(x)                                                                               \
    __builtin_shufflevector((x), (x), 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0)
#define VD_DOWN_4(x) __builtin_shufflevector((x), (x), 4, 5, 6, 7, 0, 1, 2, 3)
#define VD_DOWN_2(x) __builtin_shufflevector((x), (x), 2, 3, 0, 1, 2, 3, 0, 1)
#define VD_DOWN_1(x) __builtin_shufflevector((x), (x), 1, 0, 1, 0, 1, 0, 1, 0)
#elif VF_LANES == 8
#define VF_DOWN_4(x) __builtin_shufflevector((x), (x), 4, 5, 6, 7, 0, 1, 2, 3)
#define VF_DOWN_2(x) __builtin_shufflevector((x), (x), 2, 3, 0, 1, 2, 3, 0, 1)
#define VF_DOWN_1(x) __builtin_shufflevector((x), (x), 1, 0, 1, 0, 1, 0, 1, 0)
#define VD_DOWN_2(x) __builtin_shufflevector((x), (x), 2, 3, 0, 1)
#define VD_DOWN_1(x) __builtin_shufflevector((x), (x), 1, 0, 1, 0)
#else
#define VF_DOWN_2(x) __builtin_shufflevector((x), (x), 2, 3, 0, 1)
#define VF_DOWN_1(x) __builtin_shufflevector((x), (x), 1, 0, 1, 0)
#define VD_DOWN_1(x) __builtin_shufflevector((x), (x), 1, 0)
#endif

/* The machine's own minimum and maximum: the second operand if the two are equal or either is NaN.
 */
#if TK_SIMD == 0
#define VF_RAW(op, a, b) ((vf)_mm_##op##_ps((__m128)(a), (__m128)(b)))
#define VD_RAW(op, a, b) ((vd)_mm_##op##_pd((__m128d)(a), (__m128d)(b)))
#elif TK_SIMD == 1
#define VF_RAW(op, a, b) ((vf)_mm256_##op##_ps((__m256)(a), (__m256)(b)))
#define VD_RAW(op, a, b) ((vd)_mm256_##op##_pd((__m256d)(a), (__m256d)(b)))
#else
#define VF_RAW(op, a, b) ((vf)_mm512_##op##_ps((__m512)(a), (__m512)(b)))
#define VD_RAW(op, a, b) ((vd)_mm512_##op##_pd((__m512d)(a), (__m512d)(b)))
#endif

/* x brought into [low, high]; NaN stays. */
TK_INLINE vf vf_bound(vf x, float low, float high) {
    return VF_RAW(min, vf_set(high), VF_RAW(max, vf_set(low), x));
}
TK_INLINE vd vd_bound(vd x, double low, double high) {
    return VD_RAW(min, vd_set(high), VD_RAW(max, vd_set(low), x));
}

/* Greater (less) of two, NaN if either is NaN; of equal values the second. */
TK_INLINE vf vf_max(vf a, vf b) { return vf_select(a != a, a, VF_RAW(max, a, b)); }
TK_INLINE vf vf_min(vf a, vf b) { return vf_select(a != a, a, VF_RAW(min, a, b)); }
TK_INLINE vd vd_max(vd a, vd b) { return vd_select(a != a, a, VD_RAW(max, a, b)); }
TK_INLINE vd vd_min(vd a, vd b) { return vd_select(a != a, a, VD_RAW(min, a, b)); }

#endif
