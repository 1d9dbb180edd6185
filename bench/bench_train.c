/* A training step of the demo's model: time and peak memory.
 *
 * Alone it prints both. With --worker it takes rounds from standard input, "N" for N steps, and
 * answers each with their seconds; an empty line ends it, with the peak memory. bench_train.py
 * drives it so, in turn with PyTorch. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tiki/train.h"

enum { TEXT_BYTES = 1 << 20, WARM_STEPS = 3, STEPS = 20 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A figure of /proc/self/status in MiB. */
static double memory(const char *name) {
    char line[256];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) kilobytes = strtod(line + strlen(name) + 1, NULL);
    if (file) fclose(file);
    return kilobytes / 1024;
}

/* The demo's: see tools/demo.sh. */
static tk_train_options demo_options(void) {
    tk_model_config model = tk_model_config_make(TK_MODEL_LLAMA, 4, 4, 128, 256);
    tk_train_options options = tk_train_defaults(&model);
    options.batch = 8;
    return options;
}

static void must(tk_status status) {
    if (status == TK_OK) return;
    fprintf(stderr, "%s\n", tk_error_message());
    exit(1);
}

static double run_steps(tk_trainer *trainer, int count) {
    tk_train_report report;
    double begin = seconds();
    for (int i = 0; i < count; i++) must(tk_trainer_step(trainer, NULL, &report));
    return seconds() - begin;
}

static void serve(tk_trainer *trainer, double before) {
    char line[64];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && line[0] != '\n') {
        printf("%.6f\n", run_steps(trainer, atoi(line)));
        fflush(stdout);
    }
    printf("%.1f\n", memory("VmHWM:") - before);
}

int main(int argc, char **argv) {
    unsigned char *text = malloc(TEXT_BYTES);
    tk_context *context;
    tk_trainer *trainer;
    if (!text) return 1;
    for (size_t i = 0; i < TEXT_BYTES; i++) text[i] = (unsigned char)(i * 2654435761u >> 20);
    must(tk_context_create(NULL, &context));
    double before = memory("VmRSS:");
    tk_train_options options = demo_options();
    must(tk_trainer_create(context, &options, text, TEXT_BYTES, &trainer));
    run_steps(trainer, WARM_STEPS);
    if (argc > 1 && !strcmp(argv[1], "--worker")) {
        serve(trainer, before);
    } else {
        double best = 1e9;
        for (int i = 0; i < STEPS; i++) {
            double took = run_steps(trainer, 1);
            if (took < best) best = took;
        }
        printf("training step of the demo's model: %.1f ms, %.0f tokens/s, %d threads\n",
               best * 1e3, (double)(options.batch * options.model.context) / best,
               tk_threads_count());
        printf("peak memory above that before the model: %.1f MiB\n", memory("VmHWM:") - before);
    }
    tk_trainer_free(trainer);
    tk_context_release(context);
    free(text);
    return 0;
}
