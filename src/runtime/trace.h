/* The recording side of the trace (tiki/runtime.h starts and stops it).
 *
 * Each thread writes into its own buffer, so recording costs a clock reading and a copy, and
 * nothing but one relaxed load when the trace is off:
 *
 *     int64_t begin = tk_trace_begin();
 *     ... work ...
 *     tk_trace_end(begin, "eval", "matmul", "f32[%d,%d]", rows, columns);
 *
 * Names and details are copied and cut to the lengths below. A thread that recorded
 * TK_TRACE_MAX_EVENTS drops the rest; the file says how many. */
#ifndef RUNTIME_TRACE_H
#define RUNTIME_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tiki/runtime.h"

#define TK_TRACE_NAME_BYTES 48
#define TK_TRACE_DETAIL_BYTES 80
#define TK_TRACE_MAX_EVENTS (1 << 20)

extern _Atomic bool tk_trace_recording;

static inline bool tk_trace_on(void) {
    return atomic_load_explicit(&tk_trace_recording, memory_order_relaxed);
}

/* Nanoseconds of a clock that never goes back. */
int64_t tk_trace_clock(void);

/* The time at which a span begins; 0 when the trace is off. */
static inline int64_t tk_trace_begin(void) { return tk_trace_on() ? tk_trace_clock() : 0; }

/* The span from `begin` until now on this thread. `category` is a static string; `detail` is a
 * format and may be NULL. Does nothing if begin is 0. */
void tk_trace_end(int64_t begin, const char *category, const char *name, const char *detail, ...)
    TK_PRINTF(4, 5);

/* A number over time, drawn as a curve: bytes in use, for instance. `name` may be any string. */
void tk_trace_counter(const char *name, int64_t value);

/* An arrow from a span of one thread to a span of another: take a number, say where it starts and
 * where it ends, each inside a span. 0 when the trace is off, and then both do nothing. */
uint64_t tk_trace_flow_new(void);
void tk_trace_flow_start(uint64_t flow, const char *name);
void tk_trace_flow_end(uint64_t flow, const char *name);

/* How the trace calls this thread ("stream 1"). */
void tk_trace_name_thread(const char *name);

#endif
