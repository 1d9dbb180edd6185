"""tiki.layout: the same answers as `tiki layout`, the laws of a few operations by enumeration, arrays."""

import doctest
import itertools
import os
import pathlib
import pickle
import re
import subprocess

import numpy
import pytest

import tiki as tk
from tiki import layout as tl

EXAMPLES = [  # at least one for each operation of the table
    ("size", "((2,4),8):((1,16),2)"),
    ("cosize", "((2,4),8):((1,16),2)"),
    ("rank", "((2,4),8):((1,16),2)"),
    ("depth", "((2,4),8):((1,16),2)"),
    ("get_shape", "((2,4),8):((1,16),2)"),
    ("get_stride", "((2,4),8):((1,16),2)"),
    ("get", "((2,4),8):((1,16),2)", "(0,1)"),
    ("eval", "((2,4),8):((1,16),2)", "((1,2),3)"),
    ("idx2crd", "13", "(4,8)"),
    ("crd2idx", "(1,3)", "(4,8)"),
    ("crd2idx", "(1,3)", "(4,8):(8,1)"),
    ("increment_coord", "(3,3)", "(4,8)"),
    ("make_layout", "(4,(2,3))"),
    ("make_layout", "(4,8)", "(8,1)"),
    ("make_layout", "4:1", "(2,3):(4,8)"),
    ("make_ordered_layout", "(8,64)", "(1,0)"),
    ("make_layout_like", "(4,2,3):(6,0,1)"),
    ("make_identity_layout", "(4,(2,3))"),
    ("make_composed_layout", "S<3,4,3>", "0", "(8,64):(64,1)"),
    ("make_layout_tv", "(2,2):(2,1)", "(2,2):(1,2)"),
    ("coalesce", "(2,(1,6)):(1,(6,2))"),
    ("coalesce", "(2,(1,6)):(1,(6,2))", "(1,1)"),
    ("coalesce", "S<3,4,3> o 0 o (8,64):(64,1)"),
    ("flatten", "((2,4),8):((1,16),2)"),
    ("group_modes", "(4,8,3):(1,4,32)", "1", "3"),
    ("select", "(4,8,3):(1,4,32)", "(2,0)"),
    ("filter", "(4,2,3):(1,0,4)"),
    ("filter_zeros", "(4,2,3):(1,0,4)"),
    ("append", "(4,2):(1,4)", "4", "3:8"),
    ("prepend", "4:1", "3:4"),
    ("slice", "(4,(8,2),3):(1,(4,32),64)", "(_,(2,_),1)"),
    ("slice_offset", "(4,(8,2),3):(1,(4,32),64)", "(_,(2,_),1)"),
    ("dice", "(4,(8,2),3):(1,(4,32),64)", "(_,(2,_),1)"),
    ("recast_layout", "8", "16", "(4,8):(8,1)"),
    ("composition", "(6,2):(8,2)", "(4,3):(3,1)"),
    ("composition", "(12,(4,8)):(59,(13,1))", "[3:4;8:2]"),
    ("complement", "(2,2):(1,6)", "24"),
    ("right_inverse", "(4,8):(8,1)"),
    ("left_inverse", "(4,8):(8,1)"),
    ("nullspace", "(4,2,3):(1,0,4)"),
    ("max_common_vector", "(8,4):(1,8)", "(4,8):(1,4)"),
    ("logical_divide", "(4,2,3):(2,1,8)", "4:2"),
    ("zipped_divide", "(9,(4,8)):(59,(13,1))", "[3:3;(2,4):(1,8)]"),
    ("tiled_divide", "(9,(4,8)):(59,(13,1))", "[3:3;(2,4):(1,8)]"),
    ("flat_divide", "(9,(4,8)):(59,(13,1))", "[3:3;(2,4):(1,8)]"),
    ("logical_product", "(2,2):(4,1)", "6:1"),
    ("zipped_product", "(2,2):(4,1)", "6:1"),
    ("tiled_product", "(2,2):(4,1)", "6:1"),
    ("flat_product", "(2,2):(4,1)", "6:1"),
    ("blocked_product", "(2,5):(5,1)", "(3,4):(1,3)"),
    ("raked_product", "(2,5):(5,1)", "(3,4):(1,3)"),
    ("tile_to_shape", "(8,8):(8,1)", "(64,64)", "(0,1)"),
    ("local_tile", "(32,24):(24,1)", "(8,6)", "(1,2)"),
    ("local_tile_offset", "(32,24):(24,1)", "(8,6)", "(1,2)"),
    ("local_partition", "(32,24):(24,1)", "(4,8):(8,1)", "9"),
    ("local_partition_offset", "(32,24):(24,1)", "(4,8):(8,1)", "9"),
    ("shape_div", "(6,4)", "12"),
    ("ceil_div", "(7,5)", "(2,4)"),
    ("tuple_add", "(1,(2,3))", "(4,(5,6))"),
    ("tuple_sub", "(1,(2,3))", "(4,(5,6))"),
    ("tuple_product", "(4,(2,3))"),
    ("tuple_product_each", "(4,(2,3))"),
    ("elem_less", "(1,2)", "(3,4)"),
    ("equal", "(4,2):(1,4)", "(4,2):(1,4)"),
    ("congruent", "(4,(2,3))", "(1,(1,1))"),
    ("weakly_congruent", "(4,6)", "((2,2),(3,2))"),
    ("compatible", "(4,6)", "((2,2),(3,2))"),
    ("is_injective", "(4,2):(1,2)"),
    ("is_compact", "(4,2):(2,1)"),
    ("bank_conflicts", "(32,1):(32,1)", "4"),
    ("print", "(?{i64 div=8},2@1)"),
]


