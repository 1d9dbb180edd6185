module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    cuda.kernel @flow(%$p_x: !llvm.ptr, %$p_bytes: !llvm.ptr, %$p_y: !llvm.ptr, %n: i32, %scale: f32, %$p_on: i8) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 64, 1, 1>, nvvm.minctasm = 2 : i32} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %bytes = llvm.addrspacecast %$p_bytes : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$t0 = arith.constant 0 : i8
      %on = arith.cmpi ne, %$p_on, %$t0 : i8
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c13 = arith.constant 8 : i32
      %$c17 = arith.constant 0x0000 : f16
      %$c21 = arith.constant 0 : i32
      %$c22 = arith.constant 4 : i32
      %$c23 = arith.constant 1 : i32
      %$c24 = arith.constant 2 : i32
      %$c33 = arith.constant 3 : i32
      %$c39 = arith.constant 0 : i64
      %$c40 = arith.constant 3 : i64
      %$c41 = arith.constant 1 : i64
      %tail = llvm.getelementptr %$shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %base = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %words = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %wide = arith.extsi %thread : i32 to i64
      %at = arith.muli %thread, %$c13 : i32
      %px = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
      %inside = arith.cmpi slt, %thread, %n : i32
      %none = vector.broadcast %$c17 : f16 to vector<8xf16>
      %row = scf.if %inside -> (vector<8xf16>) {
        %$t1 = llvm.inline_asm has_side_effects "ld.global.L1::evict_first.L2::128B.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l,~{memory}" %px : (!llvm.ptr<1>) -> !llvm.struct<(i32, i32, i32, i32)>
        %$t2 = llvm.extractvalue %$t1[0] : !llvm.struct<(i32, i32, i32, i32)>
        %$t3 = llvm.extractvalue %$t1[1] : !llvm.struct<(i32, i32, i32, i32)>
        %$t4 = llvm.extractvalue %$t1[2] : !llvm.struct<(i32, i32, i32, i32)>
        %$t5 = llvm.extractvalue %$t1[3] : !llvm.struct<(i32, i32, i32, i32)>
        %$t6 = vector.from_elements %$t2, %$t3, %$t4, %$t5 : vector<4xi32>
        %$t7 = vector.bitcast %$t6 : vector<4xi32> to vector<8xf16>
        scf.yield %$t7 : vector<8xf16>
      } else {
        scf.yield %none : vector<8xf16>
      }
      %slot = llvm.getelementptr %base[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
      llvm.store %row, %slot {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
      nvvm.barrier0
      %first, %second = scf.for %i = %$c21 to %$c22 step %$c23 iter_args(%a = %$c23, %b = %$c24) -> (i32, i32) : i32 {
        %sum = arith.addi %a, %b : i32
        scf.yield %b, %sum : i32, i32
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      %left = scf.while (%v = %first) : (i32) -> (i32) {
        %more = arith.cmpi sgt, %v, %$c21 : i32
        %less = arith.subi %v, %$c33 : i32
        scf.condition(%more) %less : i32
      } do {
      ^bb0(%w: i32):
        scf.yield %w : i32
      } attributes {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      %chosen = scf.if %on -> (i32) {
        scf.yield %left : i32
      } else {
        %other = arith.subi %second, %left : i32
        scf.yield %other : i32
      }
      scf.for %k = %$c39 to %$c40 step %$c41 : i64 {
        scf.if %on {
          %$t8 = arith.constant -1 : i32
          nvvm.bar.warp.sync %$t8 : i32
        }
        scf.yield
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      nvvm.barrier0
      %place = llvm.getelementptr %words[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %chosen, %place {alignment = 4 : i64} : i32, !llvm.ptr<3>
      %pb = llvm.getelementptr %bytes[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %eight = llvm.load %pb {alignment = 8 : i64} : !llvm.ptr<1> -> vector<8xi8>
      %low = vector.extract %eight[0] : i8 from vector<8xi8>
      %unsigned = arith.extui %low : i8 to i32
      scf.if %inside {
        llvm.store %eight, %pb {alignment = 8 : i64} : vector<8xi8>, !llvm.ptr<1>
      }
      %$t9 = arith.constant 1 : i32
      %$t10 = arith.constant 64 : i32
      nvvm.barrier id = %$t9 number_of_threads = %$t10
      %back = llvm.load %place {alignment = 4 : i64} : !llvm.ptr<3> -> i32
      %total = arith.addi %back, %unsigned : i32
      %py = llvm.getelementptr %y[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      %$t11 = llvm.bitcast %total : i32 to i32
      llvm.inline_asm has_side_effects "st.global.cs.b32 [$0], $1;", "l,r,~{memory}" %py, %$t11 : (!llvm.ptr<1>, i32) -> ()
      %pt = llvm.getelementptr %tail[%$c21] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %zero = arith.cmpi eq, %thread, %$c21 : i32
      scf.if %zero {
        llvm.store %total, %pt {alignment = 4 : i64} : i32, !llvm.ptr<3>
      }
      cuda.return
    }
  }
}
