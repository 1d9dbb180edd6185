/* Artifacts by their identity: a hit starts no assembler, each part of the identity misses and is
 * named, processes that start together build once. The assembler is a script that counts. */
#define _GNU_SOURCE
#include "support/kernel_files.h"
#include "support/sanitizer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiki/cache.h"
#include "tiki/target.h"

static char folder[400], program[500], count_file[500], cache_folder[500];
static tk_kernel *kernel;

static void write_assembler(const char *more) {
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fprintf(file,
            "#!/bin/sh\necho run >>%s\n%s\n{ printf '\\177ELF'; cat \"$5\"; } >\"$4\"\n"
            "echo 'Used 10 registers, used 1 barriers, 0 bytes stack frame'\n",
            count_file, more);
    fclose(file);
    assert_int_equal(chmod(program, 0700), 0);
}

static int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%s/cached-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(program, sizeof program, "%s/ptxas", folder);
    snprintf(count_file, sizeof count_file, "%s/count", folder);
    snprintf(cache_folder, sizeof cache_folder, "%s/cache", folder);
    write_assembler(":");
    kernel = parse_file("examples/kernels/vector_add.tk");
    return setenv("TIKI_PTXAS", program, 1);
}

static int remove_folder(void **state) {
    char command[600];
    (void)state;
    tk_kernel_release(kernel);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int runs(void) {
    struct stat info;
    return stat(count_file, &info) ? 0 : (int)(info.st_size / 4);
}

static tk_cache *open_cache(void) {
    tk_cache *cache;
    tk_cache_options options = {.folder = cache_folder};
    assert_ok(tk_cache_open(&options, &cache));
    return cache;
}

static tk_artifact *build(const tk_kernel *of, const tk_build *how, tk_cache *cache,
                          bool expected) {
    tk_artifact *artifact = NULL;
    bool built = !expected;
    assert_ok(tk_kernel_build_cached(of, how, cache, &artifact, &built));
    assert_int_equal(built, expected);
    return artifact;
}

static void assert_whole(const tk_artifact *artifact) {
    size_t bytes;
    tk_report report;
    const unsigned char *binary = tk_artifact_binary(artifact, &bytes);
    assert_true(bytes > 100 && !memcmp(binary, "\177ELF", 4));
    assert_memory_equal(binary + 4, tk_artifact_text(artifact), bytes - 4);
    assert_ok(tk_artifact_report(artifact, &report));
    assert_int_equal(report.registers, 10);
    assert_non_null(strstr(tk_artifact_log(artifact), "Used 10"));
}

static void test_a_hit_starts_nothing(void **state) {
    (void)state;
    tk_cache *cache = open_cache();
    tk_artifact *first = build(kernel, NULL, cache, true);
    assert_whole(first);
    assert_int_equal(runs(), 1);
    write_assembler("exit 1"); /* another one: its identity is in the key */
    tk_artifact *none = NULL;
    assert_int_equal(tk_kernel_build_cached(kernel, NULL, cache, &none, NULL), TK_INTERNAL);
    assert_int_equal(runs(), 2);
    write_assembler(":");
    tk_artifact_release(build(kernel, NULL, cache, true)); /* made anew: another time of change */
    int before = runs();
    tk_artifact *again = build(kernel, NULL, cache, false);
    assert_whole(again);
    assert_int_equal(runs(), before);
    tk_build wrong = {.emit = (tk_emit)9};
    assert_int_equal(tk_kernel_build_cached(kernel, &wrong, cache, &none, NULL),
                     TK_INVALID_ARGUMENT);
    tk_artifact_release(first);
    tk_artifact_release(again);
    tk_cache_close(cache);
}

static void assert_explains(const tk_kernel *of, const tk_build *how, tk_cache *cache,
                            const char *words) {
    char *text;
    assert_ok(tk_kernel_cache_explain(of, how, cache, &text));
    if (!strstr(text, words)) fail_msg("'%s' is not in '%s'", words, text);
    tk_cache_text_free(text);
}

static void test_parts_of_the_identity(void **state) {
    (void)state;
    tk_cache *cache = open_cache();
    tk_build lines = {.lines = true}, other = {.arch = "sm_90"}, serial = {.serialized = true};
    write_assembler(":"); /* nothing there is of this one */
    tk_artifact_release(build(kernel, NULL, cache, true));
    assert_explains(kernel, NULL, cache, " is in the cache\n");
    assert_explains(kernel, &lines, cache, "options");
    assert_explains(kernel, &serial, cache, "options");
    assert_explains(kernel, &other, cache, "architecture");
    tk_artifact_release(build(kernel, &lines, cache, true));
    tk_artifact_release(build(kernel, &other, cache, true));
    tk_artifact_release(build(kernel, &serial, cache, true));
    /* names of values are no part, what is computed is */
    char *text = read_text_file("examples/kernels/vector_add.tk");
    while (strstr(text, "%sum")) overwrite(text, "%sum", "%out");
    tk_kernel *renamed = parse_text(text);
    tk_artifact_release(build(renamed, NULL, cache, false));
    overwrite(text, "= add %a", "= mul %a");
    tk_kernel *changed = parse_text(text);
    assert_explains(changed, NULL, cache, "text");
    tk_artifact_release(build(changed, NULL, cache, true));
    tk_kernel_release(renamed);
    tk_kernel_release(changed);
    free(text);
    tk_cache_close(cache);
}

typedef struct names {
    char items[8][65];
    bool is_note[8];
    int count;
} names;

static bool add_name(void *arg, const tk_cache_entry *entry) {
    names *all = arg;
    assert_true(all->count < 8);
    all->is_note[all->count] = entry->is_note;
    memcpy(all->items[all->count++], entry->digest, 65);
    return true;
}

static void flip(int file, off_t bit) {
    unsigned char byte;
    assert_int_equal(pread(file, &byte, 1, bit / 8), 1);
    byte ^= (unsigned char)(1 << bit % 8);
    assert_int_equal(pwrite(file, &byte, 1, bit / 8), 1);
}

/* A flipped bit in the entry assembles anew, one in the note costs the text alone; what comes out
 * is always the same. (runtime/test_artifact_cache flips every bit of an entry.) */
static void test_flipped_bits(void **state) {
    enum { FLIPS = 40 };
    char own_folder[500], path[600];
    tk_cache *cache;
    names all = {.count = 0};
    (void)state;
    snprintf(own_folder, sizeof own_folder, "%s/flips", folder);
    tk_cache_options options = {.folder = own_folder};
    assert_ok(tk_cache_open(&options, &cache));
    write_assembler(":");
    tk_artifact *first = build(kernel, NULL, cache, true);
    assert_ok(tk_cache_list(cache, add_name, &all));
    assert_int_equal(all.count, 2);
    for (int i = 0; i < all.count; i++)
        for (int k = 0; k < FLIPS; k++) {
            struct stat info;
            snprintf(path, sizeof path, "%s/%s", own_folder, all.items[i]);
            int file = open(path, O_RDWR), before = runs();
            assert_true(file >= 0 && fstat(file, &info) == 0);
            flip(file, (off_t)(info.st_size * 8 - 1) * k / (FLIPS - 1));
            close(file);
            tk_artifact *again = build(kernel, NULL, cache, !all.is_note[i]);
            assert_int_equal(runs() - before, !all.is_note[i]);
            assert_whole(again);
            assert_string_equal(tk_artifact_text(again), tk_artifact_text(first));
            assert_string_equal(tk_artifact_identity(again), tk_artifact_identity(first));
            tk_artifact_release(again);
        }
    tk_artifact_release(first);
    tk_cache_close(cache);
}

/* An assembler that is gone is the error of a miss, and of nothing else once found again. */
static void test_without_an_assembler(void **state) {
    (void)state;
    tk_artifact *none = NULL;
    tk_cache *cache = open_cache();
    assert_int_equal(setenv("TIKI_PTXAS", "/nowhere/ptxas", 1), 0);
    assert_int_equal(tk_kernel_build_cached(kernel, NULL, cache, &none, NULL), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "no ptxas at /nowhere/ptxas"));
    assert_int_equal(setenv("TIKI_PTXAS", program, 1), 0);
    tk_cache_close(cache);
}

