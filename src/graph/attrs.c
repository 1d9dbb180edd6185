/* Everything that treats records alike, driven by one table of fields. */
#include "graph/attrs.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "graph/text.h"

#define INT(name) {#name, TK_FIELD_INT},
#define FLOAT(name) {#name, TK_FIELD_FLOAT},
#define BITS(name) {#name, TK_FIELD_BITS},
#define FLAG(name) {#name, TK_FIELD_FLAG},
#define DTYPE(name) {#name, TK_FIELD_DTYPE},
#define LIST(name) {#name, TK_FIELD_LIST},
#define TEXT(name) {#name, TK_FIELD_TEXT},
#define REF(name) {#name, TK_FIELD_REF},
#define TK_ATTRS(record, fields) static const tk_field record##_fields[] = {fields};
#include "graph/attrs.def"
#undef TK_ATTRS

static const tk_record_info records[TK_RECORD_COUNT] = {
    [TK_RECORD_none] = {"none", 0, 0, NULL},
#define TK_ATTRS(record, fields)                                                                   \
    [TK_RECORD_##record] = {#record, sizeof(tk_attrs_##record),                                    \
                            (int)(sizeof record##_fields / sizeof(tk_field)), record##_fields},
#include "graph/attrs.def"
#undef TK_ATTRS
};

_Static_assert(sizeof(void *) == 8 && sizeof(tk_list) == 16, "records have no padding");

const tk_record_info *tk_record_of(tk_record record) { return &records[record]; }

void tk_ref_retain(tk_ref *ref) {
    if (ref) atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed);
}

void tk_ref_release(tk_ref *ref) {
    if (ref && atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel) == 1)
        ref->release(ref);
}

static const tk_list *as_list(const void *at) { return at; }

static const char *as_text(const void *at) {
    const char *text;
    memcpy(&text, at, sizeof text);
    return text ? text : "";
}

static size_t list_bytes(const tk_list *list) { return (size_t)list->count * sizeof(int64_t); }

static size_t round8(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

uint64_t tk_attrs_hash(tk_record record, const void *attrs, uint64_t seed) {
    const tk_record_info *info = &records[record];
    const char *at = attrs;
    uint64_t hash = seed;
    for (int i = 0; i < info->n_fields; i++) {
        tk_field_kind kind = info->fields[i].kind;
        if (kind == TK_FIELD_LIST)
            hash = tk_hash_bytes(hash, as_list(at)->items, list_bytes(as_list(at)));
        else if (kind == TK_FIELD_TEXT)
            hash = tk_hash_bytes(hash, as_text(at), strlen(as_text(at)));
        else
            hash = tk_hash_bytes(hash, at, 8);
        at += tk_field_bytes(kind);
    }
    return hash;
}

bool tk_attrs_equal(tk_record record, const void *a, const void *b) {
    const tk_record_info *info = &records[record];
    const char *left = a, *right = b;
    for (int i = 0; i < info->n_fields; i++) {
        tk_field_kind kind = info->fields[i].kind;
        size_t bytes = tk_field_bytes(kind);
        if (kind == TK_FIELD_LIST) {
            const tk_list *one = as_list(left), *other = as_list(right);
            if (one->count != other->count) return false;
            if (one->count && memcmp(one->items, other->items, list_bytes(one))) return false;
        } else if (kind == TK_FIELD_TEXT) {
            if (strcmp(as_text(left), as_text(right))) return false;
        } else if (memcmp(left, right, bytes)) {
            return false;
        }
        left += bytes;
        right += bytes;
    }
    return true;
}

size_t tk_attrs_bytes(tk_record record, const void *attrs) {
    const tk_record_info *info = &records[record];
    const char *at = attrs;
    size_t bytes = info->bytes;
    for (int i = 0; i < info->n_fields; i++) {
        tk_field_kind kind = info->fields[i].kind;
        if (kind == TK_FIELD_LIST) bytes += list_bytes(as_list(at));
        if (kind == TK_FIELD_TEXT) bytes += round8(strlen(as_text(at)) + 1);
        at += tk_field_bytes(kind);
    }
    return bytes;
}

/* Moves the bytes of a list or text behind the record and points the copied field at them. */
static char *copy_tail(char *field, tk_field_kind kind, const void *source, char *tail) {
    size_t bytes =
        kind == TK_FIELD_LIST ? list_bytes(as_list(source)) : strlen(as_text(source)) + 1;
    const void *from =
        kind == TK_FIELD_LIST ? (const void *)as_list(source)->items : as_text(source);
    if (bytes) memcpy(tail, from, bytes);
    const void *to = tail;
    memcpy(field, &to, sizeof to);
    return tail + round8(bytes);
}

void tk_attrs_copy(tk_record record, const void *attrs, void *memory) {
    const tk_record_info *info = &records[record];
    if (!info->bytes) return;
    memcpy(memory, attrs, info->bytes);
    char *at = memory, *tail = at + info->bytes;
    const char *from = attrs;
    for (int i = 0; i < info->n_fields; i++) {
        tk_field_kind kind = info->fields[i].kind;
        if (kind == TK_FIELD_LIST || kind == TK_FIELD_TEXT) tail = copy_tail(at, kind, from, tail);
        if (kind == TK_FIELD_REF) tk_ref_retain(*(tk_ref **)(void *)at);
        at += tk_field_bytes(kind);
        from += tk_field_bytes(kind);
    }
}

void tk_attrs_deinit(tk_record record, void *attrs) {
    const tk_record_info *info = &records[record];
    char *at = attrs;
    for (int i = 0; i < info->n_fields; i++) {
        if (info->fields[i].kind == TK_FIELD_REF) tk_ref_release(*(tk_ref **)(void *)at);
        at += tk_field_bytes(info->fields[i].kind);
    }
}

/* `dtype` is the record's, for bits. */
static void print_field(tk_field_kind kind, const char *at, tk_dtype dtype, tk_strbuf *out) {
    int64_t integer;
    memcpy(&integer, at, 8);
    switch (kind) {
    case TK_FIELD_INT:
        tk_strbuf_printf(out, "%" PRId64, integer);
        break;
    case TK_FIELD_FLAG:
        tk_strbuf_puts(out, integer ? "true" : "false");
        break;
    case TK_FIELD_DTYPE:
        tk_strbuf_puts(out, tk_dtype_text((tk_dtype)integer));
        break;
    case TK_FIELD_BITS:
        tk_text_put_bits(out, dtype, (uint64_t)integer);
        break;
    case TK_FIELD_FLOAT:
        tk_text_put_bits(out, TK_FLOAT64, (uint64_t)integer);
        break;
    case TK_FIELD_TEXT:
        tk_text_put_quoted(out, as_text(at));
        break;
    case TK_FIELD_REF:
        tk_strbuf_puts(out, "opaque");
        break;
    case TK_FIELD_LIST:
        tk_text_put_list(out, as_list(at)->items, as_list(at)->count);
        break;
    }
}

void tk_attrs_print(tk_record record, const void *attrs, tk_strbuf *out) {
    const tk_record_info *info = &records[record];
    const char *at = attrs;
    tk_dtype dtype = TK_FLOAT64;
    for (int i = 0; i < info->n_fields; i++) {
        if (info->fields[i].kind == TK_FIELD_DTYPE)
            dtype = (tk_dtype) * (const int64_t *)(const void *)at;
        tk_strbuf_printf(out, " %s=", info->fields[i].name);
        print_field(info->fields[i].kind, at, dtype, out);
        at += tk_field_bytes(info->fields[i].kind);
    }
}
