/* Checks of memory operations, matrix operations and barriers: what the hardware has. */
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"

static tk_ktype operand(const tk_kop *op, int index) { return op->operands[index]->type; }
static bool has(const tk_kop *op, int index) { return op->operands[index] != NULL; }

static tk_status need_range(const tk_kop *op, tk_kattr_id id, int64_t low, int64_t high,
                            int64_t step) {
    int64_t value = tk_kop_attr(op, id);
    if (value >= low && value <= high && value % step == 0) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                          "%s is %lld, expected %lld to %lld in steps of %lld",
                          tk_kattr_row_of(id)->name, (long long)value, (long long)low,
                          (long long)high, (long long)step);
}

/* ---- loads, stores, atomics ---- */

/* Orders have a scope and weak accesses have none; the values are places in the lists of words. */
enum { ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL };

static tk_status check_order(const tk_kop *op, int64_t refused) {
    int64_t order = tk_kop_attr(op, TK_KA_order), scope = tk_kop_attr(op, TK_KA_scope);
    if (order == refused || (order == ORDER_ACQ_REL && refused != ORDER_WEAK))
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "it cannot have this order");
    if ((order == ORDER_WEAK) == (scope == 0)) return TK_OK;
    return tk_kcheck_fail(
        op, TK_INVALID_ARGUMENT,
        "an order needs a scope (block, cluster, gpu or system), and weak has none");
}

static tk_status check_element(const tk_kernel *kernel, const tk_kop *op, tk_ktype value) {
    if (operand(op, 0).scalar == value.scalar) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s through %s", tk_ktype_words(kernel, value).text,
                          tk_ktype_words(kernel, operand(op, 0)).text);
}

tk_status tk_kcheck_load(const tk_kernel *kernel, const tk_kop *op) {
    enum { CONDITION = 1, OTHER = 2 };
    tk_ktype type = op->results[0]->type;
    TK_TRY(check_element(kernel, op, type));
    TK_TRY(check_order(op, ORDER_RELEASE));
    if (!has(op, OTHER)) return TK_OK;
    if (!has(op, CONDITION))
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "there is an else, but no if");
    if (tk_ktype_equal(operand(op, OTHER), type)) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "else is %s, expected %s",
                          tk_ktype_words(kernel, operand(op, OTHER)).text,
                          tk_ktype_words(kernel, type).text);
}

tk_status tk_kcheck_store(const tk_kernel *kernel, const tk_kop *op) {
    unsigned space = operand(op, 0).space;
    if (space == TK_KS_CONSTANT || space == TK_KS_PARAM)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s memory is not written",
                              tk_kspace_text((tk_kspace)space));
    TK_TRY(check_element(kernel, op, operand(op, 1)));
    return check_order(op, ORDER_ACQUIRE);
}

tk_status tk_kcheck_store_async(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype value = operand(op, 1);
    int64_t bytes = tk_ktype_bytes(value);
    TK_TRY(check_element(kernel, op, value));
    if (value.lanes == 1 && (bytes == 4 || bytes == 8)) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s, expected a number of 4 or 8 bytes",
                          tk_ktype_words(kernel, value).text);
}

static bool is_update_of(const char *word, size_t length, tk_ktype type) {
    bool is_float = type.scalar >= TK_K_F16 && type.scalar <= TK_K_F64;
    return tk_kwords_find(is_float ? "add min max exchange"
                                   : "add smin smax umin umax and or xor exchange compare inc dec",
                          word, length) >= 0;
}

static tk_status check_update(const tk_kernel *kernel, const tk_kop *op) {
    size_t length;
    const char *word = tk_kwords_at(tk_kattr_row_of(TK_KA_update)->words,
                                    (int)tk_kop_attr(op, TK_KA_update), &length);
    if (tk_kop_attr(op, TK_KA_order) == ORDER_WEAK)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                              "an atomic operation has an order and a scope: .relaxed.gpu, say");
    TK_TRY(check_order(op, ORDER_WEAK));
    TK_TRY(check_element(kernel, op, operand(op, 1)));
    if (is_update_of(word, length, operand(op, 1))) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%.*s of %s", (int)length, word,
                          tk_ktype_words(kernel, operand(op, 1)).text);
}

