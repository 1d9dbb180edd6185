/* Products and einsum: vectors, broadcasting, contractions over any axes, orders, refusals that
 * name the character. Integer values, so that every order of summation gives the same numbers. */
#include "support/build_check.h"

#define M(...) mixed(ctx, TK_FLOAT32, TK_SHAPE(__VA_ARGS__))

static void matrices_and_vectors(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_matmul(M(3), M(3)), TK_FLOAT32, TK_SCALAR, 33);
    CHECK(tk_matmul(M(3), M(3, 2)), TK_FLOAT32, TK_SHAPE(2), 19, 6);
    CHECK(tk_matmul(M(2, 3), M(3)), TK_FLOAT32, TK_SHAPE(2), 33, -17);
    CHECK(tk_matmul(M(2, 2, 3), M(3, 2)), TK_FLOAT32, TK_SHAPE(2, 2, 2), 19, 6, -30, 24, -24, 20,
          -18, 16);
    CHECK(tk_matmul(M(2, 3), M(2, 3, 2)), TK_FLOAT32, TK_SHAPE(2, 2, 2), 19, 6, -30, 24, -26, 16,
          19, 18);
    CHECK(tk_matmul(M(2, 1, 1, 3), M(2, 3, 1)), TK_FLOAT32, TK_SHAPE(2, 2, 1, 1), 33, -17, -17, 35);
    CHECK(tk_matmul(M(2, 2, 3), M(3)), TK_FLOAT32, TK_SHAPE(2, 2), 33, -17, -12, -7);
    CHECK(tk_matmul(tk_full(tk_scalar_int(ctx, 100), TK_SHAPE(3), TK_UINT8),
                    tk_ones(ctx, TK_SHAPE(3), TK_UINT8)),
          TK_UINT8, TK_SCALAR, 44);
    CHECK(
        tk_matmul(tk_zeros(ctx, TK_SHAPE(2, 0), TK_INT8), tk_zeros(ctx, TK_SHAPE(0, 2), TK_INT16)),
        TK_INT16, TK_SHAPE(2, 2), 0, 0, 0, 0);
    CHECK_ERROR(tk_matmul(M(2, 3), M(2, 3)), TK_SHAPE_ERROR,
                "matmul: operands are f32(2, 3) and f32(2, 3): 3 columns meet 2 rows");
    CHECK_ERROR(tk_matmul(M(2, 2, 3), M(3, 3, 2)), TK_SHAPE_ERROR,
                "matmul: operands are f32(2, 2, 3) and f32(3, 3, 2): leading lengths 2 and 3");
    CHECK_ERROR(tk_matmul(tk_scalar(ctx, 1), M(2)), TK_SHAPE_ERROR, "expected no scalars");
    tk_array truth = tk_ones(ctx, TK_SHAPE(2), TK_BOOL);
    CHECK_ERROR(tk_matmul(truth, truth), TK_DTYPE_ERROR, "matmul: operands are bool");
    tk_scope_close(scope);
}

static void sums_of_products(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_addmm(M(2), M(2, 3), M(3, 2), 2, -1), TK_FLOAT32, TK_SHAPE(2, 2), 43, 10, -55, 46);
    CHECK_ERROR(tk_addmm(M(3), M(2, 3), M(3, 2), 1, 1), TK_SHAPE_ERROR, "addmm: c is f32(3,)");
    CHECK_ERROR(tk_addmm(M(2), M(2, 3), M(2, 3), 1, 1), TK_SHAPE_ERROR, "addmm: operands are");
    CHECK(tk_inner(M(2, 3), M(1, 2, 3)), TK_FLOAT32, TK_SHAPE(2, 1, 2), 33, -17, -17, 35);
    CHECK(tk_inner(tk_scalar(ctx, 2), M(3)), TK_FLOAT32, TK_SHAPE(3), -10, 4, -4);
    CHECK(tk_outer(M(2, 2), M(3)), TK_FLOAT32, TK_SHAPE(4, 3), 25, -10, 10, -10, 4, -4, 10, -4, 4,
          -25, 10, -10);
    CHECK(tk_tensordot(M(2, 3, 2), M(2, 2, 3), TK_AXES(1, -1), TK_AXES(2, 0)), TK_FLOAT32,
          TK_SHAPE(2, 2), 39, -14, -6, 41);
    tk_axes none = {.count = 0};
    CHECK(tk_tensordot(M(2), M(2), none, none), TK_FLOAT32, TK_SHAPE(2, 2), 25, -10, -10, 4);
    CHECK_ERROR(tk_tensordot(M(2, 3), M(2, 3), TK_AXES(0), TK_AXES(1)), TK_SHAPE_ERROR,
                "tensordot: axis 0 of f32(2, 3)");
    CHECK_ERROR(tk_tensordot(M(2, 3), M(2, 3), TK_AXES(0, 1), TK_AXES(1)), TK_INVALID_ARGUMENT,
                "tensordot: 2 axes");
    CHECK_ERROR(tk_tensordot(M(2), M(2), TK_AXES(1), TK_AXES(0)), TK_AXIS_ERROR,
                "tensordot: axis 1");
    tk_scope_close(scope);
}

