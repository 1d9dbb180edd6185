"""Functions in files: export_function, import_function, exporter, export_to_dot."""
import io
import os
import subprocess
import sys

import numpy as np
import pytest

import mlx.core as mx
import tiki as tk
import tiki.nn as nn


def values(arrays):
    return [np.array(a) for a in arrays]


def f(m):
    return lambda x, y=None: (m.exp(x) + y * 2, x.sum(axis=0, keepdims=True))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "function.mlxfn")


def both(path, run):
    """What `run` gives with Tiki and with MLX."""
    return run(tk, path), run(mx, path + ".mlx")


def test_positions_and_names(path):
    def run(m, path):
        x, y = m.ones((2, 3)), m.arange(3.0)
        m.export_function(path, f(m), x, y=y, metadata="hello")
        g, metadata = m.import_function(path, return_metadata=True)
        assert metadata == "hello"
        three = m.full((2, 3), 3.0)
        calls = [g(x, y=y), g((x,), {"y": y}), g([three], {"y": y}), g(three, y=y + 1)]
        assert all(type(result) is tuple and len(result) == 2 for result in calls)
        for wrong in (lambda: g(x, y), lambda: g(x), lambda: g(m.ones((3, 3)), y=y), lambda: g(x, y=y, z=y),
                      lambda: g(x.astype(m.float16), y=y), lambda: g(1.0, y=y)):
            with pytest.raises(ValueError):
                wrong()
        return [np.array(a) for result in calls for a in result]

    for one, other in zip(*both(path, run), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_results_and_arguments_that_are_allowed(path):
    def run(m, path):
        x = m.ones((2,))
        m.export_function(path, lambda a: [a, a + 1], x)
        first = m.import_function(path)(x)
        m.eval(first)  # MLX reads the file when it evaluates
        m.export_function(path, lambda a, b: a + b, (x,), {"b": x})
        second = m.import_function(path)(x, b=x)
        m.eval(second)
        for result in (lambda a: {"q": a}, lambda a: (a, 3), lambda a: 3):
            with pytest.raises(ValueError):
                m.export_function(path, result, x)
        with pytest.raises(ValueError):
            m.export_function(path, lambda a: a + 1, 1.0)
        with pytest.raises(ValueError):
            m.export_function(print, lambda a: a, x, metadata="text")
        assert m.import_function(path, True)[1] == ""
        return values(first) + values(second)

    for one, other in zip(*both(path, run), strict=True):
        np.testing.assert_array_equal(one, other)


def test_several_recordings(path):
    def run(m, path):
        with m.exporter(path, lambda *a: sum(a), metadata="sums") as exporter:
            assert isinstance(exporter, m.FunctionExporter)
            exporter(m.array(1.0))
            exporter(m.array(1.0), m.array(2.0))
            with pytest.raises((ValueError, RuntimeError)):
                exporter(m.array(3.0), m.array(4.0))
        with pytest.raises(RuntimeError):
            exporter(m.array([1.0]))
        g, metadata = m.import_function(path, True)
        assert metadata == "sums"
        with pytest.raises(ValueError):
            g(m.array(1.0), m.array(1.0), m.array(1.0))
        return values(g(m.array(3.0)) + g(m.array(3.0), m.array(1.0)))

    for one, other in zip(*both(path, run), strict=True):
        np.testing.assert_array_equal(one, other)


def test_any_shape(path):
    def run(m, path):
        x, y = m.ones((2, 3)), m.array([0.0, 1.0, 2.0])
        m.export_function(path, f(m), x, y=y, shapeless=True)
        g = m.import_function(path)
        results = g(m.ones((4, 5)), y=m.ones(5)) + g(m.ones((4, 3)), y=y) + g(x, y=y)
        m.eval(results)  # MLX reads the file when it evaluates
        for wrong in (lambda: g(m.ones(5), y=m.ones(5)), lambda: g(m.ones((4, 5), m.float16), y=m.ones(5))):
            with pytest.raises(ValueError):
                wrong()
        m.export_function(path, lambda a: (a.mean(), a.var(axis=0)), x, shapeless=True)
        results += m.import_function(path)(m.arange(12.0).reshape(2, 6))
        return values(results)

    for one, other in zip(*both(path, run), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_shapes_that_mlx_cannot_follow(path):
    tk.export_function(path, lambda a: a[1:].reshape(-1) * (1 / a.shape[0]), tk.ones((4, 3)), shapeless=True)
    x = tk.random.normal((7, 3))
    np.testing.assert_allclose(np.array(tk.import_function(path)(x)[0]), np.array(x)[1:].ravel() / 7, rtol=1e-6)
    tk.export_function(path, lambda a, b: a @ b + tk.ones((4, 2)), tk.ones((4, 6)), tk.ones((6, 2)), shapeless=True)
    g = tk.import_function(path)  # the inner length can vary, the outer ones cannot
    assert g(tk.ones((4, 9)), tk.ones((9, 2)))[0].tolist() == [[10.0] * 2] * 4
    with pytest.raises(ValueError, match="of other lengths too"):
        g(tk.ones((5, 6)), tk.ones((6, 2)))
    with pytest.raises(ValueError):
        g(tk.ones((4, 9)), tk.ones((8, 2)))
    tk.export_function(path, lambda a: a.reshape(3, 2), tk.ones((2, 3)), shapeless=True)
    with pytest.raises(ValueError):
        tk.import_function(path)(tk.ones((4, 5)))


def test_a_model_in_another_process(path, tmp_path):
    tk.random.seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
    x = tk.random.normal((5, 4))
    tk.eval(model.parameters())
    tk.export_function(path, model, x, shapeless=True)
    tk.save(str(tmp_path / "x.npy"), x)
    program = (
        "import sys, tiki as tk\n"
        "y, = tk.import_function(sys.argv[1])(tk.load(sys.argv[2])[:3])\n"
        "tk.save(sys.argv[3], y)\n"
    )
    subprocess.run([sys.executable, "-c", program, path, tmp_path / "x.npy", tmp_path / "y.npy"], check=True,
                   env=os.environ)
    np.testing.assert_array_equal(np.array(tk.load(str(tmp_path / "y.npy"))), np.array(model(x[:3])))
    arrays, metadata = tk.load(path, format="safetensors", return_metadata=True)
    assert metadata["tiki.function"] == "1" and "tiki graph 1" in metadata["trace.0.graph"]
    assert len(arrays) == 6


def test_gradients_and_compilation_of_an_imported_function(path):
    w = tk.random.normal((3, 3))
    tk.export_function(path, lambda x: tk.tanh(x @ w).sum(), tk.ones((2, 3)))
    g = tk.import_function(path)
    x = tk.random.normal((2, 3))
    ours = tk.grad(lambda x: g(x)[0])(x)
    np.testing.assert_allclose(np.array(ours), np.array(tk.grad(lambda x: tk.tanh(x @ w).sum())(x)), rtol=1e-6)
    assert tk.compile(lambda x: g(x)[0])(x).item() == pytest.approx(g(x)[0].item())
    tk.export_function(path, tk.grad(lambda x: tk.tanh(x @ w).sum()), tk.ones((2, 3)))
    np.testing.assert_allclose(np.array(tk.import_function(path)(x)[0]), np.array(ours), rtol=1e-6)
    tk.export_function(path, lambda key: tk.random.normal((4,), key=key), tk.random.key(0))
    key = tk.random.key(9)
    assert tk.array_equal(tk.import_function(path)(key)[0], tk.random.normal((4,), key=key)).item()


def test_files_that_lie(path):
    for m, name in ((tk, path), (mx, path)):
        with pytest.raises((RuntimeError, OSError)):
            m.import_function(name + ".none")
        with open(name, "w") as file:
            file.write("nonsense")
        with pytest.raises((ValueError, RuntimeError)):
            m.import_function(name)
    tk.export_function(path, lambda x: x + tk.array([1.0, 2.0]), tk.ones((2,)), metadata="m")
    arrays, good = tk.load(path, format="safetensors", return_metadata=True)

    def refused(message, **changes):
        metadata = {**good, **{key.replace("_", "."): value for key, value in changes.items()}}
        tk.save_safetensors(path + ".safetensors", arrays, {k: v for k, v in metadata.items() if v is not None})
        with pytest.raises((ValueError, RuntimeError), match=message):
            tk.import_function(path + ".safetensors")

    refused("version", tiki_function="2")
    refused("version", tiki_function=None)
    refused("traces", traces="-1")
    refused("trace.1.arguments", traces="2")
    refused("argument 0", trace_0_arguments="float33 2\n")
    refused("argument 0", trace_0_arguments="float32 2,,3\n")
    refused("trace 0", trace_0_arguments="float32 3\n")
    refused("arrays", trace_0_arrays="7")
    refused("arrays", trace_0_arrays="x")
    refused("trace 0", trace_0_graph="tiki graph 1\nreturn f32(1.0)\n")
    refused("vary", trace_0_varying="1")
    refused("far.graph", trace_0_varying="2")


def test_callback():
    def events(m):
        told = []
        m.export_function(told.append, f(m), m.ones((2, 3)), y=m.arange(3.0))
        return told

    ours, theirs = events(tk), events(mx)
    assert [e["type"] for e in ours[:4]] == [e["type"] for e in theirs[:4]]
    for kind, key in (("inputs", "inputs"), ("outputs", "outputs")):
        one, other = (next(e for e in told if e["type"] == kind)[key] for told in (ours, theirs))
        assert [(shape, dtype.name) for _, shape, dtype in one] == [
            (shape, str(dtype).split(".")[-1]) for _, shape, dtype in other]
    assert ours[1]["keywords"] == [("y", ours[0]["inputs"][1][0])]
    assert [a.item() for _, a in ours[3]["constants"]] == [a.item() for _, a in theirs[3]["constants"]] == [2.0]
    assert {"Exp", "Multiply", "Add"} <= {e["name"] for e in theirs[4:]}
    assert {"exp", "multiply", "add", "reduce_sum"} <= {e["name"] for e in ours[4:]}
    known = {name for e in ours[:4] for part in ("inputs", "constants") for name, *_ in e.get(part, [])}
    for event in ours[4:]:
        assert {name for name, *_ in event["inputs"]} <= known and event["type"] == "primitive"
        known |= {name for name, *_ in event["outputs"]}
    assert {name for name, *_ in ours[2]["outputs"]} <= known
    assert next(e for e in ours if e.get("name") == "reduce_sum")["arguments"] == [[0]]


def test_dot(path):
    x, y = tk.ones((2,)) * 1, tk.array([1.0, 2.0])
    text = io.StringIO()
    tk.export_to_dot(text, tk.exp(x) + y, y=y)
    tk.export_to_dot(path, tk.exp(x) + y, y=y)
    with open(path) as file:
        assert file.read() == text.getvalue()
    lines = text.getvalue().splitlines()
    assert lines[0] == "digraph {" and lines[-1] == "}"
    for op in ("exp", "add"):
        assert sum(f'[label="{op}", shape=rectangle]' in line for line in lines) == 1
    assert sum('[label="y"]' in line for line in lines) == 1 and sum("rank=sink" in line for line in lines) == 1
    assert len([line for line in lines if "->" in line]) >= 6
    theirs = io.StringIO()
    mx.export_to_dot(path, mx.exp(mx.ones((2,))) + mx.array([1.0, 2.0]))
    with open(path) as file:
        theirs = file.read().splitlines()
    assert theirs[0] == lines[0] and sum("rectangle" in line for line in theirs) >= 2
    with pytest.raises(ValueError):
        tk.export_to_dot(path)
