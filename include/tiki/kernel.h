/* Kernels: programs in which every decision of the hardware is written down.
 *
 * A kernel is a name, a launch contract and a body of operations. The operations, their operands
 * and attributes are rows of tiki/kernel_ops.def and tiki/kernel_attrs.def; docs/kernel-ir.md is
 * the language. A kernel comes from text (tk_kernel_parse) or from a builder; it is then finished:
 * it never changes, may be used from any thread, and is counted.
 *
 * A builder belongs to one thread at a time; any number may work at once, nothing is shared. Errors
 * stick: after the first one every call of the builder does nothing and gives NULL, and
 * tk_kernel_builder_finish returns the error. Values and types of a builder are borrowed from it
 * and may be used with it only. */
#ifndef TIKI_KERNEL_H
#define TIKI_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/api.h"
#include "tiki/layout.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

typedef struct tk_kernel tk_kernel;
typedef struct tk_kernel_builder tk_kernel_builder;
typedef struct tk_kvalue tk_kvalue;

/* ---- types ---- */

typedef enum tk_kscalar {
#define TK_KSCALAR(id, text, bytes, kind, doc) TK_K_##id,
#include "tiki/kernel_types.def"
    TK_KSCALAR_COUNT
} tk_kscalar;

typedef enum tk_kspace {
#define TK_KSPACE(id, text, address_bytes, doc) TK_KS_##id,
#include "tiki/kernel_types.def"
    TK_KSPACE_COUNT
} tk_kspace;

typedef enum tk_ktype_kind {
    TK_KT_NONE,     /* no type */
    TK_KT_NUMBER,   /* `f32`, or a vector of 2 to 16 bytes: `f32x4` */
    TK_KT_POINTER,  /* `ptr<f32, global>` */
    TK_KT_LAYOUT,   /* `layout<"(?,8):(8,1)">` */
    TK_KT_VIEW,     /* `view<f32, global, "(?,8):(8,1)">`: a pointer with a layout */
    TK_KT_SHARED,   /* `shared<f16, "(64,64):(64,1)">`: a buffer */
    TK_KT_REGISTERS /* `regs<f32, "(2,2):(1,2)">`, and a thread-value layout behind it, or none */
} tk_ktype_kind;

/* A type: a plain value. Two types of one kernel are equal when their fields are. */
typedef struct tk_ktype {
    uint8_t kind;    /* a tk_ktype_kind */
    uint8_t scalar;  /* of elements */
    uint8_t lanes;   /* 1 for a scalar */
    uint8_t space;   /* of pointers and views */
    uint32_t layout; /* number of a layout of the kernel, from 1; 0: none */
    uint32_t tv;     /* of register tensors, likewise: (thread, value) to the place in the tile */
} tk_ktype;

TK_API tk_ktype tk_ktype_scalar(tk_kscalar scalar);
TK_API tk_ktype tk_ktype_vector(tk_kscalar scalar, int lanes);
TK_API tk_ktype tk_ktype_pointer(tk_kscalar element, tk_kspace space);

/* "f32", "global"; "?" for a value that is none. */
TK_API const char *tk_kscalar_text(tk_kscalar scalar);
TK_API const char *tk_kspace_text(tk_kspace space);

/* Bytes of one element, of a vector or pointer type; 0 for what has no size. */
TK_API int tk_kscalar_bytes(tk_kscalar scalar);
TK_API int tk_ktype_bytes(tk_ktype type);

/* ---- operations and attributes ---- */

typedef enum tk_kopcode {
#define TK_KOP(name, forms, effects, operands, results, attrs, check, emulator, ptx, doc)          \
    TK_KOP_##name,
#include "tiki/kernel_ops.def"
#undef TK_KOP
    TK_KOP_COUNT
} tk_kopcode;

typedef enum tk_kattr_id {
#define TK_KATTR(name, kind, initial, words, doc) TK_KA_##name,
#include "tiki/kernel_attrs.def"
    TK_KATTR_COUNT
} tk_kattr_id;

/* An attribute that differs from its default: `word` for a WORD ("lt"), `text` for a TEXT, `value`
 * for the rest. */
