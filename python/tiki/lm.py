"""Language models on bytes, as the command `tiki train` trains them: the same bytes of files, order of the
data, first weights and learning rates, for training loops written in Python.

    data = lm.read_bytes("README.md")
    tokens = lm.batch(data, 0, length=64, batch_size=8, seed=1)
"""

import os

from tiki import _core


def read_bytes(*paths: str | os.PathLike[str]) -> bytes:
    """The bytes of files, and of the text files in folders in the order of their paths."""
    return _core._corpus([os.fspath(path) for path in paths])


def batch(data: bytes, index: int, *, length: int, batch_size: int, seed: int = 0) -> _core.array:
    """Batch number `index` as int32 [batch_size, length + 1]: inputs are all but the last column, targets all
    but the first. Each epoch visits all windows once, in an order that seed and epoch decide."""
    return _core._batch(data, length, batch_size, seed, index)


def initial_weights(
    family: str, *, layers: int, heads: int, dim: int, context: int, seed: int = 0
) -> dict[str, _core.array]:
    """Fresh parameters of a model of the family 'gpt2' or 'llama' by the names of its files."""
    return _core._model_init(family, layers, heads, dim, context, seed)


def learning_rate(step: int, *, highest: float, warmup: int = 100, decay: str = "constant", decay_steps: int = 0) -> float:
    """The rate of a step (0 is the first): a line up to the highest, then constant, or a tenth of it after
    `decay_steps` by a 'linear' or 'cosine' decay."""
    return _core._train_rate(highest, warmup, decay, decay_steps, step)
