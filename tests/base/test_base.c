/* The small tools of the base layer: errors, allocation that fails on demand, vectors, strings, the
 * hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"

/* ---- errors -----------------------------------------------------------------------------------
 */

static void test_error_text(void **state) {
    (void)state;
    assert_int_equal(tk_fail(TK_SHAPE_ERROR, "%d and %s", 3, "four"), TK_SHAPE_ERROR);
    assert_int_equal(tk_error_code(), TK_SHAPE_ERROR);
    assert_string_equal(tk_error_message(), "3 and four");
    assert_int_equal(tk_fail_within(TK_SHAPE_ERROR, "matmul"), TK_SHAPE_ERROR);
    assert_string_equal(tk_error_message(), "matmul: 3 and four");
    assert_int_equal(tk_fail(TK_AXIS_ERROR, "again: %s", tk_error_message()), TK_AXIS_ERROR);
    assert_string_equal(tk_error_message(), "again: matmul: 3 and four");
}

static void test_long_error_text_is_cut(void **state) {
    (void)state;
    char text[3 * TK_ERROR_MESSAGE_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    tk_fail(TK_INTERNAL, "%s", text);
    assert_int_equal(strlen(tk_error_message()), TK_ERROR_MESSAGE_BYTES - 1);
    tk_fail_within(TK_INTERNAL, "where");
    assert_int_equal(strlen(tk_error_message()), TK_ERROR_MESSAGE_BYTES - 1);
    assert_memory_equal(tk_error_message(), "where: xxx", 10);
    tk_fail_within(TK_INTERNAL, "%s", text);
    assert_memory_equal(tk_error_message(), "where: xxx", 10);
}

static void *fail_elsewhere(void *arg) {
    (void)arg;
    bool clean = tk_error_code() == TK_OK && !*tk_error_message();
    tk_fail(TK_IO_ERROR, "elsewhere");
    return clean ? "clean" : NULL;
}

static void test_errors_are_per_thread(void **state) {
    (void)state;
    tk_fail(TK_AXIS_ERROR, "here");
    pthread_t thread;
    void *clean;
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, &clean);
    assert_non_null(clean);
    assert_string_equal(tk_error_message(), "here");
}

static void test_status_names(void **state) {
    (void)state;
    assert_string_equal(tk_status_name(TK_OK), "ok");
    assert_string_equal(tk_status_name(TK_NAN_TRAPPED), "NaN trapped");
    assert_string_equal(tk_status_name((tk_status)999), "unknown status");
}

/* ---- allocation and vectors -------------------------------------------------------------------
 */

static void test_allocations_fail_on_demand(void **state) {
    (void)state;
    tk_alloc_fail_after(3);
    void *first = tk_malloc(8), *second = tk_calloc(2, 4);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(tk_malloc(1));
    assert_null(tk_strdup("more"));
    assert_null(tk_realloc(first, 100));
    tk_alloc_fail_after(0);
    char *text = tk_strdup("text");
    assert_string_equal(text, "text");
    void *empty = tk_malloc(0);
    assert_non_null(empty);
    tk_free(empty);
    tk_free(text);
    tk_free(first);
    tk_free(second);
}

static void *allocate_some(void *failures) {
    for (int i = 0; i < 100; i++) {
        void *memory = tk_malloc(8);
        if (!memory) atomic_fetch_add((_Atomic int *)failures, 1);
        tk_free(memory);
    }
    return NULL;
}

/* The switch must not turn itself off when threads count it down together. */
static void test_allocations_go_on_failing(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        _Atomic int failures = 0;
        pthread_t threads[4];
        tk_alloc_fail_after(101);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, allocate_some, (void *)&failures),
                             0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        tk_alloc_fail_after(0);
        assert_int_equal(failures, 300);
    }
}

static void test_vector(void **state) {
    (void)state;
    TK_VEC(int64_t) vector = {0};
    for (int64_t i = 0; i < 1000; i++) assert_true(tk_vec_push(&vector, i * i));
    for (int64_t i = 0; i < 1000; i++) assert_int_equal(vector.items[i], i * i);
    assert_true(tk_vec_reserve(&vector, 5000));
    size_t count = vector.count, capacity = vector.capacity;
    assert_true(capacity >= 5000);
    tk_alloc_fail_after(1);
    assert_false(tk_vec_reserve(&vector, 50000));
    tk_alloc_fail_after(0);
    assert_false(tk_vec_reserve(&vector, SIZE_MAX / 4));
    assert_int_equal(vector.count, count);
    assert_int_equal(vector.capacity, capacity);
    assert_int_equal(vector.items[999], 999 * 999);
    tk_vec_deinit(&vector);
    assert_null(vector.items);
}

