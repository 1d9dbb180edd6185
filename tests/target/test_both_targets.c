#define _GNU_SOURCE
/* Every kernel that other tests run or build, in the text of both targets: what PTX has a form of
 * CuTe has one of, what PTX refuses by name CuTe refuses. And built by both: the two binaries have
 * the table of parameters of the launch contract.
 *
 * The kernels lie in <build>/kernels, where the other tests leave them (support/keep_kernels.c).
 * Texts are made of all of them, without a compiler. A compilation takes about half a second, and
 * those of random tests are many, so of each program MOST are built, in the order of their digests,
 * or all of them with TIKI_BOTH_ALL; not where there is no compiler of NVIDIA's. */
#include "support/kernel_files.h"

#include <dirent.h>
#include <pthread.h>

#include "target/cubin.h"
#include "tiki/passes.h"
#include "tiki/target.h"

enum { MOST = 24, THREADS = 2 };

static char folder[1024];
static struct dirent **files;
static int n_files, next_file;
static int n_built, n_refused, n_faulty, n_wrong;
static tk_emit wanted; /* texts, or binaries too */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- one kernel ---- */

static void count(int *what) {
    pthread_mutex_lock(&lock);
    ++*what;
    pthread_mutex_unlock(&lock);
}

static void complain(const char *name, const char *what) {
    fprintf(stderr, "%s: %s: %s\n", name, what, tk_error_message());
    count(&n_wrong);
}

static bool keeps_contract(const tk_artifact *artifact, const tk_kernel *kernel) {
    size_t bytes;
    if (wanted == TK_EMIT_TEXT) return tk_artifact_text(artifact)[0] != 0;
    const unsigned char *binary = tk_artifact_binary(artifact, &bytes);
    return binary && tk_cubin_check(binary, bytes, kernel, "sm_90a") == TK_OK;
}

/* A kernel that PTX refuses by name has no form in CuTe either; one with a planted fault is refused
 * for what it does, which is the other target's to find or to mend. */
static void check_refusal(const char *name, const tk_kernel *kernel, tk_status status) {
    tk_artifact *artifact = NULL;
    if (status != TK_UNSUPPORTED)
        count(&n_faulty);
    else if (tk_kernel_build_cute(kernel, NULL, &artifact) != TK_UNSUPPORTED)
        complain(name, "refused by PTX alone");
    else
        count(&n_refused);
    tk_artifact_release(artifact);
}

static void check(const char *name, const tk_kernel *kernel) {
    tk_artifact *by_ptx = NULL, *by_cute = NULL;
    tk_build how = {.emit = wanted};
    tk_status status = tk_kernel_build_ptx(kernel, &how, &by_ptx);
    if (status != TK_OK)
        check_refusal(name, kernel, status);
    else if (tk_kernel_build_cute(kernel, &how, &by_cute) != TK_OK)
        complain(name, "not built by CuTe");
    else if (!keeps_contract(by_ptx, kernel) || !keeps_contract(by_cute, kernel))
        complain(name, wanted == TK_EMIT_TEXT ? "no text" : "another table of parameters");
    else
        count(&n_built);
    tk_artifact_release(by_ptx);
    tk_artifact_release(by_cute);
}

/* In the thread form, which PTX is printed from. */
static void check_file(const char *name) {
    char path[1300];
    tk_kernel *kernel = NULL, *lowered = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = read_text_file(path);
    if (tk_kernel_parse(text, name, &kernel) != TK_OK ||
        tk_kernel_lower(kernel, TK_KFORM_THREAD, 0, &lowered) != TK_OK)
        complain(name, "not read back");
    else
        check(name, lowered);
    tk_kernel_release(kernel);
    tk_kernel_release(lowered);
    free(text);
}

static void *work(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        const char *name = next_file < n_files ? files[next_file++]->d_name : NULL;
        pthread_mutex_unlock(&lock);
        if (!name) return NULL;
        check_file(name);
    }
}

/* ---- all of them ---- */

static size_t program_length(const char *name) {
    const char *dash = strrchr(name, '-');
    return dash ? (size_t)(dash - name) : strlen(name);
}

static int is_kernel(const struct dirent *file) {
    size_t length = strlen(file->d_name);
    return length > 3 && !strcmp(file->d_name + length - 3, ".tk");
}

/* Leaves MOST of each program, which stand beside each other. */
static void thin_out(void) {
    int kept = 0, of_program = 0;
    for (int i = 0; i < n_files; i++) {
        const char *name = files[i]->d_name, *last = kept ? files[kept - 1]->d_name : "";
        size_t length = program_length(name);
        bool same = length == program_length(last) && !strncmp(name, last, length);
        of_program = same ? of_program + 1 : 1;
        if (of_program <= MOST)
            files[kept++] = files[i];
        else
            free(files[i]);
    }
    n_files = kept;
}

static void find_kernels(void) {
    const char *build = getenv("TIKI_BUILD");
    snprintf(folder, sizeof folder, "%s/kernels", build ? build : "build");
    n_files = scandir(folder, &files, is_kernel, alphasort);
    if (n_files > 0) return;
    print_message("skipped: no kernels in %s, where other tests leave them\n", folder);
    skip();
}

static void check_files(tk_emit emit) {
    pthread_t threads[THREADS];
    wanted = emit;
    next_file = n_built = n_refused = n_faulty = n_wrong = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    print_message("%d kernels: %d built by both, %d refused by both, %d with a fault\n", n_files,
                  n_built, n_refused, n_faulty);
    for (int i = 0; i < n_files; i++) free(files[i]);
    free(files);
    assert_int_equal(n_wrong, 0);
    if (n_built < n_files / 2) fail_msg("%d of %d kernels built", n_built, n_files);
}

static void test_texts_of_all(void **state) {
    (void)state;
    find_kernels();
    check_files(TK_EMIT_TEXT);
}

static void test_binaries(void **state) {
    (void)state;
    char version[64];
    find_kernels();
    if (!getenv("TIKI_CUTE_PYTHON") || tk_cute_version(version, sizeof version) != TK_OK) {
        print_message("skipped: no compiler; `make test-cute`\n");
        skip();
    }
    if (!getenv("TIKI_BOTH_ALL")) thin_out();
    check_files(TK_EMIT_BINARY);
    assert_true(n_built > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts_of_all),
                                       cmocka_unit_test(test_binaries)};
    unsetenv("TIKI_KEEP_KERNELS"); /* they are kept */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
