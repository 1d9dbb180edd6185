/* NULL where a value of the layout algebra is needed. */
#include "support/null_check.h"
#include "tiki/layout_call.h"
#include "tiki/layout_draw.h"

static tk_tuple tuple, out_tuple;
static tk_layout layout, out_layout;
static tk_composed composed, out_composed;
static tk_layout_value value, out_value;
static tk_swizzle swizzle;
static tk_term term;
static tk_bank_report report;
static const tk_layout *list[1] = {&layout};
static const int64_t numbers[1] = {1};
static const int modes[1] = {0};
static int64_t number;
static size_t length;
static bool flag;
static char text[64];

static int make_values(void **state) {
    (void)state;
    assert_ok(tk_tuple_parse("(2,3)", &tuple));
    assert_ok(tk_layout_parse("(2,3):(1,2)", &layout));
    assert_ok(tk_composed_parse("S<1,1,1> o 0 o (2,3):(1,2)", &composed));
    assert_ok(tk_layout_value_parse("(2,3):(1,2)", &value));
    return 0;
}

static void tuples(void **state) {
    (void)state;
    gives_status(tk_tuple_from_ints(P(numbers), 1, P(&out_tuple)));
    gives_nothing(tk_tuple_from_term(term, P(&out_tuple)));
    gives_nothing(tk_tuple_copy(P(&tuple), P(&out_tuple)));
    gives_nothing(tk_tuple_equal(P(&tuple), P(&tuple)));
    gives_nothing(tk_tuple_rank(P(&tuple)));
    gives_nothing(tk_tuple_depth(P(&tuple)));
    gives_nothing(tk_tuple_is_static(P(&tuple)));
    gives_status(tk_tuple_mode(P(&tuple), 1, P(&out_tuple)));
    gives_status(tk_tuple_product(P(&tuple), P(&term)));
    gives_status(tk_tuple_product_each(P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_add(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_sub(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_shape_div(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_ceil_div(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_elem_less(P(&tuple), P(&tuple), P(&flag)));
    gives_nothing(tk_tuple_congruent(P(&tuple), P(&tuple)));
    gives_nothing(tk_tuple_weakly_congruent(P(&tuple), P(&tuple)));
    gives_status(tk_tuple_compatible(P(&tuple), P(&tuple), P(&flag)));
    gives_status(tk_idx2crd(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_crd2idx(P(&tuple), P(&tuple), P(&term)));
    gives_status(tk_increment_coord(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_slice(P(&tuple), P(&tuple), P(&out_tuple)));
    gives_status(tk_tuple_dice(P(&tuple), P(&tuple), P(&out_tuple)));
}

static void layouts(void **state) {
    (void)state;
    gives_status(tk_layout_make(P(&tuple), P(&tuple), P(&out_layout)));
    gives_status(tk_layout_from_shape(P(&tuple), P(&out_layout)));
    gives_status(tk_layout_from_ints(1, P(numbers), P(numbers), P(&out_layout)));
    gives_status(tk_layout_make_ordered(P(&tuple), P(&tuple), P(&out_layout)));
    gives_status(tk_layout_make_like(P(&layout), P(&out_layout)));
    gives_status(tk_layout_make_identity(P(&tuple), P(&out_layout)));
    gives_status(tk_tiler_from_shape(P(&tuple), P(&out_layout)));
    gives_status(tk_layout_concat(P(list), 1, P(&out_layout)));
    gives_nothing(tk_layout_copy(P(&layout), P(&out_layout)));
    gives_nothing(tk_layout_bytes(P(&layout)));
    gives_nothing(tk_layout_equal(P(&layout), P(&layout)));
    gives_nothing(tk_layout_hash(P(&layout)));
    gives_nothing(tk_layout_shape(P(&layout), P(&out_tuple)));
    gives_nothing(tk_layout_stride(P(&layout), P(&out_tuple)));
    gives_nothing(tk_layout_is_static(P(&layout)));
    gives_nothing(tk_tiler_is_list(P(&layout)));
    gives_nothing(tk_layout_rank(P(&layout)));
    gives_nothing(tk_layout_depth(P(&layout)));
    gives_status(tk_layout_size(P(&layout), P(&term)));
    gives_status(tk_layout_cosize(P(&layout), P(&term)));
    gives_status(tk_layout_mode(P(&layout), 1, P(&out_layout)));
    gives_status(tk_layout_get(P(&layout), P(&tuple), P(&out_layout)));
    gives_status(tk_layout_is_injective(P(&layout), P(&flag)));
    gives_status(tk_layout_is_compact(P(&layout), P(&flag)));
    gives_status(tk_layout_offsets(P(&layout), 1, 1, P(&number)));
    gives_nothing(tk_layout_is_plain(P(&layout)));
    gives_status(tk_layout_eval(P(&layout), P(&tuple), P(&out_tuple)));
    gives_status(tk_layout_coalesce(P(&layout), NULL, P(&out_layout)));
    gives_status(tk_layout_flatten(P(&layout), P(&out_layout)));
    gives_status(tk_layout_group(P(&layout), 1, 1, P(&out_layout)));
    gives_status(tk_layout_select(P(&layout), P(modes), 1, P(&out_layout)));
    gives_status(tk_layout_filter(P(&layout), P(&out_layout)));
    gives_status(tk_layout_filter_zeros(P(&layout), P(&out_layout)));
    gives_status(tk_layout_append(P(&layout), 3, NULL, P(&out_layout)));
    gives_status(tk_layout_prepend(P(&layout), 3, NULL, P(&out_layout)));
    gives_status(tk_layout_slice(P(&layout), P(&tuple), P(&out_layout)));
    gives_status(tk_layout_dice(P(&layout), P(&tuple), P(&out_layout)));
    gives_status(tk_layout_recast(P(&layout), 1, 1, P(&out_layout)));
    gives_status(tk_layout_composition(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_complement(P(&layout), term, P(&out_layout)));
    gives_status(tk_layout_right_inverse(P(&layout), P(&out_layout)));
    gives_status(tk_layout_left_inverse(P(&layout), P(&out_layout)));
    gives_status(tk_layout_nullspace(P(&layout), P(&out_layout)));
    gives_status(tk_layout_max_common_vector(P(&layout), P(&layout), P(&number)));
    gives_status(tk_layout_logical_divide(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_zipped_divide(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_tiled_divide(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_flat_divide(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_logical_product(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_zipped_product(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_tiled_product(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_flat_product(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_blocked_product(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_raked_product(P(&layout), P(&layout), P(&out_layout)));
    gives_status(tk_layout_tile_to_shape(P(&layout), P(&tuple), NULL, P(&out_layout)));
    gives_status(tk_layout_local_tile(P(&layout), P(&layout), P(&tuple), P(&out_layout), NULL));
    gives_status(tk_layout_local_partition(P(&layout), P(&layout), 1, P(&out_layout), NULL));
    gives_status(tk_layout_make_tv(P(&layout), P(&layout), P(&out_tuple), P(&out_layout)));
    assert_false(tk_layout_equal(&layout, NULL));
    assert_int_equal(tk_layout_rank(NULL), 0);
    assert_false(tk_layout_is_plain(NULL));
}

static void composed_and_text(void **state) {
    (void)state;
    gives_nothing(tk_composed_from_layout(P(&layout), P(&out_composed)));
    gives_status(tk_composed_make_swizzled(swizzle, NULL, P(&layout), P(&out_composed)));
    gives_status(tk_composed_make(P(&layout), NULL, P(&layout), P(&out_composed)));
    gives_nothing(tk_composed_equal(P(&composed), P(&composed)));
    gives_status(tk_composed_eval(P(&composed), P(&tuple), P(&out_tuple)));
    gives_status(tk_composed_slice(P(&composed), P(&tuple), P(&out_composed)));
    gives_status(tk_composed_recast(P(&composed), 1, 1, P(&out_composed)));
    gives_status(tk_tuple_parse(P("(2,3)"), P(&out_tuple)));
    gives_status(tk_layout_parse(P("(2,3)"), P(&out_layout)));
    gives_status(tk_tiler_parse(P("(2,3)"), P(&out_layout)));
    gives_status(tk_swizzle_parse(P("(2,3)"), P(&swizzle)));
    gives_status(tk_composed_parse(P("(2,3)"), P(&out_composed)));
    gives_nothing(tk_tuple_print(P(&tuple), P(text), sizeof text));
    gives_nothing(tk_layout_print(P(&layout), P(text), sizeof text));
    gives_nothing(tk_swizzle_print(swizzle, P(text), sizeof text));
    gives_nothing(tk_composed_print(P(&composed), P(text), sizeof text));
    assert_int_equal(tk_layout_print(&layout, NULL, 64), 11);
    assert_int_equal(tk_layout_print(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
}

static void by_name_and_drawn(void **state) {
    (void)state;
    gives_status(tk_layout_call(P("(2,3)"), P(&value), 1, P(&out_value)));
    gives_status(tk_layout_value_parse(P("(2,3)"), P(&out_value)));
    gives_nothing(tk_layout_value_print(P(&value), P(text), sizeof text));
    gives_status(tk_layout_draw(P(&composed), NULL, 0, P(&length)));
    gives_status(tk_layout_draw_tv(P(&layout), P(&tuple), NULL, 0, P(&length)));
    gives_status(tk_layout_draw_pair(P(&composed), P(&composed), NULL, 0, P(&length), NULL));
    gives_status(tk_layout_draw_banks(P(&composed), 1, NULL, 0, P(&length)));
    gives_status(tk_layout_count_banks(P(&composed), 1, P(&report)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tuples),
        cmocka_unit_test(layouts),
        cmocka_unit_test(composed_and_text),
        cmocka_unit_test(by_name_and_drawn),
    };
    return cmocka_run_group_tests(tests, make_values, NULL);
}
