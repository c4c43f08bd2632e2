"""What can be said of a run without reading it whole: its first line, the last of a segment, what openers cut off."""

import hashlib
from typing import Final

import msgspec

from eventlog._files import Files
from eventlog._frame import MAX_LINE, Bad, Newer, parse
from eventlog._line import Line
from eventlog._names import segment_name, torn_parts

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
