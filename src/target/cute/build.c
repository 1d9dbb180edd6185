/* The CuTe target: text, the compiler's worker, the cubin out of its object, and the comparison
 * with the launch contract.
 *
 * What the package hides is looked at as well: where there is a wgmma, the PTX it made is read for
 * registers in flight, and there and with `stages` it is assembled once more for the messages and
 * the report. Other kernels' PTX is not asked for: it takes the package a tenth of its time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernel/shared.h"
#include "kernel/verify.h"
#include "target/artifact.h"
#include "target/cubin.h"
#include "target/cute/compiler.h"
#include "target/cute/cute.h"
#include "target/cute/object.h"
#include "target/ptx/assembler.h"
#include "tiki/analysis.h"

/* ---- messages ---- */

/* The place of the first `"-":LINE:` in the compiler's messages. */
static const tk_cute_place *place_of(const char *messages, const tk_cute_places *places) {
    const char *at = strstr(messages, "\"-\":");
    unsigned long line = at ? strtoul(at + 4, NULL, 10) : 0;
    return line > 0 && line <= places->count ? &places->items[line - 1] : NULL;
}

static tk_status refused(const tk_artifact *artifact, const char *messages,
                         const tk_cute_places *places) {
    const tk_kernel *kernel = artifact->kernel;
    const tk_cute_place *place = place_of(messages, places);
    if (!place || place->code == TK_KOP_COUNT)
        return tk_fail(TK_INTERNAL, "the CuTe compiler refuses kernel %s: %.700s", kernel->name,
                       messages);
    const char *file = kernel->strings.items[place->loc.file ? place->loc.file : 1];
    return tk_fail(TK_INTERNAL, "%s:%" PRIu32 ": the CuTe compiler refuses %s in kernel %s: %.700s",
                   file, place->loc.line, tk_kopcode_name((tk_kopcode)place->code), kernel->name,
                   messages);
}

/* ---- the binary ---- */

static tk_status keep_binary(tk_artifact *artifact, const tk_cute_answer *answer) {
    const unsigned char *at;
    size_t bytes;
    TK_TRY(tk_cute_object_find((const unsigned char *)answer->object, answer->object_bytes, &at,
                               &bytes));
    TK_TRY(tk_cubin_check(at, bytes, artifact->kernel, artifact->arch));
    artifact->binary = tk_malloc(bytes);
    if (!artifact->binary) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a binary");
    memcpy(artifact->binary, at, bytes);
    artifact->binary_bytes = bytes;
    return TK_OK;
}

/* The package does not show what the assembler said: log and report come from a second run. */
static tk_status keep_report(tk_artifact *artifact, const tk_build *how, const char *ptx) {
    tk_assembler with;
    tk_artifact *again = tk_artifact_create(artifact->kernel, artifact->arch);
    if (!again) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
    again->report.shared_bytes = artifact->report.shared_bytes;
    again->text = tk_malloc(strlen(ptx) + 1);
    tk_status status = again->text ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for PTX");
    if (status == TK_OK) {
        memcpy(again->text, ptx, strlen(ptx) + 1);
        status = tk_assembler_choose(&with);
        if (status == TK_OK) status = tk_ptx_assemble(again, how, &with);
    }
    if (status == TK_OK) {
        artifact->report = again->report;
        artifact->log = again->log;
        again->log = NULL;
    }
    tk_artifact_release(again);
    return status == TK_UNSUPPORTED ? TK_OK : status; /* no assembler: no report */
}

static bool uses_wgmma(const tk_artifact *artifact) {
    return strstr(artifact->text, "wgmma.mma_async") != NULL;
}

static tk_status take_answer(tk_artifact *artifact, const tk_build *how, tk_cute_answer *answer) {
    TK_TRY(keep_binary(artifact, answer));
    if (!how->stages && !uses_wgmma(artifact)) return TK_OK;
    TK_TRY(tk_ptx_check(answer->ptx, artifact->kernel->name));
    TK_TRY(keep_report(artifact, how, answer->ptx));
    if (!how->stages) return TK_OK;
    artifact->stages[TK_STAGE_PTX] = answer->ptx;
    artifact->stages[TK_STAGE_LOWERED] = answer->lowered;
    answer->ptx = answer->lowered = NULL;
    return TK_OK;
}

