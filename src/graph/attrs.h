/* Attribute records as plain structs, and what can be done to any of them through the field table.
 *
 * A record is built on the stack by the op's builder; interning copies it into the node, lists
 * included. Equality is by bits, so -0.0 and 0.0 differ and a NaN equals itself. */
#ifndef GRAPH_ATTRS_H
#define GRAPH_ATTRS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tiki/dtype.h"

/* A borrowed list of integers: shape, axes, starts. */
typedef struct tk_list {
    const int64_t *items;
    int64_t count;
} tk_list;

/* Something counted that an attribute refers to. `release` runs once, when the last holder goes. */
typedef struct tk_ref {
    atomic_int count;
    void (*release)(struct tk_ref *self);
} tk_ref;

void tk_ref_retain(tk_ref *ref);
void tk_ref_release(tk_ref *ref); /* NULL is fine */

#define INT(name) int64_t name;
#define FLOAT(name) double name;
#define BITS(name) uint64_t name;
#define FLAG(name) int64_t name;
#define DTYPE(name) int64_t name;
#define LIST(name) tk_list name;
#define TEXT(name) const char *name;
#define REF(name) tk_ref *name;
#define TK_ATTRS(record, fields)                                                                   \
    typedef struct tk_attrs_##record {                                                             \
        fields                                                                                     \
    } tk_attrs_##record;
#include "graph/attrs.def"
#undef TK_ATTRS
#undef INT
#undef FLOAT
#undef BITS
#undef FLAG
#undef DTYPE
#undef LIST
#undef TEXT
#undef REF

typedef enum tk_record {
    TK_RECORD_none,
#define TK_ATTRS(record, fields) TK_RECORD_##record,
#include "graph/attrs.def"
#undef TK_ATTRS
    TK_RECORD_COUNT
} tk_record;

typedef enum tk_field_kind {
    TK_FIELD_INT,
    TK_FIELD_FLOAT,
    TK_FIELD_BITS,
    TK_FIELD_FLAG,
    TK_FIELD_DTYPE,
    TK_FIELD_LIST,
    TK_FIELD_TEXT,
    TK_FIELD_REF
} tk_field_kind;

typedef struct tk_field {
    const char *name;
    tk_field_kind kind;
} tk_field;

/* Fields lie one after the other without padding: a list takes 16 bytes, anything else 8. */
typedef struct tk_record_info {
    const char *name;
    size_t bytes;
    int n_fields;
    const tk_field *fields;
} tk_record_info;

static inline size_t tk_field_bytes(tk_field_kind kind) {
    return kind == TK_FIELD_LIST ? sizeof(tk_list) : sizeof(int64_t);
}

const tk_record_info *tk_record_of(tk_record record);

uint64_t tk_attrs_hash(tk_record record, const void *attrs, uint64_t seed);
bool tk_attrs_equal(tk_record record, const void *a, const void *b);

/* Bytes that a copy needs, lists and texts included; always a multiple of eight. */
size_t tk_attrs_bytes(tk_record record, const void *attrs);

/* Copies into `memory` of tk_attrs_bytes(); the copy holds its references. */
void tk_attrs_copy(tk_record record, const void *attrs, void *memory);

/* Lets go of the references that a copy holds. */
void tk_attrs_deinit(tk_record record, void *attrs);

/* Prints ` name=value` for each field, in the text form that tk_graph_text_parse reads. BITS are a
 * value of the record's dtype, which comes before them. */
void tk_attrs_print(tk_record record, const void *attrs, tk_strbuf *out);

#endif
