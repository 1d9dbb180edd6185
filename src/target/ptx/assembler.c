/* Choosing an assembler, and what it said as a report.
 *
 * ptxas comes first: a process of its own, whose crashes and leaks are not ours, and the one that
 * is easiest to have. The compiler as a library is next (50 MB in this process), then the driver,
 * which is wherever a card is. What is named by the environment is taken or is an error: nobody
 * gets another assembler than the one that was asked for.
 *
 * Rejected for the identity of what they make: their versions, which only starting them would tell;
 * size and time of their file change with it. */
#define _GNU_SOURCE
#include "target/ptx/assembler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernel/ir.h"
#include "runtime/cuda_link.h"
#include "target/ptx/assemblers.h"

/* ---- which ---- */

static const char *const words[] = {[TK_ASSEMBLER_PTXAS] = "ptxas",
                                    [TK_ASSEMBLER_LIBRARY] = "nvPTXCompiler",
                                    [TK_ASSEMBLER_DRIVER] = "driver"};
enum { KINDS = sizeof words / sizeof *words };

/* The value of a variable of the environment, NULL when it is empty. */
static const char *named_by(const char *variable) {
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static tk_status identify_file(tk_assembler *a) {
    struct stat info;
    if (stat(a->path, &info)) return tk_fail(TK_UNSUPPORTED, "no %s at %.200s", a->word, a->path);
    snprintf(a->identity, sizeof a->identity, "%s of %lld bytes, changed at %lld.%09ld", a->word,
             (long long)info.st_size, (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return TK_OK;
}

static tk_status find_ptxas(tk_assembler *a) {
    const char *named = named_by("TIKI_PTXAS");
    if (named && !tk_ptxas_is_program(named))
        return tk_fail(TK_UNSUPPORTED, "no ptxas at %.200s, which TIKI_PTXAS names", named);
    if (named)
        snprintf(a->path, sizeof a->path, "%s", named);
    else if (!tk_ptxas_find(a->path))
        return tk_fail(TK_UNSUPPORTED,
                       "no ptxas: put it in PATH, name it in TIKI_PTXAS, or install the Python "
                       "package nvidia-cuda-nvcc");
    return identify_file(a);
}

static tk_status find_library(tk_assembler *a) {
    const char *named = named_by("TIKI_NVPTXCOMPILER");
    if (named)
        snprintf(a->path, sizeof a->path, "%s", named);
    else if (!tk_nvptx_find(a->path))
        return tk_fail(TK_UNSUPPORTED,
                       "no nvPTXCompiler: build it with `make nvptxcompiler`, or name its shared "
                       "object in TIKI_NVPTXCOMPILER");
    return identify_file(a);
}

static tk_status find_one(tk_assembler_kind kind, tk_assembler *a) {
    *a = (tk_assembler){.kind = kind, .word = words[kind]};
    if (kind == TK_ASSEMBLER_PTXAS) return find_ptxas(a);
    if (kind == TK_ASSEMBLER_LIBRARY) return find_library(a);
    return tk_cuda_link_identity(a->identity, sizeof a->identity);
}

/* TIKI_ASSEMBLER, or the kind whose file the environment names; -1: any. */
static tk_status asked_for(int *kind) {
    const char *word = named_by("TIKI_ASSEMBLER");
    *kind = -1;
    for (int k = 0; word && k < KINDS; k++)
        if (!strcmp(word, words[k])) *kind = k;
    if (word && *kind < 0)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "TIKI_ASSEMBLER is \"%.40s\", expected ptxas, nvPTXCompiler or driver",
                       word);
    if (!word && named_by("TIKI_NVPTXCOMPILER")) *kind = TK_ASSEMBLER_LIBRARY;
    if (!word && named_by("TIKI_PTXAS")) *kind = TK_ASSEMBLER_PTXAS;
    return TK_OK;
}

tk_status tk_assembler_choose(tk_assembler *out) {
    int kind;
    char why[KINDS][TK_ERROR_MESSAGE_BYTES];
    TK_TRY(asked_for(&kind));
    if (kind >= 0) return find_one((tk_assembler_kind)kind, out);
    for (int k = 0; k < KINDS; k++) {
        if (find_one((tk_assembler_kind)k, out) == TK_OK) return TK_OK;
        snprintf(why[k], sizeof why[k], "%s", tk_error_message());
    }
    return tk_fail(TK_UNSUPPORTED, "%.200s; %.200s; %.200s", why[0], why[1], why[2]);
}

tk_status tk_assembler_name(char *text, size_t capacity) {
    tk_assembler a;
    TK_NEED(text);
    TK_TRY(tk_assembler_choose(&a));
    snprintf(text, capacity, "%s%s%s", a.identity, *a.path ? ", " : "", a.path);
    return TK_OK;
}

tk_status tk_assembler_describe(char *text, size_t capacity) {
    tk_assembler a;
    char version[40] = "";
    TK_NEED(text);
    TK_TRY(tk_assembler_choose(&a));
    if (a.kind == TK_ASSEMBLER_DRIVER) {
        snprintf(text, capacity, "%.*s", (int)strcspn(a.identity, ","), a.identity);
        return TK_OK;
    }
    if (a.kind == TK_ASSEMBLER_PTXAS) tk_ptxas_version(a.path, version, sizeof version);
    if (a.kind == TK_ASSEMBLER_LIBRARY) tk_nvptx_version(a.path, version, sizeof version);
    snprintf(text, capacity, "%s%s%s of %s", a.word, *version ? " " : "", version, a.path);
    return TK_OK;
}

/* ---- the report ---- */

/* The number before `words` in the log, -1 when they are not there. */
static int64_t number_before(const char *log, const char *words) {
    const char *at = strstr(log, words);
    if (!at) return -1;
    while (at > log && at[-1] == ' ') at--;
    while (at > log && at[-1] >= '0' && at[-1] <= '9') at--;
    return strtoll(at, NULL, 10);
}

static int64_t number_after(const char *log, const char *words) {
    const char *at = strstr(log, words);
    return at ? strtoll(at + strlen(words), NULL, 10) : -1;
}

/* Registers go to warps in units of 256; an SM has 65536, 2048 threads, 32 blocks and 228 KiB of
 * shared memory (164 with sm_80), of which each block takes 1 KiB more than it asked for. */
static int64_t blocks_that_fit(const tk_kernel *kernel, const char *arch, int64_t registers,
                               int64_t shared) {
    const int64_t *block = kernel->contract.block;
    int64_t warps = (block[0] * block[1] * block[2] + 31) / 32,
            of_warp = (registers * 32 + 255) / 256 * 256;
    int64_t by_threads = 64 / warps, by_registers = of_warp ? 65536 / of_warp / warps : 32;
    int64_t by_shared = (!strcmp(arch, "sm_80") ? 164 : 228) * 1024 / (shared + 1024), least = 32;
    if (by_threads < least) least = by_threads;
    if (by_registers < least) least = by_registers;
    return by_shared < least ? by_shared : least;
}

static void read_log(tk_artifact *artifact) {
    tk_report *report = &artifact->report;
    const char *log = artifact->log;
    report->registers = number_after(log, "Used ");
    report->barriers = number_after(log, "used ");
    report->stack_bytes = number_before(log, " bytes stack frame");
    report->spill_stores = number_before(log, " bytes spill stores");
    report->spill_loads = number_before(log, " bytes spill loads");
    report->blocks_of_an_sm =
        blocks_that_fit(artifact->kernel, artifact->arch, report->registers, report->shared_bytes);
}

/* "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized" and its kin. */
static tk_status check_messages(const tk_artifact *artifact, const char *word) {
    const char *code = artifact->log ? strstr(artifact->log, "(C75") : NULL;
    if (!code) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %s says %.500s", artifact->kernel->name, word,
                   code);
}

/* ---- assembling ---- */

static tk_status run(const tk_assembler *a, const char *text, const char *arch, bool lines,
                     tk_assembled *out) {
    if (a->kind == TK_ASSEMBLER_PTXAS) return tk_ptxas_assemble(a->path, text, arch, lines, out);
    if (a->kind == TK_ASSEMBLER_LIBRARY) return tk_nvptx_assemble(a->path, text, arch, lines, out);
    tk_cuda_linked linked;
    TK_TRY(tk_cuda_link(text, arch, lines, &linked));
    *out = (tk_assembled){.log = linked.log, .binary = linked.binary, .bytes = linked.bytes};
    return TK_OK;
}

tk_status tk_ptx_assemble(tk_artifact *artifact, const tk_build *how, const tk_assembler *a) {
    tk_assembled made = {0};
    tk_status status = run(a, artifact->text, artifact->arch, how->lines, &made);
    artifact->log = made.log;
    if (status == TK_OK && !made.binary)
        status = tk_fail(TK_INTERNAL, "%s refuses kernel %s%s%s%s: %.700s", a->word,
                         artifact->kernel->name, *made.how ? " (" : "", made.how,
                         *made.how ? ")" : "", made.log);
    if (status == TK_OK && !how->serialized) status = check_messages(artifact, a->word);
    if (status != TK_OK) {
        tk_free(made.binary);
        return status;
    }
    artifact->binary = made.binary;
    artifact->binary_bytes = made.bytes;
    read_log(artifact);
    return TK_OK;
}
