/* See index.h. */
#include "compile/index.h"

#include <stdio.h>
#include <string.h>

#include "array/storage.h"
#include "base/error.h"
#include "compile/axes.h"
#include "compile/bodies.h"
#include "compile/elementwise.h"
#include "compile/kernel_text.h"
#include "compile/kernels_made.h"
#include "compile/run.h"
#include "runtime/buffer.h"
#include "runtime/cuda_faults.h"

#define MOST_INDICES TK_FAULT_INDICES

/* Views of a kernel: one it reads or writes beside the indices, the indices, another, and the last
 * one: the position of the indices in row-major order. */
#define MOST_VIEWS (MOST_INDICES + 3)
_Static_assert(MOST_VIEWS <= TK_MOST_VIEWS, "views of a gather");
#define MOST_GROUPS 64
#define WANTED_THREADS 65536

/* ---- text ---- */

/* What a kernel's text follows from. */
typedef struct signature {
    int op, mode;
    tk_dtype dtype; /* of the elements */
    tk_dtype index[MOST_INDICES];
    int n_indices, n_axes, n_loop; /* n_loop: of the updates, in scatters */
    int narrow;                    /* all counts are below 2^31 */
} signature;

/* Coordinates %NAMEc0, ... of %FROM with lengths %LETTERlength; where all counts fit, divided in 32
 * bits, which is most of what a gather costs. `name` is the letter, or another one where a kernel
 * needs them twice. */
static void put_coordinates(const signature *s, char name, char letter, const char *from, int rank,
                            tk_strbuf *out) {
    const char *type = s->narrow ? "i32" : "i64", *cut = s->narrow ? "truncate" : "or";
    const char *widen = s->narrow ? "extend_unsigned" : "or", *by = s->narrow ? "" : ", i64(0)";
    tk_strbuf_printf(out, "    %%%cq%d = %s %%%s%s : %s\n", name, rank, cut, from, by, type);
    for (int i = rank - 1; i > 0; i--) {
        tk_strbuf_printf(out, "    %%%cl%d = %s %%%clength%d%s : %s\n", name, i, cut, letter, i, by,
                         type);
        tk_strbuf_printf(out, "    %%%cq%d = udiv %%%cq%d, %%%cl%d : %s\n", name, i, name, i + 1,
                         name, i, type);
        tk_strbuf_printf(out, "    %%%cm%d = mul %%%cq%d, %%%cl%d : %s\n", name, i, name, i, name,
                         i, type);
        tk_strbuf_printf(out, "    %%%cr%d = sub %%%cq%d, %%%cm%d : %s\n", name, i, name, i + 1,
                         name, i, type);
        tk_strbuf_printf(out, "    %%%cc%d = %s %%%cr%d%s : i64\n", name, i, widen, name, i, by);
    }
    tk_strbuf_printf(out, "    %%%cc0 = %s %%%cq1%s : i64\n", name, widen, name, by);
}

/* %NAMEoV = the offset of view V from the coordinates %NAMEc and the strides %LETTERs. */
static void put_offset(char name, char letter, int view, int rank, tk_strbuf *out) {
    for (int i = 0; i < rank; i++) {
        tk_strbuf_printf(out, "    %%%ct%d_%d = mul %%%cc%d, %%%cs%d_%d : i64\n", name, view, i,
                         name, i, letter, view, i);
        if (i)
            tk_strbuf_printf(out, "    %%%cu%d_%d = add %%%cu%d_%d, %%%ct%d_%d : i64\n", name, view,
                             i, name, view, i - 1, name, view, i);
        else
            tk_strbuf_printf(out, "    %%%cu%d_0 = or %%%ct%d_0, i64(0) : i64\n", name, view, name,
                             view);
    }
    tk_strbuf_printf(out, "    %%%co%d = or %%%cu%d_%d, i64(0) : i64\n", name, view, name, view,
                     rank - 1);
}

static void put_axis_params(char letter, int rank, int n_views, tk_strbuf *out) {
    for (int i = 1; i < rank; i++) tk_strbuf_printf(out, ",\n  %%%clength%d: i64", letter, i);
    for (int v = 0; v < n_views; v++)
        for (int i = 0; i < rank; i++) tk_strbuf_printf(out, ",\n  %%%cs%d_%d: i64", letter, v, i);
}

