"""The state of a log: from the newest snapshot that counts, else from the first line.

A snapshot counts if this version of the fold made it, of that very line. Any other is passed over: the log alone is the
truth. Of the segments before the snapshot only names, sizes and ends are then looked at. Whoever judges a run reads it
whole.

The loop makes a snapshot when the lines since the last weigh as much as it does, and at least a mebibyte. So all
snapshots of a run together cost a constant factor of its log.
"""

import contextlib
import functools
from collections.abc import Iterator

import eventlog
import replay
from replay import NEW, State
from replay.values import Happened
from runner import _logging
from runner._clock import Clock
from runner._runs import children, requests, status
from runner.errors import NotFinished

_LOOKS = 8
"""How often requests are looked for that are posted while others are taken."""
LEAST = 1 << 20
"""Bytes of lines below which a snapshot saves no time."""


class Accept:
    """Accepts a snapshot that this version of the fold made; `state` is then what it holds."""

    def __init__(self) -> None:
        self.state = NEW

    def __call__(self, snapshot: eventlog.Snapshot) -> bool:
        """Whether a fold may go on from here."""
        state = replay.restore(snapshot.state) if snapshot.version == replay.FOLD_VERSION else None
        if state is None or state.seq != snapshot.seq or state.unknown:  # what was unknown then may be known now
            return False
        self.state = state
        return True


def opened(
    store: eventlog.Store, run: str, clock: Clock | None = None, *, by_parent: bool = False
) -> tuple[eventlog.Log, State, State]:
    """Opens a run for writing, and takes the requests in its inbox before anything else is decided.

    How its children rest is noted first. A child whose parent is closed is stopped, unless it is opened `by_parent`.
    Gives the log, and the states before and after that. Raises what `Store.open` and a save raise, and
    `replay.ReplayError`.
    """
    accept = Accept()
    log = store.open(run, accept=accept)
    try:
        before = replay.load(log.lines, accept.state if log.snapshot is not None else NEW)
        log.status = status.of(before)
        look = functools.partial(read, store)
        stop = None if by_parent else children.closed_parent(before, look)
        state = requests.take_all(
            log, before, clock or Clock(store.now), [stop] if stop else children.news(before, look)
        )
    except BaseException:  # whatever ends this releases the lock
        log.close()
        raise
    for finding in log.findings:
        _logging.logger(run=run).warning("a snapshot was passed over", finding=finding)
    if log.lease_lost:
        _logging.logger(run=run).warning("who held the run before did not give it back, and may still act for it")
    return log, before, state


def close(store: eventlog.Store, log: eventlog.Log, clock: Clock | None = None) -> State | None:
    """Closes a log, then takes what was posted until then; the state after that, or None if nothing was taken.

    Whoever posts tries the lock after that, and whoever closes looks after the release: so one of them takes it. A run
    that is due rings the doorbell. Raises what closing raises. An answer to a child's question may have come, too.
    """
    log.close()
    asks = isinstance(log.status, status.RunStatus) and any(":" in asked for asked in log.status.open_questions)
    if asks or store.inbox(log.run).requests:
        return take_requests(store, log.run, clock)
    _ring(store, log)
    return None


@contextlib.contextmanager
def held(store: eventlog.Store, run: str) -> Iterator[tuple[eventlog.Log, State]]:
    """Holds a run for something else than carrying it on: what was posted meanwhile is taken afterwards."""
    log = store.open(run)
    try:
        state = replay.load(log.lines)
        log.status = status.of(state)  # else every list reads the log from then on
        yield log, state
    finally:
        close(store, log)


def take_requests(store: eventlog.Store, run: str, clock: Clock | None = None) -> State | None:
    """Takes the requests in the inbox of a run, if nobody holds it; the state after that, or None if somebody does."""
    state: State | None = None
    for _ in range(_LOOKS):
        if state is not None and not store.inbox(run).requests:
            break
        try:
            log, _, state = opened(store, run, clock)
        except eventlog.RunLocked:  # its holder looks again when it closes
            return None
        log.close()
        _ring(store, log)
    return state


def _ring(store: eventlog.Store, log: eventlog.Log) -> None:
    """Have a worker look at a run that was closed, unless it is known that nobody must."""
    if not isinstance(log.status, status.RunStatus) or log.status.wake is not None:
        store.bell().ring(log.run)


def read(store: eventlog.Store, run: str) -> State:
    """Reads the state of a run without a lock. Raises what `Store.read` raises, and `replay.ReplayError`."""
    return with_reading(store, run)[0]


def with_reading(store: eventlog.Store, run: str) -> tuple[State, eventlog.Reading]:
    """As `read`, with what was read."""
    accept = Accept()
    reading = store.read(run, accept=accept)
    return replay.load(reading.lines, accept.state if reading.snapshot is not None else NEW), reading


def finished(store: eventlog.Store, run: str) -> State:
    """A finished run, for one that continues its conversation. Raises `NotFinished`, and as `read` does."""
    state = read(store, run)
    if state.phase != "done":
        raise NotFinished(run, state.phase)
    return state


def happened(before: State) -> dict[str, Happened]:
    """The intents that a run and those it continued have made happen: whoever continues it makes none of them again."""
    return {
        intent: Happened(call=first.call, text=first.text, run=first.run or before.run)
        for intent, first in before.happened.items()
    }


def compact(run: str, *, runs: eventlog.Runs) -> eventlog.Snapshot:
    """Keeps a snapshot of a run's state: the next resume need not begin at its first event. No event is removed.

    A run that is carried on does this by itself when its log has grown.

    Args:
        run: The run.
        runs: Where the runs are: a path, a URL, or a store.

    Returns:
        The snapshot: the line it stands for, and its size in bytes.

    Raises:
        eventlog.RunLocked: A process is running it.
        eventlog.LogError: It can't be read, or the snapshot can't be written; the run is as it was.
    """
    with held(eventlog.store(runs), run) as (log, state):
        snapshot = log.compact(replay.dump(state), replay.FOLD_VERSION)
    assert snapshot is not None
    return snapshot
