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
      %$t1 = cute.static : !cute.layout<"(4):(1)">
      %a = cute.memref.alloca(%$t1) : !cute.memref<i32, rmem, align<16>, "(4):(1)">
      %own = llvm.getelementptr %x[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
      %part = llvm.load %own {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
      %$t2 = vector.extract %part[0] : f16 from vector<8xf16>
      %$t3 = cute.static : !cute.coord<"0">
      %$t4 = cute.memref.load(%a, %$t3) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t5 = llvm.bitcast %$t4 : i32 to vector<2xf16>
      %$t6 = vector.insert %$t2, %$t5 [0] : f16 into vector<2xf16>
      %$t7 = llvm.bitcast %$t6 : vector<2xf16> to i32
      %$t8 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t8, %$t7) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t9 = vector.extract %part[1] : f16 from vector<8xf16>
      %$t10 = cute.static : !cute.coord<"0">
      %$t11 = cute.memref.load(%a, %$t10) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t12 = llvm.bitcast %$t11 : i32 to vector<2xf16>
      %$t13 = vector.insert %$t9, %$t12 [1] : f16 into vector<2xf16>
      %$t14 = llvm.bitcast %$t13 : vector<2xf16> to i32
      %$t15 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t15, %$t14) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t16 = vector.extract %part[2] : f16 from vector<8xf16>
      %$t17 = cute.static : !cute.coord<"1">
      %$t18 = cute.memref.load(%a, %$t17) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t19 = llvm.bitcast %$t18 : i32 to vector<2xf16>
      %$t20 = vector.insert %$t16, %$t19 [0] : f16 into vector<2xf16>
      %$t21 = llvm.bitcast %$t20 : vector<2xf16> to i32
      %$t22 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t22, %$t21) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t23 = vector.extract %part[3] : f16 from vector<8xf16>
      %$t24 = cute.static : !cute.coord<"1">
      %$t25 = cute.memref.load(%a, %$t24) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t26 = llvm.bitcast %$t25 : i32 to vector<2xf16>
      %$t27 = vector.insert %$t23, %$t26 [1] : f16 into vector<2xf16>
      %$t28 = llvm.bitcast %$t27 : vector<2xf16> to i32
      %$t29 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t29, %$t28) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t30 = vector.extract %part[4] : f16 from vector<8xf16>
      %$t31 = cute.static : !cute.coord<"2">
      %$t32 = cute.memref.load(%a, %$t31) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t33 = llvm.bitcast %$t32 : i32 to vector<2xf16>
      %$t34 = vector.insert %$t30, %$t33 [0] : f16 into vector<2xf16>
      %$t35 = llvm.bitcast %$t34 : vector<2xf16> to i32
      %$t36 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t36, %$t35) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t37 = vector.extract %part[5] : f16 from vector<8xf16>
      %$t38 = cute.static : !cute.coord<"2">
      %$t39 = cute.memref.load(%a, %$t38) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t40 = llvm.bitcast %$t39 : i32 to vector<2xf16>
      %$t41 = vector.insert %$t37, %$t40 [1] : f16 into vector<2xf16>
      %$t42 = llvm.bitcast %$t41 : vector<2xf16> to i32
      %$t43 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t43, %$t42) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t44 = vector.extract %part[6] : f16 from vector<8xf16>
      %$t45 = cute.static : !cute.coord<"3">
      %$t46 = cute.memref.load(%a, %$t45) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t47 = llvm.bitcast %$t46 : i32 to vector<2xf16>
      %$t48 = vector.insert %$t44, %$t47 [0] : f16 into vector<2xf16>
      %$t49 = llvm.bitcast %$t48 : vector<2xf16> to i32
      %$t50 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t50, %$t49) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t51 = vector.extract %part[7] : f16 from vector<8xf16>
      %$t52 = cute.static : !cute.coord<"3">
      %$t53 = cute.memref.load(%a, %$t52) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t54 = llvm.bitcast %$t53 : i32 to vector<2xf16>
      %$t55 = vector.insert %$t51, %$t54 [1] : f16 into vector<2xf16>
      %$t56 = llvm.bitcast %$t55 : vector<2xf16> to i32
      %$t57 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t57, %$t56) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t58 = llvm.ptrtoint %near : !llvm.ptr<3> to i32
      %$t59 = arith.constant 4 : i32
      %$t60 = arith.shrui %$t58, %$t59 : i32
      %$t61 = arith.constant 16383 : i32
      %$t62 = arith.andi %$t60, %$t61 : i32
      %$t63 = arith.extui %$t62 : i32 to i64
      %$t64 = arith.constant -4611685949707911168 : i64
      %da = arith.ori %$t63, %$t64 : i64
      %$t65 = cute.static : !cute.coord<"0">
      %$t66 = cute.memref.load(%sums, %$t65) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t67 = cute.static : !cute.coord<"1">
      %$t68 = cute.memref.load(%sums, %$t67) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t69 = cute.static : !cute.coord<"2">
      %$t70 = cute.memref.load(%sums, %$t69) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t71 = cute.static : !cute.coord<"3">
      %$t72 = cute.memref.load(%sums, %$t71) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t73 = cute.static : !cute.coord<"0">
      %$t74 = cute.memref.load(%a, %$t73) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t75 = cute.static : !cute.coord<"1">
      %$t76 = cute.memref.load(%a, %$t75) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t77 = cute.static : !cute.coord<"2">
      %$t78 = cute.memref.load(%a, %$t77) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t79 = cute.static : !cute.coord<"3">
      %$t80 = cute.memref.load(%a, %$t79) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t81 = llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;", "=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,~{memory}" %$t66, %$t68, %$t70, %$t72, %$t74, %$t76, %$t78, %$t80 : (f32, f32, f32, f32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t82 = llvm.extractvalue %$t81[0] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t83 = cute.static : !cute.coord<"0">
      cute.memref.store(%sums, %$t83, %$t82) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t84 = llvm.extractvalue %$t81[1] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t85 = cute.static : !cute.coord<"1">
      cute.memref.store(%sums, %$t85, %$t84) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t86 = llvm.extractvalue %$t81[2] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t87 = cute.static : !cute.coord<"2">
      cute.memref.store(%sums, %$t87, %$t86) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t88 = llvm.extractvalue %$t81[3] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t89 = cute.static : !cute.coord<"3">
      cute.memref.store(%sums, %$t89, %$t88) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t90 = llvm.extractvalue %$t81[4] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t91 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t91, %$t90) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t92 = llvm.extractvalue %$t81[5] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t93 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t93, %$t92) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t94 = llvm.extractvalue %$t81[6] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t95 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t95, %$t94) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t96 = llvm.extractvalue %$t81[7] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t97 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t97, %$t96) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t98 = cute.static : !cute.coord<"0">
      %$t99 = cute.memref.load(%sums, %$t98) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t100 = cute.static : !cute.coord<"1">
      %$t101 = cute.memref.load(%sums, %$t100) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t102 = cute.static : !cute.coord<"2">
      %$t103 = cute.memref.load(%sums, %$t102) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t104 = cute.static : !cute.coord<"3">
      %$t105 = cute.memref.load(%sums, %$t104) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t106 = cute.static : !cute.coord<"0">
      %$t107 = cute.memref.load(%a, %$t106) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t108 = cute.static : !cute.coord<"1">
      %$t109 = cute.memref.load(%a, %$t108) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t110 = cute.static : !cute.coord<"2">
      %$t111 = cute.memref.load(%a, %$t110) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t112 = cute.static : !cute.coord<"3">
      %$t113 = cute.memref.load(%a, %$t112) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t114 = arith.constant 0 : i32
      %$t115 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $13, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p, 1, 1, 0; }", "=&f,=&f,=&f,=&f,0,1,2,3,r,r,r,r,l,r,~{memory}" %$t99, %$t101, %$t103, %$t105, %$t107, %$t109, %$t111, %$t113, %da, %$t114 : (f32, f32, f32, f32, i32, i32, i32, i32, i64, i32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t116 = llvm.extractvalue %$t115[0] : !llvm.struct<(f32, f32, f32, f32)>
      %$t117 = cute.static : !cute.coord<"0">
      cute.memref.store(%sums, %$t117, %$t116) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t118 = llvm.extractvalue %$t115[1] : !llvm.struct<(f32, f32, f32, f32)>
      %$t119 = cute.static : !cute.coord<"1">
      cute.memref.store(%sums, %$t119, %$t118) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t120 = llvm.extractvalue %$t115[2] : !llvm.struct<(f32, f32, f32, f32)>
      %$t121 = cute.static : !cute.coord<"2">
      cute.memref.store(%sums, %$t121, %$t120) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t122 = llvm.extractvalue %$t115[3] : !llvm.struct<(f32, f32, f32, f32)>
      %$t123 = cute.static : !cute.coord<"3">
      cute.memref.store(%sums, %$t123, %$t122) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      nvvm.wgmma.commit.group.sync.aligned
      %$t124 = cute.static : !cute.coord<"0">
      %$t125 = cute.memref.load(%sums, %$t124) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t126 = cute.static : !cute.coord<"1">
      %$t127 = cute.memref.load(%sums, %$t126) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t128 = cute.static : !cute.coord<"2">
      %$t129 = cute.memref.load(%sums, %$t128) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t130 = cute.static : !cute.coord<"3">
      %$t131 = cute.memref.load(%sums, %$t130) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t132 = arith.extui %$c18 : i1 to i32
      %$t133 = llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $10, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, p, 1, 1, 0, 0; }", "=&f,=&f,=&f,=&f,0,1,2,3,l,l,r,~{memory}" %$t125, %$t127, %$t129, %$t131, %da, %da, %$t132 : (f32, f32, f32, f32, i64, i64, i32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t134 = llvm.extractvalue %$t133[0] : !llvm.struct<(f32, f32, f32, f32)>
      %$t135 = cute.static : !cute.coord<"0">
      cute.memref.store(%sums, %$t135, %$t134) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t136 = llvm.extractvalue %$t133[1] : !llvm.struct<(f32, f32, f32, f32)>
      %$t137 = cute.static : !cute.coord<"1">
      cute.memref.store(%sums, %$t137, %$t136) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t138 = llvm.extractvalue %$t133[2] : !llvm.struct<(f32, f32, f32, f32)>
      %$t139 = cute.static : !cute.coord<"2">
      cute.memref.store(%sums, %$t139, %$t138) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t140 = llvm.extractvalue %$t133[3] : !llvm.struct<(f32, f32, f32, f32)>
      %$t141 = cute.static : !cute.coord<"3">
      cute.memref.store(%sums, %$t141, %$t140) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      nvvm.wgmma.commit.group.sync.aligned
      %$t142 = cute.static : !cute.coord<"0">
      %$t143 = cute.memref.load(%sums, %$t142) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t144 = cute.static : !cute.coord<"1">
      %$t145 = cute.memref.load(%sums, %$t144) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t146 = cute.static : !cute.coord<"2">
      %$t147 = cute.memref.load(%sums, %$t146) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t148 = cute.static : !cute.coord<"3">
      %$t149 = cute.memref.load(%sums, %$t148) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t150 = cute.static : !cute.coord<"0">
      %$t151 = cute.memref.load(%a, %$t150) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t152 = cute.static : !cute.coord<"1">
      %$t153 = cute.memref.load(%a, %$t152) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t154 = cute.static : !cute.coord<"2">
      %$t155 = cute.memref.load(%a, %$t154) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t156 = cute.static : !cute.coord<"3">
      %$t157 = cute.memref.load(%a, %$t156) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t158 = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 1;", "=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,~{memory}" %$t143, %$t145, %$t147, %$t149, %$t151, %$t153, %$t155, %$t157 : (f32, f32, f32, f32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t159 = llvm.extractvalue %$t158[0] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t160 = cute.static : !cute.coord<"0">
      cute.memref.store(%sums, %$t160, %$t159) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t161 = llvm.extractvalue %$t158[1] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t162 = cute.static : !cute.coord<"1">
      cute.memref.store(%sums, %$t162, %$t161) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t163 = llvm.extractvalue %$t158[2] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t164 = cute.static : !cute.coord<"2">
      cute.memref.store(%sums, %$t164, %$t163) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t165 = llvm.extractvalue %$t158[3] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t166 = cute.static : !cute.coord<"3">
      cute.memref.store(%sums, %$t166, %$t165) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t167 = llvm.extractvalue %$t158[4] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t168 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t168, %$t167) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t169 = llvm.extractvalue %$t158[5] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t170 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t170, %$t169) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t171 = llvm.extractvalue %$t158[6] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t172 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t172, %$t171) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t173 = llvm.extractvalue %$t158[7] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t174 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t174, %$t173) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t175 = vector.extract %part[0] : f16 from vector<8xf16>
      %$t176 = cute.static : !cute.coord<"0">
      %$t177 = cute.memref.load(%a, %$t176) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t178 = llvm.bitcast %$t177 : i32 to vector<2xf16>
      %$t179 = vector.insert %$t175, %$t178 [0] : f16 into vector<2xf16>
      %$t180 = llvm.bitcast %$t179 : vector<2xf16> to i32
      %$t181 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t181, %$t180) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t182 = vector.extract %part[1] : f16 from vector<8xf16>
      %$t183 = cute.static : !cute.coord<"0">
      %$t184 = cute.memref.load(%a, %$t183) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t185 = llvm.bitcast %$t184 : i32 to vector<2xf16>
      %$t186 = vector.insert %$t182, %$t185 [1] : f16 into vector<2xf16>
      %$t187 = llvm.bitcast %$t186 : vector<2xf16> to i32
      %$t188 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t188, %$t187) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t189 = vector.extract %part[2] : f16 from vector<8xf16>
      %$t190 = cute.static : !cute.coord<"1">
      %$t191 = cute.memref.load(%a, %$t190) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t192 = llvm.bitcast %$t191 : i32 to vector<2xf16>
      %$t193 = vector.insert %$t189, %$t192 [0] : f16 into vector<2xf16>
      %$t194 = llvm.bitcast %$t193 : vector<2xf16> to i32
      %$t195 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t195, %$t194) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t196 = vector.extract %part[3] : f16 from vector<8xf16>
      %$t197 = cute.static : !cute.coord<"1">
      %$t198 = cute.memref.load(%a, %$t197) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t199 = llvm.bitcast %$t198 : i32 to vector<2xf16>
      %$t200 = vector.insert %$t196, %$t199 [1] : f16 into vector<2xf16>
      %$t201 = llvm.bitcast %$t200 : vector<2xf16> to i32
      %$t202 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t202, %$t201) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t203 = vector.extract %part[4] : f16 from vector<8xf16>
      %$t204 = cute.static : !cute.coord<"2">
      %$t205 = cute.memref.load(%a, %$t204) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t206 = llvm.bitcast %$t205 : i32 to vector<2xf16>
      %$t207 = vector.insert %$t203, %$t206 [0] : f16 into vector<2xf16>
      %$t208 = llvm.bitcast %$t207 : vector<2xf16> to i32
      %$t209 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t209, %$t208) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t210 = vector.extract %part[5] : f16 from vector<8xf16>
      %$t211 = cute.static : !cute.coord<"2">
      %$t212 = cute.memref.load(%a, %$t211) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t213 = llvm.bitcast %$t212 : i32 to vector<2xf16>
      %$t214 = vector.insert %$t210, %$t213 [1] : f16 into vector<2xf16>
      %$t215 = llvm.bitcast %$t214 : vector<2xf16> to i32
      %$t216 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t216, %$t215) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t217 = vector.extract %part[6] : f16 from vector<8xf16>
      %$t218 = cute.static : !cute.coord<"3">
      %$t219 = cute.memref.load(%a, %$t218) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t220 = llvm.bitcast %$t219 : i32 to vector<2xf16>
      %$t221 = vector.insert %$t217, %$t220 [0] : f16 into vector<2xf16>
      %$t222 = llvm.bitcast %$t221 : vector<2xf16> to i32
      %$t223 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t223, %$t222) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t224 = vector.extract %part[7] : f16 from vector<8xf16>
      %$t225 = cute.static : !cute.coord<"3">
      %$t226 = cute.memref.load(%a, %$t225) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t227 = llvm.bitcast %$t226 : i32 to vector<2xf16>
      %$t228 = vector.insert %$t224, %$t227 [1] : f16 into vector<2xf16>
      %$t229 = llvm.bitcast %$t228 : vector<2xf16> to i32
      %$t230 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t230, %$t229) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t231 = cute.static : !cute.coord<"0">
      %$t232 = cute.memref.load(%sums, %$t231) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t233 = cute.static : !cute.coord<"1">
      %$t234 = cute.memref.load(%sums, %$t233) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t235 = cute.static : !cute.coord<"2">
      %$t236 = cute.memref.load(%sums, %$t235) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t237 = cute.static : !cute.coord<"3">
      %$t238 = cute.memref.load(%sums, %$t237) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t239 = cute.static : !cute.coord<"0">
      %$t240 = cute.memref.load(%a, %$t239) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t241 = cute.static : !cute.coord<"1">
      %$t242 = cute.memref.load(%a, %$t241) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t243 = cute.static : !cute.coord<"2">
      %$t244 = cute.memref.load(%a, %$t243) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t245 = cute.static : !cute.coord<"3">
      %$t246 = cute.memref.load(%a, %$t245) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t247 = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,~{memory}" %$t232, %$t234, %$t236, %$t238, %$t240, %$t242, %$t244, %$t246 : (f32, f32, f32, f32, i32, i32, i32, i32) -> !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t248 = llvm.extractvalue %$t247[0] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t249 = cute.static : !cute.coord<"0">
      cute.memref.store(%sums, %$t249, %$t248) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t250 = llvm.extractvalue %$t247[1] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t251 = cute.static : !cute.coord<"1">
      cute.memref.store(%sums, %$t251, %$t250) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t252 = llvm.extractvalue %$t247[2] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t253 = cute.static : !cute.coord<"2">
      cute.memref.store(%sums, %$t253, %$t252) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t254 = llvm.extractvalue %$t247[3] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t255 = cute.static : !cute.coord<"3">
      cute.memref.store(%sums, %$t255, %$t254) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t256 = llvm.extractvalue %$t247[4] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t257 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t257, %$t256) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t258 = llvm.extractvalue %$t247[5] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t259 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t259, %$t258) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t260 = llvm.extractvalue %$t247[6] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t261 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t261, %$t260) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t262 = llvm.extractvalue %$t247[7] : !llvm.struct<(f32, f32, f32, f32, i32, i32, i32, i32)>
      %$t263 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t263, %$t262) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t264 = cute.static : !cute.coord<"0">
      %$t265 = cute.memref.load(%sums, %$t264) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t266 = cute.static : !cute.coord<"1">
      %$t267 = cute.memref.load(%sums, %$t266) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t268 = cute.static : !cute.coord<"2">
      %$t269 = cute.memref.load(%sums, %$t268) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t270 = cute.static : !cute.coord<"3">
      %$t271 = cute.memref.load(%sums, %$t270) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %all = vector.from_elements %$t265, %$t267, %$t269, %$t271 : vector<4xf32>
      %four = arith.muli %t, %$c20 : i32
      %out = llvm.getelementptr %y[%four] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %all, %out {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      cuda.return
    }
  }
}
