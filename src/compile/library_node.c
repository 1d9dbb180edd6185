/* See library_node.h. The plan of a node is found again when it runs, by the strides and alignments
 * that its operands then have; the first one, found to check the call, is mostly the same. */
#include "compile/library_node.h"

#include <string.h>

#include "array/storage.h"
#include "base/error.h"
#include "tiki/devices.h"

typedef struct library_launch {
    tk_launch_record record;
    tk_library_id id;
    size_t n_slots;
    int from[TK_LIBRARY_SLOTS]; /* an operand; -1: missing; else -2 - output */
    double number;
    tk_target target;
    bool has_schedule, strided;
    tk_library_schedule schedule;
} library_launch;

static void release_launch(tk_ref *ref) { tk_free(ref); }

/* ---- running ---- */

/* The library reads rows with elements beside each other; products take either of two axes. */
static bool takes_as_it_lies(const library_launch *launch, const tk_strided *view) {
    int last = view->rank - 1;
    return launch->strided && view->rank >= 2 &&
           !tk_strides_row_major(view->rank, view->shape, view->strides) &&
           (uintptr_t)view->data % 16 == 0 &&
           (view->strides[last] == 1 || view->strides[last - 1] == 1) && view->strides[last] >= 1 &&
           view->strides[last - 1] >= 1;
}

static tk_status view_slot(const library_launch *launch, tk_operand_copies *copies, int from,
                           tk_strided *out) {
    const tk_body_call *call = copies->call;
    *out = (tk_strided){.rank = -1};
    if (from <= -2) *out = call->outputs[-2 - from];
    if (from < 0) return TK_OK;
    const tk_strided *view = &call->inputs[from];
    if (!takes_as_it_lies(launch, view)) return tk_launch_operand(copies, view, 1, out);
    *out = *view;
    return TK_OK;
}

static tk_status run_library(const tk_launch_record *record, const tk_body_call *call) {
    const library_launch *launch = (const library_launch *)(const void *)record;
    tk_strided views[TK_LIBRARY_SLOTS];
    tk_operand_copies copies = {.call = call};
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < launch->n_slots; i++)
        status = view_slot(launch, &copies, launch->from[i], &views[i]);
    tk_library_run run = {.id = launch->id,
                          .n_tensors = launch->n_slots,
                          .tensors = views,
                          .n_numbers = tk_library_numbers(launch->id),
                          .numbers = &launch->number,
                          .schedule = launch->has_schedule ? &launch->schedule : NULL,
                          .target = launch->target};
    if (status == TK_OK) status = tk_run_library(call, &run);
    tk_release_copies(&copies);
    return status;
}

/* ---- making ---- */

void tk_slot_describe(const tk_slot *slot, tk_library_tensor *out) {
    tk_strided view = {.rank = -1};
    if (slot->kind != TK_SLOT_MISSING) {
        bool in = slot->kind == TK_SLOT_INPUT;
        tk_shape shape = in ? tk_array_shape(slot->input) : slot->shape;
        view.rank = (int)shape.count;
        view.dtype = in ? tk_array_dtype(slot->input) : slot->dtype;
        for (int64_t stride = 1, axis = shape.count - 1; axis >= 0; axis--) {
            view.shape[axis] = shape.items[axis];
            view.strides[axis] = stride;
            stride *= shape.items[axis];
        }
    }
    tk_library_tensor_of(&view, out); /* address 0 is aligned to everything */
}

/* Where the operands are, which the caller has found to be arrays of the context. */
static tk_device *device_of(tk_context *context, const tk_library_spec *spec, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (spec->slots[i].kind == TK_SLOT_INPUT)
            return tk_stream_device_of(context, tk_array_stream(spec->slots[i].input));
    return NULL;
}

static tk_status check_call(tk_context *context, const tk_library_spec *spec, size_t count) {
    tk_library_tensor tensors[TK_LIBRARY_SLOTS];
    tk_library_call call = {spec->id, NULL, tensors, &spec->number, spec->schedule};
    for (size_t i = 0; i < count; i++) tk_slot_describe(&spec->slots[i], &tensors[i]);
    return tk_library_check_call(device_of(context, spec, count), &call, count);
}

static void add_output(library_launch *launch, const tk_slot *slot) {
    tk_launch_record *record = &launch->record;
    int number = record->n_outputs++;
    if (slot->shape.count)
        memcpy(record->shapes[number], slot->shape.items,
               (size_t)slot->shape.count * sizeof *slot->shape.items);
    record->outputs[number] =
        (tk_type){slot->dtype, (int)slot->shape.count, record->shapes[number]};
    record->donors[number] = -1;
}

static library_launch *new_launch(const tk_library_spec *spec, size_t count, tk_array *inputs) {
    library_launch *launch = tk_calloc(1, sizeof *launch);
    if (!launch) return NULL;
    tk_launch_record *record = &launch->record;
    atomic_init(&record->ref.count, 1);
    record->ref.release = release_launch;
    record->name = tk_library_name(spec->id);
    record->run = run_library;
    launch->id = spec->id;
    launch->n_slots = count;
    launch->number = spec->number;
    launch->target = tk_target_in_use();
    launch->strided = spec->strided;
    launch->has_schedule = spec->schedule != NULL;
    if (spec->schedule) launch->schedule = *spec->schedule;
    for (size_t i = 0; i < count; i++) {
        const tk_slot *slot = &spec->slots[i];
        launch->from[i] = -1;
        if (slot->kind == TK_SLOT_INPUT) {
            launch->from[i] = (int)record->n_inputs;
            inputs[record->n_inputs++] = slot->input;
        }
        if (slot->kind != TK_SLOT_OUTPUT) continue;
        launch->from[i] = -2 - record->n_outputs;
        add_output(launch, slot);
    }
    return launch;
}

tk_status tk_library_node(tk_context *context, const tk_library_spec *spec, tk_arrays *outputs) {
    tk_array inputs[TK_LIBRARY_SLOTS];
    size_t count = tk_library_tensors(spec->id);
    for (size_t i = 0; i < count; i++)
        if (spec->slots[i].kind == TK_SLOT_INPUT)
            TK_TRY(tk_launch_check_inputs(context, &spec->slots[i].input, 1));
    TK_TRY(check_call(context, spec, count));
    library_launch *launch = new_launch(spec, count, inputs);
    if (!launch) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    return tk_launch_node(context, &launch->record, inputs, launch->record.n_inputs, outputs);
}
