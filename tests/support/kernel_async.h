/* Kernels of atomic, asynchronous and cluster operations, and what they compute: for the emulator
 * and for a card. Each test runs its kernels in the emulator, and gives them to `also`. */
#ifndef SUPPORT_KERNEL_ASYNC_H
#define SUPPORT_KERNEL_ASYNC_H

#include "support/kernel_files.h"

#include <math.h>

#include "tiki/emulator.h"

enum { SEEDS = 8, FLOATS = 1024 };

typedef struct shape {
    int blocks, cluster, threads;
    int64_t resident;
    const char *map; /* of %in, a tensor map of %x, and %out, the same of %y; NULL: some */
} shape;

static float x[FLOATS], y[FLOATS];

static tk_kernel *kernel_of(const shape *s, const char *body) {
    const char *map = s->map ? s->map : "extent (32, 32) stride (128) box (32, 8)";
    char *text = malloc(strlen(body) + 1024);
    assert_non_null(text);
    sprintf(
        text,
        "tiki kernel 1\nkernel test(%%x: ptr<f32, global> read align 128, %%y: ptr<f32, global> "
        "read_write align 128, %%in: ptr<tmap, param> map %%x f32 %s, %%out: ptr<tmap, param> map "
        "%%y f32 %s)\nform thread grid (%d, 1, 1) cluster (%d, 1, 1) block (%d, 1, 1)\n"
        "{\n%%t = thread_index.x : i32\n%%block = block_index.x : i32\n%%first = icmp.eq %%t, "
        "i32(0) : i1\n%s\n}\n",
        map, map, s->blocks, s->cluster, s->threads, body);
    tk_kernel *kernel = parse_text(text);
    free(text);
    return kernel;
}

static tk_emulation *run(const tk_kernel *kernel, const shape *s, uint64_t seed) {
    tk_kargument arguments[4] = {{0}, {0}, {0}, {0}};
    tk_kbuffer buffers[4] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
    tk_kemulate how = {.seed = seed,
                       .resident = s->resident,
                       .n_arguments = 4,
                       .arguments = arguments,
                       .buffers = buffers};
    tk_emulation *emulation = NULL;
    for (int i = 0; i < FLOATS; i++) x[i] = (float)(i + 1), y[i] = 0;
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    return emulation;
}

static void assert_clean(tk_emulation *emulation) {
    char *text;
    assert_ok(tk_emulation_text(emulation, &text));
    assert_string_equal(text, "");
    tk_kernel_text_free(text);
    tk_emulation_release(emulation);
}

/* Called with each kernel after the emulator has run it; y holds what it gave. NULL: nothing. */
static void (*also)(const tk_kernel *kernel);

/* Runs with some seeds; each result is what `expected` says of each element. */
static void assert_result(const shape *s, const char *body, float (*expected)(int i), int count) {
    tk_kernel *kernel = kernel_of(s, body);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_clean(run(kernel, s, seed));
        for (int i = 0; i < count; i++) {
            float want = expected(i);
            if (isnan(want) ? !isnan(y[i]) : y[i] != want)
                fail_msg("seed %d: y[%d] is %g, expected %g", (int)seed, i, (double)y[i],
                         (double)want);
        }
    }
    if (also) also(kernel);
    tk_kernel_release(kernel);
}

/* ---- atomics ---- */

typedef struct update {
    const char *text;
    uint32_t start, operand, old_last, result;
} update;

