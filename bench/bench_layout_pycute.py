"""The layout algebra beside pycute on the same operands, in turns.

pycute is the algebra in pure Python that comes with NVIDIA's package `nvidia-cutlass`; without it this bench says so and
measures nothing. `pip install --no-deps nvidia-cutlass` is enough. A figure is the best of the rounds; the ratio is
pycute's time over Tiki's, of C against Python, which is what a tuner that is written in Python saves.
"""
import os
import re
import subprocess
import sys
import time

try:
    import pycute
except ImportError:
    print("layout: pycute is not installed, nothing to compare with")
    sys.exit(0)

PROGRAM = os.path.join(os.environ.get("TIKI_BUILD", "build"), "bench", "bench_layout")
ROUNDS, BURSTS, CALLS, LEAST = 4, 40, 20, 100


def layout_of(text):
    shape, stride = (eval(re.sub(r"(\d)\)", r"\1,)", part)) for part in text.split(":"))
    return pycute.Layout(shape, stride)


def load():
    sets = {"left": [], "right": [], "ragged": []}
    for line in subprocess.run([PROGRAM, "operands"], capture_output=True, text=True, check=True).stdout.splitlines():
        name, text = line.split()
        sets[name].append(layout_of(text))
    return sets


def measure(call):
    """The best of many short bursts, as bench_layout measures."""
    best = float("inf")
    for _ in range(BURSTS):
        start = time.perf_counter()
        for i in range(CALLS):
            call(i & 3)
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e9


def tiki():
    output = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    return {name.strip(): float(ns) for name, ns in re.findall(r"^layout (.{36}) +([\d.]+) ns", output, re.M)}


def main():
    operands = load()
    left, right, ragged = operands["left"], operands["right"], operands["ragged"]
    tile = pycute.Layout((4, 2), (2, 1))
    calls = {
        "composition of two rank-3 layouts": lambda i: pycute.composition(left[i], right[i]),
        "coalesce": lambda i: pycute.coalesce(ragged[i]),
        "evaluation at an integer": lambda i: left[i](1234),
        "complement": lambda i: pycute.complement(right[i], 65536),
        "right_inverse": lambda i: pycute.right_inverse(ragged[i]),
        "left_inverse": lambda i: pycute.left_inverse(left[i]),
        "zipped_divide by a rank-3 tiler": lambda i: pycute.zipped_divide(left[i], (8, 8, 2)),
        "logical_product": lambda i: pycute.logical_product(right[i], tile),
    }
    ours, theirs = {}, {}
    for _ in range(ROUNDS):
        for name, ns in tiki().items():
            ours[name] = min(ns, ours.get(name, ns))
        for name, call in calls.items():
            ns = measure(call)
            theirs[name] = min(ns, theirs.get(name, ns))
    for name in calls:
        ratio = theirs[name] / ours[name]
        note = "" if ratio >= LEAST else "   MISSED"
        print(f"layout {name:36} {ours[name]:8.1f} ns   pycute {theirs[name] / 1e3:8.1f} us   {ratio:6.0f} times{note}")


main()
