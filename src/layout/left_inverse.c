/* The left inverse: a layout that takes every offset back to its coordinate.
 *
 * A layout R on offsets is a chain of moduli 1 = P_0 | P_1 | ... | P_m and a stride for each digit
 * (u / P_k) mod (P_{k+1} / P_k), the last digit unbounded. Where the strides of the given layout
 * divide each other, they are the chain, and each digit gets the prefix product of its leaf: CuTe's
 * form. Elsewhere the chain is searched, and the search is complete:
 *
 * For a given chain, R inverts the layout exactly if its strides solve one linear equation for each
 * offset. Take the offsets in increasing order. Two neighbours with the same quotient by P_k differ
 * in digits below P_k only, so their equation speaks of the first k strides alone, and it is the
 * equations between neighbours that matter. So the chain can be built from below, one prime ratio
 * at a time (a chain with other ratios is one with prime ratios and dependent strides), and is
 * dropped as soon as its equations have no solution in integers.
 *
 * What bounds the search: at each step assume first that no modulus follows. If that fails, it
 * fails at some offset u, with equations that no modulus above u changes. So the next modulus is at
 * most u; and u is one of the first few offsets, however large the layout is.
 *
 * The smallest offsets are asked first. An answer is checked on all of the layout (by composition,
 * if it is large), and offsets up to one where it is wrong join in. "There is none" is a proof
 * carried by the offsets up to the one that the error names.
 *
 * Large strides without any order leave too many chains below the smallest offsets. There the
 * offsets in the middle of the layout are asked, which lie closer together (chain_window.c): they
 * leave few chains or none, and each of these goes on above the length of the window as before.
 * Before that, chains without carries are tried: their equations are few however far the offsets
 * lie apart (carry_free.c). Undecided is left what takes more than STEP_LIMIT steps after that:
 * offsets hundreds of numbers apart, so that chains of as many moduli lie below any two of them.
 * Mostly all chains without carries were looked at then, which the error says: an inverse could
 * only be one in which carries cancel each other at every offset.
 *
 * Rejected: splits at the strides and their common divisors alone (they are tried first, as the
 * shortest answers): (2,2):(5,7) needs the moduli 2, 6 and 12. */
#include "layout/left_inverse.h"

#include <stdlib.h>

#include "layout/carry_free.h"
#include "layout/chain_window.h"
#include "layout/coalesce.h"
#include "layout/lattice.h"

/* Offsets that are tried of a larger layout. */
#define POINT_LIMIT 4096
/* Offsets that have equations at first. */
#define FIRST_POINTS 8
/* The work of the whole search (some tenths of a second), and of each search among guesses. */
#define STEP_LIMIT ((int64_t)1 << 25)
#define GUESS_LIMIT ((int64_t)1 << 22)
/* The work before a window is asked. */
#define FIRST_LIMIT ((int64_t)1 << 20)
#define MAX_GUESSES 64
/* Ranges of moduli: one ends at each new equation, and in each gap that doubles the offset. */
#define MAX_RANGES 128
/* Coordinates of a larger layout that are tried when composition refuses an answer. */
#define SAMPLES 20000

typedef struct point {
    int64_t offset, index;
} point;

/* Above `before`, up to `most`. */
typedef struct range {
    int64_t before, most;
} range;

/* A chain so far: its last modulus, and one point for each quotient by it. */
typedef struct level {
    int64_t modulus;
    int count;
    int kept[POINT_LIMIT];
    tk_lattice strides;
    int ranges;
    range range[MAX_RANGES]; /* where the next modulus can be */
    int before;              /* the points kept that are below all moduli of one range, and */
    tk_lattice below;        /* the strides after their equations */
} level;

typedef struct search {
    const tk_moving *leaf;
    int leaves;
    int64_t reach;
    int count, active; /* points there are, and how many of them have equations */
    point point[POINT_LIMIT];
    point spare[2][POINT_LIMIT];
    bool whole; /* all points of the layout are there */
    int guesses;
    int64_t guess[MAX_GUESSES];
    bool guessing, negative; /* split at guesses only; allow negative strides */
    int64_t steps, limit;
    int fixed; /* the depth up to which the chain is given; the modulus after it exceeds the window
                */
    tk_offsets window;
    level *chain[TK_LATTICE_MAX];
    tk_lattice last; /* of the chain that ends here */
    bool found, added, open;
    tk_proof without_carries; /* proven: no chain of that kind is the answer */
    tk_layout answer;
} search;

