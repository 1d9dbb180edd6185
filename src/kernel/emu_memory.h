/* Places in memory by address: what loads and stores, atomic operations and asynchronous copies
 * share. */
#ifndef KERNEL_EMU_MEMORY_H
#define KERNEL_EMU_MEMORY_H

#include "kernel/emu.h"

/* ---- shared memory ---- */

/* An address in shared memory is the offset plus TK_EMU_SHARED_BASE; above that, the rank of a
 * block of the cluster plus one, or 0 for the block itself. */
#define TK_EMU_RANK_SHIFT 20

static inline uint64_t tk_emu_shared_offset(uint64_t address) {
    return (address & (((uint64_t)1 << TK_EMU_RANK_SHIFT) - 1)) - TK_EMU_SHARED_BASE;
}

/* The block whose memory the address is in; the address must have been checked. */
static inline tk_emu_block *tk_emu_shared_block(const tk_emu_warp *warp, uint64_t address) {
    uint64_t rank = address >> TK_EMU_RANK_SHIFT;
    tk_emu_block *own = warp->block;
    return rank ? own + ((int64_t)rank - 1 - own->rank) : own;
}

/* Whether the bytes are in shared memory of a block of the cluster that still runs; else reports.
 */
bool tk_emu_shared_check(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         uint64_t bytes);

/* ---- global memory ---- */

const tk_emu_buffer *tk_emu_buffer_at(const tk_emu_launch *launch, uint64_t address,
                                      uint64_t *out_offset);

/* Whether the bytes are in one buffer, and it may be written if that is wanted; else reports. */
bool tk_emu_global_check(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         uint64_t bytes, bool write);

/* The memory at a checked address and the page that it is in: NULL for a buffer that is read in
 * place. *out_data is NULL when memory is out. Pages end at multiples of TK_EMU_PAGE_BYTES. */
tk_emu_page *tk_emu_global_at(tk_emu_warp *warp, uint64_t address, unsigned char **out_data);

void tk_emu_mark_written(tk_emu_page *page, size_t at, uint32_t bytes);

/* ---- accesses of a warp ---- */

typedef struct tk_emu_request {
    tk_emu_warp *warp;
    const tk_emu_insn *insn;
    uint64_t address[TK_EMU_LANES];
    uint32_t bytes;   /* of a lane */
    uint32_t element; /* bytes of an element */
    bool shared;
    bool write;
    bool run;  /* all lanes, one behind the other without a gap */
    bool near; /* all in the block's own shared memory */
} tk_emu_request;

/* Counts what the lanes move (emu_traffic.c): all of a request, or sectors of global memory alone.
 */
void tk_emu_count_request(const tk_emu_request *r, uint32_t mask);
void tk_emu_count_sectors(const tk_emu_request *r, uint32_t mask);

/* Where an access is. `cells` is NULL for a buffer that is read in place, `page` also for shared
 * memory. */
typedef struct tk_emu_place {
    unsigned char *data;
    tk_emu_cell *cells;
    tk_emu_page *page;
    size_t at; /* in the page */
} tk_emu_place;

#endif
