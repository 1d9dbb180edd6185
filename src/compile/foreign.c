/* Launches that others make: see tk_foreign. The node is that of a launch with another body.
 *
 * Operands are made row-major and aligned first, because who describes arrays to another compiler
 * does so before the memory is known. */
#include <string.h>

#include "array/storage.h"
#include "base/error.h"
#include "compile/launch.h"
#include "runtime/cuda_stream.h"

enum { ALIGN = 16 };

typedef struct foreign_launch {
    tk_launch_record record;
    tk_foreign user;
    char *name, *site;
    bool empty;
} foreign_launch;

static void release_launch(tk_ref *ref) {
    foreign_launch *launch = (foreign_launch *)(void *)ref;
    if (launch->user.release) launch->user.release(launch->user.self);
    tk_free(launch->name);
    tk_free(launch->site);
    tk_free(launch);
}

/* ---- running ---- */

static tk_status place_inputs(tk_operand_copies *copies, void **addresses) {
    const tk_body_call *call = copies->call;
    for (int i = 0; i < call->n_inputs; i++) {
        tk_strided view;
        TK_TRY(tk_launch_operand(copies, &call->inputs[i], ALIGN, &view));
        addresses[i] = view.data;
    }
    return TK_OK;
}

static tk_status hand_over(const foreign_launch *launch, tk_operand_copies *copies,
                           void **addresses) {
    const tk_body_call *call = copies->call;
    void **outputs = addresses + call->n_inputs;
    TK_TRY(place_inputs(copies, addresses));
    for (int i = 0; i < call->n_outputs; i++) outputs[i] = call->outputs[i].data;
    TK_TRY(tk_cuda_enter(tk_cuda_of(call->device)));
    tk_status status =
        launch->user.launch(launch->user.self, call->queue->handle, addresses, outputs);
    uint64_t ticket = tk_cuda_queue_submitted(call->queue); /* after an error too: part may run */
    tk_cuda_queue_launched(call->queue, ticket, launch->name, NULL);
    return status;
}

static tk_status run_foreign(const tk_launch_record *record, const tk_body_call *call) {
    const foreign_launch *launch = (const foreign_launch *)(const void *)record;
    tk_operand_copies copies = {.call = call};
    if (launch->empty) return TK_OK;
    if (call->device->driver != &tk_driver_cuda)
        return tk_fail(TK_UNSUPPORTED, "%s runs on GPUs alone", launch->name);
    void **addresses = tk_calloc((size_t)(call->n_inputs + call->n_outputs), sizeof *addresses);
    if (!addresses) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    tk_status status = hand_over(launch, &copies, addresses);
    tk_release_copies(&copies);
    tk_free(addresses);
    return status;
}

/* ---- making ---- */

static tk_status check(tk_context *context, const tk_foreign *foreign, const tk_array *inputs,
                       size_t n_inputs) {
    if (foreign->size != sizeof *foreign)
        return tk_fail(TK_INVALID_ARGUMENT, "tk_foreign.size is %zu, expected %zu", foreign->size,
                       sizeof *foreign);
    if (!foreign->launch) return tk_fail_null("foreign->launch");
    if (!foreign->outputs) return tk_fail_null("foreign->outputs");
    if (n_inputs) TK_NEED(inputs);
    TK_TRY(tk_launch_check_inputs(context, inputs, n_inputs));
    const char *name = foreign->name ? foreign->name : "a launch";
    if (foreign->n_outputs < 1 || foreign->n_outputs > TK_LAUNCH_OUTPUTS)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: %zu outputs, expected 1 to %d", name,
                       foreign->n_outputs, TK_LAUNCH_OUTPUTS);
    for (size_t i = 0; i < n_inputs; i++) {
        const tk_device *device = tk_array_device(inputs[i]);
        if (device->driver != &tk_driver_cuda)
            return tk_fail(TK_UNSUPPORTED, "%s runs on GPUs, input %zu is on %s", name, i,
                           tk_device_name(device));
    }
    return TK_OK;
}

static tk_status fill(foreign_launch *launch, const tk_foreign *foreign, const tk_array *inputs,
                      size_t n_inputs) {
    launch->name = tk_strdup(foreign->name ? foreign->name : "a launch");
    launch->site = foreign->site ? tk_strdup(foreign->site) : NULL;
    if (!launch->name || (foreign->site && !launch->site))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    launch->record.name = launch->name;
    launch->record.run = run_foreign;
    return tk_launch_describe(&launch->record, foreign->n_outputs, foreign->outputs, inputs,
                              n_inputs, &launch->empty);
}

tk_status tk_launch_foreign(tk_context *context, const tk_foreign *foreign, const tk_array *inputs,
                            size_t n_inputs, tk_arrays *outputs) {
    TK_NEED(foreign);
    tk_status status = context && outputs ? check(context, foreign, inputs, n_inputs)
                                          : tk_fail_null(context ? "outputs" : "context");
    foreign_launch *launch = status == TK_OK ? tk_calloc(1, sizeof *launch) : NULL;
    if (!launch) {
        if (foreign->release) foreign->release(foreign->self);
        return status != TK_OK ? status : tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    }
    atomic_init(&launch->record.ref.count, 1);
    launch->record.ref.release = release_launch;
    launch->user = *foreign;
    status = fill(launch, foreign, inputs, n_inputs);
    if (status == TK_OK) return tk_launch_node(context, &launch->record, inputs, n_inputs, outputs);
    tk_ref_release(&launch->record.ref);
    return status;
}
