/* The pool of worker.h.
 *
 * Both directions of a worker are one socket, its standard input: writing to a dead worker is an
 * error and no signal, and the end of this process closes it. It is not inherited by other
 * children, else a worker would outlive us. Workers stand in a process group of their own, so that
 * an interrupt at the terminal does not reach them. A worker that died while it was idle is found
 * before it is asked, and is no failure of anybody's text.
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
#include "target/cute/slots.h"

extern char **environ;

enum { MAGIC = 0x77434B54, WANT_PTX = 1, WANT_LOWERED = 2, USUAL_LIMIT_MS = 120000 };
enum { LARGEST_PART = 1 << 28, BETWEEN_STOPS_MS = 20, MOST_WAIT_MS = 200, BETWEEN_SLOTS_MS = 50 };
enum { TAKEN, PARSE_ERROR, COMPILE_ERROR, NO_ROOM };
enum { OBJECT, PTX, LOWERED, MESSAGES, PARTS };

/* A place of the pool. Who made it busy changes it, with the lock. */
typedef struct worker {
    pid_t process; /* 0: a free place */
    int socket;
    bool busy;
    char version[64];
    tk_cute_python python;
} worker;

/* How long one call may take, and who may stop it. */
typedef struct patience {
    int64_t deadline;
    bool (*stop)(void *arg);
    void *arg;
    bool stopped;
} patience;

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

static patience patience_of(const tk_cute_job *job) {
    int limit_ms = job && job->limit_ms ? job->limit_ms : USUAL_LIMIT_MS;
    return (patience){now_ms() + limit_ms, job ? job->stop : NULL, job ? job->stop_arg : NULL,
                      false};
}

/* Milliseconds to wait before looking again; 0 when it is over. */
static int next_wait(patience *p) {
    int64_t left = p->deadline - now_ms();
    if (p->stop && !p->stopped) p->stopped = p->stop(p->arg);
    if (left <= 0 || p->stopped) return 0;
    int64_t most = p->stop ? BETWEEN_STOPS_MS : 1000000;
    return (int)(left < most ? left : most);
}

/* TK_INTERRUPTED when it is over, TK_DEVICE_ERROR when the other side is gone. */
static tk_status wait_for(int socket, short events, patience *p) {
    for (;;) {
        struct pollfd entry = {.fd = socket, .events = events};
        int wait = next_wait(p);
        if (!wait) return TK_INTERRUPTED;
        int ready = poll(&entry, 1, wait);
        if (ready > 0) return TK_OK;
        if (ready < 0 && errno != EINTR) return TK_DEVICE_ERROR;
    }
}

static tk_status send_all(int socket, const void *data, size_t bytes, patience *p) {
    const char *at = data;
    while (bytes) {
        ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            bytes -= (size_t)sent;
            continue;
        }
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return TK_DEVICE_ERROR;
        tk_status status = wait_for(socket, POLLOUT, p);
        if (status != TK_OK) return status;
    }
    return TK_OK;
}

static tk_status receive_all(int socket, void *data, size_t bytes, patience *p) {
    char *at = data;
    while (bytes) {
        ssize_t got = recv(socket, at, bytes, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) return TK_DEVICE_ERROR;
        tk_status status = wait_for(socket, POLLIN, p);
        if (status != TK_OK) return status;
    }
    return TK_OK;
}

/* ---- starting and ending ---- */

