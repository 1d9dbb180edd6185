/* Knows whether this process is a forked child.
 *
 * Threads do not survive a fork and locks may be held by threads that are gone. So whatever owns
 * threads or locks notes the fork epoch when it is made and compares it before it touches a lock; a
 * different epoch means "made by a parent process". Asking getpid() instead costs a system call. */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stdint.h>

/* How many forks lie between this process and the first one that asked. One atomic load after the
 * first call, which registers the handler. Any thread. */
uint32_t tk_fork_epoch(void);

#endif
