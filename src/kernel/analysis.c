/* Analyses put together, for who asks from outside: values by name, the shared memory map, what
 * barriers order, work. */
#include "tiki/analysis.h"

#include <string.h>

#include "base/error.h"
#include "kernel/analyse.h"
#include "kernel/shared.h"

struct tk_kanalysis {
    tk_kernel *kernel;
    tk_kfact_of *facts;
    uint8_t *uniform;
    int64_t *offsets, registers;
    const tk_kop *fullest;
    TK_VEC(tk_kplace) places;
    TK_VEC(tk_korder) orders;
    tk_kwork work;
};

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for an analysis"); }

/* ---- places ---- */

static tk_status note_place(void *arg, tk_kop *op) {
    tk_kanalysis *a = arg;
    tk_term span;
    if (op->code != TK_KOP_shared) return TK_OK;
    tk_ktype type = op->results[0]->type;
    TK_TRY(tk_layout_cosize(&tk_ktype_layout(a->kernel, type)->outer, &span));
    tk_kplace place = {.name = op->results[0]->name ? op->results[0]->name : "",
                       .line = op->loc.line,
                       .offset = a->offsets[op->results[0]->id],
                       .bytes = span.value * tk_kscalar_bytes((tk_kscalar)type.scalar)};
    return tk_vec_push(&a->places, place) ? TK_OK : no_memory();
}

/* ---- what barriers order ---- */

/* Accesses and barriers in the order of the text, loops twice, so that what the end of a loop does
 * is seen before its beginning. */
typedef struct event {
    const tk_kop *op;
    const tk_kvalue *root; /* of an access: buffer or parameter; NULL: unknown */
    bool writes, barrier;
} event;

typedef struct listing {
    TK_VEC(event) events;
    bool out_of_memory;
} listing;

static const tk_kvalue *root_of(const tk_kvalue *pointer) {
    while (pointer && pointer->kind == TK_KV_RESULT && pointer->op->n_operands) {
        unsigned code = pointer->op->code;
        bool passes = code == TK_KOP_offset || code == TK_KOP_pointer_cast ||
                      code == TK_KOP_address || code == TK_KOP_assume || code == TK_KOP_locate ||
                      code == TK_KOP_view || code == TK_KOP_view_of || code == TK_KOP_slice ||
                      code == TK_KOP_tile || code == TK_KOP_partition || code == TK_KOP_compose;
        if (!passes) return NULL;
        pointer = pointer->op->operands[0];
    }
    return pointer;
}

static bool is_memory(tk_ktype type) {
    return type.kind == TK_KT_POINTER || type.kind == TK_KT_VIEW;
}

static bool is_barrier(unsigned code) {
    return code == TK_KOP_barrier || code == TK_KOP_warp_barrier || code == TK_KOP_cluster_wait ||
           code == TK_KOP_mbarrier_wait || code == TK_KOP_cp_async_wait ||
           code == TK_KOP_bulk_wait || code == TK_KOP_wgmma_wait;
}

/* Which operand of a copy is written: the first named target. */
static bool writes_operand(const tk_kop *op, uint32_t index) {
    const tk_kop_row *row = tk_kop_row_of(op->code);
    if (!(row->effects & TK_KE_WRITES)) return false;
    if (!(row->effects & TK_KE_READS)) return true;
    return index >= TK_KOP_MOST_SLOTS || strcmp(row->slots[index].name, "source");
}

static void list_op(listing *l, const tk_kop *op) {
    unsigned effects = tk_kop_row_of(op->code)->effects;
    event e = {.op = op, .barrier = is_barrier(op->code)};
    if (e.barrier && !tk_vec_push(&l->events, e)) l->out_of_memory = true;
    if (e.barrier || !(effects & (TK_KE_READS | TK_KE_WRITES))) return;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (!op->operands[i] || !is_memory(op->operands[i]->type)) continue;
        if (op->operands[i]->type.scalar == TK_K_MBAR) continue;
        e.root = root_of(op->operands[i]);
        e.writes = writes_operand(op, i);
        if (!tk_vec_push(&l->events, e)) l->out_of_memory = true;
    }
}

static void list_block(listing *l, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) {
        bool loop = op->code == TK_KOP_for || op->code == TK_KOP_while;
        list_op(l, op);
        for (int trip = 0; trip < 1 + loop; trip++)
            for (int i = 0; i < op->n_regions; i++) list_block(l, op->regions[i]);
    }
}

static bool same_order(const tk_korder *a, const tk_korder *b) {
    return a->barrier_line == b->barrier_line && a->before_line == b->before_line &&
           a->after_line == b->after_line && !strcmp(a->memory, b->memory) &&
           !strcmp(a->before, b->before) && !strcmp(a->after, b->after);
}

