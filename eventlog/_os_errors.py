"""The system's errors in our words: no traceback with a bare errno reaches a person.

A save has its own rules for what an error means (`_file_log`); this is for everything before and around the saves.
"""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlog._disk import FULL, NO_WRITING, NotAFile
from eventlog.errors import DiskFailed, DiskFull, NotARunsDirectory, ReadOnly


@contextmanager
def writing(run: str, path: Path) -> Iterator[None]:
    """Raise `DiskFull`, `ReadOnly`, `NotARunsDirectory` or `DiskFailed` for what the system refuses to a writer."""
    try:
        yield
    except NotADirectoryError as error:
        raise NotARunsDirectory(_name(error, path), "it is not a directory") from error
    except OSError as error:
        pass_on(error)
        if error.errno in NO_WRITING:
            raise ReadOnly(_name(error, path), said(error)) from error
        raise refused(error, run, path) from error


def pass_on(error: Exception) -> None:
    """Raise an error that one of the program's signal handlers raised: nothing went wrong with the disk.

    A handler runs inside whatever the main thread is doing, a flush too, so its error comes out of there.
    """
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    if any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__)):
        raise error


def _code(handler: Any) -> object:
    """Give the code of a function, a method, a partial one, or an object that can be called."""
    handler = getattr(handler, "func", handler)
    return getattr(handler if hasattr(handler, "__code__") else type(handler).__call__, "__code__", None)


def refused(error: OSError, run: str, path: Path) -> DiskFull | DiskFailed:
    """Give the error of ours for a file that could not be written."""
    pass_on(error)
    if error.errno in FULL:
        return DiskFull(run, said(error))
    return DiskFailed(_name(error, path), "it is not a regular file" if isinstance(error, NotAFile) else said(error))


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Raise `DiskFailed` for what the system refuses to a reader."""
    try:
        yield
    except OSError as error:
        raise DiskFailed(_name(error, path), said(error)) from error


def said(error: OSError) -> str:
    """Give the system's words for an error."""
    return error.strerror or str(error)


def _name(error: OSError, path: Path | str) -> str:
    """Name what could not be used: of a file that is reached within a directory the system gives the last part."""
    name = str(error.filename or "")
    return str(path) if name in {"", Path(path).name} else str(Path(path, name))
