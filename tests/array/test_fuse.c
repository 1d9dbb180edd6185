/* Elementwise steps computed together give the bits that they give one by one.
 *
 * A random program over arrays of one shape (several dtypes, held intermediates, views and
 * broadcasts as operands) runs twice: with every step evaluated at once, where nothing can be
 * grouped, and as one graph. Leaves are released first in half of the programs, so that their
 * memory is taken over. */
#include <string.h>

#include "support/arrays.h"
#include "support/sanitizer.h"

#define PROGRAMS (SUPPORT_TSAN ? 30 : 150)
#define STEPS 40
#define LEAVES 6
#define NODES (STEPS + LEAVES)

typedef struct random_state {
    uint64_t state;
} random_state;

static int64_t below(random_state *r, int64_t n) {
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((r->state >> 33) % (uint64_t)n);
}

/* ---- leaves ---- */

static tk_array counted(tk_context *ctx, tk_shape shape, tk_dtype dtype, int64_t salt) {
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    tk_array at = tk_arange(ctx, 0, (double)size, 1, TK_INT64);
    tk_array mixed = tk_remainder(tk_multiply(at, tk_scalar_int(ctx, 7919 + salt)),
                                  tk_scalar_int(ctx, 251 + salt));
    tk_array wide = tk_multiply(tk_subtract(tk_astype(mixed, TK_FLOAT64), tk_scalar(ctx, 100)),
                                tk_scalar(ctx, 0.0625));
    return tk_reshape(tk_astype(wide, dtype), shape);
}

/* Leaf `which` of a shape: dense, a row, a column, a transposed view, a reversed one, every second
 * element of a longer array. */
static tk_array make_leaf(tk_context *ctx, int64_t rows, int64_t columns, int which,
                          tk_dtype dtype) {
    tk_shape shape = TK_SHAPE(rows, columns);
    switch (which) {
    case 1:
        return tk_broadcast_to(counted(ctx, TK_SHAPE(columns), dtype, which), shape);
    case 2:
        return tk_broadcast_to(counted(ctx, TK_SHAPE(rows, 1), dtype, which), shape);
    case 3:
        return tk_transpose(counted(ctx, TK_SHAPE(columns, rows), dtype, which), TK_ALL_AXES);
    case 4:
        return tk_flip(counted(ctx, shape, dtype, which), TK_AXES(0, 1));
    case 5:
        return tk_slice(counted(ctx, TK_SHAPE(rows, 2 * columns), dtype, which), TK_AXES(0, 1),
                        TK_AXES(rows, 2 * columns), TK_AXES(1, 2));
    default:
        return counted(ctx, shape, dtype, which);
    }
}

/* ---- programs ---- */

typedef struct step {
    int kind, operands[3];
    tk_dtype dtype;
} step;

typedef struct program {
    int64_t rows, columns;
    int leaves[LEAVES];
    tk_dtype dtypes[LEAVES];
    step steps[STEPS];
    int n_steps;
    bool held[NODES];
    bool drops_leaves;
} program;

static void draw_program(program *p, uint64_t seed) {
    static const int64_t shapes[][2] = {{96, 128}, {1, 20000}, {20000, 1}, {3, 70000}, {8192, 1},
                                        {130, 77}, {2, 4096},  {9000, 2},  {64, 128}};
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT32, TK_FLOAT64, TK_FLOAT16,  TK_BFLOAT16,
                                      TK_INT32,   TK_UINT8,   TK_BOOL,    TK_COMPLEX64};
    random_state r = {seed * 2654435761u + 1};
    int which = (int)below(&r, 9);
    *p = (program){.rows = shapes[which][0], .columns = shapes[which][1]};
    bool one_dtype = below(&r, 2);
    for (int i = 0; i < LEAVES; i++) {
        p->leaves[i] = below(&r, 3) ? 0 : (int)below(&r, 6);
        p->dtypes[i] = one_dtype ? TK_FLOAT32 : dtypes[below(&r, 9)];
    }
    p->n_steps = 2 + (int)below(&r, STEPS - 2);
    for (int i = 0; i < p->n_steps; i++) {
        step *s = &p->steps[i];
        s->kind = (int)below(&r, 12);
        s->dtype = dtypes[below(&r, one_dtype ? 2 : 9)];
        int nodes = LEAVES + i, recent = nodes < 6 ? nodes : 6;
        for (int k = 0; k < 3; k++)
            s->operands[k] = (int)(below(&r, 3) ? nodes - 1 - below(&r, recent) : below(&r, nodes));
        p->held[LEAVES + i] = below(&r, 6) == 0;
    }
    p->held[LEAVES + p->n_steps - 1] = true;
    p->drops_leaves = below(&r, 2);
}

static tk_array apply(tk_context *ctx, const step *s, const tk_array *nodes) {
    tk_array a = nodes[s->operands[0]], b = nodes[s->operands[1]], c = nodes[s->operands[2]];
    switch (s->kind) {
    case 0:
        return tk_add(a, b);
    case 1:
        return tk_multiply(a, b);
    case 2:
        return tk_maximum(a, b);
    case 3:
        return tk_where(tk_less(a, b), b, c);
    case 4:
        return tk_astype(a, s->dtype);
    case 5:
        return tk_add(tk_multiply(a, tk_scalar(ctx, 0.5)), tk_scalar(ctx, 1));
    case 6:
        return tk_abs(a);
    case 7:
        return tk_sigmoid(a);
    case 8:
        return tk_minimum(a, tk_scalar_int(ctx, 3));
    case 9:
        return tk_tanh(a);
    case 10:
        return tk_equal(a, b);
    default:
        return tk_add(a, a);
    }
}

