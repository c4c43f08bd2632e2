"""A copy of a run in a directory, for reading and for safe-keeping: its lines byte for byte, and a head.

A file named `copy` is in it, and no writer opens such a directory: a run that goes on in two places would send the keys
of its effects from both. Whoever has lost the run itself may remove that file, and then the copy is the run. It is
there first, and the head last, so an unfinished copy is never opened either.
"""

from pathlib import Path

from eventlog import _head
from eventlog._atomic_write import write_atomically
from eventlog._create import make_place
from eventlog._disk import Disk
from eventlog._files import Files
from eventlog._head import Head
from eventlog._names import COPY, HEAD
from eventlog._os_errors import writing
from eventlog._scan import Reading
from eventlog.errors import ReadOnly, RunExists


def copy(files: Files, reading: Reading, disk: Disk, runs: Path) -> Path:
    """Copy what was read of an undamaged run into a directory of runs; give the run's directory there."""
    directory = runs / reading.run
    with writing(reading.run, runs):
        make_place(disk, runs)
        try:
            disk.mkdir(directory)
        except FileExistsError:
            raise RunExists(reading.run, str(runs)) from None
        disk.close(write_atomically(disk, directory, COPY, [b""]))
        disk.sync_dir(directory)
        for segment in reversed(reading.segments):
            pieces = files.pieces(segment.file, 0, segment.end)
            disk.close(write_atomically(disk, directory, segment.file, pieces))
        last, end = reading.lines[-1], reading.segments[-1]
        head = Head(last.seq, last.sum, end.number, end.end, closed=True)
        disk.close(write_atomically(disk, directory, HEAD, [_head.encode(head)]))
        disk.sync_dir(directory)
        disk.sync_dir(runs)
    return directory


def refuse(disk: Disk, directory: Path) -> None:
    """Raise `ReadOnly` for a copy, in which nobody may write."""
    if COPY in disk.list(directory):
        raise ReadOnly(str(directory), "it is a copy of a run, which goes on where it lives; see `refold copy --help`")
