"""GGUF: files made by hand and by MLX, read by both; metadata; blocks; files that lie."""
import io
import struct

import numpy as np
import pytest

import mlx.core as mx
import tiki as tk

TEXT, LIST = 8, 9
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
Q4_0, Q4_1, Q8_0, BF16 = 2, 3, 8, 30


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, what):
    if kind == TEXT:
        return string(what)
    if kind == LIST:
        return struct.pack("<IQ", what[0], len(what[1])) + b"".join(value(what[0], item) for item in what[1])
    return struct.pack("<" + NUMBERS[kind], what)


def gguf(tensors, metadata=(), version=3, alignment=32, magic=b"GGUF", n_tensors=None, n_values=None):
    """The bytes of a file of tensors (name, shape, type, data[, offset]) and values (key, type, what)."""
    head = magic + struct.pack("<IQQ", version, len(tensors) if n_tensors is None else n_tensors,
                               len(metadata) if n_values is None else n_values)
    for key, kind, what in metadata:
        head += string(key) + struct.pack("<I", kind) + value(kind, what)
    at, data = 0, b""
    for name, shape, kind, bits, *offset in tensors:
        head += string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in shape[::-1])
        head += struct.pack("<IQ", kind, offset[0] if offset else at)
        data += bits + bytes(-len(bits) % alignment)
        at = len(data)
    return head + bytes(-len(head) % alignment) + data


def blocks(kind, n, rng):
    size = {Q4_0: 16, Q4_1: 16, Q8_0: 32}[kind]
    head = lambda: rng.normal(size=2 if kind == Q4_1 else 1).astype(np.float16).tobytes()  # noqa: E731
    return b"".join(head() + rng.bytes(size) for _ in range(n))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.gguf")


