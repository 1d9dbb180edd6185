/* Looking after the artifact cache: list, verify, prune, explain. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "runtime/artifact_cache.h"

#define STALE_SECONDS 3600 /* a temporary or lock file older than this has no owner */
#define SHOWN_VALUE 60

typedef struct found {
    char name[TK_SHA256_TEXT];
    size_t bytes;
    int64_t used;
} found;

typedef TK_VEC(found) found_list;

/* ---- looking through the folder ---------------------------------------------------------------
 */

static bool is_stale(const char *name, const struct stat *status) {
    bool ours = strncmp(name, "tmp-", 4) == 0 || strstr(name, ".lock");
    return ours && time(NULL) - status->st_mtime > STALE_SECONDS;
}

/* Adds a file to the list if it is an entry; removes it if it is left over. False without memory.
 */
static bool look_at(const tk_cache *cache, const char *name, found_list *list, bool clean) {
    char path[TK_CACHE_PATH_BYTES];
    unsigned char digest[TK_SHA256_BYTES];
    struct stat status;
    if (!tk_cache_path(cache, name, path) || lstat(path, &status) != 0) return true;
    if (clean && is_stale(name, &status)) unlink(path);
    if (!tk_cache_is_entry(name, digest) || !S_ISREG(status.st_mode)) return true;
    found entry = {.bytes = (size_t)status.st_size, .used = status.st_mtime};
    memcpy(entry.name, name, sizeof entry.name);
    return tk_vec_push(list, entry);
}

static int used_later(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->used != y->used) return x->used < y->used ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* All entries, the one used last first. */
static tk_status scan(const tk_cache *cache, bool clean, found_list *list) {
    DIR *folder = tk_cache_folder(cache)[0] ? opendir(tk_cache_folder(cache)) : NULL;
    bool enough = true;
    if (!folder) return TK_OK;
    for (struct dirent *at = readdir(folder); at && enough; at = readdir(folder))
        enough = look_at(cache, at->d_name, list, clean);
    closedir(folder);
    if (!enough) {
        tk_vec_deinit(list);
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to list the cache");
    }
    if (list->count) qsort(list->items, list->count, sizeof *list->items, used_later);
    return TK_OK;
}

/* ---- verify and prune -------------------------------------------------------------------------
 */

static bool is_sound(tk_cache *cache, const found *at) {
    unsigned char digest[TK_SHA256_BYTES];
    tk_cache_record entry;
    size_t length;
    unsigned char *bytes = tk_cache_read_file(cache, at->name, &length);
    bool sound = bytes && tk_cache_is_entry(at->name, digest) &&
                 tk_entry_read(bytes, length, digest, true, &entry);
    tk_free(bytes);
    return sound;
}

static bool remove_entry(tk_cache *cache, const found *at) {
    char path[TK_CACHE_PATH_BYTES];
    return !tk_cache_is_read_only(cache) && tk_cache_path(cache, at->name, path) &&
           unlink(path) == 0;
}

tk_status tk_cache_verify(tk_cache *cache, int64_t *out_sound, int64_t *out_broken) {
    TK_NEED(cache);
    found_list list = {0};
    int64_t sound = 0, broken = 0;
    TK_TRY(scan(cache, false, &list));
    for (size_t i = 0; i < list.count; i++) {
        bool is = is_sound(cache, &list.items[i]);
        if (!is) (void)remove_entry(cache, &list.items[i]);
        ++*(is ? &sound : &broken);
    }
    tk_vec_deinit(&list);
    if (out_sound) *out_sound = sound;
    if (out_broken) *out_broken = broken;
    return TK_OK;
}

tk_status tk_cache_prune(tk_cache *cache, size_t bytes, int64_t *out_removed) {
    TK_NEED(cache);
    found_list list = {0};
    size_t kept = 0;
    int64_t removed = 0;
    if (out_removed) *out_removed = 0;
    if (tk_cache_is_read_only(cache)) return TK_OK;
    TK_TRY(scan(cache, true, &list));
    for (size_t i = 0; i < list.count; i++) {
        bool fits = list.items[i].bytes <= bytes - kept;
        if (fits) kept += list.items[i].bytes;
        if (!fits && remove_entry(cache, &list.items[i])) removed++;
    }
    tk_vec_deinit(&list);
    if (out_removed) *out_removed = removed;
    return TK_OK;
}

/* ---- list -------------------------------------------------------------------------------------
 */

static bool is_text(const tk_key_part *part) {
    const unsigned char *at = part->value;
    for (size_t i = 0; i < part->bytes; i++)
        if (at[i] < 32 || at[i] > 126) return false;
    return true;
}

