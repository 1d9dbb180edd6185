/* What quantisation shares between builders, inference and rules. */
#ifndef GRAPH_BUILD_QUANT_H
#define GRAPH_BUILD_QUANT_H

#include "graph/quant.h"
#include "tiki/status.h"

/* TK_INVALID_ARGUMENT names `what` where a mode does not have this group size or these bits. */
tk_status tk_quant_check(const char *what, tk_quant quant);

/* The format in a record: attributes of all quantised ops have these fields. */
#define TK_QUANT_OF(attrs)                                                                         \
    ((tk_quant){(tk_quant_mode)(attrs)->mode, (attrs)->group_size, (attrs)->bits})

#endif
