/* The batched matrix product by gemm.h, which takes any strides of A and B. Batch axes are merged
 * where all three operands allow; what gemm.h cannot hold is looped over here. */
#include "cpu/body.h"
#include "cpu/body_ewise.h"
#include "cpu/body_loop.h"
#include "cpu/gemm.h"

typedef struct product {
    tk_gemm_args args;
    tk_status status;
} product;

static void product_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    product *p = arg;
    for (int64_t i = 0; p->status == TK_OK && i < count; i++) {
        p->args.c = data[0] + i * strides[0];
        p->args.a = data[1] + i * strides[1];
        p->args.b = data[2] + i * strides[2];
        p->status = tk_gemm(&p->args);
    }
}

/* Moves the innermost axes of the batch from `batch` into the arguments. */
static void take_batch(tk_gemm_args *args, tk_loop *batch) {
    int64_t bytes = (int64_t)tk_dtype_size(args->dtype);
    int taken = batch->rank < TK_GEMM_BATCH_RANK ? batch->rank : TK_GEMM_BATCH_RANK;
    batch->rank -= taken;
    args->batch_rank = taken;
    for (int i = 0; i < taken; i++) {
        int axis = batch->rank + i;
        args->batch_shape[i] = batch->shape[axis];
        args->c_batch[i] = batch->strides[0][axis] / bytes;
        args->a_batch[i] = batch->strides[1][axis] / bytes;
        args->b_batch[i] = batch->strides[2][axis] / bytes;
        batch->size /= batch->shape[axis];
    }
}

tk_status tk_body_product(const tk_body_call *call) {
    const tk_strided *a = &call->inputs[0], *b = &call->inputs[1], *c = &call->outputs[0];
    if (c->size == 0) return TK_OK;
    int row = c->rank - 2, column = c->rank - 1;
    product p = {.args = {.dtype = c->dtype,
                          .way = tk_cpu_reference() ? TK_GEMM_PORTABLE : TK_GEMM_AUTO,
                          .m = c->shape[row],
                          .n = c->shape[column],
                          .k = a->shape[column],
                          .a_row = a->strides[row],
                          .a_column = a->strides[column],
                          .b_row = b->strides[row],
                          .b_column = b->strides[column],
                          .c_row = c->strides[row],
                          .c_column = c->strides[column],
                          .alpha = 1}};
    size_t bytes = tk_dtype_size(c->dtype);
    tk_loop batch = tk_loop_over(row, c->shape);
    tk_loop_add_raw(&batch, c->data, c->strides, bytes);
    tk_loop_add_raw(&batch, a->data, a->strides, bytes);
    tk_loop_add_raw(&batch, b->data, b->strides, bytes);
    tk_loop_collapse(&batch);
    take_batch(&p.args, &batch);
    tk_loop_collapse(&batch);
    tk_loop_range(&batch, 0, batch.size, product_run, &p);
    return p.status;
}
