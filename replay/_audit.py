"""Audit: what a run did, event by event, without lock, model or tools (spec row 27).

The history is folded as always; beside the fold each event adds to the story. So an audit shows what the log says, and
never more: what the fold would refuse is no history, and the error names the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from msgspec.structs import replace

from replay import _codec, _findings
from replay import _events as e
from replay._fold import Line, step
from replay._state import NEW, State
from replay._story import (
    AskStory,
    AttemptStory,
    Audit,
    CallStory,
    Finding,
    LifeStory,
    LookupStory,
    QuestionStory,
    WaitStory,
)
from replay._values import Definitions, FileHash


def audit(lines: Iterable[Line], *, until: int | None = None) -> Audit:
    """The story of a history, up to line `until` if that is given, and its findings.

    Raises `IllegalEvent` or `Undecodable`, each naming the line, for a history that can't be folded.
    """
    teller = Teller()
    for line in lines:
        if until is not None and line.seq > until:
            break
        teller.line(line)
    return teller.done()


class Teller:
    """Reads a history once, line by line, and remembers what belongs together."""

    def __init__(self) -> None:
        self.state: State = NEW
        self.began: datetime | None = None
        self.lives: list[LifeStory] = []
        self.asks: list[AskStory] = []
        self.calls: dict[str, CallStory] = {}
        self.waits: list[WaitStory] = []
        self.questions: dict[str, QuestionStory] = {}
        self.noted: list[Finding] = []
        self.forgotten: set[str] = set()
        self.life = 0
        self.seq = -1
        self.at = datetime.min.replace(tzinfo=UTC)

    def line(self, line: Line) -> None:
        """Tell one line."""
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
        self.state = replace(self.state, seq=line.seq, life=line.life, at=line.at)

    def done(self) -> Audit:
        """The story so far."""
        state = self.state
        if self.lives:
            self._ended_life(self.lives[-1], state)
        for call in state.calls:
            self.calls[call.call.id].open = call.open
        told = Audit(
            run=state.run,
            task=state.task,
            agent=state.agent,
            workspace=state.workspace,
            parent=state.parent,
            phase=state.phase,
            stopped=state.stopped,
            limits=state.limits,
            spent=state.spent,
            turns=state.turns,
            resumes=state.resumes,
            seq=state.seq,
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

    def _live(self, event: e.Any, before: State) -> None:
        """Let the event belong to its life; a life that begins with an answer is a person's."""
        last = self.lives[-1] if self.lives else None
        if last is None or last.life != self.life:
            gap = None
            if last is not None:
                self._ended_life(last, before)
                gap = (self.at - last.ended).total_seconds()
            kind: Literal["start", "answer"] = "start" if isinstance(event, e.RunStarted) else "answer"
            last = LifeStory(
                life=self.life, kind=kind, seq=self.seq, began=self.at, ended=self.at, last_seq=self.seq, gap=gap
            )
            self.lives.append(last)
        last.ended, last.last_seq = self.at, self.seq
        if isinstance(event, e.RunStarted | e.RunResumed | e.RunForked):
            last.host, last.pid = event.host, event.pid
        if isinstance(event, e.RunResumed):
            last.kind = "resume"
            last.counted, last.clock_back = event.counted, event.clock_back
            last.drift = _drift(before.definitions, event.definitions)
        if isinstance(event, e.RunForked):
            last.kind = "fork"
            self.noted.append(_findings.forked(event.parent, event.seq, event.fence, self.seq))

    def _ended_life(self, life: LifeStory, state: State) -> None:
        """How a life ended, by the state it left."""
        life.stopped = state.stopped
        if state.stopped is not None:
            life.end = "stopped"
        elif state.phase in ("done", "paused"):
            life.end = "done" if state.phase == "done" else "paused"

    def _resumed(self, event: e.RunResumed | e.RunForked, before: State) -> None:
        """What was in flight is open now."""
        if self.asks and self.asks[-1].came == "asked":
            self.asks[-1].came = "lost"
            self.asks[-1].ended, self.asks[-1].ended_seq = self.at, self.seq
        for call in before.calls:
            for attempt in self.calls[call.call.id].attempts:
                if attempt.did == "in flight":
                    attempt.did = "open"
                    attempt.ended, attempt.ended_seq = self.at, self.seq

    def _asked(self, event: e.ModelAsked, before: State) -> None:
        turn = before.turns + 1
        self.asks.append(
            AskStory(purpose=event.purpose, turn=turn, n=event.n, seq=self.seq, at=self.at, bound=event.bound)
        )

    def _replied(self, event: e.ReplySaved, before: State) -> None:
        ask, reply = self.asks[-1], event.reply
        ask.came, ask.ended, ask.ended_seq = "replied", self.at, self.seq
        ask.text, ask.usage, ask.dollars, ask.model = reply.text, reply.usage, reply.dollars, reply.model
        ask.calls = [call.id for call in reply.calls]
        for call in reply.calls:
            self.calls[call.id] = CallStory(
                id=call.id, turn=ask.turn, tool=call.tool, arguments=call.arguments, seq=self.seq, at=self.at
            )

    def _failed(self, event: e.ModelFailed, before: State) -> None:
        ask = self.asks[-1]
        ask.came, ask.ended, ask.ended_seq = "failed", self.at, self.seq
        ask.error, ask.billed = event.error, event.billed

    def _marked(self, event: e.AttemptMarked, before: State) -> None:
        call = before.find(event.call)
        rung: Literal["first", "harmless", "missing", "person", "nothing"] = "first"
        if call is not None and call.attempts:
            rung = call.cleared or ("harmless" if call.open else "nothing")
        self.calls[event.call].attempts.append(
            AttemptStory(
                n=event.n,
                seq=self.seq,
                at=self.at,
                life=self.life,
                key=event.key,
                effect=event.effect,
                rung=rung,
                remembers=event.remembers,
            )
        )

    def _ended(self, event: e.AttemptEnded, before: State) -> None:
        attempt = self.calls[event.call].attempts[-1]
        attempt.did, attempt.error = event.did, event.error
        attempt.ended, attempt.ended_seq = self.at, self.seq

    def _recorded(self, event: e.ResultRecorded, before: State) -> None:
        call = self.calls[event.call]
        call.how, call.text, call.lossy, call.first = event.how, event.text, event.lossy, event.first
        call.ended, call.ended_seq = self.at, self.seq
        if event.how == "ran":
            attempt = call.attempts[-1]
            attempt.did, attempt.ended, attempt.ended_seq = "ran", self.at, self.seq
        if event.how == "found" and call.lookups:
            call.lookups[-1].said, call.lookups[-1].ended = "found", self.at

    def _lookup(self, event: e.LookupAsked, before: State) -> None:
        self._forgotten(before, event.call)
        self.calls[event.call].lookups.append(LookupStory(n=event.n, seq=self.seq, at=self.at, believes=event.believes))

    def _looked(self, event: e.LookupAnswered, before: State) -> None:
        lookup = self.calls[event.call].lookups[-1]
        lookup.said, lookup.error, lookup.ended = event.said, event.error or "", self.at

    def _question(self, event: e.QuestionAsked, before: State) -> None:
        if event.kind == "settle":
            self._forgotten(before, event.call)
        question = QuestionStory(
            id=event.id, kind=event.kind, seq=self.seq, at=self.at, why=event.why, arguments=event.arguments
        )
        self.questions[event.id] = question
        self.calls[event.call].questions.append(question)

    def _answered(self, event: e.QuestionAnswered, before: State) -> None:
        question = self.questions[event.id]
        question.answer, question.who, question.text = event.answer, event.who, event.text
        question.answered, question.answered_seq = self.at, self.seq

    def _forgotten(self, before: State, call: str) -> None:
        """Note, once a call, that its key could not be used again because of its age or of the clock."""
        found = before.find(call)
        if found is None or not found.attempts or call in self.forgotten:
            return
        first = found.attempts[0]
        if first.remembers is None:
            return
        expired = any(a.expired for a in found.attempts)
        if expired or self.at >= first.marked + timedelta(seconds=first.remembers):
            why = "the clock was set back since" if expired else f"it was remembered for {first.remembers:g} s"
            says = f"{call} could not run again with its key, first sent at {first.marked:%Y-%m-%d %H:%M:%S}: {why}"
            self.noted.append(Finding(kind="key-expired", seqs=(self.seq,), says=says, call=call))
            self.forgotten.add(call)

    def _accepted(self, event: e.WorkspaceAccepted, before: State) -> None:
        names = ", ".join(file.path for file in event.files)
        says = f"{event.by} accepted files that were changed from outside: {names}"
        self.noted.append(Finding(kind="workspace-accepted", seqs=(self.seq,), says=says))

    def _wrote(self, event: e.FileWritten, before: State) -> None:
        self.calls[event.call].files.append(FileHash(path=event.path, sha256=event.sha256))

    def _waits(self, event: e.WaitUntil, before: State) -> None:
        self.waits.append(WaitStory(seq=self.seq, at=self.at, until=event.until, why=event.why, call=event.call))

    def _stopped(self, event: e.RunStopped, before: State) -> None:
        if self.state.stopped is not None:
            self.noted.append(_findings.stop(self.life, self.state.stopped, self.seq))

    def _limits(self, event: e.LimitsChanged, before: State) -> None:
        self.noted.append(_findings.limits(before.limits, event.limits, self.seq))

    def _unknown(self, event: e.Unknown, before: State) -> None:
        self.noted.append(_findings.unknown(event.tag, self.seq))


