/* See fuse.h. Grouping happens with the plan, by shape; whether strides allow it is seen when the
 * group runs.
 *
 * Every outside operand is looked at as rows and columns of the common shape (last axis: columns),
 * so that scalars, rows and columns that were broadcast take part. When all of them are row-major
 * or scalars, the whole is one row. */
#include "array/fuse.h"

#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "runtime/trace.h"

#define BLOCK_ELEMENTS 8192
#define LONGEST_ROW 65536
#define FEWEST_ELEMENTS 8192
#define MOST_MEMBERS 32
#define MOST_OPERANDS 3

/* ---- grouping ---- */

static bool is_candidate(const tk_plan *plan, const tk_entry *entry) {
    const tk_node *node = entry->node;
    return tk_node_op(node)->lower == TK_LOWER_EWISE && node->size >= FEWEST_ELEMENTS &&
           node->rank > 0 && node->n_inputs <= MOST_OPERANDS && !plan->nan_trap && entry->site == 0;
}

typedef struct grouping {
    tk_plan *plan;
    uint32_t open[MOST_MEMBERS]; /* members of the group being made */
    uint32_t count;
} grouping;

#define IN_OPEN_GROUP UINT32_MAX

static bool append_group(tk_plan *plan, uint32_t count, const uint32_t *members) {
    tk_group group = {(uint32_t)plan->members.count, count};
    for (uint32_t i = 0; i < count; i++) {
        plan->entries.items[members[i]].group = (uint32_t)plan->groups.count;
        if (!tk_vec_push(&plan->members, members[i])) return false;
    }
    return tk_vec_push(&plan->groups, group);
}

static bool close_group(grouping *g) {
    bool ok = g->count == 0 || append_group(g->plan, g->count, g->open);
    g->count = 0;
    return ok;
}

static bool reads_open_group(const grouping *g, const tk_entry *entry) {
    for (uint32_t i = 0; i < entry->n_inputs; i++) {
        const tk_entry *operand = tk_plan_operand(g->plan, entry, i);
        if (operand->is_step && operand->group == IN_OPEN_GROUP) return true;
    }
    return false;
}

static bool add_step(grouping *g, uint32_t number) {
    tk_entry *entry = &g->plan->entries.items[number];
    bool joins = is_candidate(g->plan, entry);
    if (joins && g->count) {
        const tk_node *other = g->plan->entries.items[g->open[0]].node;
        if (g->count == MOST_MEMBERS || !tk_shape_equal(other, entry->node)) {
            if (!close_group(g)) return false;
        }
    }
    if (!joins) {
        if (reads_open_group(g, entry) && !close_group(g)) return false;
        return append_group(g->plan, 1, &number);
    }
    entry->group = IN_OPEN_GROUP;
    g->open[g->count++] = number;
    return true;
}

tk_status tk_plan_group(tk_plan *plan) {
    grouping g = {.plan = plan};
    bool ok = true;
    for (size_t s = 0; ok && s < plan->segments.count; s++) {
        tk_segment *segment = &plan->segments.items[s];
        uint32_t first = (uint32_t)plan->groups.count;
        for (uint32_t i = segment->first; ok && i < segment->first + segment->count; i++)
            if (plan->entries.items[i].is_step) ok = add_step(&g, i);
        ok = ok && close_group(&g);
        segment->first = first;
        segment->count = (uint32_t)plan->groups.count - first;
    }
    return ok ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation");
}

/* ---- the shape of the work ---- */

/* Where a block of an operand or a result lies: outside memory (data and strides) or a scratch
 * slot. */
typedef struct place {
    char *data;
    int64_t row_stride, column_stride; /* in elements */
    int slot;                          /* of scratch; -1: memory */
    tk_dtype dtype;
} place;

typedef struct member {
    tk_entry *entry;
    int n_inputs;
    place inputs[MOST_OPERANDS];
    place output;
} member;

typedef struct fused {
    tk_plan *plan;
    const tk_group *group;
    const tk_executor *executor;
    int64_t rows, columns;
    int64_t block_rows, block_columns; /* of one block; one of them may be all */
    int n_slots;
    size_t slot_bytes;
    char *scratch; /* n_slots slots for each worker */
    member members[MOST_MEMBERS];
    _Atomic tk_status status;
} fused;

static bool is_flat(const tk_storage *storage, const tk_node *node) {
    if (storage->row_major) return true;
    for (int i = 0; i < node->rank; i++)
        if (node->shape[i] != 1 && storage->strides[i] != 0) return false;
    return true;
}

/* All leading axes as one stride; false when they are not. */
static bool row_stride_of(const tk_storage *storage, const tk_node *node, int64_t *out_stride) {
    int64_t stride = 0, length = 1;
    for (int axis = node->rank - 2; axis >= 0; axis--) {
        if (node->shape[axis] == 1) continue;
        if (length == 1)
            stride = storage->strides[axis];
        else if (storage->strides[axis] != stride * length)
            return false;
        length *= node->shape[axis];
    }
    *out_stride = stride;
    return true;
}

