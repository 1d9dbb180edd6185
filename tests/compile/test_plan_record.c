/* Plans on disk: what comes back launches as what was noted, each part of a call has a note of its
 * own and is named, and a process that finds notes and binaries starts no assembler; without the
 * binaries it makes them again. Plans are kept for the life of a process, so this program starts
 * itself: `test START ID...` runs calls on the stand-in when descriptor START (-1: none) ends. */
#define _GNU_SOURCE
#include "support/arrays.h"
#include "support/sanitizer.h"
#include "support/says.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compile/plan_record.h"
#include "compile/plans.h"
#include "runtime/artifact_cache.h"
#include "runtime/buffer.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_stream.h"
#include "runtime/standin/standin.h"
#include "target/artifact.h"

static standin fake;
static char folder[400], program[500], count_file[500], cache_folder[500];

/* What the stand-in assembler makes of a text is the text, which the stand-in driver reads. */
static int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%s/plans-XXXXXX", base ? base : "/tmp");
    if (!standin_open(&fake) || !mkdtemp(folder)) return -1;
    snprintf(program, sizeof program, "%s/ptxas", folder);
    snprintf(count_file, sizeof count_file, "%s/count", folder);
    snprintf(cache_folder, sizeof cache_folder, "%s/cache", folder);
    FILE *file = fopen(program, "w");
    if (!file) return -1;
    fprintf(file, "#!/bin/sh\necho run >>%s\nexec cp \"$5\" \"$4\"\n", count_file);
    fclose(file);
    if (chmod(program, 0700) || setenv("TIKI_PTXAS", program, 1)) return -1;
    if (setenv("TIKI_CACHE", cache_folder, 1)) return -1;
    return setenv("TIKI_CUDA_DRIVER", standin_path(), 1);
}

