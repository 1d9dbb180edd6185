"""Random numbers from explicit keys, and an implicit one in `state`.

`state` is a list of one array, the key that the next call without `key=` splits. It may be an input and
an output of a compiled function.
"""

from tiki import _core as _core

key = _core._random.key
split = _core._random.split
uniform = _core._random.uniform
normal = _core._random.normal
laplace = _core._random.laplace
gumbel = _core._random.gumbel
truncated_normal = _core._random.truncated_normal
bernoulli = _core._random.bernoulli
randint = _core._random.randint
categorical = _core._random.categorical
permutation = _core._random.permutation
multivariate_normal = _core._random.multivariate_normal

_state = _core._random_state


def seed(seed: int) -> None:
    """Set the implicit key to that of a seed."""
    _state[:] = [key(seed)]


def __getattr__(name: str) -> list[_core.array]:
    # The first key is made by the first use, since making it starts the library.
    if name == "state":
        if not _state:
            seed(0)
        return _state
    raise AttributeError(f"module 'tiki.random' has no attribute '{name}'")
