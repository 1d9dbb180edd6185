/* The artifact cache: opening, reading, publishing, building once. Tools for people who look after
 * it are in artifact_tools.c.
 *
 * A file is written under a temporary name in the same folder, synced, and renamed; the folder is
 * synced after it. A process killed in between leaves a temporary file, which pruning removes.
 * Rejected: one file with all entries (needs locks for readers), a folder a digest's first byte (no
 * file system in use is slow with some thousand names, and everything else gets longer). */
#define _GNU_SOURCE
#include "runtime/artifact_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define DEFAULT_LIMIT ((size_t)1 << 30)
#define LOCK_SECONDS 120.0
#define TOUCH_SECONDS 60 /* a use is noted when the last note is older */
#define WARNING_BYTES 512

struct tk_cache {
    char folder[TK_CACHE_PATH_BYTES]; /* "" : none */
    size_t limit;
    bool read_only;
    _Atomic uint32_t temporaries;
    pthread_mutex_t lock;
    char warning[WARNING_BYTES];
};

/* ---- small things -----------------------------------------------------------------------------
 */

void tk_cache_warn(tk_cache *cache, const char *format, ...) {
    char text[WARNING_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&cache->lock);
    memcpy(cache->warning, text, sizeof text);
    pthread_mutex_unlock(&cache->lock);
}

size_t tk_cache_warning(tk_cache *cache, char *text, size_t bytes) {
    if (text && bytes) text[0] = 0;
    if (!cache) return 0;
    pthread_mutex_lock(&cache->lock);
    size_t length = strlen(cache->warning);
    if (text && bytes) snprintf(text, bytes, "%s", cache->warning);
    pthread_mutex_unlock(&cache->lock);
    return length;
}

bool tk_cache_path(const tk_cache *cache, const char *name, char path[TK_CACHE_PATH_BYTES]) {
    if (!cache->folder[0]) return false;
    int length = snprintf(path, TK_CACHE_PATH_BYTES, "%s/%s", cache->folder, name);
    return length > 0 && length < TK_CACHE_PATH_BYTES;
}

bool tk_cache_is_read_only(const tk_cache *cache) { return cache->read_only; }

