/* Buffers and the caching allocator; buffer.h tells the policy.
 *
 * A freed block stays in its tk_buffer record, which is linked into two lists: one by size, newest
 * first, where an allocation looks; and one by age, from which the limits take. Lists are changed
 * under the device's lock; blocks that must go are unlinked under it and freed after it.
 *
 * In a forked child the lock may be held by a thread that does not exist, so there a block goes
 * straight back to where it came from, uncounted. */
#include "runtime/buffer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "runtime/trace.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define HIDE(memory, bytes) __asan_poison_memory_region(memory, bytes)
#define SHOW(memory, bytes) __asan_unpoison_memory_region(memory, bytes)
#else
#define HIDE(memory, bytes) ((void)(memory), (void)(bytes))
#define SHOW(memory, bytes) ((void)(memory), (void)(bytes))
#endif

#define SMALL_BLOCK ((size_t)512) /* up to here sizes are multiples of 64 */
#define LARGE_BLOCK ((size_t)1 << 20)
#define LARGE_STEP ((size_t)64 << 10)

static bool inherited(const tk_device *device) { return device->fork_epoch != tk_fork_epoch(); }

/* ---- sizes ------------------------------------------------------------------------------------
 */

static int log2_floor(size_t value) { return 63 - __builtin_clzll(value); }

static size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

size_t tk_buffer_capacity(size_t bytes) {
    if (bytes <= SMALL_BLOCK) return bytes ? round_up(bytes, TK_MEMORY_ALIGNMENT) : 64;
    if (bytes > SIZE_MAX - LARGE_STEP) return SIZE_MAX;
    if (bytes >= LARGE_BLOCK) return round_up(bytes, LARGE_STEP);
    return round_up(bytes, (size_t)1 << (log2_floor(bytes - 1) - 3));
}

/* The list for blocks of a capacity; lists are in order of size, eight a doubling. */
static int size_class(size_t capacity) {
    int log2 = log2_floor(capacity);
    return log2 * 8 + (int)(capacity >> (log2 - 3) & 7);
}

/* ---- the cache, under the lock ----------------------------------------------------------------
 */

static void cache_put(tk_memory *memory, tk_buffer *buffer) {
    tk_buffer **list = &memory->cached[size_class(buffer->capacity)];
    buffer->previous = NULL;
    buffer->next = *list;
    if (*list) (*list)->previous = buffer;
    *list = buffer;
    buffer->newer = NULL;
    buffer->older = memory->newest;
    if (memory->newest) memory->newest->newer = buffer;
    memory->newest = buffer;
    if (!memory->oldest) memory->oldest = buffer;
    memory->info.cache += buffer->capacity;
}

static void cache_take(tk_memory *memory, tk_buffer *buffer) {
    if (buffer->next) buffer->next->previous = buffer->previous;
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else
        memory->cached[size_class(buffer->capacity)] = buffer->next;
    if (buffer->newer)
        buffer->newer->older = buffer->older;
    else
        memory->newest = buffer->older;
    if (buffer->older)
        buffer->older->newer = buffer->newer;
    else
        memory->oldest = buffer->newer;
    buffer->next = buffer->previous = buffer->newer = buffer->older = NULL;
    memory->info.cache -= buffer->capacity;
}

/* What a cached block must be: a size, and free for a queue. Devices are asked about marks `asks`
 * times at most, since every question costs as much as a whole search. */
typedef struct search {
    const tk_driver *driver;
    tk_queue *queue;
    size_t least, most;
    int asks;
} search;

#define MOST_ASKS 8

static bool is_past(search *want, const tk_mark *mark) {
    if (mark->queue == want->queue) return true;
    bool ask = want->asks > 0;
    if (ask) want->asks--;
    return want->driver->queue_passed(mark->queue, mark->ticket, ask);
}

static bool is_free(search *want, const tk_buffer *block) {
    for (int i = 0; i < block->n_marks; i++)
        if (!is_past(want, &block->marks[i])) return false;
    return true;
}

static tk_buffer *best_of_list(tk_buffer *list, search *want) {
    tk_buffer *best = NULL;
    for (tk_buffer *block = list; block; block = block->next) {
        if (block->capacity < want->least || block->capacity > want->most) continue;
        if (best && block->capacity >= best->capacity) continue;
        if (!is_free(want, block)) continue;
        best = block;
        if (block->capacity == want->least) return block;
    }
    return best;
}

