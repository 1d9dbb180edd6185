/* SHA-256 in plain C. The constants are the first 32 bits of the fractional parts of the cube roots
 * (rounds) and square roots (start) of the first primes, as the standard says. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

static uint32_t read_word(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The message schedule, sixteen words at a time. */
static void expand(uint32_t words[16]) {
    for (int i = 0; i < 16; i++) {
        uint32_t near = words[(i + 14) & 15], far = words[(i + 1) & 15];
        words[i] += (rotate(far, 7) ^ rotate(far, 18) ^ far >> 3) + words[(i + 9) & 15] +
                    (rotate(near, 17) ^ rotate(near, 19) ^ near >> 10);
    }
}

/* One round. The eight words of state do not move; the names do, in the calls below. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
    do {                                                                                           \
        uint32_t first = (h) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +                    \
                         ((g) ^ ((e) & ((f) ^ (g)))) + constants[i] + words[i];                    \
        (d) += first;                                                                              \
        (h) = first + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                             \
              (((a) & (b)) | ((c) & ((a) | (b))));                                                 \
    } while (0)

static void rounds(uint32_t s[8], const uint32_t words[16], const uint32_t *constants) {
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (int i = 0; i < 16; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t after[8] = {a, b, c, d, e, f, g, h};
    memcpy(s, after, sizeof after);
}

static void compress(uint32_t state[8], const unsigned char *block) {
    uint32_t words[16], s[8];
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 16; i++) words[i] = read_word(block + 4 * i);
    for (int i = 0; i < 64; i += 16) {
        if (i > 0) expand(words);
        rounds(s, words, round_constants + i);
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

void tk_sha256_blocks_plain(uint32_t state[8], const unsigned char *data, size_t blocks) {
    for (; blocks > 0; blocks--, data += 64) compress(state, data);
}

static void put_blocks(tk_sha256 *hash, const unsigned char *data, size_t blocks) {
    if (tk_sha256_has_x86())
        tk_sha256_blocks_x86(hash->state, data, blocks, round_constants);
    else
        tk_sha256_blocks_plain(hash->state, data, blocks);
}

void tk_sha256_begin(tk_sha256 *hash) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
}

void tk_sha256_put(tk_sha256 *hash, const void *data, size_t bytes) {
    const unsigned char *at = data;
    while (bytes > 0) {
        size_t filled = hash->bytes % 64, part = 64 - filled;
        if (filled == 0 && bytes >= 64) { /* whole blocks from where they are */
            size_t whole = bytes / 64 * 64;
            put_blocks(hash, at, whole / 64);
            hash->bytes += whole;
            at += whole;
            bytes -= whole;
            continue;
        }
        if (part > bytes) part = bytes;
        memcpy(hash->block + filled, at, part);
        hash->bytes += part;
        at += part;
        bytes -= part;
        if (hash->bytes % 64 == 0) put_blocks(hash, hash->block, 1);
    }
}

static void write_bits(uint64_t bits, unsigned char out[8]) {
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(bits >> (56 - 8 * i));
}

void tk_sha256_end(tk_sha256 *hash, unsigned char out_digest[TK_SHA256_BYTES]) {
    static const unsigned char padding[64] = {0x80};
    unsigned char length[8];
    write_bits(hash->bytes * 8, length);
    size_t filled = hash->bytes % 64;
    tk_sha256_put(hash, padding, filled < 56 ? 56 - filled : 120 - filled);
    tk_sha256_put(hash, length, 8);
    for (int i = 0; i < 32; i++)
        out_digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void tk_sha256_of(const void *data, size_t bytes, unsigned char out_digest[TK_SHA256_BYTES]) {
    tk_sha256 hash;
    tk_sha256_begin(&hash);
    tk_sha256_put(&hash, data, bytes);
    tk_sha256_end(&hash, out_digest);
}

void tk_sha256_text(const unsigned char digest[TK_SHA256_BYTES], char out_text[TK_SHA256_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < TK_SHA256_BYTES; i++) {
        out_text[2 * i] = digits[digest[i] >> 4];
        out_text[2 * i + 1] = digits[digest[i] & 15];
    }
    out_text[2 * TK_SHA256_BYTES] = 0;
}
