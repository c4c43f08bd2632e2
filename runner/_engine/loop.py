"""The loop: persist before acting, and no recovery mode.

Intents are events written before anything acts on them, outcomes events written after. What came back and what is about
to happen share one line and one fsync. A resume runs this same loop: nothing here asks whether it is recovering.
Outcomes are saved even when `decide` raises, a shutdown cancels the run, or a tool's error must be raised again.
"""

import asyncio
import contextlib
import functools
import math
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

import eventlog
import replay
from replay import Event, State
from replay.events import (
    AttemptMarked,
    FileIntended,
    RunResumed,
    RunStopped,
    StepRecorded,
    WaitUntil,
    WorkspaceMoved,
)
from runner import _logging
from runner._agent.agent import AnyAgent
from runner._agent.workspace import Workspace
from runner._clock import LogClock
from runner._engine import save_pool
from runner._engine.bell import Bell
from runner._engine.feed import Teller
from runner._engine.flight import Drain, Flight, Outcomes
from runner._engine.inflight import InFlight
from runner._engine.mailbox import Mailbox
from runner._engine.outcomes import of_workspace
from runner._engine.perform import Executor
from runner._policy import replies, waves
from runner._policy.decide import decide
from runner._runs import load, status
from runner.errors import ReadOnlyWorkspace

ROOM = 64 << 10
"""Synced zeros kept ahead of a marker for its result: a full disk then refuses the marker, not the result."""

Watch = Callable[[State, Sequence[Event]], None]


