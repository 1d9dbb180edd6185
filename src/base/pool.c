/* The thread pool; pool.h says what it promises.
 *
 * Part 0 of a loop is the caller's. Each other part has a seat, with a word `turn` that is even
 * while the part is open and odd once somebody has claimed it. The caller fills in the loop, opens
 * the seats, does part 0, claims what is still open, and waits for what the workers claimed. A
 * claim is one compare-and-swap on a value that never comes back (twice the number of the loop), so
 * a worker that wakes up late finds its part taken and touches nothing of a loop that may be over.
 *
 * A worker sleeps on its seat's condition. It raises `asleep` before it looks at `turn` a last
 * time, and the caller opens `turn` before it looks at `asleep`; both are sequentially consistent,
 * so one of them sees the other and no wake-up is lost. The caller's sleep works the same way.
 *
 * A worker that wakes up on the caller's processor leaves it (placement.h).
 *
 * `loop_lock` is held by whoever runs a loop or changes the threads. A fork does not wait for it
 * (the loop may be long, or need a lock that the forking thread holds); the child makes the locks
 * anew. */
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/placement.h"
#include "base/thread.h"

#define SPIN_NANOSECONDS 50000
#define LONG_PART 1024 /* items from which parts begin at multiples of ALIGNED_ITEMS */
#define ALIGNED_ITEMS 64

struct loop {
    tk_loop_body body;
    void *arg;
    int64_t count;
    int parts;
};

struct seat {
    _Alignas(128) _Atomic uint64_t turn; /* even: open; odd: claimed, or nothing to do */
    _Atomic bool asleep;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    int part;
    bool started;
};

