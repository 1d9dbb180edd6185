"""What the expressions of name_cases.py see: the modules, sample arrays, and helpers for what takes several
steps. Everything is made anew for each case, after the same seed; nothing of a case is left to the next."""

import importlib
import io
import operator
import pathlib
import pickle
import tempfile
import threading

import numpy as np

PACKAGES = {"tiki": ("tiki", "tiki.nn", "tiki.optimizers", "tiki.utils"),
            "mlx": ("mlx.core", "mlx.nn", "mlx.optimizers", "mlx.utils")}  # fmt: skip


def numpy_values(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


class World:
    def __init__(self, package):
        self.package = package
        self.m, self.nn, self.optim, self.utils = map(importlib.import_module, PACKAGES[package])
        self.m.random.seed(3)
        self.x, self.y, self.p = self.f(2, 3), self.f(2, 3, seed=1), self.f(2, 3, seed=2, low=0.1, high=0.9)
        self.v, self.t = self.f(6), self.f(1, 2, 3, 4)
        self.w = self.f(3, 3) + 3 * self.m.eye(3)
        self.s = self.w @ self.w.T
        self.z = self.f(4) + 1j * self.f(4, seed=1)
        self.i = self.m.array([[1, -2, 3], [7, 5, -6]])
        self.like = Like(self.x)

    def names(self):
        methods = {name: getattr(self, name) for name in dir(World) if not name.startswith("_") and name != "names"}
        return {**methods, **vars(self), "np": np, "numpy_values": numpy_values, "operator": operator, "pickle": pickle}

    def f(self, *shape, **keywords):
        return self.m.array(numpy_values(*shape, **keywords))

    # ---- arrays ----

    def shape_or_values(self, name, a):
        return (a.shape, a.dtype) if name.startswith("empty") else a

    def set_item(self, a, index, value):
        a[index] = value
        return a

    def pickled(self, a):
        return pickle.loads(pickle.dumps(a))

    def path_shape(self, path):
        """Which operands are contracted is the planner's choice; that there are as many steps is not."""
        return len([step for step in path if isinstance(step, tuple)])

    def through_codes(self, a):
        return self.m.dequantize(*self.m.quantize(a, mode="mxfp8"), mode="mxfp8", dtype=self.m.float32)

    def eigen(self, values, vectors, a):
        """The equation that they solve, and the values in order."""
        a = a.astype(vectors.dtype)
        return [self.m.abs(a @ vectors - vectors * values), self.m.sort(self.m.abs(values))]

    # ---- transforms ----

    def custom(self, rule, function):
        m = self.m
        made = m.custom_function(lambda a: a * 2)
        getattr(made, rule)(function)
        if rule == "vjp":
            return m.grad(lambda a: made(a).sum())(self.x)
        if rule == "jvp":
            return m.jvp(made, [self.x], [self.y])[1]
        return m.vmap(made)(self.x)

    def compiled_after(self, switch):
        """MLX is left without: it would call a compiler for every test that uses its activations."""
        try:
            switch()
            return self.m.compile(lambda a: a * 2)(self.x)
        finally:
            self.m.enable_compile() if self.package == "tiki" else self.m.disable_compile()

    def exported(self, function):
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "f.mlxfn")
            self.m.export_function(file, function, self.x, self.y)
            return self.m.import_function(file)(self.x, self.y)

    def exported_by_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "f.mlxfn")
            maker = self.m.exporter(file, lambda a: (a * 2, a.sum()))
            assert isinstance(maker, self.m.FunctionExporter)
            maker(self.x)
            maker(self.v)
            maker.close()
            function = self.m.import_function(file)
            return [function(self.x), function(self.v)]

    def dot_text(self):
        text = io.StringIO()
        self.m.export_to_dot(text, self.x + self.y)
        return text.getvalue()

    # ---- files ----

    def saved(self, name, save):
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / name)
            save(file)
            loaded = self.m.load(file)
            self.m.eval(loaded)
            return loaded

    # ---- devices and memory ----

    def default_stream_is_set(self):
        m = self.m
        before, made = m.default_stream(m.cpu), m.new_stream(m.cpu)
        m.set_default_stream(made)
        changed = m.default_stream(m.cpu) == made
        m.set_default_stream(before)
        return changed, m.default_stream(m.cpu) == before

    def added_within(self, context):
        with context:
            return self.x + 1

    def in_thread(self, function):
        """MLX's streams belong to a thread."""
        results = []
        thread = threading.Thread(target=lambda: results.append(function()))
        thread.start()
        thread.join()
        return results

    def bytes_of_a_megabyte(self):
        before = self.m.get_active_memory()
        a = self.m.zeros((1 << 18,)) + 1
        self.m.eval(a)
        return self.m.get_active_memory() - before >= 1 << 20

    def limit_is_set(self, set_limit):
        before = set_limit(1 << 40)
        return set_limit(before)

    def printed(self, context):
        with context:
            text = str(self.m.array([1.23456, 2.0]))
        return text.count("1.23456"), "1.2" in text

    def options_are_set(self):
        m = self.m
        before = m.get_printoptions()
        m.set_printoptions(precision=3)
        changed = m.get_printoptions().precision
        m.set_printoptions(before.precision)
        return changed, m.get_printoptions().precision == before.precision

    # ---- layers ----

    def trained(self, optimizer, steps=3):
        """Parameters after some steps on fixed gradients."""
        parameters = {"a": self.f(4, 3), "b": [self.f(3, seed=1)]}
        gradients = {"a": self.f(4, 3, seed=2), "b": [self.f(3, seed=3)]}
        optimizer.init(parameters)
        for _ in range(steps):
            parameters = optimizer.apply_gradients(gradients, parameters)
        return parameters

    def single(self, optimizer, apply=True):
        state = {}
        optimizer.init({"a": self.x})
        optimizer.init_single(self.x, state)
        return optimizer.apply_single(self.y, self.x, state) if apply else state

    def model(self):
        n = self.nn
        return n.Sequential(n.Linear(3, 4), n.Tanh(), n.Linear(4, 2))

    def weights_in_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file, model = str(pathlib.Path(folder) / "w.npz"), self.model()
            model.save_weights(file)
            other = self.model()
            other.load_weights(file)
            self.m.eval(other.parameters())
            return other.parameters()

    def twice(self, layer, x):
        """What it gives in training, its state after that, and what it gives then."""
        return [layer(x), layer.parameters(), layer.eval()(x)]

    def after(self, layer, method, *arguments):
        getattr(layer, method)(*arguments)
        return layer

    def names_of(self, tree):
        return [name for name, _ in self.utils.tree_flatten(tree)]

    def module(self, name):
        return importlib.import_module(f"{PACKAGES[self.package][1].removesuffix('.nn')}.{name}")

    def quantized_embedding(self, make):
        layer = self.nn.Embedding(7, 64)
        layer.weight = self.f(7, 64)
        return make(layer, group_size=32, bits=8)

    def qq_switched(self):
        layer = self.nn.QQLinear.from_linear(self.nn.Linear(64, 32, bias=False), mode="mxfp8")
        layer.dequantize()
        wide = layer.weight
        layer.quantize()
        return [wide, layer.weight]

    def quantized_model(self):
        n = self.nn
        model = n.Sequential(n.Linear(64, 32), n.ReLU(), n.Linear(32, 2))
        n.quantize(model, group_size=32, bits=8)
        return model(self.f(3, 64))

    def sharded_in_place(self):
        layer = self.nn.Linear(3, 4)
        self.module("nn.layers.distributed").shard_inplace(layer, "all-to-sharded")
        return layer.parameters()

    def value_and_grad_of_a_model(self, value_and_grad):
        model = self.model()
        return value_and_grad(model, lambda a: model(a).square().sum())(self.x)

    def filters(self, name):
        layer = self.model()
        layer.extra, layer._hidden, layer.text = self.x, self.y, "a"
        if name == "trainable_parameter_filter":
            layer.freeze(recurse=False, keys="extra")
        accepts = getattr(self.nn.Module, name)
        return sorted(key for key, value in layer.items() if accepts(layer, key, value))

    def applied_names(self):
        seen = []
        self.model().apply_to_modules(lambda name, module: seen.append((name, type(module).__name__)))
        return sorted(seen)

    # ---- optimizers ----

    def two_optimizers(self):
        return self.optim.MultiOptimizer([self.optim.Adam(0.1), self.optim.SGD(0.5)], [lambda path, a: a.ndim == 2])

    def in_two_optimizers(self, name):
        both = self.two_optimizers()
        both.init({"a": self.x, "b": self.v})
        if name == "learning_rate":
            both.learning_rate = 0.125
        return getattr(both, name)

    def after_init(self, optimizer):
        optimizer.init({"a": self.x})
        return optimizer

    def own_optimizer(self):
        class Signs(self.optim.Optimizer):
            def init_single(self, parameter, state):
                state["count"] = parameter * 0

            def apply_single(self, gradient, parameter, state):
                state["count"] = state["count"] + 1
                return parameter - 0.5 * gradient * state["count"]

        return Signs()

    def updated_model(self):
        model, optimizer = self.model(), self.optim.SGD(0.1)
        loss = self.nn.value_and_grad(model, lambda a: model(a).square().sum())
        for _ in range(2):
            _, gradients = loss(self.x)
            optimizer.update(model, gradients)
        return model.parameters()


class Like:
    """Has an array: what ArrayLike is for."""

    def __init__(self, a):
        self.a = a

    def __mlx_array__(self):
        return self.a
