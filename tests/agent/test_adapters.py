"""Arguments of every kind of type: what fits is taken and comes back, what does not is said in full."""

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType
from uuid import UUID

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
from typing_extensions import TypedDict

import runner
from runner._agent import sanitize


class Colour(Enum):
    """A choice of words."""

    RED = "red"


class Level(IntEnum):
    """A choice of numbers."""

    LOW = 1


class Line(msgspec.Struct):
    """A struct with an optional field."""

    x: int
    note: str = ""


class Circle(msgspec.Struct, tag=True):
    """One shape."""

    radius: int


class Square(msgspec.Struct, tag=True):
    """Another."""

    side: int


@dataclass
class Order:
    """A dataclass."""

    id: str
    lines: list[Line]
    note: str | None = None


@attrs.define
class Parcel:
    """An attrs class."""

    weight: int
    label: str = ""


class Address(TypedDict):
    """A typed dictionary."""

    street: str
    zip: int


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: int


class Customer(pydantic.BaseModel):
    """A pydantic model."""

    name: str
    age: Annotated[int, pydantic.Field(gt=0)] = 1


@pydantic.dataclasses.dataclass
class Item:
    """A pydantic dataclass."""

    cents: Annotated[int, pydantic.Field(gt=0)]


@dataclass
class Basket:
    """A dataclass with a pydantic constraint inside."""

    items: list[Annotated[int, pydantic.Field(gt=0)]]


Name = NewType("Name", str)


def taker(hint: Any, default: Any = ...) -> runner.Tool:
    """A tool with one argument of this type."""

    def take(value: Any) -> None:
        raise AssertionError(value)

    take.__annotations__["value"] = hint
    if default is not ...:
        take.__defaults__ = (default,)
    return runner.Tool(take)


FIT: list[tuple[Any, Any]] = [
    (int, 5), (float, 1.5), (str, "x"), (bool, True), (Any, {"a": [1]}), (object, "x"), (int | None, None),
    (list[int], [1]), (dict[str, int], {"a": 1}), (dict[int, str], {"1": "a"}), (tuple[int, str], [1, "a"]),
    (set[int], [1, 2]), (Literal["a", 1], 1), (Colour, "red"), (Level, 1), (datetime, "2026-01-02T03:04:05Z"),
    (date, "2026-01-02"), (timedelta, "PT5S"), (UUID, "12345678-1234-5678-1234-567812345678"), (Decimal, "1.50"),
    (bytes, "aGk="), (Path, "a/b"), (Name, "n"), (Line, {"x": 1, "note": ""}),
    (Circle | Square, {"type": "Square", "side": 2}),
    (Order, {"id": "o", "lines": [{"x": 1, "note": "n"}], "note": None}), (Parcel, {"weight": 1, "label": ""}),
    (Address, {"street": "s", "zip": 1}), (Point, [1, 2]), (Customer, {"name": "a", "age": 3}),
    (Item, {"cents": 1}), (Basket, {"items": [1]}), (list[Customer], [{"name": "a", "age": 1}]),
    (Annotated[int, msgspec.Meta(ge=0)], 0), (Annotated[int, pydantic.Field(gt=0)], 1),
    (Annotated[int, annotated_types.Gt(0)], 1), (Annotated[list[int], annotated_types.Len(1, 2)], [1]),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value"), FIT, ids=[str(hint) for hint, _ in FIT])
def test_a_value_of_its_type_is_taken_and_written_down_as_it_was(hint: Any, value: Any) -> None:
    """What a person is shown and what is logged is what the model wrote."""
    tool = taker(hint)
    found = tool.prepare(json.dumps({"value": value}))
    assert found.problem is None
    assert found.plain == {"value": value}
    assert tool.prepare(found.text).values == found.values
    json.dumps(tool.schema)


@pytest.mark.fault("a constraint that is not checked")
@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Annotated[int, pydantic.Field(gt=0)], -1),
        (Annotated[int, annotated_types.Gt(0)], -1),
        (Annotated[int, msgspec.Meta(gt=0)], -1),
        (list[Annotated[int, pydantic.Field(gt=0)]], [1, -1]),
        (Customer, {"name": "a", "age": -1}),
        (Item, {"cents": -1}),
        (Basket, {"items": [-1]}),
    ],
)
def test_a_constraint_is_checked_whoever_made_it(hint: Any, value: Any) -> None:
    """Msgspec passes over constraints that are not its own, without a word."""
    assert taker(hint).prepare(json.dumps({"value": value})).problem


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Annotated[list[Line], pydantic.Field(max_length=2)], "it mixes a constraint on list .pydantic. with Line"),
        (dict[str, type[int]], "type"),
        (type("Plain", (), {}), "use a dataclass, a TypedDict, a msgspec.Struct or a pydantic model"),
        (Line | Order, "union"),
    ],
)
def test_a_type_that_cannot_be_an_argument_is_refused_with_its_parameter(hint: Any, said: str) -> None:
    """When it is declared."""
    with pytest.raises(runner.BadTool, match=f"parameter value: .*{said}"):
        taker(hint)


@pytest.mark.fault("a default that is none of its type")
@pytest.mark.parametrize(
    ("hint", "default"), [(int, None), (int, "5"), (Annotated[int, pydantic.Field(gt=0)], 0), (Any, object())]
)
def test_a_default_that_would_not_load_again_is_refused(hint: Any, default: Any) -> None:
    """It is logged, and bound again by the next process."""
    with pytest.raises(runner.BadTool, match="parameter value: its default"):
        taker(hint, default)


