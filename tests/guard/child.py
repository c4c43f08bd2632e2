"""What the guard counts: one kind of work, so many times: `python -m tests.guard.child WORK TIMES DIRECTORY`.

Garbage is not collected and the caller fixes the hashes, so two runs of one work differ by nothing but its number, and
what the interpreter does to start and to end falls out of their difference. Lines are small, because the instructions
of a sum depend on what the processor offers.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import eventlog
import replay
from benchmarks import history

SMALL = 700
"""Bytes of a line."""


def calibrate(times: int, _: Path) -> None:
    """Plain Python that has nothing to do with the product: the measure of this interpreter."""
    seen: dict[int, tuple[int, str]] = {}
    for i in range(times * 100):
        seen[i % 64] = (i, str(i))


def make(times: int, runs: Path) -> None:
    """Write a run of so many lines, for `read`."""
    events = [replay.encode(event) for event in history.opening()]
    with eventlog.store(runs).create("r", at=history.AT, events=events) as log:
        for line in history.encoded(times, SMALL):
            log.append(history.AT, line)


def append(times: int, runs: Path) -> None:
    """Encode two events and save them as one line."""
    events = next(history.saves(1, SMALL))
    with eventlog.store(runs).create("r", at=history.AT, events=[b"{}"]) as log:
        for _ in range(times):
            log.append(history.AT, [replay.encode(event) for event in events])


def read(_: int, runs: Path) -> None:
    """Read, verify, decode and fold the run that `make` wrote."""
    replay.load(eventlog.store(runs).read("r").lines)


WORKS = {"calibrate": calibrate, "make": make, "append": append, "read": read}

if __name__ == "__main__":
    gc.disable()
    WORKS[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]))
