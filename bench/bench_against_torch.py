"""Tiki beside PyTorch on the same operands, threads and machine, in turns within one process.

Both sides are warm and write into memory that they have already: PyTorch through `out=` where the function has
it, Tiki through its caching allocator. A figure is the best of the rounds, which alternate; a short call is made
several times a round, after a pause in which the other side's threads stop spinning. The ratio is PyTorch's time over
Tiki's, so above 1 Tiki is faster. The C library is called through ctypes: one call builds and evaluates.
"""
import ctypes
import os
import sys
import time

import numpy
import torch

LIBRARY = os.path.join(os.environ.get("TIKI_BUILD", "build"), "lib", "libtiki.so")
FLOAT32 = 11  # tk_dtype
BURST = 20  # calls a round, where there are more calls than that
PAUSE = 0.005  # seconds


class Axes(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int64), ("items", ctypes.c_int64 * 16)]


class Scope(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("depth", ctypes.c_uint64)]


class Array(ctypes.Structure):
    _fields_ = [("node", ctypes.c_void_p)]


def axes(*values):
    return Axes(len(values), (ctypes.c_int64 * 16)(*values))


ALL = Axes(-1, (ctypes.c_int64 * 16)())
NONE = Array(None)


class Tiki:
    def __init__(self, threads):
        self.lib = ctypes.CDLL(LIBRARY)
        self.lib.tk_error_message.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p()
        self.check(self.lib.tk_context_create(None, ctypes.byref(self.context)))
        self.check(self.lib.tk_threads_set(threads))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.tk_error_message().decode())

    def op(self, name, *args):
        function = getattr(self.lib, "tk_" + name)
        function.restype = Array
        return function(*args)

    def array(self, values):
        values = numpy.ascontiguousarray(values, dtype=numpy.float32)
        data = values.ctypes.data_as(ctypes.c_void_p)
        result = self.op("from_data", self.context, data, axes(*values.shape), FLOAT32)
        self.check(self.lib.tk_eval(result))
        return result

    def time(self, make):
        """Seconds that evaluating takes. Building is outside: through ctypes it costs more than the op itself."""
        self.lib.tk_scope_open.restype = Scope
        scope = self.lib.tk_scope_open(self.context)
        result = make()
        begin = time.perf_counter()
        status = self.lib.tk_eval(result)
        took = time.perf_counter() - begin
        self.check(status)
        self.lib.tk_scope_close(scope)
        return took


def time_torch(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def best_of(calls, time_once):
    time.sleep(PAUSE)
    return min(time_once() for _ in range(calls))


def cases(tiki):
    generator = numpy.random.default_rng(0)

    def both(*shape):
        values = generator.standard_normal(shape, dtype=numpy.float32)
        return tiki.array(values), torch.from_numpy(values.copy())

    rows, columns = 4096, 4096  # 64 MiB
    a, ta = both(rows, columns)
    b, tb = both(rows, columns)
    out = torch.empty_like(ta)
    row_out, column_out = torch.empty(rows), torch.empty(columns)
    weight, tweight = both(columns)
    bias, tbias = both(columns)
    f = ctypes.c_double
    last, first = axes(-1), axes(0)
    yield "add, 64 MiB", lambda: tiki.op("add", a, b), lambda: torch.add(ta, tb, out=out), 10
    yield "multiply by a scalar, 64 MiB", lambda: tiki.op("multiply", a, tiki.op("scalar", tiki.context, f(1.5))), \
        lambda: torch.mul(ta, 1.5, out=out), 10
    yield "exp, 64 MiB", lambda: tiki.op("exp", a), lambda: torch.exp(ta, out=out), 10
    yield "tanh, 64 MiB", lambda: tiki.op("tanh", a), lambda: torch.tanh(ta, out=out), 10
    yield "sigmoid, 64 MiB", lambda: tiki.op("sigmoid", a), lambda: torch.sigmoid(ta, out=out), 10
    yield "softmax over rows, 64 MiB", lambda: tiki.op("softmax", a, last), lambda: torch.softmax(ta, -1, out=out), 10
    yield "layer norm, 64 MiB", lambda: tiki.op("layer_norm", a, weight, bias, f(1e-5)), \
        lambda: torch.native_layer_norm(ta, [columns], tweight, tbias, 1e-5), 10
    yield "sum over rows, 64 MiB", lambda: tiki.op("sum", a, last, False), lambda: torch.sum(ta, -1, out=row_out), 10
    yield "sum over columns, 64 MiB", lambda: tiki.op("sum", a, first, False), \
        lambda: torch.sum(ta, 0, out=column_out), 10
    for m, n, k, rounds in ((64, 64, 64, 2000), (256, 256, 64, 1000), (1024, 1024, 1024, 20), (4096, 4096, 4096, 3)):
        x, tx = both(m, k)
        y, ty = both(k, n)
        tz = torch.empty(m, n)
        yield f"matmul {m}x{k} by {k}x{n}", (lambda x=x, y=y: tiki.op("matmul", x, y)), \
            (lambda tx=tx, ty=ty, tz=tz: torch.matmul(tx, ty, out=tz)), rounds


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    tiki = Tiki(threads)
    print(f"PyTorch {torch.__version__}, {threads} threads; ratio above 1: Tiki is faster")
    for name, ours, theirs, rounds in cases(tiki):
        ours_time = theirs_time = float("inf")
        burst = BURST if rounds > BURST else 1
        for _ in range(rounds // burst):
            ours_time = min(ours_time, best_of(burst, lambda: tiki.time(ours)))
            theirs_time = min(theirs_time, best_of(burst, lambda: time_torch(theirs)))
        print(f"{name:36} tiki {ours_time * 1e3:9.3f} ms  torch {theirs_time * 1e3:9.3f} ms  "
              f"ratio {theirs_time / ours_time:5.2f}", flush=True)


if __name__ == "__main__":
    main()
