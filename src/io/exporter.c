/* Recording functions for files; see tiki/export.h and docs/exported-functions.md.
 *
 * The graph is printed inside the recorded function's call, where its placeholders and results are
 * at hand: arguments are printed as the first outputs, so they are the first inputs in their order
 * and those that nothing reads are there too. For a function of any shape the text of the far
 * recording is kept as well; the reader compares the two again. */
#include <stdio.h>
#include <string.h>

#include "array/traced.h"
#include "base/error.h"
#include "io/exported.h"

typedef struct text {
    char *graph;
    char *arrays; /* numbers of the arrays behind the arguments */
} text;

typedef struct trace {
    tk_signature signature;
    text near, far; /* far: NULL texts when the shapes are fixed */
    tk_varying varying;
} trace;

struct tk_exporter {
    tk_context *context;
    tk_tree *arrays;
    TK_VEC(trace) traces;
};

static tk_status no_memory(void) {
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for an exported function");
}

tk_exporter *tk_exporter_new(tk_context *context) {
    tk_exporter *exporter = context ? tk_calloc(1, sizeof *exporter) : NULL;
    if (!exporter) return NULL;
    exporter->context = context;
    exporter->arrays = tk_tree_new();
    if (exporter->arrays) return exporter;
    tk_free(exporter);
    return NULL;
}

static void clear_text(text *t) {
    tk_free(t->graph);
    tk_free(t->arrays);
    *t = (text){0};
}

static void clear_trace(trace *t) {
    tk_signature_deinit(&t->signature);
    clear_text(&t->near);
    clear_text(&t->far);
}

void tk_exporter_free(tk_exporter *exporter) {
    if (!exporter) return;
    for (size_t i = 0; i < exporter->traces.count; i++) clear_trace(&exporter->traces.items[i]);
    tk_vec_deinit(&exporter->traces);
    tk_tree_free(exporter->arrays);
    tk_free(exporter);
}

/* ---- recording ---- */

typedef struct capture {
    tk_exporter *exporter;
    tk_function function;
    void *self;
    text latest, before; /* of the last two calls */
} capture;

static tk_status add_array(tk_exporter *exporter, tk_array array, tk_strbuf *out) {
    size_t count = tk_tree_count(exporter->arrays), at = 0;
    while (at < count && tk_tree_at(exporter->arrays, at).node != array.node) at++;
    tk_strbuf_printf(out, out->length ? " %zu" : "%zu", at);
    if (at < count) return TK_OK;
    char name[40];
    snprintf(name, sizeof name, "array.%zu", at);
    return tk_tree_set(exporter->arrays, name, array);
}

/* Arguments, then results. */
static tk_status print_graph(capture *c, const tk_arrays *outputs, size_t n_args, text *out) {
    tk_arrays inputs = {0};
    tk_strbuf numbers = {0};
    tk_status status = outputs->count
                           ? tk_graph_print(outputs->items, outputs->count, &out->graph)
                           : tk_fail(TK_INVALID_ARGUMENT, "a function without arguments and "
                                                          "results cannot be exported");
    if (status == TK_OK) status = tk_graph_inputs(outputs->items, outputs->count, &inputs);
    tk_strbuf_puts(&numbers, "");
    for (size_t i = n_args; status == TK_OK && i < inputs.count; i++)
        status = add_array(c->exporter, inputs.items[i], &numbers);
    tk_arrays_clear(&inputs);
    out->arrays = tk_strbuf_take(&numbers);
    return status == TK_OK && !out->arrays ? no_memory() : status;
}

static tk_status call_captured(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    capture *c = self;
    tk_arrays outputs = {0};
    text made = {0};
    tk_status status = c->function(c->self, args, n_args, results);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = tk_arrays_push(&outputs, args[i]);
    for (size_t i = 0; status == TK_OK && i < results->count; i++)
        status = tk_arrays_push(&outputs, results->items[i]);
    if (status == TK_OK) status = print_graph(c, &outputs, n_args, &made);
    tk_arrays_clear(&outputs);
    clear_text(&c->before);
    c->before = c->latest;
    c->latest = made;
    return status;
}

static tk_status record_near(tk_exporter *exporter, capture *c, const tk_array *args, size_t n_args,
                             trace *t) {
    tk_traced *traced = NULL;
    tk_status status = tk_traced_create(exporter->context, call_captured, c, args, n_args, &traced);
    tk_traced_free(traced);
    if (status != TK_OK) return status;
    t->near = c->latest;
    c->latest = (text){0};
    return TK_OK;
}

