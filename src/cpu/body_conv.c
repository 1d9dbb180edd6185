/* Convolutions as matrix products: what each output meets is gathered into a row, rows times the
 * weights of a group are its outputs.
 *
 * Rows are gathered in blocks that fit the cache, a block and a group the work of one thread; long
 * rows (gradients of weights, where a row is a whole image) in parts that are added up. Where rows
 * lie in the input as they are (1 by 1 kernels, and their gradients) nothing is gathered and one
 * product takes all. Kernels with one channel a group (depthwise) are sums of products of vectors
 * over the channels. Half types compute in float32 and are rounded once.
 *
 * Work is 2 N P O K C / groups operations for P outputs and K taps; products with the zeros between
 * the elements of a spread input are left out (conv.h). Rejected: Winograd's transforms (they lose
 * digits), a product for each tap (short ones, and the output read and written K times). */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_ewise.h"
#include "cpu/body_loop.h"
#include "cpu/conv.h"
#include "cpu/gemm.h"
#include "cpu/vec.h"

#define ROW_PART 8192      /* elements of a row that are gathered at once */
#define BLOCK_ITEMS 262144 /* elements of a block */
#define LEAST_ROWS 32

typedef struct convolution {
    tk_conv shape;
    tk_dtype dtype;
    size_t bytes;
    const char *input, *weight; /* dense; weight: of the chosen class, [O, taps, in_each] */
    char *output;
    int64_t rows, row_items; /* of the chosen class */
    int64_t block_rows, blocks, part_items;
    char *scratch; /* of all threads */
    size_t scratch_bytes;
    tk_status *status; /* of each thread */
} convolution;

/* ---- by products of gathered rows ---- */

/* Elements of a part of a row, which are whole lines of taps or whole taps. */
static int64_t part_items(const tk_conv *shape, int64_t row_items) {
    int64_t line = shape->axes[2].taps * shape->in_each;
    if (row_items <= ROW_PART || line == 0) return row_items;
    if (line <= ROW_PART) return ROW_PART / line * line;
    int64_t taps = ROW_PART / shape->in_each;
    return (taps ? taps : 1) * shape->in_each;
}

/* The part that begins at element `at` of a row. */
static tk_conv_part part_at(const convolution *c, int64_t at) {
    const tk_conv *shape = &c->shape;
    int64_t all = shape->axes[2].taps, line = all * shape->in_each;
    tk_conv_part part = {.first_line = at / line, .lines = 1, .taps = all};
    if (c->part_items >= line) {
        int64_t left = (c->row_items - at) / line, lines = c->part_items / line;
        part.lines = lines < left ? lines : left;
        return part;
    }
    part.first_tap = at % line / shape->in_each;
    part.taps = c->part_items / shape->in_each;
    if (part.taps > all - part.first_tap) part.taps = all - part.first_tap;
    return part;
}

static char *block_output(const convolution *c, int64_t group, int64_t row) {
    int64_t pixel = tk_conv_output_of(&c->shape, row);
    int64_t at = (pixel * c->shape.groups + group) * c->shape.out_each;
    return c->output + at * (int64_t)c->bytes;
}

/* rows by items of the block's columns times the weights, to or onto `out`. */
static tk_status multiply(const convolution *c, int64_t group, int64_t at, int64_t rows,
                          int64_t items, const char *columns, char *out, int64_t out_row) {
    int64_t first = group * c->shape.out_each * c->row_items + at;
    tk_gemm_args args = {.dtype = c->dtype,
                         .way = tk_cpu_reference() ? TK_GEMM_PORTABLE : TK_GEMM_AUTO,
                         .m = rows,
                         .n = c->shape.out_each,
                         .k = items,
                         .a = columns,
                         .a_row = items,
                         .a_column = 1,
                         .b = c->weight + first * (int64_t)c->bytes,
                         .b_row = 1,
                         .b_column = c->row_items,
                         .c = out,
                         .c_row = out_row,
                         .c_column = 1,
                         .alpha = 1,
                         .beta = at ? 1 : 0};
    return tk_gemm(&args);
}

static tk_status gather_block(const convolution *c, int64_t group, int64_t row, int64_t rows,
                              char *columns, char *out, int64_t out_row) {
    for (int64_t at = 0;;) {
        tk_conv_part part = {0};
        if (c->row_items) part = part_at(c, at);
        int64_t items = part.lines * part.taps * c->shape.in_each;
        for (int64_t i = 0; i < rows; i++)
            tk_conv_gather(&c->shape, c->input, c->bytes, group, row + i, &part,
                           columns + i * items * (int64_t)c->bytes);
        TK_TRY(multiply(c, group, at, rows, items, columns, out, out_row));
        at += items;
        if (at >= c->row_items) return TK_OK;
    }
}

