/* The body of a kernel's text: one pass, each name defined above its use.
 *
 * Operations are read by the table: words behind the name are attributes, operands are classes that
 * tk_kop_make checks, so a new row needs nothing here. Only for, while and if have a syntax of
 * their own, because they hold regions. The verifier runs at the end; it finds names that were used
 * outside of their region. */
#include "kernel/parse.h"

#include <string.h>

#include "base/decimal.h"
#include "base/error.h"
#include "kernel/verify.h"

#define MOST_RESULTS 64

typedef struct results {
    size_t count;
    tk_kspan names[MOST_RESULTS];
    const char *from;
} results;

typedef TK_VEC(tk_kvalue *) values;
typedef TK_VEC(tk_ktype) types;
typedef TK_VEC(tk_kspan) spans;

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a kernel"); }

/* ---- names ---- */

tk_status tk_kparse_define(tk_kparser *parser, tk_kspan name, tk_kvalue *value) {
    bool number = name.text[0] >= '0' && name.text[0] <= '9';
    if (tk_knames_find(&parser->names, name.text, name.length))
        return tk_kscan_fail(&parser->scan, name.text - 1, "%%%.*s is defined twice",
                             (int)name.length, name.text);
    if (!tk_knames_add(&parser->names, name.text, name.length, value)) return no_memory();
    if (number) return TK_OK;
    value->name = tk_arena_text(&parser->kernel->arena, name.text, name.length);
    return value->name ? TK_OK : no_memory();
}

static tk_status need_reference(tk_kparser *parser, tk_kvalue **out) {
    tk_kspan name;
    TK_TRY(tk_kscan_need_name(&parser->scan, &name));
    const tk_kname *found = tk_knames_find(&parser->names, name.text, name.length);
    if (!found)
        return tk_kscan_fail(&parser->scan, name.text - 1, "%%%.*s is not defined above",
                             (int)name.length, name.text);
    *out = found->what;
    return TK_OK;
}

/* ---- constants: i32(256), f32(1.5), f32(0x7fc00000), i1(true) ---- */

static bool is_float(tk_kscalar scalar) { return scalar >= TK_K_F16 && scalar <= TK_K_E5M2; }

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tk_status read_hex(tk_kparser *parser, uint64_t *out) {
    const char *from = parser->scan.at;
    *out = 0;
    for (parser->scan.at += 2; hex_digit(*parser->scan.at) >= 0; parser->scan.at++) {
        if (*out >> 60) return tk_kscan_fail(&parser->scan, from, "more than 64 bits");
        *out = *out << 4 | (uint64_t)hex_digit(*parser->scan.at);
    }
    return TK_OK;
}

static tk_status read_float(tk_kparser *parser, tk_kscalar scalar, uint64_t *out) {
    double value;
    const char *from = parser->scan.at;
    size_t length = tk_decimal_read(from, strcspn(from, "\n)"), TK_FLOAT64, &value);
    if (length == 0) return tk_kscan_expected(&parser->scan, "a number");
    parser->scan.at += length;
    *out = tk_kscalar_bits(scalar, value);
    return TK_OK;
}

static tk_status read_truth(tk_kparser *parser, uint64_t *out) {
    *out = tk_kscan_take_word(&parser->scan, "true");
    if (*out || tk_kscan_take_word(&parser->scan, "false")) return TK_OK;
    return tk_kscan_expected(&parser->scan, "true or false");
}

static tk_status read_bits(tk_kparser *parser, tk_kscalar scalar, uint64_t *out) {
    int64_t integer;
    tk_kscan_skip(&parser->scan);
    if (scalar == TK_K_I1) return read_truth(parser, out);
    if (parser->scan.at[0] == '0' && parser->scan.at[1] == 'x') return read_hex(parser, out);
    if (is_float(scalar)) return read_float(parser, scalar, out);
    const char *from = parser->scan.at;
    TK_TRY(tk_kscan_need_integer(&parser->scan, &integer));
    int bits = 8 * tk_kscalar_bytes(scalar);
    int64_t high = bits == 64 ? INT64_MAX : ((int64_t)1 << bits) - 1,
            low = bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    if (integer < low || integer > high)
        return tk_kscan_fail(&parser->scan, from, "%lld does not fit %s", (long long)integer,
                             tk_kscalar_text(scalar));
    *out = (uint64_t)integer;
    return TK_OK;
}

