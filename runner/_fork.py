"""Fork: a run goes on from an earlier line, as another run, without doing twice what was done behind that line.

The parent is over from then on, so that never two runs act on one history, and the fork knows what the parent did
behind the line (the fence). The order: the parent's lock, the checks, all of the fork's bytes durable, the stop in the
parent's log, and only then the fork's name. Whatever goes wrong up to the stop leaves the parent as it was; behind it
only one rename is left to do. If the process dies exactly there the parent is stopped without a fork, its stop says
which one was meant, and forking it again makes it. The other order would leave two runs that both go on.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import eventlog
import replay
from replay import Fenced, FileHash, RunStopped, State
from runner import _door, _keys, _workspace
from runner._clock import Clock, LogClock
from runner.errors import CannotContinue, NotForkable, NotStarted


def fork(
    run: str,
    *,
    at: int,
    runs: str | Path,
    new: str | None = None,
    who: str = "",
    clock: Clock | None = None,
    force: bool = False,
) -> State:
    """Make a new run that goes on from line `at` of a run, and stop that one for good unless it is done.

    What had come back at that line is known to the fork, what was about to happen there is decided anew. Returns the
    fork's state: `.fence` are the effects behind the line, of the parent and of every other fork of its history in this
    directory, `.open` the calls that may have happened at it. It is carried on by `resume`. `new` is the fork's id, by
    default one like `start` makes; `who` is named in the parent's stop.

    Raises `NotForkable` when the workspace does not hold what it held at that line, another fork still goes on, or the
    run was salvaged; `replay.NoSuchLine`, `NotStarted`, `CannotContinue`, `NoWorkspace`, `eventlog.RunExists` and the
    log's other errors; `eventlog.RunLocked` at once when a process is running it. Whichever it is, the run is as it
    was.
    """
    runs = Path(runs)
    clock = clock or Clock()
    with eventlog.open(runs, run, force=force) as log:
        parent = _checked(log, run, at)
        others = [effect for other in _family(runs, run) for effect in _effects(runs, run, at, other)]
        now = LogClock(clock, log.at).now()
        forked = replay.fork(
            log.lines,
            at,
            run=new if new is not None else _keys.run_id(parent.agent, clock.wall(), secrets.token_hex(4)),
            at=now,
            host=socket.gethostname(),
            pid=os.getpid(),
            others=others,
        )
        _same_files(run, at, forked)
        with eventlog.fork(
            [line for line in log.lines if line.seq <= at],
            forked.event.run,
            runs=runs,
            keep=forked.keep,
            at=now,
            events=[replay.encode(forked.event)],
            ready=_over(log, forked, now, _door.clean(who, _door.MAX_NAME).text),
            force=force,
        ):
            return forked.state


def _checked(log: eventlog.Log, run: str, at: int) -> State:
    """Where the run stands, unless no line of it can be carried on."""
    state = replay.load(log.lines)
    if state.unknown:
        raise CannotContinue(run, state.unknown)
    header = log.lines[0].header
    if header is not None and header.salvaged is not None:
        raise NotForkable(run, at, "it was salvaged from a damaged run, and what is missing may have happened")
    if state.phase == "new":
        raise NotStarted(run)
    return state


def _family(runs: Path, run: str) -> list[str]:
    """Every fork here of the same history, directly or not, but for this one and those that it comes from.

    What they came from is in their own history, or was put into their fence when they were made.
    """
    parents: dict[str, str] = {}
    for name in eventlog.runs(runs):
        header = eventlog.header(runs, name)
        if header is not None and header.parent is not None and header.salvaged is None:
            parents[name] = header.parent.run

    def line(name: str) -> list[str]:
        found = [name]
        while (parent := parents.get(found[-1])) is not None and parent not in found:
            found.append(parent)
        return found

    own = line(run)
    return [name for name in parents if name not in own and line(name)[-1] == own[-1]]


def _effects(runs: Path, run: str, at: int, other: str) -> list[Fenced]:
    """What another fork did behind the line it was forked at. Two of one history must never both go on."""
    try:
        reading = eventlog.read(runs, other)
        state = replay.load(reading.lines)
    except (eventlog.LogError, replay.ReplayError) as error:
        raise NotForkable(run, at, f"{other}, a fork of the same history, can't be read: {error}") from error
    if state.phase != "done" and not (state.stopped is not None and state.stopped.final):
        raise NotForkable(run, at, f"{other}, a fork of the same history, can still go on; stop it, or fork that one")
    header = reading.lines[0].header
    assert header is not None  # a log begins with one
    assert header.parent is not None  # it is a fork
    return replay.effects(reading.lines, header.parent.seq + 1)


def _same_files(run: str, at: int, forked: replay.Fork) -> None:
    """Refuse a workspace that is not as it was at the line."""
    changed: list[FileHash] = _workspace.changed(forked.state.workspace, forked.files)
    if changed:
        names = ", ".join(f"{f.path} ({'gone' if f.sha256 is None else 'changed'})" for f in changed)
        raise NotForkable(run, at, f"its workspace does not hold what it held there; first bring back: {names}")


def _over(log: eventlog.Log, forked: replay.Fork, now: datetime, who: str) -> Callable[[], None]:
    """What ends the parent, for the moment in which nothing but the fork's name is missing."""
    parent, made = forked.parent, forked.event

    def stop() -> None:
        if parent.phase == "done" or (parent.stopped is not None and parent.stopped.final):
            return
        detail = f"{made.run} goes on from its line {made.seq}{f', by {who}' if who else ''}"
        stopped = RunStopped(reason="Forked", final=True, detail=detail)
        replay.step(parent, stopped, now)
        log.append(now, [replay.encode(stopped)])

    return stop
