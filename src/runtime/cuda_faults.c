/* See cuda_faults.h. Slots go round. One whose flag is up is passed over until somebody was told; a
 * launch that finds none free gets the last one, which nobody reads: it has 1022 faults before it.
 * With more than 1023 launches handed over and not done, a fault of an early one has its index and
 * position, but the words of the launch that has its slot now. */
#include "runtime/cuda_faults.h"

#include <string.h>

#include "base/alloc.h"
#include "runtime/cuda_copy.h"

#define SLOTS 1024
#define RECORD_BYTES (TK_FAULT_WORDS * sizeof(uint64_t))

struct tk_cuda_faults {
    pthread_mutex_t lock;
    void *records;  /* of the device */
    int32_t *flags; /* pinned, written by the device */
    tk_fault_source notes[SLOTS];
    uint64_t order[SLOTS], next; /* of the launches */
};

static int32_t flag_of(const tk_cuda_faults *faults, size_t slot) {
    return __atomic_load_n(&faults->flags[slot], __ATOMIC_ACQUIRE);
}

static void *record_of(const tk_cuda_faults *faults, size_t slot) {
    return (char *)faults->records + slot * RECORD_BYTES;
}

/* ---- slots ---- */

static void free_faults(tk_cuda *cuda, tk_cuda_faults *faults) {
    if (faults->records) cuda->api->memory_free((CUdeviceptr)(uintptr_t)faults->records);
    if (faults->flags) tk_cuda_pinned_free(cuda, faults->flags);
    pthread_mutex_destroy(&faults->lock);
    tk_free(faults);
}

static tk_status clear_record(tk_cuda *cuda, void *record) {
    uint64_t none[TK_FAULT_WORDS];
    memset(none, 0xff, sizeof none);
    return tk_cuda_copy_now(cuda, record, none, sizeof none, TK_COPY_TO_DEVICE);
}

static tk_status take_memory(tk_cuda *cuda, tk_cuda_faults *faults) {
    CUdeviceptr records = 0;
    void *flags = NULL, *none = tk_malloc(SLOTS * RECORD_BYTES);
    if (!none) return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory", cuda->index);
    memset(none, 0xff, SLOTS * RECORD_BYTES);
    tk_status status = tk_cuda_pinned_new(cuda, SLOTS * sizeof *faults->flags, &flags);
    faults->flags = flags;
    if (status == TK_OK) {
        memset(flags, 0, SLOTS * sizeof *faults->flags);
        CUresult result = cuda->api->memory_allocate(&records, SLOTS * RECORD_BYTES);
        if (result != CUDA_SUCCESS) status = tk_cuda_fail(cuda, result, "memory for index errors");
        faults->records = (void *)(uintptr_t)records;
    }
    if (status == TK_OK)
        status =
            tk_cuda_copy_now(cuda, faults->records, none, SLOTS * RECORD_BYTES, TK_COPY_TO_DEVICE);
    tk_free(none);
    return status;
}

static tk_status begin(tk_cuda *cuda) {
    tk_cuda_faults *faults = tk_calloc(1, sizeof *faults);
    if (!faults) return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory", cuda->index);
    pthread_mutex_init(&faults->lock, NULL);
    tk_status status = take_memory(cuda, faults);
    tk_cuda_faults *none = NULL;
    if (status != TK_OK || !atomic_compare_exchange_strong(&cuda->faults, &none, faults))
        free_faults(cuda, faults); /* or another thread was first */
    return status;
}

/* With the lock. */
static size_t choose(tk_cuda_faults *faults) {
    for (int tries = 0; tries < SLOTS - 1; tries++) {
        size_t slot = (size_t)(faults->next++ % (SLOTS - 1));
        if (!flag_of(faults, slot)) return slot;
    }
    return SLOTS - 1;
}

tk_status tk_cuda_fault_slot(tk_cuda *cuda, const tk_fault_source *note, void **out_record,
                             void **out_flag) {
    TK_TRY(tk_cuda_enter(cuda));
    if (!atomic_load(&cuda->faults)) TK_TRY(begin(cuda));
    tk_cuda_faults *faults = atomic_load(&cuda->faults);
    pthread_mutex_lock(&faults->lock);
    size_t slot = choose(faults);
    faults->notes[slot] = *note;
    faults->order[slot] = faults->next;
    pthread_mutex_unlock(&faults->lock);
    *out_record = record_of(faults, slot);
    *out_flag = &faults->flags[slot];
    return TK_OK;
}

/* ---- telling ---- */

bool tk_fault_read(const uint64_t words[TK_FAULT_WORDS], const tk_fault_source *note,
                   int64_t *out_position, int64_t *out_index, int64_t *out_length) {
    bool found = false;
    for (int k = 0; k < TK_FAULT_INDICES; k++) {
        uint64_t low = words[2 * k], high = words[2 * k + 1];
        int64_t position = (int64_t)(low >> 32);
        if (low == UINT64_MAX || high == UINT64_MAX || low >> 32 != high >> 32) continue;
        if (found && position >= *out_position) continue;
        found = true;
        *out_position = position;
        *out_index = (int64_t)((high << 32) | (uint32_t)low);
        *out_length = note->lengths[k];
    }
    return found;
}

typedef struct told {
    uint64_t order;
    const char *what;
    int64_t position, index, length;
} told;

/* Reads a slot whose flag is up and puts the flag down; keeps the older one. */
static tk_status read_slot(tk_cuda *cuda, tk_cuda_faults *faults, size_t slot, told *oldest) {
    uint64_t words[TK_FAULT_WORDS];
    told here = {.order = faults->order[slot], .what = faults->notes[slot].what};
    TK_TRY(
        tk_cuda_copy_now(cuda, words, record_of(faults, slot), sizeof words, TK_COPY_FROM_DEVICE));
    if (!tk_fault_read(words, &faults->notes[slot], &here.position, &here.index, &here.length))
        return TK_OK;
    TK_TRY(clear_record(cuda, record_of(faults, slot)));
    __atomic_store_n(&faults->flags[slot], 0, __ATOMIC_RELEASE);
    if (!oldest->what || here.order < oldest->order) *oldest = here;
    return TK_OK;
}

tk_status tk_cuda_fault_take(tk_cuda *cuda) {
    tk_cuda_faults *faults = atomic_load(&cuda->faults);
    told oldest = {0};
    tk_status status = TK_OK;
    if (!faults) return TK_OK;
    pthread_mutex_lock(&faults->lock);
    for (size_t slot = 0; status == TK_OK && slot < SLOTS - 1; slot++)
        if (flag_of(faults, slot)) status = read_slot(cuda, faults, slot, &oldest);
    pthread_mutex_unlock(&faults->lock);
    if (status != TK_OK || !oldest.what) return status;
    return tk_fail_index(oldest.what, oldest.index, oldest.length, oldest.position);
}

void tk_cuda_faults_end(tk_cuda *cuda) {
    tk_cuda_faults *faults = atomic_load(&cuda->faults);
    if (faults) free_faults(cuda, faults);
    atomic_store(&cuda->faults, NULL);
}
