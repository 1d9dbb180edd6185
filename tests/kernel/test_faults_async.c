/* Planted faults of asynchronous work: mbarriers, cp.async, bulk copies, TMA and the fences between
 * proxies. */
#include "support/kernel_faults.h"

/* ---- mbarriers ---- */

#define WAIT(parity) "mbarrier_wait %bar, i32(" parity ")\n"
#define TURNS(count)                                                                               \
    "for %i = i32(0) to i32(" count ") step i32(1) {\n%parity = and %i, i32(1) : i32\n"

static const fault mbarriers[] = {
    {"no initialisation", TK_KF_MBARRIER_USE, 1, 1, 64, BARS "mbarrier_arrive %bar #!",
     INIT("64") "mbarrier_arrive %bar"},
    {"no barrier behind the initialisation", TK_KF_MBARRIER_USE, 1, 1, 64,
     BARS "if %first {\nmbarrier_init %bar, i32(64)\nmbarrier_fence\n}\nmbarrier_arrive %bar #!",
     BARS "if %first {\nmbarrier_init %bar, i32(64)\nmbarrier_fence\n}\nbarrier\nmbarrier_arrive "
          "%bar"},
    {"a relaxed arrival without mbarrier_fence", TK_KF_MBARRIER_USE, 2, 2, 64,
     BARS "if %first {\nmbarrier_init %bar, i32(64)\n}\ncluster_arrive.relaxed\ncluster_wait\n"
          "mbarrier_arrive %bar #!",
     BARS "if %first {\nmbarrier_init %bar, i32(64)\nmbarrier_fence\n}\ncluster_arrive.relaxed\n"
          "cluster_wait\nmbarrier_arrive %bar"},
    {"all initialise it", TK_KF_MBARRIER_USE, 1, 1, 64,
     BARS "mbarrier_init %bar, i32(64) #!\nbarrier\nmbarrier_arrive %bar",
     INIT("64") "mbarrier_arrive %bar"},
    {"its memory is written", TK_KF_MBARRIER_USE, 1, 1, 64,
     INIT(
         "64") "%raw = pointer_cast %bar : ptr<i64, shared>\nif %first {\nstore %raw, i64(0) #!\n}",
     INIT(
         "64") "if %first {\nmbarrier_end %bar\n%raw = pointer_cast %bar : ptr<i64, shared>\nstore "
               "%raw, i64(0)\n}"},
    {"it is used after its end", TK_KF_MBARRIER_USE, 1, 1, 64,
     INIT("64") "if %first {\nmbarrier_end %bar\n}\nbarrier\nmbarrier_arrive %bar #!",
     INIT("64") "mbarrier_arrive %bar\n" WAIT("0") "barrier\nif %first {\nmbarrier_end %bar\n}"},
    {"more arrivals expected than come", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     INIT("65") "mbarrier_arrive %bar\n"
                "mbarrier_wait %bar, i32(0) #!",
     INIT("64") "mbarrier_arrive %bar\n" WAIT("0")},
    {"more arrivals than expected", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     INIT("32") "mbarrier_arrive %bar #!\n" WAIT("0"),
     INIT("64") "mbarrier_arrive %bar\n" WAIT("0")},
    {"two arrivals for one", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     INIT("1") "if %first {\nmbarrier_arrive %bar, count=i32(2) #!\n}\n" WAIT("0"),
     INIT("2") "if %first {\nmbarrier_arrive %bar, count=i32(2)\n}\n" WAIT("0")},
    {"none expected", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     BARS "if %first {\nmbarrier_init %bar, i32(0) #!\nmbarrier_fence\n}\nbarrier\nif %first "
          "{\nmbarrier_arrive %bar\n}\n" WAIT("0"),
     INIT("1") "if %first {\nmbarrier_arrive %bar\n}\n" WAIT("0")},
    {"fewer bytes expected than come", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(128)\nbulk_load %b, %x, i32(256), %bar "
                    "#!\n}\n" WAIT("0"),
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(256)\nbulk_load %b, %x, i32(256), "
                    "%bar\n}\n" WAIT("0")},
    {"more bytes expected than come", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(512)\nbulk_load %b, %x, i32(256), "
                    "%bar\n}\nmbarrier_wait %bar, i32(0) #!",
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(512)\nbulk_load %b, %x, i32(256), "
                    "%bar\n%h = offset %b, i32(64) : ptr<f32, shared>\nbulk_load %h, %x, i32(256), "
                    "%bar\n}\n" WAIT("0")},
    {"an arrival before its phase", TK_KF_MBARRIER_COUNT, 1, 1, 64,
     INIT("64") "mbarrier_arrive %bar\nmbarrier_arrive %bar #!\n" WAIT("0") WAIT("1"),
     INIT("64") "mbarrier_arrive %bar\n" WAIT("0") "mbarrier_arrive %bar\n" WAIT("1")},
    {"the first wait has the wrong parity", TK_KF_MBARRIER_PHASE, 1, 1, 64,
     LOW INIT("32") "if %low {\nmbarrier_arrive %bar\n} else {\nmbarrier_wait %bar, i32(1) #!\n}",
     LOW INIT("32") "if %low {\nmbarrier_arrive %bar\n} else {\nmbarrier_wait %bar, i32(0)\n}"},
    {"the parity does not turn", TK_KF_MBARRIER_PHASE, 1, 1, 64,
     LOW INIT("32")
         TURNS("2") "if %low {\nmbarrier_arrive %bar\nmbarrier_wait %bar2, %parity\n} else "
                    "{\nmbarrier_wait %bar, i32(0) #!\nmbarrier_arrive "
                    "%bar2\n}\nyield\n}\nif %low {\nmbarrier_arrive %bar\n}",
     LOW INIT("32")
         TURNS("2") "if %low {\nmbarrier_arrive %bar\nmbarrier_wait %bar2, %parity\n} else "
                    "{\nmbarrier_wait %bar, %parity\nmbarrier_arrive %bar2\n}\nyield\n}"},
    {"phases that nobody waits for between", TK_KF_MBARRIER_PHASE, 1, 1, 64,
     INIT("1") "if %first {\nmbarrier_arrive %bar\nmbarrier_arrive %bar\n}\nmbarrier_wait %bar, "
               "i32(0) "
               "#!",
     INIT("1") "if %first {\nmbarrier_arrive %bar\n}\nmbarrier_wait %bar, i32(0)\nbarrier\nif "
               "%first "
               "{\nmbarrier_arrive %bar\n}"},
    {"a phase is left out", TK_KF_MBARRIER_PHASE, 1, 1, 64,
     LOW INIT("32") "if %low {\nmbarrier_arrive %bar\n" WAIT("0") "mbarrier_arrive %bar\n" WAIT(
         "1") "} else {\n" WAIT("0") "mbarrier_wait %bar, i32(0) #!\n}",
     LOW INIT("64") "if %low {\nmbarrier_arrive %bar\n" WAIT("0") "mbarrier_arrive %bar\n" WAIT(
         "1") "} else {\nmbarrier_arrive %bar\n" WAIT("0") "mbarrier_arrive %bar\n" WAIT("1") "}"},
    {"the producer does not wait for the consumer", TK_KF_MBARRIER_PHASE, 1, 1, 64,
     LOW INIT("32")
         TURNS("3") "if %low {\nmbarrier_arrive %bar\n} else {\nmbarrier_wait %bar, %parity "
                    "#!\nmbarrier_arrive %bar2\n}\nyield\n}",
     LOW INIT("32")
         TURNS("3") "if %low {\nmbarrier_arrive %bar\nmbarrier_wait %bar2, %parity\n} else "
                    "{\nmbarrier_wait %bar, %parity\nmbarrier_arrive %bar2\n}\nyield\n}"},
};

