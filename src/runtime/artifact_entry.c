/* Writing and reading entries; the header draws them. Lengths from a file are never trusted before
 * they are checked against what is there. */
#include "runtime/artifact_entry.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static const unsigned char magic[8] = {'T', 'K', 'A', 'R', 'T', 0, 0, 1};

static void put_number(unsigned char *to, uint64_t value) {
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_number(const unsigned char *from) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << 8 * i;
    return value;
}

tk_status tk_key_encode(const tk_key_part *parts, int count, unsigned char **out_key,
                        size_t *out_bytes, unsigned char out_digest[TK_SHA256_BYTES]) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += 16 + strlen(parts[i].name) + parts[i].bytes;
    unsigned char *key = tk_malloc(bytes), *at = key;
    if (!key) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a key of %zu bytes", bytes);
    for (int i = 0; i < count; i++) {
        size_t name = strlen(parts[i].name);
        put_number(at, name);
        put_number(at + 8, parts[i].bytes);
        memcpy(at + 16, parts[i].name, name);
        if (parts[i].bytes) memcpy(at + 16 + name, parts[i].value, parts[i].bytes);
        at += 16 + name + parts[i].bytes;
    }
    tk_sha256_of(key, bytes, out_digest);
    *out_key = key;
    *out_bytes = bytes;
    return TK_OK;
}

void tk_entry_head(int n_parts, const unsigned char *key, size_t key_bytes, const void *payload,
                   size_t payload_bytes, unsigned char out_head[TK_ENTRY_HEAD]) {
    memcpy(out_head, magic, 8);
    put_number(out_head + 8, (uint64_t)n_parts);
    put_number(out_head + 16, key_bytes);
    put_number(out_head + 24, payload_bytes);
    tk_sha256_of(key, key_bytes, out_head + 32);
    tk_sha256_of(payload, payload_bytes, out_head + 64);
    tk_sha256_of(out_head, 96, out_head + 96);
}

static bool matches(const void *data, size_t bytes, const unsigned char *digest) {
    unsigned char found[TK_SHA256_BYTES];
    tk_sha256_of(data, bytes, found);
    return memcmp(found, digest, sizeof found) == 0;
}

/* Whether the parts fill the key exactly. */
static bool key_is_whole(const tk_cache_record *entry) {
    size_t offset = 0, name;
    uint64_t count = 0;
    tk_key_part part;
    while (tk_key_next(entry, &offset, &part, &name)) count++;
    return offset == entry->key_bytes && count == entry->n_parts;
}

bool tk_entry_read(const unsigned char *bytes, size_t length, const unsigned char *digest,
                   bool whole, tk_cache_record *out_entry) {
    if (length < TK_ENTRY_HEAD || memcmp(bytes, magic, 8) != 0) return false;
    if (!matches(bytes, 96, bytes + 96)) return false;
    uint64_t key = get_number(bytes + 16), payload = get_number(bytes + 24);
    size_t rest = length - TK_ENTRY_HEAD;
    if (key > rest || payload != rest - key) return false;
    if (digest && memcmp(bytes + 32, digest, TK_SHA256_BYTES) != 0) return false;
    *out_entry = (tk_cache_record){get_number(bytes + 8), bytes + TK_ENTRY_HEAD, (size_t)key,
                                   bytes + TK_ENTRY_HEAD + key, (size_t)payload};
    if (!matches(out_entry->key, out_entry->key_bytes, bytes + 32)) return false;
    if (whole && !matches(out_entry->payload, out_entry->payload_bytes, bytes + 64)) return false;
    return key_is_whole(out_entry);
}

bool tk_key_next(const tk_cache_record *entry, size_t *offset, tk_key_part *out_part,
                 size_t *out_name) {
    size_t left = entry->key_bytes - *offset;
    if (left < 16) return false;
    const unsigned char *at = entry->key + *offset;
    uint64_t name = get_number(at), value = get_number(at + 8);
    if (name > left - 16 || value > left - 16 - name) return false;
    *out_part = (tk_key_part){(const char *)at + 16, at + 16 + name, (size_t)value};
    *out_name = (size_t)name;
    *offset += 16 + (size_t)name + (size_t)value;
    return true;
}
