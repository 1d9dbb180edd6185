/* What kernels over rows share: threads_per_row threads work on a row, rows_per_block rows on a
 * block; thread t has row t / threads_per_row, and of it the vectors t % threads_per_row,
 * + threads_per_row, ... Either each thread keeps its `held` vectors in registers, unrolled, or it
 * loops over them as often as the kernel needs them. With cluster > 1 so many blocks share their
 * rows: block b of a cluster has the vectors from b * threads_per_row on, in steps of
 * threads_per_row * cluster. Threads without a row do nothing, but take part in reductions. */
#ifndef LIBRARY_ROWS_H
#define LIBRARY_ROWS_H

#include "library/emit.h"
#include "library/plan.h"

#define TK_ROWS_MOST_HELD 32

/* A tensor as rows: the last axis is contiguous, the others are one. */
typedef struct tk_row_shape {
    int64_t rows, columns, pitch;
} tk_row_shape;

/* TK_SHAPE_ERROR when the tensor is not of this kind. */
tk_status tk_rows_shape(const tk_library_call *call, size_t index, const char *role,
                        tk_row_shape *out);

/* The widest access, in elements, that the listed tensors allow with rows of this many columns. */
typedef struct tk_row_operand {
    size_t index;
    int64_t pitch; /* 0: the same vector for every row */
} tk_row_operand;
int tk_rows_lanes(const tk_library_call *call, int64_t columns, size_t count,
                  const tk_row_operand *operands);

/* Tensors that a kernel reads by rows: the pointer, and elements from row to row (i64). */
typedef struct tk_rows_stream {
    tk_val tensor, pitch;
} tk_rows_stream;

typedef struct tk_rows {
    tk_library_kernel *k;
    tk_b *b;
    int64_t threads, of_block, held; /* threads of a row in a block, rows of a block */
    int64_t cluster, all_threads;    /* blocks and threads of a row */
    int64_t overlap, prefetch;
    tk_rows_stream streams[2]; /* whose later rows are called for when warps meet */
    size_t n_streams;
    int lanes;           /* elements of a vector */
    int64_t most_blocks; /* of the grid; 0: as many as there are rows for */
    bool in_loop, met;   /* met: all blocks of the cluster are known to run */
    bool late;           /* rows of later blocks are called for when sums meet */
    bool full;           /* every thread has `held` vectors of a row, in every row of the block */
    tk_val thread, lane, row, active, vectors, columns; /* lane: the thread's number in its row */
    tk_val rows, group, all_vectors;                    /* group: the thread's row in the block */
    tk_val words[4];                                    /* of reductions */
    tk_val gates; /* mbarriers that count the words of a meeting of a cluster's blocks */
    int meets;    /* so far */
} tk_rows;

/* Checks the schedule against the shape, opens the kernel, binds `rows` and `columns`, sets grid
 * and block. Parameters that the kernel adds come before this: `k` is open already. */
tk_status tk_rows_check(const tk_library_call *call, int64_t rows, int64_t columns, int lanes);
/* Of a schedule with prefetch: whether the rows of the first `count` tensors can be called for. */
tk_status tk_rows_check_prefetch(const tk_library_call *call, size_t count, int lanes);
void tk_rows_start(tk_rows *r, tk_library_kernel *k, const tk_library_call *call, int64_t rows,
                   int64_t columns, int lanes);

/* The same for blocks that loop over rows: at most so many, each with every so-manieth group of
 * rows; `n_sums` values are reduced at once. The thread is at its first row then. tk_rows_loop
 * begins the loop; `carried` are the values as its body sees them afterwards, which ends with
 * tk_kernel_end. Gives the index of the loop's next trip. */
void tk_rows_start_loop(tk_rows *r, tk_library_kernel *k, const tk_library_call *call, int64_t rows,
                        int64_t columns, int lanes, int64_t most_blocks, size_t n_sums);
tk_val tk_rows_loop(tk_rows *r, size_t n_carried, tk_val *carried);

