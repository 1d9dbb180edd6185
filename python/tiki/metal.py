"""Metal devices, of which there are none: the memory functions are those of the package."""

from typing import Any

from tiki._device import (
    clear_cache,
    get_active_memory,
    get_cache_memory,
    get_peak_memory,
    reset_peak_memory,
    set_cache_limit,
    set_memory_limit,
    set_wired_limit,
)

__all__ = [
    "clear_cache",
    "device_info",
    "get_active_memory",
    "get_cache_memory",
    "get_peak_memory",
    "is_available",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
    "set_wired_limit",
    "start_capture",
    "stop_capture",
]


def is_available() -> bool:
    """Whether there is a Metal device."""
    return False


def device_info() -> dict[str, Any]:
    """What is known about the Metal device: nothing."""
    return {}


def start_capture(path: str) -> None:
    """Record what the Metal device does: there is none."""
    raise NotImplementedError("start_capture needs a Metal device; tiki's trace records what the CPU does")


def stop_capture() -> None:
    """End a recording: none was started."""
    raise NotImplementedError("stop_capture needs a Metal device; tiki's trace records what the CPU does")
