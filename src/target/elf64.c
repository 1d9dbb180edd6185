/* See elf64.h. Only what is asked for is read: the headers of sections, names, symbols. */
#include "target/elf64.h"

#include <string.h>

#include "base/error.h"

enum { HEADER = 64, SECTION = 64, SYMBOL = 24 };

uint16_t tk_le16(const unsigned char *at) { return (uint16_t)(at[0] | at[1] << 8); }
uint32_t tk_le32(const unsigned char *at) { return tk_le16(at) | (uint32_t)tk_le16(at + 2) << 16; }
uint64_t tk_le64(const unsigned char *at) { return tk_le32(at) | (uint64_t)tk_le32(at + 4) << 32; }

bool tk_elf64_is(const unsigned char *data, size_t bytes) {
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    return bytes >= HEADER && !memcmp(data, magic, sizeof magic);
}

/* Whether [at, at + length) lies inside of `bytes`. */
static bool inside(uint64_t at, uint64_t length, size_t bytes) {
    return at <= bytes && length <= bytes - at;
}

tk_status tk_elf64_open(const unsigned char *data, size_t bytes, tk_elf64 *out) {
    if (!tk_elf64_is(data, bytes))
        return tk_fail(TK_FORMAT_ERROR, "%zu bytes that are no 64-bit little-endian ELF", bytes);
    *out = (tk_elf64){.data = data,
                      .bytes = bytes,
                      .machine = tk_le16(data + 18),
                      .flags = tk_le32(data + 48),
                      .sections_at = tk_le64(data + 40),
                      .sections = tk_le16(data + 60),
                      .names = tk_le16(data + 62)};
    if (tk_le16(data + 58) != SECTION && out->sections)
        return tk_fail(TK_FORMAT_ERROR, "ELF: section headers of %u bytes, expected %d",
                       (unsigned)tk_le16(data + 58), SECTION);
    if (!inside(out->sections_at, (uint64_t)out->sections * SECTION, bytes))
        return tk_fail(TK_FORMAT_ERROR,
                       "ELF: %u section headers at %llu leave the file of %zu bytes",
                       (unsigned)out->sections, (unsigned long long)out->sections_at, bytes);
    return TK_OK;
}

static tk_status read_section(const tk_elf64 *elf, unsigned index, uint32_t *out_name,
                              tk_elf64_section *out) {
    const unsigned char *at = elf->data + elf->sections_at + (size_t)index * SECTION;
    uint64_t offset = tk_le64(at + 24), size = tk_le64(at + 32);
    *out_name = tk_le32(at);
    *out = (tk_elf64_section){.type = tk_le32(at + 4), .link = tk_le32(at + 40)};
    if (out->type == TK_ELF64_NO_BYTES || !size) return TK_OK;
    if (!inside(offset, size, elf->bytes))
        return tk_fail(TK_FORMAT_ERROR, "ELF: section %u, %llu bytes at %llu, leaves the file",
                       index, (unsigned long long)size, (unsigned long long)offset);
    out->data = elf->data + offset;
    out->bytes = (size_t)size;
    return TK_OK;
}

/* A text in a section of texts; "" beyond it or without an end. */
static const char *text_at(const tk_elf64_section *texts, uint32_t at) {
    if (at >= texts->bytes || !memchr(texts->data + at, 0, texts->bytes - at)) return "";
    return (const char *)texts->data + at;
}

tk_status tk_elf64_section_at(const tk_elf64 *elf, unsigned index, tk_elf64_section *out) {
    tk_elf64_section names;
    uint32_t name, ignored;
    if (index >= elf->sections || elf->names >= elf->sections)
        return tk_fail(TK_FORMAT_ERROR, "ELF: section %u of %u", index, (unsigned)elf->sections);
    TK_TRY(read_section(elf, elf->names, &ignored, &names));
    TK_TRY(read_section(elf, index, &name, out));
    out->name = text_at(&names, name);
    return TK_OK;
}

tk_status tk_elf64_section_named(const tk_elf64 *elf, const char *name, tk_elf64_section *out) {
    for (unsigned i = 0; i < elf->sections; i++) {
        TK_TRY(tk_elf64_section_at(elf, i, out));
        if (!strcmp(out->name, name)) return TK_OK;
    }
    return tk_fail(TK_NOT_FOUND, "ELF: no section %s", name);
}

static bool find_symbol(const tk_elf64_section *symbols, const tk_elf64_section *names,
                        const char *name, tk_elf64_symbol *out) {
    for (size_t at = 0; at + SYMBOL <= symbols->bytes; at += SYMBOL) {
        const unsigned char *entry = symbols->data + at;
        *out = (tk_elf64_symbol){.name = text_at(names, tk_le32(entry)),
                                 .section = tk_le16(entry + 6),
                                 .value = tk_le64(entry + 8),
                                 .size = tk_le64(entry + 16)};
        if (!strcmp(out->name, name)) return true;
    }
    return false;
}

tk_status tk_elf64_symbol_named(const tk_elf64 *elf, const char *name, tk_elf64_symbol *out) {
    tk_elf64_section symbols, names;
    for (unsigned i = 0; i < elf->sections; i++) {
        TK_TRY(tk_elf64_section_at(elf, i, &symbols));
        if (symbols.type != TK_ELF64_SYMBOLS) continue;
        TK_TRY(tk_elf64_section_at(elf, symbols.link, &names));
        if (find_symbol(&symbols, &names, name, out)) return TK_OK;
    }
    return tk_fail(TK_NOT_FOUND, "ELF: no symbol %s", name);
}