def printed(result):
    if isinstance(result, bool):
        return "true" if result else "false"
    if isinstance(result, tuple) and any(isinstance(item, tl.Layout) for item in result):
        return "\t".join(printed(item) for item in result)
    return str(result).replace(" ", "").replace(",)", ")") if isinstance(result, tuple) else str(result)


def test_the_command_gives_the_same():
    lines = "\n".join("\t".join(example) for example in EXAMPLES)
    command = subprocess.run([os.environ["TIKI_BIN"], "layout", "--batch", "/dev/stdin"], input=lines, text=True,
                             capture_output=True, check=True)
    answers = command.stdout.splitlines()
    assert len(answers) == len(EXAMPLES)
    for (name, *args), answer in zip(EXAMPLES, answers):
        assert answer == "ok\t" + printed(getattr(tl, name)(*args)), name


def test_every_operation_of_the_table_is_here():
    for names, usage, summary, _, _ in tk._core._layout["operations"]():
        for name in names.split("|"):
            assert name in tl.__all__
            assert summary in getattr(tl, name).__doc__
            assert usage.split()[0] in getattr(tl, name).__doc__


def test_every_operation_has_an_example():
    table = {names.split("|")[0] for names, *_ in tk._core._layout["operations"]()}
    assert table == {name for name, *_ in EXAMPLES}


def test_methods_are_the_functions():
    met = set()
    for name, *args in EXAMPLES:
        values = [tl.parse(arg) for arg in args]
        at = 2 if name == "recast_layout" else 0
        if name.startswith("make_layout") and len(args) > 1 or not isinstance(values[at], (tl.Layout, tl.ComposedLayout)):
            continue
        if not hasattr(values[at], name):
            assert name in ("get_shape", "get_stride"), name
            continue
        met.add(name)
        rest = values[:at] + values[at + 1:]
        result, function = getattr(values[at], name)(*rest), getattr(tl, name)(*values)
        assert type(result) is type(function) and result == function, name
    assert len(met) > 40
    a = tl.Layout("(4,8):(8,1)")
    assert a.coalesce(profile=(1, 1)) == a and a.complement(cotarget=64) == tl.complement(a, 64)
    assert tl.make_layout(shape=(4, 8), stride=(8, 1)) == a


def test_operators():
    a, b = tl.Layout("(6,2):(8,2)"), tl.Layout("(4,3):(3,1)")
    assert a @ b == tl.composition(a, b) == a.composition(b)
    assert tl.Layout(24) / 4 == tl.logical_divide("24:1", "4:1")
    assert tl.Layout("4:1") * tl.Layout("3:1") == tl.logical_product("4:1", "3:1")
    swizzle = tl.Swizzle(3, 4, 3)
    assert swizzle(128) == 144 and (swizzle.bits, swizzle.base, swizzle.shift) == (3, 4, 3)
    composed = swizzle @ tl.Layout("(8,64):(64,1)")
    assert str(composed) == "S<3,4,3> o 0 o (8,64):(64,1)" and isinstance(composed, tl.ComposedLayout)
    assert composed.inner == swizzle and composed.offset == 0 and composed.outer == tl.Layout("(8,64):(64,1)")
    assert composed(2, 0) == 144 and len(composed) == 2 and composed.size() == 512
    assert str(composed / (4, 8)) == str(tl.logical_divide(composed, (4, 8)))
    assert list(tl.parse("[4:1;(2,2):(1,8);_]")) == [tl.Layout("4:1"), tl.Layout("(2,2):(1,8)"), tl.Tuple("_")]
    assert list(tl.parse("(?{div=4},(2,3))")) == [tl.Tuple("?{div=4}"), (2, 3)] and len(tl.parse("2@1")) == 1
    assert a != "(6,2):(8,2)" and not a == 3 and {a: 1}[tl.Layout((6, 2), (8, 2))] == 1
    assert a(numpy.int64(5)) == 40
    for operand in (1.5, object()):
        with pytest.raises(TypeError, match="a layout argument is"):
            a @ operand


