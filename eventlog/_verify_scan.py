"""What a run's directory comes to, as the second reader sees it: lines, segments, torn or damaged, head, snapshots.

The rules are those of the package's docstring, in its order: good lines of every segment, then the head, then the
snapshots, then what is left of the last segment.
"""

from typing import Any

from eventlog import _independent_reader
from eventlog._disk import NotAFile
from eventlog._files import Files
from eventlog._frame import NO_SUM
from eventlog._independent_reader import Later, NotOurs, Piece, Read
from eventlog._line import Torn
from eventlog._names import HEAD, is_ours, segment_name, segment_number, snapshot_name, snapshot_seq
from eventlog._snapshot import MAX_SIZE
from eventlog.errors import LogDamaged

_BEGINS = b'{"seq":'


class Part:
    """One segment: its good lines from `first` to `last`, where they end, where its last byte but NULs ends, its size.

    `why` says why what follows the good lines is damage, "" when it is nothing or `torn`. `after` is the first piece of
    that; good lines may come after it, or a whole line with a wrong sum.
    """

    after: Piece | None = None

    def __init__(self, number: int) -> None:
        self.number, self.file = number, segment_name(number)
        self.first = self.last = -1
        self.lines = self.end = self.rest = self.size = self.good_after = 0
        self.why, self.torn, self.wrong_after = "", False, False

    def add(self, piece: Piece) -> None:
        """Look at a piece that follows the good lines."""
        if piece.solid > piece.start:
            self.rest = piece.solid
        if self.after is None:
            self.after = piece
            self.good_after = int(piece.nul and _is_good(piece))
        elif _is_good(piece):
            self.good_after += 1
        elif piece.whole and not piece.nul and piece.data.startswith(_BEGINS):
            self.wrong_after = True

    def judge(self, *, last: bool) -> None:
        """Say what follows the good lines: nothing, torn, or damage and why. A segment begins with its header, too."""
        self.rest = max(self.rest, self.end)
        if self.after is not None and self.rest > self.end and (self.after.nul or not self.after.whole):
            self.torn = not self.good_after and not self.wrong_after
            self.why = "a line has a hole of NULs" if self.after.nul else "a line has no newline"
            if self.good_after:
                self.why += ", with good lines after it"
            elif self.wrong_after:
                self.why += ", with a whole line after it whose sum is wrong"
        if not self.lines:
            self.why = self.why or "it has no whole header, and a segment gets its name only when that is durable"
        elif not last and self.size > self.end:
            self.why = self.why or "bytes lie after the end of a sealed segment"
        elif self.torn:
            self.why = ""


class Evidence:
    """All that was found. `ends` are the segment and the byte where each line ends; `newer` is a format not known."""

    torn: Torn | None = None
    damage: LogDamaged | None = None
    newer: int | None = None

    def __init__(self, run: str, head: dict[str, Any] | None) -> None:
        self.run, self.head = run, head
        self.lines: list[Read] = []
        self.ends: list[tuple[int, int]] = []
        self.segments: list[Part] = []
        self.snapshots: list[dict[str, Any]] = []
        self.strangers: list[str] = []


def gathered(files: Files, run: str) -> Evidence:
    """Read a run's directory once. The head comes first, so that a live writer only adds to what it promised."""
    found = Evidence(run, _independent_reader.head(_content(files, HEAD) or b""))
    names = files.names()
    found.strangers = sorted(name for name in names if not is_ours(name))
    numbers = sorted(number for name in names if (number := segment_number(name)) is not None)
    try:
        found.damage = _segments(files, found, numbers)
    except Later as later:
        found.newer = later.args[0]
        return found
    if found.damage is None:
        found.damage = _against_head(files, found)
    _snapshots(files, found, names)
    last = found.segments[-1] if found.segments else None
    if found.damage is None and last is not None and last.rest > last.end:
        found.torn = Torn(last.file, last.end, last.rest - last.end)
    return found


def _segments(files: Files, found: Evidence, numbers: list[int]) -> LogDamaged | None:
    if not numbers:
        return LogDamaged(found.run, segment_name(1), 0, 0, 0, "the first segment is missing")
    for number in range(1, numbers[-1] + 1):
        part = Part(number)
        if number not in numbers:
            part.why = "it is missing"
        else:
            try:
                _part(files, found, part)
            except NotAFile:
                part.why = "it is not a regular file"
            else:
                found.segments.append(part)
                part.judge(last=number == numbers[-1])
        if part.why:
            later = [n for n in numbers if n > number]
            good = part.good_after + sum(_good_in(files, segment_name(n)) for n in later)
            return LogDamaged(found.run, part.file, part.end, len(found.lines), good, part.why)
    return None


def _part(files: Files, found: Evidence, part: Part) -> None:
    for piece in _independent_reader.pieces(files.pieces(part.file)):
        part.size = piece.end
        if part.after is None and piece.whole and not piece.nul:
            try:
                _take(found, part, piece)
            except NotOurs as error:
                part.why = str(error)
            else:
                continue
        part.add(piece)


