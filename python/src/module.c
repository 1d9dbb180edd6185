/* The module tiki._core: types, tables and state, made in several phases so that it can be made
 * more than once. */
#include "args.h"
#include "kernel.h"
#include "tiki/target.h"

static PyObject *add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    *out = (PyTypeObject *)type;
    if (type && PyModule_AddType(module, *out) < 0) return NULL;
    return type;
}

static bool add_types(tkpy_state *state, PyObject *module) {
    return add_type(module, &tkpy_array_spec, &state->array) &&
           add_type(module, &tkpy_iterator_spec, &state->iterator) &&
           add_type(module, &tkpy_at_spec, &state->at) &&
           add_type(module, &tkpy_compiled_spec, &state->compiled) &&
           add_type(module, &tkpy_kernel_spec, &state->kernel) &&
           add_type(module, &tkpy_kernel_builder_spec, &state->kernel_builder) &&
           add_type(module, &tkpy_output_spec, &state->output) &&
           add_type(module, &tkpy_dtype_spec, &state->dtype) && tkpy_add_dtypes(state, module);
}

/* An exception that is of two kinds, since libraries disagree about which it should be. */
static bool add_exception(PyObject *module, const char *name, PyObject *first, PyObject *second,
                          PyObject **out) {
    char full[64];
    PyOS_snprintf(full, sizeof full, "tiki.%s", name);
    PyObject *bases = PyTuple_Pack(2, first, second);
    *out = bases ? PyErr_NewException(full, bases, NULL) : NULL;
    Py_XDECREF(bases);
    return *out && PyModule_AddObjectRef(module, name, *out) == 0;
}

static bool add_exceptions(tkpy_state *state, PyObject *module) {
    return add_exception(module, "AxisError", PyExc_ValueError, PyExc_IndexError,
                         &state->axis_error) &&
           add_exception(module, "DtypeError", PyExc_ValueError, PyExc_TypeError,
                         &state->dtype_error) &&
           add_exception(module, "FileError", PyExc_OSError, PyExc_RuntimeError,
                         &state->file_error);
}

/* Methods that are ops live in a table of their own; a type takes just one. */
static bool add_methods(tkpy_state *state) {
    for (PyMethodDef *def = tkpy_array_methods; def->ml_name; def++) {
        PyObject *method = PyDescr_NewMethod(state->array, def);
        int failed =
            method ? PyObject_SetAttrString((PyObject *)state->array, def->ml_name, method) : -1;
        Py_XDECREF(method);
        if (failed) return false;
    }
    return true;
}

/* A dictionary of functions bound to this module. */
static PyObject *functions_of(PyObject *module, const char *full_name, PyMethodDef *table) {
    PyObject *functions = PyDict_New(), *name = PyUnicode_FromString(full_name);
    bool ok = functions && name;
    for (PyMethodDef *def = table; ok && def->ml_name; def++) {
        PyObject *function = PyCFunction_NewEx(def, module, name);
        ok = function && PyDict_SetItemString(functions, def->ml_name, function) == 0;
        Py_XDECREF(function);
    }
    Py_XDECREF(name);
    if (!ok) Py_CLEAR(functions);
    return functions;
}

/* The functions under a name of this module, for the submodule that shows them. */
static bool add_table(PyObject *module, const char *name, PyMethodDef *table) {
    char full_name[64];
    PyOS_snprintf(full_name, sizeof full_name, "tiki.%s", name + 1);
    PyObject *functions = functions_of(module, full_name, table);
    bool ok = functions && PyModule_AddObjectRef(module, name, functions) == 0;
    Py_XDECREF(functions);
    return ok;
}

/* The same with attributes in the place of keys, which is what type checkers can follow. */
static bool add_namespace(PyObject *module, const char *name, PyMethodDef *table) {
    char full_name[64];
    PyOS_snprintf(full_name, sizeof full_name, "tiki.%s", name + 1);
    PyObject *functions = functions_of(module, full_name, table);
    PyObject *space = functions ? PyModule_New(full_name) : NULL;
    bool ok = space && PyDict_Update(PyModule_GetDict(space), functions) == 0 &&
              PyModule_AddObjectRef(module, name, space) == 0;
    Py_XDECREF(functions);
    Py_XDECREF(space);
    return ok;
}

static PyMethodDef module_functions[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))tkpy_from_dlpack, METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(x, /, *, device=None, copy=None)\n--\n\n"
     "An array of the memory of an object with __dlpack__."},
    {"_share", tkpy_share, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static bool add_functions(PyObject *module) {
    return PyModule_AddFunctions(module, module_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_context_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_core_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_transform_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_kept_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_io_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_optimizer_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_export_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_gguf_functions) == 0 &&
           PyModule_AddFunctions(module, tkpy_train_functions) == 0 &&
           add_namespace(module, "_random", tkpy_random_functions) &&
           add_namespace(module, "_fast", tkpy_fast_functions) &&
           add_table(module, "_layout", tkpy_layout_functions) &&
           add_namespace(module, "_fft", tkpy_fft_functions) &&
           add_table(module, "_kernel", tkpy_kernel_functions) &&
           add_table(module, "_device", tkpy_device_functions) &&
           add_table(module, "_library", tkpy_plan_functions) &&
           add_namespace(module, "_linalg", tkpy_linalg_functions) &&
           add_namespace(module, "_nn", tkpy_nn_functions);
}

/* The CuTe compiler's package may be one of this Python's. */
static void name_python(void) {
    PyObject *path = PySys_GetObject("executable");
    const char *text = path && PyUnicode_Check(path) ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
    if (!text) PyErr_Clear();
    (void)tk_cute_use_python(text);
}

static int execute(PyObject *module) {
    tkpy_state *state = tkpy_module_state(module);
    if (!add_types(state, module) || !add_methods(state) || !add_exceptions(state, module) ||
        !add_functions(module))
        return -1;
    name_python();
    state->print_digits = -1;
    state->random_state = PyList_New(0);
    return state->random_state ? PyModule_AddObjectRef(module, "_random_state", state->random_state)
                               : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    tkpy_state *state = tkpy_module_state(module);
    Py_VISIT(state->array);
    Py_VISIT(state->iterator);
    Py_VISIT(state->at);
    Py_VISIT(state->compiled);
    Py_VISIT(state->kernel);
    Py_VISIT(state->kernel_builder);
    Py_VISIT(state->output);
    Py_VISIT(state->dtype);
    for (int i = 0; i < TK_DTYPE_COUNT; i++) Py_VISIT(state->dtypes[i]);
    Py_VISIT(state->axis_error);
    Py_VISIT(state->dtype_error);
    Py_VISIT(state->file_error);
    Py_VISIT(state->random_state);
    return 0;
}

static int clear(PyObject *module) {
    tkpy_state *state = tkpy_module_state(module);
    Py_CLEAR(state->array);
    Py_CLEAR(state->iterator);
    Py_CLEAR(state->at);
    Py_CLEAR(state->compiled);
    Py_CLEAR(state->kernel);
    Py_CLEAR(state->kernel_builder);
    Py_CLEAR(state->output);
    Py_CLEAR(state->dtype);
    for (int i = 0; i < TK_DTYPE_COUNT; i++) Py_CLEAR(state->dtypes[i]);
    Py_CLEAR(state->axis_error);
    Py_CLEAR(state->dtype_error);
    Py_CLEAR(state->file_error);
    Py_CLEAR(state->random_state);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                 "tiki._core",
                                 "The part of Tiki's Python front that is written in C.",
                                 sizeof(tkpy_state),
                                 NULL,
                                 slots,
                                 traverse,
                                 clear,
                                 NULL};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
