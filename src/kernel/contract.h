/* The launch contract: expressions over the arguments, and what they say about a launch. */
#ifndef KERNEL_CONTRACT_H
#define KERNEL_CONTRACT_H

#include "kernel/ir.h"

/* Adds a node; its operands must be nodes. Equal nodes are one. */
tk_status tk_kexpr_add(tk_kernel *kernel, tk_kexpr node, int32_t *out);

/* What expressions read. */
typedef struct tk_kbinding {
    const tk_kernel *kernel;
    const tk_kdevice *device; /* NULL: all facts 0 */
    const tk_kargument *arguments;
} tk_kbinding;

/* The value of an expression. Dividing by less than 1 and leaving 64 bits are TK_OVERFLOW. */
tk_status tk_kexpr_value(const tk_kbinding *binding, int32_t expr, int64_t *out);

/* An argument as the signed integer of its width. */
int64_t tk_kargument_integer(tk_ktype type, tk_kargument argument);

void tk_kexpr_put(const tk_kernel *kernel, int32_t expr, tk_strbuf *out);

/* Bytes of one parameter and of all in front of number `index` (of all for the count): each at a
 * multiple of its size, tensor maps at 64. */
int64_t tk_kparam_bytes(const tk_kernel *kernel, int index);
int64_t tk_kparam_offset(const tk_kernel *kernel, int index);

/* Blocks of a cluster where the contract has them as numbers; false where it has none, or some
 * that follow from arguments. */
bool tk_kcontract_cluster(const tk_kcontract *contract, int64_t out[3]);

/* What parser and builder need not check on the way: parameter types, block, expressions. */
tk_status tk_kcontract_check(const tk_kernel *kernel);

/* "==", "<" and so on. */
const char *tk_krelation_text(tk_krelation relation);

/* "sms" and so on, NULL behind the last. */
const char *tk_kfact_text(int fact);

#endif
