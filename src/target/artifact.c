/* Artifacts are counted records; targets fill them before anybody else sees them. */
#include "target/artifact.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sha256.h"

/* ---- targets ---- */

static const char *const target_names[TK_TARGET_COUNT] = {"ptx", "cute"};

const char *tk_target_name(tk_target target) {
    return (unsigned)target < TK_TARGET_COUNT ? target_names[target] : "?";
}

tk_status tk_target_find(const char *name, tk_target *out_target) {
    TK_NEED(name, out_target);
    for (int i = 0; i < TK_TARGET_COUNT; i++)
        if (!strcmp(name, target_names[i])) return *out_target = (tk_target)i, TK_OK;
    return tk_fail(TK_NOT_FOUND, "target \"%.40s\", expected ptx or cute", name);
}

tk_status tk_target_check_emit(const tk_build *how) {
    return tk_check_enum("emit", (int)how->emit, TK_EMIT_BINARY + 1, "tk_emit");
}

tk_status tk_kernel_build(const tk_kernel *kernel, const tk_build *how, tk_artifact **out) {
    tk_target target = how ? how->target : TK_TARGET_PTX;
    TK_TRY(tk_check_enum("target", (int)target, TK_TARGET_COUNT, "tk_target"));
    return target == TK_TARGET_CUTE ? tk_kernel_build_cute(kernel, how, out)
                                    : tk_kernel_build_ptx(kernel, how, out);
}

/* ---- artifacts ---- */

tk_artifact *tk_artifact_create(const tk_kernel *kernel, const char *arch) {
    tk_artifact *artifact = tk_calloc(1, sizeof *artifact);
    if (!artifact) return NULL;
    artifact->references = 1;
    artifact->kernel = tk_kernel_retain((tk_kernel *)(uintptr_t)kernel);
    snprintf(artifact->arch, sizeof artifact->arch, "%s", arch);
    artifact->report = (tk_report){-1, -1, -1, -1, -1, 0, -1};
    return artifact;
}

tk_artifact *tk_artifact_retain(tk_artifact *artifact) {
    if (artifact) __atomic_add_fetch(&artifact->references, 1, __ATOMIC_RELAXED);
    return artifact;
}

void tk_artifact_release(tk_artifact *artifact) {
    if (!artifact || __atomic_sub_fetch(&artifact->references, 1, __ATOMIC_ACQ_REL)) return;
    tk_kernel_release(artifact->kernel);
    tk_free(artifact->text);
    tk_free(artifact->log);
    tk_free(artifact->binary);
    for (int i = 0; i < TK_STAGE_COUNT; i++) tk_free(artifact->stages[i]);
    tk_free(artifact);
}

const char *tk_build_option_words(const tk_build *how) {
    static const char *const words[] = {"", "lines", "serialized", "lines serialized"};
    return words[how->lines + 2 * how->serialized];
}

/* Parts end in a zero, so that none runs into the next. */
static void put_part(tk_sha256 *hash, const char *part) {
    tk_sha256_put(hash, part, strlen(part) + 1);
}

void tk_artifact_identify(tk_artifact *artifact, const char *target, const tk_build *how,
                          const char *tools) {
    tk_sha256 hash;
    unsigned char digest[TK_SHA256_BYTES];
    tk_sha256_begin(&hash);
    put_part(&hash, target);
    put_part(&hash, artifact->arch);
    put_part(&hash, tk_build_option_words(how));
    put_part(&hash, tools);
    put_part(&hash, artifact->text);
    tk_sha256_end(&hash, digest);
    tk_sha256_text(digest, artifact->identity);
    snprintf(artifact->assembler, sizeof artifact->assembler, "%s", tools);
}

const char *tk_artifact_identity(const tk_artifact *artifact) {
    return artifact ? artifact->identity : NULL;
}

const char *tk_artifact_text(const tk_artifact *artifact) {
    return artifact ? artifact->text : NULL;
}
const char *tk_artifact_log(const tk_artifact *artifact) {
    return artifact && artifact->log ? artifact->log : "";
}
const char *tk_artifact_assembler(const tk_artifact *artifact) {
    return artifact ? artifact->assembler : "";
}
const char *tk_artifact_arch(const tk_artifact *artifact) {
    return artifact ? artifact->arch : NULL;
}
const tk_kernel *tk_artifact_kernel(const tk_artifact *artifact) {
    return artifact ? artifact->kernel : NULL;
}

const char *tk_artifact_stage(const tk_artifact *artifact, tk_stage stage) {
    if (!artifact || (unsigned)stage >= TK_STAGE_COUNT) return NULL;
    return artifact->stages[stage];
}

const void *tk_artifact_binary(const tk_artifact *artifact, size_t *out_bytes) {
    if (out_bytes) *out_bytes = artifact ? artifact->binary_bytes : 0;
    return artifact ? artifact->binary : NULL;
}

tk_status tk_artifact_report(const tk_artifact *artifact, tk_report *out) {
    TK_NEED(artifact, out);
    *out = artifact->report;
    return TK_OK;
}
