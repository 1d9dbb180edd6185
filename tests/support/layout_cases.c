/* See layout_cases.h. */
#include "support/layout_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

layout_text show(const tk_layout *layout) {
    layout_text shown;
    tk_layout_print(layout, shown.text, sizeof shown.text);
    return shown;
}

tk_layout layout_of(const char *text) {
    tk_layout layout;
    if (tk_layout_parse(text, &layout) != TK_OK) fail_msg("%s", tk_error_message());
    return layout;
}

tk_tiler tiler_of(const char *text) {
    tk_tiler tiler;
    if (tk_tiler_parse(text, &tiler) != TK_OK) fail_msg("%s", tk_error_message());
    return tiler;
}

tk_tuple tuple_of(const char *text) {
    tk_tuple tuple;
    if (tk_tuple_parse(text, &tuple) != TK_OK) fail_msg("%s", tk_error_message());
    return tuple;
}

/* -- Random shapes: written as text, so that the tests do not lean on the writers of the library --
 */

typedef struct shape_text {
    char text[1024];
    size_t length;
    int64_t room; /* coordinates still allowed */
} shape_text;

static void put(shape_text *out, const char *text) {
    size_t length = strlen(text);
    memcpy(out->text + out->length, text, length + 1);
    out->length += length;
}

static void put_extent(layout_rng *rng, shape_text *out) {
    static const int extents[] = {1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 8, 16, 7, 12, 32};
    int extent = extents[rng_below(rng, 16)];
    if (extent > out->room) extent = rng_below(rng, 2) ? (int)out->room : 1;
    out->room /= extent;
    char digits[16];
    snprintf(digits, sizeof digits, "%d", extent);
    put(out, digits);
}

static void put_mode(layout_rng *rng, shape_text *out, int depth) {
    if (depth == 0 || rng_below(rng, 3)) {
        put_extent(rng, out);
        return;
    }
    int rank = 1 + rng_below(rng, 3);
    put(out, "(");
    for (int i = 0; i < rank; i++) {
        if (i) put(out, ",");
        put_mode(rng, out, depth - 1);
    }
    put(out, ")");
}

void random_shape(layout_rng *rng, int64_t limit, tk_tuple *out) {
    shape_text shape = {.length = 0, .room = limit};
    if (rng_below(rng, 8) == 0) {
        put_extent(rng, &shape);
    } else {
        int rank = 1 + rng_below(rng, 3);
        put(&shape, "(");
        for (int i = 0; i < rank; i++) {
            if (i) put(&shape, ",");
            put_mode(rng, &shape, 2);
        }
        put(&shape, ")");
    }
    *out = tuple_of(shape.text);
}

