/* The emulator finds planted faults of memory, order and control, names them, and finds nothing in
 * their correct twins: the same for every interleaving. */
#include "support/kernel_faults.h"

/* ---- races ---- */

#define SPIN(order)                                                                                \
    "%seen = while (%v = i32(0)) {\n%got = load." order                                            \
    ".gpu %flag : i32\n%again = icmp.eq %got, i32(0) : i1\ncondition %again, %got\n} do (%w) "     \
    "{\nyield %w\n}\n"
/* Block 0 tells block 1, by the first thread of each, that the data is there. */
#define MESSAGE(before, store, load, after, mark)                                                  \
    FLAG FIRST "%sends = icmp.eq %block, i32(0) : i1\nif %first {\nif %sends {\nstore %y, "        \
               "f32(1)\n" before "store." store ".gpu %flag, i32(1)\n} else {\n" SPIN(load) after  \
        "%data = load %y : f32 " mark "\n}\n}"

static const fault races[] = {
    {"all write one place", TK_KF_RACE_SHARED, 1, 1, 64, TILE "store %b, f32(1) #!",
     TILE FIRST "if %first {\nstore %b, f32(1)\n}"},
    {"no barrier before a read", TK_KF_RACE_SHARED, 1, 1, 64,
     TILE "store %c, f32(1)\n%w = load %e : f32 #!",
     TILE "store %c, f32(1)\nbarrier\n%w = load %e : f32"},
    {"no barrier before the next write", TK_KF_RACE_SHARED, 1, 1, 64,
     TILE "store %c, f32(1)\nbarrier\n%w = load %e : f32\nstore %c, %w #!",
     TILE "store %c, f32(1)\nbarrier\n%w = load %e : f32\nbarrier\nstore %c, %w"},
    {"a shuffle is no barrier", TK_KF_RACE_SHARED, 1, 1, 32,
     TILE "store %c, f32(1)\n%z = shuffle.butterfly %t, i32(1) : i32\n%u = offset %b, %z : "
          "ptr<f32, shared>\n%w = load %u : f32 #!",
     TILE "store %c, f32(1)\n%z = shuffle.butterfly %t, i32(1) : i32\nwarp_barrier\n%u = offset "
          "%b, %z : ptr<f32, shared>\n%w = load %u : f32"},
    {"one side of a named barrier", TK_KF_RACE_SHARED, 1, 1, 64,
     TILE LOW
     "if %low {\nbarrier_arrive [id = 1, threads = 64]\nstore %c, f32(1)\n} else {\nbarrier "
     "[id = 1, threads = 64]\n%w = load %e : f32 #!\n}",
     TILE LOW
     "if %low {\nstore %c, f32(1)\nbarrier_arrive [id = 1, threads = 64]\n} else {\nbarrier "
     "[id = 1, threads = 64]\n%w = load %e : f32\n}"},
    {"a peer's memory without the cluster's barrier", TK_KF_RACE_SHARED, 2, 2, 64,
     TILE
     "%rank = special.cluster_rank : i32\n%next = xor %rank, i32(1) : i32\n%far = pointer_cast "
     "%c : ptr<f32, cluster>\n%there = peer %far, %next : ptr<f32, cluster>\nstore %c, f32(1)\n"
     "barrier\n%w = load %there : f32 #!\ncluster_arrive\ncluster_wait",
     TILE
     "%rank = special.cluster_rank : i32\n%next = xor %rank, i32(1) : i32\n%far = pointer_cast "
     "%c : ptr<f32, cluster>\n%there = peer %far, %next : ptr<f32, cluster>\nstore %c, f32(1)\n"
     "cluster_arrive\ncluster_wait\n%w = load %there : f32\ncluster_arrive\ncluster_wait"},
    {"three warps, two of them in order", TK_KF_RACE_SHARED, 1, 1, 96,
     TILE LOW
     "%mid = icmp.slt %t, i32(64) : i1\n%z = and %t, i32(31) : i32\n%one = icmp.eq %z, i32(0) : "
     "i1\nif %low {\nif %one {\nstore %b, f32(1)\n}\nbarrier_arrive [id = 1, threads = 64]\n} "
     "else {\nif %mid {\nbarrier [id = 1, threads = 64]\nif %one {\n%w = load %b : f32\nstore "
     "%b, %w\n}\n} else {\nif %one {\nstore %b, f32(3) #!\n}\n}\n}",
     TILE LOW
     "%mid = icmp.slt %t, i32(64) : i1\n%z = and %t, i32(31) : i32\n%one = icmp.eq %z, i32(0) : "
     "i1\nif %low {\nif %one {\nstore %b, f32(1)\n}\nbarrier_arrive [id = 1, threads = 64]\n} "
     "else {\nif %mid {\nbarrier [id = 1, threads = 64]\nif %one {\n%w = load %b : f32\nstore "
     "%b, %w\n}\nbarrier_arrive [id = 2, threads = 64]\n} else {\nbarrier [id = 2, threads = "
     "64]\nif %one {\nstore %b, f32(3)\n}\n}\n}"},
    {"all write one element", TK_KF_RACE_GLOBAL, 1, 1, 64, "store %y, f32(1) #!",
     FIRST "if %first {\nstore %y, f32(1)\n}"},
    {"blocks write the same elements", TK_KF_RACE_GLOBAL, 2, 1, 64, POINT "store %q, f32(1) #!",
     "%i = block_index.x : i32\n%j = mul %i, i32(64) : i32\n%k = add %j, %t : i32\n%q = offset %y, "
     "%k : ptr<f32, global>\nstore %q, f32(1)"},
    {"no barrier before a neighbour's element", TK_KF_RACE_GLOBAL, 1, 1, 64,
     POINT
     "store %q, f32(1)\n%o = sub i32(63), %t : i32\n%r = offset %y, %o : ptr<f32, global>\n%w "
     "= load %r : f32 #!",
     POINT "store %q, f32(1)\nbarrier\n%o = sub i32(63), %t : i32\n%r = offset %y, %o : ptr<f32, "
           "global>\n%w = load %r : f32"},
    {"a plain read beside atomics", TK_KF_RACE_GLOBAL, 1, 1, 64,
     "%w = atomic.add.relaxed.gpu %y, f32(1) : f32\n%r = load %y : f32 #!",
     "%w = atomic.add.relaxed.gpu %y, f32(1) : f32\nbarrier\n%r = load %y : f32"},
    {"atomics of a block from two blocks", TK_KF_RACE_GLOBAL, 2, 1, 32,
     "%w = atomic.add.relaxed.block %y, f32(1) : f32 #!",
     "%w = atomic.add.relaxed.gpu %y, f32(1) : f32"},
    {"a message by relaxed accesses", TK_KF_RACE_GLOBAL, 2, 1, 32,
     MESSAGE("", "relaxed", "relaxed", "", "#!"), MESSAGE("", "release", "acquire", "", "")},
    {"a message with half of its fences", TK_KF_RACE_GLOBAL, 2, 1, 32,
     MESSAGE("fence.acq_rel.gpu\n", "relaxed", "relaxed", "", "#!"),
     MESSAGE("fence.acq_rel.gpu\n", "relaxed", "relaxed", "fence.acq_rel.gpu\n", "")},
    {"a fence of the block between blocks", TK_KF_RACE_GLOBAL, 2, 1, 32,
     MESSAGE("fence.acq_rel.block\n", "relaxed", "acquire", "", "#!"),
     MESSAGE("fence.acq_rel.gpu\n", "relaxed", "acquire", "", "")},
};

