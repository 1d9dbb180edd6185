/* Vectorisation: scalar loads (and stores) of neighbours become one access of up to 16 bytes, where
 * the first address is proven to be a multiple of its size.
 *
 * An address is a root pointer, index values, and a constant number of elements, as long as no
 * addition of the indices can wrap. Accesses with equal root and indices and the same condition are
 * a group; what writes memory or orders it ends the groups of loads, any other access of memory the
 * group of stores. Loads move up to the first of their vector, stores down to the last. */
#include "base/error.h"
#include "kernel/analyse.h"
#include "kernel/pass.h"

typedef tk_kvalue *val;

enum { MOST_INDICES = 4, MOST_MEMBERS = 64, MOST_GROUPS = 32 };

typedef struct address {
    val root, indices[MOST_INDICES];
    int n_indices;
    int64_t constant; /* elements */
} address;

typedef struct access {
    tk_kop *op;
    int64_t constant;
    int order; /* in the block */
} access;

typedef struct group {
    address at; /* of its first member */
    val condition;
    unsigned scalar;
    access members[MOST_MEMBERS];
    int count;
} group;

typedef struct vectoriser {
    tk_kernel *kernel;
    tk_kfact_of *facts;
    uint32_t n_facts;
    tk_kexchange exchange;
    group *groups; /* of loads, MOST_GROUPS */
    int n_groups;
    group *stores;
    int order;
} vectoriser;

/* ---- addresses ---- */

static tk_kfact_of fact_of(const vectoriser *v, val value) {
    int64_t constant;
    if (tk_kvalue_integer(value, &constant))
        return (tk_kfact_of){constant, constant, constant < 0 ? 1 : (uint64_t)constant};
    if (value->id < v->n_facts) return v->facts[value->id];
    return (tk_kfact_of){INT64_MIN, INT64_MAX, 1};
}

static bool cannot_wrap(const vectoriser *v, val a, int64_t constant) {
    tk_kfact_of f = fact_of(v, a);
    int64_t low, high;
    if (__builtin_add_overflow(f.low, constant, &low) ||
        __builtin_add_overflow(f.high, constant, &high))
        return false;
    return a->type.scalar != TK_K_I32 || (low >= INT32_MIN && high <= INT32_MAX);
}

/* Takes what is constant out of an index; extensions of sign change no number. */
static val strip(const vectoriser *v, val index, int64_t *constant) {
    for (;;) {
        int64_t more;
        if (index->kind != TK_KV_RESULT) return index;
        const tk_kop *op = index->op;
        if (op->code == TK_KOP_extend_signed) {
            index = op->operands[0];
        } else if (op->code == TK_KOP_add && tk_kvalue_integer(op->operands[1], &more) &&
                   cannot_wrap(v, op->operands[0], more)) {
            *constant += more;
            index = op->operands[0];
        } else {
            return index;
        }
    }
}

static bool add_index(const vectoriser *v, address *a, val index) {
    int64_t number;
    if (tk_kvalue_integer(index, &number)) return a->constant += number, true;
    index = strip(v, index, &a->constant);
    if (a->n_indices == MOST_INDICES) return false;
    int at = a->n_indices++;
    for (; at > 0 && a->indices[at - 1]->id > index->id; at--) a->indices[at] = a->indices[at - 1];
    a->indices[at] = index;
    return true;
}

static bool read_address(const vectoriser *v, val pointer, address *out) {
    *out = (address){.root = pointer};
    while (out->root->kind == TK_KV_RESULT && out->root->op->code == TK_KOP_offset) {
        const tk_kop *op = out->root->op;
        if (!add_index(v, out, op->operands[1])) return false;
        out->root = op->operands[0];
    }
    return true;
}

static bool same_place(const address *a, const address *b) {
    if (a->root != b->root || a->n_indices != b->n_indices) return false;
    for (int i = 0; i < a->n_indices; i++)
        if (a->indices[i] != b->indices[i]) return false;
    return true;
}

static bool divides(uint64_t wanted, uint64_t divisor, int64_t bytes) {
    return divisor == 0 || divisor * (uint64_t)bytes % wanted == 0;
}

