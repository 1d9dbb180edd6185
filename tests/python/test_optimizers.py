"""tiki.optimizers beside MLX's: parameters and states over steps, schedules, clipping."""

import mlx.core as mx
import mlx.nn as mxnn
import mlx.optimizers as mxopt
import mlx.utils as mxutils
import numpy as np
import pytest

import tiki as tk
import tiki.nn as nn
import tiki.optimizers as opt
from tiki.utils import tree_flatten, tree_map

mx.disable_compile()

RNG = np.random.default_rng(1)
START = {"w": RNG.normal(size=(6, 4)), "layers": [{"b": RNG.normal(size=4)}, {"k": RNG.normal(size=(3, 5, 2, 2))}]}
GRADIENTS = [tree_map(lambda x: RNG.normal(size=x.shape), START) for _ in range(4)]


def as_arrays(tree, arrays, dtype="float32"):
    return tree_map(lambda x: arrays.array(x.astype(np.float32)).astype(getattr(arrays, dtype)), tree)


def close_trees(own, theirs, tolerance=2e-6):
    own, theirs = tree_flatten(own, destination={}), mxutils.tree_flatten(theirs, destination={})
    assert own.keys() == theirs.keys()
    for name in own:
        a, b = np.array(own[name].astype(tk.float32)), np.array(theirs[name].astype(mx.float32))
        assert str(own[name].dtype).split(".")[-1] == str(theirs[name].dtype).split(".")[-1], name
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


def run(module, arrays, name, options, dtype="float32", steps=4):
    optimizer = getattr(module, name)(**options)
    parameters = as_arrays(START, arrays, dtype)
    for gradients in GRADIENTS[:steps]:
        parameters = optimizer.apply_gradients(as_arrays(gradients, arrays, dtype), parameters)
        arrays.eval(parameters, optimizer.state)
    return parameters, optimizer


CASES = [
    ("SGD", {"learning_rate": 0.1}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("RMSprop", {"learning_rate": 0.01}),
    ("Adagrad", {"learning_rate": 0.01}),
    ("AdaDelta", {"learning_rate": 1.0, "rho": 0.8}),
    ("Adam", {"learning_rate": 0.01}),
    ("Adam", {"learning_rate": 0.01, "bias_correction": True, "betas": [0.8, 0.95]}),
    ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1}),
    ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1, "bias_correction": True}),
    ("Adamax", {"learning_rate": 0.01}),
    ("Lion", {"learning_rate": 0.01, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"learning_rate": 0.01, "relative_step": False, "beta_1": 0.9, "weight_decay": 0.1}),
    ("Adafactor", {"warmup_init": True, "scale_parameter": False}),
    ("Muon", {"learning_rate": 0.02}),
    ("Muon", {"learning_rate": 0.02, "nesterov": False, "weight_decay": 0.0}),
]


@pytest.mark.parametrize("name, options", CASES)
def test_rule(name, options):
    tolerance = 2e-5 if name == "Muon" else 3e-6
    parameters, optimizer = run(opt, tk, name, options)
    theirs, other = run(mxopt, mx, name, options)
    close_trees(parameters, theirs, tolerance)
    close_trees(optimizer.state, other.state, tolerance)
    assert optimizer.step.item() == 4 and optimizer.step.dtype == tk.uint64


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Lion"])
def test_rule_in_half_precision(name):
    parameters, optimizer = run(opt, tk, name, {"learning_rate": 0.01}, "bfloat16", 1)
    theirs, other = run(mxopt, mx, name, {"learning_rate": 0.01}, "bfloat16", 1)
    close_trees(parameters, theirs, 1e-2)
    close_trees(optimizer.state, other.state, 1e-2)


def test_model_is_trained_as_by_mlx():
    x, y = RNG.normal(size=(8, 3)).astype(np.float32), RNG.normal(size=(8, 1)).astype(np.float32)

    def train(n, o, arrays):
        arrays.random.seed(5)
        model = n.Sequential(n.Linear(3, 8), n.Tanh(), n.Linear(8, 1))
        step = n.value_and_grad(model, lambda a, b: n.losses.mse_loss(model(a), b))
        optimizer = o.Adam(o.join_schedules([o.linear_schedule(0, 0.1, 2), o.cosine_decay(0.1, 4)], [2]))
        losses = []
        for _ in range(6):
            loss, gradients = step(arrays.array(x), arrays.array(y))
            optimizer.update(model, gradients)
            arrays.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        return losses, model.parameters(), optimizer.state

    own, theirs = train(nn, opt, tk), train(mxnn, mxopt, mx)
    np.testing.assert_allclose(own[0], theirs[0], rtol=1e-5)
    close_trees(own[1], theirs[1], 1e-4)
    close_trees(own[2], theirs[2], 1e-4)


SCHEDULES = [
    ("exponential_decay", (0.1, 0.9)),
    ("step_decay", (0.1, 0.5, 3)),
    ("cosine_decay", (0.1, 5, 0.01)),
    ("linear_schedule", (0.0, 0.1, 4)),
]


