/* The CuTe notation: printing and parsing.
 *
 *     tuple     = term | "(" [ tuple { "," tuple } [","] ] ")"
 *     term      = integer [basis] | "?" [ "{" ["i64"|"i32"] ["div=" integer] "}" ] [basis] | "_"
 *     basis     = { "@" integer }                      innermost mode first
 *     layout    = tuple ":" tuple
 *     tiler     = layout | tuple | "[" tiler { ";" tiler } "]" | "_"
 *     swizzle   = "S<" integer "," integer "," integer ">"
 *     composed  = [ (swizzle | layout) "o" tuple "o" ] layout
 *
 * A tuple as a tiler is one mode n:1 for each of its leaves; an integer n is n:1.
 *
 * A hand-written descent on a cursor. Nesting is bounded by the nodes a value can hold, checked
 * before each recursion, so hostile text cannot overflow the stack. */
#include <stdio.h>

#include "layout/term.h"
#include "layout/tree.h"

typedef struct cursor {
    const char *start;
    const char *at;
} cursor;

/* The text up to a screen line around the error, with a caret below the place. */
static tk_status fail_at(const cursor *c, const char *expected) {
    size_t column = (size_t)(c->at - c->start), length = strlen(c->start);
    size_t from = column > 60 ? column - 60 : 0;
    size_t shown = length - from > 100 ? 100 : length - from;
    char line[101];
    for (size_t i = 0; i < shown; i++) {
        unsigned char byte = (unsigned char)c->start[from + i];
        line[i] = (char)(byte < 32 || byte > 126 ? ' ' : byte);
    }
    line[shown] = 0;
    return tk_fail(TK_FORMAT_ERROR, "expected %s at column %zu\n  %s\n  %*s^", expected, column + 1,
                   line, (int)(column - from), "");
}