/* Whether these lengths can vary; keeps the texts if so. */
static bool try_varying(tk_exporter *exporter, capture *c, const tk_array *args, size_t n_args,
                        const tk_varying *varying, trace *t) {
    tk_traced *near = NULL, *far = NULL;
    tk_arrays far_args = {0};
    tk_status status = tk_varying_args(exporter->context, varying, args, n_args, &far_args);
    if (status == TK_OK)
        status = tk_traced_create(exporter->context, call_captured, c, args, n_args, &near);
    if (status == TK_OK)
        status =
            tk_traced_create(exporter->context, call_captured, c, far_args.items, n_args, &far);
    if (status == TK_OK) status = tk_traced_generalise(near, far, varying);
    tk_arrays_clear(&far_args);
    tk_traced_free(near);
    tk_traced_free(far);
    if (status != TK_OK) return false;
    clear_text(&t->near);
    clear_text(&t->far);
    t->near = c->before;
    t->far = c->latest;
    t->varying = *varying;
    c->before = c->latest = (text){0};
    return true;
}

/* All lengths, or as many as can vary together. */
static void record_far(tk_exporter *exporter, capture *c, const tk_array *args, size_t n_args,
                       trace *t) {
    tk_varying all, some = {0};
    tk_varying_all(args, n_args, &all);
    if (all.count == 0 || try_varying(exporter, c, args, n_args, &all, t)) return;
    for (int i = 0; i < all.count && all.count > 1; i++) {
        tk_varying more = some;
        tk_varying_add(&more, all.near[i]);
        if (try_varying(exporter, c, args, n_args, &more, t)) some = more;
    }
}

static tk_status check_new(const tk_exporter *exporter, const tk_signature *signature) {
    size_t *places = tk_malloc((signature->count + 1) * sizeof *places);
    bool found = false;
    if (!places) return no_memory();
    for (size_t i = 0; !found && i < exporter->traces.count; i++)
        found = tk_signature_match(&exporter->traces.items[i].signature, signature, true, places);
    tk_free(places);
    if (!found) return TK_OK;
    tk_strbuf text = {0};
    tk_signature_print(signature, &text);
    tk_status status = tk_fail(TK_INVALID_ARGUMENT, "the function is exported for %.400s already",
                               text.text ? text.text : "this signature");
    tk_strbuf_deinit(&text);
    return status;
}

tk_status tk_exporter_add(tk_exporter *exporter, tk_function function, void *self,
                          const tk_array *args, size_t n_args, const char *const *names,
                          size_t n_names, bool shapeless) {
    TK_NEED(exporter);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args);
    if (n_names) TK_NEED(names);
    capture c = {.exporter = exporter, .function = function, .self = self};
    trace t = {0};
    tk_status status = tk_signature_of(args, n_args, names, n_names, &t.signature);
    if (status == TK_OK) status = check_new(exporter, &t.signature);
    if (status == TK_OK) status = record_near(exporter, &c, args, n_args, &t);
    if (status == TK_OK && shapeless) record_far(exporter, &c, args, n_args, &t);
    if (status == TK_OK && !tk_vec_push(&exporter->traces, t)) status = no_memory();
    clear_text(&c.before);
    clear_text(&c.latest);
    if (status != TK_OK) clear_trace(&t);
    return status;
}

/* ---- writing ---- */

static tk_status set(tk_metadata *metadata, size_t trace, const char *what, const char *value) {
    char key[60];
    tk_exported_key(key, sizeof key, trace, what);
    return tk_metadata_set(metadata, key, value);
}

static tk_status set_text(tk_metadata *metadata, size_t trace, const char *what, tk_strbuf *text) {
    tk_strbuf_puts(text, "");
    char *value = tk_strbuf_take(text);
    tk_status status = value ? set(metadata, trace, what, value) : no_memory();
    tk_free(value);
    return status;
}

static tk_status set_trace(tk_metadata *metadata, size_t i, const trace *t) {
    tk_strbuf text = {0};
    tk_signature_write(&t->signature, &text);
    TK_TRY(set_text(metadata, i, "arguments", &text));
    TK_TRY(set(metadata, i, "graph", t->near.graph));
    TK_TRY(set(metadata, i, "arrays", t->near.arrays));
    if (!t->varying.count) return TK_OK;
    for (int k = 0; k < t->varying.count; k++)
        tk_strbuf_printf(&text, k ? " %lld" : "%lld", (long long)t->varying.near[k]);
    TK_TRY(set_text(metadata, i, "varying", &text));
    TK_TRY(set(metadata, i, "far.graph", t->far.graph));
    return set(metadata, i, "far.arrays", t->far.arrays);
}

tk_status tk_exporter_save(const tk_exporter *exporter, const char *path, const char *metadata) {
    TK_NEED(exporter, path);
    char count[24];
    snprintf(count, sizeof count, "%zu", exporter->traces.count);
    tk_metadata *all = tk_metadata_new();
    tk_status status = all ? TK_OK : no_memory();
    if (status == TK_OK) status = tk_metadata_set(all, "tiki.function", TK_EXPORTED_VERSION);
    if (status == TK_OK) status = tk_metadata_set(all, "traces", count);
    if (status == TK_OK) status = tk_metadata_set(all, "metadata", metadata ? metadata : "");
    for (size_t i = 0; status == TK_OK && i < exporter->traces.count; i++)
        status = set_trace(all, i, &exporter->traces.items[i]);
    if (status == TK_OK) status = tk_safetensors_save(path, exporter->arrays, all);
    tk_metadata_free(all);
    return status;
}
