/* Ops as the evaluator calls them, on 64 MiB operands, in GB/s of what they must read and write,
 * beside a copy by as many threads in the same run. A figure is the fastest of several repeats: the
 * machine may be shared. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/executor.h"
#include "base/pool.h"
#include "cpu/body_loop.h"
#include "cpu/vec.h"

#define ROWS 4096
#define COLUMNS 4096
#define ELEMENTS ((int64_t)ROWS * COLUMNS)
#define REPEATS 7
#define BYTES (64 << 20)

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *new_memory(void) {
    void *memory = aligned_alloc(64, (size_t)2 * BYTES);
    if (!memory) abort();
    memset(memory, 0, (size_t)2 * BYTES);
    return memory;
}

static char *a_memory, *b_memory, *out_memory;

static tk_strided matrix(tk_dtype dtype, void *memory) {
    static const int64_t shape[] = {ROWS, COLUMNS};
    return tk_view_dense(dtype, 2, shape, memory);
}

static tk_strided transposed(tk_strided view) {
    int64_t stride = view.strides[0];
    view.strides[0] = view.strides[1];
    view.strides[1] = stride;
    return view;
}

static tk_strided row_vector(tk_strided view) {
    view.strides[0] = 0;
    return view;
}

static tk_strided column_vector(tk_strided view) {
    view.strides[1] = 0;
    return view;
}

typedef struct task {
    const char *name;
    tk_op op;
    const void *attrs;
    int n_inputs;
    tk_strided inputs[3], out;
    double bytes; /* moved */
} task;

static double time_task(const task *t) {
    tk_fault fault = {.position = INT64_MAX};
    tk_body_call call = {.op = t->op,
                         .attrs = t->attrs,
                         .n_inputs = t->n_inputs,
                         .inputs = t->inputs,
                         .n_outputs = 1,
                         .outputs = &t->out,
                         .fault = &fault};
    double begin = seconds();
    if (tk_cpu_executor.bodies[t->op](&call) != TK_OK) abort();
    return seconds() - begin;
}

static void copy_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)arg;
    (void)worker;
    memcpy(out_memory + begin, a_memory + begin, (size_t)(end - begin));
}

static double time_copy(void) {
    double begin = seconds();
    tk_parallel_for(BYTES, 1 << 16, copy_part, NULL);
    return seconds() - begin;
}

/* Copies between the repeats, so that both see the same neighbours. */
static void measure(task t) {
    double best = 1e9, copy = 1e9;
    for (int r = 0; r < REPEATS; r++) {
        double time = time_task(&t), copy_time = time_copy();
        if (time < best) best = time;
        if (copy_time < copy) copy = copy_time;
    }
    double rate = t.bytes / best * 1e-9, copy_rate = 2.0 * BYTES / copy * 1e-9;
    printf("%-34s %8.2f ms %7.2f GB/s %6.2f of a copy\n", t.name, best * 1e3, rate,
           rate / copy_rate);
}

static void unary(const char *name, tk_op op, tk_dtype dtype) {
    task t = {name, op, NULL, 1, {matrix(dtype, a_memory)}, matrix(dtype, out_memory), 0};
    t.bytes = 2.0 * ELEMENTS * (double)tk_dtype_size(dtype);
    measure(t);
}

static void binary(const char *name, tk_op op, tk_strided a, tk_strided b, double operands) {
    tk_dtype result = tk_op_of(op)->result == TK_RESULT_BOOL ? TK_BOOL : a.dtype;
    task t = {name, op, NULL, 2, {a, b}, matrix(result, out_memory), 0};
    t.bytes =
        ELEMENTS * (operands * (double)tk_dtype_size(a.dtype) + (double)tk_dtype_size(result));
    measure(t);
}

static void along(const char *name, tk_op op, tk_dtype dtype, int64_t axis, bool reduces) {
    tk_attrs_reduce reduce = {.axes = {&axis, 1}};
    tk_attrs_scan scan = {.axis = axis, .inclusive = 1};
    tk_attrs_axis plain = {.axis = axis};
    tk_lower lower = tk_op_of(op)->lower;
    bool by_list = op != TK_OP_reduce_argmax && lower != TK_LOWER_SORT && lower != TK_LOWER_SCAN;
    const void *attrs = by_list                  ? (const void *)&reduce
                        : lower == TK_LOWER_SCAN ? (const void *)&scan
                                                 : &plain;
    bool indices = op == TK_OP_reduce_argmax || op == TK_OP_argsort_axis;
    int64_t shape[] = {reduces && axis == 0 ? 1 : ROWS, reduces && axis == 1 ? 1 : COLUMNS};
    task t = {name,
              op,
              attrs,
              1,
              {matrix(dtype, a_memory)},
              tk_view_dense(indices ? TK_UINT32 : dtype, 2, shape, out_memory),
              0};
    t.bytes = (reduces ? 1.0 : 2.0) * ELEMENTS * (double)tk_dtype_size(dtype);
    measure(t);
}