static void test_updates(void **state) {
    (void)state;
    static const update updates[] = {
        {"add.relaxed.gpu %p, i32(3)", 5, 3, 5, 8},
        {"smin.relaxed.gpu %p, i32(-3)", 5, 0, 5, 0xfffffffdu},
        {"smax.relaxed.gpu %p, i32(-3)", 5, 0, 5, 5},
        {"umin.relaxed.gpu %p, i32(-3)", 5, 0, 5, 5},
        {"umax.relaxed.gpu %p, i32(-3)", 5, 0, 5, 0xfffffffdu},
        {"and.acquire.gpu %p, i32(6)", 5, 0, 5, 4},
        {"or.release.gpu %p, i32(6)", 5, 0, 5, 7},
        {"xor.acq_rel.gpu %p, i32(6)", 5, 0, 5, 3},
        {"exchange.relaxed.gpu %p, i32(9)", 5, 0, 5, 9},
        {"compare.relaxed.gpu %p, i32(9), expected=i32(5)", 5, 0, 5, 9},
        {"compare.relaxed.gpu %p, i32(9), expected=i32(6)", 5, 0, 5, 5},
        {"inc.relaxed.gpu %p, i32(5)", 5, 0, 5, 0},
        {"inc.relaxed.gpu %p, i32(6)", 5, 0, 5, 6},
        {"dec.relaxed.gpu %p, i32(6)", 5, 0, 5, 4},
        {"dec.relaxed.gpu %p, i32(4)", 5, 0, 5, 4},
    };
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        const update *u = &updates[i];
        static const shape one = {1, 1, 1, 0, NULL};
        char body[400];
        snprintf(
            body, sizeof body,
            "%%p = pointer_cast %%y : ptr<i32, global>\nstore %%p, i32(%d)\n%%old = atomic.%s : "
            "i32\n%%q = offset %%p, i32(1) : ptr<i32, global>\nstore %%q, %%old",
            (int)u->start, u->text);
        tk_kernel *kernel = kernel_of(&one, body);
        assert_clean(run(kernel, &one, 1));
        if (also) also(kernel);
        uint32_t words[2];
        memcpy(words, y, sizeof words);
        assert_int_equal(words[0], u->result);
        assert_int_equal(words[1], u->old_last);
        tk_kernel_release(kernel);
    }
}

static float sum_of_threads(int i) { return i == 0 ? 64 * 65 / 2 * 4 : 0; }

static void test_sums(void **state) {
    (void)state;
    static const shape s = {4, 1, 64, 0, NULL};
    assert_result(
        &s,
        "%p = offset %x, %t : ptr<f32, global>\n%v = load %p : f32\nreduce.add.relaxed.gpu "
        "%y, %v",
        sum_of_threads, 4);
}

/* The block that comes last adds up what the others left. */
static float last_sum(int i) { return i == 0 ? 8 * 9 / 2 : (float)i; }

static void test_last_block(void **state) {
    (void)state;
    static const shape wide = {8, 1, 32, 0, NULL}, narrow = {8, 1, 32, 2, NULL};
    static const char body[] =
        "%words = pointer_cast %y : ptr<i32, global>\n%count = offset %words, i32(512) : ptr<i32, "
        "global>\nif %first {\n%j = add %block, i32(1) : i32\n%own = offset %y, %j : ptr<f32, "
        "global>\n%v = float_from_signed %j : f32\nstore %own, %v\n%n = atomic.add.acq_rel.gpu "
        "%count, "
        "i32(1) : i32\n%last = icmp.eq %n, i32(7) : i1\nif %last {\n%sum = for %i = i32(1) to "
        "i32(9) "
        "step i32(1) carry (%s = f32(0)) {\n%p = offset %y, %i : ptr<f32, global>\n%w = load %p : "
        "f32\n%z = add %s, %w : f32\nyield %z\n}\nstore %y, %sum\n}\n}";
    assert_result(&wide, body, last_sum, 9);
    assert_result(&narrow, body, last_sum, 9);
}

/* All blocks meet: that needs all of them resident. */
#define MEET                                                                                       \
    "%words = pointer_cast %y : ptr<i32, global>\n%count = offset %words, i32(512) : ptr<i32, "    \
    "global>\nbarrier\nif %first {\n%n = atomic.add.acq_rel.gpu %count, i32(1) : i32\n%seen = "    \
    "while (%v = i32(0)) {\n%got = load.acquire.gpu %count : i32\n%more = icmp.slt %got, i32(4) "  \
    ": "                                                                                           \
    "i1\ncondition %more, %got\n} do (%w) {\nyield %w\n}\n}\nbarrier\n"

static float next_block(int i) { return (float)((i + 1) % 4 + 1); }