static tk_status need_constant(tk_kparser *parser, tk_kvalue **out) {
    tk_kscalar scalar;
    uint64_t bits = 0;
    tk_kscan_skip(&parser->scan);
    const char *from = parser->scan.at;
    TK_TRY(tk_kparse_scalar(parser, &scalar));
    if (scalar >= TK_K_MBAR)
        return tk_kscan_fail(&parser->scan, from, "there is no constant of type %s",
                             tk_kscalar_text(scalar));
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    TK_TRY(read_bits(parser, scalar, &bits));
    TK_TRY(tk_kscan_need(&parser->scan, ')'));
    return tk_kernel_constant(parser->kernel, scalar, bits, out);
}

static tk_status need_value(tk_kparser *parser, tk_kvalue **out) {
    return tk_kscan_see(&parser->scan, '%') ? need_reference(parser, out)
                                            : need_constant(parser, out);
}

/* A constant or a name, not an operand's label. */
static bool starts_value(tk_kparser *parser) {
    if (tk_kscan_see(&parser->scan, '%')) return true;
    size_t length = tk_kword_length(parser->scan.at);
    return length && parser->scan.at[length] == '(';
}

/* ---- attributes ---- */

static int place_of_attr(const tk_kop_row *row, tk_kspan name) {
    for (int i = 0; row->attrs[i]; i++)
        if (tk_kspan_is(name, tk_kattr_row_of(row->attrs[i] - 1u)->name)) return i;
    return -1;
}

static bool set_word(const tk_kop_row *row, tk_kspan word, int64_t *attrs) {
    for (int i = 0; row->attrs[i]; i++) {
        const tk_kattr_row *attr = tk_kattr_row_of(row->attrs[i] - 1u);
        int index = -1;
        if (attr->kind == TK_KAK_FLAG) index = tk_kspan_is(word, attr->name) ? 1 : -1;
        if (attr->kind == TK_KAK_WORD) index = tk_kwords_find(attr->words, word.text, word.length);
        if (index < 0) continue;
        attrs[i] = index;
        return true;
    }
    return false;
}

static tk_status read_words(tk_kparser *parser, const tk_kop_row *row, int64_t *attrs) {
    while (*parser->scan.at == '.') {
        tk_kspan word;
        parser->scan.at++;
        TK_TRY(tk_kscan_need_word(&parser->scan, "an attribute", &word));
        if (!set_word(row, word, attrs))
            return tk_kscan_fail(&parser->scan, word.text, "%s has no attribute \"%.*s\"",
                                 row->name, (int)word.length, word.text);
    }
    return TK_OK;
}

static tk_status read_text(tk_kparser *parser, int64_t *out) {
    tk_kspan span;
    uint32_t number;
    size_t length = 0;
    TK_TRY(tk_kscan_need_string(&parser->scan, &span));
    char *text = tk_malloc(span.length + 1);
    if (!text) return no_memory();
    for (size_t i = 0; i < span.length; i++) {
        bool escape = span.text[i] == '\\' && i + 1 < span.length;
        char c = escape ? span.text[++i] : span.text[i];
        text[length++] = escape && c == 'n' ? '\n' : c;
    }
    tk_status status = tk_kernel_string(parser->kernel, text, length, &number);
    tk_free(text);
    if (status == TK_OK) *out = number;
    return status;
}

