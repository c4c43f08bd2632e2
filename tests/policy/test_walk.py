"""What holds on every walk: `decide` is pure, every walk ends, a call has one result, money and turns are counted.

The walk writes what `decide` returns through the fold, so an intent that the table does not allow fails each of these.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings

import replay
import runner
from replay import State
from replay._event import EVENTS
from replay.events import (
    ModelAsked,
    ModelFailed,
    QuestionAnswered,
    ReplySaved,
    ResultRecorded,
    RunResumed,
    RunStopped,
)
from replay.messages import AssistantMessage, ToolResults
from replay.values import Limits
from runner._policy import resume_check
from tests.support import tools
from tests.support.random_walk import RandomWalk
from tests.support.walks import frozen, moments, walks

MANY = settings(max_examples=40)
TIGHT = Limits(turns=5, tokens=2500, dollars=1.5, resumes=20)


@MANY
@given(walks(deploys=True))
def test_decide_says_the_same_of_the_same_state_and_time_and_leaves_the_state_alone(walk: RandomWalk) -> None:
    """A retrace asks the current code about old states: another answer, or a moved state, would mislead it."""
    for asked in walk.story.decisions:
        before = frozen(asked.state)
        assert runner.decide(asked.agent, asked.state, asked.now) == asked.intents
        assert frozen(asked.state) == before


@MANY
@given(walks(deploys=True))
def test_what_decide_returns_needs_the_outside_at_its_end_or_leaves_nothing_due(walk: RandomWalk) -> None:
    """An intent after one that needs an answer from outside would be decided without it."""
    for asked in walk.story.decisions:
        after = replay.fold(asked.state, asked.now, asked.intents)
        assert runner.decide(asked.agent, after, asked.now) == []


@MANY
@given(walks(deploys=True))
def test_a_walk_through_a_world_that_turns_kind_ends(walk: RandomWalk) -> None:
    """A state that no event leaves, or lines without end, would be a run that nobody can finish."""
    state = walk.story.state
    assert walk.how == ("done" if state.phase == "done" else "paused" if state.waiting else "stopped")
    assert state.waiting or state.stopped is not None or state.answer is not None
    assert walk.how != "done" or not (state.in_doubt or state.busy or state.waiting)


@MANY
@given(walks(deploys=True))
def test_the_model_is_asked_only_when_every_call_has_exactly_one_result_in_order(
    walk: RandomWalk,
) -> None:
    """Providers refuse a conversation in which a call has no result or two."""
    recorded = Counter(m.event.call for m in moments(walk) if isinstance(m.event, ResultRecorded))
    assert set(recorded.values()) <= {1}
    for moment in moments(walk):
        if isinstance(moment.event, ModelAsked):
            said = list(moment.before.messages)
            for message, following in zip(said, [*said[1:], None], strict=True):
                if isinstance(message, AssistantMessage) and message.reply.calls:
                    assert isinstance(following, ToolResults)
                    assert [r.call for r in following.results] == [c.id for c in message.reply.calls]


def _owed(walk: RandomWalk) -> tuple[int, float, int]:
    """Tokens, dollars and turns, summed from the events alone."""
    tokens, dollars, turns = 0, 0.0, 0
    ask: ModelAsked | None = None
    for moment in moments(walk):
        event = moment.event
        if isinstance(event, ModelAsked):
            ask = event
        elif isinstance(event, ReplySaved):
            tokens += event.reply.usage.input_tokens + event.reply.usage.output_tokens
            assert ask is not None
            price = ask.bound.dollars if event.reply.dollars is None else event.reply.dollars
            dollars += price or 0.0
            turns += 1
            ask = None
        elif (isinstance(event, ModelFailed) and event.billed) or (isinstance(event, RunResumed) and ask is not None):
            assert ask is not None
            tokens += ask.bound.input_tokens + ask.bound.output_tokens
            dollars += ask.bound.dollars or 0.0
            ask = None
        elif isinstance(event, ModelFailed):
            ask = None
    return tokens, dollars, turns


@MANY
@given(walks())
def test_spend_is_what_replies_cost_and_the_bounds_of_lost_asks(walk: RandomWalk) -> None:
    """A bound counted twice, or a lost ask that costs nothing, makes the dollar limit a guess."""
    state = walk.story.state
    tokens, dollars, turns = _owed(walk)
    assert (state.spent.tokens, state.turns) == (tokens, turns)
    assert state.spent.total_dollars == pytest.approx(dollars)


def _below(state: State) -> bool:
    return (
        state.turns < (TIGHT.turns or 0)
        and state.spent.tokens < (TIGHT.tokens or 0)
        and state.spent.total_dollars < (TIGHT.dollars or 0)
    )


@MANY
@given(walks(limits=TIGHT))
def test_nothing_is_asked_at_or_above_a_limit_in_any_life(walk: RandomWalk) -> None:
    """The overshoot is one ask at most, however often the run dies."""
    for moment in moments(walk):
        if isinstance(moment.event, ModelAsked):
            assert _below(moment.before)
        if isinstance(moment.event, RunStopped) and moment.event.reason.endswith("Limit"):
            assert not _below(moment.before)


@MANY
@given(walks(limits=TIGHT))
def test_a_resume_under_an_unchanged_limit_is_refused_with_the_stop_that_stands_and_writes_nothing(
    walk: RandomWalk,
) -> None:
    """Looking at a stopped run a hundred times must not wear it out."""
    stopped = walk.story.state.stopped
    if stopped is None or stopped.reason not in {"TurnLimit", "TokenLimit", "DollarLimit", "TooManyResumes"}:
        return
    lines = len(walk.story.lines)
    with pytest.raises(runner.Stopped) as refused:
        walk.story.die()
    assert type(refused.value).__name__ == stopped.reason
    assert len(walk.story.lines) == lines


@MANY
@given(walks(limits=Limits(resumes=3)))
def test_resumes_are_counted_after_lives_that_came_to_nothing_and_never_exceed_their_limit(walk: RandomWalk) -> None:
    """A run that dies in every life stops; one that makes progress, or waits for a person, does not wear out."""
    counted, progress = 0, False
    for moment in moments(walk):
        drained = isinstance(moment.event, RunStopped) and moment.event.reason == "Interrupted"
        if drained or isinstance(moment.event, QuestionAnswered | ReplySaved | ResultRecorded):
            progress = True
        elif isinstance(moment.event, RunResumed):
            assert moment.event.counted == (not progress)
            counted += moment.event.counted
            progress = False
    assert walk.story.state.resumes == counted <= 3


def test_the_walks_reach_every_event_and_every_end() -> None:
    """A property of walks that never meet a lookup says nothing about lookups."""
    met: Counter[str] = Counter()
    for seed in range(120):
        walk = RandomWalk(random.Random(seed).choice, limits=TIGHT if seed % 5 == 0 else None, deploys=seed % 2 == 1)  # noqa: S311 (a walk, no secret)
        met[walk.walk().how] += 1
        for moment in moments(walk):
            event = moment.event
            detail = getattr(event, "how", "") or getattr(event, "why", "") or getattr(event, "said", "")
            met[replay.tag(event)] += 1
            met[f"{replay.tag(event)} {detail}"] += 1
    rare = {
        "run_forked",
        "workspace_accepted",
        "workspace_moved",
        "file_intended",
        "file_written",
        "request_refused",
        "rule_added",
        "message_received",
        "child_started",
        "child_rested",
        "calls_made",
        "step_recorded",
    }  # these have tests of their own
    assert set(EVENTS) - set(met) == rare
    for must in ("done", "stopped", "paused", "wait_until backoff", "wait_until visible", "wait_until lookup",
                 "wait_until model", "lookup_answered missing", "lookup_answered unsure", "result_recorded found",
                 "result_recorded stated", "result_recorded refused", "result_recorded failed"):  # fmt: skip
        assert met[must] >= 5, must


def test_a_refused_resume_names_a_limit_only_while_it_stands() -> None:
    """Raising the limit that stopped a run is all it takes to go on."""
    walk = RandomWalk(random.Random(1).choice, limits=Limits(turns=1))  # noqa: S311 (a walk, no secret)
    story = walk.story
    story.reply(("nope", "{}"))
    assert story.state.stopped is not None
    assert story.state.stopped.reason == "TurnLimit"
    with pytest.raises(runner.errors.TurnLimit):
        resume_check.resumed(story.agent, story.state, host="h", pid=1, clock_back=False)
    opening = story.die(agent=tools.agent(limits=Limits(turns=2)))
    assert [replay.tag(e) for e in opening] == ["run_resumed", "limits_changed"]
    assert [replay.tag(e) for e in story.go()] == ["model_asked"]
