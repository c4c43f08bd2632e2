"""The workspace: the directory a run's tools write in, so that every content of every file is explained.

A write is three steps: the coming hash is logged, the file is replaced atomically and synced, the write is logged with
the call's result. A crash between them leaves the old content or the new one, and the log names both. Absence is a
content too. On a resume, a file that the run wrote and that holds neither is a foreign edit.

Whoever can write in the workspace can swap a folder for a link between any two steps. So every step works within a
directory that was opened part by part, no part through a link.
"""

import contextlib
import errno
import hashlib
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

import eventlog
from replay.events import FileIntended, FileWritten
from replay.values import FileHash
from runner.errors import NoWorkspace, OutsideWorkspace, ReadOnlyWorkspace

TEMPORARY = ".refold-tmp-"
_PIECE = 1 << 20
_NO_FILE = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL}

Record = Callable[[FileIntended], None]


def hash_file(root: Path, path: str, disk: eventlog.Disk = eventlog.DISK) -> str | None:
    """SHA-256 of a file's content in hex; None when there is no such file.

    A directory, a link, a FIFO or a device has no content, and is not read: some would never answer.
    """
    digest = hashlib.sha256()
    try:
        for piece in _read(disk, root, path):
            digest.update(piece)
    except FileNotFoundError:
        return None
    except OSError as error:
        return "not a file" if error.errno in _NO_FILE else f"not readable: {error.strerror}"
    return digest.hexdigest()


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
        mutex: AbstractContextManager[object] | None = None,
    ) -> None:
        self.root = root
        self._call = call
        self._record = record
        self._read_only = read_only
        self._disk = disk
        self._written: dict[str, str | None] = {}
        self._sealed = False
        self._mutex = mutex or threading.Lock()  # one for the calls of a run: files are written in the log's order

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
        if any(p.casefold().startswith(TEMPORARY) for p in parts):
            raise OutsideWorkspace(path, f"names that begin with {TEMPORARY} are kept for half-written files")
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
        """A file's content. Raises `OSError` as `open` does, and for what is not a file: a FIFO does not hang."""
        self.locate(path)
        return b"".join(_read(self._disk, self.root, path))

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
        self._change(path, hashlib.sha256(data).hexdigest(), lambda: _replace(self._disk, self.root, path, data))

    def delete(self, path: str) -> None:
        """Remove a file if it is there: logged and synced."""
        self._change(path, None, lambda: _remove(self._disk, self.root, path))

    def _change(self, path: str, sha256: str | None, act: Callable[[], None]) -> None:
        self.locate(path)
        with self._mutex:
            refused = "its call is over" if self._sealed else self._read_only()
            if refused is not None:
                raise ReadOnlyWorkspace(path, refused)
            self._record(
                FileIntended(call=self._call, path=path, sha256=sha256, before=hash_file(self.root, path, self._disk))
            )
            act()
            self._written[path] = sha256


@contextlib.contextmanager
def _folder(disk: eventlog.Disk, root: Path, path: str, *, make: bool = False) -> Iterator[int]:
    """Open the directory that holds a file, and give its descriptor; `make` makes what is missing.

    Raises `OSError` when a part is a link or no directory.
    """
    with contextlib.ExitStack() as opened:
        within = disk.open_dir(root)
        opened.callback(disk.close, within)
        for place in reversed(_above(root, path)[:-1]):
            try:
                below = disk.open_dir(place, within=within)
            except FileNotFoundError:
                if not make:
                    raise
                below = _make(disk, place, within)
            opened.callback(disk.close, below)
            within = below
        yield within


def _above(root: Path, path: str) -> list[Path]:
    """The directories that hold a file, the nearest first, the workspace last."""
    return [root / parent for parent in PurePosixPath(path).parents]


def _make(disk: eventlog.Disk, place: Path, within: int) -> int:
    """Make a directory as open as the one it is in, and open it."""
    try:
        disk.mkdir(place, within=within)
    except FileExistsError:  # another call of this wave made it at the same time
        return disk.open_dir(place, within=within)
    below = disk.open_dir(place, within=within)
    disk.fchmod(below, disk.fstat(within).st_mode & 0o777)
    return below


