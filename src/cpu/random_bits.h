/* Counter-based random bits: Threefry-2x32 with 20 rounds (Salmon and others, 2011), laid out so
 * that a key and shape give the bits that MLX gives.
 *
 * A key is two 32-bit words. Every word of the output depends on key and position only, so spans
 * may be filled by any number of threads. No function can fail. Named after the cipher, since the
 * public functions have the plain names. */
#ifndef CPU_RANDOM_BITS_H
#define CPU_RANDOM_BITS_H

#include <stdint.h>

typedef struct tk_threefry_key {
    uint32_t word[2];
} tk_threefry_key;

/* The key of a seed: high and low half of the 64 bits. */
static inline tk_threefry_key tk_threefry_seed(uint64_t seed) {
    return (tk_threefry_key){{(uint32_t)(seed >> 32), (uint32_t)seed}};
}

/* Threefry-2x32-20 of one counter block. */
tk_threefry_key tk_threefry(tk_threefry_key key, uint32_t counter0, uint32_t counter1);

/* out[0..count) bytes of the stream that belongs to `key` and a total of `total` bytes, from byte
 * `first` on. `first` must be a multiple of 4 and first + count <= total. The stream depends on
 * `total`: two streams of different length are unrelated. */
void tk_threefry_bytes(tk_threefry_key key, uint64_t total, uint64_t first, uint64_t count,
                       void *out);

/* out[0..count): the keys that splitting `key` into `count` gives. */
void tk_threefry_split(tk_threefry_key key, uint64_t count, tk_threefry_key *out);

#endif
