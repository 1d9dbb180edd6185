/* The samples of functions: a table of operands and other arguments. Functions whose sample column
 * is a domain make their own, like elementwise primitives.
 *
 * A row lists the array parameters in their order (NO for one that is absent, LIST(n) before the n
 * members of a list), then the other parameters in theirs. Shapes are such that mistaking one axis
 * for another shows. */
#include <assert.h>
#include <string.h>

#include "support/sample_maker.h"

typedef enum kind {
    END,
    FREE,
    FLOAT32S,
    INDICES,
    TRUTHS,
    RANDOM_KEY,
    WORDS,
    BYTES,
    ABSENT,
    MEMBERS,
    MATRIX,
    ONE_TRIANGLE /* a matrix whose derivative no difference of all its elements shows */
} kind;

typedef struct operand {
    kind kind;
    domain domain;
    tk_shape shape;
    int limit; /* of indices; least of bytes; members of a list */
} operand;

typedef struct entry {
    const char *name;
    operand operands[8];
    op_value rest[8];
} entry;

#define DIMS(...)                                                                                  \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), { __VA_ARGS__ }                        \
    }
#define OPERAND(kind, domain, limit, ...)                                                          \
    { kind, domain, DIMS(__VA_ARGS__), limit }
#define X(...) OPERAND(FREE, ANY, 0, __VA_ARGS__)
#define POS(...) OPERAND(FREE, POSITIVE, 0, __VA_ARGS__)
#define OFF(...) OPERAND(FREE, NONZERO, 0, __VA_ARGS__)
#define APART(...) OPERAND(FREE, DISTINCT, 0, __VA_ARGS__)
#define SINGLE(...) OPERAND(FLOAT32S, POSITIVE, 0, __VA_ARGS__)
#define AT(limit, ...) OPERAND(INDICES, ANY, limit, __VA_ARGS__)
#define BITS(...) OPERAND(TRUTHS, ANY, 0, __VA_ARGS__)
#define MAT(...) OPERAND(MATRIX, ANY, 0, __VA_ARGS__)
#define TRI(...) OPERAND(ONE_TRIANGLE, ANY, 0, __VA_ARGS__)
#define CODES(...) OPERAND(WORDS, ANY, 0, __VA_ARGS__)
#define FROM(least, ...) OPERAND(BYTES, ANY, least, __VA_ARGS__)
#define KEY OPERAND(RANDOM_KEY, ANY, 0, 2)
#define LIST(n) OPERAND(MEMBERS, ANY, n, 0)
#define NO OPERAND(ABSENT, ANY, 0, 0)
#define SCALAR(kind, limit)                                                                        \
    { kind, ANY, {0, {0}}, limit }
#define AXES(...)                                                                                  \
    { .axes = DIMS(__VA_ARGS__) }
#define ALL                                                                                        \
    {                                                                                              \
        .axes = {.count = -1 }                                                                     \
    }
#define NONE                                                                                       \
    { .integer = 0 }
#define N(value)                                                                                   \
    { .integer = value }
#define R(value)                                                                                   \
    { .real = value }
#define YES                                                                                        \
    { .flag = true }
#define NOT                                                                                        \
    { .flag = false }
#define TYPE(value)                                                                                \
    { .dtype = value }
#define MODE(value)                                                                                \
    { .mode = value }
#define TEXT(value)                                                                                \
    { .text = value }

