"""Loading and saving: npy, npz, safetensors, GGUF. The formats themselves are in C."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tiki import _core

_EXTENSIONS = {"npy": ".npy", "npz": ".npz", "safetensors": ".safetensors", "gguf": ".gguf"}


def _format_of(name: str, format: str | None) -> str:
    if format is None:
        format = os.path.splitext(name)[1][1:]
    if format not in _EXTENSIONS:
        raise ValueError(f"the format of '{name}' is '{format}', expected npy, npz, safetensors or gguf")
    return format


def load(
    file: Any, /, format: str | None = None, return_metadata: bool = False, *, stream: _core._StreamOrDevice = None
) -> Any:
    """Load an array (npy), or a dictionary of them (npz, safetensors, gguf).

    Tensors of GGUF in blocks (q4_0, q4_1, q8_0) become three arrays, as `quantize` gives them.
    """
    if hasattr(file, "read"):
        data = file.read()
        name = getattr(file, "name", "a file object")
        name = name if isinstance(name, str) else "a file object"
        if format is None and data[:6] == b"\x93NUMPY":
            format = "npy"
        elif format is None and data[:2] == b"PK":
            format = "npz"
        elif format is None and data[:4] == b"GGUF":
            format = "gguf"
        elif format is None:
            format = "safetensors"
        arguments: tuple[Any, ...] = (name, data)
    else:
        name = os.fspath(file)
        arguments = (name,)
    format = _format_of(name, format)
    result: Any
    metadata: dict[str, str]
    if format == "npy":
        result, metadata = _core._load_npy(*arguments), {}
    elif format == "npz":
        result, metadata = _core._load_npz(*arguments)
    elif format == "gguf":
        result, metadata = _core._load_gguf(*arguments)
    else:
        result, metadata = _core._load_safetensors(*arguments)
    return (result, metadata) if return_metadata else result


def _write(file: Any, extension: str, write: Callable[[str], None]) -> None:
    """Call `write` with a path; a file object gets the bytes of a temporary file."""
    if not hasattr(file, "write"):
        path = os.fspath(file)
        write(path if path.endswith(extension) else path + extension)
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays" + extension)
        write(path)
        with open(path, "rb") as made:
            file.write(made.read())


def save(file: Any, arr: _core._ArrayLike) -> None:
    """Save an array as npy."""
    _write(file, ".npy", lambda path: _core._save_npy(path, arr))


def _save_archive(file: Any, format: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    arrays = dict(kwargs)
    for i, value in enumerate(args):
        if f"arr_{i}" in arrays:
            raise ValueError(f"savez: the name arr_{i} is given twice")
        arrays[f"arr_{i}"] = value
    _write(file, ".npz", lambda path: _core._save_tree(path, arrays, format, None))


def savez(file: Any, *args: _core._ArrayLike, **kwargs: _core._ArrayLike) -> None:
    """Save arrays as npz, under their names or arr_0, arr_1, ..."""
    _save_archive(file, "npz", args, kwargs)


def savez_compressed(file: Any, *args: _core._ArrayLike, **kwargs: _core._ArrayLike) -> None:
    """Save arrays as compressed npz."""
    _save_archive(file, "npz compressed", args, kwargs)


def save_safetensors(file: Any, arrays: dict[str, _core.array], metadata: dict[str, str] | None = None) -> None:
    """Save a dictionary of arrays as safetensors."""
    _write(file, ".safetensors", lambda path: _core._save_tree(path, dict(arrays), "safetensors", metadata))


def save_gguf(file: Any, arrays: dict[str, _core.array], metadata: dict[str, Any] | None = None) -> None:
    """Save a dictionary of arrays as GGUF; metadata is arrays (scalars or vectors), texts and lists of texts."""
    _write(file, ".gguf", lambda path: _core._save_gguf(path, dict(arrays), dict(metadata or {})))
