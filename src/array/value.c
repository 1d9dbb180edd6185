/* Arrays from memory and back, and questions that need no evaluation. */
#include <string.h>

#include "array/call.h"
#include "array/storage.h"
#include "base/error.h"
#include "base/half.h"
#include "tiki/devices.h"

/* ---- making arrays ---- */

tk_array tk_error_array(tk_context *context, tk_status status) {
    tk_call call;
    tk_call_open(&call, "error_array", context);
    if (context)
        call.status = status == TK_OK ? tk_fail(TK_INVALID_ARGUMENT, "TK_OK is no error")
                                      : tk_error_set(status, "%s", tk_error_message());
    return tk_call_refuse(&call);
}

static tk_array weak_scalar(tk_context *context, tk_kind kind, double real, double imag,
                            int64_t integer) {
    tk_call call;
    tk_call_open(&call, "scalar", context);
    if (!tk_call_begin(&call)) return tk_call_refuse(&call);
    return tk_call_end(&call, tkb_weak(&call.builder, kind, real, imag, integer));
}

tk_array tk_scalar(tk_context *context, double value) {
    return weak_scalar(context, TK_KIND_FLOAT, value, 0, 0);
}

tk_array tk_scalar_int(tk_context *context, int64_t value) {
    return weak_scalar(context, TK_KIND_SIGNED, 0, 0, value);
}

tk_array tk_scalar_bool(tk_context *context, bool value) {
    return weak_scalar(context, TK_KIND_BOOL, 0, 0, value);
}

tk_array tk_scalar_complex(tk_context *context, double real, double imag) {
    return weak_scalar(context, TK_KIND_COMPLEX, real, imag, 0);
}

/* Consumes the storage, which is that of the builder's stream. */
static tk_node *buffer_node(tk_builder *b, tk_type type, tk_storage *storage) {
    tk_attrs_typed attrs = {.dtype = type.dtype,
                            .shape = {type.shape, type.rank},
                            .serial = (int64_t)tk_graph_serial(b->graph)};
    tk_node *node; /* no kernel is needed, so no device is asked */
    tk_status status = tk_node_intern(b->graph, TK_OP_buffer, b->stream, 0, NULL, &attrs, &node);
    node = status == TK_OK ? tkb_hold(b, node) : tkb_fail(b, status);
    if (tk_node_is_error(node)) {
        tk_storage_free_locked(storage, b->graph);
        return node;
    }
    tk_node_unintern(node);
    node->storage = storage;
    return node;
}

/* Values that are copied anyway go to the current device. */
static tk_array finish_buffer(tk_context *context, tk_status status, tk_type type,
                              tk_storage *storage, bool copied) {
    tk_call call;
    tk_call_open(&call, "from_data", context);
    call.status = status;
    if (!tk_call_begin(&call)) {
        if (status == TK_OK) tk_storage_free(storage);
        return tk_call_refuse(&call);
    }
    uint32_t stream = call.builder.stream;
    if (tk_place_of_stream(call.builder.graph, stream)) call.builder.stream = TK_DEFAULT_STREAM;
    tk_node *node = buffer_node(&call.builder, type, storage);
    bool moves = copied && tk_place_of_stream(call.builder.graph, stream);
    return tk_call_end(&call, moves ? tkb_to_stream(&call.builder, node, stream) : node);
}

static tk_status check_type(const tk_context *context, tk_shape shape, tk_dtype dtype,
                            int64_t *out_size) {
    TK_NEED(context);
    TK_TRY(tk_context_check(context));
    if ((unsigned)dtype >= TK_DTYPE_COUNT)
        return tk_fail(TK_DTYPE_ERROR, "argument `dtype` is %d, which is no dtype", (int)dtype);
    if (shape.count < 0) return tk_fail(TK_SHAPE_ERROR, "a shape is needed, TK_ALL_AXES was given");
    return tk_shape_size(dtype, shape.count, shape.items, out_size);
}

tk_array tk_from_data(tk_context *context, const void *data, tk_shape shape, tk_dtype dtype) {
    tk_storage *storage = NULL;
    int64_t size = 0;
    tk_type type = {dtype, (int)shape.count, shape.items};
    tk_status status = check_type(context, shape, dtype, &size);
    if (status == TK_OK && size > 0 && !data) status = tk_fail_null("data");
    if (status == TK_OK)
        status = tk_storage_allocate(context->sites[0].device, NULL, type, &storage);
    if (status == TK_OK && size > 0)
        memcpy(storage->data, data, (size_t)size * tk_dtype_size(dtype));
    return finish_buffer(context, status, type, storage, true);
}

