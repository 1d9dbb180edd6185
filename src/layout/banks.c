/* Bank conflicts of an access pattern.
 *
 * The hardware serves 128 bytes a pass: a full warp of up to 4 bytes a lane, half a warp of 8, a
 * quarter of
 * 16. Within such a group each bank gives one word a pass, and lanes that ask for one word get it
 * together, so the passes of a group are the largest number of distinct words in a bank. */
#include "layout/banks.h"
#include "layout/grid.h"
#include "layout/tree.h"

tk_status tk_bank_pattern_load(const tk_composed *pattern, int bytes, tk_bank_pattern *out) {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
        return tk_fail(TK_INVALID_ARGUMENT, "%d bytes a lane: expected 1, 2, 4, 8 or 16", bytes);
    TK_NEED(pattern);
    TK_TRY(tk_check_layout(&pattern->outer, "pattern"));
    tk_composed lanes = *pattern;
    if (tk_layout_rank(&pattern->outer) == 1)
        TK_TRY(tk_layout_append(&pattern->outer, 2, NULL, &lanes.outer));
    TK_TRY(tk_grid_load(&lanes, &out->layout, &out->lanes, &out->steps));
    out->bytes = bytes;
    out->group = bytes <= TK_BANK_BYTES ? TK_WARP : TK_WARP * TK_BANK_BYTES / bytes;
    return TK_OK;
}

static void ask(tk_bank_group *group, int64_t word, int lane) {
    int bank = (int)(word % TK_BANKS), at = 0;
    while (at < group->depth[bank] && group->word[bank][at] != word) at++;
    if (at == group->depth[bank]) {
        group->word[bank][at] = word;
        group->asks[bank][at] = 0;
        group->depth[bank]++;
    }
    group->asks[bank][at] |= (uint32_t)1 << lane;
    if (group->depth[bank] > group->passes) group->passes = group->depth[bank];
}

tk_status tk_bank_group_fill(const tk_bank_pattern *pattern, int64_t lane, int64_t step,
                             tk_bank_group *out) {
    int64_t left = pattern->lanes - lane;
    out->first_lane = (int)(lane % TK_WARP);
    out->lanes = left < pattern->group ? (int)left : pattern->group;
    out->passes = 0;
    memset(out->depth, 0, sizeof out->depth);
    for (int i = 0; i < out->lanes; i++) {
        int64_t place, byte;
        TK_TRY(tk_grid_value(&pattern->layout, lane + i, step, &place));
        if (place < 0 || place > INT64_MAX / pattern->bytes)
            return tk_fail(TK_INDEX_ERROR, "lane %lld accesses place %lld", (long long)(lane + i),
                           (long long)place);
        byte = place * pattern->bytes;
        for (int64_t at = byte / TK_BANK_BYTES; at * TK_BANK_BYTES < byte + pattern->bytes; at++)
            ask(out, at, out->first_lane + i);
    }
    return TK_OK;
}

/* Passes that so many bytes need at least. */
static int64_t least_passes(const tk_bank_group *group) {
    int64_t words = 0;
    for (int bank = 0; bank < TK_BANKS; bank++) words += group->depth[bank];
    return (words + TK_BANKS - 1) / TK_BANKS;
}

tk_status tk_layout_count_banks(const tk_composed *pattern, int bytes, tk_bank_report *out) {
    TK_NEED(out);
    tk_bank_pattern loaded;
    tk_bank_group group;
    TK_TRY(tk_bank_pattern_load(pattern, bytes, &loaded));
    *out = (tk_bank_report){0, 0, 0, 0};
    for (int64_t step = 0; step < loaded.steps; step++)
        for (int64_t lane = 0; lane < loaded.lanes; lane += group.lanes) {
            TK_TRY(tk_bank_group_fill(&loaded, lane, step, &group));
            out->accesses += group.first_lane == 0;
            out->passes += group.passes;
            out->least += least_passes(&group);
        }
    out->conflicts = out->passes - out->least;
    return TK_OK;
}
