/* The records of `.nv.info.<kernel>` are not documented; these are the two that every reader of
 * them agrees on, and both targets' binaries are compared by them. */
#include "target/cubin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/contract.h"
#include "target/elf64.h"

enum { CUBIN_MACHINE = 190, SIZED_VALUE = 4 };
enum { PARAMETER = 0x17, PARAMETER_BYTES = 0x19 };
/* CUDA 13 writes another ABI into the header and the architecture eight bits further up. */
enum { ABI_AT = 7, ABI_OF_CUDA_12 = 0x33 };

static tk_status check_arch(const tk_elf64 *elf, const char *arch) {
    unsigned shift = elf->data[ABI_AT] == ABI_OF_CUDA_12 ? 0 : 8;
    unsigned has = elf->flags >> shift & 0xff, wants = (unsigned)strtoul(arch + 3, NULL, 10);
    if (elf->machine != CUBIN_MACHINE)
        return tk_fail(TK_FORMAT_ERROR, "ELF for machine %u, a cubin is for %d",
                       (unsigned)elf->machine, CUBIN_MACHINE);
    if (has != wants)
        return tk_fail(TK_INTERNAL, "a cubin for sm_%u where %s was asked for", has, arch);
    return TK_OK;
}

static tk_status differs(const tk_kernel *kernel, const char *what, int64_t has, int64_t wants) {
    return tk_fail(TK_INTERNAL,
                   "kernel %s: the binary has %s %" PRId64 ", the launch contract %" PRId64,
                   kernel->name, what, has, wants);
}

/* A tensor map lies at a multiple of 64 bytes of the constant bank, in which the parameters begin
 * at a place that the architecture chooses: offsets are known in front of the first map only. */
static size_t known_offsets(const tk_kernel *kernel) {
    size_t count = 0;
    while (count < kernel->contract.params.count && !kernel->contract.params.items[count].map)
        count++;
    return count;
}

static tk_status check_parameter(const tk_kernel *kernel, const unsigned char *value) {
    char what[64];
    unsigned ordinal = tk_le16(value + 4), offset = tk_le16(value + 6),
             size = tk_le32(value + 8) >> 18 & 0x3fff;
    if (ordinal >= kernel->contract.params.count)
        return differs(kernel, "a parameter number", ordinal,
                       (int64_t)kernel->contract.params.count - 1);
    int64_t wants_offset = tk_kparam_offset(kernel, (int)ordinal),
            wants_size = tk_kparam_bytes(kernel, (int)ordinal);
    const char *name = kernel->contract.params.items[ordinal].value->name;
    snprintf(what, sizeof what, "parameter %.30s at", name);
    if (ordinal < known_offsets(kernel) && offset != wants_offset)
        return differs(kernel, what, offset, wants_offset);
    snprintf(what, sizeof what, "parameter %.30s of bytes", name);
    if (size != wants_size) return differs(kernel, what, size, wants_size);
    return TK_OK;
}

typedef struct seen {
    size_t parameters;
    int64_t bytes; /* -1: not said */
} seen;

static tk_status read_records(const tk_elf64_section *info, const tk_kernel *kernel, seen *out) {
    for (size_t at = 0; at + 4 <= info->bytes;) {
        const unsigned char *record = info->data + at;
        unsigned format = record[0], kind = record[1], size = tk_le16(record + 2);
        size_t length = format == SIZED_VALUE ? size : 0;
        if (length > info->bytes - at - 4)
            return tk_fail(TK_FORMAT_ERROR, "%s: a record of %zu bytes at %zu leaves it",
                           info->name, length, at);
        if (kind == PARAMETER && length >= 12) {
            TK_TRY(check_parameter(kernel, record + 4));
            out->parameters++;
        }
        if (kind == PARAMETER_BYTES && format != SIZED_VALUE) out->bytes = size;
        at += 4 + length;
    }
    return TK_OK;
}

tk_status tk_cubin_check(const unsigned char *data, size_t bytes, const tk_kernel *kernel,
                         const char *arch) {
    tk_elf64 elf;
    tk_elf64_section section;
    char name[256];
    size_t count = kernel->contract.params.count;
    seen found = {.bytes = -1};
    TK_TRY(tk_elf64_open(data, bytes, &elf));
    TK_TRY(check_arch(&elf, arch));
    snprintf(name, sizeof name, ".text.%s", kernel->name);
    if (tk_elf64_section_named(&elf, name, &section) != TK_OK)
        return tk_fail(TK_NOT_FOUND, "kernel %s is not in the binary", kernel->name);
    snprintf(name, sizeof name, ".nv.info.%s", kernel->name);
    TK_TRY(tk_elf64_section_named(&elf, name, &section));
    TK_TRY(read_records(&section, kernel, &found));
    if (found.parameters != count)
        return differs(kernel, "parameters:", (int64_t)found.parameters, (int64_t)count);
    if (found.bytes >= 0 && known_offsets(kernel) == count &&
        found.bytes != tk_kparam_offset(kernel, (int)count))
        return differs(kernel, "bytes of parameters:", found.bytes,
                       tk_kparam_offset(kernel, (int)count));
    return TK_OK;
}
