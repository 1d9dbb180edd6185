#define _GNU_SOURCE
/* The processes that NVIDIA's CuTe compiler runs in, with everything that can go wrong with them.
 *
 * Most of it runs the worker's own script on a package that stands in for NVIDIA's and misbehaves
 * on demand (tests/target/cute/package); where the script itself is to be wrong, another stands in
 * for it (fake_worker.py). Each test is a process of its own, so that a pool begins empty. With
 * TIKI_CUTE_PYTHON (`make test-cute`) the real package is looked at too. */
#include "support/kernel_files.h"
#include "support/patience.h"
#include "support/sanitizer.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/cute/compiler.h"
#include "tiki/cache.h"
#include "tiki/target.h"

#define PACKAGE "tests/target/cute/package"
#define FAKE "tests/target/cute/fake_python.sh"

static char real_python[1024]; /* "" without the package */

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, tk_error_message());       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void in_child(void (*body)(void)) {
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

/* The script of Tiki on the package that stands in. */
static void use_package(const char *mode) {
    char path[4200], *here = realpath(PACKAGE, NULL);
    REQUIRE(here);
    snprintf(path, sizeof path, "%s", here);
    free(here);
    setenv("PYTHONPATH", path, 1);
    setenv("TIKI_CUTE_PYTHON", "python3", 1);
    setenv("TIKI_FAKE_COMPILER", mode, 1);
}

static void use_worker(const char *mode) {
    setenv("TIKI_CUTE_PYTHON", FAKE, 1);
    setenv("TIKI_FAKE_WORKER", mode, 1);
}

static const char *new_mark(const char *name) {
    static char path[600];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/cute-%s-%d", folder ? folder : "/tmp", name, (int)getpid());
    unlink(path);
    setenv("TIKI_FAKE_MARK", path, 1);
    return path;
}

static tk_cute_job some_job(int limit_ms) {
    return (tk_cute_job){.arch = "sm_90a",
                         .options = "",
                         .text = "text",
                         .text_bytes = 4,
                         .ptx = true,
                         .limit_ms = limit_ms};
}

static tk_status compile_text(int limit_ms) {
    tk_cute_answer answer;
    tk_cute_job job = some_job(limit_ms);
    tk_status status = tk_cute_compile(&job, &answer);
    if (status == TK_OK) tk_cute_answer_free(&answer);
    return status;
}

static bool says(const char *words) { return strstr(tk_error_message(), words) != NULL; }

/* ---- no compiler, or another one ---- */

static void no_package(void) {
    setenv("TIKI_CUTE_PYTHON", "/nowhere/python", 1);
    REQUIRE(compile_text(0) == TK_UNSUPPORTED);
    REQUIRE(says("/nowhere/python -m pip install 'nvidia-cutlass-dsl==4.8.*'"));
    setenv("TIKI_CUTE_PYTHON", "/bin/false", 1);
    REQUIRE(compile_text(0) == TK_UNSUPPORTED && says("ends as it starts"));
    setenv("TIKI_CUTE_PYTHON", "python3", 1);
    setenv("PYTHONPATH", "/nowhere", 1);
    if (compile_text(0) == TK_UNSUPPORTED) REQUIRE(says("is not installed"));
    setenv("TIKI_CUTE_PYTHON", "/bin/false", 1);
    char text[200];
    REQUIRE(tk_cute_describe(text, sizeof text) == TK_OK || tk_cute_worker_count() == 0);
}

static void wrong_version(void) {
    use_worker("wrong");
    REQUIRE(compile_text(0) == TK_UNSUPPORTED);
    REQUIRE(says("nvidia-cutlass-dsl 4.7.0 is installed, the text is that of 4.8"));
    REQUIRE(says("pip install 'nvidia-cutlass-dsl==4.8.*'"));
    REQUIRE(tk_cute_worker_count() == 0);
}

/* What TIKI_CUTE_PYTHON names is tried alone, else the running Python, else python3. */
static void order_of_pythons(void) {
    tk_cute_python pythons[TK_CUTE_MOST_PYTHONS];
    char text[1300];
    use_package("");
    REQUIRE(tk_cute_use_python("/nowhere/running") == TK_OK);
    REQUIRE(tk_cute_pythons(pythons) == 1 && !strcmp(pythons[0].path, "python3"));
    unsetenv("TIKI_CUTE_PYTHON");
    REQUIRE(tk_cute_pythons(pythons) == 2 && !strcmp(pythons[0].path, "/nowhere/running"));
    REQUIRE(compile_text(0) == TK_OK);
    REQUIRE(tk_cute_describe(text, sizeof text) == TK_OK);
    REQUIRE(!strcmp(text, "nvidia-cutlass-dsl 4.8.0 of python3"));
    setenv("TIKI_CUTE_PYTHON", "/nowhere/python", 1);
    REQUIRE(compile_text(0) == TK_OK); /* by the worker that runs */
}

static void test_compiler_missing(void **state) {
    (void)state;
    in_child(no_package);
    in_child(wrong_version);
    in_child(order_of_pythons);
}

/* ---- workers that fail ---- */

static void dies(void) {
    use_package("die");
    REQUIRE(compile_text(0) == TK_INTERNAL && says("died while it compiled, twice"));
    REQUIRE(tk_cute_worker_count() == 0);
}

static void dies_once(void) {
    const char *mark = new_mark("once");
    use_package("once");
    REQUIRE(compile_text(0) == TK_OK);
    unlink(mark);
    REQUIRE(tk_cute_worker_count() == 1);
}

/* Ends while nobody asks it: that is no failure of the next text, nor of its second try. */
static void dies_idle(void) {
    use_worker("leave");
    for (int i = 0; i < 3; i++) {
        tk_cute_answer answer;
        tk_cute_job job = some_job(0);
        REQUIRE(tk_cute_compile(&job, &answer) == TK_OK && answer.object_bytes == 9);
        tk_cute_answer_free(&answer);
        REQUIRE(tk_cute_worker_count() == 1);
    }
}

static void hangs(void) {
    char version[64];
    unsetenv("TIKI_FAKE_MARK");
    use_package("hang");
    REQUIRE(tk_cute_compiler_version(version, sizeof version, NULL) == TK_OK); /* it has begun */
    REQUIRE(compile_text(500) == TK_INTERRUPTED && says("took too long"));
    use_worker("mute");
    REQUIRE(compile_text(1500) == TK_INTERRUPTED && says("does not start in time"));
    REQUIRE(tk_cute_worker_count() == 0);
}

static void talks_nonsense(void) {
    use_worker("garbage");
    REQUIRE(compile_text(0) == TK_INTERNAL && says("does not speak as expected"));
    use_worker("short");
    REQUIRE(compile_text(0) == TK_INTERNAL && says("twice"));
    use_worker("large");
    REQUIRE(compile_text(0) == TK_INTERNAL && says("does not speak as expected"));
    REQUIRE(tk_cute_worker_count() == 0);
}

static void assert_no_room(const char *mode, const char *words) {
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY, .stages = true}; /* else the PTX is not asked for */
    use_package(mode);
    REQUIRE(tk_kernel_build_cute(kernel, &how, &artifact) == TK_IO_ERROR);
    REQUIRE(says("the CuTe compiler cannot write its files") && says(words));
    REQUIRE(tk_cute_worker_count() == 1);
    tk_kernel_release(kernel);
}

