"""Every event where it is legal: one example for each pair of tag and phase in the vocabulary's table."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from msgspec.structs import replace

import replay
from replay import Event, State
from replay.events import (
    AttemptEnded,
    AttemptMarked,
    CallsMade,
    ChildRested,
    ChildStarted,
    FileIntended,
    FileWritten,
    LimitsChanged,
    LookupAnswered,
    LookupAsked,
    MessageReceived,
    ModelAsked,
    ModelFailed,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    ReplyRefused,
    ReplySaved,
    RequestRefused,
    ResultRecorded,
    RuleAdded,
    RunForked,
    RunResumed,
    RunStarted,
    RunStopped,
    StepRecorded,
    WaitUntil,
    WorkspaceAccepted,
    WorkspaceMoved,
)
from replay.messages import CostBound, Reply, ToolCall, Usage, UserMessage
from replay.state import Spent
from replay.values import (
    Definitions,
    Digests,
    FileHash,
    Limits,
    ParentCall,
    ParentEffect,
    Queued,
    StopReason,
    ToolDefinition,
)
from tests.support import tools
from tests.support.story import BEGIN, Story, named

SOON = BEGIN + timedelta(minutes=1)
DIGEST = replay.digest(b'{"cause": "a"}')
ARGUMENTS = '{"cause": "a"}'
BEFORE = FileHash(path="f", sha256="1" * 64)

MARKED = AttemptMarked(call="1.0", n=1, key="k", effect="keyed", key_ttl=60.0, intent="i")
UNKNOWN = AttemptEnded(call="1.0", n=1, did="unknown", retry_after=5.0, error="e")
LOOKED = LookupAsked(call="1.0", n=1, believes=False)
INTENDED = FileIntended(call="1.0", path="f", sha256="2" * 64, before="1" * 64)
APPROVE = QuestionAsked(
    id="1.1-approve", kind="approve", call="1.1", tool="send", arguments=ARGUMENTS, digest=DIGEST, why="w"
)
SETTLE = QuestionAsked(
    id="1.0-settle-1", kind="settle", call="1.0", tool="pay", arguments=ARGUMENTS, digest=DIGEST, why="w"
)
YES = QuestionAnswered(
    id="1.1-approve", answer="approve", who="ann", digest=DIGEST, text="t", request="answer-1.1-approve", post="m"
)
AGAIN = QuestionAnswered(id="1.0-settle-1", answer="rerun", who="ann", digest=DIGEST, text="t")
REPLY = named(
    Reply(
        text="t",
        calls=tuple(ToolCall(tool=name, arguments=ARGUMENTS, provider_id="p") for name in ("pay", "send")),
        usage=Usage(input_tokens=1, output_tokens=1, cache_read_tokens=1, cache_write_tokens=1),
        dollars=0.5,
        model="m",
        raw="{}",
    ),
    1,
)
TOOLS = PhaseChanged(phase="tools")
PAUSED = PhaseChanged(phase="paused")
DEFINITIONS = Definitions(
    instructions="i", tools={"t": ToolDefinition(digest="d", effect="reads")}, parameters="p", context="c"
)
STARTED = RunStarted(
    run="r",
    agent="a",
    task="t",
    workspace="w",
    labels={"l": "v"},
    limits=Limits(turns=9, tokens=9, dollars=9.0),
    definitions=DEFINITIONS,
    approve="off",
    host="h",
    pid=1,
    uid="u",
    after="q",
    history=(UserMessage("before"),),
    inputs='{"tenant": "acme"}',
    parent_call=ParentCall(run="p", uid="v", call="1.0"),
)
RESUMED = RunResumed(host="h", pid=2, counted=True, clock_back=False, definitions=DEFINITIONS)
FORKED = RunForked(
    run="f",
    parent="r",
    seq=3,
    host="h",
    pid=2,
    fork_guard=(ParentEffect(tool="pay", intent="i", arguments="{}", call="1.0", text="t"),),
    messages=(Queued(id="m", who="ann", text="Hurry."),),
)
LIMITS = LimitsChanged(limits=Limits(turns=3, tokens=3, dollars=3.0))
ACCEPTED = WorkspaceAccepted(by="ann", files=(BEFORE,))
MOVED = WorkspaceMoved(path="/elsewhere", by="ann")
DIGESTS = Digests(instructions="i", tools="t", messages="m", parameters="p")
ASKED = ModelAsked(
    purpose="turn",
    n=1,
    upto=0,
    bound=CostBound(input_tokens=9, output_tokens=9, dollars=0.5),
    digests=DIGESTS,
)
SUMMARY = ModelAsked(purpose="summary", n=1, upto=1, bound=ASKED.bound, digests=DIGESTS)
FAILED = ModelFailed(error="e", transient=True, billed=True, retry_after=5.0)
REFUSED = ReplyRefused(why="it is empty")
STOPPED = RunStopped(reason="Interrupted", detail="d")
UNAVAILABLE = RunStopped(reason="ModelUnavailable", detail="d")
PARKED = RunStopped(reason="Parked", detail="by ann", who="ann", request="park-1", post="m")
RULE = RuleAdded(tool="pay", arguments={"to": '"ann"'}, who="ann", request="rule-m", post="m")
WRITTEN = MessageReceived(id="message-m", who="ann", text="Hurry.", request="message-m", post="m")
UNFIT = RequestRefused(request="park-1", who="ann", why="it is parked", post="m")
CHILD = ChildStarted(call="1.0", run="c", uid="v", agent="a", limits=Limits(turns=3), arguments=ARGUMENTS)
CHILD_AGAIN = replace(CHILD, arguments=None)
CHILD_RESTED = ChildRested(
    call="1.0",
    phase="paused",
    spent=Spent(input_tokens=3, dollars=0.5),
    turns_used=2,
    questions=(replace(APPROVE, guarded=0, expires=SOON),),
    until=SOON,
    stop=StopReason(reason="TurnLimit", final=False, detail="d"),
)
CHILD_DONE = replace(CHILD_RESTED, phase="done", questions=(), until=None, stop=None)
STEP = StepRecorded(name="now", n=0, raw="1")
PROGRAM = replay.step(replay.NEW, replace(STARTED, framework="python"), BEGIN)
MADE = CallsMade(calls=(ToolCall(tool="pay", arguments=ARGUMENTS, provider_id="p", id="a1.0"),))
WAIT = WaitUntil(until=SOON, why="backoff", call="1.0")


def after(*events: Event) -> State:
    """A run's state after these events."""
    story = Story(tools.agent())
    story.write(*events)
    return story.state


