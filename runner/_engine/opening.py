"""Opening a run for writing: make it, or find it and see whether it can go on. Nothing here waits for a task.

All of it is work on the disk, so that whoever carries many runs may do it in a thread. What is refused is refused
before a line is written.
"""

import contextlib
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

import eventlog
import replay
from replay import State
from replay.events import RunStarted
from replay.values import ParentCall, ParentEffect
from runner._agent import agent_tool, declaration, keys, sanitize
from runner._agent.agent import AnyAgent
from runner._agent.context import WHOLE, sent
from runner._agent.declaration import Accepted, number
from runner._clock import Clock, LogClock
from runner._engine.flight import Drain
from runner._engine.loop import Life, Watch
from runner._policy import resume_check
from runner._policy.decide import decide
from runner._policy.request import rebuilt
from runner._runs import load, status
from runner._runs.questions import Finished, finished
from runner.errors import BadAgent, NoWorkspace

GRACE = 10.0
"""Seconds that a call in flight may take to end after a signal."""

_CONTEXT = "00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"

GIVEN: Accepted = {
    **agent_tool.GIVEN,
    "task": (lambda v: isinstance(v, str), "text"),
    "labels": (
        lambda v: v is None or (isinstance(v, Mapping) and declaration.several([*v, *v.values()], str)),
        'a dictionary of texts, such as {"tenant": "acme"}',
    ),
    "on_question": (lambda v: v is None or callable(v), "a function of a question"),
    "watch": (lambda v: v is None or callable(v), "a function of a state and events"),
    "clock": (lambda v: v is None or isinstance(v, Clock), "a runner.Clock"),
    "workspace": (lambda v: v is None or isinstance(v, str | os.PathLike), "a path"),
    "wait": (lambda v: v in ("sleep", "return"), "'sleep' or 'return'"),
    "grace": (lambda v: number(v, 0), "a number of seconds from 0"),
    "at_once": (lambda v: number(v, 1) and isinstance(v, int), "a whole number from 1"),
}
"""What may be given with a run, or to a worker."""


def check(**given: object) -> None:
    """Raise `BadAgent` for a value that can't work."""
    declaration.check(GIVEN, given)


class ChildOf(msgspec.Struct, frozen=True):
    """What a child run gets of its parent besides its task: its identity, and what it must not repeat."""

    call: ParentCall
    uid: str
    fork_guard: tuple[ParentEffect, ...]


class Opened(msgspec.Struct, frozen=True):
    """A run that this process holds. `resumed`: its opening line is not written yet."""

    life: Life
    state: State
    resumed: bool


def create(  # noqa: PLR0913 (each is one fact about the run)
    agent: AnyAgent,
    task: str,
    *,
    inputs: object = None,
    store: eventlog.Store,
    workspace: str | Path | None = None,
    run: str | None = None,
    after: str | None = None,
    labels: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
    enqueued: bool = False,
    child: ChildOf | None = None,
) -> Opened:
    """Make a run; it exists once its first line is durable. Takes and raises what `runner.start` does.

    `enqueued`: it is left to somebody else, whose turn with it is then the first. The watcher is shown the first line
    when the life begins.
    """
    check(agent=agent, task=task, labels=labels, workspace=workspace, watch=watch, clock=clock, grace=grace)
    root = _root(store, workspace)
    text = sanitize.clean(task)
    if not text:
        raise BadAgent("the task is empty")
    clock = clock or Clock(store.now)
    taken = _taken_over(store, after, child)
    begun = clock.wall()
    name = eventlog.check_id(run) if run is not None else keys.run_id(agent.name, begun, os.urandom(4).hex())
    host, pid = store.host()
    opening = RunStarted(
        run=name,
        agent=agent.name,
        task=text,
        workspace=root,
        limits=agent.limits,
        definitions=agent.definitions,
        approve=agent.approve,
        host=host,
        pid=pid,
        after=after,
        labels=status.labelled(labels),
        inputs=agent.dump_inputs(inputs),
        enqueued=enqueued,
        framework=agent.framework,
        trace=_trace(watch, child),
        **{"uid": taken.get("uid") or store.disk.random(keys.UID), **taken},
    )
    decide(agent, replay.fold(replay.NEW, begun, [opening]), begun)  # what can't be asked leaves no run behind
    log = store.create(name, at=begun, events=[replay.encode(opening)])
    try:
        state = replay.load(log.lines)
        log.status = status.of(state)
        place: dict[str, Any] = {"watch": watch, "store": store, "uid": state.uid, "root": root}
        life = Life(agent, log, LogClock(clock, state.at), Drain(grace), **place)
        return Opened(life, state, resumed=False)
    except BaseException:  # whatever ends this leaves no lock
        log.close()
        raise