Tell = Callable[[Teller, e.Any, State], None]

_TELL = cast(
    "dict[type, Tell]",
    {
        e.RunResumed: Teller._resumed,
        e.RunForked: Teller._resumed,
        e.ModelAsked: Teller._asked,
        e.ReplySaved: Teller._replied,
        e.ModelFailed: Teller._failed,
        e.AttemptMarked: Teller._marked,
        e.AttemptEnded: Teller._ended,
        e.ResultRecorded: Teller._recorded,
        e.LookupAsked: Teller._lookup,
        e.LookupAnswered: Teller._looked,
        e.QuestionAsked: Teller._question,
        e.QuestionAnswered: Teller._answered,
        e.WorkspaceAccepted: Teller._accepted,
        e.FileWritten: Teller._wrote,
        e.WaitUntil: Teller._waits,
        e.RunStopped: Teller._stopped,
        e.LimitsChanged: Teller._limits,
        e.Unknown: Teller._unknown,
    },
)


def _drift(was: Definitions | None, now: Definitions) -> list[str]:
    """The names of the definitions that changed between two lives; a tool's as `tool NAME`."""
    if was is None:
        return []
    changed = [part for part in ("instructions", "parameters", "context") if getattr(was, part) != getattr(now, part)]
    tools = sorted(name for name in was.tools.keys() | now.tools.keys() if was.tools.get(name) != now.tools.get(name))
    return changed + [f"tool {name}" for name in tools]