tk_status tk_kcheck_atomic(const tk_kernel *kernel, const tk_kop *op) {
    enum { EXPECTED = 2 };
    size_t length;
    const char *word = tk_kwords_at(tk_kattr_row_of(TK_KA_update)->words,
                                    (int)tk_kop_attr(op, TK_KA_update), &length);
    bool compares = length == 7 && !memcmp(word, "compare", 7);
    TK_TRY(check_update(kernel, op));
    if (compares != has(op, EXPECTED))
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                              "compare, and nothing else, takes an expected value");
    if (operand(op, 1).lanes == 1) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "of a vector: only reduce takes one");
}

tk_status tk_kcheck_reduce(const tk_kernel *kernel, const tk_kop *op) {
    int64_t update = tk_kop_attr(op, TK_KA_update);
    TK_TRY(check_update(kernel, op));
    size_t length;
    const char *word = tk_kwords_at(tk_kattr_row_of(TK_KA_update)->words, (int)update, &length);
    if (tk_kwords_find("exchange compare", word, length) < 0) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%.*s gives a value: use atomic", (int)length,
                          word);
}

/* ---- asynchronous copies ---- */

tk_status tk_kcheck_cp_async(const tk_kernel *kernel, const tk_kop *op) {
    int64_t bytes = tk_kop_attr(op, TK_KA_bytes);
    (void)kernel;
    if (bytes == 4 || bytes == 8 || bytes == 16) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "bytes is %lld, expected 4, 8 or 16",
                          (long long)bytes);
}

tk_status tk_kcheck_groups(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    return need_range(op, TK_KA_groups, 0, 7, 1);
}

tk_status tk_kcheck_tma(const tk_kernel *kernel, const tk_kop *op) {
    bool variadic;
    (void)kernel;
    int coords = (int)op->n_operands - tk_kop_row_slots(tk_kop_row_of(op->code), &variadic);
    if (coords >= 1 && coords <= 5) return TK_OK;
    return tk_kcheck_fail(op, TK_SHAPE_ERROR, "%d coordinates, expected 1 to 5", coords);
}

/* ---- matrices ---- */

static const tk_kvalue *registers_of(const tk_kop *op) {
    return op->operands[0]->type.kind == TK_KT_REGISTERS ? op->operands[0] : op->operands[1];
}

/* Registers of 32 bits that a part of a register tensor takes must be there. */
static tk_status need_registers(const tk_kernel *kernel, const tk_kop *op, const tk_kvalue *tensor,
                                tk_kattr_id first, int64_t bits) {
    int64_t each = 8 * tk_kscalar_bytes((tk_kscalar)tensor->type.scalar),
            from = tk_kop_attr(op, first);
    int64_t size = tk_kregs_size(kernel, tensor->type), need = bits / each;
    if (each > 32)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s, expected elements of 8 to 32 bits",
                              tk_ktype_words(kernel, tensor->type).text);
    if (from >= 0 && from % (each < 32 ? 32 / each : 1) == 0 && from <= size - need) return TK_OK;
    return tk_kcheck_fail(op, TK_INDEX_ERROR, "%lld elements from %s %lld on, of %s",
                          (long long)need, tk_kattr_row_of(first)->name, (long long)from,
                          tk_ktype_words(kernel, tensor->type).text);
}

tk_status tk_kcheck_matrix(const tk_kernel *kernel, const tk_kop *op) {
    int64_t count = tk_kop_attr(op, TK_KA_count);
    if (count != 1 && count != 2 && count != 4)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%lld matrices, expected 1, 2 or 4",
                              (long long)count);
    return need_registers(kernel, op, registers_of(op), TK_KA_index, 32 * count);
}

