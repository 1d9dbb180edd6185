/* What lowering of the tensor form asks of groups and tiles: who works, where elements lie, how
 * many of them lie together. */
#ifndef KERNEL_TILE_H
#define KERNEL_TILE_H

#include "kernel/analyse.h"
#include "kernel/pass.h"

typedef struct tk_klowerer {
    tk_kernel *kernel;
    tk_kfact_of *facts;
    uint32_t count; /* values that have facts */
} tk_klowerer;

/* Pieces of a collective operation that a thread writes out one by one; more are refused. */
#define TK_KMOST_WRITTEN_OUT 1024

/* ---- groups: by place in the words of the attribute ---- */

enum { TK_KG_THREAD, TK_KG_WARP, TK_KG_WARPGROUP, TK_KG_BLOCK, TK_KG_WARPS };

/* Threads of the group of an operation. */
int64_t tk_kgroup_size(const tk_kernel *kernel, const tk_kop *op);

/* The thread's number in the block, and in the group. */
tk_kvalue *tk_kgroup_thread(tk_kput *put);
tk_kvalue *tk_kgroup_member(tk_kput *put, const tk_kop *op);

/* ---- tiles: views and register tensors ---- */

const tk_layout *tk_ktile_layout(const tk_kernel *kernel, const tk_kvalue *tile);

/* Elements; -1 when it is not known. And of a mode, 1 for one that the layout does not have. */
int64_t tk_ktile_size(const tk_kernel *kernel, const tk_kvalue *tile);
int64_t tk_ktile_mode(const tk_layout *layout, int mode);

static inline bool tk_ktile_is_registers(const tk_kvalue *tile) {
    return tile->type.kind == TK_KT_REGISTERS;
}

/* The address of an element by its number, and by two coordinates. */
tk_kvalue *tk_ktile_locate(tk_kput *put, tk_kvalue *tile, tk_kvalue *number);
tk_kvalue *tk_ktile_locate_2(tk_kput *put, tk_kvalue *tile, tk_kvalue *row, tk_kvalue *column);

/* Elements from a number on, or their values; of a register tensor the number is a constant. */
tk_kvalue *tk_ktile_read(tk_kput *put, tk_kvalue *tile, tk_kvalue *at, int64_t lanes,
                         tk_kvalue *condition);
void tk_ktile_write(tk_kput *put, tk_kvalue *tile, tk_kvalue *at, tk_kvalue *value,
                    tk_kvalue *condition);

tk_ktype tk_ktile_lanes(const tk_kvalue *tile, int64_t lanes);

/* Bytes that divide the address of the first element, before a swizzle; 0: everything does. */
uint64_t tk_ktile_alignment(const tk_klowerer *w, const tk_kvalue *tile);

/* Whether, in the order of the layout, vectors of `lanes` elements at multiples of `lanes` lie in
 * one piece, and, in memory, aligned to their size. `layout` is the tile's, or another order of it.
 */
bool tk_ktile_is_together(const tk_klowerer *w, const tk_kvalue *tile, const tk_composed *layout,
                          int64_t lanes);

/* A view of two modes with them exchanged: its layout, and the view itself. False where the layout
 * has another form. */
bool tk_ktile_turned(const tk_kernel *kernel, const tk_kvalue *tile, tk_composed *out);
tk_kvalue *tk_ktile_turn(tk_kput *put, tk_kvalue *tile);

#endif
