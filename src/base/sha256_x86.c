/* SHA-256 with the processor's own instructions, some ten times as fast; chosen when they are
 * there. Empty on other processors. */
#include "base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

/* Words 4 i to 4 i + 3 of the schedule from the sixteen before, kept four to a vector in a ring. */
__attribute__((target("sha,sse4.1,ssse3"))) static inline __m128i next_words(const __m128i w[4],
                                                                             int i) {
    __m128i last = w[(i + 3) & 3];
    __m128i sum = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
    sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
    return _mm_sha256msg2_epu32(sum, last);
}

/* The instructions keep the state as (A, B, E, F) and (C, D, G, H), highest word first. */
__attribute__((target("sha,sse4.1,ssse3"))) void
tk_sha256_blocks_x86(uint32_t state[8], const unsigned char *data, size_t blocks,
                     const uint32_t constants[64]) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; blocks > 0; blocks--, data += 64) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;
        for (int i = 0; i < 16; i++) {
            if (i < 4)
                w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), swap);
            else
                w[i & 3] = next_words(w, i);
            __m128i k = _mm_loadu_si128((const __m128i *)(constants + 4 * i));
            __m128i sum = _mm_add_epi32(w[i & 3], k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

bool tk_sha256_has_x86(void) {
    static _Atomic int known; /* 0: not asked, 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer) return answer == 2;
    unsigned a, b = 0, c = 0, d, unused;
    bool has = __get_cpuid(1, &a, &unused, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) &&
               __get_cpuid_count(7, 0, &a, &b, &unused, &d) && (b & bit_SHA);
    atomic_store_explicit(&known, has ? 2 : 1, memory_order_relaxed);
    return has;
}

#else

bool tk_sha256_has_x86(void) { return false; }

void tk_sha256_blocks_x86(uint32_t state[8], const unsigned char *data, size_t blocks,
                          const uint32_t constants[64]) {
    (void)state;
    (void)data;
    (void)blocks;
    (void)constants;
}

#endif
