/* Functions from files; see tiki/export.h and docs/exported-functions.md.
 *
 * Each graph text is parsed once, on placeholders, into a recorded function, which calls replay. A
 * file that lies is found out then: parsing goes through the inference of every op, and for a
 * function of any shape the two texts must be one expression. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/traced.h"
#include "base/error.h"
#include "io/exported.h"

#define MOST_TRACES 100000

typedef struct trace {
    tk_signature signature;
    tk_traced *traced;
    bool any_shape;
} trace;

struct tk_exported {
    tk_context *context;
    tk_tree *arrays;
    tk_metadata *metadata;
    TK_VEC(trace) traces;
};

static tk_status no_memory(void) {
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for an exported function");
}

/* ---- reading ---- */

typedef struct reading {
    const tk_exported *exported;
    const char *file, *graph;
    tk_arrays arrays; /* inputs behind the arguments, borrowed from the tree */
} reading;

static tk_status get(const tk_exported *e, const char *file, size_t i, const char *what,
                     const char **out) {
    char key[60];
    tk_exported_key(key, sizeof key, i, what);
    *out = tk_metadata_get(e->metadata, key);
    if (*out) return TK_OK;
    return tk_fail(TK_FORMAT_ERROR, "%.400s: metadata \"%s\" is missing", file, key);
}

/* The next number of a list, -1 when it is none. */
static long long next_number(const char **at) {
    char *end;
    while (**at == ' ') ++*at;
    if (**at < '0' || **at > '9') return -1;
    long long number = strtoll(*at, &end, 10);
    *at = end;
    return *end && *end != ' ' ? -1 : number;
}

static tk_status read_arrays(reading *r, const char *list) {
    for (const char *at = list; *at;) {
        long long number = next_number(&at);
        char name[40];
        snprintf(name, sizeof name, "array.%lld", number);
        tk_array array = number < 0 ? TK_NO_ARRAY : tk_tree_get(r->exported->arrays, name);
        if (!array.node)
            return tk_fail(TK_FORMAT_ERROR,
                           "%.400s: the list of arrays \"%.60s\" names none of "
                           "the file's %zu",
                           r->file, list, tk_tree_count(r->exported->arrays));
        TK_TRY(tk_arrays_push(&r->arrays, array));
    }
    return TK_OK;
}

/* The arguments are the first outputs of the text; the function's results follow. */
static tk_status parse(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    reading *r = self;
    tk_arrays inputs = {0}, outputs = {0};
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = tk_arrays_push(&inputs, args[i]);
    for (size_t i = 0; status == TK_OK && i < r->arrays.count; i++)
        status = tk_arrays_push(&inputs, r->arrays.items[i]);
    if (status == TK_OK)
        status =
            tk_graph_parse(r->exported->context, r->graph, inputs.items, inputs.count, &outputs);
    bool fits = status != TK_OK || outputs.count >= n_args;
    for (size_t i = 0; status == TK_OK && fits && i < n_args; i++)
        fits = outputs.items[i].node == args[i].node;
    if (!fits)
        status =
            tk_fail(TK_FORMAT_ERROR, "the graph does not return its %zu arguments first", n_args);
    for (size_t i = n_args; status == TK_OK && i < outputs.count; i++)
        status = tk_arrays_push(results, outputs.items[i]);
    tk_arrays_clear(&inputs);
    tk_arrays_clear(&outputs);
    return status;
}

static tk_status read_graph(reading *r, size_t i, bool far, const tk_arrays *args,
                            tk_traced **out) {
    const char *arrays;
    *out = NULL;
    TK_TRY(get(r->exported, r->file, i, far ? "far.graph" : "graph", &r->graph));
    TK_TRY(get(r->exported, r->file, i, far ? "far.arrays" : "arrays", &arrays));
    tk_status status = read_arrays(r, arrays);
    if (status == TK_OK)
        status = tk_traced_create(r->exported->context, parse, r, args->items, args->count, out);
    tk_arrays_clear(&r->arrays);
    return status == TK_OK ? TK_OK : tk_fail_within(status, "%.400s: trace %zu", r->file, i);
}

