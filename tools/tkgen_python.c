/* Writes what the Python extension needs from python/surface.def: run at build time, on the host.
 *
 *     tkgen_python sources FILE     bodies, specifications and method tables of all functions
 *     tkgen_python stubs FILE TEMPLATE   the type stub: the template, each line "#FUNCTIONS MODULE"
 *                                        replaced by the functions of a module (of "array":
 * methods)
 *
 * Apart from tkgen so that the C library can be built without the Python front. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct function {
    const char *result, *module, *name, *params, *doc, *body;
} function;

typedef struct alias {
    const char *module, *name, *target;
} alias;

#define TKPY(result, module, name, params, doc, ...)                                               \
    {#result, #module, #name, params, doc, #__VA_ARGS__},
#define TKPY_ALIAS(module, name, target)
#define TKPY_METHOD(name)
#define TKPY_METHOD_AS(method, name)
static const function functions[] = {
#include "surface.def"
};
#undef TKPY
#undef TKPY_ALIAS
#undef TKPY_METHOD
#undef TKPY_METHOD_AS

#define TKPY(result, module, name, params, doc, ...)
#define TKPY_ALIAS(module, name, target) {#module, #name, #target},
#define TKPY_METHOD(name) {"array", #name, #name},
#define TKPY_METHOD_AS(method, name) {"array", #method, #name},
static const alias aliases[] = {
#include "surface.def"
};

static const struct {
    const char *name, *doc;
} ops[] = {
#define TK_OP(name, params, attrs, accept, dtype, shape, vjp, batch, facts, lower, tol, sample,    \
              doc)                                                                                 \
    {#name, doc},
#define TK_FN(name, params, sample, tol, doc) {#name, doc},
#include "tiki/ops.def"
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A type of parameter: as the table names it, the parser's kind, the C type and the member of the
 * parsed value, and the annotation in stubs. */
static const struct param_type {
    const char *name, *kind, *c_type, *member, *stub;
} types[] = {
    {"", "ARRAY", "tk_array", "array", "_ArrayLike"},
    {"value", "VALUE", "tk_array", "array", "_ArrayLike"},
    {"array?", "MAYBE", "tk_array", "array", "_ArrayLike | None"},
    {"axes", "AXES", "tk_axes", "axes", "int | Sequence[int] | None"},
    {"extents", "EXTENTS", "tk_axes", "axes", "int | Sequence[int]"},
    {"axis", "AXIS", "int64_t", "integer", "int | None"},
    {"int", "INT", "int64_t", "integer", "int"},
    {"int?", "MAYBE_INT", "int64_t", "integer", "int | None"},
    {"float", "FLOAT", "double", "number", "float"},
    {"float?", "MAYBE_FLOAT", "double", "number", "float | None"},
    {"bool", "BOOL", "bool", "flag", "bool"},
    {"dtype", "DTYPE", "int", "dtype", "Dtype"},
    {"shape", "SHAPE", "tk_shape", "axes", "int | Sequence[int]"},
    {"arrays", "ARRAYS", "tkpy_list", "list", "Sequence[_ArrayLike]"},
    {"rest", "REST", "tkpy_list", "list", "_ArrayLike"},
    {"str", "TEXT", "const char *", "text", "str"},
    {"object", "OBJECT", "PyObject *", "object", "Any"},
    {"number", "OBJECT", "PyObject *", "object", "float"},
    {"seed", "OBJECT", "PyObject *", "object", "int"},
    {"bounds", "OBJECT", "PyObject *", "object", "_ArrayLike"},
    {"ints", "OBJECT", "PyObject *", "object", "int | Sequence[int]"},
    {"pairs", "OBJECT", "PyObject *", "object", "int | Sequence[int] | Sequence[Sequence[int]]"},
    {"flag?", "OBJECT", "PyObject *", "object", "bool | None"},
    {"mask", "OBJECT", "PyObject *", "object", "str | array | None"},
    {"order", "OBJECT", "PyObject *", "object", "int | float | str | None"},
};

#define MAX_PARAMS 14

typedef struct param {
    char name[40], fallback[40];
    const struct param_type *type;
} param;

