/* The text form: printing, parsing back to the same nodes, refusing text that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/custom.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "support/op_cases.h"

typedef struct workspace {
    tk_graph graph;
    tk_builder b;
} workspace;

static void no_storage(tk_node *node) { node->storage = NULL; }

static void open_workspace(workspace *w) {
    assert_int_equal(tk_graph_init(&w->graph, no_storage), TK_OK);
    tk_graph_lock(&w->graph);
    tk_builder_open(&w->b, &w->graph, 0);
}

/* Every node must be gone when the builder has let go. */
static void close_workspace(workspace *w) {
    tk_builder_close(&w->b);
    assert_int_equal(w->graph.n_nodes, 1);
    tk_graph_unlock(&w->graph);
    tk_graph_deinit(&w->graph);
}

static void assert_parsed(tk_status status, const char *text) {
    if (status != TK_OK) print_error("%s\n%s\n", tk_error_message(), text);
    assert_int_equal(status, TK_OK);
}

static char *print(size_t count, tk_node *const *outputs) {
    tk_strbuf text = {0};
    assert_int_equal(tk_graph_text_print(count, outputs, &text), TK_OK);
    char *taken = tk_strbuf_take(&text);
    assert_non_null(taken);
    return taken;
}

/* In a graph of its own, on other inputs, the text prints as itself. */
static void check_elsewhere(const char *text, const tk_node_vec *inputs) {
    workspace w;
    open_workspace(&w);
    tk_node_vec fresh = {0}, outputs = {0};
    for (size_t i = 0; i < inputs->count; i++) {
        const tk_node *like = inputs->items[i];
        assert_true(
            tk_vec_push(&fresh, new_placeholder(&w.b, (tk_dtype)like->dtype, tk_node_shape(like))));
    }
    assert_parsed(tk_graph_text_parse(&w.b, text, fresh.count, fresh.items, &outputs), text);
    char *again = print(outputs.count, outputs.items);
    assert_string_equal(again, text);
    tk_free(again);
    tk_vec_deinit(&fresh);
    tk_vec_deinit(&outputs);
    close_workspace(&w);
}

/* Printing, parsing and verifying give the same nodes. */
static void check_round_trip(workspace *w, size_t count, tk_node *const *outputs) {
    assert_int_equal(tk_graph_verify(count, outputs), TK_OK);
    char *text = print(count, outputs);
    tk_node_vec inputs = {0}, parsed = {0};
    assert_int_equal(tk_graph_text_inputs(count, outputs, &inputs), TK_OK);
    assert_parsed(tk_graph_text_parse(&w->b, text, inputs.count, inputs.items, &parsed), text);
    assert_int_equal(parsed.count, count);
    for (size_t i = 0; i < count; i++) assert_ptr_equal(parsed.items[i], outputs[i]);
    check_elsewhere(text, &inputs);
    tk_free(text);
    tk_vec_deinit(&inputs);
    tk_vec_deinit(&parsed);
}

/* ---- round trips ---- */

static void every_op_has_a_case(void **state) {
    (void)state;
    bool seen[TK_OP_COUNT] = {false};
    for (size_t i = 0; i < op_case_count(); i++) seen[op_case_at(i)->op] = true;
    for (int op = 0; op < TK_OP_COUNT; op++) {
        if (seen[op] == op_has_case((tk_op)op)) continue;
        print_error("op %s\n", tk_op_name((tk_op)op));
        fail();
    }
}

static void every_op_round_trips(void **state) {
    (void)state;
    for (size_t i = 0; i < op_case_count(); i++) {
        workspace w;
        open_workspace(&w);
        tk_node *node = build_op_case(&w.b, op_case_at(i), NULL);
        if (tk_node_is_error(node)) print_error("case %zu: %s\n", i, tk_error_message());
        assert_false(tk_node_is_error(node));
        tk_node *outputs[TK_MAX_RANK];
        for (uint32_t k = 0; k < node->n_outputs; k++) outputs[k] = tkb_output(&w.b, node, (int)k);
        check_round_trip(&w, node->n_outputs, outputs);
        close_workspace(&w);
    }
}

