/* What a device gives the evaluator: one body an op, on memory.
 *
 * The evaluator allocates outputs (row-major), keeps operands alive and orders the calls; it
 * computes views itself (reshape, transpose, slice, broadcast) where strides can express them.
 * Device modules define their table; the CPU's is tk_cpu_executor. */
#ifndef ARRAY_EXECUTOR_H
#define ARRAY_EXECUTOR_H

#include <stdatomic.h>

#include "graph/launch.h"
#include "runtime/device.h"
#include "tiki/array.h"

/* The first index out of range that an evaluation met: the one at the lowest position. */
typedef struct tk_fault {
    _Atomic int64_t position; /* INT64_MAX: none */
    int64_t index;
    int64_t length;
    atomic_bool busy; /* being written; its own, so that no fork leaves it held for a child */
} tk_fault;

typedef struct tk_body_call {
    tk_op op;
    const void *attrs; /* the op's record */
    int n_inputs;
    const tk_strided *inputs; /* any strides, 0 and negative ones too */
    int n_outputs;
    const tk_strided *outputs; /* row-major; outputs[0].data may be an operand's, see in_place */
    tk_fault *fault;
    /* Where the memory is; NULL in calls outside of an evaluation: the processor. */
    tk_device *device;
    tk_queue *queue; /* the device's order that the work is handed to; NULL where it has none */
} tk_body_call;

/* Computes the outputs, or hands the work to the queue. Fails only before writing anything (out of
 * memory for scratch). Runs on a stream's thread and may use the pool. */
typedef tk_status (*tk_body)(const tk_body_call *call);

typedef struct tk_executor {
    const char *name;
    const char *(*variant)(void); /* the instruction set in use; static */
    const char *(*blas)(void);    /* the library of matrix products; static, or NULL: none */
    tk_body bodies[TK_OP_COUNT];
    /* Whether the op may write its first output over operand `index` of the same type in row-major
     * memory that nothing else needs. */
    bool (*in_place)(tk_op op, int index);

    /* Whether it can compute an application, with the reason. NULL: all that has a body. */
    tk_status (*check)(tk_op op, size_t n_inputs, tk_node *const *inputs, const void *attrs);
} tk_executor;

extern const tk_executor tk_cpu_executor, tk_emulator_executor, tk_cuda_executor;

/* Notes that element `position` (row-major, of the index operand) asked for `index` of an axis of
 * `length`. Any thread. */
void tk_fault_note(tk_fault *fault, int64_t position, int64_t index, int64_t length);

#endif
