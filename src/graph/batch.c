/* The walk of vmap, and the rules that need to see it.
 *
 * Three passes over the nodes between the placeholders and the outputs, in an order that has
 * operands first. The first finds which nodes change at all and which get a batch axis: a node has
 * one if an operand has one. The second, backwards, finds which rewritten nodes somebody needs: a
 * custom call with a batching rule of its own replaces the results of the plain call, whose ops may
 * have none. The third applies the rules. Nodes that do not depend on a placeholder stay what they
 * are, so work that is the same for every element is done once.
 *
 * The batch axis is always axis 0: moving it to where a rule would like it is a view, and one
 * position keeps forty rules short. Rejected: an axis of its own for every node (each rule would
 * have to agree on one among its operands first), and a batched trace while the function runs (a
 * second mechanism beside the graph). */
#include "graph/batch.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/batch_rule.h"
#include "graph/custom.h"
#include "graph/launch.h"
#include "graph/place.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "graph/walk.h"

typedef struct entry {
    size_t first; /* of the node's outputs among the rewritten ones */
    bool changed;
    bool batched;
    bool needed;
    bool given; /* a placeholder of the transform */
} entry;

typedef struct tk_batch_walk {
    tk_builder *b;
    int64_t size;
    tk_node_vec order;
    tk_node_map map;
    entry *entries; /* by position in order */
    tk_node **rewritten;
    tk_node **inputs; /* of the node at hand */
    bool *batched;
    tk_node **operands;
} tk_batch_walk;

static entry *entry_of(const tk_batch_walk *walk, const tk_node *node) {
    uint32_t position = tk_node_map_get(&walk->map, node);
    return position == TK_NODE_ABSENT ? NULL : &walk->entries[position];
}

/* ---- the first two passes ---- */

static bool any_batched(const tk_batch_walk *walk, const tk_node *node, size_t n_inputs) {
    for (size_t i = 0; i < n_inputs; i++) {
        const entry *input = entry_of(walk, node->inputs[i]);
        if (input && input->batched) return true;
    }
    return false;
}

/* Operands whose rewritten form the node needs. */
static size_t operands_needed(const tk_batch_walk *walk, const tk_node *node) {
    if (node->op != TK_OP_custom) return node->n_inputs;
    const tk_attrs_custom *attrs = tk_node_attrs(node);
    const tk_custom_rules *call = (const tk_custom_rules *)(const void *)attrs->call;
    bool replaced = call && call->batch && any_batched(walk, node, (size_t)attrs->n_args);
    return replaced ? (size_t)attrs->n_args : node->n_inputs;
}

static void find_changed(tk_batch_walk *walk) {
    for (size_t i = 0; i < walk->order.count; i++) {
        const tk_node *node = walk->order.items[i];
        entry *self = &walk->entries[i];
        if (self->given) continue;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            const entry *input = entry_of(walk, node->inputs[k]);
            if (!input) continue;
            self->changed |= input->changed;
            self->batched |= input->batched;
        }
    }
}

static void find_needed(tk_batch_walk *walk, size_t n_outputs, tk_node *const *outputs) {
    for (size_t i = 0; i < n_outputs; i++) {
        entry *root = entry_of(walk, outputs[i]);
        if (root) root->needed = true;
    }
    for (size_t i = walk->order.count; i-- > 0;) {
        const tk_node *node = walk->order.items[i];
        if (!walk->entries[i].needed || !walk->entries[i].changed) continue;
        size_t count = operands_needed(walk, node);
        for (size_t k = 0; k < count; k++) {
            entry *input = entry_of(walk, node->inputs[k]);
            if (input) input->needed = true;
        }
    }
}

/* ---- the third pass ---- */

static void take_inputs(tk_batch_walk *walk, const tk_node *node) {
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        const entry *input = entry_of(walk, node->inputs[i]);
        bool rewritten = input && input->changed && input->needed;
        walk->inputs[i] = rewritten ? walk->rewritten[input->first] : node->inputs[i];
        walk->batched[i] = rewritten && input->batched;
    }
}

static tk_node *first_error(const tk_batch_walk *walk, const tk_node *node) {
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (tk_node_is_error(walk->inputs[i])) return walk->inputs[i];
    return NULL;
}

static tk_type output_type(const tk_node *node, uint32_t index) {
    return node->outputs ? node->outputs[index] : tk_node_type(node);
}

