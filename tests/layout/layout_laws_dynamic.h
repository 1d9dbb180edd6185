/* The law of dynamic leaves: what a number is forgotten of must agree with what it was. Included by
 * layout_laws.h only, behind its macros. */
#ifndef LAYOUT_LAWS_DYNAMIC_H
#define LAYOUT_LAWS_DYNAMIC_H

/* Forgets a number but for one of its divisors. */
static void forget(layout_rng *rng, tk_term *term) {
    int64_t value = term->value, divisor = 1;
    for (int tries = 0; tries < 3; tries++) {
        int64_t candidate = 1 + rng_below(rng, 8);
        if (value % candidate == 0 && candidate > divisor) divisor = candidate;
    }
    if (value > 0) *term = tk_term_dynamic(TK_TERM_I32, divisor);
}

static void forget_some(layout_rng *rng, tk_layout *layout) {
    int leaf = rng_below(rng, layout->leaf_count);
    if (rng_below(rng, 3))
        forget(rng, &layout->leaf[leaf].shape);
    else
        forget(rng, &layout->leaf[leaf].stride);
}

/* Could the dynamic result be this one, once its leaves are known? */
static bool could_be(const tk_layout *dynamic, const tk_layout *known) {
    for (int i = 0; i < known->leaf_count; i++)
        for (int part = 0; part < 2; part++) {
            tk_term x = part ? dynamic->leaf[i].stride : dynamic->leaf[i].shape;
            tk_term y = part ? known->leaf[i].stride : known->leaf[i].shape;
            if (part && known->leaf[i].shape.value == 1) continue;
            if (x.kind == TK_TERM_STATIC ? x.value != y.value : y.value % x.value != 0)
                return false;
        }
    return true;
}

typedef tk_status dynamic_op(const tk_layout *a, const tk_layout *b, tk_layout *out);

static tk_status dynamic_complement(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    (void)a;
    return tk_layout_complement(b, tk_term_int(100), out);
}
static tk_status dynamic_coalesce(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    (void)b;
    return tk_layout_coalesce(a, NULL, out);
}
static tk_status dynamic_filter(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    (void)b;
    return tk_layout_filter(a, out);
}
static tk_status dynamic_recast(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    (void)b;
    return tk_layout_recast(a, 16, 8, out);
}
static tk_status dynamic_cover(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    tk_tuple target;
    tk_layout_shape(b, &target);
    return tk_layout_tile_to_shape(a, &target, NULL, out);
}

/* The operations, and which of their operands may be dynamic. */
static const struct {
    const char *name;
    dynamic_op *call;
    bool left, right;
} dynamic_ops[] = {
    {"composition", tk_layout_composition, true, true},
    {"logical_divide", tk_layout_logical_divide, true, false},
    {"flat_divide", tk_layout_flat_divide, true, false},
    {"complement", dynamic_complement, false, true},
    {"coalesce", dynamic_coalesce, true, false},
    {"filter", dynamic_filter, true, false},
    {"recast", dynamic_recast, true, false},
    {"logical_product", tk_layout_logical_product, false, true},
    {"tile_to_shape", dynamic_cover, false, true},
};
#define DYNAMIC_OPS (int)(sizeof dynamic_ops / sizeof *dynamic_ops)

/* What is answered without a number is answered with it, and alike; what is refuted without it is
 * refuted with it. */
static void law_dynamic(void **state) {
    (void)state;
    int answered = 0, alike = 0, open = 0;
    FOR_CASES(27) {
        tk_layout a, b, dynamic_a, dynamic_b, r, known;
        int op = step % DYNAMIC_OPS;
        random_layout(&rng, pick_limit(&rng), &a);
        random_right(&rng, &a, &b);
        if (rng_below(&rng, 2)) random_tile(&rng, &b);
        dynamic_a = a;
        dynamic_b = b;
        bool left = dynamic_ops[op].left && (!dynamic_ops[op].right || rng_below(&rng, 2));
        forget_some(&rng, left ? &dynamic_a : &dynamic_b);
        /* Past its end a divided layout goes on where its last extent above 1 is; whether an
         * unknown one is above 1 shows only there. */
        bool ends_in_one = a.leaf[a.leaf_count - 1].shape.value == 1;
        if ((op == 1 || op == 2) && ends_in_one) continue;
        tk_status status = dynamic_ops[op].call(&dynamic_a, &dynamic_b, &r);
        tk_status truth = dynamic_ops[op].call(&a, &b, &known);
        open += status != TK_OK && truth == TK_OK;
        EXPECT(status != TK_SHAPE_ERROR || truth == TK_SHAPE_ERROR,
               "%s of %s, %s: %s, but it has an answer on %s, %s", dynamic_ops[op].name,
               show(&dynamic_a).text, show(&dynamic_b).text, tk_error_message(), show(&a).text,
               show(&b).text);
        if (status != TK_OK) continue;
        answered++;
        EXPECT(truth == TK_OK, "%s of %s, %s = %s, but not on %s, %s", dynamic_ops[op].name,
               show(&dynamic_a).text, show(&dynamic_b).text, show(&r).text, show(&a).text,
               show(&b).text);
        if (r.node_count != known.node_count || memcmp(r.node, known.node, r.node_count)) continue;
        alike++;
        EXPECT(could_be(&r, &known), "%s of %s, %s = %s, but with numbers %s", dynamic_ops[op].name,
               show(&dynamic_a).text, show(&dynamic_b).text, show(&r).text, show(&known).text);
    }
    EXPECT(answered > LAW_CASES / 4 && alike > answered / 2, "%d answered, %d alike, %d open",
           answered, alike, open);
}

#endif
