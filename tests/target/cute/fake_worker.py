"""A worker that does not speak as it should, for the tests.

TIKI_FAKE_WORKER says how: `wrong` has another version of the package; `garbage` answers with no frame; `short` with one that
ends in its middle; `large` with one that claims 4 GiB; `mute` says nothing at all; `leave` ends after each answer.
"""
import os
import socket
import struct
import sys
import time

MAGIC = 0x77434B54
mode = os.environ["TIKI_FAKE_WORKER"]
channel = socket.socket(fileno=os.dup(0))


def receive(count):
    data = b""
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


if mode == "mute":
    receive(1)  # which never comes, so the end of the tests ends it
version = b"4.7.0" if mode == "wrong" else b"4.8.0"
channel.sendall(struct.pack("<3I", MAGIC, 0, len(version)) + version)
while True:
    _, flags, *lengths = struct.unpack("<5I", receive(20))
    for length in lengths:
        receive(length)
    if mode == "garbage":
        channel.sendall(b"no frame of anybody, at all")
    elif mode == "large":
        channel.sendall(struct.pack("<6I", MAGIC, 0, 0xFFFFFFFF, 0, 0, 0))
    elif mode == "short":
        channel.sendall(struct.pack("<6I", MAGIC, 0, 1000, 0, 0, 0) + b"short")
        os._exit(0)
    elif mode == "leave":
        channel.sendall(struct.pack("<6I", MAGIC, 0, 9, 0, 0, 0) + b"no object")
        os._exit(0)
