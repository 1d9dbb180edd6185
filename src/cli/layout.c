/* `tiki layout`: the layout algebra from the shell.
 *
 *     tiki layout OP ARG...            one operation
 *     tiki layout --batch FILE         one operation a line, words separated by tabs ("-": standard
 * input) tiki layout --list               the operations
 *
 * A batch answers each line with one line, `ok<TAB>result` or `error<TAB>code<TAB>message`, in
 * order, so that a script can check thousands of operations with one process. Empty lines are
 * skipped. Newlines and tabs of a message become `\n` and a blank. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/layout.h"
#include "tiki/layout_call.h"
#include "tiki/layout_draw.h"

/* Enough for every value: 64 leaves of at most 60 characters, three times, with punctuation. */
#define TEXT_BYTES 16384

#define MAX_LINE_BYTES ((size_t)1 << 20)

static const tk_layout_op *find_op(const char *name) {
    size_t length = strlen(name);
    const tk_layout_op *op;
    for (int i = 0; (op = tk_layout_op_at(i)); i++)
        for (const char *at = op->names; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
            if (strcspn(at, "|") == length && !strncmp(at, name, length)) return op;
    return NULL;
}

/* Name and number of arguments are judged before what the arguments say. */
static tk_status answer(const char *op, char **words, int count, char *text) {
    tk_layout_value args[TK_LAYOUT_MAX_ARGS], result;
    const tk_layout_op *row = find_op(op);
    tk_status status = TK_OK;
    if (!row || count > row->max_args) return tk_layout_call(op, args, count, &result);
    for (int i = 0; i < count && status == TK_OK; i++)
        status = tk_layout_value_parse(words[i], &args[i]);
    if (status == TK_OK) status = tk_layout_call(op, args, count, &result);
    if (status == TK_OK) tk_layout_value_print(&result, text, TEXT_BYTES);
    return status;
}

/* -- Batch -- */

static void print_message(FILE *to, const char *message) {
    for (; *message; message++) {
        if (*message == '\n')
            fputs("\\n", to);
        else
            fputc(*message == '\t' ? ' ' : *message, to);
    }
}

/* Splits at tabs, in place. Returns the number of words, at most `most` + 1. */
static int split(char *line, char **words, int most) {
    int count = 0;
    for (char *at = line; at && count <= most; count++) {
        words[count] = at;
        at = strchr(at, '\t');
        if (at) *at++ = 0;
    }
    return count;
}

static void answer_line(char *line) {
    char *words[TK_LAYOUT_MAX_ARGS + 2], text[TEXT_BYTES];
    int count = split(line, words, TK_LAYOUT_MAX_ARGS + 1);
    tk_status status = answer(words[0], words + 1, count - 1, text);
    if (status == TK_OK) {
        printf("ok\t%s\n", text);
        return;
    }
    printf("error\t%s\t", tk_status_name(status));
    print_message(stdout, tk_error_message());
    putchar('\n');
}

/* Reads a line of any length up to the limit; false at the end of the file. */
static bool read_line(FILE *from, char **line, size_t *capacity) {
    size_t length = 0;
    int byte;
    while ((byte = fgetc(from)) != EOF && byte != '\n') {
        if (length + 1 >= *capacity && *capacity < MAX_LINE_BYTES) {
            size_t wanted = *capacity ? *capacity * 2 : 256;
            char *grown = realloc(*line, wanted);
            if (!grown) return false;
            *line = grown;
            *capacity = wanted;
        }
        if (length + 1 < *capacity) (*line)[length++] = (char)byte;
    }
    if (byte == EOF && length == 0) return false;
    if (*capacity == 0) return byte != EOF && (*line = calloc(1, 256)) && (*capacity = 256);
    if (length && (*line)[length - 1] == '\r') length--;
    (*line)[length] = 0;
    return true;
}

static int run_batch(const char *path) {
    bool standard = !strcmp(path, "-");
    FILE *from = standard ? stdin : fopen(path, "r");
    if (!from) {
        fprintf(stderr, "tiki layout: cannot read %s: %s\n", path, strerror(errno));
        return 1;
    }
    char *line = NULL;
    size_t capacity = 0;
    while (read_line(from, &line, &capacity))
        if (*line) answer_line(line);
    free(line);
    if (!standard) fclose(from);
    return fflush(stdout) ? 1 : 0;
}

/* -- Pictures -- */

/* What `draw` was asked for; members that were not given are NULL. */
typedef struct picture {
    const char *layout, *other, *tile, *width, *file;
    int bytes; /* what `width` says */
} picture;

static bool complain(const char *message, const char *about) {
    fprintf(stderr, "tiki layout draw: %s%s\n", message, about);
    return false;
}

static bool complain_of_word(const char *word, const picture *p) {
    static const char *const taking[] = {"-o", "--tv", "--banks"};
    for (size_t i = 0; i < sizeof taking / sizeof taking[0]; i++)
        if (!strcmp(word, taking[i])) return complain("a value is missing after ", word);
    if (!strcmp(word, "--compare"))
        return p->layout ? complain("--compare takes both layouts itself, but one came before: ",
                                    p->layout)
                         : complain("--compare takes two layouts, A and B", "");
    if (word[0] == '-') return complain("unknown option ", word);
    return complain("one layout is drawn, a second was given (--compare A B draws two): ", word);
}

static bool check_picture(picture *p) {
    if (!p->layout) return complain("no layout given", "");
    if ((p->tile != NULL) + (p->width != NULL) + (p->other != NULL) > 1)
        return complain("--tv, --banks and --compare exclude each other", "");
    if (p->tile && strstr(p->layout, " o "))
        return complain("--tv takes no composed layout, given: ", p->layout);
    if (!p->width) return true;
    char *end;
    errno = 0;
    long bytes = strtol(p->width, &end, 10);
    if (errno || *end || end == p->width || bytes < 1 || bytes > 16)
        return complain("--banks takes bytes a lane (1, 2, 4, 8 or 16), given: ", p->width);
    p->bytes = (int)bytes;
    return true;
}

static bool read_picture(int argc, char **argv, picture *out) {
    *out = (picture){0};
    for (int i = 0; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "-o") && more)
            out->file = argv[++i];
        else if (!strcmp(argv[i], "--tv") && more)
            out->tile = argv[++i];
        else if (!strcmp(argv[i], "--banks") && more)
            out->width = argv[++i];
        else if (!strcmp(argv[i], "--compare") && i + 2 < argc && !out->layout)
            out->layout = argv[i + 1], out->other = argv[i + 2], i += 2;
        else if (!out->layout && argv[i][0] != '-')
            out->layout = argv[i];
        else
            return complain_of_word(argv[i], out);
    }
    return check_picture(out);
}

