"""What a launch costs the host from Python on a card: chains of 200 launches of a vector add, put into the graph and
evaluated, the fastest of 100, in microseconds a launch: what the caller spends on nodes and on handing them over, and the
time until the device is done, in which a thread launches. `gpu_runtime` measures the bare launch from C in the same
minute."""

import time

import tiki as tk
from tiki import kernels

TEXT = """
tiki kernel 1
kernel vector_add(%x: ptr<f32, global> read align 4 size %n, %y: ptr<f32, global> read align 4 size %n,
  %z: ptr<f32, global> write align 4 size %n, %n: i32)
form thread require %n >= 0 grid (ceildiv(%n, 256), 1, 1) block (256, 1, 1)
{
  %t = thread_index.x : i32
  %b = block_index.x : i32
  %f = mul %b, i32(256) : i32
  %i = add %f, %t : i32
  %in = icmp.slt %i, %n : i1
  if %in {
    %px = offset %x, %i : ptr<f32, global>
    %py = offset %y, %i : ptr<f32, global>
    %pz = offset %z, %i : ptr<f32, global>
    %a = load %px : f32
    %c = load %py : f32
    %s = add %a, %c : f32
    store %pz, %s
  }
}
"""
N, CHAIN, TURNS = 1000, 200, 100
kernel = kernels.parse(TEXT, "vector_add")
x, y = tk.ones((N,)).to_device(tk.gpu), tk.ones((N,)).to_device(tk.gpu)
tk.eval(x, y)


@tk.kernel_op
def add(a, b):
    return tk.launch(kernel, a, b, tk.output((N,), tk.float32), N)


def chain(step):
    z, begin = x, time.perf_counter()
    for _ in range(CHAIN):
        z = step(z, y)
    built = time.perf_counter()
    tk.async_eval(z)
    done = time.perf_counter()
    tk.eval(z)
    return built - begin, done - built, time.perf_counter() - done


def report(what, step):
    chain(step)
    turns = [chain(step) for _ in range(TURNS)]
    build, run, wait = (min(turn[i] for turn in turns) * 1e6 / CHAIN for i in range(3))
    all_of_it = min(map(sum, turns)) * 1e6 / CHAIN
    print(f"{what:14} build {build:6.2f} us  evaluate {run:6.2f} us  until done {wait:6.2f} us  together {all_of_it:6.2f} us", flush=True)


report("tk.launch", lambda a, b: tk.launch(kernel, a, b, tk.output((N,), tk.float32), N))
report("a kernel_op", add)
report("x + y", lambda a, b: a + b)
