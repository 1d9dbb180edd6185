/* The parser of graph text: one line at a time, one pass, no recursion.
 *
 * Names must ascend, which makes a definition that comes twice, or after its use, an error without
 * a table of names: they are looked up by bisection. Attributes come in the order of their record.
 * The type at the end of a line is checked against what inference gives, so a text that was edited
 * by hand tells where it no longer fits. */
#include "graph/parse.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/error.h"
#include "graph/text.h"
#include "graph/verify.h"

#define MOST_LIST_ITEMS 64
#define MOST_WORD_BYTES 31

typedef struct definition {
    uint64_t name;
    tk_node *node;
} definition;

typedef struct parser {
    tk_builder *b;
    const char *at;
    const char *line_start;
    int line;
    size_t n_inputs;
    tk_node *const *inputs;
    size_t n_declared; /* inputs so far */
    TK_VEC(definition) definitions;
    tk_node_vec operands; /* of the line */
} parser;

typedef struct word {
    char text[MOST_WORD_BYTES + 1];
    size_t length;
} word;

/* As large as the largest record, so that a new one needs no edit here. */
typedef union any_record {
#define TK_ATTRS(record, fields) tk_attrs_##record of_##record;
#include "graph/attrs.def"
#undef TK_ATTRS
} any_record;

/* An attribute record and the lists that it refers to. */
typedef struct record {
    uint64_t words[sizeof(any_record) / sizeof(uint64_t)];
    int64_t lists[sizeof(any_record) / sizeof(tk_list)][MOST_LIST_ITEMS];
    int n_lists;
} record;

/* ---- errors ---- */

static tk_status fail_at(const parser *p, const char *where, const char *format, ...)
    TK_PRINTF(3, 4);

static tk_status fail_at(const parser *p, const char *where, const char *format, ...) {
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return tk_fail(TK_FORMAT_ERROR, "graph text, line %d, column %d: %s", p->line,
                   (int)(where - p->line_start) + 1, message);
}

/* What stands at the cursor, for messages. */
static tk_status fail_expected(const parser *p, const char *expected) {
    char found[24];
    size_t length = 0;
    for (; length < sizeof found - 1 && p->at[length] && p->at[length] != '\n'; length++)
        found[length] = p->at[length] >= 32 && p->at[length] < 127 ? p->at[length] : '?';
    found[length] = 0;
    if (length == 0) return fail_at(p, p->at, "expected %s, found the end of the line", expected);
    return fail_at(p, p->at, "expected %s, found \"%s\"", expected, found);
}

/* A node that could not be made: its code, its message, and the place. */
static tk_status fail_node(const parser *p, const char *where, const tk_node *error) {
    const tk_attrs_error *attrs = tk_node_attrs(error);
    return tk_fail((tk_status)attrs->code, "graph text, line %d, column %d: %s", p->line,
                   (int)(where - p->line_start) + 1, attrs->message);
}

/* ---- tokens ---- */

static void skip_blanks(parser *p) {
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') p->at++;
    if (*p->at == '#') p->at += strcspn(p->at, "\n");
}

/* To the first token of the next line that has one. */
static void skip_lines(parser *p) {
    for (skip_blanks(p); *p->at == '\n'; skip_blanks(p)) {
        p->line_start = ++p->at;
        p->line++;
    }
}

