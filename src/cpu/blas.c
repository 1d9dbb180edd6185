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
#include <stddef.h>

static tk_blas blas;
static const tk_blas *loaded;
static void *library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
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
        void *symbol = dlsym(library, symbols[i].name);
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

void *tk_blas_symbol(const char *name) { return tk_blas_get() ? dlsym(library, name) : NULL; }
