/* Kernels for tiki.kernels: the builder, the finished kernel, and the operation table as data.
 *
 * Values of a builder cross the border as small integers, places in a list that the builder object
 * keeps: they cannot outlive it and cannot belong to another one unnoticed. Rejected: an object for
 * each value, which a front end that keeps its own tape would make for nothing. Types cross as
 * tuples of words, ("shared", "f16", "(8,8):(8,1)"), operations and attributes by number. */
#include "kernel.h"

#include <string.h>

#include "tiki/kernel.h"
#include "tiki/passes.h"

typedef struct kernel_object {
    PyObject_HEAD tk_kernel *kernel;
} kernel_object;

typedef struct builder_object {
    PyObject_HEAD tk_kernel_builder *builder;
    tk_kvalue **values;
    Py_ssize_t count, capacity;
} builder_object;

/* ---- words ---- */

static int scalar_of(const char *word) {
    for (int i = 0; i < TK_KSCALAR_COUNT; i++)
        if (!strcmp(word, tk_kscalar_text((tk_kscalar)i))) return i;
    PyErr_Format(PyExc_ValueError, "\"%s\" is no scalar type of kernels", word);
    return -1;
}

static int space_of(const char *word) {
    for (int i = 0; i < TK_KSPACE_COUNT; i++)
        if (!strcmp(word, tk_kspace_text((tk_kspace)i))) return i;
    PyErr_Format(PyExc_ValueError, "\"%s\" is no space of kernels", word);
    return -1;
}

/* ---- kernels ---- */

tk_kernel *tkpy_kernel_of(PyObject *object) { return ((kernel_object *)object)->kernel; }

PyObject *tkpy_kernel_wrap(tkpy_state *state, tk_kernel *kernel) {
    kernel_object *self = PyObject_New(kernel_object, state->kernel);
    if (!self) {
        tk_kernel_release(kernel);
        return NULL;
    }
    self->kernel = kernel;
    return (PyObject *)self;
}

static void kernel_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tk_kernel_release(tkpy_kernel_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *kernel_print(PyObject *self, int flags) {
    char *text;
    tk_status status = tk_kernel_print(tkpy_kernel_of(self), flags, &text);
    if (status != TK_OK) return tkpy_raise(tkpy_state_of(self), status);
    PyObject *result = PyUnicode_FromString(text);
    tk_kernel_text_free(text);
    return result;
}

static PyObject *kernel_text(PyObject *self, void *unused) {
    (void)unused;
    return kernel_print(self, 0);
}

static PyObject *kernel_lines(PyObject *self, void *unused) {
    (void)unused;
    return kernel_print(self, TK_KERNEL_LINES);
}

static PyObject *kernel_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tk_kernel_name(tkpy_kernel_of(self)));
}

static PyObject *kernel_form(PyObject *self, void *unused) {
    static const char *const words[] = {"tensor", "view", "thread"};
    (void)unused;
    return PyUnicode_FromString(words[tk_kernel_form(tkpy_kernel_of(self))]);
}

static PyObject *param_object(const tk_kparam *param) {
    static const char *const access[] = {"", "read", "write", "read_write"};
    bool pointer = param->type.kind == TK_KT_POINTER;
    return Py_BuildValue("(sssL)", param->name, pointer ? access[param->access] : "",
                         tk_kscalar_text((tk_kscalar)param->type.scalar),
                         (long long)(pointer ? param->align : 0));
}

static PyObject *kernel_params(PyObject *self, void *unused) {
    const tk_kernel *kernel = tkpy_kernel_of(self);
    PyObject *list = PyList_New(0);
    (void)unused;
    for (int i = 0; list && i < tk_kernel_params(kernel); i++) {
        tk_kparam param;
        PyObject *row = tk_kernel_param(kernel, i, &param) == TK_OK ? param_object(&param) : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *kernel_verify(PyObject *self, PyObject *unused) {
    tk_status status = tk_kernel_verify(tkpy_kernel_of(self));
    (void)unused;
    if (status != TK_OK) return tkpy_raise(tkpy_state_of(self), status);
    Py_RETURN_NONE;
}

static PyObject *triple(const int64_t *extents) {
    return Py_BuildValue("(LLL)", (long long)extents[0], (long long)extents[1],
                         (long long)extents[2]);
}

static PyObject *launch_object(const tk_klaunch *launch) {
    return Py_BuildValue("{s:N,s:N,s:N,s:L}", "grid", triple(launch->grid), "cluster",
                         triple(launch->cluster), "block", triple(launch->block), "dynamic_shared",
                         (long long)launch->dynamic_shared);
}

bool tkpy_kernel_arguments(PyObject *tuple, tk_kargument *out_arguments) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        out_arguments[i].bits = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred()) return false;
    }
    return true;
}