/* ---- proxies ---- */

/* All write the tile, one thread stores it. */
#define STORE(before, after, first)                                                                \
    TILE FIRST "store %c, f32(1)\n" before "barrier\n" after "if %first {\n" first                 \
               "bulk_commit\nbulk_wait\n}"

static const fault proxies[] = {
    {"a bulk store without a fence", TK_KF_PROXY_FENCE, 1, 1, 64,
     STORE("", "", "bulk_store %y, %b, i32(256) #!\n"),
     STORE("proxy_fence.async\n", "", "bulk_store %y, %b, i32(256)\n")},
    {"the fence of the thread that stores alone", TK_KF_PROXY_FENCE, 1, 1, 64,
     STORE("", "", "proxy_fence.async\nbulk_store %y, %b, i32(256) #!\n"),
     STORE("proxy_fence.async_shared\n", "", "bulk_store %y, %b, i32(256)\n")},
    {"a fence behind the barrier", TK_KF_PROXY_FENCE, 1, 1, 64,
     STORE("", "proxy_fence.async\n", "bulk_store %y, %b, i32(256) #!\n"),
     STORE("proxy_fence.async\n", "proxy_fence.async\n", "bulk_store %y, %b, i32(256)\n")},
    {"a box without a fence", TK_KF_PROXY_FENCE, 1, 1, 128,
     STORE("", "", "tma_store %out, %b, i32(0), i32(0) #!\n"),
     STORE("proxy_fence.async\n", "", "tma_store %out, %b, i32(0), i32(0)\n")},
    {"an mbarrier without a fence", TK_KF_PROXY_FENCE, 1, 1, 32,
     TILE BARS
     "if %first {\nmbarrier_init %bar, i32(1)\nmbarrier_expect %bar, i32(256)\nbulk_load %b, "
     "%x, i32(256), %bar #!\n}\nbarrier\n" WAIT("0"),
     TILE BARS "if %first {\nmbarrier_init %bar, i32(1)\nmbarrier_fence\nmbarrier_expect %bar, "
               "i32(256)\nbulk_load %b, %x, i32(256), %bar\n}\nbarrier\n" WAIT("0")},
    {"cp_async, then a bulk store", TK_KF_PROXY_FENCE, 1, 1, 64,
     TILE POINT FIRST
     "cp_async %c, %p [bytes = 4]\ncp_async_commit\ncp_async_wait\nbarrier\nif %first "
     "{\nbulk_store %y, %b, i32(256) #!\nbulk_commit\nbulk_wait\n}",
     TILE POINT FIRST "cp_async %c, %p [bytes = "
                      "4]\ncp_async_commit\ncp_async_wait\nproxy_fence.async\nbarrier\nif %first "
                      "{\nbulk_store %y, %b, i32(256)\nbulk_commit\nbulk_wait\n}"},
    {"a copy over what was written", TK_KF_PROXY_FENCE, 1, 1, 64,
     TILE INIT(
         "1") "store %c, f32(1)\nbarrier\nif %first {\nmbarrier_expect %bar, i32(256)\nbulk_load "
              "%b, %x, i32(256), %bar #!\n}\n" WAIT("0"),
     TILE INIT(
         "1") "store %c, f32(1)\nproxy_fence.async\nbarrier\nif %first {\nmbarrier_expect %bar, "
              "i32(256)\nbulk_load %b, %x, i32(256), %bar\n}\n" WAIT("0")},
};

