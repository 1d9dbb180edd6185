/* The builder: the same kernel as its text, errors that stick, and many threads at once. */
#include "support/kernel_files.h"

#include <pthread.h>

#include "tiki/emulator.h"
#include "tiki/target.h"

static tk_kvalue *op2(tk_kernel_builder *b, tk_kopcode code, tk_kvalue *x, tk_kvalue *y) {
    tk_kvalue *operands[] = {x, y};
    return tk_kernel_op(b, code, 2, operands, 0, NULL, (tk_ktype){0});
}

static tk_kvalue *index_of(tk_kernel_builder *b, tk_kopcode code) {
    tk_kattr axis = {TK_KA_axis, 0, "x"};
    return tk_kernel_op(b, code, 0, NULL, 1, &axis, (tk_ktype){0});
}

static tk_kvalue *load(tk_kernel_builder *b, tk_kvalue *pointer) {
    tk_kvalue *operands[] = {pointer, NULL, NULL, NULL};
    return tk_kernel_op(b, TK_KOP_load, 4, operands, 0, NULL, tk_ktype_scalar(TK_K_F32));
}

static void add_elements(tk_kernel_builder *b, tk_kvalue *const *pointers, tk_kvalue *i) {
    tk_kvalue *at[3];
    for (int p = 0; p < 3; p++) at[p] = op2(b, TK_KOP_offset, pointers[p], i);
    tk_kvalue *first = load(b, at[0]);
    tk_kvalue *sum = op2(b, TK_KOP_add, first, load(b, at[1]));
    tk_kvalue *operands[] = {at[2], sum, NULL, NULL};
    tk_kernel_op(b, TK_KOP_store, 4, operands, 0, NULL, (tk_ktype){0});
}

static void build_head(tk_kernel_builder *b, tk_kvalue **params) {
    static const char *const names[] = {"x", "y", "z"};
    tk_kparam number = {.name = "n", .type = tk_ktype_scalar(TK_K_I32), .size = -1};
    for (int i = 0; i < 3; i++) {
        tk_kparam pointer = {.name = names[i],
                             .type = tk_ktype_pointer(TK_K_F32, TK_KS_GLOBAL),
                             .size = -1,
                             .access = i < 2 ? TK_KACCESS_READ : TK_KACCESS_WRITE};
        params[i] = tk_kernel_add_param(b, &pointer);
    }
    params[3] = tk_kernel_add_param(b, &number);
    int32_t n = tk_kexpr_param(b, params[3]), one = tk_kexpr_const(b, 1);
    tk_kernel_require(b, n, TK_KR_GE, tk_kexpr_const(b, 0));
    tk_kernel_grid(b, tk_kexpr_binary(b, TK_KX_CEILDIV, n, tk_kexpr_const(b, 256)), one, one);
    tk_kernel_block(b, 256, 1, 1);
}

static tk_kernel *build_add(void) {
    tk_kernel_builder *b = tk_kernel_builder_create("vector_add", TK_KFORM_THREAD);
    tk_kernel *kernel = NULL;
    tk_kvalue *params[4];
    build_head(b, params);
    tk_kvalue *thread = index_of(b, TK_KOP_thread_index), *block = index_of(b, TK_KOP_block_index);
    tk_kvalue *i =
        op2(b, TK_KOP_add, op2(b, TK_KOP_mul, block, tk_kernel_int(b, TK_K_I32, 256)), thread);
    tk_kattr less = {TK_KA_icmp, 0, "slt"};
    tk_kvalue *operands[] = {i, params[3]};
    tk_kernel_if(b, tk_kernel_op(b, TK_KOP_icmp, 2, operands, 1, &less, (tk_ktype){0}));
    add_elements(b, params, i);
    tk_kernel_end(b, 0, NULL, NULL);
    assert_ok(tk_kernel_builder_finish(b, &kernel));
    tk_kernel_builder_release(b);
    return kernel;
}

/* The text states sizes, the builder here does not. */
static tk_kernel *add_from_text(void) {
    char *text = read_text_file(kernel_files[0]);
    for (char *at; (at = strstr(text, " size %n"));) memmove(at, at + 8, strlen(at + 8) + 1);
    tk_kernel *kernel = parse_text(text);
    free(text);
    return kernel;
}