static void put_index_params(const signature *s, tk_strbuf *out) {
    for (int k = 0; k < s->n_indices; k++)
        tk_strbuf_printf(out, "  %%x%d: ptr<%s, global> read align %zu,\n", k,
                         tk_text_memory(s->index[k]), tk_dtype_size(s->index[k]));
}

static void put_bound_params(const signature *s, tk_strbuf *out) {
    for (int k = 0; k < s->n_indices; k++)
        tk_strbuf_printf(out, ",\n  %%most%d: i64,\n  %%step%d: i64", k, k);
}

/* Of index k, which is number n in the text: %dN = what indices 0 to k add to the offset; %okN
 * whether they are in range. `offset` is the index view's, without its number. */
static void put_index(const signature *s, int k, int n, const char *offset, tk_strbuf *out) {
    tk_dtype dtype = s->index[k];
    const char *type = tk_text_memory(dtype);
    tk_strbuf_printf(out, "    %%px%d = offset %%x%d, %%%s%d : ptr<%s, global>\n", n, k, offset,
                     k + 1, type);
    tk_strbuf_printf(out, "    %%lx%d = load %%px%d : %s\n", n, n, type);
    if (tk_dtype_size(dtype) == 8)
        tk_strbuf_printf(out, "    %%i%d = or %%lx%d, i64(0) : i64\n", n, n);
    else
        tk_strbuf_printf(out, "    %%i%d = extend_%s %%lx%d : i64\n", n,
                         tk_dtype_kind(dtype) == TK_KIND_SIGNED ? "signed" : "unsigned", n);
    tk_strbuf_printf(out, "    %%lo%d = icmp.sge %%i%d, i64(0) : i1\n", n, n);
    tk_strbuf_printf(out, "    %%hi%d = icmp.sle %%i%d, %%most%d : i1\n", n, n, k);
    tk_strbuf_printf(out, "    %%in%d = and %%lo%d, %%hi%d : i1\n", n, n, n);
    tk_strbuf_printf(out, "    %%g%d = mul %%i%d, %%step%d : i64\n", n, n, k);
    if (k) {
        tk_strbuf_printf(out, "    %%ok%d = and %%ok%d, %%in%d : i1\n", n, n - 1, n);
        tk_strbuf_printf(out, "    %%d%d = add %%d%d, %%g%d : i64\n", n, n - 1, n);
    } else {
        tk_strbuf_printf(out, "    %%ok%d = or %%in%d, %%in%d : i1\n", n, n, n);
        tk_strbuf_printf(out, "    %%d%d = or %%g%d, i64(0) : i64\n", n, n);
    }
}

/* The smallest position and index go to the record, behind what is there already: a record that is
 * small enough stays unwritten, however many indices are bad. */
static void put_bad_index(int k, int number, tk_strbuf *out) {
    static const char *const halves[] = {"and", "ushr"}, *const by[] = {"i64(4294967295)",
                                                                        "i32(32)"};
    tk_strbuf_printf(out, "    %%bad%d = not %%in%d : i1\n", k, number);
    for (int h = 0; h < 2; h++) {
        int n = 2 * k + h;
        tk_strbuf_printf(out, "    %%h%d = %s %%i%d, %s : i64\n", n, halves[h], number, by[h]);
        tk_strbuf_printf(out, "    %%word%d = or %%high_position, %%h%d : i64\n", n, n);
        tk_strbuf_printf(out, "    %%f%d = offset %%faults, i64(%d) : ptr<i64, global>\n", n, n);
        tk_strbuf_printf(out, "    %%seen%d = load.relaxed.gpu %%f%d : i64\n", n, n);
        tk_strbuf_printf(out, "    %%less%d = icmp.ult %%word%d, %%seen%d : i1\n", n, n, n);
        tk_strbuf_printf(out, "    %%tell%d = and %%less%d, %%bad%d : i1\n", n, n, k);
        tk_strbuf_printf(out, "    reduce.umin.relaxed.gpu %%f%d, %%word%d, if=%%tell%d\n", n, n,
                         n);
        tk_strbuf_printf(out, "    store.relaxed.system %%flag, i32(1), if=%%tell%d\n", n);
    }
}

