"""Audit: what a run did, event by event, without lock, model or tools.

The history is folded as always, and each event adds to the story. So an audit shows what the log says and no more. What
the fold refuses is no history: the error names the line.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from replay import _codec, _findings, stories
from replay import events as e
from replay._fold import Line, step
from replay._rules import shared
from replay.state import NEW, State
from replay.stories import Audit, Finding, Span
from replay.values import FileHash


def audit(lines: Iterable[Line], *, until: int | None = None) -> Audit:
    """Tells what a run did, and what deserves a second look.

    Args:
        lines: The lines of its log, from the first on.
        until: The last line to tell; None for all.

    Raises:
        IllegalEvent, Undecodable: The history can't be folded; the error names the line.
    """
    teller = Teller()
    for line in lines:
        if until is not None and line.seq > until:
            break
        teller.line(line)
    return teller.done()


S = TypeVar("S", bound=msgspec.Struct)
Tell = TypeVar("Tell", bound=Callable[..., None])
_TELL: dict[type, Callable[..., None]] = {}


def _tells(*kinds: type) -> Callable[[Tell], Tell]:
    """Declares what events of these classes add to the story."""

    def declare(tell: Tell) -> Tell:
        _TELL.update(dict.fromkeys(kinds, tell))
        return tell

    return declare


_AS_IN_THE_STATE = (
    *("run", "task", "agent", "workspace", "parent", "phase", "stopped"),
    *("limits", "spent", "turns", "resumes", "seq"),
)


class Teller:
    """Reads a history once, line by line, and collects what belongs together.

    `line` adds the next line, and raises what `audit` raises; `done` gives the story so far, as `audit` does, and then
    lines may follow. Stories share their parts: one that was given before moves on with the next.
    """

    def __init__(self) -> None:
        self.state: State = NEW
        self.began: datetime | None = None
        self.lives: list[stories.LifeStory] = []
        self.asks: list[stories.AskStory] = []
        self.calls: dict[str, stories.CallStory] = {}
        self.waits: list[stories.WaitStory] = []
        self.questions: dict[str, stories.QuestionStory] = {}
        self.noted: list[Finding] = []
        self.forgotten: set[str] = set()
        self.life = 0
        self.seq = -1
        self.at = datetime.min.replace(tzinfo=UTC)

    def line(self, line: Line) -> None:
        """Adds one line to the story."""
        self.seq, self.at, self.life = line.seq, line.at, line.life
        self.began = self.began or line.at
        for raw in line.events:
            event = _codec.decode(raw, seq=line.seq)
            before = self.state
            self.state = step(before, event, line.at, seq=line.seq)
            self._live(event, before)
            tell = _TELL.get(type(event))
            if tell is not None:
                tell(self, event, before)
            self.noted += _findings.of_event(event, before, self.life, self.seq)
        self.state = replace(self.state, seq=line.seq, life=line.life, at=line.at)

    def done(self) -> Audit:
        """The story so far."""
        state = self.state
        if self.lives:
            self._ended_life(self.lives[-1], state)
        in_doubt = state.in_doubt
        for story in self.calls.values():
            story.in_doubt = story.id in in_doubt
        told = Audit(
            **{name: getattr(state, name) for name in _AS_IN_THE_STATE},
            began=self.began,
            ended=state.at,
            answer=state.answer if state.phase == "done" else None,
            lives=self.lives,
            asks=self.asks,
            calls=list(self.calls.values()),
            waits=self.waits,
            findings=[],
        )
        told.findings = _findings.find(told, self.noted)
        return told

    def _begun(self, kind: type[S], event: msgspec.Struct, **more: Any) -> S:
        """A story that begins here, with what it has in common with the event."""
        return kind(**shared(kind, event), seq=self.seq, at=self.at, **more)

    def _end(self, span: Span, event: msgspec.Struct | None = None, **more: Any) -> None:
        """Ends a span here; it takes over what it has in common with the event."""
        taken = {} if event is None else shared(type(span), event)
        for name, value in {**taken, **more, "ended": self.at, "ended_seq": self.seq}.items():
            setattr(span, name, value)

    def _live(self, event: e.AnyEvent, before: State) -> None:
        """Adds the event to its life. A life that begins with an answer is that of a person."""
        last = self.lives[-1] if self.lives else None
        if last is None or last.life != self.life:
            gap = None
            if last is not None:
                self._ended_life(last, before)
                gap = (self.at - last.ended).total_seconds()
            kind: Literal["start", "answer"] = "start" if isinstance(event, e.RunStarted) else "answer"
            last = stories.LifeStory(
                life=self.life, kind=kind, seq=self.seq, began=self.at, ended=self.at, last_seq=self.seq, gap=gap
            )
            self.lives.append(last)
        last.ended, last.last_seq = self.at, self.seq
        if isinstance(event, e.RunStarted | e.RunResumed | e.RunForked):
            last.host, last.pid = event.host, event.pid
        if isinstance(event, e.RunResumed):
            last.kind = "resume"
            last.counted, last.clock_back = event.counted, event.clock_back
            last.drift = (before.definitions or event.definitions).drift(event.definitions)
        if isinstance(event, e.RunForked):
            last.kind = "fork"

    def _ended_life(self, life: stories.LifeStory, state: State) -> None:
        """How a life ended, from the state after it."""
        life.stopped = state.stopped
        ends: dict[str, Literal["done", "paused"]] = {"done": "done", "paused": "paused"}
        life.end = "stopped" if state.stopped is not None else ends.get(state.phase, "unsaid")

    @_tells(e.RunResumed, e.RunForked)
    def _resumed(self, event: e.RunResumed | e.RunForked, before: State) -> None:
        """What was in flight is in doubt now."""
        if self.asks and self.asks[-1].came == "asked":
            self._end(self.asks[-1], came="lost")
        for call in before.calls:
            for attempt in self.calls[call.call.id].attempts:
                if attempt.did == "in flight":
                    self._end(attempt, did="in doubt")

    @_tells(e.ModelAsked)
    def _asked(self, event: e.ModelAsked, before: State) -> None:
        self.asks.append(self._begun(stories.AskStory, event, turn=before.turns + 1))

    @_tells(e.ReplySaved)
    def _replied(self, event: e.ReplySaved, before: State) -> None:
        ask, calls = self.asks[-1], event.reply.calls
        self._end(ask, event.reply, came="replied", calls=[call.id for call in calls])
        self.calls |= {call.id: self._begun(stories.CallStory, call, turn=ask.turn) for call in calls}

    @_tells(e.CallsMade)
    def _made(self, event: e.CallsMade, before: State) -> None:
        self.calls |= {call.id: self._begun(stories.CallStory, call, turn=0) for call in event.calls}

    @_tells(e.ModelFailed)
    def _failed(self, event: e.ModelFailed, before: State) -> None:
        self._end(self.asks[-1], event, came="failed")

    @_tells(e.AttemptMarked)
    def _marked(self, event: e.AttemptMarked, before: State) -> None:
        call = before.find(event.call)
        rung: Literal["first", "harmless", "missing", "person", "nothing"] = "first"
        if call is not None and call.attempts:
            rung = call.cleared or ("harmless" if call.in_doubt else "nothing")
        attempt = self._begun(stories.AttemptStory, event, life=self.life, rung=rung)
        self.calls[event.call].attempts.append(attempt)

    @_tells(e.AttemptEnded)
    def _ended(self, event: e.AttemptEnded, before: State) -> None:
        self._end(self.calls[event.call].attempts[-1], event)

    @_tells(e.ResultRecorded)
    def _recorded(self, event: e.ResultRecorded, before: State) -> None:
        call = self.calls[event.call]
        self._end(call, event)
        if event.how == "ran" and call.attempts:
            self._end(call.attempts[-1], did="ran")
        if event.how == "found" and call.lookups:
            self._end(call.lookups[-1], said="found")

    @_tells(e.ChildStarted)
    def _started(self, event: e.ChildStarted, before: State) -> None:
        self.calls[event.call].child = event.run

    @_tells(e.ChildRested)
    def _rested(self, event: e.ChildRested, before: State) -> None:
        self.calls[event.call].child_spent = event.spent

    @_tells(e.LookupAsked)
    def _lookup(self, event: e.LookupAsked, before: State) -> None:
        self._forgotten(before, event.call)
        self.calls[event.call].lookups.append(self._begun(stories.LookupStory, event))

    @_tells(e.LookupAnswered)
    def _looked(self, event: e.LookupAnswered, before: State) -> None:
        self._end(self.calls[event.call].lookups[-1], said=event.said, error=event.error or "")

    @_tells(e.QuestionAsked)
    def _question(self, event: e.QuestionAsked, before: State) -> None:
        if event.kind == "settle":
            self._forgotten(before, event.call)
        question = self.questions[event.id] = self._begun(stories.QuestionStory, event)
        self.calls[event.call].questions.append(question)

    @_tells(e.QuestionAnswered)
    def _answered(self, event: e.QuestionAnswered, before: State) -> None:
        question = self.questions[event.id]
        self._end(question, event, arguments=question.arguments)  # those that were asked about

    def _forgotten(self, before: State, call: str) -> None:
        """Notes, once a call, that its key was too old to be used again, or that the clock was set back since."""
        found = before.find(call)
        if found is None or not found.attempts or call in self.forgotten:
            return
        first = found.attempts[0]
        if first.key_ttl is None:
            return
        expired = any(a.expired for a in found.attempts)
        if expired or (self.at - first.marked).total_seconds() >= first.key_ttl:
            self.noted.append(_findings.expired(call, first, self.seq, clock_back=expired))
            self.forgotten.add(call)

    @_tells(e.FileWritten)
    def _wrote(self, event: e.FileWritten, before: State) -> None:
        self.calls[event.call].files.append(FileHash(**shared(FileHash, event)))

    @_tells(e.WaitUntil)
    def _waits(self, event: e.WaitUntil, before: State) -> None:
        self.waits.append(self._begun(stories.WaitStory, event))
