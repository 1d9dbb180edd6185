/* The memory of the process stays flat over ten thousand small steps of every kind. Sanitizers keep
 * freed memory aside on purpose, so under them only the steps run. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "array/context.h"
#include "support/arrays.h"
#include "support/sanitizer.h"
#include "tiki/transforms.h"

#define STEPS (SUPPORT_ASAN || SUPPORT_TSAN ? 500 : 10000)
#define WARM_UP (STEPS / 10)
#define SLACK_KB 512

static long resident_kb(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &all, &pages), 2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static tk_status loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_sum(tk_square(tk_tanh(args[0])), TK_ALL_AXES, false));
}

static void evaluate(tk_context *ctx, int step) {
    tk_array x = tk_arange(ctx, 0, 64, 1, TK_FLOAT32);
    tk_array y = tk_softmax(tk_multiply(x, tk_scalar(ctx, step)), TK_AXES(0));
    assert_ok(tk_eval(tk_sum(y, TK_ALL_AXES, false)));
}

static void differentiate(tk_context *ctx, int step) {
    tk_array x = tk_multiply(tk_ones(ctx, TK_SHAPE(16), TK_FLOAT32), tk_scalar(ctx, step));
    tk_arrays gradients = {0}, rows = {0};
    assert_ok(tk_grad(ctx, loss, NULL, &x, 1, NULL, 0, &gradients));
    assert_ok(tk_eval(gradients.items[0]));
    assert_ok(tk_vmap(ctx, loss, NULL, &x, 1, NULL, NULL, &rows));
    assert_ok(tk_eval(rows.items[0]));
    tk_arrays_clear(&gradients);
    tk_arrays_clear(&rows);
}

static void show(tk_context *ctx, int step) {
    tk_array x = tk_add(tk_arange(ctx, 0, 8, 1, TK_FLOAT32), tk_scalar(ctx, step));
    char *graph = NULL, *text = NULL;
    assert_ok(tk_graph_print(&x, 1, &graph));
    assert_ok(tk_format(x, &text));
    tk_text_free(graph);
    tk_text_free(text);
}

static void fail_each_time(tk_context *ctx, int step) {
    tk_array x = tk_zeros(ctx, TK_SHAPE(2, 3 + step % 7), TK_FLOAT32);
    tk_array wrong = tk_add(x, tk_zeros(ctx, TK_SHAPE(11, 13), TK_FLOAT32));
    assert_int_equal(tk_eval(wrong), TK_SHAPE_ERROR);
    tk_array at = tk_from_data(ctx, (int64_t[]){9}, TK_SHAPE(1), TK_INT64);
    assert_int_equal(tk_eval(tk_take(x, at, 0)), TK_INDEX_ERROR);
}

static void queue(tk_context *ctx, int step) {
    tk_array x = tk_full(tk_scalar(ctx, step), TK_SHAPE(100), TK_FLOAT32);
    tk_array y = tk_exp(tk_negative(x)), z = tk_add(y, y);
    assert_ok(tk_async_eval(&y, 1));
    assert_ok(tk_async_eval(&z, 1));
    if (step % 16 == 0) assert_ok(tk_synchronize(ctx));
}

static void draw(tk_context *ctx, int step) {
    (void)step;
    assert_ok(tk_eval(tk_random_normal(ctx, TK_SHAPE(10), TK_FLOAT32, 0, 1, TK_NO_ARRAY)));
}

static void check_flat(const char *what, void (*step)(tk_context *ctx, int number)) {
    tk_context *ctx = make_context();
    long before = 0;
    size_t nodes = 0;
    for (int i = 0; i < STEPS; i++) {
        tk_scope scope = tk_scope_open(ctx);
        step(ctx, i);
        tk_scope_close(scope);
        if (i == WARM_UP) {
            assert_ok(tk_synchronize(ctx));
            before = resident_kb();
            nodes = ctx->graph.n_nodes;
        }
    }
    assert_ok(tk_synchronize(ctx));
    long grown = resident_kb() - before;
    if (!SUPPORT_ASAN && !SUPPORT_TSAN && grown > SLACK_KB) {
        print_error("%s: %ld KB more after %d steps\n", what, grown, STEPS - WARM_UP);
        fail();
    }
    assert_true(ctx->graph.n_nodes <= nodes + 2);
    tk_context_release(ctx);
}

static void memory_stays_flat(void **state) {
    (void)state;
    check_flat("evaluations", evaluate);
    check_flat("gradients and batches", differentiate);
    check_flat("texts", show);
    check_flat("errors", fail_each_time);
    check_flat("queued evaluations", queue);
    check_flat("random numbers", draw);
}

static void contexts_leave_nothing(void **state) {
    (void)state;
    long before = 0;
    for (int i = 0; i < STEPS / 20; i++) {
        tk_context *ctx = make_context();
        tk_scope scope = tk_scope_open(ctx);
        evaluate(ctx, i);
        tk_scope_close(scope);
        tk_context_release(ctx);
        if (i == WARM_UP / 20) before = resident_kb();
    }
    if (!SUPPORT_ASAN && !SUPPORT_TSAN) assert_true(resident_kb() - before <= SLACK_KB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_stays_flat),
        cmocka_unit_test(contexts_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
