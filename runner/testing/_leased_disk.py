"""A store whose run is held by a lease, in memory and on virtual time: what a database gives, at the disk's seam.

A lease has a token, which rises with every taking, and an end, which its holder puts off as long as it is alive and
reaches the store. Where a database's statement names the token, here every change of a run's files does: what an
earlier holder still asks for is refused, and changes nothing. A holder knows the end by its own clock, and calls the
run lost a margin before it (`Log.holds`).
"""

from __future__ import annotations

import errno
import math
from typing import TYPE_CHECKING, Any, Final

from eventlog.simdisk import CHANGES, DiskProxy

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import eventlog
    from runner.testing._virtual import VirtualTime

LENGTH: Final = 20.0
"""Virtual seconds from the last renewal to the end of a lease."""
MARGIN: Final = 1.0
_LOCK: Final = "lock"
_HEAD: Final = "head"


class Lease:
    """The lease of a run. `ends` is infinite while its holder renews it, and long past when it was given back.

    `lost`: the holder before the last taking did not give it back.
    """

    def __init__(self, run: Path, time: VirtualTime) -> None:
        """Be held by nobody."""
        self.run, self._time = run, time
        self.token, self.ends, self.lost = 0, -math.inf, False

    @property
    def left(self) -> float:
        """Seconds until it ends."""
        return self.ends - self._time.now

    def take(self) -> bool:
        """Take it, unless it is somebody's."""
        if self.left > 0:
            return False
        self.lost = self.ends > -math.inf
        self.token, self.ends = self.token + 1, math.inf
        return True

    def expire(self) -> None:
        """Be renewed no more: the holder died, is frozen, or does not reach the store."""
        self.ends = min(self.ends, self._time.now + LENGTH)


class LeasedDisk(DiskProxy):
    """The disk of one process that holds a run by its lease. `is_cut`: it lives, and does not reach the store."""

    def __init__(self, inner: eventlog.Disk, lease: Lease) -> None:
        """Hold nothing."""
        super().__init__(inner)
        self._lease, self._token, self.is_cut = lease, 0, False
        self._files: set[int] = set()

    @property
    def is_stale(self) -> bool:
        """Whether somebody else has taken the lease since this process did."""
        return self._token not in (0, self._lease.token)

    def open(self, path: Path, **how: Any) -> int:
        """Open; remember which files are the run's."""
        fd = super().open(path, **how)
        if path.is_relative_to(self._lease.run):
            self._files.add(fd)
        return fd

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Take the lease, or see whether it is free; of the run's directory, whether the holder before lost it."""
        if fd in self._files and self.name(fd) == _LOCK:
            if shared or self.is_cut or not self._lease.take():
                return shared and self._lease.left <= 0
            self._token = self._lease.token
            return True
        return (shared or not self._lease.lost) if not self.name(fd) else self.inner.try_lock(fd, shared=shared)

    def unlock(self, fd: int) -> None:  # noqa: ARG002 (there is one lease)
        """Give the lease back, unless it is another's by now."""
        if not (self.is_stale or self.is_cut):
            self._lease.ends = -math.inf

    def stat(self, path: Path | str, **how: Any) -> os.stat_result:
        """Look; the lock of a lease that is over, by this process's own clock, has no name any more."""
        if str(path) == str(self._lease.run / _LOCK) and (self.is_stale or self._lease.left <= MARGIN):
            raise FileNotFoundError(errno.ENOENT, "the lease is over", str(path))
        return self.inner.stat(path, **how)

    def change(self, what: int | Path) -> None:
        """Refuse to change the run for a process that does not hold it any more, or does not reach it."""
        ours = what in self._files if isinstance(what, int) else what.is_relative_to(self._lease.run)
        is_witness = isinstance(what, int) and self.name(what) == _HEAD  # of a line that is durable
        if ours and not is_witness and (self.is_stale or self.is_cut):
            raise OSError(errno.ESTALE, "the connection is gone" if self.is_cut else "the lease is another's")


def _fenced(verb: str) -> Any:
    def fenced(self: LeasedDisk, what: int | Path, *given: Any, **named: Any) -> Any:
        self.change(what)
        return getattr(super(LeasedDisk, self), verb)(what, *given, **named)

    return fenced


for _verb in CHANGES:
    if _verb != "open":
        setattr(LeasedDisk, _verb, _fenced(_verb))
