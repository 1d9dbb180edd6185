/* Schedules: their fields by name, text form and ranges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "library/schedule.h"

typedef struct field {
    const char *name;
    size_t offset;
    int64_t low, high;
    bool power;
} field;

static const field fields[] = {
#define TK_LIBRARY_FIELD(name, low, high, power, doc)                                              \
    {#name, offsetof(tk_library_schedule, name), low, high, power},
#include "tiki/library.def"
};
#define FIELDS (sizeof fields / sizeof *fields)

static const char *const used_fields[] = {
#define TK_LIBRARY(id, name, tensors, numbers, fields, doc) fields,
#include "tiki/library.def"
};

static int64_t *at(tk_library_schedule *schedule, const field *f) {
    return (int64_t *)((char *)schedule + f->offset);
}
static int64_t value_of(const tk_library_schedule *schedule, const field *f) {
    return *(const int64_t *)((const char *)schedule + f->offset);
}

/* Whether a word stands in a list between blanks. */
static bool has_word(const char *list, const char *word, size_t length) {
    for (const char *c = list; *c; c += strcspn(c, " "), c += *c == ' ')
        if (strcspn(c, " ") == length && !strncmp(c, word, length)) return true;
    return false;
}

static const field *find(tk_library_id id, const char *name, size_t length) {
    if (!has_word(used_fields[id], name, length)) return NULL;
    for (size_t i = 0; i < FIELDS; i++)
        if (strlen(fields[i].name) == length && !strncmp(fields[i].name, name, length))
            return &fields[i];
    return NULL;
}

static tk_status check_value(const field *f, int64_t value) {
    bool fits = value >= f->low && value <= f->high;
    if (f->power && value & (value - 1)) fits = false;
    if (fits) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "schedule: %s = %lld, expected %s%lld to %lld", f->name,
                   (long long)value, f->power ? "a power of two from " : "", (long long)f->low,
                   (long long)f->high);
}

void tk_library_schedule_lowest(tk_library_schedule *out) {
    for (size_t i = 0; i < FIELDS; i++) *at(out, &fields[i]) = fields[i].low;
}

tk_status tk_library_schedule_check(tk_library_id id, const tk_library_schedule *schedule) {
    for (size_t i = 0; i < FIELDS; i++)
        if (has_word(used_fields[id], fields[i].name, strlen(fields[i].name)))
            TK_TRY(check_value(&fields[i], value_of(schedule, &fields[i])));
    return TK_OK;
}

tk_status tk_library_schedule_print(tk_library_id id, const tk_library_schedule *schedule,
                                    char **out_text) {
    tk_strbuf text = {0};
    TK_NEED(schedule, out_text);
    TK_TRY(tk_check_enum("id", (int)id, TK_LIBRARY_COUNT, "tk_library_id"));
    for (size_t i = 0; i < FIELDS; i++)
        if (has_word(used_fields[id], fields[i].name, strlen(fields[i].name)))
            tk_strbuf_printf(&text, "%s%s = %lld", text.length ? ", " : "", fields[i].name,
                             (long long)value_of(schedule, &fields[i]));
    *out_text = tk_strbuf_take(&text);
    return *out_text ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a schedule");
}

static const char *skip(const char *c) { return c + strspn(c, " \t\r\n"); }

/* One `name = value`; *c is behind it afterwards. */
static tk_status read_field(tk_library_id id, const char **c, tk_library_schedule *schedule) {
    const char *name = *c;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
    const char *equals = skip(name + length);
    if (!length || *equals != '=')
        return tk_fail(TK_FORMAT_ERROR, "schedule: expected \"field = number\" at \"%.40s\"", name);
    const field *f = find(id, name, length);
    if (!f)
        return tk_fail(TK_NOT_FOUND, "schedule: %s has no field %.*s, it has %s",
                       tk_library_name(id), (int)(length < 40 ? length : 40), name,
                       used_fields[id]);
    char *end;
    const char *digits = skip(equals + 1);
    int64_t value = strtoll(digits, &end, 10);
    if (end == digits)
        return tk_fail(TK_FORMAT_ERROR, "schedule: %s needs a number, given is \"%.40s\"", f->name,
                       digits);
    TK_TRY(check_value(f, value));
    *at(schedule, f) = value;
    *c = skip(end);
    return TK_OK;
}

tk_status tk_library_schedule_read(tk_library_id id, const char *text,
                                   tk_library_schedule *schedule) {
    TK_NEED(text, schedule);
    TK_TRY(tk_check_enum("id", (int)id, TK_LIBRARY_COUNT, "tk_library_id"));
    tk_library_schedule read = *schedule;
    for (const char *c = skip(text); *c;) {
        TK_TRY(read_field(id, &c, &read));
        if (*c && *c != ',')
            return tk_fail(TK_FORMAT_ERROR, "schedule: expected a comma at \"%.40s\"", c);
        if (*c) c = skip(c + 1);
    }
    *schedule = read;
    return TK_OK;
}
