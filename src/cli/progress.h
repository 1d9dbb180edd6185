/* The progress of a training run: one line that is rewritten on a terminal, plain lines elsewhere.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "tiki/train.h"

/* How many steps the shown loss is the mean of. */
#define PROGRESS_LOSSES 10

typedef struct progress {
    tk_context *context;
    int64_t first, last; /* steps before this run, and at its end */
    double started, shown;
    double rate;                    /* tokens a second, smoothed */
    double losses[PROGRESS_LOSSES]; /* of the last steps; the line shows their mean */
    double step_started;
    bool terminal;
} progress;

void progress_start(progress *p, tk_context *context, int64_t first, int64_t last);
void progress_begin_step(progress *p);

/* Shows a finished step, if it is time to. */
void progress_step(progress *p, const tk_train_report *report);

/* Ends the line on a terminal, so that other text can follow. */
void progress_break(const progress *p);

/* What takes a while, said on a terminal only; and the line of it wiped. */
void progress_note(const progress *p, const char *text);
void progress_clear(const progress *p);

#endif
