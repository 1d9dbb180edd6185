"""Draws calls that are wrong in one way, or odd, of each function, and writes them with what MLX says to them:

    python tests/python/make_wrong_calls.py [names]      # all functions, or some of them anew

An array of another rank, length or dtype, none or something else in its place; an axis that is not there, or twice; a
number out of range; an argument too many or too few. MLX runs in a process of its own, since some of these calls stop it
and some never end. The table is kept, so that the test needs no such process and what is wrong stays the same.
"""

import json
import pathlib
import random
import select
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

TABLE = pathlib.Path(__file__).parent / "data" / "wrong_calls.jsonl"
CALLS_OF_EACH, DRAWS, SECONDS = 14, 12, 4
# What was once wrong deserves more of them.
CALLS_OF = dict.fromkeys(("eye", "tri", "slice", "put_along_axis", "random.permutation"), 40)
DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64").split()
# A number here says how long something is: a large one would only take memory.
LENGTHS = {"shape", "num", "n", "m", "num_samples", "repeats", "reps", "s", "size", "sections", "pad_width"}


# ---- one wrong thing ----


def reshaped(r, a):
    import numpy as np
    from draw_calls import Operand

    data = a.data
    ways = [data[None], data[..., None], np.zeros((0,) + data.shape[1:], data.dtype), np.concatenate([data, data], axis=0) if a.rank else data]
    if a.rank:
        ways += [data[0] if data.shape[0] else data.reshape(-1), data.reshape(-1), data.reshape(-1)[:1].reshape(()) if data.size else data[None],
                 np.concatenate([data, data[..., :1]], axis=-1)]  # fmt: skip
    return Operand(a.dtype, np.ascontiguousarray(r.choice(ways)))


def retyped(r, a):
    import numpy as np
    from draw_calls import Operand
    from op_values import wide

    dtype = r.choice([d for d in DTYPES if d != a.dtype])
    with np.errstate(all="ignore"):
        data = np.abs(a.data.real) if dtype.startswith("uint") else a.data.real
        kind = np.float32 if dtype in ("float16", "bfloat16") else wide(dtype)
        return Operand(dtype, data.astype(np.complex64 if dtype == "complex64" else kind))


def changed(r, value, key, rank):
    """Something else in place of an argument."""
    from draw_calls import Operand
    from draw_ops import Codes, DtypeName, Key

    if isinstance(value, (Operand, Codes)):
        if isinstance(value, Codes):
            return r.choice([None, 1.5, "text", Codes(value.operand, value.keywords, 1 - min(value.part, 1))])
        return r.choice([reshaped, reshaped, reshaped, retyped, retyped, lambda r, a: r.choice([None, "text", 2.5, 3, True, [1.0, 2.0]])])(r, value)
    if isinstance(value, DtypeName):
        return r.choice([*map(DtypeName, DTYPES), None, "text", 3])
    if isinstance(value, Key):
        return r.choice([None, 3, Operand("uint32", value_of([1, 2, 3], "uint32")), Operand("float32", value_of([1, 2], "float32"))])
    if isinstance(value, bool):
        return r.choice([not value, 2, None, "text"])
    if key.startswith("axis") or key in ("start_axis", "end_axis"):
        return r.choice([rank, -rank - 1, 100, -100, [0, 0], [0, -rank], [], [rank], None, 1.5, "text", -1, [-1, 0]])
    if isinstance(value, int):
        return r.choice([-1, -100, 0, 1.5, None, "text", [1]] + ([] if key in LENGTHS else [100, 2**40]))
    if isinstance(value, float):
        return r.choice([float("inf"), float("nan"), -1.0, 0.0, 3, None, "text"])
    if isinstance(value, str):
        return r.choice(["text", "", None, 3])
    if isinstance(value, (list, tuple)) and value:
        if any(isinstance(v, Operand) for v in value):
            at = r.randrange(len(value))
            return r.choice([[*value[:at], changed(r, value[at], key, rank), *value[at + 1:]], [], value[0]])
        numbers = [v for v in value]
        at = r.randrange(len(numbers))
        one = numbers[:at] + [r.choice([-1, -7, 0, 1.5, 30, "text"])] + numbers[at + 1:]
        return type(value)(r.choice([one, one, numbers[:-1], numbers + [1], numbers + numbers]))
    return r.choice([3, 1.5, "text", [1, 2], -1])


