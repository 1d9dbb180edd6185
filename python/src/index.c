/* x[key] and x[key] = value with NumPy's meaning: integers, slices with any step, None, an
 * ellipsis, integer arrays and lists, truth values, all mixed.
 *
 * A key is read into a plan: for each axis a box (start, stop, step), for some an index array, and
 * the order of the result's axes. Reading takes the box, gathers, and moves the gathered axes to
 * their place. Writing is the same plan backwards: the box is read, scattered into, and put back,
 * so that a mixed key needs no primitive of its own. Truth values become index arrays by their true
 * positions, which are read at once; writing one value under a mask is a `where` instead and stays
 * lazy.
 *
 * NumPy's rule for the place of index arrays: where they (and integers among them) stand side by
 * side, there; otherwise in front. */
#include <string.h>

#include "module.h"

enum { ENTRIES_MAX = 3 * TK_AXES_MAX };

typedef enum entry_kind { ENTRY_AXIS, ENTRY_NEW, ENTRY_INDEX } entry_kind;

typedef struct plan {
    tkpy_state *state;
    tk_array base;
    int rank;
    tk_axes start, stop, step; /* the box */
    bool dropped[TK_AXES_MAX]; /* by an integer */
    bool boxed;                /* the box is not all of the base */
    int n_index;
    tk_array index[TK_AXES_MAX];
    int64_t index_axes[TK_AXES_MAX];
    tk_shape index_shape; /* broadcast */
    int n_entries;        /* of the result before NumPy's rule; the axes in ENTRY_AXIS order */
    struct {
        entry_kind kind;
        int axis;
    } entries[ENTRIES_MAX];
    int block; /* entry before which the index axes stand */
} plan;

static bool fail_index(const char *format, long long a, long long b, long long c) {
    char text[160];
    PyOS_snprintf(text, sizeof text, format, a, b, c);
    PyErr_SetString(PyExc_IndexError, text);
    return false;
}

/* ---- reading the key ---- */

static bool add_entry(plan *p, entry_kind kind, int axis) {
    if (p->n_entries == ENTRIES_MAX)
        return fail_index("the index has more than %lld parts", ENTRIES_MAX, 0, 0);
    p->entries[p->n_entries].kind = kind;
    p->entries[p->n_entries++].axis = axis;
    return true;
}

static int64_t length_of(const plan *p, int axis) { return tk_array_dim(p->base, axis); }

static bool add_integer(plan *p, PyObject *item, int axis) {
    PyObject *number = PyNumber_Index(item);
    if (!number) return false;
    long long given = PyLong_AsLongLong(number), at = given;
    Py_DECREF(number);
    if (PyErr_Occurred()) return false;
    int64_t length = length_of(p, axis);
    if (at < 0) at += length;
    if (at < 0 || at >= length)
        return fail_index("index %lld is out of range for axis %lld of length %lld", given, axis,
                          length);
    p->start.items[axis] = at;
    p->stop.items[axis] = at + 1;
    p->dropped[axis] = p->boxed = true;
    return add_entry(p, ENTRY_INDEX, axis);
}

/* A stop before the first element, which only a negative step reaches, is -length - 1 for C. */
static bool add_slice(plan *p, PyObject *item, int axis) {
    Py_ssize_t start, stop, step, length = (Py_ssize_t)length_of(p, axis);
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) return false;
    Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
    if (count == 0) start = stop = 0, step = 1;
    p->start.items[axis] = start;
    p->stop.items[axis] = stop < 0 ? -(int64_t)length - 1 : stop;
    p->step.items[axis] = step;
    p->boxed |= count != length || step != 1;
    return add_entry(p, ENTRY_AXIS, axis);
}

static bool add_index_array(plan *p, tk_array index, int axis) {
    if (!tk_dtype_is_integer(tk_array_dtype(index))) {
        PyErr_Format(PyExc_IndexError, "an index array must be of an integer dtype or bool, not %s",
                     tk_dtype_name(tk_array_dtype(index)));
        return false;
    }
    p->index[p->n_index] = index;
    p->index_axes[p->n_index++] = axis;
    return add_entry(p, ENTRY_INDEX, axis);
}

