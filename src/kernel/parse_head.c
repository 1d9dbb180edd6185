/* The head of a kernel's text: parameters and launch contract.
 *
 * An expression may name a parameter that comes later, so what follows a parameter's type is passed
 * over at first and read when all are known. */
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/parse.h"

/* ---- types ---- */

static bool find_scalar(tk_kspan word, tk_kscalar *out) {
    for (int i = 0; i < TK_KSCALAR_COUNT; i++)
        if (tk_kspan_is(word, tk_kscalar_text((tk_kscalar)i))) {
            *out = (tk_kscalar)i;
            return true;
        }
    return false;
}

tk_status tk_kparse_scalar(tk_kparser *parser, tk_kscalar *out) {
    tk_kspan word;
    TK_TRY(tk_kscan_need_word(&parser->scan, "a scalar type", &word));
    if (find_scalar(word, out)) return TK_OK;
    return tk_kscan_fail(&parser->scan, word.text, "\"%.*s\" is no scalar type", (int)word.length,
                         word.text);
}

static tk_status read_space(tk_kparser *parser, uint8_t *out) {
    tk_kspan word;
    TK_TRY(tk_kscan_need_word(&parser->scan, "a space", &word));
    for (int i = 0; i < TK_KSPACE_COUNT; i++)
        if (tk_kspan_is(word, tk_kspace_text((tk_kspace)i))) {
            *out = (uint8_t)i;
            return TK_OK;
        }
    return tk_kscan_fail(
        &parser->scan, word.text,
        "\"%.*s\" is no space, expected global, constant, shared, cluster or param",
        (int)word.length, word.text);
}

static tk_status read_layout(tk_kparser *parser, uint32_t *out) {
    tk_kspan span;
    char text[2048];
    tk_composed layout;
    TK_TRY(tk_kscan_need_string(&parser->scan, &span));
    if (span.length >= sizeof text)
        return tk_kscan_fail(&parser->scan, span.text, "a layout of more than %zu characters",
                             sizeof text - 1);
    memcpy(text, span.text, span.length);
    text[span.length] = 0;
    tk_status status = tk_composed_parse(text, &layout);
    if (status != TK_OK) return tk_kscan_fail_again(&parser->scan, span.text, status);
    return tk_kernel_layout(parser->kernel, &layout, out);
}

static tk_status read_vector(tk_kparser *parser, tk_kspan word, tk_ktype *out) {
    size_t stem = word.length;
    int lanes = 0, tens = 1;
    tk_kscalar scalar;
    while (stem > 0 && word.text[stem - 1] >= '0' && word.text[stem - 1] <= '9' && tens < 1000) {
        lanes += tens * (word.text[--stem] - '0');
        tens *= 10;
    }
    bool vector =
        stem > 1 && stem < word.length && word.text[stem - 1] == 'x' && word.text[stem] != '0';
    tk_kspan element = {word.text, vector ? stem - 1 : word.length};
    if (!find_scalar(element, &scalar) || (vector && (lanes < 2 || lanes > 16)))
        return tk_kscan_fail(&parser->scan, word.text, "\"%.*s\" is no type", (int)word.length,
                             word.text);
    *out = tk_ktype_vector(scalar, vector ? lanes : 1);
    return TK_OK;
}

static unsigned kind_of_word(tk_kspan word) {
    static const char *const words[] = {[TK_KT_POINTER] = "ptr",
                                        [TK_KT_LAYOUT] = "layout",
                                        [TK_KT_VIEW] = "view",
                                        [TK_KT_SHARED] = "shared",
                                        [TK_KT_REGISTERS] = "regs"};
    for (unsigned kind = TK_KT_POINTER; kind <= TK_KT_REGISTERS; kind++)
        if (tk_kspan_is(word, words[kind])) return kind;
    return TK_KT_NUMBER;
}

