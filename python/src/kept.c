/* Functions that live on in the graph: checkpointed ones, and those with derivatives of their own.
 *
 * The graph holds them until no gradient can need them; the release may come on any thread. Of the
 * arguments only their form is kept, as a tree with a stand-in for each array. */
#include <string.h>

#include "tree.h"

typedef struct kept_call {
    tkpy_state *state;
    PyObject *function, *vjp, *jvp, *vmap; /* NULL: none */
    PyObject *args, *kwargs;               /* forms; kwargs may be NULL */
    PyObject *result;                      /* form, once called */
    PyObject *module;                      /* what `state` belongs to */
} kept_call;

static void release_kept(void *self) {
    kept_call *kept = self;
    PyObject *held[] = {kept->function, kept->vjp,    kept->jvp,    kept->vmap,
                        kept->args,     kept->kwargs, kept->result, kept->module};
    PyMem_Free(kept);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i]) tkpy_release_object(held[i]);
}

/* PyMem_Free needs the interpreter's lock, which a worker does not have. */
static void release_from_graph(void *self) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE held = PyGILState_Ensure();
    release_kept(self);
    PyGILState_Release(held);
}

/* The tree with one small array in the place of every array. */
static PyObject *form_of(tkpy_state *state, PyObject *tree) {
    tkpy_leaves leaves = {0}, stand_ins = {0};
    PyObject *form = NULL;
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_array small = tk_scalar_bool(tkpy_context(), false);
    bool ok = tkpy_tree_flatten(tree, &leaves);
    for (size_t i = 0; ok && i < leaves.count; i++) ok = tkpy_leaves_push(&stand_ins, small);
    size_t next = 0;
    if (ok) form = tkpy_tree_rebuild(state, tree, stand_ins.items, &next);
    tkpy_leaves_clear(&leaves);
    tkpy_leaves_clear(&stand_ins);
    tk_scope_close(scope);
    return form;
}

static tk_status raised(void) {
    return tk_error_set(TK_INVALID_ARGUMENT, "the Python function raised an exception");
}

static tk_status push_tree(PyObject *tree, tk_arrays *results) {
    tkpy_leaves leaves = {0};
    tk_status status = tkpy_tree_flatten(tree, &leaves) ? TK_OK : raised();
    for (size_t i = 0; status == TK_OK && i < leaves.count; i++)
        status = tk_arrays_push(results, leaves.items[i]);
    tkpy_leaves_clear(&leaves);
    return status;
}

/* ---- the function itself ---- */

