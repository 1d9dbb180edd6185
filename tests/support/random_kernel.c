#include "support/random_kernel.h"

#include <stdio.h>

typedef tk_kvalue *val;

enum { MOST_VALUES = 400, MOST_CARRIED = 3 };

/* Values by type; `pool` forgets what a region defined when it ends. */
typedef struct pool {
    val items[MOST_VALUES];
    int count;
} pool;

enum { I1, I32, I64, F32, F64, F16, BF16, V2, KINDS };
static const tk_kscalar scalars[] = {TK_K_I1,  TK_K_I32, TK_K_I64,  TK_K_F32,
                                     TK_K_F64, TK_K_F16, TK_K_BF16, TK_K_F32};

typedef struct maker {
    tk_kernel_builder *b;
    uint64_t state;
    pool pools[KINDS];
    val x, i, f, o, n, thread, global; /* parameters, and the thread in block and grid */
    val registers;
    int slots[2];   /* used of f and of o */
    int depth;      /* of regions */
    int statements; /* left */
    bool divergent; /* inside a branch or loop that not all threads take alike */
} maker;

static uint64_t draw(maker *m) {
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static int below(maker *m, int limit) { return (int)(draw(m) % (uint64_t)limit); }

static tk_ktype type_of(int kind) {
    return kind == V2 ? tk_ktype_vector(TK_K_F32, 2) : tk_ktype_scalar(scalars[kind]);
}

static void keep(maker *m, int kind, val value) {
    pool *p = &m->pools[kind];
    if (p->count < MOST_VALUES) p->items[p->count++] = value;
}

static val constant(maker *m, int kind) {
    static const int64_t integers[] = {0,  1,  -1, 2,   3,     7,         31,       32,
                                       63, 64, -5, 255, 65536, INT32_MAX, INT32_MIN};
    static const double floats[] = {0, 1, -1, 0.5, 2, -0.0, 3.25, 1e-3, 100, 1e30, -1e-30, 0.1};
    if (kind == I1) return tk_kernel_int(m->b, TK_K_I1, below(m, 2));
    if (kind <= I64) return tk_kernel_int(m->b, scalars[kind], integers[below(m, 15)]);
    return tk_kernel_float(m->b, scalars[kind], floats[below(m, 12)]);
}

static val op(maker *m, tk_kopcode code, int count, val *operands, tk_ktype type) {
    return tk_kernel_op(m->b, code, (size_t)count, operands, 0, NULL, type);
}
static val op_with(maker *m, tk_kopcode code, int count, val *operands, tk_kattr attr,
                   tk_ktype type) {
    return tk_kernel_op(m->b, code, (size_t)count, operands, 1, &attr, type);
}
static const tk_ktype follows = {0};

static val pick(maker *m, int kind) {
    pool *p = &m->pools[kind];
    if (kind == V2 && (!p->count || below(m, 4) == 0)) {
        val parts[] = {pick(m, F32), pick(m, F32)};
        return op(m, TK_KOP_vector, 2, parts, type_of(V2));
    }
    if (kind != V2 && (!p->count || below(m, 5) == 0)) return constant(m, kind);
    int recent = p->count < 12 ? p->count : 12;
    return p->items[p->count - 1 - below(m, recent)];
}

static val of_integer(maker *m, int64_t value) { return tk_kernel_int(m->b, TK_K_I32, value); }

/* ---- values ---- */

static const tk_kopcode integer_ops[] = {TK_KOP_add,  TK_KOP_sub,  TK_KOP_mul,    TK_KOP_and,
                                         TK_KOP_or,   TK_KOP_xor,  TK_KOP_smin,   TK_KOP_smax,
                                         TK_KOP_umin, TK_KOP_umax, TK_KOP_smulhi, TK_KOP_umulhi};
static const tk_kopcode float_ops[] = {TK_KOP_add, TK_KOP_sub, TK_KOP_mul, TK_KOP_max_num,
                                       TK_KOP_min_num};
static const tk_kopcode exact_ops[] = {TK_KOP_sqrt, TK_KOP_rcp,   TK_KOP_floor,
                                       TK_KOP_ceil, TK_KOP_trunc, TK_KOP_rint};
static const tk_kopcode expanded_ops[] = {TK_KOP_exp,  TK_KOP_exp2, TK_KOP_log, TK_KOP_log2,
                                          TK_KOP_tanh, TK_KOP_erf,  TK_KOP_sin, TK_KOP_cos};

static void compute_integer(maker *m, int kind) {
    val operands[] = {pick(m, kind), pick(m, kind)}, result;
    int what = below(m, 16);
    if (what < 10) {
        result = op(m, integer_ops[below(m, 12)], 2, operands, follows);
    } else if (what == 10) {
        operands[1] = pick(m, I32);
        result = op(m, (tk_kopcode)(TK_KOP_shl + below(m, 3)), 2, operands, follows);
    } else if (what == 11) {
        val odd[] = {operands[1], tk_kernel_int(m->b, scalars[kind], 1)};
        operands[1] = op(m, TK_KOP_or, 2, odd, follows);
        result = op(m, (tk_kopcode)(TK_KOP_sdiv + below(m, 4)), 2, operands, follows);
    } else if (what == 12) {
        static const int64_t divisors[] = {1, 2, 3, 8, 10, -3};
        operands[1] = tk_kernel_int(m->b, scalars[kind], divisors[below(m, 6)]);
        result = op(m, (tk_kopcode)(TK_KOP_sdiv + below(m, 4)), 2, operands, follows);
    } else if (what == 13) {
        result = op(m, below(m, 2) ? TK_KOP_neg : TK_KOP_not, 1, operands, follows);
    } else {
        val from = pick(m, kind == I32 ? I64 : I32);
        result =
            op(m, kind == I32 ? TK_KOP_truncate : TK_KOP_extend_signed, 1, &from, type_of(kind));
    }
    keep(m, kind, result);
}

static void compute_float(maker *m, int kind) {
    val operands[] = {pick(m, kind), pick(m, kind), pick(m, kind)}, result;
    bool wide = kind == F32 || kind == F64;
    int what = below(m, 16);
    if (what < 9) {
        result = op(m, float_ops[below(m, 5)], 2, operands, follows);
    } else if (what < 11) {
        bool unit = kind == F32 && what == 10;
        result = op(m, unit ? TK_KOP_fma_unit : TK_KOP_fma, 3, operands, follows);
    } else if (what == 11 && wide) {
        result = op(m, TK_KOP_div, 2, operands, follows);
    } else if (what == 12 && wide) {
        result = op(m, exact_ops[below(m, 6)], 1, operands, follows);
    } else if (what == 13 && (kind == F32 || kind == V2)) {
        result = op(m, expanded_ops[below(m, 8)], 1, operands, follows);
    } else if (what == 14 && kind != V2) {
        int other = F32 + below(m, 4);
        if (other == kind) other = kind == F32 ? F64 : F32;
        val from = pick(m, other);
        result = op(m, TK_KOP_convert, 1, &from, type_of(kind));
    } else {
        result = op(m, below(m, 2) ? TK_KOP_neg : TK_KOP_abs, 1, operands, follows);
    }
    keep(m, kind, result);
}

static void compute_truth(maker *m) {
    static const char *const icmp[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "uge"};
    static const char *const fcmp[] = {"eq", "ne", "lt", "ge", "equ", "geu", "num", "nan"};
    int kind = 1 + below(m, 6);
    val operands[] = {pick(m, kind), pick(m, kind)};
    bool is_float = kind >= F32;
    tk_kattr attr = {.id = is_float ? TK_KA_fcmp : TK_KA_icmp,
                     .word = (is_float ? fcmp : icmp)[below(m, 8)]};
    keep(m, I1, op_with(m, is_float ? TK_KOP_fcmp : TK_KOP_icmp, 2, operands, attr, follows));
}

static void compute_mixed(maker *m) {
    int kind = below(m, KINDS);
    val operands[] = {pick(m, I1), pick(m, kind), pick(m, kind)}, from;
    switch (below(m, 5)) {
    case 0:
        from = pick(m, I32);
        keep(m, F32, op(m, TK_KOP_float_from_signed, 1, &from, type_of(F32)));
        break;
    case 1:
        from = pick(m, F32);
        keep(m, I32, op(m, TK_KOP_signed_from_float, 1, &from, type_of(I32)));
        break;
    case 2:
        from = pick(m, V2);
        keep(m, F32,
             op_with(m, TK_KOP_extract, 1, &from,
                     (tk_kattr){.id = TK_KA_index, .value = below(m, 2)}, type_of(F32)));
        break;
    case 3:
        from = pick(m, F32);
        keep(m, I32, op(m, TK_KOP_bitcast, 1, &from, type_of(I32)));
        break;
    default:
        keep(m, kind, op(m, TK_KOP_select, 3, operands, follows));
    }
}

static void compute(maker *m) {
    int what = below(m, 12);
    if (what < 4)
        compute_integer(m, I32 + below(m, 2));
    else if (what < 8)
        compute_float(m, F32 + below(m, 5));
    else if (what < 10)
        compute_truth(m);
    else
        compute_mixed(m);
}

/* ---- memory ---- */

static val at(maker *m, val pointer, val index) {
    val operands[] = {pointer, index};
    return op(m, TK_KOP_offset, 2, operands, follows);
}

static val load(maker *m, val pointer, val condition, tk_ktype type) {
    val operands[] = {pointer, condition, NULL, NULL};
    return op(m, TK_KOP_load, 4, operands, type);
}

/* An index below the size of the inputs, from any value. */
static val bounded(maker *m) {
    val operands[] = {pick(m, I32), of_integer(m, 4 * RANDOM_ALL - 1)};
    return op(m, TK_KOP_and, 2, operands, follows);
}

static void load_any(maker *m) {
    val condition = below(m, 3) ? NULL : pick(m, I1);
    if (below(m, 2))
        keep(m, F32, load(m, at(m, m->x, bounded(m)), condition, type_of(F32)));
    else
        keep(m, I32, load(m, at(m, m->i, bounded(m)), condition, type_of(I32)));
}

/* Four neighbours, which vectors may take together. */
static void load_neighbours(maker *m) {
    val four[] = {m->global, of_integer(m, 4)}, first = op(m, TK_KOP_mul, 2, four, follows);
    int count = 2 + below(m, 3);
    for (int k = 0; k < count; k++) {
        val sum[] = {first, of_integer(m, k)};
        keep(m, F32, load(m, at(m, m->x, op(m, TK_KOP_add, 2, sum, follows)), NULL, type_of(F32)));
    }
}

static void store(maker *m, val pointer, val value, val condition) {
    val operands[] = {pointer, value, condition, NULL};
    op(m, TK_KOP_store, 4, operands, follows);
}

/* Into a slot of the thread that nothing else uses; neighbours of a vector follow each other. */
static void store_value(maker *m, bool conditional) {
    int which = below(m, 2);
    if (m->slots[which] >= RANDOM_SLOTS) return;
    val own[] = {m->global, of_integer(m, RANDOM_SLOTS)}, base = op(m, TK_KOP_mul, 2, own, follows);
    val sum[] = {base, of_integer(m, m->slots[which]++)};
    val pointer = at(m, which ? m->o : m->f, op(m, TK_KOP_add, 2, sum, follows));
    val value = pick(m, which ? I64 : F32);
    store(m, pointer, value, conditional ? pick(m, I1) : NULL);
}

static void use_registers(maker *m) {
    val operands[] = {m->registers, pick(m, F32)};
    tk_kattr index = {.id = TK_KA_index, .value = below(m, 8)};
    op_with(m, TK_KOP_set, 2, operands, index, follows);
    index.value = below(m, 8);
    keep(m, F32, op_with(m, TK_KOP_get, 1, operands, index, type_of(F32)));
}

/* A shared buffer of its own: every thread writes its element and reads another's. */
static void exchange(maker *m) {
    tk_kattr align = {.id = TK_KA_align, .value = 16};
    val buffer =
        op_with(m, TK_KOP_shared, 0, NULL, align, tk_ktype_of_shared(m->b, TK_K_F32, "64:1"));
    val base = op(m, TK_KOP_address, 1, &buffer, tk_ktype_pointer(TK_K_F32, TK_KS_SHARED));
    store(m, at(m, base, m->thread), pick(m, F32), NULL);
    op(m, TK_KOP_barrier, 0, NULL, follows);
    val other[] = {pick(m, I32), of_integer(m, RANDOM_THREADS - 1)};
    keep(m, F32, load(m, at(m, base, op(m, TK_KOP_and, 2, other, follows)), NULL, type_of(F32)));
}

static void shuffle(maker *m) {
    int kind = below(m, 2) ? F32 : I32;
    val operands[] = {pick(m, kind), of_integer(m, below(m, 32)), NULL};
    keep(m, kind,
         op_with(m, TK_KOP_shuffle, 3, operands, (tk_kattr){.id = TK_KA_mode, .word = "butterfly"},
                 follows));
}

/* ---- regions ---- */

static void statements(maker *m, int count);

typedef struct saved {
    int counts[KINDS];
    bool divergent;
} saved;

static saved enter(maker *m, bool divergent) {
    saved s = {.divergent = m->divergent};
    for (int k = 0; k < KINDS; k++) s.counts[k] = m->pools[k].count;
    m->divergent |= divergent;
    m->depth++;
    return s;
}

static void forget(maker *m, const saved *s) {
    for (int k = 0; k < KINDS; k++) m->pools[k].count = s->counts[k];
}

static void leave(maker *m, const saved *s) {
    forget(m, s);
    m->divergent = s->divergent;
    m->depth--;
}

static void pick_all(maker *m, int count, const int *kinds, val *out) {
    for (int i = 0; i < count; i++) out[i] = pick(m, kinds[i]);
}
static void keep_all(maker *m, int count, const int *kinds, val *values) {
    for (int i = 0; i < count; i++) keep(m, kinds[i], values[i]);
}

static void branch(maker *m) {
    int kinds[MOST_CARRIED], count = below(m, MOST_CARRIED + 1);
    val values[MOST_CARRIED], results[MOST_CARRIED];
    for (int i = 0; i < count; i++) kinds[i] = below(m, KINDS);
    tk_kernel_if(m->b, pick(m, I1));
    saved s = enter(m, true);
    statements(m, 1 + below(m, 5));
    pick_all(m, count, kinds, values);
    if (count || below(m, 2)) {
        tk_kernel_else(m->b, (size_t)count, values);
        forget(m, &s);
        statements(m, below(m, 4));
        pick_all(m, count, kinds, values);
    }
    tk_kernel_end(m->b, (size_t)count, values, results);
    leave(m, &s);
    keep_all(m, count, kinds, results);
}

/* Bounds that give at most a few trips: constants, values, and ends of the range of integers. */
static bool choose_bounds(maker *m, int kind, val *first, val *end, val *step) {
    static const int64_t steps[] = {1, 1, 2, 3, 5};
    tk_kscalar type = scalars[kind];
    int64_t most = kind == I32 ? INT32_MAX : INT64_MAX;
    *step = tk_kernel_int(m->b, type, steps[below(m, 5)]);
    if (below(m, 6) == 0) {
        *first = tk_kernel_int(m->b, type, most - below(m, 9));
        *end = tk_kernel_int(m->b, type, most);
        return false;
    }
    int64_t begin = below(m, 7) - 3;
    *first = tk_kernel_int(m->b, type, begin);
    *end = tk_kernel_int(m->b, type, begin + below(m, 9) - 1);
    if (below(m, 2)) return false;
    val operands[] = {pick(m, kind), tk_kernel_int(m->b, type, 7)};
    *end = op(m, TK_KOP_and, 2, operands, follows);
    return true;
}

static void loop(maker *m) {
    static const int64_t unrolls[] = {0, 0, 1, -1, -1, 2, 3, 4};
    int kinds[MOST_CARRIED], count = below(m, MOST_CARRIED + 1), kind = I32 + below(m, 2);
    val values[MOST_CARRIED], inner[MOST_CARRIED], first, end, step;
    for (int i = 0; i < count; i++) kinds[i] = below(m, KINDS);
    bool divergent = choose_bounds(m, kind, &first, &end, &step);
    pick_all(m, count, kinds, values);
    val index =
        tk_kernel_for(m->b, first, end, step, unrolls[below(m, 8)], (size_t)count, values, inner);
    saved s = enter(m, divergent);
    keep(m, kind, index);
    keep_all(m, count, kinds, inner);
    int slots[] = {m->slots[0], m->slots[1]};
    m->slots[0] = m->slots[1] = RANDOM_SLOTS;
    statements(m, 1 + below(m, 5));
    m->slots[0] = slots[0], m->slots[1] = slots[1];
    pick_all(m, count, kinds, values);
    tk_kernel_end(m->b, (size_t)count, values, inner);
    leave(m, &s);
    keep_all(m, count, kinds, inner);
}

/* Counts down from a value of 0 to 7. */
static void count_down(maker *m) {
    val start[] = {pick(m, I32), of_integer(m, 7)}, carried[2], inner[2];
    carried[0] = op(m, TK_KOP_and, 2, start, follows);
    carried[1] = pick(m, F32);
    tk_kernel_while(m->b, 2, carried, inner);
    val compared[] = {inner[0], of_integer(m, 0)};
    tk_kattr greater = {.id = TK_KA_icmp, .word = "sgt"};
    tk_kernel_while_do(m->b, op_with(m, TK_KOP_icmp, 2, compared, greater, follows), 2, inner,
                       inner);
    saved s = enter(m, true);
    keep(m, F32, inner[1]);
    int slots[] = {m->slots[0], m->slots[1]};
    m->slots[0] = m->slots[1] = RANDOM_SLOTS;
    statements(m, 1 + below(m, 3));
    m->slots[0] = slots[0], m->slots[1] = slots[1];
    val less[] = {inner[0], of_integer(m, 1)};
    val next[] = {op(m, TK_KOP_sub, 2, less, follows), pick(m, F32)};
    tk_kernel_end(m->b, 2, next, inner);
    leave(m, &s);
    keep(m, F32, inner[1]);
}

static void statement(maker *m) {
    int what = below(m, 40);
    if (what < 22)
        compute(m);
    else if (what < 25)
        load_any(m);
    else if (what < 27)
        load_neighbours(m);
    else if (what < 30)
        store_value(m, below(m, 2));
    else if (what < 32)
        use_registers(m);
    else if (what < 34 && !m->divergent && m->depth == 0)
        (below(m, 2) ? exchange : shuffle)(m);
    else if (m->depth < 3 && what < 36)
        branch(m);
    else if (m->depth < 2 && what < 38)
        loop(m);
    else if (m->depth < 2 && what == 38)
        count_down(m);
    else
        compute(m);
}

static void statements(maker *m, int count) {
    while (count-- > 0 && m->statements-- > 0) statement(m);
}

/* ---- the kernel ---- */

static val parameter(maker *m, const char *name, tk_ktype type, tk_kaccess access) {
    tk_kparam param = {.name = name, .type = type, .access = access, .align = 0, .size = -1};
    if (type.kind == TK_KT_POINTER) param.align = 16;
    return tk_kernel_add_param(m->b, &param);
}

static void begin(maker *m) {
    tk_kernel_builder *b = m->b;
    tk_kattr x_axis = {.id = TK_KA_axis, .word = "x"};
    m->x = parameter(m, "x", tk_ktype_pointer(TK_K_F32, TK_KS_GLOBAL), TK_KACCESS_READ);
    m->i = parameter(m, "i", tk_ktype_pointer(TK_K_I32, TK_KS_GLOBAL), TK_KACCESS_READ);
    m->f = parameter(m, "f", tk_ktype_pointer(TK_K_F32, TK_KS_GLOBAL), TK_KACCESS_WRITE);
    m->o = parameter(m, "o", tk_ktype_pointer(TK_K_I64, TK_KS_GLOBAL), TK_KACCESS_WRITE);
    m->n = parameter(m, "n", tk_ktype_scalar(TK_K_I32), TK_KACCESS_READ);
    int32_t one = tk_kexpr_const(b, 1);
    tk_kernel_grid(b, tk_kexpr_const(b, RANDOM_BLOCKS), one, one);
    tk_kernel_block(b, RANDOM_THREADS, 1, 1);
    m->thread = op_with(m, TK_KOP_thread_index, 0, NULL, x_axis, follows);
    val block[] = {op_with(m, TK_KOP_block_index, 0, NULL, x_axis, follows),
                   of_integer(m, RANDOM_THREADS)};
    val sum[] = {op(m, TK_KOP_mul, 2, block, follows), m->thread};
    m->global = op(m, TK_KOP_add, 2, sum, follows);
    m->registers =
        op(m, TK_KOP_registers, 0, NULL, tk_ktype_of_registers(b, TK_K_F32, "8:1", NULL));
    for (int k = 0; k < 8; k++) {
        val operands[] = {m->registers, tk_kernel_float(b, TK_K_F32, k)};
        op_with(m, TK_KOP_set, 2, operands, (tk_kattr){.id = TK_KA_index, .value = k}, follows);
    }
    keep(m, I32, m->thread);
    keep(m, I32, m->global);
    keep(m, I32, m->n);
    load_neighbours(m);
}

tk_kernel *random_kernel(uint64_t seed) {
    maker m = {.state = seed * 0x2545f4914f6cdd1du + 1,
               .b = tk_kernel_builder_create("drawn", TK_KFORM_THREAD)};
    tk_kernel *kernel = NULL;
    m.statements = 10 + below(&m, 50);
    begin(&m);
    statements(&m, m.statements);
    while (m.slots[0] + m.slots[1] < RANDOM_SLOTS) store_value(&m, false);
    tk_kernel_builder_finish(m.b, &kernel);
    tk_kernel_builder_release(m.b);
    return kernel;
}
