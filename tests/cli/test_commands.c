/* The command as a user meets it: help, wrong uses, training, generating, measuring. */
#define _GNU_SOURCE
#include "cli/cli_check.h"

#include <jansson.h>
#include <math.h>

static void test_help(void **state) {
    (void)state;
    outcome result;
    RUN(&result, "--help");
    assert_code(&result, 0);
    static const char *const commands[][3] = {
        {"train", "--help"},
        {"generate", "--help"},
        {"eval", "--help"},
        {"info", "--help"},
        {"layout", "--help"},
        {"kernel", "--help"},
        {"emulate", "--help"},
        {"cache", "--help"},
        {"bench", "--help"},
        {"layout", "draw", "--help"},
        {"kernel", "build", "--help"},
        {"kernel", "report", "-h"},
        {"cache", "explain", "--help"},
        {"bench", "kernel", "--help"},
        {"cache", "-h"},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_says(result.out, commands[i][0]);
        outcome help;
        RUN(&help, commands[i][0], commands[i][1], commands[i][2]);
        assert_code(&help, 0);
        assert_says(help.out, "usage: tiki");
        assert_string_equal(help.err, "");
    }
    RUN(&result, "train", "--help");
    const char *const options[] = {
        "--data",       "--eval-data", "--out",     "--model",      "--layers",
        "--heads",      "--dim",       "--context", "--batch",      "--steps",
        "--accumulate", "--lr",        "--warmup",  "--decay",      "--decay-steps",
        "--dtype",      "--dropout",   "--seed",    "--threads",    "--device",
        "--config",     "--resume",    "--keep",    "--eval-every", "--checkpoint-every"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        assert_says(result.out, options[i]);
}

/* The emulator trains too, on the same losses. */
static void test_devices(void **state) {
    (void)state;
    outcome here, far;
    char *folders[] = {strdup(in_folder("on-cpu")), strdup(in_folder("on-emulator"))};
    const char *const devices[] = {"cpu", "emulator"};
    outcome *results[] = {&here, &far};
    for (int i = 0; i < 2; i++) {
        RUN(results[i], "train", "--data", in_folder("data"), "--out", folders[i], "--layers", "1",
            "--heads", "1", "--dim", "8", "--context", "8", "--batch", "1", "--steps", "2",
            "--eval-every", "0", "--device", devices[i]);
        assert_code(results[i], 0);
        free(folders[i]);
    }
    const char *line = strstr(here.out, "step 2/2 loss ");
    assert_non_null(line);
    char loss[20];
    snprintf(loss, sizeof loss, "%.18s", line);
    assert_says(far.out, loss);
    RUN(&far, "train", "--data", in_folder("data"), "--out", in_folder("x"), "--device", "tpu");
    assert_refused(&far, 2, "expected one of cpu|emulator|gpu");
}

/* A model that was trained there writes and is measured there and here alike. */
static void test_models_on_devices(void **state) {
    (void)state;
    outcome here, far;
    char model[512];
    snprintf(model, sizeof model, "%s", in_folder("on-emulator"));
    assert_ok(tk_file_write(in_folder("few"), "the loss of the loss is the loss", 32));
    RUN(&here, "eval", "--model", model, "--data", in_folder("few"), "--batch", "1");
    RUN(&far, "eval", "--model", model, "--data", in_folder("few"), "--batch", "1", "--device",
        "emulator");
    assert_code(&far, 0);
    double nats[] = {strtod(here.out, NULL), strtod(far.out, NULL)};
    assert_true(nats[0] > 1 && fabs(nats[0] - nats[1]) < 1e-4);
    RUN(&here, "generate", "--model", model, "--prompt", "the", "--tokens", "12", "--seed", "5");
    RUN(&far, "generate", "--model", model, "--prompt", "the", "--tokens", "12", "--seed", "5",
        "--device", "emulator");
    assert_code(&far, 0);
    assert_string_equal(far.out, here.out);
    RUN(&far, "eval", "--model", model, "--data", in_folder("few"), "--device", "tpu");
    assert_refused(&far, 2, "expected one of cpu|emulator|gpu");
    RUN(&far, "generate", "--model", model, "--prompt", "the", "--device", "tpu");
    assert_refused(&far, 2, "expected one of cpu|emulator|gpu");
}

static void test_wrong_uses(void **state) {
    (void)state;
    outcome result;
    RUN(&result, "nothing");
    assert_refused(&result, 2, "unknown command \"nothing\"");
    RUN(&result, "train", "--nothing");
    assert_refused(&result, 2, "--nothing");
    RUN(&result, "train", "--out", in_folder("x"));
    assert_refused(&result, 2, "--data is missing");
    RUN(&result, "train", "--data", in_folder("data"));
    assert_refused(&result, 2, "--out is missing");
    RUN(&result, "train", "--data", in_folder("data"), "--out", in_folder("x"), "--decay",
        "cosine");
    assert_refused(&result, 2, "--decay-steps");
    RUN(&result, "train", "--data", in_folder("data"), "--out", in_folder("x"), "--dim", "30");
    assert_refused(&result, 1, "--dim 30 is not a multiple of --heads 4");
    RUN(&result, "train", "--data", in_folder("not-there"), "--out", in_folder("x"));
    assert_refused(&result, 1, "not-there");
    RUN(&result, "train", "--data", in_folder("data"), "--out", in_folder("x"), "--context",
        "5000");
    assert_refused(&result, 1, "bytes of data");
    assert_int_equal(access(in_folder("x"), F_OK), -1);
    RUN(&result, "generate", "--model", in_folder("run"));
    assert_refused(&result, 2, "--prompt");
    RUN(&result, "generate", "--model", in_folder("run"), "--prompt", "");
    assert_refused(&result, 1, "prompt is empty");
    RUN(&result, "generate", "--model", in_folder("not-there"), "--prompt", "a");
    assert_refused(&result, 1, "not-there");
    RUN(&result, "eval", "--model", in_folder("run"));
    assert_refused(&result, 2, "--data");
    RUN(&result, "eval", "--model", in_folder("run"), "--data", in_folder("not-there"));
    assert_refused(&result, 1, "not-there");
}

static void train(outcome *result, const char *out, const char *family) {
    RUN(result, "train", "--data", in_folder("data"), "--out", in_folder(out), "--model", family,
        "--layers", "1", "--heads", "2", "--dim", "32", "--context", "32", "--batch", "8",
        "--steps", "60", "--lr", "1e-2", "--warmup", "5", "--threads", "1", "--eval-every", "20");
}

static void test_train(void **state) {
    (void)state;
    outcome result;
    train(&result, "run", "llama");
    assert_code(&result, 0);
    assert_string_equal(result.err, "");
    assert_says(result.out, "step 1/60 loss 5.");
    assert_says(result.out, "step 60/60 loss ");
    assert_says(result.out, "tokens/s");
    assert_says(result.out, "held out after step 60: ");
    assert_null(strchr(result.out, '\r'));
    const char *const files[] = {
        "run/config.json", "run/model.safetensors", "run/optimizer.safetensors",
        "run/state.json",  "run/log.jsonl",         "run/loss.svg"};
    for (int i = 0; i < 6; i++) assert_int_equal(access(in_folder(files[i]), R_OK), 0);
}

static json_t *json_file(const char *path) {
    json_t *object = json_load_file(path, 0, NULL);
    assert_non_null(object);
    return object;
}

/* state.json: the step, and every option that gives other numbers, the threads among them. */
static void test_state(void **state) {
    (void)state;
    json_t *root = json_file(in_folder("run/state.json")),
           *options = json_object_get(root, "options");
    assert_int_equal(json_integer_value(json_object_get(root, "step")), 60);
    const char *const names[] = {"model", "layers", "heads", "dim",         "context", "batch",
                                 "lr",    "warmup", "decay", "decay-steps", "dtype",   "dropout",
                                 "seed",  "device", "clip",  "accumulate",  "threads"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_non_null(json_object_get(options, names[i]));
    assert_int_equal(json_integer_value(json_object_get(options, "threads")), 1);
    json_decref(root);
}

/* What Hugging Face's readers of both generations look for. */
static void test_config(void **state) {
    (void)state;
    json_t *root = json_file(in_folder("run/config.json"));
    assert_true(json_is_number(json_object_get(root, "rope_theta")));
    assert_string_equal(json_string_value(json_object_get(root, "torch_dtype")), "float32");
    assert_true(json_is_null(json_object_get(root, "bos_token_id")));
    assert_true(json_is_null(json_object_get(root, "eos_token_id")));
    json_decref(root);
    size_t bytes;
    char *model = read_all(in_folder("run/model.safetensors"), &bytes);
    assert_non_null(memmem(model, bytes, "\"format\":\"pt\"", strlen("\"format\":\"pt\"")));
    tk_text_free(model);
}

/* The latest "eval_loss" of a log. */
static double logged_loss(const char *path) {
    double loss = -1;
    char line[1024];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL), *value = json_object_get(object, "eval_loss");
        assert_non_null(object);
        if (value) loss = json_number_value(value);
        json_decref(object);
    }
    fclose(file);
    return loss;
}

