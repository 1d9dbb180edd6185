/* See tiki/tree.h. Names are found through a small hash table of positions. */
#include "tiki/tree.h"

#include <string.h>

#include "array/context.h"
#include "base/error.h"
#include "base/hash.h"

struct tk_tree {
    TK_VEC(char *) names;
    tk_arrays arrays; /* in the same order */
    uint32_t *slots;  /* position + 1, 0: free */
    size_t n_slots;   /* a power of two, at least twice the count */
};

tk_tree *tk_tree_new(void) { return tk_calloc(1, sizeof(tk_tree)); }

void tk_tree_clear(tk_tree *tree) {
    if (!tree) return;
    for (size_t i = 0; i < tree->names.count; i++) tk_free(tree->names.items[i]);
    tk_vec_deinit(&tree->names);
    tk_arrays_clear(&tree->arrays);
    tk_free(tree->slots);
    tree->slots = NULL;
    tree->n_slots = 0;
}

void tk_tree_free(tk_tree *tree) {
    if (!tree) return;
    tk_tree_clear(tree);
    tk_free(tree);
}

size_t tk_tree_count(const tk_tree *tree) { return tree ? tree->names.count : 0; }
const char *tk_tree_name(const tk_tree *tree, size_t index) {
    return index < tk_tree_count(tree) ? tree->names.items[index] : NULL;
}
tk_array tk_tree_at(const tk_tree *tree, size_t index) {
    return index < tk_tree_count(tree) ? tree->arrays.items[index] : TK_NO_ARRAY;
}
const tk_array *tk_tree_arrays(const tk_tree *tree) { return tree ? tree->arrays.items : NULL; }

/* The slot that holds the name, or the free one where it would go. */
static size_t find_slot(const tk_tree *tree, const char *name) {
    size_t slot = tk_hash_bytes(0, name, strlen(name)) & (tree->n_slots - 1);
    while (tree->slots[slot] && strcmp(tree->names.items[tree->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & (tree->n_slots - 1);
    return slot;
}

size_t tk_tree_find(const tk_tree *tree, const char *name) {
    if (!tree) return 0;
    if (!name) return tree->names.count;
    if (!tree->n_slots) return tree->names.count;
    uint32_t position = tree->slots[find_slot(tree, name)];
    return position ? position - 1 : tree->names.count;
}

tk_array tk_tree_get(const tk_tree *tree, const char *name) {
    if (!tree || !name) return TK_NO_ARRAY;
    size_t index = tk_tree_find(tree, name);
    if (index < tree->names.count) return tree->arrays.items[index];
    (void)tk_fail(TK_NOT_FOUND, "no array is named \"%.200s\"", name);
    tk_fail_explains();
    return TK_NO_ARRAY;
}

static bool grow_slots(tk_tree *tree) {
    size_t n_slots = tree->n_slots ? tree->n_slots * 2 : 16;
    uint32_t *slots = tk_calloc(n_slots, sizeof *slots), *old = tree->slots;
    if (!slots) return false;
    tree->slots = slots;
    tree->n_slots = n_slots;
    for (size_t i = 0; i < tree->names.count; i++)
        slots[find_slot(tree, tree->names.items[i])] = (uint32_t)i + 1;
    tk_free(old);
    return true;
}

static tk_status add(tk_tree *tree, const char *name, tk_array array) {
    size_t count = tree->names.count;
    char *copy = tk_strdup(name);
    bool room = copy && tk_vec_reserve(&tree->names, count + 1) &&
                ((count + 1) * 2 <= tree->n_slots || grow_slots(tree));
    if (!room || tk_arrays_push(&tree->arrays, array) != TK_OK) {
        tk_free(copy);
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a tree of %zu arrays", count + 1);
    }
    tree->slots[find_slot(tree, name)] = (uint32_t)count + 1;
    tree->names.items[tree->names.count++] = copy;
    return TK_OK;
}

tk_status tk_tree_set(tk_tree *tree, const char *name, tk_array array) {
    TK_NEED(tree, name);
    if (!array.node)
        return tk_fail(TK_INVALID_ARGUMENT, "no array (TK_NO_ARRAY) for \"%.200s\"", name);
    if (!name[0]) return tk_fail(TK_INVALID_ARGUMENT, "an empty name in a tree");
    size_t index = tk_tree_find(tree, name);
    return index < tree->names.count ? tk_tree_set_at(tree, index, array) : add(tree, name, array);
}

tk_status tk_tree_set_at(tk_tree *tree, size_t index, tk_array array) {
    TK_NEED(tree);
    if (index >= tree->names.count)
        return tk_fail(TK_INVALID_ARGUMENT, "position %zu of a tree of %zu arrays", index,
                       tree->names.count);
    if (!array.node)
        return tk_fail(TK_INVALID_ARGUMENT, "no array (TK_NO_ARRAY) for \"%.200s\"",
                       tree->names.items[index]);
    tk_array old = tree->arrays.items[index];
    tree->arrays.items[index] = tk_keep(array);
    tk_release(old);
    return TK_OK;
}

tk_status tk_tree_set_all(tk_tree *tree, const tk_array *arrays, size_t count) {
    TK_NEED(tree);
    if (count) TK_NEED(arrays);
    if (count != tree->names.count)
        return tk_fail(TK_INVALID_ARGUMENT, "%zu arrays given for a tree of %zu", count,
                       tree->names.count);
    for (size_t i = 0; i < count; i++) TK_TRY(tk_tree_set_at(tree, i, arrays[i]));
    return TK_OK;
}

int64_t tk_tree_size(const tk_tree *tree) {
    if (!tree) return 0;
    int64_t size = 0;
    for (size_t i = 0; i < tree->arrays.count; i++) size += tk_array_size(tree->arrays.items[i]);
    return size;
}

int64_t tk_tree_bytes(const tk_tree *tree) {
    if (!tree) return 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < tree->arrays.count; i++) {
        tk_array array = tree->arrays.items[i];
        bytes += tk_array_size(array) * (int64_t)tk_dtype_size(tk_array_dtype(array));
    }
    return bytes;
}

tk_status tk_tree_eval(const tk_tree *tree) {
    TK_NEED(tree);
    return tk_eval_all(tree->arrays.items, tree->arrays.count);
}
