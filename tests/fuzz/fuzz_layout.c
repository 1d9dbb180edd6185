/* Layout text and operations: whatever the bytes, parsing ends with a status; what it accepts
 * prints to text that parses to the same value; a line of tab-separated words is an operation,
 * whose result prints and parses likewise; and a composition or a left inverse that is answered is
 * the function it promises. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tiki/layout_call.h"
#include "tiki/layout_draw.h"

#define MAX_TEXT 512
#define MAX_POINTS 4096
#define MAX_CELLS 64 /* pictures are slow and long */

/* Not an assert: a fuzzer must find this in every build. */
static void require(bool condition) {
    if (!condition) abort();
}

static bool equal(const tk_layout_value *a, const tk_layout_value *b) {
    tk_layout_value args[2] = {*a, *b}, result;
    return tk_layout_call("equal", args, 2, &result) == TK_OK && result.as.flag;
}

/* Kinds that have a text of their own. */
static void check_round_trip(const tk_layout_value *value) {
    char text[16384];
    tk_layout_value again;
    if (value->kind == TK_VALUE_BOOL || value->kind == TK_VALUE_TILE_AND_LAYOUT) return;
    size_t length = tk_layout_value_print(value, text, sizeof text);
    require(length < sizeof text && strlen(text) == length);
    require(tk_layout_value_parse(text, &again) == TK_OK);
    require(equal(value, &again));
}

static bool is_small(const tk_layout *layout) {
    tk_term size;
    bool positive = tk_layout_is_plain(layout);
    for (int i = 0; i < layout->leaf_count && positive; i++)
        positive = layout->leaf[i].stride.value >= 0 && layout->leaf[i].stride.value < 1 << 20;
    return positive && tk_layout_size(layout, &size) == TK_OK && size.value <= MAX_POINTS;
}

static void check_composition(const tk_layout_value *args, const tk_layout_value *result) {
    const tk_layout *a = &args[0].as.layout, *b = &args[1].as.layout, *r = &result->as.layout;
    tk_term size, back;
    if (args[0].kind != TK_VALUE_LAYOUT || args[1].kind != TK_VALUE_LAYOUT) return;
    if (!is_small(a) || !is_small(b)) return;
    require(tk_layout_size(b, &size) == TK_OK && tk_layout_size(r, &back) == TK_OK);
    require(size.value == back.value);
    for (int64_t i = 0; i < size.value; i++)
        require(tk_layout_at(r, i) == tk_layout_at(a, tk_layout_at(b, i)));
}

/* A search through large strides takes long under a sanitizer. */
static bool is_slow(const char *name, const tk_layout_value *args, int count) {
    if (strcmp(name, "left_inverse") || count != 1 || args[0].kind != TK_VALUE_LAYOUT) return false;
    const tk_layout *layout = &args[0].as.layout;
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].stride.value >= 1 << 10) return true;
    return false;
}

static void check_left_inverse(const tk_layout_value *arg, const tk_layout_value *result) {
    const tk_layout *layout = &arg->as.layout, *inverse = &result->as.layout;
    tk_term size;
    if (arg->kind != TK_VALUE_LAYOUT || !is_small(layout)) return;
    require(tk_layout_size(layout, &size) == TK_OK);
    for (int64_t i = 0; i < size.value; i++)
        require(tk_layout_at(inverse, tk_layout_at(layout, i)) == i);
}

static void draw(const tk_layout_value *value) {
    size_t length;
    tk_term size;
    if (value->kind != TK_VALUE_COMPOSED) return;
    if (tk_layout_size(&value->as.composed.outer, &size) != TK_OK || size.value > MAX_CELLS) return;
    (void)tk_layout_draw(&value->as.composed, NULL, 0, &length);
    (void)tk_layout_draw_banks(&value->as.composed, 4, NULL, 0, &length);
}

static void run_line(char *line) {
    char *word[TK_LAYOUT_MAX_ARGS + 1];
    tk_layout_value args[TK_LAYOUT_MAX_ARGS], result;
    int count = 0;
    for (char *at = line; at && count <= TK_LAYOUT_MAX_ARGS; count++) {
        word[count] = at;
        at = strchr(at, '\t');
        if (at) *at++ = 0;
    }
    for (int i = 1; i < count; i++) {
        if (tk_layout_value_parse(word[i], &args[i - 1]) != TK_OK) return;
        check_round_trip(&args[i - 1]);
    }
    if (is_slow(word[0], args, count - 1)) return;
    if (tk_layout_call(word[0], args, count - 1, &result) != TK_OK) return;
    check_round_trip(&result);
    draw(&result);
    if (!strcmp(word[0], "composition")) check_composition(args, &result);
    if (!strcmp(word[0], "left_inverse")) check_left_inverse(args, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[MAX_TEXT];
    tk_layout_value value;
    if (size >= sizeof text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (tk_layout_value_parse(text, &value) == TK_OK) check_round_trip(&value);
    for (char *line = text; line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        run_line(line);
        line = next;
    }
    return 0;
}
