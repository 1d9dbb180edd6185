"""The CuTe target and `tiki.cute.wrap` in Python.

Launches run on the driver's stand-in, whose memory is the processor's, with functions of Python in the place of what
NVIDIA's package compiles. With TIKI_CUTE_PYTHON (`make test-cute`) the package itself compiles, as far as that goes without
a card."""

import os
import re
import subprocess
import sys
import textwrap

import pytest
from patience import PATIENCE

import tiki as tk
import tiki.cute
from tiki import kernels
from tiki.kernels import library
from tiki.kernels.cute.lib.math import Float32, TensorSpec, cute, thread_idx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STANDIN = os.path.join(os.environ.get("TIKI_BUILD", os.path.join(ROOT, "build")), "lib", "libstandin_cuda.so")
PACKAGE = os.environ.get("TIKI_CUTE_PYTHON", "")

needs_standin = pytest.mark.skipif(not os.path.exists(STANDIN), reason="the stand-in of the driver is not built")
needs_package = pytest.mark.skipif(not PACKAGE, reason="no nvidia-cutlass-dsl: `make test-cute` installs it")

FILL = """
tiki kernel 1
kernel fill(%y: ptr<f32, global> write align 4 size 32)
form thread
grid (1, 1, 1)
block (32, 1, 1)
{
  %t = thread_index.x : i32
  %p = offset %y, %t : ptr<f32, global>
  store %p, f32(2)
}
"""


