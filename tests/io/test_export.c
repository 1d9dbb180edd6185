/* Exported functions in C: names in any order, several signatures, any shape, NULL. Files that lie
 * are in tests/python/test_export.py. */
#define _GNU_SOURCE

#include <string.h>

#include "io_check.h"
#include "tiki/export.h"

/* scale * (a + held) and mean(a); arguments a, scale. */
static tk_status sample(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    tk_array *held = self;
    (void)n_args;
    tk_arrays_push(results, tk_multiply(args[1], tk_add(args[0], *held)));
    return tk_arrays_push(results, tk_mean(args[0], TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status fails(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)args, (void)n_args, (void)results;
    return tk_error_set(TK_NOT_FOUND, "nothing to see");
}

static tk_array ones(tk_context *ctx, int64_t n) { return tk_ones(ctx, TK_SHAPE(n), TK_FLOAT32); }

static void check_call(tk_context *ctx, const tk_exported *exported, int64_t n, bool by_name) {
    const char *names[] = {"scale", "a"};
    tk_array scale = tk_astype(tk_scalar(ctx, 3), TK_FLOAT32);
    tk_array args[] = {by_name ? scale : ones(ctx, n), by_name ? ones(ctx, n) : scale};
    tk_arrays results = {0};
    assert_ok(tk_exported_call(exported, args, 2, names, by_name ? 2 : 1, &results));
    assert_int_equal(results.count, 2);
    assert_int_equal(tk_array_size(results.items[0]), n);
    double sum;
    assert_ok(tk_item(tk_sum(results.items[0], TK_ALL_AXES, TK_DROPDIMS), &sum));
    assert_true(sum == 9 * (double)n);
    assert_ok(tk_item(results.items[1], &sum));
    assert_true(sum == 1);
    tk_arrays_clear(&results);
}

static void round_trip(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    float two = 2;
    tk_array held = tk_from_data(ctx, &two, TK_SCALAR, TK_FLOAT32);
    tk_array args[] = {ones(ctx, 4), tk_astype(tk_scalar(ctx, 3), TK_FLOAT32)};
    const char *path = in_folder("f.tiki");
    tk_exporter *exporter = tk_exporter_new(ctx);
    const char *names[] = {"a", "scale"};
    assert_ok(tk_exporter_add(exporter, sample, &held, args, 2, names + 1, 1, true));
    assert_ok(tk_exporter_add(exporter, sample, &held, args, 2, names, 2, false));
    assert_int_equal(tk_exporter_add(exporter, sample, &held, args, 2, names, 2, true),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_exporter_add(exporter, fails, NULL, args, 1, NULL, 0, true), TK_NOT_FOUND);
    assert_int_equal(tk_exporter_add(exporter, sample, &held, args, 2, names, 3, true),
                     TK_INVALID_ARGUMENT);
    assert_ok(tk_exporter_save(exporter, path, "mine"));
    tk_exporter_free(exporter);
    tk_exported *exported;
    assert_ok(tk_exported_load(ctx, path, &exported));
    assert_string_equal(tk_exported_metadata(exported), "mine");
    check_call(ctx, exported, 4, false);
    check_call(ctx, exported, 7, false);
    check_call(ctx, exported, 4, true);
    tk_arrays results = {0};
    assert_int_equal(tk_exported_call(exported, args, 2, names, 0, &results), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "float32[4], scale: float32[]"));
    tk_exported_free(exported);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void nothing_given(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_exporter *exporter = tk_exporter_new(ctx);
    tk_exported *exported = NULL;
    tk_arrays results = {0};
    assert_null(tk_exporter_new(NULL));
    assert_int_equal(tk_exporter_add(NULL, sample, NULL, NULL, 0, NULL, 0, false),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_exporter_add(exporter, NULL, NULL, NULL, 0, NULL, 0, false),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_exporter_add(exporter, sample, NULL, NULL, 2, NULL, 0, false),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_exporter_save(exporter, NULL, NULL), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_exported_load(ctx, NULL, &exported), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_exported_parse(NULL, NULL, "x", 1, &exported), TK_INVALID_ARGUMENT);
    assert_fails(tk_exported_parse(ctx, NULL, "x", 1, &exported), TK_FORMAT_ERROR, "memory: ");
    assert_int_equal(tk_exported_call(NULL, NULL, 0, NULL, 0, &results), TK_INVALID_ARGUMENT);
    assert_string_equal(tk_exported_metadata(NULL), "");
    tk_exporter_free(NULL);
    tk_exported_free(NULL);
    tk_exporter_free(exporter);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(nothing_given),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
