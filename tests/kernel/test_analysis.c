/* Analyses: ranges and divisors, uniformity and its proof, registers, the shared memory map, what
 * barriers order, work. */
#include "support/kernel_files.h"

#include "tiki/analysis.h"
#include "tiki/passes.h"

static tk_kanalysis *analyse(const char *text) {
    tk_kernel *kernel = parse_text(text);
    tk_kanalysis *analysis = NULL;
    assert_ok(tk_kernel_analyse(kernel, &analysis));
    tk_kernel_release(kernel);
    return analysis;
}

#define HEAD(block)                                                                                \
    "tiki kernel 1\nkernel test(%x: ptr<f32, global> read align 16, %y: ptr<f32, global> "         \
    "read_write align 8, %n: i32, %m: i32)\nform thread\nrequire %n >= 0\nrequire %n < 1000\n"     \
    "require %n % 4 == 0\ngrid (6, 1, 1)\nblock " block "\n{\n"

/* ---- ranges ---- */

static void assert_facts(const tk_kanalysis *a, const char *name, int64_t low, int64_t high,
                         uint64_t divisor) {
    tk_kfacts f;
    assert_ok(tk_kanalysis_value(a, name, &f));
    if (f.low != low || f.high != high || f.divisor != divisor)
        fail_msg("%s: %lld..%lld by %llu, expected %lld..%lld by %llu", name, (long long)f.low,
                 (long long)f.high, (unsigned long long)f.divisor, (long long)low, (long long)high,
                 (unsigned long long)divisor);
}

static void test_ranges(void **state) {
    (void)state;
    tk_kanalysis *a = analyse(HEAD(
        "(64, 1, 1)") "%t = thread_index.x : i32\n%b = block_index.x : i32\n%big = mul %b, i32(64) "
                      ": i32\n"
                      "%i = add %big, %t : i32\n%four = mul %t, i32(4) : i32\n%low = and %m, "
                      "i32(31) : i32\n"
                      "%half = ushr %four, i32(1) : i32\n%q = sdiv %n, i32(4) : i32\n%r = urem %n, "
                      "i32(8) : i32\n"
                      "%p = offset %x, %four : ptr<f32, global>\n%o = offset %y, %t : ptr<f32, "
                      "global>\n"
                      "%wrap = add %m, i32(1) : i32\n%shift = shl %m, i32(3) : i32\n"
                      "%sure = assume %m [divisor = 6, low = 0, high = 60] : i32\n%w = "
                      "extend_signed %i : i64\n"
                      "%least = smin %n, %t : i32\n%less = sub %n, i32(4) : i32\n"
                      "for %k = %four to %n step i32(2) {\n%k2 = add %k, i32(1) : i32\n}\n}\n");
    assert_facts(a, "%n", 0, 999, 4);
    assert_facts(a, "m", INT32_MIN, INT32_MAX, 1);
    assert_facts(a, "t", 0, 63, 1);
    assert_facts(a, "big", 0, 320, 64);
    assert_facts(a, "i", 0, 383, 1);
    assert_facts(a, "four", 0, 252, 4);
    assert_facts(a, "half", 0, 126, 2);
    assert_facts(a, "low", 0, 31, 1);
    assert_facts(a, "q", 0, 249, 1);
    assert_facts(a, "r", 0, 7, 4);
    assert_facts(a, "p", 0, INT64_MAX, 16);
    assert_facts(a, "o", 0, INT64_MAX, 4);
    assert_facts(a, "wrap", INT32_MIN, INT32_MAX, 1);
    assert_facts(a, "shift", INT32_MIN, INT32_MAX, 8);
    assert_facts(a, "sure", 0, 60, 6);
    assert_facts(a, "w", 0, 383, 1);
    assert_facts(a, "least", 0, 63, 1);
    assert_facts(a, "less", -4, 995, 4);
    assert_facts(a, "k", 0, 998, 2);
    tk_kfacts f;
    assert_int_equal(tk_kanalysis_value(a, "nobody", &f), TK_NOT_FOUND);
    tk_kanalysis_release(a);
}

/* ---- uniformity ---- */

static void assert_uniform(const tk_kanalysis *a, const char *name, tk_kuniform level) {
    tk_kfacts f;
    assert_ok(tk_kanalysis_value(a, name, &f));
    if (f.uniform != level)
        fail_msg("%s is uniform over a %s, expected %s", name, tk_kuniform_text(f.uniform),
                 tk_kuniform_text(level));
}

