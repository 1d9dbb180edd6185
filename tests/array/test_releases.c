/* A user's release functions run without the context's lock, whatever let the last reference go: so
 * they may call the library. A deadlock ends the program by its alarm. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/arrays.h"
#include "support/patience.h"
#include "tiki/transforms.h"

#define ELEMENTS 16384

typedef struct owner {
    tk_context *ctx;
    float *memory;
    int released;
} owner;

/* Uses the context as any other code does. */
static void release(void *arg) {
    owner *o = arg;
    o->released++;
    tk_scope scope = tk_scope_open(o->ctx);
    (void)tk_eval(tk_add(tk_ones(o->ctx, TK_SHAPE(3), TK_FLOAT32), tk_scalar(o->ctx, 1)));
    tk_scope_close(scope);
}

static tk_array wrap(owner *o) {
    return tk_from_memory(o->ctx, o->memory, ELEMENTS * sizeof(float), TK_SHAPE(ELEMENTS), NULL,
                          TK_FLOAT32, release, o);
}

static int open_owner(void **state) {
    owner *o = calloc(1, sizeof *o);
    alarm(SUPPORT_HANG_SECONDS);
    if (!o || tk_context_create(NULL, &o->ctx) != TK_OK) return -1;
    o->memory = calloc(ELEMENTS, sizeof(float));
    *state = o;
    return o->memory ? 0 : -1;
}

static int close_owner(void **state) {
    owner *o = *state;
    tk_context_release(o->ctx);
    free(o->memory);
    free(o);
    alarm(0);
    return 0;
}

static void handles_let_go(void **state) {
    owner *o = *state;
    tk_release(wrap(o));
    assert_int_equal(o->released, 1);
    tk_scope scope = tk_scope_open(o->ctx);
    (void)tk_flip(wrap(o), TK_ALL_AXES);
    tk_scope_close(scope);
    assert_int_equal(o->released, 2);
}

/* The last reader of an evaluation lets go: on the caller's thread, and on a stream's. */
static void evaluations_let_go(void **state) {
    owner *o = *state;
    for (int queued = 0; queued < 2; queued++) {
        tk_scope scope = tk_scope_open(o->ctx);
        tk_scope inner = tk_scope_open(o->ctx);
        tk_array view = tk_flip(wrap(o), TK_ALL_AXES);
        tk_array sum = tk_keep(tk_sum(tk_exp(view), TK_ALL_AXES, false));
        tk_scope_close(inner);
        assert_ok(queued ? tk_async_eval(&sum, 1) : tk_eval(sum));
        assert_true(first_f32(sum) == ELEMENTS);
        tk_release(sum);
        tk_scope_close(scope);
        assert_ok(tk_synchronize(o->ctx));
        assert_int_equal(o->released, queued + 1);
    }
}

typedef struct impatient {
    owner *owner;
    tk_array sum; /* what is being computed when `release` runs */
    tk_status evaluated, synchronized, closed;
} impatient;

static void release_and_wait(void *arg) {
    impatient *i = arg;
    release(i->owner);
    i->evaluated = tk_eval(i->sum);
    i->synchronized = tk_synchronize(i->owner->ctx);
    tk_context_release(i->owner->ctx);
    i->closed = tk_error_code();
}

/* What would wait for itself is refused, not waited for; the evaluation goes on. */
static void waiting_for_oneself_is_refused(void **state) {
    owner *o = *state;
    for (int queued = 0; queued < 2; queued++) {
        impatient i = {.owner = o};
        tk_scope scope = tk_scope_open(o->ctx), inner = tk_scope_open(o->ctx);
        tk_array x = tk_from_memory(o->ctx, o->memory, ELEMENTS * sizeof(float), TK_SHAPE(ELEMENTS),
                                    NULL, TK_FLOAT32, release_and_wait, &i);
        i.sum = tk_keep(tk_sum(tk_exp(tk_flip(x, TK_ALL_AXES)), TK_ALL_AXES, false));
        tk_scope_close(inner);
        assert_ok(queued ? tk_async_eval(&i.sum, 1) : tk_eval(i.sum));
        assert_true(first_f32(i.sum) == ELEMENTS);
        assert_int_equal(o->released, queued + 1);
        assert_int_equal(i.evaluated, TK_INVALID_ARGUMENT);
        assert_int_equal(i.synchronized, TK_INVALID_ARGUMENT);
        assert_int_equal(i.closed, TK_CONTEXT_ERROR);
        tk_release(i.sum);
        tk_scope_close(scope);
    }
}

static bool evaluate_meanwhile(void *arg) {
    release(arg);
    return false;
}

/* So does the function that is asked whether to go on. */
static void polls_may_evaluate(void **state) {
    owner *o = *state;
    tk_wait wait = {.poll = evaluate_meanwhile, .arg = o};
    for (int tries = 0; !o->released && tries < 50; tries++) {
        tk_scope scope = tk_scope_open(o->ctx);
        tk_array x = tk_ones(o->ctx, TK_SHAPE(300, 300), TK_FLOAT32), scale;
        scale = tk_scalar(o->ctx, 1.0 / 300);
        for (int i = 0; i < 60; i++) x = tk_multiply(tk_matmul(x, x), scale);
        assert_ok(tk_eval_wait(&x, 1, &wait));
        tk_scope_close(scope);
    }
    assert_true(o->released > 0);
}

static tk_status two_views(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_status status = tk_arrays_push(results, tk_flip(args[0], TK_ALL_AXES));
    return status == TK_OK ? tk_arrays_push(results, tk_reshape(args[0], TK_SHAPE(-1, 2))) : status;
}

/* A function with several results holds views of the memory in a tuple. */
static void tuples_let_go(void **state) {
    owner *o = *state;
    tk_custom custom = {
        .size = sizeof custom, .function = two_views, .self = o, .release = release};
    tk_array x = wrap(o);
    tk_arrays results = {0};
    assert_ok(tk_custom_call(o->ctx, &custom, &x, 1, &results));
    tk_release(x);
    assert_ok(tk_eval_all(results.items, results.count));
    tk_arrays_clear(&results);
    assert_int_equal(o->released, 2); /* the memory and the function */
}

static tk_status doubled(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_add(args[0], args[0]));
}

static void checkpoints_let_go(void **state) {
    owner *o = *state;
    tk_array x = wrap(o);
    tk_arrays results = {0};
    assert_ok(tk_checkpoint(o->ctx, doubled, o, release, &x, 1, &results));
    tk_release(x);
    assert_ok(tk_eval(results.items[0]));
    tk_arrays_clear(&results);
    assert_int_equal(o->released, 2);
}

/* Without memory for anything: the function still runs, once, and may still try. */
static void a_lack_of_memory_lets_go(void **state) {
    owner *o = *state;
    int expected = 0;
    for (int n = 1; n < 40; n++) {
        tk_alloc_fail_after(n);
        tk_array x = wrap(o), y = tk_flip(x, TK_ALL_AXES);
        (void)tk_eval(y);
        tk_release(x);
        tk_release(y);
        tk_alloc_fail_after(0);
        assert_int_equal(o->released, ++expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_owner, close_owner)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(handles_let_go),
        TEST(evaluations_let_go),
        TEST(waiting_for_oneself_is_refused),
        TEST(polls_may_evaluate),
        TEST(tuples_let_go),
        TEST(checkpoints_let_go),
        TEST(a_lack_of_memory_lets_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
