"""Where OpenBLAS is: the package scipy-openblas32, on which the wheel depends."""

import importlib.util
import os


def library() -> str | None:
    """The package's shared library, or None where it is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = os.path.join(spec.submodule_search_locations[0], "lib", "libscipy_openblas.so")
    return path if os.path.exists(path) else None