/* A file's content and what is in it; NULL if it is not sound as far as its key. */
static unsigned char *read_key(tk_cache *cache, const char *name, tk_cache_record *out_entry) {
    size_t length;
    unsigned char *bytes = tk_cache_read_file(cache, name, &length);
    if (bytes && tk_entry_read(bytes, length, NULL, false, out_entry)) return bytes;
    tk_free(bytes);
    return NULL;
}

static bool show(tk_cache *cache, const found *at, bool (*visit)(void *, const tk_cache_entry *),
                 void *arg) {
    tk_cache_entry shown = {.what = "", .bytes = at->bytes, .used = at->used};
    tk_cache_record entry;
    tk_key_part part;
    size_t offset = 0, name;
    char *what = NULL;
    memcpy(shown.digest, at->name, sizeof shown.digest);
    unsigned char *bytes = read_key(cache, at->name, &entry);
    if (bytes && tk_key_next(&entry, &offset, &part, &name)) {
        shown.is_note = name == strlen(TK_NOTE_PART) && memcmp(part.name, TK_NOTE_PART, name) == 0;
        what = is_text(&part) ? tk_calloc(1, part.bytes + 1) : NULL;
        if (what) memcpy(what, part.value, part.bytes);
    }
    if (what) shown.what = what;
    bool more = visit(arg, &shown);
    tk_free(what);
    tk_free(bytes);
    return more;
}

tk_status tk_cache_list(tk_cache *cache, bool (*visit)(void *arg, const tk_cache_entry *entry),
                        void *arg) {
    TK_NEED(cache);
    if (!visit) return tk_fail_null("visit");
    found_list list = {0};
    TK_TRY(scan(cache, false, &list));
    bool more = true;
    for (size_t i = 0; i < list.count && more; i++) more = show(cache, &list.items[i], visit, arg);
    tk_vec_deinit(&list);
    return TK_OK;
}

/* ---- explain ----------------------------------------------------------------------------------
 */

/* A value as text, or what is known of it. */
static void put_value(tk_strbuf *out, const tk_key_part *part) {
    if (part->bytes <= SHOWN_VALUE && is_text(part)) {
        tk_strbuf_printf(out, "\"%.*s\"", (int)part->bytes, (const char *)part->value);
        return;
    }
    unsigned char digest[TK_SHA256_BYTES];
    char text[TK_SHA256_TEXT];
    tk_sha256_of(part->value, part->bytes, digest);
    tk_sha256_text(digest, text);
    tk_strbuf_printf(out, "%zu bytes with digest %.12s", part->bytes, text);
}

static bool find_part(const tk_cache_record *entry, const char *name, size_t name_bytes,
                      tk_key_part *out) {
    size_t offset = 0, length;
    while (tk_key_next(entry, &offset, out, &length))
        if (length == name_bytes && memcmp(out->name, name, length) == 0) return true;
    return false;
}

static bool same_value(const tk_key_part *a, const tk_key_part *b) {
    return a->bytes == b->bytes && memcmp(a->value, b->value, a->bytes) == 0;
}

/* How many parts of `wanted` are the same in `other`. */
static int count_equal(const tk_cache_record *wanted, const tk_cache_record *other) {
    size_t offset = 0, name;
    tk_key_part part, match;
    int equal = 0;
    while (tk_key_next(wanted, &offset, &part, &name))
        if (find_part(other, part.name, name, &match) && same_value(&part, &match)) equal++;
    return equal;
}

/* Keys of one kind begin with a part of one name; comparing others would explain nothing. */
static bool same_kind(const tk_cache_record *a, const tk_cache_record *b) {
    size_t here = 0, there = 0, name, other_name;
    tk_key_part part, other;
    return tk_key_next(a, &here, &part, &name) && tk_key_next(b, &there, &other, &other_name) &&
           name == other_name && memcmp(part.name, other.name, name) == 0;
}

/* The entry of the same kind that shares most parts with `wanted`, but for the one named `except`.
 */
static unsigned char *find_nearest(tk_cache *cache, const found_list *list, const char *except,
                                   const tk_cache_record *wanted, tk_cache_record *out_entry,
                                   const char **out_name) {
    unsigned char *nearest = NULL;
    int most = 0;
    for (size_t i = 0; i < list->count; i++) {
        tk_cache_record entry;
        if (strcmp(list->items[i].name, except) == 0) continue;
        unsigned char *bytes = read_key(cache, list->items[i].name, &entry);
        int equal = bytes && same_kind(wanted, &entry) ? count_equal(wanted, &entry) : 0;
        if (equal > most) {
            tk_free(nearest);
            nearest = bytes;
            most = equal;
            *out_entry = entry;
            *out_name = list->items[i].name;
        } else {
            tk_free(bytes);
        }
    }
    return nearest;
}

