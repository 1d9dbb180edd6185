/* Where a log is cut; apart from files, so that it can be fuzzed. */
#ifndef IO_RUN_LOG_H
#define IO_RUN_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "tiki/status.h"

/* The length of what tk_run_log_open keeps of a log. TK_OUT_OF_MEMORY. */
tk_status tk_run_log_find_cut(const char *name, const char *text, size_t bytes, int64_t last_step,
                              size_t *out_bytes);

#endif