static void test_same_as_text(void **state) {
    (void)state;
    tk_kernel *built = build_add(), *read = add_from_text();
    assert_true(tk_kernel_equal(built, read));
    tk_kernel_release(built);
    tk_kernel_release(read);
}

static void test_loops(void **state) {
    (void)state;
    tk_kernel_builder *b = tk_kernel_builder_create("loops", TK_KFORM_THREAD);
    tk_kernel *kernel;
    int32_t one = tk_kexpr_const(b, 1);
    tk_kernel_grid(b, one, one, one);
    tk_kvalue *zero = tk_kernel_int(b, TK_K_I32, 0), *step = tk_kernel_int(b, TK_K_I32, 1), *arg,
              *result;
    tk_kvalue *i = tk_kernel_for(b, zero, tk_kernel_int(b, TK_K_I32, 8), step, 0, 1, &zero, &arg);
    tk_kvalue *sum = op2(b, TK_KOP_add, arg, i);
    tk_kernel_end(b, 1, &sum, &result);
    tk_kernel_while(b, 1, &result, &arg);
    tk_kattr more = {TK_KA_icmp, 0, "sgt"};
    tk_kvalue *operands[] = {arg, zero}, *inner;
    tk_kernel_while_do(b, tk_kernel_op(b, TK_KOP_icmp, 2, operands, 1, &more, (tk_ktype){0}), 1,
                       &arg, &inner);
    tk_kvalue *less = op2(b, TK_KOP_sub, inner, step);
    tk_kernel_end(b, 1, &less, &result);
    assert_ok(tk_kernel_builder_finish(b, &kernel));
    char *text;
    assert_ok(tk_kernel_print(kernel, 0, &text));
    assert_non_null(
        strstr(text, "%0 = for %1 = i32(0) to i32(8) step i32(1) carry (%2 = i32(0)) {"));
    assert_non_null(strstr(text, "%4 = while (%5 = %0) {"));
    tk_kernel_text_free(text);
    tk_kernel_release(kernel);
    tk_kernel_builder_release(b);
}

static void test_errors_stick(void **state) {
    (void)state;
    tk_kernel_builder *b = tk_kernel_builder_create("bad", TK_KFORM_THREAD);
    tk_kernel *kernel;
    tk_kernel_at(b, "model.py", 17);
    assert_null(op2(b, TK_KOP_add, tk_kernel_int(b, TK_K_I32, 1), tk_kernel_float(b, TK_K_F32, 1)));
    assert_null(tk_kernel_int(b, TK_K_I32, 1));
    assert_int_equal(tk_kernel_builder_finish(b, &kernel), TK_DTYPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "model.py:17: add: b is f32, expected i32"));
    tk_kernel_builder_release(b);
    b = tk_kernel_builder_create("not a name", TK_KFORM_THREAD);
    assert_int_equal(tk_kernel_builder_status(b), TK_INVALID_ARGUMENT);
    tk_kernel_builder_release(b);
}

static void *work(void *arg) {
    char *failed = arg;
    for (int round = 0; round < 10 && !*failed; round++) {
        float x[300] = {0}, y[300] = {0}, z[300];
        tk_kernel *kernel = build_add();
        tk_artifact *artifact = NULL;
        tk_emulation *emulation = NULL;
        tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {z, sizeof z, 0}, {0}};
        tk_kargument arguments[] = {{0}, {0}, {0}, {300}};
        tk_kemulate how = {.n_arguments = 4, .arguments = arguments, .buffers = buffers};
        *failed = tk_kernel_build_ptx(kernel, NULL, &artifact) != TK_OK ||
                  tk_kernel_emulate(kernel, &how, &emulation) != TK_OK ||
                  tk_emulation_findings(emulation) || z[299] != 0;
        tk_artifact_release(artifact);
        tk_emulation_release(emulation);
        tk_kernel_release(kernel);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    char failed[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &failed[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) assert_false(failed[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_text), cmocka_unit_test(test_loops),
        cmocka_unit_test(test_errors_stick), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