static tk_status read_bracket(tk_kparser *parser, const tk_kop_row *row, int64_t *attrs) {
    tk_kspan name;
    TK_TRY(tk_kscan_need_word(&parser->scan, "an attribute", &name));
    int place = place_of_attr(row, name);
    const tk_kattr_row *attr = place < 0 ? NULL : tk_kattr_row_of(row->attrs[place] - 1u);
    if (!attr || (attr->kind != TK_KAK_INT && attr->kind != TK_KAK_TEXT))
        return tk_kscan_fail(&parser->scan, name.text, "%s has no attribute \"%.*s\" in brackets",
                             row->name, (int)name.length, name.text);
    TK_TRY(tk_kscan_need(&parser->scan, '='));
    return attr->kind == TK_KAK_INT ? tk_kscan_need_integer(&parser->scan, &attrs[place])
                                    : read_text(parser, &attrs[place]);
}

static tk_status read_brackets(tk_kparser *parser, const tk_kop_row *row, int64_t *attrs) {
    if (!tk_kscan_take(&parser->scan, '[')) return TK_OK;
    do TK_TRY(read_bracket(parser, row, attrs));
    while (tk_kscan_take(&parser->scan, ','));
    return tk_kscan_need(&parser->scan, ']');
}

/* @12 or @"file":12; without one it is the line of the text. */
static tk_status read_loc(tk_kparser *parser, tk_kloc *loc) {
    int64_t number;
    if (!tk_kscan_take(&parser->scan, '@')) return TK_OK;
    if (tk_kscan_see(&parser->scan, '"')) {
        TK_TRY(read_text(parser, &number));
        loc->file = (uint32_t)number;
        TK_TRY(tk_kscan_need(&parser->scan, ':'));
    }
    TK_TRY(tk_kscan_need_integer(&parser->scan, &number));
    loc->line = (uint32_t)number;
    return TK_OK;
}

/* ---- plain operations ---- */

static int slot_of(const tk_kop_row *row, int slots, tk_kspan name) {
    for (int i = 0; i < slots; i++)
        if (row->slots[i].need == TK_KN_OPTIONAL && tk_kspan_is(name, row->slots[i].name)) return i;
    return -1;
}

/* The next slot of an operand without a name. */
static int next_slot(const tk_kop_row *row, int slots, int from) {
    while (from < slots && row->slots[from].need == TK_KN_OPTIONAL) from++;
    return from;
}

static tk_status read_labelled(tk_kparser *parser, const tk_kop_row *row, int slots,
                               tk_kvalue **slot_values) {
    tk_kspan name;
    TK_TRY(tk_kscan_need_word(&parser->scan, "an operand", &name));
    int slot = slot_of(row, slots, name);
    if (slot < 0)
        return tk_kscan_fail(&parser->scan, name.text, "%s has no operand \"%.*s\"", row->name,
                             (int)name.length, name.text);
    TK_TRY(tk_kscan_need(&parser->scan, '='));
    if (slot_values[slot])
        return tk_kscan_fail(&parser->scan, name.text, "operand %s is given twice",
                             row->slots[slot].name);
    return need_value(parser, &slot_values[slot]);
}

static tk_status read_operand(tk_kparser *parser, const tk_kop_row *row, int *slot, int slots,
                              bool variadic, values *operands) {
    tk_kvalue *value;
    if (!starts_value(parser)) return read_labelled(parser, row, slots, operands->items);
    const char *from = parser->scan.at;
    TK_TRY(need_value(parser, &value));
    *slot = next_slot(row, slots, *slot);
    if (*slot < slots)
        operands->items[(*slot)++] = value;
    else if (!variadic)
        return tk_kscan_fail(&parser->scan, from, "%s takes no more operands", row->name);
    else if (!tk_vec_push(operands, value))
        return no_memory();
    return TK_OK;
}

/* Operands follow in the same line; a word ahead is the next operation unless it is a constant or
 * label. */
