"""What a disk was asked to do: the record that every simulated power cut is computed from.

A file is known by its inode's number and not by its name, because a rename moves a name and never the bytes, and
bytes synced under one name are durable under the next. Operations that change nothing are not recorded: a cut between
two of them is no other cut.
"""

from typing import Final, NamedTuple

SECTOR: Final = 512
"""The bytes that a disk writes whole or not at all."""
ROOT: Final = 1
"""The number of the directory `/`, which is always there."""


class Wrote(NamedTuple):
    """Bytes were written into a file, not yet durable."""

    file: int
    offset: int
    data: bytes


class Sized(NamedTuple):
    """A file was cut or extended to `size` bytes, not yet durable."""

    file: int
    size: int


class Synced(NamedTuple):
    """A sync returned: a file's bytes and its size are durable, or a directory's names."""

    number: int


class Change(NamedTuple):
    """In a directory a name came to stand for a file or directory, or (None) for nothing."""

    directory: int
    name: str
    file: int | None


class Named(NamedTuple):
    """Names changed in one step: one for a file made or removed, two for a rename. `directory` is one that was made."""

    changes: tuple[Change, ...]
    directory: int | None = None


Op = Wrote | Sized | Synced | Named