static int remove_folder(void **state) {
    char command[600];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int runs(void) {
    struct stat info;
    return stat(count_file, &info) ? 0 : (int)(info.st_size / 4);
}

/* ---- calls ---- */

static tk_library_tensor tensor(tk_kscalar element, int rank, int64_t rows, int64_t columns) {
    tk_library_tensor t;
    memset(&t, 0, sizeof t);
    t.element = element;
    t.rank = rank;
    t.align = 16;
    t.shape[0] = rank == 1 ? columns : rows;
    t.stride[0] = rank == 1 ? 1 : columns;
    if (rank < 2) return t;
    t.shape[1] = columns;
    t.stride[1] = 1;
    return t;
}

static tk_plan_key key_of(tk_library_id id) {
    tk_plan_key key;
    memset(&key, 0, sizeof key);
    key.id = (uint32_t)id;
    key.n_tensors = tk_library_tensors(id);
    key.n_numbers = tk_library_numbers(id);
    for (size_t i = 0; i < key.n_tensors; i++) key.tensors[i] = tensor(TK_K_BF16, 2, 256, 256);
    bool norm = id == TK_LIBRARY_RMS_NORM || id == TK_LIBRARY_RMS_NORM_BACKWARD;
    if (norm || id == TK_LIBRARY_COLUMN_SUM) key.tensors[1] = tensor(TK_K_BF16, 1, 1, 256);
    if (id == TK_LIBRARY_RMS_NORM) key.tensors[3] = tensor(TK_K_F32, 1, 1, 256);
    if (id == TK_LIBRARY_RMS_NORM_BACKWARD) key.tensors[4] = tensor(TK_K_BF16, 1, 1, 256);
    return key;
}

static tk_library_plan *plan_of(const tk_plan_key *key) {
    tk_library_plan *plan;
    double numbers[TK_PLAN_NUMBERS];
    memcpy(numbers, key->numbers, sizeof numbers);
    assert_ok(tk_library_plan_create((tk_library_id)key->id, key->n_tensors, key->tensors,
                                     key->n_numbers, numbers,
                                     key->has_schedule ? &key->schedule : NULL, &plan));
    return plan;
}

/* ---- notes ---- */

static void assert_same_launch(const tk_library_step *noted, const tk_library_step *read,
                               const tk_body_facts *facts) {
    static const tk_kdevice device = {.sms = 132, .shared_bytes = 227 << 10, .threads = 2048};
    tk_kargument arguments[32] = {{0}};
    tk_klaunch first, second;
    unsigned char digest[TK_SHA256_BYTES];
    tk_kshared_map shared;
    assert_string_equal(tk_kernel_name(noted->kernel), tk_kernel_name(read->kernel));
    assert_int_equal(noted->arguments.count, read->arguments.count);
    for (size_t i = 0; i < noted->arguments.count; i++) {
        tk_library_argument argument = noted->arguments.items[i], again = read->arguments.items[i];
        assert_int_equal(argument.kind, again.kind);
        assert_int_equal(argument.index, again.index);
        assert_int_equal(argument.bits, again.bits);
        arguments[i].bits = argument.kind == TK_LIBRARY_NUMBER ? argument.bits : 4096 * (i + 1);
    }
    assert_ok(tk_kernel_launch(noted->kernel, &device, noted->arguments.count, arguments, &first));
    assert_ok(tk_kernel_launch(read->kernel, &device, read->arguments.count, arguments, &second));
    assert_memory_equal(&first, &second, sizeof first);
    for (int i = 0; i < tk_kernel_params(noted->kernel); i++) {
        tk_kparam a, b;
        assert_ok(tk_kernel_param(noted->kernel, i, &a));
        assert_ok(tk_kernel_param(read->kernel, i, &b));
        assert_string_equal(a.name, b.name);
        if (a.type.kind == TK_KT_POINTER) assert_true(a.access == b.access && a.align == b.align);
    }
    assert_ok(tk_kernel_digest(noted->kernel, false, digest));
    assert_memory_equal(digest, facts->digest, sizeof digest);
    assert_ok(tk_kshared_place(noted->kernel, NULL, &shared));
    assert_memory_equal(&shared, &facts->shared, sizeof shared);
}

static void test_every_kernel_comes_back(void **state) {
    (void)state;
    for (int id = 0; id < TK_LIBRARY_COUNT; id++) {
        tk_plan_key key = key_of((tk_library_id)id);
        assert_null(tk_plan_recall(&key));
        tk_library_plan *plan = plan_of(&key);
        tk_plan_note(&key, plan);
        tk_kept_plan *kept = tk_plan_recall(&key);
        assert_non_null(kept);
        assert_non_null(kept->facts);
        assert_int_equal(kept->plan->scratches.count, plan->scratches.count);
        for (size_t i = 0; i < plan->scratches.count; i++)
            assert_int_equal(kept->plan->scratches.items[i], plan->scratches.items[i]);
        assert_int_equal(kept->plan->steps.count, plan->steps.count);
        for (size_t i = 0; i < plan->steps.count; i++)
            assert_same_launch(&plan->steps.items[i], &kept->plan->steps.items[i], &kept->facts[i]);
        tk_kept_plan_release(kept);
        tk_library_plan_release(plan);
    }
}

/* ---- parts of the key ---- */

typedef struct seen {
    char digests[100][65];
    int count;
    char newest[65]; /* that was not seen before, "" for none */
} seen;

static bool look(void *arg, const tk_cache_entry *entry) {
    seen *s = arg;
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->digests[i], entry->digest)) return true;
    assert_true(s->count < 100);
    memcpy(s->digests[s->count++], entry->digest, 65);
    memcpy(s->newest, entry->digest, 65);
    return true;
}

static const char *newest(seen *s) {
    s->newest[0] = 0;
    assert_ok(tk_cache_list(tk_artifact_cache(), look, s));
    return s->newest;
}

