/* ldmatrix, stmatrix and mma.sync on register tensors.
 *
 * Fragments are taken out of the tensor as words of 32 bits and put back; the compiler, which keeps
 * the tensor in registers, has nothing to move. A tensor that is nothing but fragments is kept as
 * words: with its elements apart, a product of 128 x 128 x 32 had twice the operations, and took
 * the compiler a tenth longer. */
#include <inttypes.h>

#include "base/error.h"
#include "kernel/check.h"
#include "target/cute/cute.h"

static tk_kscalar scalar_of(const tk_kop *op, int operand) {
    return (tk_kscalar)op->operands[operand]->type.scalar;
}

static const char *repeated(tk_cute *x, const char *text, int64_t count) {
    const char *list = "";
    for (int64_t i = 0; i < count; i++) list = tk_cute_text(x, "%s%s%s", list, i ? ", " : "", text);
    return list;
}

/* ---- tensors that are nothing but fragments ---- */

static bool is_narrow(const tk_kvalue *tensor) {
    return tk_kscalar_bytes((tk_kscalar)tensor->type.scalar) < 4;
}

static tk_status take_for_words(void *arg, tk_kop *op) {
    tk_cute *x = arg;
    if (op->code != TK_KOP_registers) return TK_OK;
    const tk_kvalue *tensor = op->results[0];
    if (!tk_cute_flies(x, tensor) && is_narrow(tensor) &&
        tk_kregs_size(x->kernel, tensor->type) % tk_cute_each(tensor) == 0)
        x->flights[tensor->id] = TK_CUTE_WORDS;
    return TK_OK;
}

/* The attribute that says where in the tensor the words begin; -1 where it is used otherwise. */
static int place_of_words(const tk_kop *op, uint32_t operand) {
    if (op->code == TK_KOP_load_matrix) return operand == 0 ? TK_KA_index : -1;
    if (op->code == TK_KOP_store_matrix) return operand == 1 ? TK_KA_index : -1;
    if (op->code != TK_KOP_mma) return -1;
    return operand == 1 ? TK_KA_a_index : operand == 2 ? TK_KA_b_index : -1;
}

static tk_status take_back_others(void *arg, tk_kop *op) {
    tk_cute *x = arg;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const tk_kvalue *tensor = op->operands[i];
        if (!tensor || tensor->type.kind != TK_KT_REGISTERS) continue;
        int place = place_of_words(op, i);
        bool as_words = place >= 0 && tk_kop_attr(op, place) % tk_cute_each(tensor) == 0;
        if (!as_words && x->flights[tensor->id] == TK_CUTE_WORDS)
            x->flights[tensor->id] = TK_CUTE_GROUNDED;
    }
    return TK_OK;
}

tk_status tk_cute_find_words(tk_cute *x) {
    TK_TRY(tk_kblock_walk(&x->kernel->body, take_for_words, x));
    return tk_kblock_walk(&x->kernel->body, take_back_others, x);
}

/* ---- ldmatrix, stmatrix ---- */

static const char *layout_of(const tk_kop *op) {
    return tk_kop_attr(op, TK_KA_transposed) ? "col" : "row";
}

void tk_cute_put_load_matrix(tk_cute *x, const tk_kop *op) {
    int64_t count = tk_kop_attr(op, TK_KA_count), index = tk_kop_attr(op, TK_KA_index);
    const tk_kvalue *tensor = op->operands[0];
    const char *type =
        count == 1 ? "i32" : tk_cute_text(x, "!llvm.struct<(%s)>", repeated(x, "i32", count));
    const char *all = tk_cute_let(
        x, "nvvm.ldmatrix %s {num = %" PRId64 " : i32, layout = #nvvm.mma_layout<%s>} : (%s) -> %s",
        tk_cute_operand(x, op, 1), count, layout_of(op), tk_cute_type(x, op->operands[1]->type),
        type);
    for (int64_t i = 0; i < count; i++)
        tk_cute_store_word(
            x, tensor, index + i * tk_cute_each(tensor),
            count == 1 ? all
                       : tk_cute_let(x, "llvm.extractvalue %s[%" PRId64 "] : %s", all, i, type));
}

