"""tiki.nn beside MLX's: initial weights, values and gradients of layers and losses, the module system."""

import math

import mlx.core as mx
import mlx.nn as mxnn
import mlx.utils as mxutils
import numpy as np
import pytest

import tiki as tk
import tiki.nn as nn
from tiki.utils import tree_flatten, tree_map, tree_map_with_path, tree_merge, tree_reduce, tree_unflatten

mx.disable_compile()  # MLX would call a compiler for each activation

RNG = np.random.default_rng(0)


def values(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def close(own, theirs, tolerance=1e-5, where=""):
    own, theirs = np.array(own), np.array(theirs)
    assert own.shape == theirs.shape and own.dtype == theirs.dtype, (where, own.shape, theirs.shape, own.dtype)
    if own.size == 0:
        return
    worst = np.abs(own.astype(np.float64) - theirs.astype(np.float64)).max()
    assert worst <= tolerance * max(1.0, np.abs(theirs).max()), (where, worst)


def close_trees(own, theirs, tolerance=1e-5):
    own, theirs = tree_flatten(own, destination={}), mxutils.tree_flatten(theirs, destination={})
    assert own.keys() == theirs.keys()
    for name in own:
        close(own[name], theirs[name], tolerance, name)


def both(make):
    """The module that `make(nn, arrays)` gives, by Tiki and by MLX, after the same seed."""
    tk.random.seed(3)
    own = make(nn, tk)
    mx.random.seed(3)
    return own, make(mxnn, mx)


def first_of(result):
    return result[0] if isinstance(result, tuple) else result


LAYERS = {
    "linear": (lambda n, a: n.Linear(5, 7), [(3, 5)]),
    "linear no bias": (lambda n, a: n.Linear(5, 7, bias=False), [(2, 3, 5)]),
    "bilinear": (lambda n, a: n.Bilinear(4, 3, 6), [(2, 5, 4), (2, 5, 3)]),
    "identity": (lambda n, a: n.Identity(3, x=1), [(3,)]),
    "layer norm": (lambda n, a: n.LayerNorm(8), [(4, 8)]),
    "layer norm plain": (lambda n, a: n.LayerNorm(8, affine=False), [(4, 8)]),
    "rms norm": (lambda n, a: n.RMSNorm(8), [(4, 8)]),
    "instance norm": (lambda n, a: n.InstanceNorm(3, affine=True), [(2, 5, 4, 3)]),
    "group norm": (lambda n, a: n.GroupNorm(2, 6), [(2, 5, 6)]),
    "group norm torch": (lambda n, a: n.GroupNorm(2, 6, pytorch_compatible=True), [(2, 4, 3, 6)]),
    "batch norm": (lambda n, a: n.BatchNorm(4), [(6, 4)]),
    "batch norm images": (lambda n, a: n.BatchNorm(3, affine=False), [(2, 4, 4, 3)]),
    "batch norm evaluation": (lambda n, a: n.BatchNorm(4).eval(), [(6, 4)]),
    "attention": (lambda n, a: n.MultiHeadAttention(8, 2, bias=True), [(2, 5, 8), (2, 3, 8), (2, 3, 8)]),
    "encoder": (lambda n, a: n.TransformerEncoderLayer(8, 2), [(2, 4, 8), None]),
    "encoder norm last": (lambda n, a: n.TransformerEncoder(1, 8, 2, norm_first=False), [(2, 4, 8), None]),
    "decoder": (lambda n, a: n.TransformerDecoder(1, 8, 2, mlp_dims=12), [(2, 4, 8), (2, 3, 8), None, None]),
    "decoder norm last": (
        lambda n, a: n.TransformerDecoderLayer(8, 2, norm_first=False),
        [(2, 4, 8), (2, 3, 8), None, None],
    ),
    "transformer": (
        lambda n, a: n.Transformer(8, 2, 1, 1, 12, activation=n.gelu),
        [(2, 3, 8), (2, 4, 8), None, None, None],
    ),
    "rope": (lambda n, a: n.RoPE(6), [(2, 3, 4, 8)]),
    "rope traditional": (lambda n, a: n.RoPE(8, traditional=True, base=100.0, scale=0.5), [(2, 3, 4, 8)]),
    "sinusoidal": (lambda n, a: n.SinusoidalPositionalEncoding(8, cos_first=True), [(2, 5)]),
    "sinusoidal turns": (lambda n, a: n.SinusoidalPositionalEncoding(2, full_turns=True, scale=1.0), [(5,)]),
    "alibi": (lambda n, a: n.ALiBi(), [(1, 6, 4, 5)]),
    "rnn": (lambda n, a: n.RNN(4, 6), [(2, 3, 4)]),
    "rnn hidden": (lambda n, a: n.RNN(4, 6, bias=False, nonlinearity=n.relu), [(2, 3, 4), (2, 6)]),
    "gru": (lambda n, a: n.GRU(4, 6), [(2, 3, 4)]),
    "gru hidden": (lambda n, a: n.GRU(4, 6, bias=False), [(3, 4), (6,)]),
    "lstm": (lambda n, a: n.LSTM(4, 6), [(2, 3, 4)]),
    "lstm hidden": (lambda n, a: n.LSTM(4, 6, bias=False), [(2, 3, 4), (2, 6), (2, 6)]),
    "sequential": (lambda n, a: n.Sequential(n.Linear(4, 8), n.ReLU(), a.tanh, n.Linear(8, 2)), [(3, 4)]),
    "prelu": (lambda n, a: n.PReLU(3), [(4, 3)]),
    "conv 1d": (lambda n, a: n.Conv1d(4, 6, 3, stride=2, padding=1), [(2, 9, 4)]),
    "conv 1d groups": (lambda n, a: n.Conv1d(4, 6, 3, dilation=2, groups=2, bias=False), [(2, 9, 4)]),
    "conv 2d": (lambda n, a: n.Conv2d(3, 5, 3), [(2, 6, 5, 3)]),
    "conv 2d all": (lambda n, a: n.Conv2d(6, 9, (3, 2), (2, 1), (1, 2), dilation=(1, 2), groups=3), [(2, 7, 5, 6)]),
    "conv 2d depthwise": (lambda n, a: n.Conv2d(6, 6, 3, padding=1, groups=6), [(2, 7, 5, 6)]),
    "conv 2d pointwise": (lambda n, a: n.Conv2d(6, 5, 1), [(2, 4, 5, 6)]),
    "conv 3d": (lambda n, a: n.Conv3d(2, 3, 2, stride=(1, 2, 1), padding=1), [(1, 3, 4, 3, 2)]),
    "conv transpose 1d": (lambda n, a: n.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1), [(2, 5, 4)]),
    "conv transpose 2d": (lambda n, a: n.ConvTranspose2d(3, 4, 3, 2, dilation=(1, 2)), [(2, 4, 3, 3)]),
    "conv transpose 2d no bias": (lambda n, a: n.ConvTranspose2d(3, 4, (2, 3), (2, 3), 1, bias=False), [(2, 4, 3, 3)]),
    "conv transpose 3d": (lambda n, a: n.ConvTranspose3d(2, 3, 3, stride=2, padding=1), [(1, 2, 3, 2, 2)]),
    "max pool 1d": (lambda n, a: n.MaxPool1d(3, 2, 1), [(2, 8, 3)]),
    "max pool 2d": (lambda n, a: n.MaxPool2d(2), [(2, 6, 4, 3)]),
    "max pool 2d overlapping": (lambda n, a: n.MaxPool2d((3, 2), stride=(2, 1)), [(2, 7, 5, 3)]),
    "max pool 3d": (lambda n, a: n.MaxPool3d(2, 1), [(1, 3, 4, 3, 2)]),
    "mean pool 1d": (lambda n, a: n.AvgPool1d(2), [(2, 7, 3)]),
    "mean pool 2d": (lambda n, a: n.AvgPool2d(3, 2, (1, 0)), [(2, 6, 7, 2)]),
    "mean pool 3d": (lambda n, a: n.AvgPool3d((1, 2, 2)), [(1, 2, 4, 4, 2)]),
}

