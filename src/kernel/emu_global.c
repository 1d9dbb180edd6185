/* Global memory that a kernel writes: pages private to a group, merged in the order of groups.
 *
 * A group sees the buffers as they were when its wave began, and its own writes. When the wave ends
 * the bytes that groups wrote go to the buffers, in the order of groups, and what they touched is
 * compared: of each unit the group that wrote it and those that read it are kept for the whole
 * launch, and two groups that touch a unit, one of them writing, race (nothing orders groups, else
 * they were one).
 *
 * So no group sees another's writes early, no two threads of the host touch the same memory, and
 * the outcome does not depend on timing. The cost is a copy of each page and one pass over its
 * units.
 *
 * Rejected: locks around units (verdicts would depend on timing); logs of accesses (longer than
 * pages). */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "kernel/emu.h"

/* ---- a group's pages ---- */

#define RECENT 64

typedef struct tk_emu_pages {
    tk_emu_page **places; /* open addressing, at most half full */
    size_t capacity, used;
    tk_emu_page *recent[RECENT];
} tk_emu_pages;

static uint64_t key_of(uint32_t buffer, uint64_t offset) {
    return (uint64_t)buffer << TK_EMU_BUFFER_SHIFT | offset / TK_EMU_PAGE_BYTES;
}

static tk_emu_page **place_of(const tk_emu_pages *pages, uint64_t key) {
    size_t mask = pages->capacity - 1, at = (size_t)tk_hash_mix(key, 1) & mask;
    while (pages->places[at] && pages->places[at]->key != key) at = (at + 1) & mask;
    return &pages->places[at];
}

static bool grow(tk_emu_pages *pages) {
    tk_emu_pages wider = {.capacity = pages->capacity ? 2 * pages->capacity : 64};
    wider.places = tk_calloc(wider.capacity, sizeof(tk_emu_page *));
    if (!wider.places) return false;
    for (size_t i = 0; i < pages->capacity; i++)
        if (pages->places[i]) *place_of(&wider, pages->places[i]->key) = pages->places[i];
    tk_free(pages->places);
    pages->places = wider.places;
    pages->capacity = wider.capacity;
    return true;
}

static uint32_t cells_of_page(const tk_emu_launch *launch) {
    return TK_EMU_PAGE_BYTES / launch->program->global_unit;
}

static size_t page_size(const tk_emu_launch *launch) {
    return sizeof(tk_emu_page) + cells_of_page(launch) * sizeof(tk_emu_cell);
}

static tk_emu_page *new_page(const tk_emu_launch *launch, uint32_t buffer, uint64_t key,
                             uint64_t start) {
    const tk_emu_buffer *of = &launch->buffers[buffer];
    tk_emu_page *page = tk_emu_take(launch->pool, page_size(launch), false);
    uint64_t bytes = of->bytes - start < TK_EMU_PAGE_BYTES ? of->bytes - start : TK_EMU_PAGE_BYTES;
    if (!page) return NULL;
    page->key = key;
    memset(page->written, 0, sizeof page->written);
    memset(page->cells, 0, cells_of_page(launch) * sizeof(tk_emu_cell));
    memcpy(page->data, of->data + start, bytes);
    memset(page->data + bytes, 0, TK_EMU_PAGE_BYTES - bytes);
    return page;
}

static tk_emu_page *find_page(tk_emu_group *group, uint32_t buffer, uint64_t offset, uint64_t key) {
    tk_emu_pages *pages = group->pages;
    if (2 * (pages->used + 1) > pages->capacity && !grow(pages)) return NULL;
    tk_emu_page **place = place_of(pages, key);
    if (*place) return *place;
    *place = new_page(group->launch, buffer, key, offset / TK_EMU_PAGE_BYTES * TK_EMU_PAGE_BYTES);
    if (*place) pages->used++;
    return *place;
}

tk_emu_page *tk_emu_page_of(tk_emu_group *group, uint32_t buffer, uint64_t offset) {
    uint64_t key = key_of(buffer, offset);
    if (!group->pages) group->pages = tk_calloc(1, sizeof *group->pages);
    if (group->pages) {
        tk_emu_page **recent = &group->pages->recent[(key ^ key >> TK_EMU_BUFFER_SHIFT) % RECENT];
        if (*recent && (*recent)->key == key) return *recent;
        tk_emu_page *page = find_page(group, buffer, offset, key);
        if (page) return *recent = page;
    }
    group->status = TK_OUT_OF_MEMORY;
    return NULL;
}

/* ---- what all groups did ---- */

/* Group numbers plus one; ANY: several groups read. */
typedef struct history {
    uint32_t writer, reader;
    uint16_t write_op, read_op;
} history;

#define ANY UINT32_MAX

