"""What is drawn for a call of each function, and what NumPy says of the result: see draw_calls.py.

`calls("names", reference)` enters a function of a Draw and a name that gives arguments and keywords. The reference
takes name, arguments and keywords and gives values of op_values (float64, with their tolerance), or None where
MLX's own values are compared.
"""

import numpy as np

import compare_ops  # noqa: F401, fills the table of references
from draw_calls import Operand
from op_values import OPS, Value

CALLS = {}


def calls(names, reference=None):
    def register(function):
        for name in names.split():
            assert name not in CALLS
            CALLS[name] = (function, reference)
        return function

    return register


def values(arguments):
    return [a.value() if isinstance(a, Operand) else a for a in arguments]


ALIASES = dict(acos="arccos", acosh="arccosh", asin="arcsin", asinh="arcsinh", atan="arctan", atan2="arctan2",
               atanh="arctanh", pow="power", conj="conjugate", positive="stop_gradient", bitwise_left_shift="left_shift",
               bitwise_right_shift="right_shift", concat="concatenate", cumulative_sum="cumsum",
               cumulative_prod="cumprod")  # fmt: skip


def by_position(name, arguments, keywords):
    """The row of the same name takes the same arguments."""
    return OPS[ALIASES.get(name, name)](*values(arguments), **keywords)


# ---- elementwise ----


@calls("abs negative positive sign square exp sin cos tan sinh cosh tanh sigmoid erf expm1 arctan atan arcsinh asinh "
       "degrees radians conj conjugate real imag logical_not isnan isinf isfinite isposinf isneginf "
       "stop_gradient contiguous", by_position)  # fmt: skip
def one(d, name):
    kinds = {"erf": "buif", "expm1": "buif", "isposinf": "buif", "isneginf": "buif", "negative": "uifc"}.get(name, "buifc")
    return [d.array(kinds=kinds)], {}


@calls("ceil floor trunc", by_position)
def rounded(d, name):
    return [d.array(kinds="buif")], {}


@calls("round")
def rounded_to(d, name):
    return [d.array(kinds="uif", low=-100, high=100)], {"decimals": d.pick(0, 1, -1)} if d.flag() else {}


@calls("sqrt rsqrt reciprocal log log2 log10 log1p arccosh acosh", by_position)
def positive(d, name):
    kinds = "uif" if name == "log1p" else "uifc"
    return [d.array(kinds=kinds, low=1, high=9)], {}


@calls("arcsin asin arccos acos arctanh atanh erfinv", by_position)
def within_one(d, name):
    return [d.array(kinds="f", low=-0.875, high=0.875)], {}


@calls("bitwise_invert", by_position)
def inverted(d, name):
    return [d.array(kinds="ui")], {}


def pair(d, kinds, low=-4.0, high=4.0, low2=None):
    """Two operands that broadcast, of one dtype or two; or one and a number of the program."""
    shape = d.shape()
    a = d.array(d.narrower(shape), kinds, low, high)
    b = d.array(shape, a.dtype if d.flag() else kinds, low if low2 is None else low2, high)
    return [a, b] if d.flag() else [b, a] if low2 is None else [a, b]


@calls("add multiply maximum minimum equal not_equal less less_equal greater greater_equal logical_and logical_or",
       by_position)  # fmt: skip
def two(d, name):
    return pair(d, "buifc"), {}


@calls("subtract", by_position)
def difference(d, name):
    return pair(d, "uifc"), {}


@calls("logical_xor bitwise_and bitwise_or bitwise_xor", by_position)
def two_whole(d, name):
    return pair(d, "bui"), {}


@calls("divide", by_position)
def quotient(d, name):
    return pair(d, "uifc", low2=1), {}


@calls("floor_divide remainder", by_position)
def whole_quotient(d, name):
    return pair(d, "uif", low2=1), {}


@calls("divmod", lambda name, a, k: [OPS["floor_divide"](*values(a)), OPS["remainder"](*values(a))])
def both_quotients(d, name):
    return pair(d, "uif", low2=1), {}


@calls("power pow", by_position)
def powers(d, name):
    return pair(d, "uif", low=1, low2=1), {}


@calls("arctan2 atan2 logaddexp", by_position)
def two_real(d, name):
    return pair(d, "uif", low=1), {}


@calls("left_shift right_shift bitwise_left_shift bitwise_right_shift", by_position)
def shifts(d, name):
    return pair(d, "ui", low=0), {}


@calls("where", by_position)
def chosen(d, name):
    shape = d.shape()
    return [d.array(d.narrower(shape), "bui"), d.array(d.narrower(shape)), d.array(shape)], {}


