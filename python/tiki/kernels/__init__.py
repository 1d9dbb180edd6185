"""Kernels written in Python: see tiki.kernels.cute.lib and docs/kernel-authoring.md.

`parse` reads a kernel from its text; a kernel has `.text`, `.name`, `.form`, `.params`, `.verify()` and `.launch()`.
"""

from __future__ import annotations

from tiki import _core

Kernel = _core.Kernel


def parse(text: str, source: str | None = None) -> Kernel:
    """A kernel from `.tk` text, verified; `source` names it in messages."""
    kernel: Kernel = _core._kernel["parse"](text, source)
    return kernel


def operations() -> list[tuple[str, str]]:
    """The operations of kernels with a line about each."""
    return [(row[0], row[5]) for row in _core._kernel["operations"]()]
