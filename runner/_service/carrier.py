"""The runs that a worker carries on: which wait for their turn, which are alive, and what each life came to.

Everything here runs in the loop's thread; only opening and closing a log happens in another. Whatever a run raises is
reported, and ends neither the worker nor another run.
"""

import asyncio
import contextlib
import functools
import heapq
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import eventlog
from runner import _logging
from runner._agent.agent import AnyAgent
from runner._agent.agent_tool import nested
from runner._engine import opening, session
from runner._engine.flight import LINGER
from runner._engine.loop import Watch
from runner._engine.opening import Opened
from runner._engine.save_pool import counted, off_loop
from runner._runs.questions import Finished, Outcome, Waiting
from runner._service import due
from runner._service.due import Due, Queue
from runner._service.resources import Resources
from runner.errors import Interrupted, Stopped

REST = 5.0
"""Seconds: a longer wait gives slot and lock back."""
AGAIN = (60.0, 300.0, 900.0, 3600.0)
"""Seconds until a run that raised is tried again: the first time, the second, and so on."""
SERVER = (1.0, 5.0, 15.0, 60.0)
"""The same where a server keeps the runs: most errors of a log say that it could not be reached."""
LOOK, OTHERS = 0.02, 0.5
"""Seconds between looks at a log that is closed elsewhere; and that a leaving worker waits for threads that go on."""

Came = Outcome[Any] | BaseException | None


@dataclass
class Problem:
    """What a worker could not do, with a run or with all runs of an agent.

    Attributes:
        what: The run's id, or `agent NAME`.
        error: What was raised last.
        times: How often in a row.
        again: When it is tried again, in seconds of the monotonic clock.
    """

    what: str
    error: BaseException
    times: int
    again: float


def open_due(
    run: str, agent: AnyAgent, *, store: eventlog.Store, watch: Watch | None = None, grace: float = opening.GRACE
) -> Opened | None:
    """Open a run to carry it on, if it is due now. Raises what `opening.reopen` does."""
    opened = opening.reopen(run, agent, store=store, watch=watch, grace=grace)
    if isinstance(opened, Finished):
        return None
    if not due.is_due(opened.state, store.now()):
        opened.life.end()
        return None
    return opened


