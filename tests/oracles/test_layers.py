"""Layers and losses of tiki.nn beside PyTorch's, weights mapped: values and gradients by inputs and parameters.

PyTorch computes in float64. Tiki keeps channels last, PyTorch second: `images` turns one into the other. A row
names the layer, what makes PyTorch's from it, and the shapes of its inputs.
"""

import numpy as np
import pytest
import tiki as tk
import tiki.nn as nn
import torch
from tiki.utils import tree_flatten, tree_unflatten
from torch.nn import functional as F

RNG = np.random.default_rng(7)


def values(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def close(own, theirs, where=""):
    """Within 1e-5 of the larger of 1 and the largest element."""
    own, theirs = np.array(own).astype(np.float64), theirs.detach().numpy()
    assert own.shape == theirs.shape, (where, own.shape, theirs.shape)
    worst = np.abs(own - theirs).max(initial=0)
    assert worst <= 1e-5 * max(1.0, np.abs(theirs).max(initial=0)), (where, worst)


def images(x):
    return x.movedim(-1, 1)


def back(y):
    return y.movedim(1, -1)


def kernels(w):
    """(out, spatial..., in) as PyTorch's (out, in, spatial...)."""
    return w.movedim(-1, 1)


def transposed_kernels(w):
    return kernels(w).transpose(0, 1)


def convolution(rank, transpose=False, **options):
    function = getattr(F, f"conv{'_transpose' if transpose else ''}{rank}d")

    def run(p, x):
        weight = transposed_kernels(p["weight"]) if transpose else kernels(p["weight"])
        return back(function(images(x), weight, p.get("bias"), **options))

    return run


def pool(name, *arguments, **options):
    return lambda p, x: back(getattr(F, name)(images(x), *arguments, **options))


def attention(heads):
    def run(p, q, k, v, prefix=""):
        names = ("query", "key", "value", "out")
        weights = [p[f"{prefix}{n}_proj.weight"] for n in names]
        biases = [p.get(f"{prefix}{n}_proj.bias") for n in names]
        joined = None if biases[0] is None else torch.cat(biases[:3])
        result, _ = F.multi_head_attention_forward(
            q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), q.shape[-1], heads, None, joined, None, None,
            False, 0.0, weights[3], biases[3], use_separate_proj_weight=True, q_proj_weight=weights[0],
            k_proj_weight=weights[1], v_proj_weight=weights[2])  # fmt: skip
        return result.transpose(0, 1)

    return run


def norm_of(p, prefix, x):
    return F.layer_norm(x, x.shape[-1:], p[f"{prefix}.weight"], p[f"{prefix}.bias"])


def feed_forward(p, x):
    return F.linear(F.relu(F.linear(x, p["linear1.weight"], p["linear1.bias"])), p["linear2.weight"], p["linear2.bias"])


def encoder_layer(norm_first):
    def run(p, x):
        if norm_first:
            y = norm_of(p, "ln1", x)
            x = x + attention(2)(p, y, y, y, "attention.")
            return x + feed_forward(p, norm_of(p, "ln2", x))
        x = norm_of(p, "ln1", x + attention(2)(p, x, x, x, "attention."))
        return norm_of(p, "ln2", x + feed_forward(p, x))

    return run


def decoder_layer(p, x, memory):
    y = norm_of(p, "ln1", x)
    x = x + attention(2)(p, y, y, y, "self_attention.")
    x = x + attention(2)(p, norm_of(p, "ln2", x), memory, memory, "cross_attention.")
    return x + feed_forward(p, norm_of(p, "ln3", x))


