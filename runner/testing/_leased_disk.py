"""A store whose runs are held by leases, in memory and on virtual time: what a database gives, at the disk's seam.

A lease has a token, which rises with every taking, and an end, which its holder puts off as long as it is alive and
reaches the store. Where a database's statement names the token, here every change of a run's files does: what an
earlier holder still asks for is refused, and changes nothing. A holder knows the end by its own clock, and calls the
run lost a margin before it (`Log.holds`).
"""

import errno
import math
import os
from pathlib import Path
from typing import Any, Final

import eventlog
from eventlog.simdisk import CHANGES, DiskProxy
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

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self.token, self.ends, self.lost = 0, -math.inf, False

    @property
    def left(self) -> float:
        return self.ends - self._time.now

    def take(self) -> bool:
        if self.left > 0:
            return False
        self.lost = self.ends > -math.inf
        self.token, self.ends = self.token + 1, math.inf
        return True

    def expire(self) -> None:
        self.ends = min(self.ends, self._time.now + LENGTH)


class Leases:
    """The leases of a store's runs, each made when it is first looked for."""

    def __init__(self, runs: Path, time: VirtualTime) -> None:
        self._runs, self._time = runs, time
        self._each: dict[str, Lease] = {}

    def of(self, path: Path) -> Lease | None:
        """The lease of the run that a path is in, or None."""
        if path == self._runs or not path.is_relative_to(self._runs):
            return None
        return self._each.setdefault(path.relative_to(self._runs).parts[0], Lease(self._time))

    def expire(self) -> float:
        """Have nobody renew any: whoever held them died, is frozen, or is cut off. Gives when the last one ends."""
        for lease in self._each.values():
            lease.expire()
        return max((lease.ends for lease in self._each.values()), default=-math.inf)


class LeasedDisk(DiskProxy):
    """The disk of one process that holds runs by their leases. `is_cut`: it lives, and does not reach the store."""

    def __init__(self, inner: eventlog.Disk, leases: Leases) -> None:
        super().__init__(inner)
        self._leases, self.is_cut = leases, False
        self._tokens: dict[Lease, int] = {}
        self._files: dict[int, Lease] = {}

    def is_stale(self, lease: Lease) -> bool:
        """Whether somebody else has taken a lease since this process did."""
        return self._tokens.get(lease, lease.token) != lease.token

    def open(self, path: Path, **how: Any) -> int:
        return self._opened(super().open(path, **how), path)

    def open_dir(self, path: Path, **how: Any) -> int:
        return self._opened(self.inner.open_dir(path, **how), path)

    def _opened(self, fd: int, path: Path) -> int:
        if (lease := self._leases.of(path)) is not None:
            self._files[fd] = lease
        return fd

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Take the lease, or see whether it is free; of the run's directory, whether the holder before lost it."""
        lease = self._files.get(fd)
        if lease is None or self.name(fd) not in ("", _LOCK):
            return self.inner.try_lock(fd, shared=shared)
        if not self.name(fd):
            return shared or not lease.lost
        if shared or self.is_cut or not lease.take():
            return shared and lease.left <= 0
        self._tokens[lease] = lease.token
        return True

    def unlock(self, fd: int) -> None:
        """Give a lease back, unless it is another's by now."""
        if not (self.is_stale(lease := self._files[fd]) or self.is_cut):
            lease.ends = -math.inf

    def stat(self, path: Path | str, **how: Any) -> os.stat_result:
        """Look; the lock of a lease that is over, by this process's own clock, has no name any more."""
        lease = self._leases.of(Path(path)) if Path(path).name == _LOCK else None
        if lease is not None and (self.is_stale(lease) or lease.left <= MARGIN):
            raise FileNotFoundError(errno.ENOENT, "the lease is over", str(path))
        return self.inner.stat(path, **how)

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Change no run for a process that does not hold it any more, or does not reach it."""
        if verb in CHANGES and verb != "open":
            self._fence(given[0])
        return super().forward(verb, *given, **named)

    def _fence(self, what: int | Path) -> None:
        lease = self._files.get(what) if isinstance(what, int) else self._leases.of(what)
        is_witness = isinstance(what, int) and self.name(what) == _HEAD  # of a line that is durable
        if lease is not None and not is_witness and (self.is_stale(lease) or self.is_cut):
            raise OSError(errno.ESTALE, "the connection is gone" if self.is_cut else "the lease is another's")
