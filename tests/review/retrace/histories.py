"""Histories to walk: the golden run of the triage batch, and random walks.

The batch's log stays as it is when the code changes: that the current code still goes its way is what is tested.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import eventlog
import replay
import runner
from replay import AnyEvent, Event, State
from replay.events import AttemptMarked, ModelAsked, QuestionAsked, ReplySaved, ResultRecorded, RunStopped
from replay.messages import CostBound
from replay.values import Digests
from tests.golden.v1 import agents
from tests.support import tools
from tests.support.random_walk import RandomWalk
from tests.support.story import Story
from tests.support.walks import Tape

GOLDEN = Path(agents.__file__).with_name("histories")


@dataclass(frozen=True)
class History:
    """Lines, and the agent that decided them."""

    lines: Sequence[Any]
    agent: runner.Agent

    def events(self) -> list[tuple[int, AnyEvent]]:
        """Every event with its line."""
        return [(line.seq, replay.decode(raw)) for line in self.lines for raw in line.events]

    def first(self, tool: str) -> int:
        """The first line in which a call of `tool` was tried."""
        called: dict[str, str] = {}
        for seq, event in self.events():
            if isinstance(event, ReplySaved):
                called |= {call.id: call.tool for call in event.reply.calls}
            if isinstance(event, AttemptMarked) and called[event.call] == tool:
                return seq
        raise AssertionError(tool)


@dataclass(frozen=True)
class Place:
    """Where the history holds a decision: the state that it was made in, the time, and what was decided."""

    state: State
    now: datetime
    decided: list[Event]

    @property
    def line(self) -> int:
        """The line that holds it."""
        return self.state.seq + 1


def batch() -> History:
    """The triage batch, and its agent as it was; its approvals were answered by the policy."""
    return History(eventlog.store(GOLDEN).read("batch").lines, agents.batch())


def calling(*called: tuple[str, str], agent: runner.Agent | None = None) -> Story:
    """A run that died while the first of these calls was tried, or before."""
    story = Story(agent or tools.agent())
    story.reply(*called)
    return story


def logged(story: Story, runs: Path, run: str = "r") -> Path:
    """The story as the log of a run whose process died behind its last line; its directory."""
    first, *rest = story.lines
    log = eventlog.store(runs).create(run, at=first.at, events=[bytes(raw) for raw in first.events])
    for line in rest:
        log.append(line.at, [bytes(raw) for raw in line.events])
    log.abandon()
    return runs / run


def walk(seed: int) -> History:
    """One of the random walks of `tests/policy`: deaths, lookups, approvals, and a model that fails.

    Of a seed below zero, the tools are declared `parallel`.
    """
    tape = Tape(random.Random(abs(seed)).randbytes(300))  # noqa: S311 (the same walk every time)
    story = RandomWalk(tape, agent=tools.parallel() if seed < 0 else None).walk().story
    return History(story.lines, story.agent)


def essence(decided: Sequence[Event]) -> list[Event]:
    """Decisions without what an ask is made of, and without the words they are put in: a change there is drift."""
    return [_bare(event) for event in decided]


def _bare(event: Event) -> Event:
    match event:
        case ModelAsked():
            nothing = Digests(instructions="", tools="", messages="", parameters="")
            return replace(event, digests=nothing, bound=CostBound())
        case QuestionAsked():
            return replace(event, why="")
        case RunStopped():
            return replace(event, detail="")
        case ResultRecorded(how="invalid" | "refused" | "failed"):
            return replace(event, text="")
        case _:
            return event
