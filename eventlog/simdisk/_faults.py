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
from typing import TYPE_CHECKING, Any, Final, TypeVar

import eventlog
from eventlog.simdisk._process import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlog.simdisk._trace import Pages

T = TypeVar("T")

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


_OWN: Final = ("open", "rename", "pwrite", "kernel_flushes")
"""The verbs that are not simply forwarded. `pwrite` stays a loop over `write_some`, which completes a short write."""


class DiskProxy(eventlog.Disk):
    """Forwards every verb to `inner`. Subclass it and override a few."""

    def __init__(self, inner: eventlog.Disk) -> None:
        self.inner = inner
        self._names: dict[int, str] = {}

    def name(self, fd: int) -> str:
        """Give the name of an open file: the one it was opened by, or was renamed to since."""
        return self._names.get(fd, "")

    def open(self, path: Path, **how: Any) -> int:
        fd = self.inner.open(path, **how)
        self._names[fd] = path.name
        return fd

    def kernel_flushes(self) -> None:
        """Give none: each flush must come by `datasync`, where a fault may lie."""

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        self.inner.rename(source, target, within=within)
        self._names = {fd: target.name if name == source.name else name for fd, name in self._names.items()}


def _forwarding(verb: str) -> Callable[..., Any]:
    def forward(self: DiskProxy, *given: Any, **named: Any) -> Any:
        return getattr(self.inner, verb)(*given, **named)

    return forward


for _verb in vars(eventlog.Disk):
    if not _verb.startswith("_") and _verb not in _OWN:
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


def _counted(verb: str, *, like: str = "") -> Any:
    """A verb that is an operation of its own name, or one `like` another."""

    def counted(self: FaultyDisk, target: int | Path | str, *given: Any, **named: Any) -> Any:
        what = target if isinstance(target, int) else Path(target)
        return self._do(like or verb, what, lambda: getattr(self.inner, verb)(target, *given, **named))

    return counted


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

    pread, truncate, sync_dir = _counted("pread"), _counted("truncate"), _counted("sync_dir")
    unlink, rmdir, mkdir, list = _counted("unlink"), _counted("rmdir"), _counted("mkdir"), _counted("list")
    stat, fstat, links_and_size = _counted("stat"), _counted("fstat"), _counted("links_and_size", like="fstat")
    try_lock = _counted("try_lock")

    def open(self, path: Path, **how: Any) -> int:
        """Open a file; only an open that may change something counts as one of `CHANGES`, another is a `look`."""
        verb = "open" if {"write", "create", "new"} & {name for name, given in how.items() if given} else "look"
        return self._do(verb, path, lambda: super(FaultyDisk, self).open(path, **how))

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write; a fault may have it take a part, or claim too much."""
        fault = self._due("write_some", fd)
        if fault is None:
            return self.inner.write_some(fd, data, offset)
        if fault.claims is not None:
            return self.inner.write_some(fd, data, offset) + fault.claims
        taken = len(data) if fault.late else 0 if fault.takes is None else min(fault.takes, len(data))
        if taken:
            self.inner.pwrite(fd, memoryview(data)[:taken], offset)
        if fault.error is not None:
            raise self._error(fault)
        return taken

    def datasync(self, fd: int) -> None:
        """Sync; a failing one tells a simulated disk what it leaves."""
        self._sync("datasync", fd, self.inner.datasync)

    def sync(self, fd: int) -> None:
        self._sync("sync", fd, self.inner.sync)

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        self._do("rename", target, lambda: super(FaultyDisk, self).rename(source, target, within=within))

    def link(self, source: Path, target: Path) -> None:
        self._do("link", target, lambda: self.inner.link(source, target))

    def close(self, fd: int) -> None:
        """Close; the descriptor is gone even when closing fails. A killed process closes nothing."""
        if self._killed:
            return
        fault = self._due("close", fd)
        self.inner.close(fd)
        if fault is not None:
            raise self._error(fault)

    def _do(self, verb: str, target: int | Path, act: Callable[[], T]) -> T:
        fault = self._due(verb, target)
        if fault is None:
            return act()
        if fault.late:
            act()
        raise self._error(fault)

    def _sync(self, verb: str, fd: int, act: Callable[[int], None]) -> None:
        fault = self._due(verb, fd)
        if fault is None or fault.late:
            act(fd)
        elif isinstance(self.inner, Process) and isinstance(fault.error, int):
            self.inner.fail_sync(fd, fault.pages)
        if fault is not None:
            raise self._error(fault)

    def _due(self, verb: str, target: int | Path) -> Fault | None:
        if self._killed:
            raise Killed
        name = target.name if isinstance(target, Path) else self.name(target)
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
