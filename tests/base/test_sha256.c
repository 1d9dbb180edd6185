/* SHA-256 against the standard's examples, whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void expect(const char *data, size_t bytes, const char *text) {
    unsigned char digest[TK_SHA256_BYTES];
    char found[TK_SHA256_TEXT];
    tk_sha256_of(data, bytes, digest);
    tk_sha256_text(digest, found);
    assert_string_equal(found, text);
}

static void test_examples(void **state) {
    (void)state;
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect(two, strlen(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    expect(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void test_pieces(void **state) {
    (void)state;
    char data[300];
    for (int i = 0; i < 300; i++) data[i] = (char)(i * 7);
    for (size_t length = 0; length <= 300; length++) {
        unsigned char whole[TK_SHA256_BYTES], pieces[TK_SHA256_BYTES];
        tk_sha256_of(data, length, whole);
        tk_sha256 hash;
        tk_sha256_begin(&hash);
        for (size_t at = 0; at < length;) {
            size_t piece = at % 67 + 1;
            if (piece > length - at) piece = length - at;
            tk_sha256_put(&hash, data + at, piece);
            at += piece;
        }
        tk_sha256_end(&hash, pieces);
        assert_memory_equal(whole, pieces, TK_SHA256_BYTES);
    }
}

/* The processor's instructions and plain C give the same, where there is a choice. */
static void test_variants(void **state) {
    (void)state;
    tk_sha256 by_hand, chosen;
    unsigned char data[640];
    for (int i = 0; i < 640; i++) data[i] = (unsigned char)(i * i + 3 * i);
    tk_sha256_begin(&by_hand);
    tk_sha256_begin(&chosen);
    tk_sha256_blocks_plain(by_hand.state, data, 10);
    tk_sha256_put(&chosen, data, 640);
    assert_memory_equal(by_hand.state, chosen.state, sizeof chosen.state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