/* clang-format off */
static const entry entries[] = {
    {"full", {X(2, 1)}, {AXES(3, 2, 4), TYPE(TK_FLOAT32)}},
    {"tril", {X(2, 3, 4)}, {N(1)}},
    {"tril", {X(4, 3)}, {N(-1)}},
    {"triu", {X(2, 3, 4)}, {N(-1)}},
    {"triu", {X(4, 3)}, {N(1)}},

    {"round", {OFF(2, 3)}, {N(0)}},
    {"clip", {APART(2, 3), SCALAR(FREE, 0), NO}, {NONE}},
    {"clip", {APART(2, 3), NO, SCALAR(FREE, 0)}, {NONE}},
    {"clip", {APART(3, 2), X(2), POS(3, 1)}, {NONE}},
    {"nan_to_num", {X(2, 3)}, {R(0), R(1), R(-1)}},

    {"sum", {X(2, 3, 4)}, {AXES(0, -1), NOT}},
    {"sum", {X(2, 3)}, {ALL, YES}},
    {"prod", {X(2, 3, 2)}, {AXES(1), YES}},
    {"prod", {X(2, 3)}, {ALL, NOT}},
    {"max", {APART(2, 3, 2)}, {AXES(1, 2), NOT}},
    {"max", {APART(5)}, {ALL, YES}},
    {"min", {APART(2, 3, 2)}, {AXES(0), YES}},
    {"any", {X(2, 3)}, {AXES(1), NOT}},
    {"all", {X(2, 3)}, {ALL, NOT}},
    {"mean", {X(2, 3, 4)}, {AXES(2, 0), NOT}},
    {"mean", {X(2, 3)}, {ALL, YES}},
    {"var", {X(2, 3, 4)}, {AXES(1, 2), NOT, N(0)}},
    {"var", {X(2, 5)}, {AXES(-1), YES, N(1)}},
    {"std", {X(2, 3, 4)}, {AXES(1, 2), NOT, N(0)}},
    {"std", {X(4, 3)}, {AXES(0), YES, N(1)}},
    {"argmax", {APART(3, 4)}, {AXES(1), NOT}},
    {"argmax", {APART(3, 2)}, {ALL, YES}},
    {"argmin", {APART(3, 4)}, {AXES(0), YES}},
    {"logsumexp", {X(2, 3, 4)}, {AXES(0, 2), NOT}},
    {"logsumexp", {X(3, 2)}, {ALL, YES}},
    {"softmax", {X(2, 3, 4)}, {AXES(-1)}},
    {"softmax", {X(2, 3)}, {ALL}},
    {"log_softmax", {X(2, 3, 4)}, {AXES(1)}},
    {"log_softmax", {X(2, 3)}, {ALL}},
    {"cumsum", {X(2, 3, 4)}, {N(1), NOT, YES}},
    {"cumsum", {X(5)}, {N(-1), YES, NOT}},
    {"cumprod", {X(2, 4)}, {N(1), YES, YES}},
    {"cumprod", {X(3, 2)}, {N(0), NOT, NOT}},
    {"cummax", {APART(2, 4)}, {N(-1), NOT, YES}},
    {"cummin", {APART(4, 2)}, {N(0), YES, YES}},
    {"logcumsumexp", {X(2, 4)}, {N(1), NOT, YES}},
    {"logcumsumexp", {X(4, 2)}, {N(0), YES, YES}},

    {"matmul", {X(3, 4), X(4, 2)}, {NONE}},
    {"matmul", {X(4), X(2, 4, 3)}, {NONE}},
    {"matmul", {X(2, 1, 3, 2), X(3, 2, 4)}, {NONE}},
    {"matmul", {X(5), X(5)}, {NONE}},
    {"addmm", {X(2), X(3, 4), X(4, 2)}, {R(0.5), R(2)}},
    {"inner", {X(2, 4), X(3, 4)}, {NONE}},
    {"outer", {X(2, 3), X(4)}, {NONE}},
    {"tensordot", {X(2, 3, 4), X(4, 5, 2)}, {AXES(0, 2), AXES(2, 0)}},
    {"einsum", {LIST(2), X(2, 3), X(3, 4)}, {TEXT("ij,jk->ki")}},
    {"einsum", {LIST(1), X(3, 3)}, {TEXT("ii->i")}},
    {"einsum", {LIST(3), X(2, 3), X(3, 4), X(4, 2)}, {TEXT("ij,jk,kl")}},
    {"einsum", {LIST(2), X(2, 3, 4), X(2, 4, 2)}, {TEXT("...ij,...jk->...ik")}},

    {"conv1d", {X(2, 6, 2), X(3, 2, 2)}, {N(2), N(1), N(1), N(1)}},
    {"conv2d", {X(1, 4, 5, 2), X(2, 2, 3, 1)}, {AXES(1, 2), AXES(1, 0), ALL, N(2)}},
    {"conv3d", {X(1, 3, 4, 3, 1), X(2, 2, 1, 2, 1)}, {ALL, AXES(0, 1, 0), AXES(1, 2, 1), N(1)}},
    {"conv_transpose1d", {X(2, 4, 2), X(3, 3, 2)}, {N(2), N(1), N(1), N(1), N(1)}},
    {"conv_transpose2d", {X(1, 3, 2, 2), X(2, 2, 3, 1)}, {AXES(2, 1), AXES(1, 0), ALL, AXES(1, 0), N(2)}},
    {"conv_transpose3d", {X(1, 2, 3, 2, 1), X(2, 2, 1, 2, 1)}, {ALL, ALL, ALL, ALL, N(1)}},
    {"convolve", {X(5), X(3)}, {TEXT("full")}},
    {"convolve", {X(4), X(6)}, {TEXT("same")}},
    {"convolve", {X(6), X(3)}, {TEXT("valid")}},

    {"fft", {X(2, 5)}, {N(-1), N(-1), TEXT("backward")}},
    {"fft", {X(4, 2)}, {N(6), N(0), TEXT("ortho")}},
    {"ifft", {X(2, 5)}, {N(4), N(1), TEXT("forward")}},
    {"rfft", {X(3, 5)}, {N(-1), N(-1), TEXT("backward")}},
    {"rfft", {X(4, 2)}, {N(3), N(0), TEXT("ortho")}},
    {"irfft", {X(2, 4)}, {N(-1), N(-1), TEXT("backward")}},
    {"irfft", {X(3, 2)}, {N(5), N(0), TEXT("forward")}},
    {"fftn", {X(3, 4, 2)}, {ALL, AXES(0, 1), TEXT("ortho")}},
    {"ifftn", {X(2, 3)}, {AXES(3, 2), AXES(1, 0), TEXT("backward")}},
    {"rfftn", {X(3, 4)}, {ALL, ALL, TEXT("backward")}},
    {"irfftn", {X(3, 4)}, {ALL, ALL, TEXT("ortho")}},
    {"fftshift", {X(2, 5)}, {ALL}},
    {"ifftshift", {X(2, 5)}, {AXES(-1)}},
    {"stft", {X(2, 9), POS(4)}, {N(4), N(2), YES, TEXT("reflect"), TEXT("backward"), YES}},
    {"stft", {X(11), NO}, {N(5), N(3), NOT, TEXT("constant"), TEXT("ortho"), NOT}},
    {"istft", {X(2, 3, 4), POS(4)}, {N(4), N(2), YES, TEXT("backward"), YES, N(-1)}},

    {"inv", {MAT(2, 3, 3)}, {NONE}},
    {"tri_inv", {MAT(2, 3, 3)}, {YES}},
    {"tri_inv", {MAT(3, 3)}, {NOT}},
    {"solve", {MAT(2, 3, 3), X(3)}, {NONE}},
    {"solve", {MAT(3, 3), X(2, 3, 2)}, {NONE}},
    {"solve_triangular", {MAT(2, 3, 3), X(3, 2)}, {YES}},
    {"solve_triangular", {MAT(3, 3), X(3)}, {NOT}},
    {"cholesky", {TRI(2, 3, 3)}, {NOT}},
    {"cholesky", {TRI(3, 3)}, {YES}},
    {"cholesky_inv", {MAT(2, 3, 3)}, {NOT}},
    {"cholesky_inv", {MAT(3, 3)}, {YES}},
    {"qr", {MAT(2, 4, 3)}, {NONE}},
    {"qr", {MAT(3, 4)}, {NONE}},
    {"svd", {MAT(2, 3, 3)}, {YES}},
    {"svd", {TRI(4, 3)}, {YES}},
    {"svd", {MAT(3, 4)}, {NOT}},
    {"eigh", {TRI(2, 3, 3)}, {NOT}},
    {"eigvalsh", {TRI(2, 3, 3)}, {YES}},
    {"eig", {TRI(2, 3, 3)}, {NONE}},
    {"eigvals", {TRI(3, 3)}, {NONE}},
    {"lu", {TRI(2, 4, 3)}, {NONE}},
    {"lu_factor", {TRI(3, 4)}, {NONE}},
    {"pinv", {MAT(2, 4, 3)}, {NONE}},
    {"det", {MAT(2, 3, 3)}, {NONE}},
    {"slogdet", {MAT(2, 3, 3)}, {NONE}},
    {"cross", {X(2, 3), X(3)}, {N(-1)}},
    {"cross", {X(2, 4), X(3, 4)}, {N(0)}},
    {"norm", {X(2, 3, 4)}, {R(0.0 / 0.0), ALL, NOT}},
    {"norm", {OFF(3, 4)}, {R(3), AXES(0), YES}},
    {"norm", {MAT(3, 4)}, {R(2), ALL, NOT}},
    {"norm", {POS(2, 3)}, {R(1), AXES(1, 0), NOT}},
    {"norm_nuclear", {MAT(2, 3, 4)}, {AXES(1, 2), YES}},
    {"hadamard_transform", {X(2, 12)}, {R(0.0 / 0.0)}},
    {"hadamard_transform", {X(3, 8)}, {R(0.5)}},
    {"random_multivariate_normal", {X(3), MAT(3, 3), KEY}, {AXES(2), TYPE(TK_FLOAT32)}},

    {"gather_mm", {X(3, 2, 4), X(2, 4, 3), AT(3, 5), AT(2, 5)}, {NONE}},
    {"gather_mm", {X(3, 2, 4), X(2, 4, 3), NO, AT(2, 2, 1)}, {NONE}},
    {"segmented_mm", {X(2, 5), X(5, 3), AT(6, 2, 2)}, {NONE}},
    {"block_masked_mm", {X(3, 5), X(5, 4), X(2, 2), BITS(2, 3), X(3, 2)}, {N(2)}},
    {"block_masked_mm", {X(2, 3, 2), X(2, 3), NO, NO, NO}, {N(2)}},

    {"to_fp8", {X(2, 3)}, {NONE}},
    {"from_fp8", {FROM(40, 2, 3)}, {TYPE(TK_FLOAT32)}},
    {"quantize", {APART(2, 64), NO}, {N(32), N(3), TEXT("affine")}},
    {"quantize", {X(2, 32), NO}, {N(0), N(0), TEXT("nvfp4")}},
    {"dequantize", {CODES(2, 8), POS(2, 2), X(2, 2), NO}, {N(32), N(4), TEXT("affine"), TYPE(TK_DTYPE_COUNT)}},
    {"dequantize", {CODES(2, 4), FROM(50, 2, 2), NO, NO}, {N(0), N(0), TEXT("nvfp4"), TYPE(TK_FLOAT32)}},
    {"quantized_matmul", {X(3, 32), CODES(5, 4), POS(5, 1), X(5, 1)}, {YES, N(32), N(4), TEXT("affine")}},
    {"quantized_matmul", {X(2, 3, 2), CODES(2, 2, 6), POS(2, 2, 2), X(2, 2, 2)}, {NOT, N(32), N(3), TEXT("affine")}},
    {"quantized_matmul", {X(32), CODES(5, 4), FROM(126, 5, 1), NO}, {YES, N(0), N(0), TEXT("mxfp4")}},
    {"gather_qmm", {X(2, 1, 32), CODES(2, 3, 4), POS(2, 3, 1), X(2, 3, 1), AT(2, 3), AT(2, 3), NO}, {YES, N(32), N(4), TEXT("affine")}},
    {"gather_qmm", {X(2, 1, 3), CODES(2, 3, 4), FROM(126, 2, 3, 1), NO, NO, NO, NO}, {NOT, N(0), N(0), TEXT("mxfp4")}},
    {"qqmm", {X(2, 32), X(3, 32), NO, NO, NO}, {N(0), N(0), TEXT("mxfp8")}},
    {"gather_qqmm", {X(2, 1, 32), X(2, 3, 32), NO, NO, NO, NO, NO}, {N(0), N(0), TEXT("nvfp4")}},

    {"reshape", {X(2, 3, 4)}, {AXES(4, -1)}},
    {"flatten", {X(2, 3, 4, 2)}, {N(1), N(-2)}},
    {"unflatten", {X(2, 12)}, {N(1), AXES(3, -1, 2)}},
    {"transpose", {X(2, 3, 4)}, {ALL}},
    {"transpose", {X(2, 3, 4)}, {AXES(1, -1, 0)}},
    {"swapaxes", {X(2, 3, 4)}, {N(0), N(-1)}},
    {"moveaxis", {X(2, 3, 4)}, {N(0), N(2)}},
    {"expand_dims", {X(2, 3)}, {AXES(0, -1)}},
    {"squeeze", {X(2, 1, 3, 1)}, {AXES(-1)}},
    {"squeeze", {X(1, 3, 1)}, {ALL}},
    {"broadcast_to", {X(3, 1)}, {AXES(2, 3, 4)}},
    {"slice", {X(4, 5)}, {AXES(1, -1), AXES(4, 0), AXES(2, -2)}},
    {"slice", {X(4, 3)}, {AXES(0, 1), AXES(9, -1), ALL}},
    {"flip", {X(2, 3, 4)}, {AXES(0, 2)}},
    {"flip", {X(2, 3)}, {ALL}},
    {"concatenate", {LIST(3), X(2, 3), X(2, 1), X(2, 2)}, {N(-1)}},
    {"stack", {LIST(2), X(2, 3), X(2, 3)}, {N(1)}},
    {"split", {X(2, 5)}, {AXES(1, 3), N(-1)}},
    {"split_equal", {X(4, 3)}, {N(2), N(0)}},
    {"pad", {X(2, 3), SCALAR(FREE, 0)}, {AXES(1, 0), AXES(0, 2)}},
    {"pad", {X(2, 3), NO}, {AXES(0, 2), AXES(1, 1)}},
    {"tile", {X(2, 3)}, {AXES(2, 1, 2)}},
    {"repeat", {X(2, 3)}, {N(3), N(0)}},
    {"roll", {X(3, 4)}, {AXES(1, -2), AXES(0, 1)}},
    {"roll", {X(3, 4)}, {AXES(5), ALL}},
    {"view", {X(2, 4)}, {TYPE(TK_FLOAT32)}},

    {"take", {X(4, 3), AT(4, 2, 2)}, {N(0)}},
    {"take", {X(2, 5), SCALAR(INDICES, 5)}, {N(1)}},
    {"take_along_axis", {X(3, 4), AT(4, 3, 2)}, {N(1)}},
    {"put_along_axis", {X(3, 4), AT(4, 3, 2), APART(3, 2)}, {N(1)}},
    {"scatter_add_along_axis", {X(4, 3), AT(4, 2, 3), X(2, 3)}, {N(0)}},
    {"slice_update", {X(4, 5), X(2, 3)}, {AXES(0, 4), AXES(4, -9), AXES(2, -2), MODE(TK_SET)}},
    {"slice_update", {X(4, 5), X(3)}, {AXES(0, 1), AXES(4, 4), ALL, MODE(TK_ADD)}},
    {"slice_update", {X(4, 5), X(4, 1)}, {AXES(0, 1), AXES(4, 4), ALL, MODE(TK_PROD)}},
    {"slice_update", {APART(4), OFF(2)}, {AXES(1), AXES(3), ALL, MODE(TK_MAX)}},
    {"scatter_nd", {X(4, 5), X(3, 1, 5), LIST(1), AT(4, 3)}, {AXES(0), MODE(TK_ADD)}},
    {"scatter_nd", {X(4, 5), X(3, 1, 1), LIST(2), AT(4, 3), AT(5, 3)}, {AXES(0, 1), MODE(TK_ADD)}},
    {"scatter_nd", {X(4, 5), X(2, 1, 5), LIST(1), AT(4, 2)}, {AXES(0), MODE(TK_PROD)}},
    {"sort", {APART(3, 4)}, {N(0)}},
    {"sort", {APART(5)}, {N(-1)}},
    {"argsort", {APART(3, 4)}, {N(1)}},
    {"partition", {APART(3, 5)}, {N(2), N(-1)}},
    {"argpartition", {APART(4, 3)}, {N(1), N(0)}},
    {"topk", {APART(3, 5)}, {N(2), N(-1)}},

    {"diagonal", {X(3, 4)}, {N(0), N(0), N(1)}},
    {"diagonal", {X(3, 2, 4)}, {N(1), N(-1), N(0)}},
    {"diagonal", {X(4, 2, 3)}, {N(-1), N(0), N(2)}},
    {"diag", {X(3)}, {N(1)}},
    {"diag", {X(3)}, {N(-2)}},
    {"diag", {X(3, 4)}, {N(1)}},
    {"trace", {X(3, 4)}, {N(0), N(0), N(1)}},
    {"trace", {X(3, 2, 4)}, {N(-1), N(2), N(0)}},
    {"kron", {X(2, 3), X(3, 2)}, {NONE}},
    {"kron", {X(3), X(2, 2)}, {NONE}},
    {"diff", {X(3, 5)}, {N(1), N(-1)}},
    {"diff", {X(5, 2)}, {N(3), N(0)}},
    {"median", {APART(2, 5)}, {AXES(1), NOT}},
    {"median", {APART(2, 3, 2)}, {AXES(0, 2), YES}},
    {"median", {APART(7)}, {ALL, NOT}},
    {"searchsorted", {POS(5), X(2, 3)}, {NOT}},
    {"searchsorted", {POS(4), X(3)}, {YES}},

    {"unique", {X(2, 3), NO}, {N(4)}},
    {"unique", {APART(5), SCALAR(FREE, 0)}, {N(7)}},
    {"depends", {X(2, 3), LIST(2), X(3), X(4)}, {NONE}},

    {"random_split", {KEY}, {N(3)}},
    {"random_bernoulli", {X(2, 3), KEY}, {ALL}},
    {"random_categorical", {X(2, 3), KEY}, {N(-1), N(-1)}},
    {"random_categorical", {X(3, 2), KEY}, {N(0), N(4)}},
    {"random_permutation", {X(3, 4), KEY}, {N(0)}},
    {"random_permutation", {X(3, 4), KEY}, {N(-1)}},

    {"rms_norm", {X(2, 3, 4), X(4)}, {R(1e-3)}},
    {"rms_norm", {X(3, 4), NO}, {R(1e-3)}},
    {"layer_norm", {X(2, 3, 4), X(4), X(4)}, {R(1e-3)}},
    {"layer_norm", {X(3, 4), NO, X(4)}, {R(1e-3)}},
    {"rope", {X(2, 3, 6), SCALAR(INDICES, 5), NO}, {N(4), NOT, R(100), R(0.75)}},
    {"rope", {X(2, 1, 3, 4), AT(1, 2), SINGLE(2)}, {N(4), YES, R(0), R(1)}},
    {"scaled_dot_product_attention", {X(1, 4, 3, 2), X(1, 2, 5, 2), X(1, 2, 5, 3), NO}, {R(0.6), YES}},
    {"scaled_dot_product_attention", {X(2, 2, 3, 2), X(2, 1, 4, 2), X(2, 1, 4, 2), BITS(2, 1, 3, 4)}, {R(0.6), NOT}},
    {"scaled_dot_product_attention", {X(1, 2, 3, 2), X(1, 2, 4, 2), X(1, 2, 4, 2), X(3, 4)}, {R(0.6), NOT}},
    {"attention_with_sinks", {X(1, 4, 3, 2), X(1, 2, 5, 2), X(1, 2, 5, 3), X(4), NO}, {R(0.6), YES}},
    {"attention_with_sinks", {X(2, 2, 3, 2), X(2, 1, 4, 2), X(2, 1, 4, 2), X(2), BITS(2, 1, 3, 4)}, {R(0.6), NOT}},
    {"gated_delta_update", {X(1, 3, 1, 2), X(1, 3, 1, 2), X(1, 3, 2, 2), X(1, 3, 2), X(1, 3, 2), NO, NO}, {NONE}},
    {"gated_delta_update", {X(2, 2, 2, 2), X(2, 2, 2, 2), X(2, 2, 2, 3), X(2, 2, 2), X(2, 2, 2), X(2, 2, 3, 2), BITS(2, 2)}, {NONE}},
    {"cross_entropy", {X(2, 3, 5), AT(5, 2, 3)}, {NONE}},
};
/* clang-format on */
#define N_ENTRIES (sizeof entries / sizeof entries[0])

