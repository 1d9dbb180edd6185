/* `tiki emulate`: runs a kernel on the CPU and judges it.
 *
 *     tiki emulate FILE --arg x=f32[128]:random --arg y=f32[128]:y.npy --arg n=128
 *         [--out y=out.npy] [--seed N] [--resident N] [--json] [--counts]
 *
 * Findings go to standard output; exit code 1 when there is any, 2 for a wrong use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "tiki/array.h"
#include "tiki/emulator.h"
#include "tiki/io.h"

#define MOST_ARGUMENTS 256

typedef struct pair {
    const char *name; /* not ended: `length` characters */
    size_t length;
    const char *value;
} pair;

typedef struct request {
    const char *path;
    pair args[MOST_ARGUMENTS], outs[MOST_ARGUMENTS];
    size_t n_args, n_outs;
    uint64_t seed;
    int64_t resident;
    bool json, counts;
} request;

/* What the arguments become. */
typedef struct binding {
    tk_context *context;
    tk_kargument arguments[MOST_ARGUMENTS];
    tk_kbuffer buffers[MOST_ARGUMENTS];
    tk_dtype dtypes[MOST_ARGUMENTS];
    int64_t sizes[MOST_ARGUMENTS];
} binding;

static bool complain(const char *message, const char *about) {
    fprintf(stderr, "tiki emulate: %s%s\n", message, about);
    return false;
}

/* ---- the command line ---- */

static bool read_pair(const char *text, pair *out) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return complain("expected NAME=VALUE, found ", text);
    *out = (pair){.name = text, .length = (size_t)(equals - text), .value = equals + 1};
    return true;
}

static bool read_number(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 0);
    if (!errno && end != text && !*end) return true;
    return complain("expected an integer, found ", text);
}

static bool read_option(const char *name, const char *value, request *r) {
    int64_t number;
    bool arg = !strcmp(name, "--arg");
    if (arg || !strcmp(name, "--out")) {
        size_t *count = arg ? &r->n_args : &r->n_outs;
        if (*count == MOST_ARGUMENTS) return complain("too many arguments at ", value);
        return read_pair(value, &(arg ? r->args : r->outs)[(*count)++]);
    }
    if (!strcmp(name, "--seed") && read_number(value, &number))
        return r->seed = (uint64_t)number, true;
    if (!strcmp(name, "--resident")) return read_number(value, &r->resident);
    return complain("unknown option ", name);
}

static bool read_request(int argc, char **argv, request *r) {
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            r->json = true;
        else if (!strcmp(argv[i], "--counts"))
            r->counts = true;
        else if (argv[i][0] != '-' && !r->path)
            r->path = argv[i];
        else if (i + 1 == argc)
            return complain("unexpected ", argv[i]);
        else if (!read_option(argv[i], argv[i + 1], r))
            return false;
        else
            i++;
    }
    return r->path || complain("no file given", "");
}

static const pair *find_pair(const pair *pairs, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strlen(name) == pairs[i].length && !memcmp(name, pairs[i].name, pairs[i].length))
            return &pairs[i];
    return NULL;
}

static bool all_named(const tk_kernel *kernel, const pair *pairs, size_t count,
                      const char *option) {
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (int k = 0; k < tk_kernel_params(kernel) && !found; k++) {
            tk_kparam param;
            if (tk_kernel_param(kernel, k, &param) != TK_OK) return false;
            found = find_pair(&pairs[i], 1, param.name) != NULL;
        }
        if (found) continue;
        fprintf(stderr, "tiki emulate: %s %.*s: kernel %s has no such parameter\n", option,
                (int)pairs[i].length, pairs[i].name, tk_kernel_name(kernel));
        return false;
    }
    return true;
}

/* ---- arguments ---- */

/* f32[2,3]:random: dtype and number of elements; *out_rest is behind the colon. */
static bool read_type(const char *text, tk_dtype *out_dtype, int64_t *out_size,
                      const char **out_rest) {
    char name[16];
    size_t length = strcspn(text, "[");
    if (text[length] != '[' || length >= sizeof name)
        return complain("expected TYPE[SHAPE]:WHAT, found ", text);
    memcpy(name, text, length);
    name[length] = 0;
    if (tk_dtype_parse(name, out_dtype) != TK_OK) return complain(tk_error_message(), "");
    *out_size = 1;
    const char *at = text + length;
    do {
        char *end;
        if (at[1] == ']' && *at == '[') {
            at++;
            break;
        }
        long long extent = strtoll(at + 1, &end, 10);
        if (end == at + 1 || extent < 0 || __builtin_mul_overflow(*out_size, extent, out_size) ||
            *out_size > ((int64_t)1 << 36))
            return complain("a shape of integers is expected in ", text);
        at = end;
    } while (*at == ',');
    if (at[0] != ']' || at[1] != ':') return complain("expected TYPE[SHAPE]:WHAT, found ", text);
    *out_rest = at + 2;
    return true;
}

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Floats from -1 to 1 in steps of 2^-10, exact in f16; integers from 0 to 15. */
static tk_array random_array(tk_context *context, tk_dtype dtype, int64_t size, uint64_t seed) {
    float *values = malloc((size_t)size * sizeof *values + 1);
    if (!values) return TK_NO_ARRAY;
    for (int64_t i = 0; i < size; i++) {
        uint64_t bits = next_random(&seed);
        values[i] = tk_dtype_is_float(dtype) ? (float)((int64_t)(bits % 2049) - 1024) / 1024
                                             : (float)(bits % 16);
    }
    tk_array array = tk_astype(tk_from_data(context, values, TK_SHAPE(size), TK_FLOAT32), dtype);
    free(values);
    return array;
}