/* Sizes of mma.sync by the type of A, with 32 lanes. */
typedef struct product {
    uint8_t a, b, d;
    uint8_t m, n, k;
} product;
static const product products[] = {
    {TK_K_F16, TK_K_F16, TK_K_F32, 16, 8, 8},    {TK_K_F16, TK_K_F16, TK_K_F32, 16, 8, 16},
    {TK_K_F16, TK_K_F16, TK_K_F16, 16, 8, 8},    {TK_K_F16, TK_K_F16, TK_K_F16, 16, 8, 16},
    {TK_K_BF16, TK_K_BF16, TK_K_F32, 16, 8, 8},  {TK_K_BF16, TK_K_BF16, TK_K_F32, 16, 8, 16},
    {TK_K_TF32, TK_K_TF32, TK_K_F32, 16, 8, 4},  {TK_K_TF32, TK_K_TF32, TK_K_F32, 16, 8, 8},
    {TK_K_E4M3, TK_K_E4M3, TK_K_F32, 16, 8, 32}, {TK_K_E4M3, TK_K_E5M2, TK_K_F32, 16, 8, 32},
    {TK_K_E5M2, TK_K_E4M3, TK_K_F32, 16, 8, 32}, {TK_K_E5M2, TK_K_E5M2, TK_K_F32, 16, 8, 32},
};

static bool has_product(const tk_kop *op) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *p = &products[i];
        if (p->d == operand(op, 0).scalar && p->a == operand(op, 1).scalar &&
            p->b == operand(op, 2).scalar && p->d == operand(op, 3).scalar &&
            p->m == tk_kop_attr(op, TK_KA_m) && p->n == tk_kop_attr(op, TK_KA_n) &&
            p->k == tk_kop_attr(op, TK_KA_k))
            return true;
    }
    return false;
}

static int64_t bits_of(const tk_kop *op, int index) {
    return 8 * tk_kscalar_bytes((tk_kscalar)operand(op, index).scalar);
}

tk_status tk_kcheck_mma(const tk_kernel *kernel, const tk_kop *op) {
    int64_t m = tk_kop_attr(op, TK_KA_m), n = tk_kop_attr(op, TK_KA_n),
            k = tk_kop_attr(op, TK_KA_k);
    if (!has_product(op))
        return tk_kcheck_fail(op, TK_UNSUPPORTED,
                              "there is no product m%lldn%lldk%lld of %s and %s into %s",
                              (long long)m, (long long)n, (long long)k,
                              tk_kscalar_text((tk_kscalar)operand(op, 1).scalar),
                              tk_kscalar_text((tk_kscalar)operand(op, 2).scalar),
                              tk_kscalar_text((tk_kscalar)operand(op, 0).scalar));
    TK_TRY(need_registers(kernel, op, op->operands[0], TK_KA_d_index, m * n * bits_of(op, 0) / 32));
    TK_TRY(need_registers(kernel, op, op->operands[1], TK_KA_a_index, m * k * bits_of(op, 1) / 32));
    TK_TRY(need_registers(kernel, op, op->operands[2], TK_KA_b_index, n * k * bits_of(op, 2) / 32));
    return need_registers(kernel, op, op->operands[3], TK_KA_c_index, m * n * bits_of(op, 3) / 32);
}

/* By place in the words of a_type: f16 bf16 tf32 e4m3 e5m2 s8 u8. */
enum { OF_F16, OF_BF16, OF_TF32, OF_E4M3, OF_E5M2, OF_S8, OF_U8 };
static const uint8_t operand_scalars[] = {TK_K_F16,  TK_K_BF16, TK_K_TF32, TK_K_E4M3,
                                          TK_K_E5M2, TK_K_I8,   TK_K_I8};

static tk_status check_operand_a(const tk_kernel *kernel, const tk_kop *op, int64_t bits) {
    tk_ktype a = operand(op, 1);
    int64_t type = tk_kop_attr(op, TK_KA_a_type);
    if (tk_kclass_has(TK_KC_I64, a)) return TK_OK;
    if (a.kind != TK_KT_REGISTERS)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR,
                              "a is %s, expected a descriptor (i64) or a register tensor",
                              tk_ktype_words(kernel, a).text);
    if (a.scalar != operand_scalars[type])
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "a is %s, expected elements %s",
                              tk_ktype_words(kernel, a).text,
                              tk_kscalar_text((tk_kscalar)operand_scalars[type]));
    if (tk_kop_attr(op, TK_KA_a_mn))
        return tk_kcheck_fail(op, TK_UNSUPPORTED, "a in registers is K-major");
    return need_registers(kernel, op, op->operands[1], TK_KA_a_index,
                          64 * tk_kop_attr(op, TK_KA_k) * bits / 128);
}

