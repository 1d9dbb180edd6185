/* Text to text, in order of insertion; see tiki/io.h.
 *
 * A list that is searched from the front: files have a handful of entries. The readers know that
 * their keys differ and append without searching, so that a hostile file cannot make them slow. */
#include "io/metadata.h"

#include <string.h>

#include "base/error.h"
#include "base/vec.h"

typedef struct pair {
    char *key;
    char *value;
} pair;

struct tk_metadata {
    TK_VEC(pair) pairs;
};

tk_metadata *tk_metadata_new(void) { return tk_calloc(1, sizeof(tk_metadata)); }

void tk_metadata_free(tk_metadata *metadata) {
    if (!metadata) return;
    for (size_t i = 0; i < metadata->pairs.count; i++) {
        tk_free(metadata->pairs.items[i].key);
        tk_free(metadata->pairs.items[i].value);
    }
    tk_vec_deinit(&metadata->pairs);
    tk_free(metadata);
}

tk_status tk_metadata_append(tk_metadata *metadata, const char *key, const char *value) {
    pair added = {tk_strdup(key), tk_strdup(value)};
    if (added.key && added.value && tk_vec_push(&metadata->pairs, added)) return TK_OK;
    tk_free(added.key);
    tk_free(added.value);
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for metadata \"%.200s\"", key);
}

static pair *find(const tk_metadata *metadata, const char *key) {
    for (size_t i = 0; i < metadata->pairs.count; i++)
        if (!strcmp(metadata->pairs.items[i].key, key)) return &metadata->pairs.items[i];
    return NULL;
}

tk_status tk_metadata_set(tk_metadata *metadata, const char *key, const char *value) {
    TK_NEED(metadata, key, value);
    pair *found = find(metadata, key);
    if (!found) return tk_metadata_append(metadata, key, value);
    char *copy = tk_strdup(value);
    if (!copy) return tk_fail(TK_OUT_OF_MEMORY, "no memory for metadata \"%.200s\"", key);
    tk_free(found->value);
    found->value = copy;
    return TK_OK;
}

const char *tk_metadata_get(const tk_metadata *metadata, const char *key) {
    if (!metadata || !key) return NULL;
    const pair *found = find(metadata, key);
    return found ? found->value : NULL;
}

size_t tk_metadata_count(const tk_metadata *metadata) {
    return metadata ? metadata->pairs.count : 0;
}

const char *tk_metadata_key(const tk_metadata *metadata, size_t index) {
    return index < tk_metadata_count(metadata) ? metadata->pairs.items[index].key : NULL;
}

const char *tk_metadata_value(const tk_metadata *metadata, size_t index) {
    return index < tk_metadata_count(metadata) ? metadata->pairs.items[index].value : NULL;
}
