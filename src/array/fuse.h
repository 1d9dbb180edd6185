/* Elementwise steps computed together, a block at a time.
 *
 * A run of elementwise steps on one shape (an optimizer's update, an activation, a residual) reads
 * and writes memory once for each step when computed one after the other. Computed block by block,
 * with blocks that stay in the cache, only what comes from outside and what is needed outside
 * moves. The bodies are the same ones, called on pieces, so the bits are the same too. */
#ifndef ARRAY_FUSE_H
#define ARRAY_FUSE_H

#include "array/plan.h"

/* Cuts the entries of each segment into groups of elementwise steps and single steps, in an order
 * that keeps operands before users; fills plan->groups and plan->members and makes segments ranges
 * of groups. */
tk_status tk_plan_group(tk_plan *plan);

/* Computes a group of two steps or more. *out_joined is false, and nothing was done, where the
 * operands' strides do not allow it: the steps then run one by one. */
tk_status tk_plan_run_group(tk_plan *plan, const tk_group *group, bool *out_joined);

#endif