static PyObject *kernel_launch(PyObject *self, PyObject *args) {
    PyObject *bits;
    tk_klaunch launch;
    tk_kdevice device = {.sms = 132, .shared_bytes = 232448, .threads = 2048};
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &bits)) return NULL;
    Py_ssize_t count = PyTuple_Size(bits);
    tk_kargument *arguments = PyMem_Calloc((size_t)count + 1, sizeof *arguments);
    if (!arguments) return PyErr_NoMemory();
    PyObject *result = NULL;
    if (tkpy_kernel_arguments(bits, arguments)) {
        tk_status status =
            tk_kernel_launch(tkpy_kernel_of(self), &device, (size_t)count, arguments, &launch);
        result = status == TK_OK ? launch_object(&launch) : tkpy_raise(tkpy_state_of(self), status);
    }
    PyMem_Free(arguments);
    return result;
}

static PyObject *kernel_lower(PyObject *self, PyObject *args) {
    static const char *const words[] = {"tensor", "view", "thread"};
    const char *word = "thread";
    int optimise = 0, fuse = 0;
    tk_kernel *lowered;
    if (!PyArg_ParseTuple(args, "|spp", &word, &optimise, &fuse)) return NULL;
    for (int form = 0; form < 3; form++) {
        if (strcmp(word, words[form])) continue;
        int flags = (optimise ? TK_KLOWER_OPTIMISE : 0) | (fuse ? TK_KLOWER_FUSE : 0);
        tk_status status = tk_kernel_lower(tkpy_kernel_of(self), (tk_kform)form, flags, &lowered);
        if (status != TK_OK) return tkpy_raise(tkpy_state_of(self), status);
        return tkpy_kernel_wrap(tkpy_state_of(self), lowered);
    }
    return PyErr_Format(PyExc_ValueError,
                        "form is \"%s\", expected \"tensor\", \"view\" or \"thread\"", word);
}

static PyObject *kernel_compare(PyObject *self, PyObject *other, int op) {
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(self) != Py_TYPE(other)) Py_RETURN_NOTIMPLEMENTED;
    bool equal = tk_kernel_equal(tkpy_kernel_of(self), tkpy_kernel_of(other));
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static PyObject *kernel_repr(PyObject *self) {
    return PyUnicode_FromFormat("<kernel %s>", tk_kernel_name(tkpy_kernel_of(self)));
}

