"""Which runs somebody must carry on, and when."""

import heapq
import random
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import NamedTuple

import eventlog
from replay import State
from runner._runs import load
from runner._runs import status as _status


class Due(NamedTuple):
    """A run that is due at a time (UTC), which may be past."""

    when: datetime
    run: str
    agent: str


def find(
    store: eventlog.Store, names: Iterable[str], agents: Collection[str], problem: Callable[[str, Exception], None]
) -> list[Due]:
    """The runs among `names` that are due now or at a time and have one of these agents.

    For a child that is due its parent is. A run whose status is not believed and that somebody holds is not due, and is
    not read: its holder looks again when it lets go, or dies. One that can't be read is a problem.
    """
    found = []
    for run, words, held in store.statuses(names):
        try:
            status = _status.understood(words)
            if held or (status is None and store.holder(run) is not None):
                continue
            if status is None:
                status = _status.of(load.read(store, run))
            now = store.now()
            when = _when(status, now)
            if (when is None or when > now) and store.inbox(run).requests:
                when = now  # whoever opens it takes them
            carried = _carried_with(store, run, status) if when is not None else None
            if carried is None:
                continue
            run, status = carried  # noqa: PLW2901 (a child is due with its parent)
        except eventlog.NoSuchRun:
            continue
        except Exception as error:  # noqa: BLE001 (one run ends no look at the others)
            problem(run, error)
            continue
        if when is not None and status.agent in agents:
            found.append(Due(when, run, status.agent))
    return found


def _carried_with(store: eventlog.Store, run: str, status: _status.RunStatus) -> tuple[str, _status.RunStatus] | None:
    """The run to carry on for one that is due: itself, or what it is a child of; None where nothing is to be done.

    A child whose parent is closed is stopped, as whoever opens it does.
    """
    while (call := status.parent_call) is not None:
        try:
            above = _status.of(load.read(store, call.run))
        except eventlog.NoSuchRun:
            above = None
        if above is None or above.closed:
            load.take_requests(store, run)
            return None
        if above.stopped is not None:
            return None  # when that is due, its own status says
        run, status = call.run, above
    return run, status


def is_due(state: State, now: datetime) -> bool:
    """Whether somebody must look now at a run that nobody holds."""
    when = _when(_status.of(state), now)
    return when is not None and when <= now


def _when(status: _status.RunStatus, now: datetime) -> datetime | None:
    """The time of a status's `wake`. What is due at once is due now, also when the clock was set back since."""
    when, at = status.wake, status.at
    return min(when, now) if when is not None and at is not None and when <= at else when


class Queue:
    """Runs that wait for their turn: agents take turns; the run of one that is due for longest goes first.

    So thousands of one agent keep few of another from nothing. Among equals a random run goes first: several workers
    look at the same runs, and equal orders would have them meet at each.
    """

    def __init__(self) -> None:
        self._heaps: dict[str, list[tuple[float, float, str]]] = {}
        self._queued: set[str] = set()
        self._turns: dict[str, int] = {}
        self._taken = 0

    def __contains__(self, run: str) -> bool:
        return run in self._queued

    def put(self, due: Due) -> None:
        """Add a run, unless it waits already."""
        if due.run not in self._queued:
            self._queued.add(due.run)
            second = due.when.timestamp() // 1
            heapq.heappush(self._heaps.setdefault(due.agent, []), (second, random.random(), due.run))  # noqa: S311

    def take(self, agents: Iterable[str]) -> tuple[str, str] | None:
        """Take the next run of one of these agents, which is given with it."""
        waiting = [(self._turns.get(agent, 0), self._heaps[agent][0], agent) for agent in agents if self.count(agent)]
        if not waiting:
            return None
        *_, agent = min(waiting)
        *_, run = heapq.heappop(self._heaps[agent])
        self._taken += 1
        self._turns[agent] = self._taken
        self._queued.discard(run)
        return run, agent

    def count(self, agent: str) -> int:
        """How many runs of an agent wait."""
        return len(self._heaps.get(agent, ()))

    def agents(self) -> list[str]:
        """The agents that have runs in the queue."""
        return [agent for agent, heap in self._heaps.items() if heap]
