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
from replay import (
    Answered,
    Limits,
    ModelAsked,
    ModelFailed,
    Replied,
    ReplySaved,
    ResultRecorded,
    RunResumed,
    RunStopped,
    State,
)
from runner import _opening
from tests.decide import tools
from tests.decide.walks import frozen, moments, walks
from tests.decide.world import World

MANY = settings(max_examples=40)
TIGHT = Limits(turns=5, tokens=2500, dollars=1.5, resumes=20)


@MANY
@given(walks(deploys=True))
def test_decide_says_the_same_of_the_same_state_and_time_and_leaves_the_state_alone(world: World) -> None:
    """A retrace asks today's code about old states: an answer from anywhere else, or a state that moved, would lie."""
    for asked in world.story.decisions:
        before = frozen(asked.state)
        assert runner.decide(asked.agent, asked.state, asked.now) == asked.intents
        assert frozen(asked.state) == before


@MANY
@given(walks(deploys=True))
def test_what_decide_returns_needs_the_world_at_its_end_or_leaves_nothing_due(world: World) -> None:
    """An intent behind one that needs the world would be decided without what the world answers."""
    for asked in world.story.decisions:
        after = replay.fold(asked.state, asked.now, asked.intents)
        assert after.busy or runner.decide(asked.agent, after, asked.now) == []


@MANY
@given(walks(deploys=True))
def test_a_walk_through_a_world_that_turns_kind_ends(world: World) -> None:
    """A state that no event leaves, or lines without end, would be a run that nobody can finish."""
    state = world.story.state
    assert world.how == ("done" if state.phase == "done" else "paused" if state.waiting else "stopped")
    assert state.waiting or state.stopped is not None or state.answer is not None
    assert world.how != "done" or not (state.open or state.busy or state.waiting)


@MANY
@given(walks(deploys=True))
def test_the_model_is_asked_only_when_every_call_has_exactly_one_result_in_the_order_of_the_calls(world: World) -> None:
    """Providers refuse a conversation in which a call has no result or two (spec row 16)."""
    recorded = Counter(m.event.call for m in moments(world) if isinstance(m.event, ResultRecorded))
    assert set(recorded.values()) <= {1}
    for moment in moments(world):
        if isinstance(moment.event, ModelAsked):
            said = list(moment.before.messages)
            for message, following in zip(said, [*said[1:], None], strict=True):
                if isinstance(message, Replied) and message.reply.calls:
                    assert isinstance(following, Answered)
                    assert [r.call for r in following.results] == [c.id for c in message.reply.calls]


def _owed(world: World) -> tuple[int, float, int]:
    """Tokens, dollars and turns, summed from the events alone."""
    tokens, dollars, turns = 0, 0.0, 0
    ask: ModelAsked | None = None
    for moment in moments(world):
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
def test_spend_is_what_replies_cost_and_the_bounds_of_lost_asks(world: World) -> None:
    """A bound counted twice, or a lost ask that costs nothing, makes the dollar limit a guess (spec row 3)."""
    state = world.story.state
    tokens, dollars, turns = _owed(world)
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
def test_nothing_is_asked_at_or_above_a_limit_in_any_life(world: World) -> None:
    """The overshoot is one ask at most, however often the run dies (spec row 3)."""
    for moment in moments(world):
        if isinstance(moment.event, ModelAsked):
            assert _below(moment.before)
        if isinstance(moment.event, RunStopped) and moment.event.reason.endswith("Limit"):
            assert not _below(moment.before)


@MANY
@given(walks(limits=TIGHT))
def test_a_resume_under_an_unchanged_limit_is_refused_with_the_stop_that_stands_and_writes_nothing(
    world: World,
) -> None:
    """Looking at a stopped run a hundred times must not wear it out (spec row 4)."""
    stopped = world.story.state.stopped
    if stopped is None or stopped.reason not in {"TurnLimit", "TokenLimit", "DollarLimit", "TooManyResumes"}:
        return
    lines = len(world.story.lines)
    with pytest.raises(runner.RunStopped) as refused:
        world.story.die()
    assert type(refused.value).__name__ == stopped.reason
    assert len(world.story.lines) == lines


@MANY
@given(walks(limits=Limits(resumes=3)))
def test_resumes_are_counted_except_the_first_after_an_answer_and_never_exceed_their_limit(world: World) -> None:
    """A run that dies in every life stops; one that parks for a person does not wear out (spec row 4)."""
    counted, answered = 0, False
    for moment in moments(world):
        if isinstance(moment.event, replay.QuestionAnswered):
            answered = True
        elif isinstance(moment.event, replay.PhaseChanged):
            answered = False
        elif isinstance(moment.event, RunResumed):
            assert moment.event.counted == (not answered)
            counted += moment.event.counted
            answered = False
    assert world.story.state.resumes == counted <= 3


def test_the_walks_reach_every_event_and_every_end() -> None:
    """A property of walks that never meet a lookup says nothing about lookups."""
    met: Counter[str] = Counter()
    for seed in range(120):
        world = World(random.Random(seed).choice, limits=TIGHT if seed % 5 == 0 else None, deploys=seed % 2 == 1)  # noqa: S311 (a walk, no secret)
        met[world.walk().how] += 1
        for moment in moments(world):
            event = moment.event
            detail = getattr(event, "how", "") or getattr(event, "why", "") or getattr(event, "said", "")
            met[replay.tag(event)] += 1
            met[f"{replay.tag(event)} {detail}"] += 1
    rare = {"run_forked", "workspace_accepted", "file_intended", "file_written"}  # these have tests of their own
    assert {str(t.__struct_config__.tag) for t in replay.TRANSITIONS} - set(met) == rare
    for must in ("done", "stopped", "paused", "wait_until backoff", "wait_until lands", "wait_until lookup",
                 "wait_until model", "lookup_answered missing", "lookup_answered unsure", "result_recorded found",
                 "result_recorded told", "result_recorded refused", "result_recorded failed"):  # fmt: skip
        assert met[must] >= 5, must


def test_a_refused_resume_names_a_limit_only_while_it_stands() -> None:
    """Raising the limit that stopped a run is all it takes to go on."""
    walk = World(random.Random(1).choice, limits=Limits(turns=1))  # noqa: S311 (a walk, no secret)
    story = walk.story
    story.reply(("nope", "{}"))
    assert story.state.stopped is not None
    assert story.state.stopped.reason == "TurnLimit"
    with pytest.raises(runner.TurnLimit):
        _opening.resumed(story.agent, story.state, host="h", pid=1, clock_back=False)
    opening = story.die(agent=tools.agent(limits=Limits(turns=2)))
    assert [replay.tag(e) for e in opening] == ["run_resumed", "limits_changed"]
    assert [replay.tag(e) for e in story.go()] == ["model_asked"]