static PyGetSetDef kernel_properties[] = {
    {"text", kernel_text, NULL, "The kernel as text, which parse() reads back.", NULL},
    {"text_with_lines", kernel_lines, NULL, "The text, with the lines operations come from.", NULL},
    {"name", kernel_name, NULL, "Its name.", NULL},
    {"form", kernel_form, NULL, "tensor, view or thread.", NULL},
    {"params", kernel_params, NULL, "(name, access, element type, alignment) of each parameter.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef kernel_methods[] = {
    {"verify", kernel_verify, METH_NOARGS, "Raises unless the kernel is well formed."},
    {"launch", kernel_launch, METH_VARARGS,
     "Grid, cluster, block and dynamic shared memory for the bits of arguments."},
    {"emulate", tkpy_kernel_emulate, METH_VARARGS,
     "emulate(arguments, seed=0, resident=0): findings, counts and totals of a run on the CPU."},
    {"lower", kernel_lower, METH_VARARGS,
     "lower(form=\"thread\", optimise=False, fuse=False): the kernel in a form, by the passes."},
    {"build", tkpy_kernel_build, METH_VARARGS,
     "build(target, arch=None, binary=False, lines=False, stages=False): the artifact as a "
     "dictionary."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot kernel_slots[] = {{Py_tp_dealloc, kernel_dealloc},
                                     {Py_tp_repr, kernel_repr},
                                     {Py_tp_richcompare, kernel_compare},
                                     {Py_tp_hash, PyObject_HashNotImplemented},
                                     {Py_tp_getset, kernel_properties},
                                     {Py_tp_methods, kernel_methods},
                                     {0, NULL}};

PyType_Spec tkpy_kernel_spec = {"tiki._core.Kernel", sizeof(kernel_object), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                kernel_slots};

/* ---- builders: values and types ---- */

static tk_kernel_builder *builder_of(PyObject *self) { return ((builder_object *)self)->builder; }

/* None, or NULL with the exception of the builder's error. */
static PyObject *none_or_error(PyObject *self) {
    tk_status status = tk_kernel_builder_status(builder_of(self));
    if (status != TK_OK) return tkpy_raise(tkpy_state_of(self), status);
    Py_RETURN_NONE;
}

static PyObject *keep_value(builder_object *self, tk_kvalue *value) {
    if (self->count == self->capacity) {
        Py_ssize_t capacity = self->capacity ? 2 * self->capacity : 256;
        tk_kvalue **values = PyMem_Realloc(self->values, (size_t)capacity * sizeof *values);
        if (!values) return PyErr_NoMemory();
        self->values = values;
        self->capacity = capacity;
    }
    self->values[self->count] = value;
    return PyLong_FromSsize_t(self->count++);
}

/* The number of a new value, None for an operation without one, or the builder's error. */
static PyObject *value_or_error(PyObject *self, tk_kvalue *value) {
    return value ? keep_value((builder_object *)self, value) : none_or_error(self);
}

static bool value_at(builder_object *self, PyObject *number, tk_kvalue **out) {
    *out = NULL;
    if (number == Py_None) return true;
    Py_ssize_t place = PyLong_AsSsize_t(number);
    if (place == -1 && PyErr_Occurred()) return false;
    if (place < 0 || place >= self->count)
        return PyErr_Format(PyExc_IndexError, "value %zd of %zd", place, self->count), false;
    *out = self->values[place];
    return true;
}

/* A new list of the values of a tuple of numbers; NULL with an exception. */
static tk_kvalue **values_of(PyObject *self, PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0) return NULL;
    tk_kvalue **values = PyMem_Calloc((size_t)count + 1, sizeof(tk_kvalue *));
    if (!values) return PyErr_NoMemory(), NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!value_at((builder_object *)self, PyTuple_GetItem(tuple, i), &values[i])) {
            PyMem_Free(values);
            return NULL;
        }
    return values;
}

static PyObject *numbers_of(PyObject *self, tk_kvalue *const *values, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *number = keep_value((builder_object *)self, values[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static bool number_type(PyObject *tuple, tk_ktype *out) {
    const char *kind, *scalar;
    int lanes;
    if (!PyArg_ParseTuple(tuple, "ssi", &kind, &scalar, &lanes)) return false;
    int element = scalar_of(scalar);
    if (element >= 0) *out = tk_ktype_vector((tk_kscalar)element, lanes);
    return element >= 0;
}

static bool pointer_type(PyObject *tuple, tk_ktype *out) {
    const char *kind, *scalar, *space;
    if (!PyArg_ParseTuple(tuple, "sss", &kind, &scalar, &space)) return false;
    int element = scalar_of(scalar), where = element < 0 ? -1 : space_of(space);
    if (where >= 0) *out = tk_ktype_pointer((tk_kscalar)element, (tk_kspace)where);
    return where >= 0;
}

static bool shared_type(PyObject *self, PyObject *tuple, tk_ktype *out) {
    const char *kind, *scalar, *layout;
    if (!PyArg_ParseTuple(tuple, "sss", &kind, &scalar, &layout)) return false;
    int element = scalar_of(scalar);
    if (element >= 0) *out = tk_ktype_of_shared(builder_of(self), (tk_kscalar)element, layout);
    return element >= 0;
}

static bool registers_type(PyObject *self, PyObject *tuple, tk_ktype *out) {
    const char *kind, *scalar, *layout, *tv;
    if (!PyArg_ParseTuple(tuple, "sssz", &kind, &scalar, &layout, &tv)) return false;
    int element = scalar_of(scalar);
    if (element >= 0)
        *out = tk_ktype_of_registers(builder_of(self), (tk_kscalar)element, layout, tv);
    return element >= 0;
}

static bool view_type(PyObject *self, PyObject *tuple, tk_ktype *out) {
    const char *kind, *scalar, *space, *layout;
    if (!PyArg_ParseTuple(tuple, "ssss", &kind, &scalar, &space, &layout)) return false;
    int element = scalar_of(scalar), where = element < 0 ? -1 : space_of(space);
    if (where >= 0)
        *out = tk_ktype_of_view(builder_of(self), (tk_kscalar)element, (tk_kspace)where, layout);
    return where >= 0;
}

static bool layout_type(PyObject *self, PyObject *tuple, tk_ktype *out) {
    const char *kind, *layout;
    if (!PyArg_ParseTuple(tuple, "ss", &kind, &layout)) return false;
    *out = tk_ktype_of_layout(builder_of(self), layout);
    return true;
}

/* A type from ("number", scalar, lanes), ("pointer", scalar, space), ("shared", scalar, layout),
 * ("registers", scalar, layout, thread-value layout or None), ("view", scalar, space, layout),
 * ("layout", layout), or None. */
static bool type_of(PyObject *self, PyObject *object, tk_ktype *out) {
    *out = (tk_ktype){0};
    if (object == Py_None) return true;
    PyObject *first = PyTuple_Check(object) ? PyTuple_GetItem(object, 0) : NULL;
    PyErr_Clear();
    if (first && PyUnicode_Check(first)) {
        if (!PyUnicode_CompareWithASCIIString(first, "number")) return number_type(object, out);
        if (!PyUnicode_CompareWithASCIIString(first, "pointer")) return pointer_type(object, out);
        if (!PyUnicode_CompareWithASCIIString(first, "shared"))
            return shared_type(self, object, out);
        if (!PyUnicode_CompareWithASCIIString(first, "registers"))
            return registers_type(self, object, out);
        if (!PyUnicode_CompareWithASCIIString(first, "view")) return view_type(self, object, out);
        if (!PyUnicode_CompareWithASCIIString(first, "layout"))
            return layout_type(self, object, out);
    }
    PyErr_SetString(PyExc_TypeError, "a type of kernels is a tuple that begins with its kind");
    return false;
}

/* ---- builders: operations ---- */

static bool attr_of(PyObject *pair, tk_kattr *out) {
    int id;
    PyObject *value;
    if (!PyArg_ParseTuple(pair, "iO", &id, &value)) return false;
    *out = (tk_kattr){.id = (tk_kattr_id)id};
    if (!PyUnicode_Check(value)) {
        out->value = PyLong_AsLongLong(value);
        return !PyErr_Occurred();
    }
    out->word = PyUnicode_AsUTF8AndSize(value, NULL);
    return out->word != NULL;
}

static tk_kattr *attrs_of(PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    tk_kattr *attrs = PyMem_Calloc((size_t)count + 1, sizeof *attrs);
    if (!attrs) return PyErr_NoMemory(), NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!attr_of(PyTuple_GetItem(tuple, i), &attrs[i])) {
            PyMem_Free(attrs);
            return NULL;
        }
    return attrs;
}

static PyObject *build_op(PyObject *self, PyObject *args) {
    int code;
    PyObject *operands, *given, *stated, *result = NULL;
    tk_ktype type;
    if (!PyArg_ParseTuple(args, "iO!O!O", &code, &PyTuple_Type, &operands, &PyTuple_Type, &given,
                          &stated) ||
        !type_of(self, stated, &type))
        return NULL;
    tk_kvalue **values = values_of(self, operands);
    tk_kattr *attrs = values ? attrs_of(given) : NULL;
    if (attrs)
        result = value_or_error(self, tk_kernel_op(builder_of(self), (tk_kopcode)code,
                                                   (size_t)PyTuple_Size(operands), values,
                                                   (size_t)PyTuple_Size(given), attrs, type));
    PyMem_Free(values);
    PyMem_Free(attrs);
    return result;
}

static PyObject *build_at(PyObject *self, PyObject *args) {
    const char *file;
    int line;
    if (!PyArg_ParseTuple(args, "zi", &file, &line)) return NULL;
    tk_kernel_at(builder_of(self), file, line);
    return none_or_error(self);
}

static PyObject *build_int(PyObject *self, PyObject *args) {
    const char *word;
    long long value;
    if (!PyArg_ParseTuple(args, "sL", &word, &value)) return NULL;
    int scalar = scalar_of(word);
    if (scalar < 0) return NULL;
    return value_or_error(self, tk_kernel_int(builder_of(self), (tk_kscalar)scalar, value));
}

static PyObject *build_float(PyObject *self, PyObject *args) {
    const char *word;
    double value;
    if (!PyArg_ParseTuple(args, "sd", &word, &value)) return NULL;
    int scalar = scalar_of(word);
    if (scalar < 0) return NULL;
    return value_or_error(self, tk_kernel_float(builder_of(self), (tk_kscalar)scalar, value));
}

static PyObject *build_rename(PyObject *self, PyObject *args) {
    PyObject *number;
    const char *name;
    tk_kvalue *value;
    if (!PyArg_ParseTuple(args, "Os", &number, &name) ||
        !value_at((builder_object *)self, number, &value))
        return NULL;
    tk_kvalue_rename(builder_of(self), value, name);
    return none_or_error(self);
}

/* ---- builders: regions ---- */

static PyObject *build_for(PyObject *self, PyObject *args) {
    PyObject *bounds, *carried, *result = NULL;
    long long unroll;
    if (!PyArg_ParseTuple(args, "O!LO!", &PyTuple_Type, &bounds, &unroll, &PyTuple_Type, &carried))
        return NULL;
    if (PyTuple_Size(bounds) != 3)
        return PyErr_Format(PyExc_TypeError, "the bounds of a loop are three values");
    Py_ssize_t count = PyTuple_Size(carried);
    tk_kvalue **limits = values_of(self, bounds);
    tk_kvalue **values = limits ? values_of(self, carried) : NULL;
    tk_kvalue **inside = values ? PyMem_Calloc((size_t)count + 1, sizeof(tk_kvalue *)) : NULL;
    if (values && !inside) PyErr_NoMemory();
    if (inside) {
        tk_kvalue *index = tk_kernel_for(builder_of(self), limits[0], limits[1], limits[2], unroll,
                                         (size_t)count, values, inside + 1);
        inside[0] = index;
        result = index ? numbers_of(self, inside, count + 1) : none_or_error(self);
    }
    PyMem_Free(limits);
    PyMem_Free(values);
    PyMem_Free(inside);
    return result;
}

/* What the calls on regions share: values in, `count` values out. */
typedef void (*region_call)(tk_kernel_builder *b, tk_kvalue *condition, size_t count,
                            tk_kvalue *const *values, tk_kvalue **out);

static PyObject *call_region(PyObject *self, region_call call, tk_kvalue *condition,
                             PyObject *tuple, Py_ssize_t n_out) {
    PyObject *result = NULL;
    Py_ssize_t count = PyTuple_Size(tuple);
    tk_kvalue **values = values_of(self, tuple);
    tk_kvalue **out = values ? PyMem_Calloc((size_t)n_out + 1, sizeof(tk_kvalue *)) : NULL;
    if (values && !out) PyErr_NoMemory();
    if (out) {
        call(builder_of(self), condition, (size_t)count, values, out);
        if (tk_kernel_builder_status(builder_of(self)) == TK_OK)
            result = numbers_of(self, out, n_out);
        else
            none_or_error(self);
    }
    PyMem_Free(values);
    PyMem_Free(out);
    return result;
}

static void open_while(tk_kernel_builder *b, tk_kvalue *condition, size_t count,
                       tk_kvalue *const *values, tk_kvalue **out) {
    (void)condition;
    tk_kernel_while(b, count, values, out);
}

static void open_else(tk_kernel_builder *b, tk_kvalue *condition, size_t count,
                      tk_kvalue *const *values, tk_kvalue **out) {
    (void)condition, (void)out;
    tk_kernel_else(b, count, values);
}

static void end_region(tk_kernel_builder *b, tk_kvalue *condition, size_t count,
                       tk_kvalue *const *values, tk_kvalue **out) {
    (void)condition;
    tk_kernel_end(b, count, values, out);
}

static PyObject *build_while(PyObject *self, PyObject *args) {
    PyObject *values;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &values)) return NULL;
    return call_region(self, open_while, NULL, values, PyTuple_Size(values));
}

static PyObject *build_while_do(PyObject *self, PyObject *args) {
    PyObject *number, *values;
    tk_kvalue *condition;
    if (!PyArg_ParseTuple(args, "OO!", &number, &PyTuple_Type, &values) ||
        !value_at((builder_object *)self, number, &condition))
        return NULL;
    return call_region(self, tk_kernel_while_do, condition, values, PyTuple_Size(values));
}

static PyObject *build_if(PyObject *self, PyObject *number) {
    tk_kvalue *condition;
    if (!value_at((builder_object *)self, number, &condition)) return NULL;
    tk_kernel_if(builder_of(self), condition);
    return none_or_error(self);
}

static PyObject *build_else(PyObject *self, PyObject *args) {
    PyObject *values;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &values)) return NULL;
    return call_region(self, open_else, NULL, values, 0);
}

