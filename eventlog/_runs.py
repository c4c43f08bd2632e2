"""A directory of runs: which there are, newest first.

A run is a directory with a valid id that holds a segment, a head or a snapshot. "Newest" is the time in its first
line, because a directory's own time changes whenever a segment is written afresh. Only a few hundred bytes of each
run are read, so ten thousand runs are listed in well under two seconds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog._disk import DISK, Disk
from eventlog._names import is_id, makes_a_run, segment_name
from eventlog.errors import NotARunsDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AT = re.compile(rb'\{"seq":0,"life":[0-9]+,"at":"([0-9T:.-]{26})Z"')
_ENOUGH: Final = 96


def runs(directory: str | Path, *, disk: Disk = DISK) -> list[str]:
    """List the ids of the runs in a directory, newest first; a directory that does not exist holds none.

    A run whose beginning cannot be read comes last: it is still a run, and whoever opens it is told what is wrong.
    Raises `NotARunsDirectory` when the path is something else or cannot be read.
    """
    return [name for _, name in dated(directory, disk=disk)]


def dated(directory: str | Path, among: Sequence[str] | None = None, *, disk: Disk = DISK) -> list[tuple[bytes, str]]:
    """List what `runs` lists, each with the time in its first line as text that sorts by time (empty when unreadable).

    `among` restricts it to these names, so that a large directory can be shared out. Raises as `runs` does.
    """
    directory = Path(directory)
    if among is None:
        try:
            among = disk.list(directory)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise NotARunsDirectory(str(directory), error.strerror or str(error)) from error
    return sorted(_dated(disk, directory, among), reverse=True)


def _dated(disk: Disk, directory: Path, names: Sequence[str]) -> Iterator[tuple[bytes, str]]:
    for name in names:
        if not is_id(name):
            continue
        try:
            found = [] if disk.is_link(directory / name) else disk.list(directory / name)
        except NotADirectoryError:
            continue
        except OSError:
            yield b"", name
            continue
        if any(makes_a_run(file) for file in found):
            yield _began(disk, directory / name / segment_name(1)), name


def _began(disk: Disk, path: Path) -> bytes:
    try:
        fd = disk.open(path)
    except OSError:
        return b""
    try:
        match = _AT.match(disk.pread(fd, _ENOUGH, 0))
    except OSError:
        match = None
    finally:
        disk.close(fd)
    return match[1] if match else b""
