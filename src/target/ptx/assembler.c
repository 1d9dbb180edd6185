/* ptxas: where it is, running it, and what it said as a report.
 *
 * It is found without starting anything, so that a kernel that is in the cache starts no process:
 * the file that TIKI_PTXAS names, else the first in PATH, else that of the Python package
 * nvidia-cuda-nvcc, whose folder is looked for beside python3 and, only if it is not there, asked
 * of python3 itself, once a process.
 *
 * Rejected: the assembler as a library in this process by default (50 MB, and what it leaks stays);
 * its version for the identity of what it makes, which only starting it would tell: size and time
 * of the file change with it. */
#define _GNU_SOURCE
#include "target/ptx/assembler.h"

#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/ir.h"
#include "target/process.h"

#define PATH_BYTES TK_ASSEMBLER_PATH_BYTES

/* ---- where it is ---- */

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *name, char path[PATH_BYTES]) {
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        int written = snprintf(path, PATH_BYTES, "%.*s/%s", (int)length, at, name);
        if (length && written < PATH_BYTES && is_program(path)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* As a package that was installed for the first python3 in PATH. */
static bool find_beside_python(char path[PATH_BYTES]) {
    char pattern[PATH_BYTES];
    glob_t found;
    if (!find_in_path("python3", path)) return false;
    char *slash = strrchr(path, '/');
    *slash = 0;
    int written =
        snprintf(pattern, sizeof pattern, "%s/../lib/python3*/*-packages/nvidia/*/bin/ptxas", path);
    if (written >= (int)sizeof pattern || glob(pattern, 0, NULL, &found)) return false;
    bool fits = found.gl_pathc > 0 && strlen(found.gl_pathv[0]) < PATH_BYTES;
    if (fits) snprintf(path, PATH_BYTES, "%s", found.gl_pathv[0]);
    globfree(&found);
    return fits && is_program(path);
}

static const char *const where_files[] = {"where", NULL};

static void ask_python(char path[PATH_BYTES]) {
    static const char code[] =
        "import glob, importlib.util as u\n"
        "for r in u.find_spec('nvidia').submodule_search_locations:\n"
        "    for p in sorted(glob.glob(r + '/*/bin/ptxas')): print(p, end=''); raise SystemExit\n";
    const char *const argv[] = {"python3", "-c", code, NULL};
    tk_work_folder folder;
    char where[640], *text = NULL;
    size_t length = 0;
    int exit_code = -1;
    *path = 0;
    if (tk_work_folder_create(&folder) != TK_OK) return;
    tk_work_path(&folder, "where", where, sizeof where);
    bool ran = tk_process_run(argv, where, &exit_code) == TK_OK && exit_code == 0 &&
               tk_work_read(where, &text, &length) == TK_OK;
    if (ran && length < PATH_BYTES) snprintf(path, PATH_BYTES, "%s", text);
    tk_free(text);
    tk_work_folder_remove(&folder, where_files);
}

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static char python_says[PATH_BYTES];

static void ask_python_once(void) { ask_python(python_says); }

tk_status tk_assembler_find(char path[PATH_BYTES]) {
    const char *named = getenv("TIKI_PTXAS");
    if (named && *named) {
        if (strlen(named) < PATH_BYTES && is_program(named)) {
            snprintf(path, PATH_BYTES, "%s", named);
            return TK_OK;
        }
    } else {
        if (find_in_path("ptxas", path) || find_beside_python(path)) return TK_OK;
        (void)pthread_once(&asked, ask_python_once);
        snprintf(path, PATH_BYTES, "%s", python_says);
        if (*path && is_program(path)) return TK_OK;
    }
    bool is_named = named && *named;
    return tk_fail(
        TK_UNSUPPORTED,
        "no ptxas%s%.200s: put it in PATH, name it in TIKI_PTXAS, or install the Python package "
        "nvidia-cuda-nvcc",
        is_named ? " at " : "", is_named ? named : "");
}

tk_status tk_assembler_identity(const char *path, char *text, size_t bytes) {
    struct stat info;
    if (stat(path, &info)) return tk_fail(TK_UNSUPPORTED, "no ptxas at %.200s", path);
    snprintf(text, bytes, "ptxas of %lld bytes, changed at %lld.%09ld", (long long)info.st_size,
             (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return TK_OK;
}

/* ---- running it ---- */

static const char *const work_files[] = {"kernel.ptx", "kernel.cubin", "log", NULL};

typedef struct assembly {
    tk_work_folder folder;
    char ptx[640], cubin[640], log[640];
    char program[PATH_BYTES];
} assembly;

static tk_status run_ptxas(assembly *a, const char *arch, bool lines, int *out_code) {
    char arch_option[32];
    snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
    const char *const argv[] = {
        a->program, arch_option, "-v", "-o", a->cubin, a->ptx, lines ? "-lineinfo" : NULL, NULL};
    return tk_process_run(argv, a->log, out_code);
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
    TK_TRY(run_ptxas(a, artifact->arch, how->lines, &exit_code));
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

tk_status tk_ptx_assemble(tk_artifact *artifact, const tk_build *how) {
    assembly a;
    TK_TRY(tk_assembler_find(a.program));
    TK_TRY(tk_work_folder_create(&a.folder));
    tk_work_path(&a.folder, "kernel.ptx", a.ptx, sizeof a.ptx);
    tk_work_path(&a.folder, "kernel.cubin", a.cubin, sizeof a.cubin);
    tk_work_path(&a.folder, "log", a.log, sizeof a.log);
    tk_status status = assemble_in(&a, artifact, how);
    tk_work_folder_remove(&a.folder, work_files);
    return status;
}
