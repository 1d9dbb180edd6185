/* Every matrix operation assembles, for every architecture that has it, without a message that
 * ptxas runs wgmma one by one. Skipped where there is no ptxas. */
#include "support/kernel_files.h"

#include "tiki/target.h"

typedef struct text {
    char data[1 << 17];
    size_t length;
} text;

static void add(text *t, const char *format, ...) TK_PRINTF(2, 3);
static void add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    t->length +=
        (size_t)vsnprintf(t->data + t->length, sizeof t->data - t->length, format, arguments);
    va_end(arguments);
    assert_true(t->length < sizeof t->data);
}

static void begin(text *t, int threads) {
    t->length = 0;
    add(t,
        "tiki kernel 1\nkernel k(%%x: ptr<i32, global> write align 16) form thread grid (1, 1, 1) "
        "block (%d, 1, 1)\n{\n%%t = thread_index.x : i32\n%%px = offset %%x, %%t : ptr<i32, "
        "global>\n%%s = shared [align = 1024] : shared<i32, \"8192:1\">\n%%p = address %%s : "
        "ptr<i32, shared>\n",
        threads);
}

/* Sets all of a register tensor of `count` elements, so that nothing is undefined. */
static void set_all(text *t, const char *name, const char *type, int count) {
    add(t, "%%%s = registers : regs<%s, \"%d:1\">\n%%%sv = bitcast %%t : %s\n", name, type, count,
        name, !strcmp(type, "f32") || !strcmp(type, "tf32") || !strcmp(type, "i32") ? type : "i32");
    if (!strcmp(type, "f32") || !strcmp(type, "tf32") || !strcmp(type, "i32")) {
        for (int i = 0; i < count; i++) add(t, "set %%%s, %%%sv [index = %d]\n", name, name, i);
        return;
    }
    bool byte = type[0] == 'i' || type[0] == 'e';
    add(t, "%%%sw = truncate %%t : %s\n%%%se = bitcast %%%sw : %s\n", name, byte ? "i8" : "i16",
        name, name, type);
    for (int i = 0; i < count; i++) add(t, "set %%%s, %%%se [index = %d]\n", name, name, i);
}

/* Adds what a tensor has to a sum that is stored, so that nothing is dropped. */
static void use_all(text *t, const char *name, const char *type, int count, int *sum) {
    for (int i = 0; i < count; i++) {
        bool wide = !strcmp(type, "f32") || !strcmp(type, "i32");
        add(t, "%%g%s%d = get %%%s [index = %d] : %s\n%%b%s%d = bitcast %%g%s%d : %s\n", name, i,
            name, i, type, name, i, name, i, wide ? "i32" : "i16");
        add(t, "%%u%s%d = %s %%b%s%d : i32\n", name, i, wide ? "or i32(0)," : "extend_unsigned",
            name, i);
        add(t, "%%sum%d = xor %%sum%d, %%u%s%d : i32\n", *sum + 1, *sum, name, i);
        ++*sum;
    }
}

static void assert_assembles(text *t, const char *arch) {
    tk_kernel *kernel = parse_text(t->data);
    tk_artifact *artifact = NULL;
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY};
    tk_report report;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    tk_kernel_release(kernel);
    if (status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas")) skip();
    if (status != TK_OK) fail_msg("%s: %s", arch, tk_error_message());
    assert_ok(tk_artifact_report(artifact, &report));
    assert_int_equal(report.spill_stores, 0);
    tk_artifact_release(artifact);
}

/* ---- mma.sync, ldmatrix, stmatrix ---- */

static const struct {
    const char *a, *b, *d;
    int k;
} products[] = {
    {"f16", "f16", "f32", 8},    {"f16", "f16", "f32", 16},   {"f16", "f16", "f16", 8},
    {"f16", "f16", "f16", 16},   {"bf16", "bf16", "f32", 8},  {"bf16", "bf16", "f32", 16},
    {"tf32", "tf32", "f32", 4},  {"tf32", "tf32", "f32", 8},  {"e4m3", "e4m3", "f32", 32},
    {"e4m3", "e5m2", "f32", 32}, {"e5m2", "e4m3", "f32", 32}, {"e5m2", "e5m2", "f32", 32},
};

static void put_products(text *t, size_t first, size_t end) {
    int sum = 0;
    begin(t, 32);
    add(t, "%%sum0 = or i32(0), %%t : i32\n");
    for (size_t i = first; i < end; i++) {
        char a[8], b[8], d[8];
        int bytes = products[i].k <= 8 && products[i].a[0] == 't' ? 4 : products[i].k == 32 ? 1 : 2;
        snprintf(a, sizeof a, "a%zu", i), snprintf(b, sizeof b, "b%zu", i);
        snprintf(d, sizeof d, "d%zu", i);
        set_all(t, a, products[i].a, products[i].k / 2);
        set_all(t, b, products[i].b, products[i].k / 4);
        set_all(t, d, products[i].d, 4);
        if (bytes < 4 && products[i].k != 8)
            add(t,
                "load_matrix %%%s, %%p [count = 4]\nload_matrix.transposed %%%s, %%p [count = 2]\n",
                a, b);
        add(t, "mma %%%s, %%%s, %%%s, %%%s [m = 16, n = 8, k = %d]\n", d, a, b, d, products[i].k);
        use_all(t, d, products[i].d, 4, &sum);
    }
    add(t, "store %%px, %%sum%d\n}\n", sum);
}

