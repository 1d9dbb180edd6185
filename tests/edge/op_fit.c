/* Arguments that belong together: shapes of products, targets of reshapes, indices within an axis.
 * See op_draw.h. */
#include <string.h>

#include "edge/op_draw.h"

static tk_array *operand(draw *d, int index) { return &d->values[index].array; }

static tk_shape shape_of(draw *d, int index) { return tk_array_shape(d->values[index].array); }

static tk_dtype dtype_like(draw *d, int index) {
    return draw_chance(d, 70) ? tk_array_dtype(d->values[index].array) : draw_dtype(d);
}

static int64_t small(draw *d) { return draw_chance(d, 5) ? 0 : 1 + draw_below(d, 6); }

static tk_shape with(tk_shape shape, int64_t length) {
    shape.items[shape.count++] = length;
    return shape;
}

/* ---- products ---- */

static void fit_matmul(draw *d) {
    int a = draw_find(d, "a"), b = draw_find(d, "b"), c = draw_find(d, "c");
    int64_t m = small(d), k = draw_chance(d, 3) ? 70 : small(d), n = small(d);
    tk_shape lead = draw_shape(d, 2);
    tk_dtype dtype = draw_dtype(d);
    if (lead.count && lead.items[lead.count - 1] > 20) lead = TK_SHAPE(2);
    tk_shape left = draw_chance(d, 15) ? TK_SHAPE(k) : with(with(draw_narrowed(d, lead), m), k);
    tk_shape right = draw_chance(d, 15) ? TK_SHAPE(k) : with(with(draw_narrowed(d, lead), k), n);
    *operand(d, a) = draw_array(d, dtype, left);
    *operand(d, b) = draw_array(d, dtype_like(d, a), right);
    if (c < 0) return;
    tk_array product = tk_matmul(*operand(d, a), *operand(d, b));
    if (tk_array_status(product) == TK_OK)
        *operand(d, c) = draw_array(d, dtype_like(d, a), draw_narrowed(d, tk_array_shape(product)));
}

static void fit_inner(draw *d) {
    int64_t k = small(d);
    *operand(d, 0) = draw_array(d, draw_dtype(d), with(draw_shape(d, 1), k));
    *operand(d, 1) = draw_array(d, dtype_like(d, 0), with(draw_shape(d, 1), k));
}

static void fit_tensordot(draw *d) {
    tk_shape left = {.count = 1 + draw_below(d, 3)}, right = {.count = 0};
    d->values[2].axes.count = d->values[3].axes.count = 0;
    for (int64_t i = 0; i < left.count; i++) {
        left.items[i] = small(d);
        if (draw_chance(d, 50)) continue;
        d->values[2].axes = with(d->values[2].axes, draw_chance(d, 50) ? i : i - left.count);
        d->values[3].axes = with(d->values[3].axes, right.count);
        right = with(right, left.items[i]);
    }
    if (draw_chance(d, 60)) right = with(right, small(d));
    *operand(d, 0) = draw_array(d, draw_dtype(d), left);
    *operand(d, 1) = draw_array(d, dtype_like(d, 0), right);
}

static void fit_einsum(draw *d) {
    static const struct {
        const char *text;
        const char *shapes[3]; /* a letter an axis; the length is that of the letter */
    } cases[] = {
        {"ij,jk->ik", {"ij", "jk"}},
        {"ij,jk", {"ij", "jk"}},
        {"ii->i", {"ii"}},
        {"ii", {"ii"}},
        {"ij->ji", {"ij"}},
        {"ij->", {"ij"}},
        {"i,j->ij", {"i", "j"}},
        {"bij,bjk->bik", {"bij", "bjk"}},
        {"...ij,...jk->...ik", {"bij", "bjk"}},
        {"...i->...", {"bij"}},
        {"ij,jk,kb->ib", {"ij", "jk", "kb"}},
        {"i,i->", {"i", "i"}},
        {"ijk,k->ji", {"ijk", "k"}},
        {"iij->j", {"iij"}},
        {" i j , j k -> k i ", {"ij", "jk"}},
        {"ba,cb", {"ba", "cb"}},
        {",i->i", {"", "i"}},
        {"ij,ij->ij", {"ij", "ij"}},
    };
    size_t which = (size_t)draw_below(d, sizeof cases / sizeof cases[0]);
    int64_t lengths[26];
    for (int i = 0; i < 26; i++) lengths[i] = small(d);
    tk_dtype dtype = draw_dtype(d);
    d->values[0].text = cases[which].text;
    d->values[1].count = 0;
    for (int i = 0; i < 3 && cases[which].shapes[i]; i++) {
        tk_shape shape = {.count = 0};
        for (const char *at = cases[which].shapes[i]; *at; at++)
            shape = with(shape, lengths[*at - 'a']);
        d->list[i] = draw_array(d, draw_chance(d, 80) ? dtype : draw_dtype(d), shape);
        d->values[1].count++;
    }
}

