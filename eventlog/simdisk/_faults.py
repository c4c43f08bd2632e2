"""Disks in front of another one. `DiskProxy` is one to make your own of: to inject a fault, or to take a safeguard out.

Faults: the Nth operation of a kind goes wrong, once or for ever, on a simulated disk or on the real one.

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
from typing import TYPE_CHECKING, Any, Final

import eventlog
from eventlog.simdisk._process import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlog.simdisk._trace import Pages

CHANGES: Final = (
    "open",
    "write_some",
    "truncate",
    "datasync",
    "sync",
    "sync_dir",
    "rename",
    "link",
    "unlink",
    "rmdir",
    "mkdir",
)
"""Verbs that may change what is on a disk; `open` counts when it may make or write a file."""
VERBS: Final = (*CHANGES, "look", "pread", "stat", "fstat", "list", "close", "try_lock")
"""Operations that can fail. `look` is an `open` that only reads."""
_CHANGING: Final = {"write", "create", "new"}
_TO: Final = ("rename", "link")
_SYNCS: Final = ("datasync", "sync")


class DiskProxy(eventlog.Disk):
    """Forwards every verb to `inner`. Subclass it and override a few, or `forward`, through which each of them goes."""

    def __init__(self, inner: eventlog.Disk) -> None:
        self.inner = inner
        self._names: dict[int, str] = {}

    def name(self, fd: int) -> str:
        """Give the name of an open file: the one it was opened by, or was renamed to since."""
        return self._names.get(fd, "")

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Have `inner` do it."""
        result = getattr(self.inner, verb)(*given, **named)
        if verb == "open":
            self._names[result] = given[0].name
        elif verb == "rename":
            source, target = (path.name for path in given)
            self._names = {fd: target if name == source else name for fd, name in self._names.items()}
        return result

    def kernel_flushes(self) -> None:
        """Give none: each flush must come by `datasync`, where a fault may lie."""


def _forwarding(verb: str) -> Callable[..., Any]:
    def forwarding(self: DiskProxy, *given: Any, **named: Any) -> Any:
        return self.forward(verb, *given, **named)

    return forwarding


for _verb in vars(eventlog.Disk):  # `pwrite` stays a loop over `write_some`, which completes a short write
    if not _verb.startswith("_") and _verb not in ("kernel_flushes", "pwrite"):
        setattr(DiskProxy, _verb, _forwarding(_verb))


class Killed(BaseException):
    """The process ends here, as by SIGKILL: whatever it would do later, even in `finally`, does nothing."""


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
        elif verb in _SYNCS and isinstance(self.inner, Process) and isinstance(fault.error, int):
            self.inner.fail_sync(given[0], fault.pages)
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
