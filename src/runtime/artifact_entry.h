/* The file of one entry of the artifact cache, in memory: key and payload with their checksums.
 *
 *     offset 0   "TKART" and the format's number
 *            8   number of key parts, as are all numbers little-endian and 64 bits
 *           16   bytes of the key
 *           24   bytes of the payload
 *           32   SHA-256 of the key, which is also the file's name
 *           64   SHA-256 of the payload
 *           96   SHA-256 of the 96 bytes before
 *          128   the key: for each part bytes of its name, bytes of its value, name, value
 *                the payload
 *
 * So every bit of a file is covered. */
#ifndef RUNTIME_ARTIFACT_ENTRY_H
#define RUNTIME_ARTIFACT_ENTRY_H

#include <stdbool.h>

#include "base/sha256.h"
#include "tiki/status.h"

#define TK_ENTRY_HEAD 128

/* A part of a key: everything that decides the payload must be in one. */
typedef struct tk_key_part {
    const char *name;
    const void *value;
    size_t bytes;
} tk_key_part;

/* A file's content, seen through. */
typedef struct tk_cache_record {
    uint64_t n_parts;
    const unsigned char *key;
    size_t key_bytes;
    const unsigned char *payload;
    size_t payload_bytes;
} tk_cache_record;

/* The bytes of a key, for the caller to free, and their digest. TK_OUT_OF_MEMORY. */
tk_status tk_key_encode(const tk_key_part *parts, int count, unsigned char **out_key,
                        size_t *out_bytes, unsigned char out_digest[TK_SHA256_BYTES]);

/* The head of a file. */
void tk_entry_head(int n_parts, const unsigned char *key, size_t key_bytes, const void *payload,
                   size_t payload_bytes, unsigned char out_head[TK_ENTRY_HEAD]);

/* Whether the bytes are a sound entry; if so what is in it. The digest is the name it was found by;
 * NULL checks all but that. Without `whole` the payload's checksum is not computed. */
bool tk_entry_read(const unsigned char *bytes, size_t length, const unsigned char *digest,
                   bool whole, tk_cache_record *out_entry);

/* Reads the part at `*offset` of a key, and moves on; false at the end. Of a key that was checked.
 */
bool tk_key_next(const tk_cache_record *entry, size_t *offset, tk_key_part *out_part,
                 size_t *out_name);

#endif
