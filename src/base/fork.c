/* A counter that the child's side of a fork raises; see fork.h. */
#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint32_t epoch;
static pthread_once_t registered = PTHREAD_ONCE_INIT;

static void enter_child(void) { atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed); }

static void watch_forks(void) { pthread_atfork(NULL, NULL, enter_child); }

uint32_t tk_fork_epoch(void) {
    pthread_once(&registered, watch_forks);
    return atomic_load_explicit(&epoch, memory_order_relaxed);
}
