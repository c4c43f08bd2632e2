"""The state of a run: all that a later process needs to carry on, and nothing else.

A state is a value; only a fold, while it makes one, assigns fields of a draft. Every field comes from the log, so two
processes that read the same lines have the same state.
*In flight* is an attempt that runs now. *In doubt* is one that may have acted and has no result. Only what is in doubt
climbs the ladder; somebody who reads a log cannot tell the two apart.
"""

from datetime import datetime
from typing import Literal

import msgspec

from replay import _state_parts, values
from replay._history import History
from replay.events import QuestionAnswered, QuestionAsked
from replay.messages import Message, Result, Stop, ToolCall
from replay.values import (
    Definitions,
    Effect,
    FileHash,
    Happened,
    Kind,
    Limits,
    Loosened,
    ParentCall,
    ParentEffect,
    Phase,
    Queued,
    Rule,
    StopReason,
    Summary,
    Taken,
    Verdict,
    Wait,
)

Ask = _state_parts.Ask
Attempt = _state_parts.Attempt
Child = _state_parts.Child
Failures = _state_parts.Failures
Lookups = _state_parts.Lookups
Spent = values.Spent


class CallState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call of the current reply and all that happened to it.

    `cleared`: who said that no attempt so far did anything, the service (a believed `Missing`) or a person (`rerun`).
    `bound`: the arguments that run, defaults included, once a question or a marker has logged them. `child`: the run
    that does this call.
    """

    call: ToolCall
    bound: str | None = None
    attempts: tuple[Attempt, ...] = ()
    lookups: Lookups = Lookups()
    cleared: Literal["missing", "person"] | None = None
    settle_questions: int = 0
    result: Result | None = None
    child: Child | None = None

    @property
    def arguments(self) -> str:
        """The arguments as they are known to run, or else as the model wrote them."""
        return self.call.arguments if self.bound is None else self.bound

    @property
    def in_flight(self) -> bool:
        """Whether an attempt runs now."""
        return self.result is None and bool(self.attempts) and self.attempts[-1].did == "in flight"

    @property
    def busy(self) -> bool:
        """Whether an attempt, a lookup or a child runs now."""
        return self.in_flight or self.lookups.in_flight or (self.child is not None and self.child.running)

    @property
    def tried(self) -> bool:
        """Whether it has begun: it was attempted, or has a child run."""
        return bool(self.attempts) or self.child is not None

    @property
    def in_doubt(self) -> bool:
        """Whether an attempt may have acted and nothing has settled it."""
        return self.result is None and any(a.did != "nothing" for a in self.attempts)

    @property
    def attempts_used(self) -> int:
        """How many attempts ended in their own life: these are bounded by the tool's `attempts`."""
        return sum(1 for a in self.attempts if a.ended is not None and not a.died and not a.withdrawn)


