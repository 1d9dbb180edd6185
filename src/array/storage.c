/* Values in memory, and the ops that are only another way to look at it. */
#include "array/storage.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

void tk_strides_set_row_major(int rank, const int64_t *shape, int64_t *strides) {
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        stride *= shape[axis] > 0 ? shape[axis] : 1;
    }
}

bool tk_strides_row_major(int rank, const int64_t *shape, const int64_t *strides) {
    int64_t stride = 1;
    bool fits = true;
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (shape[axis] == 0) return true;
        fits &= shape[axis] == 1 || strides[axis] == stride;
        stride *= shape[axis];
    }
    return fits;
}

tk_status tk_storage_new(tk_buffer *buffer, char *data, tk_type type, const int64_t *strides,
                         tk_storage **out_storage) {
    size_t stride_bytes = (size_t)type.rank * sizeof(int64_t);
    tk_storage *storage = tk_malloc(sizeof *storage + stride_bytes);
    if (!storage) {
        tk_buffer_release(buffer);
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for the record of an array");
    }
    *storage = (tk_storage){.buffer = buffer, .data = data, .rank = type.rank};
    if (strides && type.rank) memcpy(storage->strides, strides, stride_bytes);
    if (!strides) tk_strides_set_row_major(type.rank, type.shape, storage->strides);
    storage->row_major = !strides || tk_strides_row_major(type.rank, type.shape, storage->strides);
    *out_storage = storage;
    return TK_OK;
}

void tk_storage_free(tk_storage *storage) {
    if (!storage) return;
    tk_buffer_release(storage->buffer);
    tk_buffer_release(storage->mirror);
    tk_free(storage->fault);
    tk_free(storage);
}

tk_status tk_storage_allocate(tk_device *device, tk_queue *queue, tk_type type,
                              tk_storage **out_storage) {
    int64_t size;
    TK_TRY(tk_shape_size(type.dtype, type.rank, type.shape, &size));
    tk_buffer *buffer;
    size_t bytes = (size_t)size * tk_dtype_size(type.dtype);
    tk_status status = tk_buffer_new_on(device, queue, bytes, &buffer);
    if (status == TK_OUT_OF_MEMORY &&
        queue) { /* a lost device has no memory, but that is not why */
        TK_TRY(device->driver->synchronize(device->state));
        return tk_buffer_new_on(device, queue, bytes, &buffer) == TK_OK
                   ? tk_storage_new(buffer, buffer->data, type, NULL, out_storage)
                   : TK_OUT_OF_MEMORY;
    }
    TK_TRY(status);
    return tk_storage_new(buffer, buffer->data, type, NULL, out_storage);
}

tk_status tk_storage_alias(const tk_storage *storage, tk_type type, tk_storage **out_storage) {
    return tk_storage_new(tk_buffer_retain(storage->buffer), storage->data, type, storage->strides,
                          out_storage);
}

static void free_later(tk_deferred *later) { tk_storage_free((tk_storage *)(void *)later); }

/* Foreign memory goes back to its owner outside the lock: the owner's function may do anything. */
void tk_storage_free_locked(tk_storage *storage, tk_graph *graph) {
    if (storage && storage->buffer->capacity == 0 && graph)
        tk_graph_defer(graph, &storage->later, free_later);
    else
        tk_storage_free(storage);
}

void tk_storage_release_node(tk_node *node) {
    if (node->n_outputs == 1) {
        tk_storage_free_locked(node->storage, node->graph);
    } else {
        tk_tuple_storage *tuple = node->storage;
        for (uint32_t i = 0; i < tuple->count; i++)
            tk_storage_free_locked(tuple->parts[i], node->graph);
        tk_free(tuple);
    }
    node->storage = NULL;
}

void tk_storage_view(const tk_storage *storage, tk_type type, tk_strided *out_view) {
    out_view->dtype = type.dtype;
    out_view->rank = type.rank;
    out_view->data = storage->data;
    int64_t size = 1;
    for (int i = 0; i < type.rank; i++) {
        out_view->shape[i] = type.shape[i];
        out_view->strides[i] = storage->strides[i];
        size *= type.shape[i];
    }
    out_view->size = size;
}

/* ---- view ops ---- */

static tk_status share(const tk_storage *source, int64_t offset, tk_type source_type, tk_type type,
                       const int64_t *strides, tk_storage **out_storage) {
    char *data = source->data + offset * (int64_t)tk_dtype_size(source_type.dtype);
    return tk_storage_new(tk_buffer_retain(source->buffer), data, type, strides, out_storage);
}

