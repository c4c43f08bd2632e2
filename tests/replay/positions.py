"""Every event where it is legal: one example for each pair of tag and phase in the vocabulary's table."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import replay
from replay import Event, Reply, State, ToolCall, Usage
from tests.decide import tools
from tests.decide.story import BEGIN, Story, named

SOON = BEGIN + timedelta(minutes=1)
DIGEST = replay.digest(b'{"cause": "a"}')
ARGUMENTS = '{"cause": "a"}'
BEFORE = replay.FileHash(path="f", sha256="1" * 64)

MARKED = replay.AttemptMarked(call="1.0", n=1, key="k", effect="keyed", remembers=60.0, intent="i")
UNKNOWN = replay.AttemptEnded(call="1.0", n=1, did="unknown", retry_after=5.0, error="e")
LOOKED = replay.LookupAsked(call="1.0", n=1, believes=False)
INTENDED = replay.FileIntended(call="1.0", path="f", sha256="2" * 64, before="1" * 64)
APPROVE = replay.QuestionAsked(
    id="1.1-approve", kind="approve", call="1.1", tool="send", arguments=ARGUMENTS, digest=DIGEST, why="w"
)
SETTLE = replay.QuestionAsked(
    id="1.0-settle-1", kind="settle", call="1.0", tool="pay", arguments=ARGUMENTS, digest=DIGEST, why="w"
)
YES = replay.QuestionAnswered(id="1.1-approve", answer="approve", who="ann", digest=DIGEST, text="t")
AGAIN = replay.QuestionAnswered(id="1.0-settle-1", answer="rerun", who="ann", digest=DIGEST, text="t")
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
TOOLS = replay.PhaseChanged(phase="tools")
PAUSED = replay.PhaseChanged(phase="paused")
DEFINITIONS = replay.Definitions(instructions="i", tools={"t": "d"}, parameters="p", context="c")
STARTED = replay.RunStarted(
    run="r",
    agent="a",
    task="t",
    workspace="w",
    limits=replay.Limits(turns=9, tokens=9, dollars=9.0),
    definitions=DEFINITIONS,
    approve="off",
    host="h",
    pid=1,
    after="q",
    history=(replay.Said("before"),),
)
RESUMED = replay.RunResumed(host="h", pid=2, counted=True, clock_back=False, definitions=DEFINITIONS)
FORKED = replay.RunForked(
    run="f",
    parent="r",
    seq=3,
    host="h",
    pid=2,
    fence=(replay.Fenced(tool="pay", intent="i", arguments="{}", call="1.0", text="t"),),
)
LIMITS = replay.LimitsChanged(limits=replay.Limits(turns=3, tokens=3, dollars=3.0))
ACCEPTED = replay.WorkspaceAccepted(by="ann", files=(BEFORE,))
DIGESTS = replay.Digests(instructions="i", tools="t", messages="m", parameters="p")
ASKED = replay.ModelAsked(
    purpose="turn", n=1, upto=0, bound=replay.Bound(input_tokens=9, output_tokens=9, dollars=0.5), digests=DIGESTS
)
SUMMARY = replay.ModelAsked(purpose="summary", n=1, upto=1, bound=ASKED.bound, digests=DIGESTS)
FAILED = replay.ModelFailed(error="e", transient=True, billed=True, retry_after=5.0)
STOPPED = replay.RunStopped(reason="Interrupted", detail="d")
WAIT = replay.WaitUntil(until=SOON, why="backoff", call="1.0")


def after(*events: Event) -> State:
    """A run's state after these events."""
    story = Story(tools.agent())
    story.write(*events)
    return story.state


ASKING = (ASKED,)
CALLED = (ASKED, replay.ReplySaved(reply=REPLY))
FLYING = (*CALLED, MARKED)
OPEN = (*FLYING, UNKNOWN)
LOOKING = (*OPEN, LOOKED)
PAUSING = (*OPEN, SETTLE, PAUSED)
FINAL = (ASKED, replay.ReplySaved(reply=Reply(text="42")))
DONE = (*FINAL, replay.PhaseChanged(phase="done", answer="42"))


class Position(NamedTuple):
    """A state and an event that is legal in it."""

    state: State
    event: Event


def _anywhere(event: Event) -> list[Position]:
    return [Position(after(*events), event) for events in ((), OPEN, PAUSING)]


def _all() -> list[Position]:
    made: list[tuple[tuple[Event, ...], Event]] = [
        ((), ASKED),
        (ASKING, replay.ReplySaved(reply=REPLY)),
        (ASKING, replay.ReplySaved(reply=Reply(text="42"))),
        (ASKING, FAILED),
        (CALLED, MARKED),
        (FLYING, UNKNOWN),
        (FLYING, replay.ResultRecorded(call="1.0", how="ran", text="t", n=1)),
        (OPEN, replay.ResultRecorded(call="1.0", how="found", text="t", n=1)),
        (OPEN, LOOKED),
        (LOOKING, replay.LookupAnswered(call="1.0", said="unsure")),
        (CALLED, APPROVE),
        (OPEN, SETTLE),
        ((*CALLED, APPROVE), YES),
        (PAUSING, AGAIN),
        (FLYING, INTENDED),
        ((*FLYING, INTENDED), replay.FileWritten(call="1.0", path="f", sha256="2" * 64)),
        ((), WAIT),
        (OPEN, WAIT),
        (FINAL, replay.PhaseChanged(phase="done", answer="42")),
        ((*OPEN, SETTLE), PAUSED),
        ((*PAUSING, AGAIN), TOOLS),
        (DONE, FORKED),
        (LOOKING, replay.RunResumed(host="h", pid=2, counted=True, clock_back=True, definitions=DEFINITIONS)),
    ]
    found = [Position(replay.NEW, STARTED), *(Position(after(*events), event) for events, event in made)]
    for event in (RESUMED, FORKED, LIMITS, ACCEPTED, STOPPED):
        found += _anywhere(event)
    return found


POSITIONS = _all()
STATES: list[State] = [replay.NEW] + [
    after(*events)
    for events in ((), ASKING, FINAL, CALLED, FLYING, OPEN, LOOKING, (*OPEN, SETTLE), PAUSING, (*PAUSING, AGAIN), DONE)
]
"""States of every phase and of every kind of flight in them."""
