/* ldmatrix, stmatrix and mma.sync in the emulator: every shape and type against sums in double,
 * with fragments laid out by the formulas of the PTX manual, and planted faults. */
#include "support/emulate.h"

#include <math.h>

#include "base/half.h"
#include "kernel/float8.h"
#include "kernel/ir.h"

typedef struct product {
    tk_kscalar a, b, d;
    int k;
} product;

static const product products[] = {
    {TK_K_F16, TK_K_F16, TK_K_F32, 8},    {TK_K_F16, TK_K_F16, TK_K_F32, 16},
    {TK_K_F16, TK_K_F16, TK_K_F16, 8},    {TK_K_F16, TK_K_F16, TK_K_F16, 16},
    {TK_K_BF16, TK_K_BF16, TK_K_F32, 8},  {TK_K_BF16, TK_K_BF16, TK_K_F32, 16},
    {TK_K_TF32, TK_K_TF32, TK_K_F32, 4},  {TK_K_TF32, TK_K_TF32, TK_K_F32, 8},
    {TK_K_E4M3, TK_K_E4M3, TK_K_F32, 32}, {TK_K_E4M3, TK_K_E5M2, TK_K_F32, 32},
    {TK_K_E5M2, TK_K_E4M3, TK_K_F32, 32}, {TK_K_E5M2, TK_K_E5M2, TK_K_F32, 32},
};

static uint64_t state;
static double draw(bool whole) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t number = (int64_t)(state >> 40) - (1 << 23);
    return whole ? (double)(number % 4) : ldexp((double)number, -22);
}

static void put(void *to, size_t index, tk_kscalar scalar, double value) {
    uint64_t bits = tk_kscalar_bits(scalar, value);
    size_t bytes = (size_t)tk_kscalar_bytes(scalar);
    memcpy((char *)to + index * bytes, &bits, bytes);
}
static double take(const void *from, size_t index, tk_kscalar scalar) {
    uint64_t bits = 0;
    size_t bytes = (size_t)tk_kscalar_bytes(scalar);
    memcpy(&bits, (const char *)from + index * bytes, bytes);
    return tk_kscalar_value(scalar, bits);
}

/* Row and column of element i of a lane; of 16-bit A: a0 a1 row g, a2 a3 row g + 8, then columns 8
 * further; likewise with one element of 32 bits, four of 8, where 16-bit ones have two. */
static void place_a(int lane, int i, int per, int *row, int *column) {
    int word = i / per;
    *row = lane / 4 + (word == 1 || word == 3 ? 8 : 0);
    *column = lane % 4 * per + i % per + (word >= 2 ? 4 * per : 0);
}
static void place_b(int lane, int i, int per, int *row, int *column) {
    *row = lane % 4 * per + i % per + (i >= per ? 4 * per : 0);
    *column = lane / 4;
}
static void place_d(int lane, int i, int *row, int *column) {
    *row = lane / 4 + (i < 2 ? 0 : 8);
    *column = lane % 4 * 2 + (i & 1);
}

/* Loads `count` elements of each lane from an array into a register tensor. */
static void put_load(char *text, const char *name, tk_kscalar scalar, int count) {
    const char *type = tk_kscalar_text(scalar);
    text += strlen(text);
    text +=
        sprintf(text, "%%r%s = registers : regs<%s, \"%d:1\">\n%%i%s = mul %%t, i32(%d) : i32\n",
                name, type, count, name, count);
    for (int e = 0; e < count; e++)
        text += sprintf(text,
                        "%%j%s%d = add %%i%s, i32(%d) : i32\n%%p%s%d = offset %%%s, %%j%s%d : "
                        "ptr<%s, global>\n%%v%s%d = load %%p%s%d : %s\nset %%r%s, %%v%s%d [index = "
                        "%d]\n",
                        name, e, name, e, name, e, name, name, e, type, name, e, name, e, type,
                        name, name, e, e);
}