static bool place_outside(const fused *f, const tk_entry *operand, place *out) {
    const tk_storage *storage = operand->storage;
    const tk_node *node = operand->node;
    *out = (place){.data = storage->data, .slot = -1, .dtype = (tk_dtype)node->dtype};
    if (f->rows == 1) {
        out->column_stride = storage->row_major;
        return true;
    }
    int64_t last = node->shape[node->rank - 1];
    out->column_stride = last == 1 ? 0 : storage->strides[node->rank - 1];
    return row_stride_of(storage, node, &out->row_stride);
}

static int member_of(const fused *f, const tk_entry *entry, uint32_t before) {
    for (uint32_t i = 0; i < before; i++)
        if (f->members[i].entry == entry) return (int)i;
    return -1;
}

static bool all_flat(const fused *f) {
    for (uint32_t i = 0; i < f->group->count; i++) {
        const tk_entry *entry = f->members[i].entry;
        for (uint32_t k = 0; k < entry->n_inputs; k++) {
            const tk_entry *operand = tk_plan_operand(f->plan, entry, k);
            if (member_of(f, operand, i) < 0 && !is_flat(operand->storage, operand->node))
                return false;
        }
    }
    return true;
}

static bool choose_blocks(fused *f) {
    const tk_node *node = f->members[0].entry->node;
    if (all_flat(f)) {
        f->rows = f->block_rows = 1;
        f->columns = node->size;
        f->block_columns = BLOCK_ELEMENTS;
        return true;
    }
    f->columns = f->block_columns = node->shape[node->rank - 1];
    f->rows = node->size / f->columns;
    f->block_rows = f->columns >= BLOCK_ELEMENTS ? 1 : BLOCK_ELEMENTS / f->columns;
    return f->columns <= LONGEST_ROW && f->rows > 1;
}

static bool place_inputs(fused *f) {
    for (uint32_t i = 0; i < f->group->count; i++) {
        member *m = &f->members[i];
        m->n_inputs = (int)m->entry->n_inputs;
        for (int k = 0; k < m->n_inputs; k++) {
            const tk_entry *operand = tk_plan_operand(f->plan, m->entry, (uint32_t)k);
            if (member_of(f, operand, i) < 0 && !place_outside(f, operand, &m->inputs[k]))
                return false;
        }
    }
    return true;
}

/* ---- memory of results ---- */

static uint32_t uses_inside(const fused *f, const tk_entry *entry, uint32_t *out_last) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < f->group->count; i++) {
        const tk_entry *user = f->members[i].entry;
        for (uint32_t k = 0; k < user->n_inputs; k++) {
            if (tk_plan_operand(f->plan, user, k) != entry) continue;
            uses++;
            *out_last = i;
        }
    }
    return uses;
}

/* Whether the result of member `index` may take over the memory of an outside operand: row-major,
 * of the same size, read by nobody outside the group and by no later member. */
static bool is_donor(const fused *f, const tk_entry *operand, uint32_t index) {
    const tk_storage *storage = operand->storage;
    const tk_node *result = f->members[index].entry->node;
    uint32_t last = 0;
    if (operand->persists || uses_inside(f, operand, &last) != operand->uses || last > index)
        return false;
    return storage->row_major && storage->buffer->capacity > 0 &&
           storage->buffer->data == storage->data && operand->node->size == result->size &&
           tk_buffer_unique(storage->buffer) &&
           tk_dtype_size((tk_dtype)operand->node->dtype) == tk_dtype_size((tk_dtype)result->dtype);
}

static const tk_storage *find_donor(const fused *f, uint32_t index) {
    for (uint32_t i = 0; i <= index; i++) {
        const tk_entry *entry = f->members[i].entry;
        for (uint32_t k = 0; k < entry->n_inputs; k++) {
            const tk_entry *operand = tk_plan_operand(f->plan, entry, k);
            if (member_of(f, operand, f->group->count) < 0 && is_donor(f, operand, index))
                return operand->storage;
        }
    }
    return NULL;
}

static tk_status give_memory(fused *f, uint32_t index) {
    member *m = &f->members[index];
    tk_type type = tk_node_type(m->entry->node);
    const tk_storage *donor = find_donor(f, index);
    tk_storage *storage;
    if (donor)
        TK_TRY(tk_storage_new(tk_buffer_retain(donor->buffer), donor->data, type, NULL, &storage));
    else
        TK_TRY(tk_storage_allocate(f->plan->context->sites[0].device, NULL, type, &storage));
    m->entry->storage = storage;
    m->output = (place){.data = storage->data,
                        .row_stride = f->columns,
                        .column_stride = 1,
                        .slot = -1,
                        .dtype = type.dtype};
    return TK_OK;
}

