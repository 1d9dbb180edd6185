/* Passes: from a kernel to another that does the same.
 *
 * A pass takes a finished kernel of any form and gives a new one; the one given does not change. No
 * pass changes what a kernel computes, bit for bit, but the one that says so (tiki/passes.def). Any
 * thread may call. */
#ifndef TIKI_PASSES_H
#define TIKI_PASSES_H

#include "tiki/kernel.h"

TK_BEGIN_DECLS

typedef enum tk_kpass {
#define TK_KPASS(name, doc) TK_KPASS_##name,
#include "tiki/passes.def"
    TK_KPASS_COUNT
} tk_kpass;

/* "expand", and its line of documentation; "?" for a value that is none. */
TK_API const char *tk_kpass_name(tk_kpass pass);
TK_API const char *tk_kpass_doc(tk_kpass pass);
/* Finds a pass by its name. TK_NOT_FOUND. */
TK_API tk_status tk_kpass_find(const char *name, tk_kpass *out);

/* Runs one pass. What comes out is verified. */
TK_API tk_status tk_kernel_pass(const tk_kernel *kernel, tk_kpass pass, tk_kernel **out);

enum {
    TK_KLOWER_OPTIMISE = 1, /* every pass but fuse */
    TK_KLOWER_FUSE = 2      /* products and sums become fma: other bits */
};

/* Brings a kernel to a form, which must not lie before its own: TK_INVALID_ARGUMENT. In the thread
 * form it is ready for emulator and targets: exp and its like are expanded. Without flags only what
 * that needs is done. */
TK_API tk_status tk_kernel_lower(const tk_kernel *kernel, tk_kform form, int flags,
                                 tk_kernel **out);

TK_END_DECLS

#endif
