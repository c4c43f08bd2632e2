"""What does a resume cost: read every line, verify its sum and its place, decode its events, fold them?

Compared with `json.loads` of a snapshot of the same history, which verifies nothing. Warm: the files are in memory.
Cold: the system was asked to drop them. With a snapshot of refold's own only the lines behind it are read.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import eventlog
import replay
from benchmarks import arms, history, table, writers

SIZES = (142, 1_000, 10_000, 50_000)
"""Lines, of two events each."""
QUICK = (142, 1_000, 10_000)


class Unsynced(eventlog.Disk):
    """The disk, for making what is only read back: nothing is flushed."""

    def datasync(self, fd: int) -> None:
        """Do nothing."""

    def sync(self, fd: int) -> None:
        """Do nothing."""


def written(path: Path, count: int) -> None:
    """A log of so many saves as `r`, the same with a snapshot at its end as `s`, and a JSON snapshot in `state`."""
    disk = Unsynced()
    first = [replay.encode(event) for event in history.opening()]
    lines = history.encoded(count)
    for name in ("r", "s"):
        with eventlog.Directory(path, disk=disk).create(name, at=datetime.now(UTC), events=first) as log:
            for line in lines:
                log.append(history.AT, line)
    with eventlog.Directory(path, disk=disk).open("s") as log:
        log.compact(replay.dump(replay.load(log.lines)), replay.FOLD_VERSION)
    (path / "state").write_bytes(writers.dumped([json.loads(event) for line in [first, *lines] for event in line]))
    os.sync()


def from_log(path: Path) -> None:
    """All of it, from the first line."""
    replay.load(eventlog.store(path).read("r").lines)


def from_snapshot(path: Path) -> None:
    """What a resume does where a snapshot is."""
    found: list[replay.State | None] = []

    def accept(snapshot: eventlog.Snapshot) -> bool:
        found.append(replay.restore(snapshot.state))
        return found[-1] is not None

    reading = eventlog.store(path).read("s", accept=accept)
    assert reading.snapshot is not None
    replay.load(reading.lines, found[-1] or replay.NEW)


def from_json(path: Path) -> None:
    """The JSON snapshot, parsed."""
    json.loads((path / "state").read_bytes())


JSON = "json.loads of a snapshot"
ARMS: dict[str, Callable[[Path], None]] = {
    JSON: from_json,
    JSON + arms.AGAIN: from_json,
    "refold, from the first line": from_log,
    "refold, from its snapshot": from_snapshot,
}


def dropped(path: Path) -> None:
    """Tell the system to forget the files."""
    for file in path.rglob("*"):
        if file.is_file() and hasattr(os, "posix_fadvise"):
            fd = os.open(file, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def timed(path: Path, rounds: int, *, cold: bool) -> dict[str, list[float]]:
    """The seconds of each arm in each round."""
    took: dict[str, list[float]] = {name: [] for name in ARMS}
    for name in arms.turns(ARMS, rounds):
        gc.collect()
        if cold:
            dropped(path)
        begun = time.perf_counter()
        ARMS[name](path)
        took[name].append(time.perf_counter() - begun)
    return took


def main() -> None:
    """Answer, for every size."""
    short = table.quick(__doc__)
    rows: list[list[str]] = []
    drawn: dict[str, list[float]] = {name: [] for name in ARMS}
    sizes = QUICK if short else SIZES
    for count in sizes:
        with arms.room() as path:
            written(path, count)
            for cold in (False, True):
                took = timed(path, 5 if short else arms.ROUNDS, cold=cold)
                base = took[JSON]
                for name, seconds in took.items():
                    middle = arms.middle(seconds)
                    if not cold:
                        drawn[name].append(middle * 1000)
                    times = "" if seconds is base else f"{arms.ratio(seconds, base):.2f}"
                    rate = f"{2 * count / middle:,.0f}" if name.endswith("first line") else ""
                    cells = [f"{count:,}", "cold" if cold else "warm", name, f"{middle * 1000:,.2f}", rate, times]
                    rows.append(cells)
    head = ["lines", "files", "arm", "ms", "events a second", "times json.loads"]
    notes = ["two events a line, 1.5 KB a line; the collector of garbage is on"]
    plot = {"x": list(sizes), "series": drawn, "xlabel": "lines", "ylabel": "ms, warm", "log": True}
    table.report("resume", "What does a resume cost?", head, rows, notes=notes, plot=plot, short=short)


if __name__ == "__main__":
    main()
