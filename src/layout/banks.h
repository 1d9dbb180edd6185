/* One pass of a warp's lanes over the banks of shared memory. Private. */
#ifndef LAYOUT_BANKS_H
#define LAYOUT_BANKS_H

#include "tiki/layout_draw.h"

enum { TK_BANKS = 32, TK_BANK_BYTES = 4, TK_WARP = 32 };

/* The lanes of one group (a warp, a half, a quarter) at one access: which words each bank must
 * serve, in the order of the lanes. A word is served once, whoever asks for it. */
typedef struct tk_bank_group {
    int first_lane, lanes;
    int depth[TK_BANKS];              /* distinct words of the bank */
    int64_t word[TK_BANKS][TK_WARP];  /* these words */
    uint32_t asks[TK_BANKS][TK_WARP]; /* bit i: the i-th lane of the warp asks for the word */
    int passes;                       /* the largest depth */
} tk_bank_group;

/* An access pattern, checked. */
typedef struct tk_bank_pattern {
    tk_composed layout; /* (lanes, accesses) */
    int bytes;
    int64_t lanes, steps;
    int group; /* lanes that are served together */
} tk_bank_pattern;

tk_status tk_bank_pattern_load(const tk_composed *pattern, int bytes, tk_bank_pattern *out);

/* The group of lanes that begins at `lane`, at access `step`. */
tk_status tk_bank_group_fill(const tk_bank_pattern *pattern, int64_t lane, int64_t step,
                             tk_bank_group *out);

#endif
