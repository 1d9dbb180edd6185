/* Random calls of every op of the table: with random shapes, dtypes, memory layouts, axes and
 * attributes, nonsense included. Each must end with values or with a typed error. Run under the
 * sanitizers it shows that nothing crashes; with a file to write to, tests/python/test_op_calls.py
 * compares what it computed with NumPy.
 *
 *     op_calls [--seed N] [--calls N] [--op NAME] [--out FILE.npz]
 *
 * `calls` are spread evenly over the rows. The seed is TIKI_OP_SEED from the environment where the
 * option is absent, else a fixed one. The file holds two byte arrays: `cases`, a line of JSON a
 * call, and `data`, the elements that the lines point into. A result too large to copy has no
 * position there.
 *
 * Rejected: an array of the archive for each operand; forty thousand members take longer to open
 * than all calls take to run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/op_draw.h"
#include "tiki/io.h"

#define LARGEST_COPY 100000

typedef struct bytes {
    char *items;
    size_t count, capacity;
} bytes;

typedef struct program {
    tk_context *context;
    uint64_t seed;
    int64_t calls;
    const char *only, *path;
    bytes cases, data;
    int64_t n_ok, n_refused;
} program;

/* ---- growing memory ---- */

static char *bytes_extend(bytes *b, size_t count) {
    if (b->count + count > b->capacity) {
        b->capacity = 2 * (b->count + count);
        b->items = realloc(b->items, b->capacity);
        if (!b->items) exit(3);
    }
    b->count += count;
    return b->items + b->count - count;
}

static void put(bytes *b, const char *text) {
    memcpy(bytes_extend(b, strlen(text)), text, strlen(text));
}

static void put_integer(bytes *b, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    put(b, text);
}

/* Python's json reads NaN and Infinity. */
static void put_real(bytes *b, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    put(b, isnan(value) ? "NaN" : isinf(value) ? (value < 0 ? "-Infinity" : "Infinity") : text);
}

static void put_text(bytes *b, const char *text) {
    put(b, "\"");
    for (; *text; text++) {
        char one[2] = {*text, 0};
        if (*text == '"' || *text == '\\') put(b, "\\");
        put(b, (unsigned char)*text < ' ' ? " " : one);
    }
    put(b, "\"");
}

static void put_axes(bytes *b, tk_axes axes) {
    if (axes.count < 0 || axes.count > TK_AXES_MAX) {
        put(b, axes.count < 0 ? "null" : "\"too many\"");
        return;
    }
    put(b, "[");
    for (int64_t i = 0; i < axes.count; i++) {
        if (i) put(b, ",");
        put_integer(b, axes.items[i]);
    }
    put(b, "]");
}

/* ---- one call as a line ---- */

static void put_array(program *p, tk_array array) {
    static const char *const weak[] = {"bool", "int", "int", "float", "complex"};
    bytes *b = &p->cases;
    if (!array.node) {
        put(b, "null");
        return;
    }
    put(b, "{\"dtype\":");
    put_text(b, tk_dtype_name(tk_array_dtype(array)));
    put(b, ",\"shape\":");
    put_axes(b, tk_array_shape(array));
    if (draw_is_weak(array)) {
        put(b, ",\"weak\":");
        put_text(b, weak[tk_dtype_kind(tk_array_dtype(array))]);
    }
    size_t size = (size_t)tk_array_size(array) * tk_dtype_size(tk_array_dtype(array));
    if (tk_array_size(array) <= LARGEST_COPY) {
        put(b, ",\"at\":");
        put_integer(b, (int64_t)p->data.count);
        tk_status status = tk_copy_out(array, bytes_extend(&p->data, size), size);
        if (status == TK_OUT_OF_MEMORY) put(b, ",\"failed\":true");
    }
    put(b, "}");
}

static void put_arrays(program *p, const tk_array *arrays, size_t count) {
    put(&p->cases, "[");
    for (size_t i = 0; i < count; i++) {
        if (i) put(&p->cases, ",");
        put_array(p, arrays[i]);
    }
    put(&p->cases, "]");
}

static void put_value(program *p, const op_param *param, const op_value *value) {
    bytes *b = &p->cases;
    put_text(b, param->name);
    put(b, ":");
    if (!strcmp(param->type, "") || !strcmp(param->type, "array?") || !strcmp(param->type, "key?"))
        put_array(p, value->array);
    else if (!strcmp(param->type, "arrays"))
        put_arrays(p, value->arrays, value->count);
    else if (!strcmp(param->type, "axes") || !strcmp(param->type, "shape"))
        put_axes(b, value->axes);
    else if (!strcmp(param->type, "int"))
        put_integer(b, value->integer);
    else if (!strcmp(param->type, "float"))
        put_real(b, value->real);
    else if (!strcmp(param->type, "bool"))
        put(b, value->flag ? "true" : "false");
    else if (!strcmp(param->type, "dtype"))
        put_text(b, tk_dtype_name(value->dtype));
    else if (!strcmp(param->type, "mode"))
        put_integer(b, value->mode);
    else
        put_text(b, value->text);
}