def test_defaults_stand_in_the_schema_of_either_engine() -> None:
    """The model knows what happens when it says nothing."""
    for hint, default, shown in ((Colour, Colour.RED, "red"), (Customer, Customer(name="a"), {"name": "a", "age": 1})):
        tool = taker(hint, default)
        assert tool.schema["properties"]["value"]["default"] == shown
        assert tool.prepare("{}").plain == {"value": shown}


REPAIRED: list[tuple[Any, Any, Any]] = [
    (int, "5", 5), (int, 5.0, 5), (float, "1.5", 1.5), (bool, "true", True), (list[int], "[1, 2]", [1, 2]),
    (list[int], ["1", 2.0], [1, 2]), (Line, '{"x": "1"}', {"x": 1, "note": ""}),
    (Line, {"x": 1, "note": None}, {"x": 1, "note": ""}), (dict[str, int], {"a": "1"}, {"a": 1}),
    (dict[str, int | str], {"a": "5", "b": 5.0}, {"a": "5", "b": 5}), (int | None, "null", None),
]  # fmt: skip


@pytest.mark.fault("a value that a model quoted")
@pytest.mark.parametrize(("hint", "sent", "bound"), REPAIRED)
def test_what_json_leaves_no_doubt_about_is_put_right(hint: Any, sent: Any, bound: Any) -> None:
    """An attempt less, and what was bound is what is logged and approved."""
    found = taker(hint).prepare(json.dumps({"value": sent}))
    assert (found.problem, found.plain) == (None, {"value": bound})


def test_a_null_for_an_argument_with_a_default_is_the_default() -> None:
    """Models fill in what they leave out."""
    assert taker(int, 7).prepare('{"value": null}').plain == {"value": 7}


NOT_REPAIRED: list[tuple[Any, Any]] = [
    (float, "nan"), (float, "inf"), (bool, 1), (bool, "yes"), (int, True), (int, 5.5), (date, 0), (int, None),
    (int, '{"x": 1, "x": 2}'), (str, 5), (int, "five"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "sent"), NOT_REPAIRED)
def test_nothing_else_is_put_right(hint: Any, sent: Any) -> None:
    """Whatever could have meant two things is for the model to say again."""
    assert taker(hint).prepare(json.dumps({"value": sent})).problem


@pytest.mark.fault("a typo in a nested optional field")
@pytest.mark.parametrize(
    ("hint", "sent", "place"),
    [
        (Line, {"x": 1, "nots": "n"}, "value.nots"),
        (Order, {"id": "o", "lines": [{"x": 1, "nots": "n"}]}, "value.lines[0].nots"),
        (Order | None, {"id": "o", "lines": [], "nots": "n"}, "value.nots"),
        (dict[str, Line], {"b": {"x": 1}, "a": {"x": 1, "nots": "n"}}, "value.a.nots"),
        (Circle | Square, {"type": "Circle", "radius": 1, "sid": 2}, "value.sid"),
    ],
)
def test_an_unknown_nested_key_is_refused_at_its_place(hint: Any, sent: Any, place: str) -> None:
    """It was dropped, and the tool ran without what the model meant."""
    assert f"- {place}: there is no such field" in str(taker(hint).prepare(json.dumps({"value": sent})).problem)


@pytest.mark.fault("problems told one at a time")
def test_the_model_is_told_all_problems_at_once_with_place_and_value() -> None:
    """One more turn for each would be paid for."""

    @runner.tool
    def pay(order: Order, cents: int, customer: Customer, note: str = "") -> None:
        raise AssertionError(order, cents, customer, note)

    sent = {
        "ordr": 1,
        "order": {"id": "o", "lines": [{"x": "one"}]},
        "customer": {"age": -1},
    }
    assert str(pay.prepare(json.dumps(sent)).problem).splitlines() == [
        "its arguments do not fit",
        "- ordr: there is no such argument (did you mean `order`?)",
        '- order.lines[0].x: Expected `int`, got `str`; you sent "one"',
        "- cents: it is required and missing",
        "- customer.name: Field required",
        "- customer.age: Input should be greater than 0; you sent -1",
        "Call the tool again with all of these put right",
    ]


def test_definitions_of_both_engines_have_names_of_their_own() -> None:
    """A model's `Line` and a struct's are two things."""
    theirs = pydantic.create_model("Line", y=(int, ...))

    def draw(one: Line, other: Any) -> None:
        raise AssertionError(one, other)

    draw.__annotations__["other"] = list[theirs]  # type: ignore[valid-type] # made when the test runs
    schema = runner.tool(draw).schema
    assert {name: list(part["properties"]) for name, part in schema["$defs"].items()} == {
        "Line": ["x", "note"],
        "Line_2": ["y"],
    }
    assert schema["properties"]["other"]["items"] == {"$ref": "#/$defs/Line_2"}


def test_importing_runner_and_declaring_a_tool_loads_no_pydantic() -> None:
    """It costs a third of a second, and installing it must change no tool."""
    program = (
        "import runner, sys\n@runner.tool\ndef f(a: list[int]) -> int: return 1\nsys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.fault("a result of a type that only arguments may have")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Customer(name="a", age=3), '{"name": "a", "age": 3}'),
        ([Customer(name="a")], '[{"name": "a", "age": 1}]'),
        (Item(cents=1), '{"cents": 1}'),
        (Parcel(weight=1), '{"weight": 1, "label": ""}'),
        (Order("o", [Line(1)]), '{"id": "o", "lines": [{"x": 1, "note": ""}], "note": null}'),
    ],
)
def test_what_a_tool_may_take_it_may_return(value: Any, text: str) -> None:
    """A model would read that the call ran and never what came of it."""
    assert sanitize.result(value) == sanitize.Stored(text, lossy=False)
