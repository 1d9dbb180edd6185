/* Threefry against the published test vectors, and streams and splits against values that MLX 0.32
 * gives for the same key (seed 0x0123456789abcdef). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/random_bits.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SEED UINT64_C(0x0123456789abcdef)

/* From the authors' known-answer file, threefry2x32 with 20 rounds. */
static void test_known_answers(void **state) {
    (void)state;
    tk_threefry_key zero = {{0, 0}}, ones = {{0xffffffff, 0xffffffff}},
                    pi = {{0x13198a2e, 0x03707344}};
    tk_threefry_key out = tk_threefry(zero, 0, 0);
    assert_true(out.word[0] == 0x6b200159 && out.word[1] == 0x99ba4efe);
    out = tk_threefry(ones, 0xffffffff, 0xffffffff);
    assert_true(out.word[0] == 0x1cb996fc && out.word[1] == 0xbb002be7);
    out = tk_threefry(pi, 0x243f6a88, 0x85a308d3);
    assert_true(out.word[0] == 0xc4923a9c && out.word[1] == 0x483df7a0);
}

/* Bytes of streams by their total length. */
static const struct {
    int bytes;
    const char *hex;
} streams[] = {
    {1, "01"},
    {2, "0149"},
    {3, "014988"},
    {4, "0149884d"},
    {5, "76d34a67db"},
    {7, "76d34a67dbbc2a"},
    {8, "76d34a67dbbc2a03"},
    {9, "9266db3b09c975b223"},
    {10, "9266db3b09c975b22354"},
    {12, "9266db3b09c975b22354e06b"},
    {13, "9266db3bc5a633172354e06b09"},
    {14, "9266db3bc5a633172354e06b0904"},
    {16, "9266db3bc5a633172354e06b0904e654"},
    {18, "d12566b5e5f466ca774d06a7adcb3ea8095c"},
    {20, "d12566b5e5f466ca774d06a7adcb3ea8095ccebb"},
    {26, "b90c249eac0e104f7ea2cd08175ae05a0d3103523d92567477ab"},
    {28, "b90c249eac0e104f7ea2cd08175ae05a0d3103523d92567477aba5bf"},
    {32, "b90c249eac0e104f7ea2cd0876796de00d3103523d92567477aba5bf4d4c3892"},
    {36, "e430f28d8d5c529acc48bd0df9c96f529d7b33e8e2bd954ce230616e21b93c4dbfb0669a"},
    {52,
     "1326aef37aef6264351292ea7f8d42bdf29f36f0c3f09a5c276f5db5ab4caf2a2f8e6543178424ef39138a8c6af6"
     "57aeec28f675"},
};

static void test_streams(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(streams); s++) {
        unsigned char out[64];
        char hex[130] = "";
        tk_threefry_bytes(tk_threefry_seed(SEED), (uint64_t)streams[s].bytes, 0,
                          (uint64_t)streams[s].bytes, out);
        for (int i = 0; i < streams[s].bytes; i++) snprintf(hex + 2 * i, 3, "%02x", out[i]);
        assert_string_equal(hex, streams[s].hex);
    }
}

/* Any span of a stream is what the whole has there, and nothing is written beside it. */
static void test_spans(void **state) {
    (void)state;
    static const uint64_t totals[] = {4, 12, 100, 101, 103, 256, 300};
    unsigned char whole[300], part[304];
    for (size_t t = 0; t < COUNT(totals); t++) {
        uint64_t total = totals[t];
        tk_threefry_bytes(tk_threefry_seed(7), total, 0, total, whole);
        for (uint64_t first = 0; first < total; first += 4)
            for (uint64_t count = 0; first + count <= total; count++) {
                memset(part, 0xee, sizeof part);
                tk_threefry_bytes(tk_threefry_seed(7), total, first, count, part);
                assert_memory_equal(part, whole + first, count);
                assert_int_equal(part[count], 0xee);
            }
    }
}

static void test_split(void **state) {
    (void)state;
    static const uint32_t expected[] = {0xb56625d1, 0xca66f4e5, 0x25061b0a,
                                        0xa83ecbad, 0xbbce5c09, 0x23683a9b};
    tk_threefry_key keys[3];
    tk_threefry_split(tk_threefry_seed(SEED), 3, keys);
    assert_memory_equal(keys, expected, sizeof expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
