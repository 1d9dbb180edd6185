/* Random programs of the tensor form (fewer under AddressSanitizer): tiles of drawn shapes, orders,
 * swizzles, element types and pitches are copied by drawn groups, plainly and by cp.async, through
 * two buffers in shared memory; products of drawn tiles in shared memory; sums over drawn modes.
 * What comes out is known, the emulator finds nothing, and every text reads back. `--first SEED
 * --count N` for others. */
#include "support/kernel_files.h"
#include "support/sanitizer.h"

#include "base/half.h"
#include "tiki/emulator.h"
#include "tiki/passes.h"

static uint64_t first_seed = 1, programs = SUPPORT_ASAN ? 100 : 400;

enum { MOST = 128 * 160 };
static uint16_t x[MOST] __attribute__((aligned(16))), y[MOST] __attribute__((aligned(16)));
static float z[MOST] __attribute__((aligned(16)));

typedef struct maker {
    uint64_t seed, state;
    char text[8192];
    size_t length;
} maker;

static int below(maker *m, int limit) {
    uint64_t v = m->state += 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return (int)((v ^ v >> 31) % (uint64_t)limit);
}

__attribute__((format(printf, 2, 3))) static void put(maker *m, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int written = vsnprintf(m->text + m->length, sizeof m->text - m->length, format, list);
    va_end(list);
    assert_true(written >= 0 && (size_t)written < sizeof m->text - m->length);
    m->length += (size_t)written;
}

/* ---- running ---- */

static tk_kernel *lower(maker *m, int flags) {
    tk_kernel *kernel = NULL, *out = NULL, *again = NULL;
    char *text;
    if (tk_kernel_parse(m->text, "drawn.tk", &kernel) != TK_OK ||
        tk_kernel_lower(kernel, TK_KFORM_THREAD, flags, &out) != TK_OK)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)m->seed, tk_error_message(), m->text);
    tk_kernel_release(kernel);
    assert_ok(tk_kernel_print(out, 0, &text));
    assert_ok(tk_kernel_parse(text, NULL, &again));
    assert_true(tk_kernel_equal(out, again));
    tk_kernel_release(again);
    tk_kernel_text_free(text);
    return out;
}

static void run(maker *m, int flags, size_t count, const tk_kbuffer *buffers,
                const tk_kargument *arguments) {
    tk_kernel *kernel = lower(m, flags);
    tk_emulation *emulation = NULL;
    char *text;
    tk_kemulate how = {
        .seed = m->seed, .n_arguments = count, .arguments = arguments, .buffers = buffers};
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    assert_ok(tk_emulation_text(emulation, &text));
    if (*text) fail_msg("seed %llu: %s\n%s", (unsigned long long)m->seed, text, m->text);
    tk_kernel_text_free(text);
    tk_emulation_release(emulation);
    tk_kernel_release(kernel);
}

static void wrong(const maker *m, const char *what, int at) {
    fail_msg("seed %llu: %s %d is wrong\n%s", (unsigned long long)m->seed, what, at, m->text);
}

/* ---- layouts ---- */

typedef struct matrix {
    int rows, columns, pitch;
    bool by_columns; /* columns lie together */
    bool dynamic;    /* the pitch is a parameter */
    bool cut;        /* one of four tiles of a larger matrix, at these tiles */
    int down, right;
    char layout[80], whole[80];
} matrix;

static int place(const matrix *a, int row, int column) {
    row += a->down * a->rows, column += a->right * a->columns;
    return a->by_columns ? column * a->pitch + row : row * a->pitch + column;
}

static void draw_global(maker *m, int rows, int columns, matrix *out) {
    *out = (matrix){.rows = rows, .columns = columns, .by_columns = below(m, 2)};
    out->pitch = ((out->by_columns ? rows : columns) + 7) / 8 * 8 + 8 * below(m, 3);
    out->dynamic = below(m, 2);
    char pitch[24];
    snprintf(pitch, sizeof pitch, "%d", out->pitch);
    const char *far = out->dynamic ? "?{div=8}" : pitch;
    snprintf(out->layout, sizeof out->layout, "(%d,%d):(%s,%s)", rows, columns,
             out->by_columns ? "1" : far, out->by_columns ? far : "1");
}