/* The slot is the worker's file 3, and the folder its argument; without one there are neither. */
static int spawn(const char *python, int child_end, int slot, const char *folder,
                 pid_t *out_process) {
    char *const argv[] = {(char *)(uintptr_t)python, "-c", (char *)(uintptr_t)tk_cute_script,
                          slot >= 0 ? (char *)(uintptr_t)folder : NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, child_end, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (slot >= 0) posix_spawn_file_actions_adddup2(&actions, slot, 3);
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
    pid_t process = w->process;
    if (!process) return;
    pthread_mutex_lock(&pool.lock);
    close(w->socket);
    w->process = 0;
    pthread_mutex_unlock(&pool.lock);
    kill(process, SIGKILL);
    while (waitpid(process, &state, 0) < 0 && errno == EINTR) continue;
}

static tk_status no_compiler(const worker *w, const char *why) {
    return tk_fail(TK_UNSUPPORTED,
                   "no CuTe compiler: %.300s (install it with `%.300s " TK_CUTE_INSTALL
                   "`, or name another Python in TIKI_CUTE_PYTHON)",
                   why, w->python.path);
}

static tk_status bad_start(const worker *w, tk_status status, const patience *p) {
    if (status != TK_INTERRUPTED) return no_compiler(w, "the worker ends as it starts");
    return tk_fail(status, p->stopped ? "the CuTe compilation was stopped"
                                      : "the CuTe compiler's worker does not start in time");
}

/* The worker says which version it has, or what is wrong. */
static tk_status greet(worker *w, patience *p) {
    uint32_t head[3];
    char text[512], why[600];
    tk_status status = receive_all(w->socket, head, sizeof head, p);
    if (status != TK_OK) return bad_start(w, status, p);
    if (head[0] != MAGIC || head[2] > 1 << 20)
        return tk_fail(TK_INTERNAL, "the CuTe compiler's worker does not speak as expected");
    size_t kept = head[2] < sizeof text ? head[2] : sizeof text - 1;
    status = receive_all(w->socket, text, kept, p);
    if (status != TK_OK) return bad_start(w, status, p);
    text[kept] = 0;
    if (head[1]) return no_compiler(w, text);
    snprintf(w->version, sizeof w->version, "%.63s", text);
    if (tk_cute_version_fits(text)) return TK_OK;
    snprintf(why, sizeof why, "nvidia-cutlass-dsl %.60s is installed, the text is that of 4.8",
             text);
    return no_compiler(w, why);
}

/* With the lock from the socket to the place that has it, so that no child of a fork keeps one
 * open, and none keeps the slot. EAGAIN: there is no slot. */
static int begin_process(worker *w, tk_cute_slots *slots) {
    int ends[2];
    pthread_mutex_lock(&pool.lock);
    int slot = tk_cute_slot_take(slots), error = slot == TK_CUTE_SLOT_TAKEN ? EAGAIN : 0;
    if (!error) error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    if (!error) {
        error = spawn(w->python.path, ends[1], slot, slots->folder, &w->process);
        close(ends[1]);
        w->socket = ends[0];
        if (error) {
            close(ends[0]);
            w->process = 0;
        }
    }
    if (slot >= 0) close(slot);
    pthread_mutex_unlock(&pool.lock);
    return error;
}

/* Waits for a slot, asking for one. */
static int begin_when_free(worker *w, patience *p) {
    for (;;) {
        tk_cute_slots slots;
        int error = begin_process(w, &slots), wait = error == EAGAIN ? next_wait(p) : 0;
        if (!wait) return error;
        tk_cute_slot_want(&slots);
        (void)poll(NULL, 0, wait < BETWEEN_SLOTS_MS ? wait : BETWEEN_SLOTS_MS);
    }
}

static tk_status start_by(worker *w, const tk_cute_python *python, patience *p) {
    w->python = *python;
    int error = begin_when_free(w, p);
    if (error == EAGAIN)
        return tk_fail(TK_INTERRUPTED,
                       p->stopped ? "the CuTe compilation was stopped"
                                  : "no worker of the CuTe compiler was free in time: all that "
                                    "this user may have compile (TIKI_CUTE_WORKERS)");
    if (error) return no_compiler(w, strerror(error));
    tk_status status = greet(w, p);
    if (status != TK_OK) end_worker(w);
    return status;
}

/* The error is the first Python's. */
static tk_status start_worker(worker *w, patience *p) {
    tk_cute_python pythons[TK_CUTE_MOST_PYTHONS];
    char first[1024] = "";
    int count = tk_cute_pythons(pythons);
    tk_status status = TK_UNSUPPORTED;
    for (int i = 0; i < count && status == TK_UNSUPPORTED; i++) {
        status = start_by(w, &pythons[i], p);
        if (i == 0) snprintf(first, sizeof first, "%s", tk_error_message());
    }
    return status == TK_UNSUPPORTED ? tk_fail_again(status, first) : status;
}

/* It may have died while nobody asked it. */
static bool is_idle(const worker *w) {
    char byte;
    ssize_t got = recv(w->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static tk_status ready_worker(worker *w, patience *p) {
    if (w->process && !is_idle(w)) end_worker(w);
    return w->process ? TK_OK : start_worker(w, p);
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

static void wait_for_place(int wait_ms) {
    struct timespec until;
    if (wait_ms > MOST_WAIT_MS) wait_ms = MOST_WAIT_MS;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t nanoseconds = until.tv_nsec + wait_ms % 1000 * INT64_C(1000000);
    until.tv_sec += wait_ms / 1000 + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&pool.freed, &pool.lock, &until);
}

/* NULL when patience ended. `stop` is called without the lock. */
static worker *take(patience *p) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    worker *w;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&pool.lock);
    while (!(w = choose())) {
        pthread_mutex_unlock(&pool.lock);
        int wait = next_wait(p);
        pthread_mutex_lock(&pool.lock);
        if (!wait) break;
        if (!choose()) wait_for_place(wait);
    }
    if (w) w->busy = true;
    pthread_mutex_unlock(&pool.lock);
    return w;
}

static void give(worker *w) {
    pthread_mutex_lock(&pool.lock);
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

static tk_status ask(const worker *w, const tk_cute_job *job, patience *p) {
    uint32_t head[5] = {MAGIC, (job->ptx ? WANT_PTX : 0) | (job->lowered ? WANT_LOWERED : 0),
                        (uint32_t)strlen(job->arch), (uint32_t)strlen(job->options),
                        (uint32_t)job->text_bytes};
    tk_status status = send_all(w->socket, head, sizeof head, p);
    if (status == TK_OK) status = send_all(w->socket, job->arch, head[2], p);
    if (status == TK_OK) status = send_all(w->socket, job->options, head[3], p);
    if (status == TK_OK) status = send_all(w->socket, job->text, head[4], p);
    return status;
}

static tk_status receive_parts(const worker *w, const uint32_t *lengths, char **parts,
                               patience *p) {
    for (int i = 0; i < PARTS; i++) {
        if (lengths[i] > LARGEST_PART) return TK_INTERNAL;
        parts[i] = tk_malloc((size_t)lengths[i] + 1);
        if (!parts[i]) return TK_OUT_OF_MEMORY;
        tk_status status = receive_all(w->socket, parts[i], lengths[i], p);
        if (status != TK_OK) return status;
        parts[i][lengths[i]] = 0;
    }
    return TK_OK;
}

static tk_status hear(const worker *w, tk_cute_answer *out, patience *p) {
    uint32_t head[2 + PARTS] = {0};
    char *parts[PARTS] = {0};
    tk_status status = receive_all(w->socket, head, sizeof head, p);
    if (status == TK_OK && (head[0] != MAGIC || head[1] > NO_ROOM)) status = TK_INTERNAL;
    if (status == TK_OK) status = receive_parts(w, head + 2, parts, p);
    *out = (tk_cute_answer){.refused = head[1] == PARSE_ERROR || head[1] == COMPILE_ERROR,
                            .no_room = head[1] == NO_ROOM,
                            .object = parts[OBJECT],
                            .ptx = parts[PTX],
                            .lowered = parts[LOWERED],
                            .messages = parts[MESSAGES],
                            .object_bytes = head[2 + OBJECT]};
    if (status != TK_OK) tk_cute_answer_free(out);
    return status;
}

static tk_status say(tk_status status, const patience *p) {
    switch (status) {
    case TK_OK:
        return TK_OK;
    case TK_OUT_OF_MEMORY:
        return tk_fail(status, "no memory for the CuTe compiler's answer");
    case TK_INTERRUPTED:
        return tk_fail(status, p->stopped ? "the CuTe compilation was stopped"
                                          : "the CuTe compiler took too long and was ended");
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
static tk_status compile_on(worker *w, const tk_cute_job *job, patience *p, bool *told,
                            tk_cute_answer *out) {
    tk_status status = ready_worker(w, p);
    *told = status != TK_OK;
    if (*told) return status;
    status = ask(w, job, p);
    if (status == TK_OK) status = hear(w, out, p);
    if (status == TK_OK) snprintf(out->version, sizeof out->version, "%s", w->version);
    if (status != TK_OK) end_worker(w);
    return status;
}

tk_status tk_cute_worker_compile(const tk_cute_job *job, tk_cute_answer *out) {
    patience p = patience_of(job);
    bool told;
    *out = (tk_cute_answer){0};
    worker *place = take(&p);
    if (!place) return say(TK_INTERRUPTED, &p);
    tk_status status = compile_on(place, job, &p, &told, out);
    if (status == TK_DEVICE_ERROR && !told) status = compile_on(place, job, &p, &told, out);
    give(place);
    return told ? status : say(status, &p);
}

tk_status tk_cute_compiler_version(char *text, size_t capacity, tk_cute_python *python) {
    patience p = patience_of(NULL);
    worker *place = take(&p);
    if (!place) return say(TK_INTERRUPTED, &p);
    tk_status status = ready_worker(place, &p);
    if (status == TK_OK) snprintf(text, capacity, "%s", place->version);
    if (status == TK_OK && python) *python = place->python;
    give(place);
    return status;
}
