/* What a card would move for an access of a warp: sectors of global memory, and passes over the
 * banks of shared memory. */
#include "kernel/emu_memory.h"

enum { SECTOR = 32, BANKS = 32, WORD = 4 };

/* Lanes mostly go upwards, so a sector that was seen is near the end of the list. */
static uint64_t count_sectors(const tk_emu_request *r, uint32_t mask) {
    uint64_t sectors[TK_EMU_LANES];
    uint32_t count = 0;
    if (r->run)
        return (r->address[0] % SECTOR + TK_EMU_LANES * (uint64_t)r->bytes + SECTOR - 1) / SECTOR;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t sector = r->address[__builtin_ctz(left)] / SECTOR;
        uint32_t i = count;
        while (i > 0 && sectors[i - 1] != sector) i--;
        if (!i) sectors[count++] = sector;
    }
    return count;
}

/* Words that each bank must serve, the same word once. */
typedef struct banks {
    uint8_t depth[BANKS];
    uint32_t most;
    uint64_t words[BANKS][4 * TK_EMU_LANES];
} banks;

static void serve(banks *b, uint64_t word) {
    uint32_t bank = word % BANKS, depth = b->depth[bank];
    for (uint32_t i = 0; i < depth; i++)
        if (b->words[bank][i] == word) return;
    b->words[bank][depth] = word;
    b->depth[bank] = (uint8_t)(depth + 1);
    if (depth + 1 > b->most) b->most = depth + 1;
}

/* Lanes are served in groups of 128 bytes: a warp, halves, quarters. */
static uint64_t count_conflicts(const tk_emu_request *r, uint32_t mask) {
    uint32_t group = r->bytes <= WORD ? TK_EMU_LANES : 128 / r->bytes;
    uint64_t conflicts = 0;
    banks b;
    if (r->run) return 0;
    for (uint32_t first = 0; first < TK_EMU_LANES; first += group) {
        uint32_t lanes = group == TK_EMU_LANES ? mask : mask & ((1u << group) - 1) << first;
        if (!lanes) continue;
        memset(b.depth, 0, sizeof b.depth);
        b.most = 0;
        for (; lanes; lanes &= lanes - 1)
            for (uint32_t byte = 0; byte < r->bytes; byte += WORD)
                serve(&b, (r->address[__builtin_ctz(lanes)] + byte) / WORD);
        conflicts += b.most - 1;
    }
    return conflicts;
}

void tk_emu_count_sectors(const tk_emu_request *r, uint32_t mask) {
    if (mask) r->warp->block->counters[r->insn->number].sectors += count_sectors(r, mask);
}

void tk_emu_count_request(const tk_emu_request *r, uint32_t mask) {
    tk_emu_block *block = r->warp->block;
    tk_emu_counter *counter = &block->counters[r->insn->number];
    if (r->shared) {
        counter->conflicts += count_conflicts(r, mask);
        return;
    }
    counter->sectors += count_sectors(r, mask);
    *(r->write ? &block->totals.written_bytes : &block->totals.read_bytes) +=
        (uint64_t)__builtin_popcount(mask) * r->bytes;
}
