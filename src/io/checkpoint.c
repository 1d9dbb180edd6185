/* See tiki/checkpoint.h for what is on disk.
 *
 * The order of a commit: files and folder synced, folder renamed to step-N, DIR synced, fixed
 * links, `latest` replaced, DIR synced, old ones pruned. Before `latest` is replaced nothing that a
 * reader resolves has changed; after it everything has. A folder is removed by renaming it to a
 * temporary name first, so a crash while removing never leaves half a step-N.
 *
 * Saving the step that is already the latest is the one case where step-N itself must change: the
 * two folders are then exchanged by one rename. */
#define _GNU_SOURCE /* flock, nftw, lstat */
#include "tiki/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "io/safetensors.h"

#define LATEST "latest"
#define STATE "state.json"

static const char *const linked_names[] = {TK_SAFETENSORS_MODEL, "optimizer.safetensors", STATE};
enum { N_LINKED = sizeof linked_names / sizeof *linked_names };

struct tk_checkpoint_writer {
    int64_t step;
    int lock; /* DIR, locked */
    char *folder;
    char *temporary; /* what is being written */
    char *final;     /* DIR/step-N */
};

/* ---- names ---- */

static void step_name(int64_t step, char name[32]) { snprintf(name, 32, "step-%" PRId64, step); }

/* The step of a name that step_name makes; -1 for others. */
static int64_t parse_step(const char *name) {
    char again[32];
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    errno = 0;
    long long step = strtoll(name + 5, NULL, 10);
    if (errno) return -1;
    step_name(step, again);
    return strcmp(name, again) ? -1 : step;
}

/* The text of a link, cut at `room`; false when there is none or it is something else. */
static bool read_link(const char *path, char *target, size_t room) {
    ssize_t length = readlink(path, target, room - 1);
    if (length < 0) return false;
    target[length] = 0;
    return true;
}

/* The step that DIR/latest names: -1 when there is no such link, -2 when it names something else.
 */
static tk_status latest_step(const char *folder, int64_t *out_step) {
    char target[64];
    char *path = tk_io_join(folder, LATEST);
    if (!path) return tk_io_no_memory(folder);
    *out_step = -1;
    if (read_link(path, target, sizeof target)) {
        *out_step = parse_step(target);
        if (*out_step < 0) *out_step = -2;
    }
    tk_free(path);
    return TK_OK;
}

/* ---- what a checkpoint must hold ---- */

static tk_status check_state_text(const char *path, const tk_mapping *mapping, int64_t step) {
    json_t *state;
    TK_TRY(tk_json_parse(path, (const char *)mapping->data, mapping->bytes, &state));
    const json_t *found = json_object_get(state, "step");
    tk_status status = TK_OK;
    if (!json_is_integer(found))
        status = tk_fail(TK_FORMAT_ERROR, "%.400s: \"step\" must be %" PRId64 ", found %s", path,
                         step, tk_json_kind(found));
    else if (json_integer_value(found) != step)
        status = tk_fail(TK_FORMAT_ERROR, "%.400s: \"step\" must be %" PRId64 ", found %lld", path,
                         step, (long long)json_integer_value(found));
    json_decref(state);
    return status;
}

static tk_status check_state(const char *path, int64_t step) {
    tk_mapping *mapping;
    TK_TRY(tk_mapping_open(path, &mapping));
    tk_status status = check_state_text(path, mapping, step);
    tk_mapping_release(mapping);
    return status;
}

static tk_status check_file(const char *folder, const char *name, int64_t step) {
    struct stat info;
    char *path = tk_io_join(folder, name);
    if (!path) return tk_io_no_memory(folder);
    tk_status status;
    if (stat(path, &info) != 0)
        status = tk_fail(TK_NOT_FOUND, "the checkpoint \"%.400s\" has no file %s", folder, name);
    else
        status = strcmp(name, STATE) ? tk_safetensors_check(path) : check_state(path, step);
    tk_free(path);
    return status;
}

