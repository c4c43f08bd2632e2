"""Making a run: everything is written and synced before the run exists.

The first segment, with its header and the opening line, gets its name only when it is whole; then the run's directory
is synced, then its parent. A directory without segment, head and snapshot was never a run, so a crash in between
leaves nothing to explain and the id stays free. The head comes last: a head without its segment would look like
damage.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog._ahead import afresh
from eventlog._disk import DISK, Disk
from eventlog._frame import FORMAT, NO_SUM, build, checked, in_utc, parse
from eventlog._head import Head, renewed
from eventlog._line import Header, Line, Parent, Storage
from eventlog._lock import take
from eventlog._log import Log
from eventlog._names import check_id, makes_a_run
from eventlog._storage import look
from eventlog._whole import sweep
from eventlog._words import writing
from eventlog.errors import NotARunsDirectory, RunExists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

FIRST_LIFE: Final = 1


def create(
    runs: str | Path,
    run: str,
    *,
    at: datetime,
    events: Sequence[bytes],
    parent: Parent | None = None,
    force: bool = False,
    disk: Disk = DISK,
) -> Log:
    """Make a run that begins with a header (line 0) and, if there are `events`, an opening line (line 1); open it.

    The directory of runs is made when it is missing. A run that exists has its opening line. `parent` says what a
    fork comes from. Raises `BadRunId` before the file system is touched, `RunExists`, `RunLocked` (another process is
    making it), `NotStorable`, `NetworkStorage` unless `force`, `ReadOnly`, `NotARunsDirectory`, `DiskFull`,
    `DiskFailed` (spec 12, 13, 18).
    """
    check_id(run)
    at = in_utc(run, at)

    def beginning(storage: Storage) -> tuple[list[Line], list[bytes]]:
        return _beginning(run, at, Header(FORMAT, run, disk.random(16), 1, storage, parent), events)

    return founded(Path(runs), run, beginning, FIRST_LIFE, force=force, disk=disk)


def founded(
    runs: Path,
    run: str,
    beginning: Callable[[Storage], tuple[list[Line], list[bytes]]],
    life: int,
    *,
    ready: Callable[[], None] | None = None,
    force: bool,
    disk: Disk,
) -> Log:
    """Make a run of the lines that `beginning` gives for what it stands on, and of their bytes; open it as `life`.

    `ready` is called when all of it is durable and the run does not exist yet.
    """
    with writing(run, runs), contextlib.ExitStack() as undo:
        storage = look(disk, runs, force=force)
        if not _made(disk, runs) and storage.survives == "power loss":
            storage = Storage(storage.kind, "killed process", "the file system refuses to sync directories")
        lines, content = beginning(storage)
        directory = _claimed(disk, runs, run)
        lock = take(disk, directory, run)
        undo.callback(lock.release)
        if _is_run(disk, directory):
            raise RunExists(run, str(runs))
        sweep(disk, directory)
        segment = afresh(disk, directory, 1, content, run, ready)
        undo.callback(segment.release)
        disk.sync_dir(directory)
        disk.sync_dir(runs)
        last = lines[-1]
        witness = renewed(disk, directory, Head(last.seq, last.sum, 1, segment.end, closed=False))
        undo.callback(witness.release)
        disk.sync_dir(directory)
        log = Log(run, directory, lines, life, lock=lock, segment=segment, witness=witness, disk=disk)
        undo.pop_all()
    return log


def _beginning(run: str, at: datetime, header: Header, events: Sequence[bytes]) -> tuple[list[Line], list[bytes]]:
    content = build(0, FIRST_LIFE, at, NO_SUM, header)
    lines = [parse(content)]
    if events:
        opening = build(1, FIRST_LIFE, at, lines[0].sum, events)
        lines.append(checked(run, opening, events))
        content += opening
    return lines, [content]


def _made(disk: Disk, runs: Path) -> bool:
    """Make the directory of runs if it is missing, durable up to the first that existed; False: syncs are refused."""
    missing = []
    at = runs
    while not _exists(disk, at):
        missing.append(at)
        at = at.parent
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process makes its first run at the same time
            disk.mkdir(path)
        disk.sync_dir(path.parent)
    try:
        return disk.sync_dir(runs)
    except NotADirectoryError:
        raise NotARunsDirectory(str(runs), "it is not a directory") from None


def _claimed(disk: Disk, runs: Path, run: str) -> Path:
    """Make the run's directory, or take one that never became a run."""
    directory = runs / run
    try:
        disk.mkdir(directory)
    except FileExistsError:
        try:
            taken = disk.is_link(directory) or _is_run(disk, directory)
        except NotADirectoryError:
            taken = True
        if taken:
            raise RunExists(run, str(runs)) from None
    return directory


def _is_run(disk: Disk, directory: Path) -> bool:
    return any(makes_a_run(name) for name in disk.list(directory))


def _exists(disk: Disk, path: Path) -> bool:
    try:
        disk.stat(path)
    except FileNotFoundError:
        return False
    return True