static tk_kernel *kernel_of(const product *p) {
    static char text[1 << 16];
    const char *d = tk_kscalar_text(p->d);
    sprintf(text,
            "tiki kernel 1\nkernel product(%%a: ptr<%s, global> read align 4, %%b: ptr<%s, global> "
            "read align 4, %%c: ptr<%s, global> read align 4, %%d: ptr<%s, global> write align 4)\n"
            "form thread grid (1, 1, 1) block (32, 1, 1)\n{ %%t = thread_index.x : i32\n",
            tk_kscalar_text(p->a), tk_kscalar_text(p->b), d, d);
    put_load(text, "a", p->a, p->k / 2);
    put_load(text, "b", p->b, p->k / 4);
    put_load(text, "c", p->d, 4);
    char *at = text + strlen(text);
    at += sprintf(at,
                  "%%rd = registers : regs<%s, \"4:1\">\nmma %%rd, %%ra, %%rb, %%rc [m = 16, n = "
                  "8, k = %d]\n",
                  d, p->k);
    for (int e = 0; e < 4; e++)
        at +=
            sprintf(at,
                    "%%pd%d = offset %%d, %%jc%d : ptr<%s, global>\n%%w%d = get %%rd [index = %d] "
                    ": %s\nstore %%pd%d, %%w%d\n",
                    e, e, d, e, e, d, e, e);
    sprintf(at, "}\n");
    return parse_text(text);
}

typedef struct matrices {
    double a[16][32], b[32][8], c[16][8];
    unsigned char a_bits[32 * 64], b_bits[32 * 64], c_bits[32 * 16], d_bits[32 * 16];
} matrices;

/* Random numbers that the types hold, as matrices and as fragments. */
static void fill(const product *p, matrices *m, bool whole) {
    int per = 4 / tk_kscalar_bytes(p->a), row, column;
    for (int lane = 0; lane < 32; lane++) {
        for (int i = 0; i < p->k / 2; i++) {
            size_t at = (size_t)(lane * p->k / 2 + i);
            put(m->a_bits, at, p->a, draw(whole));
            place_a(lane, i, per, &row, &column);
            m->a[row][column] = take(m->a_bits, at, p->a);
        }
        for (int i = 0; i < p->k / 4; i++) {
            size_t at = (size_t)(lane * p->k / 4 + i);
            put(m->b_bits, at, p->b, draw(whole));
            place_b(lane, i, per, &row, &column);
            m->b[row][column] = take(m->b_bits, at, p->b);
        }
        for (int i = 0; i < 4; i++) {
            put(m->c_bits, (size_t)(lane * 4 + i), p->d, draw(whole));
            place_d(lane, i, &row, &column);
            m->c[row][column] = take(m->c_bits, (size_t)(lane * 4 + i), p->d);
        }
    }
}

/* Whole numbers: the same bits. Others: within the bound of the language, and for f16 half a unit
 * more. */
static void compare(const product *p, const matrices *m, bool whole) {
    bool fp8 = tk_kscalar_bytes(p->a) == 1;
    int row, column;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            place_d(lane, i, &row, &column);
            double sum = m->c[row][column], size = fabs(sum);
            for (int k = 0; k < p->k; k++) {
                sum += m->a[row][k] * m->b[k][column];
                size += fabs(m->a[row][k] * m->b[k][column]);
            }
            double found = take(m->d_bits, (size_t)(lane * 4 + i), p->d);
            double bound = (p->k + 1) * (fp8 ? 0x1p-12 : 0x1p-22) * size;
            if (p->d == TK_K_F16) bound += fabs(sum) * 0x1p-11;
            assert_true(whole ? found == sum : fabs(found - sum) <= bound);
        }
}

static void run_product(const product *p, const tk_kernel *kernel, bool whole) {
    static matrices m;
    size_t each = (size_t)tk_kscalar_bytes(p->d);
    fill(p, &m, whole);
    run r = {0};
    bind(&r, m.a_bits, 16 * (size_t)(p->k * tk_kscalar_bytes(p->a)));
    bind(&r, m.b_bits, 8 * (size_t)(p->k * tk_kscalar_bytes(p->b)));
    bind(&r, m.c_bits, 128 * each), bind(&r, m.d_bits, 128 * each);
    tk_emulation *emulation = emulate(kernel, &r, 0);
    assert_clean(emulation);
    assert_int_equal(tk_emulation_totals(emulation).flops, 2 * 16 * 8 * p->k);
    tk_emulation_release(emulation);
    compare(p, &m, whole);
}

