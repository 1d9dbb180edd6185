"""Fourier transforms, in complex64."""

from collections.abc import Sequence
from typing import Any

import tiki as tk
from tiki import Dtype, array
from tiki.fft import (
    fft as fft,
    fftn as fftn,
    fftshift as fftshift,
    ifft as ifft,
    ifftn as ifftn,
    ifftshift as ifftshift,
    irfft as irfft,
    irfftn as irfftn,
    rfft as rfft,
    rfftn as rfftn,
)

_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def hfft(x: array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> array:
    """The transform of what has a real spectrum, of which half is given."""
    return tk.fft.irfft(tk.conjugate(x), n=n, axis=axis, norm=_OPPOSITE[norm])


def ihfft(x: array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> array:
    """The inverse of `hfft`."""
    return tk.conjugate(tk.fft.rfft(x, n=n, axis=axis, norm=_OPPOSITE[norm]))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Any = None) -> array:
    """Frequencies of the elements of a transform."""
    result = tk.fft.fftfreq(n, d)
    return result if dtype is None else result.astype(dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Any = None) -> array:
    """Frequencies of the elements of a transform of real numbers."""
    result = tk.fft.rfftfreq(n, d)
    return result if dtype is None else result.astype(dtype)


def __dir__() -> Sequence[str]:
    return __all__
