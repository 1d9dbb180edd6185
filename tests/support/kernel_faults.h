/* Planted faults, each with a correct twin: kernels that differ from right ones by one mistake.
 *
 * The line of a fault is the one that ends in the mark `#!`. %t is the thread; %x and %y point to
 * 256 f32 (%x is only read); %n is 64; %map and %out are tensor maps of x and y as 16 rows of 16,
 * in boxes of 8 rows. */
#ifndef SUPPORT_KERNEL_FAULTS_H
#define SUPPORT_KERNEL_FAULTS_H

#include "support/kernel_files.h"

#include "tiki/emulator.h"

typedef struct fault {
    const char *name;
    tk_kfinding_kind kind;
    int blocks, cluster, threads;
    const char *faulty, *correct;
} fault;

enum { FAULT_SEEDS = 20, FAULT_FLOATS = 256 };

/* ---- pieces of kernels ---- */

/* 256 floats at %b, the thread's own at %c, its mirror image at %e. */
#define TILE                                                                                       \
    "%s = shared [align = 128] : shared<f32, \"256:1\">\n%b = address %s : ptr<f32, shared>\n"     \
    "%c = offset %b, %t : ptr<f32, shared>\n%o = sub i32(63), %t : i32\n"                          \
    "%e = offset %b, %o : ptr<f32, shared>\n"
#define POINT "%p = offset %x, %t : ptr<f32, global>\n%q = offset %y, %t : ptr<f32, global>\n"
#define FIRST "%first = icmp.eq %t, i32(0) : i1\n"
#define LOW "%low = icmp.slt %t, i32(32) : i1\n"
#define HALF "%half = icmp.slt %t, i32(16) : i1\n"

/* An i32 in %y that blocks tell each other by. */
#define FLAG                                                                                       \
    "%block = block_index.x : i32\n%words = pointer_cast %y : ptr<i32, global>\n"                  \
    "%flag = offset %words, i32(128) : ptr<i32, global>\n"

/* Two mbarriers, the first of `count` arrivals. */
#define BARS                                                                                       \
    FIRST "%ms = shared : shared<mbar, \"2:1\">\n%bar = address %ms : ptr<mbar, shared>\n"         \
          "%bar2 = offset %bar, i32(1) : ptr<mbar, shared>\n"
#define INIT(count)                                                                                \
    BARS "if %first {\nmbarrier_init %bar, i32(" count ")\nmbarrier_init %bar2, i32(" count        \
         ")\nmbarrier_fence\n}\nbarrier\n"

/* ---- running ---- */

/* The kernel around a body, and the line of its fault. */
static inline char *fault_text(const fault *f, const char *body, uint32_t *out_line) {
    static const char map[] = "extent (16, 16) stride (64) box (16, 8)";
    char *text = malloc(strlen(body) + 1024);
    assert_non_null(text);
    sprintf(text,
            "tiki kernel 1\nkernel test(%%x: ptr<f32, global> read align 128, %%y: ptr<f32, "
            "global> read_write align 128, %%n: i32, %%map: ptr<tmap, param> map %%x f32 %s, "
            "%%out: ptr<tmap, param> map %%y f32 %s)\n"
            "form thread grid (%d, 1, 1) cluster (%d, 1, 1) block (%d, 1, 1)\n"
            "{ %%t = thread_index.x : i32\n%s\n}\n",
            map, map, f->blocks, f->cluster, f->threads, body);
    const char *mark = strstr(text, "#!");
    *out_line = mark != NULL;
    for (const char *at = text; mark && at < mark; at++) *out_line += *at == '\n';
    return text;
}

static inline tk_emulation *fault_run(const tk_kernel *kernel, uint64_t seed) {
    static float x[FAULT_FLOATS], y[FAULT_FLOATS];
    for (int i = 0; i < FAULT_FLOATS; i++) x[i] = (float)i, y[i] = 0;
    tk_kargument arguments[5] = {{0}, {0}, {.bits = 64}, {0}, {0}};
    tk_kbuffer buffers[5] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}, {0}};
    tk_kemulate how = {.seed = seed, .n_arguments = 5, .arguments = arguments, .buffers = buffers};
    tk_emulation *emulation = NULL;
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    return emulation;
}

static inline bool fault_found(const tk_emulation *emulation, tk_kfinding_kind kind,
                               uint32_t line) {
    for (size_t i = 0; i < tk_emulation_findings(emulation); i++) {
        tk_kfinding finding;
        assert_ok(tk_emulation_finding(emulation, i, &finding));
        if (finding.kind == kind && (!line || finding.line == line)) return true;
    }
    return false;
}

static inline char *fault_list(const tk_emulation *emulation) {
    char *text;
    assert_ok(tk_emulation_text(emulation, &text));
    return text;
}

/* Every seed finds the fault, and the lists of all seeds are the same. */
static inline void assert_fault(const fault *f) {
    uint32_t line;
    char *text = fault_text(f, f->faulty, &line), *first = NULL;
    tk_kernel *kernel = parse_text(text);
    for (uint64_t seed = 0; seed < FAULT_SEEDS; seed++) {
        tk_emulation *emulation = fault_run(kernel, seed);
        char *list = fault_list(emulation);
        if (!fault_found(emulation, f->kind, line))
            fail_msg("%s, seed %d: no \"%s\" in line %u, but:\n%s", f->name, (int)seed,
                     tk_kfinding_name(f->kind), line, list);
        if (first && strcmp(first, list))
            fail_msg("%s, seed %d: the list is\n%sbut with seed 0\n%s", f->name, (int)seed, list,
                     first);
        if (first) tk_kernel_text_free(list);
        if (!first) first = list;
        tk_emulation_release(emulation);
    }
    tk_kernel_text_free(first);
    tk_kernel_release(kernel);
    free(text);
}

static inline void assert_twin(const fault *f) {
    uint32_t line;
    char *text = fault_text(f, f->correct, &line);
    tk_kernel *kernel = parse_text(text);
    for (uint64_t seed = 0; seed < FAULT_SEEDS; seed++) {
        tk_emulation *emulation = fault_run(kernel, seed);
        char *list = fault_list(emulation);
        if (*list) fail_msg("twin of %s, seed %d:\n%s", f->name, (int)seed, list);
        tk_kernel_text_free(list);
        tk_emulation_release(emulation);
    }
    tk_kernel_release(kernel);
    free(text);
}

static inline void assert_faults(const fault *faults, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_fault(&faults[i]);
        assert_twin(&faults[i]);
    }
}

/* Each kind has at least `least` of them. */
static inline void assert_kinds(const fault *faults, size_t count, const tk_kfinding_kind *kinds,
                                size_t n_kinds, int least) {
    for (size_t k = 0; k < n_kinds; k++) {
        int of_kind = 0;
        for (size_t i = 0; i < count; i++) of_kind += faults[i].kind == kinds[k];
        if (of_kind < least)
            fail_msg("%d faults of kind \"%s\", expected %d", of_kind, tk_kfinding_name(kinds[k]),
                     least);
    }
}

#endif
