/* ptxas, a program: where it is, and running it.
 *
 * It is found without starting anything, so that a kernel that is in the cache starts no process:
 * the first in PATH, else that of the Python package nvidia-cuda-nvcc, which is looked for where a
 * python3 has its packages. Only a python3 that is a script, which may start any other, is asked
 * itself, once a process. */
#define _GNU_SOURCE
#include "target/ptx/assemblers.h"

#include <glob.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "target/process.h"

#define PATH_BYTES TK_ASSEMBLER_PATH_BYTES

/* ---- where it is ---- */

static bool first_match(char path[PATH_BYTES], const char *format, ...) TK_PRINTF(2, 3);
static bool first_match(char path[PATH_BYTES], const char *format, ...) {
    char pattern[PATH_BYTES + 64];
    glob_t found;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(pattern, sizeof pattern, format, arguments);
    va_end(arguments);
    if (written >= (int)sizeof pattern || glob(pattern, 0, NULL, &found)) return false;
    bool fits = found.gl_pathc > 0 && strlen(found.gl_pathv[0]) < PATH_BYTES;
    if (fits) snprintf(path, PATH_BYTES, "%s", found.gl_pathv[0]);
    globfree(&found);
    return fits && tk_is_program(path);
}

#define IN_PACKAGES "nvidia/*/bin/ptxas"

/* As a package that was installed for the python3 of that path. */
static bool find_beside(const char *python, char path[PATH_BYTES]) {
    int folder = (int)(strrchr(python, '/') - python);
    return first_match(path, "%.*s/../lib/python3*/*-packages/" IN_PACKAGES, folder, python);
}

static bool find_in_python_path(char path[PATH_BYTES]) {
    const char *at = getenv("PYTHONPATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length && first_match(path, "%.*s/" IN_PACKAGES, (int)length, at)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* For the first python3 in PATH, the one that it is a link to, this user, the system. */
static bool find_in_packages(const char *python, char path[PATH_BYTES]) {
    const char *home = getenv("HOME");
    char *real = realpath(python, NULL);
    bool found =
        find_in_python_path(path) || find_beside(python, path) ||
        (real && find_beside(real, path)) ||
        (home && first_match(path, "%s/.local/lib/python3*/site-packages/" IN_PACKAGES, home)) ||
        first_match(path, "/usr/local/lib/python3*/dist-packages/" IN_PACKAGES) ||
        first_match(path, "/usr/lib/python3/dist-packages/" IN_PACKAGES);
    free(real);
    return found;
}

static bool is_script(const char *python) {
    char begin[2] = {0};
    FILE *file = fopen(python, "rb");
    bool is = file && fread(begin, 1, 2, file) == 2 && !memcmp(begin, "#!", 2);
    if (file) fclose(file);
    return is;
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

bool tk_ptxas_find(char path[PATH_BYTES]) {
    char python[PATH_BYTES];
    if (tk_program_find("ptxas", path, PATH_BYTES)) return true;
    if (!tk_program_find("python3", python, sizeof python)) return false;
    if (find_in_packages(python, path)) return true;
    if (!is_script(python)) return false;
    (void)pthread_once(&asked, ask_python_once);
    snprintf(path, PATH_BYTES, "%s", python_says);
    return *path && tk_is_program(path);
}

bool tk_ptxas_is_program(const char *path) {
    return strlen(path) < PATH_BYTES && tk_is_program(path);
}

/* ---- its version ---- */

static const char *const version_files[] = {"log", NULL};

/* The word behind ", V" in what the program says of itself. */
static void read_version(const char *log, char *text, size_t bytes) {
    const char *at = strstr(log, ", V");
    if (at) snprintf(text, bytes, "%.*s", (int)strspn(at + 3, "0123456789."), at + 3);
}

void tk_ptxas_version(const char *program, char *text, size_t bytes) {
    tk_work_folder folder;
    char path[640], *log;
    size_t length;
    int exit_code;
    const char *const argv[] = {program, "--version", NULL};
    *text = 0;
    if (tk_work_folder_create(&folder) != TK_OK) return;
    tk_work_path(&folder, "log", path, sizeof path);
    if (tk_process_run(argv, path, &exit_code) == TK_OK &&
        tk_work_read(path, &log, &length) == TK_OK) {
        read_version(log, text, bytes);
        tk_free(log);
    }
    tk_work_folder_remove(&folder, version_files);
}

/* ---- running it ---- */

static const char *const work_files[] = {"kernel.ptx", "kernel.cubin", "log", NULL};

typedef struct assembly {
    tk_work_folder folder;
    char ptx[640], cubin[640], log[640];
    const char *program;
} assembly;

static tk_status run_ptxas(assembly *a, const char *arch, bool lines, int *out_code) {
    char arch_option[32];
    snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
    const char *const argv[] = {
        a->program, arch_option, "-v", "-o", a->cubin, a->ptx, lines ? "-lineinfo" : NULL, NULL};
    return tk_process_run(argv, a->log, out_code);
}

static tk_status assemble_in(assembly *a, const char *text, const char *arch, bool lines,
                             tk_assembled *out) {
    int exit_code;
    size_t log_bytes;
    char *data;
    TK_TRY(tk_work_write(a->ptx, text, strlen(text)));
    TK_TRY(run_ptxas(a, arch, lines, &exit_code));
    TK_TRY(tk_work_read(a->log, &out->log, &log_bytes));
    snprintf(out->how, sizeof out->how, "exit code %d", exit_code);
    if (exit_code) return TK_OK;
    TK_TRY(tk_work_read(a->cubin, &data, &out->bytes));
    out->binary = (unsigned char *)data;
    return TK_OK;
}

tk_status tk_ptxas_assemble(const char *program, const char *text, const char *arch, bool lines,
                            tk_assembled *out) {
    assembly a = {.program = program};
    TK_TRY(tk_work_folder_create(&a.folder));
    tk_work_path(&a.folder, "kernel.ptx", a.ptx, sizeof a.ptx);
    tk_work_path(&a.folder, "kernel.cubin", a.cubin, sizeof a.cubin);
    tk_work_path(&a.folder, "log", a.log, sizeof a.log);
    tk_status status = assemble_in(&a, text, arch, lines, out);
    tk_work_folder_remove(&a.folder, work_files);
    return status;
}