static bool is_aligned(const vectoriser *v, const address *a, int64_t constant, int64_t bytes,
                       int64_t lanes) {
    uint64_t wanted = (uint64_t)(bytes * lanes);
    if (a->root->id >= v->n_facts || !divides(wanted, v->facts[a->root->id].divisor, 1))
        return false;
    for (int i = 0; i < a->n_indices; i++)
        if (!divides(wanted, fact_of(v, a->indices[i]).divisor % wanted, bytes)) return false;
    return constant * bytes % (int64_t)wanted == 0;
}

/* ---- vectors of a group ---- */

static void sort(group *g) {
    for (int i = 1; i < g->count; i++)
        for (int j = i; j > 0 && g->members[j].constant < g->members[j - 1].constant; j--) {
            access kept = g->members[j];
            g->members[j] = g->members[j - 1];
            g->members[j - 1] = kept;
        }
}

static int lanes_from(const vectoriser *v, const group *g, int first) {
    int64_t bytes = tk_kscalar_bytes((tk_kscalar)g->scalar);
    for (int lanes = (int)(16 / bytes); lanes > 1; lanes /= 2) {
        bool together = first + lanes <= g->count;
        for (int i = 1; i < lanes && together; i++)
            together = g->members[first + i].constant == g->members[first].constant + i;
        if (together && is_aligned(v, &g->at, g->members[first].constant, bytes, lanes))
            return lanes;
    }
    return 1;
}

static val pointer_from(tk_kput *put, const access *at, int64_t constant) {
    val pointer = at->op->operands[0];
    int64_t by = constant - at->constant;
    return by ? tk_kput_2(put, TK_KOP_offset, pointer, tk_kput_integer(put, TK_K_I64, by))
              : pointer;
}

static tk_status join_loads(vectoriser *v, const group *g, int first, int lanes) {
    const access *members = g->members + first, *earliest = members;
    tk_status status = TK_OK;
    for (int i = 1; i < lanes; i++)
        if (members[i].order < earliest->order) earliest = &members[i];
    tk_kput put = tk_kput_before(v->kernel, earliest->op, &status);
    val operands[] = {pointer_from(&put, earliest, members->constant), g->condition, NULL, NULL};
    val vector = tk_kput_op(&put, TK_KOP_load, 4, operands, 0, NULL,
                            tk_ktype_vector((tk_kscalar)g->scalar, lanes));
    for (int i = 0; i < lanes && status == TK_OK; i++) {
        tk_kput_attr index = {TK_KA_index, i};
        val part = tk_kput_op(&put, TK_KOP_extract, 1, &vector, 1, &index,
                              tk_ktype_scalar((tk_kscalar)g->scalar));
        if (status == TK_OK)
            status = tk_kexchange_set(&v->exchange, members[i].op->results[0], part);
    }
    for (int i = 0; i < lanes; i++) tk_kop_unlink(members[i].op);
    return status;
}

static tk_status join_stores(vectoriser *v, const group *g, int first, int lanes) {
    const access *members = g->members + first, *latest = members;
    tk_status status = TK_OK;
    val parts[16];
    for (int i = 0; i < lanes; i++) {
        if (members[i].order > latest->order) latest = &members[i];
        parts[i] = members[i].op->operands[1];
    }
    tk_kput put = tk_kput_before(v->kernel, latest->op, &status);
    val vector = tk_kput_op(&put, TK_KOP_vector, (size_t)lanes, parts, 0, NULL,
                            tk_ktype_vector((tk_kscalar)g->scalar, lanes));
    val operands[] = {pointer_from(&put, latest, members->constant), vector, g->condition, NULL};
    tk_kput_op(&put, TK_KOP_store, 4, operands, 0, NULL, (tk_ktype){0});
    for (int i = 0; i < lanes; i++) tk_kop_unlink(members[i].op);
    return status;
}

static tk_status join(vectoriser *v, group *g, bool stores) {
    sort(g);
    for (int first = 0; first < g->count;) {
        int lanes = lanes_from(v, g, first);
        if (lanes > 1) TK_TRY((stores ? join_stores : join_loads)(v, g, first, lanes));
        first += lanes;
    }
    g->count = 0;
    return TK_OK;
}

static tk_status end_loads(vectoriser *v) {
    for (int i = 0; i < v->n_groups; i++) TK_TRY(join(v, &v->groups[i], false));
    v->n_groups = 0;
    return TK_OK;
}
static tk_status end_stores(vectoriser *v) { return join(v, v->stores, true); }

/* ---- collecting ---- */

