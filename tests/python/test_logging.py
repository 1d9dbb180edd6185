"""Logs, progress, event files and traces, read back with readers of their own."""

import io
import json
import math
import os
import struct
import threading

import pytest

import tiki as tk
from tiki import lm, profile
from tiki.logging import Logger, Progress, TensorBoardWriter, crc32c


# ---- event files ----


def test_crc32c():
    # The examples of RFC 3720, appendix B.4.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body)
        found.append(body)
        at += 16 + length
    return found


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Pairs of a field's number and its value, of a message of protocol buffers."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.append((key >> 3, value))
    return found


def test_event_files(tmp_path):
    writer = TensorBoardWriter(tmp_path / "run")
    long = "a name with more than 127 characters, " * 5
    writer.add_scalars({"loss": 0.5, long: 1e300}, 300, wall_time=1234.5)
    writer.add_scalars({"loss": math.nan}, 2**40)
    writer.close()
    head, first, second = (dict(fields(record)) for record in records(writer.path))
    assert head[3] == b"brain.Event:2" and "tfevents" in os.path.basename(writer.path)
    assert first[1] == 1234.5 and first[2] == 300 and second[2] == 2**40
    values = [dict(fields(value)) for _, value in fields(first[5])]
    assert values == [{1: b"loss", 2: 0.5}, {1: long.encode(), 2: math.inf}]
    assert math.isnan(dict(fields(fields(second[5])[0][1]))[2])


# ---- logs ----


def test_logs(tmp_path):
    shown = io.StringIO()
    with Logger(tmp_path, settings={"rate": 0.1}, progress=False, tensorboard=True) as log:
        log.log({"loss": tk.array(0.25), "rate": 0.1, "note": "warm"}, 1)
        log.log({"loss": math.inf}, 2)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines == [{"step": 1, "loss": 0.25, "rate": 0.1, "note": "warm"}, {"step": 2, "loss": "inf"}]
    assert json.loads((tmp_path / "settings.json").read_text()) == {"rate": 0.1}
    assert shown.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_writes_over_its_line():
    file = Terminal()
    progress = Progress(10, file, every=0)
    progress.update(5, {"loss": 0.123456})
    progress.update(10)
    progress.close()
    first, second = file.getvalue().strip("\r\n").split("\r")
    assert first.startswith("step 5/10  loss 0.1235") and "left" in first
    assert second.startswith("step 10/10") and len(second) >= len(first)
    assert file.getvalue().endswith("\n")


def test_progress_elsewhere_writes_few_lines():
    file = io.StringIO()
    progress = Progress(1000, file, every=3600)
    for step in range(1, 1001):
        progress.update(step)
    progress.close()
    assert len(file.getvalue().splitlines()) == 2  # the first and the last
    assert "\r" not in file.getvalue()


# ---- traces ----


def check_trace(text):
    """The rules of Chrome's trace format that Perfetto insists on."""
    events = json.loads(text)
    events = events["traceEvents"] if isinstance(events, dict) else events
    flows, spans = {}, {}
    for event in events:
        assert event["ph"] in "XCsfM" and isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        assert event["name"]
        if event["ph"] == "M":
            assert event["args"]["name"]
            continue
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            spans.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
        if event["ph"] in "sf":
            flows.setdefault(event["id"], []).append((event["ts"], event["ph"]))
    for own in spans.values():  # balanced: spans of a thread contain each other or are apart
        open_until = []
        for begin, end in sorted(own, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= begin + 1e-6:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)
    for number, ends in flows.items():
        assert [phase for _, phase in sorted(ends)] == ["s", "f"], (number, ends)
    return events, flows


def work(key):
    x = tk.random.normal((300, 300), key=tk.random.key(key))
    return tk.softmax(x @ x, axis=-1).sum()


def work_elsewhere(key):
    """On the stream's thread, always: what is evaluated at once may run where it was asked for."""
    result = work(key)
    tk.async_eval(result)
    tk.eval(result)


def test_traces(tmp_path):
    path = tmp_path / "trace.json"
    with profile.trace(path):
        threads = [threading.Thread(target=work_elsewhere, args=(key,)) for key in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events, flows = check_trace(path.read_text())
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert {"product", "random_bits"} <= names
    assert len(flows) == 3


def test_traces_in_memory():
    profile.start()
    tk.eval(work(5))
    events, _ = check_trace(profile.stop())
    assert len(events) > 5
    profile.start()
    assert check_trace(profile.stop())[0] is not None


def test_traces_end_when_the_block_raises(tmp_path):
    with pytest.raises(ZeroDivisionError), profile.trace(tmp_path / "t.json"):
        1 / 0
    profile.start()
    profile.stop()


# ---- data as tiki train sees it ----


def test_order_of_the_data(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(bytes(range(256)) * 4)
    data = lm.read_bytes(path)
    assert data == bytes(range(256)) * 4
    first = lm.batch(data, 0, length=16, batch_size=4, seed=1)
    assert first.shape == (4, 17) and first.dtype == tk.int32
    assert tk.array_equal(first, lm.batch(data, 0, length=16, batch_size=4, seed=1)).item()
    assert not tk.array_equal(first, lm.batch(data, 0, length=16, batch_size=4, seed=2)).item()
    rows = first.tolist()
    assert all((b - a) % 256 == 1 for row in rows for a, b in zip(row, row[1:]))
    with pytest.raises(ValueError):
        lm.batch(b"short", 0, length=16, batch_size=4)
    with pytest.raises(OSError):
        lm.read_bytes(tmp_path / "none")


def test_rates_and_weights():
    rates = [lm.learning_rate(step, highest=1.0, warmup=4, decay="linear", decay_steps=10) for step in range(20)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0] and rates[-1] == pytest.approx(0.1)
    weights = lm.initial_weights("llama", layers=1, heads=2, dim=8, context=8, seed=5)
    assert weights["model.embed_tokens.weight"].shape == (256, 8)
    for wrong in ({"family": "gpt5"}, {"heads": 3}):
        with pytest.raises(ValueError):
            lm.initial_weights(**{"family": "gpt2", "layers": 1, "heads": 2, "dim": 8, "context": 8, **wrong})
    with pytest.raises(ValueError):
        lm.learning_rate(0, highest=1.0, decay="square")
