"""The public names of the installed MLX, one a line; mlx_names.txt keeps them.

    python tests/python/mlx_names.py > tests/python/mlx_names.txt

Names of the modules' own values, the array type's methods and operators, and what the other classes
define themselves. Left out: modules, and what a module only imports from Python's library.
"""

import inspect
import types

import mlx.core
import mlx.nn
import mlx.nn.layers.distributed
import mlx.optimizers
import mlx.utils

MODULES = {
    "": mlx.core,
    "random": mlx.core.random,
    "linalg": mlx.core.linalg,
    "fft": mlx.core.fft,
    "fast": mlx.core.fast,
    "distributed": mlx.core.distributed,
    "metal": mlx.core.metal,
    "cuda": mlx.core.cuda,
    "nn": mlx.nn,
    "nn.layers": mlx.nn.layers,
    "nn.layers.distributed": mlx.nn.layers.distributed,
    "nn.init": mlx.nn.init,
    "nn.losses": mlx.nn.losses,
    "nn.utils": mlx.nn.utils,
    "optimizers": mlx.optimizers,
    "utils": mlx.utils,
}
OTHERS = {"typing", "functools", "_functools", "collections", "itertools"}
# What a class defines for its construction and its text is not a name that a program calls.
UNCALLED = {"__module__", "__doc__", "__new__", "__dict__", "__weakref__", "__annotations__"}


def names_of(module):
    for name in dir(module):
        value = getattr(module, name)
        imported = getattr(value, "__module__", None) in OTHERS and name != "Reduction"
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and not imported:
            yield name, value


def members_of(cls):
    """Own members: all of the array type's, operators included; of others what is public."""
    for name in vars(cls):
        if cls is mlx.core.array and name not in UNCALLED or not name.startswith("_"):
            yield name


def all_names():
    seen = set()
    for place, module in MODULES.items():
        for name, value in names_of(module):
            whole = f"{place}.{name}".lstrip(".")
            yield whole
            if inspect.isclass(value) and value not in seen and place != "nn.layers":
                seen.add(value)
                yield from (f"{whole}.{member}" for member in members_of(value))
    yield "random.state"


if __name__ == "__main__":
    print("\n".join(all_names()))
