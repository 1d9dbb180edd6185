/* The options parser, by itself: words and JSON to values, ranges, contradictions. What it prints
 * goes to files, which the tests of the command read. */
#define _GNU_SOURCE
#include "cli/options.c" /* NOLINT(bugprone-suspicious-include) */

#include "support/arrays.h"

typedef struct values {
    bool flag;
    int64_t count;
    double share;
    const char *text, *path, *choice;
    text_list list;
} values;

static option items[7];

static options make(values *v) {
    const option all[] = {
        {"flag", OPTION_FLAG, &v->flag, .help = "a flag", .role = OPTION_FIXED},
        {"count", OPTION_INT, &v->count, .help = "a count", NULL, 1, 100, .role = OPTION_FIXED},
        {"share", OPTION_REAL, &v->share, .help = "a share", NULL, 0, 1, .role = OPTION_FIXED},
        {"text", OPTION_TEXT, &v->text, .help = "a text", .role = OPTION_FIXED},
        {"path", OPTION_PATH, &v->path, .help = "a path", .role = OPTION_REMEMBERED},
        {"choice", OPTION_CHOICE, &v->choice, .help = "a choice", "red|green",
         .role = OPTION_FIXED},
        {"list", OPTION_LIST, &v->list, .help = "paths", .role = OPTION_REMEMBERED},
    };
    memcpy(items, all, sizeof all);
    return (options){"test", "", "A test.", items, sizeof all / sizeof all[0]};
}

static int parse(values *v, options *set, int count, const char *const *words) {
    const char *all[32] = {"test"};
    for (int i = 0; i < count; i++) all[i + 1] = words[i];
    *v = (values){.count = 7, .share = 0.5, .choice = "red"};
    *set = make(v);
    return options_parse(set, count + 1, (char **)(uintptr_t)all);
}
#define PARSE(...)                                                                                 \
    parse(&v, &set, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                        \
          (const char *[]){__VA_ARGS__})

static void test_values(void **state) {
    (void)state;
    values v;
    options set;
    assert_int_equal(PARSE("--flag", "--count", "12", "--share=0.25", "--text", "", "--choice",
                           "green", "--list", "a", "b", "--path", "p", "--list", "c"),
                     -1);
    assert_true(v.flag);
    assert_int_equal(v.count, 12);
    assert_true(v.share == 0.25);
    assert_string_equal(v.text, "");
    assert_string_equal(v.choice, "green");
    assert_string_equal(v.path, "p");
    assert_int_equal(v.list.count, 3);
    assert_string_equal(v.list.items[2], "c");
    options_free(&set);
}

static void test_defaults_stay(void **state) {
    (void)state;
    values v;
    options set;
    assert_int_equal(PARSE("--flag"), -1);
    assert_int_equal(v.count, 7);
    assert_string_equal(v.choice, "red");
    assert_null(v.text);
    assert_false(options_find(&set, "count")->given);
    assert_true(options_find(&set, "flag")->given);
    assert_null(options_find(&set, "nothing"));
}

static void test_wrong_words(void **state) {
    (void)state;
    values v;
    options set;
    assert_int_equal(PARSE("--unknown"), 2);
    assert_int_equal(PARSE("word"), 2);
    assert_int_equal(PARSE("--count"), 2);
    assert_int_equal(PARSE("--count", "x"), 2);
    assert_int_equal(PARSE("--count", ""), 2);
    assert_int_equal(PARSE("--count", "1x"), 2);
    assert_int_equal(PARSE("--count", "0"), 2);
    assert_int_equal(PARSE("--count", "101"), 2);
    assert_int_equal(PARSE("--count", "99999999999999999999"), 2);
    assert_int_equal(PARSE("--share", "nan"), 2);
    assert_int_equal(PARSE("--share", "1.5"), 2);
    assert_int_equal(PARSE("--choice", "re"), 2);
    assert_int_equal(PARSE("--choice", "red|green"), 2);
    assert_int_equal(PARSE("--choice", ""), 2);
    assert_int_equal(PARSE("--flag=yes"), 2);
    assert_int_equal(PARSE("--list"), 2);
    assert_int_equal(PARSE("--list", "--flag"), 2);
    assert_int_equal(
        PARSE("--a-name-that-is-longer-than-any-name-could-be-and-longer-still-than-that"), 2);
    assert_int_equal(PARSE("--count", "101", "--help"), 2);
    assert_int_equal(PARSE("--help", "--unknown"), 0);
}

