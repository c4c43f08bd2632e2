"""Opening a run for writing again: lock, scan, classify, and make its end safe to write behind, before any effect.

Damage touches nothing on disk. A log that was closed goes on in the same file. Everything else has its last segment
written afresh, for two reasons: after a failed sync the page cache shows bytes that the disk may not have, and a
writer that lost its lock must be fenced, which happens when its file has no name any more. Torn bytes are copied
(never linked: a link would share what the old writer may still write) before they are cut. The head claims no more
than before until the names are durable; otherwise a power cut could leave a head that claims lines of a file whose
name was lost.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog._ahead import afresh, resumed
from eventlog._disk import DISK, SECTOR, Disk
from eventlog._head import NOTHING, Head, renewed
from eventlog._line import Torn
from eventlog._lock import take
from eventlog._log import Log, Since
from eventlog._names import torn_name
from eventlog._scan import once, place
from eventlog._storage import look
from eventlog._whole import put, sweep
from eventlog._words import writing
from eventlog.errors import DiskFailed, ReadOnly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eventlog._ahead import Ahead
    from eventlog._lock import Lock
    from eventlog._scan import Reading
    from eventlog._snapshot import Snapshot

_CHUNK: Final = 1024 * 1024


def open_log(
    runs: str | Path,
    run: str,
    *,
    accept: Callable[[Snapshot], bool] | None = None,
    force: bool = False,
    disk: Disk = DISK,
) -> Log:
    """Open a run for writing, behind everything that was acknowledged.

    `accept` may take a snapshot that the log confirms (asked from the newest on); then `lines` are only those behind
    it, and `snapshot` says which one that is. A snapshot that is missing, rotten or foreign is passed over.

    Raises `BadRunId` before the file system is touched, `NoSuchRun`, `ReadOnly`, `NetworkStorage` unless `force`,
    `RunLocked` at once, `LogDamaged` and `NewerFormat` with nothing on disk touched, `DiskFull`, `DiskFailed` (spec
    13, 14).
    """
    runs = Path(runs)
    directory = place(disk, runs, run)
    with writing(run, directory), contextlib.ExitStack() as undo:
        if not disk.writable(directory):
            raise ReadOnly(str(directory), "this user may not write there, or it is mounted read-only")
        look(disk, directory, force=force)
        lock = take(disk, directory, run)
        undo.callback(lock.release)
        reading = _classified(disk, directory, run, lock, accept)
        sweep(disk, directory)
        cut = _kept(disk, directory, reading)
        segment = _safe_end(disk, directory, reading)
        undo.callback(segment.release)
        was = reading.head or NOTHING
        witness = renewed(disk, directory, Head(was.seq, was.sum, was.segment, was.offset, closed=False))
        undo.callback(witness.release)
        disk.sync_dir(directory)
        disk.sync_dir(runs)
        log = Log(
            run,
            directory,
            reading.lines,
            reading.lines[-1].life + 1,
            lock=lock,
            segment=segment,
            witness=witness,
            since=Since(reading.snapshot, sum(part.end for part in reading.segments[:-1]), reading.findings),
            cut=cut,
            disk=disk,
        )
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


def _kept(disk: Disk, directory: Path, reading: Reading) -> Torn | None:
    """Copy torn bytes to a file named by their digest, durable before they are cut; a copy that exists is done."""
    torn = reading.torn
    if torn is None:
        return None
    path, end = directory / torn.file, torn.offset + torn.size
    whole = hashlib.sha256()
    for piece in _copied(disk, path, torn.offset, end):
        whole.update(piece)
    name = torn_name(reading.segments[-1].number, whole.hexdigest())
    if name not in disk.list(directory):
        disk.close(put(disk, directory, name, _copied(disk, path, torn.offset, end)))
    disk.sync_dir(directory)
    return Torn(torn.file, torn.offset, torn.size, name)


def _safe_end(disk: Disk, directory: Path, reading: Reading) -> Ahead:
    """Give the last segment, safe to write behind: the same file after a proper close, a fresh one otherwise."""
    last = reading.segments[-1]
    path = directory / last.file
    # A file that ends at a sector's edge has no zero behind its last line: while it grew there, a power cut could leave
    # a deleted file's bytes, and those would look like a damaged line.
    if reading.closed and last.end % SECTOR and disk.stat(path).st_nlink == 1:
        return resumed(disk, directory, last.number, last.end, reading.run)
    segment = afresh(disk, directory, last.number, _copied(disk, path, 0, last.end), reading.run)
    with contextlib.ExitStack() as undo:
        undo.callback(segment.release)
        disk.sync_dir(directory)
        undo.pop_all()
    return segment


def _copied(disk: Disk, path: Path, start: int, end: int) -> Iterator[bytes]:
    fd = disk.open(path)
    try:
        while start < end:
            piece = disk.pread(fd, min(_CHUNK, end - start), start)
            if not piece:
                raise DiskFailed(str(path), f"it ended at byte {start} while it was copied up to {end}")
            start += len(piece)
            yield piece
    finally:
        with contextlib.suppress(OSError):  # it was only read; and an abandoned generator could tell nobody
            disk.close(fd)
