/* Dtypes: the table agrees with itself, names are read back, promotion is MLX's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tiki/dtype.h"

/* Row by column, as MLX 0.32 gives maximum(row, column). */
static const char *const promoted[TK_DTYPE_COUNT] = {
    "bool u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 c64",
    "u8 u8 u16 u32 u64 i16 i16 i32 i64 f16 bf16 f32 f64 c64",
    "u16 u16 u16 u32 u64 i32 i32 i32 i64 f16 bf16 f32 f64 c64",
    "u32 u32 u32 u32 u64 i64 i64 i64 i64 f16 bf16 f32 f64 c64",
    "u64 u64 u64 u64 u64 f32 f32 f32 f32 f16 bf16 f32 f64 c64",
    "i8 i16 i32 i64 f32 i8 i16 i32 i64 f16 bf16 f32 f64 c64",
    "i16 i16 i32 i64 f32 i16 i16 i32 i64 f16 bf16 f32 f64 c64",
    "i32 i32 i32 i64 f32 i32 i32 i32 i64 f16 bf16 f32 f64 c64",
    "i64 i64 i64 i64 f32 i64 i64 i64 i64 f16 bf16 f32 f64 c64",
    "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64",
    "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c64",
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64",
};

static void test_promotion(void **state) {
    (void)state;
    for (int row = 0; row < TK_DTYPE_COUNT; row++) {
        char names[128];
        strcpy(names, promoted[row]);
        char *name = strtok(names, " ");
        for (int column = 0; column < TK_DTYPE_COUNT; column++, name = strtok(NULL, " "))
            assert_string_equal(tk_dtype_text(tk_dtype_promote((tk_dtype)row, (tk_dtype)column)),
                                name);
    }
}

static void test_names_are_read_back(void **state) {
    (void)state;
    static const char *const safetensors[] = {
#define SAFETENSORS(id, name, text, size, kind, safetensors, npy) safetensors,
        TK_DTYPES(SAFETENSORS)
#undef SAFETENSORS
    };
    for (int i = 0; i < TK_DTYPE_COUNT; i++) {
        const char *names[] = {tk_dtype_name((tk_dtype)i), tk_dtype_text((tk_dtype)i),
                               safetensors[i]};
        for (int n = 0; n < 3; n++) {
            tk_dtype dtype = TK_DTYPE_COUNT;
            assert_int_equal(tk_dtype_parse(names[n], &dtype), TK_OK);
            assert_int_equal(dtype, i);
        }
    }
    tk_dtype dtype = TK_INT8;
    assert_int_equal(tk_dtype_parse("float33", &dtype), TK_DTYPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "float33"));
    assert_int_equal(dtype, TK_INT8);
}

static void test_kinds_and_sizes(void **state) {
    (void)state;
    assert_int_equal(tk_dtype_size(TK_BOOL), 1);
    assert_int_equal(tk_dtype_size(TK_BFLOAT16), 2);
    assert_int_equal(tk_dtype_size(TK_COMPLEX64), 8);
    for (int i = 0; i < TK_DTYPE_COUNT; i++) {
        tk_dtype dtype = (tk_dtype)i;
        tk_kind kind = tk_dtype_kind(dtype);
        assert_int_equal(tk_dtype_is_float(dtype), kind == TK_KIND_FLOAT);
        assert_int_equal(tk_dtype_is_complex(dtype), kind == TK_KIND_COMPLEX);
        assert_int_equal(tk_dtype_is_inexact(dtype),
                         kind == TK_KIND_FLOAT || kind == TK_KIND_COMPLEX);
        assert_int_equal(tk_dtype_is_integer(dtype),
                         kind == TK_KIND_SIGNED || kind == TK_KIND_UNSIGNED);
    }
}

static void test_no_dtype(void **state) {
    (void)state;
    assert_int_equal(tk_dtype_size(TK_DTYPE_COUNT), 0);
    assert_string_equal(tk_dtype_name(TK_DTYPE_COUNT), "?");
    assert_string_equal(tk_dtype_text(TK_DTYPE_COUNT), "?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promotion),
        cmocka_unit_test(test_names_are_read_back),
        cmocka_unit_test(test_kinds_and_sizes),
        cmocka_unit_test(test_no_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