static tk_status note_order(tk_kanalysis *a, const event *barrier, const event *before,
                            const event *after) {
    tk_korder order = {.barrier = tk_kop_row_of(barrier->op->code)->name,
                       .before = tk_kop_row_of(before->op->code)->name,
                       .after = tk_kop_row_of(after->op->code)->name,
                       .memory = before->root->name ? before->root->name : "",
                       .barrier_line = barrier->op->loc.line,
                       .before_line = before->op->loc.line,
                       .after_line = after->op->loc.line};
    for (size_t i = 0; i < a->orders.count; i++)
        if (same_order(&a->orders.items[i], &order)) return TK_OK;
    return tk_vec_push(&a->orders, order) ? TK_OK : no_memory();
}

/* Pairs between the barrier before this one and the barrier behind it. */
static tk_status note_barrier(tk_kanalysis *a, const listing *l, size_t at) {
    const event *events = l->events.items;
    for (size_t i = at; i-- > 0 && !events[i].barrier;)
        for (size_t j = at + 1; j < l->events.count && !events[j].barrier; j++) {
            bool conflict = events[i].root && events[i].root == events[j].root &&
                            (events[i].writes || events[j].writes);
            if (conflict) TK_TRY(note_order(a, &events[at], &events[i], &events[j]));
        }
    return TK_OK;
}

static tk_status find_orders(tk_kanalysis *a) {
    listing l = {0};
    tk_status status = TK_OK;
    list_block(&l, &a->kernel->body);
    if (l.out_of_memory) status = no_memory();
    for (size_t i = 0; i < l.events.count && status == TK_OK; i++)
        if (l.events.items[i].barrier) status = note_barrier(a, &l, i);
    tk_vec_deinit(&l.events);
    return status;
}

/* ---- work ---- */

static uint64_t flops_of(const tk_kop *op) {
    if (op->code == TK_KOP_mma)
        return (uint64_t)(2 * tk_kop_attr(op, TK_KA_m) * tk_kop_attr(op, TK_KA_n) *
                          tk_kop_attr(op, TK_KA_k) / 32);
    if (op->code == TK_KOP_wgmma)
        return (uint64_t)(2 * tk_kop_attr(op, TK_KA_m) * tk_kop_attr(op, TK_KA_n) *
                          tk_kop_attr(op, TK_KA_k) / 128);
    if (op->n_results != 1 || !tk_kclass_has(TK_KC_FLOAT, op->results[0]->type)) return 0;
    bool counted = op->code == TK_KOP_add || op->code == TK_KOP_sub || op->code == TK_KOP_mul ||
                   (op->code >= TK_KOP_div && op->code <= TK_KOP_max_num) ||
                   (op->code >= TK_KOP_exp && op->code <= TK_KOP_div_approx);
    return op->code == TK_KOP_fma || op->code == TK_KOP_fma_unit ? 2u * op->results[0]->type.lanes
           : counted                                             ? op->results[0]->type.lanes
                                                                 : 0;
}

static uint64_t trips_of(const tk_kop *op, bool *exact) {
    int64_t first, end, step, length;
    if (op->code != TK_KOP_for) return *exact = false, 1;
    if (!tk_kvalue_integer(op->operands[0], &first) || !tk_kvalue_integer(op->operands[1], &end) ||
        !tk_kvalue_integer(op->operands[2], &step) || __builtin_sub_overflow(end, first, &length))
        return *exact = false, 1;
    return length <= 0 ? 0 : 1 + (uint64_t)(length - 1) / (uint64_t)step;
}

static void count_access(const tk_kop *op, uint64_t times, tk_kwork *work) {
    bool load = op->code == TK_KOP_load, store = op->code == TK_KOP_store;
    if ((!load && !store) || op->operands[0]->type.space != TK_KS_GLOBAL) return;
    tk_ktype type = load ? op->results[0]->type : op->operands[1]->type;
    uint64_t bytes = times * (uint64_t)tk_ktype_bytes(type);
    if (op->operands[load ? 1 : 2]) work->exact = false;
    *(load ? &work->read_bytes : &work->written_bytes) += bytes;
}

static void count_block(const tk_kblock *block, uint64_t times, tk_kwork *work) {
    for (const tk_kop *op = block->first; op; op = op->next) {
        work->flops += times * flops_of(op);
        count_access(op, times, work);
        if (!op->n_regions) continue;
        tk_kwork inner = {.exact = true};
        uint64_t trips = op->code == TK_KOP_if ? 1 : trips_of(op, &inner.exact);
        if (op->code == TK_KOP_if) inner.exact = false;
        for (int i = 0; i < op->n_regions; i++) count_block(op->regions[i], times * trips, &inner);
        bool counts = inner.flops || inner.read_bytes || inner.written_bytes;
        work->flops += inner.flops;
        work->read_bytes += inner.read_bytes;
        work->written_bytes += inner.written_bytes;
        if (counts && !inner.exact) work->exact = false;
    }
}

