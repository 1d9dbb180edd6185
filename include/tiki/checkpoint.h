/* Checkpoints of a training run, and its log: files that change together or not at all.
 *
 * A run has a folder:
 *
 *     DIR/step-40/                model.safetensors, optimizer.safetensors, state.json, ...
 *     DIR/step-20/                the one before
 *     DIR/latest                  -> step-40, the only name that is ever replaced
 *     DIR/model.safetensors       -> latest/model.safetensors
 *     DIR/optimizer.safetensors   -> latest/optimizer.safetensors
 *     DIR/state.json              -> latest/state.json
 *
 * A checkpoint is written into a folder under a temporary name, synced and renamed to step-N; then
 * the link `latest` is replaced by one rename, so every name in DIR changes at once. A crash at any
 * moment leaves the old checkpoint or the new one, whole; what it leaves under temporary names is
 * removed by the next begin.
 *
 * Rejected: writing over the files one by one (a crash between two leaves a model of one step with
 * the optimizer of another), and one archive for all (other programs could not open the model). */
#ifndef TIKI_CHECKPOINT_H
#define TIKI_CHECKPOINT_H

#include <stdint.h>

#include "tiki/api.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

/* A checkpoint being written. Belongs to one thread at a time. */
typedef struct tk_checkpoint_writer tk_checkpoint_writer;

/* Starts the checkpoint of a step, 0 or more: makes `folder` if it is not there, removes temporary
 * files of earlier crashes, and makes an empty folder for the files. TK_INVALID_ARGUMENT when a
 * name that must be a link is something else; TK_IO_ERROR, also when another process is writing a
 * checkpoint there. */
TK_API tk_status tk_checkpoint_begin(const char *folder, int64_t step,
                                     tk_checkpoint_writer **out_checkpoint);

/* Where to write the files: at least model.safetensors, optimizer.safetensors and state.json, a
 * JSON object whose "step" is the step. Borrowed until commit or abandon. */
TK_API const char *tk_checkpoint_path(const tk_checkpoint_writer *checkpoint);

/* Checks the files, makes them the latest checkpoint, then removes all but the `keep` newest ones
 * (0: keeps all) and those of later steps, which a run that was resumed from an earlier one left.
 * Frees `checkpoint` in any case. TK_FORMAT_ERROR or TK_NOT_FOUND when files are missing or wrong,
 * TK_IO_ERROR when a step failed; the old checkpoint is then still the latest. Where only removing
 * old ones failed, the message says that the new one is in place. */
TK_API tk_status tk_checkpoint_commit(tk_checkpoint_writer *checkpoint, int keep);

/* Removes what was written and frees `checkpoint`; NULL is allowed. */
TK_API void tk_checkpoint_abandon(tk_checkpoint_writer *checkpoint);

/* Finds the latest checkpoint of a run and checks it: the three files are there, the safetensors
 * files have the length that their headers say, state.json has the step of the folder's name.
 * Either result may be NULL; *out_path ("DIR/step-40") is freed with tk_text_free (array.h).
 * TK_NOT_FOUND when the folder has no checkpoint, TK_FORMAT_ERROR when it is damaged. */
TK_API tk_status tk_checkpoint_latest(const char *folder, int64_t *out_step, char **out_path);

/* ---- the log: one JSON object a line ---- */

/* An open log. Belongs to one thread at a time, and to one process: while it is open, opening the
 * same file elsewhere gives TK_IO_ERROR, so two runs cannot write into one folder. */
typedef struct tk_run_log tk_run_log;

/* Opens a log for appending and makes it if it is not there. It is first cut before the first line
 * whose "step" is above `last_step`, and a last line that a crash left incomplete is dropped. Other
 * lines, with or without a step, stay. `last_step` below 0 empties it. The cut is one system call,
 * and cutting again gives the same. */
TK_API tk_status tk_run_log_open(const char *path, int64_t last_step, tk_run_log **out_log);

/* Appends a line, given without its end, in one write. TK_INVALID_ARGUMENT when it is no JSON
 * object on one line. What a failed write left of a line is taken back. */
TK_API tk_status tk_run_log_append(tk_run_log *log, const char *line);

/* Waits until all lines are on disk; to be called before the checkpoint that they belong to. */
TK_API tk_status tk_run_log_sync(tk_run_log *log);

/* Closes the file; NULL is allowed. */
TK_API void tk_run_log_close(tk_run_log *log);

TK_END_DECLS

#endif
