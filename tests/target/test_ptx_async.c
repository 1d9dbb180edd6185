#define _GNU_SOURCE
/* PTX of atomic, asynchronous and cluster operations: an assembler takes each for the architectures
 * that have it, and the others refuse it by name. */
#include "support/kernel_files.h"

#include "tiki/target.h"

/* %y points to f32 that may be written, %w to i32, %l to i64, %h and %g to f16 and bf16, %d to f64;
 * %map is a tensor map of %y in two modes, %line and %cube in one and five; %tile points to shared
 * memory, %bar to an mbarrier there, %there and %away to the same of a peer. */
static const char head[] =
    "tiki kernel 1\nkernel test(%x: ptr<f32, global> read align 128, %y: ptr<f32, global> "
    "read_write "
    "align 128, %w: ptr<i32, global> read_write align 128, %l: ptr<i64, global> read_write align "
    "128, "
    "%h: ptr<f16, global> read_write align 128, %g: ptr<bf16, global> read_write align 128, %d: "
    "ptr<f64, global> read_write align 128, %s: ptr<i16, global> read_write align 128, %n: i32, "
    "%map: "
    "ptr<tmap, param> map %y f32 extent (64, 64) stride (256) box (16, 8) swizzle 64, %line: "
    "ptr<tmap, "
    "param> map %y f32 extent (64) stride () box (16), %cube: ptr<tmap, param> map %y f32 extent "
    "(4, 4, "
    "4, 4, 4) stride (16, 64, 256, 1024) box (4, 4, 2, 1, 1))\n"
    "form thread grid (2, 1, 1) cluster (2, 1, 1) block (128, 1, 1) min_blocks 1\n{\n"
    "%t = thread_index.x : i32\n%c = icmp.slt %t, %n : i1\n"
    "%store = shared [align = 1024] : shared<f32, \"1024:1\">\n%tile = address %store : ptr<f32, "
    "shared>\n%bars = shared : shared<mbar, \"4:1\">\n%bar = address %bars : ptr<mbar, shared>\n"
    "%first = icmp.eq %t, i32(0) : i1\n";
#define AWAY                                                                                       \
    "%far = pointer_cast %tile : ptr<f32, cluster>\n%there = peer %far, i32(1) : ptr<f32, "        \
    "cluster>\n%gate = pointer_cast %bar : ptr<mbar, cluster>\n%away = peer %gate, i32(1) : "      \
    "ptr<mbar, cluster>\n"

typedef struct sample {
    const char *arch; /* the oldest that has it */
    const char *body;
} sample;

