/* Kernels of the library as nodes: each tensor of the library's call is an operand, an output, or
 * missing. */
#ifndef COMPILE_LIBRARY_NODE_H
#define COMPILE_LIBRARY_NODE_H

#include "compile/launch.h"
#include "compile/plans.h"

#define TK_LIBRARY_SLOTS 6

typedef struct tk_slot {
    enum { TK_SLOT_MISSING, TK_SLOT_INPUT, TK_SLOT_OUTPUT } kind;
    tk_array input;
    tk_dtype dtype; /* of an output */
    tk_shape shape;
} tk_slot;

static inline tk_slot tk_slot_in(tk_array array) {
    tk_slot slot = {array.node ? TK_SLOT_INPUT : TK_SLOT_MISSING, array, TK_FLOAT32, {0}};
    return slot;
}
static inline tk_slot tk_slot_out(tk_dtype dtype, tk_shape shape) {
    tk_slot slot = {TK_SLOT_OUTPUT, {0}, dtype, shape};
    return slot;
}
static inline tk_slot tk_slot_none(void) {
    tk_slot slot = {TK_SLOT_MISSING, {0}, TK_FLOAT32, {0}};
    return slot;
}

/* The tensor of a slot, row-major and aligned to every access. */
void tk_slot_describe(const tk_slot *slot, tk_library_tensor *out);

typedef struct tk_library_spec {
    tk_library_id id;
    tk_slot slots[TK_LIBRARY_SLOTS];
    double number;
    const tk_library_schedule *schedule; /* NULL: the default */
    bool strided;                        /* operands may have any strides that the kernel takes */
} tk_library_spec;

/* Appends the outputs in the order of slots. The call is checked by making its plan, for memory
 * that lies well: a schedule that cannot be is refused here. */
tk_status tk_library_node(tk_context *context, const tk_library_spec *spec, tk_arrays *outputs);

#endif
