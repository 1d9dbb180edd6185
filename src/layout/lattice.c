/* See lattice.h. */
#include "layout/lattice.h"

#include <string.h>

typedef __int128_t wide;

void tk_lattice_clear(tk_lattice *lattice) {
    lattice->unknowns = lattice->free = 0;
    lattice->exact = true;
}

void tk_lattice_copy(const tk_lattice *lattice, tk_lattice *out) {
    size_t bytes = (size_t)lattice->unknowns * sizeof *lattice->start;
    out->unknowns = lattice->unknowns;
    out->free = lattice->free;
    out->exact = lattice->exact;
    memcpy(out->start, lattice->start, bytes);
    for (int f = 0; f < lattice->free; f++) memcpy(out->column[f], lattice->column[f], bytes);
}

void tk_lattice_extend(tk_lattice *lattice) {
    int i = lattice->unknowns++;
    lattice->start[i] = 0;
    for (int f = 0; f < lattice->free; f++) lattice->column[f][i] = 0;
    memset(lattice->column[lattice->free], 0, (size_t)i * sizeof(int64_t));
    lattice->column[lattice->free++][i] = 1;
}

static bool narrow(wide value, int64_t *out) {
    *out = (int64_t)value;
    return *out == value && *out != INT64_MIN;
}

/* In 64 bits, which mostly suffice; false if not. */
static inline bool dot_narrow(const int64_t *a, const int64_t *b, int count, int64_t *out) {
    int64_t total = 0, product;
    bool over = false;
    for (int i = 0; i < count; i++) {
        over |= __builtin_mul_overflow(a[i], b[i], &product);
        over |= __builtin_add_overflow(total, product, &total);
    }
    *out = total;
    return !over && total != INT64_MIN;
}

static bool dot(const int64_t *a, const int64_t *b, int count, int64_t *out) {
    if (dot_narrow(a, b, count, out)) return true;
    wide total = 0;
    for (int i = 0; i < count; i++)
        if (a[i] && __builtin_add_overflow(total, (wide)a[i] * b[i], &total)) return false;
    return narrow(total, out);
}

/* out + factor * column. */
static bool add_multiple(int64_t *out, const int64_t *column, int64_t factor, int count) {
    for (int i = 0; i < count; i++)
        if (column[i]) {
            int64_t product;
            bool over = __builtin_mul_overflow(factor, column[i], &product) ||
                        __builtin_add_overflow(out[i], product, &out[i]);
            if (over || out[i] == INT64_MIN) return false;
        }
    return true;
}

/* The free column whose product with the row is smallest but not 0; -1 if there is none. */
static int smallest(const int64_t *product, int free) {
    int best = -1;
    for (int f = 0; f < free; f++) {
        int64_t size = product[f] < 0 ? -product[f] : product[f];
        if (size && (best < 0 || size < (product[best] < 0 ? -product[best] : product[best])))
            best = f;
    }
    return best;
}

/* Subtracts the pivot's column from the others until only it has a product; its index, -1 if none
 * has one, -2 if a number became too large. */
static int gather(tk_lattice *l, int64_t *product) {
    for (;;) {
        int pivot = smallest(product, l->free);
        bool others = false;
        for (int f = 0; f < l->free && pivot >= 0; f++) {
            int64_t quotient = f == pivot ? 0 : product[f] / product[pivot];
            if (quotient == 0) continue;
            if (!add_multiple(l->column[f], l->column[pivot], -quotient, l->unknowns)) return -2;
            product[f] -= quotient * product[pivot];
            others = others || product[f];
        }
        if (!others) return pivot;
    }
}

/* False if the equation contradicts the others; *out_handled is false if numbers were too large. */
static bool require(tk_lattice *l, const int64_t *row, int64_t value, bool *out_handled) {
    int64_t product[TK_LATTICE_MAX], have = 0, missing = 0;
    *out_handled = dot(row, l->start, l->unknowns, &have) && narrow((wide)value - have, &missing);
    for (int f = 0; f < l->free && *out_handled; f++)
        *out_handled = dot(row, l->column[f], l->unknowns, &product[f]);
    if (!*out_handled) return true;
    int pivot = gather(l, product);
    if (pivot == -1) return missing == 0;
    *out_handled = pivot >= 0;
    if (pivot < 0) return true;
    if (missing % product[pivot]) return false;
    *out_handled = add_multiple(l->start, l->column[pivot], missing / product[pivot], l->unknowns);
    if (pivot != --l->free) memcpy(l->column[pivot], l->column[l->free], sizeof l->column[pivot]);
    return true;
}

bool tk_lattice_require(tk_lattice *lattice, const int64_t *row, int64_t value) {
    bool handled = false;
    if (!lattice->exact) return true;
    bool consistent = require(lattice, row, value, &handled);
    if (!handled) lattice->exact = false;
    return consistent;
}

/* Takes away the multiple of the column that leaves the shortest rest. */
static void shorten_by(int64_t *start, const int64_t *column, int count) {
    long double along = 0, length = 0;
    for (int i = 0; i < count; i++) {
        along += (long double)start[i] * column[i];
        length += (long double)column[i] * column[i];
    }
    long double quotient = along / length;
    if (quotient > -0.5L && quotient < 0.5L) return;
    if (quotient > 9e18L || quotient < -9e18L) return;
    int64_t shorter[TK_LATTICE_MAX];
    memcpy(shorter, start, (size_t)count * sizeof *start);
    int64_t factor = (int64_t)(quotient < 0 ? quotient - 0.5L : quotient + 0.5L);
    if (add_multiple(shorter, column, -factor, count))
        memcpy(start, shorter, (size_t)count * sizeof *start);
}

void tk_lattice_shorten(tk_lattice *lattice) {
    for (int pass = 0; pass < 4; pass++)
        for (int f = 0; f < lattice->free; f++)
            shorten_by(lattice->start, lattice->column[f], lattice->unknowns);
}
