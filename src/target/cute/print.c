/* Kernels as CuTe MLIR: names, types, the module around the body, and the walk over operations. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernel/check.h"
#include "kernel/contract.h"
#include "kernel/verify.h"
#include "target/cute/cute.h"

typedef struct form {
    tk_cute_class class;
    const char *integer, *floating, *intrinsic, *inline_text, *refusal;
    void (*put)(tk_cute *x, const tk_kop *op);
} form;

static const form forms[TK_KOP_COUNT] = {
#define BY(name) .put = tk_cute_put_##name
#define SAME(of_integers, of_floats) .integer = of_integers, .floating = of_floats
#define INTRINSIC(name) .intrinsic = name
#define INLINE(text) .inline_text = text
#define REFUSE(why) .refusal = why
#define TK_CUTE(op, class_, how) [TK_KOP_##op] = {.class = TK_CUTE_##class_, how},
#include "target/cute/forms.def"
#undef TK_CUTE
#undef REFUSE
#undef INLINE
#undef INTRINSIC
#undef SAME
#undef BY
};

tk_cute_class tk_cute_class_of(tk_kopcode code) { return forms[code].class; }

/* ---- errors ---- */

void tk_cute_fail(tk_cute *x, const tk_kop *op, const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (x->status == TK_OK)
        x->status = tk_kop_fail_at(x->kernel, op,
                                   tk_fail(TK_UNSUPPORTED, "CuTe has no form of %s: %s",
                                           tk_kopcode_name((tk_kopcode)op->code), text));
}

/* ---- text ---- */