/* -- The points -- */

static int compare_points(const void *a, const void *b) {
    const point *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The points of both sorted lists, the second moved by `step`, as far as there is room. */
static int merge_points(const point *a, int count_a, const point *b, int count_b, point step,
                        int room, point *out) {
    int i = 0, j = 0, made = 0;
    while (made < room && (i < count_a || j < count_b)) {
        bool first = j == count_b || (i < count_a && a[i].offset <= b[j].offset + step.offset);
        if (first) {
            out[made++] = a[i++];
        } else {
            out[made++] = (point){b[j].offset + step.offset, b[j].index + step.index};
            j++;
        }
    }
    return made;
}

/* `steps` of one leaf from a point. */
static point move_by(point from, const tk_moving *leaf, int64_t steps) {
    from.offset += steps * leaf->leaf.stride.value;
    from.index += steps * leaf->prefix;
    return from;
}

/* The points of smallest offset. */
static void put_smallest(search *s, int room) {
    s->count = 1;
    s->point[0] = (point){0, 0};
    for (int i = 0; i < s->leaves; i++) {
        int64_t extent = s->leaf[i].leaf.shape.value;
        int before = s->count;
        memcpy(s->spare[0], s->point, (size_t)before * sizeof *s->point);
        for (int64_t x = 1; x < extent; x++) {
            point step = move_by((point){0, 0}, &s->leaf[i], x);
            if (s->count == room && step.offset > s->point[room - 1].offset) break;
            memcpy(s->spare[1], s->point, (size_t)s->count * sizeof *s->point);
            s->count =
                merge_points(s->spare[1], s->count, s->spare[0], before, step, room, s->point);
        }
    }
}

/* After x steps of a leaf: 1, 2, ... 8, 10, 12, 14, 16, 20, ... and the last; 0 after it. */
static int64_t next_spread(int64_t x, int64_t extent) {
    int64_t stride = 1;
    if (x == extent - 1) return 0;
    while (stride <= x / 8) stride *= 2;
    return x + stride < extent ? x + stride : extent - 1;
}

static uint64_t next_random(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 16;
}

/* A random point: few steps of a leaf as often as many, and often none or all. */
static point random_point(const search *s, uint64_t *random) {
    point at = {0, 0};
    for (int i = 0; i < s->leaves; i++) {
        uint64_t extent = (uint64_t)s->leaf[i].leaf.shape.value, kind = next_random(random) % 8;
        uint64_t x = next_random(random) >> next_random(random) % 48;
        if (kind < 2) x = 0;
        if (kind == 2) x = extent - 1;
        at = move_by(at, &s->leaf[i], (int64_t)(x % extent));
    }
    return at;
}

/* Few steps and many of one leaf, then of several. */
static void put_spread(search *s, int room) {
    uint64_t random = 1;
    for (int i = 0; i < s->leaves; i++) {
        int64_t most = s->leaf[i].leaf.shape.value;
        for (int64_t x = 1; x && s->count < room; x = next_spread(x, most))
            s->point[s->count++] = move_by((point){0, 0}, &s->leaf[i], x);
    }
    while (s->count < room) s->point[s->count++] = random_point(s, &random);
}

static void put_all(search *s) {
    s->count = 1;
    s->point[0] = (point){0, 0};
    for (int i = 0; i < s->leaves; i++) {
        int before = s->count;
        for (int64_t x = 1; x < s->leaf[i].leaf.shape.value; x++)
            for (int j = 0; j < before; j++)
                s->point[s->count++] = move_by(s->point[j], &s->leaf[i], x);
    }
}

static void load_points(search *s) {
    int64_t size = 1;
    int kept = 0;
    for (int i = 0; i < s->leaves; i++) size *= s->leaf[i].leaf.shape.value;
    s->whole = size <= POINT_LIMIT;
    if (s->whole) {
        put_all(s);
    } else {
        put_smallest(s, POINT_LIMIT / 4);
        put_spread(s, POINT_LIMIT * 3 / 4);
    }
    qsort(s->point, (size_t)s->count, sizeof *s->point, compare_points);
    for (int i = 0; i < s->count; i++)
        if (i == 0 || s->point[i].offset != s->point[kept - 1].offset)
            s->point[kept++] = s->point[i];
    s->count = kept;
}

/* -- An answer -- */

/* Composed with the leaves it must count 0, 1, 2, ... in their order. */
static bool inverts(const tk_layout *inverse, const tk_moving *leaf, int count) {
    tk_layout forward, back;
    tk_layout_clear(&forward);
    tk_put_node(&forward, (uint8_t)count);
    for (int i = 0; i < count; i++)
        tk_put_leaf(&forward, leaf[i].leaf.shape, tk_term_int(leaf[i].leaf.stride.value));
    if (tk_layout_composition(inverse, &forward, &back) != TK_OK) return false;
    tk_part mode = tk_part_first(tk_part_of(&back));
    for (int i = 0; i < count; i++, mode = tk_part_next(mode)) {
        tk_leaf whole[TK_LAYOUT_MAX_LEAVES];
        int pieces = tk_coalesce_leaves(mode.leaf, tk_tree_leaves(mode.node), false, whole);
        if (pieces != 1 || whole[0].stride.value != leaf[i].prefix) return false;
    }
    return true;
}

/* Does the candidate, whose offsets may be too large for a layout, invert this point? */
static bool is_answer_at(const search *s, point at) {
    __int128_t value = 0;
    for (int i = 0; i < s->answer.leaf_count; i++) {
        int64_t extent = s->answer.leaf[i].shape.value;
        bool last = i + 1 == s->answer.leaf_count;
        value +=
            (__int128_t)(last ? at.offset : at.offset % extent) * s->answer.leaf[i].stride.value;
        at.offset /= extent;
    }
    return value == at.index;
}

/* The points up to this one are to have equations, and some more, so that it does not happen often.
 */
static void activate(search *s, int i) {
    s->active += s->active / 2;
    if (s->active <= i) s->active = i + 1;
    if (s->active > s->count) s->active = s->count;
    s->added = true;
}

static void add_point(search *s, point at) {
    int i = s->count++;
    for (; i > 0 && s->point[i - 1].offset > at.offset; i--) s->point[i] = s->point[i - 1];
    s->point[i] = at;
    activate(s, i);
}

/* Looks for a point where the answer is wrong. */
static void sample(search *s) {
    uint64_t random = 2;
    for (int i = 0; i < SAMPLES && !s->added && s->count < POINT_LIMIT; i++) {
        point at = random_point(s, &random);
        if (!is_answer_at(s, at)) add_point(s, at);
    }
}

/* The chain with the strides found: is it the answer? */
static void try_answer(search *s, int depth) {
    tk_leaf digit[TK_LATTICE_MAX], kept[TK_LATTICE_MAX];
    tk_lattice_shorten(&s->last);
    for (int i = 0; i <= depth; i++) {
        int64_t modulus = s->chain[i]->modulus, stride = s->last.start[i];
        int64_t extent = i < depth ? s->chain[i + 1]->modulus / modulus : s->reach / modulus + 1;
        if (stride < 0 && !s->negative) return;
        digit[i] = (tk_leaf){tk_term_int(extent), tk_term_int(stride)};
    }
    int count = tk_coalesce_leaves(digit, depth + 1, false, kept);
    tk_layout_clear(&s->answer);
    tk_put_coalesced(&s->answer, kept, count);
    s->found = true;
    for (int i = 0; i < s->count && s->found; i++) {
        s->found = is_answer_at(s, s->point[i]);
        if (!s->found && i >= s->active) activate(s, i);
    }
    s->found = s->found && tk_layout_finish(&s->answer) == TK_OK;
    if (s->found && !s->whole && !inverts(&s->answer, s->leaf, s->leaves)) {
        s->found = false;
        sample(s);
    }
    if (!s->found && !s->added) s->open = true;
}

/* -- The search -- */

/* What the strides of a chain contribute to point b more than to point a. The last digit counts
 * whole, which is the same for points with one quotient by the modulus after it. */
static void difference(const search *s, int depth, point a, point b, int64_t *row) {
    for (int i = 0; i <= depth; i++) {
        int64_t modulus = s->chain[i]->modulus, x = a.offset / modulus, y = b.offset / modulus;
        if (i < depth) {
            int64_t extent = s->chain[i + 1]->modulus / modulus;
            x %= extent;
            y %= extent;
        }
        row[i] = y - x;
    }
}

/* The equation between two points; false if it contradicts those before it. */
static bool agree(search *s, int depth, int a, int b, tk_lattice *strides) {
    int64_t row[TK_LATTICE_MAX];
    difference(s, depth, s->point[a], s->point[b], row);
    s->steps += 4 * depth + strides->free * depth / 4;
    return tk_lattice_require(strides, row, s->point[b].index - s->point[a].index);
}

/* A modulus that follows is in (before, offset], and splits nothing if the equation of `offset`
 * says nothing new and the modulus is above half of it: `most` is the largest that can matter. */
static void put_range(level *here, int64_t before, int64_t most) {
    range *last = here->ranges ? &here->range[here->ranges - 1] : NULL;
    if (most <= before) return;
    if (last && (last->most == before || here->ranges == MAX_RANGES))
        last->most = most;
    else
        here->range[here->ranges++] = (range){before, most};
}

/* No modulus follows: does that answer all offsets? Notes which moduli may follow if not. Let the
 * equations of all offsets below a modulus m imply that of the first offset u above, and u < 2 m.
 * Then the strides below and above m are bound to continue each other: m splits nothing. */
static bool end_chain(search *s, int depth) {
    level *here = s->chain[depth];
    int64_t before = here->modulus;
    here->ranges = 0;
    tk_lattice_copy(&here->strides, &s->last);
    tk_lattice_extend(&s->last);
    for (int i = 1; i < here->count; i++) {
        int64_t offset = s->point[here->kept[i]].offset;
        int free = s->last.free;
        bool agrees = agree(s, depth, here->kept[i - 1], here->kept[i], &s->last);
        bool implied = agrees && s->last.exact && s->last.free == free;
        s->steps++;
        put_range(here, before, implied ? offset / 2 : offset);
        if (!agrees) return false;
        if (offset > before) before = offset;
    }
    return true;
}

static bool make_level(level **at) {
    if (!*at) *at = tk_malloc(sizeof **at);
    return *at != NULL;
}

/* Starts on a range of moduli: points below them all keep the equations of a chain that ends. */
static void enter_range(search *s, int depth, int64_t before) {
    level *here = s->chain[depth];
    tk_lattice_copy(&here->strides, &here->below);
    tk_lattice_extend(&here->below);
    for (here->before = 1; here->before < here->count; here->before++) {
        int point = here->kept[here->before];
        if (s->point[point].offset > before) return;
        (void)agree(s, depth, here->kept[here->before - 1], point, &here->below);
    }
}

/* One more modulus in the range entered; false if the offsets it brings together contradict each
 * other. */
static bool extend_chain(search *s, int depth, int64_t modulus) {
    const level *here = s->chain[depth];
    level *next = s->chain[depth + 1];
    next->modulus = modulus;
    next->count = 1;
    next->kept[0] = here->kept[0];
    tk_lattice_copy(&here->below, &next->strides);
    int64_t quotient = 0;
    for (int i = here->before; i < here->count; i++) {
        int point = here->kept[i], before = next->kept[next->count - 1];
        int64_t reached = s->point[point].offset / modulus;
        s->steps++;
        if (reached != quotient)
            next->kept[next->count++] = point;
        else if (!agree(s, depth, before, point, &next->strides))
            return false;
        quotient = reached;
    }
    return true;
}

static bool is_in_range(const level *here, int64_t modulus) {
    for (int i = 0; i < here->ranges; i++)
        if (modulus > here->range[i].before && modulus <= here->range[i].most) return true;
    return false;
}

/* Chains are refined as far as they can be, so a ratio is prime; or the moduli that its prime
 * factors would make on the way, smallest first, split nothing. */
static bool is_refined(search *s, const level *here, int64_t ratio) {
    int64_t reached = here->modulus;
    if (reached * (ratio / 2) <= here->range[0].before) return true;
    for (int64_t d = 2; d <= ratio / d;) {
        if (ratio % d) {
            d++;
            s->steps++;
            continue;
        }
        ratio /= d;
        reached *= d;
        if (is_in_range(here, reached)) return false;
    }
    return true;
}

/* The modulus to try after `last` in a range; 0 if there is none. */
static int64_t next_guess(const search *s, const level *here, range in, int64_t last) {
    for (int i = 0; i < s->guesses && s->guess[i] <= in.most; i++)
        if (s->guess[i] > last && s->guess[i] % here->modulus == 0) return s->guess[i];
    return 0;
}

static int64_t next_modulus(search *s, const level *here, range in, int64_t last) {
    if (s->guessing) return next_guess(s, here, in, last);
    int64_t ratio = last / here->modulus + 1, most = in.most / here->modulus;
    for (; ratio <= most; ratio++, s->steps++)
        if (is_refined(s, here, ratio)) return ratio * here->modulus;
    return 0;
}

static tk_status walk(search *s, int depth);

/* Tries the moduli of one range after a chain. */
static tk_status walk_range(search *s, int depth, range in) {
    const level *here = s->chain[depth];
    if (depth == s->fixed && in.before < s->window.length) in.before = s->window.length;
    int64_t modulus = in.before;
    enter_range(s, depth, in.before);
    while ((modulus = next_modulus(s, here, in, modulus))) {
        if (s->steps > s->limit) s->open = true;
        if (s->steps > s->limit) return TK_OK;
        if (extend_chain(s, depth, modulus)) TK_TRY(walk(s, depth + 1));
        if (s->found || s->added) return TK_OK;
    }
    return TK_OK;
}

/* Tries all chains that begin with the one of this depth. */
static tk_status walk(search *s, int depth) {
    const level *here = s->chain[depth];
    if (end_chain(s, depth)) {
        try_answer(s, depth);
        if (s->found || s->added) return TK_OK;
    }
    if (depth + 2 == TK_LATTICE_MAX) return TK_OK; /* the modulus is above 2^62 */
    if (!make_level(&s->chain[depth + 1]))
        return tk_fail(TK_OUT_OF_MEMORY, "%zu bytes", sizeof(level));
    for (int i = 0; i < here->ranges; i++) {
        TK_TRY(walk_range(s, depth, here->range[i]));
        if (s->found || s->added) return TK_OK;
    }
    return TK_OK;
}

static void start_chain(search *s) {
    level *root = s->chain[0];
    s->added = false;
    root->modulus = 1;
    root->count = s->active;
    for (int i = 0; i < s->active; i++) root->kept[i] = i;
    tk_lattice_clear(&root->strides);
}

/* All chains whose first modulus is `first`, or all if it is 1. */
static tk_status search_chains(search *s, int64_t first, bool guessing, bool negative,
                               int64_t limit) {
    s->guessing = guessing;
    s->negative = negative;
    s->steps = 0;
    s->limit = limit;
    s->fixed = -1;
    s->open = false;
    do {
        start_chain(s);
        s->open = false;
        if (first == 1) TK_TRY(walk(s, 0));
        if (first > 1) enter_range(s, 0, 1);
        if (first > 1 && extend_chain(s, 0, first)) TK_TRY(walk(s, 1));
    } while (s->added);
    return TK_OK;
}

/* All chains that begin with this one and go on above the length of the window. */
static tk_status extend_given(search *s, const int64_t *modulus, int count) {
    bool open = s->open;
    do {
        bool agrees = true;
        start_chain(s);
        s->open = open;
        for (int depth = 0; depth + 1 < count && agrees; depth++) {
            if (!make_level(&s->chain[depth + 1]))
                return tk_fail(TK_OUT_OF_MEMORY, "%zu bytes", sizeof(level));
            enter_range(s, depth, modulus[depth + 1] - 1);
            agrees = extend_chain(s, depth, modulus[depth + 1]);
        }
        s->fixed = count - 1;
        if (agrees) TK_TRY(walk(s, count - 1));
    } while (s->added && !s->found);
    return TK_OK;
}

typedef struct extension {
    search *search;
    tk_status status;
} extension;

static bool extend_visited(void *context, const int64_t *modulus, int count) {
    extension *e = context;
    e->status = extend_given(e->search, modulus, count);
    return e->status == TK_OK && !e->search->found && e->search->steps <= e->search->limit;
}

/* All chains, by what a window of offsets leaves of them. */
static tk_status search_window(search *s) {
    extension e = {s, TK_OK};
    s->guessing = s->open = false;
    s->negative = true;
    s->steps = 0;
    s->limit = STEP_LIMIT;
    tk_proof proof = tk_visit_chains(s->leaf, s->leaves, extend_visited, &e, &s->window);
    if (proof != TK_PROVEN && !s->found) s->open = true;
    if (s->open) s->window.length = 0;
    return e.status;
}

/* The chains without carries that solve the equations of the leaves: each is an answer. What
 * follows them is not looked at. Otherwise the question stays open. */
static tk_status search_carry_free(search *s) {
    extension e = {s, TK_OK};
    s->guessing = false;
    s->negative = true;
    s->steps = 0;
    s->limit = STEP_LIMIT;
    s->window.length = INT64_MAX;
    s->without_carries = tk_visit_carry_free(s->leaf, s->leaves, extend_visited, &e);
    s->window.length = 0;
    s->open = !s->found;
    return e.status;
}

/* Keeps the guesses increasing and different. */
static void put_guess(search *s, int64_t value) {
    int at = 0;
    while (at < s->guesses && s->guess[at] < value) at++;
    if (value < 2 || s->guesses == MAX_GUESSES || (at < s->guesses && s->guess[at] == value))
        return;
    memmove(s->guess + at + 1, s->guess + at, (size_t)(s->guesses - at) * sizeof *s->guess);
    s->guess[at] = value;
    s->guesses++;
}

/* Strides, their common divisors, and what one leaves of another, as often as there is room: where
 * each stride is some moduli together, these are the moduli alone. */
static void collect_guesses(search *s) {
    for (int i = 0; i < s->leaves; i++)
        for (int j = i; j < s->leaves; j++)
            put_guess(s, tk_gcd(s->leaf[i].leaf.stride.value, s->leaf[j].leaf.stride.value));
    for (int before = 0; before < s->guesses;) {
        int64_t known[MAX_GUESSES];
        before = s->guesses;
        memcpy(known, s->guess, (size_t)before * sizeof *known);
        for (int i = 0; i < before; i++)
            for (int j = 0; j < before; j++) put_guess(s, known[i] % known[j]);
        if (s->guesses == before) return;
    }
}

static tk_status fail_search(const search *s) {
    if (s->open)
        return tk_fail(TK_UNSUPPORTED,
                       "undecided: the strides do not divide each other, and neither a left "
                       "inverse nor a proof that there is none was found in %lld steps%s",
                       (long long)s->steps,
                       s->without_carries == TK_PROVEN ? "; there is none without carries" : "");
    point last = s->point[s->active - 1];
    if (s->window.length)
        return tk_fail(TK_SHAPE_ERROR,
                       "no left inverse: the strides do not divide each other, and no layout takes "
                       "all offsets up to %lld and those from %lld to %lld back to their "
                       "coordinates",
                       (long long)last.offset, (long long)s->window.first,
                       (long long)s->window.last);
    return tk_fail(TK_SHAPE_ERROR,
                   "no left inverse: the strides do not divide each other, and no layout takes all "
                   "offsets up to %lld, that of coordinate %lld, back to their coordinates",
                   (long long)last.offset, (long long)last.index);
}

static tk_status search_all(search *s) {
    load_points(s);
    s->active = s->count < FIRST_POINTS ? s->count : FIRST_POINTS;
    collect_guesses(s);
    for (int i = 0; i < s->leaves; i++)
        s->reach += (s->leaf[i].leaf.shape.value - 1) * s->leaf[i].leaf.stride.value;
    if (!make_level(&s->chain[0]) || !make_level(&s->chain[1]))
        return tk_fail(TK_OUT_OF_MEMORY, "%zu bytes", sizeof(level));
    int64_t common = 0;
    for (int i = 0; i < s->leaves; i++) common = tk_gcd(common, s->leaf[i].leaf.stride.value);
    TK_TRY(search_chains(s, 1, true, false, GUESS_LIMIT));
    if (!s->found) TK_TRY(search_chains(s, 1, true, true, GUESS_LIMIT));
    if (!s->found && common > 1) TK_TRY(search_chains(s, common, false, true, GUESS_LIMIT));
    if (!s->found) TK_TRY(search_chains(s, 1, false, true, FIRST_LIMIT));
    if (s->open) TK_TRY(search_carry_free(s));
    if (s->open) TK_TRY(search_window(s));
    if (s->open) TK_TRY(search_chains(s, 1, false, true, STEP_LIMIT));
    return s->found ? TK_OK : fail_search(s);
}

static tk_status search_left(const tk_moving *leaf, int count, tk_layout *out) {
    search *s = tk_calloc(1, sizeof *s);
    if (!s) return tk_fail(TK_OUT_OF_MEMORY, "%zu bytes", sizeof *s);
    s->leaf = leaf;
    s->leaves = count;
    tk_status status = search_all(s);
    if (status == TK_OK) tk_put_part(out, tk_part_of(&s->answer));
    for (int i = 0; i < TK_LATTICE_MAX; i++) tk_free(s->chain[i]);
    tk_free(s);
    return status;
}

/* -- Without a search -- */

/* The direct form: each stride divides the next and no leaf reaches into the next. */
static bool invert_directly(const tk_moving *leaf, int count, tk_layout *out) {
    tk_leaf digit[TK_LAYOUT_MAX_LEAVES + 1], kept[TK_LAYOUT_MAX_LEAVES + 1];
    int digits = 0;
    if (count && leaf[0].leaf.stride.value > 1)
        digit[digits++] = (tk_leaf){leaf[0].leaf.stride, tk_term_int(0)};
    for (int i = 0; i < count; i++) {
        int64_t extent = leaf[i].leaf.shape.value, stride = leaf[i].leaf.stride.value;
        if (i + 1 < count) {
            int64_t above = leaf[i + 1].leaf.stride.value;
            if (above % stride || above / stride < extent) return false;
            extent = above / stride;
        }
        digit[digits++] = (tk_leaf){tk_term_int(extent), tk_term_int(leaf[i].prefix)};
    }
    for (int i = 0; i < digits; i++) digit[i].shape.basis = 0;
    digits = tk_coalesce_leaves(digit, digits, false, kept);
    tk_put_coalesced(out, kept, digits);
    return true;
}

/* Offsets below 0 meet a layout of one leaf only: that leaf goes on in both directions. */
static tk_status invert_backwards(const tk_moving *leaf, int count, tk_layout *out) {
    int64_t extent = 1, slope = leaf[0].prefix / leaf[0].leaf.stride.value;
    for (int i = 0; i < count; i++) {
        int64_t stride = leaf[i].leaf.stride.value;
        if (leaf[i].prefix % stride || leaf[i].prefix / stride != slope)
            return tk_fail(TK_SHAPE_ERROR,
                           "no left inverse: stride %lld of leaf %d takes coordinate %lld below 0, "
                           "where only a layout of one leaf goes on, and one leaf cannot invert "
                           "coordinate %lld",
                           (long long)leaf[0].leaf.stride.value, leaf[0].index,
                           (long long)leaf[0].prefix, (long long)leaf[i].prefix);
        extent += (leaf[i].leaf.shape.value - 1) * (stride < 0 ? -stride : stride);
    }
    tk_put_leaf(out, tk_term_int(extent), tk_term_int(slope));
    return TK_OK;
}

tk_status tk_invert_left(const tk_moving *leaf, int count, tk_layout *out) {
    if (count && leaf[0].leaf.stride.value < 0) return invert_backwards(leaf, count, out);
    if (invert_directly(leaf, count, out)) return TK_OK;
    return search_left(leaf, count, out);
}
