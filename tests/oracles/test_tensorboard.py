"""TensorBoard's own reader takes the event files that tiki.logging writes."""
import math

import tiki as tk
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tiki.logging import Logger, TensorBoardWriter


def test_scalars(tmp_path):
    with Logger(tmp_path, progress=False, tensorboard=True) as log:
        for step in range(1, 201):
            log.log({"loss": tk.array(1 / step), "rate": 0.5}, step)
    board = EventAccumulator(str(tmp_path)).Reload()
    assert sorted(board.Tags()["scalars"]) == ["loss", "rate"]
    events = board.Scalars("loss")
    assert [event.step for event in events] == list(range(1, 201))
    assert all(math.isclose(event.value, 1 / event.step, rel_tol=1e-6) for event in events)


def test_checksums_and_long_names(tmp_path):
    writer = TensorBoardWriter(tmp_path)
    name = "a name of two hundred characters " * 6
    writer.add_scalars({name: -2.5, "infinite": math.inf}, 2**33, wall_time=1e9)
    writer.close()
    assert len(list(RawEventFileLoader(writer.path).Load())) == 2  # it checks each checksum
    board = EventAccumulator(str(tmp_path)).Reload()
    (event,) = board.Scalars(name)
    assert event.value == -2.5 and event.step == 2**33 and event.wall_time == 1e9
    assert board.Scalars("infinite")[0].value == math.inf