/* ---- in flight ---- */

#define COPY TILE POINT "cp_async %c, %p [bytes = 4]\ncp_async_commit\n"
#define LOAD(barrier)                                                                              \
    TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(256)\nbulk_load %b, %x, i32(256), "     \
                   "%bar\n" barrier "}\n"

static const fault flight[] = {
    {"cp_async without a wait", TK_KF_IN_FLIGHT, 1, 1, 64,
     COPY "%w = load %c : f32 #!\ncp_async_wait", COPY "cp_async_wait\n%w = load %c : f32"},
    {"a wait that leaves one group", TK_KF_IN_FLIGHT, 1, 1, 64,
     COPY "cp_async_wait [groups = 1]\n%w = load %c : f32 #!\ncp_async_wait",
     COPY "%h = offset %c, i32(64) : ptr<f32, shared>\ncp_async %h, %p [bytes = "
          "4]\ncp_async_commit\ncp_async_wait [groups = 1]\n%w = load %c : f32\ncp_async_wait"},
    {"no commit before the wait", TK_KF_IN_FLIGHT, 1, 1, 64,
     TILE POINT "cp_async %c, %p [bytes = 4]\ncp_async_wait\n%w = load %c : f32 "
                "#!\ncp_async_commit\ncp_async_wait",
     COPY "cp_async_wait\n%w = load %c : f32"},
    {"a write over a copy", TK_KF_IN_FLIGHT, 1, 1, 64, COPY "store %c, f32(1) #!\ncp_async_wait",
     COPY "cp_async_wait\nstore %c, f32(1)"},
    {"a bulk copy read before its mbarrier", TK_KF_IN_FLIGHT, 1, 1, 64,
     LOAD("%w = load %b : f32 #!\n") WAIT("0"), LOAD("") WAIT("0") "%w = load %b : f32"},
    {"a barrier is no wait", TK_KF_IN_FLIGHT, 1, 1, 64,
     LOAD("") "barrier\n%w = load %c : f32 #!\n" WAIT("0"),
     LOAD("") WAIT("0") "%w = load %c : f32"},
    {"a source written before it is read", TK_KF_IN_FLIGHT, 1, 1, 64,
     STORE("proxy_fence.async\n", "", "bulk_store %y, %b, i32(256)\nstore %b, f32(2) #!\n"),
     STORE("proxy_fence.async\n", "",
           "bulk_store %y, %b, i32(256)\nbulk_commit\nbulk_wait.read\nstore %b, f32(2)\n")},
    {"a result read when the source is", TK_KF_IN_FLIGHT, 1, 1, 64,
     STORE("proxy_fence.async\n", "",
           "bulk_store %y, %b, i32(256)\nbulk_commit\nbulk_wait.read\n%w = load %y : f32 #!\n"),
     STORE("proxy_fence.async\n", "",
           "bulk_store %y, %b, i32(256)\nbulk_commit\nbulk_wait\n%w = load %y : f32\n")},
    {"two boxes to one place", TK_KF_IN_FLIGHT, 1, 1, 32,
     TILE INIT(
         "1") "if %first {\nmbarrier_expect %bar, i32(1024)\ntma_load %b, %map, %bar, i32(0), "
              "i32(0)\ntma_load %b, %map, %bar, i32(0), i32(8) #!\n}\n" WAIT("0"),
     TILE INIT(
         "1") "if %first {\nmbarrier_expect %bar, i32(1024)\ntma_load %b, %map, %bar, i32(0), "
              "i32(0)\n%h = offset %b, i32(128) : ptr<f32, shared>\ntma_load %h, %map, %bar, "
              "i32(0), i32(8)\n}\n" WAIT("0")},
    {"a box read after another mbarrier", TK_KF_IN_FLIGHT, 1, 1, 32,
     TILE INIT(
         "1") "if %first {\nmbarrier_expect %bar, i32(512)\ntma_load %b, %map, %bar, i32(0), "
              "i32(0)\nmbarrier_arrive %bar2\n}\nmbarrier_wait %bar2, i32(0)\n%w = load %c : f32 "
              "#!\n" WAIT("0"),
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(512)\ntma_load %b, %map, %bar, i32(0), "
                    "i32(0)\nmbarrier_arrive %bar2\n}\nmbarrier_wait %bar2, i32(0)\n" WAIT(
                        "0") "%w = load %c : f32"},
};

