"""The roll: one segment ends at its last newline, and only then the next one has a name.

A reader that sees the next segment takes the end of this one for final, so the cut is durable before the name appears,
even if nothing was cut. The next segment appears whole, with its header; its directory is synced before anything is
written into it, because a line in a file whose name is lost is lost.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from eventlog._ahead import afresh
from eventlog._disk import FULL
from eventlog._words import said
from eventlog.errors import DiskFull

if TYPE_CHECKING:
    from pathlib import Path

    from eventlog._ahead import Ahead
    from eventlog._disk import Disk
    from eventlog._lock import Lock


def behind(disk: Disk, directory: Path, sealed: Ahead, header: bytes, lock: Lock, run: str) -> Ahead:
    """Seal a segment and begin the next one with its header's line, durable under its name.

    Raises `DiskFull` with the old segment still good to write in; after any other error nobody knows.
    """
    sealed.cut()
    with contextlib.ExitStack() as undo:
        try:
            segment = afresh(disk, directory, sealed.number + 1, [header], run)
        except OSError as error:
            if error.errno in FULL:  # only a temporary file was touched
                raise DiskFull(run, said(error)) from error
            raise
        undo.callback(segment.release)
        disk.sync_dir(directory)
        lock.check()
        undo.pop_all()
    return segment