static void test_grid_barrier(void **state) {
    (void)state;
    static const shape all = {4, 1, 64, 0, NULL}, some = {4, 1, 64, 3, NULL};
    static const char body[] =
        "if %first {\n%o = add %block, i32(16) : i32\n%p = offset %y, %o : ptr<f32, global>\n%j = "
        "add "
        "%block, i32(1) : i32\n%f = float_from_signed %j : f32\nstore %p, %f\n}\n" MEET
        "if %first {\n%k = add %block, i32(1) : i32\n%m = and %k, i32(3) : i32\n%o2 = add %m, "
        "i32(16) : "
        "i32\n%q = offset %y, %o2 : ptr<f32, global>\n%g = load %q : f32\n%r = offset %y, %block : "
        "ptr<f32, global>\nstore %r, %g\n}";
    assert_result(&all, body, next_block, 4);
    tk_kernel *kernel = kernel_of(&some, body);
    tk_emulation *emulation = run(kernel, &some, 3);
    tk_kfinding finding;
    assert_int_equal(tk_emulation_findings(emulation), 1);
    assert_ok(tk_emulation_finding(emulation, 0, &finding));
    assert_int_equal(finding.kind, TK_KF_DEADLOCK);
    tk_emulation_release(emulation);
    tk_kernel_release(kernel);
}

/* ---- cp.async ---- */

static float cut_copy(int i) { return i % 4 < 3 ? (float)(i + 1) : 0; }

static void test_cp_async(void **state) {
    (void)state;
    static const shape s = {1, 1, 32, 0, NULL};
    assert_result(
        &s,
        "%s = shared [align = 16] : shared<f32, \"128:1\">\n%b = address %s : ptr<f32, "
        "shared>\n%o = mul %t, i32(4) : i32\n%to = offset %b, %o : ptr<f32, shared>\n%from = "
        "offset %x, %o : ptr<f32, global>\ncp_async %to, %from, size=i32(12) [bytes = "
        "16]\ncp_async_commit\ncp_async_wait\n%v = load %to : f32x4\n%q = offset %y, %o : "
        "ptr<f32, global>\nstore %q, %v",
        cut_copy, 128);
}

static float doubled(int i) { return (float)(2 * (i + 1)); }

static void test_cp_async_mbarrier(void **state) {
    (void)state;
    static const shape s = {1, 1, 64, 0, NULL};
    assert_result(
        &s,
        "%s = shared [align = 16] : shared<f32, \"64:1\">\n%b = address %s : ptr<f32, "
        "shared>\n%ms = shared : shared<mbar, \"1:1\">\n%bar = address %ms : ptr<mbar, "
        "shared>\nif %first {\nmbarrier_init %bar, i32(64)\n}\nbarrier\n%to = offset %b, %t : "
        "ptr<f32, shared>\n%from = offset %x, %t : ptr<f32, global>\ncp_async %to, %from "
        "[bytes = 4]\ncp_async_arrive.arriving %bar\nmbarrier_wait %bar, i32(0)\n%o = sub "
        "i32(63), %t : i32\n%p = offset %b, %o : ptr<f32, shared>\n%v = load %p : f32\n%w = "
        "add %v, %v : f32\n%q = offset %y, %o : ptr<f32, global>\nstore %q, %w",
        doubled, 64);
}

/* ---- a pipeline ---- */

