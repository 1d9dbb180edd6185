/* The list of a model's parameters: name, shape, how it starts. Made once, by one function, for
 * making, checking and counting parameters. */
#ifndef NN_MODEL_PARAMS_H
#define NN_MODEL_PARAMS_H

#include "tiki/model.h"

#define TK_PARAMETER_NAME_BYTES 128

typedef enum tk_start {
    TK_START_NORMAL, /* deviation 0.02 */
    TK_START_END,    /* the matrix that ends a block: 0.02 / sqrt(2 layers) */
    TK_START_ONES,
    TK_START_ZEROS
} tk_start;

typedef struct tk_parameter {
    char name[TK_PARAMETER_NAME_BYTES];
    tk_shape shape;
    tk_start start;
} tk_parameter;

/* "transformer.h.3.attn.c_attn.weight", "model.layers.3.mlp.up_proj.weight" */
void tk_parameter_name(char *out_text, tk_model_family family, int64_t layer, const char *name);

/* Calls visit for each parameter in the order of the forward pass, until one call fails. */
tk_status tk_parameters_visit(const tk_model_config *config,
                              tk_status (*visit)(void *arg, const tk_parameter *parameter),
                              void *arg);

#endif
