"""The status: what a run's last writer said of it, in words that mean nothing here, so that a list reads no log.

It is a projection: the log alone is the truth, and whatever is not believed is read from there. It is written without
a sync, just before the head says closed, and believed only while nothing can have moved since: the head is closed and
names the status's line and sum, the status names this run, and the last segment ends where the head says. Anything
weaker forgets lines: a process that dies between a line's sync and its head leaves head and status at the line before.
"""

from pathlib import Path
from typing import Final

import msgspec

from eventlog import _head, _snapshot
from eventlog._atomic_write import write_atomically
from eventlog._disk import Disk
from eventlog._names import HEAD, STATUS, segment_name
from eventlog._os_errors import pass_on
from eventlog.errors import NotStorable

MOST: Final = 64 * 1024
"""Bytes: a longer status is neither written nor read, and its log is read instead."""
_FORMAT: Final = 1


class Said(msgspec.Struct, frozen=True):
    """What a status says in `words`, as JSON, and the `head`, in the file `at`, that says that it may be believed."""

    at: Path
    head: bytes
    words: bytes


def write(disk: Disk, directory: Path, run: str, seq: int, total: str, words: msgspec.Struct) -> None:
    """Say `words` of the line `seq` whose sum is `total`, the last one. A status that cannot be written is missing."""
    try:
        data = _snapshot.encode(run, seq, total, _FORMAT, msgspec.json.encode(words))
        if len(data) <= MOST:
            disk.close(write_atomically(disk, directory, STATUS, [data], sync=False))
    except (OSError, NotStorable) as error:
        pass_on(error)


def believed(disk: Disk, place: Path, run: str, before: Said | None = None) -> Said | None:
    """Give what the status of a run in a place says, or None when it is missing or may not be believed.

    While the head has the bytes that it had `before`, closed, nobody has opened the run, and nothing else is read.
    """
    try:
        at = before.at if before is not None else place / run / HEAD  # ten thousand paths take longer than their files
        data = _small(disk, at, _head.SIZE)
        if before is not None and data == before.head:
            return before
        directory = at.parent
        head = _head.decode(data)
        if head is None or not head.closed:
            return None
        status = _snapshot.decode(_small(disk, directory / STATUS, MOST))
        if status is None or (status.run, status.seq, status.sum, status.version) != (run, head.seq, head.sum, _FORMAT):
            return None
        if disk.stat(directory / segment_name(head.segment)).st_size == head.offset:
            try:
                disk.stat(directory / segment_name(head.segment + 1))
            except FileNotFoundError:
                return Said(at, data, status.state)
    except OSError:
        pass
    return None


def _small(disk: Disk, path: Path, most: int) -> bytes:
    """Give a file of at most `most` bytes, or one byte more of a larger one."""
    fd = disk.open(path)
    try:
        return disk.pread(fd, most + 1, 0)
    finally:
        disk.close(fd)
