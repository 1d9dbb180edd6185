/* A training run's folder: config.json, checkpoints, log.jsonl, loss.svg. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <jansson.h>

#include "tiki/checkpoint.h"
#include "tiki/train.h"

/* DIR/name in `text`. TK_INVALID_ARGUMENT when it does not fit. */
tk_status run_path(char *text, size_t bytes, const char *folder, const char *name);

/* Makes the folders that `folder` lies in; itself it is made with its first checkpoint. */
tk_status run_make_parents(const char *folder);

/* The latest state.json as a JSON object that the caller owns, and its step. */
tk_status run_read_state(const char *folder, json_t **out_state, int64_t *out_step);

/* Writes a checkpoint of the trainer; its state.json is the step and what `record` holds. */
tk_status run_save(const char *folder, const tk_trainer *trainer, json_t *record, int keep);

/* Loads parameters and optimizer state of the latest checkpoint. */
tk_status run_restore(tk_context *context, const char *folder, tk_trainer *trainer, int64_t step);

/* Draws loss.svg from log.jsonl. */
tk_status run_draw(const char *folder);

#endif