/* Builds all nodes; `each` evaluates one after the other. Only held ones stay. */
static void run(tk_context *ctx, const program *p, bool each, tk_array *out_nodes) {
    tk_scope scope = tk_scope_open(ctx);
    tk_array nodes[NODES];
    for (int i = 0; i < LEAVES; i++) {
        nodes[i] = make_leaf(ctx, p->rows, p->columns, p->leaves[i], p->dtypes[i]);
        if (each || !p->drops_leaves || i % 2) assert_ok(tk_eval(nodes[i]));
    }
    for (int i = 0; i < p->n_steps; i++) {
        nodes[LEAVES + i] = apply(ctx, &p->steps[i], nodes);
        if (each) assert_ok(tk_eval(nodes[LEAVES + i]));
    }
    for (int i = 0; i < LEAVES + p->n_steps; i++) {
        bool held = p->held[i] || (i < LEAVES && !p->drops_leaves);
        out_nodes[i] = held ? tk_keep(nodes[i]) : TK_NO_ARRAY;
    }
    tk_scope_close(scope);
}

static size_t bytes_of(tk_array array) {
    return (size_t)tk_array_size(array) * tk_dtype_size(tk_array_dtype(array));
}

static void check_same(const program *p, uint64_t seed, int node, tk_array one, tk_array other) {
    size_t bytes = bytes_of(one);
    assert_int_equal(bytes, bytes_of(other));
    char *first = test_malloc(bytes), *second = test_malloc(bytes);
    assert_ok(tk_copy_out(one, first, bytes));
    assert_ok(tk_copy_out(other, second, bytes));
    size_t at = 0;
    while (at < bytes && first[at] == second[at]) at++;
    if (at < bytes)
        print_error("seed %llu, node %d of (%lld, %lld), kind %d, %s: byte %zu differs\n",
                    (unsigned long long)seed, node, (long long)p->rows, (long long)p->columns,
                    node < LEAVES ? -1 : p->steps[node - LEAVES].kind,
                    tk_dtype_name(tk_array_dtype(one)), at);
    assert_int_equal(at, bytes);
    test_free(first);
    test_free(second);
}

static void check_program(tk_context *ctx, uint64_t seed) {
    program p;
    draw_program(&p, seed);
    tk_array one_by_one[NODES], together[NODES], roots[NODES];
    size_t n_roots = 0;
    int count = LEAVES + p.n_steps;
    run(ctx, &p, true, one_by_one);
    run(ctx, &p, false, together);
    for (int i = 0; i < count; i++)
        if (together[i].node) roots[n_roots++] = together[i];
    assert_ok(tk_eval_all(roots, n_roots));
    for (int i = 0; i < count; i++) {
        if (together[i].node) check_same(&p, seed, i, one_by_one[i], together[i]);
        tk_release(one_by_one[i]);
        tk_release(together[i]);
    }
}

static void programs_give_the_same_bits(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) check_program(ctx, seed);
    tk_context_release(ctx);
}

static void programs_give_the_same_bits_on_three_threads(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    assert_ok(tk_threads_set(3));
    for (uint64_t seed = 1000; seed < 1000 + PROGRAMS; seed++) check_program(ctx, seed);
    assert_ok(tk_threads_set(0));
    tk_context_release(ctx);
}

/* A step of a group that could not be joined has written over its operand when a later one finds no
 * memory: the operand is gone, not wrong, and the whole can be evaluated again. */
static void a_failed_group_leaves_no_wrong_values(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_device *device = tk_context_device(ctx);
    tk_scope scope = tk_scope_open(ctx);
    int64_t rows = 3, columns = 100000; /* too long a row to be computed in blocks */
    tk_array column = tk_reshape(tk_arange(ctx, 0, (double)rows, 1, TK_FLOAT32), TK_SHAPE(rows, 1));
    tk_array wide = tk_broadcast_to(column, TK_SHAPE(rows, columns));
    assert_ok(tk_eval(wide));
    tk_array results[2];
    tk_scope inner = tk_scope_open(ctx);
    tk_array taken = tk_cumsum(tk_ones(ctx, TK_SHAPE(rows, columns), TK_FLOAT32), 1, false, true);
    tk_array one = tk_add(taken, wide);
    tk_array two = tk_multiply(tk_astype(one, TK_FLOAT64), tk_astype(wide, TK_FLOAT64));
    results[0] = tk_keep(one);
    results[1] = tk_keep(two);
    tk_scope_close(inner);
    size_t room = (size_t)(rows * columns) * 4;
    tk_device_clear_cache(device);
    tk_device_set_memory_limit(device, tk_device_memory(device).active + room + room / 2);
    assert_int_equal(tk_eval_all(results, 2), TK_OUT_OF_MEMORY);
    tk_device_set_memory_limit(device, SIZE_MAX);
    assert_ok(tk_eval_all(results, 2));
    float first[2];
    tk_array corner = tk_slice(results[0], TK_AXES(2, 9), TK_AXES(3, 11), TK_ALL_AXES);
    assert_ok(tk_copy_out(corner, first, sizeof first));
    assert_true(first[0] == 12 && first[1] == 13);
    tk_release(results[0]);
    tk_release(results[1]);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_give_the_same_bits),
        cmocka_unit_test(programs_give_the_same_bits_on_three_threads),
        cmocka_unit_test(a_failed_group_leaves_no_wrong_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
