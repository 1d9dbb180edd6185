/* A list is short (few faults, however often they are met), so it is searched from the front. */
#include "kernel/emu_find.h"

#include <string.h>

static tk_emu_found *same(tk_emu_findings *findings, tk_kfinding_kind kind, const tk_kop *op,
                          const tk_kop *other_op) {
    for (size_t i = 0; i < findings->list.count; i++) {
        tk_emu_found *found = &findings->list.items[i];
        if (found->kind == kind && found->op == op && found->other_op == other_op) return found;
    }
    return NULL;
}

bool tk_emu_find_again(tk_emu_findings *findings, tk_kfinding_kind kind, const tk_kop *op,
                       const tk_kop *other_op) {
    tk_emu_found *found = same(findings, kind, op, other_op);
    if (found) found->count++;
    return found || findings->list.count >= TK_EMU_MOST_FINDINGS;
}

static void add(tk_emu_findings *findings, tk_emu_found found) {
    found.message = tk_arena_text(&findings->texts, found.message, strlen(found.message));
    if (found.message) (void)tk_vec_push(&findings->list, found);
}

void tk_emu_find(tk_emu_findings *findings, const tk_emu_found *found) {
    if (!tk_emu_find_again(findings, found->kind, found->op, found->other_op))
        add(findings, *found);
}

void tk_emu_find_all(tk_emu_findings *to, const tk_emu_findings *from) {
    for (size_t i = 0; i < from->list.count; i++) {
        const tk_emu_found *found = &from->list.items[i];
        tk_emu_found *old = same(to, found->kind, found->op, found->other_op);
        if (old)
            old->count += found->count;
        else if (to->list.count < TK_EMU_MOST_FINDINGS)
            add(to, *found);
    }
}

void tk_emu_findings_deinit(tk_emu_findings *findings) {
    tk_vec_deinit(&findings->list);
    tk_arena_deinit(&findings->texts);
}