static tk_buffer *search_cache(const tk_memory *memory, search *want) {
    int last = size_class(want->most);
    for (int class = size_class(want->least); class <= last; class ++) {
        tk_buffer *block = best_of_list(memory->cached[class], want);
        if (block) return block;
    }
    return NULL;
}

/* First what needs no question, then, on devices with queues, what the device says is free. */
static tk_buffer *find_cached(const tk_device *device, tk_queue *queue, size_t capacity) {
    size_t most = capacity + capacity / (capacity < LARGE_BLOCK ? 4 : 8);
    search want = {device->driver, queue, capacity, most, 0};
    tk_buffer *block = search_cache(&device->memory, &want);
    if (block || !device->driver->queue_passed) return block;
    want.asks = MOST_ASKS;
    return search_cache(&device->memory, &want);
}

/* From here on others read its label, under the lock. */
static void hold(tk_memory *memory, tk_buffer *buffer) {
    buffer->label = NULL;
    buffer->previous = NULL;
    buffer->next = memory->held;
    if (memory->held) memory->held->previous = buffer;
    memory->held = buffer;
}

static void let_go(tk_memory *memory, tk_buffer *buffer) {
    if (buffer->next) buffer->next->previous = buffer->previous;
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else
        memory->held = buffer->next;
    buffer->next = buffer->previous = NULL;
}

/* Unlinks the oldest blocks until at most `bytes` are cached; gives them as a list through `next`.
 */
static tk_buffer *evict_down_to(tk_memory *memory, size_t bytes) {
    tk_buffer *evicted = NULL;
    while (memory->info.cache > bytes) {
        tk_buffer *block = memory->oldest;
        cache_take(memory, block);
        block->next = evicted;
        evicted = block;
    }
    return evicted;
}

/* ---- blocks, without the lock -----------------------------------------------------------------
 */

/* Errors of a wait are the device's and come up again where its work is waited for. */
static void free_block(tk_device *device, tk_buffer *buffer) {
    const tk_memory_hooks *hooks = &device->memory.hooks;
    for (int i = 0; i < buffer->n_marks && !inherited(device); i++)
        (void)device->driver->queue_wait(buffer->marks[i].queue, buffer->marks[i].ticket, NULL);
    if (device->driver->host_memory) SHOW(buffer->data, buffer->capacity);
    if (hooks->free)
        hooks->free(hooks->user, buffer->data, buffer->capacity);
    else
        device->driver->free(device->state, buffer->data, buffer->capacity);
    tk_free(buffer);
}

static void free_blocks(tk_device *device, tk_buffer *list) {
    while (list) {
        tk_buffer *next = list->next;
        free_block(device, list);
        list = next;
    }
}

static tk_buffer *new_block(tk_device *device, size_t capacity) {
    const tk_memory_hooks *hooks = &device->memory.hooks;
    tk_buffer *buffer = tk_calloc(1, sizeof *buffer);
    if (!buffer) return NULL;
    buffer->device = device;
    buffer->capacity = capacity;
    if (hooks->allocate)
        buffer->data = hooks->allocate(hooks->user, capacity, TK_MEMORY_ALIGNMENT);
    else
        buffer->data = device->driver->allocate(device->state, capacity);
    if (buffer->data) return buffer;
    tk_free(buffer);
    return NULL;
}

static void trace_memory(tk_device *device) {
    if (!tk_trace_on()) return;
    tk_memory_info info = tk_device_memory(device);
    char name[48];
    snprintf(name, sizeof name, "%s active", device->name);
    tk_trace_counter(name, (int64_t)info.active);
    snprintf(name, sizeof name, "%s cache", device->name);
    tk_trace_counter(name, (int64_t)info.cache);
}

/* ---- allocation -------------------------------------------------------------------------------
 */

static void raise_peak(tk_memory_info *info) {
    if (info->active > info->peak) info->peak = info->active;
}

static tk_buffer *take_from_cache(tk_device *device, tk_queue *queue, size_t capacity) {
    tk_memory *memory = &device->memory;
    tk_buffer *buffer = find_cached(device, queue, capacity);
    if (!buffer) return NULL;
    cache_take(memory, buffer);
    hold(memory, buffer);
    memory->info.active += buffer->capacity;
    memory->info.hits++;
    memory->holders++;
    raise_peak(&memory->info);
    return buffer;
}

