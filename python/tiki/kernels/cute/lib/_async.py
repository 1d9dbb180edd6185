"""Copies that go on behind the operation, and what orders them: cp.async, bulk copies, TMA, mbarriers, wgmma.

The names are those of CuTe DSL's `cute.arch`; `cute.arch` has them all. What must wait for what is the kernel's to
say; the emulator judges it.
"""

from __future__ import annotations

from typing import Any

from tiki.kernels.cute.lib import _contract as contract
from tiki.kernels.cute.lib import _numeric as numeric
from tiki.kernels.cute.lib._memory import Buffer, Pointer
from tiki.kernels.cute.lib._numeric import Boolean, Int32, Numeric
from tiki.kernels.cute.lib._tape import Var, current, fail


class MBarrier(Numeric):
    """The element type of memory for mbarriers."""

    __slots__ = ()
    scalar, width = "mbar", 64


def _plain(name: str, *operands: Any, **attrs: Any) -> None:
    kept = {key: value for key, value in attrs.items() if value}
    current().emit(name, tuple(operands), kept)


def _int(value: Any) -> Any:
    return None if value is None else numeric.as_numeric(value).to(Int32).ir


def _truth(value: Any) -> Any:
    return None if value is None or value is True else numeric.as_numeric(value).to(Boolean).ir


def _pointer(value: Any, what: str, space: str | None = None) -> Pointer:
    """A pointer, or where a tensor begins."""
    found = value if isinstance(value, Pointer) else _start(value)
    if not isinstance(found, Pointer):
        raise fail(f"{what} is a {type(value).__name__}, expected a pointer")
    if space is not None and found.space != space:
        raise fail(f"{what} is in {found.space} memory, expected {space}")
    return found


def _start(value: Any) -> Any:
    raw = getattr(value, "raw", value)
    if hasattr(raw, "iterator") and hasattr(raw, "offset"):
        return raw.iterator + raw.offset
    return raw


def _barrier(value: Any) -> Pointer:
    pointer = _pointer(value, "an mbarrier")
    if pointer.dtype is not MBarrier:
        raise fail(f"an mbarrier behind a pointer to {pointer.dtype.__name__}; cute.arch.make_mbarriers makes some")
    return pointer


# ---- cp.async ----


def cp_async(target: Any, source: Any, bytes: int = 16, *, size: Any = None, mask: Any = None) -> None:
    """Copies 4, 8 or 16 bytes from device memory to shared memory, zeros beyond `size` bytes; nothing without the
    condition `mask`. It is done behind cp_async_wait_group."""
    target, source = _pointer(target, "the target", "shared"), _pointer(source, "the source", "global")
    if bytes not in (4, 8, 16):
        raise fail(f"cp_async of {bytes} bytes, expected 4, 8 or 16")
    target.touch(2, bytes)
    source.touch(1, bytes)
    operands = (target.ir, source.ir, _int(size), _truth(mask), None)
    current().emit("cp_async", operands, {"bytes": bytes})


def cp_async_commit_group() -> None:
    """Closes a group of the thread's cp_async."""
    _plain("cp_async_commit")


def cp_async_wait_group(groups: int) -> None:
    """Waits until at most so many of the thread's groups are unfinished; others see the bytes behind a barrier."""
    _plain("cp_async_wait", groups=groups)


def cp_async_mbarrier_arrive_noinc(barrier: Any) -> None:
    """Arrives on an mbarrier, as one of those that it counts, when the thread's cp_async so far are done."""
    _plain("cp_async_arrive", _barrier(barrier).ir, arriving=1)


# ---- mbarriers ----


def make_mbarriers(count: int = 1) -> Pointer:
    """So many mbarriers in shared memory: a pointer to the first."""
    buffer = Buffer(MBarrier, f"{count}:1", 8)
    ir = current().emit("address", (buffer.ir,), {}, ("pointer", "mbar", "shared"), first=True)
    return Pointer(ir, MBarrier, "shared", buffer)


