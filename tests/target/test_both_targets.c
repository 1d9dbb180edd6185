#define _GNU_SOURCE
/* Every kernel that other tests run or build, built by both targets: what one takes the other takes,
 * and the two binaries have the same table of parameters, which is that of the launch contract.
 *
 * The kernels lie in the folder that TIKI_KEPT_KERNELS names (support/keep_kernels.c, `make
 * test-cute`). Of a program that keeps more than MOST of them, as many are taken, in the order of
 * their digests, unless TIKI_KEPT_ALL is set. */
#include "support/kernel_files.h"

#include <dirent.h>
#include <pthread.h>
#include <time.h>

#include "target/cubin.h"
#include "target/cute/worker.h"
#include "tiki/target.h"

enum { MOST = 48, MOST_FILES = 20000, THREADS = 2 };

static char *names[MOST_FILES];
static int n_names, next_name, n_built, n_refused, n_failed;
static const char *folder;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- one kernel ---- */

/* The records of parameters, as the binary has them. */
static bool has_parameters(const tk_artifact *artifact, const tk_kernel *kernel) {
    size_t bytes;
    const unsigned char *binary = tk_artifact_binary(artifact, &bytes);
    return binary && tk_cubin_check(binary, bytes, kernel, "sm_90a") == TK_OK;
}

static void report(const char *name, const char *what) {
    fprintf(stderr, "%s: %s: %s\n", name, what, tk_error_message());
    pthread_mutex_lock(&lock);
    n_failed++;
    pthread_mutex_unlock(&lock);
}

static tk_status build_both(const tk_kernel *kernel, tk_artifact **by_ptx, tk_artifact **by_cute) {
    tk_build how = {.emit = TK_EMIT_BINARY};
    tk_status status = tk_kernel_build_ptx(kernel, &how, by_ptx);
    if (status != TK_OK) return status;
    return tk_kernel_build_cute(kernel, &how, by_cute);
}

static void check(const char *name, const tk_kernel *kernel) {
    tk_artifact *by_ptx = NULL, *by_cute = NULL;
    tk_status status = build_both(kernel, &by_ptx, &by_cute);
    if (!by_ptx) {
        bool refused = status == TK_UNSUPPORTED &&
                       tk_kernel_build_cute(kernel, NULL, &by_cute) == TK_UNSUPPORTED;
        if (!refused) report(name, "refused by one target alone");
        n_refused++;
    } else if (status != TK_OK) {
        report(name, "not built by CuTe");
    } else if (!has_parameters(by_ptx, kernel) || !has_parameters(by_cute, kernel)) {
        report(name, "parameters");
    }
    tk_artifact_release(by_ptx);
    tk_artifact_release(by_cute);
}

static void check_file(const char *name) {
    char path[1200], *text;
    tk_kernel *kernel = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    text = read_text_file(path);
    if (tk_kernel_parse(text, name, &kernel) != TK_OK)
        report(name, "not read back");
    else
        check(name, kernel);
    tk_kernel_release(kernel);
    free(text);
}

static void *work(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        const char *name = next_name < n_names ? names[next_name++] : NULL;
        n_built += name != NULL;
        pthread_mutex_unlock(&lock);
        if (!name) return NULL;
        check_file(name);
    }
}

int main(void) {
    struct dirent **list;
    folder = getenv("TIKI_KEPT_KERNELS");
    int count = scandir(folder, &list, NULL, alphasort);
    const char *pattern = getenv("ONLY");
    int64_t of_program = 0; char program[256] = "";
    for (int i = 0; i < count; i++) {
        const char *dash = strrchr(list[i]->d_name, '-');
        if (!dash) continue;
        size_t l = (size_t)(dash - list[i]->d_name);
        if (strncmp(program, list[i]->d_name, l) || program[l]) { of_program = 0; snprintf(program, sizeof program, "%.*s", (int)l, list[i]->d_name); }
        if (pattern && !strstr(program, pattern)) continue;
        if (of_program++ >= MOST && !getenv("TIKI_KEPT_ALL")) continue;
        names[n_names++] = strdup(list[i]->d_name);
    }
    printf("%d kernels\n", n_names);
    struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a);
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%d built, %d refused by both, %d failed, %.1f s\n", n_built, n_refused, n_failed, (double)(b.tv_sec-a.tv_sec)+1e-9*(double)(b.tv_nsec-a.tv_nsec));
    return n_failed != 0;
}
