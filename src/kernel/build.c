/* The builder: the public way to make a kernel by calls, with an error that sticks.
 *
 * It keeps a stack of open regions; operations go to the end of the innermost. What it makes goes
 * through the same tk_kop_make and verifier as text does. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/contract.h"
#include "kernel/verify.h"

#define MOST_OPEN 64

struct tk_kernel_builder {
    tk_kernel *kernel;
    tk_kblock *block;
    tk_kop *open[MOST_OPEN];
    int n_open;
    tk_kloc loc;
    tk_status status;
    char message[TK_ERROR_MESSAGE_BYTES];
};

/* ---- errors ---- */

static bool ok(const tk_kernel_builder *b) { return b && b->status == TK_OK; }

/* Keeps the first error; true when there is none. */
static bool keep(tk_kernel_builder *b, tk_status status) {
    if (status == TK_OK) return true;
    b->status = status;
    snprintf(b->message, sizeof b->message, "%s", tk_error_message());
    return false;
}

/* Around operations: the line of the front end stands before the message. */
static bool keep_at(tk_kernel_builder *b, tk_status status) {
    const char *file = b->loc.file || b->kernel->strings.count < 2
                           ? b->kernel->strings.items[b->loc.file]
                           : b->kernel->strings.items[1];
    if (status != TK_OK && b->loc.line) status = tk_fail_within(status, "%s:%u", file, b->loc.line);
    return keep(b, status);
}

tk_status tk_kernel_builder_status(const tk_kernel_builder *b) {
    TK_NEED(b);
    return b->status == TK_OK ? TK_OK : tk_fail_again(b->status, b->message);
}

void tk_kernel_builder_fail(tk_kernel_builder *b, tk_status code, const char *message) {
    if (ok(b) && code != TK_OK) keep_at(b, tk_error_set(code, "%s", message ? message : ""));
}

/* A list may be NULL when it is empty. */
static bool have_list(tk_kernel_builder *b, const char *name, size_t count, const void *list) {
    return count == 0 || list || keep_at(b, tk_fail_null(name));
}

/* ---- life ---- */

static bool is_name(const char *name) {
    size_t length = strlen(name);
    if (length == 0 || length > 60 || (*name >= '0' && *name <= '9')) return false;
    for (const char *c = name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
              *c == '_'))
            return false;
    return true;
}

tk_kernel_builder *tk_kernel_builder_create(const char *name, tk_kform form) {
    tk_kernel_builder *b = tk_calloc(1, sizeof *b);
    bool form_is_known = (unsigned)form <= TK_KFORM_THREAD, good = name && is_name(name);
    if (!b) return NULL;
    b->kernel = tk_kernel_create(good ? name : "kernel", form_is_known ? form : TK_KFORM_THREAD);
    if (!b->kernel) {
        tk_free(b);
        return NULL;
    }
    b->block = &b->kernel->body;
    if (keep(b, tk_check_enum("form", (int)form, TK_KFORM_THREAD + 1, "tk_kform")) && !good)
        keep(b, tk_fail(TK_INVALID_ARGUMENT, "\"%.80s\": expected a name of letters, digits and _",
                        name ? name : "NULL"));
    return b;
}

void tk_kernel_builder_release(tk_kernel_builder *b) {
    if (!b) return;
    tk_kernel_release(b->kernel);
    tk_free(b);
}

tk_status tk_kernel_builder_finish(tk_kernel_builder *b, tk_kernel **out_kernel) {
    TK_NEED(b, out_kernel);
    TK_TRY(tk_kernel_builder_status(b));
    if (b->n_open)
        keep(b, tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %d regions are not ended", b->kernel->name,
                        b->n_open));
    if (ok(b)) keep(b, tk_kernel_verify(b->kernel));
    TK_TRY(tk_kernel_builder_status(b));
    *out_kernel = tk_kernel_retain(b->kernel);
    keep(b, tk_fail(TK_INVALID_ARGUMENT, "kernel %s: the builder is finished", b->kernel->name));
    return TK_OK;
}

static bool intern(tk_kernel_builder *b, const char *text, uint32_t *out) {
    return keep(b, tk_kernel_string(b->kernel, text, strlen(text), out));
}

