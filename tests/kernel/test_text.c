/* The text form: printing and reading back, errors with line and caret, the verifier. */
#include "support/kernel_files.h"

#include "kernel/ir.h"
#include "kernel/table.h"

static void assert_same_again(const tk_kernel *kernel, int flags) {
    char *first, *second;
    tk_kernel *again;
    assert_ok(tk_kernel_print(kernel, flags, &first));
    assert_ok(tk_kernel_parse(first, "again.tk", &again));
    assert_ok(tk_kernel_print(again, flags, &second));
    assert_string_equal(first, second);
    assert_true(tk_kernel_equal(kernel, again));
    tk_kernel_text_free(first);
    tk_kernel_text_free(second);
    tk_kernel_release(again);
}

static void test_round_trip(void **state) {
    (void)state;
    for (size_t i = 0; i < KERNEL_FILES; i++) {
        tk_kernel *kernel = parse_file(kernel_files[i]), *copy;
        assert_same_again(kernel, 0);
        assert_same_again(kernel, TK_KERNEL_LINES);
        assert_ok(tk_kernel_clone(kernel, &copy));
        assert_ok(tk_kernel_verify(copy));
        assert_true(tk_kernel_equal(kernel, copy));
        tk_kernel_release(kernel);
        assert_same_again(copy, TK_KERNEL_LINES);
        tk_kernel_release(copy);
    }
}

/* The example is written as the printer writes, but for its comment. */
static void test_canonical(void **state) {
    (void)state;
    char *file = read_text_file(kernel_files[0]), *text;
    tk_kernel *kernel = parse_file(kernel_files[0]);
    assert_ok(tk_kernel_print(kernel, 0, &text));
    assert_string_equal(strchr(file, '\n') + 1, text);
    tk_kernel_text_free(text);
    tk_kernel_release(kernel);
    free(file);
}

static const char views[] =
    "tiki kernel 1\n\nkernel views(\n"
    "  %x: ptr<f16, global> read align 16,\n"
    "  %map: ptr<tmap, param> map %x f16 extent (%n, 64) stride (%n * 2) box (64, 32) swizzle 128 "
    "nan,\n"
    "  %n: i32)\n"
    "form view\n"
    "require %n % 8 == 0\n"
    "grid (%n / 8 - (1 - %n), min(%n, device.sms), 1)\n"
    "cluster (2, 1, 1)\n"
    "block (128, 1, 1)\n"
    "cooperative\n"
    "programmatic\n"
    "{\n"
    "  %tile = shared [align = 1024] : shared<f16, \"S<3,4,3> o 0 o (64,64):(64,1)\">\n"
    "  %bars = shared : shared<mbar, \"2:1\">\n"
    "  %full = address %bars : ptr<mbar, shared>\n"
    "  mbarrier_init %full, i32(1)\n"
    "  %v = view %x, %n, %n : view<f16, global, \"(?{div=8},64):(1,?{div=8})\">\n"
    "  %cut = tile %v, %n [coord = \"(?,0)\", tiler = \"[8:1;64:1]\"] : view<f16, global, "
    "\"(8,64):(1,?{div=8})\">\n"
    "  %p = locate %cut, %n, %n [coord = \"(?,?)\"] : ptr<f16, global>\n"
    "  %acc = registers : regs<f32, \"(2,2):(1,2)\">\n"
    "  mbarrier_wait %full, i32(0)\n"
    "}\n";

static void test_views(void **state) {
    (void)state;
    char *text;
    tk_kernel *kernel = parse_text(views);
    assert_same_again(kernel, 0);
    assert_ok(tk_kernel_print(kernel, 0, &text));
    char *attrs = strstr(text, "tile %v"), *given = strstr(views, "tile %v");
    assert_non_null(attrs);
    assert_non_null(given);
    tk_kernel_text_free(text);
    tk_kernel_release(kernel);
}

/* ---- errors ---- */