/* A tile of a matrix that is twice as long and wide. */
static void draw_tile(maker *m, int rows, int columns, matrix *out) {
    draw_global(m, 2 * rows, 2 * columns, out);
    snprintf(out->whole, sizeof out->whole, "%s", out->layout);
    const char *strides = strchr(out->layout, ':');
    char tile[80];
    snprintf(tile, sizeof tile, "(%d,%d)%s", rows, columns, strides);
    snprintf(out->layout, sizeof out->layout, "%s", tile);
    out->rows = rows, out->columns = columns, out->cut = true;
    out->down = below(m, 2), out->right = below(m, 2);
}

static void draw_shared(maker *m, int rows, int columns, matrix *out) {
    char swizzle[32] = "";
    *out = (matrix){.rows = rows, .columns = columns, .by_columns = below(m, 2)};
    out->pitch = out->by_columns ? rows : columns;
    if (rows * columns % 128 == 0 && below(m, 2)) {
        int bits = 1 + below(m, 3);
        snprintf(swizzle, sizeof swizzle, "S<%d,3,%d> o 0 o ", bits, bits + below(m, 2));
    }
    snprintf(out->layout, sizeof out->layout, "%s(%d,%d):(%d,%d)", swizzle, rows, columns,
             out->by_columns ? 1 : columns, out->by_columns ? rows : 1);
}

static void put_view(maker *m, const char *name, const char *of, const matrix *a, bool shared,
                     const char *element, const char *pitch) {
    if (a->cut) {
        matrix whole = *a;
        char all[24];
        whole.cut = false;
        snprintf(whole.layout, sizeof whole.layout, "%s", a->whole);
        snprintf(all, sizeof all, "%s_all", name);
        put_view(m, all, of, &whole, shared, element, pitch);
        put(m,
            "%%%s = tile %%%s [coord = \"(%d,%d)\", tiler = \"[%d:1;%d:1]\"] : view<%s, global, "
            "\"%s\">\n",
            name, all, a->down, a->right, a->rows, a->columns, element, a->layout);
        return;
    }
    put(m, "%%%s = view%s %%%s%s%s : view<%s, %s, \"%s\">\n", name, shared ? "_of" : "", of,
        a->dynamic ? ", %" : "", a->dynamic ? pitch : "", element, shared ? "shared" : "global",
        a->layout);
}

static void put_shared(maker *m, const char *name, const matrix *a, const char *element) {
    put(m, "%%%s = shared [align = 128] : shared<%s, \"%s\">\n", name, element, a->layout);
}

/* ---- copies ---- */

/* A group that meets each element once in a block of so many threads. */
static void put_group_copy(maker *m, int threads, const char *from, const char *to, bool async) {
    static const char *const vectors[] = {"", " [vector = 8]", " [vector = 4]"};
    const char *vector = vectors[below(m, 3)], *how = async ? ".cp_async" : "";
    int warps = threads / 32, first = below(m, warps);
    switch (below(m, 4)) {
    case 0:
        put(m, "copy.warps%s %%%s, %%%s [first = %d, count = %d]\n", how, from, to, first,
            1 + below(m, warps - first));
        break;
    case 1:
        if (threads == 32 || threads == 128) {
            put(m, "copy.%s%s %%%s, %%%s%s\n", threads == 32 ? "warp" : "warpgroup", how, from, to,
                vector);
            break;
        }
        /* fall through */
    default:
        put(m, "copy.block%s %%%s, %%%s%s\n", how, from, to, vector);
    }
    put(m, "%s", async ? "cp_async_commit\ncp_async_wait\nbarrier\n" : "barrier\n");
}

