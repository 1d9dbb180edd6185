/* Which chains of moduli could invert a layout, as far as a short window of its offsets can tell.
 * Private. */
#ifndef LAYOUT_CHAIN_WINDOW_H
#define LAYOUT_CHAIN_WINDOW_H

#include "layout/image.h"

/* Is asked for each chain 1 = modulus[0] | modulus[1] | ... that is left; false to stop. */
typedef bool tk_chain_visitor(void *context, const int64_t *modulus, int count);

/* What was looked at: offsets from `first` to `last`, in windows of at most `length`. */
typedef struct tk_offsets {
    int64_t first, last, length;
} tk_offsets;

/* Visits chains such that each left inverse of the leaves has, among its moduli up to the length of
 * the windows (*out, set before the first visit), the moduli of one of them or some of these. The
 * leaves are sorted by stride, above 0, and reach no offset twice. Proven if all were visited,
 * refuted if the visitor stopped, open if there are too many moduli to look at: then some may be
 * missing. */
tk_proof tk_visit_chains(const tk_moving *leaf, int count, tk_chain_visitor *visit, void *context,
                         tk_offsets *out);

#endif
