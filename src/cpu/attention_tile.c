/* Rows, masks and products of attention tiles; see the header. */
#include "cpu/attention_tile.h"

#include <math.h>
#include <string.h>

static const void *element(tk_dtype dtype, const void *x, int64_t index) {
    return (const char *)x + index * (int64_t)tk_dtype_size(dtype);
}

tk_attention_group tk_attention_group_at(const tk_attention_args *args, int64_t task) {
    int64_t heads = args->q_heads / args->kv_heads;
    return (tk_attention_group){args, task / args->kv_heads, task % args->kv_heads, heads,
                                heads * args->q_length};
}

const void *tk_attention_q_row(const tk_attention_group *group, int64_t r) {
    const tk_attention_args *args = group->args;
    int64_t head = group->kv_head * group->heads + r / args->q_length;
    int64_t at = group->batch * args->q_strides.batch + head * args->q_strides.head +
                 r % args->q_length * args->q_strides.row;
    return element(args->dtype, args->q, at);
}
int64_t tk_attention_row_index(const tk_attention_group *group, int64_t r) {
    const tk_attention_args *args = group->args;
    return (group->batch * args->q_heads + group->kv_head * group->heads) * args->q_length + r;
}
static const void *kv_row(const tk_attention_group *group, const void *x,
                          const tk_attention_strides *strides, int64_t key) {
    int64_t at =
        group->batch * strides->batch + group->kv_head * strides->head + key * strides->row;
    return element(group->args->dtype, x, at);
}
const void *tk_attention_k_row(const tk_attention_group *group, int64_t key) {
    return kv_row(group, group->args->k, &group->args->k_strides, key);
}
const void *tk_attention_v_row(const tk_attention_group *group, int64_t key) {
    return kv_row(group, group->args->v, &group->args->v_strides, key);
}

/* The last key that row r sees under the causal mask, plus one. */
static int64_t causal_limit(const tk_attention_args *args, int64_t r) {
    int64_t limit = r % args->q_length + args->k_length - args->q_length + 1;
    return limit < 0 ? 0 : limit < args->k_length ? limit : args->k_length;
}

int64_t tk_attention_key_limit(const tk_attention_group *group, int64_t first, int64_t count) {
    const tk_attention_args *args = group->args;
    if (!args->causal) return args->k_length;
    int64_t last = first + count - 1;
    bool wraps = first / args->q_length != last / args->q_length;
    return causal_limit(args, wraps ? args->q_length - 1 : last);
}

void tk_attention_widen(tk_dtype dtype, const void *x, int64_t count, float *out, int64_t width) {
    tk_vec_convert(dtype, TK_FLOAT32, x, out, count);
    for (int64_t i = count; i < width; i++) out[i] = 0.0f;
}

void tk_attention_transpose(const float *x, int64_t stride, int64_t rows, int64_t columns,
                            float *out, int64_t width) {
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++) out[j * width + i] = x[i * stride + j];
        for (int64_t i = rows; i < width; i++) out[j * width + i] = 0.0f;
    }
}

static void mask_causal(const tk_attention_group *group, int64_t first, int64_t rows, int64_t key,
                        int64_t keys, float *s, int64_t key_step, int64_t row_step) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = causal_limit(group->args, first + i) - key;
        for (int64_t j = from < 0 ? 0 : from; j < keys; j++)
            s[j * key_step + i * row_step] = -INFINITY;
    }
}

static void mask_bool(const uint8_t *mask, int64_t stride, int64_t keys, float *s, int64_t step) {
    for (int64_t j = 0; j < keys; j++)
        if (!mask[j * stride]) s[j * step] = -INFINITY;
}

static void mask_add(tk_dtype dtype, const void *mask, int64_t stride, int64_t keys, float *s,
                     int64_t step) {
    float wide[TK_TILE_KEYS];
    if (stride == 1) {
        tk_vec_convert(dtype, TK_FLOAT32, mask, wide, keys);
    } else {
        for (int64_t j = 0; j < keys; j++)
            tk_vec_convert(dtype, TK_FLOAT32, element(dtype, mask, j * stride), wide + j, 1);
    }
    for (int64_t j = 0; j < keys; j++) s[j * step] += wide[j];
}

void tk_attention_mask_tile(const tk_attention_group *group, int64_t first, int64_t rows,
                            int64_t key, int64_t keys, float *s, int64_t key_step,
                            int64_t row_step) {
    const tk_attention_args *args = group->args;
    const int64_t *strides = args->mask_strides;
    for (int64_t i = 0; i < rows && args->mask_kind != TK_MASK_NONE; i++) {
        int64_t head = group->kv_head * group->heads + (first + i) / args->q_length;
        int64_t at = group->batch * strides[0] + head * strides[1] +
                     (first + i) % args->q_length * strides[2] + key * strides[3];
        if (args->mask_kind == TK_MASK_BOOL)
            mask_bool((const uint8_t *)args->mask + at, strides[3], keys, s + i * row_step,
                      key_step);
        else
            mask_add(args->dtype, element(args->dtype, args->mask, at), strides[3], keys,
                     s + i * row_step, key_step);
    }
    if (args->causal) mask_causal(group, first, rows, key, keys, s, key_step, row_step);
}

void tk_attention_product(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
                          int64_t a_column, const float *b, int64_t b_row, float *c, int64_t c_row,
                          float beta) {
    const tk_gemm_kernels *kernels = tk_gemm_kernels_get();
    for (int64_t j = 0; j < n; j += kernels->columns)
        for (int64_t i = 0; i < m; i += kernels->rows) {
            int64_t rows = m - i < kernels->rows ? m - i : kernels->rows;
            kernels->tile[rows](k, a + i * a_row, a_row, a_column, b + j, b_row, c + i * c_row + j,
                                c_row, 1.0f, beta);
        }
}
