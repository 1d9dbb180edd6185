/* Evaluation: views, donation, failure and interruption, streams, threads, forks, deep graphs,
 * index faults. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/arrays.h"
#include "support/patience.h"
#include "support/sanitizer.h"
#include "tiki/transforms.h"

static tk_array ramp(tk_context *ctx, tk_shape shape) {
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    return tk_reshape(tk_arange(ctx, 0, (double)size, 1, TK_FLOAT32), shape);
}

static void views_share_memory(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_SHAPE(4, 6));
    tk_strided of_x, view;
    assert_ok(tk_array_view(x, &of_x));
    assert_ok(tk_array_view(tk_transpose(x, TK_ALL_AXES), &view));
    assert_ptr_equal(view.data, of_x.data);
    assert_true(view.strides[0] == 1 && view.strides[1] == 6);
    assert_ok(tk_array_view(tk_flip(x, TK_AXES(1)), &view));
    assert_true(view.strides[1] == -1 && (float *)view.data == (float *)of_x.data + 5);
    assert_ok(tk_array_view(tk_broadcast_to(x, TK_SHAPE(3, 4, 6)), &view));
    assert_true(view.strides[0] == 0 && view.data == of_x.data);
    tk_array strided = tk_slice(x, TK_AXES(0, 5), TK_AXES(4, -7), TK_AXES(2, -2));
    assert_ok(tk_array_view(strided, &view));
    assert_true(view.shape[0] == 2 && view.shape[1] == 3 && view.strides[0] == 12 &&
                view.strides[1] == -2);
    assert_ok(tk_array_view(tk_reshape(tk_transpose(x, TK_ALL_AXES), TK_SHAPE(2, 3, 4)), &view));
    assert_ptr_equal(view.data, of_x.data);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static size_t peak_of_chain(tk_context *ctx, int64_t elements, int length) {
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = tk_keep(ramp(ctx, TK_SHAPE(elements)));
    assert_ok(tk_eval(x));
    tk_device *device = tk_context_device(ctx);
    tk_device_reset_peak(device);
    size_t before = tk_device_memory(device).active;
    tk_array y = x;
    for (int i = 0; i < length; i++)
        y = tk_add(tk_multiply(y, tk_scalar(ctx, 0.5)), tk_scalar(ctx, 1));
    y = tk_keep(y);
    tk_scope_close(scope);
    assert_ok(tk_eval(y));
    size_t peak = tk_device_memory(device).peak - before;
    tk_release(y);
    tk_release(x);
    return peak;
}

static void intermediates_are_overwritten_in_place(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    int64_t elements = 1 << 20;
    size_t bytes = (size_t)elements * 4;
    assert_true(peak_of_chain(ctx, elements, 20) < bytes + bytes / 4);
    tk_context_release(ctx);
}

static void held_arrays_are_never_overwritten(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_SHAPE(1000)), y = tk_add(x, tk_scalar(ctx, 1)),
             z = tk_multiply(y, tk_scalar(ctx, 2));
    assert_ok(tk_eval(z));
    float of_x[1000], of_y[1000], of_z[1000];
    assert_ok(tk_copy_out(x, of_x, sizeof of_x));
    assert_ok(tk_copy_out(y, of_y, sizeof of_y));
    assert_ok(tk_copy_out(z, of_z, sizeof of_z));
    for (int i = 0; i < 1000; i++)
        assert_true(of_x[i] == (float)i && of_y[i] == (float)(i + 1) &&
                    of_z[i] == (float)(2 * i + 2));
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void index_faults_are_errors_and_read_nothing(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    int32_t indices[] = {0, 7, -9, 2};
    tk_array x = ramp(ctx, TK_SHAPE(4)), at = tk_from_data(ctx, indices, TK_SHAPE(4), TK_INT32);
    tk_array y = tk_take(x, at, 0);
    assert_int_equal(tk_eval(y), TK_INDEX_ERROR);
    assert_non_null(strstr(tk_error_message(), "7"));
    float out[4];
    assert_ok(tk_copy_out(y, out, sizeof out));
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0 && out[3] == 2);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static bool always(void *arg) {
    (void)arg;
    return true;
}

static void interrupted_evaluations_can_be_repeated(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = tk_ones(ctx, TK_SHAPE(300, 300), TK_FLOAT32), y = x;
    for (int i = 0; i < 200; i++) y = tk_multiply(tk_matmul(y, x), tk_scalar(ctx, 1.0 / 300));
    tk_array root = tk_keep(y);
    tk_scope_close(scope);
    tk_wait wait = {.poll = always};
    assert_int_equal(tk_eval_wait(&root, 1, &wait), TK_INTERRUPTED);
    assert_false(tk_array_is_evaluated(root));
    tk_array first = tk_slice(root, TK_AXES(0, 0), TK_AXES(1, 1), TK_ALL_AXES);
    float value = first_f32(first);
    assert_true(value > 0.999f && value < 1.001f);
    tk_release(first);
    tk_release(root);
    tk_context_release(ctx);
}

static void memory_limits_fail_and_recover(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_device *device = tk_context_device(ctx);
    tk_scope scope = tk_scope_open(ctx);
    tk_array big = tk_contiguous(tk_ones(ctx, TK_SHAPE(1 << 20), TK_FLOAT32));
    tk_device_set_memory_limit(device, 1 << 20);
    assert_int_equal(tk_eval(big), TK_OUT_OF_MEMORY);
    tk_device_set_memory_limit(device, SIZE_MAX);
    assert_ok(tk_eval(big));
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void async_evaluations_queue(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_array x = tk_zeros(ctx, TK_SHAPE(1000), TK_FLOAT32);
    for (int i = 0; i < 100; i++) {
        tk_array one = tk_scalar(ctx, 1), next = tk_add(x, one);
        tk_release(one);
        tk_release(x);
        x = next;
        assert_ok(tk_async_eval(&x, 1));
    }
    tk_array sum = tk_sum(x, TK_ALL_AXES, TK_DROPDIMS);
    assert_true(first_f32(sum) == 100000);
    tk_release(sum);
    tk_release(x);
    assert_ok(tk_synchronize(ctx));
    tk_context_release(ctx);
}

static void streams_wait_for_each_other(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_stream_id other;
    assert_ok(tk_stream_new(ctx, &other));
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = tk_zeros(ctx, TK_SHAPE(5000), TK_FLOAT32);
    for (int i = 0; i < 50; i++) {
        tk_stream_use(ctx, i % 2 ? other : TK_DEFAULT_STREAM);
        x = tk_add(x, tk_scalar(ctx, 1));
        if (i % 7 == 0) assert_ok(tk_async_eval(&x, 1));
    }
    tk_stream_use(ctx, TK_DEFAULT_STREAM);
    assert_true(first_f32(tk_max(x, TK_ALL_AXES, TK_DROPDIMS)) == 50);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

typedef struct shared {
    tk_context *ctx;
    tk_array common;
    int number;
    bool failed;
} shared;

static void *build_and_evaluate(void *arg) {
    shared *work = arg;
    for (int round = 0; round < 40; round++) {
        tk_scope scope = tk_scope_open(work->ctx);
        tk_array y = work->common;
        for (int i = 0; i < 20; i++) y = tk_add(y, tk_scalar(work->ctx, (i + round) % 3));
        double value;
        tk_status status = tk_item(tk_sum(y, TK_ALL_AXES, TK_DROPDIMS), &value);
        double expected = 0;
        for (int i = 0; i < 20; i++) expected += (i + round) % 3;
        if (status != TK_OK || value != 100 * expected + 4950) work->failed = true;
        tk_scope_close(scope);
    }
    return NULL;
}

static void threads_share_a_context(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    shared work[8];
    pthread_t threads[8];
    tk_array common = tk_arange(ctx, 0, 100, 1, TK_FLOAT32);
    for (int i = 0; i < 8; i++) {
        work[i] = (shared){ctx, common, i, false};
        pthread_create(&threads[i], NULL, build_and_evaluate, &work[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_false(work[i].failed);
    }
    tk_release(common);
    tk_context_release(ctx);
}

static void a_forked_child_is_told_and_may_start_anew(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_array x = tk_ones(ctx, TK_SHAPE(10), TK_FLOAT32);
    assert_ok(tk_eval(x));
    pid_t child = fork();
    if (child == 0) {
        alarm(SUPPORT_HANG_SECONDS);
        tk_array y = tk_add(x, x);
        if (tk_eval(x) != TK_CONTEXT_ERROR || tk_eval(y) != TK_INVALID_ARGUMENT) _exit(1);
        tk_context *fresh = NULL;
        if (tk_context_create(NULL, &fresh) != TK_OK) _exit(2);
        tk_array z = tk_ones(fresh, TK_SHAPE(10), TK_FLOAT32);
        if (support_children_start_threads && tk_eval(z) != TK_OK) _exit(3);
        tk_release(z);
        tk_context_release(fresh);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    tk_release(x);
    tk_context_release(ctx);
}

static tk_status deep(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    tk_array y = args[0];
    for (int i = 0; i < *(int *)self; i++) y = tk_add(y, args[0]);
    return tk_arrays_push(results, y);
}

static void deep_graphs_work(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    int depth = SUPPORT_TSAN ? 20000 : 100000; /* on one thread */
    tk_array x = tk_ones(ctx, TK_SCALAR, TK_FLOAT32);
    tk_arrays values = {0}, grads = {0}, mapped = {0};
    assert_ok(deep(&depth, &x, 1, &values));
    char *text = NULL;
    assert_ok(tk_graph_print(values.items, 1, &text));
    tk_text_free(text);
    assert_true(first_f32(values.items[0]) == depth + 1);
    tk_arrays_clear(&values);
    assert_ok(tk_value_and_grad(ctx, deep, &depth, &x, 1, NULL, 0, &values, &grads));
    assert_true(first_f32(grads.items[0]) == depth + 1);
    tk_arrays_clear(&values);
    tk_arrays_clear(&grads);
    tk_array row = tk_ones(ctx, TK_SHAPE(3), TK_FLOAT32);
    assert_ok(tk_vmap(ctx, deep, &depth, &row, 1, NULL, NULL, &mapped));
    tk_array sum = tk_sum(mapped.items[0], TK_ALL_AXES, TK_DROPDIMS);
    assert_true(first_f32(sum) == 3 * (depth + 1));
    tk_arrays_clear(&mapped);
    assert_ok(tk_checkpoint(ctx, deep, &depth, NULL, &x, 1, &mapped));
    assert_true(first_f32(mapped.items[0]) == depth + 1);
    tk_arrays_clear(&mapped);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void small_evaluations_do_not_grow(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_device *device = tk_context_device(ctx);
    size_t after_warm_up = 0;
    for (int i = 0; i < 10000; i++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array x = tk_arange(ctx, 0, 16, 1, TK_FLOAT32);
        assert_ok(tk_eval(tk_sum(tk_multiply(x, tk_scalar(ctx, i)), TK_ALL_AXES, TK_DROPDIMS)));
        tk_scope_close(scope);
        tk_memory_info info = tk_device_memory(device);
        if (i == 100) after_warm_up = info.active + info.cache;
        if (i > 100) assert_true(info.active + info.cache <= after_warm_up);
    }
    tk_context_release(ctx);
}