static void no_room(void) { assert_no_room("full", "No space left on device"); }
static void no_room_for_ptx(void) { assert_no_room("no_ptx", "is not whole"); }
static void room_for_half_the_ptx(void) { assert_no_room("half_ptx", "is not whole"); }

/* The message is about line 8 of the text, which is line 14 of the kernel. */
static void refuses(void) {
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY};
    use_package("parse");
    REQUIRE(tk_kernel_build_cute(kernel, &how, &artifact) == TK_INTERNAL);
    REQUIRE(says("examples/kernels/vector_add.tk:14: the CuTe compiler refuses thread_index in "
                 "kernel vector_add"));
    REQUIRE(says("no such thing"));
    REQUIRE(tk_cute_worker_count() == 1);
    tk_kernel_release(kernel);
}

static void does_not_compile(void) {
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY};
    use_package("fail");
    REQUIRE(tk_kernel_build_cute(kernel, &how, &artifact) == TK_INTERNAL);
    REQUIRE(says("refuses kernel vector_add: RuntimeError: it does not compile"));
    tk_kernel_release(kernel);
}

static void test_faults(void **state) {
    (void)state;
    in_child(dies);
    in_child(dies_once);
    in_child(dies_idle);
    in_child(hangs);
    in_child(talks_nonsense);
    in_child(no_room);
    in_child(no_room_for_ptx);
    in_child(room_for_half_the_ptx);
    in_child(refuses);
    in_child(does_not_compile);
}

