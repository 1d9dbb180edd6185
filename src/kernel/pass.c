/* Passes: the driver, and what they share. */
#include "kernel/pass.h"

#include <string.h>

#include "base/error.h"

/* ---- the driver ---- */

typedef struct row {
    const char *name, *doc;
    tk_status (*run)(tk_kernel *kernel);
} row;

static const row rows[] = {
#define TK_KPASS(name, doc) {#name, doc, tk_kpass_run_##name},
#include "tiki/passes.def"
};

static bool is_known(tk_kpass pass) { return (unsigned)pass < TK_KPASS_COUNT; }

const char *tk_kpass_name(tk_kpass pass) { return is_known(pass) ? rows[pass].name : "?"; }
const char *tk_kpass_doc(tk_kpass pass) { return is_known(pass) ? rows[pass].doc : "?"; }

tk_status tk_kpass_find(const char *name, tk_kpass *out) {
    TK_NEED(name, out);
    for (int i = 0; i < TK_KPASS_COUNT; i++)
        if (!strcmp(rows[i].name, name)) {
            *out = (tk_kpass)i;
            return TK_OK;
        }
    return tk_fail(TK_NOT_FOUND, "there is no pass \"%.40s\"", name);
}

tk_status tk_kernel_pass(const tk_kernel *kernel, tk_kpass pass, tk_kernel **out) {
    tk_kernel *copy = NULL;
    TK_NEED(kernel, out);
    TK_TRY(tk_check_enum("pass", (int)pass, TK_KPASS_COUNT, "tk_kpass"));
    TK_TRY(tk_kernel_clone(kernel, &copy));
    tk_status status = rows[pass].run(copy);
    if (status == TK_OK) {
        status = tk_kernel_verify(copy);
        if (status != TK_OK) tk_fail_within(status, "after the pass %s", rows[pass].name);
    }
    if (status == TK_OK)
        *out = copy;
    else
        tk_kernel_release(copy);
    return status;
}

/* ---- the pipeline ---- */

static tk_status run_list(tk_kernel *kernel, const tk_kpass *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        TK_TRY(rows[list[i]].run(kernel));
#ifndef NDEBUG
        TK_TRY(tk_kernel_verify(kernel));
#endif
    }
    return TK_OK;
}

static tk_status lower(tk_kernel *kernel, tk_kform form, int flags) {
    static const tk_kpass optimise[] = {TK_KPASS_fold,      TK_KPASS_unroll, TK_KPASS_predicate,
                                        TK_KPASS_fold,      TK_KPASS_cse,    TK_KPASS_hoist,
                                        TK_KPASS_vectorise, TK_KPASS_fold,   TK_KPASS_dead};
    static const tk_kpass fuse[] = {TK_KPASS_fuse};
    if (form >= TK_KFORM_VIEW) TK_TRY(tk_kpass_run_tensor_to_view(kernel));
    if (form == TK_KFORM_THREAD) {
        TK_TRY(tk_kpass_run_view_to_thread(kernel));
        TK_TRY(tk_kpass_run_expand(kernel));
    }
    if (flags & TK_KLOWER_OPTIMISE)
        TK_TRY(run_list(kernel, optimise, sizeof optimise / sizeof *optimise));
    return flags & TK_KLOWER_FUSE ? run_list(kernel, fuse, 1) : TK_OK;
}

tk_status tk_kernel_lower(const tk_kernel *kernel, tk_kform form, int flags, tk_kernel **out) {
    static const char *const names[] = {"tensor", "view", "thread"};
    tk_kernel *copy = NULL;
    TK_NEED(kernel, out);
    TK_TRY(tk_check_enum("form", (int)form, TK_KFORM_THREAD + 1, "tk_kform"));
    TK_TRY(tk_check_flags("flags", flags, TK_KLOWER_OPTIMISE | TK_KLOWER_FUSE));
    if (form < kernel->form)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s is in the %s form already", kernel->name,
                       names[kernel->form]);
    TK_TRY(tk_kernel_verify(kernel));
    TK_TRY(tk_kernel_clone(kernel, &copy));
    tk_status status = lower(copy, form, flags);
    if (status == TK_OK) status = tk_kernel_verify(copy);
    if (status == TK_OK)
        *out = copy;
    else
        tk_kernel_release(copy);
    return status;
}

/* ---- exchange of values ---- */

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass"); }

tk_status tk_kexchange_set(tk_kexchange *exchange, const tk_kvalue *from, tk_kvalue *to) {
    if (!tk_vec_reserve(exchange, from->id + 1)) return no_memory();
    while (exchange->count <= from->id) exchange->items[exchange->count++] = NULL;
    exchange->items[from->id] = to;
    return TK_OK;
}

tk_kvalue *tk_kexchange_get(const tk_kexchange *exchange, tk_kvalue *value) {
    while (value && value->id < exchange->count && exchange->items[value->id])
        value = exchange->items[value->id];
    return value;
}

static void apply_to(const tk_kexchange *exchange, tk_kblock *block) {
    for (tk_kop *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_operands; i++)
            op->operands[i] = tk_kexchange_get(exchange, op->operands[i]);
        for (int i = 0; i < op->n_regions; i++) apply_to(exchange, op->regions[i]);
    }
}

void tk_kexchange_apply(const tk_kexchange *exchange, tk_kernel *kernel) {
    apply_to(exchange, &kernel->body);
}

/* ---- new operations ---- */

tk_kput tk_kput_before(tk_kernel *kernel, tk_kop *op, tk_status *status) {
    return (tk_kput){
        .kernel = kernel, .block = op->block, .before = op, .loc = op->loc, .status = status};
}