static void assert_refused(const char *text, tk_status code, const char *words) {
    tk_kernel *kernel = NULL;
    tk_status status = tk_kernel_parse(text, "bad.tk", &kernel);
    if (status != code) fail_msg("%s in:\n%s", tk_status_name(status), tk_error_message());
    if (!strstr(tk_error_message(), words))
        fail_msg("expected \"%s\" in:\n%s", words, tk_error_message());
}

static void assert_body_refused(const char *body, tk_status code, const char *words) {
    char *text = around(body, 32);
    assert_refused(text, code, words);
    free(text);
}

static void test_caret(void **state) {
    (void)state;
    assert_body_refused(
        "  %a = mull %t, %t : i32", TK_FORMAT_ERROR,
        "bad.tk:5:8: \"mull\" is no operation\n    %a = mull %t, %t : i32\n         ^");
    assert_body_refused("%a = add %t, %nowhere : i32", TK_FORMAT_ERROR,
                        "bad.tk:5:14: %nowhere is not defined above");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *body;
        tk_status code;
        const char *words;
    } cases[] = {
        {"%a = add %t, f32(1) : i32", TK_DTYPE_ERROR,
         "b is f32, expected i32 as the first operand is"},
        {"%a = add %t : i32", TK_INVALID_ARGUMENT, "operand b is missing"},
        {"%a = add %t, %t, %t : i32", TK_FORMAT_ERROR, "takes no more operands"},
        {"%a = add %t, %t : i64", TK_DTYPE_ERROR, "stated as i64, but it is i32"},
        {"%a = fma %t, %t, %t : i32", TK_DTYPE_ERROR, "a is i32, expected an f16"},
        {"%a = icmp %t, %t : i1", TK_INVALID_ARGUMENT, "attribute icmp is missing"},
        {"%a = icmp.near %t, %t : i1", TK_FORMAT_ERROR, "no attribute \"near\""},
        {"%a = load %x : f16", TK_DTYPE_ERROR, "f16 through ptr<f32, global>"},
        {"%a = load.acquire %x : f32", TK_INVALID_ARGUMENT, "an order needs a scope"},
        {"%a = load %x : f32x3", TK_DTYPE_ERROR, "a vector has 2, 4, 8 or 16 lanes"},
        {"%a = load %x : f32x8", TK_DTYPE_ERROR, "at most 16 bytes"},
        {"%a, %b = add %t, %t : i32", TK_FORMAT_ERROR, "2 names for 1 results"},
        {"%t = add %t, %t : i32", TK_FORMAT_ERROR, "%t is defined twice"},
        {"%s = shared : shared<f32, \"(?,4):(4,1)\">", TK_SHAPE_ERROR, "static layout"},
        {"yield %t", TK_INVALID_ARGUMENT, "it stands at the end of a region"},
        {"%c = icmp.eq %t, %t : i1 %a = if %c { yield %t } else { }", TK_SHAPE_ERROR,
         "0 yielded values, expected 1"},
        {"%c = icmp.eq %t, %t : i1 if %c { %a = neg %t : i32 } %b = neg %a : i32",
         TK_INVALID_ARGUMENT, "not visible here"},
        {"for %i = %t to %t step i32(0) { }", TK_INVALID_ARGUMENT, "the step is 0"},
        {"%q = for %i = %t to %n step i32(1) carry (%a = %t) { %f = float_from_signed %a : f32 "
         "yield %f "
         "}",
         TK_DTYPE_ERROR, "is f32, expected i32"},
        {"while { } do { }", TK_FORMAT_ERROR, "ends in condition"},
        {"%r = registers : regs<f32, \"4:1\"> %a = get %r [index = 3] : f32x2", TK_INDEX_ERROR,
         "of 4"},
        {"%v = view %x : view<f32, global, \"4:1\">", TK_UNSUPPORTED,
         "no place in the thread form"},
        {"barrier [threads = 33]", TK_INVALID_ARGUMENT, "steps of 32"},
        {"%a = convert %t : f32", TK_DTYPE_ERROR, "expected floats"},
        {"%h = truncate i32(1) : i8 %b = add %h, %h : i8", TK_DTYPE_ERROR, "a is i8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_body_refused(cases[i].body, cases[i].code, cases[i].words);
}

static void test_head_refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "expected tiki"},
        {"tiki kernel 2\n", "version 2"},
        {"tiki kernel 1 kernel k() form thread {}", "the grid is missing"},
        {"tiki kernel 1 kernel k() grid (1,1,%n) {}", "no parameter"},
        {"tiki kernel 1 kernel k() grid (1,1,1) block (1025,1,1) {}", "1025, expected 1 to 1024"},
        {"tiki kernel 1 kernel k() grid (1,1,1) block (64,64,1) {}", "4096 threads"},
        {"tiki kernel 1 kernel k(%x: ptr<f32, shared> read) grid (1,1,1) {}", "global or constant"},
        {"tiki kernel 1 kernel k(%x: ptr<f32, global> read align 3) grid (1,1,1) {}",
         "power of two"},
        {"tiki kernel 1 kernel k(%x: f32x) grid (1,1,1) {}", "is no type"},
        {"tiki kernel 1 kernel k(%x: i32, %x: i32) grid (1,1,1) {}", "defined twice"},
        {"tiki kernel 1 kernel k() grid (1,1,1) {} more", "the end of the text"},
        {"tiki kernel 1 kernel k() grid (1,1,1) {", "an operation or '}'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tk_kernel *kernel = NULL;
        assert_int_not_equal(tk_kernel_parse(cases[i].text, NULL, &kernel), TK_OK);
        if (!strstr(tk_error_message(), cases[i].words))
            fail_msg("expected \"%s\" in:\n%s", cases[i].words, tk_error_message());
    }
}

