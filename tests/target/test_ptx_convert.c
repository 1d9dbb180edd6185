/* Every conversion between floats, and of floats and integers, assembles, or is refused by name for
 * an architecture that has no instruction for it. Skipped where there is no ptxas. */
#include "support/kernel_files.h"
#include "support/says.h"

#include "tiki/target.h"

static const char *const floats[] = {"f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2"};
static const int bytes[] = {2, 2, 4, 4, 8, 1, 1};
enum { FLOATS = 7, MOST = 1 << 16 };

static char text[MOST];

static void begin(void) {
    snprintf(
        text, sizeof text,
        "tiki kernel 1\nkernel k(%%x: ptr<i8, global> read align 16, %%y: ptr<i8, global> "
        "write align 16) form thread grid (1, 1, 1) block (32, 1, 1)\n{\n%%t = thread_index.x "
        ": i32\n%%i = mul %%t, i32(16) : i32\n%%px = offset %%x, %%i : ptr<i8, global>\n%%py = "
        "offset %%y, %%i : ptr<i8, global>\n");
}

/* Loads, converts and stores `lanes` elements; `number` keeps the names apart. */
static void add(int number, const char *operation, const char *from, const char *to, int lanes) {
    size_t at = strlen(text);
    char wide_from[16], wide_to[16];
    snprintf(wide_from, sizeof wide_from, lanes > 1 ? "%sx%d" : "%s", from, lanes);
    snprintf(wide_to, sizeof wide_to, lanes > 1 ? "%sx%d" : "%s", to, lanes);
    int length =
        snprintf(text + at, sizeof text - at,
                 "%%p%d = pointer_cast %%px : ptr<%s, global>\n%%q%d = pointer_cast %%py : ptr<%s, "
                 "global>\n%%a%d = load %%p%d : %s\n%%b%d = %s %%a%d : %s\nstore %%q%d, %%b%d\n",
                 number, from, number, to, number, number, wide_from, number, operation, number,
                 wide_to, number, number);
    assert_true(length > 0 && (size_t)length < sizeof text - at);
}

static tk_status build(const char *arch, tk_emit emit) {
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "}\n");
    tk_kernel *kernel = parse_text(text);
    tk_artifact *artifact = NULL;
    tk_build how = {.arch = arch, .emit = emit};
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas")) {
        tk_kernel_release(kernel);
        skip();
    }
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    return status;
}

static void assert_assembles(const char *arch) {
    if (build(arch, TK_EMIT_BINARY) != TK_OK) fail_msg("%s: %s", arch, tk_error_message());
}

static bool is_byte(int i) { return bytes[i] == 1; }

static void test_floats(void **state) {
    (void)state;
    for (int lanes = 1; lanes <= 4; lanes *= 2) {
        begin();
        for (int from = 0, number = 0; from < FLOATS; from++)
            for (int to = 0; to < FLOATS; to++)
                if (from != to && bytes[from] * lanes <= 16 && bytes[to] * lanes <= 16 &&
                    !(from == 4 && (to == 2 || is_byte(to))))
                    add(number++, "convert", floats[from], floats[to], lanes);
        assert_assembles("sm_90");
    }
}

/* Whatever is not refused assembles, in every way of rounding. */
static void test_roundings(void **state) {
    (void)state;
    static const char *const ways[] = {
        "convert.rz",       "convert.rm",          "convert.rp",          "convert.rna",
        "convert.saturate", "convert.rz.saturate", "convert.rna.saturate"};
    static char kept[MOST];
    int number = 0;
    begin();
    strcpy(kept, text);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (int from = 0; from < FLOATS; from++)
            for (int to = 0; to < FLOATS; to++) {
                strcpy(text, kept);
                add(number, ways[way], floats[from], floats[to], 1 + (number & 1));
                size_t length = strlen(text);
                tk_status status = build("sm_90", TK_EMIT_TEXT);
                text[length] = 0;
                assert_true(status == TK_OK || status == TK_UNSUPPORTED);
                if (status == TK_OK) strcpy(kept, text), number++;
            }
    strcpy(text, kept);
    assert_true(number > 80);
    assert_assembles("sm_90");
}

static void test_before_hopper(void **state) {
    (void)state;
    begin();
    add(0, "convert.rna", "f32", "tf32", 4);
    add(1, "convert.rna.saturate", "f32", "tf32", 1);
    add(2, "convert", "bf16", "tf32", 2);
    add(3, "convert.saturate", "f32", "f16", 2);
    add(4, "convert.rz", "f32", "bf16", 4);
    add(5, "convert", "tf32", "f32", 1);
    add(6, "signed_from_float", "bf16", "i32", 2);
    assert_assembles("sm_80");
}

static void test_bits(void **state) {
    (void)state;
    begin();
    add(0, "bitcast", "e4m3", "e5m2", 4);
    add(1, "float_from_signed", "i32", "bf16", 2);
    add(2, "unsigned_from_float", "bf16", "i64", 2);
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at,
             "%%v = load %%px : i8x4\n%%w = bitcast %%v : i32\n%%h = bitcast %%w : i8x4\nstore "
             "%%py, %%h\n%%u = bitcast %%v : i16x2\n%%z = bitcast %%u : i8x4\nstore %%py, %%z\n");
    assert_assembles("sm_90");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *operation, *from, *to, *arch, *words;
    } cases[] = {
        {"convert", "f32", "e4m3", "sm_80", "from f32 to e4m3 before sm_90"},
        {"convert", "f32", "tf32", "sm_80", "from f32 to tf32 but with ties away"},
        {"convert", "f64", "e5m2", "sm_90", "from f64 to e5m2"},
        {"convert.rz", "f32", "e4m3", "sm_90", "but to nearest even"},
        {"convert.rp", "f32", "tf32", "sm_90", "down or up"},
        {"convert.rna", "f32", "f16", "sm_90", "from f32 to f16 with ties away"},
        {"convert.rm", "f32", "bf16", "sm_90", "down or up"},
        {"convert.rm", "e4m3", "e5m2", "sm_90", "but to nearest even"},
        {"convert.saturate", "f16", "f32", "sm_90", "saturating"},
        {"convert.saturate", "e5m2", "f16", "sm_90", "saturating"},
        {"convert.saturate", "f64", "f16", "sm_90", "saturating"},
        {"float_from_signed", "i32", "bf16", "sm_80", "before sm_90"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        add(0, cases[i].operation, cases[i].from, cases[i].to, 1);
        assert_int_equal(build(cases[i].arch, TK_EMIT_TEXT), TK_UNSUPPORTED);
        assert_error_says(cases[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats), cmocka_unit_test(test_roundings),
        cmocka_unit_test(test_before_hopper), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