/* The positions of true elements: one array of int64 for each axis of the mask. */
static bool positions(plan *p, const tk_strided *mask, int axis) {
    int64_t at[TK_AXES_MAX] = {0}, count = 0, total = mask->size;
    int64_t *found = PyMem_Malloc(((size_t)total * (size_t)mask->rank + 1) * sizeof *found);
    if (!found) return PyErr_NoMemory(), false;
    for (int64_t i = 0; i < total; i++) {
        int64_t offset = 0;
        for (int k = 0; k < mask->rank; k++) offset += at[k] * mask->strides[k];
        if (((const uint8_t *)mask->data)[offset]) {
            for (int k = 0; k < mask->rank; k++) found[k * total + count] = at[k];
            count++;
        }
        for (int k = mask->rank - 1; k >= 0 && ++at[k] == mask->shape[k]; k--) at[k] = 0;
    }
    bool ok = true;
    for (int k = 0; ok && k < mask->rank; k++) {
        tk_array index = tk_from_data(tkpy_context(), found + k * total, TK_SHAPE(count), TK_INT64);
        ok = add_index_array(p, index, axis + k);
    }
    PyMem_Free(found);
    return ok;
}

static bool add_mask(plan *p, tk_array mask, int axis) {
    tk_strided view;
    for (int k = 0; k < tk_array_rank(mask); k++)
        if (tk_array_dim(mask, k) != length_of(p, axis + k))
            return fail_index("a mask has length %lld where axis %lld has %lld",
                              tk_array_dim(mask, k), axis + k, length_of(p, axis + k));
    if (!tkpy_eval_one(p->state, mask)) return false;
    tk_status status = tk_array_view(mask, &view);
    if (status != TK_OK) return tkpy_raise(p->state, status), false;
    return positions(p, &view, axis);
}

/* Lists, arrays and NumPy's arrays as an array of this scope. */
static tk_array index_array(plan *p, PyObject *item) {
    if (tkpy_is_array(item)) return tkpy_handle(item);
    tk_array array = tkpy_from_object(p->state, item, TKPY_NO_DTYPE);
    if (array.node && tk_array_size(array) == 0 && PyList_Check(item))
        return tk_astype(array, TK_INT32);
    if (array.node) return array;
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return array;
    PyErr_Clear();
    PyErr_Format(PyExc_IndexError,
                 "an index must be integers, slices, None, an ellipsis or arrays, not %R",
                 (PyObject *)Py_TYPE(item));
    return TK_NO_ARRAY;
}

static bool is_plain_integer(PyObject *item) {
    return (PyLong_Check(item) && !PyBool_Check(item)) ||
           (!tkpy_is_array(item) && !PyBool_Check(item) && PyIndex_Check(item) &&
            !PyObject_CheckBuffer(item));
}

/* Axes of the base that a part of the key takes; -1 with an exception. */
static int axes_taken(plan *p, PyObject *item) {
    if (item == Py_None || item == Py_Ellipsis) return 0;
    if (PySlice_Check(item) || is_plain_integer(item)) return 1;
    if (PyBool_Check(item)) {
        PyErr_SetString(PyExc_IndexError, "True and False cannot be an index; use a mask array");
        return -1;
    }
    tk_array array = index_array(p, item);
    if (!array.node) return -1;
    return tk_array_dtype(array) == TK_BOOL ? tk_array_rank(array) : 1;
}

static bool add_part(plan *p, PyObject *item, int axis) {
    if (PySlice_Check(item)) return add_slice(p, item, axis);
    if (is_plain_integer(item)) return add_integer(p, item, axis);
    tk_array array = index_array(p, item);
    if (!array.node) return false;
    if (tk_array_dtype(array) == TK_BOOL) return add_mask(p, array, axis);
    return add_index_array(p, array, axis);
}

static bool add_whole_axes(plan *p, int from, int count) {
    for (int i = 0; i < count; i++)
        if (!add_entry(p, ENTRY_AXIS, from + i)) return false;
    return true;
}