static const char *arena_format(tk_cute *x, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : tk_arena_alloc(&x->arena, (size_t)length + 1);
    if (!text) {
        x->body.failed = true;
        return "";
    }
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

const char *tk_cute_text(tk_cute *x, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = arena_format(x, format, arguments);
    va_end(arguments);
    return text;
}

/* Lines that open or close a region have their location elsewhere; the parser takes what stands
 * behind `nvvm.barrier` for a reduction. */
static bool takes_location(const char *text) {
    size_t length = strlen(text);
    return length && text[length - 1] != '{' && text[length - 1] != ':' && *text != '}' &&
           strncmp(text, "nvvm.barrier ", strlen("nvvm.barrier "));
}

static void put_line(tk_cute *x, const char *name, const char *text) {
    tk_cute_place place = {.code = TK_KOP_COUNT};
    if (x->op) place = (tk_cute_place){x->op->loc, x->op->code};
    tk_strbuf_printf(&x->body, "%*s", 6 + 2 * x->depth, "");
    if (name) tk_strbuf_printf(&x->body, "%s = ", name);
    tk_strbuf_puts(&x->body, text);
    if (x->lines && place.loc.line && takes_location(text))
        tk_strbuf_printf(&x->body, " loc(\"%s\":%" PRIu32 ":1)",
                         x->kernel->strings.items[place.loc.file ? place.loc.file : 1],
                         place.loc.line);
    tk_strbuf_putc(&x->body, '\n');
    if (!tk_vec_push(&x->places, place)) x->body.failed = true;
}

void tk_cute_line(tk_cute *x, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_line(x, NULL, arena_format(x, format, arguments));
    va_end(arguments);
}

const char *tk_cute_let(tk_cute *x, const char *format, ...) {
    const char *name = tk_cute_temp(x);
    va_list arguments;
    va_start(arguments, format);
    put_line(x, name, arena_format(x, format, arguments));
    va_end(arguments);
    return name;
}

const char *tk_cute_let_as(tk_cute *x, const char *name, const char *format, ...) {
    va_list arguments;
    if (!name) name = tk_cute_temp(x);
    va_start(arguments, format);
    put_line(x, name, arena_format(x, format, arguments));
    va_end(arguments);
    return name;
}

/* The text is the key; in a region that has ended it has no name. */
const char *tk_cute_once(tk_cute *x, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = arena_format(x, format, arguments);
    va_end(arguments);
    size_t length = strlen(text);
    tk_kname *made = tk_knames_find(&x->made, text, length);
    if (made && made->what) return made->what;
    const char *name = tk_cute_temp(x);
    put_line(x, name, text);
    if (!made) made = tk_knames_add(&x->made, text, length, NULL);
    if (made && tk_vec_push(&x->open, made->text))
        made->what = (void *)(uintptr_t)name;
    else
        x->body.failed = true;
    return name;
}

void tk_cute_open(tk_cute *x) {
    x->depth++;
    if (!tk_vec_push(&x->open, NULL)) x->body.failed = true;
}

void tk_cute_close(tk_cute *x) {
    x->depth--;
    while (x->open.count) {
        const char *text = x->open.items[--x->open.count];
        if (!text) return;
        tk_knames_find(&x->made, text, strlen(text))->what = NULL;
    }
}

/* ---- names ---- */

const char *tk_cute_temp(tk_cute *x) { return tk_cute_text(x, "%%$t%" PRIu32, x->temps++); }

void tk_cute_alias(tk_cute *x, const tk_kvalue *value, const char *name) {
    x->names[value->id] = name;
}

/* Kernels that were built, not read, may use a name for several values. */
static const char *take_name(tk_cute *x, const char *name) {
    const char *taken = tk_knames_take(&x->taken, name);
    x->body.failed |= !taken;
    return taken ? taken : name;
}

const char *tk_cute_name(tk_cute *x, const tk_kvalue *value) {
    const char **name = &x->names[value->id];
    if (!*name && value->kind == TK_KV_CONST)
        *name = tk_cute_text(x, "%%$c%" PRIu32, value->id);
    else if (!*name && value->name)
        *name = tk_cute_text(x, "%%%s", take_name(x, value->name));
    else if (!*name)
        *name = tk_cute_text(x, "%%$%" PRIu32, value->id);
    return *name;
}

const char *tk_cute_constant(tk_cute *x, int64_t value, const char *type) {
    return tk_cute_once(x, "arith.constant %" PRId64 " : %s", value, type);
}

const char *tk_cute_list(tk_cute *x, uint32_t count, tk_kvalue *const *values) {
    tk_strbuf text = {0};
    for (uint32_t i = 0; i < count; i++)
        tk_strbuf_printf(&text, "%s%s", i ? ", " : "", tk_cute_name(x, values[i]));
    const char *list = tk_cute_text(x, "%s", text.text ? text.text : "");
    x->body.failed |= text.failed;
    tk_strbuf_deinit(&text);
    return list;
}

const char *tk_cute_types(tk_cute *x, uint32_t count, tk_kvalue *const *values) {
    tk_strbuf text = {0};
    for (uint32_t i = 0; i < count; i++)
        tk_strbuf_printf(&text, "%s%s", i ? ", " : "", tk_cute_type(x, values[i]->type));
    const char *list = tk_cute_text(x, "%s", text.text ? text.text : "");
    x->body.failed |= text.failed;
    tk_strbuf_deinit(&text);
    return list;
}

/* ---- types ---- */

const char *tk_cute_scalar(tk_kscalar scalar) {
    switch (scalar) {
    case TK_K_TF32:
        return "f32";
    case TK_K_E4M3:
    case TK_K_E5M2:
        return "i8";
    case TK_K_MBAR:
        return "i64";
    default:
        return tk_kscalar_text(scalar);
    }
}

int tk_cute_space(tk_kspace space) {
    static const int spaces[] = {[TK_KS_GLOBAL] = 1,
                                 [TK_KS_CONSTANT] = 1,
                                 [TK_KS_SHARED] = 3,
                                 [TK_KS_CLUSTER] = 7,
                                 [TK_KS_PARAM] = 0};
    return spaces[space];
}

const char *tk_cute_type(tk_cute *x, tk_ktype type) {
    const char *scalar = tk_cute_scalar((tk_kscalar)type.scalar);
    if (type.kind == TK_KT_POINTER) {
        int space = tk_cute_space((tk_kspace)type.space);
        return space ? tk_cute_text(x, "!llvm.ptr<%d>", space) : "!llvm.ptr";
    }
    return type.lanes > 1 ? tk_cute_text(x, "vector<%dx%s>", type.lanes, scalar) : scalar;
}

/* ---- elements of vectors ---- */

const char *tk_cute_element(tk_cute *x, const tk_kvalue *value, int index) {
    const char *name = tk_cute_name(x, value);
    if (value->type.lanes == 1) return name;
    return tk_cute_let(x, "vector.extract %s[%d] : %s from %s", name, index,
                       tk_cute_scalar((tk_kscalar)value->type.scalar),
                       tk_cute_type(x, value->type));
}

const char *tk_cute_own_name(tk_cute *x, const tk_kop *op) {
    return op->results[0]->type.lanes == 1 ? tk_cute_result(x, op) : NULL;
}

void tk_cute_gather(tk_cute *x, const tk_kop *op, const char *const *elements) {
    tk_ktype type = op->results[0]->type;
    tk_strbuf list = {0};
    if (type.lanes == 1) {
        tk_cute_alias(x, op->results[0], elements[0]);
        return;
    }
    for (int i = 0; i < type.lanes; i++)
        tk_strbuf_printf(&list, "%s%s", i ? ", " : "", elements[i]);
    tk_cute_line(x, "%s = vector.from_elements %s : %s", tk_cute_result(x, op),
                 list.text ? list.text : "", tk_cute_type(x, type));
    x->body.failed |= list.failed;
    tk_strbuf_deinit(&list);
}

/* ---- forms of one operation ---- */

static void put_same(tk_cute *x, const tk_kop *op, const form *f) {
    const char *word = tk_cute_is_float(op->operands[0]->type) ? f->floating : f->integer;
    if (!word) {
        tk_cute_fail(x, op, "of %s", tk_ktype_words(x->kernel, op->operands[0]->type).text);
        return;
    }
    tk_cute_line(x, "%s = %s %s : %s", tk_cute_result(x, op), word,
                 tk_cute_list(x, op->n_operands, op->operands),
                 tk_cute_type(x, op->operands[0]->type));
}

static void put_intrinsic(tk_cute *x, const tk_kop *op, const char *name) {
    static const char *const suffixes[] = {
        [TK_K_F16] = "f16", [TK_K_BF16] = "bf16", [TK_K_F32] = "f", [TK_K_F64] = "d"};
    tk_ktype type = op->results[0]->type;
    const char *scalar = tk_cute_scalar((tk_kscalar)type.scalar), *elements[16];
    const char *own = tk_cute_own_name(x, op);
    for (int i = 0; i < type.lanes; i++) {
        const char *a = tk_cute_element(x, op->operands[0], i);
        if (op->n_operands == 1)
            elements[i] =
                tk_cute_let_as(x, own, "llvm.call_intrinsic \"llvm.nvvm.%s.%s\"(%s) : (%s) -> %s",
                               name, suffixes[type.scalar], a, scalar, scalar);
        else
            elements[i] =
                tk_cute_let(x, "llvm.call_intrinsic \"llvm.nvvm.%s.%s\"(%s, %s) : (%s, %s) -> %s",
                            name, suffixes[type.scalar], a, tk_cute_element(x, op->operands[1], i),
                            scalar, scalar, scalar);
    }
    tk_cute_gather(x, op, elements);
}

static void put_inline(tk_cute *x, const tk_kop *op, const char *text) {
    const char *elements[16], *scalar = tk_cute_scalar((tk_kscalar)op->results[0]->type.scalar);
    for (int i = 0; i < op->results[0]->type.lanes; i++) {
        const tk_cute_value operand = {tk_cute_element(x, op->operands[0], i), scalar};
        elements[i] = tk_cute_pure_insn(x, tk_cute_own_name(x, op), scalar, text, 1, &operand);
    }
    tk_cute_gather(x, op, elements);
}

/* A loop, a branch or a condition that gives a view would have to give its parts. */
static bool gives_view(const tk_kop *op) {
    bool chooses = op->n_regions || op->code == TK_KOP_select;
    for (uint32_t i = 0; i < op->n_results && chooses; i++)
        if (op->results[i]->type.kind == TK_KT_VIEW || op->results[i]->type.kind == TK_KT_LAYOUT)
            return true;
    return false;
}

static void put_op(tk_cute *x, const tk_kop *op) {
    const form *f = &forms[op->code];
    x->op = op;
    if (gives_view(op))
        tk_cute_fail(x, op, "of views, which lowering to the thread form takes apart");
    else if (f->put)
        f->put(x, op);
    else if (f->integer || f->floating)
        put_same(x, op, f);
    else if (f->intrinsic)
        put_intrinsic(x, op, f->intrinsic);
    else if (f->inline_text)
        put_inline(x, op, f->inline_text);
    else
        tk_cute_fail(x, op, "%s", f->refusal ? f->refusal : "it has none yet");
}

void tk_cute_block(tk_cute *x, const tk_kblock *block) {
    size_t flying = x->flying.count;
    tk_cute_open(x);
    for (const tk_kop *op = block->first; op && x->status == TK_OK; op = op->next) put_op(x, op);
    tk_cute_close(x);
    x->flying.count = flying;
}

/* ---- the entry ---- */

static void put_constant(tk_cute *x, const tk_kvalue *value) {
    tk_ktype type = value->type;
    const char *name = tk_cute_name(x, value), *text = tk_cute_type(x, type);
    int64_t integer;
    if (type.scalar == TK_K_I1)
        tk_cute_line(x, "%s = arith.constant %s", name, value->bits ? "true" : "false");
    else if (tk_kvalue_integer(value, &integer))
        tk_cute_line(x, "%s = arith.constant %" PRId64 " : %s", name, integer, text);
    else if (!strcmp(text, "i8"))
        tk_cute_line(x, "%s = arith.constant %" PRIu64 " : i8", name, value->bits);
    else
        tk_cute_line(x, "%s = arith.constant 0x%0*" PRIX64 " : %s", name, 2 * tk_ktype_bytes(type),
                     value->bits, text);
}

/* What the body calls by the parameter's name. */
static void put_entry(tk_cute *x, const tk_kparameter *param) {
    const tk_kvalue *value = param->value;
    const char *name = tk_cute_name(x, value), *type = tk_cute_type(x, value->type);
    if (value->type.kind == TK_KT_POINTER && strcmp(type, "!llvm.ptr"))
        tk_cute_line(x, "%s = llvm.addrspacecast %%$p_%s : !llvm.ptr to %s", name, value->name,
                     type);
    else if (value->type.scalar == TK_K_I1)
        tk_cute_line(x, "%s = arith.cmpi ne, %%$p_%s, %s : i8", name, value->name,
                     tk_cute_constant(x, 0, "i8"));
}

static void put_entries(tk_cute *x) {
    const tk_kcontract *contract = &x->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) put_entry(x, &contract->params.items[i]);
    if (x->shared.bytes || contract->dynamic_shared >= 0)
        tk_cute_line(x, "%%$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>");
    for (size_t i = 0; i < x->kernel->constants.count; i++)
        put_constant(x, x->kernel->constants.items[i]);
}

