/* Ranges and divisors by one walk from the top: each operation's facts follow from its operands'.
 * What a loop carries is unknown but for its index; a fixed point was rejected, since index
 * arithmetic rarely goes around.
 *
 * Bounds that leave 64 bits, or the type, become those of the type: arithmetic that may wrap says
 * nothing about the result. */
#include "base/error.h"
#include "kernel/analyse.h"

typedef tk_kfact_of fact;

typedef struct ranger {
    const tk_kernel *kernel;
    fact *facts;
} ranger;

/* ---- facts ---- */

static int64_t lowest(tk_ktype type) {
    switch (type.scalar) {
    case TK_K_I1:
        return 0;
    case TK_K_I8:
        return INT8_MIN;
    case TK_K_I16:
        return INT16_MIN;
    case TK_K_I32:
        return INT32_MIN;
    default:
        return INT64_MIN;
    }
}
static int64_t highest(tk_ktype type) { return type.scalar == TK_K_I1 ? 1 : -1 - lowest(type); }

static bool is_integer(tk_ktype type) {
    return type.kind == TK_KT_NUMBER && type.scalar <= TK_K_I64 && type.lanes == 1;
}

static fact unknown(tk_ktype type) { return (fact){lowest(type), highest(type), 1}; }

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static fact exactly(int64_t value) { return (fact){value, value, magnitude(value)}; }

static fact get(const ranger *r, const tk_kvalue *value) {
    int64_t constant;
    if (!value) return (fact){INT64_MIN, INT64_MAX, 1};
    if (tk_kvalue_integer(value, &constant)) return exactly(constant);
    return r->facts[value->id];
}

/* A result that may have left the type says nothing; its power of two divides what wraps, too. */
static fact within(tk_ktype type, bool fits, fact found) {
    uint64_t power = found.divisor & (0 - found.divisor);
    if (fits && found.low >= lowest(type) && found.high <= highest(type)) return found;
    fact none = unknown(type);
    none.divisor = found.divisor ? power : 1;
    return none;
}

static fact either(fact a, fact b) {
    return (fact){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high,
                  gcd(a.divisor, b.divisor)};
}

/* ---- arithmetic ---- */

static fact sum_of(tk_ktype type, fact a, fact b) {
    fact s = {.divisor = gcd(a.divisor, b.divisor)};
    bool fits = !__builtin_add_overflow(a.low, b.low, &s.low) &&
                !__builtin_add_overflow(a.high, b.high, &s.high);
    return within(type, fits, s);
}

static fact difference_of(tk_ktype type, fact a, fact b) {
    fact d = {.divisor = gcd(a.divisor, b.divisor)};
    bool fits = !__builtin_sub_overflow(a.low, b.high, &d.low) &&
                !__builtin_sub_overflow(a.high, b.low, &d.high);
    return within(type, fits, d);
}

static fact product_of(tk_ktype type, fact a, fact b) {
    int64_t ends[4];
    fact p = {INT64_MAX, INT64_MIN, 1};
    if (__builtin_mul_overflow(a.divisor, b.divisor, &p.divisor)) p.divisor = 1;
    bool fits = !__builtin_mul_overflow(a.low, b.low, &ends[0]) &&
                !__builtin_mul_overflow(a.low, b.high, &ends[1]) &&
                !__builtin_mul_overflow(a.high, b.low, &ends[2]) &&
                !__builtin_mul_overflow(a.high, b.high, &ends[3]);
    for (int i = 0; i < 4 && fits; i++) {
        if (ends[i] < p.low) p.low = ends[i];
        if (ends[i] > p.high) p.high = ends[i];
    }
    return within(type, fits, p);
}

/* By a constant from 1, of what is not negative. */
static fact quotient_of(tk_ktype type, fact a, fact b, bool remainder) {
    if (b.low != b.high || b.low < 1 || a.low < 0) return unknown(type);
    if (remainder) {
        int64_t most = a.high < b.low - 1 ? a.high : b.low - 1;
        return (fact){0, most, gcd(a.divisor, (uint64_t)b.low)};
    }
    bool whole = a.divisor % (uint64_t)b.low == 0;
    return (fact){a.low / b.low, a.high / b.low, whole ? a.divisor / (uint64_t)b.low : 1};
}

static fact shift_of(tk_ktype type, const tk_kop *op, fact a, fact b) {
    if (b.low != b.high || b.low < 0 || b.low > 62) return unknown(type);
    fact power = exactly((int64_t)1 << b.low);
    if (op->code == TK_KOP_shl) return product_of(type, a, power);
    if (a.low < 0) return unknown(type);
    return quotient_of(type, a, power, false);
}

