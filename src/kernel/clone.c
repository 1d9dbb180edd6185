/* A copy of a kernel for passes to change: operations, blocks and values get new records, by value
 * id. */
#include <string.h>

#include "base/error.h"
#include "kernel/ir.h"

typedef struct cloner {
    const tk_kernel *from;
    tk_kernel *to;
    tk_kvalue **values; /* by id */
} cloner;

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory to copy a kernel"); }

static tk_status copy_value(cloner *c, const tk_kvalue *value, tk_kvalue **out) {
    tk_kvalue *copy = tk_arena_alloc(&c->to->arena, sizeof *copy);
    if (!copy) return no_memory();
    *copy = *value;
    if (value->name) copy->name = tk_arena_text(&c->to->arena, value->name, strlen(value->name));
    if (value->name && !copy->name) return no_memory();
    c->values[value->id] = copy;
    *out = copy;
    return TK_OK;
}

static tk_status copy_values(cloner *c, size_t count, tk_kvalue *const *values, tk_kvalue ***out) {
    *out = tk_arena_alloc(&c->to->arena, count * sizeof **out);
    if (!*out) return no_memory();
    for (size_t i = 0; i < count; i++) TK_TRY(copy_value(c, values[i], &(*out)[i]));
    return TK_OK;
}

/* ---- the head ---- */

static tk_status copy_tables(cloner *c) {
    for (size_t i = c->to->strings.count; i < c->from->strings.count; i++) {
        uint32_t number;
        TK_TRY(tk_kernel_string(c->to, c->from->strings.items[i], strlen(c->from->strings.items[i]),
                                &number));
    }
    for (size_t i = 0; i < c->from->layouts.count; i++) {
        uint32_t number;
        TK_TRY(tk_kernel_layout(c->to, c->from->layouts.items[i], &number));
    }
    for (size_t i = 0; i < c->from->constants.count; i++) {
        tk_kvalue *copy;
        TK_TRY(copy_value(c, c->from->constants.items[i], &copy));
        if (!tk_vec_push(&c->to->constants, copy)) return no_memory();
    }
    return TK_OK;
}

static tk_status copy_map(cloner *c, const tk_kmap *map, const tk_kvalue *value,
                          const tk_kmap **out) {
    tk_kmap *copy = tk_arena_alloc(&c->to->arena, sizeof *copy);
    if (!copy) return no_memory();
    *copy = *map;
    copy->name = value->name;
    copy->base = c->values[map->base->id];
    *out = copy;
    return TK_OK;
}

static tk_status copy_params(cloner *c) {
    const tk_kcontract *contract = &c->from->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        tk_kparameter param = contract->params.items[i];
        TK_TRY(copy_value(c, param.value, &param.value));
        if (param.map) TK_TRY(copy_map(c, param.map, param.value, &param.map));
        if (!tk_vec_push(&c->to->contract.params, param)) return no_memory();
    }
    return TK_OK;
}

static tk_status copy_contract(cloner *c) {
    const tk_kcontract *from = &c->from->contract;
    tk_kcontract *to = &c->to->contract;
    TK_TRY(copy_params(c));
    for (size_t i = 0; i < from->exprs.count; i++)
        if (!tk_vec_push(&to->exprs, from->exprs.items[i])) return no_memory();
    for (size_t i = 0; i < from->conditions.count; i++)
        if (!tk_vec_push(&to->conditions, from->conditions.items[i])) return no_memory();
    memcpy(to->grid, from->grid, sizeof to->grid);
    memcpy(to->cluster, from->cluster, sizeof to->cluster);
    memcpy(to->block, from->block, sizeof to->block);
    to->dynamic_shared = from->dynamic_shared;
    to->min_blocks = from->min_blocks;
    to->cooperative = from->cooperative;
    to->programmatic = from->programmatic;
    return TK_OK;
}

/* ---- the body ---- */

static tk_status copy_block(cloner *c, const tk_kblock *from, tk_kblock *to);

static tk_status copy_regions(cloner *c, const tk_kop *from, tk_kop *to) {
    for (int i = 0; i < from->n_regions; i++) {
        tk_kblock *region;
        TK_TRY(tk_kop_add_region(c->to, to, 0, NULL, &region));
        TK_TRY(copy_block(c, from->regions[i], region));
    }
    return TK_OK;
}

static tk_status copy_op(cloner *c, const tk_kop *from, tk_kblock *block) {
    int n_attrs = tk_kop_row_attrs(tk_kop_row_of(from->code));
    tk_kop *op = tk_arena_alloc(&c->to->arena, sizeof *op);
    if (!op) return no_memory();
    *op = (tk_kop){.code = from->code,
                   .loc = from->loc,
                   .n_operands = from->n_operands,
                   .n_results = from->n_results};
    op->operands = tk_arena_alloc(&c->to->arena, from->n_operands * sizeof *op->operands);
    op->attrs = tk_arena_alloc(&c->to->arena, (size_t)n_attrs * sizeof *op->attrs);
    if (!op->operands || !op->attrs) return no_memory();
    for (uint32_t i = 0; i < from->n_operands; i++)
        op->operands[i] = from->operands[i] ? c->values[from->operands[i]->id] : NULL;
    if (n_attrs) memcpy(op->attrs, from->attrs, (size_t)n_attrs * sizeof *op->attrs);
    TK_TRY(copy_regions(c, from, op));
    TK_TRY(copy_values(c, from->n_results, from->results, &op->results));
    for (int i = 0; i < op->n_results; i++) op->results[i]->op = op;
    tk_kop_append(block, op);
    return TK_OK;
}

static tk_status copy_block(cloner *c, const tk_kblock *from, tk_kblock *to) {
    TK_TRY(copy_values(c, from->n_args, from->args, &to->args));
    to->n_args = from->n_args;
    for (uint32_t i = 0; i < to->n_args; i++) to->args[i]->block = to;
    for (const tk_kop *op = from->first; op; op = op->next) TK_TRY(copy_op(c, op, to));
    return TK_OK;
}

static tk_status copy_all(cloner *c, bool body) {
    TK_TRY(copy_tables(c));
    TK_TRY(copy_contract(c));
    if (body) TK_TRY(copy_block(c, &c->from->body, &c->to->body));
    c->to->n_values = c->from->n_values;
    return TK_OK;
}

static tk_status clone(const tk_kernel *kernel, bool body, tk_kernel **out_kernel) {
    cloner c = {.from = kernel, .to = tk_kernel_create(kernel->name, kernel->form)};
    c.values = tk_calloc((size_t)kernel->n_values + 1, sizeof *c.values);
    tk_status status = c.to && c.values ? copy_all(&c, body) : no_memory();
    tk_free(c.values);
    if (status == TK_OK)
        *out_kernel = c.to;
    else
        tk_kernel_release(c.to);
    return status;
}

tk_status tk_kernel_clone(const tk_kernel *kernel, tk_kernel **out_kernel) {
    return clone(kernel, true, out_kernel);
}

tk_status tk_kernel_clone_head(const tk_kernel *kernel, tk_kernel **out_kernel) {
    return clone(kernel, false, out_kernel);
}