static int lines_of(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

/* The changed call is not found; noted, it differs from its nearest in that part alone. */
static void assert_misses(seen *s, const tk_plan_key *changed, const tk_library_plan *plan,
                          const char *part) {
    char *text, line[40];
    assert_null(tk_plan_recall(changed));
    tk_plan_note(changed, plan);
    assert_int_equal(strlen(newest(s)), 64);
    assert_ok(tk_cache_explain(tk_artifact_cache(), s->newest, &text));
    const char *differences = strstr(text, "which differs in\n");
    assert_non_null(strstr(text, "  generator: 64 bytes"));
    assert_non_null(differences);
    snprintf(line, sizeof line, "\n  %s: here ", part);
    if (!strstr(differences, line) || lines_of(differences) != 2)
        fail_msg("'%s' is not the only difference in\n%s", part, text);
    tk_cache_text_free(text);
}

static void test_each_part_of_a_call(void **state) {
    static seen all;
    tk_plan_key key = key_of(TK_LIBRARY_RMS_NORM), changed;
    (void)state;
    tk_library_plan *plan = plan_of(&key);
    tk_plan_note(&key, plan);
    (void)newest(&all);
#define MISSES(part, change)                                                                       \
    changed = key;                                                                                 \
    changed.change;                                                                                \
    assert_misses(&all, &changed, plan, part)
    MISSES("tensors", tensors[0].shape[0]++);
    MISSES("tensors", tensors[1].shape[0]++);
    MISSES("tensors", tensors[0].stride[0]++);
    MISSES("tensors", tensors[0].align = 8);
    MISSES("tensors", tensors[1].element = TK_K_F16);
    MISSES("tensors", tensors[3].rank = -1);
    MISSES("numbers", numbers[0] = 1);
    MISSES("schedule", no_clusters = 1);
    MISSES("schedule", has_schedule = 1);
    for (size_t i = 0; i < sizeof key.schedule / sizeof(int64_t); i++) {
        changed = key;
        changed.has_schedule = 1;
        memcpy((char *)&changed.schedule + i * sizeof(int64_t), &(int64_t){77}, sizeof(int64_t));
        assert_misses(&all, &changed, plan, "schedule");
    }
    MISSES("note", id = TK_LIBRARY_GEMM); /* whose own notes differ in more parts */
    tk_library_plan_release(plan);
}

/* ---- processes ---- */

#define NEED(condition)                                                                            \
    if (!(condition)) return __LINE__

/* 0, or the line that failed. */
static int run_call(tk_library_id id) {
    tk_device *device;
    tk_queue *queue;
    tk_plan_key key = key_of(id);
    tk_strided views[TK_PLAN_TENSORS];
    tk_buffer *buffers[TK_PLAN_TENSORS];
    double number = 0;
    NEED(tk_device_open(&tk_driver_cuda, 0, NULL, &device) == TK_OK);
    NEED(tk_cuda_queue_open(tk_cuda_of(device), &queue) == TK_OK);
    for (size_t i = 0; i < key.n_tensors; i++) {
        views[i] = (tk_strided){.rank = key.tensors[i].rank, .size = 1, .dtype = TK_BFLOAT16};
        if (key.tensors[i].element == TK_K_F32) views[i].dtype = TK_FLOAT32;
        for (int axis = views[i].rank - 1; axis >= 0; axis--) {
            views[i].shape[axis] = key.tensors[i].shape[axis];
            views[i].strides[axis] = views[i].size;
            views[i].size *= views[i].shape[axis];
        }
        NEED(tk_buffer_new_on(device, queue, 1 << 20, &buffers[i]) == TK_OK);
        views[i].data = buffers[i]->data;
    }
    tk_body_call call = {.device = device, .queue = queue};
    tk_library_run run = {.id = id,
                          .n_tensors = key.n_tensors,
                          .tensors = views,
                          .n_numbers = key.n_numbers,
                          .numbers = &number};
    NEED(tk_run_library(&call, &run) == TK_OK);
    NEED(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL) == TK_OK);
    NEED(fake.standin_count("cuLaunchKernelEx") >= 1);
    for (size_t i = 0; i < key.n_tensors; i++) tk_buffer_release(buffers[i]);
    tk_cuda_queue_close(queue);
    tk_device_close(device);
    NEED(fake.standin_live() == 0);
    return 0;
}

/* The calls of a started process: 0, or what failed. */
static int run_calls(int argc, char **argv) {
    char byte;
    int start = atoi(argv[1]);
    if (!standin_open(&fake)) return 1;
    if (start >= 0 && read(start, &byte, 1) != 0) return 2;
    for (int i = 2; i < argc; i++) {
        int line = run_call((tk_library_id)atoi(argv[i]));
        if (line) return line % 250 + 3;
    }
    return 0;
}