static bool take(parser *p, char c) {
    skip_blanks(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static tk_status need(parser *p, char c) {
    char expected[4] = {'\'', c, '\'', 0};
    return take(p, c) ? TK_OK : fail_expected(p, expected);
}

static tk_status need_line_end(parser *p) {
    skip_blanks(p);
    if (*p->at == '\n' || *p->at == 0) return TK_OK;
    return fail_expected(p, "the end of the line");
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word_char(char c) { return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c); }

static size_t word_length(const char *at) {
    size_t length = 0;
    while (is_word_char(at[length])) length++;
    return length;
}

static tk_status need_word(parser *p, const char *expected, word *out_word) {
    skip_blanks(p);
    out_word->length = word_length(p->at);
    if (out_word->length == 0 || out_word->length > MOST_WORD_BYTES)
        return fail_expected(p, expected);
    memcpy(out_word->text, p->at, out_word->length);
    out_word->text[out_word->length] = 0;
    p->at += out_word->length;
    return TK_OK;
}

static tk_status need_this_word(parser *p, const char *expected) {
    skip_blanks(p);
    size_t length = word_length(p->at);
    if (length != strlen(expected) || memcmp(p->at, expected, length))
        return fail_expected(p, expected);
    p->at += length;
    return TK_OK;
}

static tk_status need_unsigned(parser *p, uint64_t *out_value) {
    skip_blanks(p);
    const char *from = p->at;
    uint64_t value = 0;
    bool overflow = false;
    for (; is_digit(*p->at); p->at++) {
        overflow |= __builtin_mul_overflow(value, (uint64_t)10, &value);
        overflow |= __builtin_add_overflow(value, (uint64_t)(*p->at - '0'), &value);
    }
    if (p->at == from) return fail_expected(p, "an integer");
    if (overflow) return fail_at(p, from, "the integer does not fit 64 bits");
    *out_value = value;
    return TK_OK;
}

static tk_status need_integer(parser *p, int64_t *out_value) {
    bool negative = take(p, '-');
    const char *from = p->at;
    uint64_t magnitude;
    TK_TRY(need_unsigned(p, &magnitude));
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return fail_at(p, from, "the integer does not fit 64 bits with a sign");
    *out_value = (int64_t)(negative ? 0 - magnitude : magnitude);
    return TK_OK;
}

static tk_status need_truth(parser *p, uint64_t *out_value) {
    word w;
    const char *from = p->at;
    TK_TRY(need_word(p, "true or false", &w));
    *out_value = !strcmp(w.text, "true");
    if (*out_value || !strcmp(w.text, "false")) return TK_OK;
    p->at = from;
    return fail_expected(p, "true or false");
}

static tk_status need_dtype(parser *p, tk_dtype *out_dtype) {
    word w;
    skip_blanks(p);
    const char *from = p->at;
    TK_TRY(need_word(p, "a dtype", &w));
    if (tk_dtype_parse(w.text, out_dtype) == TK_OK) return TK_OK;
    return fail_at(p, from, "\"%s\" is no dtype", w.text);
}

static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tk_status need_hex(parser *p, uint64_t *out_bits) {
    const char *from = p->at;
    uint64_t bits = 0;
    for (p->at += 2; hex_digit(*p->at) >= 0; p->at++) {
        if (bits >> 60) return fail_at(p, from, "the bits are more than 64");
        bits = bits << 4 | (uint64_t)hex_digit(*p->at);
    }
    *out_bits = bits;
    return TK_OK;
}

static tk_status need_float(parser *p, tk_dtype dtype, uint64_t *out_bits) {
    skip_blanks(p);
    if (p->at[0] == '0' && p->at[1] == 'x') return need_hex(p, out_bits);
    double value;
    size_t length = tk_decimal_read(p->at, strcspn(p->at, "\n"), dtype, &value);
    if (length == 0) return fail_expected(p, "a number");
    p->at += length;
    memcpy(out_bits, &value, sizeof value);
    return TK_OK;
}

/* What tk_text_put_bits writes. */
static tk_status need_bits(parser *p, tk_dtype dtype, uint64_t *out_bits) {
    switch (tk_dtype_kind(dtype)) {
    case TK_KIND_BOOL:
        return need_truth(p, out_bits);
    case TK_KIND_UNSIGNED:
        return need_unsigned(p, out_bits);
    case TK_KIND_SIGNED:
        return need_integer(p, (int64_t *)out_bits);
    default:
        return need_float(p, dtype, out_bits);
    }
}

static tk_status need_list(parser *p, int64_t *items, int64_t *out_count) {
    TK_TRY(need(p, '['));
    int64_t count = 0;
    if (!take(p, ']')) {
        do {
            if (count == MOST_LIST_ITEMS)
                return fail_at(p, p->at, "a list of more than %d entries", MOST_LIST_ITEMS);
            TK_TRY(need_integer(p, &items[count++]));
        } while (take(p, ','));
        TK_TRY(need(p, ']'));
    }
    *out_count = count;
    return TK_OK;
}

/* ---- constants and names ---- */

static bool starts_constant(parser *p) {
    skip_blanks(p);
    size_t length = word_length(p->at);
    return length && p->at[length] == '(';
}

/* f32(1.5), weak_i32(3), c64(0.0,1.0) */
static tk_status need_constant(parser *p, tk_node **out_node) {
    static const char prefix[] = "weak_";
    skip_blanks(p);
    const char *from = p->at;
    bool weak = !strncmp(p->at, prefix, sizeof prefix - 1);
    if (weak) p->at += sizeof prefix - 1;
    tk_dtype dtype;
    TK_TRY(need_dtype(p, &dtype));
    TK_TRY(need(p, '('));
    tk_attrs_constant attrs = {.dtype = dtype, .weak = weak};
    tk_dtype part = weak && tk_dtype_is_inexact(dtype) ? TK_FLOAT64 : dtype;
    TK_TRY(need_bits(p, part, &attrs.real));
    if (tk_dtype_is_complex(dtype)) {
        TK_TRY(need(p, ','));
        TK_TRY(need_bits(p, part, &attrs.imag));
    }
    TK_TRY(need(p, ')'));
    if (!tk_constant_is_normal(&attrs))
        return fail_at(p, from, "the value does not fit the constant's dtype");
    tk_node *node = tkb_node(p->b, TK_OP_const, 0, NULL, &attrs);
    if (tk_node_is_error(node)) return fail_node(p, from, node);
    if (weak) node->flags |= TK_NODE_WEAK;
    *out_node = node;
    return TK_OK;
}

/* After the '%'. */
static tk_status need_name(parser *p, bool *out_is_input, uint64_t *out_name) {
    *out_is_input = *p->at == 'a';
    if (*out_is_input) p->at++;
    if (!is_digit(*p->at)) return fail_expected(p, "a number, or a and a number, after '%'");
    return need_unsigned(p, out_name);
}

static tk_node *find_definition(const parser *p, uint64_t name) {
    size_t low = 0, high = p->definitions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->definitions.items[middle].name < name)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < p->definitions.count && p->definitions.items[low].name == name;
    return found ? p->definitions.items[low].node : NULL;
}

static tk_status need_reference(parser *p, tk_node **out_node) {
    const char *from = p->at;
    bool is_input;
    uint64_t name;
    TK_TRY(need(p, '%'));
    TK_TRY(need_name(p, &is_input, &name));
    if (is_input)
        *out_node = name < p->n_declared ? p->inputs[name] : NULL;
    else
        *out_node = find_definition(p, name);
    if (*out_node) return TK_OK;
    return fail_at(p, from, "%%%s%llu is not defined above", is_input ? "a" : "",
                   (unsigned long long)name);
}

/* Operands into p->operands. Only `output` may have a node with several outputs. */
static tk_status read_operands(parser *p, bool tuples) {
    p->operands.count = 0;
    do {
        tk_node *node = NULL;
        bool constant = starts_constant(p);
        const char *from = p->at;
        if (constant)
            TK_TRY(need_constant(p, &node));
        else if (p->operands.count == 0 && *p->at != '%')
            return TK_OK;
        else
            TK_TRY(need_reference(p, &node));
        if (node->n_outputs > 1 && !tuples)
            return fail_at(p, from, "the operand has several outputs, expected one of them");
        if (!tk_vec_push(&p->operands, node))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a graph");
    } while (take(p, ','));
    return TK_OK;
}

/* ---- attributes and types ---- */

static tk_status read_field(parser *p, tk_field_kind kind, tk_dtype dtype, record *r,
                            uint64_t *at) {
    tk_list list = {.items = r->lists[r->n_lists]};
    tk_dtype named;
    switch (kind) {
    case TK_FIELD_INT:
        return need_integer(p, (int64_t *)at);
    case TK_FIELD_FLAG:
        return need_truth(p, at);
    case TK_FIELD_FLOAT:
        return need_float(p, TK_FLOAT64, at);
    case TK_FIELD_BITS:
        return need_bits(p, dtype, at);
    case TK_FIELD_DTYPE:
        TK_TRY(need_dtype(p, &named));
        *at = named;
        return TK_OK;
    case TK_FIELD_LIST:
        TK_TRY(need_list(p, r->lists[r->n_lists++], &list.count));
        memcpy(at, &list, sizeof list);
        return TK_OK;
    default:
        return fail_expected(p, "an attribute that text can give");
    }
}

static tk_status read_record(parser *p, tk_record kind, record *out_record) {
    const tk_record_info *info = tk_record_of(kind);
    uint64_t *at = out_record->words;
    tk_dtype dtype = TK_FLOAT64;
    out_record->n_lists = 0;
    for (int i = 0; i < info->n_fields; i++) {
        const tk_field *field = &info->fields[i];
        TK_TRY(need_this_word(p, field->name));
        TK_TRY(need(p, '='));
        TK_TRY(read_field(p, field->kind, dtype, out_record, at));
        if (field->kind == TK_FIELD_DTYPE) dtype = (tk_dtype)*at;
        at += tk_field_bytes(field->kind) / sizeof *at;
    }
    return TK_OK;
}

static tk_status check_type(parser *p, tk_type type) {
    skip_blanks(p);
    const char *from = p->at;
    tk_dtype dtype;
    int64_t shape[MOST_LIST_ITEMS], rank;
    TK_TRY(need_dtype(p, &dtype));
    TK_TRY(need_list(p, shape, &rank));
    if (dtype == type.dtype && rank == type.rank &&
        (rank == 0 || !memcmp(shape, type.shape, (size_t)rank * sizeof *shape)))
        return TK_OK;
    char text[160];
    return fail_at(p, from, "the type is written as %.*s, but it is %s%s",
                   p->at - from > 60 ? 60 : (int)(p->at - from), from, tk_dtype_text(type.dtype),
                   tk_text_shape(text, sizeof text, type.rank, type.shape));
}

static tk_status check_types(parser *p, const tk_node *node) {
    TK_TRY(need(p, ':'));
    if (!node->outputs) return check_type(p, tk_node_type(node));
    TK_TRY(need(p, '('));
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (i) TK_TRY(need(p, ','));
        TK_TRY(check_type(p, node->outputs[i]));
    }
    return need(p, ')');
}

