"""A run as a story: lives, turns, calls, attempts, questions and waits, each with the lines that tell it.

These are shapes for whoever shows a run: a terminal, a page, another program. Times are the log's. `seq` is the number
of the line that holds the event. A field is None when the log does not say.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from replay._messages import Bound, How, Purpose, Usage
from replay._state import Spent, Stopped
from replay._values import Effect, FileHash, Kind, Limits, Phase, Verdict


class Story(msgspec.Struct, kw_only=True):
    """The shapes below are filled while a history is read, and then left alone."""


class LifeStory(Story):
    """One opening of the run for writing. `kind`: `start`, `resume`, `fork`, or `answer` (a person said one thing).

    `drift` names the definitions that differ from those of the life before. `gap` is how many seconds lie between its
    first line and the last one of the life before. `end` says how it ended: `unsaid` when no line does, because its
    process died, or still runs.
    """

    life: int
    kind: Literal["start", "resume", "fork", "answer"]
    seq: int
    began: datetime
    ended: datetime
    last_seq: int
    host: str | None = None
    pid: int | None = None
    counted: bool = False
    clock_back: bool = False
    gap: float | None = None
    drift: list[str] = msgspec.field(default_factory=list)
    end: Literal["done", "paused", "stopped", "unsaid"] = "unsaid"
    stopped: Stopped | None = None


class AskStory(Story):
    """One ask of the model and what came of it: `replied`, `failed`, `lost` (its process died), or still `asked`."""

    purpose: Purpose
    turn: int
    n: int
    seq: int
    at: datetime
    bound: Bound
    came: Literal["asked", "replied", "failed", "lost"] = "asked"
    ended: datetime | None = None
    ended_seq: int | None = None
    text: str = ""
    usage: Usage | None = None
    dollars: float | None = None
    model: str = ""
    error: str = ""
    billed: bool = False
    calls: list[str] = msgspec.field(default_factory=list)


class AttemptStory(Story):
    """One try of a call. `did`: `ran`, `nothing`, `unknown` (it ended without saying), `open` (its process died in it).

    `rung` says why it was made: `first`, or why running again was allowed. `remembers` is how many seconds the service
    keeps the key.
    """

    n: int
    seq: int
    at: datetime
    life: int
    key: str
    effect: Effect
    rung: Literal["first", "harmless", "missing", "person", "nothing"]
    remembers: float | None = None
    did: Literal["in flight", "ran", "nothing", "unknown", "open"] = "in flight"
    ended: datetime | None = None
    ended_seq: int | None = None
    error: str = ""


class LookupStory(Story):
    """One question to the service. `said` is None while it is unanswered."""

    n: int
    seq: int
    at: datetime
    believes: bool
    said: Literal["found", "missing", "unsure"] | None = None
    ended: datetime | None = None
    error: str = ""


class QuestionStory(Story):
    """One question to a person, with who answered what and when."""

    id: str
    kind: Kind
    seq: int
    at: datetime
    why: str
    arguments: str
    answer: Verdict | None = None
    who: str = ""
    text: str = ""
    answered: datetime | None = None
    answered_seq: int | None = None


class WaitStory(Story):
    """A wait that was logged, and until when."""

    seq: int
    at: datetime
    until: datetime
    why: str
    call: str | None


class CallStory(Story):
    """One call of a reply and all that happened to it, up to its result. `open`: it may have happened, unsettled."""

    id: str
    turn: int
    tool: str
    arguments: str
    seq: int
    at: datetime
    attempts: list[AttemptStory] = msgspec.field(default_factory=list)
    lookups: list[LookupStory] = msgspec.field(default_factory=list)
    questions: list[QuestionStory] = msgspec.field(default_factory=list)
    files: list[FileHash] = msgspec.field(default_factory=list)
    open: bool = False
    how: How | None = None
    text: str = ""
    lossy: bool = False
    first: str | None = None
    ended: datetime | None = None
    ended_seq: int | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What an auditor would underline: its kind, the lines that show it, a sentence, and the call it is about."""

    kind: str
    seqs: tuple[int, ...]
    says: str
    call: str | None = None


class Audit(Story):
    """A whole history: what the run did, and what to look at twice. `seq` is the last line told."""

    run: str
    task: str
    agent: str
    workspace: str | None
    parent: str | None
    phase: Phase
    stopped: Stopped | None
    limits: Limits
    spent: Spent
    turns: int
    resumes: int
    seq: int
    began: datetime | None
    ended: datetime | None
    answer: str | None
    lives: list[LifeStory]
    asks: list[AskStory]
    calls: list[CallStory]
    waits: list[WaitStory]
    findings: list[Finding]
