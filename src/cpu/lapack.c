/* See lapack.h. OpenBLAS has LAPACK in it: there is no second library to load, and its
 * factorisations use its own products. It is kept to one thread (blas.c); stacks of matrices are
 * spread over the pool. */
#include "cpu/lapack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "cpu/blas.h"

enum { SINGLE, DOUBLE, COMPLEX, KINDS };

static tk_lapack tables[KINDS];
static bool whole[KINDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef struct routine {
    const char *name; /* without the letter of the element type */
    size_t offset;
} routine;

static bool load_one(char letter, const routine *r, tk_lapack *table) {
    char symbol[24];
    snprintf(symbol, sizeof symbol, "%c%s_", letter, r->name);
    void *found = tk_blas_symbol(symbol);
    *(void **)(void *)((char *)table + r->offset) = found;
    return found != NULL;
}

static bool load_all(char letter, const routine *routines, size_t count, tk_lapack *table) {
    bool ok = true;
    for (size_t i = 0; i < count; i++) ok &= load_one(letter, &routines[i], table);
    return ok;
}

#define SLOT(name, field)                                                                          \
    { name, offsetof(tk_lapack, field) }
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void load(void) {
    static const routine of_real[] = {
        SLOT("getrf", getrf), SLOT("getri", getri), SLOT("getrs", getrs), SLOT("trtrs", trtrs),
        SLOT("potrf", potrf), SLOT("geqrf", geqrf), SLOT("orgqr", orgqr), SLOT("gesdd", gesdd),
        SLOT("syevd", syevd), SLOT("geev", geev)};
    static const routine of_complex[] = {SLOT("geqrf", geqrf), SLOT("ungqr", orgqr),
                                         SLOT("gesdd", gesdd_complex), SLOT("heevd", heevd),
                                         SLOT("geev", geev_complex)};
    whole[SINGLE] = load_all('s', of_real, COUNT(of_real), &tables[SINGLE]);
    whole[DOUBLE] = load_all('d', of_real, COUNT(of_real), &tables[DOUBLE]);
    whole[COMPLEX] = load_all('c', of_complex, COUNT(of_complex), &tables[COMPLEX]);
}

tk_status tk_lapack_get(const char *what, tk_dtype dtype, const tk_lapack **out_lapack) {
    int kind = dtype == TK_FLOAT32 ? SINGLE : dtype == TK_FLOAT64 ? DOUBLE : COMPLEX;
    pthread_once(&once, load);
    *out_lapack = &tables[kind];
    if (whole[kind]) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "%s: needs OpenBLAS with LAPACK (libopenblas.so.0), which is not installed",
                   what);
}