typedef struct tk_kattr {
    tk_kattr_id id;
    int64_t value;
    const char *word; /* of WORD and TEXT */
} tk_kattr;

/* Finds an operation by its word. TK_NOT_FOUND. */
TK_API tk_status tk_kopcode_find(const char *name, tk_kopcode *out_code);

/* Its word and its line of documentation; "?" when there is none. */
TK_API const char *tk_kopcode_name(tk_kopcode code);
TK_API const char *tk_kopcode_doc(tk_kopcode code);

/* How many operands come before the variadic ones, and the name and need of each; -1 and NULL when
 * there is none. For front ends that build from the table. */
TK_API int tk_kopcode_operands(tk_kopcode code);
TK_API const char *tk_kopcode_operand(tk_kopcode code, int index, bool *out_optional);
TK_API bool tk_kopcode_is_variadic(tk_kopcode code);

/* Number of attributes, and which; -1 and NULL when there is none. */
TK_API int tk_kopcode_attrs(tk_kopcode code);
TK_API const char *tk_kopcode_attr(tk_kopcode code, int index, tk_kattr_id *out_id);

/* Whether its result's type must be stated. */
TK_API bool tk_kopcode_states_type(tk_kopcode code);

/* ---- kernels ---- */

typedef enum tk_kform {
    TK_KFORM_TENSOR, /* work of groups on views */
    TK_KFORM_VIEW,   /* instructions; addresses are layouts evaluated */
    TK_KFORM_THREAD  /* instructions, pointers and integers */
} tk_kform;

/* Parses a `.tk` text and verifies it. `source` names it in messages and locations ("add.tk"; NULL
 * counts as "kernel"). TK_FORMAT_ERROR begins with source, line and column and shows the line with
 * a caret below the place. */
TK_API tk_status tk_kernel_parse(const char *text, const char *source, tk_kernel **out_kernel);

enum { TK_KERNEL_LINES = 1 }; /* print where operations come from */

/* The kernel as text, which tk_kernel_parse reads back as an equal kernel. The caller frees it with
 * tk_kernel_text_free. */
TK_API tk_status tk_kernel_print(const tk_kernel *kernel, int flags, char **out_text);
TK_API void tk_kernel_text_free(char *text);

/* Checks everything that parser and builder check, and the structure: operands are defined before
 * their use, regions end in their terminator, operations fit the form. */
TK_API tk_status tk_kernel_verify(const tk_kernel *kernel);

/* Same contract and same operations; names of values and source lines do not count. */
TK_API bool tk_kernel_equal(const tk_kernel *a, const tk_kernel *b);

TK_API tk_kernel *tk_kernel_retain(tk_kernel *kernel);
TK_API void tk_kernel_release(tk_kernel *kernel);

TK_API const char *tk_kernel_name(const tk_kernel *kernel);
TK_API tk_kform tk_kernel_form(const tk_kernel *kernel);
TK_API int tk_kernel_params(const tk_kernel *kernel);

/* ---- launch contract ---- */

typedef enum tk_kaccess {
    TK_KACCESS_READ = 1,
    TK_KACCESS_WRITE = 2,
    TK_KACCESS_READ_WRITE = 3
} tk_kaccess;

/* A parameter. `size` is the number of elements behind a pointer as an expression, -1 when it is
 * not stated. */
typedef struct tk_kparam {
    const char *name;
    tk_ktype type;
    tk_kaccess access; /* of pointers */
    int64_t align;     /* bytes, of pointers */
    int32_t size;
} tk_kparam;

TK_API tk_status tk_kernel_param(const tk_kernel *kernel, int index, tk_kparam *out_param);

/* What a launch of the kernel takes. */
typedef struct tk_klaunch {
    int64_t grid[3], cluster[3], block[3];
    int64_t dynamic_shared; /* bytes behind the buffers that the kernel declares */
    bool cooperative, programmatic;
} tk_klaunch;

/* Facts about a device that expressions may name, `device.sms` and so on. */
typedef struct tk_kdevice {
    int64_t sms, shared_bytes, threads;
} tk_kdevice;

