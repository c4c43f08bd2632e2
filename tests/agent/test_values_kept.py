"""What a model wrote is what runs: no key, member or field is lost on the way, and none in silence."""

import json
import time
from typing import Any

import msgspec
import pydantic
import pytest

import runner
from tests.agent.test_adapters import taker


class Round(msgspec.Struct, tag=True, frozen=True):
    """A shape that a set can hold."""

    radius: int


class Straight(msgspec.Struct, tag=True, frozen=True):
    """Another."""

    side: int


class Shapes(msgspec.Struct):
    """A set inside of a struct."""

    shapes: set[Round | Straight]


@pytest.mark.fault("two keys become one")
@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (dict[float, str], '{"1": "a", "1.0": "b"}'),
        (dict[float, str], '{"9007199254740993": "a"}'),
        (dict[str, list[dict[float, int]]], '{"x": [{"1": 2, "1.0": 3}]}'),
        (dict[str, int], '{"\\ud800": 1, "\\ud801": 2}'),
        (set[float], "[9007199254740993, 9007199254740992]"),
    ],
    ids=str,
)
def test_what_can_not_be_told_apart_is_refused(hint: Any, sent: str) -> None:
    """The call would run with one of two values, and nobody would know which was meant."""
    problem = taker(hint).prepare(f'{{"value": {sent}}}').problem
    assert problem is not None
    assert "told apart" in problem or "twice" in problem or "held exactly" in problem


@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (dict[float, str], '{"1": "a", "2.5": "b"}'),
        (set[float], "[1, 1.0, 2]"),
        (Shapes, '{"shapes": [{"type": "Straight", "side": 1}, {"type": "Round", "radius": 2}]}'),
    ],
    ids=str,
)
def test_what_is_only_spelled_otherwise_is_taken_and_has_one_spelling(hint: Any, sent: str) -> None:
    """Members of a set have no order, even those that can't be compared."""
    tool = taker(hint)
    found = tool.prepare(f'{{"value": {sent}}}')
    assert found.problem is None
    turned = json.loads(sent)
    turned = {"shapes": turned["shapes"][::-1]} if hint is Shapes else turned[::-1] if hint == set[float] else turned
    assert tool.prepare(json.dumps({"value": turned})).text == found.text


@pytest.mark.fault("a field that is never written")
def test_a_model_that_leaves_a_field_out_is_no_argument() -> None:
    """It would be shown and stored without it, and the body would get the default."""

    class Payment(pydantic.BaseModel):
        cents: int
        note: str = pydantic.Field(default="", exclude=True)

    with pytest.raises(runner.BadTool, match="left out where it is written"):
        taker(dict[str, Payment])


@pytest.mark.fault("a hostile object takes minutes")
def test_a_key_that_is_given_twice_is_found_quickly_among_many() -> None:
    """Arguments of a megabyte hold a hundred thousand of them."""
    many = ",".join(f'"{number}":1' for number in range(100_000))
    began = time.process_time()
    problem = taker(dict[str, int]).prepare(f'{{"value":{{{many},"99999":1}}}}').problem
    assert problem == "the key '99999' is given twice"
    assert time.process_time() - began < 5
