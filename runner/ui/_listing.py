"""All runs as a page shows them: filtered by their statuses, a page at a time, and what they ask of a person."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import eventlog
import replay
import runner
from replay import Question, State
from replay.stories import CallStory
from runner._cli import options
from runner._cli._render import audit_text, question_text

PAGE = 50
"""Runs on a page."""
FRESH = 1.0
"""Seconds for which a list serves whoever asks: a hundred open pages read the statuses once."""

FORKS = 10.0
"""Seconds for which it is known which run comes from which."""


class Page(NamedTuple):
    """A page of the list: its runs, its number from 1, and how many pages and runs were found."""

    runs: Sequence[runner.RunInfo]
    number: int
    pages: int
    found: int


class Listing:
    """The runs of a place, read at most every second, and of those that moved only what is new."""

    def __init__(self, store: eventlog.Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._found: list[runner.RunInfo] = []
        self._asked: dict[str, tuple[runner.RunInfo, State]] = {}
        self._parents: dict[str, str] = {}
        self._at = self._again = float("-inf")

    async def all(self) -> list[runner.RunInfo]:
        """Every run, newest first."""
        async with self._lock:
            if time.monotonic() > self._at + FRESH:
                self._at = began = time.monotonic()
                self._found = await asyncio.to_thread(runner.list_runs, self._store, before=self._found)
                if self._at == began:  # nothing was said to a run while it was read
                    self._at = time.monotonic()
            return self._found

    def stale(self) -> None:
        """Have the list read again: something was just said to a run."""
        self._at = self._again = float("-inf")

    async def questions(self) -> list[tuple[State, Question]]:
        """Every open question, the oldest first."""
        return await asyncio.to_thread(self._questions, await self.all())

    def _questions(self, found: Sequence[runner.RunInfo]) -> list[tuple[State, Question]]:
        before, self._asked = self._asked, {}

        def read(info: runner.RunInfo) -> State:
            seen, state = before.get(info.run, (None, replay.NEW))
            if seen is not info:  # it moved since
                state = runner.read_state(info.run, self._store)
            self._asked[info.run] = info, state
            return state

        return question_text.of_all(found, read)

    def forks(self, run: str) -> list[str]:
        """The forks of a run. Who comes from whom is read from all runs, so seldom."""
        began = time.monotonic()
        if began > self._again:
            self._parents = self._store.parents()
            self._again = time.monotonic() + max(FORKS, 50 * (time.monotonic() - began))
        return [fork for fork, parent in self._parents.items() if parent == run]


def page(found: Sequence[runner.RunInfo], asked: Mapping[str, str]) -> Page:
    """The page that a query asks for. Raises `ValueError` for what is no duration or number."""
    wanted = [*_filters(asked)]
    kept = [info for info in found if all(good(info) for good in wanted)]
    pages = max(-(-len(kept) // PAGE), 1)
    number = min(max(int(asked.get("page") or 1), 1), pages)
    return Page(kept[(number - 1) * PAGE : number * PAGE], number, pages, len(kept))


def word(info: runner.RunInfo) -> str:
    """Where a run stands, as it is filtered by."""
    status = info.status
    if status is None:
        return "unreadable"
    asks = status.open_questions and not status.closed
    return "stopped" if status.stopped else "asks" if asks else status.phase


def rung(state: State, call: CallStory) -> str:
    """On which rung of the ladder a call in doubt is now, in words."""
    asked = next((one for one in state.waiting if one.call == call.id), None)
    if asked is not None:
        return "a person must say whether it happened" + (f", as {asked.why}" if asked.why else "")
    if call.questions and call.questions[-1].answer is not None:
        return "a person has said what is to be done, and whoever carries the run on does it"
    if call.lookups and call.lookups[-1].ended is None and state.stopped is None:
        return "the service is asked whether it happened"
    if state.wait is not None and state.stopped is None:
        return (
            f"it waits until {audit_text.moment(state.wait.until)} {audit_text.WHY.get(state.wait.why, state.wait.why)}"
        )
    return "whoever carries the run on runs it again if a repeat is harmless, or asks the service, or else a person"


def _filters(asked: Mapping[str, str]) -> Iterator[Callable[[runner.RunInfo], bool]]:
    """A test of a run for each filter that is set."""
    status, agent, text = (asked.get(name, "").strip() for name in ("status", "agent", "text"))
    label, newer, live = (asked.get(name, "").strip() for name in ("label", "newer", "live"))
    if status:
        yield lambda info: word(info) == status
    if agent:
        yield lambda info: info.status is not None and info.status.agent == agent
    if text:
        yield lambda info: text.lower() in f"{info.run} {info.status.task if info.status else ''}".lower()
    if label:
        name, _, value = label.partition("=")
        yield lambda info: info.status is not None and info.status.labels.get(name) == value
    if newer:
        since = datetime.now(UTC) - options.age(newer)
        yield lambda info: info.status is None or (info.status.at or since) >= since
    if live:
        yield lambda info: info.live == (live == "yes")
