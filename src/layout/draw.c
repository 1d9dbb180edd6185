/* SVG pictures of layouts.
 *
 * A picture is a title, row and column numbers, one rectangle and one text a cell, and heavier
 * lines where an inner mode is full. Nothing depends on fonts being measured: cells are as wide as
 * their longest label has characters. Written as text into a caller's buffer like everything that
 * prints here. */
#include <stdarg.h>
#include <stdio.h>

#include "layout/banks.h"
#include "layout/grid.h"
#include "layout/term.h"
#include "layout/tree.h"

enum { CELL_HEIGHT = 24, CHARACTER = 7, MARGIN = 34, TITLE = 30 };

/* -- Grids -- */

tk_status tk_grid_load(const tk_composed *layout, tk_composed *out, int64_t *out_rows,
                       int64_t *out_columns) {
    TK_NEED(layout);
    tk_layout columns;
    tk_term rows, size;
    int rank = tk_layout_rank(&layout->outer);
    TK_TRY(tk_check_layout(&layout->outer, "layout"));
    if (!tk_layout_is_static(&layout->outer) ||
        (layout->inner == TK_INNER_LAYOUT && !tk_layout_is_static(&layout->layout)) ||
        !tk_tuple_is_static(&layout->offset))
        return tk_fail(TK_UNSUPPORTED, "a picture needs a static layout");
    *out = *layout;
    if (rank == 0 || layout->outer.node[0] == TK_NODE_LEAF || rank == 1) {
        tk_layout_clear(&out->outer);
        tk_put_node(&out->outer, 2);
        tk_put_unit(&out->outer);
        tk_put_part(&out->outer, tk_part_of(&layout->outer));
        TK_TRY(tk_layout_finish(&out->outer));
    } else {
        TK_TRY(tk_layout_group(&layout->outer, 1, rank, &out->outer));
    }
    TK_TRY(tk_layout_mode(&out->outer, 0, &columns));
    TK_TRY(tk_layout_size(&columns, &rows));
    TK_TRY(tk_layout_size(&out->outer, &size));
    if (size.value > TK_DRAW_MAX_CELLS)
        return tk_fail(TK_SHAPE_ERROR, "%lld cells: a picture has at most %d",
                       (long long)size.value, TK_DRAW_MAX_CELLS);
    *out_rows = rows.value;
    *out_columns = size.value / rows.value;
    return TK_OK;
}

tk_status tk_grid_cell(const tk_composed *grid, int64_t row, int64_t column, tk_tuple *out) {
    int64_t place[2] = {row, column};
    tk_tuple coord;
    TK_TRY(tk_tuple_from_ints(place, 2, &coord));
    return tk_composed_eval(grid, &coord, out);
}

tk_status tk_grid_value(const tk_composed *grid, int64_t row, int64_t column, int64_t *out) {
    tk_tuple value;
    *out = 0;
    TK_TRY(tk_grid_cell(grid, row, column, &value));
    if (value.node[0] != TK_NODE_LEAF)
        return tk_fail(TK_SHAPE_ERROR, "the layout gives coordinates, not offsets");
    *out = value.leaf[0].value;
    return TK_OK;
}

/* -- Writing -- */

typedef struct canvas {
    char *text;
    size_t capacity;
    size_t length;
} canvas;

static void put(canvas *c, const char *text) {
    for (; *text; text++) {
        if (c->length + 1 < c->capacity) c->text[c->length] = *text;
        c->length++;
    }
}

/* Text as XML text. */
static void put_escaped(canvas *c, const char *text) {
    char one[2] = {0, 0};
    for (; *text; text++) {
        one[0] = *text;
        put(c, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : one);
    }
}

TK_PRINTF(2, 3) static void putf(canvas *c, const char *format, ...);

static void putf(canvas *c, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put(c, line);
}

static void finish(canvas *c, size_t *out_length) {
    put(c, "</svg>\n");
    if (c->capacity) c->text[c->length < c->capacity ? c->length : c->capacity - 1] = 0;
    *out_length = c->length;
}

static void begin(canvas *c, int64_t width, int64_t height) {
    putf(c,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" height=\"%lld\" "
         "font-family=\"monospace\" font-size=\"11\" text-anchor=\"middle\">\n"
         "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
         (long long)width, (long long)height);
}

