/* Writes what follows from the op table: run at build time, on the host.
 *
 *     tkgen headers DIR    DIR/ops.h          C functions of all ops, with their comments
 *     tkgen sources DIR    DIR/graph/build_gen.h  prototypes of the builders
 *                          DIR/ops_build.c    builders of elementwise ops (part of src/graph)
 *                          DIR/ops_api.c      bodies of the C functions (part of src/array)
 *     tkgen calls FILE     every C function behind one signature, for programs that call any of
 * them tkgen docs FILE      the reference page
 *
 * A parameter list is `name[:type][=default]`, separated by commas, ending in `-> arrays` for
 * functions with a list of results. Types: (none) an array, array? an optional one, arrays, axes,
 * shape, int, float, bool, dtype, str, mode, key? (an optional random key: absent, the implicit one
 * is split). C has no default arguments, so defaults only appear in comments. The program is C, not
 * a script, because the table is a C header and the preprocessor reads it best. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *name, *params, *lower, *accept, *facts, *vjp, *sample, *tol, *doc;
    bool is_primitive;
} row;

static const row rows[] = {
#define TK_OP(name, params, attrs, accept, dtype, shape, vjp, batch, facts, lower, tol, sample,    \
              doc)                                                                                 \
    {#name, params, #lower, #accept, #facts, #vjp, #sample, #tol, doc, true},
#define TK_FN(name, params, sample, tol, doc)                                                      \
    {#name, params, "", "", "", "", #sample, #tol, doc, false},
#include "tiki/ops.def"
#undef TK_OP
#undef TK_FN
};
#define N_ROWS (sizeof rows / sizeof rows[0])

/* One type of parameter, as it stands in the C API and in a builder. */
typedef struct param_type {
    const char *name, *api, *builder;
    bool is_array; /* the handle's node is what the builder takes */
    bool required; /* a required array tells the context */
} param_type;

static const param_type types[] = {
    {"", "tk_array %s", "tk_node *%s", true, true},
    {"array?", "tk_array %s", "tk_node *%s", true, false},
    {"key?", "tk_array %s", "tk_node *%s", true, false},
    {"arrays", "const tk_array *%s, size_t n_%s", "tk_node *const *%s, size_t n_%s", false, true},
    {"axes", "tk_axes %s", "tk_axes %s", false, false},
    {"shape", "tk_shape %s", "tk_shape %s", false, false},
    {"int", "int64_t %s", "int64_t %s", false, false},
    {"float", "double %s", "double %s", false, false},
    {"bool", "bool %s", "bool %s", false, false},
    {"dtype", "tk_dtype %s", "tk_dtype %s", false, false},
    {"str", "const char *%s", "const char *%s", false, false},
    {"mode", "tk_mode %s", "tk_mode %s", false, false},
};

#define MAX_PARAMS 12

typedef struct param {
    char name[40], fallback[24];
    const param_type *type;
} param;

typedef struct signature {
    param params[MAX_PARAMS];
    int count;
    bool gives_list;
    bool takes_context;
} signature;

static void die(const char *what, const char *detail) {
    fprintf(stderr, "tkgen: %s: %s\n", what, detail);
    exit(1);
}

static const param_type *find_type(const char *name, const char *row_name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    die("unknown parameter type in row", row_name);
    return NULL;
}

static void parse_param(param *out, char *text, const char *row_name) {
    char *equal = strchr(text, '=');
    if (equal) *equal = 0;
    char *colon = strchr(text, ':');
    if (colon) *colon = 0;
    snprintf(out->name, sizeof out->name, "%s", text);
    snprintf(out->fallback, sizeof out->fallback, "%s", equal ? equal + 1 : "");
    out->type = find_type(colon ? colon + 1 : "", row_name);
}

