/* The emulator for tiki.kernels: a kernel run on memory of Python objects, findings as
 * dictionaries.
 *
 * Pointers are objects with a writable buffer of one piece, or a read-only one behind a parameter
 * that the kernel only reads; in a pair with the number of bytes before the place pointed to. The
 * interpreter lock is away while the kernel runs. */
#include "kernel.h"
#include "tiki/emulator.h"

typedef struct run {
    Py_ssize_t count;
    tk_kargument *arguments;
    tk_kbuffer *buffers;
    Py_buffer *views; /* those in use have an obj */
} run;

static void close_run(run *r) {
    for (Py_ssize_t i = 0; r->views && i < r->count; i++)
        if (r->views[i].obj) PyBuffer_Release(&r->views[i]);
    PyMem_Free(r->arguments);
    PyMem_Free(r->buffers);
    PyMem_Free(r->views);
}

static bool open_run(run *r, Py_ssize_t count) {
    r->count = count;
    r->arguments = PyMem_Calloc((size_t)count + 1, sizeof *r->arguments);
    r->buffers = PyMem_Calloc((size_t)count + 1, sizeof *r->buffers);
    r->views = PyMem_Calloc((size_t)count + 1, sizeof *r->views);
    if (r->arguments && r->buffers && r->views) return true;
    PyErr_NoMemory();
    return false;
}

static bool take_buffer(run *r, Py_ssize_t i, PyObject *object, bool writes) {
    Py_ssize_t offset = 0;
    if (PyTuple_Check(object) && !PyArg_ParseTuple(object, "On", &object, &offset)) return false;
    if (PyObject_GetBuffer(object, &r->views[i], writes ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
        return false;
    r->buffers[i].data = r->views[i].buf;
    r->buffers[i].bytes = (size_t)r->views[i].len;
    if (offset < 0 || offset > r->views[i].len)
        return PyErr_Format(PyExc_ValueError, "byte %zd of %zd", offset, r->views[i].len), false;
    r->buffers[i].offset = (size_t)offset;
    return true;
}

/* An argument: a buffer, or the bits of a number. */
static bool take_argument(run *r, const tk_kernel *kernel, Py_ssize_t i, PyObject *object) {
    tk_kparam param;
    if (tk_kernel_param(kernel, (int)i, &param) != TK_OK)
        return PyErr_Format(PyExc_IndexError, "argument %zd", i), false;
    if (param.type.kind == TK_KT_POINTER && param.type.scalar != TK_K_TMAP)
        return take_buffer(r, i, object, (param.access & TK_KACCESS_WRITE) != 0);
    r->arguments[i].bits = PyLong_AsUnsignedLongLongMask(object);
    return !PyErr_Occurred();
}

static PyObject *finding_object(const tk_kfinding *finding) {
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:I,s:(LLL),s:i,s:z,s:I,s:K}", "kind",
                         tk_kfinding_name(finding->kind), "message", finding->message, "operation",
                         finding->operation, "file", finding->file ? finding->file : "", "line",
                         finding->line, "block", (long long)finding->block[0],
                         (long long)finding->block[1], (long long)finding->block[2], "thread",
                         finding->thread, "other_operation", finding->other_operation, "other_line",
                         finding->other_line, "count", (unsigned long long)finding->count);
}

static PyObject *finding_list(const tk_emulation *emulation) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tk_emulation_findings(emulation); i++) {
        tk_kfinding finding;
        PyObject *row =
            tk_emulation_finding(emulation, i, &finding) == TK_OK ? finding_object(&finding) : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *count_list(const tk_emulation *emulation) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tk_emulation_counts(emulation); i++) {
        tk_kcount count;
        PyObject *row =
            tk_emulation_count(emulation, i, &count) == TK_OK
                ? Py_BuildValue("{s:s,s:I,s:K,s:K,s:K,s:K}", "operation", count.operation, "line",
                                count.line, "warps", (unsigned long long)count.warps, "lanes",
                                (unsigned long long)count.lanes, "sectors",
                                (unsigned long long)count.sectors, "conflicts",
                                (unsigned long long)count.conflicts)
                : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *text_object(tkpy_state *state, const tk_emulation *emulation) {
    char *text;
    tk_status status = tk_emulation_text(emulation, &text);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *result = PyUnicode_FromString(text);
    tk_kernel_text_free(text);
    return result;
}

static PyObject *result_object(tkpy_state *state, const tk_emulation *emulation) {
    tk_ktotals totals = tk_emulation_totals(emulation);
    PyObject *findings = finding_list(emulation);
    PyObject *counts = findings ? count_list(emulation) : NULL;
    PyObject *text = counts ? text_object(state, emulation) : NULL;
    if (!text) {
        Py_XDECREF(findings);
        Py_XDECREF(counts);
        return NULL;
    }
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:K,s:K,s:K,s:K}", "findings", findings, "counts", counts, "text", text,
        "lane_operations", (unsigned long long)totals.lane_operations, "read_bytes",
        (unsigned long long)totals.read_bytes, "written_bytes",
        (unsigned long long)totals.written_bytes, "flops", (unsigned long long)totals.flops);
}

static PyObject *run_kernel(tkpy_state *state, tk_kernel *kernel, const run *r,
                            unsigned long long seed, long long resident) {
    tk_kemulate how = {.seed = seed,
                       .resident = resident,
                       .n_arguments = (size_t)r->count,
                       .arguments = r->arguments,
                       .buffers = r->buffers};
    tk_emulation *emulation = NULL;
    PyThreadState *saved = PyEval_SaveThread();
    tk_status status = tk_kernel_emulate(kernel, &how, &emulation);
    PyEval_RestoreThread(saved);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *result = result_object(state, emulation);
    tk_emulation_release(emulation);
    return result;
}

PyObject *tkpy_kernel_emulate(PyObject *self, PyObject *args) {
    PyObject *tuple, *result = NULL;
    unsigned long long seed = 0;
    long long resident = 0;
    tk_kernel *kernel = tkpy_kernel_of(self);
    if (!PyArg_ParseTuple(args, "O!|KL", &PyTuple_Type, &tuple, &seed, &resident)) return NULL;
    if (PyTuple_Size(tuple) != tk_kernel_params(kernel))
        return PyErr_Format(PyExc_TypeError, "kernel %s takes %d arguments, %zd given",
                            tk_kernel_name(kernel), tk_kernel_params(kernel), PyTuple_Size(tuple));
    run r = {0};
    bool ok = open_run(&r, PyTuple_Size(tuple));
    for (Py_ssize_t i = 0; ok && i < r.count; i++)
        ok = take_argument(&r, kernel, i, PyTuple_GetItem(tuple, i));
    if (ok) result = run_kernel(tkpy_state_of(self), kernel, &r, seed, resident);
    close_run(&r);
    return result;
}
