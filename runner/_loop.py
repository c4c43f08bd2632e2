"""The loop: persist before acting, and no recovery mode.

Intents are events written before the world hears of them, outcomes events written after. What came back and what is
about to happen share one line and one fsync. A resume runs this same loop: nothing here asks whether it is recovering.
Outcomes are saved even when `decide` raises, a shutdown cancels the run, or a tool raised what must travel on.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

import eventlog
import replay
from replay import AttemptMarked, Event, FileIntended, RunResumed, RunStopped, State, WorkspaceAccepted
from runner import _door, _folded, _log, _saves, _workspace
from runner._agent import Agent
from runner._clock import LogClock
from runner._decide import decide
from runner._perform import Outcomes, World
from runner._work import Parking, Work
from runner._workspace import Workspace
from runner.errors import NoWorkspace, ReadOnlyWorkspace

ROOM = 64 << 10
"""Synced zeros kept ahead of a marker for the result that follows: a full disk then refuses the marker, not the
result."""
LINE = 8 << 20
"""The most bytes of events in one line; more are split, outcomes first."""

Watch = Callable[[State, Sequence[Event]], None]


class Life:
    """One opening of a run for writing: its log, its agent, its clock, and what it has started."""

    def __init__(
        self,
        agent: Agent,
        log: eventlog.Log,
        clock: LogClock,
        parking: Parking,
        *,
        root: str | None,
        watch: Watch | None = None,
        disk: eventlog.Disk = eventlog.DISK,
    ) -> None:
        self.agent = agent
        self.log = log
        self.clock = clock
        self.parking = parking
        self.work = Work()
        self._watch = watch
        self._root = Path(root) if root is not None else None
        self.disk = disk
        self._over = False
        self._not_before = 0
        self._files: list[tuple[datetime, FileIntended]] = []
        self._filing = threading.Lock()
        self.world = World(agent, self._workspace, self.work, parking)

    async def run(self, state: State, opening: Sequence[Event], *, accept: str | None = None) -> State:
        """Write the opening line, then go on until nothing is due: done, stopped, paused, or waiting for a time.

        Raises what a save raises (`eventlog.DiskFull`, `LogDead`, `LockLost`), what `decide` raises, and
        `asyncio.CancelledError` after the save that records where a cancelled run stopped.
        """
        now = self.clock.now()
        state = await self.save(replay.fold(state, now, opening), now, opening)
        return await self.go_on(state, Outcomes(self._check_workspace(state, opening, accept)))

    async def go_on(self, state: State, outcomes: Outcomes | None = None) -> State:
        """The loop itself, from a state that is on disk and outcomes that are not yet."""
        outcomes = outcomes or Outcomes()
        while True:
            now = self.clock.now()
            state = replay.fold(state, now, outcomes.events)
            if outcomes.events and outcomes.error is None and self._is_compacting(state):
                # A line of their own: a snapshot is of a line, and it should hold nothing that is about to happen.
                state = await self._compact(await self.save(state, now, outcomes.events))
                outcomes = Outcomes()
            intents, error = self._intents(state, now, outcomes.error)
            if outcomes.events or intents:
                state = replay.fold(state, now, intents)
                state = await self.save(state, now, [*outcomes.events, *intents])
            if error is not None:
                raise error
            if not (outcomes.events or intents):
                return state
            outcomes = await self.world.perform(state, intents)
            state = self._fold_files(state)

    def _intents(
        self, state: State, now: datetime, error: BaseException | None
    ) -> tuple[list[Event], BaseException | None]:
        if error is not None and not isinstance(error, asyncio.CancelledError):
            return [], error
        ends = state.phase == "done" or (state.phase == "model" and state.stop is not None)
        if (error is not None or self.parking.asked) and state.stopped is None and not ends:
            why = "the run was cancelled" if error is not None else "a signal asked it to park"
            return [RunStopped(reason="Interrupted", detail=why)], error
        try:
            return decide(self.agent, state, now), error
        except Exception as problem:  # noqa: BLE001 (the outcomes are saved first, then it is raised)
            return [], problem

    async def save(self, state: State, now: datetime, events: Sequence[Event]) -> State:
        """Append events and return `state`, which has them folded, with the line's place."""
        encoded = [replay.encode(event) for event in events]
        if any(isinstance(event, RunStopped) for event in events):
            self._no_more_files()  # what is cut off and still runs must not write behind the stop
        room = ROOM if any(isinstance(event, AttemptMarked) for event in events) else 0
        for group in _lines(encoded):
            line = await _saves.saved(functools.partial(self.log.append, now, group, room=room))
            self.clock.wrote(line.at)
            state = replace(state, seq=line.seq, life=line.life, at=line.at)
        if self._watch is not None:
            with contextlib.suppress(Exception):  # whoever watches can't disturb what is watched
                self._watch(state, events)
        return state

    def _is_compacting(self, state: State) -> bool:
        """Whether the log has grown enough for a snapshot, and nothing is in flight."""
        return not state.busy and _folded.is_due(self.log) and self.log.bytes_since_snapshot >= self._not_before

    async def _compact(self, state: State) -> State:
        """Keep the state as a snapshot. When that finds no room the run goes on, and tries again a good while later."""
        try:
            made = functools.partial(_compacted, self.log, state)
            if await _saves.saved(made) is None:
                return state
        except (eventlog.DiskFull, eventlog.DiskFailed, eventlog.NotStorable) as error:
            self._not_before = self.log.bytes_since_snapshot + _folded.LEAST
            _log.logger(run=self.log.run).warning("the log was not compacted", error=str(error))
        return replace(state, seq=self.log.seq, life=self.log.life)

    async def answer(self, state: State, answered: Event) -> State:
        """Write an answer that a person gave to this process."""
        now = self.clock.now()
        return await self.save(replay.fold(state, now, [answered]), now, [answered])

    def _workspace(self, call: str, writable: bool) -> Workspace | None:  # noqa: FBT001 (a callback)
        if self._root is None:
            return None
        refused = None if writable else "it only reads"

        def read_only() -> str | None:
            return "the run was parked" if self._over else refused

        return Workspace(self._root, call, self._record, read_only, self.disk)

    def _record(self, intended: FileIntended) -> None:
        """Log a coming write, from whichever thread the tool runs in."""
        with self._filing:
            if self._over:
                raise ReadOnlyWorkspace(intended.path, "the run was parked")
            now = self.clock.now()
            line = self.log.append(now, [replay.encode(intended)])
            self._files.append((line.at, intended))

    def _no_more_files(self) -> None:
        with self._filing:
            self._over = True

    def _fold_files(self, state: State) -> State:
        with self._filing:
            for at, intended in self._files:
                state = replay.step(state, intended, at)
            self._files.clear()
        return state

    def _check_workspace(self, state: State, opening: Sequence[Event], accept: str | None) -> list[Event]:
        """What a resume finds in the workspace (spec row 5)."""
        if state.stopped is not None or not any(isinstance(event, RunResumed) for event in opening):
            return []
        try:
            changed = _workspace.changed(state.workspace, state.files, self.disk)
        except NoWorkspace as gone:
            return [RunStopped(reason="WorkspaceChanged", detail=str(gone))]
        if not changed:
            return []
        if accept is not None:
            return [WorkspaceAccepted(by=_door.clean(accept, _door.MAX_NAME).text, files=tuple(changed))]
        names = ", ".join(f"{f.path} ({'gone' if f.sha256 is None else 'changed'})" for f in changed)
        return [RunStopped(reason="WorkspaceChanged", detail=names)]

    def end(self) -> None:
        """The life is over and writes nothing more; the log is closed when all that it started has ended."""
        self._no_more_files()
        self.work.when_idle(self._close)

    def _close(self) -> None:
        try:
            self.log.close()
        except (eventlog.LogError, OSError) as error:
            _log.logger(run=self.log.run).warning("the log was not closed cleanly", error=str(error))
            self.log.abandon()


def _compacted(log: eventlog.Log, state: State) -> eventlog.Snapshot | None:
    return log.compact(replay.dump(state), replay.FOLD_VERSION, seq=state.seq)


def _lines(encoded: Sequence[bytes]) -> list[list[bytes]]:
    """Events as the groups that share a line."""
    groups: list[list[bytes]] = [[]]
    size = 0
    for event in encoded:
        if groups[-1] and size + len(event) > LINE:
            groups.append([])
            size = 0
        groups[-1].append(event)
        size += len(event)
    return groups