static PyObject *build_end(PyObject *self, PyObject *args) {
    PyObject *values;
    Py_ssize_t n_results;
    if (!PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &values, &n_results)) return NULL;
    if (n_results < 0 || n_results > PyTuple_Size(values))
        return PyErr_Format(PyExc_ValueError, "%zd results of %zd values", n_results,
                            PyTuple_Size(values));
    return call_region(self, end_region, NULL, values, n_results);
}

/* ---- builders: the contract ---- */

static PyObject *expr_or_error(PyObject *self, int32_t expr) {
    return expr >= 0 ? PyLong_FromLong(expr) : none_or_error(self);
}

static PyObject *build_expr_const(PyObject *self, PyObject *number) {
    long long value = PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return NULL;
    return expr_or_error(self, tk_kexpr_const(builder_of(self), value));
}

static PyObject *build_expr_param(PyObject *self, PyObject *number) {
    tk_kvalue *param;
    if (!value_at((builder_object *)self, number, &param)) return NULL;
    return expr_or_error(self, tk_kexpr_param(builder_of(self), param));
}

static PyObject *build_expr_device(PyObject *self, PyObject *args) {
    int fact;
    if (!PyArg_ParseTuple(args, "i", &fact)) return NULL;
    return expr_or_error(self, tk_kexpr_device(builder_of(self), (tk_kfact)fact));
}

