/* Open addressing with linear probing, at most half full; nothing is ever taken out. */
#include "kernel/names.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static tk_kname *place_of(const tk_knames *names, const char *text, size_t length) {
    size_t mask = names->capacity - 1, at = (size_t)tk_hash_bytes(0, text, length) & mask;
    for (;; at = (at + 1) & mask) {
        tk_kname *place = &names->places[at];
        if (!place->text || (place->length == length && !memcmp(place->text, text, length)))
            return place;
    }
}

tk_kname *tk_knames_find(const tk_knames *names, const char *text, size_t length) {
    if (!names->capacity) return NULL;
    tk_kname *place = place_of(names, text, length);
    return place->text ? place : NULL;
}

static bool grow(tk_knames *names) {
    tk_knames wider = {.capacity = names->capacity ? 2 * names->capacity : 64};
    wider.places = tk_calloc(wider.capacity, sizeof *wider.places);
    if (!wider.places) return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const tk_kname *old = &names->places[i];
        if (old->text) *place_of(&wider, old->text, old->length) = *old;
    }
    tk_free(names->places);
    names->places = wider.places;
    names->capacity = wider.capacity;
    return true;
}

tk_kname *tk_knames_add(tk_knames *names, const char *text, size_t length, void *what) {
    if (2 * (names->used + 1) > names->capacity && !grow(names)) return NULL;
    char *copy = tk_arena_text(&names->arena, text, length);
    if (!copy) return NULL;
    tk_kname *place = place_of(names, text, length);
    *place = (tk_kname){.text = copy, .length = length, .what = what};
    names->used++;
    return place;
}

const char *tk_knames_take(tk_knames *names, const char *name) {
    char text[80];
    size_t length = strlen(name);
    tk_kname *same = tk_knames_find(names, name, length);
    if (same) {
        do length = (size_t)snprintf(text, sizeof text, "%.60s_%u", name, ++same->count);
        while (tk_knames_find(names, text, length));
        name = text;
    }
    tk_kname *taken = tk_knames_add(names, name, length, NULL);
    return taken ? taken->text : NULL;
}

void tk_knames_deinit(tk_knames *names) {
    tk_free(names->places);
    tk_arena_deinit(&names->arena);
    *names = (tk_knames){0};
}