static pid_t start_calls(int start, const tk_library_id *ids, int count) {
    char numbers[5][12];
    char *argv[7] = {"test"};
    assert_true(count <= 4);
    for (int i = 0; i <= count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i ? (int)ids[i - 1] : start);
        argv[1 + i] = numbers[i];
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    return child;
}

static void end_calls(pid_t child) {
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    if (WEXITSTATUS(code)) fail_msg("a child ended with %d", WEXITSTATUS(code));
}

static void run_in_child(tk_library_id id) { end_calls(start_calls(-1, &id, 1)); }

/* Notes stay. */
static bool drop_binary(void *arg, const tk_cache_entry *entry) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", (const char *)arg, entry->digest);
    if (!entry->is_note) assert_int_equal(unlink(path), 0);
    return true;
}

static void test_a_second_process_builds_nothing(void **state) {
    char folder_of_test[600];
    tk_cache *cache;
    (void)state;
    snprintf(folder_of_test, sizeof folder_of_test, "%s/processes", folder);
    assert_int_equal(setenv("TIKI_CACHE", folder_of_test, 1), 0);
    for (int id = 0; id < TK_LIBRARY_COUNT; id++) {
        int before = runs();
        run_in_child((tk_library_id)id);
        int built = runs() - before;
        assert_true(built >= 1);
        run_in_child((tk_library_id)id);
        assert_int_equal(runs() - before, built);
        tk_cache_options options = {.folder = folder_of_test};
        assert_ok(tk_cache_open(&options, &cache));
        assert_ok(tk_cache_list(cache, drop_binary, folder_of_test));
        tk_cache_close(cache);
        run_in_child((tk_library_id)id);
        assert_int_equal(runs() - before, 2 * built);
    }
    assert_int_equal(setenv("TIKI_CACHE", cache_folder, 1), 0);
}

static const tk_library_id few[] = {TK_LIBRARY_SOFTMAX, TK_LIBRARY_COLUMN_SUM, TK_LIBRARY_GEMM};

static void use_folder(const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(setenv("TIKI_CACHE", path, 1), 0);
}

/* All at once on an empty cache: each kernel is assembled once, and all run. */
static void test_two_hundred_processes(void **state) {
    (void)state;
    enum { MOST = 200 };
    int count = SUPPORT_ASAN || SUPPORT_TSAN ? 30 : MOST, ends[2], alone = runs();
    pid_t children[MOST];
    use_folder("alone");
    for (int i = 0; i < 3; i++) run_in_child(few[i]);
    alone = runs() - alone;
    use_folder("together");
    int before = runs();
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    for (int i = 0; i < count; i++) children[i] = start_calls(ends[0], few, 3);
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < count; i++) end_calls(children[i]);
    assert_int_equal(runs() - before, alone);
    use_folder("cache");
}

static bool count_entry(void *arg, const tk_cache_entry *entry) {
    (void)entry;
    ++*(int *)arg;
    return true;
}

static int entries_of(const char *name) {
    char path[600];
    int count = 0;
    tk_cache *cache;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tk_cache_options options = {.folder = path};
    assert_ok(tk_cache_open(&options, &cache));
    assert_ok(tk_cache_list(cache, count_entry, &count));
    tk_cache_close(cache);
    return count;
}

/* Caches that keep nothing cost time alone. */
static void test_caches_that_keep_nothing(void **state) {
    (void)state;
    use_folder("read-only");
    run_in_child(TK_LIBRARY_SOFTMAX);
    int there = entries_of("read-only"), before = runs();
    assert_int_equal(setenv("TIKI_CACHE_READ_ONLY", "1", 1), 0);
    run_in_child(TK_LIBRARY_SOFTMAX);
    assert_int_equal(runs(), before);
    run_in_child(TK_LIBRARY_COLUMN_SUM);
    assert_int_equal(runs(), before + 2);
    assert_int_equal(unsetenv("TIKI_CACHE_READ_ONLY"), 0);
    assert_int_equal(entries_of("read-only"), there);
    assert_int_equal(setenv("TIKI_CACHE", "/dev/null/nowhere", 1), 0);
    run_in_child(TK_LIBRARY_COLUMN_SUM);
    assert_int_equal(runs(), before + 4);
    use_folder("cache");
}