void tk_kernel_at(tk_kernel_builder *b, const char *file, int line) {
    uint32_t number;
    if (!ok(b)) return;
    b->loc.line = line > 0 ? (uint32_t)line : 0;
    if (file && *file && intern(b, file, &number)) b->loc.file = number;
}

/* ---- contract ---- */

static int32_t add_expr(tk_kernel_builder *b, tk_kexpr node) {
    int32_t number = -1;
    return ok(b) && keep_at(b, tk_kexpr_add(b->kernel, node, &number)) ? number : -1;
}

int32_t tk_kexpr_const(tk_kernel_builder *b, int64_t value) {
    return add_expr(b, (tk_kexpr){.kind = TK_KX_CONST, .value = value});
}

int32_t tk_kexpr_device(tk_kernel_builder *b, tk_kfact fact) {
    if (ok(b)) keep_at(b, tk_check_enum("fact", (int)fact, TK_KFACT_COUNT, "tk_kfact"));
    return add_expr(b, (tk_kexpr){.kind = TK_KX_DEVICE, .value = fact});
}

int32_t tk_kexpr_param(tk_kernel_builder *b, const tk_kvalue *param) {
    bool integer = param && param->kind == TK_KV_PARAM && param->type.kind == TK_KT_NUMBER &&
                   param->type.lanes == 1 && param->type.scalar <= TK_K_I64;
    if (ok(b) && !integer)
        keep_at(b, tk_fail(TK_DTYPE_ERROR,
                           "an expression of the contract names what is no integer parameter"));
    return ok(b) ? add_expr(b, (tk_kexpr){.kind = TK_KX_PARAM, .value = param->index}) : -1;
}

static bool is_expr(tk_kernel_builder *b, int32_t expr) {
    if (!ok(b)) return false;
    if (expr >= 0 && (size_t)expr < b->kernel->contract.exprs.count) return true;
    return keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "%d is no expression of this kernel", expr));
}

int32_t tk_kexpr_binary(tk_kernel_builder *b, tk_kexpr_kind kind, int32_t left, int32_t right) {
    if (ok(b) && (kind < TK_KX_ADD || kind >= TK_KX_COUNT))
        keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "argument `kind` is %d, expected %d to %d",
                           (int)kind, TK_KX_ADD, TK_KX_COUNT - 1));
    if (!is_expr(b, left) || !is_expr(b, right)) return -1;
    return add_expr(b, (tk_kexpr){.kind = (uint8_t)kind, .left = left, .right = right});
}

static bool name_param(tk_kernel_builder *b, tk_kvalue *value, const char *name) {
    if (!name || !is_name(name))
        return keep_at(b, tk_fail(TK_INVALID_ARGUMENT,
                                  "parameter \"%.80s\": expected a name of letters, digits and _",
                                  name ? name : "NULL"));
    const tk_kcontract *contract = &b->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++)
        if (!strcmp(contract->params.items[i].value->name, name))
            return keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "two parameters are called %s", name));
    value->name = tk_arena_text(&b->kernel->arena, name, strlen(name));
    return value->name || keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel"));
}

static tk_kvalue *push_param(tk_kernel_builder *b, const char *name, tk_ktype type,
                             tk_kparameter param) {
    if (!keep_at(b, tk_kernel_value(b->kernel, TK_KV_PARAM, type, &param.value))) return NULL;
    if (!name_param(b, param.value, name)) return NULL;
    param.value->index = (uint32_t)b->kernel->contract.params.count;
    if (!tk_vec_push(&b->kernel->contract.params, param))
        keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel"));
    return ok(b) ? param.value : NULL;
}

tk_kvalue *tk_kernel_add_param(tk_kernel_builder *b, const tk_kparam *param) {
    if (!ok(b) || !keep(b, tk_need("param", 1, (const void *const[]){param}))) return NULL;
    if (param->size >= 0 && !is_expr(b, param->size)) return NULL;
    keep_at(b,
            tk_check_enum("access", (int)param->access, TK_KACCESS_READ_WRITE + 1, "tk_kaccess"));
    if (!ok(b) || !keep_at(b, tk_ktype_check(b->kernel, param->type))) return NULL;
    int least = tk_kscalar_bytes((tk_kscalar)param->type.scalar);
    tk_kparameter made = {.access = (uint8_t)(param->access ? param->access : TK_KACCESS_READ),
                          .align = param->align > 0 ? param->align : least,
                          .size = param->size < 0 ? -1 : param->size};
    return push_param(b, param->name, param->type, made);
}

