"""A tool whose arguments a server describes: `runner.tool(schema=...)`, and the check of arguments by that schema."""

import functools
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema  # type: ignore[import-untyped] # it ships no types
import pytest
from hypothesis import strategies

import runner
import runner.testing
from runner.mcp._tools import problem
from tests.support import stage

SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Pay an amount.",
    "properties": {
        "cents": {"type": "integer"},
        "to": {"type": "object", "properties": {"iban": {"type": "string"}}, "required": ["iban"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "required": ["cents"],
    "additionalProperties": False,
}


def paying(**options: Any) -> runner.Tool:
    """A tool with that schema; it returns its arguments."""

    @runner.tool(name="pay", schema=SCHEMA, **options)
    def pay(call: runner.Call) -> dict[str, Any]:
        return call.arguments

    pay.validate = functools.partial(problem, SCHEMA)
    return pay


def test_a_tool_may_take_its_schema_from_somebody_else(tmp_path: Path) -> None:
    """The model sees the schema as it is, and the function gets what the model wrote, names of any kind included."""
    pay = paying(once_per=("cents",))
    assert pay.description == "Pay an amount."
    assert pay.schema == {name: value for name, value in SCHEMA.items() if name != "description"}
    outcome = stage.start(
        [runner.testing.tool_calls(("pay", {"cents": 5, "to": {"iban": "x", "bic": 1}})), "done"], pay, runs=tmp_path
    )
    assert stage.finished(outcome) == "done"
    assert stage.results(tmp_path)["1.0"].text == '{"cents": 5, "to": {"iban": "x", "bic": 1}}'


def test_once_per_works_on_what_the_model_wrote(tmp_path: Path) -> None:
    """The intent is made of the arguments that the schema names."""
    turns = [
        runner.testing.tool_calls(("pay", {"cents": 5})),
        runner.testing.tool_calls(("pay", {"cents": 5, "tags": ["a"]})),
        "done",
    ]
    stage.start(turns, paying(once_per=("cents",)), runs=tmp_path)
    assert [stage.results(tmp_path)[call].how for call in ("1.0", "2.0")] == ["ran", "refused"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("{}", "$: 'cents' is a required property"),
        ('{"cents": "5"}', "$.cents: '5' is not of type 'integer'"),
        ('{"cents": true}', "$.cents: True is not of type 'integer'"),
        ('{"cents": 5.5}', "$.cents: 5.5 is not of type 'integer'"),
        ('{"cents": 5, "more": 1}', "$: Additional properties are not allowed ('more' was unexpected)"),
        ('{"cents": 5, "to": {}}', "$.to: 'iban' is a required property"),
        ('{"cents": 5, "tags": ["a", "c"]}', "$.tags[1]: 'c' is not one of ['a', 'b']"),
        ("[]", "they are not a JSON object"),
        ('{"cents": 5, "cents": 6}', "the key 'cents' is given twice"),
        ('{"cents": 5.0}', None),
        ('{"cents": 5, "to": {"iban": "x"}, "tags": []}', None),
    ],
)
def test_what_the_schema_certainly_forbids_is_told_with_its_place(arguments: str, why: str | None) -> None:
    """The model reads it and no attempt is made."""
    assert paying().prepare(arguments).problem == why


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda: runner.tool(schema={"type": "array"})(_of_a_call), "does not describe an object"),
        (lambda: runner.tool(schema={"type": "object", "properties": []})(_of_a_call), "does not describe an object"),
        (lambda: runner.tool(schema=SCHEMA)(_of_cents), "takes one parameter, a `runner.Call`"),
        (lambda: runner.tool(schema=SCHEMA)(_of_both), "takes one parameter, a `runner.Call`"),
        (lambda: paying(once_per=("iban",)), "once_per names no argument: iban"),
    ],
)
def test_a_declaration_that_can_t_work_is_refused(declare: Any, why: str) -> None:
    """When it is made, not when it is called."""
    with pytest.raises(runner.BadTool, match=why):
        declare()


def test_the_tool_keeps_its_own_copy_of_the_schema() -> None:
    """A list that a server's library goes on changing must not change a run's definitions."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = runner.tool(schema=schema)(_of_a_call)
    schema["properties"]["a"]["type"] = "integer"
    assert tool.prepare('{"a": "x"}').problem is None


DEEP: dict[str, Any] = {"type": "string"}
for _ in range(5000):
    DEEP = {"allOf": [DEEP]}


@pytest.mark.fault("hostile schema")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/elsewhere"},
        {"$ref": "#/nowhere"},
        {"type": 12},
        {"properties": []},
        DEEP,
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
    ],
    ids=["elsewhere", "nowhere", "no type", "no properties", "deep", "pattern", "names", "names left over"],
)
def test_a_schema_that_can_t_be_followed_allows_everything(schema: Any) -> None:
    """The server checks by its own schema; a stranger's expression or reference must not stop this process."""
    assert problem(schema, {"a": "a" * 40 + "!", "a" * 40 + "!": 1}) is None


VALUES = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(-3, 3) | strategies.sampled_from("abc"),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.sampled_from("abc"), inner),
    max_leaves=6,
)
SCHEMAS = strategies.fixed_dictionaries(
    {},
    optional={
        "enum": strategies.lists(VALUES, min_size=1, max_size=3),
        "required": strategies.lists(strategies.sampled_from("abc"), max_size=2, unique=True),
        "patternProperties": strategies.just({"^c": {}}),
        "properties": strategies.dictionaries(strategies.sampled_from("abc"), strategies.booleans()),
        "additionalProperties": strategies.booleans() | strategies.just({"type": "string", "pattern": "a"}),
    },
)


@hypothesis.given(SCHEMAS, VALUES)
def test_nothing_that_a_schema_allows_is_refused(schema: Any, value: Any) -> None:
    """The check leaves keywords out; it must never forbid more than the whole schema does."""
    if problem(schema, value) is not None:
        assert not jsonschema.Draft202012Validator(schema).is_valid(value)


def _of_a_call(call: runner.Call) -> str:
    return call.id


def _of_cents(cents: int) -> int:
    return cents


def _of_both(cents: int, call: runner.Call) -> str:
    return f"{cents} {call.id}"
