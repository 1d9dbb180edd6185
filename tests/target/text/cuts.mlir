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
      %$t10 = cute.static : !cute.stride<"(32,1)">
      %$t11 = cute.make_layout(%$t9, %$t10) : !cute.layout<"(8,32):(32,1)">
      %$t12 = cute.static : !cute.int_tuple<"0">
      %$t13 = cute.static : !cute.swizzle<"S<2,0,3>">
      %$t14 = cute.make_composed_layout(%$t13, %$t12, %$t11) : !cute.composed_layout<"S<2,0,3> o 0 o (8,32):(32,1)">
      %$t15 = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %$t16 = builtin.unrealized_conversion_cast %$t15 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
      %near = cute.make_view(%$t16, %$t14) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o 0 o (8,32):(32,1)">
      %$t17 = cute.make_coord(%block, %$c11) : (i32, i32) -> !cute.coord<"(?,?)">
      %$t18 = cute.static : !cute.tile<"[8:1;32:1]">
      %high = cute.local_tile(%in, %$t18, %$t17) : (!cute.memref<f32, gmem, align<4>, "(?,32):(?{i64},1)">, !cute.tile<"[8:1;32:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">
      %$t19 = cute.get_iter(%high) : !cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">
      %$t20 = cute.get_layout(%high) : !cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">
      %$t21 = builtin.unrealized_conversion_cast %$t19 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t22 = cute.static : !cute.layout<"(32,8):(8,1)">
      %$t23 = cute.composition(%high, %$t22) : (!cute.memref<f32, gmem, align<4>, "(8,32):(?{i64},1)">, !cute.layout<"(32,8):(8,1)">) -> !cute.memref<f32, gmem, align<4>, "(32,8):(1,?{i64})">
      %$t24 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(?,_)">
      %$t25 = cute.slice(%$t23, %$t24) : !cute.memref<f32, gmem, align<4>, "(32,8):(1,?{i64})">, !cute.coord<"(?,_)">
      %$t26 = cute.get_iter(%$t25) : !cute.memref<f32, gmem, align<4>, "(8):(?{i64})">
      %$t27 = cute.get_layout(%$t25) : !cute.memref<f32, gmem, align<4>, "(8):(?{i64})">
      %$t28 = cute.get(%$t27) <{mode = [0]}> : !cute.layout<"(8):(?{i64})"> -> !cute.layout<"8:?{i64}">
      %own = cute.make_view(%$t26, %$t28) : !cute.memref<f32, gmem, align<4>, "8:?{i64}">
      %$t29 = cute.get_iter(%own) : !cute.memref<f32, gmem, align<4>, "8:?{i64}">
      %$t30 = cute.get_layout(%own) : !cute.memref<f32, gmem, align<4>, "8:?{i64}">
      %$t31 = builtin.unrealized_conversion_cast %$t29 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t32 = cute.size(%$t30) <{mode = [0]}> : (!cute.layout<"8:?{i64}">) -> !cute.int_tuple<"8">
      %$t33 = cute.get_scalars(%$t32) : !cute.int_tuple<"8">
      scf.for %i = %$c11 to %$t33 step %$c15 : i32 {
        %$t34 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %$t35 = cute.crd2idx(%$t34, %$t30) : (!cute.coord<"?">, !cute.layout<"8:?{i64}">) -> !cute.int_tuple<"?{i64}">
        %$t36 = cute.get_scalars(%$t35) : !cute.int_tuple<"?{i64}">
        %from = llvm.getelementptr %$t31[%$t36] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %$t37 = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,_)">
        %$t38 = cute.slice(%$t11, %$t37) : !cute.layout<"(8,32):(32,1)">, !cute.coord<"(?,_)">
        %$t39 = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,0)">
        %$t40 = cute.crd2idx(%$t39, %$t11) : (!cute.coord<"(?,0)">, !cute.layout<"(8,32):(32,1)">) -> !cute.int_tuple<"?">
        %$t41 = cute.get_scalars(%$t40) : !cute.int_tuple<"?">
        %$t42 = arith.constant 0 : i32
        %$t43 = arith.addi %$t42, %$t41 : i32
        %$t44 = cute.make_int_tuple(%$t43) : (i32) -> !cute.int_tuple<"?">
        %$t45 = cute.make_composed_layout(%$t13, %$t44, %$t38) : !cute.composed_layout<"S<2,0,3> o ? o (32):(1)">
        %$t46 = builtin.unrealized_conversion_cast %$t15 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
        %row = cute.make_view(%$t46, %$t45) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o ? o (32):(1)">
        %$t47 = cute.make_coord(%lane) : (i32) -> !cute.coord<"?">
        %$t48 = cute.crd2idx(%$t47, %$t45) : (!cute.coord<"?">, !cute.composed_layout<"S<2,0,3> o ? o (32):(1)">) -> !cute.int_tuple<"?">
        %$t49 = cute.get_scalars(%$t48) : !cute.int_tuple<"?">
        %to = llvm.getelementptr %$t15[%$t49] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %value = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        llvm.store %value, %to {alignment = 4 : i64} : f32, !llvm.ptr<3>
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.barrier0
      %$t50 = cute.static : !cute.tile<"[4:1;8:1]">
      %$t51 = cute.zipped_divide(%$t11, %$t50) : !cute.layout<"(8,32):(32,1)">, !cute.tile<"[4:1;8:1]">
      %$t52 = cute.get(%$t51) <{mode = [1]}> : !cute.layout<"((4,8),(2,4)):((32,1),(128,8))"> -> !cute.layout<"(2,4):(128,8)">
      %$t53 = cute.get(%$t51) <{mode = [0]}> : !cute.layout<"((4,8),(2,4)):((32,1),(128,8))"> -> !cute.layout<"(4,8):(32,1)">
      %$t54 = cute.make_coord(%$c15, %$c21) : (i32, i32) -> !cute.coord<"(?,?)">
      %$t55 = cute.crd2idx(%$t54, %$t52) : (!cute.coord<"(?,?)">, !cute.layout<"(2,4):(128,8)">) -> !cute.int_tuple<"?">
      %$t56 = cute.get_scalars(%$t55) : !cute.int_tuple<"?">
      %$t57 = arith.constant 0 : i32
      %$t58 = arith.addi %$t57, %$t56 : i32
      %$t59 = cute.make_int_tuple(%$t58) : (i32) -> !cute.int_tuple<"?">
      %$t60 = cute.make_composed_layout(%$t13, %$t59, %$t53) : !cute.composed_layout<"S<2,0,3> o ? o (4,8):(32,1)">
      %$t61 = builtin.unrealized_conversion_cast %$t15 : !llvm.ptr<3> to !cute.ptr<f32, smem, align<4>>
      %narrow = cute.make_view(%$t61, %$t60) : !cute.memref<f32, smem, align<4>, "S<2,0,3> o ? o (4,8):(32,1)">
      %$t62 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(3,?)">
      %$t63 = cute.crd2idx(%$t62, %$t60) : (!cute.coord<"(3,?)">, !cute.composed_layout<"S<2,0,3> o ? o (4,8):(32,1)">) -> !cute.int_tuple<"?">
      %$t64 = cute.get_scalars(%$t63) : !cute.int_tuple<"?">
      %corner = llvm.getelementptr %$t15[%$t64] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %low = arith.cmpi slt, %lane, %$c24 : i32
      %$t65 = arith.constant 0.0 : f32
      %seen = scf.if %low -> (f32) {
        %$t66 = llvm.load %corner {alignment = 4 : i64} : !llvm.ptr<3> -> f32
        scf.yield %$t66 : f32
      } else {
        scf.yield %$t65 : f32
      }
      %$t67 = cute.static : !cute.coord<"6">
      cute.memref.store(%held, %$t67, %seen) : (!cute.memref<f32, rmem, align<16>, "(8):(1)">, !cute.coord<"6">, f32) -> ()
      %$t68 = cute.static : !cute.coord<"6">
      %$t69 = cute.memref.load(%held, %$t68) : (!cute.memref<f32, rmem, align<16>, "(8):(1)">, !cute.coord<"6">) -> f32
      %$t70 = cute.static : !cute.layout<"(32,16):(16,1)">
      %turned = cute.composition(%out, %$t70) : (!cute.memref<f32, gmem, align<4>, "(16,32):(32,1)">, !cute.layout<"(32,16):(16,1)">) -> !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">
      %$t71 = cute.get_iter(%turned) : !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">
      %$t72 = cute.get_layout(%turned) : !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">
      %$t73 = builtin.unrealized_conversion_cast %$t71 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t74 = cute.make_coord(%block) : (i32) -> !cute.coord<"(_,?)">
      %line = cute.slice(%turned, %$t74) : !cute.memref<f32, gmem, align<4>, "(32,16):(1,32)">, !cute.coord<"(_,?)">
      %$t75 = cute.get_iter(%line) : !cute.memref<f32, gmem, align<4>, "(32):(1)">
      %$t76 = cute.get_layout(%line) : !cute.memref<f32, gmem, align<4>, "(32):(1)">
      %$t77 = builtin.unrealized_conversion_cast %$t75 : !cute.ptr<f32, gmem, align<4>> to !llvm.ptr<1>
      %$t78 = cute.make_coord(%lane) : (i32) -> !cute.coord<"?">
      %$t79 = cute.crd2idx(%$t78, %$t76) : (!cute.coord<"?">, !cute.layout<"(32):(1)">) -> !cute.int_tuple<"?">
      %$t80 = cute.get_scalars(%$t79) : !cute.int_tuple<"?">
      %place = llvm.getelementptr %$t77[%$t80] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %$t69, %place {alignment = 4 : i64} : f32, !llvm.ptr<1>
      %$t81 = cute.recast_layout<64, 32>(%$t7) : !cute.layout<"(16,32):(32,1)"> to !cute.layout<"(16,16):(16,1)">
      %$t82 = builtin.unrealized_conversion_cast %y : !llvm.ptr<1> to !cute.ptr<i64, gmem, align<8>>
      %pairs = cute.make_view(%$t82, %$t81) : !cute.memref<i64, gmem, align<8>, "(16,16):(16,1)">
      %$t83 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(2,?)">
      %$t84 = cute.crd2idx(%$t83, %$t81) : (!cute.coord<"(2,?)">, !cute.layout<"(16,16):(16,1)">) -> !cute.int_tuple<"?">
      %$t85 = cute.get_scalars(%$t84) : !cute.int_tuple<"?">
      %pair = llvm.getelementptr %y[%$t85] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
      %half = arith.cmpi slt, %lane, %$c34 : i32
      scf.if %half {
        llvm.store %$c36, %pair {alignment = 8 : i64} : i64, !llvm.ptr<1>
      }
      %$t86 = cute.recast_layout<16, 32>(%$t11) : !cute.layout<"(8,32):(32,1)"> to !cute.layout<"(8,64):(64,1)">
      %$t87 = cute.static : !cute.swizzle<"S<2,1,3>">
      %$t88 = arith.constant 0 : i32
      %$t89 = arith.constant 2 : i32
      %$t90 = arith.muli %$t88, %$t89 : i32
      %$t91 = cute.make_int_tuple(%$t90) : (i32) -> !cute.int_tuple<"?">
      %$t92 = cute.make_composed_layout(%$t87, %$t91, %$t86) : !cute.composed_layout<"S<2,1,3> o ? o (8,64):(64,1)">
      %$t93 = builtin.unrealized_conversion_cast %$t15 : !llvm.ptr<3> to !cute.ptr<f16, smem, align<2>>
      %bytes = cute.make_view(%$t93, %$t92) : !cute.memref<f16, smem, align<2>, "S<2,1,3> o ? o (8,64):(64,1)">
      %$t94 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(1,?)">
      %$t95 = cute.crd2idx(%$t94, %$t92) : (!cute.coord<"(1,?)">, !cute.composed_layout<"S<2,1,3> o ? o (8,64):(64,1)">) -> !cute.int_tuple<"?">
      %$t96 = cute.get_scalars(%$t95) : !cute.int_tuple<"?">
      %byte = llvm.getelementptr %$t15[%$t96] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
      %small = llvm.load %byte {alignment = 2 : i64} : !llvm.ptr<3> -> f16
      %wide = arith.extf %small : f16 to f32
      %$t97 = cute.make_coord(%lane) : (i32) -> !cute.coord<"(15,?)">
      %$t98 = cute.crd2idx(%$t97, %$t7) : (!cute.coord<"(15,?)">, !cute.layout<"(16,32):(32,1)">) -> !cute.int_tuple<"?">
      %$t99 = cute.get_scalars(%$t98) : !cute.int_tuple<"?">
      %spot = llvm.getelementptr %y[%$t99] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %wide, %spot {alignment = 4 : i64} : f32, !llvm.ptr<1>
      cuda.return
    }
  }
}
