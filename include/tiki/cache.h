/* The cache of built kernels on disk, for those who look after it: list, check, shorten, explain.
 *
 * An entry is one file, named by the digest of its key. The key's parts are in it, by name, so that
 * a miss can be explained by the part that differs. Everything in an entry is covered by checksums,
 * and an entry that is not whole counts as absent. Files appear by renaming, so readers need no
 * lock, and any number of processes may use one folder.
 *
 * The folder is TIKI_CACHE of the environment, else tiki below XDG_CACHE_HOME or ~/.cache. It is
 * used only if it belongs to this user and nobody else may write to it. TIKI_CACHE_READ_ONLY=1
 * changes nothing in it; TIKI_CACHE_MIB is the size above which the entries used longest ago go
 * (1024). */
#ifndef TIKI_CACHE_H
#define TIKI_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/api.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

typedef struct tk_cache tk_cache;

typedef struct tk_cache_options {
    const char *folder; /* NULL: the default */
    size_t limit;       /* bytes; 0: the default */
    bool read_only;     /* true: change nothing; false: as the environment says */
} tk_cache_options;

typedef struct tk_cache_entry {
    char digest[65];  /* of the key, in hexadecimal digits: the name of the file */
    const char *what; /* the first part of its key, "" if it is not text; borrowed for the call */
    size_t bytes;     /* of the file */
    int64_t used;     /* seconds since 1970, accurate to a minute */
    bool is_note;     /* it only leads to other entries, and saves time */
} tk_cache_entry;

/* Opens a cache; `options` may be NULL. A folder that cannot be used is no error: the cache is then
 * empty, keeps nothing, and tk_cache_warning says why. TK_OUT_OF_MEMORY. The caller closes it. All
 * functions may be called from any thread. */
TK_API tk_status tk_cache_open(const tk_cache_options *options, tk_cache **out_cache);
TK_API void tk_cache_close(tk_cache *cache);

/* The folder, "" if there is none; lives as long as the cache. */
TK_API const char *tk_cache_folder(const tk_cache *cache);

/* Copies the latest reason why something was not kept or not used, "" if there was none, into
 * `text` (cut at `bytes`); gives its length. */
TK_API size_t tk_cache_warning(tk_cache *cache, char *text, size_t bytes);

/* Calls visit(arg, entry) for each entry, the one used last first, until it gives false.
 * TK_OUT_OF_MEMORY. */
TK_API tk_status tk_cache_list(tk_cache *cache,
                               bool (*visit)(void *arg, const tk_cache_entry *entry), void *arg);

/* Reads every entry whole and counts those that are sound and those that are not; removes the
 * latter unless read-only. The counts may be NULL. */
TK_API tk_status tk_cache_verify(tk_cache *cache, int64_t *out_sound, int64_t *out_broken);

/* Removes the entries used longest ago until at most `bytes` are left, and what killed processes
 * left behind. Counts the removed entries; may be NULL. Does nothing if read-only. */
TK_API tk_status tk_cache_prune(tk_cache *cache, size_t bytes, int64_t *out_removed);

/* Says in words what the key of the entry is whose digest begins with `digest`, and in which parts
 * the nearest other entry differs. TK_NOT_FOUND if there is none or more than one. The caller frees
 * the text with tk_cache_text_free. */
TK_API tk_status tk_cache_explain(tk_cache *cache, const char *digest, char **out_text);
TK_API void tk_cache_text_free(char *text);

TK_END_DECLS

#endif