static void test_pipeline(void **state) {
    (void)state;
    static const shape s = {1, 1, 64, 0, NULL};
    assert_result(&s,
                  "%s = shared [align = 128] : shared<f32, \"128:1\">\n"
                  "%b = address %s : ptr<f32, shared>\n"
                  "%ms = shared : shared<mbar, \"4:1\">\n"
                  "%full = address %ms : ptr<mbar, shared>\n"
                  "%empty = offset %full, i32(2) : ptr<mbar, shared>\n"
                  "if %first {\n"
                  "for %i0 = i32(0) to i32(2) step i32(1) {\n"
                  "%f0 = offset %full, %i0 : ptr<mbar, shared>\n"
                  "%e0 = offset %empty, %i0 : ptr<mbar, shared>\n"
                  "mbarrier_init %f0, i32(1)\n"
                  "mbarrier_init %e0, i32(32)\n"
                  "yield\n"
                  "}\n"
                  "mbarrier_fence\n"
                  "}\n"
                  "barrier\n"
                  "%low = icmp.slt %t, i32(32) : i1\n"
                  "%lane = and %t, i32(31) : i32\n"
                  "for %i = i32(0) to i32(16) step i32(1) {\n"
                  "%stage = and %i, i32(1) : i32\n"
                  "%turn = ushr %i, i32(1) : i32\n"
                  "%parity = and %turn, i32(1) : i32\n"
                  "%other = xor %parity, i32(1) : i32\n"
                  "%f = offset %full, %stage : ptr<mbar, shared>\n"
                  "%e = offset %empty, %stage : ptr<mbar, shared>\n"
                  "%so = mul %stage, i32(64) : i32\n"
                  "%tile = offset %b, %so : ptr<f32, shared>\n"
                  "%go = mul %i, i32(64) : i32\n"
                  "if %low {\n"
                  "if %first {\n"
                  "mbarrier_wait %e, %other\n"
                  "mbarrier_expect %f, i32(256)\n"
                  "%from = offset %x, %go : ptr<f32, global>\n"
                  "bulk_load %tile, %from, i32(256), %f\n"
                  "}\n"
                  "} else {\n"
                  "mbarrier_wait %f, %parity\n"
                  "%p = offset %tile, %lane : ptr<f32, shared>\n"
                  "%p2 = offset %p, i32(32) : ptr<f32, shared>\n"
                  "%v = load %p : f32\n"
                  "%v2 = load %p2 : f32\n"
                  "mbarrier_arrive %e\n"
                  "%w = add %v, %v : f32\n"
                  "%w2 = add %v2, %v2 : f32\n"
                  "%at = add %go, %lane : i32\n"
                  "%q = offset %y, %at : ptr<f32, global>\n"
                  "%q2 = offset %q, i32(32) : ptr<f32, global>\n"
                  "store %q, %w\n"
                  "store %q2, %w2\n"
                  "}\n"
                  "yield\n"
                  "}",
                  doubled, 1024);
}

/* ---- TMA ---- */

/* A box at %c0, %c1 to shared memory, and that, as it lies, to y. */
#define BOX(bytes, load, words)                                                                    \
    "%s = shared [align = 1024] : shared<f32, \"1024:1\">\n%b = address %s : ptr<f32, "            \
    "shared>\n%ms = "                                                                              \
    "shared : shared<mbar, \"1:1\">\n%bar = address %ms : ptr<mbar, shared>\nif %first "           \
    "{\nmbarrier_init %bar, i32(1)\nmbarrier_fence\nmbarrier_expect %bar, i32(" bytes ")\n" load   \
    "\n}\nbarrier\nmbarrier_wait %bar, i32(0)\nfor %i = %t to i32(" words                          \
    ") step i32(32) {\n%p = offset %b, %i : ptr<f32, shared>\n%v = load %p : f32\n%q = offset "    \
    "%y, %i "                                                                                      \
    ": ptr<f32, global>\nstore %q, %v\nyield\n}"

/* Element i of shared memory of a tile whose rows have `row` bytes: where the swizzle took it
 * from. The exchange is its own inverse. */
static int unswizzled(int i, int bits) {
    int byte = 4 * i;
    return (byte ^ ((byte >> 7 & bits) << 4)) / 4;
}

static float plain_box(int i) { return (float)((i / 32 + 8) * 32 + i % 32 + 1); }
static float box_128(int i) { return plain_box(unswizzled(i, 7)); }
static float box_64(int i) {
    int from = unswizzled(i, 3);
    return (float)(from / 16 * 32 + from % 16 + 1);
}
static float box_32(int i) {
    int from = unswizzled(i, 1);
    return (float)(from / 8 * 32 + from % 8 + 1);
}

static void test_boxes(void **state) {
    (void)state;
    static const shape plain = {1, 1, 32, 0, NULL},
                       s128 = {1, 1, 32, 0, "extent (32, 32) stride (128) box (32, 8) swizzle 128"},
                       s64 = {1, 1, 32, 0, "extent (32, 32) stride (128) box (16, 8) swizzle 64"},
                       s32 = {1, 1, 32, 0, "extent (32, 32) stride (128) box (8, 8) swizzle 32"};
    assert_result(&plain, BOX("1024", "tma_load %b, %in, %bar, i32(0), i32(8)", "256"), plain_box,
                  256);
    assert_result(&s128, BOX("1024", "tma_load %b, %in, %bar, i32(0), i32(8)", "256"), box_128,
                  256);
    assert_result(&s64, BOX("512", "tma_load %b, %in, %bar, i32(0), i32(0)", "128"), box_64, 128);
    assert_result(&s32, BOX("256", "tma_load %b, %in, %bar, i32(0), i32(0)", "64"), box_32, 64);
}

