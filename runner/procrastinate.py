"""Runs as jobs of procrastinate: `procrastinate worker` carries them on, on any number of machines.

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL))
    queue = runner.procrastinate.Queue(app, [payer], runs=URL)

    with psycopg.connect(URL) as connection:                   # one transaction with your own rows
        connection.execute("update invoice set state = 'paying' where id = 7")
        queue.enqueue(payer, "Pay invoice 7.", run="pay-7", connection=connection)

    $ procrastinate --app=shop.app worker --queues=refold:payer --concurrency=20 --delete-jobs=always

A job says no more than "look at this run". Whether the run must be carried on stands in its row, and another job, every
five seconds, makes jobs of the rows that are due. So a job too many does no harm, and one that is lost is made again:
jobs have no lock, no queueing lock and no retry, and nothing rests on what procrastinate does after a death. Each agent
has a queue of its own, because a worker takes every job of its queues, whether or not it knows the agent.

A worker that is told to leave lets its jobs run for `--shutdown-graceful-timeout` seconds, and then cancels them: what
is in flight is in doubt then, as after a crash. It ends when it loses its connections, so a supervisor begins it again.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, TypeVar, Unpack, overload

import procrastinate

import eventlog
from runner import _logging
from runner._agent.agent import Agent, AnyAgent
from runner._agent.agent_tool import nested
from runner._engine.save_pool import off_loop
from runner._engine.session import entered, run_session
from runner._service import due
from runner._service.attach import RunOptions, enqueue
from runner._service.carrier import REST, open_due
from runner.errors import BadAgent, Stopped

Inputs = TypeVar("Inputs")

__all__ = ["Queue"]

EVERY = "* * * * * */5"
"""When rows are looked at, as a cron expression whose sixth field is seconds."""
MOST = 500
"""Jobs of an agent that wait at once, as far as looks make them."""
GONE = (eventlog.RunLocked, eventlog.NoSuchRun, eventlog.LockLost, eventlog.LogDead, Stopped)
"""Ends of a job of which the run's row says all there is to do."""


class Queue:
    """The runs of some agents, as tasks of a procrastinate app."""

    def __init__(self, app: procrastinate.App, agents: Sequence[AnyAgent], *, runs: eventlog.Runs) -> None:
        """Add the tasks of each agent, in the queue `refold:NAME`.

        Args:
            app: The app; its connector may use any database.
            agents: The agents, each name once.
            runs: The database of the runs.

        Raises:
            BadAgent: The runs are in a directory, which only workers on its machine can carry on.
        """
        self._store = eventlog.store(runs)
        if not self._store.knows_due:
            raise BadAgent(f"{self._store} is no database: a `runner.Worker` carries on runs in a directory")
        self._tasks = {agent.name: self._added(app, agent) for agent in agents}

    @overload
    def enqueue(
        self, agent: Agent[None, Any, Any], task: str, *, connection: Any, **options: Unpack[RunOptions]
    ) -> str: ...
    @overload
    def enqueue(
        self,
        agent: Agent[Inputs, Any, Any],
        task: str,
        *,
        connection: Any,
        inputs: Inputs,
        **options: Unpack[RunOptions],
    ) -> str: ...
    def enqueue(self, agent: AnyAgent, task: str, *, connection: Any, inputs: Any = None, **options: Any) -> str:
        """Make a run and its job in the caller's own transaction, and give the run's id.

        Takes, and raises, what `runner.enqueue` does. What that makes without a job is found by the next look.
        """
        run = enqueue(agent, task, runs=self._store, inputs=inputs, connection=connection, **options)
        self._tasks[agent.name].configure(connection=connection).defer(run=run)
        return run

    def _added(self, app: procrastinate.App, agent: AnyAgent) -> Any:
        queue = f"refold:{agent.name}"

        @app.task(name=f"refold.carry_on:{agent.name}", queue=queue)
        async def carry_on(run: str) -> None:
            with contextlib.suppress(*GONE):
                opened = await off_loop(functools.partial(open_due, run, agent, store=self._store))
                if opened is None:
                    return
                try:
                    async with entered(agent) as resources:
                        await run_session(opened, None, resources, REST)
                finally:
                    opened.life.end()  # also when there are no resources

        @app.periodic(cron=EVERY, periodic_id=agent.name)
        @app.task(name=f"refold.look:{agent.name}", queue=queue)
        async def look(timestamp: int) -> None:  # noqa: ARG001 (procrastinate's own)
            waiting = await app.job_manager.list_jobs_async(queue=queue, task=carry_on.name, status="todo")
            for run in await off_loop(functools.partial(self._due, agent, MOST - len(list(waiting)))):
                await carry_on.defer_async(run=run)

        return carry_on

    def _due(self, agent: AnyAgent, room: int) -> set[str]:
        """The runs of an agent that are due; for a child run its parent is."""
        found, log = set(self._store.due([agent.name], max(0, room))), _logging.logger()
        if inner := nested([agent]).keys() - {agent.name}:
            names = self._store.due(inner, max(0, room))
            parents = due.find(self._store, names, [agent.name], lambda run, error: log.warning(str(error), run=run))
            found.update(one.run for one in parents)
        return found