static bool is_one_of(int32_t value, int32_t a, int32_t b, int32_t c) {
    return value == 0 || value == a || value == b || value == c;
}

static bool check_map(tk_kernel_builder *b, const tk_kmap *map) {
    if (!keep_at(b, tk_check_enum("element", (int)map->element, TK_KSCALAR_COUNT, "tk_kscalar")))
        return false;
    if (map->rank < 1 || map->rank > 5)
        return keep_at(
            b, tk_fail(TK_SHAPE_ERROR, "a tensor map of rank %d, expected 1 to 5", map->rank));
    if (!is_one_of(map->swizzle, 32, 64, 128) || !is_one_of(map->l2_bytes, 64, 128, 256))
        return keep_at(b, tk_fail(TK_INVALID_ARGUMENT,
                                  "swizzle %d and l2_bytes %d of a tensor map, expected 0, 32, 64 "
                                  "or 128, and 0, 64, 128 or 256",
                                  map->swizzle, map->l2_bytes));
    for (int i = 0; i < map->rank; i++) {
        if (!is_expr(b, map->extent[i]) || (i && !is_expr(b, map->stride[i - 1]))) return false;
        if (map->box[i] < 1 || map->box[i] > 256 || map->element_stride[i] < 1 ||
            map->element_stride[i] > 8)
            return keep_at(
                b,
                tk_fail(TK_INVALID_ARGUMENT,
                        "a box of 1 to 256 elements in steps of 1 to 8 is expected along axis %d",
                        i));
    }
    if (map->base && map->base->kind == TK_KV_PARAM && map->base->type.kind == TK_KT_POINTER)
        return true;
    return keep_at(b, tk_fail(TK_DTYPE_ERROR,
                              "the base of a tensor map is no parameter that points to elements"));
}

tk_kvalue *tk_kernel_add_map(tk_kernel_builder *b, const tk_kmap *map) {
    if (!ok(b) || !keep(b, tk_need("map", 1, (const void *const[]){map})) || !check_map(b, map))
        return NULL;
    tk_kmap *copy = tk_arena_alloc(&b->kernel->arena, sizeof *copy);
    if (!copy) return keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel")), NULL;
    *copy = *map;
    tk_kparameter made = {.access = TK_KACCESS_READ, .align = 64, .size = -1, .map = copy};
    tk_kvalue *value = push_param(b, map->name, tk_ktype_pointer(TK_K_TMAP, TK_KS_PARAM), made);
    if (value) copy->name = value->name;
    return value;
}

void tk_kernel_require(tk_kernel_builder *b, int32_t left, tk_krelation relation, int32_t right) {
    if (!is_expr(b, left) || !is_expr(b, right)) return;
    if (!keep_at(b, tk_check_enum("relation", (int)relation, TK_KR_COUNT, "tk_krelation"))) return;
    tk_kcondition condition = {left, right, (uint8_t)relation};
    if (ok(b) && !tk_vec_push(&b->kernel->contract.conditions, condition))
        keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel"));
}

static void set_extents(tk_kernel_builder *b, int32_t *extents, int32_t x, int32_t y, int32_t z) {
    if (!is_expr(b, x) || !is_expr(b, y) || !is_expr(b, z)) return;
    extents[0] = x, extents[1] = y, extents[2] = z;
}

void tk_kernel_grid(tk_kernel_builder *b, int32_t x, int32_t y, int32_t z) {
    if (ok(b)) set_extents(b, b->kernel->contract.grid, x, y, z);
}

void tk_kernel_cluster(tk_kernel_builder *b, int32_t x, int32_t y, int32_t z) {
    if (ok(b)) set_extents(b, b->kernel->contract.cluster, x, y, z);
}

void tk_kernel_block(tk_kernel_builder *b, int64_t x, int64_t y, int64_t z) {
    if (!ok(b)) return;
    int64_t *block = b->kernel->contract.block;
    block[0] = x, block[1] = y, block[2] = z;
}

