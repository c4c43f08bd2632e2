"""Fork: another run goes on from an earlier line, and repeats nothing that was done after that line.

The parent is over from then on: two runs never act on one history. What it did after the line is the fork guard. The
order: the locks of the family's first run and of the parent, the checks, all bytes of the fork durable, the stop in
the parent's log, and only then the fork's name. Whatever goes wrong before the stop leaves the parent as it was; after
it only one rename is left. If the process dies between the two, the parent is stopped without a fork, its stop names
the fork that was meant, and forking it again makes it. The other order would leave two runs that both go on.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import eventlog
import replay
from replay import State
from replay.events import ChildStarted, RunStopped
from replay.values import ParentEffect
from runner._agent import keys, sanitize, workspace
from runner._clock import Clock, LogClock
from runner._runs import load, status
from runner.errors import CannotContinue, NotForkable, NotStarted


def fork(
    run: str,
    *,
    at: int,
    runs: eventlog.Runs,
    new: str | None = None,
    who: str = "",
    dry: bool = False,
    clock: Clock | None = None,
) -> State:
    """Makes a new run that goes on from a line of a run, and stops that one for good unless it is done.

    What had come back at the line is known to the fork; what was about to happen is decided again. `resume` carries the
    fork on.

    Args:
        run: The run to fork.
        at: The line to go on from.
        runs: Where the runs are: a path, a URL, or a store.
        new: The fork's id, by default one like `start` makes.
        who: Who forks it, for the parent's stop.
        dry: Only say what the fork would be: nothing is held, made or stopped.
        clock: The time, for tests.

    Returns:
        The fork's state. `fork_guard` are the effects after the line, of the parent and of every other fork of its
        history here, and of their child runs; `in_doubt` are the calls that may have happened at the line.

    Raises:
        NotForkable: The workspace does not hold what it held at the line, another fork still goes on, a child run is
            unfinished there, or the run is a child or was salvaged.
        replay.NoSuchLine, NotStarted, CannotContinue, NoWorkspace: The run can't be forked there.
        eventlog.RunExists, BadRunId: The fork can't have this id.
        eventlog.RunLocked: A process is running it, or forks the history that it comes from.
        eventlog.LogError: It can't be read, or the fork can't be written. Whatever is raised, the run is as it was.
            Only if the disk fails once the fork's bytes are durable, it is over, and its stop names the fork.
    """
    store = eventlog.store(runs)
    clock = clock or Clock(store.now)
    if dry:
        if new is not None and eventlog.check_id(new) in store.names():
            raise eventlog.RunExists(new, str(runs))
        lines = store.read(run).lines
        forked = _planned(store, lines, replay.load(lines), run, at, new, clock)
        _same_files(run, at, forked, settle=False)
        return forked.state
    with _family_held(store, run), load.held(store, run) as (log, parent):
        forked = _planned(store, log.lines, parent, run, at, new, clock)
        _same_files(run, at, forked, settle=True)
        now = forked.state.at
        assert now is not None  # it was just forked
        made = store.fork(
            [line for line in log.lines if line.seq <= at],
            forked.event.run,
            keep=forked.keep,
            at=now,
            events=[replay.encode(forked.event)],
            ready=_over(log, forked, now, sanitize.clean(who, sanitize.MAX_NAME)),
        )
        made.status = status.of(forked.state, now)
        load.close(store, made, clock)
        return forked.state


def _planned(
    store: eventlog.Store,
    lines: Sequence[eventlog.Line],
    parent: State,
    run: str,
    at: int,
    new: str | None,
    clock: Clock,
) -> replay.Fork:
    """The fork, of a run that can be forked there."""
    _check(parent, lines[0].header, run, at)
    others = [effect for other in _family(store, run) for effect in _effects(store, run, at, other)]
    others += _of_children(store, run, at, [line for line in lines if line.seq >= at])
    host, pid = store.host()
    forked = replay.fork(
        lines,
        at,
        run=new if new is not None else keys.run_id(parent.agent, clock.wall(), os.urandom(4).hex()),
        uid=store.disk.random(keys.UID),
        at=LogClock(clock, lines[-1].at).now(),
        host=host,
        pid=pid,
        others=others,
    )
    for call in forked.state.calls:
        if call.child is not None and call.result is None:  # two runs would carry that child on
            why = f"its child run {call.child.run} is unfinished there; fork it at a line before that began, or later"
            raise NotForkable(run, at, why)
    return forked


def _check(state: State, header: eventlog.Header | None, run: str, at: int) -> None:
    """Raise where no line of the run can be carried on."""
    if not isinstance(at, int):
        raise NotForkable(run, at, "a line is named by its number, an int")
    if state.unknown:
        raise CannotContinue(run, state.unknown)
    if header is not None and header.salvaged is not None:
        raise NotForkable(run, at, "it was salvaged from a damaged run, and what is missing may have happened")
    if state.phase == "new":
        raise NotStarted(run)
    if state.parent_call is not None:
        raise NotForkable(run, at, f"it is a child of {state.parent_call.run}; fork that")


def _of_children(store: eventlog.Store, run: str, at: int, lines: Sequence[eventlog.Line]) -> Iterator[ParentEffect]:
    """What the child runs did that were begun or carried on in these lines, and their own children.

    Nobody carries them on meanwhile: the parent is held, or over.
    """
    events = (replay.decode(raw, seq=line.seq) for line in lines for raw in line.events)
    for child in dict.fromkeys(event.run for event in events if isinstance(event, ChildStarted)):
        try:
            done = store.read(child).lines
            yield from replay.effects(done, -1)
            yield from _of_children(store, run, at, done)
        except eventlog.NoSuchRun:
            continue  # its process died before it was made
        except (eventlog.LogError, replay.ReplayError) as error:
            raise NotForkable(run, at, f"{child}, a child run, can't be read: {error}") from error


def _line(parents: Mapping[str, str], run: str) -> list[str]:
    """A run, the one that it is a fork of, and so on to the origin of the family."""
    found = [run]
    while (parent := parents.get(found[-1])) is not None and parent not in found:
        found.append(parent)
    return found


@contextlib.contextmanager
def _family_held(store: eventlog.Store, run: str) -> Iterator[None]:
    """Holds the first run of a fork's family that can be held: of two forks made at once, neither would see the other.

    That is the origin of the family. Where it is gone, or nobody can write to it, it is the first of its forks by name.
    """
    header = store.header(run)
    with contextlib.ExitStack() as held:
        if header is not None and header.forked_from:
            parents = store.parents()
            origin = _line(parents, run)[-1]
            for name in [origin, *sorted(name for name in parents if _line(parents, name)[-1] == origin)]:
                if name == run:  # it is held anyway
                    break
                try:
                    held.enter_context(load.held(store, name))
                    break
                except eventlog.RunLocked:
                    raise
                except (eventlog.LogError, replay.ReplayError):
                    continue
        yield


def _family(store: eventlog.Store, run: str) -> list[str]:
    """Every other fork of the same history here, direct or not, except those that this run comes from.

    What they came from is in their own history, or was put into their fork guard when they were made.
    """
    parents = store.parents()
    own = _line(parents, run)
    return [name for name in parents if name not in own and _line(parents, name)[-1] == own[-1]]


def _effects(store: eventlog.Store, run: str, at: int, other: str) -> list[ParentEffect]:
    """What another fork did after its line. Two forks of one history must never both go on."""
    try:
        reading = store.read(other)
        state = replay.load(reading.lines)
    except (eventlog.LogError, replay.ReplayError) as error:
        raise NotForkable(run, at, f"{other}, a fork of the same history, can't be read: {error}") from error
    if not state.over:
        raise NotForkable(run, at, f"{other}, a fork of the same history, can still go on; stop it, or fork that one")
    header = reading.lines[0].header
    assert header is not None  # a log begins with one
    assert header.parent is not None  # it is a fork
    began = header.parent.seq + 1
    return [
        *replay.effects(reading.lines, began),
        *_of_children(store, run, at, [line for line in reading.lines if line.seq >= began]),
    ]


def _same_files(run: str, at: int, forked: replay.Fork, *, settle: bool) -> None:
    """Refuses a workspace that is not as it was at the line. Only whoever holds the run may settle it."""
    changed = workspace.changed(forked.state.workspace, forked.files, settle=settle)
    if changed:
        why = f"its workspace does not hold what it held there; first bring back: {workspace.names(changed)}"
        raise NotForkable(run, at, why)


def _over(log: eventlog.Log, forked: replay.Fork, now: datetime, who: str) -> Callable[[], None]:
    """What stops the parent, when nothing but the fork's name is missing."""
    parent, made = forked.parent, forked.event

    def stop() -> None:
        if parent.over:
            return
        detail = f"{made.run} goes on from its line {made.seq}{f', by {who}' if who else ''}"
        stopped = RunStopped(reason="Forked", final=True, detail=detail)
        after = replay.step(parent, stopped, now)
        log.append(now, [replay.encode(stopped)], status=status.of(after, now))

    return stop
