"""How much of MLX's surface is there: a name counts when its cases (name_cases.py) run on Tiki and MLX from the
same arguments and give the same. mlx_names.txt is the list of names, read from the installed MLX."""

import collections
import pathlib
import re

import mlx.core as mx
import numpy as np
import pytest

import mlx_names
import name_cases
import name_cases_nn
import tiki as tk
from name_world import World

LIST = pathlib.Path(__file__).with_name("mlx_names.txt")
NAMES = LIST.read_text().split()
TABLES = (name_cases.CORE, name_cases.RANDOM, name_cases.LINALG, name_cases.ARRAY, name_cases_nn.LAYERS,
          name_cases_nn.OPTIMIZERS, name_cases_nn.TREES)  # fmt: skip

# The share of names that must be there, in percent.
FLOOR = {"core": 100, "nn": 100, "optimizers": 100, "all": 100}


def read_cases():
    """Name -> expressions, each with its tolerance."""
    cases = collections.defaultdict(list)
    for line in filter(None, "".join(TABLES).splitlines()):
        names, text = line.split(": ", 1)
        text, _, tolerance = text.partition(" ~ ")
        for name in names.split():
            *place, last = name.split(".")
            words = {"{n}": last, "{w}": name, "{o}": place[-1] if place else "", "{p}": place_of(place)}
            cases[name].append((re.sub(r"\{[nwop]\}", lambda found: words[found[0]], text), float(tolerance or 2e-5)))
    return cases


def place_of(place):
    return {"utils": "utils", "nn.utils": "nn.utils", "optimizers": "optim"}.get(".".join(place), "m")


def name_of(dtype):
    return str(dtype).split(".")[-1].removesuffix("_")


def as_numpy(a):
    return np.array(a.astype(tk.float32) if isinstance(a, tk.array) and a.dtype == tk.bfloat16 else
                    a.astype(mx.float32) if isinstance(a, mx.array) and a.dtype == mx.bfloat16 else a)  # fmt: skip


def same(own, theirs, tolerance):
    """Raises AssertionError where two results differ."""
    if isinstance(theirs, mx.array):
        assert isinstance(own, tk.array), type(own)
        assert (name_of(own.dtype), own.shape) == (name_of(theirs.dtype), theirs.shape)
        own, theirs = as_numpy(own), as_numpy(theirs)
    if isinstance(theirs, np.ndarray):
        assert (own.dtype, own.shape) == (theirs.dtype, theirs.shape)
        near = np.allclose(own, theirs, rtol=tolerance, atol=tolerance * max(1, np.abs(theirs).max(initial=0)), equal_nan=True)
        assert near if theirs.dtype.kind in "fc" else np.array_equal(own, theirs), (own, theirs)
    elif isinstance(theirs, dict):
        assert own.keys() == theirs.keys(), (list(own), list(theirs))
        for key in theirs:
            same(own[key], theirs[key], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert type(own) is type(theirs) and len(own) == len(theirs), (own, theirs)
        for a, b in zip(own, theirs):
            same(a, b, tolerance)
    elif isinstance(theirs, mx.Dtype):
        assert isinstance(own, tk.Dtype) and name_of(own) == name_of(theirs)
    elif isinstance(theirs, float):
        assert type(own) is float and own == pytest.approx(theirs, rel=tolerance, nan_ok=True), (own, theirs)
    else:
        assert type(own) is type(theirs) and own == theirs, (own, theirs)


def evaluate(package, expression):
    world = World(package)
    result = eval(expression, world.names())
    world.m.eval([a for a in leaves(result) if isinstance(a, world.m.array)])
    return result


def leaves(tree):
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, (list, tuple)):
        return [leaf for child in tree for leaf in leaves(child)]
    return [tree]


def is_alias(name):
    """nn.layers.X and the like: the same thing as nn.X."""
    if not name.startswith(("nn.layers.", "nn.utils.")):
        return None
    last = name.split(".")[-1]
    return next((other for other in (f"nn.{last}", f"utils.{last}") if other in CASES), None)


def lookup(name):
    value = tk
    for part in name.split("."):
        value = getattr(value, part) if hasattr(value, part) else __import__(f"{value.__name__}.{part}", fromlist=["x"])
    return value


CASES = read_cases()


def fault_of(name):
    """None where the name counts, or why not."""
    try:
        alias = None if name in CASES else is_alias(name)
        if alias:
            return None if lookup(name) is lookup(alias) else f"is not {alias}"
        if name not in CASES:
            return "no case"
        for expression, tolerance in CASES[name]:
            with mx.stream(mx.cpu):
                own, _, theirs = expression.partition(" || ")
                same(evaluate("tiki", own), evaluate("mlx", theirs or own), tolerance)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def area_of(name):
    parts = name.split(".")
    if parts[0] in ("nn", "optimizers", "utils"):
        return ".".join(parts[:2]) if len(parts) > 2 and parts[1].islower() else parts[0]
    return parts[0] if parts[0].islower() and len(parts) > 1 and parts[0] not in ("finfo", "iinfo") else "core"


def group_of(area):
    return {"nn": "nn", "optimizers": "optimizers", "utils": "nn"}.get(area.split(".")[0], "core")


def test_share_of_names(capsys):
    counts, faults = collections.defaultdict(lambda: [0, 0]), {}
    for name in NAMES:
        if name in name_cases.METAL_ONLY or name in name_cases.NEEDS_PROCESSES:
            continue
        fault = fault_of(name)
        if fault:
            faults[name] = fault
        area = area_of(name)
        for key in (area, f"{group_of(area)} in all", "all in all"):
            counts[key][0] += not fault
            counts[key][1] += 1
    with capsys.disabled():
        print()
        for area, (found, total) in sorted(counts.items()):
            print(f"  MLX names, {area}: {found} of {total} ({100 * found / total:.1f} %)")
    text = "\n".join(f"{name}: {fault}" for name, fault in faults.items())
    for group, floor in FLOOR.items():
        found, total = counts[f"{group} in all"]
        assert 100 * found / total >= floor, f"{group}: {found} of {total}\n{text}"


def test_the_list_is_that_of_the_installed_mlx():
    assert NAMES == list(mlx_names.all_names())


def test_cases_are_of_names_on_the_list():
    assert not set(CASES) - set(NAMES)


@pytest.mark.parametrize("name", name_cases.METAL_ONLY)
def test_names_for_other_gpus_raise(name):
    with pytest.raises(NotImplementedError, match="Metal|CUDA|GPU"):
        eval(name_cases.METAL_ONLY[name], World("tiki").names())


@pytest.mark.parametrize("name", name_cases.NEEDS_PROCESSES)
def test_names_for_several_processes_raise(name):
    for package in ("tiki", "mlx"):
        with pytest.raises((ValueError, RuntimeError)):
            eval(name_cases.NEEDS_PROCESSES[name], World(package).names())
