/* Using the artifact cache: find a payload by its key, or have it built once and keep it.
 *
 * Two hundred processes that want one kernel build it once: who misses takes a lock file, looks
 * again, and builds. The lock is the system's (flock), so it goes with a killed process. Who waits
 * too long builds for itself; a lock is an optimisation, never needed for a right result.
 *
 * Nothing that goes wrong on the disk is an error. The payload is then built, and a warning is
 * kept. */
#ifndef RUNTIME_ARTIFACT_CACHE_H
#define RUNTIME_ARTIFACT_CACHE_H

#include "runtime/artifact_entry.h"
#include "tiki/cache.h"

/* A payload of the caller, who frees `bytes` with tk_free. */
typedef struct tk_cached {
    unsigned char *bytes;
    size_t length;
} tk_cached;

typedef tk_status (*tk_cached_build)(void *arg, tk_cached *out_artifact);

/* Finds the payload of a key; TK_NOT_FOUND without an error message when there is none that is
 * sound, TK_OUT_OF_MEMORY. */
tk_status tk_cache_get(tk_cache *cache, const tk_key_part *parts, int count,
                       tk_cached *out_artifact);

/* Keeps a payload; whether it is kept. */
bool tk_cache_put(tk_cache *cache, const tk_key_part *parts, int count, const void *payload,
                  size_t bytes);

/* Notes are small entries that only save time: what can be found again by working it out. They are
 * neither synced nor counted against the limit when they are written (what a crash leaves of one is
 * found damaged), and one that is there is left alone. The first part of a note's key is named
 * TK_NOTE_PART; by that tk_cache_list knows them. */
#define TK_NOTE_PART "note"
void tk_cache_note(tk_cache *cache, const tk_key_part *parts, int count, const void *payload,
                   size_t bytes);

/* The sound entry of a digest with its key, for notes that name one; `*out_bytes` holds all of it,
 * which the caller frees. False without an error when there is none. */
bool tk_cache_find_entry(tk_cache *cache, const unsigned char digest[TK_SHA256_BYTES],
                         unsigned char **out_bytes, tk_cache_record *out_entry);

/* Finds the payload or builds it, in one process at a time, and keeps it. *out_built (may be NULL)
 * says whether this call built it. Errors are those of build, and TK_OUT_OF_MEMORY. */
tk_status tk_cache_get_or_build(tk_cache *cache, const tk_key_part *parts, int count,
                                tk_cached_build build, void *arg, tk_cached *out_artifact,
                                bool *out_built);

/* In words: that the key is there, or which parts differ from those of the nearest entry. The
 * caller frees the text with tk_free. TK_OUT_OF_MEMORY. */
tk_status tk_cache_explain_miss(tk_cache *cache, const tk_key_part *parts, int count,
                                char **out_text);

/* ---- for the files of the cache ---------------------------------------------------------------
 */

#define TK_CACHE_PATH_BYTES 4096

struct tk_cache; /* artifact_cache.c */

/* The folder's path with a name in it; false when that is too long or there is no folder. */
bool tk_cache_path(const tk_cache *cache, const char *name, char path[TK_CACHE_PATH_BYTES]);

bool tk_cache_is_read_only(const tk_cache *cache);

/* Reads a file of the folder whole, if it belongs to this user alone. NULL with a warning if not,
 * or without one if it is not there; the caller frees. */
unsigned char *tk_cache_read_file(tk_cache *cache, const char *name, size_t *out_length);

void tk_cache_warn(tk_cache *cache, const char *format, ...) TK_PRINTF(2, 3);

/* Whether a file's name is that of an entry, and its digest. */
bool tk_cache_is_entry(const char *name, unsigned char out_digest[TK_SHA256_BYTES]);

#endif
