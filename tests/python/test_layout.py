"""tiki.layout: the same answers as `tiki layout`, the laws of a few operations by enumeration, arrays."""

import itertools
import os
import pickle
import subprocess

import numpy
import pytest

import tiki as tk
from tiki import layout as tl

EXAMPLES = [  # one for each operation of the table, with what it gives
    ("composition", "(6,2):(8,2)", "(4,3):(3,1)"),
    ("coalesce", "(2,(1,6)):(1,(6,2))"),
    ("complement", "(2,2):(1,6)", "24"),
    ("right_inverse", "(4,8):(8,1)"),
    ("left_inverse", "(4,8):(8,1)"),
    ("logical_divide", "(4,2,3):(2,1,8)", "4:2"),
    ("zipped_divide", "(9,(4,8)):(59,(13,1))", "[3:3;(2,4):(1,8)]"),
    ("tiled_divide", "(9,(4,8)):(59,(13,1))", "[3:3;(2,4):(1,8)]"),
    ("flat_divide", "(9,(4,8)):(59,(13,1))", "[3:3;(2,4):(1,8)]"),
    ("logical_product", "(2,2):(4,1)", "6:1"),
    ("blocked_product", "(2,5):(5,1)", "(3,4):(1,3)"),
    ("raked_product", "(2,5):(5,1)", "(3,4):(1,3)"),
    ("tile_to_shape", "(8,8):(8,1)", "(64,64)", "(0,1)"),
    ("make_ordered_layout", "(8,64)", "(1,0)"),
    ("recast_layout", "8", "16", "(4,8):(8,1)"),
    ("flatten", "((2,4),8):((1,16),2)"),
    ("size", "((2,4),8):((1,16),2)"),
    ("cosize", "((2,4),8):((1,16),2)"),
    ("depth", "((2,4),8):((1,16),2)"),
    ("rank", "((2,4),8):((1,16),2)"),
    ("eval", "((2,4),8):((1,16),2)", "((1,2),3)"),
    ("idx2crd", "13", "(4,8)"),
    ("crd2idx", "(1,3)", "(4,8)"),
    ("max_common_vector", "(8,4):(1,8)", "(4,8):(1,4)"),
    ("make_layout_tv", "(2,2):(2,1)", "(2,2):(1,2)"),
    ("coalesce", "S<3,4,3> o 0 o (8,64):(64,1)"),
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


def test_pictures():
    a = tl.Layout("(4,8):(8,1)")
    assert a.draw().startswith("<svg") and a._repr_svg_() == a.draw()
    assert a.draw(compare="(4,8):(1,4)") != a.draw()
    assert "<svg" in tl.Layout("(8,4):(4,1)").draw(banks=4)
    assert tl.Layout("((2,2),(2,2)):((8,2),(1,4))").draw(tv=(4, 4)).startswith("<svg")
    assert tl.parse("32:32").banks(4) == {"accesses": 1, "passes": 32, "least": 1, "conflicts": 31}
    assert tl.Layout("?:1")._repr_svg_() is None


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
