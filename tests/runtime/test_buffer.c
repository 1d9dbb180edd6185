/* Devices and buffers: sizes, reuse, limits, counters, foreign memory, hooks that fail, copies,
 * many threads, forked children. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/buffer.h"
#include "runtime/host_memory.h"
#include "support/patience.h"
#include "support/sanitizer.h"

static tk_device *open_cpu(size_t memory_limit, size_t cache_limit) {
    tk_device_options options = {.memory_limit = memory_limit, .cache_limit = cache_limit};
    tk_device *device;
    assert_int_equal(tk_device_open(&tk_driver_cpu, 0, &options, &device), TK_OK);
    return device;
}

static tk_buffer *take(tk_device *device, size_t bytes) {
    tk_buffer *buffer;
    assert_int_equal(tk_buffer_new(device, bytes, &buffer), TK_OK);
    assert_non_null(buffer->data);
    assert_int_equal(buffer->bytes, bytes);
    assert_int_equal((uintptr_t)buffer->data % TK_MEMORY_ALIGNMENT, 0);
    memset(buffer->data, 0x5a, bytes);
    return buffer;
}

static void test_capacities(void **state) {
    (void)state;
    size_t before = 0;
    for (size_t bytes = 1; bytes < 3 << 20; bytes = bytes < 5000 ? bytes + 1 : bytes + bytes / 97) {
        size_t capacity = tk_buffer_capacity(bytes);
        assert_true(capacity >= bytes && capacity >= before && capacity % 64 == 0);
        assert_true(capacity - bytes < 64 || capacity - bytes <= bytes / 8);
        assert_int_equal(tk_buffer_capacity(capacity), capacity);
        before = capacity;
    }
    assert_int_equal(tk_buffer_capacity(0), 64);
    assert_int_equal(tk_buffer_capacity(SIZE_MAX), SIZE_MAX);
    assert_true(tk_buffer_capacity(SIZE_MAX / 2) >= SIZE_MAX / 2);
}

static void test_alignment_of_large_blocks(void **state) {
    (void)state;
    tk_device *device = open_cpu(0, 0);
    tk_buffer *large = take(device, 5 << 20);
    assert_int_equal((uintptr_t)large->data % TK_HUGE_PAGE, 0);
    tk_buffer_release(large);
    for (size_t bytes = 0; bytes < 4096; bytes += 37) tk_buffer_release(take(device, bytes));
    tk_device_close(device);
}

static void test_freed_blocks_are_reused(void **state) {
    (void)state;
    tk_device *device = open_cpu(0, 0);
    tk_buffer *first = take(device, 1000), *second = take(device, 1000);
    void *data = second->data;
    tk_buffer_release(first);
    tk_buffer_release(second);
    tk_buffer *again = take(device, 1010);
    assert_ptr_equal(again->data, data);
    tk_memory_info info = tk_device_memory(device);
    assert_int_equal(info.hits, 1);
    assert_int_equal(info.misses, 2);
    assert_int_equal(info.active, again->capacity);
    assert_int_equal(info.cache, again->capacity);
    tk_buffer_release(again);
    tk_device_close(device);
}

static void test_best_fit_within_slack(void **state) {
    (void)state;
    tk_device *device = open_cpu((size_t)1 << 30, (size_t)1 << 30);
    size_t mib = 1 << 20;
    tk_buffer *four = take(device, 4 * mib), *nine = take(device, 9 * mib);
    tk_buffer *eight = take(device, 8 * mib);
    void *of_nine = nine->data, *of_eight = eight->data;
    tk_buffer_release(four);
    tk_buffer_release(eight);
    tk_buffer_release(nine);
    tk_buffer *fitting = take(device, 8 * mib - 5);
    assert_ptr_equal(fitting->data, of_eight);
    tk_buffer *next = take(device, 8 * mib);
    assert_ptr_equal(next->data, of_nine);
    assert_int_equal(next->capacity, 9 * mib);
    tk_buffer *fresh = take(device, 3 * mib); /* four is a third too large */
    assert_int_equal(tk_device_memory(device).misses, 4);
    tk_buffer_release(fitting);
    tk_buffer_release(next);
    tk_buffer_release(fresh);
    tk_device_close(device);
}

