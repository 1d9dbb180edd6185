/* Linear equations over the integers, one after another. Private to this module.
 *
 * The solutions of the equations met so far are start + sum of t_f * column[f], t any integers. One
 * more equation is a row of coefficients on t: its greatest common divisor must divide what is
 * missing, and Euclid's steps on the columns leave one column that meets it and others that do not
 * change it. Nothing is rounded, and there is no search.
 *
 * Rejected: elimination over the rationals (an answer there need not be one in integers), and the
 * Hermite form of all equations at once (most systems contradict themselves within a few). */
#ifndef LAYOUT_LATTICE_H
#define LAYOUT_LATTICE_H

#include <stdbool.h>
#include <stdint.h>

/* A layout has at most 62 extents above 1 before its unbounded last. */
#define TK_LATTICE_MAX 64

typedef struct tk_lattice {
    int unknowns, free;
    bool exact; /* no equation was dropped because its numbers left 64 bits */
    int64_t start[TK_LATTICE_MAX];
    int64_t column[TK_LATTICE_MAX][TK_LATTICE_MAX];
} tk_lattice;

/* No unknowns. */
void tk_lattice_clear(tk_lattice *lattice);

/* Copies the part in use. */
void tk_lattice_copy(const tk_lattice *lattice, tk_lattice *out);

/* One more unknown, free; at most TK_LATTICE_MAX. */
void tk_lattice_extend(tk_lattice *lattice);

/* Adds `sum of row[i] * unknown i = value`. False if no integers meet all equations. An equation
 * that cannot be handled in 64 bits is dropped, and `exact` becomes false. */
bool tk_lattice_require(tk_lattice *lattice, const int64_t *row, int64_t value);

/* A solution with small numbers, in `start`. */
void tk_lattice_shorten(tk_lattice *lattice);

#endif
