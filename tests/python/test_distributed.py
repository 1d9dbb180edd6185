"""Groups of one process as MLX has them, and layers whose parameters are spread, whole and in two parts."""
import numpy as np
import pytest

import mlx.core as mx
import mlx.nn as mlx_nn
import mlx.nn.layers.distributed as mlx_sharded
import tiki as tk
import tiki.nn as nn
import tiki.nn.distributed as sharded
import tiki.nn.layers.distributed

RNG = np.random.default_rng(2)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def close(ours, theirs, bound=1e-5):
    ours, theirs = np.array(ours), np.array(theirs)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound * max(1, np.abs(theirs).max(initial=0)))


def test_group():
    for m in (tk, mx):
        group = m.distributed.init()
        assert isinstance(group, m.distributed.Group) and (group.rank(), group.size()) == (0, 1)
        for call in (lambda: group.split(0), lambda: group.split(3, key=1), lambda: m.distributed.init(strict=True)):
            with pytest.raises(RuntimeError):
                call()
        with pytest.raises(ValueError):
            m.distributed.init(backend="pigeons")
        with pytest.raises(TypeError):
            m.distributed.Group()
        for backend in ("mpi", "nccl", "jaccl", "pigeons"):
            assert m.distributed.is_available(backend) is False
        assert m.distributed.init(backend="mpi").size() == m.distributed.init(False, "ring").size() == 1
    assert tk.distributed.is_available() is False


@pytest.mark.parametrize("name", ["all_sum", "all_max", "all_min", "all_gather", "sum_scatter"])
def test_reductions_over_one(name):
    for values in (draw(2, 3), np.arange(4, dtype=np.int32), np.float32(2)):
        results = []
        for m in (tk, mx):
            x, f = m.array(values), getattr(m.distributed, name)
            results.append([f(x), f(x, group=m.distributed.init()), f(x, stream=m.cpu)])
        for one, other in zip(*results, strict=True):
            assert one.dtype.name == str(other.dtype).split(".")[-1] and one.tolist() == other.tolist()
            assert one.shape == other.shape
    for m in (tk, mx):
        f = getattr(m.distributed, name)
        assert f(3).item() == 3
        with pytest.raises(ValueError):
            f([1, 2])
        with pytest.raises(TypeError):
            f(m.array(1), group=3)
    gradient = tk.grad(lambda x: (getattr(tk.distributed, name)(x) ** 2).sum())(tk.array([1.0, 2.0]))
    assert gradient.tolist() == [2.0, 4.0]


def test_messages_to_nobody():
    for m in (tk, mx):
        d = m.distributed
        for call in (lambda: d.send(m.ones(2), 0), lambda: d.send(m.ones(2), dst=1, group=d.init()),
                     lambda: d.recv((2,), m.float32, 0), lambda: d.recv_like(m.ones(2), 0)):
            with pytest.raises(ValueError):
                call()