void tk_kernel_dynamic_shared(tk_kernel_builder *b, int32_t bytes) {
    if (is_expr(b, bytes)) b->kernel->contract.dynamic_shared = bytes;
}

void tk_kernel_cooperative(tk_kernel_builder *b) {
    if (ok(b)) b->kernel->contract.cooperative = true;
}

void tk_kernel_programmatic(tk_kernel_builder *b) {
    if (ok(b)) b->kernel->contract.programmatic = true;
}

void tk_kernel_min_blocks(tk_kernel_builder *b, int64_t blocks_of_an_sm) {
    if (ok(b)) b->kernel->contract.min_blocks = blocks_of_an_sm;
}

/* ---- types ---- */

static bool read_layout(tk_kernel_builder *b, const char *text, uint32_t *out) {
    tk_composed layout;
    if (!ok(b) || !keep(b, tk_need("layout", 1, (const void *const[]){text}))) return false;
    return keep_at(b, tk_composed_parse(text, &layout)) &&
           keep_at(b, tk_kernel_layout(b->kernel, &layout, out));
}

static tk_ktype with_layout(tk_kernel_builder *b, tk_ktype type, const char *layout,
                            const char *tv) {
    if (!read_layout(b, layout, &type.layout)) return (tk_ktype){0};
    if (tv && !read_layout(b, tv, &type.tv)) return (tk_ktype){0};
    return keep_at(b, tk_ktype_check(b->kernel, type)) ? type : (tk_ktype){0};
}

tk_ktype tk_ktype_of_layout(tk_kernel_builder *b, const char *layout) {
    return with_layout(b, (tk_ktype){.kind = TK_KT_LAYOUT}, layout, NULL);
}

static tk_ktype of_elements(tk_ktype_kind kind, tk_kscalar element) {
    tk_ktype type = tk_ktype_scalar(element);
    type.kind = (uint8_t)kind;
    return type;
}

tk_ktype tk_ktype_of_view(tk_kernel_builder *b, tk_kscalar element, tk_kspace space,
                          const char *layout) {
    tk_ktype type = tk_ktype_pointer(element, space);
    type.kind = TK_KT_VIEW;
    return with_layout(b, type, layout, NULL);
}

tk_ktype tk_ktype_of_shared(tk_kernel_builder *b, tk_kscalar element, const char *layout) {
    return with_layout(b, of_elements(TK_KT_SHARED, element), layout, NULL);
}

tk_ktype tk_ktype_of_registers(tk_kernel_builder *b, tk_kscalar element, const char *layout,
                               const char *tv) {
    return with_layout(b, of_elements(TK_KT_REGISTERS, element), layout, tv);
}

/* ---- values ---- */

static bool is_scalar(tk_kernel_builder *b, tk_kscalar scalar) {
    return ok(b) &&
           keep_at(b, tk_check_enum("scalar", (int)scalar, TK_KSCALAR_COUNT, "tk_kscalar"));
}

static tk_kvalue *constant(tk_kernel_builder *b, tk_kscalar scalar, uint64_t bits) {
    tk_kvalue *value = NULL;
    if (ok(b) && (unsigned)scalar >= TK_K_MBAR)
        keep_at(
            b, tk_fail(TK_DTYPE_ERROR, "there is no constant of type %s", tk_kscalar_text(scalar)));
    if (ok(b)) keep_at(b, tk_kernel_constant(b->kernel, scalar, bits, &value));
    return value;
}

tk_kvalue *tk_kernel_int(tk_kernel_builder *b, tk_kscalar scalar, int64_t value) {
    if (is_scalar(b, scalar) && scalar > TK_K_I64)
        keep_at(b, tk_fail(TK_DTYPE_ERROR, "%s is no integer type", tk_kscalar_text(scalar)));
    return constant(b, scalar, (uint64_t)value);
}

tk_kvalue *tk_kernel_float(tk_kernel_builder *b, tk_kscalar scalar, double value) {
    if (is_scalar(b, scalar) && scalar <= TK_K_I64)
        keep_at(b, tk_fail(TK_DTYPE_ERROR, "%s is no float type", tk_kscalar_text(scalar)));
    return ok(b) ? constant(b, scalar, tk_kscalar_bits(scalar, value)) : NULL;
}