static signature parse_signature(const row *r) {
    signature s = {.takes_context = true};
    char text[512];
    if ((size_t)snprintf(text, sizeof text, "%s", r->params) >= sizeof text)
        die("row too long", r->name);
    char *arrow = strstr(text, " -> arrays");
    s.gives_list = arrow != NULL;
    if (arrow) *arrow = 0;
    for (char *item = strtok(text, ","); item; item = strtok(NULL, ",")) {
        if (s.count == MAX_PARAMS) die("too many parameters in row", r->name);
        while (*item == ' ') item++;
        parse_param(&s.params[s.count], item, r->name);
        s.takes_context &= !s.params[s.count].type->required;
        s.count++;
    }
    return s;
}

static bool is_public(const row *r) { return strcmp(r->params, "-") != 0; }

static void put_typed(FILE *out, const char *format, const char *name) {
    for (const char *at = format; *at; at++) {
        if (at[0] == '%' && at[1] == 's')
            fputs(name, out), at++;
        else
            fputc(*at, out);
    }
}

static void put_api(FILE *out, const row *r, const signature *s) {
    fprintf(out, "%s tk_%s(", s->gives_list ? "tk_status" : "tk_array", r->name);
    if (s->takes_context) fputs("tk_context *context", out);
    for (int i = 0; i < s->count; i++) {
        if (i || s->takes_context) fputs(", ", out);
        put_typed(out, s->params[i].type->api, s->params[i].name);
    }
    fputs(s->gives_list ? ", tk_arrays *out)" : ")", out);
}

static void put_builder(FILE *out, const row *r, const signature *s) {
    fprintf(out, "%s tkb_%s(tk_builder *build", s->gives_list ? "bool" : "tk_node *", r->name);
    for (int i = 0; i < s->count; i++) {
        fputs(", ", out);
        put_typed(out, s->params[i].type->builder, s->params[i].name);
    }
    fputs(s->gives_list ? ", tk_node_vec *out)" : ")", out);
}

static void put_defaults(FILE *out, const signature *s) {
    const char *separator = " Defaults elsewhere: ";
    for (int i = 0; i < s->count; i++) {
        if (!s->params[i].fallback[0]) continue;
        fprintf(out, "%s%s = %s", separator, s->params[i].name, s->params[i].fallback);
        separator = ", ";
    }
    if (strcmp(separator, ", ") == 0) fputc('.', out);
}

static FILE *open_out(const char *directory, const char *name) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
        die("path too long", name);
    FILE *out = fopen(path, "w");
    if (!out) die("cannot write", path);
    return out;
}

static void close_out(FILE *out, const char *name) {
    if (ferror(out) | fclose(out)) die("cannot write", name);
}

static void write_api_header(const char *directory) {
    FILE *out = open_out(directory, "ops.h");
    fputs("/* Every op as a C function. Generated from tiki/ops.def by tools/tkgen.c.\n *\n"
          " * Operands are borrowed; the result belongs to the innermost scope, or to the caller "
          "where none is\n"
          " * open (array.h). A wrong argument gives an array that carries the error. Nothing is "
          "evaluated.\n"
          " * Optional arrays are TK_NO_ARRAY when absent. */\n"
          "#ifndef TIKI_OPS_H\n#define TIKI_OPS_H\n\n#include \"tiki/array.h\"\n\nTK_BEGIN_DECLS\n",
          out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        fprintf(out, "\n/* %s.", rows[i].doc);
        put_defaults(out, &s);
        if (s.gives_list) fputs(" Appends to `out`.", out);
        fputs(" */\nTK_API ", out);
        put_api(out, &rows[i], &s);
        fputs(";\n", out);
    }
    fputs("\nTK_END_DECLS\n\n#endif\n", out);
    close_out(out, "ops.h");
}

static void write_builder_header(const char *directory) {
    FILE *out = open_out(directory, "graph/build_gen.h");
    fputs("/* Builders of all ops. Generated from tiki/ops.def by tools/tkgen.c; see "
          "graph/build.h. */\n",
          out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        put_builder(out, &rows[i], &s);
        fputs(";\n", out);
    }
    close_out(out, "build_gen.h");
}

