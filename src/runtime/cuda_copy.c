/* Copies and fills, and the pinned blocks behind them.
 *
 * All pinned blocks are of one size, and there are few: a copy takes one, waits if it must for the
 * work that used it last, and leaves it with the mark of its own work. A download keeps two blocks
 * in turn, so that one is filled by the device while the other is emptied by the host. */
#include "runtime/cuda_copy.h"

#include "base/alloc.h"
#include "runtime/host_memory.h"

#define MOST_BLOCKS 8

typedef struct block {
    void *memory;
    tk_mark mark; /* of its last use */
    bool taken;
} block;

struct tk_cuda_staging {
    pthread_mutex_t lock;
    pthread_cond_t given;
    int n_blocks;
    block blocks[MOST_BLOCKS];
    pthread_mutex_t now_lock; /* one tk_cuda_copy_now at a time */
    tk_queue *now_queue;      /* made by the first */
};

/* ---- pinned memory ----------------------------------------------------------------------------
 */

tk_status tk_cuda_pinned_new(tk_cuda *cuda, size_t bytes, void **out_memory) {
    *out_memory = NULL;
    TK_TRY(tk_cuda_enter(cuda));
    TK_CUDA_TRY(cuda, cuda->api->pinned_allocate(out_memory, bytes ? bytes : 1, 0),
                "%zu bytes of pinned host memory", bytes);
    return TK_OK;
}

void tk_cuda_pinned_free(tk_cuda *cuda, void *memory) {
    if (memory && tk_cuda_enter_to_free(cuda)) (void)cuda->api->pinned_free(memory);
}

tk_status tk_cuda_staging_begin(tk_cuda *cuda) {
    tk_cuda_staging *staging = tk_calloc(1, sizeof *staging);
    if (!staging) return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory", cuda->index);
    pthread_mutex_init(&staging->lock, NULL);
    pthread_mutex_init(&staging->now_lock, NULL);
    pthread_cond_init(&staging->given, NULL);
    cuda->staging = staging;
    return TK_OK;
}

void tk_cuda_staging_end(tk_cuda *cuda) {
    tk_cuda_staging *staging = cuda->staging;
    if (!staging) return;
    for (int i = 0; i < staging->n_blocks; i++)
        tk_cuda_pinned_free(cuda, staging->blocks[i].memory);
    pthread_cond_destroy(&staging->given);
    pthread_mutex_destroy(&staging->now_lock);
    pthread_mutex_destroy(&staging->lock);
    tk_free(staging);
    cuda->staging = NULL;
}

/* A block that nobody has taken: one whose work is past if there is one. With the lock. */
static block *choose_block(tk_cuda_staging *staging) {
    block *chosen = NULL;
    for (int i = 0; i < staging->n_blocks; i++) {
        block *at = &staging->blocks[i];
        if (at->taken) continue;
        if (!at->mark.queue || tk_cuda_queue_passed(at->mark.queue, at->mark.ticket, true))
            return at;
        if (!chosen) chosen = at;
    }
    return staging->n_blocks < MOST_BLOCKS ? NULL : chosen;
}

/* Makes one more block, or gives NULL. With the lock. */
static block *new_block(tk_cuda *cuda, tk_cuda_staging *staging) {
    if (staging->n_blocks == MOST_BLOCKS) return NULL;
    void *memory;
    if (tk_cuda_pinned_new(cuda, TK_CUDA_STAGING_BYTES, &memory) != TK_OK) return NULL;
    block *made = &staging->blocks[staging->n_blocks++];
    *made = (block){.memory = memory};
    return made;
}

static block *any_block(tk_cuda_staging *staging) {
    for (int i = 0; i < staging->n_blocks; i++)
        if (!staging->blocks[i].taken) return &staging->blocks[i];
    return NULL;
}

static void give_block(tk_cuda_staging *staging, block *given, tk_mark mark) {
    pthread_mutex_lock(&staging->lock);
    given->mark = mark;
    given->taken = false;
    pthread_cond_signal(&staging->given);
    pthread_mutex_unlock(&staging->lock);
}

static tk_status take_block(tk_cuda *cuda, block **out_block) {
    tk_cuda_staging *staging = cuda->staging;
    tk_status status = TK_OK;
    pthread_mutex_lock(&staging->lock);
    block *taken = NULL;
    while (!taken && status == TK_OK) {
        taken = choose_block(staging);
        if (!taken) taken = new_block(cuda, staging);
        if (!taken) taken = any_block(staging);
        if (!taken && staging->n_blocks == 0) status = tk_error_code();
        if (!taken && status == TK_OK) pthread_cond_wait(&staging->given, &staging->lock);
    }
    if (taken) taken->taken = true;
    pthread_mutex_unlock(&staging->lock);
    TK_TRY(status);
    if (taken->mark.queue) status = tk_cuda_queue_wait(taken->mark.queue, taken->mark.ticket, NULL);
    if (status == TK_OK)
        *out_block = taken;
    else
        give_block(staging, taken, taken->mark);
    return status;
}

/* ---- copies -----------------------------------------------------------------------------------
 */

static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

static tk_status submitted(tk_queue *queue, CUresult result, const char *what, size_t bytes) {
    if (result != CUDA_SUCCESS)
        return tk_cuda_fail(queue->cuda, result, "%s of %zu bytes in stream %d", what, bytes,
                            queue->number);
    tk_cuda_queue_submitted(queue);
    return TK_OK;
}

static tk_status check_not_captured(tk_queue *queue, const char *what) {
    if (!atomic_load(&queue->capturing)) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT,
                   "%s: stream %d of cuda:%d is being captured into a graph, which can only hold "
                   "copies of pinned host memory",
                   what, queue->number, queue->cuda->index);
}