/* `tiki eval` of the held-out tenth prints what training measured. */
static void test_eval(void **state) {
    (void)state;
    outcome result;
    size_t bytes;
    char *data = read_all(in_folder("data"), &bytes);
    assert_ok(tk_file_write(in_folder("tenth"), data + bytes - bytes / 10, bytes / 10));
    tk_text_free(data);
    RUN(&result, "eval", "--model", in_folder("run"), "--data", in_folder("tenth"));
    assert_code(&result, 0);
    char *end;
    double nats = strtod(result.out, &end);
    assert_true(!strncmp(end, " nats a byte\n", 13));
    double bits = strtod(end + 13, &end);
    assert_true(!strncmp(end, " bits a byte\n", 13));
    assert_true(fabs(bits - nats / log(2)) < 1e-5);
    assert_true(fabs(logged_loss(in_folder("run/log.jsonl")) - nats) < 1e-4);
}

static void test_generate(void **state) {
    (void)state;
    outcome one, other;
    train(&one, "gpt2", "gpt2");
    assert_code(&one, 0);
    for (int i = 0; i < 2; i++) {
        char model[512];
        snprintf(model, sizeof model, "%s", in_folder(i ? "gpt2" : "run"));
        /* 100 bytes are three times the context of the models */
        RUN(&one, "generate", "--model", model, "--prompt", "the loss", "--tokens", "100", "--seed",
            "5", "--stats");
        assert_code(&one, 0);
        assert_true(!strncmp(one.out, "the loss", 8));
        assert_says(one.err, "tokens/s");
        RUN(&other, "generate", "--model", model, "--prompt", "the loss", "--tokens", "100",
            "--seed", "5");
        assert_string_equal(one.out, other.out);
        RUN(&other, "generate", "--model", model, "--prompt", "the loss", "--tokens", "100",
            "--seed", "6");
        assert_string_not_equal(one.out, other.out);
        RUN(&one, "generate", "--model", model, "--prompt", "the loss", "--tokens", "30",
            "--temperature", "0");
        RUN(&other, "generate", "--model", model, "--prompt", "the loss", "--tokens", "30",
            "--top-k", "1");
        assert_string_equal(one.out, other.out);
        RUN(&one, "generate", "--model", model, "--prompt", "the loss", "--tokens", "0");
        assert_code(&one, 0);
        assert_string_equal(one.out, "the loss\n");
    }
}

