/* `tiki train`. The options are listed once below. Those that give other numbers are fixed in
 * state.json, others are remembered there, so that --resume needs nothing but the folder. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/run.h"

typedef struct settings {
    text_list data;
    const char *eval_data, *out, *model, *decay, *dtype, *device, *config, *optimizer;
    int64_t layers, heads, kv_heads, dim, context, batch, accumulate, steps, warmup, decay_steps,
        seed, threads, checkpoint_every, keep, eval_every;
    double lr, weight_decay, clip, dropout;
    bool resume;
} settings;

typedef struct session {
    settings s;
    options set;
    json_t *config, *state; /* texts of options live here */
    json_t *record;         /* state.json but for the step */
    tk_context *context;
    tk_corpus *corpus, *held_out_corpus;
    const unsigned char *held_out;
    int64_t held_out_size, train_size, step;
    tk_train_options options;
    tk_trainer *trainer;
    tk_run_log *log;
    progress progress;
} session;

#define LIMIT 9007199254740992.0 /* 2^53: integers that a JSON number keeps */

static const settings defaults = {
    .model = "llama",
    .decay = "constant",
    .dtype = "float32",
    .device = "cpu",
    .optimizer = "adamw",
    .layers = 4,
    .heads = 4,
    .dim = 128,
    .context = 128,
    .batch = 8,
    .accumulate = 1,
    .steps = 1000,
    .lr = 1e-3,
    .warmup = 50,
    .weight_decay = 0.1,
    .clip = 1,
    .checkpoint_every = 200,
    .keep = 2,
};

/* Fills `items` for the settings; gives their number. */
static size_t list_options(settings *s, option *items) {
    const option list[] = {
        {"data", OPTION_LIST, &s->data, .help = "files and folders to learn from",
         .role = OPTION_REMEMBERED},
        {"eval-data", OPTION_PATH, &s->eval_data,
         .help = "file to measure on (default: the last tenth of the data)",
         .role = OPTION_REMEMBERED},
        {"out", OPTION_PATH, &s->out, .help = "folder of the run"},
        {"model", OPTION_CHOICE, &s->model, .help = "family of the model", "gpt2|llama",
         .role = OPTION_FIXED},
        {"layers", OPTION_INT, &s->layers, .help = "layers", NULL, 1, 65536, .role = OPTION_FIXED},
        {"heads", OPTION_INT, &s->heads, .help = "attention heads", NULL, 1, 65536,
         .role = OPTION_FIXED},
        {"kv-heads", OPTION_INT, &s->kv_heads,
         .help = "heads of keys and values; 0: as many as heads", NULL, 0, 65536,
         .role = OPTION_FIXED},
        {"dim", OPTION_INT, &s->dim, .help = "width of the model", NULL, 1, 1048576,
         .role = OPTION_FIXED},
        {"context", OPTION_INT, &s->context, .help = "bytes of a sequence", NULL, 1, 1 << 24,
         .role = OPTION_FIXED},
        {"batch", OPTION_INT, &s->batch, .help = "sequences of a micro-batch", NULL, 1, 1 << 20,
         .role = OPTION_FIXED},
        {"accumulate", OPTION_INT, &s->accumulate, .help = "micro-batches of a step", NULL, 1,
         1 << 20, .role = OPTION_FIXED},
        {"steps", OPTION_INT, &s->steps, .help = "train until this step", NULL, 1, LIMIT,
         .role = OPTION_REMEMBERED},
        {"optimizer", OPTION_CHOICE, &s->optimizer, .help = "update rule",
         "sgd|adamw|lion|adafactor|muon", .role = OPTION_FIXED},
        {"lr", OPTION_REAL, &s->lr, .help = "highest learning rate", NULL, 0, 1000,
         .role = OPTION_FIXED},
        {"warmup", OPTION_INT, &s->warmup, .help = "steps from 0 to the highest rate", NULL, 0,
         LIMIT, .role = OPTION_FIXED},
        {"decay", OPTION_CHOICE, &s->decay, .help = "of the learning rate, to a tenth",
         "constant|cosine|linear", .role = OPTION_FIXED},
        {"decay-steps", OPTION_INT, &s->decay_steps, .help = "steps that the decay takes", NULL, 0,
         LIMIT, .role = OPTION_FIXED},
        {"weight-decay", OPTION_REAL, &s->weight_decay, .help = "pull of parameters to 0", NULL, 0,
         1000, .role = OPTION_FIXED},
        {"clip", OPTION_REAL, &s->clip, .help = "largest norm of the gradients; 0: no limit", NULL,
         0, 1e30, .role = OPTION_FIXED},
        {"dtype", OPTION_CHOICE, &s->dtype,
         .help = "of activations and products; parameters stay float32", "float32|bfloat16|float16",
         .role = OPTION_FIXED},
        {"dropout", OPTION_REAL, &s->dropout, .help = "share of activations zeroed", NULL, 0, 0.999,
         .role = OPTION_FIXED},
        {"seed", OPTION_INT, &s->seed, .help = "of parameters, data order and dropout", NULL, 0,
         LIMIT, .role = OPTION_FIXED},
        {"threads", OPTION_INT, &s->threads, .help = "threads that compute; 0: all processors",
         NULL, 0, 512, .role = OPTION_FIXED},
        {"device", OPTION_CHOICE, &s->device, .help = "where to compute", "cpu|emulator|gpu",
         .role = OPTION_FIXED},
        {"config", OPTION_PATH, &s->config,
         .help = "JSON file with options of these names; the command line wins"},
        {"resume", OPTION_FLAG, &s->resume, .help = "go on from the latest checkpoint in --out"},
        {"checkpoint-every", OPTION_INT, &s->checkpoint_every, .help = "steps between checkpoints",
         NULL, 1, LIMIT, .role = OPTION_REMEMBERED},
        {"keep", OPTION_INT, &s->keep, .help = "newest checkpoints to keep; 0: all", NULL, 0,
         1 << 20, .role = OPTION_REMEMBERED},
        {"eval-every", OPTION_INT, &s->eval_every,
         .help = "steps between measurements; 0: at the end only", NULL, 0, LIMIT,
         .role = OPTION_REMEMBERED},
    };
    memcpy(items, list, sizeof list);
    return sizeof list / sizeof list[0];
}

