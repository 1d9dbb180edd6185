"""Linear regression: weights that made noisy data are found again by gradient descent.

    python examples/python/01_linear_regression.py --steps 200
"""

import argparse

import tiki as tk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.1)
    options = parser.parse_args()

    tk.random.seed(1)
    true_weights = tk.random.normal((8,))
    x = tk.random.normal((256, 8))
    y = x @ true_weights + 0.01 * tk.random.normal((256,))

    def loss(weights: tk.array) -> tk.array:
        return tk.mean(tk.square(x @ weights - y))

    weights = tk.zeros((8,))
    gradient = tk.grad(loss)
    for _ in range(options.steps):
        weights -= options.rate * gradient(weights)
        tk.eval(weights)

    print(f"loss {loss(weights).item():.6f}")
    print(f"largest error of a weight {tk.abs(weights - true_weights).max().item():.4f}")


if __name__ == "__main__":
    main()
