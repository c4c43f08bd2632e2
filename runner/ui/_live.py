"""The runs whose pages are open: each is read on from where it was, once for all who look at it.

What happens is told as server-sent events, which are made once. A page that is slow or comes late gets the newest of
each kind, never a backlog, and nobody is told more often than every `QUIET` seconds. A secret may be split over pieces
of text: what is sent is the masked end of all the text so far, without its last word, which may be a secret's start.
A text with no place in `MOST` characters that a secret does not go across is one secret, to its end.
"""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import eventlog
import replay
import runner
from runner._agent.redact import MASK
from runner.review import Audited

TAIL = 4000
"""Characters of the end of a text that are sent."""
MOST = 16 * TAIL
"""Characters that are looked at for secrets each time."""
QUIET = 0.15
"""Seconds in which what happens is gathered."""
BEAT = 15.0
"""Seconds after which a word is sent, so that a connection that is gone is noticed."""
FRESH, SHARE = 1.0, 9
"""An open page that asks for its content again gets what was made less than a second ago, if no line was saved since,
and in any case what was made less than `SHARE` times the seconds ago that it took to make. So the pages of a run take a
tenth of a processor, however many are open, and however fast the run saves.
"""
KEPT = 16
"""Runs of which the audits are kept, and pages of each."""


class Pages:
    """The pages of one run, for each key, and its audit, which is used by one at a time."""

    def __init__(self, store: eventlog.Store, run: str) -> None:
        self._store, self._run = store, run
        self._lock = threading.Lock()
        self._audited: Audited | None = None
        self._pages: dict[object, tuple[str, int, float, float]] = {}

    def made(self, key: object, make: Callable[[Audited], str], *, again: bool) -> str:
        """The page for whoever has this key: made of the whole log, or `again`, for a page that is open."""
        with self._lock:
            page, seq, at, took = self._pages.get(key, ("", -1, 0.0, 0.0)) if again else ("", -1, 0.0, 0.0)
            began = time.monotonic()
            if page and began < at + SHARE * took:
                return page
            before, self._audited = self._audited if again else None, None
            self._audited = runner.review.audit(self._run, self._store, before=before)
            if not page or self._audited.story.seq != seq or began > at + FRESH:
                if len(self._pages) >= KEPT:
                    self._pages.clear()
                page, ended = make(self._audited), time.monotonic()
                self._pages[key] = page, self._audited.story.seq, ended, ended - began
            return page


class Followers:
    """What is followed here: each run once for all its open pages, and none that nobody looks at."""

    def __init__(self, store: eventlog.Store) -> None:
        self._store = store
        self._followed: dict[tuple[str, asyncio.AbstractEventLoop], _Followed] = {}

    async def events(self, run: str, after: int) -> AsyncIterator[str]:
        """What one page of a run is told after a line, to the end of the run."""
        key = run, asyncio.get_running_loop()
        followed = self._followed.get(key)
        if followed is None:
            followed = self._followed[key] = _Followed(run, self._store, after)
        followed.readers += 1
        try:
            async for text in followed.events(after):
                yield text
        finally:
            followed.readers -= 1
            if not followed.readers:
                del self._followed[key]
                followed.close()


class _Followed:
    """A run that open pages follow from a line on."""

    def __init__(self, run: str, store: eventlog.Store, after: int) -> None:
        self.readers = 0
        self._stream = runner.stream(run, runs=store, after=after)
        self._news: dict[str, tuple[int, str]] = {}  # the newest of each kind, with its number
        self._number = 0
        self._saved(after)
        self._said, self._ask, self._fresh = _Said(), (0, 0), False
        self._changed, self._over = asyncio.Event(), False
        self._due: asyncio.TimerHandle | None = None
        self._told = 0.0
        self._task = asyncio.create_task(self._follow())

    async def events(self, after: int) -> AsyncIterator[str]:
        seen = 0
        while True:
            changed, over = self._changed, self._over
            for name, (number, text) in [*self._news.items()]:
                if number > seen and (name != "saved" or self._line > after):
                    yield text
                seen = max(seen, number)
            if over:
                return
            try:
                await asyncio.wait_for(changed.wait(), BEAT)
            except TimeoutError:
                yield ": here\n\n"

    def close(self) -> None:
        self._task.cancel()
        if self._due is not None:
            self._due.cancel()

    async def _follow(self) -> None:
        try:
            async for told in self._stream:
                self._take(told)
                if self._due is None:
                    rest = self._told + QUIET - time.monotonic()
                    self._due = asyncio.get_running_loop().call_later(max(rest, 0), self._tell)
            self._put("over", {})
        except (eventlog.LogError, replay.ReplayError) as error:
            self._put("over", {"why": str(error)})
        finally:  # without a word that it is over, a page asks again
            self._over = True
            self._tell()
            await self._stream.aclose()

    def _take(self, told: Any) -> None:
        if told.kind == "saved":
            self._news.clear()
            self._said, self._fresh = _Said(), False
            self._saved(told.seq)
        elif told.kind == "text":
            if (told.turn, told.n) != self._ask:
                self._said = _Said()
            self._said.text += told.text
            self._ask, self._fresh = (told.turn, told.n), True
        elif told.kind == "progress":
            text = runner.review.redact(told.text)
            facts = {"call": told.call, "tool": told.tool, "text": text, "fraction": told.fraction}
            self._put("progress", facts, of=told.call)

    def _saved(self, line: int) -> None:
        self._line = line
        self._put("saved", {"line": line}, head=f"id: {line}\n")

    def _put(self, name: str, facts: dict[str, Any], *, head: str = "", of: str = "") -> None:
        """Keep news for the pages; its data is JSON in ASCII, on one line."""
        self._number += 1
        self._news.pop(name + of, None)
        self._news[name + of] = self._number, f"{head}event: {name}\ndata: {json.dumps(facts)}\n\n"

    def _tell(self) -> None:
        self._due, self._told = None, time.monotonic()
        if self._fresh:
            self._put("text", {"text": self._said.shown()})
            self._fresh = False
        self._changed.set()
        self._changed = asyncio.Event()


class _Said:
    """A text that is being written, from the last place on across which no secret goes."""

    def __init__(self) -> None:
        self.text = ""
        self._is_secret = False

    def shown(self) -> str:
        """The masked end of what is complete."""
        if self._is_secret:
            self.text = ""
            return MASK
        whole = self.text.rpartition(" ")[0]
        masked = runner.review.redact(whole)
        if len(whole) > 3 * TAIL:
            first, last = whole[: -2 * TAIL], whole[-2 * TAIL :]
            if runner.review.redact(first) + runner.review.redact(last) == masked:
                self.text = self.text[len(first) :]
            else:
                self._is_secret = len(whole) > MOST
        return masked[-TAIL:]