/* ---- shapes ---- */

/* The lengths of a product, multiplied together or apart at random. */
static tk_shape refactored(draw *d, int64_t size) {
    tk_shape shape = {.count = 0};
    int64_t rest = size;
    for (int i = 0; i < 4 && rest > 1; i++) {
        int64_t factor = 1 + draw_below(d, rest < 9 ? rest : 9);
        if (rest % factor) continue;
        shape = with(shape, factor);
        rest /= factor;
    }
    shape = with(shape, rest);
    if (size != 0 && draw_chance(d, 30)) shape.items[draw_below(d, shape.count)] = -1;
    return shape;
}

static void fit_reshape(draw *d) {
    d->values[1].axes = refactored(d, tk_array_size(*operand(d, 0)));
}

static void fit_unflatten(draw *d) {
    int64_t axis = draw_axis(d, tk_array_rank(*operand(d, 0)));
    d->values[1].integer = axis;
    int rank = tk_array_rank(*operand(d, 0));
    if (axis >= -rank && axis < rank)
        d->values[2].axes = refactored(d, tk_array_dim(*operand(d, 0), (int)axis));
}

static void fit_broadcast(draw *d) {
    tk_shape shape = draw_shape(d, 4);
    *operand(d, 0) = draw_array(d, draw_dtype(d), draw_narrowed(d, shape));
    d->values[1].axes = shape;
}

static void fit_transpose(draw *d) {
    int rank = tk_array_rank(*operand(d, 0));
    tk_axes order = {.count = rank};
    for (int i = 0; i < rank; i++) {
        int64_t other = draw_below(d, i + 1);
        order.items[i] = order.items[other];
        order.items[other] = draw_chance(d, 50) ? i : i - rank;
    }
    if (!draw_chance(d, 20)) d->values[1].axes = order;
}

static void fit_squeeze(draw *d) {
    if (draw_chance(d, 50)) return;
    tk_shape shape = shape_of(d, 0);
    d->values[1].axes.count = 0;
    for (int64_t i = 0; i < shape.count; i++)
        if (shape.items[i] == 1 && draw_chance(d, 60))
            d->values[1].axes = with(d->values[1].axes, i);
}

static void fit_expand_dims(draw *d) {
    int rank = tk_array_rank(*operand(d, 0));
    tk_axes axes = {.count = 0};
    for (int64_t i = draw_below(d, 3); i > 0; i--) axes = with(axes, draw_below(d, rank + 1));
    d->values[1].axes = axes;
}

static void fit_slice(draw *d) {
    int start = draw_find(d, "start"), update = draw_find(d, "update");
    tk_shape shape = shape_of(d, 0);
    for (int k = 0; k < 3; k++) {
        tk_axes *axes = &d->values[start + k].axes;
        *axes = (tk_axes){.count = shape.count};
        for (int64_t i = 0; i < shape.count; i++) {
            int64_t length = shape.items[i];
            axes->items[i] = k < 2 ? draw_below(d, 2 * length + 5) - length - 2 : 1;
            if (k == 1 && draw_chance(d, 40)) axes->items[i] = length;
            if (k == 0 && draw_chance(d, 40)) axes->items[i] = 0;
            if (k == 2 && draw_chance(d, 50)) axes->items[i] = draw_below(d, 7) - 3;
            if (draw_chance(d, 2)) axes->items[i] = draw_nonsense(d);
        }
        if (draw_chance(d, 12)) *axes = TK_ALL_AXES;
    }
    if (update < 0) return;
    tk_array box = tk_slice(*operand(d, 0), d->values[start].axes, d->values[start + 1].axes,
                            d->values[start + 2].axes);
    if (tk_array_status(box) == TK_OK)
        *operand(d, update) =
            draw_array(d, dtype_like(d, 0), draw_narrowed(d, tk_array_shape(box)));
}

