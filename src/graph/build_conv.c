/* Builders of convolutions. One primitive, conv_general, computes all of them: transposed ones
 * spread their input and flip the kernel, and so do the gradients. */
#include <string.h>

#include "graph/build_pieces.h"
#include "graph/conv.h"

tk_conv_lists tk_conv_lists_of(const tk_attrs_conv *attrs) {
    return (tk_conv_lists){
        .stride = tk_axes_from(attrs->stride.count, attrs->stride.items),
        .low = tk_axes_from(attrs->low.count, attrs->low.items),
        .high = tk_axes_from(attrs->high.count, attrs->high.items),
        .kernel_dilation = tk_axes_from(attrs->kernel_dilation.count, attrs->kernel_dilation.items),
        .input_dilation = tk_axes_from(attrs->input_dilation.count, attrs->input_dilation.items)};
}

tk_node *tkb_conv(tk_builder *b, tk_node *input, tk_node *weight, const tk_conv_lists *lists,
                  int64_t groups, bool flip) {
    tk_attrs_conv attrs = {.stride = tk_axes_list(&lists->stride),
                           .low = tk_axes_list(&lists->low),
                           .high = tk_axes_list(&lists->high),
                           .kernel_dilation = tk_axes_list(&lists->kernel_dilation),
                           .input_dilation = tk_axes_list(&lists->input_dilation),
                           .groups = groups,
                           .flip = flip};
    return tkb_node2(b, TK_OP_conv_general, input, weight, &attrs);
}

tk_node *tkb_conv_turn(tk_builder *b, tk_node *a, int64_t groups) {
    if (tk_node_is_error(a)) return a;
    int last = a->rank - 1;
    tk_shape apart = tk_node_shape(a), together = apart;
    apart.items[last] = groups;
    apart.items[apart.count++] = a->shape[last] / groups;
    tk_axes order = {.count = apart.count};
    for (int i = 1; i < last; i++) order.items[i] = i;
    order.items[0] = last + 1;
    order.items[last] = last;
    order.items[last + 1] = 0;
    together.items[0] = a->shape[last] / groups;
    TKB_TRY(b, tk_length_product("conv_general", 2, (int64_t[]){groups, a->shape[0]},
                                 &together.items[last]));
    return tkb_reshape(b, tkb_permute(b, tkb_reshape(b, a, apart), &order), together);
}

/* ---- arguments ---- */

/* One entry an axis: those given, one for all, or the fallback. */
static tk_status fill(const char *what, const char *name, tk_axes given, int axes, int64_t fallback,
                      tk_axes *out_list) {
    tk_axes list = {.count = axes};
    if (given.count > TK_AXES_MAX || (given.count >= 0 && given.count != 1 && given.count != axes))
        return tk_fail(TK_INVALID_ARGUMENT, "%s: %s has %lld entries, expected 1 or %d", what, name,
                       (long long)given.count, axes);
    for (int i = 0; i < axes; i++)
        list.items[i] = given.count < 0    ? fallback
                        : given.count == 1 ? given.items[0]
                                           : given.items[i];
    *out_list = list;
    return TK_OK;
}

static tk_status check_ranks(const char *what, const tk_node *input, const tk_node *weight,
                             int axes) {
    bool fits = axes ? input->rank == axes + 2 : input->rank >= 3 && input->rank <= 5;
    if (fits && weight->rank == input->rank) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR,
                   "%s: input is %s and weight %s, expected [N, ..., C] and [O, ..., C / groups] "
                   "with %s spatial axes",
                   what, tk_text_node(input), tk_text_node(weight),
                   axes == 0   ? "1 to 3"
                   : axes == 1 ? "1"
                   : axes == 2 ? "2"
                               : "3");
}

/* Where the kernel does not fit there is no result, and an empty kernel has no meaning. */
static tk_status check_lengths(const char *what, const tk_node *input, const tk_node *weight,
                               const tk_node *result) {
    for (int i = 1; i < input->rank - 1; i++) {
        if (weight->shape[i] > 0 && result->shape[i] > 0) continue;
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: the kernel of %s does not fit into the padded input %s on axis %d",
                       what, tk_text_node(weight), tk_text_node(input), i);
    }
    return TK_OK;
}

