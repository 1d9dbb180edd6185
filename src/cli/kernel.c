/* `tiki kernel`: kernels in `.tk` files from the shell.
 *
 *     tiki kernel fmt FILE [--write]
 *     tiki kernel verify FILE...
 *     tiki kernel build FILE [--target ptx|cute] [--arch ARCH]
 *                       [--emit tensor|view|thread|ptx|cubin|report|contract|mlir|lowered]
 *                       [--optimise] [--fuse] [--lines] [-o FILE]
 *
 * A form before the kernel's own is an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "tiki/analysis.h"
#include "tiki/io.h"
#include "tiki/passes.h"
#include "tiki/target.h"

tk_kernel *kernel_read(const char *command, const char *path) {
    char *text;
    size_t bytes;
    tk_kernel *kernel = NULL;
    tk_status status = tk_file_read(path, &text, &bytes);
    if (status == TK_OK) {
        status = tk_kernel_parse(text, path, &kernel);
        tk_text_free(text);
    }
    if (status != TK_OK) complain_of_error(command);
    return status == TK_OK ? kernel : NULL;
}

static int write_out(const char *path, const void *data, size_t bytes) {
    if (path && tk_file_write(path, data, bytes) != TK_OK) return complain_of_error("kernel");
    if (!path && fwrite(data, 1, bytes, stdout) != bytes) return 1;
    return 0;
}

/* ---- fmt, verify ---- */

/* The comments above the first word of a kernel, which the printer does not know. */
static size_t head_comment(const char *text) {
    const char *at = text;
    while (*at == '#' || *at == '\n' || *at == '\r' || *at == ' ' || *at == '\t') {
        const char *end = strchr(at, '\n');
        if (*at == '#' && !end) return strlen(text);
        at = *at == '#' ? end + 1 : at + 1;
    }
    while (at > text && at[-1] != '\n') at--;
    return (size_t)(at - text);
}

/* The line of the first comment behind the head, 0 if there is none. A `#` in quotes is no comment.
 */
