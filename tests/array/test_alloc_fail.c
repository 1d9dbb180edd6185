/* When memory runs out: a program that uses most of the library runs with the n-th allocation and
 * all after it failing, for every n. It must end with a typed error, lose nothing, and run again
 * once there is memory. The same with the memory of arrays, through a user's hooks. */
#include <stdlib.h>
#include <string.h>

#include "array/context.h"
#include "base/alloc.h"
#include "base/error.h"
#include "support/arrays.h"
#include "tiki/transforms.h"

/* ---- the program ---- */

static tk_status loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_array hidden = tk_tanh(tk_matmul(args[0], args[1]));
    tk_array spread = tk_std(tk_sort(hidden, -1), TK_AXES(-1), TK_DROPDIMS, 0);
    return tk_arrays_push(results, tk_sum(tk_square(spread), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status row_loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_logsumexp(args[0], TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status evaluate_all(const tk_arrays *list, tk_status status) {
    return status == TK_OK ? tk_eval_all(list->items, list->count) : status;
}

static tk_status differentiate(tk_context *ctx, const tk_array *args) {
    tk_arrays values = {0}, gradients = {0}, tangents = {0};
    int both[] = {0, 1};
    tk_status status = tk_value_and_grad(ctx, loss, NULL, args, 2, both, 2, &values, &gradients);
    status = evaluate_all(&gradients, status);
    if (status == TK_OK) status = tk_jvp(ctx, loss, NULL, args, 2, args, &values, &tangents);
    status = evaluate_all(&tangents, status);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tk_arrays_clear(&tangents);
    return status;
}

static tk_status map_and_checkpoint(tk_context *ctx, const tk_array *args) {
    tk_arrays rows = {0}, again = {0};
    tk_status status = tk_vmap(ctx, row_loss, NULL, args, 1, NULL, NULL, &rows);
    status = evaluate_all(&rows, status);
    if (status == TK_OK) status = tk_checkpoint(ctx, loss, NULL, NULL, args, 2, &again);
    status = evaluate_all(&again, status);
    tk_custom custom = {.size = sizeof custom, .function = row_loss};
    if (status == TK_OK) status = tk_custom_call(ctx, &custom, args, 1, &again);
    status = evaluate_all(&again, status);
    tk_arrays_clear(&rows);
    tk_arrays_clear(&again);
    return status;
}

static tk_status print_and_parse(tk_context *ctx, tk_array y) {
    char *graph = NULL, *values = NULL;
    tk_arrays inputs = {0}, outputs = {0};
    tk_status status = tk_graph_print(&y, 1, &graph);
    if (status == TK_OK) status = tk_graph_inputs(&y, 1, &inputs);
    if (status == TK_OK) status = tk_graph_parse(ctx, graph, inputs.items, inputs.count, &outputs);
    status = evaluate_all(&outputs, status);
    if (status == TK_OK) status = tk_format(y, &values);
    tk_text_free(graph);
    tk_text_free(values);
    tk_arrays_clear(&inputs);
    tk_arrays_clear(&outputs);
    return status;
}

static tk_status index_and_draw(tk_context *ctx, tk_array x) {
    int64_t at[] = {2, 0};
    tk_array indices = tk_from_data(ctx, at, TK_SHAPE(2), TK_INT64);
    tk_arrays parts = {0};
    tk_status status = tk_split(x, TK_AXES(1, 3), 0, &parts);
    if (status == TK_OK) status = tk_eval(tk_concatenate(parts.items, parts.count, 0));
    tk_arrays_clear(&parts);
    if (status == TK_OK) status = tk_eval(tk_take(x, indices, 0));
    if (status == TK_OK) status = tk_eval(tk_put_along_axis(x, tk_argsort(x, 0), x, 0));
    tk_array drawn = tk_random_normal(ctx, TK_SHAPE(5, 5), TK_FLOAT32, 0, 1, TK_NO_ARRAY);
    if (status == TK_OK) status = tk_async_eval(&drawn, 1);
    if (status == TK_OK) status = tk_eval(tk_einsum("ij,jk->ki", (tk_array[]){x, drawn}, 2));
    return status;
}

static tk_status run_in_scope(tk_context *ctx) {
    float numbers[20];
    for (int i = 0; i < 20; i++) numbers[i] = (float)(i * 7 % 11) / 8;
    tk_array x = tk_from_data(ctx, numbers, TK_SHAPE(4, 5), TK_FLOAT32);
    tk_array w = tk_from_data(ctx, numbers, TK_SHAPE(5, 3), TK_FLOAT32);
    tk_array args[] = {x, w};
    TK_TRY(tk_array_status(x));
    TK_TRY(tk_array_status(w));
    TK_TRY(print_and_parse(ctx, tk_softmax(tk_matmul(x, w), TK_AXES(-1))));
    TK_TRY(differentiate(ctx, args));
    TK_TRY(map_and_checkpoint(ctx, args));
    return index_and_draw(ctx, x);
}

static tk_status run(tk_context *ctx) {
    tk_scope scope = tk_scope_open(ctx);
    tk_status status = run_in_scope(ctx);
    tk_status finished = tk_synchronize(ctx);
    tk_scope_close(scope);
    return status == TK_OK ? finished : status;
}

/* ---- failing ---- */

/* What stays while the context does: the key and the error of last resort, made by a first run. */
typedef struct levels {
    size_t nodes, bytes;
} levels;

static levels measure(tk_context *ctx) {
    tk_random_seed(ctx, 1);
    return (levels){ctx->graph.n_nodes, tk_device_memory(ctx->sites[0].device).active};
}

static void check_levels(tk_context *ctx, levels before, long long n) {
    levels after = measure(ctx);
    if (after.nodes != before.nodes || after.bytes != before.bytes)
        print_error("allocation %lld: %zu nodes and %zu bytes, expected %zu and %zu\n", n,
                    after.nodes, after.bytes, before.nodes, before.bytes);
    assert_int_equal(after.nodes, before.nodes);
    assert_int_equal(after.bytes, before.bytes);
}

static void check_refusal(tk_status status, long long n) {
    if (status != TK_OK && status != TK_OUT_OF_MEMORY)
        print_error("allocation %lld: %s: %s\n", n, tk_status_name(status), tk_error_message());
    assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
}

static void records_of_the_library_run_out(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    assert_ok(run(ctx));
    levels before = measure(ctx);
    int64_t n = 1;
    for (tk_status status = TK_OUT_OF_MEMORY; status != TK_OK; n++) {
        tk_alloc_fail_after(n);
        status = run(ctx);
        tk_alloc_fail_after(0);
        check_refusal(status, (long long)n);
        check_levels(ctx, before, (long long)n);
        if (n % 50 == 1) assert_ok(run(ctx));
    }
    assert_true(n > 100);
    assert_ok(run(ctx));
    tk_context_release(ctx);
}

static void contexts_run_out(void **state) {
    (void)state;
    tk_status status = TK_OUT_OF_MEMORY;
    for (int64_t n = 1; status != TK_OK; n++) {
        tk_context *ctx = NULL;
        tk_alloc_fail_after(n);
        status = tk_context_create(NULL, &ctx);
        tk_alloc_fail_after(0);
        check_refusal(status, (long long)n);
        assert_true((ctx != NULL) == (status == TK_OK));
        tk_context_release(ctx);
    }
}

typedef struct source {
    int64_t left; /* allocations that succeed; below 0: all */
    int64_t held;
} source;

static void *take(void *user, size_t bytes, size_t alignment) {
    source *from = user;
    if (from->left == 0) return NULL;
    if (from->left > 0) from->left--;
    from->held++;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void give_back(void *user, void *memory, size_t bytes) {
    source *from = user;
    (void)bytes;
    from->held--;
    free(memory);
}

static void memory_of_arrays_runs_out(void **state) {
    (void)state;
    source from = {.left = -1};
    tk_context_options options = {.size = sizeof options, .hooks = {take, give_back, &from}};
    tk_context *ctx = NULL;
    assert_ok(tk_context_create(&options, &ctx));
    assert_ok(run(ctx));
    levels before = measure(ctx);
    tk_status status = TK_OUT_OF_MEMORY;
    for (int64_t n = 0; status != TK_OK; n++) {
        tk_device_clear_cache(tk_context_device(ctx));
        from.left = n;
        status = run(ctx);
        from.left = -1;
        check_refusal(status, (long long)n);
        check_levels(ctx, before, (long long)n);
        if (n % 5 == 0) assert_ok(run(ctx));
    }
    tk_context_release(ctx);
    assert_int_equal(from.held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_the_library_run_out),
        cmocka_unit_test(contexts_run_out),
        cmocka_unit_test(memory_of_arrays_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
