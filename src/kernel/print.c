/* Kernels as text; docs/kernel-ir.md is the format, parse.c the other direction.
 *
 * Names are kept where they are unique in the kernel; a name that comes again gets a number behind
 * it. Values without one are numbered in the order of the text. So a text that was printed and read
 * back prints the same. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/error.h"
#include "base/half.h"
#include "kernel/contract.h"
#include "kernel/names.h"
#include "kernel/print.h"

typedef struct printer {
    const tk_kernel *kernel;
    tk_strbuf *out;
    int flags;
    int depth;
    uint32_t next_number;
    uint32_t *numbers;  /* by value id; 0: no number yet, else number plus one */
    const char **names; /* by value id, in `taken`'s arena */
    tk_knames taken;
} printer;

/* ---- names ---- */

static const char *take_name(printer *p, const char *name) {
    const char *taken = tk_knames_take(&p->taken, name);
    p->out->failed |= !taken;
    return taken;
}

static void name_value(printer *p, const tk_kvalue *value) {
    if (value->name && !(p->flags & TK_KERNEL_ANONYMOUS))
        p->names[value->id] = take_name(p, value->name);
    else
        p->numbers[value->id] = ++p->next_number;
}

static void put_name(printer *p, const tk_kvalue *value) {
    if (p->names[value->id])
        tk_strbuf_printf(p->out, "%%%s", p->names[value->id]);
    else
        tk_strbuf_printf(p->out, "%%%u", p->numbers[value->id] - 1);
}

/* ---- constants ---- */

static void put_float(printer *p, tk_kscalar scalar, uint64_t bits) {
    static const tk_dtype dtypes[] = {
        [TK_K_F16] = TK_FLOAT16, [TK_K_BF16] = TK_BFLOAT16, [TK_K_TF32] = TK_FLOAT32,
        [TK_K_F32] = TK_FLOAT32, [TK_K_F64] = TK_FLOAT64,   [TK_K_E4M3] = TK_FLOAT16,
        [TK_K_E5M2] = TK_FLOAT16};
    double value = tk_kscalar_value(scalar, bits);
    if (value != value || tk_kscalar_bits(scalar, value) != bits)
        tk_strbuf_printf(p->out, "0x%" PRIx64, bits);
    else
        tk_decimal_put(p->out, dtypes[scalar], value);
}

static void put_constant(printer *p, const tk_kvalue *value) {
    int64_t integer;
    tk_strbuf_printf(p->out, "%s(", tk_kscalar_text((tk_kscalar)value->type.scalar));
    if (value->type.scalar == TK_K_I1)
        tk_strbuf_puts(p->out, value->bits ? "true" : "false");
    else if (tk_kvalue_integer(value, &integer))
        tk_strbuf_printf(p->out, "%" PRId64, integer);
    else
        put_float(p, (tk_kscalar)value->type.scalar, value->bits);
    tk_strbuf_putc(p->out, ')');
}

static void put_value(printer *p, const tk_kvalue *value) {
    if (value->kind == TK_KV_CONST)
        put_constant(p, value);
    else
        put_name(p, value);
}

/* ---- pieces of operations ---- */

static void put_indent(printer *p) {
    for (int i = 0; i < p->depth; i++) tk_strbuf_puts(p->out, "  ");
}

static void put_quoted(printer *p, const char *text) {
    tk_strbuf_putc(p->out, '"');
    for (; *text; text++) {
        if (*text == '\n')
            tk_strbuf_puts(p->out, "\\n");
        else if (*text == '"' || *text == '\\')
            tk_strbuf_printf(p->out, "\\%c", *text);
        else
            tk_strbuf_putc(p->out, *text);
    }
    tk_strbuf_putc(p->out, '"');
}

static void put_words(printer *p, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    tk_strbuf_puts(p->out, row->name);
    for (int i = 0; row->attrs[i]; i++) {
        const tk_kattr_row *attr = tk_kattr_row_of(row->attrs[i] - 1u);
        if (op->attrs[i] == attr->initial) continue;
        size_t length = strlen(attr->name);
        const char *word = attr->name;
        if (attr->kind == TK_KAK_WORD) word = tk_kwords_at(attr->words, (int)op->attrs[i], &length);
        if (attr->kind == TK_KAK_WORD || attr->kind == TK_KAK_FLAG) {
            tk_strbuf_putc(p->out, '.');
            tk_strbuf_put(p->out, word, length);
        }
    }
}