static int usage(const char *message) {
    fprintf(stderr, "tiki train: %s; tiki train --help lists the options\n", message);
    return 2;
}

/* ---- options ---- */

static bool read_config_file(session *w) {
    char *text;
    size_t bytes;
    if (tk_file_read(w->s.config, &text, &bytes) != TK_OK) return complain_of_error("train") == 0;
    json_error_t error;
    w->config = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    tk_text_free(text);
    if (json_is_object(w->config)) return options_from_json(&w->set, w->config, w->s.config, false);
    fprintf(stderr, "tiki train: %s: no JSON object: line %d: %s\n", w->s.config, error.line,
            error.text);
    return false;
}

static int read_resumed(session *w) {
    if (run_read_state(w->s.out, &w->state, &w->step) != TK_OK) return complain_of_error("train");
    json_t *fixed = json_object_get(w->state, "options"),
           *remembered = json_object_get(w->state, "remembered");
    if (!json_is_object(fixed) || !json_is_object(remembered))
        return usage("state.json of the run has no options");
    return options_from_json(&w->set, fixed, "state.json", true) &&
                   options_from_json(&w->set, remembered, "state.json", false)
               ? -1
               : 2;
}

static int check_new_run(session *w) {
    tk_status status = tk_checkpoint_latest(w->s.out, NULL, NULL);
    if (status == TK_OK)
        return usage("--out holds a run already: give --resume, or another folder");
    return status == TK_NOT_FOUND ? -1 : complain_of_error("train");
}

static int check_settings(session *w) {
    settings *s = &w->s;
    if (!s->out) return usage("--out is missing");
    if (s->threads == 0) s->threads = tk_threads_count();
    int code = s->resume ? read_resumed(w) : check_new_run(w);
    if (code >= 0) return code;
    if (s->data.count == 0) return usage("--data is missing");
    if (strcmp(s->decay, "constant") != 0 && s->decay_steps == 0)
        return usage("--decay needs --decay-steps");
    if (s->steps < w->step) return usage("the run has taken more than --steps already");
    return -1;
}

