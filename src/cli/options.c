/* See options.h. */
#define _XOPEN_SOURCE 700
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

option *options_find(options *set, const char *name) {
    for (size_t i = 0; i < set->count; i++)
        if (!strcmp(set->items[i].name, name)) return &set->items[i];
    return NULL;
}

void options_free(options *set) {
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].kind == OPTION_LIST) free(((text_list *)set->items[i].value)->items);
}

/* ---- help ---- */

static void print_value(const option *o, char *text, size_t bytes) {
    const char *words = NULL;
    switch (o->kind) {
    case OPTION_FLAG:
        words = "";
        break;
    case OPTION_INT:
        snprintf(text, bytes, " N (%lld)", (long long)*(int64_t *)o->value);
        return;
    case OPTION_REAL:
        snprintf(text, bytes, " X (%g)", *(double *)o->value);
        return;
    case OPTION_TEXT:
        words = " TEXT";
        break;
    case OPTION_PATH:
        words = " PATH";
        break;
    case OPTION_LIST:
        words = " PATH...";
        break;
    case OPTION_CHOICE:
        snprintf(text, bytes, " %s (%s)", o->choices, *(const char **)o->value);
        return;
    }
    snprintf(text, bytes, "%s", words);
}

static void print_help(const options *set) {
    printf("usage: tiki %s%s%s\n\n%s\n\n", set->command, set->synopsis[0] ? " " : "", set->synopsis,
           set->summary);
    for (size_t i = 0; i < set->count; i++) {
        char value[96], name[160];
        print_value(&set->items[i], value, sizeof value);
        snprintf(name, sizeof name, "--%s%s", set->items[i].name, value);
        printf("  %-36s %s\n", name, set->items[i].help);
    }
    printf("  %-36s %s\n", "--help", "this text");
}

/* ---- values from words ---- */

static int complain(const options *set, const char *name, const char *given, const char *expected) {
    fprintf(stderr, "tiki %s: --%s: \"%s\" given, expected %s\n", set->command, name, given,
            expected);
    return 2;
}

static bool in_range(const option *o, double value) {
    return (o->low == 0 && o->high == 0) || (value >= o->low && value <= o->high);
}

static void describe_expected(const option *o, char *text, size_t bytes) {
    static const char *const kinds[] = {
        [OPTION_FLAG] = "true or false", [OPTION_INT] = "an integer",
        [OPTION_REAL] = "a number",      [OPTION_TEXT] = "a text",
        [OPTION_PATH] = "a path",        [OPTION_LIST] = "a list of paths",
        [OPTION_CHOICE] = "one of "};
    const char *choices = o->kind == OPTION_CHOICE ? o->choices : "";
    if (o->low == 0 && o->high == 0)
        snprintf(text, bytes, "%s%s", kinds[o->kind], choices);
    else
        snprintf(text, bytes, "%s from %.17g to %.17g", kinds[o->kind], o->low, o->high);
}

static int wrong_word(const options *set, const option *o, const char *given) {
    char expected[128];
    describe_expected(o, expected, sizeof expected);
    return complain(set, o->name, given, expected);
}

static bool is_choice(const option *o, const char *word) {
    size_t length = strlen(word);
    if (strchr(word, '|')) return false;
    for (const char *at = o->choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (!strncmp(at, word, length) && (at[length] == '|' || !at[length])) return length > 0;
    return false;
}

static int set_from_word(const options *set, option *o, const char *word) {
    char *end;
    errno = 0;
    if (o->kind == OPTION_INT) {
        long long value = strtoll(word, &end, 10);
        if (!*word || *end || errno || !in_range(o, (double)value)) return wrong_word(set, o, word);
        *(int64_t *)o->value = value;
    } else if (o->kind == OPTION_REAL) {
        double value = strtod(word, &end);
        if (!*word || *end || !isfinite(value) || !in_range(o, value))
            return wrong_word(set, o, word);
        *(double *)o->value = value;
    } else {
        if (o->kind == OPTION_CHOICE && !is_choice(o, word)) return wrong_word(set, o, word);
        *(const char **)o->value = word;
    }
    return -1;
}

static int take_list(const options *set, option *o, int argc, char **argv, int *at) {
    text_list *list = o->value;
    int first = *at + 1, end = first;
    while (end < argc && strncmp(argv[end], "--", 2) != 0) end++;
    if (end == first) return complain(set, o->name, "", "one path or more");
    const char **grown =
        realloc(list->items, (list->count + (size_t)(end - first)) * sizeof *grown);
    if (!grown) return complain(set, o->name, argv[first], "memory for it");
    list->items = grown;
    for (int i = first; i < end; i++) list->items[list->count++] = argv[i];
    *at = end - 1;
    return -1;
}

static int take_option(options *set, int argc, char **argv, int *at) {
    const char *name = argv[*at] + 2, *equal = strchr(name, '=');
    char alone[64];
    snprintf(alone, sizeof alone, "%.*s", equal ? (int)(equal - name) : 63, name);
    option *o = options_find(set, alone);
    if (!o) {
        fprintf(stderr, "tiki %s: unknown option --%s; tiki %s --help lists them\n", set->command,
                alone, set->command);
        return 2;
    }
    o->given = true;
    if (o->kind == OPTION_FLAG) {
        *(bool *)o->value = true;
        return equal ? complain(set, o->name, equal + 1, "no value") : -1;
    }
    if (o->kind == OPTION_LIST && !equal) return take_list(set, o, argc, argv, at);
    if (o->kind == OPTION_LIST)
        return complain(set, o->name, equal + 1, "its paths as words after it");
    if (!equal && *at + 1 >= argc) return complain(set, o->name, "", "a value");
    return set_from_word(set, o, equal ? equal + 1 : argv[++*at]);
}

int options_parse(options *set, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_help(set);
            return 0;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            fprintf(stderr,
                    "tiki %s: \"%s\" given, expected an option; tiki %s --help lists them\n",
                    set->command, argv[i], set->command);
            return 2;
        }
        int code = take_option(set, argc, argv, &i);
        if (code >= 0) return code;
    }
    return -1;
}

