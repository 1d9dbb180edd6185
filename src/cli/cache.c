/* `tiki cache`: look after the kernels that are kept on disk.
 *
 *     tiki cache ls [--all]        the kernels, the one used last first; with the notes
 *     tiki cache verify            check every entry, remove those that are damaged
 *     tiki cache prune [MIB]       remove those used longest ago until MIB are left (0)
 *     tiki cache explain DIGEST    the key of an entry, and what the nearest other one differs in
 *     tiki cache explain FILE.tk [ARCH [TARGET]]
 *                                  whether a kernel is there, and what the nearest entry differs in
 */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "tiki/cache.h"
#include "tiki/target.h"

static const char usage[] =
    "usage: tiki cache ls [--all] | verify | prune [MIB] | explain DIGEST |\n"
    "                  explain FILE.tk [ARCH [ptx|cute]]\n\n"
    "Looks after the kernels that are kept on disk: lists them, checks them, removes those used\n"
    "longest ago, explains an entry's key by its digest or the first digits of it, or whether a\n"
    "kernel is there and, if not, in which parts of its identity the nearest entry differs.\n"
    "ls prints digest, time of the last use (UTC), bytes and name; with --all also the notes,\n"
    "which lead from a kernel or a call to its entries. Without MIB prune removes everything.\n";

typedef struct listing {
    bool all;
    int64_t kernels, notes;
} listing;

static bool print_entry(void *arg, const tk_cache_entry *entry) {
    listing *seen = arg;
    char when[32];
    time_t used = (time_t)entry->used;
    struct tm parts;
    ++*(entry->is_note ? &seen->notes : &seen->kernels);
    if (entry->is_note && !seen->all) return true;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M", gmtime_r(&used, &parts));
    printf("%.12s  %s  %10zu  %s\n", entry->digest, when, entry->bytes, entry->what);
    return true;
}

static int list(tk_cache *cache, bool all) {
    listing seen = {.all = all};
    if (tk_cache_list(cache, print_entry, &seen) != TK_OK) return complain_of_error("cache ls");
    printf("%lld kernels in %s", (long long)seen.kernels, tk_cache_folder(cache));
    if (seen.notes)
        printf(", and %lld notes that lead to them%s", (long long)seen.notes,
               all ? "" : " (ls --all)");
    putchar('\n');
    return 0;
}

static int verify(tk_cache *cache) {
    int64_t sound, broken;
    if (tk_cache_verify(cache, &sound, &broken) != TK_OK) return complain_of_error("cache verify");
    printf("%lld entries are sound, %lld were damaged\n", (long long)sound, (long long)broken);
    return broken ? 1 : 0;
}

static int prune(tk_cache *cache, const char *text) {
    char *end = NULL;
    unsigned long long mib = text ? strtoull(text, &end, 10) : 0;
    int64_t removed;
    if (text && (end == text || *end || text[0] == '-' || mib > SIZE_MAX >> 20)) {
        fprintf(stderr, "tiki cache prune: '%s' is no number of MiB\n", text);
        return 2;
    }
    if (tk_cache_prune(cache, (size_t)mib << 20, &removed) != TK_OK)
        return complain_of_error("cache prune");
    printf("%lld entries removed\n", (long long)removed);
    return 0;
}

static int explain(tk_cache *cache, const char *digest) {
    char *text;
    if (tk_cache_explain(cache, digest, &text) != TK_OK) return complain_of_error("cache explain");
    fputs(text, stdout);
    tk_cache_text_free(text);
    return 0;
}

static int explain_kernel(tk_cache *cache, const char *path, const char *arch, const char *target) {
    char *text;
    tk_build how = {.arch = arch};
    if (target && tk_target_find(target, &how.target) != TK_OK)
        return complain_of_error("cache explain");
    tk_kernel *kernel = kernel_read("cache explain", path);
    if (!kernel) return 1;
    tk_status status = tk_kernel_cache_explain(kernel, &how, cache, &text);
    tk_kernel_release(kernel);
    if (status != TK_OK) return complain_of_error("cache explain");
    fputs(text, stdout);
    tk_cache_text_free(text);
    return 0;
}

static bool is_kernel_file(const char *name) {
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".tk") == 0;
}

static int run(tk_cache *cache, int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc == 2 && strcmp(verb, "ls") == 0) return list(cache, false);
    if (argc == 3 && strcmp(verb, "ls") == 0 && strcmp(argv[2], "--all") == 0)
        return list(cache, true);
    if (argc == 2 && strcmp(verb, "verify") == 0) return verify(cache);
    if (argc <= 3 && strcmp(verb, "prune") == 0) return prune(cache, argc == 3 ? argv[2] : NULL);
    bool explains = argc >= 3 && strcmp(verb, "explain") == 0;
    if (explains && argc <= 5 && is_kernel_file(argv[2]))
        return explain_kernel(cache, argv[2], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL);
    if (explains && argc == 3) return explain(cache, argv[2]);
    fputs(usage, stderr);
    return 2;
}

int command_cache(int argc, char **argv) {
    tk_cache *cache;
    char warning[512];
    if (asks_for_help(argc, argv)) {
        fputs(usage, stdout);
        return 0;
    }
    if (tk_cache_open(NULL, &cache) != TK_OK) return complain_of_error("cache");
    int code = run(cache, argc, argv);
    fflush(stdout);
    if (tk_cache_warning(cache, warning, sizeof warning))
        fprintf(stderr, "tiki cache: %s\n", warning);
    tk_cache_close(cache);
    return code;
}
