"""A GPT-2 on the bytes of files, written in Python: the run of `tiki train`, bit for bit.

Weights, order of the data, learning rates and the update are those of the command, so the losses are too:

    tiki train README.md --out run --steps 20 --seed 1 ...
    python examples/python/03_gpt.py README.md --out run-python --steps 20 --seed 1
"""

import argparse
import math

import tiki as tk
from tiki import lm, nn, optimizers
from tiki.logging import Logger
from tiki.utils import tree_unflatten


class Affine(nn.Module):
    """x weight + bias: a weight of GPT-2's files is [inputs, outputs]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = tk.zeros((inputs, outputs))
        self.bias = tk.zeros((outputs,))

    def __call__(self, x: tk.array) -> tk.array:
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = Affine(dim, 3 * dim)
        self.c_proj = Affine(dim, dim)

    def _split(self, x: tk.array) -> tk.array:
        batch, length, dim = x.shape
        return x.reshape(batch, length, self.heads, dim // self.heads).transpose(0, 2, 1, 3)

    def __call__(self, x: tk.array) -> tk.array:
        batch, length, dim = x.shape
        q, k, v = (self._split(part) for part in tk.split(self.c_attn(x), 3, axis=-1))
        scale = 1 / math.sqrt(dim // self.heads)
        mixed = tk.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal")
        return self.c_proj(mixed.transpose(0, 2, 1, 3).reshape(batch, length, dim))


class MLP(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.c_fc = Affine(dim, 4 * dim)
        self.c_proj = Affine(4 * dim, dim)

    def __call__(self, x: tk.array) -> tk.array:
        return self.c_proj(nn.gelu_approx(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim)

    def __call__(self, x: tk.array) -> tk.array:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, layers: int, heads: int, dim: int, context: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(256, dim)
        self.wpe = nn.Embedding(context, dim)
        self.h = [Block(dim, heads) for _ in range(layers)]
        self.ln_f = nn.LayerNorm(dim)

    def __call__(self, tokens: tk.array) -> tk.array:
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class GPT(nn.Module):
    """Logits of the next byte, for bytes [batch, length]. The output matrix is the embedding."""

    def __init__(self, layers: int, heads: int, dim: int, context: int) -> None:
        super().__init__()
        self.transformer = Transformer(layers, heads, dim, context)

    def __call__(self, tokens: tk.array) -> tk.array:
        return self.transformer.wte.as_linear(self.transformer(tokens))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help="files and folders of text")
    parser.add_argument("--out", default="run-python")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--warmup", type=int, default=100)
    return parser.parse_args()


def main() -> None:
    o = arguments()
    data = lm.read_bytes(*o.data)
    model = GPT(o.layers, o.heads, o.dim, o.context)
    weights = lm.initial_weights(
        "gpt2", layers=o.layers, heads=o.heads, dim=o.dim, context=o.context, seed=o.seed
    )
    model.update(tree_unflatten(weights))
    optimizer = optimizers.AdamW(
        learning_rate=o.rate, betas=[0.9, 0.95], weight_decay=0.1, bias_correction=True
    )

    def loss(tokens: tk.array) -> tk.array:
        return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")

    loss_and_grad = nn.value_and_grad(model, loss)
    with Logger(o.out, settings=vars(o), total=o.steps) as log:
        for step in range(o.steps):
            tokens = lm.batch(data, step, length=o.context, batch_size=o.batch, seed=o.seed)
            value, gradients = loss_and_grad(tokens)
            gradients, norm = optimizers.clip_grad_norm(gradients, 1.0)
            rate = lm.learning_rate(step, highest=o.rate, warmup=o.warmup)
            optimizer.learning_rate = tk.array(rate)
            optimizer.update(model, gradients)
            tk.eval(model.parameters(), optimizer.state, value, norm)
            log.log({"loss": value, "norm": norm, "lr": rate}, step + 1)
    model.save_weights(f"{o.out}/model.safetensors")


if __name__ == "__main__":
    main()
