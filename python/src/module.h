/* What the files of the extension share: the module's state, errors, boxes, conversions.
 *
 * A Python array is a box that owns one handle. Every entry point brackets its work with a scope of
 * the context (tkpy_open, tkpy_close), so intermediate handles need no cleanup and a box keeps just
 * its result, whatever scopes a transform has opened further out. Only public headers of Tiki are
 * used, and the limited API of CPython 3.11, so one binary serves every later version.
 *
 * The interpreter lock is held throughout, except while waiting (tkpy_eval). The graph's lock may
 * be taken under it: nothing that holds the graph's lock ever asks for the interpreter's. */
#ifndef TKPY_MODULE_H
#define TKPY_MODULE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "tiki/devices.h"
#include "tiki/io.h"
#include "tiki/transforms.h"

typedef struct tkpy_state {
    PyTypeObject *array, *iterator, *at, *dtype, *compiled, *kernel, *kernel_builder, *output;
    PyObject *dtypes[TK_DTYPE_COUNT];
    PyObject *axis_error, *dtype_error, *file_error;
    int print_digits;       /* of floats after the point; -1: as few as tell them apart */
    PyObject *random_state; /* a list of one key, as users see it */
} tkpy_state;

typedef struct tkpy_array {
    PyObject_HEAD tk_array handle;
    PyObject *weak;
} tkpy_array;

static inline tkpy_state *tkpy_module_state(PyObject *module) { return PyModule_GetState(module); }

/* The state behind an object of one of the extension's types, none of which can be subclassed. */
static inline tkpy_state *tkpy_state_of(PyObject *object) {
    return PyType_GetModuleState(Py_TYPE(object));
}

static inline PyObject *tkpy_new_ref(PyObject *object) {
    Py_INCREF(object);
    return object;
}

/* ---- context and errors (context.c) ---- */

/* The context of the process, made by the first call; NULL with an exception. */
tk_context *tkpy_context(void);

/* Raises with this thread's message, whose end may have been cut off in the middle of a character.
 */
void tkpy_raise_as(PyObject *exception);

/* Raises the exception for a status with this thread's message; returns NULL. */
PyObject *tkpy_raise(tkpy_state *state, tk_status status);

/* Waits for arrays without the interpreter lock; Ctrl-C interrupts. False with an exception. */
bool tkpy_eval(tkpy_state *state, const tk_array *arrays, size_t count);
bool tkpy_eval_one(tkpy_state *state, tk_array array);

/* False once the interpreter ends: what would need its lock then stays as it is. Any thread. */
bool tkpy_is_running(void);

/* Runs the release of a Python object from any thread, with or without the interpreter lock. */
void tkpy_release_object(void *object);

extern PyMethodDef tkpy_context_functions[];

/* ---- arrays (array.c) ---- */

extern PyType_Spec tkpy_array_spec, tkpy_iterator_spec;

bool tkpy_is_array(PyObject *object);
static inline tk_array tkpy_handle(PyObject *object) { return ((tkpy_array *)object)->handle; }

/* A new box, or NULL with the exception of an array that carries an error. The handle may belong to
 * a scope; the box keeps its own. */
PyObject *tkpy_box(tkpy_state *state, tk_array array);

/* Replaces the handle in a box. False with an exception. */
bool tkpy_rebox(tkpy_state *state, PyObject *box, tk_array array);

/* List or tuple of boxes; clears `arrays`. */
PyObject *tkpy_box_list(tkpy_state *state, tk_arrays *arrays, bool as_tuple);

/* ---- conversions (convert.c) ---- */

enum { TKPY_NO_DTYPE = -1 };

/* An operand from an array, a Python number (weakly typed) or an array-like object. 1 when it is
 * one, 0 when it is something else (no exception), -1 with an exception. Needs an open scope. */
int tkpy_operand(tkpy_state *state, PyObject *object, tk_array *out_array);

/* The operand made of `value` that is written into `base`: a Python integer must fit its dtype. */
tk_array tkpy_fitting(tk_array base, PyObject *value, tk_array operand);

