/* npy and npz: NumPy's files are read and written to the byte; lies are refused. */
#define _GNU_SOURCE
#include <zip.h>

#include "base/alloc.h"
#include "io_check.h"

/* A file in memory: version, a header padded by one line end, data. */
typedef struct blob {
    unsigned char bytes[1024];
    size_t count;
} blob;

static blob make_blob(int version, const char *header, const void *data, size_t data_bytes) {
    blob b = {.count = 0};
    size_t length = strlen(header), at = version == 1 ? 10 : 12;
    assert_true(at + length + data_bytes <= sizeof b.bytes);
    memcpy(b.bytes, "\x93NUMPY", 6);
    b.bytes[6] = (unsigned char)version;
    b.bytes[8] = (unsigned char)length;
    b.bytes[9] = (unsigned char)(length >> 8);
    memcpy(b.bytes + at, header, length);
    if (data_bytes) memcpy(b.bytes + at + length, data, data_bytes);
    b.count = at + length + data_bytes;
    return b;
}

static tk_status parse(tk_context *ctx, int version, const char *header, const void *data,
                       size_t bytes, tk_array *out_array) {
    blob b = make_blob(version, header, data, bytes);
    return tk_npy_parse(ctx, "a.npy", b.bytes, b.count, out_array);
}

#define DICT(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

typedef struct reading {
    const char *header;
    size_t data_bytes;
    tk_dtype dtype;
    int rank;
    double first; /* of the flattened array */
} reading;

static const reading readings[] = {
    {DICT("|b1", "False", "(2,)"), 2, TK_BOOL, 1, 1},
    {DICT("?", "False", "(2,)"), 0, TK_BOOL, -1, 0},
    {DICT("|u1", "False", "(1, 2)"), 2, TK_UINT8, 2, 1},
    {DICT("<u1", "False", "(2,)"), 2, TK_UINT8, 1, 1},
    {DICT(">i1", "False", "(2,)"), 2, TK_INT8, 1, 1},
    {DICT("<i2", "False", "(1,)"), 2, TK_INT16, 1, 1},
    {DICT(">i2", "False", "(1,)"), 2, TK_INT16, 1, 256},
    {DICT("=u2", "False", "(1L,)"), 2, TK_UINT16, 1, 1},
    {DICT(">u4", "False", "()"), 4, TK_UINT32, 0, 16777216},
    {DICT("<u8", "True", "()"), 8, TK_UINT64, 0, 1},
    {DICT(">i8", "False", "(0, 3)"), 0, TK_INT64, 2, 0},
    {DICT("<f2", "False", "(1,)"), 2, TK_FLOAT16, 1, 0x1p-24},
    {DICT("<V2", "False", "(1,)"), 2, TK_BFLOAT16, 1, 0x1p-133},
    {DICT("|V2", "False", "(1,)"), 2, TK_BFLOAT16, 1, 0x1p-133},
    {DICT("<f4", "False", "()"), 4, TK_FLOAT32, 0, 0x1p-149},
    {"{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<f4\"}", 4, TK_FLOAT32, 1, 0x1p-149},
    {DICT("<c8", "False", "()"), 8, TK_COMPLEX64, 0, 0x1p-149},
};

static void every_dtype_is_read(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    unsigned char data[8] = {1};
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++)
        for (int version = 1; version <= 3; version++) {
            const reading *r = &readings[i];
            tk_array array;
            tk_status status = parse(ctx, version, r->header, data, r->data_bytes, &array);
            if (r->rank < 0) {
                assert_fails(status, TK_DTYPE_ERROR, "dtype '?', which Tiki does not have");
                continue;
            }
            if (status != TK_OK) print_error("%s\n", r->header);
            assert_ok(status);
            assert_int_equal(tk_array_dtype(array), r->dtype);
            assert_int_equal(tk_array_rank(array), r->rank);
            double value = r->first;
            if (tk_array_size(array) == 1 && r->dtype != TK_COMPLEX64)
                assert_ok(tk_item(array, &value));
            assert_true(value == r->first);
            tk_release(array);
        }
    tk_context_release(ctx);
}

