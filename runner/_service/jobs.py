"""What a job of somebody's queue does: look at one run, or find which runs of an agent are due."""

import contextlib
import functools

import eventlog
from runner import _logging
from runner._agent.agent import AnyAgent
from runner._agent.agent_tool import nested
from runner._engine.save_pool import off_loop
from runner._engine.session import entered, run_session
from runner._service import due
from runner._service.carrier import REST, open_due
from runner.errors import Stopped

GONE = (eventlog.RunLocked, eventlog.NoSuchRun, eventlog.LockLost, eventlog.LogDead, Stopped)
"""Ends of a look of which the run's row says all there is to do."""


async def look_at(run: str, agent: AnyAgent, store: eventlog.Store) -> None:
    """Carry a run on, if it is due and nobody has it, until it rests. Raises what it raises, except `GONE`."""
    with contextlib.suppress(*GONE):
        opened = await off_loop(functools.partial(open_due, run, agent, store=store))
        if opened is None:
            return
        try:
            async with entered(agent) as resources:
                await run_session(opened, None, resources, REST)
        finally:
            opened.life.end()  # also when there are no resources


def due_runs(agent: AnyAgent, store: eventlog.Store, room: int) -> set[str]:
    """Up to `room` runs of an agent that are due; for a child run its parent is."""
    found, log = set(store.due([agent.name], room)), _logging.logger()
    if inner := nested([agent]).keys() - {agent.name}:
        names = store.due(inner, room)
        parents = due.find(store, names, [agent.name], lambda run, error: log.warning(str(error), run=run))
        found.update(one.run for one in parents)
    return found
