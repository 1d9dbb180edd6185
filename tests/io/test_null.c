/* NULL where files, metadata, checkpoints and logs need something. */
#include "support/null_check.h"
#include "tiki/checkpoint.h"
#include "tiki/export.h"
#include "tiki/gguf.h"
#include "tiki/io.h"

static void metadata(void **state) {
    (void)state;
    tk_metadata *m = tk_metadata_new();
    assert_ok(tk_metadata_set(m, "key", "value"));
    gives_status(tk_metadata_set(P(m), P("key"), P("value")));
    gives(tk_metadata_get(P(m), P("key")), NULL);
    gives(tk_metadata_count(P(m)), 0);
    gives(tk_metadata_key(P(m), 0), NULL);
    gives(tk_metadata_value(P(m), 0), NULL);
    gives_nothing(tk_metadata_free(P(m)));
    assert_null(tk_metadata_key(m, 1));
    assert_null(tk_metadata_value(m, 1));
    tk_metadata_free(m);
}

static void array_files(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_tree *tree = tk_tree_new();
    tk_array array;
    gives_status(tk_safetensors_load(P(context), P("x"), P(tree), NULL));
    gives_status(tk_safetensors_parse(P(context), NULL, P("x"), 1, P(tree), NULL));
    gives_status(tk_safetensors_save(P("x"), P(tree), NULL));
    gives_status(tk_safetensors_save_sharded(P("x"), P(tree), NULL, 1));
    gives_status(tk_npy_load(P(context), P("x"), P(&array)));
    gives_status(tk_npy_parse(P(context), NULL, P("x"), 1, P(&array)));
    gives_status(tk_npy_save(P("x"), TK_NO_ARRAY));
    gives_status(tk_npz_load(P(context), P("x"), P(tree)));
    gives_status(tk_npz_parse(P(context), NULL, P("x"), 1, P(tree)));
    gives_status(tk_npz_save(P("x"), P(tree), false));
    tk_tree_free(tree);
    tk_context_release(context);
}

static void whole_files_and_runs(void **state) {
    (void)state;
    char *data;
    size_t bytes;
    tk_checkpoint_writer *checkpoint = NULL;
    tk_run_log *log = NULL;
    gives_status(tk_file_read(P("x"), P(&data), P(&bytes)));
    gives_status(tk_file_write(P("x"), P("y"), 1));
    gives_status(tk_checkpoint_begin(P("x"), 1, P(&checkpoint)));
    gives_status(tk_checkpoint_commit(P(checkpoint), 1));
    gives_status(tk_checkpoint_latest(P("x"), NULL, NULL));
    gives(tk_checkpoint_path(P(checkpoint)), NULL);
    gives_nothing(tk_checkpoint_abandon(P(checkpoint)));
    gives_status(tk_run_log_open(P("x"), 1, P(&log)));
    gives_status(tk_run_log_append(P(log), "{}"));
    gives_status(tk_run_log_sync(P(log)));
    gives_nothing(tk_run_log_close(P(log)));
}

static void gguf_files(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_tree *tree = tk_tree_new();
    tk_gguf_values *v = tk_gguf_values_new();
    size_t bytes;
    gives_status(tk_gguf_set_array(P(v), P("key"), TK_NO_ARRAY));
    gives_status(tk_gguf_set_text(P(v), P("key"), P("text"), 4));
    gives_status(tk_gguf_set_texts(P(v), P("key")));
    gives_status(tk_gguf_add_text(P(v), P("key"), P("text"), 4));
    gives(tk_gguf_count(P(v)), 0);
    gives(tk_gguf_key(P(v), 0), NULL);
    gives(tk_gguf_kind_of(P(v), 0), TK_GGUF_ARRAY);
    gives(tk_gguf_array(P(v), 0).node, NULL);
    gives(tk_gguf_n_texts(P(v), 0), 0);
    gives(tk_gguf_text(P(v), 0, 0, &bytes), NULL);
    gives(tk_gguf_find(P(v), "key"), 0);
    gives_status(tk_gguf_load(P(context), P("x"), P(tree), NULL));
    gives_status(tk_gguf_parse(P(context), NULL, P("x"), 1, P(tree), NULL));
    gives_status(tk_gguf_save(P("x"), P(tree), NULL));
    gives_nothing(tk_gguf_values_free(P(v)));
    tk_gguf_values_free(v);
    tk_tree_free(tree);
    tk_context_release(context);
}

static tk_status same(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return tk_arrays_push(results, tk_keep(args[0]));
}

static void exported_functions(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_exporter *exporter = tk_exporter_new(context);
    tk_exported *exported = NULL;
    tk_array x = tk_ones(context, TK_SHAPE(2), TK_FLOAT32);
    tk_arrays list = {0};
    gives(tk_exporter_new(P(context)), NULL);
    gives_status(tk_exporter_add(P(exporter), F(same), NULL, P(&x), 1, NULL, 0, false));
    gives_status(tk_exporter_save(P(exporter), P("x"), NULL));
    gives_nothing(tk_exporter_free(P(exporter)));
    gives_status(tk_exported_load(P(context), P("x"), P(&exported)));
    gives_status(tk_exported_parse(P(context), NULL, P("x"), 1, P(&exported)));
    gives_nothing(tk_exported_metadata(P(exported)));
    gives_status(tk_exported_call(P(exported), &x, 1, NULL, 0, P(&list)));
    gives_nothing(tk_exported_free(P(exported)));
    tk_exporter_free(exporter);
    tk_release(x);
    tk_context_release(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata),
        cmocka_unit_test(array_files),
        cmocka_unit_test(whole_files_and_runs),
        cmocka_unit_test(gguf_files),
        cmocka_unit_test(exported_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
