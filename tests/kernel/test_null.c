/* NULL where a kernel, a builder, a value or a place for a result is needed. */
#include "support/kernel_files.h"
#include "support/null_check.h"
#include "tiki/emulator.h"
#include "tiki/target.h"

static tk_kernel *kernel, *out_kernel;
static tk_kernel_builder *b;
static tk_kvalue *values[4];
static tk_emulation *emulation, *out_emulation;
static tk_artifact *artifact, *out_artifact;
static char *text;
static tk_klaunch launch;
static tk_kparam param;
static tk_kmap map;
static tk_kopcode code;
static tk_kattr_id attr;
static tk_kattr attrs[1];
static tk_kargument arguments[4];
static tk_kbuffer buffers[4];
static tk_kemulate how = {.n_arguments = 4, .arguments = arguments, .buffers = buffers};
static tk_kfinding finding;
static tk_kcount count;
static tk_report report;
static bool flag;
static const tk_ktype none;

static int make(void **state) {
    (void)state;
    kernel = parse_file(kernel_files[0]);
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    assert_ok(tk_kernel_build_ptx(kernel, NULL, &artifact));
    return 0;
}

static int unmake(void **state) {
    (void)state;
    tk_kernel_release(kernel);
    tk_emulation_release(emulation);
    tk_artifact_release(artifact);
    return 0;
}

/* The call with the builder NULL, then with a fresh one and each marked argument NULL: an error
 * that it keeps. */