static void put_call(program *p, const draw *d) {
    put(&p->cases, "{\"op\":");
    put_text(&p->cases, d->row->name);
    put(&p->cases, ",\"args\":{");
    for (int i = 0; i < d->row->n_params; i++) {
        if (i) put(&p->cases, ",");
        put_value(p, &d->row->params[i], &d->values[i]);
    }
    put(&p->cases, "}");
}

static void put_outcome(program *p, tk_status status, const tk_arrays *results) {
    put(&p->cases, ",\"status\":");
    put_text(&p->cases, tk_status_name(status));
    if (status != TK_OK) {
        put(&p->cases, ",\"message\":");
        put_text(&p->cases, tk_error_message());
    }
    put(&p->cases, ",\"out\":");
    if (status == TK_OK || status == TK_INDEX_ERROR)
        put_arrays(p, results->items, results->count);
    else
        put(&p->cases, "[]");
    put(&p->cases, "}\n");
}

/* ---- calling ---- */

static bool is_known(tk_status status) {
    return status != TK_INTERNAL && strcmp(tk_status_name(status), "unknown status") != 0;
}

/* Evaluates what was made; too large an array is asked about only. */
static tk_status evaluate(const tk_arrays *results) {
    for (size_t i = 0; i < results->count; i++) {
        tk_status status = tk_array_status(results->items[i]);
        if (status == TK_OK && tk_array_size(results->items[i]) <= LARGEST_COPY)
            status = tk_eval(results->items[i]);
        if (status != TK_OK) return status;
    }
    return TK_OK;
}

static void call_once(program *p, const op_row *row, uint64_t number) {
    draw d = {.context = p->context, .state = (p->seed << 32) ^ (number * 2654435761u)};
    tk_arrays results = {0};
    tk_scope scope = tk_scope_open(p->context);
    draw_call(&d, row);
    tk_status status = row->call(p->context, d.values, &results);
    if (status == TK_OK) status = evaluate(&results);
    if (!is_known(status)) {
        fprintf(stderr, "call %" PRIu64 " of %s: %s: %s\n", number, row->name,
                tk_status_name(status), tk_error_message());
        exit(1);
    }
    p->n_ok += status == TK_OK;
    p->n_refused += status != TK_OK;
    if (p->path) {
        char message[1024];
        snprintf(message, sizeof message, "%s", tk_error_message());
        put_call(p, &d);
        if (status != TK_OK) (void)tk_error_set(status, "%s", message);
        put_outcome(p, status, &results);
    }
    tk_arrays_clear(&results);
    tk_scope_close(scope);
}

static int64_t call_all(program *p) {
    int64_t called = 0;
    for (uint64_t round = 0; called < p->calls; round++) {
        int64_t before = called;
        for (size_t i = 0; i < op_row_count && called < p->calls; i++) {
            if (p->only && strcmp(p->only, op_rows[i].name)) continue;
            call_once(p, &op_rows[i], round * op_row_count + i);
            called++;
        }
        if (called == before) break;
    }
    return called;
}

static tk_status save(program *p) {
    tk_tree *tree = tk_tree_new();
    tk_array cases =
        tk_from_data(p->context, p->cases.items, TK_SHAPE((int64_t)p->cases.count), TK_UINT8);
    tk_array data =
        tk_from_data(p->context, p->data.items, TK_SHAPE((int64_t)p->data.count), TK_UINT8);
    tk_status status = tree ? tk_tree_set(tree, "cases", cases) : TK_OUT_OF_MEMORY;
    if (status == TK_OK) status = tk_tree_set(tree, "data", data);
    if (status == TK_OK) status = tk_npz_save(p->path, tree, false);
    tk_release(cases);
    tk_release(data);
    tk_tree_free(tree);
    return status;
}

static bool parse_options(program *p, int argc, char **argv) {
    const char *seed = getenv("TIKI_OP_SEED");
    p->seed = seed ? strtoull(seed, NULL, 0) : 20240101;
    p->calls = 20000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed"))
            p->seed = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--calls"))
            p->calls = strtoll(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--op"))
            p->only = argv[i + 1];
        else if (!strcmp(argv[i], "--out"))
            p->path = argv[i + 1];
        else
            return false;
    }
    return argc % 2 == 1;
}

int main(int argc, char **argv) {
    program p = {0};
    if (!parse_options(&p, argc, argv)) {
        fprintf(stderr, "usage: op_calls [--seed N] [--calls N] [--op NAME] [--out FILE.npz]\n");
        return 2;
    }
    tk_context_options options = {.size = sizeof options, .memory_limit = (size_t)1 << 28};
    if (tk_context_create(&options, &p.context) != TK_OK) return 1;
    int64_t called = call_all(&p);
    tk_status status = p.path ? save(&p) : TK_OK;
    if (status != TK_OK) fprintf(stderr, "%s: %s\n", tk_status_name(status), tk_error_message());
    printf("seed %" PRIu64 ": %" PRId64 " calls, %" PRId64 " with values, %" PRId64 " refused\n",
           p.seed, called, p.n_ok, p.n_refused);
    free(p.cases.items);
    free(p.data.items);
    tk_context_release(p.context);
    return status == TK_OK && called > 0 ? 0 : 1;
}
