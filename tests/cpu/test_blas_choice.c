/* Naming the library of large products: what is refused, and that it is too late once one is open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tiki/array.h"

static void test_wrong_names(void **state) {
    (void)state;
    assert_int_equal(tk_cpu_set_blas(NULL, ""), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cpu_set_blas("x", NULL), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cpu_set_blas("x", "a prefix that is far too long"), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cpu_set_blas("no/such/library.so", ""), TK_IO_ERROR);
    assert_non_null(strstr(tk_error_message(), "no/such/library.so"));
}

/* A file that is no library is found out when it is opened: there is none then. */
static void test_a_file_that_is_no_library(void **state) {
    (void)state;
    assert_int_equal(tk_cpu_set_blas("LICENSE", "scipy_"), TK_OK);
    assert_null(tk_cpu_blas());
    assert_int_equal(tk_cpu_set_blas("LICENSE", ""), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "before the first product"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong_names),
                                       cmocka_unit_test(test_a_file_that_is_no_library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
