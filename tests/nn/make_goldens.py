"""Writes optimizers, losses and layers.safetensors: what MLX 0.32.4 computes.

usage: make_goldens.py    (in this folder, with mlx and numpy installed)

Names are "CASE.STEP.PARAMETER", "CASE" and "CASE.slope" (the derivative by x); the C tests hold the same cases in the same words. MLX
computes on the CPU in float32.
"""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
random = np.random.default_rng(20)
STEPS = 5


def normal(*shape):
    return mx.array(random.standard_normal(shape).astype(np.float32))


def optimizers():
    shapes = {"wide": (3, 5), "tall": (6, 4), "line": (7,), "one": (1,), "cube": (2, 3, 4)}
    start = {name: normal(*shape) for name, shape in shapes.items()}
    gradients = [{name: normal(*shape) for name, shape in shapes.items()} for _ in range(STEPS)]
    out = {f"start.{name}": value for name, value in start.items()}
    for step, tree in enumerate(gradients, 1):
        out |= {f"gradient.{step}.{name}": value for name, value in tree.items()}
    cases = {
        "sgd": optim.SGD(0.1),
        "sgd-decay": optim.SGD(0.1, weight_decay=0.3),
        "sgd-momentum": optim.SGD(0.1, momentum=0.9),
        "sgd-dampening": optim.SGD(0.1, momentum=0.9, dampening=0.4, weight_decay=0.1),
        "sgd-nesterov": optim.SGD(0.1, momentum=0.9, nesterov=True),
        "rmsprop": optim.RMSprop(0.1),
        "rmsprop-alpha": optim.RMSprop(0.1, alpha=0.7, eps=1e-3),
        "adagrad": optim.Adagrad(0.1),
        "adadelta": optim.AdaDelta(1.0),
        "adadelta-rho": optim.AdaDelta(0.5, rho=0.6, eps=1e-3),
        "adam": optim.Adam(0.1),
        "adam-correction": optim.Adam(0.1, betas=[0.8, 0.95], bias_correction=True),
        "adamw": optim.AdamW(0.1),
        "adamw-correction": optim.AdamW(0.1, betas=[0.9, 0.95], weight_decay=0.2,
                                        bias_correction=True),
        "adamax": optim.Adamax(0.1),
        "lion": optim.Lion(0.1),
        "lion-decay": optim.Lion(0.1, betas=[0.8, 0.9], weight_decay=0.3),
        "adafactor": optim.Adafactor(),
        "adafactor-warmup": optim.Adafactor(warmup_init=True),
        "adafactor-rate": optim.Adafactor(0.1, relative_step=False, scale_parameter=False,
                                          weight_decay=0.2, clip_threshold=0.5),
        "adafactor-moment": optim.Adafactor(0.1, relative_step=False, beta_1=0.9),
        "muon": optim.Muon(0.1),
        "muon-plain": optim.Muon(0.1, momentum=0.8, weight_decay=0.0, nesterov=False, ns_steps=3),
    }
    for case, optimizer in cases.items():
        parameters = dict(start)
        optimizer.init(parameters)
        for step, tree in enumerate(gradients, 1):
            parameters = optimizer.apply_gradients(tree, parameters)
            mx.eval(parameters)
            out |= {f"{case}.{step}.{name}": value for name, value in parameters.items()}
    mx.save_safetensors("optimizers.safetensors", out)


def losses():
    x, y, z = normal(4, 6), normal(4, 6), normal(4, 6)
    share = mx.array(random.uniform(0.01, 0.99, (4, 6)).astype(np.float32))
    classes = mx.array(random.integers(0, 6, 4).astype(np.int32))
    rows = mx.array(random.integers(0, 4, 6).astype(np.int32))
    weights = mx.abs(normal(4))
    signs = mx.sign(normal(4, 6))
    big = x * 60
    deep, deep_classes = normal(2, 5, 3), mx.array(random.integers(0, 5, (2, 3)).astype(np.int32))
    log_x, log_y = nn.log_softmax(x, axis=-1), nn.log_softmax(y, axis=-1)
    out = dict(x=x, y=y, z=z, share=share, classes=classes, rows=rows, weights=weights,
               signs=signs, big=big, deep=deep, deep_classes=deep_classes, log_x=log_x,
               log_y=log_y)
    l = nn.losses
    out |= {
        "cross-entropy": l.cross_entropy(x, classes),
        "cross-entropy-mean": l.cross_entropy(x, classes, reduction="mean"),
        "cross-entropy-sum": l.cross_entropy(x, classes, reduction="sum"),
        "cross-entropy-weights": l.cross_entropy(x, classes, weights, reduction="mean"),
        "cross-entropy-smooth": l.cross_entropy(x, classes, label_smoothing=0.2),
        "cross-entropy-axis": l.cross_entropy(x, rows, axis=0),
        "cross-entropy-deep": l.cross_entropy(deep, deep_classes, axis=1, label_smoothing=0.1),
        "cross-entropy-shares": l.cross_entropy(x, mx.softmax(y, axis=-1)),
        "cross-entropy-shares-smooth": l.cross_entropy(x, mx.softmax(y, axis=-1),
                                                       label_smoothing=0.3),
        "cross-entropy-big": l.cross_entropy(big, classes),
        "binary-logits": l.binary_cross_entropy(big, share, reduction="none"),
        "binary-shares": l.binary_cross_entropy(share, mx.abs(mx.round(share)), with_logits=False,
                                                reduction="none"),
        "binary-ends": l.binary_cross_entropy(mx.round(share), share, with_logits=False),
        "l1": l.l1_loss(x, y),
        "mse": l.mse_loss(x, y),
        "smooth-l1": l.smooth_l1_loss(x, y, beta=0.7, reduction="none"),
        "huber": l.huber_loss(x, y, delta=0.7),
        "log-cosh": l.log_cosh_loss(big, y),
        "nll": l.nll_loss(log_x, classes),
        "kl": l.kl_div_loss(log_x, log_y, axis=-1),
        "gaussian": l.gaussian_nll_loss(x, y, share, reduction="none"),
        "gaussian-full": l.gaussian_nll_loss(x, y, share * 1e-3, full=True, eps=3e-4),
        "hinge": l.hinge_loss(x, signs),
        "cosine": l.cosine_similarity_loss(x, y),
        "ranking": l.margin_ranking_loss(x, y, signs, margin=0.4),
        "triplet": l.triplet_loss(x, y, z),
        "triplet-p": l.triplet_loss(x, y, z, axis=0, p=3, margin=0.2, eps=1e-3),
    }
    mx.save_safetensors("losses.safetensors", out)


SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 80.0, -80.0, 1e-30, -1e-30, 300.0, -300.0,
           float("inf"), float("-inf"), float("nan")]


def activations(out):
    x = mx.concatenate([3 * normal(45), mx.array(SPECIAL)])
    slopes = mx.abs(normal(64))
    matrix = normal(3, 4, 6)
    cases = {
        "relu2": nn.relu2, "relu6": nn.relu6, "elu": nn.elu, "selu": nn.selu, "softsign": nn.softsign,
        "softshrink": nn.softshrink, "hard-shrink": nn.hard_shrink, "hard-tanh": nn.hard_tanh,
        "hardswish": nn.hardswish, "log-sigmoid": nn.log_sigmoid, "gelu-fast": nn.gelu_fast_approx,
        "mish": nn.mish, "step": nn.step,
        "leaky-relu": lambda x: nn.leaky_relu(x, 0.2),
        "prelu": lambda x: nn.prelu(x, slopes[:x.size]),
        "elu-alpha": lambda x: nn.elu(x, 0.7),
        "celu": lambda x: nn.celu(x, 1.7),
        "softshrink-1": lambda x: nn.softshrink(x, 1.0),
        "hard-shrink-1": lambda x: nn.hard_shrink(x, 1.0),
        "hard-tanh-2": lambda x: nn.hard_tanh(x, -2.0, 0.5),
        "step-1": lambda x: nn.step(x, 1.0),
    }
    out |= {"x": x, "slopes": slopes, "matrix": matrix}
    for name, function in cases.items():
        out[name] = function(x).astype(mx.float32)
        if not name.startswith("step"):
            out[name + ".slope"] = mx.grad(lambda x: function(x).sum())(x[:45])
    out |= {f"glu-{axis}": nn.glu(matrix, axis) for axis in (1, -1)}
    out |= {f"softmin-{axis}": nn.softmin(matrix, axis) for axis in (0, -1)}


def layers():
    out = {}
    activations(out)
    weight, bias, table = normal(5, 6), normal(5), normal(7, 3)
    tokens = mx.array(random.integers(0, 7, (2, 4)).astype(np.int32))
    heads, scale, shift = normal(2, 3, 5, 8), normal(6), normal(6)
    linear = nn.Linear(6, 5)
    linear.weight, linear.bias = weight, bias
    plain = nn.Linear(6, 5, bias=False)
    plain.weight = weight
    embedding = nn.Embedding(7, 3)
    embedding.weight = table
    layer_norm, rms_norm = nn.LayerNorm(6), nn.RMSNorm(6)
    layer_norm.weight, layer_norm.bias, rms_norm.weight = scale, shift, scale
    matrix = out["matrix"]
    out |= {
        "weight": weight, "bias": bias, "table": table, "tokens": tokens, "heads": heads, "scale": scale,
        "shift": shift, "linear": linear(matrix), "linear-plain": plain(matrix), "embedding": embedding(tokens),
        "layer-norm": layer_norm(matrix), "rms-norm": rms_norm(matrix),
        "rope": nn.RoPE(8)(heads), "rope-part": nn.RoPE(6, traditional=True, base=500, scale=0.5)(heads, offset=3),
        "swiglu": nn.silu(matrix) * (2 * matrix),
    }
    mx.random.seed(5)
    dropout = nn.Dropout(0.3)
    out |= {"dropout": dropout(matrix), "dropout-again": dropout(matrix)}
    initial = {
        "normal": nn.init.normal(0.5, 2.0), "uniform": nn.init.uniform(-1.0, 3.0),
        "glorot-normal": nn.init.glorot_normal(), "glorot-uniform": nn.init.glorot_uniform(),
        "he-normal": nn.init.he_normal(), "he-uniform": nn.init.he_uniform(),
    }
    mx.random.seed(9)
    out |= {f"init-{name}": init(mx.zeros((4, 3, 5))) for name, init in initial.items()}
    out["init-he-normal-out"] = initial["he-normal"](mx.zeros((4, 3, 5)), mode="fan_out", gain=2.0)
    out["init-he-uniform-out"] = initial["he-uniform"](mx.zeros((4, 3, 5)), mode="fan_out", gain=0.5)
    mx.save_safetensors("layers.safetensors", out)


optimizers()
losses()
layers()