static tk_kop *place(tk_kput *put, const tk_kop_spec *spec) {
    tk_kop *op = NULL;
    if (*put->status != TK_OK) return NULL;
    for (size_t i = 0; i < spec->n_operands; i++)
        if (!spec->operands[i] && spec->n_operands < 4) return NULL;
    *put->status = tk_kop_make(put->kernel, spec, &op);
    if (*put->status != TK_OK) return NULL;
    if (put->before)
        tk_kop_insert_before(put->before, op);
    else
        tk_kop_append(put->block, op);
    return op;
}

tk_kvalue *tk_kput_op(tk_kput *put, tk_kopcode code, size_t n_operands, tk_kvalue *const *operands,
                      size_t n_attrs, const tk_kput_attr *attrs, tk_ktype type) {
    const tk_kop_row *row = tk_kop_row_of(code);
    int64_t values[TK_KOP_MOST_ATTRS];
    for (int i = 0; row->attrs[i]; i++) {
        values[i] = tk_kattr_row_of(row->attrs[i] - 1u)->initial;
        for (size_t j = 0; j < n_attrs; j++)
            if (row->attrs[i] == (unsigned)attrs[j].id + 1) values[i] = attrs[j].value;
    }
    tk_kop_spec spec = {.code = code,
                        .n_operands = n_operands,
                        .operands = operands,
                        .attrs = values,
                        .n_types = type.kind != TK_KT_NONE,
                        .types = &type,
                        .loc = put->loc};
    tk_kop *op = place(put, &spec);
    return op && op->n_results ? op->results[0] : NULL;
}

tk_kvalue *tk_kput_1(tk_kput *put, tk_kopcode code, tk_kvalue *a) {
    return tk_kput_op(put, code, 1, &a, 0, NULL, (tk_ktype){0});
}
tk_kvalue *tk_kput_2(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kvalue *b) {
    return tk_kput_op(put, code, 2, (tk_kvalue *[]){a, b}, 0, NULL, (tk_ktype){0});
}
tk_kvalue *tk_kput_3(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kvalue *b, tk_kvalue *c) {
    return tk_kput_op(put, code, 3, (tk_kvalue *[]){a, b, c}, 0, NULL, (tk_ktype){0});
}
tk_kvalue *tk_kput_as(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kscalar type) {
    return tk_kput_op(put, code, 1, &a, 0, NULL, tk_ktype_scalar(type));
}

tk_kvalue *tk_kput_compare(tk_kput *put, tk_kopcode code, const char *how, tk_kvalue *a,
                           tk_kvalue *b) {
    tk_kattr_id id = code == TK_KOP_icmp ? TK_KA_icmp : TK_KA_fcmp;
    tk_kput_attr attr = {id, tk_kwords_find(tk_kattr_row_of(id)->words, how, strlen(how))};
    return tk_kput_op(put, code, 2, (tk_kvalue *[]){a, b}, 1, &attr, (tk_ktype){0});
}

static tk_kvalue *constant(tk_kput *put, tk_kscalar scalar, uint64_t bits) {
    tk_kvalue *value = NULL;
    if (*put->status == TK_OK) *put->status = tk_kernel_constant(put->kernel, scalar, bits, &value);
    return value;
}
tk_kvalue *tk_kput_index(tk_kput *put, tk_kscalar scalar, int64_t value) {
    if (*put->status == TK_OK && scalar == TK_K_I32 && (value < INT32_MIN || value > INT32_MAX))
        *put->status =
            tk_fail(TK_UNSUPPORTED, "%lld elements or steps: at most 2147483647 are counted here",
                    (long long)value);
    return tk_kput_integer(put, scalar, value);
}

tk_kvalue *tk_kput_integer(tk_kput *put, tk_kscalar scalar, int64_t value) {
    return constant(put, scalar, (uint64_t)value);
}
tk_kvalue *tk_kput_float(tk_kput *put, tk_kscalar scalar, double value) {
    return constant(put, scalar, tk_kscalar_bits(scalar, value));
}

/* ---- regions ---- */

tk_kop *tk_kput_if(tk_kput *put, tk_kvalue *condition) {
    tk_kop_spec spec = {
        .code = TK_KOP_if, .n_operands = 1, .operands = &condition, .loc = put->loc};
    tk_kblock *unused;
    tk_kop *op = condition ? place(put, &spec) : NULL;
    for (int i = 0; i < 2 && op && *put->status == TK_OK; i++)
        *put->status = tk_kop_add_region(put->kernel, op, 0, NULL, &unused);
    return *put->status == TK_OK ? op : NULL;
}

tk_kput tk_kput_into(const tk_kput *put, tk_kop *op, int region) {
    tk_kput inner = *put;
    inner.before = NULL;
    inner.block = op ? op->regions[region] : NULL;
    return inner;
}

void tk_kput_yield(tk_kput *put, size_t count, tk_kvalue *const *values) {
    tk_kop_spec spec = {
        .code = TK_KOP_yield, .n_operands = count, .operands = values, .loc = put->loc};
    if (put->block) place(put, &spec);
}

void tk_kput_results(tk_kput *put, tk_kop *op) {
    if (!op || *put->status != TK_OK) return;
    const tk_kop *end = op->regions[0]->last;
    tk_ktype *types = tk_arena_alloc(&put->kernel->arena, (end->n_operands + 1) * sizeof *types);
    if (!types) {
        *put->status = no_memory();
        return;
    }
    for (uint32_t i = 0; i < end->n_operands; i++) types[i] = end->operands[i]->type;
    *put->status = tk_kop_add_results(put->kernel, op, end->n_operands, types);
}
