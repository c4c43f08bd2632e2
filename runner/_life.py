"""Start and resume: open a life, run it to where nothing is due, say what it came to.

The lock is taken before anything is read, and held until all that this life started has ended (spec row 13). A done run
gives its answer and asks nobody; a pause is returned, not raised; a stop is logged and then raised as the error that
names its reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import secrets
from collections.abc import Awaitable
from datetime import datetime
from pathlib import Path
from typing import Any

import eventlog
import replay
from replay import Message, RunStarted, State
from runner import _door, _folded, _keys, _opening, _saves, _signals
from runner._agent import Agent
from runner._clock import Clock, LogClock
from runner._context import sent
from runner._decide import decide
from runner._loop import Life, Watch
from runner._perform import Outcomes
from runner._questions import Answer, Finished, OnQuestion, Paused, answered
from runner._stops import STOPS
from runner._work import Parking
from runner.errors import BadAgent, NotFinished, NoWorkspace

GRACE = 10.0
"""Seconds that a call in flight may take to end after a signal (spec row 9)."""


async def start(  # noqa: PLR0913 (each option is one fact about the run)
    agent: Agent,
    task: str,
    *,
    runs: str | Path,
    workspace: str | Path | None = None,
    run: str | None = None,
    after: str | None = None,
    on_question: OnQuestion | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
    force: bool = False,
    disk: eventlog.Disk = eventlog.DISK,
) -> Finished | Paused:
    """Start a run and carry it as far as it goes.

    task         the first message to the model
    runs         the directory of runs; made if missing
    workspace    the directory that the tools' `call.workspace` writes in
    run          the run's id; default the agent's name, the day and eight random characters (spec row 18)
    after        a finished run whose conversation this one continues (row 32)
    on_question  asked, in this process, whatever a person must decide; returning None leaves the question open
    watch        called after each save with the state and the events it wrote
    clock, grace the clocks (for tests), and the seconds a call in flight may take after a signal
    force        accept a network file system (row 13)
    disk         the seam for tests: another disk, as in `runner.crashtest`, for the log and the workspace

    Raises a `RunStopped` when the run stopped, `eventlog.RunExists` when the id is taken, `NoWorkspace`, `BadAgent`,
    and the log's own errors.
    """
    where = Path(runs)
    root = _root(workspace)
    text = _door.clean(task).text
    if not text:
        message = "the task is empty"
        raise BadAgent(message)
    clock = clock or Clock()
    history = _continued(where, after, disk) if after is not None else ()
    begun = clock.wall()
    name = run if run is not None else _keys.run_id(agent.name, begun, secrets.token_hex(4))
    opening = RunStarted(
        run=name,
        agent=agent.name,
        task=text,
        workspace=root,
        limits=agent.limits,
        definitions=agent.definitions,
        approve=agent.approve,
        host=disk.host(),
        pid=disk.pid(),
        after=after,
        history=history,
    )
    decide(agent, replay.fold(replay.NEW, begun, [opening]), begun)  # what can't be asked leaves no run behind
    log = eventlog.create(where, name, at=begun, events=[replay.encode(opening)], force=force, disk=disk)
    state = replay.load(log.lines)
    if watch is not None:
        with contextlib.suppress(Exception):  # whoever watches can't disturb what is watched
            watch(state, [opening])
    life = Life(agent, log, LogClock(clock, state.at), Parking(grace), root=root, watch=watch, disk=disk)
    return await _live(life, state, on_question, resumed=False)


async def resume(
    run: str,
    agent: Agent,
    *,
    runs: str | Path,
    accept_workspace: str | None = None,
    on_question: OnQuestion | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
    force: bool = False,
    disk: eventlog.Disk = eventlog.DISK,
) -> Finished | Paused:
    """Carry a run on from its log, in any process.

    `accept_workspace` names who vouches for files that no longer hold what the run wrote (spec row 5); the other
    arguments are those of `start`. A done run returns its saved answer without asking the model; a paused one without a
    new answer returns `Paused` and writes nothing.

    Raises a `RunStopped` when the run stopped (again), `eventlog.RunLocked` at once when another process holds it,
    `eventlog.NoSuchRun`, `eventlog.LogDamaged`, `NotStarted`, `OtherAgent`, `CannotContinue`.
    """
    clock = clock or Clock()
    try:
        log, state = _folded.opened(Path(runs), run, force=force, disk=disk)
    except eventlog.ReadOnly:
        state = _folded.read(Path(runs), run, disk=disk)
        if state.phase == "done":
            return Finished(state.answer or "", run, state)
        raise
    try:
        if state.phase == "done":
            log.close()
            return Finished(state.answer or "", run, state)
        _opening.check(state, run, agent)
    except BaseException:  # whatever ends this leaves no lock behind, and goes on up
        log.close()
        raise
    life = Life(agent, log, LogClock(clock, state.at), Parking(grace), root=state.workspace, watch=watch, disk=disk)
    return await _live(life, state, on_question, resumed=True, accept=accept_workspace)


async def _live(
    life: Life, state: State, on_question: OnQuestion | None, *, resumed: bool, accept: str | None = None
) -> Finished | Paused:
    """One life, from its opening to where it ends. A pause is put to the hook first: looking at it writes nothing."""
    looked = False
    try:
        with _signals.parks(life.parking), _saves.counted():
            if resumed and _opening.waits(life.agent, state):
                state = await _ask(life, state, on_question)
                looked = bool(state.waiting)
            if not looked:
                state = await _reopen(life, state, accept) if resumed else await life.go_on(state)
                state = await _carry_on(life, state, on_question)
    finally:
        life.end()
    if state.stopped is not None and not looked:
        raise STOPS[state.stopped.reason](state.run, state.stopped.detail)
    if state.phase == "paused":
        return Paused(state.waiting, state.run, state)
    return Finished(state.answer or "", state.run, state)


async def _reopen(life: Life, state: State, accept: str | None) -> State:
    """The opening of a resume, and what follows from it."""
    back = life.clock.back
    opening = _opening.resumed(life.agent, state, host=life.disk.host(), pid=life.disk.pid(), clock_back=back)
    return await life.run(state, opening, accept=accept)


async def _carry_on(life: Life, state: State, on_question: OnQuestion | None) -> State:
    """Sleep out waits and put open questions, until the run is done, stopped, or left to a person."""
    while state.stopped is None and state.phase != "done":
        assert not state.busy  # whatever perform was given has ended, or the run was stopped
        try:
            if state.phase == "paused":
                state = await _ask(life, state, on_question)
                if state.waiting:
                    break
            elif state.wait is not None:
                await _sleep(life, state.wait.until)
        except asyncio.CancelledError as cancelled:
            await life.go_on(state, Outcomes(error=cancelled))
            raise
        state = await life.go_on(state)
    return state


async def _sleep(life: Life, until: datetime) -> None:
    """Wait for a moment of the log's time, or until the run is asked to park."""
    sleeping = asyncio.ensure_future(life.clock.until(until))
    try:
        await asyncio.wait({sleeping, life.parking.bell()}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeping.cancel()


async def _ask(life: Life, state: State, on_question: OnQuestion | None) -> State:
    """Put every open question to the hook, until the run is asked to park; the state with the answers it gave."""
    for question in state.waiting if on_question is not None else ():
        assert on_question is not None
        given = on_question(question)
        answer = await _unless_parked(life, given) if inspect.isawaitable(given) else given
        if answer is not None:
            state = await life.answer(state, answered(state, question.id, answer.verdict, answer.who, answer.text))
        if life.parking.asked:
            break
    return state


async def _unless_parked(life: Life, given: Awaitable[Answer | None]) -> Answer | None:
    """What the hook answers, or None once the run is asked to park."""
    answering = asyncio.ensure_future(given)
    either: set[asyncio.Future[Any]] = {answering, life.parking.bell()}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()


def _root(workspace: str | Path | None) -> str | None:
    if workspace is None:
        return None
    root = Path(workspace).resolve()
    if not root.is_dir():
        raise NoWorkspace(str(workspace))
    return str(root)


def _continued(runs: Path, after: str, disk: eventlog.Disk) -> tuple[Message, ...]:
    """What a finished run said, for one that continues it."""
    state = _folded.read(runs, after, disk=disk)
    if state.phase != "done":
        raise NotFinished(after, state.phase)
    return sent(state)


def start_sync(agent: Agent, task: str, **options: Any) -> Finished | Paused:
    """`start`, for code that has no event loop."""
    return asyncio.run(start(agent, task, **options))


def resume_sync(run: str, agent: Agent, **options: Any) -> Finished | Paused:
    """`resume`, for code that has no event loop."""
    return asyncio.run(resume(run, agent, **options))
