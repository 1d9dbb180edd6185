/* CUDA streams and memory on the stand-in: order, tickets, waits that give up, callbacks, blocks
 * that are never given out early, who held what when memory ran out, lost devices, host streams on
 * top. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/standin/fixture.h"
#include "runtime/stream.h"

static tk_buffer *take_on(tk_queue *queue, size_t bytes) {
    tk_buffer *buffer;
    assert_int_equal(tk_buffer_new_on(device, queue, bytes, &buffer), TK_OK);
    return buffer;
}

static void wait_all(tk_queue *queue) {
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL), TK_OK);
}

/* ---- streams ----------------------------------------------------------------------------------
 */

static void test_records_are_reused(void **state) {
    (void)state;
    tk_queue *first = open_queue();
    int number = first->number;
    tk_cuda_queue_close(first);
    tk_queue *second = open_queue();
    assert_ptr_equal(first, second);
    assert_int_equal(second->number, number);
    tk_queue *third = open_queue();
    assert_ptr_not_equal(second, third);
    tk_cuda_queue_close(second);
    tk_cuda_queue_close(third);
    assert_int_equal(fake.standin_count("cuStreamCreate"), 2);
}

static void test_failed_open(void **state) {
    (void)state;
    tk_queue *queue;
    fake.standin_fail("cuStreamCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(tk_cuda_queue_open(cuda, &queue), TK_OUT_OF_MEMORY);
    assert_error_says("cuda:0: making a stream: CUDA_ERROR_OUT_OF_MEMORY");
    assert_null(queue);
    tk_cuda_queue_close(open_queue());
}

static void test_tickets_pass(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_buffer *x = take_on(queue, 4);
    assert_true(tk_cuda_queue_passed(queue, 0, false));
    fake.standin_gate(false);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 4, 1), TK_OK);
    assert_int_equal(launch_one(queue, "slow", x->data), TK_OK);
    uint64_t ticket = tk_cuda_queue_ticket(queue);
    assert_int_equal(ticket, 2);
    assert_false(tk_cuda_queue_passed(queue, ticket, true));
    int records = fake.standin_count("cuEventRecord");
    for (int i = 0; i < 10; i++) assert_false(tk_cuda_queue_passed(queue, ticket, true));
    assert_int_equal(fake.standin_count("cuEventRecord"), records);
    fake.standin_gate(true);
    while (!tk_cuda_queue_passed(queue, ticket, true)) sched_yield();
    float value;
    assert_int_equal(tk_cuda_download(queue, &value, address_of(x), 4, NULL), TK_OK);
    assert_true(value == 1);
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
}

static bool stop_at_third(void *arg) { return ++*(int *)arg >= 3; }

static void test_waits_give_up(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_buffer *x = take_on(queue, 4);
    fake.standin_gate(false);
    assert_int_equal(launch_one(queue, "slow", x->data), TK_OK);
    int polls = 0;
    tk_wait asked = {.poll = stop_at_third, .arg = &polls}, limited = {.seconds = 0.02};
    assert_int_equal(tk_cuda_queue_wait(queue, 1, &asked), TK_INTERRUPTED);
    assert_int_equal(polls, 3);
    assert_error_says("asked to stop");
    assert_int_equal(tk_cuda_queue_wait(queue, 1, &limited), TK_INTERRUPTED);
    assert_error_says("time limit");
    fake.standin_gate(true);
    assert_int_equal(tk_cuda_queue_wait(queue, 1, &asked), TK_OK);
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
}

static void test_one_stream_follows_another(void **state) {
    (void)state;
    tk_queue *first = open_queue(), *second = open_queue();
    tk_buffer *x = take_on(first, 4), *y = take_on(second, 4);
    fake.standin_gate(false);
    assert_int_equal(tk_cuda_fill(first, address_of(x), 0, 4, 1), TK_OK);
    assert_int_equal(launch_one(first, "slow", x->data), TK_OK);
    assert_int_equal(tk_cuda_queue_follow(second, tk_cuda_queue_mark(first)), TK_OK);
    assert_int_equal(tk_cuda_copy_async(second, y->data, x->data, 4, TK_COPY_ON_DEVICE), TK_OK);
    assert_int_equal(tk_buffer_used(x, second), TK_OK);
    assert_false(tk_cuda_queue_passed(second, tk_cuda_queue_ticket(second), true));
    fake.standin_gate(true);
    float value;
    assert_int_equal(tk_cuda_download(second, &value, address_of(y), 4, NULL), TK_OK);
    assert_true(value == 1);
    assert_int_equal(tk_cuda_queue_follow_foreign(second, first->handle), TK_OK);
    assert_int_equal(tk_cuda_foreign_follow_queue(first->handle, second), TK_OK);
    wait_all(first);
    tk_buffer_release(x);
    tk_buffer_release(y);
    tk_cuda_queue_close(first);
    tk_cuda_queue_close(second);
}

