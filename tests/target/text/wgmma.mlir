module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    cuda.kernel @product(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c5 = arith.constant 8 : i32
      %$c7 = arith.constant 4096 : i32
      %$c8 = arith.constant 1024 : i32
      %$c18 = arith.constant true
      %$c20 = arith.constant 4 : i32
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %near = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %first = arith.muli %t, %$c5 : i32
      scf.for %i = %first to %$c7 step %$c8 : i32 {
        %from = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
        %to = llvm.getelementptr %near[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
        %row = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
        llvm.store %row, %to {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      nvvm.barrier0
      %$t0 = cute.static : !cute.layout<"(4):(1)">
      %sums = cute.memref.alloca(%$t0) : !cute.memref<f32, rmem, align<16>, "(4):(1)">
      %a = cute.memref.alloca(%$t0) : !cute.memref<i32, rmem, align<16>, "(4):(1)">
      %own = llvm.getelementptr %x[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
      %part = llvm.load %own {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
      %$t1 = vector.extract %part[0] : f16 from vector<8xf16>
      %$t2 = cute.static : !cute.coord<"0">
      %$t3 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t4 = llvm.bitcast %$t3 : i32 to vector<2xf16>
      %$t5 = vector.insert %$t1, %$t4 [0] : f16 into vector<2xf16>
      %$t6 = llvm.bitcast %$t5 : vector<2xf16> to i32
      cute.memref.store(%a, %$t2, %$t6) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t7 = vector.extract %part[1] : f16 from vector<8xf16>
      %$t8 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t9 = llvm.bitcast %$t8 : i32 to vector<2xf16>
      %$t10 = vector.insert %$t7, %$t9 [1] : f16 into vector<2xf16>
      %$t11 = llvm.bitcast %$t10 : vector<2xf16> to i32
      cute.memref.store(%a, %$t2, %$t11) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t12 = vector.extract %part[2] : f16 from vector<8xf16>
      %$t13 = cute.static : !cute.coord<"1">
      %$t14 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t15 = llvm.bitcast %$t14 : i32 to vector<2xf16>
      %$t16 = vector.insert %$t12, %$t15 [0] : f16 into vector<2xf16>
      %$t17 = llvm.bitcast %$t16 : vector<2xf16> to i32
      cute.memref.store(%a, %$t13, %$t17) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t18 = vector.extract %part[3] : f16 from vector<8xf16>
      %$t19 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t20 = llvm.bitcast %$t19 : i32 to vector<2xf16>
      %$t21 = vector.insert %$t18, %$t20 [1] : f16 into vector<2xf16>
      %$t22 = llvm.bitcast %$t21 : vector<2xf16> to i32
      cute.memref.store(%a, %$t13, %$t22) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t23 = vector.extract %part[4] : f16 from vector<8xf16>
      %$t24 = cute.static : !cute.coord<"2">
      %$t25 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t26 = llvm.bitcast %$t25 : i32 to vector<2xf16>
      %$t27 = vector.insert %$t23, %$t26 [0] : f16 into vector<2xf16>
      %$t28 = llvm.bitcast %$t27 : vector<2xf16> to i32
      cute.memref.store(%a, %$t24, %$t28) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t29 = vector.extract %part[5] : f16 from vector<8xf16>
      %$t30 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t31 = llvm.bitcast %$t30 : i32 to vector<2xf16>
      %$t32 = vector.insert %$t29, %$t31 [1] : f16 into vector<2xf16>
      %$t33 = llvm.bitcast %$t32 : vector<2xf16> to i32
      cute.memref.store(%a, %$t24, %$t33) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t34 = vector.extract %part[6] : f16 from vector<8xf16>
      %$t35 = cute.static : !cute.coord<"3">
      %$t36 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t37 = llvm.bitcast %$t36 : i32 to vector<2xf16>
      %$t38 = vector.insert %$t34, %$t37 [0] : f16 into vector<2xf16>
      %$t39 = llvm.bitcast %$t38 : vector<2xf16> to i32
      cute.memref.store(%a, %$t35, %$t39) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t40 = vector.extract %part[7] : f16 from vector<8xf16>
      %$t41 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t42 = llvm.bitcast %$t41 : i32 to vector<2xf16>
      %$t43 = vector.insert %$t40, %$t42 [1] : f16 into vector<2xf16>
      %$t44 = llvm.bitcast %$t43 : vector<2xf16> to i32
      cute.memref.store(%a, %$t35, %$t44) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t45 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
      %$t46 = arith.constant 4 : i32
      %$t47 = arith.shrui %$t45, %$t46 : i32
      %$t48 = arith.constant 16383 : i32
      %$t49 = arith.andi %$t47, %$t48 : i32
      %$t50 = arith.extui %$t49 : i32 to i64
      %$t51 = arith.constant -4611685949707911168 : i64
      %da = arith.ori %$t50, %$t51 : i64
      %$t52 = cute.memref.load(%sums, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t53 = cute.memref.load(%sums, %$t13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t54 = cute.memref.load(%sums, %$t24) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t55 = cute.memref.load(%sums, %$t35) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t56 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t57 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t58 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t59 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t60 = llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;", "=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,~{memory}" %$t52, %$t53, %$t54, %$t55, %$t56, %$t57, %$t58, %$t59 : (f32, f32, f32, f32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t61 = llvm.extractvalue %$t60[0] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t2, %$t61) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t62 = llvm.extractvalue %$t60[1] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t13, %$t62) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t63 = llvm.extractvalue %$t60[2] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t24, %$t63) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t64 = llvm.extractvalue %$t60[3] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t35, %$t64) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t65 = llvm.extractvalue %$t60[4] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t2, %$t65) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t66 = llvm.extractvalue %$t60[5] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t13, %$t66) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t67 = llvm.extractvalue %$t60[6] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t24, %$t67) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t68 = llvm.extractvalue %$t60[7] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t35, %$t68) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t69 = cute.memref.load(%sums, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t70 = cute.memref.load(%sums, %$t13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t71 = cute.memref.load(%sums, %$t24) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t72 = cute.memref.load(%sums, %$t35) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t73 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t74 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t75 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t76 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t77 = arith.constant 0 : i32
      %$t78 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $13, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p, 1, 1, 0; }", "=&f,=&f,=&f,=&f,0,1,2,3,r,r,r,r,l,r,~{memory}" %$t69, %$t70, %$t71, %$t72, %$t73, %$t74, %$t75, %$t76, %da, %$t77 : (f32, f32, f32, f32, i32, i32, i32, i32, i64, i32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t79 = llvm.extractvalue %$t78[0] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t2, %$t79) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t80 = llvm.extractvalue %$t78[1] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t13, %$t80) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t81 = llvm.extractvalue %$t78[2] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t24, %$t81) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t82 = llvm.extractvalue %$t78[3] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t35, %$t82) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      nvvm.wgmma.commit.group.sync.aligned
      %$t83 = cute.memref.load(%sums, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t84 = cute.memref.load(%sums, %$t13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t85 = cute.memref.load(%sums, %$t24) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t86 = cute.memref.load(%sums, %$t35) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t87 = arith.extui %$c18 : i1 to i32
      %$t88 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $10, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, p, 1, 1, 0, 0; }", "=&f,=&f,=&f,=&f,0,1,2,3,l,l,r,~{memory}" %$t83, %$t84, %$t85, %$t86, %da, %da, %$t87 : (f32, f32, f32, f32, i64, i64, i32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t89 = llvm.extractvalue %$t88[0] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t2, %$t89) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t90 = llvm.extractvalue %$t88[1] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t13, %$t90) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t91 = llvm.extractvalue %$t88[2] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t24, %$t91) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t92 = llvm.extractvalue %$t88[3] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%sums, %$t35, %$t92) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      nvvm.wgmma.commit.group.sync.aligned
      %$t93 = cute.memref.load(%sums, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t94 = cute.memref.load(%sums, %$t13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t95 = cute.memref.load(%sums, %$t24) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t96 = cute.memref.load(%sums, %$t35) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t97 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t98 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t99 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t100 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t101 = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 1;", "=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,~{memory}" %$t93, %$t94, %$t95, %$t96, %$t97, %$t98, %$t99, %$t100 : (f32, f32, f32, f32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t102 = llvm.extractvalue %$t101[0] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t2, %$t102) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t103 = llvm.extractvalue %$t101[1] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t13, %$t103) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t104 = llvm.extractvalue %$t101[2] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t24, %$t104) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t105 = llvm.extractvalue %$t101[3] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t35, %$t105) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t106 = llvm.extractvalue %$t101[4] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t2, %$t106) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t107 = llvm.extractvalue %$t101[5] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t13, %$t107) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t108 = llvm.extractvalue %$t101[6] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t24, %$t108) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t109 = llvm.extractvalue %$t101[7] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t35, %$t109) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t110 = vector.extract %part[0] : f16 from vector<8xf16>
      %$t111 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t112 = llvm.bitcast %$t111 : i32 to vector<2xf16>
      %$t113 = vector.insert %$t110, %$t112 [0] : f16 into vector<2xf16>
      %$t114 = llvm.bitcast %$t113 : vector<2xf16> to i32
      cute.memref.store(%a, %$t2, %$t114) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t115 = vector.extract %part[1] : f16 from vector<8xf16>
      %$t116 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t117 = llvm.bitcast %$t116 : i32 to vector<2xf16>
      %$t118 = vector.insert %$t115, %$t117 [1] : f16 into vector<2xf16>
      %$t119 = llvm.bitcast %$t118 : vector<2xf16> to i32
      cute.memref.store(%a, %$t2, %$t119) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t120 = vector.extract %part[2] : f16 from vector<8xf16>
      %$t121 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t122 = llvm.bitcast %$t121 : i32 to vector<2xf16>
      %$t123 = vector.insert %$t120, %$t122 [0] : f16 into vector<2xf16>
      %$t124 = llvm.bitcast %$t123 : vector<2xf16> to i32
      cute.memref.store(%a, %$t13, %$t124) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t125 = vector.extract %part[3] : f16 from vector<8xf16>
      %$t126 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t127 = llvm.bitcast %$t126 : i32 to vector<2xf16>
      %$t128 = vector.insert %$t125, %$t127 [1] : f16 into vector<2xf16>
      %$t129 = llvm.bitcast %$t128 : vector<2xf16> to i32
      cute.memref.store(%a, %$t13, %$t129) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t130 = vector.extract %part[4] : f16 from vector<8xf16>
      %$t131 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t132 = llvm.bitcast %$t131 : i32 to vector<2xf16>
      %$t133 = vector.insert %$t130, %$t132 [0] : f16 into vector<2xf16>
      %$t134 = llvm.bitcast %$t133 : vector<2xf16> to i32
      cute.memref.store(%a, %$t24, %$t134) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t135 = vector.extract %part[5] : f16 from vector<8xf16>
      %$t136 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t137 = llvm.bitcast %$t136 : i32 to vector<2xf16>
      %$t138 = vector.insert %$t135, %$t137 [1] : f16 into vector<2xf16>
      %$t139 = llvm.bitcast %$t138 : vector<2xf16> to i32
      cute.memref.store(%a, %$t24, %$t139) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t140 = vector.extract %part[6] : f16 from vector<8xf16>
      %$t141 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t142 = llvm.bitcast %$t141 : i32 to vector<2xf16>
      %$t143 = vector.insert %$t140, %$t142 [0] : f16 into vector<2xf16>
      %$t144 = llvm.bitcast %$t143 : vector<2xf16> to i32
      cute.memref.store(%a, %$t35, %$t144) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t145 = vector.extract %part[7] : f16 from vector<8xf16>
      %$t146 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t147 = llvm.bitcast %$t146 : i32 to vector<2xf16>
      %$t148 = vector.insert %$t145, %$t147 [1] : f16 into vector<2xf16>
      %$t149 = llvm.bitcast %$t148 : vector<2xf16> to i32
      cute.memref.store(%a, %$t35, %$t149) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t150 = cute.memref.load(%sums, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t151 = cute.memref.load(%sums, %$t13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t152 = cute.memref.load(%sums, %$t24) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t153 = cute.memref.load(%sums, %$t35) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t154 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t155 = cute.memref.load(%a, %$t13) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t156 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t157 = cute.memref.load(%a, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t158 = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,~{memory}" %$t150, %$t151, %$t152, %$t153, %$t154, %$t155, %$t156, %$t157 : (f32, f32, f32, f32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t159 = llvm.extractvalue %$t158[0] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t2, %$t159) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t160 = llvm.extractvalue %$t158[1] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t13, %$t160) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t161 = llvm.extractvalue %$t158[2] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t24, %$t161) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t162 = llvm.extractvalue %$t158[3] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%sums, %$t35, %$t162) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t163 = llvm.extractvalue %$t158[4] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t2, %$t163) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t164 = llvm.extractvalue %$t158[5] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t13, %$t164) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t165 = llvm.extractvalue %$t158[6] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t24, %$t165) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t166 = llvm.extractvalue %$t158[7] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      cute.memref.store(%a, %$t35, %$t166) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t167 = cute.memref.load(%sums, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t168 = cute.memref.load(%sums, %$t13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t169 = cute.memref.load(%sums, %$t24) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t170 = cute.memref.load(%sums, %$t35) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %all = vector.from_elements %$t167, %$t168, %$t169, %$t170 : vector<4xf32>
      %four = arith.muli %t, %$c20 : i32
      %out = llvm.getelementptr %y[%four] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %all, %out {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      cuda.return
    }
  }
}