static unsigned later_comment(const char *text, size_t head) {
    unsigned line = 1;
    bool quoted = false;
    for (const char *at = text; *at; at++) {
        if (*at == '\n') line++, quoted = false;
        if ((size_t)(at - text) < head) continue;
        if (*at == '#' && !quoted) return line;
        if (quoted && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
    }
    return 0;
}

static int format_text(const char *path, const char *text, bool write) {
    tk_kernel *kernel = NULL;
    char *body = NULL;
    if (tk_kernel_parse(text, path, &kernel) != TK_OK ||
        tk_kernel_print(kernel, 0, &body) != TK_OK) {
        tk_kernel_release(kernel);
        return complain_of_error("kernel fmt");
    }
    size_t head = head_comment(text), bytes = strlen(body);
    char *whole = malloc(head + bytes + 1);
    int code = 1;
    if (whole) {
        memcpy(whole, text, head);
        memcpy(whole + head, body, bytes + 1);
        code = write_out(write ? path : NULL, whole, head + bytes);
    }
    free(whole);
    tk_kernel_text_free(body);
    tk_kernel_release(kernel);
    return code;
}

/* Comments at the head are kept. The others have no place in a kernel, so a file with one is
 * printed without it and never written over. */
static int format_file(const char *path, bool write) {
    char *text;
    size_t bytes;
    if (tk_file_read(path, &text, &bytes) != TK_OK) return complain_of_error("kernel fmt");
    unsigned line = later_comment(text, head_comment(text));
    int code = 1;
    if (write && line)
        fprintf(stderr,
                "tiki kernel fmt: %s:%u: --write would drop this comment; only those above the "
                "kernel are kept\n",
                path, line);
    else
        code = format_text(path, text, write);
    tk_text_free(text);
    return code;
}

static int verify_files(int count, char **paths) {
    int code = 0;
    for (int i = 0; i < count; i++) {
        tk_kernel *kernel = kernel_read("kernel verify", paths[i]);
        if (!kernel) code = 1;
        if (kernel && tk_kernel_prove_uniform(kernel) != TK_OK)
            code = complain_of_error("kernel verify");
        tk_kernel_release(kernel);
    }
    return code;
}

/* ---- build ---- */

typedef struct request {
    const char *path, *emit, *out;
    tk_build how;
    int flags; /* of tk_kernel_lower */
} request;

static bool is_cute(const request *r) { return r->how.target == TK_TARGET_CUTE; }

static int print_report(const tk_artifact *artifact, const char *out) {
    tk_report report;
    char text[800];
    if (tk_artifact_report(artifact, &report) != TK_OK) return complain_of_error("kernel build");
    int length =
        snprintf(text, sizeof text,
                 "kernel            %s for %s\nregisters         %lld a thread\nspilled   "
                 "        %lld bytes stored, "
                 "%lld loaded\nstack             %lld bytes\nshared memory     %lld "
                 "bytes\nblocks of an SM   %lld\nassembler         %s\nidentity          %s\n",
                 tk_kernel_name(tk_artifact_kernel(artifact)), tk_artifact_arch(artifact),
                 (long long)report.registers, (long long)report.spill_stores,
                 (long long)report.spill_loads, (long long)report.stack_bytes,
                 (long long)report.shared_bytes, (long long)report.blocks_of_an_sm,
                 tk_artifact_assembler(artifact), tk_artifact_identity(artifact));
    return write_out(out, text, (size_t)length);
}

static int emit_contract(const tk_kernel *kernel, const char *out) {
    char *text;
    if (tk_kernel_contract_json(kernel, &text) != TK_OK) return complain_of_error("kernel build");
    int code = write_out(out, text, strlen(text));
    tk_kernel_text_free(text);
    return code;
}

/* A binary in a file has its launch contract beside it. */
static int write_binary(const tk_artifact *artifact, const char *out, const void *binary,
                        size_t bytes) {
    char beside[4096];
    if (!out && isatty(STDOUT_FILENO))
        return fprintf(stderr, "tiki kernel build: a cubin is no text: name a file by -o\n"), 2;
    int code = write_out(out, binary, bytes);
    if (code || !out || snprintf(beside, sizeof beside, "%s.json", out) >= (int)sizeof beside)
        return code;
    return emit_contract(tk_artifact_kernel(artifact), beside);
}

static int emit_artifact(const tk_artifact *artifact, const request *r) {
    size_t bytes;
    const void *binary = tk_artifact_binary(artifact, &bytes);
    const char *text = NULL;
    if (!strcmp(r->emit, "mlir") || (!strcmp(r->emit, "ptx") && !is_cute(r)))
        text = tk_artifact_text(artifact);
    else if (!strcmp(r->emit, "ptx"))
        text = tk_artifact_stage(artifact, TK_STAGE_PTX);
    else if (!strcmp(r->emit, "lowered"))
        text = tk_artifact_stage(artifact, TK_STAGE_LOWERED);
    if (text) return write_out(r->out, text, strlen(text));
    if (!strcmp(r->emit, "cubin")) return write_binary(artifact, r->out, binary, bytes);
    return print_report(artifact, r->out);
}

static int build_target(const tk_kernel *kernel, request *r) {
    tk_artifact *artifact;
    bool text_only = !strcmp(r->emit, is_cute(r) ? "mlir" : "ptx");
    r->how.emit = text_only ? TK_EMIT_TEXT : TK_EMIT_BINARY;
    r->how.stages = is_cute(r);
    tk_status status = tk_kernel_build(kernel, &r->how, &artifact);
    if (status != TK_OK) return complain_of_error("kernel build");
    int code = emit_artifact(artifact, r);
    tk_artifact_release(artifact);
    return code;
}

static int emit_form(const tk_kernel *kernel, const request *r) {
    char *text;
    if (tk_kernel_print(kernel, 0, &text) != TK_OK) return complain_of_error("kernel build");
    int code = write_out(r->out, text, strlen(text));
    tk_kernel_text_free(text);
    return code;
}

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words; words++)
        if (!strcmp(word, *words)) return true;
    return false;
}

static const char *const forms[] = {"tensor", "view", "thread", NULL};
static const char *const emits[] = {"tensor", "view",     "thread", "ptx",     "cubin",
                                    "report", "contract", "mlir",   "lowered", NULL};
static const char *const cute_only[] = {"mlir", "lowered", NULL};
static const char *const targets[] = {"ptx", "cute", NULL};

static bool read_request(int argc, char **argv, request *r) {
    for (int i = 0; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--arch") && more)
            r->how.arch = argv[++i];
        else if (!strcmp(argv[i], "--emit") && more)
            r->emit = argv[++i];
        else if (!strcmp(argv[i], "--target") && more && is_one_of(argv[i + 1], targets))
            (void)tk_target_find(argv[++i], &r->how.target);
        else if (!strcmp(argv[i], "-o") && more)
            r->out = argv[++i];
        else if (!strcmp(argv[i], "--lines"))
            r->how.lines = true;
        else if (!strcmp(argv[i], "--optimise"))
            r->flags |= TK_KLOWER_OPTIMISE;
        else if (!strcmp(argv[i], "--fuse"))
            r->flags |= TK_KLOWER_FUSE;
        else if (argv[i][0] != '-' && !r->path)
            r->path = argv[i];
        else
            return fprintf(stderr, "tiki kernel build: unexpected \"%s\"\n", argv[i]), false;
    }
    if (!r->path) return fprintf(stderr, "tiki kernel build: no file given\n"), false;
    if (is_one_of(r->emit, emits) && (is_cute(r) || !is_one_of(r->emit, cute_only))) return true;
    if (is_one_of(r->emit, cute_only))
        return fprintf(stderr, "tiki kernel build: --emit %s needs --target cute\n", r->emit),
               false;
    return fprintf(stderr,
                   "tiki kernel build: --emit %s, expected tensor, view, thread, ptx, cubin, "
                   "report, contract, or of the target cute mlir or lowered\n",
                   r->emit),
           false;
}