static tk_node *convolution(tk_builder *b, const char *what, int axes, tk_node *input,
                            tk_node *weight, const tk_conv_lists *given, int64_t groups,
                            bool flip) {
    tk_node *pair[] = {input, weight};
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(pair[i])) return pair[i];
    tkb_promote(b, 2, pair);
    TKB_TRY(b, check_ranks(what, input, weight, axes));
    if (pair[0]->dtype == TK_BOOL)
        return tkb_fail(
            b, tk_fail(TK_DTYPE_ERROR, "%s: operands are bool, expected a number dtype", what));
    tk_conv_lists lists;
    int rank = input->rank - 2;
    TKB_TRY(b, fill(what, "stride", given->stride, rank, 1, &lists.stride));
    TKB_TRY(b, fill(what, "padding", given->low, rank, 0, &lists.low));
    TKB_TRY(b, fill(what, "padding", given->high, rank, 0, &lists.high));
    TKB_TRY(b,
            fill(what, "kernel_dilation", given->kernel_dilation, rank, 1, &lists.kernel_dilation));
    TKB_TRY(b, fill(what, "input_dilation", given->input_dilation, rank, 1, &lists.input_dilation));
    tk_node *result = tkb_conv(b, pair[0], pair[1], &lists, groups, flip);
    if (!tk_node_is_error(result)) TKB_TRY(b, check_lengths(what, input, weight, result));
    return result;
}

tk_node *tkb_conv_general(tk_builder *b, tk_node *input, tk_node *weight, tk_axes stride,
                          tk_axes low, tk_axes high, tk_axes kernel_dilation,
                          tk_axes input_dilation, int64_t groups, bool flip) {
    tk_conv_lists lists = {stride, low, high, kernel_dilation, input_dilation};
    return convolution(b, "conv_general", 0, input, weight, &lists, groups, flip);
}

static tk_node *plain(tk_builder *b, const char *what, int axes, tk_node *input, tk_node *weight,
                      tk_axes stride, tk_axes padding, tk_axes dilation, int64_t groups) {
    tk_conv_lists lists = {stride, padding, padding, dilation, tk_all_axes()};
    return convolution(b, what, axes, input, weight, &lists, groups, false);
}

tk_node *tkb_conv1d(tk_builder *b, tk_node *input, tk_node *weight, int64_t stride, int64_t padding,
                    int64_t dilation, int64_t groups) {
    return plain(b, "conv1d", 1, input, weight, TK_AXES(stride), TK_AXES(padding),
                 TK_AXES(dilation), groups);
}

tk_node *tkb_conv2d(tk_builder *b, tk_node *input, tk_node *weight, tk_axes stride, tk_axes padding,
                    tk_axes dilation, int64_t groups) {
    return plain(b, "conv2d", 2, input, weight, stride, padding, dilation, groups);
}

tk_node *tkb_conv3d(tk_builder *b, tk_node *input, tk_node *weight, tk_axes stride, tk_axes padding,
                    tk_axes dilation, int64_t groups) {
    return plain(b, "conv3d", 3, input, weight, stride, padding, dilation, groups);
}

/* ---- transposed ---- */

/* The padding under which a kernel of `length` meets each element of the input everywhere, less
 * `padding`. */
static tk_status turn_padding(const char *what, int64_t length, int64_t dilation, int64_t padding,
                              int64_t more, int64_t *out_low, int64_t *out_high) {
    if (dilation < 1 || dilation > TK_CONV_LIMIT || length > TK_CONV_LIMIT / dilation ||
        padding < -(int64_t)TK_CONV_LIMIT || padding > TK_CONV_LIMIT || more < 0 ||
        more > TK_CONV_LIMIT)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "%s: a kernel of %lld with dilation %lld, padding %lld and output_padding "
                       "%lld is out of range",
                       what, (long long)length, (long long)dilation, (long long)padding,
                       (long long)more);
    *out_low = tk_conv_span(length, dilation) - 1 - padding;
    *out_high = *out_low + more;
    return TK_OK;
}