/* ---- the tables ---- */

/* The text does not say which attribute a word belongs to. */
static void test_words_differ(void **state) {
    (void)state;
    for (unsigned code = 0; code < TK_KOP_COUNT; code++) {
        const tk_kop_row *row = tk_kop_row_of(code);
        char seen[1024] = "";
        for (int i = 0; row->attrs[i]; i++) {
            const tk_kattr_row *attr = tk_kattr_row_of(row->attrs[i] - 1u);
            const char *words = attr->kind == TK_KAK_FLAG   ? attr->name
                                : attr->kind == TK_KAK_WORD ? attr->words
                                                            : "";
            for (int w = 0; *words; w++) {
                size_t length;
                const char *word = tk_kwords_at(words, w, &length);
                if (!length) break;
                if (tk_kwords_find(seen, word, length) >= 0)
                    fail_msg("%s: the word %.*s comes twice", row->name, (int)length, word);
                strncat(seen, word, length);
                strcat(seen, " ");
            }
        }
    }
}

static void test_launch(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file(kernel_files[2]);
    tk_kdevice device = {.sms = 3, .shared_bytes = 1000, .threads = 2048};
    tk_kargument arguments[] = {{256}, {256}, {256}, {1000}, {0}, {1}};
    tk_klaunch launch;
    assert_ok(tk_kernel_launch(kernel, &device, 6, arguments, &launch));
    assert_int_equal(launch.grid[0], 6);
    assert_int_equal(launch.dynamic_shared, 4000);
    arguments[3].bits = 7;
    assert_int_equal(tk_kernel_launch(kernel, &device, 6, arguments, &launch), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "requires %n % 2 == 0, but the left side is 1"));
    arguments[3].bits = 8;
    arguments[0].bits = 8;
    assert_int_equal(tk_kernel_launch(kernel, &device, 6, arguments, &launch), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "x is not aligned to 16 bytes"));
    tk_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_views),        cmocka_unit_test(test_caret),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_head_refusals),
        cmocka_unit_test(test_words_differ), cmocka_unit_test(test_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