/* Coordinates (28, 30) of a box of 8 by 8 in a tensor of 32 by 32. */
static float corner(int i, float outside) {
    int column = 28 + i % 8, row = 30 + i / 8;
    return column < 32 && row < 32 ? (float)(row * 32 + column + 1) : outside;
}
static float corner_zero(int i) { return corner(i, 0); }
static float corner_nan(int i) { return corner(i, NAN); }
/* Coordinates (-4, -1). */
static float before(int i) {
    int column = i % 8 - 4, row = i / 8 - 1;
    return column >= 0 && row >= 0 ? (float)(row * 32 + column + 1) : 0;
}

static void test_outside(void **state) {
    (void)state;
    static const shape zero = {1, 1, 32, 0, "extent (32, 32) stride (128) box (8, 8)"},
                       nan = {1, 1, 32, 0, "extent (32, 32) stride (128) box (8, 8) nan"};
    assert_result(&zero, BOX("256", "tma_load %b, %in, %bar, i32(28), i32(30)", "64"), corner_zero,
                  64);
    assert_result(&nan, BOX("256", "tma_load %b, %in, %bar, i32(28), i32(30)", "64"), corner_nan,
                  64);
    assert_result(&zero, BOX("256", "tma_load %b, %in, %bar, i32(-4), i32(-1)", "64"), before, 64);
}

/* Five modes of 4, every second one of mode 2: a box of 4 by 2 by (4 in steps of 2) by 1 by 2. */
static float cube(int i) {
    int a = i % 4, b = i / 4 % 2, c = i / 8 % 2, e = i / 16;
    return (float)(a + 4 * (b + 1) + 16 * (2 * c) + 64 * 3 + 256 * e + 1);
}

static float line(int i) { return (float)(i + 9); }

static void test_ranks(void **state) {
    (void)state;
    static const shape five = {1, 1, 32, 0,
                               "extent (4, 4, 4, 4, 4) stride (16, 64, 256, 1024) box (4, 2, 4, 1, "
                               "2) step (1, 1, 2, 1, 1)"},
                       one = {1, 1, 32, 0, "extent (1024) stride () box (16)"};
    assert_result(
        &five, BOX("128", "tma_load %b, %in, %bar, i32(0), i32(1), i32(0), i32(3), i32(0)", "32"),
        cube, 32);
    assert_result(&one, BOX("64", "tma_load %b, %in, %bar, i32(8)", "16"), line, 16);
}

/* The thread's number plus one, at (24, 30) of y: what lies outside is dropped. */
#define PUT(operation)                                                                             \
    "%s = shared [align = 1024] : shared<f32, \"256:1\">\n%b = address %s : ptr<f32, shared>\n%p " \
    "= "                                                                                           \
    "offset %b, %t : ptr<f32, shared>\n%j = add %t, i32(1) : i32\n%f = float_from_signed %j : "    \
    "f32\nstore %p, %f\nproxy_fence.async\nbarrier\nif %first {\n" operation                       \
    "\nbulk_commit\nbulk_wait\n}"

static float stored(int i) {
    int column = i % 32 - 24, row = i / 32 - 30;
    return column >= 0 && row >= 0 ? (float)(row * 16 + column + 1) : 0;
}
static float stored_swizzled(int i) {
    int from = i % 32 + 32 * (i / 32);
    return i < 128 ? (float)(unswizzled(from, 7) + 1) : 0;
}
static float reduced(int i) { return 3 * stored(i); }

static void test_stores(void **state) {
    (void)state;
    static const shape s = {1, 1, 128, 0, "extent (32, 32) stride (128) box (16, 8)"},
                       swizzled = {1, 1, 128, 0,
                                   "extent (32, 32) stride (128) box (32, 4) swizzle 128"},
                       three = {3, 1, 128, 0, "extent (32, 32) stride (128) box (16, 8)"};
    assert_result(&s, PUT("tma_store %out, %b, i32(24), i32(30)"), stored, 1024);
    assert_result(&swizzled, PUT("tma_store %out, %b, i32(0), i32(0)"), stored_swizzled, 1024);
    assert_result(&three, PUT("tma_reduce.add %out, %b, i32(24), i32(30)"), reduced, 1024);
}

static float thrice(int i) { return i < 128 ? (float)(3 * (i + 1)) : 0; }