/* ---- JSON ---- */

static bool same_value(const option *o, const json_t *value) {
    switch (o->kind) {
    case OPTION_FLAG:
        return json_is_boolean(value) && json_is_true(value) == *(bool *)o->value;
    case OPTION_INT:
        return json_is_integer(value) && json_integer_value(value) == *(int64_t *)o->value;
    case OPTION_REAL:
        return json_is_number(value) && json_number_value(value) == *(double *)o->value;
    default: {
        const char *own = *(const char **)o->value, *text = json_string_value(value);
        return own && text ? !strcmp(own, text) : own == text && json_is_null(value);
    }
    }
}

/* What a JSON file gave and what was expected, by the name of the option. */
static bool bad_json(const options *set, const option *o, const json_t *given, const char *origin) {
    char expected[128];
    char *text = json_dumps(given, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
    describe_expected(o, expected, sizeof expected);
    fprintf(stderr, "tiki %s: %s: \"%s\" is %.60s, expected %s\n", set->command, origin, o->name,
            text ? text : "something", expected);
    free(text);
    return false;
}

static bool set_list_from_json(option *o, const json_t *value) {
    text_list *list = o->value;
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count == 0) return false;
    list->items = calloc(count, sizeof *list->items);
    for (size_t i = 0; list->items && i < count; i++) {
        const char *text = json_string_value(json_array_get(value, i));
        if (!text) return false;
        list->items[list->count++] = text;
    }
    return list->items != NULL;
}

static bool set_text_from_json(option *o, const json_t *value) {
    const char *text = json_string_value(value);
    if (json_is_null(value)) return true;
    if (!text || (o->kind == OPTION_CHOICE && !is_choice(o, text))) return false;
    *(const char **)o->value = text;
    return true;
}

/* False when the value is not of the option's kind, or out of range. */
static bool set_from_json(option *o, const json_t *value) {
    switch (o->kind) {
    case OPTION_LIST:
        return set_list_from_json(o, value);
    case OPTION_FLAG:
        *(bool *)o->value = json_is_true(value);
        return json_is_boolean(value);
    case OPTION_INT:
        *(int64_t *)o->value = json_integer_value(value);
        return json_is_integer(value) && in_range(o, json_number_value(value));
    case OPTION_REAL:
        *(double *)o->value = json_number_value(value);
        return json_is_number(value) && in_range(o, json_number_value(value));
    default:
        return set_text_from_json(o, value);
    }
}

static bool contradicts(const options *set, const option *o, const json_t *value,
                        const char *origin) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
    fprintf(stderr, "tiki %s: --%s contradicts %s, where the run has %.60s: leave it out\n",
            set->command, o->name, origin, text ? text : "another value");
    free(text);
    return false;
}

bool options_from_json(options *set, json_t *object, const char *origin,
                       bool contradictions_are_errors) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        option *o = options_find(set, name);
        if (!o) {
            fprintf(stderr, "tiki %s: %s: \"%s\" is not an option of this command\n", set->command,
                    origin, name);
            return false;
        }
        if (o->given) {
            if (!contradictions_are_errors || same_value(o, value)) continue;
            return contradicts(set, o, value, origin);
        }
        if (!set_from_json(o, value)) return bad_json(set, o, value, origin);
        o->given = !contradictions_are_errors;
    }
    return true;
}

static json_t *absolute_path(const char *path) {
    char *absolute = path ? realpath(path, NULL) : NULL;
    json_t *value = path ? json_string(absolute ? absolute : path) : json_null();
    free(absolute);
    return value;
}

static json_t *list_to_json(const text_list *list) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++)
        if (json_array_append_new(array, absolute_path(list->items[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *value_to_json(const option *o) {
    switch (o->kind) {
    case OPTION_FLAG:
        return json_boolean(*(bool *)o->value);
    case OPTION_INT:
        return json_integer(*(int64_t *)o->value);
    case OPTION_REAL:
        return json_real(*(double *)o->value);
    case OPTION_PATH:
        return absolute_path(*(const char **)o->value);
    case OPTION_LIST:
        return list_to_json(o->value);
    default: {
        const char *text = *(const char **)o->value;
        return text ? json_string(text) : json_null();
    }
    }
}

json_t *options_to_json(const options *set, option_role role) {
    json_t *object = json_object();
    for (size_t i = 0; object && i < set->count; i++) {
        const option *o = &set->items[i];
        if (o->role != role || !json_object_set_new(object, o->name, value_to_json(o))) continue;
        json_decref(object);
        return NULL;
    }
    return object;
}
