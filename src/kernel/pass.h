/* What passes are written with. A pass is a function over a kernel that nobody else has; the driver
 * copies before and verifies after it. */
#ifndef KERNEL_PASS_H
#define KERNEL_PASS_H

#include "kernel/ir.h"
#include "tiki/passes.h"

#define TK_KPASS(name, doc) tk_status tk_kpass_run_##name(tk_kernel *kernel);
#include "tiki/passes.def"

/* ---- exchange of values ---- */

/* What values become, by id; NULL: themselves. Grows as values are added. */
typedef TK_VEC(tk_kvalue *) tk_kexchange;

tk_status tk_kexchange_set(tk_kexchange *exchange, const tk_kvalue *from, tk_kvalue *to);

/* What a value becomes in the end, through chains. */
tk_kvalue *tk_kexchange_get(const tk_kexchange *exchange, tk_kvalue *value);

/* Exchanges the operands of all operations. */
void tk_kexchange_apply(const tk_kexchange *exchange, tk_kernel *kernel);

/* ---- questions ---- */

/* How often values are used as operands, by id; `of` is freed by the caller. */
typedef struct tk_kuses {
    uint32_t *of;
} tk_kuses;
tk_status tk_kpass_count_uses(const tk_kernel *kernel, tk_kuses *out);
void tk_kpass_add_uses(const tk_kblock *block, tk_kuses *uses);

/* Whether the operation may run where it would not have: no effect, and no finding. */
bool tk_kpass_is_speculatable(const tk_kop *op);

/* What an operation without effects gives for operands with these bits, as the emulator computes
 * it; scalars only, and no division by zero. False when it has no such body. */
bool tk_kpass_compute(const tk_kop *op, const uint64_t *bits, uint64_t *out_bits);

/* ---- new operations ---- */

/* Where operations are put: before one, or at the end of a block. Errors stick in *status. */
typedef struct tk_kput {
    tk_kernel *kernel;
    tk_kblock *block;
    tk_kop *before; /* NULL: at the end */
    tk_kloc loc;
    tk_status *status;
} tk_kput;

tk_kput tk_kput_before(tk_kernel *kernel, tk_kop *op, tk_status *status);

/* An operation; `attrs` are pairs of tk_kattr_id and value, `type` of kind TK_KT_NONE when it
 * follows. NULL after an error and for operations without result. */
typedef struct tk_kput_attr {
    tk_kattr_id id;
    int64_t value;
} tk_kput_attr;
tk_kvalue *tk_kput_op(tk_kput *put, tk_kopcode code, size_t n_operands, tk_kvalue *const *operands,
                      size_t n_attrs, const tk_kput_attr *attrs, tk_ktype type);

tk_kvalue *tk_kput_1(tk_kput *put, tk_kopcode code, tk_kvalue *a);
tk_kvalue *tk_kput_2(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kvalue *b);
tk_kvalue *tk_kput_3(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kvalue *b, tk_kvalue *c);

/* With a stated type. */
tk_kvalue *tk_kput_as(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kscalar type);
tk_kvalue *tk_kput_compare(tk_kput *put, tk_kopcode code, const char *how, tk_kvalue *a,
                           tk_kvalue *b);

tk_kvalue *tk_kput_integer(tk_kput *put, tk_kscalar scalar, int64_t value);

/* A constant that counts elements or steps; TK_UNSUPPORTED where the type does not hold it as a
 * number with a sign. */
tk_kvalue *tk_kput_index(tk_kput *put, tk_kscalar scalar, int64_t value);
tk_kvalue *tk_kput_float(tk_kput *put, tk_kscalar scalar, double value);

/* An `if` with two empty regions; tk_kput_into puts into one of them, tk_kput_yield ends it, and
 * tk_kput_results gives the operation its results once both are ended. */
tk_kop *tk_kput_if(tk_kput *put, tk_kvalue *condition);
tk_kput tk_kput_into(const tk_kput *put, tk_kop *op, int region);
void tk_kput_yield(tk_kput *put, size_t count, tk_kvalue *const *values);
void tk_kput_results(tk_kput *put, tk_kop *op);

#endif