static tk_array array_of(binding *b, const char *what, tk_dtype dtype, int64_t size,
                         uint64_t seed) {
    tk_array array;
    if (!strcmp(what, "zeros")) return tk_zeros(b->context, TK_SHAPE(size), dtype);
    if (!strcmp(what, "random")) return random_array(b->context, dtype, size, seed);
    if (tk_npy_load(b->context, what, &array) == TK_OK) return array;
    fprintf(stderr, "tiki emulate: expected random, zeros or a file.npy; %s\n", tk_error_message());
    return TK_NO_ARRAY;
}

static bool copy_array(binding *b, int index, tk_array array, const char *text) {
    size_t bytes = (size_t)b->sizes[index] * tk_dtype_size(b->dtypes[index]);
    if (tk_eval(array) != TK_OK) return complain(tk_error_message(), "");
    if (tk_array_dtype(array) != b->dtypes[index] || tk_array_size(array) != b->sizes[index])
        return complain("the file has another type or size than ", text);
    void *data = malloc(bytes + 1);
    if (!data) return complain("no memory for ", text);
    b->buffers[index] = (tk_kbuffer){.data = data, .bytes = bytes};
    return tk_copy_out(array, data, bytes) == TK_OK || complain(tk_error_message(), "");
}

/* Memory of another width would be read as what it is not. Elements that arrays do not have, such
 * as e4m3, are given as integers of their width. */
static bool fits(const tk_kparam *param, tk_dtype dtype, const char *text) {
    tk_dtype own;
    const char *element = tk_kscalar_text(param->type.scalar);
    if (tk_dtype_parse(element, &own) != TK_OK || own == dtype) return true;
    if (!tk_dtype_is_float(own) && !tk_dtype_is_float(dtype) &&
        tk_dtype_size(own) == tk_dtype_size(dtype))
        return true;
    fprintf(stderr, "tiki emulate: parameter %s points to %s, expected %s[SHAPE]:WHAT, found %s\n",
            param->name, element, element, text);
    return false;
}

static bool bind_pointer(binding *b, int index, const tk_kparam *param, const char *text,
                         uint64_t seed) {
    const char *what;
    if (!read_type(text, &b->dtypes[index], &b->sizes[index], &what) ||
        !fits(param, b->dtypes[index], text))
        return false;
    tk_scope scope = tk_scope_open(b->context);
    tk_array array = array_of(b, what, b->dtypes[index], b->sizes[index], seed + (uint64_t)index);
    bool ok = array.node && copy_array(b, index, array, text);
    tk_scope_close(scope);
    return ok;
}

static bool bind_scalar(binding *b, int index, const tk_kparam *param, const char *text) {
    char *end;
    double value = strtod(text, &end);
    float single = (float)value;
    if (param->type.scalar <= TK_K_I64) {
        int64_t integer;
        if (!read_number(text, &integer)) return false;
        b->arguments[index].bits = (uint64_t)integer;
        return true;
    }
    if (end == text || *end) return complain("expected a number, found ", text);
    if (param->type.scalar == TK_K_F32)
        memcpy(&b->arguments[index].bits, &single, sizeof single);
    else if (param->type.scalar == TK_K_F64)
        memcpy(&b->arguments[index].bits, &value, sizeof value);
    else
        return complain("a scalar of this type cannot be given: ", param->name);
    return true;
}

static bool bind_all(const request *r, const tk_kernel *kernel, binding *b) {
    if (!all_named(kernel, r->args, r->n_args, "--arg") ||
        !all_named(kernel, r->outs, r->n_outs, "--out"))
        return false;
    for (int i = 0; i < tk_kernel_params(kernel); i++) {
        tk_kparam param;
        if (i >= MOST_ARGUMENTS || tk_kernel_param(kernel, i, &param) != TK_OK)
            return complain("too many parameters", "");
        if (param.type.scalar == TK_K_TMAP) continue; /* a rule about another parameter */
        const pair *given = find_pair(r->args, r->n_args, param.name);
        if (!given) return complain("no --arg for parameter ", param.name);
        bool pointer = param.type.kind == TK_KT_POINTER;
        if (!(pointer ? bind_pointer(b, i, &param, given->value, r->seed)
                      : bind_scalar(b, i, &param, given->value)))
            return false;
    }
    return true;
}

