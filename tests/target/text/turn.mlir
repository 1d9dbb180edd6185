module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @turn(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c3 = arith.constant 1 : i32
      %$c12 = arith.constant 0 : i32
      %$c13 = arith.constant 32 : i32
      %$c14 = arith.constant 2 : i32
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %bit = arith.andi %lane, %$c3 : i32
      %odd = arith.cmpi eq, %bit, %$c3 : i32
      %first = arith.subi %lane, %bit : i32
      %second = arith.addi %first, %$c3 : i32
      %$t0 = cute.static : !cute.shape<"(32,32)">
      %$t1 = cute.static : !cute.stride<"(32,1)">
      %$t2 = cute.make_layout(%$t0, %$t1) : !cute.layout<"(32,32):(32,1)">
      %$t3 = cute.static : !cute.int_tuple<"0">
      %$t4 = cute.static : !cute.swizzle<"S<5,0,5>">
      %$t5 = cute.make_composed_layout(%$t4, %$t3, %$t2) : !cute.composed_layout<"S<5,0,5> o 0 o (32,32):(32,1)">
      %$t6 = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %$t7 = builtin.unrealized_conversion_cast %$t6 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
      %near = cute.make_view(%$t7, %$t5) : !cute.memref<f32, smem, align<4>, "S<5,0,5> o 0 o (32,32):(32,1)">
      %$t8 = cute.make_layout(%$t0, %$t1) : !cute.layout<"(32,32):(32,1)">
      %$t9 = builtin.unrealized_conversion_cast %x : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %in = cute.make_view(%$t9, %$t8) : !cute.memref<f32, gmem, align<4>, "(32,32):(32,1)">
      %$t10 = cute.make_layout(%$t0, %$t1) : !cute.layout<"(32,32):(32,1)">
      %$t11 = builtin.unrealized_conversion_cast %y : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %out = cute.make_view(%$t11, %$t10) : !cute.memref<f32, gmem, align<4>, "(32,32):(32,1)">
      scf.for %row = %$c12 to %$c13 step %$c14 : i32 {
        %below = arith.addi %row, %$c3 : i32
        %$t12 = cute.make_coord(%row, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t13 = cute.crd2idx(%$t12, %$t8) : (!cute.coord<"(?,?)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t14 = cute.get_scalars(%$t13) : !cute.int_tuple<"?">
        %upper_at = llvm.getelementptr %x[%$t14] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %$t15 = cute.make_coord(%below, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t16 = cute.crd2idx(%$t15, %$t8) : (!cute.coord<"(?,?)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t17 = cute.get_scalars(%$t16) : !cute.int_tuple<"?">
        %lower_at = llvm.getelementptr %x[%$t17] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %upper = llvm.load %upper_at {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %lower = llvm.load %lower_at {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %given = arith.select %odd, %upper, %lower : f32
        %$t18 = arith.constant -1 : i32
        %$t19 = arith.constant 31 : i32
        %$t20 = nvvm.shfl.sync bfly %$t18, %given, %$c3, %$t19 : f32 -> f32
        %left = arith.select %odd, %$t20, %upper : f32
        %right = arith.select %odd, %lower, %$t20 : f32
        %own = arith.addi %row, %bit : i32
        %$t21 = cute.make_coord(%own) : (i32) -> !cute.coord<"(?,_)">
        %$t22 = cute.slice(%$t2, %$t21) : !cute.layout<"(32,32):(32,1)">, !cute.coord<"(?,_)">
        %$t23 = cute.make_coord(%own) : (i32) -> !cute.coord<"(?,0)">
        %$t24 = cute.crd2idx(%$t23, %$t2) : (!cute.coord<"(?,0)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t25 = cute.get_scalars(%$t24) : !cute.int_tuple<"?">
        %$t26 = arith.constant 0 : i32
        %$t27 = arith.addi %$t26, %$t25 : i32
        %$t28 = cute.make_int_tuple(%$t27) : (i32) -> !cute.int_tuple<"?">
        %$t29 = cute.make_composed_layout(%$t4, %$t28, %$t22) : !cute.composed_layout<"S<5,0,5> o ? o (32):(1)">
        %$t30 = builtin.unrealized_conversion_cast %$t6 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
        %line = cute.make_view(%$t30, %$t29) : !cute.memref<f32, smem, align<4>, "S<5,0,5> o ? o (32):(1)">
        %$t31 = cute.make_coord(%first) : (i32) -> !cute.coord<"?">
        %$t32 = cute.crd2idx(%$t31, %$t29) : (!cute.coord<"?">, !cute.composed_layout<"S<5,0,5> o ? o (32):(1)">) -> !cute.int_tuple<"?">
        %$t33 = cute.get_scalars(%$t32) : !cute.int_tuple<"?">
        %left_at = llvm.getelementptr %$t6[%$t33] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %$t34 = cute.make_coord(%second) : (i32) -> !cute.coord<"?">
        %$t35 = cute.crd2idx(%$t34, %$t29) : (!cute.coord<"?">, !cute.composed_layout<"S<5,0,5> o ? o (32):(1)">) -> !cute.int_tuple<"?">
        %$t36 = cute.get_scalars(%$t35) : !cute.int_tuple<"?">
        %right_at = llvm.getelementptr %$t6[%$t36] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %left, %left_at {alignment = 4 : i64} : f32, !llvm.ptr<3>
        llvm.store %right, %right_at {alignment = 4 : i64} : f32, !llvm.ptr<3>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.barrier0
      scf.for %column = %$c12 to %$c13 step %$c3 : i32 {
        %$t37 = cute.make_coord(%lane, %column) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t38 = cute.crd2idx(%$t37, %$t5) : (!cute.coord<"(?,?)">, !cute.composed_layout<"S<5,0,5> o 0 o (32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t39 = cute.get_scalars(%$t38) : !cute.int_tuple<"?">
        %from = llvm.getelementptr %$t6[%$t39] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %$t40 = cute.make_coord(%column, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t41 = cute.crd2idx(%$t40, %$t10) : (!cute.coord<"(?,?)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t42 = cute.get_scalars(%$t41) : !cute.int_tuple<"?">
        %to = llvm.getelementptr %y[%$t42] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %value = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<3> -> f32
        llvm.store %value, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      cuda.return
    }
  }
}
