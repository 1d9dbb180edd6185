/* Pictures are well-formed and say what the layout says; bank counts agree with counting by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/layout_cases.h"
#include "tiki/layout_draw.h"

static tk_composed composed_of(const char *text) {
    tk_composed composed;
    if (tk_composed_parse(text, &composed) != TK_OK) fail_msg("%s", tk_error_message());
    return composed;
}

static int count(const char *text, const char *word) {
    int found = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) found++;
    return found;
}

/* Every element that is opened is closed, in order; attribute values are quoted. */
static void assert_well_formed(const char *svg) {
    char open[16][16];
    int depth = 0;
    for (const char *at = svg; (at = strchr(at, '<')); at++) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        size_t length = strcspn(at + 1, " />");
        if (at[1] == '/') {
            assert_true(depth > 0);
            length = strcspn(at + 2, ">");
            assert_memory_equal(open[--depth], at + 2, length);
        } else if (end[-1] != '/') {
            assert_true(depth < 16 && length < 16);
            memcpy(open[depth], at + 1, length);
            open[depth++][length] = 0;
        }
        int quotes = 0;
        for (const char *c = at; c < end; c++) quotes += *c == '"';
        assert_int_equal(quotes % 2, 0);
    }
    assert_int_equal(depth, 0);
}

typedef tk_status drawing(const char *text, char *svg, size_t capacity, size_t *out_length);

/* The measured length is the length, and the picture is well-formed. The caller frees it. */
static char *picture_of(drawing *draw, const char *text) {
    size_t length = 0, again = 0;
    if (draw(text, NULL, 0, &length) != TK_OK) fail_msg("%s", tk_error_message());
    char *svg = malloc(length + 1);
    assert_int_equal(draw(text, svg, length + 1, &again), TK_OK);
    assert_int_equal(length, again);
    assert_int_equal(strlen(svg), length);
    assert_well_formed(svg);
    return svg;
}

static tk_status draw_grid(const char *text, char *svg, size_t capacity, size_t *out_length) {
    tk_composed layout = composed_of(text);
    return tk_layout_draw(&layout, svg, capacity, out_length);
}

static tk_status draw_banks(const char *text, char *svg, size_t capacity, size_t *out_length) {
    tk_composed layout = composed_of(text);
    return tk_layout_draw_banks(&layout, 4, svg, capacity, out_length);
}

static tk_status draw_tv(const char *text, char *svg, size_t capacity, size_t *out_length) {
    tk_layout tv = layout_of(text);
    tk_tuple tile = tuple_of("(8,32)");
    return tk_layout_draw_tv(&tv, &tile, svg, capacity, out_length);
}

static void grids(void **state) {
    (void)state;
    char *svg = picture_of(draw_grid, "((2,4),8):((1,16),2)");
    assert_int_equal(count(svg, "<rect"), 1 + 64);
    for (int offset = 0; offset < 64; offset++) {
        char label[32];
        snprintf(label, sizeof label, "\">%d</text>", offset);
        assert_true(count(svg, label) >= 1);
    }
    free(svg);
    svg = picture_of(draw_grid, "S<1,0,1> o 0 o (2,2):(2,1)");
    assert_int_equal(count(svg, "S&lt;1,0,1&gt; o 0 o"), 1);
    free(svg);
    svg = picture_of(draw_grid, "(2,(2,2)):(1@0,(1@0@1,1@1@1))");
    assert_int_equal(count(svg, ">(1,(1,1))</text>"), 1);
    free(svg);
    free(picture_of(draw_grid, "4:1"));
    free(picture_of(draw_grid, "():()"));
    free(picture_of(draw_grid, "(2,3,(2,2)):(1,2,(6,12))"));
}

static void thread_values(void **state) {
    (void)state;
    char *svg = picture_of(draw_tv, "((8,4),(4,2)):((32,2),(8,1))");
    assert_int_equal(count(svg, "<rect"), 1 + 256);
    for (int thread = 0; thread < 32; thread++)
        for (int value = 0; value < 8; value++) {
            char label[32];
            snprintf(label, sizeof label, ">T%d V%d<", thread, value);
            assert_int_equal(count(svg, label), 1);
        }
    free(svg);
    tk_layout tv = layout_of("(2,300):(1,2)");
    tk_tuple tile = tuple_of("(8,32)");
    size_t length;
    assert_int_equal(tk_layout_draw_tv(&tv, &tile, NULL, 0, &length), TK_INDEX_ERROR);
}

static void pairs(void **state) {
    (void)state;
    tk_composed a = composed_of("(8,8):(8,1)"), b = composed_of("S<3,0,3> o 0 o (8,8):(8,1)");
    size_t length;
    int64_t differences;
    assert_int_equal(tk_layout_draw_pair(&a, &b, NULL, 0, &length, &differences), TK_OK);
    assert_int_equal(differences, 56);
    char *svg = malloc(length + 1);
    assert_int_equal(tk_layout_draw_pair(&a, &b, svg, length + 1, &length, NULL), TK_OK);
    assert_well_formed(svg);
    assert_int_equal(count(svg, "#d00000"), 2 * 56);
    free(svg);
    assert_int_equal(tk_layout_draw_pair(&a, &a, NULL, 0, &length, &differences), TK_OK);
    assert_int_equal(differences, 0);
    b = composed_of("(4,16):(16,1)");
    assert_int_equal(tk_layout_draw_pair(&a, &b, NULL, 0, &length, NULL), TK_SHAPE_ERROR);
}