static size_t piece_of(size_t bytes) {
    return bytes < TK_CUDA_STAGING_BYTES ? bytes : TK_CUDA_STAGING_BYTES;
}

static tk_status upload_piece(tk_queue *queue, CUdeviceptr to, const void *from, size_t bytes) {
    tk_cuda *cuda = queue->cuda;
    block *staged;
    TK_TRY(take_block(cuda, &staged));
    tk_status status = tk_host_copy(NULL, staged->memory, from, bytes, TK_COPY_TO_DEVICE);
    if (status == TK_OK) {
        CUresult result = cuda->api->copy_to_device(to, staged->memory, bytes, queue->handle);
        status = submitted(queue, result, "upload", bytes);
    }
    give_block(cuda->staging, staged, tk_cuda_queue_mark(queue));
    return status;
}

tk_status tk_cuda_upload(tk_queue *queue, CUdeviceptr to, const void *from, size_t bytes) {
    TK_TRY(check_not_captured(queue, "upload"));
    TK_TRY(tk_cuda_enter(queue->cuda));
    for (size_t done = 0; done < bytes;) {
        size_t piece = piece_of(bytes - done);
        TK_TRY(upload_piece(queue, to + done, (const char *)from + done, piece));
        done += piece;
    }
    return TK_OK;
}

/* A piece of a download that is on its way. */
typedef struct landing {
    block *staged; /* NULL: none */
    void *to;
    size_t bytes;
} landing;

static tk_status start_landing(tk_queue *queue, landing *piece, CUdeviceptr from) {
    tk_cuda *cuda = queue->cuda;
    TK_TRY(take_block(cuda, &piece->staged));
    CUresult result =
        cuda->api->copy_from_device(piece->staged->memory, from, piece->bytes, queue->handle);
    tk_status status = submitted(queue, result, "download", piece->bytes);
    piece->staged->mark = tk_cuda_queue_mark(queue);
    return status;
}

static tk_status end_landing(tk_cuda *cuda, landing *piece, tk_status status, const tk_wait *wait) {
    if (!piece->staged) return status;
    tk_mark mark = piece->staged->mark;
    if (status == TK_OK) status = tk_cuda_queue_wait(mark.queue, mark.ticket, wait);
    if (status == TK_OK)
        status =
            tk_host_copy(NULL, piece->to, piece->staged->memory, piece->bytes, TK_COPY_FROM_DEVICE);
    give_block(cuda->staging, piece->staged, mark);
    piece->staged = NULL;
    return status;
}

tk_status tk_cuda_download(tk_queue *queue, void *to, CUdeviceptr from, size_t bytes,
                           const tk_wait *wait) {
    TK_TRY(check_not_captured(queue, "download"));
    TK_TRY(tk_cuda_enter(queue->cuda));
    landing before = {0};
    tk_status status = TK_OK;
    for (size_t done = 0; done < bytes && status == TK_OK;) {
        landing next = {NULL, (char *)to + done, piece_of(bytes - done)};
        status = start_landing(queue, &next, from + done);
        status = end_landing(queue->cuda, &before, status, wait);
        before = next;
        done += next.bytes;
    }
    return end_landing(queue->cuda, &before, status, wait);
}

tk_status tk_cuda_copy_async(tk_queue *queue, void *to, const void *from, size_t bytes,
                             tk_copy kind) {
    tk_cuda *cuda = queue->cuda;
    TK_TRY(tk_cuda_enter(cuda));
    if (bytes == 0) return TK_OK;
    CUresult result;
    if (kind == TK_COPY_TO_DEVICE)
        result = cuda->api->copy_to_device(address(to), from, bytes, queue->handle);
    else if (kind == TK_COPY_FROM_DEVICE)
        result = cuda->api->copy_from_device(to, address(from), bytes, queue->handle);
    else
        result = cuda->api->copy_on_device(address(to), address(from), bytes, queue->handle);
    return submitted(queue, result, "copy", bytes);
}

tk_status tk_cuda_fill(tk_queue *queue, CUdeviceptr to, uint32_t pattern, int width, size_t count) {
    tk_cuda *cuda = queue->cuda;
    TK_TRY(tk_cuda_enter(cuda));
    if (count == 0) return TK_OK;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (width == 1)
        result = cuda->api->fill_8(to, (unsigned char)pattern, count, queue->handle);
    else if (width == 2)
        result = cuda->api->fill_16(to, (unsigned short)pattern, count, queue->handle);
    else if (width == 4)
        result = cuda->api->fill_32(to, pattern, count, queue->handle);
    return submitted(queue, result, "fill", count * (size_t)width);
}

/* ---- copies outside of any stream's order -----------------------------------------------------
 */

static tk_status copy_and_wait(tk_queue *queue, void *to, const void *from, size_t bytes,
                               tk_copy kind) {
    if (kind == TK_COPY_FROM_DEVICE) return tk_cuda_download(queue, to, address(from), bytes, NULL);
    if (kind == TK_COPY_TO_DEVICE)
        TK_TRY(tk_cuda_upload(queue, address(to), from, bytes));
    else
        TK_TRY(tk_cuda_copy_async(queue, to, from, bytes, kind));
    return tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL);
}

tk_status tk_cuda_copy_now(void *state, void *to, const void *from, size_t bytes, tk_copy kind) {
    tk_cuda *cuda = state;
    tk_cuda_staging *staging = cuda->staging;
    tk_status status = TK_OK;
    pthread_mutex_lock(&staging->now_lock);
    if (!staging->now_queue) status = tk_cuda_queue_open(cuda, &staging->now_queue);
    if (status == TK_OK) status = copy_and_wait(staging->now_queue, to, from, bytes, kind);
    pthread_mutex_unlock(&staging->now_lock);
    return status;
}
