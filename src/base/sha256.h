/* SHA-256, for identities and checksums that leave the process (FIPS 180-4). hash.h has the fast
 * hash for tables in memory.
 *
 * Rejected: a library of cryptography, for eighty lines; shorter checksums, since a file of the
 * cache is found by its digest and must not be mistaken. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TK_SHA256_BYTES 32
#define TK_SHA256_TEXT 65 /* hexadecimal digits and the zero */

typedef struct tk_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} tk_sha256;

void tk_sha256_begin(tk_sha256 *hash);
void tk_sha256_put(tk_sha256 *hash, const void *data, size_t bytes);
void tk_sha256_end(tk_sha256 *hash, unsigned char out_digest[TK_SHA256_BYTES]);

/* All three at once. */
void tk_sha256_of(const void *data, size_t bytes, unsigned char out_digest[TK_SHA256_BYTES]);

/* The digest in lower case hexadecimal digits. */
void tk_sha256_text(const unsigned char digest[TK_SHA256_BYTES], char out_text[TK_SHA256_TEXT]);

/* Whether the processor has instructions for it, and whole blocks with them (sha256_x86.c). */
bool tk_sha256_has_x86(void);
void tk_sha256_blocks_x86(uint32_t state[8], const unsigned char *data, size_t blocks,
                          const uint32_t constants[64]);

/* The same in plain C; the tests compare the two. */
void tk_sha256_blocks_plain(uint32_t state[8], const unsigned char *data, size_t blocks);

#endif
