"""Start a run or attach to it: the same call, made again after a crash, goes on instead of beginning anew."""

import asyncio
import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, overload

import eventlog
from eventlog import RunExists
from replay import State
from runner._agent import sanitize
from runner._agent.agent import Agent, AnyAgent
from runner._clock import Clock
from runner._engine import opening
from runner._engine.lifecycle import AttachOptions, carried_on, start, without_loop
from runner._engine.loop import Watch
from runner._engine.opening import GRACE
from runner._engine.save_pool import beside, off_loop
from runner._engine.session import outcome
from runner._runs import load
from runner._runs.questions import OnQuestion, Outcome
from runner.errors import BadAgent, NotStarted

HELD = frozenset({"TurnLimit", "TokenLimit", "DollarLimit", "TooManyResumes", "Parked"})
"""Stops after which only a `resume` of that run carries it on."""
_MAKING = 200
"""How often a run is looked for, 5 ms apart, that another process is making right now."""


Inputs = TypeVar("Inputs")
Output = TypeVar("Output")


class RunOptions(TypedDict, total=False):
    """What `enqueue` and `Worker.start` take besides; `start` says what each means."""

    run: str | None
    workspace: str | Path | None
    after: str | None
    labels: Mapping[str, str] | None


class EnqueueOptions(RunOptions, total=False):
    """What `enqueue` takes besides."""

    connection: Any


@overload
async def run(
    agent: Agent[None, Any, Output], task: str, *, run: str, runs: eventlog.Runs, **options: Unpack[AttachOptions]
) -> Outcome[Output]: ...
@overload
async def run(
    agent: Agent[Inputs, Any, Output],
    task: str,
    *,
    run: str,
    runs: eventlog.Runs,
    inputs: Inputs,
    **options: Unpack[AttachOptions],
) -> Outcome[Output]: ...
async def run(  # noqa: PLR0913 (each is one thing that a caller may want)
    agent: AnyAgent,
    task: str,
    *,
    run: str,
    runs: eventlog.Runs,
    inputs: Any = None,
    workspace: str | Path | None = None,
    after: str | None = None,
    labels: Mapping[str, str] | None = None,
    on_question: OnQuestion | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
) -> Outcome[Any]:
    """Start the run of this id, or carry it on if it exists.

    The same call again after a crash goes on. What is given is as for `start`; also, `workspace` is as for `resume` if
    it was moved, and the labels of a run that exists stay.

    Returns:
        `Finished`, at once if the run is done; or `Paused` when a person must decide.

    Raises:
        Stopped: The run stopped. One that stopped at a limit, or was parked, is not carried on.
        RunExists: The id is that of a run that was begun otherwise; `differs` says in what.
        RunLocked: Another process has it.
        RunError, LogError: As `start` and `resume`.
    """
    opening.check(agent=agent)
    given: dict[str, Any] = {"workspace": workspace, "watch": watch, "clock": clock, "grace": grace}
    store = eventlog.store(runs)
    if await beside(functools.partial(made, store, run)) is None:
        with contextlib.suppress(RunExists, eventlog.RunLocked):  # another process was faster
            begun = {"inputs": inputs, "run": run, "after": after, "labels": labels, "on_question": on_question}
            return await start(agent, task, runs=store, **begun, **given)
    state = await existing(agent, task, run, inputs=inputs, store=store, after=after)
    stopped = state.stopped
    if stopped is not None and (stopped.final or stopped.reason in HELD):
        return outcome(agent, state)
    reopen = functools.partial(opening.reopen, run, agent, store=store, held=HELD, **given)
    return await carried_on(await beside(reopen, kept=True), on_question)


run_sync = without_loop(run)


@overload
def enqueue(
    agent: Agent[None, Any, Any], task: str, *, runs: eventlog.Runs, **options: Unpack[EnqueueOptions]
) -> str: ...
@overload
def enqueue(
    agent: Agent[Inputs, Any, Any], task: str, *, runs: eventlog.Runs, inputs: Inputs, **options: Unpack[EnqueueOptions]
) -> str: ...
def enqueue(
    agent: AnyAgent,
    task: str,
    *,
    runs: eventlog.Runs,
    inputs: Any = None,
    run: str | None = None,
    workspace: str | Path | None = None,
    after: str | None = None,
    labels: Mapping[str, str] | None = None,
    connection: Any = None,
) -> str:
    """Make a run and leave it to a worker.

    The worker needs an agent of this name. What is given is as for `start`. With a `connection` of psycopg's to the
    database of the runs, the run is made in the transaction that is open on it, and exists, for everybody else, once
    that commits.

    Returns:
        The run's id. Without `connection` the run is durable.

    Raises:
        RunExists: The id is taken.
        BadAgent: There is a `connection`, and the runs are in a directory.
        RunError, LogError: As `start`.
    """
    store = eventlog.store(runs)
    given: dict[str, Any] = {"workspace": workspace, "run": run, "after": after, "labels": labels}
    given["enqueued"] = True
    if connection is not None and not store.knows_due:
        raise BadAgent(f"{store} is a directory, and takes part in no transaction")
    with contextlib.nullcontext() if connection is None else store.within(connection):
        made = opening.create(agent, task, inputs=inputs, store=store, **given)
        made.life.end()
    return made.state.run


async def existing(
    agent: AnyAgent, task: str, run: str, *, inputs: Any, store: eventlog.Store, after: str | None
) -> State:
    """The state of a run that another call began. Raises `RunExists` unless it began it as this one would."""
    for _ in range(_MAKING):
        state = await off_loop(functools.partial(made, store, run))
        if state is not None:
            break
        await asyncio.sleep(0.005)
    else:
        raise NotStarted(run)
    wanted = {"agent": (agent.name, state.agent), "task": (sanitize.clean(task), state.task)}
    wanted["after"] = (after or "", state.after or "")
    wanted["inputs"] = (agent.dump_inputs(inputs) or "", state.inputs or "")
    differs = tuple(name for name, (ours, theirs) in wanted.items() if ours != theirs)
    if differs:
        raise RunExists(run, str(store), differs)
    return state


def made(store: eventlog.Store, run: str) -> State | None:
    """The state of a run, or None while it is being made."""
    try:
        state = load.read(store, run)
    except (eventlog.NoSuchRun, eventlog.NotARunsDirectory):
        return None
    return state if state.phase != "new" else None