static tk_status read_parts(tk_kparser *parser, tk_ktype *type) {
    tk_kscalar scalar = TK_K_I1;
    bool space = type->kind == TK_KT_POINTER || type->kind == TK_KT_VIEW;
    TK_TRY(tk_kscan_need(&parser->scan, '<'));
    if (type->kind != TK_KT_LAYOUT) {
        TK_TRY(tk_kparse_scalar(parser, &scalar));
        type->scalar = (uint8_t)scalar;
        type->lanes = 1;
        TK_TRY(tk_kscan_need(&parser->scan, ','));
    }
    if (space) TK_TRY(read_space(parser, &type->space));
    if (type->kind == TK_KT_POINTER) return tk_kscan_need(&parser->scan, '>');
    if (space) TK_TRY(tk_kscan_need(&parser->scan, ','));
    TK_TRY(read_layout(parser, &type->layout));
    if (type->kind == TK_KT_REGISTERS && tk_kscan_take(&parser->scan, ','))
        TK_TRY(read_layout(parser, &type->tv));
    return tk_kscan_need(&parser->scan, '>');
}

tk_status tk_kparse_type(tk_kparser *parser, tk_ktype *out) {
    tk_kspan word;
    TK_TRY(tk_kscan_need_word(&parser->scan, "a type", &word));
    const char *from = word.text;
    tk_kscan place = parser->scan;
    *out = (tk_ktype){.kind = (uint8_t)kind_of_word(word)};
    if (out->kind == TK_KT_NUMBER)
        TK_TRY(read_vector(parser, word, out));
    else
        TK_TRY(read_parts(parser, out));
    tk_status status = tk_ktype_check(parser->kernel, *out);
    return status == TK_OK ? TK_OK : tk_kscan_fail_again(&place, from, status);
}

/* ---- expressions ---- */

static tk_status read_sum(tk_kparser *parser, int32_t *out);

static tk_status add_node(tk_kparser *parser, const char *from, unsigned kind, int32_t left,
                          int32_t right, int32_t *out) {
    tk_kexpr node = {.kind = (uint8_t)kind, .left = left, .right = right};
    tk_status status = tk_kexpr_add(parser->kernel, node, out);
    return status == TK_OK ? TK_OK : tk_kscan_fail_again(&parser->scan, from, status);
}

static tk_status add_leaf(tk_kparser *parser, unsigned kind, int64_t value, int32_t *out) {
    return tk_kexpr_add(parser->kernel, (tk_kexpr){.kind = (uint8_t)kind, .value = value}, out);
}

static tk_status read_param_leaf(tk_kparser *parser, int32_t *out) {
    tk_kspan name;
    TK_TRY(tk_kscan_need_name(&parser->scan, &name));
    const tk_kname *found = tk_knames_find(&parser->names, name.text, name.length);
    const tk_kvalue *value = found ? found->what : NULL;
    if (!value)
        return tk_kscan_fail(&parser->scan, name.text - 1, "%%%.*s is no parameter",
                             (int)name.length, name.text);
    if (value->type.kind != TK_KT_NUMBER || value->type.lanes != 1 || value->type.scalar > TK_K_I64)
        return tk_kscan_fail(&parser->scan, name.text - 1, "%%%.*s is no integer", (int)name.length,
                             name.text);
    return add_leaf(parser, TK_KX_PARAM, value->index, out);
}

static tk_status read_fact(tk_kparser *parser, int32_t *out) {
    tk_kspan word;
    TK_TRY(tk_kscan_need(&parser->scan, '.'));
    TK_TRY(tk_kscan_need_word(&parser->scan, "a fact about the device", &word));
    for (int i = 0; i < TK_KFACT_COUNT; i++)
        if (tk_kspan_is(word, tk_kfact_text(i))) return add_leaf(parser, TK_KX_DEVICE, i, out);
    return tk_kscan_fail(
        &parser->scan, word.text,
        "\"%.*s\" is no fact about the device, expected sms, shared_bytes or threads",
        (int)word.length, word.text);
}

