"""The inbox of a run: requests from whoever does not hold it, each a file of its own in the directory `inbox`.

A request is written under a temporary name, synced, and linked to its name. A link fails where a rename would replace:
so of two requests of one name the first stays, and its poster knows. What the names and the bytes mean is the caller's
business. Only the holder of the run's lock reads requests to take them, and removes them once their line is durable.
A name that is removed and comes back after a power cut is therefore one that the log knows.

Anybody who may write to the directory may put anything there. What is no regular file of a possible name is never a
request, and one of more than `MOST` bytes is not read.
"""

import contextlib
import errno
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from eventlog._atomic_write import sweep
from eventlog._disk import Disk, NotAFile
from eventlog._files import Files
from eventlog._names import INBOX, TEMPORARY
from eventlog._os_errors import said
from eventlog._own import Within
from eventlog.errors import DiskFailed, NotStorable

MOST: Final = 8 << 20
"""The most bytes of a request."""
_NAME: Final = re.compile(r"[a-z][a-z0-9._-]{0,199}")
_TRIES: Final = 20
_PASSES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""What says nothing of the file that was to be opened."""


class Unread(NamedTuple):
    """The names of the requests that nobody took yet, and of what lies among them and is none."""

    requests: list[str]
    strangers: list[str]


def post(disk: Disk, directory: Path, run: str, name: str, request: bytes) -> bool:
    """Put a request into the inbox of a run's directory, durably; False when the name is there already."""
    check(run, name, request)
    box = directory / INBOX
    with contextlib.suppress(FileExistsError):
        disk.mkdir(box)
    if not stat.S_ISDIR(disk.stat(box).st_mode):
        raise DiskFailed(str(box), "it is not a directory")
    with _opened(disk, box) as within:
        return _linked(within, box, name, request)


def check(run: str, name: str, request: bytes) -> None:
    """Raise `NotStorable` for what can't be a request."""
    if not is_name(name) or len(request) > MOST:
        raise NotStorable(run, f"it is no request that an inbox holds: {name!r:.200}, {len(request)} bytes")


def is_name(name: object) -> bool:
    """Tell whether a request can have a name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _linked(disk: Disk, box: Path, name: str, request: bytes) -> bool:
    for _ in range(_TRIES):
        temporary = box / f"{TEMPORARY}{disk.random(8)}"
        fd = disk.open(temporary, write=True, new=True)
        try:
            disk.pwrite(fd, request, 0)
            disk.sync(fd)
        finally:
            disk.close(fd)
        try:
            disk.link(temporary, box / name)
            won = True
        except FileExistsError:
            won = False
        except FileNotFoundError:  # an opener of the run swept the temporary file away
            continue
        with contextlib.suppress(OSError):  # it is disposable
            disk.unlink(temporary)
        disk.sync_dir(box)
        disk.sync_dir(box.parent)  # whoever made the inbox may have died before this
        return won
    raise DiskFailed(str(box), "its temporary files vanish")


def unread(disk: Disk, box: Path) -> Unread:
    """List what lies in an inbox, sorted by name."""
    try:
        names = disk.list(box)
        if not names or not stat.S_ISDIR(disk.stat(box).st_mode):
            return Unread([], [INBOX] if names else [])
    except FileNotFoundError:
        return Unread([], [])
    except OSError:
        return Unread([], [INBOX])
    requests: list[str] = []
    strangers: list[str] = []
    for name in sorted(names):
        if not name.startswith(TEMPORARY):
            (requests if is_name(name) and _regular(disk, box / name) else strangers).append(name)
    return Unread(requests, strangers)


def read(disk: Disk, directory: Path, name: str) -> bytes | str | None:
    """Give a request, a sentence why it can't be one, or None when it is gone, or can't be read right now."""
    if not is_name(name):
        return "no request has such a name"
    try:
        data = Files(disk, directory / INBOX).content(name, MOST)
    except FileNotFoundError:
        return None
    except NotAFile:
        return "it is not a regular file"
    except OSError as error:
        return None if error.errno in _PASSES else f"it can't be read: {said(error)}"
    return data if len(data) <= MOST else f"it has more than {MOST} bytes"


def remove(disk: Disk, directory: Path, names: Collection[str]) -> set[str]:
    """Remove requests whose line is durable, and give those that were. The others are found again, and then known."""
    gone: set[str] = set()
    with contextlib.suppress(OSError), _opened(disk, directory / INBOX) as disk:  # noqa: PLR1704 (the same disk, within)
        for name in names:
            with contextlib.suppress(OSError):
                disk.unlink(directory / INBOX / name)
                gone.add(name)
    return gone


def tidy(disk: Disk, directory: Path) -> None:
    """Remove temporary files of posters that died. One that lives writes another. Only under the lock."""
    with contextlib.suppress(OSError), _opened(disk, directory / INBOX) as within:
        sweep(within, directory / INBOX)


@contextlib.contextmanager
def _opened(disk: Disk, box: Path) -> Iterator[Disk]:
    """Give a disk that works within the inbox. Raises `NotADirectoryError` for a link to a directory, too."""
    fd = disk.open_dir(box)
    try:
        yield Within(disk, box, fd)
    finally:
        disk.close(fd)


def _regular(disk: Disk, path: Path) -> bool:
    try:
        return stat.S_ISREG(disk.stat(path).st_mode)
    except OSError:
        return False
