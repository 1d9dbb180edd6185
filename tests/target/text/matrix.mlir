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
      %$t9 = vector.broadcast %$t8 : i32 to vector<1xi32>
      %$t10 = vector.bitcast %$t9 : vector<1xi32> to vector<2xf16>
      %$t11 = vector.extract %$t10[0] : f16 from vector<2xf16>
      %$t12 = cute.static : !cute.coord<"0">
      cute.memref.store(%a, %$t12, %$t11) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"0">, f16) -> ()
      %$t13 = vector.extract %$t10[1] : f16 from vector<2xf16>
      %$t14 = cute.static : !cute.coord<"1">
      cute.memref.store(%a, %$t14, %$t13) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"1">, f16) -> ()
      %$t15 = llvm.extractvalue %$t7[1] : !llvm.struct<(i32, i32, i32, i32)>
      %$t16 = vector.broadcast %$t15 : i32 to vector<1xi32>
      %$t17 = vector.bitcast %$t16 : vector<1xi32> to vector<2xf16>
      %$t18 = vector.extract %$t17[0] : f16 from vector<2xf16>
      %$t19 = cute.static : !cute.coord<"2">
      cute.memref.store(%a, %$t19, %$t18) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"2">, f16) -> ()
      %$t20 = vector.extract %$t17[1] : f16 from vector<2xf16>
      %$t21 = cute.static : !cute.coord<"3">
      cute.memref.store(%a, %$t21, %$t20) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"3">, f16) -> ()
      %$t22 = llvm.extractvalue %$t7[2] : !llvm.struct<(i32, i32, i32, i32)>
      %$t23 = vector.broadcast %$t22 : i32 to vector<1xi32>
      %$t24 = vector.bitcast %$t23 : vector<1xi32> to vector<2xf16>
      %$t25 = vector.extract %$t24[0] : f16 from vector<2xf16>
      %$t26 = cute.static : !cute.coord<"4">
      cute.memref.store(%a, %$t26, %$t25) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"4">, f16) -> ()
      %$t27 = vector.extract %$t24[1] : f16 from vector<2xf16>
      %$t28 = cute.static : !cute.coord<"5">
      cute.memref.store(%a, %$t28, %$t27) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"5">, f16) -> ()
      %$t29 = llvm.extractvalue %$t7[3] : !llvm.struct<(i32, i32, i32, i32)>
      %$t30 = vector.broadcast %$t29 : i32 to vector<1xi32>
      %$t31 = vector.bitcast %$t30 : vector<1xi32> to vector<2xf16>
      %$t32 = vector.extract %$t31[0] : f16 from vector<2xf16>
      %$t33 = cute.static : !cute.coord<"6">
      cute.memref.store(%a, %$t33, %$t32) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"6">, f16) -> ()
      %$t34 = vector.extract %$t31[1] : f16 from vector<2xf16>
      %$t35 = cute.static : !cute.coord<"7">
      cute.memref.store(%a, %$t35, %$t34) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"7">, f16) -> ()
      %$t36 = nvvm.ldmatrix %to {num = 2 : i32, layout = #nvvm.mma_layout<col>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
      %$t37 = llvm.extractvalue %$t36[0] : !llvm.struct<(i32, i32)>
      %$t38 = vector.broadcast %$t37 : i32 to vector<1xi32>
      %$t39 = vector.bitcast %$t38 : vector<1xi32> to vector<2xf16>
      %$t40 = vector.extract %$t39[0] : f16 from vector<2xf16>
      %$t41 = cute.static : !cute.coord<"0">
      cute.memref.store(%b, %$t41, %$t40) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f16) -> ()
      %$t42 = vector.extract %$t39[1] : f16 from vector<2xf16>
      %$t43 = cute.static : !cute.coord<"1">
      cute.memref.store(%b, %$t43, %$t42) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f16) -> ()
      %$t44 = llvm.extractvalue %$t36[1] : !llvm.struct<(i32, i32)>
      %$t45 = vector.broadcast %$t44 : i32 to vector<1xi32>
      %$t46 = vector.bitcast %$t45 : vector<1xi32> to vector<2xf16>
      %$t47 = vector.extract %$t46[0] : f16 from vector<2xf16>
      %$t48 = cute.static : !cute.coord<"2">
      cute.memref.store(%b, %$t48, %$t47) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f16) -> ()
      %$t49 = vector.extract %$t46[1] : f16 from vector<2xf16>
      %$t50 = cute.static : !cute.coord<"3">
      cute.memref.store(%b, %$t50, %$t49) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f16) -> ()
      %$t51 = cute.static : !cute.coord<"0">
      %$t52 = cute.memref.load(%a, %$t51) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"0">) -> f16
      %$t53 = cute.static : !cute.coord<"1">
      %$t54 = cute.memref.load(%a, %$t53) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"1">) -> f16
      %$t55 = vector.from_elements %$t52, %$t54 : vector<2xf16>
      %$t56 = cute.static : !cute.coord<"2">
      %$t57 = cute.memref.load(%a, %$t56) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"2">) -> f16
      %$t58 = cute.static : !cute.coord<"3">
      %$t59 = cute.memref.load(%a, %$t58) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"3">) -> f16
      %$t60 = vector.from_elements %$t57, %$t59 : vector<2xf16>
      %$t61 = cute.static : !cute.coord<"4">
      %$t62 = cute.memref.load(%a, %$t61) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"4">) -> f16
      %$t63 = cute.static : !cute.coord<"5">
      %$t64 = cute.memref.load(%a, %$t63) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"5">) -> f16
      %$t65 = vector.from_elements %$t62, %$t64 : vector<2xf16>
      %$t66 = cute.static : !cute.coord<"6">
      %$t67 = cute.memref.load(%a, %$t66) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"6">) -> f16
      %$t68 = cute.static : !cute.coord<"7">
      %$t69 = cute.memref.load(%a, %$t68) : (!cute.memref<f16, rmem, align<16>, "(8):(1)">, !cute.coord<"7">) -> f16
      %$t70 = vector.from_elements %$t67, %$t69 : vector<2xf16>
      %$t71 = cute.static : !cute.coord<"0">
      %$t72 = cute.memref.load(%b, %$t71) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f16
      %$t73 = cute.static : !cute.coord<"1">
      %$t74 = cute.memref.load(%b, %$t73) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f16
      %$t75 = vector.from_elements %$t72, %$t74 : vector<2xf16>
      %$t76 = cute.static : !cute.coord<"2">
      %$t77 = cute.memref.load(%b, %$t76) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f16
      %$t78 = cute.static : !cute.coord<"3">
      %$t79 = cute.memref.load(%b, %$t78) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f16
      %$t80 = vector.from_elements %$t77, %$t79 : vector<2xf16>
      %$t81 = cute.static : !cute.coord<"0">
      %$t82 = cute.memref.load(%c, %$t81) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t83 = cute.static : !cute.coord<"1">
      %$t84 = cute.memref.load(%c, %$t83) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t85 = cute.static : !cute.coord<"2">
      %$t86 = cute.memref.load(%c, %$t85) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t87 = cute.static : !cute.coord<"3">
      %$t88 = cute.memref.load(%c, %$t87) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t89 = nvvm.mma.sync A[%$t55, %$t60, %$t65, %$t70] B[%$t75, %$t80] C[%$t82, %$t84, %$t86, %$t88] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t90 = llvm.extractvalue %$t89[0] : !llvm.struct<(f32, f32, f32, f32)>
      %$t91 = cute.static : !cute.coord<"0">
      cute.memref.store(%c, %$t91, %$t90) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t92 = llvm.extractvalue %$t89[1] : !llvm.struct<(f32, f32, f32, f32)>
      %$t93 = cute.static : !cute.coord<"1">
      cute.memref.store(%c, %$t93, %$t92) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t94 = llvm.extractvalue %$t89[2] : !llvm.struct<(f32, f32, f32, f32)>
      %$t95 = cute.static : !cute.coord<"2">
      cute.memref.store(%c, %$t95, %$t94) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t96 = llvm.extractvalue %$t89[3] : !llvm.struct<(f32, f32, f32, f32)>
      %$t97 = cute.static : !cute.coord<"3">
      cute.memref.store(%c, %$t97, %$t96) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t98 = cute.static : !cute.coord<"0">
      %$t99 = cute.memref.load(%b, %$t98) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f16
      %$t100 = cute.static : !cute.coord<"1">
      %$t101 = cute.memref.load(%b, %$t100) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f16
      %$t102 = vector.from_elements %$t99, %$t101 : vector<2xf16>
      %$t103 = vector.bitcast %$t102 : vector<2xf16> to vector<1xi32>
      %$t104 = vector.extract %$t103[0] : i32 from vector<1xi32>
      %$t105 = cute.static : !cute.coord<"2">
      %$t106 = cute.memref.load(%b, %$t105) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f16
      %$t107 = cute.static : !cute.coord<"3">
      %$t108 = cute.memref.load(%b, %$t107) : (!cute.memref<f16, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f16
      %$t109 = vector.from_elements %$t106, %$t108 : vector<2xf16>
      %$t110 = vector.bitcast %$t109 : vector<2xf16> to vector<1xi32>
      %$t111 = vector.extract %$t110[0] : i32 from vector<1xi32>
      nvvm.stmatrix %to, %$t104, %$t111 {layout = #nvvm.mma_layout<row>} : !llvm.ptr<3>, i32, i32
      %four = arith.muli %lane, %$c14 : i32
      %out = llvm.getelementptr %y[%four] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %$t112 = cute.static : !cute.coord<"0">
      %$t113 = cute.memref.load(%c, %$t112) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t114 = cute.static : !cute.coord<"1">
      %$t115 = cute.memref.load(%c, %$t114) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t116 = cute.static : !cute.coord<"2">
      %$t117 = cute.memref.load(%c, %$t116) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t118 = cute.static : !cute.coord<"3">
      %$t119 = cute.memref.load(%c, %$t118) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %all = vector.from_elements %$t113, %$t115, %$t117, %$t119 : vector<4xf32>
      llvm.store %all, %out {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      cuda.return
    }
  }
}