static void fit_list(draw *d) {
    int arrays = draw_find(d, "arrays");
    bool is_stack = !strcmp(d->row->name, "stack");
    tk_shape shape = draw_shape(d, 3);
    tk_dtype dtype = draw_dtype(d);
    int64_t axis = draw_axis(d, (int)shape.count + is_stack);
    int64_t at = axis < 0 ? axis + shape.count : axis;
    for (size_t i = 0; i < d->values[arrays].count; i++) {
        tk_shape one = shape;
        if (!is_stack && at >= 0 && at < shape.count) one.items[at] = draw_below(d, 4);
        d->list[i] = draw_array(d, draw_chance(d, 70) ? dtype : draw_dtype(d), one);
    }
    d->values[draw_find(d, "axis")].integer = axis;
}

static void fit_split(draw *d) {
    tk_shape shape = shape_of(d, 0);
    int64_t axis = draw_axis(d, (int)shape.count);
    d->values[2].integer = axis;
    int64_t length = tk_array_dim(*operand(d, 0), (int)axis);
    if (!strcmp(d->row->name, "split_equal")) {
        int64_t sections = length ? 1 + draw_below(d, length) : 1;
        while (draw_chance(d, 80) && length % sections) sections--;
        d->values[1].integer = sections;
        return;
    }
    d->values[1].axes = (tk_axes){.count = draw_below(d, 4)};
    for (int64_t i = 0; i < d->values[1].axes.count; i++)
        d->values[1].axes.items[i] = draw_below(d, 2 * length + 3) - length - 1;
}

static void fit_pad(draw *d) {
    int rank = tk_array_rank(*operand(d, 0));
    for (int k = 1; k < 3; k++) {
        d->values[k].axes = (tk_axes){.count = rank};
        for (int i = 0; i < rank; i++) d->values[k].axes.items[i] = draw_below(d, 3);
        if (rank && draw_chance(d, 3)) d->values[k].axes.items[0] = draw_nonsense(d);
    }
    if (d->values[3].array.node && draw_chance(d, 90))
        *operand(d, 3) = draw_array(d, dtype_like(d, 0), TK_SCALAR);
}

static void fit_repeats(draw *d) {
    int reps = draw_find(d, "reps"), repeats = draw_find(d, "repeats");
    if (repeats >= 0)
        d->values[repeats].integer = draw_chance(d, 4) ? draw_nonsense(d) : draw_below(d, 4);
    if (reps < 0) return;
    d->values[reps].axes.count = draw_below(d, 5);
    for (int i = 0; i < 4; i++)
        d->values[reps].axes.items[i] = draw_chance(d, 2) ? draw_nonsense(d) : draw_below(d, 4);
}

static void fit_roll(draw *d) {
    int rank = tk_array_rank(*operand(d, 0));
    tk_axes axes = draw_axes(d, rank), shifts = {.count = axes.count > 0 ? axes.count : 1};
    if (draw_chance(d, 30)) shifts.count = 1;
    for (int i = 0; i < TK_AXES_MAX; i++)
        shifts.items[i] = draw_chance(d, 3) ? draw_nonsense(d) : draw_below(d, 21) - 10;
    if (axes.count > TK_AXES_MAX) axes.count = 0;
    if (shifts.count > TK_AXES_MAX) shifts.count = 1;
    d->values[1].axes = shifts;
    d->values[2].axes = axes;
}

static void fit_view(draw *d) {
    int64_t size = (int64_t)tk_dtype_size(d->values[1].dtype);
    if (size == 0 || draw_chance(d, 20)) return;
    *operand(d, 0) = draw_array(d, draw_dtype(d), with(draw_shape(d, 2), 8 * draw_below(d, 3)));
}

/* ---- indexing ---- */

static void fit_take(draw *d) {
    int rank = tk_array_rank(*operand(d, 0)), axis = draw_find(d, "axis");
    d->values[axis].integer = draw_axis(d, rank);
    int64_t length = tk_array_dim(*operand(d, 0), (int)d->values[axis].integer);
    *operand(d, 1) = draw_indices(d, draw_shape(d, 2), -length, length);
}