def _take(found: Evidence, part: Part, piece: Piece) -> None:
    """Add a line to the log; raise `NotOurs` when it is not one, or not the next one."""
    line = _independent_reader.line(piece.data)
    last = found.lines[-1] if found.lines else None
    if line.seq != len(found.lines):
        raise NotOurs(f"line {line.seq} stands where line {len(found.lines)} was expected")
    if line.prev != (last.sum if last else NO_SUM):
        raise NotOurs("it does not follow the line before it")
    if line.life not in ({last.life, last.life + 1} if last else {1}):
        raise NotOurs(f"its life is {line.life} after {last.life if last else 0}")
    if (line.header is not None) is not (piece.start == 0):
        raise NotOurs("a header stands where none belongs, or is not where one belongs")
    if line.header is not None:
        nonce = found.lines[0].header["nonce"] if found.lines and found.lines[0].header else line.header["nonce"]
        if (line.header["run"], line.header["segment"], line.header["nonce"]) != (found.run, part.number, nonce):
            raise NotOurs("its header names another run, or another segment")
    part.first = part.first if part.lines else line.seq
    part.last, part.lines = line.seq, part.lines + 1
    part.end = piece.end
    found.lines.append(line)
    found.ends.append((part.number, piece.end))


def _against_head(files: Files, found: Evidence) -> LogDamaged | None:
    head, last, count = found.head, found.segments[-1], len(found.lines)
    if head is None or head["seq"] < 0:
        return None
    seq, offset = head["seq"], head["offset"]
    if seq >= count:
        why = f"the head says that line {seq} was acknowledged, and it is gone"
        return LogDamaged(found.run, last.file, last.end, count, 0, why)
    after = count - 1 - seq
    if found.lines[seq].sum != head["sum"] or found.ends[seq] != (head["segment"], offset):
        why = f"the head names another line {seq} than the log holds"
        return LogDamaged(found.run, segment_name(max(head["segment"], 1)), offset, seq, after, why)
    if head["state"] == "closed" and (after or last.rest > last.end):
        if (
            _independent_reader.head(_content(files, HEAD) or b"") != head
        ):  # the log was opened again while its segments were read
            found.head = {**head, "state": "open"}
            return None
        why = "bytes lie after the end that a closed head names"
        return LogDamaged(found.run, last.file, offset, seq + 1, after, why)
    return None


def _snapshots(files: Files, found: Evidence, names: list[str]) -> None:
    """Look at every snapshot, newest first; one that is good and that the log does not confirm is damage."""
    for seq in sorted((seq for name in names if (seq := snapshot_seq(name)) is not None), reverse=True):
        name = snapshot_name(seq)
        data = _content(files, name)
        if data is None:  # a live writer keeps the newest alone; what is no regular file counts for nothing either
            continue
        read = _independent_reader.snapshot(data)
        why = "it is unreadable" if read is None else ""
        if read is not None and (read["run"], read["seq"]) != (found.run, seq):
            why = f"it is of line {read['seq']} of run {read['run']!r}"
        if read is not None and not why and found.damage is None:
            found.damage = _against_snapshot(found, seq, read)
        known = {"version": read["version"] if read else 0, "size": len(data), "why": why}
        found.snapshots.append({"file": name, "seq": seq, **known})


def _against_snapshot(found: Evidence, seq: int, snapshot: dict[str, Any]) -> LogDamaged | None:
    count, last = len(found.lines), found.segments[-1]
    if seq + 1 >= count:
        why = f"a snapshot of line {seq} was made when line {seq + 1} was durable, and that is gone"
        return LogDamaged(found.run, last.file, last.end, count, 0, why)
    if found.lines[seq].sum != snapshot["sum"]:
        why = f"it was made of another line {seq} than the log holds"
        return LogDamaged(found.run, snapshot_name(seq), 0, seq, count - 1 - seq, why)
    if (found.lines[seq + 1].header or {}).get("snapshot") != snapshot["digest"]:
        why = "its state is not the one that the header after its line names"
        return LogDamaged(found.run, snapshot_name(seq), 0, seq, count - 1 - seq, why)
    return None


def _good_in(files: Files, name: str) -> int:
    """Count the lines of a file that are good by themselves."""
    try:
        return sum(map(_is_good, _independent_reader.pieces(files.pieces(name))))
    except NotAFile:
        return 0


def _is_good(piece: Piece) -> bool:
    """Tell whether a line is good by itself, be it after a hole: no line of ours holds a NUL."""
    try:
        _independent_reader.line(piece.data[piece.data.rfind(b"\0") + 1 :])
    except NotOurs:
        return False
    except Later:
        return True
    return True


def _content(files: Files, name: str) -> bytes | None:
    """Read a file whole; None when there is none, or no regular one."""
    try:
        return files.content(name, MAX_SIZE)
    except (FileNotFoundError, NotAFile):
        return None
