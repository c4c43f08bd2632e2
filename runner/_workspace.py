"""The workspace: the directory a run's tools write in, so that every content of every file is explained (spec row 5).

A write is three steps: the coming hash is logged, the file is replaced atomically and synced, the write is logged with
the call's result. A crash between them leaves the old content or the new one, and the log knows both. Absence is a
content too. On a resume, a file that the run wrote and that holds neither is a foreign edit.
"""

from __future__ import annotations

import contextlib
import hashlib
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import eventlog
from replay import FileHash, FileIntended, FileWritten
from runner.errors import NoWorkspace, OutsideWorkspace, ReadOnlyWorkspace

TEMPORARY = ".refold-tmp-"

Record = Callable[[FileIntended], None]


def hash_file(path: Path) -> str | None:
    """SHA-256 of a file's content in hex; None when there is no such file.

    A directory, a FIFO or a device has no content, and is not opened: some would never answer.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "not a file"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return "not a file"
    except OSError as error:
        return f"not readable: {error.strerror}"


class Workspace:
    """A run's directory as one call sees it. Paths are relative, with forward slashes, and stay inside.

    `root` is its absolute path, for a tool that starts a program there. Files written in another way than through
    `write_text`, `write_bytes` and `delete` are not watched.
    """

    def __init__(
        self,
        root: Path,
        call: str,
        record: Record,
        read_only: Callable[[], str | None],
        disk: eventlog.Disk = eventlog.DISK,
    ) -> None:
        self.root = root
        self._call = call
        self._record = record
        self._read_only = read_only
        self._disk = disk
        self._written: dict[str, str | None] = {}
        self._sealed = False
        self._mutex = threading.Lock()

    def seal(self) -> None:
        """Refuse every further write, once one that is under way has ended: the call they would belong to is over."""
        with self._mutex:
            self._sealed = True

    @property
    def written(self) -> list[FileWritten]:
        """What this call has written so far, as events, each file once."""
        return [FileWritten(call=self._call, path=p, sha256=h) for p, h in self._written.items()]

    def locate(self, path: str) -> Path:
        """The absolute path of `path`. Raises `OutsideWorkspace` when it leaves the workspace or follows a link."""
        if not path or "\0" in path or "\\" in path:
            raise OutsideWorkspace(path, "it is empty or holds a NUL or a backslash")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise OutsideWorkspace(path.encode("utf-8", "replace").decode(), "it is not valid Unicode") from None
        parts = path.split("/")
        if path.startswith("/") or any(p in ("", ".", "..") for p in parts):
            raise OutsideWorkspace(path, "it is absolute or holds an empty, '.' or '..' part")
        place = self.root
        for part in parts:
            place /= part
            if place.is_symlink():
                raise OutsideWorkspace(path, f"{part} is a link")
        return place

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return self.locate(path).exists()

    def read_bytes(self, path: str) -> bytes:
        """A file's content. Raises `OSError` as `open` does."""
        return self.locate(path).read_bytes()

    def read_text(self, path: str) -> str:
        """A file's content as UTF-8."""
        return self.read_bytes(path).decode()

    def write_text(self, path: str, text: str) -> None:
        """Replace a file by `text` in UTF-8; see `write_bytes`."""
        self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace a file: logged, atomic, synced. Missing directories are made.

        A file that exists keeps its mode; what is new is as open as the directory it is made in.


        Raises `OutsideWorkspace`, `ReadOnlyWorkspace`, and `OSError` when the disk refuses; then the old content
        stands.
        """
        self._change(path, hashlib.sha256(data).hexdigest(), lambda place: _replace(self._disk, place, path, data))

    def delete(self, path: str) -> None:
        """Remove a file if it is there: logged and synced."""
        self._change(path, None, lambda place: _remove(self._disk, place))

    def _change(self, path: str, sha256: str | None, act: Callable[[Path], None]) -> None:
        place = self.locate(path)
        with self._mutex:
            refused = "its call is over" if self._sealed else self._read_only()
            if refused is not None:
                raise ReadOnlyWorkspace(path, refused)
            self._record(FileIntended(call=self._call, path=path, sha256=sha256, before=hash_file(place)))
            act(place)
            self._written[path] = sha256


def _temporary(place: Path, path: str) -> Path:
    """The one name a half-made version of this file can have, so that a later life finds and removes it."""
    return place.with_name(TEMPORARY + hashlib.sha256(path.encode()).hexdigest()[:16])


def _replace(disk: eventlog.Disk, place: Path, path: str, data: bytes) -> None:
    made = [p for p in (place.parent, *place.parent.parents) if not p.exists()]
    for directory in reversed(made):
        with contextlib.suppress(FileExistsError):  # another call of this wave made it at the same time
            disk.mkdir(directory)
            disk.chmod(directory, disk.stat(directory.parent).st_mode & 0o777)
    mode = (place if place.exists() else place.parent).stat().st_mode & (0o777 if place.exists() else 0o666)
    temporary = _temporary(place, path)
    try:
        _write(disk, temporary, data, mode)
        disk.rename(temporary, place)
    except BaseException:  # whatever ends this leaves no half-made file, and goes on up
        with contextlib.suppress(OSError):
            disk.unlink(temporary)
        raise
    for directory in dict.fromkeys((place.parent, *(p.parent for p in made))):
        disk.sync_dir(directory)


def _write(disk: eventlog.Disk, temporary: Path, data: bytes, mode: int) -> None:
    """Make a file of that name, never through a link that somebody put there, and make it durable."""
    try:
        file = disk.open(temporary, write=True, new=True)
    except FileExistsError:  # what a death left half-made, or that link
        disk.unlink(temporary)
        file = disk.open(temporary, write=True, new=True)
    try:
        if data:
            disk.pwrite(file, data, 0)
        disk.chmod(temporary, mode)
        disk.sync(file)
    finally:
        disk.close(file)


def _remove(disk: eventlog.Disk, place: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        disk.unlink(place)
        disk.sync_dir(place.parent)


def changed(
    root: str | None, files: Mapping[str, tuple[str | None, ...]], disk: eventlog.Disk = eventlog.DISK
) -> list[FileHash]:
    """The files that hold no content the log explains, each with the content it has now.

    What an interrupted write left beside them is removed. Raises `NoWorkspace` when the directory is gone.
    """
    if not files:
        return []
    if root is None or not Path(root).is_dir():
        raise NoWorkspace(root)
    found = []
    for path, explained in files.items():
        place = Path(root, path)
        temporary = _temporary(place, path)
        with contextlib.suppress(OSError):
            disk.stat(temporary)  # most often there is none, and nothing is to be changed
            disk.unlink(temporary)
        now = hash_file(place)
        if now not in explained:
            found.append(FileHash(path=path, sha256=now))
    return found
