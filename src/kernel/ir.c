/* Kernels in memory; ir.h says what the records mean. */
#include "kernel/ir.h"

#include <string.h>

#include "base/error.h"

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel"); }

/* ---- kernels ---- */

static tk_status start(tk_kernel *kernel, const char *name) {
    uint32_t number;
    kernel->name = tk_arena_text(&kernel->arena, name, strlen(name));
    if (!kernel->name) return no_memory();
    return tk_kernel_string(kernel, "", 0, &number);
}

tk_kernel *tk_kernel_create(const char *name, tk_kform form) {
    tk_kernel *kernel = tk_calloc(1, sizeof *kernel);
    if (!kernel) return NULL;
    tk_kcontract *contract = &kernel->contract;
    kernel->references = 1;
    kernel->form = form;
    contract->dynamic_shared = -1;
    for (int i = 0; i < 3; i++)
        contract->grid[i] = contract->cluster[i] = -1, contract->block[i] = 1;
    if (start(kernel, name) == TK_OK) return kernel;
    tk_kernel_release(kernel);
    return NULL;
}

tk_kernel *tk_kernel_retain(tk_kernel *kernel) {
    if (kernel) __atomic_add_fetch(&kernel->references, 1, __ATOMIC_RELAXED);
    return kernel;
}

void tk_kernel_release(tk_kernel *kernel) {
    if (!kernel || __atomic_sub_fetch(&kernel->references, 1, __ATOMIC_ACQ_REL)) return;
    tk_vec_deinit(&kernel->contract.params);
    tk_vec_deinit(&kernel->contract.exprs);
    tk_vec_deinit(&kernel->contract.conditions);
    tk_vec_deinit(&kernel->constants);
    tk_vec_deinit(&kernel->strings);
    tk_vec_deinit(&kernel->layouts);
    tk_arena_deinit(&kernel->arena);
    tk_free(kernel);
}

const char *tk_kernel_name(const tk_kernel *kernel) { return kernel ? kernel->name : NULL; }
tk_kform tk_kernel_form(const tk_kernel *kernel) { return kernel ? kernel->form : TK_KFORM_THREAD; }
int tk_kernel_params(const tk_kernel *kernel) {
    return kernel ? (int)kernel->contract.params.count : 0;
}

tk_status tk_kernel_string(tk_kernel *kernel, const char *text, size_t length, uint32_t *out) {
    for (size_t i = 0; i < kernel->strings.count; i++)
        if (!strncmp(kernel->strings.items[i], text, length) && !kernel->strings.items[i][length]) {
            *out = (uint32_t)i;
            return TK_OK;
        }
    char *copy = tk_arena_text(&kernel->arena, text, length);
    if (!copy || !tk_vec_push(&kernel->strings, copy)) return no_memory();
    *out = (uint32_t)kernel->strings.count - 1;
    return TK_OK;
}

tk_status tk_kernel_layout(tk_kernel *kernel, const tk_composed *layout, uint32_t *out) {
    for (size_t i = 0; i < kernel->layouts.count; i++)
        if (tk_composed_equal(kernel->layouts.items[i], layout)) {
            *out = (uint32_t)i + 1;
            return TK_OK;
        }
    tk_composed *copy = tk_arena_alloc(&kernel->arena, sizeof *copy);
    if (!copy || !tk_vec_push(&kernel->layouts, copy)) return no_memory();
    memcpy(copy, layout, sizeof *copy);
    *out = (uint32_t)kernel->layouts.count;
    return TK_OK;
}

/* ---- values ---- */

tk_status tk_kernel_value(tk_kernel *kernel, tk_kvalue_kind kind, tk_ktype type, tk_kvalue **out) {
    tk_kvalue *value = tk_arena_alloc(&kernel->arena, sizeof *value);
    if (!value) return no_memory();
    value->kind = (uint8_t)kind;
    value->type = type;
    value->id = kernel->n_values++;
    *out = value;
    return TK_OK;
}

tk_status tk_kernel_constant(tk_kernel *kernel, tk_kscalar scalar, uint64_t bits, tk_kvalue **out) {
    int width = scalar == TK_K_I1 ? 1 : 8 * tk_kscalar_bytes(scalar);
    if (width < 64) bits &= ((uint64_t)1 << width) - 1;
    for (size_t i = 0; i < kernel->constants.count; i++) {
        tk_kvalue *value = kernel->constants.items[i];
        if (value->type.scalar == scalar && value->bits == bits) {
            *out = value;
            return TK_OK;
        }
    }
    tk_kvalue *value = NULL;
    TK_TRY(tk_kernel_value(kernel, TK_KV_CONST, tk_ktype_scalar(scalar), &value));
    value->bits = bits;
    if (!tk_vec_push(&kernel->constants, value)) return no_memory();
    *out = value;
    return TK_OK;
}

