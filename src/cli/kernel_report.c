/* `tiki kernel report`: what is known of a kernel before it runs, and, with arguments, what its
 * accesses look like.
 *
 *     tiki kernel report FILE [--arch ARCH] [--arg n=1000]... [--warp N] [--svg FILE.svg]
 *
 * Registers and occupancy come from the assembler where there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "tiki/analysis.h"
#include "tiki/io.h"
#include "tiki/target.h"

#define MOST_ARGUMENTS 256

typedef struct request {
    const char *path, *svg, *arch;
    int warp;
    const char *args[MOST_ARGUMENTS];
    size_t n_args;
} request;

static bool read_warp(const char *text, int *out) {
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int)value;
    return end != text && !*end && value >= 0 && value < 32;
}

static bool read_request(int argc, char **argv, request *r) {
    for (int i = 0; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--svg") && more)
            r->svg = argv[++i];
        else if (!strcmp(argv[i], "--arch") && more)
            r->arch = argv[++i];
        else if (!strcmp(argv[i], "--warp") && more && read_warp(argv[i + 1], &r->warp))
            i++;
        else if (!strcmp(argv[i], "--arg") && more && r->n_args < MOST_ARGUMENTS)
            r->args[r->n_args++] = argv[++i];
        else if (argv[i][0] != '-' && !r->path)
            r->path = argv[i];
        else
            return fprintf(stderr, "tiki kernel report: unexpected \"%s\"\n", argv[i]), false;
    }
    return r->path || (fprintf(stderr, "tiki kernel report: no file given\n"), false);
}

static const char *given(const request *r, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < r->n_args; i++)
        if (!strncmp(r->args[i], name, length) && r->args[i][length] == '=')
            return r->args[i] + length + 1;
    return NULL;
}

/* Whether each --arg is the integer of a parameter. */
static bool check_arguments(const request *r, const tk_kernel *kernel) {
    for (size_t i = 0; i < r->n_args; i++) {
        const char *text = r->args[i], *equals = strchr(text, '=');
        char *end = NULL;
        bool found = false;
        for (int k = 0; equals && k < tk_kernel_params(kernel); k++) {
            tk_kparam param;
            if (tk_kernel_param(kernel, k, &param) != TK_OK) return false;
            size_t length = strlen(param.name);
            found |= param.type.kind != TK_KT_POINTER && length == (size_t)(equals - text) &&
                     !memcmp(text, param.name, length);
        }
        if (equals) (void)strtoll(equals + 1, &end, 0);
        if (found && end != equals + 1 && !*end) continue;
        fprintf(stderr,
                "tiki kernel report: --arg %s, expected NAME=INTEGER of a number that kernel %s "
                "takes\n",
                text, tk_kernel_name(kernel));
        return false;
    }
    return true;
}

/* Integers of the launch. Whether all were given; else it says which was not. */
static bool read_arguments(const request *r, const tk_kernel *kernel, tk_kargument *arguments) {
    for (int i = 0; i < tk_kernel_params(kernel) && i < MOST_ARGUMENTS; i++) {
        tk_kparam param;
        if (tk_kernel_param(kernel, i, &param) != TK_OK || param.type.kind == TK_KT_POINTER ||
            param.type.scalar == TK_K_TMAP) /* a rule about another parameter */
            continue;
        const char *text = given(r, param.name);
        if (text) {
            arguments[i].bits = (uint64_t)strtoll(text, NULL, 0);
            continue;
        }
        printf("accesses          need a number for each parameter: --arg %s=INTEGER\n",
               param.name);
        return false;
    }
    return true;
}

static void print_memory(const tk_kanalysis *analysis) {
    tk_kplace place;
    for (size_t i = 0; i < tk_kanalysis_places(analysis); i++)
        if (tk_kanalysis_place(analysis, i, &place) == TK_OK)
            printf("shared            %6lld .. %-6lld %s\n", (long long)place.offset,
                   (long long)(place.offset + place.bytes), place.name);
}

static void print_orders(const tk_kanalysis *analysis) {
    tk_korder order;
    for (size_t i = 0; i < tk_kanalysis_orders(analysis); i++)
        if (tk_kanalysis_order(analysis, i, &order) == TK_OK)
            printf("%-17s line %u orders %s of line %u before %s of line %u, in %s\n",
                   order.barrier, order.barrier_line, order.before, order.before_line, order.after,
                   order.after_line, order.memory);
}