LAYERS = {
    "AllToShardedLinear": {}, "ShardedToAllLinear": {}, "QuantizedAllToShardedLinear": {"bits": 4},
    "QuantizedShardedToAllLinear": {"bits": 8, "group_size": 32},
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_one_process(name, bias):
    x = draw(3, 64)
    made = []
    for m, layers in ((tk, nn), (mx, mlx_nn)):
        m.random.seed(5)
        made.append(getattr(layers, name)(64, 32, bias=bias, **LAYERS[name]))
    ours, theirs = made
    assert set(ours.parameters()) == set(theirs.parameters())
    for key, parameter in ours.parameters().items():
        if parameter is not None:
            close(parameter, theirs.parameters()[key], 0)
    close(ours(tk.array(x)), theirs(mx.array(x)), 2e-5)
    assert repr(ours) == repr(theirs)
    assert set(ours.trainable_parameters()) == set(theirs.trainable_parameters())
    close(tk.grad(lambda x: (ours(x) ** 2).sum())(tk.array(x)), mx.grad(lambda x: (theirs(x) ** 2).sum())(mx.array(x)), 2e-5)
    ours.unfreeze()
    theirs.unfreeze()
    assert set(ours.trainable_parameters()) == set(theirs.trainable_parameters())


@pytest.mark.parametrize("sharding", ["all-to-sharded", "sharded-to-all"])
@pytest.mark.parametrize("coded", [False, True])
def test_shard_linear(sharding, coded):
    x, made = draw(3, 64), []
    for m, layers, functions in ((tk, nn, sharded), (mx, mlx_nn, mlx_sharded)):
        m.random.seed(1)
        linear = layers.Linear(64, 96)
        linear = linear.to_quantized() if coded else linear
        layer = functions.shard_linear(linear, sharding, segments=3 if sharding == "all-to-sharded" else 1 if coded else 2)
        close(layer(m.array(x)), linear(m.array(x)))
        made.append((type(layer).__name__, np.array(layer(m.array(x)))))
        with pytest.raises(ValueError):
            functions.shard_linear(linear, "sideways")
    assert made[0][0] == made[1][0]
    close(made[0][1], made[1][1], 2e-5)


def test_shard_inplace():
    results = []
    for m, layers, functions in ((tk, nn, tiki.nn.layers.distributed), (mx, mlx_nn, mlx_sharded)):
        m.random.seed(1)
        model = layers.Sequential(layers.Linear(4, 6), layers.ReLU(), layers.Linear(6, 2))
        x = m.array(np.arange(8, dtype=np.float32).reshape(2, 4))
        before = np.array(model(x))
        functions.shard_inplace(model.layers[0], "all-to-sharded", segments=[2, 4])
        functions.shard_inplace(model.layers[2], "sharded-to-all")
        functions.shard_inplace(model, lambda path, weight: None if "bias" in path else (0, [0.5]))
        results.append((before, np.array(model(x))))
        with pytest.raises(ValueError):
            functions.shard_inplace(model, lambda path, weight: "first")
        with pytest.raises(ValueError):
            functions.shard_inplace(model, "sideways")
    close(results[0][1], results[0][0], 0)
    close(results[0][1], results[1][1])


def test_fully_shard_of_one_process():
    results = []
    for m, layers in ((tk, nn), (mx, mlx_nn)):
        m.random.seed(2)
        model = layers.Sequential(layers.Linear(4, 6), layers.LayerNorm(6), layers.Linear(6, 2))
        assert layers.fully_shard(model) is model
        whole = layers.FullyShardedModule(model)
        x = m.array(np.arange(8, dtype=np.float32).reshape(2, 4))
        value, gradient = layers.value_and_grad(whole, lambda x: (whole(x) ** 2).sum())(x)
        results.append((value, gradient["module"]["layers"][0]["weight"], repr(whole)))
        half = layers.FullyShardedModule(model, compute_dtype=m.float16)
        assert half(x.astype(m.float16)).dtype == m.float16
        assert model.layers[0].weight.dtype == m.float32
        embedding = layers.FullyShardedModule(layers.Embedding(5, 4))
        close(embedding.as_linear(x), x @ embedding.module.weight.T)
    close(results[0][0], results[1][0])
    close(results[0][1], results[1][1])
    assert results[0][2] == results[1][2]


def test_gradients_of_one_process():
    tree = {"a": draw(2, 3), "b": [draw(4), draw(1)]}
    results = []
    for m, utils in ((tk, nn.utils), (mx, mlx_nn.utils)):
        gradients = {"a": m.array(tree["a"]), "b": [m.array(b) for b in tree["b"]]}
        assert utils.average_gradients(gradients) is gradients
        clipped, norm = utils.clip_grad_norm_sharded(gradients, 0.5)
        results.append((norm, clipped["a"], clipped["b"][1]))
    for one, other in zip(*results):
        close(one, other)


class Half(tk.distributed.Group):
    """One of two members, to look at the parts that it would have."""

    def __init__(self, rank):
        self._rank = rank

    def rank(self):
        return self._rank

    def size(self):
        return 2


def halves(make):
    return [make(Half(rank)) for rank in range(2)]


def test_parts_of_two_members():
    linear, x = nn.Linear(8, 6), tk.array(draw(3, 8))
    parts = halves(lambda group: sharded.shard_linear(linear, "all-to-sharded", group=group))
    assert [part.weight.shape for part in parts] == [(3, 8)] * 2
    outputs = [x @ part.weight.T + part.bias for part in parts]
    close(tk.concatenate(outputs, axis=-1), linear(x))
    parts = halves(lambda group: sharded.shard_linear(linear, "sharded-to-all", group=group))
    assert [part.weight.shape for part in parts] == [(6, 4)] * 2 and repr(parts[0]) == repr(nn.ShardedToAllLinear(8, 6))
    close(sum(x[:, 4 * i : 4 * i + 4] @ part.weight.T for i, part in enumerate(parts)) + parts[0].bias, linear(x))
    fused = halves(lambda group: sharded.shard_linear(linear, "all-to-sharded", segments=3, group=group))
    close(fused[1].weight, tk.concatenate([linear.weight[1:2], linear.weight[3:4], linear.weight[5:6]]))
    for wrong in (lambda: nn.AllToShardedLinear(8, 7, group=Half(0)), lambda: nn.ShardedToAllLinear(7, 8, group=Half(0)),
                  lambda: nn.FullyShardedModule(nn.Linear(8, 7), Half(0))):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(NotImplementedError):  # there is nobody to talk to
        parts[0](x[:, :4])


def test_two_members_that_talk(monkeypatch):
    """Collectives of a group of two, simulated: what the other member would send is known beforehand."""
    linear, x = nn.Linear(8, 6), tk.array(draw(3, 8))
    whole = {"weight": linear.weight, "bias": linear.bias}
    members = []
    for rank in range(2):
        copy = nn.Linear(8, 6)
        copy.update(whole)
        members.append(nn.fully_shard(copy, group=Half(rank)))
    assert [m.module.weight.shape for m in members] == [(3, 8)] * 2
    rows = [tk.concatenate([m.module.weight.reshape(1, -1), m.module.bias.reshape(1, -1)], axis=1) for m in members]
    keys = [key for key, _ in tk.utils.tree_flatten(members[0].module.parameters())]
    if keys[0].endswith("bias"):
        rows = [tk.concatenate([m.module.bias.reshape(1, -1), m.module.weight.reshape(1, -1)], axis=1) for m in members]
    monkeypatch.setattr(sharded, "all_gather", lambda row, group: tk.concatenate(rows))
    monkeypatch.setattr(sharded, "sum_scatter", lambda both, group: 2 * both[group.rank() : group.rank() + 1])
    expected = tk.grad(lambda w: ((x @ w.T + linear.bias) ** 2).sum())(linear.weight)
    for rank, member in enumerate(members):
        close(member(x), linear(x))
        _, gradient = nn.value_and_grad(member, lambda x: (member(x) ** 2).sum())(x)
        close(gradient["module"]["weight"], expected[3 * rank : 3 * rank + 3])
        assert member.module.weight.shape == (3, 8)
    import tiki.nn.utils as utils

    monkeypatch.setattr(utils, "all_sum", lambda a, group=None, stream=None: 3 * a)
    gradients = {"a": tk.array([[2.0, 4.0]]), "b": [tk.array([6.0]), tk.array(8.0)]}
    for size in (0, 1, 8, 1 << 20):
        averaged = utils.average_gradients(gradients, group=Half(0), all_reduce_size=size)
        assert averaged["a"].tolist() == [[3.0, 6.0]] and [b.tolist() for b in averaged["b"]] == [[9.0], 12.0]
    summed = sharded.sum_gradients(Half(0))
    monkeypatch.setattr(sharded, "all_sum", lambda a, group: 5 * a)
    assert tk.grad(lambda x: (summed(x) ** 2).sum())(tk.array([1.0])).tolist() == [10.0]
