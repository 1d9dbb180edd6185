/* One context in many threads: building, evaluating, differentiating, formatting, saving; forks
 * while others evaluate; interruptions with evaluations queued behind; threads that come and go. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "array/context.h"
#include "support/arrays.h"
#include "support/patience.h"
#include "support/sanitizer.h"
#include "tiki/io.h"
#include "tiki/transforms.h"

#define THREADS 8

/* ---- everything at once ---- */

typedef struct worker {
    tk_context *ctx;
    tk_array common; /* 0, 1, ..., 99, perhaps not evaluated yet */
    int number, rounds;
    const char *failed;
} worker;

static tk_status weighted_square(void *self, const tk_array *args, size_t n_args,
                                 tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_sum(tk_multiply(args[0], args[0]), TK_ALL_AXES, TK_DROPDIMS));
}

static bool has_value(tk_array array, double expected) {
    double value = 0;
    return tk_item(array, &value) == TK_OK && value == expected;
}

static const char *evaluate(worker *w, int round) {
    tk_array y = w->common;
    double expected = 4950;
    for (int i = 0; i < 10; i++) {
        int by = (i + round) % 3; /* the same nodes as other threads build */
        y = tk_add(y, tk_scalar(w->ctx, by));
        expected += 100 * by;
    }
    if (round % 2 && tk_async_eval(&y, 1) != TK_OK) return "async";
    return has_value(tk_sum(y, TK_ALL_AXES, TK_DROPDIMS), expected) ? NULL : "value";
}

static const char *differentiate(worker *w) {
    tk_arrays values = {0}, gradients = {0};
    tk_status status = tk_value_and_grad(w->ctx, weighted_square, NULL, &w->common, 1, NULL, 0,
                                         &values, &gradients);
    bool right = status == TK_OK && has_value(values.items[0], 328350) &&
                 has_value(tk_sum(gradients.items[0], TK_ALL_AXES, TK_DROPDIMS), 9900);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    return right ? NULL : "gradient";
}

static const char *write_out(worker *w, int round) {
    tk_array y = tk_multiply(w->common, tk_scalar(w->ctx, w->number + round));
    char *text = NULL, *graph = NULL, path[256];
    if (tk_graph_print(&y, 1, &graph) != TK_OK) return "graph text";
    tk_text_free(graph);
    if (tk_format(y, &text) != TK_OK) return "format";
    tk_text_free(text);
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/threads-%d-%d.npy", folder ? folder : "/tmp", (int)getpid(),
             w->number);
    tk_array back = TK_NO_ARRAY;
    bool same = tk_npy_save(path, y) == TK_OK && tk_npy_load(w->ctx, path, &back) == TK_OK &&
                has_value(tk_array_equal(y, back, false), 1);
    remove(path);
    return same ? NULL : "file";
}

static void *work(void *arg) {
    worker *w = arg;
    tk_stream_id stream = TK_DEFAULT_STREAM;
    if (w->number % 2 && tk_stream_new(w->ctx, &stream) != TK_OK) w->failed = "stream";
    tk_stream_use(w->ctx, stream);
    for (int round = 0; round < w->rounds && !w->failed; round++) {
        tk_scope scope = tk_scope_open(w->ctx);
        w->failed = evaluate(w, round);
        if (!w->failed) w->failed = differentiate(w);
        if (!w->failed) w->failed = write_out(w, round);
        tk_scope_close(scope);
    }
    return NULL;
}

static void threads_do_everything_on_one_context(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    worker workers[THREADS];
    pthread_t threads[THREADS];
    tk_array common = tk_arange(ctx, 0, 100, 1, TK_FLOAT32);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ctx, common, i, SUPPORT_TSAN ? 10 : 40, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failed) print_error("thread %d: %s\n", i, workers[i].failed);
        assert_null(workers[i].failed);
    }
    tk_release(common);
    assert_ok(tk_synchronize(ctx));
    tk_context_release(ctx);
}

/* ---- forks ---- */

static atomic_bool stopping;

static void *keep_busy(void *arg) {
    worker *w = arg;
    for (int round = 0; !atomic_load(&stopping); round++) {
        tk_scope scope = tk_scope_open(w->ctx);
        int64_t at[] = {3, 400}; /* faults take a lock of their own */
        tk_array indices = tk_from_data(w->ctx, at, TK_SHAPE(2), TK_INT64);
        (void)evaluate(w, round);
        (void)tk_eval(tk_take(w->common, indices, 0));
        tk_scope_close(scope);
    }
    return NULL;
}