def _read(disk: eventlog.Disk, root: Path, path: str) -> Iterator[bytes]:
    with _folder(disk, root, path) as within:
        file = disk.open(root / path, within=within)
    try:
        at = 0
        while piece := disk.pread(file, _PIECE, at):
            at += len(piece)
            yield piece
    finally:
        disk.close(file)


def _temporary(root: Path, path: str) -> Path:
    """The one name a half-made version of this file can have, so that a later life finds and removes it."""
    return (root / path).with_name(TEMPORARY + hashlib.sha256(path.encode()).hexdigest()[:16])


def _replace(disk: eventlog.Disk, root: Path, path: str, data: bytes) -> None:
    place, temporary = root / path, _temporary(root, path)
    with _folder(disk, root, path, make=True) as within:
        try:
            _write(disk, temporary, data, _mode(disk, place, within), within)
            disk.rename(temporary, place, within=within)
        except BaseException:  # whatever ends this leaves no half-made file, and goes on up
            with contextlib.suppress(OSError):
                disk.unlink(temporary, within=within)
            raise
    for directory in _above(root, path):  # each: whoever made it may have ended before its name was durable
        disk.sync_dir(directory)


def _mode(disk: eventlog.Disk, place: Path, within: int) -> int:
    """Who may read and write the new file: as before, or as its directory says."""
    with contextlib.suppress(FileNotFoundError):
        old = disk.stat(place, within=within).st_mode
        if stat.S_ISREG(old):
            return old & 0o777
    return disk.fstat(within).st_mode & 0o666


def _write(disk: eventlog.Disk, temporary: Path, data: bytes, mode: int, within: int) -> None:
    """Make a file of that name, never through a link that somebody put there, and make it durable."""
    try:
        file = disk.open(temporary, write=True, new=True, within=within)
    except FileExistsError:  # what a death left half-made, or that link
        disk.unlink(temporary, within=within)
        file = disk.open(temporary, write=True, new=True, within=within)
    try:
        if data:
            disk.pwrite(file, data, 0)
        disk.fchmod(file, mode)
        disk.sync(file)
    finally:
        disk.close(file)


def _remove(disk: eventlog.Disk, root: Path, path: str) -> None:
    with contextlib.suppress(FileNotFoundError), _folder(disk, root, path) as within:
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(root / path, within=within)
        disk.sync_dir((root / path).parent)  # even then: whoever removed it may have ended before this


def changed(
    root: str | None,
    files: Mapping[str, tuple[str | None, ...]],
    disk: eventlog.Disk = eventlog.DISK,
    *,
    settle: bool = True,
) -> list[FileHash]:
    """The files that hold no content the log explains, each with the content it has now.

    With `settle`, for whoever holds the run, what an interrupted write left beside them is removed, and their names are
    made durable, which it may not have come to. Raises `NoWorkspace` when the directory is gone.
    """
    if not files:
        return []
    if root is None or not Path(root).is_dir() or Path(root).is_symlink():
        raise NoWorkspace(root)
    found, synced = [], set[Path]()
    for path, explained in files.items():
        now = _settle(disk, Path(root), path, synced) if settle else hash_file(Path(root), path, disk)
        if now not in explained:
            found.append(FileHash(path=path, sha256=now))
    return found


def names(changed: Iterable[FileHash]) -> str:
    """Changed files, as a sentence names them."""
    return ", ".join(f"{file.path} ({'gone' if file.sha256 is None else 'changed'})" for file in changed)


def _settle(disk: eventlog.Disk, root: Path, path: str, synced: set[Path]) -> str | None:
    temporary = _temporary(root, path)
    try:
        with _folder(disk, root, path) as within, contextlib.suppress(OSError):
            disk.stat(temporary, within=within)  # most often there is none, and nothing is to be changed
            disk.unlink(temporary, within=within)
        for directory in _above(root, path):
            if directory not in synced:
                disk.sync_dir(directory)
                synced.add(directory)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return f"not readable: {error.strerror}"
    return hash_file(root, path, disk)