/* Reports those of the indices, `first` and on in the text, that are out of range; %place is their
 * position. */
static void put_report(const signature *s, int first, tk_strbuf *out) {
    tk_strbuf_printf(out, "    %%position = umin %%place, i64(4294967295) : i64\n");
    tk_strbuf_printf(out, "    %%high_position = shl %%position, i32(32) : i64\n");
    for (int k = 0; k < s->n_indices; k++) put_bad_index(k, first + k, out);
}

static void put_fault_params(tk_strbuf *out) {
    tk_strbuf_printf(out, "  %%faults: ptr<i64, global> read_write align 8,\n"
                          "  %%flag: ptr<i32, global> write align 4,\n");
}

static void put_head(const char *name, const signature *s, tk_strbuf *out) {
    tk_strbuf_printf(out, "tiki kernel 1\n\nkernel %s_%s_%d_%d_%d%s(\n", name,
                     tk_dtype_name(s->dtype), s->n_axes, s->n_loop, s->n_indices,
                     s->narrow ? "" : "_wide");
}

static void put_number(tk_strbuf *out) {
    tk_strbuf_printf(out, ")\nform thread\nrequire %%n >= 0\n");
    tk_text_put_elements(256, out);
}

/* Views: a, the indices, the output, positions. */
static void put_gather(const void *key, tk_strbuf *out) {
    const signature *s = key;
    int n_views = s->n_indices + 3, last = s->n_indices - 1;
    const char *memory = tk_text_memory(s->dtype);
    put_head("gather", s, out);
    tk_strbuf_printf(out, "  %%a: ptr<%s, global> read align %zu,\n", memory,
                     tk_dtype_size(s->dtype));
    put_index_params(s, out);
    tk_strbuf_printf(out, "  %%y: ptr<%s, global> write align %zu,\n", memory,
                     tk_dtype_size(s->dtype));
    put_fault_params(out);
    tk_strbuf_printf(out, "  %%n: i64");
    put_axis_params('a', s->n_axes, n_views, out);
    put_bound_params(s, out);
    put_number(out);
    put_coordinates(s, 'a', 'a', "i", s->n_axes, out);
    for (int v = 0; v + 1 < n_views; v++) put_offset('a', 'a', v, s->n_axes, out);
    for (int k = 0; k < s->n_indices; k++) put_index(s, k, k, "ao", out);
    tk_strbuf_printf(out, "    %%from = add %%ao0, %%d%d : i64\n", last);
    tk_strbuf_printf(out, "    %%pa = offset %%a, %%from : ptr<%s, global>\n", memory);
    tk_strbuf_printf(out, "    %%v = load %%pa, if=%%ok%d : %s\n", last, memory);
    tk_strbuf_printf(out, "    %%py = offset %%y, %%ao%d : ptr<%s, global>\n", n_views - 2, memory);
    tk_strbuf_printf(out, "    store %%py, %%v\n    %%report = not %%ok%d : i1\n", last);
    tk_strbuf_printf(out, "    if %%report {\n");
    put_offset('a', 'a', n_views - 1, s->n_axes, out);
    tk_strbuf_printf(out, "    %%place = or %%ao%d, i64(0) : i64\n", n_views - 1);
    put_report(s, 0, out);
    tk_strbuf_printf(out, "    }\n");
    tk_strbuf_printf(out, "  }\n}\n");
}

static const tk_op mode_ops[TK_MODE_COUNT] = {[TK_ADD] = TK_OP_add,
                                              [TK_MAX] = TK_OP_maximum,
                                              [TK_MIN] = TK_OP_minimum,
                                              [TK_PROD] = TK_OP_multiply};

/* Group of a place: bits from the middle of its product with an odd number. */
static void put_group(const signature *s, tk_strbuf *out) {
    int last = s->n_indices - 1;
    tk_strbuf_printf(out, "    %%mixed = mul %%d%d, i64(2654435761) : i64\n", last);
    tk_strbuf_printf(out, "    %%high = ushr %%mixed, i32(16) : i64\n");
    tk_strbuf_printf(out, "    %%mask = sub %%groups, i64(1) : i64\n");
    tk_strbuf_printf(out, "    %%its = and %%high, %%mask : i64\n");
    tk_strbuf_printf(out, "    %%mine = icmp.eq %%its, %%group : i1\n");
    tk_strbuf_printf(out, "    %%take = and %%mine, %%ok%d : i1\n", last);
}

