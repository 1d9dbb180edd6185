/* The command `tiki`: a table of subcommands, and what they share. */
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "cli/layout.h"
#include "tiki/devices.h"
#include "tiki/version.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} command;

static const command commands[] = {
    {"train", command_train, "train a language model on the bytes of files"},
    {"generate", command_generate, "let a trained model write"},
    {"eval", command_eval, "measure a model's loss on a file"},
    {"layout", tk_cli_layout, "compute with CuTe layouts and draw them"},
    {"kernel", command_kernel, "check, format and build kernels in .tk files"},
    {"emulate", command_emulate, "run a kernel on the CPU and judge it"},
    {"cache", command_cache, "list, check and shorten the kernels kept on disk"},
    {"bench", command_bench, "measure a kernel of the library on a GPU"},
    {"info", command_info, "version, devices, libraries, and why a device is off"},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static bool is_help(const char *word) { return !strcmp(word, "--help") || !strcmp(word, "-h"); }

bool asks_for_help(int argc, char **argv) {
    return argc > 1 && (is_help(argv[1]) || is_help(argv[argc - 1]));
}

static void print_help(FILE *out) {
    fprintf(out,
            "usage: tiki COMMAND [OPTION...]\n\nTiki %s, a machine learning framework in C.\n\n",
            TK_VERSION);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "\ntiki COMMAND --help says more.\n");
}

int complain_of_error(const char *command) {
    fflush(stdout);
    fprintf(stderr, "tiki %s: %s\n", command, tk_error_message());
    return 1;
}

static volatile sig_atomic_t interrupt_count, latest_signal;

static void count_interrupt(int signal) {
    latest_signal = signal;
    interrupt_count++;
}

void catch_interrupts(void) {
    struct sigaction action = {.sa_handler = count_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int interrupts(void) { return interrupt_count; }

int interrupt_code(void) { return 128 + latest_signal; }

bool interrupted(void *arg) {
    (void)arg;
    return interrupt_count >= 1;
}

bool interrupted_twice(void *arg) {
    (void)arg;
    return interrupt_count >= 2;
}

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

tk_status check_byte_level(const char *folder, const tk_model_config *config) {
    static const char *const files[] = {"tokenizer.json", "tokenizer.model", "vocab.json",
                                        "merges.txt"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[4096];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, files[i]) < sizeof path &&
            !access(path, F_OK))
            return tk_error_set(TK_UNSUPPORTED,
                                "%s: the model has a tokenizer (%s), expected one on plain bytes",
                                folder, files[i]);
    }
    if (config->vocab == 256) return TK_OK;
    return tk_error_set(TK_UNSUPPORTED,
                        "%s: the model has a vocabulary of %lld tokens, expected the 256 bytes",
                        folder, (long long)config->vocab);
}

tk_status use_device(tk_context *context, const char *name) {
    tk_stream_id stream;
    tk_status status = tk_device_stream(context, name, &stream);
    if (status == TK_OK) (void)tk_stream_use(context, stream);
    return status;
}

tk_status load_byte_model(tk_context *context, const char *device, const char *folder,
                          tk_model_config *out_config, tk_tree *parameters) {
    tk_stream_id stream;
    tk_status status = tk_device_stream(context, device, &stream);
    if (status == TK_OK) status = tk_model_load(context, folder, out_config, parameters);
    if (status == TK_OK) status = check_byte_level(folder, out_config);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(parameters); i++) {
        tk_array moved = tk_to_stream(tk_tree_at(parameters, i), stream);
        status = tk_tree_set_at(parameters, i, moved);
        tk_release(moved);
    }
    return status == TK_OK ? use_device(context, device) : status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (is_help(argv[1]) || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("tiki %s\n", TK_VERSION);
        return 0;
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "tiki: unknown command \"%s\"\n\n", argv[1]);
    print_help(stderr);
    return 2;
}
