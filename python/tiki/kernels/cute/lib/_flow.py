"""Control flow of captured functions at build time: what _capture's rewritten code calls.

A condition or bound that is a plain Python value does what Python does. One of the device opens a region of the
tape; names that the statement rebinds get the region's values, and what leaves the region must have one type on
all paths.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from typing import Any

from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._numeric import Boolean, Int32, Int64, Numeric, Vector
from tiki.kernels.cute.lib._tape import Flow, Ir, Region, Var, current, fail, where
from tiki.kernels.cute.lib._watch import Copies, Saved, Watch, is_container, put, reached_but_by, settle

# ---- names without a value ----


class Unset:
    """What a name holds that has no value: a use is the error that it carries."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


UNSET = Unset("")


def use(name: str, value: Any) -> Any:
    """A name is read."""
    if isinstance(value, Unset):
        raise fail(f"{name} {value.reason}" if value.reason else f"{name} is used before it has a value")
    return value


def named(name: str, value: Any) -> Any:
    """A name is given: the kernel's text shows it."""
    ir = getattr(value, "ir", None)
    if ir is not None and getattr(ir, "name", "") is None and not name.startswith("_"):
        ir.name = name
    return value


def named_all(names: tuple[str, ...], values: Any) -> Any:
    """Several names are given at once."""
    if isinstance(values, tuple) and len(values) == len(names):
        for name, value in zip(names, values):
            named(name, value)
    return values


# ---- values as trees of leaves ----


class Address:
    """The address in a pointer, as a leaf."""

    __slots__ = ("ir",)

    def __init__(self, ir: Ir) -> None:
        self.ir = ir


def leaves(value: Any, found: list[Any]) -> Any:
    """Appends the device values in a value; gives its structure, which two values of one type have in common.

    Python numbers are structure, as are objects that are no values."""
    if isinstance(value, Numeric):
        found.append(value)
        return ("number", type(value))
    if isinstance(value, Vector):
        found.append(value)
        return ("vector", value.dtype, value.lanes)
    if isinstance(value, Address):
        found.append(value)
        return ("address", value.ir.type)
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return (type(value).__name__, tuple(leaves(item, found) for item in value))
    if type(value) is dict:
        return ("dict", tuple(value), tuple(leaves(item, found) for item in value.values()))
    if hasattr(value, "_flatten"):
        key, parts = value._flatten()
        return ("object", type(value), key, tuple(leaves(part, found) for part in parts))
    return ("plain", value)


def rebuild(structure: Any, irs: Iterator[Ir]) -> Any:
    """A value of the structure around new values of the tape."""
    kind = structure[0]
    if kind == "number":
        return numeric.wrap(structure[1], next(irs))
    if kind == "vector":
        return Vector(next(irs), structure[1], structure[2])
    if kind == "address":
        return Address(next(irs))
    if kind in ("tuple", "list"):
        parts = [rebuild(part, irs) for part in structure[1]]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return dict(zip(structure[1], [rebuild(part, irs) for part in structure[2]]))
    if kind == "object":
        return structure[1]._unflatten(structure[2], [rebuild(part, irs) for part in structure[3]])
    return structure[1]


def describe(structure: Any) -> str:
    """A structure in words."""
    kind = structure[0]
    if kind == "number":
        return str(structure[1].__name__)
    if kind == "vector":
        return f"{structure[1].__name__} x {structure[2]}"
    if kind in ("tuple", "list"):
        inner = ", ".join(describe(part) for part in structure[1])
        return f"({inner})" if kind == "tuple" else f"[{inner}]"
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {describe(part)}" for key, part in zip(structure[1], structure[2])) + "}"
    if kind == "object":
        return str(structure[1].__name__)
    value = structure[1]
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"the Python value {value!r}"
    return f"a Python {type(value).__name__}"


def promoted(value: Any) -> Any:
    """Python numbers in a value as device values, which a loop can carry."""
    if numeric.is_number(value):
        return numeric.as_numeric(value)
    if type(value) in (tuple, list):
        return type(value)(promoted(item) for item in value)
    if type(value) is dict:
        return {key: promoted(item) for key, item in value.items()}
    return value


