/* The layout algebra by name: one table of operations over one kind of value.
 *
 * The command line, the Python module and the reference page all read this table, so an operation
 * is named, described and checked once. C code calls the functions of layout.h directly.
 *
 * Threads. All functions are pure; any thread. */
#ifndef TIKI_LAYOUT_CALL_H
#define TIKI_LAYOUT_CALL_H

#include "tiki/layout.h"

TK_BEGIN_DECLS

/* What a value is. Where an operation asks for one kind, some others stand in for it:
 *
 * - a layout for a tiler, and for a composed layout without inner part;
 * - a tuple for a tiler (the shape of a tile: `(16,8)` is `[16:1;8:1]`), and one of one leaf for an
 *   integer;
 * - a layout for its shape, where only the shape matters (size, rank, congruent, idx2crd, ...);
 * - a composed layout for a layout, where the operation acts on the outer part and the rest is kept
 *   (coalesce, divides, products, tile_to_shape, slice, ...). */
typedef enum tk_value_kind {
    TK_VALUE_BOOL,           /* what the questions give: congruent, is_injective, elem_less, ... */
    TK_VALUE_TUPLE,          /* a shape, stride, coordinate, order or offset; an integer too */
    TK_VALUE_LAYOUT,         /* `(4,8):(1,4)` */
    TK_VALUE_TILER,          /* `[16:1;8:1]`: a list of tilers, one for each mode */
    TK_VALUE_SWIZZLE,        /* `S<3,4,3>` */
    TK_VALUE_COMPOSED,       /* `S<3,4,3> o 0 o (8,64):(64,1)`, or with a layout in place of S */
    TK_VALUE_TILE_AND_LAYOUT /* the pair that make_layout_tv gives */
} tk_value_kind;

/* Any argument or result. Plain, without pointers; copied by assignment, about 6 KB.
 *
 * `kind` says which member holds: flag, tuple, layout (for layouts and for tilers), swizzle,
 * composed, or pair. Reading another member is meaningless. */
typedef struct tk_layout_value {
    tk_value_kind kind;
    union {
        bool flag;
        tk_tuple tuple;
        tk_layout layout;
        tk_swizzle swizzle;
        tk_composed composed;
        struct {
            tk_tuple tile;
            tk_layout layout;
        } pair;
    } as;
} tk_layout_value;

/* Most arguments that an operation takes. */
#define TK_LAYOUT_MAX_ARGS 3

/* One operation of the table.
 *
 * names      its name and then its aliases, separated by `|`: `recast_layout|recast`
 * usage      the arguments, optional ones in brackets: `L [PROFILE]`
 * summary    what it gives, in one line
 * min_args   how many arguments it needs
 * max_args   how many it takes
 *
 * All strings are static. */
typedef struct tk_layout_op {
    const char *names;
    const char *usage;
    const char *summary;
    int min_args;
    int max_args;
} tk_layout_op;

/* The table, in the order of the reference page. NULL past its end. */
TK_API const tk_layout_op *tk_layout_op_at(int index);

/* Calls the operation of this name (or alias) on `count` arguments. TK_NOT_FOUND for a name that is
 * none, TK_INVALID_ARGUMENT for a wrong number or kind of arguments, else as the function of
 * layout.h. `out` is none of the arguments. */
TK_API tk_status tk_layout_call(const char *name, const tk_layout_value *args, int count,
                                tk_layout_value *out);

/* Reads a value of whatever kind the text has: `S<..>` is a swizzle, with ` o ` it is composed, `[`
 * begins a tiler, `:` makes a layout, everything else is a tuple. TK_FORMAT_ERROR with a caret. */
TK_API tk_status tk_layout_value_parse(const char *text, tk_layout_value *out);

/* Prints as the functions of layout.h do; truth is `true` or `false`, a pair is separated by a tab.
 */
TK_API size_t tk_layout_value_print(const tk_layout_value *value, char *text, size_t capacity);

TK_END_DECLS

#endif
