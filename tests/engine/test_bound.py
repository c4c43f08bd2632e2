"""What is decided is what runs: one spelling of a call's arguments from the question to the body, with its defaults."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay
import runner
from replay import Event
from replay.events import AttemptMarked, QuestionAnswered, QuestionAsked, ResultRecorded
from runner.testing import tool_calls
from tests.support import stage, tools
from tests.support.story import Story, questions

PAY = '{"to": "bob"}'


def paying(cents: int, *, seen: list[Any] | None = None, **options: Any) -> runner.Tool:
    """A tool whose default is this many cents."""

    def pay(to: str, cents: int = cents) -> str:
        assert seen is not None
        seen.append((to, cents))
        raise ConnectionError

    return runner.Tool(pay, **{"effect": "idempotent", **options})


def marker(events: list[Event]) -> AttemptMarked:
    """The one marker among these events."""
    (marked,) = (event for event in events if isinstance(event, AttemptMarked))
    return marked


@pytest.mark.fault("a default decides and nobody sees it")
def test_a_predicate_and_a_question_see_the_defaults_that_run() -> None:
    """A model that leaves out the amount must not get around the approval of large amounts."""
    dear = paying(100_000, approval=lambda arguments: arguments["cents"] > 500)
    story = Story(tools.agent(dear))
    assert questions(story.reply(("pay", PAY))) == ["1.0-approve"]
    (question,) = story.state.waiting
    assert json.loads(question.arguments) == {"to": "bob", "cents": 100_000}
    assert marker(story.answer("1.0-approve", "approve")).arguments == question.arguments


@pytest.mark.fault("a default changed between yes and run")
def test_what_was_approved_is_what_runs_whatever_the_default_is_by_then() -> None:
    """A person said yes to 100 cents; a deploy made it 900 before the call ran. The tool is shown anew."""
    story = Story(tools.agent(paying(100, approval=True)))
    story.reply(("pay", PAY))
    story.write(*(QuestionAnswered(id=q.id, answer="approve", who="ann", digest=q.digest) for q in story.state.waiting))
    story.die(agent=tools.agent(paying(900, approval=True)))
    (again,) = (event for event in story.go() if isinstance(event, QuestionAsked))
    assert json.loads(again.arguments)["cents"] == 100
    assert marker(story.answer(again.id, "approve")).arguments == again.arguments


@pytest.mark.fault("a yes covers other arguments")
def test_a_yes_to_other_arguments_than_those_that_would_run_is_asked_for_anew() -> None:
    """The current code adds an argument of its own: nobody has seen the call that would run."""

    def pay(to: str, cents: int = 100, currency: str = "EUR") -> str:
        raise AssertionError((to, cents, currency))

    story = Story(tools.agent(paying(100, approval=True)))
    story.reply(("pay", PAY))
    story.write(*(QuestionAnswered(id=q.id, answer="approve", who="ann", digest=q.digest) for q in story.state.waiting))
    story.die(agent=tools.agent(runner.Tool(pay, effect="idempotent", approval=True)))
    (again,) = (event for event in story.go() if isinstance(event, QuestionAsked))
    assert (again.id, json.loads(again.arguments)["currency"]) == ("1.0-approve-2", "EUR")
    assert marker(story.answer("1.0-approve-2", "approve")).arguments == again.arguments


@pytest.mark.fault("a yes covers other arguments")
def test_a_marker_whose_arguments_nobody_approved_is_illegal() -> None:
    """Whatever state it came from, a forged snapshot included."""
    story = Story(tools.agent(paying(100, approval=True)))
    story.reply(("pay", PAY))
    (question,) = story.state.waiting
    answered = QuestionAnswered(id=question.id, answer="approve", who="ann", digest=question.digest)
    marked = marker(story.decide([answered]))
    state = replay.fold(story.state, story.now, [answered, replay.events.PhaseChanged(phase="tools")])
    with pytest.raises(replay.IllegalEvent, match="other arguments"):
        replay.step(state, _with(marked, '{"to": "eve", "cents": 100}'), story.now)


def _with(marked: AttemptMarked, arguments: str) -> AttemptMarked:
    fields = {name: getattr(marked, name) for name in marked.__struct_fields__}
    return AttemptMarked(**(fields | {"arguments": arguments}))


@pytest.mark.fault("a default changed between attempts")
def test_every_attempt_runs_with_the_first_ones_arguments(runs: Path) -> None:
    """The old key with another body is refused by a service at best; at worst it pays twice."""
    seen: list[tuple[str, int]] = []
    script = [tool_calls(("pay", {"to": "bob"})), "over"]

    first = stage.agent(script, paying(100, seen=seen, attempts=1))
    stage.asked(runner.start_sync(first, "do it", runs=runs, run="r"))
    runner.settle("r", "1.0-settle-1", "ann", "rerun", runs=runs)
    second = stage.agent(script, paying(900, seen=seen, attempts=1))
    stage.asked(runner.resume_sync("r", second, runs=runs))
    assert seen == [("bob", 100)] * 2
    assert [event.arguments for event in stage.events(runs, AttemptMarked)] == ['{"to": "bob", "cents": 100}', None]


def test_a_lookup_and_a_call_read_the_defaults(runs: Path) -> None:
    """What a lookup looks for is what the tool sent."""
    seen: list[Mapping[str, Any]] = []

    @runner.tool(effect="non_idempotent")
    def pay(to: str, call: runner.Call, cents: int = 5) -> str:
        seen.append(call.arguments)
        raise ConnectionError(to, cents)

    @pay.lookup(visible_within=0)
    def find(call: runner.Call) -> runner.Found:
        seen.append(call.arguments)
        return runner.Found("paid")

    assert stage.finished(stage.start([tool_calls(("pay", {"to": "bob"})), "over"], pay, runs=runs)) == "over"
    assert seen == [{"to": "bob", "cents": 5}] * 2


def test_a_body_that_changes_its_arguments_changes_those_of_no_other_call(runs: Path) -> None:
    """Arguments that were read once are kept for the next call that has the same."""
    seen: list[Mapping[str, Any]] = []

    @runner.tool(effect="reads")
    def look(at: str, call: runner.Call) -> str:
        seen.append(dict(call.arguments))
        call.arguments["at"] = f"not {at}"
        return at

    asked = tool_calls(("look", {"at": "it"}))
    assert stage.finished(stage.start([asked, asked, "over"], look, runs=runs)) == "over"
    assert seen == [{"at": "it"}] * 2


def test_the_schema_shows_the_defaults() -> None:
    """The model must know what it orders when it leaves an argument out."""
    assert paying(7).schema["properties"]["cents"] == {"type": "integer", "default": 7}


@pytest.mark.parametrize("default", [None, float("nan"), float("inf"), "5", object()])
def test_a_default_that_can_not_be_logged_as_its_type_is_refused_when_it_is_declared(default: Any) -> None:
    """It would decide without standing in any question."""
    with pytest.raises(runner.BadTool, match="cents: its default"):
        paying(default)


ARGUMENTS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**62), 2**62),
    float: st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**52), 2**52),
    str: st.text(),
    dict[str, int]: st.dictionaries(st.text(), st.integers(-9, 9), max_size=4),
    dict[int, str]: st.dictionaries(st.integers(-9, 9).map(str), st.text(), max_size=4),
    set[str]: st.lists(st.text(), max_size=4),
    tuple[int, float]: st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    Decimal: st.integers(-99, 99) | st.just("1.10"),
    Any: st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=4),
}


@pytest.mark.parametrize("kind", ARGUMENTS, ids=str)
@given(data=st.data())
def test_bound_arguments_bind_to_themselves(kind: Any, data: st.DataObject) -> None:
    """So that a later attempt, which reads them from the log, runs with the same values."""

    def act(value: Any) -> None:
        raise AssertionError(value)

    act.__annotations__["value"] = kind
    tool = runner.Tool(act)
    once = tool.prepare(json.dumps({"value": data.draw(ARGUMENTS[kind])}))
    again = tool.prepare(once.text)
    assert (once.problem, again) == (None, once)


@pytest.mark.fault("two numbers become one intent")
@pytest.mark.parametrize("number", ["9007199254740993", "0.10000000000000000555", "1e999", "1e-999", "1e" + "9" * 20])
def test_a_number_that_would_become_another_one_is_not_run(number: str) -> None:
    """A second payment of one cent more would be refused as the first one's repeat."""

    def pay(amount: float) -> str:
        raise AssertionError(amount)

    story = Story(tools.agent(runner.Tool(pay, once_per=("amount",))))
    (recorded, *_) = story.reply(("pay", f'{{"amount": {number}}}'))
    assert isinstance(recorded, ResultRecorded)
    assert recorded.how == "invalid"
    assert "can't be held exactly" in recorded.text