/* Which types go together, and what sums they make. */
static tk_status check_types(const tk_kernel *kernel, const tk_kop *op) {
    int64_t a = tk_kop_attr(op, TK_KA_a_type), b = tk_kop_attr(op, TK_KA_b_type);
    unsigned d = operand(op, 0).scalar;
    bool bytes = (a >= OF_S8 && b >= OF_S8) ||
                 ((a == OF_E4M3 || a == OF_E5M2) && (b == OF_E4M3 || b == OF_E5M2));
    if (operand(op, 0).kind != TK_KT_REGISTERS)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "d is %s, expected a register tensor",
                              tk_ktype_words(kernel, operand(op, 0)).text);
    if (a != b && !bytes)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "the types of a and b do not go together");
    bool half = d == TK_K_F16 && (a == OF_F16 || a == OF_E4M3 || a == OF_E5M2);
    if (a >= OF_S8 ? d == TK_K_I32 : d == TK_K_F32 || half) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "d is %s, which these products do not add up to",
                          tk_ktype_words(kernel, operand(op, 0)).text);
}

/* Sums of integers have fewer widths and signs. */
static tk_status check_integers(const tk_kop *op) {
    int64_t n = tk_kop_attr(op, TK_KA_n);
    if (tk_kop_attr(op, TK_KA_a_type) < OF_S8) return TK_OK;
    if (n > 24 && n % 16)
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                              "n is %lld, of integers above 24 a multiple of 16", (long long)n);
    if (!tk_kop_attr(op, TK_KA_neg_a) && !tk_kop_attr(op, TK_KA_neg_b)) return TK_OK;
    return tk_kcheck_fail(op, TK_UNSUPPORTED, "integers are not negated");
}

tk_status tk_kcheck_wgmma(const tk_kernel *kernel, const tk_kop *op) {
    TK_TRY(check_types(kernel, op));
    int64_t n = tk_kop_attr(op, TK_KA_n),
            bits = 8 * tk_kscalar_bytes((tk_kscalar)operand_scalars[tk_kop_attr(op, TK_KA_a_type)]);
    TK_TRY(need_range(op, TK_KA_m, 64, 64, 64));
    TK_TRY(need_range(op, TK_KA_n, 8, 256, 8));
    TK_TRY(need_range(op, TK_KA_k, 256 / bits, 256 / bits, 1));
    TK_TRY(check_integers(op));
    if (bits != 16 && (tk_kop_attr(op, TK_KA_a_mn) || tk_kop_attr(op, TK_KA_b_mn)))
        return tk_kcheck_fail(op, TK_UNSUPPORTED, "only operands of 16 bits may lie MN-major");
    TK_TRY(check_operand_a(kernel, op, bits));
    return need_registers(kernel, op, op->operands[0], TK_KA_d_index,
                          64 * n * bits_of(op, 0) / 128);
}

/* ---- barriers, fences, warps ---- */

tk_status tk_kcheck_barrier(const tk_kernel *kernel, const tk_kop *op) {
    int64_t least = op->code == TK_KOP_barrier ? 0 : 32;
    (void)kernel;
    TK_TRY(need_range(op, TK_KA_id, 0, 15, 1));
    return need_range(op, TK_KA_threads, least, 1024, 32);
}

tk_status tk_kcheck_fence(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    if (tk_kop_attr(op, TK_KA_scope)) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                          "a fence needs a scope: block, cluster, gpu or system");
}

tk_status tk_kcheck_registers(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    return need_range(op, TK_KA_registers, 24, 256, 8);
}

tk_status tk_kcheck_shuffle(const tk_kernel *kernel, const tk_kop *op) {
    int64_t width = tk_kop_attr(op, TK_KA_width);
    if (width < 1 || width > 32 || (width & (width - 1)))
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                              "width is %lld, expected a power of two up to 32", (long long)width);
    if (tk_ktype_bytes(operand(op, 0)) >= 2) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "of %s, expected 2 to 16 bytes",
                          tk_ktype_words(kernel, operand(op, 0)).text);
}

tk_status tk_kcheck_raw(const tk_kernel *kernel, const tk_kop *op) {
    if (*tk_kop_text(kernel, op, TK_KA_text)) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "the text of the instruction is missing");
}
