"""The store that is a directory of runs on this machine, and how `runs=` becomes a store.

A relative path is made absolute once, when the store is made: what changes the working directory later (a tool that
calls `os.chdir`) moves no run.
"""

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from eventlog import _inbox, _lock, _prune, _status, _tombstone
from eventlog._bell import Bell, Presence
from eventlog._create import create_run, make_place, named, refuse_copy
from eventlog._disk import DISK, Disk
from eventlog._files import Files
from eventlog._inbox import Unread
from eventlog._lock import Holder
from eventlog._log import Log
from eventlog._names import INBOX, check_id, is_id, segment_name
from eventlog._new_run import Beginning
from eventlog._open import open_log
from eventlog._os_errors import said, writing
from eventlog._own import open_run
from eventlog._scan import Reading, place, scan
from eventlog._snapshot import Snapshot
from eventlog._store import Runs, Store
from eventlog.errors import LogError, NotARunsDirectory

_LAID = 64 * 1024
"""Bytes that are read at a time of a run that is followed."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|postgres(?:ql)?:")  # a `Path` of a URL has lost one of its slashes


class Directory(Store):
    """A directory of runs: each run is a directory in it. It is made when the first run is."""

    def __init__(self, path: str | Path, *, force: bool = False, disk: Disk = DISK) -> None:
        """Name a directory; nothing is looked at yet.

        Args:
            path: The directory.
            force: Accept a network file system, where a lock may not exclude another machine: only for a directory
                that one machine alone uses. Accept directories that somebody else may write to, too.
            disk: The operations on the operating system; another one is for tests.

        Raises:
            NotARunsDirectory: No directory can have such a name, or it is relative, and the working directory is gone.
        """
        self.path = named(disk, path)
        self.disk = disk
        self._shown = str(path)
        self._force = force
        self._said: dict[str, _status.Said] = {}

    def __str__(self) -> str:
        return self._shown

    def create_run(self, begin: Beginning, *, ready: Callable[[], None] | None = None) -> Log:
        return create_run(self.disk, self.path, begin, ready=ready, force=self._force)

    def open(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Log:
        with self._there(run):
            return open_log(self.disk, self.path, run, accept, force=self._force)

    def scan(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Reading:
        with self._there(run):
            return scan(self.disk, self.path, run, accept)

    def written(self, run: str, segment: int, offset: int, seq: int) -> bytes | None:  # noqa: ARG002 (a byte is enough)
        """Read the file from there up to the zeros that are laid ahead."""
        found = bytearray()
        try:
            for piece in Files(self.disk, self.path / check_id(run)).pieces(segment_name(segment), offset, size=_LAID):
                found += piece
                if b"\0" in piece:
                    break
        except FileNotFoundError:
            return None
        return bytes(found)

    def files(self, run: str) -> Files:
        return Files(self.disk, place(self.disk, self.path, run))

    def names(self) -> list[str]:
        """List the names in the directory that can be run ids; one that does not exist holds none."""
        found = self._list(self.path)
        for gone in {*self._said}.difference(found):
            self._said.pop(gone, None)
        return [name for name in found if is_id(name)]

    def statuses(self, among: Iterable[str] | None = None) -> Iterator[tuple[str, bytes | None, bool]]:
        said, self._said = self._said, {} if among is None else self._said
        for name in self.names() if among is None else among:
            known = among is None or is_id(name)
            found = _status.believed(self.disk, self.path, name, said.get(name)) if known else None
            if found is not None:
                self._said[name] = found
            yield name, found.words if found is not None else None, False

    def holder(self, run: str) -> Holder | None:
        return _lock.holder(self.disk, self.path / check_id(run))

    def bell(self) -> Bell:
        return Bell(self.disk, self.path / ".bell")

    def notes(self) -> set[str]:
        return set(self._list(self.path / ".notified"))

    def note(self, name: str) -> None:
        place = self.path / ".notified"
        try:
            with contextlib.suppress(FileExistsError):
                self.disk.mkdir(place)
            self.disk.close(self.disk.open(place / check_id(name), write=True, create=True))
        except OSError as error:
            raise NotARunsDirectory(str(self), said(error)) from error

    def unnote(self, names: Collection[str]) -> None:
        for name in filter(is_id, names):
            with contextlib.suppress(OSError):  # it is gone, or stays a little longer
                self.disk.unlink(self.path / ".notified" / name)

    def enter(self) -> Presence:
        """Hold the lock on a file in `.workers`, a name that no run has; the directory is made if it is missing."""
        try:
            make_place(self.disk, self.path)
        except OSError as error:
            try:
                self.disk.stat(self.path)  # one that is there may be that of somebody else
            except OSError:
                raise NotARunsDirectory(str(self), said(error)) from error
        return Presence(self.disk, self.path / ".workers")

    def post(self, run: str, name: str, request: bytes) -> bool:
        """Link it into the directory `inbox` of the run's, which only who may open the run makes."""
        directory = place(self.disk, self.path, run)
        with writing(run, directory):
            refuse_copy(self.disk, directory)
            self.disk.close(open_run(self.disk, self.path, directory, force=self._force))
            return _inbox.post(self.disk, directory, run, name, request)

    def inbox(self, run: str) -> Unread:
        return _inbox.unread(self.disk, place(self.disk, self.path, run) / INBOX)

    def request(self, run: str, name: str) -> bytes | str | None:
        return _inbox.read(self.disk, place(self.disk, self.path, run), name)

    def prune(self, ended: Mapping[str, dict[str, str]]) -> Iterator[tuple[str, LogError | None]]:
        return _prune.prune(self.disk, self.path, ended, force=self._force)

    def forget(self, before: datetime, *, dry: bool = False) -> list[str]:
        return _prune.forget(self.disk, self.path, before, force=self._force, dry=dry)

    def _list(self, path: Path) -> list[str]:
        try:
            return self.disk.list(path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise NotARunsDirectory(str(self), said(error)) from error

    def parents(self) -> dict[str, str]:
        stones = ((run, _tombstone.read(self.disk, self.path, run)) for run in _prune.names(self.disk, self.path))
        pruned = {run: stone.parent for run, stone in stones if stone is not None and stone.parent is not None}
        return pruned | super().parents()


def store(runs: Runs) -> Store:
    """Make the store that a path, a URL or a store means.

    Args:
        runs: A path is a directory of runs, `postgresql://…` a database. A store is given back.

    Raises:
        NotARunsDirectory: It is nothing of these, another URL, or psycopg is missing.
    """
    if isinstance(runs, Store):
        return runs
    given: object = runs
    place = str(given) if isinstance(given, str | Path) else ""
    if not place:  # of an environment variable that is not set
        raise NotARunsDirectory(repr(runs), "give a path, the URL of a database, or a store")
    if (url := _URL.match(place)) is None:
        return Directory(place)
    if url[1] is None:
        raise NotARunsDirectory("postgresql:…", "the URL of a database is a text that begins with postgresql://")
    if url[1] not in {"postgresql", "postgres"}:
        raise NotARunsDirectory(f"{url[1]}://…", "runs are kept in directories and in PostgreSQL")
    try:
        from eventlog import postgres  # noqa: PLC0415 (an extra)
    except ImportError as error:
        why = f"that needs psycopg, which cannot be imported ({error}): pip install 'refold[postgres]'"
        raise NotARunsDirectory(f"{url[1]}://…", why) from error
    return postgres.at(place)
