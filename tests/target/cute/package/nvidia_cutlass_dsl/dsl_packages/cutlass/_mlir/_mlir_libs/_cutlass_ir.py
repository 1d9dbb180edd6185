"""The part of NVIDIA's CuTe compiler that the worker calls, answering with what the real one answered once.

TIKI_FAKE_COMPILER says how it fails: `die`, by a signal; `once`, the same unless TIKI_FAKE_MARK is there, which it makes;
`hang`, in native code that Python cannot interrupt; `full`, no room on the disk; `no_ptx` and `half_ptx`, a disk that was
full when the PTX was written; `parse`, a text that it does not read, with a message about line 8; `fail`, one that it does
not compile. `count` notes the process in TIKI_FAKE_MARK; `slow` takes a little.
"""
import ctypes
import enum
import errno
import os
import re
import time
import types

RECORDED = os.path.join(os.path.dirname(__file__), *[".."] * 6, "recorded", "vector_add")


class ArtifactType(enum.IntEnum):
    PreCompiledMlir = 1
    CompiledMlir = 2
    Object = 4


class Abi(enum.IntEnum):
    Tbd = 0


def mode():
    return os.environ.get("TIKI_FAKE_COMPILER", "")


def mark():
    return os.environ["TIKI_FAKE_MARK"]


def recorded(suffix):
    with open(RECORDED + suffix, "rb") as file:
        return file.read()


def misbehave():
    if mode() == "die" or (mode() == "once" and not os.path.exists(mark())):
        if mode() == "once":
            open(mark(), "w").close()
        os.kill(os.getpid(), 11)
    if mode() == "hang":
        if "TIKI_FAKE_MARK" in os.environ:
            with open(mark(), "w") as file:
                file.write(str(os.getpid()))
        ctypes.PyDLL(None).sleep(600)  # with Python's lock held
    if mode() == "full":
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")
    if mode() == "fail":
        raise RuntimeError("it does not compile")
    if mode() in ("count", "slow"):
        time.sleep(0.002 if mode() == "count" else 0.2)
    if mode() == "count":
        with open(mark(), "a") as file:
            file.write(f"{os.getpid()}\n")


class PreCompiledMlirArtifact:
    @staticmethod
    def from_textual_form(text):
        if mode() == "parse":
            os.write(2, b'loc("-":8:7): error: no such thing\n')
            raise ValueError("Failed to parse MLIR module from text")
        return text


class Artifact:
    def __init__(self, data):
        self.data = data

    def get_data(self):
        return self.data

    get_bitcode = get_data


class CuteCompiler:
    def set_device_target(self, arch):
        self.arch = arch

    def set_abi(self, abi):
        pass

    def set_pipeline(self, kind, pipeline):
        self.dump = re.search(r"dump-ptx-path=(\S+?)}", pipeline)

    def compile_to(self, artifact, kind):
        misbehave()
        if kind == ArtifactType.CompiledMlir:
            return Artifact("lowered: kernels_binary")
        if self.dump and mode() != "no_ptx":
            ptx = recorded(".ptx")
            with open(f"{self.dump[1]}.{self.arch}.ptx", "wb") as file:
                file.write(ptx[: len(ptx) // 2 if mode() == "half_ptx" else None])
        return Artifact(recorded(".object"))


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


_mlir = types.SimpleNamespace(
    ir=types.SimpleNamespace(Context=Context, Module=types.SimpleNamespace(parse=lambda text: text))
)


def populate(module):
    pass
