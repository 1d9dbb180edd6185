"""Loading and saving: npy, npz, safetensors. The formats themselves are in C."""

import os

from tiki import _core

_EXTENSIONS = {"npy": ".npy", "npz": ".npz", "safetensors": ".safetensors"}


def _format_of(name: str, format) -> str:
    if format is None:
        format = os.path.splitext(name)[1][1:]
    if format not in _EXTENSIONS:
        raise ValueError(f"the format of '{name}' is '{format}', expected npy, npz or safetensors")
    return format


def load(file, /, format=None, return_metadata: bool = False, *, stream=None):
    """Load an array (npy), or a dictionary of them (npz, safetensors)."""
    if hasattr(file, "read"):
        data = file.read()
        name = getattr(file, "name", "a file object")
        name = name if isinstance(name, str) else "a file object"
        if format is None and data[:6] == b"\x93NUMPY":
            format = "npy"
        elif format is None and data[:2] == b"PK":
            format = "npz"
        elif format is None:
            format = "safetensors"
        arguments = (name, data)
    else:
        name = os.fspath(file)
        arguments = (name,)
    format = _format_of(name, format)
    if format == "npy":
        result, metadata = _core._load_npy(*arguments), {}
    elif format == "npz":
        result, metadata = _core._load_npz(*arguments)
    else:
        result, metadata = _core._load_safetensors(*arguments)
    return (result, metadata) if return_metadata else result


def _write(file, extension: str, write) -> None:
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


def save(file, arr) -> None:
    """Save an array as npy."""
    _write(file, ".npy", lambda path: _core._save_npy(path, arr))


def _save_archive(file, format: str, args, kwargs) -> None:
    arrays = dict(kwargs)
    for i, value in enumerate(args):
        if f"arr_{i}" in arrays:
            raise ValueError(f"savez: the name arr_{i} is given twice")
        arrays[f"arr_{i}"] = value
    _write(file, ".npz", lambda path: _core._save_tree(path, arrays, format, None))


def savez(file, *args, **kwargs) -> None:
    """Save arrays as npz, under their names or arr_0, arr_1, ..."""
    _save_archive(file, "npz", args, kwargs)


def savez_compressed(file, *args, **kwargs) -> None:
    """Save arrays as compressed npz."""
    _save_archive(file, "npz compressed", args, kwargs)


def save_safetensors(file, arrays, metadata=None) -> None:
    """Save a dictionary of arrays as safetensors."""
    _write(file, ".safetensors", lambda path: _core._save_tree(path, dict(arrays), "safetensors", metadata))
