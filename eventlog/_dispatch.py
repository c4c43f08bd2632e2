"""Dispatch: what a store offers to whoever carries on the runs that are due, and removes those that ended long ago."""

import abc
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from eventlog._bell import Bell, Presence
from eventlog._lock import Holder
from eventlog.errors import LogError


class Dispatch(abc.ABC):
    """The part of a store that says which runs there are, what became of them, and who holds them; and removes some.

    Attributes:
        knows_due: Whether `due` gives only what is due now, at little cost.
        lease: Seconds after which a run is free whose holder was cut off; None where a lock is held by a live process.
    """

    knows_due = False
    lease: float | None = None

    @abc.abstractmethod
    def names(self) -> list[str]:
        """List the names that may be runs, in no order, unlooked at: for who reads each. Raises `NotARunsDirectory`."""

    def due(self, agents: Collection[str], limit: int) -> list[str]:  # noqa: ARG002 (for a store that can tell)
        """List names of runs that somebody may have to carry on: here all of them.

        A store that `knows_due` gives up to `limit` runs of these agents whose time has come or whose holder was lost,
        and for a while gives none of them to anybody else.
        """
        return self.names()

    def within(self, connection: Any) -> AbstractContextManager[None]:
        """Do what this thread does here meanwhile in a transaction of the caller's: only in a database."""
        raise NotImplementedError(connection)

    @abc.abstractmethod
    def statuses(self, among: Iterable[str] | None = None) -> Iterator[tuple[str, bytes | None, bool]]:
        """Give each name, what the run's last writer said of it (`Log.append`) as JSON, and whether it is held now.

        No log is read. None where nothing was said, or where it may not be believed, as in a directory while a writer
        is at work: then read the run, and ask for its `holder`.

        Args:
            among: These names, by default all of `names`.

        Raises:
            NotARunsDirectory: As `names`.
        """

    @abc.abstractmethod
    def holder(self, run: str) -> Holder | None:
        """Say who holds a run for writing, or None when nobody does; writes nothing. Raises `BadRunId`, `DiskFailed`.

        When it is held by a process that left no readable name, the answer has pid 0.
        """

    @abc.abstractmethod
    def bell(self) -> Bell:
        """Give the doorbell: `ring` names a run that somebody should look at, `heard` is what rang since. A hint."""

    @abc.abstractmethod
    def notes(self) -> set[str]:
        """Give the names that were noted here: whoever tells somebody outside of a run notes that it was told."""

    @abc.abstractmethod
    def note(self, name: str) -> None:
        """Note a name of `a-z 0-9 .`, for every process; it is no part of any run. Raises `LogError`."""

    @abc.abstractmethod
    def unnote(self, names: Collection[str]) -> None:
        """Forget what was noted. Raises `LogError`."""

    @abc.abstractmethod
    def enter(self) -> Presence:
        """Be seen as one that carries runs here. Its `departed` tells whether one of the others is gone: a hint too.

        Raises:
            NotARunsDirectory: There is no such place, and it can't be made.
        """

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
