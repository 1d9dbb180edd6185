/* Kernels in thread form as PTX text: registers, the entry, and the walk over operations. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/contract.h"
#include "kernel/verify.h"
#include "target/ptx/ptx.h"

static const struct {
    const char *template;
    void (*put)(tk_ptx *x, const tk_kop *op);
} columns[] = {
#define PTX(text)                                                                                  \
    { text, NULL }
#define NO_PTX                                                                                     \
    { NULL, NULL }
#define PTX_BY(name)                                                                               \
    { NULL, tk_ptx_put_##name }
#define TK_KOP(name, forms, effects, operands, results, attrs, check, emulator, ptx, doc)          \
    [TK_KOP_##name] = ptx,
#include "tiki/kernel_ops.def"
#undef TK_KOP
#undef PTX_BY
#undef NO_PTX
#undef PTX
};

static const char class_letters[] = "phrqfd";

/* ---- errors ---- */

static void keep(tk_ptx *x, tk_status status) {
    if (x->status == TK_OK) x->status = status;
}

void tk_ptx_fail(tk_ptx *x, const tk_kop *op, const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (x->status == TK_OK)
        keep(x, tk_kop_fail_at(x->kernel, op,
                               tk_fail(TK_UNSUPPORTED, "PTX has no form of %s: %s",
                                       tk_kopcode_name((tk_kopcode)op->code), text)));
}

/* ---- registers ---- */

tk_ptx_class tk_ptx_class_of(tk_ktype type) {
    if (type.kind == TK_KT_POINTER) return tk_ktype_bytes(type) == 4 ? TK_PTX_R : TK_PTX_Q;
    if (type.scalar == TK_K_I1) return TK_PTX_P;
    if (type.scalar == TK_K_F32) return TK_PTX_F;
    if (type.scalar == TK_K_F64) return TK_PTX_D;
    int bytes = tk_kscalar_bytes((tk_kscalar)type.scalar);
    return bytes <= 2 ? TK_PTX_H : bytes == 4 ? TK_PTX_R : TK_PTX_Q;
}

int64_t tk_ptx_elements_each(const tk_ptx *x, const tk_kvalue *tensor) {
    return x->packed[tensor->id] ? 4 / tk_kscalar_bytes((tk_kscalar)tensor->type.scalar) : 1;
}

void tk_ptx_need_version(tk_ptx *x, int version) {
    if (x->version < version) x->version = version;
}

/* Register tensors that ldmatrix and the like take, and narrow ones of products. */
static tk_status note_packed(void *arg, tk_kop *op) {
    tk_ptx *x = arg;
    bool rows = op->code == TK_KOP_load_matrix || op->code == TK_KOP_store_matrix;
    if (!rows && op->code != TK_KOP_mma && op->code != TK_KOP_wgmma) return TK_OK;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const tk_kvalue *value = op->operands[i];
        if (value && value->type.kind == TK_KT_REGISTERS)
            x->packed[value->id] |= rows || tk_kscalar_bytes((tk_kscalar)value->type.scalar) < 4;
    }
    return TK_OK;
}

static tk_ptx_class register_class(const tk_ptx *x, const tk_kvalue *value) {
    return x->packed[value->id] ? TK_PTX_R : tk_ptx_class_of(value->type);
}

static uint32_t elements_of(const tk_ptx *x, const tk_kvalue *value) {
    int64_t each = tk_ptx_elements_each(x, value);
    if (value->type.kind == TK_KT_REGISTERS)
        return (uint32_t)((tk_kregs_size(x->kernel, value->type) + each - 1) / each);
    return value->type.kind == TK_KT_NUMBER ? value->type.lanes : 1;
}

static uint32_t first_register(tk_ptx *x, const tk_kvalue *value) {
    uint32_t *first = &x->first[value->id], *used = &x->used[register_class(x, value)];
    if (!*first) {
        *first = *used + 1;
        *used += elements_of(x, value);
    }
    return *first - 1;
}

void tk_ptx_share(tk_ptx *x, const tk_kvalue *value, const tk_kvalue *with) {
    first_register(x, with);
    x->first[value->id] = x->first[with->id];
}

static tk_ptx_name name_register(tk_ptx_class class, uint32_t number) {
    tk_ptx_name name;
    snprintf(name.text, sizeof name.text, "%%%c%u", class_letters[class], number);
    return name;
}

tk_ptx_name tk_ptx_spare(tk_ptx *x, tk_ptx_class class) {
    return name_register(class, x->used[class]++);
}

static bool is_immediate(const tk_kvalue *value) {
    unsigned scalar = value->type.scalar;
    return value->kind == TK_KV_CONST &&
           (scalar == TK_K_I16 || scalar == TK_K_I32 || scalar == TK_K_I64 || scalar == TK_K_F32 ||
            scalar == TK_K_F64);
}

