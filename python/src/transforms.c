/* Transforms of Python functions, on the C library's.
 *
 * A Python function becomes a C callback: it rebuilds the trees of arguments with the arrays that
 * the transform gives, calls, and hands the arrays of the result back. What a user calls (closures
 * that remember argnums, decorators) is Python, in tiki/_transforms.py. */
#include "tree.h"

/* A call under way. `args` and `kwargs` are the caller's; arrays at `traced` are replaced. */
typedef struct calling {
    tkpy_state *state;
    PyObject *function, *args, *kwargs;
    PyObject *traced; /* a list of what is replaced: positions (int) and names (str); NULL: all */
    PyObject *result; /* what the function returned */
} calling;

static tk_status raised(void) {
    return tk_error_set(TK_INVALID_ARGUMENT, "the Python function raised an exception");
}

/* ---- arguments ---- */

static PyObject *traced_at(const calling *c, Py_ssize_t i) {
    PyObject *which = PyList_GetItem(c->traced, i);
    if (!PyLong_Check(which)) {
        PyObject *value = c->kwargs ? PyDict_GetItem(c->kwargs, which) : NULL;
        if (!value) PyErr_Format(PyExc_ValueError, "there is no argument named %R", which);
        return value;
    }
    Py_ssize_t at = PyLong_AsSsize_t(which), count = PyTuple_Size(c->args);
    if (at >= 0 && at < count) return PyTuple_GetItem(c->args, at);
    PyErr_Format(PyExc_ValueError, "argument number %zd of %zd arguments", at, count);
    return NULL;
}

static bool flatten_traced(const calling *c, tkpy_leaves *leaves) {
    if (!c->traced)
        return tkpy_tree_flatten(c->args, leaves) &&
               (!c->kwargs || tkpy_tree_flatten(c->kwargs, leaves));
    Py_ssize_t count = PyList_Size(c->traced);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *tree = traced_at(c, i);
        if (!tree || !tkpy_tree_flatten(tree, leaves)) return false;
    }
    return true;
}

static PyObject *copy_tuple(PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    PyObject *copy = PyTuple_New(count);
    for (Py_ssize_t i = 0; copy && i < count; i++)
        PyTuple_SetItem(copy, i, tkpy_new_ref(PyTuple_GetItem(tuple, i)));
    return copy;
}

/* Replaces the traced trees in copies of the arguments. */
static bool substitute(const calling *c, PyObject *args, PyObject *kwargs, const tk_array *items) {
    size_t next = 0;
    Py_ssize_t count = PyList_Size(c->traced);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *which = PyList_GetItem(c->traced, i), *tree = traced_at(c, i);
        PyObject *made = tree ? tkpy_tree_rebuild(c->state, tree, items, &next) : NULL;
        if (!made) return false;
        if (PyLong_Check(which)) {
            if (PyTuple_SetItem(args, PyLong_AsSsize_t(which), made) < 0) return false;
        } else {
            int failed = PyDict_SetItem(kwargs, which, made);
            Py_DECREF(made);
            if (failed) return false;
        }
    }
    return true;
}