for mode in ("nearest", "linear", "cubic"):
    for scale in (2.0, (1.5, 3.0), 0.6):
        for extra in ({}, {"align_corners": True}, {"antialias": True}):
            if mode != "nearest" or not extra:
                LAYERS[f"upsample {mode} {scale} {extra}"] = (
                    lambda n, a, s=scale, m=mode, e=extra: n.Upsample(s, m, **e),
                    [(2, 5, 4, 3)],
                )


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, shapes = LAYERS[name]
    own, theirs = both(make)
    for (key, a), (_, b) in zip(tree_flatten(own.parameters()), mxutils.tree_flatten(theirs.parameters())):
        np.testing.assert_array_equal(np.array(a), np.array(b), err_msg=key)
    inputs = [shape and values(*shape) for shape in shapes]

    def run(n, a, module):
        given = [None if x is None else a.array(x) for x in inputs]

        def loss(parameters, x):
            module.update(parameters)
            y = first_of(module(x, *given[1:]))
            return (y * a.cos(1.3 * y)).sum(), y

        value_and_grad = a.value_and_grad(loss, argnums=[0, 1])
        result, gradients = value_and_grad(module.trainable_parameters(), given[0])
        return result[1], gradients

    y, gradients = run(nn, tk, own)
    y_theirs, gradients_theirs = run(mxnn, mx, theirs)
    close(y, y_theirs)
    close_trees(list(gradients), list(gradients_theirs), 1e-5)
    close_trees(own.parameters(), theirs.parameters())
    assert repr(own).split("nonlinearity")[0] == repr(theirs).split("nonlinearity")[0]


