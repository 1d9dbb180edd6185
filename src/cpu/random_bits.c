/* Threefry-2x32-20: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3"
 * (2011).
 *
 * Layout of a stream of w words (bytes rounded up to 4): with half = floor(w / 2), block i < half
 * takes the counter (i, i + half + w mod 2) and gives words i and i + half + w mod 2; where w is
 * odd, word `half` is the first word of the block with counter (half, 0). */
#include "cpu/random_bits.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

tk_threefry_key tk_threefry(tk_threefry_key key, uint32_t counter0, uint32_t counter1) {
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t keys[3] = {key.word[0], key.word[1], 0x1bd11bda ^ key.word[0] ^ key.word[1]};
    uint32_t x = counter0 + keys[0], y = counter1 + keys[1];
    for (uint32_t group = 0; group < 5; group++) {
        for (int round = 0; round < 4; round++) {
            x += y;
            y = rotate(y, rotations[group & 1][round]) ^ x;
        }
        x += keys[(group + 1) % 3];
        y += keys[(group + 2) % 3] + group + 1;
    }
    return (tk_threefry_key){{x, y}};
}

/* Word `index` of a stream of `words` words. */
static uint32_t stream_word(tk_threefry_key key, uint64_t words, uint64_t index) {
    uint64_t half = words / 2, odd = words & 1;
    if (odd && index == half) return tk_threefry(key, (uint32_t)half, 0).word[0];
    bool second = index >= half + odd;
    uint64_t block = second ? index - half - odd : index;
    return tk_threefry(key, (uint32_t)block, (uint32_t)(block + half + odd)).word[second];
}

/* Four blocks at a time, which the compiler keeps in vectors of any x86-64. */
#define LANES 4
typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

static void threefry_lanes(tk_threefry_key key, lanes *x, lanes *y) {
    uint32_t keys[3] = {key.word[0], key.word[1], 0x1bd11bda ^ key.word[0] ^ key.word[1]};
    *x += keys[0];
    *y += keys[1];
#define ROUND(by)                                                                                  \
    *x += *y;                                                                                      \
    *y = (*y << by | *y >> (32 - by)) ^ *x;
#define GROUP(group, a, b, c, d)                                                                   \
    ROUND(a) ROUND(b) ROUND(c) ROUND(d) *x += keys[(group + 1) % 3];                               \
    *y += keys[(group + 2) % 3] + group + 1;
    GROUP(0u, 13, 15, 26, 6)
    GROUP(1u, 17, 29, 16, 24)
    GROUP(2u, 13, 15, 26, 6)
    GROUP(3u, 17, 29, 16, 24)
    GROUP(4u, 13, 15, 26, 6)
}

/* Words [index, index + count), all in one half of the stream and none the odd middle word. */
static void fill_half(tk_threefry_key key, uint64_t words, uint64_t index, uint64_t count,
                      char *out) {
    uint64_t apart = words / 2 + (words & 1);
    bool second = index >= apart;
    uint32_t block = (uint32_t)(second ? index - apart : index);
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes x = {0, 1, 2, 3}, y;
        x += block + (uint32_t)i;
        y = x + (uint32_t)apart;
        threefry_lanes(key, &x, &y);
        memcpy(out + 4 * i, second ? &y : &x, sizeof x);
    }
    for (; i < count; i++) {
        uint32_t word = stream_word(key, words, index + i);
        memcpy(out + 4 * i, &word, 4);
    }
}

static void fill_words(tk_threefry_key key, uint64_t words, uint64_t index, uint64_t count,
                       char *out) {
    uint64_t half = words / 2, end = index + count;
    uint64_t low_end = end < half ? end : half, high = half + (words & 1);
    if (index < low_end) fill_half(key, words, index, low_end - index, out);
    if ((words & 1) && index <= half && end > half) {
        uint32_t middle = stream_word(key, words, half);
        memcpy(out + 4 * (half - index), &middle, 4);
    }
    if (high < index) high = index;
    if (high < end) fill_half(key, words, high, end - high, out + 4 * (high - index));
}

void tk_threefry_bytes(tk_threefry_key key, uint64_t total, uint64_t first, uint64_t count,
                       void *out) {
    assert(first % 4 == 0 && first + count <= total);
    uint64_t words = (total + 3) / 4;
    fill_words(key, words, first / 4, count / 4, out);
    if (count % 4 == 0) return;
    uint32_t last = stream_word(key, words, first / 4 + count / 4);
    memcpy((char *)out + count / 4 * 4, &last, count % 4);
}

void tk_threefry_split(tk_threefry_key key, uint64_t count, tk_threefry_key *out) {
    tk_threefry_bytes(key, 8 * count, 0, 8 * count, out);
}
