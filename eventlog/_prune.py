"""Pruning a directory: a run that goes no further is removed, and leaves a tombstone.

The tombstone is durable before anything of its run is touched. Then the run's directory is moved beside the tombstones
under a temporary name, in one step, and when that is durable its files are removed. So at every moment a run is there
whole, or its tombstone is; what a crash leaves is disposable, and the next pruning removes it. Whoever prunes shares a
lock on the directory of tombstones; only who has it alone removes what others left.

Whoever prunes may do so because the disk is full, and a tombstone needs room. So where there is none, the statuses of
the runs that are to go make some: they are read from the logs then.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from eventlog import _listing, _tombstone
from eventlog._atomic_write import remove, write_atomically
from eventlog._disk import Disk
from eventlog._files import Files
from eventlog._lock import take
from eventlog._names import STATUS, TEMPORARY, check_id, is_id
from eventlog._os_errors import reading, writing
from eventlog._own import Within, let_go, open_run
from eventlog._scan import once, place
from eventlog._tombstone import Tombstone
from eventlog.errors import DiskFailed, DiskFull, LogError

T = TypeVar("T")
_TRIES: Final = 1000
_MOMENT: Final = 0.005


def prune(
    disk: Disk, runs: Path, ended: Mapping[str, dict[str, str]], *, force: bool
) -> Iterator[tuple[str, LogError | None]]:
    """Remove runs, each leaving a tombstone with these words; give each with what kept it here, or None."""
    with contextlib.ExitStack() as held:
        makes_room = functools.partial(_make_room, disk, runs, ended, force=force)
        own_disk = _again(lambda: held.enter_context(_opened(disk, runs, force=force)), makes_room)
        for run, words in ended.items():
            try:
                one = functools.partial(_pruned, disk, own_disk, runs / check_id(run), words, force=force)
                _again(one, makes_room)
            except LogError as error:
                yield run, error
            else:
                yield run, None


def _again(act: Callable[[], T], makes_room: Callable[[], None]) -> T:
    try:
        return act()
    except DiskFull:
        makes_room()
        return act()


def _make_room(disk: Disk, runs: Path, ended: Iterable[str], *, force: bool) -> None:
    for run in filter(is_id, ended):
        with contextlib.suppress(OSError, LogError):
            own = open_run(disk, runs, runs / run, force=force)
            try:
                disk.unlink(runs / run / STATUS, within=own)
            finally:
                let_go(disk, own)


def forget(disk: Disk, runs: Path, before: datetime, *, force: bool, dry: bool) -> list[str]:
    """Remove the tombstones of runs that ended before a time, unless `dry`; give their ids. An unreadable one stays."""
    stones = ((run, _tombstone.read(disk, runs, run)) for run in names(disk, runs))
    found = [run for run, stone in stones if stone is not None and stone.at is not None and stone.at < before]
    if found and not dry:
        with _opened(disk, runs, force=force) as own_disk, writing("", runs / _tombstone.PLACE):
            for run in found:
                with contextlib.suppress(FileNotFoundError):
                    own_disk.unlink(runs / _tombstone.PLACE / run)
            disk.sync_dir(runs / _tombstone.PLACE)
    return found


def names(disk: Disk, runs: Path) -> list[str]:
    """List the ids of the runs that were pruned. Raises `DiskFailed` where that can't be told."""
    with reading(runs / _tombstone.PLACE):
        try:
            return [name for name in disk.list(runs / _tombstone.PLACE) if is_id(name)]
        except (FileNotFoundError, NotADirectoryError):
            return []


def _pruned(disk: Disk, own_disk: Disk, directory: Path, words: dict[str, str], *, force: bool) -> None:
    """Remove one run; `own_disk` works in the directory of tombstones."""
    runs, run = directory.parent, directory.name
    place(disk, runs, run)
    stones = runs / _tombstone.PLACE
    with writing(run, directory), contextlib.ExitStack() as undo:
        lock = take(disk, directory, run, open_run(disk, runs, directory, force=force))
        undo.callback(lock.release)
        reading = once(disk, directory, run, lambda _: True)
        if reading.damage is not None:
            raise reading.damage
        if reading.strangers:
            raise DiskFailed(str(directory), f"it holds files that are not ours: {', '.join(reading.strangers)}")
        first = _listing.first_line(Files(disk, directory), 1)
        parent = first.header.forked_from if first is not None and first.header is not None else None
        last = reading.lines[-1]
        stone = Tombstone(at=last.at, sum=last.sum, parent=parent, words=words)
        data = _tombstone.encode(run, last.seq, stone)
        lock.wipe()  # on a full disk, for the tombstone
        disk.close(write_atomically(own_disk, stones, run, [data], lock.check))
        disk.sync_dir(stones)
        moved = stones / f"{TEMPORARY}{disk.random(8)}"
        disk.rename(directory, moved)
        disk.sync_dir(runs)
        disk.sync_dir(stones)
        remove(disk, moved)


@contextlib.contextmanager
def _opened(disk: Disk, runs: Path, *, force: bool) -> Iterator[Disk]:
    """Make the directory of tombstones, durably, without what a crash left in it; give a disk that works within it."""
    stones = runs / _tombstone.PLACE
    with writing("", stones), contextlib.ExitStack() as undo:
        fd = open_run(disk, runs, stones, force=force, make=True)
        undo.callback(disk.close, fd)
        disk.sync_dir(runs)
        if disk.try_lock(fd):
            for name in disk.list(stones):
                if name.startswith(TEMPORARY):
                    remove(disk, stones / name)
        for _ in range(_TRIES):
            if disk.try_lock(fd, shared=True):
                break
            disk.pause(_MOMENT)
        else:
            raise DiskFailed(str(stones), "another process holds its lock")
        yield Within(disk, stones, fd)