ACTIVATIONS = {
    "relu relu2 relu6 sigmoid silu gelu gelu_approx gelu_fast_approx tanh mish selu hardswish hard_tanh": (),
    "log_sigmoid softplus softsign softmax softmin log_softmax glu": (),
    "leaky_relu celu elu softshrink hard_shrink step": (0.7,),
}
CLASSES = (
    "ReLU ReLU2 ReLU6 Sigmoid SiLU GELU Tanh Mish SELU Hardswish HardTanh LogSigmoid Softplus Softsign Softmax "
    "Softmin LogSoftmax GLU LeakyReLU CELU ELU Softshrink HardShrink Step"
)


@pytest.mark.parametrize("name, arguments", [(n, a) for names, a in ACTIVATIONS.items() for n in names.split()])
def test_activation(name, arguments):
    x = values(4, 6, low=-7, high=7)
    close(getattr(nn, name)(tk.array(x)), getattr(mxnn, name)(mx.array(x)))
    close(getattr(nn, name)(tk.array(x), *arguments), getattr(mxnn, name)(mx.array(x), *arguments))
    if name != "step":
        own = tk.grad(lambda x: getattr(nn, name)(x, *arguments).square().sum())(tk.array(x))
        close(own, mx.grad(lambda x: getattr(mxnn, name)(x, *arguments).square().sum())(mx.array(x)))


def check_gradient(make, x):
    """Of the layer that `make(nn)` gives, by its input and parameters, with random numbers of the same seed."""

    def run(n, a):
        a.random.seed(3)
        layer = make(n)

        def loss(parameters, x):
            layer.update(parameters)
            y = layer(x)
            return (y * a.sin(1.7 * y)).sum()

        return a.grad(loss, argnums=(0, 1))(layer.trainable_parameters(), a.array(x))

    own, theirs = run(nn, tk), run(mxnn, mx)
    close_trees(own[0], theirs[0])
    close(own[1], theirs[1])


@pytest.mark.parametrize("name", CLASSES.split())
def test_activation_class(name):
    x = values(3, 4)
    close(getattr(nn, name)()(tk.array(x)), getattr(mxnn, name)()(mx.array(x)))
    check_gradient(lambda n: getattr(n, name)(), values(5, 6, low=-5, high=5))


def test_gelu_classes_and_axes():
    x = values(4, 3)
    for approx in ("none", "precise", "tanh", "fast"):
        close(nn.GELU(approx)(tk.array(x)), mxnn.GELU(approx)(mx.array(x)))
    with pytest.raises(ValueError, match="approx"):
        nn.GELU("wrong")
    close(nn.softmax(tk.array(x), axis=0), mxnn.softmax(mx.array(x), axis=0))
    close(nn.log_softmax(tk.array(x), axis=0), mxnn.log_softmax(mx.array(x), axis=0))
    close(nn.glu(tk.array(x), axis=0), mxnn.glu(mx.array(x), axis=0))
    close(nn.prelu(tk.array(x), tk.array(0.1)), mxnn.prelu(mx.array(x), mx.array(0.1)))