static int parse(session *w, option *items, int argc, char **argv) {
    w->s = defaults;
    w->set = (options){"train", "--data FILE_OR_DIR... --out DIR [OPTION...]",
                       "Trains a language model on bytes: a byte is a token.", items,
                       list_options(&w->s, items)};
    int code = options_parse(&w->set, argc, argv);
    if (code >= 0) return code;
    if (w->s.config && !read_config_file(w)) return 2;
    return check_settings(w);
}

/* ---- preparing ---- */

static tk_status load_data(session *w) {
    tk_status status = tk_corpus_load(w->s.data.items, w->s.data.count, &w->corpus);
    if (status != TK_OK) return status;
    const unsigned char *bytes = tk_corpus_bytes(w->corpus);
    int64_t size = tk_corpus_size(w->corpus);
    if (size == 0)
        return tk_error_set(TK_INVALID_ARGUMENT, "%s%s: no bytes to learn from", w->s.data.items[0],
                            w->s.data.count > 1 ? " and the other paths of --data" : "");
    w->train_size = size;
    if (w->s.eval_data) {
        status = tk_corpus_load(&w->s.eval_data, 1, &w->held_out_corpus);
        if (status != TK_OK) return status;
        w->held_out = tk_corpus_bytes(w->held_out_corpus);
        w->held_out_size = tk_corpus_size(w->held_out_corpus);
    } else {
        w->train_size = size - size / 10;
        w->held_out = bytes + w->train_size;
        w->held_out_size = size / 10;
    }
    if (w->held_out_size < 2)
        return tk_error_set(TK_INVALID_ARGUMENT, "%lld bytes held out, expected 2 or more",
                            (long long)w->held_out_size);
    return TK_OK;
}

/* What state.json says of the data: its fingerprint, and what of it is learned from. */
static json_t *describe_data(const session *w) {
    char data[32], held_out[32] = "the last tenth";
    snprintf(data, sizeof data, "%016" PRIx64, tk_corpus_fingerprint(w->corpus));
    if (w->held_out_corpus)
        snprintf(held_out, sizeof held_out, "%016" PRIx64,
                 tk_corpus_fingerprint(w->held_out_corpus));
    return json_pack("{s:s, s:I, s:s}", "fingerprint", data, "bytes_to_learn_from",
                     (json_int_t)w->train_size, "held_out", held_out);
}

static tk_status describe_run(session *w) {
    w->record = json_pack("{s:o, s:o, s:o}", "data", describe_data(w), "options",
                          options_to_json(&w->set, OPTION_FIXED), "remembered",
                          options_to_json(&w->set, OPTION_REMEMBERED));
    if (!w->record) return tk_error_set(TK_OUT_OF_MEMORY, "no memory for state.json");
    if (!w->s.resume ||
        json_equal(json_object_get(w->record, "data"), json_object_get(w->state, "data")))
        return TK_OK;
    return tk_error_set(TK_INVALID_ARGUMENT,
                        "the data is not what the run was started with: --data or --eval-data "
                        "contradicts state.json, or a file has changed");
}

