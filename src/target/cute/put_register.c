/* Register tensors.
 *
 * One is a memref in registers with its elements in a row: operations name places, and its
 * thread-value layout says nothing more about them. The compiler promotes it to values.
 *
 * A tensor that a product of warpgroups takes as words of 32 bits is kept as such words: taken
 * apart and put together around the product, its registers would be written while it is in flight.
 */
#include <inttypes.h>
#include <string.h>

#include "kernel/check.h"
#include "target/cute/cute.h"

static bool has_words(const tk_cute *x, const tk_kvalue *tensor) {
    return x->flights[tensor->id] >= TK_CUTE_FLIES_AS_WORDS;
}

static const char *scalar_of(const tk_kvalue *tensor) {
    return tk_cute_scalar((tk_kscalar)tensor->type.scalar);
}

const tk_kvalue *tk_cute_whole(const tk_cute *x, const tk_kvalue *tensor, int64_t *place) {
    const struct tk_cute_part *part = &x->parts[tensor->id];
    if (!part->whole) return tensor;
    *place += part->from;
    return part->whole;
}

int tk_cute_each(const tk_kvalue *tensor) {
    return 4 / tk_kscalar_bytes((tk_kscalar)tensor->type.scalar);
}

int64_t tk_cute_registers(const tk_cute *x, const tk_kvalue *tensor) {
    int64_t size = tk_kregs_size(x->kernel, tensor->type);
    int each = has_words(x, tensor) ? tk_cute_each(tensor) : 1;
    return (size + each - 1) / each;
}

const char *tk_cute_register_type(const tk_cute *x, const tk_kvalue *tensor) {
    return has_words(x, tensor) ? "i32" : scalar_of(tensor);
}

/* ---- whole registers ---- */

static const char *memref_of(tk_cute *x, const tk_kvalue *tensor) {
    return tk_cute_text(x, "!cute.memref<%s, rmem, align<16>, \"(%" PRId64 "):(1)\">",
                        tk_cute_register_type(x, tensor), tk_cute_registers(x, tensor));
}

void tk_cute_put_registers(tk_cute *x, const tk_kop *op) {
    const tk_kvalue *tensor = op->results[0];
    const char *layout = tk_cute_once(x, "cute.static : !cute.layout<\"(%" PRId64 "):(1)\">",
                                      tk_cute_registers(x, tensor));
    tk_cute_line(x, "%s = cute.memref.alloca(%s) : %s", tk_cute_result(x, op), layout,
                 memref_of(x, tensor));
    if (tk_cute_flies(x, tensor) && !tk_vec_push(&x->flying, tensor)) x->body.failed = true;
}

static const char *coordinate(tk_cute *x, int64_t index) {
    return tk_cute_once(x, "cute.static : !cute.coord<\"%" PRId64 "\">", index);
}

const char *tk_cute_take_register(tk_cute *x, const tk_kvalue *tensor, int64_t index) {
    return tk_cute_let(x, "cute.memref.load(%s, %s) : (%s, !cute.coord<\"%" PRId64 "\">) -> %s",
                       tk_cute_name(x, tensor), coordinate(x, index), memref_of(x, tensor), index,
                       tk_cute_register_type(x, tensor));
}

void tk_cute_store_register(tk_cute *x, const tk_kvalue *tensor, int64_t index, const char *value) {
    tk_cute_line(x, "cute.memref.store(%s, %s, %s) : (%s, !cute.coord<\"%" PRId64 "\">, %s) -> ()",
                 tk_cute_name(x, tensor), coordinate(x, index), value, memref_of(x, tensor), index,
                 tk_cute_register_type(x, tensor));
}

/* ---- words ---- */

/* The elements of a word as a vector, and back. */
static const char *part_word(tk_cute *x, const tk_kvalue *tensor, const char *word) {
    return tk_cute_let(x, "llvm.bitcast %s : i32 to vector<%dx%s>", word, tk_cute_each(tensor),
                       scalar_of(tensor));
}

