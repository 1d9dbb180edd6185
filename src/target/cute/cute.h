/* Inside the CuTe target: how an operation writes itself as CuTe MLIR.
 *
 * The text is that of NVIDIA's CuTe compiler 4.8: views and layouts are values of the `cute`
 * dialect, the rest is `arith`, `math`, `vector`, `scf`, `llvm` and `nvvm`. Names of the kernel are
 * kept (`%x` is `%x`); what has no name is `%$12`, what the text needs for itself `%$t3`, constants
 * are `%$c7`: no name of a kernel holds a `$`. A register tensor is a `cute.memref` in registers,
 * which the compiler promotes to values.
 *
 * A row of forms.def gives an operation's form or names a function tk_cute_put_x, which writes
 * lines with tk_cute_line and fails with tk_cute_fail. Text that lives as long as the print comes
 * from the arena and is never freed by the caller. */
#ifndef TARGET_CUTE_CUTE_H
#define TARGET_CUTE_CUTE_H

#include "base/vec.h"
#include "kernel/ir.h"
#include "kernel/names.h"
#include "kernel/shared.h"

/* What a form is made of. */
typedef enum tk_cute_class {
    TK_CUTE_NONE,   /* refused by name */
    TK_CUTE_LAYOUT, /* operations of the cute dialect */
    TK_CUTE_MLIR,   /* operations of other dialects */
    TK_CUTE_PTX,    /* an instruction as text */
    TK_CUTE_CLASSES
} tk_cute_class;

/* Of a view or layout: what its addresses are made of. Layouts are values of the text, with the
 * text of their types behind them. */
typedef struct tk_cute_view {
    const char *base;               /* an LLVM pointer; NULL for a layout alone */
    const char *memref, *of_memref; /* the view; NULL where there is none */
    const char *layout, *type;      /* the whole layout; type: "!cute.layout<...>" */
    const char *outer, *of_outer;   /* behind a swizzle, or the whole; of_outer: its text alone */
    const char *swizzle, *offset;   /* with a swizzle, else NULL */
    const tk_composed *known;       /* as the text says it */
} tk_cute_view;

/* What wgmma makes of a register tensor. */
typedef enum tk_cute_flight {
    TK_CUTE_GROUNDED,       /* nothing */
    TK_CUTE_FLIES,          /* one register for each element */
    TK_CUTE_FLIES_AS_WORDS, /* kept as words of 32 bits for its life */
    TK_CUTE_WORDS           /* the same of one that no wgmma uses, all of whose uses are words */
} tk_cute_flight;

/* Where a line of the text comes from. */
typedef struct tk_cute_place {
    tk_kloc loc;
    uint16_t code; /* TK_KOP_COUNT: no operation */
} tk_cute_place;

typedef struct tk_cute {
    const tk_kernel *kernel;
    bool lines; /* locations in the text */
    tk_strbuf body;
    TK_VEC(tk_cute_place) places; /* of each line of the body */
    int depth;                    /* of regions */
    uint32_t temps;
    tk_arena arena;
    const char **names; /* by value id */
    tk_knames taken;    /* names of the kernel's values, those that come again with a number */
    tk_knames made;     /* by their text, names of what is made once */
    TK_VEC(const char *) open; /* texts of those in regions that are open, NULL where one begins */
    tk_cute_view *views;       /* by value id */
    struct tk_cute_part {
        const tk_kvalue *whole;
        int64_t from;
    } * parts;                        /* by value id, of cut register tensors */
    int64_t *shared_at;               /* by value id */
    tk_cute_flight *flights;          /* by value id, of register tensors */
    TK_VEC(const tk_kvalue *) flying; /* declared so far in the blocks that are open */
    tk_kshared_map shared;
    const tk_kop *op; /* being written, NULL outside of the body */
    tk_status status; /* the first error */
} tk_cute;

#define BY(name) void tk_cute_put_##name(tk_cute *x, const tk_kop *op);
#define SAME(integer, floating)
#define INTRINSIC(name)
#define INLINE(text)
#define REFUSE(why)
#define TK_CUTE(op, class, how) how
#include "target/cute/forms.def"
#undef TK_CUTE
#undef REFUSE
#undef INLINE
#undef INTRINSIC
#undef SAME
#undef BY