/* Counts a block that is about to be made and makes room for it; false if the limit forbids it. */
static bool reserve(tk_memory *memory, size_t capacity, tk_buffer **out_evicted) {
    tk_memory_info *info = &memory->info;
    if (capacity > PTRDIFF_MAX || info->active > info->memory_limit ||
        capacity > info->memory_limit - info->active)
        return false;
    *out_evicted = evict_down_to(memory, info->memory_limit - info->active - capacity);
    info->active += capacity;
    info->misses++;
    memory->holders++;
    return true;
}

/* Ends what reserve began; NULL: no block could be made. */
static void settle(tk_memory *memory, size_t capacity, tk_buffer *made) {
    pthread_mutex_lock(&memory->lock);
    if (made) {
        hold(memory, made);
        raise_peak(&memory->info);
    } else {
        memory->info.active -= capacity;
        memory->holders--;
    }
    pthread_mutex_unlock(&memory->lock);
}

/* Who holds how much, by label. */
typedef struct holder {
    const char *label;
    size_t bytes, count;
} holder;

#define MOST_HOLDERS 32 /* further labels count as "others" */
#define SHOWN_HOLDERS 4

static void count_holder(holder *holders, int *count, const tk_buffer *buffer) {
    const char *label = buffer->label ? buffer->label : "unnamed";
    int at = 0;
    while (at < *count && strcmp(holders[at].label, label) != 0) at++;
    if (at == MOST_HOLDERS) at--;
    if (at == *count)
        holders[(*count)++] = (holder){at == MOST_HOLDERS - 1 ? "others" : label, 0, 0};
    holders[at].bytes += buffer->capacity;
    holders[at].count++;
}

static int largest_holder(const holder *holders, int count) {
    int largest = 0;
    for (int i = 1; i < count; i++)
        if (holders[i].bytes > holders[largest].bytes) largest = i;
    return largest;
}

/* Writes "; held: activations 120 bytes in 3, ...", the largest first. */
static void describe_holders(tk_device *device, char *text, size_t room) {
    holder holders[MOST_HOLDERS];
    int count = 0;
    pthread_mutex_lock(&device->memory.lock);
    for (const tk_buffer *at = device->memory.held; at; at = at->next)
        count_holder(holders, &count, at);
    pthread_mutex_unlock(&device->memory.lock);
    size_t length = 0;
    text[0] = 0;
    for (int shown = 0; shown < SHOWN_HOLDERS && shown < count; shown++) {
        holder *next = &holders[largest_holder(holders, count)];
        if (next->bytes == 0 || length >= room) return;
        length += (size_t)snprintf(text + length, room - length, "%s %s %zu bytes in %zu",
                                   shown ? "," : "; held:", next->label, next->bytes, next->count);
        next->bytes = 0;
    }
}

static tk_status fail_for_memory(tk_device *device, size_t bytes, const char *who) {
    tk_memory_info info = tk_device_memory(device);
    char holders[384], driver[96] = "";
    describe_holders(device, holders, sizeof holders);
    if (device->driver->describe_memory)
        device->driver->describe_memory(device->state, driver, sizeof driver);
    return tk_fail(TK_OUT_OF_MEMORY,
                   "%s: %zu bytes asked for, %s; %zu bytes active, %zu cached, limit %zu%s%s%s",
                   device->name, bytes, who, info.active, info.cache, info.memory_limit,
                   driver[0] ? "; the device has " : "", driver, holders);
}

static tk_buffer *block_from_system(tk_device *device, size_t capacity) {
    tk_buffer *buffer = new_block(device, capacity);
    if (!buffer) {
        tk_device_clear_cache(device);
        buffer = new_block(device, capacity);
    }
    settle(&device->memory, capacity, buffer);
    return buffer;
}

tk_status tk_buffer_new(tk_device *device, size_t bytes, tk_buffer **out_buffer) {
    return tk_buffer_new_on(device, NULL, bytes, out_buffer);
}