static bool more_operands(tk_kparser *parser, const tk_kop_row *row, int slots) {
    if (starts_value(parser)) {
        return true;
    }
    tk_kspan word = {parser->scan.at, tk_kword_length(parser->scan.at)};
    return slot_of(row, slots, word) >= 0 && parser->scan.at[word.length] == '=';
}

static tk_status read_operands(tk_kparser *parser, const tk_kop_row *row, values *operands) {
    bool variadic;
    int slots = tk_kop_row_slots(row, &variadic), slot = 0;
    for (int i = 0; i < slots; i++)
        if (!tk_vec_push(operands, NULL)) return no_memory();
    uint32_t line = parser->scan.line;
    tk_kscan ahead = parser->scan;
    if (!more_operands(parser, row, slots) || parser->scan.line != line) {
        parser->scan = ahead;
        return TK_OK;
    }
    do TK_TRY(read_operand(parser, row, &slot, slots, variadic, operands));
    while (tk_kscan_take(&parser->scan, ','));
    return TK_OK;
}

static tk_status read_types(tk_kparser *parser, types *stated) {
    if (!tk_kscan_take(&parser->scan, ':')) return TK_OK;
    do {
        tk_ktype type;
        TK_TRY(tk_kparse_type(parser, &type));
        if (!tk_vec_push(stated, type)) return no_memory();
    } while (tk_kscan_take(&parser->scan, ','));
    return TK_OK;
}

static tk_status define_results(tk_kparser *parser, const results *names, tk_kop *op) {
    if (names->count != op->n_results)
        return tk_kscan_fail(&parser->scan, names->from, "%zu names for %d results of %s",
                             names->count, op->n_results, tk_kop_row_of(op->code)->name);
    for (size_t i = 0; i < names->count; i++)
        TK_TRY(tk_kparse_define(parser, names->names[i], op->results[i]));
    return TK_OK;
}

static tk_status make_op(tk_kparser *parser, const tk_kscan *place, const tk_kop_spec *spec,
                         tk_kblock *block, tk_kop **out) {
    tk_status status = tk_kop_make(parser->kernel, spec, out);
    if (status != TK_OK) return tk_kscan_fail_again(place, place->at, status);
    tk_kop_append(block, *out);
    return TK_OK;
}

static void default_attrs(const tk_kop_row *row, int64_t *attrs) {
    for (int i = 0; row->attrs[i]; i++) attrs[i] = tk_kattr_row_of(row->attrs[i] - 1u)->initial;
}

static tk_status read_plain_into(tk_kparser *parser, const tk_kscan *place, tk_kopcode code,
                                 const results *names, tk_kblock *block, values *operands,
                                 types *stated) {
    const tk_kop_row *row = tk_kop_row_of(code);
    int64_t attrs[TK_KOP_MOST_ATTRS];
    tk_kop_spec spec = {.code = code, .attrs = attrs, .loc = {0, place->line}};
    tk_kop *op;
    default_attrs(row, attrs);
    TK_TRY(read_words(parser, row, attrs));
    TK_TRY(read_operands(parser, row, operands));
    TK_TRY(read_brackets(parser, row, attrs));
    TK_TRY(read_types(parser, stated));
    TK_TRY(read_loc(parser, &spec.loc));
    spec.n_operands = operands->count;
    spec.operands = operands->items;
    spec.n_types = stated->count;
    spec.types = stated->items;
    TK_TRY(make_op(parser, place, &spec, block, &op));
    return define_results(parser, names, op);
}

static tk_status read_plain(tk_kparser *parser, const tk_kscan *place, tk_kopcode code,
                            const results *names, tk_kblock *block) {
    values operands = {0};
    types stated = {0};
    tk_status status = read_plain_into(parser, place, code, names, block, &operands, &stated);
    tk_vec_deinit(&operands);
    tk_vec_deinit(&stated);
    return status;
}

/* ---- regions ---- */

static tk_status read_block(tk_kparser *parser, tk_kblock *block);