static void test_bulk_reduce(void **state) {
    (void)state;
    static const shape three = {3, 1, 128, 0, NULL};
    assert_result(&three, PUT("bulk_reduce.add %y, %b, i32(512)"), thrice, 256);
}

/* A map is copied to shared memory, changed (base, extent, fill), published, used and wiped out.
 * The box of 8 by 8 begins in the last 4 columns. */
static float changed(int i) {
    int column = 8 + i % 8;
    return column < 12 ? (float)(256 + i / 8 * 32 + column + 1) : NAN;
}

static void test_changed_map(void **state) {
    (void)state;
    static const shape s = {1, 1, 32, 0, "extent (32, 32) stride (128) box (8, 8)"};
    assert_result(
        &s,
        "%mt = shared [align = 128] : shared<i64, \"16:1\">\n%mp = address %mt : ptr<i64, shared>\n"
        "%words = pointer_cast %in : ptr<i64, param>\n%half = icmp.slt %t, i32(16) : i1\nif %half "
        "{\n%pw = offset %words, %t : ptr<i64, param>\n%word = load %pw : i64\n%to = offset %mp, "
        "%t : "
        "ptr<i64, shared>\nstore %to, %word\n}\nwarp_barrier\nif %first {\n%base = offset %x, "
        "i32(256) "
        ": ptr<f32, global>\n%bits = pointer_bits %base : i64\nmap_replace.address %mp, "
        "%bits\nmap_replace.extent %mp, i32(12) [index = 0]\nmap_replace.fill %mp, "
        "i32(1)\n}\nwarp_barrier\n%place = offset %y, i32(992) : ptr<f32, global>\n%own = "
        "pointer_cast "
        "%place : ptr<tmap, global>\nmap_publish.gpu %place, %mp\nmap_acquire.gpu "
        "%own\nbarrier\n" BOX(
            "256", "tma_load %b, %own, %bar, i32(8), i32(0)",
            "64") "\nbarrier\n%left = offset %place, %t : ptr<f32, global>\nstore %left, f32(0)",
        changed, 64);
}

/* ---- clusters ---- */

#define CLUSTER                                                                                    \
    "%rank = special.cluster_rank : i32\n%s = shared [align = 1024] : shared<f32, \"256:1\">\n%b " \
    "= "                                                                                           \
    "address %s : ptr<f32, shared>\n%ms = shared : shared<mbar, \"1:1\">\n%bar = address %ms : "   \
    "ptr<mbar, shared>\n%far = pointer_cast %b : ptr<f32, cluster>\n%gate = pointer_cast %bar : "  \
    "ptr<mbar, cluster>\n%lead = icmp.eq %rank, i32(0) : i1\n"
#define MEET_CLUSTER "cluster_arrive\ncluster_wait\n"

/* Each block's 64 floats are those of block 0. */
static float copied(int i) { return (float)(i % 64 + 1); }

static void test_multicast(void **state) {
    (void)state;
    static const shape s = {4, 2, 64, 0, NULL};
    assert_result(
        &s,
        CLUSTER
        "if %first {\nmbarrier_init %bar, i32(1)\nmbarrier_fence\nmbarrier_expect %bar, "
        "i32(256)\n}\n" MEET_CLUSTER
        "if %lead {\nif %first {\nbulk_load %b, %x, i32(256), %bar, multicast=i32(3)\n}\n}\n"
        "mbarrier_wait %bar, i32(0)\n%p = offset %b, %t : ptr<f32, shared>\n%v = load %p : "
        "f32\n%o = mul %block, i32(64) : i32\n%k = add %o, %t : i32\n%q = offset %y, %k : "
        "ptr<f32, global>\nstore %q, %v\n" MEET_CLUSTER,
        copied, 256);
}

/* Block r of each pair gets what the other has: the thread's number plus 1000 times its rank. */
static float swapped(int i) { return (float)(i % 64 + 1000 * (1 - i / 64 % 2)); }

#define FILL                                                                                       \
    "%p = offset %b, %t : ptr<f32, shared>\n%m = mul %rank, i32(1000) : i32\n%n = add %m, %t : "   \
    "i32\n%f = float_from_signed %n : f32\nstore %p, %f\n%next = xor %rank, i32(1) : i32\n"