static void skip_blanks(cursor *c) {
    while (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r') c->at++;
}

static bool take(cursor *c, char wanted) {
    skip_blanks(c);
    if (*c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    size_t length = strlen(word);
    skip_blanks(c);
    if (strncmp(c->at, word, length)) return false;
    c->at += length;
    return true;
}

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

static tk_status parse_integer(cursor *c, int64_t *out) {
    skip_blanks(c);
    cursor begin = *c;
    bool negative = *c->at == '-';
    if (negative) c->at++;
    if (!is_digit(*c->at)) return fail_at(&begin, "an integer");
    int64_t value = 0;
    for (; is_digit(*c->at); c->at++)
        if (tk_mul_overflow_i64(value, 10, &value) ||
            tk_add_overflow_i64(value, '0' - *c->at, &value))
            return fail_at(&begin, "an integer within 64 bits");
    if (!negative && value == INT64_MIN) return fail_at(&begin, "an integer within 64 bits");
    if (negative && value == INT64_MIN) return fail_at(&begin, "an integer above -2^63");
    *out = negative ? value : -value;
    return TK_OK;
}

/* `@m@n`: the innermost mode comes first, the outermost last. */
static tk_status parse_basis(cursor *c, uint32_t *out) {
    int64_t mode[TK_BASIS_MAX_DEPTH];
    int depth = 0;
    for (; take(c, '@'); depth++) {
        if (depth == TK_BASIS_MAX_DEPTH) return fail_at(c, "a basis vector of at most 5 levels");
        cursor begin = *c;
        TK_TRY(parse_integer(c, &mode[depth]));
        if (mode[depth] < 0 || mode[depth] > 62) return fail_at(&begin, "a mode from 0 to 62");
    }
    *out = 0;
    while (depth-- > 0) TK_TRY(tk_basis_push(*out, (int)mode[depth], out));
    return TK_OK;
}

/* What may follow `?`. */
static tk_status parse_dynamic(cursor *c, tk_term *out) {
    *out = tk_term_dynamic(TK_TERM_I32, 1);
    if (*c->at != '{') return TK_OK;
    c->at++;
    bool wide = take_word(c, "i64");
    bool width = wide || take_word(c, "i32");
    if (wide) out->kind = TK_TERM_I64;
    if (take_word(c, "div=")) {
        cursor begin = *c;
        TK_TRY(parse_integer(c, &out->value));
        if (out->value < 1) return fail_at(&begin, "a divisor of at least 1");
    } else if (!width) {
        return fail_at(c, "`i64`, `i32` or `div=`");
    }
    return take(c, '}') ? TK_OK : fail_at(c, "`}`");
}

static tk_status parse_term(cursor *c, tk_term *out) {
    skip_blanks(c);
    if (*c->at == '_') {
        c->at++;
        *out = (tk_term){0, 0, TK_TERM_ANY};
        return TK_OK;
    }
    if (*c->at == '?') {
        c->at++;
        TK_TRY(parse_dynamic(c, out));
    } else if (*c->at == '-' || is_digit(*c->at)) {
        *out = tk_term_int(0);
        TK_TRY(parse_integer(c, &out->value));
    } else {
        return fail_at(c, "an integer, `?`, `_` or `(`");
    }
    return parse_basis(c, &out->basis);
}

static tk_status parse_tuple(cursor *c, tk_tuple *out) {
    skip_blanks(c);
    if (out->node_count >= TK_LAYOUT_MAX_NODES || out->leaf_count >= TK_LAYOUT_MAX_LEAVES)
        return fail_at(c, "the end: there are more leaves or tuples than a value holds");
    if (!take(c, '(')) {
        tk_term term;
        TK_TRY(parse_term(c, &term));
        tk_tuple_put_leaf(out, term);
        return TK_OK;
    }
    int at = out->node_count, modes = 0;
    tk_tuple_put_node(out, 0);
    while (!take(c, ')')) {
        if (modes && !take(c, ',')) return fail_at(c, "`,` or `)`");
        if (modes && take(c, ')')) break;
        TK_TRY(parse_tuple(c, out));
        modes++;
    }
    tk_tuple_put_close(out, at, modes);
    return TK_OK;
}

static tk_status parse_whole_tuple(cursor *c, tk_tuple *out) {
    tk_tuple_clear(out);
    return parse_tuple(c, out);
}

/* The stride behind a shape that was read already. */
static tk_status parse_stride(cursor *c, const cursor *begin, const tk_tuple *shape,
                              tk_layout *out) {
    tk_tuple stride;
    if (!take(c, ':')) return fail_at(c, "`:` and the strides");
    skip_blanks(c);
    cursor strides = *c;
    TK_TRY(parse_whole_tuple(c, &stride));
    if (!tk_tuple_congruent(shape, &stride))
        return fail_at(&strides, "strides of the same structure as the shape");
    for (int i = 0; i < stride.leaf_count; i++)
        if (stride.leaf[i].kind == TK_TERM_ANY) return fail_at(&strides, "strides without `_`");
    for (int i = 0; i < shape->leaf_count; i++)
        if (shape->leaf[i].kind == TK_TERM_ANY || shape->leaf[i].basis || shape->leaf[i].value < 1)
            return fail_at(begin, "extents of at least 1");
    return tk_layout_make(shape, &stride, out);
}

static tk_status parse_layout(cursor *c, tk_layout *out) {
    tk_tuple shape;
    skip_blanks(c);
    cursor begin = *c;
    TK_TRY(parse_whole_tuple(c, &shape));
    return parse_stride(c, &begin, &shape, out);
}

static tk_status expect_end(cursor *c) {
    skip_blanks(c);
    return *c->at ? fail_at(c, "the end of the text") : TK_OK;
}

/* -- Tilers -- */

/* A list of n:1, `_` where the shape has one. */
static tk_status put_shape_tiler(const tk_tuple *shape, tk_layout *out) {
    const tk_term *leaf = shape->leaf;
    for (int i = 0; i < shape->node_count; i++) {
        if (shape->node[i] != TK_NODE_LEAF) {
            tk_put_node(out, (uint8_t)(TK_NODE_TILE + shape->node[i]));
            continue;
        }
        if (leaf->kind == TK_TERM_ANY)
            tk_put_node(out, TK_NODE_ANY);
        else if (leaf->basis || leaf->value < 1)
            return tk_fail(TK_SHAPE_ERROR, "extent %s of a tile: expected at least 1",
                           tk_term_show(*leaf).text);
        else
            tk_put_leaf(out, *leaf, tk_term_int(1));
        leaf++;
    }
    return TK_OK;
}

tk_status tk_tiler_from_shape(const tk_tuple *shape, tk_tiler *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(shape, "shape"));
    tk_layout_clear(out);
    TK_TRY(put_shape_tiler(shape, out));
    return tk_layout_finish(out);
}

static tk_status parse_tiler(cursor *c, tk_layout *out);

static tk_status parse_list(cursor *c, tk_layout *out) {
    int at = out->node_count, modes = 0;
    tk_put_node(out, TK_NODE_TILE);
    while (!take(c, ']')) {
        if (modes && !take(c, ';')) return fail_at(c, "`;` or `]`");
        TK_TRY(parse_tiler(c, out));
        modes++;
    }
    if (at < TK_LAYOUT_MAX_NODES) out->node[at] = (uint8_t)(TK_NODE_TILE + modes);
    return TK_OK;
}

static tk_status parse_tiler(cursor *c, tk_layout *out) {
    if (out->node_count >= TK_LAYOUT_MAX_NODES || out->leaf_count >= TK_LAYOUT_MAX_LEAVES)
        return fail_at(c, "the end: there are more leaves or tuples than a value holds");
    if (take(c, '[')) return parse_list(c, out);
    skip_blanks(c);
    cursor begin = *c;
    tk_tuple shape;
    tk_layout layout;
    TK_TRY(parse_whole_tuple(c, &shape));
    skip_blanks(c);
    if (*c->at == ':') {
        TK_TRY(parse_stride(c, &begin, &shape, &layout));
        tk_put_part(out, tk_part_of(&layout));
        return TK_OK;
    }
    return put_shape_tiler(&shape, out) == TK_OK ? TK_OK : fail_at(&begin, "extents of at least 1");
}

/* -- Swizzles and composed layouts -- */

static tk_status parse_swizzle(cursor *c, tk_swizzle *out) {
    int64_t field[3];
    cursor begin = *c;
    if (!take(c, 'S') || !take(c, '<')) return fail_at(&begin, "`S<bits,base,shift>`");
    for (int i = 0; i < 3; i++) {
        if (i && !take(c, ',')) return fail_at(c, "`,`");
        cursor number = *c;
        TK_TRY(parse_integer(c, &field[i]));
        if (field[i] < -62 || field[i] > 62) return fail_at(&number, "a number from -62 to 62");
    }
    if (!take(c, '>')) return fail_at(c, "`>`");
    *out = (tk_swizzle){(int32_t)field[0], (int32_t)field[1], (int32_t)field[2]};
    return tk_swizzle_check(*out) == TK_OK
               ? TK_OK
               : fail_at(&begin, "|shift| >= bits >= 0, base >= 0 and a sum of the three below 63");
}

static tk_status parse_offset_and_outer(cursor *c, tk_composed *out) {
    if (!take(c, 'o')) return fail_at(c, "`o` and the offset");
    TK_TRY(parse_whole_tuple(c, &out->offset));
    if (!take(c, 'o')) return fail_at(c, "`o` and the outer layout");
    return parse_layout(c, &out->outer);
}

tk_status tk_composed_parse(const char *text, tk_composed *out) {
    TK_NEED(text, out);
    cursor c = {text, text};
    tk_composed made;
    skip_blanks(&c);
    made.inner = *c.at == 'S' ? TK_INNER_SWIZZLE : TK_INNER_LAYOUT;
    if (made.inner == TK_INNER_SWIZZLE)
        TK_TRY(parse_swizzle(&c, &made.swizzle));
    else
        TK_TRY(parse_layout(&c, &made.layout));
    skip_blanks(&c);
    if (made.inner == TK_INNER_LAYOUT && !*c.at) {
        tk_composed_from_layout(&made.layout, out);
        return TK_OK;
    }
    TK_TRY(parse_offset_and_outer(&c, &made));
    TK_TRY(expect_end(&c));
    if (made.inner == TK_INNER_SWIZZLE)
        return tk_composed_make_swizzled(made.swizzle, &made.offset, &made.outer, out);
    return tk_composed_make(&made.layout, &made.offset, &made.outer, out);
}

tk_status tk_tuple_parse(const char *text, tk_tuple *out) {
    TK_NEED(text, out);
    cursor c = {text, text};
    TK_TRY(parse_whole_tuple(&c, out));
    TK_TRY(expect_end(&c));
    return tk_tuple_finish(out);
}

tk_status tk_layout_parse(const char *text, tk_layout *out) {
    TK_NEED(text, out);
    cursor c = {text, text};
    TK_TRY(parse_layout(&c, out));
    return expect_end(&c);
}

tk_status tk_tiler_parse(const char *text, tk_tiler *out) {
    TK_NEED(text, out);
    cursor c = {text, text};
    tk_layout_clear(out);
    TK_TRY(parse_tiler(&c, out));
    TK_TRY(expect_end(&c));
    return tk_layout_finish(out);
}

tk_status tk_swizzle_parse(const char *text, tk_swizzle *out) {
    TK_NEED(text, out);
    cursor c = {text, text};
    TK_TRY(parse_swizzle(&c, out));
    return expect_end(&c);
}

/* -- Printing -- */

/* Counts everything, keeps what fits. */
typedef struct writer {
    char *text;
    size_t capacity;
    size_t length;
} writer;

static void put_char(writer *w, char byte) {
    if (w->length + 1 < w->capacity) w->text[w->length] = byte;
    w->length++;
}

static void put_text(writer *w, const char *text) {
    while (*text) put_char(w, *text++);
}

static size_t close_text(writer *w) {
    if (w->capacity) w->text[w->length < w->capacity ? w->length : w->capacity - 1] = 0;
    return w->length;
}

/* Plain numbers, nearly all there are, without the machinery of formats. */
static void put_term(writer *w, tk_term term) {
    if (term.kind != TK_TERM_STATIC || term.basis || term.value < 0) {
        put_text(w, tk_term_show(term).text);
        return;
    }
    char digits[24];
    int count = 0;
    uint64_t rest = (uint64_t)term.value;
    do digits[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (count) put_char(w, digits[--count]);
}

/* Terms lie `step` terms apart: 1 in a tuple, 2 in a layout's shape or stride. */
static void put_tree(writer *w, const uint8_t **node, const tk_term **leaf, int step) {
    uint8_t head = *(*node)++;
    if (head == TK_NODE_LEAF) {
        put_term(w, **leaf);
        *leaf += step;
        return;
    }
    put_char(w, '(');
    for (int i = 0; i < tk_node_children(head); i++) {
        if (i) put_char(w, ',');
        put_tree(w, node, leaf, step);
    }
    put_char(w, ')');
}

static void put_layout(writer *w, tk_part *part) {
    const uint8_t *node = part->node;
    const tk_term *leaf = &part->leaf->shape;
    put_tree(w, &node, &leaf, 2);
    put_char(w, ':');
    node = part->node;
    leaf = &part->leaf->stride;
    put_tree(w, &node, &leaf, 2);
    *part = tk_part_next(*part);
}

static void put_tiler(writer *w, tk_part *part) {
    uint8_t head = *part->node;
    if (head == TK_NODE_ANY) {
        put_char(w, '_');
        part->node++;
        return;
    }
    if (!tk_node_is_list(head)) {
        put_layout(w, part);
        return;
    }
    part->node++;
    put_char(w, '[');
    for (int i = 0; i < tk_node_children(head); i++) {
        if (i) put_char(w, ';');
        put_tiler(w, part);
    }
    put_char(w, ']');
}

size_t tk_tuple_print(const tk_tuple *tuple, char *text, size_t capacity) {
    writer w = {text, text ? capacity : 0, 0};
    if (!tuple) return close_text(&w);
    const uint8_t *node = tuple->node;
    const tk_term *leaf = tuple->leaf;
    put_tree(&w, &node, &leaf, 1);
    return close_text(&w);
}

size_t tk_layout_print(const tk_layout *layout, char *text, size_t capacity) {
    writer w = {text, text ? capacity : 0, 0};
    if (!layout) return close_text(&w);
    tk_part part = tk_part_of(layout);
    put_tiler(&w, &part);
    return close_text(&w);
}

size_t tk_swizzle_print(tk_swizzle swizzle, char *text, size_t capacity) {
    int length = snprintf(text, text ? capacity : 0, "S<%d,%d,%d>", (int)swizzle.bits,
                          (int)swizzle.base, (int)swizzle.shift);
    return (size_t)length;
}

size_t tk_composed_print(const tk_composed *composed, char *text, size_t capacity) {
    writer w = {text, text ? capacity : 0, 0};
    if (!composed) return close_text(&w);
    char swizzle[64];
    tk_part part = tk_part_of(&composed->layout);
    const uint8_t *node = composed->offset.node;
    const tk_term *leaf = composed->offset.leaf;
    if (composed->inner == TK_INNER_SWIZZLE) {
        tk_swizzle_print(composed->swizzle, swizzle, sizeof swizzle);
        put_text(&w, swizzle);
    } else if (composed->inner == TK_INNER_LAYOUT) {
        put_layout(&w, &part);
    }
    if (composed->inner != TK_INNER_NONE) {
        put_text(&w, " o ");
        put_tree(&w, &node, &leaf, 1);
        put_text(&w, " o ");
    }
    part = tk_part_of(&composed->outer);
    put_layout(&w, &part);
    return close_text(&w);
}