def test_embedding():
    own, theirs = both(lambda n, a: n.Embedding(10, 4))
    close(own.weight, theirs.weight, 1e-4)
    theirs.weight = mx.array(np.array(own.weight))
    tokens = np.array([[1, 9, 1], [0, 2, 3]], np.int32)
    close(own(tk.array(tokens)), theirs(mx.array(tokens)))
    x = values(2, 4)
    close(own.as_linear(tk.array(x)), theirs.as_linear(mx.array(x)))
    loss = lambda n, a: lambda w: (n.update({"weight": w})(a.array(tokens)) ** 3).sum() + n.as_linear(a.array(x)).sin().sum()  # noqa: E731
    close(tk.grad(loss(own, tk))(own.weight), mx.grad(loss(theirs, mx))(theirs.weight))


@pytest.mark.parametrize("name, shape", [("Dropout", (5, 7)), ("Dropout2d", (2, 3, 4, 5)), ("Dropout3d", (2, 3, 2, 2, 5))])
def test_dropout(name, shape):
    x = values(*shape)
    own, theirs = both(lambda n, a: getattr(n, name)(0.3)(a.array(x)))
    close(own, theirs)
    check_gradient(lambda n: getattr(n, name)(0.3), x)
    layer = getattr(nn, name)(0.3).eval()
    close(layer(tk.array(x)), x)
    with pytest.raises(ValueError):
        getattr(nn, name)(1.0)


def test_no_layer_lacks_a_gradient_beside_that_of_mlx():
    """Quantised layers: test_quant.py."""
    compared = {word for make, _ in LAYERS.values() for word in make.__code__.co_names} | set(CLASSES.split())
    compared |= {"Embedding", "Dropout", "Dropout2d", "Dropout3d", "QQLinear", "QuantizedLinear", "QuantizedEmbedding"}
    layers = {name for name, value in vars(mxnn).items() if isinstance(value, type) and issubclass(value, mxnn.Module)}
    assert {name for name in layers - compared - {"Module"} if "Shard" not in name} == set()
    losses = {name for name in dir(mxnn.losses) if name.endswith(("loss", "entropy"))}
    assert losses - set(LOSSES) == {
        "cross_entropy", "nll_loss", "gaussian_nll_loss", "triplet_loss", "margin_ranking_loss",
    }  # fmt: skip


LOSSES = {
    "binary_cross_entropy": ((4, 3), {}),
    "l1_loss": ((4, 3), {}),
    "mse_loss": ((4, 3), {}),
    "smooth_l1_loss": ((4, 3), {"beta": 0.5}),
    "huber_loss": ((4, 3), {"delta": 0.6}),
    "log_cosh_loss": ((4, 3), {}),
    "hinge_loss": ((4, 3), {}),
    "kl_div_loss": ((4, 3), {"axis": 0}),
    "cosine_similarity_loss": ((4, 3), {}),
}


def check_loss(name, arrays, extra, differentiable=1):
    for reduction in ("none", "mean", "sum"):
        own = getattr(nn.losses, name)(*map(tk.array, arrays), **extra, reduction=reduction)
        close(own, getattr(mxnn.losses, name)(*map(mx.array, arrays), **extra, reduction=reduction))
    numbers = tuple(range(differentiable))
    own = tk.grad(lambda *a: (getattr(nn.losses, name)(*a, **extra) * 1.5).sum(), numbers)(*map(tk.array, arrays))
    theirs = mx.grad(lambda *a: (getattr(mxnn.losses, name)(*a, **extra) * 1.5).sum(), numbers)(*map(mx.array, arrays))
    if differentiable == 1:
        own, theirs = [first_of(own)], [first_of(theirs)]
    for a, b in zip(own, theirs):
        close(a, b, 1e-5, name)


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    shape, extra = LOSSES[name]
    check_loss(name, [values(*shape), values(*shape, low=0.05, high=0.95)], extra, 2)


