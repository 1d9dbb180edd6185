/* Values from one device to another: always whole and row-major, straight where one side is the
 * processor's memory, else through it.
 *
 * Rejected: copies between two cards without the host. They need peer access, which not every
 * machine gives, and a second path to test; groups of cards have their collectives. */
#include "array/storage.h"
#include "base/error.h"

static tk_status pack(const tk_storage *from, tk_type type, char *to) {
    tk_strided source, target;
    tk_storage_view(from, type, &source);
    target = source;
    target.data = to;
    tk_strides_set_row_major(type.rank, type.shape, target.strides);
    tk_fault fault = {.position = INT64_MAX};
    tk_body_call call = {.op = TK_OP_contiguous,
                         .n_inputs = 1,
                         .inputs = &source,
                         .n_outputs = 1,
                         .outputs = &target,
                         .fault = &fault};
    return tk_cpu_executor.bodies[TK_OP_contiguous](&call);
}

static tk_status upload(const char *from, tk_storage *to, size_t bytes, tk_queue *queue) {
    tk_device *device = to->buffer->device;
    if (queue && device->driver->queue_upload)
        return device->driver->queue_upload(queue, to->data, from, bytes);
    return tk_device_copy(device, to->data, from, bytes, TK_COPY_TO_DEVICE);
}

static tk_status download(const tk_storage *from, char *to, size_t bytes) {
    TK_TRY(tk_buffer_wait(from->buffer, NULL));
    return tk_device_copy(from->buffer->device, to, from->data, bytes, TK_COPY_FROM_DEVICE);
}

static bool on_host(const tk_storage *storage) {
    return storage->buffer->device->driver->host_memory;
}

tk_status tk_transfer(const tk_storage *from, tk_type type, tk_storage *to, tk_queue *queue) {
    int64_t size;
    TK_TRY(tk_shape_size(type.dtype, type.rank, type.shape, &size));
    size_t bytes = (size_t)size * tk_dtype_size(type.dtype);
    if (bytes == 0) return TK_OK;
    if (on_host(from) && on_host(to)) return pack(from, type, to->data);
    if (on_host(from) && from->row_major) return upload(from->data, to, bytes, queue);
    if (on_host(to)) return download(from, to->data, bytes);
    char *between = tk_malloc(bytes);
    if (!between) return tk_fail(TK_OUT_OF_MEMORY, "no memory to move %zu bytes", bytes);
    tk_status status = on_host(from) ? pack(from, type, between) : download(from, between, bytes);
    if (status == TK_OK) status = upload(between, to, bytes, queue);
    tk_free(between);
    return status;
}