static tk_status check_files(const char *folder, int64_t step) {
    for (int i = 0; i < N_LINKED; i++) TK_TRY(check_file(folder, linked_names[i], step));
    return TK_OK;
}

/* ---- folders ---- */

typedef struct names {
    TK_VEC(char *) list;
} names;

static void names_deinit(names *n) {
    for (size_t i = 0; i < n->list.count; i++) tk_free(n->list.items[i]);
    tk_vec_deinit(&n->list);
}

static tk_status list_names(const char *folder, const char *prefix, names *out_names) {
    DIR *stream = opendir(folder);
    if (!stream) return tk_io_fail(folder, "list");
    tk_status status = TK_OK;
    for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        char *name = tk_strdup(entry->d_name);
        if (name && tk_vec_push(&out_names->list, name)) continue;
        tk_free(name);
        status = tk_io_no_memory(folder);
        break;
    }
    closedir(stream);
    return status;
}

static tk_status remove_any(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) return tk_io_fail(path, "look at");
    return S_ISDIR(info.st_mode) ? tk_io_remove_folder(path) : tk_io_remove(path);
}

static tk_status remove_named(const char *folder, const char *name) {
    char *path = tk_io_join(folder, name);
    tk_status status = path ? remove_any(path) : tk_io_no_memory(folder);
    tk_free(path);
    return status;
}

/* Removes a folder whose name is a promise that it is whole. */
static tk_status retire(const char *path) {
    char *temporary = tk_io_temporary(path);
    if (!temporary) return tk_io_no_memory(path);
    tk_status status = tk_io_rename(path, temporary);
    if (status == TK_OK) status = tk_io_remove_folder(temporary);
    tk_free(temporary);
    return status;
}

static int sync_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info;
    (void)walk;
    return (kind == FTW_F || kind == FTW_DP) && tk_io_sync_path(path) != TK_OK;
}

static tk_status sync_all(const char *folder) {
    int failed = nftw(folder, sync_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (failed > 0) return tk_error_code();
    return failed == 0 ? TK_OK : tk_io_fail(folder, "sync");
}

/* ---- begin ---- */

static tk_status make_run_folder(const char *folder) {
    struct stat info;
    if (stat(folder, &info) == 0) {
        if (S_ISDIR(info.st_mode)) return TK_OK;
        return tk_fail(TK_IO_ERROR, "%.400s: a folder is expected, this is a file", folder);
    }
    return errno == ENOENT ? tk_io_make_folder(folder) : tk_io_fail(folder, "look at");
}

static tk_status lock_folder(const char *folder, int *out_lock) {
    *out_lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out_lock < 0) return tk_io_fail(folder, "open");
    if (flock(*out_lock, LOCK_EX | LOCK_NB) == 0) return TK_OK;
    if (errno != EWOULDBLOCK) return tk_io_fail(folder, "lock");
    return tk_fail(TK_IO_ERROR, "%.400s: another checkpoint is being written here", folder);
}

/* A name that is to be a link to `target` (NULL: to any step) must not be something else. */
static tk_status check_link(const char *folder, const char *name, const char *target) {
    struct stat info;
    char found[64];
    char *path = tk_io_join(folder, name);
    if (!path) return tk_io_no_memory(folder);
    tk_status status = TK_OK;
    bool is_right = lstat(path, &info) != 0;
    if (!is_right && read_link(path, found, sizeof found))
        is_right = target ? !strcmp(found, target) : parse_step(found) >= 0;
    if (!is_right)
        status = tk_fail(TK_INVALID_ARGUMENT,
                         "%.400s must be a link to %s, found something else: use another folder or "
                         "move it away",
                         path, target ? target : "a checkpoint");
    tk_free(path);
    return status;
}

static void fixed_target(const char *name, char target[64]) {
    snprintf(target, 64, LATEST "/%s", name);
}

static tk_status check_links(const char *folder) {
    TK_TRY(check_link(folder, LATEST, NULL));
    for (int i = 0; i < N_LINKED; i++) {
        char target[64];
        fixed_target(linked_names[i], target);
        TK_TRY(check_link(folder, linked_names[i], target));
    }
    return TK_OK;
}

