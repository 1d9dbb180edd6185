/* Products of one warpgroup, and what they give: for the emulator and for a card. */
#ifndef SUPPORT_KERNEL_WGMMA_H
#define SUPPORT_KERNEL_WGMMA_H

#include "support/emulate.h"

#include <math.h>

#include "kernel/float8.h"
#include "kernel/ir.h"

enum { M = 64, MOST_N = 256, MOST_K = 32 };

typedef struct product {
    const char *a_word, *b_word, *d_text;
    tk_kscalar a, b, d;
    int n;
    bool a_mn, b_mn, registers, accumulate, neg_a, neg_b;
    int swizzle; /* bytes, 16: none */
} product;

static uint64_t state;
static double draw(bool whole) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t number = (int64_t)(state >> 40) - (1 << 23);
    return whole ? (double)(number % 4) : ldexp((double)number, -22);
}

static bool is_integer(const product *p) { return p->d == TK_K_I32; }

static void put(unsigned char *to, tk_kscalar scalar, double value) {
    uint64_t bits =
        scalar == TK_K_I8 ? (uint64_t)(int64_t)value & 0xff : tk_kscalar_bits(scalar, value);
    memcpy(to, &bits, (size_t)tk_kscalar_bytes(scalar));
}

/* The number that is kept for a value of a type. */
static double kept(tk_kscalar scalar, bool is_signed, double value) {
    if (scalar == TK_K_I8) return is_signed ? value : (double)((uint8_t)(int)value);
    return tk_kscalar_value(scalar, tk_kscalar_bits(scalar, value));
}

/* ---- where elements lie ---- */

typedef struct place {
    int swizzle, lead, stride;
    bool mn;
} place;

/* Lead and stride that keep a matrix of `extent` rows (columns) together. */
static place place_of(int swizzle, bool mn, int extent) {
    place p = {.swizzle = swizzle, .mn = mn};
    if (swizzle == 16)
        p.lead = mn ? 128 * (extent / 8) : 128, p.stride = mn ? 128 : 256;
    else if (mn)
        p.lead = 16 * swizzle, p.stride = 8 * swizzle;
    else
        p.lead = 16, p.stride = 8 * swizzle;
    return p;
}

/* The byte of an element from the start of the matrix, which is a multiple of 1024: first where it
 * lies in the plain layout, then the swizzle of bits 4-6 by bits 7-9. */
static int byte_of(const place *p, int mn, int k, int bytes) {
    int chunk = 16 / bytes, at;
    if (p->swizzle == 16 && !p->mn)
        at = mn % 8 * 16 + mn / 8 * p->stride + k / chunk * p->lead + k % chunk * bytes;
    else if (p->swizzle == 16)
        at = k % 8 * 16 + k / 8 * p->lead + mn / chunk * p->stride + mn % chunk * bytes;
    else if (!p->mn)
        at = mn % 8 * p->swizzle + mn / 8 * p->stride + k * bytes;
    else
        at = k % 8 * p->swizzle + k / 8 * p->stride + mn * bytes / p->swizzle * p->lead +
             mn * bytes % p->swizzle;
    int rows = p->swizzle == 128 ? 7 : p->swizzle == 64 ? 3 : p->swizzle == 32 ? 1 : 0;
    return at ^ ((at >> 7) & rows) << 4;
}

/* ---- the kernel ---- */

/* Buffers %a and %b of 32 KiB are copied to shared memory as they are; a fragment of A comes from
 * %f, the accumulator from %c and goes to %d, thread by thread. */
