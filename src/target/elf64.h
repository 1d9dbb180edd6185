/* ELF64, little-endian, as data that nobody vouches for: every offset is checked before it is used.
 */
#ifndef TARGET_ELF64_H
#define TARGET_ELF64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/status.h"

typedef struct tk_elf64 {
    const unsigned char *data;
    size_t bytes;
    uint16_t machine;
    uint32_t flags;
    uint64_t sections_at; /* of the section headers */
    uint16_t sections, names;
} tk_elf64;

typedef struct tk_elf64_section {
    const char *name; /* ends with a zero byte inside of the data */
    uint32_t type, link;
    const unsigned char *data; /* NULL without bytes in the file */
    size_t bytes;
} tk_elf64_section;

typedef struct tk_elf64_symbol {
    const char *name;
    uint16_t section;
    uint64_t value, size;
} tk_elf64_symbol;

enum { TK_ELF64_SYMBOLS = 2, TK_ELF64_NO_BYTES = 8 };

/* Little-endian numbers at a place that the caller has checked. */
uint16_t tk_le16(const unsigned char *at);
uint32_t tk_le32(const unsigned char *at);
uint64_t tk_le64(const unsigned char *at);

bool tk_elf64_is(const unsigned char *data, size_t bytes);

/* TK_FORMAT_ERROR with the offset that is wrong. */
tk_status tk_elf64_open(const unsigned char *data, size_t bytes, tk_elf64 *out);
tk_status tk_elf64_section_at(const tk_elf64 *elf, unsigned index, tk_elf64_section *out);

/* TK_NOT_FOUND. */
tk_status tk_elf64_section_named(const tk_elf64 *elf, const char *name, tk_elf64_section *out);
tk_status tk_elf64_symbol_named(const tk_elf64 *elf, const char *name, tk_elf64_symbol *out);

#endif