/* Draws into `text`; with a capacity of 0 it measures. */
static tk_status draw_tv(const picture *p, char *text, size_t capacity, size_t *out_length) {
    tk_layout tv;
    tk_tuple tile;
    tk_status status = tk_layout_parse(p->layout, &tv);
    if (status == TK_OK) status = tk_tuple_parse(p->tile, &tile);
    if (status == TK_OK) status = tk_layout_draw_tv(&tv, &tile, text, capacity, out_length);
    return status;
}

static tk_status draw(const picture *p, char *text, size_t capacity, size_t *out_length) {
    tk_composed layout, other;
    if (p->tile) return draw_tv(p, text, capacity, out_length);
    tk_status status = tk_composed_parse(p->layout, &layout);
    if (status != TK_OK) return status;
    if (p->width) return tk_layout_draw_banks(&layout, p->bytes, text, capacity, out_length);
    if (!p->other) return tk_layout_draw(&layout, text, capacity, out_length);
    status = tk_composed_parse(p->other, &other);
    if (status != TK_OK) return status;
    return tk_layout_draw_pair(&layout, &other, text, capacity, out_length, NULL);
}

static int write_picture(const picture *p, const char *text, size_t length) {
    errno = 0;
    FILE *to = p->file ? fopen(p->file, "wb") : stdout;
    bool ok = to && fwrite(text, 1, length, to) == length;
    if (to && to != stdout) ok = fclose(to) == 0 && ok;
    if (!ok)
        fprintf(stderr, "tiki layout: cannot write %s: %s\n", p->file ? p->file : "the picture",
                strerror(errno));
    return ok ? 0 : 1;
}