static tk_status remove_leftovers(const char *folder) {
    names found = {0};
    tk_status status = list_names(folder, TK_IO_TEMPORARY, &found);
    for (size_t i = 0; status == TK_OK && i < found.list.count; i++)
        status = remove_named(folder, found.list.items[i]);
    names_deinit(&found);
    return status;
}

static tk_status begin(tk_checkpoint_writer *c) {
    TK_TRY(make_run_folder(c->folder));
    TK_TRY(lock_folder(c->folder, &c->lock));
    TK_TRY(check_links(c->folder));
    TK_TRY(remove_leftovers(c->folder));
    return tk_io_make_folder(c->temporary);
}

static void free_checkpoint(tk_checkpoint_writer *c) {
    if (c->lock >= 0) close(c->lock);
    tk_free(c->folder);
    tk_free(c->temporary);
    tk_free(c->final);
    tk_free(c);
}

static tk_checkpoint_writer *new_checkpoint(const char *folder, int64_t step) {
    char name[32];
    tk_checkpoint_writer *c = tk_calloc(1, sizeof *c);
    if (!c) return NULL;
    step_name(step, name);
    c->step = step;
    c->lock = -1;
    c->folder = tk_strdup(folder);
    c->final = tk_io_join(folder, name);
    c->temporary = c->final ? tk_io_temporary(c->final) : NULL;
    if (c->folder && c->temporary) return c;
    free_checkpoint(c);
    return NULL;
}

tk_status tk_checkpoint_begin(const char *folder, int64_t step,
                              tk_checkpoint_writer **out_checkpoint) {
    TK_NEED(folder, out_checkpoint);
    if (!folder[0])
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tk_checkpoint_begin: the name of the folder is missing");
    if (step < 0)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tk_checkpoint_begin: the step is %" PRId64 ", 0 or more expected", step);
    tk_checkpoint_writer *c = new_checkpoint(folder, step);
    if (!c) return tk_io_no_memory(folder);
    tk_status status = begin(c);
    if (status == TK_OK)
        *out_checkpoint = c;
    else
        free_checkpoint(c);
    return status;
}

const char *tk_checkpoint_path(const tk_checkpoint_writer *checkpoint) {
    return checkpoint ? checkpoint->temporary : NULL;
}

/* ---- commit ---- */

/* Gives the folder its name. *out_visible: it is already the latest. */
static tk_status place(const tk_checkpoint_writer *c, bool *out_visible) {
    struct stat info;
    int64_t latest;
    TK_TRY(latest_step(c->folder, &latest));
    bool exists = lstat(c->final, &info) == 0;
    *out_visible = exists && latest == c->step;
    if (*out_visible) return tk_io_exchange(c->temporary, c->final);
    if (exists) TK_TRY(retire(c->final));
    return tk_io_rename(c->temporary, c->final);
}

static tk_status make_link(const char *folder, const char *name) {
    struct stat info;
    char target[64];
    char *path = tk_io_join(folder, name);
    if (!path) return tk_io_no_memory(folder);
    fixed_target(name, target);
    tk_status status = lstat(path, &info) == 0 ? TK_OK : tk_io_link(target, path);
    tk_free(path);
    return status;
}

static tk_status replace_latest(const tk_checkpoint_writer *c) {
    char name[32];
    step_name(c->step, name);
    char *path = tk_io_join(c->folder, LATEST), *temporary = path ? tk_io_temporary(path) : NULL;
    tk_status status = temporary ? tk_io_link(name, temporary) : tk_io_no_memory(c->folder);
    if (status == TK_OK) {
        status = tk_io_rename(temporary, path);
        if (status != TK_OK) unlink(temporary);
    }
    tk_free(temporary);
    tk_free(path);
    return status;
}

static tk_status switch_links(const tk_checkpoint_writer *c) {
    TK_TRY(tk_io_sync_path(c->folder));
    for (int i = 0; i < N_LINKED; i++) TK_TRY(make_link(c->folder, linked_names[i]));
    return replace_latest(c);
}

