"""CUDA devices for arrays."""

from tiki._device import gpu as _gpu, is_available as _is_available

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether arrays can be on a CUDA device."""
    return _is_available(_gpu)
