"""A process that makes a run on a real disk, saves, and prints what returned.

Called as `python -m tests.eventlog.faults.child RUNS`.

It prints the number of each line as soon as its save returned, in one write, so that what it printed is what an effect
could have been started on. What refused it goes to stderr by its type's name; anything but a `LogError` is a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import eventlog
from tests.support.file_logs import roll

RUN = "r"
AT = datetime(2026, 11, 29, tzinfo=UTC)
WORK = (20, 700, "roll", 20, 100_000, "snapshot", 20)
"""Bytes of the saves' texts (within a sector, over two, and more than there are zeros), a roll and a snapshot."""
SIZES = [size for size in WORK if isinstance(size, int)]


def told(seq: int) -> None:
    """Tell that a line is durable."""
    os.write(1, b"%d\n" % seq)


def event(seq: int, size: int) -> bytes:
    """Give the event of a line, the same in every process."""
    return b'{"n":%d,"text":"%b"}' % (seq, b"%d" % (seq % 10) * size)


def save(log: eventlog.Log, size: int) -> None:
    """Save one line and tell; a full disk is tried again, as a caller would once there is room."""
    try:
        line = log.append(AT, [event(log.seq + 1, size)])
    except eventlog.DiskFull:
        line = log.append(AT, [event(log.seq + 1, size)])
    told(line.seq)


def work(log: eventlog.Log) -> None:
    """Do everything there is to do; what can wait (a roll, a snapshot) is given up when there is no room for it."""
    for step in WORK:
        if isinstance(step, int):
            save(log, step)
            continue
        with contextlib.suppress(eventlog.DiskFull, eventlog.DiskFailed):
            if step == "roll":
                roll(log)
            else:
                log.compact(b"{}", 1)
            told(log.seq)


def main() -> int:
    """Make or open the run, work, close, open it again, save, and close."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    given = parser.parse_args()
    try:
        try:
            log = eventlog.store(given.runs).open(RUN)
        except eventlog.NoSuchRun:
            log = eventlog.store(given.runs).create(RUN, at=AT, events=[b'{"type":"opened"}'])
        told(log.seq)
        work(log)
        log.close()
        with eventlog.store(given.runs).open(RUN) as again:
            save(again, 20)
    except eventlog.LogError as error:
        sys.stderr.write(f"{type(error).__name__}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