static void random_graphs_round_trip(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        workspace w;
        open_workspace(&w);
        tk_node_vec pool = {0};
        grow_random_graph(&w.b, seed, 10 + seed * 4, &pool);
        size_t last = pool.count < 20 ? pool.count : 20;
        check_round_trip(&w, last, pool.items + pool.count - last);
        check_round_trip(&w, pool.count, pool.items);
        tk_vec_deinit(&pool);
        close_workspace(&w);
    }
}

static void deep_graphs_round_trip(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2));
    for (int i = 0; i < 100000; i++) x = i % 2 ? tkb_sin(&w.b, x) : tkb_multiply(&w.b, x, x);
    check_round_trip(&w, 1, &x);
    close_workspace(&w);
}

/* ---- what text looks like ---- */

static void text_is_readable(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2, 3));
    tk_node *q = new_placeholder(&w.b, TK_FLOAT16, TK_SHAPE(1, 2, 3, 4));
    tk_node *scaled = tkb_multiply(&w.b, x, tkb_const(&w.b, TK_FLOAT32, 0.1));
    tk_node *sum = tkb_sum(&w.b, scaled, TK_AXES(1), true);
    tk_attrs_attention attrs = {.scale = 0.5, .causal = true};
    tk_node *tuple = tkb_node(&w.b, TK_OP_attention, 3, (tk_node *const[]){q, q, q}, &attrs);
    w.b.stream = 2;
    tk_node *positive = tkb_maximum(&w.b, sum, tkb_const(&w.b, TK_FLOAT32, 0));
    w.b.stream = 0;
    tk_node *outputs[] = {positive, tkb_output(&w.b, tuple, 1), x,
                          tkb_const_int(&w.b, TK_INT8, -3)};
    char *text = print(4, outputs);
    assert_string_equal(
        text, "tiki graph 1\n"
              "%a0 = input : f32[2,3]\n"
              "%a1 = input : f16[1,2,3,4]\n"
              "%0 = expand f32(0.1) shape=[2,3] : f32[2,3]\n"
              "%1 = multiply %a0, %0 : f32[2,3]\n"
              "%2 = reduce_sum %1 axes=[1] : f32[2,1]\n"
              "%3 = expand@2 f32(0.0) shape=[2,1] : f32[2,1]\n"
              "%4 = maximum@2 %2, %3 : f32[2,1]\n"
              "%5 = attention %a1, %a1, %a1 scale=0.5 causal=true has_mask=false has_sinks=false : "
              "(f16[1,2,3,4], f32[1,2,3])\n"
              "%6 = output %5 index=1 : f32[1,2,3]\n"
              "return %4, %6, %a0, i8(-3)\n");
    tk_free(text);
    check_round_trip(&w, 4, outputs);
    close_workspace(&w);
}

static void check_constant(workspace *w, tk_node *constant, const char *expected) {
    char *text = print(1, &constant), *line = strstr(text, "return ");
    assert_non_null(line);
    line[strcspn(line, "\n")] = 0;
    assert_string_equal(line + 7, expected);
    tk_free(text);
    check_round_trip(w, 1, &constant);
}

