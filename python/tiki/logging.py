"""What a training run tells: a line a step, records in a JSONL file, event files for TensorBoard.

    with Logger("runs/first", total=1000, tensorboard=True) as log:
        for step in range(1000):
            ...
            log.log({"loss": loss, "lr": rate}, step)

A terminal shows one line that is written over; anything else gets plain lines, a few a minute. Values may be
numbers or arrays of one element, which are then evaluated.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import time
from types import TracebackType
from typing import Any, BinaryIO, TextIO

from tiki import _core

# ---- the records of TensorBoard's event files ----
#
# A file is a row of records: length (8 bytes), its checksum, the bytes, their checksum; a record is an Event
# message of protocol buffers. The few fields that scalars need are written by hand, so that nothing of
# TensorFlow is needed. Checksums are CRC-32C (Castagnoli), rotated and offset as TFRecord's are.


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers as the protocol writes them
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _event(wall_time: float, step: int, rest: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _varint(step) + rest


def _scalar(tag: str, value: float) -> bytes:
    """A Summary.Value with a simple_value."""
    return _bytes_field(1, _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


class TensorBoardWriter:
    """Writes scalars into an event file in a folder, which TensorBoard shows."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        os.makedirs(folder, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{os.uname().nodename}.{os.getpid()}.{id(self)}"
        self.path = os.path.join(folder, name)
        self._file: BinaryIO = open(self.path, "wb")
        self._file.write(_record(_event(now, 0, _bytes_field(3, b"brain.Event:2"))))

    def add_scalars(self, values: dict[str, float], step: int, wall_time: float | None = None) -> None:
        """Add values of a step under their names."""
        summary = b"".join(_scalar(tag, _float32(value)) for tag, value in values.items())
        when = time.time() if wall_time is None else wall_time
        self._file.write(_record(_event(when, step, _bytes_field(5, summary))))

    def flush(self) -> None:
        """Hand everything to the system."""
        self._file.flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        self._file.close()


def _float32(value: float) -> float:
    """The value where float32 can hold it, otherwise an infinity."""
    largest = 3.4028234663852886e38
    return value if math.isnan(value) or abs(value) <= largest else math.copysign(math.inf, value)


# ---- progress ----


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    """Shows how far a loop is: one line, written over, on a terminal; elsewhere a line now and then."""

    def __init__(self, total: int | None = None, file: TextIO | None = None, every: float | None = None) -> None:
        """`every` is the least time between lines in seconds: 0.1 on a terminal, otherwise 10."""
        self._file = sys.stderr if file is None else file
        self._over = self._file.isatty()
        self._every = (0.1 if self._over else 10.0) if every is None else every
        self._total = total
        self._start = time.monotonic()
        self._shown = -math.inf
        self._width = 0

    def update(self, step: int, values: dict[str, float] | None = None) -> None:
        """Tell that `step` steps are done; `values` are shown with it."""
        now = time.monotonic()
        if now - self._shown < self._every and step != self._total:
            return
        self._shown = now
        self._write(self._line(step, values or {}, now - self._start))

    def _line(self, step: int, values: dict[str, float], elapsed: float) -> str:
        parts = [f"step {step}" + (f"/{self._total}" if self._total is not None else "")]
        parts += [f"{name} {value:.4g}" for name, value in values.items()]
        parts.append(f"{step / elapsed:.3g} steps/s" if elapsed > 0 else "")
        if self._total is not None and step > 0:
            parts.append(f"{_duration(elapsed / step * (self._total - step))} left")
        return "  ".join(part for part in parts if part)

    def _write(self, line: str) -> None:
        if self._over:
            self._file.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._file.write(line + "\n")
        self._file.flush()

    def close(self) -> None:
        """End the line."""
        if self._over and self._width:
            self._file.write("\n")
            self._file.flush()
        self._width = 0


# ---- both, and a file of records ----


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, _core.array) else value


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are texts."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Logger:
    """Writes `log.jsonl` (a JSON object a line, flushed each time) into a folder, shows progress, and adds a
    TensorBoard event file if asked for. The settings of the run go to `settings.json`."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        settings: dict[str, Any] | None = None,
        total: int | None = None,
        progress: bool = True,
        tensorboard: bool = False,
    ) -> None:
        os.makedirs(folder, exist_ok=True)
        self.folder = os.fspath(folder)
        self._file = open(os.path.join(folder, "log.jsonl"), "a", encoding="utf-8")
        self._progress = Progress(total) if progress else None
        self._board = TensorBoardWriter(folder) if tensorboard else None
        if settings is not None:
            with open(os.path.join(folder, "settings.json"), "w", encoding="utf-8") as file:
                json.dump(settings, file, indent=2)
                file.write("\n")

    def log(self, values: dict[str, Any], step: int) -> None:
        """Write the values of a step."""
        numbers = {name: _number(value) for name, value in values.items()}
        record = {"step": step, **{name: _finite(value) for name, value in numbers.items()}}
        self._file.write(json.dumps(record, allow_nan=False) + "\n")
        self._file.flush()
        scalars = {name: float(value) for name, value in numbers.items() if isinstance(value, (int, float))}
        if self._board is not None:
            self._board.add_scalars(scalars, step)
            self._board.flush()
        if self._progress is not None:
            self._progress.update(step, scalars)

    def close(self) -> None:
        """Close the files and end the line of progress."""
        self._file.close()
        if self._board is not None:
            self._board.close()
        if self._progress is not None:
            self._progress.close()

    def __enter__(self) -> Logger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