/* ---- reads of nothing ---- */

static const fault unset[] = {
    {"never written", TK_KF_UNSET_SHARED, 1, 1, 64, TILE "%w = load %c : f32 #!",
     TILE "store %c, f32(1)\n%w = load %c : f32"},
    {"half of it written", TK_KF_UNSET_SHARED, 1, 1, 64,
     TILE LOW "if %low {\nstore %c, f32(1)\n}\nbarrier\n%w = load %e : f32 #!",
     TILE LOW "store %c, f32(1)\nbarrier\n%w = load %e : f32"},
    {"an atomic sum from nothing", TK_KF_UNSET_SHARED, 1, 1, 64,
     TILE "%w = atomic.add.relaxed.block %b, f32(1) : f32 #!",
     TILE FIRST "if %first {\nstore %b, f32(0)\n}\nbarrier\n%w = atomic.add.relaxed.block %b, "
                "f32(1) : f32"},
    {"a vector with an unset half", TK_KF_UNSET_SHARED, 1, 1, 1,
     TILE "store %b, f32(1)\n%w = load %b : f32x2 #!",
     TILE
     "store %b, f32(1)\n%u = offset %b, i32(1) : ptr<f32, shared>\nstore %u, f32(1)\n%w = load "
     "%b : f32x2"},
    {"a bulk copy of nothing", TK_KF_UNSET_SHARED, 1, 1, 1,
     TILE "bulk_store %y, %b, i32(16) #!\nbulk_commit\nbulk_wait",
     TILE
     "store %b, f32(1)\n%u = splat f32(1) : f32x4\nstore %b, %u\nproxy_fence.async\nbulk_store "
     "%y, %b, i32(16)\nbulk_commit\nbulk_wait"},
    {"an element never set", TK_KF_UNSET_REGISTER, 1, 1, 64,
     "%r = registers : regs<f32, \"4:1\">\nset %r, f32(1) [index = 1]\n%w = get %r [index = 2] : "
     "f32 "
     "#!",
     "%r = registers : regs<f32, \"4:1\">\nset %r, f32(1) [index = 2]\n%w = get %r [index = 2] : "
     "f32"},
    {"set by some lanes", TK_KF_UNSET_REGISTER, 1, 1, 32,
     HALF
     "%r = registers : regs<f32, \"4:1\">\nif %half {\nset %r, f32(1)\n}\n%w = get %r : f32 #!",
     HALF "%r = registers : regs<f32, \"4:1\">\nif %half {\nset %r, f32(1)\n} else {\nset %r, "
          "f32(2)\n}\n%w = get %r : f32"},
    {"half of a vector set", TK_KF_UNSET_REGISTER, 1, 1, 32,
     "%r = registers : regs<f32, \"4:1\">\nset %r, f32(1)\n%w = get %r : f32x2 #!",
     "%r = registers : regs<f32, \"4:1\">\n%v = splat f32(1) : f32x2\nset %r, %v\n%w = get %r : "
     "f32x2"},
    {"set in the first turn alone", TK_KF_UNSET_REGISTER, 1, 1, 32,
     "for %i = i32(0) to i32(2) step i32(1) {\n%r = registers : regs<f32, \"4:1\">\n%z = icmp.eq "
     "%i, "
     "i32(0) : i1\nif %z {\nset %r, f32(1)\n}\n%w = get %r : f32 #!\nyield\n}",
     "%r = registers : regs<f32, \"4:1\">\nfor %i = i32(0) to i32(2) step i32(1) {\n%z = icmp.eq "
     "%i, "
     "i32(0) : i1\nif %z {\nset %r, f32(1)\n}\n%w = get %r : f32\nyield\n}"},
};

