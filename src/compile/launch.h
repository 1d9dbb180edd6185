/* What a node `launch` refers to, and running it. */
#ifndef COMPILE_LAUNCH_H
#define COMPILE_LAUNCH_H

#include "array/executor.h"
#include "graph/launch.h"
#include "tiki/kernel_op.h"

/* A parameter as it is bound. Tensor maps are bound to nothing. */
typedef struct tk_bound {
    bool is_input, is_output;
    uint32_t index;
    int64_t align; /* bytes that the address must be a multiple of */
    uint64_t bits; /* of scalars */
} tk_bound;

typedef struct tk_bound_launch {
    tk_launch_record record; /* first: the node refers to it */
    tk_kernel *kernel;
    tk_target target;
    char *site;
    bool empty; /* all outputs are: nothing runs */
    size_t n_bound;
    tk_bound bound[];
} tk_bound_launch;

/* The target of this thread's launches: see tk_target_use. */
tk_target tk_target_in_use(void);

/* The body of the op on devices with kernels. Operands that do not lie as the kernel needs them are
 * copied first. */
tk_status tk_body_launch(const tk_body_call *call);

/* Row-major copies that a body makes of its inputs, handed to the same queue. Starts with `call`
 * set and all else zero. */
#define TK_MOST_COPIES 24
typedef struct tk_operand_copies {
    const tk_body_call *call;
    tk_buffer *buffers[TK_MOST_COPIES];
    int count;
} tk_operand_copies;

tk_status tk_copy_operand(tk_operand_copies *copies, const tk_strided *view, tk_strided *out);
void tk_release_copies(tk_operand_copies *copies);

/* The view, or a copy of it that lies row-major at a multiple of `align` bytes. */
tk_status tk_launch_operand(tk_operand_copies *copies, const tk_strided *view, int64_t align,
                            tk_strided *out);

/* Writes the outputs, and how many inputs there are, into a record that has its name. *out_empty:
 * no output has an element. */
tk_status tk_launch_describe(tk_launch_record *record, size_t n_outputs,
                             const tk_launch_output *outputs, const tk_array *inputs,
                             size_t n_inputs, bool *out_empty);

/* The outputs of a node that the record describes, appended to `outputs`. Consumes a reference to
 * the record. */
tk_status tk_launch_node(tk_context *context, tk_launch_record *record, const tk_array *inputs,
                         size_t n_inputs, tk_arrays *outputs);

/* The first error or wrong context among arrays. */
tk_status tk_launch_check_inputs(tk_context *context, const tk_array *inputs, size_t n_inputs);

#endif
