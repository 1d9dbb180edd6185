/* Random kernels (a thousand here, a tenth of that under AddressSanitizer, ten thousand by
 * `make test-passes`): each pass, and all of them one after another, leave what the kernel computes
 * as it was, bit for bit (NaNs as a class), find nothing to report, and give a kernel whose text
 * reads back. `--first SEED --count N` for others.
 */
#include "support/kernel_files.h"
#include "support/random_kernel.h"
#include "support/sanitizer.h"

#include "tiki/emulator.h"
#include "tiki/passes.h"

static uint64_t first_seed = 1, kernels = SUPPORT_ASAN ? 100 : 1000;

enum { INPUTS = 4 * RANDOM_ALL, OUTPUTS = RANDOM_SLOTS * RANDOM_ALL };

typedef struct outcome {
    uint32_t f[OUTPUTS];
    uint64_t o[OUTPUTS];
} outcome;

static float x[INPUTS];
static int32_t i32s[INPUTS];

static void fill_inputs(void) {
    static const float odd[] = {0, -0.0f, 1e30f, -1e-30f, 3.5f, 100, 1e-40f, -7};
    for (int k = 0; k < INPUTS; k++) {
        x[k] = k % 5 ? (float)(k * 37 % 101 - 50) * 0.125f : odd[k / 5 % 8];
        i32s[k] = k % 7 ? k * 73 % 211 - 100 : (int32_t)(0x80000000u >> k % 32);
    }
}

static bool has_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static void run(const tk_kernel *kernel, outcome *out, uint64_t seed, const char *what) {
    tk_kargument arguments[5] = {{0}, {0}, {0}, {0}, {INPUTS}};
    tk_kbuffer buffers[5] = {{x, sizeof x, 0},
                             {i32s, sizeof i32s, 0},
                             {out->f, sizeof out->f, 0},
                             {out->o, sizeof out->o, 0},
                             {0}};
    tk_kemulate how = {.seed = seed, .n_arguments = 5, .arguments = arguments, .buffers = buffers};
    tk_emulation *emulation = NULL;
    char *text;
    memset(out, 0, sizeof *out);
    tk_status status = tk_kernel_emulate(kernel, &how, &emulation);
    if (status != TK_OK)
        fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, tk_error_message());
    assert_ok(tk_emulation_text(emulation, &text));
    if (*text) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, text);
    tk_kernel_text_free(text);
    tk_emulation_release(emulation);
    for (int k = 0; k < OUTPUTS; k++)
        if (has_nan(out->f[k])) out->f[k] = 0x7fc00000;
}

static void assert_reads_back(const tk_kernel *kernel, uint64_t seed, const char *what) {
    char *text;
    tk_kernel *again = NULL;
    assert_ok(tk_kernel_print(kernel, 0, &text));
    if (tk_kernel_parse(text, NULL, &again) != TK_OK || !tk_kernel_equal(kernel, again))
        fail_msg("seed %llu, %s: the text does not read back: %s", (unsigned long long)seed, what,
                 tk_error_message());
    tk_kernel_release(again);
    tk_kernel_text_free(text);
}

static void show(const tk_kernel *before, const tk_kernel *after, uint64_t seed, const char *what) {
    char *text[2];
    assert_ok(tk_kernel_print(before, 0, &text[0]));
    assert_ok(tk_kernel_print(after, 0, &text[1]));
    print_message("%s---- %s\n%s", text[0], what, text[1]);
    tk_kernel_text_free(text[0]);
    tk_kernel_text_free(text[1]);
    fail_msg("seed %llu: %s changes what the kernel computes", (unsigned long long)seed, what);
}

/* Bits of a fused product may differ: only the rest is asked of it. */
static tk_kernel *check_pass(const tk_kernel *kernel, tk_kpass pass, const outcome *expected,
                             uint64_t seed) {
    static outcome found;
    tk_kernel *out = NULL;
    const char *what = tk_kpass_name(pass);
    if (tk_kernel_pass(kernel, pass, &out) != TK_OK)
        fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, tk_error_message());
    run(out, &found, seed, what);
    if (pass != TK_KPASS_fuse && memcmp(&found, expected, sizeof found))
        show(kernel, out, seed, what);
    assert_reads_back(out, seed, what);
    return out;
}

/* How many operations of a kernel are left: passes must do something. */
static size_t lines_of(const tk_kernel *kernel) {
    char *text;
    size_t lines = 0;
    assert_ok(tk_kernel_print(kernel, 0, &text));
    for (const char *c = text; *c; c++) lines += *c == '\n';
    tk_kernel_text_free(text);
    return lines;
}

static size_t lines_before, lines_after, changed[TK_KPASS_COUNT];

static void check_kernel(uint64_t seed) {
    static outcome expected;
    tk_kernel *drawn = random_kernel(seed), *base = NULL;
    if (!drawn) fail_msg("seed %llu: %s", (unsigned long long)seed, tk_error_message());
    assert_reads_back(drawn, seed, "drawn");
    assert_ok(tk_kernel_pass(drawn, TK_KPASS_expand, &base));
    run(base, &expected, seed, "drawn");
    tk_kernel *all = tk_kernel_retain(base);
    for (int p = 0; p < TK_KPASS_COUNT; p++) {
        tk_kernel *alone = check_pass(base, (tk_kpass)p, &expected, seed), *next;
        changed[p] += !tk_kernel_equal(alone, base);
        tk_kernel_release(alone);
        if (p == TK_KPASS_fuse) continue;
        next = check_pass(all, (tk_kpass)p, &expected, seed);
        tk_kernel_release(all);
        all = next;
    }
    lines_before += lines_of(base), lines_after += lines_of(all);
    tk_kernel_release(all);
    tk_kernel_release(base);
    tk_kernel_release(drawn);
}

static void test_random(void **state) {
    (void)state;
    fill_inputs();
    for (uint64_t k = 0; k < kernels; k++) check_kernel(first_seed + k);
    print_message("%llu kernels, %zu lines before, %zu after all passes\n",
                  (unsigned long long)kernels, lines_before, lines_after);
    for (int p = 0; p < TK_KPASS_COUNT; p++) {
        print_message("%-10s changed %zu\n", tk_kpass_name((tk_kpass)p), changed[p]);
        if (p > TK_KPASS_expand && kernels >= 1000) assert_true(changed[p] > kernels / 20);
    }
}

int main(int argc, char **argv) {
    for (int a = 1; a + 1 < argc; a += 2) {
        if (!strcmp(argv[a], "--first")) first_seed = strtoull(argv[a + 1], NULL, 10);
        if (!strcmp(argv[a], "--count")) kernels = strtoull(argv[a + 1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