def recurrent(kind, hidden):
    """PyTorch's layer from Tiki's weights; a GRU of Tiki has a second bias for the new state only."""

    def run(p, x):
        layer = getattr(torch.nn, kind)(x.shape[-1], hidden, batch_first=True).double()
        if kind == "GRU":
            zeros = torch.zeros(2 * hidden, dtype=torch.float64)
            weights = [p["Wx"], p["Wh"], p["b"], torch.cat([zeros, p["bhn"]])]
        elif kind == "LSTM":
            weights = [p["Wx"], p["Wh"], p["bias"], torch.zeros_like(p["bias"])]
        else:
            weights = [p["Wxh"], p["Whh"], p["bias"], torch.zeros_like(p["bias"])]
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        return torch.func.functional_call(layer, dict(zip(names, weights)), (x,))[0]

    return run


def affine(function, *arguments):
    return lambda p, x: back(function(images(x), *arguments, p.get("weight"), p.get("bias")))


def batch_norm(training):
    def run(p, x):
        mean, var = torch.zeros(x.shape[-1], dtype=x.dtype), torch.ones(x.shape[-1], dtype=x.dtype)
        return back(F.batch_norm(images(x), mean, var, p["weight"], p["bias"], training))

    return run


LAYERS = {
    "Linear": (lambda: nn.Linear(5, 7), lambda p, x: F.linear(x, p["weight"], p["bias"]), [(3, 5)]),
    "Linear, no bias": (lambda: nn.Linear(5, 7, bias=False), lambda p, x: F.linear(x, p["weight"]), [(2, 3, 5)]),
    "Bilinear": (
        lambda: nn.Bilinear(4, 3, 6),
        lambda p, x, y: F.bilinear(x, y, p["weight"].transpose(1, 2), p["bias"]),
        [(5, 4), (5, 3)],
    ),
    "LayerNorm": (lambda: nn.LayerNorm(8), lambda p, x: F.layer_norm(x, (8,), p["weight"], p["bias"]), [(4, 8)]),
    "RMSNorm": (lambda: nn.RMSNorm(8), lambda p, x: F.rms_norm(x, (8,), p["weight"], 1e-5), [(4, 8)]),
    "GroupNorm": (
        lambda: nn.GroupNorm(2, 6, pytorch_compatible=True),
        lambda p, x: affine(F.group_norm, 2)(p, x),
        [(2, 4, 3, 6)],
    ),
    "InstanceNorm": (
        lambda: nn.InstanceNorm(3, affine=True),
        lambda p, x: back(F.instance_norm(images(x), weight=p["weight"], bias=p["bias"])),
        [(2, 5, 4, 3)],
    ),
    "BatchNorm, training": (lambda: nn.BatchNorm(4), batch_norm(True), [(6, 4)]),
    "BatchNorm of images": (lambda: nn.BatchNorm(3), batch_norm(True), [(2, 4, 4, 3)]),
    "BatchNorm, evaluation": (lambda: nn.BatchNorm(4).eval(), batch_norm(False), [(6, 4)]),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, 2, 1), convolution(1, stride=2, padding=1), [(2, 9, 4)]),
    "Conv1d, groups": (
        lambda: nn.Conv1d(4, 6, 3, dilation=2, groups=2, bias=False),
        convolution(1, dilation=2, groups=2),
        [(2, 9, 4)],
    ),
    "Conv2d": (
        lambda: nn.Conv2d(6, 9, (3, 2), (2, 1), (1, 2), dilation=(1, 2), groups=3),
        convolution(2, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=3),
        [(2, 7, 5, 6)],
    ),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, padding=1), convolution(3, padding=1), [(1, 3, 4, 3, 2)]),
    "ConvTranspose1d": (
        lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1),
        convolution(1, True, stride=2, padding=1, output_padding=1),
        [(2, 5, 4)],
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(3, 4, 3, 2, dilation=(1, 2)),
        convolution(2, True, stride=2, dilation=(1, 2)),
        [(2, 4, 3, 3)],
    ),
    "ConvTranspose3d": (
        lambda: nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1),
        convolution(3, True, stride=2, padding=1),
        [(1, 2, 3, 2, 2)],
    ),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), pool("max_pool1d", 3, 2, 1), [(2, 8, 3)]),
    "MaxPool2d": (lambda: nn.MaxPool2d((3, 2), (2, 1)), pool("max_pool2d", (3, 2), (2, 1)), [(2, 7, 5, 3)]),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, 1), pool("max_pool3d", 2, 1), [(1, 3, 4, 3, 2)]),
    "AvgPool1d": (lambda: nn.AvgPool1d(2), pool("avg_pool1d", 2), [(2, 7, 3)]),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, (1, 0)), pool("avg_pool2d", 3, 2, (1, 0)), [(2, 6, 7, 2)]),
    "AvgPool3d": (lambda: nn.AvgPool3d((1, 2, 2)), pool("avg_pool3d", (1, 2, 2)), [(1, 2, 4, 4, 2)]),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(8, 2), attention(2), [(2, 5, 8), (2, 3, 8), (2, 3, 8)]),
    "MultiHeadAttention, biases": (lambda: nn.MultiHeadAttention(8, 4, bias=True), attention(4), [(2, 5, 8)] * 3),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 12), encoder_layer(True), [(2, 4, 8), None]),
    "TransformerEncoderLayer, norm last": (
        lambda: nn.TransformerEncoderLayer(8, 2, 12, norm_first=False),
        encoder_layer(False),
        [(2, 4, 8), None],
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 12),
        decoder_layer,
        [(2, 4, 8), (2, 3, 8), None, None],
    ),
    "RNN": (lambda: nn.RNN(4, 6), recurrent("RNN", 6), [(2, 3, 4)]),
    "GRU": (lambda: nn.GRU(4, 6), recurrent("GRU", 6), [(2, 3, 4)]),
    "LSTM": (lambda: nn.LSTM(4, 6), recurrent("LSTM", 6), [(2, 3, 4)]),
    "PReLU": (lambda: nn.PReLU(3), lambda p, x: F.prelu(x, p["weight"]), [(4, 3)]),
    "Dropout, evaluation": (lambda: nn.Dropout(0.4).eval(), lambda p, x: F.dropout(x, 0.4, False), [(4, 3)]),
}