static PyObject *build_expr(PyObject *self, PyObject *args) {
    static const char *const words[] = {
        [TK_KX_ADD] = "add", [TK_KX_SUB] = "sub", [TK_KX_MUL] = "mul", [TK_KX_CEILDIV] = "ceildiv",
        [TK_KX_DIV] = "div", [TK_KX_MOD] = "mod", [TK_KX_MIN] = "min", [TK_KX_MAX] = "max"};
    const char *word;
    int left, right;
    if (!PyArg_ParseTuple(args, "sii", &word, &left, &right)) return NULL;
    for (int kind = TK_KX_ADD; kind < TK_KX_COUNT; kind++)
        if (!strcmp(word, words[kind]))
            return expr_or_error(
                self, tk_kexpr_binary(builder_of(self), (tk_kexpr_kind)kind, left, right));
    return PyErr_Format(PyExc_ValueError, "\"%s\" is no operation of launch contracts", word);
}

static PyObject *build_param(PyObject *self, PyObject *args) {
    PyObject *type;
    tk_kparam param = {0};
    int access, size;
    long long align;
    if (!PyArg_ParseTuple(args, "sOiLi", &param.name, &type, &access, &align, &size) ||
        !type_of(self, type, &param.type))
        return NULL;
    param.access = (tk_kaccess)access;
    param.align = align;
    param.size = size;
    return value_or_error(self, tk_kernel_add_param(builder_of(self), &param));
}

