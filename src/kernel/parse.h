/* What the two halves of the parser share: the head (parse_head.c) and the body (parse.c). */
#ifndef KERNEL_PARSE_H
#define KERNEL_PARSE_H

#include "kernel/contract.h"
#include "kernel/names.h"
#include "kernel/scan.h"

typedef struct tk_kparser {
    tk_kscan scan;
    tk_kernel *kernel;
    tk_knames names; /* of values; `what` is the tk_kvalue */
    int depth;       /* of regions and parentheses */
} tk_kparser;

/* Regions in regions, parentheses in parentheses. */
#define TK_KPARSE_MOST_DEPTH 64

/* From the parameters to the clauses before the body; makes parser->kernel. */
tk_status tk_kparse_head(tk_kparser *parser);

/* f32, f32x4, ptr<f32, global>, ... */
tk_status tk_kparse_type(tk_kparser *parser, tk_ktype *out);
tk_status tk_kparse_scalar(tk_kparser *parser, tk_kscalar *out);

/* Gives a value a name that the text had, which must be new. Numbers are no names. */
tk_status tk_kparse_define(tk_kparser *parser, tk_kspan name, tk_kvalue *value);

#endif
