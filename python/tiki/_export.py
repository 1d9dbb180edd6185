"""Functions in files, and graphs as pictures. The format and the recording are in C."""

import os
import re
from collections.abc import Callable
from typing import Any

from tiki import _core


def _arguments(args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arrays by position and by name: given as they are, or as one tuple and one dictionary."""
    args = list(args)
    if args and not kwargs and isinstance(args[-1], dict):
        kwargs = args.pop()
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    return tuple(args), dict(kwargs)


class FunctionExporter:
    """Records a function for one kind of arguments a call; `close`, or the end of a `with` block, writes the file."""

    def __init__(
        self, file: Any, fun: Callable[..., Any], shapeless: bool = False, metadata: str | None = None
    ) -> None:
        self._path = os.fspath(file)
        self._function = fun
        self._shapeless = shapeless
        self._metadata = metadata
        self._exporter: Any = _core._exporter_new()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if self._exporter is None:
            raise RuntimeError("the exporter is closed")
        _core._exporter_add(self._exporter, self._function, *_arguments(args, kwargs), self._shapeless)

    def close(self) -> None:
        """Write the file; nothing can be added then."""
        if self._exporter is not None:
            _core._exporter_save(self._exporter, self._path, self._metadata)
            self._exporter = None

    def __enter__(self) -> "FunctionExporter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def exporter(
    file: Any, fun: Callable[..., Any], *, shapeless: bool = False, metadata: str | None = None
) -> FunctionExporter:
    """An object to export several recordings of one function to a file with."""
    return FunctionExporter(file, fun, shapeless, metadata)


def export_function(
    file_or_callback: Any,
    fun: Callable[..., Any],
    *args: Any,
    shapeless: bool = False,
    metadata: str | None = None,
    **kwargs: Any,
) -> None:
    """Save a function, recorded on arguments like these, to a file; or tell a callback what it computes.

    `shapeless`: other lengths of the arguments are possible where the function follows them.
    """
    if callable(file_or_callback):
        if metadata is not None:
            raise ValueError("export_function: metadata goes to a file, not to a callback")
        _tell(file_or_callback, fun, *_arguments(args, kwargs))
        return
    with FunctionExporter(file_or_callback, fun, shapeless, metadata) as made:
        made(*args, **kwargs)


def import_function(file: Any, return_metadata: bool = False) -> Any:
    """The function of a file, which gives a tuple of arrays; and its metadata if asked for."""
    exported, metadata = _core._exported_load(os.fspath(file))

    def imported(*args: Any, **kwargs: Any) -> Any:
        return _core._exported_call(exported, *_arguments(args, kwargs))

    return (imported, metadata) if return_metadata else imported


# ---- graphs as text, taken apart ----

# Compiled by the first use: importing the package stays cheap.
_TYPE = r"(\w+)\[([\d,]*)\]"
_LINE = r"(%\w+) = (\w+)(?:@\d+)?(?: (.*?))? : (.+)$"
_CONSTANT = r"(weak_)?(\w+)\((.*)\)$"
_DTYPES = {
    **{f"{letter}{bits}": name + str(bits) for letter, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "bool": "bool_",
}  # fmt: skip


def _types(text: str) -> list[tuple[tuple[int, ...], _core.Dtype]]:
    return [
        (tuple(int(n) for n in shape.split(",") if n), getattr(_core, _DTYPES[dtype]))
        for dtype, shape in re.findall(_TYPE, text)
    ]


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("["):
        return [int(n) for n in text[1:-1].split(",") if n]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return getattr(_core, _DTYPES[text]) if text in _DTYPES else text


def _groups(pattern: str, text: str) -> tuple[Any, ...]:
    found = re.match(pattern, text)
    assert found is not None, text
    return found.groups()


def _constant(text: str) -> _core.array:
    """The array that an operand like f32(0.5) is."""
    _, dtype, value = _groups(_CONSTANT, text)
    if dtype == "c64":
        value = complex(*(float(part) for part in value.split(",")))
    elif dtype == "bool":
        value = value == "true"
    else:
        value = float.fromhex(value) if value.startswith("0x") else float(value) if dtype[0] in "fb" else int(value)
    return _core.array(value, getattr(_core, _DTYPES[dtype]))


class _Graph:
    """The lines of a text: inputs, constants, operations [name, op, operands, attributes, types], outputs."""

    def __init__(self, text: str) -> None:
        self.types: dict[str, Any] = {}
        self.operations: list[tuple[str, str, list[str], dict[str, Any]]] = []
        self.constants: dict[str, _core.array] = {}
        self.outputs: list[str] = []
        for line in text.splitlines()[1:]:
            if line.startswith("return"):
                self.outputs = [self._operand(word) for word in line[len("return ") :].split(", ") if word]
                continue
            name, op, rest, types = _groups(_LINE, line)
            self.types[name] = _types(types)
            if op != "input":
                operands, attributes = self._split(rest or "")
                self.operations.append((name, op, operands, attributes))

    def _operand(self, word: str) -> str:
        if not word.startswith("%") and word not in self.constants:
            self.constants[word] = _constant(word)
            self.types[word] = [(self.constants[word].shape, self.constants[word].dtype)]
        return word

    def _split(self, rest: str) -> tuple[list[str], dict[str, Any]]:
        operands: list[str] = []
        attributes: dict[str, Any] = {}
        for word in rest.replace(", ", " ").split(" "):
            key, equal, value = word.partition("=")
            if equal:
                attributes[key] = _value(value)
            elif word:
                operands.append(self._operand(word))
        return operands, attributes

    def described(self, name: str) -> list[tuple[str, Any, Any]]:
        return [(name, shape, dtype) for shape, dtype in self.types[name]]


def _tell(
    callback: Callable[[dict[str, Any]], Any], fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Events about a function: inputs, keyword_inputs, outputs, constants, and a primitive for each operation."""
    text, inputs = _core._trace_text(fun, args, kwargs)
    graph = _Graph(text)
    count = len(args) + len(kwargs)
    names = [f"%a{i}" for i in range(count)]
    callback({"type": "inputs", "inputs": [graph.described(name)[0] for name in names]})
    callback({"type": "keyword_inputs", "keywords": list(zip(kwargs, names[len(args) :]))})
    outputs = [graph.described(name)[0] for name in graph.outputs[count:]]
    callback({"type": "outputs", "outputs": outputs})
    held = [(f"%a{i}", inputs[i]) for i in range(count, len(inputs))]
    callback({"type": "constants", "constants": list(graph.constants.items()) + held})
    for name, op, operands, attributes in graph.operations:
        callback(
            {
                "type": "primitive",
                "name": op,
                "inputs": [graph.described(operand)[0] for operand in operands],
                "outputs": graph.described(name),
                "arguments": list(attributes.values()),
            }
        )


def export_to_dot(file: Any, *args: Any, **kwargs: _core.array) -> None:
    """Write the graph of arrays in Graphviz's language; arrays given by name are labelled with it."""
    outputs, named = _arguments(args, {})[0], list(kwargs.items())
    text, _ = _core._graph_text(*outputs, *(array for _, array in named))
    graph = _Graph(text)
    labels = dict(zip(graph.outputs[len(outputs) :], (name for name, _ in named)))
    sinks = dict.fromkeys(graph.outputs[: len(outputs)])
    lines = ["digraph {"]
    made = {name for name, *_ in graph.operations}
    for name in graph.types:
        kind = "sink" if name in sinks else "source" if name not in made else "same"
        lines.append(f'{{ rank={kind}; "{name}" [label="{labels.get(name, name)}"]; }}')
    for name, op, operands, _ in graph.operations:
        lines.append(f'{{ "{name}:{op}" [label="{op}", shape=rectangle]; }}')
        lines += [f'"{operand}" -> "{name}:{op}"' for operand in operands]
        lines.append(f'"{name}:{op}" -> "{name}"')
    lines.append("}")
    written = "\n".join(lines) + "\n"
    if hasattr(file, "write"):
        file.write(written)
        return
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(written)
