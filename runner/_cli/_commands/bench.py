"""`refold bench`: what a save costs in this directory, beside a snapshot of everything at each save.

Times vary from run to run, so the two take turns: each round does all saves of the one, then all of the other. What is
printed is the median of the rounds' own medians and ratios. Text is random, because a disk may share constant text. A
directory where a flush reaches no disk is refused: nothing would be measured.
"""

import os
import random
import statistics
import string
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

import eventlog
import replay
from replay.events import ResultRecorded
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused

ROUNDS = 5
SIZE = 1200
"""Characters of text in an event: with its frame a line takes about 1.5 KB."""


@click.command()
@options.runs
@click.option(
    "--saves", type=click.IntRange(10, 2000), default=142, show_default=True, metavar="N", help="Saves a round."
)
@options.json
def bench(runs: str, *, saves: int, as_json: bool) -> None:
    """Measure what a save costs in the directory of runs.

    Compares it with writing a snapshot of everything at each save, with as many flushes as a snapshot needs. What is
    written is removed again.
    """
    store = eventlog.store(runs)
    if not isinstance(store, eventlog.Directory):
        raise Refused(f"{store} is a database", "Name a directory on a disk with --runs DIR.")
    there = next(path for path in (store.path, *store.path.absolute().parents) if path.exists())
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=there, ignore_cleanup_errors=True) as place:
        found = measured(Path(place), saves)
    if as_json:
        out.as_json(found)
        return
    us = {name: f"{value * 1e6:,.0f} µs" for name, value in found.items() if name.endswith(("_p50", "_p99"))}
    out.out(f"On your disk, a save costs {us['append_p50']} ({found['flushes']:.2f} flushes).")
    ratio = f"{found['times']:.1f} times as much"
    out.rows(
        [
            ("append", f"{us['append_p50']}; 99 of 100 below {us['append_p99']}"),
            ("snapshot", f"{us['snapshot_p50']}; 99 of 100 below {us['snapshot_p99']}; {ratio}"),
            ("measured", f"{found['rounds']} rounds of {saves} saves each way, in turns, on {found['storage']}"),
        ]
    )


def measured(place: Path, saves: int) -> dict[str, Any]:
    """Do both, in turns; the figures that `--json` prints, times in seconds. Raises `Refused` on no disk."""
    letters, texts = string.ascii_letters + string.digits, random.Random(1)  # noqa: S311 (it does not compress)
    events = [
        ResultRecorded(call=f"{n}.0", how="ran", n=1, text="".join(texts.choices(letters, k=SIZE)))
        for n in range(saves)
    ]
    kind = ""
    appends, snapshots, flushes = list[list[float]](), list[list[float]](), 0.0
    for turn in range(ROUNDS):
        disk = Counting()
        with eventlog.Directory(place, disk=disk).create(f"r{turn}", at=datetime.now(UTC), events=[]) as log:
            kind = _storage(place, log)
            before = disk.flushes
            appends.append([_timed(_append, log, event) for event in events])
            flushes = (disk.flushes - before) / saves
        whole: list[object] = []
        snapshots.append([_timed(_snapshot, place, whole, event) for event in events])
    ratios = (statistics.median(b) / statistics.median(a) for a, b in zip(appends, snapshots, strict=True))
    return {
        "saves": saves,
        "rounds": ROUNDS,
        "storage": kind,
        "append_p50": _median(appends, 50),
        "append_p99": _median(appends, 99),
        "flushes": flushes,
        "snapshot_p50": _median(snapshots, 50),
        "snapshot_p99": _median(snapshots, 99),
        "times": statistics.median(ratios),
    }


class Counting(eventlog.Disk):
    """The disk, which counts its flushes."""

    flushes = 0

    def datasync(self, fd: int) -> None:
        self.flushes += 1
        super().datasync(fd)


def _storage(place: Path, log: eventlog.Log) -> str:
    """What the directory stands on. Raises `Refused` where a flush reaches no disk."""
    header = log.lines[0].header
    assert header is not None
    if header.storage.survives != "power loss":
        why = f"{place.parent} is on {header.storage.kind}, where a flush reaches no disk"
        raise Refused(why, "Name a directory on a disk with --runs DIR.")
    return header.storage.kind


def _timed(save: Callable[..., object], *given: object) -> float:
    begun = time.perf_counter()
    save(*given)
    return time.perf_counter() - begun


def _append(log: eventlog.Log, event: replay.Event) -> None:
    log.append(datetime.now(UTC), [replay.encode(event)])


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
    os.fsync(directory)
    os.close(directory)


def _median(rounds: Sequence[Sequence[float]], part: int) -> float:
    """The median over the rounds of a percentile in each."""
    return statistics.median(sorted(took)[min(len(took) * part // 100, len(took) - 1)] for took in rounds)