static void block_run(void *arg, int64_t begin, int64_t end, int worker) {
    const convolution *c = arg;
    int64_t each = c->shape.out_each;
    size_t row_bytes = (size_t)each * c->bytes;
    char *columns = c->scratch + (size_t)worker * c->scratch_bytes;
    char *apart = columns + (size_t)(c->block_rows * c->part_items) * c->bytes;
    bool in_order = tk_conv_has_all_rows(&c->shape);
    for (int64_t at = begin; at < end && c->status[worker] == TK_OK; at++) {
        int64_t group = at / c->blocks, row = at % c->blocks * c->block_rows;
        int64_t rows = c->rows - row < c->block_rows ? c->rows - row : c->block_rows;
        char *out = in_order ? block_output(c, group, row) : apart;
        c->status[worker] = gather_block(c, group, row, rows, columns, out,
                                         in_order ? each * c->shape.groups : each);
        for (int64_t i = 0; !in_order && i < rows; i++)
            memcpy(block_output(c, group, row + i), apart + (size_t)i * row_bytes, row_bytes);
    }
}

static tk_status run_blocks(convolution *c) {
    int threads = tk_pool_threads();
    c->part_items = part_items(&c->shape, c->row_items);
    int64_t fitting = BLOCK_ITEMS / (c->part_items + 1), share = c->rows * c->shape.groups;
    share = (share + threads - 1) / threads;
    c->block_rows = fitting < LEAST_ROWS ? LEAST_ROWS : fitting;
    if (c->block_rows > share && share >= LEAST_ROWS) c->block_rows = share;
    if (c->block_rows > c->rows) c->block_rows = c->rows;
    c->blocks = (c->rows + c->block_rows - 1) / c->block_rows;
    c->scratch_bytes = (size_t)(c->block_rows * (c->part_items + c->shape.out_each)) * c->bytes;
    void *statuses;
    TK_TRY(tk_scratch_new(threads, c->scratch_bytes, (void **)&c->scratch));
    tk_status status = tk_scratch_new(threads, sizeof *c->status, &statuses);
    if (status == TK_OK) {
        c->status = statuses;
        for (int i = 0; i < threads; i++) c->status[i] = TK_OK;
        tk_parallel_for(c->blocks * c->shape.groups, 1, block_run, c);
        for (int i = 0; i < threads && status == TK_OK; i++) status = c->status[i];
        tk_free(statuses);
    }
    tk_free(c->scratch);
    return status;
}

/* ---- without gathering ---- */

/* The distance of rows where they lie in the input one after the other, whole: 0 where they do not.
 */
static int64_t rows_in_place(const convolution *c) {
    const tk_conv *shape = &c->shape;
    bool pointwise = tk_conv_taps(shape) == 1, whole = shape->groups == 1;
    int64_t image = shape->groups * shape->in_each;
    for (int i = 0; i < TK_CONV_SPATIAL; i++) {
        const tk_conv_axis *axis = &shape->axes[i];
        pointwise &= axis->base == 0 && axis->per_output == 1 && axis->rows == axis->in;
        whole &= axis->base == 0 && axis->per_tap == 1 && axis->rows == 1 && axis->taps == axis->in;
        image *= axis->in;
    }
    return pointwise ? shape->groups * shape->in_each : whole ? image : 0;
}

static tk_status run_in_place(const convolution *c, int64_t distance) {
    const tk_conv *shape = &c->shape;
    tk_gemm_args args = {.dtype = c->dtype,
                         .way = tk_cpu_reference() ? TK_GEMM_PORTABLE : TK_GEMM_AUTO,
                         .m = c->rows,
                         .n = shape->out_each,
                         .k = c->row_items,
                         .a_row = distance,
                         .a_column = 1,
                         .b_row = 1,
                         .b_column = c->row_items,
                         .c_row = shape->groups * shape->out_each,
                         .c_column = 1,
                         .alpha = 1};
    for (int64_t group = 0; group < shape->groups; group++) {
        args.a = c->input + group * shape->in_each * (int64_t)c->bytes;
        args.b = c->weight + group * shape->out_each * c->row_items * (int64_t)c->bytes;
        args.c = c->output + group * shape->out_each * (int64_t)c->bytes;
        TK_TRY(tk_gemm(&args));
    }
    return TK_OK;
}

/* ---- one channel a group ---- */

static void add_product(tk_dtype dtype, const void *a, const void *b, void *sum, int64_t count) {
    if (dtype == TK_FLOAT32) {
        tk_vec_muladd_f32(a, b, sum, sum, count);
        return;
    }
    const double *left = a, *right = b;
    double *out = sum;
    for (int64_t i = 0; i < count; i++) out[i] += left[i] * right[i];
}