static void fortran_and_big_endian_become_plain(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    unsigned char data[24] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3,
                              0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6};
    int32_t values[6], expected[6] = {1, 3, 5, 2, 4, 6};
    tk_array array;
    assert_ok(parse(ctx, 1, DICT(">i4", "True", "(2, 3)"), data, 24, &array));
    assert_ok(tk_copy_out(array, values, sizeof values));
    assert_memory_equal(values, expected, sizeof values);
    tk_release(array);
    uint32_t complex_bits[2];
    unsigned char complex_data[8] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0};
    assert_ok(parse(ctx, 1, DICT(">c8", "False", "(1,)"), complex_data, 8, &array));
    assert_ok(tk_copy_out(array, complex_bits, sizeof complex_bits));
    assert_int_equal(complex_bits[0], 0x3f800000);
    assert_int_equal(complex_bits[1], 0x40000000);
    tk_release(array);
    tk_context_release(ctx);
}

typedef struct refusal {
    const char *header;
    size_t data_bytes;
    tk_status status;
    const char *text;
} refusal;

static const refusal refusals[] = {
    {"", 0, TK_FORMAT_ERROR, "byte 0: '{' is expected"},
    {"{}", 0, TK_FORMAT_ERROR, "'descr' is missing"},
    {"{'descr': '<f4'}", 0, TK_FORMAT_ERROR, "'fortran_order' is missing"},
    {"{'descr': '<f4', 'fortran_order': False}", 0, TK_FORMAT_ERROR, "'shape' is missing"},
    {"{'descr': '<f4', 'descr': '<f4'}", 0, TK_FORMAT_ERROR, "key 'descr' is there twice"},
    {"{'color': 1}", 0, TK_FORMAT_ERROR, "key 'color' is unknown"},
    {"{'descr': '<f4' 'shape': ()}", 0, TK_FORMAT_ERROR, "byte 16: ',' or '}' is expected"},
    {"{'descr': '<f4", 0, TK_FORMAT_ERROR, "a short string"},
    {"{'descr': 'a very long name of a dtype'}", 0, TK_FORMAT_ERROR, "a short string"},
    {DICT("<f4", "Maybe", "()"), 4, TK_FORMAT_ERROR, "True or False is expected"},
    {DICT("<f4", "False", "(1)"), 4, TK_FORMAT_ERROR, "',' in a shape of one axis"},
    {DICT("<f4", "False", "(-1,)"), 4, TK_FORMAT_ERROR, "a length is expected"},
    {DICT("<f4", "False", "(1 2)"), 4, TK_FORMAT_ERROR, "in the shape is expected"},
    {DICT("<f4", "False", "(9223372036854775808,)"), 4, TK_FORMAT_ERROR, "below 2^63"},
    {DICT("<f4", "False", "(4294967296, 4294967296)"), 4, TK_FORMAT_ERROR, "do not fit 63 bits"},
    {DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4, TK_SHAPE_ERROR,
     "more than 16 axes"},
    {DICT("<f4", "False", "(2,)"), 4, TK_FORMAT_ERROR, "need 8 bytes of data, the file has 4"},
    {DICT("<f4", "False", "()"), 5, TK_FORMAT_ERROR, "need 4 bytes of data, the file has 5"},
    {DICT("<f4", "False", "()") "x", 4, TK_FORMAT_ERROR, "the end of the header"},
    {DICT("|O", "False", "()"), 8, TK_DTYPE_ERROR, "dtype '|O'"},
    {DICT("<U3", "False", "()"), 12, TK_DTYPE_ERROR, "dtype '<U3'"},
    {DICT("<f16", "False", "()"), 16, TK_DTYPE_ERROR, "dtype '<f16'"},
    {DICT("<c16", "False", "()"), 16, TK_DTYPE_ERROR, "dtype '<c16'"},
    {DICT("|f4", "False", "()"), 4, TK_DTYPE_ERROR, "dtype '|f4'"},
    {DICT(">V2", "False", "()"), 2, TK_DTYPE_ERROR, "dtype '>V2'"},
    {DICT("", "False", "()"), 2, TK_DTYPE_ERROR, "dtype ''"},
    {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': ()}", 4, TK_DTYPE_ERROR,
     "holds records"},
    {DICT("|b1", "False", "(4,)"), 4, TK_FORMAT_ERROR, "truth value 1 is 2"},
};

