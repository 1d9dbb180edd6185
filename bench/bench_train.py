"""A training step of the demo's model in Tiki and in PyTorch eager: time and peak memory.

Same model, batch, optimizer, clipping and threads; each in a process of its own; rounds alternate,
so that both see the same machine. The ratio is PyTorch's time over Tiki's, of the medians and of the
best rounds. Peak memory is VmHWM less VmRSS just before the model is made.
"""
import os
import statistics
import subprocess
import sys
import time

ROUNDS, STEPS, WARM_STEPS = 7, 3, 3
LAYERS, HEADS, DIM, HIDDEN, CONTEXT, BATCH, VOCAB = 4, 4, 128, 384, 256, 8, 256


def memory(name):
    """A figure of /proc/self/status in MiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024


# ---- PyTorch ----


def make_model(torch, threads):
    nn, functional = torch.nn, torch.nn.functional
    torch.set_num_threads(threads)
    head = DIM // HEADS
    angles = torch.outer(torch.arange(CONTEXT).float(),
                         10000.0 ** (-torch.arange(0, head, 2).float() / head))
    cos, sin = angles.cos(), angles.sin()

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(DIM, 1e-5), nn.RMSNorm(DIM, 1e-5)
            self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM, False) for _ in range(4))
            self.gate, self.up = nn.Linear(DIM, HIDDEN, False), nn.Linear(DIM, HIDDEN, False)
            self.down = nn.Linear(HIDDEN, DIM, False)

        def forward(self, x):
            y = self.norm1(x)
            q, k, v = (part(y).view(BATCH, CONTEXT, HEADS, head).transpose(1, 2)
                       for part in (self.q, self.k, self.v))
            y = functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(BATCH, CONTEXT, DIM))
            y = self.norm2(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCAB, DIM)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.norm = nn.RMSNorm(DIM, 1e-5)

        def forward(self, tokens):
            x = self.embedding(tokens)
            for layer in self.layers:
                x = layer(x)
            return functional.linear(self.norm(x), self.embedding.weight)

    model = Model()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, 0, 0.02)
    return model


def torch_worker(threads, fused):
    import torch

    functional = torch.nn.functional
    before = memory("VmRSS")
    model = make_model(torch, threads)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, (0.9, 0.95), 1e-8, 0.1, fused=fused)

    def step():
        tokens = torch.randint(0, VOCAB, (BATCH, CONTEXT + 1))
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    for _ in range(WARM_STEPS):
        step()
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, "\n"):
        begin = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(f"{time.perf_counter() - begin:.6f}", flush=True)
    print(f"{memory('VmHWM') - before:.1f}", flush=True)


# ---- in turn ----


class Worker:
    def __init__(self, name, words):
        self.name, self.times = name, []
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        assert self.process.stdout.readline() == "ready\n", name

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def measure(self):
        self.times.append(self.ask(str(STEPS)) / STEPS)

    def end(self):
        self.peak = self.ask("")
        self.process.wait()


def main():
    build = os.environ.get("TIKI_BUILD", "build")
    threads = len(os.sched_getaffinity(0))
    workers = [Worker("Tiki", [f"{build}/bench/bench_train", "--worker"])]
    workers += [Worker(name, [sys.executable, __file__, "--torch", str(threads), fused])
                for name, fused in (("PyTorch", "0"), ("PyTorch, fused AdamW", "1"))]
    for _ in range(ROUNDS):
        for worker in workers:
            worker.measure()
    for worker in workers:
        worker.end()
        print(f"{worker.name:22} {min(worker.times) * 1e3:8.1f} ms best"
              f" {statistics.median(worker.times) * 1e3:8.1f} ms median {worker.peak:8.1f} MiB")
    ours = workers[0]
    for other in workers[1:]:
        best = min(other.times) / min(ours.times)
        median = statistics.median(other.times) / statistics.median(ours.times)
        print(f"{other.name}: time ratio {best:.2f} best, {median:.2f} median;"
              f" memory ratio {ours.peak / other.peak:.2f}; {threads} threads")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--torch":
        torch_worker(int(sys.argv[2]), sys.argv[3] == "1")
    else:
        main()