def fitted(value: Any, structure: Any) -> Any:
    """Python numbers in a value as the device types that a structure has in their places."""
    kind = structure[0]
    if kind == "number" and numeric.is_number(value) and _fits(value, structure[1]):
        return structure[1](value)
    if kind in ("tuple", "list") and type(value).__name__ == kind and len(value) == len(structure[1]):
        return type(value)(fitted(item, part) for item, part in zip(value, structure[1]))
    if kind == "dict" and type(value) is dict and tuple(value) == structure[1]:
        return {key: fitted(item, part) for (key, item), part in zip(value.items(), structure[2])}
    return value


def _fits(value: Any, dtype: Any) -> bool:
    """Whether a Python number may become the type without a word: no float as an integer, no number as a truth."""
    if isinstance(value, bool):
        return dtype is Boolean
    return dtype.is_float or (isinstance(value, int) and dtype.width > 1)


def same(a: Any, b: Any) -> bool:
    """Whether two structures are equal; objects that are no values must be the same."""
    if a[0] != b[0] or len(a) != len(b):
        return False
    if a[0] == "plain":
        x, y = a[1], b[1]
        return x is y or (type(x) is type(y) and isinstance(x, (bool, int, float, str)) and repr(x) == repr(y))
    if a[0] in ("tuple", "list"):
        return len(a[1]) == len(b[1]) and all(same(x, y) for x, y in zip(a[1], b[1]))
    if a[0] == "dict":
        return bool(a[1] == b[1]) and all(same(x, y) for x, y in zip(a[2], b[2]))
    if a[0] == "object":
        return a[1] is b[1] and a[2] == b[2] and len(a[3]) == len(b[3]) and all(same(x, y) for x, y in zip(a[3], b[3]))
    return bool(a[1:] == b[1:])


def irs_of(value: Any) -> tuple[Any, list[Ir]]:
    found: list[Any] = []
    structure = leaves(value, found)
    return structure, [leaf.ir for leaf in found]


# ---- conditions ----


def is_dynamic(value: Any) -> bool:
    return isinstance(value, Numeric)


def truth(value: Any) -> Any:
    """A condition as a Boolean."""
    return numeric.convert(value, Boolean) if isinstance(value, Numeric) else Boolean(bool(value))


def refuse_outer(names: tuple[str, ...], what: str, line: int) -> None:
    if names:
        raise fail(
            f"{what} on line {line} is decided on the device and rebinds {', '.join(names)}, which is global or "
            f"nonlocal: that cannot be captured"
        )


class Scope:
    """A statement of control flow: of plain values until a device value opens a region."""

    word = "if"
    watch: Watch
    shared: set[str]

    def __init__(self, names: tuple[str, ...], outer: tuple[str, ...]) -> None:
        self.names = names
        self.outer = outer
        self.line = where()[1]
        self.region: Region | None = None

    @property
    def dynamic(self) -> bool:
        return self.region is not None

    def no_else(self) -> None:
        if self.dynamic:
            raise fail(f"the else of the {self.word} on line {self.line}, which runs on the device, cannot be captured")


def leaving(word: str, scopes: tuple[Scope, ...]) -> None:
    """What a statement of plain values may hold and one of the device may not: return, break, continue (which leave
    it), and assignments to attributes (which nothing carries)."""
    for scope in reversed(scopes):
        if scope.dynamic:
            hint = {
                "assignment to an attribute": "use a name, which is carried",
                "raise": "assert a condition of the device, or call cute.arch.trap",
                "next": "take it before",
                "a for over an iterator": "make a list of it before",
            }.get(word, "put what follows under the opposite condition, or carry a Boolean")
            raise fail(
                f"{word} inside the {scope.word} on line {scope.line}, which the device decides, cannot be captured: "
                f"{hint}"
            )


