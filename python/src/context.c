/* The process's context, exceptions, and waiting.
 *
 * One context a process: MLX has no notion of several, and operands of two could not meet. It is
 * made by the first use, not by the import, which keeps the import cheap and forked children clean.
 */
#include <pthread.h>
#include <string.h>

#include "module.h"

static tk_context *the_context; /* written under the interpreter lock */
static bool is_finalizing;
static bool is_forked; /* the context is the parent process's, and nothing works in this one */

static void note_fork(void) { is_forked = true; }

/* OpenBLAS from its Python package where that is installed, otherwise the system's. */
static void choose_blas(void) {
    PyObject *module = PyImport_ImportModule("tiki._blas");
    PyObject *path = module ? PyObject_CallMethod(module, "library", NULL) : NULL;
    const char *text = path && path != Py_None ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
    if (text && tk_cpu_set_blas(text, "scipy_") != TK_OK)
        PyErr_WarnEx(PyExc_RuntimeWarning, tk_error_message(), 1);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(module);
    Py_XDECREF(path);
    Py_XDECREF(module);
}

void tkpy_raise_as(PyObject *exception) {
    const char *text = tk_error_message();
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (!message) return;
    PyErr_SetObject(exception, message);
    Py_DECREF(message);
}

tk_context *tkpy_context(void) {
    if (the_context) return the_context;
    choose_blas();
    if (the_context) return the_context; /* another thread, while Python code ran */
    if (tk_context_create(NULL, &the_context) == TK_OK) {
        pthread_atfork(NULL, NULL, note_fork);
        return the_context;
    }
    the_context = NULL;
    tkpy_raise_as(PyExc_RuntimeError);
    return NULL;
}

static PyObject *exception_of(tkpy_state *state, tk_status status) {
    if (is_forked) return PyExc_RuntimeError;
    switch (status) {
    case TK_INVALID_ARGUMENT:
    case TK_SHAPE_ERROR:
    case TK_FORMAT_ERROR:
        return PyExc_ValueError;
    case TK_DTYPE_ERROR:
        return state->dtype_error;
    case TK_AXIS_ERROR:
        return state->axis_error;
    case TK_INDEX_ERROR:
        return PyExc_IndexError;
    case TK_OVERFLOW:
        return PyExc_OverflowError;
    case TK_OUT_OF_MEMORY:
        return PyExc_MemoryError;
    case TK_UNSUPPORTED:
        return PyExc_NotImplementedError;
    case TK_IO_ERROR:
        return state->file_error;
    case TK_INTERRUPTED:
        return PyExc_KeyboardInterrupt;
    case TK_NAN_TRAPPED:
        return PyExc_FloatingPointError;
    case TK_NOT_FOUND:
        return PyExc_KeyError;
    default:
        return PyExc_RuntimeError;
    }
}

PyObject *tkpy_raise(tkpy_state *state, tk_status status) {
    if (!PyErr_Occurred()) tkpy_raise_as(exception_of(state, status));
    return NULL;
}

/* ---- waiting ---- */

/* True gives the wait up: a signal handler raised, as Ctrl-C does. */
static bool poll_signals(void *arg) {
    PyThreadState **saved = arg;
    PyEval_RestoreThread(*saved);
    bool raised = PyErr_CheckSignals() != 0;
    *saved = PyEval_SaveThread();
    return raised;
}

/* The handles are kept while the lock is away: another thread may replace what is in a box. */
static bool wait_for(tkpy_state *state, tk_array *kept, size_t count) {
    PyThreadState *saved = PyEval_SaveThread();
    tk_wait wait = {.poll = poll_signals, .arg = &saved};
    tk_status status = tk_eval_wait(kept, count, &wait);
    PyEval_RestoreThread(saved);
    if (status != TK_OK) tkpy_raise(state, status);
    return status == TK_OK && !PyErr_Occurred();
}

bool tkpy_eval(tkpy_state *state, const tk_array *arrays, size_t count) {
    if (count == 0) return true;
    tk_array *kept = PyMem_Malloc(count * sizeof *kept);
    if (!kept) return PyErr_NoMemory(), false;
    tk_scope scope = tk_scope_open(tk_array_context(arrays[0]));
    for (size_t i = 0; i < count; i++) kept[i] = tk_keep(arrays[i]);
    bool ok = wait_for(state, kept, count);
    for (size_t i = 0; i < count; i++) tk_release(kept[i]);
    tk_scope_close(scope);
    PyMem_Free(kept);
    return ok;
}

bool tkpy_eval_one(tkpy_state *state, tk_array array) {
    tk_status status = tk_array_status(array);
    if (status != TK_OK) return tkpy_raise(state, status), false;
    return tk_array_is_evaluated(array) || tkpy_eval(state, &array, 1);
}

