"""Devices, streams and memory counters. There is one device, the CPU."""

import enum
from typing import Any, Protocol

from tiki import _core


class DeviceType(enum.Enum):
    """Kinds of devices."""

    cpu = 0
    gpu = 1

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
        if self.type is gpu:
            raise NotImplementedError("there is no GPU device; expected cpu")
        return 0


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
            self._local.index = _core._new_stream()
        return self._local.index


class _Streamed(Protocol):
    """What names a stream: a Stream, Device or DeviceType."""

    @property
    def _stream(self) -> int: ...


class StreamContext:
    """Makes a stream or device the default inside a `with` block."""

    def __init__(self, s: _Streamed) -> None:
        self._target = s._stream

    def __enter__(self) -> "StreamContext":
        self._before = _core._use_stream(self._target)
        return self

    def __exit__(self, *error: object) -> None:
        _core._use_stream(self._before)


def stream(s: _Streamed) -> StreamContext:
    """A context manager: ops inside run on a stream or device."""
    return StreamContext(s)


def default_device() -> Device:
    """The device that ops run on."""
    return _the_cpu


def set_default_device(device: _Streamed) -> None:
    """Choose the default device; only the CPU exists."""
    device._stream


def default_stream(device: _Streamed = cpu) -> Stream:
    """The stream that ops run on when none is named."""
    device._stream
    current = _core._use_stream(0)
    _core._use_stream(current)
    return Stream(_the_cpu, current)


def set_default_stream(stream: Stream) -> None:
    """Make a stream this thread's default."""
    _core._use_stream(stream._stream)


def new_stream(device: _Streamed = cpu) -> Stream:
    """A new stream of a device."""
    device._stream
    return Stream(_the_cpu, _core._new_stream())


def new_thread_unsafe_stream(device: _Streamed = cpu) -> Stream:
    """A new stream; streams may be used from any thread."""
    return new_stream(device)


def new_thread_local_stream(device: _Streamed = cpu) -> ThreadLocalStream:
    """A stream that is another one in each thread."""
    device._stream
    return ThreadLocalStream(_the_cpu)


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
    return device == cpu


def device_count(device_type: DeviceType) -> int:
    """How many devices of a kind there are."""
    return 1 if device_type is cpu else 0


def device_info(d: _Streamed | None = None) -> dict[str, Any]:
    """What is known about a device."""
    import platform

    if d is not None:
        d._stream
    info = _core._cpu_info()
    return {
        "device_name": platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "variant": info["variant"],
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