static void fit_along(draw *d) {
    if (tk_array_rank(*operand(d, 0)) == 0)
        *operand(d, 0) = draw_array(d, draw_dtype(d), TK_SHAPE(4));
    tk_shape shape = shape_of(d, 0);
    int axis = draw_find(d, "axis"), values = draw_find(d, "values");
    int64_t along = draw_below(d, shape.count), length = shape.items[along];
    d->values[axis].integer = draw_chance(d, 50) ? along : along - shape.count;
    tk_shape index = shape;
    for (int64_t i = 0; i < shape.count; i++)
        if (draw_chance(d, 10)) index.items[i] = 1;
    index.items[along] = draw_below(d, 5);
    *operand(d, 1) = draw_indices(d, index, -length, length);
    if (values < 0) return;
    for (int64_t i = 0; i < shape.count; i++)
        if (i != along) index.items[i] = shape.items[i];
    *operand(d, values) = draw_array(d, dtype_like(d, 0), draw_narrowed(d, index));
}

static void fit_gather(draw *d) {
    if (tk_array_rank(*operand(d, 0)) == 0)
        *operand(d, 0) = draw_array(d, draw_dtype(d), TK_SHAPE(4));
    tk_shape shape = shape_of(d, 0), sizes = shape, lead = draw_shape(d, 2);
    int indices = draw_find(d, "indices"), sizes_at = draw_find(d, "slice_sizes"),
        updates = draw_find(d, "updates");
    tk_axes axes = {.count = 0};
    for (int64_t i = 0; i < shape.count && axes.count < DRAW_LIST; i++)
        if (draw_chance(d, 50) || (i == shape.count - 1 && !axes.count)) axes = with(axes, i);
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t length = shape.items[axes.items[i]];
        sizes.items[axes.items[i]] = draw_chance(d, 70) ? 1 : draw_below(d, length + 1);
        int64_t last = length - sizes.items[axes.items[i]];
        d->list[i] = draw_indices(d, i ? draw_narrowed(d, lead) : lead, last > 0 ? 0 : 0, last + 1);
    }
    d->values[indices].count = (size_t)axes.count;
    d->values[draw_find(d, "axes")].axes = axes;
    if (sizes_at >= 0) d->values[sizes_at].axes = sizes;
    if (updates < 0) return;
    for (int64_t i = 0; i < axes.count; i++) sizes.items[axes.items[i]] = 1;
    for (int64_t i = 0; i < sizes.count; i++) lead = with(lead, sizes.items[i]);
    *operand(d, updates) = draw_array(d, dtype_like(d, 0), lead);
}

static void fit_kth(draw *d) {
    int axis = draw_find(d, "axis");
    d->values[axis].integer = draw_axis(d, tk_array_rank(*operand(d, 0)));
    int64_t length = tk_array_dim(*operand(d, 0), (int)d->values[axis].integer);
    d->values[1].integer = strcmp(d->row->name, "topk") ? draw_below(d, 2 * length) - length
                                                        : draw_below(d, length + 1);
}

static void fit_sorted(draw *d) {
    tk_array ascending = tk_sort(draw_array(d, draw_dtype(d), TK_SHAPE(small(d))), 0);
    *operand(d, 0) = ascending;
    *operand(d, 1) = draw_array(d, dtype_like(d, 0), draw_shape(d, 2));
}

static void fit_position(draw *d) {
    int rank = tk_array_rank(*operand(d, 0));
    if (rank && draw_chance(d, 80)) d->values[1].axes = TK_AXES(draw_axis(d, rank));
}

/* ---- dtypes ---- */

static void fit_bits(draw *d) {
    static const tk_dtype dtypes[] = {TK_BOOL, TK_UINT8, TK_UINT16, TK_UINT32, TK_UINT64,
                                      TK_INT8, TK_INT16, TK_INT32,  TK_INT64};
    for (int i = 0; i < d->row->n_params; i++) {
        tk_dtype dtype = dtypes[draw_below(d, sizeof dtypes / sizeof dtypes[0])];
        *operand(d, i) = tk_astype(*operand(d, i), dtype);
    }
}

