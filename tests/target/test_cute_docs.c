/* docs/cute-operations.md: what each operation of a kernel becomes, from the kernels that the tests
 * share. An operation that has a form and stands in none of them fails here. `--write` writes the
 * page anew. */
#include "support/kernel_files.h"

#include "base/alloc.h"
#include "kernel/ir.h"
#include "target/cute/cute.h"

#define PAGE "docs/cute-operations.md"

static const char *const sources[] = {
    "examples/kernels/vector_add.tk", "tests/target/cute/turn.tk",    "tests/target/cute/views.tk",
    "tests/target/cute/cuts.tk",      "tests/target/cute/wgmma.tk",   "tests/target/cute/matrix.tk",
    "tests/target/cute/async.tk",     "tests/target/cute/cluster.tk", "tests/kernel/text/flow.tk",
    "tests/target/cute/rest.tk",      "tests/kernel/text/ops.tk"};
enum { SOURCES = sizeof sources / sizeof *sources, MOST_OF_A_WORD = 2, MOST_WIDTH = 200 };

typedef struct printed {
    char *source, *text;
    tk_cute_places places;
} printed;

static printed pages[SOURCES];
static bool writing;
static int missing;

static void print_sources(void) {
    for (int i = 0; i < SOURCES; i++) {
        tk_strbuf text = {0};
        tk_kernel *kernel = parse_file(sources[i]);
        if (tk_cute_print(kernel, false, &text, &pages[i].places) != TK_OK)
            fail_msg("%s: %s", sources[i], tk_error_message());
        pages[i].source = read_text_file(sources[i]);
        pages[i].text = tk_strbuf_take(&text);
        tk_kernel_release(kernel);
    }
}

static void free_sources(void) {
    for (int i = 0; i < SOURCES; i++) {
        tk_cute_places_free(&pages[i].places);
        tk_free(pages[i].text);
        free(pages[i].source);
    }
}

/* Line `number` of a text, the first 0, without the blanks in front. */
static const char *line_of(const char *text, size_t number, int *out_length) {
    for (; number; number--) text = strchr(text, '\n') + 1;
    text += strspn(text, " ");
    *out_length = (int)strcspn(text, "\n");
    return text;
}

/* ---- one example ---- */

/* The operation's word in a line of MLIR. */
static const char *word_of(const char *line, int length, int *out_length) {
    const char *equals = NULL;
    for (int i = 0; *line == '%' && i + 3 < length && !equals; i++)
        if (!memcmp(line + i, " = ", 3)) equals = line + i + 3;
    const char *word = equals ? equals : line;
    *out_length = (int)strcspn(word, " (\n");
    return word;
}

typedef struct seen {
    const char *word;
    int length, times;
} seen;

/* How often the word has come, this time included. */
static int times_of(seen *words, int *count, const char *line, int length) {
    int of_word;
    const char *word = word_of(line, length, &of_word);
    for (int i = 0; i < *count; i++)
        if (words[i].length == of_word && !memcmp(words[i].word, word, (size_t)of_word))
            return ++words[i].times;
    words[(*count)++] = (seen){word, of_word, 1};
    return 1;
}

/* Operations that come again and again are shown twice. */
static void put_lines(const printed *page, size_t first, size_t end, tk_strbuf *out) {
    seen words[64];
    int count = 0;
    bool cut = false;
    for (size_t i = first; i < end; i++) {
        int length;
        const char *line = line_of(page->text, i, &length);
        if (times_of(words, &count, line, length) > MOST_OF_A_WORD) {
            if (!cut) tk_strbuf_puts(out, "    ...\n");
            cut = true;
            continue;
        }
        cut = false;
        if (length > MOST_WIDTH)
            tk_strbuf_printf(out, "    %.*s...\n", MOST_WIDTH, line);
        else
            tk_strbuf_printf(out, "    %.*s\n", length, line);
    }
}

/* The first lines that come from an operation of this code in this file. */
static bool put_example(const printed *page, int code, tk_strbuf *out) {
    const tk_cute_places *places = &page->places;
    size_t first = 0;
    while (first < places->count && places->items[first].code != code) first++;
    if (first == places->count) return false;
    uint32_t source = places->items[first].loc.line;
    size_t end = first;
    while (end < places->count && places->items[end].code == code &&
           places->items[end].loc.line == source)
        end++;
    int length;
    const char *line = line_of(page->source, source - 1, &length);
    tk_strbuf_printf(out, "\n    %.*s\n\n", length, line);
    put_lines(page, first, end, out);
    return true;
}

/* Operations whose result goes by another's name, and those that the ones around them end. */
static bool has_no_line(int code) {
    return code == TK_KOP_shared || code == TK_KOP_assume || code == TK_KOP_assume_uniform;
}

static void put_operation(int code, tk_strbuf *out) {
    static const char *const classes[] = {"refused", "the cute dialect", "other dialects",
                                          "an instruction as text"};
    const char *name = tk_kopcode_name((tk_kopcode)code);
    tk_cute_class class = tk_cute_class_of((tk_kopcode)code);
    tk_strbuf_printf(out, "\n## `%s`\n\n%s: %s.\n", name, classes[class],
                     tk_kop_row_of((uint16_t)code)->doc);
    if (class == TK_CUTE_NONE) return;
    for (int i = 0; i < SOURCES; i++)
        if (put_example(&pages[i], code, out)) return;
    if (!has_no_line(code)) {
        print_error("no kernel of the tests has an example of %s\n", name);
        missing++;
    }
    tk_strbuf_puts(out, "Nothing is written for it.\n");
}

/* ---- the page ---- */

static char *make_page(void) {
    tk_strbuf out = {0};
    tk_strbuf_puts(
        &out, "# Operations of a kernel as CuTe MLIR\n\nWhat [the CuTe target](cute.md) writes for "
              "each: the "
              "line of a kernel, then its text. Written by\n`build/tests/test_target_cute_docs "
              "--write` and "
              "compared by that test; operations that come again and again are shown twice.\n");
    for (int code = 0; code < TK_KOP_COUNT; code++) put_operation(code, &out);
    return tk_strbuf_take(&out);
}

static void write_page(const char *text) {
    FILE *file = fopen(PAGE, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_page(void **state) {
    (void)state;
    print_sources();
    char *text = make_page();
    assert_non_null(text);
    assert_int_equal(missing, 0);
    if (writing) {
        write_page(text);
    } else {
        char *kept = read_text_file(PAGE);
        assert_string_equal(text, kept);
        free(kept);
    }
    tk_free(text);
    free_sources();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page)};
    writing = argc == 2 && !strcmp(argv[1], "--write");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
