module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @cluster(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %n: i32, %m: !llvm.ptr {llvm.align = 64 : i32, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c12 = arith.constant 1 : i32
      %$c14 = arith.constant 0 : i32
      %$c22 = arith.constant 256 : i32
      %$c23 = arith.constant 3 : i32
      %$c24 = arith.constant 0x3F800000 : f32
      %$c25 = arith.constant 7 : i64
      %near = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %map = llvm.getelementptr %$shared[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %bar = llvm.getelementptr %$shared[384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %other = arith.xori %rank, %$c12 : i32
      %lead = arith.cmpi eq, %t, %$c14 : i32
      %there = nvvm.mapa %near, %other : !llvm.ptr<3> -> !llvm.ptr<7>
      %chair = llvm.addrspacecast %map : !llvm.ptr<3> to !llvm.ptr<7>
      %$t0 = llvm.ptrtoint %chair : !llvm.ptr<7> to i32
      %$t1 = llvm.inline_asm "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %$t0, %other : (i32, i32) -> i32
      %seat = llvm.inttoptr %$t1 : i32 to !llvm.ptr<7>
      %gate = llvm.addrspacecast %bar : !llvm.ptr<3> to !llvm.ptr<7>
      %$t2 = llvm.ptrtoint %gate : !llvm.ptr<7> to i32
      %$t3 = llvm.inline_asm "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %$t2, %other : (i32, i32) -> i32
      %signal = llvm.inttoptr %$t3 : i32 to !llvm.ptr<7>
      %policy = llvm.inline_asm "createpolicy.fractional.L2::evict_first.b64 $0, 0f3f800000;", "=l" : () -> i64
      scf.if %lead {
        nvvm.mbarrier.init %bar, %$c12 : !llvm.ptr<3>, i32
        nvvm.fence.mbarrier.init
        %$t4 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
        llvm.inline_asm has_side_effects "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %$t4, %$c22 : (i32, i32) -> ()
      }
      nvvm.cluster.arrive {aligned}
      nvvm.cluster.wait {aligned}
      scf.if %lead {
        %$t5 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
        %$t6 = arith.trunci %$c23 : i32 to i16
        "nvvm.cp.async.bulk.shared.cluster.global"(%$t5, %x, %bar, %$c22, %$t6, %policy) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>}> : (!llvm.ptr<7>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i16, i64) -> ()
        %$t7 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
        %$t8 = arith.trunci %$c23 : i32 to i16
        "nvvm.cp.async.bulk.tensor.shared.cluster.global"(%$t7, %m, %$c14, %n, %bar, %$t8) <{operandSegmentSizes = array<i32: 1, 1, 2, 1, 0, 1, 0, 0>}> : (!llvm.ptr<7>, !llvm.ptr, i32, i32, !llvm.ptr<3>, i16) -> ()
        %$t9 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
        nvvm.cp.async.bulk.tensor.shared.cluster.global %$t9, %m, %bar, box[%$c14, %n] l2_cache_hint = %policy : !llvm.ptr<7>, !llvm.ptr
        %$t10 = llvm.ptrtoint %there : !llvm.ptr<7> to i32
        %$t11 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
        %$t12 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
        llvm.inline_asm has_side_effects "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r,~{memory}" %$t10, %$t11, %$c22, %$t12 : (i32, i32, i32, i32) -> ()
        %$t13 = llvm.ptrtoint %there : !llvm.ptr<7> to i32
        %$t14 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
        llvm.inline_asm has_side_effects "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "r,f,r,~{memory}" %$t13, %$c24, %$t14 : (i32, f32, i32) -> ()
        %$t15 = llvm.ptrtoint %seat : !llvm.ptr<7> to i32
        %$t16 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
        llvm.inline_asm has_side_effects "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [$0], $1, [$2];", "r,l,r,~{memory}" %$t15, %$c25, %$t16 : (i32, i64, i32) -> ()
      }
      %$t17 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
      llvm.inline_asm has_side_effects "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r,~{memory}" %$t17 : (i32) -> ()
      scf.if %lead {
        %$t18 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
        %$t19 = llvm.inline_asm has_side_effects "mbarrier.arrive.release.cluster.shared::cta.b64 $0, [$1], $2;", "=l,r,r,~{memory}" %$t18, %n : (i32, i32) -> i64
      }
      %$t20 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
      llvm.inline_asm has_side_effects "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;", "r,r,~{memory}" %$t20, %$c22 : (i32, i32) -> ()
      scf.while : () -> () {
        %$t21 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
        %$t22 = llvm.inline_asm has_side_effects "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$1], $2; selp.u32 $0, 1, 0, p; }", "=r,r,r,~{memory}" %$t21, %$c14 : (i32, i32) -> i32
        %$t23 = arith.constant 0 : i32
        %$t24 = arith.cmpi eq, %$t22, %$t23 : i32
        scf.condition(%$t24)
      } do {
        scf.yield
      }
      %$t25 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
      %$t26 = llvm.inline_asm has_side_effects "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [$1], $2; selp.u32 $0, 1, 0, p; }", "=r,r,r,~{memory}" %$t25, %n : (i32, i32) -> i32
      %$t27 = arith.constant 0 : i32
      %done = arith.cmpi ne, %$t26, %$t27 : i32
      %far = llvm.load %there {alignment = 4 : i64} : !llvm.ptr<7> -> f32
      %$t28 = arith.constant dense<0.0> : vector<4xf32>
      %kept = scf.if %done -> (vector<4xf32>) {
        %$t29 = llvm.inline_asm has_side_effects "ld.global.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;", "=r,=r,=r,=r,l,l,~{memory}" %x, %policy : (!llvm.ptr<1>, i64) -> !llvm.struct<(i32, i32, i32, i32)>
        %$t30 = llvm.extractvalue %$t29[0] : !llvm.struct<(i32, i32, i32, i32)>
        %$t31 = llvm.extractvalue %$t29[1] : !llvm.struct<(i32, i32, i32, i32)>
        %$t32 = llvm.extractvalue %$t29[2] : !llvm.struct<(i32, i32, i32, i32)>
        %$t33 = llvm.extractvalue %$t29[3] : !llvm.struct<(i32, i32, i32, i32)>
        %$t34 = vector.from_elements %$t30, %$t31, %$t32, %$t33 : vector<4xi32>
        %$t35 = vector.bitcast %$t34 : vector<4xi32> to vector<4xf32>
        scf.yield %$t35 : vector<4xf32>
      } else {
        scf.yield %$t28 : vector<4xf32>
      }
      %$t36 = vector.bitcast %kept : vector<4xf32> to vector<4xi32>
      %$t37 = vector.extract %$t36[0] : i32 from vector<4xi32>
      %$t38 = vector.extract %$t36[1] : i32 from vector<4xi32>
      %$t39 = vector.extract %$t36[2] : i32 from vector<4xi32>
      %$t40 = vector.extract %$t36[3] : i32 from vector<4xi32>
      llvm.inline_asm has_side_effects "st.global.L2::cache_hint.v4.b32 [$0], {$1, $2, $3, $4}, $5;", "l,r,r,r,r,l,~{memory}" %y, %$t37, %$t38, %$t39, %$t40, %policy : (!llvm.ptr<1>, i32, i32, i32, i32, i64) -> ()
      %$t41 = llvm.atomicrmw fadd %there, %far syncscope("cluster") monotonic : !llvm.ptr<7>, f32
      %was = scf.if %done -> (f32) {
        %$t42 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
        %$t43 = llvm.inline_asm has_side_effects "atom.acq_rel.gpu.global.add.f32 $0, [$1], $2;", "=f,l,f,~{memory}" %$t42, %$t41 : (i64, f32) -> f32
        scf.yield %$t43 : f32
      } else {
        %$t44 = arith.constant 0.0 : f32
        scf.yield %$t44 : f32
      }
      %four = vector.broadcast %was : f32 to vector<4xf32>
      %$t45 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t46 = vector.extract %four[0] : f32 from vector<4xf32>
      %$t47 = vector.extract %four[1] : f32 from vector<4xf32>
      %$t48 = vector.extract %four[2] : f32 from vector<4xf32>
      %$t49 = vector.extract %four[3] : f32 from vector<4xf32>
      llvm.inline_asm has_side_effects "red.release.gpu.global.add.L2::cache_hint.v4.f32 [$0], {$1, $2, $3, $4}, $5;", "l,f,f,f,f,l,~{memory}" %$t45, %$t46, %$t47, %$t48, %$t49, %policy : (i64, f32, f32, f32, f32, i64) -> ()
      %$t50 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
      %$t51 = llvm.ptrtoint %x : !llvm.ptr<1> to i64
      llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::cache_hint.L2::128B [$0], [$1], 16, $2, $3;", "r,l,r,l,~{memory}" %$t50, %$t51, %n, %policy : (i32, i64, i32, i64) -> ()
      nvvm.cp.async.bulk.global.shared.cta %y, %near, %$c22 l2_cache_hint = %policy : !llvm.ptr<1>, !llvm.ptr<3>
      %$t52 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t53 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
      llvm.inline_asm has_side_effects "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;", "l,r,r,~{memory}" %$t52, %$t53, %$c22 : (i64, i32, i32) -> ()
      nvvm.cp.async.bulk.prefetch %x, %$c22 : !llvm.ptr<1>
      nvvm.cp.async.bulk.tensor.reduce %m, %near, box[%$c14, %n] l2_cache_hint = %policy {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
      nvvm.cp.async.bulk.tensor.prefetch %m, box[%$c14, %n] : !llvm.ptr
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
      %$t54 = llvm.ptrtoint %map : !llvm.ptr<3> to i32
      llvm.inline_asm has_side_effects "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 0, $1;", "r,r,~{memory}" %$t54, %n : (i32, i32) -> ()
      %$t55 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t56 = llvm.ptrtoint %map : !llvm.ptr<3> to i32
      llvm.inline_asm has_side_effects "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;", "l,r,~{memory}" %$t55, %$t56 : (i64, i32) -> ()
      %$t57 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      llvm.inline_asm has_side_effects "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l,~{memory}" %$t57 : (i64) -> ()
      %lanes = llvm.inline_asm has_side_effects "activemask.b32 $0;", "=r,~{memory}"  : () -> i32
      %$t58 = llvm.inline_asm has_side_effects "{ .reg .pred p; elect.sync _|p, $1; selp.u32 $0, 1, 0, p; }", "=r,r,~{memory}" %lanes : (i32) -> i32
      %one = arith.cmpi ne, %$t58, %$t27 : i32
      %sum = llvm.inline_asm has_side_effects "add.s32 $0, $1, $2;", "=r,r,r,~{memory}" %lanes, %n : (i32, i32) -> i32
      %narrow = arith.bitcast %sum : i32 to f32
      scf.if %one {
        llvm.store %narrow, %y {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }
      cuda.return
    }
  }
}