static void put_brackets(printer *p, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    const char *between = " [";
    for (int i = 0; row->attrs[i]; i++) {
        const tk_kattr_row *attr = tk_kattr_row_of(row->attrs[i] - 1u);
        if ((attr->kind != TK_KAK_INT && attr->kind != TK_KAK_TEXT) ||
            op->attrs[i] == attr->initial)
            continue;
        tk_strbuf_printf(p->out, "%s%s = ", between, attr->name);
        between = ", ";
        if (attr->kind == TK_KAK_INT)
            tk_strbuf_printf(p->out, "%" PRId64, op->attrs[i]);
        else
            put_quoted(p, p->kernel->strings.items[op->attrs[i]]);
    }
    if (*between == ',') tk_strbuf_putc(p->out, ']');
}

/* Those of the table in order and the variadic ones; then, by name, those that may be missing. */
static void put_operands(printer *p, const tk_kop *op) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    bool variadic;
    uint32_t slots = (uint32_t)tk_kop_row_slots(row, &variadic);
    const char *between = " ";
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (i < slots && row->slots[i].need == TK_KN_OPTIONAL) continue;
        tk_strbuf_puts(p->out, between);
        put_value(p, op->operands[i]);
        between = ", ";
    }
    for (uint32_t i = 0; i < slots; i++) {
        if (row->slots[i].need != TK_KN_OPTIONAL || !op->operands[i]) continue;
        tk_strbuf_printf(p->out, "%s%s=", between, row->slots[i].name);
        put_value(p, op->operands[i]);
        between = ", ";
    }
}

static void put_results(printer *p, const tk_kop *op) {
    for (int i = 0; i < op->n_results; i++) {
        if (i) tk_strbuf_puts(p->out, ", ");
        put_name(p, op->results[i]);
    }
    if (op->n_results) tk_strbuf_puts(p->out, " = ");
}

static void put_types(printer *p, const tk_kop *op) {
    for (int i = 0; i < op->n_results; i++) {
        tk_strbuf_puts(p->out, i ? ", " : " : ");
        tk_ktype_put(p->kernel, op->results[i]->type, p->out);
    }
}

static void put_line(printer *p, const tk_kop *op) {
    if (!(p->flags & TK_KERNEL_LINES) || !op->loc.line) return;
    tk_strbuf_puts(p->out, " @");
    if (op->loc.file) {
        put_quoted(p, p->kernel->strings.items[op->loc.file]);
        tk_strbuf_putc(p->out, ':');
    }
    tk_strbuf_printf(p->out, "%u", op->loc.line);
}

/* ---- regions ---- */

static void put_block(printer *p, const tk_kblock *block);

static void put_region(printer *p, const tk_kblock *block) {
    tk_strbuf_puts(p->out, "{\n");
    p->depth++;
    put_block(p, block);
    p->depth--;
    put_indent(p);
    tk_strbuf_putc(p->out, '}');
}

/* (%a = %x, %b = %y) */
static void put_carried(printer *p, uint32_t count, tk_kvalue *const *args,
                        tk_kvalue *const *from) {
    tk_strbuf_putc(p->out, '(');
    for (uint32_t i = 0; i < count; i++) {
        if (i) tk_strbuf_puts(p->out, ", ");
        put_name(p, args[i]);
        if (!from) continue;
        tk_strbuf_puts(p->out, " = ");
        put_value(p, from[i]);
    }
    tk_strbuf_puts(p->out, ") ");
}

static void name_args(printer *p, const tk_kblock *block) {
    for (uint32_t i = 0; i < block->n_args; i++) name_value(p, block->args[i]);
}

static void put_head_end(printer *p, const tk_kop *op) {
    put_brackets(p, op);
    put_line(p, op);
}

static void put_for(printer *p, const tk_kop *op) {
    enum { BOUNDS = 3 };
    const tk_kblock *body = op->regions[0];
    static const char *const between[] = {" = ", " to ", " step "};
    name_args(p, body);
    tk_strbuf_puts(p->out, "for ");
    put_name(p, body->args[0]);
    for (int i = 0; i < BOUNDS; i++) {
        tk_strbuf_puts(p->out, between[i]);
        put_value(p, op->operands[i]);
    }
    put_head_end(p, op);
    tk_strbuf_putc(p->out, ' ');
    if (body->n_args > 1) {
        tk_strbuf_puts(p->out, "carry ");
        put_carried(p, body->n_args - 1, body->args + 1, op->operands + BOUNDS);
    }
    put_region(p, body);
}