def run(program, python=sys.executable, **environment):
    done = subprocess.run(
        [python, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- the target ----


def test_an_explicit_target_never_falls_back():
    kernel = kernels.parse(FILL)
    with tk.stream(tk.emulator):
        assert tk.launch(kernel, tk.output((32,), tk.float32)).tolist() == [2.0] * 32
        assert tk.launch(kernel, tk.output((32,), tk.float32), target="ptx").tolist() == [2.0] * 32
        refused = tk.launch(kernel, tk.output((32,), tk.float32), target="cute")
        with pytest.raises(NotImplementedError, match="target cute builds for GPUs, the emulator"):
            tk.eval(refused)
        assert tk.launch(kernel, tk.output((32,), tk.float32)).tolist() == [2.0] * 32
    with pytest.raises(ValueError, match='target "metal", expected ptx or cute'):
        tk.launch(kernel, tk.output((32,), tk.float32), target="metal")
    with pytest.raises(NotImplementedError, match="target cute"):
        tk.eval(library.softmax(tk.ones((4, 8)).to_device(tk.emulator), target="cute"))
    assert library.softmax(tk.ones((4, 8)).to_device(tk.emulator), target="ptx")[0, 0].item() == 0.125


def test_rules_keep_the_target():
    x = tk.ones((4, 8)).to_device(tk.emulator)
    with pytest.raises(NotImplementedError, match="target cute"):
        tk.eval(tk.grad(lambda a: tk.sum(library.softmax(a, target="cute")))(x))

    @tk.kernel_op(target="cute")
    def fill(a):
        return tk.launch(kernels.parse(FILL), tk.output(a.shape, a.dtype))

    with tk.stream(tk.emulator):
        with pytest.raises(NotImplementedError, match="target cute"):
            tk.eval(fill(tk.ones((32,))))
        assert tk.launch(kernels.parse(FILL), tk.output((32,), tk.float32))[0].item() == 2.0


def test_build():
    kernel = kernels.parse(FILL)
    made = kernel.build("cute")
    assert "cuda.kernel @fill" in made["text"] and made["binary"] is None and made["lowered"] is None
    with pytest.raises(KeyError, match='expected ptx or cute'):
        kernel.build("metal")


@cute.jit
def doubled(value):
    value = value + value
    return value


@cute.kernel
def rebound_kernel(x, y):
    """Names that come again: carried by loops, and of functions that are called twice."""
    i = thread_idx()[0]
    total = Float32(0)
    for j in range(i, 100, 32):
        total += x[j]
    value = doubled(total)
    if i < 7:
        value = doubled(value)
    y[i] = value


def test_names_that_come_again():
    spec = TensorSpec("float32", 100)
    text = rebound_kernel.lower(spec, spec, grid=1, block=32).build("sm_90a", "cute").text
    values = re.findall(r"^ *(%[\w$]+)(?:, (%[\w$]+))* = ", text, re.M)
    names = [name for found in values for name in found if name] + re.findall(r"[(,] ?(%\w+) = %", text)
    assert len(names) == len(set(names)) and "%total" in names and "%total_1" in names


@needs_package
def test_kernels_of_the_examples():
    out = run(
        """
        import importlib.util, tiki as tk
        from tiki.kernels.cute.lib.math import cute

        def example(name):
            spec = importlib.util.spec_from_file_location(name, f"examples/python/kernels_{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module

        rows, gemm, elementwise = map(example, ("rows", "gemm", "elementwise"))
        x, w, a, b = tk.ones((37, 700)), tk.ones((700,)), tk.ones((100, 136), tk.float16), tk.ones((72, 136), tk.float16)
        calls = [(rows.row_sum, x), (rows.softmax, x), (rows.norm, x, w, 1e-5), (elementwise.add, w, w),
                 (elementwise.bias_gelu, x, w), (gemm.matmul, a, b), (gemm.matmul_sm90, a, b)]
        for function, *arguments in calls:
            for kernel in cute.compile(function, *arguments).kernels:
                by = [kernel.build("sm_90a", target, binary=True).binary for target in ("ptx", "cute")]
                print(function.__name__, *(one[:4] == b"\\x7fELF" for one in by))
        """
    )
    assert out.count("True True") == 7 and "False" not in out


@needs_package
def test_build_with_stages():
    out = run(
        """
        from tiki import kernels
        made = kernels.parse(open("examples/kernels/vector_add.tk").read()).build("cute", "sm_90a", True, False, True)
        print(made["binary"][:4], ".visible .entry vector_add" in made["ptx"], "kernels_binary" in made["lowered"])
        """
    )
    assert out == "b'\\x7fELF' True True\n"


@needs_package
def test_the_running_python_is_tried():
    program = """
        from tiki import kernels
        print(len(kernels.parse(open("examples/kernels/vector_add.tk").read()).build("cute", "sm_80", True)["binary"]) > 99)
        """
    assert run(program, PACKAGE, TIKI_CUTE_PYTHON="") == "True\n"


# ---- the command ----

TIKI = os.environ.get("TIKI_BIN", os.path.join(ROOT, "build", "bin", "tiki"))
needs_command = pytest.mark.skipif(not os.path.exists(TIKI), reason="the command is not built")
KERNEL = os.path.join("examples", "kernels", "vector_add.tk")


def command(*words, **environment):
    done = subprocess.run(
        [TIKI, *words], capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_command
def test_the_command_without_a_compiler():
    assert "cuda.kernel @vector_add" in command("kernel", "build", KERNEL, "--target", "cute", "--emit", "mlir")
    said = command("info", TIKI_CUTE_PYTHON="/nowhere/python")
    assert "cute       off: no CuTe compiler" in said
    assert "/nowhere/python -m pip install 'nvidia-cutlass-dsl==4.8.*'" in said


@needs_command
@needs_package
def test_the_command_gives_every_stage(tmp_path):
    def emit(what, *more):
        return command("kernel", "build", KERNEL, "--target", "cute", "--emit", what, *more)

    assert "cuda.kernel @vector_add" in emit("mlir")
    assert "kernels_binary" in emit("lowered")
    assert ".visible .entry vector_add" in emit("ptx")
    assert "registers" in emit("report")
    emit("cubin", "-o", str(tmp_path / "k.cubin"))
    assert (tmp_path / "k.cubin").read_bytes()[:4] == b"\x7fELF"
    assert f"cute       nvidia-cutlass-dsl 4.8.1 of {PACKAGE}\n" in command("info")


# ---- functions of the DSL ----

WRAP = """
    import ctypes, os, sys
    import tiki as tk, tiki.cute

    driver = ctypes.CDLL(os.environ["TIKI_CUDA_DRIVER"])

    compiled = []

    class Stand:
        def __call__(self, stream, values):
            assert stream != 0 and driver.cuStreamSynchronize(ctypes.c_void_p(stream)) == 0  # this kernel runs at once
            floats = lambda value: (ctypes.c_float * 6).from_address(value.memory.value)
            for i in range(6):
                floats(values[1])[i] = floats(values[0])[i] * values[2]

    def compile(function, values, arch, stages):
        compiled.append((arch, [v.key() if hasattr(v, "key") else v for v in values]))
        return Stand()

    tiki.cute._compile = compile

    def scale(x, y, factor, stream):
        "The function of the package."

    op = tiki.cute.wrap(scale, outputs={"y": "x"}, batching="leading")

    @op.vjp
    def scale_vjp(primals, cotangents, outputs):
        return op(cotangents, primals[1]), None

    there = lambda values: tk.array(values, dtype=tk.float32).to_device(tk.gpu)
"""


@needs_standin
def test_launches_on_the_stream_and_the_buffers():
    out = run(
        WRAP
        + """
    x = there([1, 2, 3, 4, 5, 6])
    y = op(x, 3.0)
    assert y.device == tk.gpu and y.tolist() == [3, 6, 9, 12, 15, 18]
    assert op(y, 0.5).tolist() == [1.5, 3, 4.5, 6, 7.5, 9]
    assert len(compiled) == 1, "a number is no part of the specialisation"
    assert compiled[0] == ("sm_90a", [("float32", (6,)), ("float32", (6,)), 3.0])
    op(there([[1, 2, 3], [4, 5, 6]]), 1.0).tolist()
    assert len(compiled) == 2
    (dx,) = tk.vjp(lambda a: op(a, 4.0), [x], [x])[1]
    assert dx.tolist() == [4, 8, 12, 16, 20, 24]
    assert op.raw is scale and op.__doc__ == "The function of the package." and "scale" in repr(op)
    assert "torch" not in sys.modules and "cutlass" not in sys.modules
    print("well")
    """,
        TIKI_CUDA_DRIVER=STANDIN,
    )
    assert out == "well\n"


@needs_standin
def test_errors_of_launches():
    out = run(
        WRAP
        + """
    def fails(stream, values):
        raise RuntimeError("the driver says no")

    tiki.cute._compile = lambda *what: fails
    lazy = op(there([1, 2, 3, 4, 5, 6]), 3.0)
    for _ in range(2):
        try:
            lazy.tolist()
        except RuntimeError as error:
            print(error)
    empty = op(tk.zeros((0,)).to_device(tk.gpu), 3.0)
    print(empty.shape, empty.tolist())
    try:
        tk.eval(tk.jvp(lambda a: op(a, 3.0), [there([1.0])], [there([1.0])]))
    except NotImplementedError as error:
        print(error)
    """,
        TIKI_CUDA_DRIVER=STANDIN,
    )
    assert out.splitlines()[:3] == ["the driver says no"] * 2 + ["(0,) []"]
    assert "scale has no jvp" in out


def test_refusals():
    def function(x, y, stream):
        """Nothing."""

    op = tiki.cute.wrap(outputs={"y": "x"})(function)
    with pytest.raises(NotImplementedError, match=r"function runs on GPUs, x is on Device\(cpu, 0\)"):
        op(tk.ones((3,)))
    with pytest.raises(TypeError, match="without an array"):
        tiki.cute.wrap(function, outputs={"y": lambda x: tk.output((1,), tk.float32)})(3)
    with pytest.raises(ValueError, match="outputs are"):
        tiki.cute.wrap(function, outputs={"z": "x"})
    with pytest.raises(ValueError, match="last parameter is to be the stream"):
        tiki.cute.wrap(lambda x, y: None, outputs={"y": "x"})
    with pytest.raises(TypeError, match="expected tiki.output"):
        tiki.cute.wrap(function, outputs={"y": lambda x: 3})(tk.ones((3,)))
    with pytest.raises(NotImplementedError, match="no tensors of complex64"):
        op(tk.ones((3,), dtype=tk.complex64))


def test_without_the_package():
    try:
        import cutlass  # noqa: F401
    except ImportError:
        with pytest.raises(NotImplementedError, match="pip install 'nvidia-cutlass-dsl"):
            tiki.cute.wrap(lambda x, y, stream: None, outputs={"y": "x"}).compile(tk.ones((3,)))


@needs_package
def test_examples_compile():
    for name, functions in (("05_cute_elementwise.py", "softsign"), ("06_cute_rms_norm.py", "rms_norm")):
        path = os.path.join(ROOT, "examples", "python", name)
        done = subprocess.run([PACKAGE, path], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert f"{functions}: " in done.stdout and f"{functions}_backward: " in done.stdout
        assert "bytes for sm_90a" in done.stdout


@needs_package
def test_the_package_goes_as_far_as_the_driver(tmp_path):
    """Compile-time values, the compiled function called with addresses; without a card the driver is what is missing."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys
            import tiki as tk, tiki.cute
            import cutlass, cutlass.cute as cute
            from cuda.bindings.driver import CUstream

            @cute.kernel
            def kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, threads: cutlass.Constexpr):
                i = cute.arch.block_idx()[0] * threads + cute.arch.thread_idx()[0]
                if i < cute.size(x):
                    y[i] = (x[i] * factor).to(y.element_type)

            @tiki.cute.wrap(outputs={"y": "x"})
            @cute.jit
            def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, threads: cutlass.Constexpr, stream: CUstream):
                kernel(x, y, factor, threads).launch(grid=[cute.ceil_div(cute.size(x), threads), 1, 1],
                                                     block=[threads, 1, 1], stream=stream)

            made = scale.compile(tk.output((1000,), tk.bfloat16), 2.0, 64)
            print(made.cubin[:4], ".reqntid 64" in made.ptx, "torch" in sys.modules)
            values = scale._values((tk.output((1000,), tk.float32), 2.0, 64))[0]
            compiled = tiki.cute._compile(scale.raw, values, "sm_90a", False)
            try:
                compiled(0, [tiki.cute._Address(256), tiki.cute._Address(512), 3.0])
            except Exception as error:
                print(type(error).__name__, "InsufficientDriver" in str(error))
            """
        )
    )
    done = subprocess.run(
        [PACKAGE, str(program)], capture_output=True, text=True, cwd=ROOT, env=os.environ | {"CUTE_DSL_ARCH": "sm_90a"}
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "b'\\x7fELF' True False"
    assert second.startswith("DSLCudaRuntimeError") or tk.is_available(tk.gpu)