static tk_node *turned(tk_builder *b, const char *what, int axes, tk_node *input, tk_node *weight,
                       tk_axes stride, tk_axes padding, tk_axes dilation, tk_axes output_padding,
                       int64_t groups) {
    if (tk_node_is_error(input)) return input;
    if (tk_node_is_error(weight)) return weight;
    TKB_TRY(b, check_ranks(what, input, weight, axes));
    tk_axes margin, more;
    tk_conv_lists lists = {.stride = TK_AXES(1), .low = {.count = axes}, .high = {.count = axes}};
    TKB_TRY(b, fill(what, "stride", stride, axes, 1, &lists.input_dilation));
    TKB_TRY(b, fill(what, "dilation", dilation, axes, 1, &lists.kernel_dilation));
    TKB_TRY(b, fill(what, "padding", padding, axes, 0, &margin));
    TKB_TRY(b, fill(what, "output_padding", output_padding, axes, 0, &more));
    for (int i = 0; i < axes; i++)
        TKB_TRY(b, turn_padding(what, weight->shape[1 + i], lists.kernel_dilation.items[i],
                                margin.items[i], more.items[i], &lists.low.items[i],
                                &lists.high.items[i]));
    return convolution(b, what, axes, input, weight, &lists, groups, true);
}

tk_node *tkb_conv_transpose1d(tk_builder *b, tk_node *input, tk_node *weight, int64_t stride,
                              int64_t padding, int64_t dilation, int64_t output_padding,
                              int64_t groups) {
    return turned(b, "conv_transpose1d", 1, input, weight, TK_AXES(stride), TK_AXES(padding),
                  TK_AXES(dilation), TK_AXES(output_padding), groups);
}

tk_node *tkb_conv_transpose2d(tk_builder *b, tk_node *input, tk_node *weight, tk_axes stride,
                              tk_axes padding, tk_axes dilation, tk_axes output_padding,
                              int64_t groups) {
    return turned(b, "conv_transpose2d", 2, input, weight, stride, padding, dilation,
                  output_padding, groups);
}

tk_node *tkb_conv_transpose3d(tk_builder *b, tk_node *input, tk_node *weight, tk_axes stride,
                              tk_axes padding, tk_axes dilation, tk_axes output_padding,
                              int64_t groups) {
    return turned(b, "conv_transpose3d", 3, input, weight, stride, padding, dilation,
                  output_padding, groups);
}

/* ---- signals ---- */

static tk_status convolve_padding(const char *mode, int64_t kernel, int64_t *out_low,
                                  int64_t *out_high) {
    *out_low = *out_high = 0;
    if (!strcmp(mode, "valid")) return TK_OK;
    bool full = !strcmp(mode, "full");
    if (!full && strcmp(mode, "same") != 0)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "convolve: mode is '%s', expected 'full', 'same' or 'valid'", mode);
    *out_low = full ? kernel - 1 : kernel / 2;
    *out_high = full ? kernel - 1 : (kernel - 1) / 2;
    return TK_OK;
}

tk_node *tkb_convolve(tk_builder *b, tk_node *a, tk_node *v, const char *mode) {
    tk_node *pair[] = {a, v};
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(pair[i])) return pair[i];
    if (a->rank != 1 || v->rank != 1 || a->size == 0 || v->size == 0)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "convolve: operands are %s and %s, expected two vectors that "
                                   "are not empty",
                                   tk_text_node(a), tk_text_node(v)));
    tk_node *signal = a->size < v->size ? v : a, *kernel = a->size < v->size ? a : v;
    int64_t low, high;
    TKB_TRY(b, convolve_padding(mode, kernel->size, &low, &high));
    tk_conv_lists lists = {TK_AXES(1), TK_AXES(low), TK_AXES(high), TK_AXES(1), TK_AXES(1)};
    tk_node *result =
        convolution(b, "convolve", 1, tkb_reshape(b, signal, TK_SHAPE(1, signal->size, 1)),
                    tkb_reshape(b, kernel, TK_SHAPE(1, kernel->size, 1)), &lists, 1, true);
    return tkb_reshape(b, result, TK_SHAPE(-1));
}
