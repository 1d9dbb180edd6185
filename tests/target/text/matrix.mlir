module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @matrix(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c5 = arith.constant 8 : i32
      %$c13 = arith.constant 0x00000000 : f32
      %$c14 = arith.constant 4 : i32
      %near = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %eight = arith.muli %lane, %$c5 : i32
      %from = llvm.getelementptr %x[%eight] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
      %to = llvm.getelementptr %near[%eight] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
      %row = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
      llvm.store %row, %to {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
      nvvm.barrier0
      %$t0 = cute.static : !cute.layout<"(8):(1)">
      %a = cute.memref.alloca(%$t0) : !cute.memref<f16, rmem, align<16>, "(8):(1)">
      %$t1 = cute.static : !cute.layout<"(4):(1)">
      %b = cute.memref.alloca(%$t1) : !cute.memref<f16, rmem, align<16>, "(4):(1)">
      %$t2 = cute.static : !cute.layout<"(4):(1)">
      %c = cute.memref.alloca(%$t2) : !cute.memref<f32, rmem, align<16>, "(4):(1)">
      %$t3 = cute.static : !cute.coord<"0">
      cute.memref.store(%c, %$t3, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t4 = cute.static : !cute.coord<"1">
      cute.memref.store(%c, %$t4, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t5 = cute.static : !cute.coord<"2">
      cute.memref.store(%c, %$t5, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t6 = cute.static : !cute.coord<"3">
      cute.memref.store(%c, %$t6, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t7 = nvvm.ldmatrix %to {num = 4 : i32, layout = #nvvm.mma_layout<row>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %$t8 = llvm.extractvalue %$t7[0] : !llvm.struct<(i32, i32, i32, i32)>
      %$t9 = llvm.bitcast %$t8 : i32 to vector<2xf16>
      %$t10 = vector.extract %$t9[0] : f16 from vector<2xf16>
      %$t11 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t11, %$t10) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"0">, f16) -> ()
      %$t12 = vector.extract %$t9[1] : f16 from vector<2xf16>
      %$t13 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t13, %$t12) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"1">, f16) -> ()
      %$t14 = llvm.extractvalue %$t7[1] : !llvm.struct<(i32, i32, i32, i32)>
      %$t15 = llvm.bitcast %$t14 : i32 to vector<2xf16>
      %$t16 = vector.extract %$t15[0] : f16 from vector<2xf16>
      %$t17 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t17, %$t16) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"2">, f16) -> ()
      %$t18 = vector.extract %$t15[1] : f16 from vector<2xf16>
      %$t19 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t19, %$t18) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"3">, f16) -> ()
      %$t20 = llvm.extractvalue %$t7[2] : !llvm.struct<(i32, i32, i32, i32)>
      %$t21 = llvm.bitcast %$t20 : i32 to vector<2xf16>
      %$t22 = vector.extract %$t21[0] : f16 from vector<2xf16>
      %$t23 = cute.static : !cute.coord<"4">
      cute.memref.store(%a, %$t23, %$t22) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"4">, f16) -> ()
      %$t24 = vector.extract %$t21[1] : f16 from vector<2xf16>
      %$t25 = cute.static : !cute.coord<"5">
      cute.memref.store(%a, %$t25, %$t24) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"5">, f16) -> ()
      %$t26 = llvm.extractvalue %$t7[3] : !llvm.struct<(i32, i32, i32, i32)>
      %$t27 = llvm.bitcast %$t26 : i32 to vector<2xf16>
      %$t28 = vector.extract %$t27[0] : f16 from vector<2xf16>
      %$t29 = cute.static : !cute.coord<"6">
      cute.memref.store(%a, %$t29, %$t28) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"6">, f16) -> ()
      %$t30 = vector.extract %$t27[1] : f16 from vector<2xf16>
      %$t31 = cute.static : !cute.coord<"7">
      cute.memref.store(%a, %$t31, %$t30) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"7">, f16) -> ()
      %$t32 = nvvm.ldmatrix %to {num = 2 : i32, layout = #nvvm.mma_layout<col>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
      %$t33 = llvm.extractvalue %$t32[0] : !llvm.struct<(i32, i32)>
      %$t34 = llvm.bitcast %$t33 : i32 to vector<2xf16>
      %$t35 = vector.extract %$t34[0] : f16 from vector<2xf16>
      %$t36 = cute.static : !cute.coord<"0">
      cute.memref.store(%b, %$t36, %$t35) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f16) -> ()
      %$t37 = vector.extract %$t34[1] : f16 from vector<2xf16>
      %$t38 = cute.static : !cute.coord<"1">
      cute.memref.store(%b, %$t38, %$t37) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f16) -> ()
      %$t39 = llvm.extractvalue %$t32[1] : !llvm.struct<(i32, i32)>
      %$t40 = llvm.bitcast %$t39 : i32 to vector<2xf16>
      %$t41 = vector.extract %$t40[0] : f16 from vector<2xf16>
      %$t42 = cute.static : !cute.coord<"2">
      cute.memref.store(%b, %$t42, %$t41) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f16) -> ()
      %$t43 = vector.extract %$t40[1] : f16 from vector<2xf16>
      %$t44 = cute.static : !cute.coord<"3">
      cute.memref.store(%b, %$t44, %$t43) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f16) -> ()
      %$t45 = cute.static : !cute.coord<"0">
      %$t46 = cute.memref.load(%a, %$t45) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"0">) -> f16
      %$t47 = cute.static : !cute.coord<"1">
      %$t48 = cute.memref.load(%a, %$t47) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"1">) -> f16
      %$t49 = vector.from_elements %$t46, %$t48 : vector<2xf16>
      %$t50 = cute.static : !cute.coord<"2">
      %$t51 = cute.memref.load(%a, %$t50) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"2">) -> f16
      %$t52 = cute.static : !cute.coord<"3">
      %$t53 = cute.memref.load(%a, %$t52) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"3">) -> f16
      %$t54 = vector.from_elements %$t51, %$t53 : vector<2xf16>
      %$t55 = cute.static : !cute.coord<"4">
      %$t56 = cute.memref.load(%a, %$t55) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"4">) -> f16
      %$t57 = cute.static : !cute.coord<"5">
      %$t58 = cute.memref.load(%a, %$t57) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"5">) -> f16
      %$t59 = vector.from_elements %$t56, %$t58 : vector<2xf16>
      %$t60 = cute.static : !cute.coord<"6">
      %$t61 = cute.memref.load(%a, %$t60) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"6">) -> f16
      %$t62 = cute.static : !cute.coord<"7">
      %$t63 = cute.memref.load(%a, %$t62) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"7">) -> f16
      %$t64 = vector.from_elements %$t61, %$t63 : vector<2xf16>
      %$t65 = cute.static : !cute.coord<"0">
      %$t66 = cute.memref.load(%b, %$t65) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f16
      %$t67 = cute.static : !cute.coord<"1">
      %$t68 = cute.memref.load(%b, %$t67) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f16
      %$t69 = vector.from_elements %$t66, %$t68 : vector<2xf16>
      %$t70 = cute.static : !cute.coord<"2">
      %$t71 = cute.memref.load(%b, %$t70) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f16
      %$t72 = cute.static : !cute.coord<"3">
      %$t73 = cute.memref.load(%b, %$t72) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f16
      %$t74 = vector.from_elements %$t71, %$t73 : vector<2xf16>
      %$t75 = cute.static : !cute.coord<"0">
      %$t76 = cute.memref.load(%c, %$t75) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t77 = cute.static : !cute.coord<"1">
      %$t78 = cute.memref.load(%c, %$t77) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t79 = cute.static : !cute.coord<"2">
      %$t80 = cute.memref.load(%c, %$t79) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t81 = cute.static : !cute.coord<"3">
      %$t82 = cute.memref.load(%c, %$t81) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t83 = nvvm.mma.sync A[%$t49, %$t54, %$t59, %$t64] B[%$t69, %$t74] C[%$t76, %$t78, %$t80, %$t82] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t84 = llvm.extractvalue %$t83[0] : !llvm.struct<(f32, f32, f32, f32)>
      %$t85 = cute.static : !cute.coord<"0">
      cute.memref.store(%c, %$t85, %$t84) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t86 = llvm.extractvalue %$t83[1] : !llvm.struct<(f32, f32, f32, f32)>
      %$t87 = cute.static : !cute.coord<"1">
      cute.memref.store(%c, %$t87, %$t86) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t88 = llvm.extractvalue %$t83[2] : !llvm.struct<(f32, f32, f32, f32)>
      %$t89 = cute.static : !cute.coord<"2">
      cute.memref.store(%c, %$t89, %$t88) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t90 = llvm.extractvalue %$t83[3] : !llvm.struct<(f32, f32, f32, f32)>
      %$t91 = cute.static : !cute.coord<"3">
      cute.memref.store(%c, %$t91, %$t90) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t92 = cute.static : !cute.coord<"0">
      %$t93 = cute.memref.load(%b, %$t92) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f16
      %$t94 = cute.static : !cute.coord<"1">
      %$t95 = cute.memref.load(%b, %$t94) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f16
      %$t96 = vector.from_elements %$t93, %$t95 : vector<2xf16>
      %$t97 = llvm.bitcast %$t96 : vector<2xf16> to i32
      %$t98 = cute.static : !cute.coord<"2">
      %$t99 = cute.memref.load(%b, %$t98) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f16
      %$t100 = cute.static : !cute.coord<"3">
      %$t101 = cute.memref.load(%b, %$t100) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f16
      %$t102 = vector.from_elements %$t99, %$t101 : vector<2xf16>
      %$t103 = llvm.bitcast %$t102 : vector<2xf16> to i32
      nvvm.stmatrix %to, %$t97, %$t103 {layout = #nvvm.mma_layout<row>} : !llvm.ptr<3>, i32, i32
      %four = arith.muli %lane, %$c14 : i32
      %out = llvm.getelementptr %y[%four] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %$t104 = cute.static : !cute.coord<"0">
      %$t105 = cute.memref.load(%c, %$t104) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t106 = cute.static : !cute.coord<"1">
      %$t107 = cute.memref.load(%c, %$t106) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t108 = cute.static : !cute.coord<"2">
      %$t109 = cute.memref.load(%c, %$t108) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t110 = cute.static : !cute.coord<"3">
      %$t111 = cute.memref.load(%c, %$t110) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %all = vector.from_elements %$t105, %$t107, %$t109, %$t111 : vector<4xf32>
      llvm.store %all, %out {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      cuda.return
    }
  }
}
