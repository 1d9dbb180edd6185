/* Starting the library's own threads, all in one manner: with every signal blocked, so that Ctrl-C
 * and timers reach the program's threads and never interrupt a kernel; and with a name that
 * debuggers show. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts body(arg) on a new joinable thread. `name` is cut to 15 characters. False when the system
 * has no thread to give. */
bool tk_thread_start(pthread_t *out_thread, const char *name, void *(*body)(void *arg), void *arg);

#endif
