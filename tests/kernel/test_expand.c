/* The expansion of exp and its like: errors in units in the last place against f64 over a grid of
 * all exponents, special values, and that no other operation is left over. `--dense N` takes every
 * N-th float instead; the bounds are those of all floats, which tests/gpu/test_expand.c looks at,
 * and the worst of them are among the special values. */
#include "support/kernel_files.h"
#include "support/ulp.h"

#include <math.h>

#include "tiki/emulator.h"
#include "tiki/passes.h"
#include "tiki/target.h"

enum { CHUNK = 1 << 16 };

typedef struct function {
    const char *name;
    double (*exact)(double x);
    double bound; /* units in the last place: the largest of all floats */
} function;

static const function functions[] = {
    {"exp", exp, 1.061},   {"exp2", exp2, 1.075}, {"log", log, 0.887},  {"log2", log2, 1.073},
    {"tanh", tanh, 1.333}, {"erf", erf, 1.126},   {"sin", sin, 0.5003}, {"cos", cos, 0.5003}};
#define FUNCTIONS (sizeof functions / sizeof *functions)

static uint64_t dense = 65521 * 3; /* a step that meets every exponent and many fractions */

static tk_kernel *expanded(const char *name) {
    char body[400];
    snprintf(body, sizeof body,
             "%%b = block_index.x : i32\n%%f = mul %%b, i32(256) : i32\n%%i = add %%f, %%t : i32\n"
             "%%p = offset %%x, %%i : ptr<f32, global>\n%%q = offset %%y, %%i : ptr<f32, "
             "global>\n%%v = load %%p : f32\n%%w = %s %%v : f32\nstore %%q, %%w",
             name);
    char *text = around(body, 256);
    overwrite(text, "grid (1, 1, 1)", "grid (%n,1, 1)");
    tk_kernel *kernel = parse_text(text), *out = NULL;
    assert_ok(tk_kernel_pass(kernel, TK_KPASS_expand, &out));
    tk_kernel_release(kernel);
    free(text);
    return out;
}

static void run(const tk_kernel *kernel, float *x, float *y) {
    tk_kargument arguments[3] = {{0}, {0}, {CHUNK / 256}};
    tk_kbuffer buffers[3] = {{x, CHUNK * sizeof *x, 0}, {y, CHUNK * sizeof *y, 0}, {0}};
    tk_kemulate how = {.n_arguments = 3, .arguments = arguments, .buffers = buffers};
    tk_emulation *emulation = NULL;
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    assert_int_equal(tk_emulation_findings(emulation), 0);
    tk_emulation_release(emulation);
}

static double worst_of(const function *f) {
    static float x[CHUNK], y[CHUNK];
    tk_kernel *kernel = expanded(f->name);
    double worst = 0;
    for (uint64_t first = 0; first < (uint64_t)1 << 32; first += CHUNK * dense) {
        for (uint64_t i = 0; i < CHUNK; i++) {
            uint32_t bits = (uint32_t)(first + i * dense);
            memcpy(&x[i], &bits, sizeof bits);
        }
        run(kernel, x, y);
        for (int i = 0; i < CHUNK; i++) {
            double error = error_of(f->exact((double)x[i]), y[i]);
            if (!(error <= f->bound))
                fail_msg("%s(%a) is %a, exact is %a: %g units", f->name, (double)x[i], (double)y[i],
                         f->exact((double)x[i]), error);
            if (error > worst) worst = error;
        }
    }
    tk_kernel_release(kernel);
    return worst;
}

static void test_errors(void **state) {
    (void)state;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        double worst = worst_of(&functions[i]);
        assert_true(worst > 0.4);
        print_message("%-5s %.3f units\n", functions[i].name, worst);
    }
}

static void test_special_values(void **state) {
    (void)state;
    static const float values[] = {
        0.0f,           -0.0f,           INFINITY,       -INFINITY,      NAN,
        1.0f,           -1.0f,           0x1p-149f,      -0x1p-149f,     0x1p-126f,
        88.0f,          88.8f,           89.0f,          -87.5f,         -103.9f,
        -104.1f,        128.0f,          127.9f,         -149.0f,        -150.5f,
        3.4e38f,        -3.4e38f,        2.0f,           0.5f,           1048576.0f,
        1048577.0f,     16367173.0f,     1.5e19f,        3.9f,           4.1f,
        0x1.abb838p+4f, 0x1.4a2df4p+1f,  0x1.659842p-1f, 0x1.69f042p+0f, 0x1.43183ap-1f,
        0x1.e38392p-1f, 0x1.25b098p+56f, 0x1.f6a8eep+1f};
    static float x[CHUNK], y[CHUNK];
    for (size_t f = 0; f < FUNCTIONS; f++) {
        tk_kernel *kernel = expanded(functions[f].name);
        memset(x, 0, sizeof x);
        memcpy(x, values, sizeof values);
        run(kernel, x, y);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            double exact = functions[f].exact((double)x[i]);
            if (!(error_of(exact, y[i]) <= functions[f].bound))
                fail_msg("%s(%a) is %a, exact is %a", functions[f].name, (double)x[i], (double)y[i],
                         exact);
        }
        tk_kernel_release(kernel);
    }
}

/* Vectors are expanded lane by lane; a kernel without such operations stays as it is. */
static void test_structure(void **state) {
    (void)state;
    char *text = around("%p = offset %x, %t : ptr<f32, global>\n%v = load %p : f32\n%u = splat %v "
                        ": f32x4\n%w = exp %u : f32x4\n%s = sin %w : f32x4\n%z = extract %s [index "
                        "= 2] : f32\n%q = offset %y, %t : ptr<f32, global>\nstore %q, %z",
                        32),
         *printed;
    tk_kernel *kernel = parse_text(text), *once = NULL, *twice = NULL, *again = NULL;
    assert_ok(tk_kernel_pass(kernel, TK_KPASS_expand, &once));
    assert_ok(tk_kernel_pass(once, TK_KPASS_expand, &twice));
    assert_true(tk_kernel_equal(once, twice));
    assert_ok(tk_kernel_print(once, 0, &printed));
    assert_null(strstr(printed, "= exp "));
    assert_null(strstr(printed, "= sin "));
    assert_ok(tk_kernel_parse(printed, NULL, &again));
    assert_true(tk_kernel_equal(once, again));
    tk_kernel *all[] = {kernel, once, twice, again};
    for (int i = 0; i < 4; i++) tk_kernel_release(all[i]);
    tk_kernel_text_free(printed);
    free(text);
}

static void test_assembles(void **state) {
    (void)state;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        tk_kernel *kernel = expanded(functions[i].name);
        tk_build how = {.arch = "sm_90", .emit = TK_EMIT_BINARY};
        tk_artifact *artifact = NULL;
        tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
        bool missing = status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas");
        if (!missing) assert_ok(status);
        tk_artifact_release(artifact);
        tk_kernel_release(kernel);
        if (missing) skip();
    }
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < TK_KPASS_COUNT; i++) {
        tk_kpass found;
        assert_ok(tk_kpass_find(tk_kpass_name((tk_kpass)i), &found));
        assert_int_equal(found, i);
        assert_true(strlen(tk_kpass_doc((tk_kpass)i)) > 20);
    }
    tk_kpass found;
    assert_int_equal(tk_kpass_find("contract", &found), TK_NOT_FOUND);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--dense")) dense = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors), cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_structure), cmocka_unit_test(test_assembles),
        cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