/* ---- diagonals ---- */

static void fit_diagonal(draw *d) {
    int axis = draw_find(d, "axis1");
    tk_shape shape = with(with(draw_shape(d, 2), small(d)), small(d));
    if (axis < 0 && draw_chance(d, 50)) shape = TK_SHAPE(small(d)); /* diag of a vector */
    if (axis < 0 && shape.count > 1) shape = TK_SHAPE(small(d), small(d));
    *operand(d, 0) = draw_array(d, draw_dtype(d), shape);
    d->values[1].integer = draw_below(d, 9) - 4;
    if (axis < 0) return;
    int64_t first = draw_below(d, shape.count), apart = 1 + draw_below(d, shape.count - 1);
    int64_t second = (first + apart) % shape.count;
    d->values[axis].integer = draw_chance(d, 50) ? first : first - shape.count;
    d->values[axis + 1].integer = draw_chance(d, 50) ? second : second - shape.count;
}

static void fit_diff(draw *d) {
    if (tk_array_rank(*operand(d, 0)) == 0)
        *operand(d, 0) = draw_array(d, draw_dtype(d), TK_SHAPE(5));
    d->values[1].integer = draw_below(d, 4);
    d->values[2].integer = draw_axis(d, tk_array_rank(*operand(d, 0)));
}

/* ---- creation, random, layers ---- */

static void fit_sizes(draw *d) {
    for (int i = 0; i < d->row->n_params; i++)
        if (!strcmp(d->row->params[i].type, "int")) d->values[i].integer = draw_below(d, 12) - 1;
}

/* What belongs together in one of the distributions. */
static void fit_distribution(draw *d) {
    int low = draw_find(d, "low"), lower = draw_find(d, "lower"), p = draw_find(d, "p"),
        dtype = draw_find(d, "dtype");
    bool is_whole = !strcmp(d->row->name, "random_randint");
    if (dtype >= 0 && draw_chance(d, 90))
        d->values[dtype].dtype = is_whole ? TK_UINT8 + (tk_dtype)draw_below(d, 8)
                                          : TK_FLOAT16 + (tk_dtype)draw_below(d, 4);
    if (lower >= 0)
        d->values[lower].real = d->values[lower + 1].real - (double)draw_below(d, 8) / 2;
    if (p >= 0) {
        *operand(d, p) = tk_abs(tk_sin(draw_array(d, TK_FLOAT32, draw_shape(d, 2))));
        d->values[p + 1].axes = draw_chance(d, 50) ? TK_ALL_AXES : tk_array_shape(*operand(d, p));
    }
    if (!is_whole) return;
    d->values[low].integer = draw_below(d, 30) - 10;
    d->values[low + 1].integer = d->values[low].integer + 1 + draw_below(d, 90);
}

static void fit_random(draw *d) {
    int key = draw_find(d, "key"), num = draw_find(d, "num"), width = draw_find(d, "width"),
        samples = draw_find(d, "num_samples");
    if (key >= 0 && draw_chance(d, 90))
        *operand(d, key) = tk_random_key(d->context, draw_below(d, 1000));
    if (num >= 0) d->values[num].integer = draw_below(d, 5);
    if (width >= 0) d->values[width].integer = INT64_C(1) << draw_below(d, 3);
    if (samples >= 0) d->values[samples].integer = draw_below(d, 5) - 1;
    fit_distribution(d);
}

static void fit_norm(draw *d) {
    tk_shape shape = with(draw_shape(d, 2), 1 + draw_below(d, 9));
    *operand(d, 0) = draw_array(d, draw_dtype(d), shape);
    for (int i = 1; i < d->row->n_params - 1; i++)
        if (operand(d, i)->node)
            *operand(d, i) =
                draw_array(d, dtype_like(d, 0), TK_SHAPE(shape.items[shape.count - 1]));
}