tk_ktype tk_kvalue_type(const tk_kvalue *value) { return value ? value->type : (tk_ktype){0}; }
const char *tk_kvalue_name(const tk_kvalue *value) { return value ? value->name : NULL; }

void tk_kvalue_rename(tk_kernel_builder *b, tk_kvalue *value, const char *name) {
    if (!ok(b) || !value || !name || !is_name(name) || value->kind == TK_KV_CONST ||
        value->kind == TK_KV_PARAM)
        return;
    value->name = tk_arena_text(&b->kernel->arena, name, strlen(name));
}

/* ---- operations ---- */

static int place_of(const tk_kop_row *row, tk_kattr_id id) {
    for (int i = 0; row->attrs[i]; i++)
        if (row->attrs[i] == (unsigned)id + 1) return i;
    return -1;
}

static tk_status set_attr(tk_kernel_builder *b, const tk_kop_row *row, const tk_kattr *given,
                          int64_t *attrs) {
    TK_TRY(tk_check_enum("id", (int)given->id, TK_KATTR_COUNT, "tk_kattr_id"));
    int place = place_of(row, given->id);
    uint32_t number;
    if (place < 0)
        return tk_fail(TK_INVALID_ARGUMENT, "%s has no attribute %s", row->name,
                       tk_kattr_row_of(given->id)->name);
    const tk_kattr_row *attr = tk_kattr_row_of(given->id);
    attrs[place] = given->value;
    if (attr->kind != TK_KAK_WORD && attr->kind != TK_KAK_TEXT) return TK_OK;
    if (!given->word)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: attribute %s needs a word", row->name, attr->name);
    if (attr->kind == TK_KAK_TEXT) {
        TK_TRY(tk_kernel_string(b->kernel, given->word, strlen(given->word), &number));
        attrs[place] = number;
        return TK_OK;
    }
    attrs[place] = tk_kwords_find(attr->words, given->word, strlen(given->word));
    if (attrs[place] >= 0) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: attribute %s is \"%.40s\", expected one of %s",
                   row->name, attr->name, given->word, attr->words);
}

static tk_status set_attrs(tk_kernel_builder *b, const tk_kop_row *row, size_t n_attrs,
                           const tk_kattr *given, int64_t *attrs) {
    for (int i = 0; row->attrs[i]; i++) attrs[i] = tk_kattr_row_of(row->attrs[i] - 1u)->initial;
    for (size_t i = 0; i < n_attrs; i++) TK_TRY(set_attr(b, row, &given[i], attrs));
    return TK_OK;
}

static tk_status append(tk_kernel_builder *b, const tk_kop_spec *spec, tk_kop **out) {
    TK_TRY(tk_kop_make(b->kernel, spec, out));
    tk_kop_append(b->block, *out);
    return TK_OK;
}

/* Operations on views may leave their result's type to the layout algebra. */
static tk_status derive_type(tk_kernel_builder *b, const tk_kop_spec *spec, tk_ktype *out) {
    tk_composed layout;
    tk_kop probe = {.code = (uint16_t)spec->code,
                    .n_operands = (uint32_t)spec->n_operands,
                    .operands = (tk_kvalue **)(uintptr_t)spec->operands,
                    .attrs = (int64_t *)(uintptr_t)spec->attrs};
    if (spec->n_operands == 0 || !spec->operands[0] ||
        !tk_kclass_has(TK_KC_TILE, spec->operands[0]->type))
        return TK_OK;
    TK_TRY(tk_kview_derive(b->kernel, &probe, &layout));
    *out = spec->operands[0]->type;
    out->tv = 0;
    return tk_kernel_layout(b->kernel, &layout, &out->layout);
}

static bool can_derive(tk_kopcode code) {
    return code == TK_KOP_slice || code == TK_KOP_tile || code == TK_KOP_partition ||
           code == TK_KOP_compose;
}

static bool is_flow(tk_kopcode code) {
    return (tk_kop_row_of(code)->effects & (TK_KE_REGION | TK_KE_TERMINATOR)) != 0;
}

