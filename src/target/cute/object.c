/* The object of version 4.8 of the package: the local symbol `kernels_binary` stands before a fat
 * binary with one cubin. Layouts of fat binaries are not documented; the offsets are those that
 * public readers of them agree on. */
#include "target/cute/object.h"

#include <inttypes.h>

#include "base/error.h"
#include "target/elf64.h"

#define FAT_MAGIC UINT32_C(0xba55ed50)
enum { FAT_HEADER = 16, FAT_ENTRY = 64 };
enum { KIND_ELF = 2, COMPRESSED_FLAGS = 0xf000, CUBIN_MACHINE = 190 };

static bool is_cubin(const unsigned char *data, size_t bytes) {
    return tk_elf64_is(data, bytes) && tk_le16(data + 18) == CUBIN_MACHINE;
}

static tk_status check_entry(const unsigned char *entry, size_t left, const unsigned char **out_at,
                             size_t *out_bytes) {
    uint32_t payload = tk_le32(entry + 4), compressed = tk_le32(entry + 16);
    uint64_t size = tk_le64(entry + 8), flags = tk_le64(entry + 40);
    if (payload < FAT_ENTRY || payload > left || size > left - payload)
        return tk_fail(TK_FORMAT_ERROR,
                       "fat binary: a payload of %" PRIu64 " bytes at %" PRIu32
                       " leaves the %zu bytes there are",
                       size, payload, left);
    if (compressed || flags & COMPRESSED_FLAGS)
        return tk_fail(TK_UNSUPPORTED, "fat binary: the payload is compressed (flags %" PRIx64 ")",
                       flags);
    if (!is_cubin(entry + payload, (size_t)size))
        return tk_fail(TK_UNSUPPORTED, "fat binary: the payload is no cubin");
    *out_at = entry + payload;
    *out_bytes = (size_t)size;
    return TK_OK;
}

static tk_status find_in_fat(const unsigned char *data, size_t bytes, const unsigned char **out_at,
                             size_t *out_bytes) {
    if (bytes < FAT_HEADER) return tk_fail(TK_FORMAT_ERROR, "fat binary: %zu bytes", bytes);
    size_t at = tk_le16(data + 6);
    uint64_t all = tk_le64(data + 8);
    if (at < FAT_HEADER || at > bytes || all > bytes - at)
        return tk_fail(TK_FORMAT_ERROR,
                       "fat binary: %" PRIu64 " bytes behind a header of %zu, of %zu", all, at,
                       bytes);
    size_t end = at + (size_t)all;
    while (end - at >= FAT_ENTRY) {
        const unsigned char *entry = data + at;
        uint64_t length = (uint64_t)tk_le32(entry + 4) + tk_le64(entry + 8);
        if (tk_le16(entry) == KIND_ELF) return check_entry(entry, end - at, out_at, out_bytes);
        if (length < FAT_ENTRY || length > end - at)
            return tk_fail(TK_FORMAT_ERROR, "fat binary: an entry of %" PRIu64 " bytes at %zu",
                           length, at);
        at += (size_t)length;
    }
    return tk_fail(TK_UNSUPPORTED, "fat binary: no cubin in it");
}

static tk_status find_payload(const unsigned char *data, size_t bytes, const unsigned char **out_at,
                              size_t *out_bytes) {
    if (is_cubin(data, bytes)) {
        *out_at = data;
        *out_bytes = bytes;
        return TK_OK;
    }
    if (bytes >= 4 && tk_le32(data) == FAT_MAGIC)
        return find_in_fat(data, bytes, out_at, out_bytes);
    return tk_fail(TK_UNSUPPORTED, "a device binary of an unknown kind");
}

tk_status tk_cute_object_find(const unsigned char *data, size_t bytes, const unsigned char **out_at,
                              size_t *out_bytes) {
    tk_elf64 elf;
    tk_elf64_symbol symbol;
    tk_elf64_section section;
    if (!tk_elf64_is(data, bytes) || is_cubin(data, bytes))
        return find_payload(data, bytes, out_at, out_bytes);
    TK_TRY(tk_elf64_open(data, bytes, &elf));
    TK_TRY(tk_elf64_symbol_named(&elf, "kernels_binary", &symbol));
    TK_TRY(tk_elf64_section_at(&elf, symbol.section, &section));
    if (symbol.value >= section.bytes || symbol.size > section.bytes - symbol.value)
        return tk_fail(TK_FORMAT_ERROR,
                       "object: kernels_binary, %" PRIu64 " bytes at %" PRIu64
                       ", leaves its section of %zu",
                       symbol.size, symbol.value, section.bytes);
    size_t size = symbol.size ? (size_t)symbol.size : section.bytes - (size_t)symbol.value;
    return find_payload(section.data + symbol.value, size, out_at, out_bytes);
}