static void constants_read_back(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_builder *b = &w.b;
    check_constant(&w, tkb_const(b, TK_BOOL, 1), "bool(true)");
    check_constant(&w, tkb_const_int(b, TK_UINT64, -1), "u64(18446744073709551615)");
    check_constant(&w, tkb_const_int(b, TK_INT64, INT64_MIN), "i64(-9223372036854775808)");
    check_constant(&w, tkb_const_int(b, TK_UINT8, 255), "u8(255)");
    check_constant(&w, tkb_const(b, TK_FLOAT16, 0.1), "f16(0.1)");
    check_constant(&w, tkb_const(b, TK_FLOAT16, 65504), "f16(65500.0)");
    check_constant(&w, tkb_const(b, TK_BFLOAT16, 3.14159), "bf16(3.14)");
    check_constant(&w, tkb_const(b, TK_FLOAT32, 0.1), "f32(0.1)");
    check_constant(&w, tkb_const(b, TK_FLOAT64, 0.1), "f64(0.1)");
    check_constant(&w, tkb_const(b, TK_FLOAT64, 5e-324), "f64(5e-324)");
    check_constant(&w, tkb_const(b, TK_FLOAT64, 1.7976931348623157e308),
                   "f64(1.7976931348623157e308)");
    check_constant(&w, tkb_const(b, TK_FLOAT32, 16777216), "f32(16777216.0)");
    check_constant(&w, tkb_const(b, TK_FLOAT32, -0.0), "f32(-0.0)");
    check_constant(&w, tkb_const(b, TK_FLOAT32, INFINITY), "f32(inf)");
    check_constant(&w, tkb_const(b, TK_FLOAT32, -INFINITY), "f32(-inf)");
    check_constant(&w, tkb_const_complex(b, 1.5, -0.0), "c64(1.5,-0.0)");
    check_constant(&w, tkb_weak(b, TK_KIND_FLOAT, 0.1, 0, 0), "weak_f32(0.1)");
    check_constant(&w, tkb_weak(b, TK_KIND_SIGNED, 0, 0, 1ll << 40), "weak_i64(1099511627776)");
    check_constant(&w, tkb_weak(b, TK_KIND_COMPLEX, 0.1, 1e-7, 0), "weak_c64(0.1,1e-7)");
    close_workspace(&w);
}

static void nans_keep_their_bits(void **state) {
    (void)state;
    static const struct {
        uint64_t bits;
        const char *text;
    } rows[] = {{0x7ff8000000000000, "f64(nan)"},
                {0xfff8000000000000, "f64(-nan)"},
                {0x7ff0000000000001, "f64(0x7ff0000000000001)"}};
    workspace w;
    open_workspace(&w);
    for (int i = 0; i < 3; i++) {
        tk_attrs_constant attrs = {.dtype = TK_FLOAT64, .real = rows[i].bits};
        check_constant(&w, tkb_node(&w.b, TK_OP_const, 0, NULL, &attrs), rows[i].text);
    }
    close_workspace(&w);
}

static void the_locale_does_not_matter(void **state) {
    (void)state;
    const char *names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8", "C"};
    for (int i = 0; i < 4; i++) {
        if (!setlocale(LC_NUMERIC, names[i])) continue;
        workspace w;
        open_workspace(&w);
        check_constant(&w, tkb_const(&w.b, TK_FLOAT64, 1234.5), "f64(1234.5)");
        close_workspace(&w);
    }
    setlocale(LC_NUMERIC, "C");
}

/* A placeholder prints as its value, a custom call as its results; their arguments are not needed.
 */
static void transforms_print_as_values(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_shape shape = TK_SHAPE(3);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, shape),
            *unused = new_placeholder(&w.b, TK_INT32, shape);
    tk_attrs_placeholder as_value = {
        .dtype = TK_FLOAT32, .shape = tk_axes_list(&shape), .serial = 99};
    tk_node *value = tkb_node1(&w.b, TK_OP_placeholder, tkb_sin(&w.b, x), &as_value);
    tk_node *results[] = {unused, tkb_cos(&w.b, value), tkb_exp(&w.b, value)};
    tk_attrs_custom call = {.n_args = 1, .serial = 100};
    tk_node *custom = tkb_node(&w.b, TK_OP_custom, 3, results, &call);
    tk_node *outputs[] = {tkb_negative(&w.b, tkb_output(&w.b, custom, 1)),
                          tkb_output(&w.b, custom, 0)};
    char *text = print(2, outputs);
    assert_string_equal(text, "tiki graph 1\n"
                              "%a0 = input : f32[3]\n"
                              "%0 = sin %a0 : f32[3]\n"
                              "%1 = cos %0 : f32[3]\n"
                              "%2 = exp %0 : f32[3]\n"
                              "%3 = negative %2 : f32[3]\n"
                              "return %3, %1\n");
    tk_free(text);
    close_workspace(&w);
}

