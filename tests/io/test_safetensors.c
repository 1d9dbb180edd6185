/* safetensors: what is read, what is refused and how it is said, what is written. */
#define _GNU_SOURCE
#include <jansson.h>
#include <math.h>

#include "base/alloc.h"
#include "io_check.h"

/* A file in memory: length, header, data. */
typedef struct blob {
    unsigned char bytes[2048];
    size_t count;
} blob;

static blob make_blob(const char *header, const void *data, size_t data_bytes) {
    blob b = {.count = 8 + strlen(header) + data_bytes};
    uint64_t length = strlen(header);
    assert_true(b.count <= sizeof b.bytes);
    memcpy(b.bytes, &length, 8);
    memcpy(b.bytes + 8, header, length);
    if (data_bytes) memcpy(b.bytes + 8 + length, data, data_bytes);
    return b;
}

static tk_status parse(tk_context *ctx, const char *header, const void *data, size_t bytes,
                       tk_tree *tree, tk_metadata *metadata) {
    blob b = make_blob(header, data, bytes);
    return tk_safetensors_parse(ctx, "m.safetensors", b.bytes, b.count, tree, metadata);
}

static void reads_every_dtype_in_the_headers_order(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    tk_metadata *metadata = tk_metadata_new();
    unsigned char data[16] = {1, 0, 0, 0x3c, 0x80, 0x3f, 7, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    assert_ok(
        parse(ctx,
              "{\"__metadata__\":{\"format\":\"pt\",\"b\":\"\"},"
              "\"z.c\":{\"dtype\":\"C64\",\"shape\":[],\"data_offsets\":[8,16]},"
              "\"a.bool\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]},"
              "\"a.half\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[2,4]},"
              "\"a.none\":{\"dtype\":\"F64\",\"shape\":[2,0],\"data_offsets\":[4,4]},"
              "\"a.brain\":{\"dtype\":\"BF16\",\"shape\":[1,1],\"data_offsets\":[4,6]},"
              "\"a.short\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[6,8],\"new\":1}}  ",
              data, sizeof data, tree, metadata));
    const char *names[] = {"z.c", "a.bool", "a.half", "a.none", "a.brain", "a.short"};
    assert_int_equal(tk_tree_count(tree), 6);
    for (int i = 0; i < 6; i++) assert_string_equal(tk_tree_name(tree, (size_t)i), names[i]);
    assert_int_equal(tk_array_dtype(tk_tree_at(tree, 0)), TK_COMPLEX64);
    assert_int_equal(tk_array_rank(tk_tree_at(tree, 0)), 0);
    assert_true(first_f32(tk_tree_at(tree, 2)) == 1);
    assert_int_equal(tk_array_dim(tk_tree_at(tree, 3), 0), 2);
    assert_int_equal(tk_array_size(tk_tree_at(tree, 3)), 0);
    assert_true(first_f32(tk_tree_at(tree, 4)) == 1);
    assert_true(first_f32(tk_tree_at(tree, 5)) == 7);
    assert_int_equal(tk_metadata_count(metadata), 2);
    assert_string_equal(tk_metadata_key(metadata, 0), "format");
    assert_string_equal(tk_metadata_get(metadata, "format"), "pt");
    assert_null(tk_metadata_get(metadata, "c"));
    tk_metadata_free(metadata);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void misaligned_values_are_read(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    unsigned char data[5] = {1, 0, 0, 0x80, 0x3f};
    assert_ok(parse(ctx,
                    "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]},"
                    "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
                    data, 5, tree, NULL));
    assert_true(first_f32(tk_tree_get(tree, "x")) == 1);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void headers_without_tensors_are_read(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    tk_metadata *metadata = tk_metadata_new();
    assert_ok(parse(ctx, "{}", NULL, 0, tree, NULL));
    assert_ok(parse(ctx, "{\"__metadata__\":{\"k\":\"v\"}}", NULL, 0, tree, metadata));
    assert_ok(parse(ctx, "{\"__metadata__\":null}", NULL, 0, tree, metadata));
    assert_string_equal(tk_metadata_get(metadata, "k"), "v");
    assert_int_equal(tk_tree_count(tree), 0);
    tk_metadata_free(metadata);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

typedef struct refusal {
    const char *header;
    size_t data_bytes;
    tk_status status;
    const char *text;
} refusal;

#define X_IS(body) "{\"x\":{" body "}}"

static const refusal refusals[] = {
    {"", 0, TK_FORMAT_ERROR, "must begin with '{'"},
    {" {}", 0, TK_FORMAT_ERROR, "must begin with '{'"},
    {"{", 0, TK_FORMAT_ERROR, "JSON is expected, at line 1"},
    {"{}x", 0, TK_FORMAT_ERROR, "JSON is expected"},
    {"{}", 1, TK_FORMAT_ERROR, "the tensors need 0 bytes of data, the file has 1"},
    {"{\"__metadata__\":3}", 0, TK_FORMAT_ERROR,
     "__metadata__ must be an object, found an integer"},
    {"{\"__metadata__\":{\"a\":1}}", 0, TK_FORMAT_ERROR,
     "\"a\" must be a string, found an integer"},
    {"{\"x\":[]}", 0, TK_FORMAT_ERROR, "tensor \"x\" must be an object, found an array"},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, TK_FORMAT_ERROR,
     "an empty name"},
    {"{\"a\\u0000b\":{}}", 0, TK_FORMAT_ERROR, "JSON is expected"},
    {X_IS("\"shape\":[1],\"data_offsets\":[0,4]"), 4, TK_FORMAT_ERROR,
     "dtype must be a string, found nothing"},
    {X_IS("\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, TK_DTYPE_ERROR,
     "tensor \"x\" has dtype \"F8_E4M3\""},
    {X_IS("\"dtype\":\"float32\",\"shape\":[1],\"data_offsets\":[0,4]"), 4, TK_DTYPE_ERROR,
     "\"float32\""},
    {X_IS("\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]"), 4, TK_FORMAT_ERROR,
     "shape must be an array of integers, found an integer"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, TK_FORMAT_ERROR,
     "shape must be an array of integers, found a number"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), 4, TK_FORMAT_ERROR,
     "axis 0 has length -1"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"
          "\"data_offsets\":[0,4]"),
     4, TK_SHAPE_ERROR, "17 axes, at most 16"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), 4,
     TK_FORMAT_ERROR, "do not fit 63 bits"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,4]"), 4,
     TK_FORMAT_ERROR, "do not fit 63 bits"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]"), 4,
     TK_FORMAT_ERROR, "JSON is expected"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]"), 4, TK_FORMAT_ERROR,
     "data_offsets must be two integers"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]"), 4, TK_FORMAT_ERROR,
     "data_offsets [0, 8], the file has 4 bytes"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), 4, TK_FORMAT_ERROR,
     "data_offsets [4, 0]"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]"), 4, TK_FORMAT_ERROR,
     "data_offsets [-4, 0]"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]"), 4, TK_FORMAT_ERROR,
     "dtype and shape need 8 bytes, data_offsets give 4"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]"), 8, TK_FORMAT_ERROR,
     "begins at byte 4 of the data, 0 is expected: a gap"},
    {X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 8, TK_FORMAT_ERROR,
     "the tensors need 4 bytes of data, the file has 8"},
    {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
     6, TK_FORMAT_ERROR, "tensor \"y\" begins at byte 2 of the data, 4 is expected: an overlap"},
    {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
     2, TK_FORMAT_ERROR, "duplicate object key"},
    {X_IS("\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, TK_FORMAT_ERROR,
     "truth value 1 is 2, 0 or 1 expected"},
};

