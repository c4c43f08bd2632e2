"""Start and resume: open a life, run it until nothing is due, and return or raise how it ended.

The lock is taken before anything is read, and held until all that this life started has ended. A done run returns its
answer and asks nobody; a pause is returned, not raised; a stop is logged and then raised as the error that names its
reason.
"""

import asyncio
import contextlib
import functools
import math
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

import eventlog
from runner._agent.agent import Agent, AnyAgent
from runner._clock import Clock
from runner._engine import opening, save_pool
from runner._engine.loop import Watch
from runner._engine.opening import GRACE, Opened
from runner._engine.session import entered, run_session
from runner._runs.questions import Finished, OnQuestion, Outcome
from runner.errors import InsideEventLoop

P = ParamSpec("P")
T = TypeVar("T")
Inputs = TypeVar("Inputs")
Output = TypeVar("Output")


class AttachOptions(TypedDict, total=False):
    """What `run` takes besides, with inputs and without; `start` says what each means."""

    workspace: str | Path | None
    after: str | None
    labels: Mapping[str, str] | None
    on_question: OnQuestion | None
    watch: Watch | None
    clock: Clock | None
    grace: float


class StartOptions(AttachOptions, total=False):
    """What `start` takes besides."""

    run: str | None


@overload
async def start(
    agent: Agent[None, Any, Output], task: str, *, runs: eventlog.Runs, **options: Unpack[StartOptions]
) -> Outcome[Output]: ...
@overload
async def start(
    agent: Agent[Inputs, Any, Output],
    task: str,
    *,
    runs: eventlog.Runs,
    inputs: Inputs,
    **options: Unpack[StartOptions],
) -> Outcome[Output]: ...
async def start(  # noqa: PLR0913 (each option is one fact about the run)
    agent: AnyAgent,
    task: str,
    *,
    runs: eventlog.Runs,
    inputs: Any = None,
    workspace: str | Path | None = None,
    run: str | None = None,
    after: str | None = None,
    labels: Mapping[str, str] | None = None,
    on_question: OnQuestion | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
) -> Outcome[Any]:
    """Start a run and carry it as far as it goes.

    Args:
        agent: What runs.
        task: The first message to the model.
        runs: Where runs live: a path (the directory is made if missing), a URL, or a store.
        inputs: What the agent declares with `inputs=`: facts of this run for its tools and its instructions. No message
            holds them.
        workspace: The directory that the tools' `call.workspace` writes in.
        run: The run's id. Default: the agent's name, the day and eight random characters.
        after: A finished run whose conversation this one continues.
        labels: Names and values to find the run by, as `{"tenant": "acme"}`.
        on_question: Asked in this process what a person must decide; returning None leaves the question open.
        watch: Called after each save with the state and the events it wrote.
        clock: The clock, for tests.
        grace: Seconds a call in flight may take to end after a signal.

    Returns:
        `Finished`, or `Paused` when a person must decide.

    Raises:
        Stopped: The run stopped; the class names the reason.
        RunExists: The id is taken.
        BadAgent: The agent, the task or the inputs can't work as given.
        NoWorkspace: `workspace` is not a directory.
        LogError: The log can't be written.
    """
    opening.check(agent=agent, on_question=on_question)
    given: dict[str, Any] = {"store": eventlog.store(runs), "watch": watch, "clock": clock, "grace": grace}
    given |= {"inputs": inputs, "workspace": workspace, "run": run, "after": after, "labels": labels}
    async with entered(agent) as resources:
        opened = await save_pool.beside(functools.partial(opening.create, agent, task, **given), kept=True)
        return await run_session(opened, on_question, resources)


async def resume(
    run: str,
    agent: Agent[Any, Any, Output],
    *,
    runs: eventlog.Runs,
    workspace: str | Path | None = None,
    accept_workspace: str | None = None,
    on_question: OnQuestion | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
    wait: Literal["sleep", "return"] = "sleep",
) -> Outcome[Output]:
    """Carry a run on from its log, in any process.

    A done run returns its saved answer. A paused one without a new answer returns `Paused` and writes nothing.

    Args:
        run: The run's id.
        agent: An agent of the name that the run began with.
        runs: As for `start`.
        workspace: Where the workspace is now, if it was moved. The files must be there as the run left them.
        accept_workspace: Who vouches for files that no longer hold what the run wrote.
        on_question: As for `start`.
        watch: As for `start`.
        clock: As for `start`.
        grace: As for `start`.
        wait: `return`: give back `Waiting` where the run waits for a time, for a queue that calls again then.

    Returns:
        `Finished`, `Paused` when a person must decide, or `Waiting`.

    Raises:
        Stopped: The run stopped, or stopped again; the class names the reason. `Parked` also when a person asked for
            it before this resume, and nobody held the run since.
        RunLocked: Another process has it; raised at once.
        NoSuchRun: There is no such run.
        LogDamaged: Something that was saved is gone or changed.
        NotStarted: The log holds no run.
        OtherAgent: The run began with an agent of another name.
        BadAgent: The agent can't read the run's inputs.
        CannotContinue: A later version wrote to it.
        NoWorkspace: `workspace` is not a directory, or the run began without one.
    """
    opening.check(on_question=on_question, wait=wait)
    given: dict[str, Any] = {"store": eventlog.store(runs), "watch": watch, "clock": clock, "grace": grace}
    given |= {"workspace": workspace, "accept_workspace": accept_workspace}
    opened = await save_pool.beside(functools.partial(opening.reopen, run, agent, **given), kept=True)
    return await carried_on(opened, on_question, 0.0 if wait == "return" else math.inf)


async def carried_on(
    opened: Opened | Finished[Any], on_question: OnQuestion | None, rest: float = math.inf
) -> Outcome[Any]:
    """What a run comes to that was opened again."""
    if isinstance(opened, Finished):
        await asyncio.sleep(0)  # a cancellation that came meanwhile is raised here
        return opened
    async with contextlib.AsyncExitStack() as stack:
        try:
            resources = await stack.enter_async_context(entered(opened.life.agent))
        except BaseException:  # without resources there is no session, which would end the life
            opened.life.end()
            raise
        return await run_session(opened, on_question, resources, rest)


def without_loop(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same for code that has no event loop, with the same signature."""

    @functools.wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        if asyncio._get_running_loop() is not None:  # noqa: SLF001 (get_running_loop raises where there is none)
            raise InsideEventLoop(function.__name__)
        return asyncio.run(function(*args, **kwargs))

    twin.__name__ = twin.__qualname__ = f"{function.__name__}_sync"
    return twin


start_sync = without_loop(start)
resume_sync = without_loop(resume)