static void put_title(canvas *c, int64_t x, const char *title) {
    putf(c, "<text x=\"%lld\" y=\"18\" text-anchor=\"start\" font-size=\"12\">", (long long)x);
    put_escaped(c, title);
    put(c, "</text>\n");
}

/* Where a grid lies. */
typedef struct frame {
    int64_t x, y, rows, columns, cell;
} frame;

static int64_t frame_width(const frame *f) { return MARGIN + f->columns * f->cell + 8; }
static int64_t frame_height(const frame *f) { return f->y + f->rows * CELL_HEIGHT + 8; }

static void put_cell(canvas *c, const frame *f, int64_t row, int64_t column, unsigned fill,
                     const char *label) {
    int64_t x = f->x + column * f->cell, y = f->y + row * CELL_HEIGHT;
    unsigned light = (fill >> 16 & 255) * 3 + (fill >> 8 & 255) * 6 + (fill & 255);
    putf(c,
         "<rect x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%d\" fill=\"#%06x\" stroke=\"#999\" "
         "stroke-width=\"0.5\"/>",
         (long long)x, (long long)y, (long long)f->cell, CELL_HEIGHT, fill);
    putf(c, "<text x=\"%lld\" y=\"%lld\" fill=\"%s\">", (long long)(x + f->cell / 2),
         (long long)(y + 16), light < 1300 ? "white" : "black");
    put_escaped(c, label);
    put(c, "</text>\n");
}

static void put_numbers(canvas *c, const frame *f) {
    put(c, "<g fill=\"#666\" font-size=\"10\">\n");
    for (int64_t i = 0; i < f->columns; i++)
        putf(c, "<text x=\"%lld\" y=\"%lld\">%lld</text>",
             (long long)(f->x + i * f->cell + f->cell / 2), (long long)(f->y - 5), (long long)i);
    for (int64_t i = 0; i < f->rows; i++)
        putf(c, "<text x=\"%lld\" y=\"%lld\">%lld</text>", (long long)(f->x - 14),
             (long long)(f->y + i * CELL_HEIGHT + 16), (long long)i);
    put(c, "\n</g>\n");
}

static void put_line(canvas *c, int64_t x1, int64_t y1, int64_t x2, int64_t y2) {
    putf(c,
         "<line x1=\"%lld\" y1=\"%lld\" x2=\"%lld\" y2=\"%lld\" stroke=\"black\" "
         "stroke-width=\"1.5\"/>\n",
         (long long)x1, (long long)y1, (long long)x2, (long long)y2);
}

/* Heavier lines where the first leaf of a mode is full, unless it is the whole mode. */
static void put_lines(canvas *c, const frame *f, const tk_layout *outer) {
    tk_part rows = tk_part_mode(tk_part_of(outer), 0), columns = tk_part_next(rows);
    int64_t bottom = f->y + f->rows * CELL_HEIGHT, right = f->x + f->columns * f->cell;
    int64_t every = tk_tree_leaves(rows.node) ? rows.leaf[0].shape.value : 1;
    for (int64_t i = 0; i <= f->rows; i += every > 1 ? every : f->rows)
        put_line(c, f->x, f->y + i * CELL_HEIGHT, right, f->y + i * CELL_HEIGHT);
    every = tk_tree_leaves(columns.node) ? columns.leaf[0].shape.value : 1;
    for (int64_t i = 0; i <= f->columns; i += every > 1 ? every : f->columns)
        put_line(c, f->x + i * f->cell, f->y, f->x + i * f->cell, bottom);
}

/* From nearly white to deep blue. */
static unsigned shade(int64_t value, int64_t most) {
    double part = most > 0 ? (double)value / (double)most : 0;
    if (part < 0) part = 0;
    unsigned red = (unsigned)(240 - part * 212), green = (unsigned)(246 - part * 160);
    unsigned blue = (unsigned)(255 - part * 100);
    return red << 16 | green << 8 | blue;
}

/* Colours far apart for neighbouring numbers. */
static unsigned hue(int64_t number) {
    static const unsigned colours[16] = {0xa8d5ff, 0xffd59e, 0xb9e6b0, 0xf5b7d0, 0xd9c8f5, 0xfff2a6,
                                         0xa6e3dd, 0xf7c1b0, 0xc9d3dd, 0xdcefa0, 0xe7b8f0, 0x9fd0c0,
                                         0xffc9c9, 0xb7c4ff, 0xe3d3b0, 0xbfe9ff};
    return colours[number % 16];
}