static tk_status check_rank(const tk_node *node) {
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        int rank = output_type(node, i).rank;
        if (rank + 1 > TK_MAX_RANK)
            return tk_fail(
                TK_SHAPE_ERROR,
                "vmap: %s: the result has %d axes and would have one more for the batch, at "
                "most %d are supported",
                tk_op_name((tk_op)node->op), rank, TK_MAX_RANK);
    }
    return TK_OK;
}

static bool is_batch_of(const tk_node *output, tk_type type, int64_t size) {
    return output->dtype == type.dtype && output->rank == type.rank + 1 &&
           output->shape[0] == size &&
           (type.rank == 0 ||
            !memcmp(output->shape + 1, type.shape, (size_t)type.rank * sizeof *type.shape));
}

static tk_status check_outputs(const tk_batch *batch) {
    const tk_node *node = batch->node;
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        const tk_node *output = batch->outputs[i];
        tk_type type = output_type(node, i);
        if (output && tk_node_is_error(output)) {
            const tk_attrs_error *error = tk_node_attrs(output);
            (void)tk_fail_again((tk_status)error->code, error->message);
            return tk_fail_within((tk_status)error->code, "vmap");
        }
        if (output && is_batch_of(output, type, batch->size)) continue;
        char text[160];
        return tk_fail(
            TK_SHAPE_ERROR,
            "vmap: the batching rule of %s gave %s as output %u, expected a batch of %lld "
            "times %s%s",
            tk_op_name((tk_op)node->op), output ? tk_text_node(output) : "nothing", i,
            (long long)batch->size, tk_dtype_text(type.dtype),
            tk_text_shape(text, sizeof text, type.rank, type.shape));
    }
    return TK_OK;
}

static tk_status apply_rule(tk_batch_walk *walk, const tk_node *node, tk_node **outputs) {
    TK_TRY(check_rank(node));
    tk_batch batch = {.b = walk->b,
                      .node = node,
                      .size = walk->size,
                      .inputs = walk->inputs,
                      .batched = walk->batched,
                      .outputs = outputs,
                      .walk = walk};
    tk_node_op(node)->batch(&batch);
    if (batch.status != TK_OK) return batch.status;
    return check_outputs(&batch);
}

/* The same op on other operands without a batch axis. */
static void apply_again(tk_batch_walk *walk, const tk_node *node, tk_node **outputs) {
    if (node->op == TK_OP_placeholder) {
        outputs[0] = walk->inputs[0];
        return;
    }
    tk_node *again = tkb_node(walk->b, (tk_op)node->op, node->n_inputs, walk->inputs, node->attrs);
    for (uint32_t i = 0; i < node->n_outputs; i++) outputs[i] = tkb_output(walk->b, again, (int)i);
}

static tk_status rewrite(tk_batch_walk *walk, size_t position) {
    const tk_node *node = walk->order.items[position];
    const entry *self = &walk->entries[position];
    if (self->given || !self->changed || !self->needed) return TK_OK;
    tk_node **outputs = &walk->rewritten[self->first];
    if (node->op == TK_OP_output) {
        const tk_attrs_output *attrs = tk_node_attrs(node);
        outputs[0] = walk->rewritten[entry_of(walk, node->inputs[0])->first + (size_t)attrs->index];
        return TK_OK;
    }
    take_inputs(walk, node);
    tk_node *error = first_error(walk, node);
    if (error) {
        for (uint32_t i = 0; i < node->n_outputs; i++) outputs[i] = error;
        return TK_OK;
    }
    uint32_t stream = walk->b->stream;
    walk->b->stream = node->stream;
    tk_status status = TK_OK;
    if (self->batched)
        status = apply_rule(walk, node, outputs);
    else
        apply_again(walk, node, outputs);
    walk->b->stream = stream;
    return status;
}

/* ---- the walk ---- */

static bool under_transform(const tk_node *node, void *arg) {
    (void)arg;
    return node->trace != 0;
}