static tk_status read_answer(tk_artifact *artifact, const tk_build *how,
                             const tk_cute_places *places, tk_cute_answer *answer) {
    if (answer->refused) return refused(artifact, answer->messages, places);
    if (!answer->no_room) return take_answer(artifact, how, answer);
    return tk_fail(TK_IO_ERROR, "the CuTe compiler cannot write its files: %.500s",
                   answer->messages);
}

static tk_status compile(tk_artifact *artifact, const tk_build *how, const tk_cute_places *places,
                         char tools[TK_CUTE_TOOLS_BYTES]) {
    tk_cute_job job = {.arch = artifact->arch,
                       .options = how->lines ? TK_CUTE_OPTIONS " preserve-line-info=true"
                                             : TK_CUTE_OPTIONS,
                       .text = artifact->text,
                       .text_bytes = strlen(artifact->text),
                       .ptx = how->stages || uses_wgmma(artifact),
                       .lowered = how->stages,
                       .limit_ms = how->limit_ms,
                       .stop = how->stop,
                       .stop_arg = how->stop_arg};
    tk_cute_answer answer;
    TK_TRY(tk_cute_compile(&job, &answer));
    snprintf(tools, TK_CUTE_TOOLS_BYTES, "%s", answer.version);
    tk_artifact_identify(artifact, "cute", how, tools);
    tk_status status = read_answer(artifact, how, places, &answer);
    tk_cute_answer_free(&answer);
    return status;
}

/* ---- building ---- */

static tk_status generate(tk_artifact *artifact, bool lines, tk_cute_places *places) {
    tk_strbuf text = {0};
    tk_kshared_map map;
    tk_status status = tk_cute_print(artifact->kernel, lines, &text, places);
    if (status == TK_OK) status = tk_kshared_place(artifact->kernel, NULL, &map);
    if (status == TK_OK) artifact->report.shared_bytes = map.bytes;
    artifact->text = status == TK_OK ? tk_strbuf_take(&text) : NULL;
    tk_strbuf_deinit(&text);
    return status;
}

/* The text is written once more, for where its lines come from. */
tk_status tk_cute_finish(tk_artifact *artifact, const tk_build *how,
                         char tools[TK_CUTE_TOOLS_BYTES]) {
    tk_cute_places places = {0};
    tk_strbuf text = {0};
    tk_status status = tk_cute_print(artifact->kernel, how->lines, &text, &places);
    tk_strbuf_deinit(&text);
    if (status == TK_OK) status = compile(artifact, how, &places, tools);
    tk_cute_places_free(&places);
    return status;
}

tk_status tk_kernel_build_cute(const tk_kernel *kernel, const tk_build *how, tk_artifact **out) {
    static const tk_build plain = {0};
    TK_NEED(kernel, out);
    if (!how) how = &plain;
    TK_TRY(tk_target_check_emit(how));
    const char *arch = how->arch ? how->arch : "sm_90a";
    TK_TRY(tk_target_check_arch(arch));
    TK_TRY(tk_kernel_prove_uniform(kernel));
    tk_artifact *artifact = tk_artifact_create(kernel, arch);
    if (!artifact) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
    tk_cute_places places = {0};
    char tools[TK_CUTE_TOOLS_BYTES];
    tk_status status = generate(artifact, how->lines, &places);
    if (status == TK_OK) tk_artifact_identify(artifact, "cute", how, "");
    if (status == TK_OK && how->emit == TK_EMIT_BINARY)
        status = compile(artifact, how, &places, tools);
    tk_cute_places_free(&places);
    if (status == TK_OK)
        *out = artifact;
    else
        tk_artifact_release(artifact);
    return status;
}
