/* `tiki generate`: reads a prompt, then writes token by token with a key-value cache. When the
 * cache is full, the older half of the text is forgotten and the rest read again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"

typedef struct writing {
    const char *folder, *prompt, *device;
    int64_t tokens;
    tk_sampling sampling;
    int64_t seed, threads;
    bool stats;
    tk_context *context;
    tk_model_config config;
    tk_tree *parameters;
    tk_kv_cache *cache;
    unsigned char *text;  /* prompt and what was written */
    int64_t length, read; /* bytes of text; those that the cache has seen, from `forgotten` on */
    int64_t forgotten;
    float *logits;
} writing;

static tk_status no_memory(void) {
    return tk_error_set(TK_OUT_OF_MEMORY, "no memory for the text");
}

/* The prompt's bytes; "-" is standard input. */
static tk_status read_prompt(writing *w) {
    size_t capacity = 4096, used = 0;
    bool from_input = !strcmp(w->prompt, "-");
    if (!from_input) capacity = strlen(w->prompt);
    w->text = malloc(capacity + (size_t)w->tokens + 1);
    if (!w->text) return no_memory();
    if (!from_input) memcpy(w->text, w->prompt, used = capacity);
    while (from_input && !feof(stdin)) {
        if (used == capacity) {
            capacity *= 2;
            unsigned char *grown = realloc(w->text, capacity + (size_t)w->tokens + 1);
            if (!grown) return no_memory();
            w->text = grown;
        }
        used += fread(w->text + used, 1, capacity - used, stdin);
        if (ferror(stdin)) return tk_error_set(TK_IO_ERROR, "standard input cannot be read");
    }
    w->length = (int64_t)used;
    if (w->length == 0)
        return tk_error_set(TK_INVALID_ARGUMENT, "the prompt is empty, expected one byte or more");
    return TK_OK;
}

static tk_status load(writing *w) {
    tk_status status = w->threads ? tk_threads_set((int)w->threads) : TK_OK;
    if (status == TK_OK) status = tk_context_create(NULL, &w->context);
    w->parameters = tk_tree_new();
    if (!w->parameters) return no_memory();
    if (status == TK_OK)
        status = load_byte_model(w->context, w->device, w->folder, &w->config, w->parameters);
    if (status == TK_OK)
        status = tk_kv_cache_create(w->context, w->config.layers, w->config.context, &w->cache);
    w->logits = malloc((size_t)(status == TK_OK ? w->config.vocab : 1) * sizeof *w->logits);
    if (!w->logits) return no_memory();
    return status == TK_OK ? read_prompt(w) : status;
}

/* Puts bytes that the cache has not seen through the model; leaves the logits of the last one. */
static tk_status read_on(writing *w) {
    int64_t fresh = w->length - w->forgotten - w->read;
    if (w->read + fresh > w->config.context) { /* keep the newer half */
        w->forgotten = w->length - (w->config.context + 1) / 2;
        w->read = 0;
        fresh = w->length - w->forgotten;
        tk_status status = tk_kv_cache_trim(w->cache, 0);
        if (status != TK_OK) return status;
    }
    int32_t *tokens = malloc((size_t)fresh * sizeof *tokens);
    if (!tokens) return no_memory();
    for (int64_t i = 0; i < fresh; i++) tokens[i] = w->text[w->forgotten + w->read + i];
    tk_scope scope = tk_scope_open(w->context);
    tk_model_run run = {.cache = w->cache};
    tk_array logits =
        tk_model_forward(&w->config, w->parameters,
                         tk_from_data(w->context, tokens, TK_SHAPE(1, fresh), TK_INT32), &run);
    tk_array last =
        tk_slice(logits, TK_AXES(0, fresh - 1, 0), TK_AXES(1, fresh, w->config.vocab), TK_ALL_AXES);
    tk_array kept = tk_keep(last);
    tk_scope_close(scope);
    free(tokens);
    tk_status status = tk_copy_out(kept, w->logits, (size_t)w->config.vocab * sizeof *w->logits);
    tk_release(kept);
    w->read += fresh;
    return status == TK_OK ? tk_kv_cache_advance(w->cache, fresh) : status;
}

static void put_byte(unsigned char byte) {
    putchar(byte);
    fflush(stdout);
}

static tk_status write_on(writing *w) {
    fwrite(w->text, 1, (size_t)w->length, stdout);
    fflush(stdout);
    double begin = now(), prompt_done = begin;
    int64_t prompt = w->length, written = 0;
    tk_status status = TK_OK;
    for (; written < w->tokens && status == TK_OK && !interrupts(); written++) {
        int64_t token = 0;
        status = read_on(w);
        if (written == 0) prompt_done = now();
        if (status == TK_OK)
            status =
                tk_sample(w->logits, w->config.vocab, &w->sampling, (uint64_t)w->length, &token);
        if (status != TK_OK) break;
        w->text[w->length++] = (unsigned char)token;
        put_byte((unsigned char)token);
    }
    putchar('\n');
    fflush(stdout);
    if (w->stats && written > 1)
        fprintf(stderr, "%lld bytes read in %.3f s, %lld written in %.3f s: %.1f tokens/s\n",
                (long long)prompt, prompt_done - begin, (long long)written, now() - prompt_done,
                (double)(written - 1) / (now() - prompt_done));
    return status;
}

static void end(writing *w) {
    tk_kv_cache_free(w->cache);
    tk_tree_free(w->parameters);
    tk_context_release(w->context);
    free(w->text);
    free(w->logits);
}

int command_generate(int argc, char **argv) {
    writing w = {.tokens = 200, .device = "cpu", .sampling = {.temperature = 0.8, .top_p = 1}};
    option items[] = {
        {"model", OPTION_PATH, &w.folder, .help = "folder of the model"},
        {"prompt", OPTION_TEXT, &w.prompt, .help = "text to go on from; - reads standard input"},
        {"tokens", OPTION_INT, &w.tokens, .help = "bytes to write", NULL, 0, 1e12},
        {"temperature", OPTION_REAL, &w.sampling.temperature,
         .help = "0 takes the most likely byte", NULL, 0, 1e6},
        {"top-k", OPTION_INT, &w.sampling.top_k, .help = "choose among so many; 0: all", NULL, 0,
         1e9},
        {"top-p", OPTION_REAL, &w.sampling.top_p,
         .help = "choose among the likeliest with this share", NULL, 1e-9, 1},
        {"seed", OPTION_INT, &w.seed, .help = "of the choices", NULL, 0, 9e15},
        {"device", OPTION_CHOICE, &w.device, .help = "where to compute", "cpu|emulator|gpu", 0},
        {"threads", OPTION_INT, &w.threads, .help = "threads that compute; 0: all processors", NULL,
         0, 512},
        {"stats", OPTION_FLAG, &w.stats, .help = "print the speed to standard error"},
    };
    options set = {"generate", "--model DIR --prompt TEXT|- [OPTION...]",
                   "Lets a model go on from a prompt.", items, sizeof items / sizeof items[0]};
    int code = options_parse(&set, argc, argv);
    if (code >= 0) return code;
    if (!w.folder || !w.prompt) {
        fprintf(stderr, "tiki generate: --model and --prompt are needed; tiki generate --help "
                        "lists the options\n");
        return 2;
    }
    w.sampling.seed = (uint64_t)w.seed;
    catch_interrupts();
    tk_status status = load(&w);
    if (status == TK_OK) status = write_on(&w);
    code = status != TK_OK ? complain_of_error("generate") : interrupts() ? interrupt_code() : 0;
    end(&w);
    return code;
}
