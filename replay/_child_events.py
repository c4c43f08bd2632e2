"""The events about a call that is a run of its own: the parent's log says when its child is carried on, and rests."""

from datetime import datetime

from replay._call_events import QuestionAsked
from replay._child_values import Spent
from replay._event import Event
from replay.values import Limits, Phase, StopReason, Text


class ChildStarted(Event, legal="tools", decision=True, words="limits", title="the start of a child run"):
    """A child run is about to be started, or carried on, by the process that holds its parent.

    `limits` are over all that the child uses, before and from here on. The first one of a call has the `arguments`.
    """

    call: str
    run: str
    uid: str
    agent: str
    limits: Limits
    arguments: Text | None = None


class ChildRested(Event, legal="tools paused", stopped=True, title="the rest of a child run"):
    """Nobody carries the child on now: this is what its log says. After `done` the call's result follows.

    `spent` and `turns_used` are totals, its own children's included. `questions` are open there; it waits `until` a
    time; `stop` says why it stopped.
    """

    call: str
    phase: Phase
    spent: Spent
    turns_used: int
    questions: tuple[QuestionAsked, ...] = ()
    until: datetime | None = None
    stop: StopReason | None = None
