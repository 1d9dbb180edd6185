/* The notation: what parses to what, and where the caret points on an error. */
#include <stdio.h>
#include <string.h>

#include "support/layout_cases.h"
#include "tiki/layout_call.h"

static void expect_text(const char *text, const char *printed) {
    tk_layout_value value;
    char back[4096];
    if (tk_layout_value_parse(text, &value) != TK_OK) fail_msg("%s", tk_error_message());
    size_t length = tk_layout_value_print(&value, back, sizeof back);
    assert_string_equal(back, printed);
    assert_int_equal(length, strlen(printed));
}

static void prints(void **state) {
    (void)state;
    expect_text("((2,4),8):((1,16),2)", "((2,4),8):((1,16),2)");
    expect_text(" ( ( 2 , 4 ) , 8 ) : ( ( 1 , 16 ) , 2 ) ", "((2,4),8):((1,16),2)");
    expect_text("(4,):(1,)", "(4):(1)");
    expect_text("():()", "():()");
    expect_text("?{i64 div=8}", "?{i64 div=8}");
    expect_text("(?,?{i64},?{div=16},?{i32},?{div=1})", "(?,?{i64},?{div=16},?,?)");
    expect_text("(4,8):(?{div=2}@0,-3@1@0)", "(4,8):(?{div=2}@0,-3@1@0)");
    expect_text("[16:1;(2,4):(1,8);_]", "[16:1;(2,4):(1,8);_]");
    expect_text("[16;(2,4);[8:1;_]]", "[16:1;[2:1;4:1];[8:1;_]]");
    expect_text("S<3,4,3>", "S<3,4,3>");
    expect_text("S<2,0,-3>o?{div=8}o(8,64):(64,1)", "S<2,0,-3> o ?{div=8} o (8,64):(64,1)");
    expect_text("(_,(2,_),1)", "(_,(2,_),1)");
    expect_text("9223372036854775807", "9223372036854775807");
}

/* The caret stands below the first character of `rest` in `text`. */
static void expect_caret(const char *text, const char *rest, const char *expected) {
    tk_layout_value value;
    assert_int_equal(tk_layout_value_parse(text, &value), TK_FORMAT_ERROR);
    const char *message = tk_error_message();
    if (!strstr(message, expected)) fail_msg("%s, expected: %s", message, expected);
    const char *line = strchr(message, '\n');
    assert_non_null(line);
    const char *caret = strchr(line + 1, '\n');
    assert_non_null(caret);
    size_t column = strcspn(caret + 1, "^");
    size_t wanted = 2 + (strlen(text) - strlen(rest));
    if (column != wanted) fail_msg("caret at %zu, expected %zu:%s", column, wanted, message);
}

static void carets(void **state) {
    (void)state;
    expect_caret("(4,(2,3):1", ":1", "`,` or `)`");
    expect_caret("(4,8):(1,4", "", "`,` or `)`");
    expect_caret("(4,8):(1,4)x", "x", "the end");
    expect_caret("(4,8):((1,2),4)", "((1,2),4)", "same structure");
    expect_caret("(4,0):(1,4)", "(4,0):(1,4)", "at least 1");
    expect_caret("(4,a):(1,4)", "a):(1,4)", "an integer");
    expect_caret("(4,99999999999999999999):(1,4)", "99999999999999999999):(1,4)", "64 bits");
    expect_caret("(4,?{dvi=8})", "dvi=8})", "div=");
    expect_caret("(4,?{div=0})", "0})", "divisor");
    expect_caret("(4,?{div=8)", ")", "`}`");
    expect_caret("(4,8):(1@99,4)", "99,4)", "mode");
    expect_caret("(4,8):(1,_)", "(1,_)", "without");
    expect_caret("[4:1;8:1", "", "`;` or `]`");
    expect_caret("S<3,4>", ">", "`,`");
    expect_caret("S<3,4,1>", "S<3,4,1>", "|shift|");
    expect_caret("S<3,4,99>", "99>", "-62");
    expect_caret("S<3,4,3> o (8,64):(64,1)", ":(64,1)", "`o`");
    expect_caret("", "", "an integer");
}

/* A tuple as deep or as wide as a value holds, and one more. */
static void sizes(void **state) {
    (void)state;
    char text[1024];
    tk_tuple tuple;
    memset(text, '(', 123);
    text[123] = '1';
    memset(text + 124, ')', 123);
    text[247] = 0;
    assert_int_equal(tk_tuple_parse(text, &tuple), TK_OK);
    assert_int_equal(tk_tuple_depth(&tuple), 123);
    memset(text, '(', 200);
    text[200] = 0;
    assert_int_equal(tk_tuple_parse(text, &tuple), TK_FORMAT_ERROR);
    strcpy(text, "(1");
    for (int i = 1; i < 64; i++) strcat(text, ",1");
    strcat(text, ")");
    assert_int_equal(tk_tuple_parse(text, &tuple), TK_OK);
    assert_int_equal(tk_tuple_rank(&tuple), 64);
    strcpy(text + strlen(text) - 1, ",1)");
    assert_int_equal(tk_tuple_parse(text, &tuple), TK_FORMAT_ERROR);
}

/* Printing into too little room keeps the beginning and says how much there is. */
static void truncation(void **state) {
    (void)state;
    tk_layout layout = layout_of("(4,8):(1,4)");
    char text[8];
    assert_int_equal(tk_layout_print(&layout, text, sizeof text), 11);
    assert_string_equal(text, "(4,8):(");
    assert_int_equal(tk_layout_print(&layout, NULL, 0), 11);
}

static void kinds(void **state) {
    (void)state;
    tk_layout layout;
    tk_swizzle swizzle;
    tk_composed composed;
    assert_int_equal(tk_layout_parse("[4:1;2:1]", &layout), TK_FORMAT_ERROR);
    assert_int_equal(tk_layout_parse("(4,2)", &layout), TK_FORMAT_ERROR);
    assert_int_equal(tk_swizzle_parse("S<3,4,3> o 0", &swizzle), TK_FORMAT_ERROR);
    assert_int_equal(tk_composed_parse("(4,2):(1,4)", &composed), TK_OK);
    assert_int_equal(composed.inner, TK_INNER_NONE);
    assert_int_equal(tk_layout_parse(NULL, &layout), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_layout_parse("4:1", NULL), TK_INVALID_ARGUMENT);
    tk_tiler tiler = tiler_of("[4:1;2:1]");
    assert_true(tk_tiler_is_list(&tiler));
    assert_int_equal(tk_layout_flatten(&tiler, &layout), TK_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints),     cmocka_unit_test(carets), cmocka_unit_test(sizes),
        cmocka_unit_test(truncation), cmocka_unit_test(kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
