/* Addresses to memory: bounds, the blocks of a cluster, pages. */
#include "kernel/emu_memory.h"

bool tk_emu_shared_check(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         uint64_t bytes) {
    const tk_emu_block *own = warp->block;
    uint64_t rank = address >> TK_EMU_RANK_SHIFT, size = (uint64_t)own->shared_bytes,
             at = tk_emu_shared_offset(address);
    bool near = rank <= own->launch->cluster && at <= size && size - at >= bytes;
    if (near && tk_emu_shared_block(warp, address)->live) return true;
    if (near)
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                      "shared memory of block %llu of the cluster, which has ended",
                      (unsigned long long)rank - 1);
    else
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                      "%llu bytes at %lld of %llu bytes of shared memory",
                      (unsigned long long)bytes, (long long)at, (unsigned long long)size);
    return false;
}

const tk_emu_buffer *tk_emu_buffer_at(const tk_emu_launch *launch, uint64_t address,
                                      uint64_t *out_offset) {
    uint64_t number = (address >> TK_EMU_BUFFER_SHIFT) - 1;
    *out_offset = address & (((uint64_t)1 << TK_EMU_BUFFER_SHIFT) - 1);
    return number < launch->n_buffers ? &launch->buffers[number] : NULL;
}

bool tk_emu_global_check(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         uint64_t bytes, bool write) {
    uint64_t offset;
    const tk_emu_buffer *buffer = tk_emu_buffer_at(warp->block->launch, address, &offset);
    if (!buffer || offset > buffer->bytes || buffer->bytes - offset < bytes) {
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                      "%llu bytes at address 0x%llx, %s%llu bytes", (unsigned long long)bytes,
                      (unsigned long long)address, buffer ? "in a buffer of " : "in no buffer, ",
                      (unsigned long long)(buffer ? buffer->bytes : 0));
        return false;
    }
    if (!write || (buffer->access & TK_KACCESS_WRITE)) return true;
    tk_emu_report(warp, insn, lane, TK_KF_EFFECT, "address 0x%llx is in a buffer that is only read",
                  (unsigned long long)address);
    return false;
}

tk_emu_page *tk_emu_global_at(tk_emu_warp *warp, uint64_t address, unsigned char **out_data) {
    uint64_t offset;
    tk_emu_launch *launch = warp->block->launch;
    const tk_emu_buffer *buffer = tk_emu_buffer_at(launch, address, &offset);
    if (buffer->access == TK_KACCESS_READ) {
        *out_data = buffer->data + offset;
        return NULL;
    }
    const tk_emu_buffer *whole = &launch->buffers[buffer->number];
    uint64_t at = offset + (uint64_t)(buffer->data - whole->data);
    tk_emu_page *page = tk_emu_page_of(warp->block->group, buffer->number, at);
    *out_data = page ? page->data + at % TK_EMU_PAGE_BYTES : NULL;
    return page;
}

void tk_emu_mark_written(tk_emu_page *page, size_t at, uint32_t bytes) {
    for (size_t end = at + bytes, upto; at < end; at = upto) {
        upto = (at | 63) + 1 < end ? (at | 63) + 1 : end;
        uint64_t bits =
            upto - at == 64 ? UINT64_MAX : (((uint64_t)1 << (upto - at)) - 1) << at % 64;
        page->written[at / 64] |= bits;
    }
}
