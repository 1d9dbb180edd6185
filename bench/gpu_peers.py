"""PyTorch's and cuBLAS's kernels on a card, measured as bench/gpu_kernels.c does: buffer sets that
take turns over 384 MiB, one CUDA graph over all sets, the median of five rounds that alternate with
a copy. Prints lines of JSON; needs torch with CUDA."""

import json
import statistics

import torch
import torch.nn.functional as F

ROTATED = 384 << 20
COPY = 1 << 30


def timed(step, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count


def measure(name, dtype, shape, make, run, flops=0):
    first = make()
    total = sum(t.numel() * t.element_size() for t in first)
    with torch.no_grad():
        result = run(*first)
    results = result if isinstance(result, tuple) else (result,)
    total += sum(t.numel() * t.element_size() for t in results)
    sets = [first] + [make() for _ in range(min(256, max(2, ROTATED // total + 1)) - 1)]
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for s in sets:
            run(*s)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        for s in sets:
            kept = run(*s)
    graph.replay()
    torch.cuda.synchronize()
    repeats = max(1, min(1000, int(0.02 / max(1e-6, timed(graph.replay, 2)))))
    times, copies = [], []
    for _ in range(5):
        times.append(timed(graph.replay, repeats) / len(sets))
        copies.append(timed(lambda: target.copy_(source), 8))
    seconds, copy = statistics.median(times), 2 * COPY / statistics.median(copies)
    row = {"kernel": "torch " + name, "dtype": dtype, "shape": shape, "us": round(1e6 * seconds, 3),
           "TBps": round(1e-12 * total / seconds, 3), "copy_TBps": round(1e-12 * copy, 3),
           "share": round(total / seconds / copy, 3), "sets": len(sets)}
    if flops:
        row["TFLOPs"] = round(1e-12 * flops / seconds, 1)
    print(json.dumps(row), flush=True)
    del graph, kept


def rand(dtype, *shape):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def main():
    global source, target
    print(f"# torch {torch.__version__}, {torch.cuda.get_device_name()}")
    source = torch.zeros(COPY // 4, device="cuda")
    target = torch.empty_like(source)
    for dtype, name, rows, columns in ((torch.float16, "f16", 32768, 4096), (torch.float32, "f32", 2048, 4096),
                                       (torch.float32, "f32", 8192, 64), (torch.float32, "f32", 8192, 16)):
        weight = rand(dtype, columns)
        measure("rms_norm", name, [rows, columns], lambda: (rand(dtype, rows, columns),),
                lambda x: F.rms_norm(x, (columns,), weight, 1e-5))
    measure("transpose", "f32", [16384, 16384], lambda: (rand(torch.float32, 16384, 16384),),
            lambda x: x.t().contiguous())
    for columns in (256, 1024, 4096, 32768, 131072):
        rows = (1 << 27) // columns
        measure("softmax", "bf16", [rows, columns], lambda: (rand(torch.bfloat16, rows, columns),),
                lambda x: torch.softmax(x, -1))
        measure("softmax_backward", "bf16", [rows, columns],
                lambda: (rand(torch.bfloat16, rows, columns), rand(torch.bfloat16, rows, columns)),
                lambda y, dy: torch._softmax_backward_data(dy, y, -1, torch.bfloat16))
    measure("column_sum", "f32", [32768, 4096], lambda: (rand(torch.float32, 32768, 4096),), lambda x: x.sum(0))
    measure("column_sum", "bf16", [32768, 4096], lambda: (rand(torch.bfloat16, 32768, 4096),), lambda x: x.sum(0))
    for n in (2048, 4096, 8192):
        measure("matmul", "bf16", [n, n, n], lambda: (rand(torch.bfloat16, n, n), rand(torch.bfloat16, n, n)),
                torch.matmul, 2 * n**3)


main()
