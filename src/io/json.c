/* See json.h. */
#include "io/json.h"

#include <stdbool.h>

#include "base/error.h"

static tk_status explain(const char *name, const json_error_t *error) {
    bool no_memory = json_error_code(error) == json_error_out_of_memory || !error->text[0];
    if (no_memory) return tk_fail(TK_OUT_OF_MEMORY, "%.400s: no memory for its JSON", name);
    return tk_fail(TK_FORMAT_ERROR, "%.400s: JSON is expected, at line %d, column %d: %s", name,
                   error->line, error->column, error->text);
}

tk_status tk_json_parse(const char *name, const char *text, size_t bytes, json_t **out_object) {
    json_error_t error = {.text = ""};
    json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!value) return explain(name, &error);
    if (!json_is_object(value)) {
        const char *kind = tk_json_kind(value);
        json_decref(value);
        return tk_fail(TK_FORMAT_ERROR, "%.400s: a JSON object is expected, found %s", name, kind);
    }
    *out_object = value;
    return TK_OK;
}

const char *tk_json_kind(const json_t *value) {
    if (!value) return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number that is no integer";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    case JSON_NULL:
        return "null";
    }
    return "an unknown value";
}