ASKING = (ASKED,)
CALLED = (ASKED, ReplySaved(reply=REPLY))
FLYING = (*CALLED, MARKED)
OPEN = (*FLYING, UNKNOWN)
LOOKING = (*OPEN, LOOKED)
PAUSING = (*OPEN, SETTLE, PAUSED)
PARENT = (*CALLED, CHILD)
RESTING = (*PARENT, CHILD_RESTED)
FINAL = (ASKED, ReplySaved(reply=Reply(text="42")))
DONE = (*FINAL, PhaseChanged(phase="done", answer="42"))


class Position(NamedTuple):
    """A state and an event that is legal in it."""

    state: State
    event: Event


def _anywhere(event: Event) -> list[Position]:
    return [Position(after(*events), event) for events in ((), OPEN, PAUSING)]


def _all() -> list[Position]:
    made: list[tuple[tuple[Event, ...], Event]] = [
        ((), ASKED),
        (ASKING, ReplySaved(reply=REPLY)),
        (ASKING, ReplySaved(reply=Reply(text="42"))),
        (ASKING, FAILED),
        ((), replace(ASKED, rebuilt_upto=1)),
        (CALLED, MARKED),
        (FLYING, UNKNOWN),
        (FLYING, ResultRecorded(call="1.0", how="ran", text="t", n=1)),
        (OPEN, ResultRecorded(call="1.0", how="found", text="t", n=1)),
        (OPEN, LOOKED),
        (LOOKING, LookupAnswered(call="1.0", said="unsure")),
        (CALLED, APPROVE),
        (OPEN, SETTLE),
        ((*CALLED, APPROVE), YES),
        (PAUSING, AGAIN),
        (FLYING, INTENDED),
        ((*FLYING, INTENDED), FileWritten(call="1.0", path="f", sha256="2" * 64)),
        (CALLED, CHILD),
        (RESTING, CHILD_AGAIN),
        (PARENT, CHILD_RESTED),
        ((*RESTING, PAUSED), replace(CHILD_RESTED, turns_used=3, questions=())),
        ((*PARENT, CHILD_DONE), ResultRecorded(call="1.0", how="ran", text="t")),
        ((), WAIT),
        (OPEN, WAIT),
        (FINAL, PhaseChanged(phase="done", answer="42")),
        (FINAL, REFUSED),
        ((*OPEN, SETTLE), PAUSED),
        ((*PAUSING, AGAIN), TOOLS),
        (DONE, FORKED),
        (LOOKING, RunResumed(host="h", pid=2, counted=True, clock_back=True, definitions=DEFINITIONS)),
        ((ASKED, FAILED, STOPPED), RESUMED),
        ((ASKED, FAILED, UNAVAILABLE), RESUMED),
    ]
    found = [Position(replay.NEW, STARTED), *(Position(after(*events), event) for events, event in made)]
    found.append(Position(replay.NEW, replace(STARTED, framework="python", trace="00-1-2-01")))
    found += [Position(PROGRAM, MADE), Position(PROGRAM, PhaseChanged(phase="done", answer="42"))]
    for event in (STEP, RESUMED, FORKED, LIMITS, ACCEPTED, MOVED, STOPPED, UNAVAILABLE, PARKED, UNFIT, RULE, WRITTEN):
        found += _anywhere(event)
    return found


POSITIONS = _all()
STATES: list[State] = [replay.NEW] + [
    after(*events)
    for events in (
        (),
        ASKING,
        FINAL,
        CALLED,
        FLYING,
        OPEN,
        LOOKING,
        (*OPEN, SETTLE),
        PAUSING,
        (*PAUSING, AGAIN),
        PARENT,
        RESTING,
        DONE,
    )
]
"""States of every phase and of every kind of flight in them."""
