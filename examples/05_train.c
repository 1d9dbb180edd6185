/* Training a language model: a byte-level Llama of 50,000 parameters learns a rhyme by heart in a
 * second or two. `tiki train` is this with files, checkpoints and a progress bar. */
#include <stdio.h>
#include <string.h>
#include <tiki/train.h>

static const char rhyme[] = "Twinkle, twinkle, little star, how I wonder what you are! "
                            "Up above the world so high, like a diamond in the sky. "
                            "Twinkle, twinkle, little star, how I wonder what you are! "
                            "Up above the world so high, like a diamond in the sky. ";

static tk_status train(tk_trainer *trainer) {
    tk_train_report report = {0};
    tk_status status = TK_OK;
    double first = 0;
    for (int step = 0; status == TK_OK && step < 300; step++) {
        status = tk_trainer_step(trainer, NULL, &report);
        if (step == 0) first = report.loss;
    }
    if (status == TK_OK)
        printf("loss below 6 nats a byte at first: %s; below 0.2 at the end: %s\n",
               first < 6 ? "yes" : "no", report.loss < 0.2 ? "yes" : "no");
    return status;
}

static tk_status recite(tk_context *ctx, const tk_model_config *config, const tk_tree *parameters) {
    int32_t text[64];
    int64_t length = (int64_t)strlen("Twinkle,");
    for (int64_t i = 0; i < length; i++) text[i] = (unsigned char)rhyme[i];
    tk_status status = TK_OK;
    while (status == TK_OK && length < 58) {
        float logits[256];
        tk_scope scope = tk_scope_open(ctx);
        int64_t from = length > config->context ? length - config->context : 0;
        tk_array tokens = tk_from_data(ctx, text + from, TK_SHAPE(1, length - from), TK_INT32);
        tk_array all = tk_model_forward(config, parameters, tokens, NULL);
        tk_array last = tk_slice(all, TK_AXES(0, -1, 0), TK_AXES(1, length, 256), TK_ALL_AXES);
        status = tk_copy_out(last, logits, sizeof logits);
        tk_scope_close(scope);
        tk_sampling greedy = {.top_p = 1};
        int64_t next = 0;
        if (status == TK_OK) status = tk_sample(logits, 256, &greedy, 0, &next);
        text[length++] = (int32_t)next;
    }
    for (int64_t i = 0; status == TK_OK && i < length; i++) putchar(text[i]);
    putchar('\n');
    return status;
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) return 1;

    tk_model_config config = tk_model_config_make(TK_MODEL_LLAMA, 2, 4, 48, 64);
    tk_train_options options = tk_train_defaults(&config);
    options.optimizer.learning_rate = 5e-3;
    options.warmup = 10;
    options.batch = 4;

    tk_trainer *trainer = NULL;
    tk_status status =
        tk_trainer_create(ctx, &options, (const unsigned char *)rhyme, sizeof rhyme - 1, &trainer);
    if (status == TK_OK) status = train(trainer);
    if (status == TK_OK) status = recite(ctx, &config, tk_trainer_parameters(trainer));
    if (status != TK_OK) printf("%s\n", tk_error_message());

    tk_trainer_free(trainer);
    tk_context_release(ctx);
    return status != TK_OK;
}