bool tk_kvalue_integer(const tk_kvalue *value, int64_t *out) {
    if (!value || value->kind != TK_KV_CONST || value->type.scalar > TK_K_I64) return false;
    int unused = 64 - (value->type.scalar == TK_K_I1 ? 1 : 8 * tk_ktype_bytes(value->type));
    bool is_signed = value->type.scalar != TK_K_I1;
    uint64_t up = value->bits << unused;
    *out = is_signed ? (int64_t)up >> unused : (int64_t)(up >> unused);
    return true;
}

/* ---- operations ---- */

int64_t tk_kop_attr(const tk_kop *op, tk_kattr_id id) {
    const uint8_t *ids = tk_kop_row_of(op->code)->attrs;
    for (int i = 0; ids[i]; i++)
        if (ids[i] == (unsigned)id + 1) return op->attrs[i];
    return 0;
}

static void link_between(tk_kblock *block, tk_kop *before, tk_kop *op, tk_kop *after) {
    op->block = block;
    op->prev = before;
    op->next = after;
    *(before ? &before->next : &block->first) = op;
    *(after ? &after->prev : &block->last) = op;
}

void tk_kop_append(tk_kblock *block, tk_kop *op) { link_between(block, block->last, op, NULL); }

void tk_kop_insert_before(tk_kop *place, tk_kop *op) {
    link_between(place->block, place->prev, op, place);
}

void tk_kop_unlink(tk_kop *op) {
    *(op->prev ? &op->prev->next : &op->block->first) = op->next;
    *(op->next ? &op->next->prev : &op->block->last) = op->prev;
    op->block = NULL;
    op->prev = op->next = NULL;
}

tk_status tk_kop_add_results(tk_kernel *kernel, tk_kop *op, size_t count, const tk_ktype *types) {
    if (count > UINT16_MAX)
        return tk_fail(TK_OVERFLOW, "%s: %zu results, at most 65535", tk_kop_row_of(op->code)->name,
                       count);
    op->results = tk_arena_alloc(&kernel->arena, count * sizeof *op->results);
    if (!op->results) return no_memory();
    for (size_t i = 0; i < count; i++) {
        TK_TRY(tk_kernel_value(kernel, TK_KV_RESULT, types[i], &op->results[i]));
        op->results[i]->op = op;
        op->results[i]->index = (uint32_t)i;
    }
    op->n_results = (uint16_t)count;
    return TK_OK;
}

#define MOST_REGIONS 2

static tk_status add_args(tk_kernel *kernel, tk_kblock *block, size_t count,
                          const tk_ktype *types) {
    block->args = tk_arena_alloc(&kernel->arena, count * sizeof *block->args);
    if (!block->args) return no_memory();
    for (size_t i = 0; i < count; i++) {
        TK_TRY(tk_kernel_value(kernel, TK_KV_ARGUMENT, types[i], &block->args[i]));
        block->args[i]->block = block;
        block->args[i]->index = (uint32_t)i;
    }
    block->n_args = (uint32_t)count;
    return TK_OK;
}

tk_status tk_kop_add_region(tk_kernel *kernel, tk_kop *op, size_t n_args, const tk_ktype *types,
                            tk_kblock **out) {
    if (!op->regions)
        op->regions = tk_arena_alloc(&kernel->arena, MOST_REGIONS * sizeof *op->regions);
    tk_kblock *block = op->regions ? tk_arena_alloc(&kernel->arena, sizeof *block) : NULL;
    if (!block) return no_memory();
    block->parent = op;
    TK_TRY(add_args(kernel, block, n_args, types));
    op->regions[op->n_regions++] = block;
    *out = block;
    return TK_OK;
}

tk_status tk_kblock_walk(const tk_kblock *block, tk_kop_visit visit, void *arg) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        TK_TRY(visit(arg, op));
        for (int i = 0; i < op->n_regions; i++) TK_TRY(tk_kblock_walk(op->regions[i], visit, arg));
    }
    return TK_OK;
}
