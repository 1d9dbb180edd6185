/* Findings and counts of an emulation, as records and as text. */
#include "kernel/emulation.h"

#include <inttypes.h>

#include "base/error.h"

#define FINDING_NAME(id, name, meaning) name,
#define FINDING_MEANING(id, name, meaning) meaning,
static const char *const names[] = {TK_KFINDINGS(FINDING_NAME)};
static const char *const meanings[] = {TK_KFINDINGS(FINDING_MEANING)};

const char *tk_kfinding_name(tk_kfinding_kind kind) {
    return (unsigned)kind < TK_KFINDING_COUNT ? names[kind] : "?";
}
const char *tk_kfinding_meaning(tk_kfinding_kind kind) {
    return (unsigned)kind < TK_KFINDING_COUNT ? meanings[kind] : "?";
}

void tk_emulation_release(tk_emulation *emulation) {
    if (!emulation) return;
    tk_emu_launch *launch = &emulation->launch;
    tk_emu_global_release(launch);
    tk_emu_findings_deinit(&launch->findings);
    tk_free(launch->buffers);
    tk_free(launch->maps);
    tk_free(launch->image);
    tk_free(launch->counters);
    tk_emu_program_deinit(&emulation->program);
    tk_kernel_release(emulation->kernel);
    tk_free(emulation);
}

/* ---- records ---- */

static const char *file_of(const tk_kernel *kernel, const tk_kop *op) {
    if (op->loc.file || kernel->strings.count < 2) return kernel->strings.items[op->loc.file];
    return kernel->strings.items[1];
}

size_t tk_emulation_findings(const tk_emulation *emulation) {
    return emulation ? emulation->launch.findings.list.count : 0;
}

tk_status tk_emulation_finding(const tk_emulation *emulation, size_t index, tk_kfinding *out) {
    TK_NEED(emulation, out);
    if (index >= tk_emulation_findings(emulation))
        return tk_fail(TK_INDEX_ERROR, "finding %zu of %zu", index,
                       tk_emulation_findings(emulation));
    const tk_emu_found *found = &emulation->launch.findings.list.items[index];
    *out = (tk_kfinding){.kind = found->kind,
                         .message = found->message,
                         .operation = tk_kopcode_name((tk_kopcode)found->op->code),
                         .file = file_of(emulation->kernel, found->op),
                         .line = found->op->loc.line,
                         .thread = found->thread,
                         .other_thread = found->other_thread,
                         .count = found->count};
    memcpy(out->block, found->block, sizeof out->block);
    memcpy(out->other_block, found->other_block, sizeof out->other_block);
    if (!found->other_op) return TK_OK;
    out->other_operation = tk_kopcode_name((tk_kopcode)found->other_op->code);
    out->other_line = found->other_op->loc.line;
    return TK_OK;
}

size_t tk_emulation_counts(const tk_emulation *emulation) {
    return emulation ? emulation->program.ops.count : 0;
}

tk_status tk_emulation_count(const tk_emulation *emulation, size_t index, tk_kcount *out) {
    TK_NEED(emulation, out);
    if (index >= tk_emulation_counts(emulation))
        return tk_fail(TK_INDEX_ERROR, "count %zu of %zu", index, tk_emulation_counts(emulation));
    const tk_emu_counter *counter = &emulation->launch.counters[index];
    const tk_kop *op = emulation->program.ops.items[index];
    *out = (tk_kcount){.operation = tk_kopcode_name((tk_kopcode)op->code),
                       .line = op->loc.line,
                       .warps = counter->warps,
                       .lanes = counter->lanes,
                       .sectors = counter->sectors,
                       .conflicts = counter->conflicts};
    return TK_OK;
}

tk_ktotals tk_emulation_totals(const tk_emulation *emulation) {
    return emulation ? emulation->launch.totals : (tk_ktotals){0};
}

/* ---- text ---- */

static void put_place(tk_strbuf *out, const int64_t *block, int32_t thread) {
    tk_strbuf_printf(out, "block (%" PRId64 ", %" PRId64 ", %" PRId64 ")", block[0], block[1],
                     block[2]);
    if (thread >= 0) tk_strbuf_printf(out, " thread %d", thread);
}

/* add.tk:17: shared race: a write after an unordered write, ... (store, block (0, 0, 0) thread 3,
 * ...) */
static void put_finding(tk_strbuf *out, const tk_kfinding *f) {
    tk_strbuf_printf(out, "%s:%u: %s: %s (%s, ", f->file, f->line, tk_kfinding_name(f->kind),
                     f->message, f->operation);
    put_place(out, f->block, f->thread);
    if (f->other_operation) {
        tk_strbuf_printf(out, "; %s in line %u, ", f->other_operation, f->other_line);
        put_place(out, f->other_block, f->other_thread);
    }
    if (f->count > 1) tk_strbuf_printf(out, "; %" PRIu64 " times", f->count);
    tk_strbuf_puts(out, ")\n");
}

static void put_string(tk_strbuf *out, const char *name, const char *text) {
    tk_strbuf_printf(out, "\"%s\": \"", name);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            tk_strbuf_printf(out, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            tk_strbuf_printf(out, "\\u%04x", *text);
        else
            tk_strbuf_putc(out, *text);
    }
    tk_strbuf_puts(out, "\", ");
}

static void put_json_place(tk_strbuf *out, const char *prefix, const int64_t *block,
                           int32_t thread) {
    tk_strbuf_printf(out,
                     "\"%sblock\": [%" PRId64 ", %" PRId64 ", %" PRId64 "], \"%sthread\": %d, ",
                     prefix, block[0], block[1], block[2], prefix, thread);
}

static void put_json_finding(tk_strbuf *out, const tk_kfinding *f) {
    tk_strbuf_putc(out, '{');
    put_string(out, "kind", tk_kfinding_name(f->kind));
    put_string(out, "message", f->message);
    put_string(out, "file", f->file);
    tk_strbuf_printf(out, "\"line\": %u, ", f->line);
    put_string(out, "operation", f->operation);
    put_json_place(out, "", f->block, f->thread);
    if (f->other_operation) {
        put_string(out, "other_operation", f->other_operation);
        tk_strbuf_printf(out, "\"other_line\": %u, ", f->other_line);
        put_json_place(out, "other_", f->other_block, f->other_thread);
    }
    tk_strbuf_printf(out, "\"count\": %" PRIu64 "}", f->count);
}

static tk_status put_all(const tk_emulation *emulation, bool json, char **out_text) {
    tk_strbuf out = {0};
    tk_strbuf_puts(&out, json ? "[" : "");
    for (size_t i = 0; i < tk_emulation_findings(emulation); i++) {
        tk_kfinding finding;
        TK_TRY(tk_emulation_finding(emulation, i, &finding));
        if (json && i) tk_strbuf_puts(&out, ",\n ");
        (json ? put_json_finding : put_finding)(&out, &finding);
    }
    tk_strbuf_puts(&out, json ? "]" : "");
    char *text = tk_strbuf_take(&out);
    tk_strbuf_deinit(&out);
    if (!text) return tk_fail(TK_OUT_OF_MEMORY, "no memory to print findings");
    *out_text = text;
    return TK_OK;
}

tk_status tk_emulation_text(const tk_emulation *emulation, char **out_text) {
    TK_NEED(emulation, out_text);
    return put_all(emulation, false, out_text);
}

tk_status tk_emulation_json(const tk_emulation *emulation, char **out_text) {
    TK_NEED(emulation, out_text);
    return put_all(emulation, true, out_text);
}
