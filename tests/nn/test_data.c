/* Files as bytes, and the order in which windows of them are visited. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "nn/nn_check.h"

static char folder[256];

static const char *in_folder(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

/* ---- the order of windows ---- */

static unsigned char bytes[20000];

static int64_t windows_of(const tk_batches *b) { return (b->size - b->length) / b->length; }

/* Within an epoch each window is visited once, windows do not overlap, and none reaches the end. */
static void check_epoch(const tk_batches *b, int64_t epoch) {
    int64_t count = windows_of(b), least = b->size;
    char *seen = calloc((size_t)count, 1);
    assert_non_null(seen);
    for (int64_t i = 0; i < count; i++) {
        int64_t start = tk_batches_start(b, epoch * count + i);
        assert_true(start >= 0 && start + b->length + 1 <= b->size);
        if (start < least) least = start;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t from_first = tk_batches_start(b, epoch * count + i) - least;
        assert_int_equal(from_first % b->length, 0);
        assert_true(from_first / b->length < count);
        assert_false(seen[from_first / b->length]);
        seen[from_first / b->length] = 1;
    }
    free(seen);
}

static void test_each_window_once_an_epoch(void **state) {
    (void)state;
    const int64_t sizes[] = {33, 40, 64, 65, 1000, 1023, 1024, 1025, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tk_batches b = {bytes, sizes[i], 16, 4, 3};
        assert_ok(tk_batches_check(&b));
        for (int64_t epoch = 0; epoch < 5; epoch++) check_epoch(&b, epoch);
    }
}

static void test_one_window(void **state) {
    (void)state;
    tk_batches b = {bytes, 17, 16, 4, 3};
    assert_ok(tk_batches_check(&b));
    for (int64_t i = 0; i < 100; i++) assert_int_equal(tk_batches_start(&b, i), 0);
    b.size = 16;
    assert_fails(tk_batches_check(&b), TK_INVALID_ARGUMENT, "16 bytes");
    b.size = 100;
    b.batch = 0;
    assert_fails(tk_batches_check(&b), TK_INVALID_ARGUMENT, "expected 1 or more");
}

/* The order is a function of seed and epoch, and differs between them. */
static void test_orders_differ(void **state) {
    (void)state;
    tk_batches b = {bytes, 20000, 16, 4, 3}, other = b;
    other.seed = 4;
    int64_t count = windows_of(&b), same_epoch = 0, same_seed = 0, in_place = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t start = tk_batches_start(&b, i);
        assert_int_equal(start, tk_batches_start(&b, i));
        same_epoch += start / 16 == tk_batches_start(&b, count + i) / 16;
        same_seed += start / 16 == tk_batches_start(&other, i) / 16;
        in_place += start / 16 == i;
    }
    assert_true(same_epoch < 20 && same_seed < 20 && in_place < 20);
}

/* Over many seeds, each of the windows comes first about as often as the others: for 8 windows and
 * 8,000 seeds, 1,000 times with a deviation of 30. */
static void test_no_bias(void **state) {
    (void)state;
    int first[8] = {0}, offset[16] = {0};
    for (uint64_t seed = 0; seed < 8000; seed++) {
        tk_batches b = {bytes, 9 * 16 + 15, 16, 1, seed};
        int64_t start = tk_batches_start(&b, 0);
        first[start / 16 < 8 ? start / 16 : 7]++;
        offset[start % 16]++;
    }
    for (int i = 0; i < 16; i++) assert_true(offset[i] > 350 && offset[i] < 650);
    int least = 8000;
    for (int i = 0; i < 7; i++) least = first[i] < least ? first[i] : least;
    assert_true(least > 400);
}

/* Position i of an epoch holds each window about equally often. */
static void test_positions_are_even(void **state) {
    (void)state;
    int counts[5][5] = {{0}};
    for (uint64_t seed = 0; seed < 5000; seed++) {
        tk_batches b = {bytes, 6 * 16, 16, 1, seed};
        int64_t starts[5], least = 16;
        for (int i = 0; i < 5; i++) {
            starts[i] = tk_batches_start(&b, i);
            if (starts[i] < least) least = starts[i];
        }
        for (int i = 0; i < 5; i++) counts[i][(starts[i] - least) / 16]++;
    }
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) assert_true(counts[i][k] > 850 && counts[i][k] < 1150);
}

