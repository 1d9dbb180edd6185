/* Plans of the kernel library for tiki.kernels.library: from descriptions of tensors to kernels and
 * what their parameters are bound to, as lists and tuples. */
#include <string.h>

#include "kernel.h"
#include "tiki/library.h"

#define MOST_TENSORS 8
#define MOST_NUMBERS 8

typedef struct planned {
    tk_library_id id;
    tk_library_tensor tensors[MOST_TENSORS];
    double numbers[MOST_NUMBERS];
    size_t n_tensors, n_numbers;
} planned;

static bool read_extents(PyObject *tuple, int rank, int64_t *out) {
    if (PyTuple_Size(tuple) != rank)
        return PyErr_Format(PyExc_ValueError, "%zd strides for %d axes", PyTuple_Size(tuple), rank),
               false;
    for (int i = 0; i < rank; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred()) return false;
    }
    return true;
}

static bool read_element(const char *word, tk_kscalar *out) {
    for (int i = 0; i < TK_KSCALAR_COUNT; i++)
        if (!strcmp(word, tk_kscalar_text((tk_kscalar)i))) {
            *out = (tk_kscalar)i;
            return true;
        }
    return PyErr_Format(PyExc_ValueError, "\"%s\" is no scalar type of kernels", word), false;
}

/* None, or (element, shape, strides, alignment). */
static bool read_tensor(PyObject *row, tk_library_tensor *out) {
    const char *element;
    PyObject *shape, *stride;
    long long align;
    *out = (tk_library_tensor){.rank = -1};
    if (row == Py_None) return true;
    if (!PyTuple_Check(row))
        return PyErr_Format(PyExc_TypeError, "%R describes no tensor", row), false;
    if (!PyArg_ParseTuple(row, "sO!O!L", &element, &PyTuple_Type, &shape, &PyTuple_Type, &stride,
                          &align))
        return false;
    if (PyTuple_Size(shape) > TK_LIBRARY_MOST_AXES)
        return PyErr_Format(PyExc_ValueError, "a tensor of %zd axes", PyTuple_Size(shape)), false;
    out->rank = (int)PyTuple_Size(shape);
    out->align = align;
    return read_element(element, &out->element) && read_extents(shape, out->rank, out->shape) &&
           read_extents(stride, out->rank, out->stride);
}

static bool read_numbers(PyObject *numbers, planned *p) {
    p->n_numbers = (size_t)PyTuple_Size(numbers);
    if (p->n_numbers > MOST_NUMBERS)
        return PyErr_Format(PyExc_ValueError, "%zu numbers", p->n_numbers), false;
    for (size_t i = 0; i < p->n_numbers; i++)
        p->numbers[i] = PyFloat_AsDouble(PyTuple_GetItem(numbers, (Py_ssize_t)i));
    return !PyErr_Occurred();
}

static bool read_tensors(PyObject *tensors, planned *p) {
    p->n_tensors = (size_t)PyTuple_Size(tensors);
    if (p->n_tensors > MOST_TENSORS)
        return PyErr_Format(PyExc_ValueError, "%zu tensors", p->n_tensors), false;
    for (size_t i = 0; i < p->n_tensors; i++)
        if (!read_tensor(PyTuple_GetItem(tensors, (Py_ssize_t)i), &p->tensors[i])) return false;
    return true;
}

static PyObject *argument_row(const tk_library_argument *argument) {
    static const char *const kinds[] = {[TK_LIBRARY_TENSOR] = "tensor",
                                        [TK_LIBRARY_SCRATCH] = "scratch",
                                        [TK_LIBRARY_NUMBER] = "number"};
    unsigned long long value =
        argument->kind == TK_LIBRARY_NUMBER ? argument->bits : (unsigned long long)argument->index;
    return Py_BuildValue("(sK)", kinds[argument->kind], value);
}

static PyObject *launch_row(tkpy_state *state, const tk_library_launch *launch) {
    PyObject *arguments = PyList_New(0);
    for (size_t i = 0; arguments && i < launch->n_arguments; i++) {
        PyObject *row = argument_row(&launch->arguments[i]);
        if (!row || PyList_Append(arguments, row) < 0) Py_CLEAR(arguments);
        Py_XDECREF(row);
    }
    PyObject *kernel =
        arguments ? tkpy_kernel_wrap(state, tk_kernel_retain((tk_kernel *)launch->kernel)) : NULL;
    if (kernel) return Py_BuildValue("(NN)", kernel, arguments);
    Py_XDECREF(arguments);
    return NULL;
}

static PyObject *launch_list(tkpy_state *state, const tk_library_plan *plan) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tk_library_plan_launches(plan); i++) {
        tk_library_launch launch;
        tk_status status = tk_library_plan_launch(plan, i, &launch);
        PyObject *row = status == TK_OK ? launch_row(state, &launch) : tkpy_raise(state, status);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *scratch_list(const tk_library_plan *plan) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tk_library_plan_scratches(plan); i++) {
        PyObject *bytes = PyLong_FromLongLong(tk_library_plan_scratch_bytes(plan, i));
        if (!bytes || PyList_Append(list, bytes) < 0) Py_CLEAR(list);
        Py_XDECREF(bytes);
    }
    return list;
}

static tk_status make_schedule(const planned *p, const char *text, tk_library_schedule *out) {
    tk_status status = tk_library_schedule_default(p->id, p->n_tensors, p->tensors, out);
    return status == TK_OK ? tk_library_schedule_read(p->id, text, out) : status;
}

/* plan(name, tensors, numbers, schedule or None) -> ([(kernel, arguments)], [bytes]) */
static PyObject *make_plan(PyObject *module, PyObject *args) {
    tkpy_state *state = tkpy_module_state(module);
    const char *name, *text;
    PyObject *tensors, *numbers;
    planned p = {0};
    tk_library_schedule schedule;
    tk_library_plan *plan = NULL;
    if (!PyArg_ParseTuple(args, "sO!O!z", &name, &PyTuple_Type, &tensors, &PyTuple_Type, &numbers,
                          &text))
        return NULL;
    tk_status status = tk_library_find(name, &p.id);
    if (status == TK_OK && (!read_tensors(tensors, &p) || !read_numbers(numbers, &p))) return NULL;
    if (status == TK_OK && text) status = make_schedule(&p, text, &schedule);
    if (status == TK_OK)
        status = tk_library_plan_create(p.id, p.n_tensors, p.tensors, p.n_numbers, p.numbers,
                                        text ? &schedule : NULL, &plan);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *launches = launch_list(state, plan), *scratch = launches ? scratch_list(plan) : NULL;
    tk_library_plan_release(plan);
    if (scratch) return Py_BuildValue("(NN)", launches, scratch);
    Py_XDECREF(launches);
    return NULL;
}

PyMethodDef tkpy_plan_functions[] = {
    {"plan", make_plan, METH_VARARGS, "plan(name, tensors, numbers, schedule): launches, scratch."},
    {NULL, NULL, 0, NULL}};
