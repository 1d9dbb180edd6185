"""Types: the package and the programs in examples/python pass mypy --strict and pyright, and the stubs say
what the extension has."""

import glob
import inspect
import os
import subprocess
import sys

import pytest
from patience import PATIENCE

import tiki
import tiki._core

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = os.path.abspath(os.path.join(os.environ["TIKI_BUILD"], "python"))
EXAMPLES = glob.glob(os.path.join(ROOT, "examples", "python", "*.py"))
# Programs in NVIDIA's CuTe DSL need its package, which has no types.
EXAMPLES = [path for path in EXAMPLES if "import cutlass" not in open(path).read()]

USER = """
from typing import assert_type

import tiki as tk
from tiki import layout, nn, optimizers
from tiki.kernels import library

x = tk.random.normal((3, 4), key=tk.random.key(1))
assert_type(1 + x.sum(axis=0, keepdims=True) @ x, tk.array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.dtype, tk.Dtype)
assert_type(tk.split(x, 2, axis=1), list[tk.array])
assert_type(tk.atleast_1d(x), tk.array)
assert_type(tk.atleast_1d(x, 1.0), list[tk.array])
assert_type(nn.losses.cross_entropy(x, x, reduction="mean"), tk.array)
assert_type(tk.random.state, list[tk.array])

def loss(weight: tk.array, scale: float) -> tk.array:
    return (weight * scale).sum()

assert_type(library.softmax(x), tk.array)
tile = layout.Layout((4, 3), (3, 1))
assert_type(x.layout, layout.Layout)
assert_type(tile @ layout.Layout("(2,2):(1,2)"), layout.Layout)
assert_type(tile(1, 2), int)
assert_type(tile.logical_divide(2)[0], layout.Layout)
assert_type(layout.Swizzle(3, 4, 3) @ tile, layout.ComposedLayout)
assert_type(layout.size(tile), int)

value, gradient = tk.value_and_grad(loss)(x, 2.0)
assert_type(value, tk.array)
assert_type(tk.compile(loss)(x, 2.0), tk.array)

model = nn.Linear(4, 2)
optimizer = optimizers.AdamW(learning_rate=1e-3)
value, gradients = nn.value_and_grad(model, loss)(x, 1.0)
optimizer.update(model, gradients)
"""

WRONG = """
import tiki as tk

tk.zeros("three")
tk.ones(3).sum(axes=1)
tk.no_such_name
tk.compile(lambda x: x, shapeles=True)
tk.layout.no_such_operation(1)
tk.layout.size()
"""


def run(*command, folder):
    environment = {**os.environ, "PYTHONPATH": PACKAGES, "MYPYPATH": PACKAGES, "MYPY_CACHE_DIR": os.path.join(folder, "cache")}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typing")
    (folder / "user.py").write_text(USER)
    (folder / "wrong.py").write_text(WRONG)
    (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{PACKAGES}"]}}')
    return str(folder)


def test_mypy_takes_the_package_and_the_examples(folder):
    checked = run("mypy", "--config-file", os.path.join(ROOT, "pyproject.toml"), "-p", "tiki", folder=folder)
    assert checked.returncode == 0, checked.stdout
    stubs = [os.path.join(PACKAGES, "tiki", name) for name in ("_core.pyi", "layout.pyi")]
    checked = run("mypy", "--strict", "--follow-imports=silent", *stubs, folder=folder)
    assert checked.returncode == 0, checked.stdout
    checked = run("mypy", "--strict", "--follow-imports=silent", "user.py", *EXAMPLES, folder=folder)
    assert checked.returncode == 0, checked.stdout


def test_pyright_takes_the_stubs_and_the_examples(folder):
    checked = run("pyright", "--pythonpath", sys.executable, "user.py", os.path.join(PACKAGES, "tiki", "_core.pyi"), *EXAMPLES, folder=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_both_find_what_is_wrong(folder):
    for checker in ("mypy", "pyright"):
        options = ["--pythonpath", sys.executable] if checker == "pyright" else []
        checked = run(checker, *options, "wrong.py", folder=folder)
        for line in (4, 5, 6, 7, 8, 9):
            assert f"wrong.py:{line}:" in checked.stdout, (checker, checked.stdout)


# Namespaces are classes in the stub, as_layout is a function and a method, memoryview(array) works without a
# method before Python 3.12, and what layouts and composed layouts share has types in each of the two.
DIFFERENT = """
tiki\\._core\\._(fast|fft|linalg|nn|random)
tiki\\._core\\.array\\.(as_layout|__buffer__)
tiki\\.layout\\.(__all__|_Function\\.(__call__|__matmul__|composition))
"""


def test_stubs_are_those_of_the_extension(folder):
    allowed = os.path.join(folder, "different")
    with open(allowed, "w") as file:
        file.write(DIFFERENT)
    options = ["--ignore-disjoint-bases", "--allowlist", allowed, "--ignore-unused-allowlist"]
    checked = run("mypy.stubtest", "tiki._core", "tiki.layout", *options, folder=folder)
    assert checked.returncode == 0, checked.stdout


def test_functions_show_their_signatures():
    assert str(inspect.signature(tiki.sum)) == "(a, /, axis=None, keepdims=False, *, stream=None)"
    assert str(inspect.signature(tiki.array.sum)) == "(self, /, axis=None, keepdims=False, *, stream=None)"
    without = []
    for name in dir(tiki._core):
        value = getattr(tiki._core, name)
        if name.startswith("_") or not callable(value) or isinstance(value, type):
            continue
        try:
            inspect.signature(value)
        except ValueError:
            without.append(name)
    assert not without
