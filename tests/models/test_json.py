"""Cutting JSON into pieces of its own text, and events out of bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runner
from runner.models import _json, _wire
from runner.models._wire import Events

ENDS = _wire._ends  # noqa: SLF001 (what a line ends with, to be counted)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
styles = st.sampled_from([(None, (", ", ": ")), (2, (",", " : ")), (None, (",", ":"))])


def spelled(value: Any, style: tuple[int | None, tuple[str, str]], *, ascii_only: bool) -> str:
    """A value, in one of the ways to spell it."""
    return json.dumps(value, indent=style[0], separators=style[1], ensure_ascii=ascii_only)


@given(st.dictionaries(st.text(), values, max_size=5), styles, st.booleans())
def test_an_object_is_cut_into_the_text_of_its_values(value: dict[str, Any], style: Any, ascii_only: bool) -> None:
    """Each piece is in the text as it stands, and means what it should."""
    text = f" \n{spelled(value, style, ascii_only=ascii_only)}\t"
    pieces = _json.fields(text)
    assert {name: json.loads(piece) for name, piece in pieces.items()} == value
    assert all(piece in text for piece in pieces.values())
    assert json.loads(_json.object_of(pieces)) == value


@given(st.lists(values, max_size=5), styles, st.booleans())
def test_an_array_is_cut_into_the_text_of_its_items(value: list[Any], style: Any, ascii_only: bool) -> None:
    """The same."""
    text = spelled(value, style, ascii_only=ascii_only)
    pieces = _json.items(text)
    assert [json.loads(piece) for piece in pieces] == value
    assert all(piece in text for piece in pieces)
    written = _json.write({"raw": [_json.raw(piece) for piece in pieces]}).decode()
    assert written == '{"raw":' + _json.array_of(pieces) + "}"


@given(st.text())
def test_any_text_is_a_string_or_says_that_it_is_none(text: str) -> None:
    """Nothing but `NotJson` comes out, whatever comes in."""
    for cut in (_json.fields, _json.items, _json.value):
        try:
            cut(text)
        except _json.NotJson:
            continue
    assert json.loads(_json.string(text)) == text


@pytest.mark.parametrize(
    "text", ["", "[1 2]", "[1", "{1:2}", '{"a":}', '{"a" 1}', '{"a":1', "nul", "[" * 5000, '{"a":' * 5000]
)
def test_what_is_no_json_is_not_json(text: str) -> None:
    """Broken in every place, and deeper than a stack."""
    for cut in (_json.fields, _json.items):
        with pytest.raises(_json.NotJson):
            cut(text)


def test_a_path_leads_inside_or_nowhere() -> None:
    """A reply of another shape has none of it."""
    text = '{"a":[{"b": 1e2 }]}'
    assert _json.inside(text, "a", 0, "b") == "1e2"
    assert [_json.inside(text, *path) for path in (("x",), ("a", 1), ("a", "b"), (0,), ("a", 0, "b", 0))] == [None] * 5


def test_what_no_json_can_hold_is_refused_where_it_is_written() -> None:
    """The agent's own words: it can be changed."""
    for value in (object(), "\ud83d", {1j: 2}):
        with pytest.raises(runner.BadAgent, match="can't be written as JSON"):
            _json.write({"x": value})


@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=5),
    st.data(),
)
def test_events_come_out_of_any_pieces_of_bytes(texts: list[str], data: st.DataObject) -> None:
    """However the network cuts them, and whichever way a server ends its lines."""
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    body = "".join(
        f": a comment{end}event: x{end}id: 7{end}data: {text}{end}data:more{end}{end}" for text in texts
    ).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    events = Events()
    found = [one for piece in [*pieces, b"x"] for one in events.feed(piece)]
    assert found == [f"{text}\nmore" for text in texts]


def test_a_line_that_never_ends_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server would keep the loop busy: each of its pieces would cost as much as all before it."""
    looked: list[int] = []

    class Counting:
        def search(self, data: bytes, at: int) -> object:
            looked.append(len(data) - at)
            return ENDS.search(data, at)

        def split(self, data: bytes) -> list[bytes]:
            looked.append(len(data))
            return ENDS.split(data)

    monkeypatch.setattr(_wire, "_ends", Counting())
    events = Events()
    assert [one for _ in range(1000) for one in events.feed(b"data:" + b"x" * 95)] == []
    assert len([*events.feed(b"\n\n")]) == 1
    assert sum(looked) < 4 * 100_000