static PyObject *build_require(PyObject *self, PyObject *args) {
    static const char *const words[] = {[TK_KR_EQ] = "==", [TK_KR_NE] = "!=", [TK_KR_LT] = "<",
                                        [TK_KR_LE] = "<=", [TK_KR_GT] = ">",  [TK_KR_GE] = ">="};
    const char *word;
    int left, right;
    if (!PyArg_ParseTuple(args, "isi", &left, &word, &right)) return NULL;
    for (int relation = 0; relation < TK_KR_COUNT; relation++)
        if (!strcmp(word, words[relation])) {
            tk_kernel_require(builder_of(self), left, (tk_krelation)relation, right);
            return none_or_error(self);
        }
    return PyErr_Format(PyExc_ValueError, "\"%s\" is no relation", word);
}

static PyObject *build_grid(PyObject *self, PyObject *args) {
    int x, y, z;
    if (!PyArg_ParseTuple(args, "iii", &x, &y, &z)) return NULL;
    tk_kernel_grid(builder_of(self), x, y, z);
    return none_or_error(self);
}

static PyObject *build_cluster(PyObject *self, PyObject *args) {
    int x, y, z;
    if (!PyArg_ParseTuple(args, "iii", &x, &y, &z)) return NULL;
    tk_kernel_cluster(builder_of(self), x, y, z);
    return none_or_error(self);
}

