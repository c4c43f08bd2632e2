"""What a run did, for showing it: lives, turns, calls, attempts, questions and waits, each with its lines.

Times are those of the log (UTC). `seq` is the number of the line that holds the event. A field is None when the log
does not say.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

import msgspec

from replay.messages import CostBound, How, Purpose, Usage
from replay.state import Spent
from replay.values import Effect, FileHash, Kind, Limits, Phase, StopReason, Verdict


class Span(msgspec.Struct, kw_only=True):
    """What one line begins (`seq`, `at`) and a later one ends (`ended_seq`, `ended`), if any does."""

    seq: int
    at: datetime
    ended: datetime | None = None
    ended_seq: int | None = None


class LifeStory(msgspec.Struct):
    """One opening of the run for writing. `kind`: `start`, `resume`, `fork`, or `answer` (a person said one thing).

    `drift` says which definitions differ from those of the life before, and how. `gap` is the time between its first
    line and the last line of the life before, in seconds. `end` says how it ended: `unsaid` if no line says so, because
    its process died or still runs.
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
    stopped: StopReason | None = None


class AskStory(Span):
    """One request to the model and its outcome: `replied`, `failed`, `lost` (its process died), or still `asked`."""

    purpose: Purpose
    turn: int
    n: int
    bound: CostBound
    came: Literal["asked", "replied", "failed", "lost"] = "asked"
    text: str = ""
    usage: Usage | None = None
    dollars: float | None = None
    model: str = ""
    lossy: bool = False
    error: str = ""
    billed: bool = False
    calls: list[str] = msgspec.field(default_factory=list)


class AttemptStory(Span):
    """One try of a call.

    `did`: `ran`, `nothing`, `unknown` (it ended without saying), `in doubt` (its process died during it). `rung` says
    why it was made: `first`, or why running again was allowed. `key_ttl`: seconds for which the service keeps the key.
    """

    n: int
    life: int
    key: str
    effect: Effect
    rung: Literal["first", "harmless", "missing", "person", "nothing"]
    key_ttl: float | None = None
    did: Literal["in flight", "ran", "nothing", "unknown", "in doubt"] = "in flight"
    error: str = ""
    error_type: str = ""
    traceback: str = ""


class LookupStory(Span):
    """One question to the service. `said` is None as long as there is no answer."""

    n: int
    believes: bool
    said: Literal["found", "missing", "unsure"] | None = None
    error: str = ""


class QuestionStory(Span):
    """One question to a person, with who answered what and when."""

    id: str
    kind: Kind
    why: str
    arguments: str
    guarded: int | None = None
    answer: Verdict | None = None
    who: str = ""
    text: str = ""


class WaitStory(msgspec.Struct):
    """A wait, and until when."""

    seq: int
    at: datetime
    until: datetime
    why: str
    call: str | None


class CallStory(Span):
    """One call of a reply, or of a program (`turn` is then 0), and all that happened to it.

    `in_doubt`: it may have happened, and is not settled.

    `child` is the run that does it, if it is a child run, and `child_spent` what that has used.
    """

    id: str
    turn: int
    tool: str
    arguments: str
    attempts: list[AttemptStory] = msgspec.field(default_factory=list)
    lookups: list[LookupStory] = msgspec.field(default_factory=list)
    questions: list[QuestionStory] = msgspec.field(default_factory=list)
    files: list[FileHash] = msgspec.field(default_factory=list)
    in_doubt: bool = False
    how: How | None = None
    text: str = ""
    lossy: bool = False
    first: str | None = None
    child: str | None = None
    child_spent: Spent | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What deserves a second look.

    Attributes:
        kind: One of those that the guide to `runner` lists.
        seqs: The lines that show it.
        says: A sentence.
        call: The id of the call that it is about, if it is about one.
    """

    kind: str
    seqs: tuple[int, ...]
    says: str
    call: str | None = None


class Audit(msgspec.Struct):
    """What a run did, and what deserves a second look. `seq` is the last line of the story."""

    run: str
    task: str
    agent: str
    workspace: str | None
    parent: str | None
    phase: Phase
    stopped: StopReason | None
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

    def in_order(self) -> Iterator[tuple[AskStory | CallStory, list[WaitStory]]]:
        """Every ask, each followed by the calls of its reply; both with the waits that belong to them.

        Calls that a program made by itself stand where it made them.
        """
        calls = {call.id: call for call in self.calls}
        waits: defaultdict[str | int, list[WaitStory]] = defaultdict(list)
        for wait in self.waits:
            waits[wait.call or bisect_right(self.asks, wait.seq, key=lambda ask: ask.seq) - 1].append(wait)
        made = [call for call in self.calls if call.turn == 0]
        for index, ask in enumerate(self.asks):
            while made and made[0].seq < ask.seq:
                yield made[0], waits[made.pop(0).id]
            yield ask, waits[index]
            yield from ((calls[call], waits[call]) for call in ask.calls)
        yield from ((call, waits[call.id]) for call in made)
