"""What can be said of a run without reading it whole: the ends of its segments, what openers cut off, where to begin.

A reading may begin after the newest snapshot that the log confirms and that its reader accepts. A snapshot is confirmed
by the segment that was begun after it: its header carries the number after the snapshot's and the snapshot's sum. The
lines before are then not read. But each earlier segment must be there and end with a whole line, which the header of
the next one continues: so a segment that is missing, cut, or longer is noticed, and only a change within one is left to
those who read everything. A head that is about an earlier line is not compared with it: `verify` does that. Where
anything is unclear the answer is None, and the log is read from its first line, which finds out.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from eventlog import _snapshot
from eventlog._files import Files
from eventlog._frame import MAX_LINE, Bad, Newer, parse
from eventlog._line import Line
from eventlog._names import segment_name, torn_parts
from eventlog._snapshot import Snapshot

_PIECE: Final = 4096
_END: Final = 64 * 1024
_MOST_TORN: Final = 2 * MAX_LINE


class TornCopy(msgspec.Struct, frozen=True):
    """A copy of bytes that an opener cut from `segment`; `intact` tells whether it still is what was cut."""

    file: str
    segment: int
    data: bytes
    intact: bool


def first_line(files: Files, segment: int) -> Line | None:
    """Read the first line of a segment, and no more of it; None where there is no whole one."""
    data = b""
    try:
        for piece in files.pieces(segment_name(segment), size=_PIECE):
            data += piece
            if b"\n" in piece or len(data) > MAX_LINE:
                break
        return parse(data[: data.find(b"\n") + 1])
    except (OSError, Bad, Newer):
        return None


def last_line(files: Files, segment: int) -> Line | None:
    """Read the line with which a segment ends; None when it does not end with a whole one."""
    try:
        data = files.end(segment_name(segment), _END)
        if b"\n" not in data[:-1]:
            data = files.end(segment_name(segment), MAX_LINE)
        return parse(data[data.rfind(b"\n", 0, -1) + 1 :])
    except (OSError, Bad, Newer):
        return None


def torn(files: Files) -> list[TornCopy]:
    """Give the copies of torn bytes, by name; what is no regular file counts as empty."""
    found = []
    for name in sorted(files.names()):
        parts = torn_parts(name)
        if parts is not None:
            try:
                data = files.content(name, _MOST_TORN)
            except OSError:
                data = b""
            found.append(TornCopy(name, parts[0], data, intact=hashlib.sha256(data).hexdigest() == parts[1]))
    return found


def find(
    files: Files,
    run: str,
    names: Sequence[str],
    numbers: Sequence[int],
    accept: Callable[[Snapshot], bool],
    findings: list[str],
) -> tuple[Snapshot, int] | None:
    """Find the snapshot to begin after and the first segment to read; None when every line must be read.

    Why a snapshot was passed over goes into `findings`.
    """
    if list(numbers) != list(range(1, len(numbers) + 1)):
        return None
    for snapshot in _snapshot.valid(files, run, names, findings, _snapshot.framed):  # `accept` decodes the state
        segment = _begun_after(files, numbers, snapshot)
        if segment is None or not all(_is_sealed(files, number) for number in range(1, segment)):
            return None
        if accept(snapshot):
            return snapshot, segment
        findings.append(f"the snapshot of line {snapshot.seq} (version {snapshot.version}) was passed over")
    return None


def _begun_after(files: Files, numbers: Sequence[int], snapshot: Snapshot) -> int | None:
    for number in reversed(numbers):
        line = first_line(files, number)
        if line is None or line.seq <= snapshot.seq:
            return None
        if line.seq == snapshot.seq + 1:
            return number if _snapshot.is_made_for(snapshot, line) else None
    return None


def _is_sealed(files: Files, number: int) -> bool:
    """Whether a segment ends with a whole line that the header of the next one continues."""
    last, after = last_line(files, number), first_line(files, number + 1)
    return last is not None and after is not None and (after.seq, after.prev) == (last.seq + 1, last.sum)
