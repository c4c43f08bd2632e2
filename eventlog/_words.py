"""The system's errors in our words: no traceback with a bare errno reaches a person.

A save has its own rules for what an error means (`_log`); this is for everything before and around the saves.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventlog._disk import FULL, NO_WRITING, NotAFile
from eventlog.errors import DiskFailed, DiskFull, NotARunsDirectory, ReadOnly

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def writing(run: str, path: Path) -> Iterator[None]:
    """Raise `DiskFull`, `ReadOnly`, `NotARunsDirectory` or `DiskFailed` for what the system refuses to a writer."""
    try:
        yield
    except NotAFile as error:
        raise DiskFailed(_name(error, path), "it is not a regular file") from error
    except NotADirectoryError as error:
        raise NotARunsDirectory(str(path), "it is not a directory") from error
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(run, said(error)) from error
        if error.errno in NO_WRITING:
            raise ReadOnly(_name(error, path), said(error)) from error
        raise DiskFailed(_name(error, path), said(error)) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise `DiskFailed` for what the system refuses to a reader."""
    try:
        yield
    except OSError as error:
        raise DiskFailed(_name(error, path), said(error)) from error


def said(error: OSError) -> str:
    """Give the system's words for an error."""
    return error.strerror or str(error)


def _name(error: OSError, path: Path) -> str:
    return str(error.filename or path)