/* Kernels that differ in a number, as texts do. */
static tk_kernel *variant(int number) {
    char body[100];
    snprintf(body, sizeof body, "%%i = add %%n, i32(%d) : i32\n%%u = add %%i, %%t : i32", number);
    char *text = around(body, 32);
    tk_kernel *made = parse_text(text);
    free(text);
    return made;
}

enum { VARIANTS = 3 };

static int build_all_in_child(int start) {
    char byte;
    tk_cache *cache = open_cache();
    if (read(start, &byte, 1) != 0) return 2; /* ends when the parent closes it: all at once */
    for (int i = 0; i < VARIANTS; i++) {
        tk_kernel *mine = variant(i);
        tk_artifact *artifact;
        if (tk_kernel_build_cached(mine, NULL, cache, &artifact, NULL) != TK_OK) return 3;
        size_t bytes;
        if (memcmp(tk_artifact_binary(artifact, &bytes), "\177ELF", 4) || bytes < 100) return 4;
        tk_artifact_release(artifact);
        tk_kernel_release(mine);
    }
    tk_cache_close(cache);
    return 0;
}

static void test_many_processes(void **state) {
    (void)state;
    enum { MOST = 200 };
    int count = SUPPORT_ASAN || SUPPORT_TSAN ? 40 : MOST, ends[2], before = runs();
    pid_t children[MOST];
    write_assembler("sleep 0.1");
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i]) continue;
        close(ends[1]);
        _exit(build_all_in_child(ends[0]));
    }
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < count; i++) {
        int code;
        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        assert_true(WIFEXITED(code));
        assert_int_equal(WEXITSTATUS(code), 0);
    }
    assert_int_equal(runs() - before, VARIANTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hit_starts_nothing), cmocka_unit_test(test_parts_of_the_identity),
        cmocka_unit_test(test_flipped_bits),         cmocka_unit_test(test_without_an_assembler),
        cmocka_unit_test(test_many_processes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