static void names_may_leave_gaps_and_comments_are_skipped(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(3));
    tk_node_vec outputs = {0};
    const char *text = "\n# a comment\n  tiki graph 1 # of version 1\n"
                       "%a0=input:float32[3]\n\t%7 = sin %a0 : f32[ 3 ]\r\n\n"
                       "%70 = add %7,f32(1):f32[] # broken on purpose? no: see below\n";
    assert_int_equal(tk_graph_text_parse(&w.b, text, 1, &x, &outputs), TK_SHAPE_ERROR);
    assert_int_equal(outputs.count, 0);
    text =
        "tiki graph 1\n%a0=input:float32[3]\n\t%7 = sin %a0 : f32[ 3 ]\r\n\n# text\n"
        "%70 = expand f32(1) shape=[3]:f32[3]\n%71=add %7 , %70 : f32[3]\nreturn %71 # the end\n\n";
    assert_parsed(tk_graph_text_parse(&w.b, text, 1, &x, &outputs), text);
    tk_node *one = tkb_const_like(&w.b, x, 1);
    assert_ptr_equal(outputs.items[0], tkb_add(&w.b, tkb_sin(&w.b, x), one));
    tk_vec_deinit(&outputs);
    close_workspace(&w);
}

/* ---- refusals ---- */

typedef struct refusal {
    const char *body; /* after the header and an input f32[2,3] */
    tk_status status;
    const char *message; /* a part of it */
} refusal;

