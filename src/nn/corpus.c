/* Files and folders as one run of bytes, in the order of paths, so that the same tree gives the
 * same data on every machine. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nn/need.h"
#include "tiki/train.h"

struct tk_corpus {
    unsigned char *bytes;
    int64_t size, capacity, files;
};

static tk_status no_memory(void) {
    return tk_error_set(TK_OUT_OF_MEMORY, "no memory for the data");
}

static tk_status append(tk_corpus *corpus, const char *data, size_t bytes) {
    if (corpus->size + (int64_t)bytes > corpus->capacity) {
        int64_t capacity = corpus->size + (int64_t)bytes + corpus->capacity / 2;
        unsigned char *grown = realloc(corpus->bytes, (size_t)capacity);
        if (!grown) return no_memory();
        corpus->bytes = grown;
        corpus->capacity = capacity;
    }
    if (bytes) memcpy(corpus->bytes + corpus->size, data, bytes);
    corpus->size += (int64_t)bytes;
    corpus->files++;
    return TK_OK;
}

static tk_status add_file(tk_corpus *corpus, const char *path, bool text_only) {
    char *data;
    size_t bytes;
    tk_status status = tk_file_read(path, &data, &bytes);
    if (status != TK_OK) return status;
    bool is_text = !memchr(data, 0, bytes < 8192 ? bytes : 8192);
    if (is_text || !text_only) status = append(corpus, data, bytes);
    tk_text_free(data);
    return status;
}

/* Names of a folder's entries that are not hidden, sorted. */
static int visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int by_bytes(const struct dirent **left, const struct dirent **right) {
    return strcmp((*left)->d_name, (*right)->d_name);
}

static tk_status add_folder(tk_corpus *corpus, const char *path, int depth);

static tk_status add_entry(tk_corpus *corpus, const char *folder, const char *name, int depth) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = malloc(bytes);
    if (!path) return no_memory();
    snprintf(path, bytes, "%s/%s", folder, name);
    struct stat info;
    tk_status status = TK_OK;
    if (lstat(path, &info))
        status = tk_error_set(TK_IO_ERROR, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = add_folder(corpus, path, depth + 1);
    else if (S_ISREG(info.st_mode))
        status = add_file(corpus, path, true);
    free(path);
    return status;
}

static tk_status add_folder(tk_corpus *corpus, const char *path, int depth) {
    if (depth > 64) return tk_error_set(TK_IO_ERROR, "%s: more than 64 folders deep", path);
    struct dirent **entries;
    int count = scandir(path, &entries, visible, by_bytes);
    if (count < 0) return tk_error_set(TK_IO_ERROR, "%s: %s", path, strerror(errno));
    tk_status status = TK_OK;
    for (int i = 0; i < count; i++) {
        if (status == TK_OK) status = add_entry(corpus, path, entries[i]->d_name, depth);
        free(entries[i]);
    }
    free(entries);
    return status;
}

tk_status tk_corpus_load(const char *const *paths, size_t count, tk_corpus **out_corpus) {
    NN_NEED(out_corpus);
    if (count) NN_NEED(paths);
    tk_corpus *corpus = calloc(1, sizeof *corpus);
    if (!corpus) return no_memory();
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < count; i++) {
        struct stat info;
        if (stat(paths[i], &info))
            status = tk_error_set(TK_IO_ERROR, "%s: %s", paths[i], strerror(errno));
        else if (S_ISDIR(info.st_mode))
            status = add_folder(corpus, paths[i], 0);
        else
            status = add_file(corpus, paths[i], false);
    }
    if (status != TK_OK) {
        tk_corpus_free(corpus);
        return status;
    }
    *out_corpus = corpus;
    return TK_OK;
}

void tk_corpus_free(tk_corpus *corpus) {
    if (!corpus) return;
    free(corpus->bytes);
    free(corpus);
}

const unsigned char *tk_corpus_bytes(const tk_corpus *corpus) {
    return corpus ? corpus->bytes : NULL;
}
int64_t tk_corpus_size(const tk_corpus *corpus) { return corpus ? corpus->size : 0; }
int64_t tk_corpus_files(const tk_corpus *corpus) { return corpus ? corpus->files : 0; }

/* FNV-1a (Fowler, Noll, Vo), eight bytes at a time. */
uint64_t tk_corpus_fingerprint(const tk_corpus *corpus) {
    if (!corpus) return 0;
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)corpus->size;
    int64_t at = 0;
    for (; at + 8 <= corpus->size; at += 8) {
        uint64_t word;
        memcpy(&word, corpus->bytes + at, 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    for (; at < corpus->size; at++) hash = (hash ^ corpus->bytes[at]) * 0x100000001b3u;
    return hash;
}
