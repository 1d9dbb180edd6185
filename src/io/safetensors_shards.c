/* Loading by path: one file, an index with its shards, or a folder of either. */
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/load.h"
#include "io/safetensors.h"

/* ---- the index ---- */

/* A shard lies beside its index: anything that could lead elsewhere is refused. */
static bool is_plain_name(const char *name) {
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

static tk_status check_map(const char *file, json_t *map) {
    const char *tensor;
    json_t *shard;
    if (!json_is_object(map))
        return tk_fail(TK_FORMAT_ERROR, "%.400s: weight_map must be an object, found %s", file,
                       tk_json_kind(map));
    json_object_foreach(map, tensor, shard) {
        if (!json_is_string(shard))
            return tk_fail(TK_FORMAT_ERROR,
                           "%.300s: weight_map \"%.160s\" must be a file name, found %s", file,
                           tensor, tk_json_kind(shard));
        if (!is_plain_name(json_string_value(shard)))
            return tk_fail(TK_FORMAT_ERROR,
                           "%.300s: weight_map \"%.160s\" must be a file name in the same folder, "
                           "found \"%.200s\"",
                           file, tensor, json_string_value(shard));
    }
    return TK_OK;
}

tk_status tk_safetensors_index(const char *name, const char *text, size_t bytes, json_t **out_map) {
    json_t *index;
    TK_TRY(tk_json_parse(name, text, bytes, &index));
    json_t *map = json_object_get(index, "weight_map");
    tk_status status = check_map(name, map);
    if (status == TK_OK) *out_map = json_incref(map);
    json_decref(index);
    return status;
}

static tk_status read_index(const char *path, json_t **out_map) {
    tk_mapping *mapping;
    TK_TRY(tk_mapping_open(path, &mapping));
    tk_status status =
        tk_safetensors_index(path, (const char *)mapping->data, mapping->bytes, out_map);
    tk_mapping_release(mapping);
    return status;
}

/* ---- shards ---- */

static tk_status load_file(tk_context *context, const char *path, tk_tree *tree,
                           tk_metadata *metadata) {
    tk_mapping *mapping;
    TK_TRY(tk_mapping_open(path, &mapping));
    tk_status status = tk_safetensors_read(context, path, mapping, tree, metadata);
    tk_mapping_release(mapping);
    return status;
}

/* Adds all arrays of a shard to the pool, as "file/tensor", once: `loaded` has the files' names. */
static tk_status load_shard(tk_context *context, const char *folder, const char *name,
                            json_t *loaded, tk_tree *pool, tk_metadata *metadata) {
    if (json_object_get(loaded, name)) return TK_OK;
    bool first = json_object_size(loaded) == 0;
    char *path = tk_io_join(folder, name);
    tk_tree *shard = tk_tree_new();
    tk_status status = path && shard ? TK_OK : tk_io_no_memory(name);
    if (status == TK_OK) status = load_file(context, path, shard, first ? metadata : NULL);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(shard); i++) {
        char *key = tk_io_join(name, tk_tree_name(shard, i));
        status = key ? tk_tree_set(pool, key, tk_tree_at(shard, i)) : tk_io_no_memory(name);
        tk_free(key);
    }
    if (status == TK_OK && json_object_set_new(loaded, name, json_true()) != 0)
        status = tk_io_no_memory(name);
    tk_tree_free(shard);
    tk_free(path);
    return status;
}

/* Sets an array of the index in the tree. */
static tk_status take_tensor(const char *index, const tk_tree *pool, const char *shard,
                             const char *tensor, tk_tree *tree) {
    char *key = tk_io_join(shard, tensor);
    if (!key) return tk_io_no_memory(index);
    size_t at = tk_tree_find(pool, key);
    tk_free(key);
    if (at < tk_tree_count(pool)) return tk_tree_set(tree, tensor, tk_tree_at(pool, at));
    return tk_fail(TK_FORMAT_ERROR, "%.300s: tensor \"%.160s\" is not in \"%.160s\"", index, tensor,
                   shard);
}

static tk_status load_mapped(tk_context *context, const char *index, const char *folder,
                             json_t *map, tk_tree *tree, tk_metadata *metadata) {
    const char *tensor;
    json_t *shard, *loaded = json_object();
    tk_tree *pool = tk_tree_new();
    tk_status status = loaded && pool ? TK_OK : tk_io_no_memory(index);
    json_object_foreach(map, tensor, shard) {
        const char *name = json_string_value(shard);
        if (status == TK_OK) status = load_shard(context, folder, name, loaded, pool, metadata);
        if (status == TK_OK) status = take_tensor(index, pool, name, tensor, tree);
    }
    tk_tree_free(pool);
    json_decref(loaded);
    return status;
}

static tk_status load_index(tk_context *context, const char *path, tk_tree *tree,
                            tk_metadata *metadata) {
    json_t *map;
    TK_TRY(read_index(path, &map));
    char *folder = tk_io_folder_of(path);
    tk_tree *all = tk_tree_new();
    tk_status status = folder && all ? TK_OK : tk_io_no_memory(path);
    if (status == TK_OK) status = load_mapped(context, path, folder, map, all, metadata);
    if (status == TK_OK) status = tk_tree_merge(tree, all);
    tk_tree_free(all);
    tk_free(folder);
    json_decref(map);
    return status;
}

/* ---- paths ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

static tk_status load_folder(tk_context *context, const char *folder, tk_tree *tree,
                             tk_metadata *metadata) {
    struct stat info;
    char *index = tk_io_join(folder, TK_SAFETENSORS_INDEX);
    char *model = tk_io_join(folder, TK_SAFETENSORS_MODEL);
    tk_status status = TK_OK;
    if (!index || !model)
        status = tk_io_no_memory(folder);
    else if (stat(index, &info) != 0 && stat(model, &info) != 0)
        status = tk_fail(TK_IO_ERROR, "%.400s: the folder has neither %s nor %s", folder,
                         TK_SAFETENSORS_MODEL, TK_SAFETENSORS_INDEX);
    else if (stat(index, &info) == 0)
        status = load_index(context, index, tree, metadata);
    else
        status = load_file(context, model, tree, metadata);
    tk_free(index);
    tk_free(model);
    return status;
}

tk_status tk_safetensors_load(tk_context *context, const char *path, tk_tree *tree,
                              tk_metadata *metadata) {
    TK_NEED(context, path, tree);
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return load_folder(context, path, tree, metadata);
    if (ends_with(path, ".index.json")) return load_index(context, path, tree, metadata);
    return load_file(context, path, tree, metadata);
}