static void test_products(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        tk_kernel *kernel = kernel_of(&products[i]);
        for (int round = 0; round < 8; round++) run_product(&products[i], kernel, round % 2);
        tk_kernel_release(kernel);
    }
}

/* ---- rows ---- */

/* Loads `count` matrices of halves (way 1: transposed) and stores them transposed or not elsewhere:
 * the element at (r, c) of each comes out at (r, c) or (c, r). */
static tk_kernel *rows_kernel(int count, bool load_turned, bool store_turned) {
    char text[2048];
    sprintf(text,
            "tiki kernel 1\nkernel rows(%%x: ptr<f16, global> read align 16, %%y: ptr<f16, global> "
            "write align 16)\nform thread grid (1, 1, 1) block (32, 1, 1)\n{ %%t = thread_index.x "
            ": i32\n%%s = shared [align = 16] : shared<f16, \"512:1\">\n%%b = address %%s : "
            "ptr<f16, shared>\n%%i = mul %%t, i32(8) : i32\n%%c = offset %%b, %%i : ptr<f16, "
            "shared>\n%%e = offset %%c, i32(256) : ptr<f16, shared>\n%%p = offset %%x, %%i : "
            "ptr<f16, global>\n%%q = offset %%y, %%i : ptr<f16, global>\n%%v = load %%p : f16x8\n"
            "store %%c, %%v\nstore %%e, %%v\nwarp_barrier\n%%r = registers : regs<f16, \"8:1\">\n"
            "load_matrix%s %%r, %%c [count = %d]\nwarp_barrier\nstore_matrix%s %%e, %%r [count = "
            "%d]\nwarp_barrier\n%%w = load %%e : f16x8\nstore %%q, %%w\n}\n",
            load_turned ? ".transposed" : "", count, store_turned ? ".transposed" : "", count);
    return parse_text(text);
}

static void round_trip(int count, bool load_turned, bool store_turned) {
    static uint16_t x[256], y[256];
    tk_kernel *kernel = rows_kernel(count, load_turned, store_turned);
    for (int i = 0; i < 256; i++) x[i] = (uint16_t)(i * 259), y[i] = 0;
    run r = {0};
    bind(&r, x, sizeof x), bind(&r, y, sizeof y);
    tk_emulation *emulation = emulate(kernel, &r, 1);
    assert_clean(emulation);
    for (int i = 0; i < 256; i++) {
        int matrix = i / 64, row = i / 8 % 8, column = i % 8,
            turned = 64 * matrix + 8 * column + row;
        bool turns = matrix < count && load_turned != store_turned;
        assert_int_equal(y[i], x[turns ? turned : i]);
    }
    tk_emulation_release(emulation);
    tk_kernel_release(kernel);
}

static void test_rows(void **unused) {
    (void)unused;
    for (int count = 1; count <= 4; count *= 2)
        for (int way = 0; way < 4; way++) round_trip(count, way & 1, way & 2);
}

/* ---- faults ---- */

#define BUFFER                                                                                     \
    "%s = shared [align = 16] : shared<f16, \"512:1\">\n%b = address %s : ptr<f16, shared>\n%r = " \
    "registers : regs<f16, \"8:1\">\n%i = and %t, i32(31) : i32\n"
#define ROWS "%j = mul %i, i32(8) : i32\n%c = offset %b, %j : ptr<f16, shared>\n"
#define WRITE "store %c, f16(1)\n"