static tk_status read_call(tk_kparser *parser, tk_kspan word, int32_t *out) {
    int32_t left, right;
    unsigned kind = tk_kspan_is(word, "min")   ? TK_KX_MIN
                    : tk_kspan_is(word, "max") ? TK_KX_MAX
                                               : TK_KX_CEILDIV;
    if (kind == TK_KX_CEILDIV && !tk_kspan_is(word, "ceildiv"))
        return tk_kscan_fail(&parser->scan, word.text,
                             "\"%.*s\" is no function of contracts, expected ceildiv, min or max",
                             (int)word.length, word.text);
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    TK_TRY(read_sum(parser, &left));
    TK_TRY(tk_kscan_need(&parser->scan, ','));
    TK_TRY(read_sum(parser, &right));
    TK_TRY(tk_kscan_need(&parser->scan, ')'));
    return add_node(parser, parser->scan.at, kind, left, right, out);
}

static tk_status read_word_leaf(tk_kparser *parser, int32_t *out) {
    tk_kspan word;
    TK_TRY(tk_kscan_need_word(&parser->scan, "an expression", &word));
    return tk_kspan_is(word, "device") ? read_fact(parser, out) : read_call(parser, word, out);
}

static tk_status read_leaf(tk_kparser *parser, int32_t *out) {
    int64_t value;
    tk_kscan *scan = &parser->scan;
    if (tk_kscan_see(scan, '%')) return read_param_leaf(parser, out);
    if (tk_kscan_take(scan, '(')) {
        TK_TRY(read_sum(parser, out));
        return tk_kscan_need(scan, ')');
    }
    if (tk_kscan_see(scan, '-') || (*scan->at >= '0' && *scan->at <= '9')) {
        TK_TRY(tk_kscan_need_integer(scan, &value));
        return add_leaf(parser, TK_KX_CONST, value, out);
    }
    return read_word_leaf(parser, out);
}

static tk_status read_product(tk_kparser *parser, int32_t *out) {
    static const char signs[] = "*/%";
    static const uint8_t kinds[] = {TK_KX_MUL, TK_KX_DIV, TK_KX_MOD};
    TK_TRY(read_leaf(parser, out));
    for (tk_kscan_skip(&parser->scan); *parser->scan.at; tk_kscan_skip(&parser->scan)) {
        const char *from = parser->scan.at, *sign = memchr(signs, *from, sizeof signs - 1);
        int32_t right;
        if (!sign) return TK_OK;
        parser->scan.at++;
        TK_TRY(read_leaf(parser, &right));
        TK_TRY(add_node(parser, parser->scan.at, kinds[sign - signs], *out, right, out));
    }
    return TK_OK;
}

static tk_status read_sum(tk_kparser *parser, int32_t *out) {
    if (++parser->depth > TK_KPARSE_MOST_DEPTH)
        return tk_kscan_fail(&parser->scan, parser->scan.at, "parentheses are nested too deep");
    TK_TRY(read_product(parser, out));
    for (;;) {
        bool plus = tk_kscan_take(&parser->scan, '+');
        int32_t right;
        if (!plus && !tk_kscan_take(&parser->scan, '-')) break;
        TK_TRY(read_product(parser, &right));
        TK_TRY(add_node(parser, parser->scan.at, plus ? TK_KX_ADD : TK_KX_SUB, *out, right, out));
    }
    parser->depth--;
    return TK_OK;
}

/* (e, e, e) */
static tk_status read_exprs(tk_kparser *parser, int count, int32_t *out) {
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    for (int i = 0; i < count; i++) {
        if (i) TK_TRY(tk_kscan_need(&parser->scan, ','));
        TK_TRY(read_sum(parser, &out[i]));
    }
    return tk_kscan_need(&parser->scan, ')');
}

/* (1, 2, 3) */
static tk_status read_numbers(tk_kparser *parser, int count, int64_t low, int64_t high,
                              int64_t *out) {
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    for (int i = 0; i < count; i++) {
        if (i) TK_TRY(tk_kscan_need(&parser->scan, ','));
        tk_kscan_skip(&parser->scan);
        const char *from = parser->scan.at;
        TK_TRY(tk_kscan_need_integer(&parser->scan, &out[i]));
        if (out[i] < low || out[i] > high)
            return tk_kscan_fail(&parser->scan, from, "%lld, expected %lld to %lld",
                                 (long long)out[i], (long long)low, (long long)high);
    }
    return tk_kscan_need(&parser->scan, ')');
}