@pytest.mark.parametrize("name, arguments", SCHEDULES)
def test_schedule(name, arguments):
    for step in (0, 1, 3, 4, 5, 9):
        own = getattr(opt, name)(*arguments)(tk.array(step, tk.uint64))
        theirs = getattr(mxopt, name)(*arguments)(mx.array(step, mx.uint64))
        assert str(own.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        np.testing.assert_allclose(own.item(), theirs.item(), rtol=1e-6, atol=1e-9)


def test_clipping():
    gradients = as_arrays(GRADIENTS[0], tk)
    for limit in (1.0, 1000.0):
        clipped, norm = opt.clip_grad_norm(gradients, limit)
        theirs, their_norm = mxopt.clip_grad_norm(as_arrays(GRADIENTS[0], mx), limit)
        close_trees(clipped, theirs)
        np.testing.assert_allclose(norm.item(), their_norm.item(), rtol=1e-6)
    with pytest.raises(ValueError):
        opt.clip_grad_norm(gradients, -1.0)


def multi(module):
    return module.MultiOptimizer(
        [module.SGD(0.1, momentum=0.9), module.Adam(0.01)], [lambda name, gradient: gradient.ndim > 1]
    )


def test_multi_optimizer():
    own, theirs = multi(opt), multi(mxopt)
    parameters, others = as_arrays(START, tk), as_arrays(START, mx)
    model = nn.Module()
    model.update(parameters, strict=False)
    for gradients in GRADIENTS:
        parameters = own.apply_gradients(as_arrays(gradients, tk), parameters)
        others = theirs.apply_gradients(as_arrays(gradients, mx), others)
    close_trees(parameters, others)
    close_trees(own.state, theirs.state)
    own.learning_rate = 0.5
    assert [o.learning_rate.item() for o in own.optimizers] == [0.5, 0.5] and own.learning_rate.item() == 0.5
    own.state = multi(opt).state
    with pytest.raises(ValueError):
        own.state = {"states": []}
    with pytest.raises(ValueError):
        opt.MultiOptimizer([opt.SGD(0.1), opt.SGD(0.1)])


def test_state_can_be_replaced_and_saved(tmp_path):
    _, optimizer = run(opt, tk, "AdamW", {"learning_rate": 0.01}, steps=2)
    parameters, _ = run(opt, tk, "AdamW", {"learning_rate": 0.01}, steps=2)
    file = str(tmp_path / "state.safetensors")
    tk.save_safetensors(file, tree_flatten(optimizer.state, destination={}))
    other = opt.AdamW(0.5)
    other.state = opt.tree_unflatten(tk.load(file))
    gradients = as_arrays(GRADIENTS[2], tk)
    expected = optimizer.apply_gradients(gradients, parameters)
    made = other.apply_gradients(gradients, parameters)
    for (_, a), (_, b) in zip(tree_flatten(expected), tree_flatten(made)):
        assert a.tolist() == b.tolist()
    assert other.step.item() == 3 and abs(other.learning_rate.item() - 0.01) < 1e-8


def test_own_optimizers():
    class Signs(opt.Optimizer):
        def __init__(self):
            super().__init__()
            self._maybe_schedule("learning_rate", 0.5)

        def init_single(self, parameter, state):
            state["count"] = tk.array(0)

        def apply_single(self, gradient, parameter, state):
            state["count"] = state["count"] + 1
            return parameter - self.learning_rate * tk.sign(gradient)

    class Halved(opt.Adam):
        def apply_single(self, gradient, parameter, state):
            return super().apply_single(0.5 * gradient, parameter, state)

    signs = Signs()
    result = signs.apply_gradients({"w": tk.array([2.0, -3.0])}, {"w": tk.array([1.0, 1.0])})
    assert result["w"].tolist() == [0.5, 1.5] and signs.state["w"]["count"].item() == 1
    halved = Halved(0.1, bias_correction=True)
    plain = opt.Adam(0.1, bias_correction=True)
    for gradient in (tk.array([2.0, -3.0]), tk.array([1.0, 1.0])):
        a = halved.apply_gradients({"w": gradient}, {"w": tk.ones((2,))})
        b = plain.apply_gradients({"w": 0.5 * gradient}, {"w": tk.ones((2,))})
        assert a["w"].tolist() == b["w"].tolist()
    with pytest.raises(NotImplementedError):
        opt.Optimizer().apply_gradients({"w": tk.ones((1,))}, {"w": tk.ones((1,))})


@pytest.mark.parametrize(
    "make",
    [
        lambda: opt.SGD(0.1, nesterov=True),
        lambda: opt.Adam(0.1, betas=[1.0, 0.9]),
        lambda: opt.Lion(0.1, betas=[0.9, -0.1]),
        lambda: opt.RMSprop(0.1, eps=0.0),
        lambda: opt.Adagrad(0.1, eps=-1.0),
        lambda: opt.AdaDelta(0.1, rho=-1.0),
        lambda: opt.cosine_decay(0.1, 0),
        lambda: opt.linear_schedule(0.1, 0.2, 0),
        lambda: opt.step_decay(0.1, 0.2, 0),
        lambda: opt.join_schedules([], []),
        lambda: opt.SGD(0.1).apply_gradients({"w": tk.ones((2,))}, {"w": tk.ones((3,))}),
    ],
)
def test_refuses(make):
    with pytest.raises(ValueError):
        make()
