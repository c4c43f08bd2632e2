"""What a log folds to: from the newest snapshot that still counts, else from the first line.

A snapshot counts when this version of the fold made it and its bytes are a state of that very line. Whatever else is
there is passed over, because the log alone is the truth (spec row 14). The loop makes one when the lines since the last
weigh as much as it does, and at least a mebibyte: then all snapshots of a run together cost a constant factor of its
log.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import eventlog
import replay
from replay import NEW, State
from runner import _log

LEAST = 1 << 20
"""Bytes of lines below which a snapshot saves nobody any time."""


class Accept:
    """Takes a snapshot that this version of the fold made; `state` is then what it holds."""

    def __init__(self) -> None:
        self.state = NEW

    def __call__(self, snapshot: eventlog.Snapshot) -> bool:
        """Whether a fold may go on from here."""
        state = replay.restore(snapshot.state) if snapshot.version == replay.FOLD_VERSION else None
        if state is None or state.seq != snapshot.seq or state.unknown:  # what was unknown then may be known now
            return False
        self.state = state
        return True


def opened(
    runs: Path, run: str, *, force: bool = False, disk: eventlog.Disk = eventlog.DISK
) -> tuple[eventlog.Log, State]:
    """A run open for writing, and its state. Raises what `eventlog.open` raises, and `replay.ReplayError`."""
    accept = Accept()
    log = eventlog.open(runs, run, accept=accept, force=force, disk=disk)
    try:
        state = replay.load(log.lines, accept.state if log.snapshot is not None else NEW)
    except BaseException:  # whatever ends this leaves no lock behind, and goes on up
        log.close()
        raise
    _say(run, log.findings)
    return log, state


def read(runs: Path, run: str, *, disk: eventlog.Disk = eventlog.DISK) -> State:
    """The state of a run, read without a lock. Raises what `eventlog.read` raises, and `replay.ReplayError`."""
    return _read(runs, run, disk)[1]


def glance(runs: Path, run: str) -> tuple[State, datetime | None]:
    """The state of a run and when it began, from one reading. Raises as `read` does."""
    reading, state = _read(runs, run)
    return state, reading.lines[0].at if reading.snapshot is None else eventlog.began(runs, run)


def _read(runs: Path, run: str, disk: eventlog.Disk = eventlog.DISK) -> tuple[eventlog.Reading, State]:
    accept = Accept()
    reading = eventlog.read(runs, run, accept=accept, disk=disk)
    return reading, replay.load(reading.lines, accept.state if reading.snapshot is not None else NEW)


def is_due(log: eventlog.Log) -> bool:
    """Whether the lines since the last snapshot weigh enough for the next one."""
    last = log.snapshot.size if log.snapshot is not None else 0
    return log.bytes_since_snapshot >= max(last, LEAST)


def _say(run: str, findings: list[str]) -> None:
    for finding in findings:
        _log.logger(run=run).warning("a snapshot was passed over", finding=finding)
