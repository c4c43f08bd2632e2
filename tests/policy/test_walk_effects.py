"""Exactly once, on every walk: what a service really did is held against what the log says it did.

The service acts whenever a request reaches it, late ones included, unless it remembers their key. Persons answer the
truth, lookups never lie; everything else goes wrong.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings
from msgspec.structs import replace

import replay
import runner
from replay import CallState, Event, State
from replay.events import (
    AttemptMarked,
    LookupAsked,
    QuestionAnswered,
    QuestionAsked,
    ResultRecorded,
    RunResumed,
    WaitUntil,
)
from runner._agent import json_text
from tests.support import tools
from tests.support.random_walk import RandomWalk
from tests.support.story import Decision
from tests.support.walks import calls, moments, results, walks

MANY = settings(max_examples=40)
MATTERS = {"pay", "push", "patch", "send"}
"""Tools whose effect must not happen twice."""
HAPPENED = {"ran", "found", "stated"}


@settings(max_examples=150)
@given(walks(deploys=True))
def test_no_effect_happens_twice_and_none_is_lost(walk: RandomWalk) -> None:
    """The promise of the whole product: what the result says is what is in the walk, once."""
    have = results(walk)
    for call, said in calls(walk).items():
        acted = walk.service.acted.get(call, 0)
        result = have.get(call)
        if said.tool in MATTERS:
            assert acted <= 1, f"{said.tool} {call} happened {acted} times"
        if result is not None and said.tool != "look":
            assert (acted > 0) == (result.how in HAPPENED), (
                f"{said.tool} {call} is {result.how}, and happened {acted} times"
            )


@MANY
@given(walks(deploys=True))
def test_an_intent_happens_once_whatever_ids_its_calls_have(walk: RandomWalk) -> None:
    """A model that repeats itself must not pay twice."""
    causes = Counter(c.arguments for i, c in calls(walk).items() if c.tool == "pay" and walk.service.acted.get(i))
    assert set(causes.values()) <= {1}


@MANY
@given(walks(deploys=True))
def test_a_call_that_repeats_an_intent_is_refused_with_the_result_of_the_first(walk: RandomWalk) -> None:
    """The model learns what happened, and which call did it."""
    have = results(walk)
    for moment in moments(walk):
        if isinstance(moment.event, ResultRecorded) and moment.event.first is not None:
            assert moment.event.how == "refused"
            assert have[moment.event.first].how in HAPPENED
            assert have[moment.event.first].text in moment.event.text


def _marks(walk: RandomWalk) -> list[tuple[replay.CallState, AttemptMarked, State, object]]:
    return [
        (call, m.event, m.before, m.at)
        for m in moments(walk)
        if isinstance(m.event, AttemptMarked) and (call := m.before.find(m.event.call)) is not None
    ]


def _known(call: CallState, at: object) -> bool:
    """Whether the service surely knows this call's key, whatever its clock did meanwhile."""
    assert isinstance(at, type(call.attempts[0].marked))
    first = call.attempts[0]
    return (
        first.key_ttl is not None
        and not any(a.expired for a in call.attempts)
        and at <= first.marked + timedelta(seconds=first.key_ttl)
    )


@MANY
@given(walks(deploys=True))
def test_an_open_call_is_marked_again_only_when_a_repeat_is_harmless(walk: RandomWalk) -> None:
    """Reads, idempotent, or with a key the service still remembers; never blindly."""
    for call, marked, _, at in _marks(walk):
        if call.in_doubt:
            assert marked.effect == call.attempts[-1].effect, (
                "the current code declares another effect: a person decides"
            )
            assert marked.effect in {"reads", "idempotent"} or _known(call, at)
            assert marked.effect != "non_idempotent"


@MANY
@given(walks())
def test_attempts_are_bounded_by_the_tool_by_deaths_and_by_what_persons_ordered(walk: RandomWalk) -> None:
    """Three attempts of their own life; a death or a person's `rerun` allows one more."""
    marks: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    for moment in moments(walk):
        if isinstance(moment.event, AttemptMarked):
            marks[moment.event.call] += 1
        elif isinstance(moment.event, RunResumed):
            extra.update(c.call.id for c in moment.before.calls if c.in_flight)
        elif isinstance(moment.event, QuestionAnswered) and moment.event.answer == "rerun":
            extra[moment.before.questions[moment.event.id].call] += 1
    for call, n in marks.items():
        assert n <= 3 + extra[call]