typedef struct signature {
    param params[MAX_PARAMS];
    int count, positional_only, positional; /* positional: how many may be given by position */
    bool starred; /* stream is given by name only: rows with a `*`, and all modules but fft and
                     random */
} signature;

static void die(const char *what, const char *detail) {
    fprintf(stderr, "tkgen_python: %s: %s\n", what, detail);
    exit(1);
}

static const struct param_type *find_type(const char *name, const char *row) {
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    die("unknown parameter type in row", row);
    return NULL;
}

static void parse_param(param *out, char *text, const char *row) {
    char *equal = strchr(text, '=');
    if (equal) *equal = 0;
    char *colon = strchr(text, ':');
    if (colon) *colon = 0;
    snprintf(out->name, sizeof out->name, "%s", text);
    snprintf(out->fallback, sizeof out->fallback, "%s", equal ? equal + 1 : "");
    out->type = find_type(colon ? colon + 1 : "", row);
}

static signature parse_signature(const function *f) {
    signature s = {.positional = -1};
    char text[512];
    if ((size_t)snprintf(text, sizeof text, "%s", f->params) >= sizeof text)
        die("row too long", f->name);
    for (char *item = strtok(text, ","); item; item = strtok(NULL, ",")) {
        while (*item == ' ') item++;
        if (!strcmp(item, "/")) {
            s.positional_only = s.count;
        } else if (!strcmp(item, "*")) {
            s.positional = s.count;
            s.starred = true;
        } else {
            if (s.count == MAX_PARAMS) die("too many parameters in row", f->name);
            parse_param(&s.params[s.count++], item, f->name);
        }
    }
    if (s.positional < 0) s.positional = s.count;
    s.starred |= strcmp(f->module, "fft") && strcmp(f->module, "random");
    return s;
}

static const char *doc_of(const function *f) {
    char with_prefix[80];
    snprintf(with_prefix, sizeof with_prefix, "random_%s", f->name);
    const char *name = strcmp(f->module, "random") ? f->name : with_prefix;
    if (f->doc[0]) return f->doc;
    for (size_t i = 0; i < COUNT(ops); i++)
        if (!strcmp(ops[i].name, name)) return ops[i].doc;
    die("no documentation for row", f->name);
    return NULL;
}

static const function *find_function(const char *module, const char *name) {
    for (size_t i = 0; i < COUNT(functions); i++)
        if (!strcmp(functions[i].name, name) &&
            (!strcmp(functions[i].module, module) || !strcmp(module, "array")))
            return &functions[i];
    die("alias of an unknown function", name);
    return NULL;
}

/* ---- sources ---- */

/* "float32" as TK_FLOAT32 */
static void put_dtype(FILE *out, const char *name) {
    fputs("TK_", out);
    for (; *name; name++) fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
    fputs(", NULL", out);
}

static void put_fallback(FILE *out, const param *p) {
    const char *given = p->fallback;
    if (!strcmp(p->type->kind, "TEXT"))
        fprintf(out, "0, \"%.*s\"", (int)strlen(given) - 2, given + 1);
    else if (!strcmp(given, "None"))
        fputs("TKPY_FALLBACK_NONE, NULL", out);
    else if (!strcmp(given, "True") || !strcmp(given, "False"))
        fprintf(out, "%d, NULL", !strcmp(given, "True"));
    else if (!strcmp(p->type->kind, "DTYPE"))
        put_dtype(out, given);
    else
        fprintf(out, "%s, NULL", strcmp(given, "()") ? given : "0");
}

static bool is_required(const param *p) {
    return !p->fallback[0] && strcmp(p->type->kind, "REST") != 0;
}

static void put_spec(FILE *out, const function *f, const signature *s) {
    fprintf(out, "\nstatic const tkpy_param params_%s_%s[] = {", f->module, f->name);
    for (int i = 0; i < s->count; i++) {
        const param *p = &s->params[i];
        fprintf(out, "\n    {\"%s\", TKPY_%s, %s, ", p->name, p->type->kind,
                is_required(p) ? "true" : "false");
        if (p->fallback[0])
            put_fallback(out, p);
        else
            fputs("0, NULL", out);
        fputs("},", out);
    }
    fprintf(out,
            "};\nstatic const tkpy_spec spec_%s_%s = {\"%s\", %d, %d, %d, %s, params_%s_%s};\n",
            f->module, f->name, f->name, s->count, s->positional_only, s->positional,
            s->starred ? "true" : "false", f->module, f->name);
}

