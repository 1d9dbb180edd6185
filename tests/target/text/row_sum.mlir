module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global external @tiki_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    cuda.kernel @row_sum(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %rows: i32, %columns: i32) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %$shared = llvm.mlir.addressof @tiki_shared : !llvm.ptr<3>
      %$c10 = arith.constant 128 : i32
      %$c11 = arith.constant 0x00000000 : f32
      %$c18 = arith.constant 0 : i32
      %$c19 = arith.constant 5 : i32
      %$c20 = arith.constant 1 : i32
      %$c27 = arith.constant 31 : i32
      %slots = llvm.getelementptr %$shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %row = nvvm.read.ptx.sreg.ctaid.x : i32
      %begin = arith.muli %row, %columns : i32
      %source = llvm.getelementptr %x[%begin] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %own = scf.for %i = %thread to %columns step %$c10 iter_args(%sum = %$c11) -> (f32) : i32 {
        %p = llvm.getelementptr %source[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %a = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %more = arith.addf %sum, %a : f32
        scf.yield %more : f32
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      %warp_sum = scf.for %s = %$c18 to %$c19 step %$c20 iter_args(%v = %own) -> (f32) : i32 {
        %$t0 = arith.constant 32 : i32
        %$t1 = arith.cmpi ult, %s, %$t0 : i32
        %$t2 = arith.constant 0 : i32
        %$t3 = arith.select %$t1, %s, %$t2 : i32
        %$t4 = arith.shli %$c20, %$t3 : i32
        %distance = arith.select %$t1, %$t4, %$t2 : i32
        %$t5 = arith.constant -1 : i32
        %$t6 = arith.constant 31 : i32
        %$t7 = nvvm.shfl.sync bfly %$t5, %v, %distance, %$t6 : f32 -> f32
        %both = arith.addf %v, %$t7 : f32
        scf.yield %both : f32
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      %lane = arith.andi %thread, %$c27 : i32
      %$t8 = arith.constant 5 : i32
      %warp = arith.shrui %thread, %$t8 : i32
      %leads = arith.cmpi eq, %lane, %$c18 : i32
      scf.if %leads {
        %slot = llvm.getelementptr %slots[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %warp_sum, %slot {alignment = 4 : i64} : f32, !llvm.ptr<3>
      }
      nvvm.barrier0
      %first = arith.cmpi eq, %thread, %$c18 : i32
      scf.if %first {
        %all = llvm.load %slots {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
        %s0 = vector.extract %all[0] : f32 from vector<4xf32>
        %s1 = vector.extract %all[1] : f32 from vector<4xf32>
        %s2 = vector.extract %all[2] : f32 from vector<4xf32>
        %s3 = vector.extract %all[3] : f32 from vector<4xf32>
        %low = arith.addf %s0, %s1 : f32
        %high = arith.addf %s2, %s3 : f32
        %total = arith.addf %low, %high : f32
        %py = llvm.getelementptr %y[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %total, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }
      cuda.return
    }
  }
}
