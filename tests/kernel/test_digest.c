/* A kernel's digest against its text without names: kernels made by changing one byte of a text
 * have equal digests exactly where the texts, names of parameters included, are equal. */
#include "support/kernel_files.h"

#include "kernel/digest.h"
#include "kernel/print.h"

typedef struct described {
    unsigned char digest[TK_SHA256_BYTES];
    tk_strbuf text; /* of what the digest stands for */
} described;

static described describe(const tk_kernel *kernel) {
    described d = {0};
    assert_ok(tk_kernel_digest(kernel, false, d.digest));
    assert_ok(tk_kernel_put(kernel, TK_KERNEL_ANONYMOUS, &d.text));
    for (size_t i = 0; i < kernel->contract.params.count; i++)
        tk_strbuf_printf(&d.text, " %s", kernel->contract.params.items[i].value->name);
    return d;
}

static bool same_digest(const described *a, const described *b) {
    return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* Whether the byte made another kernel. */
static int compare_changed(const char *text, const described *with) {
    tk_kernel *kernel;
    if (tk_kernel_parse(text, "test.tk", &kernel) != TK_OK) return 0;
    described changed = describe(kernel);
    bool same_text = strcmp(changed.text.text, with->text.text) == 0;
    if (same_digest(&changed, with) != same_text)
        fail_msg("%s digests of\n%s\nand\n%s", same_text ? "different" : "equal", with->text.text,
                 changed.text.text);
    tk_strbuf_deinit(&changed.text);
    tk_kernel_release(kernel);
    return !same_text;
}

static void test_every_byte(void **state) {
    static const char with[] = "0279axlu,";
    int others = 0;
    (void)state;
    for (size_t file = 0; file < KERNEL_FILES; file++) {
        char *text = read_text_file(kernel_files[file]);
        tk_kernel *kernel = parse_text(text);
        described original = describe(kernel);
        size_t length = strlen(text), step = length > 400 ? length / 200 : 1;
        for (size_t at = 0; at < length; at += step) {
            char before = text[at];
            for (size_t i = at; i < at + 4; i++) {
                text[at] = with[i % (sizeof with - 1)];
                if (text[at] != before) others += compare_changed(text, &original);
            }
            text[at] = before;
        }
        tk_strbuf_deinit(&original.text);
        tk_kernel_release(kernel);
        free(text);
    }
    assert_true(others > 20);
}

static void assert_digests(const char *a, const char *b, bool lines, bool equal) {
    unsigned char first[TK_SHA256_BYTES], second[TK_SHA256_BYTES];
    tk_kernel *x = parse_text(a), *y = parse_text(b);
    assert_ok(tk_kernel_digest(x, lines, first));
    assert_ok(tk_kernel_digest(y, lines, second));
    assert_int_equal(memcmp(first, second, sizeof first) == 0, equal);
    tk_kernel_release(x);
    tk_kernel_release(y);
}

static void test_lines_and_names(void **state) {
    (void)state;
    char *text = around("%a = add %n, %t : i32\n%b = add %a, %t : i32", 32);
    char *lower = around("\n%a = add %n, %t : i32\n%b = add %a, %t : i32", 32);
    char *named = around("%c = add %n, %t : i32\n%d = add %c, %t : i32", 32);
    char *other = around("%a = add %n, %t : i32\n%b = add %t, %t : i32", 32);
    assert_digests(text, lower, false, true);
    assert_digests(text, lower, true, false);
    assert_digests(text, named, true, true);
    assert_digests(text, other, false, false);
    free(text);
    free(lower);
    free(named);
    free(other);
}

/* A copy has other records; the digest does not see them. A head is another kernel. */
static void test_copies_and_heads(void **state) {
    (void)state;
    for (size_t file = 0; file < KERNEL_FILES; file++) {
        unsigned char first[TK_SHA256_BYTES], second[TK_SHA256_BYTES];
        tk_kernel *kernel = parse_file(kernel_files[file]), *copy, *head;
        assert_ok(tk_kernel_clone(kernel, &copy));
        assert_ok(tk_kernel_clone_head(kernel, &head));
        assert_ok(tk_kernel_digest(kernel, false, first));
        assert_ok(tk_kernel_digest(copy, false, second));
        assert_memory_equal(first, second, sizeof first);
        assert_ok(tk_kernel_digest(head, false, second));
        assert_memory_not_equal(first, second, sizeof first);
        assert_ok(tk_kernel_verify(head));
        assert_null(head->body.first);
        tk_kernel_release(kernel);
        tk_kernel_release(copy);
        tk_kernel_release(head);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_lines_and_names),
        cmocka_unit_test(test_copies_and_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
