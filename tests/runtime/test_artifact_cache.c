/* The artifact cache: hits, misses that are explained, every bit of an entry covered, limits,
 * folders that cannot be used, full disks, killed writers, two hundred processes at once. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/artifact_cache.h"
#include "support/sanitizer.h"

static char folder[512];

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cache-XXXXXX", base ? base : ".");
    return mkdtemp(folder) ? 0 : -1;
}

static void remove_all(void) {
    chmod(folder, 0700);
    DIR *at = opendir(folder);
    char path[1024];
    for (struct dirent *file = at ? readdir(at) : NULL; file; file = readdir(at)) {
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        unlink(path);
    }
    if (at) closedir(at);
    rmdir(folder);
}

static int drop_folder(void **state) {
    (void)state;
    remove_all();
    return 0;
}

static tk_cache *open_cache(size_t limit) {
    tk_cache_options options = {.folder = folder, .limit = limit};
    tk_cache *cache;
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    return cache;
}

enum { N_PARTS = 4 };

/* A key: what the kernel is, its text, target and options. */
static void make_key(tk_key_part parts[N_PARTS], const char *name, const char *text,
                     const char *target, const char *options) {
    const char *const names[N_PARTS] = {"kernel", "text", "target", "options"};
    const char *const values[N_PARTS] = {name, text, target, options};
    for (int i = 0; i < N_PARTS; i++)
        parts[i] = (tk_key_part){names[i], values[i], strlen(values[i])};
}

static void plain_key(tk_key_part parts[N_PARTS], const char *name) {
    make_key(parts, name, "add a, b", "sm_90a", "O3");
}

static bool has(tk_cache *cache, const tk_key_part *parts, const char *payload) {
    tk_cached found;
    tk_status status = tk_cache_get(cache, parts, N_PARTS, &found);
    bool same = status == TK_OK && found.length == strlen(payload) &&
                memcmp(found.bytes, payload, found.length) == 0;
    tk_free(found.bytes);
    return same;
}

/* The only entry's path. */
static void entry_path(char path[1024]) {
    unsigned char digest[TK_SHA256_BYTES];
    DIR *at = opendir(folder);
    int entries = 0;
    for (struct dirent *file = readdir(at); file; file = readdir(at))
        if (tk_cache_is_entry(file->d_name, digest)) {
            snprintf(path, 1024, "%s/%s", folder, file->d_name);
            entries++;
        }
    closedir(at);
    assert_int_equal(entries, 1);
}

static int count_files(const char *part) {
    DIR *at = opendir(folder);
    int count = 0;
    for (struct dirent *file = readdir(at); file; file = readdir(at))
        count += file->d_name[0] != '.' && strstr(file->d_name, part) != NULL;
    closedir(at);
    return count;
}

static void expect_warning(tk_cache *cache, const char *text) {
    char warning[512];
    assert_true(tk_cache_warning(cache, warning, sizeof warning) > 0);
    if (!strstr(warning, text)) fail_msg("'%s' is not in '%s'", text, warning);
}

static tk_status build_text(void *arg, tk_cached *out) {
    *out = (tk_cached){(unsigned char *)tk_strdup(arg), strlen(arg)};
    return out->bytes ? TK_OK : TK_OUT_OF_MEMORY;
}

/* ---- hits and misses --------------------------------------------------------------------------
 */

static void test_keep_and_find(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS], other[N_PARTS];
    plain_key(parts, "add");
    plain_key(other, "sub");
    assert_false(has(cache, parts, "cubin"));
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    assert_true(has(cache, parts, "cubin"));
    assert_false(has(cache, other, "cubin"));
    assert_true(tk_cache_put(cache, other, N_PARTS, "", 0));
    assert_true(has(cache, other, ""));
    tk_cache_close(cache);
    cache = open_cache(0);
    assert_true(has(cache, parts, "cubin"));
    assert_string_equal(tk_cache_folder(cache), folder);
    assert_int_equal(tk_cache_warning(cache, NULL, 0), 0);
    tk_cache_close(cache);
    tk_cache_close(NULL);
}

static void test_build_once(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    for (int i = 0; i < 3; i++) {
        tk_cached got;
        bool built;
        assert_int_equal(
            tk_cache_get_or_build(cache, parts, N_PARTS, build_text, "cubin", &got, &built), TK_OK);
        assert_int_equal(built, i == 0);
        assert_memory_equal(got.bytes, "cubin", 5);
        tk_free(got.bytes);
    }
    assert_int_equal(count_files(".lock"), 0);
    assert_int_equal(count_files("tmp-"), 0);
    tk_cache_close(cache);
}