static void put_while(printer *p, const tk_kop *op) {
    name_args(p, op->regions[0]);
    tk_strbuf_puts(p->out, "while");
    put_head_end(p, op);
    tk_strbuf_putc(p->out, ' ');
    if (op->n_operands) put_carried(p, op->n_operands, op->regions[0]->args, op->operands);
    put_region(p, op->regions[0]);
    tk_strbuf_puts(p->out, " do ");
    name_args(p, op->regions[1]);
    if (op->regions[1]->n_args) put_carried(p, op->regions[1]->n_args, op->regions[1]->args, NULL);
    put_region(p, op->regions[1]);
}

static bool is_empty(const tk_kblock *block) {
    return block->first == block->last && block->first->n_operands == 0;
}

static void put_if(printer *p, const tk_kop *op) {
    tk_strbuf_puts(p->out, "if ");
    put_value(p, op->operands[0]);
    put_head_end(p, op);
    tk_strbuf_putc(p->out, ' ');
    put_region(p, op->regions[0]);
    if (is_empty(op->regions[1])) return;
    tk_strbuf_puts(p->out, " else ");
    put_region(p, op->regions[1]);
}

static void put_plain(printer *p, const tk_kop *op) {
    put_words(p, op);
    put_operands(p, op);
    put_brackets(p, op);
    put_types(p, op);
    put_line(p, op);
}

static void put_op(printer *p, const tk_kop *op) {
    if (op->code == TK_KOP_yield && !op->n_operands) return;
    put_indent(p);
    for (int i = 0; i < op->n_results; i++) name_value(p, op->results[i]);
    put_results(p, op);
    switch (op->code) {
    case TK_KOP_for:
        put_for(p, op);
        break;
    case TK_KOP_while:
        put_while(p, op);
        break;
    case TK_KOP_if:
        put_if(p, op);
        break;
    default:
        put_plain(p, op);
    }
    tk_strbuf_putc(p->out, '\n');
}

static void put_block(printer *p, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) put_op(p, op);
}

/* ---- the head ---- */

static void put_list(printer *p, const char *word, const int32_t *exprs, int count) {
    tk_strbuf_printf(p->out, "%s (", word);
    for (int i = 0; i < count; i++) {
        if (i) tk_strbuf_puts(p->out, ", ");
        tk_kexpr_put(p->kernel, exprs[i], p->out);
    }
    tk_strbuf_putc(p->out, ')');
}

static void put_numbers(printer *p, const char *word, const int32_t *numbers, int count) {
    tk_strbuf_printf(p->out, "%s (", word);
    for (int i = 0; i < count; i++)
        tk_strbuf_printf(p->out, i ? ", %" PRId32 : "%" PRId32, numbers[i]);
    tk_strbuf_putc(p->out, ')');
}

static void put_map(printer *p, const tk_kmap *map) {
    bool steps = false;
    for (int i = 0; i < map->rank; i++) steps |= map->element_stride[i] != 1;
    tk_strbuf_printf(p->out, " map %%%s %s", map->base->name, tk_kscalar_text(map->element));
    put_list(p, " extent", map->extent, map->rank);
    put_list(p, " stride", map->stride, map->rank - 1);
    put_numbers(p, " box", map->box, map->rank);
    if (steps) put_numbers(p, " step", map->element_stride, map->rank);
    if (map->swizzle) tk_strbuf_printf(p->out, " swizzle %" PRId32, map->swizzle);
    if (map->l2_bytes) tk_strbuf_printf(p->out, " l2 %" PRId32, map->l2_bytes);
    if (map->fill_nan) tk_strbuf_puts(p->out, " nan");
}

static void put_pointer(printer *p, const tk_kparameter *param) {
    static const char *const access[] = {[TK_KACCESS_READ] = "read",
                                         [TK_KACCESS_WRITE] = "write",
                                         [TK_KACCESS_READ_WRITE] = "read_write"};
    tk_strbuf_printf(p->out, " %s align %" PRId64, access[param->access], param->align);
    if (param->size < 0) return;
    tk_strbuf_puts(p->out, " size ");
    tk_kexpr_put(p->kernel, param->size, p->out);
}