/* An array from anything that can become one; `dtype` may be TKPY_NO_DTYPE. TK_NO_ARRAY with an
 * exception. Needs an open scope. */
tk_array tkpy_from_object(tkpy_state *state, PyObject *object, int dtype);

PyObject *tkpy_to_list(tkpy_state *state, tk_array array);
PyObject *tkpy_item(tkpy_state *state, tk_array array);
bool tkpy_axes_of(PyObject *object, const char *what, tk_axes *out_axes);

/* ---- dtypes (dtype.c) ---- */

extern PyType_Spec tkpy_dtype_spec;
bool tkpy_add_dtypes(tkpy_state *state, PyObject *module);

/* A dtype from a Dtype; false with a TypeError that names `what`. */
bool tkpy_dtype_of(tkpy_state *state, PyObject *object, const char *what, tk_dtype *out_dtype);

/* ---- indexing (index.c, at.c) ---- */

PyObject *tkpy_getitem(PyObject *self, PyObject *key);
int tkpy_setitem(PyObject *self, PyObject *key, PyObject *value);

typedef enum tkpy_update {
    TKPY_SET,
    TKPY_ADD,
    TKPY_MULTIPLY,
    TKPY_MAXIMUM,
    TKPY_MINIMUM
} tkpy_update;

/* From here on what is made of Python's values lies on the array's device; gives the stream that
 * was in use before, to be used again. */
tk_stream_id tkpy_beside(tk_array array);

/* `base` with base[key] replaced by, or combined with, `value`. Needs an open scope; TK_NO_ARRAY
 * with an exception. */
tk_array tkpy_update_at(tkpy_state *state, tk_array base, PyObject *key, tk_array value,
                        tkpy_update update);

extern PyType_Spec tkpy_at_spec;
PyObject *tkpy_at_new(tkpy_state *state, PyObject *array);

/* ---- memory of others (buffer.c, dlpack.c) ---- */

int tkpy_get_buffer(PyObject *self, Py_buffer *view, int flags);

/* Raises what the latest request of this thread for memory, if it was for this array's, failed
 * with; false when it did not. */
bool tkpy_raise_dropped(const PyObject *array);
void tkpy_release_buffer(PyObject *self, Py_buffer *view);

/* An array of the memory of an object with the buffer protocol; TK_NO_ARRAY with an exception.
 * Doubles become float32 where no dtype is asked for, as in MLX. */
tk_array tkpy_from_buffer(tkpy_state *state, PyObject *object, int dtype);

/* An array that shares the memory of an object with the buffer protocol, which must not be written
 * from then on; None where a copy would be needed. */
PyObject *tkpy_share(PyObject *module, PyObject *object);

PyObject *tkpy_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tkpy_dlpack_device(PyObject *self, PyObject *unused);
PyObject *tkpy_from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- trees, transforms, files ---- */

/* Dictionaries of arrays and trees of the library. NULL and false with an exception. */
PyObject *tkpy_dict_of_tree(tkpy_state *state, const tk_tree *tree);
bool tkpy_tree_of_dict(tkpy_state *state, PyObject *dict, tk_tree *tree);

extern PyMethodDef tkpy_transform_functions[], tkpy_kept_functions[], tkpy_io_functions[],
    tkpy_optimizer_functions[], tkpy_export_functions[], tkpy_gguf_functions[],
    tkpy_train_functions[];
extern PyType_Spec tkpy_compiled_spec;

/* ---- launches (launch.c) ---- */

extern PyType_Spec tkpy_output_spec;
PyObject *tkpy_output(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *tkpy_launch(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* The same behind a text that says where the launch is written. */
PyObject *tkpy_launch_at(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- generated from surface.def ---- */

extern PyMethodDef tkpy_core_functions[], tkpy_random_functions[], tkpy_fast_functions[],
    tkpy_fft_functions[], tkpy_linalg_functions[], tkpy_nn_functions[], tkpy_array_methods[];

/* ---- the layout algebra (layout.c) ---- */

extern PyMethodDef tkpy_layout_functions[];

#endif
