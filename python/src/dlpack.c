/* DLPack, both ways: the memory of an array is handed over without a copy.
 *
 * The structures are those of the published header (version 1.1), declared here: they are the
 * protocol. Exports are versioned where the consumer asks for version 1 and carry the read-only
 * flag then; older consumers get the unversioned capsule, which cannot say it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
} dl_type;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t rank;
    dl_type dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *owner;
    void (*release)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    uint32_t major, minor;
    void *owner;
    void (*release)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_READ_ONLY = 1, DL_COPIED = 2 }; /* flags */
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };

/* One allocation: what is handed out, its lists, and the handle behind it. */
typedef struct export_block {
    union {
        dl_managed managed;
        dl_versioned versioned;
    };
    tk_array kept;
    int64_t shape[TK_AXES_MAX], strides[TK_AXES_MAX];
} export_block;

static dl_type type_of(tk_dtype dtype) {
    static const uint8_t codes[] = {[TK_KIND_BOOL] = DL_BOOL,
                                    [TK_KIND_UNSIGNED] = DL_UINT,
                                    [TK_KIND_SIGNED] = DL_INT,
                                    [TK_KIND_FLOAT] = DL_FLOAT,
                                    [TK_KIND_COMPLEX] = DL_COMPLEX};
    uint8_t code = dtype == TK_BFLOAT16 ? DL_BFLOAT : codes[tk_dtype_kind(dtype)];
    return (dl_type){code, (uint8_t)(8 * tk_dtype_size(dtype)), 1};
}

static bool dtype_of(dl_type type, tk_dtype *out) {
    for (int i = 0; i < TK_DTYPE_COUNT; i++) {
        dl_type candidate = type_of((tk_dtype)i);
        if (candidate.code != type.code || candidate.bits != type.bits || type.lanes != 1) continue;
        *out = (tk_dtype)i;
        return true;
    }
    return false;
}

/* ---- out ---- */

static void release_block(export_block *block) {
    tk_release_there(block->kept);
    free(block);
}

static void release_managed(dl_managed *self) { release_block(self->owner); }
static void release_versioned(dl_versioned *self) { release_block(self->owner); }