static void test_memory_limit(void **state) {
    (void)state;
    tk_device *device = open_cpu(10000, 10000);
    tk_buffer *kept = take(device, 4096), *freed = take(device, 4096), *none;
    tk_buffer_release(freed);
    assert_int_equal(tk_buffer_new(device, 8000, &none), TK_OUT_OF_MEMORY);
    assert_null(none);
    assert_non_null(strstr(tk_error_message(), "8000 bytes asked for"));
    assert_non_null(strstr(tk_error_message(), "4096 bytes active"));
    assert_non_null(strstr(tk_error_message(), "limit 10000"));
    tk_buffer *after = take(device, 5000); /* only once the cache was emptied */
    tk_memory_info info = tk_device_memory(device);
    assert_int_equal(info.cache, 0);
    assert_int_equal(info.active, 4096 + after->capacity);
    assert_int_equal(info.peak, info.active);
    tk_device_set_memory_limit(device, 100);
    assert_int_equal(tk_buffer_new(device, 1, &none), TK_OUT_OF_MEMORY);
    tk_device_set_memory_limit(device, SIZE_MAX);
    assert_int_equal(tk_buffer_new(device, SIZE_MAX, &none), TK_OUT_OF_MEMORY);
    assert_int_equal(tk_buffer_new(device, PTRDIFF_MAX, &none), TK_OUT_OF_MEMORY);
    assert_int_equal(tk_device_memory(device).peak, info.peak);
    tk_buffer_release(take(device, 1));
    tk_buffer_release(kept);
    tk_buffer_release(after);
    tk_device_close(device);
}

static void test_cache_limit_and_age(void **state) {
    (void)state;
    tk_device *device = open_cpu(1 << 20, 3000);
    tk_buffer *old = take(device, 1024), *middle = take(device, 1280), *young = take(device, 1536);
    void *of_middle = middle->data;
    tk_buffer_release(old);
    tk_buffer_release(middle);
    assert_int_equal(tk_device_memory(device).cache, 1024 + 1280);
    tk_buffer_release(young); /* old has to go */
    assert_int_equal(tk_device_memory(device).cache, 1280 + 1536);
    tk_buffer_release(take(device, 4096)); /* larger than the cache */
    assert_int_equal(tk_device_memory(device).cache, 1280 + 1536);
    tk_buffer *again = take(device, 1280);
    assert_ptr_equal(again->data, of_middle);
    tk_buffer_release(again);
    tk_device_set_cache_limit(device, 1300);
    assert_int_equal(tk_device_memory(device).cache, 1280);
    tk_device_clear_cache(device);
    assert_int_equal(tk_device_memory(device).cache, 0);
    tk_device_close(device);
}

static void test_peak(void **state) {
    (void)state;
    tk_device *device = open_cpu(0, 0);
    tk_buffer_release(take(device, 64000));
    assert_int_equal(tk_device_memory(device).active, 0);
    assert_int_equal(tk_device_memory(device).peak, 65536);
    tk_device_reset_peak(device);
    assert_int_equal(tk_device_memory(device).peak, 0);
    tk_buffer *small = take(device, 64);
    assert_int_equal(tk_device_memory(device).peak, 64);
    tk_buffer_release(small);
    tk_device_close(device);
}

static void note_release(void *owner) { ++*(int *)owner; }

static void test_foreign_memory(void **state) {
    (void)state;
    tk_device *device = open_cpu(0, 0);
    int released = 0;
    char memory[100];
    tk_buffer *buffer, *silent;
    assert_int_equal(tk_buffer_wrap(device, memory, 100, note_release, &released, &buffer), TK_OK);
    assert_int_equal(tk_buffer_wrap(device, memory, 0, NULL, NULL, &silent), TK_OK);
    assert_ptr_equal(buffer->data, memory);
    assert_int_equal(tk_device_memory(device).active, 0);
    assert_true(tk_buffer_unique(buffer));
    assert_ptr_equal(tk_buffer_retain(buffer), buffer);
    assert_false(tk_buffer_unique(buffer));
    tk_buffer_release(buffer);
    assert_int_equal(released, 0);
    tk_buffer_release(silent);
    tk_device_close(device); /* the last buffer keeps it */
    tk_buffer_release(buffer);
    assert_int_equal(released, 1);
    tk_buffer_release(NULL);
}

static void test_buffers_outlive_the_close(void **state) {
    (void)state;
    tk_device *device = open_cpu(0, 0);
    tk_buffer *first = take(device, 100), *second = take(device, 5 << 20);
    tk_buffer_release(take(device, 5000));
    tk_device_close(device);
    memset(second->data, 1, second->bytes);
    tk_buffer_release(first);
    tk_buffer_release(second);
    tk_device_close(NULL);
}

struct source {
    int taken, given_back, until_failure;
    size_t bytes;
};

