"""Arguments: raw text from a model, either exactly what the tool takes or a sentence about it."""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runner
from replay.events import ResultRecorded
from replay.messages import AssistantMessage
from runner._agent.arguments import bind
from runner._agent.json_text import InvalidArguments, parse
from tests.support import tools
from tests.support.story import Story

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Place(msgspec.Struct):
    """Where something is."""

    file: str
    line: int = 1


@runner.tool
def rich(
    name: str,
    place: Place,
    colour: Colour,
    mode: Literal["fast", "slow"],
    count: Annotated[int, msgspec.Meta(ge=1, description="How many.")],
    call: runner.Call,
    when: datetime | None = None,
    tags: list[str] = ["new"],  # noqa: B006 (what a user writes; each call must get its own)
) -> None:
    """Do something rich.

    And more of it.

    Args:
        name: what it is called
        place (Place): where it is
        colour: red or blue
        mode: how fast
        count: this yields to the annotation
        call: the runner's own
        when: the moment
        tags: what to tag it with

    """
    raise AssertionError(name, place, colour, mode, count, call, when, tags)


RICH = '{"name": "n", "place": {"file": "f"}, "colour": "red", "mode": "fast", "count": 2}'


def problem(arguments: str) -> str:
    """What the model is told about these arguments of `rich`."""
    said = rich.prepare(arguments).problem
    assert said is not None
    return said


@settings(max_examples=50)
@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_any_json_object_is_parsed_as_it_was_written(value: dict[str, Any]) -> None:
    """What a person approves is what the tool gets."""
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, ensure_ascii=False, indent=1)) == value


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"cause": "a"', "not valid JSON"),
        ('{"cause": "a"} {}', "not valid JSON"),
        ("cause=a", "not valid JSON"),
        ('{"cause": NaN}', "NaN is not JSON"),
        ('{"cause": [-Infinity]}', "-Infinity is not JSON"),
        ('{"cause": "a", "cause": "b"}', "the key 'cause' is given twice"),
        ('{"x": {"y": 1, "y": 1}}', "the key 'y' is given twice"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"{}"', "not a JSON object"),
        ('{"cause": ' + "9" * 5000 + "}", "not valid JSON"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested deeper than 64"),
        ('{"a":' + "[" * 2000 + "]" * 2000 + "}", "nested deeper than 64"),
        ('{"a":' + "[" * 200_000, "nested deeper than 64"),
    ],
    ids=range(14),
)
def test_what_is_not_exactly_one_json_object_becomes_a_sentence(arguments: str, said: str) -> None:
    """Readers differ about each of these, and the person who approves must read what the tool reads."""
    with pytest.raises(InvalidArguments, match=said):
        parse(arguments)


def test_no_arguments_at_all_are_an_empty_object() -> None:
    """Some providers leave the text empty when a tool takes nothing."""
    assert parse("") == {}


def test_nesting_up_to_the_bound_is_taken() -> None:
    """The bound is a bound, not a guess."""
    value: object = parse('{"a":' * 63 + "1" + "}" * 63)
    for _ in range(63):
        assert isinstance(value, dict)
        value = value["a"]
    assert value == 1


@pytest.mark.fault("unstorable content")
@pytest.mark.parametrize("raw", [r'{"a": "x\ud800y"}', r'{"a": "x\uDFFFy"}'])
def test_a_lone_surrogate_behind_an_escape_is_replaced_before_the_tool_sees_it(raw: str) -> None:
    """No file or request can hold it: the tool would fail after its marker, and the call stay open."""
    assert parse(raw) == {"a": "x\ufffdy"}


def test_a_pair_of_escapes_that_names_a_character_is_that_character() -> None:
    """Most models write emoji so; other values and names are left as they are."""
    assert parse(r'{"\ud83d\ude00": ["\ud83d\ude00", 1, null, {"b": "\ud800"}]}') == {
        "\U0001f600": ["\U0001f600", 1, None, {"b": "\ufffd"}]
    }


def test_values_arrive_as_the_types_the_function_declares() -> None:
    """The body works with what its signature says."""
    values = bind(rich.signature.parameters, parse(RICH))
    assert values == {
        "name": "n",
        "place": Place("f", 1),
        "colour": Colour.RED,
        "mode": "fast",
        "count": 2,
        "when": None,
        "tags": ["new"],
    }


