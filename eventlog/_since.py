"""Where a reading may begin: behind the newest snapshot that the log confirms and that its reader accepts.

A snapshot is confirmed by the segment that was begun behind it: its header carries the number after the snapshot's and
the snapshot's sum. What lies before is then not read, and a head that is about it is not held against it: `verify` does
that. Where anything is unclear the answer is None, and the log is read from its first line, which finds out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from eventlog import _snapshot
from eventlog._disk import NotAFile
from eventlog._frame import Bad, Newer, parse
from eventlog._names import segment_name
from eventlog._segment import Chain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eventlog._disk import Disk
    from eventlog._line import Line
    from eventlog._snapshot import Snapshot

_HEADER: Final = 64 * 1024
"""Bytes in which a segment's first line ends; a longer one is left to a whole reading."""


class Begin(NamedTuple):
    """The snapshot to begin behind, the chain at its line, and the first segment to read."""

    snapshot: Snapshot
    chain: Chain
    segment: int


def find(
    disk: Disk,
    directory: Path,
    run: str,
    names: Sequence[str],
    numbers: Sequence[int],
    accept: Callable[[Snapshot], bool],
    findings: list[str],
) -> Begin | None:
    """Find where to begin; None when every line must be read. Why a snapshot was passed over goes into `findings`."""
    if list(numbers) != list(range(1, len(numbers) + 1)):
        return None
    for snapshot in _snapshot.valid(disk, directory, run, names, findings):
        segment = _begun_behind(disk, directory, numbers, snapshot)
        if segment is None:
            return None
        if accept(snapshot):
            return Begin(snapshot, Chain(run, snapshot.seq, snapshot.sum, life=0), segment)
        findings.append(f"the snapshot of line {snapshot.seq} (version {snapshot.version}) was passed over")
    return None


def _begun_behind(disk: Disk, directory: Path, numbers: Sequence[int], snapshot: Snapshot) -> int | None:
    for number in reversed(numbers):
        line = _first_line(disk, directory / segment_name(number))
        if line is None or line.seq <= snapshot.seq:
            return None
        if line.seq == snapshot.seq + 1:
            return number if line.prev == snapshot.sum else None
    return None


def _first_line(disk: Disk, path: Path) -> Line | None:
    try:
        fd = disk.open(path)
    except (FileNotFoundError, NotAFile):
        return None
    try:
        data = disk.pread(fd, _HEADER, 0)
    finally:
        disk.close(fd)
    try:
        return parse(data[: data.find(b"\n") + 1])
    except (Bad, Newer):
        return None