def test_values():
    a = tl.Layout((4, 8), (8, 1))
    assert str(a) == "(4,8):(8,1)" and a == tl.Layout("(4,8):(8,1)") and hash(a) == hash(tl.Layout(a))
    assert tl.Layout((4, (2, 3))) == tl.Layout("(4,(2,3)):(1,(4,8))")
    assert a.shape == (4, 8) and a.stride == (8, 1) and len(a) == 2 and list(a) == [tl.Layout("4:8"), tl.Layout("8:1")]
    assert a(2, 3) == a((2, 3)) == 19 and a(1) == 8
    assert a(None, 3) == tl.slice(a, "(_,3)")
    assert pickle.loads(pickle.dumps(a)) == a
    assert str(tl.Swizzle(3, 4, 3)) == "S<3,4,3>"
    assert str(tl.parse("[16:1;8:1]")) == "[16:1;8:1]" and isinstance(tl.parse("[16:1;8:1]"), tl.Tiler)
    assert str(tl.parse("(?{div=16},2@1)")) == "(?{div=16},2@1)"
    with pytest.raises(AttributeError):
        a._text = "5:1"
    with pytest.raises(IndexError):
        a[2]
    with pytest.raises(TypeError, match="composition"):
        tl.composition(a)
    with pytest.raises(TypeError):
        tl.size(True)
    with pytest.raises(ValueError, match="column"):
        tl.Layout("(4,8:1")


def test_composition_is_composition():
    shapes = [(4,), (2, 3), (4, 2), (2, (2, 3))]
    for shape, tile in itertools.product(shapes, [(2, 2), (4,), (3, 2)]):
        a, b = tl.Layout(shape), tl.Layout(tile, tuple(range(1, len(tile) + 1)))
        try:
            r = tl.composition(a, b)
        except ValueError:
            continue
        assert [r(i) for i in range(tl.size(b))] == [a(b(i)) for i in range(tl.size(b))]


def test_pictures(tmp_path):
    a = tl.Layout("(4,8):(8,1)")
    assert a.draw().startswith("<svg") and a._repr_svg_() == a.draw()
    assert a.draw(compare="(4,8):(1,4)") != a.draw()
    assert "<svg" in tl.Layout("(8,4):(4,1)").draw(banks=4)
    assert tl.Layout("((2,2),(2,2)):((8,2),(1,4))").draw(tv=(4, 4)).startswith("<svg")
    assert tl.parse("32:32").banks(4) == {"accesses": 1, "passes": 32, "least": 1, "conflicts": 31}
    assert tl.Layout("?:1")._repr_svg_() is None
    pair = a.draw(compare="(4,8):(1,4)")
    assert pair._repr_svg_() == pair == tl.draw("(4,8):(8,1)", compare="(4,8):(1,4)")
    pair.save(tmp_path / "pair.svg")
    assert (tmp_path / "pair.svg").read_text() == pair


def test_layouts_of_arrays():
    x = tk.arange(24).reshape(4, 6)
    assert x.layout == tl.Layout("(4,6):(6,1)") and x.T.layout == tl.Layout("(6,4):(1,6)")
    assert tk.array(3).layout == tl.Layout("1:0")
    y = x.as_layout("(6,4):(1,6)")
    assert numpy.array_equal(numpy.array(y), numpy.arange(24).reshape(4, 6).T)
    tiles = tl.zipped_divide(tl.Layout("(4,6):(6,1)"), (2, 3))
    z = tk.as_layout(x, tiles)
    assert z.shape == (6, 4)
    assert numpy.array(z)[:, 3].tolist() == [tiles(i, 3) for i in range(6)]
    swizzled = tk.as_layout(tk.arange(64), "S<2,0,3> o 0 o (8,8):(8,1)")
    assert sorted(numpy.array(swizzled).ravel().tolist()) == list(range(64))
    gradient = tk.grad(lambda v: (tk.as_layout(v, "(2,2):(0,1)") * tk.array([[1.0, 2.0], [3.0, 4.0]])).sum())
    assert gradient(tk.array([1.0, 1.0, 1.0])).tolist() == [4.0, 6.0, 0.0]
    with pytest.raises(IndexError, match="element 24"):
        tk.as_layout(x, "25:1")
    with pytest.raises(IndexError, match="element -1"):
        tk.as_layout(x, "2:-1")
    with pytest.raises(ValueError, match="plain numbers"):
        tk.as_layout(x, "(4,6):(1@0,1@1)")
    with pytest.raises(ValueError, match="unknown"):
        tk.as_layout(x, "?:1")
    assert x.as_layout((4, 6)).tolist() == x.as_layout("(4,6):(1,4)").tolist()
    large = tk.arange(1 << 20).as_layout("((32,32),(32,32)):((1,1024),(32,32768))")
    assert large.shape == (1024, 1024) and large[33, 34].item() == 1 + 1024 + 2 * 32 + 32768


def test_documentation():
    """The examples of the module, and those of the page that are in Python."""
    assert doctest.testmod(tl).failed == 0
    page = (pathlib.Path(__file__).parents[2] / "docs" / "layout.md").read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```", page, re.S | re.M)
    assert len(blocks) > 1
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "layout.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