static tk_array einsum1(const char *text, tk_array a) { return tk_einsum(text, &a, 1); }

static tk_array einsum2(const char *text, tk_array a, tk_array b) {
    tk_array operands[] = {a, b};
    return tk_einsum(text, operands, 2);
}

static tk_array einsum3(const char *text, tk_array a, tk_array b, tk_array c) {
    tk_array operands[] = {a, b, c};
    return tk_einsum(text, operands, 3);
}

static void einsum_of_one(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(einsum1("ji", M(2, 3)), TK_FLOAT32, TK_SHAPE(3, 2), -5, 5, 2, 1, -2, -3);
    CHECK(einsum1("BA", M(2, 3)), TK_FLOAT32, TK_SHAPE(3, 2), -5, 5, 2, 1, -2, -3);
    CHECK(einsum1("aB", M(2, 3)), TK_FLOAT32, TK_SHAPE(3, 2), -5, 5, 2, 1, -2, -3);
    CHECK(einsum1("ii", M(3, 3)), TK_FLOAT32, TK_SCALAR, -8);
    CHECK(einsum1("ii -> i", M(3, 3)), TK_FLOAT32, TK_SHAPE(3), -5, 1, -4);
    CHECK(einsum1("iji->j", M(2, 3, 2)), TK_FLOAT32, TK_SHAPE(3), -5, 1, -4);
    CHECK(einsum1("ijij->ji", M(2, 3, 2, 3)), TK_FLOAT32, TK_SHAPE(3, 2), -5, -1, 0, 4, 5, -2);
    CHECK(einsum1("iii->", M(2, 2, 2)), TK_FLOAT32, TK_SCALAR, -5);
    CHECK(einsum1("cacb->bc", M(2, 1, 2, 2)), TK_FLOAT32, TK_SHAPE(2, 2), -5, 4, 2, 0);
    CHECK(einsum1("...i->i...", M(2, 1, 3)), TK_FLOAT32, TK_SHAPE(3, 2, 1), -5, 5, 2, 1, -2, -3);
    CHECK(einsum1("i...->...", M(2, 3)), TK_FLOAT32, TK_SHAPE(3), 0, 3, -5);
    CHECK(einsum1("i->", tk_full(tk_scalar_int(ctx, 100), TK_SHAPE(3), TK_INT8)), TK_INT32,
          TK_SCALAR, 300);
    tk_array a = M(2, 3);
    CHECK_SAME(einsum1("ij->ij", a), a);
    tk_scope_close(scope);
}

static void einsum_of_several(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(einsum2("ij,jk", M(2, 3), M(3, 2)), TK_FLOAT32, TK_SHAPE(2, 2), 19, 6, -30, 24);
    CHECK(einsum2("i,j->ji", M(2), M(3)), TK_FLOAT32, TK_SHAPE(3, 2), 25, -10, -10, 4, 10, -4);
    CHECK(einsum2("bij,bkj->bki", M(2, 2, 3), M(2, 1, 3)), TK_FLOAT32, TK_SHAPE(2, 1, 2), 33, -17,
          32, 29);
    CHECK(einsum2("...ij,...jk->...ik", M(2, 1, 1, 2), M(2, 2, 1)), TK_FLOAT32,
          TK_SHAPE(2, 2, 1, 1), 29, 20, 20, 29);
    CHECK(einsum2("ij,ij->", M(1, 3), M(2, 3)), TK_FLOAT32, TK_SCALAR, 16);
    CHECK(einsum2("ij,kl->k", M(2, 3), M(2, 2)), TK_FLOAT32, TK_SHAPE(2), 6, -6);
    CHECK(einsum2("ij,ji->", tk_zeros(ctx, TK_SHAPE(0, 3), TK_FLOAT32),
                  tk_zeros(ctx, TK_SHAPE(3, 0), TK_FLOAT32)),
          TK_FLOAT32, TK_SCALAR, 0);
    CHECK(einsum3("ij,jk,kl->il", M(2, 3), M(3, 2), M(2, 1)), TK_FLOAT32, TK_SHAPE(2, 1), -83, 198);
    CHECK(einsum3("i,ij,j", M(2), M(2, 3), M(3)), TK_FLOAT32, TK_SCALAR, -199);
    CHECK(einsum3("ab,ac,ad->bcd", M(3, 2), M(3, 1), M(3, 2)), TK_FLOAT32, TK_SHAPE(2, 1, 2), -119,
          36, 36, 12);
    CHECK(einsum3("i,i,i->i", M(3), M(3), M(3)), TK_FLOAT32, TK_SHAPE(3), -125, 8, -8);
    CHECK(einsum2("i,i", mixed(ctx, TK_INT8, TK_SHAPE(3)), M(3)), TK_FLOAT32, TK_SCALAR, 33);
    tk_scope_close(scope);
}