/* Lazy arrays of the arguments' types. */
static tk_status templates(tk_context *context, const tk_signature *signature, tk_arrays *out) {
    tk_scope scope = tk_scope_open(context);
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < signature->count; i++) {
        const tk_signature_arg *arg = &signature->items[i];
        tk_array zeros = tk_zeros(context, arg->shape, arg->dtype);
        status = tk_array_status(zeros);
        if (status == TK_OK) status = tk_arrays_push(out, zeros);
    }
    tk_scope_close(scope);
    return status;
}

static tk_status read_varying(const char *file, const char *list, tk_varying *out) {
    *out = (tk_varying){0};
    for (const char *at = list; *at;) {
        long long length = next_number(&at);
        int before = out->count;
        if (length > 1) tk_varying_add(out, length);
        if (out->count == before)
            return tk_fail(TK_FORMAT_ERROR,
                           "%.400s: \"%.60s\" are no lengths of which %d at most may vary", file,
                           list, TK_VARYING_MAX);
    }
    return TK_OK;
}

static tk_status generalise(reading *r, size_t i, const char *list, const tk_arrays *args,
                            trace *t) {
    tk_varying varying;
    tk_arrays far_args = {0};
    tk_traced *far = NULL;
    TK_TRY(read_varying(r->file, list, &varying));
    tk_status status =
        tk_varying_args(r->exported->context, &varying, args->items, args->count, &far_args);
    if (status == TK_OK) status = read_graph(r, i, true, &far_args, &far);
    if (status == TK_OK) status = tk_traced_generalise(t->traced, far, &varying);
    t->any_shape = true;
    tk_arrays_clear(&far_args);
    tk_traced_free(far);
    return status;
}

static tk_status read_trace(tk_exported *e, const char *file, size_t i, trace *t) {
    const char *arguments;
    char key[60];
    reading r = {.exported = e, .file = file};
    tk_arrays args = {0};
    TK_TRY(get(e, file, i, "arguments", &arguments));
    TK_TRY(tk_signature_read(file, arguments, &t->signature));
    tk_status status = templates(e->context, &t->signature, &args);
    if (status == TK_OK) status = read_graph(&r, i, false, &args, &t->traced);
    tk_exported_key(key, sizeof key, i, "varying");
    const char *varying = tk_metadata_get(e->metadata, key);
    if (status == TK_OK && varying) status = generalise(&r, i, varying, &args, t);
    tk_arrays_clear(&args);
    return status;
}

static tk_status read_traces(tk_exported *e, const char *file) {
    const char *version = tk_metadata_get(e->metadata, "tiki.function");
    const char *count = tk_metadata_get(e->metadata, "traces"), *at = count;
    if (!version || strcmp(version, TK_EXPORTED_VERSION) != 0)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: version \"%.40s\" of exported functions, expected \"%s\"", file,
                       version ? version : "none", TK_EXPORTED_VERSION);
    long long n_traces = count ? next_number(&at) : -1;
    if (n_traces < 0 || n_traces > MOST_TRACES || *at)
        return tk_fail(TK_FORMAT_ERROR, "%.400s: \"%.40s\" traces, expected a number", file,
                       count ? count : "");
    for (long long i = 0; i < n_traces; i++) {
        trace t = {0};
        tk_status status = read_trace(e, file, (size_t)i, &t);
        if (status == TK_OK && !tk_vec_push(&e->traces, t)) status = no_memory();
        if (status == TK_OK) continue;
        tk_signature_deinit(&t.signature);
        tk_traced_free(t.traced);
        return status;
    }
    return TK_OK;
}

static tk_status new_exported(tk_context *context, tk_exported **out) {
    tk_exported *e = tk_calloc(1, sizeof *e);
    if (!e) return no_memory();
    e->context = context;
    e->arrays = tk_tree_new();
    e->metadata = tk_metadata_new();
    *out = e;
    return e->arrays && e->metadata ? TK_OK : no_memory();
}

static tk_status finish(tk_exported *e, const char *file, tk_status status, tk_exported **out) {
    if (status == TK_OK) status = read_traces(e, file);
    if (status == TK_OK)
        *out = e;
    else
        tk_exported_free(e);
    return status;
}