static tk_kernel *kernel_of(const product *p) {
    static char text[1 << 17];
    static const char *const swizzles[] = {"swizzle_none", "swizzle_32", "swizzle_64",
                                           "swizzle_128"};
    int k = 32 / tk_kscalar_bytes(p->a), a_count = M * k / 128, d_count = M * p->n / 128;
    const char *word = swizzles[p->swizzle == 16 ? 0 : p->swizzle / 32 - (p->swizzle == 128)];
    const char *a_text = tk_kscalar_text(p->a), *d_text = tk_kscalar_text(p->d);
    place a = place_of(p->swizzle, p->a_mn, M), b = place_of(p->swizzle, p->b_mn, p->n);
    char *at = text;
    at += sprintf(
        at,
        "tiki kernel 1\nkernel product(%%a: ptr<i32, global> read align 16, %%b: ptr<i32, global> "
        "read align 16, %%f: ptr<%s, global> read align 4, %%c: ptr<%s, global> read align 4, %%d: "
        "ptr<%s, global> write align 4)\nform thread grid (1, 1, 1) block (128, 1, 1)\n{\n"
        "%%t = thread_index.x : i32\n%%sa = shared [align = 1024] : shared<i32, \"8192:1\">\n%%sb "
        "= shared [align = 1024] : shared<i32, \"8192:1\">\n%%pa = address %%sa : ptr<i32, "
        "shared>\n%%pb = address %%sb : ptr<i32, shared>\n%%ti = mul %%t, i32(4) : i32\nfor %%i = "
        "%%ti to i32(8192) step i32(512) {\n%%ga = offset %%a, %%i : ptr<i32, global>\n%%gb = "
        "offset %%b, %%i : ptr<i32, global>\n%%ha = offset %%pa, %%i : ptr<i32, shared>\n%%hb = "
        "offset %%pb, %%i : ptr<i32, shared>\n%%va = load %%ga : i32x4\nstore %%ha, %%va\n%%vb = "
        "load %%gb : i32x4\nstore %%hb, %%vb\n}\nproxy_fence.async_shared\nbarrier\n%%rd = "
        "registers "
        ": regs<%s, \"%d:1\">\n%%id = mul %%t, i32(%d) : i32\n",
        a_text, d_text, d_text, d_text, d_count, d_count);
    for (int e = 0; e < d_count && p->accumulate; e++)
        at += sprintf(at,
                      "%%jc%d = add %%id, i32(%d) : i32\n%%pc%d = offset %%c, %%jc%d : ptr<%s, "
                      "global>\n%%vc%d = load %%pc%d : %s\nset %%rd, %%vc%d [index = %d]\n",
                      e, e, e, e, d_text, e, e, d_text, e, e);
    if (p->registers)
        at += sprintf(at, "%%ra = registers : regs<%s, \"%d:1\">\n%%if = mul %%t, i32(%d) : i32\n",
                      a_text, a_count, a_count);
    for (int e = 0; e < a_count && p->registers; e++)
        at += sprintf(at,
                      "%%jf%d = add %%if, i32(%d) : i32\n%%pf%d = offset %%f, %%jf%d : ptr<%s, "
                      "global>\n%%vf%d = load %%pf%d : %s\nset %%ra, %%vf%d [index = %d]\n",
                      e, e, e, e, a_text, e, e, a_text, e, e);
    at += sprintf(at,
                  "%%da = matrix_descriptor.%s %%pa [lead = %d, stride = %d] : i64\n%%db = "
                  "matrix_descriptor.%s %%pb [lead = %d, stride = %d] : i64\nwgmma_fence\n"
                  "wgmma.%s.%s%s%s%s%s %%rd, %s, %%db%s [m = 64, n = %d, k = %d]\nwgmma_commit\n"
                  "wgmma_wait\n",
                  word, a.lead, a.stride, word, b.lead, b.stride, p->a_word, p->b_word,
                  p->a_mn ? ".a_mn" : "", p->b_mn ? ".b_mn" : "", p->neg_a ? ".neg_a" : "",
                  p->neg_b ? ".neg_b" : "", p->registers ? "%ra" : "%da",
                  p->accumulate ? ", accumulate=i1(true)" : "", p->n, k);
    for (int e = 0; e < d_count; e++)
        at += sprintf(at,
                      "%%jd%d = add %%id, i32(%d) : i32\n%%pd%d = offset %%d, %%jd%d : ptr<%s, "
                      "global>\n%%w%d = get %%rd [index = %d] : %s\nstore %%pd%d, %%w%d\n",
                      e, e, e, e, d_text, e, e, d_text, e, e);
    sprintf(at, "}\n");
    return parse_text(text);
}

