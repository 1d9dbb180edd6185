/* What forward and backward attention share: the rows of a (batch, kv head), tiles of scores and
 * their masks, products on tiles.
 *
 * All query heads that share a key head are one list of rows, row r being query r % q_length of
 * head r / q_length of the group; so a key tile serves the whole group, and one token of many heads
 * still fills a tile. Scores are kept transposed, [key][row]: the product then reads keys in place
 * and softmax runs down columns, without sums across lanes. */
#ifndef CPU_ATTENTION_TILE_H
#define CPU_ATTENTION_TILE_H

#include "cpu/attention.h"
#include "cpu/gemm_kernel.h"
#include "cpu/vec_table.h"

#define TK_TILE_ROWS 64
#define TK_TILE_KEYS 128

/* Where one (batch, kv head) is. */
typedef struct tk_attention_group {
    const tk_attention_args *args;
    int64_t batch, kv_head;
    int64_t heads; /* query heads of the group */
    int64_t rows;  /* heads * q_length */
} tk_attention_group;

/* task counts (batch, kv head) pairs. */
tk_attention_group tk_attention_group_at(const tk_attention_args *args, int64_t task);

static inline int64_t tk_round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/* Row `r` of q, as the group counts. */
const void *tk_attention_q_row(const tk_attention_group *group, int64_t r);
/* Index of row r in a dense [batch, q_heads, q_length] array. */
int64_t tk_attention_row_index(const tk_attention_group *group, int64_t r);
const void *tk_attention_k_row(const tk_attention_group *group, int64_t key);
const void *tk_attention_v_row(const tk_attention_group *group, int64_t key);

/* Keys that the rows [first, first + count) may see: [0, result). */
int64_t tk_attention_key_limit(const tk_attention_group *group, int64_t first, int64_t count);

/* Converts `count` elements to f32 and pads with zeros to `width`. */
void tk_attention_widen(tk_dtype dtype, const void *x, int64_t count, float *out, int64_t width);

/* out[j][i] = x[i][j] for `rows` x `columns` floats; rows up to `width` become 0. */
void tk_attention_transpose(const float *x, int64_t stride, int64_t rows, int64_t columns,
                            float *out, int64_t width);

/* Applies causal and given masks to scores s[keys][width] of keys from `key` and rows from `first`.
 */
void tk_attention_mask_tile(const tk_attention_group *group, int64_t first, int64_t rows,
                            int64_t key, int64_t keys, float *s, int64_t key_step,
                            int64_t row_step);

/* c[m, n] = a b + beta c; n a multiple of the tile width (TK_COLUMN_WIDTH is one). */
void tk_attention_product(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
                          int64_t a_column, const float *b, int64_t b_row, float *c, int64_t c_row,
                          float beta);

/* f64, by plain loops over one row of scores at a time. */
tk_status tk_attention_f64(const tk_attention_args *args, void *out,
                           tk_attention_strides out_strides, void *lse);
tk_status tk_attention_backward_f64(const tk_attention_args *args, const void *out, const void *lse,
                                    const void *dout, void *dq, void *dk, void *dv);

#endif
