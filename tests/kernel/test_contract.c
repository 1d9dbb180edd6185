/* The launch contract as JSON: every part of the head, read back by a JSON reader. */
#include "support/kernel_files.h"

#include <jansson.h>

static json_t *contract_of(const char *text) {
    tk_kernel *kernel = parse_text(text);
    char *json;
    json_error_t error;
    assert_ok(tk_kernel_contract_json(kernel, &json));
    json_t *contract = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!contract) fail_msg("%s in %s", error.text, json);
    tk_kernel_text_free(json);
    tk_kernel_release(kernel);
    return contract;
}

static json_t *param(json_t *contract, size_t index) {
    return json_array_get(json_object_get(contract, "parameters"), index);
}
static const char *text_of(json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) fail_msg("no text %s", key);
    return text;
}
static int64_t number_of(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail_msg("no number %s", key);
    return json_integer_value(value);
}
static const char *item(json_t *object, const char *key, size_t index) {
    return json_string_value(json_array_get(json_object_get(object, key), index));
}

static void test_all(void **state) {
    (void)state;
    json_t *c = contract_of(
        "tiki kernel 1\nkernel k(%n: i32, %x: ptr<f16, global> read_write align 32 size %n * 2, "
        "%m: "
        "ptr<tmap, param> map %x f16 extent (%n, 8) stride (%n * 2) box (64, 8) swizzle 128 l2 256 "
        "nan)\nform thread\nrequire %n % 8 == 0\nrequire %n >= 1\ngrid (ceildiv(%n, 64), "
        "min(device.sms, 8), 1)\ncluster (2, 1, 1)\nblock (128, 2, 1)\ndynamic_shared %n * 4\n"
        "min_blocks 2\ncooperative\n{\n%s = shared : shared<f32, \"64:1\">\n}\n");
    assert_string_equal(text_of(c, "kernel"), "k");
    assert_int_equal(json_array_size(json_object_get(c, "parameters")), 3);
    assert_string_equal(text_of(param(c, 0), "role"), "number");
    assert_string_equal(text_of(param(c, 1), "role"), "pointer");
    assert_string_equal(text_of(param(c, 1), "type"), "ptr<f16, global>");
    assert_string_equal(text_of(param(c, 1), "access"), "read_write");
    assert_string_equal(text_of(param(c, 1), "elements"), "%n * 2");
    assert_int_equal(number_of(param(c, 1), "offset"), 8);
    assert_int_equal(number_of(param(c, 1), "align"), 32);
    assert_string_equal(text_of(param(c, 2), "of"), "x");
    assert_string_equal(item(param(c, 2), "stride_bytes", 0), "%n * 2");
    assert_int_equal(number_of(param(c, 2), "offset"), 64);
    assert_int_equal(number_of(param(c, 2), "bytes"), 128);
    assert_int_equal(number_of(param(c, 2), "swizzle_bytes"), 128);
    assert_string_equal(text_of(param(c, 2), "fill"), "nan");
    assert_int_equal(number_of(c, "parameter_bytes"), 192);
    assert_string_equal(item(c, "require", 0), "%n % 8 == 0");
    assert_string_equal(item(c, "grid", 1), "min(device.sms, 8)");
    assert_string_equal(item(c, "cluster", 0), "2");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(c, "block"), 1)), 2);
    assert_int_equal(number_of(c, "shared_bytes"), 256);
    assert_string_equal(text_of(c, "more_shared_bytes"), "%n * 4");
    assert_int_equal(number_of(c, "min_blocks"), 2);
    assert_true(json_is_true(json_object_get(c, "cooperative")));
    assert_true(json_is_false(json_object_get(c, "programmatic")));
    json_decref(c);
}

static void test_least(void **state) {
    (void)state;
    json_t *c = contract_of("tiki kernel 1\nkernel k() form thread grid (1, 1, 1) block (32, 1, "
                            "1)\n{\n}\n");
    assert_int_equal(json_array_size(json_object_get(c, "parameters")), 0);
    assert_int_equal(number_of(c, "parameter_bytes"), 0);
    assert_null(json_object_get(c, "cluster"));
    assert_null(json_object_get(c, "more_shared_bytes"));
    json_decref(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_least)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