/* The CuTe target takes the view form too, where layouts can still be read. */
static tk_kform wanted_form(const request *r, const tk_kernel *kernel) {
    for (int i = 0; forms[i]; i++)
        if (!strcmp(r->emit, forms[i])) return (tk_kform)i;
    return is_cute(r) && tk_kernel_form(kernel) != TK_KFORM_THREAD ? TK_KFORM_VIEW
                                                                   : TK_KFORM_THREAD;
}

tk_kernel *kernel_lowered(const char *command, tk_kernel *kernel, tk_kform form, int flags) {
    tk_kernel *out = NULL;
    if (!kernel) return NULL;
    if (tk_kernel_lower(kernel, form, flags, &out) != TK_OK) complain_of_error(command);
    tk_kernel_release(kernel);
    return out;
}

static int build_file(int argc, char **argv) {
    request r = {.emit = "report"};
    if (!read_request(argc, argv, &r)) return 2;
    tk_kernel *kernel = kernel_read("kernel build", r.path);
    kernel = kernel_lowered("kernel build", kernel, wanted_form(&r, kernel), r.flags);
    if (!kernel) return 1;
    int code = is_one_of(r.emit, forms)      ? emit_form(kernel, &r)
               : !strcmp(r.emit, "contract") ? emit_contract(kernel, r.out)
                                             : build_target(kernel, &r);
    tk_kernel_release(kernel);
    return code;
}

/* ---- the command ---- */

static int print_usage(FILE *to, int code) {
    fputs(
        "usage: tiki kernel fmt FILE [--write]     print it as the printer does, or write it "
        "back;\n"
        "                                          comments above the kernel are kept\n"
        "       tiki kernel verify FILE...         say what is wrong\n"
        "       tiki kernel build FILE [--target ptx|cute] [--arch sm_80|sm_90|sm_90a]\n"
        "                          [--emit WHAT] [--optimise] [--fuse] [--lines] [-o FILE]\n"
        "       tiki kernel report FILE [--arch ARCH] [--arg n=1000]... [--warp N] [--svg FILE]\n"
        "                                          registers, shared memory, barriers, accesses\n"
        "       tiki kernel ops                    the operations\n"
        "\n"
        "WHAT is tensor, view, thread (the kernel in that form), ptx, cubin (in a file, with its "
        "contract\n"
        "beside it), contract (the launch contract as JSON), or report (registers, spills, shared\n"
        "memory, blocks of an SM; the default); of the target cute mlir and lowered too.\n",
        to);
    return code;
}

static int print_ops(void) {
    for (int code = 0; code < TK_KOP_COUNT; code++)
        printf("%-22s %s\n", tk_kopcode_name((tk_kopcode)code), tk_kopcode_doc((tk_kopcode)code));
    return 0;
}

static const char *const actions[] = {"fmt", "verify", "build", "report", "ops", NULL};

int command_kernel(int argc, char **argv) {
    if (argc < 2) return print_usage(stderr, 2);
    if (asks_for_help(argc, argv)) return print_usage(stdout, 0);
    if (!strcmp(argv[1], "ops") && argc == 2) return print_ops();
    if (!strcmp(argv[1], "fmt") && argc == 3) return format_file(argv[2], false);
    if (!strcmp(argv[1], "fmt") && argc == 4 && !strcmp(argv[3], "--write"))
        return format_file(argv[2], true);
    if (!strcmp(argv[1], "verify") && argc > 2) return verify_files(argc - 2, argv + 2);
    if (!strcmp(argv[1], "report")) return kernel_report(argc - 2, argv + 2);
    if (!strcmp(argv[1], "build")) return build_file(argc - 2, argv + 2);
    if (!is_one_of(argv[1], actions))
        fprintf(stderr, "tiki kernel: no action is called \"%s\"\n\n", argv[1]);
    return print_usage(stderr, 2);
}
