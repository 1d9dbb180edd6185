/* What `tiki train` is made of, for training loops written in Python: bytes of files, the order of
 * the data, fresh weights, learning rates. The model, the step and the optimizer are Python's own.
 */
#include <string.h>

#include "module.h"
#include "tiki/train.h"

/* ---- data ---- */

static bool paths_of(PyObject *list, const char **paths, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        paths[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!paths[i]) return false;
    }
    return true;
}

/* _corpus(paths) -> bytes */
static PyObject *corpus(PyObject *module, PyObject *list) {
    tk_corpus *loaded = NULL;
    PyObject *bytes = NULL;
    Py_ssize_t count = PyList_Size(list);
    if (count < 0) return NULL;
    const char **paths = PyMem_Malloc(((size_t)count + 1) * sizeof *paths);
    if (!paths) return PyErr_NoMemory();
    if (paths_of(list, paths, count)) {
        tk_status status = tk_corpus_load(paths, (size_t)count, &loaded);
        if (status == TK_OK)
            bytes = PyBytes_FromStringAndSize((const char *)tk_corpus_bytes(loaded),
                                              (Py_ssize_t)tk_corpus_size(loaded));
        else
            tkpy_raise(tkpy_module_state(module), status);
    }
    tk_corpus_free(loaded);
    PyMem_Free(paths);
    return bytes;
}

/* _batch(data, length, batch, seed, index) -> array */
static PyObject *batch(PyObject *module, PyObject *args) {
    tkpy_state *state = tkpy_module_state(module);
    tk_context *context = tkpy_context();
    Py_buffer data;
    long long length, rows, index;
    unsigned long long seed;
    if (!context || !PyArg_ParseTuple(args, "y*LLKL", &data, &length, &rows, &seed, &index))
        return NULL;
    tk_batches batches = {data.buf, (int64_t)data.len, length, rows, seed};
    tk_scope scope = tk_scope_open(context);
    tk_status status = tk_batches_check(&batches);
    PyObject *box = status == TK_OK ? tkpy_box(state, tk_batches_get(context, &batches, index))
                                    : tkpy_raise(state, status);
    tk_scope_close(scope);
    PyBuffer_Release(&data);
    return box;
}

/* ---- weights ---- */

/* _model_init(family, layers, heads, dim, context, seed) -> dictionary of arrays by dotted names */
static PyObject *model_init(PyObject *module, PyObject *args) {
    tkpy_state *state = tkpy_module_state(module);
    tk_context *context = tkpy_context();
    const char *family;
    long long layers, heads, dim, positions;
    unsigned long long seed;
    if (!context ||
        !PyArg_ParseTuple(args, "sLLLLK", &family, &layers, &heads, &dim, &positions, &seed))
        return NULL;
    bool is_gpt2 = !strcmp(family, "gpt2");
    if (!is_gpt2 && strcmp(family, "llama") != 0)
        return PyErr_Format(PyExc_ValueError, "the family is '%s', expected 'gpt2' or 'llama'",
                            family);
    tk_model_config config = tk_model_config_make(is_gpt2 ? TK_MODEL_GPT2 : TK_MODEL_LLAMA, layers,
                                                  heads, dim, positions);
    tk_tree *parameters = tk_tree_new();
    if (!parameters) return PyErr_NoMemory();
    tk_status status = tk_model_config_check(&config);
    if (status == TK_OK) status = tk_model_init(context, &config, seed, parameters);
    PyObject *dict =
        status == TK_OK ? tkpy_dict_of_tree(state, parameters) : tkpy_raise(state, status);
    tk_tree_free(parameters);
    return dict;
}

/* _train_rate(highest, warmup, decay, decay_steps, step) -> float */
static PyObject *train_rate(PyObject *module, PyObject *args) {
    static const char *const decays[] = {"constant", "cosine", "linear"};
    double highest;
    const char *decay;
    long long warmup, decay_steps, step;
    (void)module;
    if (!PyArg_ParseTuple(args, "dLsLL", &highest, &warmup, &decay, &decay_steps, &step))
        return NULL;
    tk_train_options options = tk_train_defaults(NULL);
    options.optimizer.learning_rate = highest;
    options.warmup = warmup;
    options.decay_steps = decay_steps;
    for (int i = 0; i < 3; i++) {
        options.decay = (tk_decay)i;
        if (!strcmp(decays[i], decay)) return PyFloat_FromDouble(tk_train_rate(&options, step));
    }
    return PyErr_Format(PyExc_ValueError,
                        "decay is '%s', expected 'constant', 'cosine' or 'linear'", decay);
}

PyMethodDef tkpy_train_functions[] = {{"_corpus", corpus, METH_O, NULL},
                                      {"_batch", batch, METH_VARARGS, NULL},
                                      {"_model_init", model_init, METH_VARARGS, NULL},
                                      {"_train_rate", train_rate, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