static void check_copies(maker *m) {
    static const int lengths[] = {8, 12, 16, 20, 32, 40, 64};
    int threads = 32 * (1 + below(m, 4)), rows = lengths[below(m, 7)],
        columns = lengths[below(m, 7)];
    matrix from, to, one, two;
    (below(m, 2) ? draw_tile : draw_global)(m, rows, columns, &from);
    (below(m, 2) ? draw_tile : draw_global)(m, rows, columns, &to);
    draw_shared(m, rows, columns, &one);
    draw_shared(m, rows, columns, &two);
    /* cp.async needs pieces of 4 bytes: both sides in one order */
    bool async = from.by_columns == one.by_columns;
    put(m,
        "tiki kernel 1\nkernel drawn(%%x: ptr<f16, global> read align 16, %%y: ptr<f16, global> "
        "write align 16, %%p: i32, %%q: i32)\nform tensor require %%p %% 8 == 0 require %%q %% 8 "
        "== 0 grid (1, 1, 1) block (%d, 1, 1)\n{\n",
        threads);
    put_shared(m, "s", &one, "f16");
    put_shared(m, "t", &two, "f16");
    put_view(m, "from", "x", &from, false, "f16", "p");
    put_view(m, "to", "y", &to, false, "f16", "q");
    put_view(m, "one", "s", &one, true, "f16", "");
    put_view(m, "two", "t", &two, true, "f16", "");
    put_group_copy(m, threads, "from", "one", async && below(m, 4));
    put_group_copy(m, threads, "one", "two", false);
    put_group_copy(m, threads, "two", "to", false);
    put(m, "}\n");
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
    tk_kargument arguments[] = {{0}, {0}, {(uint64_t)from.pitch}, {(uint64_t)to.pitch}};
    for (int i = 0; i < MOST; i++) x[i] = (uint16_t)(i * 2654435761u >> 7), y[i] = 0;
    run(m, below(m, 2) ? TK_KLOWER_OPTIMISE : 0, 4, buffers, arguments);
    for (int i = 0; i < rows * columns; i++)
        if (y[place(&to, i / columns, i % columns)] != x[place(&from, i / columns, i % columns)])
            wrong(m, "element", i);
}

/* ---- products ---- */

/* Numbers of 16 bits in x and y, and as they are. */
static float p[MOST], q[MOST];

static void fill_products(bool half) {
    for (int i = 0; i < MOST; i++) {
        p[i] = (float)(i * 7 % 17 - 8), q[i] = (float)(i * 5 % 11 - 5);
        x[i] = half ? tk_f32_to_f16(p[i]) : tk_f32_to_bf16(p[i]);
        y[i] = half ? tk_f32_to_f16(q[i]) : tk_f32_to_bf16(q[i]);
    }
}

static void check_sum_of_products(maker *m, const matrix *a, const matrix *b, float begin) {
    for (int i = 0; i < a->rows * b->rows; i++) {
        float sum = begin;
        for (int k = 0; k < a->columns; k++)
            sum += p[place(a, i / b->rows, k)] * q[place(b, i % b->rows, k)];
        if (z[i] != sum) wrong(m, "sum", i);
    }
}