/* Whether the strided array lies within `bytes`. */
static tk_status check_extent(tk_shape shape, const int64_t *strides, tk_dtype dtype, int64_t size,
                              size_t bytes) {
    int64_t last = 0, span, end;
    bool overflow = false;
    for (int64_t i = 0; size > 0 && strides && i < shape.count; i++) {
        if (strides[i] < 0)
            return tk_fail(TK_INVALID_ARGUMENT,
                           "stride %lld of axis %lld is negative: wrap the memory forwards "
                           "and slice",
                           (long long)strides[i], (long long)i);
        overflow |= tk_mul_overflow_i64(strides[i], shape.items[i] - 1, &span);
        overflow |= tk_add_overflow_i64(last, span, &last);
    }
    if (size > 0 && !strides) last = size - 1;
    overflow |= tk_mul_overflow_i64(last + (size > 0), (int64_t)tk_dtype_size(dtype), &end);
    if (overflow || (uint64_t)end > bytes)
        return tk_fail(TK_INVALID_ARGUMENT, "the array needs %lld bytes, the memory has %zu",
                       overflow ? -1LL : (long long)end, bytes);
    return TK_OK;
}

tk_array tk_from_memory(tk_context *context, void *data, size_t bytes, tk_shape shape,
                        const int64_t *strides, tk_dtype dtype, void (*release)(void *owner),
                        void *owner) {
    tk_storage *storage = NULL;
    tk_buffer *buffer = NULL;
    int64_t size = 0;
    tk_type type = {dtype, (int)shape.count, shape.items};
    tk_status status = check_type(context, shape, dtype, &size);
    if (status == TK_OK) status = check_extent(shape, strides, dtype, size, bytes);
    if (status == TK_OK && size > 0 && !data) status = tk_fail_null("data");
    if (status == TK_OK && (uintptr_t)data % tk_dtype_size(dtype))
        status =
            tk_fail(TK_INVALID_ARGUMENT, "data is not aligned to %zu bytes", tk_dtype_size(dtype));
    if (status == TK_OK)
        status = tk_buffer_wrap(context->sites[0].device, data, bytes, release, owner, &buffer);
    if (status != TK_OK && release) release(owner);
    if (status == TK_OK) status = tk_storage_new(buffer, data, type, strides, &storage);
    return finish_buffer(context, status, type, storage, false);
}

/* ---- memory of devices ---- */

static tk_array finish_there(tk_context *context, tk_status status, tk_type type,
                             tk_storage *storage, uint32_t stream) {
    tk_call call;
    tk_call_open(&call, "from_memory_on", context);
    call.status = status;
    if (!tk_call_begin(&call)) {
        if (status == TK_OK) tk_storage_free(storage);
        return tk_call_refuse(&call);
    }
    call.builder.stream = stream;
    return tk_call_end(&call, buffer_node(&call.builder, type, storage));
}

/* Work of others on the memory may be under way: the device is waited for once. */
tk_array tk_from_memory_on(tk_context *context, tk_stream_id stream, void *data, size_t bytes,
                           tk_shape shape, const int64_t *strides, tk_dtype dtype,
                           void (*release)(void *owner), void *owner) {
    tk_storage *storage = NULL;
    tk_buffer *buffer = NULL;
    int64_t size = 0;
    tk_type type = {dtype, (int)shape.count, shape.items};
    tk_device *device = NULL;
    tk_status status = check_type(context, shape, dtype, &size);
    if (status == TK_OK && !(device = tk_stream_device_of(context, stream)))
        status = tk_fail(TK_INVALID_ARGUMENT, "%u is no stream of the context", (unsigned)stream);
    if (status == TK_OK) status = check_extent(shape, strides, dtype, size, bytes);
    if (status == TK_OK && size > 0 && !data) status = tk_fail_null("data");
    if (status == TK_OK && device->driver->synchronize)
        status = device->driver->synchronize(device->state);
    if (status == TK_OK) status = tk_buffer_wrap(device, data, bytes, release, owner, &buffer);
    if (status != TK_OK && release) release(owner);
    if (status == TK_OK) status = tk_storage_new(buffer, data, type, strides, &storage);
    return finish_there(context, status, type, storage, stream);
}

tk_status tk_array_view_there(tk_array array, tk_strided *out_view) {
    TK_NEED(out_view);
    TK_TRY(tk_eval(array));
    tk_graph_lock(array.node->graph);
    const tk_storage *storage = array.node->storage;
    tk_buffer *buffer = tk_buffer_retain(storage->buffer);
    tk_storage_view(storage, tk_node_type(array.node), out_view);
    tk_graph_unlock(array.node->graph);
    tk_status status = tk_buffer_wait(buffer, NULL);
    tk_buffer_release(buffer);
    return status;
}

void tk_release_there(tk_array array) {
    tk_context *context = tk_array_context(array);
    tk_device *device = context ? tk_stream_device_of(context, tk_array_stream(array)) : NULL;
    if (device && device->driver->queue_wait) (void)device->driver->synchronize(device->state);
    tk_release(array);
}

/* ---- questions ---- */

