/* Builder of unique: the distinct elements of an array, in order, as many as were asked for.
 *
 * How many there are depends on values, which a graph does not know, so the length is an argument
 * and the rest is filled. One stable argsort; runs of equal neighbours are numbered by a cumulative
 * sum, and each question is a search in these numbers, which rise. Rejected: scattering what begins
 * a run, whose elements beyond the length would have to be dropped by hand. */
#include "graph/build_pieces.h"

typedef struct runs {
    int64_t count, size; /* elements; runs that are asked for */
    tk_node *flat, *order, *sorted;
    tk_node *number; /* of the run that a sorted element is in: int64[count], rising from 0 */
    tk_node *begin;  /* where run 0, 1, ..., size begins among the sorted; count past the last */
} runs;

static tk_node *numbers_of_runs(tk_builder *b, const runs *r) {
    if (r->count == 0) return tkb_zeros(b, TK_SHAPE(0), TK_INT64);
    tk_node *next = tkb_range(b, r->sorted, 0, 1, r->count);
    tk_node *begins = tkb_not_equal(b, next, tkb_range(b, r->sorted, 0, 0, r->count - 1));
    tk_node *parts[] = {tkb_zeros(b, TK_SHAPE(1), TK_INT64), tkb_astype(b, begins, TK_INT64)};
    return tkb_cumsum(b, tkb_concatenate(b, parts, 2, 0), 0, false, true);
}

static void find_runs(tk_builder *b, tk_node *a, int64_t size, runs *r) {
    *r = (runs){.count = a->size, .size = size, .flat = tkb_flatten(b, tkb_strong(b, a), 0, -1)};
    r->order = tkb_argsort(b, r->flat, 0);
    r->sorted = tkb_take_along_axis(b, r->flat, r->order, 0);
    r->number = numbers_of_runs(b, r);
    tk_node *asked = tkb_iota_int(b, TK_INT64, TK_SHAPE(size + 1), 0, 0, 1);
    r->begin = tkb_astype(b, tkb_searchsorted(b, r->number, asked, false), TK_INT64);
}

/* Elements of `from` where the runs begin; those of run 0 past the last one. */
static tk_node *at_runs(tk_builder *b, const runs *r, tk_node *from) {
    if (r->count == 0) return tkb_zeros(b, TK_SHAPE(r->size), (tk_dtype)from->dtype);
    tk_node *begin = tkb_range(b, r->begin, 0, 0, r->size);
    tk_node *inside = tkb_less(b, begin, tkb_const_int(b, TK_INT64, r->count));
    return tkb_take(b, from, tkb_where(b, inside, begin, tkb_zero(b, TK_INT64)), 0);
}

static tk_node *values(tk_builder *b, const runs *r, tk_node *fill) {
    tk_node *found = at_runs(b, r, r->sorted);
    if (!fill) return found;
    tk_node *begin = tkb_range(b, r->begin, 0, 0, r->size);
    tk_node *inside = tkb_less(b, begin, tkb_const_int(b, TK_INT64, r->count));
    fill = tkb_reshape(b, tkb_astype(b, fill, (tk_dtype)r->flat->dtype), TK_SCALAR);
    return tkb_where(b, inside, found, fill);
}

/* Which run each element is in, at most the last that was asked for. */
static tk_node *inverse(tk_builder *b, const runs *r, const tk_node *a) {
    int64_t last = r->size > 0 ? r->size - 1 : 0;
    tk_node *number = tkb_minimum(b, r->number, tkb_const_int(b, TK_INT64, last));
    tk_node *blank = tkb_zeros(b, TK_SHAPE(r->count), TK_UINT32);
    number = tkb_astype(b, number, TK_UINT32);
    return tkb_reshape(b, tkb_put_along_axis(b, blank, r->order, number, 0), tk_node_shape(a));
}

static tk_node *counts(tk_builder *b, const runs *r) {
    tk_node *begin = tkb_range(b, r->begin, 0, 0, r->size);
    tk_node *next = tkb_range(b, r->begin, 0, 1, r->size + 1);
    return tkb_astype(b, tkb_subtract(b, next, begin), TK_INT32);
}

/* A number that the dtype of the array does not have would silently be another. */
static tk_status check_fill(tk_builder *b, const tk_node *a, tk_node *fill) {
    tk_dtype dtype = (tk_dtype)a->dtype;
    if (fill->op != TK_OP_const || !(fill->flags & TK_NODE_WEAK) || !tk_dtype_is_integer(dtype) ||
        !tk_dtype_is_integer((tk_dtype)fill->dtype))
        return TK_OK;
    const tk_attrs_constant *given = tk_node_attrs(fill);
    const tk_attrs_constant *taken = tk_node_attrs(tkb_astype(b, fill, dtype));
    if (given->real == taken->real) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "unique: fill_value is %lld, which %s does not have",
                   (long long)given->real, tk_dtype_name(dtype));
}

static tk_status check(tk_builder *b, const tk_node *a, int64_t size, tk_node *fill) {
    if (size < 0 || size == INT64_MAX)
        return tk_fail(TK_INVALID_ARGUMENT, "unique: size is %lld, expected 0 or more",
                       (long long)size);
    if (fill && fill->size != 1)
        return tk_fail(TK_SHAPE_ERROR, "unique: fill_value is %s, expected one element",
                       tk_text_node(fill));
    if (fill) TK_TRY(check_fill(b, a, fill));
    if (a->size == 0 && size > 0 && !fill)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "unique: %s has no elements, expected a fill_value for %lld of them",
                       tk_text_node(a), (long long)size);
    return TK_OK;
}

bool tkb_unique(tk_builder *b, tk_node *a, int64_t size, tk_node *fill, tk_node_vec *out) {
    if (tk_node_is_error(a)) return tk_vec_push(out, a);
    if (fill && tk_node_is_error(fill)) return tk_vec_push(out, fill);
    tk_status status = check(b, a, size, fill);
    if (status != TK_OK) return tk_vec_push(out, tkb_fail(b, status));
    runs r;
    find_runs(b, a, size, &r);
    return tk_vec_push(out, values(b, &r, fill)) && tk_vec_push(out, at_runs(b, &r, r.order)) &&
           tk_vec_push(out, inverse(b, &r, a)) && tk_vec_push(out, counts(b, &r));
}