/* Rows whose operands are all arrays and whose builder only promotes and broadcasts. */
static bool is_plain_elementwise(const row *r, const signature *s) {
    if (!r->is_primitive || strcmp(r->lower, "EWISE") != 0 || !is_public(r)) return false;
    for (int i = 0; i < s->count; i++)
        if (s->params[i].type != &types[0]) return false;
    return strcmp(r->name, "where") != 0;
}

static void write_elementwise_builder(FILE *out, const row *r, const signature *s) {
    fputc('\n', out);
    put_builder(out, r, s);
    fprintf(out, " {\n    tk_node *operands[] = {");
    for (int i = 0; i < s->count; i++) fprintf(out, i ? ", %s" : "%s", s->params[i].name);
    fprintf(out, "};\n    return tkb_elementwise(build, TK_OP_%s, %d, operands);\n}\n", r->name,
            s->count);
}

static void write_api_body(FILE *out, const row *r, const signature *s) {
    fputc('\n', out);
    put_api(out, r, s);
    fputs(" {\n    tk_call call;\n", out);
    fprintf(out, "    tk_call_open(&call, \"%s\", %s);\n", r->name,
            s->takes_context ? "context" : "NULL");
    for (int i = 0; i < s->count; i++) {
        const param *p = &s->params[i];
        if (!strcmp(p->type->name, "key?"))
            fprintf(out, "    tk_call_key(&call, %s);\n", p->name);
        else if (p->type->is_array)
            fprintf(out, "    tk_call_%s(&call, %s);\n", p->type->required ? "operand" : "optional",
                    p->name);
        else if (!strcmp(p->type->name, "arrays"))
            fprintf(out, "    tk_call_operands(&call, \"%s\", %s, n_%s);\n", p->name, p->name,
                    p->name);
        else if (!strcmp(p->type->name, "str"))
            fprintf(out, "    tk_call_need(&call, \"%s\", %s);\n", p->name, p->name);
        else if (!strcmp(p->type->name, "dtype"))
            fprintf(out, "    tk_call_dtype(&call, \"%s\", %s, %s);\n", p->name, p->name,
                    strcmp(p->fallback, "none") ? "false" : "true");
        else if (!strcmp(p->type->name, "mode"))
            fprintf(out, "    tk_call_enum(&call, \"%s\", %s, TK_MODE_COUNT, \"tk_mode\");\n",
                    p->name, p->name);
    }
    if (s->gives_list) fputs("    tk_call_need(&call, \"out\", out);\n", out);
    fprintf(out, "    if (!tk_call_begin(&call)) return tk_call_%s(&call);\n",
            s->gives_list ? "refuse_list" : "refuse");
    fprintf(out, "    return tk_call_%s(&call, tkb_%s(&call.builder",
            s->gives_list ? "end_list" : "end", r->name);
    int node = 0;
    for (int i = 0; i < s->count; i++) {
        const param *p = &s->params[i];
        if (p->type->is_array)
            fprintf(out, ", call.nodes[%d]", node++);
        else if (!strcmp(p->type->name, "arrays"))
            fprintf(out, ", call.list, n_%s", p->name);
        else
            fprintf(out, ", %s", p->name);
    }
    fputs(s->gives_list ? ", &call.results), out);\n}\n" : "));\n}\n", out);
}

static void write_builders(const char *directory) {
    FILE *out = open_out(directory, "ops_build.c");
    fputs("/* Builders of elementwise ops. Generated from tiki/ops.def by tools/tkgen.c. */\n"
          "#include \"graph/build.h\"\n",
          out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        if (is_plain_elementwise(&rows[i], &s)) write_elementwise_builder(out, &rows[i], &s);
    }
    close_out(out, "ops_build.c");
}