/* ---- parameters ---- */

static tk_status read_access(tk_kparser *parser, tk_kparameter *param) {
    if (tk_kscan_take_word(&parser->scan, "read"))
        param->access = TK_KACCESS_READ;
    else if (tk_kscan_take_word(&parser->scan, "write"))
        param->access = TK_KACCESS_WRITE;
    else if (tk_kscan_take_word(&parser->scan, "read_write"))
        param->access = TK_KACCESS_READ_WRITE;
    else
        return tk_kscan_expected(&parser->scan, "read, write or read_write");
    return TK_OK;
}

static tk_status read_pointer_param(tk_kparser *parser, tk_kparameter *param) {
    TK_TRY(read_access(parser, param));
    param->align = tk_kscalar_bytes((tk_kscalar)param->value->type.scalar);
    if (tk_kscan_take_word(&parser->scan, "align"))
        TK_TRY(tk_kscan_need_integer(&parser->scan, &param->align));
    return tk_kscan_take_word(&parser->scan, "size") ? read_sum(parser, &param->size) : TK_OK;
}

/* (?, ?, ...) of unknown length up to `most`. */
static tk_status read_extents(tk_kparser *parser, tk_kmap *map) {
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    do {
        if (map->rank == 5)
            return tk_kscan_fail(&parser->scan, parser->scan.at,
                                 "a tensor map has at most 5 extents");
        TK_TRY(read_sum(parser, &map->extent[map->rank++]));
    } while (tk_kscan_take(&parser->scan, ','));
    return tk_kscan_need(&parser->scan, ')');
}

static tk_status read_small(tk_kparser *parser, int count, int64_t high, int32_t *out) {
    int64_t numbers[5];
    TK_TRY(read_numbers(parser, count, 1, high, numbers));
    for (int i = 0; i < count; i++) out[i] = (int32_t)numbers[i];
    return TK_OK;
}

static tk_status read_one_of(tk_kparser *parser, const int32_t *choices, int32_t *out) {
    int64_t value;
    tk_kscan_skip(&parser->scan);
    const char *from = parser->scan.at;
    TK_TRY(tk_kscan_need_integer(&parser->scan, &value));
    for (int i = 0; i < 3; i++)
        if (choices[i] == value) {
            *out = choices[i];
            return TK_OK;
        }
    return tk_kscan_fail(&parser->scan, from, "%lld, expected %d, %d or %d", (long long)value,
                         choices[0], choices[1], choices[2]);
}

static tk_status read_map_options(tk_kparser *parser, tk_kmap *map) {
    static const int32_t swizzles[] = {32, 64, 128}, lines[] = {64, 128, 256};
    for (int i = 0; i < map->rank; i++) map->element_stride[i] = 1;
    if (tk_kscan_take_word(&parser->scan, "step"))
        TK_TRY(read_small(parser, map->rank, 8, map->element_stride));
    if (tk_kscan_take_word(&parser->scan, "swizzle"))
        TK_TRY(read_one_of(parser, swizzles, &map->swizzle));
    if (tk_kscan_take_word(&parser->scan, "l2")) TK_TRY(read_one_of(parser, lines, &map->l2_bytes));
    map->fill_nan = tk_kscan_take_word(&parser->scan, "nan");
    return TK_OK;
}

static tk_status read_map_base(tk_kparser *parser, tk_kmap *map) {
    tk_kspan name;
    TK_TRY(tk_kscan_need_name(&parser->scan, &name));
    const tk_kname *found = tk_knames_find(&parser->names, name.text, name.length);
    map->base = found ? found->what : NULL;
    if (map->base && map->base->type.kind == TK_KT_POINTER && map->base->type.scalar != TK_K_TMAP)
        return TK_OK;
    return tk_kscan_fail(&parser->scan, name.text - 1,
                         "%%%.*s is no parameter that points to elements", (int)name.length,
                         name.text);
}