@calls("clip", by_position)
def clipped(d, name):
    a = d.array(kinds="uif")
    bounds = [d.array(d.narrower(a.shape), a.dtype, low=0, high=1), d.array(d.narrower(a.shape), a.dtype, low=2)]
    if d.flag():
        bounds[d.whole(0, 1)] = None
    return [a, *bounds], {}


@calls("isclose allclose", lambda name, a, k: OPS[name](*values(a), k.get("rtol", 1e-5), k.get("atol", 1e-8), k.get("equal_nan", False)))
def near(d, name):
    return pair(d, "f", low=-1, high=1), {"rtol": 0.25, "atol": 0.125, "equal_nan": d.flag()} if d.flag() else {}


@calls("array_equal")
def all_equal(d, name):
    a = d.array(kinds="uif")
    return [a, d.pick(a, d.array(a.shape, a.dtype), d.array())], {}


@calls("nan_to_num")
def numbers(d, name):
    return [d.array(kinds="uif")], {"nan": 2.0, "posinf": 3.0} if d.flag() else {}


@calls("astype view")
def retyped(d, name):
    a = d.array(kinds="buif" if name == "astype" else "if", low=0, high=100)
    return [a, DtypeName(d.dtype("buif" if name == "astype" else "iu"))], {}


class DtypeName:
    """A dtype argument."""

    def __init__(self, name):
        self.name = name

    def on(self, m):
        return getattr(m, "bool_" if self.name == "bool" else self.name)

    def __repr__(self):
        return self.name


# ---- reductions, scans, orders ----


def reduced(name, arguments, keywords):
    extra = {"ddof": keywords.get("ddof", 0)} if name in ("var", "std") else {}
    axes = axes_list(keywords.get("axis"))
    return OPS[name](arguments[0].value(), axes, keywords.get("keepdims", False), **extra)


def axes_list(axis):
    return None if axis is None else [axis] if isinstance(axis, int) else list(axis)


@calls("sum mean logsumexp any all var std", reduced)
def sums(d, name):
    least_rank = 1 if name == "sum" else 0
    kinds = {"logsumexp": "f", "var": "buif", "std": "buif", "any": "buif", "all": "buif"}.get(name, "buifc")
    a = d.array(d.shape(least_rank, 4, 1 if name in ("logsumexp", "mean", "var", "std") else 0), kinds)
    keywords = {"axis": d.axes(a.rank), "keepdims": d.flag()}
    return [a], {**keywords, "ddof": 1} if name in ("var", "std") and a.data.size > 20 and d.flag() else keywords


@calls("prod", reduced)
def products(d, name):
    a = d.array(d.shape(1, 4, d.whole(0, 1)), "uif", low=-2, high=2)
    return [a], {"axis": d.axes(a.rank), "keepdims": d.flag()}


@calls("max min", reduced)
def extremes(d, name):
    a = d.array(kinds="buif", least=1)
    return [a], {"axis": d.axes(a.rank), "keepdims": d.flag()}


@calls("minmax", lambda name, a, k: [reduced("min", a, k), reduced("max", a, k)])
def both_extremes(d, name):
    return extremes(d, name)


@calls("count_nonzero")
def counts(d, name):
    a = d.array(low=-1, high=1, kinds="buif")
    return [a], {"axis": d.axes(a.rank), "keepdims": d.flag()}


@calls("median", lambda name, a, k: OPS["median"](a[0].value(), axes_list(k["axis"]), k["keepdims"]))
def medians(d, name):
    a = d.array(kinds="buif", least=1)
    return [a], {"axis": d.axes(a.rank), "keepdims": d.flag()}


@calls("argmax argmin")
def places(d, name):
    a = d.array(kinds="buif", least=1)
    return [a], {"axis": d.axis(a.rank, none=True) if a.rank else None, "keepdims": d.flag() and a.rank > 0}


@calls("softmax", lambda name, a, k: OPS["softmax"](a[0].value(), axes_list(k["axis"])))
def softmaxes(d, name):
    a = d.array(d.shape(1, 4, 1), "uif", -9, 9)
    return [a], {"axis": d.axes(a.rank) if "float" in a.dtype else -1}


def scanned(name, arguments, keywords):
    a, name = arguments[0].value(), ALIASES.get(name, name)
    if keywords.get("axis") is None:
        return None
    return OPS[name](a, keywords["axis"], keywords["reverse"], keywords["inclusive"])


@calls("cumsum cumprod cummax cummin logcumsumexp cumulative_sum cumulative_prod", scanned)
def scans(d, name):
    kinds = "f" if name == "logcumsumexp" else "uif" if "prod" in name else "buif"
    a = d.array(d.shape(1, 4, 1), kinds, -2, 2)
    return [a], {"axis": d.axis(a.rank, none=True), "reverse": d.flag(), "inclusive": d.flag() or "cumm" in name}