static tk_status build_fails(void *arg, tk_cached *out) {
    (void)arg;
    (void)out;
    return tk_error_set(TK_FORMAT_ERROR, "the assembler says no");
}

static void test_failed_build(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    tk_cached got;
    bool built = true;
    assert_int_equal(tk_cache_get_or_build(cache, parts, N_PARTS, build_fails, NULL, &got, &built),
                     TK_FORMAT_ERROR);
    assert_false(built);
    assert_string_equal(tk_error_message(), "the assembler says no");
    assert_int_equal(count_files(""), 0);
    tk_cache_close(cache);
}

/* Parts of a key do not run into each other. */
static void test_keys_are_told_apart(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    make_key(parts, "ab", "c", "t", "o");
    assert_true(tk_cache_put(cache, parts, N_PARTS, "1", 1));
    make_key(parts, "a", "bc", "t", "o");
    assert_false(has(cache, parts, "1"));
    parts[0].name = "kernelx";
    assert_false(has(cache, parts, "1"));
    tk_cache_close(cache);
}

static void expect_text(char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
}

static void test_each_part_misses_and_is_named(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    char *text;
    plain_key(parts, "add");
    assert_int_equal(tk_cache_explain_miss(cache, parts, N_PARTS, &text), TK_OK);
    expect_text(text, "not in the cache\nno other entry shares a part of its key");
    tk_free(text);
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    for (int i = 0; i < N_PARTS; i++) {
        plain_key(parts, "add");
        parts[i].value = "changed";
        parts[i].bytes = 7;
        assert_false(has(cache, parts, "cubin"));
        assert_int_equal(tk_cache_explain_miss(cache, parts, N_PARTS, &text), TK_OK);
        char line[128];
        snprintf(line, sizeof line, "differs in\n  %s: here \"changed\", there \"", parts[i].name);
        expect_text(text, line);
        assert_null(strstr(strstr(text, line) + strlen(line), "here"));
        tk_free(text);
    }
    plain_key(parts, "add");
    assert_int_equal(tk_cache_explain_miss(cache, parts, N_PARTS, &text), TK_OK);
    expect_text(text, "is in the cache");
    tk_free(text);
    assert_int_equal(tk_cache_explain_miss(cache, parts, N_PARTS - 1, &text), TK_OK);
    expect_text(text, "  options: only there");
    tk_free(text);
    tk_cache_close(cache);
}

static void test_explain_an_entry(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    char *text, path[1024];
    char long_text[300];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    make_key(parts, "add", long_text, "sm_90a", "O3");
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    entry_path(path);
    char digest[9];
    snprintf(digest, sizeof digest, "%.8s", strrchr(path, '/') + 1);
    make_key(parts, "add", long_text, "sm_90", "O3");
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    assert_int_equal(tk_cache_explain(cache, digest, &text), TK_OK);
    expect_text(
        text,
        "payload of 5 bytes, with the key\n  kernel: \"add\"\n  text: 299 bytes with digest ");
    expect_text(text, "which differs in\n  target: here \"sm_90a\", there \"sm_90\"\n");
    tk_cache_text_free(text);
    assert_int_equal(tk_cache_explain(cache, "", &text), TK_NOT_FOUND);
    assert_int_equal(tk_cache_explain(cache, "zz", &text), TK_NOT_FOUND);
    assert_null(text);
    tk_cache_close(cache);
}

/* ---- damage -----------------------------------------------------------------------------------
 */

