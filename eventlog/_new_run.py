"""What a new run begins with: its own header, then an opening, lines of another run, or what is good of a damaged one.

A new run has its own nonce, numbers and chain, so nothing of it can be mistaken for another run's. A fork's lines keep
the numbers, lives and times of the parent's: line 41 is line 41 in both, and what a person noted about the one holds
for the other. Where the parent began a segment, the fork has a line without events.

Good of a damaged log is what follows the chain from the first line on, and after damage every line whose own sum is
right and that is later than the ones before it. Where one line does not follow the one before, something is missing: a
*gap*, which the new run's header names for good. Whether lines after a gap still mean anything is the caller's to say
(`follows`), because a log knows no meaning; the copy ends at the first one that does not. The damaged run is not
touched; events, times and the order of lives stay.

A run appears whole or not at all: everything it begins with is in its first segment when that gets its name. Just
before, `ready` is called. Whoever must end a fork's parent does it there. Until then anything that goes wrong (a full
disk, an id that is taken) leaves the parent as it was. After it the parent is over, so the two can never both go on. A
crash exactly in between leaves a parent that was ended and no fork; forking it again makes one.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from eventlog._disk import NotAFile
from eventlog._files import Files
from eventlog._frame import NO_SUM, build, compose, in_utc, parse
from eventlog._line import FORMAT, Gap, Header, Line, Parent, Salvaged, Storage
from eventlog._names import check_id, segment_name, segment_number
from eventlog._os_errors import reading as in_words
from eventlog._scan import Reading
from eventlog._segment import good_lines

FIRST_LIFE: Final = 1


class Save(msgspec.Struct, frozen=True):
    """What one line after the header says. One that is `copied` is good, whatever a writer would be refused."""

    life: int
    at: datetime
    events: Sequence[bytes]
    copied: bool = True


class Beginning(msgspec.Struct, frozen=True):
    """What a run begins with, but for what its place has to say; `life` is that in which it goes on."""

    run: str
    at: datetime
    saves: list[Save]
    life: int = FIRST_LIFE
    parent: Parent | None = None
    salvaged: Salvaged | None = None

    def framed(self, storage: Storage, nonce: str) -> tuple[list[Line], list[bytes]]:
        """Chain a header and the saves, and give the bytes of each line too. Raises `NotStorable`."""
        header = Header(FORMAT, self.run, nonce, 1, storage, self.parent, self.salvaged)
        content = [build(0, FIRST_LIFE, self.at, NO_SUM, header)]
        lines = [parse(content[0])]
        for save in self.saves:
            last = lines[-1]
            if save.copied:
                data = build(last.seq + 1, save.life, save.at, last.sum, save.events)
                line = parse(data)
            else:
                data, line = compose(self.run, last.seq + 1, save.life, save.at, last.sum, save.events)
            content.append(data)
            lines.append(line)
        return lines, content


def opening(run: str, *, at: datetime, events: Sequence[bytes], parent: Parent | None) -> Beginning:
    """Begin with a header and, if there are events, an opening line."""
    at = in_utc(check_id(run), at)
    saves = [Save(FIRST_LIFE, at, events, copied=False)] if events else []
    return Beginning(run, at, saves, parent=parent)


def forked(lines: Sequence[Line], new: str, *, keep: int, at: datetime, events: Sequence[bytes]) -> Beginning:
    """Begin with another run's lines, the last cut to its first `keep` events, and a line in a life of its own."""
    at = in_utc(check_id(new), at)
    first, last = lines[0], lines[-1]
    assert first.header is not None  # a log begins with a header
    saves = [Save(line.life, line.at, [bytes(event) for event in line.events]) for line in lines[1:]]
    saves[-1] = msgspec.structs.replace(saves[-1], events=saves[-1].events[:keep])
    life = last.life + 1
    saves.append(Save(life, max(at, last.at), events, copied=False))
    return Beginning(new, first.at, saves, life, Parent(first.header.run, last.seq, last.sum))


def salvaged(files: Files, reading: Reading, new: str, follows: Callable[[Line], bool]) -> Beginning | None:
    """Begin with what is good of a damaged run; None when there is not one line."""
    check_id(new)
    run = reading.run
    with in_words(run):
        lines, gaps = _taken(files, reading, follows)
    if not lines:
        return None
    prefix = reading.lines[-1] if reading.lines else None
    parent = Parent(run, prefix.seq, prefix.sum) if prefix else Parent(run, -1, NO_SUM)
    saves = list(_anew(lines))
    source = Salvaged(run, len(lines), tuple(gaps))
    return Beginning(new, saves[0].at, saves, saves[-1].life + 1, parent, source)


def _taken(files: Files, reading: Reading, follows: Callable[[Line], bool]) -> tuple[list[Line], list[Gap]]:
    lines: list[Line] = []
    gaps: list[Gap] = []
    why = reading.damage.why if reading.damage else ""
    seq, total = -1, NO_SUM
    for line in _candidates(files, reading):
        if line.seq <= seq:  # a copy of what was taken, or what stands after its own successor
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


def _candidates(files: Files, reading: Reading) -> Iterator[Line]:
    yield from reading.lines
    if reading.damage is None:
        return
    ends = {segment.number: segment.end for segment in reading.segments}
    for number in sorted(n for name in files.names() if (n := segment_number(name)) is not None):
        with contextlib.suppress(NotAFile):
            yield from good_lines(files.pieces(segment_name(number), ends.get(number, 0)))


def _anew(lines: list[Line]) -> Iterator[Save]:
    """Give what the lines say, with lives that count from the first and times that never run backwards."""
    life, at, before = FIRST_LIFE, lines[0].at, lines[0].life
    for line in lines:
        life, at, before = life + (line.life != before), max(at, line.at), line.life
        yield Save(life, at, [bytes(event) for event in line.events])
