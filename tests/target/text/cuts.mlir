module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @cuts(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %rows: i32, %pitch: i64) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c11 = arith.constant 0 : i32
      %$c15 = arith.constant 1 : i32
      %$c21 = arith.constant 2 : i32
      %$c24 = arith.constant 8 : i32
      %$c34 = arith.constant 16 : i32
      %$c36 = arith.constant 7 : i64
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %$t0 = cute.static : !cute.layout<"(8):(1)">
      %held = cute.memref.alloca(%$t0) : !cute.memref<f32, rmem, align<16>, "(8):(1)">
      %$t1 = cute.make_shape(%rows) : (i32) -> !cute.shape<"(?,32)">
      %$t2 = cute.make_stride(%pitch) : (i64) -> !cute.stride<"(?{i64},1)">
      %$t3 = cute.make_layout(%$t1, %$t2) : !cute.layout<"(?,32):(?{i64},1)">
      %$t4 = builtin.unrealized_conversion_cast %x : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %in = cute.make_view(%$t4, %$t3) : !cute.memref<f32, gmem, align<4>, "(?,32):(?{i64},1)">
      %$t5 = cute.static : !cute.shape<"(16,32)">
      %$t6 = cute.static : !cute.stride<"(32,1)">
      %$t7 = cute.make_layout(%$t5, %$t6) : !cute.layout<"(16,32):(32,1)">
      %$t8 = builtin.unrealized_conversion_cast %y : !llvm.ptr<1> to !cute.ptr<f32, gmem, align<4>>
      %out = cute.make_view(%$t8, %$t7) : !cute.memref<f32, gmem, align<4>, "(16,32):(32,1)">
      %$t9 = cute.static : !cute.shape<"(8,32)">
      %$t10 = cute.make_layout(%$t9, %$t6) : !cute.layout<"(8,32):(32,1)">
      %$t11 = cute.static : !cute.int_tuple<"0">
      %$t12 = cute.static : !cute.swizzle<"S<2,0,3>">
      %$t13 = cute.make_composed_layout(%$t12, %$t11, %$t10) : !cute.composed_layout<"S<2,0,3> o 0 o (8,32):(32,1)">
      %$t14 = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %$t15 = builtin.unrealized_conversion_cast %$t14 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
      %near = cute.make_view(%$t15, %$t13) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o 0 o (8,32):(32,1)">
      %$t16 = cute.make_coord(%block, %$c11) : (i32, i32) -> !cute.coord<"(?,?)">
      %$t17 = cute.static : !cute.tile<"[8:1;32:1]">
      %high = cute.local_tile(%in, %$t17, %$t16) : (!cute.memref<f32, gmem, align<4>, "(?,32):(?{i64},1)">, !cute.tile<"[8:1;32:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">
      %$t18 = cute.get_iter(%high) : !cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">
      %$t19 = cute.get_layout(%high) : !cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">
      %$t20 = builtin.unrealized_conversion_cast %$t18 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t21 = cute.static : !cute.layout<"(32,8):(8,1)">
      %$t22 = cute.composition(%high, %$t21) : (!cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">, !cute.layout<"(32,8):(8,1)">) -> !cute.memref<f32, gmem, align<4>, "(32,8):(1,?{i64})">
      %$t23 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(?,_)">
      %$t24 = cute.slice(%$t22, %$t23) : !cute.memref<f32, gmem, align<4>, "(32,8):(1,?{i64})">, !cute.coord<"(?,_)">
      %$t25 = cute.get_iter(%$t24) : !cute.memref<f32, gmem, align<4>, "(8):(?{i64})">
      %$t26 = cute.get_layout(%$t24) : !cute.memref<f32, gmem, align<4>, "(8):(?{i64})">
      %$t27 = cute.get(%$t26) <{mode = [0]}> : !cute.layout<"(8):(?{i64})"> -> !cute.layout<"8:?{i64}">
      %own = cute.make_view(%$t25, %$t27) : !cute.memref<f32, gmem, align<4>, "8:?{i64}">
      %$t28 = cute.get_iter(%own) : !cute.memref<f32, gmem, align<4>, "8:?{i64}">
      %$t29 = cute.get_layout(%own) : !cute.memref<f32, gmem, align<4>, "8:?{i64}">
      %$t30 = builtin.unrealized_conversion_cast %$t28 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t31 = cute.size(%$t29) <{mode = [0]}> : (!cute.layout<"8:?{i64}">) -> !cute.int_tuple<"8">
      %$t32 = cute.get_scalars(%$t31) : !cute.int_tuple<"8">
      scf.for %i = %$c11 to %$t32 step %$c15 : i32 {
        %$t33 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %$t34 = cute.crd2idx(%$t33, %$t29) : (!cute.coord<"?">, !cute.layout<"8:?{i64}">) -> !cute.int_tuple<"?{i64}">
        %$t35 = cute.get_scalars(%$t34) : !cute.int_tuple<"?{i64}">
        %from = llvm.getelementptr %$t30[%$t35] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %$t36 = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,_)">
        %$t37 = cute.slice(%$t10, %$t36) : !cute.layout<"(8,32):(32,1)">, !cute.coord<"(?,_)">
        %$t38 = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,0)">
        %$t39 = cute.crd2idx(%$t38, %$t10) : (!cute.coord<"(?,0)">, !cute.layout<"(8,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t40 = cute.get_scalars(%$t39) : !cute.int_tuple<"?">
        %$t41 = arith.constant 0 : i32
        %$t42 = arith.addi %$t41, %$t40 : i32
        %$t43 = cute.make_int_tuple(%$t42) : (i32) -> !cute.int_tuple<"?">
        %$t44 = cute.make_composed_layout(%$t12, %$t43, %$t37) : !cute.composed_layout<"S<2,0,3> o ? o (32):(1)">
        %$t45 = builtin.unrealized_conversion_cast %$t14 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
        %row = cute.make_view(%$t45, %$t44) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o ? o (32):(1)">
        %$t46 = cute.make_coord(%lane) : (i32) -> !cute.coord<"?">
        %$t47 = cute.crd2idx(%$t46, %$t44) : (!cute.coord<"?">, !cute.composed_layout<"S<2,0,3> o ? o (32):(1)">) -> !cute.int_tuple<"?">
        %$t48 = cute.get_scalars(%$t47) : !cute.int_tuple<"?">
        %to = llvm.getelementptr %$t14[%$t48] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %value = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        llvm.store %value, %to {alignment = 4 : i64} : f32, !llvm.ptr<3>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.barrier0
      %$t49 = cute.static : !cute.tile<"[4:1;8:1]">
      %$t50 = cute.zipped_divide(%$t10, %$t49) : !cute.layout<"(8,32):(32,1)">, !cute.tile<"[4:1;8:1]">
      %$t51 = cute.get(%$t50) <{mode = [1]}> : !cute.layout<"((4,8),(2,4)):((32,1),(128,8))"> -> !cute.layout<"(2,4):(128,8)">
      %$t52 = cute.get(%$t50) <{mode = [0]}> : !cute.layout<"((4,8),(2,4)):((32,1),(128,8))"> -> !cute.layout<"(4,8):(32,1)">
      %$t53 = cute.make_coord(%$c15, %$c21) : (i32, i32) -> !cute.coord<"(?,?)">
      %$t54 = cute.crd2idx(%$t53, %$t51) : (!cute.coord<"(?,?)">, !cute.layout<"(2,4):(128,8)">) -> !cute.int_tuple<"?">
      %$t55 = cute.get_scalars(%$t54) : !cute.int_tuple<"?">
      %$t56 = arith.constant 0 : i32
      %$t57 = arith.addi %$t56, %$t55 : i32
      %$t58 = cute.make_int_tuple(%$t57) : (i32) -> !cute.int_tuple<"?">
      %$t59 = cute.make_composed_layout(%$t12, %$t58, %$t52) : !cute.composed_layout<"S<2,0,3> o ? o (4,8):(32,1)">
      %$t60 = builtin.unrealized_conversion_cast %$t14 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
      %narrow = cute.make_view(%$t60, %$t59) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o ? o (4,8):(32,1)">
      %$t61 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(3,?)">
      %$t62 = cute.crd2idx(%$t61, %$t59) : (!cute.coord<"(3,?)">, !cute.composed_layout<"S<2,0,3> o ? o (4,8):(32,1)">) -> !cute.int_tuple<"?">
      %$t63 = cute.get_scalars(%$t62) : !cute.int_tuple<"?">
      %corner = llvm.getelementptr %$t14[%$t63] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %low = arith.cmpi slt, %lane, %$c24 : i32
      %$t64 = arith.constant 0.0 : f32
      %seen = scf.if %low -> (f32) {
        %$t65 = llvm.load %corner {alignment = 4 : i64} : !llvm.ptr<3> -> f32
        scf.yield %$t65 : f32
      } else {
        scf.yield %$t64 : f32
      }
      %$t66 = cute.static : !cute.coord<"6">
      cute.memref.store(%held, %$t66, %seen) : (!cute.memref<f32, rmem, align<16>, "(8):(1)">, !cute.coord<"6">, f32) -> ()
      %$t67 = cute.memref.load(%held, %$t66) : (!cute.memref<f32, rmem, align<16>, "(8):(1)">, !cute.coord<"6">) -> f32
      %$t68 = cute.static : !cute.layout<"(32,16):(16,1)">
      %turned = cute.composition(%out, %$t68) : (!cute.memref<f32, gmem, align<4>, "(16,32):(32,1)">, !cute.layout<"(32,16):(16,1)">) -> !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">
      %$t69 = cute.get_iter(%turned) : !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">
      %$t70 = cute.get_layout(%turned) : !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">
      %$t71 = builtin.unrealized_conversion_cast %$t69 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t72 = cute.make_coord(%block) : (i32) -> !cute.coord<"(_,?)">
      %line = cute.slice(%turned, %$t72) : !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">, !cute.coord<"(_,?)">
      %$t73 = cute.get_iter(%line) : !cute.memref<f32, gmem, align<4>, "(32):(1)">
      %$t74 = cute.get_layout(%line) : !cute.memref<f32, gmem, align<4>, "(32):(1)">
      %$t75 = builtin.unrealized_conversion_cast %$t73 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t76 = cute.make_coord(%lane) : (i32) -> !cute.coord<"?">
      %$t77 = cute.crd2idx(%$t76, %$t74) : (!cute.coord<"?">, !cute.layout<"(32):(1)">) -> !cute.int_tuple<"?">
      %$t78 = cute.get_scalars(%$t77) : !cute.int_tuple<"?">
      %place = llvm.getelementptr %$t75[%$t78] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %$t67, %place {alignment = 4 : i64} : f32, !llvm.ptr<1>
      %$t79 = cute.recast_layout<64, 32>(%$t7) : !cute.layout<"(16,32):(32,1)"> to !cute.layout<"(16,16):(16,1)">
      %$t80 = builtin.unrealized_conversion_cast %y : !llvm.ptr<1> to !cute.ptr<i64, gmem, align<8>>
      %pairs = cute.make_view(%$t80, %$t79) : !cute.memref<i64, gmem, align<8>, "(16,16):(16,1)">
      %$t81 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(2,?)">
      %$t82 = cute.crd2idx(%$t81, %$t79) : (!cute.coord<"(2,?)">, !cute.layout<"(16,16):(16,1)">) -> !cute.int_tuple<"?">
      %$t83 = cute.get_scalars(%$t82) : !cute.int_tuple<"?">
      %pair = llvm.getelementptr %y[%$t83] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
      %half = arith.cmpi slt, %lane, %$c34 : i32
      scf.if %half {
        llvm.store %$c36, %pair {alignment = 8 : i64} : i64, !llvm.ptr<1>
      }
      %$t84 = cute.recast_layout<16, 32>(%$t10) : !cute.layout<"(8,32):(32,1)"> to !cute.layout<"(8,64):(64,1)">
      %$t85 = cute.static : !cute.swizzle<"S<2,1,3>">
      %$t86 = arith.constant 2 : i32
      %$t87 = arith.muli %$t56, %$t86 : i32
      %$t88 = cute.make_int_tuple(%$t87) : (i32) -> !cute.int_tuple<"?">
      %$t89 = cute.make_composed_layout(%$t85, %$t88, %$t84) : !cute.composed_layout<"S<2,1,3> o ? o (8,64):(64,1)">
      %$t90 = builtin.unrealized_conversion_cast %$t14 : !llvm.ptr<3> to !cute.ptr<f16, smem, align<2>>
      %bytes = cute.make_view(%$t90, %$t89) : !cute.memref<f16, smem, align<2>, "S<2,1,3> o ? o (8,64):(64,1)">
      %$t91 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(1,?)">
      %$t92 = cute.crd2idx(%$t91, %$t89) : (!cute.coord<"(1,?)">, !cute.composed_layout<"S<2,1,3> o ? o (8,64):(64,1)">) -> !cute.int_tuple<"?">
      %$t93 = cute.get_scalars(%$t92) : !cute.int_tuple<"?">
      %byte = llvm.getelementptr %$t14[%$t93] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
      %small = llvm.load %byte {alignment = 2 : i64} : !llvm.ptr<3> -> f16
      %wide = arith.extf %small : f16 to f32
      %$t94 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(15,?)">
      %$t95 = cute.crd2idx(%$t94, %$t7) : (!cute.coord<"(15,?)">, !cute.layout<"(16,32):(32,1)">) -> !cute.int_tuple<"?">
      %$t96 = cute.get_scalars(%$t95) : !cute.int_tuple<"?">
      %spot = llvm.getelementptr %y[%$t96] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %wide, %spot {alignment = 4 : i64} : f32, !llvm.ptr<1>
      cuda.return
    }
  }
}
