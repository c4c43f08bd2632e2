"""The events: every fact that a run's log can state. The keywords of a class are those of `replay._event`.

Times are UTC, sizes are bytes, durations are seconds, money is US dollars.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from replay import _call_events, _event
from replay._event import Event
from replay.messages import CostBound, Message, Purpose, Reply, ToolCall
from replay.values import (
    Definitions,
    Digests,
    FileHash,
    Happened,
    Limits,
    Local,
    ParentCall,
    ParentEffect,
    Queued,
    Text,
)

AttemptEnded = _call_events.AttemptEnded
AttemptMarked = _call_events.AttemptMarked
ChildRested = _call_events.ChildRested
ChildStarted = _call_events.ChildStarted
FileIntended = _call_events.FileIntended
FileWritten = _call_events.FileWritten
LookupAnswered = _call_events.LookupAnswered
LookupAsked = _call_events.LookupAsked
QuestionAnswered = _call_events.QuestionAnswered
QuestionAsked = _call_events.QuestionAsked
ResultRecorded = _call_events.ResultRecorded

ALIVE: Final = "model tools paused"
GIVEN_STOPS: Final = frozenset(
    {"Forked", "Interrupted", "Parked", "ParentClosed", "StoppedByPerson", "TooManyResumes", "WorkspaceChanged"}
)
"""The stops that `decide` does not choose: a person, a signal, the workspace or a refused resume does."""

Host = Annotated[str, Local]
Process = Annotated[int, Local]


class RunStarted(Event, legal="new", title="the agent"):
    """The run exists. `after` names the finished run whose `history`, `happened` and `fork_guard` it takes over.

    `inputs` are JSON: facts of this run for its tools, which no message holds.
    `enqueued`: whoever made it left it to a worker, so the first resume is its turn. `parent_call`: it is a child run.
    `framework`: whose loop it is, if not the runner's: a program decides what is due. `trace`: the W3C trace context of
    whoever began it; no decision and no digest has it.
    """

    run: str
    agent: str
    task: Text
    workspace: Annotated[str | None, Local]
    limits: Limits
    definitions: Definitions
    approve: Literal["ask", "off"]
    host: Host
    pid: Process
    after: str | None = None
    history: tuple[Message, ...] = ()
    uid: str = ""
    happened: dict[str, Happened] = msgspec.field(default_factory=dict)
    fork_guard: tuple[ParentEffect, ...] = ()
    labels: dict[str, Text] = msgspec.field(default_factory=dict)
    inputs: Text | None = None
    enqueued: bool = False
    parent_call: ParentCall | None = None
    framework: str = ""
    trace: str = ""


class RunForked(Event, legal="model tools paused done", stopped=True):
    """From here on the log is another run, forked from line `seq` of `parent`.

    What was in flight there is in doubt here. `fork_guard` are the effects of the parent after that line, `messages`
    the beginnings of what was written to it then, which is not taken over. Without a `uid` of its own it is the same
    run in another place.
    """

    run: str
    parent: str
    seq: int
    host: Host
    pid: Process
    fork_guard: tuple[ParentEffect, ...] = ()
    uid: str = ""
    messages: tuple[Queued, ...] = ()


class RunResumed(Event, legal=ALIVE, stopped=True, title="the agent"):
    """Another process carries on. What was in flight is in doubt, and an ask without a reply is lost.

    `counted`: this resume counts toward the limit, since the life before came to nothing. `clock_back`: the wall clock
    was behind the log. `lease_lost`: what held the run before may still be alive and act, as a forked child does.
    """

    host: Host
    pid: Process
    counted: bool
    clock_back: bool
    definitions: Definitions
    lease_lost: bool = False


class LimitsChanged(Event, legal=ALIVE, stopped=True):
    """From here on these limits hold."""

    limits: Limits


class WorkspaceAccepted(Event, legal=ALIVE):
    """A person accepts files that were changed from outside."""

    by: Text
    files: tuple[FileHash, ...]


class WorkspaceMoved(Event, legal=ALIVE):
    """The workspace is in another place, where its files are as the run left them."""

    path: Annotated[str, Local]
    by: Text = ""


class ModelAsked(Event, legal="model", decision=True, title="the request to the model"):
    """A request is about to be sent to the model. `n` counts requests in a row without a reply.

    A summary covers the messages before `upto`. Replies before message `rebuilt_upto` are sent rebuilt from texts and
    calls, because the model refused them as they came. `messages` are those of the queue that it takes.
    """

    purpose: Purpose
    n: int
    upto: int
    bound: CostBound
    digests: Digests
    rebuilt_upto: int = 0
    messages: tuple[str, ...] = ()


class ReplySaved(Event, legal="model"):
    """The model replied, and none of the reply's calls has run yet."""

    reply: Reply