/* ---- where memory is not ---- */

static const fault places[] = {
    {"behind a buffer", TK_KF_OUT_OF_BOUNDS, 1, 1, 64,
     "%p = offset %x, i32(256) : ptr<f32, global>\n%w = load %p : f32 #!",
     "%p = offset %x, i32(255) : ptr<f32, global>\n%w = load %p : f32"},
    {"before a buffer", TK_KF_OUT_OF_BOUNDS, 1, 1, 64,
     "%m = sub i32(-1), %t : i32\n%p = offset %x, %m : ptr<f32, global>\n%w = load %p : f32 #!",
     "%m = sub i32(63), %t : i32\n%p = offset %x, %m : ptr<f32, global>\n%w = load %p : f32"},
    {"behind shared memory", TK_KF_OUT_OF_BOUNDS, 1, 1, 64,
     TILE "%d = offset %c, i32(256) : ptr<f32, shared>\nstore %d, f32(1) #!",
     TILE "%d = offset %c, i32(192) : ptr<f32, shared>\nstore %d, f32(1)"},
    {"a vector over the end", TK_KF_OUT_OF_BOUNDS, 1, 1, 1,
     "%p = offset %y, i32(256) : ptr<f32, global>\n%v = splat f32(1) : f32x4\nstore %p, %v #!",
     "%p = offset %y, i32(252) : ptr<f32, global>\n%v = splat f32(1) : f32x4\nstore %p, %v"},
    {"an atomic behind a buffer", TK_KF_OUT_OF_BOUNDS, 1, 1, 1,
     "%p = offset %y, i32(300) : ptr<f32, global>\n%w = atomic.add.relaxed.gpu %p, f32(1) : f32 #!",
     "%p = offset %y, i32(30) : ptr<f32, global>\n%w = atomic.add.relaxed.gpu %p, f32(1) : f32"},
    {"a block that the cluster has not", TK_KF_OUT_OF_BOUNDS, 2, 2, 1,
     TILE "%far = pointer_cast %b : ptr<f32, cluster>\n%there = peer %far, i32(2) : ptr<f32, "
          "cluster> #!",
     TILE "%far = pointer_cast %b : ptr<f32, cluster>\n%there = peer %far, i32(1) : ptr<f32, "
          "cluster>"},
    {"a vector at an odd element", TK_KF_MISALIGNED, 1, 1, 64,
     "%p = offset %x, i32(1) : ptr<f32, global>\n%w = load %p : f32x2 #!",
     "%p = offset %x, i32(2) : ptr<f32, global>\n%w = load %p : f32x2"},
    {"a vector at an odd shared element", TK_KF_MISALIGNED, 1, 1, 1,
     TILE "%p = offset %b, i32(2) : ptr<f32, shared>\n%v = splat f32(1) : f32x4\nstore %p, %v #!",
     TILE "%p = offset %b, i32(4) : ptr<f32, shared>\n%v = splat f32(1) : f32x4\nstore %p, %v"},
    {"cp_async between its pieces", TK_KF_MISALIGNED, 1, 1, 1,
     TILE "%p = offset %x, i32(2) : ptr<f32, global>\ncp_async %b, %p [bytes = 16] #!\n"
          "cp_async_commit\ncp_async_wait",
     TILE "%p = offset %x, i32(4) : ptr<f32, global>\ncp_async %b, %p [bytes = "
          "16]\ncp_async_commit\ncp_async_wait"},
    {"a bulk copy at 8 bytes", TK_KF_MISALIGNED, 1, 1, 32,
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(0)\n%p = offset %x, i32(2) : ptr<f32, "
                    "global>\nbulk_load %b, %p, i32(64), %bar #!\n}\nmbarrier_wait %bar, i32(0)",
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(64)\n%p = offset %x, i32(4) : ptr<f32, "
                    "global>\nbulk_load %b, %p, i32(64), %bar\n}\nmbarrier_wait %bar, i32(0)"},
    {"a box at 64 bytes", TK_KF_MISALIGNED, 1, 1, 32,
     TILE INIT(
         "1") "if %first {\nmbarrier_expect %bar, i32(0)\n%u = offset %b, i32(16) : ptr<f32, "
              "shared>\ntma_load %u, %map, %bar, i32(0), i32(0) #!\n}\nmbarrier_wait %bar, i32(0)",
     TILE INIT(
         "1") "if %first {\nmbarrier_expect %bar, i32(512)\n%u = offset %b, i32(32) : ptr<f32, "
              "shared>\ntma_load %u, %map, %bar, i32(0), i32(0)\n}\nmbarrier_wait %bar, i32(0)"},
    {"a box at an odd coordinate", TK_KF_MISALIGNED, 1, 1, 32,
     TILE INIT(
         "1") "if %first {\nmbarrier_expect %bar, i32(0)\ntma_load %b, %map, %bar, i32(2), i32(1) "
              "#!\n}\nmbarrier_wait %bar, i32(0)",
     TILE INIT("1") "if %first {\nmbarrier_expect %bar, i32(512)\ntma_load %b, %map, %bar, i32(4), "
                    "i32(1)\n}\nmbarrier_wait %bar, i32(0)"},
    {"a store to what is only read", TK_KF_EFFECT, 1, 1, 64, POINT "store %p, f32(1) #!",
     POINT "store %q, f32(1)"},
    {"an atomic on what is only read", TK_KF_EFFECT, 1, 1, 64,
     "%w = atomic.add.relaxed.gpu %x, f32(1) : f32 #!",
     "%w = atomic.add.relaxed.gpu %y, f32(1) : f32"},
    {"a bulk copy to what is only read", TK_KF_EFFECT, 1, 1, 1,
     TILE
     "%v = splat f32(1) : f32x4\nstore %b, %v\nproxy_fence.async\nbulk_store %x, %b, i32(16) #!\n"
     "bulk_commit\nbulk_wait",
     TILE "%v = splat f32(1) : f32x4\nstore %b, %v\nproxy_fence.async\nbulk_store %y, %b, "
          "i32(16)\nbulk_commit\nbulk_wait"},
    {"a box to what is only read", TK_KF_EFFECT, 1, 1, 128,
     TILE "store %c, f32(1)\nproxy_fence.async\nbarrier\n" FIRST "if %first {\ntma_store %map, %b, "
          "i32(0), i32(0) #!\nbulk_commit\nbulk_wait\n}",
     TILE "store %c, f32(1)\nproxy_fence.async\nbarrier\n" FIRST "if %first {\ntma_store %out, %b, "
          "i32(0), i32(0)\nbulk_commit\nbulk_wait\n}"},
};