static bool is_array(const op_param *param) {
    static const char *const types[] = {"", "array?", "key?", "arrays"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(param->type, types[i])) return true;
    return false;
}

/* ---- rows with a domain ---- */

static void make_elementwise(maker *m, const op_row *row) {
    for (int i = 0; i < row->n_params; i++) {
        m->s->values[i] = (op_value){.real = 1e-2};
        if (!is_array(&row->params[i])) continue;
        if (!strcmp(row->sample, "bools"))
            input_bools(m, TK_SHAPE(2, 2), i ? "0011" : "0101");
        else
            input(m, m->index ? TK_SCALAR : TK_SHAPE(2, 3), domain_of(row->sample));
    }
}

/* ---- rows of the table ---- */

static const entry *find(const op_row *row, int index) {
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (!strcmp(entries[i].name, row->name) && index-- == 0) return &entries[i];
    return NULL;
}

int function_sample_count(const op_row *row) {
    int count = 0;
    if (!strcmp(row->sample, "none")) return 0;
    if (strcmp(row->sample, "own") != 0) return 2;
    while (find(row, count)) count++;
    return count;
}

static int64_t size_of(tk_shape shape) {
    int64_t size = 1;
    for (int64_t i = 0; i < shape.count; i++) size *= shape.items[i];
    return size;
}