tk_status tk_buffer_new_on(tk_device *device, tk_queue *queue, size_t bytes,
                           tk_buffer **out_buffer) {
    *out_buffer = NULL;
    TK_TRY(tk_device_check(device));
    tk_memory *memory = &device->memory;
    size_t capacity = tk_buffer_capacity(bytes);
    tk_buffer *evicted = NULL;
    pthread_mutex_lock(&memory->lock);
    tk_buffer *buffer = take_from_cache(device, queue, capacity);
    bool allowed = buffer || reserve(memory, capacity, &evicted);
    pthread_mutex_unlock(&memory->lock);
    free_blocks(device, evicted);
    if (!allowed) return fail_for_memory(device, bytes, "more than the limit allows");
    if (!buffer) buffer = block_from_system(device, capacity);
    if (!buffer) return fail_for_memory(device, bytes, "the system has no more");
    atomic_store_explicit(&buffer->references, 1, memory_order_relaxed);
    buffer->bytes = bytes;
    buffer->written = (tk_event){0};
    buffer->home = queue;
    buffer->n_marks = 0;
    if (device->driver->host_memory) SHOW(buffer->data, bytes);
    trace_memory(device);
    *out_buffer = buffer;
    return TK_OK;
}

tk_status tk_buffer_wait(tk_buffer *buffer, const tk_wait *wait) {
    tk_device *device = buffer->device;
    const tk_driver *driver = device->driver;
    tk_mark marks[TK_BUFFER_MARKS + 1];
    int count = 0;
    TK_TRY(tk_device_check(device));
    if (buffer->home) marks[count++] = (tk_mark){buffer->home, driver->queue_ticket(buffer->home)};
    pthread_mutex_lock(&device->memory.lock);
    for (int i = 0; i < buffer->n_marks; i++) marks[count++] = buffer->marks[i];
    pthread_mutex_unlock(&device->memory.lock);
    for (int i = 0; i < count; i++)
        TK_TRY(driver->queue_wait(marks[i].queue, marks[i].ticket, wait));
    return TK_OK;
}

tk_status tk_buffer_wrap(tk_device *device, void *data, size_t bytes, void (*release)(void *owner),
                         void *owner, tk_buffer **out_buffer) {
    *out_buffer = NULL;
    TK_TRY(tk_device_check(device));
    tk_buffer *buffer = tk_calloc(1, sizeof *buffer);
    if (!buffer) return tk_fail(TK_OUT_OF_MEMORY, "%s: no memory for a buffer", device->name);
    atomic_store_explicit(&buffer->references, 1, memory_order_relaxed);
    buffer->device = device;
    buffer->data = data;
    buffer->bytes = bytes;
    buffer->release = release;
    buffer->owner = owner;
    pthread_mutex_lock(&device->memory.lock);
    device->memory.holders++;
    pthread_mutex_unlock(&device->memory.lock);
    *out_buffer = buffer;
    return TK_OK;
}

/* ---- references -------------------------------------------------------------------------------
 */

