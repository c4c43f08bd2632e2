"""One segment read: its good lines, and what lies after them.

The rule for the bytes after the last good line, after trailing NULs are dropped: nothing left, nothing torn. They
are a torn save when they hold a NUL or lack a newline, because a save that never finished leaves zeros it did not
overwrite. A whole line with a wrong sum is damage, whatever follows, and so is a good line after a bad one: the
writer starts a line only after the one before it was durable. Whether the last acknowledged line is missing is the
head's to say.

Memory stays bounded by the longest line, whatever the file holds.
"""

from __future__ import annotations

import contextlib
from array import array
from typing import TYPE_CHECKING, Final

import msgspec

from eventlog._files import CHUNK, chunks
from eventlog._frame import MAX_LINE, NO_SUM, Bad, Newer, ordinary, parse
from eventlog._line import Line
from eventlog._names import segment_name
from eventlog.errors import OtherFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from eventlog._disk import Disk

_LINE_START: Final = b'{"seq":'


class Chain:
    """The place of a line among its neighbours: dense numbers, linked sums, lives that keep or rise by one, one run."""

    def __init__(self, run: str, seq: int = -1, total: str = NO_SUM, life: int = 1) -> None:
        """Begin before line 0, or after line `seq` with sum `total`; life 0: whatever life the next line names."""
        self.run = run
        self.nonce: str | None = None
        self.seq, self.sum, self.life = seq, total, life

    def read(self, data: bytes, segment: int, *, first: bool) -> Line:
        """Read the next line; raise `Bad` when it is none or cannot be the next one, `Newer` as `parse` does."""
        line = None if first else ordinary(data, self.seq + 1, self.life, self.sum)
        if line is None:
            line = parse(data)
            self._check(line, segment, first=first)
        self.seq, self.sum, self.life = line.seq, line.sum, line.life
        return line

    def _check(self, line: Line, segment: int, *, first: bool) -> None:
        if line.seq != self.seq + 1:
            raise Bad(f"line {line.seq} stands where line {self.seq + 1} was expected")
        if line.prev != self.sum:
            raise Bad("it does not follow the line before it")
        if line.life != self.life and self.life and (line.life != self.life + 1 or line.seq == 0):
            raise Bad(f"its life is {line.life} after {self.life}")
        if (line.header is not None) is not first:
            raise Bad("a segment begins without a header" if first else "a header stands in the middle of a segment")
        if line.header is not None:
            if line.header.run != self.run:
                raise Bad(f"its header names run {line.header.run!r}")
            if line.header.segment != segment:
                raise Bad(f"its header names segment {line.header.segment}")
            if self.nonce is not None and line.header.nonce != self.nonce:
                raise Bad("its header is of another run with the same name")
            self.nonce = line.header.nonce


class Segment(msgspec.Struct):
    """What was found in one file. Offsets and sizes are bytes.

    `end` is where its good lines end, `rest` where its bytes end once trailing NULs are dropped, `size` where the file
    ends. `why` says why the line at `end` is not good ("" when there is none), `torn` that it may be a save that never
    finished, `good_after` how many good lines lie after it.
    """

    number: int
    lines: list[Line] = []
    ends: array[int] = msgspec.field(default_factory=lambda: array("Q"))
    end: int = 0
    rest: int = 0
    size: int = 0
    why: str = ""
    torn: bool = False
    good_after: int = 0

    @property
    def file(self) -> str:
        """The file's name in the run's directory."""
        return segment_name(self.number)

    def take(self, data: bytes, chain: Chain, *, first: bool) -> bool:
        """Add the next line; False when it is none, or not the next, and `why` says so. Raises `OtherFormat`."""
        try:
            self.lines.append(chain.read(data, self.number, first=first))
        except Bad as error:
            self.why = str(error)
            return False
        except Newer as error:
            raise OtherFormat(chain.run, error.format) from None
        self.end += len(data)
        self.ends.append(self.end)
        return True


class _Piece(msgspec.Struct, frozen=True, gc=False):
    """Bytes up to a newline, that included.

    `data` is empty when they are longer than a line may be; `had_nul`: what was dropped then held a NUL.
    """

    data: bytes
    is_whole: bool
    had_nul: bool = False

    @property
    def has_nul(self) -> bool:
        return self.had_nul or b"\0" in self.data