/* ---- stopping ---- */

static bool is_there(void *path) { return access(path, F_OK) == 0; }

/* Stopped in native code, and while all places are taken. */
static void stopped(void) {
    const char *mark = new_mark("stop");
    tk_cute_answer answer;
    tk_cute_job job = some_job(0);
    use_package("hang");
    job.stop = is_there;
    job.stop_arg = (void *)(uintptr_t)mark;
    REQUIRE(tk_cute_compile(&job, &answer) == TK_INTERRUPTED && says("was stopped"));
    REQUIRE(tk_cute_worker_count() == 0);
    REQUIRE(tk_cute_compile(&job, &answer) == TK_INTERRUPTED);
    setenv("TIKI_FAKE_COMPILER", "", 1);
    REQUIRE(compile_text(0) == TK_OK);
    unlink(mark);
}

/* Whether the process at the other end of a pipe has ended, which needs no time to be guessed. */
static bool ends(int pipe_end) {
    struct pollfd entry = {.fd = pipe_end, .events = POLLIN};
    return poll(&entry, 1, 1000 * SUPPORT_HANG_SECONDS) == 1 && entry.revents & POLLHUP;
}

/* A process that dies in the middle of a compilation, as by Ctrl-C, leaves no worker, not even one
 * in native code: the worker holds the other end of a pipe. */
static void leaves_no_orphan(void) {
    int ends_of_pipe[2];
    const char *mark = new_mark("orphan");
    use_package("hang");
    REQUIRE(!pipe(ends_of_pipe));
    pid_t child = fork();
    if (child == 0) {
        close(ends_of_pipe[0]);
        signal(SIGINT, SIG_DFL);
        (void)compile_text(0);
        _exit(1);
    }
    close(ends_of_pipe[1]);
    while (!is_there((void *)(uintptr_t)mark)) usleep(5000);
    REQUIRE(!kill(child, SIGINT));
    int state;
    REQUIRE(waitpid(child, &state, 0) == child && WIFSIGNALED(state));
    REQUIRE(ends(ends_of_pipe[0]));
    unlink(mark);
}

static void test_stopping(void **state) {
    (void)state;
    in_child(stopped);
    in_child(leaves_no_orphan);
}

/* ---- many at once ---- */

enum { THREADS = 16, EACH = 13, PROCESSES = 8 };

static void *compile_some(void *unused) {
    (void)unused;
    for (int i = 0; i < EACH; i++) REQUIRE(compile_text(0) == TK_OK);
    return NULL;
}

static void compile_by_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, compile_some, NULL));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    int count = tk_cute_worker_count();
    REQUIRE(count >= 1 && count <= TK_CUTE_MOST_WORKERS);
}