ACTIVATIONS = {
    "ReLU": F.relu, "ReLU6": F.relu6, "Sigmoid": F.sigmoid, "SiLU": F.silu, "GELU": F.gelu, "Tanh": F.tanh,
    "Mish": F.mish, "SELU": F.selu, "Hardswish": F.hardswish, "HardTanh": F.hardtanh, "LogSigmoid": F.logsigmoid,
    "Softplus": F.softplus, "Softsign": F.softsign, "Softmax": lambda x: F.softmax(x, -1),
    "Softmin": lambda x: F.softmin(x, -1), "LogSoftmax": lambda x: F.log_softmax(x, -1), "GLU": lambda x: F.glu(x, -1),
    "LeakyReLU": F.leaky_relu, "CELU": F.celu, "ELU": F.elu, "Softshrink": F.softshrink, "HardShrink": F.hardshrink,
    "ReLU2": lambda x: F.relu(x).square(), "Identity": lambda x: x,
}  # fmt: skip
for _name, _function in ACTIVATIONS.items():
    LAYERS[_name] = (getattr(nn, _name), lambda p, x, f=_function: f(x), [(5, 6)])
LAYERS["GELU, tanh"] = (lambda: nn.GELU("tanh"), lambda p, x: F.gelu(x, approximate="tanh"), [(5, 6)])

# Lengths that the scales multiply to whole ones: elsewhere MLX, and Tiki with it, centres the grid, PyTorch does not.
for _scale in (2.0, (1.5, 3.0)):
    for _mode, _theirs in (("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")):
        for _corners in (None,) if _mode == "nearest" else (False, True):
            LAYERS[f"Upsample {_mode} {_scale} {_corners}"] = (
                lambda s=_scale, m=_mode, c=_corners: nn.Upsample(s, m, align_corners=bool(c)),
                lambda p, x, s=_scale, m=_theirs, c=_corners: back(
                    F.interpolate(images(x), scale_factor=s, mode=m, align_corners=c, recompute_scale_factor=False)
                ),
                [(2, 4, 5, 3)],
            )