/* ---- callbacks --------------------------------------------------------------------------------
 */

static atomic_int calls, call_errors;
static atomic_bool may_return;

static void note_call(void *arg, tk_status status) {
    (void)arg;
    atomic_fetch_add(status == TK_OK ? &calls : &call_errors, 1);
}

static void note_slowly(void *arg, tk_status status) {
    while (!atomic_load(&may_return)) sched_yield();
    note_call(arg, status);
}

static void test_callbacks_do_not_hold_the_stream(void **state) {
    (void)state;
    atomic_store(&calls, 0);
    atomic_store(&may_return, false);
    tk_queue *queue = open_queue();
    assert_int_equal(tk_cuda_queue_call(queue, note_slowly, NULL), TK_OK);
    assert_int_equal(tk_cuda_queue_call(queue, note_call, NULL), TK_OK);
    wait_all(queue);
    assert_int_equal(atomic_load(&calls), 0);
    atomic_store(&may_return, true);
    while (atomic_load(&calls) < 2) sched_yield();
    fake.standin_fail("cuLaunchHostFunc", 1, CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(tk_cuda_queue_call(queue, note_call, NULL), TK_UNSUPPORTED);
    tk_cuda_queue_close(queue);
}

static void test_callbacks_of_a_lost_device(void **state) {
    (void)state;
    atomic_store(&calls, 0);
    atomic_store(&call_errors, 0);
    tk_queue *queue = open_queue();
    fake.standin_gate(false);
    tk_buffer *x = take_on(queue, 4);
    assert_int_equal(launch_one(queue, "slow", x->data), TK_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(tk_cuda_queue_call(queue, note_call, NULL), TK_OK);
    fake.standin_fail("cuEventRecord", 1, CUDA_ERROR_ASSERT);
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL), TK_DEVICE_ERROR);
    fake.standin_gate(true);
    while (atomic_load(&call_errors) + atomic_load(&calls) < 3) sched_yield();
    assert_int_equal(atomic_load(&call_errors), 3);
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static void test_reuse_in_flight(void **state) {
    (void)state;
    tk_queue *home = open_queue(), *other = open_queue();
    fake.standin_gate(false);
    tk_buffer *x = take_on(home, 4096);
    void *block = x->data;
    assert_int_equal(tk_cuda_fill(home, address_of(x), 0, 4, 1024), TK_OK);
    assert_int_equal(launch_one(home, "slow", x->data), TK_OK);
    tk_buffer_release(x);

    tk_buffer *elsewhere = take_on(other, 4096), *nowhere = take_on(NULL, 4096);
    assert_ptr_not_equal(elsewhere->data, block);
    assert_ptr_not_equal(nowhere->data, block);
    tk_buffer *here = take_on(home, 4096);
    assert_ptr_equal(here->data, block);
    tk_buffer_release(here);

    fake.standin_gate(true);
    wait_all(home);
    tk_buffer *after = take_on(other, 4096);
    assert_ptr_equal(after->data, block);
    tk_buffer_release(after);
    tk_buffer_release(elsewhere);
    tk_buffer_release(nowhere);
    tk_cuda_queue_close(home);
    tk_cuda_queue_close(other);
}

/* Each stream writes its own element: nothing orders them. */
static void test_uses_by_other_streams(void **state) {
    (void)state;
    enum { N = 6 };
    tk_queue *queues[N];
    for (int i = 0; i < N; i++) queues[i] = open_queue();
    tk_buffer *x = take_on(queues[0], 256), *y = take_on(queues[5], 4);
    void *block = x->data;
    fake.standin_gate(false);
    assert_int_equal(launch_one(queues[5], "slow", y->data), TK_OK);
    for (int i = 1; i < N; i++) {
        assert_int_equal(tk_cuda_fill(queues[i], address_of(x) + 4 * (unsigned)i, 0, 4, 1), TK_OK);
        assert_int_equal(tk_buffer_used(x, queues[i]), TK_OK);
        assert_true(x->n_marks < TK_BUFFER_MARKS);
    }
    tk_buffer_release(x);
    tk_buffer *early = take_on(queues[0], 256);
    assert_ptr_not_equal(early->data, block);
    fake.standin_gate(true);
    for (int i = 0; i < N; i++) wait_all(queues[i]);
    tk_buffer *late = take_on(queues[0], 256);
    assert_ptr_equal(late->data, block);
    tk_buffer_release(early);
    tk_buffer_release(late);
    tk_buffer_release(y);
    for (int i = 0; i < N; i++) tk_cuda_queue_close(queues[i]);
}

static void *open_gate_soon(void *arg) {
    (void)arg;
    struct timespec time = {0, 20000000};
    nanosleep(&time, NULL);
    fake.standin_gate(true);
    return NULL;
}

/* Memory given back to the driver waits for the work that uses it: the sanitizer would see it. */
static void test_freeing_waits(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_buffer *x = take_on(queue, 4);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 4, 1), TK_OK);
    fake.standin_gate(false);
    assert_int_equal(launch_one(queue, "slow", x->data), TK_OK);
    pthread_t opener;
    pthread_create(&opener, NULL, open_gate_soon, NULL);
    tk_buffer_release(x);
    tk_device_clear_cache(device);
    assert_int_equal(fake.standin_count("cuMemFree_v2"), 1);
    pthread_join(opener, NULL);
    tk_cuda_queue_close(queue);
}