static void fit_rope(draw *d) {
    int64_t width = 2 + draw_below(d, 7);
    tk_shape shape = {.count = 0};
    for (int64_t i = draw_below(d, 3); i > 0; i--) shape = with(shape, small(d));
    shape = with(with(shape, small(d)), width);
    *operand(d, 0) = draw_array(d, draw_dtype(d), shape);
    d->values[1].integer = 2 * (1 + draw_below(d, width / 2));
    d->values[3].real = draw_chance(d, 50) ? 10000 : 100;
    d->values[4].real = draw_chance(d, 50) ? 1 : 0.5;
    *operand(d, 5) = draw_chance(d, 80) ? tk_scalar_int(d->context, draw_below(d, 9))
                                        : draw_indices(d, TK_SHAPE(shape.items[0]), 0, 9);
    if (operand(d, 6)->node)
        *operand(d, 6) = draw_array(d, TK_FLOAT32, TK_SHAPE(d->values[1].integer / 2));
}

static void fit_attention(draw *d) {
    int64_t batch = 1 + draw_below(d, 2), kv_heads = 1 + draw_below(d, 2),
            heads = kv_heads * (1 + draw_below(d, 2)), queries = small(d), keys = small(d),
            width = 1 + draw_below(d, 9),
            values = draw_chance(d, 80) ? width : 1 + draw_below(d, 9);
    tk_dtype dtype = draw_chance(d, 80) ? TK_FLOAT16 + (tk_dtype)draw_below(d, 4) : draw_dtype(d);
    *operand(d, 0) = draw_array(d, dtype, TK_SHAPE(batch, heads, queries, width));
    *operand(d, 1) = draw_array(d, dtype, TK_SHAPE(batch, kv_heads, keys, width));
    *operand(d, 2) = draw_array(d, dtype, TK_SHAPE(batch, kv_heads, keys, values));
    d->values[3].real = 0.5;
    if (!operand(d, 4)->node) return;
    tk_shape mask = draw_narrowed(d, TK_SHAPE(batch, heads, queries, keys));
    *operand(d, 4) = draw_array(d, draw_chance(d, 50) ? TK_BOOL : dtype, mask);
}

static void fit_sinks(draw *d) {
    d->values[4] = d->values[5]; /* where attention without sinks has its mask */
    fit_attention(d);
    d->values[5] = d->values[4];
    *operand(d, 3) = draw_array(d, dtype_like(d, 0), TK_SHAPE(tk_array_dim(*operand(d, 0), 1)));
    d->values[4] = (op_value){.real = 0.5};
}

static void fit_delta(draw *d) {
    int64_t batch = draw_below(d, 3), steps = draw_below(d, 4), key_heads = 1 + draw_below(d, 2),
            heads = key_heads * (1 + draw_below(d, 2)), keys = 1 + draw_below(d, 4),
            values = 1 + draw_below(d, 4);
    tk_dtype dtype = draw_chance(d, 80) ? TK_FLOAT16 + (tk_dtype)draw_below(d, 4) : draw_dtype(d);
    for (int i = 0; i < 2; i++)
        *operand(d, i) = draw_array(d, dtype, TK_SHAPE(batch, steps, key_heads, keys));
    *operand(d, 2) = draw_array(d, dtype, TK_SHAPE(batch, steps, heads, values));
    for (int i = 3; i < 5; i++)
        *operand(d, i) = draw_array(d, dtype, TK_SHAPE(batch, steps, heads));
    if (operand(d, 5)->node)
        *operand(d, 5) = draw_array(d, TK_FLOAT32, TK_SHAPE(batch, heads, values, keys));
    if (operand(d, 6)->node) *operand(d, 6) = draw_array(d, TK_BOOL, TK_SHAPE(batch, steps));
}

static void fit_unique(draw *d) {
    d->values[1].integer = draw_below(d, 9);
    if (operand(d, 2)->node) *operand(d, 2) = draw_array(d, draw_dtype(d), TK_SHAPE(1));
}

static void fit_cross_entropy(draw *d) {
    tk_shape lead = draw_shape(d, 2);
    int64_t classes = 1 + draw_below(d, 9);
    *operand(d, 0) = draw_array(d, draw_dtype(d), with(lead, classes));
    *operand(d, 1) = draw_indices(d, lead, 0, classes);
}