class Life:
    """One opening of a run for writing: its log, its agent, its clock, and what it has started.

    `root` is the workspace, `moved` where it is now if not there; `accept` vouches for its changed files.
    `closed` is set once the log is; `after` is then the state, if requests were taken after the last save. `saved` is
    the state of the last save: whoever was cancelled meanwhile goes on from it, whatever he remembers. A wait
    longer than `rest` seconds is for nobody: the run is given back.
    """

    def __init__(
        self,
        agent: AnyAgent,
        log: eventlog.Log,
        clock: LogClock,
        drain: Drain,
        *,
        root: str | None,
        moved: str | None = None,
        accept: str | None = None,
        watch: Watch | None = None,
        store: eventlog.Store,
        uid: str,
    ) -> None:
        self.agent = agent
        self.log = log
        self.clock = clock
        self.drain = drain
        self.inflight = InFlight()
        self.watch = watch
        self._told, self._left, self._uid = getattr(watch, "timed", None), getattr(watch, "left", lambda _: None), uid
        self.decide: Callable[[AnyAgent, State, datetime], list[Event]] = decide
        self._root = Path(root) if root is not None else None
        self._moved, self._accept = moved, accept
        self.store = store
        self.rest = math.inf
        self._over = False
        self._due_at = max(load.LEAST, log.snapshot.size if log.snapshot is not None else 0)
        self.closed = threading.Event()
        self.on_closed: Callable[[], object] = lambda: None
        self._files: list[tuple[datetime, FileIntended | StepRecorded]] = []
        self._filing = threading.RLock()
        self.mailbox = Mailbox(log)
        self.after: State | None = None
        self.saved: State | None = None
        self.bell = Bell()
        drain.tell(self.bell.wake)
        self._flight = flight = Flight(drain, self.inflight, self.bell)
        self._teller = teller = Teller(log.run, uid)
        self.executor = Executor(agent, log, self._workspace, self.inflight, flight, drain, teller, clock.now)

    async def run(self, state: State, opening: Sequence[Event]) -> State:
        """Write the opening line, then go on until nothing is due: done, stopped, paused, or waiting for a time.

        Raises what a save raises (`eventlog.DiskFull`, `LogDead`, `LockLost`), what `decide` raises, and
        `asyncio.CancelledError` after the save that records where a cancelled run stopped.
        """
        now = self.clock.now()
        state = replay.fold(state, now, opening)
        self.decide(self.agent, state, now)  # what raises is raised before this life is written and counted
        state = await self.save(state, now, opening)
        self.log.note_lease_lost()
        place: list[Event] = []
        if state.stopped is None and any(isinstance(event, RunResumed) for event in opening):
            place = of_workspace(state, self._moved, self._accept, self.store.disk)
            if any(isinstance(event, WorkspaceMoved) for event in place):
                self._root = Path(self._moved or "")
        return await self.go_on(state, Outcomes(place))

    async def go_on(self, state: State, outcomes: Outcomes | None = None) -> State:
        """The loop itself, from a state that is on disk and outcomes that are not yet.

        The only place that folds and saves: what has come back, what lies in the inbox, and what comes next. The rest
        stays in flight meanwhile.
        """
        came, error = (outcomes.events, outcomes.error) if outcomes is not None else ([], None)
        with self.mailbox.noticed(self.bell), contextlib.closing(self._flight):
            while True:
                now = self.clock.now()
                state = replay.fold(self._fold_files(state) if self._files else state, now, came)
                mail = self.mailbox.take(state, now)
                if mail:
                    came, state = [*came, *mail], replay.fold(state, now, mail)
                if self.mailbox.held or self.drain.signalled:
                    self.drain.ask()  # what is in flight may end; nothing else begins
                if self.log.bytes_since_snapshot >= self._due_at and came and not (error or self._flight or state.busy):
                    # A line of their own: a snapshot is of a line, and it should hold nothing that is about to happen.
                    state = await self._compact(await self.save(state, now, came))
                    came = []
                intents, error = self._intents(state, now, error)
                if came or intents:
                    state = await self._save_with(state, now, came, intents)
                self.mailbox.saved()
                if error is not None and not self._flight:
                    raise error
                alone = error or self.drain.asked or len(state.calls) < 2  # noqa: PLR2004 (there are no others)
                due = waves.due(self.agent, state, now) if not alone else None
                self.executor.begin(state, intents)  # from here to the wait for it nothing may fail
                if not (came or intents or self._flight):
                    return state
                alarm = self.clock.alarm(due, self.bell.ring) if due is not None else None
                try:
                    landed = await self._flight.landed()
                finally:
                    if alarm is not None:
                        alarm.cancel()
                came, error = landed.events, error or landed.error

    def _intents(
        self, state: State, now: datetime, error: BaseException | None
    ) -> tuple[list[Event], BaseException | None]:
        """What comes next. Once the life is to end, nothing begins while something is in flight."""
        asked = error is not None or self.drain.asked
        if (asked and self._flight) or (error is not None and not isinstance(error, asyncio.CancelledError)):
            return [], error
        try:
            if self.mailbox.held and not state.over:
                return self._asked_to_end(state, now), error
            if asked and state.stopped is None and not replies.ends(self.agent, state):
                why = "the run was cancelled" if error is not None else "its process was asked to end"
                return [RunStopped(reason="Interrupted", detail=why)], error
            intents = self.decide(self.agent, state, now)
            return intents if self.rest == math.inf else [self._rested(intent, now) for intent in intents], error
        except Exception as problem:  # noqa: BLE001 (the outcomes are saved first, then it is raised)
            return [], problem

    def _rested(self, intent: Event, now: datetime) -> Event:
        """An intent; a wait says whether anybody holds the run meanwhile."""
        if isinstance(intent, WaitUntil) and (intent.until - now).total_seconds() > self.rest:
            return replace(intent, rested=True)
        return intent

    def _asked_to_end(self, state: State, now: datetime) -> list[Event]:
        """The stop or park that was asked for, unless the run is done with what has just come back."""
        if replies.ends(self.agent, state):
            return [*self.mailbox.refuse("the run was done by then"), *self.decide(self.agent, state, now)]
        return self.mailbox.ending()

    async def read_mail(self, state: State) -> State:
        """Write what lies in the inbox, while nothing is in flight. A stop or a park is held."""
        now = self.clock.now()
        mail = self.mailbox.take(state, now)
        if mail:
            state = await self.save(replay.fold(state, now, mail), now, mail)
        self.mailbox.saved()
        return state

    async def save(self, state: State, now: datetime, events: Sequence[Event]) -> State:
        """Append events and return `state`, which has them folded, with the line's place."""
        encoded = list(map(replay.encode, events))
        kinds = set(map(type, events))
        if RunStopped in kinds:
            self._no_more_files()  # what is cut off and still runs must not write after the stop
        room = ROOM if AttemptMarked in kinds else 0
        told, groups = 0, save_pool.lines(encoded)
        for group in groups:
            says = functools.partial(status.of, state, now) if group is groups[-1] else None
            line = await save_pool.appended(self.log, self._told, now, group, room=room, status=says)
            self.clock.wrote(line.at)
            state = replace(state, seq=line.seq, life=line.life, at=line.at)
            self._teller.saved(line, events[told : (told := told + len(group))])
        self.saved = state
        self.show(state, events)
        return state

    def show(self, state: State, events: Sequence[Event]) -> None:
        """Show the watcher what a save wrote; its error must not end the run."""
        with contextlib.suppress(Exception):  # the user's code
            if self.watch is not None:
                self.watch(state, events)

    async def _save_with(self, state: State, now: datetime, came: Sequence[Event], intents: Sequence[Event]) -> State:
        """Save what came back with what comes next: alone, before it raises, when there is no room for both."""
        before = self.log.seq
        try:
            return await self.save(replay.fold(state, now, intents), now, [*came, *intents])
        except eventlog.DiskFull:
            if came and intents and self.log.seq == before:
                await self.save(state, now, came)
            raise

    async def _compact(self, state: State) -> State:
        """Keep the state as a snapshot. When that finds no room the run goes on, and tries again a good while later."""
        try:
            log, version, seq = self.log, replay.FOLD_VERSION, state.seq
            snapshot = await save_pool.saved(lambda: log.compact(replay.dump(state), version, seq=seq))
            if snapshot is None:
                return state
            self._due_at = max(load.LEAST, snapshot.size)
        except (eventlog.DiskFull, eventlog.DiskFailed, eventlog.NotStorable) as error:
            self._due_at = self.log.bytes_since_snapshot + load.LEAST
            _logging.logger(run=self.log.run).warning("the log was not compacted", error=str(error))
        return replace(state, seq=self.log.seq, life=self.log.life)

    async def answer(self, state: State, said: Sequence[Event]) -> State:
        """Write what a person said to this process, an answer and its rule in one line."""
        now = self.clock.now()
        return await self.save(replay.fold(state, now, said), now, said)

    def _workspace(self, call: str, writable: bool) -> Workspace | None:  # noqa: FBT001 (a callback)
        if self._root is None:
            return None

        def read_only() -> str | None:
            return "the run was parked" if self._over else None if writable else "it only reads"

        return Workspace(self._root, call, self.record, read_only, self.store.disk, self._filing)

    def record(self, event: FileIntended | StepRecorded) -> None:
        """Log a coming write, or a program's step, from whichever thread; the loop folds it with what comes next."""
        with self._filing:
            if self._over:
                what = event.path if isinstance(event, FileIntended) else f"step {event.name}"
                raise ReadOnlyWorkspace(what, "the run was parked")
            line = self.log.append(self.clock.now(), [replay.encode(event)])
            self._files.append((line.at, event))
            self._teller.saved(line, [event])

    def _no_more_files(self) -> None:
        with self._filing:
            self._over = True

    def _fold_files(self, state: State) -> State:
        with self._filing:
            for at, intended in self._files:
                state = replay.step(state, intended, at)
            self._files.clear()
        return state

    def end(self) -> None:
        """The life is over and writes nothing more; the log is closed when all that it started has ended."""
        self._no_more_files()
        self.inflight.when_idle(self._close)

    def _close(self) -> None:
        with contextlib.suppress(Exception):  # a watcher's own
            self._left(self._uid)
        try:
            self.after = load.close(self.store, self.log, self.clock.clock)
        except (eventlog.LogError, replay.ReplayError, OSError) as error:
            _logging.logger(run=self.log.run).warning("the log was not closed cleanly", error=str(error))
            self.log.abandon()
        finally:
            self._teller.end()
            self.closed.set()
            self.on_closed()
