"""Stands in for NVIDIA's package in the tests: see dsl_packages/cutlass/_mlir/_mlir_libs/_cutlass_ir.py."""
