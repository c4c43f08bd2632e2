"""The door: whatever a tool returns or raises becomes text that any save can hold."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import math
import re
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay
from replay.events import ResultRecorded
from runner._agent import plain, sanitize

SEEN = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
ANY_TEXT = st.text(alphabet=st.characters() | st.characters(categories=["Cs"]), max_size=40)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=8)
    | st.datetimes() | st.dates() | st.timedeltas() | st.decimals() | st.uuids() | st.builds(object)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=12,
)


@dataclass
class Issue:
    """A dataclass as tools return it."""

    id: int
    token: str
    seen: dt.datetime


class Point(NamedTuple):
    """A named tuple is a tuple."""

    x: int
    y: int


class Part(msgspec.Struct):
    """A struct as tools return it."""

    name: str
    token: str = "t"  # noqa: S105 (a field's default, no secret)


class Level(enum.IntEnum):
    """A number with a name."""

    HIGH = 3


class Nothing(enum.Enum):
    """A name for the absence of a value."""

    NONE = None


def stored(value: object) -> str:
    """The text of a value that is stored as it is."""
    result = sanitize.result(value)
    assert not result.lossy
    return result.text


def bent(value: object) -> str:
    """The text of a value that is stored, but not as it is."""
    result = sanitize.result(value)
    assert result.lossy
    return result.text


@pytest.mark.fault("unstorable content")
@given(VALUES)
def test_whatever_a_tool_returns_can_be_saved(value: object) -> None:
    """An effect that happened is never repeated because its result would not serialise."""
    result = sanitize.result(value)
    event = ResultRecorded(call="1.0", how="ran", text=result.text, n=1, lossy=result.lossy)
    assert replay.decode(replay.encode(event)) == event


def test_text_stays_as_it_is_and_anything_else_becomes_json() -> None:
    """The model reads a string as a string, not as a quoted one."""
    assert stored('a "b" \u2028') == 'a "b" \u2028'
    assert stored({"b", "a"}) == '["a", "b"]'
    assert stored({1: "x", None: "y"}) == '{"1": "x", "None": "y"}'
    assert stored({"a": [1, 2.5, True, None, "é"]}) == '{"a": [1, 2.5, true, null, "é"]}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.datetime(2026, 1, 2, 3, 4, 5), '"2026-01-02T03:04:05"'),  # noqa: DTZ001 (without a zone on purpose)
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), '"2026-01-02T03:04:05+00:00"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
        (dt.timedelta(minutes=1), "60.0"),
        (decimal.Decimal("1.10"), '"1.10"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("a/b"), '"a/b"'),
        (Issue(7, "t", SEEN), '{"id": 7, "token": "t", "seen": "2026-01-02T00:00:00+00:00"}'),
        (Part("p"), '{"name": "p", "token": "t"}'),
        (Point(1, 2), "[1, 2]"),
        ({"a": Level.HIGH, "b": Nothing.NONE}, '{"a": 3, "b": null}'),
        (collections.OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
        (2**70, str(2**70)),
        (-(10**3000), str(-(10**3000))),
    ],
    ids=range(14),
)  # fmt: skip
def test_what_has_an_obvious_json_form_gets_it(value: object, text: str) -> None:
    """Tools return what Python programs return."""
    assert stored(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([math.nan, math.inf, -math.inf], '["NaN", "Infinity", "-Infinity"]'),
        (b"\x00\xff", '"AP8="'),
        (bytearray(b"a"), '"YQ=="'),
        ("a\ud800b", "a\ufffdb"),
        ({"k\udfff": "v\ud800"}, '{"k\ufffd": "v\ufffd"}'),
    ],
    ids=range(5),
)
def test_what_json_cannot_keep_is_bent_visibly_and_marked(value: object, text: str) -> None:
    """The model sees that something was there, the log says that it is not exactly what came."""
    assert bent(value) == text


@pytest.mark.fault("a result loses a part in silence")
def test_two_keys_that_are_written_alike_are_said_with_their_place() -> None:
    """One of the two values would be gone."""
    assert bent({"a": [{1: "x", "1": "y"}]}) == (
        "The call ran, but its result can't be stored: $.a[0] has two keys that are written alike."
    )


def deep(levels: int) -> Any:
    """A list of one list of one list, this many of them."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def wide() -> Any:
    """A value that is small in memory and huge when written out."""
    value: Any = 1
    for _ in range(18):
        value = [value, value]
    return value


def endless() -> Any:
    """A list that contains itself."""
    value: list[Any] = []
    value.append(value)
    return value


def failing() -> Iterator[int]:
    """A generator."""
    yield 1


class Lying(dict[str, int]):
    """A mapping whose items can't be read."""

    def items(self) -> Any:
        """Fail."""
        raise OSError("the file is gone")


class Unspeakable(dt.date):
    """A scalar that can't be written out."""

    def isoformat(self) -> str:
        """Fail."""
        raise ValueError("no words")


@pytest.mark.fault("unstorable content")
@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [{"b": object()}]}, "$.a[0].b is an object"),
        (Issue(object(), "t", SEEN), "$.id is an object"),  # type: ignore[arg-type] # on purpose
        (failing(), "$ is a generator"),
        ({"f": failing}, "$.f is a function"),
        ([int], "$[0] is a type"),
        ({(1, 2): 3}, "$ has a key that is a tuple"),
        (10**5000, "$ is an integer of about 49"),
        (deep(65), "is nested deeper than 64"),
        (deep(2000), "is nested deeper than 64"),
        (endless(), "is nested deeper than 64"),
        (Lying(a=1), "$ raised OSError: the file is gone"),
        ([Unspeakable(2026, 1, 1)], "$[0] raised ValueError: no words"),
    ],
    ids=range(12),
)
def test_what_has_no_json_form_is_named_by_its_place_in_a_result_that_says_the_call_ran(
    value: object, place: str
) -> None:
    """The model must not take it for a failure and try again."""
    text = bent(value)
    assert text.startswith("The call ran, but its result can't be stored: ")
    assert place in text