const char *tk_cache_folder(const tk_cache *cache) { return cache ? cache->folder : ""; }

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tk_cache_is_entry(const char *name, unsigned char out_digest[TK_SHA256_BYTES]) {
    if (strlen(name) != 2 * TK_SHA256_BYTES) return false;
    for (int i = 0; i < TK_SHA256_BYTES; i++) {
        int high = hex_digit(name[2 * i]), low = hex_digit(name[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out_digest[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static bool belongs_to_us(const struct stat *status) {
    return status->st_uid == geteuid() && (status->st_mode & 022) == 0;
}

/* Makes the folder and those above it. */
static bool make_folders(char *path) {
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST || errno == EACCES || errno == EROFS;
        *at = '/';
        if (!made) return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool set_environment(const char *name) {
    const char *value = getenv(name);
    return value && value[0] && strcmp(value, "0") != 0;
}

static bool choose_folder(const char *given, char folder[TK_CACHE_PATH_BYTES]) {
    const char *own = getenv("TIKI_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int length = -1;
    if (given || (own && own[0]))
        length = snprintf(folder, TK_CACHE_PATH_BYTES, "%s", given ? given : own);
    else if (cache && cache[0])
        length = snprintf(folder, TK_CACHE_PATH_BYTES, "%s/tiki", cache);
    else if (home && home[0])
        length = snprintf(folder, TK_CACHE_PATH_BYTES, "%s/.cache/tiki", home);
    return length > 0 && length < TK_CACHE_PATH_BYTES;
}

static size_t choose_limit(tk_cache *cache, size_t given) {
    const char *mib = getenv("TIKI_CACHE_MIB");
    if (given) return given;
    if (!mib || !*mib) return DEFAULT_LIMIT;
    char *end;
    unsigned long long value = strtoull(mib, &end, 10);
    if (!*end && value && value < SIZE_MAX >> 20) return (size_t)value << 20;
    tk_cache_warn(cache,
                  "TIKI_CACHE_MIB is \"%.40s\", expected a number of MiB from 1; %zu is used", mib,
                  DEFAULT_LIMIT >> 20);
    return DEFAULT_LIMIT;
}

/* A relative name is made whole, since the process may change its folder; false: no such folder. */
static bool fix_folder(tk_cache *cache) {
    if (cache->folder[0] == '/') return true;
    char *whole = realpath(cache->folder, NULL);
    bool fits = whole && strlen(whole) < sizeof cache->folder;
    if (fits) memcpy(cache->folder, whole, strlen(whole) + 1);
    free(whole); /* realpath's own */
    return fits;
}

/* Takes the folder into use, or says why not and forgets it. */
static void use_folder(tk_cache *cache) {
    struct stat status;
    if (!cache->read_only && !make_folders(cache->folder)) {
        tk_cache_warn(cache, "no cache: %s cannot be made (%s)", cache->folder, strerror(errno));
    } else if (!fix_folder(cache) || stat(cache->folder, &status) != 0 ||
               !S_ISDIR(status.st_mode)) {
        tk_cache_warn(cache, "no cache: %s is no folder", cache->folder);
    } else if (!belongs_to_us(&status)) {
        tk_cache_warn(cache, "no cache: %s belongs to somebody else or others may write to it",
                      cache->folder);
    } else {
        return;
    }
    cache->folder[0] = 0;
}

tk_status tk_cache_open(const tk_cache_options *options, tk_cache **out_cache) {
    TK_NEED(out_cache);
    tk_cache *cache = tk_calloc(1, sizeof *cache);
    *out_cache = cache;
    if (!cache) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a cache");
    pthread_mutex_init(&cache->lock, NULL);
    cache->limit = choose_limit(cache, options ? options->limit : 0);
    cache->read_only = (options && options->read_only) || set_environment("TIKI_CACHE_READ_ONLY");
    if (choose_folder(options ? options->folder : NULL, cache->folder)) {
        use_folder(cache);
    } else {
        cache->folder[0] = 0;
        tk_cache_warn(cache, "no cache: neither TIKI_CACHE nor XDG_CACHE_HOME nor HOME is set");
    }
    return TK_OK;
}

void tk_cache_close(tk_cache *cache) {
    if (!cache) return;
    pthread_mutex_destroy(&cache->lock);
    tk_free(cache);
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static bool read_all(int file, unsigned char *to, size_t bytes) {
    while (bytes > 0) {
        ssize_t part = read(file, to, bytes);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        to += part;
        bytes -= (size_t)part;
    }
    return true;
}

/* Notes that an entry was used; nobody minds if that fails. */
static void touch(const tk_cache *cache, int file, const struct stat *status) {
    if (cache->read_only || time(NULL) - status->st_mtime < TOUCH_SECONDS) return;
    (void)futimens(file, NULL);
}

static unsigned char *read_open_file(tk_cache *cache, int file, const char *name,
                                     size_t *out_length) {
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || !belongs_to_us(&status)) {
        tk_cache_warn(cache,
                      "%s of the cache is not used: it belongs to somebody else or others may "
                      "write to it",
                      name);
        return NULL;
    }
    size_t length = (size_t)status.st_size;
    unsigned char *bytes = tk_malloc(length);
    if (bytes && read_all(file, bytes, length)) {
        touch(cache, file, &status);
        *out_length = length;
        return bytes;
    }
    tk_cache_warn(cache, "%s of the cache cannot be read", name);
    tk_free(bytes);
    return NULL;
}

unsigned char *tk_cache_read_file(tk_cache *cache, const char *name, size_t *out_length) {
    char path[TK_CACHE_PATH_BYTES];
    if (!tk_cache_path(cache, name, path)) return NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        if (errno != ENOENT)
            tk_cache_warn(cache, "%s of the cache is not used: %s", name, strerror(errno));
        return NULL;
    }
    unsigned char *bytes = read_open_file(cache, file, name, out_length);
    close(file);
    return bytes;
}

/* What a call works with. */
typedef struct lookup {
    unsigned char *key;
    size_t key_bytes;
    int n_parts;
    unsigned char digest[TK_SHA256_BYTES];
    char name[TK_SHA256_TEXT];
} lookup;

static tk_status begin_lookup(const tk_key_part *parts, int count, lookup *out) {
    TK_TRY(tk_key_encode(parts, count, &out->key, &out->key_bytes, out->digest));
    out->n_parts = count;
    tk_sha256_text(out->digest, out->name);
    return TK_OK;
}

/* What lies below a name, which is the digest's; NULL when it is not there or not sound. */
static unsigned char *find_entry(tk_cache *cache, const char *name, const unsigned char *digest,
                                 tk_cache_record *out_entry) {
    size_t length;
    unsigned char *bytes = tk_cache_read_file(cache, name, &length);
    if (!bytes || tk_entry_read(bytes, length, digest, true, out_entry)) return bytes;
    tk_cache_warn(cache, "%s of the cache is damaged and not used", name);
    tk_free(bytes);
    return NULL;
}

bool tk_cache_find_entry(tk_cache *cache, const unsigned char digest[TK_SHA256_BYTES],
                         unsigned char **out_bytes, tk_cache_record *out_entry) {
    char name[TK_SHA256_TEXT];
    tk_sha256_text(digest, name);
    *out_bytes = find_entry(cache, name, digest, out_entry);
    return *out_bytes != NULL;
}

static tk_status find(tk_cache *cache, const lookup *wanted, tk_cached *out) {
    tk_cache_record entry;
    *out = (tk_cached){0};
    unsigned char *bytes = find_entry(cache, wanted->name, wanted->digest, &entry);
    if (!bytes) return TK_NOT_FOUND;
    memmove(bytes, entry.payload, entry.payload_bytes);
    *out = (tk_cached){bytes, entry.payload_bytes};
    return TK_OK;
}

tk_status tk_cache_get(tk_cache *cache, const tk_key_part *parts, int count,
                       tk_cached *out_artifact) {
    lookup wanted;
    *out_artifact = (tk_cached){0};
    TK_TRY(begin_lookup(parts, count, &wanted));
    tk_status status = find(cache, &wanted, out_artifact);
    tk_free(wanted.key);
    return status;
}

/* ---- publishing -------------------------------------------------------------------------------
 */

static bool write_all(int file, const void *from, size_t bytes) {
    const char *at = from;
    while (bytes > 0) {
        ssize_t part = write(file, at, bytes);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        at += part;
        bytes -= (size_t)part;
    }
    return true;
}

static bool write_entry(int file, const lookup *wanted, const void *payload, size_t bytes,
                        bool synced) {
    unsigned char head[TK_ENTRY_HEAD];
    tk_entry_head(wanted->n_parts, wanted->key, wanted->key_bytes, payload, bytes, head);
    return write_all(file, head, sizeof head) && write_all(file, wanted->key, wanted->key_bytes) &&
           write_all(file, payload, bytes) && (!synced || fsync(file) == 0);
}

static void sync_folder(const tk_cache *cache) {
    int folder = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    (void)fsync(folder);
    close(folder);
}

/* Writes the entry under a name that nobody else uses, and renames it. */
static bool publish(tk_cache *cache, const lookup *wanted, const void *payload, size_t bytes,
                    bool synced) {
    char name[64], temporary[TK_CACHE_PATH_BYTES], path[TK_CACHE_PATH_BYTES];
    snprintf(name, sizeof name, "tmp-%ld-%lld-%u", (long)getpid(), (long long)time(NULL),
             atomic_fetch_add(&cache->temporaries, 1));
    if (!tk_cache_path(cache, name, temporary) || !tk_cache_path(cache, wanted->name, path))
        return false;
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool written = file >= 0 && write_entry(file, wanted, payload, bytes, synced);
    int error = errno;
    if (file >= 0 && close(file) != 0) written = false;
    if (written && rename(temporary, path) == 0) {
        if (synced) sync_folder(cache);
        return true;
    }
    if (written) error = errno;
    if (file >= 0) unlink(temporary);
    tk_cache_warn(cache, "%s is not kept in the cache: %s", wanted->name, strerror(error));
    return false;
}

static bool keep(tk_cache *cache, const lookup *wanted, const void *payload, size_t bytes) {
    if (!cache->folder[0] || cache->read_only) return false;
    if (bytes > cache->limit) {
        tk_cache_warn(cache, "%s is not kept: %zu bytes, the cache holds %zu", wanted->name, bytes,
                      cache->limit);
        return false;
    }
    if (!publish(cache, wanted, payload, bytes, true)) return false;
    (void)tk_cache_prune(cache, cache->limit, NULL);
    return true;
}

bool tk_cache_put(tk_cache *cache, const tk_key_part *parts, int count, const void *payload,
                  size_t bytes) {
    lookup wanted;
    if (begin_lookup(parts, count, &wanted) != TK_OK) return false;
    bool kept = keep(cache, &wanted, payload, bytes);
    tk_free(wanted.key);
    return kept;
}

void tk_cache_note(tk_cache *cache, const tk_key_part *parts, int count, const void *payload,
                   size_t bytes) {
    lookup wanted;
    tk_cache_record entry;
    if (!cache->folder[0] || cache->read_only) return;
    if (begin_lookup(parts, count, &wanted) != TK_OK) return;
    unsigned char *there = find_entry(cache, wanted.name, wanted.digest, &entry);
    if (!there) (void)publish(cache, &wanted, payload, bytes, false);
    tk_free(there);
    tk_free(wanted.key);
}

/* ---- building once ----------------------------------------------------------------------------
 */

/* Whether the file that was locked is still the one with its name: its owner may have removed it.
 */
static bool is_current(int file, const char *path) {
    struct stat locked, named;
    return fstat(file, &locked) == 0 && stat(path, &named) == 0 && locked.st_ino == named.st_ino &&
           locked.st_dev == named.st_dev;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Waits for an open lock file with growing pauses; false after LOCK_SECONDS or an error. */
static bool await_lock(int file) {
    double end = seconds_now() + LOCK_SECONDS;
    struct timespec pause = {0, 500000};
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        if (seconds_now() > end) return false;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 20000000) pause.tv_nsec += pause.tv_nsec / 2;
    }
    return true;
}

/* The lock of an entry, -1 where there can be none: then everybody builds. */
static int take_lock(const tk_cache *cache, const char *name, char path[TK_CACHE_PATH_BYTES]) {
    char file_name[TK_SHA256_TEXT + 8];
    snprintf(file_name, sizeof file_name, "%s.lock", name);
    if (cache->read_only || !tk_cache_path(cache, file_name, path)) return -1;
    for (;;) {
        int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0) return -1;
        bool locked = await_lock(file);
        if (locked && is_current(file, path)) return file;
        close(file);
        if (!locked) return -1;
    }
}

static void drop_lock(int file, const char *path) {
    if (file < 0) return;
    unlink(path);
    close(file);
}

static tk_status build_locked(tk_cache *cache, const lookup *wanted, tk_cached_build build,
                              void *arg, tk_cached *out, bool *out_built) {
    char path[TK_CACHE_PATH_BYTES];
    int file = take_lock(cache, wanted->name, path);
    tk_status status = file >= 0 ? find(cache, wanted, out) : TK_NOT_FOUND;
    if (status == TK_NOT_FOUND) {
        status = build(arg, out);
        *out_built = status == TK_OK;
        if (status == TK_OK) (void)keep(cache, wanted, out->bytes, out->length);
    }
    drop_lock(file, path);
    return status;
}

tk_status tk_cache_get_or_build(tk_cache *cache, const tk_key_part *parts, int count,
                                tk_cached_build build, void *arg, tk_cached *out_artifact,
                                bool *out_built) {
    lookup wanted;
    bool built = false;
    *out_artifact = (tk_cached){0};
    TK_TRY(begin_lookup(parts, count, &wanted));
    tk_status status = find(cache, &wanted, out_artifact);
    if (status == TK_NOT_FOUND)
        status = build_locked(cache, &wanted, build, arg, out_artifact, &built);
    tk_free(wanted.key);
    if (out_built) *out_built = built;
    return status;
}