/* ---- results ---- */

static bool write_outs(const request *r, const tk_kernel *kernel, binding *b) {
    for (int i = 0; i < tk_kernel_params(kernel); i++) {
        tk_kparam param;
        if (tk_kernel_param(kernel, i, &param) != TK_OK) return false;
        const pair *out = find_pair(r->outs, r->n_outs, param.name);
        if (!out) continue;
        if (param.type.kind != TK_KT_POINTER) return complain("--out names a scalar: ", param.name);
        tk_scope scope = tk_scope_open(b->context);
        tk_array array =
            tk_from_data(b->context, b->buffers[i].data, TK_SHAPE(b->sizes[i]), b->dtypes[i]);
        tk_status status = tk_npy_save(out->value, array);
        tk_scope_close(scope);
        if (status != TK_OK) return complain(tk_error_message(), "");
    }
    return true;
}

static void print_counts(const tk_emulation *emulation) {
    tk_ktotals totals = tk_emulation_totals(emulation);
    printf("%-16s %6s %12s %14s %12s %10s\n", "operation", "line", "warps", "lanes", "sectors",
           "conflicts");
    for (size_t i = 0; i < tk_emulation_counts(emulation); i++) {
        tk_kcount count;
        if (tk_emulation_count(emulation, i, &count) != TK_OK || !count.warps) continue;
        printf("%-16s %6u %12llu %14llu %12llu %10llu\n", count.operation, count.line,
               (unsigned long long)count.warps, (unsigned long long)count.lanes,
               (unsigned long long)count.sectors, (unsigned long long)count.conflicts);
    }
    printf("%llu lane operations, %llu bytes read, %llu written, %llu FLOPs\n",
           (unsigned long long)totals.lane_operations, (unsigned long long)totals.read_bytes,
           (unsigned long long)totals.written_bytes, (unsigned long long)totals.flops);
}

static int show(const request *r, const tk_emulation *emulation) {
    char *text;
    tk_status status =
        r->json ? tk_emulation_json(emulation, &text) : tk_emulation_text(emulation, &text);
    if (status != TK_OK) return complain_of_error("emulate");
    fputs(*text ? text : "nothing found\n", stdout);
    if (r->json) putchar('\n');
    tk_kernel_text_free(text);
    if (r->counts) print_counts(emulation);
    return tk_emulation_findings(emulation) ? 1 : 0;
}

static int run(const request *r, const tk_kernel *kernel, binding *b) {
    tk_emulation *emulation;
    if (!bind_all(r, kernel, b)) return 2;
    tk_kemulate how = {.seed = r->seed,
                       .resident = r->resident,
                       .n_arguments = (size_t)tk_kernel_params(kernel),
                       .arguments = b->arguments,
                       .buffers = b->buffers};
    if (tk_kernel_emulate(kernel, &how, &emulation) != TK_OK) return complain_of_error("emulate");
    int code = show(r, emulation);
    if (!write_outs(r, kernel, b)) code = 2;
    tk_emulation_release(emulation);
    return code;
}

static int print_usage(FILE *to, int code) {
    fputs(
        "usage: tiki emulate FILE --arg NAME=VALUE... [--out NAME=FILE.npy]... [--seed N] "
        "[--resident N]\n"
        "                    [--json] [--counts]\n"
        "\n"
        "Runs a kernel in thread form on the CPU and reports what is wrong with it: races, reads "
        "of memory\n"
        "that nobody wrote, addresses out of bounds, barriers that not all reach, and more.\n"
        "  --arg x=f32[64,32]:WHAT   memory behind a pointer; WHAT is random, zeros or a file.npy\n"
        "  --arg n=64                a number\n"
        "  --out x=x.npy             writes the memory afterwards\n"
        "  --seed N                  another interleaving and other random data (0)\n"
        "  --resident N              blocks that are alive at once (64)\n"
        "  --counts                  what was done, operation by operation\n"
        "  --json                    findings, counts and totals as JSON\n"
        "Exit code 1 when anything was found.\n",
        to);
    return code;
}

int command_emulate(int argc, char **argv) {
    static request r;
    static binding b;
    if (asks_for_help(argc, argv)) return print_usage(stdout, 0);
    if (argc < 2) return print_usage(stderr, 2);
    if (!read_request(argc, argv, &r)) return 2;
    tk_kernel *kernel =
        kernel_lowered("emulate", kernel_read("emulate", r.path), TK_KFORM_THREAD, 0);
    if (!kernel) return 1;
    int code = tk_context_create(NULL, &b.context) == TK_OK ? run(&r, kernel, &b)
                                                            : complain_of_error("emulate");
    for (int i = 0; i < MOST_ARGUMENTS; i++) free(b.buffers[i].data);
    tk_context_release(b.context);
    tk_kernel_release(kernel);
    return code;
}
