/* The C library's optimizers on Python's trees.
 *
 * An optimizer here has no life of its own: the state is a Python dictionary, as users of MLX know
 * it, and each call makes a C optimizer, gives it the state under dotted names, steps and writes
 * back. Rejected: a Python type around tk_optimizer, whose state would have to be kept equal to the
 * dictionary that users read, replace and trace through compiled functions. */
#include <stddef.h>
#include <string.h>

#include "module.h"
#include "tiki/optim.h"

/* ---- options ---- */

typedef enum field_type { NUMBER, FLAG, COUNT } field_type;

static const struct {
    const char *name;
    size_t offset;
    field_type type;
} fields[] = {
#define FIELD(name, type)                                                                          \
    { #name, offsetof(tk_optimizer_options, name), type }
    FIELD(beta1, NUMBER),          FIELD(beta2, NUMBER),         FIELD(epsilon, NUMBER),
    FIELD(weight_decay, NUMBER),   FIELD(momentum, NUMBER),      FIELD(dampening, NUMBER),
    FIELD(decay, NUMBER),          FIELD(nesterov, FLAG),        FIELD(bias_correction, FLAG),
    FIELD(epsilon_square, NUMBER), FIELD(epsilon_scale, NUMBER), FIELD(clip_threshold, NUMBER),
    FIELD(scale_parameter, FLAG),  FIELD(relative_step, FLAG),   FIELD(warmup_init, FLAG),
    FIELD(newton_steps, COUNT),
#undef FIELD
};

static bool set_field(tk_optimizer_options *options, size_t i, PyObject *value) {
    char *at = (char *)options + fields[i].offset;
    if (fields[i].type == NUMBER) {
        double number = PyFloat_AsDouble(value);
        memcpy(at, &number, sizeof number);
    } else if (fields[i].type == FLAG) {
        bool flag = PyObject_IsTrue(value) == 1;
        memcpy(at, &flag, sizeof flag);
    } else {
        int count = (int)PyLong_AsLong(value);
        memcpy(at, &count, sizeof count);
    }
    return !PyErr_Occurred();
}

static bool read_options(tkpy_state *state, const char *kind, PyObject *dict,
                         tk_optimizer_options *out_options) {
    tk_optimizer_kind found;
    tk_status status = tk_optimizer_find(kind, &found);
    if (status != TK_OK) return tkpy_raise(state, status), false;
    *out_options = tk_optimizer_defaults(found);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        PyObject *value = PyDict_GetItemString(dict, fields[i].name);
        if (value && !set_field(out_options, i, value)) return false;
    }
    return true;
}

/* ---- trees ---- */

static bool set_one(tkpy_state *state, tk_tree *tree, const char *name, PyObject *array) {
    if (!tkpy_is_array(array)) {
        PyErr_Format(PyExc_TypeError, "'%s' of an optimizer must be an array, not %R", name,
                     (PyObject *)Py_TYPE(array));
        return false;
    }
    tk_status status = tk_tree_set(tree, name, tkpy_handle(array));
    return status == TK_OK || (tkpy_raise(state, status), false);
}

static const char *text_at(PyObject *list, Py_ssize_t i) {
    PyObject *text = PyList_GetItem(list, i);
    return text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
}

static bool set_all(tkpy_state *state, tk_tree *tree, PyObject *names, PyObject *arrays) {
    for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
        const char *name = text_at(names, i);
        PyObject *array = name ? PyList_GetItem(arrays, i) : NULL;
        if (!array || !set_one(state, tree, name, array)) return false;
    }
    return true;
}

/* Puts the dictionary of one parameter's states into the tree, under its name. */
static bool set_states(tkpy_state *state, tk_tree *tree, const char *name, PyObject *states) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(states, &at, &key, &value)) {
        PyObject *full = PyUnicode_FromFormat("%s.%U", name, key);
        const char *text = full ? PyUnicode_AsUTF8AndSize(full, NULL) : NULL;
        bool ok = text && set_one(state, tree, text, value);
        Py_XDECREF(full);
        if (!ok) return false;
    }
    return true;
}

/* Takes the states of all parameters out of the tree, whose names are "parameter.state". */
static bool take_states(tkpy_state *state, const tk_tree *tree, const tk_tree *parameters,
                        PyObject *all_states) {
    for (size_t i = 0; i < tk_tree_count(tree); i++) {
        const char *name = tk_tree_name(tree, i), *dot = strrchr(name, '.');
        PyObject *parameter = dot ? PyUnicode_FromStringAndSize(name, dot - name) : NULL;
        const char *text = parameter ? PyUnicode_AsUTF8AndSize(parameter, NULL) : NULL;
        size_t at = text ? tk_tree_find(parameters, text) : tk_tree_count(parameters);
        Py_XDECREF(parameter);
        if (at == tk_tree_count(parameters)) continue;
        PyObject *states = PyList_GetItem(all_states, (Py_ssize_t)at);
        PyObject *box = states ? tkpy_box(state, tk_tree_at(tree, i)) : NULL;
        int failed = box ? PyDict_SetItemString(states, dot + 1, box) : -1;
        Py_XDECREF(box);
        if (failed) return false;
    }
    return true;
}

static PyObject *take_all(tkpy_state *state, const tk_tree *tree) {
    PyObject *list = PyList_New((Py_ssize_t)tk_tree_count(tree));
    for (size_t i = 0; list && i < tk_tree_count(tree); i++) {
        PyObject *box = tkpy_box(state, tk_tree_at(tree, i));
        if (!box || PyList_SetItem(list, (Py_ssize_t)i, box) < 0) Py_CLEAR(list);
    }
    return list;
}

/* ---- functions ---- */