static tk_status read_region(tk_kparser *parser, tk_kblock *block) {
    if (++parser->depth > TK_KPARSE_MOST_DEPTH)
        return tk_kscan_fail(&parser->scan, parser->scan.at, "regions are nested deeper than %d",
                             TK_KPARSE_MOST_DEPTH);
    TK_TRY(tk_kscan_need(&parser->scan, '{'));
    TK_TRY(read_block(parser, block));
    parser->depth--;
    return tk_kscan_need(&parser->scan, '}');
}

/* A region that yields nothing needs no line for it. */
static tk_status end_region(tk_kparser *parser, tk_kblock *block) {
    tk_kop_spec spec = {.code = TK_KOP_yield, .loc = {0, parser->scan.line}};
    tk_kop *op;
    if (block->last && (tk_kop_row_of(block->last->code)->effects & TK_KE_TERMINATOR)) return TK_OK;
    return make_op(parser, &parser->scan, &spec, block, &op);
}

typedef struct carried {
    spans names;
    values from;
    types types;
} carried;

static void release_carried(carried *c) {
    tk_vec_deinit(&c->names);
    tk_vec_deinit(&c->from);
    tk_vec_deinit(&c->types);
}

/* (%a = %x, %b = %y); without `from` the names alone. */
static tk_status read_carried(tk_kparser *parser, bool from, carried *c) {
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    do {
        tk_kspan name;
        tk_kvalue *value;
        TK_TRY(tk_kscan_need_name(&parser->scan, &name));
        if (!tk_vec_push(&c->names, name)) return no_memory();
        if (!from) continue;
        TK_TRY(tk_kscan_need(&parser->scan, '='));
        TK_TRY(need_value(parser, &value));
        if (!tk_vec_push(&c->from, value) || !tk_vec_push(&c->types, value->type))
            return no_memory();
    } while (tk_kscan_take(&parser->scan, ','));
    return tk_kscan_need(&parser->scan, ')');
}

static tk_status define_args(tk_kparser *parser, const tk_kblock *block, uint32_t first,
                             const spans *names) {
    for (size_t i = 0; i < names->count; i++)
        TK_TRY(tk_kparse_define(parser, names->items[i], block->args[first + i]));
    return TK_OK;
}

static tk_status give_region_results(tk_kparser *parser, const results *names, tk_kop *op,
                                     const tk_kop *end, uint32_t first) {
    types of = {0};
    tk_status status = TK_OK;
    for (uint32_t i = first; i < end->n_operands && status == TK_OK; i++)
        if (!tk_vec_push(&of, end->operands[i]->type)) status = no_memory();
    if (status == TK_OK) status = tk_kop_add_results(parser->kernel, op, of.count, of.items);
    tk_vec_deinit(&of);
    return status == TK_OK ? define_results(parser, names, op) : status;
}

/* for %i = %first to %end step %step [unroll = n] carry (...) { ... } */
static tk_status read_for(tk_kparser *parser, const tk_kscan *place, const results *names,
                          tk_kblock *block, carried *c) {
    static const char *const words[] = {"to", "step"};
    tk_kspan index;
    tk_kop *op;
    tk_kblock *body;
    int64_t attrs[TK_KOP_MOST_ATTRS];
    tk_kop_spec spec = {.code = TK_KOP_for, .attrs = attrs, .loc = {0, place->line}};
    default_attrs(tk_kop_row_of(TK_KOP_for), attrs);
    TK_TRY(tk_kscan_need_name(&parser->scan, &index));
    TK_TRY(tk_kscan_need(&parser->scan, '='));
    for (int i = 0; i < 3; i++) {
        tk_kvalue *bound;
        if (i) TK_TRY(tk_kscan_need_this(&parser->scan, words[i - 1]));
        TK_TRY(need_value(parser, &bound));
        if (!tk_vec_push(&c->from, bound)) return no_memory();
    }
    if (!tk_vec_push(&c->types, c->from.items[0]->type) || !tk_vec_push(&c->names, index))
        return no_memory();
    TK_TRY(read_brackets(parser, tk_kop_row_of(TK_KOP_for), attrs));
    TK_TRY(read_loc(parser, &spec.loc));
    if (tk_kscan_take_word(&parser->scan, "carry")) TK_TRY(read_carried(parser, true, c));
    spec.n_operands = c->from.count;
    spec.operands = c->from.items;
    TK_TRY(make_op(parser, place, &spec, block, &op));
    TK_TRY(tk_kop_add_region(parser->kernel, op, c->types.count, c->types.items, &body));
    TK_TRY(define_args(parser, body, 0, &c->names));
    TK_TRY(read_region(parser, body));
    TK_TRY(end_region(parser, body));
    return give_region_results(parser, names, op, body->last, 0);
}

