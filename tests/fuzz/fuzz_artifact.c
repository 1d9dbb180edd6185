/* Files of the artifact cache: raw bytes, and bytes under a head whose checksums are right, so that
 * the lengths in the key are reached. Every part that is read lies within the file. */
#include <stdlib.h>
#include <string.h>

#include "runtime/artifact_entry.h"

static void walk(const unsigned char *bytes, size_t length) {
    tk_cache_record entry;
    tk_key_part part;
    size_t offset = 0, name;
    if (!tk_entry_read(bytes, length, NULL, true, &entry)) return;
    while (tk_key_next(&entry, &offset, &part, &name)) {
        const unsigned char *value = part.value;
        if ((const unsigned char *)part.name < bytes || value + part.bytes > bytes + length)
            abort();
        if ((const unsigned char *)part.name + name != value) abort();
    }
    if (entry.payload + entry.payload_bytes != bytes + length) abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    walk(data, size);
    if (size < 2) return 0;
    size_t key = (size - 2) * data[1] / 255, payload = size - 2 - key;
    unsigned char *file = malloc(TK_ENTRY_HEAD + size);
    if (!file) return 0;
    tk_entry_head(data[0] % 8, data + 2, key, data + 2 + key, payload, file);
    memcpy(file + TK_ENTRY_HEAD, data + 2, key + payload);
    walk(file, TK_ENTRY_HEAD + key + payload);
    free(file);
    return 0;
}