typedef struct record {
    uint64_t key;
    unsigned char before[TK_EMU_PAGE_BYTES]; /* as the page was when the launch began */
    history units[];
} record;

struct tk_emu_global {
    record **places;
    size_t capacity, used;
};

static record **record_place(const struct tk_emu_global *global, uint64_t key) {
    size_t mask = global->capacity - 1, at = (size_t)tk_hash_mix(key, 2) & mask;
    while (global->places[at] && global->places[at]->key != key) at = (at + 1) & mask;
    return &global->places[at];
}

static bool grow_records(struct tk_emu_global *global) {
    struct tk_emu_global wider = {.capacity = global->capacity ? 2 * global->capacity : 256};
    wider.places = tk_calloc(wider.capacity, sizeof(record *));
    if (!wider.places) return false;
    for (size_t i = 0; i < global->capacity; i++)
        if (global->places[i]) *record_place(&wider, global->places[i]->key) = global->places[i];
    tk_free(global->places);
    global->places = wider.places;
    global->capacity = wider.capacity;
    return true;
}

static uint32_t page_bytes(const tk_emu_launch *launch, uint64_t key, unsigned char **out_place) {
    const tk_emu_buffer *buffer = &launch->buffers[key >> TK_EMU_BUFFER_SHIFT];
    uint64_t at = (key & (((uint64_t)1 << TK_EMU_BUFFER_SHIFT) - 1)) * TK_EMU_PAGE_BYTES;
    *out_place = buffer->data + at;
    return buffer->bytes - at < TK_EMU_PAGE_BYTES ? (uint32_t)(buffer->bytes - at)
                                                  : TK_EMU_PAGE_BYTES;
}

static record *record_of(tk_emu_launch *launch, uint64_t key) {
    struct tk_emu_global *global = launch->global;
    if (2 * (global->used + 1) > global->capacity && !grow_records(global)) return NULL;
    record **place = record_place(global, key);
    if (*place) return *place;
    *place = tk_calloc(1, sizeof **place + cells_of_page(launch) * sizeof(history));
    if (!*place) return NULL;
    unsigned char *data;
    uint32_t bytes = page_bytes(launch, key, &data);
    memcpy((*place)->before, data, bytes);
    (*place)->key = key;
    global->used++;
    return *place;
}

tk_status tk_emu_global_create(tk_emu_launch *launch) {
    launch->global = tk_calloc(1, sizeof *launch->global);
    return launch->global ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for an emulation");
}

void tk_emu_global_release(tk_emu_launch *launch) {
    if (!launch->global) return;
    for (size_t i = 0; i < launch->global->capacity; i++) tk_free(launch->global->places[i]);
    tk_free(launch->global->places);
    tk_free(launch->global);
}

void tk_emu_global_exchange(tk_emu_launch *launch) {
    for (size_t i = 0; i < launch->global->capacity; i++) {
        record *page = launch->global->places[i];
        unsigned char *data, now[TK_EMU_PAGE_BYTES];
        if (!page) continue;
        uint32_t bytes = page_bytes(launch, page->key, &data);
        memcpy(now, data, bytes);
        memcpy(data, page->before, bytes);
        memcpy(page->before, now, bytes);
    }
}

bool tk_emu_page_is_unset(const tk_emu_launch *launch, const tk_emu_page *page, size_t first,
                          size_t count) {
    if (!launch->buffers[page->key >> TK_EMU_BUFFER_SHIFT].unset) return false;
    const record *past = launch->global->capacity ? *record_place(launch->global, page->key) : NULL;
    for (size_t i = first; i < first + count; i++)
        if (!page->cells[i].write && !(past && past->units[i].writer)) return true;
    return false;
}

/* ---- merging ---- */

/* The first block of a group. */
static void index_of_group(const tk_emu_launch *launch, uint32_t number, int64_t *out) {
    tk_emu_block_index(launch, (int64_t)number * launch->cluster, out);
}

typedef struct touched {
    tk_emu_group *group;
    uint64_t key;
    uint32_t unit; /* of the page */
} touched;

static void report(const touched *at, uint16_t op, uint16_t other_op, uint32_t other_group,
                   const char *words) {
    tk_emu_launch *launch = at->group->launch;
    const tk_emu_program *program = launch->program;
    char message[160];
    uint64_t page = at->key & (((uint64_t)1 << TK_EMU_BUFFER_SHIFT) - 1);
    snprintf(message, sizeof message, "%s at byte %llu of buffer %llu, by another block", words,
             (unsigned long long)(page * TK_EMU_PAGE_BYTES + at->unit * program->global_unit),
             (unsigned long long)(at->key >> TK_EMU_BUFFER_SHIFT));
    tk_emu_found found = {.kind = TK_KF_RACE_GLOBAL,
                          .op = program->ops.items[op],
                          .other_op = program->ops.items[other_op],
                          .message = message,
                          .count = 1,
                          .thread = -1,
                          .other_thread = -1};
    index_of_group(launch, (uint32_t)at->group->number, found.block);
    index_of_group(launch, other_group == ANY ? 0 : other_group - 1, found.other_block);
    tk_emu_find(&at->group->findings, &found);
}