/* One argument of a launch: the bits of a scalar, or of the address behind a pointer. */
typedef struct tk_kargument {
    uint64_t bits;
} tk_kargument;

/* Checks the preconditions and computes the launch. TK_INVALID_ARGUMENT names the precondition that
 * does not hold; TK_OVERFLOW when an expression leaves 64 bits; alignments of pointers are checked
 * too. */
TK_API tk_status tk_kernel_launch(const tk_kernel *kernel, const tk_kdevice *device,
                                  size_t n_arguments, const tk_kargument *arguments,
                                  tk_klaunch *out_launch);

/* The contract as JSON, for launches without this library: parameters with type, offset in the
 * parameter block, role, access and alignment; tensor maps as rules; preconditions; grid, cluster
 * and shared memory as expressions in the words of the language. `shared_bytes` are those of the
 * declared buffers, to be passed at the launch with what `more_shared_bytes` gives. Free with
 * tk_kernel_text_free. */
TK_API tk_status tk_kernel_contract_json(const tk_kernel *kernel, char **out_text);

/* ---- building ---- */

/* NULL when memory is out. Release it with tk_kernel_builder_release, finished or not. */
TK_API tk_kernel_builder *tk_kernel_builder_create(const char *name, tk_kform form);
TK_API void tk_kernel_builder_release(tk_kernel_builder *b);

/* Verifies and hands the kernel over; the builder can then only be released. */
TK_API tk_status tk_kernel_builder_finish(tk_kernel_builder *b, tk_kernel **out_kernel);

/* The first error, TK_OK while there is none. Its message is this thread's. */
TK_API tk_status tk_kernel_builder_status(const tk_kernel_builder *b);

/* Makes an error the builder's, as a front end finds them; the first one stays. */
TK_API void tk_kernel_builder_fail(tk_kernel_builder *b, tk_status code, const char *message);

/* Operations from here on come from this line; file NULL keeps the file. */
TK_API void tk_kernel_at(tk_kernel_builder *b, const char *file, int line);

/* Expressions of the contract: numbers from 0 that stand for integers of 64 bits; -1 after an
 * error. */
typedef enum tk_kexpr_kind {
    TK_KX_CONST,
    TK_KX_PARAM,
    TK_KX_DEVICE,
    TK_KX_ADD,
    TK_KX_SUB,
    TK_KX_MUL,
    TK_KX_CEILDIV, /* of numbers from 0 by numbers from 1 */
    TK_KX_DIV,
    TK_KX_MOD,
    TK_KX_MIN,
    TK_KX_MAX,
    TK_KX_COUNT
} tk_kexpr_kind;

typedef enum tk_kfact {
    TK_KFACT_SMS,
    TK_KFACT_SHARED_BYTES,
    TK_KFACT_THREADS,
    TK_KFACT_COUNT
} tk_kfact;

TK_API int32_t tk_kexpr_const(tk_kernel_builder *b, int64_t value);
TK_API int32_t tk_kexpr_param(tk_kernel_builder *b, const tk_kvalue *param);
TK_API int32_t tk_kexpr_device(tk_kernel_builder *b, tk_kfact fact);
TK_API int32_t tk_kexpr_binary(tk_kernel_builder *b, tk_kexpr_kind kind, int32_t left,
                               int32_t right);

/* Parameters come before everything that uses them. */
TK_API tk_kvalue *tk_kernel_add_param(tk_kernel_builder *b, const tk_kparam *param);

/* A tensor map: how TMA sees a parameter. Extents are in elements, fastest first, strides in bytes
 * and one fewer; both expressions. */
typedef struct tk_kmap {
    const char *name;
    const tk_kvalue *base;
    tk_kscalar element;
    int rank;
    int32_t extent[5], stride[4];
    int32_t box[5], element_stride[5];
    int32_t swizzle;  /* 0, 32, 64, 128 */
    bool fill_nan;    /* what is read outside: NaN instead of 0 */
    int32_t l2_bytes; /* 0, 64, 128, 256 */
} tk_kmap;

/* A parameter of type ptr<tmap, param>. */
TK_API tk_kvalue *tk_kernel_add_map(tk_kernel_builder *b, const tk_kmap *map);