static int compare_numbers(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* The different processes that a file names, a line each; *out_lines of them in all. */
static int count_workers(const char *path, int *out_lines) {
    static int numbers[4096];
    int count = 0, different = 0;
    FILE *file = fopen(path, "r");
    while (file && count < 4096 && fscanf(file, "%d", &numbers[count]) == 1) count++;
    if (file) fclose(file);
    qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
    for (int i = 0; i < count; i++) different += i == 0 || numbers[i] != numbers[i - 1];
    *out_lines = count;
    return different;
}

/* 16 threads, 208 compilations; then a child of a fork, which starts a worker of its own. */
static void many_threads(void) {
    const char *mark = new_mark("count");
    int lines;
    use_package("count");
    compile_by_threads();
    REQUIRE(count_workers(mark, &lines) <= TK_CUTE_MOST_WORKERS && lines == THREADS * EACH);
    int before = tk_cute_worker_count();
    pid_t child = fork();
    if (child == 0) {
        REQUIRE(tk_cute_worker_count() == 0);
        compile_some(NULL);
        REQUIRE(tk_cute_worker_count() == 1);
        _exit(0);
    }
    int state;
    REQUIRE(waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state));
    compile_some(NULL);
    REQUIRE(tk_cute_worker_count() == before);
    unlink(mark);
}

/* 208 compilations from 8 processes at once, each with 2 of their threads at a time. */
static void many_processes(void) {
    const char *mark = new_mark("processes");
    pid_t children[PROCESSES];
    int lines;
    use_package("count");
    setenv("TIKI_CUTE_WORKERS", "64", 1);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i]) continue;
        pthread_t other;
        REQUIRE(!pthread_create(&other, NULL, compile_some, NULL));
        compile_some(NULL);
        pthread_join(other, NULL);
        REQUIRE(tk_cute_worker_count() <= 2);
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int state;
        REQUIRE(waitpid(children[i], &state, 0) == children[i]);
        REQUIRE(WIFEXITED(state) && !WEXITSTATUS(state));
    }
    REQUIRE(count_workers(mark, &lines) <= 2 * PROCESSES && lines == 2 * EACH * PROCESSES);
    unlink(mark);
}

/* A fork while other threads compile and start workers: the child holds none of their sockets. */
static void forks_amid(void) {
    pthread_t threads[4];
    new_mark("amid");
    use_package("count");
    for (int i = 0; i < 4; i++) REQUIRE(!pthread_create(&threads[i], NULL, compile_some, NULL));
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) _exit(tk_cute_worker_count() ? 1 : 0);
        int state;
        REQUIRE(waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state));
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    unlink(getenv("TIKI_FAKE_MARK"));
}

static void test_many(void **state) {
    (void)state;
    in_child(many_threads);
    in_child(many_processes);
    in_child(forks_amid);
}

/* ---- a bound over processes ---- */

static char runtime_folder[600];

/* Slots of this program alone. */
static int own_slots(void **state) {
    const char *folder = getenv("TMPDIR");
    (void)state;
    snprintf(runtime_folder, sizeof runtime_folder, "%s/cute-run-%d", folder ? folder : "/tmp",
             (int)getpid());
    setenv("XDG_RUNTIME_DIR", runtime_folder, 1);
    return mkdir(runtime_folder, 0700);
}

static int no_own_slots(void **state) {
    char command[700];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", runtime_folder);
    return system(command);
}

static bool names_the_slots(const char *process) {
    const char *slots = getenv("XDG_RUNTIME_DIR");
    char path[300], text[70000];
    snprintf(path, sizeof path, "/proc/%s/cmdline", process);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    return length && memmem(text, length, slots, strlen(slots));
}

/* Workers of all processes: their last argument is the folder of the slots, and they lead groups.
 * Those that were seen and are still there when all were seen were there together. */
static int count_all_workers(void) {
    char seen[200][16];
    int count = 0, together = 0;
    DIR *folder = opendir("/proc");
    REQUIRE(folder);
    for (struct dirent *entry; (entry = readdir(folder)) && count < 200;) {
        pid_t process = atoi(entry->d_name);
        if (process <= 0 || getpgid(process) != process || !names_the_slots(entry->d_name))
            continue;
        snprintf(seen[count++], sizeof *seen, "%d", (int)process);
    }
    closedir(folder);
    for (int i = 0; i < count; i++) together += names_the_slots(seen[i]);
    return together;
}

static void compile_by_two(void) {
    pthread_t other;
    REQUIRE(!pthread_create(&other, NULL, compile_some, NULL));
    compile_some(NULL);
    pthread_join(other, NULL);
    _exit(0);
}