static struct {
    pthread_mutex_t loop_lock;
    struct loop loop;
    uint64_t loops;
    int seats; /* made so far; seat 0 is nobody's */
    _Atomic bool spins;
    _Atomic int threads; /* 0: not decided yet */
    _Atomic bool stopping;
    _Atomic int caller_processor;
    _Alignas(128) _Atomic int finished; /* parts of this loop that workers are done with */
    _Atomic bool caller_asleep;
    pthread_mutex_t done_lock;
    pthread_cond_t done;
} pool = {.loop_lock = PTHREAD_MUTEX_INITIALIZER,
          .seats = 1,
          .done_lock = PTHREAD_MUTEX_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static struct seat seats[TK_POOL_MAX_THREADS];
static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
static _Thread_local bool inside;

/* ---- spinning ---------------------------------------------------------------------------------
 */

struct spin {
    int64_t until;
    unsigned rounds;
};

static int64_t clock_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Pauses the processor for a moment; false once the spin has lasted long enough. */
static bool spin_on(struct spin *spin) {
    if (!atomic_load_explicit(&pool.spins, memory_order_relaxed)) return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
    if (++spin->rounds % 16) return true;
    int64_t now = clock_nanoseconds();
    if (!spin->until) spin->until = now + SPIN_NANOSECONDS;
    return now < spin->until;
}

/* ---- parts ------------------------------------------------------------------------------------
 */

static int64_t part_begin(const struct loop *loop, int part) {
    int64_t unit = loop->count / loop->parts >= LONG_PART ? ALIGNED_ITEMS : 1;
    int64_t units = (loop->count - 1) / unit + 1;
    int64_t extra = units % loop->parts;
    int64_t begin = (units / loop->parts * part + (part < extra ? part : extra)) * unit;
    return begin < loop->count ? begin : loop->count;
}

static void run_part(const struct loop *loop, int part) {
    loop->body(loop->arg, part_begin(loop, part), part_begin(loop, part + 1), part);
}

static bool claim(struct seat *seat) {
    uint64_t turn = atomic_load_explicit(&seat->turn, memory_order_acquire);
    return turn % 2 == 0 && atomic_compare_exchange_strong(&seat->turn, &turn, turn + 1);
}

/* ---- workers ----------------------------------------------------------------------------------
 */

static bool nothing_to_do(struct seat *seat) {
    return atomic_load(&seat->turn) % 2 && !atomic_load(&pool.stopping);
}

static void sleep_on_seat(struct seat *seat) {
    pthread_mutex_lock(&seat->lock);
    atomic_store(&seat->asleep, true);
    while (nothing_to_do(seat)) pthread_cond_wait(&seat->wake, &seat->lock);
    atomic_store(&seat->asleep, false);
    pthread_mutex_unlock(&seat->lock);
}

static void wake_seat(struct seat *seat) {
    if (!atomic_load(&seat->asleep)) return;
    pthread_mutex_lock(&seat->lock);
    pthread_cond_signal(&seat->wake);
    pthread_mutex_unlock(&seat->lock);
}

static void finish_part(void) {
    atomic_fetch_add(&pool.finished, 1);
    if (!atomic_load(&pool.caller_asleep)) return;
    pthread_mutex_lock(&pool.done_lock);
    pthread_cond_signal(&pool.done);
    pthread_mutex_unlock(&pool.done_lock);
}

static void *worker_main(void *argument) {
    struct seat *seat = argument;
    struct spin spin = {0};
    inside = true;
    while (!atomic_load(&pool.stopping)) {
        if (claim(seat)) {
            run_part(&pool.loop, seat->part);
            finish_part();
            spin = (struct spin){0};
        } else if (!spin_on(&spin)) {
            sleep_on_seat(seat);
            if (atomic_load(&pool.spins)) tk_placement_leave(atomic_load(&pool.caller_processor));
            spin = (struct spin){0};
        }
    }
    return NULL;
}

/* ---- starting and ending threads, with loop_lock held ------------------------------------------
 */

static int cpu_count(void) {
#ifdef __linux__
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return CPU_COUNT(&cpus);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

static int default_threads(void) {
    const char *text = getenv("TIKI_THREADS");
    long asked = text ? strtol(text, NULL, 10) : 0;
    long threads = asked > 0 ? asked : cpu_count();
    return threads < TK_POOL_MAX_THREADS ? (int)threads : TK_POOL_MAX_THREADS;
}

/* The workers are gone, and perhaps whoever held a lock; new seats are made over the old ones. */
static void enter_child(void) {
    pool.seats = 1;
    atomic_store(&pool.stopping, false);
    atomic_store(&pool.caller_asleep, false);
    pthread_mutex_init(&pool.done_lock, NULL);
    pthread_cond_init(&pool.done, NULL);
    if (!inside) pthread_mutex_init(&pool.loop_lock, NULL);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, enter_child); }

static void make_seats(int wanted) {
    if (pool.seats >= wanted) return;
    pthread_once(&forks_watched, watch_forks);
    atomic_store(&pool.spins, tk_pool_threads() <= cpu_count());
    for (; pool.seats < wanted; pool.seats++) {
        struct seat *seat = &seats[pool.seats];
        atomic_store(&seat->turn, 1);
        atomic_store(&seat->asleep, false);
        pthread_mutex_init(&seat->lock, NULL);
        pthread_cond_init(&seat->wake, NULL);
        seat->part = pool.seats;
        seat->started = tk_thread_start(&seat->thread, "tiki-pool", worker_main, seat);
    }
}

static void clear_seats(void) {
    atomic_store(&pool.stopping, true);
    for (int i = 1; i < pool.seats; i++) {
        wake_seat(&seats[i]);
        if (seats[i].started) pthread_join(seats[i].thread, NULL);
        pthread_mutex_destroy(&seats[i].lock);
        pthread_cond_destroy(&seats[i].wake);
    }
    pool.seats = 1;
    atomic_store(&pool.stopping, false);
}

int tk_pool_threads(void) {
    int threads = atomic_load_explicit(&pool.threads, memory_order_relaxed);
    if (threads) return threads;
    int undecided = 0;
    atomic_compare_exchange_strong(&pool.threads, &undecided, default_threads());
    return atomic_load(&pool.threads);
}

tk_status tk_pool_set_threads(int threads) {
    if (threads < 0 || threads > TK_POOL_MAX_THREADS)
        return tk_fail(TK_INVALID_ARGUMENT, "threads %d: expected 0 (default) to %d", threads,
                       TK_POOL_MAX_THREADS);
    if (inside)
        return tk_fail(TK_INVALID_ARGUMENT, "threads %d: cannot be set inside a loop", threads);
    pthread_mutex_lock(&pool.loop_lock);
    clear_seats();
    atomic_store(&pool.threads, threads ? threads : default_threads());
    pthread_mutex_unlock(&pool.loop_lock);
    return TK_OK;
}

void tk_pool_shutdown(void) {
    if (inside) return;
    pthread_mutex_lock(&pool.loop_lock);
    clear_seats();
    pthread_mutex_unlock(&pool.loop_lock);
}

bool tk_pool_inside(void) { return inside; }

/* ---- loops ------------------------------------------------------------------------------------
 */

static void open_seats(int parts) {
    atomic_store(&pool.caller_processor, tk_placement_current());
    uint64_t open = 2 * ++pool.loops;
    atomic_store(&pool.finished, 0);
    for (int part = 1; part < parts; part++) {
        atomic_store(&seats[part].turn, open);
        wake_seat(&seats[part]);
    }
}

/* Does the parts that no worker has begun, from the last, whose worker is woken last; gives how
 * many the workers have. */
static int run_open_parts(const struct loop *loop) {
    int taken = 0;
    for (int part = loop->parts - 1; part > 0; part--) {
        if (claim(&seats[part]))
            run_part(loop, part);
        else
            taken++;
    }
    return taken;
}

static void wait_for_workers(int taken) {
    struct spin spin = {0};
    while (atomic_load_explicit(&pool.finished, memory_order_acquire) != taken)
        if (!spin_on(&spin)) break;
    if (atomic_load(&pool.finished) == taken) return;
    pthread_mutex_lock(&pool.done_lock);
    atomic_store(&pool.caller_asleep, true);
    while (atomic_load(&pool.finished) != taken) pthread_cond_wait(&pool.done, &pool.done_lock);
    atomic_store(&pool.caller_asleep, false);
    pthread_mutex_unlock(&pool.done_lock);
}

static void run_on_pool(const struct loop *loop) {
    pthread_mutex_lock(&pool.loop_lock);
    make_seats(loop->parts);
    pool.loop = *loop;
    inside = true;
    open_seats(loop->parts);
    run_part(loop, 0);
    wait_for_workers(run_open_parts(loop));
    inside = false;
    pthread_mutex_unlock(&pool.loop_lock);
}

void tk_parallel_for(int64_t count, int64_t grain, tk_loop_body body, void *arg) {
    if (count <= 0) return;
    int64_t parts = tk_chunk_count(count, grain);
    int threads = tk_pool_threads();
    struct loop loop = {body, arg, count, (int)(parts < threads ? parts : threads)};
    if (loop.parts == 1) {
        body(arg, 0, count, 0);
    } else if (inside) {
        for (int part = 0; part < loop.parts; part++) run_part(&loop, part);
    } else {
        run_on_pool(&loop);
    }
}

struct chunk_loop {
    tk_chunk_body body;
    void *arg;
    int64_t count;
    int64_t chunk_items;
};

static void run_chunks(void *arg, int64_t begin, int64_t end, int worker) {
    const struct chunk_loop *loop = arg;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t first = chunk * loop->chunk_items;
        int64_t left = loop->count - first;
        int64_t items = left < loop->chunk_items ? left : loop->chunk_items;
        loop->body(loop->arg, chunk, first, first + items, worker);
    }
}

void tk_parallel_chunks(int64_t count, int64_t chunk_items, tk_chunk_body body, void *arg) {
    struct chunk_loop loop = {body, arg, count, chunk_items > 1 ? chunk_items : 1};
    tk_parallel_for(tk_chunk_count(count, chunk_items), 1, run_chunks, &loop);
}