def first_of(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, theirs, shapes = LAYERS[name]
    tk.random.seed(3)
    layer = make()
    inputs = [shape and values(*shape, low=-4, high=4) for shape in shapes]
    given = [x for x in inputs if x is not None]
    parameters = tree_flatten(layer.trainable_parameters(), destination={})
    parameters = {key: np.array(value) + values(*value.shape, low=-0.3, high=0.3) for key, value in parameters.items()}

    def loss(tree, arrays):
        layer.update(tree)
        rest = iter(arrays)
        y = first_of(layer(*[None if x is None else next(rest) for x in inputs]))
        return (y * tk.cos(1.3 * y)).sum(), y

    tree = tree_unflatten([(key, tk.array(value)) for key, value in parameters.items()]) if parameters else {}
    (_, own), gradients = tk.value_and_grad(loss, argnums=(0, 1))(tree, [tk.array(x) for x in given])

    tensors = {key: torch.tensor(value, dtype=torch.float64, requires_grad=True) for key, value in parameters.items()}
    operands = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in given]
    y = theirs(tensors, *operands)
    (y * torch.cos(1.3 * y)).sum().backward()
    close(own, y, "value")
    for key, gradient in tree_flatten(gradients[0], destination={}).items():
        close(gradient, tensors[key].grad, key)
    for at, (gradient, operand) in enumerate(zip(gradients[1], operands)):
        close(gradient, operand.grad, f"input {at}")


def test_embedding():
    weight, tokens = values(7, 4), np.array([[1, 6, 1], [0, 2, 3]], np.int32)
    layer = nn.Embedding(7, 4)

    def loss(weight):
        layer.update({"weight": weight})
        return layer(tk.array(tokens)).square().sum() + layer.as_linear(tk.array(values_of_linear)).sin().sum()

    values_of_linear = values(2, 4)
    tensor = torch.tensor(weight, dtype=torch.float64, requires_grad=True)
    picked = F.embedding(torch.tensor(tokens, dtype=torch.long), tensor)
    (picked.square().sum() + torch.sin(torch.tensor(values_of_linear).double() @ tensor.T).sum()).backward()
    close(tk.grad(loss)(tk.array(weight)), tensor.grad)


def test_batch_norm_keeps_the_same_statistics():
    layer, theirs = nn.BatchNorm(3), torch.nn.BatchNorm1d(3).double()
    for _ in range(3):
        x = values(6, 3)
        layer(tk.array(x)), theirs(torch.tensor(x).double())
    close(layer.running_mean, theirs.running_mean)
    close(layer.running_var, theirs.running_var)


