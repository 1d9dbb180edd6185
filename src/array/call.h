/* How a C function of an op enters the graph: checks its operands, takes the lock, opens a builder,
 * and hands out the result. The functions themselves are generated (tools/tkgen.c). */
#ifndef ARRAY_CALL_H
#define ARRAY_CALL_H

#include "array/context.h"

#define TK_CALL_OPERANDS 12

typedef struct tk_call {
    const char *name;
    tk_context *context;
    tk_builder builder;
    tk_node *nodes[TK_CALL_OPERANDS]; /* single operands in order; NULL: absent */
    int n_nodes;
    int key; /* which of them is a key to be made, -1: none */
    tk_node *const *list;
    size_t n_list;
    tk_node_vec results;
    tk_status status;
} tk_call;

/* Starts a call of the function `name` (static, for messages). `context` is NULL where operands
 * tell it. */
void tk_call_open(tk_call *call, const char *name, tk_context *context);

/* A pointer that must not be NULL, with the argument's name. */
void tk_call_need(tk_call *call, const char *argument, const void *pointer);

/* A dtype; `or_none`: TK_DTYPE_COUNT stands for none. */
void tk_call_dtype(tk_call *call, const char *argument, tk_dtype dtype, bool or_none);

/* One of `count` values of the enum `type`. */
void tk_call_enum(tk_call *call, const char *argument, int value, int count, const char *type);

void tk_call_operand(tk_call *call, tk_array array);
void tk_call_optional(tk_call *call, tk_array array);
void tk_call_key(tk_call *call, tk_array key);
void tk_call_operands(tk_call *call, const char *argument, const tk_array *arrays, size_t count);

/* Takes the lock and opens the builder. False if something was wrong; then only refuse may follow.
 */
bool tk_call_begin(tk_call *call);

/* The result of a call that did not begin: an array with the error where there is a context. */
tk_array tk_call_refuse(tk_call *call);
tk_status tk_call_refuse_list(tk_call *call);

/* Ends a call with its result. A list's results are appended to `out`; the status is the first
 * error's. */
tk_array tk_call_end(tk_call *call, tk_node *node);
tk_status tk_call_end_list(tk_call *call, bool ok, tk_arrays *out);

#endif
