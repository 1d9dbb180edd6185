/* See plan_record.h. A note's payload is
 *
 *     scratches: count, bytes of each
 *     launches: count, then of each
 *         facts of the body; arguments: count, records; head: bytes of the text, the text
 *
 * in this machine's words: the cache is a folder of one user on one machine. Its checksums cover
 * the note; what does not fit was written by another program and is as good as absent. */
#include "compile/plan_record.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/artifact_cache.h"
#include "target/artifact.h"
#include "target/generator.h"

/* ---- plans ---- */

tk_kept_plan *tk_kept_plan_create(tk_library_plan *plan, tk_body_facts *facts) {
    tk_kept_plan *kept = tk_malloc(sizeof *kept);
    if (kept) {
        *kept = (tk_kept_plan){1, plan, facts, facts != NULL};
        return kept;
    }
    tk_library_plan_release(plan);
    tk_free(facts);
    return NULL;
}

tk_kept_plan *tk_kept_plan_retain(tk_kept_plan *kept) {
    __atomic_add_fetch(&kept->references, 1, __ATOMIC_RELAXED);
    return kept;
}

void tk_kept_plan_release(tk_kept_plan *kept) {
    if (!kept || __atomic_sub_fetch(&kept->references, 1, __ATOMIC_ACQ_REL)) return;
    tk_library_plan_release(kept->plan);
    tk_free(kept->facts);
    tk_free(kept);
}

/* ---- the key ---- */

enum { PARTS = 6 };

typedef struct call_key {
    char title[80];
    tk_strbuf tensors, numbers, schedule;
    tk_key_part parts[PARTS];
} call_key;

static void put_list(tk_strbuf *out, const int64_t *items, int count) {
    tk_strbuf_putc(out, '(');
    for (int i = 0; i < count; i++)
        tk_strbuf_printf(out, i ? ",%lld" : "%lld", (long long)items[i]);
    tk_strbuf_putc(out, ')');
}

static void put_tensor(tk_strbuf *out, const tk_library_tensor *tensor) {
    if (out->length) tk_strbuf_putc(out, ' ');
    if (tensor->rank < 0) {
        tk_strbuf_putc(out, '-');
        return;
    }
    tk_strbuf_puts(out, tk_kscalar_text(tensor->element));
    put_list(out, tensor->shape, tensor->rank);
    tk_strbuf_putc(out, ':');
    put_list(out, tensor->stride, tensor->rank);
    tk_strbuf_printf(out, "@%lld", (long long)tensor->align);
}

