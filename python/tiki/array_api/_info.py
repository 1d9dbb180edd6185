"""What the namespace can do, as the standard's inspection functions tell it."""

from typing import Any

import tiki as tk
from tiki import Dtype

_DTYPES = {
    "bool": tk.bool_,
    **{name: getattr(tk, name) for name in ("int8", "int16", "int32", "int64")},
    **{name: getattr(tk, name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: getattr(tk, name) for name in ("float32", "float64", "complex64")},
}


class Info:
    """Capabilities, dtypes and devices."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks work; shapes may follow from values; at most 16 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> tk.Device:
        """The device of new arrays."""
        return tk.default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Dtype]:
        """The dtypes of new arrays from Python's numbers, and of indices."""
        return {
            "real floating": tk.float32,
            "complex floating": tk.complex64,
            "integral": tk.int32,
            "indexing": tk.int64,
        }

    def devices(self) -> list[tk.Device]:
        """All devices."""
        kinds = [kind for kind in tk.DeviceType if tk.is_available(kind)]
        return [tk.Device(kind, index) for kind in kinds for index in range(tk.device_count(kind))]

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        """Dtypes by name; there is no complex128."""
        if kind is None:
            return dict(_DTYPES)
        return {name: dtype for name, dtype in _DTYPES.items() if tk.isdtype(dtype, kind)}


def __array_namespace_info__() -> Info:
    """Capabilities, dtypes and devices."""
    return Info()