#define sticks(call)                                                                               \
    do {                                                                                           \
        for (null_at = -1; null_at < null_count(#call); null_at++) {                               \
            null_seen = 0;                                                                         \
            b = null_at < 0 ? NULL : tk_kernel_builder_create("k", TK_KFORM_THREAD);               \
            (void)(call);                                                                          \
            if (b) assert_int_not_equal(tk_kernel_builder_status(b), TK_OK);                       \
            tk_kernel_builder_release(b);                                                          \
        }                                                                                          \
    } while (0)

static void kernels(void **state) {
    (void)state;
    gives_status(tk_kernel_parse(P(""), "k", P(&out_kernel)));
    gives_status(tk_kernel_print(P(kernel), 0, P(&text)));
    gives_status(tk_kernel_contract_json(P(kernel), P(&text)));
    gives_status(tk_kernel_verify(P(kernel)));
    gives_nothing(tk_kernel_equal(P(kernel), P(kernel)));
    gives(tk_kernel_retain(P(kernel)), NULL);
    gives_nothing(tk_kernel_release(P(kernel)));
    gives_nothing(tk_kernel_text_free(P(text)));
    gives(tk_kernel_name(P(kernel)), NULL);
    gives_nothing(tk_kernel_form(P(kernel)));
    gives(tk_kernel_params(P(kernel)), 0);
    gives_status(tk_kernel_param(P(kernel), 0, P(&param)));
    gives_status(tk_kernel_launch(P(kernel), NULL, 4, P(arguments), P(&launch)));
    gives_status(tk_kopcode_find(P("add"), P(&code)));
    assert_non_null(tk_kopcode_attr(TK_KOP_load, 0, NULL));
    assert_non_null(tk_kopcode_attr(TK_KOP_load, 0, &attr));
    assert_non_null(tk_kopcode_operand(TK_KOP_load, 0, NULL));
    assert_non_null(tk_kopcode_operand(TK_KOP_load, 0, &flag));
}

static void building(void **state) {
    (void)state;
    b = tk_kernel_builder_create(NULL, TK_KFORM_THREAD);
    assert_int_equal(tk_kernel_builder_status(b), TK_INVALID_ARGUMENT);
    tk_kernel_builder_fail(b, TK_SHAPE_ERROR, NULL);
    tk_kernel_builder_release(b);
    b = tk_kernel_builder_create("k", TK_KFORM_THREAD);
    gives_status(tk_kernel_builder_finish(P(b), P(&out_kernel)));
    gives_status(tk_kernel_builder_status(P(b)));
    gives_nothing(tk_kernel_builder_release(P(b)));
    gives_nothing(tk_kernel_builder_fail(P(b), TK_OK, "text"));
    gives_nothing(tk_kernel_at(P(b), NULL, 1));
    tk_kernel_builder_release(b);
    sticks(tk_kernel_add_param(b, P(&param)));
    sticks(tk_kernel_add_map(b, P(&map)));
    sticks(tk_kernel_int(b, TK_K_I32, 1));
    sticks(tk_kernel_float(b, TK_K_F32, 1));
    sticks(tk_kernel_op(b, TK_KOP_add, 2, P(values), 1, P(attrs), none));
    gives(tk_kvalue_name(P(values)), NULL);
    assert_int_equal(tk_kvalue_type(NULL).kind, TK_KT_NONE);
    gives_nothing(tk_kvalue_rename(NULL, P(values), P("x")));
}

static void contract(void **state) {
    (void)state;
    b = tk_kernel_builder_create("k", TK_KFORM_THREAD);
    gives(tk_kexpr_const(P(b), 1), -1);
    gives(tk_kexpr_device(P(b), TK_KFACT_SMS), -1);
    gives_nothing(tk_kernel_require(P(b), 0, TK_KR_EQ, 0));
    gives_nothing(tk_kernel_grid(P(b), 0, 0, 0));
    gives_nothing(tk_kernel_cluster(P(b), 0, 0, 0));
    gives_nothing(tk_kernel_block(P(b), 1, 1, 1));
    gives_nothing(tk_kernel_dynamic_shared(P(b), 0));
    gives_nothing(tk_kernel_cooperative(P(b)));
    gives_nothing(tk_kernel_programmatic(P(b)));
    gives_nothing(tk_kernel_min_blocks(P(b), 1));
    gives(tk_kexpr_binary(P(b), TK_KX_ADD, 0, 0), -1);
    assert_ok(tk_kernel_builder_status(b));
    tk_kernel_builder_release(b);
    sticks(tk_kexpr_param(b, P(values[0])));
}

static void types(void **state) {
    (void)state;
    sticks(tk_ktype_of_layout(b, P("4:1")).kind);
    sticks(tk_ktype_of_view(b, TK_K_F32, TK_KS_GLOBAL, P("4:1")).kind);
    sticks(tk_ktype_of_shared(b, TK_K_F32, P("4:1")).kind);
    sticks(tk_ktype_of_registers(b, TK_K_F32, P("4:1"), NULL).kind);
}

static void regions(void **state) {
    (void)state;
    b = tk_kernel_builder_create("k", TK_KFORM_THREAD);
    tk_kvalue *one = tk_kernel_int(b, TK_K_I32, 1);
    gives_nothing(tk_kernel_while(P(b), 0, NULL, NULL));
    gives_nothing(tk_kernel_while_do(P(b), one, 0, NULL, NULL));
    gives_nothing(tk_kernel_if(P(b), one));
    gives_nothing(tk_kernel_else(P(b), 0, NULL));
    gives_nothing(tk_kernel_end(P(b), 0, NULL, NULL));
    assert_ok(tk_kernel_builder_status(b));
    tk_kernel_builder_release(b);
    sticks(tk_kernel_for(b, P(values[0]), P(values[0]), P(values[0]), 0, 1, P(values), NULL));
}

static void emulations(void **state) {
    (void)state;
    gives_status(tk_kernel_emulate(P(kernel), P(&how), P(&out_emulation)));
    gives_nothing(tk_emulation_release(P(out_emulation)));
    gives(tk_emulation_findings(P(emulation)), 0);
    gives(tk_emulation_counts(P(emulation)), 0);
    gives_status(tk_emulation_finding(P(emulation), 0, P(&finding)));
    gives_status(tk_emulation_count(P(emulation), 0, P(&count)));
    gives_status(tk_emulation_text(P(emulation), P(&text)));
    gives_status(tk_emulation_json(P(emulation), P(&text)));
    assert_int_equal(tk_emulation_totals(NULL).flops, 0);
}

static void artifacts(void **state) {
    char version[32];
    tk_target target;
    (void)state;
    gives_status(tk_kernel_build_ptx(P(kernel), NULL, P(&out_artifact)));
    gives_status(tk_ptx_check(P("ret;"), P("k")));
    gives(tk_artifact_retain(P(artifact)), NULL);
    gives_nothing(tk_artifact_release(P(artifact)));
    gives(tk_artifact_text(P(artifact)), NULL);
    gives(tk_artifact_stage(P(artifact), TK_STAGE_PTX), NULL);
    gives_status(tk_kernel_build_cute(P(kernel), NULL, P(&out_artifact)));
    gives_status(tk_kernel_build(P(kernel), NULL, P(&out_artifact)));
    gives_status(tk_assembler_name(P(version), sizeof version));
    gives_status(tk_assembler_describe(P(version), sizeof version));
    gives_status(tk_cute_version(P(version), sizeof version));
    gives_status(tk_cute_describe(P(version), sizeof version));
    gives_nothing(tk_cute_use_python(P("python3")));
    gives_status(tk_target_find(P("ptx"), P(&target)));
    gives(tk_artifact_identity(P(artifact)), NULL);
    gives(tk_artifact_binary(P(artifact), NULL), NULL);
    gives_nothing(tk_artifact_log(P(artifact)));
    gives_nothing(tk_artifact_assembler(P(artifact)));
    gives(tk_artifact_arch(P(artifact)), NULL);
    gives(tk_artifact_kernel(P(artifact)), NULL);
    gives_status(tk_artifact_report(P(artifact), P(&report)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels),  cmocka_unit_test(building),
                                       cmocka_unit_test(contract), cmocka_unit_test(types),
                                       cmocka_unit_test(regions),  cmocka_unit_test(emulations),
                                       cmocka_unit_test(artifacts)};
    return cmocka_run_group_tests(tests, make, unmake);
}