static void permute_strides(const tk_attrs_axes *attrs, const tk_storage *source,
                            int64_t *strides) {
    for (int64_t i = 0; i < attrs->axes.count; i++)
        strides[i] = source->strides[attrs->axes.items[i]];
}

static void expand_strides(tk_type from, tk_type to, const tk_storage *source, int64_t *strides) {
    int lead = to.rank - from.rank;
    for (int i = 0; i < to.rank; i++) {
        bool repeated = i < lead || (from.shape[i - lead] == 1 && to.shape[i] != 1);
        strides[i] = repeated ? 0 : source->strides[i - lead];
    }
}

static int64_t slice_strides(const tk_attrs_slice *attrs, const tk_storage *source, tk_type type,
                             int64_t *strides) {
    int64_t offset = 0;
    bool empty = false;
    for (int i = 0; i < type.rank; i++) {
        offset += attrs->start.items[i] * source->strides[i];
        strides[i] = attrs->step.items[i] * source->strides[i];
        empty |= type.shape[i] == 0;
    }
    return empty ? 0 : offset;
}

/* Splits and joins axes: walks both shapes from the front in groups of equal products; within a
 * group of the source every stride must be the next one's times its length. */
static bool reshape_strides(tk_type from, tk_type to, const tk_storage *source, int64_t *strides) {
    if (source->row_major) {
        tk_strides_set_row_major(to.rank, to.shape, strides);
        return true;
    }
    int i = 0, j = 0;
    while (i < from.rank || j < to.rank) {
        int first_i = i, first_j = j;
        int64_t left = i < from.rank ? from.shape[i++] : 1, right = j < to.rank ? to.shape[j++] : 1;
        while (left != right) {
            if (left < right)
                left *= from.shape[i++];
            else
                right *= to.shape[j++];
        }
        int64_t stride = 0;
        int previous = -1;
        for (int axis = first_i; axis < i; axis++) {
            if (from.shape[axis] == 1) continue;
            if (previous >= 0 &&
                source->strides[previous] != source->strides[axis] * from.shape[axis])
                return false;
            previous = axis;
            stride = source->strides[axis];
        }
        for (int axis = j - 1; axis >= first_j; axis--) {
            strides[axis] = stride;
            stride *= to.shape[axis];
        }
    }
    return true;
}

/* Whether the last axis is dense, so that elements can be regrouped; fills the other strides. */
static bool bitcast_strides(tk_type from, tk_type to, const tk_storage *source, int64_t *strides) {
    int64_t old_size = (int64_t)tk_dtype_size(from.dtype),
            new_size = (int64_t)tk_dtype_size(to.dtype);
    bool same = old_size == new_size;
    if (!same && from.shape[from.rank - 1] != 1 && source->strides[from.rank - 1] != 1)
        return false;
    for (int i = 0; i < to.rank; i++) {
        bool last = i == to.rank - 1;
        if (!same && !last && source->strides[i] * old_size % new_size) return false;
        strides[i] = same   ? source->strides[i]
                     : last ? 1
                            : source->strides[i] * old_size / new_size;
    }
    return (uintptr_t)source->data % (uintptr_t)new_size == 0;
}

tk_status tk_storage_view_op(const tk_node *node, const tk_storage *source, tk_type source_type,
                             tk_storage **out_storage) {
    tk_type type = tk_node_type(node);
    int64_t strides[TK_MAX_RANK] = {0}, offset = 0;
    bool possible = true;
    *out_storage = NULL;
    switch ((tk_op)node->op) {
    case TK_OP_permute:
        permute_strides(tk_node_attrs(node), source, strides);
        break;
    case TK_OP_expand:
        expand_strides(source_type, type, source, strides);
        break;
    case TK_OP_slice_by:
        offset = slice_strides(tk_node_attrs(node), source, type, strides);
        break;
    case TK_OP_reshape_to:
        possible = node->size == 0 || reshape_strides(source_type, type, source, strides);
        break;
    case TK_OP_bitcast:
        possible = bitcast_strides(source_type, type, source, strides);
        break;
    case TK_OP_contiguous:
        return source->row_major ? tk_storage_alias(source, type, out_storage) : TK_OK;
    default:
        assert(!"not a view op");
        break;
    }
    return possible ? share(source, offset, source_type, type, strides, out_storage) : TK_OK;
}