static PyObject *build_block(PyObject *self, PyObject *args) {
    long long x, y, z;
    if (!PyArg_ParseTuple(args, "LLL", &x, &y, &z)) return NULL;
    tk_kernel_block(builder_of(self), x, y, z);
    return none_or_error(self);
}

static PyObject *build_min_blocks(PyObject *self, PyObject *number) {
    long long blocks = PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return NULL;
    tk_kernel_min_blocks(builder_of(self), blocks);
    return none_or_error(self);
}

static bool int32_of(PyObject *number, int32_t *out) {
    long long value = PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return false;
    *out = (int32_t)value;
    if (*out == value) return true;
    return PyErr_Format(PyExc_OverflowError, "%lld does not fit 32 bits", value), false;
}

static PyObject *build_dynamic_shared(PyObject *self, PyObject *number) {
    int32_t bytes;
    if (!int32_of(number, &bytes)) return NULL;
    tk_kernel_dynamic_shared(builder_of(self), bytes);
    return none_or_error(self);
}

static PyObject *build_cooperative(PyObject *self, PyObject *unused) {
    (void)unused;
    tk_kernel_cooperative(builder_of(self));
    return none_or_error(self);
}

/* A tuple of at most `most` integers. */
static bool integers_of(PyObject *tuple, Py_ssize_t most, int32_t *out) {
    if (PyTuple_Size(tuple) > most)
        return PyErr_Format(PyExc_ValueError, "%zd extents of a tensor map", PyTuple_Size(tuple)),
               false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
        if (!int32_of(PyTuple_GetItem(tuple, i), &out[i])) return false;
    return true;
}

static PyObject *build_map(PyObject *self, PyObject *args) {
    tk_kmap map = {.element_stride = {1, 1, 1, 1, 1}};
    PyObject *base, *extent, *stride, *box;
    const char *element;
    tk_kvalue *pointer;
    int nan = 0;
    if (!PyArg_ParseTuple(args, "sOsO!O!O!ip", &map.name, &base, &element, &PyTuple_Type, &extent,
                          &PyTuple_Type, &stride, &PyTuple_Type, &box, &map.swizzle, &nan) ||
        !value_at((builder_object *)self, base, &pointer) || !integers_of(extent, 5, map.extent) ||
        !integers_of(stride, 4, map.stride) || !integers_of(box, 5, map.box))
        return NULL;
    int scalar = scalar_of(element);
    if (scalar < 0) return NULL;
    map.base = pointer;
    map.element = (tk_kscalar)scalar;
    map.rank = (int)PyTuple_Size(extent);
    map.fill_nan = nan != 0;
    return value_or_error(self, tk_kernel_add_map(builder_of(self), &map));
}

static PyObject *build_finish(PyObject *self, PyObject *unused) {
    tk_kernel *kernel;
    (void)unused;
    tk_status status = tk_kernel_builder_finish(builder_of(self), &kernel);
    if (status != TK_OK) return tkpy_raise(tkpy_state_of(self), status);
    return tkpy_kernel_wrap(tkpy_state_of(self), kernel);
}

/* ---- builders: life ---- */