static json_t *json_of(const char *text) {
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    return object;
}

static void test_json_fills_what_is_not_given(void **state) {
    (void)state;
    values v;
    options set;
    assert_int_equal(PARSE("--count", "12"), -1);
    json_t *object = json_of("{\"count\": 3, \"share\": 0.125, \"flag\": true, \"text\": null, "
                             "\"choice\": \"green\", \"list\": [\"a\", \"b\"]}");
    assert_true(options_from_json(&set, object, "a file", false));
    assert_int_equal(v.count, 12);
    assert_true(v.share == 0.125 && v.flag && !v.text);
    assert_string_equal(v.choice, "green");
    assert_int_equal(v.list.count, 2);
    options_free(&set);
    json_decref(object);
}

static void test_json_contradicts(void **state) {
    (void)state;
    values v;
    options set;
    json_t *object = json_of("{\"count\": 3, \"share\": 0.125, \"choice\": \"green\"}");
    assert_int_equal(PARSE("--count", "3", "--share", "0.125", "--choice", "green"), -1);
    assert_true(options_from_json(&set, object, "a file", true));
    assert_int_equal(PARSE("--count", "4"), -1);
    assert_false(options_from_json(&set, object, "a file", true));
    assert_int_equal(PARSE("--share", "0.25"), -1);
    assert_false(options_from_json(&set, object, "a file", true));
    assert_int_equal(PARSE("--choice", "red"), -1);
    assert_false(options_from_json(&set, object, "a file", true));
    json_decref(object);
}

static void test_wrong_json(void **state) {
    (void)state;
    const char *const wrong[] = {"{\"nothing\": 1}", "{\"count\": 1.5}",       "{\"count\": \"1\"}",
                                 "{\"count\": 101}", "{\"share\": 2}",         "{\"flag\": 1}",
                                 "{\"text\": 1}",    "{\"choice\": \"blue\"}", "{\"list\": \"a\"}",
                                 "{\"list\": []}",   "{\"list\": [\"a\", 1]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        values v;
        options set;
        assert_int_equal(PARSE("--path", "x"), -1);
        json_t *object = json_of(wrong[i]);
        assert_false(options_from_json(&set, object, "a file", false));
        options_free(&set);
        json_decref(object);
    }
}

/* What is written is what is read, digit by digit; paths become absolute. */
static void test_round_trip(void **state) {
    (void)state;
    values v;
    options set;
    assert_int_equal(PARSE("--flag", "--share", "0.1", "--text", "x\"y", "--list", "/", "tests"),
                     -1);
    json_t *fixed = options_to_json(&set, OPTION_FIXED),
           *remembered = options_to_json(&set, OPTION_REMEMBERED);
    options_free(&set);
    assert_null(json_object_get(fixed, "list"));
    json_t *list = json_object_get(remembered, "list");
    assert_string_equal(json_string_value(json_array_get(list, 0)), "/");
    assert_int_equal(json_string_value(json_array_get(list, 1))[0], '/');
    v = (values){.choice = "red"};
    set = make(&v);
    assert_true(options_from_json(&set, fixed, "a file", false));
    assert_true(v.flag && v.share == 0.1 && v.count == 7);
    assert_string_equal(v.text, "x\"y");
    json_decref(fixed);
    json_decref(remembered);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_defaults_stay),
        cmocka_unit_test(test_wrong_words),
        cmocka_unit_test(test_json_fills_what_is_not_given),
        cmocka_unit_test(test_json_contradicts),
        cmocka_unit_test(test_wrong_json),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
