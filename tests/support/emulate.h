/* Kernels run in the emulator, for tests: arguments, findings, planted faults. */
#ifndef SUPPORT_EMULATE_H
#define SUPPORT_EMULATE_H

#include "support/kernel_files.h"
#include "tiki/emulator.h"

#define SEEDS 20

typedef struct run {
    tk_kargument arguments[16];
    tk_kbuffer buffers[16];
    size_t count;
} run;

static inline void bind(run *r, void *data, size_t bytes) {
    r->buffers[r->count++] = (tk_kbuffer){data, bytes, 0};
}
static inline void bind_number(run *r, uint64_t bits) { r->arguments[r->count++].bits = bits; }

static inline tk_emulation *emulate(const tk_kernel *kernel, const run *r, uint64_t seed) {
    tk_emulation *emulation = NULL;
    tk_kemulate how = {
        .seed = seed, .n_arguments = r->count, .arguments = r->arguments, .buffers = r->buffers};
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    return emulation;
}

static inline void assert_clean(const tk_emulation *emulation) {
    char *text;
    assert_ok(tk_emulation_text(emulation, &text));
    assert_string_equal(text, "");
    tk_kernel_text_free(text);
}

typedef struct fault {
    const char *body;
    int threads;
    tk_kfinding_kind kind;
    uint32_t line; /* 4 + line of the body */
} fault;

static inline tk_emulation *run_body(const char *body, int threads, uint64_t seed) {
    static float x[64], y[64];
    char *text = around(body, threads);
    tk_kernel *kernel = parse_text(text);
    run r = {0};
    bind(&r, x, sizeof x), bind(&r, y, sizeof y), bind_number(&r, 64);
    tk_emulation *emulation = emulate(kernel, &r, seed);
    tk_kernel_release(kernel);
    free(text);
    return emulation;
}

static inline bool has_finding(const tk_emulation *emulation, const fault *f) {
    for (size_t i = 0; i < tk_emulation_findings(emulation); i++) {
        tk_kfinding finding;
        assert_ok(tk_emulation_finding(emulation, i, &finding));
        if (finding.kind == f->kind && (!f->line || finding.line == f->line)) return true;
    }
    return false;
}

/* The fault is found and named, for every seed. */
static inline void assert_found(const fault *f) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char *text;
        tk_emulation *emulation = run_body(f->body, f->threads, seed);
        assert_ok(tk_emulation_text(emulation, &text));
        if (!has_finding(emulation, f))
            fail_msg("seed %d: no \"%s\" in line %u, but:\n%s\nof\n%s", (int)seed,
                     tk_kfinding_name(f->kind), f->line, text, f->body);
        tk_kernel_text_free(text);
        tk_emulation_release(emulation);
    }
}

static inline void assert_clean_body(const char *body, int threads) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tk_emulation *emulation = run_body(body, threads, seed);
        assert_clean(emulation);
        tk_emulation_release(emulation);
    }
}

#endif
