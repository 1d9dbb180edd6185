/* The tables of tiki/kernel_ops.def, kernel_attrs.def and kernel_types.def as arrays. */
#include "kernel/table.h"

#include <string.h>

#include "base/error.h"
#include "kernel/check.h"

#define ALL (TENSOR | VIEW | THREAD)
#define TENSOR TK_KFORM_IN_TENSOR
#define VIEW TK_KFORM_IN_VIEW
#define THREAD TK_KFORM_IN_THREAD

#define PURE 0
#define READS TK_KE_READS
#define WRITES TK_KE_WRITES
#define ORDERS TK_KE_ORDERS
#define ASYNC TK_KE_ASYNC
#define WARP TK_KE_WARP
#define WARPGROUP TK_KE_WARPGROUP
#define BLOCK TK_KE_BLOCK
#define STORAGE TK_KE_STORAGE
#define REGION TK_KE_REGION
#define TERMINATOR TK_KE_TERMINATOR
#define VOLATILE TK_KE_VOLATILE

#define NONE                                                                                       \
    {                                                                                              \
        { NULL, TK_KC_END, TK_KN_REQUIRED }                                                        \
    }
#define IN(...)                                                                                    \
    { __VA_ARGS__ }
#define A(name, class)                                                                             \
    { #name, TK_KC_##class, TK_KN_REQUIRED }
#define O(name, class)                                                                             \
    { #name, TK_KC_##class, TK_KN_OPTIONAL }
#define V(name, class)                                                                             \
    { #name, TK_KC_##class, TK_KN_VARIADIC }
#define OUT(result) RESULT_##result
#define RESULT_ .result_rule = TK_KRESULT_NONE
#define RESULT_R(class) .result_rule = TK_KRESULT_FOLLOWS, .result_class = TK_KC_##class
#define RESULT_G(class) .result_rule = TK_KRESULT_STATED, .result_class = TK_KC_##class
#define RESULT_RV() .result_rule = TK_KRESULT_REGIONS
#define NO_CHECK NULL
#define CHECK(name) tk_kcheck_##name

/* Up to twelve attributes; the places that are left are 0. */
enum {
    ID_ = 0,
#define TK_KATTR(name, kind, initial, words, doc) ID_##name = TK_KA_##name + 1,
#include "tiki/kernel_attrs.def"
};
#define WITH(...) IDS(__VA_ARGS__, , , , , , , , , , , , , )
#define IDS(a, b, c, d, e, f, g, h, i, j, k, l, ...)                                               \
    {                                                                                              \
        ID_##a, ID_##b, ID_##c, ID_##d, ID_##e, ID_##f, ID_##g, ID_##h, ID_##i, ID_##j, ID_##k,    \
            ID_##l                                                                                 \
    }

static const tk_kop_row op_rows[] = {
#define TK_KOP(name, forms_, effects_, operands, result, attrs_, check_, emulator, ptx, doc_)      \
    [TK_KOP_##name] = {#name,  forms_,          effects_,        operands,                         \
                       result, .attrs = attrs_, .check = check_, .doc = doc_},
#include "tiki/kernel_ops.def"
#undef TK_KOP
};

#define REQUIRED TK_KATTR_REQUIRED
static const tk_kattr_row attr_rows[] = {
#define TK_KATTR(name, kind, initial, words, doc)                                                  \
    [TK_KA_##name] = {#name, TK_KAK_##kind, initial, words, doc},
#include "tiki/kernel_attrs.def"
};

const tk_kop_row *tk_kop_row_of(unsigned code) { return &op_rows[code]; }
const tk_kattr_row *tk_kattr_row_of(unsigned id) { return &attr_rows[id]; }

int tk_kop_row_slots(const tk_kop_row *row, bool *out_variadic) {
    int count = 0;
    *out_variadic = false;
    for (; count < TK_KOP_MOST_SLOTS && row->slots[count].class; count++)
        if (row->slots[count].need == TK_KN_VARIADIC) {
            *out_variadic = true;
            break;
        }
    return count;
}

int tk_kop_row_attrs(const tk_kop_row *row) {
    int count = 0;
    while (row->attrs[count]) count++;
    return count;
}

/* ---- lists of words ---- */

int tk_kwords_find(const char *words, const char *word, size_t length) {
    for (int index = 0; *words; index++) {
        size_t here = strcspn(words, " ");
        if (here == length && !memcmp(words, word, length)) return index;
        words += here + (words[here] == ' ');
    }
    return -1;
}

const char *tk_kwords_at(const char *words, int index, size_t *out_length) {
    for (; index > 0 && *words; index--) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    *out_length = strcspn(words, " ");
    return words;
}

/* ---- the public face ---- */

tk_status tk_kopcode_find(const char *name, tk_kopcode *out_code) {
    TK_NEED(name, out_code);
    for (unsigned code = 0; code < TK_KOP_COUNT; code++)
        if (!strcmp(name, op_rows[code].name)) {
            *out_code = (tk_kopcode)code;
            return TK_OK;
        }
    return tk_fail(TK_NOT_FOUND, "\"%.60s\" is no kernel operation", name);
}

static bool is_op(tk_kopcode code) { return (unsigned)code < TK_KOP_COUNT; }

const char *tk_kopcode_name(tk_kopcode code) { return is_op(code) ? op_rows[code].name : "?"; }
const char *tk_kopcode_doc(tk_kopcode code) { return is_op(code) ? op_rows[code].doc : "?"; }

int tk_kopcode_operands(tk_kopcode code) {
    bool variadic;
    return is_op(code) ? tk_kop_row_slots(&op_rows[code], &variadic) : -1;
}

const char *tk_kopcode_operand(tk_kopcode code, int index, bool *out_optional) {
    if (index < 0 || index >= tk_kopcode_operands(code)) return NULL;
    const tk_kslot *slot = &op_rows[code].slots[index];
    if (out_optional) *out_optional = slot->need == TK_KN_OPTIONAL;
    return slot->name;
}

bool tk_kopcode_is_variadic(tk_kopcode code) {
    bool variadic = false;
    if (is_op(code)) tk_kop_row_slots(&op_rows[code], &variadic);
    return variadic;
}

int tk_kopcode_attrs(tk_kopcode code) {
    return is_op(code) ? tk_kop_row_attrs(&op_rows[code]) : -1;
}

const char *tk_kopcode_attr(tk_kopcode code, int index, tk_kattr_id *out_id) {
    if (index < 0 || index >= tk_kopcode_attrs(code)) return NULL;
    unsigned id = op_rows[code].attrs[index] - 1u;
    if (out_id) *out_id = (tk_kattr_id)id;
    return attr_rows[id].name;
}

bool tk_kopcode_states_type(tk_kopcode code) {
    return is_op(code) && op_rows[code].result_rule == TK_KRESULT_STATED;
}
