"""A child run, as its parent's log says."""

from datetime import datetime

import msgspec

from replay._call_events import QuestionAsked
from replay._child_values import Spent
from replay.values import Limits, Phase, StopReason


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
