/* Prints graphs; see print.h.
 *
 * All nodes are walked first. Then each is replaced by what it prints as, and from the outputs
 * backwards it is found which are printed at all: the arguments of a custom call are operands of
 * its node, but not of the text, which has the results only. Constants are written where they are
 * used, and have no line. */
#include "graph/print.h"

#include <inttypes.h>

#include "base/error.h"
#include "graph/text.h"
#include "graph/walk.h"

typedef struct entry {
    uint32_t shown; /* position of the node that this one prints as */
    bool is_input;
    bool needed;
    uint32_t name; /* among the inputs or among the lines */
} entry;

typedef struct printer {
    tk_node_vec order;
    tk_node_map map;
    entry *entries;
    tk_strbuf *out;
} printer;

/* ---- what is printed ---- */

static bool lost_operands(const tk_node *node) {
    return node->n_inputs == 0 && tk_node_op(node)->lower != TK_LOWER_LEAF;
}

static bool has_memory(const tk_node *node) {
    if (node->op == TK_OP_const) return false;
    return node->storage || node->op == TK_OP_buffer || lost_operands(node);
}

/* An output of a tuple that is evaluated is an array of its own; the tuple is none. */
static bool is_input(const tk_node *node) {
    return has_memory(node) || (node->op == TK_OP_output && has_memory(node->inputs[0]));
}

static uint32_t position_of(const printer *p, const tk_node *node) {
    return tk_node_map_get(&p->map, node);
}

static const tk_node *custom_result(const tk_node *call, int64_t index) {
    const tk_attrs_custom *attrs = tk_node_attrs(call);
    return call->inputs[attrs->n_args + index];
}

/* The operand that the node is another name of; NULL for most. */
static const tk_node *alias_of(const tk_node *node) {
    if (node->op == TK_OP_placeholder) return node->inputs[0];
    if (node->op == TK_OP_custom) return custom_result(node, 0);
    if (node->op != TK_OP_output || node->inputs[0]->op != TK_OP_custom) return NULL;
    return custom_result(node->inputs[0], ((const tk_attrs_output *)tk_node_attrs(node))->index);
}

static void find_shown(printer *p) {
    for (size_t i = 0; i < p->order.count; i++) {
        const tk_node *node = p->order.items[i];
        p->entries[i].is_input = is_input(node);
        const tk_node *alias = p->entries[i].is_input ? NULL : alias_of(node);
        p->entries[i].shown = alias ? p->entries[position_of(p, alias)].shown : (uint32_t)i;
    }
}

static entry *shown_entry(const printer *p, const tk_node *node) {
    return &p->entries[p->entries[position_of(p, node)].shown];
}

static const tk_node *shown_node(const printer *p, const tk_node *node) {
    return p->order.items[p->entries[position_of(p, node)].shown];
}

static void find_needed(printer *p, size_t n_outputs, tk_node *const *outputs) {
    for (size_t i = 0; i < n_outputs; i++) shown_entry(p, outputs[i])->needed = true;
    for (size_t i = p->order.count; i-- > 0;) {
        const tk_node *node = p->order.items[i];
        if (!p->entries[i].needed || p->entries[i].is_input) continue;
        for (uint32_t k = 0; k < node->n_inputs; k++)
            shown_entry(p, node->inputs[k])->needed = true;
    }
}

static tk_status printer_init(printer *p, size_t n_outputs, tk_node *const *outputs,
                              tk_strbuf *out) {
    *p = (printer){.out = out};
    for (size_t i = 0; i < n_outputs; i++) {
        if (!tk_node_is_error(outputs[i])) continue;
        const tk_attrs_error *error = tk_node_attrs(outputs[i]);
        return tk_fail((tk_status)error->code, "%s", error->message);
    }
    TK_TRY(tk_walk_order(n_outputs, outputs, NULL, NULL, &p->order, &p->map));
    p->entries = tk_calloc(p->order.count, sizeof *p->entries);
    if (!p->entries) return tk_fail(TK_OUT_OF_MEMORY, "no memory to print a graph");
    find_shown(p);
    find_needed(p, n_outputs, outputs);
    return TK_OK;
}

static void printer_deinit(printer *p) {
    tk_vec_deinit(&p->order);
    tk_node_map_deinit(&p->map);
    tk_free(p->entries);
}

/* ---- lines ---- */

static void put_constant(tk_strbuf *out, const tk_attrs_constant *constant) {
    tk_dtype dtype = (tk_dtype)constant->dtype;
    tk_strbuf_printf(out, "%s%s(", constant->weak ? "weak_" : "", tk_dtype_text(dtype));
    tk_text_put_bits(out, constant->weak && tk_dtype_is_inexact(dtype) ? TK_FLOAT64 : dtype,
                     constant->real);
    if (tk_dtype_is_complex(dtype)) {
        tk_strbuf_putc(out, ',');
        tk_text_put_bits(out, constant->weak ? TK_FLOAT64 : dtype, constant->imag);
    }
    tk_strbuf_putc(out, ')');
}