static int64_t cell_width(size_t characters) {
    int64_t width = (int64_t)characters * CHARACTER + 8;
    return width < 28 ? 28 : width;
}

/* -- Offsets -- */

/* Measures the labels and the largest offset of a grid. */
static tk_status measure(const tk_composed *grid, frame *f, int64_t *out_most) {
    size_t longest = 1;
    tk_tuple value;
    *out_most = 0;
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t column = 0; column < f->columns; column++) {
            TK_TRY(tk_grid_cell(grid, row, column, &value));
            size_t length = tk_tuple_print(&value, NULL, 0);
            if (length > longest) longest = length;
            if (value.node[0] == TK_NODE_LEAF && value.leaf[0].value > *out_most)
                *out_most = value.leaf[0].value;
        }
    f->cell = cell_width(longest);
    return TK_OK;
}

static tk_status put_offsets(canvas *c, const tk_composed *grid, const frame *f, int64_t most) {
    char label[256];
    tk_tuple value;
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t column = 0; column < f->columns; column++) {
            TK_TRY(tk_grid_cell(grid, row, column, &value));
            bool number = value.node[0] == TK_NODE_LEAF;
            tk_tuple_print(&value, label, sizeof label);
            unsigned fill = number ? shade(value.leaf[0].value, most) : hue(row + column);
            put_cell(c, f, row, column, fill, label);
        }
    put_numbers(c, f);
    put_lines(c, f, &grid->outer);
    return TK_OK;
}

static void title_of(const tk_composed *layout, char *text, size_t capacity) {
    tk_composed_print(layout, text, capacity);
}

tk_status tk_layout_draw(const tk_composed *layout, char *text, size_t capacity,
                         size_t *out_length) {
    TK_NEED(out_length);
    canvas c = {text, capacity, 0};
    frame f = {MARGIN, TITLE + 16, 0, 0, 0};
    tk_composed grid;
    int64_t most;
    char title[4096];
    TK_TRY(tk_grid_load(layout, &grid, &f.rows, &f.columns));
    TK_TRY(measure(&grid, &f, &most));
    title_of(layout, title, sizeof title);
    int64_t width = frame_width(&f), wanted = (int64_t)strlen(title) * 8 + 20;
    begin(&c, width > wanted ? width : wanted, frame_height(&f));
    put_title(&c, 8, title);
    TK_TRY(put_offsets(&c, &grid, &f, most));
    finish(&c, out_length);
    return TK_OK;
}

/* -- Two layouts -- */

static tk_status put_differences(canvas *c, const tk_composed *a, const tk_composed *b,
                                 const frame *left, const frame *right, int64_t *count) {
    tk_tuple x, y;
    for (int64_t row = 0; row < left->rows; row++)
        for (int64_t column = 0; column < left->columns; column++) {
            TK_TRY(tk_grid_cell(a, row, column, &x));
            TK_TRY(tk_grid_cell(b, row, column, &y));
            if (tk_tuple_equal(&x, &y)) continue;
            ++*count;
            for (int i = 0; i < 2; i++) {
                const frame *f = i ? right : left;
                putf(c,
                     "<rect x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%d\" fill=\"none\" "
                     "stroke=\"#d00000\" stroke-width=\"2\"/>\n",
                     (long long)(f->x + column * f->cell + 1),
                     (long long)(f->y + row * CELL_HEIGHT + 1), (long long)(f->cell - 2),
                     CELL_HEIGHT - 2);
            }
        }
    return TK_OK;
}

