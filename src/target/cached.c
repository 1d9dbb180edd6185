/* An artifact's entry has the text that the assembler (or the CuTe compiler) got in its key, so the
 * key needs no version of this library: what it changes about a kernel is in the text. Names of
 * values and source lines are not in it, unless lines are asked for. A payload is the report, the
 * assembler's log, the binary, and the stages that were asked for.
 *
 * Making that text takes milliseconds for large kernels, so a note says which entry a kernel has:
 * its key is the kernel's digest, what decides the text besides, and the digest of the sources that
 * make it. A note that is missing, or whose entry is, costs the text and nothing else; who changes
 * the library assembles nothing anew that stayed the same.
 *
 * Rejected: that digest in the artifact's own key, since every version would assemble every kernel.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernel/digest.h"
#include "runtime/artifact_cache.h"
#include "target/artifact.h"
#include "target/cute/compiler.h"
#include "target/generator.h"
#include "target/ptx/assembler.h"

static const char *const magics[TK_TARGET_COUNT] = {"tiki ptx 2", "tiki cute 1"};

enum { LOG, BINARY, STAGES, BLOCKS = STAGES + TK_STAGE_COUNT };

typedef struct head {
    char magic[16];
    tk_report report;
    uint64_t bytes[BLOCKS]; /* what follows, in this order */
} head;

/* ---- the key ---- */

enum { N_PARTS = 6, NOTE_PARTS = 7 };

typedef struct identity {
    char tools[TK_ARTIFACT_ASSEMBLER_BYTES];
    tk_assembler assembler; /* of PTX */
    char title[300], note_title[320];
    char options[400];
    char kernel[TK_SHA256_TEXT];
    tk_key_part parts[N_PARTS];   /* of the artifact; the text is last */
    tk_key_part note[NOTE_PARTS]; /* of the note that names the artifact's entry */
} identity;

static tk_key_part text_part(const char *name, const char *value) {
    return (tk_key_part){name, value, strlen(value)};
}

static tk_status find_tools(const tk_build *how, identity *out) {
    if (how->target == TK_TARGET_CUTE) return tk_cute_identity(out->tools, sizeof out->tools);
    TK_TRY(tk_assembler_choose(&out->assembler));
    snprintf(out->tools, sizeof out->tools, "%s", out->assembler.identity);
    return TK_OK;
}

/* All but the text, which the note does without. */
static tk_status identify(const char *name, const unsigned char *digest, const tk_build *how,
                          identity *out) {
    bool cute = how->target == TK_TARGET_CUTE;
    const char *arch = how->arch ? how->arch : "sm_90a";
    TK_TRY(find_tools(how, out));
    snprintf(out->title, sizeof out->title, "%.200s for %s%s", name, arch, cute ? " by cute" : "");
    snprintf(out->note_title, sizeof out->note_title, "note: %s", out->title);
    snprintf(out->options, sizeof out->options, "%s%s%s", tk_build_option_words(how),
             cute && how->stages ? " stages " : "", cute ? TK_CUTE_OPTIONS : "");
    tk_sha256_text(digest, out->kernel);
    out->parts[0] = text_part("kernel", out->title);
    out->parts[1] = text_part("target", magics[how->target]);
    out->parts[2] = text_part("architecture", arch);
    out->parts[3] = text_part("options", out->options);
    out->parts[4] = text_part(cute ? "compiler" : "assembler", out->tools);
    memcpy(out->note, out->parts, sizeof out->note[0] * (N_PARTS - 1));
    out->note[0] = text_part(TK_NOTE_PART, out->note_title);
    out->note[N_PARTS - 1] = text_part("kernel digest", out->kernel);
    out->note[N_PARTS] = text_part("generator", tk_generator);
    return TK_OK;
}

static void add_text(const tk_artifact *artifact, identity *key) {
    key->parts[N_PARTS - 1] = text_part("text", artifact->text);
}

/* ---- the payload ---- */

static void list_blocks(const tk_artifact *artifact, const char *blocks[BLOCKS], head *h) {
    blocks[LOG] = artifact->log ? artifact->log : "";
    blocks[BINARY] = (const char *)artifact->binary;
    for (int i = 0; i < TK_STAGE_COUNT; i++) blocks[STAGES + i] = artifact->stages[i];
    for (int i = 0; i < BLOCKS; i++)
        h->bytes[i] = i == BINARY ? artifact->binary_bytes : blocks[i] ? strlen(blocks[i]) : 0;
}

static tk_status write_payload(const tk_artifact *artifact, tk_target target, tk_cached *out) {
    const char *blocks[BLOCKS];
    head h = {.report = artifact->report};
    snprintf(h.magic, sizeof h.magic, "%s", magics[target]);
    list_blocks(artifact, blocks, &h);
    out->length = sizeof h;
    for (int i = 0; i < BLOCKS; i++) out->length += h.bytes[i];
    unsigned char *to = out->bytes = tk_malloc(out->length);
    if (!to) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
    memcpy(to, &h, sizeof h);
    to += sizeof h;
    for (int i = 0; i < BLOCKS; to += h.bytes[i++])
        if (h.bytes[i]) memcpy(to, blocks[i], h.bytes[i]);
    return TK_OK;
}