/* c->weight is [taps, channels]; a row of taps that are inside is gathered by pointer. */
static void depthwise_row(const convolution *c, int64_t row) {
    const tk_conv_axis *axes = c->shape.axes;
    int64_t channels = c->shape.groups, at[TK_CONV_SPATIAL], left = row;
    size_t pixel_bytes = (size_t)channels * c->bytes;
    for (int i = TK_CONV_SPATIAL - 1; i >= 0; i--) {
        at[i] = axes[i].base + left % axes[i].rows * axes[i].per_output;
        left /= axes[i].rows;
    }
    char *out = block_output(c, 0, row);
    const char *weight = c->weight;
    memset(out, 0, pixel_bytes);
    for (int64_t i = 0; i < axes[0].taps; i++)
        for (int64_t j = 0; j < axes[1].taps; j++)
            for (int64_t k = 0; k < axes[2].taps; k++, weight += pixel_bytes) {
                int64_t top = at[0] + i * axes[0].per_tap, side = at[1] + j * axes[1].per_tap;
                int64_t along = at[2] + k * axes[2].per_tap;
                if (top < 0 || top >= axes[0].in || side < 0 || side >= axes[1].in || along < 0 ||
                    along >= axes[2].in)
                    continue;
                int64_t pixel =
                    ((left * axes[0].in + top) * axes[1].in + side) * axes[2].in + along;
                add_product(c->dtype, c->input + (size_t)pixel * pixel_bytes, weight, out,
                            channels);
            }
}

static void depthwise_rows(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t row = begin; row < end; row++) depthwise_row(arg, row);
}

static tk_status run_depthwise(convolution *c) {
    int64_t channels = c->shape.groups, taps = tk_conv_taps(&c->shape);
    void *turned;
    const char *weight = c->weight;
    TK_TRY(tk_scratch_new(taps * channels, c->bytes, &turned));
    for (int64_t tap = 0; tap < taps; tap++)
        tk_copy_run(c->bytes, (char *)turned + (size_t)(tap * channels) * c->bytes,
                    (int64_t)c->bytes, weight + (size_t)tap * c->bytes, taps * (int64_t)c->bytes,
                    channels);
    c->weight = turned;
    tk_parallel_for(c->rows, 1 + 16384 / (taps * channels + 1), depthwise_rows, c);
    c->weight = weight;
    tk_free(turned);
    return TK_OK;
}

/* ---- the body ---- */

static tk_status run_class(convolution *c) {
    bool depthwise = c->shape.in_each == 1 && c->shape.out_each == 1 && c->shape.groups > 1 &&
                     (c->dtype == TK_FLOAT32 || c->dtype == TK_FLOAT64);
    if (depthwise && !tk_cpu_reference()) return run_depthwise(c);
    int64_t distance = tk_conv_has_all_rows(&c->shape) ? rows_in_place(c) : 0;
    if (distance && c->row_items && !tk_cpu_reference()) return run_in_place(c, distance);
    return run_blocks(c);
}

/* Each class with the weights that it needs. */
static tk_status run_classes(convolution *c, const char *weight, size_t weight_items) {
    void *packed = NULL;
    tk_status status = TK_OK;
    for (int64_t i = 0; status == TK_OK && i < tk_conv_classes(&c->shape); i++) {
        tk_conv_choose(&c->shape, i);
        c->rows = tk_conv_rows(&c->shape);
        c->row_items = tk_conv_taps(&c->shape) * c->shape.in_each;
        c->weight = weight;
        if (!tk_conv_has_all_taps(&c->shape)) {
            if (!packed) status = tk_scratch_new((int64_t)weight_items, c->bytes, &packed);
            if (status != TK_OK) break;
            tk_conv_pack(&c->shape, weight, c->bytes, packed);
            c->weight = packed;
        }
        status = run_class(c);
    }
    tk_free(packed);
    return status;
}

static tk_status run(const tk_body_call *call, tk_dtype dtype, void *output) {
    tk_dense input = {0}, weight = {0};
    convolution c = {.dtype = dtype, .bytes = tk_dtype_size(dtype), .output = output};
    tk_conv_init(&c.shape, call->attrs, &call->inputs[0], &call->inputs[1], &call->outputs[0]);
    tk_status status = tk_dense_take(&call->inputs[0], dtype, &input);
    if (status == TK_OK) status = tk_dense_take(&call->inputs[1], dtype, &weight);
    if (status == TK_OK) {
        c.input = input.data;
        status = run_classes(&c, weight.data, (size_t)call->inputs[1].size);
    }
    tk_dense_free(&input);
    tk_dense_free(&weight);
    return status;
}

tk_status tk_body_conv(const tk_body_call *call) {
    const tk_strided *out = &call->outputs[0];
    if (out->size == 0) return TK_OK;
    if (out->dtype != TK_FLOAT16 && out->dtype != TK_BFLOAT16)
        return run(call, out->dtype, out->data);
    void *wide;
    TK_TRY(tk_scratch_new(out->size, sizeof(float), &wide));
    tk_status status = run(call, TK_FLOAT32, wide);
    if (status == TK_OK) {
        tk_strided from = tk_view_dense(TK_FLOAT32, out->rank, out->shape, wide);
        tk_convert_view(&from, out);
    }
    tk_free(wide);
    return status;
}
