"""Exactly once, on every walk: what a service really did is held against what the log says it did.

The service acts whenever a request reaches it, late ones included, unless it remembers their key. Persons answer the
truth, lookups never lie; everything else goes wrong.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings

import replay
from replay import AttemptMarked, CallState, LookupAsked, QuestionAnswered, QuestionAsked, RunResumed, State
from runner import _arguments
from tests.decide import tools
from tests.decide.walks import calls, moments, results, walks
from tests.decide.world import World

MANY = settings(max_examples=40)
MATTERS = {"pay", "push", "patch", "send"}
"""Tools whose effect must not happen twice."""
HAPPENED = {"ran", "found", "told"}


@settings(max_examples=150)
@given(walks(deploys=True))
def test_no_effect_happens_twice_and_none_is_lost(world: World) -> None:
    """The promise of the whole product: what the result says is what is in the world, once."""
    have = results(world)
    for call, said in calls(world).items():
        acted = world.service.acted.get(call, 0)
        result = have.get(call)
        if said.tool in MATTERS:
            assert acted <= 1, f"{said.tool} {call} happened {acted} times"
        if result is not None and said.tool != "look":
            assert (acted > 0) == (result.how in HAPPENED), (
                f"{said.tool} {call} is {result.how}, and happened {acted} times"
            )


@MANY
@given(walks(deploys=True))
def test_an_intent_happens_once_whatever_ids_its_calls_have(world: World) -> None:
    """A model that repeats itself must not pay twice (spec row 24)."""
    causes = Counter(c.arguments for i, c in calls(world).items() if c.tool == "pay" and world.service.acted.get(i))
    assert set(causes.values()) <= {1}


@MANY
@given(walks(deploys=True))
def test_a_call_that_repeats_an_intent_is_refused_with_the_result_of_the_first(world: World) -> None:
    """The model learns what happened, and which call did it (spec row 24)."""
    have = results(world)
    for moment in moments(world):
        if isinstance(moment.event, replay.ResultRecorded) and moment.event.first is not None:
            assert moment.event.how == "refused"
            assert have[moment.event.first].how in HAPPENED
            assert have[moment.event.first].text in moment.event.text


def _marks(world: World) -> list[tuple[replay.CallState, AttemptMarked, State, object]]:
    return [
        (call, m.event, m.before, m.at)
        for m in moments(world)
        if isinstance(m.event, AttemptMarked) and (call := m.before.find(m.event.call)) is not None
    ]


def _known(call: CallState, at: object) -> bool:
    """Whether the service surely knows this call's key, whatever its clock did meanwhile."""
    assert isinstance(at, type(call.attempts[0].marked))
    first = call.attempts[0]
    return (
        first.remembers is not None
        and not any(a.expired for a in call.attempts)
        and at <= first.marked + timedelta(seconds=first.remembers)
    )


@MANY
@given(walks(deploys=True))
def test_an_open_call_is_marked_again_only_when_a_repeat_is_harmless(world: World) -> None:
    """Reads, idempotent, or with a key the service still remembers; never blindly (spec row 23)."""
    for call, marked, _, at in _marks(world):
        if call.open:
            assert marked.effect == call.attempts[-1].effect, "today's code declares another effect: a person decides"
            assert marked.effect in {"reads", "idempotent"} or _known(call, at)
            assert marked.effect != "once"


@MANY
@given(walks())
def test_attempts_are_bounded_by_the_tool_by_deaths_and_by_what_persons_ordered(world: World) -> None:
    """Three attempts of their own life; a death or a person's `rerun` allows one more (spec row 23)."""
    marks: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    for moment in moments(world):
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
def test_one_key_serves_every_attempt_of_a_call_and_no_other_call(world: World) -> None:
    """A second key would be a second effect; a shared one would swallow an effect (spec row 17)."""
    keys: dict[str, set[str]] = {}
    for _, marked, _, _ in _marks(world):
        keys.setdefault(marked.call, set()).add(marked.key)
    assert all(len(of_a_call) == 1 for of_a_call in keys.values())
    assert len({key for of_a_call in keys.values() for key in of_a_call}) == len(keys)


@MANY
@given(walks(deploys=True))
def test_a_missing_is_believed_only_when_asked_after_everything_has_landed(world: World) -> None:
    """An effect still under way is missing now and there a second later (spec row 23)."""
    lands = {tool.name: tool.lands_within for tool in (tools.PAY, tools.PATCH)}
    for moment in moments(world):
        if isinstance(moment.event, LookupAsked):
            call = moment.before.find(moment.event.call)
            assert call is not None
            last = max(a.ended for a in call.attempts if a.ended is not None)
            landed = moment.at >= last + timedelta(seconds=lands[call.call.tool])
            assert moment.event.believes == landed


@MANY
@given(walks())
def test_all_approvals_of_a_reply_are_asked_in_one_line_before_its_first_call_runs(world: World) -> None:
    """A person is disturbed once per reply, and nothing of it has happened when they are asked (spec row 25)."""
    asked: dict[int, set[int]] = {}
    for moment in moments(world):
        event = moment.event
        if isinstance(event, QuestionAsked) and event.kind == "approve":
            asked.setdefault(moment.after.turns, set()).add(moment.line)
            assert not any(c.attempts or c.result for c in moment.before.calls)
            call = moment.before.find(event.call)
            assert call is not None
            _arguments.parse(call.call.arguments)
    assert all(len(lines) == 1 for lines in asked.values())


@MANY
@given(walks())
def test_what_needs_a_yes_is_marked_only_after_one_and_never_after_a_no(world: World) -> None:
    """The answer covers every attempt of that call and no other (spec row 25)."""
    for call, marked, state, _ in _marks(world):
        cause = _arguments.parse(call.call.arguments)["cause"]
        needs = call.call.tool == "send" or (call.call.tool == "pay" and cause != "a")
        question = state.questions.get(f"{marked.call}-approve")
        assert (question is not None) == needs
        assert question is None or (question.answer is not None and question.answer.answer == "approve")


@MANY
@given(walks())
def test_calls_of_a_reply_run_in_order_and_only_reads_side_by_side(world: World) -> None:
    """What a later call may rely on has happened; only reads can't disturb each other (design, "The heart")."""
    for call, marked, state, _ in _marks(world):
        position = [c.call.id for c in state.calls].index(call.call.id)
        for before in state.calls[:position]:
            assert before.result is not None or (before.in_flight and marked.effect == "reads")
        assert sum(c.in_flight for c in state.calls) < 8