/* From the left, an outer product of 10^12 elements would have to be held. */
static void einsum_chooses_the_order(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array column = tk_ones(ctx, TK_SHAPE(1000000), TK_FLOAT32),
             row = tk_ones(ctx, TK_SHAPE(1000000), TK_FLOAT32);
    CHECK_NEAR(einsum3("i,j,j->", column, row, row), TK_FLOAT32, TK_SCALAR, 1e-6, 1000000000000);
    tk_scope_close(scope);
}

static void einsum_refuses(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array a = M(2, 3), square = M(3, 3);
    CHECK_ERROR(einsum2("ij,jk", a, a), TK_SHAPE_ERROR, "einsum: 'j' has lengths 3 and 2");
    CHECK_ERROR(einsum1("ii", a), TK_SHAPE_ERROR, "einsum: 'i' has lengths 2 and 3");
    CHECK_ERROR(einsum1("ii", M(1, 3)), TK_SHAPE_ERROR, "einsum: 'i' has lengths 1 and 3");
    CHECK_ERROR(einsum2("...i,...i", a, square), TK_SHAPE_ERROR, "einsum: ... has lengths 2 and 3");
    CHECK_ERROR(einsum1("i", a), TK_SHAPE_ERROR,
                "einsum: operand 0 is f32(2, 3), its subscripts have 1 letters");
    CHECK_ERROR(einsum1("ij->k", a), TK_INVALID_ARGUMENT,
                "einsum: output label 'k' is in no operand");
    CHECK_ERROR(einsum1("ii->ii", square), TK_INVALID_ARGUMENT,
                "einsum: output label 'i' is given twice");
    CHECK_ERROR(einsum1("i!", a), TK_INVALID_ARGUMENT, "unexpected character '!'");
    CHECK_ERROR(einsum1("i\x01", a), TK_INVALID_ARGUMENT, "unexpected character 0x01");
    CHECK_ERROR(einsum1("i..j", a), TK_INVALID_ARGUMENT, "unexpected character '.'");
    CHECK_ERROR(einsum1("...i...", a), TK_INVALID_ARGUMENT, "given twice");
    CHECK_ERROR(einsum1("ij-", a), TK_INVALID_ARGUMENT, "unexpected character '-'");
    CHECK_ERROR(einsum1("ij->i,j", a), TK_INVALID_ARGUMENT, "unexpected character ','");
    CHECK_ERROR(einsum1("...i->i", a), TK_INVALID_ARGUMENT, "the output has no");
    CHECK_ERROR(einsum1("ij,jk", a), TK_INVALID_ARGUMENT, "more operands than the 1 given");
    CHECK_ERROR(einsum2("ij", a, a), TK_INVALID_ARGUMENT, "subscripts of 1 operands, 2 given");
    CHECK_ERROR(einsum1("abcdefghijklmnopq", a), TK_INVALID_ARGUMENT, "more than 16 letters");
    tk_array truth = tk_ones(ctx, TK_SHAPE(2), TK_BOOL);
    CHECK_ERROR(einsum2("i,i", truth, truth), TK_DTYPE_ERROR, "einsum: a contraction of bool");
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_and_vectors),
        cmocka_unit_test(sums_of_products),
        cmocka_unit_test(einsum_of_one),
        cmocka_unit_test(einsum_of_several),
        cmocka_unit_test(einsum_chooses_the_order),
        cmocka_unit_test(einsum_refuses),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
