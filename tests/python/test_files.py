"""npy, npz and safetensors, with NumPy on the other side."""

import io

import numpy as np
import pytest

import tiki as tk


def test_npy(tmp_path):
    for values in (np.arange(6, dtype=np.int16).reshape(2, 3), np.float32(3), np.zeros((0, 2), np.float16), np.complex64([1j])):
        path = tmp_path / "a.npy"
        tk.save(path, tk.array(values))
        np.testing.assert_array_equal(np.load(path), values)
        np.save(path, values)
        loaded = tk.load(path)
        np.testing.assert_array_equal(np.array(loaded), values)
        buffer = io.BytesIO()
        tk.save(buffer, loaded)
        buffer.seek(0)
        np.testing.assert_array_equal(np.array(tk.load(buffer)), values)
    tk.save(str(tmp_path / "b"), tk.array([1, 2]))
    assert tk.load(str(tmp_path / "b.npy")).tolist() == [1, 2]


def test_npz(tmp_path):
    a, b = tk.arange(3), tk.ones((2, 2))
    for save in (tk.savez, tk.savez_compressed):
        path = tmp_path / "arrays.npz"
        save(path, a, named=b)
        with np.load(path) as loaded:
            assert loaded["arr_0"].tolist() == [0, 1, 2] and loaded["named"].tolist() == [[1, 1], [1, 1]]
        own = tk.load(path)
        assert own["arr_0"].tolist() == [0, 1, 2] and set(own) == {"arr_0", "named"}


def test_safetensors(tmp_path):
    path = tmp_path / "w.safetensors"
    arrays = {"a": tk.ones((2, 3), tk.bfloat16), "b.c": tk.array([True, False])}
    tk.save_safetensors(path, arrays, {"format": "tiki"})
    loaded, metadata = tk.load(path, return_metadata=True)
    assert metadata == {"format": "tiki"} and list(loaded) == ["a", "b.c"]
    assert loaded["a"].dtype == tk.bfloat16 and loaded["b.c"].tolist() == [True, False]
    buffer = io.BytesIO()
    tk.save_safetensors(buffer, arrays)
    buffer.seek(0)
    assert tk.load(buffer, format="safetensors")["a"].shape == (2, 3)


def test_errors(tmp_path):
    with pytest.raises(OSError):
        tk.load(tmp_path / "missing.npy")
    with pytest.raises(RuntimeError):
        tk.load(tmp_path / "missing.safetensors")
    with pytest.raises(ValueError):
        tk.load(tmp_path / "a.xyz")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(ValueError):
        tk.load(tmp_path / "bad.npy")
    with pytest.raises(TypeError):
        tk.save(tmp_path / "a.npy", 3)
    with pytest.raises(TypeError):
        tk.save_safetensors(tmp_path / "a.safetensors", {"a": 3})


def test_nothing_leaks(tmp_path):
    def use():
        tk.save_safetensors(tmp_path / "a.safetensors", {"x": tk.ones((64, 64))})
        tk.load(tmp_path / "a.safetensors")["x"].sum().item()

    use()
    before = tk.get_active_memory()
    for _ in range(100):
        use()
    assert tk.get_active_memory() <= before + 4096