static void write_api(const char *directory) {
    FILE *out = open_out(directory, "ops_api.c");
    fputs("/* The C functions of the ops. Generated from tiki/ops.def by tools/tkgen.c. */\n"
          "#include \"array/call.h\"\n",
          out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        write_api_body(out, &rows[i], &s);
    }
    close_out(out, "ops_api.c");
}

static void write_sources(const char *directory) {
    write_builder_header(directory);
    write_builders(directory);
    write_api(directory);
}

/* The member of an op_value (tests/support/op_calls.h) that an argument of this type is taken from.
 */
static void put_call_argument(FILE *out, const param *p, int index) {
    static const char *const members[][2] = {
        {"axes", "axes"}, {"shape", "axes"},  {"int", "integer"}, {"float", "real"},
        {"bool", "flag"}, {"dtype", "dtype"}, {"str", "text"},    {"mode", "mode"},
    };
    if (p->type->is_array) fprintf(out, "v[%d].array", index);
    if (!strcmp(p->type->name, "arrays")) fprintf(out, "v[%d].arrays, v[%d].count", index, index);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (!strcmp(p->type->name, members[i][0])) fprintf(out, "v[%d].%s", index, members[i][1]);
}

static void write_call(FILE *out, const row *r, const signature *s) {
    fprintf(
        out,
        "\nstatic tk_status call_%s(tk_context *context, const op_value *v, tk_arrays *out) {\n",
        r->name);
    if (!s->takes_context) fputs("    (void)context;\n", out);
    fprintf(out, s->gives_list ? "    return tk_%s(" : "    return op_give(out, tk_%s(", r->name);
    if (s->takes_context) fputs("context", out);
    for (int i = 0; i < s->count; i++) {
        if (i || s->takes_context) fputs(", ", out);
        put_call_argument(out, &s->params[i], i);
    }
    fputs(s->gives_list ? ", out);\n}\n" : "));\n}\n", out);
}

static void write_call_row(FILE *out, const row *r, const signature *s) {
    fprintf(out, "    {\"%s\", \"%s\", TK_TOL_%s, %s, call_%s, %d, {", r->name, r->sample, r->tol,
            r->is_primitive ? "true" : "false", r->name, s->count);
    for (int i = 0; i < s->count; i++)
        fprintf(out, "{\"%s\", \"%s\"}, ", s->params[i].name, s->params[i].type->name);
    fputs("}},\n", out);
}

static void write_calls(const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) die("cannot write", path);
    fputs("/* Every op behind one signature. Generated from tiki/ops.def by tools/tkgen.c. */\n"
          "#include \"support/op_calls.h\"\n",
          out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        write_call(out, &rows[i], &s);
    }
    fputs("\nconst op_row op_rows[] = {\n", out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        write_call_row(out, &rows[i], &s);
    }
    fputs("};\nconst size_t op_row_count = sizeof op_rows / sizeof op_rows[0];\n", out);
    close_out(out, path);
}

static void write_docs(const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) die("cannot write", path);
    fputs("# Operations\n\nGenerated from `include/tiki/ops.def`.\n", out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_public(&rows[i])) continue;
        signature s = parse_signature(&rows[i]);
        fprintf(out, "\n### `tk_%s`\n\n```c\n", rows[i].name);
        put_api(out, &rows[i], &s);
        fprintf(out, ";\n```\n\n%s.", rows[i].doc);
        put_defaults(out, &s);
        if (rows[i].is_primitive)
            fprintf(out, " A primitive: operands %s, lowered as %s, gradient rule %s.",
                    rows[i].accept, rows[i].lower, rows[i].vjp);
        fputc('\n', out);
    }
    close_out(out, path);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "headers"))
        write_api_header(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "sources"))
        write_sources(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "calls"))
        write_calls(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "docs"))
        write_docs(argv[2]);
    else {
        fprintf(stderr, "usage: tkgen headers|sources DIR | tkgen calls|docs FILE\n");
        return 2;
    }
    return 0;
}
