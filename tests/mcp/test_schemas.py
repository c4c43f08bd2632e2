"""A tool whose arguments a service describes: `runner.tool(schema=...)`, and what the check knows for certain."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

import runner
from runner._schemas import problem
from tests.runner import stage

jsonschema: Any = importlib.import_module("jsonschema")  # it has no types; the SDK brings it
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

    return pay


def test_a_tool_may_take_its_schema_from_somebody_else(tmp_path: Path) -> None:
    """The model sees the schema as it is, and the function gets what the model wrote, names of any kind included."""
    pay = paying(once_per=("cents",))
    assert pay.description == "Pay an amount."
    assert pay.schema == {name: value for name, value in SCHEMA.items() if name != "description"}
    outcome = stage.start(
        [runner.calls(("pay", {"cents": 5, "to": {"iban": "x", "bic": 1}})), "done"], pay, runs=tmp_path
    )
    assert stage.finished(outcome) == "done"
    assert stage.results(tmp_path)["1.0"].text == '{"cents": 5, "to": {"iban": "x", "bic": 1}}'


def test_once_per_works_on_what_the_model_wrote(tmp_path: Path) -> None:
    """The intent is made of the arguments that the schema names."""
    turns = [runner.calls(("pay", {"cents": 5})), runner.calls(("pay", {"cents": 5, "tags": ["a"]})), "done"]
    stage.start(turns, paying(once_per=("cents",)), runs=tmp_path)
    assert [stage.results(tmp_path)[call].how for call in ("1.0", "2.0")] == ["ran", "refused"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("{}", "$ has no 'cents', which is required"),
        ('{"cents": "5"}', "$.cents must be integer"),
        ('{"cents": true}', "$.cents must be integer"),
        ('{"cents": 5.5}', "$.cents must be integer"),
        ('{"cents": 5, "more": 1}', "$ takes no 'more' (it takes 'cents', 'to', 'tags')"),
        ('{"cents": 5, "to": {}}', "$.to has no 'iban', which is required"),
        ('{"cents": 5, "tags": ["a", "c"]}', "$.tags[1] must be one of 'a', 'b'"),
        ("[]", "they are not a JSON object"),
        ('{"cents": 5, "cents": 6}', "the key 'cents' is given twice"),
        ('{"cents": 5.0}', None),
        ('{"cents": 5, "to": {"iban": "x"}, "tags": []}', None),
    ],
)
def test_what_the_schema_certainly_forbids_is_told_with_its_place(arguments: str, why: str | None) -> None:
    """The model reads it and no attempt is made."""
    assert paying().problem(arguments) == why


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
    assert tool.problem('{"a": "x"}') is None


LETTERS = strategies.sampled_from("abc")
PLAIN = strategies.none() | strategies.booleans() | strategies.integers(-3, 3) | strategies.floats(-2, 2) | LETTERS
VALUES = strategies.recursive(
    PLAIN,
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=6,
)
KINDS = strategies.sampled_from(["object", "array", "string", "boolean", "null", "number", "integer"])


def schemas() -> strategies.SearchStrategy[Any]:
    """Schemas of the keywords the check knows, and of some that it leaves alone."""
    parts: strategies.SearchStrategy[dict[str, Any]] = strategies.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | strategies.lists(KINDS, min_size=1, max_size=2, unique=True),
            "enum": strategies.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "required": strategies.lists(LETTERS, max_size=2, unique=True),
            "minLength": strategies.integers(0, 2),
            "patternProperties": strategies.just({"^c": {}}),
            "prefixItems": strategies.just([{"type": "string"}]),
        },
    )
    return strategies.recursive(
        strategies.booleans() | parts,
        lambda inner: strategies.tuples(
            parts,
            strategies.fixed_dictionaries(
                {},
                optional={
                    "properties": strategies.dictionaries(LETTERS, inner, max_size=2),
                    "additionalProperties": inner,
                    "items": inner,
                },
            ),
        ).map(lambda both: both[0] | both[1]),
        max_leaves=4,
    )


@hypothesis.given(schemas(), VALUES)
def test_nothing_that_a_schema_allows_is_refused(schema: Any, value: Any) -> None:
    """Against a whole implementation of JSON Schema: the check may know less, never other."""
    if problem(schema, value) is not None:
        assert not jsonschema.Draft202012Validator(schema).is_valid(value)


def _of_a_call(call: runner.Call) -> str:
    return call.id


def _of_cents(cents: int) -> int:
    return cents


def _of_both(cents: int, call: runner.Call) -> str:
    return f"{cents} {call.id}"