/* A call under way. */
typedef struct stepping {
    tkpy_state *state;
    tk_optimizer *optimizer;
    tk_tree *parameters, *gradients;
} stepping;

static bool begin(stepping *s, PyObject *module, const char *kind, PyObject *options) {
    tk_optimizer_options read;
    tk_context *context = tkpy_context();
    *s = (stepping){.state = tkpy_module_state(module)};
    if (!context || !read_options(s->state, kind, options, &read)) return false;
    tk_status status = tk_optimizer_create(context, &read, &s->optimizer);
    s->parameters = tk_tree_new();
    s->gradients = tk_tree_new();
    if (status == TK_OK && s->parameters && s->gradients) return true;
    if (status == TK_OK)
        PyErr_NoMemory();
    else
        tkpy_raise(s->state, status);
    return false;
}

static void end(stepping *s) {
    tk_optimizer_free(s->optimizer);
    tk_tree_free(s->parameters);
    tk_tree_free(s->gradients);
}

static bool same_lengths(PyObject *names, PyObject *parameters, PyObject *gradients,
                         PyObject *states) {
    Py_ssize_t count = PyList_Size(names);
    if (PyList_Size(parameters) == count && PyList_Size(gradients) == count &&
        PyList_Size(states) == count)
        return true;
    PyErr_SetString(PyExc_ValueError, "the lists for an optimizer's step differ in length");
    return false;
}

static bool step_with(stepping *s, PyObject *names, PyObject *states) {
    tk_tree *tree = tk_optimizer_state(s->optimizer);
    for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
        const char *name = text_at(names, i);
        PyObject *own = name ? PyList_GetItem(states, i) : NULL;
        if (!own || !set_states(s->state, tree, name, own)) return false;
    }
    tk_status status = tk_optimizer_step(s->optimizer, s->parameters, s->gradients);
    if (status != TK_OK) return tkpy_raise(s->state, status), false;
    return take_states(s->state, tree, s->parameters, states);
}

/* _optimizer_step(kind, options, step, rate, names, parameters, gradients, states)
 * -> the next parameters; `step` counts the steps before this one, and the dictionaries in `states`
 * get the next states. */
static PyObject *optimizer_step(PyObject *module, PyObject *args) {
    const char *kind;
    PyObject *options, *step, *rate, *names, *parameters, *gradients, *states, *result = NULL;
    stepping s;
    if (!PyArg_ParseTuple(args, "sO!OOO!O!O!O!", &kind, &PyDict_Type, &options, &step, &rate,
                          &PyList_Type, &names, &PyList_Type, &parameters, &PyList_Type, &gradients,
                          &PyList_Type, &states) ||
        !same_lengths(names, parameters, gradients, states))
        return NULL;
    if (begin(&s, module, kind, options)) {
        tk_tree *tree = tk_optimizer_state(s.optimizer);
        if (set_one(s.state, tree, "step", step) && set_one(s.state, tree, "learning_rate", rate) &&
            set_all(s.state, s.parameters, names, parameters) &&
            set_all(s.state, s.gradients, names, gradients) && step_with(&s, names, states))
            result = take_all(s.state, s.parameters);
    }
    end(&s);
    return result;
}

/* _optimizer_init(kind, options, parameter, states): adds the parameter's first states. */
static PyObject *optimizer_init(PyObject *module, PyObject *args) {
    const char *kind;
    PyObject *options, *parameter, *states;
    stepping s;
    if (!PyArg_ParseTuple(args, "sO!OO!", &kind, &PyDict_Type, &options, &parameter, &PyDict_Type,
                          &states))
        return NULL;
    PyObject *list = PyList_New(1);
    if (!list) return NULL;
    PyList_SetItem(list, 0, tkpy_new_ref(states));
    bool ok =
        begin(&s, module, kind, options) && set_one(s.state, s.parameters, "parameter", parameter);
    if (ok) {
        tk_status status = tk_optimizer_init(s.optimizer, s.parameters);
        ok = status == TK_OK
                 ? take_states(s.state, tk_optimizer_state(s.optimizer), s.parameters, list)
                 : (tkpy_raise(s.state, status), false);
    }
    end(&s);
    Py_DECREF(list);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

/* _clip_global_norm(gradients, max_norm) -> (gradients, norm) */
static PyObject *clip_global_norm(PyObject *module, PyObject *args) {
    PyObject *gradients, *list = NULL, *box = NULL, *result = NULL;
    double max_norm;
    if (!PyArg_ParseTuple(args, "O!d", &PyList_Type, &gradients, &max_norm) || !tkpy_context())
        return NULL;
    tkpy_state *state = tkpy_module_state(module);
    tk_tree *tree = tk_tree_new();
    if (!tree) return PyErr_NoMemory();
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PyList_Size(gradients); i++) {
        char name[24];
        PyOS_snprintf(name, sizeof name, "%zd", i);
        ok = set_one(state, tree, name, PyList_GetItem(gradients, i));
    }
    tk_array norm = TK_NO_ARRAY;
    if (ok) {
        tk_status status = tk_clip_global_norm(tkpy_context(), tree, max_norm, &norm);
        if (status != TK_OK) tkpy_raise(state, status);
    }
    if (norm.node) {
        list = take_all(state, tree);
        box = list ? tkpy_box(state, norm) : NULL;
        tk_release(norm);
    }
    if (box) result = PyTuple_Pack(2, list, box);
    Py_XDECREF(list);
    Py_XDECREF(box);
    tk_tree_free(tree);
    return result;
}

PyMethodDef tkpy_optimizer_functions[] = {
    {"_optimizer_step", optimizer_step, METH_VARARGS, NULL},
    {"_optimizer_init", optimizer_init, METH_VARARGS, NULL},
    {"_clip_global_norm", clip_global_norm, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