/* 2, 0, 4, 1, ...: not in order, some twice. */
static void make_indices(maker *m, const operand *o) {
    int32_t values[64], count = (int32_t)size_of(o->shape);
    assert(count <= 64);
    for (int32_t i = 0; i < count; i++) values[i] = (2 + 3 * i + i / 3) % o->limit;
    input_indices(m, o->shape, values);
}

static void make_operand(maker *m, const operand *o) {
    static const char bits[] = "1011011100110101011011101001011101101110100101101";
    switch (o->kind) {
    case FREE:
        input(m, o->shape, o->domain);
        break;
    case ONE_TRIANGLE:
        m->s->is_derived = true;
        input_matrix(m, o->shape);
        break;
    case MATRIX:
        input_matrix(m, o->shape);
        break;
    case FLOAT32S:
        input_as(m, TK_FLOAT32, o->shape, o->domain);
        break;
    case INDICES:
        make_indices(m, o);
        break;
    case TRUTHS:
        input_bools(m, o->shape, bits);
        break;
    case WORDS:
        input_words(m, o->shape);
        break;
    case BYTES:
        input_bytes(m, o->shape, (uint8_t)o->limit);
        break;
    case RANDOM_KEY:
        input_array(m, tk_random_key(m->context, 3));
        break;
    default:
        break;
    }
}