/* Each index is looked at by one thread before the loop of the updates, in which all threads meet
 * all of them and a report would cost a fifth of the time. All elements of a slice have the same
 * indices, those of lines each their own. */
static void put_checks(const signature *s, tk_strbuf *out) {
    bool slices = s->op == TK_OP_scatter;
    int places = s->n_indices + 2, first = MOST_INDICES;
    tk_strbuf_printf(out, "    for %%k = %%%s to %%updates step %%%s {\n", slices ? "i" : "group",
                     slices ? "n" : "groups");
    put_coordinates(s, 'v', 'u', "k", s->n_loop, out);
    for (int v = 1; v <= s->n_indices; v++) {
        put_offset('v', 'u', v, s->n_loop, out);
        tk_strbuf_printf(out, "    %%from%d = add %%eo%d, %%vo%d : i64\n", v, v, v);
    }
    for (int k = 0; k < s->n_indices; k++) put_index(s, k, first + k, "from", out);
    tk_strbuf_printf(out, "    %%report = not %%ok%d : i1\n    if %%report {\n",
                     first + s->n_indices - 1);
    put_offset('v', 'u', places, s->n_loop, out);
    put_offset('e', 'e', places, s->n_axes, out);
    tk_strbuf_printf(out, "    %%place = add %%eo%d, %%vo%d : i64\n", places, places);
    put_report(s, first, out);
    tk_strbuf_printf(out, "    }\n    }\n");
}

/* Views: the output, the indices, the updates, positions; axes `e` of a thread's element, `u` of
 * the loop. */
static void put_scatter(const void *key, tk_strbuf *out) {
    const signature *s = key;
    int n_views = s->n_indices + 3, last = s->n_indices - 1;
    const char *memory = tk_text_memory(s->dtype);
    put_head("scatter", s, out);
    tk_strbuf_printf(out, "  %%y: ptr<%s, global> read_write align %zu,\n", memory,
                     tk_dtype_size(s->dtype));
    put_index_params(s, out);
    tk_strbuf_printf(out, "  %%w: ptr<%s, global> read align %zu,\n", memory,
                     tk_dtype_size(s->dtype));
    put_fault_params(out);
    tk_strbuf_printf(out, "  %%n: i64,\n  %%size: i64,\n  %%groups: i64,\n  %%updates: i64");
    put_axis_params('e', s->n_axes, n_views, out);
    put_axis_params('u', s->n_loop, n_views, out);
    put_bound_params(s, out);
    put_number(out);
    tk_strbuf_printf(out, "    %%group = udiv %%i, %%size : i64\n"
                          "    %%e = urem %%i, %%size : i64\n");
    put_coordinates(s, 'e', 'e', "e", s->n_axes, out);
    for (int v = 0; v + 1 < n_views; v++) put_offset('e', 'e', v, s->n_axes, out);
    put_checks(s, out);
    tk_strbuf_printf(out, "    for %%j = i64(0) to %%updates step i64(1) {\n");
    put_coordinates(s, 'u', 'u', "j", s->n_loop, out);
    for (int v = 1; v + 1 < n_views; v++) {
        put_offset('u', 'u', v, s->n_loop, out);
        tk_strbuf_printf(out, "    %%at%d = add %%eo%d, %%uo%d : i64\n", v, v, v);
    }
    for (int k = 0; k < s->n_indices; k++) put_index(s, k, k, "at", out);
    put_group(s, out);
    tk_strbuf_printf(out, "    if %%take {\n    %%to = add %%eo0, %%d%d : i64\n", last);
    tk_strbuf_printf(out, "    %%p0 = offset %%y, %%to : ptr<%s, global>\n", memory);
    tk_strbuf_printf(out, "    %%p1 = offset %%w, %%at%d : ptr<%s, global>\n", n_views - 2, memory);
    if (s->mode == TK_SET)
        tk_strbuf_printf(out, "    %%v = load %%p1 : %s\n    store %%p0, %%v\n", memory);
    else
        tk_elementwise_put(mode_ops[s->mode], s->dtype, out);
    tk_strbuf_printf(out, "    }\n    }\n  }\n}\n");
}

