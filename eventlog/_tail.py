"""The lines after a place in a run: whoever follows a run reads on from there, and no byte twice.

A place is the end of a reading. Only what are simply the next good lines is taken. Whatever else is there makes `more`
answer None, and the run is read anew, which finds out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog._frame import Bad, Newer
from eventlog._segment import Chain
from eventlog.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlog._line import Line
    from eventlog._scan import Reading

    Written = Callable[[str, int, int, int], bytes | None]


class Tail:
    """A place in a run, which moves on with each `more`; then `torn` says whether an unfinished save follows."""

    def __init__(self, written: Written, reading: Reading) -> None:
        """Begin at the end of a reading that found no damage; `written` is as a store has it."""
        last = reading.lines[-1] if reading.lines else reading.snapshot
        assert last is not None  # a log has lines, or a snapshot of them
        life = reading.lines[-1].life if reading.lines else 0
        self._chain = Chain(reading.run, last.seq, last.sum, life)
        self._segment, self._offset = reading.segments[-1].number, max(reading.segments[-1].end, 1)
        self._written = written
        self.torn = False

    def more(self) -> list[Line] | None:
        """Give the lines that were written since, or None when the run must be read anew."""
        found: list[Line] = []
        try:
            ended = self._take(found, self._segment, self._offset)
            while ended:
                ended = self._take(found, self._segment + 1, 0)
        except (Bad, Newer, LogError, OSError):
            return None
        return found

    def _take(self, found: list[Line], segment: int, offset: int) -> bool:
        """Take the lines of a segment from a byte on; whether another segment may follow."""
        data = self._written(self._chain.run, segment, max(offset - 1, 0), self._chain.seq)
        if data is None and offset == 0:
            return False
        if data is None or (offset and not data.startswith(b"\n")):
            raise Bad("the line before is gone")
        data, nul, _ = data[offset > 0 :].partition(b"\0")
        *parts, rest = data.split(b"\n")
        for part in parts:
            found.append(self._chain.read(part + b"\n", segment, first=offset == 0))
            offset += len(part) + 1
        if offset == 0:
            raise Bad("it begins without a header")
        self._segment, self._offset, self.torn = segment, offset, bool(rest)
        return not (nul or rest)