tk_val tk_rows_first(const tk_rows *r); /* the first row of the block */
tk_val tk_rows_log2(const tk_rows *r, int64_t power);

/* The thread's row is that of its group behind this one. */
void tk_rows_go_to(tk_rows *r, tk_val first);

/* Begins while the launch before it ends, and waits for that end before memory is touched. With
 * overlap = 2 the held vectors of the rows are on their way to the L2 meanwhile, whose lines are
 * right whenever they came. With prefetch > 0 the rows of the block so many behind this one (of the
 * cluster) are called into the L2 too: when that block begins, its rows wait there. */
void tk_rows_wait(tk_rows *r, size_t count, const tk_rows_stream *streams);
void tk_rows_call_when_met(tk_rows *r); /* of reductions: the first one calls, if it is late */
void tk_rows_overlap(tk_b *b, const tk_library_schedule *schedule);

/* The thread's row of a tensor with a pitch (a parameter, i64). */
tk_val tk_rows_pointer(const tk_rows *r, tk_val tensor, tk_val pitch);

/* Calls `body` for each vector of the thread, in held form with its number and a condition (NULL
 * when all rows are full), else in a loop with number -1 and condition NULL. `carried` goes from
 * one call to the next. `at` is the vector's first column. */
typedef void (*tk_rows_body)(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                             tk_val *carried);
void tk_rows_each(const tk_rows *r, size_t n_carried, tk_val *carried, tk_rows_body body,
                  void *arg);

/* The vector itself, of the row's type; `other` (NULL: 0) where the condition does not hold. */
tk_val tk_rows_load_raw(const tk_rows *r, tk_val row, tk_val at, tk_val condition, tk_val other);
void tk_rows_widen(const tk_rows *r, tk_val vector, tk_val *out);
/* The same in other operations: ptxas would keep the results of the first ones instead, which are
 * twice the registers (91 of softmax_backward with held = 4, where 64 do). */
void tk_rows_widen_again(const tk_rows *r, tk_val vector, tk_val *out);

/* A vector of a row as scalars of f32, zero where the condition does not hold; and back. */
void tk_rows_load(const tk_rows *r, tk_val row, tk_val at, tk_val condition, tk_val *out);
void tk_rows_store(const tk_rows *r, tk_val row, tk_val at, tk_val condition, const tk_val *values);

/* The sum of `lanes` values by halves. */
tk_val tk_rows_tree(const tk_rows *r, const tk_val *values);

/* Each value becomes the sum (or maximum) over the threads of the row, in all of them. */
void tk_rows_reduce(tk_rows *r, tk_kopcode how, size_t count, tk_val *values);

/* The steps of this, for what is not one operation: over the lanes of a warp that share a row;
 * then, unless that is all, `count` values of each warp meet in shared memory, and lane i has those
 * of warps i, i + 32, ... of the row (of every block of the cluster): `parts` of each, which is
 * given; then these become one. A kernel whose blocks share rows meets at least once. */
#define TK_ROWS_MOST_PARTS 8
tk_val tk_rows_warp(const tk_rows *r, tk_kopcode how, tk_val value);
bool tk_rows_are_warps(const tk_rows *r);
int tk_rows_meet(tk_rows *r, size_t count, const tk_val *values, tk_val out[][TK_ROWS_MOST_PARTS]);
tk_val tk_rows_join(const tk_rows *r, tk_kopcode how, int parts, const tk_val *values);

/* Whether the thread is the first of a row that exists. */
tk_val tk_rows_leads(const tk_rows *r);

/* Default of threads_per_row, rows_per_block and held for tensors with rows like the first one's,
 * of which `kept` values of f32 are kept for each element that is held. */
void tk_rows_choose(const tk_library_tensor *tensors, size_t count, int kept,
                    tk_library_schedule *out);

/* Default of prefetch and late for what reads the first of `count` tensors by rows, the others
 * being chosen; of_cluster: blocks of clusters that a multiprocessor has at once. */
void tk_rows_choose_prefetch(const tk_library_tensor *tensors, size_t count, int of_cluster,
                             tk_library_schedule *out);

#endif
