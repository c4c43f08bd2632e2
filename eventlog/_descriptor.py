"""Descriptors: the number that an open file gets, and a look at it before every write.

A process may have closed its stdin, stdout or stderr. The next file that it opens gets that number, and a library that
warns on stderr would write into the log. So no file of a log has one of the three.

Since Linux 6.13 the first write after somebody was told a file's times must give it new ones, and the flush that
follows takes half as long again (multigrain timestamps). So the look asks statx(2) for the count of names and the size.
"""

import functools
import os
import struct
from collections.abc import Callable
from typing import Final

_STDERR: Final = 2
_AT_EMPTY_PATH: Final = 0x1000
_STATX_NLINK: Final = 0x4
_STATX_SIZE: Final = 0x200
_STATX_ROOM: Final = 256
_FOUND: Final = struct.Struct("=16xI20xQ")
"""Where statx puts the two does not depend on the processor: bytes 16 and 40."""


@functools.cache
def _statx() -> Callable[[int], tuple[int, int] | None] | None:
    """The look at an open file that tells only what it is asked for; None where there is none."""
    try:
        import ctypes  # noqa: PLC0415 - only a writer needs it, and every import of the package would wait for it

        call = ctypes.CDLL(None).statx
    except (ImportError, AttributeError):  # a Python may be built without ctypes
        return None
    room = ctypes.c_char * _STATX_ROOM

    def look(fd: int) -> tuple[int, int] | None:
        found = room()
        if call(fd, b"", _AT_EMPTY_PATH, _STATX_NLINK | _STATX_SIZE, found) != 0:
            return None
        return _FOUND.unpack_from(found)

    return look


def above_standard(fd: int) -> int:
    """Give an open file that is taken over a number that is none of the standard ones."""
    if fd > _STDERR:
        return fd
    try:
        return above_standard(os.dup(fd))
    finally:
        os.close(fd)


def links_and_size(fd: int) -> tuple[int, int]:
    """Give an open file's count of names and its size in bytes."""
    look = _statx()
    found = look(fd) if look is not None else None
    if found is None:  # an older kernel; and where it was an error, this says which
        told = os.fstat(fd)
        found = told.st_nlink, told.st_size
    return found
