/* Scans as compositions, for decompose.c. */
#ifndef GRAPH_DECOMPOSE_SCAN_H
#define GRAPH_DECOMPOSE_SCAN_H

#include "graph/build.h"

/* The scan `node` of the operand `a`, but for scan_steps, whose roundings have an order. */
tk_node *tkb_scan_apart(tk_builder *b, const tk_node *node, tk_node *a);

#endif
