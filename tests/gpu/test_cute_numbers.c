/* Products of warpgroups of every type, width and way of lying, and conversions of every bit
 * pattern of 16 bits, as NVIDIA's CuTe compiler builds them: on a card they give the emulator's
 * bits. See cute_card.h. */
#define _GNU_SOURCE
#include "support/kernel_wgmma.h"

#include "gpu/cute_card.h"
#include "tiki/passes.h"

static int number, wrong;

/* ---- products ---- */

static void check_product(const tk_kernel *kernel, const run *r) {
    static unsigned char got[5][M * MOST_N * 4];
    unsigned char *results[5];
    for (int i = 0; i < 5; i++) results[i] = got[i];
    int own = number++;
    if (cute_writing) {
        assert_ok(cute_write(kernel, own));
        return;
    }
    if (cute_run_on(kernel, own, r->count, r->arguments, r->buffers, results) != TK_OK)
        fail_msg("kernel %d: %s", own, tk_error_message());
    const tk_kbuffer *d = &r->buffers[4];
    if (!memcmp(got[4], d->data, d->bytes)) return;
    printf("kernel %d: the sums differ\n", own);
    wrong++;
}

/* ---- conversions ---- */

typedef struct conversion {
    const char *operation;
    tk_kscalar from, to;
    int lanes;
} conversion;

enum { ELEMENTS = 1 << 16, THREADS = 256 };

static const conversion conversions[] = {
    {"convert", TK_K_F32, TK_K_E4M3, 1},
    {"convert", TK_K_F32, TK_K_E5M2, 4},
    {"convert", TK_K_F16, TK_K_E4M3, 2},
    {"convert", TK_K_F16, TK_K_E5M2, 1},
    {"convert", TK_K_BF16, TK_K_E4M3, 4},
    {"convert", TK_K_TF32, TK_K_E5M2, 2},
    {"convert", TK_K_E4M3, TK_K_F16, 4},
    {"convert", TK_K_E4M3, TK_K_F32, 1},
    {"convert", TK_K_E4M3, TK_K_BF16, 2},
    {"convert", TK_K_E4M3, TK_K_TF32, 4},
    {"convert", TK_K_E4M3, TK_K_F64, 2},
    {"convert", TK_K_E4M3, TK_K_E5M2, 4},
    {"convert", TK_K_E5M2, TK_K_F16, 1},
    {"convert", TK_K_E5M2, TK_K_F32, 4},
    {"convert", TK_K_E5M2, TK_K_BF16, 1},
    {"convert", TK_K_E5M2, TK_K_E4M3, 2},
    {"convert.rz", TK_K_F32, TK_K_F16, 2},
    {"convert.rm", TK_K_F32, TK_K_F16, 1},
    {"convert.rp", TK_K_F32, TK_K_F16, 4},
    {"convert.saturate", TK_K_F32, TK_K_F16, 2},
    {"convert.rz.saturate", TK_K_F32, TK_K_BF16, 1},
    {"convert.rz", TK_K_F32, TK_K_BF16, 4},
    {"convert.rna", TK_K_F32, TK_K_TF32, 1},
    {"convert.rz", TK_K_F32, TK_K_TF32, 2},
    {"convert", TK_K_BF16, TK_K_F16, 2},
    {"convert", TK_K_F16, TK_K_BF16, 2},
    {"float_from_signed", TK_K_I32, TK_K_BF16, 2},
    {"float_from_unsigned", TK_K_I16, TK_K_BF16, 1},
    {"float_from_signed.rp", TK_K_I16, TK_K_F16, 1},
    {"signed_from_float", TK_K_BF16, TK_K_I32, 2},
    {"unsigned_from_float", TK_K_F16, TK_K_I16, 1},
};

static void type_text(tk_kscalar scalar, int lanes, char out[16]) {
    if (lanes > 1)
        snprintf(out, 16, "%sx%d", tk_kscalar_text(scalar), lanes);
    else
        snprintf(out, 16, "%s", tk_kscalar_text(scalar));
}

static tk_kernel *kernel_of_conversion(const conversion *c) {
    char text[2000], from[16], to[16];
    const char *a = tk_kscalar_text(c->from), *b = tk_kscalar_text(c->to);
    type_text(c->from, c->lanes, from);
    type_text(c->to, c->lanes, to);
    snprintf(
        text, sizeof text,
        "tiki kernel 1\nkernel turn(%%x: ptr<%s, global> read align 16, %%y: ptr<%s, global> "
        "write align 16) form thread grid (%d, 1, 1) block (%d, 1, 1)\n{\n%%t = "
        "thread_index.x : i32\n%%block = block_index.x : i32\n%%first = mul %%block, i32(%d) : "
        "i32\n%%e = add %%first, %%t : i32\n%%i = mul %%e, i32(%d) : i32\n%%p = offset %%x, "
        "%%i : ptr<%s, global>\n%%q = offset %%y, %%i : ptr<%s, global>\n%%a = load %%p : "
        "%s\n%%b = %s %%a : %s\nstore %%q, %%b\n}\n",
        a, b, ELEMENTS / THREADS / c->lanes, THREADS, THREADS, c->lanes, a, b, from, c->operation,
        to);
    return parse_text(text);
}

/* All patterns of 16 bits, above 16 others that follow from them. */
static uint64_t pattern(tk_kscalar scalar, uint64_t i) {
    uint64_t low = (i * UINT64_C(6364136223846793005) + 1) >> 20 & 0xffff;
    if (tk_kscalar_bytes(scalar) <= 2) return i;
    return i << 16 | (scalar == TK_K_TF32 ? 0 : low);
}

