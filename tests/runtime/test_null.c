/* The public functions of the runtime's own headers with NULL; tests/array/test_null.c has those
 * that need a context. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/null_check.h"
#include "tiki/cache.h"
#include "tiki/gpu.h"

static bool visit(void *arg, const tk_cache_entry *entry) {
    (void)arg;
    (void)entry;
    return true;
}

static void caches(void **state) {
    (void)state;
    tk_cache_options options = {.folder = "no-such-folder", .read_only = true};
    tk_cache *cache;
    char *text = NULL;
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    gives_status(tk_cache_open(NULL, P(&cache)));
    assert_string_equal(tk_cache_folder(NULL), "");
    assert_int_equal(tk_cache_warning(NULL, NULL, 0), 0);
    gives_status(tk_cache_list(P(cache), visit, NULL));
    assert_int_equal(tk_cache_list(cache, NULL, NULL), TK_INVALID_ARGUMENT);
    gives_status(tk_cache_verify(P(cache), NULL, NULL));
    gives_status(tk_cache_prune(P(cache), 0, NULL));
    gives_status(tk_cache_explain(P(cache), P("00"), P(&text)));
    tk_cache_text_free(NULL);
    tk_cache_close(cache);
    tk_cache_close(NULL);
}

static void gpus(void **state) {
    (void)state;
    int count;
    tk_gpu_info info;
    gives_status(tk_gpu_count(P(&count)));
    gives_status(tk_gpu_describe(0, P(&info)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(caches), cmocka_unit_test(gpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
