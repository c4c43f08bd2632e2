"""The state of a run: all that a later process needs to carry on (spec row 1), and nothing else.

A state is a value. Every field comes from the log, so that two processes which read the same lines hold the same state.
*In flight* is an attempt that runs now; *open* one that may have acted and has no result. A reader can't tell them
apart and shows both as open; only what is open climbs the ladder.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from replay._events import QuestionAnswered
from replay._history import History
from replay._messages import Bound, Message, Purpose, Result, Stop, ToolCall
from replay._values import Definitions, Effect, Fenced, FileHash, Kind, Limits, Phase, Verdict


class Spent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run has used in all its lives. `lost_*` are the bounds of asks whose reply never came (spec row 3)."""

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    lost_input_tokens: int = 0
    lost_output_tokens: int = 0
    lost_dollars: float = 0.0
    lost_asks: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Input and output, lost bounds included: what the token limit is held against."""
        return self.input_tokens + self.output_tokens + self.lost_input_tokens + self.lost_output_tokens

    @property
    def total_dollars(self) -> float:
        """Replies and bounds of lost asks: what the dollar limit is held against."""
        return self.dollars + self.lost_dollars


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One try of a call.

    `ended` is when it became open or was known to have done nothing; `died`: by its process's death. `expired` is set
    when the clock was found set back after this attempt was marked (design, "Time is an input"). `asks`: it ended
    because a person must answer what `error` asks. `run` is whose id made the key: a fork's parent for what it left
    open.
    """

    n: int
    key: str
    effect: Effect
    remembers: float | None
    intent: str | None
    marked: datetime
    did: Literal["in flight", "nothing", "unknown"] = "in flight"
    died: bool = False
    ended: datetime | None = None
    retry_after: float | None = None
    error: str = ""
    asks: bool = False
    expired: bool = False
    run: str = ""


class Lookups(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What asking the service came to since the last attempt. `raised` counts errors in a row; `why` it can't say."""

    asked: int = 0
    in_flight: bool = False
    believes: bool = False
    said: Literal["missing", "unsure"] | None = None
    raised: int = 0
    why: str = ""
    at: datetime | None = None


class CallState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call of the current reply and all that happened to it.

    `cleared` says who vouched that every attempt so far did nothing: the service (a believed `Missing`) or a person
    (`rerun`).
    """

    call: ToolCall
    attempts: tuple[Attempt, ...] = ()
    lookups: Lookups = Lookups()
    cleared: Literal["missing", "person"] | None = None
    settles: int = 0
    result: Result | None = None

    @property
    def in_flight(self) -> bool:
        """Whether an attempt runs now."""
        return self.result is None and "in flight" in [a.did for a in self.attempts]

    @property
    def open(self) -> bool:
        """Whether an attempt may have acted and nothing has settled it."""
        return self.result is None and any(a.did != "nothing" for a in self.attempts)

    @property
    def ended(self) -> int:
        """How many attempts ended in their own life: these are bounded by the tool's `attempts` (spec row 23)."""
        return sum(1 for a in self.attempts if a.ended is not None and not a.died)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked, and the answer once there is one. `fenced`: the place in the fence of what it repeats."""

    id: str
    kind: Kind
    call: str
    tool: str
    arguments: str
    digest: str
    why: str
    at: datetime
    answer: QuestionAnswered | None = None
    fenced: int | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A model call that was sent and has no reply yet."""

    purpose: Purpose
    n: int
    upto: int
    bound: Bound


class Failures(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Failed asks in a row (spec: at most 5 retries), and when the last one failed."""

    count: int = 0
    transient: bool = True
    error: str = ""
    at: datetime | None = None
    retry_after: float | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The context policy's summary: it stands for the messages before `upto`."""

    text: str
    upto: int


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An intent that is in the world: the call that did it and what it returned."""

    call: str
    text: str


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is due before `until`."""

    until: datetime
    why: str
    call: str | None


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """Why the run goes no further; `final`: it never will."""

    reason: str
    final: bool
    detail: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its log tells it. `files` maps a path to every content that is explained, the newest last."""

    run: str = ""
    agent: str = ""
    task: str = ""
    workspace: str | None = None
    after: str | None = None
    parent: str | None = None
    approve: Literal["ask", "off"] = "ask"
    limits: Limits = Limits()
    definitions: Definitions | None = None
    phase: Phase = "new"
    stopped: Stopped | None = None
    turns: int = 0
    resumes: int = 0
    answered: bool = False
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
    fence: tuple[Fenced, ...] = ()
    files: dict[str, tuple[str | None, ...]] = {}
    wait: Wait | None = None
    answer: str | None = None
    unknown: tuple[str, ...] = ()
    seq: int = -1
    life: int = 0
    at: datetime | None = None

    @property
    def open(self) -> tuple[str, ...]:
        """Ids of the calls that may have happened and are not settled."""
        return tuple(c.call.id for c in self.calls if c.open)

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions a person has not answered yet."""
        return tuple(q for q in self.questions.values() if q.answer is None)

    @property
    def busy(self) -> bool:
        """Whether anything is in flight."""
        return self.ask is not None or any(c.in_flight or c.lookups.in_flight for c in self.calls)

    def find(self, call: str) -> CallState | None:
        """The call with this id in the current reply, or None."""
        for found in self.calls:
            if found.call.id == call:
                return found
        return None

    def passed(self, call: str, answer: Verdict) -> Fenced | None:
        """The effect in the fence that a person was asked about for this call and answered so, or None."""
        for question in self.questions.values() if self.fence else ():
            if question.call != call or question.fenced is None or question.answer is None:
                continue
            if question.answer.answer == answer:
                return self.fence[question.fenced]
        return None

    def hashes(self) -> tuple[FileHash, ...]:
        """The newest content of every file the run wrote."""
        return tuple(FileHash(path=p, sha256=h[-1]) for p, h in self.files.items())


NEW = State()
"""The state before the first event."""