static tk_kernels_made gathers = {
    PTHREAD_MUTEX_INITIALIZER, "gather", sizeof(signature), put_gather, {0}};
static tk_kernels_made scatters = {
    PTHREAD_MUTEX_INITIALIZER, "scatter", sizeof(signature), put_scatter, {0}};

/* ---- arguments ---- */

enum { MOST_ARGUMENTS = MOST_VIEWS + 4 + 2 * TK_AXES_MAX * (MOST_VIEWS + 1) + 2 * MOST_INDICES };

typedef struct launch {
    signature key;
    tk_fault_source note;
    uint64_t record[TK_FAULT_WORDS]; /* of devices whose launches are done when they return */
    int32_t flag;
    size_t count;
    tk_run_argument arguments[MOST_ARGUMENTS];
} launch;

static void put_memory(launch *l, const tk_strided *view) {
    tk_run_argument *argument = &l->arguments[l->count++];
    *argument = (tk_run_argument){.data = view->data};
    tk_extent_of(view, &argument->before, &argument->bytes);
}

/* Where the launch tells of indices out of range. */
static tk_status put_faults_memory(launch *l, const tk_body_call *call, const int64_t *lengths) {
    tk_cuda *cuda = tk_cuda_of(call->device);
    void *record = l->record, *flag = &l->flag;
    l->note = (tk_fault_source){tk_op_title(call->op), {0}};
    memcpy(l->note.lengths, lengths, (size_t)l->key.n_indices * sizeof *lengths);
    memset(l->record, 0xff, sizeof l->record);
    l->flag = 0;
    if (cuda) TK_TRY(tk_cuda_fault_slot(cuda, &l->note, &record, &flag));
    l->arguments[l->count++] = (tk_run_argument){.data = record, .bytes = sizeof l->record};
    l->arguments[l->count++] = (tk_run_argument){.data = flag, .bytes = sizeof l->flag};
    return TK_OK;
}

static void put_int(launch *l, int64_t value) {
    l->arguments[l->count++] = (tk_run_argument){.bits = (uint64_t)value};
}

static void put_axes(launch *l, const tk_view_axes *list) {
    for (int i = 1; i < list->rank; i++) put_int(l, list->items[i].length);
    for (int v = 0; v < list->n_views; v++)
        for (int i = 0; i < list->rank; i++) put_int(l, list->items[i].stride[v]);
}

static void start(launch *l, const tk_body_call *call, const tk_strided *view,
                  const tk_strided *indices, int n_indices) {
    memset(&l->key, 0, sizeof l->key);
    l->count = 0;
    l->key.op = (int)call->op;
    l->key.dtype = view->dtype;
    l->key.n_indices = n_indices;
    for (int k = 0; k < n_indices; k++) l->key.index[k] = indices[k].dtype;
}

/* Complex numbers are moved as what has their size. */
static tk_dtype moved_as(tk_dtype dtype) { return tk_dtype_is_complex(dtype) ? TK_INT64 : dtype; }

static tk_status run(const tk_body_call *call, tk_kernels_made *made, launch *l) {
    tk_kernel *kernel;
    TK_TRY(tk_kernels_find(made, &l->key, &kernel));
    tk_run launched = {kernel, NULL, l->count, l->arguments, TK_TARGET_PTX, NULL};
    tk_status status = tk_run_kernel(call->device, call->queue, &launched);
    int64_t position, index, length;
    if (status == TK_OK && call->fault && l->flag &&
        tk_fault_read(l->record, &l->note, &position, &index, &length))
        tk_fault_note(call->fault, position, index, length);
    return status;
}

/* ---- gather ---- */