tk_kvalue *tk_kernel_op(tk_kernel_builder *b, tk_kopcode code, size_t n_operands,
                        tk_kvalue *const *operands, size_t n_attrs, const tk_kattr *attrs,
                        tk_ktype type) {
    int64_t values[TK_KOP_MOST_ATTRS];
    tk_kop *op = NULL;
    if (!ok(b)) return NULL;
    if (!have_list(b, "operands", n_operands, operands) || !have_list(b, "attrs", n_attrs, attrs))
        return NULL;
    if (!keep_at(b, tk_check_enum("code", (int)code, TK_KOP_COUNT, "tk_kopcode"))) return NULL;
    if (is_flow(code))
        return keep_at(b,
                       tk_fail(TK_INVALID_ARGUMENT, "%s is no operation that is appended as such",
                               tk_kopcode_name(code))),
               NULL;
    if (!keep_at(b, set_attrs(b, tk_kop_row_of(code), n_attrs, attrs, values))) return NULL;
    tk_kop_spec spec = {.code = code,
                        .n_operands = n_operands,
                        .operands = operands,
                        .attrs = values,
                        .types = &type,
                        .loc = b->loc};
    if (type.kind == TK_KT_NONE && can_derive(code) && !keep_at(b, derive_type(b, &spec, &type)))
        return NULL;
    spec.n_types = type.kind != TK_KT_NONE;
    if (spec.n_types && !keep_at(b, tk_ktype_check(b->kernel, type))) return NULL;
    if (!keep_at(b, append(b, &spec, &op))) return NULL;
    return op->n_results ? op->results[0] : NULL;
}

/* ---- regions ---- */

static bool append_flow(tk_kernel_builder *b, tk_kopcode code, size_t n_operands,
                        tk_kvalue *const *operands, tk_kop **out) {
    int64_t attrs[TK_KOP_MOST_ATTRS];
    set_attrs(b, tk_kop_row_of(code), 0, NULL, attrs);
    tk_kop_spec spec = {.code = code,
                        .n_operands = n_operands,
                        .operands = operands,
                        .attrs = attrs,
                        .loc = b->loc};
    return keep_at(b, append(b, &spec, out));
}

static bool types_of(tk_kernel_builder *b, size_t count, tk_kvalue *const *values, tk_ktype **out) {
    if (!have_list(b, "values", count, values)) return false;
    *out = tk_arena_alloc(&b->kernel->arena, (count + 1) * sizeof **out);
    if (!*out) return keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel"));
    for (size_t i = 0; i < count; i++) {
        if (!values[i]) return keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "value %zu is missing", i));
        (*out)[i] = values[i]->type;
    }
    return true;
}

/* A region of `op` becomes the place of what follows. */
static bool open_region(tk_kernel_builder *b, tk_kop *op, size_t n_args, const tk_ktype *types,
                        tk_kvalue **out_args, size_t skipped) {
    tk_kblock *block;
    if (!keep_at(b, tk_kop_add_region(b->kernel, op, n_args, types, &block))) return false;
    for (size_t i = skipped; i < n_args && out_args; i++) out_args[i - skipped] = block->args[i];
    b->block = block;
    return true;
}

static bool push(tk_kernel_builder *b, tk_kop *op) {
    if (b->n_open == MOST_OPEN)
        return keep_at(b, tk_fail(TK_OVERFLOW, "regions are nested deeper than %d", MOST_OPEN));
    b->open[b->n_open++] = op;
    return true;
}

static tk_kop *innermost(tk_kernel_builder *b, tk_kopcode code) {
    if (!ok(b)) return NULL;
    tk_kop *op = b->n_open ? b->open[b->n_open - 1] : NULL;
    if (op && op->code == code) return op;
    return keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "the innermost open region is not of %s",
                              tk_kopcode_name(code))),
           NULL;
}

tk_kvalue *tk_kernel_for(tk_kernel_builder *b, tk_kvalue *first, tk_kvalue *end, tk_kvalue *step,
                         int64_t unroll, size_t n_carried, tk_kvalue *const *carried,
                         tk_kvalue **out_args) {
    enum { BOUNDS = 3 };
    tk_kop *op;
    tk_ktype *types;
    if (!ok(b) || !have_list(b, "carried", n_carried, carried)) return NULL;
    tk_kvalue **operands =
        tk_arena_alloc(&b->kernel->arena, (BOUNDS + n_carried) * sizeof(tk_kvalue *));
    if (!operands) return keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel")), NULL;
    operands[0] = first, operands[1] = end, operands[2] = step;
    for (size_t i = 0; i < n_carried; i++) operands[BOUNDS + i] = carried[i];
    if (!append_flow(b, TK_KOP_for, BOUNDS + n_carried, operands, &op) || !push(b, op)) return NULL;
    op->attrs[0] = unroll;
    if (!types_of(b, 1 + n_carried, operands + BOUNDS - 1, &types)) return NULL;
    if (!open_region(b, op, 1 + n_carried, types, out_args, 1)) return NULL;
    return b->block->args[0];
}

