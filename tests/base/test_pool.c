/* The thread pool: every item once, the same parts each time, nested and concurrent loops, changes
 * of the thread count, forked children. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/pool.h"
#include "support/patience.h"
#include "support/sanitizer.h"

#define MAX_ITEMS 5000

struct record {
    _Atomic int visits[MAX_ITEMS];
    _Atomic int calls;
    int64_t begin[TK_POOL_MAX_THREADS];
    int64_t end[TK_POOL_MAX_THREADS];
};

static void note_part(void *arg, int64_t begin, int64_t end, int worker) {
    struct record *record = arg;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&record->visits[i], 1);
    atomic_fetch_add(&record->calls, 1);
    record->begin[worker] = begin;
    record->end[worker] = end;
}

static struct record *note_loop(int64_t count, int64_t grain) {
    struct record *record = calloc(1, sizeof *record);
    assert_non_null(record);
    tk_parallel_for(count, grain, note_part, record);
    return record;
}

static void test_each_item_once(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 63, 64, 65, 1000, 4097, 5000};
    static const int64_t grains[] = {-1, 0, 1, 2, 16, 1000, 6000};
    for (int threads = 1; threads <= 9; threads += 2) {
        assert_int_equal(tk_pool_set_threads(threads), TK_OK);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
                struct record *record = note_loop(counts[c], grains[g]);
                for (int64_t i = 0; i < MAX_ITEMS; i++)
                    assert_int_equal(record->visits[i], i < counts[c]);
                int64_t parts = tk_chunk_count(counts[c], grains[g]);
                assert_int_equal(record->calls, parts < threads ? parts : threads);
                free(record);
            }
        }
    }
}

static void test_parts_are_the_same_each_time(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(4), TK_OK);
    struct record *first = note_loop(5000, 1);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(first->begin[i] % 64, 0);
        assert_int_equal(first->begin[i], first->end[i - 1]);
    }
    for (int again = 0; again < 200; again++) {
        struct record *record = note_loop(5000, 1);
        assert_memory_equal(record->begin, first->begin, sizeof first->begin);
        assert_memory_equal(record->end, first->end, sizeof first->end);
        free(record);
    }
    free(first);
}

static void test_negative_count_is_empty(void **state) {
    (void)state;
    struct record *record = note_loop(-5, 1);
    assert_int_equal(record->calls, 0);
    free(record);
}

struct sums {
    double partial[64];
};

static void sum_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end, int worker) {
    struct sums *sums = arg;
    assert_true(worker >= 0 && worker < tk_pool_threads());
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += 1.0 / (double)(i + 1);
    sums->partial[chunk] = sum;
}

static double sum_by_chunks(int threads) {
    struct sums sums = {{0}};
    assert_int_equal(tk_pool_set_threads(threads), TK_OK);
    tk_parallel_chunks(10000, 170, sum_chunk, &sums);
    double total = 0;
    for (int64_t i = 0; i < tk_chunk_count(10000, 170); i++) total += sums.partial[i];
    return total;
}

static void test_chunks_do_not_depend_on_threads(void **state) {
    (void)state;
    double one = sum_by_chunks(1);
    for (int threads = 2; threads <= 8; threads++) {
        double other = sum_by_chunks(threads);
        assert_memory_equal(&one, &other, sizeof one);
    }
    assert_int_equal(tk_chunk_count(0, 5), 0);
    assert_int_equal(tk_chunk_count(5, 0), 5);
    assert_int_equal(tk_chunk_count(5, 5), 1);
    assert_int_equal(tk_chunk_count(6, 5), 2);
}

static void inner_body(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    atomic_fetch_add((_Atomic int64_t *)arg, end - begin);
}

static void outer_body(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    assert_true(tk_pool_inside());
    assert_int_equal(tk_pool_set_threads(3), TK_INVALID_ARGUMENT);
    tk_pool_shutdown();
    for (int64_t i = begin; i < end; i++) tk_parallel_for(100, 1, inner_body, arg);
}

static void test_nested_loops_run_inline(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(4), TK_OK);
    _Atomic int64_t items = 0;
    for (int i = 0; i < 100; i++) tk_parallel_for(20, 1, outer_body, (void *)&items);
    assert_int_equal(items, 100 * 20 * 100);
    assert_false(tk_pool_inside());
}

static void test_thread_count(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(-1), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "-1"));
    assert_int_equal(tk_pool_set_threads(TK_POOL_MAX_THREADS + 1), TK_INVALID_ARGUMENT);
    setenv("TIKI_THREADS", "3", 1);
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
    assert_int_equal(tk_pool_threads(), 3);
    setenv("TIKI_THREADS", "many", 1);
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
    int cpus = tk_pool_threads();
    assert_true(cpus >= 1);
    setenv("TIKI_THREADS", "99999", 1);
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
    assert_int_equal(tk_pool_threads(), TK_POOL_MAX_THREADS);
    unsetenv("TIKI_THREADS");
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
    assert_int_equal(tk_pool_threads(), cpus);
}

static _Atomic int busy, most_busy;

static void busy_body(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    int now = atomic_fetch_add(&busy, 1) + 1;
    int most = atomic_load(&most_busy);
    while (now > most && !atomic_compare_exchange_weak(&most_busy, &most, now)) continue;
    int64_t *items = arg;
    for (int64_t i = begin; i < end; i++) items[i]++;
    atomic_fetch_sub(&busy, 1);
}

static void *hammer(void *arg) {
    (void)arg;
    int64_t items[256] = {0};
    for (int round = 0; round < 1000; round++) tk_parallel_for(256, 1, busy_body, items);
    for (int i = 0; i < 256; i++) assert_int_equal(items[i], 1000);
    return NULL;
}

static void test_callers_take_turns(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(3), TK_OK);
    pthread_t callers[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_join(callers[i], NULL), 0);
    assert_in_range(most_busy, 1, 3);
}

static void *change_threads(void *arg) {
    (void)arg;
    for (int i = 0; i < 60; i++) {
        assert_int_equal(tk_pool_set_threads(1 + i % 6), TK_OK);
        if (i % 5 == 0) tk_pool_shutdown();
    }
    return NULL;
}

static void test_threads_change_under_loops(void **state) {
    (void)state;
    pthread_t callers[3];
    pthread_create(&callers[0], NULL, hammer, NULL);
    pthread_create(&callers[1], NULL, hammer, NULL);
    pthread_create(&callers[2], NULL, change_threads, NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(callers[i], NULL), 0);
}

static void test_threads_sleep_and_wake(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(2), TK_OK);
    _Atomic int64_t items = 0;
    for (int i = 0; i < 300; i++) {
        tk_parallel_for(1000, 1, inner_body, (void *)&items);
        usleep((useconds_t)(i % 50));
    }
    assert_int_equal(items, 300 * 1000);
}

/* Ends the child, without the parent's exit handlers, by 0 if all items were seen. */
static void run_child(void) {
    alarm(SUPPORT_HANG_SECONDS);
    if (!support_children_start_threads && tk_pool_set_threads(1) != TK_OK) _exit(2);
    _Atomic int64_t items = 0;
    for (int i = 0; i < 20; i++) tk_parallel_for(1000, 1, inner_body, (void *)&items);
    tk_pool_shutdown();
    tk_parallel_for(1000, 1, inner_body, (void *)&items);
    _exit(items == 21 * 1000 ? 0 : 1);
}

