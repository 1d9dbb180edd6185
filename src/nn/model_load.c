/* A model from its folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model_params.h"
#include "nn/need.h"
#include "tiki/model.h"

typedef struct matching {
    const tk_tree *files;
    tk_tree *parameters;
    const char *prefix; /* that files of this family may lack */
} matching;

static tk_status match_one(void *arg, const tk_parameter *parameter) {
    const matching *m = arg;
    size_t at = tk_tree_find(m->files, parameter->name), length = strlen(m->prefix);
    if (at == tk_tree_count(m->files) && !strncmp(parameter->name, m->prefix, length))
        at = tk_tree_find(m->files, parameter->name + length);
    if (at == tk_tree_count(m->files))
        return tk_error_set(TK_NOT_FOUND, "the files have no parameter \"%s\"", parameter->name);
    return tk_tree_set(m->parameters, parameter->name, tk_tree_at(m->files, at));
}

tk_status tk_model_load(tk_context *context, const char *folder, tk_model_config *out_config,
                        tk_tree *parameters) {
    NN_NEED(context);
    NN_NEED(folder);
    NN_NEED(out_config);
    NN_NEED(parameters);
    size_t bytes = strlen(folder) + sizeof "/config.json";
    char *path = malloc(bytes);
    tk_tree *files = tk_tree_new();
    tk_status status = TK_OK;
    if (!path || !files) status = tk_error_set(TK_OUT_OF_MEMORY, "no memory to load %s", folder);
    if (status == TK_OK) {
        snprintf(path, bytes, "%s/config.json", folder);
        status = tk_model_config_load(path, out_config);
    }
    if (status == TK_OK) status = tk_safetensors_load(context, folder, files, NULL);
    matching m = {files, parameters,
                  out_config->family == TK_MODEL_GPT2 ? "transformer." : "model."};
    if (status == TK_OK) status = tk_parameters_visit(out_config, match_one, &m);
    if (status == TK_OK) status = tk_model_check(out_config, parameters);
    tk_tree_free(files);
    free(path);
    return status;
}
