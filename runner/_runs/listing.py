"""What runs there are, and which are unfinished. Read without a lock, and from their statuses where these count."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import eventlog
import replay
from replay import State
from runner._runs import load
from runner._runs import status as _status
from runner._runs.status import RunStatus


@dataclass(frozen=True)
class RunInfo:
    """One run.

    Attributes:
        run: Its id.
        status: What it came to with its last line, or None if it can't be read.
        problem: Why it can't be read.
        live: Whether a process holds it.
        began: When it began (UTC), if known.
        seen: What an earlier list knows a run by that has not moved since.
    """

    run: str
    status: RunStatus | None
    problem: Exception | None = None
    live: bool = False
    began: datetime | None = None
    seen: object = field(default=None, repr=False, compare=False)


def list_runs(
    runs: eventlog.Runs, among: Iterable[str] | None = None, *, before: Iterable[RunInfo] = ()
) -> list[RunInfo]:
    """Lists every run, newest first, also those that can't be read.

    The log is read where the run's status does not count: while it is held, and after its process died.

    Args:
        runs: Where the runs are: a path, a URL, or a store.
        among: Only these names (of `eventlog.Store.names`), so that many runs can be shared out.
        before: An earlier list of these runs, by the same store: only what was written since is read.

    Raises:
        eventlog.NotARunsDirectory: There are no runs.
    """
    earlier = list(before)
    if not all(isinstance(info, RunInfo) for info in earlier):
        raise TypeError(f"before is {earlier!r:.200}, not an earlier list of runs")
    store, known = eventlog.store(runs), {info.run: info for info in earlier}
    found = []
    for run, words, held in store.statuses(among):
        info = _look(store, run, words, known.get(run), held=held)
        if info is not None:
            found.append(info)
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda info: (info.began or never, info.run), reverse=True)


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


class _Followed:
    """A run whose log is read: how far, and its state there while a process holds it."""

    def __init__(self, store: eventlog.Store, run: str) -> None:
        self.state: State | None
        self.state, reading = load.with_reading(store, run)
        self._tail = store.tail(reading)

    def moved(self) -> bool | None:
        """Read on, and say whether the run moved; None when it must be read anew."""
        lines = self._tail.more()
        if not lines:
            return None if lines is None else False
        if self.state is None:
            return None
        self.state = replay.load(lines, self.state)
        return True


def _look(
    store: eventlog.Store, run: str, words: bytes | None, before: RunInfo | None, *, held: bool
) -> RunInfo | None:
    """One run; None if there is none of this name."""
    if before is not None and words is not None and before.seen == words and before.live == held:
        return before
    status = _status.understood(words)
    if status is not None:
        return RunInfo(run, status, live=held, began=status.began, seen=words)
    try:
        return _read(store, run, before)
    except eventlog.NoSuchRun:
        return None
    except (eventlog.LogError, replay.ReplayError, OSError) as problem:
        return RunInfo(run, None, problem, _is_live(store, run), store.began(run))


def _read(store: eventlog.Store, run: str, before: RunInfo | None) -> RunInfo:
    """One run by its log, read on from where it was read before."""
    live = _is_live(store, run)
    followed, moved = None, None
    if before is not None and isinstance(before.seen, _Followed):
        followed, moved = before.seen, before.seen.moved()
        if moved is False:
            return replace(before, live=live)
    if followed is None or moved is None:
        followed = _Followed(store, run)
    assert followed.state is not None  # it was just read, or read on
    status = _status.of(followed.state)
    if not live:  # it will not move soon
        followed.state = None
    return RunInfo(run, status, live=live, began=status.began or store.began(run), seen=followed)


def _is_live(store: eventlog.Store, run: str) -> bool:
    try:
        return store.holder(run) is not None
    except eventlog.LogError:
        return False
