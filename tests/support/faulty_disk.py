"""Faults: the Nth operation of a kind goes wrong, once or for ever, on a simulated disk or on the real one.

A `FaultyDisk` stands in front of another one and forwards every operation until a fault's turn comes. What a fault can
be: an error of the system, an interrupt (before the operation or after it), the death of the process, a write that
takes a part and then fails or says so, a write that claims more than it took, and a sync that fails and leaves the page
cache in one of the states that kernels leave it in.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from eventlog import simdisk
from eventlog.simdisk import CHANGES, DiskProxy, Image, Killed, Process

if TYPE_CHECKING:
    import eventlog

VERBS: Final = (*CHANGES, "look", "pread", "stat", "fstat", "list", "close", "try_lock")
"""Operations that can fail. `look` is an `open` that only reads."""
_CHANGING: Final = {"write", "create", "new"}
_TO: Final = ("rename", "link")
_SYNCS: Final = ("datasync", "sync")

Pages = Literal["dirty", "clean", "back"]
"""What a failed sync leaves of the bytes it was to make durable: `dirty`, a later sync may still succeed; `clean`,
readable but forgotten, so that a later sync succeeds and writes nothing (ext4, XFS); `back`, the cache shows the old
bytes again (Btrfs). In the first two any part of them may have reached the disk."""


EMPTY: Final = simdisk.Machine().image
"""A disk that holds nothing yet."""


class Machine(simdisk.Machine):
    """A machine whose syncs may fail."""

    def __init__(self, image: Image = EMPTY, *, seed: int = 0) -> None:
        """Begin on an image."""
        super().__init__(image, seed=seed)
        self._synced = dict(image.files)
        self._lying = set[int]()

    def sync(self, number: int) -> None:
        """Sync, or only say so: of a file whose pages were called clean, nothing is sure any more."""
        if number not in self._lying:
            self._synced[number] = bytes(self.files.get(number, b""))
            super().sync(number)

    def fail_sync(self, number: int, pages: Pages) -> None:
        """Leave the page cache as a sync that failed does; the caller raises the error."""
        if pages == "clean":
            self._lying.add(number)
        elif pages == "back":
            old = self._synced.get(number, b"")
            self.resize(number, len(old))
            self.write(number, 0, old)
            super().sync(number)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong, and when.

    `verbs` and `nth` (from 1) say at which operation, counted over those verbs and, if `name` is given, over files
    whose name begins so; `lasting` goes on from there. `error` is an errno, or an exception to raise as it is;
    `late` raises it after the operation was done. `takes` has a write take so many bytes first, and without `error`
    say so. `claims` has a write say so many bytes more than it was given. `pages` is what a failed sync leaves.
    """

    verbs: tuple[str, ...] = CHANGES
    nth: int = 1
    name: str = ""
    error: int | type[BaseException] | None = None
    lasting: bool = False
    late: bool = False
    takes: int | None = None
    claims: int | None = None
    pages: Pages = "dirty"


class FaultyDisk(DiskProxy):
    """A disk in front of another one.

    `steps` are the operations so far, as (verb, name); `hit` those that went wrong.
    """

    def __init__(self, inner: eventlog.Disk, *faults: Fault) -> None:
        """Stand in front of `inner`; several faults are counted each by itself, and the first one due counts."""
        super().__init__(inner)
        self.faults = faults
        self.steps: list[tuple[str, str]] = []
        self.hit: list[tuple[str, str]] = []
        self._counts = [0] * len(faults)
        self._killed = False

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Do it, unless a fault is due: then do what of it that leaves, and raise the error. The dead close nothing."""
        if verb == "close" and self._killed:
            return None
        counted = "look" if verb == "open" and not _CHANGING & {how for how in named if named[how]} else verb
        counted = "fstat" if verb == "links_and_size" else counted
        fault = self._due(counted, given[1 if verb in _TO else 0]) if counted in VERBS else None
        if fault is None:
            return super().forward(verb, *given, **named)
        if verb == "write_some":
            return self._write(fault, *given)
        if fault.late or verb == "close":  # the descriptor is gone even when closing fails
            super().forward(verb, *given, **named)
        elif verb in _SYNCS and fault.pages != "dirty":
            assert isinstance(self.inner, Process)
            assert isinstance(self.inner.machine, Machine)
            self.inner.machine.fail_sync(self.inner.fstat(given[0]).st_ino, fault.pages)
        raise self._error(fault)

    def _write(self, fault: Fault, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Take a part, or claim too much."""
        if fault.claims is not None:
            return self.inner.write_some(fd, data, offset) + fault.claims
        taken = len(data) if fault.late else 0 if fault.takes is None else min(fault.takes, len(data))
        if taken:
            self.inner.pwrite(fd, memoryview(data)[:taken], offset)
        if fault.error is not None:
            raise self._error(fault)
        return taken

    def _due(self, verb: str, target: int | Path | str) -> Fault | None:
        if self._killed:
            raise Killed
        name = self.name(target) if isinstance(target, int) else Path(target).name
        self.steps.append((verb, name))
        due = None
        for at, fault in enumerate(self.faults):
            if verb in fault.verbs and name.startswith(fault.name):
                self._counts[at] += 1
                if due is None and (self._counts[at] == fault.nth or (fault.lasting and self._counts[at] > fault.nth)):
                    due = fault
        if due is not None:
            self.hit.append((verb, name))
        return due

    def _error(self, fault: Fault) -> BaseException:
        if isinstance(fault.error, type):
            self._killed = fault.error is Killed
            return fault.error()
        number = fault.error or errno.EIO
        return OSError(number, os.strerror(number))