static void test_prompt_from_input(void **state) {
    (void)state;
    char command[2048];
    outcome result;
    assert_ok(tk_file_write(in_folder("prompt"), "array and tile", 14));
    snprintf(command, sizeof command,
             "'%s' generate --model '%s' --prompt - --tokens 3 <'%s' >'%s'", getenv("TIKI_BIN"),
             in_folder("run"), in_folder("prompt"), in_folder("out"));
    assert_int_equal(system(command), 0);
    copy_file(in_folder("out"), result.out, sizeof result.out);
    assert_true(!strncmp(result.out, "array and tile", 14));
    assert_int_equal(strlen(result.out), 14 + 3 + 1);
}

/* A prompt longer than the context keeps its end. */
static void test_long_prompt(void **state) {
    (void)state;
    outcome result;
    char prompt[301];
    memset(prompt, 'a', 300);
    prompt[300] = 0;
    RUN(&result, "generate", "--model", in_folder("run"), "--prompt", prompt, "--tokens", "5");
    assert_code(&result, 0);
    assert_int_equal(strlen(result.out), 300 + 5 + 1);
}

/* The text of a model with other tokens would be wrong numbers, not an error, if it were read. */
static void test_other_tokenizers(void **state) {
    (void)state;
    outcome result;
    const char *const names[] = {"run/tokenizer.json", "run/vocab.json"};
    for (int i = 0; i < 2; i++) {
        assert_ok(tk_file_write(in_folder(names[i]), "{}", 2));
        RUN(&result, "generate", "--model", in_folder("run"), "--prompt", "a");
        assert_refused(&result, 1, "the model has a tokenizer");
        RUN(&result, "eval", "--model", in_folder("run"), "--data", in_folder("tenth"));
        assert_refused(&result, 1, "the model has a tokenizer");
        remove(in_folder(names[i]));
    }
}

