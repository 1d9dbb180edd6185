/* Host memory for drivers; see host_memory.h.
 *
 * Large blocks are mapped rather than taken from malloc, because malloc moves its own threshold for
 * mapping up as blocks are freed and then keeps large holes in its heap. */
#define _GNU_SOURCE
#include "runtime/host_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/pool.h"

#define COPY_GRAIN ((int64_t)1 << 20)

size_t tk_host_memory_size(void *state) {
    (void)state;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
}

static void *map_huge(size_t bytes) {
    size_t room = bytes + TK_HUGE_PAGE;
    char *mapped = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    size_t before = (TK_HUGE_PAGE - (uintptr_t)mapped % TK_HUGE_PAGE) % TK_HUGE_PAGE;
    size_t after = room - before - bytes;
    if (before) munmap(mapped, before);
    if (after) munmap(mapped + before + bytes, after);
#ifdef MADV_HUGEPAGE
    madvise(mapped + before, bytes, MADV_HUGEPAGE);
#endif
    return mapped + before;
}

static size_t whole_pages(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

void *tk_host_allocate(void *state, size_t bytes) {
    (void)state;
    if (bytes > PTRDIFF_MAX - 2 * TK_HUGE_PAGE) return NULL;
    if (bytes >= TK_HUGE_PAGE) return map_huge(whole_pages(bytes));
    size_t units = bytes / TK_MEMORY_ALIGNMENT + (bytes % TK_MEMORY_ALIGNMENT || !bytes);
    return aligned_alloc(TK_MEMORY_ALIGNMENT, units * TK_MEMORY_ALIGNMENT);
}

void tk_host_free(void *state, void *memory, size_t bytes) {
    (void)state;
    if (bytes >= TK_HUGE_PAGE)
        munmap(memory, whole_pages(bytes));
    else
        free(memory);
}

struct copy {
    char *to;
    const char *from;
};

static void copy_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct copy *copy = arg;
    memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
}

tk_status tk_host_copy(void *state, void *to, const void *from, size_t bytes, tk_copy kind) {
    (void)state;
    (void)kind;
    struct copy copy = {to, from};
    tk_parallel_for((int64_t)bytes, COPY_GRAIN, copy_part, &copy);
    return TK_OK;
}

tk_status tk_host_synchronize(void *state) {
    (void)state;
    return TK_OK;
}

tk_status tk_host_run(void *state, tk_queue *queue, tk_task task, void *arg) {
    (void)state;
    (void)queue;
    return task(arg);
}