/* ---- the whole ---- */

static tk_status fill(tk_kanalysis *a) {
    tk_kshared_map map;
    a->offsets = tk_calloc((size_t)a->kernel->n_values + 1, sizeof *a->offsets);
    if (!a->offsets) return no_memory();
    TK_TRY(tk_kanalyse_ranges(a->kernel, &a->facts));
    TK_TRY(tk_kanalyse_uniform(a->kernel, &a->uniform));
    TK_TRY(tk_kanalyse_live(a->kernel, &a->registers, &a->fullest));
    TK_TRY(tk_kshared_place(a->kernel, a->offsets, &map));
    TK_TRY(tk_kblock_walk(&a->kernel->body, note_place, a));
    a->work.exact = true;
    count_block(&a->kernel->body, 1, &a->work);
    return find_orders(a);
}

tk_status tk_kernel_analyse(const tk_kernel *kernel, tk_kanalysis **out) {
    TK_NEED(kernel, out);
    tk_kanalysis *a = tk_calloc(1, sizeof *a);
    if (!a) return no_memory();
    a->kernel = tk_kernel_retain((tk_kernel *)(uintptr_t)kernel);
    tk_status status = fill(a);
    if (status == TK_OK)
        *out = a;
    else
        tk_kanalysis_release(a);
    return status;
}

void tk_kanalysis_release(tk_kanalysis *a) {
    if (!a) return;
    tk_free(a->facts);
    tk_free(a->uniform);
    tk_free(a->offsets);
    tk_vec_deinit(&a->places);
    tk_vec_deinit(&a->orders);
    tk_kernel_release(a->kernel);
    tk_free(a);
}

/* ---- questions ---- */

static const tk_kvalue *find_in(const tk_kblock *block, const char *name) {
    for (uint32_t i = 0; i < block->n_args; i++)
        if (block->args[i]->name && !strcmp(block->args[i]->name, name)) return block->args[i];
    for (const tk_kop *op = block->first; op; op = op->next) {
        for (int i = 0; i < op->n_results; i++)
            if (op->results[i]->name && !strcmp(op->results[i]->name, name)) return op->results[i];
        for (int i = 0; i < op->n_regions; i++) {
            const tk_kvalue *found = find_in(op->regions[i], name);
            if (found) return found;
        }
    }
    return NULL;
}

static const tk_kvalue *find_value(const tk_kernel *kernel, const char *name) {
    for (size_t i = 0; i < kernel->contract.params.count; i++)
        if (!strcmp(kernel->contract.params.items[i].value->name, name))
            return kernel->contract.params.items[i].value;
    return find_in(&kernel->body, name);
}

tk_status tk_kanalysis_value(const tk_kanalysis *a, const char *name, tk_kfacts *out) {
    TK_NEED(a, name, out);
    const tk_kvalue *value = find_value(a->kernel, name + (*name == '%'));
    if (!value) return tk_fail(TK_NOT_FOUND, "kernel %s has no value %.60s", a->kernel->name, name);
    tk_kfact_of f = a->facts[value->id];
    bool param = value->kind == TK_KV_PARAM;
    *out = (tk_kfacts){f.low, f.high, f.divisor,
                       param ? TK_KU_GRID : (tk_kuniform)a->uniform[value->id]};
    return TK_OK;
}

int64_t tk_kanalysis_registers(const tk_kanalysis *a, uint32_t *out_line) {
    if (out_line) *out_line = a && a->fullest ? a->fullest->loc.line : 0;
    return a ? a->registers : 0;
}

size_t tk_kanalysis_places(const tk_kanalysis *a) { return a ? a->places.count : 0; }

tk_status tk_kanalysis_place(const tk_kanalysis *a, size_t index, tk_kplace *out) {
    TK_NEED(a, out);
    if (index >= a->places.count)
        return tk_fail(TK_INDEX_ERROR, "buffer %zu of %zu", index, a->places.count);
    *out = a->places.items[index];
    return TK_OK;
}

size_t tk_kanalysis_orders(const tk_kanalysis *a) { return a ? a->orders.count : 0; }

tk_status tk_kanalysis_order(const tk_kanalysis *a, size_t index, tk_korder *out) {
    TK_NEED(a, out);
    if (index >= a->orders.count)
        return tk_fail(TK_INDEX_ERROR, "order %zu of %zu", index, a->orders.count);
    *out = a->orders.items[index];
    return TK_OK;
}

tk_kwork tk_kanalysis_work(const tk_kanalysis *a) { return a ? a->work : (tk_kwork){0}; }