def read_segment(disk: Disk, fd: int, number: int, chain: Chain) -> Segment:
    """Read a segment's lines as far as they are good and follow the chain, then say what lies after them.

    Raises `OtherFormat` for a header of another format, `OSError` when the disk fails.
    """
    found = Segment(number)
    _take_good_lines(disk, fd, found, chain)
    while True:
        found.size = max(disk.fstat(fd).st_size, found.end)
        found.rest = _without_nuls(disk, fd, found.end, found.size)
        if found.rest == found.end:
            found.why, found.torn, found.good_after = "", False, 0
            break
        _judge_rest(disk, fd, found)
        # A writer at work may have finished the line since it was looked at; each such line is progress.
        if not _take_good_lines(disk, fd, found, chain):
            break
    return found


def count_good(content: Iterable[bytes]) -> int:
    """Count the lines of a file that are good by themselves, wherever they stand."""
    return sum(is_good(piece.data) for piece in _pieces(content))


def good_lines(content: Iterable[bytes]) -> Iterator[Line]:
    """Give the lines of a file that are good by themselves, whatever they follow."""
    for piece in _pieces(content):
        with contextlib.suppress(Bad, Newer):
            yield parse(piece.data[piece.data.rfind(b"\0") + 1 :])


def _take_good_lines(disk: Disk, fd: int, found: Segment, chain: Chain) -> bool:
    """Read on after `found.end` as far as lines are good; tell whether there were any."""
    before, said = found.end, found.why
    for piece in _pieces(chunks(disk, fd, before, size=CHUNK // 4)):  # more would not stay in a processor's cache
        if not piece.is_whole or not piece.data:
            found.why = f"a line is longer than {MAX_LINE} bytes" if piece.is_whole else "a line has no newline"
            break
        if not found.take(piece.data, chain, first=found.end == 0):
            break
    if found.end == before and said:  # nothing new: what was said about this place stands
        found.why = said
    return found.end > before


def _without_nuls(disk: Disk, fd: int, start: int, end: int) -> int:
    """Find where the bytes end once trailing NULs are dropped; `start` when nothing else is there."""
    while end > start:
        begin = max(start, end - CHUNK)
        data = disk.pread(fd, end - begin, begin)
        if data != bytes(len(data)):  # a tenth of the time that it takes to strip them one by one
            return begin + len(data.rstrip(b"\0"))
        end = begin
    return start


def _judge_rest(disk: Disk, fd: int, found: Segment) -> None:
    pieces = _pieces(chunks(disk, fd, found.end, found.rest))
    first = next(pieces, _Piece(b"", is_whole=False, had_nul=True))
    unfinished = first.has_nul or not first.is_whole
    whole_but_wrong = False
    found.good_after = int(first.has_nul and is_good(first.data))
    for piece in pieces:
        if is_good(piece.data):
            found.good_after += 1
        elif piece.is_whole and not piece.has_nul and piece.data.startswith(_LINE_START):
            whole_but_wrong = True
    found.torn = unfinished and not found.good_after and not whole_but_wrong
    if first.has_nul:
        found.why = "a line has a hole of NULs"
    if found.good_after and unfinished:
        found.why += ", with good lines after it"
    elif whole_but_wrong and unfinished:
        found.why += ", with a whole line after it whose sum is wrong"


def _pieces(content: Iterable[bytes]) -> Iterator[_Piece]:
    held, had_nul, is_long = b"", False, False
    for chunk in content:
        held, begin = held + chunk, 0
        while end := held.find(b"\n", begin) + 1:
            line, begin = held[begin:end], end
            if is_long or len(line) > MAX_LINE:
                yield _Piece(b"", is_whole=True, had_nul=had_nul or b"\0" in line)
                had_nul = is_long = False
            else:
                yield _Piece(line, is_whole=True)
        held = held[begin:]
        if len(held) > MAX_LINE:
            had_nul, is_long, held = had_nul or b"\0" in held, True, b""
    if held or is_long:
        yield _Piece(b"" if is_long else held, is_whole=False, had_nul=had_nul or b"\0" in held)


def is_good(data: bytes) -> bool:
    """Tell whether a line is good by itself, be it after a hole: no line of ours holds a NUL."""
    try:
        parse(data[data.rfind(b"\0") + 1 :])
    except Bad:
        return False
    except Newer:
        pass
    return True
