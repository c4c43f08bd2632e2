"""Salvage: what is good of a damaged log, copied into a new run; the damaged one is not touched.

Good is what follows the chain from the first line on, and after damage every line whose own sum is right and that is
later than the ones before it. Where one line does not follow the one before, something is missing: a *gap*, which the
new run's header names for good. Whether lines after a gap still mean anything is the caller's to say (`follows`),
because a log knows no meaning; the copy ends at the first one that does not.

The lines are framed anew: the new run has its own nonce, its own numbers and its own chain, so nothing of it can be
mistaken for the damaged one. Their events, times and the order of their lives stay.
"""

import contextlib
from collections.abc import Callable, Iterator

from eventlog._disk import NotAFile
from eventlog._files import Files
from eventlog._frame import NO_SUM
from eventlog._line import FORMAT, Gap, Header, Line, Parent, Salvaged, Storage
from eventlog._names import check_id, segment_name, segment_number
from eventlog._new_run import FIRST_LIFE, Begin, Beginning, Save, framed
from eventlog._os_errors import reading as in_words
from eventlog._scan import Reading
from eventlog._segment import good_lines


def salvaged(files: Files, reading: Reading, new: str, follows: Callable[[Line], bool]) -> tuple[Begin, int] | None:
    """Begin with what is good of a damaged run, and give the life that follows; None when there is not one line."""
    check_id(new)
    run = reading.run
    with in_words(run):
        lines, gaps = _taken(files, reading, follows)
    if not lines:
        return None
    prefix = reading.lines[-1] if reading.lines else None
    parent = Parent(run, prefix.seq, prefix.sum) if prefix else Parent(run, -1, NO_SUM)
    source = Salvaged(run, len(lines), tuple(gaps))
    saves = list(_anew(lines))

    def begin(storage: Storage, nonce: str) -> Beginning:
        return framed(Header(FORMAT, new, nonce, 1, storage, parent, source), FIRST_LIFE, saves[0].at, saves)

    return begin, saves[-1].life + 1


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
        yield Save(life, at, [bytes(event) for event in line.events], copied=True)
