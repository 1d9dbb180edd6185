"""Devices, streams and memory counters.

`cpu` has every op; `emulator` runs kernels on the processor and judges them; `gpu` is an NVIDIA GPU. Ops are computed
where their operands are; ops without operands on the default device. See docs/devices.md.
"""

import enum
from typing import Any, Protocol

from tiki import _core


class DeviceType(enum.Enum):
    """Kinds of devices."""

    cpu = 0
    gpu = 1
    emulator = 2

    def __repr__(self) -> str:
        return f"DeviceType.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self is other.type
        return self is other

    __hash__ = enum.Enum.__hash__

    @property
    def _stream(self) -> int:
        return Device(self)._stream


cpu = DeviceType.cpu
gpu = DeviceType.gpu
emulator = DeviceType.emulator


class Device:
    """A device: a kind and a number."""

    def __init__(self, type: DeviceType, index: int = 0) -> None:
        self.type = type
        self.index = index

    def __repr__(self) -> str:
        return f"Device({self.type.name}, {self.index})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType):
            return self.type is other
        if not isinstance(other, Device):
            return NotImplemented
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    @property
    def _stream(self) -> int:
        if self.type is cpu and self.index == 0:
            return 0
        stream: int = _core._device["stream"](f"{self.type.name}:{self.index}")
        return stream


_the_cpu = Device(cpu)


class Stream:
    """An order of work on a device. Made by `new_stream`."""

    def __init__(self, device: Device, index: int) -> None:
        self.device = device
        self.index = index

    def __repr__(self) -> str:
        return f"Stream({self.device!r}, {self.index})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.index == other.index

    def __hash__(self) -> int:
        return hash(self.index)

    @property
    def _stream(self) -> int:
        return self.index


class ThreadLocalStream(Stream):
    """A stream of each thread that uses it."""

    def __init__(self, device: Device) -> None:
        import threading

        self.device = device
        self._local = threading.local()

    @property
    def index(self) -> int:  # type: ignore[override]
        if not hasattr(self._local, "index"):
            self._local.index = new_stream(self.device).index
        return self._local.index


class _Streamed(Protocol):
    """What names a stream: a Stream, Device or DeviceType."""

    @property
    def _stream(self) -> int: ...


class StreamContext:
    """Makes a stream or device the default inside a `with` block."""

    def __init__(self, s: _Streamed) -> None:
        if not isinstance(s, (Stream, Device, DeviceType)):
            raise TypeError(f"expected a stream or a device, not {s!r}")
        self._target = s._stream

    def __enter__(self) -> "StreamContext":
        self._before = _core._use_stream(self._target)
        return self

    def __exit__(self, *error: object) -> None:
        _core._use_stream(self._before)


def stream(s: _Streamed) -> StreamContext:
    """A context manager: ops inside run on a stream or device."""
    return StreamContext(s)


def _named(name: str) -> Device:
    """The device of a name such as "cpu:0"; the library calls GPUs cuda."""
    kind, _, index = name.partition(":")
    return Device({"cpu": cpu, "cuda": gpu, "emulator": emulator}[kind], int(index))


def _current() -> int:
    current = _core._use_stream(0)
    _core._use_stream(current)
    return current


def default_device() -> Device:
    """The device that ops without operands run on, of this thread."""
    return _named(_core._device["name_of"](_current()))


def set_default_device(device: _Streamed) -> None:
    """Choose the device of ops without operands, for this thread."""
    _core._use_stream(device._stream)


def _on(device: _Streamed) -> Device:
    return _named(_core._device["name_of"](device._stream))


def default_stream(device: _Streamed = cpu) -> Stream:
    """The stream that ops run on when none is named."""
    wanted, current = _on(device), _current()
    if _named(_core._device["name_of"](current)) == wanted:
        return Stream(wanted, current)
    return Stream(wanted, device._stream)


def set_default_stream(stream: Stream) -> None:
    """Make a stream this thread's default."""
    _core._use_stream(stream._stream)


def new_stream(device: _Streamed = cpu) -> Stream:
    """A new stream of a device."""
    before = _core._use_stream(device._stream)
    try:
        return Stream(_on(device), _core._new_stream())
    finally:
        _core._use_stream(before)


def new_thread_unsafe_stream(device: _Streamed = cpu) -> Stream:
    """A new stream; streams may be used from any thread."""
    return new_stream(device)


def new_thread_local_stream(device: _Streamed = cpu) -> ThreadLocalStream:
    """A stream that is another one in each thread."""
    return ThreadLocalStream(_on(device))


def clear_streams() -> None:
    """Wait until all streams are idle."""
    _core._synchronize()


def synchronize(stream: _Streamed | None = None) -> None:
    """Wait for everything that was started."""
    if stream is not None:
        stream._stream
    _core._synchronize()


def is_available(device: Device | DeviceType) -> bool:
    """Whether a device exists."""
    if isinstance(device, DeviceType):
        device = Device(device)
    return 0 <= device.index < device_count(device.type)


def device_count(device_type: DeviceType) -> int:
    """How many devices of a kind there are."""
    count: int = _core._device["gpus"]()[0] if device_type is gpu else 1
    return count


def device_info(d: Any = None) -> dict[str, Any]:
    """What is known about a device."""
    import platform

    where = default_device() if d is None else _on(d)
    if where.type is gpu:
        described: dict[str, Any] = _core._device["gpu_info"](where.index)
        return described
    info = _core._cpu_info()
    return {
        "device_name": platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "variant": info["variant"] if where.type is cpu else "kernels, executed and judged",
        "threads": info["threads"],
        "memory_size": _core._memory_info()["memory_limit"],
    }


def get_active_memory() -> int:
    """Bytes in arrays that are held."""
    return _core._memory_info()["active"]


def get_peak_memory() -> int:
    """The most bytes that were in use since the last reset."""
    return _core._memory_info()["peak"]


def get_cache_memory() -> int:
    """Bytes kept for reuse."""
    return _core._memory_info()["cache"]


def get_memory_limit() -> int:
    """The most bytes that arrays and cache may take."""
    return _core._memory_info()["memory_limit"]


def reset_peak_memory() -> None:
    """Set the peak to what is in use now."""
    _core._memory_set("reset_peak")


def set_memory_limit(limit: int) -> int:
    """Set the memory limit in bytes; gives the one before."""
    before = get_memory_limit()
    _core._memory_set("memory_limit", limit)
    return before


def set_cache_limit(limit: int) -> int:
    """Set the limit of the cache in bytes; gives the one before."""
    before = _core._memory_info()["cache_limit"]
    _core._memory_set("cache_limit", limit)
    return before


def set_wired_limit(limit: int) -> int:
    """Wired memory belongs to Metal devices; on the CPU the limit is 0."""
    if limit:
        raise NotImplementedError("wired memory belongs to Metal devices, there is none")
    return 0


def clear_cache() -> None:
    """Free what is kept for reuse."""
    _core._memory_set("clear_cache")