static void check_product(maker *m) {
    int rows = 16 * (1 + below(m, 3)), columns = 8 * (1 + below(m, 4)),
        depth = 16 * (1 + below(m, 3));
    const char *element = below(m, 2) ? "f16" : "bf16";
    bool half = element[0] == 'f';
    matrix a, b, at, bt;
    draw_global(m, rows, depth, &a);
    draw_global(m, columns, depth, &b);
    draw_shared(m, rows, depth, &at);
    draw_shared(m, columns, depth, &bt);
    int parts = rows / 16, wide = columns / 8;
    put(m,
        "tiki kernel 1\nkernel drawn(%%x: ptr<%s, global> read align 16, %%y: ptr<%s, global> read "
        "align 16, %%z: ptr<f32, global> write align 16, %%p: i32, %%q: i32)\nform tensor require "
        "%%p %% 8 == 0 require %%q %% 8 == 0 grid (1, 1, 1) block (32, 1, 1)\n{\n",
        element, element);
    put_shared(m, "s", &at, element);
    put_shared(m, "t", &bt, element);
    put_view(m, "a", "x", &a, false, element, "p");
    put_view(m, "b", "y", &b, false, element, "q");
    put_view(m, "at", "s", &at, true, element, "");
    put_view(m, "bt", "t", &bt, true, element, "");
    put(m, "copy.block %%a, %%at\ncopy.block %%b, %%bt\nbarrier\n");
    put(m,
        "%%d = registers : regs<f32, \"((2,2),%d,%d):((1,2),4,%d)\", "
        "\"((4,8),((2,2),%d,%d)):((%d,1),"
        "((%d,8),16,%d))\">\nfill.thread %%d, f32(1.0)\ngemm.warp %%d, %%at, %%bt [m = 16, n = 8, "
        "k = "
        "16]\n%%to = view %%z : view<f32, global, \"(%d,%d):(%d,1)\">\ncopy.warp %%d, %%to\n}\n",
        parts, wide, 4 * parts, parts, wide, 2 * rows, rows, 8 * rows, rows, columns, columns);
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {z, sizeof z, 0}, {0}, {0}};
    tk_kargument arguments[] = {{0}, {0}, {0}, {(uint64_t)a.pitch}, {(uint64_t)b.pitch}};
    fill_products(half);
    run(m, below(m, 2) ? TK_KLOWER_OPTIMISE : 0, 5, buffers, arguments);
    check_sum_of_products(m, &a, &b, 1);
}

/* A tile as a descriptor of wgmma can say it, in atoms of 16 bytes to 128. */
static void draw_atoms(maker *m, int lines, int depth, matrix *out) {
    int bits = below(m, 4), chunk = 8 << bits;
    char swizzle[40] = "";
    *out = (matrix){.rows = lines, .columns = depth, .by_columns = below(m, 2)};
    while ((out->by_columns ? lines : depth) % chunk) chunk /= 2, bits--;
    if (bits) snprintf(swizzle, sizeof swizzle, "S<%d,3,3> o 0 o ", bits);
    if (out->by_columns)
        snprintf(out->layout, sizeof out->layout, "%s((%d,%d),%d):((1,%d),%d)", swizzle, chunk,
                 lines / chunk, depth, chunk * depth, chunk);
    else
        snprintf(out->layout, sizeof out->layout, "%s(%d,(%d,%d)):(%d,(1,%d))", swizzle, lines,
                 chunk, depth / chunk, chunk, chunk * lines);
}

static void check_group_product(maker *m) {
    int parts = 1 + below(m, 2), rows = 64 * parts, columns = 8 * (1 + below(m, 8)),
        depth = 16 * (1 + below(m, 4));
    matrix a, b, at, bt;
    draw_global(m, rows, depth, &a);
    draw_global(m, columns, depth, &b);
    draw_atoms(m, rows, depth, &at);
    draw_atoms(m, columns, depth, &bt);
    put(m,
        "tiki kernel 1\nkernel drawn(%%x: ptr<f16, global> read align 16, %%y: ptr<f16, global> "
        "read "
        "align 16, %%z: ptr<f32, global> write align 16, %%p: i32, %%q: i32)\nform tensor require "
        "%%p %% 8 == 0 require %%q %% 8 == 0 grid (1, 1, 1) block (128, 1, 1)\n{\n");
    put(m, "%%s = shared [align = 1024] : shared<f16, \"%s\">\n", at.layout);
    put(m, "%%t = shared [align = 1024] : shared<f16, \"%s\">\n", bt.layout);
    put_view(m, "a", "x", &a, false, "f16", "p");
    put_view(m, "b", "y", &b, false, "f16", "q");
    put_view(m, "at", "s", &at, true, "f16", "");
    put_view(m, "bt", "t", &bt, true, "f16", "");
    put(m, "copy.block %%a, %%at\ncopy.block %%b, %%bt\nproxy_fence.async_shared\nbarrier\n");
    put(m,
        "%%d = registers : regs<f32, \"((2,2,%d),%d,1):((1,2,4),%d,1)\", \"((4,8,4),((2,2,%d),%d)):"
        "((%d,1,16),((%d,8,%d),64))\">\nfill.thread %%d, f32(1.0)\ngemm.warpgroup %%d, %%at, %%bt "
        "[m "
        "= 64, n = %d, k = 16]\n%%to = view %%z : view<f32, global, \"(%d,%d):(%d,1)\">\n"
        "copy.warpgroup %%d, %%to\n}\n",
        columns / 8, parts, columns / 2, columns / 8, parts, 2 * rows, rows, 8 * rows, columns,
        rows, columns, columns);
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {z, sizeof z, 0}, {0}, {0}};
    tk_kargument arguments[] = {{0}, {0}, {0}, {(uint64_t)a.pitch}, {(uint64_t)b.pitch}};
    fill_products(true);
    run(m, below(m, 2) ? TK_KLOWER_OPTIMISE : 0, 5, buffers, arguments);
    check_sum_of_products(m, &a, &b, 1);
}