void tk_kernel_while(tk_kernel_builder *b, size_t n_carried, tk_kvalue *const *carried,
                     tk_kvalue **out_args) {
    tk_kop *op;
    tk_ktype *types;
    if (!ok(b) || !types_of(b, n_carried, carried, &types)) return;
    if (append_flow(b, TK_KOP_while, n_carried, carried, &op) && push(b, op))
        open_region(b, op, n_carried, types, out_args, 0);
}

void tk_kernel_while_do(tk_kernel_builder *b, tk_kvalue *condition, size_t n_values,
                        tk_kvalue *const *values, tk_kvalue **out_args) {
    tk_kop *op = innermost(b, TK_KOP_while), *end;
    tk_ktype *types;
    if (!op || !types_of(b, n_values, values, &types)) return;
    tk_kvalue **operands = tk_arena_alloc(&b->kernel->arena, (1 + n_values) * sizeof(tk_kvalue *));
    if (!operands) {
        keep(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel"));
        return;
    }
    operands[0] = condition;
    for (size_t i = 0; i < n_values; i++) operands[1 + i] = values[i];
    if (op->n_regions != 1)
        keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "while: its condition is given already"));
    if (!ok(b) || !append_flow(b, TK_KOP_condition, 1 + n_values, operands, &end)) return;
    open_region(b, op, n_values, types, out_args, 0);
}

void tk_kernel_if(tk_kernel_builder *b, tk_kvalue *condition) {
    tk_kop *op;
    if (ok(b) && append_flow(b, TK_KOP_if, 1, &condition, &op) && push(b, op))
        open_region(b, op, 0, NULL, NULL, 0);
}

static bool yield(tk_kernel_builder *b, size_t n_values, tk_kvalue *const *values) {
    tk_kop *end;
    return have_list(b, "values", n_values, values) &&
           append_flow(b, TK_KOP_yield, n_values, values, &end);
}

void tk_kernel_else(tk_kernel_builder *b, size_t n_values, tk_kvalue *const *values) {
    tk_kop *op = innermost(b, TK_KOP_if);
    if (!op) return;
    if (op->n_regions != 1) keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "if: it has an else already"));
    if (ok(b) && yield(b, n_values, values)) open_region(b, op, 0, NULL, NULL, 0);
}

/* An if without else gets an empty one. */
static bool add_missing(tk_kernel_builder *b, tk_kop *op) {
    if (op->code != TK_KOP_if || op->n_regions == 2) return true;
    return open_region(b, op, 0, NULL, NULL, 0) && yield(b, 0, NULL);
}

static void give_results(tk_kernel_builder *b, tk_kop *op, tk_kvalue **out_results) {
    const tk_kop *end = op->regions[0]->last;
    uint32_t first = op->code == TK_KOP_while;
    tk_ktype *types;
    if (!types_of(b, end->n_operands - first, end->operands + first, &types)) return;
    if (!keep_at(b, tk_kop_add_results(b->kernel, op, end->n_operands - first, types))) return;
    for (int i = 0; i < op->n_results && out_results; i++) out_results[i] = op->results[i];
}

void tk_kernel_end(tk_kernel_builder *b, size_t n_values, tk_kvalue *const *values,
                   tk_kvalue **out_results) {
    if (!ok(b)) return;
    if (!b->n_open) {
        keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "no region is open"));
        return;
    }
    tk_kop *op = b->open[b->n_open - 1];
    if (op->code == TK_KOP_while && op->n_regions != 2)
        keep_at(b, tk_fail(TK_INVALID_ARGUMENT, "while: its condition is missing"));
    if (!ok(b) || !yield(b, n_values, values) || !add_missing(b, op)) return;
    b->n_open--;
    b->block = op->block;
    give_results(b, op, out_results);
}