static void put_body(FILE *out, const function *f, const signature *s, bool is_method) {
    fprintf(out,
            "\nstatic PyObject *%s_%s(PyObject *self, PyObject *const *args, Py_ssize_t n_args,\n"
            "                          PyObject *names) {\n"
            "    tkpy_call calling, *call = &calling;\n"
            "    tkpy_value given[%d];\n"
            "    if (!tkpy_open(call, %s(self), &spec_%s_%s, %s, args, n_args, names, given))\n"
            "        return NULL;\n",
            is_method ? "method" : f->module, f->name, s->count,
            is_method ? "tkpy_state_of" : "tkpy_module_state", f->module, f->name,
            is_method ? "self" : "NULL");
    for (int i = 0; i < s->count; i++)
        fprintf(out, "    %s %s = given[%d].%s;\n", s->params[i].type->c_type, s->params[i].name, i,
                s->params[i].type->member);
    if (!strcmp(f->result, "ONE"))
        fprintf(out, "    return tkpy_close(call, %s);\n}\n", f->body);
    else if (!strcmp(f->result, "SOME"))
        fprintf(out, "    return tkpy_close_some(call, %s);\n}\n", f->body);
    else if (!strcmp(f->result, "FEW"))
        fprintf(out, "    return tkpy_close_few(call, %s);\n}\n", f->body);
    else
        fprintf(out, "    return tkpy_close_list(call, %s, %s);\n}\n", f->body,
                strcmp(f->result, "TUPLE") ? "false" : "true");
}

static const char *result_type(const function *f) {
    if (!strcmp(f->result, "ONE")) return "array";
    if (!strcmp(f->result, "FEW")) return "list[array]";
    if (!strcmp(f->result, "SOME")) return "array | tuple[array, ...]";
    return strcmp(f->result, "TUPLE") ? "list[array]" : "tuple[array, ...]";
}

/* A default as the signature of a docstring shows it. inspect takes numbers, texts and None only,
 * so a dtype is None, which means the same. */
static void put_default(FILE *out, const param *p) {
    fprintf(out, "=%s", strcmp(p->type->kind, "DTYPE") ? p->fallback : "None");
}

/* The parameters as Python writes them, from `first` on. */
static void put_python(FILE *out, const signature *s, int first, bool annotated) {
    bool any = false, starred = false;
    for (int i = first; i < s->count; i++) {
        const param *p = &s->params[i];
        bool rest = !strcmp(p->type->kind, "REST");
        if (i == s->positional && !starred) {
            fputs(any ? ", *" : "*", out);
            any = starred = true;
        }
        fprintf(out, "%s%s%s", any ? ", " : "", rest ? "*" : "", p->name);
        starred |= rest;
        if (annotated) {
            fprintf(out, ": %s", p->type->stub);
            bool may_be_none =
                !strcmp(p->fallback, "None") || (p->fallback[0] && !strcmp(p->type->kind, "DTYPE"));
            if (may_be_none && !strstr(p->type->stub, "None")) fputs(" | None", out);
            if (p->fallback[0]) fputs(" = ...", out);
        } else if (p->fallback[0]) {
            put_default(out, p);
        }
        any = true;
        if (i + 1 == s->positional_only) fputs(", /", out);
    }
    fprintf(out, "%s%s", any ? ", " : "", starred || !s->starred ? "" : "*, ");
    fputs(annotated ? "stream: _StreamOrDevice = ..." : "stream=None", out);
}

static void put_entry(FILE *out, const char *name, const function *f, bool is_method) {
    signature s = parse_signature(f);
    fprintf(out,
            "    {\"%s\", (PyCFunction)(void (*)(void))%s_%s, METH_FASTCALL | METH_KEYWORDS,\n"
            "     \"%s(",
            name, is_method ? "method" : f->module, f->name, name);
    if (is_method) fputs("$self, ", out);
    put_python(out, &s, is_method, false);
    fprintf(out, ")\\n--\\n\\n%s.\"},\n", doc_of(f));
}