static tk_status run_gather(const tk_body_call *call, tk_view_axes *list, const int64_t *most,
                            const int64_t *step, const int64_t *length) {
    const tk_strided *a = &call->inputs[0], *out = &call->outputs[0];
    int n_indices = call->n_inputs - 1;
    launch l;
    tk_view_axes_close(list);
    start(&l, call, a, call->inputs + 1, n_indices);
    l.key.dtype = moved_as(a->dtype);
    l.key.n_axes = list->rank;
    l.key.narrow = out->size <= INT32_MAX;
    put_memory(&l, a);
    for (int k = 0; k < n_indices; k++) put_memory(&l, &call->inputs[1 + k]);
    put_memory(&l, out);
    TK_TRY(put_faults_memory(&l, call, length));
    put_int(&l, out->size);
    put_axes(&l, list);
    for (int k = 0; k < n_indices; k++) {
        put_int(&l, most[k]);
        put_int(&l, step[k]);
    }
    return run(call, &gathers, &l);
}

tk_status tk_body_gather_on_device(const tk_body_call *call) {
    const tk_attrs_gather *attrs = call->attrs;
    const tk_strided *a = &call->inputs[0], *out = &call->outputs[0];
    int n_indices = call->n_inputs - 1, n_lead = out->rank - a->rank;
    int64_t most[MOST_INDICES], step[MOST_INDICES], length[MOST_INDICES];
    tk_view_axes list = {.n_views = n_indices + 3, .size = 1};
    int64_t positions[TK_AXES_MAX];
    if (out->size == 0) return TK_OK;
    tk_strides_set_row_major(n_lead, out->shape, positions);
    for (int i = 0; i < out->rank; i++) {
        tk_view_axis next = {.length = out->shape[i]};
        if (i < n_lead) next.stride[2 + n_indices] = positions[i];
        if (i >= n_lead) next.stride[0] = a->strides[i - n_lead];
        for (int k = 0; k < n_indices && i < n_lead; k++)
            next.stride[1 + k] = call->inputs[1 + k].strides[i];
        next.stride[1 + n_indices] = out->strides[i];
        tk_view_axes_add(&list, &next);
    }
    for (int k = 0; k < n_indices; k++) {
        int64_t along = attrs->axes.items[k];
        length[k] = a->shape[along];
        most[k] = a->shape[along] - attrs->slice_sizes.items[along];
        step[k] = a->strides[along];
    }
    return run_gather(call, &list, most, step, length);
}

tk_status tk_body_gather_along_on_device(const tk_body_call *call) {
    const tk_attrs_axis *attrs = call->attrs;
    const tk_strided *a = &call->inputs[0], *index = &call->inputs[1], *out = &call->outputs[0];
    tk_view_axes list = {.n_views = 4, .size = 1};
    int64_t positions[TK_AXES_MAX];
    if (out->size == 0) return TK_OK;
    tk_strides_set_row_major(index->rank, index->shape, positions);
    for (int i = 0; i < out->rank; i++) {
        tk_view_axis next = {.length = out->shape[i]};
        next.stride[3] = positions[i];
        next.stride[0] = i == attrs->axis ? 0 : a->strides[i];
        next.stride[1] = index->strides[i];
        next.stride[2] = out->strides[i];
        tk_view_axes_add(&list, &next);
    }
    int64_t length = a->shape[attrs->axis], most = length - 1, step = a->strides[attrs->axis];
    return run_gather(call, &list, &most, &step, &length);
}

/* ---- scatter ---- */

typedef struct scatter {
    const tk_body_call *call;
    int first, n_indices; /* the first index operand */
    tk_view_axes element, loop;
    int64_t most[MOST_INDICES], step[MOST_INDICES], length[MOST_INDICES];
    tk_mode mode;
} scatter;

static int64_t groups_for(const scatter *s) {
    int64_t groups = 1;
    while (groups < MOST_GROUPS && groups * s->element.size < WANTED_THREADS &&
           groups < s->loop.size)
        groups *= 2;
    return groups;
}