def mbarrier_init(barrier: Any, count: Any) -> None:
    """A barrier whose phases are complete after so many arrivals; by one thread, then mbarrier_init_fence, a barrier."""
    _plain("mbarrier_init", _barrier(barrier).ir, _int(count))


def mbarrier_init_fence() -> None:
    """Makes initialisations visible to the cluster and to asynchronous copies."""
    _plain("mbarrier_fence")


def mbarrier_arrive(barrier: Any, *, count: Any = None, mask: Any = None) -> None:
    """Arrives, here or (with a pointer of map_dsmem_ptr) at another block of the cluster."""
    _plain("mbarrier_arrive", _barrier(barrier).ir, _int(count), _truth(mask))


def mbarrier_arrive_and_expect_tx(barrier: Any, bytes: Any, *, mask: Any = None) -> None:
    """Arrives, and the phase waits for so many bytes more."""
    _plain("mbarrier_expect", _barrier(barrier).ir, _int(bytes), _truth(mask))


def mbarrier_expect_tx(barrier: Any, bytes: Any) -> None:
    """The phase waits for so many bytes more."""
    _plain("mbarrier_expect_only", _barrier(barrier).ir, _int(bytes))


def mbarrier_wait(barrier: Any, phase: Any) -> None:
    """Waits until the phase of this parity is complete."""
    _plain("mbarrier_wait", _barrier(barrier).ir, _int(phase))


def mbarrier_try_wait(barrier: Any, phase: Any) -> Any:
    """Whether the phase of this parity is complete."""
    type_ = numeric.number_type(Boolean)
    return numeric.wrap(Boolean, current().emit("mbarrier_test", (_barrier(barrier).ir, _int(phase)), {}, type_))


# ---- fences, warpgroups, clusters ----


def fence_proxy(kind: str = "async_shared") -> None:
    """What the thread wrote becomes visible to the async proxy (TMA, wgmma): "async", "async_shared", "async_global"."""
    if kind not in ("async", "async_shared", "async_global"):
        raise fail(f'fence_proxy of "{kind}", expected "async", "async_shared" or "async_global"')
    current().emit("proxy_fence", (), {"proxy": kind})


def fence_acq_rel_gpu() -> None:
    """Orders the thread's accesses for all threads of the device."""
    current().emit("fence", (), {"fence": "acq_rel", "scope": "gpu"})


def fence_acq_rel_cluster() -> None:
    """Orders the thread's accesses for the threads of its cluster."""
    current().emit("fence", (), {"fence": "acq_rel", "scope": "cluster"})


def elect_one() -> Any:
    """True in one lane of the warp."""
    return numeric.wrap(Boolean, current().emit("elect", (None,), {}, numeric.number_type(Boolean)))


def warpgroup_reg_alloc(registers: int) -> None:
    """Takes registers for the warpgroup: so many a thread."""
    current().emit("registers_grow", (), {"registers": registers})


def warpgroup_reg_dealloc(registers: int) -> None:
    """Gives registers of the warpgroup back: so many are left a thread."""
    current().emit("registers_shrink", (), {"registers": registers})


def cluster_arrive() -> None:
    """Arrives at the cluster's barrier."""
    _plain("cluster_arrive")


def cluster_wait() -> None:
    """Waits for all threads of the cluster, and sees what they wrote."""
    _plain("cluster_wait")


def map_dsmem_ptr(pointer: Any, rank: Any) -> Pointer:
    """The same place in another block of the cluster."""
    found = _pointer(pointer, "a place in shared memory", "shared")
    type_ = ("pointer", found.dtype.scalar, "cluster")
    ir = current().emit("peer", (found.ir, _int(rank)), {}, type_)
    return Pointer(ir, found.dtype, "cluster", found.root)


def wgmma_fence() -> None:
    """Orders registers and shared memory before the next wgmma."""
    _plain("wgmma_fence")


def wgmma_commit_group() -> None:
    """Closes a group of wgmma."""
    _plain("wgmma_commit")