static int run_draw(int argc, char **argv) {
    picture p;
    size_t length;
    if (!read_picture(argc, argv, &p)) return 2;
    tk_status status = draw(&p, NULL, 0, &length);
    if (status != TK_OK) {
        fprintf(stderr, "tiki layout: %s: %s\n", tk_status_name(status), tk_error_message());
        return 1;
    }
    char *text = malloc(length + 1);
    int code = 1;
    if (text && draw(&p, text, length + 1, &length) == TK_OK)
        code = write_picture(&p, text, length);
    free(text);
    return code;
}

/* -- Help -- */

static void print_usage(FILE *to) {
    fputs(
        "usage: tiki layout OP ARG...\n"
        "       tiki layout --batch FILE   one operation a line, words separated by tabs; FILE may "
        "be -\n"
        "       tiki layout --list         the operations\n"
        "       tiki layout draw LAYOUT [--tv TILE | --banks WIDTH] [-o FILE]\n"
        "       tiki layout draw --compare A B [-o FILE]\n"
        "\n"
        "draw prints an SVG picture, or writes it to FILE: rows are mode 0, columns the other\n"
        "modes, each cell shows its offset.\n"
        "  --tv TILE      LAYOUT maps (thread, value) into the shape TILE; a cell shows both\n"
        "  --banks WIDTH  LAYOUT maps lanes to places of WIDTH bytes (1, 2, 4, 8 or 16); a row is\n"
        "                 one pass over the 32 banks of shared memory\n"
        "  --compare A B  two grids side by side; cells whose offsets differ have a red frame\n"
        "\n"
        "--batch answers each line with a line: ok, result, or error, kind, message, with tabs\n"
        "between; it exits with 0 though some are errors.\n"
        "\n"
        "example: tiki layout composition '(6,2):(8,2)' '(4,3):(3,1)'\n",
        to);
}

static void print_ops(void) {
    const tk_layout_op *op;
    for (int i = 0; (op = tk_layout_op_at(i)); i++) {
        int name = (int)strcspn(op->names, "|");
        printf("%-24.*s%-24s%s\n", name, op->names, op->usage, op->summary);
    }
}

static int print_op(const char *name) {
    const tk_layout_op *op = find_op(name);
    if (op) return printf("usage: tiki layout %s %s\n\n%s\n", name, op->usage, op->summary) < 0;
    fprintf(stderr, "tiki layout: no operation is called %s; tiki layout --list shows them\n",
            name);
    return 1;
}

int tk_cli_layout(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) return print_usage(stdout), 0;
    if (!strcmp(argv[1], "--list")) return print_ops(), 0;
    if (!strcmp(argv[1], "--batch")) {
        if (argc == 3) return run_batch(argv[2]);
        print_usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "draw")) {
        if (argc == 3 && !strcmp(argv[2], "--help")) return print_usage(stdout), 0;
        int code = run_draw(argc - 2, argv + 2);
        if (code == 2) print_usage(stderr);
        return code;
    }
    if (argc == 3 && !strcmp(argv[2], "--help")) return print_op(argv[1]);
    char text[TEXT_BYTES];
    tk_status status = answer(argv[1], argv + 2, argc - 2, text);
    if (status == TK_OK) return puts(text) < 0;
    fprintf(stderr, "tiki layout: %s: %s\n", tk_status_name(status), tk_error_message());
    if (!find_op(argv[1])) fputs("tiki layout --list shows the operations\n", stderr);
    return 1;
}
