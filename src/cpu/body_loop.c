/* Collapsing and running strided loops; see body_loop.h. */
#include "cpu/body_loop.h"

#include <assert.h>
#include <string.h>

#include "base/pool.h"

#define SHORT_RUN 8

tk_loop tk_loop_over(int rank, const int64_t *shape) {
    tk_loop loop = {.rank = rank, .size = 1};
    for (int i = 0; i < rank; i++) {
        loop.shape[i] = shape[i];
        loop.size *= shape[i];
    }
    return loop;
}

void tk_loop_add_raw(tk_loop *loop, void *data, const int64_t *strides, size_t element_bytes) {
    assert(loop->n_operands < TK_LOOP_OPERANDS);
    int operand = loop->n_operands++;
    loop->data[operand] = data;
    for (int i = 0; i < loop->rank; i++)
        loop->strides[operand][i] = strides[i] * (int64_t)element_bytes;
}

void tk_loop_add(tk_loop *loop, const tk_strided *view) {
    assert(view->rank == loop->rank);
    tk_loop_add_raw(loop, view->data, view->strides, tk_dtype_size(view->dtype));
}

static void copy_axis(tk_loop *loop, int to, int from) {
    loop->shape[to] = loop->shape[from];
    for (int k = 0; k < loop->n_operands; k++) loop->strides[k][to] = loop->strides[k][from];
}

static void swap_axes(tk_loop *loop, int a, int b) {
    int64_t length = loop->shape[a];
    int64_t strides[TK_LOOP_OPERANDS];
    for (int k = 0; k < loop->n_operands; k++) strides[k] = loop->strides[k][a];
    copy_axis(loop, a, b);
    loop->shape[b] = length;
    for (int k = 0; k < loop->n_operands; k++) loop->strides[k][b] = strides[k];
}

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Whether axis `a` should lie inside axis `b`: the first operand that moves along both decides. */
static bool belongs_inside(const tk_loop *loop, int a, int b) {
    for (int k = 0; k < loop->n_operands; k++) {
        int64_t step_a = magnitude(loop->strides[k][a]), step_b = magnitude(loop->strides[k][b]);
        if (step_a != step_b && step_a && step_b) return step_a < step_b;
    }
    return false;
}

static void drop_short_axes(tk_loop *loop) {
    int kept = 0;
    for (int i = 0; i < loop->rank; i++)
        if (loop->shape[i] != 1) copy_axis(loop, kept++, i);
    loop->rank = kept;
}

static bool steps_as_one(const tk_loop *loop, int outer, int inner) {
    for (int k = 0; k < loop->n_operands; k++)
        if (loop->strides[k][outer] != loop->strides[k][inner] * loop->shape[inner]) return false;
    return true;
}

static void merge_axes(tk_loop *loop) {
    int kept = 0;
    for (int i = 1; i < loop->rank; i++) {
        if (steps_as_one(loop, kept, i)) {
            int64_t length = loop->shape[kept] * loop->shape[i];
            copy_axis(loop, kept, i);
            loop->shape[kept] = length;
        } else {
            copy_axis(loop, ++kept, i);
        }
    }
    if (loop->rank) loop->rank = kept + 1;
}

void tk_loop_merge(tk_loop *loop) {
    if (loop->size) drop_short_axes(loop);
    if (loop->size) merge_axes(loop);
    if (loop->rank == 0) {
        loop->rank = 1;
        loop->shape[0] = loop->size;
        for (int k = 0; k < loop->n_operands; k++) loop->strides[k][0] = 0;
    }
}

void tk_loop_collapse(tk_loop *loop) {
    for (int i = 1; i < loop->rank; i++)
        for (int j = i; j > 0 && belongs_inside(loop, j - 1, j); j--) swap_axes(loop, j - 1, j);
    tk_loop_merge(loop);
}

void tk_loop_lengthen(tk_loop *loop) {
    int inner = loop->rank - 1, longest = inner;
    if (loop->shape[inner] >= SHORT_RUN) return;
    for (int i = 0; i < inner; i++)
        if (loop->shape[i] > loop->shape[longest]) longest = i;
    if (longest != inner) swap_axes(loop, longest, inner);
}

typedef struct cursor {
    int64_t index[TK_AXES_MAX];
    char *data[TK_LOOP_OPERANDS];
} cursor;

static cursor cursor_at(const tk_loop *loop, int64_t position) {
    cursor at = {.index = {0}};
    memcpy(at.data, loop->data, sizeof at.data);
    for (int i = loop->rank - 1; i >= 0; i--) {
        at.index[i] = position % loop->shape[i];
        position /= loop->shape[i];
        for (int k = 0; k < loop->n_operands; k++) at.data[k] += at.index[i] * loop->strides[k][i];
    }
    return at;
}

static void advance(const tk_loop *loop, cursor *at, int axis, int64_t count) {
    at->index[axis] += count;
    for (int k = 0; k < loop->n_operands; k++) at->data[k] += count * loop->strides[k][axis];
}

/* To the next run; the innermost axis stands at its end. */
static void carry(const tk_loop *loop, cursor *at) {
    for (int i = loop->rank - 1; i > 0 && at->index[i] == loop->shape[i]; i--) {
        advance(loop, at, i, -loop->shape[i]);
        advance(loop, at, i - 1, 1);
    }
}

void tk_loop_range(const tk_loop *loop, int64_t begin, int64_t end, tk_loop_run run, void *arg) {
    if (begin >= end) return;
    int inner = loop->rank - 1;
    int64_t strides[TK_LOOP_OPERANDS];
    for (int k = 0; k < loop->n_operands; k++) strides[k] = loop->strides[k][inner];
    cursor at = cursor_at(loop, begin);
    while (begin < end) {
        int64_t count = loop->shape[inner] - at.index[inner];
        if (count > end - begin) count = end - begin;
        run(arg, at.data, strides, count);
        begin += count;
        if (begin == end) break;
        advance(loop, &at, inner, count);
        carry(loop, &at);
    }
}

typedef struct each {
    const tk_loop *loop;
    tk_loop_run run;
    void *arg;
} each;

static void each_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const each *job = arg;
    tk_loop_range(job->loop, begin, end, job->run, job->arg);
}

void tk_loop_each(const tk_loop *loop, int64_t grain, tk_loop_run run, void *arg) {
    each job = {loop, run, arg};
    tk_parallel_for(loop->size, grain, each_part, &job);
}

/* ---- views ---- */

tk_strided tk_view_dense(tk_dtype dtype, int rank, const int64_t *shape, void *data) {
    tk_strided view = {.dtype = dtype, .rank = rank, .size = 1, .data = data};
    for (int i = rank - 1; i >= 0; i--) {
        view.shape[i] = shape[i];
        view.strides[i] = view.size;
        view.size *= shape[i];
    }
    return view;
}

bool tk_view_is_dense(const tk_strided *view) {
    int64_t expected = 1;
    for (int i = view->rank - 1; view->size && i >= 0; i--) {
        if (view->shape[i] == 1) continue;
        if (view->strides[i] != expected) return false;
        expected *= view->shape[i];
    }
    return true;
}

int tk_view_axes_last(tk_strided *view, tk_axes axes) {
    tk_strided old = *view;
    int kept = 0, moved = view->rank - (int)axes.count;
    for (int i = 0, next = 0; i < old.rank; i++) {
        bool is_moved = next < axes.count && axes.items[next] == i;
        int to = is_moved ? moved++ : kept++;
        next += is_moved;
        view->shape[to] = old.shape[i];
        view->strides[to] = old.strides[i];
    }
    return kept;
}
