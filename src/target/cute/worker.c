/* The pool of worker.h.
 *
 * Both directions of a worker are one socket, its standard input: writing to a dead worker is an
 * error and no signal, and the end of this process closes it. It is not inherited by other
 * children, else a worker would outlive us. Workers stand in a process group of their own, so that
 * an interrupt at the terminal does not reach them.
 *
 * Rejected: a worker for each compilation (0.3 s each), the package in this process (it needs a
 * Python, and its crashes would be ours). */
#define _GNU_SOURCE
#include "target/cute/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "target/cute/script.h"

extern char **environ;

enum { MAGIC = 0x77434B54, WANT_PTX = 1, WANT_LOWERED = 2, USUAL_LIMIT_MS = 120000 };
enum { LARGEST_PART = 1 << 28 };
enum { OBJECT, PTX, LOWERED, MESSAGES, PARTS };

typedef struct worker {
    pid_t process; /* 0: a free place */
    int socket;
    bool busy;
    char version[64];
} worker;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    worker workers[TK_CUTE_MOST_WORKERS];
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {{0}}};

/* ---- fork ---- */

static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void after_fork(void) { pthread_mutex_unlock(&pool.lock); }

/* The workers are the parent's: the child forgets them. */
static void in_child(void) {
    for (int i = 0; i < TK_CUTE_MOST_WORKERS; i++) {
        if (pool.workers[i].process) close(pool.workers[i].socket);
        pool.workers[i] = (worker){0};
    }
    pthread_cond_init(&pool.freed, NULL);
    pthread_mutex_init(&pool.lock, NULL);
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* ---- bytes with a deadline ---- */

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000) + time.tv_nsec / 1000000;
}

/* TK_INTERRUPTED when time is up, TK_DEVICE_ERROR when the other side is gone. */
static tk_status wait_for(int socket, short events, int64_t deadline) {
    for (;;) {
        struct pollfd entry = {.fd = socket, .events = events};
        int64_t left = deadline - now_ms();
        if (left <= 0) return TK_INTERRUPTED;
        int ready = poll(&entry, 1, left > 1000000 ? 1000000 : (int)left);
        if (ready > 0) return TK_OK;
        if (ready < 0 && errno != EINTR) return TK_DEVICE_ERROR;
    }
}

static tk_status send_all(int socket, const void *data, size_t bytes, int64_t deadline) {
    const char *at = data;
    while (bytes) {
        ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            bytes -= (size_t)sent;
            continue;
        }
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return TK_DEVICE_ERROR;
        tk_status status = wait_for(socket, POLLOUT, deadline);
        if (status != TK_OK) return status;
    }
    return TK_OK;
}

static tk_status receive_all(int socket, void *data, size_t bytes, int64_t deadline) {
    char *at = data;
    while (bytes) {
        ssize_t got = recv(socket, at, bytes, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) return TK_DEVICE_ERROR;
        tk_status status = wait_for(socket, POLLIN, deadline);
        if (status != TK_OK) return status;
    }
    return TK_OK;
}

/* ---- starting and ending ---- */

static const char *interpreter(void) {
    const char *named = getenv("TIKI_CUTE_PYTHON");
    return named && *named ? named : "python3";
}