static void lies_are_refused_with_the_reason(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    unsigned char data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        tk_status status = parse(ctx, r->header, data, r->data_bytes, tree, NULL);
        if (status != r->status) print_error("%s\n", r->header);
        assert_fails(status, r->status, r->text);
        assert_fails(status, r->status, "m.safetensors");
        assert_int_equal(tk_tree_count(tree), 0);
    }
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    float value = 1;
    blob b = make_blob(X_IS("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), &value, 4);
    for (size_t n = 0; n < b.count; n++)
        assert_fails(tk_safetensors_parse(ctx, "cut", b.bytes, n, tree, NULL), TK_FORMAT_ERROR,
                     "cut: ");
    b.bytes[7] = 1;
    assert_fails(tk_safetensors_parse(ctx, "big", b.bytes, b.count, tree, NULL), TK_FORMAT_ERROR,
                 "at most 100000000 are allowed");
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static tk_tree *mixed_tree(tk_context *ctx) {
    tk_tree *tree = tk_tree_new();
    tk_scope scope = tk_scope_open(ctx);
    int8_t small[3] = {1, -2, 3};
    double wide[2] = {0.5, -0.0};
    float rows[6] = {0, 1, 2, 3, 4, 5};
    assert_ok(tk_tree_set(tree, "small", tk_from_data(ctx, small, TK_SHAPE(3), TK_INT8)));
    assert_ok(tk_tree_set(tree, "wide", tk_from_data(ctx, wide, TK_SHAPE(2), TK_FLOAT64)));
    tk_array turned =
        tk_transpose(tk_from_data(ctx, rows, TK_SHAPE(2, 3), TK_FLOAT32), TK_AXES(1, 0));
    assert_ok(tk_tree_set(tree, "turned \"\xc3\xa9\\\n", turned));
    assert_ok(tk_tree_set(tree, "none", tk_zeros(ctx, TK_SHAPE(2, 0), TK_INT16)));
    assert_ok(tk_tree_set(tree, "lazy", tk_add(tk_scalar(ctx, 1), tk_scalar(ctx, 2))));
    tk_scope_close(scope);
    return tree;
}

static void assert_same_trees(const tk_tree *a, const tk_tree *b) {
    assert_int_equal(tk_tree_count(a), tk_tree_count(b));
    for (size_t i = 0; i < tk_tree_count(a); i++) {
        char left[256], right[256];
        tk_array x = tk_tree_at(a, i), y = tk_tree_at(b, i);
        size_t bytes = (size_t)tk_array_size(x) * tk_dtype_size(tk_array_dtype(x));
        assert_string_equal(tk_tree_name(a, i), tk_tree_name(b, i));
        assert_int_equal(tk_array_dtype(x), tk_array_dtype(y));
        assert_int_equal(tk_array_rank(x), tk_array_rank(y));
        for (int axis = 0; axis < tk_array_rank(x); axis++)
            assert_int_equal(tk_array_dim(x, axis), tk_array_dim(y, axis));
        assert_true(bytes <= sizeof left);
        assert_ok(tk_copy_out(x, left, bytes));
        assert_ok(tk_copy_out(y, right, bytes));
        assert_memory_equal(left, right, bytes);
    }
}

static void what_is_saved_is_loaded(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = mixed_tree(ctx), *loaded = tk_tree_new();
    tk_metadata *metadata = tk_metadata_new(), *found = tk_metadata_new();
    assert_ok(tk_metadata_set(metadata, "format", "np"));
    assert_ok(tk_metadata_set(metadata, "format", "pt"));
    const char *path = in_folder("mixed.safetensors");
    assert_ok(tk_safetensors_save(path, tree, metadata));
    assert_ok(tk_safetensors_load(ctx, path, loaded, found));
    assert_same_trees(tree, loaded);
    assert_int_equal(tk_metadata_count(found), 1);
    assert_string_equal(tk_metadata_get(found, "format"), "pt");
    assert_int_equal(count_entries(folder, ".tiki"), 0);
    tk_metadata_free(metadata);
    tk_metadata_free(found);
    tk_tree_free(tree);
    tk_tree_free(loaded);
    tk_context_release(ctx);
}

static void the_bytes_written_are_these(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    tk_scope scope = tk_scope_open(ctx);
    uint8_t byte = 5;
    float value = 1;
    assert_ok(tk_tree_set(tree, "b", tk_from_data(ctx, &byte, TK_SHAPE(1), TK_UINT8)));
    assert_ok(tk_tree_set(tree, "f", tk_from_data(ctx, &value, TK_SCALAR, TK_FLOAT32)));
    tk_scope_close(scope);
    assert_ok(tk_safetensors_save(in_folder("golden"), tree, NULL));
    static const char expected[] =
        "\x70\0\0\0\0\0\0\0{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}       "
        "\0\0\x80\x3f\5";
    size_t bytes;
    char *data = read_all(in_folder("golden"), &bytes);
    assert_int_equal(bytes, sizeof expected - 1);
    assert_memory_equal(data, expected, bytes);
    tk_text_free(data);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void arrays_outlive_tree_and_file(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = mixed_tree(ctx), *loaded = tk_tree_new();
    const char *path = in_folder("gone.safetensors");
    assert_ok(tk_safetensors_save(path, tree, NULL));
    assert_ok(tk_safetensors_load(ctx, path, loaded, NULL));
    tk_array wide = tk_keep(tk_tree_get(loaded, "wide"));
    tk_tree_free(loaded);
    tk_tree_free(tree);
    assert_int_equal(unlink(path), 0);
    double values[2];
    assert_ok(tk_copy_out(wide, values, sizeof values));
    assert_true(values[0] == 0.5 && values[1] == 0 && signbit(values[1]));
    tk_array twice = tk_add(wide, wide);
    tk_release(wide);
    assert_ok(tk_copy_out(twice, values, sizeof values));
    assert_true(values[0] == 1);
    tk_release(twice);
    tk_context_release(ctx);
}

static long mapped_lines(const char *text) {
    char line[4096];
    long count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) count += strstr(line, text) != NULL;
    fclose(maps);
    return count;
}

static void a_mapping_ends_with_its_last_array(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = mixed_tree(ctx);
    const char *path = in_folder("mapped.safetensors");
    assert_ok(tk_safetensors_save(path, tree, NULL));
    for (int i = 0; i < 1000; i++) {
        tk_tree *loaded = tk_tree_new();
        assert_ok(tk_safetensors_load(ctx, path, loaded, NULL));
        assert_int_equal(mapped_lines("mapped.safetensors"), 1);
        tk_tree_free(loaded);
    }
    assert_int_equal(mapped_lines("mapped.safetensors"), 0);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void saving_over_the_loaded_file_is_safe(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = mixed_tree(ctx), *loaded = tk_tree_new();
    const char *path = in_folder("self.safetensors");
    assert_ok(tk_safetensors_save(path, tree, NULL));
    assert_ok(tk_safetensors_load(ctx, path, loaded, NULL));
    assert_ok(tk_safetensors_save(path, loaded, NULL));
    assert_same_trees(tree, loaded);
    tk_tree_clear(loaded);
    assert_ok(tk_safetensors_load(ctx, path, loaded, NULL));
    assert_same_trees(tree, loaded);
    tk_tree_free(tree);
    tk_tree_free(loaded);
    tk_context_release(ctx);
}

static void views_of_one_buffer_are_saved_apart(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new(), *loaded = tk_tree_new();
    tk_scope scope = tk_scope_open(ctx);
    float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    tk_array all = tk_from_data(ctx, values, TK_SHAPE(8), TK_FLOAT32);
    tk_array tail = tk_slice(all, TK_AXES(5), TK_AXES(8), TK_AXES(1));
    assert_ok(tk_tree_set(tree, "all", all));
    assert_ok(tk_tree_set(tree, "tail", tail));
    assert_ok(tk_tree_set(tree, "back", tk_slice(all, TK_AXES(7), TK_AXES(3), TK_AXES(-1))));
    tk_scope_close(scope);
    assert_ok(tk_safetensors_save(in_folder("views"), tree, NULL));
    assert_ok(tk_safetensors_load(ctx, in_folder("views"), loaded, NULL));
    assert_same_trees(tree, loaded);
    float tail_values[3], back_values[4];
    assert_ok(tk_copy_out(tk_tree_get(loaded, "tail"), tail_values, sizeof tail_values));
    assert_ok(tk_copy_out(tk_tree_get(loaded, "back"), back_values, sizeof back_values));
    assert_true(tail_values[0] == 5 && back_values[0] == 7 && back_values[3] == 4);
    tk_tree_free(tree);
    tk_tree_free(loaded);
    tk_context_release(ctx);
}

static void shards_are_written_and_found(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = mixed_tree(ctx), *loaded = tk_tree_new();
    assert_int_equal(mkdir(in_folder("sharded"), 0777), 0);
    assert_ok(tk_safetensors_save_sharded(in_folder("sharded"), tree, NULL, 20));
    assert_int_equal(count_entries(in_folder("sharded"), "model-0000"), 3);
    assert_ok(tk_safetensors_load(ctx, in_folder("sharded"), loaded, NULL));
    assert_same_trees(tree, loaded);
    tk_tree_clear(loaded);
    assert_ok(
        tk_safetensors_load(ctx, in_folder("sharded/model.safetensors.index.json"), loaded, NULL));
    assert_same_trees(tree, loaded);

    assert_ok(tk_safetensors_save_sharded(in_folder("sharded"), tree, NULL, 1000));
    assert_int_equal(count_entries(in_folder("sharded"), "model.safetensors"), 1);
    assert_int_equal(count_entries(in_folder("sharded"), "model.safetensors.index"), 0);
    tk_tree_clear(loaded);
    assert_ok(tk_safetensors_load(ctx, in_folder("sharded"), loaded, NULL));
    assert_same_trees(tree, loaded);
    assert_fails(tk_safetensors_save_sharded(folder, tree, NULL, 0), TK_INVALID_ARGUMENT,
                 "shard_bytes is 0");
    tk_tree_free(tree);
    tk_tree_free(loaded);
    tk_context_release(ctx);
}

static void an_index_that_lies_is_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"[]", "a JSON object is expected, found an array"},
        {"{}", "weight_map must be an object, found nothing"},
        {"{\"weight_map\":{\"x\":1}}", "must be a file name, found an integer"},
        {"{\"weight_map\":{\"x\":\"../y\"}}", "in the same folder, found \"../y\""},
        {"{\"weight_map\":{\"x\":\"\"}}", "in the same folder, found \"\""},
        {"{\"weight_map\":{\"x\":\"empty.st\",\"x\":\"empty.st\"}}", "duplicate object key"},
        {"{\"weight_map\":{\"x\":\"empty.st\"}}", "tensor \"x\" is not in \"empty.st\""},
    };
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new(), *empty = tk_tree_new();
    const char *index = in_folder("bad.index.json");
    assert_ok(tk_safetensors_save(in_folder("empty.st"), empty, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(tk_file_write(index, cases[i][0], strlen(cases[i][0])));
        assert_fails(tk_safetensors_load(ctx, index, tree, NULL), TK_FORMAT_ERROR, cases[i][1]);
        assert_fails(TK_FORMAT_ERROR, TK_FORMAT_ERROR, "bad.index.json");
    }
    const char *absent = "{\"weight_map\":{\"x\":\"absent.st\"}}";
    assert_ok(tk_file_write(index, absent, strlen(absent)));
    assert_fails(tk_safetensors_load(ctx, index, tree, NULL), TK_IO_ERROR, "absent.st");
    assert_int_equal(tk_tree_count(tree), 0);
    tk_tree_free(empty);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = tk_tree_new();
    assert_fails(tk_safetensors_load(NULL, "x", tree, NULL), TK_INVALID_ARGUMENT, "context");
    assert_fails(tk_safetensors_load(ctx, NULL, tree, NULL), TK_INVALID_ARGUMENT, "path");
    assert_fails(tk_safetensors_load(ctx, in_folder("absent"), tree, NULL), TK_IO_ERROR,
                 "cannot open: No such file");
    assert_fails(tk_safetensors_load(ctx, "examples", tree, NULL), TK_IO_ERROR,
                 "neither model.safetensors nor model.safetensors.index.json");
    assert_fails(tk_safetensors_load(ctx, "/dev/null", tree, NULL), TK_IO_ERROR, "regular file");
    assert_fails(tk_safetensors_save(in_folder("no/such"), tree, NULL), TK_IO_ERROR, "no/such");
    tk_scope scope = tk_scope_open(ctx);
    assert_ok(tk_tree_set(tree, "__metadata__", tk_scalar(ctx, 1)));
    assert_fails(tk_safetensors_save(in_folder("m"), tree, NULL), TK_INVALID_ARGUMENT,
                 "__metadata__");
    tk_tree_clear(tree);
    assert_ok(tk_tree_set(tree, "\xff", tk_scalar(ctx, 1)));
    assert_fails(tk_safetensors_save(in_folder("m"), tree, NULL), TK_INVALID_ARGUMENT,
                 "is not UTF-8");
    tk_scope_close(scope);
    assert_int_equal(access(in_folder("m"), F_OK), -1);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

/* Each allocation in turn is the first that fails: a typed error, and no leak (LeakSanitizer). */
static void out_of_memory_is_an_error(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_tree *tree = mixed_tree(ctx);
    const char *path = in_folder("memory.safetensors");
    assert_ok(tk_safetensors_save(path, tree, NULL));
    json_set_alloc_funcs(tk_malloc, tk_free);
    tk_status status = TK_OUT_OF_MEMORY;
    int64_t n = 0;
    while (status != TK_OK) {
        tk_tree *loaded = tk_tree_new();
        tk_alloc_fail_after(++n);
        status = tk_safetensors_load(ctx, path, loaded, NULL);
        tk_alloc_fail_after(0);
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY || status == TK_FORMAT_ERROR);
        if (status == TK_OK) assert_same_trees(tree, loaded);
        tk_tree_free(loaded);
    }
    assert_true(n > 20);
    status = TK_OUT_OF_MEMORY;
    for (n = 1; status != TK_OK; n++) {
        tk_alloc_fail_after(n);
        status = tk_safetensors_save(path, tree, NULL);
        tk_alloc_fail_after(0);
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
    }
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(count_entries(folder, ".tiki"), 0);
    tk_tree_free(tree);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_dtype_in_the_headers_order),
        cmocka_unit_test(misaligned_values_are_read),
        cmocka_unit_test(headers_without_tensors_are_read),
        cmocka_unit_test(lies_are_refused_with_the_reason),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(the_bytes_written_are_these),
        cmocka_unit_test(arrays_outlive_tree_and_file),
        cmocka_unit_test(a_mapping_ends_with_its_last_array),
        cmocka_unit_test(saving_over_the_loaded_file_is_safe),
        cmocka_unit_test(views_of_one_buffer_are_saved_apart),
        cmocka_unit_test(shards_are_written_and_found),
        cmocka_unit_test(an_index_that_lies_is_refused),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