static const char *join_word(tk_cute *x, const tk_kvalue *tensor, const char *vector) {
    return tk_cute_let(x, "llvm.bitcast %s : vector<%dx%s> to i32", vector, tk_cute_each(tensor),
                       scalar_of(tensor));
}

/* The elements that a word has room for, of a tensor that has none. */
static const char *gather_word(tk_cute *x, const tk_kvalue *tensor, int64_t place) {
    int each = tk_cute_each(tensor);
    const char *list = "";
    for (int i = 0; i < each; i++)
        list = tk_cute_text(x, "%s%s%s", list, i ? ", " : "", tk_cute_take(x, tensor, place + i));
    return tk_cute_let(x, "vector.from_elements %s : vector<%dx%s>", list, each, scalar_of(tensor));
}

const char *tk_cute_take_word(tk_cute *x, const tk_kvalue *tensor, int64_t place) {
    tensor = tk_cute_whole(x, tensor, &place);
    if (has_words(x, tensor)) return tk_cute_take_register(x, tensor, place / tk_cute_each(tensor));
    return join_word(x, tensor, gather_word(x, tensor, place));
}

const char *tk_cute_take_pair(tk_cute *x, const tk_kvalue *tensor, int64_t place) {
    tensor = tk_cute_whole(x, tensor, &place);
    if (has_words(x, tensor))
        return part_word(x, tensor, tk_cute_take_register(x, tensor, place / 2));
    return gather_word(x, tensor, place);
}

static const char *element_of(tk_cute *x, const tk_kvalue *tensor, const char *vector, int index) {
    return tk_cute_let(x, "vector.extract %s[%d] : %s from vector<%dx%s>", vector, index,
                       scalar_of(tensor), tk_cute_each(tensor), scalar_of(tensor));
}

void tk_cute_store_word(tk_cute *x, const tk_kvalue *tensor, int64_t place, const char *word) {
    tensor = tk_cute_whole(x, tensor, &place);
    int each = tk_cute_each(tensor);
    if (has_words(x, tensor)) {
        tk_cute_store_register(x, tensor, place / each, word);
        return;
    }
    const char *vector = part_word(x, tensor, word);
    for (int i = 0; i < each; i++)
        tk_cute_store(x, tensor, place + i, element_of(x, tensor, vector, i));
}

/* ---- elements ---- */

const char *tk_cute_take(tk_cute *x, const tk_kvalue *tensor, int64_t place) {
    tensor = tk_cute_whole(x, tensor, &place);
    int each = tk_cute_each(tensor);
    if (!has_words(x, tensor)) return tk_cute_take_register(x, tensor, place);
    const char *vector = part_word(x, tensor, tk_cute_take_word(x, tensor, place));
    return element_of(x, tensor, vector, (int)(place % each));
}

void tk_cute_store(tk_cute *x, const tk_kvalue *tensor, int64_t place, const char *value) {
    tensor = tk_cute_whole(x, tensor, &place);
    int each = tk_cute_each(tensor);
    if (!has_words(x, tensor)) {
        tk_cute_store_register(x, tensor, place, value);
        return;
    }
    const char *vector = part_word(x, tensor, tk_cute_take_word(x, tensor, place));
    vector = tk_cute_let(x, "vector.insert %s, %s [%d] : %s into vector<%dx%s>", value, vector,
                         (int)(place % each), scalar_of(tensor), each, scalar_of(tensor));
    tk_cute_store_word(x, tensor, place, join_word(x, tensor, vector));
}

void tk_cute_put_get(tk_cute *x, const tk_kop *op) {
    const char *elements[16];
    for (int i = 0; i < op->results[0]->type.lanes; i++)
        elements[i] = tk_cute_take(x, op->operands[0], tk_kop_attr(op, TK_KA_index) + i);
    tk_cute_gather(x, op, elements);
}

void tk_cute_put_set(tk_cute *x, const tk_kop *op) {
    for (int i = 0; i < op->operands[1]->type.lanes; i++)
        tk_cute_store(x, op->operands[0], tk_kop_attr(op, TK_KA_index) + i,
                      tk_cute_element(x, op->operands[1], i));
}
