"""Making a run: everything is written and synced before the run exists.

The first segment, with its header and the opening line, gets its name only when it is whole; then the run's directory
is synced, then its parent. A directory without segment, head and snapshot was never a run, so a crash in between
leaves nothing to explain and the id stays free. The head's name comes last: a head without its segment would look like
damage. Its bytes come first, so that whatever finds no room, or no descriptor, finds none before the run exists.

A copy of a run in a directory is for reading and for safe-keeping: its lines byte for byte, and a head. A file named
`copy` is in it, and no writer opens such a directory: a run that goes on in two places would send the keys of its
effects from both. Whoever has lost the run itself may remove that file, and then the copy is the run. It gets its name
when it is whole; until then it is `.tmp-<run id>`, and the next copy of the run begins it anew.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from eventlog import _head, _tombstone
from eventlog._atomic_write import remove, sweep, write_atomically
from eventlog._disk import Disk
from eventlog._file_log import FileLog
from eventlog._files import Files
from eventlog._head import Head, write_head
from eventlog._line import Storage
from eventlog._lock import take
from eventlog._names import COPY, HEAD, TEMPORARY, makes_a_run
from eventlog._new_run import Beginning
from eventlog._os_errors import reading, said, writing
from eventlog._own import Within, let_go, open_run
from eventlog._preallocate import OpenSegment, rewrite_segment
from eventlog._scan import Reading
from eventlog._segment import Segment
from eventlog._storage import look
from eventlog.errors import NotARunsDirectory, ReadOnly, RunExists, RunPruned


def create_run(
    disk: Disk, runs: Path, begin: Beginning, *, ready: Callable[[], None] | None = None, force: bool
) -> FileLog:
    """Make a run, and open it. `ready` is called when all of it is durable and the run does not exist yet."""
    run = begin.run
    with writing(run, runs / run), contextlib.ExitStack() as held, contextlib.ExitStack() as undo:
        storage = look(disk, runs, force=force)
        if not make_place(disk, runs) and storage.survives == "power loss":
            storage = Storage(storage.kind, "killed process", "the file system refuses to sync directories")
        lines, content = begin.framed(storage, disk.random(16))
        directory = _free(disk, runs, run)
        top = disk.open_dir(runs, follow=True)
        held.callback(let_go, disk, top)
        own = open_run(disk, runs, directory, force=force, make=True)
        lock = take(disk, directory, run, own)
        undo.callback(lock.release)
        disk = Within(disk, directory, own)
        if _is_run(disk, directory):
            raise RunExists(run, str(runs))
        sweep(disk, directory)

        segment: OpenSegment

        def last_check() -> None:
            if ready is not None:
                ready()
            lock.check()

        def name_segment() -> None:
            nonlocal segment
            segment = rewrite_segment(disk, directory, 1, [whole], run, last_check)
            undo.callback(segment.release)
            disk.sync_dir(runs, fd=top)
            lock.check()

        whole, last = b"".join(content), lines[-1]
        head = Head(last.seq, last.sum, 1, len(whole), closed=False)
        witness = write_head(disk, directory, head, name_segment)
        undo.callback(witness.release)
        disk.sync_dir(directory)
        log = FileLog(
            directory, Reading(run, lines), begin.life, lock=lock, segment=segment, witness=witness, disk=disk
        )
        undo.pop_all()
    return log


def named(disk: Disk, path: str | Path) -> Path:
    """Give the absolute path of a directory of runs. Raises `NotARunsDirectory` for a name that no directory has."""
    if not _can_be_a_name(str(path)):
        raise NotARunsDirectory(repr(str(path)), "no directory has such a name")
    try:
        return disk.absolute(Path(path))
    except OSError as error:  # the working directory is gone
        raise NotARunsDirectory(str(path), said(error)) from error


def _can_be_a_name(path: str) -> bool:
    try:
        return b"\0" not in path.encode(errors="surrogateescape")
    except UnicodeError:
        return False


def make_place(disk: Disk, runs: Path) -> bool:
    """Make the directory of runs if it is missing, durable up to the first that existed; False: syncs are refused.

    The name of that one is synced too: whoever made it may have died, or failed, before that. What this user cannot
    read was made by somebody else.
    """
    missing, at = list[Path](), runs
    while not _exists(disk, at):
        missing.append(at)
        at = at.parent
    if at != at.parent:
        with contextlib.suppress(PermissionError):
            disk.sync_dir(at.parent)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process makes its first run at the same time
            disk.mkdir(path)
        disk.sync_dir(path.parent)
    try:
        return disk.sync_dir(runs)
    except NotADirectoryError:
        raise NotARunsDirectory(str(runs), "it is not a directory") from None


def _free(disk: Disk, runs: Path, run: str) -> Path:
    """Find a run's directory, which does not exist, or never became a run."""
    directory = runs / run
    try:
        taken = disk.is_link(directory) or _is_run(disk, directory)
    except FileNotFoundError:
        taken = False
    except NotADirectoryError:
        taken = True
    if taken:
        raise RunExists(run, str(runs))
    if isinstance(gone := _tombstone.missing(disk, runs, run), RunPruned):
        raise gone
    return directory


def _is_run(disk: Disk, directory: Path) -> bool:
    return any(makes_a_run(name) for name in disk.list(directory))


def copy_run(files: Files, reading: Reading, disk: Disk, runs: Path) -> None:
    """Copy what was read of an undamaged run into a directory of runs. What fails, or dies, is no run there."""
    directory, unfinished = runs / reading.run, runs / f"{TEMPORARY}{reading.run}"
    with writing(reading.run, runs), contextlib.ExitStack() as held:
        make_place(disk, runs)
        with contextlib.suppress(FileExistsError):
            disk.mkdir(unfinished)
        fd = disk.open_dir(unfinished)
        held.callback(let_go, disk, fd)
        if not _locked(disk, fd):
            raise RunExists(reading.run, str(runs))
        undo = held.enter_context(contextlib.ExitStack())
        undo.callback(remove, disk, unfinished)
        if _exists(disk, directory):
            raise RunExists(reading.run, str(runs))
        for name in disk.list(unfinished):  # of one that died
            remove(disk, unfinished / name)
        disk.close(write_atomically(disk, unfinished, COPY, [b""]))
        for segment in reading.segments:
            disk.close(write_atomically(disk, unfinished, segment.file, _pieces(files, segment)))
        last, end = reading.lines[-1], reading.segments[-1]
        head = Head(last.seq, last.sum, end.number, end.end, closed=True)
        disk.close(write_atomically(disk, unfinished, HEAD, [_head.encode(head)]))
        disk.sync_dir(unfinished, fd=fd)
        disk.rename(unfinished, directory)
        undo.pop_all()
        disk.sync_dir(runs)


def _pieces(files: Files, segment: Segment) -> Iterator[bytes]:
    """Give the bytes of good lines; what keeps them from being read is no error of the place of the copy."""
    with reading(segment.file):
        yield from files.pieces(segment.file, 0, segment.end)


def _locked(disk: Disk, fd: int) -> bool:
    """Tell whether no other process copies this run to there; a backup may be on a file system that has no locks."""
    try:
        return disk.try_lock(fd)
    except OSError:
        return True


def _exists(disk: Disk, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        disk.stat(path)
        return True
    return False


def refuse_copy(disk: Disk, directory: Path) -> None:
    """Raise `ReadOnly` for a copy, in which nobody may write."""
    if COPY in disk.list(directory):
        raise ReadOnly(str(directory), "it is a copy; if the run that it was made of is lost, remove the file `copy`")