static void test_batches_hold_their_windows(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_batches b = {bytes, 1000, 16, 3, 9};
    for (int64_t index = 0; index < 50; index++) {
        tk_array batch = tk_batches_get(context, &b, index);
        int32_t tokens[3 * 17];
        assert_int_equal(tk_array_dtype(batch), TK_INT32);
        assert_int_equal(tk_array_dim(batch, 0), 3);
        assert_ok(tk_copy_out(batch, tokens, sizeof tokens));
        tk_release(batch);
        for (int64_t row = 0; row < 3; row++)
            for (int64_t i = 0; i < 17; i++)
                assert_int_equal(tokens[row * 17 + i],
                                 bytes[tk_batches_start(&b, index * 3 + row) + i]);
    }
    tk_context_release(context);
}

/* ---- files and folders ---- */

static void write_file(const char *name, const char *text, size_t size) {
    assert_ok(tk_file_write(in_folder(name), text, size));
}

static void check_corpus(const char *const *paths, size_t count, const char *expected,
                         int64_t files) {
    tk_corpus *corpus;
    assert_ok(tk_corpus_load(paths, count, &corpus));
    assert_int_equal(tk_corpus_size(corpus), strlen(expected));
    assert_memory_equal(tk_corpus_bytes(corpus), expected, strlen(expected));
    assert_int_equal(tk_corpus_files(corpus), files);
    tk_corpus_free(corpus);
}

static void test_folders(void **state) {
    (void)state;
    assert_int_equal(mkdir(in_folder("d"), 0700), 0);
    assert_int_equal(mkdir(in_folder("d/b"), 0700), 0);
    assert_int_equal(mkdir(in_folder("d/.hidden"), 0700), 0);
    write_file("d/z", "Z", 1);
    write_file("d/a", "A", 1);
    write_file("d/empty", "", 0);
    write_file("d/b/x", "BX", 2);
    write_file("d/.secret", "no", 2);
    write_file("d/.hidden/x", "no", 2);
    write_file("d/binary", "\0\1", 2);
    assert_int_equal(symlink("a", in_folder("d/link")), 0);
    const char *const paths[] = {in_folder("d"), in_folder("d/z"), in_folder("d/link")};
    check_corpus(paths, 1, "ABXZ", 4);
    check_corpus(paths, 3, "ABXZZA", 6);
}

static void test_named_files_are_read(void **state) {
    (void)state;
    write_file("zero", "a\0b", 3);
    tk_corpus *corpus;
    const char *path = in_folder("zero");
    assert_ok(tk_corpus_load(&path, 1, &corpus));
    assert_int_equal(tk_corpus_size(corpus), 3);
    tk_corpus_free(corpus);
    path = in_folder("not-there");
    assert_fails(tk_corpus_load(&path, 1, &corpus), TK_IO_ERROR, "not-there");
}

static uint64_t fingerprint(const char *text, size_t size) {
    write_file("print", text, size);
    tk_corpus *corpus;
    const char *path = in_folder("print");
    assert_ok(tk_corpus_load(&path, 1, &corpus));
    uint64_t value = tk_corpus_fingerprint(corpus);
    tk_corpus_free(corpus);
    return value;
}

/* Each byte and the length count. */
static void test_fingerprints(void **state) {
    (void)state;
    char text[40] = {0};
    uint64_t plain = fingerprint(text, sizeof text);
    assert_true(plain == fingerprint(text, sizeof text));
    assert_true(plain != fingerprint(text, sizeof text - 1));
    assert_true(plain != fingerprint(text, sizeof text - 8));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 1;
        assert_true(plain != fingerprint(text, sizeof text));
        text[i] = 0;
    }
}

static int prepare(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tiki-data-XXXXXX", base ? base : "/tmp");
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    return mkdtemp(folder) ? 0 : -1;
}

static int clean(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_window_once_an_epoch),
        cmocka_unit_test(test_one_window),
        cmocka_unit_test(test_orders_differ),
        cmocka_unit_test(test_no_bias),
        cmocka_unit_test(test_positions_are_even),
        cmocka_unit_test(test_batches_hold_their_windows),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_named_files_are_read),
        cmocka_unit_test(test_fingerprints),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
