/* pthread_create with signals blocked and a name; see thread.h. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

bool tk_thread_start(pthread_t *out_thread, const char *name, void *(*body)(void *arg), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(out_thread, NULL, body, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#ifdef __linux__
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    if (started) pthread_setname_np(*out_thread, short_name);
#else
    (void)name;
#endif
    return started;
}