static char *copy_of(const unsigned char *from, uint64_t bytes) {
    char *copy = tk_malloc(bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, from, bytes);
    copy[bytes] = 0;
    return copy;
}

/* Blocks without bytes stay away, but for the log. */
static bool take_blocks(const unsigned char *from, const head *h, tk_artifact *artifact) {
    char *blocks[BLOCKS] = {0};
    bool whole = true;
    for (int i = 0; i < BLOCKS; from += h->bytes[i++]) {
        if (i != LOG && !h->bytes[i]) continue;
        blocks[i] = copy_of(from, h->bytes[i]);
        whole = whole && blocks[i];
    }
    artifact->log = blocks[LOG];
    artifact->binary = (unsigned char *)blocks[BINARY];
    artifact->binary_bytes = h->bytes[BINARY];
    for (int i = 0; i < TK_STAGE_COUNT; i++) artifact->stages[i] = blocks[STAGES + i];
    return whole;
}

/* The cache has checked every byte, so what does not fit was written by another program. */
static tk_status read_payload(const tk_cached *payload, tk_target target, tk_artifact *artifact) {
    head h;
    if (payload->length < sizeof h) return TK_FORMAT_ERROR;
    memcpy(&h, payload->bytes, sizeof h);
    uint64_t room = payload->length - sizeof h;
    for (int i = 0; i < BLOCKS; i++) {
        if (h.bytes[i] > room) return TK_FORMAT_ERROR;
        room -= h.bytes[i];
    }
    if (strncmp(h.magic, magics[target], sizeof h.magic) || room || !h.bytes[BINARY])
        return TK_FORMAT_ERROR;
    artifact->report = h.report;
    if (take_blocks(payload->bytes + sizeof h, &h, artifact)) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for an artifact");
}

/* ---- finding or building ---- */

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static tk_cache *of_process;

static void open_cache(void) {
    if (tk_cache_open(NULL, &of_process) != TK_OK) of_process = NULL;
}

tk_cache *tk_artifact_cache(void) {
    (void)pthread_once(&opened, open_cache);
    return of_process;
}

static const tk_build plain = {0};

typedef struct building {
    tk_artifact *artifact;
    const tk_build *how;
    const identity *key;
    bool strange; /* another compiler answered than the key says: nothing is kept */
} building;

static tk_status finish(building *b) {
    char tools[TK_CUTE_TOOLS_BYTES];
    if (b->how->target == TK_TARGET_CUTE) {
        TK_TRY(tk_cute_finish(b->artifact, b->how, tools));
        b->strange = strcmp(tools, b->key->tools) != 0;
        return b->strange ? TK_NOT_FOUND : TK_OK;
    }
    TK_TRY(tk_ptx_assemble(b->artifact, b->how, &b->key->assembler));
    tk_artifact_identify(b->artifact, "ptx", b->how, b->key->tools);
    return TK_OK;
}

static tk_status build_payload(void *arg, tk_cached *out) {
    building *b = arg;
    TK_TRY(finish(b));
    return write_payload(b->artifact, b->how->target, out);
}

static tk_status find_or_build(tk_artifact *artifact, const tk_build *how, const identity *key,
                               tk_cache *cache, bool *out_built) {
    tk_cached payload = {0};
    building b = {artifact, how, key, false};
    tk_status status =
        tk_cache_get_or_build(cache, key->parts, N_PARTS, build_payload, &b, &payload, out_built);
    if (b.strange) return *out_built = true, TK_OK;
    if (status != TK_OK) return status;
    if (!artifact->binary) {
        status = read_payload(&payload, how->target, artifact);
        tk_artifact_identify(artifact, tk_target_name(how->target), how, key->tools);
    }
    tk_free(payload.bytes);
    if (status != TK_FORMAT_ERROR) return status;
    *out_built = true;
    status = finish(&b);
    return b.strange ? TK_OK : status;
}

/* ---- notes ---- */

typedef struct note {
    unsigned char entry[TK_SHA256_BYTES]; /* the artifact's */
    char identity[TK_SHA256_TEXT];
} note;

static void write_note(tk_cache *cache, const tk_artifact *artifact, const identity *key) {
    unsigned char *encoded;
    size_t bytes;
    note made;
    if (tk_key_encode(key->parts, N_PARTS, &encoded, &bytes, made.entry) != TK_OK) return;
    tk_free(encoded);
    memcpy(made.identity, artifact->identity, sizeof made.identity);
    tk_cache_note(cache, key->note, NOTE_PARTS, &made, sizeof made);
}

