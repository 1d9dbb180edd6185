/* OpenBLAS by dlopen.
 *
 * It is 30 MB with thousands of relocations, starts threads when it is loaded and takes longer than
 * the rest of a short command together, so it comes with the first large product.
 *
 * Rejected: linking it (`tiki --help` would wait for it). The soname is that of its stable
 * interface. It is never closed: its threads live as long as the process. */
#include "cpu/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "tiki/array.h"

static tk_blas blas;
static const tk_blas *loaded;
static void *library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Which library, until it is opened. */
static pthread_mutex_t choice_lock = PTHREAD_MUTEX_INITIALIZER;
static char chosen_path[4096] = "libopenblas.so.0";
static char chosen_prefix[16];
static bool is_opened;

static void open_chosen(void) {
    pthread_mutex_lock(&choice_lock);
    library = dlopen(chosen_path, RTLD_NOW | RTLD_LOCAL);
    is_opened = true;
    pthread_mutex_unlock(&choice_lock);
}

static void *symbol_of(const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", chosen_prefix, name);
    return dlsym(library, full);
}

static void load(void) {
    open_chosen();
    if (!library) return;
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"cblas_sgemm", &blas.sgemm},
        {"cblas_dgemm", &blas.dgemm},
        {"cblas_cgemm", &blas.cgemm},
        {"cblas_sgemv", &blas.sgemv},
        {"cblas_dgemv", &blas.dgemv},
        {"openblas_get_config", &blas.config},
        {"openblas_set_num_threads", &blas.threads},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = symbol_of(symbols[i].name);
        if (!symbol) return;
        *(void **)symbols[i].slot = symbol;
    }
    blas.threads(1);
    loaded = &blas;
}

const tk_blas *tk_blas_get(void) {
    pthread_once(&once, load);
    return loaded;
}

const char *tk_blas_name(void) { return tk_blas_get() ? blas.config() : NULL; }

void *tk_blas_symbol(const char *name) { return tk_blas_get() ? symbol_of(name) : NULL; }

static tk_status choose(const char *path, const char *prefix) {
    if (is_opened)
        return tk_fail(
            TK_INVALID_ARGUMENT,
            "tk_cpu_set_blas: the library of matrix products is in use already; choose it "
            "before the first product");
    strcpy(chosen_path, path);
    strcpy(chosen_prefix, prefix);
    return TK_OK;
}

tk_status tk_cpu_set_blas(const char *path, const char *prefix) {
    TK_NEED(path, prefix);
    if (strlen(path) >= sizeof chosen_path || strlen(prefix) >= sizeof chosen_prefix)
        return tk_fail(
            TK_INVALID_ARGUMENT,
            "tk_cpu_set_blas: path and prefix have %zu and %zu bytes, at most %zu and %zu "
            "are possible",
            strlen(path), strlen(prefix), sizeof chosen_path - 1, sizeof chosen_prefix - 1);
    if (access(path, R_OK) != 0)
        return tk_fail(TK_IO_ERROR, "tk_cpu_set_blas: cannot read '%.400s'", path);
    pthread_mutex_lock(&choice_lock);
    tk_status status = choose(path, prefix);
    pthread_mutex_unlock(&choice_lock);
    return status;
}
