/* Devices and the library's kernels: what tiki._device and tiki.kernels call; schedules cross as
 * text. Launches of other kernels are in launch.c. */
#include <string.h>

#include "kernel.h"
#include "tiki/gpu.h"
#include "tiki/kernel_op.h"
#include "tiki/library_op.h"

/* ---- devices ---- */

/* stream(name) -> the first stream of a device */
static PyObject *device_stream(PyObject *module, PyObject *args) {
    const char *name;
    tk_stream_id stream;
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTuple(args, "s", &name)) return NULL;
    tk_status status = tk_device_stream(context, name, &stream);
    if (status == TK_NOT_FOUND) { /* no key of anything: a device that is not there */
        tkpy_raise_as(PyExc_NotImplementedError);
        return NULL;
    }
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    return PyLong_FromUnsignedLong(stream);
}

/* name_of(stream) -> "cpu:0" */
static PyObject *device_of_stream(PyObject *module, PyObject *args) {
    unsigned long stream;
    tk_context *context = tkpy_context();
    (void)module;
    if (!context || !PyArg_ParseTuple(args, "k", &stream)) return NULL;
    const char *name = tk_device_name(tk_stream_device_of(context, (tk_stream_id)stream));
    if (name) return PyUnicode_FromString(name);
    PyErr_Format(PyExc_ValueError, "%lu is no stream", stream);
    return NULL;
}

/* name(array) -> "cpu:0" */
static PyObject *array_device(PyObject *module, PyObject *args) {
    PyObject *array;
    (void)module;
    if (!PyArg_ParseTuple(args, "O", &array)) return NULL;
    if (!tkpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "expected an array");
    return PyUnicode_FromString(tk_device_name(tk_array_device(tkpy_handle(array))));
}

/* move(array, stream) */
static PyObject *move_array(PyObject *module, PyObject *args) {
    PyObject *array;
    unsigned long stream;
    if (!PyArg_ParseTuple(args, "Ok", &array, &stream)) return NULL;
    if (!tkpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "expected an array");
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_array moved = tk_to_stream(tkpy_handle(array), (tk_stream_id)stream);
    PyObject *box = tkpy_box(tkpy_module_state(module), moved);
    tk_scope_close(scope);
    return box;
}

/* replace(box, array): the box holds what the array holds */
static PyObject *replace_array(PyObject *module, PyObject *args) {
    PyObject *box, *array;
    if (!PyArg_ParseTuple(args, "OO", &box, &array)) return NULL;
    if (!tkpy_is_array(box) || !tkpy_is_array(array))
        return PyErr_Format(PyExc_TypeError, "expected two arrays");
    if (!tkpy_rebox(tkpy_module_state(module), box, tkpy_handle(array))) return NULL;
    Py_RETURN_NONE;
}

/* gpus() -> (count, reason) */
static PyObject *count_gpus(PyObject *module, PyObject *unused) {
    int count = 0;
    (void)module, (void)unused;
    bool there = tk_gpu_count(&count) == TK_OK;
    return Py_BuildValue("(is)", there ? count : 0, there ? "" : tk_error_message());
}

/* gpu_info(index) */
static PyObject *gpu_info(PyObject *module, PyObject *args) {
    int index;
    tk_gpu_info info;
    if (!PyArg_ParseTuple(args, "i", &index)) return NULL;
    tk_status status = tk_gpu_describe(index, &info);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    return Py_BuildValue("{s:s,s:s,s:K,s:i,s:i}", "device_name", info.name, "architecture", "cuda",
                         "memory_size", (unsigned long long)info.memory, "multiprocessors",
                         info.multiprocessors, "compute_capability", 10 * info.major + info.minor);
}

/* ---- the library ---- */

typedef struct library_call {
    tkpy_state *state;
    tk_library_id id;
    tk_array operands[2];
    size_t count;
    tk_library_schedule schedule;
    bool has_schedule;
} library_call;

static bool read_operands(library_call *c, PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple) && i < 2; i++) {
        PyObject *array = PyTuple_GetItem(tuple, i);
        if (array == Py_None && i > 0) continue;
        if (!tkpy_is_array(array))
            return PyErr_Format(PyExc_TypeError, "operand %zd is no array", i), false;
        c->operands[c->count++] = tkpy_handle(array);
    }
    if (c->count) return true;
    return PyErr_Format(PyExc_TypeError, "a kernel of the library needs an operand"), false;
}

/* The default with the fields of `text`, where there are any. */
static bool read_schedule(library_call *c, const char *text) {
    tk_status status = TK_OK;
    c->has_schedule = text != NULL;
    if (text) status = tk_library_schedule_for(c->id, c->operands, c->count, &c->schedule);
    if (text && status == TK_OK) status = tk_library_schedule_read(c->id, text, &c->schedule);
    if (status != TK_OK) tkpy_raise(c->state, status);
    return status == TK_OK;
}