static PyObject *call_python(const calling *c, const tk_array *items) {
    PyObject *args, *kwargs = NULL, *result = NULL;
    bool ok;
    if (c->traced) {
        args = copy_tuple(c->args);
        kwargs = c->kwargs ? PyDict_Copy(c->kwargs) : NULL;
        ok = args && (kwargs || !c->kwargs) && substitute(c, args, kwargs, items);
    } else {
        size_t next = 0;
        args = tkpy_tree_rebuild(c->state, c->args, items, &next);
        if (c->kwargs && args) kwargs = tkpy_tree_rebuild(c->state, c->kwargs, items, &next);
        ok = args && (kwargs || !c->kwargs);
    }
    if (ok) result = PyObject_Call(c->function, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static tk_status push_tree(PyObject *tree, tk_arrays *results) {
    tkpy_leaves leaves = {0};
    tk_status status = TK_OK;
    if (!tkpy_tree_flatten(tree, &leaves)) status = raised();
    for (size_t i = 0; status == TK_OK && i < leaves.count; i++)
        status = tk_arrays_push(results, leaves.items[i]);
    tkpy_leaves_clear(&leaves);
    return status;
}

/* The callback of all transforms here. */
static tk_status call_back(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    calling *c = self;
    (void)n_args;
    PyObject *result = call_python(c, args);
    Py_XDECREF(c->result);
    c->result = result;
    return result ? push_tree(result, results) : raised();
}

static PyObject *rebuild_result(const calling *c, tk_arrays *arrays) {
    size_t next = 0;
    return tkpy_tree_rebuild(c->state, c->result, arrays->items, &next);
}

/* Arguments (function, args tuple, kwargs dict or None). */
static bool begin(calling *c, PyObject *module, PyObject *function, PyObject *args,
                  PyObject *kwargs) {
    *c = (calling){.state = tkpy_module_state(module),
                   .function = function,
                   .args = args,
                   .kwargs = kwargs == Py_None ? NULL : kwargs};
    return tkpy_context() != NULL;
}

/* ---- reverse mode ---- */

/* The loss is the result or the first of a tuple or list of results. */
static bool check_loss(PyObject *result) {
    PyObject *loss = result;
    if (PyTuple_Check(result) && PyTuple_Size(result) > 0) loss = PyTuple_GetItem(result, 0);
    if (PyList_Check(result) && PyList_Size(result) > 0) loss = PyList_GetItem(result, 0);
    if (tkpy_is_array(loss)) return true;
    PyErr_Format(PyExc_ValueError,
                 "the function to differentiate must return a scalar array, or a tuple that "
                 "begins with one, not %R",
                 (PyObject *)Py_TYPE(loss));
    return false;
}

static tk_status call_back_loss(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    calling *c = self;
    (void)n_args;
    PyObject *result = call_python(c, args);
    Py_XDECREF(c->result);
    c->result = result;
    if (!result || !check_loss(result)) return raised();
    return push_tree(result, results);
}

/* One rebuilt tree for each traced argument. */
static PyObject *gradient_trees(const calling *c, const tk_arrays *gradients) {
    size_t next = 0;
    Py_ssize_t count = PyList_Size(c->traced);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *tree = traced_at(c, i);
        PyObject *made = tree ? tkpy_tree_rebuild(c->state, tree, gradients->items, &next) : NULL;
        if (!made || PyList_SetItem(list, i, made) < 0) Py_CLEAR(list);
    }
    return list;
}

/* _value_and_grad(function, traced, args, kwargs) -> (result, [gradient of each traced]) */
static PyObject *value_and_grad(PyObject *module, PyObject *arguments) {
    PyObject *function, *traced, *args, *kwargs;
    calling c;
    if (!PyArg_ParseTuple(arguments, "OOOO", &function, &traced, &args, &kwargs) ||
        !begin(&c, module, function, args, kwargs))
        return NULL;
    c.traced = traced;
    tkpy_leaves leaves = {0};
    tk_arrays values = {0}, gradients = {0};
    PyObject *trees = NULL, *result = NULL;
    if (flatten_traced(&c, &leaves)) {
        int *argnums = PyMem_Malloc((leaves.count + 1) * sizeof *argnums);
        for (size_t i = 0; argnums && i < leaves.count; i++) argnums[i] = (int)i;
        tk_status status = TK_OUT_OF_MEMORY;
        if (argnums)
            status = tk_value_and_grad(tkpy_context(), call_back_loss, &c, leaves.items,
                                       leaves.count, argnums, leaves.count, &values, &gradients);
        PyMem_Free(argnums);
        if (status == TK_OK)
            trees = gradient_trees(&c, &gradients);
        else
            tkpy_raise(c.state, status);
    }
    if (trees) result = PyTuple_Pack(2, c.result, trees);
    Py_XDECREF(trees);
    Py_XDECREF(c.result);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tkpy_leaves_clear(&leaves);
    return result;
}

/* _vjp(function, primals, cotangents) -> (values, gradients), lists */
static PyObject *vjp(PyObject *module, PyObject *arguments) {
    PyObject *function, *primals, *cotangents, *result = NULL;
    calling c;
    if (!PyArg_ParseTuple(arguments, "OOO", &function, &primals, &cotangents) ||
        !begin(&c, module, function, primals, Py_None))
        return NULL;
    tkpy_leaves args = {0}, given = {0};
    tk_arrays values = {0}, gradients = {0};
    if (tkpy_tree_flatten(primals, &args) && tkpy_tree_flatten(cotangents, &given)) {
        tk_status status = tk_vjp(tkpy_context(), call_back, &c, args.items, args.count,
                                  given.items, given.count, &values, &gradients);
        if (status == TK_OK) {
            PyObject *first = tkpy_box_list(c.state, &values, false);
            PyObject *second = first ? tkpy_box_list(c.state, &gradients, false) : NULL;
            if (second) result = PyTuple_Pack(2, first, second);
            Py_XDECREF(first);
            Py_XDECREF(second);
        } else {
            tkpy_raise(c.state, status);
        }
    }
    Py_XDECREF(c.result);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tkpy_leaves_clear(&args);
    tkpy_leaves_clear(&given);
    return result;
}

/* _jvp(function, primals, tangents) -> (values, tangents), lists */
static PyObject *jvp(PyObject *module, PyObject *arguments) {
    PyObject *function, *primals, *tangents, *result = NULL;
    calling c;
    if (!PyArg_ParseTuple(arguments, "OOO", &function, &primals, &tangents) ||
        !begin(&c, module, function, primals, Py_None))
        return NULL;
    tkpy_leaves args = {0}, given = {0};
    tk_arrays values = {0}, out = {0};
    bool ok = tkpy_tree_flatten(primals, &args) && tkpy_tree_flatten(tangents, &given);
    if (ok && args.count != given.count) {
        PyErr_Format(PyExc_ValueError, "%zu tangents were given for %zu arrays", given.count,
                     args.count);
        ok = false;
    }
    if (ok) {
        tk_status status = tk_jvp(tkpy_context(), call_back, &c, args.items, args.count,
                                  given.items, &values, &out);
        if (status == TK_OK) {
            PyObject *first = tkpy_box_list(c.state, &values, false);
            PyObject *second = first ? tkpy_box_list(c.state, &out, false) : NULL;
            if (second) result = PyTuple_Pack(2, first, second);
            Py_XDECREF(first);
            Py_XDECREF(second);
        } else {
            tkpy_raise(c.state, status);
        }
    }
    Py_XDECREF(c.result);
    tk_arrays_clear(&values);
    tk_arrays_clear(&out);
    tkpy_leaves_clear(&args);
    tkpy_leaves_clear(&given);
    return result;
}

/* ---- vmap ---- */

/* Appends one axis for each array of `tree`; `axes` is an integer or None for all below it, or a
 * tree of the same form. */
static bool flatten_axes(PyObject *tree, PyObject *axes, int **list, size_t *count, int unmapped) {
    bool is_leaf = tkpy_is_array(tree);
    if (is_leaf) {
        if (axes != Py_None && !PyLong_Check(axes)) {
            PyErr_Format(PyExc_ValueError, "vmap: an axis must be an integer or None, not %R",
                         (PyObject *)Py_TYPE(axes));
            return false;
        }
        int *longer = PyMem_Realloc(*list, (*count + 1) * sizeof **list);
        if (!longer) return PyErr_NoMemory(), false;
        *list = longer;
        longer[(*count)++] = axes == Py_None ? unmapped : (int)PyLong_AsLong(axes);
        return !PyErr_Occurred();
    }
    bool same_for_all = axes == Py_None || PyLong_Check(axes);
    if (PyDict_Check(tree)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(tree, &at, &key, &value)) {
            PyObject *below = same_for_all ? axes : PyObject_GetItem(axes, key);
            bool ok = below && flatten_axes(value, below, list, count, unmapped);
            if (!same_for_all) Py_XDECREF(below);
            if (!ok) return false;
        }
        return true;
    }
    if (!PyList_Check(tree) && !PyTuple_Check(tree)) return true;
    Py_ssize_t length = PySequence_Size(tree);
    if (!same_for_all && PySequence_Size(axes) != length) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "vmap: the axes do not have the form of the %zd arrays",
                     length);
        return false;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *child = PySequence_GetItem(tree, i);
        PyObject *below = same_for_all ? tkpy_new_ref(axes) : PySequence_GetItem(axes, i);
        bool ok = child && below && flatten_axes(child, below, list, count, unmapped);
        Py_XDECREF(child);
        Py_XDECREF(below);
        if (!ok) return false;
    }
    return true;
}

