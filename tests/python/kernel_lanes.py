"""A second reading of kernel texts, for tiles: one block in lockstep, in NumPy, with ldmatrix and mma.sync.

It knows what the tests of tiles use: loops whose bounds are the same in all threads and carry nothing, no branches.
Values are arrays over the threads, pointers pairs of a memory's name and offsets, register tensors arrays
(thread, element). Elements that nobody wrote are NaN. Maps of lanes to matrices follow the PTX manual.
"""

import re

import numpy

DTYPES = {"f16": numpy.float16, "f32": numpy.float32, "i32": numpy.int32, "i1": bool}
BINARY = {
    "add": numpy.add,
    "sub": numpy.subtract,
    "mul": numpy.multiply,
    "and": numpy.bitwise_and,
    "or": numpy.bitwise_or,
    "xor": numpy.bitwise_xor,
    "shl": numpy.left_shift,
    "sshr": numpy.right_shift,
    "icmp.slt": numpy.less,
}
LINE = re.compile(r"(?:(%\w+) = )?([\w.]+)(.*?)(?: : (.+))?$")
LOOP = re.compile(r"for (%\w+) = (\S+) to (\S+) step (\S+) \{$")


class Block:
    """Runs a text for one block. Arguments by name: arrays (written in place) or numbers."""

    def __init__(self, text, arguments, block, threads):
        self.lines = [line.strip() for line in text.split("\n{\n", 1)[1].split("\n")]
        self.threads = threads
        self.block = block
        self.memory = {}
        self.values = {}
        for name, value in arguments.items():
            if isinstance(value, numpy.ndarray):
                self.memory[name] = value.reshape(-1)
                self.values["%" + name] = (name, numpy.zeros(threads, int))
            else:
                self.values["%" + name] = self.full(value, "i32" if isinstance(value, int) else "f32")
        self.run(0, self.end_of(0))

    def full(self, value, dtype):
        return numpy.full(self.threads, value, DTYPES[dtype])

    def end_of(self, at):
        """The line that closes the region which begins at a line."""
        depth = 1
        while True:
            depth += self.lines[at].endswith("{") - self.lines[at].startswith("}")
            if depth == 0:
                return at
            at += 1

    def value(self, word):
        if word.startswith("%"):
            return self.values[word]
        dtype, number = re.match(r"(\w+)\((.*)\)", word).groups()
        return self.full(float(number) if dtype[0] == "f" else int(number), dtype)

    def run(self, at, end):
        while at < end:
            loop = LOOP.match(self.lines[at])
            if loop:
                first, last, step = (int(self.value(word)[0]) for word in loop.groups()[1:])
                close = self.end_of(at + 1)
                for index in range(first, last, step):
                    self.values[loop[1]] = self.full(index, "i32")
                    self.run(at + 1, close)
                at = close
            elif self.lines[at]:
                self.operation(self.lines[at])
            at += 1

    def operation(self, line):
        result, name, rest, type_ = LINE.match(line).groups()
        attrs = {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", rest)}
        words = [word for word in re.sub(r"\[.*\]", "", rest).replace(" ", "").split(",") if word]
        condition = next((self.value(word[3:]) for word in words if word.startswith("if=")), self.full(1, "i1"))
        operands = [word for word in words if "=" not in word]
        if name in BINARY:
            made = BINARY[name](*(self.value(word) for word in operands))
        else:
            method = getattr(self, "of_" + name.split(".")[0])
            made = method(operands, attrs, type_, condition=condition, name=name, result=result)
        if result:
            self.values[result] = made

    # ---- operations ----

    def of_thread_index(self, operands, attrs, type_, **more):
        return numpy.arange(self.threads, dtype=numpy.int32)

    def of_block_index(self, operands, attrs, type_, name, **more):
        return self.full(self.block["xyz".index(name[-1])], "i32")

    def of_shared(self, operands, attrs, type_, result, **more):
        self.memory[result] = numpy.full(1 << 14, numpy.nan, DTYPES[re.match(r"shared<(\w+)", type_)[1]])

    def of_address(self, operands, attrs, type_, **more):
        return operands[0], numpy.zeros(self.threads, int)

    def of_registers(self, operands, attrs, type_, **more):
        dtype, size = re.match(r"regs<(\w+), \"(\d+):1\"", type_).groups()
        return numpy.full((self.threads, int(size)), numpy.nan, DTYPES[dtype])

    def of_offset(self, operands, attrs, type_, **more):
        base, place = self.value(operands[0])
        return base, place + self.value(operands[1])

    def of_barrier(self, *unused, **more):
        return None

    def lanes(self, type_):
        return int(type_.split("x")[1]) if "x" in type_ else 1

    def of_load(self, operands, attrs, type_, condition, **more):
        base, place = self.value(operands[0])
        places = place[:, None] + numpy.arange(self.lanes(type_))
        assert (place[condition] % self.lanes(type_) == 0).all()
        memory = self.memory[base]
        found = memory[numpy.where(condition[:, None], places, 0)]
        found = numpy.where(condition[:, None], found, 0).astype(memory.dtype)
        return found if "x" in type_ else found[:, 0]

    def of_store(self, operands, attrs, type_, condition, **more):
        base, place = self.value(operands[0])
        values = self.value(operands[1]).reshape(self.threads, -1)
        assert (place[condition] % values.shape[1] == 0).all()
        self.memory[base][(place[:, None] + numpy.arange(values.shape[1]))[condition]] = values[condition]

    def of_get(self, operands, attrs, type_, **more):
        first = attrs.get("index", 0)
        found = self.values[operands[0]][:, first : first + self.lanes(type_)].copy()
        return found if "x" in type_ else found[:, 0]

    def of_set(self, operands, attrs, type_, **more):
        self.values[operands[0]][:, attrs.get("index", 0)] = self.value(operands[1])

    def of_convert(self, operands, attrs, type_, **more):
        return self.value(operands[0]).astype(DTYPES[type_.split("x")[0]])

    def of_extract(self, operands, attrs, type_, **more):
        return self.value(operands[0])[:, attrs.get("index", 0)]

    def of_exp2_approx(self, operands, attrs, type_, **more):
        return numpy.exp2(self.value(operands[0]))

    def of_load_matrix(self, operands, attrs, type_, name, **more):
        target, (base, place) = self.values[operands[0]], self.value(operands[1])
        assert (place % 8 == 0).all()
        lane = numpy.arange(32)
        for warp in range(0, self.threads, 32):
            for i in range(attrs["count"]):
                rows = place[warp + 8 * i : warp + 8 * i + 8]
                matrix = self.memory[base][rows[:, None] + numpy.arange(8)]
                matrix = matrix.T if "transposed" in name else matrix
                for right in range(2):
                    held = matrix[lane // 4, lane % 4 * 2 + right]
                    target[warp : warp + 32, attrs.get("index", 0) + 2 * i + right] = held

    def of_mma(self, operands, attrs, type_, **more):
        d, a, b = (self.values[word] for word in operands[:3])
        row, pair = numpy.arange(32) // 4, numpy.arange(32) % 4 * 2
        for warp in range(0, self.threads, 32):
            own = slice(warp, warp + 32)
            left, right = numpy.zeros((16, 16), "f4"), numpy.zeros((16, 8), "f4")
            for i in range(8):
                left[row + 8 * (i // 2 % 2), pair + i % 2 + 8 * (i // 4)] = a[own, attrs.get("a_index", 0) + i]
            for i in range(4):
                right[pair + i % 2 + 8 * (i // 2), row] = b[own, attrs.get("b_index", 0) + i]
            product = left @ right
            for i in range(4):
                d[own, attrs.get("d_index", 0) + i] += product[row + 8 * (i // 2), pair + i % 2]