PROBABILITIES = {"low": 0.05, "high": 0.95}
CLASSES = np.array([0, 2, 1, 4], np.int64)
LOSSES = {
    "mse_loss": (lambda x, y: nn.losses.mse_loss(x, y), F.mse_loss, [{}, {}]),
    "l1_loss": (lambda x, y: nn.losses.l1_loss(x, y), F.l1_loss, [{}, {}]),
    "smooth_l1_loss": (
        lambda x, y: nn.losses.smooth_l1_loss(x, y, beta=0.5),
        lambda x, y: F.smooth_l1_loss(x, y, beta=0.5),
        [{}, {}],
    ),
    "huber_loss": (
        lambda x, y: nn.losses.huber_loss(x, y, delta=0.6, reduction="mean"),
        lambda x, y: F.huber_loss(x, y, delta=0.6),
        [{}, {}],
    ),
    "binary_cross_entropy": (
        lambda x, y: nn.losses.binary_cross_entropy(x, y),
        F.binary_cross_entropy_with_logits,
        [{}, PROBABILITIES],
    ),
    "binary_cross_entropy of probabilities": (
        lambda x, y: nn.losses.binary_cross_entropy(x, y, with_logits=False),
        F.binary_cross_entropy,
        [PROBABILITIES, PROBABILITIES],
    ),
    "cross_entropy": (
        lambda x: nn.losses.cross_entropy(x, tk.array(CLASSES), reduction="mean"),
        lambda x: F.cross_entropy(x, torch.tensor(CLASSES)),
        [{}],
    ),
    "cross_entropy, smoothed": (
        lambda x: nn.losses.cross_entropy(x, tk.array(CLASSES), label_smoothing=0.2),
        lambda x: F.cross_entropy(x, torch.tensor(CLASSES), label_smoothing=0.2, reduction="none"),
        [{}],
    ),
    "cross_entropy of probabilities": (
        lambda x, y: nn.losses.cross_entropy(x, tk.softmax(y, -1)),
        lambda x, y: F.cross_entropy(x, F.softmax(y, -1), reduction="none"),
        [{}, {}],
    ),
    "nll_loss": (
        lambda x: nn.losses.nll_loss(x, tk.array(CLASSES)),
        lambda x: F.nll_loss(x, torch.tensor(CLASSES), reduction="none"),
        [{}],
    ),
    "kl_div_loss": (
        lambda x, y: nn.losses.kl_div_loss(x, tk.log(y), axis=-1),
        lambda x, y: F.kl_div(x, torch.log(y), reduction="none", log_target=True).sum(-1),
        [{}, PROBABILITIES],
    ),
    "cosine_similarity_loss": (
        lambda x, y: nn.losses.cosine_similarity_loss(x, y),
        lambda x, y: F.cosine_similarity(x, y, 1),
        [{}, {}],
    ),
    "gaussian_nll_loss": (
        lambda x, y, v: nn.losses.gaussian_nll_loss(x, y, v, full=True),
        lambda x, y, v: F.gaussian_nll_loss(x, y, v, full=True),
        [{}, {}, PROBABILITIES],
    ),
    "margin_ranking_loss": (
        lambda x, y: nn.losses.margin_ranking_loss(x, y, tk.array(SIGNS), margin=0.2),
        lambda x, y: F.margin_ranking_loss(x, y, torch.tensor(SIGNS), 0.2, reduction="none"),
        [{}, {}],
    ),
    "triplet_loss": (
        lambda x, y, z: nn.losses.triplet_loss(x, y, z, margin=0.5, eps=0.0),
        lambda x, y, z: F.triplet_margin_loss(x, y, z, 0.5, eps=0.0, reduction="none"),
        [{}, {}, {}],
    ),
    "hinge_loss": (
        lambda x: nn.losses.hinge_loss(x, tk.array(SIGNS)),
        lambda x: F.relu(1 - x * torch.tensor(SIGNS)),
        [{}],
    ),
    "log_cosh_loss": (
        lambda x, y: nn.losses.log_cosh_loss(x, y),
        lambda x, y: torch.log(torch.cosh(x - y)),
        [{}, {}],
    ),
}
SIGNS = np.sign(RNG.uniform(-1, 1, (4, 5))).astype(np.float32)


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    own, theirs, ranges = LOSSES[name]
    arrays = [values(4, 5, **interval) for interval in ranges]
    operands = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays]
    expected = theirs(*operands)
    (expected * 1.5).sum().backward()
    numbers = tuple(range(len(arrays)))
    close(own(*map(tk.array, arrays)), expected, "value")
    gradients = tk.grad(lambda *given: (own(*given) * 1.5).sum(), numbers)(*map(tk.array, arrays))
    for at, (gradient, operand) in enumerate(zip(gradients if len(arrays) > 1 else [first_of(gradients)], operands)):
        close(gradient, operand.grad, f"operand {at}")