static void builder_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tk_kernel_builder_release(builder_of(self));
    PyMem_Free(((builder_object *)self)->values);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef builder_methods[] = {
    {"at", build_at, METH_VARARGS, "Operations from here on come from this file and line."},
    {"op", build_op, METH_VARARGS,
     "op(code, operands, attributes, type): the number of its value."},
    {"int", build_int, METH_VARARGS, "A constant."},
    {"float", build_float, METH_VARARGS, "A constant."},
    {"rename", build_rename, METH_VARARGS, "A name of a value for the text."},
    {"for_", build_for, METH_VARARGS, "Opens a loop: its index and the carried values inside."},
    {"while_", build_while, METH_VARARGS, "Opens a loop's first region."},
    {"while_do", build_while_do, METH_VARARGS, "Ends the first region, opens the second."},
    {"if_", build_if, METH_O, "Opens the first region of an if."},
    {"else_", build_else, METH_VARARGS, "Ends the first region, opens the other."},
    {"end", build_end, METH_VARARGS,
     "end(values, n_results): ends the innermost operation with regions."},
    {"expr_const", build_expr_const, METH_O, "A number in an expression of the contract."},
    {"expr_param", build_expr_param, METH_O, "A parameter in an expression."},
    {"expr_device", build_expr_device, METH_VARARGS, "A fact about the device."},
    {"expr", build_expr, METH_VARARGS, "expr(word, left, right)."},
    {"param", build_param, METH_VARARGS, "param(name, type, access, align, size)."},
    {"require", build_require, METH_VARARGS, "require(left, relation, right): a precondition."},
    {"grid", build_grid, METH_VARARGS, "The grid as three expressions."},
    {"cluster", build_cluster, METH_VARARGS, "The cluster as three expressions."},
    {"block", build_block, METH_VARARGS, "The block as three numbers."},
    {"min_blocks", build_min_blocks, METH_O, "How many blocks an SM should hold."},
    {"dynamic_shared", build_dynamic_shared, METH_O, "Bytes of dynamic shared memory."},
    {"cooperative", build_cooperative, METH_NOARGS, "All blocks of the grid run together."},
    {"map", build_map, METH_VARARGS,
     "map(name, base, element, extents, strides, box, swizzle, nan): a tensor map."},
    {"finish", build_finish, METH_NOARGS, "The verified kernel."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot builder_slots[] = {
    {Py_tp_dealloc, builder_dealloc}, {Py_tp_methods, builder_methods}, {0, NULL}};

PyType_Spec tkpy_kernel_builder_spec = {"tiki._core.KernelBuilder", sizeof(builder_object), 0,
                                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                        builder_slots};

/* ---- functions ---- */

static PyObject *create_builder(PyObject *module, PyObject *args) {
    tkpy_state *state = tkpy_module_state(module);
    const char *name, *form;
    if (!PyArg_ParseTuple(args, "ss", &name, &form)) return NULL;
    builder_object *self = PyObject_New(builder_object, state->kernel_builder);
    if (!self) return NULL;
    self->values = NULL;
    self->count = self->capacity = 0;
    self->builder = tk_kernel_builder_create(name, !strcmp(form, "tensor") ? TK_KFORM_TENSOR
                                                   : !strcmp(form, "view") ? TK_KFORM_VIEW
                                                                           : TK_KFORM_THREAD);
    if (!self->builder) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    PyObject *good = none_or_error((PyObject *)self);
    if (!good) Py_DECREF(self);
    Py_XDECREF(good);
    return good ? (PyObject *)self : NULL;
}

static PyObject *parse_kernel(PyObject *module, PyObject *args) {
    const char *text, *source = NULL;
    tk_kernel *kernel;
    if (!PyArg_ParseTuple(args, "s|z", &text, &source)) return NULL;
    tk_status status = tk_kernel_parse(text, source, &kernel);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    return tkpy_kernel_wrap(tkpy_module_state(module), kernel);
}

static PyObject *operand_names(tk_kopcode code) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < tk_kopcode_operands(code); i++) {
        bool optional = false;
        const char *name = tk_kopcode_operand(code, i, &optional);
        PyObject *row = Py_BuildValue("(sO)", name, optional ? Py_True : Py_False);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *attr_numbers(tk_kopcode code) {
    PyObject *table = PyDict_New();
    for (int i = 0; table && i < tk_kopcode_attrs(code); i++) {
        tk_kattr_id id;
        const char *name = tk_kopcode_attr(code, i, &id);
        PyObject *number = PyLong_FromLong((long)id);
        if (!number || PyDict_SetItemString(table, name, number) < 0) Py_CLEAR(table);
        Py_XDECREF(number);
    }
    return table;
}

static PyObject *operation_row(tk_kopcode code) {
    PyObject *operands = operand_names(code), *attrs = operands ? attr_numbers(code) : NULL;
    if (!attrs) {
        Py_XDECREF(operands);
        return NULL;
    }
    return Py_BuildValue("(sNNOOs)", tk_kopcode_name(code), operands, attrs,
                         tk_kopcode_is_variadic(code) ? Py_True : Py_False,
                         tk_kopcode_states_type(code) ? Py_True : Py_False, tk_kopcode_doc(code));
}

static PyObject *list_operations(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (int i = 0; list && i < TK_KOP_COUNT; i++) {
        PyObject *row = operation_row((tk_kopcode)i);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyMethodDef tkpy_kernel_functions[] = {
    {"builder", create_builder, METH_VARARGS, "builder(name, form): a builder."},
    {"parse", parse_kernel, METH_VARARGS, "parse(text, source=None): a kernel from its text."},
    {"operations", list_operations, METH_NOARGS,
     "The table: (name, operands, attributes, variadic, states its type, documentation)."},
    {NULL, NULL, 0, NULL}};