static tk_ptx_name name_immediate(const tk_kvalue *value) {
    tk_ptx_name name;
    int64_t integer;
    if (tk_kvalue_integer(value, &integer))
        snprintf(name.text, sizeof name.text, "%" PRId64, integer);
    else if (value->type.scalar == TK_K_F32)
        snprintf(name.text, sizeof name.text, "0f%08" PRIx32, (uint32_t)value->bits);
    else
        snprintf(name.text, sizeof name.text, "0d%016" PRIx64, value->bits);
    return name;
}

tk_ptx_name tk_ptx_operand(tk_ptx *x, const tk_kvalue *value, int index) {
    if (is_immediate(value)) return name_immediate(value);
    return name_register(register_class(x, value), first_register(x, value) + (uint32_t)index);
}

tk_ptx_name tk_ptx_result(tk_ptx *x, const tk_kop *op, int index) {
    return tk_ptx_operand(x, op->results[0], index);
}

tk_ptx_name tk_ptx_element(tk_ptx *x, const tk_kvalue *tensor, int64_t index) {
    return tk_ptx_operand(x, tensor, (int)index);
}

/* ---- lines ---- */

void tk_ptx_line(tk_ptx *x, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tk_strbuf_printf(&x->body, "\t%s;\n", text);
}

void tk_ptx_label(tk_ptx *x, uint32_t label) { tk_strbuf_printf(&x->body, "$L%u:\n", label); }

static void put_loc(tk_ptx *x, const tk_kop *op) {
    uint32_t file = op->loc.file ? op->loc.file : 1;
    if (!x->lines || !op->loc.line || file >= x->kernel->strings.count) return;
    x->files[file] = true;
    tk_strbuf_printf(&x->body, "\t.loc %u %u 0\n", file, op->loc.line);
}

static void put_op(tk_ptx *x, const tk_kop *op) {
    put_loc(x, op);
    x->op = op;
    if (columns[op->code].template)
        tk_ptx_template(x, op, columns[op->code].template);
    else if (columns[op->code].put)
        columns[op->code].put(x, op);
    else
        tk_ptx_fail(x, op, "it has none yet");
}

void tk_ptx_block(tk_ptx *x, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op && x->status == TK_OK; op = op->next) put_op(x, op);
}

/* ---- the entry ---- */

static void set_constants(tk_ptx *x) {
    for (size_t i = 0; i < x->kernel->constants.count; i++) {
        const tk_kvalue *value = x->kernel->constants.items[i];
        if (is_immediate(value)) continue;
        tk_ptx_name to = tk_ptx_operand(x, value, 0);
        if (value->type.scalar == TK_K_I1)
            tk_ptx_line(x, "setp.ne.b32 %s, %d, 0", to.text, (int)value->bits);
        else
            tk_ptx_line(x, "mov.b%d %s, 0x%" PRIx64, tk_ktype_bytes(value->type) == 4 ? 32 : 16,
                        to.text, value->bits);
    }
}

/* Bytes in parameter space have no registers of their own: they are loaded as 16 bits. */
static void load_param(tk_ptx *x, const tk_kparameter *param) {
    tk_ktype type = param->value->type;
    const char *name = param->value->name;
    tk_ptx_name to = tk_ptx_operand(x, param->value, 0);
    if (param->map) {
        tk_ptx_line(x, "mov.b64 %s, param_%s", to.text, name);
        tk_ptx_line(x, "cvta.param.u64 %s, %s", to.text, to.text);
        return;
    }
    if (type.scalar == TK_K_I1 && type.kind == TK_KT_NUMBER) {
        tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_H);
        tk_ptx_line(x, "ld.param.u8 %s, [param_%s]", byte.text, name);
        tk_ptx_line(x, "setp.ne.b16 %s, %s, 0", to.text, byte.text);
        return;
    }
    tk_ptx_line(x, "ld.param.b%d %s, [param_%s]", 8 * tk_ktype_bytes(type), to.text, name);
    if (type.kind == TK_KT_POINTER) tk_ptx_line(x, "cvta.to.global.u64 %s, %s", to.text, to.text);
}

static void load_params(tk_ptx *x) {
    const tk_kcontract *contract = &x->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        if (contract->params.items[i].value->type.lanes > 1)
            keep(x, tk_fail(TK_UNSUPPORTED, "PTX: parameter %s is a vector",
                            contract->params.items[i].value->name));
        load_param(x, &contract->params.items[i]);
    }
}

static void put_params(const tk_ptx *x, tk_strbuf *out) {
    const tk_kcontract *contract = &x->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        const tk_kparameter *param = &contract->params.items[i];
        const char *end = i + 1 < contract->params.count ? "," : "";
        if (param->map)
            tk_strbuf_printf(out, "\t.param .align 64 .b8 param_%s[128]%s\n", param->value->name,
                             end);
        else
            tk_strbuf_printf(out, "\t.param .b%d param_%s%s\n",
                             8 * tk_ktype_bytes(param->value->type), param->value->name, end);
    }
}