/* NaNs are one class; of tf32 the low bits are not its. */
static bool same_number(tk_kscalar scalar, uint64_t a, uint64_t b) {
    if (scalar == TK_K_TF32) a &= ~UINT64_C(0x1fff), b &= ~UINT64_C(0x1fff);
    if (a == b) return true;
    return scalar >= TK_K_F16 && isnan(tk_kscalar_value(scalar, a)) &&
           isnan(tk_kscalar_value(scalar, b));
}

static void compare_numbers(const conversion *c, const unsigned char *x, const unsigned char *y,
                            const unsigned char *got) {
    size_t in = (size_t)tk_kscalar_bytes(c->from), out = (size_t)tk_kscalar_bytes(c->to);
    for (size_t i = 0; i < ELEMENTS; i++) {
        uint64_t source = 0, want = 0, found = 0;
        memcpy(&source, x + i * in, in);
        memcpy(&want, y + i * out, out);
        memcpy(&found, got + i * out, out);
        if (!same_number(c->to, want, found)) {
            printf("%s of %s 0x%llx as %s: 0x%llx on the card, 0x%llx in the emulator\n",
                   c->operation, tk_kscalar_text(c->from), (unsigned long long)source,
                   tk_kscalar_text(c->to), (unsigned long long)found, (unsigned long long)want);
            wrong++;
            return;
        }
    }
}

static void check_conversion(const conversion *c) {
    static unsigned char x[8 * ELEMENTS], y[8 * ELEMENTS], got[2][8 * ELEMENTS];
    unsigned char *results[] = {got[0], got[1]};
    size_t bytes = (size_t)tk_kscalar_bytes(c->from);
    tk_kernel *kernel = kernel_of_conversion(c);
    int own = number++;
    if (cute_writing) {
        if (cute_write(kernel, own) != TK_OK) fail_msg("%s", tk_error_message());
        tk_kernel_release(kernel);
        return;
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        uint64_t bits = pattern(c->from, i);
        memcpy(x + i * bytes, &bits, bytes);
    }
    run r = {0};
    bind(&r, x, ELEMENTS * bytes);
    bind(&r, y, ELEMENTS * (size_t)tk_kscalar_bytes(c->to));
    tk_emulation *emulation = emulate(kernel, &r, 1);
    assert_clean(emulation);
    tk_emulation_release(emulation);
    assert_ok(cute_run_on(kernel, own, r.count, r.arguments, r.buffers, results));
    compare_numbers(c, x, y, got[1]);
    tk_kernel_release(kernel);
}

static void test_conversions(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++)
        check_conversion(&conversions[i]);
}

/* ---- views ---- */

/* Kernels in view form; their texts go with the binaries. */
static const char *const view_files[] = {"tests/target/cute/turn.tk", "tests/target/cute/cuts.tk",
                                         "tests/target/cute/views.tk"};
enum { VIEW_FILES = sizeof view_files / sizeof *view_files, SIDE = 32 };

static tk_kernel *kernel_of_view(int index) {
    char path[1200], *text;
    snprintf(path, sizeof path, "%s/view-%d.tk", cute_folder, index);
    if (cute_writing) {
        text = read_text_file(view_files[index]);
        assert_ok(tk_file_write(path, text, strlen(text)));
        free(text);
    }
    return parse_file(path);
}

/* Rows and pitch where the kernel asks for them: 16 rows of 32. */
static void bind_view(run *r, const tk_kernel *kernel, float *x, float *y) {
    bind(r, x, SIDE * SIDE * sizeof *x);
    bind(r, y, SIDE * SIDE * sizeof *y);
    if (kernel->contract.params.count == 2) return;
    bind_number(r, strcmp(tk_kernel_name(kernel), "views") ? 16 : 8);
    bind_number(r, SIDE);
}

static void check_view(int index) {
    static float x[SIDE * SIDE], y[SIDE * SIDE], got[2][SIDE * SIDE];
    static unsigned char none[1];
    unsigned char *results[] = {(unsigned char *)got[0], (unsigned char *)got[1], none, none};
    tk_kernel *kernel = kernel_of_view(index), *lowered;
    int own = number++;
    if (cute_writing) {
        assert_ok(cute_write(kernel, own));
        tk_kernel_release(kernel);
        return;
    }
    run r = {0};
    for (int i = 0; i < SIDE * SIDE; i++) x[i] = (float)(i + 1), y[i] = 0;
    bind_view(&r, kernel, x, y);
    assert_ok(tk_kernel_lower(kernel, TK_KFORM_THREAD, 0, &lowered));
    tk_emulation *emulation = emulate(lowered, &r, 1);
    assert_clean(emulation);
    tk_emulation_release(emulation);
    assert_ok(cute_run_on(kernel, own, r.count, r.arguments, r.buffers, results));
    for (int i = 0; i < SIDE * SIDE; i++)
        if (got[1][i] != y[i]) {
            printf("%s: element %d is %g on the card, %g in the emulator\n", view_files[index], i,
                   (double)got[1][i], (double)y[i]);
            wrong++;
            break;
        }
    tk_kernel_release(kernel);
    tk_kernel_release(lowered);
}

static void test_views(void **unused) {
    (void)unused;
    for (int i = 0; i < VIEW_FILES; i++) check_view(i);
}

static void test_all_right(void **unused) {
    (void)unused;
    printf("%d of %d kernels differ\n", wrong, number);
    assert_true(number >= 193 && !wrong);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {WGMMA_TESTS, cmocka_unit_test(test_conversions),
                                       cmocka_unit_test(test_views),
                                       cmocka_unit_test(test_all_right)};
    if (!cute_begin("test_gpu_cute_numbers", argc, argv)) return CARD_SKIPPED;
    also = check_product;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!cute_writing) tk_device_close(device);
    return failed;
}