/* Batches are in front in what C gives; a result whose axis is None is the same for all. */
static PyObject *place_results(calling *c, tk_arrays *results, PyObject *out_axes) {
    int *axes = NULL;
    size_t count = 0;
    PyObject *tree = NULL;
    tk_scope scope = tk_scope_open(tkpy_context());
    if (flatten_axes(c->result, out_axes, &axes, &count, 0)) {
        tk_arrays moved = {0};
        tk_status status = TK_OK;
        for (size_t i = 0; status == TK_OK && i < count; i++) {
            tk_array a = results->items[i];
            status = tk_arrays_push(&moved, axes[i] == 0 ? a : tk_moveaxis(a, 0, axes[i]));
        }
        tree = status == TK_OK ? rebuild_result(c, &moved) : tkpy_raise(c->state, status);
        tk_arrays_clear(&moved);
    }
    tk_scope_close(scope);
    PyMem_Free(axes);
    return tree;
}

/* _vmap(function, in_axes, out_axes, args) */
static PyObject *vmap(PyObject *module, PyObject *arguments) {
    PyObject *function, *in_axes, *out_axes, *args, *result = NULL;
    calling c;
    if (!PyArg_ParseTuple(arguments, "OOOO", &function, &in_axes, &out_axes, &args) ||
        !begin(&c, module, function, args, Py_None))
        return NULL;
    tkpy_leaves leaves = {0};
    tk_arrays results = {0};
    int *axes = NULL;
    size_t count = 0;
    if (tkpy_tree_flatten(args, &leaves) &&
        flatten_axes(args, in_axes, &axes, &count, TK_UNMAPPED)) {
        tk_status status = tk_vmap(tkpy_context(), call_back, &c, leaves.items, leaves.count, axes,
                                   NULL, &results);
        result =
            status == TK_OK ? place_results(&c, &results, out_axes) : tkpy_raise(c.state, status);
    }
    PyMem_Free(axes);
    Py_XDECREF(c.result);
    tk_arrays_clear(&results);
    tkpy_leaves_clear(&leaves);
    return result;
}

