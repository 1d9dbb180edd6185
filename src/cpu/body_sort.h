/* Sorting items: an unsigned key whose order is the elements' order, with the element's index.
 *
 * Keys: integers with the sign bit flipped; floats with their bits turned so that they ascend, -0.0
 * and 0.0 the same key, every NaN the greatest; complex numbers real part first, those with a NaN
 * part after all others. Indices are part of the order, so no two items are equal, and any correct
 * algorithm gives the stable result. */
#ifndef CPU_BODY_SORT_H
#define CPU_BODY_SORT_H

#include "tiki/dtype.h"

/* Elements of at most 32 bits: key in the upper half, index in the lower. */
typedef uint64_t tk_narrow_item;

typedef struct tk_wide_item {
    uint64_t key, index;
} tk_wide_item;

static inline bool tk_sort_is_narrow(tk_dtype dtype) { return tk_dtype_size(dtype) <= 4; }

/* Items of a dense row of `count` elements; narrow dtypes need count <= 2^32. */
void tk_narrow_items(tk_dtype dtype, const void *row, int64_t count, tk_narrow_item *items);
void tk_wide_items(tk_dtype dtype, const void *row, int64_t count, tk_wide_item *items);

/* Sorts; `spare` has room for `count` items too. The result is in `items`. */
void tk_narrow_sort(tk_narrow_item *items, tk_narrow_item *spare, int64_t count);
void tk_wide_sort(tk_wide_item *items, tk_wide_item *spare, int64_t count);

/* Puts the item of rank `kth` in its place, smaller ones before it, greater ones after. */
void tk_narrow_select(tk_narrow_item *items, int64_t count, int64_t kth);
void tk_wide_select(tk_wide_item *items, int64_t count, int64_t kth);

#endif