def test_whole_numbers_of_any_size_stay_what_they_are() -> None:
    """Where nothing has to become a double, nothing is lost."""

    def pay(amount: Any) -> str:
        raise AssertionError(amount)

    tool = runner.Tool(pay, once_per=("amount",))
    texts = {tool.prepare(f'{{"amount": {number}}}').text for number in (2**53, 2**53 + 1, 2**80, 2**80 + 1)}
    assert len(texts) == 4


NOBODY = ("", "  ", "\u200b", "\n", "\u3164", "\u2800", "\ufe0f", "\u0301", "\U000e0041", "\u115f\u1160")
POLICY = ("policy: approve off", "Policy: Ann", "\u200bpolicy\uff1a approve off", "pol\u200bicy: approve off")


@pytest.mark.fault("answered by nobody")
@pytest.mark.parametrize("who", [*NOBODY, *POLICY], ids=ascii)
def test_nobody_can_not_decide(runs: Path, who: str) -> None:
    """A name is what an audit asks for; one that can't be seen is none, and the policy's own is no person's."""
    outcome = stage.start([tool_calls(("send", {"cause": "a"})), "over"], tools.SEND, runs=runs)
    (question,) = stage.asked(outcome)
    decisions: list[Callable[[], object]] = [
        lambda: runner.approve("r", question.id, who, runs=runs),
        lambda: runner.refuse("r", question.id, who, runs=runs),
        lambda: runner.stop("r", who, runs=runs),
    ]
    for decide in decisions:
        with pytest.raises(runner.errors.NoName, match="needs the name"):
            decide()
    assert runner.read_state("r", runs).waiting == (question,)


@pytest.mark.fault("answered by nobody")
def test_an_answer_of_nobody_is_illegal_in_a_log() -> None:
    """A log that holds one was not written by us."""
    story = Story(tools.agent())
    story.reply(("send", '{"cause": "a"}'))
    (question,) = story.state.waiting
    with pytest.raises(replay.IllegalEvent, match="nobody"):
        story.write(QuestionAnswered(id=question.id, answer="approve", who=" ", digest=question.digest))


class Decides:
    """An async object."""

    async def __call__(self, arguments: Mapping[str, Any]) -> bool:
        """Never asked."""
        raise AssertionError(arguments)


async def decides(arguments: Mapping[str, Any]) -> bool:
    """Never asked."""
    raise AssertionError(arguments)


@pytest.mark.fault("an async predicate is always true")
@pytest.mark.parametrize("predicate", [decides, Decides(), Decides().__call__])
def test_an_async_predicate_is_refused(predicate: Any) -> None:
    """What it returns is true whatever it would say, and nobody waits for it."""
    with pytest.raises(runner.BadTool, match="answers at once"):
        paying(1, approval=predicate)
