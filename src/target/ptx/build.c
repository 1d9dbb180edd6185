/* The PTX target: text, then ptxas on it, then what ptxas said as a report.
 *
 * Rejected: the assembler as a library in this process by default (50 MB, and what it leaks stays).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/shared.h"
#include "target/artifact.h"
#include "target/process.h"
#include "target/ptx/ptx.h"

static const char *const architectures[] = {"sm_80", "sm_90", "sm_90a"};

static tk_status check_arch(const char *arch) {
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (!strcmp(arch, architectures[i])) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "architecture \"%.40s\", expected sm_80, sm_90 or sm_90a", arch);
}

/* ---- the assembler ---- */

static const char *const work_files[] = {"kernel.ptx", "kernel.cubin", "log", "where", NULL};

typedef struct assembly {
    tk_work_folder folder;
    char ptx[640], cubin[640], log[640], where[640];
    char program[1024];
} assembly;

/* Asks python3 for the ptxas of the package nvidia-cuda-nvcc. */
static tk_status find_in_python(assembly *a) {
    static const char code[] =
        "import glob, importlib.util as u\n"
        "for r in u.find_spec('nvidia').submodule_search_locations:\n"
        "    for p in sorted(glob.glob(r + '/*/bin/ptxas')): print(p, end=''); raise SystemExit\n";
    const char *const argv[] = {"python3", "-c", code, NULL};
    char *path;
    size_t length;
    int exit_code;
    TK_TRY(tk_process_run(argv, a->where, &exit_code));
    TK_TRY(tk_work_read(a->where, &path, &length));
    bool found = exit_code == 0 && length > 0 && length < sizeof a->program;
    if (found) snprintf(a->program, sizeof a->program, "%s", path);
    tk_free(path);
    return found ? TK_OK : tk_fail(TK_NOT_FOUND, "no ptxas");
}

static tk_status run_ptxas(assembly *a, const char *program, const char *arch, bool lines,
                           int *out_code) {
    char arch_option[32];
    snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
    const char *const argv[] = {
        program, arch_option, "-v", "-o", a->cubin, a->ptx, lines ? "-lineinfo" : NULL, NULL};
    return tk_process_run(argv, a->log, out_code);
}

static tk_status assemble_text(assembly *a, const char *arch, bool lines, int *out_code) {
    const char *named = getenv("TIKI_PTXAS");
    bool is_named = named && *named;
    tk_status status = run_ptxas(a, is_named ? named : "ptxas", arch, lines, out_code);
    if (status == TK_NOT_FOUND && !is_named && find_in_python(a) == TK_OK)
        status = run_ptxas(a, a->program, arch, lines, out_code);
    if (status != TK_NOT_FOUND) return status;
    return tk_fail(
        TK_UNSUPPORTED,
        "no ptxas%s%s: put it in PATH, name it in TIKI_PTXAS, or install the Python package "
        "nvidia-cuda-nvcc",
        is_named ? " at " : "", is_named ? named : "");
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
static tk_status check_messages(const tk_artifact *artifact) {
    const char *code = artifact->log ? strstr(artifact->log, "(C75") : NULL;
    if (!code) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: ptxas says %.500s", artifact->kernel->name,
                   code);
}

static tk_status assemble_in(assembly *a, tk_artifact *artifact, const tk_build *how) {
    int exit_code;
    size_t log_bytes;
    TK_TRY(tk_work_write(a->ptx, artifact->text, strlen(artifact->text)));
    TK_TRY(assemble_text(a, artifact->arch, how->lines, &exit_code));
    TK_TRY(tk_work_read(a->log, &artifact->log, &log_bytes));
    if (exit_code)
        return tk_fail(TK_INTERNAL, "ptxas refuses kernel %s (exit code %d): %.700s",
                       artifact->kernel->name, exit_code, artifact->log);
    if (!how->serialized) TK_TRY(check_messages(artifact));
    char *data;
    TK_TRY(tk_work_read(a->cubin, &data, &artifact->binary_bytes));
    artifact->binary = (unsigned char *)data;
    read_log(artifact);
    return TK_OK;
}

static tk_status assemble(tk_artifact *artifact, const tk_build *how) {
    assembly a;
    TK_TRY(tk_work_folder_create(&a.folder));
    tk_work_path(&a.folder, "kernel.ptx", a.ptx, sizeof a.ptx);
    tk_work_path(&a.folder, "kernel.cubin", a.cubin, sizeof a.cubin);
    tk_work_path(&a.folder, "log", a.log, sizeof a.log);
    tk_work_path(&a.folder, "where", a.where, sizeof a.where);
    tk_status status = assemble_in(&a, artifact, how);
    tk_work_folder_remove(&a.folder, work_files);
    return status;
}

/* ---- building ---- */

static tk_status generate(tk_artifact *artifact, bool lines) {
    tk_strbuf text = {0};
    tk_kshared_map map;
    tk_status status = tk_ptx_print(artifact->kernel, artifact->arch, lines, &text);
    if (status == TK_OK) status = tk_kshared_place(artifact->kernel, NULL, &map);
    if (status == TK_OK) artifact->report.shared_bytes = map.bytes;
    artifact->text = status == TK_OK ? tk_strbuf_take(&text) : NULL;
    if (artifact->text) status = tk_ptx_check(artifact->text, artifact->kernel->name);
    tk_strbuf_deinit(&text);
    return status;
}

tk_status tk_kernel_build_ptx(const tk_kernel *kernel, const tk_build *how, tk_artifact **out) {
    static const tk_build plain = {0};
    TK_NEED(kernel, out);
    if (!how) how = &plain;
    const char *arch = how->arch ? how->arch : "sm_90a";
    TK_TRY(check_arch(arch));
    tk_artifact *artifact = tk_artifact_create(kernel, arch);
    if (!artifact) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
    tk_status status = generate(artifact, how->lines);
    if (status == TK_OK && how->emit == TK_EMIT_BINARY) status = assemble(artifact, how);
    if (status == TK_OK)
        *out = artifact;
    else
        tk_artifact_release(artifact);
    return status;
}