/* What the form of an operation is made of. */
tk_cute_class tk_cute_class_of(tk_kopcode code);

/* ---- names and types ---- */

/* "%x"; of a constant too. */
const char *tk_cute_name(tk_cute *x, const tk_kvalue *value);
static inline const char *tk_cute_operand(tk_cute *x, const tk_kop *op, int index) {
    return tk_cute_name(x, op->operands[index]);
}
static inline const char *tk_cute_result(tk_cute *x, const tk_kop *op) {
    return tk_cute_name(x, op->results[0]);
}

/* The value goes by another's name from now on. */
void tk_cute_alias(tk_cute *x, const tk_kvalue *value, const char *name);

/* A new name for the text's own use. */
const char *tk_cute_temp(tk_cute *x);

/* "f32", "vector<4xf32>", "!llvm.ptr<1>"; tf32 is f32, floats of 8 bits are i8. */
const char *tk_cute_type(tk_cute *x, tk_ktype type);
const char *tk_cute_scalar(tk_kscalar scalar);

/* The LLVM address space of pointers. */
int tk_cute_space(tk_kspace space);

/* printf into the arena. */
const char *tk_cute_text(tk_cute *x, const char *format, ...) TK_PRINTF(2, 3);

/* An integer constant: its name. */
const char *tk_cute_constant(tk_cute *x, int64_t value, const char *type);

/* ---- lines ---- */

/* One line of the body. */
void tk_cute_line(tk_cute *x, const char *format, ...) TK_PRINTF(2, 3);

/* `temp = format`: gives the temporary's name. */
const char *tk_cute_let(tk_cute *x, const char *format, ...) TK_PRINTF(2, 3);

/* The same, unless a region that is open has that line: then its name. For what has no effects. */
const char *tk_cute_once(tk_cute *x, const char *format, ...) TK_PRINTF(2, 3);

/* The lines between are a region, one step further in. */
void tk_cute_open(tk_cute *x);
void tk_cute_close(tk_cute *x);

/* The same under a name that is given, or a new one for NULL. */
const char *tk_cute_let_as(tk_cute *x, const char *name, const char *format, ...) TK_PRINTF(3, 4);

/* Keeps the first error, with operation and line before the message. */
void tk_cute_fail(tk_cute *x, const tk_kop *op, const char *format, ...) TK_PRINTF(3, 4);

/* The operations of a block, one step further in. */
void tk_cute_block(tk_cute *x, const tk_kblock *block);

/* "%a, %b", and "f32, i32"; "" for none. */
const char *tk_cute_list(tk_cute *x, uint32_t count, tk_kvalue *const *values);
const char *tk_cute_types(tk_cute *x, uint32_t count, tk_kvalue *const *values);

static inline bool tk_cute_is_float(tk_ktype type) {
    return type.kind == TK_KT_NUMBER && type.scalar >= TK_K_F16 && type.scalar <= TK_K_F64;
}

/* A vector's element by number, and the value itself of a scalar. */
const char *tk_cute_element(tk_cute *x, const tk_kvalue *value, int index);

/* An element of a register tensor by its place, and setting it. */
const char *tk_cute_take(tk_cute *x, const tk_kvalue *tensor, int64_t place);
void tk_cute_store(tk_cute *x, const tk_kvalue *tensor, int64_t place, const char *value);

/* The whole tensor that a cut one is part of, and its place there instead of that in the part. */
const tk_kvalue *tk_cute_whole(const tk_cute *x, const tk_kvalue *tensor, int64_t *place);

/* Registers of a whole tensor as they are kept: elements, or words of 32 bits. */
int64_t tk_cute_registers(const tk_cute *x, const tk_kvalue *tensor);
const char *tk_cute_register_type(const tk_cute *x, const tk_kvalue *tensor);
const char *tk_cute_take_register(tk_cute *x, const tk_kvalue *tensor, int64_t index);
void tk_cute_store_register(tk_cute *x, const tk_kvalue *tensor, int64_t index, const char *value);