static void put_directives(const tk_ptx *x, tk_strbuf *out) {
    const tk_kcontract *contract = &x->kernel->contract;
    int64_t cluster[3];
    tk_strbuf_printf(out, ".reqntid %" PRId64 ", %" PRId64 ", %" PRId64 "\n", contract->block[0],
                     contract->block[1], contract->block[2]);
    if (contract->min_blocks)
        tk_strbuf_printf(out, ".minnctapersm %" PRId64 "\n", contract->min_blocks);
    if (x->arch >= 90 && tk_kcontract_cluster(contract, cluster))
        tk_strbuf_printf(
            out, ".explicitcluster\n.reqnctapercluster %" PRId64 ", %" PRId64 ", %" PRId64 "\n",
            cluster[0], cluster[1], cluster[2]);
}

static void put_registers(const tk_ptx *x, tk_strbuf *out) {
    static const char *const types[] = {"pred", "b16", "b32", "b64", "f32", "f64"};
    for (int class = 0; class < TK_PTX_CLASSES; class ++)
        if (x->used[class])
            tk_strbuf_printf(out, "\t.reg .%s %%%c<%u>;\n", types[class], class_letters[class],
                             x->used[class]);
}

/* Strings of PTX have no escapes that all versions know. */
static void put_files(const tk_ptx *x, tk_strbuf *out) {
    for (size_t i = 1; i < x->kernel->strings.count; i++) {
        if (!x->files[i]) continue;
        tk_strbuf_printf(out, ".file %zu \"", i);
        for (const char *c = x->kernel->strings.items[i]; *c; c++)
            tk_strbuf_putc(out, *c < ' ' || *c == '"' || *c == '\\' ? '_' : *c);
        tk_strbuf_puts(out, "\"\n");
    }
}

static void put_text(const tk_ptx *x, const char *arch, tk_strbuf *out) {
    const tk_kernel *kernel = x->kernel;
    tk_strbuf_printf(out, ".version %d.%d\n.target %s\n.address_size 64\n\n", x->version / 10,
                     x->version % 10, arch);
    put_files(x, out);
    if (x->shared.bytes || kernel->contract.dynamic_shared >= 0)
        tk_strbuf_printf(out, ".extern .shared .align %" PRId64 " .b8 tiki_shared[];\n\n",
                         x->shared.align);
    tk_strbuf_printf(out, ".visible .entry %s(\n", kernel->name);
    put_params(x, out);
    tk_strbuf_puts(out, ")\n");
    put_directives(x, out);
    tk_strbuf_puts(out, "{\n");
    put_registers(x, out);
    tk_strbuf_put(out, x->body.text, x->body.length);
    tk_strbuf_puts(out, "\tret;\n}\n");
}

static tk_status print_kernel(tk_ptx *x, const char *arch, tk_strbuf *out) {
    size_t count = x->kernel->n_values + 1;
    x->first = tk_arena_alloc(&x->arena, count * sizeof *x->first);
    x->shared_at = tk_arena_alloc(&x->arena, count * sizeof *x->shared_at);
    x->packed = tk_arena_alloc(&x->arena, count * sizeof *x->packed);
    x->files = tk_arena_alloc(&x->arena, (x->kernel->strings.count + 1) * sizeof *x->files);
    if (!x->first || !x->shared_at || !x->packed || !x->files)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for PTX");
    TK_TRY(tk_kshared_place(x->kernel, x->shared_at, &x->shared));
    TK_TRY(tk_kblock_walk(&x->kernel->body, note_packed, x));
    load_params(x);
    set_constants(x);
    tk_ptx_block(x, &x->kernel->body);
    TK_TRY(x->status);
    put_text(x, arch, out);
    return x->body.failed || out->failed ? tk_fail(TK_OUT_OF_MEMORY, "no memory for PTX") : TK_OK;
}

tk_status tk_ptx_print(const tk_kernel *kernel, const char *arch, bool lines, tk_strbuf *out) {
    tk_ptx x = {.kernel = kernel,
                .arch = strstr(arch, "90") ? 90 : 80,
                .arch_specific = strstr(arch, "90a") != NULL,
                .version = 83,
                .lines = lines};
    if (kernel->form != TK_KFORM_THREAD)
        return tk_fail(TK_UNSUPPORTED,
                       "kernel %s is not in the thread form, which is what PTX is printed from",
                       kernel->name);
    TK_TRY(tk_kanalyse_ranges(kernel, &x.facts));
    tk_status status = print_kernel(&x, arch, out);
    tk_free(x.facts);
    tk_strbuf_deinit(&x.body);
    tk_arena_deinit(&x.arena);
    return status;
}
