module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @vector_add(%$p_x: !llvm.ptr, %$p_y: !llvm.ptr, %$p_z: !llvm.ptr, %n: i32) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 256, 1, 1>} {
      %x = llvm.addrspacecast %$p_x : !llvm.ptr to !llvm.ptr<1>
      %y = llvm.addrspacecast %$p_y : !llvm.ptr to !llvm.ptr<1>
      %z = llvm.addrspacecast %$p_z : !llvm.ptr to !llvm.ptr<1>
      %$c6 = arith.constant 256 : i32
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %first = arith.muli %block, %$c6 : i32
      %i = arith.addi %first, %thread : i32
      %inside = arith.cmpi slt, %i, %n : i32
      scf.if %inside {
        %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %pz = llvm.getelementptr %z[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %a = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %b = llvm.load %py {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %sum = arith.addf %a, %b : f32
        llvm.store %sum, %pz {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }
      cuda.return
    }
  }
}