static const sample samples[] = {
    {"sm_80",
     "%a1 = atomic.add.relaxed.gpu %w, i32(1) : i32\n%a2 = atomic.smin.acquire.gpu %w, i32(1) : "
     "i32\n"
     "%a3 = atomic.smax.release.system %w, i32(1) : i32\n%a4 = atomic.umin.acq_rel.block %w, "
     "i32(1) : "
     "i32\n%a5 = atomic.umax.relaxed.gpu %w, i32(1) : i32\n%a6 = atomic.and.relaxed.gpu %w, i32(1) "
     ": "
     "i32\n%a7 = atomic.or.relaxed.gpu %w, i32(1) : i32\n%a8 = atomic.xor.relaxed.gpu %w, i32(1) : "
     "i32\n%a9 = atomic.exchange.relaxed.gpu %w, i32(1) : i32\n%b1 = atomic.inc.relaxed.gpu %w, "
     "i32(1) : i32\n%b2 = atomic.dec.relaxed.gpu %w, i32(1) : i32\n%b3 = "
     "atomic.compare.acq_rel.gpu "
     "%w, i32(1), expected=%n : i32\n%b4 = atomic.add.relaxed.gpu %w, %n, if=%c : i32"},
    {"sm_80", "%a1 = atomic.add.relaxed.gpu %l, i64(1) : i64\n%a2 = atomic.smin.relaxed.gpu %l, "
              "i64(1) : i64\n"
              "%a3 = atomic.umax.relaxed.gpu %l, i64(1) : i64\n%a4 = atomic.xor.relaxed.gpu %l, "
              "i64(1) : i64\n"
              "%a5 = atomic.exchange.relaxed.gpu %l, i64(1) : i64\n%a6 = "
              "atomic.compare.relaxed.gpu %l, i64(1), "
              "expected=i64(2) : i64\n%a7 = atomic.compare.relaxed.gpu %s, i16(1), expected=i16(2) "
              ": i16\n%a8 = "
              "atomic.add.relaxed.gpu %y, f32(1) : f32\n%a9 = atomic.exchange.relaxed.gpu %y, "
              "f32(1), if=%c : "
              "f32\n%b1 = atomic.add.relaxed.gpu %d, f64(1) : f64\n%b2 = atomic.add.relaxed.gpu "
              "%h, f16(1) : "
              "f16\n%b3 = atomic.add.relaxed.block %tile, f32(1) : f32\n%p = "
              "cache_policy.evict_first : i64\n%b4 "
              "= atomic.add.relaxed.gpu %w, i32(1), policy=%p : i32"},
    {"sm_80", "reduce.add.relaxed.gpu %w, i32(1)\nreduce.add.release.gpu %y, f32(1), "
              "if=%c\nreduce.smax.acq_rel.gpu "
              "%w, i32(1)\nreduce.or.relaxed.block %l, "
              "i64(1)\nfence.acq_rel.block\nfence.sc.gpu\nfence.acq_rel."
              "system"},
    {"sm_80",
     "%v = load.relaxed.gpu %w : i32\n%u = load.acquire.system %w : i32\nstore.release.gpu %w, "
     "%v\nstore.relaxed.block %w, %u\n%p = cache_policy.evict_last : i64\n%r = load %x, policy=%p "
     ": "
     "f32x4\nstore %y, %r, policy=%p\n%q = load.nc.no_allocate.l2_128 %x, if=%c, policy=%p : "
     "f32x2\nprefetch %x\nstore.evict_first %y, %q, if=%c"},
    {"sm_80",
     "cp_async %tile, %x [bytes = 16]\ncp_async.cg.l2_128 %tile, %x, size=%n [bytes = "
     "16]\ncp_async "
     "%tile, %x, if=%c [bytes = 4]\n%p = cache_policy.evict_normal : i64\ncp_async %tile, %x, "
     "size=%n, "
     "if=%c, policy=%p [bytes = 8]\ncp_async_commit\ncp_async_wait [groups = 2]\ncp_async_wait"},
    {"sm_80", "if %first {\nmbarrier_init %bar, i32(128)\nmbarrier_fence\n}\nbarrier\ncp_async "
              "%tile, %x [bytes = "
              "16]\ncp_async_arrive %bar\nmbarrier_arrive %bar\nmbarrier_wait %bar, i32(0)\n%done "
              "= mbarrier_test "
              "%bar, %n : i1\ncp_async_arrive.arriving %bar\nmbarrier_arrive %bar, "
              "if=%done\nbarrier\nif %first "
              "{\nmbarrier_end %bar\n}"},
    {"sm_80",
     "%a = match.any %t : i32\n%b = match.all %a, mask=%a : i32\n%e = elect : i1\n%f = elect "
     "mask=%a : "
     "i1\n%g2 = active : i32\n%r1 = warp_reduce.add %t : i32\n%r2 = warp_reduce.umax %t, mask=%a : "
     "i32\n"
     "%r3 = warp_reduce.xor %t : i32\n%k = clock.cycles : i64\nnanosleep i32(20)\n%m = raw %r1, "
     "%r2 [text = "
     "\"add.s32 $0, $1, $2\"] : i32\nraw.writes %w, %m [text = \"st.global.u32 [$0], $1\"]"},
    {"sm_90", "%a1 = atomic.add.relaxed.gpu %g, bf16(1) : bf16\n%a2 = atomic.add.relaxed.cluster "
              "%w, i32(1) : "
              "i32\n%v = splat f32(1) : f32x4\nreduce.add.relaxed.gpu %y, %v\n%h4 = splat f16(1) : "
              "f16x4\nreduce.max.relaxed.gpu %h, %h4, if=%c\nfence.acq_rel.cluster"},
    {"sm_90", AWAY
     "%i = cluster_index.x : i32\n%j = cluster_block.y : i32\n%k = cluster_size.z : i32\n%r = "
     "special.cluster_rank : i32\n%u = load %there : f32\nstore %there, %u\n%o = "
     "atomic.add.relaxed.cluster %there, f32(1) : f32\ncluster_arrive\ncluster_wait\n"
     "cluster_arrive.relaxed\ncluster_wait\nmbarrier_arrive %away\nmbarrier_arrive.cluster %away, "
     "count=i32(2), if=%c\nmbarrier_expect %away, i32(64)\nbulk_send %there, %tile, i32(64), "
     "%away\nstore_async %there, f32(1), %away"},
    {"sm_90",
     "mbarrier_init %bar, i32(1)\nmbarrier_fence\nmbarrier_expect %bar, i32(256), if=%first\n"
     "mbarrier_expect_only %bar, i32(64)\nmbarrier_arrive.cluster %bar, "
     "count=%n\nmbarrier_wait.cluster "
     "%bar, i32(1)\n%p = cache_policy.evict_first : i64\nbulk_load %tile, %x, i32(256), "
     "%bar\nbulk_load "
     "%tile, %x, %n, %bar, multicast=i32(3), "
     "policy=%p\nproxy_fence.async\nproxy_fence.async_shared\n"
     "proxy_fence.async_global\nbulk_store %y, %tile, i32(256)\nbulk_store %y, %tile, %n, "
     "policy=%p\n"
     "bulk_reduce.add %y, %tile, i32(256)\nbulk_prefetch %x, i32(256)\nbulk_commit\nbulk_wait "
     "[groups = "
     "1]\nbulk_wait.read"},
    {"sm_90",
     "%hs = shared : shared<f16, \"64:1\">\n%ht = address %hs : ptr<f16, shared>\n%is = shared : "
     "shared<i32, \"64:1\">\n%it = address %is : ptr<i32, shared>\nbulk_reduce.add %h, %ht, "
     "i32(64)\nbulk_reduce.max %h, %ht, i32(64)\nbulk_reduce.smin %w, %it, "
     "i32(64)\nbulk_reduce.umax %w, "
     "%it, i32(64)\nbulk_reduce.inc %w, %it, i32(64)\nbulk_reduce.xor %w, %it, "
     "i32(64)\nbulk_commit\nbulk_wait"},
    {"sm_90",
     "%p = cache_policy.evict_last : i64\nmap_prefetch %map\ntma_prefetch %map, i32(0), "
     "%t\ntma_load "
     "%tile, %map, %bar, %t, i32(8)\ntma_load %tile, %map, %bar, multicast=%n, policy=%p, i32(0), "
     "i32(0)\ntma_load %tile, %line, %bar, %t\ntma_load %tile, %cube, %bar, %t, %t, %t, %t, "
     "i32(-1)\ntma_store %map, %tile, i32(0), i32(0)\ntma_store %map, %tile, policy=%p, i32(0), "
     "i32(0)\ntma_store %cube, %tile, i32(0), i32(0), i32(0), i32(0), i32(0)\ntma_reduce.add %map, "
     "%tile, "
     "i32(0), i32(0)\nbulk_commit\nbulk_wait"},
    {"sm_80", "grid_wait\nbarrier\ngrid_launch"},
    {"sm_90", "%a = special.cluster_size : i32"},
    {"sm_90", "%a = load.acquire.cluster %w : i32"},
    {"sm_90", "%f = pointer_cast %tile : ptr<f32, cluster>\nstore %f, f32(1)"},
    {"sm_90",
     "%f = pointer_cast %tile : ptr<f32, cluster>\n%a = atomic.add.relaxed.block %f, f32(1) : f32"},
    {"sm_90a", "registers_shrink [registers = 40]\nregisters_grow [registers = 232]"},
    {"sm_90a",
     "%ms = shared [align = 128] : shared<i8, \"128:1\">\n%mp = address %ms : ptr<i8, "
     "shared>\nmap_replace.address %mp, i64(4096)\nmap_replace.extent %mp, %n [index = "
     "1]\nmap_replace.stride %mp, i64(256)\nmap_replace.box %mp, i32(16)\nmap_replace.fill %mp, "
     "i32(0)\n%gp = pointer_cast %y : ptr<i8, global>\nmap_publish.gpu %gp, %mp\nmap_acquire.gpu "
     "%map"},
};
#define SAMPLES (sizeof samples / sizeof *samples)

