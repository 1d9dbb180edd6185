/* Devices of a context: opened by name when they are first asked for, and never closed before the
 * context. */
#include "tiki/devices.h"

#include <stdlib.h>
#include <string.h>

#include "array/call.h"
#include "base/error.h"

typedef struct kind {
    const char *word;
    const tk_driver *driver;
    const tk_executor *executor;
} kind;

static const kind kinds[] = {{"emulator", &tk_driver_emulator, &tk_emulator_executor},
                             {"gpu", &tk_driver_cuda, &tk_cuda_executor},
                             {"cuda", &tk_driver_cuda, &tk_cuda_executor}};

/* "gpu" or "gpu:1". */
static tk_status parse_name(const char *name, const kind **out_kind, int *out_index) {
    size_t length = strcspn(name, ":");
    char *end = NULL;
    long index = name[length] ? strtol(name + length + 1, &end, 10) : 0;
    bool numbered = !name[length] || (name[length + 1] >= '0' && name[length + 1] <= '9' && !*end);
    for (size_t i = 0; numbered && index <= 1000 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].word) != length || memcmp(kinds[i].word, name, length)) continue;
        *out_kind = &kinds[i];
        *out_index = (int)index;
        return TK_OK;
    }
    return tk_fail(TK_NOT_FOUND,
                   "\"%.40s\" is no device, expected cpu, emulator, gpu or gpu:NUMBER", name);
}

/* What the graph asks before it takes a node. */
static tk_status check_op(const tk_place *place, tk_op op, size_t n_inputs, tk_node *const *inputs,
                          const void *attrs) {
    const tk_site *site = place->self;
    const tk_op_info *info = tk_op_of(op);
    if (info->lower == TK_LOWER_VIEW && op != TK_OP_contiguous) op = TK_OP_reshape_to;
    if (!site->executor->bodies[op])
        return tk_fail(TK_UNSUPPORTED, "%s has no kernel on %s", tk_op_title(op), place->name);
    return site->executor->check ? site->executor->check(op, n_inputs, inputs, attrs) : TK_OK;
}

/* Needs the lock. */
static tk_status open_site(tk_context *context, const kind *kind, int index, uint32_t *out_stream) {
    uint32_t number = context->graph.n_places ? context->graph.n_places : 1, given;
    if (number == TK_MAX_PLACES)
        return tk_fail(TK_UNSUPPORTED, "a context has at most %d devices", TK_MAX_PLACES);
    tk_site *site = &context->sites[number];
    tk_status status = tk_device_open(kind->driver, index, NULL, &site->device);
    if (status != TK_OK) return status;
    site->executor = kind->executor;
    tk_place place = {.name = site->device->name, .self = site, .check = check_op};
    status = tk_context_open_stream(context, number, &place.stream);
    if (status == TK_OK) status = tk_place_add(&context->graph, &place, &given);
    *out_stream = place.stream;
    if (status == TK_OK) return TK_OK;
    tk_device_close(site->device);
    *site = (tk_site){0};
    return status;
}

static tk_status find_or_open(tk_context *context, const kind *kind, int index,
                              uint32_t *out_stream) {
    for (uint32_t i = 1; i < context->graph.n_places; i++) {
        const tk_device *device = context->sites[i].device;
        if (device->driver != kind->driver || device->index != index) continue;
        *out_stream = context->graph.places[i].stream;
        return TK_OK;
    }
    return open_site(context, kind, index, out_stream);
}

tk_status tk_device_stream(tk_context *context, const char *name, tk_stream_id *out_stream) {
    TK_NEED(context, name, out_stream);
    TK_TRY(tk_context_check(context));
    *out_stream = TK_DEFAULT_STREAM;
    if (!strcmp(name, "cpu") || !strcmp(name, "cpu:0")) return TK_OK;
    const kind *kind = NULL;
    int index = 0;
    TK_TRY(parse_name(name, &kind, &index));
    tk_graph_lock(&context->graph);
    tk_status status = find_or_open(context, kind, index, out_stream);
    tk_graph_unlock(&context->graph);
    return status;
}

tk_device *tk_stream_device_of(tk_context *context, tk_stream_id stream) {
    if (!context || tk_context_check(context) != TK_OK) return NULL;
    tk_graph_lock(&context->graph);
    bool known = stream < context->streams.count;
    tk_device *device = known ? tk_site_of_stream(context, stream)->device : NULL;
    tk_graph_unlock(&context->graph);
    return device;
}

/* ---- arrays ---- */

/* Memory that the processor cannot read is made row-major where it is. */
tk_node *tkb_to_stream(tk_builder *b, tk_node *node, uint32_t stream) {
    if (tk_node_is_error(node)) return node;
    if (node->flags & TK_NODE_WEAK) node = tkb_astype(b, node, (tk_dtype)node->dtype);
    if (tk_place_of(node) == tk_place_of_stream(b->graph, stream)) return node;
    if (!tk_site_of(node)->device->driver->host_memory) node = tkb_contiguous(b, node);
    uint32_t before = b->stream;
    b->stream = stream;
    node = tkb_node1(b, TK_OP_transfer, node, NULL);
    b->stream = before;
    return node;
}

tk_array tk_to_stream(tk_array array, tk_stream_id stream) {
    tk_call call;
    tk_call_open(&call, "to_stream", NULL);
    tk_call_operand(&call, array);
    if (!tk_call_begin(&call)) return tk_call_refuse(&call);
    tk_node *node = call.nodes[0];
    if (stream < call.context->streams.count)
        node = tkb_to_stream(&call.builder, node, stream);
    else
        node =
            tkb_fail(&call.builder, tk_fail(TK_INVALID_ARGUMENT,
                                            "to_stream: %u is no stream of the context", stream));
    return tk_call_end(&call, node);
}

tk_stream_id tk_array_stream(tk_array array) {
    return array.node ? array.node->stream : TK_DEFAULT_STREAM;
}

tk_device *tk_array_device(tk_array array) {
    return array.node ? tk_stream_device_of(tk_array_context(array), array.node->stream) : NULL;
}
