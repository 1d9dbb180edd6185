/* Which chains of moduli invert a layout without carries. Private. */
#ifndef LAYOUT_CARRY_FREE_H
#define LAYOUT_CARRY_FREE_H

#include "layout/chain_window.h"

/* Visits chains of moduli that split no step of the leaves into one that carries, and that give
 * each leaf its step in the coordinate with integer strides. The leaves are static, with strides
 * above 0. Proven if every left inverse of that kind has the moduli of a chain visited or some of
 * them, refuted if the visitor stopped, open if there are too many moduli to look at. */
tk_proof tk_visit_carry_free(const tk_moving *leaf, int count, tk_chain_visitor *visit,
                             void *context);

#endif
