/* Moving bytes: between host and device, on the device, and fills, all in the order of a stream.
 *
 * Ordinary host memory cannot be read by the device while the program goes on, so uploads and
 * downloads go through pinned blocks that the device keeps: an upload returns as soon as the source
 * has been read, not when the device has it. Host memory from tk_cuda_pinned_new is copied in
 * place.
 *
 * Rejected: pinning the caller's pages for each copy, which costs more than the copy of anything
 * below some MiB and serialises with all other memory calls of the driver. */
#ifndef RUNTIME_CUDA_COPY_H
#define RUNTIME_CUDA_COPY_H

#include "runtime/cuda_stream.h"

/* Bytes that go through one pinned block at a time. */
#define TK_CUDA_STAGING_BYTES ((size_t)4 << 20)

/* Hands over the copy of `bytes` from ordinary host memory; returns when `from` has been read. */
tk_status tk_cuda_upload(tk_queue *queue, CUdeviceptr to, const void *from, size_t bytes);

/* Copies to ordinary host memory; returns when `to` is written. `wait` may be NULL; after
 * TK_INTERRUPTED `to` holds a part. */
tk_status tk_cuda_download(tk_queue *queue, void *to, CUdeviceptr from, size_t bytes,
                           const tk_wait *wait);

/* Hands over a copy and returns; the host's side of it must be pinned and stay until it is done. */
tk_status tk_cuda_copy_async(tk_queue *queue, void *to, const void *from, size_t bytes,
                             tk_copy kind);

/* Hands over writing `count` times the lowest `width` (1, 2, 4) bytes of `pattern`. */
tk_status tk_cuda_fill(tk_queue *queue, CUdeviceptr to, uint32_t pattern, int width, size_t count);

/* Host memory that the device reads and writes in place. TK_OUT_OF_MEMORY. Any thread. */
tk_status tk_cuda_pinned_new(tk_cuda *cuda, size_t bytes, void **out_memory);
void tk_cuda_pinned_free(tk_cuda *cuda, void *memory);

/* The driver's copy: on a stream of its own, and done when it returns. */
tk_status tk_cuda_copy_now(void *state, void *to, const void *from, size_t bytes, tk_copy kind);

/* The pinned blocks of a device that opens and ends. */
tk_status tk_cuda_staging_begin(tk_cuda *cuda);
void tk_cuda_staging_end(tk_cuda *cuda);

#endif