def wgmma_wait_group(groups: int) -> None:
    """Waits until at most so many groups of wgmma are unfinished."""
    _plain("wgmma_wait", groups=groups)


# ---- bulk copies and TMA ----


def cp_async_bulk(target: Any, source: Any, bytes: Any, barrier: Any = None) -> None:
    """Copies a run of bytes, multiples of 16: to shared memory with an mbarrier that counts them, or from shared
    memory, done behind cp_async_bulk_commit_group and cp_async_bulk_wait_group."""
    target, source = _pointer(target, "the target"), _pointer(source, "the source")
    target.touch(2, 16)
    source.touch(1, 16)
    if target.space == "shared" and source.space == "global":
        if barrier is None:
            raise fail("cp_async_bulk to shared memory needs an mbarrier")
        operands = (target.ir, source.ir, _int(bytes), _barrier(barrier).ir, None, None)
        current().emit("bulk_load", operands)
    elif target.space == "global" and source.space == "shared":
        current().emit("bulk_store", (target.ir, source.ir, _int(bytes), None))
    else:
        raise fail(f"cp_async_bulk from {source.space} to {target.space} memory")


def cp_async_bulk_commit_group() -> None:
    """Closes a group of bulk or TMA stores."""
    _plain("bulk_commit")


def cp_async_bulk_wait_group(groups: int, *, read: bool = False) -> None:
    """Waits until at most so many groups are unfinished; with `read` only until their sources were read."""
    _plain("bulk_wait", groups=groups, read=int(read))


class TensorMap:
    """How TMA sees a tensor that is a parameter of the kernel: `TensorMap(x, box)` copies boxes of that many
    elements, first mode first. `swizzle` is over 0, 32, 64 or 128 bytes, as wide as the last mode of the box where the
    target is a Tensor of the default layout. Outside of the tensor there are zeros, or NaN with `nan`."""

    def __init__(self, tensor: Any, box: tuple[int, ...], swizzle: int = 0, nan: bool = False) -> None:
        raw = getattr(tensor, "raw", tensor)
        parameter: Any = getattr(getattr(raw, "iterator", None), "root", None)
        extents = getattr(parameter, "extents", None)
        if extents is None or raw.iterator.ir is not parameter.var or len(raw.shape) != len(extents[0]):
            raise fail("TensorMap of something else than a whole tensor that is a parameter")
        shape, stride = extents
        if not 1 <= len(shape) <= 5 or stride[-1] != 1 or any(isinstance(mode, tuple) for mode in shape):
            raise fail(f"TensorMap of a tensor {raw.shape}:{raw.stride}: expected 1 to 5 modes, the last contiguous")
        if len(box) != len(shape) or not all(isinstance(one, int) and 1 <= one <= 256 for one in box):
            raise fail(f"a box {box} of a tensor of {len(shape)} modes: expected 1 to 256 elements of each")
        if swizzle not in (0, 32, 64, 128):
            raise fail(f"a swizzle over {swizzle} bytes, expected 0, 32, 64 or 128")
        self.dtype = raw.element_type
        self.box = box
        if swizzle and box[-1] * self.dtype.bytes > swizzle:
            raise fail(f"rows of {box[-1] * self.dtype.bytes} bytes in a box that is swizzled over {swizzle}")
        self.parameter = parameter
        self.shape, self.stride = shape, stride
        self.swizzle, self.nan = swizzle, nan
        trace = current()
        parameter.align = max(parameter.align, 16)
        for step in stride[:-1]:
            if isinstance(step, int) and step * self.dtype.bytes % 16:
                raise fail(f"rows of {step * self.dtype.bytes} bytes; TMA takes multiples of 16")
            trace.require(contract.combine("mod", contract.combine("mul", step, self.dtype.bytes), 16), "==", 0)
        self.ir = Var(("pointer", "tmap", "param"), trace.prologue)
        self.name = f"{parameter.name}_map{len(trace.maps)}"
        trace.maps.append(self)

    def declare(self, lowering: Any) -> None:
        """The map as a parameter: fastest mode first, strides in bytes."""
        size = self.dtype.bytes
        shape = [contract.expression(lowering, extent) for extent in reversed(self.shape)]
        steps = [contract.combine("mul", step, size) for step in reversed(self.stride[:-1])]
        stride = [contract.expression(lowering, step) for step in steps]
        base = lowering.numbers[id(self.parameter.var)]
        number = lowering.builder.map(
            self.name, base, self.dtype.scalar, tuple(shape), tuple(stride), self.box[::-1], self.swizzle, self.nan
        )
        lowering.numbers[id(self.ir)] = number

    @property
    def bytes(self) -> int:
        """Of a box: what an mbarrier expects of one copy."""
        size = self.dtype.bytes
        for extent in self.box:
            size *= extent
        return size

    def load(self, target: Any, barrier: Any, *coord: Any) -> None:
        """Copies the box at these coordinates (of elements, first mode first) to shared memory; `barrier` counts the
        bytes. One thread does it."""
        target = _pointer(target, "the target", "shared")
        target.touch(2, 16)
        self.parameter.access |= 1
        operands = (target.ir, self.ir, _barrier(barrier).ir, None, None, *self.coords(coord))
        current().emit("tma_load", operands)

    def store(self, source: Any, *coord: Any) -> None:
        """Copies shared memory to the box at these coordinates; done behind cp_async_bulk_wait_group."""
        source = _pointer(source, "the source", "shared")
        source.touch(1, 16)
        self.parameter.access |= 2
        current().emit("tma_store", (self.ir, source.ir, None, *self.coords(coord)))

    def reduce_add(self, source: Any, *coord: Any) -> None:
        """Adds shared memory to the box at these coordinates."""
        source = _pointer(source, "the source", "shared")
        source.touch(1, 16)
        self.parameter.access |= 3
        current().emit("tma_reduce", (self.ir, source.ir, None, *self.coords(coord)), {"update": "add"})

    def coords(self, coord: tuple[Any, ...]) -> list[Any]:
        if len(coord) != len(self.shape):
            raise fail(f"{len(coord)} coordinates of a box of {len(self.shape)} modes")
        return [_int(one) for one in reversed(coord)]


