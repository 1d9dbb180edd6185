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
      %$t8 = cute.static : !cute.shape<"(32,32)">
      %$t9 = cute.static : !cute.stride<"(32,1)">
      %$t10 = cute.make_layout(%$t8, %$t9) : !cute.layout<"(32,32):(32,1)">
      %$t11 = builtin.unrealized_conversion_cast %x : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %in = cute.make_view(%$t11, %$t10) : !cute.memref<f32, gmem, align<4>, "(32,32):(32,1)">
      %$t12 = cute.static : !cute.shape<"(32,32)">
      %$t13 = cute.static : !cute.stride<"(32,1)">
      %$t14 = cute.make_layout(%$t12, %$t13) : !cute.layout<"(32,32):(32,1)">
      %$t15 = builtin.unrealized_conversion_cast %y : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %out = cute.make_view(%$t15, %$t14) : !cute.memref<f32, gmem, align<4>, "(32,32):(32,1)">
      scf.for %row = %$c12 to %$c13 step %$c14 : i32 {
        %below = arith.addi %row, %$c3 : i32
        %$t16 = cute.make_coord(%row, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t17 = cute.crd2idx(%$t16, %$t10) : (!cute.coord<"(?,?)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t18 = cute.get_scalars(%$t17) : !cute.int_tuple<"?">
        %upper_at = llvm.getelementptr %x[%$t18] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %$t19 = cute.make_coord(%below, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t20 = cute.crd2idx(%$t19, %$t10) : (!cute.coord<"(?,?)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t21 = cute.get_scalars(%$t20) : !cute.int_tuple<"?">
        %lower_at = llvm.getelementptr %x[%$t21] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %upper = llvm.load %upper_at {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %lower = llvm.load %lower_at {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %given = arith.select %odd, %upper, %lower : f32
        %$t22 = arith.constant -1 : i32
        %$t23 = arith.constant 31 : i32
        %$t24 = nvvm.shfl.sync bfly %$t22, %given, %$c3, %$t23 : f32 -> f32
        %left = arith.select %odd, %$t24, %upper : f32
        %right = arith.select %odd, %lower, %$t24 : f32
        %own = arith.addi %row, %bit : i32
        %$t25 = cute.make_coord(%own) : (i32) -> !cute.coord<"(?,_)">
        %$t26 = cute.slice(%$t2, %$t25) : !cute.layout<"(32,32):(32,1)">, !cute.coord<"(?,_)">
        %$t27 = cute.make_coord(%own) : (i32) -> !cute.coord<"(?,0)">
        %$t28 = cute.crd2idx(%$t27, %$t2) : (!cute.coord<"(?,0)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t29 = cute.get_scalars(%$t28) : !cute.int_tuple<"?">
        %$t30 = arith.constant 0 : i32
        %$t31 = arith.addi %$t30, %$t29 : i32
        %$t32 = cute.make_int_tuple(%$t31) : (i32) -> !cute.int_tuple<"?">
        %$t33 = cute.make_composed_layout(%$t4, %$t32, %$t26) : !cute.composed_layout<"S<5,0,5> o ? o (32):(1)">
        %$t34 = builtin.unrealized_conversion_cast %$t6 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
        %line = cute.make_view(%$t34, %$t33) : !cute.memref<f32, smem, align<4>, "S<5,0,5> o ? o (32):(1)">
        %$t35 = cute.make_coord(%first) : (i32) -> !cute.coord<"?">
        %$t36 = cute.crd2idx(%$t35, %$t33) : (!cute.coord<"?">, !cute.composed_layout<"S<5,0,5> o ? o (32):(1)">) -> !cute.int_tuple<"?">
        %$t37 = cute.get_scalars(%$t36) : !cute.int_tuple<"?">
        %left_at = llvm.getelementptr %$t6[%$t37] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %$t38 = cute.make_coord(%second) : (i32) -> !cute.coord<"?">
        %$t39 = cute.crd2idx(%$t38, %$t33) : (!cute.coord<"?">, !cute.composed_layout<"S<5,0,5> o ? o (32):(1)">) -> !cute.int_tuple<"?">
        %$t40 = cute.get_scalars(%$t39) : !cute.int_tuple<"?">
        %right_at = llvm.getelementptr %$t6[%$t40] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %left, %left_at {alignment = 4 : i64} : f32, !llvm.ptr<3>
        llvm.store %right, %right_at {alignment = 4 : i64} : f32, !llvm.ptr<3>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.barrier0
      scf.for %column = %$c12 to %$c13 step %$c3 : i32 {
        %$t41 = cute.make_coord(%lane, %column) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t42 = cute.crd2idx(%$t41, %$t5) : (!cute.coord<"(?,?)">, !cute.composed_layout<"S<5,0,5> o 0 o (32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t43 = cute.get_scalars(%$t42) : !cute.int_tuple<"?">
        %from = llvm.getelementptr %$t6[%$t43] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %$t44 = cute.make_coord(%column, %lane) : (i32, i32) -> !cute.coord<"(?,?)">
        %$t45 = cute.crd2idx(%$t44, %$t14) : (!cute.coord<"(?,?)">, !cute.layout<"(32,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t46 = cute.get_scalars(%$t45) : !cute.int_tuple<"?">
        %to = llvm.getelementptr %y[%$t46] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %value = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<3> -> f32
        llvm.store %value, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      cuda.return
    }
  }
}
