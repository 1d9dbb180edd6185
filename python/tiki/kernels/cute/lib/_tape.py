"""The tape: what a kernel under construction has recorded, and how it becomes kernel IR.

Operations are recorded here first and go to the builder when the function is done. So a region can decide at
its end what it carries and yields, the access of a parameter is known from the whole body, and what nobody uses
is dropped. Rejected: calling the builder at once, which must be told the carried values of a loop before the
body has been seen.

A trace belongs to the thread that builds it; nothing here is shared between threads but constants.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tiki import _core

_kernel = _core._kernel
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep

Type = tuple[Any, ...]


class KernelError(ValueError):
    """A kernel that cannot be captured or built; the message begins with file and line."""


def where() -> tuple[str, int]:
    """File and line of the innermost frame that is not part of this package."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def fail(message: str, line: int | None = None) -> KernelError:
    """The error, to be raised, with the place in the user's code before the message."""
    file, here = where()
    return KernelError(f"{file}:{here if line is None else line}: {message}")


def place_of(error: BaseException) -> str:
    """File and line of the innermost frame of an error that is not part of this package."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_HERE):
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


class Operation:
    """A row of the operation table of kernels."""

    __slots__ = ("name", "code", "attrs", "operands", "variadic", "states_type", "doc")

    def __init__(self, code: int, row: tuple[Any, ...]) -> None:
        self.code = code
        self.name, self.operands, self.attrs, self.variadic, self.states_type, self.doc = row


OPERATIONS = {row[0]: Operation(code, row) for code, row in enumerate(_kernel["operations"]())}

# Operations that may be dropped when unused and merged when equal.
PURE = frozenset(
    "address assume add sub mul neg abs sdiv udiv srem urem smin smax umin umax smulhi umulhi and or xor not shl "
    "sshr ushr popcount leading_zeros reverse_bits permute_bytes logic3 funnel icmp fma fma_unit div sqrt rcp min max "
    "min_num max_num floor ceil trunc rint copysign fcmp select exp exp2 log log2 tanh erf sin cos exp2_approx log2_approx "
    "rcp_approx sqrt_approx rsqrt_approx sin_approx cos_approx tanh_approx div_approx convert float_from_signed "
    "float_from_unsigned signed_from_float unsigned_from_float extend_signed extend_unsigned truncate bitcast vector "
    "splat extract insert offset pointer_cast pointer_bits thread_index block_index block_size grid_size "
    "cluster_index cluster_block cluster_size".split()
)
# Of these, the ones that must not run where the program would not have run them: a zero divisor is a finding.
GUARDED = frozenset("sdiv udiv srem urem assume".split())


class Var:
    """A value of the kernel: the result of an operation, an argument of a region, or a parameter."""

    __slots__ = ("type", "region", "name")

    def __init__(self, type: Type, region: Region) -> None:
        self.type = type
        self.region = region
        self.name: str | None = None


class Const:
    """A constant: type and Python number. Equal ones are equal."""

    __slots__ = ("type", "value")

    def __init__(self, scalar: str, value: Any) -> None:
        self.type: Type = ("number", scalar, 1)
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self.type == other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((self.type, repr(self.value)))


Ir = Var | Const


class Op:
    """A recorded operation."""

    __slots__ = ("name", "operands", "attrs", "type", "result", "place")

    def __init__(
        self, name: str, operands: tuple[Ir | None, ...], attrs: tuple[tuple[str, Any], ...], type: Any
    ) -> None:
        self.name = name
        self.operands = operands
        self.attrs = attrs
        self.type: Type | None = type
        self.result: Var | None = None
        self.place = where()


class Flow:
    """A recorded `for`, `while` or `if`: its regions, what goes in and what comes out."""

    __slots__ = ("kind", "bounds", "unroll", "inits", "regions", "yields", "results", "place")

    def __init__(self, kind: str, bounds: tuple[Ir, ...], unroll: int = 0) -> None:
        self.kind = kind
        self.bounds = bounds  # first, end, step of a for; the condition of an if or (before the loop) of a while
        self.unroll = unroll
        self.inits: list[Ir] = []
        self.regions: list[Region] = []
        self.yields: list[list[Ir]] = []  # by region
        self.results: list[Var] = []
        self.place = where()


class Region:
    """A list of operations with arguments. `line` is where the statement stands that it belongs to."""

    __slots__ = ("ops", "args", "parent", "kind", "line", "known")

    def __init__(self, parent: Region | None, kind: str, line: int = 0) -> None:
        self.ops: list[Op | Flow] = []
        self.args: list[Var] = []
        self.parent = parent
        self.kind = kind
        self.line = line
        self.known: dict[Any, Var] = {}  # pure operations by what they compute

    def is_in(self, other: Region) -> bool:
        region: Region | None = self
        while region is not None and region is not other:
            region = region.parent
        return region is other

    def is_pure(self) -> bool:
        return all(isinstance(op, Op) and op.name in PURE and op.name not in GUARDED for op in self.ops)


class Trace:
    """A kernel under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root = Region(None, "kernel")
        self.prologue = Region(None, "kernel")
        self.root.parent = self.prologue
        self.region = self.root
        self.params: list[Any] = []  # of contract.Parameter
        self.requires: list[tuple[Any, str, Any]] = []
        self.maps: list[Any] = []  # of _tma.TensorMap

    def require(self, left: Any, relation: str, right: Any) -> None:
        """A precondition of the launch, once; one of plain numbers must hold."""
        if repr((left, relation, right)) in map(repr, self.requires):
            return
        if isinstance(left, int) and isinstance(right, int):
            if not {"==": left == right, ">=": left >= right, "<": left < right}[relation]:
                raise fail(f"{left} {relation} {right} does not hold")
            return
        self.requires.append((left, relation, right))

    # ---- recording ----

    def check(self, ir: Ir) -> None:
        """A value of a region that has ended, or of another kernel, is not there any more."""
        if isinstance(ir, Var) and not self.region.is_in(ir.region):
            if ir.region.kind == "kernel":
                raise fail("a value of another kernel is used")
            raise fail(
                f"a value made inside the {ir.region.kind} on line {ir.region.line} is used outside of it; names that "
                "are rebound there are carried, what is put into objects is not"
            )

    def emit(
        self,
        name: str,
        operands: tuple[Ir | None, ...],
        attrs: Any = (),
        type: Type | None = None,
        *,
        first: bool = False,
    ) -> Var:
        """Appends an operation; `first` puts it before everything else. `type` is that of the result, None for
        operations without one."""
        for ir in operands:
            if ir is not None:
                self.check(ir)
        region = self.prologue if first else self.region
        pairs = tuple(attrs.items()) if attrs else ()
        key = (name, tuple(ir if isinstance(ir, Const) or ir is None else id(ir) for ir in operands), pairs, type)
        if name in PURE:
            found = self.find(key, region)
            if found is not None:
                return found
        op = Op(name, operands, pairs, type)
        region.ops.append(op)
        if type is None:
            return None  # type: ignore[return-value]
        op.result = Var(type, region)
        if name in PURE:
            region.known[key] = op.result
        return op.result

    def find(self, key: Any, region: Region | None) -> Var | None:
        while region is not None:
            if key in region.known:
                return region.known[key]
            region = region.parent
        return None

    def enter(self, kind: str, line: int) -> Region:
        self.region = Region(self.region, kind, line)
        return self.region

    def leave(self, region: Region) -> None:
        if self.region is not region:
            raise fail(
                f"an exception has left the {self.region.kind} on line {self.region.line}; the kernel cannot go on"
            )
        assert region.parent is not None
        self.region = region.parent

    def argument(self, region: Region, type: Type) -> Var:
        var = Var(type, region)
        region.args.append(var)
        return var

    def splice(self, region: Region) -> None:
        """Moves the operations of a region that was left into the current one."""
        for op in region.ops:
            assert isinstance(op, Op)
            if op.result is not None:
                op.result.region = self.region
        self.region.ops.extend(region.ops)


