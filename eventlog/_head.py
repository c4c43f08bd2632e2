"""The head: a small witness of what was acknowledged, beside the log.

A log alone cannot tell a save that never finished from a last line that was lost later. The head can: it names the
last acknowledged line. It is written without a sync after each save, so after a power cut it is normally older than
the log; it is never newer, because it is written only after the line's sync returned. Therefore a head beyond the
log, or one that names another sum, is proof of damage, and an unreadable head is only a missing one.

It has a fixed size below one sector, and its own check, so a half-written head is unreadable, never wrong.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from eventlog._atomic_write import write_atomically
from eventlog._disk import Disk, NotAFile
from eventlog._files import Files, OpenFile
from eventlog._frame import NO_SUM, digest
from eventlog._names import HEAD

SIZE: Final = 256
_SHAPE = (
    rb'\{"state":"(open|closed)","segment":([1-9][0-9]{0,5}|0),"seq":(-1|0|[1-9][0-9]{0,17}),'
    rb'"offset":(0|[1-9][0-9]{0,17}),"sum":"([0-9a-f]{32})","check":"([0-9a-f]{32})"\} *\n'
)


class Head(msgspec.Struct, frozen=True):
    """The claim: line `seq` with `sum` was acknowledged and ends at byte `offset` of `segment`. -1 claims nothing.

    `closed` says that it was the last line, with no byte after it.
    """

    seq: int
    sum: str
    segment: int
    offset: int
    closed: bool


NOTHING: Final = Head(-1, NO_SUM, 0, 0, closed=False)


def encode(head: Head) -> bytes:
    """Make the head's bytes: one line of JSON, padded with spaces to `SIZE`."""
    state = "closed" if head.closed else "open"
    text = (
        f'{{"state":"{state}","segment":{head.segment},"seq":{head.seq},"offset":{head.offset},"sum":"{head.sum}"'
    ).encode()
    return b"%-*b\n" % (SIZE - 1, b'%b,"check":"%b"}' % (text, digest(text).encode()))


def decode(data: bytes) -> Head | None:
    """Read a head's bytes; None when they are not exactly a head."""
    match = re.fullmatch(_SHAPE, data) if len(data) == SIZE else None
    if match is None or digest(data[: data.index(b',"check":')]) != match[6].decode():
        return None
    return Head(int(match[3]), match[5].decode(), int(match[2]), int(match[4]), closed=match[1] == b"closed")


def read(files: Files) -> Head | None:
    """Read a run's head; None when it is missing or unreadable."""
    try:
        return decode(files.content(HEAD, SIZE))
    except (FileNotFoundError, NotAFile):
        return None


class Witness(OpenFile):
    """The head of a log open for writing."""

    def claim(self, head: Head) -> None:
        """Write a claim in place, unsynced."""
        self._disk.pwrite(self.fd, encode(head), 0)

    def settle(self) -> None:
        """Make the claim durable."""
        self._disk.datasync(self.fd)


def write_head(disk: Disk, directory: Path, head: Head, ready: Callable[[], None]) -> Witness:
    """Write the head anew, synced and, after `ready`, renamed; the caller syncs the directory.

    Afresh, because a writer that lost its lock may still have the old file open: its claims must reach no name.
    """
    return Witness(disk, write_atomically(disk, directory, HEAD, [encode(head)], ready))