static void lies_are_refused_with_the_reason(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    unsigned char data[16] = {1, 2, 3};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        tk_array array;
        tk_status status = parse(ctx, 1, r->header, data, r->data_bytes, &array);
        if (status != r->status) print_error("%s\n", r->header);
        assert_fails(status, r->status, r->text);
        assert_fails(status, r->status, "a.npy");
        tk_release(array);
    }
    blob b = make_blob(4, "{}", NULL, 0);
    tk_array array;
    assert_fails(tk_npy_parse(ctx, "a", b.bytes, b.count, &array), TK_FORMAT_ERROR, "version 4.0");
    b.bytes[0] = 'x';
    assert_fails(tk_npy_parse(ctx, "a", b.bytes, b.count, &array), TK_FORMAT_ERROR, "begins with");
    tk_context_release(ctx);
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    unsigned char data[4] = {1};
    for (int version = 1; version <= 3; version++) {
        blob b = make_blob(version, DICT("<f4", "False", "()"), data, 4);
        for (size_t n = 0; n < b.count; n++) {
            tk_array array;
            unsigned char *exact = malloc(n + 1);
            memcpy(exact, b.bytes, n);
            assert_fails(tk_npy_parse(ctx, "cut", exact, n, &array), TK_FORMAT_ERROR, "cut: ");
            free(exact);
        }
    }
    tk_context_release(ctx);
}

