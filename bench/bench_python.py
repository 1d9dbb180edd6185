"""What a call from Python costs, beside MLX on the CPU, in one run.

Small work, so that the time is the time of calls: eight floats added and evaluated, a compiled
training step of an MLP with four layers, and value_and_grad of the same without compile. Both
packages get the same program. They take turns in short rounds and the best round counts, because a
machine that others use too is slow at times. A ratio above 1 is a regression.
"""

import gc
import sys
import time

import mlx.core
import mlx.nn
import mlx.optimizers

import tiki
import tiki.nn
import tiki.optimizers


class Front:
    """One of the two packages under the names that the programs use."""

    def __init__(self, core, nn, optimizers):
        self.core, self.nn, self.optimizers = core, nn, optimizers


def add(front):
    """Build and evaluate a + b of eight floats."""
    core = front.core
    a, b = core.arange(8, dtype=core.float32), core.ones(8)
    core.eval(a, b)

    def step():
        core.eval(a + b)

    return step


def network(front, width):
    """An MLP with four layers of one width, a batch of 32, and the loss."""
    core, nn = front.core, front.nn
    core.random.seed(0)
    layers = []
    for i in range(4):
        layers += [nn.Linear(width, width)] + ([nn.ReLU()] if i < 3 else [])
    model = nn.Sequential(*layers)
    x, y = core.random.normal((32, width)), core.random.normal((32, width))
    core.eval(model.parameters(), x, y)

    def loss(inputs, targets):
        return ((model(inputs) - targets) ** 2).mean()

    return model, x, y, loss


def compiled_step(width):
    def make(front):
        core = front.core
        model, x, y, loss = network(front, width)
        optimizer = front.optimizers.SGD(learning_rate=1e-3)
        loss_and_grad = front.nn.value_and_grad(model, loss)
        state = [model.state, optimizer.state]

        def update(inputs, targets):
            value, gradients = loss_and_grad(inputs, targets)
            optimizer.update(model, gradients)
            return value

        fast = core.compile(update, inputs=state, outputs=state)

        def step():
            value = fast(x, y)
            core.eval(value, state)

        return step

    return make


def gradient(width):
    def make(front):
        core = front.core
        model, x, y, loss = network(front, width)
        loss_and_grad = front.nn.value_and_grad(model, loss)

        def step():
            core.eval(loss_and_grad(x, y))

        return step

    return make


CASES = {
    "a + b, 8 floats": (add, 2000),
    "compiled MLP step, 4 x 32, batch 32": (compiled_step(32), 200),
    "compiled MLP step, 4 x 256, batch 32": (compiled_step(256), 50),
    "value_and_grad, 4 x 32, batch 32": (gradient(32), 200),
    "value_and_grad, 4 x 256, batch 32": (gradient(256), 50),
}


def seconds(step, count):
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def measure(make, count, rounds=15):
    """The best time of each package in microseconds."""
    steps = [
        make(Front(tiki, tiki.nn, tiki.optimizers)),
        make(Front(mlx.core, mlx.nn, mlx.optimizers)),
    ]
    best = [float("inf")] * len(steps)
    for step in steps:
        seconds(step, count // 10 + 3)
    for _ in range(rounds):
        for i, step in enumerate(steps):
            best[i] = min(best[i], seconds(step, count))
    return [1e6 * value for value in best]


def main():
    mlx.core.set_default_device(mlx.core.cpu)
    gc.disable()
    wanted = sys.argv[1:]
    for name, (make, count) in CASES.items():
        if wanted and not any(word in name for word in wanted):
            continue
        ours, theirs = measure(make, count)
        print(f"{name:40s} tiki {ours:9.2f} us  mlx {theirs:9.2f} us  ratio {ours / theirs:5.2f}", flush=True)


if __name__ == "__main__":
    main()
