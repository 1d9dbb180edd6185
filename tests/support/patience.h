/* How long a test waits for what must come, on a machine that does much else.
 *
 * Threads of a test meet by gates, never by times: a pause does not make another thread run, and a
 * limit that is tight on a busy machine fails for no fault. Limits are there to end what hangs. */
#ifndef SUPPORT_PATIENCE_H
#define SUPPORT_PATIENCE_H

/* For the alarm of a forked child, which would outlive its parent, and for waits with a limit. Less
 * than the time a whole test program has (cmake/TikiTests.cmake). */
#define SUPPORT_HANG_SECONDS 300

#endif