/* ---- numbers ---- */

typedef struct matrices {
    double a[M][MOST_K], b[MOST_K][MOST_N], c[M][MOST_N];
    unsigned char a_bytes[32768], b_bytes[32768], f_bytes[128 * 16 * 4], c_bytes[M * MOST_N * 4],
        d_bytes[M * MOST_N * 4];
} matrices;

static void place_d(int thread, int i, int *row, int *column) {
    int lane = thread % 32;
    *row = thread / 32 * 16 + lane / 4 + (i % 4 < 2 ? 0 : 8);
    *column = i / 4 * 8 + lane % 4 * 2 + i % 2;
}

static void fill(const product *p, matrices *m, bool whole) {
    int bytes = tk_kscalar_bytes(p->a), k = 32 / bytes, per = 4 / bytes;
    bool a_signed = strcmp(p->a_word, "a_u8"), b_signed = strcmp(p->b_word, "b_u8");
    place a = place_of(p->swizzle, p->a_mn, M), b = place_of(p->swizzle, p->b_mn, p->n);
    memset(m, 0, sizeof *m);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < k; j++) {
            double value = draw(whole);
            m->a[i][j] = kept(p->a, a_signed, value) * (p->neg_a ? -1 : 1);
            put(m->a_bytes + byte_of(&a, i, j, bytes), p->a, value);
            int word = i % 16 / 8 + 2 * (j / (4 * per)),
                thread = i / 16 * 32 + i % 8 * 4 + j / per % 4;
            put(m->f_bytes + (thread * M * k / 128 + word * per + j % per) * bytes, p->a, value);
        }
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < k; j++) {
            double value = draw(whole);
            m->b[j][i] = kept(p->b, b_signed, value) * (p->neg_b ? -1 : 1);
            put(m->b_bytes + byte_of(&b, i, j, bytes), p->b, value);
        }
    for (int thread = 0; thread < 128; thread++)
        for (int i = 0; i < p->n / 2; i++) {
            int row, column;
            double value = draw(whole);
            uint64_t bits = is_integer(p) ? (uint64_t)(int64_t)value : tk_kscalar_bits(p->d, value);
            size_t each = (size_t)tk_kscalar_bytes(p->d);
            place_d(thread, i, &row, &column);
            m->c[row][column] = is_integer(p) ? value : tk_kscalar_value(p->d, bits);
            if (!p->accumulate) m->c[row][column] = 0;
            memcpy(m->c_bytes + (size_t)(thread * p->n / 2 + i) * each, &bits, each);
        }
}

static double found_at(const product *p, const matrices *m, int index) {
    size_t each = (size_t)tk_kscalar_bytes(p->d);
    uint64_t bits = 0;
    memcpy(&bits, m->d_bytes + (size_t)index * each, each);
    return is_integer(p) ? (double)(int32_t)(uint32_t)bits : tk_kscalar_value(p->d, bits);
}

static void compare(const product *p, const matrices *m, bool whole) {
    int k = 32 / tk_kscalar_bytes(p->a);
    for (int thread = 0; thread < 128; thread++)
        for (int i = 0; i < p->n / 2; i++) {
            int row, column;
            place_d(thread, i, &row, &column);
            double sum = m->c[row][column], size = fabs(sum);
            for (int j = 0; j < k; j++) {
                sum += m->a[row][j] * m->b[j][column];
                size += fabs(m->a[row][j] * m->b[j][column]);
            }
            double found = found_at(p, m, thread * p->n / 2 + i);
            double bound = (k + 1) * (k == 32 ? 0x1p-12 : 0x1p-22) * size;
            if (p->d == TK_K_F16) bound += fabs(sum) * 0x1p-11;
            if (whole || is_integer(p) ? found != sum : fabs(found - sum) > bound)
                fail_msg("%s %s n %d swizzle %d row %d column %d: %g, expected %g", p->a_word,
                         p->b_word, p->n, p->swizzle, row, column, found, sum);
        }
}

/* Called with each kernel after the emulator has run it on whole numbers; the last buffer has what
 * it gave. NULL: nothing. */
