/* Rows along any axes; see body_rows.h. */
#include "cpu/body_rows.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"

#define PACKED_ELEMENTS 65536 /* of a group of rows, where rows are short enough */
#define MOST_ROWS 64          /* in a group */
#define FEW_ROWS 16           /* of longer rows, to use whole cache lines */
#define LONG_ROW (1 << 20)
#define GRAIN 16384

/* One side: the view with row axes last, and how its rows are reached. */
typedef struct side {
    tk_strided row;   /* the row axes only */
    tk_dtype type;    /* that the function sees */
    int64_t length;   /* of a row */
    bool packs;       /* rows are not used where they lie */
    int64_t distance; /* bytes between rows of a group, along the inner kept axis */
    char *scratch;
    int64_t scratch_bytes; /* a worker */
} side;

typedef struct job {
    const tk_rows *rows;
    tk_loop kept; /* operand 0: out, operand 1: in */
    side in, out;
    char *scratch; /* of the caller */
    int64_t group, groups_a_line, lines;
} job;

static side side_of(const tk_strided *view, int n_kept, tk_dtype type) {
    side s = {.row = *view, .type = type, .length = 1};
    s.row.rank = view->rank - n_kept;
    for (int i = 0; i < s.row.rank; i++) {
        s.row.shape[i] = view->shape[n_kept + i];
        s.row.strides[i] = view->strides[n_kept + i];
        s.length *= s.row.shape[i];
    }
    s.row.size = s.length;
    s.packs = type != view->dtype || !tk_view_is_dense(&s.row);
    return s;
}

static int64_t group_of(const job *j) {
    int64_t group = PACKED_ELEMENTS / j->in.length;
    if (group < FEW_ROWS) group = j->in.length < LONG_ROW ? FEW_ROWS : 1;
    return group > MOST_ROWS ? MOST_ROWS : group;
}

static tk_status new_scratch(side *s, int64_t group, int threads) {
    if (!s->packs) return TK_OK;
    size_t bytes = tk_dtype_size(s->type);
    s->scratch_bytes = (group * s->length * (int64_t)bytes + 63) / 64 * 64;
    void *memory;
    TK_TRY(tk_scratch_new(s->scratch_bytes, (size_t)threads, &memory));
    s->scratch = memory;
    return TK_OK;
}

/* The rows of a group as a view. */
static tk_strided group_view(const side *s, char *data, int64_t rows) {
    if (s->row.rank == TK_AXES_MAX) { /* no axis is left to have more than one row */
        tk_strided row = s->row;
        row.data = data;
        return row;
    }
    tk_strided view = {.dtype = s->row.dtype,
                       .rank = s->row.rank + 1,
                       .size = rows * s->length,
                       .shape = {rows},
                       .strides = {s->distance / (int64_t)tk_dtype_size(s->row.dtype)},
                       .data = data};
    for (int i = 0; i < s->row.rank; i++) {
        view.shape[i + 1] = s->row.shape[i];
        view.strides[i + 1] = s->row.strides[i];
    }
    return view;
}

/* The same rows in the worker's scratch, where the side has any. */
static tk_strided packed_view(const side *s, const tk_strided *group, int worker) {
    char *memory = s->packs ? s->scratch + worker * s->scratch_bytes : NULL;
    return tk_view_dense(s->type, group->rank, group->shape, memory);
}

static void run_group(const job *j, char *out, char *in, int64_t rows, int worker) {
    tk_strided from = group_view(&j->in, in, rows), to = group_view(&j->out, out, rows);
    tk_strided from_packed = packed_view(&j->in, &from, worker);
    tk_strided to_packed = packed_view(&j->out, &to, worker);
    if (j->in.packs) tk_convert_view(&from, &from_packed);
    const tk_strided *source = j->in.packs ? &from_packed : &from;
    const tk_strided *target = j->out.packs ? &to_packed : &to;
    tk_rows_part part = {.in = source->data,
                         .in_stride = source->strides[0],
                         .out = target->data,
                         .out_stride = target->strides[0],
                         .rows = rows,
                         .length = j->in.length};
    if (j->scratch) part.scratch = j->scratch + (size_t)worker * j->rows->scratch_bytes;
    j->rows->run(j->rows->arg, &part);
    if (j->out.packs) tk_convert_view(&to_packed, &to);
}

typedef struct place {
    char *data[2];
} place;

static void take_place(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    (void)strides;
    (void)count;
    *(place *)arg = (place){{data[0], data[1]}};
}

static void run_part(void *arg, int64_t begin, int64_t end, int worker) {
    const job *j = arg;
    int64_t line_rows = j->kept.shape[j->kept.rank - 1];
    for (int64_t task = begin; task < end; task++) {
        int64_t line = task / j->groups_a_line, first = task % j->groups_a_line * j->group;
        int64_t position = line * line_rows + first, left = line_rows - first;
        place at;
        tk_loop_range(&j->kept, position, position + 1, take_place, &at);
        run_group(j, at.data[0], at.data[1], left < j->group ? left : j->group, worker);
    }
}

/* At most `workers` parts, which index the scratch, whatever another thread sets meanwhile. */
static void run_job(job *j, int workers) {
    int64_t tasks = j->lines * j->groups_a_line;
    int64_t grain = 1 + GRAIN / (j->group * j->in.length), share = tk_chunk_count(tasks, workers);
    if (grain < share) grain = share;
    if (tasks == 1)
        run_part(j, 0, 1, 0);
    else
        tk_parallel_for(tasks, grain, run_part, j);
}

tk_status tk_rows_run(const tk_rows *rows) {
    tk_strided in = *rows->in, out = *rows->out;
    int n_kept = tk_view_axes_last(&in, rows->axes);
    tk_view_axes_last(&out, rows->axes);
    job j = {.rows = rows,
             .kept = tk_loop_over(n_kept, in.shape),
             .in = side_of(&in, n_kept, rows->in_type),
             .out = side_of(&out, n_kept, rows->out_type)};
    if (in.size == 0 || out.size == 0) return TK_OK;
    tk_loop_add_raw(&j.kept, out.data, out.strides, tk_dtype_size(out.dtype));
    tk_loop_add_raw(&j.kept, in.data, in.strides, tk_dtype_size(in.dtype));
    tk_loop_collapse(&j.kept);
    int inner = j.kept.rank - 1;
    j.out.distance = j.kept.strides[0][inner];
    j.in.distance = j.kept.strides[1][inner];
    j.lines = j.kept.size / j.kept.shape[inner];
    bool packs = j.in.packs || j.out.packs;
    j.group = packs ? group_of(&j) : 1 + GRAIN / j.in.length;
    if (j.group > j.kept.shape[inner]) j.group = j.kept.shape[inner];
    j.groups_a_line = (j.kept.shape[inner] + j.group - 1) / j.group;
    int workers = tk_pool_threads();
    tk_status status = new_scratch(&j.in, j.group, workers);
    if (status == TK_OK) status = new_scratch(&j.out, j.group, workers);
    if (status == TK_OK && rows->scratch_bytes)
        status = tk_scratch_new(workers, rows->scratch_bytes, (void **)&j.scratch);
    if (status == TK_OK) run_job(&j, workers);
    tk_free(j.in.scratch);
    tk_free(j.out.scratch);
    tk_free(j.scratch);
    return status;
}