static tk_status read_do(tk_kparser *parser, tk_kop *op, const tk_kop *condition) {
    carried second = {0};
    tk_kblock *body;
    tk_status status = TK_OK;
    if (tk_kscan_see(&parser->scan, '(')) status = read_carried(parser, false, &second);
    for (uint32_t i = 1; i < condition->n_operands && status == TK_OK; i++)
        if (!tk_vec_push(&second.types, condition->operands[i]->type)) status = no_memory();
    if (status == TK_OK && second.names.count != second.types.count)
        status = tk_kscan_fail(&parser->scan, parser->scan.at,
                               "%zu names for the %zu values of the condition", second.names.count,
                               second.types.count);
    if (status == TK_OK)
        status =
            tk_kop_add_region(parser->kernel, op, second.types.count, second.types.items, &body);
    if (status == TK_OK) status = define_args(parser, body, 0, &second.names);
    if (status == TK_OK) status = read_region(parser, body);
    if (status == TK_OK) status = end_region(parser, body);
    release_carried(&second);
    return status;
}

/* while (%a = %x) { ... condition %c, %v } do (%b) { ... yield %y } */
static tk_status read_while(tk_kparser *parser, const tk_kscan *place, const results *names,
                            tk_kblock *block, carried *c) {
    tk_kop *op;
    tk_kblock *first;
    tk_kop_spec spec = {.code = TK_KOP_while, .loc = {0, place->line}};
    TK_TRY(read_loc(parser, &spec.loc));
    if (tk_kscan_see(&parser->scan, '(')) TK_TRY(read_carried(parser, true, c));
    spec.n_operands = c->from.count;
    spec.operands = c->from.items;
    TK_TRY(make_op(parser, place, &spec, block, &op));
    TK_TRY(tk_kop_add_region(parser->kernel, op, c->types.count, c->types.items, &first));
    TK_TRY(define_args(parser, first, 0, &c->names));
    TK_TRY(read_region(parser, first));
    if (!first->last || first->last->code != TK_KOP_condition)
        return tk_kscan_fail(&parser->scan, parser->scan.at - 1,
                             "the first region of while ends in condition");
    TK_TRY(tk_kscan_need_this(&parser->scan, "do"));
    TK_TRY(read_do(parser, op, first->last));
    return give_region_results(parser, names, op, first->last, 1);
}

/* if %c { ... } else { ... } */
static tk_status read_if(tk_kparser *parser, const tk_kscan *place, const results *names,
                         tk_kblock *block, carried *c) {
    tk_kop *op;
    tk_kblock *region;
    tk_kvalue *condition;
    tk_kop_spec spec = {
        .code = TK_KOP_if, .n_operands = 1, .operands = &condition, .loc = {0, place->line}};
    (void)c;
    TK_TRY(need_value(parser, &condition));
    TK_TRY(read_loc(parser, &spec.loc));
    TK_TRY(make_op(parser, place, &spec, block, &op));
    for (int i = 0; i < 2; i++) {
        TK_TRY(tk_kop_add_region(parser->kernel, op, 0, NULL, &region));
        if (i == 0 || tk_kscan_take_word(&parser->scan, "else"))
            TK_TRY(read_region(parser, region));
        TK_TRY(end_region(parser, region));
    }
    return give_region_results(parser, names, op, op->regions[0]->last, 0);
}