@calls("sort argsort")
def ordered(d, name):
    a = d.array(d.shape(1, 4), "buif")
    if name == "argsort":
        a = distinct(d, a)
    return [a], {"axis": d.axis(a.rank, none=True)}


def distinct(d, a):
    """The same shape and view with different elements, so that an order is the only one."""
    size = a.base.size
    base = np.random.default_rng(d.whole(0, 2**20)).permutation(size).reshape(a.base.shape)
    return Operand(d.pick("float32", "int32", "uint16"), base.astype(np.float32), a.steps, a.order)


@calls("partition argpartition")
def partitioned(d, name):
    a = distinct(d, d.array(d.shape(1, 4, 1), "F"))
    axis = d.axis(a.rank)
    return [a], {"kth": d.whole(0, a.shape[axis] - 1), "axis": axis}


@calls("topk")
def largest(d, name):
    a = distinct(d, d.array(d.shape(1, 4, 1), "F"))
    axis = d.axis(a.rank)
    return [a], {"k": d.whole(1, a.shape[axis]), "axis": axis}


@calls("searchsorted")
def searched(d, name):
    values = np.sort(d.array((d.pick(1, 4, 9),), "float32", views=False).data)
    dtype = d.dtype("if")
    return [Operand(dtype, np.rint(values)), d.array(kinds=dtype)], {"side": d.pick("left", "right")}


@calls("unique")
def uniques(d, name):
    a = d.array(d.shape(1, 3, 1), d.pick("i", "F"), -2, 2)
    flags = {f"return_{word}": d.flag() for word in ("index", "inverse", "counts")}
    return [a], {"size": int(np.unique(a.data).size), **flags}


# ---- products ----


@calls("matmul", by_position)
def matrices(d, name):
    m, k, n = d.pick(*[1, 2, 3, 5]), d.pick(1, 2, 4, 0), d.pick(1, 3, 4)
    lead = d.shape(0, 2, 1)
    a = d.array((*d.narrower(lead), m, k) if d.flag() else (k,), "fc")
    b = d.array((*lead, k, n) if d.flag() else (k,), "fc")
    return [a, b], {}


@calls("addmm", lambda name, a, k: OPS["addmm"](*values(a), k.get("alpha", 1.0), k.get("beta", 1.0)))
def added_product(d, name):
    m, k, n = d.pick(1, 2, 3), d.pick(1, 2, 4), d.pick(1, 3)
    kinds = d.dtype("f")
    return [d.array(d.narrower((m, n)), kinds), d.array((m, k), kinds), d.array((k, n), kinds)], (
        {"alpha": 0.5, "beta": 2.0} if d.flag() else {})


@calls("inner", by_position)
def inner(d, name):
    k = d.pick(1, 3)
    return [d.array((*d.shape(0, 2, 1), k), "f"), d.array((*d.shape(0, 2, 1), k), "f")], {}


@calls("outer kron")
def outer(d, name):
    return [d.array(d.shape(1, 2, 1), "f"), d.array(d.shape(1, 2, 1), "f")], {}


@calls("vecdot")
def vector_products(d, name):
    shape = d.shape(1, 3, 1)
    return [d.array(shape, "f"), d.array(shape, "f")], {"axis": d.axis(len(shape))}


@calls("tensordot")
def contracted(d, name):
    k, l = d.pick(1, 2, 3), d.pick(1, 2)
    return [d.array((*d.shape(0, 2, 1), k, l), "f"), d.array((k, l, *d.shape(0, 2, 1)), "f")], {"axes": 2}


@calls("einsum")
def einsums(d, name):
    i, j, k = d.pick(1, 2, 3), d.pick(1, 2, 4), d.pick(1, 3)
    dtype = d.dtype("f")
    text, shapes = d.pick(
        ("ij,jk->ik", [(i, j), (j, k)]), ("ij->ji", [(i, j)]), ("ij->", [(i, j)]), ("ii->i", [(i, i)]), ("ii", [(i, i)]),
        ("ijk,ik->ij", [(i, j, k), (i, k)]), ("...i,...i->...", [(j, k, i), (j, k, i)]), ("ij,jk,k->i", [(i, j), (j, k), (k,)]),
        ("i,j->ij", [(i,), (j,)]))  # fmt: skip
    return [text, *(d.array(shape, dtype) for shape in shapes)], {}


# ---- shapes ----


@calls("reshape")
def reshaped(d, name):
    a = d.array()
    size = a.data.size
    ways = [(size,), (1, size, 1)] + ([(-1,)] if size else []) + ([(2, -1)] if size and size % 2 == 0 else []) + [(size + 1,)]
    return [a, d.pick(*ways)], {}