# ---- the trace of this thread ----

_local = threading.local()


def current() -> Trace:
    trace = getattr(_local, "trace", None)
    if trace is None:
        raise fail(
            "this makes an operation of a kernel, and no kernel is being built: call it from a @cute.kernel function"
        )
    return trace


def active() -> Trace | None:
    return getattr(_local, "trace", None)


class tracing:
    """Makes a trace the current one of this thread."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self.saved = active()
        _local.trace = self.trace
        return self.trace

    def __exit__(self, *unused: Any) -> None:
        _local.trace = self.saved


# ---- dropping what is not used ----


def _prune(region: Region, used: set[int], yields: list[Ir]) -> None:
    used.update(id(ir) for ir in yields)
    kept: list[Op | Flow] = []
    for op in reversed(region.ops):
        if isinstance(op, Flow):
            _prune_flow(op, used)
        elif op.name in PURE and id(op.result) not in used:
            continue
        else:
            used.update(id(ir) for ir in op.operands)
        kept.append(op)
    region.ops = kept[::-1]


def _prune_flow(flow: Flow, used: set[int]) -> None:
    if flow.kind == "if":
        places = [i for i, var in enumerate(flow.results) if id(var) in used]
        flow.results = [flow.results[i] for i in places]
        flow.yields = [[yields[i] for i in places] for yields in flow.yields]
    for region, yields in zip(flow.regions, flow.yields):
        _prune(region, used, yields)
    used.update(id(ir) for ir in flow.bounds)
    used.update(id(ir) for ir in flow.inits)


# ---- lowering to the builder ----


class Lowering:
    """Hands a finished trace to a builder."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.builder = _kernel["builder"](trace.name, "thread")
        self.numbers: dict[Any, int] = {}  # by Var (its id) or Const
        self.place: tuple[str, int] | None = None

    def at(self, place: tuple[str, int]) -> None:
        if place != self.place:
            self.builder.at(os.path.basename(place[0]), place[1])
            self.place = place

    def number(self, ir: Ir | None) -> int | None:
        if ir is None:
            return None
        key = ir if isinstance(ir, Const) else id(ir)
        if key not in self.numbers and isinstance(ir, Const):
            scalar = ir.type[1]
            make = self.builder.int if scalar[0] == "i" else self.builder.float
            self.numbers[key] = make(scalar, ir.value)
        return self.numbers[key]

    def all(self, irs: Any) -> tuple[int | None, ...]:
        return tuple(self.number(ir) for ir in irs)

    def bind(self, var: Var, number: int) -> None:
        self.numbers[id(var)] = number
        if var.name:
            self.builder.rename(number, var.name)

    def op(self, op: Op) -> None:
        row = OPERATIONS[op.name]
        attrs = tuple((row.attrs[name], value) for name, value in op.attrs)
        number = self.builder.op(row.code, self.all(op.operands), attrs, op.type if row.states_type else None)
        if op.result is not None:
            self.bind(op.result, number)

    def region(self, region: Region) -> None:
        for op in region.ops:
            self.at(op.place)
            if isinstance(op, Op):
                self.op(op)
            else:
                getattr(self, "flow_" + op.kind)(op)

    def end(self, flow: Flow) -> None:
        for var, number in zip(flow.results, self.builder.end(self.all(flow.yields[-1]), len(flow.results))):
            self.bind(var, number)

    def flow_if(self, flow: Flow) -> None:
        self.builder.if_(self.number(flow.bounds[0]))
        self.region(flow.regions[0])
        if flow.regions[1].ops or flow.yields[1]:
            self.builder.else_(self.all(flow.yields[0]))
            self.region(flow.regions[1])
        self.end(flow)

    def flow_for(self, flow: Flow) -> None:
        body = flow.regions[0]
        for var, number in zip(body.args, self.builder.for_(self.all(flow.bounds), flow.unroll, self.all(flow.inits))):
            self.bind(var, number)
        self.region(body)
        self.end(flow)

    def flow_while(self, flow: Flow) -> None:
        body = flow.regions[0]
        first = self.builder.while_(self.all([*flow.bounds, *flow.inits]))
        for var, number in zip(body.args, self.builder.while_do(first[0], first[1:])):
            self.bind(var, number)
        self.region(body)
        self.end(flow)


def lower(trace: Trace, head: Callable[[Lowering], None]) -> Any:
    """The finished kernel; `head` declares parameters and contract."""
    used: set[int] = set()
    _prune(trace.root, used, [])
    _prune(trace.prologue, used, [])
    lowering = Lowering(trace)
    head(lowering)
    lowering.region(trace.prologue)
    lowering.region(trace.root)
    return lowering.builder.finish()