static tk_bank_report report_of(const char *text, int bytes) {
    tk_composed pattern = composed_of(text);
    tk_bank_report report;
    if (tk_layout_count_banks(&pattern, bytes, &report) != TK_OK)
        fail_msg("%s", tk_error_message());
    return report;
}

static void banks(void **state) {
    (void)state;
    assert_int_equal(report_of("32:1", 4).conflicts, 0);
    assert_int_equal(report_of("32:32", 4).conflicts, 31);
    assert_int_equal(report_of("32:33", 4).conflicts, 0);
    assert_int_equal(report_of("32:0", 4).passes, 1);
    assert_int_equal(report_of("32:2", 2).passes, 1);
    assert_int_equal(report_of("32:1", 16).passes, 4);
    assert_int_equal(report_of("32:1", 16).conflicts, 0);
    assert_int_equal(report_of("32:4", 16).conflicts, 12);
    assert_int_equal(report_of("(32,2):(8,1)", 4).passes, 16);
    assert_int_equal(report_of("(64,1):(1,0)", 4).accesses, 2);
    /* A column of an f32 tile of 32 by 32, as it lies and swizzled. */
    assert_int_equal(report_of("(32,32):(32,1)", 4).conflicts, 31 * 32);
    assert_int_equal(report_of("S<5,0,5> o 0 o (32,32):(32,1)", 4).conflicts, 0);
    char *svg = picture_of(draw_banks, "(32,2):(8,1)");
    assert_int_equal(count(svg, "16 passes, 2 needed, 14 conflicts"), 1);
    assert_int_equal(count(svg, "<rect"), 1 + 16 * 32);
    free(svg);
}

/* Every word of every bank, counted without grouping tricks. */
static int64_t passes_by_hand(const tk_layout *pattern, int bytes) {
    tk_layout lanes, steps;
    assert_int_equal(tk_layout_mode(pattern, 0, &lanes), TK_OK);
    assert_int_equal(tk_layout_mode(pattern, 1, &steps), TK_OK);
    int64_t n = size_of(&lanes), passes = 0;
    int together = bytes <= 4 ? 32 : 128 / bytes;
    for (int64_t step = 0; step < size_of(&steps); step++)
        for (int64_t first = 0; first < n; first += together) {
            int64_t most = 0;
            for (int bank = 0; bank < 32; bank++) {
                int64_t words[128], found = 0;
                for (int64_t lane = first; lane < n && lane < first + together; lane++)
                    for (int byte = 0; byte < bytes; byte++) {
                        int64_t place = value_of(&lanes, lane) + value_of(&steps, step);
                        int64_t word = (place * bytes + byte) / 4, seen = 0;
                        for (int64_t i = 0; i < found; i++) seen |= words[i] == word;
                        if (word % 32 == bank && !seen) words[found++] = word;
                    }
                if (found > most) most = found;
            }
            passes += most;
        }
    return passes;
}

static void banks_by_hand(void **state) {
    (void)state;
    static const int widths[] = {1, 2, 4, 8, 16};
    layout_rng rng = {3};
    for (int i = 0; i < 300; i++) {
        char text[128];
        int bytes = widths[rng_below(&rng, 5)];
        snprintf(text, sizeof text, "((4,8),%d):((%d,%d),%d)", 1 + rng_below(&rng, 3),
                 rng_below(&rng, 70), rng_below(&rng, 70), rng_below(&rng, 70));
        tk_layout pattern = layout_of(text);
        int64_t passes = report_of(text, bytes).passes;
        if (passes != passes_by_hand(&pattern, bytes)) fail_msg("%s with %d bytes", text, bytes);
    }
}

static void refusals(void **state) {
    (void)state;
    size_t length;
    tk_composed layout = composed_of("(4,?):(1,4)");
    tk_bank_report report;
    assert_int_equal(tk_layout_draw(&layout, NULL, 0, &length), TK_UNSUPPORTED);
    layout = composed_of("(1000,1000):(1,1000)");
    assert_int_equal(tk_layout_draw(&layout, NULL, 0, &length), TK_SHAPE_ERROR);
    layout = composed_of("32:1");
    assert_int_equal(tk_layout_count_banks(&layout, 3, &report), TK_INVALID_ARGUMENT);
    layout = composed_of("32:-1");
    assert_int_equal(tk_layout_count_banks(&layout, 4, &report), TK_INDEX_ERROR);
    layout = composed_of("(4,2):(1@0,1@1)");
    assert_int_equal(tk_layout_count_banks(&layout, 4, &report), TK_SHAPE_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids), cmocka_unit_test(thread_values), cmocka_unit_test(pairs),
        cmocka_unit_test(banks), cmocka_unit_test(banks_by_hand), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