static void put_param(tk_cute *x, const tk_kparameter *param, tk_strbuf *out) {
    tk_ktype type = param->value->type;
    const char *name = param->value->name;
    if (param->map)
        tk_strbuf_printf(out,
                         "%%%s: !llvm.ptr {llvm.align = 64 : i32, llvm.byval = !llvm.array<128 x "
                         "i8>, nvvm.grid_constant}",
                         name);
    else if (type.kind == TK_KT_POINTER)
        tk_strbuf_printf(out, "%%$p_%s: !llvm.ptr", name);
    else if (type.scalar == TK_K_I1)
        tk_strbuf_printf(out, "%%$p_%s: i8", name);
    else
        tk_strbuf_printf(out, "%%%s: %s", name, tk_cute_type(x, type));
    if (type.kind != TK_KT_POINTER && type.lanes > 1 && x->status == TK_OK)
        x->status = tk_fail(TK_UNSUPPORTED, "CuTe: parameter %s is a vector", name);
}

static void put_head(tk_cute *x, tk_strbuf *out) {
    const tk_kcontract *contract = &x->kernel->contract;
    int64_t cluster[3];
    tk_strbuf_puts(out, "module attributes {gpu.container_module} {\n  gpu.module @kernels {\n");
    if (x->shared.bytes || contract->dynamic_shared >= 0)
        tk_strbuf_printf(out,
                         "    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, "
                         "alignment = %" PRId64 " : i64} : !llvm.array<0 x i8>\n",
                         x->shared.align);
    tk_strbuf_printf(out, "    cuda.kernel @%s(", x->kernel->name);
    for (size_t i = 0; i < contract->params.count; i++) {
        if (i) tk_strbuf_puts(out, ", ");
        put_param(x, &contract->params.items[i], out);
    }
    tk_strbuf_printf(out,
                     ") attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: %" PRId64
                     ", %" PRId64 ", %" PRId64 ">",
                     contract->block[0], contract->block[1], contract->block[2]);
    if (contract->min_blocks)
        tk_strbuf_printf(out, ", nvvm.minctasm = %" PRId64 " : i32", contract->min_blocks);
    if (tk_kcontract_cluster(contract, cluster))
        tk_strbuf_printf(out,
                         ", nvvm.cluster_dim = array<i32: %" PRId64 ", %" PRId64 ", %" PRId64 ">",
                         cluster[0], cluster[1], cluster[2]);
    tk_strbuf_puts(out, "} {\n");
}