static const struct {
    const char *name;
    void (*fit)(draw *d);
} fits[] = {
    {"matmul", fit_matmul},
    {"addmm", fit_matmul},
    {"inner", fit_inner},
    {"tensordot", fit_tensordot},
    {"einsum", fit_einsum},
    {"conv_general", draw_fit_conv},
    {"conv1d", draw_fit_conv},
    {"conv2d", draw_fit_conv},
    {"conv3d", draw_fit_conv},
    {"conv_transpose1d", draw_fit_conv},
    {"conv_transpose2d", draw_fit_conv},
    {"conv_transpose3d", draw_fit_conv},
    {"convolve", draw_fit_convolve},
    {"fft", draw_fit_fft},
    {"ifft", draw_fit_fft},
    {"rfft", draw_fit_fft},
    {"irfft", draw_fit_fft},
    {"fftn", draw_fit_fft},
    {"ifftn", draw_fit_fft},
    {"rfftn", draw_fit_fft},
    {"irfftn", draw_fit_fft},
    {"fftfreq", draw_fit_fft},
    {"rfftfreq", draw_fit_fft},
    {"stft", draw_fit_stft},
    {"istft", draw_fit_stft},
    {"inv", draw_fit_matrix},
    {"tri_inv", draw_fit_matrix},
    {"solve", draw_fit_matrix},
    {"solve_triangular", draw_fit_matrix},
    {"cholesky", draw_fit_matrix},
    {"cholesky_inv", draw_fit_matrix},
    {"qr", draw_fit_matrix},
    {"svd", draw_fit_matrix},
    {"eigh", draw_fit_matrix},
    {"eigvalsh", draw_fit_matrix},
    {"eig", draw_fit_matrix},
    {"eigvals", draw_fit_matrix},
    {"lu", draw_fit_matrix},
    {"lu_factor", draw_fit_matrix},
    {"pinv", draw_fit_matrix},
    {"det", draw_fit_matrix},
    {"slogdet", draw_fit_matrix},
    {"cross", draw_fit_cross},
    {"norm", draw_fit_norm},
    {"norm_nuclear", draw_fit_norm},
    {"hadamard_transform", draw_fit_hadamard},
    {"reshape", fit_reshape},
    {"unflatten", fit_unflatten},
    {"broadcast_to", fit_broadcast},
    {"full", fit_broadcast},
    {"transpose", fit_transpose},
    {"squeeze", fit_squeeze},
    {"expand_dims", fit_expand_dims},
    {"slice", fit_slice},
    {"slice_update", fit_slice},
    {"concatenate", fit_list},
    {"stack", fit_list},
    {"split", fit_split},
    {"split_equal", fit_split},
    {"pad", fit_pad},
    {"tile", fit_repeats},
    {"repeat", fit_repeats},
    {"roll", fit_roll},
    {"view", fit_view},
    {"take", fit_take},
    {"take_along_axis", fit_along},
    {"put_along_axis", fit_along},
    {"scatter_add_along_axis", fit_along},
    {"gather", fit_gather},
    {"scatter_nd", fit_gather},
    {"partition", fit_kth},
    {"argpartition", fit_kth},
    {"topk", fit_kth},
    {"searchsorted", fit_sorted},
    {"argmax", fit_position},
    {"argmin", fit_position},
    {"bitwise_and", fit_bits},
    {"bitwise_or", fit_bits},
    {"bitwise_xor", fit_bits},
    {"bitwise_invert", fit_bits},
    {"left_shift", fit_bits},
    {"right_shift", fit_bits},
    {"diagonal", fit_diagonal},
    {"diag", fit_diagonal},
    {"trace", fit_diagonal},
    {"diff", fit_diff},
    {"eye", fit_sizes},
    {"tri", fit_sizes},
    {"linspace", fit_sizes},
    {"rms_norm", fit_norm},
    {"layer_norm", fit_norm},
    {"rope", fit_rope},
    {"scaled_dot_product_attention", fit_attention},
    {"attention_with_sinks", fit_sinks},
    {"gated_delta_update", fit_delta},
    {"unique", fit_unique},
    {"cross_entropy", fit_cross_entropy},
};

void draw_fit(draw *d) {
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++)
        if (!strcmp(fits[i].name, d->row->name)) fits[i].fit(d);
    if (!strncmp(d->row->name, "random_", 7)) fit_random(d);
    if (!strcmp(d->row->name, "random_multivariate_normal")) draw_fit_multivariate(d);
    draw_fit_quant(d);
}