static void *hook_allocate(void *user, size_t bytes, size_t alignment) {
    struct source *source = user;
    if (source->until_failure == 0) return NULL;
    source->until_failure--;
    source->taken++;
    source->bytes += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void hook_free(void *user, void *memory, size_t bytes) {
    struct source *source = user;
    source->given_back++;
    source->bytes -= bytes;
    free(memory);
}

static void test_hooks_that_fail(void **state) {
    (void)state;
    struct source source = {.until_failure = 2};
    tk_device_options options = {.hooks = {hook_allocate, hook_free, &source}};
    tk_device *device;
    assert_int_equal(tk_device_open(&tk_driver_cpu, 0, &options, &device), TK_OK);
    tk_buffer *kept = take(device, 300), *none;
    tk_buffer_release(take(device, 2000));
    assert_int_equal(source.given_back, 0);
    assert_int_equal(tk_buffer_new(device, 9000, &none), TK_OUT_OF_MEMORY);
    assert_non_null(strstr(tk_error_message(), "the system has no more"));
    assert_int_equal(source.given_back, 1); /* the cache was tried */
    assert_int_equal(tk_device_memory(device).active, kept->capacity);
    assert_int_equal(tk_device_memory(device).peak, 320 + 2048);
    source.until_failure = 1;
    tk_buffer_release(take(device, 9000));
    tk_buffer_release(kept);
    tk_device_close(device);
    assert_int_equal(source.taken, source.given_back);
    assert_int_equal(source.bytes, 0);
}

static void test_options_and_names(void **state) {
    (void)state;
    tk_device_options half = {.hooks = {.allocate = hook_allocate}};
    tk_device *device;
    assert_int_equal(tk_device_open(&tk_driver_cpu, 0, &half, &device), TK_INVALID_ARGUMENT);
    assert_null(device);
    assert_int_equal(tk_device_open(&tk_driver_cpu, 1, NULL, &device), TK_NOT_FOUND);
    assert_int_equal(tk_device_open(&tk_driver_null, -1, NULL, &device), TK_NOT_FOUND);
    assert_int_equal(tk_device_open(&tk_driver_null, 3, NULL, &device), TK_OK);
    assert_string_equal(tk_device_name(device), "null:3");
    tk_memory_info info = tk_device_memory(device);
    assert_true(info.memory_limit >= (size_t)64 << 20);
    assert_int_equal(info.cache_limit, info.memory_limit / 4);
    tk_device_close(device);
}

static void test_public_thread_count(void **state) {
    (void)state;
    assert_int_equal(tk_threads_set(3), TK_OK);
    assert_int_equal(tk_threads_count(), 3);
    assert_int_equal(tk_threads_set(-2), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_threads_count(), 3);
    assert_int_equal(tk_threads_set(0), TK_OK);
}

/* Every allocation of a record fails once; nothing is lost or counted. */
static void test_no_memory_for_records(void **state) {
    (void)state;
    tk_device *device;
    tk_alloc_fail_after(1);
    assert_int_equal(tk_device_open(&tk_driver_cpu, 0, NULL, &device), TK_OUT_OF_MEMORY);
    tk_alloc_fail_after(0);
    device = open_cpu(0, 0);
    tk_buffer *none;
    int released = 0;
    tk_alloc_fail_after(1);
    assert_int_equal(tk_buffer_new(device, 10, &none), TK_OUT_OF_MEMORY);
    assert_int_equal(tk_buffer_wrap(device, &released, 4, note_release, &released, &none),
                     TK_OUT_OF_MEMORY);
    tk_alloc_fail_after(0);
    assert_int_equal(released, 0);
    assert_int_equal(tk_device_memory(device).active, 0);
    tk_buffer_release(take(device, 10));
    tk_device_close(device);
}

static void test_copies(void **state) {
    (void)state;
    const tk_driver *drivers[] = {&tk_driver_cpu, &tk_driver_null};
    for (int d = 0; d < 2; d++) {
        tk_device *device;
        assert_int_equal(tk_device_open(drivers[d], 0, NULL, &device), TK_OK);
        size_t bytes = (3 << 20) + 17;
        char *from = malloc(bytes), *back = calloc(1, bytes);
        for (size_t i = 0; i < bytes; i++) from[i] = (char)(i * 31 >> 3);
        tk_buffer *one = take(device, bytes), *two = take(device, bytes);
        assert_int_equal(tk_device_copy(device, one->data, from, bytes, TK_COPY_TO_DEVICE), TK_OK);
        assert_int_equal(tk_device_copy(device, two->data, one->data, bytes, TK_COPY_ON_DEVICE),
                         TK_OK);
        assert_int_equal(tk_device_copy(device, back, two->data, bytes, TK_COPY_FROM_DEVICE),
                         TK_OK);
        assert_memory_equal(from, back, bytes);
        free(from);
        free(back);
        tk_buffer_release(one);
        tk_buffer_release(two);
        tk_device_close(device);
    }
}

/* A cached block and the tail of a block in use are out of bounds for AddressSanitizer. */
static void test_unused_bytes_are_hidden(void **state) {
    (void)state;
    if (!SUPPORT_ASAN) skip();
    tk_device *device = open_cpu(0, 0);
    tk_buffer *buffer = take(device, 1025);
    char *data = buffer->data;
    assert_int_equal(buffer->capacity, 1152);
    tk_buffer_release(buffer);
    assert_true(SUPPORT_IS_HIDDEN(data));
    buffer = take(device, 1030);
    assert_ptr_equal(buffer->data, data);
    assert_false(SUPPORT_IS_HIDDEN(data + 1029));
    assert_true(SUPPORT_IS_HIDDEN(data + 1032));
    tk_buffer_release(buffer);
    tk_device_close(device);
}

struct worker {
    tk_device *device;
    tk_buffer *shared;
    unsigned seed;
};

static size_t random_size(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    unsigned scale = *seed >> 28, fraction = *seed >> 8 & 0xff;
    return ((size_t)256 + fraction) << scale >> 4;
}

static void *hammer(void *argument) {
    struct worker *worker = argument;
    tk_buffer *held[16] = {0};
    for (int round = 0; round < 4000; round++) {
        tk_buffer **place = &held[round * 7 % 16];
        if (*place) {
            unsigned char *data = (*place)->data;
            assert_int_equal(data[0], (unsigned char)(uintptr_t)place);
            assert_int_equal(data[(*place)->bytes - 1], (unsigned char)(uintptr_t)place);
            tk_buffer_release(*place);
        }
        *place = NULL;
        size_t bytes = random_size(&worker->seed);
        if (tk_buffer_new(worker->device, bytes, place) != TK_OK) continue;
        ((unsigned char *)(*place)->data)[0] = (unsigned char)(uintptr_t)place;
        ((unsigned char *)(*place)->data)[bytes - 1] = (unsigned char)(uintptr_t)place;
        tk_buffer_release(tk_buffer_retain(worker->shared));
        if (round % 500 == 0) tk_device_clear_cache(worker->device);
    }
    for (int i = 0; i < 16; i++) tk_buffer_release(held[i]);
    return NULL;
}

static void test_eight_threads(void **state) {
    (void)state;
    tk_device *device = open_cpu(24 << 20, 8 << 20);
    struct worker workers[8];
    pthread_t threads[8];
    tk_buffer *shared = take(device, 64);
    for (unsigned i = 0; i < 8; i++) {
        workers[i] = (struct worker){device, shared, i};
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &workers[i]), 0);
    }
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert_true(tk_buffer_unique(shared));
    tk_memory_info info = tk_device_memory(device);
    assert_int_equal(info.active, 64);
    assert_true(info.hits > info.misses);
    assert_true(info.cache <= info.cache_limit);
    assert_true(info.peak <= info.memory_limit);
    tk_buffer_release(shared);
    tk_device_close(device);
}

