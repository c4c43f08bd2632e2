"""Parts of a state: attempts, lookups and child runs of calls; the request without a reply, and its failures."""

from datetime import datetime
from typing import Literal

import msgspec

from replay._call_events import QuestionAsked
from replay.messages import CostBound, Purpose
from replay.values import Effect, Limits, Phase, Spent, StopReason


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One try of a call.

    `ended` is when it was known to have done nothing, or came to be in doubt; `died`: because its process died.
    `expired`: the clock was set back after this attempt was marked. `lease_lost`: a process that was not the holder any
    more could still act for it when it was found in doubt. `asks`: a person must answer what `error` asks.
    `run` is the id that its key was made of: the parent's, in a fork, for what was in doubt there. `key_ttl` and
    `retry_after` are in seconds.
    """

    n: int
    key: str
    effect: Effect
    key_ttl: float | None
    intent: str | None
    marked: datetime
    did: Literal["in flight", "nothing", "unknown"] = "in flight"
    died: bool = False
    ended: datetime | None = None
    retry_after: float | None = None
    error: str = ""
    asks: bool = False
    error_type: str = ""
    traceback: str = ""
    expired: bool = False
    lease_lost: bool = False
    raw: str = ""
    withdrawn: bool = False
    run: str = ""
    uid: str = ""


class Lookups(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the service said since the last attempt. `raised` counts errors in a row; `why`: why it could not say."""

    asked: int = 0
    in_flight: bool = False
    believes: bool = False
    said: Literal["missing", "unsure"] | None = None
    raised: int = 0
    why: str = ""
    retry_after: float | None = None
    at: datetime | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request to the model that has no reply yet."""

    purpose: Purpose
    n: int
    upto: int
    bound: CostBound
    at: datetime | None = None


class Failures(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Failed requests in a row, when the first was sent, and when the last failed. `retry_after` is in seconds."""

    count: int = 0
    transient: bool = True
    error: str = ""
    since: datetime | None = None
    at: datetime | None = None
    retry_after: float | None = None
    refused_conversation: bool = False


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """The run that does a call. While it is not `running` the fields say how it rests, since `at`.

    `limits` are those that it was carried on under last; `spent` and `turns_used` are its totals.
    """

    run: str
    uid: str
    agent: str
    limits: Limits
    running: bool = True
    phase: Phase = "new"
    spent: Spent = Spent()
    turns_used: int = 0
    questions: tuple[QuestionAsked, ...] = ()
    until: datetime | None = None
    stop: StopReason | None = None
    at: datetime | None = None

    @property
    def resting(self) -> bool:
        """Whether it waits for a person or for a time."""
        return not self.running and (bool(self.questions) or self.until is not None)

    @property
    def due(self) -> datetime | None:
        """When something happens to it by itself while it rests, its own deadline included; None: never."""
        times = [*(asked.expires for asked in self.questions), self.until, self.limits.until]
        return min((at for at in times if at is not None), default=None) if self.resting else None