def test_a_mutable_default_is_fresh_for_every_call() -> None:
    """A body that appends to its default must not change the next call's."""
    for _ in range(2):
        tags = bind(rich.signature.parameters, parse(RICH))["tags"]
        assert tags == ["new"]
        tags.append("old")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": 1}, "- name: Expected `str`"),
        ({"place": {"line": 2}}, "- place: Object missing required field `file`"),
        ({"place": {"file": "f", "line": "two"}}, "- place.line: Expected"),
        ({"colour": "green"}, "- colour: Invalid enum"),
        ({"mode": "medium"}, "- mode: Invalid enum"),
        ({"count": 0}, ">= 1"),
        ({"count": True}, "- count: Expected"),
        ({"when": "yesterday"}, "- when: Invalid RFC3339"),
        ({"tags": [1]}, "- tags[0]: Expected"),
        ({"extra": 1}, "- extra: there is no such argument"),
        ({"call": {}}, "- call: there is no such argument"),
    ],
)
def test_what_does_not_fit_the_signature_is_named_by_its_place(change: dict[str, Any], said: str) -> None:
    """The model can mend what it can find."""
    assert said in problem(json.dumps(json.loads(RICH) | change))


def test_a_missing_argument_is_named() -> None:
    """The commonest mistake of all."""
    assert "- name: it is required and missing" in problem("{}")


def test_the_schema_is_what_the_signature_says_with_the_docstrings_words() -> None:
    """The model sees names, types, choices and descriptions, and nothing of the runner's own."""
    schema = rich.schema
    assert schema["required"] == ["name", "place", "colour", "mode", "count"]
    assert schema["additionalProperties"] is False
    shown = schema["properties"]
    assert list(shown) == ["name", "place", "colour", "mode", "count", "when", "tags"]
    assert shown["name"] == {"type": "string", "description": "what it is called"}
    assert shown["place"]["description"] == "where it is"
    assert shown["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert shown["mode"] == {"enum": ["fast", "slow"], "description": "how fast"}
    assert schema["$defs"]["Place"]["required"] == ["file"]
    assert shown["place"]["$ref"] == "#/$defs/Place"
    json.dumps(schema)


def test_the_description_is_the_docstring_without_its_list_of_arguments() -> None:
    """The schema has those already."""
    assert rich.description == "Do something rich.\n\nAnd more of it."


def test_a_tool_may_be_named_as_one_of_its_own_types_or_with_signs() -> None:
    """The schema's parts are found whatever the tool is called."""

    def body(place: Place) -> None:
        raise AssertionError(place)

    for name in ("Place", "place-find", "place_find"):
        made = runner.tool(name=name)(body)
        assert list(made.schema["properties"]) == ["place"]
        assert made.prepare('{"place": {"file": "f"}}').problem is None


def positional(x: int, /) -> None:
    """A parameter without a name."""
    raise AssertionError(x)


def rest(*xs: int) -> None:
    """Any number of parameters."""
    raise AssertionError(xs)


def more(**xs: int) -> None:
    """Any names."""
    raise AssertionError(xs)


def strange(x: object, y: type[int]) -> None:
    """A type that JSON has no form for."""
    raise AssertionError(x, y)


def unresolved(x: int) -> None:
    """A type hint that names nothing."""
    raise AssertionError(x)


unresolved.__annotations__["x"] = "Nowhere"


@pytest.mark.parametrize("function", [positional, rest, more, strange, unresolved])
def test_a_signature_that_named_json_arguments_cannot_fill_is_refused_when_it_is_declared(function: Any) -> None:
    """Better a sentence at import than a call that can never run."""
    with pytest.raises(runner.BadTool, match=function.__name__):
        runner.tool(function)


@pytest.mark.fault("unusable arguments")
def test_an_invalid_call_becomes_a_result_and_its_raw_text_survives() -> None:
    """No attempt, no question, and byte for byte what the model wrote."""
    raw = '{"cause": "a", }\u2028'
    story = Story(tools.agent())
    (recorded, *_) = story.reply(("send", raw))
    assert isinstance(recorded, ResultRecorded)
    assert recorded.how == "invalid"
    assert "not valid JSON" in recorded.text
    replied = story.state.messages[1]
    assert isinstance(replied, AssistantMessage)
    assert replied.reply.calls[0].arguments == raw