/* ---- sums over modes ---- */

static void check_sums(maker *m) {
    int shape[3], kept[3], strides[3], step = 1, threads = 32 * (1 + below(m, 3));
    for (int i = 0; i < 3; i++) {
        shape[i] = 1 + below(m, 9);
        kept[i] = below(m, 2);
        strides[i] = kept[i] ? step : 0;
        step *= kept[i] ? shape[i] : 1;
    }
    put(m,
        "tiki kernel 1\nkernel drawn(%%x: ptr<f32, global> read align 4, %%z: ptr<f32, global> "
        "read_write align 4)\nform tensor grid (1, 1, 1) block (%d, 1, 1)\n{\n"
        "%%from = view %%x : view<f32, global, \"(%d,(%d,%d)):(%d,(1,%d))\">\n"
        "%%to = view %%z : view<f32, global, \"(%d,(%d,%d)):(%d,(%d,%d))\">\n"
        "combine.add.block %%from, %%to\n}\n",
        threads, shape[0], shape[1], shape[2], shape[1] * shape[2], shape[1], shape[0], shape[1],
        shape[2], strides[0], strides[1], strides[2]);
    static float from[1000];
    float sums[1000];
    for (int i = 0; i < 1000; i++)
        from[i] = (float)(i * 37 % 101) * 0.37f, sums[i] = z[i] = (float)i;
    for (int k = 0; k < shape[2]; k++)
        for (int j = 0; j < shape[1]; j++)
            for (int i = 0; i < shape[0]; i++)
                sums[i * strides[0] + j * strides[1] + k * strides[2]] +=
                    from[i * shape[1] * shape[2] + j + k * shape[1]];
    tk_kbuffer buffers[] = {{from, sizeof from, 0}, {z, sizeof z, 0}};
    tk_kargument arguments[2] = {{0}};
    run(m, below(m, 2) ? TK_KLOWER_OPTIMISE : 0, 2, buffers, arguments);
    for (int i = 0; i < 1000; i++)
        if (z[i] != sums[i]) wrong(m, "sum", i);
}

/* ---- views that are carried ---- */

/* Two views that a condition and a branch choose between go round a loop of drawn length, changing
 * places or moving on by a row; each thread adds what it sees. */
