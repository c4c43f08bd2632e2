"""Retention: what a store offers to whoever removes runs that ended long ago."""

import abc
from collections.abc import Iterator, Mapping
from datetime import datetime

from eventlog.errors import LogError


class Retention(abc.ABC):
    """The part of a store that removes runs."""

    @abc.abstractmethod
    def prune(self, ended: Mapping[str, dict[str, str]]) -> Iterator[tuple[str, LogError | None]]:
        """Remove runs that nobody holds. Each leaves a tombstone: its id is never that of a run again (`RunPruned`).

        Args:
            ended: The runs, none of which goes any further, each with a few words to keep in its tombstone, by name.
                Its end and its last sum are kept anyway.

        Yields:
            Each run, and what kept it here; or None when it is gone for good.

        Raises:
            NotARunsDirectory, ReadOnly, DiskFull, DiskFailed, Untrusted: No tombstone can be left.
        """

    @abc.abstractmethod
    def forget(self, before: datetime, *, dry: bool = False) -> list[str]:
        """Remove the tombstones of the runs that ended before a time, or only list those; their ids are free again.

        One that is unreadable stays. Raises what `prune` raises.
        """

    @abc.abstractmethod
    def parents(self) -> dict[str, str]:
        """Give every fork, pruned ones too, with the run it was forked from. Raises `NotARunsDirectory`."""