static tk_status make_room(tk_batch_walk *walk) {
    size_t n_outputs = 0, n_inputs = 1;
    walk->entries = tk_calloc(walk->order.count, sizeof *walk->entries);
    if (!walk->entries) return tk_fail(TK_OUT_OF_MEMORY, "no memory for vmap");
    for (size_t i = 0; i < walk->order.count; i++) {
        const tk_node *node = walk->order.items[i];
        walk->entries[i].first = n_outputs;
        n_outputs += node->n_outputs;
        if (node->n_inputs > n_inputs) n_inputs = node->n_inputs;
    }
    walk->rewritten = tk_calloc(n_outputs, sizeof *walk->rewritten);
    walk->inputs = tk_calloc(n_inputs, sizeof *walk->inputs);
    walk->operands = tk_calloc(n_inputs, sizeof *walk->operands);
    walk->batched = tk_calloc(n_inputs, sizeof *walk->batched);
    if (walk->rewritten && walk->inputs && walk->operands && walk->batched) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for vmap");
}

static void walk_deinit(tk_batch_walk *walk) {
    tk_vec_deinit(&walk->order);
    tk_node_map_deinit(&walk->map);
    tk_free(walk->entries);
    tk_free(walk->rewritten);
    tk_free(walk->inputs);
    tk_free(walk->operands);
    tk_free(walk->batched);
}

static void give(tk_batch_walk *walk, size_t n_wrt, tk_node *const *wrt, tk_node *const *inputs,
                 const bool *batched) {
    for (size_t i = 0; i < n_wrt; i++) {
        entry *placeholder = entry_of(walk, wrt[i]);
        if (!placeholder) continue;
        placeholder->given = placeholder->changed = true;
        placeholder->batched = batched[i];
        walk->rewritten[placeholder->first] = inputs[i];
    }
}

static tk_status walk_run(tk_batch_walk *walk, size_t n_outputs, tk_node *const *outputs,
                          tk_node **out_outputs, bool *out_batched) {
    find_changed(walk);
    find_needed(walk, n_outputs, outputs);
    for (size_t i = 0; i < walk->order.count; i++) TK_TRY(rewrite(walk, i));
    for (size_t i = 0; i < n_outputs; i++) {
        const entry *root = entry_of(walk, outputs[i]);
        bool changed = root && root->changed;
        out_outputs[i] = changed ? walk->rewritten[root->first] : outputs[i];
        out_batched[i] = changed && root->batched;
    }
    return TK_OK;
}

/* `enter` says which nodes may depend on the placeholders. */
static tk_status run(tk_builder *b, int64_t size, size_t n_wrt, tk_node *const *wrt,
                     tk_node *const *inputs, const bool *batched, size_t n_outputs,
                     tk_node *const *outputs, bool (*enter)(const tk_node *node, void *arg),
                     tk_node **out_outputs, bool *out_batched) {
    tk_batch_walk walk = {.b = b, .size = size};
    tk_status status = tk_walk_order(n_outputs, outputs, enter, NULL, &walk.order, &walk.map);
    if (status == TK_OK) status = make_room(&walk);
    if (status == TK_OK) {
        give(&walk, n_wrt, wrt, inputs, batched);
        status = walk_run(&walk, n_outputs, outputs, out_outputs, out_batched);
    }
    walk_deinit(&walk);
    return status;
}

tk_status tk_batch_run(tk_builder *b, int64_t size, size_t n_wrt, tk_node *const *wrt,
                       tk_node *const *inputs, const bool *batched, size_t n_outputs,
                       tk_node *const *outputs, tk_node **out_outputs, bool *out_batched) {
    tk_status status = run(b, size, n_wrt, wrt, inputs, batched, n_outputs, outputs,
                           under_transform, out_outputs, out_batched);
    assert(status != TK_OK || tk_graph_verify(n_outputs, out_outputs) != TK_INTERNAL);
    return status;
}

/* ---- what rules ask ---- */

tk_shape tk_batch_shape(const tk_batch *batch, int64_t rank, const int64_t *shape) {
    tk_shape result = {.count = rank + 1, .items = {batch->size}};
    for (int64_t i = 0; i < rank && i + 1 < TK_AXES_MAX; i++) result.items[i + 1] = shape[i];
    return result;
}

tk_list tk_batch_list(int64_t first, tk_list list, int64_t offset, int64_t *memory) {
    assert(list.count <= TK_MAX_RANK);
    memory[0] = first;
    for (int64_t i = 0; i < list.count; i++) memory[i + 1] = list.items[i] + offset;
    return (tk_list){memory, list.count + 1};
}

tk_node *tk_batch_fail_rank(tk_batch *batch, int64_t rank) {
    tk_status status =
        tk_fail(TK_SHAPE_ERROR, "%s needs an array of %lld axes, at most %d are supported",
                tk_op_name((tk_op)batch->node->op), (long long)rank, TK_MAX_RANK);
    return tkb_fail(batch->b, status);
}

