/* Plans of the library's calls on disk.
 *
 * Making a plan builds its kernels, which takes milliseconds for large ones; a GPU whose binaries
 * are in the cache needs of a kernel its contract and its digest alone. So a plan that ran on a GPU
 * is noted in the cache of kernels: the launches with their arguments, and of each kernel its head.
 * The key is the call and the digest of the sources that plans come from, so a note never outlives
 * what it would have to agree with.
 *
 * Rejected: kernels whole, in a form of bytes (a reader to trust, and half a millisecond for a
 * product); an identity by the schedule alone, since kernels depend on shapes and strides in ways
 * of their own.
 */
#ifndef COMPILE_PLAN_RECORD_H
#define COMPILE_PLAN_RECORD_H

#include <stdatomic.h>

#include "compile/run.h"
#include "library/plan.h"

#define TK_PLAN_TENSORS 8
#define TK_PLAN_NUMBERS 8

/* A call as plans are found by: zeroed first, without gaps, so that its bytes can be compared. */
typedef struct tk_plan_key {
    uint32_t id; /* a tk_library_id */
    uint16_t has_schedule, no_clusters;
    size_t n_tensors, n_numbers;
    tk_library_tensor tensors[TK_PLAN_TENSORS];
    uint64_t numbers[TK_PLAN_NUMBERS]; /* bits of doubles */
    tk_library_schedule schedule;
} tk_plan_key;

/* A plan, and whether its kernels are whole. Counted. */
typedef struct tk_kept_plan {
    int references; /* atomic */
    tk_library_plan *plan;
    tk_body_facts *facts; /* by launch: the kernels have no bodies; NULL: they are whole */
    atomic_bool noted;    /* on disk */
} tk_kept_plan;

/* Consumes the plan in any case; NULL when memory is out. `facts` too. */
tk_kept_plan *tk_kept_plan_create(tk_library_plan *plan, tk_body_facts *facts);
tk_kept_plan *tk_kept_plan_retain(tk_kept_plan *kept);
void tk_kept_plan_release(tk_kept_plan *kept);

/* The noted plan of a call, NULL when there is none. Any thread. */
tk_kept_plan *tk_plan_recall(const tk_plan_key *key);

/* Notes a plan whose kernels are whole. What goes wrong is a warning of the cache. */
void tk_plan_note(const tk_plan_key *key, const tk_library_plan *plan);

#endif
