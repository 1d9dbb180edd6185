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
      %$t0 = cute.static : !cute.layout<"(4):(1)">
      %a = cute.memref.alloca(%$t0) : !cute.memref<i32, rmem, align<16>, "(4):(1)">
      %$t1 = cute.static : !cute.layout<"(2):(1)">
      %b = cute.memref.alloca(%$t1) : !cute.memref<i32, rmem, align<16>, "(2):(1)">
      %c = cute.memref.alloca(%$t0) : !cute.memref<f32, rmem, align<16>, "(4):(1)">
      %$t2 = cute.static : !cute.coord<"0">
      cute.memref.store(%c, %$t2, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t3 = cute.static : !cute.coord<"1">
      cute.memref.store(%c, %$t3, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t4 = cute.static : !cute.coord<"2">
      cute.memref.store(%c, %$t4, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t5 = cute.static : !cute.coord<"3">
      cute.memref.store(%c, %$t5, %$c13) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t6 = nvvm.ldmatrix %to {num = 4 : i32, layout = #nvvm.mma_layout<row>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %$t7 = llvm.extractvalue %$t6[0] : !llvm.struct<(i32, i32, i32, i32)>
      cute.memref.store(%a, %$t2, %$t7) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, i32) -> ()
      %$t8 = llvm.extractvalue %$t6[1] : !llvm.struct<(i32, i32, i32, i32)>
      cute.memref.store(%a, %$t3, %$t8) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, i32) -> ()
      %$t9 = llvm.extractvalue %$t6[2] : !llvm.struct<(i32, i32, i32, i32)>
      cute.memref.store(%a, %$t4, %$t9) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, i32) -> ()
      %$t10 = llvm.extractvalue %$t6[3] : !llvm.struct<(i32, i32, i32, i32)>
      cute.memref.store(%a, %$t5, %$t10) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, i32) -> ()
      %$t11 = nvvm.ldmatrix %to {num = 2 : i32, layout = #nvvm.mma_layout<col>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
      %$t12 = llvm.extractvalue %$t11[0] : !llvm.struct<(i32, i32)>
      cute.memref.store(%b, %$t2, %$t12) : (!cute.memref<i32, rmem, align<16>, "(2):(1)">, !cute.coord<"0">, i32) -> ()
      %$t13 = llvm.extractvalue %$t11[1] : !llvm.struct<(i32, i32)>
      cute.memref.store(%b, %$t3, %$t13) : (!cute.memref<i32, rmem, align<16>, "(2):(1)">, !cute.coord<"1">, i32) -> ()
      %$t14 = cute.memref.load(%a, %$t2) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> i32
      %$t15 = llvm.bitcast %$t14 : i32 to vector<2xf16>
      %$t16 = cute.memref.load(%a, %$t3) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> i32
      %$t17 = llvm.bitcast %$t16 : i32 to vector<2xf16>
      %$t18 = cute.memref.load(%a, %$t4) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> i32
      %$t19 = llvm.bitcast %$t18 : i32 to vector<2xf16>
      %$t20 = cute.memref.load(%a, %$t5) : (!cute.memref<i32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> i32
      %$t21 = llvm.bitcast %$t20 : i32 to vector<2xf16>
      %$t22 = cute.memref.load(%b, %$t2) : (!cute.memref<i32, rmem, align<16>, "(2):(1)">, !cute.coord<"0">) -> i32
      %$t23 = llvm.bitcast %$t22 : i32 to vector<2xf16>
      %$t24 = cute.memref.load(%b, %$t3) : (!cute.memref<i32, rmem, align<16>, "(2):(1)">, !cute.coord<"1">) -> i32
      %$t25 = llvm.bitcast %$t24 : i32 to vector<2xf16>
      %$t26 = cute.memref.load(%c, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t27 = cute.memref.load(%c, %$t3) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t28 = cute.memref.load(%c, %$t4) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t29 = cute.memref.load(%c, %$t5) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %$t30 = nvvm.mma.sync A[%$t15, %$t17, %$t19, %$t21] B[%$t23, %$t25] C[%$t26, %$t27, %$t28, %$t29] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %$t31 = llvm.extractvalue %$t30[0] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%c, %$t2, %$t31) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">, f32) -> ()
      %$t32 = llvm.extractvalue %$t30[1] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%c, %$t3, %$t32) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">, f32) -> ()
      %$t33 = llvm.extractvalue %$t30[2] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%c, %$t4, %$t33) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">, f32) -> ()
      %$t34 = llvm.extractvalue %$t30[3] : !llvm.struct<(f32, f32, f32, f32)>
      cute.memref.store(%c, %$t5, %$t34) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">, f32) -> ()
      %$t35 = cute.memref.load(%b, %$t2) : (!cute.memref<i32, rmem, align<16>, "(2):(1)">, !cute.coord<"0">) -> i32
      %$t36 = cute.memref.load(%b, %$t3) : (!cute.memref<i32, rmem, align<16>, "(2):(1)">, !cute.coord<"1">) -> i32
      nvvm.stmatrix %to, %$t35, %$t36 {layout = #nvvm.mma_layout<row>} : !llvm.ptr<3>, i32, i32
      %four = arith.muli %lane, %$c14 : i32
      %out = llvm.getelementptr %y[%four] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %$t37 = cute.memref.load(%c, %$t2) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"0">) -> f32
      %$t38 = cute.memref.load(%c, %$t3) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"1">) -> f32
      %$t39 = cute.memref.load(%c, %$t4) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"2">) -> f32
      %$t40 = cute.memref.load(%c, %$t5) : (!cute.memref<f32, rmem, align<16>, "(4):(1)">, !cute.coord<"3">) -> f32
      %all = vector.from_elements %$t37, %$t38, %$t39, %$t40 : vector<4xf32>
      llvm.store %all, %out {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      cuda.return
    }
  }
}
