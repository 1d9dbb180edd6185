/* See op_cases.h. */
#include "support/op_cases.h"

#include <string.h>

#include "support/samples.h"

#define MOST_CASES 1024

static struct {
    sample samples[MOST_CASES]; /* records stay where they are; operands are gone */
    op_case cases[MOST_CASES];
    size_t count;
} table;

/* Elementwise rows in one sample of each kind of dtype; others in float32, sums in int32 too. */
static bool is_wanted(tk_op op, int index, tk_dtype dtype) {
    const tk_op_info *info = tk_op_of(op);
    bool is_elementwise =
        op == TK_OP_stop_gradient || (info->lower == TK_LOWER_EWISE && op != TK_OP_astype);
    if (is_elementwise) return index == 0;
    if (info->accept == TK_ACCEPT_BOOL) return dtype == TK_BOOL;
    bool has_codes = op == TK_OP_fp8_decode || op == TK_OP_dequantize_groups;
    if (info->accept == TK_ACCEPT_INT && !has_codes) return dtype == TK_INT32;
    bool is_sum = info->lower == TK_LOWER_REDUCE || info->lower == TK_LOWER_SCAN;
    return dtype == TK_FLOAT32 || (is_sum && dtype == TK_INT32 && index == 0);
}

op_operand operand_like(tk_array array, tk_dtype free) {
    op_operand operand = {.dtype = tk_array_dtype(array), .shape = tk_array_shape(array)};
    int64_t largest = 0;
    if (!tk_dtype_is_integer(operand.dtype) || operand.dtype == free) return operand;
    if (operand.dtype != TK_UINT32) (void)tk_item_int(tk_max(array, TK_ALL_AXES, false), &largest);
    operand.limit = operand.dtype == TK_UINT32 ? INT64_MAX : largest + 1; /* uint32: a key */
    return operand;
}

static void add_case(tk_context *context, tk_op op, int index, tk_dtype dtype) {
    if (table.count == MOST_CASES) return;
    sample *s = &table.samples[table.count];
    if (!sample_make(context, op, index, dtype, s)) return;
    op_case c = {.op = op,
                 .n_inputs = (int)s->n_inputs,
                 .attrs = s->attrs,
                 .derived = s->is_derived,
                 .has_diagonal = s->has_diagonal};
    for (size_t i = 0; i < s->n_inputs; i++) c.inputs[i] = operand_like(s->inputs[i], dtype);
    table.cases[table.count++] = c;
}

static void add_row(tk_context *context, tk_op op) {
    static const tk_dtype dtypes[] = {TK_FLOAT32,   TK_INT32,    TK_BOOL,
                                      TK_COMPLEX64, TK_BFLOAT16, TK_UINT8};
    for (int index = 0; index < sample_count(op); index++)
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
            if (is_wanted(op, index, dtypes[i])) add_case(context, op, index, dtypes[i]);
}

static void fill(void) {
    tk_context *context;
    if (table.count || tk_context_create(NULL, &context) != TK_OK) return;
    tk_scope scope = tk_scope_open(context);
    for (int op = 0; op < TK_OP_COUNT; op++) add_row(context, (tk_op)op);
    tk_scope_close(scope);
    tk_context_release(context);
}

size_t op_case_count(void) {
    fill();
    return table.count;
}

const op_case *op_case_at(size_t index) {
    fill();
    return &table.cases[index];
}

bool op_has_case(tk_op op) { return sample_declared(op); }

tk_node *new_placeholder(tk_builder *b, tk_dtype dtype, tk_shape shape) {
    tk_attrs_placeholder attrs = {.dtype = dtype,
                                  .shape = tk_axes_list(&shape),
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    return tkb_node(b, TK_OP_placeholder, 0, NULL, &attrs);
}

tk_node *build_op_case(tk_builder *b, const op_case *c, tk_node **inputs) {
    tk_node *own[OP_CASE_INPUTS];
    if (!inputs) inputs = own;
    for (int i = 0; i < c->n_inputs; i++)
        inputs[i] = new_placeholder(b, c->inputs[i].dtype, c->inputs[i].shape);
    return tkb_node(b, c->op, (size_t)c->n_inputs, inputs, c->attrs);
}

/* SplitMix64. */
uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static bool has_type(const tk_node *node, const op_operand *operand) {
    return node->dtype == operand->dtype && node->rank == operand->shape.count &&
           (node->rank == 0 ||
            !memcmp(node->shape, operand->shape.items, node->rank * sizeof(int64_t)));
}

/* A random node of the type from the pool, from a random place on; else a placeholder. */
static tk_node *find_operand(tk_builder *b, uint64_t *state, const op_operand *operand,
                             tk_node_vec *pool) {
    size_t start = pool->count ? (size_t)(next_random(state) % pool->count) : 0;
    for (size_t i = 0; i < pool->count && next_random(state) % 16; i++) {
        tk_node *node = pool->items[(start + i) % pool->count];
        if (has_type(node, operand)) return node;
    }
    tk_node *made = new_placeholder(b, operand->dtype, operand->shape);
    (void)tk_vec_push(pool, made);
    return made;
}

void grow_random_graph(tk_builder *b, uint64_t seed, size_t n_cases, tk_node_vec *pool) {
    for (size_t i = 0; i < n_cases; i++) {
        const op_case *c = op_case_at((size_t)(next_random(&seed) % op_case_count()));
        tk_node *inputs[OP_CASE_INPUTS];
        for (int k = 0; k < c->n_inputs; k++)
            inputs[k] = find_operand(b, &seed, &c->inputs[k], pool);
        tk_node *node = tkb_node(b, c->op, (size_t)c->n_inputs, inputs, c->attrs);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            (void)tk_vec_push(pool, tkb_output(b, node, (int)k));
    }
}
