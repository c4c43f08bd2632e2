"""What a disk was asked to do: the record that every simulated power cut is computed from.

A file is known by its inode's number and not by its name, because a rename moves a name and never the bytes, and
bytes synced under one name are durable under the next. Operations that change nothing are not recorded: a cut between
two of them is no other cut.
"""

from typing import Final, Literal, NamedTuple

SECTOR: Final = 512
"""The bytes that a disk writes whole or not at all."""
ROOT: Final = 1
"""The number of the directory `/`, which is always there."""

Pages = Literal["dirty", "clean", "back"]
"""What a failed sync leaves of the bytes it was to make durable: `dirty`, a later sync may still succeed; `clean`,
readable but forgotten, so that a later sync succeeds and writes nothing (ext4, XFS); `back`, the cache shows the old
bytes again (Btrfs). In the first two any part of them may have reached the disk."""


class Wrote(NamedTuple):
    """Bytes were written into a file, not yet durable."""

    file: int
    name: str
    offset: int
    data: bytes


class Sized(NamedTuple):
    """A file was cut or extended to `size` bytes, not yet durable."""

    file: int
    name: str
    size: int


class Synced(NamedTuple):
    """A sync of a file returned: its bytes and its size are durable."""

    file: int
    name: str


class SyncFailed(NamedTuple):
    """A sync of a file failed."""

    file: int
    name: str
    pages: Pages


class Change(NamedTuple):
    """In a directory a name came to stand for a file or directory, or (None) for nothing."""

    directory: int
    name: str
    file: int | None


class Named(NamedTuple):
    """Names changed in one step: one for a file made or removed, two for a rename. `made` says what is new, if any."""

    name: str
    changes: tuple[Change, ...]
    made: Literal["", "file", "directory"] = ""


class DirectorySynced(NamedTuple):
    """A sync of a directory returned: its names are durable."""

    directory: int
    name: str


Op = Wrote | Sized | Synced | SyncFailed | Named | DirectorySynced


def says(op: Op) -> str:
    """Word an operation for the report of a failing cut."""
    done = "synced"
    match op:
        case Wrote():
            done = f"wrote {len(op.data)} bytes at {op.offset} of"
        case Sized():
            done = f"set the size to {op.size} of"
        case SyncFailed():
            done = f"failed, leaving the pages {op.pages}, to sync"
        case Named():
            done = f"made the {op.made}" if op.made else "renamed a file to" if len(op.changes) > 1 else "removed"
        case DirectorySynced():
            done = "synced the directory"
        case Synced():
            pass
    return f"{done} {op.name}"
