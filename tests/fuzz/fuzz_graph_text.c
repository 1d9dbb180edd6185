/* Graph text: whatever the bytes, the parser ends with a status; what it accepts passes the
 * verifier and prints to text that parses to the same nodes. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"

#define INPUTS 4

static void no_storage(tk_node *node) { node->storage = NULL; }

static tk_node *new_input(tk_builder *b, tk_dtype dtype, tk_shape shape) {
    tk_attrs_placeholder attrs = {.dtype = dtype,
                                  .shape = tk_axes_list(&shape),
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    return tkb_node(b, TK_OP_placeholder, 0, NULL, &attrs);
}

/* Not an assert: a fuzzer must find this in every build. */
static void require(bool condition) {
    if (!condition) abort();
}

static void check(tk_builder *b, const tk_node_vec *outputs) {
    tk_strbuf text = {0};
    tk_node_vec inputs = {0}, again = {0};
    require(tk_graph_verify(outputs->count, outputs->items) == TK_OK);
    require(tk_graph_text_print(outputs->count, outputs->items, &text) == TK_OK);
    require(tk_graph_text_inputs(outputs->count, outputs->items, &inputs) == TK_OK);
    require(tk_graph_text_parse(b, text.text, inputs.count, inputs.items, &again) == TK_OK);
    require(again.count == outputs->count);
    for (size_t i = 0; i < again.count; i++) require(again.items[i] == outputs->items[i]);
    tk_strbuf_deinit(&text);
    tk_vec_deinit(&inputs);
    tk_vec_deinit(&again);
}

/* The number of inputs that the text declares, as far as there are any. */
static size_t declared(const char *text) {
    size_t count = 0;
    for (const char *at = text; count < INPUTS && (at = strstr(at, "input")); at++) count++;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_graph graph;
    tk_builder b;
    char *text = malloc(size + 1);
    if (!text || tk_graph_init(&graph, no_storage) != TK_OK) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    tk_graph_lock(&graph);
    tk_builder_open(&b, &graph, 0);
    tk_node *inputs[INPUTS] = {
        new_input(&b, TK_FLOAT32, TK_SHAPE(2, 3)), new_input(&b, TK_INT32, TK_SHAPE(2)),
        new_input(&b, TK_FLOAT32, TK_SHAPE(1, 2, 3, 4)), new_input(&b, TK_UINT32, TK_SHAPE(2))};
    tk_node_vec outputs = {0};
    if (tk_graph_text_parse(&b, text, declared(text), inputs, &outputs) == TK_OK)
        check(&b, &outputs);
    tk_vec_deinit(&outputs);
    tk_builder_close(&b);
    require(graph.n_nodes == 1);
    tk_graph_unlock(&graph);
    tk_graph_deinit(&graph);
    free(text);
    return 0;
}
