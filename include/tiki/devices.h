/* Devices of a context: where arrays live and ops are computed.
 *
 *     tk_stream_id gpu;
 *     tk_device_stream(ctx, "gpu", &gpu);           // opens it; an error says why there is none
 *     tk_array x = tk_to_stream(a, gpu);            // a copy on the GPU
 *     tk_array y = tk_add(x, x);                    // computed on the GPU
 *     tk_array back = tk_to_stream(y, TK_DEFAULT_STREAM);
 *
 * "cpu" is the processor. "emulator" runs the same kernels as a GPU on the processor and judges
 * them: what it finds wrong is the error of the evaluation. "gpu", "gpu:1", ... are NVIDIA GPUs.
 *
 * Ops with operands are computed where their operands are; operands of two devices are an error
 * (TK_INVALID_ARGUMENT), never a hidden copy. Ops without operands, and tk_from_data, use the
 * current stream (tk_stream_use). An op that a device has no kernel for is TK_UNSUPPORTED when it
 * is built. */
#ifndef TIKI_DEVICES_H
#define TIKI_DEVICES_H

#include "tiki/array.h"

TK_BEGIN_DECLS

/* The first stream of a device; opens the device when it is asked for first. TK_NOT_FOUND for a
 * name that is none or a GPU that is not there, TK_UNSUPPORTED with the reason where GPUs cannot be
 * used, the device's errors. Any thread. */
TK_API tk_status tk_device_stream(tk_context *context, const char *name, tk_stream_id *out_stream);

/* The device of a stream, for its name, counters and limits (runtime.h). Borrowed; NULL for a
 * stream that is none. */
TK_API tk_device *tk_stream_device_of(tk_context *context, tk_stream_id stream);

/* The array's values on the device of `stream`: the same array if they are there already. Lazy and
 * differentiable. */
TK_API tk_array tk_to_stream(tk_array array, tk_stream_id stream);

/* The stream that the array is computed on; TK_DEFAULT_STREAM for TK_NO_ARRAY. */
TK_API tk_stream_id tk_array_stream(tk_array array);

/* The device that has the array. Borrowed; NULL for TK_NO_ARRAY. */
TK_API tk_device *tk_array_device(tk_array array);

/* ---- memory that is shared with other libraries ---- */

/* The array's memory where it is: on a GPU `data` is a device pointer. Evaluates, and waits for all
 * work on the memory. Valid as long as the array is held; must not be written. */
TK_API tk_status tk_array_view_there(tk_array array, tk_strided *out_view);

/* tk_release of an array whose memory another library was given: waits until the device has done
 * all that it was given, by that library too, so that the memory is not used anew under it. */
TK_API void tk_release_there(tk_array array);

/* tk_from_memory for memory on the device of `stream`, `data` a device pointer there. Waits until
 * the device has done all that it was given, by other libraries too. `release` runs when no work
 * on the memory is left, at once on an error. */
TK_API tk_array tk_from_memory_on(tk_context *context, tk_stream_id stream, void *data,
                                  size_t bytes, tk_shape shape, const int64_t *strides,
                                  tk_dtype dtype, void (*release)(void *owner), void *owner);

TK_END_DECLS

#endif
