/* The op table as data: one tk_op_info per row of tiki/ops.def. */
#ifndef GRAPH_OPS_H
#define GRAPH_OPS_H

#include "graph/attrs.h"

#define TK_OP(name, ...) TK_OP_##name,
typedef enum tk_op {
#include "tiki/ops.def"
    TK_OP_COUNT
} tk_op;
#undef TK_OP

typedef enum tk_accept {
    TK_ACCEPT_ANY,
    TK_ACCEPT_NUM,
    TK_ACCEPT_REAL,
    TK_ACCEPT_INEXACT,
    TK_ACCEPT_FLOAT,
    TK_ACCEPT_INT,
    TK_ACCEPT_BITS,
    TK_ACCEPT_BOOL
} tk_accept;

typedef enum tk_result {
    TK_RESULT_SAME,
    TK_RESULT_BOOL,
    TK_RESULT_ATTR,
    TK_RESULT_UINT32,
    TK_RESULT_REAL,
    TK_RESULT_RULE
} tk_result;

typedef enum tk_lower {
    TK_LOWER_EWISE,
    TK_LOWER_VIEW,
    TK_LOWER_LEAF,
    TK_LOWER_REDUCE,
    TK_LOWER_SCAN,
    TK_LOWER_MATMUL,
    TK_LOWER_INDEX,
    TK_LOWER_SORT,
    TK_LOWER_RANDOM,
    TK_LOWER_FUSED,
    TK_LOWER_LIBRARY,
    TK_LOWER_ALIAS
} tk_lower;

/* How far a result may be from the exactly rounded one: see tests/support for the bounds. */
typedef enum tk_tolerance { TK_TOL_EXACT, TK_TOL_ULP, TK_TOL_SUM } tk_tolerance;

enum {
    TK_FACT_NONE = 0,
    TK_FACT_COMM = 1,
    TK_FACT_IASSOC = 2,
    TK_FACT_LIN = 4,
    TK_FACT_BILIN = 8,
    TK_FACT_IDEM = 16
};

struct tk_infer;
struct tk_vjp_rule;
struct tk_batch;

typedef struct tk_op_info {
    const char *name;
    tk_record record;
    tk_accept accept;
    tk_result result;
    tk_status (*shape)(struct tk_infer *infer);
    void (*vjp)(struct tk_vjp_rule *vjp);
    void (*batch)(struct tk_batch *batch);
    unsigned facts;
    tk_lower lower;
    tk_tolerance tolerance;
    const char *sample;
    const char *doc;
    const char *params;
} tk_op_info;

extern const tk_op_info tk_op_table[TK_OP_COUNT];

static inline const tk_op_info *tk_op_of(tk_op op) { return &tk_op_table[op]; }
static inline const char *tk_op_name(tk_op op) { return tk_op_table[op].name; }

/* What messages call it: the functions that a user calls, where the op's own name is none of them.
 */
const char *tk_op_title(tk_op op);

/* Finds an op by name; TK_NOT_FOUND when there is none. */
tk_status tk_op_find(const char *name, size_t length, tk_op *out_op);

#endif
