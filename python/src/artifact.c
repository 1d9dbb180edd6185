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
    return Py_BuildValue(
        "{s:s,s:y#,s:s,s:s,s:s,s:s,s:s,s:s,s:N,s:N}", "text", tk_artifact_text(artifact), "binary",
        binary, (Py_ssize_t)bytes, "log", tk_artifact_log(artifact), "assembler",
        tk_artifact_assembler(artifact), "arch", tk_artifact_arch(artifact), "identity",
        tk_artifact_identity(artifact), "lowered", tk_artifact_stage(artifact, TK_STAGE_LOWERED),
        "ptx", tk_artifact_stage(artifact, TK_STAGE_PTX), "report", report, "contract", contract);
}

static tk_build how_of(PyObject *args, const char **out_target) {
    const char *arch = NULL;
    int binary = 0, lines = 0, stages = 0;
    *out_target = NULL;
    (void)PyArg_ParseTuple(args, "s|zppp", out_target, &arch, &binary, &lines, &stages);
    return (tk_build){.arch = arch,
                      .emit = binary || stages ? TK_EMIT_BINARY : TK_EMIT_TEXT,
                      .lines = lines != 0,
                      .stages = stages != 0};
}

/* Whether a signal's handler raised, as that of Ctrl-C does. */
static bool interrupted(void *unused) {
    PyGILState_STATE state = PyGILState_Ensure();
    bool raised = PyErr_CheckSignals() != 0;
    (void)unused;
    PyGILState_Release(state);
    return raised;
}

PyObject *tkpy_kernel_build(PyObject *self, PyObject *args) {
    tkpy_state *state = tkpy_state_of(self);
    const char *target;
    tk_artifact *artifact = NULL;
    tk_build how = how_of(args, &target);
    if (PyErr_Occurred()) return NULL;
    tk_status status = tk_target_find(target, &how.target);
    if (status != TK_OK) return tkpy_raise(state, status);
    how.stop = interrupted;
    PyThreadState *saved = PyEval_SaveThread();
    status = tk_kernel_build(tkpy_kernel_of(self), &how, &artifact);
    PyEval_RestoreThread(saved);
    if (PyErr_Occurred()) {
        tk_artifact_release(artifact);
        return NULL;
    }
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *result = artifact_object(state, artifact);
    tk_artifact_release(artifact);
    return result;
}