typedef tk_status (*region_reader)(tk_kparser *parser, const tk_kscan *place, const results *names,
                                   tk_kblock *block, carried *c);

static tk_status read_with_regions(tk_kparser *parser, region_reader reader, const tk_kscan *place,
                                   const results *names, tk_kblock *block) {
    carried c = {0};
    tk_status status = reader(parser, place, names, block, &c);
    release_carried(&c);
    return status;
}

/* ---- lines ---- */

static tk_status read_names(tk_kparser *parser, results *names) {
    names->count = 0;
    tk_kscan_skip(&parser->scan);
    names->from = parser->scan.at;
    if (*parser->scan.at != '%') return TK_OK;
    do {
        if (names->count == MOST_RESULTS)
            return tk_kscan_fail(&parser->scan, parser->scan.at, "more than %d results",
                                 MOST_RESULTS);
        TK_TRY(tk_kscan_need_name(&parser->scan, &names->names[names->count++]));
    } while (tk_kscan_take(&parser->scan, ','));
    return tk_kscan_need(&parser->scan, '=');
}

static tk_status find_op(tk_kparser *parser, tk_kspan word, tk_kopcode *out) {
    for (unsigned code = 0; code < TK_KOP_COUNT; code++)
        if (tk_kspan_is(word, tk_kop_row_of(code)->name)) {
            *out = (tk_kopcode)code;
            return TK_OK;
        }
    return tk_kscan_fail(&parser->scan, word.text, "\"%.*s\" is no operation", (int)word.length,
                         word.text);
}

static tk_status read_op(tk_kparser *parser, tk_kblock *block) {
    results names;
    tk_kspan word;
    tk_kopcode code = TK_KOP_COUNT;
    TK_TRY(read_names(parser, &names));
    TK_TRY(tk_kscan_need_word(&parser->scan, "an operation", &word));
    tk_kscan place = parser->scan;
    place.at = word.text;
    TK_TRY(find_op(parser, word, &code));
    switch (code) {
    case TK_KOP_for:
        return read_with_regions(parser, read_for, &place, &names, block);
    case TK_KOP_while:
        return read_with_regions(parser, read_while, &place, &names, block);
    case TK_KOP_if:
        return read_with_regions(parser, read_if, &place, &names, block);
    default:
        return read_plain(parser, &place, code, &names, block);
    }
}

static tk_status read_block(tk_kparser *parser, tk_kblock *block) {
    while (!tk_kscan_see(&parser->scan, '}')) {
        if (!*parser->scan.at) return tk_kscan_expected(&parser->scan, "an operation or '}'");
        TK_TRY(read_op(parser, block));
    }
    return TK_OK;
}

static tk_status read_kernel(tk_kparser *parser) {
    uint32_t source;
    TK_TRY(tk_kparse_head(parser));
    TK_TRY(tk_kernel_string(parser->kernel, parser->scan.source, strlen(parser->scan.source),
                            &source));
    TK_TRY(read_region(parser, &parser->kernel->body));
    tk_kscan_skip(&parser->scan);
    if (*parser->scan.at) return tk_kscan_expected(&parser->scan, "the end of the text");
    return tk_kernel_verify(parser->kernel);
}

tk_status tk_kernel_parse(const char *text, const char *source, tk_kernel **out_kernel) {
    TK_NEED(text, out_kernel);
    tk_kparser parser = {
        .scan = {.source = source ? source : "kernel", .at = text, .line_start = text, .line = 1}};
    tk_status status = read_kernel(&parser);
    if (status == TK_OK)
        *out_kernel = parser.kernel;
    else
        tk_kernel_release(parser.kernel);
    tk_knames_deinit(&parser.names);
    return status;
}