def value_of(values, dtype):
    import numpy as np

    return np.array(values, dtype)


def made_wrong(r, arguments, keywords):
    from draw_calls import Operand

    arguments, keywords = list(arguments), dict(keywords)
    rank = next((a.rank for a in arguments if isinstance(a, Operand)), 1)
    way = r.random()
    if way < 0.05 and arguments:
        arguments.pop()
    elif way < 0.08:
        keywords["nonsense"] = 1
    elif way < 0.10:
        arguments.append(None)
    elif keywords and (way < 0.5 or not arguments):
        key = r.choice(sorted(keywords))
        keywords[key] = changed(r, keywords[key], key, rank)
    elif arguments:
        at = r.randrange(len(arguments))
        # The second and third number of swapaxes, expand_dims, take and the like are axes.
        key = "axis" if isinstance(arguments[at], int) and at and r.random() < 0.5 else "number"
        arguments[at] = changed(r, arguments[at], key, rank)
    return arguments, keywords


# ---- MLX in a process of its own ----


def worker():
    import os
    import warnings

    import mlx.core as mx
    import mlx.nn
    from wrong_calls import call, described, function_of

    warnings.simplefilter("ignore")
    mx.disable_compile()  # it would call a compiler for each function
    verdicts = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # MLX prints, now and then
    with mx.stream(mx.cpu):
        for line in sys.stdin:
            name, arguments, keywords = json.loads(line)
            function = function_of(mlx.nn, name[3:]) if name.startswith("nn.") else function_of(mx, name)
            try:
                verdict = [described(mx, part) for part in call(mx, function, arguments, keywords)]
            except Exception as error:  # noqa: BLE001, whatever MLX raises is its verdict
                verdict = type(error).__name__
            print(json.dumps(verdict), file=verdicts, flush=True)


class Oracle:
    def __init__(self):
        self.process = None

    def start(self):
        command = [sys.executable, __file__, "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def asks(self, case):
        """What MLX raises or gives; "stops" or "never ends"."""
        fresh = self.process is None
        if fresh:
            self.start()
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS + (30 if fresh else 0))
        line = self.process.stdout.readline() if ready else None
        if line:
            return json.loads(line)
        self.process.kill()
        self.process.wait()
        self.process = None
        return "stops" if ready else "never ends"


# ---- the table ----


def drawn(name):
    """Valid calls, always the same ones."""
    import draw_ops
    from draw_calls import Draw
    from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
    from wrong_more import MORE

    found = []
    draw = {**{n: f for n, (f, _) in draw_ops.CALLS.items()}, **MORE}[name]

    @seed(1)
    @settings(max_examples=DRAWS, database=None, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data):
        found.append(draw(Draw(data), name))

    collect()
    return found


def cases_of(name):
    from wrong_calls import Missing, encoded

    r = random.Random(name)
    valid = drawn(name)
    cases = {}
    most = CALLS_OF.get(name, CALLS_OF_EACH)
    for attempt in range(20 * most):
        if len(cases) == most:
            break
        arguments, keywords = made_wrong(r, *valid[attempt % len(valid)])
        exact = name.startswith("linalg.") or name in ("searchsorted", "segmented_mm")
        try:
            case = [name, encoded(arguments, exact), {key: encoded(v, exact) for key, v in keywords.items()}]
            cases[json.dumps(case)] = case
        except (Missing, ValueError, OverflowError):
            continue
    return list(cases.values())


def main():
    import draw_ops
    from wrong_more import MORE

    names = [*draw_ops.CALLS, *MORE]
    some = sys.argv[1:]
    kept = [line for line in TABLE.read_text().splitlines() if json.loads(line)[0] not in some] if some else []
    oracle, lines = Oracle(), []
    for name in some or names:
        for case in cases_of(name):
            lines.append(json.dumps([*case, oracle.asks(case)], separators=(",", ":")))
        print(name, file=sys.stderr)
    order = {name: at for at, name in enumerate(names)}
    lines = sorted(kept + lines, key=lambda line: order[json.loads(line)[0]])
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n")
    if oracle.process:
        oracle.process.stdin.close()
        oracle.process.wait()


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["--worker"] else main()
