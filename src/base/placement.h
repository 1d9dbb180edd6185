/* Which processor a thread of the pool runs on.
 *
 * Linux may wake a worker on the processor of the thread that woke it although another is idle; the
 * two then take turns on one processor for milliseconds, and a loop takes longer than on one thread
 * (a product of 0.13 ms took 0.28 ms on two). A worker that finds itself there moves away once and
 * is free to be moved again. Rejected: binding workers for good, which loses whenever something
 * else runs on their processor. */
#ifndef BASE_PLACEMENT_H
#define BASE_PLACEMENT_H

/* The processor of the calling thread, -1 where that is not known. */
int tk_placement_current(void);

/* Moves the calling thread off processor `busy` if it is on it and may run elsewhere. The set of
 * processors that the thread may use is the same afterwards. */
void tk_placement_leave(int busy);

#endif