void function_sample_make(maker *m, const op_row *row) {
    if (strcmp(row->sample, "own") != 0) {
        make_elementwise(m, row);
        return;
    }
    const entry *e = find(row, m->index);
    const operand *o = e->operands;
    const op_value *rest = e->rest;
    for (int i = 0; i < row->n_params; i++) {
        op_value *value = &m->s->values[i];
        if (!is_array(&row->params[i])) {
            *value = *rest++;
            continue;
        }
        bool is_list = o->kind == MEMBERS;
        value->flag = o->kind != ABSENT;
        value->count = is_list ? (size_t)o++->limit : 1;
        for (size_t k = 0; k < value->count; k++) make_operand(m, o++);
    }
}

/* Arrays take the places that their parameters have. */
tk_status function_sample_apply(tk_context *context, const sample *s, const tk_array *inputs,
                                tk_arrays *results) {
    op_value values[OP_PARAMS_MAX];
    memcpy(values, s->values, sizeof values);
    bool is_own = !strcmp(s->function->sample, "own");
    for (int i = 0; i < s->function->n_params; i++) {
        if (!is_array(&s->function->params[i]) || (is_own && !values[i].flag)) continue;
        if (strcmp(s->function->params[i].type, "arrays") != 0) {
            values[i].array = *inputs++;
            continue;
        }
        values[i].arrays = inputs;
        inputs += values[i].count;
    }
    return s->function->call(context, values, results);
}
