"""Random programs of nested control flow: the emulator's lanes give what Python gives."""

import importlib.util
import random

import numpy
import pytest
from kernel_front import on_device


class Writer:
    """Writes the statements of a function of a and b; every loop ends, and values stay small."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def choose(self, *choices):
        return self.random.choice(choices)

    def expression(self, depth=0):
        kind = self.random.randrange(9 if depth < 2 else 3)
        inner = [self.expression(depth + 1) for _ in range(2)] if kind > 2 else []
        if kind < 2:
            return self.choose(*"abcd")
        if kind == 2:
            return str(self.random.randrange(-3, 6))
        if kind < 5:
            return f"({inner[0]} {self.choose(*'+-*')} {inner[1]}) % 97"
        if kind == 5:
            return f"({inner[0]} if {self.condition(depth + 1)} else {inner[1]})"
        if kind == 6:
            return f"{self.choose('min', 'max')}({inner[0]}, {inner[1]})"
        return f"abs({inner[0]})" if kind == 7 else f"({inner[0]}) // {self.choose(2, 3, 7)}"

    def condition(self, depth=0):
        kind = self.random.randrange(5 if depth < 3 else 1)
        if kind < 2:
            return f"{self.expression(2)} {self.choose('<', '>', '==', '!=', '<=', '>=')} {self.expression(2)}"
        if kind == 2:
            return f"({self.condition(depth + 1)} {self.choose('and', 'or')} {self.condition(depth + 1)})"
        if kind == 3:
            return f"not ({self.condition(depth + 1)})"
        return f"-9 < {self.expression(2)} <= {self.expression(2)}"

    def block(self, pad, depth):
        return [line for _ in range(self.random.randrange(1, 4)) for line in self.statement(pad, depth)]

    def statement(self, pad, depth):
        kind = self.random.randrange(10 if depth < 3 else 5)
        if kind < 3:
            return [f"{pad}{self.choose(*'abcd')} = {self.expression()}"]
        if kind == 3:
            return [f"{pad}{self.choose(*'abcd')} {self.choose('+=', '-=')} {self.expression(1)} % 50"]
        if kind == 4 and self.random.random() < 0.6:
            place, value = self.random.randrange(2), self.expression(1)
            target = self.choose(
                f"twin[{place}]", f'box["x"][{place}]', f"inner[{place}]", 'box["y"]', f"pair[{place}]"
            )
            return [f"{pad}{target} {self.choose('=', '+=')} {value} % 29"]
        if kind == 4:
            return [f"{pad}a, pair[{self.random.randrange(2)}] = c, {self.expression(1)} % 31"]
        inside = pad + "    "
        if kind < 8:
            other = [f"{pad}else:", *self.block(inside, depth + 1)] if self.random.random() < 0.6 else []
            return [f"{pad}if {self.condition()}:", *self.block(inside, depth + 1), *other]
        self.count += 1
        index, name = f"i{self.count}", f"w{self.count}"
        body = self.block(inside, depth + 1)
        if kind == 8:
            bound = self.choose("abs(a) % 4", "abs(d) % 5", "3")
            return [f"{pad}for {index} in range({bound}):", *body, f"{inside}b += {index}"]
        return [f"{pad}{name} = abs(c) % 4", f"{pad}while {name} > 0:", *body, f"{inside}{name} -= 1"]

    def function(self, name):
        result = "(a % 1009 * 31 + b % 997 + c % 991 * 7 + d % 983 + pair[0] + 3 * pair[1] + 5 * twin[0] + 7 * twin[1])"
        result = f'({result} + 11 * inner[0] + 13 * inner[1] + 17 * box["x"][0] + 19 * box["y"]) % 30011'
        head = [f"def {name}(a, b):", "    c, d, pair = a + 1, 2, [a % 7, 3]"]
        head += ["    twin, box = pair, {'x': [b % 5, 1], 'y': 4}", "    inner = box['x']"]
        return "\n".join([*head, *self.block("    ", 0), f"    return {result}"])


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "programs.py"
    path.write_text("\n\n\n".join(Writer(seed).function(f"f{seed}") for seed in range(60)) + "\n")
    spec = importlib.util.spec_from_file_location("programs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(programs, seed):
    function = getattr(programs, f"f{seed}")
    a, b = numpy.arange(-16, 16) * 3 // 2, numpy.roll(numpy.arange(-16, 16), 5)
    assert on_device(function, a, b).tolist() == [function(int(x), int(y)) for x, y in zip(a, b)]
