/* `tiki bench kernel`: a kernel of the library on a card, beside a copy in the same run.
 *
 *     tiki bench kernel rms_norm --shape 32768x4096 --dtype f16 --schedule "threads_per_row = 64"
 *
 * prints one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "tiki/bench.h"

static const char usage[] =
    "usage: tiki bench kernel NAME --shape MxN [--dtype f32|f16|bf16] [--schedule FIELDS]\n"
    "                         [--gpu N] [--rounds N]\n\n"
    "Measures a kernel of the library on a GPU: buffers that take turns over 384 MiB, one graph\n"
    "node each, the median of five rounds that alternate with a copy. Prints a line of JSON.\n"
    "The shape is that of the first operand, of a product MxNxK. FIELDS as \"threads = 128\".\n\n"
    "Kernels:\n";

static void print_usage(FILE *out) {
    fputs(usage, out);
    for (int i = 0; i < TK_LIBRARY_COUNT; i++)
        fprintf(out, "  %-18s %s\n", tk_library_name((tk_library_id)i),
                tk_library_doc((tk_library_id)i));
}

static bool read_shape(const char *text, tk_bench_spec *spec) {
    char *end;
    for (spec->rank = 0; spec->rank < TK_LIBRARY_MOST_AXES; text = end + 1) {
        long long length = strtoll(text, &end, 10);
        if (end == text || length < 1) return false;
        spec->shape[spec->rank++] = length;
        if (!*end) return true;
        if (*end != 'x') return false;
    }
    return false;
}

static bool read_dtype(const char *text, tk_bench_spec *spec) {
    static const tk_kscalar elements[] = {TK_K_F32, TK_K_F16, TK_K_BF16};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, tk_kscalar_text(elements[i]))) {
            spec->element = elements[i];
            return true;
        }
    return false;
}

static bool read_number(const char *text, int *out) {
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int)value;
    return end != text && !*end && value >= 0 && value < 1000;
}

static bool complain(const char *about, const char *message, const char *given) {
    fprintf(stderr, "tiki bench: %s%s%s\n", about, message, given);
    return false;
}

static bool read_option(const char *name, const char *value, tk_bench_spec *spec) {
    if (!strcmp(name, "--shape"))
        return read_shape(value, spec) ||
               complain(name, " takes lengths such as 1024x4096, given: ", value);
    if (!strcmp(name, "--dtype"))
        return read_dtype(value, spec) || complain(name, " is f32, f16 or bf16, given: ", value);
    if (!strcmp(name, "--gpu") || !strcmp(name, "--rounds"))
        return read_number(value, name[2] == 'g' ? &spec->gpu : &spec->rounds) ||
               complain(name, " takes a number from 0 to 999, given: ", value);
    if (strcmp(name, "--schedule")) return complain("unknown option ", name, "");
    spec->schedule = value;
    return true;
}

static bool read_options(int argc, char **argv, tk_bench_spec *spec) {
    for (int i = 3; i < argc; i += 2) {
        if (i + 1 == argc) return complain("a value is missing after ", argv[i], "");
        if (!read_option(argv[i], argv[i + 1], spec)) return false;
    }
    return spec->rank || complain("--shape is missing, for example --shape 1024x4096", "", "");
}

static int bench_kernel(const tk_bench_spec *spec) {
    tk_bench_result result;
    char *line;
    if (tk_bench_kernel(spec, &result) != TK_OK) return complain_of_error("bench");
    if (tk_bench_print(spec, &result, &line) != TK_OK) return complain_of_error("bench");
    puts(line);
    tk_kernel_text_free(line);
    return 0;
}

int command_bench(int argc, char **argv) {
    tk_bench_spec spec = {.size = sizeof spec, .element = TK_K_F32};
    if (asks_for_help(argc, argv)) {
        print_usage(stdout);
        return 0;
    }
    if (argc < 3 || strcmp(argv[1], "kernel")) {
        if (argc > 1 && strcmp(argv[1], "kernel"))
            fprintf(stderr, "tiki bench: expected \"kernel\", found \"%s\"\n\n", argv[1]);
        print_usage(stderr);
        return 2;
    }
    if (tk_library_find(argv[2], &spec.id) != TK_OK) {
        (void)complain_of_error("bench");
        fputs("tiki bench --help lists the kernels\n", stderr);
        return 2;
    }
    return read_options(argc, argv, &spec) ? bench_kernel(&spec) : 2;
}