/* ---- the whole ---- */

void tk_cute_places_free(tk_cute_places *places) {
    tk_free(places->items);
    *places = (tk_cute_places){0};
}

static size_t lines_of(const tk_strbuf *text) {
    size_t count = 0;
    for (size_t i = 0; i < text->length; i++) count += text->text[i] == '\n';
    return count;
}

/* Lines of the text in front of the body come from nowhere. */
static tk_status give_places(const tk_cute *x, size_t before, tk_cute_places *out) {
    size_t count = before + x->places.count;
    tk_cute_place *items = tk_calloc(count + 1, sizeof *items);
    if (!items) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel's lines");
    for (size_t i = 0; i < before; i++) items[i].code = TK_KOP_COUNT;
    if (x->places.count) memcpy(items + before, x->places.items, x->places.count * sizeof *items);
    *out = (tk_cute_places){count, items};
    return TK_OK;
}

static tk_status print_kernel(tk_cute *x, tk_strbuf *out, tk_cute_places *places) {
    size_t count = x->kernel->n_values + 1;
    x->names = tk_arena_alloc(&x->arena, count * sizeof *x->names);
    x->views = tk_arena_alloc(&x->arena, count * sizeof *x->views);
    x->shared_at = tk_arena_alloc(&x->arena, count * sizeof *x->shared_at);
    x->flights = tk_arena_alloc(&x->arena, count * sizeof *x->flights);
    x->parts = tk_arena_alloc(&x->arena, count * sizeof *x->parts);
    if (!x->names || !x->views || !x->shared_at || !x->flights || !x->parts)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for CuTe text");
    TK_TRY(tk_cute_find_flights(x));
    TK_TRY(tk_cute_find_words(x));
    TK_TRY(tk_kshared_place(x->kernel, x->shared_at, &x->shared));
    put_head(x, out);
    size_t before = lines_of(out);
    put_entries(x);
    x->depth--;
    tk_cute_block(x, &x->kernel->body);
    TK_TRY(x->status);
    tk_strbuf_put(out, x->body.text ? x->body.text : "", x->body.length);
    tk_strbuf_puts(out, "      cuda.return\n    }\n  }\n}\n");
    if (x->body.failed || out->failed) return tk_fail(TK_OUT_OF_MEMORY, "no memory for CuTe text");
    return places ? give_places(x, before, places) : TK_OK;
}

tk_status tk_cute_print(const tk_kernel *kernel, bool lines, tk_strbuf *out,
                        tk_cute_places *places) {
    tk_cute x = {.kernel = kernel, .lines = lines};
    if (kernel->form == TK_KFORM_TENSOR)
        return tk_fail(TK_UNSUPPORTED,
                       "kernel %s is in the tensor form; CuTe text is printed from the view form "
                       "and the thread form",
                       kernel->name);
    tk_status status = print_kernel(&x, out, places);
    tk_strbuf_deinit(&x.body);
    tk_vec_deinit(&x.places);
    tk_vec_deinit(&x.flying);
    tk_vec_deinit(&x.open);
    tk_knames_deinit(&x.made);
    tk_knames_deinit(&x.taken);
    tk_arena_deinit(&x.arena);
    return status;
}