static void test_out_of_memory_names_holders(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_device_set_memory_limit(device, SIZE_MAX);
    tk_buffer *weights = take_on(queue, 600 << 20), *a = take_on(queue, 100 << 20),
              *b = take_on(queue, 100 << 20);
    tk_buffer_label(weights, "weights");
    tk_buffer_label(a, "activations");
    tk_buffer_label(b, "activations");
    tk_buffer *more;
    assert_int_equal(tk_buffer_new_on(device, queue, 500 << 20, &more), TK_OUT_OF_MEMORY);
    assert_null(more);
    assert_error_says("cuda:0: 524288000 bytes asked for");
    assert_error_says("of 1073741824 bytes free");
    assert_error_says("; held: weights 629145600 bytes in 1, activations 209715200 bytes in 2");
    tk_buffer_release(weights);
    assert_int_equal(tk_buffer_new_on(device, queue, 500 << 20, &more), TK_OK);
    tk_buffer_release(more);
    tk_buffer_release(a);
    tk_buffer_release(b);
    tk_cuda_queue_close(queue);
}

static void test_buffers_outlive_the_device(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_buffer *x = take_on(queue, 100);
    tk_cuda_queue_close(queue);
    tk_device_close(device);
    assert_int_equal(fake.standin_count("cuDevicePrimaryCtxRelease_v2"), 0);
    tk_buffer_release(x);
    assert_int_equal(fake.standin_live(), 0);
    assert_int_equal(fake.standin_count("cuDevicePrimaryCtxRelease_v2"), 1);
    assert_int_equal(tk_device_open(&tk_driver_cuda, 0, NULL, &device), TK_OK);
}

/* ---- many threads -----------------------------------------------------------------------------
 */

static void *use_own_stream(void *arg) {
    int number = (int)(intptr_t)arg;
    tk_queue *queue;
    if (tk_cuda_queue_open(cuda, &queue) != TK_OK) return "open";
    const char *failed = NULL;
    for (int round = 0; round < 40 && !failed; round++) {
        uint32_t back[64], expected = (uint32_t)(number * 1000 + round);
        tk_buffer *x;
        if (tk_buffer_new_on(device, queue, sizeof back, &x) != TK_OK) return "buffer";
        if (tk_cuda_fill(queue, address_of(x), expected, 4, 64) != TK_OK) failed = "fill";
        if (!failed && tk_cuda_download(queue, back, address_of(x), sizeof back, NULL) != TK_OK)
            failed = "download";
        for (int i = 0; i < 64 && !failed; i++)
            if (back[i] != expected) failed = "value";
        tk_buffer_release(x);
    }
    tk_cuda_queue_close(queue);
    return (void *)failed;
}

static void test_threads_on_their_own_streams(void **state) {
    (void)state;
    enum { N = 16 };
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, use_own_stream, (void *)(intptr_t)i);
    for (int i = 0; i < N; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed) fail_msg("thread %d: %s", i, (const char *)failed);
    }
    assert_int_equal(tk_device_memory(device).active, 0);
}

/* ---- host streams on top ----------------------------------------------------------------------
 */

typedef struct step {
    tk_buffer *x;
    const char *kernel;
} step;

static tk_status launch_step(void *arg) {
    const step *at = arg;
    tk_queue *queue = tk_cuda_current_queue();
    assert_non_null(queue);
    if (!at->kernel) return tk_cuda_fill(queue, address_of(at->x), 0, 4, 1);
    return launch_one(queue, at->kernel, at->x->data);
}

