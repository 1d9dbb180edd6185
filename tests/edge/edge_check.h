/* The tests of the edge contract run in one context a file, each in a scope of its own. */
#ifndef EDGE_EDGE_CHECK_H
#define EDGE_EDGE_CHECK_H

#include "support/build_check.h"

static tk_scope edge_scope;

static inline int open_scope(void **state) {
    edge_scope = tk_scope_open(*state);
    return 0;
}

static inline int close_scope(void **state) {
    (void)state;
    tk_scope_close(edge_scope);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

#endif