static int spawn(int child_end, pid_t *out_process) {
    char *const argv[] = {(char *)(uintptr_t)interpreter(), "-c", (char *)(uintptr_t)tk_cute_script,
                          NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, child_end, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawnp(out_process, argv[0], &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static void end_worker(worker *w) {
    int state;
    close(w->socket);
    kill(w->process, SIGKILL);
    while (waitpid(w->process, &state, 0) < 0 && errno == EINTR) continue;
}

static tk_status no_compiler(const char *why) {
    return tk_fail(TK_UNSUPPORTED,
                   "no CuTe compiler: %.300s (install it with `%s -m pip install "
                   "nvidia-cutlass-dsl`, or name another Python in TIKI_CUTE_PYTHON)",
                   why, interpreter());
}

/* The worker says which version it has, or what is wrong. */
static tk_status greet(worker *w, int64_t deadline) {
    uint32_t head[3];
    char text[512];
    tk_status status = receive_all(w->socket, head, sizeof head, deadline);
    if (status == TK_INTERRUPTED)
        return tk_fail(status, "the CuTe compiler's worker does not start in time");
    if (status != TK_OK) return no_compiler("the worker ends as it starts");
    if (head[0] != MAGIC || head[2] > 1 << 20)
        return tk_fail(TK_INTERNAL, "the CuTe compiler's worker does not speak as expected");
    size_t kept = head[2] < sizeof text ? head[2] : sizeof text - 1;
    status = receive_all(w->socket, text, kept, deadline);
    if (status != TK_OK) return no_compiler("the worker ends as it starts");
    text[kept] = 0;
    if (head[1]) return no_compiler(text);
    snprintf(w->version, sizeof w->version, "%.63s", text);
    return TK_OK;
}

static tk_status start_worker(worker *w, int64_t deadline) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return tk_fail(TK_IO_ERROR, "no socket for a worker: %s", strerror(errno));
    int error = spawn(ends[1], &w->process);
    close(ends[1]);
    w->socket = ends[0];
    if (error) {
        close(ends[0]);
        return no_compiler(strerror(error));
    }
    tk_status status = greet(w, deadline);
    if (status != TK_OK) end_worker(w);
    return status;
}

/* ---- the pool ---- */

/* A place that is idle, or one that is free, or NULL when all are busy. */
static worker *choose(void) {
    worker *empty = NULL;
    for (int i = 0; i < TK_CUTE_MOST_WORKERS; i++) {
        worker *w = &pool.workers[i];
        if (w->process && !w->busy) return w;
        if (!w->process && !w->busy && !empty) empty = w;
    }
    return empty;
}

static worker *take(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    worker *w;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&pool.lock);
    while (!(w = choose())) pthread_cond_wait(&pool.freed, &pool.lock);
    w->busy = true;
    pthread_mutex_unlock(&pool.lock);
    return w;
}

static void give(worker *w, const worker *now) {
    pthread_mutex_lock(&pool.lock);
    *w = *now;
    w->busy = false;
    pthread_cond_signal(&pool.freed);
    pthread_mutex_unlock(&pool.lock);
}

int tk_cute_worker_count(void) {
    int count = 0;
    pthread_mutex_lock(&pool.lock);
    for (int i = 0; i < TK_CUTE_MOST_WORKERS; i++) count += pool.workers[i].process != 0;
    pthread_mutex_unlock(&pool.lock);
    return count;
}

/* ---- one compilation ---- */

static tk_status ask(const worker *w, const tk_cute_job *job, int64_t deadline) {
    uint32_t head[5] = {MAGIC, (job->ptx ? WANT_PTX : 0) | (job->lowered ? WANT_LOWERED : 0),
                        (uint32_t)strlen(job->arch), (uint32_t)strlen(job->options),
                        (uint32_t)job->text_bytes};
    tk_status status = send_all(w->socket, head, sizeof head, deadline);
    if (status == TK_OK) status = send_all(w->socket, job->arch, head[2], deadline);
    if (status == TK_OK) status = send_all(w->socket, job->options, head[3], deadline);
    if (status == TK_OK) status = send_all(w->socket, job->text, head[4], deadline);
    return status;
}

static tk_status receive_parts(const worker *w, const uint32_t *lengths, char **parts,
                               int64_t deadline) {
    for (int i = 0; i < PARTS; i++) {
        if (lengths[i] > LARGEST_PART) return TK_INTERNAL;
        parts[i] = tk_malloc((size_t)lengths[i] + 1);
        if (!parts[i]) return TK_OUT_OF_MEMORY;
        tk_status status = receive_all(w->socket, parts[i], lengths[i], deadline);
        if (status != TK_OK) return status;
        parts[i][lengths[i]] = 0;
    }
    return TK_OK;
}

static tk_status hear(const worker *w, tk_cute_answer *out, int64_t deadline) {
    uint32_t head[2 + PARTS];
    char *parts[PARTS] = {0};
    tk_status status = receive_all(w->socket, head, sizeof head, deadline);
    if (status == TK_OK && (head[0] != MAGIC || head[1] > 2)) status = TK_INTERNAL;
    if (status == TK_OK) status = receive_parts(w, head + 2, parts, deadline);
    *out = (tk_cute_answer){.refused = head[1] != 0,
                            .object = parts[OBJECT],
                            .ptx = parts[PTX],
                            .lowered = parts[LOWERED],
                            .messages = parts[MESSAGES],
                            .object_bytes = head[2 + OBJECT]};
    if (status != TK_OK) tk_cute_answer_free(out);
    return status;
}

static tk_status say(tk_status status) {
    switch (status) {
    case TK_OK:
        return TK_OK;
    case TK_OUT_OF_MEMORY:
        return tk_fail(status, "no memory for the CuTe compiler's answer");
    case TK_INTERRUPTED:
        return tk_fail(status, "the CuTe compiler took too long and was ended");
    case TK_DEVICE_ERROR:
        return tk_fail(TK_INTERNAL, "the CuTe compiler's worker died while it compiled, twice");
    default:
        return tk_fail(TK_INTERNAL, "the CuTe compiler's worker does not speak as expected");
    }
}

void tk_cute_answer_free(tk_cute_answer *answer) {
    tk_free(answer->object);
    tk_free(answer->ptx);
    tk_free(answer->lowered);
    tk_free(answer->messages);
    *answer = (tk_cute_answer){0};
}

/* With a place that this thread holds. *told: the error has its message already. */
static tk_status compile_on(worker *w, const tk_cute_job *job, int64_t deadline, bool *told,
                            tk_cute_answer *out) {
    tk_status status = TK_OK;
    *told = false;
    if (!w->process) {
        *told = true;
        worker fresh = {.busy = true};
        status = start_worker(&fresh, deadline);
        if (status != TK_OK) return status;
        *w = fresh;
        *told = false;
    }
    status = ask(w, job, deadline);
    if (status == TK_OK) status = hear(w, out, deadline);
    if (status != TK_OK) {
        end_worker(w);
        *w = (worker){0};
    }
    return status;
}

tk_status tk_cute_compile(const tk_cute_job *job, tk_cute_answer *out) {
    int64_t deadline = now_ms() + (job->limit_ms ? job->limit_ms : USUAL_LIMIT_MS);
    bool told;
    *out = (tk_cute_answer){0};
    worker *place = take(), held = *place;
    tk_status status = compile_on(&held, job, deadline, &told, out);
    if (status == TK_DEVICE_ERROR && !told) status = compile_on(&held, job, deadline, &told, out);
    give(place, &held);
    return told ? status : say(status);
}

tk_status tk_cute_compiler_version(char *text, size_t capacity) {
    worker *place = take(), held = *place;
    tk_status status = TK_OK;
    if (!held.process) {
        worker fresh = {.busy = true};
        status = start_worker(&fresh, now_ms() + USUAL_LIMIT_MS);
        if (status == TK_OK) held = fresh;
    }
    if (status == TK_OK) snprintf(text, capacity, "%s", held.version);
    give(place, &held);
    return status;
}