/* ---- unfinished ---- */

#define PEER                                                                                       \
    "%far = pointer_cast %c : ptr<f32, cluster>\n%rank = special.cluster_rank : i32\n%next = xor " \
    "%rank, i32(1) : i32\n%there = peer %far, %next : ptr<f32, cluster>\n"

#define SENT                                                                                       \
    TILE BARS PEER                                                                                 \
        "%gate = pointer_cast %bar : ptr<mbar, cluster>\n%signal = peer %gate, %next : ptr<mbar, " \
        "cluster>\nif %first {\nmbarrier_init %bar, i32(1)\nmbarrier_fence\nmbarrier_expect "      \
        "%bar, "                                                                                   \
        "i32(256)\n}\ncluster_arrive.relaxed\ncluster_wait\nstore_async %there, f32(1), %signal"

static const fault unfinished[] = {
    {"nobody waits for cp_async", TK_KF_UNFINISHED, 1, 1, 64,
     TILE POINT "cp_async %c, %p [bytes = 4] #!\ncp_async_commit", COPY "cp_async_wait"},
    {"nobody waits for a bulk copy", TK_KF_UNFINISHED, 1, 1, 64,
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(256)\nbulk_load %b, %x, i32(256), %bar "
                    "#!\n}",
     LOAD("") WAIT("0")},
    {"the block ends while its memory is stored", TK_KF_UNFINISHED, 1, 1, 64,
     TILE FIRST "store %c, f32(1)\nproxy_fence.async\nbarrier\nif %first {\nbulk_store %y, %b, "
                "i32(256) #!\nbulk_commit\n}",
     TILE FIRST "store %c, f32(1)\nproxy_fence.async\nbarrier\nif %first {\nbulk_store %y, %b, "
                "i32(256)\nbulk_commit\nbulk_wait.read\n}"},
    {"nobody waits for a peer's store", TK_KF_UNFINISHED, 2, 2, 64, SENT " #!",
     SENT "\nmbarrier_wait %bar, i32(0)"},
    {"the block ends while a peer reads its memory", TK_KF_UNFINISHED, 2, 2, 64,
     TILE PEER "store %c, f32(1)\ncluster_arrive\ncluster_wait\n%w = load %there : f32 #!",
     TILE PEER "store %c, f32(1)\ncluster_arrive\ncluster_wait\n%w = load %there : "
               "f32\ncluster_arrive\ncluster_wait"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void test_mbarriers(void **state) {
    static const tk_kfinding_kind kinds[] = {TK_KF_MBARRIER_USE, TK_KF_MBARRIER_COUNT,
                                             TK_KF_MBARRIER_PHASE};
    (void)state;
    assert_kinds(mbarriers, COUNT(mbarriers), kinds, COUNT(kinds), 4);
    assert_faults(mbarriers, COUNT(mbarriers));
}

static void test_proxies(void **state) {
    static const tk_kfinding_kind kind = TK_KF_PROXY_FENCE;
    (void)state;
    assert_kinds(proxies, COUNT(proxies), &kind, 1, 4);
    assert_faults(proxies, COUNT(proxies));
}

static void test_flight(void **state) {
    static const tk_kfinding_kind kind = TK_KF_IN_FLIGHT;
    (void)state;
    assert_kinds(flight, COUNT(flight), &kind, 1, 4);
    assert_faults(flight, COUNT(flight));
}

static void test_unfinished(void **state) {
    static const tk_kfinding_kind kind = TK_KF_UNFINISHED;
    (void)state;
    assert_kinds(unfinished, COUNT(unfinished), &kind, 1, 4);
    assert_faults(unfinished, COUNT(unfinished));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mbarriers),
        cmocka_unit_test(test_proxies),
        cmocka_unit_test(test_flight),
        cmocka_unit_test(test_unfinished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