static void test_checked_arithmetic(void **state) {
    (void)state;
    int64_t result;
    assert_false(tk_mul_overflow_i64(INT64_C(1) << 31, INT64_C(1) << 31, &result));
    assert_true(result == INT64_C(1) << 62);
    assert_true(tk_mul_overflow_i64(INT64_C(1) << 32, INT64_C(1) << 31, &result));
    assert_false(tk_add_overflow_i64(INT64_MAX - 1, 1, &result));
    assert_true(tk_add_overflow_i64(INT64_MAX, 1, &result));
}

/* ---- strings ----------------------------------------------------------------------------------
 */

static void test_string_grows(void **state) {
    (void)state;
    tk_strbuf buffer = {0};
    for (int i = 0; i < 300; i++) tk_strbuf_printf(&buffer, "%d,", i);
    tk_strbuf_puts(&buffer, "end");
    tk_strbuf_putc(&buffer, '.');
    tk_strbuf_put(&buffer, "a\0b", 3);
    assert_int_equal(buffer.length, 10 * 2 + 90 * 3 + 200 * 4 + 3 + 1 + 3);
    assert_memory_equal(buffer.text, "0,1,2,3,", 8);
    assert_memory_equal(buffer.text + buffer.length - 7, "end.a\0b", 8);
    char *text = tk_strbuf_take(&buffer);
    assert_memory_equal(text, "0,1,2,", 6);
    assert_null(buffer.text);
    assert_int_equal(buffer.length, 0);
    tk_free(text);
    text = tk_strbuf_take(&buffer);
    assert_string_equal(text, "");
    tk_free(text);
}

static void test_string_without_memory(void **state) {
    (void)state;
    tk_strbuf buffer = {0};
    tk_strbuf_puts(&buffer, "short");
    tk_alloc_fail_after(1);
    tk_strbuf_printf(&buffer, "%0200d", 1);
    tk_alloc_fail_after(0);
    assert_true(buffer.failed);
    assert_string_equal(buffer.text, "short");
    tk_strbuf_puts(&buffer, "x");
    assert_string_equal(buffer.text, "short");
    assert_null(tk_strbuf_take(&buffer));
    assert_false(buffer.failed);
    tk_strbuf_deinit(&buffer);
}

/* ---- hash -------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Keys as the intern table has them: long, and different in one bit or in length alone. */
static void test_hash_separates(void **state) {
    (void)state;
    enum { BYTES = 40 };
    uint64_t hashes[BYTES * 8 + BYTES + 1];
    unsigned char key[BYTES] = {0};
    size_t count = 0;
    for (size_t length = 0; length <= BYTES; length++)
        hashes[count++] = tk_hash_bytes(1, key, length);
    for (int bit = 0; bit < BYTES * 8; bit++) {
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
        hashes[count++] = tk_hash_bytes(1, key, BYTES);
        assert_true(tk_hash_bytes(1, key, BYTES) == hashes[count - 1]);
        assert_true(tk_hash_bytes(2, key, BYTES) != hashes[count - 1]);
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    qsort(hashes, count, sizeof *hashes, by_value);
    for (size_t i = 1; i < count; i++) assert_true(hashes[i] != hashes[i - 1]);
}

/* Every output bit depends on the input bits as a whole: of all single turns, a third to two thirds
 * turn it. One multiplication does not give the half that a perfect mixer would. */
static void test_hash_mixes(void **state) {
    (void)state;
    int flips[64] = {0};
    for (uint64_t value = 0; value < 1000; value++) {
        for (int bit = 0; bit < 64; bit++) {
            uint64_t change = tk_hash_mix(7, value) ^ tk_hash_mix(7, value ^ UINT64_C(1) << bit);
            for (int out = 0; out < 64; out++) flips[out] += (int)(change >> out & 1);
        }
    }
    for (int out = 0; out < 64; out++) assert_in_range(flips[out], 64000 / 3, 128000 / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_text),
        cmocka_unit_test(test_long_error_text_is_cut),
        cmocka_unit_test(test_errors_are_per_thread),
        cmocka_unit_test(test_status_names),
        cmocka_unit_test(test_allocations_fail_on_demand),
        cmocka_unit_test(test_allocations_go_on_failing),
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_checked_arithmetic),
        cmocka_unit_test(test_string_grows),
        cmocka_unit_test(test_string_without_memory),
        cmocka_unit_test(test_hash_separates),
        cmocka_unit_test(test_hash_mixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
