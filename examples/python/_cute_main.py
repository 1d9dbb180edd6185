"""What the two examples of NVIDIA's CuTe DSL do when they are run: train on a GPU, or compile without one."""

import argparse
from collections.abc import Callable

import tiki as tk


def main(description: str | None, train: Callable[[int], object], compile_only: Callable[[], object], steps: int) -> None:
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=steps)
    given = parser.parse_args()
    if tk.is_available(tk.gpu):
        train(given.steps)
    else:
        compile_only()
        print("no GPU: compiled only")