bool tkpy_is_running(void) { return !is_finalizing; }

void tkpy_release_object(void *object) {
    if (is_finalizing) return;
    PyGILState_STATE held = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(held);
}

/* ---- functions ---- */

/* Called at exit: what still runs must not outlive the interpreter. */
static PyObject *finish(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    if (the_context) {
        PyThreadState *saved = PyEval_SaveThread();
        tk_synchronize(the_context);
        PyEval_RestoreThread(saved);
    }
    is_finalizing = true;
    Py_RETURN_NONE;
}

static PyObject *synchronize(PyObject *module, PyObject *unused) {
    (void)unused;
    tk_context *context = tkpy_context();
    if (!context) return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    tk_status status = tk_synchronize(context);
    PyEval_RestoreThread(saved);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    Py_RETURN_NONE;
}

static PyObject *new_stream(PyObject *module, PyObject *unused) {
    (void)unused;
    tk_context *context = tkpy_context();
    tk_stream_id stream;
    if (!context) return NULL;
    tk_status status = tk_stream_new(context, &stream);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    return PyLong_FromUnsignedLong(stream);
}

static PyObject *use_stream(PyObject *module, PyObject *arg) {
    (void)module;
    tk_context *context = tkpy_context();
    unsigned long stream = PyLong_AsUnsignedLong(arg);
    if (!context || PyErr_Occurred()) return NULL;
    return PyLong_FromUnsignedLong(tk_stream_use(context, (tk_stream_id)stream));
}

static PyObject *memory_info(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    tk_context *context = tkpy_context();
    if (!context) return NULL;
    tk_memory_info info = tk_device_memory(tk_context_device(context));
    return Py_BuildValue("{sKsKsKsKsK}", "active", (unsigned long long)info.active, "peak",
                         (unsigned long long)info.peak, "cache", (unsigned long long)info.cache,
                         "memory_limit", (unsigned long long)info.memory_limit, "cache_limit",
                         (unsigned long long)info.cache_limit);
}

static PyObject *memory_set(PyObject *module, PyObject *args) {
    (void)module;
    const char *what;
    unsigned long long bytes = 0;
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTuple(args, "s|K", &what, &bytes)) return NULL;
    tk_device *device = tk_context_device(context);
    if (!strcmp(what, "memory_limit"))
        tk_device_set_memory_limit(device, (size_t)bytes);
    else if (!strcmp(what, "cache_limit"))
        tk_device_set_cache_limit(device, (size_t)bytes);
    else if (!strcmp(what, "reset_peak"))
        tk_device_reset_peak(device);
    else if (!strcmp(what, "clear_cache"))
        tk_device_clear_cache(device);
    Py_RETURN_NONE;
}

static PyObject *cpu_info(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return Py_BuildValue("{sssi}", "variant", tk_cpu_variant(), "threads", tk_threads_count());
}

static PyObject *trace_start(PyObject *module, PyObject *args) {
    const char *path = NULL;
    if (!PyArg_ParseTuple(args, "|z", &path)) return NULL;
    tk_status status = tk_trace_start(path);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    Py_RETURN_NONE;
}

static PyObject *trace_stop(PyObject *module, PyObject *unused) {
    (void)unused;
    tk_status status = tk_trace_stop();
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    return PyUnicode_FromString(tk_trace_text());
}

static PyObject *print_digits(PyObject *module, PyObject *args) {
    tkpy_state *state = tkpy_module_state(module);
    int before = state->print_digits, digits = before;
    if (!PyArg_ParseTuple(args, "|i", &digits)) return NULL;
    state->print_digits = digits < 0 ? -1 : digits;
    return PyLong_FromLong(before);
}

PyMethodDef tkpy_context_functions[] = {
    {"_finish", finish, METH_NOARGS, "Wait for everything, before the interpreter ends."},
    {"_synchronize", synchronize, METH_NOARGS, "Wait for everything that was started."},
    {"_new_stream", new_stream, METH_NOARGS, "The number of a new stream."},
    {"_use_stream", use_stream, METH_O, "Make a stream this thread's; gives the one before."},
    {"_memory_info", memory_info, METH_NOARGS, "Memory counters in bytes."},
    {"_memory_set", memory_set, METH_VARARGS, "Set a limit or reset a counter."},
    {"_print_digits", print_digits, METH_VARARGS,
     "Digits of printed floats after the point; sets them, gives those before."},
    {"_cpu_info", cpu_info, METH_NOARGS, "Instruction set and number of threads."},
    {"_trace_start", trace_start, METH_VARARGS, "Start recording what runs when."},
    {"_trace_stop", trace_stop, METH_NOARGS, "End recording; the JSON text."},
    {NULL, NULL, 0, NULL}};