static PyObject *call_function(const kept_call *kept, const tk_array *items) {
    size_t next = 0;
    PyObject *result = NULL, *kwargs = NULL;
    PyObject *args = tkpy_tree_rebuild(kept->state, kept->args, items, &next);
    if (args && kept->kwargs) kwargs = tkpy_tree_rebuild(kept->state, kept->kwargs, items, &next);
    if (args && (kwargs || !kept->kwargs)) result = PyObject_Call(kept->function, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static tk_status kept_function(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    kept_call *kept = self;
    (void)n_args;
    PyObject *result = call_function(kept, args);
    if (!result) return raised();
    tk_status status = push_tree(result, results);
    if (!kept->result && !(kept->result = form_of(kept->state, result))) status = raised();
    Py_DECREF(result);
    return status;
}

/* ---- its transforms ---- */

/* Arguments as MLX hands them to custom transforms: one alone, several as a tuple. */
static PyObject *bundle(const kept_call *kept, const tk_array *items, size_t *next) {
    PyObject *args = tkpy_tree_rebuild(kept->state, kept->args, items, next);
    if (!args || PyTuple_Size(args) != 1) return args;
    PyObject *only = tkpy_new_ref(PyTuple_GetItem(args, 0));
    Py_DECREF(args);
    return only;
}

static size_t count_leaves(PyObject *tree) {
    tkpy_leaves leaves = {0};
    tkpy_tree_flatten(tree, &leaves);
    size_t count = leaves.count;
    tkpy_leaves_clear(&leaves);
    return count;
}

/* None in the place of an argument stands for zeros. */
static tk_status push_gradients(const kept_call *kept, PyObject *given, tk_arrays *results) {
    Py_ssize_t count = PyTuple_Size(kept->args);
    bool many = count > 1 && PyTuple_Check(given) && PyTuple_Size(given) == count;
    if (!many && given != Py_None) return push_tree(given, results);
    tk_status status = TK_OK;
    for (Py_ssize_t i = 0; status == TK_OK && i < count; i++) {
        PyObject *one = many ? PyTuple_GetItem(given, i) : given;
        if (one != Py_None) {
            status = push_tree(one, results);
            continue;
        }
        size_t zeros = count_leaves(PyTuple_GetItem(kept->args, i));
        for (; status == TK_OK && zeros > 0; zeros--) status = tk_arrays_push(results, TK_NO_ARRAY);
    }
    return status;
}

static tk_status kept_vjp(void *self, const tk_array *items, size_t n_items, tk_arrays *results) {
    kept_call *kept = self;
    size_t next = 0;
    (void)n_items;
    PyObject *primals = bundle(kept, items, &next), *cotangents = NULL, *outputs = NULL;
    if (primals) cotangents = tkpy_tree_rebuild(kept->state, kept->result, items, &next);
    if (cotangents) outputs = tkpy_tree_rebuild(kept->state, kept->result, items, &next);
    PyObject *given =
        outputs ? PyObject_CallFunctionObjArgs(kept->vjp, primals, cotangents, outputs, NULL)
                : NULL;
    tk_status status = given ? push_gradients(kept, given, results) : raised();
    Py_XDECREF(primals);
    Py_XDECREF(cotangents);
    Py_XDECREF(outputs);
    Py_XDECREF(given);
    return status;
}

static tk_status kept_jvp(void *self, const tk_array *items, size_t n_items, tk_arrays *results) {
    kept_call *kept = self;
    size_t next = 0;
    (void)n_items;
    PyObject *primals = bundle(kept, items, &next);
    PyObject *tangents = primals ? bundle(kept, items, &next) : NULL;
    PyObject *given =
        tangents ? PyObject_CallFunctionObjArgs(kept->jvp, primals, tangents, NULL) : NULL;
    tk_status status = given ? push_tree(given, results) : raised();
    Py_XDECREF(primals);
    Py_XDECREF(tangents);
    Py_XDECREF(given);
    return status;
}

/* Zero for each argument: batches come in front. */
static PyObject *front_axes(const kept_call *kept) {
    Py_ssize_t count = PyTuple_Size(kept->args);
    if (count == 1) return PyLong_FromLong(0);
    PyObject *axes = PyTuple_New(count);
    for (Py_ssize_t i = 0; axes && i < count; i++) PyTuple_SetItem(axes, i, PyLong_FromLong(0));
    return axes;
}

/* Results with their batch axes, one for all or one each, moved to the front. */
static tk_status push_batched(PyObject *given, tk_arrays *results) {
    if (!PyTuple_Check(given) || PyTuple_Size(given) != 2) {
        PyErr_SetString(PyExc_ValueError,
                        "the vmap of a custom function must return (outputs, axes)");
        return raised();
    }
    PyObject *axes = PyTuple_GetItem(given, 1);
    tk_arrays plain = {0};
    tk_status status = push_tree(PyTuple_GetItem(given, 0), &plain);
    for (size_t i = 0; status == TK_OK && i < plain.count; i++) {
        PyObject *axis =
            PySequence_Check(axes) ? PySequence_GetItem(axes, (Py_ssize_t)i) : tkpy_new_ref(axes);
        long number = axis ? PyLong_AsLong(axis) : 0;
        Py_XDECREF(axis);
        if (PyErr_Occurred())
            status = raised();
        else
            status = tk_arrays_push(results, number == 0 ? plain.items[i]
                                                         : tk_moveaxis(plain.items[i], number, 0));
    }
    tk_arrays_clear(&plain);
    return status;
}

static tk_status kept_vmap(void *self, const tk_array *items, size_t n_items, tk_arrays *results) {
    kept_call *kept = self;
    size_t next = 0;
    (void)n_items;
    PyObject *inputs = bundle(kept, items, &next), *axes = inputs ? front_axes(kept) : NULL;
    PyObject *given = axes ? PyObject_CallFunctionObjArgs(kept->vmap, inputs, axes, NULL) : NULL;
    tk_status status = given ? push_batched(given, results) : raised();
    Py_XDECREF(inputs);
    Py_XDECREF(axes);
    Py_XDECREF(given);
    return status;
}

/* ---- calling them ---- */

static PyObject *or_null(PyObject *object) {
    return object == Py_None ? NULL : tkpy_new_ref(object);
}

static kept_call *new_kept(PyObject *module, PyObject *function, PyObject *args, PyObject *kwargs) {
    tkpy_state *state = tkpy_module_state(module);
    kept_call *kept = tkpy_context() ? PyMem_Calloc(1, sizeof *kept) : NULL;
    if (!kept) return NULL;
    kept->state = state;
    kept->module = tkpy_new_ref(module);
    kept->function = tkpy_new_ref(function);
    kept->args = form_of(state, args);
    kept->kwargs = kwargs == Py_None ? NULL : form_of(state, kwargs);
    if (kept->args && (kept->kwargs || kwargs == Py_None)) return kept;
    release_kept(kept);
    return NULL;
}

/* The results hold the call, so its form may be read until they are cleared. Where the call failed
 * it is gone already. */
static PyObject *run(kept_call *kept, const tk_custom *custom, PyObject *args, PyObject *kwargs) {
    tkpy_state *state = kept->state;
    tkpy_leaves leaves = {0};
    tk_arrays results = {0};
    size_t next = 0;
    tk_status status;
    if (!tkpy_tree_flatten(args, &leaves) ||
        (kwargs != Py_None && !tkpy_tree_flatten(kwargs, &leaves))) {
        tkpy_leaves_clear(&leaves);
        release_kept(kept);
        return NULL;
    }
    if (custom)
        status = tk_custom_call(tkpy_context(), custom, leaves.items, leaves.count, &results);
    else
        status = tk_checkpoint(tkpy_context(), kept_function, kept, release_from_graph,
                               leaves.items, leaves.count, &results);
    PyObject *tree = status == TK_OK ? tkpy_tree_rebuild(state, kept->result, results.items, &next)
                                     : tkpy_raise(state, status);
    tk_arrays_clear(&results);
    tkpy_leaves_clear(&leaves);
    return tree;
}

/* _checkpoint(function, args, kwargs) */
static PyObject *checkpoint(PyObject *module, PyObject *arguments) {
    PyObject *function, *args, *kwargs;
    if (!PyArg_ParseTuple(arguments, "OOO", &function, &args, &kwargs)) return NULL;
    kept_call *kept = new_kept(module, function, args, kwargs);
    return kept ? run(kept, NULL, args, kwargs) : NULL;
}

/* _custom(function, vjp, jvp, vmap, args) */
static PyObject *custom(PyObject *module, PyObject *arguments) {
    PyObject *function, *vjp, *jvp, *vmap, *args;
    if (!PyArg_ParseTuple(arguments, "OOOOO", &function, &vjp, &jvp, &vmap, &args)) return NULL;
    kept_call *kept = new_kept(module, function, args, Py_None);
    if (!kept) return NULL;
    kept->vjp = or_null(vjp);
    kept->jvp = or_null(jvp);
    kept->vmap = or_null(vmap);
    tk_custom call = {.size = sizeof call,
                      .function = kept_function,
                      .vjp = kept->vjp ? kept_vjp : NULL,
                      .jvp = kept->jvp ? kept_jvp : NULL,
                      .vmap = kept->vmap ? kept_vmap : NULL,
                      .self = kept,
                      .release = release_from_graph};
    return run(kept, &call, args, Py_None);
}

/* _transforming(): whether this thread is in a function that a transform called */
static PyObject *transforming(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(tk_transforms_active());
}

PyMethodDef tkpy_kept_functions[] = {{"_checkpoint", checkpoint, METH_VARARGS, NULL},
                                     {"_custom", custom, METH_VARARGS, NULL},
                                     {"_transforming", transforming, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