static void test_host_streams(void **state) {
    (void)state;
    tk_stream *stream, *other;
    assert_int_equal(tk_stream_open(device, &stream), TK_OK);
    assert_int_equal(tk_stream_open(device, &other), TK_OK);
    tk_buffer *x = take_on(tk_stream_queue(stream), 4);
    step clear = {x, NULL}, slow = {x, "slow"};
    fake.standin_gate(false);
    assert_int_equal(tk_stream_submit(stream, launch_step, &clear), TK_OK);
    assert_int_equal(tk_stream_submit(stream, launch_step, &slow), TK_OK);
    tk_event event = tk_stream_record(stream);
    assert_int_equal(tk_stream_wait_event(other, event), TK_OK);
    assert_int_equal(tk_stream_submit(other, launch_step, &slow), TK_OK);
    assert_int_equal(tk_buffer_used(x, tk_stream_queue(other)), TK_OK);
    tk_wait briefly = {.seconds = 0.02};
    assert_int_equal(tk_event_wait(event, &briefly), TK_INTERRUPTED);
    assert_false(tk_event_done(event));
    fake.standin_gate(true);
    assert_int_equal(tk_stream_wait(other, NULL), TK_OK);
    /* done is what the device has been heard to have done, which may be less */
    assert_int_equal(tk_event_wait(event, NULL), TK_OK);
    assert_true(tk_event_done(event));
    float value;
    assert_int_equal(tk_device_copy(device, &value, x->data, 4, TK_COPY_FROM_DEVICE), TK_OK);
    assert_true(value == 2);
    tk_buffer_release(x);
    tk_stream_close(other);
    tk_stream_close(stream);
}

/* ---- lost devices -----------------------------------------------------------------------------
 */

static void test_lost_device(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_buffer *x = take_on(queue, 4);
    assert_int_equal(launch_one(queue, "nothing", NULL), TK_OK);
    wait_all(queue);
    assert_int_equal(launch_one(queue, "trap", NULL), TK_OK);
    assert_int_equal(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL), TK_DEVICE_ERROR);
    char first[TK_ERROR_MESSAGE_BYTES];
    strcpy(first, tk_error_message());
    assert_error_says("cuda:0 is lost for the rest of this process: ");
    assert_error_says("CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
    assert_error_says("not known to have ended: trap launched at here.c:7");
    assert_null(strstr(first, "nothing"));

    float value = 0;
    tk_buffer *more;
    tk_queue *another;
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 4, 1), TK_DEVICE_ERROR);
    assert_string_equal(tk_error_message(), first);
    assert_int_equal(tk_cuda_download(queue, &value, address_of(x), 4, NULL), TK_DEVICE_ERROR);
    assert_string_equal(tk_error_message(), first);
    assert_int_equal(tk_cuda_queue_open(cuda, &another), TK_DEVICE_ERROR);
    assert_int_equal(device->driver->synchronize(cuda), TK_DEVICE_ERROR);
    assert_string_equal(tk_error_message(), first);
    assert_int_equal(tk_buffer_new_on(device, queue, 1 << 20, &more), TK_OUT_OF_MEMORY);
    assert_error_says("the device has been lost");
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
}

/* ---- forked children --------------------------------------------------------------------------
 */

/* What a child sees of its parent's device; 0 if all is as it should be. */
static int look_in_child(tk_queue *queue, tk_buffer *x) {
    tk_buffer *more;
    int frees = fake.standin_count("cuMemFree_v2");
    if (tk_cuda_fill(queue, address_of(x), 0, 4, 1) != TK_CONTEXT_ERROR) return 1;
    if (!strstr(tk_error_message(), "cuda:0 was opened before this process was forked")) return 2;
    if (tk_cuda_queue_wait(queue, 1, NULL) != TK_CONTEXT_ERROR) return 3;
    if (tk_buffer_new_on(device, queue, 4, &more) != TK_CONTEXT_ERROR) return 4;
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
    tk_device_close(device);
    return fake.standin_count("cuMemFree_v2") == frees ? 0 : 5;
}

static void test_forked_child(void **state) {
    (void)state;
    tk_queue *queue = open_queue();
    tk_buffer *x = take_on(queue, 4);
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 4, 1), TK_OK);
    wait_all(queue);
    pid_t child = fork();
    if (child == 0) _exit(look_in_child(queue, x));
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_standin, close_standin)
    const struct CMUnitTest tests[] = {
        TEST(test_records_are_reused),
        TEST(test_failed_open),
        TEST(test_tickets_pass),
        TEST(test_waits_give_up),
        TEST(test_one_stream_follows_another),
        TEST(test_callbacks_do_not_hold_the_stream),
        TEST(test_callbacks_of_a_lost_device),
        TEST(test_reuse_in_flight),
        TEST(test_uses_by_other_streams),
        TEST(test_freeing_waits),
        TEST(test_out_of_memory_names_holders),
        TEST(test_buffers_outlive_the_device),
        TEST(test_threads_on_their_own_streams),
        TEST(test_host_streams),
        TEST(test_lost_device),
        TEST(test_forked_child),
    };
    return cmocka_run_group_tests(tests, load_standin, NULL);
}
