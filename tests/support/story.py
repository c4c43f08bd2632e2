"""A run in memory: the runner's loop without its disk, so that a test states a history and asks what comes next.

Time is whatever the test says it is. Every event is encoded as for a real log, so a story's lines can be loaded again
and must tell the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

import replay
import runner
from replay import Event, State
from replay.events import (
    AttemptEnded,
    ModelAsked,
    QuestionAnswered,
    QuestionAsked,
    ReplySaved,
    ResultRecorded,
    RunStarted,
)
from replay.messages import Reply, ToolCall
from runner._policy import resume_check

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """What the fold needs of a log's line."""

    seq: int
    life: int
    at: datetime
    events: list[msgspec.Raw]


@dataclass(frozen=True)
class Decision:
    """What `decide` was asked and what it said."""

    agent: runner.Agent
    state: State
    now: datetime
    intents: list[Event]


class Story:
    """One run of `agent`, from its first line. `lines` is its log, `written` the same as (time, events)."""

    def __init__(self, agent: runner.Agent) -> None:
        self.agent = agent
        self.now = BEGIN
        self.life = 1
        self.state = replay.NEW
        self.lines: list[Line] = []
        self.written: list[tuple[datetime, tuple[Event, ...]]] = []
        self.decisions: list[Decision] = []
        self.write(
            RunStarted(
                run="r",
                uid="r",
                agent=agent.name,
                task="do it",
                workspace=None,
                limits=agent.limits,
                definitions=agent.definitions,
                approve=agent.approve,
                host="h",
                pid=1,
            )
        )

    def write(self, *events: Event) -> None:
        """One save: a line with these events, at `now`."""
        line = Line(len(self.lines), self.life, self.now, [msgspec.Raw(replay.encode(event)) for event in events])
        state = replay.fold(self.state, self.now, events, seq=line.seq)
        self.state = replace(state, seq=line.seq, life=line.life, at=line.at)
        self.lines.append(line)
        self.written.append((self.now, events))

    def decide(self, outcomes: Sequence[Event] = ()) -> list[Event]:
        """What comes next when these outcomes have come back; nothing is written."""
        state = replay.fold(self.state, self.now, outcomes)
        intents = runner.decide(self.agent, state, self.now)
        self.decisions.append(Decision(self.agent, state, self.now, intents))
        return intents

    def go(self, *outcomes: Event) -> list[Event]:
        """One turn of the loop: outcomes and what is decided on them share a line. Gives the intents."""
        intents = self.decide(outcomes)
        if outcomes or intents:
            self.write(*outcomes, *intents)
        return intents

    def reply(self, *calls: tuple[str, str], whole: Reply | None = None) -> list[Event]:
        """The model is asked and gives these calls (tool, raw arguments), or this whole reply; what comes next."""
        if self.state.ask is None:
            assert isinstance(self.go()[-1], ModelAsked)
        reply = whole or Reply(calls=tuple(ToolCall(tool=t, arguments=a) for t, a in calls))
        return self.go(ReplySaved(reply=named(reply, self.state.turns + 1)))

    def ended(
        self,
        did: Literal["nothing", "unknown"],
        *,
        retry_after: float | None = None,
        asks: bool = False,
        after: float = 0,
        call: str = "1.0",
    ) -> list[Event]:
        """The attempt of `call` that is in flight ends without a result, `after` seconds from now; what comes next."""
        self.tick(after)
        found = self.state.find(call)
        assert found is not None
        n = len(found.attempts)
        return self.go(AttemptEnded(call=call, n=n, did=did, retry_after=retry_after, error="boom", asks=asks))

    def ran(self, text: str = "ok", call: str = "1.0") -> list[Event]:
        """The attempt of `call` that is in flight returns; what comes next."""
        found = self.state.find(call)
        assert found is not None
        return self.go(ResultRecorded(call=call, how="ran", text=text, n=len(found.attempts)))

    def answer(
        self, question: str, verdict: Literal["approve", "refuse", "rerun", "done"], text: str = ""
    ) -> list[Event]:
        """A person answers; what comes next."""
        digest = self.state.questions[question].digest
        return self.go(QuestionAnswered(id=question, answer=verdict, who="ann", digest=digest, text=text))

    def tick(self, seconds: float) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)

    def die(
        self, after: float = 1, *, clock_back: bool = False, agent: runner.Agent | None = None, lease_lost: bool = False
    ) -> list[Event]:
        """The process dies, another carries on `after` seconds later, perhaps with other code. The opening's events.

        Raises the stop's error, and writes nothing, where a resume does.
        """
        self.tick(after)
        self.agent = agent or self.agent
        opening = resume_check.resumed(
            self.agent, self.state, host="h", pid=self.life + 1, clock_back=clock_back, lease_lost=lease_lost
        )
        self.life += 1
        self.write(*opening)
        return opening


def named(reply: Reply, turn: int) -> Reply:
    """`reply` with the ids that its calls get when it is saved."""
    return replace(reply, calls=tuple(replace(c, id=f"{turn}.{i}") for i, c in enumerate(reply.calls)))


def questions(events: Sequence[Event]) -> list[str]:
    """The ids of the questions asked in these events."""
    return [event.id for event in events if isinstance(event, QuestionAsked)]


def only(kind: type[T], found: Sequence[object]) -> T:
    """The one thing that was found, which is of this class."""
    (one,) = found
    assert isinstance(one, kind)
    return one