static bool read_parts(plan *p, PyObject *const *parts, Py_ssize_t count) {
    int taken = 0, ellipses = 0, axis = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        int axes = axes_taken(p, parts[i]);
        if (axes < 0) return false;
        taken += axes;
        ellipses += parts[i] == Py_Ellipsis;
    }
    if (ellipses > 1) return fail_index("the index has %lld ellipses, at most 1", ellipses, 0, 0);
    if (taken > p->rank)
        return fail_index("%lld axes are indexed, the array has %lld", taken, p->rank, 0);
    for (Py_ssize_t i = 0; i < count; i++) {
        bool ok;
        if (parts[i] == Py_Ellipsis) {
            ok = add_whole_axes(p, axis, p->rank - taken);
            axis += p->rank - taken;
        } else if (parts[i] == Py_None) {
            ok = add_entry(p, ENTRY_NEW, -1);
        } else {
            ok = add_part(p, parts[i], axis);
            if (ok) axis += axes_taken(p, parts[i]);
        }
        if (!ok) return false;
    }
    return add_whole_axes(p, axis, p->rank - axis);
}

/* ---- finishing the plan ---- */

/* Where the index axes stand, counted in entries; 0 when something stands between them. */
static void place_block(plan *p) {
    int first = -1, last = -1, count = 0;
    for (int i = 0; i < p->n_entries; i++) {
        if (p->entries[i].kind != ENTRY_INDEX) continue;
        if (first < 0) first = i;
        last = i;
        count++;
    }
    p->block = first >= 0 && last - first + 1 == count ? first : 0;
}

static bool broadcast_indices(plan *p) {
    p->index_shape = TK_SCALAR;
    for (int i = 0; i < p->n_index; i++) {
        tk_shape shape = tk_array_shape(p->index[i]), *all = &p->index_shape;
        while (all->count < shape.count) {
            memmove(all->items + 1, all->items, (size_t)all->count * sizeof *all->items);
            all->items[0] = 1;
            all->count++;
        }
        for (int64_t k = 0; k < shape.count; k++) {
            int64_t *to = &all->items[all->count - shape.count + k], from = shape.items[k];
            if (*to == 1) *to = from;
            if (from != 1 && from != *to)
                return fail_index("index arrays do not fit each other: lengths %lld and %lld", *to,
                                  from, 0);
        }
    }
    return true;
}

static bool make_plan(plan *p, tkpy_state *state, tk_array base, PyObject *key) {
    *p = (plan){.state = state, .base = base, .rank = tk_array_rank(base)};
    p->start.count = p->stop.count = p->step.count = p->rank;
    for (int i = 0; i < p->rank; i++) {
        p->start.items[i] = 0;
        p->stop.items[i] = length_of(p, i);
        p->step.items[i] = 1;
    }
    PyObject *parts[ENTRIES_MAX];
    Py_ssize_t count = 1;
    parts[0] = key;
    if (PyTuple_Check(key)) {
        count = PyTuple_Size(key);
        if (count > ENTRIES_MAX)
            return fail_index("the index has more than %lld parts", ENTRIES_MAX, 0, 0);
        for (Py_ssize_t i = 0; i < count; i++) parts[i] = PyTuple_GetItem(key, i);
    }
    if (!read_parts(p, parts, count)) return false;
    place_block(p);
    return broadcast_indices(p);
}

/* ---- applying it ---- */

static tk_array read_box(const plan *p) {
    return p->boxed ? tk_slice(p->base, p->start, p->stop, p->step) : p->base;
}

/* The result's axes: index axes at the block, dropped axes gone. `before` counts those in front of
 * the block. */
static tk_shape result_shape(const plan *p, tk_array box, int *before) {
    tk_shape shape = {.count = 0};
    *before = 0;
    for (int i = 0; i < p->n_entries; i++) {
        if (p->entries[i].kind == ENTRY_INDEX) continue;
        if (i < p->block) ++*before;
        if (shape.count < TK_AXES_MAX)
            shape.items[shape.count] =
                p->entries[i].kind == ENTRY_NEW ? 1 : tk_array_dim(box, p->entries[i].axis);
        shape.count++;
    }
    return shape;
}

static tk_shape with_block(const plan *p, tk_shape rest, int before) {
    tk_shape shape = {.count = rest.count + p->index_shape.count};
    if (shape.count > TK_AXES_MAX) return shape;
    memcpy(shape.items, rest.items, (size_t)before * sizeof *rest.items);
    memcpy(shape.items + before, p->index_shape.items,
           (size_t)p->index_shape.count * sizeof *rest.items);
    memcpy(shape.items + before + p->index_shape.count, rest.items + before,
           (size_t)(rest.count - before) * sizeof *rest.items);
    return shape;
}

