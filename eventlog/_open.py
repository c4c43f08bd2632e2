"""Opening a run for writing again: lock, scan, classify, and make its end safe to write after, before any effect.

Damage touches nothing on disk. A log that was closed goes on in the same file. Everything else has its last segment
rewritten, for two reasons: after a failed sync the page cache shows bytes that the disk may not have, and a
writer that lost its lock must be fenced, which happens when its file has no name any more. Torn bytes are copied
(never linked: a link would share what the old writer may still write) before they are cut. The head claims no more
than before until the names are durable; otherwise a power cut could leave a head that claims lines of a file whose
name was lost.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from eventlog import _inbox
from eventlog._atomic_write import sweep, write_atomically
from eventlog._create import refuse_copy
from eventlog._disk import SECTOR, Disk
from eventlog._file_log import FileLog
from eventlog._files import Files
from eventlog._head import NOTHING, Head, write_head
from eventlog._line import Torn
from eventlog._lock import Lock, take
from eventlog._names import torn_name
from eventlog._os_errors import writing
from eventlog._own import Within, open_run
from eventlog._preallocate import OpenSegment, resumed, rewrite_segment
from eventlog._scan import Reading, once, place
from eventlog._snapshot import Snapshot
from eventlog._storage import look
from eventlog.errors import DiskFailed, ReadOnly


def open_log(
    disk: Disk, runs: Path, run: str, accept: Callable[[Snapshot], bool] | None = None, *, force: bool = False
) -> FileLog:
    """Open a run for writing, after everything that was acknowledged."""
    directory = place(disk, runs, run)
    with writing(run, directory), contextlib.ExitStack() as undo:
        if not disk.writable(directory):
            raise ReadOnly(str(directory), "this user may not write there, or it is mounted read-only")
        refuse_copy(disk, directory)
        look(disk, directory, force=force)
        own = open_run(disk, runs, directory, force=force)
        lock = take(disk, directory, run, own)
        undo.callback(lock.release)
        disk = Within(disk, directory, own)
        reading = _classified(disk, directory, run, lock, accept)
        sweep(disk, directory)
        _inbox.tidy(disk, directory)
        cut = _kept(disk, directory, reading, lock)
        segment = _safe_end(disk, directory, reading, lock)
        undo.callback(segment.release)
        was = reading.head or NOTHING
        witness = write_head(disk, directory, Head(was.seq, was.sum, was.segment, was.offset, closed=False), lock.check)
        undo.callback(witness.release)
        disk.sync_dir(directory)
        disk.sync_dir(runs)
        life = reading.lines[-1].life + 1
        log = FileLog(directory, reading, life, lock=lock, segment=segment, witness=witness, cut=cut, disk=disk)
        undo.pop_all()
    return log


def _classified(
    disk: Disk, directory: Path, run: str, lock: Lock, accept: Callable[[Snapshot], bool] | None
) -> Reading:
    """Read the run under the lock. When it cannot be opened, leave even the lock file as it was found."""
    with contextlib.ExitStack() as refused:
        refused.callback(lock.put_back)
        reading = once(disk, directory, run, accept)
        if reading.damage is not None:
            raise reading.damage
        refused.pop_all()
    return reading


def _kept(disk: Disk, directory: Path, reading: Reading, lock: Lock) -> Torn | None:
    """Copy torn bytes to a file named by their digest, durable before they are cut; a copy that exists is done."""
    torn = reading.torn
    if torn is None:
        return None
    end = torn.offset + torn.size
    whole = hashlib.sha256()
    for piece in _copied(disk, directory, torn.file, torn.offset, end):
        whole.update(piece)
    name = torn_name(reading.segments[-1].number, whole.hexdigest())
    if name not in disk.list(directory):
        disk.close(
            write_atomically(disk, directory, name, _copied(disk, directory, torn.file, torn.offset, end), lock.check)
        )
    disk.sync_dir(directory)
    return Torn(torn.file, torn.offset, torn.size, name)


def _safe_end(disk: Disk, directory: Path, reading: Reading, lock: Lock) -> OpenSegment:
    """Give the last segment, safe to write after: the same file after a proper close, a fresh one otherwise."""
    last = reading.segments[-1]
    # A file that ends at a sector's edge has no zero after its last line: while it grew there, a power cut could leave
    # a deleted file's bytes, and those would look like a damaged line.
    if reading.closed and last.end % SECTOR and disk.stat(directory / last.file).st_nlink == 1:
        return resumed(disk, directory, last.number, last.end, reading.run)
    content = _copied(disk, directory, last.file, 0, last.end)
    return rewrite_segment(disk, directory, last.number, content, reading.run, lock.check)


def _copied(disk: Disk, directory: Path, file: str, start: int, end: int) -> Iterator[bytes]:
    for piece in Files(disk, directory).pieces(file, start, end):
        start += len(piece)
        yield piece
    if start < end:
        raise DiskFailed(str(directory / file), f"it ended at byte {start} while it was copied up to {end}")
