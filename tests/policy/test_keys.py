"""Keys, intents and run ids: the names that make an effect recognisable."""

from __future__ import annotations

import string
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runner
from replay.events import AttemptMarked
from runner._agent import keys as _keys
from tests.support import tools
from tests.support.story import BEGIN, Story, only

VECTORS = [
    ("r", "c", "e68c5841d9b5898ee0da8d0bf8a9b886"),
    ("", "", "390feabc786e369e55b904251d643b52"),
    ("ré", "call:1", "d71da99cbe2af94053b0c58b8c32a92f"),
    ("triage-20260101-abcd1234", "call_1", "634e73c62d9d992769e5d8d43dccfbbd"),
]
NAMES = st.text(alphabet="ab1:é", max_size=6)


@pytest.mark.parametrize(("run", "call", "key"), VECTORS)
def test_keys_are_those_of_the_specification(run: str, call: str, key: str) -> None:
    """A service that saw a key of another version must recognise it."""
    assert runner.key(run, call) == key


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_calls_never_share_a_key(run: str, call: str, other_run: str, other_call: str) -> None:
    """The lengths keep ("a", "bc") from ("ab", "c")."""
    same = (run, call) == (other_run, other_call)
    assert (runner.key(run, call) == runner.key(other_run, other_call)) == same


def test_a_subkey_is_stable_and_is_no_calls_key() -> None:
    """A second request in one call is another request."""
    call = runner.Call(run="r", id="1.0", tool="t", n=1, key=runner.key("r", "1.0"), arguments={})
    keys = [call.key, call.subkey(1), call.subkey(2), runner.key("r", "1.1"), runner.key("r", "1.01")]
    assert len(set(keys)) == 5
    assert call.subkey(1) == runner.Call(run="r", id="1.0", tool="t", n=2, key="k", arguments={}).subkey(1)


@given(st.text(max_size=80), st.text(alphabet=string.hexdigits.lower(), min_size=8, max_size=8))
def test_a_default_run_id_is_safe_in_every_file_system(name: str, random: str) -> None:
    """An agent may be called anything; its runs are directories."""
    run = _keys.run_id(name, BEGIN, random)
    assert set(run) <= set(string.ascii_lowercase + string.digits + "-")
    assert run.endswith(f"-20260101-{random}")
    assert not run.startswith("-")
    assert len(run) <= 82


def intent(tool: runner.Tool, arguments: str) -> str | None:
    """The intent in the marker of a call with these arguments."""
    story = Story(tools.agent(tool))
    marked = only(AttemptMarked, story.reply((tool.name, arguments))[-1:])
    return marked.intent


class Place(msgspec.Struct):
    """Where something is."""

    file: str
    line: float = 0


@runner.tool(once_per=("cause", "at", "seen"))
def report(cause: str = "crash", at: Place | None = None, seen: datetime | None = None, text: str = "") -> Any:
    """Report something."""
    raise AssertionError(cause, at, seen, text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{}", '{"cause": "crash"}'),
        ('{"text": "a"}', '{"text": "b"}'),
        ('{"at": {"file": "x"}}', '{"at": {"line": 0, "file": "\\u0078"}, "cause": "crash"}'),
        ('{"at": {"file": "x", "line": 1}}', '{"at": {"file": "x", "line": 1.0}}'),
        ('{"seen": null}', "{}"),
    ],
)
def test_an_intent_is_the_values_that_the_tool_gets(one: str, other: str) -> None:
    """Neither spelling, nor order, nor a default written out, nor other arguments make it another intent."""
    assert intent(report, one) == intent(report, other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"cause": "a"}', '{"cause": "A"}'),
        ('{"at": {"file": "x"}}', '{"at": {"file": "x", "line": 1}}'),
        ('{"seen": "2026-01-01T00:00:00Z"}', "{}"),
    ],
)
def test_other_values_are_another_intent(one: str, other: str) -> None:
    """What differs for the tool is not refused as a repeat."""
    assert intent(report, one) != intent(report, other)


def test_the_same_arguments_of_another_tool_are_another_intent() -> None:
    """An intent is a tool and its arguments."""
    pays = (
        tools.make("pay", "non_idempotent", once_per=("cause",)),
        tools.make("file", "non_idempotent", once_per=("cause",)),
    )
    one, other = (intent(tool, '{"cause": "a"}') for tool in pays)
    assert one != other


@pytest.mark.parametrize(
    ("other", "same"), [('{"causes": [1.0, {"b": "x"}], "n": 2}', True), ('{"causes": [2]}', False)]
)
def test_an_intent_of_a_tool_with_a_schema_of_its_own_is_what_the_model_wrote(other: str, same: bool) -> None:
    """Its service alone knows the types; JSON still has one number for 1 and 1.0."""
    schema = {"type": "object", "properties": {"causes": {}, "n": {}}}

    @runner.tool(once_per=("causes",), schema=schema)
    def act(call: runner.Call) -> None:
        raise AssertionError(call)

    assert (intent(act, '{"causes": [1, {"b": "x"}]}') == intent(act, other)) == same


def test_a_tool_without_once_per_has_no_intent() -> None:
    """It may repeat itself: nothing says that it must not."""
    assert intent(tools.PUT, '{"cause": "a"}') is None
