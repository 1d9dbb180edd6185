module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    cuda.kernel @views(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %rows: i32, %pitch: i64) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c10 = arith.constant 0 : i32
      %$c11 = arith.constant 1 : i32
      %$c19 = arith.constant 31 : i32
      %$t0 = cute.make_shape(%rows) : (i32) -> !cute.shape<"(?,32)">
      %$t1 = cute.make_stride(%pitch) : (i64) -> !cute.stride<"(?{i64},1)">
      %$t2 = cute.make_layout(%$t0, %$t1) : !cute.layout<"(?,32):(?{i64},1)">
      %$t3 = builtin.unrealized_conversion_cast %x : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %in = cute.make_view(%$t3, %$t2) : !cute.memref<f32, gmem, align<4>, "(?,32):(?{i64},1)">
      %$t4 = cute.static : !cute.shape<"(8,32)">
      %$t5 = cute.static : !cute.stride<"(32,1)">
      %$t6 = cute.make_layout(%$t4, %$t5) : !cute.layout<"(8,32):(32,1)">
      %$t7 = builtin.unrealized_conversion_cast %y : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %out = cute.make_view(%$t7, %$t6) : !cute.memref<f32, gmem, align<4>, "(8,32):(32,1)">
      %$t8 = cute.make_layout(%$t4, %$t5) : !cute.layout<"(8,32):(32,1)">
      %$t9 = cute.static : !cute.int_tuple<"0">
      %$t10 = cute.static : !cute.swizzle<"S<2,0,3>">
      %$t11 = cute.make_composed_layout(%$t10, %$t9, %$t8) : !cute.composed_layout<"S<2,0,3> o 0 o (8,32):(32,1)">
      %$t12 = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %$t13 = builtin.unrealized_conversion_cast %$t12 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
      %near = cute.make_view(%$t13, %$t11) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o 0 o (8,32):(32,1)">
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %$t14 = cute.size(%$t2) <{mode = [0]}> : (!cute.layout<"(?,32):(?{i64},1)">) -> !cute.int_tuple<"?">
      %$t15 = cute.get_scalars(%$t14) : !cute.int_tuple<"?">
      scf.for %i = %$c10 to %$t15 step %$c11 : i32 {
        %$t16 = cute.make_coord(%i, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t17 = cute.crd2idx(%$t16, %$t2) : (!cute.coord<"(?,?)">, !cute.layout<"(?,32):(?{i64},1)">) -> !cute.int_tuple<"?{i64}">
        %$t18 = cute.get_scalars(%$t17) : !cute.int_tuple<"?{i64}">
        %from = llvm.getelementptr %x[%$t18] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %$t19 = cute.make_coord(%i, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t20 = cute.crd2idx(%$t19, %$t11) : (!cute.coord<"(?,?)">, !cute.composed_layout<"S<2,0,3> o 0 o (8,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t21 = cute.get_scalars(%$t20) : !cute.int_tuple<"?">
        %to = llvm.getelementptr %$t12[%$t21] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %value = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        llvm.store %value, %to {alignment = 4 : i64} : f32, !llvm.ptr<3>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.barrier0
      %$t22 = cute.static : !cute.coord<"(7,31)">
      %$t23 = cute.crd2idx(%$t22, %$t6) : (!cute.coord<"(7,31)">, !cute.layout<"(8,32):(32,1)">) -> !cute.int_tuple<"?">
      %$t24 = cute.get_scalars(%$t23) : !cute.int_tuple<"?">
      %corner = llvm.getelementptr %y[%$t24] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %$t25 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(7,?)">
      %$t26 = cute.crd2idx(%$t25, %$t11) : (!cute.coord<"(7,?)">, !cute.composed_layout<"S<2,0,3> o 0 o (8,32):(32,1)">) -> !cute.int_tuple<"?">
      %$t27 = cute.get_scalars(%$t26) : !cute.int_tuple<"?">
      %mine = llvm.getelementptr %$t12[%$t27] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %kept = llvm.load %mine {alignment = 4 : i64} : !llvm.ptr<3> -> f32
      %last = arith.cmpi eq, %lane, %$c19 : i32
      scf.if %last {
        llvm.store %kept, %corner {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }
      cuda.return
    }
  }
}
