"""Tombstones: what stays of a pruned run, so that its id never begins a second one.

A tombstone is the file `.pruned/<run id>` beside the runs: a snapshot of version 1 whose `seq` and `sum` are those of
the run's last line, and whose `state` holds that line's time, the run that it was forked from, and a few words of
whoever pruned it. Its name alone counts: one that cannot be read says that there was a run all the same.
"""

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from eventlog import _snapshot
from eventlog._disk import Disk
from eventlog._files import Files
from eventlog._os_errors import reading
from eventlog.errors import NoSuchRun, RunPruned

PLACE: Final = ".pruned"
"""The directory of the tombstones: a name that no run has."""
MOST: Final = 64 * 1024
_FORMAT: Final = 1


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run that was pruned: when its last line was written, that line's sum, its parent, words."""

    at: datetime | None = None
    sum: str = ""
    parent: str | None = None
    words: dict[str, str] = {}


def encode(run: str, seq: int, stone: Tombstone) -> bytes:
    """Make the bytes of a run's tombstone; `seq` is that of its last line. Raises `NotStorable`."""
    said = msgspec.json.encode(msgspec.structs.replace(stone, sum=""))
    return _snapshot.encode(run, seq, stone.sum, _FORMAT, said)


def decode(run: str, data: bytes) -> Tombstone:
    """Read a tombstone's bytes; what is no tombstone of this run's says nothing."""
    found = _snapshot.decode(data)
    try:
        if found is not None and found.run == run:
            return msgspec.structs.replace(msgspec.json.decode(found.state, type=Tombstone), sum=found.sum)
    except msgspec.DecodeError:
        pass
    return Tombstone()


def read(disk: Disk, runs: Path, run: str) -> Tombstone | None:
    """Read a run's tombstone, which says nothing if it is unreadable; None when there is none.

    Raises `DiskFailed` where that can't be told.
    """
    with reading(runs / PLACE / run):
        try:
            return decode(run, Files(disk, runs / PLACE).content(run, MOST))
        except (FileNotFoundError, NotADirectoryError):
            return None


def missing(disk: Disk, runs: Path, run: str, why: str = "") -> NoSuchRun:
    """Give the error for a run that is not there: it was pruned, or never was."""
    stone = read(disk, runs, run)
    return NoSuchRun(run, str(runs), why) if stone is None else pruned(run, str(runs), stone)


def pruned(run: str, place: str, stone: Tombstone) -> RunPruned:
    """Give the error that says what a tombstone says."""
    return RunPruned(run, place, "", stone.at, stone.sum, stone.words)
