/* See run.h: the emulator's side. */
#include "compile/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tiki/emulator.h"

const char *tk_run_text(const tk_run *run, char *text, size_t bytes) {
    const char *site = run->site && run->site[0] ? run->site : NULL;
    snprintf(text, bytes, "kernel %s%s%s", tk_kernel_name(run->kernel), site ? " launched at " : "",
             site ? site : "");
    return text;
}

static tk_status report(const tk_run *run, const tk_emulation *emulation) {
    size_t count = tk_emulation_findings(emulation);
    tk_kfinding finding;
    char what[200], more[48] = "";
    if (count == 0) return TK_OK;
    TK_TRY(tk_emulation_finding(emulation, 0, &finding));
    if (count > 1) snprintf(more, sizeof more, ", and %zu findings more", count - 1);
    return tk_fail(TK_DEVICE_ERROR, "%s: %s: %s (%s, line %u)%s",
                   tk_run_text(run, what, sizeof what), tk_kfinding_name(finding.kind),
                   finding.message, finding.operation, finding.line, more);
}

static tk_status emulate(const tk_run *run, tk_kargument *arguments, tk_kbuffer *buffers,
                         bool *unset) {
    for (size_t i = 0; i < run->n_arguments; i++) {
        const tk_run_argument *from = &run->arguments[i];
        arguments[i].bits = from->bits;
        if (!from->data) continue;
        char *data = (char *)from->data - from->before;
        if (from->unset) memset(data, 0xff, from->bytes);
        buffers[i] = (tk_kbuffer){data, from->bytes, from->before};
        unset[i] = from->unset;
    }
    tk_kemulate how = {.n_arguments = run->n_arguments,
                       .arguments = arguments,
                       .buffers = buffers,
                       .unset = unset};
    tk_emulation *emulation;
    TK_TRY(tk_kernel_emulate(run->kernel, &how, &emulation));
    tk_status status = report(run, emulation);
    tk_emulation_release(emulation);
    return status;
}

static tk_status run_on_emulator(const tk_run *run) {
    char what[200];
    assert(!run->facts);
    if (run->target != TK_TARGET_PTX)
        return tk_fail(TK_UNSUPPORTED,
                       "%s: target %s builds for GPUs, the emulator runs kernels as "
                       "they are",
                       tk_run_text(run, what, sizeof what), tk_target_name(run->target));
    tk_kargument *arguments = tk_calloc(run->n_arguments + 1, sizeof *arguments);
    tk_kbuffer *buffers = tk_calloc(run->n_arguments + 1, sizeof *buffers);
    bool *unset = tk_calloc(run->n_arguments + 1, sizeof *unset);
    tk_status status = TK_OK;
    if (!arguments || !buffers || !unset)
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    if (status == TK_OK) status = emulate(run, arguments, buffers, unset);
    tk_free(arguments);
    tk_free(buffers);
    tk_free(unset);
    return status;
}

tk_status tk_run_kernel(tk_device *device, tk_queue *queue, const tk_run *run) {
    return device->driver == &tk_driver_cuda ? tk_run_on_cuda(device, queue, run)
                                             : run_on_emulator(run);
}
