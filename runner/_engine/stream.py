"""Following a run: every saved line once and in order, and what happens in between where it happens in this process.

The log is the truth: a line that was not told here, or was told too long ago, is read there by its number. A run that
another process carries is looked at every `LOOK` seconds, after what was read of it before.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Self

import eventlog
import replay
from replay.events import PhaseChanged, RunForked, RunStopped
from runner._engine import feed
from runner._engine.feed import Streamed, Told
from runner._runs import load

LOOK = 0.25
"""Seconds between two looks at the log of a run that is not carried here."""
_END = 1 << 62
_ENDS = frozenset((PhaseChanged, RunStopped, RunForked))
"""Events that may end a run for good, or take that back."""


class Stream(AsyncIterator[Streamed]):
    """What `stream` gives. It holds nothing that must be given back; `aclose` ends it early."""

    def __init__(self, run: str, store: eventlog.Store, after: int) -> None:
        self._run, self._store, self._seq = run, store, after
        self._feed = feed.of(run)
        self._place, self._heard = self._feed.listen(self)
        self._uid: str | None = None
        self._tail: eventlog.Tail | None = None
        self._lines: list[eventlog.Line] = []
        self._behind = True
        self._over = False
        self._ready: Iterator[Streamed] = iter(())

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> Streamed:
        """The next line or piece."""
        while True:
            found = next(self._ready, None)
            if found is not None:
                return found
            if self._over:
                raise StopAsyncIteration
            await self._more()

    async def aclose(self) -> None:
        """End it."""
        self._over, self._ready = True, iter(())
        self._feed.listeners.discard(weakref.ref(self))

    async def _more(self) -> None:
        if self._behind:
            lines = await asyncio.to_thread(self._read)
            self._behind = False
            told = self._feed.since(self._place)[0]  # what was told comes from there, with the pieces before it
            first = min((what.seq for uid, _, what in told if uid == self._uid and what.seq > self._seq), default=_END)
            lines = [line for line in lines if line.seq < first]
            self._ready = self._saved(lines)
            if lines:
                return
        told, first = self._feed.since(self._place)
        if told:
            self._place = first
            self._ready = iter(self._told(told))
            return
        local = self._uid is not None and self._feed.lives[self._uid] > 0
        woken = await self._feed.told(self._place, None if local else LOOK)
        self._behind = not (woken and local)

    def _read(self) -> Sequence[eventlog.Line]:
        """The lines after the last that was given. Those that are told of, too, are kept: that may be dropped."""
        found = self._tail.more() if self._tail is not None else None
        if found is None:
            self._uid = load.read(self._store, self._run).uid
            reading = self._store.read(self._run, accept=lambda snapshot: snapshot.seq <= self._seq)
            self._tail, self._lines, found = self._store.tail(reading), [], reading.lines
        self._lines = [line for line in [*self._lines, *found] if line.seq > self._seq]
        return self._lines

    def _saved(self, lines: Sequence[eventlog.Line]) -> Iterator[Streamed]:
        for line in lines:
            self._seq = line.seq
            events = tuple(replay.decode(raw, seq=line.seq) for raw in line.events)
            if events:
                yield self._line(Streamed(kind="saved", run=self._run, seq=line.seq, at=line.at, events=events))

    def _told(self, told: Sequence[Told]) -> list[Streamed]:
        """What was told, up to a line before which another is missing: up to there the log is read first.

        What was told before a line that was read already is past, and counts as dropped.
        """
        found: list[Streamed] = []
        past = [n for n, (uid, _, what) in enumerate(told, 1) if uid == self._uid and -1 < what.seq <= self._seq]
        self._place += max(past, default=0)
        for uid, pieces, what in told[max(past, default=0) :]:
            saved = what.kind == "saved"
            if saved and uid == self._uid and what.seq > self._seq + 1:
                self._behind = True
                break
            if (missed := pieces - self._heard - (not saved)) > 0:
                found.append(Streamed(kind="dropped", run=self._run, dropped=missed))
            self._heard, self._place = pieces, self._place + 1
            if uid == self._uid:
                self._seq = max(self._seq, what.seq)
                found.append(self._line(what))
        return found

    def _line(self, line: Streamed) -> Streamed:
        """A line; one that ends the run for good ends the stream."""
        for event in line.events:
            if type(event) in _ENDS:
                self._over = event.final if isinstance(event, RunStopped) else getattr(event, "phase", "") == "done"
        return line


def stream(run: str, *, runs: eventlog.Runs, after: int = -1) -> Stream:
    """Follow a run, whoever carries it: an async iterator of `Streamed`, to the end of the run.

    Every saved line comes once and in order. Where the run is carried in this process, the model's text and arguments
    come as they are written, and what calls tell with `Call.progress`, between the lines and saved nowhere. Reading
    slowly, or not at all, never slows the run: then pieces are dropped, and `dropped` says how many. It ends when the
    run is done or stopped for good; while a run waits for a person or a time, so does this.

    A model streams a reply if somebody listens when the request is sent.

    Args:
        run: The run's id.
        runs: As for `start`.
        after: The number of a line: only what comes after it.

    Raises:
        NoSuchRun: There is no such run; raised by the first step, as what follows.
        LogDamaged: Something that was saved is gone or changed.
        LogError: The log can't be read.
    """
    return Stream(run, eventlog.store(runs), after)