static void shuffle(layout_rng *rng, int *order, int count) {
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int j = rng_below(rng, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

void random_strides(layout_rng *rng, const tk_tuple *shape, stride_kind kind, tk_layout *out) {
    tk_tuple stride = *shape;
    int order[TK_LAYOUT_MAX_LEAVES], count = shape->leaf_count;
    shuffle(rng, order, count);
    int64_t running = 1;
    for (int i = 0; i < count; i++) {
        int leaf = kind == STRIDES_COMPACT ? i : order[i];
        bool zero = kind == STRIDES_SOME_ZERO && rng_below(rng, 3) == 0;
        if (kind == STRIDES_PADDED) running *= 1 + (rng_below(rng, 3) == 0) * rng_below(rng, 3);
        stride.leaf[leaf] = tk_term_int(zero ? 0 : running);
        if (kind == STRIDES_ANY) stride.leaf[leaf] = tk_term_int(rng_below(rng, 20));
        if (!zero) running *= shape->leaf[leaf].value;
        if (shape->leaf[leaf].value == 1 && rng_below(rng, 2))
            stride.leaf[leaf] = tk_term_int(rng_below(rng, 50));
    }
    assert_int_equal(tk_layout_make(shape, &stride, out), TK_OK);
}

void random_layout(layout_rng *rng, int64_t limit, tk_layout *out) {
    tk_tuple shape;
    random_shape(rng, limit, &shape);
    random_strides(rng, &shape, (stride_kind)rng_below(rng, STRIDE_KINDS), out);
}

void random_injective(layout_rng *rng, int64_t limit, tk_layout *out) {
    tk_tuple shape;
    random_shape(rng, limit, &shape);
    random_strides(rng, &shape, (stride_kind)rng_below(rng, STRIDES_PADDED + 1), out);
}

/* -- What is true -- */

int64_t size_of(const tk_layout *layout) {
    int64_t size = 1;
    for (int i = 0; i < layout->leaf_count; i++) size *= layout->leaf[i].shape.value;
    return size;
}

int64_t value_of(const tk_layout *layout, int64_t index) {
    int64_t value = 0;
    int last = layout->leaf_count - 1;
    for (int i = 0; i < last; i++) {
        int64_t extent = layout->leaf[i].shape.value, quotient;
        if ((uint64_t)index <= UINT32_MAX && (uint64_t)extent <= UINT32_MAX)
            quotient = (uint32_t)index / (uint32_t)extent; /* half of the time of the wide one */
        else
            quotient = index / extent;
        value += (index - quotient * extent) * layout->leaf[i].stride.value;
        index = quotient;
    }
    return last < 0 ? value : value + index * layout->leaf[last].stride.value;
}

void check_left_inverse(layout_rng *rng, const tk_layout *a, const tk_layout *r, int trials) {
    for (int trial = 0; trial < trials; trial++) {
        int64_t i = (int64_t)(rng_next(rng) % (uint64_t)size_of(a));
        if (value_of(r, value_of(a, i)) != i)
            fail_msg("left_inverse %s = %s at %lld", show(a).text, show(r).text, (long long)i);
    }
}

bool same_function(const tk_layout *a, const tk_layout *b) {
    int64_t size = size_of(a);
    if (size != size_of(b)) return false;
    for (int64_t i = 0; i < size; i++)
        if (value_of(a, i) != value_of(b, i)) return false;
    return true;
}

/* Can a function with f(0) = 0 on [0,n) be written as a layout? The first break must divide n, and
 * the rest must repeat what came before. */
static bool is_layout_function(const int64_t *f, int64_t n) {
    if (n <= 2) return true;
    int64_t t = 2;
    while (t < n && f[t] == t * f[1]) t++;
    if (t == n) return true;
    if (n % t) return false;
    for (int64_t i = 0; i < n; i++)
        if (f[i] != f[i / t * t] + f[i % t]) return false;
    int64_t *coarse = malloc((size_t)(n / t) * sizeof *coarse);
    for (int64_t i = 0; i < n / t; i++) coarse[i] = f[i * t];
    bool found = is_layout_function(coarse, n / t);
    free(coarse);
    return found;
}

/* A leaf of b alone. */
static bool leaf_exists(const tk_layout *a, const tk_leaf *leaf) {
    int64_t n = leaf->shape.value;
    int64_t *f = malloc((size_t)n * sizeof *f);
    for (int64_t i = 0; i < n; i++) f[i] = value_of(a, i * leaf->stride.value);
    bool found = is_layout_function(f, n);
    free(f);
    return found;
}

bool composition_exists(const tk_layout *a, const tk_layout *b) {
    int64_t size = size_of(b);
    for (int64_t i = 0; i < size; i++) {
        int64_t rest = i, sum = 0;
        for (int j = 0; j < b->leaf_count; j++) {
            int64_t digit = rest % b->leaf[j].shape.value;
            rest /= b->leaf[j].shape.value;
            sum += value_of(a, digit * b->leaf[j].stride.value);
        }
        if (sum != value_of(a, value_of(b, i))) return false;
    }
    for (int j = 0; j < b->leaf_count; j++)
        if (!leaf_exists(a, &b->leaf[j])) return false;
    return true;
}

/* -- Left inverses -- */

#define MAX_POINTS 256
#define MAX_DIGITS 16

/* The equations of one chain of moduli, one for each point: digits times strides are the index. */
typedef struct equations {
    int points, digits;
    int64_t offset[MAX_POINTS], index[MAX_POINTS];
    int64_t modulus[MAX_DIGITS];
} equations;

/* Are there integer strides? Columns are combined until each row has one entry more than those
 * before it, which then must divide what is left. */
static bool have_solution(const equations *e) {
    static int64_t a[MAX_POINTS][MAX_DIGITS];
    int64_t solved[MAX_DIGITS];
    int pivots = 0;
    for (int i = 0; i < e->points; i++)
        for (int j = 0; j < e->digits; j++) {
            int64_t digit = e->offset[i] / e->modulus[j];
            a[i][j] = j + 1 < e->digits ? digit % (e->modulus[j + 1] / e->modulus[j]) : digit;
        }
    for (int i = 0; i < e->points; i++) {
        int64_t rest = e->index[i];
        for (int j = 0; j < pivots; j++) rest -= a[i][j] * solved[j];
        for (int j = pivots + 1; j < e->digits; j++)
            while (a[i][j]) {
                int64_t quotient = a[i][pivots] / a[i][j];
                for (int k = i; k < e->points; k++) {
                    int64_t kept = a[k][pivots] - quotient * a[k][j];
                    a[k][pivots] = a[k][j];
                    a[k][j] = kept;
                }
            }
        int64_t pivot = pivots < e->digits ? a[i][pivots] : 0;
        if (pivot == 0 && rest) return false;
        if (pivot == 0) continue;
        if (rest % pivot) return false;
        solved[pivots++] = rest / pivot;
    }
    return true;
}

/* All chains that go on from the moduli there are. */
static bool some_chain_solves(equations *e, int64_t most) {
    if (have_solution(e)) return true;
    int64_t last = e->modulus[e->digits - 1];
    for (int64_t next = 2 * last; next <= most; next += last) {
        e->modulus[e->digits++] = next;
        bool found = some_chain_solves(e, most);
        e->digits--;
        if (found) return true;
    }
    return false;
}

bool left_inverse_exists(const tk_layout *layout, int64_t most) {
    equations e = {.points = 0, .digits = 1, .modulus = {1}};
    int64_t size = size_of(layout);
    for (int64_t i = 0; i < size; i++) {
        int64_t offset = value_of(layout, i);
        if (offset > most) continue;
        assert_true(e.points < MAX_POINTS);
        e.offset[e.points] = offset;
        e.index[e.points++] = i;
    }
    return some_chain_solves(&e, most);
}
