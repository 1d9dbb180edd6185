/* Types of kernel values: sizes, classes, text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/half.h"
#include "base/strbuf.h"
#include "kernel/float8.h"
#include "kernel/ir.h"

typedef enum scalar_kind { BOOL, INT, FLOAT, OPAQUE } scalar_kind;

static const struct {
    const char *text;
    int bytes;
    scalar_kind kind;
} scalars[] = {
#define TK_KSCALAR(id, text, bytes, kind, doc) {text, bytes, kind},
#include "tiki/kernel_types.def"
};

static const struct {
    const char *text;
    int address_bytes;
} spaces[] = {
#define TK_KSPACE(id, text, address_bytes, doc) {text, address_bytes},
#include "tiki/kernel_types.def"
};

/* ---- the public face ---- */

/* What is no value of an enum, nor a number of lanes, stays none: it is not cut to one that is. */
static uint8_t to_byte(int value) { return value < 0 || value > 255 ? 255 : (uint8_t)value; }

tk_ktype tk_ktype_scalar(tk_kscalar scalar) { return tk_ktype_vector(scalar, 1); }

tk_ktype tk_ktype_vector(tk_kscalar scalar, int lanes) {
    return (tk_ktype){
        .kind = TK_KT_NUMBER, .scalar = to_byte((int)scalar), .lanes = to_byte(lanes)};
}

tk_ktype tk_ktype_pointer(tk_kscalar element, tk_kspace space) {
    return (tk_ktype){.kind = TK_KT_POINTER,
                      .scalar = to_byte((int)element),
                      .lanes = 1,
                      .space = to_byte((int)space)};
}

const char *tk_kscalar_text(tk_kscalar scalar) {
    return (unsigned)scalar < TK_KSCALAR_COUNT ? scalars[scalar].text : "?";
}

const char *tk_kspace_text(tk_kspace space) {
    return (unsigned)space < TK_KSPACE_COUNT ? spaces[space].text : "?";
}

int tk_kscalar_bytes(tk_kscalar scalar) {
    return (unsigned)scalar < TK_KSCALAR_COUNT ? scalars[scalar].bytes : 0;
}

int tk_ktype_bytes(tk_ktype type) {
    if (type.kind == TK_KT_NUMBER) return tk_kscalar_bytes((tk_kscalar)type.scalar) * type.lanes;
    if (type.kind == TK_KT_POINTER && type.space < TK_KSPACE_COUNT)
        return spaces[type.space].address_bytes;
    return 0;
}

bool tk_ktype_equal(tk_ktype a, tk_ktype b) {
    return a.kind == b.kind && a.scalar == b.scalar && a.lanes == b.lanes && a.space == b.space &&
           a.layout == b.layout && a.tv == b.tv;
}

/* ---- classes ---- */

static scalar_kind kind_of(tk_ktype type) { return scalars[type.scalar].kind; }

static bool is_number(tk_ktype type) {
    return type.kind == TK_KT_NUMBER && kind_of(type) != OPAQUE;
}

static bool is_arithmetic_int(tk_ktype type) {
    return is_number(type) && kind_of(type) == INT && type.scalar != TK_K_I8;
}

static bool is_arithmetic_float(tk_ktype type) {
    return is_number(type) && (type.scalar == TK_K_F16 || type.scalar == TK_K_BF16 ||
                               type.scalar == TK_K_F32 || type.scalar == TK_K_F64);
}

static bool is_scalar(tk_ktype type, tk_kscalar scalar) {
    return type.kind == TK_KT_NUMBER && type.lanes == 1 && type.scalar == scalar;
}

static bool is_pointer_of(tk_ktype type, tk_kscalar scalar) {
    return type.kind == TK_KT_POINTER && type.scalar == scalar;
}

static bool is_in_block(tk_ktype type) {
    return type.space == TK_KS_SHARED || type.space == TK_KS_CLUSTER;
}

bool tk_kclass_has(unsigned class, tk_ktype type) {
    switch ((tk_kclass) class) {
    case TK_KC_NUM:
        return is_arithmetic_int(type) || is_arithmetic_float(type);
    case TK_KC_INT:
        return is_arithmetic_int(type);
    case TK_KC_FLOAT:
        return is_arithmetic_float(type);
    case TK_KC_BITS:
        return is_arithmetic_int(type) || is_scalar(type, TK_K_I1);
    case TK_KC_SMALL:
        return is_number(type);
    case TK_KC_I1:
        return is_scalar(type, TK_K_I1);
    case TK_KC_I32:
        return is_scalar(type, TK_K_I32);
    case TK_KC_I64:
        return is_scalar(type, TK_K_I64);
    case TK_KC_INDEX:
        return is_scalar(type, TK_K_I32) || is_scalar(type, TK_K_I64);
    case TK_KC_PTR:
        return type.kind == TK_KT_POINTER;
    case TK_KC_PTR_SHARED:
        return type.kind == TK_KT_POINTER && is_in_block(type);
    case TK_KC_PTR_GLOBAL:
        return type.kind == TK_KT_POINTER && type.space == TK_KS_GLOBAL;
    case TK_KC_MBAR:
        return is_pointer_of(type, TK_K_MBAR) && is_in_block(type);
    case TK_KC_TMAP:
        return is_pointer_of(type, TK_K_TMAP);
    case TK_KC_VIEW:
        return type.kind == TK_KT_VIEW;
    case TK_KC_REGS:
        return type.kind == TK_KT_REGISTERS;
    case TK_KC_SHARED:
        return type.kind == TK_KT_SHARED;
    case TK_KC_LAYOUT:
        return type.kind == TK_KT_LAYOUT;
    case TK_KC_TILE:
        return type.kind == TK_KT_VIEW || type.kind == TK_KT_REGISTERS;
    case TK_KC_VALUE:
        return type.kind != TK_KT_NONE;
    default:
        return false;
    }
}

