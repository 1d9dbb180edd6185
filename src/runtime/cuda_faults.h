/* Indices that launches on a device found out of range.
 *
 * A launch that reads through indices is given a record in the device's memory and a flag in pinned
 * memory of the host. Nothing touches them while all is well; a thread that finds a bad index makes
 * the record the smallest of what was found, and then raises the flag. Whoever has waited for the
 * device looks at the flags, which costs no call of the driver.
 *
 * Rejected: records in pinned memory (a gather of nothing but bad indices would send every one of
 * them over the bus); a copy of the record with each evaluation (a call of the driver and a wait).
 */
#ifndef RUNTIME_CUDA_FAULTS_H
#define RUNTIME_CUDA_FAULTS_H

#include "runtime/cuda_device.h"

#define TK_FAULT_INDICES 8

/* Of each index operand two words: the position (2^32 - 1 for later ones) in the high half, and the
 * low and the high half of the index. All ones: no fault. Positions are unique, so the two smallest
 * belong together. */
#define TK_FAULT_WORDS (2 * TK_FAULT_INDICES)

/* What the launch was, for the message: a static text, and the axes' lengths. */
typedef struct tk_fault_source {
    const char *what;
    int64_t lengths[TK_FAULT_INDICES];
} tk_fault_source;

/* The first fault in a record, false when it has none, or half of one (somebody writes). */
bool tk_fault_read(const uint64_t words[TK_FAULT_WORDS], const tk_fault_source *note,
                   int64_t *out_position, int64_t *out_index, int64_t *out_length);

/* A record and a flag (an i32) for a launch that is handed over next. */
tk_status tk_cuda_fault_slot(tk_cuda *cuda, const tk_fault_source *note, void **out_record,
                             void **out_flag);

/* TK_INDEX_ERROR for the oldest fault that was not given yet; it is given once, and with it all
 * that there are. Call when the device has done what is asked about. */
tk_status tk_cuda_fault_take(tk_cuda *cuda);

void tk_cuda_faults_end(tk_cuda *cuda);

#endif