static const refusal refusals[] = {
    {"", TK_FORMAT_ERROR, "line 4, column 1: expected return"},
    {"return", TK_OK, ""},
    {"return %a0,", TK_FORMAT_ERROR, "line 3, column 12: expected '%'"},
    {"return %a1", TK_FORMAT_ERROR, "line 3, column 8: %a1 is not defined above"},
    {"return %0", TK_FORMAT_ERROR, "%0 is not defined above"},
    {"return %a0\nreturn %a0", TK_FORMAT_ERROR, "line 4, column 1: expected the end of the text"},
    {"return %99999999999999999999999", TK_FORMAT_ERROR, "does not fit 64 bits"},
    {"%0 = nonsense %a0 : f32[2,3]", TK_FORMAT_ERROR, "line 3, column 6: \"nonsense\" is no op"},
    {"%0 = abs : f32[2,3]", TK_FORMAT_ERROR, "column 10: expected an operand"},
    {"%0 = abs %0 : f32[2,3]", TK_FORMAT_ERROR, "%0 is not defined above"},
    {"%0 = abs %a0 : f32[2,4]", TK_FORMAT_ERROR, "written as f32[2,4], but it is f32(2, 3)"},
    {"%0 = abs %a0 : f16[2,3]", TK_FORMAT_ERROR, "but it is f32(2, 3)"},
    {"%0 = abs %a0 : f99[2,3]", TK_FORMAT_ERROR, "\"f99\" is no dtype"},
    {"%0 = abs %a0", TK_FORMAT_ERROR, "expected ':'"},
    {"%0 = abs %a0 : f32[2,3] more", TK_FORMAT_ERROR,
     "expected the end of the line, found \"more\""},
    {"%0 = abs %a0 : f32[2,3]\n%0 = abs %a0 : f32[2,3]", TK_FORMAT_ERROR,
     "line 4, column 1: %0 comes after %0"},
    {"%2 = abs %a0 : f32[2,3]\n%1 = abs %a0 : f32[2,3]", TK_FORMAT_ERROR,
     "%1 comes after %2: names must ascend"},
    {"%a1 = abs %a0 : f32[2,3]", TK_FORMAT_ERROR, "%a1 is the name of an input"},
    {"%a1 = input : f32[2,3]", TK_FORMAT_ERROR, "%a1 is declared, but only 1 are given"},
    {"%a0 = input : f32[2,3]", TK_FORMAT_ERROR, "expected input %a1, found %a0"},
    {"%0 = input : f32[2,3]", TK_FORMAT_ERROR, "an input is named %a0"},
    {"%0 = add %a0 : f32[2,3]", TK_INVALID_ARGUMENT,
     "line 3, column 6: add: 1 operands given, expected 2"},
    {"%0 = add %a0, f32(1) : f32[2,3]", TK_SHAPE_ERROR, "expected one shape"},
    {"%0 = add %a0, f16(1) : f32[2,3]", TK_DTYPE_ERROR, "expected one dtype"},
    {"%0 = reduce_sum %a0 axes=[2] : f32[2,3]", TK_AXIS_ERROR, "axis 2 of an array of rank 2"},
    {"%0 = reduce_sum %a0 axes=[1,0] : f32[2,3]", TK_AXIS_ERROR, "out of order"},
    {"%0 = reduce_sum %a0 axes=1 : f32[2,3]", TK_FORMAT_ERROR, "expected '['"},
    {"%0 = reduce_sum %a0 axis=[1] : f32[2,3]", TK_FORMAT_ERROR, "expected axes, found \"axis=[1]"},
    {"%0 = reduce_sum %a0 : f32[2,3]", TK_FORMAT_ERROR, "expected axes"},
    {"%0 = scan_sum %a0 axis=1 reverse=2 inclusive=true : f32[2,3]", TK_FORMAT_ERROR,
     "expected true or false"},
    {"%0 = astype %a0 dtype=7 : f32[2,3]", TK_FORMAT_ERROR, "\"7\" is no dtype"},
    {"%0 = output %a0 index=0 : f32[2,3]", TK_INVALID_ARGUMENT,
     "output: index 0 of an op with 1 outputs"},
    {"%0 = buffer dtype=f32 shape=[2] serial=1 : f32[2]", TK_FORMAT_ERROR,
     "op buffer has no text form"},
    {"%0 = custom %a0 call=opaque n_args=0 serial=1 : f32[2]", TK_FORMAT_ERROR,
     "op custom has no text form"},
    {"%0 = iota dtype=i32 shape=[9223372036854775807,2] axis=0 start=0 step=1 : i32[2]",
     TK_OVERFLOW, "do not fit 63 bits"},
    {"%0 = iota dtype=i32 shape=[-1] axis=0 start=0 step=1 : i32[2]", TK_SHAPE_ERROR, "negative"},
    {"%0 = iota dtype=i32 shape=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] axis=0 start=0 step=1 : i32[2]",
     TK_SHAPE_ERROR, "17 axes given"},
    {"%0 = iota dtype=i32 "
     "shape=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] axis=0 start=0 step=1 : i32[2]",
     TK_FORMAT_ERROR, "a list of more than 64 entries"},
    {"%0 = barrier %a0 serial=-1 : f32[2,3]", TK_FORMAT_ERROR, "serial"},
    {"return i8(128)", TK_FORMAT_ERROR, "does not fit the constant's dtype"},
    {"return u8(-1)", TK_FORMAT_ERROR, "expected an integer"},
    {"return bool(2)", TK_FORMAT_ERROR, "expected true or false"},
    {"return f32(0x3ff0000000000001)", TK_FORMAT_ERROR, "does not fit the constant's dtype"},
    {"return f32(0x12345678901234567)", TK_FORMAT_ERROR, "the bits are more than 64"},
    {"return f32(x)", TK_FORMAT_ERROR, "expected a number"},
    {"return f32(1.0", TK_FORMAT_ERROR, "expected ')'"},
    {"return c64(1.0)", TK_FORMAT_ERROR, "expected ','"},
    {"return weak_f16(1.0)", TK_FORMAT_ERROR, "does not fit the constant's dtype"},
    {"%0 = abs@4294967296 %a0 : f32[2,3]", TK_FORMAT_ERROR, "a number of 32 bits"},
    {"%0 = sort_axis %a0 axis=-1 : f32[2,3]", TK_AXIS_ERROR, "axis -1"},
    {"%0 = cross_entropy_fused %a0, i32(1) : (f32[], f32[])", TK_SHAPE_ERROR, "cross_entropy"},
    {"%0 = reduce_sum %a0 axes=[0] : f32[1,3]\n%1 = reduce_sum %a0 axes=[1] : f32[2,1]\n"
     "%2 = product %0, %1 : f32[1,1]",
     TK_SHAPE_ERROR, "line 5, column 6: matmul"},
};