/* ---- control ---- */

#define TURNS(count) "for %i = i32(0) to " count " step i32(1) {\n"

static const fault control[] = {
    {"a barrier for half a warp", TK_KF_DIVERGENT, 1, 1, 64, HALF "if %half {\nbarrier #!\n}",
     HALF "if %half {\nyield\n}\nbarrier"},
    {"a shuffle by half a warp", TK_KF_DIVERGENT, 1, 1, 64,
     HALF "if %half {\n%w = shuffle.butterfly %t, i32(1) : i32 #!\n}",
     HALF "if %half {\n%w = shuffle.butterfly %t, i32(1), mask=i32(65535) : i32\n}"},
    {"a vote in turns that differ", TK_KF_DIVERGENT, 1, 1, 32,
     HALF TURNS("%t") "%w = vote.any %half : i1 #!\nyield\n}",
     HALF TURNS("i32(3)") "%w = vote.any %half : i1\nyield\n}"},
    {"half a warp arrives at the cluster's barrier", TK_KF_DIVERGENT, 2, 2, 32,
     HALF "if %half {\ncluster_arrive #!\n}\ncluster_wait",
     HALF "if %half {\nyield\n}\ncluster_arrive\ncluster_wait"},
    {"a barrier for one of two warps", TK_KF_MISSING_BARRIER, 1, 1, 64,
     LOW "if %low {\nbarrier #!\n}", LOW "barrier\nif %low {\nbarrier [id = 1, threads = 32]\n}"},
    {"one turn more", TK_KF_MISSING_BARRIER, 1, 1, 64,
     "%w = udiv %t, i32(32) : i32\n%k = add %w, i32(1) : i32\n" TURNS("%k") "barrier #!\nyield\n}",
     "%w = udiv %t, i32(32) : i32\n%k = add %w, i32(1) : i32\n" TURNS(
         "i32(2)") "barrier\nyield\n}"},
    {"a named barrier for more than come", TK_KF_MISSING_BARRIER, 1, 1, 96,
     "%w = icmp.slt %t, i32(64) : i1\nif %w {\nbarrier [id = 3, threads = 96] #!\n}",
     "%w = icmp.slt %t, i32(64) : i1\nif %w {\nbarrier [id = 3, threads = 64]\n}"},
    {"a block that does not come to the cluster's barrier", TK_KF_MISSING_BARRIER, 2, 2, 32,
     "%rank = special.cluster_rank : i32\n%z = icmp.eq %rank, i32(0) : i1\nif %z "
     "{\ncluster_arrive\ncluster_wait #!\n}",
     "%rank = special.cluster_rank : i32\n%z = icmp.eq %rank, i32(0) : i1\ncluster_arrive\nif %z "
     "{\nyield\n}\ncluster_wait"},
    {"different counts for one barrier", TK_KF_BARRIER_COUNT, 1, 1, 64,
     LOW "if %low {\nbarrier [id = 1, threads = 64]\n} else {\nbarrier [id = 1, threads = 32]\n}",
     LOW "if %low {\nbarrier [id = 1, threads = 32]\n} else {\nbarrier [id = 2, threads = 32]\n}"},
    {"more arrive than a barrier is for", TK_KF_BARRIER_COUNT, 1, 1, 96,
     "barrier_arrive [id = 1, threads = 64] #!",
     "%w = icmp.slt %t, i32(64) : i1\nif %w {\nbarrier_arrive [id = 1, threads = 64]\n}"},
    {"twice to the cluster's barrier", TK_KF_BARRIER_COUNT, 2, 2, 32,
     "cluster_arrive\ncluster_arrive #!\ncluster_wait\ncluster_wait",
     "cluster_arrive\ncluster_wait\ncluster_arrive\ncluster_wait"},
    {"lanes that never come", TK_KF_DEADLOCK, 1, 1, 64, HALF "if %half {\nwarp_barrier #!\n}",
     HALF "if %half {\nwarp_barrier mask=i32(65535)\n}"},
    {"each warp at another barrier", TK_KF_DEADLOCK, 1, 1, 64,
     LOW
     "if %low {\nbarrier [id = 1, threads = 64] #!\n} else {\nbarrier [id = 2, threads = 64]\n}",
     LOW "if %low {\nbarrier [id = 1, threads = 64]\n} else {\nbarrier [id = 1, threads = 64]\n}"},
    {"a flag that nobody sets", TK_KF_DEADLOCK, 1, 1, 32,
     FLAG FIRST
     "if %first {\n%seen = while (%v = i32(0)) {\n%got = load.acquire.gpu %flag : i32 #!\n"
     "%again = icmp.eq %got, i32(0) : i1\ncondition %again, %got\n} do (%w) {\nyield %w\n}\n}",
     FLAG FIRST "if %first {\nstore.release.gpu %flag, i32(1)\n" SPIN("acquire") "}"},
    {"a flag that is nowhere", TK_KF_DEADLOCK, 1, 1, 32,
     FLAG FIRST
     "%lost = offset %flag, i32(4096) : ptr<i32, global>\nif %first {\n%seen = while (%v = "
     "i32(0)) {\n%got = load.acquire.gpu %lost : i32 #!\n%again = icmp.eq %got, i32(0) : "
     "i1\ncondition %again, %got\n} do (%w) {\nyield %w\n}\n}",
     FLAG FIRST "if %first {\nstore.release.gpu %flag, i32(1)\n" SPIN("acquire") "}"},
    {"an mbarrier where nobody arrives", TK_KF_DEADLOCK, 1, 1, 64,
     INIT("64") "mbarrier_wait %bar, i32(0) #!",
     INIT("64") "mbarrier_arrive %bar\nmbarrier_wait %bar, i32(0)"},
    {"each waits for the other", TK_KF_DEADLOCK, 1, 1, 64,
     LOW INIT("32") "if %low {\nmbarrier_wait %bar2, i32(0) #!\nmbarrier_arrive %bar\n} else "
                    "{\nmbarrier_wait %bar, i32(0)\nmbarrier_arrive %bar2\n}",
     LOW INIT("32") "if %low {\nmbarrier_arrive %bar\nmbarrier_wait %bar2, i32(0)\n} else "
                    "{\nmbarrier_wait %bar, i32(0)\nmbarrier_arrive %bar2\n}"},
    {"a lane outside the mask", TK_KF_BAD_LANE, 1, 1, 64,
     "%w = shuffle.up %t, i32(1), mask=i32(255) : i32 #!", "%w = shuffle.up %t, i32(1) : i32"},
    {"a divisor that is the thread", TK_KF_DIVISION, 1, 1, 64, "%w = sdiv %n, %t : i32 #!",
     "%d = add %t, i32(1) : i32\n%w = sdiv %n, %d : i32"},
    {"a remainder by nothing", TK_KF_DIVISION, 1, 1, 64,
     "%d = sub %n, i32(64) : i32\n%w = urem %t, %d : i32 #!",
     "%d = sub %n, i32(32) : i32\n%w = urem %t, %d : i32"},
    {"a quotient without sign", TK_KF_DIVISION, 1, 1, 64,
     "%d = ushr %t, i32(5) : i32\n%w = udiv %n, %d : i32 #!",
     "%d = or %t, i32(1) : i32\n%w = udiv %n, %d : i32"},
    {"one element of a vector", TK_KF_DIVISION, 1, 1, 1,
     "%d = vector i32(1), %t : i32x2\n%v = splat %n : i32x2\n%w = srem %v, %d : i32x2 #!",
     "%d = vector i32(1), %n : i32x2\n%v = splat %n : i32x2\n%w = srem %v, %d : i32x2"},
    {"an assumption", TK_KF_ASSUMPTION, 1, 1, 64, "%w = assume %t [divisor = 2] : i32 #!",
     "%d = shl %t, i32(1) : i32\n%w = assume %d [divisor = 2] : i32"},
    {"an assertion", TK_KF_ASSERTION, 1, 1, 64,
     "%f = icmp.slt %t, i32(63) : i1\nassert %f [message = \"too many\"] #!",
     "%f = icmp.slt %t, i32(64) : i1\nassert %f [message = \"too many\"]"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void test_races(void **state) {
    static const tk_kfinding_kind kinds[] = {TK_KF_RACE_SHARED, TK_KF_RACE_GLOBAL};
    (void)state;
    assert_kinds(races, COUNT(races), kinds, COUNT(kinds), 4);
    assert_faults(races, COUNT(races));
}

static void test_unset(void **state) {
    static const tk_kfinding_kind kinds[] = {TK_KF_UNSET_SHARED, TK_KF_UNSET_REGISTER};
    (void)state;
    assert_kinds(unset, COUNT(unset), kinds, COUNT(kinds), 4);
    assert_faults(unset, COUNT(unset));
}

static void test_places(void **state) {
    static const tk_kfinding_kind kinds[] = {TK_KF_OUT_OF_BOUNDS, TK_KF_MISALIGNED, TK_KF_EFFECT};
    (void)state;
    assert_kinds(places, COUNT(places), kinds, COUNT(kinds), 4);
    assert_faults(places, COUNT(places));
}

static void test_control(void **state) {
    static const tk_kfinding_kind kinds[] = {TK_KF_DIVERGENT, TK_KF_MISSING_BARRIER, TK_KF_DEADLOCK,
                                             TK_KF_DIVISION};
    (void)state;
    assert_kinds(control, COUNT(control), kinds, COUNT(kinds), 4);
    assert_faults(control, COUNT(control));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_unset),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