# ---- atomic updates ----


def _atomic(update: str, pointer: Any, value: Any, expected: Any, order: str, scope: str) -> Any:
    pointer = _pointer(pointer, "what an atomic operation updates")
    dtype = pointer.dtype
    value = numeric.convert(numeric.as_numeric(value), dtype)
    if expected is not None:
        expected = numeric.convert(numeric.as_numeric(expected), dtype).ir
    if update in ("min", "max") and not dtype.is_float:
        update = ("s" if dtype.signed else "u") + update
    pointer.touch(3, dtype.bytes)
    attrs = {"update": update, "order": order, "scope": scope}
    operands = (pointer.ir, value.ir, expected, None, None)
    return numeric.wrap(dtype, current().emit("atomic", operands, attrs, numeric.number_type(dtype)))


def atomic_add(pointer: Any, value: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Adds in one step; gives what was there. `sem`: relaxed, acquire, release, acq_rel; `scope`: block, cluster, gpu,
    system."""
    return _atomic("add", pointer, value, None, sem, scope)


def atomic_max(pointer: Any, value: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Keeps the larger in one step; gives what was there."""
    return _atomic("max", pointer, value, None, sem, scope)


def atomic_min(pointer: Any, value: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Keeps the smaller in one step; gives what was there."""
    return _atomic("min", pointer, value, None, sem, scope)


def atomic_exch(pointer: Any, value: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Exchanges in one step; gives what was there."""
    return _atomic("exchange", pointer, value, None, sem, scope)


def atomic_cas(pointer: Any, expected: Any, value: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Stores the value where the expected one is, in one step; gives what was there."""
    return _atomic("compare", pointer, value, expected, sem, scope)
