"""Finished walks as hypothesis draws them, and what their histories are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

import replay
from replay import Event, State
from replay.messages import AssistantMessage, Result, ToolCall, ToolResults
from replay.values import Limits
from tests.support import tools
from tests.support.random_walk import RandomWalk

T = TypeVar("T")
TAPE = 300
"""Choices: a walk until the walk turns kind takes about 250."""


class Tape:
    """Choices read from bytes; a blank tape, and one that is used up, choose the first option: the quiet one."""

    def __init__(self, tape: bytes) -> None:
        self._tape = iter(tape)

    def __call__(self, options: Sequence[T], /) -> T:
        """Give the option that the next byte names."""
        return options[next(self._tape, 0) % len(options)]


def walks(*, limits: Limits | None = None, deploys: bool = False) -> st.SearchStrategy[RandomWalk]:
    """Walks to their end. One drawn tape holds all choices of a walk: drawing each would take most of a test's time.

    In every second walk the tools are declared `parallel`.
    """

    def walked(tape: bytes) -> RandomWalk:
        agent = tools.parallel() if tape[0] % 2 else None
        return RandomWalk(Tape(tape[1:]), agent=agent, limits=limits, deploys=deploys).walk()

    return st.binary(min_size=TAPE + 1, max_size=TAPE + 1).map(walked)


@dataclass(frozen=True)
class Moment:
    """One event of a history, with the states before and after it, its line and its time."""

    line: int
    at: datetime
    before: State
    event: Event
    after: State


def moments(walk: RandomWalk) -> Iterator[Moment]:
    """The walk's history, event by event."""
    state = replay.NEW
    for line, (at, events) in enumerate(walk.story.written):
        for event in events:
            after = replay.step(state, event, at)
            yield Moment(line, at, state, event, after)
            state = after


def calls(walk: RandomWalk) -> dict[str, ToolCall]:
    """Every call that the model made, by id."""
    said = [m.reply for m in walk.story.state.messages if isinstance(m, AssistantMessage)]
    return {call.id: call for reply in said for call in reply.calls}


def results(walk: RandomWalk) -> dict[str, Result]:
    """Every result there is, by call."""
    state = walk.story.state
    answered = [r for m in state.messages if isinstance(m, ToolResults) for r in m.results]
    return {r.call: r for r in (*answered, *(c.result for c in state.calls if c.result is not None))}


def frozen(state: State) -> bytes:
    """All of a state as bytes, histories included, to see whether anything in it moved."""
    return msgspec.json.encode(state, enc_hook=list)