/* A capsule that nobody consumed still owns its block; a consumed one has another name. */
static void capsule_dealloc(PyObject *capsule) {
    export_block *block = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        block = ((dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->owner;
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        block = ((dl_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->owner;
    if (block) release_block(block);
}

/* Arrays on GPUs are handed over where they are, others as memory of the processor. */
static dl_device device_of(tk_array array) {
    const char *name = tk_device_name(tk_array_device(array));
    if (!name || strncmp(name, "cuda:", 5)) return (dl_device){DL_CPU, 0};
    return (dl_device){DL_CUDA, atoi(name + 5)};
}

static void fill_tensor(export_block *block, dl_tensor *tensor, const tk_strided *view) {
    memcpy(block->shape, view->shape, sizeof block->shape);
    memcpy(block->strides, view->strides, sizeof block->strides);
    *tensor = (dl_tensor){.data = view->data,
                          .device = device_of(block->kept),
                          .rank = view->rank,
                          .dtype = type_of(view->dtype),
                          .shape = block->shape,
                          .strides = block->strides};
}

/* All work on the memory is done then, so it is right on whatever stream the consumer has. */
static tk_status view_of(tk_array array, tk_strided *view) {
    return device_of(array).type == DL_CUDA ? tk_array_view_there(array, view)
                                            : tk_array_view(array, view);
}

static PyObject *make_capsule(tkpy_state *state, tk_array array, bool is_versioned,
                              uint64_t flags) {
    tk_strided view;
    export_block *block = calloc(1, sizeof *block);
    if (!block) return PyErr_NoMemory();
    block->kept = tk_keep(array);
    tk_status status = TK_OK;
    if (!tkpy_eval_one(state, block->kept) || (status = view_of(block->kept, &view)) != TK_OK) {
        release_block(block);
        return tkpy_raise(state, status);
    }
    if (is_versioned) {
        block->versioned = (dl_versioned){
            .major = 1, .minor = 1, .owner = block, .release = release_versioned, .flags = flags};
        fill_tensor(block, &block->versioned.tensor, &view);
        return PyCapsule_New(&block->versioned, "dltensor_versioned", capsule_dealloc);
    }
    block->managed = (dl_managed){.owner = block, .release = release_managed};
    fill_tensor(block, &block->managed.tensor, &view);
    return PyCapsule_New(&block->managed, "dltensor", capsule_dealloc);
}

PyObject *tkpy_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    tkpy_state *state = tkpy_state_of(self);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    long major = 0, minor = 0;
    if (version != Py_None && !PyArg_ParseTuple(version, "ll", &major, &minor)) return NULL;
    dl_device own = device_of(tkpy_handle(self));
    if (device != Py_None) {
        long type, id;
        if (!PyArg_ParseTuple(device, "ll", &type, &id)) return NULL;
        if (type != own.type || id != own.id) {
            PyErr_Format(PyExc_BufferError,
                         "the array is on device (%d, %d), device (%ld, %ld) was asked",
                         (int)own.type, (int)own.id, type, id);
            return NULL;
        }
    }
    if (copy == Py_True && own.type == DL_CUDA) {
        PyErr_SetString(PyExc_BufferError, "memory of a GPU is shared, not copied: copy the array");
        return NULL;
    }
    if (copy != Py_True) return make_capsule(state, tkpy_handle(self), major >= 1, DL_READ_ONLY);
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_strided view;
    tk_array array = tkpy_handle(self);
    PyObject *capsule = NULL;
    if (tkpy_eval_one(state, array) && tk_array_view(array, &view) == TK_OK) {
        tk_array fresh = tk_from_data(tkpy_context(), NULL, TK_SHAPE(0), view.dtype);
        void *data = PyMem_Malloc((size_t)view.size * tk_dtype_size(view.dtype) + 1);
        if (data &&
            tk_copy_out(array, data, (size_t)view.size * tk_dtype_size(view.dtype)) == TK_OK)
            fresh = tk_from_data(tkpy_context(), data, tk_array_shape(array), view.dtype);
        PyMem_Free(data);
        capsule = data ? make_capsule(state, fresh, major >= 1, DL_COPIED) : PyErr_NoMemory();
    }
    tk_scope_close(scope);
    return capsule;
}

PyObject *tkpy_dlpack_device(PyObject *self, PyObject *unused) {
    dl_device own = device_of(tkpy_handle(self));
    (void)unused;
    return Py_BuildValue("ii", (int)own.type, (int)own.id);
}

/* ---- in ---- */

static void drop_managed(void *owner) {
    dl_managed *managed = owner;
    if (!tkpy_is_running()) return;
    PyGILState_STATE held = PyGILState_Ensure();
    if (managed->release) managed->release(managed);
    PyGILState_Release(held);
}

static void drop_versioned(void *owner) {
    dl_versioned *versioned = owner;
    if (!tkpy_is_running()) return;
    PyGILState_STATE held = PyGILState_Ensure();
    if (versioned->release) versioned->release(versioned);
    PyGILState_Release(held);
}

static bool check_tensor(const dl_tensor *tensor, tk_dtype *dtype) {
    if (tensor->device.type != DL_CPU && tensor->device.type != DL_CUDA)
        PyErr_Format(PyExc_ValueError,
                     "the memory is on a device of type %d, expected the CPU or a CUDA device",
                     (int)tensor->device.type);
    else if (!dtype_of(tensor->dtype, dtype))
        PyErr_Format(PyExc_ValueError, "no dtype of Tiki has code %d and %d bits",
                     tensor->dtype.code, tensor->dtype.bits);
    else if (tensor->rank < 0 || tensor->rank > TK_AXES_MAX)
        PyErr_Format(PyExc_ValueError, "the tensor has %d axes, at most %d are possible",
                     (int)tensor->rank, TK_AXES_MAX);
    else
        return true;
    return false;
}

static tk_array memory_on(const dl_device *device, void *data, size_t bytes, tk_shape shape,
                          const int64_t *strides, tk_dtype dtype, void (*release)(void *owner),
                          void *owner) {
    tk_context *context = tkpy_context();
    tk_stream_id stream;
    char name[24];
    if (device->type == DL_CPU)
        return tk_from_memory(context, data, bytes, shape, strides, dtype, release, owner);
    snprintf(name, sizeof name, "gpu:%d", (int)device->id);
    tk_status status = tk_device_stream(context, name, &stream);
    if (status == TK_OK)
        return tk_from_memory_on(context, stream, data, bytes, shape, strides, dtype, release,
                                 owner);
    release(owner);
    return tk_error_array(context, status);
}

/* Negative strides are handed to C as a view from the other end; a stride of an axis of length 1
 * means nothing. Wraps where it can; `release` runs in any case. */
static tk_array wrap(const dl_tensor *tensor, tk_dtype dtype, void (*release)(void *owner),
                     void *owner) {
    int64_t strides[TK_AXES_MAX], extent = 1, step = 1, offset = 0, size = 1;
    tk_axes flipped = {.count = 0};
    for (int i = tensor->rank - 1; i >= 0; i--) {
        int64_t length = tensor->shape[i];
        strides[i] = tensor->strides && length > 1 ? tensor->strides[i] : step;
        step *= length;
        size *= length;
        if (strides[i] < 0 && length > 1) {
            offset += strides[i] * (length - 1);
            strides[i] = -strides[i];
            flipped.items[flipped.count++] = i;
        }
        if (length > 1) extent += strides[i] * (length - 1);
    }
    static double nothing; /* stands for the memory of no elements */
    char *data = (char *)tensor->data + tensor->byte_offset;
    data += offset * (int64_t)tk_dtype_size(dtype);
    size_t bytes = size ? (size_t)extent * tk_dtype_size(dtype) : 0;
    tk_shape shape = tk_axes_from(tensor->rank, tensor->shape);
    tk_array array = memory_on(&tensor->device, size ? (void *)data : &nothing, bytes, shape,
                               size ? strides : NULL, dtype, release, owner);
    return flipped.count ? tk_flip(array, flipped) : array;
}

static PyObject *consume(tkpy_state *state, PyObject *capsule, bool copy) {
    tk_dtype dtype;
    tk_array array;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (!check_tensor(&versioned->tensor, &dtype)) return NULL;
        PyCapsule_SetName(capsule, "used_dltensor_versioned");
        array = wrap(&versioned->tensor, dtype, drop_versioned, versioned);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (!check_tensor(&managed->tensor, &dtype)) return NULL;
        PyCapsule_SetName(capsule, "used_dltensor");
        array = wrap(&managed->tensor, dtype, drop_managed, managed);
    } else {
        PyErr_SetString(PyExc_TypeError, "__dlpack__ gave no DLPack capsule");
        return NULL;
    }
    if (!copy) return tkpy_box(state, array);
    tk_strided view;
    tk_status status = tk_array_view(array, &view);
    size_t bytes = status == TK_OK ? (size_t)view.size * tk_dtype_size(dtype) : 0;
    void *data = PyMem_Malloc(bytes + 1);
    if (!data) return PyErr_NoMemory();
    if (status == TK_OK) status = tk_copy_out(array, data, bytes);
    if (status == TK_OK) array = tk_from_data(tkpy_context(), data, tk_array_shape(array), dtype);
    PyMem_Free(data);
    return status == TK_OK ? tkpy_box(state, array) : tkpy_raise(state, status);
}

static PyObject *capsule_of(PyObject *object) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method) return NULL;
    PyObject *kwargs = Py_BuildValue("{s(ii)}", "max_version", 1, 1);
    PyObject *empty = PyTuple_New(0);
    PyObject *capsule = kwargs && empty ? PyObject_Call(method, empty, kwargs) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* an exporter older than version 1 */
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(kwargs);
    Py_XDECREF(empty);
    Py_DECREF(method);
    return capsule;
}

PyObject *tkpy_from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"x", "device", "copy", NULL};
    PyObject *object, *device = Py_None, *copy = Py_None;
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", names, &object,
                                                 &device, &copy))
        return NULL;
    PyObject *capsule = capsule_of(object);
    if (!capsule) return NULL;
    tk_scope scope = tk_scope_open(context);
    PyObject *box = consume(tkpy_module_state(module), capsule, copy == Py_True);
    tk_scope_close(scope);
    Py_DECREF(capsule);
    return box;
}
