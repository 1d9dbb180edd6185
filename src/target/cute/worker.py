"""Compiles CuTe MLIR with NVIDIA's package for the process at the other end of the socket on fd 0.

Of the package only the extension module is loaded, beside its empty parent packages, which takes a
tenth of the time of `import cutlass`. Frames are little-endian words of 32 bits and bytes:

    to begin with   MAGIC, 0, length, version of the package       or  MAGIC, 1, length, what is wrong
    request         MAGIC, flags, 3 lengths: architecture, options, text; then those
    answer          MAGIC, status, 4 lengths: object, PTX, lowered text, messages; then those

The file 3 is the slot that the worker holds, where there is an argument: the folder of slots (slots.h). A worker that
somebody waits for ends when it is idle, and after some time when it is not.

The end of the other side is the end of this one, also in the middle of a compilation, when Python cannot run: the kernel
then sends SIGIO, whose default is to end the process. What the compiler prints is collected and sent.
"""
import sys

sys.path[:] = [folder for folder in sys.path if folder]  # not the folder that the caller happens to be in

import fcntl
import importlib.metadata
import importlib.util
import os
import select
import signal
import socket
import struct
import tempfile
import time
import types

MAGIC = 0x77434B54
WANT_PTX, WANT_LOWERED = 1, 2
OK, PARSE_ERROR, COMPILE_ERROR, NO_ROOM = 0, 1, 2, 3
LOOK, NEW, TURN = 0.5, 1.5, 5  # seconds: between looks, for which somebody has waited, that a worker is busy at most

slots = sys.argv[1] if len(sys.argv) > 1 else ""
if slots:
    os.set_inheritable(3, False)
channel = socket.socket(fileno=os.dup(0))
messages = os.memfd_create("messages")
for number in (1, 2):
    os.dup2(messages, number)
signal.signal(signal.SIGINT, signal.SIG_IGN)


def receive(count):
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return bytes(data)


def is_wanted():
    try:
        return abs(time.time() - os.stat(os.path.join(slots, "wanted")).st_mtime) < NEW
    except OSError:
        return False


def wait_for_work(begin, answered):
    """Who started this worker asks at once, if late: until then it stays, for a turn."""
    if slots and time.monotonic() - begin > TURN and is_wanted():
        sys.exit(0)
    while slots and not select.select([channel], [], [], LOOK)[0]:
        if (answered or time.monotonic() - begin > TURN) and is_wanted():
            sys.exit(0)


def end_with_the_other_side(on):
    """While on, the end of the other side ends this process at once."""
    flags = fcntl.fcntl(channel, fcntl.F_GETFL)
    fcntl.fcntl(channel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(channel, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)
    watch = select.poll()
    watch.register(channel, 0)
    if on and watch.poll(0):  # it ended before
        sys.exit(0)


def load():
    spec = importlib.util.find_spec("nvidia_cutlass_dsl")
    if spec is None:
        raise ImportError("the package nvidia-cutlass-dsl is not installed")
    base = os.path.join(list(spec.submodule_search_locations)[0], "dsl_packages", "cutlass")
    for name, path in (("cutlass", base), ("cutlass._mlir", os.path.join(base, "_mlir"))):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module
    from cutlass._mlir._mlir_libs import _cutlass_ir
    _cutlass_ir.populate(_cutlass_ir)
    return _cutlass_ir


def take_messages():
    sys.stdout.flush()
    sys.stderr.flush()
    size = os.lseek(messages, 0, os.SEEK_END)
    data = os.pread(messages, size, 0)
    os.ftruncate(messages, 0)
    os.lseek(messages, 0, os.SEEK_SET)
    return data


def compiler_for(ir, arch, options):
    compiler = ir.CuteCompiler()
    compiler.set_device_target(arch)
    compiler.set_abi(ir.Abi.Tbd)
    compiler.set_pipeline(ir.ArtifactType.PreCompiledMlir, "cute-to-nvvm{" + options + "}")
    return compiler


def lower(ir, arch, options, text):
    artifact = ir.PreCompiledMlirArtifact.from_textual_form(text)
    lowered = compiler_for(ir, arch, options).compile_to(artifact, ir.ArtifactType.CompiledMlir)
    with ir._mlir.ir.Context() as context:
        context.allow_unregistered_dialects = True
        return str(ir._mlir.ir.Module.parse(lowered.get_bitcode())).encode()


def read_ptx(folder):
    """What the package wrote; it does not say when a disk was full."""
    for name in os.listdir(folder):
        if name.endswith(".ptx"):
            with open(os.path.join(folder, name), "rb") as file:
                ptx = file.read()
            if ptx.count(b"{") == ptx.count(b"}") > 0:
                return ptx
    raise OSError(f"the PTX in {folder} is not whole")


def compile_text(ir, flags, arch, options, text):
    try:
        artifact = ir.PreCompiledMlirArtifact.from_textual_form(text)
    except ValueError as error:
        return PARSE_ERROR, b"", b"", b"", str(error).encode()
    try:
        with tempfile.TemporaryDirectory(prefix="tiki-cute-") as folder:
            every = options
            if flags & WANT_PTX:
                every += f" dump-ptx-path={folder}/kernel"
            built = compiler_for(ir, arch, every).compile_to(artifact, ir.ArtifactType.Object)
            ptx = read_ptx(folder) if flags & WANT_PTX else b""
            lowered = lower(ir, arch, options, text) if flags & WANT_LOWERED else b""
            return OK, bytes(built.get_data()), ptx, lowered, b""
    except OSError as error:
        return NO_ROOM, b"", b"", b"", str(error).encode()
    except Exception as error:  # whatever the package raises is an answer
        return COMPILE_ERROR, b"", b"", b"", f"{type(error).__name__}: {error}".encode()


def main():
    try:
        ir = load()
    except Exception as error:
        text = f"{sys.executable} (Python {sys.version_info.major}.{sys.version_info.minor}): {error}".encode()
        channel.sendall(struct.pack("<3I", MAGIC, 1, len(text)) + text)
        return
    version = importlib.metadata.version("nvidia-cutlass-dsl").encode()
    channel.sendall(struct.pack("<3I", MAGIC, 0, len(version)) + version)
    begin, answered = time.monotonic(), False
    while True:
        wait_for_work(begin, answered)
        magic, flags, *lengths = struct.unpack("<5I", receive(20))
        if magic != MAGIC:
            sys.exit(1)
        arch, options, text = (receive(length) for length in lengths)
        end_with_the_other_side(True)
        status, *parts, error = compile_text(ir, flags, arch.decode(), options.decode(), text)
        end_with_the_other_side(False)
        parts.append(take_messages() + error)
        head = struct.pack("<6I", MAGIC, status, *(len(part) for part in parts))
        channel.sendall(head + b"".join(parts))
        answered = True


main()