typedef enum tk_krelation {
    TK_KR_EQ,
    TK_KR_NE,
    TK_KR_LT,
    TK_KR_LE,
    TK_KR_GT,
    TK_KR_GE,
    TK_KR_COUNT
} tk_krelation;

TK_API void tk_kernel_require(tk_kernel_builder *b, int32_t left, tk_krelation relation,
                              int32_t right);
TK_API void tk_kernel_grid(tk_kernel_builder *b, int32_t x, int32_t y, int32_t z);
TK_API void tk_kernel_cluster(tk_kernel_builder *b, int32_t x, int32_t y, int32_t z);
TK_API void tk_kernel_block(tk_kernel_builder *b, int64_t x, int64_t y, int64_t z);
TK_API void tk_kernel_dynamic_shared(tk_kernel_builder *b, int32_t bytes);
TK_API void tk_kernel_cooperative(tk_kernel_builder *b);
TK_API void tk_kernel_programmatic(tk_kernel_builder *b);
TK_API void tk_kernel_min_blocks(tk_kernel_builder *b, int64_t blocks_of_an_sm);

/* Types with layouts, as text of the layout algebra; `tv` may be NULL. Kind TK_KT_NONE after an
 * error. */
TK_API tk_ktype tk_ktype_of_layout(tk_kernel_builder *b, const char *layout);
TK_API tk_ktype tk_ktype_of_view(tk_kernel_builder *b, tk_kscalar element, tk_kspace space,
                                 const char *layout);
TK_API tk_ktype tk_ktype_of_shared(tk_kernel_builder *b, tk_kscalar element, const char *layout);
TK_API tk_ktype tk_ktype_of_registers(tk_kernel_builder *b, tk_kscalar element, const char *layout,
                                      const char *tv);

/* Values */
TK_API tk_kvalue *tk_kernel_int(tk_kernel_builder *b, tk_kscalar scalar, int64_t value);
TK_API tk_kvalue *tk_kernel_float(tk_kernel_builder *b, tk_kscalar scalar, double value);
TK_API tk_ktype tk_kvalue_type(const tk_kvalue *value);
TK_API const char *tk_kvalue_name(const tk_kvalue *value);

/* A name for the text; cut to what a name may be, and made different from other names on printing.
 */
TK_API void tk_kvalue_rename(tk_kernel_builder *b, tk_kvalue *value, const char *name);

/* Appends an operation. `operands` are those of the table in order, NULL for one that may be
 * missing and is; variadic ones behind them. `type` is the stated type (kind TK_KT_NONE when it
 * follows from the operands). Gives the result, NULL for operations without one. */
TK_API tk_kvalue *tk_kernel_op(tk_kernel_builder *b, tk_kopcode code, size_t n_operands,
                               tk_kvalue *const *operands, size_t n_attrs, const tk_kattr *attrs,
                               tk_ktype type);

/* Regions. Begin, append the body, end; `out_args` gets the carried values as the body sees them,
 * and the end's `out_results` what they are behind it (as many as were carried or yielded; may be
 * NULL). Yielded values have the types of the carried ones. */
TK_API tk_kvalue *tk_kernel_for(tk_kernel_builder *b, tk_kvalue *first, tk_kvalue *end,
                                tk_kvalue *step, int64_t unroll, size_t n_carried,
                                tk_kvalue *const *carried, tk_kvalue **out_args);
TK_API void tk_kernel_while(tk_kernel_builder *b, size_t n_carried, tk_kvalue *const *carried,
                            tk_kvalue **out_args);
TK_API void tk_kernel_while_do(tk_kernel_builder *b, tk_kvalue *condition, size_t n_values,
                               tk_kvalue *const *values, tk_kvalue **out_args);
TK_API void tk_kernel_if(tk_kernel_builder *b, tk_kvalue *condition);
TK_API void tk_kernel_else(tk_kernel_builder *b, size_t n_values, tk_kvalue *const *values);
TK_API void tk_kernel_end(tk_kernel_builder *b, size_t n_values, tk_kvalue *const *values,
                          tk_kvalue **out_results);

TK_END_DECLS

#endif
