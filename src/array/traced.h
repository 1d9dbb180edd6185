/* Recorded functions inside: what traced.c records and replays, and what traced_general.c adds so
 * that one recording serves other shapes. See tiki/transforms.h for what users see. */
#ifndef ARRAY_TRACED_H
#define ARRAY_TRACED_H

#include "array/context.h"
#include "graph/walk.h"
#include "tiki/transforms.h"

/* An operand: a slot (arguments first, then steps), or a constant node. */
typedef struct tk_trace_operand {
    uint32_t slot; /* TK_NODE_ABSENT: the constant */
    tk_node *constant;
} tk_trace_operand;

typedef TK_VEC(tk_trace_operand) tk_trace_operands;

typedef TK_VEC(uint32_t) tk_counts;

/* How one number of a step follows from lengths of the arguments. Numbers that are the same in both
 * recordings have no law. */
typedef struct tk_law {
    uint32_t step;
    uint32_t offset; /* of the field in the record */
    int32_t item;    /* of a list; -1: the field itself */
    enum { TK_LAW_SHIFT, TK_LAW_SCALE, TK_LAW_REAL, TK_LAW_AXES, TK_LAW_REST } kind;
    int group;       /* SHIFT: the number plus what this length has grown by */
    uint32_t slot;   /* AXES: the product of lengths of what is in this slot, */
    uint32_t axes;   /* of these axes, a bit each */
    bool is_real;    /* the field holds a float, whatever the kind */
    int64_t number;  /* as first recorded */
    int64_t beside;  /* SCALE: (number + beside) grows by the powers, and beside goes again */
    double factor;   /* REAL: times the powers of the lengths themselves */
    int8_t twice[8]; /* twice the power of each length */
                     /* REST: what gives the result of a reshape the size of its operand */
} tk_law;

typedef TK_VEC(tk_law) tk_laws;

/* Lengths of arguments that may vary: all places that had the same length vary together. */
#define TK_VARYING_MAX 8
typedef struct tk_varying {
    int count;
    int64_t near[TK_VARYING_MAX], far[TK_VARYING_MAX];
} tk_varying;

struct tk_traced {
    tk_context *context;
    tk_node_vec placeholders; /* retained, as all nodes here */
    tk_node_vec steps;
    tk_counts counts;           /* operands of each step: an evaluated node has dropped its own */
    tk_trace_operands operands; /* of all steps, one after the other */
    tk_trace_operands results;
    tk_varying varying; /* none: the shapes are those of the placeholders */
    tk_laws laws;       /* by step */
};

tk_status tk_traced_no_memory(void);

/* Adds an operand or result; the caller holds the lock. False without memory. */
bool tk_trace_operands_add(tk_trace_operands *list, uint32_t slot, tk_node *constant);
void tk_trace_operands_release(tk_trace_operands *list);

/* ---- other shapes (traced_general.c) ---- */

/* All lengths above 1 of the arguments, each to vary by a prime factor of its own; those beyond
 * TK_VARYING_MAX stay. */
void tk_varying_all(const tk_array *args, size_t n_args, tk_varying *out_varying);

/* Adds a length; nothing where it is there, cannot vary, or there is no room. */
void tk_varying_add(tk_varying *varying, int64_t length);

/* Those that differ between the arguments and others of the same ranks. */
void tk_varying_between(const tk_array *args, const tk_array *others, size_t n_args,
                        tk_varying *out_varying);

/* The shape with varying lengths replaced. */
tk_shape tk_varying_far(const tk_varying *varying, tk_shape shape);

/* Templates of the arguments in their far shapes, lazy and without memory. */
tk_status tk_varying_args(tk_context *context, const tk_varying *varying, const tk_array *args,
                          size_t n_args, tk_arrays *out);

/* Replaces what `near` recorded by steps that serve any lengths: `far` is the same function on the
 * far shapes. Numbers that differ between the two must follow from the lengths; TK_UNSUPPORTED
 * names the op where one does not, or where the two are not the same expression. */
tk_status tk_traced_generalise(tk_traced *near, const tk_traced *far, const tk_varying *varying);

/* The lengths of a call, one for each varying one; TK_SHAPE_ERROR when they do not fit. */
tk_status tk_traced_lengths(const tk_traced *traced, const tk_array *args, int64_t *out_lengths);

/* Applies the laws of a step, from *next_law on, to `attrs`, a copy that may be changed. `values`
 * are those of the slots, `inputs` the step's operands. */
tk_status tk_traced_apply_laws(const tk_traced *traced, size_t step, const int64_t *lengths,
                               tk_node *const *values, tk_node *const *inputs, size_t *next_law,
                               void *attrs);

#endif