def _trace(watch: Watch | None, child: ChildOf | None) -> str:
    """What a watcher that traces runs says of who begins this one; "" where it says nothing, or fails."""
    told: object = ""
    with contextlib.suppress(Exception):
        told = getattr(watch, "context", lambda _: "")(child.call if child is not None else None)
    return told if isinstance(told, str) and re.fullmatch(_CONTEXT, told) else ""


def reopen(
    run: str,
    agent: AnyAgent,
    *,
    store: eventlog.Store,
    workspace: str | Path | None = None,
    accept_workspace: str | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
    held: Collection[str] = (),
    by_parent: bool = False,
) -> Opened | Finished[Any]:
    """Open a run that exists, or give its answer if it is done. Takes and raises what `runner.resume` does.

    A stop for one of the reasons `held` is raised too. It is looked for under the lock: somebody may just have parked.
    """
    check(agent=agent, workspace=workspace, watch=watch, clock=clock, grace=grace)
    root = _root(store, workspace)
    clock = clock or Clock(store.now)
    try:
        log, before, state = load.opened(store, run, clock, by_parent=by_parent)
    except eventlog.ReadOnly:
        state = load.read(store, run)
        if state.phase == "done":
            return finished(agent, state)
        raise
    try:
        if state.phase == "done":
            load.close(store, log, clock)
            return finished(agent, state)
        just = {"Parked"} if state.parked > before.parked else ()
        resume_check.check(state, run, agent, held={*held, *just}, by_parent=by_parent)
        if root is not None and state.workspace is None:  # a run that began without one gets none
            raise NoWorkspace(None)  # noqa: TRY301 (the lock is left as after any other error)
    except BaseException:  # whatever ends this leaves no lock
        load.close(store, log, clock)
        raise
    moved = root if root != state.workspace else None
    place = {"root": state.workspace, "moved": moved, "accept": accept_workspace}
    life = Life(agent, log, LogClock(clock, state.at), Drain(grace), **place, watch=watch, store=store, uid=state.uid)
    return Opened(life, state, resumed=True)


def _root(store: eventlog.Store, workspace: str | Path | None) -> str | None:
    if workspace is None:
        return None
    if not store.shared_workspace:
        raise NoWorkspace(str(workspace), "runs in a database need Postgres(..., shared_workspace=True) for it")
    with contextlib.suppress(OSError, ValueError):  # the working directory is gone, or no file has such a name
        root = Path(workspace).resolve()
        if root.is_dir():
            return str(root)
    raise NoWorkspace(str(workspace))


def _taken_over(store: eventlog.Store, after: str | None, child: ChildOf | None) -> dict[str, Any]:
    """What a run has of its parent, or of one it continues: the conversation, rebuilt where the model refused it."""
    taken: dict[str, Any] = {}
    if after is not None:
        before = load.finished(store, after)
        history = sent(before, rebuilt(before.messages[:], before.rebuilt_upto), WHOLE)
        taken = {"history": history, "happened": load.happened(before), "fork_guard": before.fork_guard}
    if child is not None:
        taken |= {"fork_guard": child.fork_guard, "uid": child.uid, "parent_call": child.call}
    return taken