static void broken_text_is_refused_with_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        workspace w;
        open_workspace(&w);
        char text[1024];
        snprintf(text, sizeof text, "tiki graph 1\n%%a0 = input : f32[2,3]\n%s\n",
                 refusals[i].body);
        tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2, 3));
        tk_node_vec outputs = {0};
        tk_status status = tk_graph_text_parse(&w.b, text, 1, &x, &outputs);
        bool tells = status == TK_OK || strstr(tk_error_message(), refusals[i].message);
        if (status != refusals[i].status || !tells)
            print_error("%s\n-> %s: %s\n", refusals[i].body, tk_status_name(status),
                        tk_error_message());
        assert_int_equal(status, refusals[i].status);
        assert_true(tells);
        assert_int_equal(outputs.count, 0);
        tk_vec_deinit(&outputs);
        close_workspace(&w);
    }
}

static void headers_and_inputs_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "line 1, column 1: expected tiki, found the end of the line"},
        {"tiki graph 2\nreturn\n", "version 2 of the format, expected 1"},
        {"tiki kernel 1\nreturn\n", "expected graph"},
        {"tiki graph 1 return", "expected the end of the line"},
        {"tiki graph 1\nreturn\n", "0 inputs are declared, but 1 are given"},
        {"tiki graph 1\n%a0 = input : i32[2]\nreturn\n", "written as i32[2], but it is f32(2,)"},
        {"tiki graph 1\n%a0 = input : f32[2]\n%a0 = input : f32[2]\nreturn\n", "line 3"},
        {"tiki graph 1\n%b = input", "expected a number, or a and a number"},
        {"tiki graph 1\n\xff\xfe", "expected return, found \"??\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        workspace w;
        open_workspace(&w);
        tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2));
        tk_node_vec outputs = {0};
        assert_int_equal(tk_graph_text_parse(&w.b, rows[i].text, 1, &x, &outputs), TK_FORMAT_ERROR);
        if (!strstr(tk_error_message(), rows[i].message)) print_error("%s\n", tk_error_message());
        assert_non_null(strstr(tk_error_message(), rows[i].message));
        close_workspace(&w);
    }
}

/* Without its last line, or the end of that, a text is none. */
static void truncated_text_is_refused(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node_vec pool = {0}, inputs = {0}, outputs = {0};
    grow_random_graph(&w.b, 7, 30, &pool);
    char *text = print(pool.count, pool.items);
    assert_int_equal(tk_graph_text_inputs(pool.count, pool.items, &inputs), TK_OK);
    char *last = strstr(text, "\nreturn");
    for (char *end = last + 7; end >= text; end--) {
        *end = 0;
        tk_status status = tk_graph_text_parse(&w.b, text, inputs.count, inputs.items, &outputs);
        assert_int_equal(status == TK_OK, end == last + 7);
    }
    tk_free(text);
    tk_vec_deinit(&pool);
    tk_vec_deinit(&inputs);
    tk_vec_deinit(&outputs);
    close_workspace(&w);
}

static void errors_do_not_print(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2));
    tk_node *outputs[] = {x, tkb_reshape(&w.b, x, TK_SHAPE(3))};
    tk_strbuf text = {0};
    assert_int_equal(tk_graph_text_print(2, outputs, &text), TK_SHAPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "reshape"));
    tk_strbuf_deinit(&text);
    close_workspace(&w);
}

