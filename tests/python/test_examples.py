"""The programs of examples/python run, in short form; the GPT's losses and weights are those of `tiki train`,
bit for bit."""

import glob
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tiki

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "examples", "python")


def example(name, *words):
    path = os.path.join(FOLDER, name)
    done = subprocess.run([sys.executable, path, *map(str, words)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_has_a_test():
    with open(__file__) as file:
        text = file.read()
    programs = {os.path.basename(path) for path in glob.glob(os.path.join(FOLDER, "[!_]*.py"))}
    assert programs <= set(
        re.findall(r'"((?:\d\d|kernels)_\w+\.py)"', text)
    )


def test_readme(tmp_path):
    with open(os.path.join(ROOT, "README.md")) as file:
        (program,) = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    (tmp_path / "first.py").write_text(program)
    loss = re.search(r"array\((\S+), dtype=float32\)", example(tmp_path / "first.py"))
    assert float(loss[1]) < 0.01


def test_linear_regression():
    out = example("01_linear_regression.py", "--steps", 150)
    assert float(re.search(r"largest error of a weight ([\d.]+)", out)[1]) < 0.01


def test_classifier(tmp_path):
    out = example("02_classifier.py", "--steps", 30, "--out", tmp_path)
    assert float(re.search(r"([\d.]+) % of new pictures", out)[1]) > 80
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 30
    assert glob.glob(str(tmp_path / "events.out.tfevents.*"))


def test_cute_dsl():
    """Without the package they say so; test_cute.py runs them with it."""
    for name in ("05_cute_elementwise.py", "06_cute_rms_norm.py"):
        assert re.search("skipped: .*pip install|compiled only|the loss is", example(name))


def test_tour():
    assert example("04_tour.py").endswith("the tour is over\n")


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_kernels(device):
    out = example("kernels_elementwise.py", "--device", device, "--text")
    assert "add: equal bits True" in out and "kernel add_kernel(" in out
    assert [float(error) < 0.004 for error in re.findall(r"gelu of .*error ([\d.]+)", out)] == [True, True]
    for columns in (1, 300):
        out = example("kernels_rows.py", "--device", device, "--rows", 3, "--columns", columns)
        errors = re.findall(r"[\d.]+e[-+]\d+", out)
        assert len(errors) == 5 and all(float(error) < 1e-4 for error in errors), out
    out = example("kernels_gemm.py", "--device", device)
    errors = re.findall(r"largest error (\S+)", out)
    assert len(errors) == 2 and all(float(error) < 1e-3 for error in errors)
    assert out.count("0 findings in three interleavings") == 2


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folders of one run by the command and one by the example."""
    folder = tmp_path_factory.mktemp("gpt")
    sizes = {"layers": 2, "heads": 2, "dim": 32, "context": 32, "batch": 4, "steps": 25, "seed": 3, "warmup": 10}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    data = ["--data", "README.md", "--eval-data", "LICENSE", "--model", "gpt2", "--lr", "1e-3"]
    command = [os.environ["TIKI_BIN"], "train", *data, *words, "--out", str(folder / "command")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    example("03_gpt.py", "README.md", *words, "--rate", "1e-3", "--out", folder / "python")
    return folder / "command", folder / "python"


def records(folder, name):
    """A column of log.jsonl as float32, which is what it was before it was printed."""
    with open(folder / "log.jsonl") as file:
        lines = [json.loads(line) for line in file]
    return [np.float32(line[name]) for line in lines if name in line]


def test_the_losses_are_those_of_the_command(runs):
    command, python = runs
    for name in ("loss", "norm", "lr"):
        assert len(records(python, name)) == 25
        assert records(command, name) == records(python, name), name
    assert records(python, "loss")[-1] < 0.9 * records(python, "loss")[0]


def test_the_weights_are_those_of_the_command(runs):
    command, python = (tiki.load(str(folder / "model.safetensors")) for folder in runs)
    assert command.keys() == python.keys()
    for name in command:
        assert tiki.array_equal(command[name], python[name]).item(), name
