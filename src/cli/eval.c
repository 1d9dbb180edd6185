/* `tiki eval`: the loss of a model on a file. */
#include <math.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/options.h"

typedef struct evaluation {
    const char *folder, *data, *device;
    int64_t batch, threads;
    tk_context *context;
    tk_model_config config;
    tk_tree *parameters;
    tk_corpus *corpus;
} evaluation;

static tk_status evaluate(evaluation *e, double *out_nats) {
    tk_status status = e->threads ? tk_threads_set((int)e->threads) : TK_OK;
    e->parameters = tk_tree_new();
    if (!e->parameters) return tk_error_set(TK_OUT_OF_MEMORY, "no memory for the model");
    if (status == TK_OK) status = tk_context_create(NULL, &e->context);
    if (status == TK_OK)
        status = load_byte_model(e->context, e->device, e->folder, &e->config, e->parameters);
    if (status == TK_OK) status = tk_corpus_load(&e->data, 1, &e->corpus);
    if (status != TK_OK) return status;
    tk_wait wait = {.poll = interrupted_twice};
    return tk_model_evaluate(e->context, &e->config, e->parameters, NULL,
                             tk_corpus_bytes(e->corpus), tk_corpus_size(e->corpus), e->batch, &wait,
                             out_nats);
}

int command_eval(int argc, char **argv) {
    evaluation e = {.batch = 8, .device = "cpu"};
    option items[] = {
        {"model", OPTION_PATH, &e.folder, .help = "folder of the model"},
        {"data", OPTION_PATH, &e.data, .help = "file to measure on"},
        {"batch", OPTION_INT, &e.batch, .help = "sequences at a time", NULL, 1, 1 << 20},
        {"device", OPTION_CHOICE, &e.device, .help = "where to compute", "cpu|emulator|gpu", 0},
        {"threads", OPTION_INT, &e.threads, .help = "threads that compute; 0: all processors", NULL,
         0, 512},
    };
    options set = {"eval", "--model DIR --data FILE [OPTION...]",
                   "Prints the mean loss in nats a byte, then in bits a byte.", items,
                   sizeof items / sizeof items[0]};
    int code = options_parse(&set, argc, argv);
    if (code >= 0) return code;
    if (!e.folder || !e.data) {
        fprintf(stderr,
                "tiki eval: --model and --data are needed; tiki eval --help lists the options\n");
        return 2;
    }
    double nats = 0;
    tk_status status = evaluate(&e, &nats);
    if (status == TK_OK) printf("%.6f nats a byte\n%.6f bits a byte\n", nats, nats / log(2));
    code = status == TK_OK ? 0 : complain_of_error("eval");
    tk_tree_free(e.parameters);
    tk_context_release(e.context);
    tk_corpus_free(e.corpus);
    return code;
}