static void the_nan_trap_names_the_op(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array y =
        tk_exp(tk_log(tk_subtract(tk_ones(ctx, TK_SHAPE(3), TK_FLOAT32), tk_scalar(ctx, 2))));
    tk_set_nan_trap(ctx, true);
    assert_int_equal(tk_eval(y), TK_NAN_TRAPPED);
    assert_non_null(strstr(tk_error_message(), "log"));
    tk_set_nan_trap(ctx, false);
    assert_ok(tk_eval(y));
    tk_scope_close(scope);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_share_memory),
        cmocka_unit_test(intermediates_are_overwritten_in_place),
        cmocka_unit_test(held_arrays_are_never_overwritten),
        cmocka_unit_test(index_faults_are_errors_and_read_nothing),
        cmocka_unit_test(interrupted_evaluations_can_be_repeated),
        cmocka_unit_test(memory_limits_fail_and_recover),
        cmocka_unit_test(async_evaluations_queue),
        cmocka_unit_test(streams_wait_for_each_other),
        cmocka_unit_test(threads_share_a_context),
        cmocka_unit_test(a_forked_child_is_told_and_may_start_anew),
        cmocka_unit_test(deep_graphs_work),
        cmocka_unit_test(small_evaluations_do_not_grow),
        cmocka_unit_test(the_nan_trap_names_the_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
