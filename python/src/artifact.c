/* Artifacts for tiki.kernels: a kernel built by a target, as a dictionary.
 *
 * The interpreter lock is away while a target builds, which may start an assembler. Rejected: an
 * object around tk_artifact. What is in it are texts, bytes and numbers, which Python has. */
#include "kernel.h"
#include "tiki/target.h"

static PyObject *report_object(tkpy_state *state, const tk_artifact *artifact) {
    tk_report report;
    tk_status status = tk_artifact_report(artifact, &report);
    if (status != TK_OK) return tkpy_raise(state, status);
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "registers", (long long)report.registers, "spill_stores",
        (long long)report.spill_stores, "spill_loads", (long long)report.spill_loads, "stack_bytes",
        (long long)report.stack_bytes, "barriers", (long long)report.barriers, "shared_bytes",
        (long long)report.shared_bytes, "blocks_of_an_sm", (long long)report.blocks_of_an_sm);
}

static PyObject *contract_object(tkpy_state *state, const tk_kernel *kernel) {
    char *text;
    tk_status status = tk_kernel_contract_json(kernel, &text);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *result = PyUnicode_FromString(text);
    tk_kernel_text_free(text);
    return result;
}

static PyObject *artifact_object(tkpy_state *state, const tk_artifact *artifact) {
    size_t bytes = 0;
    const char *binary = tk_artifact_binary(artifact, &bytes);
    PyObject *report = report_object(state, artifact);
    PyObject *contract = report ? contract_object(state, tk_artifact_kernel(artifact)) : NULL;
    if (!contract) {
        Py_XDECREF(report);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:y#,s:s,s:s,s:s,s:s,s:N,s:N}", "text", tk_artifact_text(artifact),
                         "binary", binary, (Py_ssize_t)bytes, "log", tk_artifact_log(artifact),
                         "assembler", tk_artifact_assembler(artifact), "arch",
                         tk_artifact_arch(artifact), "identity", tk_artifact_identity(artifact),
                         "report", report, "contract", contract);
}

PyObject *tkpy_kernel_build(PyObject *self, PyObject *args) {
    tkpy_state *state = tkpy_state_of(self);
    const char *target;
    int binary = 0, lines = 0;
    tk_build how = {0};
    tk_artifact *artifact = NULL;
    if (!PyArg_ParseTuple(args, "s|zpp", &target, &how.arch, &binary, &lines)) return NULL;
    how.emit = binary ? TK_EMIT_BINARY : TK_EMIT_TEXT;
    how.lines = lines != 0;
    tk_status status = tk_target_find(target, &how.target);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyThreadState *saved = PyEval_SaveThread();
    status = tk_kernel_build(tkpy_kernel_of(self), &how, &artifact);
    PyEval_RestoreThread(saved);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *result = artifact_object(state, artifact);
    tk_artifact_release(artifact);
    return result;
}
