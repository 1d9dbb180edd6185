/* How many workers a user has at once, over all processes of the machine: a worker holds the lock
 * of a file (flock) from its start to its end, however it ends, and who finds no file free waits.
 *
 * The files are in $XDG_RUNTIME_DIR/tiki, without that variable in /tmp/tiki-<user>. There are as
 * many as TIKI_CUTE_WORKERS says, else as the machine has processors and at least
 * TK_CUTE_MOST_WORKERS, and never more than 64. Where the folder cannot be used, each process
 * counts its own alone.
 *
 * Who waits sets the time of the file `wanted` again and again: a worker that sees a new one ends
 * when it is idle, and after a while when it is not. */
#ifndef TARGET_CUTE_SLOTS_H
#define TARGET_CUTE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

enum { TK_CUTE_SLOT_TAKEN = -1, TK_CUTE_NO_SLOTS = -2 };

typedef struct tk_cute_slots {
    char folder[400];
    char why[500]; /* the folder cannot be used; "" when it can */
} tk_cute_slots;

/* A locked file, which is not inherited and above 2; TK_CUTE_SLOT_TAKEN when all are;
 * TK_CUTE_NO_SLOTS with `why`. */
int tk_cute_slot_take(tk_cute_slots *out);

/* Tells the workers that somebody waits. */
void tk_cute_slot_want(const tk_cute_slots *slots);

/* Whether slots can be had at all; `why` of *out when not. */
bool tk_cute_slots_work(tk_cute_slots *out);

#endif
