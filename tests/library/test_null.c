/* NULL where a schedule, a plan or a place for a result is needed; passes too. */
#include "support/null_check.h"

#include "tiki/analysis.h"
#include "tiki/library.h"
#include "tiki/passes.h"

static tk_library_tensor tensors[] = {{.element = TK_K_F32}, {.element = TK_K_F32}};
static tk_library_schedule schedule;
static tk_library_plan *plan, *out_plan;
static tk_library_launch launch;
static tk_library_id id;
static tk_kpass pass;
static tk_kernel *out_kernel;
static char *text;

static void library(void **state) {
    (void)state;
    double number = 1;
    gives_status(tk_library_find(P("copy"), P(&id)));
    gives_status(tk_library_schedule_default(TK_LIBRARY_COPY, 2, P(tensors), P(&schedule)));
    gives_status(tk_library_schedule_print(TK_LIBRARY_COPY, P(&schedule), P(&text)));
    gives_status(tk_library_schedule_read(TK_LIBRARY_COPY, P(""), P(&schedule)));
    gives_status(
        tk_library_plan_create(TK_LIBRARY_FILL, 1, P(tensors), 1, P(&number), NULL, P(&out_plan)));
    assert_ok(tk_library_plan_create(TK_LIBRARY_COPY, 2, tensors, 0, NULL, NULL, &plan));
    gives_status(tk_library_plan_launch(P(plan), 0, P(&launch)));
    assert_ptr_equal(tk_library_plan_retain(plan), plan);
    tk_library_plan_release(plan);
    assert_null(tk_library_plan_retain(NULL));
    assert_int_equal(tk_library_plan_launches(NULL), 0);
    assert_int_equal(tk_library_plan_scratches(NULL), 0);
    assert_int_equal(tk_library_plan_scratch_bytes(NULL, 0), 0);
    tk_library_plan_release(NULL);
    assert_ok(tk_library_plan_launch(plan, 0, &launch));
    gives_status(tk_kernel_pass(P(launch.kernel), TK_KPASS_fold, P(&out_kernel)));
    gives_status(tk_kernel_lower(P(launch.kernel), TK_KFORM_THREAD, 0, P(&out_kernel)));
    gives_status(tk_kpass_find(P("fold"), P(&pass)));
    tk_library_plan_release(plan);
}

static void analysis(void **state) {
    (void)state;
    tk_kanalysis *made = NULL, *unused;
    tk_kfacts facts;
    tk_kplace place;
    tk_korder order;
    assert_ok(tk_library_plan_create(TK_LIBRARY_COPY, 2, tensors, 0, NULL, NULL, &plan));
    assert_ok(tk_library_plan_launch(plan, 0, &launch));
    gives_status(tk_kernel_prove_uniform(P(launch.kernel)));
    gives_status(tk_kernel_analyse(P(launch.kernel), P(&unused)));
    assert_ok(tk_kernel_analyse(launch.kernel, &made));
    gives_status(tk_kanalysis_value(P(made), P("x"), P(&facts)));
    gives_status(tk_kanalysis_place(P(made), 0, P(&place)));
    gives_status(tk_kanalysis_order(P(made), 0, P(&order)));
    tk_kpattern *patterns;
    size_t count;
    gives_status(tk_kernel_patterns(P(launch.kernel), 0, NULL, 0, P(&patterns), P(&count)));
    gives_status(tk_kernel_draw(P(launch.kernel), 0, NULL, 0, P(&text)));
    tk_kernel_patterns_free(NULL);
    tk_kanalysis_release(made);
    assert_int_equal(tk_kanalysis_registers(NULL, NULL), 0);
    assert_int_equal(tk_kanalysis_places(NULL), 0);
    assert_int_equal(tk_kanalysis_orders(NULL), 0);
    assert_int_equal(tk_kanalysis_work(NULL).flops, 0);
    tk_kanalysis_release(NULL);
    tk_library_plan_release(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(library), cmocka_unit_test(analysis)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