def test_losses_with_more_arguments():
    probabilities = values(4, 3, low=0.05, high=0.95)
    check_loss("binary_cross_entropy", [probabilities, values(4, 3, low=0, high=1), values(4, 3)], {"with_logits": False})
    check_loss("nll_loss", [values(4, 3), np.array([0, 2, 1, 1], np.int32)], {})
    check_loss("gaussian_nll_loss", [values(4), values(4), values(4, low=0.1)], {"full": True}, 3)
    check_loss("triplet_loss", [values(4, 3), values(4, 3), values(4, 3)], {"margin": 0.5}, 3)
    check_loss("margin_ranking_loss", [values(5), values(5), np.float32([1, -1, 1, 1, -1])], {"margin": 0.2}, 2)


def test_cross_entropy():
    classes = np.array([0, 2, 1, 4], np.int32)
    check_loss("cross_entropy", [values(4, 5), classes], {})
    check_loss("cross_entropy", [values(4, 5), classes, values(4)], {"label_smoothing": 0.2})
    check_loss("cross_entropy", [values(5, 4), classes], {"axis": 0})
    shares = values(4, 5, low=0, high=1)
    check_loss("cross_entropy", [values(4, 5), shares / shares.sum(axis=1, keepdims=True)], {})
    half = tk.array(values(4, 5), dtype=tk.float16)
    assert nn.losses.cross_entropy(half, tk.array(classes)).dtype == tk.float16


