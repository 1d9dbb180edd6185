/* See placement.h. A thread is moved by forbidding it the processor and allowing it again: the
 * system moves it at once and does not move it back. */
#define _GNU_SOURCE
#include "base/placement.h"

#include <sched.h>

#ifdef __linux__

int tk_placement_current(void) { return sched_getcpu(); }

void tk_placement_leave(int busy) {
    cpu_set_t allowed;
    if (busy < 0 || busy >= CPU_SETSIZE || sched_getcpu() != busy) return;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    cpu_set_t others = allowed;
    CPU_CLR(busy, &others);
    if (CPU_COUNT(&others) == 0) return;
    if (sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
}

#else

int tk_placement_current(void) { return -1; }

void tk_placement_leave(int busy) { (void)busy; }

#endif
