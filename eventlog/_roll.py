"""The roll: one segment ends at its last newline, and only then the next one has a name.

The next segment is written whole under a temporary name first: whatever goes wrong until then (no room, no descriptor
left) leaves the log alive in a segment that still ends in zeros. Then the lock and the segment are checked, the segment
is cut to its last newline and the cut is synced, even if nothing was cut; then comes the rename. A reader that sees the
next segment takes the end of this one for final. From the cut on an error leaves the writer dead: nobody knows what the
disk has, and a segment that grew again from where it was cut could show a deleted file's bytes after a power cut. The
directory is synced before anything is written into the next segment, because a line in a file whose name is lost is
lost.
"""

import contextlib
from pathlib import Path

from eventlog._disk import Disk
from eventlog._lock import Lock
from eventlog._names import segment_name
from eventlog._os_errors import refused
from eventlog._preallocate import OpenSegment, rewrite_segment


def roll_segment(disk: Disk, directory: Path, sealed: OpenSegment, header: bytes, lock: Lock, run: str) -> OpenSegment:
    """Seal a segment and begin the next one with its header's line, durable under its name.

    Raises `DiskFull` or `DiskFailed` with the old segment still good to write in; after any other error nobody knows.
    """
    is_sealing = False

    def seal() -> None:
        nonlocal is_sealing
        lock.check()
        sealed.guard()
        is_sealing = True
        sealed.cut()

    try:
        segment = rewrite_segment(disk, directory, sealed.number + 1, [header], run, seal)
    except OSError as error:
        if is_sealing:
            raise
        raise refused(error, run, directory / segment_name(sealed.number + 1)) from error
    with contextlib.ExitStack() as undo:
        undo.callback(segment.release)
        disk.sync_dir(directory)
        lock.check()
        undo.pop_all()
    return segment
