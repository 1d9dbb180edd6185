"""Kernels in the words of CuTe: tensors with layouts, tiles, warps."""