tk_buffer *tk_buffer_retain(tk_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

bool tk_buffer_unique(const tk_buffer *buffer) {
    return atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}

/* ---- queues -----------------------------------------------------------------------------------
 */

void tk_buffer_label(tk_buffer *buffer, const char *label) {
    if (inherited(buffer->device)) return;
    pthread_mutex_lock(&buffer->device->memory.lock);
    buffer->label = label;
    pthread_mutex_unlock(&buffer->device->memory.lock);
}

/* Notes a mark, under the lock; false when all places are taken by other queues. */
static bool note_mark(tk_buffer *buffer, tk_mark mark) {
    for (int i = 0; i < buffer->n_marks; i++)
        if (buffer->marks[i].queue == mark.queue) {
            buffer->marks[i].ticket = mark.ticket;
            return true;
        }
    if (buffer->n_marks == TK_BUFFER_MARKS) return false;
    buffer->marks[buffer->n_marks++] = mark;
    return true;
}

/* One place is kept for the home queue's mark. */
static bool note_use(tk_buffer *buffer, tk_mark mark) {
    bool noted = buffer->n_marks < TK_BUFFER_MARKS - 1;
    for (int i = 0; i < buffer->n_marks && !noted; i++)
        noted = buffer->marks[i].queue == mark.queue;
    return noted && note_mark(buffer, mark);
}

tk_status tk_buffer_used(tk_buffer *buffer, tk_queue *queue) {
    tk_device *device = buffer->device;
    const tk_driver *driver = device->driver;
    if (!queue || queue == buffer->home || buffer->capacity == 0) return TK_OK;
    TK_TRY(tk_device_check(device));
    tk_mark mark = {queue, driver->queue_ticket(queue)};
    pthread_mutex_lock(&device->memory.lock);
    bool noted = note_use(buffer, mark);
    tk_queue *other = buffer->marks[0].queue;
    pthread_mutex_unlock(&device->memory.lock);
    if (noted) return TK_OK;
    TK_TRY(driver->queue_follow(other, mark));
    pthread_mutex_lock(&device->memory.lock);
    note_mark(buffer, (tk_mark){other, driver->queue_ticket(other)});
    pthread_mutex_unlock(&device->memory.lock);
    return TK_OK;
}

static void end_foreign(tk_buffer *buffer) {
    tk_device *device = buffer->device;
    if (!buffer->device->driver->host_memory && !inherited(buffer->device))
        (void)tk_buffer_wait(buffer,
                             NULL); /* work on it may be under way; a lost device has none */
    if (buffer->release) buffer->release(buffer->owner);
    tk_free(buffer);
    if (!inherited(device)) tk_device_leave(device);
}

/* Puts the block into the cache and takes out what is then too much: itself if it alone is. */
static tk_buffer *cache_block(tk_memory *memory, tk_buffer *buffer) {
    memory->info.active -= buffer->capacity;
    let_go(memory, buffer);
    if (buffer->home)
        note_mark(buffer,
                  (tk_mark){buffer->home, buffer->device->driver->queue_ticket(buffer->home)});
    if (buffer->capacity > memory->info.cache_limit) return buffer;
    cache_put(memory, buffer);
    return evict_down_to(memory, memory->info.cache_limit);
}

static void end_block(tk_buffer *buffer) {
    tk_device *device = buffer->device;
    tk_memory *memory = &device->memory;
    if (device->driver->host_memory) HIDE(buffer->data, buffer->capacity);
    pthread_mutex_lock(&memory->lock);
    tk_buffer *evicted = cache_block(memory, buffer);
    bool leave_later = evicted || memory->holders == 1 || tk_trace_on();
    if (!leave_later) memory->holders--;
    pthread_mutex_unlock(&memory->lock);
    if (!leave_later) return;
    free_blocks(device, evicted);
    trace_memory(device);
    tk_device_leave(device);
}

void tk_buffer_release(tk_buffer *buffer) {
    if (!buffer) return;
    int64_t before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before != 1) return;
    if (buffer->capacity == 0)
        end_foreign(buffer);
    else if (inherited(buffer->device))
        free_block(buffer->device, buffer);
    else
        end_block(buffer);
}

/* ---- counters and limits ----------------------------------------------------------------------
 */

tk_memory_info tk_device_memory(tk_device *device) {
    if (!device) return (tk_memory_info){0};
    if (inherited(device)) return device->memory.info;
    pthread_mutex_lock(&device->memory.lock);
    tk_memory_info info = device->memory.info;
    pthread_mutex_unlock(&device->memory.lock);
    return info;
}

static size_t cache_room(const tk_memory_info *info) {
    size_t room = info->active < info->memory_limit ? info->memory_limit - info->active : 0;
    return room < info->cache_limit ? room : info->cache_limit;
}

static void set_limit(tk_device *device, size_t *limit, size_t bytes) {
    tk_memory *memory = &device->memory;
    if (inherited(device)) return;
    pthread_mutex_lock(&memory->lock);
    *limit = bytes;
    tk_buffer *evicted = evict_down_to(memory, cache_room(&memory->info));
    pthread_mutex_unlock(&memory->lock);
    free_blocks(device, evicted);
}

void tk_device_set_memory_limit(tk_device *device, size_t bytes) {
    if (!device) return;
    set_limit(device, &device->memory.info.memory_limit, bytes);
}

void tk_device_set_cache_limit(tk_device *device, size_t bytes) {
    if (!device) return;
    set_limit(device, &device->memory.info.cache_limit, bytes);
}

void tk_device_reset_peak(tk_device *device) {
    if (!device) return;
    if (inherited(device)) return;
    pthread_mutex_lock(&device->memory.lock);
    device->memory.info.peak = device->memory.info.active;
    pthread_mutex_unlock(&device->memory.lock);
}

void tk_device_clear_cache(tk_device *device) {
    if (!device) return;
    if (inherited(device)) return;
    pthread_mutex_lock(&device->memory.lock);
    tk_buffer *evicted = evict_down_to(&device->memory, 0);
    pthread_mutex_unlock(&device->memory.lock);
    free_blocks(device, evicted);
}