static int newer_first(const void *left, const void *right) {
    int64_t a = parse_step(*(char *const *)left), b = parse_step(*(char *const *)right);
    return a > b ? -1 : a < b;
}

static tk_status prune(const tk_checkpoint_writer *c, int keep) {
    names found = {0};
    tk_status status = list_names(c->folder, "step-", &found);
    if (found.list.count)
        qsort(found.list.items, found.list.count, sizeof *found.list.items, newer_first);
    int kept = 0;
    for (size_t i = 0; status == TK_OK && i < found.list.count; i++) {
        int64_t step = parse_step(found.list.items[i]);
        if (step < 0 || (step <= c->step && (keep == 0 || kept++ < keep))) continue;
        char *path = tk_io_join(c->folder, found.list.items[i]);
        status = path ? retire(path) : tk_io_no_memory(c->folder);
        tk_free(path);
    }
    names_deinit(&found);
    return status;
}

/* What remains to be done when the new checkpoint is the latest. */
static tk_status finish(const tk_checkpoint_writer *c, bool exchanged, int keep) {
    tk_status status = tk_io_sync_path(c->folder);
    if (status == TK_OK && exchanged) status = tk_io_remove_folder(c->temporary);
    if (status == TK_OK) status = prune(c, keep);
    if (status == TK_OK) return TK_OK;
    return tk_fail_within(status, "step %" PRId64 " is saved, but what follows failed", c->step);
}

/* Cleans up after `status`, whose message stays even if the clean-up fails too. */
static tk_status remove_after(tk_status status, const char *folder) {
    char message[TK_ERROR_MESSAGE_BYTES];
    struct stat info;
    if (lstat(folder, &info) != 0) return status;
    snprintf(message, sizeof message, "%s", tk_error_message());
    (void)tk_io_remove_folder(folder);
    return tk_fail_again(status, message);
}

static tk_status commit(const tk_checkpoint_writer *c, int keep) {
    bool visible = false;
    TK_TRY(check_files(c->temporary, c->step));
    TK_TRY(sync_all(c->temporary));
    TK_TRY(place(c, &visible));
    tk_status status = visible ? TK_OK : switch_links(c);
    if (status != TK_OK) return remove_after(status, c->final);
    return finish(c, visible, keep);
}

tk_status tk_checkpoint_commit(tk_checkpoint_writer *checkpoint, int keep) {
    TK_NEED(checkpoint);
    tk_status status = TK_OK;
    if (keep < 0)
        status = tk_fail(TK_INVALID_ARGUMENT,
                         "tk_checkpoint_commit: keep is %d, 0 or more expected", keep);
    if (status == TK_OK) status = commit(checkpoint, keep);
    if (status != TK_OK) status = remove_after(status, checkpoint->temporary);
    free_checkpoint(checkpoint);
    return status;
}

void tk_checkpoint_abandon(tk_checkpoint_writer *checkpoint) {
    if (!checkpoint) return;
    tk_io_remove_folder(checkpoint->temporary);
    free_checkpoint(checkpoint);
}

/* ---- finding ---- */

tk_status tk_checkpoint_latest(const char *folder, int64_t *out_step, char **out_path) {
    TK_NEED(folder);
    char name[32];
    int64_t step;
    TK_TRY(latest_step(folder, &step));
    if (step == -1) return tk_fail(TK_NOT_FOUND, "%.400s: there is no checkpoint", folder);
    if (step < 0)
        return tk_fail(TK_FORMAT_ERROR, "%.400s/" LATEST ": a link to step-N is expected", folder);
    step_name(step, name);
    char *path = tk_io_join(folder, name);
    tk_status status = path ? check_files(path, step) : tk_io_no_memory(folder);
    if (status == TK_OK && out_step) *out_step = step;
    if (status == TK_OK && out_path)
        *out_path = path;
    else
        tk_free(path);
    return status;
}