static void elementwise(void) {
    tk_strided a = matrix(TK_FLOAT32, a_memory), b = matrix(TK_FLOAT32, b_memory);
    tk_strided whole = matrix(TK_INT32, a_memory), half = matrix(TK_BFLOAT16, a_memory);
    tk_strided truth = matrix(TK_BOOL, a_memory);
    binary("add f32", TK_OP_add, a, b, 2);
    binary("add f32, row vector", TK_OP_add, a, row_vector(b), 1);
    binary("multiply f32, column vector", TK_OP_multiply, a, column_vector(b), 1);
    binary("add f32, transposed operand", TK_OP_add, a, transposed(b), 2);
    binary("add bf16", TK_OP_add, half, half, 2);
    binary("maximum f32", TK_OP_maximum, a, b, 2);
    binary("less f32", TK_OP_less, a, b, 2);
    binary("add i32", TK_OP_add, whole, whole, 2);
    binary("left_shift i32", TK_OP_left_shift, whole, whole, 2);
    binary("remainder f32", TK_OP_remainder, a, b, 2);
    binary("floor_divide i32", TK_OP_floor_divide, whole, whole, 2);
    binary("logical_and", TK_OP_logical_and, truth, truth, 2);
    binary("add complex64", TK_OP_add, matrix(TK_COMPLEX64, a_memory),
           matrix(TK_COMPLEX64, b_memory), 2);
    unary("negative f32", TK_OP_negative, TK_FLOAT32);
    unary("exp f32", TK_OP_exp, TK_FLOAT32);
    unary("exp bf16", TK_OP_exp, TK_BFLOAT16);
    unary("tanh f32", TK_OP_tanh, TK_FLOAT32);
    task where = {
        "where f32",    TK_OP_where, NULL, 3, {truth, a, b}, matrix(TK_FLOAT32, out_memory),
        13.0 * ELEMENTS};
    measure(where);
    tk_attrs_dtype to_half = {.dtype = TK_BFLOAT16};
    task cast = {
        "astype f32 to bf16", TK_OP_astype, &to_half, 1, {a}, matrix(TK_BFLOAT16, out_memory),
        6.0 * ELEMENTS};
    measure(cast);
    task turn = {"contiguous f32, transposed",   TK_OP_contiguous, NULL, 1, {transposed(a)},
                 matrix(TK_FLOAT32, out_memory), 8.0 * ELEMENTS};
    measure(turn);
}

static void rows(void) {
    along("sum f32, last axis", TK_OP_reduce_sum, TK_FLOAT32, 1, true);
    along("sum f32, first axis", TK_OP_reduce_sum, TK_FLOAT32, 0, true);
    along("sum bf16, last axis", TK_OP_reduce_sum, TK_BFLOAT16, 1, true);
    along("sum bf16, first axis", TK_OP_reduce_sum, TK_BFLOAT16, 0, true);
    along("sum i32, last axis", TK_OP_reduce_sum, TK_INT32, 1, true);
    along("max f32, last axis", TK_OP_reduce_max, TK_FLOAT32, 1, true);
    along("argmax f32, last axis", TK_OP_reduce_argmax, TK_FLOAT32, 1, true);
    along("argmax f32, first axis", TK_OP_reduce_argmax, TK_FLOAT32, 0, true);
    along("logsumexp f32, last axis", TK_OP_reduce_logsumexp, TK_FLOAT32, 1, true);
    along("softmax f32, last axis", TK_OP_softmax_axes, TK_FLOAT32, 1, false);
    along("softmax f32, first axis", TK_OP_softmax_axes, TK_FLOAT32, 0, false);
    along("cumsum f32, last axis", TK_OP_scan_sum, TK_FLOAT32, 1, false);
    along("cumsum f32, first axis", TK_OP_scan_sum, TK_FLOAT32, 0, false);
    along("sort f32, last axis", TK_OP_sort_axis, TK_FLOAT32, 1, false);
    along("argsort f32, last axis", TK_OP_argsort_axis, TK_FLOAT32, 1, false);
}

static void layers(void) {
    tk_attrs_norm attrs = {.eps = 1e-5, .has_weight = 1, .has_bias = 1};
    static const int64_t parameter[] = {COLUMNS};
    tk_strided x = matrix(TK_FLOAT32, a_memory),
               w = tk_view_dense(TK_FLOAT32, 1, parameter, b_memory);
    task norm = {"layer_norm f32", TK_OP_layer_norm_fused,         &attrs,        3,
                 {x, w, w},        matrix(TK_FLOAT32, out_memory), 8.0 * ELEMENTS};
    measure(norm);
    tk_attrs_norm plain = {.eps = 1e-5, .has_weight = 1};
    task rms = {"rms_norm f32", TK_OP_rms_norm_fused,           &plain,        2,
                {x, w},         matrix(TK_FLOAT32, out_memory), 8.0 * ELEMENTS};
    measure(rms);
    static const int64_t axes[] = {0}, sizes[] = {1, COLUMNS}, count[] = {ROWS},
                         shape[] = {ROWS, 1, COLUMNS};
    tk_attrs_gather gather = {.axes = {axes, 1}, .slice_sizes = {sizes, 2}};
    int32_t *indices = (int32_t *)(b_memory + BYTES);
    for (int i = 0; i < ROWS; i++) indices[i] = (int)((int64_t)i * 2741 % ROWS);
    task take = {"gather f32, rows",
                 TK_OP_gather,
                 &gather,
                 2,
                 {x, tk_view_dense(TK_INT32, 1, count, indices)},
                 tk_view_dense(TK_FLOAT32, 3, shape, out_memory),
                 8.0 * ELEMENTS};
    measure(take);
}

int main(void) {
    a_memory = new_memory();
    b_memory = new_memory();
    out_memory = new_memory();
    for (int64_t i = 0; i < ELEMENTS; i++) {
        ((float *)a_memory)[i] = (float)(i * 7919 % 20011) * 0.001f - 10.0f;
        ((float *)b_memory)[i] = (float)(i * 104729 % 9973) * 0.001f + 0.25f;
    }
    printf("%d threads, %s\n", tk_pool_threads(), tk_vec_variant_name(tk_vec_variant_in_use()));
    elementwise();
    rows();
    layers();
    free(a_memory);
    free(b_memory);
    free(out_memory);
    return 0;
}