/* ---- lines ---- */

static tk_status read_input(parser *p, const char *from, bool is_input, uint64_t name) {
    if (!is_input) return fail_at(p, from, "an input is named %%a0, %%a1, ...");
    if (name != p->n_declared)
        return fail_at(p, from, "expected input %%a%zu, found %%a%llu", p->n_declared,
                       (unsigned long long)name);
    if (name >= p->n_inputs)
        return fail_at(p, from, "input %%a%llu is declared, but only %zu are given",
                       (unsigned long long)name, p->n_inputs);
    tk_node *node = p->inputs[name];
    if (tk_node_is_error(node)) return fail_node(p, from, node);
    if (node->n_outputs > 1) return fail_at(p, from, "the given input has several outputs");
    TK_TRY(need(p, ':'));
    TK_TRY(check_type(p, tk_node_type(node)));
    p->n_declared++;
    return TK_OK;
}

static bool has_text(tk_op op) {
    return op != TK_OP_buffer && op != TK_OP_placeholder && op != TK_OP_error &&
           op != TK_OP_custom && op != TK_OP_transfer && op != TK_OP_launch;
}

/* Serials given out later must not meet those of the text. */
static tk_status note_serial(parser *p, const char *from, const record *r) {
    const tk_attrs_barrier *attrs = (const tk_attrs_barrier *)(const void *)r->words;
    if (attrs->serial < 0 || attrs->serial > INT64_MAX / 2)
        return fail_at(p, from, "the serial is not between 0 and 2^62");
    if (p->b->graph->serial < (uint64_t)attrs->serial)
        p->b->graph->serial = (uint64_t)attrs->serial;
    return TK_OK;
}

