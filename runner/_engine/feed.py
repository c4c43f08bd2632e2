"""What a life does, told while it happens to whoever listens in this process. Nothing of it is saved by being told.

Saved lines and pieces that are not saved (text, arguments, progress) stand in one order. A feed keeps the last `KEPT`
of them, once for all its listeners, each of which has a place of its own: one that is slow, or gone, costs the run
nothing, finds out how many pieces it missed, and reads missed lines in the log. Without a listener nothing is kept.
"""

import asyncio
import contextlib
import threading
import weakref
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

import eventlog
import replay
from replay import CallState
from runner._agent import sanitize
from runner._agent.agent import AnyAgent
from runner._agent.model import Request

KEPT = 1024
"""Lines and pieces that a feed keeps for listeners that are behind."""
PIECE = 4096
"""Bytes of JSON of one piece's text at most; a longer text comes in several."""
TOGETHER = 0.02
"""Seconds in which what is told is gathered before the listeners wake: a thousand pieces a second wake them fifty
times."""


class Streamed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that `runner.stream` gives.

    Attributes:
        kind: `saved`: a line of the log. `text`: a piece of what the model writes. `arguments`: a piece of a call's
            arguments, as they are written. `progress`: how far a call says that it is. `dropped`: pieces were missed.
        run: The run's id.
        seq: The number of the line, for `saved`.
        at: When it was saved (UTC), for `saved`.
        events: What the line says, for `saved`.
        turn: The turn that the model writes, or whose call it is, else 0.
        n: Which ask of the turn, or attempt of the call. A new ask writes its text anew from the start.
        call: The id of the call, which it has or will have, for `arguments` and `progress`.
        tool: The call's tool.
        text: The piece, or what the call says of its progress.
        fraction: From 0 to 1, for `progress`, if the call knows.
        dropped: How many pieces were missed, for `dropped`.
    """

    kind: Literal["saved", "text", "arguments", "progress", "dropped"]
    run: str
    seq: int = -1
    at: datetime | None = None
    events: tuple[replay.AnyEvent, ...] = ()
    turn: int = 0
    n: int = 0
    call: str = ""
    tool: str = ""
    text: str = ""
    fraction: float | None = None
    dropped: int = 0


Told = tuple[str, int, Streamed]
"""The uid of a run, the pieces of it so far, this one included, and a line or a piece."""
Futures = set["asyncio.Future[None]"]


class Feed:
    """What is told of the runs of one name. `lives` are the lives that tell here, by the run's uid."""

    def __init__(self) -> None:
        self.listeners: set[weakref.ref[object]] = set()
        self.lives: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._kept: deque[Told] = deque(maxlen=KEPT)
        self._end = self._pieces = 0
        self._waiting: dict[asyncio.AbstractEventLoop, Futures] = {}

    def count(self, uid: str, more: int) -> None:
        """Note that one life more, or less, tells here."""
        with self._lock:
            self.lives[uid] += more

    def listen(self, listener: object) -> tuple[int, int]:
        """Tell a listener from now on, for as long as it exists: its place, and the pieces so far."""
        with self._lock:
            if not self.listeners:
                self._kept.clear()
            self.listeners.add(weakref.ref(listener, self.listeners.discard))
            return self._end, self._pieces

    def tell(self, uid: str, what: Streamed) -> None:
        """Tell something; from any thread."""
        with self._lock:
            self._pieces += what.kind != "saved"
            self._kept.append((uid, self._pieces, what))
            self._end += 1
            is_awaited = bool(self._waiting)
        if is_awaited:  # most that is told comes while the listeners are being woken already
            self.wake()

    def since(self, place: int) -> tuple[list[Told], int]:
        """What is kept of all that was told from a place on, and the place of the first of it."""
        with self._lock:
            first = max(place, self._end - len(self._kept))
            skipped = first - (self._end - len(self._kept))
            return [*self._kept][skipped:], first

    def wake(self) -> None:
        """Have whoever waits look again, a little later."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for loop, futures in waiting.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(loop.call_later, TOGETHER, _done, futures)

    async def told(self, place: int, most: float | None) -> bool:
        """Wait until something is told from a place on; False when nothing was for `most` seconds."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._end > place:
                return True
            self._waiting.setdefault(loop, set()).add(future)
        try:
            return bool((await asyncio.wait({future}, timeout=most))[0])
        finally:
            with self._lock:
                self._waiting.get(loop, set()).discard(future)


def _done(futures: Futures) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


_feeds: weakref.WeakValueDictionary[str, Feed] = weakref.WeakValueDictionary()
_making = threading.Lock()


def of(run: str) -> Feed:
    """The feed of the runs of this name, which is kept by its lives and its listeners."""
    with _making:
        found = _feeds.get(run)
        if found is None:
            found = _feeds[run] = Feed()
        return found


class Teller:
    """What one life says. It tells nothing, and costs nothing, while nobody listens."""

    def __init__(self, run: str, uid: str) -> None:
        self._run, self._uid, self._feed = run, uid, of(run)
        self._feed.count(uid, 1)

    def end(self) -> None:
        """Say that the life is over: the log has the rest."""
        self._feed.count(self._uid, -1)
        self._feed.wake()

    def saved(self, line: eventlog.Line, events: Sequence[replay.AnyEvent]) -> None:
        """Tell a line that was saved."""
        if self._feed.listeners:
            told = Streamed(kind="saved", run=self._run, seq=line.seq, at=line.at, events=tuple(events))
            self._feed.tell(self._uid, told)

    def listening(self, request: Request) -> Request:
        """The request with a way to tell the reply's pieces, if somebody listens."""
        if not self._feed.listeners:
            return request

        def heard(text: object, call: int | None = None, tool: object = "") -> None:
            named = {} if call is None else {"call": f"{request.turn}.{call}", "tool": str(tool)[:PIECE]}
            kind = "text" if call is None else "arguments"
            self._pieces(kind, text, turn=request.turn, n=request.n, **named)

        return replace(request, heard=heard)

    def progress(
        self, agent: AnyAgent, turn: int, call: CallState, plain: Mapping[str, object], fraction: object, text: object
    ) -> None:
        """Tell how far a call is: one piece each time, cut, its secrets masked."""
        if self._feed.listeners:
            tool = agent.tool(call.call.tool)
            secrets = sanitize.secrets_of(tool.secret if tool is not None else (), plain)
            told = Streamed(
                kind="progress",
                run=self._run,
                turn=turn,
                n=call.attempts[-1].n,
                call=call.call.id,
                tool=call.call.tool,
                text=sanitize.error(text, secrets) if isinstance(text, str) else "",
                fraction=fraction if isinstance(fraction, int | float) and 0 <= fraction <= 1 else None,
            )
            self._feed.tell(self._uid, told)

    def _pieces(self, kind: Any, text: object, **named: Any) -> None:
        """Tell a text in pieces; what is none is not told."""
        whole = text if isinstance(text, str) else ""
        for start in range(0, len(whole), PIECE):
            piece = sanitize.clean(whole[start : start + PIECE])
            self._feed.tell(self._uid, Streamed(kind=kind, run=self._run, text=piece, **named))
