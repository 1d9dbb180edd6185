"""What ran when, on which thread: traces that Perfetto (ui.perfetto.dev) and Chrome open.

    with profile.trace("step.json"):
        tk.eval(step(x))

A trace has a span for each evaluation, op and copy, an arrow from where work was handed over to where it ran,
and counters of memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
import os

from tiki import _core


def start(path: str | os.PathLike[str] | None = None) -> None:
    """Start recording; `path` is the file that `stop` writes."""
    _core._trace_start(None if path is None else os.fspath(path))


def stop() -> str:
    """End recording; gives the trace as JSON, "" where it went to a file."""
    return _core._trace_stop()


@contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Record a `with` block into a file."""
    start(path)
    try:
        yield
    finally:
        stop()
