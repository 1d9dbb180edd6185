/* Runs of bytes of asynchronous copies. In global memory they are cut where pages end. */
#include "kernel/emu_span.h"

#include "kernel/emu_async.h"
#include "kernel/emu_atomic.h"
#include "kernel/emu_memory.h"

/* A part of a run in one page, or in a buffer that is read in place. */
typedef struct part {
    unsigned char *data; /* NULL: memory is out */
    tk_emu_page *page;
    size_t at;
    uint64_t bytes;
    tk_emu_access access;
} part;

static part part_at(const tk_emu_copier *of, uint64_t address, uint64_t bytes) {
    part p = {.bytes = bytes};
    p.page = tk_emu_global_at(of->warp, address, &p.data);
    if (!p.page) return p;
    size_t unit = of->warp->block->launch->program->global_unit;
    p.at = (size_t)(p.data - p.page->data);
    if (p.bytes > TK_EMU_PAGE_BYTES - p.at) p.bytes = TK_EMU_PAGE_BYTES - p.at;
    p.access = (tk_emu_access){.warp = of->warp,
                               .insn = of->insn,
                               .cells = p.page->cells + p.at / unit,
                               .count = (uint32_t)((p.at % unit + p.bytes + unit - 1) / unit),
                               .race = TK_KF_RACE_GLOBAL,
                               .where = "global memory",
                               .address = address};
    return p;
}

void tk_emu_span_load_global(const tk_emu_copier *of, uint64_t address, uint64_t bytes, void *to) {
    unsigned char *out = to;
    for (uint64_t done = 0; done < bytes;) {
        part p = part_at(of, address + done, bytes - done);
        if (!p.data) return;
        if (p.page) tk_emu_note_agent_read(&p.access, &of->by);
        memcpy(out + done, p.data, p.bytes);
        done += p.bytes;
    }
    of->warp->block->totals.read_bytes += bytes;
}

void tk_emu_span_store_global(const tk_emu_copier *of, uint64_t address, uint64_t bytes,
                              const void *from) {
    const unsigned char *in = from;
    for (uint64_t done = 0; done < bytes;) {
        part p = part_at(of, address + done, bytes - done);
        if (!p.page || !p.data) return;
        tk_emu_note_agent_write(&p.access, &of->by);
        memcpy(p.data, in + done, p.bytes);
        tk_emu_mark_written(p.page, p.at, (uint32_t)p.bytes);
        done += p.bytes;
    }
    of->warp->block->totals.written_bytes += bytes;
}

void tk_emu_span_reduce_global(const tk_emu_copier *of, uint64_t address, uint64_t bytes,
                               tk_kscalar scalar, const void *from) {
    const unsigned char *in = from;
    int update = (int)tk_kop_attr(of->insn->op, TK_KA_update);
    uint64_t element = (uint64_t)tk_kscalar_bytes(scalar);
    for (uint64_t done = 0; done < bytes;) {
        part p = part_at(of, address + done, bytes - done);
        if (!p.page || !p.data) return;
        tk_emu_note_agent_write(&p.access, &of->by);
        for (uint64_t at = 0; at < p.bytes; at += element)
            (void)tk_emu_update(scalar, update, p.data + at, in + done + at, NULL);
        tk_emu_mark_written(p.page, p.at, (uint32_t)p.bytes);
        done += p.bytes;
    }
    of->warp->block->totals.written_bytes += bytes;
}

static unsigned char *shared_data(const tk_emu_copier *of, uint64_t address) {
    return tk_emu_shared_block(of->warp, address)->shared + tk_emu_shared_offset(address);
}

void tk_emu_span_load_shared(const tk_emu_copier *of, uint64_t address, uint64_t bytes, void *to) {
    tk_emu_shared_note(of->warp, of->insn, address, bytes, &of->by, false);
    memcpy(to, shared_data(of, address), bytes);
}

void tk_emu_span_store_shared(const tk_emu_copier *of, uint64_t address, uint64_t bytes,
                              const void *from) {
    tk_emu_shared_note(of->warp, of->insn, address, bytes, &of->by, true);
    memcpy(shared_data(of, address), from, bytes);
}