static tk_status run_scatter(scatter *s, const tk_strided *updates, const tk_strided *out) {
    const tk_strided *indices = s->call->inputs + s->first;
    launch l;
    tk_view_axes_close(&s->element);
    tk_view_axes_close(&s->loop);
    int64_t groups = groups_for(s);
    start(&l, s->call, out, indices, s->n_indices);
    l.key.dtype = s->mode == TK_SET ? moved_as(out->dtype) : out->dtype;
    l.key.mode = (int)s->mode;
    l.key.n_axes = s->element.rank;
    l.key.n_loop = s->loop.rank;
    l.key.narrow = s->element.size <= INT32_MAX && s->loop.size <= INT32_MAX;
    put_memory(&l, out);
    for (int k = 0; k < s->n_indices; k++) put_memory(&l, &indices[k]);
    put_memory(&l, updates);
    TK_TRY(put_faults_memory(&l, s->call, s->length));
    put_int(&l, s->element.size * groups);
    put_int(&l, s->element.size);
    put_int(&l, groups);
    put_int(&l, s->loop.size);
    put_axes(&l, &s->element);
    put_axes(&l, &s->loop);
    for (int k = 0; k < s->n_indices; k++) {
        put_int(&l, s->most[k]);
        put_int(&l, s->step[k]);
    }
    return run(s->call, &scatters, &l);
}

static tk_status convert(const tk_body_call *call, const tk_strided *from, const tk_strided *to) {
    return tk_elementwise_run(call, TK_OP_astype, 1, from, to);
}

static tk_status widen(const tk_body_call *call, const tk_strided *view, tk_buffer **out_buffer,
                       tk_strided *out) {
    TK_TRY(tk_buffer_new_on(call->device, call->queue, (size_t)view->size * sizeof(float) + 4,
                            out_buffer));
    *out = *view;
    out->dtype = TK_FLOAT32;
    out->data = (*out_buffer)->data;
    tk_strides_set_row_major(out->rank, out->shape, out->strides);
    return convert(call, view, out);
}

typedef void (*describing)(scatter *s, const tk_strided *updates, const tk_strided *out);

/* Sums and products of halves go through an f32 copy, so that they are rounded once. */
static tk_status scatter_wide(scatter *s, describing describe, const tk_strided *updates) {
    const tk_body_call *call = s->call;
    tk_buffer *buffers[2] = {NULL, NULL};
    tk_strided wide, wide_updates;
    tk_status status = widen(call, &call->inputs[0], &buffers[0], &wide);
    if (status == TK_OK) status = widen(call, updates, &buffers[1], &wide_updates);
    if (status == TK_OK) {
        describe(s, &wide_updates, &wide);
        status = run_scatter(s, &wide_updates, &wide);
    }
    if (status == TK_OK) status = convert(call, &wide, &call->outputs[0]);
    for (int i = 0; i < 2; i++)
        if (buffers[i]) tk_buffer_release(buffers[i]);
    return status;
}

static tk_status scatter_all(scatter *s, describing describe, const tk_strided *updates) {
    const tk_strided *a = &s->call->inputs[0], *out = &s->call->outputs[0];
    if (out->size == 0) { /* what there is to write has no place */
        if (updates->size == 0) return TK_OK;
        describe(s, updates, out);
        return run_scatter(s, updates, out);
    }
    bool sums = s->mode == TK_ADD || s->mode == TK_PROD;
    if (updates->size && sums && tk_text_is_half(out->dtype))
        return scatter_wide(s, describe, updates);
    if (out->data != a->data) TK_TRY(tk_copy_on_device(s->call, a, out));
    if (updates->size == 0) return TK_OK;
    describe(s, updates, out);
    return run_scatter(s, updates, out);
}

static void describe_slices(scatter *s, const tk_strided *updates, const tk_strided *out) {
    const tk_attrs_scatter *attrs = s->call->attrs;
    int n_lead = updates->rank - out->rank, n_views = s->n_indices + 3;
    int64_t positions[TK_AXES_MAX];
    tk_strides_set_row_major(n_lead, updates->shape, positions);
    s->element = (tk_view_axes){.n_views = n_views, .size = 1};
    s->loop = (tk_view_axes){.n_views = n_views, .size = 1};
    for (int i = 0; i < updates->rank; i++) {
        tk_view_axis next = {.length = updates->shape[i]};
        next.stride[n_views - 2] = updates->strides[i];
        if (i < n_lead) next.stride[n_views - 1] = positions[i];
        if (i >= n_lead) next.stride[0] = out->strides[i - n_lead];
        for (int k = 0; k < s->n_indices && i < n_lead; k++)
            next.stride[1 + k] = s->call->inputs[s->first + k].strides[i];
        tk_view_axes_add(i < n_lead ? &s->loop : &s->element, &next);
    }
    for (int k = 0; k < s->n_indices; k++) {
        int64_t along = attrs->axes.items[k];
        s->length[k] = out->shape[along];
        s->most[k] = out->shape[along] - updates->shape[n_lead + along];
        s->step[k] = out->strides[along];
    }
}

