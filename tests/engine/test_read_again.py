"""What a call's arguments are written as is what its body reads, whatever the types of the tool do to values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import attrs
import msgspec
import pydantic
import pytest

import runner
from replay.events import ResultRecorded
from runner._policy import pending
from runner.testing import tool_calls
from tests.agent.test_adapters import taker
from tests.support import stage

Positive = Annotated[float, pydantic.Field(gt=0)]


@dataclass
class Price:
    """It takes dollars and keeps cents, under one name."""

    amount: float

    def __post_init__(self) -> None:
        self.amount *= 100


class Worded(pydantic.BaseModel):
    """It writes what it does not read."""

    amount: float

    @pydantic.field_serializer("amount")
    def worded(self, amount: float) -> str:
        """Dollars, as people write them."""
        return f"${amount}"


class Aliased(pydantic.BaseModel):
    """It reads one name and writes another."""

    amount: float = pydantic.Field(validation_alias="a", serialization_alias="b")


def _fails(_value: Any) -> Any:
    raise KeyError("gone")


@dataclass
class Fails:
    """Its check raises what no library expects."""

    amount: float

    def __post_init__(self) -> None:
        raise ZeroDivisionError


REFUSED: list[tuple[Any, Any, str]] = [
    (Price, {"amount": 5}, "becomes another one each time it is read"),
    (Annotated[int, pydantic.AfterValidator(lambda value: value * 2)], 3, "becomes another one"),
    (Worded, {"amount": 5}, "can't be written as JSON that is read again"),
    (Aliased, {"a": 5}, "can't be written as JSON that is read again"),
    (Positive, "Infinity", "can't be written as JSON that is read again"),
    (Fails, {"amount": 5}, "ZeroDivisionError"),
    (Annotated[int, pydantic.BeforeValidator(_fails)], 3, "KeyError: 'gone'"),
    (Annotated[int, pydantic.PlainSerializer(_fails)], 3, "can't be written as JSON"),
]


@pytest.mark.fault("a body reads another value than was decided")
@pytest.mark.parametrize(("hint", "value", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_a_value_that_is_not_read_as_it_was_written_is_refused(hint: Any, value: Any, said: str) -> None:
    """A predicate and a marker said 500 cents, the body got 50,000; what a validator raised ended every life."""
    assert said in str(taker(hint).prepare(json.dumps({"value": value})).problem)


@pytest.mark.fault("a body reads another value than was decided")
@pytest.mark.parametrize("sent", ["Infinity", 10**400], ids=["infinite", "huge"])
def test_a_body_does_not_run_with_a_default_in_place_of_what_was_marked(sent: Any, runs: Path) -> None:
    """Its arguments could not be read back from the marker, so it was called without any."""
    ran: list[float] = []

    def pay(amount: Positive = 5.0) -> None:
        ran.append(amount)

    script = [tool_calls(("pay", {"amount": sent})), "over"]
    assert stage.finished(stage.start(script, runner.Tool(pay, effect="idempotent"), runs=runs)) == "over"
    assert (ran, [event.how for event in stage.events(runs, ResultRecorded)]) == ([], ["invalid"])


@pytest.mark.fault("two numbers become one intent")
@pytest.mark.parametrize(
    "number", ["9007199254740993", "0.10000000000000000555", "1" + "0" * 400], ids=["whole", "fraction", "huge"]
)
@pytest.mark.parametrize("hint", [float, Positive, list[float], dict[str, float]], ids=str)
def test_a_number_that_is_written_as_text_is_held_exactly_or_refused(number: str, hint: Any) -> None:
    """Text in place of a number is taken, and was not compared with what became of it."""
    inside = {list[float]: [number], dict[str, float]: {"a": number}}.get(hint, number)
    bare = json.dumps(inside).replace(f'"{number}"', number)
    for value in (inside, bare):
        assert taker(hint).prepare(json.dumps({"value": value})).problem


@dataclass
class Weighed:
    """A float whose default is written as an int."""

    weight: float = 0


@pytest.mark.fault("a yes covers other arguments")
def test_a_default_inside_an_argument_has_one_spelling() -> None:
    """The yes to its first spelling did not cover the second, and a person was asked twice."""
    tool = taker(Weighed)
    once = tool.prepare('{"value": {}}')
    assert tool.prepare(once.text) == once
    assert tool.prepare(once.text).text == once.text == '{"value": {"weight": 0.0}}'


@dataclass(frozen=True)
class Payment:
    """An order of which a model may leave out the amount."""

    to: str
    cents: int = 100_000


@attrs.frozen
class Batch:
    """Payments in something else."""

    payments: dict[str, tuple[Payment, ...]]


class Held(msgspec.Struct):
    """Payments in a struct."""

    first: Payment | None = None


INNER: list[tuple[Any, Any, Any]] = [
    (Payment, {"to": "bob"}, {"to": "bob", "cents": 100_000}),
    (list[Payment], [{"to": "bob"}], [{"to": "bob", "cents": 100_000}]),
    (
        Batch,
        {"payments": {"a": [{"to": "bob"}]}},
        {"payments": {"a": [{"to": "bob", "cents": 100_000}]}},
    ),
    (Held, {"first": {"to": "bob"}}, {"first": {"to": "bob", "cents": 100_000}}),
]


@pytest.mark.fault("a default decides and nobody sees it")
@pytest.mark.parametrize(("hint", "short", "whole"), INNER, ids=["alone", "list", "attrs", "struct"])
def test_a_default_inside_an_argument_is_seen_by_all_who_decide(hint: Any, short: Any, whole: Any) -> None:
    """A predicate on the amount asked nobody, and the same payment with its amount written out was another intent."""
    tool = taker(hint)
    left_out, written = (tool.prepare(json.dumps({"value": value})) for value in (short, whole))
    assert left_out.plain == {"value": whole}
    assert left_out.text == written.text


def test_a_struct_that_leaves_its_defaults_out_is_refused() -> None:
    """They would decide and stand in no question."""

    class Brief(msgspec.Struct, omit_defaults=True):
        cents: int = 100_000

    with pytest.raises(runner.BadTool, match="leaves its defaults out"):
        taker(list[Brief])


class Order(pydantic.BaseModel, frozen=True):
    """Sets inside sets."""

    parts: frozenset[int] = pydantic.Field(alias="p")


SETS: list[tuple[Any, Any, Any]] = [
    (Annotated[set[int], pydantic.Field(min_length=1)], [0, 8], [8, 0]),
    (Order, {"p": [0, 8]}, {"p": [8, 0]}),
    (dict[int, list[Order]], {"1": [{"p": [0, 8]}]}, {"1": [{"p": [8, 0]}]}),
    (frozenset[Order], [{"p": [0, 8]}, {"p": []}], [{"p": []}, {"p": [8, 0]}]),
]


@pytest.mark.fault("one set, two intents")
@pytest.mark.parametrize(("hint", "one", "other"), SETS, ids=[str(one) for _, one, _ in SETS])
def test_a_set_is_written_in_one_order(hint: Any, one: Any, other: Any) -> None:
    """The order of a set differs from process to process: a second payment passed as another intent."""

    def pay(value: Any) -> None:
        raise AssertionError(value)

    pay.__annotations__["value"] = hint
    tool = runner.Tool(pay, once_per=["value"])
    first, second = (tool.prepare(json.dumps({"value": value})) for value in (one, other))
    assert first.problem is None
    assert first.text == second.text
    assert pending.intent(tool, first) == pending.intent(tool, second)