class Carrier:
    """Carries runs of `agents` on, `at_once` at a time.

    `rung` are the runs that somebody named while they were carried: they are looked at again afterwards.
    """

    def __init__(
        self, agents: Sequence[AnyAgent], store: eventlog.Store, at_once: int, grace: float, watch: Watch | None
    ) -> None:
        opening.check(agents=agents, at_once=at_once, grace=grace, watch=watch)
        self.agents = {agent.name: agent for agent in agents}
        self.store, self.at_once, self.grace, self.watch = store, at_once, grace, watch
        self.problems: dict[str, Problem] = {}
        self.resources = {a.name: Resources(a, functools.partial(self._entered, a.name)) for a in agents}
        self.draining = False
        self.active: dict[str, asyncio.Task[None]] = {}
        self.starting = 0
        self.rung: set[str] = set()
        self._queue = Queue()
        self._later: list[Due] = []
        self._times: dict[str, datetime] = {}
        self._lives: dict[str, Opened] = {}
        self._listeners: dict[str, set[asyncio.Future[Came]]] = {}
        self.log = _logging.logger()

    @property
    def full(self) -> bool:
        """Whether as many runs are carried as may be."""
        return len(self.active) + self.starting >= self.at_once

    def wanted(self) -> tuple[list[str], int]:
        """For which agents runs are looked for, and how many. What waits for resources takes nobody else's room."""
        waiting = {agent: self._queue.count(agent) for agent in self.agents}
        ready = sum(waiting[agent] for agent, resources in self.resources.items() if resources.ready)
        agents = [agent for agent, resources in self.resources.items() if resources.ready or not waiting[agent]]
        agents = [*nested(self.agents[agent] for agent in agents)]  # a child's is not asked for, its parent is due
        return agents, max(0, self.at_once - len(self.active) - self.starting - ready)

    def has(self, run: str) -> bool:
        """Whether a run is carried here, or is about to be."""
        return run in self.active or (run in self._queue and not self.draining)

    def add(self, found: Due) -> None:
        """Take note of a run that is due, now or later."""
        if self.waits(found.run):
            return
        if found.run in self.active:
            self.rung.add(found.run)
        elif found.when <= self.store.now():
            self._queue.put(found)
        elif self._times.get(found.run) != found.when:
            self._times[found.run] = found.when
            heapq.heappush(self._later, found)

    def waits(self, what: str) -> bool:
        """Whether something could not be done, and is not to be tried again yet."""
        problem = self.problems.get(what)
        return problem is not None and problem.again > time.monotonic()

    def woken(self) -> list[str]:
        """The runs whose time has come since this was last asked."""
        found = []
        while self._later and self._later[0].when <= self.store.now():
            later = heapq.heappop(self._later)
            if self._times.get(later.run) == later.when:
                del self._times[later.run]
                found.append(later.run)
        return found

    def fill(self) -> None:
        """Begin runs that are due, as long as there is room; an agent's first one has its resources entered."""
        for agent in () if self.draining else self._queue.agents():
            self.resources[agent].enter()
        while not (self.draining or self.full):
            taken = self._queue.take(name for name, resources in self.resources.items() if resources.ready)
            if taken is None:
                return
            run, agent = taken
            self.begin(run, self._carry(run, self.agents[agent]))

    def begin(self, run: str, work: Coroutine[Any, Any, None]) -> None:
        """Carry a run in a task of its own."""
        task = self.active[run] = asyncio.create_task(work)
        task.add_done_callback(functools.partial(self._over, run))

    async def live(self, opened: Opened) -> None:
        """One life of a run, to where its log is closed."""
        life, run = opened.life, opened.state.run
        life.executor.resources, life.rest = self.resources[life.agent.name].value, REST
        self._lives[run] = opened
        self.log.info("run resumed" if opened.resumed else "run started", run=run, agent=life.agent.name)
        if self.draining:
            life.drain.ask()
        came: Came
        try:
            try:
                with counted(2):  # a worker's only run saves in a thread, too
                    state, looked = await session.carry(opened, None)
            finally:
                await self.close(opened)
                del self._lives[run]
            came = session.ended(life, state, looked=looked)
        except BaseException as error:  # noqa: BLE001 (whatever it is, other runs go on)
            came = error
        if self.store.knows_due and isinstance(came, eventlog.LockLost | eventlog.LogDead):
            self.log.warning("run lost", run=run, error=str(came))  # the store says when it is due again
            self._tell(run, None)
            return
        again = life.after is not None  # what was asked for while it was closed may have made it due
        if again:
            self.rung.add(run)
        self._tell(run, None if again and not isinstance(came, BaseException) else came)
        if isinstance(came, BaseException) and not isinstance(came, Stopped):
            self.report(run, came)
            return
        self.problems.pop(run, None)
        word = came.reason if isinstance(came, Stopped) else type(came).__name__.lower()
        self.log.info("run rests", run=run, outcome=word)
        if isinstance(came, Waiting):
            self.active.pop(run)
            self.add(Due(came.until, run, life.agent.name))

    async def close(self, opened: Opened) -> None:
        """Close a log. A thread that still runs closes it when it ends; a leaving worker waits little for that."""
        await off_loop(opened.life.end)
        left = 0.0
        while not opened.life.closed.is_set() and left < OTHERS:
            left += LOOK if self.draining else 0.0
            await asyncio.sleep(LOOK)

    @contextlib.contextmanager
    def listening(self, run: str) -> Iterator[asyncio.Future[Came]]:
        """A future of what the next life of a run here comes to; None: look again."""
        future: asyncio.Future[Came] = asyncio.get_running_loop().create_future()
        self._listeners.setdefault(run, set()).add(future)
        try:
            yield future
        finally:
            listeners = self._listeners.get(run, set())
            listeners.discard(future)
            if not listeners:
                self._listeners.pop(run, None)

    def report(self, what: str, error: BaseException) -> None:
        """Say what could not be done, and have it tried again after a while."""
        times = self.problems[what].times + 1 if what in self.problems else 1
        pauses = SERVER if self.store.knows_due and isinstance(error, eventlog.LogError) else AGAIN
        again = time.monotonic() + pauses[min(times, len(pauses)) - 1]
        self.problems[what] = Problem(what, error, times, again)
        said = {"error": str(error), "hint": getattr(error, "hint", ""), "error_type": type(error).__name__}
        self.log.warning("problem", what=what, **said, times=times)

    async def leave(self) -> None:
        """Let what is in flight end within `grace`, give every run back, then leave the resources."""
        self.draining = True
        for opened in self._lives.values():
            opened.life.drain.ask()
        while self.active:
            await asyncio.wait(self.active.values())
        for run in list(self._listeners):
            self._tell(run, None)
        for resources in self.resources.values():
            await resources.leave(LINGER)
        self.log.info("worker left")

    async def _carry(self, run: str, agent: AnyAgent) -> None:
        """Open a run that is due, unless somebody was faster, and carry it on."""
        try:
            opened = await off_loop(functools.partial(self._open, run, agent), kept=True)
        except (eventlog.RunLocked, eventlog.NoSuchRun, Stopped):
            return
        except BaseException as error:  # noqa: BLE001 (whatever it is, other runs go on)
            self.report(run, error)
            self._tell(run, error)
            return
        if opened is not None:
            await self.live(opened)

    def _open(self, run: str, agent: AnyAgent) -> Opened | None:
        opened = open_due(run, agent, store=self.store, watch=self.watch, grace=self.grace)
        if opened is not None and self.draining:
            opened.life.end()
            return None
        return opened

    def _over(self, run: str, task: asyncio.Task[None]) -> None:
        if self.active.get(run) is task:
            del self.active[run]
        self._tell(run, None)
        self.fill()

    def _tell(self, run: str, came: Came) -> None:
        if isinstance(came, Interrupted) and not self.draining:
            came = None
        for future in self._listeners.pop(run, ()):
            if not future.done():
                future.set_result(came)

    def _entered(self, agent: str, error: BaseException | None) -> None:
        """Resources are ready, or could not be entered."""
        if error is None:
            self.problems.pop(f"agent {agent}", None)
            self.fill()
        else:
            self.report(f"agent {agent}", error)
