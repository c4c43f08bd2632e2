"""The shapes a log is made of: a line, and the header that begins each segment.

They carry no meaning beyond the frame: an event is raw JSON here, so that a log with events this version does not know
is kept whole. Extra fields of a header are ignored when read and kept on disk, because segments are copied as bytes.
"""

from datetime import datetime
from typing import Final, Literal

import msgspec

FORMAT: Final = 2
"""The format that this edition writes and reads; a header names it."""


class Storage(msgspec.Struct, frozen=True):
    """What the log stood on when it was created: the type of file system, and what it can be trusted to survive."""

    kind: str
    survives: Literal["power loss", "killed process"]
    why: str = ""


class Parent(msgspec.Struct, frozen=True):
    """Where a fork comes from: a run, the last line it shares with it, and that line's sum."""

    run: str
    seq: int
    sum: str


class Gap(msgspec.Struct, frozen=True):
    """Where a salvaged log is not whole: lines of the damaged one between `after` and `before` are missing, and why.

    Both are `seq` there; `after` is -1 when its first line is missing, `before` None when no line was taken after.
    """

    after: int
    before: int | None
    why: str


class Salvaged(msgspec.Struct, frozen=True):
    """Where a salvaged log comes from: the damaged run, how many lines were taken from it, and every gap."""

    run: str
    lines: int
    gaps: tuple[Gap, ...]


class Header(msgspec.Struct, frozen=True):
    """What the first line of every segment says. `nonce` is the run's own: the same in each segment, not in a fork.

    `snapshot` is the digest of the state that was made of all lines before, where a segment was begun for a snapshot.
    """

    format: int
    run: str
    nonce: str
    segment: int
    storage: Storage
    parent: Parent | None = None
    salvaged: Salvaged | None = None
    snapshot: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def forked_from(self) -> str | None:
        """The run that this one is a fork of; None for any other, one that was salvaged too."""
        return self.parent.run if self.parent is not None and self.salvaged is None else None


class Line(msgspec.Struct, frozen=True, gc=False):
    """One save: dense `seq` from 0, the `life` that wrote it, its time (UTC), its place in the chain, and its events.

    A header's line has a `header` and no events. `prev` is the `sum` of the line before, 32 zeros for the first.
    """

    seq: int
    life: int
    at: datetime
    prev: str
    events: list[msgspec.Raw]
    sum: str
    header: Header | None = None


class Torn(msgspec.Struct, frozen=True):
    """Bytes of a save that never finished: in `file` from `offset`, `size` bytes (trailing NULs not counted).

    `evidence` names the copy in the run's directory once an opener has cut them; a reader cuts nothing and leaves it
    empty.
    """

    file: str
    offset: int
    size: int
    evidence: str = ""