static tk_status make_options(session *w) {
    const settings *s = &w->s;
    tk_model_family family = strcmp(s->model, "gpt2") ? TK_MODEL_LLAMA : TK_MODEL_GPT2;
    tk_model_config model = tk_model_config_make(family, s->layers, s->heads, s->dim, s->context);
    if (s->kv_heads) model.kv_heads = s->kv_heads;
    model.dropout = s->dropout;
    if (family == TK_MODEL_LLAMA && s->dim % s->heads == 0 && s->dim / s->heads % 2)
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "--dim %lld / --heads %lld is %lld, expected an even number",
                            (long long)s->dim, (long long)s->heads, (long long)(s->dim / s->heads));
    if (s->kv_heads && s->heads % s->kv_heads)
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "--heads %lld is not a multiple of --kv-heads %lld",
                            (long long)s->heads, (long long)s->kv_heads);
    if (s->dim % s->heads)
        return tk_error_set(TK_INVALID_ARGUMENT, "--dim %lld is not a multiple of --heads %lld",
                            (long long)s->dim, (long long)s->heads);
    w->options = tk_train_defaults(&model);
    tk_optimizer_kind kind;
    tk_status status = tk_optimizer_find(s->optimizer, &kind);
    if (status == TK_OK) status = tk_dtype_parse(s->dtype, &w->options.dtype);
    if (status != TK_OK) return status;
    if (kind != TK_OPTIMIZER_ADAMW) w->options.optimizer = tk_optimizer_defaults(kind);
    w->options.optimizer.relative_step = false; /* Adafactor: --lr counts */
    w->options.optimizer.learning_rate = s->lr;
    w->options.optimizer.weight_decay = s->weight_decay;
    w->options.batch = s->batch;
    w->options.accumulate = s->accumulate;
    w->options.warmup = s->warmup;
    w->options.decay = !strcmp(s->decay, "cosine")   ? TK_DECAY_COSINE
                       : !strcmp(s->decay, "linear") ? TK_DECAY_LINEAR
                                                     : TK_DECAY_CONSTANT;
    w->options.decay_steps = s->decay_steps;
    w->options.clip = s->clip;
    w->options.seed = (uint64_t)s->seed;
    return TK_OK;
}

static tk_status open_folder(session *w) {
    char path[4096];
    tk_status status = TK_OK;
    if (!w->s.resume) status = run_make_parents(w->s.out);
    if (!w->s.resume && status == TK_OK) status = run_save(w->s.out, w->trainer, w->record, 0);
    if (status == TK_OK) status = run_path(path, sizeof path, w->s.out, "config.json");
    if (status == TK_OK) status = tk_model_config_save(path, &w->options.model);
    if (status == TK_OK) status = run_path(path, sizeof path, w->s.out, "log.jsonl");
    return status == TK_OK ? tk_run_log_open(path, w->step, &w->log) : status;
}

static tk_status prepare(session *w) {
    tk_status status = tk_threads_set((int)w->s.threads);
    if (status == TK_OK) status = load_data(w);
    if (status == TK_OK) status = describe_run(w);
    if (status == TK_OK) status = make_options(w);
    if (status == TK_OK) status = tk_context_create(NULL, &w->context);
    if (status == TK_OK) status = use_device(w->context, w->s.device);
    if (status == TK_OK)
        status = tk_trainer_create(w->context, &w->options, tk_corpus_bytes(w->corpus),
                                   w->train_size, &w->trainer);
    if (status == TK_OK && w->s.resume)
        status = run_restore(w->context, w->s.out, w->trainer, w->step);
    return status == TK_OK ? open_folder(w) : status;
}

static void describe(const session *w) {
    printf("%lld bytes of %lld file%s to learn from, %lld held out; %s of %lld parameters; %lld "
           "threads\n",
           (long long)w->train_size, (long long)tk_corpus_files(w->corpus),
           tk_corpus_files(w->corpus) == 1 ? "" : "s", (long long)w->held_out_size, w->s.model,
           (long long)tk_tree_size(tk_trainer_parameters(w->trainer)), (long long)w->s.threads);
    if (w->s.resume && w->step >= w->s.steps)
        printf("step %lld of %lld is done already; a larger --steps goes on\n", (long long)w->step,
               (long long)w->s.steps);
    else if (w->s.resume)
        printf("going on after step %lld\n", (long long)w->step);
    printf("the loss shown is the mean of the last %d steps; every step is in %s/log.jsonl\n",
           PROGRESS_LOSSES, w->s.out);
    fflush(stdout);
}

/* ---- running ---- */

static tk_status log_line(const session *w, json_t *line) {
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(line);
    if (!text) return tk_error_set(TK_OUT_OF_MEMORY, "no memory for a line of the log");
    tk_status status = tk_run_log_append(w->log, text);
    free(text);
    return status;
}

static tk_status log_step(const session *w, const tk_train_report *r) {
    return log_line(w, json_pack("{s:I, s:f, s:f, s:f, s:I, s:f}", "step", (json_int_t)r->step,
                                 "loss", r->loss, "norm", r->norm, "lr", r->rate, "tokens",
                                 (json_int_t)r->tokens, "tokens_per_second",
                                 (double)r->tokens / (now() - w->progress.step_started)));
}

