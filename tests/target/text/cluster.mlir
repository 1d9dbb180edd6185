module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @cluster(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %n: i32, %m: !llvm.ptr {llvm.align = 64 : i32, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c12 = arith.constant 1 : i32
      %$c14 = arith.constant 0 : i32
      %$c20 = arith.constant 256 : i32
      %$c21 = arith.constant 3 : i32
      %near = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %map = llvm.getelementptr %$shared[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %bar = llvm.getelementptr %$shared[384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %other = arith.xori %rank, %$c12 : i32
      %lead = arith.cmpi eq, %t, %$c14 : i32
      %there = nvvm.mapa %near, %other : !llvm.ptr<3> -> !llvm.ptr<7>
      %gate = llvm.addrspacecast %bar : !llvm.ptr<3> to !llvm.ptr<7>
      %$t0 = llvm.ptrtoint %gate : !llvm.ptr<7> to i32
      %$t1 = llvm.inline_asm "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %$t0, %other : (i32, i32) -> i32
      %signal = llvm.inttoptr %$t1 : i32 to !llvm.ptr<7>
      %policy = llvm.inline_asm "createpolicy.fractional.L2::evict_first.b64 $0, 0f3f800000;", "=l" : () -> i64
      scf.if %lead {
        nvvm.mbarrier.init %bar, %$c12 : !llvm.ptr<3>, i32
        nvvm.fence.mbarrier.init
        %$t2 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
        llvm.inline_asm has_side_effects "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %$t2, %$c20 : (i32, i32) -> ()
      }
      nvvm.cluster.arrive {aligned}
      nvvm.cluster.wait {aligned}
      scf.if %lead {
        %$t3 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
        %$t4 = arith.trunci %$c21 : i32 to i16
        "nvvm.cp.async.bulk.shared.cluster.global"(%$t3, %x, %bar, %$c20, %$t4, %policy) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>}> : (!llvm.ptr<7>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i16, i64) -> ()
        %$t5 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
        %$t6 = arith.trunci %$c21 : i32 to i16
        "nvvm.cp.async.bulk.tensor.shared.cluster.global"(%$t5, %m, %$c14, %n, %bar, %$t6) <{operandSegmentSizes = array<i32: 1, 1, 2, 1, 0, 1, 0, 0>}> : (!llvm.ptr<7>, !llvm.ptr, i32, i32, !llvm.ptr<3>, i16) -> ()
        %$t7 = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr<7>
        nvvm.cp.async.bulk.tensor.shared.cluster.global %$t7, %m, %bar, box[%$c14, %n] l2_cache_hint = %policy : !llvm.ptr<7>, !llvm.ptr
        %$t8 = llvm.ptrtoint %there : !llvm.ptr<7> to i32
        %$t9 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
        %$t10 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
        llvm.inline_asm has_side_effects "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r,~{memory}" %$t8, %$t9, %$c20, %$t10 : (i32, i32, i32, i32) -> ()
      }
      %$t11 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
      llvm.inline_asm has_side_effects "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r,~{memory}" %$t11 : (i32) -> ()
      scf.if %lead {
        %$t12 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
        %$t13 = llvm.inline_asm has_side_effects "mbarrier.arrive.release.cluster.shared::cta.b64 $0, [$1], $2;", "=l,r,r,~{memory}" %$t12, %n : (i32, i32) -> i64
      }
      %$t14 = llvm.ptrtoint %signal : !llvm.ptr<7> to i32
      llvm.inline_asm has_side_effects "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;", "r,r,~{memory}" %$t14, %$c20 : (i32, i32) -> ()
      scf.while : () -> () {
        %$t15 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
        %$t16 = llvm.inline_asm has_side_effects "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$1], $2; selp.u32 $0, 1, 0, p; }", "=r,r,r,~{memory}" %$t15, %$c14 : (i32, i32) -> i32
        %$t17 = arith.constant 0 : i32
        %$t18 = arith.cmpi eq, %$t16, %$t17 : i32
        scf.condition(%$t18)
      } do {
        scf.yield
      }
      %$t19 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
      %$t20 = llvm.inline_asm has_side_effects "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [$1], $2; selp.u32 $0, 1, 0, p; }", "=r,r,r,~{memory}" %$t19, %n : (i32, i32) -> i32
      %$t21 = arith.constant 0 : i32
      %done = arith.cmpi ne, %$t20, %$t21 : i32
      %far = llvm.load %there {alignment = 4 : i64} : !llvm.ptr<7> -> f32
      %$t22 = arith.constant dense<0.0> : vector<4xf32>
      %kept = scf.if %done -> (vector<4xf32>) {
        %$t23 = llvm.inline_asm has_side_effects "ld.global.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;", "=r,=r,=r,=r,l,l,~{memory}" %x, %policy : (!llvm.ptr<1>, i64) -> !llvm.struct<(i32, i32, i32, i32)>
        %$t24 = llvm.extractvalue %$t23[0] : !llvm.struct<(i32, i32, i32, i32)>
        %$t25 = llvm.extractvalue %$t23[1] : !llvm.struct<(i32, i32, i32, i32)>
        %$t26 = llvm.extractvalue %$t23[2] : !llvm.struct<(i32, i32, i32, i32)>
        %$t27 = llvm.extractvalue %$t23[3] : !llvm.struct<(i32, i32, i32, i32)>
        %$t28 = vector.from_elements %$t24, %$t25, %$t26, %$t27 : vector<4xi32>
        %$t29 = vector.bitcast %$t28 : vector<4xi32> to vector<4xf32>
        scf.yield %$t29 : vector<4xf32>
      } else {
        scf.yield %$t22 : vector<4xf32>
      }
      %$t30 = vector.bitcast %kept : vector<4xf32> to vector<4xi32>
      %$t31 = vector.extract %$t30[0] : i32 from vector<4xi32>
      %$t32 = vector.extract %$t30[1] : i32 from vector<4xi32>
      %$t33 = vector.extract %$t30[2] : i32 from vector<4xi32>
      %$t34 = vector.extract %$t30[3] : i32 from vector<4xi32>
      llvm.inline_asm has_side_effects "st.global.L2::cache_hint.v4.b32 [$0], {$1, $2, $3, $4}, $5;", "l,r,r,r,r,l,~{memory}" %y, %$t31, %$t32, %$t33, %$t34, %policy : (!llvm.ptr<1>, i32, i32, i32, i32, i64) -> ()
      %$t35 = llvm.atomicrmw fadd %there, %far syncscope("cluster") monotonic : !llvm.ptr<7>, f32
      %was = scf.if %done -> (f32) {
        %$t36 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
        %$t37 = llvm.inline_asm has_side_effects "atom.acq_rel.gpu.global.add.f32 $0, [$1], $2;", "=f,l,f,~{memory}" %$t36, %$t35 : (i64, f32) -> f32
        scf.yield %$t37 : f32
      } else {
        %$t38 = arith.constant 0.0 : f32
        scf.yield %$t38 : f32
      }
      %four = vector.broadcast %was : f32 to vector<4xf32>
      %$t39 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t40 = vector.extract %four[0] : f32 from vector<4xf32>
      %$t41 = vector.extract %four[1] : f32 from vector<4xf32>
      %$t42 = vector.extract %four[2] : f32 from vector<4xf32>
      %$t43 = vector.extract %four[3] : f32 from vector<4xf32>
      llvm.inline_asm has_side_effects "red.release.gpu.global.add.L2::cache_hint.v4.f32 [$0], {$1, $2, $3, $4}, $5;", "l,f,f,f,f,l,~{memory}" %$t39, %$t40, %$t41, %$t42, %$t43, %policy : (i64, f32, f32, f32, f32, i64) -> ()
      %$t44 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
      %$t45 = llvm.ptrtoint %x : !llvm.ptr<1> to i64
      llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::cache_hint.L2::128B [$0], [$1], 16, $2, $3;", "r,l,r,l,~{memory}" %$t44, %$t45, %n, %policy : (i32, i64, i32, i64) -> ()
      nvvm.cp.async.bulk.global.shared.cta %y, %near, %$c20 l2_cache_hint = %policy : !llvm.ptr<1>, !llvm.ptr<3>
      %$t46 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t47 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
      llvm.inline_asm has_side_effects "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;", "l,r,r,~{memory}" %$t46, %$t47, %$c20 : (i64, i32, i32) -> ()
      nvvm.cp.async.bulk.prefetch %x, %$c20 : !llvm.ptr<1>
      nvvm.cp.async.bulk.tensor.reduce %m, %near, box[%$c14, %n] l2_cache_hint = %policy {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
      nvvm.cp.async.bulk.tensor.prefetch %m, box[%$c14, %n] : !llvm.ptr
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
      %$t48 = llvm.ptrtoint %map : !llvm.ptr<3> to i32
      llvm.inline_asm has_side_effects "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 0, $1;", "r,r,~{memory}" %$t48, %n : (i32, i32) -> ()
      %$t49 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      %$t50 = llvm.ptrtoint %map : !llvm.ptr<3> to i32
      llvm.inline_asm has_side_effects "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;", "l,r,~{memory}" %$t49, %$t50 : (i64, i32) -> ()
      %$t51 = llvm.ptrtoint %y : !llvm.ptr<1> to i64
      llvm.inline_asm has_side_effects "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l,~{memory}" %$t51 : (i64) -> ()
      %lanes = llvm.inline_asm has_side_effects "activemask.b32 $0;", "=r,~{memory}"  : () -> i32
      %$t52 = llvm.inline_asm has_side_effects "{ .reg .pred p; elect.sync _|p, $1; selp.u32 $0, 1, 0, p; }", "=r,r,~{memory}" %lanes : (i32) -> i32
      %one = arith.cmpi ne, %$t52, %$t21 : i32
      %sum = llvm.inline_asm has_side_effects "add.s32 $0, $1, $2;", "=r,r,r,~{memory}" %lanes, %n : (i32, i32) -> i32
      %narrow = arith.bitcast %sum : i32 to f32
      scf.if %one {
        llvm.store %narrow, %y {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }
      cuda.return
    }
  }
}