tk_status tk_array_status(tk_array array) {
    if (!array.node) return tk_fail_no_array("the argument");
    if (!tk_node_is_error(array.node)) return TK_OK;
    const tk_attrs_error *error = tk_node_attrs(array.node);
    return tk_fail_again((tk_status)error->code, error->message);
}

tk_dtype tk_array_dtype(tk_array array) {
    return array.node ? (tk_dtype)array.node->dtype : TK_FLOAT32;
}
int tk_array_rank(tk_array array) { return array.node ? array.node->rank : 0; }
int64_t tk_array_size(tk_array array) { return array.node ? array.node->size : 0; }
tk_shape tk_array_shape(tk_array array) {
    return array.node ? tk_node_shape(array.node) : TK_SCALAR;
}

int64_t tk_array_dim(tk_array array, int axis) {
    int rank = tk_array_rank(array);
    if (axis < -rank || axis >= rank) return 0;
    return array.node->shape[axis < 0 ? axis + rank : axis];
}

bool tk_array_is_evaluated(tk_array array) {
    if (!array.node || tk_context_check(tk_array_context(array)) != TK_OK) return false;
    tk_graph_lock(array.node->graph);
    bool evaluated = array.node->storage && !(array.node->flags & TK_NODE_SCHEDULED);
    tk_graph_unlock(array.node->graph);
    return evaluated;
}

bool tk_array_same(tk_array a, tk_array b) { return a.node == b.node; }

/* ---- values ---- */

/* Memory that the processor cannot read is copied once, and the copy kept with the array. */
static tk_status make_mirror(tk_array array) {
    tk_scope scope = tk_scope_open(tk_array_context(array));
    tk_array copy = tk_to_stream(array, TK_DEFAULT_STREAM);
    tk_status status = tk_eval(copy);
    tk_graph_lock(array.node->graph);
    tk_storage *storage = array.node->storage;
    if (status == TK_OK && !storage->mirror) {
        const tk_storage *made = copy.node->storage;
        storage->mirror = tk_buffer_retain(made->buffer);
    }
    tk_graph_unlock(array.node->graph);
    tk_scope_close(scope);
    return status;
}

static void view_mirror(tk_strided *view, const tk_buffer *mirror) {
    view->data = mirror->data;
    tk_strides_set_row_major(view->rank, view->shape, view->strides);
}

tk_status tk_array_view(tk_array array, tk_strided *out_view) {
    TK_NEED(out_view);
    TK_TRY(tk_eval(array));
    tk_graph_lock(array.node->graph);
    const tk_storage *storage = array.node->storage;
    bool readable = storage->mirror || storage->buffer->device->driver->host_memory;
    tk_graph_unlock(array.node->graph);
    if (!readable) TK_TRY(make_mirror(array));
    tk_graph_lock(array.node->graph);
    storage = array.node->storage;
    tk_storage_view(storage, tk_node_type(array.node), out_view);
    if (storage->mirror) view_mirror(out_view, storage->mirror);
    tk_graph_unlock(array.node->graph);
    return TK_OK;
}

tk_status tk_copy_out(tk_array array, void *data, size_t bytes) {
    if (bytes) TK_NEED(data);
    tk_strided from, to;
    TK_TRY(tk_array_view(array, &from));
    size_t needed = (size_t)from.size * tk_dtype_size(from.dtype);
    if (bytes != needed)
        return tk_fail(TK_INVALID_ARGUMENT, "%zu bytes given, the array has %zu", bytes, needed);
    if (from.size == 0) return TK_OK;
    to = from;
    to.data = data;
    tk_strides_set_row_major(to.rank, to.shape, to.strides);
    tk_fault fault = {.position = INT64_MAX};
    tk_body_call call = {.op = TK_OP_contiguous,
                         .n_inputs = 1,
                         .inputs = &from,
                         .n_outputs = 1,
                         .outputs = &to,
                         .fault = &fault};
    return tk_cpu_executor.bodies[TK_OP_contiguous](&call);
}

static tk_status cast_item(tk_array array, tk_dtype dtype, void *out_value) {
    TK_TRY(tk_array_status(array));
    if (array.node->size != 1)
        return tk_fail(TK_SHAPE_ERROR, "an array of %lld elements has no single value",
                       (long long)array.node->size);
    if (dtype == TK_FLOAT64 && array.node->dtype == TK_COMPLEX64)
        return tk_fail(TK_DTYPE_ERROR, "a complex value is no real number: take tk_real first");
    tk_scope scope = tk_scope_open(tk_array_context(array));
    tk_status status = tk_copy_out(tk_astype(array, dtype), out_value, 8);
    tk_scope_close(scope);
    return status;
}

tk_status tk_item(tk_array array, double *out_value) {
    TK_NEED(out_value);
    return cast_item(array, TK_FLOAT64, out_value);
}

tk_status tk_item_int(tk_array array, int64_t *out_value) {
    TK_NEED(out_value);
    return cast_item(array, TK_INT64, out_value);
}
