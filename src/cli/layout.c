/* `tiki layout`: the layout algebra from the shell.
 *
 *     tiki layout OP ARG...            one operation
 *     tiki layout --batch FILE         one operation a line, words separated by tabs ("-": standard
 * input) tiki layout --list               the operations
 *
 * A batch answers each line with one line, `ok<TAB>result` or `error<TAB>code<TAB>message`, in
 * order, so that a script can check thousands of operations with one process. Empty lines are
 * skipped. Newlines and tabs of a message become `\n` and a blank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/layout.h"
#include "tiki/layout_call.h"

/* Enough for every value: 64 leaves of at most 60 characters, three times, with punctuation. */
#define TEXT_BYTES 16384

#define MAX_LINE_BYTES ((size_t)1 << 20)

static tk_status answer(const char *op, char **words, int count, char *text) {
    tk_layout_value args[TK_LAYOUT_MAX_ARGS], result;
    int kept = count < TK_LAYOUT_MAX_ARGS ? count : TK_LAYOUT_MAX_ARGS;
    tk_status status = TK_OK;
    for (int i = 0; i < kept && status == TK_OK; i++)
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
        fprintf(stderr, "tiki layout: cannot read %s\n", path);
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

/* -- Help -- */

static void print_usage(FILE *to) {
    fputs("usage: tiki layout OP ARG...\n"
          "       tiki layout --batch FILE   one operation a line, words separated by tabs\n"
          "       tiki layout --list         the operations\n"
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
    char text[TEXT_BYTES];
    tk_status status = answer(argv[1], argv + 2, argc - 2, text);
    if (status == TK_OK) return puts(text) < 0;
    fprintf(stderr, "tiki layout: %s: %s\n", tk_status_name(status), tk_error_message());
    return 1;
}
