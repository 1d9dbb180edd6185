/* Values as text. The expected strings are what NumPy 2.4's array2string gives for the same values.
 */
#include "support/arrays.h"

#include <math.h>
#include <string.h>

#define MOST_VALUES 32

typedef struct golden {
    tk_dtype dtype;
    tk_shape shape;
    double values[MOST_VALUES]; /* real and imaginary parts in turn for complex64 */
    const char *text;
} golden;

/* clang-format off */
static const golden goldens[] = {
    {TK_BOOL, {1, {3}}, {1.0, 0.0, 1.0}, "[ True False  True]"},
    {TK_BOOL, {0, {0}}, {1.0}, "True"},
    {TK_BOOL, {2, {2, 1}}, {0.0, 0.0}, "[[False]\n [False]]"},
    {TK_UINT8, {1, {3}}, {0.0, 7.0, 255.0}, "[  0   7 255]"},
    {TK_INT8, {2, {2, 2}}, {-128.0, 5.0, 0.0, 127.0}, "[[-128    5]\n [   0  127]]"},
    {TK_INT32, {0, {0}}, {-3.0}, "-3"},
    {TK_INT64, {3, {2, 1, 1}}, {1.0, -1099511627776.0}, "[[[             1]]\n\n [[-1099511627776]]]"},
    {TK_UINT64, {1, {2}}, {0.0, 9007199254740992.0}, "[               0 9007199254740992]"},
    {TK_INT32, {1, {30}}, {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0}, "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29]"},
    {TK_FLOAT32, {0, {0}}, {1.5}, "1.5"},
    {TK_FLOAT32, {1, {3}}, {0.10000000149011612, 0.20000000298023224, 0.30000001192092896}, "[0.1 0.2 0.3]"},
    {TK_FLOAT32, {2, {2, 2}}, {1.0, 2.0, 3.0, 4.0}, "[[1. 2.]\n [3. 4.]]"},
    {TK_FLOAT32, {1, {2}}, {9.999999747378752e-06, 1.0}, "[1.e-05 1.e+00]"},
    {TK_FLOAT32, {1, {2}}, {1.0, 1001.0}, "[1.000e+00 1.001e+03]"},
    {TK_FLOAT32, {1, {2}}, {1.0, 1000.0}, "[   1. 1000.]"},
    {TK_FLOAT32, {1, {2}}, {999999.0, 1.0}, "[9.99999e+05 1.00000e+00]"},
    {TK_FLOAT32, {1, {1}}, {1000000.0}, "[1.e+06]"},
    {TK_FLOAT32, {1, {2}}, {16777216.0, 0.5}, "[1.6777216e+07 5.0000000e-01]"},
    {TK_FLOAT64, {1, {2}}, {100000000.0, 1.0}, "[1.e+08 1.e+00]"},
    {TK_FLOAT64, {1, {1}}, {12345678.5}, "[12345678.5]"},
    {TK_FLOAT64, {1, {3}}, {0.1, 0.3333333333333333, 0.6666666666666666}, "[0.1        0.33333333 0.66666667]"},
    {TK_FLOAT64, {1, {1}}, {0.0001}, "[0.0001]"},
    {TK_FLOAT64, {1, {1}}, {9.9e-05}, "[9.9e-05]"},
    {TK_FLOAT64, {1, {2}}, {1e+300, 1e-300}, "[1.e+300 1.e-300]"},
    {TK_FLOAT64, {1, {1}}, {5e-324}, "[5.e-324]"},
    {TK_FLOAT64, {1, {2}}, {0.0, -0.0}, "[ 0. -0.]"},
    {TK_FLOAT32, {1, {3}}, {NAN, 1.0, -2.5}, "[ nan  1.  -2.5]"},
    {TK_FLOAT32, {1, {3}}, {INFINITY, -INFINITY, NAN}, "[ inf -inf  nan]"},
    {TK_FLOAT32, {1, {1}}, {NAN}, "[nan]"},
    {TK_FLOAT32, {1, {2}}, {INFINITY, 1.0}, "[inf  1.]"},
    {TK_FLOAT64, {1, {3}}, {-INFINITY, 10000000000.0, 0.125}, "[    -inf 1.00e+10 1.25e-01]"},
    {TK_FLOAT16, {1, {2}}, {0.0999755859375, 65504.0}, "[1.00e-01 6.55e+04]"},
    {TK_FLOAT16, {1, {2}}, {0.3330078125, 2.5}, "[0.333 2.5  ]"},
    {TK_FLOAT16, {1, {2}}, {0.015625, 1024.0}, "[1.563e-02 1.024e+03]"},
    {TK_FLOAT16, {1, {1}}, {999.5}, "[999.5]"},
    {TK_FLOAT32, {1, {1}}, {1.262177448353619e-29}, "[1.2621775e-29]"},
    {TK_FLOAT64, {1, {2}}, {123456.123456789, 0.5}, "[1.23456123e+05 5.00000000e-01]"},
    {TK_FLOAT64, {1, {2}}, {0.123456785, 0.123456775}, "[0.12345678 0.12345678]"},
    {TK_COMPLEX64, {1, {2}}, {1.0, 2.0, -0.5, -1.0000000116860974e-07}, "[ 1. +2.e+00j -0.5-1.e-07j]"},
    {TK_COMPLEX64, {0, {0}}, {0.0, 1.0}, "0.+1.j"},
    {TK_COMPLEX64, {1, {2}}, {NAN, INFINITY, -1.0, 2.25}, "[nan +infj -1.+2.25j]"},
    {TK_FLOAT32, {2, {2, 12}}, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, "[[0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5]\n [0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5]]"},
    {TK_FLOAT32, {3, {2, 2, 2}}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, "[[[1. 2.]\n  [3. 4.]]\n\n [[5. 6.]\n  [7. 8.]]]"},
    {TK_FLOAT32, {1, {3}}, {-1.5, 22.25, -333.125}, "[  -1.5     22.25  -333.125]"},
};
/* clang-format on */