/* 208 compilations from 8 processes at once, which may have 3 workers together. Workers of the
 * tests before, which may be ending still, have other slots. */
static void three_for_eight_processes(void) {
    const char *mark = new_mark("three");
    char folder[700];
    int lines, left = PROCESSES, most = 0, state;
    use_package("count");
    snprintf(folder, sizeof folder, "%s/three", runtime_folder);
    REQUIRE(!mkdir(folder, 0700) && !setenv("XDG_RUNTIME_DIR", folder, 1));
    setenv("TIKI_CUTE_WORKERS", "3", 1);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) compile_by_two();
    }
    while (left) {
        int now = count_all_workers();
        if (now > most) most = now;
        pid_t ended = waitpid(-1, &state, WNOHANG);
        REQUIRE(ended >= 0);
        if (ended == 0) continue;
        REQUIRE(WIFEXITED(state) && !WEXITSTATUS(state));
        left--;
    }
    if (most < 1 || most > 3) fprintf(stderr, "%d workers at once\n", most);
    REQUIRE(most >= 1 && most <= 3);
    (void)count_workers(mark, &lines);
    REQUIRE(lines == 2 * EACH * PROCESSES);
    unlink(mark);
}

/* A worker that does nothing makes room for another process's, and is replaced. */
static void idle_one_gives_way(void) {
    int state;
    use_package("");
    setenv("TIKI_CUTE_WORKERS", "1", 1);
    REQUIRE(compile_text(0) == TK_OK);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(compile_text(0) != TK_OK);
    REQUIRE(waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state));
    REQUIRE(compile_text(0) == TK_OK && tk_cute_worker_count() == 1);
}

/* Who waits has its limit and can be stopped; the place of who is killed is free. */
static void killed_one_is_replaced(void) {
    const char *mark = new_mark("holder");
    tk_cute_answer answer;
    tk_cute_job job = some_job(0);
    int state;
    use_package("hang");
    setenv("TIKI_CUTE_WORKERS", "1", 1);
    pid_t holder = fork();
    REQUIRE(holder >= 0);
    if (holder == 0) _exit(compile_text(0) == TK_OK);
    while (!is_there((void *)(uintptr_t)mark)) usleep(5000);
    setenv("TIKI_FAKE_COMPILER", "", 1);
    REQUIRE(compile_text(300) == TK_INTERRUPTED && says("was free in time"));
    job.stop = is_there;
    job.stop_arg = (void *)(uintptr_t)mark;
    REQUIRE(tk_cute_compile(&job, &answer) == TK_INTERRUPTED && says("was stopped"));
    REQUIRE(!kill(holder, SIGKILL) && waitpid(holder, &state, 0) == holder);
    REQUIRE(compile_text(0) == TK_OK);
    unlink(mark);
}

/* Without a folder for them each process counts alone, and says so. */
static void no_slots(void) {
    char text[1300], path[700];
    use_package("");
    setenv("XDG_RUNTIME_DIR", "/dev/null", 1);
    REQUIRE(compile_text(0) == TK_OK && tk_cute_describe(text, sizeof text) == TK_OK);
    REQUIRE(strstr(text, "of python3 (its workers are counted in each process alone: "
                         "/dev/null/tiki: Not a directory)"));
    snprintf(path, sizeof path, "%s/open", runtime_folder);
    setenv("XDG_RUNTIME_DIR", path, 1);
    snprintf(path, sizeof path, "%s/open/tiki", runtime_folder);
    REQUIRE(!mkdir(getenv("XDG_RUNTIME_DIR"), 0700) && !mkdir(path, 0700) && !chmod(path, 0777));
    REQUIRE(tk_cute_describe(text, sizeof text) == TK_OK && strstr(text, "others may write there"));
}

static void test_bound(void **state) {
    (void)state;
    in_child(three_for_eight_processes);
    in_child(idle_one_gives_way);
    in_child(killed_one_is_replaced);
    in_child(no_slots);
}

/* ---- the cache ---- */

