/* The smaller of two counts, for loops cut into blocks. */
#ifndef CPU_LEAST_H
#define CPU_LEAST_H

#include <stdint.h>

static inline int64_t tk_least(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