static void test_mma(void **state) {
    (void)state;
    static text t;
    put_products(&t, 0, 8);
    assert_assembles(&t, "sm_80");
    assert_assembles(&t, "sm_90");
    put_products(&t, 0, sizeof products / sizeof *products);
    assert_assembles(&t, "sm_90a");
}

static void test_rows(void **state) {
    (void)state;
    static text t;
    begin(&t, 32);
    set_all(&t, "a", "f16", 8);
    for (int count = 1; count <= 4; count *= 2)
        add(&t,
            "load_matrix %%a, %%p [count = %d]\nload_matrix.transposed %%a, %%p [count = %d]\n"
            "store_matrix %%p, %%a [count = %d]\nstore_matrix.transposed %%p, %%a [count = %d]\n",
            count, count, count, count);
    add(&t, "}\n");
    assert_assembles(&t, "sm_90");
    tk_kernel *kernel = parse_text(t.data);
    tk_artifact *artifact;
    tk_build how = {.arch = "sm_80"};
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "store_matrix: before sm_90"));
    tk_kernel_release(kernel);
}

/* ---- wgmma ---- */

/* One product after the other, each waited for. */
static void put_wgmma(text *t, const char *words, const char *d, const char *a, int n, int k,
                      const char *more) {
    int sum = 0, count = n / 2;
    begin(t, 128);
    add(t, "%%sum0 = or i32(0), %%t : i32\n%%da = matrix_descriptor.swizzle_128 %%p [stride = "
           "1024] : i64\n%%yes = icmp.ne %%t, i32(77) : i1\n%%all = assume_uniform.block %%yes : "
           "i1\n");
    set_all(t, "d", d, count);
    set_all(t, "a", a, 64 * k / 128);
    add(t,
        "wgmma_fence\nwgmma.%s%s %%d, %%da, %%da, accumulate=%%all [m = 64, n = %d, k = "
        "%d]\nwgmma.%s "
        "%%d, %%a, %%da, accumulate=i1(true) [m = 64, n = %d, k = %d]\nwgmma_commit\nwgmma_wait\n",
        words, more, n, k, words, n, k);
    use_all(t, "d", d, count, &sum);
    add(t, "store %%px, %%sum%d\n}\n", sum);
}

static void test_wgmma_types(void **state) {
    (void)state;
    static text t;
    static const struct {
        const char *words, *d, *a, *more;
        int k;
    } types[] = {
        {"a_f16.b_f16", "f32", "f16", ".a_mn.b_mn.neg_a", 16},
        {"a_f16.b_f16", "f16", "f16", "", 16},
        {"a_bf16.b_bf16", "f32", "bf16", ".b_mn.neg_b", 16},
        {"a_tf32.b_tf32", "f32", "tf32", ".neg_a", 8},
        {"a_e4m3.b_e4m3", "f32", "e4m3", "", 32},
        {"a_e4m3.b_e5m2", "f16", "e4m3", "", 32},
        {"a_e5m2.b_e4m3", "f32", "e5m2", ".neg_b", 32},
        {"a_e5m2.b_e5m2", "f16", "e5m2", "", 32},
        {"a_s8.b_s8", "i32", "i8", "", 32},
        {"a_u8.b_s8", "i32", "i8", "", 32},
        {"a_s8.b_u8", "i32", "i8", "", 32},
        {"a_u8.b_u8", "i32", "i8", "", 32},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        put_wgmma(&t, types[i].words, types[i].d, types[i].a, 32, types[i].k, types[i].more);
        assert_assembles(&t, "sm_90a");
    }
}

static void test_wgmma_widths(void **state) {
    (void)state;
    static text t;
    for (int n = 8; n <= 256; n += n < 32 ? 8 : 56) {
        put_wgmma(&t, "a_bf16.b_bf16", "f32", "bf16", n, 16, "");
        assert_assembles(&t, "sm_90a");
    }
}

static void test_refusals(void **state) {
    (void)state;
    static text t;
    put_wgmma(&t, "a_bf16.b_bf16", "f32", "bf16", 8, 16, "");
    tk_kernel *kernel = parse_text(t.data);
    tk_artifact *artifact;
    tk_build how = {.arch = "sm_90"};
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "but for sm_90a"));
    tk_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma), cmocka_unit_test(test_rows), cmocka_unit_test(test_wgmma_types),
        cmocka_unit_test(test_wgmma_widths), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