const char *tk_kclass_words(unsigned class) {
    static const char *const words[] = {
        [TK_KC_NUM] = "an i16 to i64, f16, bf16, f32 or f64, or a vector of them",
        [TK_KC_INT] = "an i16, i32 or i64, or a vector of them",
        [TK_KC_FLOAT] = "an f16, bf16, f32 or f64, or a vector of them",
        [TK_KC_BITS] = "an i1, i16, i32 or i64",
        [TK_KC_SMALL] = "a number or a vector",
        [TK_KC_I1] = "an i1",
        [TK_KC_I32] = "an i32",
        [TK_KC_I64] = "an i64",
        [TK_KC_INDEX] = "an i32 or i64",
        [TK_KC_PTR] = "a pointer",
        [TK_KC_PTR_SHARED] = "a pointer to shared memory",
        [TK_KC_PTR_GLOBAL] = "a pointer to global memory",
        [TK_KC_MBAR] = "a pointer to an mbarrier in shared memory",
        [TK_KC_TMAP] = "a pointer to a tensor map",
        [TK_KC_VIEW] = "a view",
        [TK_KC_REGS] = "a register tensor",
        [TK_KC_SHARED] = "a shared buffer",
        [TK_KC_LAYOUT] = "a layout",
        [TK_KC_TILE] = "a view or a register tensor",
        [TK_KC_VALUE] = "a value",
        [TK_KC_SAME] = "the type of the first operand",
        [TK_KC_SAME1] = "the type of the second operand",
        [TK_KC_I32S] = "i32 with as many lanes as the first operand",
    };
    return words[class];
}

/* ---- constants ---- */

uint64_t tk_kscalar_bits(tk_kscalar scalar, double value) {
    uint64_t bits;
    switch (scalar) {
    case TK_K_F16:
        return tk_f64_to_f16(value);
    case TK_K_BF16:
        return tk_f64_to_bf16(value);
    case TK_K_E4M3:
        return tk_f64_to_e4m3(value);
    case TK_K_E5M2:
        return tk_f64_to_e5m2(value);
    case TK_K_F32:
        return tk_float_bits((float)value);
    case TK_K_TF32:
        return tk_f64_to_tf32(value);
    default:
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
}

double tk_kscalar_value(tk_kscalar scalar, uint64_t bits) {
    double value;
    switch (scalar) {
    case TK_K_F16:
        return (double)tk_f16_to_f32((uint16_t)bits);
    case TK_K_BF16:
        return (double)tk_bf16_to_f32((uint16_t)bits);
    case TK_K_E4M3:
        return (double)tk_e4m3_to_f32((uint8_t)bits);
    case TK_K_E5M2:
        return (double)tk_e5m2_to_f32((uint8_t)bits);
    case TK_K_F32:
    case TK_K_TF32:
        return (double)tk_bits_float((uint32_t)bits);
    default:
        memcpy(&value, &bits, sizeof value);
        return value;
    }
}

/* ---- text ---- */

static void put_layout(const tk_kernel *kernel, uint32_t number, tk_strbuf *out) {
    const tk_composed *layout = kernel->layouts.items[number - 1];
    size_t length = tk_composed_print(layout, NULL, 0);
    char *text = tk_malloc(length + 1);
    if (!text) {
        out->failed = true;
        return;
    }
    tk_composed_print(layout, text, length + 1);
    tk_strbuf_printf(out, "\"%s\"", text);
    tk_free(text);
}

void tk_ktype_put(const tk_kernel *kernel, tk_ktype type, tk_strbuf *out) {
    static const char *const words[] = {"no type", "", "ptr", "layout", "view", "shared", "regs"};
    const char *scalar = tk_kscalar_text((tk_kscalar)type.scalar);
    if (type.kind == TK_KT_NUMBER) {
        tk_strbuf_puts(out, scalar);
        if (type.lanes > 1) tk_strbuf_printf(out, "x%d", type.lanes);
        return;
    }
    tk_strbuf_puts(out, words[type.kind]);
    if (type.kind == TK_KT_NONE) return;
    const char *between = "<";
    if (type.kind != TK_KT_LAYOUT) tk_strbuf_printf(out, "<%s", scalar), between = ", ";
    if (type.kind == TK_KT_POINTER || type.kind == TK_KT_VIEW)
        tk_strbuf_printf(out, ", %s", tk_kspace_text((tk_kspace)type.space));
    if (type.layout) tk_strbuf_puts(out, between), put_layout(kernel, type.layout, out);
    if (type.tv) tk_strbuf_puts(out, ", "), put_layout(kernel, type.tv, out);
    tk_strbuf_putc(out, '>');
}

tk_ktype_text tk_ktype_words(const tk_kernel *kernel, tk_ktype type) {
    tk_ktype_text words = {{0}};
    tk_strbuf out = {0};
    tk_ktype_put(kernel, type, &out);
    snprintf(words.text, sizeof words.text, "%s", out.text ? out.text : "?");
    tk_strbuf_deinit(&out);
    return words;
}
