"""Finished walks as hypothesis draws them, and what their histories are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

import replay
from replay import Answered, Event, Limits, Replied, Result, State, ToolCall
from tests.decide.world import World

T = TypeVar("T")
TAPE = 300
"""Choices: a walk until the world turns kind takes about 250."""


class Tape:
    """Choices read from bytes; a blank tape, and one that is used up, choose the first option: the quiet one."""

    def __init__(self, tape: bytes) -> None:
        self._tape = iter(tape)

    def __call__(self, options: Sequence[T], /) -> T:
        """Give the option that the next byte names."""
        return options[next(self._tape, 0) % len(options)]


def walks(*, limits: Limits | None = None, deploys: bool = False) -> st.SearchStrategy[World]:
    """Walks to their end. One drawn tape holds all choices of a walk: drawing each would take most of a test's time."""
    tapes = st.binary(min_size=TAPE, max_size=TAPE)
    return tapes.map(lambda tape: World(Tape(tape), limits=limits, deploys=deploys).walk())


@dataclass(frozen=True)
class Moment:
    """One event of a history, with the states before and after it, its line and its time."""

    line: int
    at: datetime
    before: State
    event: Event
    after: State


def moments(world: World) -> Iterator[Moment]:
    """The walk's history, event by event."""
    state = replay.NEW
    for line, (at, events) in enumerate(world.story.written):
        for event in events:
            after = replay.step(state, event, at)
            yield Moment(line, at, state, event, after)
            state = after


def calls(world: World) -> dict[str, ToolCall]:
    """Every call that the model made, by id."""
    said = [m.reply for m in world.story.state.messages if isinstance(m, Replied)]
    return {call.id: call for reply in said for call in reply.calls}


def results(world: World) -> dict[str, Result]:
    """Every result there is, by call."""
    state = world.story.state
    answered = [r for m in state.messages if isinstance(m, Answered) for r in m.results]
    return {r.call: r for r in (*answered, *(c.result for c in state.calls if c.result is not None))}


def frozen(state: State) -> bytes:
    """All of a state as bytes, histories included, to see whether anything in it moved."""
    return msgspec.json.encode(state, enc_hook=list)
