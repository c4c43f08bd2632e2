"""The lines that a new run begins with: its own header, then an opening, or lines of another run.

A new run has its own nonce, numbers and chain, so nothing of it can be mistaken for another run's. A fork's lines keep
the numbers, lives and times of the parent's: line 41 is line 41 in both, and what a person noted about the one holds
for the other. Where the parent began a segment, the fork has a line without events.

A run appears whole or not at all: everything it begins with is in its first segment when that gets its name. Just
before, `ready` is called. Whoever must end a fork's parent does it there. Until then anything that goes wrong (a full
disk, an id that is taken) leaves the parent as it was. After it the parent is over, so the two can never both go on. A
crash exactly in between leaves a parent that was ended and no fork; forking it again makes one.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from eventlog._frame import NO_SUM, build, compose, in_utc, parse
from eventlog._line import FORMAT, Header, Line, Parent, Storage
from eventlog._names import check_id

FIRST_LIFE: Final = 1


class Beginning(msgspec.Struct, frozen=True):
    """What a run begins with: its lines, and their bytes in pieces."""

    lines: list[Line]
    content: list[bytes]


Begin = Callable[[Storage, str], Beginning]
"""Makes a beginning for what the run stands on, with a nonce of its own."""


class Save(msgspec.Struct, frozen=True):
    """What one line after the header says."""

    life: int
    at: datetime
    events: Sequence[bytes]
    copied: bool = False


def framed(header: Header, life: int, at: datetime, saves: Iterable[Save]) -> Beginning:
    """Chain a header and what follows it, each line read back before the next one. Raises `NotStorable`."""
    content = [build(0, life, at, NO_SUM, header)]
    lines = [parse(content[0])]
    for save in saves:
        last = lines[-1]
        if save.copied:  # what a reader reads is good, whatever a writer would be refused
            data = build(last.seq + 1, save.life, save.at, last.sum, save.events)
            line = parse(data)
        else:
            data, line = compose(header.run, last.seq + 1, save.life, save.at, last.sum, save.events)
        content.append(data)
        lines.append(line)
    return Beginning(lines, content)


def opening(run: str, *, at: datetime, events: Sequence[bytes], parent: Parent | None) -> tuple[Begin, int]:
    """Begin with a header and, if there are events, an opening line; give the life of that line too."""
    check_id(run)
    at = in_utc(run, at)
    saves = [Save(FIRST_LIFE, at, events)] if events else []

    def begin(storage: Storage, nonce: str) -> Beginning:
        made = framed(Header(FORMAT, run, nonce, 1, storage, parent), FIRST_LIFE, at, saves)
        return Beginning(made.lines, [b"".join(made.content)])

    return begin, FIRST_LIFE


def forked(lines: Sequence[Line], new: str, *, keep: int, at: datetime, events: Sequence[bytes]) -> tuple[Begin, int]:
    """Begin with another run's lines, the last cut to its first `keep` events, and a line in a life of its own."""
    check_id(new)
    at = in_utc(new, at)
    first, last = lines[0], lines[-1]
    assert first.header is not None  # a log begins with a header
    parent = Parent(first.header.run, last.seq, last.sum)
    saves = [Save(line.life, line.at, [bytes(event) for event in line.events], copied=True) for line in lines[1:]]
    saves[-1] = msgspec.structs.replace(saves[-1], events=saves[-1].events[:keep])
    saves.append(Save(last.life + 1, max(at, last.at), list(events)))

    def begin(storage: Storage, nonce: str) -> Beginning:
        return framed(Header(FORMAT, new, nonce, 1, storage, parent), first.life, first.at, saves)

    return begin, last.life + 1
