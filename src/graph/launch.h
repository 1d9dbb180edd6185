/* What the op `launch` refers to: the part of a launch that the graph needs. Who makes it
 * (src/compile) has the kernel and its arguments behind it. */
#ifndef GRAPH_LAUNCH_H
#define GRAPH_LAUNCH_H

#include "graph/infer.h"

struct tk_body_call;

typedef struct tk_launch_record {
    tk_ref ref;
    const char *name; /* of the kernel */
    tk_status (*run)(const struct tk_launch_record *record, const struct tk_body_call *call);
    size_t n_inputs;
    int n_outputs;
    tk_type outputs[TK_MAX_OUTPUTS];
    int64_t shapes[TK_MAX_OUTPUTS][TK_MAX_RANK];
    /* By output: the operand that it begins as, -1: none. It takes the operand's memory where
     * nobody else needs that, and a copy of it else. */
    int donors[TK_MAX_OUTPUTS];
} tk_launch_record;

static inline const tk_launch_record *tk_launch_record_of(const tk_attrs_launch *attrs) {
    return (const tk_launch_record *)(const void *)attrs->record;
}

#endif
