"""`refold bench`: what a save costs in this directory, against rewriting a snapshot of everything each time.

Absolute times move from run to run, so the two take turns: each round does all saves of the one, then all of the other,
and what is told is the median of the rounds' own medians and ratios. Text is random, because constant text lets a disk
share it. Where a flush reaches no disk nothing would be measured, so such a directory is refused.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import statistics
import string
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

import eventlog
import replay
from runner._cli import _options, _out
from runner._cli._errors import Refused

ROUNDS = 5
SIZE = 1200
"""Characters of text in an event: with its frame a line takes about 1.5 KB."""


class Counting(eventlog.Disk):
    """The disk, which counts its flushes."""

    def __init__(self) -> None:
        self.flushes = 0

    def datasync(self, fd: int) -> None:
        """Flush, and count it."""
        self.flushes += 1
        super().datasync(fd)


class Figures(NamedTuple):
    """What was found, times in seconds: the median and the 99th part of a save, for each way; `times` is the ratio."""

    saves: int
    rounds: int
    storage: str
    append_p50: float
    append_p99: float
    flushes: float
    snapshot_p50: float
    snapshot_p99: float
    times: float


@click.command()
@_options.runs
@click.option(
    "--saves", type=click.IntRange(10, 2000), default=142, show_default=True, metavar="N", help="Saves a round."
)
@_options.json
def bench(runs: Path, *, saves: int, as_json: bool) -> None:
    """Measure what a save costs in the directory of runs.

    It is held against writing a snapshot of everything at each save, with as many flushes as a snapshot needs. What is
    written is removed again.
    """
    made = [path for path in (runs, *runs.parents) if not path.exists()]
    runs.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".bench-", dir=runs))
    try:
        figures = measured(place, saves)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        for path in made:
            with suppress(OSError):  # somebody has put a run there meanwhile
                path.rmdir()
    if as_json:
        _out.as_json(figures._asdict())
        return
    ratio = f"{figures.times:.1f} times as much"
    _out.out(f"On your disk, a save costs {_us(figures.append_p50)} ({figures.flushes:.2f} flushes).")
    _out.rows(
        [
            ("append", f"{_us(figures.append_p50)}; 99 of 100 below {_us(figures.append_p99)}"),
            ("snapshot", f"{_us(figures.snapshot_p50)}; 99 of 100 below {_us(figures.snapshot_p99)}; {ratio}"),
            ("measured", f"{figures.rounds} rounds of {figures.saves} saves each way, in turns, on {figures.storage}"),
        ]
    )


def measured(place: Path, saves: int) -> Figures:
    """Do both, in turns. Raises `Refused` where a flush reaches no disk."""
    texts = random.Random(1)  # noqa: S311 (only text that does not compress)
    letters = string.ascii_letters + string.digits
    events = [
        replay.ResultRecorded(call=f"{n}.0", how="ran", n=1, text="".join(texts.choices(letters, k=SIZE)))
        for n in range(saves)
    ]
    appends, snapshots, flushes, storage = list[list[float]](), list[list[float]](), 0.0, ""
    for turn in range(ROUNDS):
        took, flushes, storage = _appended(place, f"r{turn}", events)
        appends.append(took)
        whole: list[object] = []
        snapshots.append(_timed(events, functools.partial(_snapshot, place, whole)))
    one, other = [statistics.median(took) for took in appends], [statistics.median(took) for took in snapshots]
    return Figures(
        saves,
        ROUNDS,
        storage,
        statistics.median(one),
        statistics.median(map(_p99, appends)),
        flushes,
        statistics.median(other),
        statistics.median(map(_p99, snapshots)),
        statistics.median(b / a for a, b in zip(one, other, strict=True)),
    )


def _appended(place: Path, run: str, events: Sequence[replay.Event]) -> tuple[list[float], float, str]:
    """The seconds of each save in a log of its own, the flushes of one, and what the log stands on."""
    disk = Counting()
    with eventlog.create(place, run, at=datetime.now(UTC), events=[], disk=disk) as log:
        storage = eventlog.read(place, run).storage
        kind = storage.kind if storage is not None else "something unknown"
        if storage is None or storage.survives != "power loss":
            why = f"{place.parent} is on {kind}, where a flush reaches no disk"
            raise Refused(why, "Name a directory on a disk with --runs DIR.")
        before = disk.flushes
        took = _timed(events, lambda event: log.append(datetime.now(UTC), [replay.encode(event)]))
        return took, (disk.flushes - before) / len(events), kind


def _timed(events: Sequence[replay.Event], save: Callable[[replay.Event], object]) -> list[float]:
    took = []
    for event in events:
        begun = time.perf_counter()
        save(event)
        took.append(time.perf_counter() - begun)
    return took


def _snapshot(place: Path, whole: list[object], event: replay.Event) -> None:
    """All so far in a new file, synced, renamed over the old one, the directory synced."""
    whole.append(msgspec.to_builtins(event))
    temporary = place / "state.tmp"
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(whole))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(place / "state")
    directory = os.open(place, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _p99(took: Sequence[float]) -> float:
    return sorted(took)[min(len(took) * 99 // 100, len(took) - 1)]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"