/* A scalar, weak access with nothing special about it. */
static bool is_simple(const tk_kop *op, tk_ktype type) {
    int n_attrs = tk_kop_row_attrs(tk_kop_row_of(op->code));
    for (int i = 0; i < n_attrs; i++)
        if (op->attrs[i]) return false;
    bool load = op->code == TK_KOP_load;
    return type.lanes == 1 && type.scalar != TK_K_I1 && tk_ktype_bytes(type) < 16 &&
           !op->operands[3] && !(load && op->operands[2]);
}

static bool has_member(const group *g, int64_t constant) {
    for (int i = 0; i < g->count; i++)
        if (g->members[i].constant == constant) return true;
    return false;
}

static void start_group(group *g, const address *at, val condition, unsigned scalar) {
    g->at = *at;
    g->condition = condition;
    g->scalar = scalar;
    g->count = 0;
}

static bool fits_group(const group *g, const address *at, val condition, unsigned scalar) {
    return same_place(&g->at, at) && g->condition == condition && g->scalar == scalar &&
           g->count < MOST_MEMBERS && !has_member(g, at->constant);
}

static tk_status note_load(vectoriser *v, tk_kop *op) {
    address at;
    tk_ktype type = op->results[0]->type;
    if (!is_simple(op, type) || !read_address(v, op->operands[0], &at)) return TK_OK;
    group *g = NULL;
    for (int i = 0; i < v->n_groups && !g; i++)
        if (fits_group(&v->groups[i], &at, op->operands[1], type.scalar)) g = &v->groups[i];
    if (!g) {
        if (v->n_groups == MOST_GROUPS) TK_TRY(end_loads(v));
        g = &v->groups[v->n_groups++];
        start_group(g, &at, op->operands[1], type.scalar);
    }
    g->members[g->count++] = (access){op, at.constant, v->order};
    return TK_OK;
}

static tk_status note_store(vectoriser *v, tk_kop *op) {
    address at;
    tk_ktype type = op->operands[1]->type;
    bool simple = is_simple(op, type) && read_address(v, op->operands[0], &at);
    group *g = v->stores;
    if (!simple || !g->count || !fits_group(g, &at, op->operands[2], type.scalar))
        TK_TRY(end_stores(v));
    if (!simple) return TK_OK;
    if (!g->count) start_group(g, &at, op->operands[2], type.scalar);
    g->members[g->count++] = (access){op, at.constant, v->order};
    return TK_OK;
}

static tk_status visit_block(vectoriser *v, tk_kblock *block);

static tk_status visit(vectoriser *v, tk_kop *op) {
    unsigned effects = tk_kop_row_of(op->code)->effects;
    bool registers = op->code == TK_KOP_get || op->code == TK_KOP_set;
    v->order++;
    if (op->n_regions || (effects & TK_KE_TERMINATOR)) {
        TK_TRY(end_loads(v));
        TK_TRY(end_stores(v));
        for (int i = 0; i < op->n_regions; i++) TK_TRY(visit_block(v, op->regions[i]));
        return TK_OK;
    }
    if (registers || !(effects & ~(unsigned)(TK_KE_VOLATILE | TK_KE_STORAGE))) return TK_OK;
    if (op->code == TK_KOP_load) {
        TK_TRY(end_stores(v));
        return note_load(v, op);
    }
    TK_TRY(end_loads(v));
    if (op->code == TK_KOP_store) return note_store(v, op);
    return end_stores(v);
}

static tk_status visit_block(vectoriser *v, tk_kblock *block) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        TK_TRY(visit(v, op));
    }
    TK_TRY(end_loads(v));
    return end_stores(v);
}

tk_status tk_kpass_run_vectorise(tk_kernel *kernel) {
    vectoriser v = {.kernel = kernel, .n_facts = kernel->n_values};
    TK_TRY(tk_kanalyse_ranges(kernel, &v.facts));
    v.groups = tk_calloc(MOST_GROUPS + 1, sizeof *v.groups);
    v.stores = v.groups ? v.groups + MOST_GROUPS : NULL;
    tk_status status = v.groups ? visit_block(&v, &kernel->body)
                                : tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    if (status == TK_OK) tk_kexchange_apply(&v.exchange, kernel);
    tk_vec_deinit(&v.exchange);
    tk_free(v.groups);
    tk_free(v.facts);
    return status;
}