static tk_status measure(const session *w) {
    double nats = 0;
    tk_model_run run = {.cast = w->options.dtype != TK_FLOAT32, .dtype = w->options.dtype};
    tk_wait wait = {.poll = interrupted};
    progress_break(&w->progress);
    progress_note(&w->progress, "measuring on the held-out data ...");
    tk_status status =
        tk_model_evaluate(w->context, &w->options.model, tk_trainer_parameters(w->trainer), &run,
                          w->held_out, w->held_out_size, w->s.batch, &wait, &nats);
    progress_clear(&w->progress);
    if (status != TK_OK) return status;
    int64_t step = tk_trainer_steps(w->trainer);
    printf("held out after step %lld: %.4f nats a byte, %.4f bits a byte\n", (long long)step, nats,
           nats / log(2));
    return log_line(w, json_pack("{s:I, s:f, s:f}", "step", (json_int_t)step, "eval_loss", nats,
                                 "eval_bits_per_byte", nats / log(2)));
}

static tk_status save(const session *w) {
    tk_status status = tk_run_log_sync(w->log);
    if (status == TK_OK) status = run_save(w->s.out, w->trainer, w->record, (int)w->s.keep);
    return status == TK_OK ? run_draw(w->s.out) : status;
}

static tk_status train_step(session *w) {
    tk_train_report report;
    tk_wait wait = {.poll = interrupted_twice};
    progress_begin_step(&w->progress);
    tk_status status = tk_trainer_step(w->trainer, &wait, &report);
    if (status == TK_OK) status = log_step(w, &report);
    if (status != TK_OK) return status;
    progress_step(&w->progress, &report);
    bool last = report.step == w->s.steps;
    if (last || (w->s.eval_every && report.step % w->s.eval_every == 0)) status = measure(w);
    if (status == TK_INTERRUPTED) status = TK_OK;
    if (status == TK_OK && (last || interrupts() || report.step % w->s.checkpoint_every == 0))
        status = save(w);
    return status;
}

static int run(session *w) {
    describe(w);
    catch_interrupts();
    progress_start(&w->progress, w->context, w->step, w->s.steps);
    tk_status status = TK_OK;
    while (status == TK_OK && tk_trainer_steps(w->trainer) < w->s.steps && !interrupts())
        status = train_step(w);
    if (status == TK_OK && interrupts()) {
        progress_break(&w->progress);
        printf("stopped after step %lld, which is saved; --resume goes on\n",
               (long long)tk_trainer_steps(w->trainer));
        return interrupt_code();
    }
    if (status == TK_INTERRUPTED) {
        progress_break(&w->progress);
        fprintf(stderr, "tiki train: stopped within a step; the latest checkpoint is whole\n");
        return interrupt_code();
    }
    if (status == TK_NAN_TRAPPED) { /* the step was not taken: what came before is worth keeping */
        progress_break(&w->progress);
        complain_of_error("train");
        if (save(w) != TK_OK) return complain_of_error("train");
        fprintf(stderr, "tiki train: step %lld is saved\n",
                (long long)tk_trainer_steps(w->trainer));
        return 1;
    }
    if (status != TK_OK) return complain_of_error("train");
    printf("the model is in %s: tiki generate --model %s --prompt TEXT\n", w->s.out, w->s.out);
    return 0;
}

static void end(session *w) {
    tk_run_log_close(w->log);
    tk_trainer_free(w->trainer);
    tk_context_release(w->context);
    tk_corpus_free(w->corpus);
    tk_corpus_free(w->held_out_corpus);
    json_decref(w->config);
    json_decref(w->state);
    json_decref(w->record);
    options_free(&w->set);
}

int command_train(int argc, char **argv) {
    option items[40];
    session w = {0};
    int code = parse(&w, items, argc, argv);
    if (code < 0) code = prepare(&w) == TK_OK ? run(&w) : complain_of_error("train");
    end(&w);
    return code;
}
