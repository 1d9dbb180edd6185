"""The wheel in an environment that has it, what it depends on and pytest: `make test-wheel` runs this there."""

import os
import subprocess
import sys
import unittest

LIMIT_IMPORT = 0.100  # seconds, or what a slower machine makes of them


def fresh(code):
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


class Wheel(unittest.TestCase):
    def test_it_is_the_installed_one_with_types(self):
        import tiki

        folder = os.path.dirname(tiki.__file__)
        self.assertTrue(folder.startswith(sys.prefix), folder)
        for name in ("py.typed", "_core.pyi", "_core.abi3.so"):
            self.assertTrue(os.path.exists(os.path.join(folder, name)), name)

    def test_every_module_is_there(self):
        import importlib
        import pkgutil

        import tiki

        names = [module.name for module in pkgutil.walk_packages(tiki.__path__, "tiki.")]
        for name in names:
            importlib.import_module(name)
        for name in ("nn", "optimizers", "lm", "logging", "array_api.linalg", "layout", "kernels.cute.lib"):
            self.assertIn(f"tiki.{name}", names)

    def test_computing_and_files(self):
        import tempfile

        import tiki as tk
        from tiki import nn, optimizers

        tk.random.seed(0)
        model = nn.Linear(4, 1)
        optimizer = optimizers.SGD(learning_rate=0.1)
        x = tk.random.normal((64, 4))
        y = x @ tk.array([[1.0], [-2.0], [3.0], [0.5]])
        step = nn.value_and_grad(model, lambda a, b: ((model(a) - b) ** 2).mean())
        for _ in range(60):
            loss, gradients = step(x, y)
            optimizer.update(model, gradients)
        self.assertLess(loss.item(), 1e-3)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("weights.npz", "weights.safetensors"):
                path = os.path.join(folder, name)
                model.save_weights(path)
                self.assertEqual(tk.load(path)["weight"].tolist(), model.weight.tolist())

    def test_matrices_by_the_package_of_openblas(self):
        out = fresh(
            "import tiki as tk\n"
            "a = tk.random.normal((300, 300), key=tk.random.key(1))\n"
            "u, s, vt = tk.linalg.svd(a)\n"
            "assert tk.abs((u * s) @ vt - a).max().item() < 1e-3\n"
            "assert tk.abs(tk.fft.ifft(tk.fft.fft(a)).real - a).max().item() < 1e-5\n"
            "print(open('/proc/self/maps').read())"
        )
        loaded = {line.split()[-1] for line in out.splitlines() if ".so" in line}
        self.assertTrue(any("scipy_openblas32" in path for path in loaded), loaded)
        own = ("/lib/python", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "ld-linux", "libpython")
        foreign = [path for path in loaded if not path.startswith(sys.prefix) and not any(o in path for o in own)]
        self.assertEqual(foreign, [])

    def test_import_is_quick(self):
        def seconds(module):  # of the processor, so that a busy machine counts little
            code = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
            return min(float(fresh(code)) for _ in range(10))

        seconds("tiki")  # writes the bytecode
        self.assertLess(seconds("tiki"), max(LIMIT_IMPORT, 2.5 * seconds("asyncio")))

    def test_it_ends_cleanly_while_work_runs(self):
        fresh("import tiki as tk; a = tk.random.normal((800, 800)); tk.async_eval(a @ a @ a)")