static tk_shape slice_sizes(const plan *p, tk_array box) {
    tk_shape sizes = tk_array_shape(box);
    for (int i = 0; i < p->n_index; i++) sizes.items[p->index_axes[i]] = 1;
    return sizes;
}

/* Moves the index axes from the front to the block, or back. */
static tk_array move_block(const plan *p, tk_array a, int before, bool back) {
    int64_t n_index = p->index_shape.count, rank = tk_array_rank(a);
    if (before == 0 || n_index == 0) return a;
    tk_axes order = {.count = rank};
    for (int64_t i = 0; i < rank; i++) order.items[i] = i;
    for (int64_t i = 0; i < n_index; i++)
        order.items[back ? i : before + i] = back ? before + i : i;
    for (int64_t i = 0; i < before; i++)
        order.items[back ? n_index + i : i] = back ? i : n_index + i;
    return tk_transpose(a, order);
}

static tk_array read_plan(const plan *p) {
    int before;
    tk_array box = read_box(p);
    tk_shape rest = result_shape(p, box, &before);
    if (rest.count + p->index_shape.count > TK_AXES_MAX) {
        fail_index("the result has %lld axes, at most %lld are possible",
                   rest.count + p->index_shape.count, TK_AXES_MAX, 0);
        return TK_NO_ARRAY;
    }
    if (p->n_index == 0) return tk_reshape(box, rest);
    tk_axes axes = tk_axes_from(p->n_index, p->index_axes);
    tk_array gathered = tk_gather(box, p->index, (size_t)p->n_index, axes, slice_sizes(p, box));
    return move_block(p, tk_reshape(gathered, with_block(p, rest, 0)), before, false);
}

tk_stream_id tkpy_beside(tk_array array) {
    tk_context *context = tkpy_context();
    tk_stream_id before = tk_stream_use(context, TK_DEFAULT_STREAM);
    bool same = tk_array_device(array) == tk_stream_device_of(context, before);
    (void)tk_stream_use(context, same ? before : tk_array_stream(array));
    return before;
}

PyObject *tkpy_getitem(PyObject *self, PyObject *key) {
    plan p;
    tkpy_state *state = tkpy_state_of(self);
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_stream_id before = tkpy_beside(tkpy_handle(self));
    PyObject *result = NULL;
    if (make_plan(&p, state, tkpy_handle(self), key)) {
        tk_array array = read_plan(&p);
        if (array.node) result = tkpy_box(state, array);
    }
    (void)tk_stream_use(tkpy_context(), before);
    tk_scope_close(scope);
    return result;
}

/* ---- writing ---- */

/* Leading axes of length 1 that the target does not have go, then the value is repeated. */
static tk_array fit_value(tk_array value, tk_shape shape) {
    tk_axes lead = {.count = 0};
    while (tk_array_rank(value) - lead.count > shape.count &&
           tk_array_dim(value, (int)lead.count) == 1) {
        lead.items[lead.count] = lead.count;
        lead.count++;
    }
    if (lead.count) value = tk_squeeze(value, lead);
    return tk_broadcast_to(value, shape);
}

static tk_array combine(tk_array old, tk_array value, tkpy_update update) {
    switch (update) {
    case TKPY_ADD:
        return tk_add(old, value);
    case TKPY_MULTIPLY:
        return tk_multiply(old, value);
    case TKPY_MAXIMUM:
        return tk_maximum(old, value);
    case TKPY_MINIMUM:
        return tk_minimum(old, value);
    default:
        return value;
    }
}

static const tk_mode modes[] = {[TKPY_SET] = TK_SET,
                                [TKPY_ADD] = TK_ADD,
                                [TKPY_MULTIPLY] = TK_PROD,
                                [TKPY_MAXIMUM] = TK_MAX,
                                [TKPY_MINIMUM] = TK_MIN};

