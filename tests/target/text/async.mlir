module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @async(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %n: i32, %m: !llvm.ptr {llvm.align = 64 : i32, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c9 = arith.constant 0 : i32
      %$c11 = arith.constant 128 : i32
      %$c12 = arith.constant 256 : i32
      %near = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %bar = llvm.getelementptr %$shared[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %lead = arith.cmpi eq, %t, %$c9 : i32
      scf.if %lead {
        nvvm.mbarrier.init %bar, %$c11 : !llvm.ptr<3>, i32
        nvvm.fence.mbarrier.init
      }
      nvvm.barrier0
      nvvm.cp.async.shared.global %near, %x, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
      scf.if %lead {
        nvvm.cp.async.shared.global %near, %x, 16, cache = cg, %n : !llvm.ptr<3>, !llvm.ptr<1>, i32
      }
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 1
      nvvm.cp.async.mbarrier.arrive %bar {noinc = true} : !llvm.ptr<3>
      %$t0 = nvvm.mbarrier.arrive %bar : !llvm.ptr<3> -> i64
      scf.if %lead {
        nvvm.mbarrier.arrive.expect_tx %bar, %$c12 : !llvm.ptr<3>, i32
      }
      %$t1 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.cp.async.bulk.tensor.shared.cluster.global %$t1, %m, %bar, box[%t, %t] : !llvm.ptr<7>, !llvm.ptr
      %$t2 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.cp.async.bulk.shared.cluster.global %$t2, %x, %bar, %$c12 : !llvm.ptr<7>, !llvm.ptr<1>
      %$t3 = arith.constant 10000000 : i32
      nvvm.mbarrier.try_wait.parity %bar, %$c9, %$t3 : !llvm.ptr<3>, i32, i32
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      nvvm.cp.async.bulk.global.shared.cta %y, %near, %$c12 : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.tensor.global.shared.cta %m, %near, box[%t, %t] : !llvm.ptr, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0 {read}
      llvm.fence syncscope("device") acq_rel
      %$t4 = llvm.atomicrmw add %y, %n syncscope("device") monotonic : !llvm.ptr<1>, i32
      %$t5 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t6 = llvm.inline_asm has_side_effects "atom.acq_rel.gpu.global.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r,~{memory}" %$t5, %$t4, %n : (i64, i32, i32) -> i32
      %$t7 = llvm.atomicrmw max %y, %$t6 syncscope("device") monotonic : !llvm.ptr<1>, i32
      nvvm.prefetch level = L2, %x : !llvm.ptr<1>
      nvvm.prefetch tensormap, %m : !llvm.ptr
      nvvm.cluster.arrive {aligned}
      nvvm.cluster.wait {aligned}
      nvvm.mbarrier.inval %bar : !llvm.ptr<3>
      nvvm.griddepcontrol wait
      nvvm.griddepcontrol launch_dependents
      cuda.return
    }
  }
}
