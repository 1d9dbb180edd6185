"""A CuTe compiler that is none, for the tests: it speaks the worker's language and fails on demand.

TIKI_FAKE_WORKER says how: `die` before it answers; `once`, which leaves a mark in TIKI_FAKE_MARK and dies only without
it; `hang`; `garbage`; `short`, an answer that ends in its middle; `refuse`, a message about line 5; `count`, which
answers with an object that is none and notes its process in TIKI_FAKE_MARK; `mute`, which says nothing at all.
"""
import os
import socket
import struct
import sys
import time

MAGIC = 0x77434B54
mode = os.environ["TIKI_FAKE_WORKER"]
mark = os.environ.get("TIKI_FAKE_MARK", "")
channel = socket.socket(fileno=os.dup(0))


def receive(count):
    data = b""
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


def answer(status, *parts):
    channel.sendall(struct.pack("<6I", MAGIC, status, *(len(part) for part in parts)) + b"".join(parts))


def fail_once():
    if os.path.exists(mark):
        return
    open(mark, "w").close()
    os._exit(1)


def note_process():
    with open(mark, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.002)


if mode == "mute":
    time.sleep(600)
channel.sendall(struct.pack("<3I", MAGIC, 0, 4) + b"fake")
while True:
    _, flags, *lengths = struct.unpack("<5I", receive(20))
    for length in lengths:
        receive(length)
    if mode == "die":
        os._exit(1)
    elif mode == "hang":
        time.sleep(600)
    elif mode == "garbage":
        channel.sendall(b"no frame of anybody, at all")
    elif mode == "short":
        channel.sendall(struct.pack("<6I", MAGIC, 0, 1000, 0, 0, 0) + b"short")
        os._exit(0)
    elif mode == "refuse":
        answer(1, b"", b"", b"", b'loc("-":8:7): error: no such thing')
        continue
    elif mode == "once":
        fail_once()
    elif mode == "count":
        note_process()
    answer(0, b"no object", b"", b"", b"")