static tk_status read_map_param(tk_kparser *parser, tk_kparameter *param) {
    tk_kmap *map = tk_arena_alloc(&parser->kernel->arena, sizeof *map);
    if (!map) return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a kernel");
    param->map = map;
    param->align = 64;
    map->name = param->value->name;
    TK_TRY(tk_kscan_need_this(&parser->scan, "map"));
    TK_TRY(read_map_base(parser, map));
    TK_TRY(tk_kparse_scalar(parser, &map->element));
    TK_TRY(tk_kscan_need_this(&parser->scan, "extent"));
    TK_TRY(read_extents(parser, map));
    TK_TRY(tk_kscan_need_this(&parser->scan, "stride"));
    TK_TRY(read_exprs(parser, map->rank - 1, map->stride));
    TK_TRY(tk_kscan_need_this(&parser->scan, "box"));
    TK_TRY(read_small(parser, map->rank, 256, map->box));
    return read_map_options(parser, map);
}

static bool is_map(const tk_kvalue *value) {
    return value->type.kind == TK_KT_POINTER && value->type.scalar == TK_K_TMAP &&
           value->type.space == TK_KS_PARAM;
}

/* To the comma or parenthesis that ends a parameter. */
static void pass_over(tk_kparser *parser) {
    int open = 0;
    for (tk_kscan_skip(&parser->scan); *parser->scan.at; tk_kscan_skip(&parser->scan)) {
        char c = *parser->scan.at;
        if (!open && (c == ',' || c == ')')) return;
        open += (c == '(') - (c == ')');
        parser->scan.at++;
    }
}

static tk_status add_param(tk_kparser *parser, tk_kspan name, tk_ktype type) {
    tk_kvalue *value;
    tk_kcontract *contract = &parser->kernel->contract;
    TK_TRY(tk_kernel_value(parser->kernel, TK_KV_PARAM, type, &value));
    value->index = (uint32_t)contract->params.count;
    TK_TRY(tk_kparse_define(parser, name, value));
    if (!value->name)
        return tk_kscan_fail(&parser->scan, name.text, "a parameter needs a name, not a number");
    tk_kparameter param = {.value = value, .access = TK_KACCESS_READ, .align = 1, .size = -1};
    return tk_vec_push(&contract->params, param)
               ? TK_OK
               : tk_fail(TK_OUT_OF_MEMORY, "no memory to read a kernel");
}

#define MOST_PARAMS 256

static tk_status read_params(tk_kparser *parser, tk_kscan *rest, size_t *out_count) {
    *out_count = 0;
    if (tk_kscan_take(&parser->scan, ')')) return TK_OK;
    do {
        tk_kspan name;
        tk_ktype type;
        TK_TRY(tk_kscan_need_name(&parser->scan, &name));
        if (*out_count == MOST_PARAMS)
            return tk_kscan_fail(&parser->scan, name.text, "more than %d parameters", MOST_PARAMS);
        TK_TRY(tk_kscan_need(&parser->scan, ':'));
        TK_TRY(tk_kparse_type(parser, &type));
        TK_TRY(add_param(parser, name, type));
        rest[(*out_count)++] = parser->scan;
        pass_over(parser);
    } while (tk_kscan_take(&parser->scan, ','));
    return tk_kscan_need(&parser->scan, ')');
}

static tk_status read_rest(tk_kparser *parser, const tk_kscan *rest, size_t index) {
    tk_kparameter *param = &parser->kernel->contract.params.items[index];
    parser->scan = rest[index];
    if (is_map(param->value))
        TK_TRY(read_map_param(parser, param));
    else if (param->value->type.kind == TK_KT_POINTER)
        TK_TRY(read_pointer_param(parser, param));
    if (tk_kscan_see(&parser->scan, ',') || tk_kscan_see(&parser->scan, ')')) return TK_OK;
    return tk_kscan_expected(&parser->scan, "',' or ')'");
}