/* What a child does: told by the old context, at work with its own. */
static int live_as_child(tk_context *old, tk_array common) {
    alarm(SUPPORT_HANG_SECONDS);
    if (tk_eval(common) != TK_CONTEXT_ERROR) return 1;
    tk_array sum = tk_add(common, common);
    if (tk_array_status(sum) == TK_OK || tk_synchronize(old) != TK_CONTEXT_ERROR) return 2;
    tk_release(common);
    tk_context_release(old);
    if (!support_children_start_threads) return 0;
    tk_context *fresh = NULL;
    if (tk_context_create(NULL, &fresh) != TK_OK) return 3;
    worker w = {fresh, tk_arange(fresh, 0, 100, 1, TK_FLOAT32), 0, 1, NULL};
    int64_t at[] = {3, 400};
    tk_scope scope = tk_scope_open(fresh);
    if (evaluate(&w, 0) || evaluate(&w, 1) || differentiate(&w)) return 4;
    tk_array indices = tk_from_data(fresh, at, TK_SHAPE(2), TK_INT64);
    if (tk_eval(tk_take(w.common, indices, 0)) != TK_INDEX_ERROR) return 5;
    tk_array wide = tk_ones(fresh, TK_SHAPE(1000, 1000), TK_FLOAT32);
    if (!has_value(tk_sum(wide, TK_ALL_AXES, TK_DROPDIMS), 1e6)) return 6;
    tk_scope_close(scope);
    tk_release(w.common);
    tk_context_release(fresh);
    return 0;
}

static void forks_at_any_moment(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_array common = tk_arange(ctx, 0, 100, 1, TK_FLOAT32);
    worker busy[3];
    pthread_t threads[3];
    atomic_store(&stopping, false);
    for (int i = 0; i < 3; i++) {
        busy[i] = (worker){ctx, common, i, 0, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &busy[i]), 0);
    }
    for (int i = 0; i < (SUPPORT_TSAN || SUPPORT_ASAN ? 5 : 60); i++) {
        struct timespec pause = {0, 100000 + (i * 7919 % 13) * 70000};
        nanosleep(&pause, NULL);
        pid_t child = fork();
        if (child == 0) _exit(live_as_child(ctx, common));
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            print_error("fork %d: status %x\n", i, (unsigned)status);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    tk_release(common);
    tk_context_release(ctx);
}

/* ---- interruptions ---- */

static bool give_up(void *arg) {
    int *left = arg;
    return (*left)-- <= 0;
}

/* A chain that takes a while: products with a matrix whose rows add up to one. */
static tk_array slow_chain(tk_context *ctx, tk_array matrix, int length, double salt) {
    tk_array y = tk_multiply(matrix, tk_scalar(ctx, salt));
    for (int i = 0; i < length; i++) y = tk_matmul(y, matrix);
    return y;
}

static void interrupt_once(tk_context *ctx, tk_stream_id other, tk_array matrix, int round) {
    tk_scope scope = tk_scope_open(ctx);
    tk_array first = slow_chain(ctx, matrix, 30, 1 + round);
    tk_array behind = tk_add(first, tk_scalar(ctx, 1));
    tk_stream_use(ctx, other);
    tk_array beside = tk_multiply(first, tk_scalar(ctx, 2));
    tk_array far = tk_subtract(beside, behind);
    tk_stream_use(ctx, TK_DEFAULT_STREAM);
    tk_array queued[] = {behind, beside, far};
    bool begun = round % 2;
    if (begun) assert_ok(tk_async_eval(&first, 1));
    if (begun) assert_ok(tk_async_eval(queued, (size_t)(1 + round % 3)));
    int left = round % 4;
    tk_wait wait = {.poll = give_up, .arg = &left, .seconds = round % 5 ? 0 : 0.002};
    tk_status status = tk_eval_wait(&first, 1, &wait);
    assert_true(status == TK_OK || status == TK_INTERRUPTED);
    tk_array all[] = {far, beside, behind, first};
    for (int i = 0; i < 4; i++) {
        static const double factors[] = {1, 2, 1, 1}, addends[] = {-1, 0, 1, 0};
        tk_array corner = tk_slice(all[i], TK_AXES(0, 0), TK_AXES(1, 1), TK_ALL_AXES);
        double value = first_f32(corner), per_element = (1.0 + round) / 128;
        double expected = factors[i] * per_element + addends[i];
        assert_true(value > expected - 1e-3 && value < expected + 1e-3);
    }
    tk_scope_close(scope);
}