static const fault faults[] = {
    {BUFFER ROWS "load_matrix %r, %c [count = 4]", 32, TK_KF_UNSET_SHARED, 11},
    {BUFFER "%c = offset %b, %i : ptr<f16, shared>\nload_matrix %r, %c [count = 4]", 32,
     TK_KF_MISALIGNED, 10},
    {BUFFER ROWS "%d = offset %c, i32(384) : ptr<f16, shared>\nload_matrix %r, %d [count = 4]", 32,
     TK_KF_OUT_OF_BOUNDS, 12},
    {BUFFER ROWS "%h = icmp.slt %t, i32(8) : i1\nif %h {\nload_matrix %r, %c\n}", 32,
     TK_KF_DIVERGENT, 13},
    {BUFFER ROWS "store_matrix %c, %r [count = 4]", 32, TK_KF_UNSET_REGISTER, 11},
    {BUFFER ROWS "%v = splat f16(1) : f16x8\nset %r, %v\nstore_matrix %c, %r [count = 4]", 64,
     TK_KF_RACE_SHARED, 13},
    {BUFFER ROWS "%v = splat f16(1) : f16x8\nstore %c, %v\n%o = xor %i, i32(7) : i32\n%k = mul %o, "
                 "i32(8) : i32\n%d = offset %b, %k : ptr<f16, shared>\nload_matrix %r, %d [count = "
                 "4]",
     32, TK_KF_RACE_SHARED, 16},
    {BUFFER "%d = registers : regs<f32, \"4:1\">\nset %d, f32(0)\nset %d, f32(0) [index = 1]\nset "
            "%d, f32(0) [index = 2]\n%v = splat f16(1) : f16x8\nset %r, %v\nmma %d, %r, %r, %d [m "
            "= 16, n = 8, k = 16]",
     32, TK_KF_UNSET_REGISTER, 15},
};

static const char *const correct[] = {
    BUFFER ROWS
    "%v = splat f16(1) : f16x8\nstore %c, %v\nwarp_barrier\n%o = xor %i, i32(7) : "
    "i32\n%k = mul %o, i32(8) : i32\n%d = offset %b, %k : ptr<f16, shared>\nload_matrix "
    "%r, %d [count = 4]",
    BUFFER ROWS "%v = splat f16(1) : f16x8\nset %r, %v\nstore_matrix %c, %r [count = 4]",
    BUFFER ROWS "%v = splat f16(1) : f16x8\nset %r, %v\n%h = icmp.slt %t, i32(32) : i1\nif %h "
                "{\nstore_matrix %c, %r [count = 4]\n}\nbarrier\nif %h {} else {\nload_matrix %r, "
                "%c [count = 4]\n}",
    BUFFER "%d = registers : regs<f32, \"4:1\">\n%z = splat f32(0) : f32x4\nset %d, %z\n%v = splat "
           "f16(1) : f16x8\nset %r, %v\nmma %d, %r, %r, %d [m = 16, n = 8, k = 16]",
};

static void test_faults(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) assert_found(&faults[i]);
    for (size_t i = 0; i < sizeof correct / sizeof *correct; i++)
        assert_clean_body(correct[i], i == 2 ? 64 : 32);
}

/* Rows that lie 128 bytes apart are in the same banks; a swizzle or a pitch of 144 spreads them. */
static void test_conflicts(void **unused) {
    (void)unused;
    static const struct {
        int pitch;
        uint64_t conflicts;
    } cases[] = {{64, 7}, {72, 0}, {32, 3}, {8, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "%%s = shared [align = 16] : shared<f16, \"512:1\">\n%%b = address %%s : ptr<f16, "
                 "shared>\n%%r = registers : regs<f16, \"8:1\">\n%%i = and %%t, i32(7) : i32\n%%j "
                 "= mul %%i, i32(%d) : i32\n%%c = offset %%b, %%j : ptr<f16, shared>\nload_matrix "
                 "%%r, %%c",
                 cases[i].pitch);
        tk_emulation *emulation = run_body(body, 32, 0);
        tk_kcount count = {0};
        for (size_t c = 0; c < tk_emulation_counts(emulation); c++) {
            assert_ok(tk_emulation_count(emulation, c, &count));
            if (!strcmp(count.operation, "load_matrix")) break;
        }
        assert_int_equal(count.conflicts, cases[i].conflicts);
        tk_emulation_release(emulation);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_conflicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