static void put_operand(printer *p, const tk_node *operand, uint32_t stream) {
    const tk_node *node = shown_node(p, operand);
    const entry *self = shown_entry(p, operand);
    if (node->op == TK_OP_const && node->stream == stream)
        put_constant(p->out, tk_node_attrs(node));
    else
        tk_strbuf_printf(p->out, self->is_input ? "%%a%" PRIu32 : "%%%" PRIu32, self->name);
}

static void put_operands(printer *p, size_t count, tk_node *const *operands, uint32_t stream) {
    for (size_t i = 0; i < count; i++) {
        tk_strbuf_puts(p->out, i ? ", " : " ");
        put_operand(p, operands[i], stream);
    }
}

static void put_type(tk_strbuf *out, tk_type type) {
    tk_strbuf_puts(out, tk_dtype_text(type.dtype));
    tk_text_put_list(out, type.shape, type.rank);
}

static void put_types(tk_strbuf *out, const tk_node *node) {
    tk_strbuf_puts(out, " : ");
    if (!node->outputs) {
        put_type(out, tk_node_type(node));
    } else {
        for (uint32_t i = 0; i < node->n_outputs; i++) {
            tk_strbuf_puts(out, i ? ", " : "(");
            put_type(out, node->outputs[i]);
        }
        tk_strbuf_putc(out, ')');
    }
    tk_strbuf_putc(out, '\n');
}

static void put_line(printer *p, const tk_node *node, uint32_t name) {
    tk_strbuf_printf(p->out, "%%%" PRIu32 " = %s", name, tk_op_name((tk_op)node->op));
    if (node->stream) tk_strbuf_printf(p->out, "@%" PRIu32, node->stream);
    if (node->op == TK_OP_const) {
        tk_strbuf_putc(p->out, ' ');
        put_constant(p->out, tk_node_attrs(node));
    } else {
        put_operands(p, node->n_inputs, node->inputs, node->stream);
        tk_attrs_print(tk_node_op(node)->record, node->attrs, p->out);
    }
    put_types(p->out, node);
}

/* A constant that something on another stream uses needs a line. */
static void find_constant_lines(const printer *p, size_t n_outputs, tk_node *const *outputs,
                                bool *has_line) {
    for (size_t i = 0; i < p->order.count; i++) {
        const tk_node *node = p->order.items[i];
        if (!p->entries[i].needed || p->entries[i].is_input) continue;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            const tk_node *operand = shown_node(p, node->inputs[k]);
            if (operand->stream != node->stream) has_line[position_of(p, operand)] = true;
        }
    }
    for (size_t i = 0; i < n_outputs; i++) {
        const tk_node *output = shown_node(p, outputs[i]);
        if (output->stream) has_line[position_of(p, output)] = true;
    }
}

static void put_inputs(printer *p) {
    uint32_t count = 0;
    for (size_t i = 0; i < p->order.count; i++) {
        if (!p->entries[i].needed || !p->entries[i].is_input) continue;
        p->entries[i].name = count++;
        tk_strbuf_printf(p->out, "%%a%" PRIu32 " = input", p->entries[i].name);
        const tk_node *node = p->order.items[i];
        tk_strbuf_puts(p->out, " : ");
        put_type(p->out, tk_node_type(node));
        tk_strbuf_putc(p->out, '\n');
    }
}

static void put_lines(printer *p, const bool *has_line) {
    uint32_t count = 0;
    for (size_t i = 0; i < p->order.count; i++) {
        const tk_node *node = p->order.items[i];
        if (!p->entries[i].needed || p->entries[i].is_input) continue;
        if (node->op == TK_OP_const && !has_line[i]) continue;
        p->entries[i].name = count++;
        put_line(p, node, p->entries[i].name);
    }
}

tk_status tk_graph_text_print(size_t n_outputs, tk_node *const *outputs, tk_strbuf *out) {
    printer p;
    tk_status status = printer_init(&p, n_outputs, outputs, out);
    bool *has_line = tk_calloc(p.order.count, sizeof *has_line);
    if (status == TK_OK && !has_line)
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory to print a graph");
    if (status == TK_OK) {
        find_constant_lines(&p, n_outputs, outputs, has_line);
        tk_strbuf_puts(out, "tiki graph 1\n");
        put_inputs(&p);
        put_lines(&p, has_line);
        tk_strbuf_puts(out, "return");
        put_operands(&p, n_outputs, outputs, 0);
        tk_strbuf_putc(out, '\n');
        if (out->failed) status = tk_fail(TK_OUT_OF_MEMORY, "no memory to print a graph");
    }
    tk_free(has_line);
    printer_deinit(&p);
    return status;
}

tk_status tk_graph_text_inputs(size_t n_outputs, tk_node *const *outputs, tk_node_vec *inputs) {
    printer p;
    tk_status status = printer_init(&p, n_outputs, outputs, NULL);
    for (size_t i = 0; status == TK_OK && i < p.order.count; i++) {
        if (p.entries[i].needed && p.entries[i].is_input && !tk_vec_push(inputs, p.order.items[i]))
            status = tk_fail(TK_OUT_OF_MEMORY, "no memory to list the inputs of a graph");
    }
    printer_deinit(&p);
    return status;
}
