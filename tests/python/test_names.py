"""How much of MLX's surface is there. tests/python/mlx_names.txt is the list, read from the installed MLX.

A name counts when it is there; whether it does what MLX's does is what the other tests are for.
"""

import importlib
import pathlib

NAMES = pathlib.Path(__file__).with_name("mlx_names.txt").read_text().split()
METAL_ONLY = ("metal.", "cuda.", "fast.metal_kernel", "fast.cuda_kernel", "fast.precompiled_cuda_kernel")

# The share of names that must be there, in percent; it may only rise.
FLOOR = {"core": 93, "nn": 95, "optimizers": 100, "all": 94}


def area_of(name):
    first = name.split(".")[0]
    return {"nn": "nn", "optimizers": "optimizers", "utils": "nn"}.get(first, "core")


def is_there(name):
    parts = name.split(".")
    value = importlib.import_module("tiki")
    for part in parts:
        if not hasattr(value, part):
            try:
                value = importlib.import_module(f"{value.__name__}.{part}")
                continue
            except (ImportError, AttributeError):
                return False
        value = getattr(value, part)
    return True


def test_share_of_names(capsys):
    counts = {area: [0, 0] for area in FLOOR}
    missing = []
    for name in NAMES:
        if name.startswith(METAL_ONLY):
            continue
        found = is_there(name)
        for area in (area_of(name), "all"):
            counts[area][0] += found
            counts[area][1] += 1
        if not found:
            missing.append(name)
    with capsys.disabled():
        print()
        for area, (found, total) in counts.items():
            print(f"  MLX names, {area}: {found} of {total} ({100 * found / total:.1f} %)")
    for area, (found, total) in counts.items():
        assert 100 * found / total >= FLOOR[area], (area, missing)


def test_the_list_is_that_of_the_installed_mlx():
    import mlx.core as mx

    names = set(NAMES)
    missing = [n for n in dir(mx) if not n.startswith("_") and n not in names]
    assert not missing