static void put_params(printer *p) {
    const tk_kcontract *contract = &p->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        const tk_kparameter *param = &contract->params.items[i];
        p->names[param->value->id] = take_name(p, param->value->name);
        tk_strbuf_printf(p->out, "%s\n  %%%s: ", i ? "," : "", param->value->name);
        tk_ktype_put(p->kernel, param->value->type, p->out);
        if (param->map)
            put_map(p, param->map);
        else if (param->value->type.kind == TK_KT_POINTER)
            put_pointer(p, param);
    }
}

static void put_conditions(printer *p) {
    const tk_kcontract *contract = &p->kernel->contract;
    for (size_t i = 0; i < contract->conditions.count; i++) {
        const tk_kcondition *condition = &contract->conditions.items[i];
        tk_strbuf_puts(p->out, "require ");
        tk_kexpr_put(p->kernel, condition->left, p->out);
        tk_strbuf_printf(p->out, " %s ", tk_krelation_text((tk_krelation)condition->relation));
        tk_kexpr_put(p->kernel, condition->right, p->out);
        tk_strbuf_putc(p->out, '\n');
    }
}

static void put_launch(printer *p) {
    const tk_kcontract *contract = &p->kernel->contract;
    put_list(p, "grid", contract->grid, 3);
    if (contract->cluster[0] >= 0) put_list(p, "\ncluster", contract->cluster, 3);
    tk_strbuf_printf(p->out, "\nblock (%" PRId64 ", %" PRId64 ", %" PRId64 ")\n",
                     contract->block[0], contract->block[1], contract->block[2]);
    if (contract->dynamic_shared >= 0) {
        tk_strbuf_puts(p->out, "dynamic_shared ");
        tk_kexpr_put(p->kernel, contract->dynamic_shared, p->out);
        tk_strbuf_putc(p->out, '\n');
    }
    if (contract->min_blocks)
        tk_strbuf_printf(p->out, "min_blocks %" PRId64 "\n", contract->min_blocks);
    if (contract->cooperative) tk_strbuf_puts(p->out, "cooperative\n");
    if (contract->programmatic) tk_strbuf_puts(p->out, "programmatic\n");
}

static const char *const forms[] = {"tensor", "view", "thread"};
const char *tk_kform_text(tk_kform form) { return forms[form]; }

static void put_kernel(printer *p) {
    const tk_kernel *kernel = p->kernel;
    tk_strbuf_printf(p->out, "tiki kernel 1\n\nkernel %s(", kernel->name);
    put_params(p);
    tk_strbuf_printf(p->out, ")\nform %s\n", forms[kernel->form]);
    put_conditions(p);
    put_launch(p);
    put_region(p, &kernel->body);
    tk_strbuf_putc(p->out, '\n');
}

tk_status tk_kernel_put(const tk_kernel *kernel, int flags, tk_strbuf *out) {
    size_t count = kernel->n_values + 1;
    printer p = {.kernel = kernel, .out = out, .flags = flags};
    p.numbers = tk_calloc(count, sizeof *p.numbers);
    p.names = tk_calloc(count, sizeof *p.names);
    if (p.numbers && p.names) put_kernel(&p);
    bool failed = out->failed || !p.numbers || !p.names;
    tk_free(p.numbers);
    tk_free(p.names);
    tk_knames_deinit(&p.taken);
    return failed ? tk_fail(TK_OUT_OF_MEMORY, "no memory to print a kernel") : TK_OK;
}

tk_status tk_kernel_print(const tk_kernel *kernel, int flags, char **out_text) {
    TK_NEED(kernel, out_text);
    TK_TRY(tk_check_flags("flags", flags, TK_KERNEL_LINES));
    tk_strbuf out = {0};
    tk_status status = tk_kernel_put(kernel, flags & TK_KERNEL_LINES, &out);
    char *text = status == TK_OK ? tk_strbuf_take(&out) : NULL;
    tk_strbuf_deinit(&out);
    if (status == TK_OK) *out_text = text;
    return status;
}

void tk_kernel_text_free(char *text) { tk_free(text); }

bool tk_kernel_equal(const tk_kernel *a, const tk_kernel *b) {
    tk_strbuf left = {0}, right = {0};
    if (!a || !b) return false;
    bool equal =
        a == b || (tk_kernel_put(a, TK_KERNEL_ANONYMOUS, &left) == TK_OK &&
                   tk_kernel_put(b, TK_KERNEL_ANONYMOUS, &right) == TK_OK &&
                   left.length == right.length && !memcmp(left.text, right.text, left.length));
    tk_strbuf_deinit(&left);
    tk_strbuf_deinit(&right);
    return equal;
}