static void check_carried(maker *m) {
    enum { THREADS = 32, ROWS = 40 };
    int n = below(m, 12), pitch[2] = {32 + below(m, 8), 32 + below(m, 8)}, limit = below(m, 12);
    bool moves = below(m, 2), changes = below(m, 2), turned = below(m, 2);
    put(m,
        "tiki kernel 1\nkernel drawn(%%x: ptr<f32, global> read align 4, %%y: ptr<f32, global> "
        "read "
        "align 4, %%z: ptr<f32, global> write align 4, %%n: i32, %%p: i32, %%q: i32)\nform view\n"
        "grid (1, 1, 1) block (32, 1, 1)\n{\n%%t = thread_index.x : i32\n%%c = icmp.slt %%n, "
        "i32(%d) "
        ": i1\n"
        "%%a = view %%x, %%p : view<f32, global, \"(40,32):(?,1)\">\n"
        "%%b = view %%y, %%q : view<f32, global, \"(40,32):(?,1)\">\n"
        "%%u = select %%c, %%a, %%b : view<f32, global, \"(40,32):(?,1)\">\n"
        "%%v = if %%c {\nyield %%b\n} else {\nyield %%a\n}\n",
        limit);
    put(m,
        "%%s, %%g, %%h = for %%i = i32(0) to %%n step i32(1) carry (%%r = f32(0.0), %%e = %%u, %%f "
        "= "
        "%%v) {\n%%at = locate %%e, i32(0), %%t [coord = \"(?,?)\"] : ptr<f32, global>\n%%w = load "
        "%%at : f32\n%%k = add %%r, %%w : f32\n");
    const char *next = "%e";
    if (moves) {
        put(m, "%%d = tile %%e, i32(1), i32(0) [coord = \"(?,?)\", tiler = \"[1:1;32:1]\"] : "
               "view<f32, global, \"(1,32):(0,1)\">\n"
               "%%dp = locate %%d, i32(0), %%t [coord = \"(?,?)\"] : ptr<f32, global>\n"
               "%%dw = load %%dp : f32\n%%kk = add %%k, %%dw : f32\n");
    }
    put(m, "yield %s, %s, %s\n}\n", moves ? "%kk" : "%k", changes ? "%f" : next,
        changes ? next : "%f");
    put(m,
        "%%last = locate %%%s, i32(2), %%t [coord = \"(?,?)\"] : ptr<f32, global>\n%%l = load "
        "%%last "
        ": f32\n%%o = add %%s, %%l : f32\n%%out = offset %%z, %%t : ptr<f32, global>\nstore %%out, "
        "%%o\n}\n",
        turned ? "h" : "g");
    static float from[2][ROWS * 40];
    for (int i = 0; i < ROWS * 40; i++) from[0][i] = (float)(i % 97), from[1][i] = (float)(i % 89);
    tk_kbuffer buffers[6] = {
        {from[0], sizeof from[0], 0}, {from[1], sizeof from[1], 0}, {z, sizeof z, 0}};
    tk_kargument arguments[] = {
        {0}, {0}, {0}, {(uint64_t)n}, {(uint64_t)pitch[0]}, {(uint64_t)pitch[1]}};
    run(m, below(m, 2) ? TK_KLOWER_OPTIMISE : 0, 6, buffers, arguments);
    for (int t = 0; t < THREADS; t++) {
        int u = n < limit ? 0 : 1;
        float sum = 0;
        for (int i = 0; i < n; i++) {
            sum += from[u][t];
            if (moves) sum += from[u][pitch[u] + t];
            if (changes) u = !u;
        }
        if (turned) u = !u;
        if (z[t] != sum + from[u][2 * pitch[u] + t]) wrong(m, "thread", t);
    }
}

static void test_random(void **state) {
    (void)state;
    static void (*const checks[])(maker *) = {check_copies, check_product, check_sums,
                                              check_group_product, check_carried};
    for (uint64_t seed = first_seed; seed < first_seed + programs; seed++) {
        static maker m;
        m = (maker){.seed = seed, .state = seed * 0x2545f4914f6cdd1du + 1};
        checks[seed % 5](&m);
    }
    print_message("%llu programs\n", (unsigned long long)programs);
}

int main(int argc, char **argv) {
    for (int a = 1; a + 1 < argc; a += 2) {
        if (!strcmp(argv[a], "--first")) first_seed = strtoull(argv[a + 1], NULL, 10);
        if (!strcmp(argv[a], "--count")) programs = strtoull(argv[a + 1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