tk_node *tk_batch_repeat(tk_batch *batch, tk_node *node) {
    if (node->rank >= TK_MAX_RANK) return tk_batch_fail_rank(batch, node->rank + 1);
    return tkb_broadcast_to(batch->b, node, tk_batch_shape(batch, node->rank, node->shape));
}

tk_node *tk_batch_operand(tk_batch *batch, size_t index) {
    tk_node *operand = batch->inputs[index];
    return batch->batched[index] ? operand : tk_batch_repeat(batch, operand);
}

tk_node **tk_batch_operands(tk_batch *batch) {
    for (uint32_t i = 0; i < batch->node->n_inputs; i++)
        batch->walk->operands[i] = tk_batch_operand(batch, i);
    return batch->walk->operands;
}

void tk_batch_apply(tk_batch *batch, size_t n_inputs, tk_node *const *inputs, const void *attrs) {
    tk_node *result = tkb_node(batch->b, (tk_op)batch->node->op, n_inputs, inputs, attrs);
    for (uint32_t i = 0; i < batch->node->n_outputs; i++)
        batch->outputs[i] =
            tk_node_is_error(result) ? result : tkb_output(batch->b, result, (int)i);
}

/* ---- rules that need the walk ---- */

/* The only leaf with an operand is a placeholder that carries its value: that of a grad or jvp
 * inside the batched function. By now it is its value. */
void tk_batch_leaf(tk_batch *batch) { batch->outputs[0] = tk_batch_operand(batch, 0); }

/* The walk reads outputs from their tuple's entry. */
void tk_batch_output(tk_batch *batch) {
    batch->status = tk_fail(TK_INTERNAL, "vmap: an output without its tuple");
}

/* Without a batching rule of its own, or where only values that the function captured are batched,
 * the call is its results. */
void tk_batch_custom(tk_batch *batch) {
    const tk_attrs_custom *attrs = tk_node_attrs(batch->node);
    tk_custom_rules *call = (tk_custom_rules *)(void *)attrs->call;
    if (operands_needed(batch->walk, batch->node) == (size_t)attrs->n_args) {
        batch->status = call->batch(call, batch);
        return;
    }
    for (uint32_t i = 0; i < batch->node->n_outputs; i++)
        batch->outputs[i] = tk_batch_operand(batch, (size_t)attrs->n_args + i);
}

void tk_batch_launch(tk_batch *batch) {
    const tk_attrs_launch *attrs = tk_node_attrs(batch->node);
    batch->status =
        tk_fail(TK_UNSUPPORTED,
                "kernel %s has no batching rule: call it through a function with a vmap "
                "of its own",
                tk_launch_record_of(attrs)->name);
}

static tk_node *stand_in(tk_builder *b, const tk_node *like) {
    tk_attrs_placeholder attrs = {.dtype = like->dtype,
                                  .shape = {like->shape, like->rank},
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    uint32_t stream = tk_place_enter(b, like);
    tk_node *node = tkb_node(b, TK_OP_placeholder, 0, NULL, &attrs);
    b->stream = stream;
    return node;
}

/* Takes the op apart on fresh placeholders, so that nothing but them and constants can be reached,
 * and batches the pieces. */
void tk_batch_decompose(tk_batch *batch) {
    const tk_node *node = batch->node;
    tk_node **parts = batch->walk->operands;
    for (uint32_t i = 0; i < node->n_inputs; i++) parts[i] = stand_in(batch->b, node->inputs[i]);
    bool *batched = tk_calloc(node->n_outputs, sizeof *batched);
    if (!batched) {
        batch->status = tk_fail(TK_OUT_OF_MEMORY, "no memory for vmap");
        return;
    }
    batch->status = tkb_decompose(batch->b, node, parts, batch->outputs);
    if (batch->status == TK_OK)
        batch->status =
            run(batch->b, batch->size, node->n_inputs, parts, batch->inputs, batch->batched,
                node->n_outputs, batch->outputs, NULL, batch->outputs, batched);
    for (uint32_t i = 0; batch->status == TK_OK && i < node->n_outputs; i++)
        if (!batched[i]) batch->outputs[i] = tk_batch_repeat(batch, batch->outputs[i]);
    tk_free(batched);
}