def test_losses_refuse():
    x = tk.zeros((2, 3))
    for call in (
        lambda: nn.losses.mse_loss(x, tk.zeros((3,))),
        lambda: nn.losses.mse_loss(x, x, reduction="max"),
        lambda: nn.losses.cross_entropy(x, tk.zeros((3,), tk.int32)),
        lambda: nn.losses.cross_entropy(x, tk.zeros((2,), tk.int32), label_smoothing=1.0),
        lambda: nn.losses.cross_entropy(x, tk.zeros((2,), tk.int32), weights=tk.zeros((1,))),
        lambda: nn.losses.cross_entropy(x, tk.zeros((2,), tk.int32), axis=4),
        lambda: nn.losses.gaussian_nll_loss(x, x, tk.zeros((2,))),
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize(
    "name, arguments, extra, exact",
    [
        ("uniform", {"low": -0.5, "high": 2.0}, {}, True),
        ("normal", {"mean": 1.0, "std": 0.2}, {}, False),
        ("glorot_uniform", {}, {"gain": 2.0}, True),
        ("glorot_normal", {}, {}, False),
        ("he_uniform", {}, {"mode": "fan_out"}, True),
        ("he_normal", {}, {"gain": 0.5}, False),
        ("constant", {"value": 3.0}, {}, True),
        ("sparse", {"sparsity": 0.5}, {}, False),
    ],
)
def test_initial_values(name, arguments, extra, exact):
    for shape in ((6, 5), (4, 3, 3, 2)):
        if name == "sparse" and len(shape) != 2:
            continue
        own, theirs = both(lambda n, a: getattr(n.init, name)(**arguments)(a.zeros(shape), **extra))
        if exact:
            np.testing.assert_array_equal(np.array(own), np.array(theirs))
        close(own, theirs, 1e-4)


def test_initial_values_refuse():
    close(nn.init.identity()(tk.zeros((3, 3))), np.eye(3, dtype=np.float32))
    for call in (
        lambda: nn.init.identity()(tk.zeros((2, 3))),
        lambda: nn.init.glorot_uniform()(tk.zeros((3,))),
        lambda: nn.init.he_normal()(tk.zeros((3, 3)), mode="fan"),
        lambda: nn.init.sparse(0.5)(tk.zeros((3,))),
    ):
        with pytest.raises(ValueError):
            call()


# ---- the module system ----


class Model(nn.Module):
    def __init__(self, n=nn):
        super().__init__()
        self.embed = n.Linear(4, 3)
        self.blocks = [n.Linear(3, 3), {"inner": n.Linear(3, 3), "scale": tk.ones((2,))}]
        self._cache = tk.zeros((2,))
        self.name = "model"


def names(tree):
    return [name for name, _ in tree_flatten(tree)]


def test_parameters_and_freezing():
    model = Model()
    everything = names(model.parameters())
    assert everything == [
        "embed.weight", "embed.bias", "blocks.0.weight", "blocks.0.bias",
        "blocks.1.inner.weight", "blocks.1.inner.bias", "blocks.1.scale",
    ]  # fmt: skip
    assert "_cache" in model and "name" not in model and model.name == "model"
    model.freeze()
    assert names(model.trainable_parameters()) == []
    model.unfreeze(keys="bias")
    assert names(model.trainable_parameters()) == ["embed.bias", "blocks.0.bias", "blocks.1.inner.bias"]
    model.unfreeze()
    model.embed.freeze()
    assert names(model.trainable_parameters()) == everything[2:]
    model.unfreeze().freeze(recurse=False)
    assert names(model.trainable_parameters()) == everything[:-1]
    for call in (model.freeze, model.unfreeze):
        with pytest.raises(KeyError):
            call(keys=["nothing"], strict=True)
    norm = nn.Sequential(nn.BatchNorm(3))
    norm.unfreeze()
    assert names(norm.trainable_parameters()) == ["layers.0.weight", "layers.0.bias"]


def test_walking_modules():
    model = Model()
    assert sorted(name for name, _ in model.named_modules()) == ["", "blocks.0", "blocks.1.inner", "embed"]
    assert len(model.modules()) == 4
    assert [n for n, _ in tree_flatten(model.children(), is_leaf=nn.Module.is_module)][:2] == ["embed", "blocks.0"]
    assert len(tree_flatten(model.leaf_modules(), is_leaf=nn.Module.is_module)) == 3
    model.eval()
    assert not any(module.training for module in model.modules())
    assert model.train().blocks[0].training
    model.update_modules({"embed": nn.Identity()})
    assert isinstance(model.embed, nn.Identity)
    with pytest.raises(ValueError):
        model.update_modules({"nothing": nn.Identity()})


def test_attributes():
    layer = nn.Linear(2, 2)
    layer.extra = 3
    layer.extra = tk.ones((1,))
    assert "extra" in layer and "extra" not in layer.__dict__
    layer.extra = None
    assert "extra" not in layer and layer.extra is None
    del layer.bias
    assert "bias" not in layer
    with pytest.raises(AttributeError, match="bias"):
        layer.bias
    with pytest.raises(AttributeError):
        del layer.nothing


def test_update_and_apply():
    model = Model()
    model.update({"embed": {"bias": tk.ones((3,))}})
    assert model.embed.bias.tolist() == [1, 1, 1]
    for wrong in ({"nothing": tk.ones((1,))}, {"embed": {"bias": 1.0}}, {"blocks": [{}, {}, {}]}, 3):
        with pytest.raises(ValueError):
            model.update(wrong)
    model.update({"nothing": tk.ones((1,))}, strict=False)
    model.set_dtype(tk.float16)
    assert {p.dtype for _, p in tree_flatten(model.parameters())} == {tk.float16}
    model.apply(lambda p: p.astype(tk.float32) * 0)
    assert all(not p.any() for _, p in tree_flatten(model.parameters()))


@pytest.mark.parametrize("extension", ["npz", "safetensors"])
def test_weights_in_files(tmp_path, extension):
    model, other, file = Model(), Model(), str(tmp_path / f"weights.{extension}")
    model.save_weights(file)
    other.load_weights(file)
    for (_, a), (_, b) in zip(tree_flatten(model.parameters()), tree_flatten(other.parameters())):
        assert a.tolist() == b.tolist()
    own, theirs = both(lambda n, a: n.Sequential(n.Linear(3, 4), n.Linear(4, 2)))
    theirs.save_weights(str(tmp_path / f"theirs.{extension}"))
    own.apply(lambda p: p * 0).load_weights(str(tmp_path / f"theirs.{extension}"))
    close_trees(own.parameters(), theirs.parameters(), 0)
    with pytest.raises(ValueError):
        model.save_weights("weights.txt")


def test_load_weights_refuses():
    layer = nn.Linear(2, 3)
    good = {"weight": tk.zeros((3, 2)), "bias": tk.zeros((3,))}
    for wrong in (
        {"weight": good["weight"]},
        {**good, "more": tk.zeros((1,))},
        {**good, "bias": tk.zeros((2,))},
        {**good, "bias": [0, 0, 0]},
    ):
        with pytest.raises(ValueError):
            layer.load_weights(list(wrong.items()))
    layer.load_weights([("bias", tk.ones((3,)))], strict=False)
    assert layer.bias.tolist() == [1, 1, 1]


def test_value_and_grad_of_a_model():
    own, theirs = both(lambda n, a: n.Sequential(n.Linear(4, 8), n.Tanh(), n.Linear(8, 1)))
    x, y = values(6, 4), values(6, 1)
    for module in (own, theirs):
        module.layers[0].freeze(keys="bias")
    loss, gradients = nn.value_and_grad(own, lambda x, y: nn.losses.mse_loss(own(x), y))(tk.array(x), tk.array(y))
    loss2, theirs2 = mxnn.value_and_grad(theirs, lambda x, y: mxnn.losses.mse_loss(theirs(x), y))(mx.array(x), mx.array(y))
    close(loss, loss2)
    close_trees(gradients, theirs2)
    before = tree_map(lambda g: g.tolist(), gradients)
    recomputed = nn.utils.checkpoint(own)
    _, again = nn.value_and_grad(own, lambda x, y: nn.losses.mse_loss(recomputed(x), y))(tk.array(x), tk.array(y))
    assert tree_map(lambda g: g.tolist(), again) == before
    assert nn.average_gradients(gradients) is gradients


def test_masks_of_attention():
    own, theirs = both(lambda n, a: n.MultiHeadAttention(8, 2))
    x = values(2, 5, 8)
    mask = nn.MultiHeadAttention.create_additive_causal_mask(5)
    close(mask, mxnn.MultiHeadAttention.create_additive_causal_mask(5))
    a, b = tk.array(x), mx.array(x)
    close(own(a, a, a, mask), theirs(b, b, b, mx.array(np.array(mask))))
    for heads in (1, 6, 8, 11):
        close(nn.ALiBi.create_alibi_slope(heads), mxnn.ALiBi.create_alibi_slope(heads))
    scores = values(1, 6, 2, 7)
    close(nn.ALiBi()(tk.array(scores), offset=5), mxnn.ALiBi()(mx.array(scores), offset=5))


# ---- trees ----


def test_trees():
    tree = {"a": [1, (2, 3)], "b": {"c": 4, "d": []}}
    assert tree_flatten(tree) == mxutils.tree_flatten(tree)
    assert tree_flatten(tree, prefix=".x", destination={}) == mxutils.tree_flatten(tree, prefix=".x", destination={})
    assert tree_unflatten(tree_flatten(tree)) == {"a": [1, [2, 3]], "b": {"c": 4}}
    for flat in ([("", 3)], [("0", 1), ("2.x", 2)], {"01": 1, "1": 2}, []):
        assert tree_unflatten(flat) == mxutils.tree_unflatten(flat)
    assert tree_map(lambda x, y: x + y, tree, tree) == {"a": [2, (4, 6)], "b": {"c": 8, "d": []}}
    paths = []
    tree_map_with_path(lambda path, x: paths.append((path, x)), tree)
    assert paths == tree_flatten(tree)
    assert tree_reduce(lambda x, y: x + y, tree) == 10 and tree_reduce(max, tree, 7) == 7
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    assert tree_reduce(lambda x, y: x + 1, tree, 0, is_leaf) == mxutils.tree_reduce(lambda x, y: x + 1, tree, 0, is_leaf)
    assert tree_merge({"a": 1, "c": [1]}, {"b": {"x": 2}, "c": [None, 2]}) == {"a": 1, "b": {"x": 2}, "c": [1, 2]}
    assert tree_merge({"a": 1}, {"a": 2}, lambda x, y: x + y) == {"a": 3}
    for wrong in ((1, 2), ({}, [])):
        with pytest.raises(ValueError):
            tree_merge(*wrong)
    with pytest.raises(ValueError):
        tree_flatten(tree, destination=3)
    assert math.isclose(tree_reduce(lambda x, y: x * y, {"x": [2.0, 3.0]}), 6.0)