tk_status tk_layout_draw_pair(const tk_composed *a, const tk_composed *b, char *text,
                              size_t capacity, size_t *out_length, int64_t *out_differences) {
    TK_NEED(out_length);
    canvas c = {text, capacity, 0};
    frame left = {MARGIN, TITLE + 16, 0, 0, 0}, right = left;
    tk_composed grid_a, grid_b;
    int64_t most_a, most_b, differences = 0;
    char title[4096];
    TK_TRY(tk_grid_load(a, &grid_a, &left.rows, &left.columns));
    TK_TRY(tk_grid_load(b, &grid_b, &right.rows, &right.columns));
    if (left.rows != right.rows || left.columns != right.columns)
        return tk_fail(TK_SHAPE_ERROR, "%lld by %lld cells beside %lld by %lld",
                       (long long)left.rows, (long long)left.columns, (long long)right.rows,
                       (long long)right.columns);
    TK_TRY(measure(&grid_a, &left, &most_a));
    TK_TRY(measure(&grid_b, &right, &most_b));
    int64_t most = most_a > most_b ? most_a : most_b, first = frame_width(&left);
    title_of(a, title, sizeof title);
    int64_t wanted = (int64_t)strlen(title) * 8 + 20;
    if (wanted > first) first = wanted;
    right.x = first + MARGIN;
    title_of(b, title, sizeof title);
    int64_t second = frame_width(&right);
    wanted = (int64_t)strlen(title) * 8 + 20;
    begin(&c, first + (second > wanted ? second : wanted), frame_height(&left));
    put_title(&c, first + 8, title);
    title_of(a, title, sizeof title);
    put_title(&c, 8, title);
    TK_TRY(put_offsets(&c, &grid_a, &left, most));
    TK_TRY(put_offsets(&c, &grid_b, &right, most));
    TK_TRY(put_differences(&c, &grid_a, &grid_b, &left, &right, &differences));
    if (out_differences) *out_differences = differences;
    finish(&c, out_length);
    return TK_OK;
}

/* -- Thread-value layouts -- */

/* Who sits in a cell of the tile: the first (thread, value), and how many there are. */
typedef struct seat {
    int32_t thread, value, count;
} seat;

static tk_status seat_all(const tk_composed *grid, int64_t threads, int64_t values, seat *seats,
                          int64_t cells) {
    for (int64_t value = 0; value < values; value++)
        for (int64_t thread = 0; thread < threads; thread++) {
            int64_t at;
            TK_TRY(tk_grid_value(grid, thread, value, &at));
            if (at < 0 || at >= cells)
                return tk_fail(TK_INDEX_ERROR,
                               "thread %lld value %lld is at %lld, outside the tile "
                               "of %lld",
                               (long long)thread, (long long)value, (long long)at,
                               (long long)cells);
            if (seats[at].count++) continue;
            seats[at].thread = (int32_t)thread;
            seats[at].value = (int32_t)value;
        }
    return TK_OK;
}

static void put_seats(canvas *c, const frame *f, const seat *seats) {
    char label[64];
    for (int64_t column = 0; column < f->columns; column++)
        for (int64_t row = 0; row < f->rows; row++) {
            const seat *s = &seats[row + column * f->rows];
            snprintf(label, sizeof label, "T%d V%d%s", (int)s->thread, (int)s->value,
                     s->count > 1 ? "+" : "");
            put_cell(c, f, row, column, s->count ? hue(s->thread) : 0xffffff,
                     s->count ? label : "");
        }
}

static tk_status tile_extents(const tk_tuple *tile, int64_t *out_rows, int64_t *out_columns) {
    tk_tuple each;
    TK_TRY(tk_check_tuple(tile, "tile"));
    TK_TRY(tk_tuple_product_each(tile, &each));
    bool fits = each.leaf_count >= 1 && each.leaf_count <= 2 && tk_tuple_is_static(&each);
    for (int i = 0; i < each.leaf_count && fits; i++)
        fits = each.leaf[i].value >= 1 && each.leaf[i].value <= TK_DRAW_MAX_CELLS;
    *out_rows = fits ? each.leaf[0].value : 0;
    *out_columns = fits && each.leaf_count == 2 ? each.leaf[1].value : 1;
    if (!fits || *out_rows * *out_columns > TK_DRAW_MAX_CELLS)
        return tk_fail(TK_SHAPE_ERROR,
                       "the tile needs one or two static modes and at most %d cells",
                       TK_DRAW_MAX_CELLS);
    return TK_OK;
}