/* A file of options; the command line wins; unknown names are errors. */
static void test_config_file(void **state) {
    (void)state;
    outcome result;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"data\": [\"%s\"], \"dim\": 16, \"heads\": 2, \"layers\": 1, \"context\": 16, "
             "\"steps\": 9}",
             in_folder("data"));
    assert_ok(tk_file_write(in_folder("options.json"), text, strlen(text)));
    RUN(&result, "train", "--config", in_folder("options.json"), "--out", in_folder("configured"),
        "--steps", "3", "--threads", "1");
    assert_code(&result, 0);
    assert_says(result.out, "step 3/3");
    assert_ok(tk_file_write(in_folder("options.json"), "{\"dimm\": 16}", 12));
    RUN(&result, "train", "--config", in_folder("options.json"), "--out", in_folder("other"));
    assert_refused(&result, 2, "dimm");
}

/* A value of the wrong type: the file, the key, what was given and what was expected. */
static void test_config_types(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"dim\": \"large\"}",
         "options.json: \"dim\" is \"large\", expected an integer from 1 to"},
        {"{\"dim\": 16.5}", "\"dim\" is 16.5, expected an integer from 1 to 1048576"},
        {"{\"heads\": 0}", "\"heads\" is 0, expected an integer from 1 to 65536"},
        {"{\"lr\": [0.1]}", "\"lr\" is [0.10000000000000001], expected a number from 0 to 1000"},
        {"{\"lr\": true}", "\"lr\" is true, expected a number"},
        {"{\"decay\": \"sine\"}", "\"decay\" is \"sine\", expected one of constant|cosine|linear"},
        {"{\"eval-data\": 3}", "\"eval-data\" is 3, expected a path"},
        {"{\"data\": \"text\"}", "\"data\" is \"text\", expected a list of paths"},
        {"{\"data\": [1]}", "\"data\" is [1], expected a list of paths"},
        {"{\"seed\": {\"a\": 1}}", "\"seed\" is {\"a\":1}, expected an integer from 0 to"},
        {"[16]", "options.json: no JSON object"},
        {"{\"dim\": 16, \"dim\": 32}", "options.json"},
        {"{\"dim\": ", "options.json: no JSON object: line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome result;
        assert_ok(tk_file_write(in_folder("options.json"), cases[i][0], strlen(cases[i][0])));
        RUN(&result, "train", "--config", in_folder("options.json"), "--out", in_folder("other"));
        assert_true(result.code == 1 || result.code == 2);
        assert_says(result.err, cases[i][1]);
    }
}

static void test_eval_data(void **state) {
    (void)state;
    outcome result;
    write_text("held-out", 1000, 9);
    RUN(&result, "train", "--data", in_folder("data"), "--eval-data", in_folder("held-out"),
        "--out", in_folder("apart"), "--layers", "1", "--heads", "2", "--dim", "16", "--context",
        "16", "--steps", "2", "--threads", "1");
    assert_code(&result, 0);
    assert_says(result.out, "4000 bytes of 1 file to learn from, 1000 held out");
}

static void test_info(void **state) {
    (void)state;
    outcome result;
    RUN(&result, "info");
    assert_code(&result, 0);
    const char *const words[] = {"tiki ", "cpu ", "gpu ", "blas ", "json ", "zip ", "cache "};
    for (int i = 0; i < 7; i++) assert_says(result.out, words[i]);
}

static int prepare(void **state) {
    if (make_folder(state)) return -1;
    write_text("data", 4000, 1);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),        cmocka_unit_test(test_train),
        cmocka_unit_test(test_devices),     cmocka_unit_test(test_models_on_devices),
        cmocka_unit_test(test_wrong_uses),  cmocka_unit_test(test_state),
        cmocka_unit_test(test_config),      cmocka_unit_test(test_eval),
        cmocka_unit_test(test_generate),    cmocka_unit_test(test_prompt_from_input),
        cmocka_unit_test(test_long_prompt), cmocka_unit_test(test_other_tokenizers),
        cmocka_unit_test(test_config_file), cmocka_unit_test(test_eval_data),
        cmocka_unit_test(test_info),        cmocka_unit_test(test_config_types),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