static bool read_note(tk_cache *cache, const identity *key, note *out) {
    tk_cached payload;
    if (tk_cache_get(cache, key->note, NOTE_PARTS, &payload) != TK_OK) return false;
    bool fits = payload.length == sizeof *out && !payload.bytes[sizeof *out - 1];
    if (fits) memcpy(out, payload.bytes, sizeof *out);
    tk_free(payload.bytes);
    return fits;
}

/* The text is the last part of the entry's key. */
static bool take_text(const tk_cache_record *entry, tk_artifact *artifact) {
    size_t offset = 0, name;
    tk_key_part part = {0};
    while (tk_key_next(entry, &offset, &part, &name)) continue;
    artifact->text = copy_of(part.value, part.bytes);
    return artifact->text != NULL;
}

static bool take_entry(const tk_cache_record *entry, const note *from, const tk_build *how,
                       const identity *key, tk_artifact *artifact) {
    tk_cached payload = {(unsigned char *)(uintptr_t)entry->payload, entry->payload_bytes};
    if (entry->n_parts != N_PARTS || !take_text(entry, artifact) ||
        read_payload(&payload, how->target, artifact) != TK_OK)
        return false;
    memcpy(artifact->identity, from->identity, sizeof artifact->identity);
    snprintf(artifact->assembler, sizeof artifact->assembler, "%s", key->tools);
    return true;
}

/* The artifact that a note names; NULL when the text must be made. */
static tk_artifact *recall(const tk_kernel *kernel, const tk_build *how, const identity *key,
                           tk_cache *cache) {
    note from;
    unsigned char *bytes;
    tk_cache_record entry;
    if (!read_note(cache, key, &from) || !tk_cache_find_entry(cache, from.entry, &bytes, &entry))
        return NULL;
    tk_artifact *artifact = tk_artifact_create(kernel, how->arch ? how->arch : "sm_90a");
    if (artifact && !take_entry(&entry, &from, how, key, artifact)) {
        tk_artifact_release(artifact);
        artifact = NULL;
    }
    tk_free(bytes);
    return artifact;
}

tk_status tk_kernel_recall(const tk_kernel *head, const unsigned char digest[TK_SHA256_BYTES],
                           const tk_build *how, tk_artifact **out) {
    identity key;
    tk_cache *cache = tk_artifact_cache();
    TK_TRY(identify(head->name, digest, how, &key));
    *out = cache ? recall(head, how, &key, cache) : NULL;
    return *out ? TK_OK : TK_NOT_FOUND;
}

/* ---- for everybody ---- */

static tk_status generate(const tk_kernel *kernel, const tk_build *how, tk_artifact **out) {
    tk_build text = *how;
    text.emit = TK_EMIT_TEXT;
    return tk_kernel_build(kernel, &text, out);
}

static tk_status build_and_note(const tk_kernel *kernel, const tk_build *how, identity *key,
                                tk_cache *cache, bool *out_built, tk_artifact **out) {
    TK_TRY(generate(kernel, how, out));
    add_text(*out, key);
    tk_status status = find_or_build(*out, how, key, cache, out_built);
    if (status == TK_OK)
        write_note(cache, *out, key);
    else
        tk_artifact_release(*out);
    return status;
}

/* What both entry points begin with. */
static tk_status begin(const tk_kernel *kernel, const tk_build *how, tk_cache **cache,
                       identity *out_key) {
    unsigned char digest[TK_SHA256_BYTES];
    if (!*cache) *cache = tk_artifact_cache();
    if (!*cache) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the cache of kernels");
    TK_TRY(tk_check_enum("target", (int)how->target, TK_TARGET_COUNT, "tk_target"));
    TK_TRY(tk_target_check_emit(how));
    TK_TRY(tk_kernel_digest(kernel, how->lines, digest));
    return identify(kernel->name, digest, how, out_key);
}

tk_status tk_kernel_build_cached(const tk_kernel *kernel, const tk_build *how, tk_cache *cache,
                                 tk_artifact **out, bool *out_built) {
    bool built = false;
    identity key;
    TK_NEED(kernel, out);
    if (!how) how = &plain;
    TK_TRY(begin(kernel, how, &cache, &key));
    tk_artifact *artifact = recall(kernel, how, &key, cache);
    if (!artifact) TK_TRY(build_and_note(kernel, how, &key, cache, &built, &artifact));
    if (out_built) *out_built = built;
    *out = artifact;
    return TK_OK;
}

tk_status tk_kernel_cache_explain(const tk_kernel *kernel, const tk_build *how, tk_cache *cache,
                                  char **out_text) {
    identity key;
    tk_artifact *artifact;
    TK_NEED(kernel, out_text);
    if (!how) how = &plain;
    TK_TRY(begin(kernel, how, &cache, &key));
    TK_TRY(generate(kernel, how, &artifact));
    add_text(artifact, &key);
    tk_status status = tk_cache_explain_miss(cache, key.parts, N_PARTS, out_text);
    tk_artifact_release(artifact);
    return status;
}