static void test_every_bit_is_covered(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    char path[1024];
    plain_key(parts, "add");
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    entry_path(path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    int file = open(path, O_RDWR);
    for (off_t bit = 0; bit < status.st_size * 8; bit++) {
        unsigned char byte, flipped;
        assert_int_equal(pread(file, &byte, 1, bit / 8), 1);
        flipped = (unsigned char)(byte ^ 1 << bit % 8);
        assert_int_equal(pwrite(file, &flipped, 1, bit / 8), 1);
        assert_false(has(cache, parts, "cubin"));
        assert_int_equal(pwrite(file, &byte, 1, bit / 8), 1);
    }
    expect_warning(cache, "is damaged and not used");
    assert_true(has(cache, parts, "cubin"));
    for (off_t length = 0; length < status.st_size; length++) {
        assert_int_equal(ftruncate(file, length), 0);
        assert_false(has(cache, parts, "cubin"));
    }
    close(file);
    tk_cached got;
    bool built;
    assert_int_equal(tk_cache_get_or_build(cache, parts, N_PARTS, build_text, "new", &got, &built),
                     TK_OK);
    assert_true(built);
    tk_free(got.bytes);
    assert_true(has(cache, parts, "new"));
    tk_cache_close(cache);
}

static void test_verify(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    char path[1024];
    plain_key(parts, "bad");
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    entry_path(path);
    assert_int_equal(truncate(path, 150), 0);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", i);
        plain_key(parts, name);
        assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    }
    int64_t sound, broken;
    tk_cache_options looking = {.folder = folder, .read_only = true};
    tk_cache *reader;
    assert_int_equal(tk_cache_open(&looking, &reader), TK_OK);
    assert_int_equal(tk_cache_verify(reader, &sound, &broken), TK_OK);
    assert_int_equal(sound, 3);
    assert_int_equal(broken, 1);
    assert_int_equal(access(path, F_OK), 0);
    tk_cache_close(reader);
    assert_int_equal(tk_cache_verify(cache, NULL, NULL), TK_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(tk_cache_verify(cache, &sound, &broken), TK_OK);
    assert_int_equal(sound, 3);
    assert_int_equal(broken, 0);
    tk_cache_close(cache);
}

/* ---- limits -----------------------------------------------------------------------------------
 */

static void make_old(const char *path, int seconds) {
    struct timespec times[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool add_name(void *arg, const tk_cache_entry *entry) {
    strcat(arg, entry->what);
    strcat(arg, " ");
    return true;
}

static bool stop(void *arg, const tk_cache_entry *entry) {
    (void)entry;
    ++*(int *)arg;
    return false;
}

static void test_the_oldest_go_first(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    static char payload[1000];
    const char *const names[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++) {
        char path[1024], digest[TK_SHA256_TEXT];
        unsigned char *key, bytes[TK_SHA256_BYTES];
        size_t length;
        plain_key(parts, names[i]);
        assert_true(tk_cache_put(cache, parts, N_PARTS, payload, sizeof payload));
        assert_int_equal(tk_key_encode(parts, N_PARTS, &key, &length, bytes), TK_OK);
        tk_free(key);
        tk_sha256_text(bytes, digest);
        snprintf(path, sizeof path, "%s/%s", folder, digest);
        make_old(path, 3000 - 100 * i);
    }
    char listed[256] = "";
    assert_int_equal(tk_cache_list(cache, add_name, listed), TK_OK);
    assert_string_equal(listed, "third second first ");
    int visits = 0;
    assert_int_equal(tk_cache_list(cache, stop, &visits), TK_OK);
    assert_int_equal(visits, 1);
    plain_key(parts, "first");
    tk_cached got;
    assert_int_equal(tk_cache_get(cache, parts, N_PARTS, &got), TK_OK); /* now it is used */
    tk_free(got.bytes);
    int64_t removed;
    assert_int_equal(tk_cache_prune(cache, 2800, &removed), TK_OK);
    assert_int_equal(removed, 1);
    listed[0] = 0;
    assert_int_equal(tk_cache_list(cache, add_name, listed), TK_OK);
    assert_string_equal(listed, "first third ");
    assert_int_equal(tk_cache_prune(cache, 0, NULL), TK_OK);
    assert_int_equal(count_files(""), 0);
    tk_cache_close(cache);
}

static void test_putting_prunes(void **state) {
    (void)state;
    tk_cache *cache = open_cache(5000);
    tk_key_part parts[N_PARTS];
    static char payload[6000];
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", i);
        plain_key(parts, name);
        tk_cache_put(cache, parts, N_PARTS, payload, 1000);
    }
    assert_int_equal(count_files(""), 4);
    plain_key(parts, "large");
    assert_false(tk_cache_put(cache, parts, N_PARTS, payload, sizeof payload));
    expect_warning(cache, "6000 bytes, the cache holds 5000");
    tk_cache_close(cache);
}

/* ---- folders and disks that do not serve ------------------------------------------------------
 */

static void test_folders_of_others(void **state) {
    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    tk_cache *cache = open_cache(0);
    assert_string_equal(tk_cache_folder(cache), "");
    expect_warning(cache, "belongs to somebody else or others may write to it");
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    assert_false(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    tk_cached got;
    bool built;
    assert_int_equal(tk_cache_get_or_build(cache, parts, N_PARTS, build_text, "x", &got, &built),
                     TK_OK);
    assert_true(built);
    tk_free(got.bytes);
    assert_int_equal(tk_cache_verify(cache, NULL, NULL), TK_OK);
    tk_cache_close(cache);
}

static void test_relative_folders(void **state) {
    (void)state;
    char here[1024];
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    tk_cache_options options = {.folder = "."};
    tk_cache *cache;
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    assert_int_equal(tk_cache_folder(cache)[0], '/');
    assert_int_equal(chdir("/"), 0);
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    assert_true(has(cache, parts, "cubin"));
    assert_int_equal(chdir(here), 0);
    assert_int_equal(count_files(""), 1);
    tk_cache_close(cache);
}

static void test_files_of_others(void **state) {
    (void)state;
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    char path[1024], elsewhere[1100];
    plain_key(parts, "add");
    assert_true(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    entry_path(path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(has(cache, parts, "cubin"));
    expect_warning(cache, "belongs to somebody else");
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(has(cache, parts, "cubin"));
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_false(has(cache, parts, "cubin"));
    tk_cache_close(cache);
}

static void test_folders_that_cannot_be(void **state) {
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/file", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    strcat(path, "/below");
    tk_cache_options options = {.folder = path};
    tk_cache *cache;
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    assert_string_equal(tk_cache_folder(cache), "");
    expect_warning(cache, "cannot be made");
    tk_cache_close(cache);
    snprintf(path, sizeof path, "%s/a/b/c", folder);
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    assert_string_equal(tk_cache_folder(cache), path);
    tk_cache_close(cache);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rmdir(path), 0);
        *strrchr(path, '/') = 0;
    }
}

static void test_environment(void **state) {
    (void)state;
    setenv("TIKI_CACHE", folder, 1);
    setenv("TIKI_CACHE_READ_ONLY", "1", 1);
    tk_cache *cache;
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    assert_int_equal(tk_cache_open(NULL, &cache), TK_OK);
    assert_string_equal(tk_cache_folder(cache), folder);
    assert_false(tk_cache_put(cache, parts, N_PARTS, "cubin", 5));
    tk_cache_close(cache);
    setenv("TIKI_CACHE_READ_ONLY", "0", 1);
    setenv("TIKI_CACHE_MIB", "1", 1);
    assert_int_equal(tk_cache_open(NULL, &cache), TK_OK);
    char *large = calloc(1, 2 << 20);
    assert_false(tk_cache_put(cache, parts, N_PARTS, large, 2 << 20));
    assert_true(tk_cache_put(cache, parts, N_PARTS, large, 1 << 19));
    free(large);
    tk_cache_close(cache);
    setenv("TIKI_CACHE_MIB", "2 GB", 1);
    assert_int_equal(tk_cache_open(NULL, &cache), TK_OK);
    expect_warning(cache, "TIKI_CACHE_MIB is \"2 GB\", expected a number of MiB from 1");
    tk_cache_close(cache);
    unsetenv("TIKI_CACHE");
    unsetenv("TIKI_CACHE_READ_ONLY");
    unsetenv("TIKI_CACHE_MIB");
}

/* Runs a body in a child; its exit status. */
static int in_child(int (*body)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(body());
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Builds "right" through the cache: 0 built, 1 found, else wrong. */
static int use_cache(void) {
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    tk_cached got;
    bool built;
    static char text[20000];
    memset(text, 'r', sizeof text - 1);
    tk_status status = tk_cache_get_or_build(cache, parts, N_PARTS, build_text, text, &got, &built);
    if (status != TK_OK || got.length != sizeof text - 1 ||
        memcmp(got.bytes, text, got.length) != 0)
        return 2;
    tk_free(got.bytes);
    tk_cache_close(cache);
    return built ? 0 : 1;
}

/* A limit on the size of files stands for a full disk: the write stops in the middle. */
static int use_with_full_disk(void) {
    struct rlimit limit = {10000, 10000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return use_cache();
}

/* The superuser may write everywhere, so it becomes somebody else who owns the folder. */
static int use_with_read_only_folder(void) {
    if (chmod(folder, 0500) != 0) return 3;
    if (geteuid() == 0 && (chown(folder, 65534, 65534) != 0 || setuid(65534) != 0)) return 4;
    return use_cache();
}

static void test_full_disk_and_read_only_folder(void **state) {
    (void)state;
    assert_int_equal(in_child(use_with_full_disk), 0);
    assert_int_equal(count_files(""), 0);
    assert_int_equal(in_child(use_with_read_only_folder), 0);
    assert_int_equal(count_files(""), 0);
    if (geteuid() == 0) assert_int_equal(chown(folder, 0, 0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(in_child(use_cache), 0);
    assert_int_equal(in_child(use_cache), 1);
}

/* ---- killed and many --------------------------------------------------------------------------
 */

static tk_status build_and_die(void *arg, tk_cached *out) {
    (void)arg;
    (void)out;
    kill(getpid(), SIGKILL);
    return TK_OK;
}

static int die_while_building(void) {
    tk_cache *cache = open_cache(0);
    tk_key_part parts[N_PARTS];
    plain_key(parts, "add");
    tk_cached got;
    return (int)tk_cache_get_or_build(cache, parts, N_PARTS, build_and_die, NULL, &got, NULL);
}

/* Writes entries for ever; its parent kills it somewhere. */
static void write_for_ever(void) {
    tk_cache *cache = open_cache(0);
    static char payload[200000];
    for (int i = 0;; i++) {
        tk_key_part parts[N_PARTS];
        char name[16];
        snprintf(name, sizeof name, "k%d", i % 3);
        plain_key(parts, name);
        memset(payload, i, sizeof payload);
        tk_cache_put(cache, parts, N_PARTS, payload, sizeof payload);
    }
}

static void test_killed_processes(void **state) {
    (void)state;
    assert_int_equal(in_child(die_while_building), 100 + SIGKILL);
    assert_int_equal(count_files(".lock"), 1);
    assert_int_equal(in_child(use_cache), 0); /* the lock went with its owner */
    assert_int_equal(count_files(".lock"), 0);
    for (int round = 0; round < 15; round++) {
        pid_t child = fork();
        if (child == 0) write_for_ever();
        struct timespec time = {0, 3000000 + 1700000 * round};
        nanosleep(&time, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        tk_cache *cache = open_cache(0);
        int64_t broken;
        assert_int_equal(tk_cache_verify(cache, NULL, &broken), TK_OK);
        assert_int_equal(broken, 0);
        tk_cache_close(cache);
    }
    DIR *at = opendir(folder);
    for (struct dirent *file = readdir(at); file; file = readdir(at)) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        if (strncmp(file->d_name, "tmp-", 4) == 0) make_old(path, 4000);
    }
    closedir(at);
    tk_cache *cache = open_cache(0);
    assert_int_equal(tk_cache_prune(cache, SIZE_MAX, NULL), TK_OK);
    assert_int_equal(count_files("tmp-"), 0);
    tk_cache_close(cache);
}

static void test_many_processes(void **state) {
    (void)state;
    const int n = SUPPORT_ASAN || SUPPORT_TSAN ? 40 : 200;
    pid_t children[200];
    int built = 0, found = 0;
    for (int i = 0; i < n; i++) {
        children[i] = fork();
        if (children[i] == 0) _exit(use_cache());
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < n; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_true(WIFEXITED(status));
        built += WEXITSTATUS(status) == 0;
        found += WEXITSTATUS(status) == 1;
    }
    assert_int_equal(built, 1);
    assert_int_equal(found, n - 1);
    assert_int_equal(count_files(""), 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_keep_and_find),
        TEST(test_build_once),
        TEST(test_failed_build),
        TEST(test_keys_are_told_apart),
        TEST(test_each_part_misses_and_is_named),
        TEST(test_explain_an_entry),
        TEST(test_every_bit_is_covered),
        TEST(test_verify),
        TEST(test_the_oldest_go_first),
        TEST(test_putting_prunes),
        TEST(test_folders_of_others),
        TEST(test_relative_folders),
        TEST(test_files_of_others),
        TEST(test_folders_that_cannot_be),
        TEST(test_environment),
        TEST(test_full_disk_and_read_only_folder),
        TEST(test_killed_processes),
        TEST(test_many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
