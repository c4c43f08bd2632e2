"""The worker: finds what is due among all runs of its agents, and has it carried on until it leaves."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, overload

import eventlog
from runner._agent.agent import Agent, AnyAgent
from runner._engine import opening, session
from runner._engine.loop import Watch
from runner._engine.save_pool import off_loop
from runner._service import due
from runner._service.attach import RunOptions, existing
from runner._service.carrier import Carrier, Problem
from runner._service.due import Due
from runner._service.handle import Run
from runner.errors import BadAgent, WorkerLeft

Inputs = TypeVar("Inputs")
Output = TypeVar("Output")
LOOK, SOON = 30.0, 1.0
"""Seconds between looks at all runs, whatever happens; or at those that a store knows to be due."""
TICK = 0.2
"""Seconds between looks at what rang or became due."""
OTHERS = 0.5
"""Seconds between looks at whether another process that carries runs is gone."""
ALL = "all runs"
"""The problem of a look that failed."""
CHUNK = 50
"""Runs that are looked at in one piece of work."""


class Worker:
    """Carries on the runs of some agents: as a lifespan of your web application, or as `refold worker`.

    Entering it begins to carry on every run of its agents that is due, and it goes on doing so; leaving drains it. Any
    number of workers may share a place for runs.

    Args:
        agents: The agents, each name once.
        runs: As for `start`.
        at_once: How many runs are carried at the same time.
        grace: Seconds that a call or an ask in flight may take to end when the worker leaves.
        watch: As for `start`, for every run.
    """

    def __init__(
        self,
        agents: Sequence[AnyAgent],
        *,
        runs: eventlog.Runs,
        at_once: int = 100,
        grace: float = 30.0,
        watch: Watch | None = None,
    ) -> None:
        self._store = eventlog.store(runs)
        self._carrier = Carrier(agents, self._store, at_once, grace, watch)
        if len(self._carrier.agents) < len(agents):
            raise BadAgent("two agents of a worker have one name")
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: asyncio.Task[None] | None = None
        self._all = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Begin to carry on what is due.

        Raises:
            WorkerLeft: It was drained before: nothing would end it again. Or it was entered before.
            NotARunsDirectory: There is no such place of runs, and it can't be made.
        """
        presence = await off_loop(self._store.enter, kept=True)
        with contextlib.ExitStack() as undo:
            undo.push(presence)
            await asyncio.sleep(0)  # a cancellation that came meanwhile is raised here
            if self._leaving is not None or self._tasks:
                raise WorkerLeft
            undo.pop_all()
        self._presence, self._bell = presence, self._store.bell()
        self._carrier.log.info("worker began", runs=str(self._store), agents=[*self._carrier.agents])
        steps = {self._look: SOON if self._store.knows_due else LOOK, self._tick: SOON, self._others: SOON}
        self._tasks = {asyncio.create_task(self._forever(step, pause)) for step, pause in steps.items()}
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave, as `drain` does."""
        await self.drain()

    @property
    def problems(self) -> Mapping[str, Problem]:
        """What could not be done, by run id or `agent NAME`, until it is done."""
        return self._carrier.problems

    @property
    def active(self) -> Sequence[str]:
        """The runs that are carried now."""
        return [*self._carrier.active]

    @overload
    async def start(self, agent: Agent[None, Any, Output], task: str, **options: Unpack[RunOptions]) -> Run[Output]: ...
    @overload
    async def start(
        self, agent: Agent[Inputs, Any, Output], task: str, *, inputs: Inputs, **options: Unpack[RunOptions]
    ) -> Run[Output]: ...
    async def start(
        self,
        agent: AnyAgent,
        task: str,
        *,
        inputs: Any = None,
        run: str | None = None,
        workspace: str | Path | None = None,
        after: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Run[Any]:
        """Start a run in this worker, or attach to the one of this id.

        Once this returns, the run is durable. The agent is one of the worker's; what else is given is as for `start`.

        Returns:
            The run. Beyond `at_once` it waits for its turn.

        Raises:
            RunExists: The id is that of a run of another agent or task, or after another run; `differs` says which.
            WorkerLeft: The worker is leaving, and accepts nothing.
            RunError, LogError: As `start`.
        """
        carrier = self._carrier
        if carrier.draining:
            raise WorkerLeft
        if agent.name not in carrier.agents:
            raise BadAgent(f"agent {agent.name} is none of this worker's, which are {', '.join(carrier.agents)}")
        now = carrier.resources[agent.name].ready and not carrier.full
        given: dict[str, Any] = {"inputs": inputs, "run": run, "workspace": workspace, "after": after, "labels": labels}
        given |= {"enqueued": not now, "store": self._store, "watch": carrier.watch, "grace": carrier.grace}
        carrier.starting += now
        try:
            opened = await off_loop(functools.partial(opening.create, agent, task, **given), kept=True)
        except (eventlog.RunExists, eventlog.RunLocked):
            if run is None:
                raise
            await existing(agent, task, run, inputs=inputs, store=self._store, after=after)
            await self._look_at([run])
            return Run(carrier, run, agent)
        finally:
            carrier.starting -= now
        name = opened.state.run
        if now:
            carrier.begin(name, carrier.live(opened))
        else:
            session.show_beginning(opened)
            await carrier.close(opened)
            assert opened.state.at is not None
            carrier.add(Due(opened.state.at, name, agent.name))
            carrier.fill()
        await asyncio.sleep(0)  # a cancellation that came meanwhile is raised here, and the run goes on
        return Run(carrier, name, agent)

    async def drain(self) -> None:
        """Leave: begin nothing new, let what is in flight end within `grace`, and give every run back.

        What does not end in time is cut off and in doubt, as after a crash. A run whose thread goes on is given back
        when that thread ends, or the process.
        """
        if self._leaving is None:
            for task in self._tasks:
                task.cancel()
            self._leaving = asyncio.create_task(self._carrier.leave())
        await asyncio.shield(self._leaving)
        await asyncio.gather(*self._tasks, return_exceptions=True)  # one may still look who is here
        if self._tasks:  # else nobody has entered it
            self._presence.leave()

    async def _forever(self, step: Callable[[], Awaitable[None]], pause: float) -> None:
        """Do a step again and again, and after a pause where one raises: that is a problem, and may pass."""
        while True:
            try:
                await step()
            except Exception as error:  # noqa: BLE001 (whatever it is, the worker goes on looking)
                if not self._carrier.waits(ALL):  # else another step has said it
                    self._carrier.report(ALL, error)
                await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until all runs are to be looked at."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all.wait()

    async def _look(self) -> None:
        """Look at all runs that may be due, and at those with a problem."""
        carrier, knows_due = self._carrier, self._store.knows_due
        self._all.clear()
        agents, room = carrier.wanted()
        names = await off_loop(functools.partial(self._store.due, agents, room))
        more = knows_due and 0 < room <= len(names)
        names += [what for what in carrier.problems if what not in names and " " not in what]  # no agents
        names = [run for run in names if run not in carrier.active]
        for first in range(0, len(names), CHUNK):
            await self._look_at(names[first : first + CHUNK])
        carrier.problems.pop(ALL, None)
        await self._pause(TICK if more else SOON if knows_due else LOOK)

    async def _others(self) -> None:
        """Look at all runs at once when a process that carried some is gone."""
        await asyncio.sleep(OTHERS)
        if await off_loop(self._presence.departed):
            self._all.set()

    async def _tick(self) -> None:
        """Look at the runs that somebody named, or whose time has come."""
        await asyncio.sleep(TICK)
        carrier = self._carrier
        carrier.rung.update(await off_loop(self._bell.heard), carrier.woken())
        woken = carrier.rung - carrier.active.keys()
        carrier.rung -= woken
        try:
            if woken:
                await self._look_at(sorted(woken))
        except Exception:  # whatever it is, they are still to be looked at
            carrier.rung |= woken
            raise
        carrier.fill()

    async def _look_at(self, names: Sequence[str]) -> None:
        """Find what is due among runs, and begin it if there is room."""
        carrier = self._carrier
        carrier.rung.update(run for run in names if run in carrier.active)
        problems: dict[str, Exception] = {}
        free = [run for run in names if run not in carrier.active]
        find = functools.partial(due.find, self._store, free, carrier.agents, problems.__setitem__)
        found = {one.run: one for one in await off_loop(find)}
        for one in found.values():
            carrier.add(one)
        for run in carrier.problems.keys() & set(free) - problems.keys() - found.keys():
            if not carrier.waits(run):
                del carrier.problems[run]  # there is nothing to try again
        for run, error in problems.items():
            if not carrier.waits(run):
                carrier.report(run, error)
        carrier.fill()