@MANY
@given(walks(deploys=True))
def test_one_key_serves_every_attempt_of_a_call_and_no_other_call(walk: RandomWalk) -> None:
    """A second key would be a second effect; a shared one would swallow an effect."""
    keys: dict[str, set[str]] = {}
    for _, marked, _, _ in _marks(walk):
        keys.setdefault(marked.call, set()).add(marked.key)
    assert all(len(of_a_call) == 1 for of_a_call in keys.values())
    assert len({key for of_a_call in keys.values() for key in of_a_call}) == len(keys)


@MANY
@given(walks(deploys=True))
def test_a_missing_is_believed_only_when_asked_after_everything_has_landed(walk: RandomWalk) -> None:
    """An effect still under way is missing now and there a second later."""
    lands = {tool.name: tool.visible_within for tool in (tools.PAY, tools.PATCH)}
    for moment in moments(walk):
        if isinstance(moment.event, LookupAsked):
            call = moment.before.find(moment.event.call)
            assert call is not None
            last = max(a.ended for a in call.attempts if a.ended is not None)
            landed = moment.at >= last + timedelta(seconds=lands[call.call.tool])
            assert moment.event.believes == landed


@MANY
@given(walks())
def test_all_approvals_of_a_reply_are_asked_in_one_line_before_its_first_call_runs(walk: RandomWalk) -> None:
    """A person is disturbed once per reply, and nothing of it has happened when they are asked."""
    asked: dict[int, set[int]] = {}
    for moment in moments(walk):
        event = moment.event
        if isinstance(event, QuestionAsked) and event.kind == "approve":
            asked.setdefault(moment.after.turns, set()).add(moment.line)
            assert not any(c.attempts or c.result for c in moment.before.calls)
            call = moment.before.find(event.call)
            assert call is not None
            json_text.parse(call.call.arguments)
    assert all(len(lines) == 1 for lines in asked.values())


@MANY
@given(walks())
def test_what_needs_a_yes_is_marked_only_after_one_and_never_after_a_no(walk: RandomWalk) -> None:
    """The answer covers every attempt of that call and no other."""
    for call, marked, state, _ in _marks(walk):
        cause = json_text.parse(call.call.arguments)["cause"]
        needs = call.call.tool == "send" or (call.call.tool == "pay" and cause != "a")
        question = state.questions.get(f"{marked.call}-approve")
        assert (question is not None) == needs
        assert question is None or (question.answer is not None and question.answer.answer == "approve")


@MANY
@given(walks())
def test_calls_of_a_reply_run_in_order_and_only_reads_and_parallel_ones_side_by_side(walk: RandomWalk) -> None:
    """What a later call may rely on has happened; only what says so may run beside others, and no more than is said."""
    agent = walk.story.agent
    beside = {tool.name for tool in agent.tools if tool.effect == "reads" or tool.parallel}
    for call, _, state, _ in _marks(walk):
        position = [c.call.id for c in state.calls].index(call.call.id)
        for before in state.calls[:position]:
            assert before.result is not None or {before.call.tool, call.call.tool} <= beside
        assert sum(c.in_flight for c in state.calls) < agent.parallel


@MANY
@given(walks(deploys=True))
def test_of_one_intent_one_call_at_most_is_not_settled(walk: RandomWalk) -> None:
    """Two payments of one invoice, side by side, would both be made before either is known."""
    for call, marked, state, _ in _marks(walk):
        others = [c for c in state.calls if c.result is None and c.call.id != call.call.id]
        assert marked.intent is None or marked.intent not in {a.intent for c in others for a in c.attempts}


@MANY
@given(walks(deploys=True))
def test_no_call_waits_for_what_another_waits_for(walk: RandomWalk) -> None:
    """The run sleeps until the earliest wait, and asks a person only when no call can go on by itself."""
    for asked in walk.story.decisions:
        kinds = {type(event) for event in asked.intents if asked.state.phase == "tools"}
        if WaitUntil in kinds or (QuestionAsked in kinds and any(c.attempts for c in asked.state.calls)):
            waits = [e.until for c in asked.state.calls for e in _alone(asked, c) if isinstance(e, WaitUntil)]
            assert [e.until for e in asked.intents if isinstance(e, WaitUntil)] == ([min(waits)] if waits else [])


def _alone(asked: Decision, call: CallState) -> list[Event]:
    """What would come next for this call if it were the only one that was tried."""
    if call.result is not None or not call.attempts:
        return []
    return runner.decide(asked.agent, replace(asked.state, calls=(call,), wait=None), asked.now)