static tk_cache *open_cache(const char *folder) {
    tk_cache *cache;
    tk_cache_options options = {.folder = folder};
    REQUIRE(tk_cache_open(&options, &cache) == TK_OK);
    return cache;
}

static bool is_by_cute(void *arg, const tk_cache_entry *entry) {
    *(bool *)arg |= !strcmp(entry->what, "vector_add for sm_90a by cute");
    return true;
}

static void build_twice(tk_cache *cache, const tk_kernel *kernel, bool stages) {
    tk_artifact *first, *second;
    tk_build how = {.target = TK_TARGET_CUTE, .stages = stages};
    bool built;
    size_t bytes, other_bytes;
    REQUIRE(tk_kernel_build_cached(kernel, &how, cache, &first, &built) == TK_OK && built);
    REQUIRE(tk_kernel_build_cached(kernel, &how, cache, &second, &built) == TK_OK && !built);
    const void *binary = tk_artifact_binary(first, &bytes),
               *other = tk_artifact_binary(second, &other_bytes);
    REQUIRE(bytes > 100 && bytes == other_bytes && !memcmp(binary, other, bytes));
    REQUIRE(!strcmp(tk_artifact_identity(first), tk_artifact_identity(second)));
    for (int i = 0; i < TK_STAGE_COUNT; i++) {
        const char *stage = tk_artifact_stage(first, (tk_stage)i),
                   *again = tk_artifact_stage(second, (tk_stage)i);
        REQUIRE(stages ? stage && !strcmp(stage, again) : !stage && !again);
    }
    tk_artifact_release(first);
    tk_artifact_release(second);
}

/* A hit starts no worker; each part of the identity misses. */
static void cached(void) {
    char folder[500], command[600], *text;
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    bool built, listed = false;
    snprintf(folder, sizeof folder, "%s", new_mark("cache"));
    use_package("");
    setenv("TIKI_PTXAS", "/nowhere/ptxas", 1); /* stages without a report */
    tk_cache *cache = open_cache(folder);
    build_twice(cache, kernel, false);
    build_twice(cache, kernel, true);
    REQUIRE(tk_cache_list(cache, is_by_cute, &listed) == TK_OK && listed);
    tk_build how = {.target = TK_TARGET_CUTE, .arch = "sm_90"};
    REQUIRE(tk_kernel_cache_explain(kernel, &how, cache, &text) == TK_OK);
    REQUIRE(strstr(text, "architecture"));
    tk_cache_text_free(text);
    pid_t child = fork(); /* without workers, and with a compiler that would die */
    if (child == 0) {
        setenv("TIKI_FAKE_COMPILER", "die", 1);
        tk_build same = {.target = TK_TARGET_CUTE};
        REQUIRE(tk_kernel_build_cached(kernel, &same, cache, &artifact, &built) == TK_OK);
        REQUIRE(!built);
        _exit(0);
    }
    int state;
    REQUIRE(waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state));
    tk_cache_close(cache);
    tk_kernel_release(kernel);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    REQUIRE(!system(command));
}

/* As an environment of Python keeps a package: found without starting anything. */
static void version_on_disk(void) {
    char folder[500], command[4000], version[64] = "";
    snprintf(folder, sizeof folder, "%s", new_mark("venv"));
    snprintf(command, sizeof command,
             "mkdir -p %s/bin %s/lib/python3.11/site-packages/nvidia_cutlass_dsl-4.8.7.dist-info "
             "%s/lib/python3.11/site-packages/nvidia_cutlass_dsl_libs_base-4.8.9.dist-info && "
             "printf '#!/bin/sh\\nexit 1\\n' >%s/bin/python && chmod +x %s/bin/python",
             folder, folder, folder, folder, folder);
    REQUIRE(!system(command));
    snprintf(command, sizeof command, "%s/bin/python", folder);
    setenv("TIKI_CUTE_PYTHON", command, 1);
    REQUIRE(tk_cute_version_on_disk(version, sizeof version) && !strcmp(version, "4.8.7"));
    REQUIRE(tk_cute_identity(version, sizeof version) == TK_OK && tk_cute_worker_count() == 0);
    snprintf(command, sizeof command, "rm -rf %s/lib", folder);
    REQUIRE(!system(command));
    REQUIRE(!tk_cute_version_on_disk(version, sizeof version));
    REQUIRE(tk_cute_identity(version, sizeof version) == TK_UNSUPPORTED);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    REQUIRE(!system(command));
}