static void interrupted_arrays_stay_usable(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_stream_id other;
    assert_ok(tk_stream_new(ctx, &other));
    tk_scope scope = tk_scope_open(ctx);
    tk_array matrix = tk_full(tk_scalar(ctx, 1.0 / 128), TK_SHAPE(128, 128), TK_FLOAT32);
    tk_array dense = tk_keep(tk_contiguous(matrix));
    tk_scope_close(scope);
    assert_ok(tk_eval(dense));
    size_t nodes = 0;
    for (int round = 0; round < 60; round++) {
        interrupt_once(ctx, other, dense, round);
        assert_ok(tk_synchronize(ctx));
        if (round == 10) nodes = ctx->graph.n_nodes;
    }
    assert_true(ctx->graph.n_nodes <= nodes);
    tk_release(dense);
    tk_context_release(ctx);
}

/* ---- the end ---- */

typedef struct ending {
    atomic_bool first_may_end, first_ended, second_may_end;
} ending;

static tk_status first_task(void *arg) {
    ending *e = arg;
    while (!atomic_load(&e->first_may_end)) sched_yield();
    atomic_store(&e->first_ended, true);
    return TK_OK;
}

static tk_status second_task(void *arg) {
    ending *e = arg;
    while (!atomic_load(&e->second_may_end)) sched_yield();
    return TK_OK;
}

/* Lets the first stream end well before the second. */
static void *open_gates(void *arg) {
    ending *e = arg;
    struct timespec pause = {0, 20000000};
    atomic_store(&e->first_may_end, true);
    while (!atomic_load(&e->first_ended)) sched_yield();
    nanosleep(&pause, NULL);
    atomic_store(&e->second_may_end, true);
    return NULL;
}

/* The second stream has yet to wait for the first when the context is released: the first must
 * still be there then, which a sanitizer would tell. */
static void streams_that_wait_outlive_nothing(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_stream_id id;
    ending e = {false, false, false};
    pthread_t opener;
    assert_ok(tk_stream_new(ctx, &id));
    tk_stream *first = ctx->streams.items[0], *second = ctx->streams.items[1];
    assert_ok(tk_stream_submit(first, first_task, &e));
    assert_ok(tk_stream_submit(second, second_task, &e));
    assert_ok(tk_stream_wait_event(second, tk_stream_record(first)));
    assert_int_equal(pthread_create(&opener, NULL, open_gates, &e), 0);
    tk_context_release(ctx);
    assert_true(atomic_load(&e.second_may_end));
    pthread_join(opener, NULL);
}

/* ---- threads that come and go ---- */

static void *use_once(void *arg) {
    worker *w = arg;
    (void)tk_scope_open(w->ctx); /* and never closed */
    w->failed = evaluate(w, w->number % 3);
    return NULL;
}

static size_t count_records(tk_context *ctx) {
    size_t count = 0;
    for (const tk_thread *record = ctx->threads; record; record = record->next) count++;
    return count;
}

static void ended_threads_leave_nothing_behind(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_array common = tk_arange(ctx, 0, 100, 1, TK_FLOAT32);
    size_t nodes = 0;
    for (int i = 0; i < 200; i++) {
        worker w = {ctx, common, i, 1, NULL};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, use_once, &w), 0);
        pthread_join(thread, NULL);
        assert_null(w.failed);
        if (i == 10) nodes = ctx->graph.n_nodes;
    }
    assert_true(count_records(ctx) < 10);
    assert_true(ctx->graph.n_nodes < nodes + 50);
    tk_release(common);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_everything_on_one_context),
        cmocka_unit_test(forks_at_any_moment),
        cmocka_unit_test(interrupted_arrays_stay_usable),
        cmocka_unit_test(streams_that_wait_outlive_nothing),
        cmocka_unit_test(ended_threads_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
