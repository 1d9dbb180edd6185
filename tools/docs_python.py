"""Writes a page for each module of the Python package, from the docstrings and signatures of the built one.

    docs_python.py FOLDER

Run with the package on PYTHONPATH. Rejected: a generator that reads sources, since most functions are in C and
have their words from the tables; the built package is what a user sees.
"""

import dataclasses
import importlib
import inspect
import os
import sys
import types
import typing

MODULES = """
tiki tiki.random tiki.linalg tiki.fft tiki.fast tiki.nn tiki.nn.losses tiki.nn.init tiki.optimizers tiki.utils
tiki.logging tiki.profile tiki.lm tiki.layout tiki.kernels tiki.kernels.library tiki.kernels.cute.lib tiki.cute
tiki.distributed tiki.cuda tiki.metal tiki.array_api tiki.array_api.linalg tiki.array_api.fft
""".split()


@dataclasses.dataclass
class Page:
    functions: list[tuple[str, object]] = dataclasses.field(default_factory=list)
    classes: list[tuple[str, type]] = dataclasses.field(default_factory=list)
    values: list[tuple[str, object]] = dataclasses.field(default_factory=list)


def signature(value: object) -> str:
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    shown = [p for p in plain if p.name not in ("self", "cls", "stream")]
    try:
        return str(found.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    except ValueError:  # what is left is out of order
        return str(found)


def words(value: object) -> str:
    """The docstring; what looks like a heading or HTML is kept as text."""
    return (inspect.getdoc(value) or "").replace("<", "&lt;")


def is_foreign(value: object) -> bool:
    """What a module has only because it imported it."""
    return (callable(value) or isinstance(value, typing.TypeVar)) and not str(
        getattr(value, "__module__", None) or "tiki"
    ).startswith("tiki")


def sort_names(module: types.ModuleType) -> Page:
    page = Page()
    for name in sorted(dir(module), key=str.lower):
        value = getattr(module, name)
        if name.startswith("_") or isinstance(value, types.ModuleType) or is_foreign(value):
            continue
        if isinstance(value, type):
            page.classes.append((name, value))
        elif callable(value):
            page.functions.append((name, value))
        elif getattr(value, "__module__", "tiki").startswith("tiki") or isinstance(value, (int, float, list)):
            page.values.append((name, value))
    return page


def put_methods(lines: list[str], kind: type) -> None:
    for name, value in sorted(vars(kind).items()):
        if name.startswith("_"):
            continue
        member = getattr(kind, name)
        if callable(member):
            text = words(member).splitlines()
            lines.append(f"- `{name}{signature(member)}`" + (f": {text[0]}" if text else ""))
        elif isinstance(value, (property, types.GetSetDescriptorType)):
            text = words(value).splitlines()
            lines.append(f"- `{name}`" + (f": {text[0]}" if text else ""))
    lines.append("")


def page_of(module: types.ModuleType) -> str:
    page = sort_names(module)
    lines = [f"# {module.__name__}", "", words(module), ""]
    if page.functions:
        lines += ["## Functions", ""]
    for name, value in page.functions:
        lines += [f"### {name}", "", "```python", f"{name}{signature(value)}", "```", "", words(value), ""]
    if page.classes:
        lines += ["## Classes", ""]
    for name, kind in page.classes:
        lines += [f"### {name}", "", "```python", f"{name}{signature(kind)}", "```", "", words(kind), ""]
        put_methods(lines, kind)
    if page.values:
        lines += ["## Values", "", ", ".join(f"`{name}`" for name, _ in page.values), ""]
    return "\n".join(lines)


def main() -> None:
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in MODULES:
        with open(os.path.join(folder, f"{name}.md"), "w", encoding="utf-8") as file:
            file.write(page_of(importlib.import_module(name)))


if __name__ == "__main__":
    main()
