/* What the bodies in nn.def are written with. */
#ifndef TKPY_NN_H
#define TKPY_NN_H

#include "args.h"
#include "tiki/nn.h"

/* The reduction that a loss was asked for; -1 with an exception. */
int tkpy_reduction(const char *name);

/* Whether two arguments have one shape; false with a ValueError that names both. */
bool tkpy_same_shape(const char *first_name, tk_array first, const char *second_name,
                     tk_array second);

/* Inside a loss of nn.def: TKPY_BY is its reduction, `check` what must be true of the arguments. */
#define TKPY_SAME(first, second) tkpy_same_shape(#first, first, #second, second)
#define TKPY_LOSS(check, loss) (tkpy_reduction(reduction) >= 0 && (check) ? (loss) : TK_NO_ARRAY)
#define TKPY_BY ((tk_reduction)tkpy_reduction(reduction))

static inline tk_axes tkpy_last_axis(tk_axes axes) { return axes.count == 0 ? TK_AXES(-1) : axes; }

tk_array tkpy_dropout(tkpy_call *call, tk_array x, double p, int64_t shared);
tk_array tkpy_cross_entropy(tk_array logits, tk_array targets, tk_array weights, int64_t axis,
                            double label_smoothing, const char *reduction);

#endif