/* How many elements are a word, and the word of 32 bits from an element on, which begins one. */
int tk_cute_each(const tk_kvalue *tensor);
const char *tk_cute_take_word(tk_cute *x, const tk_kvalue *tensor, int64_t place);
void tk_cute_store_word(tk_cute *x, const tk_kvalue *tensor, int64_t place, const char *word);

/* Two halves as a vector. */
const char *tk_cute_take_pair(tk_cute *x, const tk_kvalue *tensor, int64_t place);

/* The result's name where it is one element, which may then be made under it; else NULL. */
const char *tk_cute_own_name(tk_cute *x, const tk_kop *op);

/* ---- views ---- */

/* A layout's text without divisors of its dynamic leaves, and a tuple's with them. */
const char *tk_cute_layout_text(tk_cute *x, const tk_layout *layout);
const char *tk_cute_tuple_text(tk_cute *x, const tk_tuple *tuple);

/* A tuple of the dialect's kind ("shape", "stride", "coord", "int_tuple") from its dynamic leaves,
 * and its text. */
const char *tk_cute_tuple(tk_cute *x, const char *kind, const tk_tuple *tuple,
                          tk_kvalue *const *leaves, const char **out_text);

/* What `crd2idx` gives, as an integer of the width that its leaves need, which is told. */
const char *tk_cute_index(tk_cute *x, const char *coord, const char *coord_text, const char *layout,
                          const char *type, const char **out_width);

/* "!cute.ptr<f32, gmem, align<4>>" of a view's type. */
const char *tk_cute_iterator_type(tk_cute *x, tk_ktype type);

/* The view of an operation's result: made from base and layout under the result's name. */
void tk_cute_make_view(tk_cute *x, const tk_kop *op, tk_cute_view view);

/* Puts swizzle, offset and outer layout together: fills `layout` and `type`. */
void tk_cute_join_layout(tk_cute *x, tk_cute_view *view, const char *offset_text);

/* Elements as the value of an operation's result: from_elements for a vector. */
void tk_cute_gather(tk_cute *x, const tk_kop *op, const char *const *elements);

/* ---- instructions as text ---- */

/* A value in a register, by the type that it has there. */
typedef struct tk_cute_value {
    const char *name, *type;
} tk_cute_value;

/* An operand as one: pointers of shared memory are i32, others i64, halves and bytes i16, truth
 * values i32. */
tk_cute_value tk_cute_in_register(tk_cute *x, const tk_kvalue *value);

/* "r", "l", "f" and so on: what an instruction's text calls a register of this type. */
const char *tk_cute_letter(const char *type);

/* An instruction with an effect: $0, $1 and so on are its operands. */
void tk_cute_insn(tk_cute *x, const char *text, int count, const tk_cute_value *operands);

/* One with a result of a type, which is $0; the operands follow. `name` may be NULL. */
const char *tk_cute_insn_of(tk_cute *x, const char *name, const char *type, const char *text,
                            int count, const tk_cute_value *operands);

/* The same for an instruction that computes and does nothing else. */
const char *tk_cute_pure_insn(tk_cute *x, const char *name, const char *type, const char *text,
                              int count, const tk_cute_value *operands);

/* Marks the tensors that products of warpgroups use, before anything is written. */
tk_status tk_cute_find_flights(tk_cute *x);

/* Then those that are kept as words because nothing but ldmatrix, stmatrix and mma.sync uses them.
 */
tk_status tk_cute_find_words(tk_cute *x);

/* Whether a wgmma uses the tensor. */
bool tk_cute_flies(const tk_cute *x, const tk_kvalue *tensor);

/* ---- the whole ---- */

/* Where the lines of the text come from, by line number, the first at 0. */
typedef struct tk_cute_places {
    size_t count;
    tk_cute_place *items;
} tk_cute_places;
void tk_cute_places_free(tk_cute_places *places);

/* The kernel as a module of CuTe MLIR. `places` may be NULL. */
tk_status tk_cute_print(const tk_kernel *kernel, bool lines, tk_strbuf *out,
                        tk_cute_places *places);

#endif
