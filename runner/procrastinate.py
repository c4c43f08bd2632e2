"""Runs as jobs of procrastinate: `procrastinate worker` carries them on, on any number of machines.

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL))
    queue = runner.procrastinate.Queue(app, [payer], runs=URL)

    with psycopg.connect(URL) as connection:                   # one transaction with your own rows
        connection.execute("update invoice set state = 'paying' where id = 7")
        queue.enqueue(payer, "Pay invoice 7.", run="pay-7", connection=connection)

    $ procrastinate --app=shop.app worker --queues=refold:payer --concurrency=20 --delete-jobs=always

A job says no more than "look at this run". Whether the run must be carried on stands in its row, and another job, every
five seconds, makes jobs of the rows that are due. So a job too many does no harm, and one that is lost is made again:
jobs have no lock and no retry, and nothing rests on what procrastinate does after a death. Of an agent's looks at rows
one waits at most (its queueing lock): else they grew without end where no worker has a slot for them, or takes that
queue. Each agent has a queue of its own, because a worker takes every job of its queues, whether or not it knows the
agent.

A worker that is told to leave lets its jobs run for `--shutdown-graceful-timeout` seconds, and then cancels them: what
is in flight is in doubt then, as after a crash. It ends when it loses its connections, so a supervisor begins it again.
"""

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, TypeVar, Unpack, overload

import procrastinate

import eventlog
from runner import _logging
from runner._agent.agent import Agent, AnyAgent
from runner._agent.agent_tool import nested
from runner._engine.lifecycle import carried_on
from runner._engine.save_pool import off_loop
from runner._service import attach, due
from runner._service.attach import RunOptions
from runner._service.carrier import REST, open_due
from runner.errors import BadAgent, Stopped

Inputs = TypeVar("Inputs")
__all__ = ["Queue"]
EVERY, MOST = "* * * * * */5", 500
"""When rows are looked at (the sixth field is seconds), and how many jobs of an agent wait at once for such a look."""
_GONE = (eventlog.RunLocked, eventlog.NoSuchRun, eventlog.LockLost, eventlog.LogDead, Stopped)
"""Ends of a look of which the run's row says all there is to do."""


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
        self, agent: Agent[None, Any, Any], task: str, *, connection: Any, **more: Unpack[RunOptions]
    ) -> str: ...
    @overload
    def enqueue(
        self, agent: Agent[Inputs, Any, Any], task: str, *, connection: Any, inputs: Inputs, **more: Unpack[RunOptions]
    ) -> str: ...
    def enqueue(self, agent: AnyAgent, task: str, *, connection: Any, inputs: Any = None, **more: Any) -> str:
        """Make a run and its job in the caller's own transaction, and give the run's id.

        Takes, and raises, what `runner.enqueue` does. What that makes without a job is found by the next look.
        """
        if agent.name not in self._tasks:
            raise BadAgent(f"agent {agent.name} is none of this queue's, which are {', '.join(self._tasks)}")
        run = attach.enqueue(agent, task, runs=self._store, inputs=inputs, connection=connection, **more)
        self._tasks[agent.name].configure(connection=connection).defer(run=run)
        return run

    def _added(self, app: procrastinate.App, agent: AnyAgent) -> Any:
        queue, store = f"refold:{agent.name}", self._store

        @app.task(name=f"refold.carry_on:{agent.name}", queue=queue)
        async def carry_on(run: str) -> None:
            await _look_at(run, agent, store)

        @app.periodic(cron=EVERY, periodic_id=agent.name)
        @app.task(name=f"refold.look:{agent.name}", queue=queue, queueing_lock=f"refold.look:{agent.name}")
        async def look(timestamp: int) -> None:  # noqa: ARG001 (procrastinate's own)
            waiting = await app.job_manager.list_jobs_async(queue=queue, task=carry_on.name, status="todo")
            room = max(0, MOST - len(list(waiting)))
            for run in await off_loop(functools.partial(_due_runs, agent, store, room)):
                await carry_on.defer_async(run=run)

        return carry_on


async def _look_at(run: str, agent: AnyAgent, store: eventlog.Store) -> None:
    """Carry a run on, if it is due and nobody has it, until it rests. Raises what it raises, except `_GONE`."""
    with contextlib.suppress(*_GONE):
        opened = await off_loop(functools.partial(open_due, run, agent, store=store), kept=True)
        if opened is not None:
            await carried_on(opened, None, REST)


def _due_runs(agent: AnyAgent, store: eventlog.Store, room: int) -> set[str]:
    """Up to `room` runs of an agent that are due; for a child run its parent is."""
    found, log = set(store.due([agent.name], room)), _logging.logger()
    if inner := nested([agent]).keys() - {agent.name}:
        names = store.due(inner, room)
        parents = due.find(store, names, [agent.name], lambda run, error: log.warning(str(error), run=run))
        found.update(one.run for one in parents)
    return found
