/* A static layout seen as a grid: rows are mode 0, columns all other modes. Private. */
#ifndef LAYOUT_GRID_H
#define LAYOUT_GRID_H

#include "tiki/layout_draw.h"

/* Groups the modes behind the first into one and measures both. A layout of one mode has one row.
 * Refuses dynamic leaves and more than TK_DRAW_MAX_CELLS cells. */
tk_status tk_grid_load(const tk_composed *layout, tk_composed *out, int64_t *out_rows,
                       int64_t *out_columns);

/* The value of a cell as a number; TK_SHAPE_ERROR if it is a tuple. */
tk_status tk_grid_value(const tk_composed *grid, int64_t row, int64_t column, int64_t *out);

/* The value of a cell. */
tk_status tk_grid_cell(const tk_composed *grid, int64_t row, int64_t column, tk_tuple *out);

#endif