/* A note that is cut, or whose bytes are others, is as good as none. */
static bool damage(void *arg, const tk_cache_entry *entry) {
    char path[600];
    if (!strstr(entry->what, "call: ")) return true;
    snprintf(path, sizeof path, "%s/%s", (const char *)arg, entry->digest);
    assert_int_equal(truncate(path, (off_t)entry->bytes - 1), 0);
    return true;
}

static void test_damaged_notes(void **state) {
    (void)state;
    tk_plan_key key = key_of(TK_LIBRARY_GEMM);
    tk_library_plan *plan = plan_of(&key);
    tk_plan_note(&key, plan);
    assert_ok(tk_cache_list(tk_artifact_cache(), damage, cache_folder));
    assert_null(tk_plan_recall(&key));
    tk_plan_note(&key, plan);
    tk_kept_plan *kept = tk_plan_recall(&key);
    assert_non_null(kept);
    tk_kept_plan_release(kept);
    tk_library_plan_release(plan);
}

/* ---- notes that somebody else wrote ---- */

enum { MOST_PARTS = 8 };

/* The key of an entry as parts to write it again by. */
static int parts_of(const tk_cache_record *entry, tk_key_part parts[MOST_PARTS],
                    char names[MOST_PARTS][40]) {
    size_t offset = 0, length;
    int count = 0;
    while (count < MOST_PARTS && tk_key_next(entry, &offset, &parts[count], &length)) {
        snprintf(names[count], sizeof names[count], "%.*s", (int)length, parts[count].name);
        parts[count].name = names[count];
        count++;
    }
    return count;
}

/* Whatever has sound checksums is read without harm: cut, or with bytes changed. */
static void test_strange_notes(void **state) {
    static seen all;
    tk_plan_key key = key_of(TK_LIBRARY_RMS_NORM_BACKWARD);
    tk_key_part parts[MOST_PARTS];
    char names[MOST_PARTS][40];
    unsigned char digest[TK_SHA256_BYTES], *bytes, *payload;
    tk_cache_record entry;
    tk_cache *cache = tk_artifact_cache();
    (void)state;
    key.numbers[0] = 12345;
    (void)newest(&all);
    tk_library_plan *plan = plan_of(&key);
    tk_plan_note(&key, plan);
    tk_library_plan_release(plan);
    assert_true(tk_cache_is_entry(newest(&all), digest));
    assert_true(tk_cache_find_entry(cache, digest, &bytes, &entry));
    int count = parts_of(&entry, parts, names);
    payload = malloc(entry.payload_bytes);
    assert_non_null(payload);
    for (size_t at = 0; at < entry.payload_bytes; at += 1 + entry.payload_bytes / 150) {
        assert_true(tk_cache_put(cache, parts, count, entry.payload, at));
        assert_null(tk_plan_recall(&key));
        memcpy(payload, entry.payload, entry.payload_bytes);
        payload[at] = (unsigned char)(payload[at] ^ (at % 3 ? 0xff : 1));
        assert_true(tk_cache_put(cache, parts, count, payload, entry.payload_bytes));
        tk_kept_plan_release(tk_plan_recall(&key));
    }
    assert_true(tk_cache_put(cache, parts, count, entry.payload, entry.payload_bytes));
    tk_kept_plan *kept = tk_plan_recall(&key);
    assert_non_null(kept);
    tk_kept_plan_release(kept);
    free(payload);
    tk_free(bytes);
}

int main(int argc, char **argv) {
    if (argc > 1) return run_calls(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_process_builds_nothing),
        cmocka_unit_test(test_two_hundred_processes),
        cmocka_unit_test(test_caches_that_keep_nothing),
        cmocka_unit_test(test_every_kernel_comes_back),
        cmocka_unit_test(test_each_part_of_a_call),
        cmocka_unit_test(test_damaged_notes),
        cmocka_unit_test(test_strange_notes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
