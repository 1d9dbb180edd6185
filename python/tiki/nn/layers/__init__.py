"""The layers under the module names that MLX has them by: `tiki.nn.layers.linear`, `tiki.nn.layers.base`, ...

The layers' own files lie in `tiki.nn`; here are only names for them. Rejected: a file for each name, which would
say the same in sixteen places.
"""

import sys as _sys

from tiki import nn as _nn
from tiki.nn import (
    activations,
    containers,
    convolution,
    dropout,
    linear,
    module,
    normalization,
    pooling,
    positional,
    quantized,
    recurrent,
    transformer,
    upsample,
)

_MODULES = {
    "activations": activations,
    "base": module,
    "containers": containers,
    "convolution": convolution,
    "convolution_transpose": convolution,
    "dropout": dropout,
    "embedding": linear,
    "linear": linear,
    "normalization": normalization,
    "pooling": pooling,
    "positional_encoding": positional,
    "quantized": quantized,
    "recurrent": recurrent,
    "transformer": transformer,
    "upsample": upsample,
}
for _name, _module in _MODULES.items():
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _module


def __getattr__(name):
    """Every layer and activation that tiki.nn has."""
    return getattr(_nn, name)


def __dir__():
    return sorted({*globals(), *(name for name in dir(_nn) if not name.startswith("_"))})