static tk_array write_plan(const plan *p, tk_array value, tkpy_update update) {
    int before;
    tk_array box = read_box(p);
    tk_shape rest = result_shape(p, box, &before);
    if (rest.count + p->index_shape.count > TK_AXES_MAX) {
        fail_index("the index has %lld axes, at most %lld are possible",
                   rest.count + p->index_shape.count, TK_AXES_MAX, 0);
        return TK_NO_ARRAY;
    }
    value = tk_astype(value, tk_array_dtype(p->base));
    value = fit_value(value, with_block(p, rest, before));
    if (p->n_index == 0) {
        value = tk_reshape(value, tk_array_shape(box));
        return tk_slice_update(p->base, value, p->start, p->stop, p->step, modes[update]);
    }
    tk_shape sizes = slice_sizes(p, box), updates = {.count = p->index_shape.count + sizes.count};
    if (updates.count > TK_AXES_MAX) {
        fail_index("the index needs %lld axes, at most %lld are possible", updates.count,
                   TK_AXES_MAX, 0);
        return TK_NO_ARRAY;
    }
    memcpy(updates.items, p->index_shape.items,
           (size_t)p->index_shape.count * sizeof *updates.items);
    memcpy(updates.items + p->index_shape.count, sizes.items,
           (size_t)sizes.count * sizeof *updates.items);
    value = tk_reshape(move_block(p, value, before, true), updates);
    tk_axes axes = tk_axes_from(p->n_index, p->index_axes);
    tk_array done = tk_scatter_nd(box, value, p->index, (size_t)p->n_index, axes, modes[update]);
    return p->boxed ? tk_slice_update(p->base, done, p->start, p->stop, p->step, TK_SET) : done;
}

/* base[mask] = one value for all of them: no need to know where the mask is true. */
static bool is_lazy_mask(tkpy_state *state, tk_array base, PyObject *key, tk_array value,
                         tk_array *out_mask) {
    if (!tkpy_is_array(key) && !PyObject_CheckBuffer(key) && !PyList_Check(key)) return false;
    tk_array mask =
        tkpy_is_array(key) ? tkpy_handle(key) : tkpy_from_object(state, key, TKPY_NO_DTYPE);
    if (!mask.node) return PyErr_Clear(), false;
    int rank = tk_array_rank(mask), rest = tk_array_rank(base) - rank;
    if (tk_array_dtype(mask) != TK_BOOL || rest < 0 || tk_array_rank(value) > rest) return false;
    for (int i = 0; i < rank; i++)
        if (tk_array_dim(mask, i) != tk_array_dim(base, i)) return false;
    tk_shape shape = tk_array_shape(mask);
    for (int i = 0; i < rest; i++) shape.items[shape.count++] = 1;
    *out_mask = tk_reshape(mask, shape);
    return true;
}

tk_array tkpy_update_at(tkpy_state *state, tk_array base, PyObject *key, tk_array value,
                        tkpy_update update) {
    plan p;
    tk_array mask;
    if (is_lazy_mask(state, base, key, value, &mask)) {
        value = tk_astype(value, tk_array_dtype(base));
        tk_array changed = tk_where(mask, combine(base, value, update), base);
        return tk_broadcast_to(changed, tk_array_shape(base));
    }
    if (!make_plan(&p, state, base, key)) return TK_NO_ARRAY;
    return write_plan(&p, value, update);
}

int tkpy_setitem(PyObject *self, PyObject *key, PyObject *value) {
    tkpy_state *state = tkpy_state_of(self);
    tk_array operand;
    int result = -1;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_stream_id before = tkpy_beside(tkpy_handle(self));
    int found = tkpy_operand(state, value, &operand);
    if (found == 0) {
        tk_dtype dtype = tk_array_dtype(tkpy_handle(self));
        operand =
            tkpy_from_object(state, value, tk_dtype_is_integer(dtype) ? (int)dtype : TKPY_NO_DTYPE);
        found = operand.node ? 1 : -1;
    }
    if (found == 1) {
        operand = tkpy_fitting(tkpy_handle(self), value, operand);
        tk_array changed = tkpy_update_at(state, tkpy_handle(self), key, operand, TKPY_SET);
        if (changed.node && tkpy_rebox(state, self, changed)) result = 0;
    }
    (void)tk_stream_use(tkpy_context(), before);
    tk_scope_close(scope);
    return result;
}
