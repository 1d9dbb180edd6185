/* The records of a kernel: values, operations, blocks, launch contract.
 *
 * Records live in the kernel's arena and are linked by pointers. A pass (which works on a copy that
 * nobody else has, see tk_kernel_clone) may unlink an operation, put one in, and exchange operands;
 * what it drops stays in the arena until the kernel goes. Values are
 *
 *   results of operations, arguments of blocks (what loops carry), parameters, and constants.
 *
 * Constants belong to the kernel, one for each type and bits, and stand in no block, so they are
 * never moved or merged by a pass.
 *
 * Operands: the slots of the table's row in order, NULL for one that is missing, then the variadic
 * ones. Attributes: one 64-bit word for each of the row, texts as numbers of the kernel's strings.
 */
#ifndef KERNEL_IR_H
#define KERNEL_IR_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "kernel/table.h"
#include "tiki/kernel.h"

typedef struct tk_kop tk_kop;
typedef struct tk_kblock tk_kblock;

typedef enum tk_kvalue_kind {
    TK_KV_RESULT,
    TK_KV_ARGUMENT,
    TK_KV_PARAM,
    TK_KV_CONST
} tk_kvalue_kind;

struct tk_kvalue {
    tk_ktype type;
    uint8_t kind;     /* a tk_kvalue_kind */
    uint32_t id;      /* below kernel->n_values, unique */
    uint32_t index;   /* among the results, arguments or parameters */
    const char *name; /* NULL: a number in the text */
    tk_kop *op;       /* of results */
    tk_kblock *block; /* of arguments */
    uint64_t bits;    /* of constants, in the low bytes */
};

typedef struct tk_kloc {
    uint32_t file; /* a string of the kernel, 0: its source */
    uint32_t line; /* 0: unknown */
} tk_kloc;

struct tk_kop {
    uint16_t code; /* a tk_kopcode */
    uint16_t n_results;
    uint16_t n_regions;
    uint32_t n_operands;
    tk_kvalue **operands;
    tk_kvalue **results;
    tk_kblock **regions;
    int64_t *attrs;
    tk_kop *prev, *next;
    tk_kblock *block; /* that it stands in */
    tk_kloc loc;
};

struct tk_kblock {
    tk_kop *first, *last;
    tk_kop *parent; /* the operation whose region it is; NULL for the body */
    tk_kvalue **args;
    uint32_t n_args;
};

/* A node of an expression of the contract. */
typedef struct tk_kexpr {
    uint8_t kind;  /* a tk_kexpr_kind */
    uint32_t size; /* nodes when it is written out */
    int32_t left, right;
    int64_t value; /* of a constant; number of a parameter; a tk_kfact */
} tk_kexpr;

typedef struct tk_kcondition {
    int32_t left, right;
    uint8_t relation;
} tk_kcondition;

typedef struct tk_kparameter {
    tk_kvalue *value;
    uint8_t access;
    int64_t align;
    int32_t size;       /* an expression, -1: not stated */
    const tk_kmap *map; /* of a tensor map, else NULL */
} tk_kparameter;

typedef struct tk_kcontract {
    TK_VEC(tk_kparameter) params;
    TK_VEC(tk_kexpr) exprs;
    TK_VEC(tk_kcondition) conditions;
    int32_t grid[3];    /* expressions, -1: not stated */
    int32_t cluster[3]; /* -1: one block */
    int64_t block[3];
    int32_t dynamic_shared; /* -1: none */
    int64_t min_blocks;     /* of an SM, a hint; 0: none */
    bool cooperative, programmatic;
} tk_kcontract;

struct tk_kernel {
    int references; /* atomic */
    tk_arena arena;
    const char *name;
    tk_kform form;
    tk_kcontract contract;
    tk_kblock body;
    uint32_t n_values;
    TK_VEC(tk_kvalue *) constants;
    TK_VEC(const char *) strings; /* 0 is the empty one, 1 the source */
    TK_VEC(const tk_composed *) layouts;
};