static tk_status read_application(parser *p, const char *from, tk_op op, tk_node **out_node) {
    record r;
    if (op == TK_OP_const) return need_constant(p, out_node);
    TK_TRY(read_operands(p, op == TK_OP_output));
    if (p->operands.count == 0 && tk_op_of(op)->lower != TK_LOWER_LEAF)
        return fail_expected(p, "an operand");
    TK_TRY(read_record(p, tk_op_of(op)->record, &r));
    if (op == TK_OP_barrier) TK_TRY(note_serial(p, from, &r));
    tk_node *node = tkb_node(p->b, op, p->operands.count, p->operands.items, r.words);
    if (tk_node_is_error(node)) return fail_node(p, from, node);
    *out_node = node;
    return TK_OK;
}

static tk_status read_stream(parser *p) {
    uint64_t stream = 0;
    if (*p->at == '@') {
        const char *from = p->at++;
        TK_TRY(need_unsigned(p, &stream));
        if (stream > UINT32_MAX) return fail_at(p, from, "a stream is a number of 32 bits");
    }
    p->b->stream = (uint32_t)stream;
    return TK_OK;
}

static tk_status read_op(parser *p, const char *name_from, bool is_input, uint64_t name,
                         const word *w, const char *from) {
    tk_op op;
    tk_node *node = NULL;
    size_t count = p->definitions.count;
    if (tk_op_find(w->text, w->length, &op) != TK_OK)
        return fail_at(p, from, "\"%s\" is no op", w->text);
    if (!has_text(op)) return fail_at(p, from, "op %s has no text form", w->text);
    if (is_input)
        return fail_at(p, name_from, "%%a%llu is the name of an input", (unsigned long long)name);
    if (count && name <= p->definitions.items[count - 1].name)
        return fail_at(p, name_from, "%%%llu comes after %%%llu: names must ascend",
                       (unsigned long long)name,
                       (unsigned long long)p->definitions.items[count - 1].name);
    TK_TRY(read_stream(p));
    TK_TRY(read_application(p, from, op, &node));
    TK_TRY(check_types(p, node));
    definition made = {.name = name, .node = node};
    if (!tk_vec_push(&p->definitions, made))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a graph");
    return TK_OK;
}