tk_status tk_body_scatter_on_device(const tk_body_call *call) {
    const tk_attrs_scatter *attrs = call->attrs;
    scatter s = {.call = call,
                 .first = 2,
                 .n_indices = (int)attrs->axes.count,
                 .mode = (tk_mode)attrs->mode};
    return scatter_all(&s, describe_slices, &call->inputs[1]);
}

static void describe_lines(scatter *s, const tk_strided *updates, const tk_strided *out) {
    const tk_attrs_scatter_axis *attrs = s->call->attrs;
    const tk_strided *index = &s->call->inputs[1];
    int64_t positions[TK_AXES_MAX];
    tk_strides_set_row_major(index->rank, index->shape, positions);
    s->element = (tk_view_axes){.n_views = 4, .size = 1};
    s->loop = (tk_view_axes){.n_views = 4, .size = 1};
    for (int i = 0; i < index->rank; i++) {
        bool along = i == attrs->axis;
        tk_view_axis next = {.length = index->shape[i]};
        next.stride[0] = along ? 0 : out->strides[i];
        next.stride[1] = index->strides[i];
        next.stride[2] = updates->strides[i];
        next.stride[3] = positions[i];
        tk_view_axes_add(along ? &s->loop : &s->element, &next);
    }
    s->length[0] = out->shape[attrs->axis];
    s->most[0] = s->length[0] - 1;
    s->step[0] = out->strides[attrs->axis];
}

tk_status tk_body_scatter_along_on_device(const tk_body_call *call) {
    const tk_attrs_scatter_axis *attrs = call->attrs;
    scatter s = {.call = call, .first = 1, .n_indices = 1, .mode = (tk_mode)attrs->mode};
    return scatter_all(&s, describe_lines, &call->inputs[2]);
}

/* ---- what is refused ---- */

static tk_status refuse(tk_op op, const char *why) {
    return tk_fail(TK_UNSUPPORTED, "%s %s has no kernel on devices: move it to the cpu",
                   tk_op_title(op), why);
}

/* Slices that are longer than 1 along an indexed axis may overlap, and then the order of updates
 * is not that of one thread. */
static bool may_overlap(tk_node *const *inputs, const tk_attrs_scatter *attrs) {
    int n_lead = inputs[1]->rank - inputs[0]->rank;
    for (int64_t k = 0; k < attrs->axes.count; k++)
        if (inputs[1]->shape[n_lead + attrs->axes.items[k]] > 1) return true;
    return false;
}

bool tk_index_is(tk_op op) {
    return op == TK_OP_gather || op == TK_OP_scatter || op == TK_OP_gather_along ||
           op == TK_OP_scatter_along;
}

tk_status tk_index_check(tk_op op, tk_node *const *inputs, const void *attrs) {
    tk_dtype dtype = (tk_dtype)inputs[0]->dtype;
    int64_t mode = TK_SET, n_indices = 1;
    if (op == TK_OP_gather) n_indices = ((const tk_attrs_gather *)attrs)->axes.count;
    if (op == TK_OP_scatter) {
        const tk_attrs_scatter *scatter = attrs;
        mode = scatter->mode;
        n_indices = scatter->axes.count;
        if (may_overlap(inputs, scatter)) return refuse(op, "of slices that may overlap");
    }
    if (op == TK_OP_scatter_along) mode = ((const tk_attrs_scatter_axis *)attrs)->mode;
    if (n_indices < 1 || n_indices > MOST_INDICES)
        return refuse(op, "with no index array, or more than 8,");
    return mode == TK_SET ? TK_OK : tk_elementwise_check(mode_ops[mode], dtype, dtype);
}