static uint16_t reader_op(const tk_emu_group *group, const tk_emu_cell *cell) {
    return tk_emu_is_list(cell->read) ? group->readers.items[tk_emu_list_of(cell->read)].op
                                      : cell->read_op;
}

static void merge_cell(const touched *at, const tk_emu_cell *cell, history *past) {
    uint32_t own = (uint32_t)at->group->number + 1;
    uint16_t read_op = reader_op(at->group, cell);
    if (cell->write && past->writer && past->writer != own)
        report(at, cell->write_op, past->write_op, past->writer,
               "a write where another block wrote,");
    if (cell->write && past->reader && past->reader != own)
        report(at, cell->write_op, past->read_op, past->reader,
               "a write where another block read,");
    if (cell->read && past->writer && past->writer != own)
        report(at, read_op, past->write_op, past->writer, "a read where another block wrote,");
    if (cell->write) past->writer = own, past->write_op = cell->write_op;
    if (!cell->read) return;
    past->reader = past->reader && past->reader != own ? ANY : own;
    past->read_op = read_op;
}

/* Units that no group touched before: nothing to compare with. */
static bool merge_first(const tk_emu_group *group, const tk_emu_cell *cells, history *past,
                        uint32_t count) {
    uint32_t own = (uint32_t)group->number + 1, before = 0, lists = 0;
    for (uint32_t i = 0; i < count; i++) {
        before |= past[i].writer | past[i].reader;
        lists |= cells[i].read & TK_EMU_LIST;
    }
    if (before | lists) return false;
    for (uint32_t i = 0; i < count; i++)
        past[i] = (history){.writer = cells[i].write ? own : 0,
                            .reader = cells[i].read ? own : 0,
                            .write_op = cells[i].write_op,
                            .read_op = cells[i].read_op};
    return true;
}

static void merge_bytes(const tk_emu_page *page, unsigned char *to) {
    for (uint32_t word = 0; word < TK_EMU_PAGE_BYTES / 64; word++) {
        if (page->written[word] == UINT64_MAX)
            memcpy(to + 64 * word, page->data + 64 * word, 64);
        else
            for (uint64_t left = page->written[word]; left; left &= left - 1) {
                uint32_t byte = 64 * word + (uint32_t)__builtin_ctzll(left);
                to[byte] = page->data[byte];
            }
    }
}

static void merge_page(tk_emu_group *group, const tk_emu_page *page) {
    tk_emu_launch *launch = group->launch;
    record *past = record_of(launch, page->key);
    uint64_t number = page->key & (((uint64_t)1 << TK_EMU_BUFFER_SHIFT) - 1);
    touched at = {.group = group, .key = page->key};
    if (!past) {
        group->status = TK_OUT_OF_MEMORY;
        return;
    }
    merge_bytes(page, launch->buffers[page->key >> TK_EMU_BUFFER_SHIFT].data +
                          number * TK_EMU_PAGE_BYTES);
    if (merge_first(group, page->cells, past->units, cells_of_page(launch))) return;
    for (at.unit = 0; at.unit < cells_of_page(launch); at.unit++) {
        const tk_emu_cell *cell = &page->cells[at.unit];
        if (cell->write || cell->read) merge_cell(&at, cell, &past->units[at.unit]);
    }
}

static int compare_pages(const void *left, const void *right) {
    const tk_emu_page *a = *(tk_emu_page *const *)left, *b = *(tk_emu_page *const *)right;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* Sorted, so that findings come in one order. */
static size_t sort_pages(tk_emu_pages *pages) {
    size_t count = 0;
    for (size_t i = 0; i < pages->capacity; i++)
        if (pages->places[i]) pages->places[count++] = pages->places[i];
    qsort(pages->places, count, sizeof *pages->places, compare_pages);
    return count;
}

void tk_emu_commit(tk_emu_group *group) {
    tk_emu_pages *pages = group->pages;
    if (!pages) return;
    size_t count = pages->places ? sort_pages(pages) : 0;
    for (size_t i = 0; i < count; i++) {
        merge_page(group, pages->places[i]);
        tk_emu_give(group->launch->pool, pages->places[i], page_size(group->launch));
    }
    tk_free(pages->places);
    tk_free(pages);
    group->pages = NULL;
}