static void serials_of_text_are_not_given_out_again(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2));
    tk_node_vec outputs = {0};
    const char *text =
        "tiki graph 1\n%a0 = input : f32[2]\n%0 = barrier %a0 serial=1000 : f32[2]\nreturn %0\n";
    assert_parsed(tk_graph_text_parse(&w.b, text, 1, &x, &outputs), text);
    assert_true(tk_graph_serial(&w.graph) > 1000);
    tk_vec_deinit(&outputs);
    close_workspace(&w);
}

/* ---- memory and broken nodes ---- */

static tk_status print_and_parse(workspace *w, const tk_node_vec *pool) {
    tk_strbuf text = {0};
    tk_node_vec inputs = {0}, outputs = {0};
    tk_status status = tk_graph_text_print(pool->count, pool->items, &text);
    if (status == TK_OK) status = tk_graph_text_inputs(pool->count, pool->items, &inputs);
    if (status == TK_OK)
        status = tk_graph_text_parse(&w->b, text.text, inputs.count, inputs.items, &outputs);
    tk_strbuf_deinit(&text);
    tk_vec_deinit(&inputs);
    tk_vec_deinit(&outputs);
    return status;
}

static void out_of_memory_is_reported(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node_vec pool = {0};
    grow_random_graph(&w.b, 3, 20, &pool);
    tk_status status = TK_OUT_OF_MEMORY;
    int64_t n = 1;
    for (; status != TK_OK; n++) {
        tk_alloc_fail_after(n);
        status = print_and_parse(&w, &pool);
        tk_alloc_fail_after(0);
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
    }
    assert_true(n > 10);
    tk_vec_deinit(&pool);
    close_workspace(&w);
}

static void broken_nodes_are_found(void **state) {
    (void)state;
    workspace w;
    open_workspace(&w);
    tk_node *x = new_placeholder(&w.b, TK_FLOAT32, TK_SHAPE(2, 3));
    tk_node *y = tkb_sum(&w.b, tkb_sin(&w.b, x), TK_AXES(0), true);
    assert_int_equal(tk_graph_verify(1, &y), TK_OK);
    y->dtype = TK_FLOAT16;
    assert_int_equal(tk_graph_verify(1, &y), TK_INTERNAL);
    assert_non_null(strstr(tk_error_message(), "reduce_sum"));
    y->dtype = TK_FLOAT32;
    y->size++;
    assert_int_equal(tk_graph_verify(1, &y), TK_INTERNAL);
    y->size--;
    ((int64_t *)(uintptr_t)y->shape)[1]--;
    assert_int_equal(tk_graph_verify(1, &y), TK_INTERNAL);
    ((int64_t *)(uintptr_t)y->shape)[1]++;
    ((int64_t *)(uintptr_t)x->shape)[1]++;
    assert_int_equal(tk_graph_verify(1, &y), TK_INTERNAL);
    ((int64_t *)(uintptr_t)x->shape)[1]--;
    assert_int_equal(tk_graph_verify(1, &y), TK_OK);
    close_workspace(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_has_a_case),
        cmocka_unit_test(every_op_round_trips),
        cmocka_unit_test(random_graphs_round_trip),
        cmocka_unit_test(deep_graphs_round_trip),
        cmocka_unit_test(text_is_readable),
        cmocka_unit_test(constants_read_back),
        cmocka_unit_test(nans_keep_their_bits),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(transforms_print_as_values),
        cmocka_unit_test(names_may_leave_gaps_and_comments_are_skipped),
        cmocka_unit_test(broken_text_is_refused_with_its_place),
        cmocka_unit_test(headers_and_inputs_are_checked),
        cmocka_unit_test(truncated_text_is_refused),
        cmocka_unit_test(errors_do_not_print),
        cmocka_unit_test(serials_of_text_are_not_given_out_again),
        cmocka_unit_test(out_of_memory_is_reported),
        cmocka_unit_test(broken_nodes_are_found),
    };
    return cmocka_run_group_tests_name("graph text", tests, NULL, NULL);
}