static void put_table(FILE *out, const char *module) {
    bool is_method = !strcmp(module, "array");
    fprintf(out, "\nPyMethodDef tkpy_%s_%s[] = {\n", module, is_method ? "methods" : "functions");
    for (size_t i = 0; i < COUNT(functions); i++)
        if (!strcmp(functions[i].module, module))
            put_entry(out, functions[i].name, &functions[i], false);
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (!strcmp(aliases[i].module, module))
            put_entry(out, aliases[i].name, find_function(module, aliases[i].target), is_method);
    fputs("    {NULL, NULL, 0, NULL}};\n", out);
}

static void write_sources(FILE *out) {
    static const char *const modules[] = {"core", "random", "fast", "fft", "linalg", "nn", "array"};
    fputs("/* Generated from python/surface.def by tools/tkgen_python.c. */\n#include \"nn.h\"\n",
          out);
    for (size_t i = 0; i < COUNT(functions); i++) {
        signature s = parse_signature(&functions[i]);
        put_spec(out, &functions[i], &s);
        put_body(out, &functions[i], &s, false);
    }
    for (size_t i = 0; i < COUNT(aliases); i++) {
        if (strcmp(aliases[i].module, "array") != 0) continue;
        const function *f = find_function("array", aliases[i].target);
        signature s = parse_signature(f);
        put_body(out, f, &s, true);
    }
    for (size_t i = 0; i < COUNT(modules); i++) put_table(out, modules[i]);
}

/* ---- stubs ---- */

/* One array gives one, more give a list. */
static void put_few(FILE *out, const char *name) {
    static const char *const forms[] = {"a: _ArrayLike, /, *, ",
                                        "a: _ArrayLike, b: _ArrayLike, /, *more: _ArrayLike, "};
    for (int i = 0; i < 2; i++)
        fprintf(out, "@overload\ndef %s(%sstream: _StreamOrDevice = ...) -> %s: ...\n", name,
                forms[i], i ? "list[array]" : "array");
}

/* One definition. Static methods of a class stand for the functions of a namespace. */
static void put_stub(FILE *out, const char *name, const function *f, bool is_method,
                     bool is_namespace) {
    signature s = parse_signature(f);
    const char *indent = is_method || is_namespace ? "    " : "";
    if (is_method && s.positional_only) s.positional_only = 0;
    if (!strcmp(f->result, "FEW")) {
        put_few(out, name);
        return;
    }
    if (is_namespace) fprintf(out, "%s@staticmethod\n", indent);
    fprintf(out, "%sdef %s(%s", indent, name, is_method ? "self, " : "");
    put_python(out, &s, is_method, true);
    fprintf(out, ") -> %s: ...\n", result_type(f));
}

static void put_stubs(FILE *out, const char *module) {
    bool is_method = !strcmp(module, "array"), is_namespace = !is_method && strcmp(module, "core");
    if (is_namespace) fprintf(out, "class _%s:\n", module);
    for (size_t i = 0; i < COUNT(functions); i++)
        if (!strcmp(functions[i].module, module))
            put_stub(out, functions[i].name, &functions[i], false, is_namespace);
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (!strcmp(aliases[i].module, module))
            put_stub(out, aliases[i].name, find_function(module, aliases[i].target), is_method,
                     is_namespace);
}

static void write_stubs(FILE *out, const char *template) {
    char line[1024], module[32];
    FILE *in = fopen(template, "r");
    if (!in) die("cannot read", template);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, " #FUNCTIONS %31s", module) == 1)
            put_stubs(out, module);
        else
            fputs(line, out);
    }
    fclose(in);
}

int main(int argc, char **argv) {
    bool sources = argc == 3 && !strcmp(argv[1], "sources");
    bool stubs = argc == 4 && !strcmp(argv[1], "stubs");
    if (!sources && !stubs) {
        fprintf(stderr, "usage: tkgen_python sources FILE | tkgen_python stubs FILE TEMPLATE\n");
        return 2;
    }
    FILE *out = fopen(argv[2], "w");
    if (!out) die("cannot write", argv[2]);
    if (sources)
        write_sources(out);
    else
        write_stubs(out, argv[3]);
    if (ferror(out) | fclose(out)) die("cannot write", argv[2]);
    return 0;
}
