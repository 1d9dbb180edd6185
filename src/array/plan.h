/* An evaluation: what is to be computed, taken out of the graph under the lock, run without it,
 * published under it.
 *
 * Planning orders the unevaluated nodes below the roots and takes their operands away from them
 * (the plan then holds those references), so that nobody else can reach an intermediate value: what
 * only the plan can reach may be freed after its last use, or overwritten. Nodes that a transform
 * still open depends on keep their operands. A node being computed is SCHEDULED; other evaluations
 * treat it as a leaf that will have its value once this plan is done, and queue behind it.
 *
 * Publishing gives computed nodes their storage and drops their operands. What was not computed
 * (failure, interruption) gets its operands back and can be evaluated again. */
#ifndef ARRAY_PLAN_H
#define ARRAY_PLAN_H

#include "array/storage.h"

typedef struct tk_entry {
    tk_node *node;
    uint32_t first_input; /* into plan->edges */
    uint32_t n_inputs;
    uint32_t group;    /* where it is computed, once grouped */
    uint32_t uses;     /* steps of this plan that read the value and have not run */
    uint8_t site;      /* of the context, where the value is */
    tk_stream *stream; /* that a step runs on */
    bool is_step;      /* computed by this plan; else a leaf */
    bool holds;        /* the plan has the node's operands */
    bool persists;     /* somebody beside this plan can reach the node */
    bool done;
    bool awaits; /* a leaf that another plan computes */
    void *storage;
} tk_entry;

/* Entries that are computed together: plan->members[first ... first + count - 1]. */
typedef struct tk_group {
    uint32_t first, count;
} tk_group;

typedef struct tk_segment {
    struct tk_plan *plan;
    uint32_t first, count; /* entries; once grouped, groups */
    uint32_t number;       /* of the stream */
    tk_stream *stream;
} tk_segment;

typedef struct tk_plan {
    tk_context *context;
    int refs; /* under the lock */
    TK_VEC(tk_entry) entries;
    TK_VEC(uint32_t) edges; /* entry numbers of operands */
    TK_VEC(tk_segment) segments;
    TK_VEC(tk_group) groups;
    TK_VEC(uint32_t) members; /* entry numbers */
    TK_VEC(struct tk_plan *) awaited;
    tk_node_vec roots;
    uint32_t segments_left;
    bool nan_trap;
    bool is_awaited; /* a caller waits for its status */
    bool submitted;  /* everything this plan runs has its place in its streams */
    bool done;
    bool operand_failed; /* another plan's failure: planning again may help */
    tk_status status;    /* the first failure; with `message` */
    char *message;
    tk_fault fault;
    tk_op fault_op;
    _Atomic bool cancelled;
    const tk_wait *wait; /* asked between steps when the waiting thread itself computes */
    int64_t asked;       /* when it was asked last, on the clock of the trace */
    int64_t deadline;    /* INT64_MAX: none */
} tk_plan;

/* Plans the evaluation of nodes (not errors). Needs the lock. *out_plan is NULL when nothing is to
 * do. */
tk_status tk_plan_new(tk_context *context, size_t count, tk_node *const *roots, tk_plan **out_plan);
void tk_plan_release(tk_plan *plan);

/* Runs one segment (a tk_segment); publishes when it is the last. A task of a stream. */
tk_status tk_plan_run_segment(void *segment);

/* Asks `wait` whether to give up; at most every 20 ms. Without the lock. */
bool tk_plan_gives_up(tk_plan *plan, const tk_wait *wait);

/* Ends a plan that could not be submitted, with this thread's error: every node is as before. Needs
 * the lock. */
void tk_plan_abandon(tk_plan *plan, tk_status status);

/* Computes one entry. */
tk_status tk_plan_step(tk_plan *plan, tk_entry *entry);

/* TK_INTERRUPTED when somebody asked this plan to stop. */
tk_status tk_plan_check(tk_plan *plan);

static inline const tk_site *tk_plan_site(const tk_plan *plan, const tk_entry *entry) {
    return &plan->context->sites[entry->site];
}

/* Entry number of an operand of an entry, and the entry. */
static inline tk_entry *tk_plan_operand(tk_plan *plan, const tk_entry *entry, uint32_t index) {
    return &plan->entries.items[plan->edges.items[entry->first_input + index]];
}

/* TK_NAN_TRAPPED when a float result has a NaN that no operand had. */
tk_status tk_nan_check(const char *op, int n_inputs, const tk_strided *inputs, int n_outputs,
                       const tk_strided *outputs);

#endif