static tk_status read_all_params(tk_kparser *parser) {
    tk_kscan rest[MOST_PARAMS];
    size_t count;
    TK_TRY(tk_kscan_need(&parser->scan, '('));
    TK_TRY(read_params(parser, rest, &count));
    tk_kscan end = parser->scan;
    for (size_t i = 0; i < count; i++) TK_TRY(read_rest(parser, rest, i));
    parser->scan = end;
    return TK_OK;
}

/* ---- clauses ---- */

static tk_status read_relation(tk_kparser *parser, uint8_t *out) {
    tk_kscan_skip(&parser->scan);
    size_t length = parser->scan.at[0] && parser->scan.at[1] == '=' ? 2 : 1;
    tk_kspan found = {parser->scan.at, length};
    for (int i = 0; i < TK_KR_COUNT; i++)
        if (*parser->scan.at && tk_kspan_is(found, tk_krelation_text((tk_krelation)i))) {
            parser->scan.at += length;
            *out = (uint8_t)i;
            return TK_OK;
        }
    return tk_kscan_expected(&parser->scan, "==, !=, <, <=, > or >=");
}

static tk_status read_condition(tk_kparser *parser) {
    tk_kcondition condition;
    TK_TRY(read_sum(parser, &condition.left));
    TK_TRY(read_relation(parser, &condition.relation));
    TK_TRY(read_sum(parser, &condition.right));
    if (tk_vec_push(&parser->kernel->contract.conditions, condition)) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a kernel");
}

static tk_status read_form(tk_kparser *parser) {
    for (int form = 0; form < 3; form++) {
        static const char *const words[] = {"tensor", "view", "thread"};
        if (!tk_kscan_take_word(&parser->scan, words[form])) continue;
        parser->kernel->form = (tk_kform)form;
        return TK_OK;
    }
    return tk_kscan_expected(&parser->scan, "tensor, view or thread");
}

static tk_status read_clause(tk_kparser *parser) {
    tk_kcontract *contract = &parser->kernel->contract;
    tk_kscan *scan = &parser->scan;
    if (tk_kscan_take_word(scan, "form")) return read_form(parser);
    if (tk_kscan_take_word(scan, "require")) return read_condition(parser);
    if (tk_kscan_take_word(scan, "grid")) return read_exprs(parser, 3, contract->grid);
    if (tk_kscan_take_word(scan, "cluster")) return read_exprs(parser, 3, contract->cluster);
    if (tk_kscan_take_word(scan, "block")) return read_numbers(parser, 3, 1, 1024, contract->block);
    if (tk_kscan_take_word(scan, "dynamic_shared"))
        return read_sum(parser, &contract->dynamic_shared);
    if (tk_kscan_take_word(scan, "min_blocks"))
        return tk_kscan_need_integer(scan, &contract->min_blocks);
    if (tk_kscan_take_word(scan, "cooperative")) return contract->cooperative = true, TK_OK;
    if (tk_kscan_take_word(scan, "programmatic")) return contract->programmatic = true, TK_OK;
    return tk_kscan_expected(scan, "a clause (form, require, grid, cluster, block, ...) or '{'");
}

tk_status tk_kparse_head(tk_kparser *parser) {
    int64_t version;
    tk_kspan name;
    char text[64];
    TK_TRY(tk_kscan_need_this(&parser->scan, "tiki"));
    TK_TRY(tk_kscan_need_this(&parser->scan, "kernel"));
    TK_TRY(tk_kscan_need_integer(&parser->scan, &version));
    if (version != 1)
        return tk_kscan_fail(&parser->scan, parser->scan.at,
                             "version %lld of the format, expected 1", (long long)version);
    TK_TRY(tk_kscan_need_this(&parser->scan, "kernel"));
    TK_TRY(tk_kscan_need_word(&parser->scan, "the kernel's name", &name));
    memcpy(text, name.text, name.length);
    text[name.length] = 0;
    parser->kernel = tk_kernel_create(text, TK_KFORM_THREAD);
    if (!parser->kernel) return tk_fail(TK_OUT_OF_MEMORY, "no memory to read a kernel");
    TK_TRY(read_all_params(parser));
    while (!tk_kscan_see(&parser->scan, '{')) TK_TRY(read_clause(parser));
    return TK_OK;
}
