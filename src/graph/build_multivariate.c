/* Normal vectors with a covariance: standard ones times the symmetric square root of it, which does
 * not depend on the signs that a decomposition chooses. */
#include "graph/build_pieces.h"

static tk_status check(const tk_node *mean, const tk_node *cov, tk_dtype dtype) {
    if (dtype != TK_FLOAT32 && dtype != TK_FLOAT64)
        return tk_fail(TK_DTYPE_ERROR,
                       "random_multivariate_normal: dtype is %s, expected float32 or float64",
                       tk_dtype_name(dtype));
    int64_t n = mean->rank ? mean->shape[mean->rank - 1] : -1;
    if (cov->rank >= 2 && cov->shape[cov->rank - 1] == n && cov->shape[cov->rank - 2] == n)
        return TK_OK;
    return tk_fail(TK_SHAPE_ERROR,
                   "random_multivariate_normal: mean is %s and cov %s, expected [..., N] and "
                   "[..., N, N]",
                   tk_text_node(mean), tk_text_node(cov));
}

/* The leading axes of both, and of the shape that was asked for. */
static tk_status leading_shape(const tk_node *mean, const tk_node *cov, tk_shape asked,
                               tk_shape *out_shape) {
    TK_TRY(tk_shape_check("random_multivariate_normal", asked));
    const int64_t *shapes[] = {mean->shape, cov->shape};
    int ranks[] = {mean->rank - 1, cov->rank - 2};
    for (int i = 0; i < 2; i++) {
        tk_shape wide = asked;
        if (ranks[i] > wide.count) {
            for (int64_t k = 0; k < ranks[i]; k++) {
                int64_t at = k - (ranks[i] - asked.count);
                wide.items[k] = at < 0 ? 1 : asked.items[at];
            }
            wide.count = ranks[i];
        }
        for (int k = 0; k < ranks[i]; k++) {
            int64_t *length = &wide.items[wide.count - ranks[i] + k], given = shapes[i][k];
            if (*length == 1)
                *length = given;
            else if (given != 1 && given != *length)
                return tk_fail(TK_SHAPE_ERROR,
                               "random_multivariate_normal: shape, mean %s and cov %s do not "
                               "broadcast",
                               tk_text_node(mean), tk_text_node(cov));
        }
        asked = wide;
    }
    *out_shape = asked;
    return TK_OK;
}

/* u diag(sqrt(s)) v' */
static tk_node *square_root(tk_builder *b, tk_node *cov) {
    tk_node *parts = tkb_node1(b, TK_OP_svd_thin, cov, NULL);
    if (tk_node_is_error(parts)) return parts;
    tk_node *roots = tkb_expand_dims(b, tkb_sqrt(b, tkb_output(b, parts, 1)), TK_AXES(-2));
    return tkb_matmul(b, tkb_multiply(b, tkb_output(b, parts, 0), roots), tkb_output(b, parts, 2));
}

tk_node *tkb_random_multivariate_normal(tk_builder *b, tk_node *mean, tk_node *cov, tk_shape shape,
                                        tk_dtype dtype, tk_node *key) {
    if (tk_node_is_error(mean)) return mean;
    if (tk_node_is_error(cov)) return cov;
    TKB_TRY(b, check(mean, cov, dtype));
    tk_shape drawn;
    TKB_TRY(b, leading_shape(mean, cov, shape, &drawn));
    if (drawn.count >= TK_MAX_RANK)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "random_multivariate_normal: more than %d axes",
                                   TK_MAX_RANK));
    drawn.items[drawn.count++] = mean->shape[mean->rank - 1];
    tk_node *normal = tkb_random_normal(b, drawn, dtype, 0, 1, key);
    tk_node *root = square_root(b, tkb_astype(b, cov, dtype));
    tk_node *turned = tkb_matmul(b, tkb_expand_dims(b, normal, TK_AXES(-2)), root);
    return tkb_add(b, tkb_squeeze(b, turned, TK_AXES(-2)), tkb_astype(b, mean, dtype));
}