/* Results that only the group needs get scratch slots, reused after their last reader. */
static tk_status place_outputs(fused *f) {
    uint32_t free_from[MOST_MEMBERS] = {0}; /* by slot: the first member that may write it */
    for (uint32_t i = 0; i < f->group->count; i++) {
        member *m = &f->members[i];
        uint32_t last = i;
        bool outside = m->entry->persists || uses_inside(f, m->entry, &last) < m->entry->uses;
        if (outside) {
            TK_TRY(give_memory(f, i));
            continue;
        }
        int slot = 0;
        while (slot < f->n_slots && free_from[slot] > i) slot++;
        if (slot == f->n_slots) f->n_slots++;
        free_from[slot] = last + 1;
        m->output = (place){.row_stride = f->block_columns,
                            .column_stride = 1,
                            .slot = slot,
                            .dtype = (tk_dtype)m->entry->node->dtype};
    }
    return TK_OK;
}

static void link_inside(fused *f) {
    for (uint32_t i = 0; i < f->group->count; i++) {
        member *m = &f->members[i];
        for (int k = 0; k < m->n_inputs; k++) {
            int from = member_of(f, tk_plan_operand(f->plan, m->entry, (uint32_t)k), i);
            if (from >= 0) m->inputs[k] = f->members[from].output;
        }
    }
}

/* ---- running ---- */

static tk_strided view_block(const fused *f, const place *p, int worker, int64_t row,
                             int64_t column, int64_t n_rows, int64_t n_columns) {
    tk_strided view = {.dtype = p->dtype, .rank = 2, .size = n_rows * n_columns};
    view.shape[0] = n_rows;
    view.shape[1] = n_columns;
    view.strides[0] = p->row_stride;
    view.strides[1] = p->column_stride;
    int64_t offset = row * p->row_stride + column * p->column_stride;
    view.data = p->slot >= 0 ? f->scratch + (size_t)(worker * f->n_slots + p->slot) * f->slot_bytes
                             : p->data + offset * (int64_t)tk_dtype_size(p->dtype);
    return view;
}

static tk_status run_block(const fused *f, int worker, int64_t row, int64_t column, int64_t n_rows,
                           int64_t n_columns) {
    tk_fault fault = {.position = INT64_MAX};
    for (uint32_t i = 0; i < f->group->count; i++) {
        const member *m = &f->members[i];
        tk_strided inputs[MOST_OPERANDS], output;
        for (int k = 0; k < m->n_inputs; k++)
            inputs[k] = view_block(f, &m->inputs[k], worker, row, column, n_rows, n_columns);
        output = view_block(f, &m->output, worker, row, column, n_rows, n_columns);
        tk_body_call call = {.op = (tk_op)m->entry->node->op,
                             .attrs = m->entry->node->attrs,
                             .n_inputs = m->n_inputs,
                             .inputs = inputs,
                             .n_outputs = 1,
                             .outputs = &output,
                             .fault = &fault};
        TK_TRY(f->executor->bodies[call.op](&call));
    }
    return TK_OK;
}

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker) {
    fused *f = arg;
    for (int64_t block = begin; block < end; block++) {
        int64_t row = f->rows == 1 ? 0 : block * f->block_rows;
        int64_t column = f->rows == 1 ? block * f->block_columns : 0;
        int64_t n_rows = f->rows - row < f->block_rows ? f->rows - row : f->block_rows;
        int64_t n_columns =
            f->columns - column < f->block_columns ? f->columns - column : f->block_columns;
        tk_status status = run_block(f, worker, row, column, n_rows, n_columns);
        if (status != TK_OK) atomic_store(&f->status, status);
    }
}

/* The grain keeps the parts of the loop, which index the scratch, below `workers`, whatever another
 * thread sets meanwhile. */
static tk_status run_fused(fused *f) {
    int workers = tk_pool_threads();
    size_t elements = (size_t)(f->block_rows * f->block_columns);
    f->slot_bytes = (elements * 8 + 63) & ~(size_t)63;
    tk_buffer *scratch = NULL;
    if (f->n_slots) {
        size_t bytes = f->slot_bytes * (size_t)f->n_slots * (size_t)workers;
        TK_TRY(tk_buffer_new(f->plan->context->sites[0].device, bytes, &scratch));
        f->scratch = scratch->data;
    }
    int64_t blocks = f->rows == 1 ? (f->columns + f->block_columns - 1) / f->block_columns
                                  : (f->rows + f->block_rows - 1) / f->block_rows;
    tk_parallel_for(blocks, tk_chunk_count(blocks, workers), run_blocks, f);
    tk_buffer_release(scratch);
    return atomic_load(&f->status);
}

tk_status tk_plan_run_group(tk_plan *plan, const tk_group *group, bool *out_joined) {
    fused f = {.plan = plan, .group = group, .executor = plan->context->sites[0].executor};
    for (uint32_t i = 0; i < group->count; i++)
        f.members[i].entry = &plan->entries.items[plan->members.items[group->first + i]];
    *out_joined = choose_blocks(&f) && place_inputs(&f);
    if (!*out_joined) return TK_OK;
    int64_t begin = tk_trace_begin();
    TK_TRY(place_outputs(&f));
    link_inside(&f);
    TK_TRY(run_fused(&f));
    if (begin) {
        const char *last = tk_op_name((tk_op)f.members[group->count - 1].entry->node->op);
        tk_trace_end(begin, "op", "elementwise", "%u steps, the last %s", group->count, last);
    }
    return TK_OK;
}
