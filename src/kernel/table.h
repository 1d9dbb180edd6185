/* The operation table as data, for everything in this module that reads it. */
#ifndef KERNEL_TABLE_H
#define KERNEL_TABLE_H

#include "tiki/kernel.h"

enum { TK_KFORM_IN_TENSOR = 1, TK_KFORM_IN_VIEW = 2, TK_KFORM_IN_THREAD = 4 };

enum {
    TK_KE_READS = 1,
    TK_KE_WRITES = 2,
    TK_KE_ORDERS = 4,
    TK_KE_ASYNC = 8,
    TK_KE_WARP = 16,
    TK_KE_WARPGROUP = 32,
    TK_KE_BLOCK = 64,
    TK_KE_STORAGE = 128,
    TK_KE_REGION = 256,
    TK_KE_TERMINATOR = 512,
    TK_KE_VOLATILE = 1024
};

/* Classes of operands and results, as the head of kernel_ops.def explains them. */
typedef enum tk_kclass {
    TK_KC_END, /* after the last one */
    TK_KC_NUM,
    TK_KC_INT,
    TK_KC_FLOAT,
    TK_KC_BITS,
    TK_KC_SMALL,
    TK_KC_I1,
    TK_KC_I32,
    TK_KC_I64,
    TK_KC_INDEX,
    TK_KC_PTR,
    TK_KC_PTR_SHARED,
    TK_KC_PTR_GLOBAL,
    TK_KC_MBAR,
    TK_KC_TMAP,
    TK_KC_VIEW,
    TK_KC_REGS,
    TK_KC_SHARED,
    TK_KC_LAYOUT,
    TK_KC_TILE,
    TK_KC_VALUE,
    TK_KC_SAME,
    TK_KC_SAME1,
    TK_KC_I32S
} tk_kclass;

typedef enum tk_kneed { TK_KN_REQUIRED, TK_KN_OPTIONAL, TK_KN_VARIADIC } tk_kneed;

typedef struct tk_kslot {
    const char *name;
    uint8_t class;
    uint8_t need;
} tk_kslot;

typedef enum tk_kresult_rule {
    TK_KRESULT_NONE,
    TK_KRESULT_FOLLOWS,
    TK_KRESULT_STATED,
    TK_KRESULT_REGIONS
} tk_kresult_rule;

#define TK_KOP_MOST_SLOTS 7
#define TK_KOP_MOST_ATTRS 12

struct tk_kernel;
struct tk_kop;
typedef tk_status (*tk_kcheck)(const struct tk_kernel *kernel, const struct tk_kop *op);

typedef struct tk_kop_row {
    const char *name;
    uint16_t forms, effects;
    tk_kslot slots[TK_KOP_MOST_SLOTS];
    uint8_t result_rule, result_class;
    uint8_t attrs[TK_KOP_MOST_ATTRS + 1]; /* tk_kattr_id plus one; 0 ends the list */
    tk_kcheck check;
    const char *doc;
} tk_kop_row;

typedef enum tk_kattr_kind { TK_KAK_WORD, TK_KAK_FLAG, TK_KAK_INT, TK_KAK_TEXT } tk_kattr_kind;

#define TK_KATTR_REQUIRED (INT64_MIN + 1)

typedef struct tk_kattr_row {
    const char *name;
    uint8_t kind;
    int64_t initial; /* TK_KATTR_REQUIRED: there is none */
    const char *words;
    const char *doc;
} tk_kattr_row;

const tk_kop_row *tk_kop_row_of(unsigned code);
const tk_kattr_row *tk_kattr_row_of(unsigned id);

/* Slots before the variadic one, and whether there is one. */
int tk_kop_row_slots(const tk_kop_row *row, bool *out_variadic);
int tk_kop_row_attrs(const tk_kop_row *row);

/* Position of a word of `length` bytes in a list between blanks, -1 when it is not there; and the
 * word at a position. */
int tk_kwords_find(const char *words, const char *word, size_t length);
const char *tk_kwords_at(const char *words, int index, size_t *out_length);

/* "a number", "the type of the first operand": for messages. */
const char *tk_kclass_words(unsigned class);

/* Whether a type belongs to a class that does not refer to operands. */
bool tk_kclass_has(unsigned class, tk_ktype type);

#endif