static void test_uniform(void **state) {
    (void)state;
    tk_kanalysis *a = analyse(HEAD(
        "(256, 2, 1)") "%t = thread_index.x : i32\n%u = thread_index.y : i32\n%v = thread_index.z "
                       ": i32\n"
                       "%b = block_index.x : i32\n%warp = ushr %t, i32(5) : i32\n%group = ushr %t, "
                       "i32(7) : i32\n"
                       "%some = ushr %t, i32(4) : i32\n%first = icmp.slt %t, i32(64) : i1\n"
                       "%last = icmp.sgt %t, i32(127) : i1\n%odd = icmp.slt %t, i32(65) : i1\n"
                       "%past = sub %t, i32(128) : i32\n%role = icmp.ult %past, i32(128) : i1\n"
                       "%sum = add %warp, %n : i32\n%mine = add %t, %n : i32\n%p = offset %x, %b : "
                       "ptr<f32, "
                       "global>\n%l = load %p : f32\n%o = offset %x, %t : ptr<f32, global>\n%k = "
                       "load %o : f32\n"
                       "%c = fcmp.gt %l, f32(0) : i1\n%any = vote.any %odd : i1\n"
                       "%lead = shuffle.index %t, i32(0) : i32\n%turn = shuffle.butterfly %t, "
                       "i32(1) : i32\n"
                       "%said = assume_uniform.warpgroup %k : f32\n"
                       "%s = for %i = i32(0) to %n step i32(1) carry (%a = i32(0)) {\n%a2 = add "
                       "%a, %i : i32\n"
                       "yield %a2\n}\n%z = for %j = %t to %n step i32(1) carry (%d = i32(0)) "
                       "{\n%d2 = add %d, "
                       "i32(1) : i32\nyield %d2\n}\n%late, %later = for %h = i32(0) to i32(3) step "
                       "i32(1) "
                       "carry (%e = "
                       "i32(0), %f = i32(0)) {\nyield %f, %t\n}\n%r = if %odd {\nyield i32(1)\n} "
                       "else {\nyield "
                       "i32(2)\n}\n}\n");
    static const struct {
        const char *name;
        tk_kuniform level;
    } expected[] = {{"t", TK_KU_THREAD},    {"u", TK_KU_WARPGROUP},    {"v", TK_KU_GRID},
                    {"b", TK_KU_BLOCK},     {"warp", TK_KU_WARP},      {"group", TK_KU_WARPGROUP},
                    {"some", TK_KU_THREAD}, {"first", TK_KU_WARP},     {"last", TK_KU_WARPGROUP},
                    {"odd", TK_KU_THREAD},  {"role", TK_KU_WARPGROUP}, {"sum", TK_KU_WARP},
                    {"mine", TK_KU_THREAD}, {"l", TK_KU_BLOCK},        {"k", TK_KU_THREAD},
                    {"c", TK_KU_BLOCK},     {"any", TK_KU_WARP},       {"lead", TK_KU_WARP},
                    {"turn", TK_KU_THREAD}, {"said", TK_KU_WARPGROUP}, {"s", TK_KU_GRID},
                    {"a", TK_KU_GRID},      {"z", TK_KU_THREAD},       {"e", TK_KU_THREAD},
                    {"late", TK_KU_THREAD}, {"r", TK_KU_THREAD},       {"n", TK_KU_GRID}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_uniform(a, expected[i].name, expected[i].level);
    tk_kanalysis_release(a);
}

static void assert_proof(const char *body, const char *message) {
    char text[2048];
    snprintf(text, sizeof text, "%s%%t = thread_index.x : i32\n%s\n}\n", HEAD("(128, 1, 1)"), body);
    tk_kernel *kernel = parse_text(text);
    tk_status status = tk_kernel_prove_uniform(kernel);
    if (!message && status != TK_OK) fail_msg("%s", tk_error_message());
    if (message && (status != TK_INVALID_ARGUMENT || !strstr(tk_error_message(), message)))
        fail_msg("%s: %s", tk_status_name(status), status ? tk_error_message() : "");
    tk_kernel_release(kernel);
}

static void test_proof(void **state) {
    (void)state;
    assert_proof("barrier", NULL);
    assert_proof("%c = icmp.slt %n, i32(5) : i1\nif %c {\nbarrier\n}", NULL);
    assert_proof("%c = icmp.slt %t, i32(64) : i1\nif %c {\nbarrier [id = 1, threads = 64]\n}",
                 NULL);
    assert_proof("%c = icmp.slt %t, i32(64) : i1\nif %c {\n%w = shuffle.up %t, i32(1) : i32\n}",
                 NULL);
    assert_proof("for %i = i32(0) to %n step i32(1) {\nbarrier\n}", NULL);
    assert_proof("%c = icmp.slt %t, %m : i1\n%d = assume_uniform.block %c : i1\nif %d "
                 "{\nbarrier\n}",
                 NULL);
    assert_proof("%c = icmp.slt %t, i32(16) : i1\nif %c {\n%w = shuffle.up %t, i32(1), "
                 "mask=i32(65535) : i32\n}",
                 NULL);
    assert_proof(
        "%c = icmp.slt %t, i32(64) : i1\nif %c {\nbarrier\n}",
        "test.tk:13: barrier is aligned over its block, but the if around it in line 12 is "
        "only known to be the same over a warp");
    assert_proof("%c = icmp.slt %t, %m : i1\nif %c {\n%w = shuffle.up %t, i32(1) : i32\n}",
                 "shuffle is aligned over its warp, but the if around it in line 12 is only known "
                 "to be the same over a thread");
    assert_proof("for %i = %t to %n step i32(32) {\n%c = icmp.eq %i, i32(0) : i1\n%b = ballot %c : "
                 "i32\n}",
                 "the for around it in line 11");
    assert_proof("%c = icmp.slt %t, i32(32) : i1\nif %c {\nwgmma_fence\n}",
                 "wgmma_fence is aligned over its warpgroup");
}

/* ---- registers, shared memory, barriers, work ---- */

static void test_registers(void **state) {
    (void)state;
    uint32_t line;
    tk_kanalysis *a = analyse(
        HEAD("(32, 1, 1)") "%p = load %x : f32x4\n%q = load %y : f32x4\n%s = add %p, %q : f32x4\n"
                           "%e = extract %s : f32\nstore %y, %e\n}\n");
    /* x (2), y (2), p (4), q (4) meet at the sum, whose result is not there yet. */
    assert_int_equal(tk_kanalysis_registers(a, &line), 2 + 4 + 4);
    assert_int_equal(line, 11);
    tk_kanalysis_release(a);
    a = analyse(HEAD(
        "(32, 1, 1)") "%r = registers : regs<f16, \"64:1\">\nset %r, f16(1)\n"
                      "for %i = i32(0) to %n step i32(1) {\n%v = get %r [index = 1] : f16\n}\n}\n");
    assert_int_equal(tk_kanalysis_registers(a, NULL), 32 + 1 + 1);
    tk_kanalysis_release(a);
}

static void test_shared_and_orders(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file("examples/kernels/row_sum.tk");
    tk_kanalysis *a = NULL;
    tk_kplace place;
    tk_korder order;
    assert_ok(tk_kernel_analyse(kernel, &a));
    assert_int_equal(tk_kanalysis_places(a), 1);
    assert_ok(tk_kanalysis_place(a, 0, &place));
    assert_string_equal(place.name, "partial");
    assert_true(place.offset == 0 && place.bytes == 16);
    assert_int_equal(tk_kanalysis_orders(a), 1);
    assert_ok(tk_kanalysis_order(a, 0, &order));
    assert_string_equal(order.memory, "partial");
    assert_string_equal(order.before, "store");
    assert_string_equal(order.after, "load");
    assert_true(order.before_line < order.barrier_line && order.barrier_line < order.after_line);
    assert_int_equal(tk_kanalysis_place(a, 1, &place), TK_INDEX_ERROR);
    assert_int_equal(tk_kanalysis_order(a, 1, &order), TK_INDEX_ERROR);
    tk_kanalysis_release(a);
    tk_kernel_release(kernel);
}

/* A tile that a loop fills and reads: its first barrier orders writes before reads, the second
 * reads before the writes of the next trip. */
static void test_orders_of_loops(void **state) {
    (void)state;
    tk_korder order;
    tk_kanalysis *a = analyse(HEAD("(32, 1, 1)") "%t = thread_index.x : i32\n%tile = shared : "
                                                 "shared<f32, \"32:1\">\n%b = address %tile : "
                                                 "ptr<f32, shared>\n%w = offset %b, %t : ptr<f32, "
                                                 "shared>\nfor %i = i32(0) to %n step "
                                                 "i32(1) {\nstore %w, f32(1)\nbarrier\n%v = load "
                                                 "%b : f32\nbarrier\n}\nbarrier\n}\n");
    assert_int_equal(tk_kanalysis_orders(a), 2);
    assert_ok(tk_kanalysis_order(a, 0, &order));
    assert_true(!strcmp(order.before, "store") && !strcmp(order.after, "load"));
    assert_ok(tk_kanalysis_order(a, 1, &order));
    assert_true(!strcmp(order.before, "load") && !strcmp(order.after, "store"));
    tk_kanalysis_release(a);
}

static void test_work(void **state) {
    (void)state;
    tk_kanalysis *a =
        analyse(HEAD("(32, 1, 1)") "%s = for %i = i32(0) to i32(10) step i32(2) carry (%c = "
                                   "f32(0)) {\n%v = load %x : f32\n"
                                   "%d = fma %v, %v, %c : f32\nyield %d\n}\nstore %y, %s\n}\n");
    tk_kwork work = tk_kanalysis_work(a);
    assert_true(work.exact && work.flops == 10 && work.read_bytes == 20 && work.written_bytes == 4);
    tk_kanalysis_release(a);
    a = analyse(HEAD("(32, 1, 1)") "for %i = i32(0) to %n step i32(2) {\n%v = load %x : f32\nstore "
                                   "%y, %v\n}\n}\n");
    work = tk_kanalysis_work(a);
    assert_true(!work.exact && work.read_bytes == 4 && work.written_bytes == 4);
    tk_kanalysis_release(a);
}

/* Sectors and banks of accesses: neighbours, every second element, a column of a tile, a swizzle.
 */
static void test_patterns(void **state) {
    (void)state;
    tk_kpattern *patterns;
    size_t count;
    tk_kargument arguments[4] = {{0}, {0}, {64}, {16}};
    char text[2000], *svg;
    snprintf(
        text, sizeof text, "%s%s", HEAD("(64, 1, 1)"),
        "%t = thread_index.x : i32\n%two = mul %t, i32(2) : i32\n%p = offset %x, %t : ptr<f32, "
        "global>\n%q = offset %x, %two : ptr<f32, global>\n%v = load %p : f32\n%w = load %q : "
        "f32\n%tile = shared [align = 128] : shared<f32, \"2048:1\">\n%b = address %tile : "
        "ptr<f32, shared>\n%row = mul %t, i32(32) : i32\n%c = offset %b, %row : ptr<f32, "
        "shared>\nstore %c, %v\n%turn = xor %row, %t : i32\n%d = offset %b, %turn : ptr<f32, "
        "shared>\nstore %d, %w\n%few = icmp.slt %t, %m : i1\nif %few {\n%four = load %p : "
        "f32\n}\n%bits = bitcast %v : i32\n%any = offset %x, %bits : ptr<f32, global>\n%u = "
        "load %any : f32\n}\n");
    tk_kernel *kernel = parse_text(text);
    assert_ok(tk_kernel_patterns(kernel, 4, arguments, 0, &patterns, &count));
    assert_int_equal(count, 6);
    assert_true(patterns[0].sectors == 4 && patterns[0].lanes == 0xffffffffu);
    assert_string_equal(patterns[0].memory, "x");
    assert_int_equal(patterns[1].sectors, 8);
    assert_true(patterns[1].address[5] == 40);
    assert_int_equal(patterns[2].passes, 32);
    assert_string_equal(patterns[2].memory, "shared memory");
    assert_int_equal(patterns[3].passes, 1);
    assert_int_equal(patterns[4].lanes, 0xffff);
    assert_int_equal(patterns[5].lanes, 0);
    tk_kernel_patterns_free(patterns);
    assert_ok(tk_kernel_draw(kernel, 4, arguments, 1, &svg));
    assert_non_null(strstr(svg, "8 sectors"));
    assert_non_null(strstr(svg, "32 passes"));
    tk_kernel_text_free(svg);
    tk_kernel_release(kernel);
}

static void test_nothing(void **state) {
    (void)state;
    tk_kanalysis_release(NULL);
    assert_int_equal(tk_kanalysis_registers(NULL, NULL), 0);
    assert_int_equal(tk_kanalysis_places(NULL), 0);
    assert_int_equal(tk_kanalysis_orders(NULL), 0);
    assert_int_equal(tk_kanalysis_work(NULL).flops, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges),
                                       cmocka_unit_test(test_uniform),
                                       cmocka_unit_test(test_proof),
                                       cmocka_unit_test(test_registers),
                                       cmocka_unit_test(test_shared_and_orders),
                                       cmocka_unit_test(test_orders_of_loops),
                                       cmocka_unit_test(test_work),
                                       cmocka_unit_test(test_patterns),
                                       cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