tk_status tk_layout_draw_tv(const tk_layout *tv, const tk_tuple *tile, char *text, size_t capacity,
                            size_t *out_length) {
    TK_NEED(out_length);
    TK_TRY(tk_check_layout(tv, "tv"));
    canvas c = {text, capacity, 0};
    frame f = {MARGIN, TITLE + 16, 0, 0, 0};
    tk_composed whole, grid;
    int64_t threads, values;
    char title[4096];
    tk_composed_from_layout(tv, &whole);
    TK_TRY(tk_grid_load(&whole, &grid, &threads, &values));
    TK_TRY(tile_extents(tile, &f.rows, &f.columns));
    seat *seats = tk_calloc((size_t)(f.rows * f.columns), sizeof *seats);
    if (!seats) return tk_fail(TK_OUT_OF_MEMORY, "%lld cells", (long long)(f.rows * f.columns));
    tk_status status = seat_all(&grid, threads, values, seats, f.rows * f.columns);
    if (status == TK_OK) {
        int most =
            snprintf(title, sizeof title, "T%lld V%lld+", (long long)threads, (long long)values);
        f.cell = cell_width((size_t)most);
        title_of(&whole, title, sizeof title);
        int64_t width = frame_width(&f), wanted = (int64_t)strlen(title) * 8 + 20;
        begin(&c, width > wanted ? width : wanted, frame_height(&f));
        put_title(&c, 8, title);
        put_seats(&c, &f, seats);
        put_numbers(&c, &f);
        finish(&c, out_length);
    }
    tk_free(seats);
    return status;
}

/* -- Banks -- */

/* The lanes of a mask: one number, or the first and how many more. */
static void lanes_label(uint32_t lanes, char *text, size_t capacity) {
    int first = __builtin_ctz(lanes), more = __builtin_popcount(lanes) - 1;
    if (more)
        snprintf(text, capacity, "%d+%d", first, more);
    else
        snprintf(text, capacity, "%d", first);
}

static void put_group(canvas *c, const frame *f, int64_t row, const tk_bank_group *group) {
    char label[32];
    for (int pass = 0; pass < group->passes; pass++)
        for (int bank = 0; bank < TK_BANKS; bank++) {
            bool used = pass < group->depth[bank];
            if (used) lanes_label(group->asks[bank][pass], label, sizeof label);
            unsigned fill = pass ? 0xff9a8a : 0xbfe3bf;
            put_cell(c, f, row + pass, bank, used ? fill : 0xffffff, used ? label : "");
        }
    put_line(c, f->x, f->y + row * CELL_HEIGHT, f->x + f->columns * f->cell,
             f->y + row * CELL_HEIGHT);
}

tk_status tk_layout_draw_banks(const tk_composed *pattern, int bytes, char *text, size_t capacity,
                               size_t *out_length) {
    TK_NEED(out_length);
    canvas c = {text, capacity, 0};
    tk_bank_pattern loaded;
    tk_bank_report report;
    tk_bank_group group;
    TK_TRY(tk_bank_pattern_load(pattern, bytes, &loaded));
    TK_TRY(tk_layout_count_banks(pattern, bytes, &report));
    if (report.passes * TK_BANKS > TK_DRAW_MAX_CELLS)
        return tk_fail(TK_SHAPE_ERROR, "%lld passes over the banks: a picture has at most %d",
                       (long long)report.passes, TK_DRAW_MAX_CELLS / TK_BANKS);
    frame f = {MARGIN, TITLE + 34, report.passes, TK_BANKS, 42};
    char title[4096], cost[200];
    title_of(pattern, title, sizeof title);
    snprintf(cost, sizeof cost, "%lld accesses, %lld passes, %lld needed, %lld conflicts",
             (long long)report.accesses, (long long)report.passes, (long long)report.least,
             (long long)report.conflicts);
    begin(&c, frame_width(&f), frame_height(&f));
    put_title(&c, 8, title);
    putf(&c, "<text x=\"8\" y=\"36\" text-anchor=\"start\">%d bytes a lane: %s</text>\n", bytes,
         cost);
    int64_t row = 0;
    for (int64_t step = 0; step < loaded.steps; step++)
        for (int64_t lane = 0; lane < loaded.lanes; lane += group.lanes) {
            TK_TRY(tk_bank_group_fill(&loaded, lane, step, &group));
            put_group(&c, &f, row, &group);
            row += group.passes;
        }
    put_numbers(&c, &f);
    finish(&c, out_length);
    return TK_OK;
}