@calls("flatten")
def flattened(d, name):
    a = d.array()
    if not a.rank:
        return [a], {}
    first = d.whole(0, a.rank - 1)
    return [a], {"start_axis": first, "end_axis": d.whole(first, a.rank - 1)}


@calls("unflatten")
def unflattened(d, name):
    a = d.array(d.shape(1, 3, 1))
    axis = d.axis(a.rank)
    return [a, axis, d.pick((a.shape[axis], 1), (1, -1), (2, -1), (7, 7))], {}


@calls("transpose permute_dims")
def transposed(d, name):
    a = d.array()
    return [a], {} if d.flag() else {"axes": [x - d.pick(0, a.rank) for x in permutation(d, a.rank)]}


def permutation(d, rank):
    from hypothesis import strategies as st

    return d.of(st.permutations(range(rank)))


@calls("matrix_transpose")
def turned(d, name):
    return [d.array(d.shape(2, 4))], {}


@calls("swapaxes moveaxis")
def swapped(d, name):
    a = d.array(d.shape(1, 4))
    return [a, d.axis(a.rank), d.axis(a.rank)], {}


@calls("expand_dims")
def expanded(d, name):
    a = d.array(d.shape(0, 3))
    return [a, d.pick(0, -1, a.rank, (0, 1), (0, -1))], {}


@calls("squeeze")
def squeezed(d, name):
    a = d.array()
    ones = [i for i, n in enumerate(a.shape) if n == 1]
    return [a], {"axis": d.pick(*ones)} if ones and d.flag() else {}


@calls("broadcast_to")
def broadcast(d, name):
    shape = d.shape()
    return [d.array(d.narrower(shape)), shape], {}


@calls("broadcast_arrays")
def broadcast_together(d, name):
    shape = d.shape()
    return [d.array(d.narrower(shape)), d.array(d.narrower(shape)), d.array(shape)], {}


@calls("atleast_1d atleast_2d atleast_3d")
def at_least(d, name):
    return [d.array() for _ in range(d.pick(1, 2))], {}


@calls("meshgrid")
def grids(d, name):
    return [d.array((d.pick(1, 2, 3),)) for _ in range(d.pick(1, 2, 3))], {"sparse": d.flag(), "indexing": d.pick("xy", "ij")}


@calls("flip")
def flipped(d, name):
    a = d.array()
    return [a], {"axis": d.axes(a.rank)}


@calls("concatenate concat stack")
def joined(d, name):
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.pick(1, 2, 3)):
        length = list(shape)
        if name != "stack":
            length[axis] = d.pick(0, 1, 3)
        parts.append(d.array(length))
    return [parts], {"axis": axis}


@calls("split")
def cut(d, name):
    a = d.array(d.shape(1, 3))
    axis = d.axis(a.rank)
    n = a.shape[axis]
    return [a, d.pick(1, max(n, 1), 2, [1], sorted(d.whole(0, n) for _ in range(2)))], {"axis": axis}


@calls("unstack")
def unstacked(d, name):
    a = d.array(d.shape(1, 3, 1))
    return [a], {"axis": d.axis(a.rank)}


@calls("pad")
def padded(d, name):
    a = d.array(d.shape(1, 3, 1))
    mode = d.pick("constant", "edge", "reflect", "symmetric")
    most = 2 if mode == "constant" else max(min(a.shape) - 1, 0)
    width = [(d.whole(0, most), d.whole(0, most)) for _ in a.shape]
    return [a, d.pick(width, most, (0, most))], {"mode": mode}


@calls("tile")
def tiled(d, name):
    return [d.array(), d.pick(2, (2,), (1, 2), (2, 1, 3), 0)], {}


@calls("repeat")
def repeated(d, name):
    a = d.array()
    return [a, d.pick(2, 1, 3, 0)], {"axis": d.axis(a.rank, none=True) if a.rank else None}


@calls("roll")
def rolled(d, name):
    a = d.array()
    if a.rank and d.flag():
        return [a, d.whole(-5, 5), d.axis(a.rank)], {}
    return [a, d.whole(-5, 5)], {}


@calls("tril triu")
def triangles(d, name):
    return [d.array(d.shape(2, 4))], {"k": d.whole(-3, 3)}


@calls("diagonal trace")
def diagonals(d, name):
    a = d.array(d.shape(2, 4, 2 if name == "trace" else 1), kinds="uif")  # MLX never ends on an empty diagonal
    first, second = permutation(d, a.rank)[:2]
    return [a], {"offset": d.whole(-1, 1), "axis1": first, "axis2": second}


@calls("diag")
def diagonal_matrix(d, name):
    return [d.array(d.shape(1, 2, 1))], {"k": d.whole(-1, 1)}