static atomic_bool stopping;

static void *keep_allocating(void *argument) {
    struct worker *worker = argument;
    while (!atomic_load(&stopping)) tk_buffer_release(take(worker->device, 4096));
    return NULL;
}

/* The device's lock may be held at any moment of the fork; the child must not need it. The threads
 * go on until the last fork: ThreadSanitizer tells of one in the child that ended before. */
static void test_fork_while_others_allocate(void **state) {
    (void)state;
    tk_device *device = open_cpu(0, 0);
    struct worker worker = {.device = device};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, keep_allocating, &worker);
    int released = 0;
    for (int i = 0; i < 20; i++) {
        tk_buffer *own = take(device, 100000), *foreign, *none;
        assert_int_equal(tk_buffer_wrap(device, &i, 4, note_release, &released, &foreign), TK_OK);
        pid_t child = fork();
        if (child == 0) {
            alarm(SUPPORT_HANG_SECONDS);
            tk_buffer_release(own);
            tk_buffer_release(foreign);
            bool good = released == i + 1;
            good &= tk_buffer_new(device, 10, &none) == TK_CONTEXT_ERROR;
            good &= tk_device_copy(device, NULL, NULL, 0, TK_COPY_TO_DEVICE) == TK_CONTEXT_ERROR;
            tk_device_clear_cache(device);
            tk_device_set_memory_limit(device, 1);
            tk_device_reset_peak(device);
            good &= tk_device_memory(device).memory_limit > 1;
            tk_device_close(device);
            _exit(good ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        tk_buffer_release(own);
        tk_buffer_release(foreign);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    tk_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacities),
        cmocka_unit_test(test_alignment_of_large_blocks),
        cmocka_unit_test(test_freed_blocks_are_reused),
        cmocka_unit_test(test_best_fit_within_slack),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_cache_limit_and_age),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_foreign_memory),
        cmocka_unit_test(test_buffers_outlive_the_close),
        cmocka_unit_test(test_hooks_that_fail),
        cmocka_unit_test(test_options_and_names),
        cmocka_unit_test(test_public_thread_count),
        cmocka_unit_test(test_no_memory_for_records),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_unused_bytes_are_hidden),
        cmocka_unit_test(test_eight_threads),
        cmocka_unit_test(test_fork_while_others_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
