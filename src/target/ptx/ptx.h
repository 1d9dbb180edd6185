/* Inside the PTX target: how an operation writes itself.
 *
 * Each element of a value is one PTX register for its life, of a class by its size: %p i1, %h 16
 * bits and less, %r 32, %q 64, %f f32, %d f64. Elements of a value have consecutive numbers.
 * Integers and floats are immediate where PTX allows it; other constants (i1, halves, fp8) are
 * registers set at the entry. A register tensor that matrix operations use and whose elements have
 * fewer than 32 bits is kept as registers of 32 bits.
 *
 * A row of the table gives a template (template.c) or names a function tk_ptx_put_x, which writes
 * lines with tk_ptx_line and fails with tk_ptx_fail. */
#ifndef TARGET_PTX_PTX_H
#define TARGET_PTX_PTX_H

#include "kernel/analyse.h"
#include "kernel/ir.h"
#include "kernel/shared.h"

typedef enum tk_ptx_class {
    TK_PTX_P,
    TK_PTX_H,
    TK_PTX_R,
    TK_PTX_Q,
    TK_PTX_F,
    TK_PTX_D,
    TK_PTX_CLASSES
} tk_ptx_class;

typedef struct tk_ptx {
    const tk_kernel *kernel;
    int arch;           /* 80 or 90 */
    bool arch_specific; /* sm_90a */
    int version;        /* of PTX, times ten */
    bool lines;
    bool *files; /* by string of the kernel: lines are of this file */
    tk_strbuf body;
    tk_arena arena;
    bool *packed;    /* by value id: a register tensor that is kept as registers of 32 bits */
    uint32_t *first; /* by value id: number of its first register plus one; 0: none yet */
    uint32_t used[TK_PTX_CLASSES];
    uint32_t labels;
    int64_t *shared_at; /* by value id */
    tk_kshared_map shared;
    tk_kfact_of *facts; /* by value id */
    const tk_kop *op;   /* being written */
    tk_status status;   /* the first error */
} tk_ptx;

#define PTX(text)
#define NO_PTX
#define PTX_BY(name) void tk_ptx_put_##name(tk_ptx *x, const tk_kop *op);
#define TK_KOP(name, forms, effects, operands, results, attrs, check, emulator, ptx, doc) ptx
#include "tiki/kernel_ops.def"
#undef TK_KOP
#undef PTX_BY
#undef NO_PTX
#undef PTX

/* The text of a register or constant, in the structure that is returned. */
typedef struct tk_ptx_name {
    char text[32];
} tk_ptx_name;

/* Element `index` of a value as an operand. */
tk_ptx_name tk_ptx_operand(tk_ptx *x, const tk_kvalue *value, int index);

/* Element of the first result. */
tk_ptx_name tk_ptx_result(tk_ptx *x, const tk_kop *op, int index);

/* A register that belongs to no value. */
tk_ptx_name tk_ptx_spare(tk_ptx *x, tk_ptx_class class);

/* Register of a register tensor: an element, or several where it is packed. */
tk_ptx_name tk_ptx_element(tk_ptx *x, const tk_kvalue *tensor, int64_t index);

/* Elements of a register tensor in one register; more than one: get and set go by these. */
int64_t tk_ptx_elements_each(const tk_ptx *x, const tk_kvalue *tensor);
void tk_ptx_get_packed(tk_ptx *x, const tk_kvalue *tensor, int64_t index, const tk_kvalue *value);
void tk_ptx_set_packed(tk_ptx *x, const tk_kvalue *tensor, int64_t index, const tk_kvalue *value);

/* The text needs at least this version of PTX. */
void tk_ptx_need_version(tk_ptx *x, int version);

tk_ptx_class tk_ptx_class_of(tk_ktype type);

/* One instruction; the semicolon is added. */
void tk_ptx_line(tk_ptx *x, const char *format, ...) TK_PRINTF(2, 3);
void tk_ptx_label(tk_ptx *x, uint32_t label);

/* Keeps the first error, with operation and line before the message. */
void tk_ptx_fail(tk_ptx *x, const tk_kop *op, const char *format, ...) TK_PRINTF(3, 4);

/* ".s32" and so on, by what the letter asks for: s natural (signed or float), u unsigned, b bits, r
 * natural with the rounding of floats. */
const char *tk_ptx_suffix(tk_ktype type, char letter);

/* Writes a template for every element of the result (once without a result). */
void tk_ptx_template(tk_ptx *x, const tk_kop *op, const char *text);

/* ".relaxed.gpu.shared::cluster.L1::evict_first" and so on, from the attributes of a load or
 * store; `policy` is the place of that operand. */
void tk_ptx_put_modifiers(const tk_kop *op, int policy, tk_strbuf *out);

/* The operations of a block. */
void tk_ptx_block(tk_ptx *x, const tk_kblock *block);

/* Copies values all at once (emulator: the same). */
void tk_ptx_copies(tk_ptx *x, uint32_t count, tk_kvalue *const *from, tk_kvalue *const *to);

/* Gives a value the registers of another. */
void tk_ptx_share(tk_ptx *x, const tk_kvalue *value, const tk_kvalue *with);

/* The kernel as PTX text for an architecture such as "sm_90a". */
tk_status tk_ptx_print(const tk_kernel *kernel, const char *arch, bool lines, tk_strbuf *out);

#endif
