/* The table of update rules. */
#ifndef NN_OPTIM_RULES_H
#define NN_OPTIM_RULES_H

#include "tiki/optim.h"

#define TK_MAX_STATES 4

/* One parameter's update. */
typedef struct tk_update {
    tk_context *context;
    const tk_optimizer_options *options;
    tk_array parameter, gradient;
    tk_array states[TK_MAX_STATES]; /* before; the rule replaces them */
    tk_array rate;                  /* scalar of the gradient's dtype */
    tk_array step;                  /* float32 scalar: 1 for the first step */
} tk_update;

typedef struct tk_rule {
    const char *name;
    tk_array (*apply)(tk_update *update); /* gives the next parameter */
    const char *states[TK_MAX_STATES];    /* names; NULL ends the list */
    tk_optimizer_options defaults;
} tk_rule;

extern const tk_rule tk_rules[TK_OPTIMIZER_COUNT];

#endif