static void (*also)(const tk_kernel *kernel, const run *r);

static void run_product(const product *p) {
    static matrices m;
    tk_kernel *kernel = kernel_of(p);
    for (int whole = 0; whole < 2; whole++) {
        fill(p, &m, whole || is_integer(p));
        run r = {0};
        bind(&r, m.a_bytes, sizeof m.a_bytes), bind(&r, m.b_bytes, sizeof m.b_bytes);
        bind(&r, m.f_bytes, sizeof m.f_bytes);
        bind(&r, m.c_bytes, sizeof m.c_bytes), bind(&r, m.d_bytes, sizeof m.d_bytes);
        tk_emulation *emulation = emulate(kernel, &r, (uint64_t)whole);
        assert_clean(emulation);
        tk_emulation_release(emulation);
        compare(p, &m, whole);
        if (also && whole) also(kernel, &r);
    }
    tk_kernel_release(kernel);
}

#define HALVES "a_f16", "b_f16", "f32", TK_K_F16, TK_K_F16, TK_K_F32
#define BRAIN "a_bf16", "b_bf16", "f32", TK_K_BF16, TK_K_BF16, TK_K_F32

static void test_types(void **unused) {
    (void)unused;
    static const product types[] = {
        {HALVES, .n = 16},
        {BRAIN, .n = 8},
        {"a_f16", "b_f16", "f16", TK_K_F16, TK_K_F16, TK_K_F16, .n = 24},
        {"a_tf32", "b_tf32", "f32", TK_K_TF32, TK_K_TF32, TK_K_F32, .n = 40},
        {"a_e4m3", "b_e4m3", "f32", TK_K_E4M3, TK_K_E4M3, TK_K_F32, .n = 32},
        {"a_e4m3", "b_e5m2", "f32", TK_K_E4M3, TK_K_E5M2, TK_K_F32, .n = 16},
        {"a_e5m2", "b_e4m3", "f16", TK_K_E5M2, TK_K_E4M3, TK_K_F16, .n = 16},
        {"a_e5m2", "b_e5m2", "f32", TK_K_E5M2, TK_K_E5M2, TK_K_F32, .n = 64},
        {"a_s8", "b_s8", "i32", TK_K_I8, TK_K_I8, TK_K_I32, .n = 24},
        {"a_u8", "b_s8", "i32", TK_K_I8, TK_K_I8, TK_K_I32, .n = 32},
        {"a_s8", "b_u8", "i32", TK_K_I8, TK_K_I8, TK_K_I32, .n = 8},
        {"a_u8", "b_u8", "i32", TK_K_I8, TK_K_I8, TK_K_I32, .n = 16},
    };
    static const int swizzles[] = {16, 32, 64, 128};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int way = 0; way < 8; way++) {
            product p = types[i];
            p.swizzle = swizzles[way / 2];
            p.registers = way & 1, p.accumulate = way % 3 == 0;
            run_product(&p);
        }
}

/* Sixteen bits lie either way; rows of n beyond one swizzle atom take the leading offset. */
static void test_ways(void **unused) {
    (void)unused;
    static const int swizzles[] = {16, 32, 64, 128};
    for (int way = 0; way < 32; way++) {
        product p = {BRAIN, .n = way % 2 ? 128 : 64, .swizzle = swizzles[way / 8]};
        p.a_mn = way & 2, p.b_mn = way & 4;
        p.accumulate = !p.a_mn, p.neg_a = way % 5 == 1, p.neg_b = way % 3 == 1;
        run_product(&p);
    }
}

static void test_every_width(void **unused) {
    (void)unused;
    for (int n = 8; n <= MOST_N; n += 8) {
        product p = {HALVES, .n = n, .swizzle = n % 64 ? 32 : 128, .accumulate = n % 3 == 0};
        p.b_mn = n % 64 == 0;
        run_product(&p);
    }
}

#define WGMMA_TESTS                                                                                \
    cmocka_unit_test(test_types), cmocka_unit_test(test_ways), cmocka_unit_test(test_every_width)

#endif