tk_status tk_exported_load(tk_context *context, const char *path, tk_exported **out_exported) {
    TK_NEED(context, path, out_exported);
    tk_exported *e = *out_exported = NULL;
    tk_status status = new_exported(context, &e);
    if (status == TK_OK) status = tk_safetensors_load(context, path, e->arrays, e->metadata);
    return finish(e, path, status, out_exported);
}

tk_status tk_exported_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                            tk_exported **out_exported) {
    TK_NEED(context, out_exported);
    tk_exported *e = *out_exported = NULL;
    if (!name) name = "memory";
    tk_status status = new_exported(context, &e);
    if (status == TK_OK)
        status = tk_safetensors_parse(context, name, data, bytes, e->arrays, e->metadata);
    return finish(e, name, status, out_exported);
}

void tk_exported_free(tk_exported *exported) {
    if (!exported) return;
    for (size_t i = 0; i < exported->traces.count; i++) {
        tk_signature_deinit(&exported->traces.items[i].signature);
        tk_traced_free(exported->traces.items[i].traced);
    }
    tk_vec_deinit(&exported->traces);
    tk_tree_free(exported->arrays);
    tk_metadata_free(exported->metadata);
    tk_free(exported);
}

const char *tk_exported_metadata(const tk_exported *exported) {
    const char *text = exported ? tk_metadata_get(exported->metadata, "metadata") : NULL;
    return text ? text : "";
}

/* ---- calling ---- */

static tk_status refuse(const tk_exported *e, const tk_signature *call) {
    tk_strbuf text = {0};
    tk_signature_print(call, &text);
    tk_strbuf_puts(&text, "; there is ");
    for (size_t i = 0; i < e->traces.count && text.length < 4000; i++) {
        if (i) tk_strbuf_puts(&text, ", ");
        tk_signature_print(&e->traces.items[i].signature, &text);
        if (e->traces.items[i].any_shape) tk_strbuf_puts(&text, " of other lengths too");
    }
    if (e->traces.count == 0) tk_strbuf_puts(&text, "none");
    tk_strbuf_puts(&text, "");
    tk_status status = tk_fail(TK_INVALID_ARGUMENT, "no function in the file takes %s",
                               text.failed ? "these arguments" : text.text);
    tk_strbuf_deinit(&text);
    return status;
}

static tk_status call_trace(const trace *t, const tk_array *args, size_t n_args,
                            const size_t *places, tk_array *ordered, tk_arrays *results) {
    for (size_t i = 0; i < n_args; i++) ordered[i] = args[places[i]];
    return tk_traced_call(t->traced, ordered, n_args, results);
}

static tk_status call(const tk_exported *e, const tk_signature *signature, const tk_array *args,
                      size_t *places, tk_array *ordered, tk_arrays *results) {
    for (int any_shape = 0; any_shape < 2; any_shape++)
        for (size_t i = 0; i < e->traces.count; i++) {
            const trace *t = &e->traces.items[i];
            if (t->any_shape < any_shape ||
                !tk_signature_match(&t->signature, signature, !any_shape, places))
                continue;
            tk_status status = call_trace(t, args, signature->count, places, ordered, results);
            if (status != TK_SHAPE_ERROR || !any_shape) return status;
        }
    return refuse(e, signature);
}

tk_status tk_exported_call(const tk_exported *exported, const tk_array *args, size_t n_args,
                           const char *const *names, size_t n_names, tk_arrays *results) {
    TK_NEED(exported, results);
    if (n_args) TK_NEED(args);
    if (n_names) TK_NEED(names);
    tk_signature signature;
    TK_TRY(tk_signature_of(args, n_args, names, n_names, &signature));
    size_t *places = tk_malloc((n_args + 1) * sizeof *places);
    tk_array *ordered = tk_malloc((n_args + 1) * sizeof *ordered);
    tk_status status = places && ordered
                           ? call(exported, &signature, args, places, ordered, results)
                           : no_memory();
    tk_free(places);
    tk_free(ordered);
    tk_signature_deinit(&signature);
    return status;
}