/* ---- kernels ---- */

/* NULL when memory is out. */
tk_kernel *tk_kernel_create(const char *name, tk_kform form);

/* A copy that nobody else has: what passes work on. Values keep their ids. */
tk_status tk_kernel_clone(const tk_kernel *kernel, tk_kernel **out_kernel);

/* A kernel of the same name and contract that does nothing: for launches of a binary that is
 * there already. */
tk_status tk_kernel_clone_head(const tk_kernel *kernel, tk_kernel **out_kernel);

/* The number of a string or layout of the kernel, kept once. *out is unchanged after an error. */
tk_status tk_kernel_string(tk_kernel *kernel, const char *text, size_t length, uint32_t *out);
tk_status tk_kernel_layout(tk_kernel *kernel, const tk_composed *layout, uint32_t *out);

static inline const tk_composed *tk_ktype_layout(const tk_kernel *kernel, tk_ktype type) {
    return kernel->layouts.items[type.layout - 1];
}

/* ---- values ---- */

/* The constant of a scalar type with these bits (above the type's width they are cut off). */
tk_status tk_kernel_constant(tk_kernel *kernel, tk_kscalar scalar, uint64_t bits, tk_kvalue **out);

tk_status tk_kernel_value(tk_kernel *kernel, tk_kvalue_kind kind, tk_ktype type, tk_kvalue **out);

bool tk_ktype_equal(tk_ktype a, tk_ktype b);

/* A constant integer, its sign extended. */
bool tk_kvalue_integer(const tk_kvalue *value, int64_t *out);

/* The bits of a float constant from a double, correctly rounded, and back. */
uint64_t tk_kscalar_bits(tk_kscalar scalar, double value);
double tk_kscalar_value(tk_kscalar scalar, uint64_t bits);

/* Text of a type into `out`, or into a buffer for messages (cut where there is no room). */
void tk_ktype_put(const tk_kernel *kernel, tk_ktype type, tk_strbuf *out);
typedef struct tk_ktype_text {
    char text[96];
} tk_ktype_text;
tk_ktype_text tk_ktype_words(const tk_kernel *kernel, tk_ktype type);

/* ---- operations ---- */

/* A new operation in no block, checked against its row: operands, attributes and their classes.
 * Results get their types from the row; `types` are the `n_types` stated ones. Regions are added
 * afterwards. */
typedef struct tk_kop_spec {
    tk_kopcode code;
    size_t n_operands;
    tk_kvalue *const *operands;
    const int64_t *attrs; /* one for each of the row; NULL: all at their default */
    size_t n_types;
    const tk_ktype *types;
    tk_kloc loc;
} tk_kop_spec;
tk_status tk_kop_make(tk_kernel *kernel, const tk_kop_spec *spec, tk_kop **out_op);

void tk_kop_append(tk_kblock *block, tk_kop *op);
void tk_kop_insert_before(tk_kop *place, tk_kop *op);
void tk_kop_unlink(tk_kop *op);

/* Results for an operation whose regions say what they are. */
tk_status tk_kop_add_results(tk_kernel *kernel, tk_kop *op, size_t count, const tk_ktype *types);

/* A region with arguments of these types. */
tk_status tk_kop_add_region(tk_kernel *kernel, tk_kop *op, size_t n_args, const tk_ktype *types,
                            tk_kblock **out);

/* The attribute's word; the operation must have it. */
int64_t tk_kop_attr(const tk_kop *op, tk_kattr_id id);
static inline const char *tk_kop_text(const tk_kernel *kernel, const tk_kop *op, tk_kattr_id id) {
    return kernel->strings.items[tk_kop_attr(op, id)];
}

/* Calls `visit` for each operation of the block and, depth first, of its regions; stops at an
 * error. */
typedef tk_status (*tk_kop_visit)(void *arg, tk_kop *op);
tk_status tk_kblock_walk(const tk_kblock *block, tk_kop_visit visit, void *arg);

#endif
