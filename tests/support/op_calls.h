/* Every public op behind one signature, so that a program can call any of them with whatever
 * arguments. tools/tkgen.c writes the table from tiki/ops.def; a new row is called without an edit
 * here. */
#ifndef SUPPORT_OP_CALLS_H
#define SUPPORT_OP_CALLS_H

#include "graph/ops.h"
#include "tiki/array.h"

#define OP_PARAMS_MAX 12

/* One argument; which member counts follows from the parameter's type. */
typedef struct op_value {
    tk_array array;
    const tk_array *arrays;
    size_t count;
    tk_axes axes; /* and shapes */
    int64_t integer;
    double real;
    bool flag;
    tk_dtype dtype;
    tk_mode mode;
    const char *text;
} op_value;

/* Name and type as in the table: "", "array?", "key?", "arrays", "axes", "shape", "int", ... */
typedef struct op_param {
    const char *name, *type;
} op_param;

typedef struct op_row {
    const char *name;
    const char *sample; /* the table's column */
    tk_tolerance tolerance;
    bool is_primitive;
    /* Appends the results, errors included, to `out`. Needs an open scope. */
    tk_status (*call)(tk_context *context, const op_value *values, tk_arrays *out);
    int n_params;
    op_param params[OP_PARAMS_MAX];
} op_row;

extern const op_row op_rows[];
extern const size_t op_row_count;

/* Callers have a scope open, which owns `array`. */
static inline tk_status op_give(tk_arrays *out, tk_array array) {
    return tk_arrays_push(out, array);
}

#endif
