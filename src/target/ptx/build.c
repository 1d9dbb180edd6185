/* The PTX target: text, then the assembler on it (assembler.c). */
#include <string.h>

#include "base/error.h"
#include "kernel/shared.h"
#include "target/artifact.h"
#include "target/ptx/assembler.h"
#include "target/ptx/ptx.h"
#include "tiki/analysis.h"

static const char *const architectures[] = {"sm_80", "sm_90", "sm_90a"};

tk_status tk_target_check_arch(const char *arch) {
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (!strcmp(arch, architectures[i])) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "architecture \"%.40s\", expected sm_80, sm_90 or sm_90a", arch);
}

/* ---- building ---- */

static tk_status generate(tk_artifact *artifact, bool lines) {
    tk_strbuf text = {0};
    tk_kshared_map map;
    tk_status status = tk_ptx_print(artifact->kernel, artifact->arch, lines, &text);
    if (status == TK_OK) status = tk_kshared_place(artifact->kernel, NULL, &map);
    if (status == TK_OK) artifact->report.shared_bytes = map.bytes;
    artifact->text = status == TK_OK ? tk_strbuf_take(&text) : NULL;
    if (artifact->text && strstr(artifact->text, "wgmma")) /* nothing else is in flight */
        status = tk_ptx_check(artifact->text, artifact->kernel->name);
    tk_strbuf_deinit(&text);
    return status;
}

static tk_status assemble(tk_artifact *artifact, const tk_build *how) {
    tk_assembler with;
    TK_TRY(tk_assembler_choose(&with));
    TK_TRY(tk_ptx_assemble(artifact, how, &with));
    tk_artifact_identify(artifact, "ptx", how, with.identity);
    return TK_OK;
}

tk_status tk_kernel_build_ptx(const tk_kernel *kernel, const tk_build *how, tk_artifact **out) {
    static const tk_build plain = {0};
    TK_NEED(kernel, out);
    if (!how) how = &plain;
    TK_TRY(tk_target_check_emit(how));
    const char *arch = how->arch ? how->arch : "sm_90a";
    TK_TRY(tk_target_check_arch(arch));
    TK_TRY(tk_kernel_prove_uniform(kernel));
    tk_artifact *artifact = tk_artifact_create(kernel, arch);
    if (!artifact) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
    tk_status status = generate(artifact, how->lines);
    if (status == TK_OK) tk_artifact_identify(artifact, "ptx", how, "");
    if (status == TK_OK && how->emit == TK_EMIT_BINARY) status = assemble(artifact, how);
    if (status == TK_OK)
        *out = artifact;
    else
        tk_artifact_release(artifact);
    return status;
}
