"""What runs there are, and which are unfinished. Read without a lock, and from their statuses where these count."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import eventlog
import replay
from replay import State
from runner._runs import load
from runner._runs import status as _status
from runner._runs.status import RunStatus

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class RunInfo:
    """One run.

    Attributes:
        run: Its id.
        status: What it came to with its last line, or None if it can't be read.
        problem: Why it can't be read.
        live: Whether a process holds it.
        began: When it began (UTC), if known.
    """

    run: str
    status: RunStatus | None
    problem: Exception | None = None
    live: bool = False
    began: datetime | None = None

    def age(self) -> tuple[datetime, str]:
        """When it began, and its id: what a list is ordered by."""
        return self.began or _NEVER, self.run


def list_runs(runs: eventlog.Runs, among: Iterable[str] | None = None) -> list[RunInfo]:
    """Lists every run, newest first, also those that can't be read.

    The log is read where the run's status does not count: while it is held, and after its process died.

    Args:
        runs: Where the runs are: a path, a URL, or a store.
        among: Only these names (of `eventlog.Store.names`), so that many runs can be shared out.

    Raises:
        eventlog.NotARunsDirectory: There are no runs.
    """
    store = eventlog.store(runs)
    found = [info for run, words, held in store.statuses(among) if (info := _look(store, run, words, held=held))]
    return sorted(found, key=RunInfo.age, reverse=True)


def list_unfinished(runs: eventlog.Runs) -> list[RunInfo]:
    """Lists the runs that a resume could carry on: readable, and neither done nor stopped for good, nor child runs."""
    found = [(info, info.status) for info in list_runs(runs) if info.status is not None]
    return [i for i, status in found if not (status.phase == "new" or status.closed or status.parent_call is not None)]


def read_state(run: str, runs: eventlog.Runs) -> State:
    """Reads the state of one run, without a lock, from a snapshot on if one counts.

    Raises:
        eventlog.LogError, replay.ReplayError: It can't be read.
    """
    return load.read(eventlog.store(runs), run)


def _look(store: eventlog.Store, run: str, words: bytes | None, *, held: bool) -> RunInfo | None:
    """One run; None if there is none of this name."""
    status = _status.understood(words)
    if status is not None:
        return RunInfo(run, status, live=held, began=status.began)
    try:
        status = _status.of(load.read(store, run))
        return RunInfo(run, status, live=_is_live(store, run), began=status.began or store.began(run))
    except eventlog.NoSuchRun:
        return None
    except (eventlog.LogError, replay.ReplayError, OSError) as problem:
        return RunInfo(run, None, problem, _is_live(store, run), store.began(run))


def _is_live(store: eventlog.Store, run: str) -> bool:
    try:
        return store.holder(run) is not None
    except eventlog.LogError:
        return False