/* What numpy.save wrote. */
static void the_bytes_written_are_numpys(void **state) {
    (void)state;
    static const char golden[] =
        "\x93NUMPY\x01\x00v\x00{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }"
        "                                                          \n"
        "\0\0\2\0\4\0\1\0\3\0\5\0";
    static const char scalar[] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, "
                                 "'shape': (), }                                                  "
                                 "            \n\x00\x00\xc0?";
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    int16_t columns[6] = {0, 1, 2, 3, 4, 5};
    tk_array turned =
        tk_transpose(tk_from_data(ctx, columns, TK_SHAPE(3, 2), TK_INT16), TK_AXES(1, 0));
    size_t bytes;
    assert_ok(tk_npy_save(in_folder("a.npy"), turned));
    char *data = read_all(in_folder("a.npy"), &bytes);
    assert_int_equal(bytes, sizeof golden - 1);
    assert_memory_equal(data, golden, bytes);
    tk_text_free(data);
    assert_ok(tk_npy_save(in_folder("s.npy"), tk_scalar(ctx, 1.5)));
    data = read_all(in_folder("s.npy"), &bytes);
    assert_int_equal(bytes, sizeof scalar - 1);
    assert_memory_equal(data, scalar, bytes);
    tk_text_free(data);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void assert_same_array(tk_array a, tk_array b) {
    tk_scope scope = tk_scope_open(tk_array_context(a));
    double same = 0;
    assert_int_equal(tk_array_dtype(a), tk_array_dtype(b));
    assert_int_equal(tk_array_rank(a), tk_array_rank(b));
    for (int axis = 0; axis < tk_array_rank(a); axis++)
        assert_int_equal(tk_array_dim(a, axis), tk_array_dim(b, axis));
    assert_ok(tk_item(tk_all(tk_equal(a, b), TK_ALL_AXES, TK_DROPDIMS), &same));
    assert_true(same == 1);
    tk_scope_close(scope);
}

static tk_tree *sample_tree(tk_context *ctx) {
    tk_tree *tree = tk_tree_new();
    tk_scope scope = tk_scope_open(ctx);
    for (int dtype = 0; dtype < TK_DTYPE_COUNT; dtype++) {
        char name[32];
        snprintf(name, sizeof name, "folder/%s", tk_dtype_name((tk_dtype)dtype));
        tk_array ramp = tk_reshape(tk_arange(ctx, 0, 600, 1, TK_FLOAT32), TK_SHAPE(20, 30));
        tk_array array = tk_astype(tk_remainder(ramp, tk_scalar(ctx, 50)), (tk_dtype)dtype);
        assert_ok(tk_tree_set(tree, name, dtype % 2 ? tk_transpose(array, TK_AXES(1, 0)) : array));
    }
    assert_ok(tk_tree_set(tree, "none", tk_zeros(ctx, TK_SHAPE(0, 4), TK_INT32)));
    assert_ok(tk_tree_set(tree, "\xc3\xa9", tk_scalar(ctx, 3)));
    tk_scope_close(scope);
    return tree;
}

static void single_files_come_back(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = sample_tree(ctx);
    for (size_t i = 0; i < tk_tree_count(tree); i++) {
        tk_array array;
        assert_ok(tk_npy_save(in_folder("one.npy"), tk_tree_at(tree, i)));
        assert_ok(tk_npy_load(ctx, in_folder("one.npy"), &array));
        assert_same_array(tk_tree_at(tree, i), array);
        tk_release(array);
    }
    tk_array array;
    assert_fails(tk_npy_load(ctx, in_folder("absent.npy"), &array), TK_IO_ERROR, "absent.npy");
    assert_fails(tk_npy_load(NULL, "x", &array), TK_INVALID_ARGUMENT, "context");
    assert_fails(tk_npy_save(NULL, tk_tree_at(tree, 0)), TK_INVALID_ARGUMENT, "path");
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void archives_come_back(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = sample_tree(ctx);
    size_t sizes[2];
    for (int compressed = 0; compressed < 2; compressed++) {
        tk_tree *loaded = tk_tree_new();
        const char *path = in_folder(compressed ? "packed.npz" : "stored.npz");
        assert_ok(tk_npz_save(path, tree, compressed));
        assert_ok(tk_npz_load(ctx, path, loaded));
        assert_int_equal(tk_tree_count(loaded), tk_tree_count(tree));
        for (size_t i = 0; i < tk_tree_count(tree); i++) {
            assert_string_equal(tk_tree_name(tree, i), tk_tree_name(loaded, i));
            assert_same_array(tk_tree_at(tree, i), tk_tree_at(loaded, i));
        }
        tk_tree_free(loaded);
        char *first = read_all(path, &sizes[compressed]);
        assert_ok(tk_npz_save(path, tree, compressed));
        size_t again;
        char *second = read_all(path, &again);
        assert_int_equal(sizes[compressed], again);
        assert_memory_equal(first, second, again);
        tk_text_free(first);
        tk_text_free(second);
    }
    assert_true(sizes[1] < sizes[0] / 2);
    assert_int_equal(count_entries(folder, ".tiki"), 0);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void empty_archives_are_archives(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    assert_ok(tk_npz_save(in_folder("empty.npz"), tree, true));
    assert_ok(tk_npz_load(ctx, in_folder("empty.npz"), tree));
    assert_int_equal(tk_tree_count(tree), 0);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

/* An archive with one member of these bytes. */
static void write_archive(const char *path, const char *name, const void *data, size_t bytes) {
    zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(archive);
    assert_true(zip_file_add(archive, name, zip_source_buffer(archive, data, bytes, 0), 0) >= 0);
    assert_int_equal(zip_close(archive), 0);
}

static void archives_that_lie_are_refused(void **state) {
    static const unsigned char huge[4] = {0, 0, 0, 0x7f}; /* little-endian sizes of 2 GiB */
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    char large[4096] = {0};
    const char *path = in_folder("bad.npz");
    write_archive(path, "readme.txt", "hello", 5);
    assert_fails(tk_npz_load(ctx, path, tree), TK_FORMAT_ERROR,
                 "\"readme.txt\": members NAME.npy are expected");
    write_archive(path, ".npy", "hello", 5);
    assert_fails(tk_npz_load(ctx, path, tree), TK_FORMAT_ERROR, "members NAME.npy");
    write_archive(path, "x.npy", "hello", 5);
    assert_fails(tk_npz_load(ctx, path, tree), TK_FORMAT_ERROR, "\"x.npy\": an npy file begins");
    assert_ok(tk_file_write(path, "hello", 5));
    assert_fails(tk_npz_load(ctx, path, tree), TK_FORMAT_ERROR, "bad.npz: zip archive");
    assert_ok(tk_file_write(path, NULL, 0));
    assert_fails(tk_npz_load(ctx, path, tree), TK_FORMAT_ERROR, "bad.npz");
    write_archive(path, "x.npy", large, sizeof large);
    size_t bytes;
    char *data = read_all(path, &bytes);
    for (size_t i = 0; i + 46 < bytes; i++)
        if (!memcmp(data + i, "PK\1\2", 4)) memcpy(data + i + 24, huge, 4);
    memcpy(data + 22, huge, 4);
    assert_fails(tk_npz_parse(ctx, "bomb", data, bytes, tree), TK_FORMAT_ERROR, "bomb");
    tk_text_free(data);
    assert_int_equal(tk_tree_count(tree), 0);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static tk_status fail_at(void *arg, const char *step, const char *path) {
    (void)step;
    (void)path;
    return --*(int *)arg == 0 ? TK_INTERNAL : TK_OK;
}

static void a_failing_step_leaves_the_old_archive(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = sample_tree(ctx), *empty = tk_tree_new(), *loaded = tk_tree_new();
    const char *path = in_folder("kept.npz");
    assert_ok(tk_npz_save(path, empty, false));
    for (int k = 1; k <= 3; k++) {
        int countdown = k;
        tk_file_set_hook(fail_at, &countdown);
        assert_fails(tk_npz_save(path, tree, false), TK_IO_ERROR, "kept.npz");
        tk_file_set_hook(NULL, NULL);
        assert_ok(tk_npz_load(ctx, path, loaded));
        assert_int_equal(tk_tree_count(loaded), 0);
    }
    assert_int_equal(count_entries(folder, ".tiki"), 0);
    tk_tree_free(loaded);
    tk_tree_free(empty);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void out_of_memory_is_an_error(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    tk_scope scope = tk_scope_open(ctx);
    assert_ok(tk_tree_set(tree, "x", tk_zeros(ctx, TK_SHAPE(3), TK_FLOAT32)));
    assert_ok(tk_tree_set(tree, "y", tk_scalar(ctx, 1)));
    tk_scope_close(scope);
    const char *path = in_folder("memory.npz");
    assert_ok(tk_npz_save(path, tree, true));
    tk_status status = TK_OUT_OF_MEMORY;
    int64_t n = 0;
    while (status != TK_OK) {
        tk_tree *loaded = tk_tree_new();
        tk_alloc_fail_after(++n);
        status = tk_npz_load(ctx, path, loaded);
        tk_alloc_fail_after(0);
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
        tk_tree_free(loaded);
    }
    assert_true(n > 10);
    status = TK_OUT_OF_MEMORY;
    for (n = 1; status != TK_OK; n++) {
        tk_alloc_fail_after(n);
        status = tk_npz_save(path, tree, true);
        tk_alloc_fail_after(0);
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
    }
    assert_int_equal(count_entries(folder, ".tiki"), 0);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_read),
        cmocka_unit_test(fortran_and_big_endian_become_plain),
        cmocka_unit_test(lies_are_refused_with_the_reason),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(the_bytes_written_are_numpys),
        cmocka_unit_test(single_files_come_back),
        cmocka_unit_test(archives_come_back),
        cmocka_unit_test(empty_archives_are_archives),
        cmocka_unit_test(archives_that_lie_are_refused),
        cmocka_unit_test(a_failing_step_leaves_the_old_archive),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
