"""How arrays are printed: digits of floats after the point."""

from tiki import _core


class PrintOptions:
    """Digits after the point; -1 for as few as tell the numbers apart."""

    def __init__(self, precision: int = -1) -> None:
        self.precision = precision


class _PrintOptionsContext:
    def __init__(self, precision: int) -> None:
        self._precision = precision

    def __enter__(self) -> "_PrintOptionsContext":
        self._before = _core._print_digits(self._precision)
        return self

    def __exit__(self, *error: object) -> None:
        _core._print_digits(self._before)


def set_printoptions(precision: int = -1) -> None:
    """Set the digits after the point of all arrays printed from now on."""
    _core._print_digits(precision)


def get_printoptions() -> PrintOptions:
    """The options that hold now."""
    return PrintOptions(_core._print_digits())


def printoptions(precision: int = -1) -> _PrintOptionsContext:
    """Options for a `with` block."""
    return _PrintOptionsContext(precision)
