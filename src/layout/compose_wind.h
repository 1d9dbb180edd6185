/* Do carries that cancel cancel everywhere? The question that composition asks about a layout A
 * whose strides change both ways, decided without looking at all points. Private. */
#ifndef LAYOUT_COMPOSE_WIND_H
#define LAYOUT_COMPOSE_WIND_H

#include "layout/term.h"

/* G(a) = sum over k of change[k] * floor(sum over j of a_j * weight[k][j] / modulus[k]), a vector
 * with one number for each basis of A. The moduli ascend and each divides the next; the weights of
 * k and l > k are equal modulo modulus[k], and weight[k][j] < modulus[k]. */
typedef struct tk_winding {
    int carries, bases, steps;
    int64_t modulus[TK_LAYOUT_MAX_LEAVES];
    __int128_t change[TK_LAYOUT_MAX_LEAVES][TK_LAYOUT_MAX_LEAVES]; /* of carry k, in basis b */
    int64_t weight[TK_LAYOUT_MAX_LEAVES][TK_LAYOUT_MAX_LEAVES];    /* of carry k, in step j */
} tk_winding;

/* The first a in [1, n) with G(a) not 0, where there is one step; n if there is none. */
int64_t tk_winding_first(const tk_winding *winding, int64_t n);

/* Is G(a) = 0 for all a with 0 <= a_j < extent[j]? If not, out[j] is an a where it is not. The
 * extents multiplied, and the sum of a_j * weight[k][j], are below 2^63. Open only after a search
 * of some millions of boxes: with many steps this is the subset sum problem. */
tk_proof tk_winding_cancels(const tk_winding *winding, const int64_t *extent, int64_t *out);

/* X_k = near_start + sum of m_j near[j] and X_l alike, 0 <= m_j < extent[j], equal modulo
 * near_modulus. */
typedef struct tk_forms {
    int steps;
    int64_t extent[TK_LAYOUT_MAX_LEAVES];
    int64_t near[TK_LAYOUT_MAX_LEAVES], far[TK_LAYOUT_MAX_LEAVES];
    int64_t near_modulus, far_modulus;
    __int128_t near_start, far_start;
} tk_forms;

/* Adds a step, counted upwards in X_k, and joined to one of which it is a multiple. */
void tk_forms_add(tk_forms *forms, int64_t extent, int64_t near, int64_t far);

/* Is floor(X_k / near_modulus) = floor(X_l / far_modulus) wherever X_k is within `room` of a
 * multiple of near_modulus? Open if there are too many points, or no memory. */
tk_proof tk_forms_agree(const tk_forms *forms, int64_t room);

#endif