static void fork_and_check(void) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) run_child();
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_forked_child_has_its_own_pool(void **state) {
    (void)state;
    uint32_t epoch = tk_fork_epoch();
    assert_int_equal(tk_pool_set_threads(4), TK_OK);
    for (int i = 0; i < 10; i++) {
        _Atomic int64_t items = 0;
        tk_parallel_for(1000, 1, inner_body, (void *)&items);
        fork_and_check();
        assert_int_equal(items, 1000);
    }
    assert_int_equal(tk_fork_epoch(), epoch);
}

static atomic_bool stopping;

static void *keep_looping(void *arg) {
    _Atomic int64_t items = 0;
    while (!atomic_load(&stopping)) tk_parallel_for(256, 1, inner_body, (void *)&items);
    return arg;
}

/* They go on until the last fork: ThreadSanitizer tells of a thread in the child that ended before.
 */
static void test_fork_while_others_loop(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(3), TK_OK);
    pthread_t callers[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, keep_looping, NULL), 0);
    for (int i = 0; i < 10; i++) fork_and_check();
    atomic_store(&stopping, true);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(callers[i], NULL), 0);
}

static _Atomic int gate; /* 0: not begun, 1: a part waits, 2: open */

static void wait_for_gate(void *arg, int64_t begin, int64_t end, int worker) {
    (void)arg;
    (void)begin;
    (void)end;
    (void)worker;
    int unseen = 0;
    atomic_compare_exchange_strong(&gate, &unseen, 1);
    while (atomic_load(&gate) != 2) usleep(100);
}

static void *loop_at_the_gate(void *arg) {
    tk_parallel_for(2, 1, wait_for_gate, arg);
    return NULL;
}

/* The fork waits for no loop, and the child's loops do not wait for the parent's. */
static void test_fork_in_the_middle_of_a_loop(void **state) {
    (void)state;
    assert_int_equal(tk_pool_set_threads(2), TK_OK);
    pthread_t caller;
    assert_int_equal(pthread_create(&caller, NULL, loop_at_the_gate, NULL), 0);
    while (atomic_load(&gate) != 1) usleep(100);
    fork_and_check();
    atomic_store(&gate, 2);
    assert_int_equal(pthread_join(caller, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_item_once),
        cmocka_unit_test(test_parts_are_the_same_each_time),
        cmocka_unit_test(test_negative_count_is_empty),
        cmocka_unit_test(test_chunks_do_not_depend_on_threads),
        cmocka_unit_test(test_nested_loops_run_inline),
        cmocka_unit_test(test_thread_count),
        cmocka_unit_test(test_callers_take_turns),
        cmocka_unit_test(test_threads_change_under_loops),
        cmocka_unit_test(test_threads_sleep_and_wake),
        cmocka_unit_test(test_forked_child_has_its_own_pool),
        cmocka_unit_test(test_fork_while_others_loop),
        cmocka_unit_test(test_fork_in_the_middle_of_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
