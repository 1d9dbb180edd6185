"""A classifier of small pictures, on data that it makes: each class is a picture of its own, seen shifted and
through noise, in MNIST's size.

    python examples/python/02_classifier.py --steps 300
"""

import argparse
import tempfile

import tiki as tk
from tiki import nn, optimizers
from tiki.logging import Logger

SIDE, CLASSES = 28, 10


class Network(nn.Module):
    """Two convolutions, each halved by pooling, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.second = nn.Conv2d(8, 16, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.last = nn.Linear(16 * (SIDE // 4) ** 2, CLASSES)

    def __call__(self, x: tk.array) -> tk.array:
        x = self.pool(nn.relu(self.first(x)))
        x = self.pool(nn.relu(self.second(x)))
        return self.last(x.flatten(1))


def prototypes() -> tk.array:
    """One picture [SIDE, SIDE] for each class: smooth, so that a shift changes it little."""
    coarse = tk.random.normal((CLASSES, SIDE // 4, SIDE // 4), key=tk.random.key(7))
    return tk.repeat(tk.repeat(coarse, 4, axis=1), 4, axis=2)


def pictures(classes: tk.array, count: int, seed: int) -> tuple[tk.array, tk.array]:
    """Pictures [count, SIDE, SIDE, 1] and their classes."""
    keys = tk.random.split(tk.random.key(seed), 3)
    labels = tk.random.randint(0, CLASSES, (count,), key=keys[0])
    shifts = tk.random.randint(-2, 3, (count, 2), key=keys[1])
    rows = (tk.arange(SIDE)[None, :, None] + shifts[:, 0, None, None]) % SIDE
    columns = (tk.arange(SIDE)[None, None, :] + shifts[:, 1, None, None]) % SIDE
    shown = classes[labels[:, None, None], rows, columns]
    return (shown + 0.5 * tk.random.normal(shown.shape, key=keys[2]))[..., None], labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", default=None, help="a folder for log.jsonl and TensorBoard's events")
    options = parser.parse_args()

    tk.random.seed(0)
    classes = prototypes()
    model = Network()
    optimizer = optimizers.AdamW(learning_rate=2e-3)

    def loss(x: tk.array, labels: tk.array) -> tk.array:
        return nn.losses.cross_entropy(model(x), labels, reduction="mean")

    loss_and_grad = nn.value_and_grad(model, loss)
    state = [model.state, optimizer.state]

    def update(x: tk.array, labels: tk.array) -> tk.array:
        value, gradients = loss_and_grad(x, labels)
        optimizer.update(model, gradients)
        return value

    optimizer.init(model.trainable_parameters())
    step = tk.compile(update, inputs=state, outputs=state)
    folder = options.out or tempfile.mkdtemp(prefix="tiki-classifier-")
    with Logger(folder, settings=vars(options), total=options.steps, tensorboard=True) as log:
        for number in range(1, options.steps + 1):
            value = step(*pictures(classes, options.batch, seed=number))
            tk.eval(value, state)
            log.log({"loss": value}, number)

    x, labels = pictures(classes, 500, seed=10**6)
    right = tk.mean(tk.argmax(model(x), axis=1) == labels).item()
    print(f"{100 * right:.1f} % of new pictures are classified rightly; the log is in {folder}")


if __name__ == "__main__":
    main()