static const char *const architectures[] = {"sm_80", "sm_90", "sm_90a"};

static tk_kernel *kernel_of(const sample *s) {
    char *text;
    bool old = !strcmp(s->arch, "sm_80");
    assert_true(asprintf(&text, "%s%s\n}\n", head, s->body) > 0);
    if (old) memset(strstr(text, "cluster (2, 1, 1)"), ' ', strlen("cluster (2, 1, 1)"));
    tk_kernel *kernel = parse_text(text);
    free(text);
    return kernel;
}

static void assert_assembles(const tk_kernel *kernel, const char *arch) {
    tk_artifact *artifact = NULL;
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY};
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas")) {
        print_message("skipped: %s\n", tk_error_message());
        skip();
    }
    assert_ok(status);
    assert_non_null(tk_artifact_binary(artifact, NULL));
    tk_artifact_release(artifact);
}

static int age_of(const char *arch) {
    int age = 0;
    while (strcmp(architectures[age], arch)) age++;
    return age;
}

static void test_assembles(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        tk_kernel *kernel = kernel_of(&samples[i]);
        for (int a = age_of(samples[i].arch); a < 3; a++)
            assert_assembles(kernel, architectures[a]);
        tk_kernel_release(kernel);
    }
}

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        tk_kernel *kernel = kernel_of(&samples[i]);
        for (int a = 0; a < age_of(samples[i].arch); a++) {
            tk_artifact *artifact;
            tk_build how = {.arch = architectures[a]};
            assert_int_equal(tk_kernel_build_ptx(kernel, &how, &artifact), TK_UNSUPPORTED);
            assert_non_null(strstr(tk_error_message(), "PTX has no form of"));
        }
        tk_kernel_release(kernel);
    }
}

/* What no architecture has is named. */
static void test_unknown_forms(void **state) {
    (void)state;
    static const char *const bodies[] = {"%a = atomic.min.relaxed.gpu %y, f32(1) : f32",
                                         "%v = splat i32(1) : i32x2\nreduce.add.relaxed.gpu %w, %v",
                                         "%p = cache_policy.no_allocate : i64",
                                         "tma_load.im2col %tile, %map, %bar, i32(0), i32(0)",
                                         "%r = warp_reduce.max %t : i32",
                                         "cp_async.cg %tile, %x [bytes = 4]"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        tk_kernel *kernel = kernel_of(&(sample){"sm_90", bodies[i]});
        tk_artifact *artifact;
        assert_int_equal(tk_kernel_build_ptx(kernel, NULL, &artifact), TK_UNSUPPORTED);
        assert_non_null(strstr(tk_error_message(), "PTX has no form of"));
        tk_kernel_release(kernel);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_assembles),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_unknown_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
