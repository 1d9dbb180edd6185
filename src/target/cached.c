/* The text is generated each time, which costs less than a read from disk; only the assembler is
 * spared. So the key needs no version of this library: what it changes about a kernel is in the
 * text. Names of values and source lines are not in it, unless lines are asked for.
 *
 * A payload is the report, the assembler's log and the binary. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/artifact_cache.h"
#include "target/artifact.h"
#include "target/ptx/assembler.h"

#define MAGIC "tiki ptx 1"

typedef struct head {
    char magic[16];
    tk_report report;
    uint64_t log_bytes, binary_bytes;
} head;

/* ---- the key ---- */

enum { N_PARTS = 6 };

typedef struct identity {
    char assembler[120];
    char title[300];
    tk_key_part parts[N_PARTS];
} identity;

static tk_key_part text_part(const char *name, const char *value) {
    return (tk_key_part){name, value, strlen(value)};
}

static tk_status identify(const tk_artifact *artifact, const tk_build *how, identity *out) {
    char path[TK_ASSEMBLER_PATH_BYTES];
    TK_TRY(tk_assembler_find(path));
    TK_TRY(tk_assembler_identity(path, out->assembler, sizeof out->assembler));
    snprintf(out->title, sizeof out->title, "%.200s for %s", tk_kernel_name(artifact->kernel),
             artifact->arch);
    out->parts[0] = text_part("kernel", out->title);
    out->parts[1] = text_part("target", MAGIC);
    out->parts[2] = text_part("architecture", artifact->arch);
    out->parts[3] = text_part("options", tk_build_option_words(how));
    out->parts[4] = text_part("assembler", out->assembler);
    out->parts[5] = text_part("text", artifact->text);
    return TK_OK;
}

/* ---- the payload ---- */

static tk_status write_payload(const tk_artifact *artifact, tk_cached *out) {
    const char *log = artifact->log ? artifact->log : "";
    head h = {.magic = MAGIC,
              .report = artifact->report,
              .log_bytes = strlen(log),
              .binary_bytes = artifact->binary_bytes};
    out->length = sizeof h + h.log_bytes + h.binary_bytes;
    out->bytes = tk_malloc(out->length);
    if (!out->bytes) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
    memcpy(out->bytes, &h, sizeof h);
    memcpy(out->bytes + sizeof h, log, h.log_bytes);
    memcpy(out->bytes + sizeof h + h.log_bytes, artifact->binary, h.binary_bytes);
    return TK_OK;
}

static unsigned char *copy_of(const unsigned char *from, uint64_t bytes) {
    unsigned char *copy = tk_malloc(bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, from, bytes);
    copy[bytes] = 0;
    return copy;
}

/* The cache has checked every byte, so what does not fit was written by another program. */
static tk_status read_payload(const tk_cached *payload, tk_artifact *artifact) {
    head h;
    if (payload->length < sizeof h) return TK_FORMAT_ERROR;
    memcpy(&h, payload->bytes, sizeof h);
    uint64_t room = payload->length - sizeof h;
    if (memcmp(h.magic, MAGIC, sizeof MAGIC) || h.log_bytes > room ||
        h.binary_bytes != room - h.log_bytes)
        return TK_FORMAT_ERROR;
    artifact->log = (char *)copy_of(payload->bytes + sizeof h, h.log_bytes);
    artifact->binary = copy_of(payload->bytes + sizeof h + h.log_bytes, h.binary_bytes);
    artifact->binary_bytes = h.binary_bytes;
    artifact->report = h.report;
    if (artifact->log && artifact->binary) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
}

/* ---- finding or building ---- */

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static tk_cache *of_process;

static void open_cache(void) {
    if (tk_cache_open(NULL, &of_process) != TK_OK) of_process = NULL;
}

/* NULL without memory. */
static tk_cache *default_cache(void) {
    (void)pthread_once(&opened, open_cache);
    return of_process;
}

static const tk_build plain = {0};

typedef struct building {
    tk_artifact *artifact;
    const tk_build *how;
} building;

static tk_status build_payload(void *arg, tk_cached *out) {
    building *b = arg;
    TK_TRY(tk_ptx_assemble(b->artifact, b->how));
    return write_payload(b->artifact, out);
}

static tk_status find_or_build(tk_artifact *artifact, const tk_build *how, tk_cache *cache,
                               bool *out_built) {
    identity key;
    building b = {artifact, how};
    tk_cached payload = {0};
    TK_TRY(identify(artifact, how, &key));
    if (!cache) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the cache of kernels");
    TK_TRY(
        tk_cache_get_or_build(cache, key.parts, N_PARTS, build_payload, &b, &payload, out_built));
    tk_status status = TK_OK;
    if (!artifact->binary) status = read_payload(&payload, artifact);
    tk_free(payload.bytes);
    if (status == TK_FORMAT_ERROR) {
        *out_built = true;
        status = tk_ptx_assemble(artifact, how);
    }
    if (status == TK_OK) tk_artifact_identify(artifact, "ptx", how, key.assembler);
    return status;
}

static tk_status generate(const tk_kernel *kernel, const tk_build *how, tk_artifact **out) {
    tk_build text = *how;
    text.emit = TK_EMIT_TEXT;
    return tk_kernel_build_ptx(kernel, &text, out);
}

tk_status tk_kernel_build_cached(const tk_kernel *kernel, const tk_build *how, tk_cache *cache,
                                 tk_artifact **out, bool *out_built) {
    bool built = false;
    tk_artifact *artifact;
    TK_NEED(kernel, out);
    if (!how) how = &plain;
    TK_TRY(generate(kernel, how, &artifact));
    tk_status status = find_or_build(artifact, how, cache ? cache : default_cache(), &built);
    if (out_built) *out_built = built;
    if (status == TK_OK)
        *out = artifact;
    else
        tk_artifact_release(artifact);
    return status;
}

tk_status tk_kernel_cache_explain(const tk_kernel *kernel, const tk_build *how, tk_cache *cache,
                                  char **out_text) {
    identity key;
    tk_artifact *artifact;
    TK_NEED(kernel, out_text);
    if (!how) how = &plain;
    if (!cache) cache = default_cache();
    if (!cache) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the cache of kernels");
    TK_TRY(generate(kernel, how, &artifact));
    tk_status status = identify(artifact, how, &key);
    if (status == TK_OK) status = tk_cache_explain_miss(cache, key.parts, N_PARTS, out_text);
    tk_artifact_release(artifact);
    return status;
}