static void print_work(const tk_kanalysis *analysis) {
    tk_kwork work = tk_kanalysis_work(analysis);
    printf("a thread          %s%llu bytes read, %llu written, %llu FLOPs\n",
           work.exact ? "" : "in one trip of each loop ", (unsigned long long)work.read_bytes,
           (unsigned long long)work.written_bytes, (unsigned long long)work.flops);
}

static int print_static(const tk_kernel *kernel) {
    tk_kanalysis *analysis;
    uint32_t line;
    if (tk_kernel_analyse(kernel, &analysis) != TK_OK) return complain_of_error("kernel report");
    printf("kernel            %s\n", tk_kernel_name(kernel));
    long long live = (long long)tk_kanalysis_registers(analysis, &line);
    printf("values            %lld registers at once, in line %u\n", live, line);
    print_work(analysis);
    print_memory(analysis);
    print_orders(analysis);
    tk_kanalysis_release(analysis);
    bool uniform = tk_kernel_prove_uniform(kernel) == TK_OK;
    printf("uniform           %s\n", uniform ? "proven" : tk_error_message());
    return 0;
}

static void print_assembled(const tk_kernel *kernel, const char *arch) {
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY};
    tk_artifact *artifact = NULL;
    tk_report report;
    if (tk_kernel_build_ptx(kernel, &how, &artifact) != TK_OK) {
        printf("assembled         no: %s\n", tk_error_message());
        return;
    }
    if (tk_artifact_report(artifact, &report) == TK_OK)
        printf("assembled         for %s: %lld registers, %lld bytes spilled, %lld bytes of shared "
               "memory, %lld blocks of an SM\n",
               tk_artifact_arch(artifact), (long long)report.registers,
               (long long)report.spill_stores, (long long)report.shared_bytes,
               (long long)report.blocks_of_an_sm);
    tk_artifact_release(artifact);
}

/* 32-byte sectors and passes over the banks, and the least that so many bytes need. */
static int print_patterns(const tk_kernel *kernel, const tk_kargument *arguments, int warp) {
    tk_kpattern *patterns;
    size_t count;
    if (tk_kernel_patterns(kernel, (size_t)tk_kernel_params(kernel), arguments, warp, &patterns,
                           &count) != TK_OK)
        return complain_of_error("kernel report");
    for (size_t i = 0; i < count; i++) {
        const tk_kpattern *p = &patterns[i];
        int lanes = __builtin_popcount(p->lanes), bytes = lanes * p->bytes;
        printf("%-6s line %-5u %2d lanes of %2d bytes", p->operation, p->line, lanes, p->bytes);
        if (p->passes)
            printf(", %d passes over the banks, least %d: %s\n", p->passes, (bytes + 127) / 128,
                   p->memory);
        else
            printf(", %d sectors, least %d: %s\n", p->sectors, (bytes + 31) / 32, p->memory);
    }
    tk_kernel_patterns_free(patterns);
    return 0;
}

static int draw(const tk_kernel *kernel, const tk_kargument *arguments, const request *r) {
    char *svg;
    if (tk_kernel_draw(kernel, (size_t)tk_kernel_params(kernel), arguments, r->warp, &svg) != TK_OK)
        return complain_of_error("kernel report");
    int code =
        tk_file_write(r->svg, svg, strlen(svg)) == TK_OK ? 0 : complain_of_error("kernel report");
    tk_kernel_text_free(svg);
    return code;
}

int kernel_report(int argc, char **argv) {
    request r = {0};
    tk_kargument arguments[MOST_ARGUMENTS] = {{0}};
    if (!read_request(argc, argv, &r)) return 2;
    tk_kernel *kernel =
        kernel_lowered("kernel report", kernel_read("kernel report", r.path), TK_KFORM_THREAD, 0);
    if (!kernel) return 1;
    int code = check_arguments(&r, kernel) ? print_static(kernel) : 2;
    if (!code) print_assembled(kernel, r.arch);
    bool bound = read_arguments(&r, kernel, arguments);
    if (!code && bound) code = print_patterns(kernel, arguments, r.warp);
    if (!code && r.svg && !bound) {
        fprintf(stderr, "tiki kernel report: --svg draws accesses, and an --arg is missing\n");
        code = 2;
    }
    if (!code && r.svg) code = draw(kernel, arguments, &r);
    tk_kernel_release(kernel);
    return code;
}