/* One line for each part that differs or is in one key only. */
static void put_differences(tk_strbuf *out, const tk_cache_record *wanted,
                            const tk_cache_record *other) {
    size_t offset = 0, name;
    tk_key_part part, match;
    while (tk_key_next(wanted, &offset, &part, &name)) {
        bool there = find_part(other, part.name, name, &match);
        if (there && same_value(&part, &match)) continue;
        tk_strbuf_printf(out, "  %.*s: here ", (int)name, part.name);
        put_value(out, &part);
        tk_strbuf_puts(out, ", there ");
        if (there) put_value(out, &match);
        tk_strbuf_puts(out, there ? "\n" : "no such part\n");
    }
    offset = 0;
    while (tk_key_next(other, &offset, &part, &name))
        if (!find_part(wanted, part.name, name, &match))
            tk_strbuf_printf(out, "  %.*s: only there\n", (int)name, part.name);
}

static void put_nearest(tk_cache *cache, const found_list *list, const char *except,
                        const tk_cache_record *wanted, tk_strbuf *out) {
    tk_cache_record entry;
    const char *name;
    unsigned char *nearest = find_nearest(cache, list, except, wanted, &entry, &name);
    if (!nearest) {
        tk_strbuf_puts(out, "no other entry shares a part of its key\n");
        return;
    }
    tk_strbuf_printf(out, "the nearest other entry is %.12s, which differs in\n", name);
    put_differences(out, wanted, &entry);
    tk_free(nearest);
}

static tk_status take_text(tk_strbuf *out, char **out_text) {
    *out_text = tk_strbuf_take(out);
    return *out_text ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory to explain an entry");
}

static bool has_name(const found_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return true;
    return false;
}

tk_status tk_cache_explain_miss(tk_cache *cache, const tk_key_part *parts, int count,
                                char **out_text) {
    unsigned char digest[TK_SHA256_BYTES], *key;
    char name[TK_SHA256_TEXT];
    tk_cache_record wanted = {.n_parts = (uint64_t)count};
    found_list list = {0};
    tk_strbuf out = {0};
    *out_text = NULL;
    TK_TRY(tk_key_encode(parts, count, &key, &wanted.key_bytes, digest));
    wanted.key = key;
    tk_sha256_text(digest, name);
    tk_status status = scan(cache, false, &list);
    if (status == TK_OK) {
        const found at = {.name = ""};
        found here = at;
        memcpy(here.name, name, sizeof here.name);
        bool there = has_name(&list, name);
        if (there && is_sound(cache, &here))
            tk_strbuf_printf(&out, "%.12s is in the cache\n", name);
        else
            tk_strbuf_printf(&out, "%.12s is %s\n", name, there ? "damaged" : "not in the cache");
        put_nearest(cache, &list, name, &wanted, &out);
        status = take_text(&out, out_text);
    }
    tk_vec_deinit(&list);
    tk_free(key);
    return status;
}

static void put_key(tk_strbuf *out, const tk_cache_record *entry) {
    size_t offset = 0, name;
    tk_key_part part;
    while (tk_key_next(entry, &offset, &part, &name)) {
        tk_strbuf_printf(out, "  %.*s: ", (int)name, part.name);
        put_value(out, &part);
        tk_strbuf_putc(out, '\n');
    }
}

static const found *find_by_prefix(const found_list *list, const char *prefix, int *out_count) {
    const found *match = NULL;
    *out_count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i].name, prefix, strlen(prefix)) == 0) {
            match = &list->items[i];
            ++*out_count;
        }
    return match;
}

static tk_status explain_entry(tk_cache *cache, const found_list *list, const char *digest,
                               char **out_text) {
    int matches;
    tk_cache_record entry;
    const found *at = find_by_prefix(list, digest, &matches);
    if (matches != 1)
        return tk_fail(TK_NOT_FOUND, "%d entries of the cache begin with %s, expected one", matches,
                       digest);
    unsigned char *bytes = read_key(cache, at->name, &entry);
    if (!bytes) return tk_fail(TK_NOT_FOUND, "entry %s of the cache is damaged", at->name);
    tk_strbuf out = {0};
    tk_strbuf_printf(&out, "%s, payload of %zu bytes, with the key\n", at->name,
                     entry.payload_bytes);
    put_key(&out, &entry);
    put_nearest(cache, list, at->name, &entry, &out);
    tk_free(bytes);
    return take_text(&out, out_text);
}

tk_status tk_cache_explain(tk_cache *cache, const char *digest, char **out_text) {
    TK_NEED(cache, digest, out_text);
    found_list list = {0};
    *out_text = NULL;
    TK_TRY(scan(cache, false, &list));
    tk_status status = explain_entry(cache, &list, digest, out_text);
    tk_vec_deinit(&list);
    return status;
}

void tk_cache_text_free(char *text) { tk_free(text); }
