"""Salvage: what is good of a damaged log, copied into a new run; the damaged one is not touched.

Good is what follows the chain from the first line on, and behind damage every line whose own sum is right and that is
later than the ones before it. Where one line does not follow the one before, something is missing: a *gap*, which the
new run's header names for good. Whether lines behind a gap still mean anything is the caller's to say (`follows`),
because a log knows no meaning; the copy ends at the first one that does not.

The lines are framed anew: the new run has its own nonce, its own numbers and its own chain, so nothing of it can be
mistaken for the damaged one. Their events, times and the order of their lives stay.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from eventlog._create import founded
from eventlog._disk import DISK, Disk, NotAFile
from eventlog._frame import FORMAT, NO_SUM, build, checked, parse
from eventlog._line import Gap, Header, Line, Parent, Salvaged, Storage
from eventlog._names import check_id, segment_name, segment_number
from eventlog._scan import scan
from eventlog._segment import good_lines
from eventlog._words import reading as in_words
from eventlog.errors import NoSuchRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eventlog._log import Log
    from eventlog._scan import Reading


def salvage(
    runs: str | Path,
    run: str,
    new: str,
    *,
    follows: Callable[[Line], bool] = lambda _: True,
    force: bool = False,
    disk: Disk = DISK,
) -> Log:
    """Copy what is good of `run` into a new run, and open that. Its header's `salvaged` names every gap.

    `follows` is asked about each line in order, as it stands in the damaged run, and ends the copy by saying no.
    Takes no lock on `run` and writes nothing there. Raises `NoSuchRun` also when not one line of events can be copied,
    `NewerFormat`, `DiskFailed`, and for the new run what `create` raises.
    """
    check_id(new)
    runs = Path(runs)
    reading = scan(runs, run, disk=disk)
    with in_words(runs / run):
        lines, gaps = _taken(disk, runs / run, reading, follows)
    if not lines:
        raise NoSuchRun(run, str(runs), "not one line of events in it can be copied")
    prefix = reading.lines[-1] if reading.lines else None
    parent = Parent(run, prefix.seq, prefix.sum) if prefix else Parent(run, -1, NO_SUM)
    salvaged = Salvaged(run, len(lines), tuple(gaps))

    def beginning(storage: Storage) -> tuple[list[Line], list[bytes]]:
        return _framed(new, Header(FORMAT, new, disk.random(16), 1, storage, parent, salvaged), lines)

    lives = 1 + sum(line.life != before.life for before, line in pairwise(lines))
    return founded(runs, new, beginning, lives + 1, force=force, disk=disk)


def _taken(
    disk: Disk, directory: Path, reading: Reading, follows: Callable[[Line], bool]
) -> tuple[list[Line], list[Gap]]:
    lines: list[Line] = []
    gaps: list[Gap] = []
    why = reading.damage.why if reading.damage else ""
    seq, total = -1, NO_SUM
    for line in _candidates(disk, directory, reading):
        if line.seq <= seq:  # a copy of what was taken, or what stands behind its own successor
            continue
        if line.prev != total:
            gaps.append(Gap(seq, line.seq, "lines are missing" if gaps or not why else why))
        if line.header is None and not follows(line):
            gaps.append(Gap(seq, None, "the lines that follow make no history with those before them"))
            return lines, gaps
        if line.header is None:
            lines.append(line)
        seq, total = line.seq, line.sum
    if reading.damage is not None and (not gaps or (reading.head is not None and reading.head.seq > seq)):
        gaps.append(Gap(seq, None, why))
    return lines, gaps


def _candidates(disk: Disk, directory: Path, reading: Reading) -> Iterator[Line]:
    yield from reading.lines
    if reading.damage is None:
        return
    ends = {segment.number: segment.end for segment in reading.segments}
    for number in sorted(n for name in disk.list(directory) if (n := segment_number(name)) is not None):
        try:
            fd = disk.open(directory / segment_name(number))
        except NotAFile:
            continue
        try:
            yield from good_lines(disk, fd, ends.get(number, 0))
        finally:
            disk.close(fd)


def _framed(new: str, header: Header, lines: list[Line]) -> tuple[list[Line], list[bytes]]:
    at = lines[0].at
    content = [build(0, 1, at, NO_SUM, header)]
    made = [parse(content[0])]
    before = lines[0].life
    for line in lines:
        last = made[-1]
        at = max(at, line.at)
        events = [bytes(event) for event in line.events]
        content.append(build(last.seq + 1, last.life + (line.life != before), at, last.sum, events))
        made.append(checked(new, content[-1], events))
        before = line.life
    return made, content