static tk_status read_definition(parser *p) {
    const char *name_from = p->at;
    bool is_input;
    uint64_t name;
    word w;
    TK_TRY(need(p, '%'));
    TK_TRY(need_name(p, &is_input, &name));
    TK_TRY(need(p, '='));
    skip_blanks(p);
    const char *from = p->at;
    TK_TRY(need_word(p, "an op or input", &w));
    if (!strcmp(w.text, "input"))
        TK_TRY(read_input(p, name_from, is_input, name));
    else
        TK_TRY(read_op(p, name_from, is_input, name, &w, from));
    return need_line_end(p);
}

static tk_status read_header(parser *p) {
    skip_lines(p);
    TK_TRY(need_this_word(p, "tiki"));
    TK_TRY(need_this_word(p, "graph"));
    const char *from = p->at;
    uint64_t version;
    TK_TRY(need_unsigned(p, &version));
    if (version != 1)
        return fail_at(p, from, "version %llu of the format, expected 1",
                       (unsigned long long)version);
    return need_line_end(p);
}

static tk_status read_return(parser *p) {
    p->b->stream = 0;
    TK_TRY(need_this_word(p, "return"));
    TK_TRY(read_operands(p, false));
    TK_TRY(need_line_end(p));
    if (p->n_declared != p->n_inputs)
        return fail_at(p, p->at, "%zu inputs are declared, but %zu are given", p->n_declared,
                       p->n_inputs);
    skip_lines(p);
    return *p->at ? fail_expected(p, "the end of the text") : TK_OK;
}

static tk_status read_graph(parser *p) {
    TK_TRY(read_header(p));
    for (skip_lines(p); *p->at == '%'; skip_lines(p)) TK_TRY(read_definition(p));
    return read_return(p);
}

static tk_status hand_over(const parser *p, tk_node_vec *outputs) {
    if (!tk_vec_reserve(outputs, outputs->count + p->operands.count))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a graph");
    for (size_t i = 0; i < p->operands.count; i++)
        outputs->items[outputs->count++] = p->operands.items[i];
    return TK_OK;
}

tk_status tk_graph_text_parse(tk_builder *b, const char *text, size_t n_inputs,
                              tk_node *const *inputs, tk_node_vec *outputs) {
    parser p = {
        .b = b, .at = text, .line_start = text, .line = 1, .n_inputs = n_inputs, .inputs = inputs};
    uint32_t stream = b->stream;
    tk_status status = read_graph(&p);
    if (status == TK_OK) status = hand_over(&p, outputs);
    b->stream = stream;
    tk_vec_deinit(&p.definitions);
    tk_vec_deinit(&p.operands);
    return status;
}