static fact masked(tk_ktype type, fact a, fact b) {
    fact mask = b.low == b.high ? b : a, other = b.low == b.high ? a : b;
    if (mask.low != mask.high)
        return a.low >= 0 || b.low >= 0 ? (fact){0, highest(type), 1} : unknown(type);
    uint64_t power = mask.divisor & (0 - mask.divisor), kept = other.divisor & (0 - other.divisor);
    fact m = {0, mask.low, power > kept ? power : kept};
    if (!m.divisor) m.divisor = 1;
    if (mask.low < 0)
        m.low = other.low < 0 ? lowest(type) : 0,
        m.high = other.low < 0 ? highest(type) : other.high;
    if (other.low >= 0 && other.high < m.high) m.high = other.high;
    return m;
}

static fact of_two(const tk_kop *op, tk_ktype type, fact a, fact b) {
    switch (op->code) {
    case TK_KOP_add:
        return sum_of(type, a, b);
    case TK_KOP_sub:
        return difference_of(type, a, b);
    case TK_KOP_mul:
        return product_of(type, a, b);
    case TK_KOP_shl:
    case TK_KOP_ushr:
    case TK_KOP_sshr:
        return shift_of(type, op, a, b);
    case TK_KOP_and:
        return masked(type, a, b);
    case TK_KOP_sdiv:
    case TK_KOP_udiv:
        return quotient_of(type, a, b, false);
    case TK_KOP_srem:
    case TK_KOP_urem:
        return quotient_of(type, a, b, true);
    case TK_KOP_smin:
        return (fact){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high,
                      gcd(a.divisor, b.divisor)};
    case TK_KOP_smax:
        return (fact){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high,
                      gcd(a.divisor, b.divisor)};
    default:
        return unknown(type);
    }
}

/* ---- operations ---- */

static fact assumed(const tk_kop *op, fact a) {
    int64_t low = tk_kop_attr(op, TK_KA_low), high = tk_kop_attr(op, TK_KA_high);
    uint64_t divisor = (uint64_t)tk_kop_attr(op, TK_KA_divisor), both;
    if (low > a.low) a.low = low;
    if (high < a.high) a.high = high;
    if (a.divisor && !__builtin_mul_overflow(a.divisor / gcd(a.divisor, divisor), divisor, &both))
        a.divisor = both;
    return a;
}

static fact of_index(const ranger *r, const tk_kop *op) {
    int64_t axis = tk_kop_attr(op, TK_KA_axis), block = r->kernel->contract.block[axis];
    if (op->code == TK_KOP_thread_index) return (fact){0, block - 1, block == 1 ? 0 : 1};
    if (op->code == TK_KOP_block_size) return exactly(block);
    int32_t grid = r->kernel->contract.grid[axis];
    int64_t blocks = INT32_MAX;
    if (grid >= 0 && r->kernel->contract.exprs.items[grid].kind == TK_KX_CONST)
        blocks = r->kernel->contract.exprs.items[grid].value;
    if (op->code == TK_KOP_grid_size) return (fact){0, blocks, 1};
    return (fact){0, blocks > 0 ? blocks - 1 : 0, 1};
}

static fact of_pointer(const ranger *r, const tk_kop *op) {
    fact f = {0, INT64_MAX, 1}, base = op->n_operands ? get(r, op->operands[0]) : f;
    if (op->code == TK_KOP_offset) {
        uint64_t step = get(r, op->operands[1]).divisor,
                 bytes = (uint64_t)tk_kscalar_bytes((tk_kscalar)op->results[0]->type.scalar);
        if (step && __builtin_mul_overflow(step, bytes, &step)) step = 1;
        f.divisor = gcd(base.divisor, step);
    } else if (op->code == TK_KOP_pointer_cast || op->code == TK_KOP_assume_uniform) {
        f.divisor = base.divisor;
    } else if (op->code == TK_KOP_assume) {
        f = assumed(op, base);
    } else if (op->code == TK_KOP_address) {
        f.divisor = (uint64_t)tk_kop_attr(op->operands[0]->op, TK_KA_align);
    } else if (op->code == TK_KOP_dynamic_shared) {
        f.divisor = (uint64_t)tk_kop_attr(op, TK_KA_align);
    } else if (op->code == TK_KOP_select) {
        f.divisor = gcd(get(r, op->operands[1]).divisor, get(r, op->operands[2]).divisor);
    }
    return f;
}

static fact of_integer(const ranger *r, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    fact a = get(r, op->n_operands ? op->operands[0] : NULL);
    switch (op->code) {
    case TK_KOP_assume:
        return assumed(op, a);
    case TK_KOP_assume_uniform:
    case TK_KOP_extend_signed:
        return a;
    case TK_KOP_extend_unsigned:
        return a.low >= 0 ? a : unknown(type);
    case TK_KOP_truncate:
        return within(type, true, a);
    case TK_KOP_select:
        return either(get(r, op->operands[1]), get(r, op->operands[2]));
    case TK_KOP_thread_index:
    case TK_KOP_block_index:
    case TK_KOP_block_size:
    case TK_KOP_grid_size:
        return of_index(r, op);
    default:
        if (op->n_operands != 2 || !is_integer(op->operands[0]->type)) return unknown(type);
        return of_two(op, type, a, get(r, op->operands[1]));
    }
}