class If(Scope):
    """An if statement: then, then_done, other and done are called in this order."""

    def __init__(self, condition: Any, names: tuple[str, ...], live: tuple[str, ...], outer: tuple[str, ...]) -> None:
        super().__init__(names, outer)
        self.live = set(live)
        self.condition = condition
        self.region = None
        self.flow: Flow | None = None
        self.before: tuple[Any, ...] = ()
        self.after_then: tuple[Any, ...] = ()
        self.held_then: tuple[Any, ...] = ()
        if isinstance(condition, Vector):
            raise fail("a vector as a condition")

    def then(self, values: tuple[Any, ...]) -> bool:
        if not is_dynamic(self.condition):
            self.condition = bool(self.condition)
            return bool(self.condition)
        refuse_outer(self.outer, "the if", self.line)
        trace = current()
        self.before = values
        self.saved = Saved(values)
        self.watch = Watch(set(self.saved.held))
        self.flow = Flow("if", (truth(self.condition).ir,))
        trace.region.ops.append(self.flow)
        self.region = trace.enter("if", self.line)
        self.flow.regions.append(self.region)
        return True

    def then_done(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.dynamic:
            return values
        assert self.region is not None and self.flow is not None
        self.watch.check(self.word, self.line)
        self.copies = Copies()
        self.after_then = tuple(self.copies.of(value) for value in values)
        self.held_then = self.copies.of(self.before)
        self.saved.restore()
        current().leave(self.region)
        self.region = current().enter("if", self.line)
        self.flow.regions.append(self.region)
        return self.before

    def other(self) -> bool:
        return True if self.dynamic else not self.condition

    def done(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.dynamic:
            return values
        assert self.region is not None and self.flow is not None
        self.watch.check(self.word, self.line)
        trace = current()
        trace.leave(self.region)
        self.flow.yields = [[], []]
        self.others = Copies()
        self.merged: dict[tuple[int, int], Any] = {}
        self.parted: dict[tuple[int, int], tuple[int, int]] = {}
        after = tuple(self.others.of(value) for value in values)
        held = self.others.of(self.before)
        for name, a, b in zip(self.names, self.held_then, held):  # what the names held, whatever they hold now
            if is_container(a):
                self.container(name, a, b)
        merged = [self.merge(name, a, b) for name, a, b in zip(self.names, self.after_then, after)]
        _prepare(self.flow, trace.region)
        return tuple(merged)

    def merge(self, name: str, a: Any, b: Any) -> Any:
        if a is b:
            return a
        if is_container(a) and self.copies.original(a) is self.others.original(b):
            return self.container(name, a, b)
        if name not in self.live:
            return Unset(f"is assigned in the if on line {self.line}")
        if isinstance(a, Unset) or isinstance(b, Unset):
            missing = "does not hold" if isinstance(b, Unset) else "holds"
            return Unset(f"has no value when the condition of the if on line {self.line} {missing}")
        return self.container(name, a, b)

    def container(self, name: str, a: Any, b: Any) -> Any:
        """Behind the statement: the object itself where both branches have the same, its contents merged in place."""
        key = (id(a), id(b))
        if key in self.merged:
            return self.merged[key]
        made = merge_values(self.flow, name, a, b, f"the if on line {self.line}", self.line)
        return self.own(a, b, made)

    def own(self, a: Any, b: Any, made: Any) -> Any:
        """A merged value with the objects that it stands for."""
        if type(made) is tuple and type(a) is type(b) is tuple:
            return tuple(self.own(*parts) for parts in zip(a, b, made))
        if not is_container(made):
            return made
        key = (id(a), id(b))
        if key not in self.merged:
            mine, other = self.copies.original(a), self.others.original(b)
            if mine is not other:
                for side, one in enumerate((mine, other)):
                    self.alone(one, self.parted.setdefault((side, id(one)), key) != key)
            self.merged[key] = target = mine if mine is other else made
            parts = zip(a, b, made) if type(made) is list else zip(a.values(), b.values(), made.values())
            items = [self.own(*part) for part in parts]
            put(target, items if type(made) is list else list(zip(list(made), items)))
        return self.merged[key]

    def alone(self, value: Any, twice: bool) -> None:
        """Another object takes the place of a container: nothing else may hold it, or the two would part."""
        names = [name for name, before in zip(self.names, self.before) if before is value]
        if twice or len(names) > 1 or id(value) in reached_but_by(self.names):
            raise fail(
                f"{' and '.join(names) or 'a list or dictionary'} is bound to another {type(value).__name__} on one path "
                f"of the if on line {self.line}, which the device decides, and something else holds it too: that cannot "
                f"be captured; change its elements"
            )


def merge_values(flow: Any, name: str, a: Any, b: Any, what: str, line: int) -> Any:
    """What a name holds behind two paths; the yields of both are recorded."""
    first = leaves(a, [])
    a, b = fitted(a, leaves(b, [])), fitted(b, first)
    a, b = common(a, b)
    one, two = irs_of(a), irs_of(b)
    if not same(one[0], two[0]):
        raise fail(
            f"{name} is {describe(one[0])} where the condition of {what} holds and {describe(two[0])} where it does "
            f"not; convert one of them",
            line,
        )
    results: list[Ir] = []
    for x, y in zip(one[1], two[1]):
        if x is y or x == y:
            results.append(x)
            continue
        flow.yields[0].append(x)
        flow.yields[1].append(y)
        var = Var(x.type, current().region)
        var.name = name if len(one[1]) == 1 else None
        flow.results.append(var)
        results.append(var)
    return rebuild(one[0], iter(results))


def common(a: Any, b: Any) -> tuple[Any, Any]:
    """Python numbers that differ become device values of one type, inside tuples, lists and dictionaries too."""
    if type(a) in (tuple, list) and type(b) is type(a) and len(a) == len(b):
        pairs = [common(x, y) for x, y in zip(a, b)]
        return type(a)(x for x, _ in pairs), type(a)(y for _, y in pairs)
    if type(a) is dict and type(b) is dict and tuple(a) == tuple(b):
        pairs = [common(a[key], b[key]) for key in a]
        return {key: x for key, (x, _) in zip(a, pairs)}, {key: y for key, (_, y) in zip(a, pairs)}
    numbers = numeric.is_number(a) and numeric.is_number(b) and isinstance(a, bool) == isinstance(b, bool)
    if not numbers or (type(a) is type(b) and repr(a) == repr(b)):
        return a, b
    dtype = numeric.promote(numeric.numeric_type_of(a), numeric.numeric_type_of(b))
    return dtype(a), dtype(b)


def _prepare(flow: Flow, region: Region) -> None:
    """Results belong to the region around the statement."""
    for var in flow.results:
        var.region = region


# ---- loops ----


class DeviceRange:
    """A range that is counted on the device."""

    def __init__(self, first: Any, end: Any, step: Any, unroll: int) -> None:
        bounds = [numeric.as_numeric(bound) for bound in (first, end, step)]
        for bound in bounds:
            if type(bound) not in (Int32, Int64, numeric.Uint32):
                raise fail(f"range of {type(bound).__name__}, expected Int32 or Int64")
        wide = any(type(bound) is Int64 for bound in bounds)
        self.dtype = Int64 if wide else Int32
        self.first, self.end, self.step = (numeric.convert(bound, self.dtype) for bound in bounds)
        self.unroll = unroll
        if self.step.is_constant and self.step.ir.value < 1:
            raise fail(
                f"range with step {self.step.ir.value} on the device, expected at least 1; count up and subtract"
            )

    def __iter__(self) -> Any:
        raise fail("a range of the device outside of a captured for statement")

    def __reversed__(self) -> Any:
        raise fail("reversed of a range of the device; count up and subtract")

    def __len__(self) -> int:
        raise fail("len of a range of the device: it is not known while the kernel is built")

    def __getitem__(self, index: Any) -> Any:
        raise fail("an element of a range of the device; compute it")


def device_range(*bounds: Any, unroll: int = 0) -> DeviceRange:
    """`cute.range(end)`, `(first, end)` or `(first, end, step)`: a loop on the device even where all bounds are
    Python integers. `unroll`: copies of the body, -1 for all."""
    if not 1 <= len(bounds) <= 3:
        raise fail(f"range of {len(bounds)} bounds, expected 1 to 3")
    first, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return DeviceRange(first, end, step, unroll)


def range_(function: Any, *bounds: Any, **more: Any) -> Any:
    """A call of the name `range`."""
    from tiki.kernels.cute.lib._contract import Dim

    if function is builtins.range and any(isinstance(bound, (Numeric, Dim)) for bound in bounds):
        return device_range(*bounds)
    return function(*bounds, **more)


class For(Scope):
    """A for statement: items is iterated, enter and leave frame the body."""

    word = "for"

    def __init__(
        self,
        iterable: Any,
        names: tuple[str, ...],
        targets: tuple[str, ...],
        changed: tuple[str, ...],
        outer: tuple[str, ...],
    ) -> None:
        super().__init__(names, outer)
        self.changed = changed
        self.iterable = iterable
        self.targets = targets
        self.carried: dict[str, tuple[Any, list[Any], list[Ir]]] = {}
        self.inside: dict[str, Any] = {}
        self.fresh: dict[str, Saved] = {}

    def items(self, values: tuple[Any, ...]) -> Any:
        if isinstance(self.iterable, Numeric):
            raise fail(f"a for over a {type(self.iterable).__name__}: write range(n)")
        return self.on_device(values) if isinstance(self.iterable, DeviceRange) else self.iterable

    def on_device(self, values: tuple[Any, ...]) -> Any:
        refuse_outer(self.outer, "the for", self.line)
        trace, loop = current(), self.iterable
        self.flow = Flow("for", (loop.first.ir, loop.end.ir, loop.step.ir), loop.unroll)
        for ir in self.flow.bounds:
            trace.check(ir)
        trace.region.ops.append(self.flow)
        self.region = trace.enter("for", self.line)
        self.flow.regions.append(self.region)
        index = numeric.wrap(
            loop.dtype, trace.argument(self.region, loop.first.ir.type), loop.first.nonneg or _is_count(loop.first)
        )
        if len(self.targets) == 1:
            index.ir.name = self.targets[0]
        self.before = dict(zip(self.names, values))
        start_loop(self)
        for name, value in self.before.items():
            if name not in self.targets:
                self.inside[name] = carry(self, name, value)
        yield index

    def enter(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.dynamic:
            return values
        return tuple(self.inside[name] for name in self.names if name not in self.targets)

    def leave(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.dynamic:
            return values
        assert self.region is not None
        region = self.region
        self.watch.check(self.word, self.line)
        after = dict(zip(self.names, values))
        part(self, after)
        ends = {
            name: yielded(self, name, value, self.before[name])
            for name, value in after.items()
            if name not in self.targets
        }
        current().leave(region)
        self.flow.yields = [[]]
        behind = close_loop(self.flow, self.carried, ends)
        lost = f"is the index of the for on line {self.line}, which the device counts: it has no value behind the loop"
        return tuple(
            Unset(lost) if name in self.targets else outcome(self, name, behind, after[name]) for name in self.names
        )


def _is_count(first: Any) -> bool:
    return bool(first.is_constant and first.ir.value >= 0)


def start_loop(scope: Any) -> None:
    """What the body must leave alone: all that it can reach, but the containers that are carried."""
    own = {name: value for name, value in scope.before.items() if name in scope.changed and is_container(value)}
    trees = {name: set(Saved([value]).held) for name, value in own.items()}
    scope.shared = set()
    for name, value in own.items():
        for other, tree in trees.items():
            if other == name or other in scope.shared or name in scope.shared:
                continue
            if id(value) in tree:
                scope.shared.add(name)  # the other one carries it
            elif tree & trees[name] and id(own[other]) not in trees[name]:
                raise fail(f"{name} and {other} hold one list or dictionary, which the {scope.word} cannot carry twice")
    scope.watch = Watch(set().union(*trees.values()))


def part(scope: Any, after: dict[str, Any]) -> None:
    """Lists and dictionaries that names are bound to anew are nobody else's, or they would part behind the loop."""
    seen = set(scope.watch.seen)
    for name, value in after.items():
        if name in scope.carried and name not in scope.changed:
            held = set(Saved([value]).held) - set(scope.fresh[name].held if name in scope.fresh else ())
            if held & seen:
                raise fail(
                    f"{name} is bound to a list or dictionary that something else holds too, in the {scope.word} on "
                    f"line {scope.line}, which cannot be captured",
                    scope.line,
                )
            seen |= held


def carry(scope: Any, name: str, value: Any) -> Any:
    """A name goes into a loop: what it holds inside. Its device values become arguments of the region."""
    if isinstance(value, Unset) or (name in scope.changed and not is_container(value)) or name in scope.shared:
        return value
    given, value = value, promoted(value)
    structure, irs = irs_of(value)
    if not irs:
        if is_container(given):
            scope.fresh[name] = Saved([given])
        return given
    args = []
    for ir in irs:
        arg = current().argument(scope.region, ir.type)
        arg.name = name if len(irs) == 1 else None
        args.append(arg)
    scope.carried[name] = (structure, args, irs)
    inside = rebuild(structure, iter(args))
    if not is_container(given):
        return inside
    if name in scope.changed:  # every name for it sees what the loop does
        settle(given, inside)
        return given
    scope.fresh[name] = Saved([inside])
    return inside


def yielded(scope: Any, name: str, value: Any, before: Any) -> Any:
    """What a name holds at the end of a loop's body, as the type that goes around."""
    if name in scope.fresh and scope.fresh[name].changed():
        how = "both changes and binds anew; do one of both" if name in scope.carried else "changes in size"
        raise fail(f"{name} is a list or dictionary that the {scope.word} on line {scope.line} {how}", scope.line)
    if name not in scope.carried:
        return None
    structure = scope.carried[name][0]
    if isinstance(value, Unset):
        raise fail(
            f"{name} {value.reason or 'is deleted in the body'}, and the {scope.word} on line {scope.line} carries it",
            scope.line,
        )
    found = irs_of(fitted(value, structure))
    if not same(found[0], structure):
        raise fail(
            f"{name} is {describe(structure)} before the {scope.word} on line {scope.line} and {describe(found[0])} "
            f"after its "
            f"body; a loop on the device carries one type",
            scope.line,
        )
    for ir in found[1]:
        current().check(ir)
    return found[1]


def close_loop(flow: Flow, carried: dict[str, Any], ends: dict[str, Any]) -> dict[str, Any]:
    """The values behind a loop. What the body leaves as it was is not carried at all."""
    trace, body = current(), flow.regions[-1]
    behind: dict[str, Any] = {}
    renamed: dict[int, Ir] = {}
    for name, (structure, args, inits) in carried.items():
        outs: list[Ir] = []
        for arg, init, end in zip(args, inits, ends[name]):
            if end is arg:
                renamed[id(arg)] = init
                body.args.remove(arg)
                outs.append(init)
                continue
            flow.inits.append(init)
            flow.yields[-1].append(end)
            result = Var(arg.type, trace.region)
            result.name = arg.name
            flow.results.append(result)
            outs.append(result)
        behind[name] = rebuild(structure, iter(outs))
    if renamed:
        _rename(body, renamed)
        flow.yields[-1] = [renamed.get(id(ir), ir) for ir in flow.yields[-1]]
    return behind


def _rename(region: Region, renamed: dict[int, Ir]) -> None:
    """Uses of arguments that are not carried after all."""
    for op in region.ops:
        if not isinstance(op, Flow):
            op.operands = tuple(renamed.get(id(ir), ir) for ir in op.operands)
            continue
        op.bounds = tuple(renamed.get(id(ir), ir) for ir in op.bounds)
        op.inits = [renamed.get(id(ir), ir) for ir in op.inits]
        op.yields = [[renamed.get(id(ir), ir) for ir in yields] for yields in op.yields]
        for inner in op.regions:
            _rename(inner, renamed)


def outcome(scope: Any, name: str, behind: dict[str, Any], after: Any) -> Any:
    """What a name holds behind a loop."""
    if name in behind:
        if name not in scope.changed or not is_container(scope.before[name]):
            return behind[name]
        settle(scope.before[name], behind[name])
        return scope.before[name]
    before = scope.before[name]
    if isinstance(before, Unset) and not isinstance(after, Unset):
        return Unset(f"has no value when the {scope.word} on line {scope.line} runs no time; give it one before")
    if after is before or isinstance(after, Unset):
        return after
    if same(leaves(after, []), leaves(before, [])) and not irs_of(after)[1]:
        return after
    raise fail(
        f"{name} is {describe(leaves(before, []))} before the {scope.word} on line {scope.line} and "
        f"{describe(leaves(after, []))} "
        "after its body; a loop on the device carries numbers, vectors, pointers and tuples of them",
        scope.line,
    )


class While(Scope):
    """A while statement. Its condition is computed before the loop and at the end of each body, so that it is
    computed as often as Python would."""

    word = "while"

    def __init__(self, names: tuple[str, ...], changed: tuple[str, ...], outer: tuple[str, ...]) -> None:
        super().__init__(names, outer)
        self.changed = changed
        self.carried: dict[str, tuple[Any, list[Any], list[Ir]]] = {}
        self.fresh: dict[str, Saved] = {}
        self.behind: tuple[Any, ...] | None = None
        self.inside: tuple[Any, ...] = ()

    def test(self, condition: Any, values: tuple[Any, ...]) -> bool:
        if self.dynamic:
            return self.finish(condition, values)
        if not is_dynamic(condition):
            return bool(condition)
        refuse_outer(self.outer, "the while", self.line)
        trace = current()
        self.flow = Flow("while", (truth(condition).ir,))
        trace.region.ops.append(self.flow)
        self.region = trace.enter("while", self.line)
        self.flow.regions.append(self.region)
        self.before = dict(zip(self.names, values))
        start_loop(self)
        self.inside = tuple(carry(self, name, value) for name, value in self.before.items())
        return True

    def enter(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.inside if self.dynamic else values

    def finish(self, condition: Any, values: tuple[Any, ...]) -> bool:
        assert self.region is not None
        self.watch.check(self.word, self.line)
        again = truth(condition).ir
        after = dict(zip(self.names, values))
        part(self, after)
        ends = {name: yielded(self, name, value, self.before[name]) for name, value in after.items()}
        current().leave(self.region)
        self.flow.yields = [[again]]
        behind = close_loop(self.flow, self.carried, ends)
        self.behind = tuple(outcome(self, name, behind, after[name]) for name in self.names)
        return False

    def done(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values if self.behind is None else self.behind


# ---- expressions ----


def _branch(kind: str, thunk: Callable[[], Any]) -> tuple[Region, Any]:
    trace = current()
    region = trace.enter(kind, where()[1])
    value = thunk()
    trace.leave(region)
    return region, value


def and_(first: Any, second: Callable[[], Any]) -> Any:
    """`a and b`: on the device b is computed only where a holds, unless it costs arithmetic only."""
    if not is_dynamic(first):
        return second() if first else first
    return _logical(first, second, True)


def or_(first: Any, second: Callable[[], Any]) -> Any:
    if not is_dynamic(first):
        return first if first else second()
    return _logical(first, second, False)


def and_value(first: Any, second: Callable[[], Any]) -> Any:
    """`a and b` whose value counts, not only its truth: one of the operands, as Python has it."""
    if not is_dynamic(first):
        return second() if first else first
    if type(first) is Boolean:
        return _logical(first, second, True, "and")
    return ternary(first, second, lambda: first)


def or_value(first: Any, second: Callable[[], Any]) -> Any:
    if not is_dynamic(first):
        return first if first else second()
    if type(first) is Boolean:
        return _logical(first, second, False, "or")
    return ternary(first, lambda: first, second)


def is_(a: Any, b: Any) -> bool:
    """`a is b`."""
    if (isinstance(a, (Numeric, Vector)) or numeric.is_number(a)) and (
        isinstance(b, (Numeric, Vector)) or numeric.is_number(b)
    ):
        if is_dynamic(a) or is_dynamic(b):
            raise fail("`is` of values of the device, which have no identity: write ==")
    return a is b


def is_not(a: Any, b: Any) -> bool:
    return not is_(a, b)


def next_(scopes: tuple[Scope, ...], function: Any, *args: Any) -> Any:
    """A call of the name `next`."""
    leaving("next", scopes)
    return function(*args)


def once(scopes: tuple[Scope, ...], iterable: Any) -> Any:
    """What a `for` over a name goes over: not an iterator from outside of a statement that the device decides."""
    if hasattr(iterable, "__next__"):
        leaving("a for over an iterator", scopes)
    return iterable


def _logical(first: Any, second: Callable[[], Any], is_and: bool, as_value: str = "") -> Any:
    trace = current()
    truth_first = truth(first)
    flow = Flow("if", (truth_first.ir,))
    region = trace.enter("if", where()[1])
    value = second()
    if not (isinstance(value, (Numeric, bool)) or numeric.is_number(value)):
        raise fail(f"`{'and' if is_and else 'or'}` of a Boolean of the device and a {type(value).__name__}")
    if as_value and not isinstance(value, (Boolean, bool)):
        found = type(value).__name__
        raise fail(f"`{as_value}` of a Boolean and a {found} whose value counts: write it as `x if c else y`")
    truth_second = truth(value)
    trace.leave(region)
    if region.is_pure():
        trace.splice(region)
        return truth_first & truth_second if is_and else truth_first | truth_second
    trace.region.ops.append(flow)
    other = Region(trace.region, "if", flow.place[1])
    flow.regions = [region, other] if is_and else [other, region]
    flow.yields = [[truth_second.ir], [Boolean(not is_and).ir]]
    if not is_and:
        flow.yields.reverse()
    return _result(flow, numeric.number_type(Boolean), Boolean)


def _result(flow: Flow, type: Any, dtype: Any) -> Any:
    var = Var(type, current().region)
    flow.results.append(var)
    return numeric.wrap(dtype, var)


def not_(value: Any) -> Any:
    return ~truth(value) if is_dynamic(value) else not value


def ternary(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a if c else b`: a select where both are arithmetic only."""
    if not is_dynamic(condition):
        return a() if condition else b()
    trace = current()
    flow = Flow("if", (truth(condition).ir,))
    one, first = _branch("if", a)
    two, second = _branch("if", b)
    numbers = all(isinstance(value, Numeric) or numeric.is_number(value) for value in (first, second))
    if numbers and one.is_pure() and two.is_pure():
        trace.splice(one)
        trace.splice(two)
        dtypes = [leaves(value, []) for value in (first, second)]
        x, y = fitted(first, dtypes[1]), fitted(second, dtypes[0])
        x, y = numeric.as_numeric(x), numeric.as_numeric(y)
        if type(x) is not type(y):
            raise fail(f"`if else` gives {type(x).__name__} or {type(y).__name__}; convert one of them")
        return numeric.select(truth(condition), x, y)
    trace.region.ops.append(flow)
    flow.regions = [one, two]
    flow.yields = [[], []]
    merged = merge_values(flow, "the value", first, second, "the conditional expression", where()[1])
    _prepare(flow, trace.region)
    return merged


_COMPARE: dict[str, Any] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def chain(left: Any, *pairs: tuple[str, Callable[[], Any]]) -> Any:
    """`a < b <= c`: each operand is computed once, and only while the comparisons before hold."""
    symbol, thunk = pairs[0]
    right = thunk()
    first = _COMPARE[symbol](left, right)
    if len(pairs) == 1:
        return first
    return and_(first, lambda: chain(right, *pairs[1:]))


def assert_(condition: Any, message: Callable[[], Any]) -> None:
    """`assert`: of plain values at once, of device values an assertion of the kernel."""
    if not is_dynamic(condition):
        if not condition:
            raise AssertionError(message())
        return
    text = str(message())
    current().emit("assert", (truth(condition).ir,), {"message": text} if text else {})


def min_(function: Any, *args: Any, **more: Any) -> Any:
    """A call of the name `min`."""
    if function is builtins.min and len(args) > 1 and any(is_dynamic(arg) for arg in args):
        if more:
            raise fail("min of values of the device takes no {}=".format(", ".join(more)))
        return _extreme("min", args)
    return function(*args, **more)


def max_(function: Any, *args: Any, **more: Any) -> Any:
    """A call of the name `max`."""
    if function is builtins.max and len(args) > 1 and any(is_dynamic(arg) for arg in args):
        if more:
            raise fail("max of values of the device takes no {}=".format(", ".join(more)))
        return _extreme("max", args)
    return function(*args, **more)


def _extreme(name: str, args: tuple[Any, ...]) -> Any:
    result = args[0]
    for arg in args[1:]:
        result = numeric.extreme(name, result, arg)
    return result


def const_expr(value: Any) -> Any:
    """A value that must be known while the kernel is built."""
    if is_dynamic(value) or isinstance(value, Vector):
        raise fail("const_expr of a value of the device: it is not known while the kernel is built")
    return value


def range_constexpr(*bounds: Any) -> Any:
    """A range whose loop is unrolled while the kernel is built."""
    for bound in bounds:
        if is_dynamic(bound):
            raise fail("range_constexpr of a value of the device: it is not known while the kernel is built")
    return builtins.range(*bounds)