@calls("diff")
def differences(d, name):
    a = d.array(d.shape(1, 3, 1), "uif")
    return [a], {"n": d.pick(0, 1, 2), "axis": d.axis(a.rank)}


@calls("as_strided")
def strided(d, name):
    return [d.array((12,), views=False), (2, 3), d.pick((1, 2), (3, 1), (0, 1), (5, 2))], {"offset": d.pick(0, 1)}


# ---- indices ----


def indices(d, shape, length, dtype=None):
    dtype = dtype or d.dtype("ui")
    return d.array(shape, dtype, 0 if dtype.startswith("u") else -length, length - 1)


@calls("take")
def taken(d, name):
    a = d.array(d.shape(1, 3, 1))
    axis = d.axis(a.rank, none=True)
    length = a.data.size if axis is None else a.shape[axis]
    return [a, indices(d, d.shape(0, 2), length)], {"axis": axis}


@calls("take_along_axis put_along_axis")
def along(d, name):
    a = d.array(d.shape(1, 3, 1), "if")
    axis = d.axis(a.rank)
    shape = list(a.shape)
    if name == "take_along_axis":
        shape[axis] = d.pick(1, 2, 3)
        return [a, indices(d, shape, a.shape[axis])], {"axis": axis}
    shape[axis] = 1
    return [a, indices(d, shape, a.shape[axis]), d.array(shape, a.dtype)], {"axis": axis}


@calls("slice slice_update")
def sliced(d, name):
    a = d.array(d.shape(1, 3, 1))
    axes = sorted(set(permutation(d, a.rank)[: d.whole(1, a.rank)]))
    sizes = [d.whole(1, n) for n in a.shape]
    starts = Operand("int32", np.array([d.whole(0, a.shape[x] - sizes[x]) for x in axes], np.int32))
    sizes = [sizes[x] if x in axes else a.shape[x] for x in range(a.rank)]
    if name == "slice":
        return [a, starts, axes, sizes], {}
    return [a, d.array(sizes, a.dtype), starts, axes], {}


# ---- creation ----


@calls("zeros ones")
def filled(d, name):
    return [d.shape()], {"dtype": DtypeName(d.dtype("buifc"))} if d.flag() else {}


@calls("zeros_like ones_like")
def filled_like(d, name):
    return [d.array()], {}


@calls("empty empty_like")
def unfilled(d, name):
    shape = (*d.shape(0, 3), 0)  # without elements: the others may be anything
    return ([shape], {"dtype": DtypeName(d.dtype("buifc"))}) if name == "empty" else ([d.array(shape)], {})


@calls("full full_like")
def full(d, name):
    shape = d.shape()
    value = d.pick(3, 1.5, True, d.array(d.narrower(shape), "uif", low=0))
    dtype = {"dtype": DtypeName(d.dtype("if"))} if value is True or value == 3 and d.flag() else {}
    return [shape if name == "full" else d.array(shape, "uif"), value], dtype


@calls("eye tri")
def identities(d, name):
    return [d.whole(0, 4)], {"m": d.whole(0, 4), "k": d.whole(-2, 2), "dtype": DtypeName(d.dtype("uif"))}


@calls("identity")
def identity(d, name):
    return [d.whole(0, 4)], {}


@calls("arange", lambda name, a, k: None)
def ranges(d, name):
    start, stop, step = d.whole(-5, 5), d.whole(-9, 9), d.pick(1, 2, -1, 3, 0.5)
    return [start, stop, step], {"dtype": DtypeName(d.dtype("if"))} if d.flag() and step != 0.5 else {}


@calls("linspace")
def spaced(d, name):
    return [d.whole(-5, 5), d.whole(-9, 9), d.whole(0, 7)], {"endpoint": d.flag(), "dtype": DtypeName("float32")}


@calls("hanning hamming blackman bartlett")
def windows(d, name):
    return [d.whole(0, 12)], {}


@calls("array asarray")
def made(d, name):
    return [d.pick(1, 1.5, True, [1, 2], [[1.5], [2]], [[]], 2 + 1j, [True, False], [[1, 2], [3, 4]], ())], {}


# ---- convolutions and transforms ----


def tuple_of(value, rank):
    return [value] * rank if isinstance(value, int) else list(value)


def convolved(name, arguments, keywords):
    rank = int(name[-2])
    k = {key: tuple_of(keywords.get(key, default), rank) for key, default in
         (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))}  # fmt: skip
    extra = [k["output_padding"]] if "transpose" in name else []
    flat = [x[0] if rank == 1 else x for x in (k["stride"], k["padding"], k["dilation"], *extra)]
    return OPS[name](*values(arguments), *flat, keywords.get("groups", 1))


