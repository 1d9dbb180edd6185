/* Pictures of layouts as SVG, and what shared memory makes of an access pattern.
 *
 * Rows are mode 0, columns the other modes; heavier lines stand where an inner mode is full. All
 * functions are pure and print as snprintf does: at most `capacity` bytes into `text`, the length
 * that the whole picture has into *out_length, so a caller asks with a capacity of 0 first. Any
 * thread.
 *
 * Errors: TK_UNSUPPORTED for dynamic leaves, TK_SHAPE_ERROR for more cells than a picture can show
 * (TK_DRAW_MAX_CELLS), else as the functions of layout.h. */
#ifndef TIKI_LAYOUT_DRAW_H
#define TIKI_LAYOUT_DRAW_H

#include "tiki/layout.h"

TK_BEGIN_DECLS

#define TK_DRAW_MAX_CELLS 16384

/* A grid of the offsets, darker as they grow. */
TK_API tk_status tk_layout_draw(const tk_composed *layout, char *text, size_t capacity,
                                size_t *out_length);

/* The tile that a thread-value layout covers: `tv` maps (thread, value) to the integer coordinate
 * in `tile`, a shape of one or two modes; each cell shows its thread and value in the thread's
 * colour. */
TK_API tk_status tk_layout_draw_tv(const tk_layout *tv, const tk_tuple *tile, char *text,
                                   size_t capacity, size_t *out_length);

/* Two grids side by side; cells of different offsets have a red frame. The shapes have one size for
 * each mode (TK_SHAPE_ERROR). *out_differences counts the cells that differ (NULL if not wanted).
 */
TK_API tk_status tk_layout_draw_pair(const tk_composed *a, const tk_composed *b, char *text,
                                     size_t capacity, size_t *out_length, int64_t *out_differences);

/* An access pattern on the 32 banks of shared memory, one row for each pass; a cell names the lanes
 * that the bank serves. The pattern is read as tk_layout_count_banks reads it. */
TK_API tk_status tk_layout_draw_banks(const tk_composed *pattern, int bytes, char *text,
                                      size_t capacity, size_t *out_length);

/* What an access pattern costs. */
typedef struct tk_bank_report {
    int64_t accesses;  /* instructions of a warp */
    int64_t passes;    /* passes over the banks that they take */
    int64_t least;     /* passes of as many bytes without conflicts */
    int64_t conflicts; /* passes - least */
} tk_bank_report;

/* Counts bank conflicts. Mode 0 of `pattern` is the lane (more than 32 are further warps), the
 * other modes are accesses one after the other; the value is the place accessed, in units of
 * `bytes` (1, 2, 4, 8 or 16), which is also what each lane moves. 32 banks of 4 bytes; lanes on one
 * word share it; 8 bytes a lane go by half warps, 16 by quarters. TK_INVALID_ARGUMENT for other
 * widths. */
TK_API tk_status tk_layout_count_banks(const tk_composed *pattern, int bytes, tk_bank_report *out);

TK_END_DECLS

#endif