static bool open_call(library_call *c, PyObject *module, const char *name, PyObject *operands) {
    *c = (library_call){.state = tkpy_module_state(module)};
    if (!tkpy_context()) return false;
    tk_status status = tk_library_find(name, &c->id);
    if (status != TK_OK) return tkpy_raise(c->state, status), false;
    return read_operands(c, operands);
}

static tk_array call_library(const library_call *c, double number) {
    const tk_library_schedule *schedule = c->has_schedule ? &c->schedule : NULL;
    tk_array first = c->operands[0], second = c->count > 1 ? c->operands[1] : TK_NO_ARRAY;
    switch (c->id) {
    case TK_LIBRARY_RMS_NORM:
        return tk_kernel_rms_norm(first, second, number, schedule);
    case TK_LIBRARY_SOFTMAX:
        return tk_kernel_softmax(first, schedule);
    case TK_LIBRARY_TRANSPOSE:
        return tk_kernel_transpose(first, schedule);
    case TK_LIBRARY_COLUMN_SUM:
        return tk_kernel_column_sum(first, schedule);
    case TK_LIBRARY_GEMM:
        return tk_kernel_matmul(first, second, schedule);
    case TK_LIBRARY_HOPPER_GEMM:
        return tk_kernel_hopper_matmul(first, second, schedule);
    default:
        return tk_error_array(tkpy_context(), tk_error_set(TK_UNSUPPORTED, "kernel %s is no op",
                                                           tk_library_name(c->id)));
    }
}

/* library(name, operands, number, schedule or None) */
static PyObject *library(PyObject *module, PyObject *args) {
    const char *name, *schedule;
    PyObject *operands;
    double number;
    library_call c;
    if (!PyArg_ParseTuple(args, "sO!dz", &name, &PyTuple_Type, &operands, &number, &schedule) ||
        !open_call(&c, module, name, operands) || !read_schedule(&c, schedule))
        return NULL;
    tk_scope scope = tk_scope_open(tkpy_context());
    PyObject *box = tkpy_box(c.state, call_library(&c, number));
    tk_scope_close(scope);
    return box;
}

/* schedule(name, operands) -> text */
static PyObject *schedule_of(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *operands;
    library_call c;
    char *text;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &operands) ||
        !open_call(&c, module, name, operands) || !read_schedule(&c, ""))
        return NULL;
    tk_status status = tk_library_schedule_print(c.id, &c.schedule, &text);
    if (status != TK_OK) return tkpy_raise(c.state, status);
    PyObject *result = PyUnicode_FromString(text);
    tk_kernel_text_free(text);
    return result;
}

PyMethodDef tkpy_device_functions[] = {
    {"stream", device_stream, METH_VARARGS, "stream(name): the first stream of a device."},
    {"name_of", device_of_stream, METH_VARARGS, "name_of(stream): the name of its device."},
    {"name", array_device, METH_VARARGS, "name(array): the name of its device."},
    {"move", move_array, METH_VARARGS, "move(array, stream): its values on that device."},
    {"replace", replace_array, METH_VARARGS, "replace(box, array): it holds that array's value."},
    {"gpus", count_gpus, METH_NOARGS, "gpus(): how many there are, and why there is none."},
    {"gpu_info", gpu_info, METH_VARARGS, "gpu_info(index): what a GPU is."},
    {"launch", (PyCFunction)(void (*)(void))tkpy_launch, METH_FASTCALL | METH_KEYWORDS,
     "launch(kernel, /, *arguments, target=None)\n--\n\n"
     "Launches a kernel on the device of its arrays: one argument a parameter, an array, a number "
     "or an `output`.\n\nGives the outputs, one alone or a tuple. Lazy; it has no derivative by "
     "itself: see `kernel_op`. `target` is who builds it for a GPU, \"ptx\" or \"cute\"; one "
     "that is named never falls back to the other."},
    {"launch_at", (PyCFunction)(void (*)(void))tkpy_launch_at, METH_FASTCALL,
     "launch_at(place, kernel, /, *arguments): a launch that is written elsewhere."},
    {"output", (PyCFunction)(void (*)(void))tkpy_output, METH_VARARGS | METH_KEYWORDS,
     "output(shape=None, dtype=None, *, in_place=None)\n--\n\n"
     "An array that a launch writes, at the place of its parameter.\n\n`in_place=x`: it begins as "
     "x, whose memory the kernel works on where nobody else needs it, else on a copy. x never "
     "changes."},
    {"target", tkpy_target, METH_VARARGS,
     "target(name): builds this thread's launches from now on."},
    {"foreign", tkpy_foreign, METH_VARARGS, "foreign(function, name, inputs, outputs, site)."},
    {"library", library, METH_VARARGS, "library(name, operands, number, schedule)."},
    {"schedule", schedule_of, METH_VARARGS, "schedule(name, operands): the default as text."},
    {NULL, NULL, 0, NULL}};