static void visit_block(ranger *r, const tk_kblock *block);

static void set_args(ranger *r, const tk_kop *op) {
    for (int i = 0; i < op->n_regions; i++)
        for (uint32_t a = 0; a < op->regions[i]->n_args; a++)
            r->facts[op->regions[i]->args[a]->id] = unknown(op->regions[i]->args[a]->type);
    if (op->code != TK_KOP_for) return;
    fact first = get(r, op->operands[0]), end = get(r, op->operands[1]),
         step = get(r, op->operands[2]);
    fact index = {first.low, end.high > INT64_MIN ? end.high - 1 : INT64_MIN,
                  gcd(first.divisor, step.divisor)};
    if (index.high < index.low) index.high = index.low;
    r->facts[op->regions[0]->args[0]->id] = index;
}

static void visit(ranger *r, const tk_kop *op) {
    set_args(r, op);
    for (int i = 0; i < op->n_regions; i++) visit_block(r, op->regions[i]);
    for (int i = 0; i < op->n_results; i++) {
        tk_ktype type = op->results[i]->type;
        fact f = unknown(type);
        if (op->code == TK_KOP_if)
            f = either(get(r, op->regions[0]->last->operands[i]),
                       get(r, op->regions[1]->last->operands[i]));
        else if (type.kind == TK_KT_POINTER)
            f = of_pointer(r, op);
        else if (is_integer(type) && !op->n_regions)
            f = of_integer(r, op);
        r->facts[op->results[i]->id] = f;
    }
}

static void visit_block(ranger *r, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) visit(r, op);
}

/* ---- the contract ---- */

static bool constant_of(const tk_kcontract *c, int32_t expr, int64_t *out) {
    *out = c->exprs.items[expr].value;
    return c->exprs.items[expr].kind == TK_KX_CONST;
}

static void narrow(fact *f, unsigned relation, int64_t value) {
    if (relation == TK_KR_EQ || relation == TK_KR_LE) f->high = value < f->high ? value : f->high;
    if (relation == TK_KR_LT && value > INT64_MIN)
        f->high = value - 1 < f->high ? value - 1 : f->high;
    if (relation == TK_KR_EQ || relation == TK_KR_GE) f->low = value > f->low ? value : f->low;
    if (relation == TK_KR_GT && value < INT64_MAX) f->low = value + 1 > f->low ? value + 1 : f->low;
}

/* `parameter relation constant`, and `parameter % constant == 0`. */
static void apply(ranger *r, const tk_kcondition *condition) {
    const tk_kcontract *c = &r->kernel->contract;
    const tk_kexpr *left = &c->exprs.items[condition->left];
    int64_t value, divisor;
    if (!constant_of(c, condition->right, &value)) return;
    if (left->kind == TK_KX_PARAM)
        narrow(&r->facts[c->params.items[left->value].value->id], condition->relation, value);
    if (left->kind != TK_KX_MOD || value || condition->relation != TK_KR_EQ) return;
    const tk_kexpr *of = &c->exprs.items[left->left];
    if (of->kind == TK_KX_PARAM && constant_of(c, left->right, &divisor) && divisor > 0)
        r->facts[c->params.items[of->value].value->id].divisor = (uint64_t)divisor;
}

static void begin(ranger *r) {
    const tk_kcontract *c = &r->kernel->contract;
    for (size_t i = 0; i < c->params.count; i++) {
        const tk_kparameter *p = &c->params.items[i];
        fact f = unknown(p->value->type);
        if (p->value->type.kind == TK_KT_POINTER) f = (fact){0, INT64_MAX, (uint64_t)p->align};
        r->facts[p->value->id] = f;
    }
    for (size_t i = 0; i < c->conditions.count; i++) apply(r, &c->conditions.items[i]);
}

tk_status tk_kanalyse_ranges(const tk_kernel *kernel, tk_kfact_of **out) {
    ranger r = {kernel, tk_calloc((size_t)kernel->n_values + 1, sizeof *r.facts)};
    if (!r.facts) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an analysis");
    begin(&r);
    visit_block(&r, &kernel->body);
    *out = r.facts;
    return TK_OK;
}

bool tk_kfor_may_wrap(const tk_kop *op, const tk_kfact_of *facts) {
    const ranger r = {NULL, (fact *)(uintptr_t)facts};
    fact end = get(&r, op->operands[1]), step = get(&r, op->operands[2]);
    int64_t past;
    return step.high < 1 || end.high == INT64_MIN ||
           __builtin_add_overflow(end.high - 1, step.high, &past) ||
           past > highest(op->operands[0]->type);
}