#define TAKE                                                                                       \
    "%o = mul %block, i32(64) : i32\n%k = add %o, %t : i32\n%q = offset %y, %k : ptr<f32, "        \
    "global>\nstore %q, %v\n"

static void test_peers(void **state) {
    (void)state;
    static const shape s = {4, 2, 64, 0, NULL};
    assert_result(&s,
                  CLUSTER FILL MEET_CLUSTER
                  "%fp = pointer_cast %p : ptr<f32, cluster>\n%there = peer %fp, %next : ptr<f32, "
                  "cluster>\n%v = load %there : f32\n" TAKE MEET_CLUSTER,
                  swapped, 256);
    assert_result(
        &s,
        CLUSTER FILL
        "if %first {\nmbarrier_init %bar, i32(1)\nmbarrier_fence\nmbarrier_expect %bar, "
        "i32(256)\n}\nproxy_fence.async\n" MEET_CLUSTER
        "if %first {\n%half = offset %far, i32(64) : ptr<f32, cluster>\n%to = peer %half, "
        "%next : ptr<f32, cluster>\n%signal = peer %gate, %next : ptr<mbar, "
        "cluster>\nbulk_send %to, %b, i32(256), %signal\n}\nmbarrier_wait %bar, i32(0)\n%h = "
        "offset %p, i32(64) : ptr<f32, shared>\n%v = load %h : f32\n" TAKE MEET_CLUSTER,
        swapped, 256);
}

/* The same, each thread its own number, which the other block's mbarrier counts. */
static void test_store_async(void **state) {
    (void)state;
    static const shape s = {4, 2, 64, 0, NULL};
    assert_result(
        &s,
        CLUSTER FILL
        "if %first {\nmbarrier_init %bar, i32(1)\nmbarrier_fence\n}\ncluster_arrive.relaxed\n"
        "cluster_wait\n%fp = pointer_cast %p : ptr<f32, cluster>\n%half = offset %fp, i32(64) : "
        "ptr<f32, cluster>\n%to = peer %half, %next : ptr<f32, cluster>\n%signal = peer %gate, "
        "%next : ptr<mbar, cluster>\nstore_async %to, %f, %signal\nif %first {\nmbarrier_expect "
        "%bar, i32(256)\n}\nmbarrier_wait %bar, i32(0)\n%h = offset %p, i32(64) : ptr<f32, "
        "shared>\n%v = load %h : f32\n" TAKE,
        swapped, 256);
}

/* Threads of both blocks arrive at the mbarrier of the first. */
static float arrived(int i) { return i == 0 ? 64 : 0; }

static void test_remote_arrival(void **state) {
    (void)state;
    static const shape s = {2, 2, 64, 0, NULL};
    assert_result(
        &s,
        CLUSTER
        "if %first {\nmbarrier_init %bar, i32(128)\nstore %b, f32(0)\n}\n" MEET_CLUSTER
        "%signal = peer %gate, i32(0) : ptr<mbar, cluster>\n%there = peer %far, i32(0) : "
        "ptr<f32, cluster>\nif %lead {\nyield\n} else {\n%w = atomic.add.relaxed.cluster "
        "%there, f32(1) : f32\n}\nmbarrier_arrive %signal\nif %lead {\nmbarrier_wait.cluster "
        "%bar, i32(0)\nif %first {\n%v = load %b : f32\nstore %y, %v\n}\n}\n" MEET_CLUSTER,
        arrived, 2);
}

#define ASYNC_TESTS                                                                                \
    cmocka_unit_test(test_updates), cmocka_unit_test(test_sums),                                   \
        cmocka_unit_test(test_last_block), cmocka_unit_test(test_grid_barrier),                    \
        cmocka_unit_test(test_cp_async), cmocka_unit_test(test_cp_async_mbarrier),                 \
        cmocka_unit_test(test_pipeline), cmocka_unit_test(test_boxes),                             \
        cmocka_unit_test(test_outside), cmocka_unit_test(test_ranks),                              \
        cmocka_unit_test(test_stores), cmocka_unit_test(test_bulk_reduce),                         \
        cmocka_unit_test(test_changed_map), cmocka_unit_test(test_multicast),                      \
        cmocka_unit_test(test_peers), cmocka_unit_test(test_store_async),                          \
        cmocka_unit_test(test_remote_arrival)

#endif
