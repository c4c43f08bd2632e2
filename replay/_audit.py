"""Audit: what a run did, event by event, without lock, model or tools.

The history is folded as always, and each event adds to the story. So an audit shows what the log says and no more. What
the fold refuses is no history: the error names the line.
"""

from collections.abc import Iterable
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


def audit(lines: Iterable[Line]) -> Audit:
    """Tells what a run did, and what deserves a second look.

    Args:
        lines: The lines of its log, from the first on.

    Raises:
        IllegalEvent, Undecodable: The history can't be folded; the error names the line.
    """
    teller = Teller()
    for line in lines:
        teller.line(line)
    return teller.done()


S = TypeVar("S", bound=msgspec.Struct)


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
            self._asks_and_waits(event, before)
            self._acts(event, before)
            self._lookups_and_questions(event, before)
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
        answer = state.answer if state.phase == "done" else None
        own: dict[str, Any] = {"began": self.began, "ended": state.at, "answer": answer, "findings": []}
        parts = {"lives": self.lives, "asks": self.asks, "calls": list(self.calls.values()), "waits": self.waits}
        told = Audit(**shared(Audit, state) | own | parts)
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

    def _asks_and_waits(self, event: e.AnyEvent, before: State) -> None:
        """Adds requests to the model, the calls of their replies, and waits. A new life ends what was in flight."""
        match event:
            case e.RunResumed() | e.RunForked():
                if self.asks and self.asks[-1].came == "asked":
                    self._end(self.asks[-1], came="lost")
                for attempt in (one for call in before.calls for one in self.calls[call.call.id].attempts):
                    if attempt.did == "in flight":
                        self._end(attempt, did="in doubt")
            case e.ModelAsked():
                self.asks.append(self._begun(stories.AskStory, event, turn=before.turns + 1))
            case e.ReplySaved():
                ask, calls = self.asks[-1], event.reply.calls
                self._end(ask, event.reply, came="replied", calls=[call.id for call in calls])
                self.calls |= {call.id: self._begun(stories.CallStory, call, turn=ask.turn) for call in calls}
            case e.CallsMade():
                self.calls |= {call.id: self._begun(stories.CallStory, call, turn=0) for call in event.calls}
            case e.ModelFailed():
                self._end(self.asks[-1], event, came="failed")
            case e.WaitUntil():
                self.waits.append(self._begun(stories.WaitStory, event))

    def _acts(self, event: e.AnyEvent, before: State) -> None:
        """Adds to calls what they did: attempts, child runs, files, results."""
        match event:
            case e.AttemptMarked():
                call = before.find(event.call)
                rung: Literal["first", "harmless", "missing", "person", "nothing"] = "first"
                if call is not None and call.attempts:
                    rung = call.cleared or ("harmless" if call.in_doubt else "nothing")
                attempt = self._begun(stories.AttemptStory, event, life=self.life, rung=rung)
                self.calls[event.call].attempts.append(attempt)
            case e.AttemptEnded():
                self._end(self.calls[event.call].attempts[-1], event)
            case e.ChildStarted():
                self.calls[event.call].child = event.run
            case e.ChildRested():
                self.calls[event.call].child_spent = event.spent
            case e.FileWritten():
                self.calls[event.call].files.append(FileHash(**shared(FileHash, event)))
            case e.ResultRecorded():
                story = self.calls[event.call]
                self._end(story, event)
                if event.how == "ran" and story.attempts:
                    self._end(story.attempts[-1], did="ran")
                if event.how == "found" and story.lookups:
                    self._end(story.lookups[-1], said="found")

    def _lookups_and_questions(self, event: e.AnyEvent, before: State) -> None:
        """Adds what a service or a person was asked, and said."""
        match event:
            case e.LookupAsked():
                self._forgotten(before, event.call)
                self.calls[event.call].lookups.append(self._begun(stories.LookupStory, event))
            case e.LookupAnswered():
                self._end(self.calls[event.call].lookups[-1], said=event.said, error=event.error or "")
            case e.QuestionAsked():
                if event.kind == "settle":
                    self._forgotten(before, event.call)
                question = self.questions[event.id] = self._begun(stories.QuestionStory, event)
                self.calls[event.call].questions.append(question)
            case e.QuestionAnswered():
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