class Question(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a person is asked, and the answer if there is one.

    `guarded` is the index in `State.fork_guard` of the effect that the call would repeat. `declared`: the digest of the
    tool's description and arguments when it was asked.
    """

    id: str
    kind: Kind
    call: str
    tool: str
    arguments: str
    digest: str
    why: str
    at: datetime
    answer: QuestionAnswered | None = None
    guarded: int | None = None
    expires: datetime | None = None
    declared: str = ""


def _by_path(call: CallState, asked: QuestionAsked) -> Question:
    """A child's question, as its parent's log says it."""
    fields = {name: getattr(asked, name) for name in asked.__struct_fields__ if name != "guarded"}
    assert call.child is not None
    assert call.child.at is not None
    path = {"id": f"{call.call.id}:{asked.id}", "call": f"{call.call.id}:{asked.call}"}
    return Question(**(fields | path), at=call.child.at)


class Draft(msgspec.Struct, gc=False):
    """A state in the making. `files` maps a path to every content that is expected there, the newest last.

    `parent_call`: it is a child run. `trace`: the trace context of whoever began it. `forked_from`: its parent's
    identity. `loosened`: tools that protect less now than in an earlier life. `lossy`: calls whose result could not be
    kept as it came. `carried` counts the lives that carried it on. `uncounted`: the next resume does not count toward
    the limit. `taken` are the accepted requests by name, `refused` the last refusal of each of the last 1,000 names.
    `parked` counts parks, `unavailable` stops in a row because of the model. `child_turns` are turns of its children.
    `made` counts the groups of calls that a program made by itself.
    """

    run: str = ""
    uid: str = ""
    agent: str = ""
    task: str = ""
    inputs: str | None = None
    workspace: str | None = None
    after: str | None = None
    parent: str | None = None
    parent_call: ParentCall | None = None
    framework: str = ""
    trace: str = ""
    forked_from: str = ""
    approve: Literal["ask", "off"] = "ask"
    limits: Limits = Limits()
    definitions: Definitions | None = None
    labels: dict[str, str] = {}
    began: datetime | None = None
    loosened: dict[str, Loosened] = {}
    phase: Phase = "new"
    stopped: StopReason | None = None
    turns: int = 0
    child_turns: int = 0
    made: int = 0
    carried: int = 0
    resumes: int = 0
    uncounted: bool = False
    taken: dict[str, Taken] = {}
    refused: dict[str, Taken] = {}
    parked: int = 0
    unavailable: int = 0
    spent: Spent = Spent()
    messages: History[Message] = History()
    conversation: str = ""
    notes: tuple[str, ...] = ()
    summary: Summary | None = None
    stop: Stop | None = None
    calls: tuple[CallState, ...] = ()
    ask: Ask | None = None
    failures: Failures = Failures()
    questions: dict[str, Question] = {}
    happened: dict[str, Happened] = {}
    fork_guard: tuple[ParentEffect, ...] = ()
    files: dict[str, tuple[str | None, ...]] = {}
    wait: Wait | None = None
    lossy: tuple[str, ...] = ()
    replies_refused: int = 0
    tried: dict[str, int] = {}
    rules: tuple[Rule, ...] = ()
    queue: tuple[Queued, ...] = ()
    rebuilt_upto: int = 0
    answer: str | None = None
    unknown: tuple[str, ...] = ()
    seq: int = -1
    life: int = 0
    at: datetime | None = None

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The ids of the calls that may have happened and are not settled."""
        return tuple([c.call.id for c in self.calls if c.in_doubt])

    @property
    def unanswered(self) -> tuple[Question, ...]:
        """The questions of this run that a person has not answered yet."""
        return tuple([q for q in self.questions.values() if q.answer is None])

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions a person has not answered yet, those of its children after its own.

        A child's question is named by the path to it: the call, a colon, and its id there.
        """
        children = [call for call in self.calls if call.child is not None and call.result is None]
        asked = [_by_path(call, asked) for call in children if call.child for asked in call.child.questions]
        return (*self.unanswered, *asked)

    @property
    def due(self) -> datetime | None:
        """When something happens by itself, also to a child: a wait ends, a question lapses, a deadline comes."""
        times = [q.expires for q in self.unanswered]
        times += [call.child.due for call in self.calls if call.child is not None and call.result is None]
        wait = self.wait.until if self.wait is not None else None
        return min((at for at in (*times, wait, self.limits.until) if at is not None), default=None)

    @property
    def over(self) -> bool:
        """Whether the run goes no further, whatever happens: it is done, or was stopped for good."""
        return self.phase == "done" or (self.stopped is not None and self.stopped.final)

    @property
    def busy(self) -> bool:
        """Whether anything is in flight."""
        return self.ask is not None or any([c.busy for c in self.calls])  # noqa: C419 (a list costs less)

    @property
    def child_is_due(self) -> bool:
        """Whether a child could be carried on that waits neither for a person nor for a time."""
        children = [call.child for call in self.calls if call.result is None and call.child is not None]
        return any(not child.running and not child.resting for child in children)

    @property
    def turns_used(self) -> int:
        """Its turns and those of its children. The limit of turns is compared with this."""
        return self.turns + self.child_turns

    def earlier_effect(self, tool: str) -> Effect | None:
        """The effect that an earlier life declared of a tool, if that allows less than the current one."""
        return self.loosened.get(tool, Loosened()).effect

    def declared(self, tool: str) -> str:
        """The digest of a tool's description and arguments in the current life; empty when it has no such tool."""
        found = self.definitions.tools.get(tool) if self.definitions is not None else None
        return found.digest if found is not None else ""

    def find(self, call: str) -> CallState | None:
        """The call with this id in the current reply, or None."""
        place = self.place(call)
        return None if place is None else self.calls[place]

    def place(self, call: str) -> int | None:
        """The place of the call with this id in the current reply: nearly always the one that its id ends with."""
        said = call.rpartition(".")[2]
        place = int(said) if len(said) < 9 and said.isdecimal() else len(self.calls)  # noqa: PLR2004 (no reply has more)
        if place < len(self.calls) and self.calls[place].call.id == call:
            return place
        return next((n for n, found in enumerate(self.calls) if found.call.id == call), None)

    def passed(self, call: str, answer: Verdict) -> ParentEffect | None:
        """The effect in the fork guard about which a person gave this answer for this call, or None."""
        for asked in self.questions.values() if self.fork_guard else ():
            if asked.call == call and asked.guarded is not None and asked.answer and asked.answer.answer == answer:
                return self.fork_guard[asked.guarded]
        return None

    def hashes(self) -> tuple[FileHash, ...]:
        """The newest content of every file the run wrote."""
        return tuple(FileHash(path=p, sha256=h[-1]) for p, h in self.files.items())


class State(Draft, frozen=True, gc=False):  # type: ignore[misc]  # msgspec allows it: what is frozen adds no field
    """A run, as its log says: a value that never changes. Its fields, and what is asked of it, are those of a draft."""


NEW = State()
"""The state before the first event."""
