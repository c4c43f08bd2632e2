"""Files that a command writes for people: theirs alone, and never in place of what the command did not make.

Such a file holds what an agent read. It is readable by its owner only. A name that is a link, a pipe, a device, another
user's file, or a file that does not look like one of ours is refused; nothing is opened that could block. The new file
is written beside it and takes its place at once, so a link that appears meanwhile is replaced and not followed.
"""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from runner._cli._io.errors import Refused, Status

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOKED_AT = 4_096


def check_replaceable(file: Path, is_ours: Callable[[bytes], bool]) -> None:
    """Make sure that `file` is not there, or may be replaced.

    Args:
        file: the name to write to.
        is_ours: whether these first bytes of a file are of one that the command made.

    Raises:
        Refused: it is something else; status 2.
    """
    try:
        found = file.lstat()
    except FileNotFoundError:
        return
    why = ""
    if not stat.S_ISREG(found.st_mode):
        why = "is a link" if stat.S_ISLNK(found.st_mode) else "is not a file"
    elif found.st_uid != os.geteuid():
        why = "belongs to another user"
    elif found.st_size and not is_ours(_first_bytes(file)):
        why = "is there and was not made by this command"
    if why:
        raise Refused(f"{file} {why}", "Name another file.", Status.USAGE)


def write_private(file: Path, data: bytes, is_ours: Callable[[bytes], bool]) -> None:
    """Write `data` to `file`, readable by its owner only, as `check_replaceable` allows.

    Raises:
        Refused: `file` may not be replaced; status 2.
        OSError: writing failed; what was there stays.
    """
    check_replaceable(file, is_ours)
    beside = file.with_name(f".{file.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(beside, _NEW, 0o600), "wb") as stream:
            stream.write(data)
        beside.replace(file)
    except BaseException:  # whatever ends this leaves no half-written file
        beside.unlink(missing_ok=True)
        raise


def _first_bytes(file: Path) -> bytes:
    descriptor = os.open(file, _READ)
    try:
        return os.read(descriptor, _LOOKED_AT) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)
