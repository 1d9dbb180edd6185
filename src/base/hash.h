/* A 64-bit mixing hash for in-memory tables (interning). Not for identities that leave the process.
 *
 * Source of the mixing step: the multiply-and-fold construction of wyhash (public domain). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t tk_hash_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xe7037ed1a0b428dbu);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t tk_hash_bytes(uint64_t seed, const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t hash = tk_hash_mix(seed, bytes);
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = tk_hash_mix(hash, word);
    }
    if (bytes == 0) return hash;
    uint64_t last = 0;
    memcpy(&last, at, bytes);
    return tk_hash_mix(hash, last);
}

#endif