class CallsMade(Event, legal="model", decision=True, title="the calls of a program"):
    """A program orders calls by itself: as a reply does, without a turn and without spend."""

    calls: tuple[ToolCall, ...]


class StepRecorded(Event, legal=ALIVE, title="a step of a program"):
    """What a program computed between its calls, as JSON; `n` counts the steps of this name in its `branch` from 0.

    It is handed back when the program runs again, and so is a failure: then `raw` is empty, `error` says how it failed,
    and `error_type` is the nearest of Python's own classes that a program is given. With neither it is tried again: its
    failure ended the program. `branch` is a digest of what a task that runs beside others did first, empty for the
    program's own. The state knows only that one succeeded.
    """

    name: Text
    n: int
    raw: Text
    error: Text = ""
    error_type: str = ""
    branch: str = ""


class ReplyRefused(Event, legal="model", decision=True, words="why", title="a final reply that is no answer"):
    """The last reply was to end the run, and is no answer. `why` is what the model is told before it is asked again."""

    why: Text


class ModelFailed(Event, legal="model"):
    """A request failed. `billed`: it may have cost tokens, so its bound counts as spent. `retry_after`: seconds.

    `error_type` is the class that the model or its SDK raised. `refused_conversation`: the messages were refused.
    """

    error: Text
    transient: bool
    billed: bool = False
    retry_after: float | None = None
    error_type: str = ""
    refused_conversation: bool = False


class RuleAdded(Event, legal=ALIVE, stopped=True, title="a standing rule"):
    """From here on `who` says yes to each call of this tool with these values of arguments, which are JSON."""

    tool: str
    arguments: dict[str, Text]
    who: Text
    request: str | None = None
    post: str = ""


class MessageReceived(Event, legal=ALIVE, stopped=True, title="a message"):
    """Somebody wrote to the run. The next request to the model takes it, after the results of the current calls."""

    id: str
    who: Text
    text: Text
    request: str | None = None
    post: str = ""


class RequestRefused(Event, legal=ALIVE, stopped=True, title="the refusal of a request"):
    """A request from outside does not fit, and changes nothing. Another one of this name still may."""

    request: Text
    who: Text = ""
    why: Text = ""
    post: str = ""


class WaitUntil(Event, legal="model tools", decision=True, title="the wait"):
    """The run does nothing before `until`. `rested`: nobody holds it meanwhile."""

    until: datetime
    why: Literal["backoff", "visible", "lookup", "model", "child"]
    call: str | None = None
    rested: bool = False


class PhaseChanged(Event, legal=ALIVE, decision=True, title="the phase"):
    """The run enters another phase: done from model, paused from tools, tools from paused. The fold checks it."""

    phase: Literal["tools", "paused", "done"]
    answer: Text | None = None


class RunStopped(Event, legal=ALIVE, decision=True, stopped=True, words="detail", title="the stop"):
    """The run goes no further until it is resumed; `final`: not even then.

    `who`, `request` and `post` are those of the request that it came by, if by one.
    """

    reason: str
    final: bool = False
    detail: Text = ""
    who: Text = ""
    request: str | None = None
    post: str = ""

    @property
    def is_decision(self) -> bool:
        """A stop that `decide` did not choose is an input."""
        return self.reason not in GIVEN_STOPS


UnknownEvent = _event.UnknownEvent
AnyEvent = Event | UnknownEvent