static void assert_text(tk_array array, const char *expected) {
    char *text;
    assert_ok(tk_format(array, &text));
    assert_string_equal(text, expected);
    tk_text_free(text);
}

static tk_array array_of(tk_context *ctx, const golden *g) {
    if (g->dtype != TK_COMPLEX64)
        return tk_astype(tk_from_data(ctx, g->values, g->shape, TK_FLOAT64), g->dtype);
    float parts[MOST_VALUES];
    for (int i = 0; i < MOST_VALUES; i++) parts[i] = (float)g->values[i];
    return tk_from_data(ctx, parts, g->shape, TK_COMPLEX64);
}

static void values_print_as_in_numpy(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++)
        assert_text(array_of(ctx, &goldens[i]), goldens[i].text);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void large_arrays_lose_their_middle(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array range = tk_arange(ctx, 0, 1001, 1, TK_FLOAT32);
    assert_text(range, "[   0.    1.    2. ...  998.  999. 1000.]");
    assert_text(tk_reshape(tk_arange(ctx, 0, 2000, 1, TK_INT32), TK_SHAPE(2, 1000)),
                "[[   0    1    2 ...  997  998  999]\n [1000 1001 1002 ... 1997 1998 1999]]");
    assert_text(tk_reshape(tk_arange(ctx, 0, 1120, 1, TK_INT16), TK_SHAPE(7, 40, 4)),
                "[[[   0    1    2    3]\n  [   4    5    6    7]\n  [   8    9   10   11]\n  ...\n"
                "  [ 148  149  150  151]\n  [ 152  153  154  155]\n  [ 156  157  158  159]]\n\n"
                " [[ 160  161  162  163]\n  [ 164  165  166  167]\n  [ 168  169  170  171]\n  ...\n"
                "  [ 308  309  310  311]\n  [ 312  313  314  315]\n  [ 316  317  318  319]]\n\n"
                " [[ 320  321  322  323]\n  [ 324  325  326  327]\n  [ 328  329  330  331]\n  ...\n"
                "  [ 468  469  470  471]\n  [ 472  473  474  475]\n  [ 476  477  478  479]]\n\n"
                " ...\n\n"
                " [[ 640  641  642  643]\n  [ 644  645  646  647]\n  [ 648  649  650  651]\n  ...\n"
                "  [ 788  789  790  791]\n  [ 792  793  794  795]\n  [ 796  797  798  799]]\n\n"
                " [[ 800  801  802  803]\n  [ 804  805  806  807]\n  [ 808  809  810  811]\n  ...\n"
                "  [ 948  949  950  951]\n  [ 952  953  954  955]\n  [ 956  957  958  959]]\n\n"
                " [[ 960  961  962  963]\n  [ 964  965  966  967]\n  [ 968  969  970  971]\n  ...\n"
                "  [1108 1109 1110 1111]\n  [1112 1113 1114 1115]\n  [1116 1117 1118 1119]]]");
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void strides_and_empty_arrays(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = tk_reshape(tk_arange(ctx, 0, 6, 1, TK_FLOAT32), TK_SHAPE(2, 3));
    assert_text(tk_transpose(x, TK_ALL_AXES), "[[0. 3.]\n [1. 4.]\n [2. 5.]]");
    assert_text(tk_flip(x, TK_AXES(1)), "[[2. 1. 0.]\n [5. 4. 3.]]");
    assert_text(tk_broadcast_to(tk_scalar(ctx, 2.5), TK_SHAPE(2, 2)), "[[2.5 2.5]\n [2.5 2.5]]");
    assert_text(tk_zeros(ctx, TK_SHAPE(0), TK_FLOAT32), "[]");
    assert_text(tk_zeros(ctx, TK_SHAPE(3, 0, 2), TK_INT32), "[]");
    assert_text(tk_broadcast_to(tk_scalar(ctx, 2.5), TK_SHAPE(1 << 20, 1 << 20)),
                "[[2.5 2.5 2.5 ... 2.5 2.5 2.5]\n [2.5 2.5 2.5 ... 2.5 2.5 2.5]\n"
                " [2.5 2.5 2.5 ... 2.5 2.5 2.5]\n ...\n [2.5 2.5 2.5 ... 2.5 2.5 2.5]\n"
                " [2.5 2.5 2.5 ... 2.5 2.5 2.5]\n [2.5 2.5 2.5 ... 2.5 2.5 2.5]]");
    tk_scope_close(scope);
    tk_context_release(ctx);
}

/* NumPy has no bfloat16: as few digits as tell it from its neighbours. */
static void bfloat16_prints_few_digits(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    const float values[] = {0.1f, 3.14159f, -2.0f, 100.0f};
    tk_array x = tk_astype(tk_from_data(ctx, values, TK_SHAPE(4), TK_FLOAT32), TK_BFLOAT16);
    assert_text(x, "[  0.1    3.14  -2.   100.  ]");
    assert_text(tk_multiply(x, tk_scalar(ctx, 1024)),
                "[ 1.025e+02  3.216e+03 -2.048e+03  1.024e+05]");
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void check_digits(tk_array array, int digits, const char *expected) {
    char *text;
    assert_ok(tk_format_digits(array, digits, &text));
    assert_string_equal(text, expected);
    tk_text_free(text);
}

static void digits_after_the_point(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    double values[] = {1.0 / 3, -1234.5, 1e-9, INFINITY};
    tk_array a = tk_from_data(ctx, values, TK_SHAPE(4), TK_FLOAT64);
    check_digits(a, 2, "[    0.33 -1234.50     0.00      inf]");
    check_digits(a, 0, "[    0 -1234     0   inf]");
    check_digits(tk_scalar_complex(ctx, 0.25, -2), 1, "0.2-2.0j");
    check_digits(tk_arange(ctx, 0, 3, 1, TK_INT32), 4, "[0 1 2]");
    char *text = NULL;
    assert_int_equal(tk_format_digits(a, 101, &text), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_format_digits(a, -2, &text), TK_INVALID_ARGUMENT);
    double large = 1.7e308;
    assert_ok(tk_format_digits(tk_from_data(ctx, &large, TK_SCALAR, TK_FLOAT64), 100, &text));
    assert_int_equal(strlen(text), 309 + 101);
    tk_text_free(text);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void errors_have_no_text(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    char *text = NULL;
    tk_array broken = tk_reshape(tk_scalar(ctx, 1), TK_SHAPE(2));
    assert_int_equal(tk_format(broken, &text), TK_SHAPE_ERROR);
    assert_null(text);
    tk_text_free(text);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

/* What is evaluated is an input of the text; what was printed parses to the same arrays. */
static void graphs_print_up_to_what_is_evaluated(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    const float values[] = {1, 2};
    tk_array x = tk_from_data(ctx, values, TK_SHAPE(2), TK_FLOAT32), y = tk_sin(x), z = tk_cos(y);
    const char *expected[] = {
        ("tiki graph 1\n%a0 = input : f32[2]\n%0 = sin %a0 : f32[2]\n"
         "%1 = cos %0 : f32[2]\nreturn %1\n"),
        "tiki graph 1\n%a0 = input : f32[2]\n%0 = cos %a0 : f32[2]\nreturn %0\n",
        "tiki graph 1\n%a0 = input : f32[2]\nreturn %a0\n"};
    const tk_array to_evaluate[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        assert_ok(tk_eval(to_evaluate[i]));
        char *text;
        tk_arrays inputs = {0}, outputs = {0};
        assert_ok(tk_graph_print(&z, 1, &text));
        assert_string_equal(text, expected[i]);
        assert_ok(tk_graph_inputs(&z, 1, &inputs));
        assert_int_equal(inputs.count, 1);
        assert_true(tk_array_same(inputs.items[0], to_evaluate[i]));
        assert_ok(tk_graph_parse(ctx, text, inputs.items, 1, &outputs));
        assert_true(tk_array_same(outputs.items[0], z));
        tk_arrays_clear(&inputs);
        tk_arrays_clear(&outputs);
        tk_text_free(text);
    }
    tk_scope_close(scope);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_print_as_in_numpy),
        cmocka_unit_test(large_arrays_lose_their_middle),
        cmocka_unit_test(strides_and_empty_arrays),
        cmocka_unit_test(bfloat16_prints_few_digits),
        cmocka_unit_test(digits_after_the_point),
        cmocka_unit_test(errors_have_no_text),
        cmocka_unit_test(graphs_print_up_to_what_is_evaluated),
    };
    return cmocka_run_group_tests_name("values and graphs as text", tests, NULL, NULL);
}