/* ---- evaluation ---- */

static PyObject *eval_trees(PyObject *module, PyObject *args) {
    tkpy_leaves leaves = {0};
    bool ok = tkpy_tree_flatten(args, &leaves) &&
              tkpy_eval(tkpy_module_state(module), leaves.items, leaves.count);
    tkpy_leaves_clear(&leaves);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

static PyObject *async_eval_trees(PyObject *module, PyObject *args) {
    tkpy_leaves leaves = {0};
    tk_status status = TK_OK;
    bool ok = tkpy_tree_flatten(args, &leaves);
    if (ok && leaves.count) status = tk_async_eval(leaves.items, leaves.count);
    tkpy_leaves_clear(&leaves);
    if (!ok) return NULL;
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    Py_RETURN_NONE;
}

PyMethodDef tkpy_transform_functions[] = {
    {"eval", eval_trees, METH_VARARGS,
     "eval(*args)\n--\n\nCompute all arrays in trees of lists, tuples and dictionaries."},
    {"async_eval", async_eval_trees, METH_VARARGS,
     "async_eval(*args)\n--\n\nStart computing all arrays in trees, without waiting."},
    {"_value_and_grad", value_and_grad, METH_VARARGS, NULL},
    {"_vjp", vjp, METH_VARARGS, NULL},
    {"_jvp", jvp, METH_VARARGS, NULL},
    {"_vmap", vmap, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