@calls("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")
def convolutions(d, name):
    rank, groups = int(name[-2]), d.pick(1, 2)
    inside, outside = groups * d.pick(1, 2), groups * d.pick(1, 2)
    dtype = d.dtype("f")
    space = [d.whole(5, 6) for _ in range(rank)]
    kernel = [d.whole(1, 3) for _ in range(rank)]
    x = d.array((d.pick(1, 2), *space, inside), dtype, -1, 1)
    w = d.array((outside, *kernel, inside // groups), dtype, -1, 1)
    padding = d.pick(0, 1) if "transpose" not in name else 0
    return [x, w], {"stride": d.pick(1, 2), "padding": padding, "dilation": d.pick(1, 2) if padding == 0 else 1, "groups": groups}


@calls("conv_general")
def general_convolutions(d, name):
    x, w = d.array((1, 5, 4, 2), "F", -1, 1), d.array((3, 2, d.pick(1, 2), 2), "F", -1, 1)
    low, high = [d.whole(0, 2), d.whole(0, 2)], [d.whole(0, 2), d.whole(0, 2)]
    return [x, w], {"stride": [d.pick(1, 2), 1], "padding": (low, high), "input_dilation": d.pick(1, 2), "flip": d.flag()}


@calls("convolve")
def convolved_vectors(d, name):
    return [d.array((d.whole(1, 6),), "f"), d.array((d.whole(1, 6),), "f")], {"mode": d.pick("full", "same", "valid")}


@calls("fft.fft fft.ifft fft.rfft fft.irfft")
def transforms(d, name):
    a = d.array(d.shape(1, 3, 1), "F" if name == "fft.rfft" else "Fc")
    axis = d.axis(a.rank)
    least = 2 if name == "fft.irfft" else 1
    return [a], {"n": d.whole(least, 7), "axis": axis, "norm": d.pick("backward", "ortho", "forward")}


@calls("fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.rfftn fft.irfftn")
def transforms_of_axes(d, name):
    a = d.array(d.shape(2, 3, 2), "F" if ".rfft" in name else "Fc")
    axes = permutation(d, a.rank)[:2]
    return [a], {"axes": axes} if d.flag() else {"s": [d.whole(2, 5), d.whole(2, 5)], "axes": axes}


@calls("fft.fftshift fft.ifftshift")
def shifted(d, name):
    a = d.array(d.shape(1, 3))
    return [a], {"axes": d.axes(a.rank)}


@calls("fft.fftfreq fft.rfftfreq")
def frequencies(d, name):
    return [d.whole(1, 9)], {"d": d.pick(1.0, 0.5)}


@calls("fft.stft")
def spectra(d, name):
    return [d.array((*d.shape(0, 1, 1), d.whole(16, 24)), "F")], {"n_fft": 8, "hop_length": d.pick(2, 4), "center": d.flag()}


@calls("fft.istft")
def signals(d, name):
    return [d.array((*d.shape(0, 1, 1), d.whole(3, 5), 5), "c")], {"n_fft": 8, "hop_length": 2}


@calls("hadamard_transform")
def hadamard(d, name):
    return [d.array((*d.shape(0, 2, 1), d.pick(1, 2, 4, 8, 12, 20)), "f")], {"scale": 0.5} if d.flag() else {}


# ---- matrices ----


def matrix(d, symmetric=False, wide=False):
    """Well conditioned: dominated by the diagonal."""
    n = d.pick(1, 2, 3, 4)
    a = d.array((*d.shape(0, 1, 1), n, n + (d.pick(0, 1) if wide else 0)), "float32", -1, 1, views=False)
    base = a.data + 4 * np.eye(*a.shape[-2:], dtype=np.float32)
    return Operand("float32", (base + np.swapaxes(base, -1, -2)) / 2 if symmetric else base)


def linear(name, arguments, keywords):
    keywords = dict(keywords)
    uplo = keywords.pop("UPLO", None)
    if uplo is not None:
        keywords["upper"] = uplo == "U"
    return OPS[name.split(".")[-1]](*values(arguments), **keywords)


@calls("linalg.inv linalg.pinv linalg.det linalg.slogdet linalg.lu linalg.lu_factor linalg.eig linalg.eigvals", linear)
def of_matrix(d, name):
    return [matrix(d)], {}


@calls("linalg.qr", linear)
def of_wide_matrix(d, name):
    return [matrix(d, wide=True)], {}


@calls("linalg.svd", linear)
def singular(d, name):
    return [matrix(d, wide=True)], {"compute_uv": d.flag()}


@calls("linalg.tri_inv linalg.cholesky_inv", linear)
def of_triangle(d, name):
    return [matrix(d)], {"upper": d.flag()}


@calls("linalg.cholesky", linear)
def of_positive(d, name):
    return [matrix(d, symmetric=True)], {"upper": d.flag()}


@calls("linalg.eigh linalg.eigvalsh", linear)
def of_symmetric(d, name):
    return [matrix(d, symmetric=True)], {"UPLO": d.pick("L", "U")}


@calls("linalg.solve", linear)
def systems(d, name):
    a = matrix(d)
    return [a, d.array((*a.shape[:-1], d.pick(1, 2)), "F")], {}


@calls("linalg.solve_triangular", linear)
def triangular_systems(d, name):
    a = matrix(d)
    return [a, d.array((*a.shape[:-1], d.pick(1, 2)), "F")], {"upper": d.flag()}


@calls("linalg.cross")
def crossed(d, name):
    shape = (*d.shape(0, 2), 3)
    return [d.array(shape, "if"), d.array(shape, "if")], {}


@calls("linalg.norm matrix_norm")
def norms(d, name):
    a = d.array(d.shape(1, 3, 1), "F")
    if a.rank >= 2 and d.flag():
        axes = permutation(d, a.rank)[:2]
        return [a, d.pick("fro", 1, -1, float("inf"), 2, "nuc")], {"axis": axes, "keepdims": d.flag()}
    return [a, d.pick(None, 1, 2, 3, float("inf"))], {"axis": d.axis(a.rank), "keepdims": d.flag()}


# ---- layers, quantisation, pairs ----


@calls("fast.rms_norm", lambda name, a, k: OPS["rms_norm"](*values(a)))
def rms_norms(d, name):
    a = d.array(d.shape(1, 3, 1), "f")
    return [a, d.pick(None, d.array(a.shape[-1:], a.dtype)), 0.01], {}


@calls("fast.layer_norm", lambda name, a, k: OPS["layer_norm"](*values(a)))
def layer_norms(d, name):
    a = d.array(d.shape(1, 3, 1), "f")
    return [a, d.pick(None, d.array(a.shape[-1:], a.dtype)), d.pick(None, d.array(a.shape[-1:], a.dtype)), 0.01], {}


@calls("fast.rope")
def ropes(d, name):
    a = d.array((d.pick(1, 2), d.pick(1, 3), d.pick(1, 4), 8), "f")
    return [a, d.pick(4, 8)], {"traditional": d.flag(), "base": 100.0, "scale": d.pick(1.0, 0.5), "offset": d.pick(0, 3)}


@calls("fast.scaled_dot_product_attention")
def attention(d, name):
    heads, groups, q, k = d.pick(1, 2), d.pick(1, 2), d.pick(1, 3), d.pick(3, 5)
    dtype = d.dtype("f")
    keys = [d.array((1, heads, k, 4), dtype, -1, 1) for _ in range(2)]
    mask = d.pick(None, "causal", d.array((q, k), "float32" if dtype == "float32" else dtype, -1, 1))
    return [d.array((1, heads * groups, q, 4), dtype, -1, 1), *keys], {"scale": 0.5, "mask": mask}


@calls("fast.cross_entropy", lambda name, a, k: OPS["cross_entropy"](Value("float32", a[0].value().data), a[1].value()))
def entropies(d, name):
    shape = d.shape(0, 2, 1)
    return [d.array((*shape, 5), "f"), d.array(shape, "int32", 0, 4)], {}


@calls("fast.gated_delta_update")
def deltas(d, name):
    b, t, heads, width = d.pick(1, 2), d.pick(1, 3), d.pick(1, 2), 32
    q, k = (d.array((b, t, heads, width), "float32", -0.5, 0.5) for _ in range(2))
    v = d.array((b, t, heads * d.pick(1, 2), 8), "float32", -1, 1)
    return [q, k, v, d.array(v.shape[:3], "float32", 0, 1), d.array(v.shape[:3], "float32", 0, 1)], {}


def form(d):
    mode = d.pick("affine", "mxfp4", "mxfp8", "nvfp4")
    if mode == "affine":
        return {"group_size": d.pick(32, 64), "bits": d.pick(2, 3, 4, 5, 6, 8), "mode": mode}
    return {"group_size": 16 if mode == "nvfp4" else 32, "bits": 8 if mode == "mxfp8" else 4, "mode": mode}


@calls("quantize")
def quantized(d, name):
    return [d.array((*d.shape(0, 2, 1), d.pick(1, 3), 64), "f")], form(d)


class Codes:
    """Each code of a quantised array, as further arguments."""

    def __init__(self, operand, keywords, part):
        self.operand, self.keywords, self.part = operand, keywords, part

    def on(self, m):
        parts = m.quantize(self.operand.on(m), **self.keywords)
        return parts[self.part] if self.part < len(parts) else None

    def __repr__(self):
        return f"part {self.part} of quantize({self.operand}, {self.keywords})"


@calls("dequantize")
def dequantized(d, name):
    keywords = form(d)
    w = d.array((2, 64), "float32")
    return [Codes(w, keywords, part) for part in range(3)], keywords


@calls("quantized_matmul")
def quantized_products(d, name):
    keywords = form(d)
    w = d.array((8, 64), "float32", -1, 1)
    return [d.array((d.pick(1, 3), 64), "float32", -1, 1), *(Codes(w, keywords, part) for part in range(3))], keywords


@calls("gather_qmm")
def picked_quantized_products(d, name):
    keywords = form(d)
    w = d.array((3, 8, 64), "float32", -1, 1)
    rows = d.array((2,), "uint32", 0, 2)
    return [d.array((2, 1, 64), "float32", -1, 1), *(Codes(w, keywords, part) for part in range(3))], {"rhs_indices": rows, **keywords}


@calls("gather_mm")
def picked_products(d, name):
    dtype = d.dtype("f")
    return [d.array((2, 3, 4), dtype), d.array((5, 4, 2), dtype)], {"rhs_indices": d.array((2,), "uint32", 0, 4)}


@calls("segmented_mm")
def segments(d, name):
    return [d.array((3, 6), "F"), d.array((6, 2), "F"), Operand("uint32", np.sort(d.array((2, 2), "uint32", 0, 6, views=False).data))], {}


@calls("block_masked_mm")
def masked_products(d, name):
    masks = {"mask_out": d.array((1, 2), "bool"), "mask_lhs": d.array((1, 2), "bool"), "mask_rhs": d.array((2, 2), "bool")}
    return [d.array((32, 64), "F", -1, 1), d.array((64, 64), "F", -1, 1), 32], {k: v for k, v in masks.items() if d.flag()}


@calls("to_fp8")
def to_eight_bits(d, name):
    return [d.array(kinds="f", low=-500, high=500)], {}


@calls("from_fp8")
def from_eight_bits(d, name):
    return [d.array(kinds="uint8", low=0, high=126)], {"dtype": DtypeName(d.dtype("f"))}


@calls("depends")
def depending(d, name):
    return [d.array(), d.array()], {}


# ---- random ----


class Key:
    def __init__(self, number):
        self.number = number

    def on(self, m):
        return m.random.key(self.number)

    def __repr__(self):
        return f"key({self.number})"


def drawn_key(d):
    return {"key": Key(d.whole(0, 2**40))}


@calls("random.key")
def keys(d, name):
    return [d.whole(0, 2**63 - 1)], {}


@calls("random.split")
def split_keys(d, name):
    return [Key(d.whole(0, 2**40)), d.whole(1, 5)], {}


@calls("random.uniform")
def uniforms(d, name):
    shape = d.shape()
    bounds = d.pick([], [-2, 3.5], [d.array(d.narrower(shape), "float32", -2, 0), 1.0])
    return bounds, {"shape": shape, "dtype": DtypeName(d.dtype("f")), **drawn_key(d)}


@calls("random.bernoulli")
def flips(d, name):
    shape = d.shape()
    return [d.pick(0.3, 0.0, 1.0, d.array(d.narrower(shape), "float32", 0, 1))], {"shape": shape, **drawn_key(d)}


@calls("random.randint")
def integers(d, name):
    return [d.whole(0, 5), d.whole(6, 120)], {"shape": d.shape(), "dtype": DtypeName(d.dtype("ui")), **drawn_key(d)}


@calls("random.permutation")
def permuted(d, name):
    a = d.pick(d.whole(0, 40), d.array(d.shape(1, 3)))
    return [a], {"axis": 0 if isinstance(a, int) else d.axis(a.rank), **drawn_key(d)}


@calls("random.categorical")
def categories(d, name):
    a = d.array(d.shape(1, 3, 1), "F")
    return [a], {"axis": d.axis(a.rank), **({"num_samples": d.whole(1, 4)} if d.flag() else {}), **drawn_key(d)}


@calls("random.normal random.laplace random.gumbel")
def shaped_randoms(d, name):
    return [d.shape()], {"dtype": DtypeName(d.dtype("f")), **drawn_key(d)}


@calls("random.truncated_normal")
def truncated(d, name):
    return [-1.0, d.pick(0.5, 2.0)], {"shape": d.shape(), "dtype": DtypeName(d.dtype("f")), **drawn_key(d)}


@calls("random.multivariate_normal")
def correlated(d, name):
    return [d.array((3,), "float32", views=False), Operand("float32", np.float32([[2, 0.5, 0], [0.5, 3, 0], [0, 0, 1]]))], {
        "shape": d.shape(0, 2), **drawn_key(d)}