static void test_cache(void **state) {
    (void)state;
    in_child(cached);
    in_child(version_on_disk);
}

/* ---- the real package ---- */

static void use_real(void) {
    setenv("TIKI_CUTE_PYTHON", real_python, 1);
    unsetenv("PYTHONPATH");
}

static long resident_kib(pid_t process) {
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)process);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The one child of this process. */
static pid_t find_worker(void) {
    char path[64];
    int process = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    REQUIRE(file && fscanf(file, "%d", &process) == 1);
    fclose(file);
    return process;
}

static void build_numbered(int number) {
    char source[600];
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY};
    snprintf(source, sizeof source,
             "tiki kernel 1\nkernel store_%d(%%y: ptr<i32, global> write align 4)\nform thread\n"
             "grid (1, 1, 1)\nblock (32, 1, 1)\n{\n  %%v = mul i32(%d), i32(3) : i32\n"
             "  store %%y, %%v\n}\n",
             number, number);
    tk_kernel *kernel = parse_text(source);
    REQUIRE(tk_kernel_build_cute(kernel, &how, &artifact) == TK_OK);
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

/* 200 different kernels: after the first 40 neither side grows by more than 8 MiB. */
static void memory_is_flat(void) {
    use_real();
    for (int i = 0; i < 40; i++) build_numbered(i);
    pid_t worker = find_worker();
    long ours = resident_kib(getpid()), theirs = resident_kib(worker);
    for (int i = 40; i < 200; i++) build_numbered(i);
    long grown = resident_kib(getpid()) - ours, their_grown = resident_kib(worker) - theirs;
    printf("after 200 kernels: host %ld KiB (%+ld), worker %ld KiB (%+ld)\n",
           resident_kib(getpid()), grown, resident_kib(worker), their_grown);
    fflush(stdout);
    REQUIRE(grown < 8192 && their_grown < 8192 && find_worker() == worker);
}

/* The worker inherits a limit of files of no bytes: a disk that is full. */
static void real_disk_is_full(void) {
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY};
    struct rlimit none;
    use_real();
    REQUIRE(!getrlimit(RLIMIT_FSIZE, &none));
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(!setrlimit(RLIMIT_FSIZE, &none));
    REQUIRE(tk_kernel_build_cute(kernel, &how, &artifact) == TK_IO_ERROR);
    REQUIRE(says("the CuTe compiler cannot write its files"));
    tk_kernel_release(kernel);
}

/* Killed by somebody else in the middle of its work. */
static void *kill_worker(void *unused) {
    (void)unused;
    kill(find_worker(), SIGKILL);
    return NULL;
}

static void real_worker_is_killed(void) {
    use_real();
    build_numbered(1);
    pid_t worker = find_worker();
    pthread_t killer;
    REQUIRE(!pthread_create(&killer, NULL, kill_worker, NULL));
    build_numbered(2);
    pthread_join(killer, NULL);
    build_numbered(3);
    REQUIRE(find_worker() != worker && tk_cute_worker_count() == 1);
}

static void test_real(void **state) {
    (void)state;
    if (!*real_python) {
        print_message("skipped: no nvidia-cutlass-dsl; `make test-cute` installs it\n");
        skip();
    }
    in_child(real_worker_is_killed);
    in_child(real_disk_is_full);
    if (support_children_start_threads) in_child(memory_is_flat);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compiler_missing),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_stopping),
                                       cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_real)};
    const char *python = getenv("TIKI_CUTE_PYTHON");
    snprintf(real_python, sizeof real_python, "%s", python ? python : "");
    unsetenv("TIKI_CUTE_LIBRARY");
    return cmocka_run_group_tests(tests, own_slots, no_own_slots);
}