def load_both(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return tk.load(path, return_metadata=True), mx.load(path, return_metadata=True)


def same_array(one, other):
    assert one.dtype.name == str(other.dtype).split(".")[-1] and one.shape == other.shape
    assert one.tolist() == other.tolist()


def same_metadata(ours, theirs):
    assert set(ours) == set(theirs)
    for key, one in ours.items():
        if isinstance(one, tk.array):
            same_array(one, theirs[key])
        else:
            assert one == theirs[key]


def test_whole_tensors(path):
    arrays = {"f": np.arange(6, dtype=np.float32).reshape(2, 3), "h": np.arange(4, dtype=np.float16),
              "i8": np.array([[1], [-2]], np.int8), "i16": np.array([-300], np.int16), "i32": np.array([[[7]]], np.int32),
              "scalar": np.float32(2.5), "none": np.zeros((0, 3), np.float32)}
    kinds = {"f": 0, "h": 1, "i8": 24, "i16": 25, "i32": 26, "scalar": 0, "none": 0}
    data = gguf([(name, np.shape(a), kinds[name], np.asarray(a).tobytes()) for name, a in arrays.items()])
    (ours, _), (theirs, _) = load_both(path, data)
    assert list(ours) == list(arrays)
    for name in arrays:
        same_array(ours[name], theirs[name])


@pytest.mark.parametrize("kind, bits", [(Q4_0, 4), (Q4_1, 4), (Q8_0, 8)])
@pytest.mark.parametrize("name", ["layer.weight", "w"])
def test_blocks(path, kind, bits, name):
    rng = np.random.default_rng(kind)
    (ours, _), (theirs, _) = load_both(path, gguf([(name, (3, 64), kind, blocks(kind, 6, rng))]))
    assert set(ours) == set(theirs) and len(ours) == 3
    for key in ours:
        same_array(ours[key], theirs[key])
    prefix = name.removesuffix(".weight")
    parts = [ours[key] for key in (name, prefix + ".scales", prefix + ".biases")]
    assert [part.shape for part in parts] == [(3, 2 * bits), (3, 2), (3, 2)]
    dense = tk.dequantize(*parts, group_size=32, bits=bits)
    raw = np.frombuffer(blocks(kind, 6, np.random.default_rng(kind)), np.uint8).reshape(3, 2, -1)
    scale = raw[..., :2].copy().view(np.float16).astype(np.float64)
    if kind == Q8_0:
        expected = raw[..., 2:].copy().view(np.int8) * scale
    else:
        codes = raw[..., 4 if kind == Q4_1 else 2 :]
        codes = np.concatenate([codes & 15, codes >> 4], axis=-1).astype(np.float64)
        bias = raw[..., 2:4].copy().view(np.float16).astype(np.float64) if kind == Q4_1 else -8 * scale
        expected = codes * scale + bias
    np.testing.assert_allclose(np.array(dense, np.float64), expected.reshape(3, 64), rtol=0, atol=5e-3 * np.abs(expected).max())


def test_blocks_are_written_as_they_were_read(path):
    rng = np.random.default_rng(1)
    tensors = [("a.weight", (2, 64), Q4_0, blocks(Q4_0, 4, rng)), ("b.weight", (2, 3, 32), Q4_1, blocks(Q4_1, 6, rng)),
               ("c", (96,), Q8_0, blocks(Q8_0, 3, rng)), ("d", (2,), 0, np.ones(2, np.float32).tobytes())]
    data = gguf(tensors, [("general.alignment", 4, 64)], alignment=64)
    (ours, metadata), _ = load_both(path, data)
    tk.save_gguf(path, ours, metadata)
    with open(path, "rb") as file:
        assert file.read() == data
    one = {"w.weight": ours["a.weight"], "w.scales": ours["a.scales"], "w.biases": ours["a.biases"] * 1.5}
    tk.save_gguf(path, one)
    again = tk.load(path)
    for key in one:  # a bias of its own: q4_1
        assert tk.array_equal(again[key], one[key]).item()
    one = {"c": ours["c"], "c.scales": ours["c.scales"], "c.biases": ours["c.biases"] * 1.5}
    with pytest.raises(NotImplementedError, match="-128"):
        tk.save_gguf(path, one)
    with pytest.raises(ValueError, match="uint32"):
        tk.save_gguf(path, {"c": ours["c"]})


METADATA = {
    "u8": (0, 3), "i8": (1, -3), "u16": (2, 5), "i16": (3, -5), "u32": (4, 7), "i32": (5, -7), "f32": (6, 1.5),
    "bool": (7, True), "u64": (10, 2**40), "i64": (11, -(2**40)), "text": (TEXT, "hello \u00e9"), "nothing": (TEXT, ""),
    "texts": (LIST, (TEXT, ["a", "", "bc"])), "no texts": (LIST, (TEXT, [])), "numbers": (LIST, (5, [1, 2, 3])),
    "no numbers": (LIST, (4, [])), "bools": (LIST, (7, [True, False])), "floats": (LIST, (6, [0.5])),
}


def test_metadata(path):
    data = gguf([("a", (1,), 0, bytes(4))], [(key, *v) for key, v in METADATA.items()])
    (_, ours), (_, theirs) = load_both(path, data)
    assert list(ours) == list(METADATA)
    same_metadata(ours, theirs)
    tk.save_gguf(path, {"a": tk.zeros((1,))}, ours)
    with open(path, "rb") as file:
        assert file.read() == data
    same_metadata(tk.load(path, return_metadata=True)[1], mx.load(path, return_metadata=True)[1])
    (_, doubles), _ = load_both(path, gguf([], [("d", 6, 0.5)]))
    assert doubles["d"].item() == 0.5
    with open(path, "wb") as file:
        file.write(gguf([], [("d", 12, 0.1), ("bytes", TEXT, b"\xff\x00x"), ("many", LIST, (12, [0.1, 0.2]))]))
    _, metadata = tk.load(path, return_metadata=True)  # MLX stops the process at doubles
    assert metadata["d"].dtype == tk.float64 and metadata["d"].item() == 0.1 and metadata["many"].tolist() == [0.1, 0.2]
    tk.save_gguf(path, {}, metadata)
    assert tk.load(path, return_metadata=True)[1]["bytes"] == metadata["bytes"] == "\udcff\0x"


def test_files_of_one_are_read_by_the_other(path):
    rng = np.random.default_rng(3)
    values = {"a": rng.normal(size=(2, 3)).astype(np.float32), "b": rng.normal(size=2).astype(np.float16),
              "c": np.arange(3, dtype=np.int32), "d": np.array([-1], np.int8), "e": np.array([1, 2], np.int16)}

    def write(m):
        arrays = {key: m.array(v) for key, v in values.items()}
        arrays["t"] = m.array(values["a"]).T
        metadata = {"text": "hi", "list": ["a", "b"], "n": m.array([1, 2]), "f": m.array(1.5), "u": m.array([1], m.uint8)}
        m.save_gguf(path.removesuffix(".gguf"), arrays, metadata)
        return tk.load(path, return_metadata=True), mx.load(path, return_metadata=True)

    for m in (tk, mx):
        (ours, ours_metadata), (theirs, theirs_metadata) = write(m)
        assert set(ours) == set(theirs) == {*values, "t"}
        for key in ours:
            same_array(ours[key], theirs[key])
        same_metadata(ours_metadata, theirs_metadata)
        m.save_gguf(path, {"x": m.array(1.0)})
        same_array(tk.load(path)["x"], mx.load(path)["x"])


def test_dtypes_that_only_tiki_writes(path):
    arrays = {"bf": tk.array([1.5, -2.0], tk.bfloat16), "d": tk.array([0.1], tk.float64), "l": tk.array([2**40], tk.int64)}
    tk.save_gguf(path, arrays)
    for key, array in tk.load(path).items():
        assert array.dtype == arrays[key].dtype and array.tolist() == arrays[key].tolist()
    only = gguf([("b", (2,), BF16, b"\x80\x3f\x00\x40")])
    (ours, _), (theirs, _) = load_both(path, only)
    assert ours["b"].dtype == tk.bfloat16 and ours["b"].tolist() == theirs["b"].tolist() == [1.0, 2.0]
    for dtype in ("bool_", "uint8", "uint16", "uint64", "complex64"):
        for m in (tk, mx):
            with pytest.raises((ValueError, RuntimeError)):
                m.save_gguf(path, {"a": m.array([1], getattr(m, dtype))}, {})


def test_wrong_metadata(path):
    for wrong in (lambda m: 3, lambda m: [1, 2], lambda m: None, lambda m: m.array([[1, 2]]), lambda m: m.array([1.5], m.float16),
                  lambda m: m.array([1.5], m.bfloat16), lambda m: ["a", 1]):
        for m in (tk, mx):
            with pytest.raises((ValueError, RuntimeError, TypeError)):
                m.save_gguf(path, {"a": m.array([1.0])}, {"k": wrong(m)})
    with pytest.raises(ValueError, match="power of two"):
        tk.save_gguf(path, {}, {"general.alignment": tk.array(3, tk.uint32)})


def test_file_objects(path):
    file = io.BytesIO()
    tk.save_gguf(file, {"a": tk.array([1.0, 2.0])}, {"k": "v"})
    file.seek(0)
    arrays, metadata = tk.load(file, return_metadata=True)
    assert arrays["a"].tolist() == [1.0, 2.0] and metadata == {"k": "v"}
    tk.save_gguf(path, arrays)
    with open(path, "rb") as opened:
        assert tk.load(opened)["a"].tolist() == [1.0, 2.0]
    assert tk.load(path, format="gguf")["a"].tolist() == [1.0, 2.0]


ONE = [("a", (2,), 0, bytes(8))]
LIES = {
    "magic": (gguf(ONE, magic=b"GGML"), "GGUF"),
    "version": (gguf(ONE, version=1), "version 1"),
    "big-endian": (gguf(ONE, version=3 << 24), "big-endian"),
    "nothing": (b"", "magic"),
    "cut off": (gguf(ONE)[:30], "needs"),
    "no data": (gguf(ONE)[:64], "needs 8 bytes"),
    "many tensors": (gguf(ONE, n_tensors=2**62), "description"),
    "many values": (gguf(ONE, n_values=2**62), "metadata"),
    "a tensor too many": (gguf(ONE, n_tensors=2), "name at byte 65 is empty"),
    "type": (gguf([("a", (2,), 99, bytes(8))]), "type 99"),
    "k-quants": (gguf([("a", (256,), 12, bytes(144))]), "q4_k"),
    "rows": (gguf([("a", (33,), Q4_0, bytes(36))]), "blocks of 32"),
    "scalar blocks": (gguf([("a", (), Q4_0, bytes(18))]), "blocks of 32"),
    "huge": (gguf([("a", (2**40, 2**40), 0, bytes(8))]), "63 bits"),
    "negative": (gguf([("a", (2**63,), 0, bytes(8))]), "axis of length"),
    "axes": (gguf([("a", (1,) * 17, 0, bytes(4))]), "17 axes"),
    "misaligned": (gguf([("a", (2,), 0, bytes(8), 8)]), "multiple of 32"),
    "overlap": (gguf([*ONE, ("b", (2,), 0, bytes(8), 0)]), "another"),
    "far away": (gguf([("a", (2,), 0, bytes(8), 2**63)]), "needs 8 bytes"),
    "tensor twice": (gguf([*ONE, *ONE]), "twice"),
    "key twice": (gguf(ONE, [("k", 4, 1), ("k", 4, 2)]), "twice"),
    "empty name": (gguf([("", (2,), 0, bytes(8))]), "empty"),
    "zero in a name": (gguf([("a\0b", (2,), 0, bytes(8))]), "zero"),
    "name of a part": (gguf([("a.scales", (2,), 0, bytes(8)), ("a.weight", (32,), Q4_0, bytes(18))]), "name of another"),
    "truth": (gguf(ONE, [("k", 0, 2)]).replace(struct.pack("<IB", 0, 2), struct.pack("<IB", 7, 2), 1), "truth value is 2"),
    "value type": (gguf(ONE, [("k", 4, 1)]).replace(struct.pack("<II", 4, 1), struct.pack("<II", 77, 1), 1), "type 77"),
    "nested": (gguf(ONE, [("k", LIST, (LIST, [(4, [1])]))]), "array of arrays"),
    "long list": (gguf(ONE, [("k", LIST, (4, []))]).replace(struct.pack("<IQ", 4, 0), struct.pack("<IQ", 4, 2**61), 1), "numbers"),
    "long text": (gguf(ONE, [("k", TEXT, "abc")]).replace(struct.pack("<Q", 3) + b"abc", struct.pack("<Q", 2**63) + b"abc"), "text"),
    "alignment": (gguf(ONE, [("general.alignment", 4, 24)]), "power of two"),
    "alignment of zero": (gguf(ONE, [("general.alignment", 4, 0)]), "power of two"),
    "alignment's type": (gguf(ONE, [("general.alignment", TEXT, "32")]), "uint32"),
}


@pytest.mark.parametrize("name", LIES)
def test_files_that_lie(path, name):
    data, message = LIES[name]
    with open(path, "wb") as file:
        file.write(data)
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match=message) as error:
        tk.load(path)
    assert path in str(error.value)


def test_no_file(path):
    for m in (tk, mx):
        with pytest.raises((OSError, ValueError, RuntimeError)):
            m.load(path)