static void put_schedule(tk_strbuf *out, const tk_plan_key *key) {
    const tk_library_schedule *s = &key->schedule;
    tk_strbuf_puts(out, !key->has_schedule ? "default" : "given");
    if (key->no_clusters) tk_strbuf_puts(out, " without clusters");
    if (!key->has_schedule) return;
#define TK_LIBRARY_FIELD(name, low, high, power, doc)                                              \
    tk_strbuf_printf(out, " %s=%lld", #name, (long long)s->name);
#include "tiki/library.def"
}

static tk_key_part buffer_part(const char *name, const tk_strbuf *from) {
    return (tk_key_part){name, from->text ? from->text : "", from->length};
}

/* False when memory is out. */
static bool make_key(const tk_plan_key *key, call_key *out) {
    *out = (call_key){0};
    snprintf(out->title, sizeof out->title, "call: %s", tk_library_name((tk_library_id)key->id));
    for (size_t i = 0; i < key->n_tensors; i++) put_tensor(&out->tensors, &key->tensors[i]);
    for (size_t i = 0; i < key->n_numbers; i++)
        tk_strbuf_printf(&out->numbers, "%llx ", (unsigned long long)key->numbers[i]);
    put_schedule(&out->schedule, key);
    out->parts[0] = (tk_key_part){TK_NOTE_PART, out->title, strlen(out->title)};
    out->parts[1] = (tk_key_part){"form", "tiki plan 1", 11};
    out->parts[2] = buffer_part("tensors", &out->tensors);
    out->parts[3] = buffer_part("numbers", &out->numbers);
    out->parts[4] = buffer_part("schedule", &out->schedule);
    out->parts[5] = (tk_key_part){"generator", tk_generator, strlen(tk_generator)};
    return !out->tensors.failed && !out->numbers.failed && !out->schedule.failed;
}

static void drop_key(call_key *key) {
    tk_strbuf_deinit(&key->tensors);
    tk_strbuf_deinit(&key->numbers);
    tk_strbuf_deinit(&key->schedule);
}

/* ---- writing ---- */

static void put_bytes(tk_strbuf *out, const void *from, size_t bytes) {
    if (bytes) tk_strbuf_put(out, from, bytes);
}

static void put_count(tk_strbuf *out, size_t count) {
    uint64_t word = count;
    put_bytes(out, &word, sizeof word);
}

static tk_status put_head(tk_strbuf *out, const tk_kernel *kernel) {
    tk_kernel *head = NULL;
    char *text = NULL;
    TK_TRY(tk_kernel_clone_head(kernel, &head));
    tk_status status = tk_kernel_print(head, 0, &text);
    tk_kernel_release(head);
    if (status != TK_OK) return status;
    put_count(out, strlen(text));
    put_bytes(out, text, strlen(text));
    tk_kernel_text_free(text);
    return TK_OK;
}

/* Field by field: what lies between them is not written. */
static void put_arguments(tk_strbuf *out, const tk_library_step *step) {
    put_count(out, step->arguments.count);
    for (size_t i = 0; i < step->arguments.count; i++) {
        const tk_library_argument *from = &step->arguments.items[i];
        tk_library_argument argument;
        memset(&argument, 0, sizeof argument);
        argument.kind = from->kind;
        argument.index = from->index;
        argument.bits = from->bits;
        put_bytes(out, &argument, sizeof argument);
    }
}

static tk_status put_step(tk_strbuf *out, const tk_library_step *step) {
    tk_body_facts facts;
    memset(&facts, 0, sizeof facts);
    TK_TRY(tk_kernel_digest(step->kernel, false, facts.digest));
    TK_TRY(tk_kshared_place(step->kernel, NULL, &facts.shared));
    put_bytes(out, &facts, sizeof facts);
    put_arguments(out, step);
    return put_head(out, step->kernel);
}

static tk_status put_plan(tk_strbuf *out, const tk_library_plan *plan) {
    put_count(out, plan->scratches.count);
    put_bytes(out, plan->scratches.items, plan->scratches.count * sizeof *plan->scratches.items);
    put_count(out, plan->steps.count);
    for (size_t i = 0; i < plan->steps.count; i++) TK_TRY(put_step(out, &plan->steps.items[i]));
    return out->failed ? TK_OUT_OF_MEMORY : TK_OK;
}

void tk_plan_note(const tk_plan_key *key, const tk_library_plan *plan) {
    tk_cache *cache = tk_artifact_cache();
    tk_strbuf payload = {0};
    call_key named;
    if (make_key(key, &named) && cache && put_plan(&payload, plan) == TK_OK)
        tk_cache_note(cache, named.parts, PARTS, payload.text, payload.length);
    drop_key(&named);
    tk_strbuf_deinit(&payload);
}

/* ---- reading ---- */

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

/* `count` records, borrowed; NULL when there are not so many. */
static const void *take(reader *r, uint64_t count, size_t bytes) {
    if (count > r->left / bytes) return NULL;
    const void *from = r->at;
    r->at += count * bytes;
    r->left -= count * bytes;
    return from;
}

static bool take_count(reader *r, uint64_t *out) {
    const void *from = take(r, 1, sizeof *out);
    if (from) memcpy(out, from, sizeof *out);
    return from != NULL;
}

static bool take_scratches(reader *r, tk_library_plan *plan) {
    uint64_t count;
    const unsigned char *from = take_count(r, &count) ? take(r, count, sizeof(int64_t)) : NULL;
    for (uint64_t i = 0; from && i < count; i++) {
        int64_t bytes;
        memcpy(&bytes, from + i * sizeof bytes, sizeof bytes);
        if (!tk_vec_push(&plan->scratches, bytes)) return false;
    }
    return from != NULL;
}

/* Arguments refer to scratches and tensors that are there, one to each parameter. */
static bool take_arguments(reader *r, const tk_plan_key *key, const tk_library_plan *plan,
                           tk_library_step *step) {
    uint64_t count;
    const unsigned char *from =
        take_count(r, &count) ? take(r, count, sizeof(tk_library_argument)) : NULL;
    for (uint64_t i = 0; from && i < count; i++) {
        tk_library_argument argument;
        memcpy(&argument, from + i * sizeof argument, sizeof argument);
        size_t most = argument.kind == TK_LIBRARY_TENSOR    ? key->n_tensors
                      : argument.kind == TK_LIBRARY_SCRATCH ? plan->scratches.count
                                                            : SIZE_MAX;
        if (argument.index >= most || !tk_vec_push(&step->arguments, argument)) return false;
    }
    return from != NULL;
}

static bool take_head(reader *r, tk_library_step *step) {
    uint64_t length;
    const char *from = take_count(r, &length) ? take(r, length, 1) : NULL;
    char *text = from ? tk_malloc(length + 1) : NULL;
    if (!text) return false;
    memcpy(text, from, length);
    text[length] = 0;
    bool whole = tk_kernel_parse(text, "note", &step->kernel) == TK_OK &&
                 step->kernel->contract.params.count == step->arguments.count;
    tk_free(text);
    return whole;
}

static bool take_step(reader *r, const tk_plan_key *key, tk_library_plan *plan,
                      tk_body_facts *out_facts) {
    tk_library_step step = {0};
    const void *facts = take(r, 1, sizeof *out_facts);
    if (facts) memcpy(out_facts, facts, sizeof *out_facts);
    if (facts && take_arguments(r, key, plan, &step) && take_head(r, &step) &&
        tk_vec_push(&plan->steps, step))
        return true;
    tk_kernel_release(step.kernel);
    tk_vec_deinit(&step.arguments);
    return false;
}

static tk_body_facts *take_steps(reader *r, const tk_plan_key *key, tk_library_plan *plan) {
    uint64_t count;
    if (!take_count(r, &count) || count > r->left / sizeof(tk_body_facts)) return NULL;
    tk_body_facts *facts = tk_calloc(count + 1, sizeof *facts);
    bool whole = facts != NULL;
    for (uint64_t i = 0; whole && i < count; i++) whole = take_step(r, key, plan, &facts[i]);
    if (whole && r->left == 0) return facts;
    tk_free(facts);
    return NULL;
}

static tk_kept_plan *read_plan(const tk_plan_key *key, const tk_cached *payload) {
    reader r = {payload->bytes, payload->length};
    tk_library_plan *plan = tk_calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->references = 1;
    tk_body_facts *facts = take_scratches(&r, plan) ? take_steps(&r, key, plan) : NULL;
    if (facts) return tk_kept_plan_create(plan, facts);
    tk_library_plan_release(plan);
    return NULL;
}

tk_kept_plan *tk_plan_recall(const tk_plan_key *key) {
    tk_cache *cache = tk_artifact_cache();
    tk_cached payload = {0};
    call_key named;
    bool found = make_key(key, &named) && cache &&
                 tk_cache_get(cache, named.parts, PARTS, &payload) == TK_OK;
    tk_kept_plan *kept = found ? read_plan(key, &payload) : NULL;
    drop_key(&named);
    tk_free(payload.bytes);
    return kept;
}