void tk_cute_put_store_matrix(tk_cute *x, const tk_kop *op) {
    int64_t count = tk_kop_attr(op, TK_KA_count), index = tk_kop_attr(op, TK_KA_index);
    const tk_kvalue *tensor = op->operands[1];
    const char *list = "";
    for (int64_t i = 0; i < count; i++)
        list = tk_cute_text(x, "%s, %s", list,
                            tk_cute_take_word(x, tensor, index + i * tk_cute_each(tensor)));
    tk_cute_line(x, "nvvm.stmatrix %s%s {layout = #nvvm.mma_layout<%s>} : %s, %s",
                 tk_cute_operand(x, op, 0), list, layout_of(op),
                 tk_cute_type(x, op->operands[0]->type), repeated(x, "i32", count));
}

/* ---- mma.sync ---- */

/* Operands of f16 are vectors of two, the others words. */
static const char *fragment(tk_cute *x, const tk_kvalue *tensor, int64_t index, int64_t elements) {
    int each = tk_cute_each(tensor);
    bool half = tensor->type.scalar == TK_K_F16;
    const char *list = "";
    for (int64_t i = 0; i < elements; i += each)
        list = tk_cute_text(x, "%s%s%s", list, i ? ", " : "",
                            half ? tk_cute_take_pair(x, tensor, index + i)
                                 : tk_cute_take_word(x, tensor, index + i));
    return list;
}

/* The accumulator: f32 one by one, f16 in pairs. */
static const char *accumulator(tk_cute *x, const tk_kvalue *tensor, int64_t index,
                               int64_t elements) {
    const char *list = "";
    if (tensor->type.scalar == TK_K_F16) return fragment(x, tensor, index, elements);
    for (int64_t i = 0; i < elements; i++)
        list = tk_cute_text(x, "%s%s%s", list, i ? ", " : "", tk_cute_take(x, tensor, index + i));
    return list;
}

static void put_results(tk_cute *x, const tk_kvalue *tensor, int64_t index, int64_t elements,
                        const char *all, const char *type) {
    bool half = tensor->type.scalar == TK_K_F16;
    for (int64_t i = 0; i < elements; i += half ? 2 : 1) {
        const char *part =
            tk_cute_let(x, "llvm.extractvalue %s[%" PRId64 "] : %s", all, half ? i / 2 : i, type);
        for (int e = 0; e < (half ? 2 : 1); e++)
            tk_cute_store(
                x, tensor, index + i + e,
                half ? tk_cute_let(x, "vector.extract %s[%d] : f16 from vector<2xf16>", part, e)
                     : part);
    }
}

void tk_cute_put_mma(tk_cute *x, const tk_kop *op) {
    enum { D, A, B, C };
    int64_t m = tk_kop_attr(op, TK_KA_m), n = tk_kop_attr(op, TK_KA_n),
            k = tk_kop_attr(op, TK_KA_k), elements = m * n / 32;
    bool half = scalar_of(op, A) == TK_K_F16, narrow = scalar_of(op, D) == TK_K_F16;
    const char *kinds = "", *operand = half ? "vector<2xf16>" : "i32",
               *value = narrow ? "vector<2xf16>" : "f32";
    const char *type =
        tk_cute_text(x, "!llvm.struct<(%s)>", repeated(x, value, narrow ? elements / 2 : elements));
    if (!half)
        kinds = tk_cute_text(x,
                             "multiplicandAPtxType = #nvvm.mma_type<%s>, multiplicandBPtxType = "
                             "#nvvm.mma_type<%s>, ",
                             tk_kscalar_text(scalar_of(op, A)), tk_kscalar_text(scalar_of(op, B)));
    const char *a = fragment(x, op->operands[A], tk_kop_attr(op, TK_KA_a_index), m * k / 32),
               *b = fragment(x, op->operands[B], tk_kop_attr(op, TK_KA_b_index), n * k / 32),
               *c = accumulator(x, op->operands[C], tk_kop_attr(op, TK_KA_c_index), elements);
    const char *all =
        tk_cute_let(x,
                    "nvvm.mma.sync A[%s] B[%s] C[%s] {layoutA = #nvvm.mma_layout<row>, layoutB = "
                    "#nvvm.mma_layout<col>, %sshape = #nvvm.shape<m = %" PRId64 ", n = %" PRId64
                    ", k = %" PRId64 ">} : (%s, %s, %s) -> %s",
                    a, b, c, kinds, m, n, k, operand, operand, value, type);
    put_results(x, op->operands[D], tk_kop_attr(op, TK_KA_d_index), elements, all, type);
}