def test_a_value_that_is_huge_when_written_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doublings of one list are small in memory and, when there are sixty of them, larger than any disk."""
    monkeypatch.setattr(plain, "MAX_VALUES", 1000)
    assert "is past the first 1000 values" in bent(wide())
    assert stored([1] * 999) == json.dumps([1] * 999)


def test_nesting_up_to_the_bound_is_stored() -> None:
    """The bound is a bound, not a guess."""
    assert stored(deep(64)) == "[" * 64 + "1" + "]" * 64


@pytest.mark.fault("unstorable content")
@pytest.mark.parametrize(
    ("character", "bytes_"), [("a", 50 << 20), *((c, 4 << 20) for c in ("é", "\U0001f600", '"', "\x00", "\ud800"))]
)
def test_a_text_of_fifty_megabytes_is_cut_to_what_one_event_may_take_and_says_so(character: str, bytes_: int) -> None:
    """Size is bounded with a clear result, however many bytes a character takes on disk."""
    text = bent(character * (bytes_ // len(character.encode("utf-8", "surrogatepass"))))
    size = len(msgspec.json.encode(text))
    assert plain.MAX_TEXT - 16 <= size <= plain.MAX_TEXT
    assert re.search(r"\n\[cut here: \d+ characters came\]$", text)


@pytest.mark.fault("a long text is copied whole before it is cut")
@pytest.mark.parametrize("shape", ["text", "secrets", "inside", "many", "bytes", "error"])
def test_what_is_cut_off_costs_no_memory(shape: str) -> None:
    """A tool may read a file of any size; what is done with it is in proportion to what is kept."""
    text = "a" * 50_000_000
    many = ["b" * 1_000_000 for _ in range(50)] if shape == "many" else []
    data = bytes(50_000_000) if shape == "bytes" else b""
    raised = ValueError(text)
    work: dict[str, Callable[[], object]] = {
        "text": lambda: sanitize.result(text),
        "secrets": lambda: sanitize.result(text, ("token", re.compile("b+"))),
        "inside": lambda: sanitize.result([{"x": text}]),
        "many": lambda: sanitize.result(many),
        "bytes": lambda: sanitize.result(data),
        "error": lambda: sanitize.error(raised),
    }
    tracemalloc.start()
    said = work[shape]()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "[cut here: 50000000 characters came]" in str(said)
    assert peak < 10_000_000


@pytest.mark.fault("text that is of a class of its own makes a save fail")
def test_text_of_another_class_is_its_text() -> None:
    """Whatever its methods say."""

    class Odd(str):
        __slots__ = ()

        def __len__(self) -> int:
            raise AssertionError

        def __str__(self) -> str:
            raise AssertionError

    assert sanitize.result(Odd("abc")) == sanitize.Stored("abc", lossy=False)
    assert stored([Odd("abc")]) == '["abc"]'


@pytest.mark.fault("a secret at the place of the cut")
@pytest.mark.parametrize("before", [0, 1, 5, 9, 20])
def test_a_secret_across_the_cut_is_masked(before: int) -> None:
    """Half of one is worth as much to whoever finds it."""
    secret = "hunter" * 8
    text = "x" * (plain.MAX_TEXT - 60 - before) + secret + "y" * 200_000
    kept = sanitize.result(text, (re.compile(secret),)).text
    assert "hunt" not in kept


@given(st.text(max_size=300), st.integers(60, 300))
def test_no_cut_text_is_larger_than_its_bound_and_none_is_cut_that_fits(text: str, limit: int) -> None:
    """Bounds are in bytes of JSON, because that is what a line is made of."""
    kept = sanitize.clean(text, limit)
    assert len(msgspec.json.encode(kept)) <= limit
    assert (kept != text) == (len(msgspec.json.encode(text)) > limit)


def test_secrets_are_masked_wherever_they_stand() -> None:
    """A log holds whatever the agent read, and is read by many."""
    secrets = ("token", re.compile(r"sk-\w+"))
    value = {"token": object(), "list": [{"token": "x", "text": "key sk-123 here"}], "issue": Part("p", "y")}
    text = sanitize.result(value, secrets).text
    assert json.loads(text) == {
        "token": "[secret]",
        "list": [{"token": "[secret]", "text": "key [secret] here"}],
        "issue": {"name": "p", "token": "[secret]"},
    }
    assert sanitize.result("plain sk-123", secrets).text == "plain [secret]"
    assert sanitize.error(ValueError("bad key sk-123"), secrets) == "ValueError: bad key [secret]"


class Mute(Exception):
    """An error whose text can't be had."""

    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_is_one_bounded_sentence_whatever_it_holds() -> None:
    """The attempt must end as something, even when the error is broken itself."""
    assert sanitize.error(ValueError("a\ud800")) == "ValueError: a\ufffd"
    assert sanitize.error("as said") == "as said"
    assert "Mute" in sanitize.error(Mute())
    assert len(msgspec.json.encode(sanitize.error(ValueError("x" * 10_000_000)))) <= sanitize.MAX_ERROR


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(0, 0.0), (2, 2.0), (1.5, 1.5), (366 * 86400, 366 * 86400.0), (-1, None), (math.nan, None), (math.inf, None),
     (10**400, None), (True, None), ("5", None), (None, None)],
    ids=range(11),
)  # fmt: skip
def test_a_wait_is_believed_only_if_it_is_one(value: object, seconds: float | None) -> None:
    """A service that asks for an eternity, or for nonsense, gets the schedule."""
    assert sanitize.seconds(value) == seconds
